//! Signatures from outside: as hex, as `<signature>:<public key>`, as a signed PSBT; proven, and refused where they are not
//! those of the request. The good ones are bitcoinjs-lib's, from the fixtures' signed PSBTs.

#![allow(
    clippy::arithmetic_side_effects,
    clippy::as_conversions,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a panic in a test is a failed test"
)]

mod support;

use std::str::FromStr;

use bitcoin::hashes::{Hash, sha256d};
use bitcoin::psbt::Psbt;
use bitcoin::{ScriptBuf, TapSighash};
use countersign_bitcoin::Bitcoin;
use countersign_core::json::{self, Node};
use countersign_core::{ChainFamily, Code, Policy, Refusal};
use serde_json::{Value as Json, json};
use support::{Case, fixture, with_unsigned};

fn deposit(case: &Case) -> Json {
    case.whole().expect("JSON")["expect"]["artefacts"]["deposit"].clone()
}

fn signed_psbt(case: &Case) -> Psbt {
    Psbt::from_str(deposit(case)["signed_psbt"].as_str().expect("a PSBT")).expect("a PSBT")
}

/// The signatures of a signed PSBT, each as a signer outside would hand it in.
fn outside(psbt: &Psbt) -> Vec<(String, String)> {
    let one = |input: &bitcoin::psbt::Input| match (input.tap_key_sig, input.partial_sigs.iter().next()) {
        (Some(signature), _) => hex::encode(signature.to_vec()),
        (None, Some((public_key, signature))) => format!("{}:{}", hex::encode(signature.to_vec()), hex::encode(public_key.to_bytes())),
        _ => panic!("no signature"),
    };
    psbt.inputs.iter().enumerate().map(|(index, input)| (format!("input_{index}"), one(input))).collect()
}

fn attach(case: &Case, given: &[(String, String)]) -> Result<Json, Refusal> {
    let texts: Vec<_> = given.iter().map(|(name, text)| (name.clone(), json!(text).to_string())).collect();
    with_unsigned(case, &Policy::default(), |unsigned, _| {
        let mut signatures = Vec::new();
        for (name, text) in &texts {
            let value = json::parse(text.as_bytes())?;
            signatures.push((name.clone(), Bitcoin::read_signature(Node::root(&value, &format!("/signatures/{name}")))?));
        }
        unsigned.attach(signatures).map(|signed| serde_json::to_value(signed.artefacts()).expect("JSON"))
    })
}

const CASES: [&str; 6] =
    ["bitcoin-p2wpkh", "bitcoin-p2tr", "bitcoin-p2sh", "bitcoin-p2pkh", "bitcoin-every-kind", "bitcoin-every-kind-litecoin"];

#[test]
fn signatures_of_another_library_complete_the_transaction() {
    for id in CASES {
        let case = fixture(id);
        let (expected, psbt) = (deposit(&case), signed_psbt(&case));
        let by_input = attach(&case, &outside(&psbt)).expect(id);
        assert_eq!(by_input["deposit"], expected, "{id}");
        let whole = attach(&case, &[("psbt".to_owned(), psbt.to_string())]).expect(id);
        assert_eq!(whole["deposit"], expected, "{id}");
    }
}

/// Hardware signers often finalise: then the signatures stand in the final scripts.
#[test]
fn a_finalised_psbt_is_read_too() {
    for id in CASES {
        let case = fixture(id);
        let (expected, mut psbt) = (deposit(&case), signed_psbt(&case));
        let transaction: bitcoin::Transaction =
            bitcoin::consensus::encode::deserialize_hex(expected["signed"].as_str().expect("hex")).expect("a transaction");
        for (known, input) in psbt.inputs.iter_mut().zip(&transaction.input) {
            known.partial_sigs.clear();
            known.tap_key_sig = None;
            known.final_script_sig = (!input.script_sig.is_empty()).then(|| input.script_sig.clone());
            known.final_script_witness = (!input.witness.is_empty()).then(|| input.witness.clone());
        }
        let whole = attach(&case, &[("psbt".to_owned(), psbt.to_string())]).expect(id);
        assert_eq!(whole["deposit"]["signed"], expected["signed"], "{id}");
    }
}

#[test]
fn inputs_without_a_signature_stay_unsigned() {
    let case = fixture("bitcoin-every-kind");
    let mut given = outside(&signed_psbt(&case));
    given.pop();
    let partly = attach(&case, &given).expect("valid signatures");
    assert_eq!(partly["deposit"].get("signed"), None);
    assert_eq!(partly["deposit"]["tx_id"], Json::Null);
    let psbt = Psbt::from_str(partly["deposit"]["signed_psbt"].as_str().expect("a PSBT")).expect("a PSBT");
    assert_eq!(psbt.inputs.iter().filter(|input| input.tap_key_sig.is_none() && input.partial_sigs.is_empty()).count(), 1);
}

#[test]
fn the_payload_is_what_the_digest_is_taken_of() {
    let case = fixture("bitcoin-every-kind");
    with_unsigned(&case, &Policy::default(), |unsigned, _| {
        let requests = unsigned.requests();
        assert_eq!(requests.len(), 5);
        let payment = unsigned.payloads().payment.as_ref().expect("coins");
        for (index, request) in requests.iter().enumerate() {
            assert_eq!(request.name, format!("input_{index}"));
            let taproot = payment.psbt.inputs[index].witness_utxo.as_ref().is_some_and(|output| output.script_pubkey.is_p2tr());
            let digest = match taproot {
                true => TapSighash::hash(&request.payload.0).to_byte_array(),
                false => sha256d::Hash::hash(&request.payload.0).to_byte_array(),
            };
            assert_eq!(request.digest.0, digest, "{index}");
        }
        Ok(())
    })
    .expect("a good case");
}

