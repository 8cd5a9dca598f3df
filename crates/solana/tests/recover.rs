//! The way out from an order record alone.

#![allow(
    clippy::arithmetic_side_effects,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a panic in a test is a failed test"
)]

mod support;

use countersign_core::{Code, SecretHash};
use countersign_solana::address::{self, TOKEN_PROGRAM};
use countersign_solana::recover::{self, Leg};
use countersign_solana::solana_hash::Hash;
use countersign_solana::{Address, htlc};
use support::recover::{record, refuses_other_records};
use support::{TestResult, registry};

fn key(text: &str) -> Address {
    address::parse(text).expect(text)
}

#[test]
fn refunds_lamports_to_the_owner() -> TestResult {
    let record = record("solana-record-testnet", |_| {})?;
    let way_out = recover::refund(&record, Leg::Source, None, registry())?;
    let owner = key(&record.source_swap.initiator);
    assert!(way_out.swap_id_recomputed);
    assert_eq!(way_out.to, owner);
    let accounts: Vec<_> = way_out.instruction.accounts.iter().map(|meta| (meta.pubkey, meta.is_signer, meta.is_writable)).collect();
    assert_eq!(accounts, [(way_out.swap_account, false, true), (owner, false, true)]);
    assert_eq!(way_out.instruction.data, htlc::REFUND);

    let payer = Address::from([9; 32]);
    let transaction = way_out.prepare(payer, Hash::new_from_array([5; 32]));
    assert_eq!(transaction.message.static_account_keys()[0], payer);
    assert_eq!((transaction.signatures.len(), transaction.message.header().num_required_signatures), (1, 1));
    assert_eq!(transaction.message.recent_blockhash(), &Hash::new_from_array([5; 32]));
    Ok(())
}

#[test]
fn redeems_tokens_to_the_redeemers_account_with_the_right_secret_only() -> TestResult {
    let secret = [0x5a; 32];
    let record = record("solana-record-token", |order| {
        order["source_swap"]["secret_hash"] = SecretHash::of(&secret).to_string().into();
    })?;
    let sponsor = Address::from([8; 32]);
    let way_out = recover::redeem(&record, Leg::Source, &secret, Some(sponsor), registry())?;
    assert!(!way_out.swap_id_recomputed, "the id is that of another secret hash");
    let redeemer = key(&record.source_swap.redeemer);
    let mint = registry().asset("solana:usdc").and_then(|asset| asset.token.as_ref()).map(|token| key(&token.text)).ok_or("no token")?;
    let accounts = &way_out.instruction.accounts;
    assert_eq!(Some(accounts[4].pubkey), address::associated_token_account(redeemer, mint, TOKEN_PROGRAM));
    assert_eq!((accounts[1].pubkey, accounts[5].pubkey, accounts[6].pubkey), (way_out.swap_account, sponsor, TOKEN_PROGRAM));
    assert!(accounts.iter().all(|meta| !meta.is_signer));
    assert_eq!(way_out.instruction.data, [htlc::REDEEM.as_slice(), &secret].concat());
    let refusal = recover::redeem(&record, Leg::Source, &[1; 32], None, registry()).expect_err("another secret");
    assert_eq!((refusal.code(), refusal.location()), (Code::SecretWrong, "/order/source_swap/secret_hash"));
    Ok(())
}

#[test]
fn refuses_what_is_not_solanas_or_not_a_swap() -> TestResult {
    refuses_other_records(
        "solana-record-testnet",
        &[
            (|order| order["source_swap"]["swap_id"] = "12".repeat(32).into(), Code::RecordSwapId, "/order/source_swap/swap_id"),
            (|order| order["source_swap"]["initiator"] = "0x00".into(), Code::RecordMismatch, "/order/source_swap/initiator"),
        ],
        |record, leg| recover::refund(record, leg, None, registry()),
    )
}
