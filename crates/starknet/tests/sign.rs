//! Signing: the requests, the accepted signatures, and the artefacts for nodes and the service.

use countersign_core::{Code, Policy, Refusal, Registry, RequestId, Role, Scheme, U256};
use countersign_starknet::{Felt, Gasless, Key, KeyedPath, Payload, SignedOrder, Starknet, UnsignedOrder, felt};
use countersign_testkit::{
    Case, TestResult, artefacts as written, asset_index, attach as attach_json, fixture, key, outcome, outcome_under, registry_with,
    verified, verified_under, wallet,
};
use serde_json::{Value as Json, json};
use starknet_crypto::poseidon_hash_many;

/// A case whose wallet gives the account's public key.
const CASE: &str = "starknet-public-key";

fn prepared(case: &Case) -> UnsignedOrder {
    verified::<Starknet>(case).prepare(wallet::<Starknet>(case)).unwrap_or_else(|refusal| panic!("{}: {refusal}", case.id))
}

fn attach(case: &Case, given: &[(&str, Json)]) -> Result<UnsignedOrder, Refusal> {
    let mut unsigned = prepared(case);
    let given: serde_json::Map<_, _> = given.iter().map(|(name, signature)| ((*name).to_owned(), signature.clone())).collect();
    attach_json(&mut unsigned, &Json::Object(given))?;
    Ok(unsigned)
}

fn signed(case: &Case) -> SignedOrder {
    let mut unsigned = prepared(case);
    unsigned.sign(&key::<Starknet>(case)).expect("signs");
    unsigned.finish().expect("complete")
}

fn artefacts(case: &Case) -> Json {
    case.whole().expect("JSON")["expect"]["artefacts"].clone()
}

/// r and s that the fixture expects, as numbers.
fn expected(case: &Case, name: &str) -> [U256; 2] {
    let signature = artefacts(case)[name]["signature"].clone();
    [0, 1].map(|index| U256::from_str_radix(&signature[index].as_str().expect("a felt")[2..], 16).expect("hex"))
}

fn codes(order: &UnsignedOrder) -> Vec<Code> {
    order.warnings().list().iter().map(|warning| warning.code()).collect()
}

#[test]
fn requests_name_signer_payload_and_digest() -> TestResult {
    let case = fixture::<Starknet>(CASE);
    let requests = prepared(&case).requests();
    let artefacts = artefacts(&case);
    for (request, (name, hash)) in requests.iter().zip([("invoke", "tx_hash"), ("typed_data", "message_hash")]) {
        assert_eq!((request.id.name().as_ref(), request.scheme), (name, Scheme::Stark));
        assert_eq!(request.signer, case.json()["request"]["source"]["owner"]);
        // The message is the preimage of the digest, felt by felt.
        let felts: Vec<_> = request.message.chunks(32).map(Felt::from_bytes_be_slice).collect();
        let digest = poseidon_hash_many(&felts);
        assert_eq!(request.digest, digest.to_bytes_be());
        assert_eq!(artefacts[name][hash], format!("{digest:#x}"));
    }
    let [Payload::Invoke(invoke), Payload::TypedData(typed_data)] = [0, 1].map(|index| requests[index].payload.clone()) else {
        panic!("{requests:?}")
    };
    assert_eq!(invoke.encoding.encode(&invoke.calls), invoke.transaction.calldata);
    assert!(invoke.transaction.signature.is_empty());
    assert_eq!(typed_data["domain"], json!({ "name": "HTLC", "version": "0x31", "chainId": "0x534e5f4d41494e", "revision": "1" }));
    assert_eq!(requests.len(), 2);
    let delegate = fixture::<Starknet>("starknet-delegate");
    let requests = prepared(&delegate).requests();
    assert_eq!(
        requests.iter().map(|request| (request.id, request.signer.as_str())).collect::<Vec<_>>(),
        [(RequestId::Invoke, delegate.json()["request"]["source"]["delegate"].as_str().ok_or("no delegate")?)]
    );
    Ok(())
}

