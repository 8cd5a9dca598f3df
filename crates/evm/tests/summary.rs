//! Texts for people: the summaries and warnings of representative orders, and refusals.
//!
//! The snapshots under `snapshots/` are reviewed like any text of a user interface. Every value in them is also in the fixture of the
//! case, which was made by outside tools.
use std::fmt::Write;

use countersign_core::Policy;
use countersign_evm::{Evm, TxContext};
use countersign_json::line::Outcome;
use countersign_testkit::lines::run;
use countersign_testkit::{Tree, fixture, registry, verified};
use serde_json::Value;

fn read_by_the_owner(id: &str) -> String {
    let output = run(&fixture::<Evm>(id).input);
    assert_eq!(output["ok"], Value::Bool(true), "{id}: {}", output["error"]);
    let mut text = String::new();
    for line in output["summary"].as_array().unwrap() {
        writeln!(text, "{}", line.as_str().unwrap()).unwrap();
    }
    for warning in output["warnings"].as_array().unwrap() {
        writeln!(text, "! {}: {}", warning["code"].as_str().unwrap(), warning["message"].as_str().unwrap()).unwrap();
    }
    text
}

fn refusal(base: &str, at: &str, value: &str) -> String {
    let mut line = fixture::<Evm>(base).tree();
    line.set(at, Tree::parse(value));
    match Outcome::from_line(line.text().as_bytes(), registry(), &Policy::default()).result {
        Ok(_) => panic!("{base}: {at} was accepted"),
        Err(refusal) => refusal.to_string(),
    }
}

#[test]
fn a_token_with_an_unlimited_approval() {
    insta::assert_snapshot!(read_by_the_owner("evm-token-approval-unlimited"));
}

#[test]
fn a_native_coin_with_typed_data() {
    insta::assert_snapshot!(read_by_the_owner("evm-native-typed-data"));
}

#[test]
fn a_delegate_with_destination_data() {
    insta::assert_snapshot!(read_by_the_owner("evm-on-behalf-data"));
}

#[test]
fn an_order_with_its_record() {
    insta::assert_snapshot!(read_by_the_owner("evm-record-bitcoin-delegate"));
}

#[test]
fn less_than_was_asked_for_within_slippage() {
    insta::assert_snapshot!(read_by_the_owner("evm-slippage-record"));
}

#[test]
fn a_legacy_transaction_without_a_key() {
    insta::assert_snapshot!(read_by_the_owner("evm-legacy-without-key"));
}

/// No line of a summary is empty, and each begins with its heading.
#[test]
fn every_line_has_a_heading_and_a_text() {
    for id in ["evm-token-approval-unlimited", "evm-record-bitcoin-delegate", "evm-destination-data-empty"] {
        let output = run(&fixture::<Evm>(id).input);
        for line in output["summary"].as_array().unwrap() {
            let (heading, text) = line.as_str().unwrap().split_once(": ").expect("a heading");
            assert!(!heading.is_empty() && !text.trim().is_empty(), "{id}: {line}");
        }
    }
}

#[test]
fn refusals_in_words() {
    let base = "evm-token-approval-exact";
    let transaction = "/response/result/initiate_transaction";
    let data = fixture::<Evm>(base).tree().scalar(&format!("{transaction}/data")).unwrap();
    let stranger = format!("\"{}{}{}\"", &data[..34], "12".repeat(20), &data[74..]);
    let lines = [
        refusal(base, &format!("{transaction}/to"), "\"0x1212121212121212121212121212121212121212\""),
        refusal(base, &format!("{transaction}/data"), &stranger),
        refusal(base, &format!("{transaction}/gas_limit"), "\"0xffffffff\""),
        refusal(base, "/response/result/typed_data/domain/version", "\"2\\nowner: you\""),
        refusal(base, "/request/source/amount", "\"0.0125\""),
        refusal(base, "/wallet/secret_key", "\"0x1111111111111111111111111111111111111111111111111111111111111111\""),
        refusal("evm-record-evm-v1", "/order/destination_swap/amount", "\"1\""),
    ];
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn a_reset_of_the_allowance_reads_like_this() {
    let calls = TxContext::eip1559(7, 30_000_000_000, 1_000_000_000).with_allowance_reset();
    let unsigned = verified::<Evm>(&fixture::<Evm>("evm-token-approval-exact")).prepare(calls).unwrap();
    insta::assert_snapshot!(unsigned.summary().to_string());
}
