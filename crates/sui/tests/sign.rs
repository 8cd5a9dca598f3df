//! Signing: the requests, the accepted signatures, and the artefacts for nodes.

use crate::support;

use std::collections::HashSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use countersign_core::{Code, Policy, Refusal, RequestId, Role, Scheme, Severity};
use countersign_sui::sui_sdk_types::UserSignature;
use countersign_sui::{ExternalSignature, Key, Sui, TxContext, UnsignedOrder, received};
use countersign_testkit::{
    Case, TestResult, artefacts, attach as attach_json, fixture, fixtures, outcome, verified, verified_under, wallet,
};
use serde_json::{Value as Json, json};
use support::{outside, outside_case};

fn prepared(case: &Case) -> UnsignedOrder {
    verified::<Sui>(case).prepare(wallet::<Sui>(case)).unwrap_or_else(|refusal| panic!("{}: {refusal}", case.id))
}

fn attach(case: &Case, given: &[(&str, &Json)]) -> Result<UnsignedOrder, Refusal> {
    let mut unsigned = prepared(case);
    attach_json(&mut unsigned, &given.iter().map(|(name, text)| ((*name).to_owned(), (*text).clone())).collect())?;
    Ok(unsigned)
}

fn signature(text: &Json) -> ExternalSignature {
    text.as_str().expect("text").parse().expect("a signature")
}

fn expected(case: &Case) -> Json {
    case.expect()["artefacts"]["transaction"].clone()
}