#[test]
fn takes_every_spelling_of_a_signature() -> TestResult {
    let case = fixture::<Starknet>(CASE);
    let spellings: [fn([U256; 2]) -> Json; 8] = [
        // starknet.js returns the object of the curve's library.
        |[r, s]| json!({ "recovery": 0, "s": s.to_string(), "r": r.to_string() }),
        |[r, s]| json!(format!(" {r:#x}, {s:#X}\n").replace("0X", "0x")),
        |[r, s]| json!(format!("[\"{r}\", \"{s:#x}\"]")),
        |[r, s]| json!([format!("{r:#x}"), format!("{s:#x}")]),
        |[r, s]| json!([format!("{r:#066x}"), s.to_string()]),
        |[r, s]| json!({ "r": format!("{r:#x}"), "s": s.to_string() }),
        |[r, s]| json!(format!("{r},{s}")),
        |[r, s]| json!(format!("{r:#x},{s:#x}")),
    ];
    for spell in spellings {
        let given = ["invoke", "typed_data"].map(|name| (name, spell(expected(&case, name))));
        let signed = attach(&case, &given)?;
        assert_eq!(written(&signed), artefacts(&case));
        assert_eq!(codes(&signed), [Code::NoOrderRecord]);
    }
    Ok(())
}

#[test]
fn what_is_not_signed_stays_unsigned() -> TestResult {
    let case = fixture::<Starknet>(CASE);
    let [r, s] = expected(&case, "typed_data");
    let signed = attach(&case, &[("typed_data", json!([format!("{r:#x}"), format!("{s:#x}")]))])?;
    assert!(signed.payloads().invoke.as_ref().is_some_and(|payload| payload.signature.is_none()));
    let incomplete = signed.finish().expect_err("the transaction is not signed");
    assert_eq!(incomplete.missing(), [RequestId::Invoke]);
    // Attached signatures are kept: the other one may be attached later, and a wrong one changes nothing.
    let mut unsigned = incomplete.into_unsigned();
    let refusal = unsigned.attach(RequestId::Invoke, [Felt::ONE, Felt::TWO]).expect_err("another signature");
    assert_eq!((refusal.code(), refusal.location()), (Code::SignatureMismatch, ""));
    assert_eq!(unsigned.missing(), [RequestId::Invoke]);
    let [r_of_invoke, s_of_invoke] = expected(&case, "invoke");
    unsigned.attach_text(RequestId::Invoke, &format!("{r_of_invoke},{s_of_invoke}"))?;
    assert_eq!(written(&unsigned), artefacts(&case));
    assert_eq!(serde_json::to_value(unsigned.finish()?.gasless())?, json!({ "signature": format!("{r},{s}") }));
    Ok(())
}

#[test]
fn the_gasless_path_needs_neither_nonce_nor_fees() -> TestResult {
    let case = fixture::<Starknet>(CASE);
    let (order, key) = (verified::<Starknet>(&case), key::<Starknet>(&case));
    for (path, codes_of_path) in [
        (KeyedPath::gasless(key.public_key()), vec![Code::NoOrderRecord]),
        (Gasless.into(), vec![Code::NoOrderRecord, Code::KeyNotChecked]),
    ] {
        let mut unsigned = order.prepare(path)?;
        assert_eq!(unsigned.missing(), [RequestId::TypedData]);
        unsigned.sign(&key)?;
        assert_eq!(codes(&unsigned), codes_of_path);
        let signed = unsigned.finish()?;
        let [r, s] = expected(&case, "typed_data");
        assert_eq!(signed.gasless().ok_or("no submission")?.signature, format!("{r},{s}"));
        assert!(signed.transactions().is_empty());
    }
    let mut unsigned = order.prepare(KeyedPath::gasless(Felt::ONE))?;
    assert_eq!(unsigned.sign(&key).expect_err("another key").code(), Code::KeyMismatch);
    let refusal = verified::<Starknet>(&fixture::<Starknet>("starknet-typed-data-null")).prepare(Gasless).expect_err("no message");
    assert_eq!((refusal.code(), refusal.location()), (Code::NothingToSign, ""));
    Ok(())
}

