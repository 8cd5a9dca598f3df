//! Receipts: what they prove, and that nothing else is ever proven.
use std::process::{Command, Stdio};
use std::sync::LazyLock;

use countersign::{Code, Policy, Registry};
use countersign_testkit::{Case, Tree, all_fixtures, fixture, registry_with};
use countersign_view::border;
use countersign_view::receipt::{Documents, MAX_BYTES, Receipt, ReceiptKey, Verdict};
use proptest::prelude::*;
use serde_json::{Value as Json, json};
use sha2::{Digest as _, Sha256};

/// The seed and the public key of the first test vector of RFC 8032, section 7.1.
const SEED: &str = "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60";
const PUBLIC: &str = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a";

/// Returns the text of each document of a case, cut out of the line.
fn documents(case: &Case) -> [Option<String>; 3] {
    ["request", "response", "order"].map(|name| {
        let text = case.tree().at(&format!("/{name}")).map(Tree::text);
        text.filter(|text| text != "null")
    })
}

fn receipt_of(case: &Case, policy: &Policy) -> Receipt {
    let [request, response, record] = documents(case);
    let (request, response) = (request.unwrap(), response.unwrap());
    let documents =
        Documents { request: request.as_bytes(), response: response.as_bytes(), record: record.as_ref().map(|text| text.as_bytes()) };
    Receipt::new(&documents, case.registry, policy).unwrap()
}

fn case() -> Case {
    fixture::<countersign::evm::Evm>("evm-record-bitcoin-v3")
}

fn public() -> [u8; 32] {
    hex::decode(PUBLIC).unwrap().try_into().unwrap()
}

fn signed() -> Receipt {
    let mut receipt = receipt_of(&case(), &Policy::default());
    receipt.sign(&ReceiptKey::parse(SEED).unwrap());
    receipt
}

/// Returns where a receipt differs.
fn differences(receipt: &Receipt, registry: &Registry, signer: Option<[u8; 32]>) -> Vec<String> {
    receipt.check(registry, signer).differences().iter().map(|difference| difference.at.clone()).collect()
}

fn changed(pointer: &str, value: Json) -> Receipt {
    let mut json: Json = serde_json::from_slice(&signed().to_json()).unwrap();
    *json.pointer_mut(pointer).expect(pointer) = value;
    Receipt::from_json(json.to_string().as_bytes()).unwrap()
}

#[test]
fn every_accepted_order_of_every_family_is_proven() {
    fn check(case: &Case) {
        let receipt = receipt_of(case, &Policy::default());
        let read = Receipt::from_json(&receipt.to_json()).unwrap();
        assert_eq!(read, receipt, "{}", case.id);
        assert_eq!(read.check(case.registry, None).differences(), [], "{}", case.id);
        let Verdict::Accepted { family, order_id, warnings, .. } = receipt.verdict() else { panic!("{}", case.id) };
        let expect = case.expect();
        assert_eq!((family, order_id), (&expect["family"].as_str().unwrap().to_owned(), &expect["order_id"].as_str().unwrap().to_owned()));
        for code in expect["warnings"].as_array().into_iter().flatten().filter(|code| **code != "key_not_checked") {
            let approval = code == "unlimited_approval" || code == "approval_above_amount";
            assert!(approval || warnings.iter().any(|warning| *code == **warning), "{}: {code} {warnings:?}", case.id);
        }
        // The hashes that need no wallet are those that other tools computed.
        let (hashes, typed) = (receipt.hashes(), &expect["artefacts"]["typed_data"]);
        for name in ["domain_separator", "struct_hash", "digest", "message_hash"] {
            let (Some(hash), Some(expected)) = (hashes.get(&format!("typed_data_{name}")), typed[name].as_str()) else { continue };
            let digits = expected.trim_start_matches("0x");
            assert_eq!(*hash, format!("{digits:0>64}"), "{}", case.id);
        }
        let gasless = typed["digest"].is_string() || typed["message_hash"].is_string();
        assert!(!gasless || !hashes.is_empty(), "{}", case.id);
    }
    let all = [
        all_fixtures::<countersign::evm::Evm>(),
        all_fixtures::<countersign::tron::Tron>(),
        all_fixtures::<countersign::starknet::Starknet>(),
        all_fixtures::<countersign::solana::Solana>(),
        all_fixtures::<countersign::sui::Sui>(),
        all_fixtures::<countersign::bitcoin::Bitcoin>(),
    ];
    let cases: Vec<_> = all.into_iter().flat_map(Result::unwrap).collect();
    assert!(cases.len() > 400, "{}", cases.len());
    cases.iter().for_each(check);
}

