//! Signing: the requests, the accepted signatures, and the artefacts for nodes and the service.

use std::convert::Infallible;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use countersign_core::{Code, Hex, RequestId, Role, Scheme};
use countersign_solana::solana_signature::Signature;
use countersign_solana::{
    Address, ExternalSignature, Gasless, Key, SignerError, SignerError3, SignerError4, Solana, TxContext, UnsignedOrder, solana_signer_4,
};
use countersign_testkit::{Case, TestResult, artefacts, attach, fixture, key, outcome, verified, wallet};
use serde_json::{Value as Json, json};
use solana_keypair::{Keypair, Signer as _};

const CASE: &str = "solana-token-sponsor-signed";

fn prepared(case: &Case) -> UnsignedOrder {
    verified::<Solana>(case).prepare(wallet::<Solana>(case)).expect(&case.id)
}

/// The owner's signatures that the fixture expects, as bytes: transaction, gasless.
fn expected(case: &Case) -> [Vec<u8>; 2] {
    let artefacts = case.expect()["artefacts"].clone();
    let bytes = |text: &Json| STANDARD.decode(text.as_str().expect("base64")).expect("base64");
    [bytes(&artefacts["transaction"]["signed"])[1..65].to_vec(), bytes(&artefacts["gasless"]["submission"])[65..129].to_vec()]
}

#[test]
fn requests_name_owner_and_message() -> TestResult {
    let case = fixture::<Solana>(CASE);
    let requests = prepared(&case).requests();
    let whole = case.whole()?;
    assert_eq!(requests.iter().map(|request| request.id).collect::<Vec<_>>(), [RequestId::Transaction, RequestId::Gasless]);
    for request in &requests {
        assert_eq!((&request.signer.as_str().into(), request.scheme), (&whole["request"]["source"]["owner"], Scheme::Ed25519));
        assert_eq!(STANDARD.encode(&request.message), whole["expect"]["artefacts"][request.id.name().as_ref()]["message"]);
        assert_eq!((&request.message, request.payload.message.serialize()), (&request.digest, request.message.clone()));
    }
    Ok(())
}

#[test]
fn takes_signatures_in_every_spelling() -> TestResult {
    type Spelling = fn(&[u8]) -> String;
    let case = fixture::<Solana>(CASE);
    let signatures = expected(&case);
    let spellings: [Spelling; 4] = [
        |bytes| bs58::encode(bytes).into_string(),
        |bytes| STANDARD.encode(bytes),
        |bytes| Hex(bytes.to_vec()).to_string(),
        |bytes| Hex(bytes.to_vec()).to_string()[2..].to_owned(),
    ];
    for spell in spellings {
        let mut unsigned = prepared(&case);
        attach(&mut unsigned, &json!({ "transaction": spell(&signatures[0]), "gasless": spell(&signatures[1]) }))?;
        assert_eq!(artefacts(&unsigned), case.expect()["artefacts"]);
    }
    Ok(())
}

#[test]
fn signers_of_solana_signer_3_sign() -> TestResult {
    let case = fixture::<Solana>(CASE);
    let signer = Keypair::try_from_base58_string(&case.secret_key().ok_or("no key")?).map_err(|_| "no keypair")?;
    let mut unsigned = prepared(&case);
    unsigned.sign_with(&signer)?;
    assert_eq!(artefacts(&unsigned), case.expect()["artefacts"]);
    let signer: &dyn countersign_solana::solana_signer_3::Signer = &signer;
    let mut unsigned = prepared(&case);
    unsigned.sign_with(signer)?;
    assert_eq!(artefacts(&unsigned), case.expect()["artefacts"]);

    let mut unsigned = prepared(&case);
    let error: SignerError3 = unsigned.sign_with(&Keypair::new_from_array([7; 32])).expect_err("another signer");
    assert!(matches!(&error, SignerError3::Refused(refusal) if refusal.code() == Code::KeyMismatch), "{error:?}");
    assert_eq!(unsigned.missing(), [RequestId::Transaction, RequestId::Gasless]);
    Ok(())
}

/// A signer of solana-signer 4, which may be off.
struct Newest {
    keypair: Keypair,
    is_off: bool,
}

impl solana_signer_4::Signer for Newest {
    fn try_pubkey(&self) -> Result<Address, solana_signer_4::SignerError> {
        Ok(self.keypair.pubkey())
    }

