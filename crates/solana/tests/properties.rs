//! Rules over many inputs: whatever changes in a response is refused, shown, or without effect on what is signed; and no
//! bytes make the library panic.

#![allow(
    clippy::arithmetic_side_effects,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a panic in a test is a failed test"
)]

mod support;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use countersign_core::json::{self, Node};
use countersign_core::{Code, Policy, Proposed};
use countersign_solana::Solana;
use proptest::prelude::*;
use serde_json::{Value as Json, json};
use support::{Case, fixture, fixtures, outcome};

const PAYLOADS: [&str; 2] = ["/response/result/versioned_tx", "/response/result/versioned_tx_gasless"];

/// What a person sees, without the digests: those show every change, but nobody can read them.
fn seen(outcome: &Json) -> (Vec<&str>, &Json) {
    let lines = outcome["summary"].as_array().into_iter().flatten().filter_map(Json::as_str);
    (lines.filter(|line| !line.starts_with("to sign:")).collect(), &outcome["warnings"])
}

/// A changed response is refused, is seen to be another, or gives the same artefacts.
fn account_for(case: &Case, base: &Json, changed: &Json, what: &str) -> Result<(), String> {
    match outcome(&case.with_input(changed.to_string())) {
        Err(refusal) if refusal.code() == Code::Internal => Err(format!("{what}: {refusal}")),
        Err(_) => Ok(()),
        Ok(other) if seen(&other) != seen(base) || other["artefacts"] == base["artefacts"] => Ok(()),
        Ok(_) => Err(format!("{what}: accepted, unseen")),
    }
}

/// Pointers to every scalar below a value.
fn scalars(value: &Json, at: &str, found: &mut Vec<String>) {
    match value {
        Json::Object(members) => members.iter().for_each(|(key, value)| scalars(value, &format!("{at}/{key}"), found)),
        Json::Array(items) => items.iter().enumerate().for_each(|(index, value)| scalars(value, &format!("{at}/{index}"), found)),
        _ => found.push(at.to_owned()),
    }
}

const EVERY_KIND: [&str; 6] = [
    "solana-native-legacy",
    "solana-native-v0-blockhash-replaced",
    "solana-token-v0-sponsor-signed",
    "solana-token-destination-data",
    "solana-token-legacy",
    "solana-record-testnet",
];

fn payload(line: &Json, pointer: &str) -> Option<Vec<u8>> {
    let text = line.pointer(pointer).and_then(Json::as_str)?;
    Some(STANDARD.decode(text).expect("base64"))
}

