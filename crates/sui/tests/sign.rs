//! What a signer is asked for, what it may answer, and what goes to nodes.

#![allow(
    clippy::arithmetic_side_effects,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a panic in a test is a failed test"
)]

mod support;

use std::collections::HashSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use countersign_core::json::{self, Node};
use countersign_core::{ChainFamily, Code, Policy, Refusal, Signed};
use countersign_sui::sui_sdk_types::UserSignature;
use countersign_sui::{Key, Sui};
use serde_json::{Value as Json, json};
use support::{Case, TestResult, fixture, fixtures, outside, outside_case, with_unsigned};

fn read(signature: &Json) -> Result<UserSignature, Refusal> {
    let text = signature.to_string();
    Sui::read_signature(Node::root(&json::parse(text.as_bytes())?, "/signatures/x"))
}

fn attach(case: &Case, given: &[(&str, &Json)]) -> Result<Signed<Sui>, Refusal> {
    with_unsigned(case, &Policy::default(), |unsigned, _| {
        let given = given.iter().map(|(name, text)| Ok(((*name).to_owned(), read(text)?))).collect::<Result<_, Refusal>>()?;
        unsigned.attach(given)
    })
}

fn expected(case: &Case) -> Json {
    case.whole().expect("JSON")["expect"]["artefacts"]["transaction"].clone()
}

#[test]
fn requests_name_owner_payload_and_digest() -> TestResult {
    let case = fixture("sui-sponsor");
    let requests = serde_json::to_value(with_unsigned(&case, &Policy::default(), |unsigned, _| Ok(unsigned.requests()))?)?;
    let wanted = expected(&case);
    let line = case.json();
    for (index, (name, signer)) in
        [("transaction", &line["request"]["source"]["owner"]), ("sponsor", &line["wallet"]["sponsor"])].into_iter().enumerate()
    {
        assert_eq!(requests[index]["name"], name);
        assert_eq!(&requests[index]["signer"], signer);
        assert_eq!(requests[index]["digest"], format!("0x{}", wanted["signing_digest"].as_str().ok_or("no digest")?));
        let data = STANDARD.decode(wanted["transaction_data"].as_str().ok_or("no data")?)?;
        assert_eq!(requests[index]["payload"], format!("0x000000{}", data.iter().map(|byte| format!("{byte:02x}")).collect::<String>()));
    }
    assert_eq!(requests.as_array().map(Vec::len), Some(2));
    Ok(())
}

#[test]
fn signatures_of_every_simple_scheme_are_proven() -> TestResult {
    let mut schemes = HashSet::new();
    for case in fixtures()? {
        let wanted = expected(&case);
        let signature = &wanted["signature"];
        if signature.is_null() || !case.json()["wallet"]["sponsor"].is_null() {
            continue;
        }
        schemes.insert(read(signature)?.scheme().name());
        let signed = attach(&case, &[("transaction", signature)])?;
        assert_eq!(serde_json::to_value(signed.artefacts())?["transaction"], wanted, "{}", case.id);
        let execution = serde_json::to_value(signed.artefacts().execution())?;
        assert_eq!(execution, json!({ "tx_bytes": wanted["transaction_data"], "signatures": [signature] }));
        let native = signed.artefacts().signed_transaction().ok_or("not signed")?;
        assert_eq!(native.transaction.digest().to_base58(), wanted["tx_digest"].as_str().ok_or("no digest")?);
    }
    assert_eq!(schemes.len(), 3, "{schemes:?}");
    Ok(())
}

#[test]
fn what_is_not_signed_stays_unsigned() -> TestResult {
    let case = fixture("sui-native");
    let signed = attach(&case, &[])?;
    assert!(signed.artefacts().signature.is_none() && signed.artefacts().execution().is_none());
    assert!(signed.artefacts().signed_transaction().is_none());
    assert!(serde_json::to_value(signed.artefacts())?["transaction"].get("signature").is_none());
    Ok(())
}

#[test]
fn a_sponsored_transaction_needs_two_signatures() -> TestResult {
    let outside = outside();
    let sponsored = &outside["sponsor"];
    let case = outside_case(sponsored);
    let (owner, sponsor) = (&sponsored["signatures"]["transaction"], &sponsored["signatures"]["sponsor"]);
    let half = attach(&case, &[("transaction", owner)])?;
    assert!(half.artefacts().execution().is_none());
    let signed = attach(&case, &[("sponsor", sponsor), ("transaction", owner)])?;
    let execution = serde_json::to_value(signed.artefacts().execution())?;
    assert_eq!(execution, json!({ "tx_bytes": sponsored["expect"]["transaction_data"], "signatures": [owner, sponsor] }));
    for (name, signature) in [("sponsor", owner), ("transaction", sponsor)] {
        let refusal = attach(&case, &[(name, signature)]).expect_err(name);
        assert_eq!((refusal.code(), refusal.location()), (Code::SignatureMismatch, &*format!("/signatures/{name}")));
    }
    let lines = serde_json::to_string(signed.summary())?;
    assert!(lines.contains("who signs too") && lines.contains("the amount too is split from the sponsor's coins"), "{lines}");
    Ok(())
}

#[test]
fn signatures_that_only_the_network_proves_pass_with_a_warning() -> TestResult {
    let outside = outside();
    for (scheme, other) in [("multisig", "zklogin"), ("zklogin", "multisig")] {
        let case = outside_case(&outside[scheme]);
        let signature = &outside[scheme]["signature"];
        let signed = attach(&case, &[("transaction", signature)])?;
        let warning = signed.warnings().list().iter().find(|warning| warning.code == Code::SignatureUnverified).ok_or("no warning")?;
        assert_eq!(warning.detail, scheme);
        let mut wanted = outside[scheme]["expect"].clone();
        wanted["signature"] = signature.clone();
        assert_eq!(serde_json::to_value(signed.artefacts())?["transaction"], wanted);
        let refusal = attach(&case, &[("transaction", &outside[other]["signature"])]).expect_err("another account's");
        assert_eq!(refusal.code(), Code::SignatureMismatch);
    }
    Ok(())
}

