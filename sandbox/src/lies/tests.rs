use std::collections::BTreeSet;

use serde_json::json;

use super::*;

#[test]
fn names_are_unique_and_every_lie_is_found_by_its_name() {
    let names: BTreeSet<_> = all().map(|lie| lie.name).collect();
    assert_eq!(names.len(), all().count());
    for lie in all() {
        assert_eq!(find(lie.name).unwrap().about, lie.about);
        assert!(lie.route.iter().all(|asset| asset.contains(':')), "{}", lie.name);
    }
}

#[test]
fn every_lie_of_a_family_is_listed() {
    for family in &FAMILIES {
        for variant in family.variants {
            let lie = find(&format!("{}-{}", variant.lie, family.name()));
            assert_eq!(lie.map(|lie| lie.route), Some(variant.route), "{variant:?}");
        }
        assert!(family.lies.iter().flat_map(|(_, lies)| *lies).all(|lie| find(lie.name).is_some()));
    }
}

#[test]
fn the_documentation_has_these_lies_in_this_order() {
    let rows = include_str!("../../../docs/lies.md").lines().filter(|line| line.starts_with("| `"));
    let documented: Vec<Vec<&str>> = rows.map(|row| row.split(" | ").take(5).collect()).collect();
    let row = |lie: &Lie| {
        let [from, to] = lie.route;
        vec![format!("| `{}`", lie.name), format!("{from} → {to}"), lie.liar.to_string(), lie.about.to_owned(), lie.at_stake.to_owned()]
    };
    assert_eq!(all().map(row).collect::<Vec<_>>(), documented);
}

#[test]
fn lies_are_told_only_while_they_are_on() {
    let lies = Lies::new(0);
    let honest = json!({ "initiate_transaction": { "to": "0x01", "chain_id": 8453 } });
    let told = |lies: &Lies| {
        let mut answer = honest.clone();
        lies.answer(&mut answer);
        answer
    };
    assert_eq!(told(&lies), honest);
    assert!(lies.set("evm-chain", true) && !lies.set("no-such-lie", true));
    assert_eq!(told(&lies).pointer("/initiate_transaction/chain_id"), Some(&json!(137)));
    lies.set("evm-chain", false);
    assert_eq!(told(&lies), honest);
}

#[test]
fn a_lie_of_the_record_brings_its_solver_along() {
    let lies = Lies::new(0);
    assert_eq!(lies.conduct(), None);
    lies.set("record-invents-payment", true);
    assert_eq!(lies.conduct(), Some(Conduct::NeverPays));
    lies.clear();
    lies.set("solver-one-block", true);
    assert_eq!(lies.conduct(), Some(Conduct::OneBlock));
}

fn post(path: &str, body: &str) -> Request {
    Request::new("POST", path, "", body)
}