#[test]
fn a_refused_order_has_a_receipt_too() {
    let case = case().replaced("\"status\":\"Ok\"", "\"status\":\"ok\"");
    let receipt = receipt_of(&case, &Policy::default());
    assert_eq!(receipt.verdict().code(), Some("status_not_ok"));
    assert!(receipt.hashes().is_empty() && receipt.check(case.registry, None).is_proven());
    // Whatever the bytes are, they are kept.
    for response in [&b"\xff\x00not JSON"[..], b"", b"[", "\u{202e}\u{0}\"".as_bytes()] {
        let [request, ..] = documents(&case);
        let documents = Documents { request: request.as_ref().unwrap().as_bytes(), response, record: Some(b"{}") };
        let receipt = Receipt::new(&documents, case.registry, &Policy::default()).unwrap();
        assert!(receipt.verdict().code().is_some_and(|code| code.starts_with("json_")), "{receipt:?}");
        let read = Receipt::from_json(&receipt.to_json()).unwrap();
        assert!(read == receipt && read.check(case.registry, None).is_proven(), "{receipt:?}");
    }
}

#[test]
fn the_policy_of_the_receipt_decides_and_not_the_present_one() {
    let case = case();
    let accepted = receipt_of(&case, &Policy::default());
    assert_eq!(accepted.verdict().code(), None);
    let policy: Policy = r#"{"evm_timelock":1}"#.parse().unwrap();
    let refused = receipt_of(&case, &policy);
    assert_eq!(refused.verdict().code(), Some("timelock_too_long"));
    assert!(accepted.check(case.registry, None).is_proven() && refused.check(case.registry, None).is_proven());
}

/// Everything is proven under a policy that permits everything, so the policy is part of what is proven.
#[test]
fn a_receipt_says_under_which_policy_it_is_proven_and_the_checkers_can_be_required() {
    let case = case();
    let own: Policy = r#"{"evm_timelock":1000000000000000,"approvals":"exact"}"#.parse().unwrap();
    let (default, changed) = (receipt_of(&case, &Policy::default()), receipt_of(&case, &own));
    assert_eq!(default.own_limits(), []);
    let limits: Vec<_> = changed.own_limits().iter().map(ToString::to_string).collect();
    // The defaults are those of docs/spec/batch.md.
    assert_eq!(limits, ["approvals \"exact\" (default \"as_proposed\")", "evm_timelock 1000000000000000 (default 86400)"]);
    let at = |receipt: &Receipt, policy: &Policy| {
        let check = receipt.check_with_policy(policy, case.registry, None);
        check.differences().iter().map(|difference| difference.at.clone()).collect::<Vec<_>>()
    };
    assert!(at(&default, &Policy::default()).is_empty() && at(&changed, &own).is_empty());
    assert_eq!(at(&changed, &Policy::default()), ["/policy/approvals", "/policy/evm_timelock"]);
    assert_eq!(at(&default, &own), ["/policy/approvals", "/policy/evm_timelock"]);
}

#[test]
fn another_registry_is_said_to_be_another_one() {
    let other = registry_with(&[("/assets/1/decimals", json!(5))]);
    assert_eq!(differences(&signed(), &other, None), ["/registry"]);
}

#[test]
fn every_part_is_compared() {
    let registry = case().registry;
    let at = |pointer: &str, value: Json| differences(&changed(pointer, value), registry, None);
    // The digest covers every part, so it differs too, and the signature is over the computed digest.
    for (pointer, value, own) in [
        ("/program", json!("countersign 9.9.9"), None),
        ("/verdict/family", json!("tron"), Some("/verdict/family")),
        ("/verdict/summary/0", json!("order: another"), Some("/verdict/summary/0")),
        ("/verdict/warnings", json!(["unlimited_approval"]), Some("/verdict/warnings/0")),
        ("/request/sha256", json!("00"), Some("/request/sha256")),
        ("/hashes", json!({"typed_data_digest": "00"}), Some("/hashes/typed_data_digest")),
        ("/verdict", json!({"ok": false, "code": "amount_zero", "at": "/request"}), Some("/verdict/code")),
    ] {
        let found = at(pointer, value);
        assert_eq!(found[..2], ["/digest", "/signature"], "{pointer}");
        assert!(own.is_none_or(|own| found.iter().any(|at| at == own)), "{pointer}: {found:?}");
    }
    assert_eq!(at("/digest", json!("00")), ["/digest"]);
    assert_eq!(at("/signature", json!("00")), ["/signature"]);
    assert_eq!(at("/public_key", json!("00".repeat(32))), ["/signature"]);
    assert_eq!(at("/public_key", json!(PUBLIC.to_uppercase())), ["/signature"]);
}

