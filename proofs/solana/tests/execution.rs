//! Tests that the SVM accepts what `sign` returns, that it moves exactly the amount shown, and that changed copies
//! fail.
//!
//! The orders are fixtures whose transactions @solana/web3.js compiled. The blockhash is replaced by the virtual
//! machine's, and the secret hash by that of a known secret. Expected balances are computed from the request's
//! amount.
#![cfg(test)]
#![allow(clippy::arithmetic_side_effects, reason = "a test fails by panicking")]

mod support;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use countersign::Leg;
use countersign::solana::recover;
use countersign::solana::solana_hash::Hash;
use countersign::solana::solana_message::v1::TransactionConfig;
use countersign::solana::{Address, DurableNonce, TxContext};
use countersign_proofs_solana::rent;
use serde_json::json;
use solana_account::Account;
use solana_keypair::Keypair;
use solana_signer::Signer;
use support::{FEE, FUNDS, NATIVE, PINNED, SECRET, TOKENS, VAULT, scene, sponsor};

#[test]
fn lamports_move_by_exactly_the_amount_shown() {
    for id in ["solana-native-legacy", "solana-native-v0", "solana-native-keys-reordered", "solana-v1-native", "solana-v1-native-heap"] {
        let mut scene = scene(id);
        scene.initiate();
        assert_eq!(scene.lamports(scene.swap_account), scene.amount + NATIVE, "{id}");
        assert_eq!(scene.lamports(scene.owner), FUNDS - scene.amount - NATIVE - FEE, "{id}");
        assert_eq!(scene.svm.get_account(&scene.swap_account).unwrap().owner, scene.program);
    }
}

#[test]
fn tokens_move_by_exactly_the_amount_shown_at_the_owners_expense() {
    for id in [
        "solana-token-legacy",
        "solana-token-v0",
        "solana-token-2022",
        "solana-token-destination-data",
        "solana-v1-token",
        "solana-v1-token-destination-data-longest",
    ] {
        let mut scene = scene(id);
        scene.initiate();
        assert_eq!((scene.tokens(scene.owner), scene.tokens_in(scene.vault())), (scene.amount, scene.amount), "{id}");
        assert_eq!(scene.lamports(scene.owner), FUNDS - TOKENS - VAULT - FEE, "{id}");
    }
}

#[test]
fn tokens_move_by_exactly_the_amount_shown_at_the_sponsors_expense() {
    for id in ["solana-token-legacy", "solana-token-v0", "solana-token-2022", "solana-v1-token"] {
        let mut scene = scene(id);
        scene.initiate_gasless();
        assert_eq!((scene.tokens(scene.owner), scene.tokens_in(scene.vault())), (scene.amount, scene.amount), "{id}");
        assert_eq!(scene.lamports(scene.owner), FUNDS, "{id}");
        assert_eq!(scene.lamports(sponsor().pubkey()), FUNDS - TOKENS - VAULT - 2 * FEE, "{id}");
    }
}

#[test]
fn recovery_pays_lamports() {
    let mut redeemed = scene("solana-record-testnet");
    redeemed.initiate();
    let recovery = recover::redeem(&redeemed.record(), Leg::Source, &SECRET, &PINNED).unwrap();
    assert!(redeemed.send(&recovery));
    assert_eq!(redeemed.lamports(redeemed.redeemer), FUNDS + redeemed.amount);
    assert_eq!(redeemed.lamports(redeemed.owner), FUNDS - redeemed.amount - FEE, "the rent came back");
    assert!(!redeemed.send(&recovery), "once");

    let mut refunded = scene("solana-record-testnet");
    refunded.initiate();
    let recovery = recover::refund(&refunded.record(), Leg::Source, &PINNED).unwrap();
    refunded.outlive_the_timelock(&recovery);
    assert_eq!(refunded.lamports(refunded.owner), FUNDS - FEE);
}

/// Tests that the message contains the limits that it needs. Without a limit for loaded bytes nothing runs, and the
/// fee is still charged.
#[test]
fn recovery_with_a_message_of_version_1_pays_lamports() {
    let mut scene = scene("solana-record-testnet");
    scene.initiate();
    let limits = TransactionConfig::empty().with_compute_unit_limit(50_000).with_loaded_accounts_data_size_limit(65_536);
    let redemption = recover::redeem(&scene.record(), Leg::Source, &SECRET, &PINNED).unwrap();
    assert!(scene.send(&redemption.with_config(limits.with_priority_fee(123))));
    assert_eq!(scene.lamports(scene.redeemer), FUNDS + scene.amount);
}