#[test]
fn requests_name_owner_payload_and_digest() -> TestResult {
    let case = fixture::<Sui>("sui-sponsor");
    let requests = prepared(&case).requests();
    let (wanted, line) = (expected(&case), case.json());
    let signers = [("transaction", &line["request"]["source"]["owner"]), ("sponsor", &line["wallet"]["sponsor"])];
    assert_eq!(requests.len(), 2);
    for (request, (name, signer)) in requests.iter().zip(signers) {
        assert_eq!((request.id.name().as_ref(), request.scheme), (name, Scheme::Sui));
        assert_eq!(*signer, request.signer);
        assert_eq!(wanted["signing_digest"], hex(&request.digest));
        let data = STANDARD.decode(wanted["transaction_data"].as_str().ok_or("no data")?)?;
        assert_eq!(request.message, [&[0; 3], data.as_slice()].concat());
        assert_eq!(bcs::to_bytes(&request.payload)?, data);
    }
    Ok(())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn signatures_of_every_simple_scheme_are_proven() -> TestResult {
    let mut schemes = HashSet::new();
    for case in fixtures::<Sui>()? {
        let wanted = expected(&case);
        let text = &wanted["signature"];
        if text.is_null() || !case.json()["wallet"]["sponsor"].is_null() {
            continue;
        }
        schemes.insert(signature(text).inner().scheme().name());
        let unsigned = attach(&case, &[("transaction", text)])?;
        assert_eq!(artefacts(&unsigned)["transaction"], wanted, "{}", case.id);
        let signed = unsigned.finish()?;
        let execution = serde_json::to_value(signed.payloads().execution())?;
        assert_eq!(execution, json!({ "tx_bytes": wanted["transaction_data"], "signatures": [text] }));
        let transactions = signed.transactions();
        let [transaction] = transactions.as_slice() else { panic!("one transaction") };
        assert_eq!((transaction.role, json!(transaction.id)), (Role::Initiate, wanted["tx_digest"].clone()));
        assert_eq!(transaction.bytes, bcs::to_bytes(&transaction.native)?);
        assert_eq!(wanted["transaction_data"], STANDARD.encode(bcs::to_bytes(&transaction.native.transaction)?));
        assert_eq!(transaction.native.transaction.digest().to_base58(), transaction.id);
        assert_eq!(transaction.native.signatures, [signature(text).inner().clone()]);
        assert!(signed.gasless().is_none());
    }
    assert_eq!(schemes.len(), 3, "{schemes:?}");
    Ok(())
}

#[test]
fn what_is_not_signed_stays_unsigned() {
    let unsigned = prepared(&fixture::<Sui>("sui-native"));
    assert_eq!(unsigned.missing(), [RequestId::Transaction]);
    assert!(artefacts(&unsigned)["transaction"].get("signature").is_none());
    let incomplete = unsigned.finish().expect_err("nothing is signed");
    assert_eq!(incomplete.missing(), [RequestId::Transaction]);
}

#[test]
fn a_sponsored_transaction_needs_two_signatures() -> TestResult {
    let outside = outside();
    let sponsored = &outside["sponsor"];
    let case = outside_case(sponsored);
    let (owner, sponsor) = (&sponsored["signatures"]["transaction"], &sponsored["signatures"]["sponsor"]);
    let half = attach(&case, &[("transaction", owner)])?;
    assert_eq!(half.missing(), [RequestId::Sponsor]);
    // The sponsor may sign later, or first.
    let mut unsigned = half.finish().expect_err("the sponsor's signature is missing").into_unsigned();
    unsigned.attach(RequestId::Sponsor, signature(sponsor))?;
    let both = attach(&case, &[("sponsor", sponsor), ("transaction", owner)])?;
    let lines = both.summary().to_string();
    assert!(lines.contains("who signs too") && lines.contains("the amount is also split from the sponsor's coins"), "{lines}");
    for signed in [unsigned.finish()?, both.finish()?] {
        let execution = serde_json::to_value(signed.payloads().execution())?;
        assert_eq!(execution, json!({ "tx_bytes": sponsored["expect"]["transaction_data"], "signatures": [owner, sponsor] }));
        assert_eq!(signed.transactions().len(), 1);
    }
    for (name, signature) in [("sponsor", owner), ("transaction", sponsor)] {
        let refusal = attach(&case, &[(name, signature)]).expect_err(name);
        assert_eq!((refusal.code(), refusal.location()), (Code::SignatureMismatch, &*format!("/signatures/{name}")));
    }
    Ok(())
}

#[test]
fn a_local_key_signs_for_whichever_account_it_controls() -> TestResult {
    let case = fixture::<Sui>("sui-native");
    let sender: Key = case.secret_key().ok_or("no key")?.parse()?;
    let sponsor = Key::from_ed25519_seed(&[7; 32]);
    let TxContext { price, budget, payment, .. } = wallet::<Sui>(&case);
    let gas = TxContext::sponsored(sponsor.address(), price, budget, payment);
    assert_eq!(gas.clone().with_sponsor(sponsor.address()), gas);
    let mut unsigned = verified::<Sui>(&case).prepare(gas)?;
    unsigned.sign(&sponsor)?;
    assert_eq!(unsigned.missing(), [RequestId::Transaction]);
    let refusal = unsigned.sign(&Key::from_ed25519_seed(&[8; 32])).expect_err("neither sender nor sponsor");
    assert_eq!((refusal.code(), refusal.location()), (Code::KeyMismatch, ""));
    assert_eq!(unsigned.missing(), [RequestId::Transaction], "a refused key changes nothing");
    unsigned.sign(&sender)?;
    let signers: Vec<_> = unsigned.finish()?.payloads().signatures().iter().flat_map(UserSignature::derive_addresses).collect();
    assert_eq!(signers, [sender.address(), sponsor.address()]);
    Ok(())
}

/// The key in the JSON of a batch case must be the sender's. An order that only the sponsor has signed would look complete.
#[test]
fn the_key_of_a_case_is_the_senders() -> TestResult {
    let case = fixture::<Sui>("sui-native");
    let mut line = case.json();
    let sponsor = Key::from_ed25519_seed(&[7; 32]).address();
    line["wallet"]["sponsor"] = sponsor.to_string().into();
    assert_eq!(outcome::<Sui>(&case.with_input(line.to_string()))?["artefacts"]["transaction"].get("sponsor_signature"), None);
    line["wallet"]["secret_key"] = "07".repeat(32).into();
    let refusal = outcome::<Sui>(&case.with_input(line.to_string())).expect_err("the sponsor's key");
    assert_eq!((refusal.code(), refusal.location()), (Code::KeyMismatch, "/wallet/secret_key"));
    assert_eq!(refusal.actual().map(ToString::to_string), Some(format!("the key of {sponsor}")));
    Ok(())
}

#[test]
fn signatures_that_only_the_network_proves_pass_with_a_warning() -> TestResult {
    let outside = outside();
    for (scheme, other) in [("multisig", "zklogin"), ("zklogin", "multisig")] {
        let case = outside_case(&outside[scheme]);
        let signature = &outside[scheme]["signature"];
        let unsigned = attach(&case, &[("transaction", signature)])?;
        let warning = unsigned.warnings().list().iter().find(|warning| warning.code() == Code::SignatureUnverified).ok_or("no warning")?;
        assert_eq!(warning.detail(), Some(scheme));
        let mut wanted = outside[scheme]["expect"].clone();
        wanted["signature"] = signature.clone();
        assert_eq!(artefacts(&unsigned)["transaction"], wanted);
        let refusal = attach(&case, &[("transaction", &outside[other]["signature"])]).expect_err("another account's");
        assert_eq!(refusal.code(), Code::SignatureMismatch);
    }
    Ok(())
}

/// Returns the order of secp256r1 or secp256k1 minus s.
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

/// Key services return either form. The lower one is as valid, and validators take no other.
#[test]
fn a_high_s_is_lowered_and_then_proven() -> TestResult {
    for id in ["sui-secp256k1", "sui-secp256r1"] {
        let case = fixture::<Sui>(id);
        let wanted = expected(&case);
        let of = |expected: &Json| STANDARD.decode(expected["signature"].as_str().expect("a signature")).map(|bytes| flip_s(&bytes));
        let high = json!(STANDARD.encode(of(&wanted)?));
        assert_eq!(artefacts(&attach(&case, &[("transaction", &high)])?)["transaction"], wanted, "{id}");
        let mut over_another = of(&wanted)?;
        over_another[1] ^= 1;
        let refusal = attach(&case, &[("transaction", &json!(STANDARD.encode(over_another)))]).expect_err(id);
        assert_eq!(refusal.code(), Code::SignatureMismatch, "{id}");
        // A whole transaction with it is not executed by any node.
        let execution = json!({ "tx_bytes": wanted["transaction_data"], "signatures": [high] }).to_string();
        let refusal = received::from_json(execution.as_bytes()).expect_err(id);
        assert_eq!((refusal.code(), refusal.location()), (Code::SignatureHighS, "/signatures/0"), "{id}");
    }
    Ok(())
}

#[test]
fn refuses_signatures_that_prove_nothing() -> TestResult {
    for id in ["sui-native", "sui-secp256k1", "sui-secp256r1"] {
        let case = fixture::<Sui>(id);
        let text = expected(&case)["signature"].as_str().ok_or("no signature")?.to_owned();
        let signature = STANDARD.decode(&text)?;
        let encode = |bytes: &[u8]| json!(STANDARD.encode(bytes));
        let another = expected(&fixture::<Sui>("sui-key-hex"))["signature"].clone();
        let cases = [
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
    let good = fixture::<Sui>("sui-native").json()["wallet"]["secret_key"].as_str().ok_or("no key")?.to_owned();
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
        assert_eq!(text.parse::<Key>().expect_err(&text).code(), Code::KeyMalformed, "{text}");
    }
    assert!(good.to_uppercase().parse::<Key>().is_ok(), "bech32 in one case");
    let case = fixture::<Sui>("sui-native");
    let mut line = case.json();
    line["wallet"]["secret_key"] = "11".repeat(32).into();
    let refusal = outcome::<Sui>(&case.with_input(line.to_string())).expect_err("another key");
    assert_eq!((refusal.code(), refusal.location()), (Code::KeyMismatch, "/wallet/secret_key"));
    assert!(!refusal.to_string().contains("1111"));
    Ok(())
}

#[test]
fn scalars_that_are_not_keys_are_refused() {
    use bech32::{Bech32, Hrp};
    let hrp = Hrp::parse("suiprivkey").expect("an hrp");
    let order =
        |digits: &str| (0..32).map(|index| u8::from_str_radix(&digits[index * 2..index * 2 + 2], 16).expect("hex")).collect::<Vec<_>>();
    let k1 = order("fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141");
    let r1 = order("ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551");
    for (flag, scalar) in [(1, vec![0; 32]), (2, vec![0; 32]), (1, k1), (2, r1), (2, vec![0xff; 32]), (3, vec![7; 32]), (0, vec![7; 31])] {
        let text = bech32::encode::<Bech32>(hrp, &[&[flag], &scalar[..]].concat()).expect("encodes");
        assert_eq!(text.parse::<Key>().expect_err("not a key").code(), Code::KeyMalformed, "{flag} {scalar:?}");
    }
    let text = bech32::encode::<bech32::Bech32m>(hrp, &[7; 33]).expect("encodes");
    assert!(text.parse::<Key>().is_err(), "another checksum");
}

#[test]
fn neither_key_nor_secret_is_ever_printed() {
    let case = fixture::<Sui>("sui-key-hex");
    let secret = case.secret_key().expect("a key");
    let key: Key = secret.parse().expect("a key");
    let mut unsigned = prepared(&case);
    unsigned.sign(&key).expect("signs");
    let signed = unsigned.finish().expect("complete");
    assert!(!format!("{key:?} {signed:?}").contains(&secret));
    assert_eq!(secret[1..].parse::<Key>().expect_err("63 digits").code(), Code::KeyMalformed);
}

#[test]
fn the_context_and_the_signatures_survive_a_restart() -> countersign_testkit::TestResult {
    countersign_testkit::restart::the_context_and_the_signatures_survive::<Sui>()
}

/// A deposit in SUI whose amount is split from the gas coins takes it from whoever owns them. One that is withdrawn from the owner's address
/// balance takes only gas from the sponsor.
#[test]
fn a_sponsor_that_pays_the_deposit_is_a_danger() -> TestResult {
    let sponsor = Key::from_ed25519_seed(&[7; 32]).address();
    for (id, splits) in [("sui-native", true), ("sui-balance-redeemed", false)] {
        let case = fixture::<Sui>(id);
        let gas = wallet::<Sui>(&case);
        let order = verified::<Sui>(&case);
        let sender = order.deposit().sender;
        let warned = |gas: TxContext| {
            let unsigned = order.prepare(gas).unwrap_or_else(|refusal| panic!("{id}: {refusal}"));
            let found = unsigned.warnings().list().iter().find(|warning| warning.code() == Code::SponsorPaysDeposit).cloned();
            found.map(|warning| (warning.severity(), warning.message()))
        };
        let paid = warned(gas.clone().with_sponsor(sponsor));
        assert_eq!(paid.is_some(), splits, "{id}");
        if let Some((severity, message)) = paid {
            assert_eq!(severity, Severity::Danger);
            assert!(message.contains("3 SUI") && message.contains(&sponsor.to_string()), "{message}");
        }
        // Without a sponsor, or if the owner is named as one, it is the owner's own money.
        assert_eq!((warned(gas.clone()), warned(gas.clone().with_sponsor(sender))), (None, None), "{id}");
        // A policy may refuse it.
        let policy = Policy::default().refusing(Code::SponsorPaysDeposit);
        let refused = verified_under::<Sui>(&case, case.registry, &policy)?.prepare(gas.with_sponsor(sponsor)).map(drop);
        assert_eq!(refused.map_err(|refusal| refusal.code()), if splits { Err(Code::WarningRefused) } else { Ok(()) }, "{id}");
    }
    Ok(())
}
