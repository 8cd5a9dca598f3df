//! Responses of the service on the test network, which must verify with their order records, byte for byte.

use countersign_core::json::{self, Cursor};
use countersign_core::wire::{OrderRecord, Read};
use countersign_core::{Code, Policy, Registry};
use countersign_sui::Sui;
use countersign_sui::recover::{self, Leg};
use countersign_testkit::{TestResult, shared, skipped, with_verified};
use serde_json::{Value as Json, json};

/// The pins of the captures' network: package and registry object of the test network's service; the solvers are the
/// records' own counterparties.
fn registry(record: &Json) -> Result<Registry, countersign_core::Refusal> {
    let (source, destination) = (&record["source_swap"], &record["destination_swap"]);
    let solver = |swap: &Json, party: &str| json!({ "solver_id": "solver", "chain": swap["chain"], "address": swap[party] });
    let text = json!({
        "chains": [
            { "chain": "sui_testnet", "id": "sui:testnet" },
            { "chain": "bitcoin_testnet", "id": "bitcoin:testnet4" },
        ],
        "assets": [
            {
                "id": "sui_testnet:sui", "chain": "sui_testnet", "decimals": 9, "token": null,
                "htlc": {
                    "address": "0x99865b03dd1bc03d0a6a805c454ea257c464f7abcccae9cd4b621b91e7ca04de",
                    "registry": "0x5c438715b7dcc02d12ab92449153a1e5ade2301620d5bf60aa748f006726d369",
                    "registry_initial_shared_version": "533475404",
                },
            },
            {
                "id": "bitcoin_testnet:btc", "chain": "bitcoin_testnet", "decimals": 8, "token": null,
                "htlc": { "address": "2160e11a135f94e536a5b222e5d09fd9db1be5f5f5e753920290c0410cf388f0" },
            },
        ],
        "solvers": [solver(source, "redeemer"), solver(destination, "initiator")],
    });
    Registry::from_json(text.to_string().as_bytes())
}

#[test]
fn captures_verify_with_their_records() -> TestResult {
    let mut swap_ids = Vec::new();
    for number in [1, 2] {
        let [request, response, record] =
            ["create-request", "create-response", "order-record"].map(|part| shared(&format!("captures/sui-{part}-{number}.json")));
        let (request, response, record) = match (request, response, record) {
            (Ok(request), Ok(response), Ok(record)) => (request, response, record),
            (Err(reason), ..) | (_, Err(reason), _) | (.., Err(reason)) => return skipped(&reason),
        };
        let [mut request, response, order]: [Json; 3] =
            [serde_json::from_slice(&request)?, serde_json::from_slice(&response)?, serde_json::from_slice(&record)?];
        if let Some(body) = request.get("body") {
            request = body.clone();
        }
        let registry = registry(&order["result"])?;
        let line = json!({ "request": request, "response": response, "order": order }).to_string();
        with_verified::<Sui, _>(line.as_bytes(), &registry, &Policy::default(), |verified, _| {
            let bytes: Vec<u8> = serde_json::from_value(response["result"]["ptb_bytes"].clone()).expect("bytes");
            assert_eq!(bcs::to_bytes(verified.deposit().kind.as_ref()).expect("encodes"), bytes, "capture {number}");
            assert_eq!(verified.deposit().kind_bytes(), bytes, "capture {number}");
            // The documented requests have no secret hash, and no redeem key if they are paid out on Bitcoin.
            let known = [Code::SecretNotYours, Code::RedeemKeyNotYours];
            assert!(verified.warnings().list().iter().all(|warning| known.contains(&warning.code())), "{:?}", verified.warnings());
            Ok(())
        })
        .map_err(|refusal| format!("capture {number}: {refusal}"))?;

        let order = order["result"].to_string();
        let record = OrderRecord::read(Cursor::new(&json::parse(order.as_bytes())?, json::At::RECORD))?;
        let (id, recomputed) = recover::swap_id(&record, Leg::Source, &registry)?;
        assert!(recomputed);
        swap_ids.push(id.iter().map(|byte| format!("{byte:02x}")).collect::<String>());
    }
    let known: Json = serde_json::from_slice(&shared("known_answers.json")?)?;
    let known: Vec<_> = known["sui_swap_id"].as_array().into_iter().flatten().filter_map(|one| one["swap_id"].as_str()).collect();
    assert_eq!(swap_ids, known);
    Ok(())
}
