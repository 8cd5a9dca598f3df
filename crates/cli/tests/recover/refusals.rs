//! Recoveries that are refused: a record that was changed, a context that is wrong or incomplete, a policy that forbids them.

use serde_json::{Value, json};

use super::TO;
use crate::kept::{BLOCKHASH, Kept, mended, secret};
use crate::support::Fixture;

/// A record that was changed after it was verified is refused before anything is signed.
#[test]
fn a_tampered_record_is_refused() {
    let secret = secret();
    let fixture = mended(Fixture::load("evm-record-evm-v1").with_secret_hash(&secret.hash().to_string()));
    let kept = Kept::new("tampered", fixture, Some(&secret));
    let wallet = kept.file("wallet.json", &kept.fixture.wallet.to_string());
    let id = kept.fixture.order_id();
    let stranger = "0x000000000000000000000000000000000000dead";
    for (at, value, code) in [
        ("/source_swap/initiator", json!(stranger), "record_mismatch"),
        ("/source_swap/amount", json!("1"), "record_mismatch"),
        ("/source_swap/swap_id", json!("12".repeat(32)), "record_swap_id"),
        ("/source_swap/secret_hash", json!("34".repeat(32)), "record_mismatch"),
        ("/destination_swap/redeemer", json!(stranger), "record_pays_elsewhere"),
        ("/destination_swap/amount", json!("1"), "record_pays_less"),
        ("/destination_swap/secret_hash", json!("34".repeat(32)), "record_mismatch"),
        ("/order_id", json!("56".repeat(32)), "record_mismatch"),
    ] {
        let mut order = kept.fixture.order.clone();
        *order.pointer_mut(at).unwrap() = value;
        kept.keep(&order);
        for command in ["refund", "redeem"] {
            let refused = kept.refused(&[command, "--self", id, "--wallet", &wallet]);
            assert_eq!(refused, (code.to_owned(), format!("/order{at}")), "{command}");
        }
    }
    kept.keep(&json!("not a record"));
    assert_eq!(kept.refused(&["refund", "--self", id, "--wallet", &wallet]), ("wrong_type".to_owned(), "/order".to_owned()));
}

