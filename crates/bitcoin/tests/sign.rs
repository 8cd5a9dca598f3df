//! Signatures of external signers: as hex, as `<signature>:<public key>`, or as a signed PSBT. Each is proven, and refused if it is not
//! valid for its request. The valid ones are those of bitcoinjs-lib, from the signed PSBTs of the fixtures.

use std::str::FromStr;

use bitcoin::hashes::{Hash, sha256d};
use bitcoin::psbt::Psbt;
use bitcoin::{ScriptBuf, TapSighash};
use countersign_bitcoin::{Bitcoin, ExternalSignature, Key, TxContext, UnsignedOrder};
use countersign_core::{Code, Refusal, RequestId, Role, Scheme};
use countersign_testkit::{Case, artefacts, attach as attach_json, fixture, key, verified, wallet};
use serde_json::{Map, Value as Json};

pub(crate) fn deposit(case: &Case) -> Json {
    case.whole().expect("JSON")["expect"]["artefacts"]["deposit"].clone()
}

pub(crate) fn signed_psbt(case: &Case) -> Psbt {
    Psbt::from_str(deposit(case)["signed_psbt"].as_str().expect("a PSBT")).expect("a PSBT")
}

/// Returns the signatures of a signed PSBT, each as an external signer returns it.
fn external(psbt: &Psbt) -> Vec<(String, String)> {
    let one = |input: &bitcoin::psbt::Input| match (input.tap_key_sig, input.partial_sigs.iter().next()) {
        (Some(signature), _) => hex::encode(signature.to_vec()),
        (None, Some((public_key, signature))) => format!("{}:{}", hex::encode(signature.to_vec()), hex::encode(public_key.to_bytes())),
        _ => panic!("no signature"),
    };
    psbt.inputs.iter().enumerate().map(|(index, input)| (format!("input_{index}"), one(input))).collect()
}

pub(crate) fn prepared(case: &Case) -> UnsignedOrder {
    verified::<Bitcoin>(case).prepare(wallet::<Bitcoin>(case)).expect(&case.id)
}

fn attach(case: &Case, given: &[(String, String)]) -> Result<Json, Refusal> {
    let mut unsigned = prepared(case);
    let signatures: Map<_, _> = given.iter().map(|(name, text)| (name.clone(), Json::from(text.as_str()))).collect();
    attach_json(&mut unsigned, &signatures.into())?;
    Ok(artefacts(&unsigned))
}

pub(crate) const CASES: [&str; 6] =
    ["bitcoin-p2wpkh", "bitcoin-p2tr", "bitcoin-p2sh", "bitcoin-p2pkh", "bitcoin-every-kind", "bitcoin-every-kind-litecoin"];

#[test]
fn signatures_of_another_library_complete_the_transaction() {
    for id in CASES {
        let case = fixture::<Bitcoin>(id);
        let (expected, psbt) = (deposit(&case), signed_psbt(&case));
        let by_input = attach(&case, &external(&psbt)).expect(id);
        assert_eq!(by_input["deposit"], expected, "{id}");
        let whole = attach(&case, &[("psbt".to_owned(), psbt.to_string())]).expect(id);
        assert_eq!(whole["deposit"], expected, "{id}");
    }
}

