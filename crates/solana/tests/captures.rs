//! Responses of the live service with their order records, and the values that the service computed.

use countersign_core::chains::swap_id;
use countersign_core::{Registry, SecretHash};
use countersign_solana::htlc::{Htlc, HtlcAccount};
use countersign_solana::recover::{self, Leg};
use countersign_solana::{Address, Solana, address};
use countersign_testkit::recover::read_record;
use countersign_testkit::{Case, TestResult, outcome, shared, shared_registry, skipped};
use serde_json::{Value as Json, json};

fn capture(name: &str) -> Result<Json, String> {
    serde_json::from_slice(&shared(&format!("captures/{name}.json"))?).map_err(|error| format!("{name}: {error}"))
}

fn case(number: u8, registry: &'static Registry) -> Result<Case, String> {
    let line = json!({
        "id": format!("capture-{number}"),
        "request": capture(&format!("solana-create-request-{number}"))?,
        "response": capture(&format!("solana-create-response-{number}"))?,
        "order": capture(&format!("solana-order-record-{number}"))?,
        "wallet": {},
    });
    Ok(Case { id: format!("capture-{number}"), input: line.to_string(), line: line.to_string(), registry })
}

#[test]
fn captured_answers_verify_with_their_records() -> TestResult {
    let registry = match shared_registry() {
        Ok(registry) => registry,
        Err(reason) => return skipped(&reason),
    };
    let answers: Json = serde_json::from_slice(&shared("known_answers.json")?)?;
    for (index, number) in [1_u8, 2].into_iter().enumerate() {
        let case = case(number, registry)?;
        let got = outcome::<Solana>(&case).map_err(|refusal| format!("{}: {refusal}", case.id))?;
        let summary = got["summary"].to_string();
        assert!(summary.contains("hex, the form of older responses"), "{summary}");
        let account = answers["solana_pda"][index]["address"].as_str().ok_or("no account")?;
        assert!(summary.contains(account), "{summary}");
        assert!(
            got["warnings"].as_array().is_some_and(|warnings| warnings
                .iter()
                .all(|warning| warning["code"] == "secret_not_yours" || warning["code"] == "redeem_key_not_yours")),
            "{}",
            got["warnings"]
        );

        let record = read_record(&case.json()["order"]["result"])?;
        let id = recover::swap_id(&record, Leg::Source, registry)?;
        let recovery = recover::refund(&record, Leg::Source, registry)?;
        assert!(recovery.swap_id_recomputed());
        assert_eq!((recovery.swap_account().to_string().as_str(), recovery.swap_id()), (account, id));
    }
    Ok(())
}

#[test]
fn known_answers_are_met() -> TestResult {
    let answers: Json = match shared("known_answers.json") {
        Ok(text) => serde_json::from_slice(&text)?,
        Err(reason) => return skipped(&reason),
    };
    let text = |value: &Json| value.as_str().map(str::to_owned).ok_or("no text");
    let hash = |value: &Json| SecretHash::parse(value.as_str().unwrap_or_default());
    let key = |value: &Json| address::parse(value.as_str().unwrap_or_default());
    let ids = answers["solana_swap_id"].as_array().ok_or("no ids")?;
    assert_eq!(ids.len(), 2);
    for answer in ids {
        let chain = answer["chain_id"].as_u64().ok_or("no chain")?;
        let id = swap_id::solana(chain, &hash(&answer["secret_hash"])?.0, key(&answer["initiator"])?.as_ref());
        assert_eq!(SecretHash(id).to_string(), text(&answer["swap_id"])?);
    }
    for answer in answers["solana_pda"].as_array().ok_or("no accounts")? {
        let htlc = Htlc::new(key(&answer["program"])?, None);
        // Only initiator and secret hash are seeds in the client generation.
        let swap = HtlcAccount::new(key(&answer["initiator"])?, Address::default(), hash(&answer["secret_hash"])?.0, 0, 0);
        let account = htlc.swap_account(&swap).ok_or("no account")?;
        assert_eq!(account.to_string(), text(&answer["address"])?);
    }
    Ok(())
}