#[test]
fn a_signature_names_its_signer() {
    let (receipt, registry) = (signed(), case().registry);
    let check = receipt.check(registry, Some(public()));
    assert!(check.is_proven() && check.signer() == Some(PUBLIC));
    assert_eq!(differences(&receipt, registry, Some([7; 32])), ["/public_key"]);
    let unsigned = receipt_of(&case(), &Policy::default());
    assert_eq!(differences(&unsigned, registry, Some(public())), ["/public_key"]);
    assert_eq!(unsigned.check(registry, None).signer(), None);
    for text in ["", "9d61", &SEED[1..], &format!("{SEED}00"), &SEED.replace('9', "g")] {
        let refusal = ReceiptKey::parse(text).unwrap_err();
        assert!(refusal.code() == Code::KeyMalformed && (text.is_empty() || !refusal.to_string().contains(text)), "{refusal}");
    }
    assert_eq!(ReceiptKey::parse(&format!("0x{SEED}")).unwrap().public_key(), public());
}

/// The digest can be computed without this library: remove three members, write the rest without white space, and hash it.
#[test]
fn python_computes_the_same_digest() {
    let script = "import sys, json, hashlib\nr = json.load(sys.stdin)\nd = r['digest']\n[r.pop(k, None) for k in ('digest', 'public_key', 'signature')]\n\
        b = json.dumps(r, ensure_ascii=False, separators=(',', ':')).encode()\nassert hashlib.sha256(b).hexdigest() == d\nprint(d)";
    let child = Command::new("python3").args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let Ok(mut child) = child else { return countersign_testkit::skipped("python3 is not installed").unwrap() };
    let receipt = signed();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), &receipt.to_json()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap().trim(), receipt.digest());
    assert!(output.status.success());
}

