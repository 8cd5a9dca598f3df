//! What a signer is asked for, what it may answer, and what goes to nodes and to the service.

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
use countersign_core::{ChainFamily, Code, Policy, Refusal, Signed};
use countersign_solana::{Key, ExternalSignature, Solana};
use serde_json::{Value as Json, json};
use solana_keypair::Keypair;
use support::{Case, TestResult, fixture, outcome, with_unsigned};

const CASE: &str = "solana-token-sponsor-signed";

fn secret(case: &Case) -> String {
    case.json()["wallet"]["secret_key"].as_str().expect("a key").to_owned()
}

fn read(signature: &Json) -> Result<ExternalSignature, Refusal> {
    let text = signature.to_string();
    Solana::read_signature(Node::root(&json::parse(text.as_bytes())?, "/signatures/x"))
}

fn attach(case: &Case, given: &[(&str, Json)]) -> Result<Signed<Solana>, Refusal> {
    with_unsigned(case, &Policy::default(), |unsigned, _| {
        let given = given.iter().map(|(name, text)| Ok(((*name).to_owned(), read(text)?))).collect::<Result<_, Refusal>>()?;
        unsigned.attach(given)
    })
}

/// The owner's signatures that the fixture expects, as bytes: transaction, gasless.
fn expected(case: &Case) -> [Vec<u8>; 2] {
    let artefacts = case.whole().expect("JSON")["expect"]["artefacts"].clone();
    let bytes = |text: &Json| STANDARD.decode(text.as_str().expect("base64")).expect("base64");
    [bytes(&artefacts["transaction"]["signed"])[1..65].to_vec(), bytes(&artefacts["gasless"]["submission"])[65..129].to_vec()]
}

#[test]
fn requests_name_owner_and_message() -> TestResult {
    let case = fixture(CASE);
    let requests = with_unsigned(&case, &Policy::default(), |unsigned, _| Ok(unsigned.requests()))?;
    let whole = case.whole()?;
    assert_eq!(requests.iter().map(|request| request.name.as_ref()).collect::<Vec<_>>(), ["transaction", "gasless"]);
    for request in &requests {
        assert_eq!(request.signer, whole["request"]["source"]["owner"]);
        assert_eq!(STANDARD.encode(&request.payload.0), whole["expect"]["artefacts"][request.name.as_ref()]["message"]);
        assert_eq!(request.payload, request.digest);
    }
    Ok(())
}

#[test]
fn takes_signatures_in_every_spelling() -> TestResult {
    type Spelling = fn(&[u8]) -> String;
    let case = fixture(CASE);
    let wanted = case.whole()?["expect"]["artefacts"].clone();
    let signatures = expected(&case);
    let spellings: [Spelling; 4] = [
        |bytes| bs58::encode(bytes).into_string(),
        |bytes| STANDARD.encode(bytes),
        |bytes| countersign_core::Hex(bytes.to_vec()).to_string(),
        |bytes| countersign_core::Hex(bytes.to_vec()).to_string()[2..].to_owned(),
    ];
    for spell in spellings {
        let signed = attach(&case, &[("transaction", json!(spell(&signatures[0]))), ("gasless", json!(spell(&signatures[1])))])?;
        assert_eq!(serde_json::to_value(signed.artefacts())?, wanted);
    }
    Ok(())
}

#[test]
fn any_solana_signer_signs() -> TestResult {
    let case = fixture(CASE);
    let key = Keypair::try_from_base58_string(&secret(&case)).map_err(|_| "no key")?;
    let signed = with_unsigned(&case, &Policy::default(), |unsigned, _| {
        let signatures = unsigned.payloads().sign_with(&key).expect("a local signer");
        unsigned.attach(signatures)
    })?;
    assert_eq!(serde_json::to_value(signed.artefacts())?, case.whole()?["expect"]["artefacts"]);
    let other = with_unsigned(&case, &Policy::default(), |unsigned, _| {
        let signatures = unsigned.payloads().sign_with(&Keypair::new_from_array([7; 32])).expect("a local signer");
        unsigned.attach(signatures)
    });
    assert_eq!(other.expect_err("another signer").code(), Code::SignatureMismatch);
    Ok(())
}