#[test]
fn an_endpoint_that_swallows_answers_as_if_it_had_accepted() {
    let lies = Lies::new(0);
    lies.set("endpoint-swallows", true);
    let call = post("/", r#"{"jsonrpc":"2.0","id":7,"method":"eth_sendRawTransaction","params":["0x02c0"]}"#);
    let reply = lies.endpoint("base", 0, &call, |_| Reply::text(500, "it was relayed"));
    let answer: Value = serde_json::from_slice(&reply.body).unwrap();
    // keccak256(02 c0)
    let hash = alloy_primitives::keccak256([2, 0xc0]).to_string();
    assert_eq!((answer.get("id"), answer.get("result")), (Some(&json!(7)), Some(&json!(hash))));
    // The well-known coinbase transaction of Bitcoin's genesis block.
    let coinbase = "01000000010000000000000000000000000000000000000000000000000000000000000000ffffffff4d04ffff001d0104455468652054696d65\
                    732030332f4a616e2f32303039204368616e63656c6c6f72206f6e206272696e6b206f66207365636f6e64206261696c6f757420666f72206261\
                    6e6b73ffffffff0100f2052a01000000434104678afdb0fe5548271967f1a67130b7105cd6a828e03909a67962e0ea1f61deb649f6bc3f4cef38\
                    c4f35504e51ec112de5c384df7ba0b8d578a4c702b6bf11d5fac00000000";
    let reply = lies.endpoint("litecoin", 0, &post("/tx", coinbase), |_| Reply::text(500, "it was relayed"));
    assert_eq!(reply.body, b"4a5e1e4baab89f3a32518a88c31bc87f618f76673e2cc77ab2127b7afdeda33b");
    // Calls that submit nothing are answered honestly.
    let reply = lies.endpoint("base", 0, &post("/", r#"{"method":"eth_chainId"}"#), |_| Reply::text(200, "honest"));
    assert_eq!(reply.body, b"honest");
}

#[test]
fn a_stale_endpoint_repeats_itself_under_new_ids() {
    let lies = Lies::new(0);
    lies.set("endpoint-stale", true);
    let ask = |id: u64, result: u64| {
        let call = post("/", &json!({ "jsonrpc": "2.0", "id": id, "method": "eth_blockNumber", "params": [] }).to_string());
        let reply = lies.endpoint("base", 0, &call, |_| Reply::json(200, &json!({ "jsonrpc": "2.0", "id": id, "result": result })));
        serde_json::from_slice::<Value>(&reply.body).unwrap()
    };
    assert_eq!(ask(1, 100), json!({ "jsonrpc": "2.0", "id": 1, "result": 100 }));
    assert_eq!(ask(2, 200), json!({ "jsonrpc": "2.0", "id": 2, "result": 100 }));
}

#[test]
fn a_service_that_is_gone_is_there_until_it_is_paid() {
    let lies = Lies::new(0);
    lies.set("service-gone", true);
    let record = Request { method: "GET".into(), ..post("/v2/orders/00", "") };
    assert_eq!(lies.service(&record, false), None);
    let lie = lies.service(&record, true).unwrap();
    assert_eq!(lie.change(Reply::text(200, "honest")), None);
}

/// Returns the lying endpoint's answer to a body whose honest answer is `truth`.
fn told(name: &str, path: &str, body: &Value, truth: &Value) -> Value {
    let lies = Lies::new(0);
    assert!(lies.set(name, true) && lies.lying_endpoint() == Some(0));
    let reply = lies.endpoint("base", 1_000_000_000_000, &post(path, &body.to_string()), |_| Reply::json(200, truth));
    let answer = serde_json::from_slice(&reply.body).unwrap();
    assert_eq!(lies.told(), u64::from(answer != *truth));
    answer
}

#[test]
fn a_component_is_changed_wherever_it_is_shown_and_nothing_else() {
    let call = |id: u64, method: &str| json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": [] });
    let batch = json!([call(1, "eth_gasPrice"), call(2, "eth_feeHistory"), call(3, "eth_getBlockByNumber")]);
    // The answers are not in the order of the calls.
    let truth = json!([
        { "id": 3, "result": { "number": "0x10", "baseFeePerGas": "0x10" } },
        { "id": 1, "result": "0x10" },
        { "id": 2, "result": { "baseFeePerGas": ["0x10", "0x20"], "reward": [["0x1", "0x2"]] } },
    ]);
    let high = json!([
        { "id": 3, "result": { "number": "0x10", "baseFeePerGas": "0x3e80" } },
        { "id": 1, "result": "0x10" },
        { "id": 2, "result": { "baseFeePerGas": ["0x3e80", "0x7d00"], "reward": [["0x1", "0x2"]] } },
    ]);
    assert_eq!(told("endpoint-evm-base-fee-high", "/", &batch, &truth), high);
    let tips = told("endpoint-evm-tip-low", "/", &batch, &truth);
    assert_eq!(tips.pointer("/2/result"), Some(&json!({ "baseFeePerGas": ["0x10", "0x20"], "reward": [["0x0", "0x0"]] })));
    assert_eq!(told("endpoint-evm-nonce-high", "/", &batch, &truth), truth);

    let parameters = |energy: u64| json!({ "chainParameter": [{ "key": "getTransactionFee", "value": 1_000 }, { "key": "getEnergyFee", "value": energy }] });
    assert_eq!(told("endpoint-tron-energy-low", "/wallet/getchainparameters", &json!({}), &parameters(100)), parameters(1));
    assert_eq!(told("endpoint-tron-energy-low", "/wallet/getaccount", &json!({}), &parameters(100)), parameters(100));
    assert_eq!(
        told("endpoint-bitcoin-rate-high", "/fee-estimates", &json!({}), &json!({ "1": 3.5, "6": 2 })),
        json!({ "1": 1_050.0, "6": 600 })
    );
}

#[test]
fn times_are_told_in_seconds_and_in_milliseconds_and_in_hex() {
    let call = json!({ "id": 1, "method": "eth_getBlockByNumber", "params": [] });
    let block = |time: Value| json!({ "id": 1, "result": { "timestamp": time, "number": "0x3b9ac9f6" } });
    for (name, [seconds, millis]) in [
        // The time is 1,000,000,000 s, and the block is a hundred seconds old.
        ("endpoint-pace-at-once-evm", [1_000_000_000_u64, 1_000_000_000_000_u64]),
        ("endpoint-pace-faster-evm", [999_999_990, 999_999_990_000]),
        ("endpoint-pace-slower-evm", [999_999_000, 999_999_000_000]),
    ] {
        let answer = |time: Value| told(name, "/", &call, &block(time));
        assert_eq!(answer(json!(999_999_900_u64)), block(json!(seconds)), "{name}");
        assert_eq!(answer(json!(999_999_900_000_u64)), block(json!(millis)), "{name}");
        assert_eq!(answer(json!("0x3b9ac99c")), block(json!(format!("{seconds:#x}"))), "{name}");
    }
}
