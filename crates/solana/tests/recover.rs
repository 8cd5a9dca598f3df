//! Recovery from an order record alone.

use countersign_core::{Code, Policy, RequestId, Role, SecretHash};
use countersign_solana::address::{self, TOKEN_PROGRAM};
use countersign_solana::recover::{self, Leg, Recovery};
use countersign_solana::solana_hash::Hash;
use countersign_solana::solana_message::v1::TransactionConfig;
use countersign_solana::{Address, Key, PriorityFee, Solana, TxContext, UnsignedOrder, htlc};
use countersign_testkit::recover::{record, refuses_other_records, shows_no_secret};
use countersign_testkit::{TestResult, registry};

fn key(text: &str) -> Address {
    address::parse(text).expect(text)
}

#[test]
fn refunds_lamports_to_the_owner() -> TestResult {
    let record = record::<Solana>("solana-record-testnet", |_| {})?;
    let recovery = recover::refund(&record, Leg::Source, registry())?;
    let owner = key(&record.source_swap.initiator);
    assert!(recovery.swap_id_recomputed());
    assert_eq!(hex::encode(recovery.swap_id()), record.source_swap.swap_id);
    assert_eq!(recover::swap_id(&record, Leg::Source, registry())?, recovery.swap_id());
    assert_eq!((recovery.to(), recovery.token_account()), (owner, None));
    let accounts: Vec<_> = recovery.instruction().accounts.iter().map(|meta| (meta.pubkey, meta.is_signer, meta.is_writable)).collect();
    assert_eq!(accounts, [(recovery.swap_account(), false, true), (owner, false, true)]);
    assert_eq!(recovery.instruction().data, htlc::REFUND);

    assert_eq!(recovery.clone().with_sponsor(Address::from([8; 32])), recovery, "the native program has no sponsor");

    let key = Key::from_seed(&[9; 32]);
    let mut unsigned = recovery.prepare(TxContext::new().with_blockhash(Hash::new_from_array([5; 32])).sent_by(key.address()))?;
    assert_eq!((unsigned.order_id(), unsigned.missing()), (Some(record.order_id.as_str()), vec![RequestId::Refund]));
    assert!(unsigned.warnings().list().is_empty());
    let shown = unsigned.summary().to_string();
    assert!(shown.contains(&format!("base units to {owner}")) && shown.contains("to sign: refund transaction, SHA-256"), "{shown}");
    unsigned.sign(&key)?;
    let signed = unsigned.finish()?;
    assert!(signed.gasless().is_none());
    let [transaction] = &signed.transactions()[..] else { return Err("one transaction".into()) };
    let native = &transaction.native;
    assert_eq!((transaction.role, &transaction.id), (Role::Refund, &native.signatures[0].to_string()));
    assert_eq!(native.message.static_account_keys()[0], key.address());
    assert_eq!((native.signatures.len(), native.message.header().num_required_signatures), (1, 1));
    assert_eq!(native.message.recent_blockhash(), &Hash::new_from_array([5; 32]));
    assert!(native.verify_with_results().into_iter().all(|valid| valid));
    Ok(())
}

#[test]
fn redeems_tokens_to_the_redeemers_account_with_the_right_secret_only() -> TestResult {
    let secret = [0x5a; 32];
    let record = record::<Solana>("solana-record-token", |order| {
        order["source_swap"]["secret_hash"] = SecretHash::of(&secret).to_string().into();
    })?;
    let sponsor = Address::from([8; 32]);
    let recovery = recover::redeem(&record, Leg::Source, &secret, registry())?.with_sponsor(sponsor);
    shows_no_secret(&recovery, &secret, &[]);
    assert!(!recovery.swap_id_recomputed(), "the id is that of another secret hash");
    let unsigned = recovery.prepare(TxContext::new().with_blockhash(Hash::default()).sent_by(sponsor))?;
    assert_eq!(unsigned.warnings().list().iter().map(|warning| warning.code()).collect::<Vec<_>>(), [Code::SwapIdUnchecked]);
    assert_eq!(unsigned.missing(), [RequestId::Redeem]);
    let redeemer = key(&record.source_swap.redeemer);
    let mint = registry().asset("solana:usdc").and_then(|asset| asset.token.as_ref()).map(|token| key(&token.text)).ok_or("no token")?;
    let accounts = &recovery.instruction().accounts;
    assert_eq!(Some(accounts[3].pubkey), address::associated_token_account(redeemer, mint, TOKEN_PROGRAM));
    assert_eq!(recovery.token_account(), Some(accounts[3].pubkey));
    assert_eq!((accounts[1].pubkey, accounts[4].pubkey, accounts[5].pubkey), (recovery.swap_account(), sponsor, TOKEN_PROGRAM));
    assert!(accounts.iter().all(|meta| !meta.is_signer));
    assert_eq!(recovery.instruction().data, [htlc::REDEEM.as_slice(), &secret].concat());
    let refusal = recover::redeem(&record, Leg::Source, &[1; 32], registry()).expect_err("another secret");
    assert_eq!((refusal.code(), refusal.location()), (Code::SecretWrong, "/order/source_swap/secret_hash"));
    Ok(())
}

