//! Signatures. Those of ethers and viem are accepted in every form, one by one, and give the same artefacts. Any other signature is
//! refused at its request, and changes nothing.
use countersign_core::{Blame, Code, Refusal, RequestId, Scheme};
use countersign_evm::alloy_primitives::{eip191_hash_message, keccak256};
use countersign_evm::{Evm, ExternalSignature, Gasless, Key, UnsignedOrder};
use countersign_testkit::lines::difference;
use countersign_testkit::{Case, TestResult, artefacts, attach as attach_json, fixture, fixtures, key, verified, wallet};
use serde_json::{Map, Value, json};

use crate::spellings::{Ecdsa, object, signatures};

pub(crate) fn prepared(case: &Case) -> UnsignedOrder {
    verified::<Evm>(case).prepare(wallet::<Evm>(case)).unwrap_or_else(|refusal| panic!("{}: {refusal}", case.id))
}

/// Attaches the signatures of a signer. Returns the artefacts and the codes of the warnings, or the refusal.
pub(crate) fn attach(case: &Case, signatures: &Value) -> Result<(Value, Vec<&'static str>), Refusal> {
    let mut unsigned = prepared(case);
    attach_json(&mut unsigned, signatures)?;
    let warnings = unsigned.warnings().list().iter().map(|warning| warning.code().name()).collect();
    Ok((artefacts(&unsigned), warnings))
}

pub(crate) fn refused(case: &Case, signatures: &Value) -> (Code, String) {
    match attach(case, signatures) {
        Ok(_) => panic!("{}: accepted {signatures}", case.id),
        Err(refusal) => (refusal.code(), refusal.location().to_owned()),
    }
}

/// The requests have exactly the digests and payloads that the outside tools signed.
#[test]
fn requests_carry_the_digests_of_the_outside_tools() {
    for case in fixtures::<Evm>().unwrap() {
        let requests = prepared(&case).requests();
        let parts: Map<String, Value> = case.expect()["artefacts"]
            .as_object()
            .unwrap()
            .iter()
            .filter(|(_, part)| !part.is_null())
            .map(|(name, part)| (name.clone(), part.clone()))
            .collect();
        assert_eq!(requests.len(), parts.len(), "{}", case.id);
        for request in requests {
            let name = request.id.name();
            let part = &parts[name.as_ref()];
            let digest = part["digest"].as_str().or(part["signing_hash"].as_str()).unwrap();
            assert_eq!(format!("0x{}", hex::encode(&request.digest)), digest, "{}: {name}", case.id);
            let payload = match part["signing_payload"].as_str() {
                Some(payload) => payload.to_owned(),
                None => {
                    format!("0x1901{}{}", &part["domain_separator"].as_str().unwrap()[2..], &part["struct_hash"].as_str().unwrap()[2..])
                }
            };
            assert_eq!(format!("0x{}", hex::encode(&request.message)), payload, "{}: {name}", case.id);
            assert_eq!(keccak256(&request.message).as_slice(), request.digest, "{}: {name}", case.id);
            assert_eq!(request.scheme, Scheme::Secp256k1Keccak);
        }
    }
}

pub(crate) const CASE: &str = "evm-token-approval-exact";

/// Signatures can be attached one at a time, as a hardware signer returns them.
#[test]
fn what_has_no_signature_stays_unsigned() {
    let case = fixture::<Evm>(CASE);
    for (name, signature) in signatures(&case) {
        let (artefacts, _) = attach(&case, &json!({ name.as_str(): signature.spellings()[0] })).unwrap();
        for (part, expected) in case.expect()["artefacts"].as_object().unwrap() {
            let has = artefacts[part].get("signed").or(artefacts[part].get("signature")).is_some();
            assert_eq!(has, *part == name, "{part} with a signature for {name}");
            if *part == name {
                assert_eq!(difference(expected, &artefacts[part], ""), None);
            }
        }
    }
}