    fn try_sign_message(&self, message: &[u8]) -> Result<Signature, solana_signer_4::SignerError> {
        if self.is_off { Err(solana_signer_4::SignerError::NoDeviceFound) } else { Ok(self.keypair.sign_message(message)) }
    }

    fn is_interactive(&self) -> bool {
        true
    }
}

#[test]
fn signers_of_solana_signer_4_sign() -> TestResult {
    let case = fixture::<Solana>(CASE);
    let keypair = || Keypair::try_from_base58_string(&case.secret_key().expect("a key")).expect("a keypair");
    let signer = Newest { keypair: keypair(), is_off: false };
    let mut unsigned = prepared(&case);
    unsigned.sign_with(&signer)?;
    assert_eq!(artefacts(&unsigned), case.expect()["artefacts"]);
    let signer: &dyn solana_signer_4::Signer = &signer;
    let mut unsigned = prepared(&case);
    unsigned.sign_with(signer)?;
    assert_eq!(artefacts(&unsigned), case.expect()["artefacts"]);

    let mut unsigned = prepared(&case);
    let other = Newest { keypair: Keypair::new_from_array([7; 32]), is_off: true };
    let error: SignerError4 = unsigned.sign_with(&other).expect_err("another signer, which is not asked to sign");
    assert!(matches!(&error, SignerError4::Refused(refusal) if refusal.code() == Code::KeyMismatch), "{error:?}");
    let off = Newest { keypair: keypair(), is_off: true };
    let error: SignerError = unsigned.sign_with(&off).expect_err("no device");
    assert!(matches!(error, SignerError::Signer(solana_signer_4::SignerError::NoDeviceFound)), "{error:?}");
    assert_eq!(unsigned.missing(), [RequestId::Transaction, RequestId::Gasless]);
    Ok(())
}

/// A closure returns the bytes of a signature, so the signer may be of any SDK.
#[test]
fn a_closure_signs_with_raw_bytes() -> TestResult {
    let case = fixture::<Solana>(CASE);
    let keypair = Keypair::try_from_base58_string(&case.secret_key().ok_or("no key")?).map_err(|_| "no keypair")?;
    let mut unsigned = prepared(&case);
    unsigned.sign_with_fn(|request| Ok::<[u8; 64], Infallible>(keypair.sign_message(&request.message).into()))?;
    assert_eq!(artefacts(&unsigned), case.expect()["artefacts"]);

    let mut unsigned = prepared(&case);
    let error = unsigned.sign_with_fn(|_| Ok::<_, Infallible>([7; 64])).expect_err("not a signature");
    assert!(matches!(&error, countersign_core::SignerError::Refused(refusal) if refusal.code() == Code::SignatureMismatch), "{error:?}");
    Ok(())
}

#[test]
fn what_is_not_signed_stays_unsigned() -> TestResult {
    let case = fixture::<Solana>(CASE);
    let [_, gasless] = expected(&case);
    let mut unsigned = prepared(&case);
    attach(&mut unsigned, &json!({ "gasless": STANDARD.encode(gasless) }))?;
    assert_eq!(unsigned.missing(), [RequestId::Transaction]);
    let got = artefacts(&unsigned);
    assert!(got["transaction"]["signed"].is_null() && got["transaction"]["signature"].is_null(), "{got}");
    assert_eq!(got["gasless"], case.expect()["artefacts"]["gasless"]);
    let incomplete = unsigned.finish().expect_err("a signature is missing");
    let mut unsigned = incomplete.into_unsigned();
    unsigned.sign(&key::<Solana>(&case))?;
    assert_eq!(unsigned.finish()?.gasless().ok_or("gasless")?.signature, got["gasless"]["submission"]);
    Ok(())
}

