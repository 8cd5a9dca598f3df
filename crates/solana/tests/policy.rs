//! Instructions other than the HTLC's own: refused by default, accepted and shown if the wallet's policy allows them.
//!
//! The transactions are those of `fixtures/reject/solana.json`, compiled by @solana/web3.js.

use countersign_core::{Code, Policy};
use countersign_solana::Solana;
use countersign_testkit::{Case, TestResult, fixture, outcome, outcome_under};
use serde_json::{Value as Json, json};

fn rejected(id: &str) -> Case {
    let file = std::fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/reject/solana.json")).expect("the reject cases");
    let file: Json = serde_json::from_slice(&file).expect("JSON");
    let case = file["cases"].as_array().into_iter().flatten().find(|case| case["id"] == id).expect(id).clone();
    let base = fixture::<Solana>(case["base"].as_str().expect("a base"));
    let mut line = base.json();
    for (pointer, value) in case["set"].as_object().expect("a change") {
        *line.pointer_mut(pointer).expect(pointer) = value.clone();
    }
    base.with_input(line.to_string())
}

fn policy(text: &Json) -> Policy {
    Policy::from_json(text.to_string().as_bytes()).expect("a policy")
}

#[test]
fn what_the_policy_allows_is_accepted_and_shown() -> TestResult {
    let allowed = [
        (
            "compute-budget",
            json!({ "solana_compute_unit_price": 0 }),
            "gas: transaction: 0 micro-lamports per compute unit, a priority fee of at most 0 lamports",
        ),
        ("memo", json!({ "solana_memo": 5 }), "message: transaction: contains the memo \"hello\""),
        (
            "associated-token",
            json!({ "solana_create_associated_account": true }),
            "token: transaction: creates the owner's token account if it does not exist, ",
        ),
    ];
    for (name, text, line) in &allowed {
        for place in ["before", "after"] {
            let case = rejected(&format!("solana-{place}-{name}"));
            let refusal = outcome::<Solana>(&case).expect_err("the default policy allows none");
            assert_eq!(refusal.code(), Code::UnexpectedInstruction);
            // Each permission allows only its own instruction.
            for (other, permission, _) in &allowed {
                assert_eq!(
                    outcome_under::<Solana>(&case, case.registry, &policy(permission)).is_ok(),
                    other == name,
                    "{place} {name} under {other}"
                );
            }
            let got = outcome_under::<Solana>(&case, case.registry, &policy(text))?;
            let shown: Vec<_> = got["summary"].as_array().into_iter().flatten().filter_map(Json::as_str).collect();
            assert!(shown.iter().any(|shown| shown.starts_with(line)), "{shown:#?}");
            assert!(got["artefacts"]["transaction"]["signed"].is_string());
        }
    }
    Ok(())
}

/// A message of version 1 without compute units is refused too: it fails, and costs the owner its fee.
#[test]
fn a_limit_of_no_compute_units_is_refused() -> TestResult {
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;
    let case = rejected("solana-compute-unit-limit-above");
    let allows = policy(&json!({ "solana_compute_unit_limit": u64::MAX, "solana_compute_unit_price": u64::MAX }));
    let mut line = case.json();
    let payload = line.pointer_mut("/response/result/versioned_tx").ok_or("no payload")?;
    let mut bytes = STANDARD.decode(payload.as_str().ok_or("no text")?)?;
    // No accounts, five bytes of data, the tag, and the units.
    let at = bytes.windows(3).position(|part| part == [0, 5, 2]).ok_or("no limit")?;
    bytes[at + 3..at + 7].fill(0);
    *payload = json!(STANDARD.encode(bytes));
    let refusal = outcome_under::<Solana>(&case.with_input(line.to_string()), case.registry, &allows).expect_err("no units");
    assert_eq!(
        (refusal.code(), refusal.location()),
        (Code::GasLimitTooLow, &*format!("/response/result/versioned_tx#{}-{}", at + 2, at + 7))
    );
    assert!(outcome_under::<Solana>(&case, case.registry, &allows).is_ok());
    Ok(())
}

/// Under the most permissive policy, each changed byte is still refused, shown, or without effect.
#[test]
fn every_byte_is_accounted_for_under_the_widest_policy() -> TestResult {
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;
    let widest = policy(&json!({
        "solana_compute_unit_price": u64::MAX,
        "solana_compute_unit_limit": u64::MAX,
        "solana_create_associated_account": true,
        "solana_memo": u64::MAX,
    }));
    let seen = |got: &Json| -> Vec<String> {
        let lines = got["summary"].as_array().into_iter().flatten().chain(got["warnings"].as_array().into_iter().flatten());
        lines.map(ToString::to_string).filter(|line| !line.starts_with("\"to sign:")).collect()
    };
    for id in ["solana-before-compute-budget", "solana-after-memo", "solana-before-associated-token", "solana-compute-unit-limit-above"] {
        let case = rejected(id);
        let base = outcome_under::<Solana>(&case, case.registry, &widest)?;
        let mut line = case.json();
        let pointer = "/response/result/versioned_tx";
        let bytes = STANDARD.decode(line.pointer(pointer).and_then(Json::as_str).ok_or("no payload")?)?;
        for index in 0..bytes.len() {
            for flip in [0x01, 0x10, 0x80] {
                let mut other = bytes.clone();
                other[index] ^= flip;
                *line.pointer_mut(pointer).ok_or("no payload")? = json!(STANDARD.encode(other));
                match outcome_under::<Solana>(&case.with_input(line.to_string()), case.registry, &widest) {
                    Ok(got) => assert!(seen(&got) != seen(&base) || got["artefacts"] == base["artefacts"], "{id} byte {index}: unseen"),
                    Err(refusal) => assert_ne!(refusal.code(), Code::Internal, "{id} byte {index}"),
                }
            }
        }
    }
    Ok(())
}