#[test]
fn refuses_a_signature_that_is_not_the_senders_over_this_digest() {
    let case = fixture::<Evm>(CASE);
    // Valid signatures of another owner for another order.
    let stranger = signatures(&fixture::<Evm>("evm-token-approval-unlimited"));
    let own = signatures(&case);
    let signature = |list: &[(String, Ecdsa)], name: &str| list.iter().find(|(found, _)| found == name).unwrap().1;
    for name in ["approval", "initiate", "typed_data"] {
        let at = format!("/signatures/{name}");
        let theirs = signature(&stranger, name);
        assert_eq!(refused(&case, &json!({ name: theirs.spellings()[0] })), (Code::SignatureMismatch, at.clone()));
        // The owner's own signature of another digest of the same order.
        let other = if name == "initiate" { "approval" } else { "initiate" };
        assert_eq!(refused(&case, &json!({ name: signature(&own, other).spellings()[0] })), (Code::SignatureMismatch, at.clone()));
        // Another r or s recovers another account, or none, with both parities.
        let mut changed = signature(&own, name);
        changed.r[31] ^= 1;
        for spelling in changed.spellings() {
            assert_eq!(refused(&case, &json!({ name: spelling })), (Code::SignatureMismatch, at.clone()));
        }
        for zeros in ["00".repeat(65), "00".repeat(64), format!("{}00", "00".repeat(32) + &"01".repeat(32))] {
            assert_eq!(refused(&case, &json!({ name: zeros })), (Code::SignatureMismatch, at.clone()));
        }
    }
}

#[test]
fn a_refusal_says_who_signed_and_over_what() {
    let case = fixture::<Evm>(CASE);
    let key = key::<Evm>(&case);
    let digest = prepared(&case).requests().iter().find(|request| request.id == RequestId::TypedData).unwrap().digest.clone();
    let refusal = |name: &str, signature: String| attach(&case, &json!({ name: signature })).unwrap_err();
    let sign = |digest| hex::encode(key.sign(&digest).unwrap().as_bytes());
    let prefixed = refusal("typed_data", sign(eip191_hash_message(&digest)));
    assert_eq!((prefixed.code(), prefixed.blame()), (Code::SignatureMismatch, Blame::Caller));
    assert!(prefixed.reason().contains("personal_sign") && prefixed.reason().contains("eth_signTypedData_v4"), "{prefixed}");
    let twice = refusal("typed_data", sign(keccak256(&digest)));
    assert!(twice.reason().contains("hashed once more"), "{twice}");
    // A signature for another payload of the order, and one of another account.
    let (_, own) = signatures(&case).into_iter().find(|(name, _)| name == "typed_data").unwrap();
    let swapped = refusal("initiate", own.joined(27));
    assert!(swapped.reason().contains("the signature for typed_data"), "{swapped}");
    let stranger = Key::from_bytes(&[7; 32]).unwrap();
    let theirs = refusal(
        "typed_data",
        hex::encode(stranger.sign(&countersign_evm::alloy_primitives::B256::from_slice(&digest)).unwrap().as_bytes()),
    );
    assert!(theirs.actual().unwrap().to_string().contains(&stranger.address().to_string()), "{theirs}");
    // What the caller wrote is never a reason to update this library.
    let unknown = attach(&case, &json!({ "typed_data": { "r": "1", "s": "1", "w": "1" } })).unwrap_err();
    assert_eq!((unknown.code(), unknown.blame()), (Code::UnexpectedField, Blame::Caller));
    assert!(unknown.message().ends_with("leave the field out"), "{unknown}");
}

