//! The 1,025 TIP-712 cases that TronWeb publishes (`test/testcases/eip712.json.gz`), and the orders' own typed data.

use std::borrow::Cow;

use alloy_dyn_abi::eip712::TypedData;
use alloy_primitives::{B256, keccak256};
use countersign_core::json::{self, Cursor, Value};
use countersign_core::{Policy, Refusal};
use countersign_testkit::{Beside, Case, TestResult, beside, fixtures, shared, skipped, with_unsigned};
use countersign_tron::Tron;
use countersign_tron::message::{self, Hashes};
use serde_json::{Value as Json, json};

/// Published cases that the hasher refuses, each with the reason: none.
const REFUSED: [(&str, &str); 0] = [];

fn hash(text: &str) -> Result<Hashes, Refusal> {
    message::hash(Cursor::root(&json::parse(text.as_bytes())?, ""))
}

fn digest(of: &Json) -> Result<B256, Box<dyn std::error::Error>> {
    Ok(of.as_str().ok_or("no text")?.parse()?)
}

#[test]
fn published_vectors_hash_alike() -> TestResult {
    let text = match shared("public-vectors/tip712-tronweb.json") {
        Ok(text) => text,
        Err(reason) => return skipped(&reason),
    };
    let cases: Vec<Json> = serde_json::from_slice(&text)?;
    assert_eq!(cases.len(), 1_025);
    let mut refused = Vec::new();
    for case in &cases {
        let name = case["name"].as_str().ok_or("no name")?;
        let typed_data =
            json!({ "types": case["types"], "domain": case["domain"], "primaryType": case["primaryType"], "message": case["data"] });
        match hash(&typed_data.to_string()) {
            Ok(hashes) => {
                assert_eq!(hashes.digest, digest(&case["digest"])?, "{name}");
                // `encoded` is the type hash and the members' words.
                let encoded = case["encoded"].as_str().ok_or("no encoding")?;
                assert_eq!(hashes.struct_hash, keccak256(alloy_primitives::hex::decode(encoded)?), "{name}");
                let alloy: TypedData = serde_json::from_value(typed_data)?;
                assert_eq!(hashes.domain_separator, alloy.domain.separator(), "{name}");
                assert_eq!(hashes.digest, alloy.eip712_signing_hash()?, "{name}");
            }
            Err(refusal) => refused.push((name, refusal.to_string())),
        }
    }
    let expected: Vec<_> = REFUSED.iter().map(|(name, why)| (*name, (*why).to_owned())).collect();
    assert_eq!(refused, expected);
    Ok(())
}

/// Returns the typed data that the wallet signs: that of the response, without the domain's type and destination data.
fn signed_part(typed_data: &Value<'_>) -> Value<'static> {
    fn copy(value: &Value<'_>, path: &str) -> Value<'static> {
        let dropped = |path: &str| matches!(path, "/types/EIP712Domain" | "/message/destinationData");
        match value {
            Value::Null => Value::Null,
            Value::Bool(value) => Value::Bool(*value),
            // A test may leak.
            Value::Number(text) => Value::Number(String::leak((*text).to_owned())),
            Value::String(text) => Value::String(Cow::Owned(text.clone().into_owned())),
            Value::Array(items) => Value::Array(items.iter().filter(|item| !is_data_member(item)).map(|item| copy(item, path)).collect()),
            Value::Object(members) => {
                let inner = members.iter().map(|(key, value)| (key, value, format!("{path}/{key}")));
                let kept = inner.filter(|(.., path)| !dropped(path));
                Value::Object(kept.map(|(key, value, path)| (Cow::Owned(key.clone().into_owned()), copy(value, &path))).collect())
            }
            _ => panic!("JSON has no other values"),
        }
    }
    fn is_data_member(item: &Value<'_>) -> bool {
        matches!(item, Value::Object(members) if members.iter().any(|(_, value)| *value == Value::String("destinationData".into())))
    }
    copy(typed_data, "")
}

fn check_own(cases: &[Case]) -> TestResult {
    let mut hashed = 0;
    for case in cases {
        let message = with_unsigned::<Tron, _>(case, &Policy::default(), |unsigned, _| Ok(unsigned.payloads().message.clone()))?;
        let Some(message) = message else { continue };
        let wanted = message.hashes;
        // The JSON for TronWeb has the hash that is signed, and addresses in TronWeb's form.
        let json = message::to_json(&message.message);
        assert_eq!(hash(&json.to_string())?, wanted, "{}", case.id);
        assert!(json["types"].get("EIP712Domain").is_none() && json["message"].get("destinationData").is_none(), "{json}");
        for address in [&json["domain"]["verifyingContract"], &json["message"]["redeemer"]] {
            assert_eq!(address.as_str().map(|text| (text.len(), text.starts_with('T'))), Some((34, true)), "{}", case.id);
        }
        let value = json::parse(case.input.as_bytes())?;
        let root = Cursor::root(&value, "");
        let root = root.object()?;
        let response = root.need("response")?;
        let response = response.object()?;
        let result = response.need("result")?;
        let typed_data = signed_part(result.object()?.need("typed_data")?.value());
        assert_eq!(message::hash(Cursor::root(&typed_data, ""))?, wanted, "{}", case.id);
        hashed += 1;
    }
    assert!(hashed > 5, "{hashed}");
    Ok(())
}

#[test]
fn the_general_hash_of_an_order_is_the_digest_that_is_signed() -> TestResult {
    check_own(&fixtures::<Tron>()?)?;
    match beside("vectors/tron.jsonl")? {
        Beside::Cases(cases) => check_own(&cases),
        Beside::Absent(reason) => skipped(&reason),
    }
}