#[test]
fn the_chosen_funding_path_is_all_that_is_signed() -> TestResult {
    let case = fixture::<Solana>(CASE);
    let (order, expect) = (verified::<Solana>(&case), &case.expect()["artefacts"]);
    let mut unsigned = order.prepare(Gasless)?;
    assert_eq!(unsigned.missing(), [RequestId::Gasless]);
    unsigned.sign(&key::<Solana>(&case))?;
    assert!(artefacts(&unsigned)["transaction"].is_null());
    let signed = unsigned.finish()?;
    assert!(signed.transactions().is_empty());
    let submission = signed.gasless().ok_or("no submission")?.signature;
    assert_eq!(expect["gasless"]["submission"], submission);
    // The sponsor's signature is kept.
    let received = case.json()["response"]["result"]["versioned_tx_gasless"].take();
    let received = STANDARD.decode(received.as_str().ok_or("no payload")?)?;
    assert_eq!(STANDARD.decode(submission)?[..65], received[..65]);
    assert_ne!(received[1..65], [0; 64]);

    let mut unsigned = order.prepare(TxContext::new())?;
    assert_eq!(unsigned.missing(), [RequestId::Transaction]);
    unsigned.sign(&key::<Solana>(&case))?;
    let signed = unsigned.finish()?;
    assert!(signed.gasless().is_none());
    assert_eq!(signed.transactions().len(), 1);

    let native = fixture::<Solana>("solana-native-legacy");
    let refusal = verified::<Solana>(&native).prepare(Gasless).expect_err("no gasless path");
    assert_eq!((refusal.code(), refusal.location()), (Code::NothingToSign, ""));
    Ok(())
}

#[test]
fn ids_and_bytes_are_those_of_nodes() -> TestResult {
    let case = fixture::<Solana>("solana-native-legacy");
    let expect = &case.expect()["artefacts"]["transaction"];
    let mut unsigned = prepared(&case);
    unsigned.sign(&key::<Solana>(&case))?;
    let signed = unsigned.finish()?;
    let [transaction] = &signed.transactions()[..] else { return Err("one transaction".into()) };
    assert_eq!((transaction.role, json!(transaction.id)), (Role::Initiate, expect["signature"].clone()));
    assert_eq!(STANDARD.encode(&transaction.bytes), expect["signed"]);
    assert_eq!(wincode::serialize(&transaction.native)?, transaction.bytes);
    assert!(transaction.native.verify_with_results().into_iter().all(|valid| valid));
    assert!(transaction.native.sanitize().is_ok());
    Ok(())
}

#[test]
fn refuses_signatures_that_prove_nothing() {
    let case = fixture::<Solana>(CASE);
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
        let mut unsigned = prepared(&case);
        let refusal = attach(&mut unsigned, &json!({ name: signature })).expect_err(name);
        assert_eq!((refusal.code(), refusal.location()), (code, format!("/signatures/{name}").as_str()), "{refusal}");
        // Only the wallet that sends the owner's transaction may change it, and has a way to show that it did.
        let advises = code == Code::SignatureMismatch && name == "transaction";
        assert_eq!(refusal.to_string().contains("if the wallet replaced the blockhash"), advises, "{refusal}");
        assert_eq!(unsigned.missing(), [RequestId::Transaction, RequestId::Gasless]);
    }
    let mut unsigned = prepared(&case);
    for bit in 0..64 * 8 {
        let mut bytes = own.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        let signature = ExternalSignature(<[u8; 64]>::try_from(bytes).expect("64 bytes").into());
        assert!(unsigned.attach(RequestId::Transaction, signature).is_err(), "bit {bit}");
    }
    assert_eq!(unsigned.missing().len(), 2);
}

#[test]
fn keys_are_read_strictly() {
    let case = fixture::<Solana>(CASE);
    let text = case.secret_key().expect("a key");
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
        assert_eq!(wrong.parse::<Key>().err().map(|error| error.code()), Some(Code::KeyMalformed));
    }
    let other = case.replaced(&text, &bs58::encode([7; 32]).into_string());
    let refusal = outcome::<Solana>(&other).expect_err("another key");
    assert_eq!((refusal.code(), refusal.location()), (Code::KeyMismatch, "/wallet/secret_key"));
}

#[test]
fn neither_key_nor_secret_is_ever_printed() -> TestResult {
    let case = fixture::<Solana>(CASE);
    let (text, key) = (case.secret_key().ok_or("no key")?, key::<Solana>(&case));
    let mut unsigned = prepared(&case);
    unsigned.sign(&key)?;
    assert_eq!(format!("{key:?}"), "Key(..)");
    assert!(!format!("{unsigned:?}").contains(&text));
    assert!(!format!("{:?}", unsigned.finish()?).contains(&text));
    Ok(())
}

#[test]
fn the_context_and_the_signatures_survive_a_restart() -> countersign_testkit::TestResult {
    countersign_testkit::restart::the_context_and_the_signatures_survive::<Solana>()
}
