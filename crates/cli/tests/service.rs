//! The program against a scripted service on loopback: each command, what it prints, and what never leaves.

use std::fs;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

use crate::home::{APP_ID, Home, out, said};
use crate::kept::mended;
use crate::support::{Fixture, Reply, Server, Service, Step, beside};
use countersign::bitcoin::recover::{Funding, InstantRefund, RecordedHtlc};
use countersign::evm::alloy_primitives::keccak256;
use countersign::{Leg, OrderRecord, Policy, Registry};
use countersign_client::driver::SignedUnder;
use serde_json::{Value, json};

#[test]
fn every_list_is_a_table_for_people_and_the_answer_for_programs() {
    let home = Home::new("lists");
    let registry: Value = serde_json::from_str(&crate::support::registry_text()).unwrap();
    let earned =
        json!([{"total_earnings": "7", "total_earnings_usd": "1", "affiliate": "0xab", "asset": "ethereum:usdc", "token_address": "0xcd"}]);
    let liquidity = json!([{"solver_id": "solver-1", "address": "0xab", "liquidity": [
        {"asset": "bitcoin:btc", "balance": "5", "virtual_balance": "4", "readable_balance": "0.00000005", "fiat_value": "1"}]}]);
    let results = json!({
        "/v2/chains": registry["chains"], "/v2/assets": registry["assets"], "/v2/liquidity": liquidity,
        "/v2/fee": earned, "/v2/volume": "12345.6", "/v2/schemas": [{"name": "evm:htlc", "schema": []}],
        "/v2/schemas/evm:htlc": {"name": "evm:htlc", "schema": [{"type": "function"}]}, "/v2/apps/earnings": earned, "/v2/health": "Online",
    });
    let server = Server::start(move |seen| match &results[seen.path()] {
        Value::Null => Reply::json(404, ""),
        result => Reply::ok(result),
    });
    for (arguments, target, word) in [
        (vec!["chains"], "/v2/chains", "native asset"),
        (vec!["assets", "--query", "chain=ethereum"], "/v2/assets?chain=ethereum", "ethereum:usdc"),
        (vec!["liquidity"], "/v2/liquidity", "solver-1"),
        (vec!["fee", "--query", "from=1", "--query", "to=2"], "/v2/fee?from=1&to=2", "nothing"),
        (vec!["volume"], "/v2/volume", "12345.6"),
        (vec!["schemas"], "/v2/schemas", "evm:htlc"),
        (vec!["schemas", "evm:htlc"], "/v2/schemas/evm:htlc", "function"),
        (vec!["earnings"], "/v2/apps/earnings", "ethereum:usdc"),
        (vec!["health"], "/v2/health", "Online"),
    ] {
        let people = home.run(&server.base, &arguments);
        assert!(people.status.success() && out(&people).contains(word), "{arguments:?}: {}", said(&people));
        let seen = server.seen().pop().unwrap();
        assert_eq!(seen.line(), format!("GET {target}"));
        assert_eq!(seen.headers.get("service-app-id").map(String::as_str), (target != "/v2/health").then_some(APP_ID));
        let mut arguments = arguments.clone();
        arguments.push("--json");
        let programs: Value = serde_json::from_str(&out(&home.run(&server.base, &arguments))).unwrap();
        assert_eq!(programs["status"], "Ok", "{arguments:?}");
    }
}

#[test]
fn a_quote() {
    let home = Home::new("quote");
    let server = Service::new(Fixture::load("evm-record-evm-v2")).start();
    let output = home.run(&server.base, &["quote", "base:eth", "arbitrum:eth", "5000", "--slippage", "50", "--affiliate-fee", "30"]);
    assert!(output.status.success() && out(&output).contains("30 bps") && out(&output).contains("300 s"), "{}", said(&output));
    assert_eq!(server.lines(), ["GET /v2/quote?from=base%3Aeth&to=arbitrum%3Aeth&from_amount=5000&affiliate_fee=30&slippage=50"]);
    let output = home.run(&server.base, &["quote", "base:eth", "arbitrum:eth", "--receive", "5", "--json"]);
    assert_eq!(serde_json::from_str::<Value>(&out(&output)).unwrap()["result"][0]["solver_id"], "solver");
    for bad in [
        vec!["quote", "base:eth", "arbitrum:eth", "5e3"],
        vec!["quote", "base:eth", "arbitrum:eth", "0"],
        vec!["quote", "BASE", "x:y", "1"],
    ] {
        assert_eq!(home.run(&server.base, &bad).status.code(), Some(2), "{bad:?}");
    }
}