#[test]
fn every_byte_of_a_transaction_is_accounted_for() {
    let mut faults = Vec::new();
    for id in EVERY_KIND {
        let case = fixture(id);
        let base = outcome(&case).expect(id);
        for pointer in PAYLOADS {
            let mut line = case.json();
            let Some(bytes) = payload(&line, pointer) else { continue };
            for index in 0..bytes.len() {
                for flip in [0x01, 0x80, 0xff] {
                    let mut bytes = bytes.clone();
                    bytes[index] ^= flip;
                    *line.pointer_mut(pointer).expect("a payload") = json!(STANDARD.encode(bytes));
                    faults.extend(account_for(&case, &base, &line, &format!("{id} {pointer} byte {index} ^ {flip:02x}")).err());
                }
            }
            for end in 0..bytes.len() {
                *line.pointer_mut(pointer).expect("a payload") = json!(STANDARD.encode(&bytes[..end]));
                assert!(outcome(&case.with_input(line.to_string())).is_err(), "{id} {pointer} cut at {end}");
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// The flips that are accepted are those of the blockhash, of the owner's slot and of a sponsor that has not signed; where
/// there is no twin, also a timelock that the policy allows.
#[test]
fn only_blockhash_owners_slot_sponsor_and_timelock_are_free() {
    for id in EVERY_KIND {
        let case = fixture(id);
        for (pointer, slots, owner) in [(PAYLOADS[0], 1, 0), (PAYLOADS[1], 2, 1)] {
            let mut line = case.json();
            let Some(bytes) = payload(&line, pointer) else { continue };
            let own = 1 + 64 * owner..65 + 64 * owner;
            let message = 1 + 64 * slots;
            let keys = message + usize::from(bytes[message] == 0x80) + 3;
            let hash = keys + 1 + 32 * usize::from(bytes[keys]);
            for index in 0..bytes.len() {
                let mut changed = bytes.clone();
                changed[index] ^= 0x10;
                *line.pointer_mut(pointer).expect("a payload") = json!(STANDARD.encode(changed));
                // Where the sponsor has signed, its signature is over all of this too.
                let sponsored = slots == 2 && bytes[1..65] != [0; 64];
                // The native program's data follow the hash, two counts, four indexes and the data's own count.
                let data = hash + 32 + 7;
                if id.contains("native") && (data + 16..data + 24).contains(&index) {
                    continue;
                }
                let shown = (hash..hash + 32).contains(&index) || (slots == 2 && (keys + 1..keys + 33).contains(&index));
                let free = own.contains(&index) || (!sponsored && shown);
                assert_eq!(outcome(&case.with_input(line.to_string())).is_ok(), free, "{id} {pointer} byte {index}");
            }
        }
    }
}

#[test]
fn every_scalar_of_a_response_is_accounted_for() {
    let mut faults = Vec::new();
    for id in EVERY_KIND {
        let case = fixture(id);
        let base = outcome(&case).expect(id);
        let line = case.json();
        let mut pointers = Vec::new();
        scalars(&line["response"], "/response", &mut pointers);
        if !line["order"].is_null() {
            scalars(&line["order"], "/order", &mut pointers);
        }
        for pointer in pointers {
            let mut others =
                vec![json!(null), json!(true), json!(false), json!(""), json!(0), json!(-1), json!("0"), json!("1"), json!([]), json!({})];
            if let Some(text) = line.pointer(&pointer).and_then(Json::as_str) {
                let (head, last) = text.split_at(text.len().saturating_sub(1));
                let other_last = if last == "1" { "2" } else { "1" };
                let other = [
                    format!("{text}0"),
                    format!("{text} "),
                    format!("{text}="),
                    format!("{head}{other_last}"),
                    head.to_owned(),
                    text.to_uppercase(),
                    text.to_lowercase(),
                ];
                others.extend(other.map(Json::from));
            }
            if let Some(number) = line.pointer(&pointer).and_then(Json::as_u64) {
                others.extend([json!(number + 1), json!(number.wrapping_sub(1)), json!(number.to_string())]);
            }
            for other in others {
                let mut changed = line.clone();
                let what = format!("{id} {pointer} = {other}");
                *changed.pointer_mut(&pointer).expect("a scalar") = other;
                faults.extend(account_for(&case, &base, &changed, &what).err());
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn spans_cover_every_byte() {
    for case in fixtures().expect("fixtures") {
        let value = json::parse(case.input.as_bytes()).expect("JSON");
        let root = Node::root(&value, "");
        let members = root.object().expect("an object");
        let need = |key: &'static str| members.need(key).expect(key).value();
        let documents = countersign_core::Documents {
            request: need("request"),
            response: need("response"),
            order: members.get("order").map(|node| node.value()),
        };
        let policy = Policy::default();
        let order = countersign_core::Order::open(documents, case.registry, &policy).expect("opens");
        let verified = Proposed::<Solana>::new(order).expect("is Solana's").verify().expect("verifies");
        let (covers, summary) = (verified.covers(), verified.summary());
        for span in &covers {
            assert!(summary.lines().iter().any(|line| line.topic == span.topic), "{}: no line for {span:?}", case.id);
        }
        let line = case.json();
        for pointer in PAYLOADS {
            let Some(text) = line.pointer(pointer).and_then(Json::as_str) else { continue };
            let len = if text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
                text.len() / 2
            } else {
                STANDARD.decode(text).expect("base64").len()
            };
            let mut end = 0;
            for (from, to) in covers.iter().filter(|span| span.at == pointer).filter_map(|span| span.bytes) {
                assert_eq!(from, end, "{}: {pointer}", case.id);
                end = to;
            }
            assert_eq!(end, len, "{}: {pointer}", case.id);
        }
    }
}

fn proposed(case: &Case, pointer: &str, text: &str) -> Json {
    let mut line = case.json();
    *line.pointer_mut(pointer).expect("a payload") = json!(text);
    line
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_bytes_make_the_library_panic(bytes in proptest::collection::vec(any::<u8>(), 0..1400), gasless in any::<bool>()) {
        let case = fixture("solana-token-legacy");
        let line = proposed(&case, PAYLOADS[usize::from(gasless)], &STANDARD.encode(bytes));
        prop_assert!(outcome(&case.with_input(line.to_string())).is_err());
    }

    #[test]
    fn no_text_makes_the_library_panic(text in any::<String>()) {
        let case = fixture("solana-token-legacy");
        let line = proposed(&case, PAYLOADS[0], &text);
        let refusal = outcome(&case.with_input(line.to_string())).expect_err("no transaction");
        prop_assert!(refusal.at().starts_with(PAYLOADS[0]), "{}", refusal);
    }

    #[test]
    fn spliced_transactions_are_accounted_for(
        at in any::<prop::sample::Index>(),
        cut in 0..40_usize,
        bytes in proptest::collection::vec(any::<u8>(), 0..40),
        gasless in any::<bool>(),
    ) {
        let case = fixture("solana-token-v0-sponsor-signed");
        let base = outcome(&case).expect("honest");
        let pointer = PAYLOADS[usize::from(gasless)];
        let mut transaction = payload(&case.json(), pointer).expect("a payload");
        let from = at.index(transaction.len());
        let to = (from + cut).min(transaction.len());
        transaction.splice(from..to, bytes);
        let line = proposed(&case, pointer, &STANDARD.encode(transaction));
        prop_assert_eq!(account_for(&case, &base, &line, "spliced"), Ok(()));
    }

    #[test]
    fn no_wallet_makes_the_library_panic(member in 0..3_usize, text in any::<String>(), number in any::<i64>(), which in any::<bool>()) {
        let case = fixture("solana-native-heights");
        let mut line = case.json();
        let value = if which { json!(text) } else { json!(number) };
        line["wallet"][["recent_blockhash", "last_valid_block_height", "block_height"][member]] = value;
        if let Err(refusal) = outcome(&case.with_input(line.to_string())) {
            prop_assert!(refusal.at().starts_with("/wallet"), "{}", refusal);
        }
    }
}