#[test]
fn what_is_not_right_is_refused_with_its_place() {
    let secret = secret();
    let fixture = mended(Fixture::load("evm-record-evm-v1").with_secret_hash(&secret.hash().to_string()));
    let kept = Kept::new("refused", fixture, Some(&secret));
    let order = kept.file("order.json", &kept.fixture.order.to_string());
    let (right, wrong) = (kept.file("right", &secret.to_hex()), kept.file("wrong", &"77".repeat(32)));
    let good = kept.fixture.wallet.clone();
    let refused = |change: &dyn Fn(&mut Value), more: &[&str]| {
        let mut wallet = good.clone();
        change(&mut wallet);
        let wallet = kept.file("wallet.json", &wallet.to_string());
        let (code, at) = kept.refused(&[&["recover", "--order", &order, "--wallet", &wallet], more].concat());
        format!("{code} {at}")
    };
    let without = |member: &'static str| move |wallet: &mut Value| drop(wallet.as_object_mut().unwrap().remove(member));
    let with = |member: &'static str, value: Value| move |wallet: &mut Value| wallet[member] = value.clone();
    assert_eq!(refused(&|_| {}, &["--secret-file", &wrong]), "secret_wrong /order/source_swap/secret_hash");
    assert_eq!(refused(&|_| {}, &["--secret-file", &order]), "secret_wrong /secret");
    // The key is that of the source's owner, whom a redemption of the destination does not pay.
    assert_eq!(refused(&|_| {}, &["--leg", "destination", "--secret-file", &right]), "key_mismatch /wallet/secret_key");
    assert_eq!(refused(&|_| {}, &["--key-file", &wrong]), "key_mismatch /wallet/secret_key");
    assert_eq!(refused(&|_| {}, &["--key-file", &order]), "key_malformed /wallet/secret_key");
    assert_eq!(refused(&without("nonce"), &[]), "missing_field /wallet/nonce");
    assert_eq!(refused(&without("max_fee_per_gas"), &[]), "missing_field /wallet/max_fee_per_gas");
    assert_eq!(refused(&with("Sender", json!("0x")), &[]), "unexpected_field /wallet/Sender");
    assert_eq!(refused(&with("sender", json!("0x12")), &[]), "address_malformed /wallet/sender");
    assert_eq!(refused(&with("chain_id", json!(5)), &[]), "wallet_chain_mismatch /wallet/chain_id");
    assert_eq!(refused(&with("gas_limit", json!(30_000_001)), &[]), "gas_limit_too_high /wallet/gas_limit");
    let forged = format!("refund={}1b", "11".repeat(64));
    assert_eq!(refused(&without("secret_key"), &["--signature", &forged]), "signature_mismatch /signatures/refund");
    assert_eq!(refused(&without("secret_key"), &["--signature", "redeem=0x00"]), "signature_malformed /signatures/redeem");
    let policy = kept.file("policy.json", r#"{"evm_gas_limit":299999}"#);
    assert_eq!(refused(&|_| {}, &["--policy", &policy]), "gas_limit_too_high /wallet/gas_limit");

    let id = kept.fixture.order_id();
    for usage in [
        &["recover", "--order", &order][..],
        &["recover", "--order", &order, "--funding", "1", "--to", TO, "--fee-rate", "1"],
        &["refund", "--self", id],
        &["refund", id, "--order", &order],
        &["redeem", "--self", id],
        &["redeem", id, "--key-file", &right],
    ] {
        assert_eq!(kept.run(usage).status.code(), Some(2), "{usage:?}");
    }
}

/// The wallet context of each other family is read as strictly.
#[test]
fn each_familys_context_is_read_strictly() {
    for (id, change, expected) in [
        ("tron-record-evm-v2", json!({ "expiration": null }), "missing_field /wallet/expiration"),
        ("tron-record-evm-v2", json!({ "fee_limit": 15_000_000_001_u64 }), "gas_limit_too_high /wallet/fee_limit"),
        ("tron-record-evm-v2", json!({ "fee": 1 }), "unexpected_field /wallet/fee"),
        ("starknet-record-evm-v2", json!({ "nonce": null }), "missing_field /wallet/nonce"),
        ("starknet-record-evm-v2", json!({ "sender": "owner" }), "hex_prefix /wallet/sender"),
        ("solana-record-testnet", json!({ "sender": null }), "missing_field /wallet/recent_blockhash"),
        (
            "solana-record-testnet",
            json!({ "recent_blockhash": BLOCKHASH, "block_height": 9, "last_valid_block_height": 8 }),
            "blockhash_expired /wallet/last_valid_block_height",
        ),
        ("solana-record-testnet", json!({ "fee_payer": BLOCKHASH }), "unexpected_field /wallet/fee_payer"),
        ("sui-record-evm", json!({ "gas_payment": [] }), "gas_coin_count /wallet/gas_payment"),
        ("sui-record-evm", json!({ "function_names": "newest" }), "wrong_type /wallet/function_names"),
    ] {
        let kept = Kept::new(&format!("strict-{id}"), Fixture::load(id), None);
        let mut wallet = kept.fixture.wallet.clone();
        for (member, value) in change.as_object().unwrap() {
            wallet[member] = value.clone();
        }
        let wallet = kept.file("wallet.json", &wallet.to_string());
        let (code, at) = kept.refused(&["refund", "--self", kept.fixture.order_id(), "--wallet", &wallet]);
        assert_eq!(format!("{code} {at}"), expected, "{id}");
    }
}

#[test]
fn a_warning_that_the_policy_refuses_is_refused_for_a_recovery_too() {
    let kept = Kept::new("warning", Fixture::load("tron-record-other-id"), None);
    let wallet = kept.file("wallet.json", &kept.fixture.wallet.to_string());
    let refund = ["refund", "--self", kept.fixture.order_id(), "--wallet", &wallet];
    assert!(kept.ok(&refund)["warnings"].to_string().contains("swap_id_unchecked"));
    let policy = kept.file("policy.json", r#"{"refused_warnings":["swap_id_unchecked"]}"#);
    assert_eq!(kept.refused(&[&refund[..], &["--policy", &policy]].concat()), ("warning_refused".to_owned(), String::new()));
}