#[test]
fn accounts_with_longer_signatures_pass_whole() -> TestResult {
    let case = fixture::<Starknet>(CASE);
    let felts = json!(["0x1", "2", 3, "0x4", "0x5"]);
    let signed = attach(&case, &[("typed_data", felts.clone()), ("invoke", felts)])?;
    assert_eq!(codes(&signed), [Code::NoOrderRecord, Code::ContractSignatureUnverified]);
    let artefacts = written(&signed);
    assert_eq!(artefacts["typed_data"]["signature"], json!(["0x1", "0x2", "0x3", "0x4", "0x5"]));
    let signed = signed.finish()?;
    assert_eq!(signed.gasless().map(|body| body.signature).as_deref(), Some("1,2,3,4,5"));
    assert_eq!(serde_json::to_value(&signed.transactions()[0].native)?["signature"], artefacts["invoke"]["signature"]);

    // Without the public key, r and s cannot be proven either.
    let unknown = fixture::<Starknet>("starknet-approval-exact");
    let signed = attach(&unknown, &[("invoke", json!(["0x1", "0x2"]))])?;
    assert_eq!(codes(&signed), [Code::NoOrderRecord, Code::ContractSignatureUnverified]);
    Ok(())
}

#[test]
fn refuses_signatures_that_prove_nothing() {
    let case = fixture::<Starknet>(CASE);
    let pair = |[r, s]: [U256; 2]| json!([format!("{r:#x}"), format!("{s:#x}")]);
    let (invoke, typed) = (expected(&case, "invoke"), expected(&case, "typed_data"));
    let other = expected(&fixture::<Starknet>("starknet-approval-exact"), "invoke");
    let prime = "0x800000000000011000000000000000000000000000000000000000000000001";
    for (name, signature, code) in [
        ("invoke", pair(typed), Code::SignatureMismatch),
        ("typed_data", pair(invoke), Code::SignatureMismatch),
        ("invoke", pair(other), Code::SignatureMismatch),
        ("invoke", pair([invoke[1], invoke[0]]), Code::SignatureMismatch),
        ("invoke", json!(["0x0", "0x0"]), Code::SignatureMismatch),
        ("invoke", json!(["0x1", "0x0"]), Code::SignatureMismatch),
        ("invoke", json!([]), Code::SignatureMalformed),
        ("invoke", json!(["0x1"]), Code::SignatureMalformed),
        ("invoke", json!(null), Code::SignatureMalformed),
        ("invoke", json!(true), Code::SignatureMalformed),
        ("invoke", json!(vec!["0x1"; 1025]), Code::SignatureMalformed),
        ("invoke", json!(vec!["1"; 1025].join(",")), Code::SignatureMalformed),
        ("invoke", json!(""), Code::DecimalEmpty),
        ("invoke", json!("1,"), Code::DecimalEmpty),
        ("invoke", json!("1 2"), Code::DecimalSpace),
        ("invoke", json!({ "r": "0x1", "s": "0x1", "recovery": "x" }), Code::DecimalDigit),
        ("invoke", json!([prime, "0x1"]), Code::FeltOutOfRange),
        ("invoke", json!(format!("{prime},0x1")), Code::FeltOutOfRange),
        ("invoke", json!({ "r": "0x1" }), Code::MissingField),
        ("invoke", json!({ "r": "0x1", "s": "0x1", "v": "0x1" }), Code::UnexpectedField),
        ("approval", pair(invoke), Code::NothingToSign),
    ] {
        let refusal = attach(&case, &[(name, signature.clone())]).expect_err(name);
        assert_eq!(refusal.code(), code, "{name} {signature}: {refusal}");
    }
    for bit in 0..251 {
        for half in 0..2 {
            let mut changed = typed;
            changed[half] ^= U256::ONE << bit;
            assert!(attach(&case, &[("typed_data", pair(changed))]).is_err(), "{half} {bit}");
        }
    }
}