#[test]
fn a_receipt_has_no_key() {
    let [request, response, _] = documents(&case());
    let (request, response) = (request.unwrap(), response.unwrap());
    let with_key = case().input;
    for (at, documents) in [
        ("/request", Documents { request: with_key.as_bytes(), response: response.as_bytes(), record: None }),
        ("/order", Documents { request: request.as_bytes(), response: response.as_bytes(), record: Some(with_key.as_bytes()) }),
    ] {
        let refusal = Receipt::new(&documents, case().registry, &Policy::default()).unwrap_err();
        assert_eq!((refusal.code(), refusal.location()), (Code::UnexpectedField, at));
    }
    // A word in the service's response does not prevent a receipt of what is wrong with it.
    let word = response.replacen("{", r#"{"secret_key":"x","#, 1);
    let documents = Documents { request: request.as_bytes(), response: word.as_bytes(), record: None };
    assert!(Receipt::new(&documents, case().registry, &Policy::default()).is_ok());
    let huge = "x".repeat(MAX_BYTES);
    let documents = Documents { request: huge.as_bytes(), response: response.as_bytes(), record: None };
    assert_eq!(Receipt::new(&documents, case().registry, &Policy::default()).unwrap_err().code(), Code::JsonTooLarge);
}

#[test]
fn malformed_receipts_have_a_code_and_a_place() {
    let good: Json = serde_json::from_slice(&signed().to_json()).unwrap();
    let refused = |pointer: &str, value: Json| {
        let mut json = good.clone();
        countersign_testkit::set(&mut json, pointer, value);
        let refusal = Receipt::from_json(json.to_string().as_bytes()).unwrap_err();
        (refusal.code(), refusal.location().to_owned())
    };
    for (pointer, value, code, at) in [
        ("/format", json!("receipt"), Code::WrongType, "/format"),
        ("/version", json!(2), Code::WrongType, "/version"),
        ("/note", json!("x"), Code::UnexpectedField, "/note"),
        ("/verdict/ok", json!("true"), Code::WrongType, "/verdict/ok"),
        ("/verdict/code", json!("x"), Code::UnexpectedField, "/verdict/code"),
        ("/request/base64", json!("AA=="), Code::WrongType, "/request"),
        ("/request/text", json!(null), Code::WrongType, "/request"),
        ("/policy", json!("{\"evm_timelock\":\"x\"}"), Code::WrongType, "/policy/evm_timelock"),
        ("/signature", json!(null), Code::MissingField, ""),
        ("/digest", json!(null), Code::MissingField, "/digest"),
    ] {
        assert_eq!(refused(pointer, value), (code, at.to_owned()), "{pointer}");
    }
}

/// Anybody can compute a digest, so a receipt is free text wherever it differs, and its program even where it does not.
#[test]
fn free_text_of_a_receipt_is_quoted_in_every_language() {
    let forged = "<img onerror=x>  \u{202e}signer\nproven\"";
    let quoted = r#""<img onerror=x> \u{0020}\u{202e}signer\u{000a}proven\u{0022}""#;
    let registry = case().registry;
    let check = |receipt: &[u8]| border::check_receipt(receipt, registry, None, None).unwrap();
    let own = check(&signed().to_json());
    assert!(own.is_proven && own.program == format!("countersign {}", env!("CARGO_PKG_VERSION")) && own.digest.len() == 64, "{own:?}");
    // With the right digest, and without a signature, it is proven.
    let mut json: Json = serde_json::from_slice(&receipt_of(&case(), &Policy::default()).to_json()).unwrap();
    json["program"] = json!(forged);
    let computed = Receipt::from_json(json.to_string().as_bytes()).unwrap().check(registry, None).differences()[0].computed.clone();
    json["digest"] = json!(computed);
    let proven = check(json.to_string().as_bytes());
    assert!(proven.is_proven && proven.program == quoted, "{proven:?}");
    json["digest"] = json!(forged);
    json["hashes"] = json!({ forged: forged });
    json["request"]["sha256"] = json!(forged);
    let differs = check(json.to_string().as_bytes());
    assert_eq!((differs.is_proven, &*differs.digest), (false, quoted));
    assert!(differs.differences.len() >= 3, "{differs:?}");
    for difference in &differs.differences {
        for text in [&difference.at, &difference.receipt, &difference.computed] {
            let is_harmless = text
                .chars()
                .all(|character| character == ' ' || !(character.is_whitespace() || character.is_control() || character == '\u{202e}'));
            assert!(is_harmless && !text.contains("  ") && text.chars().count() < 200, "{text}");
        }
    }
}

static GOOD: LazyLock<(Receipt, Vec<u8>)> = LazyLock::new(|| (signed(), signed().to_json()));
static UNSIGNED: LazyLock<(Receipt, Vec<u8>)> = LazyLock::new(|| {
    let receipt = receipt_of(&case(), &Policy::default());
    (receipt.clone(), receipt.to_json())
});

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn any_bytes_are_answered(bytes: Vec<u8>, text: String) {
        let _ = Receipt::from_json(&bytes);
        let _ = Receipt::from_json(text.as_bytes());
    }

    /// Whatever one byte becomes: the receipt is refused, or differs, or has the same content.
    #[test]
    fn one_changed_byte_proves_nothing_else(signed: bool, at: prop::sample::Index, byte: u8) {
        let (receipt, bytes) = if signed { &*GOOD } else { &*UNSIGNED };
        let (mut other, at) = (bytes.clone(), at.index(bytes.len()));
        other[at] = byte;
        if let Ok(read) = Receipt::from_json(&other) {
            let check = read.check(case().registry, None);
            prop_assert!(!check.is_proven() || read == *receipt);
        }
    }

    #[test]
    fn one_missing_byte_proves_nothing_else(at: prop::sample::Index) {
        let (receipt, bytes) = &*GOOD;
        let (mut other, at) = (bytes.clone(), at.index(bytes.len()));
        other.remove(at);
        if let Ok(read) = Receipt::from_json(&other) {
            prop_assert!(!read.check(case().registry, None).is_proven() || read == *receipt);
        }
    }

    /// Documents of any bytes are kept, hashed and judged the same again.
    #[test]
    fn any_documents_are_proven(request: Vec<u8>, response: Vec<u8>, record: Option<String>) {
        let documents = Documents { request: &request, response: &response, record: record.as_ref().map(|text| text.as_bytes()) };
        let receipt = Receipt::new(&documents, case().registry, &Policy::default()).unwrap();
        let read = Receipt::from_json(&receipt.to_json()).unwrap();
        prop_assert!(read == receipt && read.check(case().registry, None).is_proven());
        let json: Json = serde_json::from_slice(&receipt.to_json()).unwrap();
        let sha256: String = Sha256::digest(&request).iter().map(|byte| format!("{byte:02x}")).collect();
        prop_assert_eq!(&json["request"]["sha256"], &json!(sha256));
    }
}
