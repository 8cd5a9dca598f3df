//! Responses of the service on the test network.

use countersign_bitcoin::recover::{FundingStatus, InstantRefund, Leg, RecordedHtlc};
use countersign_core::{Code, Refusal, Registry};
use countersign_testkit::recover::read_record;
use countersign_testkit::{TestResult, shared, skipped};
use serde_json::{Value as Json, json};

/// The pins of the captures' network. The internal key is that of all HTLCs of the service.
fn registry() -> Registry {
    let text = json!({
        "chains": [{ "chain": "bitcoin_testnet", "id": "bitcoin:testnet4" }, { "chain": "base_sepolia", "id": "evm:84532" }],
        "assets": [
            {
                "id": "bitcoin_testnet:btc", "chain": "bitcoin_testnet", "decimals": 8, "token": null,
                "htlc": { "address": "2160e11a135f94e536a5b222e5d09fd9db1be5f5f5e753920290c0410cf388f0" },
            },
        ],
        "solvers": [],
    });
    Registry::from_json(text.to_string().as_bytes()).expect("a registry")
}

fn htlc(order: &Json) -> Result<RecordedHtlc, Refusal> {
    RecordedHtlc::new(&read_record(order)?, Leg::Source, &registry())
}

fn capture() -> Result<(Json, Json), String> {
    let read = |name: &str| shared(name).map(|text| serde_json::from_slice::<Json>(&text).expect("JSON"));
    let mut order = read("captures/bitcoin-order-record-1.json")?;
    Ok((order["result"].take(), read("known_answers.json")?["bitcoin_instant_refund"][0].take()))
}

#[test]
fn the_captured_instant_refund_verifies() -> TestResult {
    let (order, known) = match capture() {
        Ok(capture) => capture,
        Err(reason) => return skipped(&reason),
    };
    let swap = htlc(&order)?;
    let owner = order["source_swap"]["initiator"].as_str().expect("an address");
    let refund = InstantRefund::verify_presigned(&swap, owner)?;
    assert_eq!(refund.sighashes.iter().map(hex::encode).collect::<Vec<_>>(), [known["sighash"].as_str().expect("hex")]);
    assert_eq!(hex::encode(swap.tree.script_pubkey().as_bytes()), known["prevout_script"]);
    assert_eq!(refund.transaction.output[0].value.to_sat(), known["prevout_value"]);
    // The captured signature is what an external signer would return.
    let signature = known["signature64"].as_str().expect("hex");
    assert_eq!(refund.attach(&[signature])?.signatures, [format!("{signature}83")]);
    refund.check_hashes(&[known["sighash"].as_str().expect("hex")])?;
    assert_eq!((swap.funding_status(), swap.funding.len()), (FundingStatus::Full, 1));
    assert_eq!(swap.funding[0].number, Some(90_249.into()));
    Ok(())
}

#[test]
fn one_flipped_bit_anywhere_in_it_is_refused() -> TestResult {
    let (mut order, _) = match capture() {
        Ok(capture) => capture,
        Err(reason) => return skipped(&reason),
    };
    let owner = order["source_swap"]["initiator"].as_str().expect("an address").to_owned();
    let good = hex::decode(order["source_swap"]["instant_refund_tx"].as_str().expect("hex")).expect("hex");
    let registry = registry();
    for index in 0..good.len() {
        for bit in 0..8 {
            let mut bad = good.clone();
            bad[index] ^= 1 << bit;
            order["source_swap"]["instant_refund_tx"] = hex::encode(bad).into();
            let swap = RecordedHtlc::new(&read_record(&order)?, Leg::Source, &registry)?;
            let refusal = InstantRefund::verify_presigned(&swap, owner.as_str()).map(|_| ()).expect_err("a flipped bit");
            assert!([Code::InstantRefundMismatch, Code::FundingMismatch].contains(&refusal.code()), "byte {index}, bit {bit}: {refusal}");
        }
    }
    Ok(())
}

#[test]
fn an_instant_refund_to_another_owner_is_refused() -> TestResult {
    let (order, _) = match capture() {
        Ok(capture) => capture,
        Err(reason) => return skipped(&reason),
    };
    let swap = htlc(&order)?;
    // An address of BIP-350's test vectors.
    let other = "tb1pqqqqp399et2xygdj5xreqhjjvcmzhxw4aywxecjdzew6hylgvsesf3hn0c";
    let refusal = InstantRefund::verify_presigned(&swap, other).map(|_| ()).expect_err("another owner");
    assert_eq!(refusal.code(), Code::InstantRefundMismatch);
    Ok(())
}