#[test]
fn a_refusal_says_over_what_the_account_signed() -> TestResult {
    let case = fixture::<Starknet>(CASE);
    let (key, unsigned) = (key::<Starknet>(&case), prepared(&case));
    let payloads = unsigned.payloads();
    let (invoke, message) = payloads.invoke.as_ref().zip(payloads.message.as_ref()).ok_or("both payloads")?;
    let sepolia = felt::from_short_string("SN_SEPOLIA")?;
    let (mut number, mut elsewhere) = (message.message.domain, message.message.domain);
    (number.version, elsewhere.chain_id) = (Felt::ONE, sepolia);
    let hash = |domain: &countersign_starknet::message::Domain| {
        let prefix = felt::from_short_string("StarkNet Message").unwrap_or_default();
        poseidon_hash_many(&[prefix, domain.hash(), message.hashes.signer, message.hashes.struct_hash])
    };
    for (name, signed, says) in [
        ("invoke", message.hashes.message_hash, "the signature for typed_data"),
        ("typed_data", invoke.invoke.hashes.tx_hash, "the signature for invoke"),
        ("invoke", invoke.invoke.transaction.hashes(sepolia).tx_hash, "another chain, SN_SEPOLIA"),
        ("typed_data", hash(&elsewhere), "another chain, SN_SEPOLIA"),
        ("typed_data", hash(&number), "the domain's version as a number"),
    ] {
        let [r, s] = key.sign(&signed)?;
        let refusal = attach(&case, &[(name, json!([format!("{r:#x}"), format!("{s:#x}")]))]).expect_err(says);
        assert_eq!((refusal.code(), refusal.blame()), (Code::SignatureMismatch, countersign_core::Blame::Caller));
        assert!(refusal.reason().contains(says), "{refusal}");
        assert!(refusal.actual().is_some_and(|actual| actual.to_string().ends_with(&format!("{signed:#x}"))), "{refusal}");
    }
    Ok(())
}

/// The owner of a key can choose r so that the curve library's verification meets the point at infinity, where it panics.
#[test]
fn a_signature_at_infinity_is_a_mismatch() {
    let case = fixture::<Starknet>(CASE);
    let order = "0800000000000010ffffffffffffffffb781126dcae7b2321e66a241adc64d2f";
    let order = U256::from_str_radix(order, 16).expect("hex");
    let number = |text: &Json| U256::from_str_radix(&text.as_str().expect("hex")[2..], 16).expect("hex");
    let secret = number(&case.json()["wallet"]["secret_key"]);
    let inverse = secret.inv_mod(order).expect("a prime order");
    let hash = number(&artefacts(&case)["invoke"]["tx_hash"]);
    let r = hash.mul_mod(inverse, order);
    for r in [r, order - r] {
        let refusal = attach(&case, &[("invoke", json!([format!("{r:#x}"), "0x5"]))]).expect_err("infinity");
        assert_eq!(refusal.code(), Code::SignatureMismatch);
    }
}

#[test]
fn a_public_key_that_is_none_proves_nothing() {
    let case = fixture::<Starknet>(CASE);
    let [r, s] = expected(&case, "invoke");
    let mut line = case.json();
    line["wallet"]["public_key"] = json!("0x5");
    let refusal = attach(&case.with_input(line.to_string()), &[("invoke", json!(format!("{r},{s}")))]).expect_err("another key");
    assert_eq!(refusal.code(), Code::SignatureMismatch);
}