/// A nonce replaces the blockhash, which has expired by the time the transaction is sent. The transaction advances
/// the nonce.
#[test]
fn recovery_with_a_nonce_pays_lamports_once() {
    let mut scene = scene("solana-record-testnet");
    scene.initiate();
    let (stranger, account, value) = (Keypair::new_from_array([9; 32]), Address::from([0x71; 32]), Hash::new_from_array([0x72; 32]));
    scene.svm.airdrop(&stranger.pubkey(), 1_000_000_000).unwrap();
    // The version and state, the authority, the value, and the fee per signature.
    let data = [&[1, 0, 0, 0, 1, 0, 0, 0], stranger.pubkey().as_ref(), value.as_ref(), &FEE.to_le_bytes()].concat();
    let stored = Account { lamports: rent(80), data, owner: Address::default(), executable: false, rent_epoch: u64::MAX };
    scene.svm.set_account(account, stored).unwrap();
    let redemption = recover::redeem(&scene.record(), Leg::Source, &SECRET, &PINNED).unwrap();
    let context = TxContext::new().with_nonce(DurableNonce::new(account, value));
    let mut unsigned = redemption.prepare(context.sent_by(stranger.pubkey())).unwrap();
    unsigned.sign_with(&stranger).unwrap();
    let [transaction] = unsigned.finish().unwrap().transactions().try_into().unwrap();
    scene.svm.expire_blockhash();
    scene.svm.send_transaction(transaction.native.clone()).unwrap();
    assert_eq!(scene.lamports(scene.redeemer), FUNDS + scene.amount);
    assert_ne!(scene.svm.get_account(&account).unwrap().data[40..72], value.to_bytes());
    assert!(scene.svm.send_transaction(transaction.native).is_err(), "once");
}

#[test]
fn recovery_pays_tokens() {
    let key = sponsor().pubkey();
    let mut redeemed = scene("solana-record-token");
    redeemed.initiate_gasless();
    let recovery = recover::redeem(&redeemed.record(), Leg::Source, &SECRET, &PINNED).unwrap().with_sponsor(key);
    assert!(redeemed.send(&recovery));
    assert_eq!((redeemed.tokens(redeemed.redeemer), redeemed.tokens_in(redeemed.vault())), (redeemed.amount, 0));
    assert_eq!(redeemed.lamports(key), FUNDS - VAULT - 2 * FEE, "the swap's rent came back, the vault stays");

    let mut refunded = scene("solana-record-token");
    refunded.initiate();
    // The owner sent the ordinary transaction, and so was its own sponsor.
    let recovery = recover::refund(&refunded.record(), Leg::Source, &PINNED).unwrap();
    refunded.outlive_the_timelock(&recovery);
    assert_eq!((refunded.tokens(refunded.owner), refunded.tokens_in(refunded.vault())), (2 * refunded.amount, 0));
}

/// Flips each bit of each account, instruction and argument. Every change is refused, except those that the family's
/// `tests/properties.rs` shows to be free (the blockhash, a sponsor that has not signed, a native timelock). Those
/// are shown in the summary.
#[test]
fn every_changed_copy_is_refused_or_shown() {
    for (id, members) in [("solana-native-legacy", &["versioned_tx"][..]), ("solana-token-v0", &["versioned_tx", "versioned_tx_gasless"])] {
        let mut scene = scene(id);
        let (_, shown) = scene.signed().unwrap();
        for member in members {
            let honest = scene.line["response"]["result"][*member].as_str().unwrap().to_owned();
            let bytes = STANDARD.decode(&honest).unwrap();
            let slots = usize::from(bytes[0]);
            let mut refused = 0;
            for index in 1 + 64 * slots..bytes.len() {
                let mut other = bytes.clone();
                other[index] ^= 1;
                scene.line["response"]["result"][*member] = json!(STANDARD.encode(other));
                match scene.signed() {
                    Err(_) => refused += 1,
                    Ok((_, other)) => assert_ne!(other, shown, "{id} {member} byte {index}"),
                }
            }
            scene.line["response"]["result"][*member] = json!(honest);
            assert!(refused + 32 + 32 >= bytes.len() - 1 - 64 * slots, "{id} {member}: {refused} of {} refused", bytes.len());
        }
    }
}
