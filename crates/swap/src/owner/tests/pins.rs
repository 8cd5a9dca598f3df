//! The service lists other assets than before while an order is under way. Those that the order was signed under are asked about.

use serde_json::{Value, json};

use super::*;

/// Answers as a node of Arbitrum on which this token is paused.
fn node(asked: &crate::need::HttpRequest, paused: &str) -> Reply {
    let answer = |call: &Value| {
        let is_paused = call["method"] == "eth_call" && call["params"][0]["to"].as_str().is_some_and(|to| to.eq_ignore_ascii_case(paused));
        let (id, method) = (&call["id"], call["method"].as_str().unwrap());
        match method {
            "eth_chainId" => json!({"jsonrpc": "2.0", "id": id, "result": "0xa4b1"}),
            _ if is_paused => json!({"jsonrpc": "2.0", "id": id, "error": {"code": 3, "message": "execution reverted: Pausable: paused"}}),
            _ => json!({"jsonrpc": "2.0", "id": id, "result": "0x"}),
        }
    };
    let body: Value = serde_json::from_slice(asked.body.as_ref().unwrap()).unwrap();
    let body = body.as_array().map_or_else(|| answer(&body), |calls| calls.iter().map(answer).collect());
    Reply::Response { status: 200, headers: Vec::new(), body: body.to_string().into_bytes() }
}

#[test]
fn the_release_asks_about_the_pins_of_the_order() {
    const OTHER: &str = "0x00000000000000000000000000000000000000dd";
    let (mut record, pins) = (OrderRecord::from_json(&document("/order")).unwrap(), registry());
    record.destination_swap.asset = "arbitrum:wbtc".parse().unwrap();
    let id = &record.destination_swap.asset;
    let token = pins.asset(id).unwrap().token.as_ref().unwrap().text.clone();
    for is_renamed in [false, true] {
        let mut newest = serde_json::to_value(&pins).unwrap();
        let assets = newest["assets"].as_array_mut().unwrap();
        let place = assets.iter().position(|asset| asset["id"] == id.as_str()).unwrap();
        if is_renamed {
            assets.get_mut(place).unwrap()["token"]["address"] = json!(OTHER);
        } else {
            assets.remove(place);
        }
        let newest = Registry::from_json(newest.to_string().as_bytes()).unwrap();
        for (paused, is_released) in [(token.as_str(), false), (OTHER, true)] {
            let owner = owner_under(newest.clone(), BOTH, "");
            let released = run(&owner.host, owner.check_release(&record, &pins), |need| match &need.ask {
                Ask::Http(asked) => node(asked, paused),
                other => panic!("{other:?}"),
            });
            let code = released.err().map(|error| match error {
                OwnerError::Refused(refusal) => refusal.code(),
                other => panic!("{other}"),
            });
            assert_eq!(code, (!is_released).then_some(Code::ReceiverNotPayable), "{is_renamed}");
        }
    }
}

/// The code of the destination's HTLC is compared with its stored description, before the secret leaves.
#[test]
fn the_release_compares_the_contract_with_its_stored_description() {
    let (record, pins) = (OrderRecord::from_json(&document("/order")).unwrap(), registry());
    let asset = pins.asset(record.destination_swap.asset.as_str()).unwrap();
    let htlc = asset.htlc.as_ref().unwrap().bytes().iter().fold("0x".to_owned(), |text, byte| format!("{text}{byte:02x}"));
    let node = |asked: &crate::need::HttpRequest, code: &str| {
        let answer = |call: &Value| {
            let result = match call["method"].as_str().unwrap() {
                "eth_chainId" => json!("0xa4b1"),
                "eth_getBlockByNumber" => {
                    json!({"number": "0x10", "hash": format!("0x{}", "11".repeat(32)), "timestamp": "0x6553f100", "l1BlockNumber": "0x1"})
                }
                "eth_getCode" if call["params"][0].as_str().is_some_and(|of| of.eq_ignore_ascii_case(&htlc)) => json!(code),
                _ => json!("0x"),
            };
            json!({"jsonrpc": "2.0", "id": call["id"], "result": result})
        };
        let body: Value = serde_json::from_slice(asked.body.as_ref().unwrap()).unwrap();
        let body = body.as_array().map_or_else(|| answer(&body), |calls| calls.iter().map(answer).collect());
        Reply::Response { status: 200, headers: Vec::new(), body: body.to_string().into_bytes() }
    };
    let reply = |need: &Need, code: &str| match &need.ask {
        Ask::Http(asked) => node(asked, code),
        other => panic!("{other:?}"),
    };
    let first = owner(BOTH, "");
    let described = run(&first.host, first.nodes.describe(asset), |need| reply(need, "0x6080")).unwrap();
    let mut contracts = Contracts::default();
    contracts.insert(asset, described);
    for (is_stored, code, is_released) in [(false, "0x6081", true), (true, "0x6080", true), (true, "0x6081", false)] {
        let owner = owner(BOTH, "");
        if is_stored {
            let storing = owner.store.run(|store| store.update_contracts(|_| Some(contracts.to_file())));
            run(&owner.host, storing, |need| panic!("{need:?}")).unwrap();
        }
        let released = run(&owner.host, owner.check_release(&record, &pins), |need| reply(need, code));
        let refused = released.err().map(|error| match error {
            OwnerError::Refused(refusal) => refusal.code(),
            other => panic!("{other}"),
        });
        assert_eq!(refused, (!is_released).then_some(Code::CannotBeJudged), "{is_stored} {code}");
    }
}