#[test]
fn nodes_take_the_transaction() -> TestResult {
    let case = fixture::<Starknet>("starknet-paymaster-and-deployment");
    let (artefacts, input) = (artefacts(&case), case.json());
    let [sent] = signed(&case).transactions().try_into().map_err(|_| "one transaction")?;
    assert_eq!((sent.role, &sent.bytes), (Role::Initiate, &serde_json::to_vec(&sent.native)?), "nodes take JSON");
    assert_eq!(sent.id, artefacts["invoke"]["tx_hash"]);
    let broadcast = serde_json::to_value(&sent.native)?;
    let bounds = &input["wallet"]["resource_bounds"];
    assert_eq!(
        broadcast,
        json!({
            "type": "INVOKE",
            "version": "0x3",
            "sender_address": format!("0x{}", input["request"]["source"]["owner"].as_str().ok_or("no owner")?[2..].trim_start_matches('0')),
            "calldata": artefacts["invoke"]["calldata"],
            "signature": artefacts["invoke"]["signature"],
            "nonce": input["wallet"]["nonce"],
            "resource_bounds": bounds,
            "tip": "0x0",
            "paymaster_data": ["0x1", "0x2", "0x3"],
            "account_deployment_data": ["0xabc", "0x5", "0x0"],
            "nonce_data_availability_mode": "L2",
            "fee_data_availability_mode": "L2",
        })
    );
    Ok(())
}