#[test]
fn refuses_a_signature_that_nobody_asked_for() {
    let case = fixture::<Evm>(CASE);
    let (_, signature) = signatures(&case).swap_remove(0);
    let spelling = &signature.spellings()[0];
    for name in ["permit", "Initiate", "", "approval_reset", "a/b"] {
        let at = format!("/signatures/{}", name.replace('/', "~1"));
        assert_eq!(refused(&case, &json!({ name: spelling })), (Code::NothingToSign, at), "{name}");
    }
    // An order without approval and typed data.
    let bare = fixture::<Evm>("evm-native-typed-data-null");
    for name in ["approval", "typed_data"] {
        assert_eq!(refused(&bare, &json!({ name: spelling })), (Code::NothingToSign, format!("/signatures/{name}")));
    }
    // Also beside a valid one.
    let good = signatures(&bare).swap_remove(0).1;
    assert_eq!(
        refused(&bare, &json!({ "initiate": good.spellings()[0], "typed_data": spelling })),
        (Code::NothingToSign, "/signatures/typed_data".into())
    );
}

#[test]
fn refuses_no_signature_at_all() {
    let case = fixture::<Evm>(CASE);
    assert_eq!(refused(&case, &json!({})), (Code::SignatureCount, "/signatures".into()));
    assert_eq!(refused(&case, &json!([])), (Code::WrongType, "/signatures".into()));
    assert_eq!(refused(&case, &json!("0x")), (Code::WrongType, "/signatures".into()));
}

/// Only the chain can verify the signature of a contract wallet. A contract never signs a transaction.
#[test]
fn a_contract_wallets_signature_is_taken_for_the_message_with_a_warning() {
    let case = fixture::<Evm>(CASE);
    let (artefacts, warnings) = attach(&case, &json!({ "typed_data": { "contract": "0xAbcdef" } })).unwrap();
    assert_eq!(artefacts["typed_data"]["signature"], "0xabcdef");
    assert!(warnings.contains(&"contract_signature_unverified"));
    for name in ["approval", "initiate"] {
        assert_eq!(refused(&case, &json!({ name: { "contract": "0xabcdef" } })), (Code::SignatureMalformed, format!("/signatures/{name}")));
    }
    let at = |rest: &str| format!("/signatures/typed_data{rest}");
    // Safe returns nothing for a message that it signed on chain.
    let (artefacts, warnings) = attach(&case, &json!({ "typed_data": { "contract": "0x" } })).unwrap();
    assert_eq!(artefacts["typed_data"]["signature"], "0x");
    assert!(warnings.contains(&"contract_signature_unverified"));
    let plain = attach(&case, &json!({ "typed_data": "ab".repeat(192) })).unwrap_err();
    assert_eq!(plain.code(), Code::SignatureMalformed);
    assert!(plain.reason().contains("{\"contract\": \"0x..\"}"), "{plain}");
    for (value, code, place) in [
        (json!({ "contract": "abcd" }), Code::HexPrefix, at("/contract")),
        (json!({ "contract": "0xabc" }), Code::HexOddLength, at("/contract")),
        (json!({ "contract": 5 }), Code::WrongType, at("/contract")),
        (json!({ "contract": null }), Code::UnexpectedField, at("/contract")),
        (json!({ "contract": "0xab", "signer": "0x" }), Code::UnexpectedField, at("/signer")),
        (json!({ "contract": format!("0x{}", "ab".repeat(64 * 1024 + 1)) }), Code::HexLength, at("/contract")),
        (json!({ "contract": "0xab", "deployed": 1 }), Code::WrongType, at("/deployed")),
        (json!({}), Code::MissingField, at("/r")),
    ] {
        assert_eq!(
            refused(&case, &json!({ "typed_data": value })),
            (code, place),
            "{}",
            value.to_string().chars().take(80).collect::<String>()
        );
    }
}

