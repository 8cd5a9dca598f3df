//! What a signer is asked for, what it may answer, and what goes to nodes and to the service.

#![allow(
    clippy::arithmetic_side_effects,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a panic in a test is a failed test"
)]

mod support;

use alloy_primitives::{B256, hex};
use countersign_core::json::{self, Node};
use countersign_core::{ChainFamily, Code, Policy, Refusal, Signed};
use countersign_tron::transaction::protocol::Transaction;
use countersign_tron::{Key, ExternalSignature, Tron};
use k256_free::{flip_s, with_v};
use serde_json::{Value as Json, json};
use support::{Case, TestResult, fixture, with_unsigned};

const CASE: &str = "tron-token-approval-exact";

/// Signatures are bytes; these changes need no curve.
mod k256_free {
    use alloy_primitives::{U256, uint};

    const ORDER: U256 = uint!(0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141_U256);

    /// The same signature with s in the other half.
    pub(crate) fn flip_s(signature: &[u8]) -> Vec<u8> {
        let s = U256::from_be_slice(&signature[32..64]);
        [&signature[..32], &(ORDER - s).to_be_bytes::<32>()[..], &[signature[64] ^ 7]].concat()
    }

    pub(crate) fn with_v(signature: &[u8], v: u8) -> Vec<u8> {
        [&signature[..64], &[v]].concat()
    }
}

fn key_of(case: &Case) -> Key {
    Tron::read_key(case.json()["wallet"]["secret_key"].as_str().expect("a key")).expect("a key")
}

fn read(signature: &Json) -> Result<ExternalSignature, Refusal> {
    let text = signature.to_string();
    Tron::read_signature(Node::root(&json::parse(text.as_bytes())?, "/signatures/x"))
}

fn attach(case: &Case, given: &[(&str, Json)]) -> Result<Signed<Tron>, Refusal> {
    with_unsigned(case, &Policy::default(), |unsigned, _| {
        let given = given.iter().map(|(name, text)| Ok(((*name).to_owned(), read(text)?))).collect::<Result<_, Refusal>>()?;
        unsigned.attach(given)
    })
}