#[test]
fn a_policy_rewrites_unlimited_approvals() -> TestResult {
    let case = fixture::<Starknet>("starknet-approval-unlimited");
    let policy = Policy::from_json(br#"{"approvals":"exact"}"#)?;
    let unsigned = verified_under::<Starknet>(&case, case.registry, &policy)?.prepare(wallet::<Starknet>(&case))?;
    let calldata = &unsigned.payloads().invoke.as_ref().ok_or("no transaction")?.invoke.transaction.calldata;
    assert_eq!(calldata[5..7], [Felt::from(1_250_000), Felt::ZERO]);
    assert!(unsigned.summary().to_string().contains("rewritten from every token"));
    assert_eq!(codes(&unsigned), [Code::NoOrderRecord]);
    let strict = Policy::from_json(br#"{"approvals":"refuse_inexact"}"#)?;
    let refusal = outcome_under::<Starknet>(&case, case.registry, &strict).expect_err("not exact");
    assert_eq!((refusal.code(), refusal.location()), (Code::ApprovalNotExact, "/response/result/approval_transaction/calldata/1"));
    Ok(())
}

#[test]
fn keys_are_below_the_curve_order() {
    let order = "0x800000000000010ffffffffffffffffb781126dcae7b2321e66a241adc64d2f";
    let below = "0x0800000000000010ffffffffffffffffb781126dcae7b2321e66a241adc64d2e";
    for text in
        [order, "0x0", "0x", "", "0", "0x1g", " 0x1", "0x+1", "0X1", &format!("0x{}", "0".repeat(65)), &format!("0x{}", "f".repeat(64))]
    {
        assert_eq!(Key::parse(text).expect_err(text).code(), Code::KeyMalformed, "{text}");
    }
    for text in [below, "0x1", "1", "01", &below[2..]] {
        assert!(Key::parse(text).is_ok(), "{text}");
    }
    let one = Key::parse("0x1").expect("a key").public_key();
    assert_eq!(format!("{one:#x}"), "0x1ef15c18599971b7beced415a40f0c7deacfd9b0d1819e03d723d8bc943cfca");
}

#[test]
fn a_wrong_key_is_found_where_the_public_key_is_known() {
    let case = fixture::<Starknet>(CASE);
    let mut line = case.json();
    line["wallet"]["secret_key"] = json!("0x1");
    let refusal = outcome::<Starknet>(&case.with_input(line.to_string())).expect_err("another key");
    assert_eq!((refusal.code(), refusal.location()), (Code::KeyMismatch, "/wallet/secret_key"));
    line["wallet"].as_object_mut().expect("a wallet").remove("public_key");
    let unchecked = outcome::<Starknet>(&case.with_input(line.to_string())).expect("nobody can tell");
    assert!(unchecked["warnings"].to_string().contains("key_not_checked"));
}

#[test]
fn neither_key_nor_secret_is_ever_printed() {
    let case = fixture::<Starknet>(CASE);
    let secret = case.json()["wallet"]["secret_key"].as_str().expect("a key").to_owned();
    let shown = format!("{:?} {:?} {:?}", key::<Starknet>(&case), prepared(&case), signed(&case));
    assert!(!shown.contains(&secret[2..]));
}

/// A wallet that pins the domain of a contract accepts the message of that contract: another version, and the contract as a member.
#[test]
fn a_pinned_domain_overrides_the_deployed_one() -> TestResult {
    let at = format!("/assets/{}/htlc/domain", asset_index("starknet:wbtc"));
    let registry: &'static Registry = Box::leak(Box::new(registry_with(&[(&at, json!({ "name": "HTLC", "version": "0x32" }))])));

    let case = fixture::<Starknet>("starknet-public-key");
    let pinned = |change: &dyn Fn(&mut Json)| {
        let mut line = case.json();
        line["response"]["result"]["typed_data"]["domain"]["version"] = json!("0x32");
        change(&mut line["response"]["result"]);
        Case { registry, ..case.with_input(line.to_string()) }
    };
    let name_contract = |result: &mut Json| {
        let htlc = result["initiate_transaction"]["to"].clone();
        let typed_data = &mut result["typed_data"];
        let members = typed_data["types"]["Initiate"].as_array_mut().expect("members");
        members.push(json!({ "name": "verifyingContract", "type": "ContractAddress" }));
        typed_data["message"]["verifyingContract"] = htlc;
    };
    for (case, names_contract) in [(pinned(&|_| {}), false), (pinned(&name_contract), true)] {
        let line = case.json();
        let unsigned = prepared(&case);
        let message = unsigned.payloads().message.as_ref();
        let hash = message.map(|message| (message.hashes.message_hash, message.message.contract.is_some()));
        let owner = felt::parse(line["request"]["source"]["owner"].as_str().ok_or("no owner")?)?;
        let ours = message.ok_or("no message")?.message.to_json();
        for typed_data in [line["response"]["result"]["typed_data"].clone(), ours] {
            let general: starknet_core::types::typed_data::TypedData = serde_json::from_value(typed_data)?;
            assert_eq!(hash, Some((general.message_hash(owner)?, names_contract)));
        }
    }

    let other_contract = |result: &mut Json| {
        name_contract(result);
        result["typed_data"]["message"]["verifyingContract"] = json!("0x1");
    };
    let refusal = outcome::<Starknet>(&pinned(&other_contract)).expect_err("another contract");
    assert_eq!((refusal.code(), refusal.location()), (Code::UnknownContract, "/response/result/typed_data/message/verifyingContract"));
    let refusal = outcome::<Starknet>(&Case { registry, ..fixture::<Starknet>("starknet-public-key") })
        .expect_err("the deployed version is not the pinned one");
    assert_eq!((refusal.code(), refusal.location()), (Code::TypedDataDomain, "/response/result/typed_data/domain/version"));

    // Without a pin, the message does not contain the contract.
    let mut line = case.json();
    name_contract(&mut line["response"]["result"]);
    let refusal = outcome::<Starknet>(&case.with_input(line.to_string())).expect_err("not pinned");
    assert_eq!((refusal.code(), refusal.location()), (Code::GenerationMismatch, "/response/result/typed_data/types/Initiate"));
    Ok(())
}

#[test]
fn the_context_and_the_signatures_survive_a_restart() -> countersign_testkit::TestResult {
    countersign_testkit::restart::the_context_and_the_signatures_survive::<Starknet>()
}