/// The swap contract asks the account about the signature as it is, so the wrapper for an account without code is of no use.
#[test]
fn the_wrapper_of_erc_6492_is_refused_or_taken_off() {
    let case = fixture::<Evm>(CASE);
    let inner = "ab".repeat(64);
    let word = |number: usize| format!("{number:064x}");
    let head = [0x1111, 96, 160].map(word).concat();
    let deploys = format!("3ffba36f{}", "00".repeat(28));
    let wrapped = format!("0x{head}{}{deploys}{}{inner}{}", word(4), word(64), "6492".repeat(16));
    assert_eq!(
        refused(&case, &json!({ "typed_data": { "contract": wrapped } })),
        (Code::AccountNotDeployed, "/signatures/typed_data".to_owned())
    );
    let (artefacts, warnings) = attach(&case, &json!({ "typed_data": { "contract": wrapped, "deployed": true } })).unwrap();
    assert_eq!(artefacts["typed_data"]["signature"], format!("0x{inner}"));
    assert!(warnings.contains(&"contract_signature_unverified"));
    let cut = format!("0x{head}{}", "6492".repeat(16));
    assert_eq!(
        refused(&case, &json!({ "typed_data": { "contract": cut, "deployed": true } })),
        (Code::SignatureMalformed, "/signatures/typed_data".to_owned())
    );
}

/// A reset of the allowance is one more transaction, first in line and with the first nonce.
#[test]
fn a_reset_of_the_allowance_shifts_the_nonces_by_one() {
    let case = fixture::<Evm>(CASE);
    let mut line = case.tree();
    line.set("/wallet/reset_approval", countersign_testkit::Tree::parse("true"));
    let nonce: u64 = line.scalar("/wallet/nonce").unwrap().parse().unwrap();
    line.set("/wallet/nonce", countersign_testkit::Tree::parse(&(nonce - 1).to_string()));
    let reset = case.with_input(line.text());
    // With the nonce one lower, approval and initiate are those that the outside tools signed.
    let (artefacts, _) = attach(&reset, &object(&signatures(&case), 0)).unwrap();
    assert_eq!(difference(&case.expect()["artefacts"], &artefacts, ""), None);
    let names: Vec<_> = prepared(&reset).requests().iter().map(|request| request.id).collect();
    assert_eq!(names, [RequestId::ApprovalReset, RequestId::Approval, RequestId::Initiate, RequestId::TypedData]);
}

/// Returns the signatures of a case as typed values, each with the id of its request.
fn typed(case: &Case) -> Vec<(RequestId, ExternalSignature)> {
    signatures(case).iter().map(|(name, signature)| (name.parse().unwrap(), signature.spellings()[0].parse().unwrap())).collect()
}

/// With several signers, attached signatures are kept, whatever another signer returns.
#[test]
fn a_refused_signature_loses_nothing() -> TestResult {
    let case = fixture::<Evm>(CASE);
    let signatures = typed(&case);
    let stranger = typed(&fixture::<Evm>("evm-token-approval-unlimited"));
    let mut unsigned = prepared(&case);
    let mut missing: Vec<_> = unsigned.requests().iter().map(|request| request.id).collect();
    assert_eq!(unsigned.missing(), missing);
    for (id, signature) in &signatures {
        let before = artefacts(&unsigned);
        for (other, theirs) in &stranger {
            let refusal = unsigned.attach(*other, theirs.clone()).unwrap_err();
            assert_eq!((refusal.code(), refusal.location()), (Code::SignatureMismatch, ""));
        }
        assert_eq!(unsigned.attach(RequestId::Redeem, signature.clone()).unwrap_err().code(), Code::NothingToSign);
        assert_eq!((unsigned.missing(), artefacts(&unsigned)), (missing.clone(), before), "nothing changed");
        unsigned.attach(*id, signature.clone())?;
        missing.retain(|open| open != id);
        assert_eq!(unsigned.missing(), missing);
    }
    // A wrong signature does not replace a proven one.
    for (id, theirs) in stranger {
        assert_eq!(unsigned.attach(id, theirs).unwrap_err().code(), Code::SignatureMismatch);
    }
    assert_eq!(difference(&case.expect()["artefacts"], &artefacts(&unsigned), ""), None);
    assert!(unsigned.finish().is_ok());
    Ok(())
}