/// The signatures that the fixture expects, by request, as bytes.
fn expected(case: &Case) -> [(&'static str, Vec<u8>); 3] {
    ["approval", "initiate", "typed_data"].map(|name| {
        let text = case.whole().expect("JSON")["expect"]["artefacts"][name]["signature"].as_str().expect("a signature").to_owned();
        (name, hex::decode(text).expect("hex"))
    })
}

#[test]
fn requests_name_owner_payload_and_digest() -> TestResult {
    let case = fixture(CASE);
    let requests = with_unsigned(&case, &Policy::default(), |unsigned, _| Ok(unsigned.requests()))?;
    let whole = case.whole()?;
    let artefacts = &whole["expect"]["artefacts"];
    let requests = serde_json::to_value(requests)?;
    for (index, name) in ["approval", "initiate"].iter().enumerate() {
        assert_eq!(requests[index]["name"], *name);
        assert_eq!(requests[index]["signer"], whole["request"]["source"]["owner"]);
        assert_eq!(requests[index]["payload"], format!("0x{}", artefacts[name]["raw_data"].as_str().ok_or("no bytes")?));
        assert_eq!(requests[index]["digest"], format!("0x{}", artefacts[name]["tx_id"].as_str().ok_or("no id")?));
    }
    assert_eq!(requests[2]["digest"], artefacts["typed_data"]["digest"]);
    assert_eq!(requests[2]["payload"].as_str().map(|text| (text.len(), text.starts_with("0x1901"))), Some((134, true)));
    Ok(())
}

#[test]
fn takes_every_v_and_gives_27_or_28() -> TestResult {
    let case = fixture(CASE);
    let wanted = case.whole()?["expect"]["artefacts"].clone();
    let signatures = expected(&case);
    for spell in [|bytes: &[u8]| bytes.to_vec(), |bytes: &[u8]| with_v(bytes, bytes[64] - 27)] {
        for prefix in ["", "0x"] {
            let given = signatures.iter().map(|(name, bytes)| (*name, json!(format!("{prefix}{}", hex::encode(spell(bytes))))));
            let signed = attach(&case, &given.collect::<Vec<_>>())?;
            assert_eq!(serde_json::to_value(signed.artefacts())?, wanted);
        }
    }
    Ok(())
}

#[test]
fn what_is_not_signed_stays_unsigned() -> TestResult {
    let case = fixture(CASE);
    let [.., (_, bytes)] = expected(&case);
    let signed = attach(&case, &[("typed_data", json!(hex::encode(&bytes)))])?;
    let artefacts = signed.artefacts();
    assert!(artefacts.initiate.signature.is_none() && artefacts.initiate.broadcast_bytes().is_none());
    assert!(artefacts.initiate.broadcast_json().is_none());
    let submission = serde_json::to_value(artefacts.submission())?;
    assert_eq!(submission, json!({ "signature": format!("0x{}", hex::encode(bytes)) }));
    Ok(())
}

#[test]
fn refuses_signatures_that_prove_nothing() {
    let case = fixture(CASE);
    let [(_, approval), (_, initiate), (_, typed)] = expected(&case);
    let other = expected(&fixture("tron-token-approval-above-amount"));
    let hex = |bytes: &[u8]| json!(hex::encode(bytes));
    for (name, signature, code) in [
        ("initiate", hex(&approval), Code::SignatureMismatch),
        ("approval", hex(&initiate), Code::SignatureMismatch),
        ("typed_data", hex(&initiate), Code::SignatureMismatch),
        ("typed_data", hex(&other[2].1), Code::SignatureMismatch),
        ("typed_data", hex(&with_v(&typed, typed[64] ^ 7)), Code::SignatureMismatch),
        ("typed_data", hex(&with_v(&typed, 29)), Code::SignatureMalformed),
        ("typed_data", hex(&flip_s(&typed)), Code::SignatureHighS),
        ("typed_data", hex(&typed[..63]), Code::SignatureMalformed),
        ("typed_data", json!({ "contract": "0x01" }), Code::SignatureMalformed),
        ("initiate", json!({ "contract": "0x01" }), Code::SignatureMalformed),
        ("approval_reset", hex(&approval), Code::NothingToSign),
    ] {
        let refusal = attach(&case, &[(name, signature)]).expect_err(name);
        assert_eq!(refusal.code(), code, "{name}: {refusal}");
    }
    let bit_flips = (0..65 * 8).map(|bit| {
        let mut bytes = typed.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        bytes
    });
    for bytes in bit_flips {
        assert!(attach(&case, &[("typed_data", hex(&bytes))]).is_err());
    }
}

fn signed(case: &Case) -> Signed<Tron> {
    with_unsigned(case, &Policy::default(), |unsigned, _| unsigned.sign(&key_of(case))).expect("signs")
}

#[test]
fn nodes_take_the_bytes_and_the_json() -> TestResult {
    use prost::Message as _;
    let case = fixture("tron-native-typed-data");
    let whole = case.whole()?;
    let expected = &whole["expect"]["artefacts"]["initiate"];
    let signed = signed(&case);
    let call = &signed.artefacts().initiate;

    let bytes = call.broadcast_bytes().ok_or("not signed")?;
    let transaction = Transaction::decode(bytes.as_slice())?;
    assert_eq!(transaction.raw_data.as_ref().map(|raw| hex::encode(raw.encode_to_vec())), expected["raw_data"].as_str().map(str::to_owned));
    assert_eq!(transaction.signature.iter().map(hex::encode).collect::<Vec<_>>(), [expected["signature"].as_str().ok_or("none")?]);

    let json: Json = serde_json::from_str(&call.broadcast_json().ok_or("not signed")?)?;
    let wallet = &whole["wallet"];
    let owner =
        countersign_tron::Address::parse(whole["request"]["source"]["owner"].as_str().ok_or("no owner")?).map_err(|code| code.name())?;
    let to = &whole["response"]["result"]["initiate_transaction"];
    let htlc = countersign_tron::Address::parse(to["to"].as_str().ok_or("no contract")?).map_err(|code| code.name())?;
    assert_eq!(
        json,
        json!({
            "visible": false,
            "txID": expected["tx_id"],
            "raw_data": {
                "contract": [{
                    "parameter": {
                        "value": {
                            "owner_address": hex::encode(owner.prefixed()),
                            "contract_address": hex::encode(htlc.prefixed()),
                            "call_value": 4_321_000_000_u64,
                            "data": to["data"].as_str().and_then(|data| data.strip_prefix("0x")),
                        },
                        "type_url": "type.googleapis.com/protocol.TriggerSmartContract",
                    },
                    "type": "TriggerSmartContract",
                }],
                "ref_block_bytes": wallet["ref_block_bytes"],
                "ref_block_hash": wallet["ref_block_hash"],
                "expiration": wallet["expiration"],
                "fee_limit": 300_000_000,
                "timestamp": wallet["timestamp"],
            },
            "raw_data_hex": expected["raw_data"],
            "signature": [expected["signature"]],
        })
    );
    Ok(())
}

#[test]
fn a_wallet_may_reset_the_allowance_first() -> TestResult {
    let case = fixture(CASE).replaced("\"wallet\":{", "\"wallet\":{\"reset_approval\":true,");
    let signed = signed(&case);
    let reset = signed.artefacts().approval_reset.as_ref().ok_or("no reset")?;
    let spent = &reset.payload.trigger.data;
    let approved = &signed.artefacts().approval.as_ref().ok_or("no approval")?.payload.trigger.data;
    assert_eq!((&spent[..36], &spent[36..]), (&approved[..36], &[0; 32][..]));
    assert!(reset.broadcast_bytes().is_some());
    Ok(())
}

#[test]
fn a_policy_rewrites_unlimited_approvals() -> TestResult {
    let case = fixture("tron-token-approval-unlimited");
    let policy = Policy::from_json(br#"{"approvals":"exact"}"#)?;
    let (data, summary, warnings) = with_unsigned(&case, &policy, |unsigned, _| {
        let approval = unsigned.payloads().steps.approval.as_ref().map(|payload| payload.trigger.data.clone());
        Ok((approval, serde_json::to_string(&unsigned.summary()), unsigned.warnings().list().len()))
    })?;
    assert_eq!(B256::from_slice(&data.ok_or("no approval")?[36..]), B256::left_padding_from(&1_750_000_000_u64.to_be_bytes()));
    assert!(summary?.contains("rewritten from every token"));
    assert_eq!(warnings, 1, "only that there is no record");
    let strict = Policy::from_json(br#"{"approvals":"refuse_inexact"}"#)?;
    let refusal = support::outcome_under(&case, case.registry, &strict).expect_err("not exact");
    assert_eq!((refusal.code(), refusal.location()), (Code::ApprovalNotExact, "/response/result/approval_transaction/data#36-68"));
    Ok(())
}

#[test]
fn neither_key_nor_secret_is_ever_printed() {
    let case = fixture(CASE);
    let secret = case.json()["wallet"]["secret_key"].as_str().expect("a key").to_owned();
    let shown = format!("{:?} {:?}", key_of(&case), signed(&case));
    assert!(!shown.contains(&secret));
    let malformed = Tron::read_key(&secret[1..]).expect_err("63 digits");
    assert_eq!(malformed, Code::KeyMalformed);
}