fn code(case: &Case, given: &[(String, String)]) -> (Code, String) {
    let refusal = attach(case, given).expect_err("a bad signature");
    (refusal.code(), refusal.location().to_owned())
}

#[test]
fn a_flipped_bit_is_no_signature() {
    for id in ["bitcoin-p2wpkh", "bitcoin-p2tr", "bitcoin-p2sh", "bitcoin-p2pkh"] {
        let case = fixture(id);
        let psbt = signed_psbt(&case);
        let (name, text) = outside(&psbt).swap_remove(0);
        let (signature, key) = text.split_once(':').map_or((text.as_str(), ""), |(signature, key)| (signature, key));
        let good = support::bytes(signature);
        for index in 0..good.len() {
            let mut bad = good.clone();
            bad[index] ^= 1;
            let colon = if key.is_empty() { "" } else { ":" };
            let (code, at) = code(&case, &[(name.clone(), format!("{}{colon}{key}", hex::encode(bad)))]);
            assert!(matches!(code, Code::SignatureMismatch | Code::SignatureMalformed | Code::SignatureHighS), "{id} {index}: {code}");
            assert_eq!(at, "/signatures/input_0");
        }
    }
}

#[test]
fn signatures_that_are_not_the_requested_ones_are_refused() {
    let case = fixture("bitcoin-every-kind");
    let good = outside(&signed_psbt(&case));
    let schnorr = good.iter().position(|(_, text)| text.len() == 128).expect("a taproot input");
    let ecdsa = good.iter().position(|(_, text)| text.contains(':')).expect("another input");
    let under = |name: usize, text: &str| vec![(format!("input_{name}"), text.to_owned())];
    let mismatch = |got: (Code, String)| assert_eq!(got.0, Code::SignatureMismatch, "{}", got.1);
    // Another input's signature, of either kind.
    let others: Vec<_> = (0..good.len()).filter(|index| good[*index].1.len() == 128 && *index != schnorr).collect();
    mismatch(code(&case, &under(schnorr, &good[others[0]].1)));
    let others: Vec<_> = (0..good.len()).filter(|index| good[*index].1.contains(':') && *index != ecdsa).collect();
    mismatch(code(&case, &under(ecdsa, &good[others[0]].1)));
    // The wrong kind, another length, no text at all.
    for text in [&good[ecdsa].1, "", "00", &format!("{}83", good[schnorr].1), &good[schnorr].1[..126]] {
        assert_eq!(code(&case, &under(schnorr, text)).0, Code::SignatureMalformed, "{text}");
    }
    assert_eq!(code(&case, &under(ecdsa, &good[schnorr].1)).0, Code::SignatureMalformed);
    // An input that is not there.
    assert_eq!(code(&case, &under(5, &good[schnorr].1)), (Code::NothingToSign, "/signatures/input_5".to_owned()));
    assert_eq!(code(&case, &[("initiate".to_owned(), good[schnorr].1.clone())]).0, Code::NothingToSign);
}

#[test]
fn s_is_in_the_lower_half() {
    let case = fixture("bitcoin-p2wpkh");
    let (name, text) = outside(&signed_psbt(&case)).swap_remove(0);
    let (signature, key) = text.split_once(':').expect("ECDSA");
    let parsed = bitcoin::ecdsa::Signature::from_slice(&support::bytes(signature)).expect("DER");
    let mut compact = parsed.signature.serialize_compact();
    let s = bitcoin::secp256k1::SecretKey::from_slice(&compact[32..]).expect("a scalar").negate();
    compact[32..].copy_from_slice(&s.secret_bytes());
    let high = bitcoin::secp256k1::ecdsa::Signature::from_compact(&compact).expect("a signature");
    let text = format!("{}:{key}", hex::encode(high.serialize_der()));
    assert_eq!(code(&case, &[(name, text)]), (Code::SignatureHighS, "/signatures/input_0".to_owned()));
}

#[test]
fn a_psbt_of_another_transaction_is_refused() {
    let case = fixture("bitcoin-p2wpkh");
    let mut psbt = signed_psbt(&case);
    psbt.unsigned_tx.output[0].script_pubkey = ScriptBuf::from_bytes(vec![0x51]);
    assert_eq!(code(&case, &[("psbt".to_owned(), psbt.to_string())]), (Code::PsbtMismatch, "/signatures/psbt".to_owned()));
    // Signed with a hash type that leaves the outputs open.
    let mut psbt = signed_psbt(&case);
    for signature in psbt.inputs[0].partial_sigs.values_mut() {
        signature.sighash_type = bitcoin::EcdsaSighashType::None;
    }
    assert_eq!(code(&case, &[("psbt".to_owned(), psbt.to_string())]).0, Code::SignatureMismatch);
}

#[test]
fn without_coins_there_is_nothing_to_sign() {
    let case = fixture("bitcoin-address");
    assert_eq!(code(&case, &[("input_0".to_owned(), "00".repeat(64))]).0, Code::NothingToSign);
}