#[test]
fn routes_are_checked_by_the_stricter_interpretation() {
    let home = Home::new("policy");
    let policy = json!({"default": "closed", "isolation_groups": [], "blacklist_pairs": [], "whitelist_overrides": ["a:x -> b:y"]});
    let server = Server::start(move |_| Reply::ok(&policy));
    let output = home.run(&server.base, &["policy", "check", "a:x", "b:y"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(out(&output).contains("stricter"), "{}", said(&output));
    let output = home.run(&server.base, &["policy", "check", "a:x", "b:y", "--json"]);
    let verdict: Value = serde_json::from_str(&out(&output)).unwrap();
    assert_eq!(verdict, json!({"allowed": false, "differs": true, "because": "default", "rule": null}));
}

#[test]
fn refunds_orders_and_lists() {
    let home = Home::new("orders");
    let fixture = Fixture::load("evm-record-evm-v2");
    let (registry, order) = (home.file("registry.json", &fixture.registry), fixture.order.clone());
    let service = Service::new(fixture.clone());
    let server = Server::start(move |seen| {
        if seen.path() == "/v2/orders" && seen.method == "GET" {
            return Reply::ok(&json!({"data": [order], "page": 1, "total_pages": 1, "total_items": 1, "per_page": 10}));
        }
        service.answer(seen)
    });
    let refund = home.run(&server.base, &["refund", fixture.order_id()]);
    assert!(refund.status.success() && out(&refund).contains("0xtransaction"), "{}", said(&refund));
    assert_eq!(server.lines(), [format!("PATCH /v2/orders/{}?action=refund", fixture.order_id())]);
    let list = home.run(&server.base, &["order", "list", "--from-owner", "0xab", "--status", "completed"]);
    assert!(out(&list).contains(fixture.order_id()), "{}", said(&list));
    assert_eq!(server.lines().pop().unwrap(), "GET /v2/orders?from_owner=0xab&status=completed");
    assert_eq!(home.run(&server.base, &["order", "list", "--status", "done"]).status.code(), Some(2));
    let show = home.run(&server.base, &["order", "show", fixture.order_id(), "--registry", &registry]);
    assert!(out(&show).contains("expired") && out(&show).contains("base:eth"), "{}", said(&show));
    assert_eq!(home.run(&server.base, &["refund", "../../health"]).status.code(), Some(2));
}

#[test]
fn a_claim_is_prepared_and_signed() {
    let home = Home::new("claim");
    let fixture = Fixture::load("evm-record-bitcoin-v3");
    let pinned: Value = serde_json::from_str(&fixture.registry).unwrap();
    let usdc = pinned["assets"].as_array().unwrap().iter().find(|asset| asset["id"] == "ethereum:usdc").unwrap();
    let row = |claimable: bool| {
        let mut row = json!({"total_earnings": "15075000000", "total_earnings_usd": "15075", "asset": "ethereum:usdc",
            "affiliate": "0x004Cc75ACF4132Fc08cB6a252E767804F303F729", "token_address": usdc["token"]["address"]});
        if claimable {
            row["claim_amount"] = json!("5075000000");
            row["claim_signature"] = json!(format!("0x{}1b", "12".repeat(64)));
            row["claim_contract"] = json!("0x5EbEC4D8DA437b2BAD656D43d40fE412bA5D217a");
        }
        row
    };
    let (registry, key) =
        (home.file("registry.json", &fixture.registry), home.file("key.txt", fixture.wallet["secret_key"].as_str().unwrap()));
    let wallet = home.file("wallet.json", r#"{"nonce":7,"max_fee_per_gas":"30000000000","max_priority_fee_per_gas":"1000000000"}"#);
    let (nothing, something) = (row(false), row(true));
    let server = Server::start(move |_| Reply::ok(&json!([nothing, something])));
    let output = home.run(&server.base, &["claim", "--registry", &registry, "--wallet", &wallet, "--key-file", &key, "--json"]);
    let claims: Value = serde_json::from_str(&out(&output)).unwrap_or_else(|error| panic!("{error}: {}", said(&output)));
    assert_eq!(claims.as_array().unwrap().len(), 1);
    assert!(claims[0]["data"].as_str().unwrap().starts_with("0xce2631b8") && claims[0]["signed"].as_str().unwrap().starts_with("0x02"));
    let people = home.run(&server.base, &["claim", "--registry", &registry]);
    assert!(out(&people).contains("15075000000 base units") && !out(&people).contains("signed"), "{}", said(&people));
}

#[test]
fn pins_from_the_service_are_compared_before_they_replace_older_ones() {
    let home = Home::new("pins");
    let registry: Value = serde_json::from_str(&crate::support::registry_text()).unwrap();
    let lists = Arc::new(Mutex::new(registry));
    let served = Arc::clone(&lists);
    let server = Server::start(move |seen| {
        let registry = served.lock().unwrap();
        Reply::ok(match seen.path() {
            "/v2/chains" => &registry["chains"],
            "/v2/assets" => &registry["assets"],
            _ => &registry["solvers"],
        })
    });
    let file = home.path.join("pins.json");
    let pin = ["registry", "pin", "--from-service", "--out", file.to_str().unwrap()];
    assert!(home.run(&server.base, &pin).status.success());
    let first = fs::read(&file).unwrap();
    {
        let mut registry = lists.lock().unwrap();
        let assets = registry["assets"].as_array_mut().unwrap();
        let usdc = assets.iter_mut().find(|asset| asset["id"] == "ethereum:usdc").unwrap();
        usdc["htlc"]["address"] = json!("0x00000000000000000000000000000000000000aa");
    }
    let kept = home.run(&server.base, &pin);
    assert!(kept.status.code() == Some(2) && out(&kept).contains("htlc address"), "{}", said(&kept));
    assert_eq!(fs::read(&file).unwrap(), first);
    let mut accept = pin.to_vec();
    accept.push("--accept");
    assert!(home.run(&server.base, &accept).status.success());
    assert_ne!(fs::read(&file).unwrap(), first);
}

#[test]
fn the_service_and_the_application_come_from_environment_or_file_and_are_never_printed() {
    let home = Home::new("config");
    let server = Server::start(|_| Reply::json(500, "no"));
    let id = || server.seen().pop().unwrap().headers.get("service-app-id").cloned();
    let run = |arguments: &[&str]| {
        Command::new(env!("CARGO_BIN_EXE_countersign"))
            .args(arguments)
            .env_clear()
            .env("HOME", &home.path)
            .stdin(Stdio::null())
            .output()
            .unwrap()
    };
    let none = run(&["volume"]);
    assert!(none.status.code() == Some(2) && said(&none).contains("--base-url"), "{}", said(&none));
    let config = json!({"base_url": server.base, "app_id": "from-the-file"}).to_string();
    home.file(".config/countersign/config.json", &config);
    let output = run(&["volume"]);
    assert_eq!((output.status.code(), id().as_deref()), (Some(3), Some("from-the-file")));
    assert!(!said(&output).contains("from-the-file"));
    let file = home.file("id.txt", "from-another-file\n");
    run(&["volume", "--app-id-file", &file]);
    assert_eq!(id().as_deref(), Some("from-another-file"));
    home.file(".config/countersign/config.json", r#"{"app_key": "x"}"#);
    assert!(said(&run(&["volume"])).contains("/app_key"));
    let insecure = run(&["volume", "--base-url", "http://service.example"]);
    assert_eq!(insecure.status.code(), Some(2));
    let help = said(&run(&["volume", "--help"]));
    assert!(!help.contains("--app-id ") && !help.contains("--app-id<"), "{help}");
}

/// The captured order of a live service: its hash is known from elsewhere.
#[test]
fn an_instant_refund_signs_only_the_hash_that_the_record_gives() {
    let (Some(capture), Some(registry), Some(lines)) =
        (beside("captures/bitcoin-order-record-1.json"), beside("vectors/registry.json"), beside("vectors/bitcoin.jsonl"))
    else {
        return;
    };
    let record = serde_json::from_str::<Value>(&capture).unwrap()["result"].clone();
    let line = lines.lines().find(|line| line.contains("\"bitcoin-c001\"")).unwrap();
    let case: Value = serde_json::from_str(line).unwrap();
    // The capture's request and answer say another amount than its record, which is the one that is signed.
    let amounts = |value: &Value| {
        let text = value.to_string().replace("\"50000\"", "\"500000\"").replace("\"49850\"", "\"498500\"");
        serde_json::from_str::<Value>(&text).unwrap()
    };
    let (request, response) = (amounts(&case["request"]), amounts(&case["response"]));
    let known = "54584a5c8061419a15f70faecc01bdba1473d2a6c145da07ef52fe9f329a26eb";
    for (hash, code) in [(known.to_owned(), "key_mismatch"), (known.replace("54584a5c", "54584a5d"), "sighash_mismatch")] {
        let home = Home::new(&format!("instant-{code}"));
        let (answer, served) = (response.clone(), record.clone());
        let server = Server::start(move |seen| match seen.method.as_str() {
            "POST" => Reply::json(200, answer.to_string()),
            "GET" if seen.path().ends_with("/instant-refund-hash") => Reply::ok(&json!([hash])),
            "GET" => Reply::ok(&served),
            _ => Reply::ok(&json!("done")),
        });
        let registry = home.file("registry.json", &registry);
        let id = record["order_id"].as_str().unwrap();
        home.keep(id, &request, &response, None);
        let key = home.file("key.txt", &"11".repeat(32));
        let output = home.run(&server.base, &["instant-refund", id, "--registry", &registry, "--key-file", &key, "--json"]);
        let refused: Value = serde_json::from_str(&out(&output)).unwrap_or_else(|error| panic!("{error}: {}", said(&output)));
        // The right hash is found, and only then is the key looked at: it is not the capture's.
        assert_eq!(refused["error"]["code"], code, "{}", said(&output));
        assert!(server.seen().iter().all(|seen| seen.method == "GET"));
    }
}

/// An order whose refund key is the wallet's own: the deposit is found among the outputs, and what is submitted is its
/// owner's signature. That the computed hashes are right is proven by the capture above and by the Bitcoin family's proofs.
#[test]
fn an_instant_refund_is_signed_and_submitted() {
    let fixture = fixture_of_instant_refund();
    // Far back in the payout of an exchange: no standard transaction has many more outputs.
    let refund = refund_of(&fixture, &[&format!("{TXID}:2300:{}", filled(&fixture))]);
    check_instant_refund(&fixture, &refund, &[], false);
}

/// A deposit in several outputs, two of which the service refunds, in its own order.
#[test]
fn an_instant_refund_of_several_outputs_is_signed_for_those_that_the_service_names() {
    let fixture = fixture_of_instant_refund();
    let [first, dust, last] = [0, 1, 7].map(|index| format!("{TXID}:{index}:{}", 20_000 + index));
    let refund = refund_of(&fixture, &[&last, &first]);
    check_instant_refund(&fixture, &refund, &["--funding", &first, "--funding", &dust, "--funding", &last], true);
}

/// The service lists neither the solver nor the asset any more, and the policy has become stricter: the deposit comes back by the pins that it
/// was paid under. A record with other terms than the one that was signed is refused before the key is used.
#[test]
fn an_instant_refund_goes_by_the_pins_of_the_order() {
    let fixture = fixture_of_instant_refund();
    let refund = refund_of(&fixture, &[&format!("{TXID}:0:{}", filled(&fixture))]);
    let listed: Value = serde_json::from_str(&fixture.registry).unwrap();
    let without = |member: &str, name: &str, gone: &str| {
        let mut list = listed.clone();
        list[member].as_array_mut().unwrap().retain(|entry| entry[name] != gone);
        list.to_string()
    };
    let strict = r#"{"max_timelock_seconds": {"bitcoin_testnet": 3600}}"#;
    for (registry, policy) in [
        (without("solvers", "chain", "bitcoin_testnet"), "{}"),
        (without("assets", "id", "bitcoin_testnet:btc"), "{}"),
        (fixture.registry.clone(), strict),
    ] {
        let (home, server, command) = instant_refund(&fixture, &refund, &registry);
        let pins = SignedUnder { registry: Registry::from_json(fixture.registry.as_bytes()).unwrap(), policy: Policy::default() };
        fs::write(home.kept(fixture.order_id(), "pins.json"), serde_json::to_vec(&pins).unwrap()).unwrap();
        let policy = home.file("policy.json", policy);
        let command: Vec<&str> = command.iter().map(String::as_str).chain(["--policy", &policy]).collect();
        let mut signed = Fixture::load("bitcoin-delegate");
        fs::write(home.kept(fixture.order_id(), "record.json"), signed.order.to_string()).unwrap();
        let output = home.run(&server.base, &command);
        assert!(output.status.success(), "{}", said(&output));
        assert_eq!(server.seen().pop().unwrap().method, "PATCH");

        signed.order["destination_swap"]["timelock"] = json!(3_601);
        fs::write(home.kept(fixture.order_id(), "record.json"), mended(signed).order.to_string()).unwrap();
        let seen = server.seen().len();
        let refused: Value = serde_json::from_str(&out(&home.run(&server.base, &[&command[..], &["--json"]].concat()))).unwrap();
        assert_eq!(refused["error"]["code"], "record_changed", "{refused}");
        assert!(server.seen()[seen..].iter().all(|seen| seen.method == "GET"));
    }
}

const TXID: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";

fn fixture_of_instant_refund() -> Fixture {
    let mut fixture = Fixture::load("bitcoin-delegate");
    fixture.order = fixture.at(Step::SourceFunded);
    fixture.order["source_swap"]["initiate_tx_hash"] = json!(format!("{TXID}:90249"));
    fixture
}

fn htlc_of(fixture: &Fixture) -> RecordedHtlc {
    let registry = Registry::from_json(fixture.registry.as_bytes()).unwrap();
    let record = OrderRecord::from_json(fixture.order.to_string().as_bytes()).unwrap();
    RecordedHtlc::new(&record, Leg::Source, &registry).unwrap()
}

fn filled(fixture: &Fixture) -> u64 {
    htlc_of(fixture).filled.to_sat()
}

fn refund_of(fixture: &Fixture, outputs: &[&str]) -> InstantRefund {
    let outputs: Vec<_> = outputs.iter().map(|output| Funding::parse(output).unwrap()).collect();
    InstantRefund::new(&htlc_of(fixture), &outputs, fixture.request["source"]["owner"].as_str().unwrap()).unwrap()
}

/// An order that is stored, a service that asks for the hashes of its refund, and the command that answers.
fn instant_refund(fixture: &Fixture, refund: &InstantRefund, registry: &str) -> (Home, Server, Vec<String>) {
    // How the generator makes keys (fixtures/README.md).
    let key = keccak256("countersign fixture: refund key of bitcoin-delegate");
    let home = Home::new(&format!("instant-{}", refund.sighashes.len()));
    let hashes: Vec<_> = refund.sighashes.iter().map(hex::encode).collect();
    let (served, asked) = (fixture.order.clone(), json!(hashes));
    let server = Server::start(move |seen| match seen.method.as_str() {
        "GET" if seen.path().ends_with("/instant-refund-hash") => Reply::ok(&asked),
        "GET" => Reply::ok(&served),
        _ => Reply::ok(&json!("0xtransaction")),
    });
    let id = fixture.order_id();
    home.keep(id, &fixture.request, &fixture.response, None);
    let (pins, file) = (home.file("registry.json", registry), home.file("key.txt", &hex::encode(key)));
    let command = ["instant-refund", id, "--registry", &pins, "--key-file", &file].map(str::to_owned).into();
    (home, server, command)
}

/// Lets the program answer a service that asks for the hashes of a refund. `is_part`: whether the owner is told that some may be left.
fn check_instant_refund(fixture: &Fixture, refund: &InstantRefund, arguments: &[&str], is_part: bool) {
    let (home, server, command) = instant_refund(fixture, refund, &fixture.registry);
    let command: Vec<&str> = command.iter().map(String::as_str).chain(arguments.iter().copied()).collect();
    let (id, output) = (fixture.order_id(), home.run(&server.base, &command));
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(said(&output).contains("only a part of what you paid"), is_part, "{}", said(&output));
    let patch = server.seen().pop().unwrap();
    assert_eq!(patch.line(), format!("PATCH /v2/orders/{id}?action=instant-refund"));
    let body: Value = serde_json::from_str(&patch.text()).unwrap();
    let signatures: Vec<_> = body["signatures"].as_array().unwrap().iter().map(|text| text.as_str().unwrap()).collect();
    // Each is valid under the owner's key over exactly its hash.
    assert_eq!(refund.attach(&signatures).unwrap().signatures, signatures);
    assert_eq!(body, json!({"signatures": signatures}));
}