/// Nodes see the secret of a redemption, also of one that fails because of its limits.
#[test]
fn a_redemption_with_limits_that_none_meets_is_not_shown() -> TestResult {
    let secret = [0x5a; 32];
    let record = record::<Solana>("solana-record-token", |order| {
        order["source_swap"]["secret_hash"] = SecretHash::of(&secret).to_string().into();
    })?;
    let [redeem, refund] =
        [recover::redeem(&record, Leg::Source, &secret, registry())?, recover::refund(&record, Leg::Source, registry())?];
    let sent = |path: TxContext| path.with_blockhash(Hash::default()).sent_by(Address::from([8; 32]));
    let is_warned = |unsigned: UnsignedOrder| unsigned.warnings().list().iter().any(|warning| warning.code() == Code::FeeTooLow);
    let own = |units| TxContext::new().with_priority_fee(PriorityFee::new(1).with_limit(units));
    let of_message = |units, loaded| TransactionConfig::empty().with_compute_unit_limit(units).with_loaded_accounts_data_size_limit(loaded);
    // The network takes 1,500 units for the address of the swap account alone.
    for (path, config, at) in [
        (own(1_999), None, Some("/priority_fee/compute_unit_limit")),
        (own(2_000), None, None),
        (TxContext::new(), None, None),
        (TxContext::new(), Some(of_message(1_999, 10_000)), Some("/config/compute_unit_limit")),
        (TxContext::new(), Some(of_message(2_000, 9_999)), Some("/config/loaded_accounts_data_size_limit")),
        (TxContext::new(), Some(of_message(2_000, 10_000)), None),
    ] {
        let with = |recovery: &Recovery| config.map_or_else(|| recovery.clone(), |config| recovery.clone().with_config(config));
        let (redeem, refund) = (with(&redeem), with(&refund));
        let refusal = redeem.prepare(sent(path.clone())).map(|_| ()).err();
        assert_eq!(refusal.as_ref().map(|refusal| (refusal.code(), refusal.location())), at.map(|at| (Code::FeeTooLow, at)));
        assert!(refusal.is_none_or(|refusal| refusal.message().contains("accept_low_fee")));
        assert_eq!(is_warned(redeem.prepare(sent(path.clone()).with_low_fee(true))?), at.is_some(), "{at:?}");
        assert_eq!(is_warned(refund.prepare(sent(path))?), at.is_some(), "a refund shows nothing");
    }
    Ok(())
}

#[test]
fn refuses_what_is_not_solanas_or_not_a_swap() -> TestResult {
    refuses_other_records::<Solana, _>(
        "solana-record-testnet",
        &[
            (|order| order["source_swap"]["swap_id"] = "12".repeat(32).into(), Code::RecordSwapId, "/order/source_swap/swap_id"),
            (|order| order["source_swap"]["initiator"] = "0x00".into(), Code::RecordMismatch, "/order/source_swap/initiator"),
        ],
        |record, leg| recover::refund(record, leg, registry()),
    )
}

/// A redemption or refund that costs more than it pays is still prepared, because only its owner knows its value. A
/// warning states the loss.
#[test]
fn a_fee_above_the_payout_is_said() -> TestResult {
    let refund = |amount: &'static str| {
        let record = record::<Solana>("solana-record-testnet", |order| order["source_swap"]["amount"] = amount.into())?;
        Ok::<_, Box<dyn std::error::Error>>(recover::refund(&record, Leg::Source, registry())?)
    };
    let warned = |amount: &'static str, price: u64| -> Result<Vec<String>, Box<dyn std::error::Error>> {
        let path = TxContext::new().with_blockhash(Hash::default()).with_priority_fee(PriorityFee::new(price));
        let order = refund(amount)?.prepare(path.clone().sent_by(Address::from([8; 32])))?;
        let about = order.warnings().list().iter().filter(|warning| warning.code() == Code::FeeAbovePayout);
        Ok(about.filter_map(|warning| warning.detail().map(str::to_owned)).collect())
    };
    // 5,000 lamports for the signature, and a micro-lamport for each of 400,000 compute units.
    assert!(warned("5001", 1)?.is_empty());
    let [detail] = warned("5000", 1)?.try_into().map_err(|_| "one warning")?;
    assert!(detail.contains("(5001 lamports)") && detail.contains("pays only 0.000005 "), "{detail}");

    let low = Policy::from_json(br#"{"solana_compute_unit_price": 6}"#)?;
    let path = TxContext::new().with_blockhash(Hash::default()).with_priority_fee(PriorityFee::new(7));
    let refusal = refund("5000")?.with_policy(&low).prepare(path.clone().sent_by(Address::from([8; 32]))).expect_err("above the policy");
    assert_eq!((refusal.code(), refusal.location()), (Code::GasLimitTooHigh, "/priority_fee/compute_unit_price"));
    for part in ["the refund may cost up to", "(5003 lamports)", "pays only", "solana_compute_unit_price", "raise the limit"] {
        assert!(refusal.message().contains(part), "{refusal}");
    }
    Ok(())
}