/// A second proven signature of the same payload may replace the first one.
#[test]
fn a_signature_may_be_attached_again() -> TestResult {
    let case = fixture::<Evm>(CASE);
    let mut unsigned = prepared(&case);
    unsigned.sign(&key::<Evm>(&case))?;
    for (id, signature) in typed(&case) {
        unsigned.attach(id, signature)?;
    }
    let warns =
        |unsigned: &UnsignedOrder| unsigned.warnings().list().iter().any(|warning| warning.code() == Code::ContractSignatureUnverified);
    let contract = || ExternalSignature::contract(vec![0xab; 96]);
    unsigned.attach(RequestId::TypedData, contract()?)?;
    assert!(warns(&unsigned));
    // A proven signature removes the warning, however it was made.
    for (id, signature) in typed(&case) {
        unsigned.attach(id, signature)?;
    }
    assert!(!warns(&unsigned));
    unsigned.attach(RequestId::TypedData, contract()?)?;
    unsigned.sign(&key::<Evm>(&case))?;
    assert!(!warns(&unsigned));
    unsigned.attach(RequestId::TypedData, contract()?)?;
    assert!(warns(&unsigned) && unsigned.missing().is_empty());
    assert_eq!(unsigned.finish()?.gasless().unwrap().signature, format!("0x{}", "ab".repeat(96)));
    Ok(())
}

#[test]
fn an_incomplete_order_comes_back_with_its_signatures() -> TestResult {
    let case = fixture::<Evm>(CASE);
    let signatures = typed(&case);
    let mut unsigned = prepared(&case);
    let summary = unsigned.summary();
    for (index, (id, signature)) in signatures.iter().enumerate() {
        let incomplete = unsigned.finish().unwrap_err();
        assert_eq!(incomplete.missing().len(), signatures.len() - index);
        let text = incomplete.to_string();
        assert!(text.starts_with("signatures are missing: ") && text.contains(id.name().as_ref()), "{text}");
        unsigned = incomplete.into_unsigned();
        assert_eq!((unsigned.order_id(), unsigned.summary()), (Some(verified::<Evm>(&case).order_id()), summary.clone()));
        unsigned.attach(*id, signature.clone())?;
    }
    let signed = unsigned.finish()?;
    assert_eq!(signed.order_id(), case.expect()["order_id"].as_str());
    let refusal = Refusal::from(prepared(&case).finish().unwrap_err());
    assert_eq!((refusal.code(), refusal.location()), (Code::SignatureMissing, ""));
    Ok(())
}

#[test]
fn another_key_signs_nothing() -> TestResult {
    let case = fixture::<Evm>(CASE);
    let stranger = key::<Evm>(&fixture::<Evm>("evm-token-approval-unlimited"));
    let mut unsigned = prepared(&case);
    let refusal = unsigned.sign(&stranger).unwrap_err();
    assert_eq!((refusal.code(), refusal.location()), (Code::KeyMismatch, ""));
    assert!(refusal.to_string().contains(&stranger.address().to_string()));
    assert_eq!(unsigned.missing().len(), 3);
    // Only the message is signed, still by the owner.
    let mut gasless = verified::<Evm>(&case).prepare(Gasless)?;
    assert_eq!(gasless.sign(&stranger).unwrap_err().code(), Code::KeyMismatch);
    Ok(())
}

#[test]
fn what_a_contract_signs_has_bounds() {
    assert!(ExternalSignature::contract(Vec::new()).is_ok() && ExternalSignature::contract(vec![1; 64 * 1024]).is_ok());
    assert_eq!(ExternalSignature::contract(vec![1; 64 * 1024 + 1]).unwrap_err().code(), Code::HexLength);
}

#[test]
fn the_context_and_the_signatures_survive_a_restart() -> countersign_testkit::TestResult {
    countersign_testkit::restart::the_context_and_the_signatures_survive::<Evm>()
}
