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

use alloy_primitives::{B256, Bytes, U256, hex};
use countersign_core::json::{self, Node};
use countersign_core::{Code, Policy, Proposed};
use countersign_tron::htlc::{Approve, Initiate};
use countersign_tron::transaction::protocol::{Raw, TriggerSmartContract};
use countersign_tron::{Address, Tron, message};
use proptest::prelude::*;
use prost::Message as _;
use serde_json::{Value as Json, json};
use support::{Case, fixture, fixtures, outcome, with_unsigned};

/// What a person sees, without the digests: those show every change, but nobody can read them.
fn seen(outcome: &Json) -> (Vec<&str>, &Json) {
    let lines = outcome["summary"].as_array().into_iter().flatten().filter_map(Json::as_str);
    (lines.filter(|line| !line.starts_with("to sign:")).collect(), &outcome["warnings"])
}

/// A changed response is refused, is seen to be another, or gives the same artefacts.
fn account_for(case: &Case, base: &Json, changed: Json, what: &str) -> Result<(), String> {
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

const EVERY_KIND: [&str; 5] =
    ["tron-token-approval-unlimited", "tron-destination-data-longer", "tron-native-typed-data", "tron-record-testnets", "tron-without-key"];

#[test]
fn every_byte_of_calldata_is_accounted_for() {
    let mut faults = Vec::new();
    for id in EVERY_KIND {
        let case = fixture(id);
        let base = outcome(&case).expect(id);
        for payload in ["approval_transaction", "initiate_transaction"] {
            let pointer = format!("/response/result/{payload}/data");
            let mut line = case.json();
            let Some(data) = line.pointer(&pointer).and_then(Json::as_str).map(|text| hex::decode(text).expect("hex")) else { continue };
            for index in 0..data.len() {
                for flip in [0x01, 0x80, 0xff] {
                    let mut data = data.clone();
                    data[index] ^= flip;
                    *line.pointer_mut(&pointer).expect("data") = json!(hex::encode_prefixed(data));
                    faults.extend(account_for(&case, &base, line.clone(), &format!("{id} {payload} byte {index} ^ {flip:02x}")).err());
                }
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
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
                vec![json!(null), json!(true), json!(""), json!(0), json!(-1), json!(1), json!("0"), json!("1"), json!([]), json!({})];
            if let Some(text) = line.pointer(&pointer).and_then(Json::as_str) {
                let (head, last) = text.split_at(text.len().saturating_sub(1));
                let other_last = if last == "1" { "2" } else { "1" };
                others.extend(
                    [format!("{text}0"), format!("{text} "), format!("{head}{other_last}"), head.to_owned(), text.to_uppercase()]
                        .map(Json::from),
                );
            }
            if let Some(number) = line.pointer(&pointer).and_then(Json::as_u64) {
                others.extend([json!(number + 1), json!(number.wrapping_sub(1)), json!(number.to_string())]);
            }
            for other in others {
                let mut changed = line.clone();
                let what = format!("{id} {pointer} = {other}");
                *changed.pointer_mut(&pointer).expect("a scalar") = other;
                faults.extend(account_for(&case, &base, changed, &what).err());
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn every_member_of_a_response_is_needed_or_without_effect() {
    let mut faults = Vec::new();
    for id in EVERY_KIND {
        let case = fixture(id);
        let base = outcome(&case).expect(id);
        let line = case.json();
        let mut pointers = Vec::new();
        scalars(&line["response"]["result"], "/response/result", &mut pointers);
        let parents: std::collections::BTreeSet<_> =
            pointers.iter().flat_map(|at| at.match_indices('/').skip(3).map(|(end, _)| at[..end].to_owned()).chain([at.clone()])).collect();
        for pointer in parents {
            let (parent, key) = pointer.rsplit_once('/').expect("below the root");
            let mut changed = line.clone();
            match changed.pointer_mut(parent).expect("a parent") {
                Json::Object(members) => drop(members.remove(key)),
                Json::Array(items) => drop(items.remove(key.parse::<usize>().expect("an index"))),
                _ => panic!("no container"),
            }
            faults.extend(account_for(&case, &base, changed, &format!("{id} without {pointer}")).err());
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn spans_cover_every_byte_and_every_scalar() {
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
        let verified = Proposed::<Tron>::new(order).expect("is Tron's").verify().expect("verifies");
        let (covers, summary) = (verified.covers(), verified.summary());
        for span in &covers {
            assert!(summary.lines().iter().any(|line| line.topic == span.topic), "{}: no line for {span:?}", case.id);
        }

        let line = case.json();
        let result = &line["response"]["result"];
        let mut pointers = Vec::new();
        for key in ["approval_transaction", "initiate_transaction", "typed_data", "order_id"] {
            if !result[key].is_null() {
                scalars(&result[key], &format!("/response/result/{key}"), &mut pointers);
            }
        }
        for pointer in pointers {
            if !pointer.ends_with("transaction/data") {
                let covered =
                    covers.iter().any(|span| span.bytes.is_none() && (pointer == span.at || pointer.starts_with(&format!("{}/", span.at))));
                assert!(covered, "{}: {pointer}", case.id);
                continue;
            }
            let data = line.pointer(&pointer).and_then(Json::as_str).expect("calldata");
            let mut end = 0;
            for (from, to) in covers.iter().filter(|span| span.at == pointer).filter_map(|span| span.bytes) {
                assert_eq!(from, end, "{}: {pointer}", case.id);
                end = to;
            }
            assert_eq!(end, (data.len() - 2) / 2, "{}: {pointer}", case.id);
        }
    }
}

/// Terms that any honest service could answer with.
#[derive(Debug, Clone)]
struct Terms {
    amount: U256,
    timelock: u64,
    secret_hash: B256,
    data: Vec<u8>,
    fee_limit: u64,
    unlimited: bool,
}

fn terms() -> impl Strategy<Value = Terms> {
    let amount = prop_oneof![any::<u64>().prop_map(U256::from), any::<[u8; 32]>().prop_map(U256::from_be_bytes)];
    let amount = amount.prop_map(|amount| amount.max(U256::ONE));
    let data = proptest::collection::vec(any::<u8>(), 0..=1024);
    (amount, 1..=172_800_u64, any::<[u8; 32]>(), data, 1..=15_000_000_000_u64, any::<bool>()).prop_map(
        |(amount, timelock, secret_hash, data, fee_limit, unlimited)| Terms {
            amount,
            timelock,
            secret_hash: secret_hash.into(),
            data,
            fee_limit,
            unlimited,
        },
    )
}

fn address(value: &Json) -> Address {
    Address::parse_any(value.as_str().expect("an address")).expect("an address")
}

/// An honest answer to a request for these terms.
fn honest(terms: &Terms) -> (Case, Initiate) {
    let case = fixture("tron-token-approval-unlimited");
    let mut line = case.json();
    let result = line["response"]["result"].clone();
    let call = Initiate {
        initiator: None,
        redeemer: address(&result["typed_data"]["message"]["redeemer"]).bytes(),
        timelock: U256::from(terms.timelock),
        amount: terms.amount,
        secret_hash: terms.secret_hash,
        destination_data: Some(Bytes::copy_from_slice(&terms.data)),
    };
    let htlc = address(&result["initiate_transaction"]["to"]).bytes();
    let approve = Approve { spender: htlc, amount: if terms.unlimited { U256::MAX } else { terms.amount } };
    line["request"]["source"]["amount"] = json!(terms.amount.to_string());
    line["request"]["secret_hash"] = json!(terms.secret_hash.to_string());
    let result = &mut line["response"]["result"];
    result["approval_transaction"]["data"] = json!(hex::encode_prefixed(approve.encode()));
    result["initiate_transaction"]["data"] = json!(hex::encode_prefixed(call.encode()));
    result["initiate_transaction"]["gas_limit"] = json!(terms.fee_limit.to_string());
    let message = &mut result["typed_data"]["message"];
    message["timelock"] = json!(terms.timelock);
    message["amount"] = json!(format!("{:#x}", terms.amount));
    message["secretHash"] = json!(terms.secret_hash.to_string());
    message["destinationData"] = json!(hex::encode_prefixed(&terms.data));
    let input = line.to_string();
    (case.with_input(input), call)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn honest_terms_come_out_as_they_went_in(terms in terms()) {
        let (case, call) = honest(&terms);
        let (raw, hashes) = with_unsigned(&case, &Policy::default(), |unsigned, _| {
            let payloads = unsigned.payloads();
            Ok((payloads.initiate.raw_data.clone(), payloads.typed_data.as_ref().map(|message| message.hashes)))
        }).map_err(|refusal| TestCaseError::fail(refusal.to_string()))?;
        let raw = Raw::decode(raw.as_slice()).expect("a transaction");
        let parameter = raw.contract[0].parameter.as_ref().expect("a call");
        let trigger = TriggerSmartContract::decode(parameter.value.as_slice()).expect("a call");
        prop_assert_eq!(trigger.data, call.encode());
        prop_assert_eq!(u64::try_from(raw.fee_limit), Ok(terms.fee_limit));
        prop_assert_eq!(trigger.call_value, 0);
        prop_assert!(hashes.is_some());
    }

    #[test]
    fn a_changed_byte_of_honest_calldata_is_accounted_for(terms in terms(), at in any::<prop::sample::Index>(), flip in 1..=u8::MAX) {
        let (case, call) = honest(&terms);
        let base = outcome(&case).expect("honest");
        let mut data = call.encode();
        let at = at.index(data.len());
        data[at] ^= flip;
        let mut line = case.json();
        line["response"]["result"]["initiate_transaction"]["data"] = json!(hex::encode_prefixed(data));
        prop_assert_eq!(account_for(&case, &base, line, &format!("byte {at}")), Ok(()));
    }

    #[test]
    fn addresses_read_back(bytes in any::<[u8; 20]>()) {
        let address = Address::from(bytes);
        let digits = hex::encode(address.prefixed());
        for form in [address.to_string(), digits.clone(), format!("0x{digits}"), address.bytes().to_string(), format!("{:#x}", address.bytes())] {
            prop_assert_eq!(Address::parse_any(&form), Ok(address));
        }
        prop_assert_eq!(Address::parse(&address.to_string()), Ok(address));
    }

    #[test]
    fn a_changed_character_of_an_address_is_no_address(bytes in any::<[u8; 20]>(), at in 0..34_usize, other in "[1-9A-HJ-NP-Za-km-z]") {
        let text = Address::from(bytes).to_string();
        let mut changed = text.clone();
        changed.replace_range(at..=at, &other);
        prop_assert!(changed == text || Address::parse_any(&changed).is_err());
    }

    #[test]
    fn no_text_makes_an_address_panic(text in any::<String>()) {
        prop_assert!(Address::parse_any(&text).is_err() || text.len() >= 34);
    }

    #[test]
    fn no_typed_data_makes_the_hasher_panic(kind in "(address|bool|string|bytes|trcToken|M|u?int[0-9]{0,3}|bytes[0-9]{0,2})(\\[[0-9]?\\]){0,3}", value in values()) {
        let typed_data = json!({ "types": { "M": [{ "name": "x", "type": kind }] }, "domain": {}, "primaryType": "M", "message": { "x": value } });
        let text = typed_data.to_string();
        let value = json::parse(text.as_bytes()).expect("JSON");
        let _ = message::hash(Node::root(&value, ""));
    }

    #[test]
    fn no_wallet_makes_the_library_panic(member in 0..4_usize, value in values()) {
        let case = fixture("tron-token-approval-exact");
        let mut line = case.json();
        line["wallet"][["ref_block_bytes", "ref_block_hash", "expiration", "timestamp"][member]] = value;
        if let Err(refusal) = outcome(&case.with_input(line.to_string())) {
            prop_assert!(refusal.at().starts_with("/wallet"), "{}", refusal);
        }
    }
}

fn values() -> impl Strategy<Value = Json> {
    let leaf = prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::from),
        any::<i64>().prop_map(Json::from),
        any::<u64>().prop_map(Json::from),
        any::<String>().prop_map(Json::from),
        "-?[0-9]{1,80}".prop_map(Json::from),
        "0x[0-9a-f]{0,70}".prop_map(Json::from),
        "T[1-9A-Za-z]{33}".prop_map(Json::from),
    ];
    leaf.prop_recursive(4, 32, 4, |inner| {
        prop_oneof![proptest::collection::vec(inner.clone(), 0..4).prop_map(Json::from), inner.prop_map(|value| json!({ "x": value })),]
    })
}