/// Hardware signers often finalize PSBTs, so that the signatures are in the final scripts.
#[test]
fn a_finalised_psbt_is_read_too() {
    for id in CASES {
        let case = fixture::<Bitcoin>(id);
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
    let case = fixture::<Bitcoin>("bitcoin-every-kind");
    let mut given = external(&signed_psbt(&case));
    given.pop();
    let partly = attach(&case, &given).expect("valid signatures");
    assert_eq!(partly["deposit"].get("signed"), None);
    assert_eq!(partly["deposit"]["tx_id"], Json::Null);
    let psbt = Psbt::from_str(partly["deposit"]["signed_psbt"].as_str().expect("a PSBT")).expect("a PSBT");
    assert_eq!(psbt.inputs.iter().filter(|input| input.tap_key_sig.is_none() && input.partial_sigs.is_empty()).count(), 1);
}

#[test]
fn the_digest_is_that_of_the_message_and_the_payload_is_the_psbt() {
    let unsigned = prepared(&fixture::<Bitcoin>("bitcoin-every-kind"));
    let requests = unsigned.requests();
    assert_eq!(requests.len(), 5);
    let payment = unsigned.payloads().payment.as_ref().expect("coins");
    for (index, request) in requests.iter().enumerate() {
        assert_eq!(request.id, RequestId::Input(index));
        assert_eq!((request.payload.psbt.as_ref(), request.payload.input), (payment.psbt.as_ref(), index));
        let taproot = payment.psbt.inputs[index].witness_utxo.as_ref().is_some_and(|output| output.script_pubkey.is_p2tr());
        let (scheme, digest) = match taproot {
            true => (Scheme::Bip340, TapSighash::hash(&request.message).to_byte_array()),
            false => (Scheme::Secp256k1Sha256d, sha256d::Hash::hash(&request.message).to_byte_array()),
        };
        assert_eq!((request.scheme, request.digest.as_slice()), (scheme, &digest[..]), "{index}");
    }
}

/// Keys for different inputs sign one after the other, and an external signer signs the rest.
#[test]
fn each_key_signs_the_inputs_that_it_opens() {
    let case = fixture::<Bitcoin>("bitcoin-every-kind");
    let text = case.secret_key().expect("keys");
    let keys: Vec<Key> = text.split_ascii_whitespace().map(|text| text.parse().expect("a key")).collect();
    assert!(keys.len() > 1);
    let mut unsigned = prepared(&case);
    for key in &keys {
        let before = unsigned.missing().len();
        unsigned.sign(key).expect("it opens an input");
        assert!(unsigned.missing().len() < before);
    }
    let signed = unsigned.finish().expect("everything is signed");
    let transactions = signed.transactions();
    let [transaction] = transactions.as_slice() else { panic!("one transaction") };
    let expected = deposit(&case);
    assert_eq!(transaction.role, Role::Initiate);
    assert_eq!(transaction.id, expected["tx_id"].as_str().expect("an id"));
    assert_eq!(hex::encode(&transaction.bytes), expected["signed"].as_str().expect("hex"));
    assert_eq!(signed.payloads().psbt().expect("a PSBT").to_string(), expected["signed_psbt"]);
    assert_eq!(signed.gasless(), None);
    assert_eq!(signed.verified().expect("an order").matches(&transaction.native).expect("the payment"), Role::Initiate);
}

#[test]
fn a_key_that_opens_nothing_is_refused_and_an_incomplete_payment_comes_back() {
    let case = fixture::<Bitcoin>("bitcoin-every-kind");
    let mut unsigned = prepared(&case);
    let refusal = unsigned.sign(&"11".repeat(32).parse().expect("a key")).expect_err("another key");
    assert_eq!((refusal.code(), refusal.location()), (Code::KeyMismatch, ""));
    assert_eq!(unsigned.missing().len(), 5);
    let signature: ExternalSignature = external(&signed_psbt(&case))[2].1.parse().expect("a signature");
    unsigned.attach(RequestId::Input(2), signature).expect("the signature of input 2");
    let incomplete = unsigned.finish().expect_err("four are missing");
    assert_eq!(incomplete.missing(), [0, 1, 3, 4].map(RequestId::Input));
    assert_eq!(incomplete.to_string(), "signatures are missing: input_0, input_1, input_3, input_4");
    let mut unsigned = incomplete.into_unsigned();
    unsigned.sign(&key::<Bitcoin>(&case)).expect("all keys");
    assert!(unsigned.finish().is_ok());
}

#[test]
fn a_refused_signature_changes_nothing() {
    let case = fixture::<Bitcoin>("bitcoin-every-kind");
    let mut unsigned = prepared(&case);
    let good = external(&signed_psbt(&case));
    unsigned.attach_text(RequestId::Input(0), &good[0].1).expect("the signature of input 0");
    let before = artefacts::<Bitcoin>(&unsigned);
    // The signature of another input, and a PSBT with a valid and an invalid signature.
    unsigned.attach_text(RequestId::Input(0), &good[1].1).expect_err("another input's");
    let mut psbt = signed_psbt(&case);
    let taproot: Vec<_> = (0..5).filter(|index| psbt.inputs[*index].tap_key_sig.is_some()).collect();
    let other = psbt.inputs[taproot[0]].tap_key_sig;
    psbt.inputs[*taproot.last().expect("taproot inputs")].tap_key_sig = other.map(|mut signature| {
        signature.signature = bitcoin::secp256k1::schnorr::Signature::from_slice(&[7; 64]).expect("64 bytes");
        signature
    });
    unsigned.attach(RequestId::Input(1), psbt).expect_err("a bad signature in it");
    assert_eq!(artefacts::<Bitcoin>(&unsigned), before);
    assert_eq!(unsigned.missing(), [1, 2, 3, 4].map(RequestId::Input));
}

#[test]
fn a_psbt_is_taken_under_the_id_of_any_input() {
    let case = fixture::<Bitcoin>("bitcoin-every-kind");
    let mut unsigned = prepared(&case);
    unsigned.attach(RequestId::Input(3), signed_psbt(&case)).expect("a signed PSBT");
    assert_eq!(unsigned.missing(), []);
    let mut unsigned = prepared(&case);
    let refusal = unsigned.attach(RequestId::Initiate, signed_psbt(&case)).expect_err("no input");
    assert_eq!((refusal.code(), refusal.location()), (Code::NothingToSign, ""));
    let bare = unsigned.requests()[0].payload.psbt.as_ref().clone();
    let refusal = unsigned.attach(RequestId::Input(0), bare).expect_err("an unsigned PSBT");
    assert_eq!((refusal.code(), refusal.location()), (Code::SignatureMissing, ""));
}

fn code(case: &Case, given: &[(String, String)]) -> (Code, String) {
    let refusal = attach(case, given).expect_err("a bad signature");
    (refusal.code(), refusal.location().to_owned())
}

#[test]
fn a_flipped_bit_is_no_signature() {
    for id in ["bitcoin-p2wpkh", "bitcoin-p2tr", "bitcoin-p2sh", "bitcoin-p2pkh"] {
        let case = fixture::<Bitcoin>(id);
        let psbt = signed_psbt(&case);
        let (name, text) = external(&psbt).swap_remove(0);
        let (signature, key) = text.split_once(':').map_or((text.as_str(), ""), |(signature, key)| (signature, key));
        let good = hex::decode(signature).expect("hex");
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
    let case = fixture::<Bitcoin>("bitcoin-every-kind");
    let good = external(&signed_psbt(&case));
    let schnorr = good.iter().position(|(_, text)| text.len() == 128).expect("a taproot input");
    let ecdsa = good.iter().position(|(_, text)| text.contains(':')).expect("another input");
    let under = |name: usize, text: &str| vec![(format!("input_{name}"), text.to_owned())];
    let mismatch = |got: (Code, String)| assert_eq!(got.0, Code::SignatureMismatch, "{}", got.1);
    // Another input's signature, of either kind.
    let others: Vec<_> = (0..good.len()).filter(|index| good[*index].1.len() == 128 && *index != schnorr).collect();
    mismatch(code(&case, &under(schnorr, &good[others[0]].1)));
    let others: Vec<_> = (0..good.len()).filter(|index| good[*index].1.contains(':') && *index != ecdsa).collect();
    mismatch(code(&case, &under(ecdsa, &good[others[0]].1)));
    // The wrong kind, a wrong length, and empty text.
    for text in [&good[ecdsa].1, "", "00", &format!("{}42", good[schnorr].1), &good[schnorr].1[..126]] {
        assert_eq!(code(&case, &under(schnorr, text)).0, Code::SignatureMalformed, "{text}");
    }
    mismatch(code(&case, &under(schnorr, &format!("{}83", good[schnorr].1))));
    assert_eq!(code(&case, &under(ecdsa, &good[schnorr].1)).0, Code::SignatureMalformed);
    // An input that does not exist.
    assert_eq!(code(&case, &under(5, &good[schnorr].1)), (Code::NothingToSign, "/signatures/input_5".to_owned()));
    assert_eq!(code(&case, &[("initiate".to_owned(), good[schnorr].1.clone())]).0, Code::NothingToSign);
}

#[test]
fn a_psbt_of_another_transaction_is_refused() {
    let case = fixture::<Bitcoin>("bitcoin-p2wpkh");
    let mut psbt = signed_psbt(&case);
    psbt.unsigned_tx.output[0].script_pubkey = ScriptBuf::from_bytes(vec![0x51]);
    assert_eq!(code(&case, &[("psbt".to_owned(), psbt.to_string())]), (Code::PsbtMismatch, "/signatures/psbt".to_owned()));
    // Signed with a hash type that does not cover the outputs.
    let mut psbt = signed_psbt(&case);
    for signature in psbt.inputs[0].partial_sigs.values_mut() {
        signature.sighash_type = bitcoin::EcdsaSighashType::None;
    }
    assert_eq!(code(&case, &[("psbt".to_owned(), psbt.to_string())]).0, Code::SignatureMismatch);
}

#[test]
fn without_coins_there_is_nothing_to_sign() {
    let case = fixture::<Bitcoin>("bitcoin-address");
    assert_eq!(code(&case, &[("input_0".to_owned(), "00".repeat(64))]).0, Code::NothingToSign);
    let mut unsigned = verified::<Bitcoin>(&case).prepare(TxContext::address_only()).expect("an address");
    assert_eq!(unsigned.sign(&"11".repeat(32).parse().expect("a key")).expect_err("nothing").code(), Code::NothingToSign);
    assert!(unsigned.requests().is_empty());
    assert!(unsigned.finish().expect("nothing is missing").transactions().is_empty());
}

/// In the batch, the key must be able to sign every input. The refusal locates the key.
#[test]
fn in_a_batch_a_key_opens_every_input() {
    let case = fixture::<Bitcoin>("bitcoin-every-kind");
    let keys = case.secret_key().expect("keys");
    let first = keys.split_ascii_whitespace().next().expect("a key");
    let refusal = countersign_testkit::outcome::<Bitcoin>(&case.replaced(&keys, first)).expect_err("other keys are missing");
    assert_eq!((refusal.code(), refusal.location()), (Code::KeyMismatch, "/wallet/secret_key"));
    let without = fixture::<Bitcoin>("bitcoin-address");
    let mut line = without.json();
    line["wallet"]["secret_key"] = first.into();
    let refusal = countersign_testkit::outcome::<Bitcoin>(&without.with_input(line.to_string())).expect_err("no coins");
    assert_eq!((refusal.code(), refusal.location()), (Code::NothingToSign, "/wallet/utxos"));
}

#[test]
fn a_signature_and_its_key_may_be_members_of_an_object() {
    let case = fixture::<Bitcoin>("bitcoin-p2wpkh");
    let (name, text) = external(&signed_psbt(&case)).swap_remove(0);
    let (signature, public_key) = text.split_once(':').expect("ECDSA");
    let mut unsigned = prepared(&case);
    let given = serde_json::json!({ (name): { "signature": signature, "public_key": public_key } });
    attach_json(&mut unsigned, &given).expect("the signature");
    assert_eq!(artefacts::<Bitcoin>(&unsigned)["deposit"], deposit(&case));
    // A bare signature is not accepted under the name of the PSBT.
    let refusal = attach_json(&mut unsigned, &serde_json::json!({ "psbt": text })).expect_err("no input of this name");
    assert_eq!((refusal.code(), refusal.location()), (Code::NothingToSign, "/signatures/psbt"));
}

#[test]
fn the_context_and_the_signatures_survive_a_restart() -> countersign_testkit::TestResult {
    countersign_testkit::restart::the_context_and_the_signatures_survive::<Bitcoin>()
}