#[test]
fn what_is_not_signed_stays_unsigned() -> TestResult {
    let case = fixture(CASE);
    let [_, gasless] = expected(&case);
    let signed = attach(&case, &[("gasless", json!(STANDARD.encode(gasless)))])?;
    let artefacts = signed.artefacts();
    assert!(artefacts.transaction.signed.is_none() && artefacts.transaction.base64().is_none() && artefacts.transaction.id().is_none());
    let submission = serde_json::to_value(artefacts.submission())?;
    assert_eq!(submission, json!({ "signature": case.whole()?["expect"]["artefacts"]["gasless"]["submission"] }));
    Ok(())
}

#[test]
fn ids_and_bytes_are_those_of_nodes() -> TestResult {
    let case = fixture("solana-native-legacy");
    let expect = &case.whole()?["expect"]["artefacts"]["transaction"];
    let signed =
        with_unsigned(&case, &Policy::default(), |unsigned, key| unsigned.sign(&Solana::read_key(key.expect("a key")).expect("a key")))?;
    let transaction = &signed.artefacts().transaction;
    assert_eq!(json!(transaction.id().map(|id| id.to_string())), expect["signature"]);
    let base58 = bs58::decode(transaction.base58().ok_or("not signed")?).into_vec().map_err(|error| error.to_string())?;
    assert_eq!(STANDARD.encode(base58), expect["signed"]);
    let native = transaction.signed.as_ref().ok_or("not signed")?;
    assert!(native.verify_with_results().into_iter().all(|valid| valid));
    assert!(native.sanitize().is_ok());
    Ok(())
}

#[test]
fn refuses_signatures_that_prove_nothing() {
    let case = fixture(CASE);
    let [own, gasless] = expected(&case);
    let base64 = |bytes: &[u8]| json!(STANDARD.encode(bytes));
    for (name, signature, code) in [
        ("transaction", base64(&gasless), Code::SignatureMismatch),
        ("gasless", base64(&own), Code::SignatureMismatch),
        ("gasless", base64(&[0; 64]), Code::SignatureMismatch),
        ("gasless", base64(&gasless[..63]), Code::SignatureMalformed),
        ("gasless", json!(""), Code::SignatureMalformed),
        ("gasless", json!("z".repeat(128)), Code::SignatureMalformed),
        ("typed_data", base64(&own), Code::NothingToSign),
    ] {
        let refusal = attach(&case, &[(name, signature)]).expect_err(name);
        assert_eq!(refusal.code(), code, "{name}: {refusal}");
    }
    for bit in 0..64 * 8 {
        let mut bytes = own.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        assert!(attach(&case, &[("transaction", base64(&bytes))]).is_err(), "bit {bit}");
    }
}

#[test]
fn keys_are_read_strictly() {
    let case = fixture(CASE);
    let text = secret(&case);
    let bytes = bs58::decode(&text).into_vec().expect("base58");
    let mut halves = bytes.clone();
    halves[40] ^= 1;
    for wrong in [
        bs58::encode(halves).into_string(),
        bs58::encode(&bytes[..63]).into_string(),
        bs58::encode(&bytes[..31]).into_string(),
        bs58::encode([bytes.as_slice(), &[1]].concat()).into_string(),
        String::new(),
        "0".repeat(64),
        "1".repeat(100_000),
    ] {
        assert_eq!(Key::parse(&wrong).err(), Some(Code::KeyMalformed));
    }
    let other = case.replaced(&text, &bs58::encode([7; 32]).into_string());
    let refusal = outcome(&other).expect_err("another key");
    assert_eq!((refusal.code(), refusal.location()), (Code::KeyMismatch, "/wallet/secret_key"));
}

#[test]
fn neither_key_nor_secret_is_ever_printed() {
    let case = fixture(CASE);
    let text = secret(&case);
    let key = Key::parse(&text).expect("a key");
    let signed = with_unsigned(&case, &Policy::default(), |unsigned, _| unsigned.sign(&key)).expect("signs");
    assert_eq!(format!("{key:?}"), "Key(..)");
    assert!(!format!("{signed:?}").contains(&text));
}