/// The order of secp256r1 less s, or of secp256k1.
fn flip_s(signature: &[u8]) -> Vec<u8> {
    use countersign_core::U256;
    let order = match signature[0] {
        1 => "fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141",
        _ => "ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551",
    };
    let order = U256::from_str_radix(order, 16).expect("hex");
    let s = U256::from_be_slice(&signature[33..65]);
    [&signature[..33], &(order - s).to_be_bytes::<32>()[..], &signature[65..]].concat()
}

#[test]
fn refuses_signatures_that_prove_nothing() -> TestResult {
    for id in ["sui-native", "sui-secp256k1", "sui-secp256r1"] {
        let case = fixture(id);
        let text = expected(&case)["signature"].as_str().ok_or("no signature")?.to_owned();
        let signature = STANDARD.decode(&text)?;
        let encode = |bytes: &[u8]| json!(STANDARD.encode(bytes));
        let another = expected(&fixture("sui-key-hex"))["signature"].clone();
        let mut cases = vec![
            ("transaction", another, Code::SignatureMismatch),
            ("transaction", json!(""), Code::SignatureMalformed),
            ("transaction", json!(format!("{text} ")), Code::SignatureMalformed),
            ("transaction", json!(7), Code::WrongType),
            ("transaction", encode(&signature[1..]), Code::SignatureMalformed),
            ("transaction", encode(&[&signature[..], &[0]].concat()), Code::SignatureMalformed),
            ("transaction", encode(&[4; 97]), Code::SignatureMalformed),
            ("transaction", encode(&[0; 200_000]), Code::SignatureMalformed),
            ("sponsor", json!(text), Code::NothingToSign),
            ("typed_data", json!(text), Code::NothingToSign),
        ];
        if signature[0] != 0 {
            cases.push(("transaction", encode(&flip_s(&signature)), Code::SignatureHighS));
        }
        for (name, given, code) in cases {
            let refusal = attach(&case, &[(name, &given)]).expect_err(id);
            assert_eq!(refusal.code(), code, "{id} {name}: {refusal}");
        }
        for bit in (0..signature.len() * 8).step_by(3) {
            let mut bytes = signature.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(attach(&case, &[("transaction", &encode(&bytes))]).is_err(), "{id} bit {bit}");
        }
    }
    Ok(())
}

#[test]
fn keys_of_another_form_or_account_are_refused() -> TestResult {
    let good = fixture("sui-native").json()["wallet"]["secret_key"].as_str().ok_or("no key")?.to_owned();
    for text in [
        String::new(),
        "00".repeat(31),
        "zz".repeat(32),
        good.replace('1', "2"),
        good.to_uppercase()[..good.len() - 1].to_owned(),
        format!("{good}q"),
        // Bech32 with another human-readable part.
        "sui1qypqxpq9qcrsszg2pvxq6rs0zqg3yyc5z5tpwxqergd3c8g7rusqgcwnx2".to_owned(),
    ] {
        assert_eq!(Sui::read_key(&text).expect_err(&text), Code::KeyMalformed, "{text}");
    }
    assert!(Sui::read_key(&good.to_uppercase()).is_ok(), "bech32 in one case");
    let case = fixture("sui-native");
    let other = Key::parse(&"11".repeat(32)).map_err(|code| code.name())?;
    let refusal = with_unsigned(&case, &Policy::default(), |unsigned, _| unsigned.sign(&other)).expect_err("another key");
    assert_eq!((refusal.code(), refusal.location()), (Code::KeyMismatch, "/wallet/secret_key"));
    assert!(!refusal.to_string().contains("1111"));
    Ok(())
}

#[test]
fn scalars_that_are_no_key_are_refused() {
    use bech32::{Bech32, Hrp};
    let hrp = Hrp::parse("suiprivkey").expect("an hrp");
    let order =
        |digits: &str| (0..32).map(|index| u8::from_str_radix(&digits[index * 2..index * 2 + 2], 16).expect("hex")).collect::<Vec<_>>();
    let k1 = order("fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141");
    let r1 = order("ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551");
    for (flag, scalar) in [(1, vec![0; 32]), (2, vec![0; 32]), (1, k1), (2, r1), (2, vec![0xff; 32]), (3, vec![7; 32]), (0, vec![7; 31])] {
        let text = bech32::encode::<Bech32>(hrp, &[&[flag], &scalar[..]].concat()).expect("encodes");
        assert_eq!(Sui::read_key(&text).expect_err("no key"), Code::KeyMalformed, "{flag} {scalar:?}");
    }
    let text = bech32::encode::<bech32::Bech32m>(hrp, &[7; 33]).expect("encodes");
    assert!(Sui::read_key(&text).is_err(), "another checksum");
}

#[test]
fn neither_key_nor_secret_is_ever_printed() {
    let case = fixture("sui-key-hex");
    let secret = case.json()["wallet"]["secret_key"].as_str().expect("a key").to_owned();
    let key = Sui::read_key(&secret).expect("a key");
    let signed = with_unsigned(&case, &Policy::default(), |unsigned, _| unsigned.sign(&key)).expect("signs");
    assert!(!format!("{key:?} {signed:?}").contains(&secret));
    assert_eq!(Sui::read_key(&secret[1..]).expect_err("63 digits"), Code::KeyMalformed);
}
