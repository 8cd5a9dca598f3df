//! The payment of an order among calls that an external wallet bundled (EIP-5792).
use countersign_core::chains::swap_id::{self, SwapIdInput, Version};
use countersign_core::{Code, EvmGeneration, Policy};
use countersign_evm::alloy_primitives::{Address, B256, U256, hex};
use countersign_evm::{Evm, VerifiedOrder, received};
use countersign_testkit::{Case, TestResult, abi, asset_index, fixture, fixtures, registry_with, set, verified, verified_under};
use serde_json::{Value, json};

/// Topic 0 of `Initiated` (`docs/spec/evm.md#events`).
const INITIATED: &str = "0x01b41cbd4bbcc3c5b968a04d3fbdd8c1648a39ff6d9a3929b4840cea1142bc65";
/// Topic 0 of `InitiatedWithDestinationData`.
const DESTINATION_DATA: &str = "0x380328b26f928a9e51ec19f8e2199a2bce34db266d093d1e0104bce139ed7555";
const TRANSACTION: B256 = B256::repeat_byte(0x77);
/// An order whose record has the swap id of version 3, as an outside tool computed it.
const CASE: &str = "evm-record-evm-v3";

/// The `Initiated` log of an order with this swap id, as version 3 of the contract emits it.
fn initiated(order: &VerifiedOrder, id: &str) -> Value {
    let deposit = order.deposit();
    let topics =
        [INITIATED.to_owned(), format!("0x{id}"), deposit.terms.secret_hash.to_string(), B256::from(deposit.terms.amount).to_string()];
    json!({ "address": deposit.initiate.to, "topics": topics, "data": "0x" })
}

/// The log with the destination data of an order, as version 3 of the contract emits it after the other.
fn with_data(order: &VerifiedOrder, id: &str, data: &[u8]) -> Value {
    let mut log = initiated(order, id);
    log["topics"][0] = json!(DESTINATION_DATA);
    log["data"] = json!(hex::encode_prefixed(abi::bytes(data)));
    log
}

/// The logs of the order's own call, by a contract that gives it this swap id.
fn logs(order: &VerifiedOrder, id: &str) -> Vec<Value> {
    let data = order.deposit().terms.destination_data.as_ref().map(|data| with_data(order, id, data));
    [initiated(order, id)].into_iter().chain(data).collect()
}

/// A transfer of the token, and the event of another user's order in the same bundle.
fn other_logs(order: &VerifiedOrder) -> [Value; 2] {
    let transfer = json!({
        "address": Address::repeat_byte(5),
        "topics": ["0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef", B256::ZERO, B256::ZERO],
        "data": B256::ZERO,
    });
    let mut other = initiated(order, &"ab".repeat(32));
    other["topics"][2] = json!(B256::repeat_byte(3));
    [transfer, other]
}

/// What a wallet returns for confirmed calls: members and spelling as in the EIP's example.
fn status(order: &VerifiedOrder, logs: &[Value]) -> Value {
    json!({
        "version": "2.0.0",
        "chainId": format!("{:#x}", order.deposit().chain_id),
        "id": "0x00000000000000000000000000000000000000000000000000000000000000000e670ec64341771606e55d6b4ca35a1a6b75ee3d5145a99d05921026d1527331",
        "status": 200,
        "atomic": true,
        "receipts": [{
            "logs": logs,
            "status": "0x1",
            "blockHash": "0xf19bbafd9fd0124ec110b848e8de4ab4f62bf60c189524e54213285e7f540d4a",
            "blockNumber": "0xabcd",
            "gasUsed": "0xdef",
            "transactionHash": TRANSACTION,
        }],
    })
}

fn find(order: &VerifiedOrder, status: &Value) -> Result<B256, (String, String)> {
    let status = received::calls_status(status.to_string().as_bytes()).unwrap();
    order.deposit().find_payment(&status).map_err(|refusal| {
        assert_eq!(refusal.code(), Code::TransactionMismatch, "{refusal}");
        (refusal.location().to_owned(), refusal.to_string())
    })
}

fn refused(order: &VerifiedOrder, status: &Value) -> String {
    find(order, status).unwrap_err().0
}

fn recorded_id(case: &Case) -> String {
    case.json()["order"]["source_swap"]["swap_id"].as_str().unwrap().to_owned()
}

/// The ids of the records, computed by the outside tools, are those by which payments are found.
#[test]
fn a_bundled_payment_is_found_by_the_swap_id() -> TestResult {
    let (mut found, mut unproven) = (0, 0);
    for case in fixtures::<Evm>()? {
        let line = case.json();
        let Some(version) = line["order"]["version"].as_str() else { continue };
        let (order, id) = (verified::<Evm>(&case), recorded_id(&case));
        let bundle = status(&order, &[other_logs(&order).to_vec(), logs(&order, &id)].concat());
        if version == "v1" {
            // This formula commits neither to the redeemer nor to the timelock.
            let (location, message) = find(&order, &bundle).unwrap_err();
            assert_eq!(location, "", "{}", case.id);
            assert!(message.contains("do not commit"), "{message}");
            unproven += 1;
        } else {
            assert_eq!(find(&order, &bundle), Ok(TRANSACTION), "{}", case.id);
            found += 1;
        }
    }
    assert!(found > 20 && unproven > 1, "{found}, {unproven}");
    Ok(())
}

/// Older contracts have the amount in the data of the event.
#[test]
fn the_older_event_shows_a_payment_too() {
    let case = fixture::<Evm>("evm-old-v2");
    let order = verified::<Evm>(&case);
    let mut log = initiated(&order, &recorded_id(&case));
    log["data"] = log["topics"].as_array_mut().unwrap().pop().unwrap();
    assert_eq!(find(&order, &status(&order, &[log])), Ok(TRANSACTION));
}

/// Without a record, the id follows from the terms, by each formula that the pinned generation allows and that commits to all terms.
#[test]
fn without_a_record_the_swap_id_follows_from_the_terms() -> TestResult {
    let mut seen = 0;
    for case in fixtures::<Evm>()? {
        let line = case.json();
        if line["order"].is_object() {
            continue;
        }
        let asset = line["request"]["source"]["asset"].as_str().unwrap().to_owned();
        let at = format!("/assets/{}/htlc/generation", asset_index(&asset));
        for pin in [None, Some(EvmGeneration::OLD), Some(EvmGeneration::V3)] {
            let registry = registry_with(&[(&at, pin.map_or(Value::Null, |pin| pin.name.into()))]);
            let registry = if pin.is_some() { &registry } else { case.registry };
            // Most forms of an order are of one generation only.
            let Ok(order) = verified_under::<Evm>(&case, registry, &Policy::default()) else { continue };
            let deposit = order.deposit();
            let owner: Address = line["request"]["source"]["owner"].as_str().unwrap().parse()?;
            let swap = SwapIdInput {
                secret_hash: &deposit.terms.secret_hash.0,
                initiator: owner.as_slice(),
                redeemer: deposit.terms.redeemer.as_slice(),
                timelock: deposit.terms.timelock.try_into()?,
                amount: deposit.terms.amount,
            };
            let is_native = !deposit.initiate.value.is_zero();
            for version in [Version::V1, Version::V2, Version::V3] {
                let id = hex::encode(swap_id::evm(version, deposit.chain_id, &swap, deposit.initiate.to.as_slice()));
                let is_proof = match pin.or_else(|| pinned(&case, &asset)) {
                    None => version != Version::V1,
                    Some(EvmGeneration::V3) => version == Version::V3,
                    Some(_) => version == Version::V2 && !is_native,
                };
                let result = find(&order, &status(&order, &logs(&order, &id)));
                assert_eq!(result.is_ok(), is_proof, "{}, {pin:?}, {version:?}: {result:?}", case.id);
                if let Err((location, message)) = &result {
                    assert_eq!(location.is_empty(), message.contains("no formula of the contract's swap ids is known"), "{message}");
                }
                seen += 1;
            }
        }
    }
    assert!(seen > 300, "{seen}");
    Ok(())
}

fn pinned(case: &Case, asset: &str) -> Option<&'static EvmGeneration> {
    match case.registry.asset(asset)?.generation {
        Some(countersign_core::Generation::Evm(generation)) => Some(generation),
        _ => None,
    }
}

/// A bundle is not a proof if it pays on other terms, or if it is not stated to be on chain.
#[test]
fn a_bundle_that_does_not_pay_the_order_is_refused() {
    let case = fixture::<Evm>(CASE);
    let (order, id) = (verified::<Evm>(&case), recorded_id(&case));
    let log = initiated(&order, &id);
    let honest = status(&order, &[other_logs(&order)[0].clone(), log.clone()]);
    assert_eq!(find(&order, &honest), Ok(TRANSACTION));
    let more = B256::from(order.deposit().terms.amount + U256::ONE);
    let at = "/receipts/0/logs/1";
    for (member, value, location) in [
        ("/chainId", json!("0x1"), "/chainId"),
        ("/status", json!(100), "/status"),
        ("/status", json!(201), "/status"),
        ("/status", json!(400), "/status"),
        ("/status", json!(500), "/status"),
        ("/status", json!(600), "/status"),
        ("/receipts", json!([]), "/receipts"),
        ("/receipts", Value::Null, "/receipts"),
        ("/receipts/0/status", json!("0x0"), "/receipts/0/status"),
        // The event of another contract, of another order, or another event.
        ("/receipts/0/logs/1/address", json!(Address::repeat_byte(9)), "/receipts"),
        ("/receipts/0/logs/1/topics/2", json!(B256::repeat_byte(9)), "/receipts"),
        ("/receipts/0/logs/1/topics/0", json!(B256::repeat_byte(9)), "/receipts"),
        // Another redeemer, timelock, initiator, contract or chain leads to another id.
        ("/receipts/0/logs/1/topics/1", json!(B256::repeat_byte(9)), "/receipts/0/logs/1/topics/1"),
        ("/receipts/0/logs/1/topics/3", json!(more), at),
        ("/receipts/0/logs/1/topics", json!([log["topics"][0], log["topics"][1], log["topics"][2]]), at),
        ("/receipts/0/logs/1/data", json!("0x00"), at),
    ] {
        let mut changed = honest.clone();
        set(&mut changed, member, value.clone());
        assert_eq!(refused(&order, &changed), location, "{member} = {value}");
    }
    for (code, words) in [(100, "not confirmed yet"), (400, "did not send"), (500, "reverted"), (600, "some of the calls"), (0, "unknown")]
    {
        let mut changed = honest.clone();
        set(&mut changed, "/status", code.into());
        let message = find(&order, &changed).unwrap_err().1;
        assert!(message.contains(words), "{message}");
    }
}

/// Destination data is not in the swap id. The contract emits it in an event of its own.
#[test]
fn a_bundle_with_other_destination_data_is_refused() {
    let mut seen = 0;
    for id in ["evm-v3-destination-data", "evm-v3-on-behalf", "evm-destination-data-empty", "evm-destination-data-1-kib", CASE] {
        let order = verified::<Evm>(&fixture::<Evm>(id));
        let own = order.deposit().terms.destination_data.as_ref().map(|data| data.to_vec());
        let swap_id = match fixture::<Evm>(id).json()["order"]["source_swap"]["swap_id"].as_str() {
            Some(recorded) => recorded.to_owned(),
            None => {
                let deposit = order.deposit();
                let (initiator, terms) = (deposit.terms.initiator.unwrap_or(deposit.sender), &deposit.terms);
                let swap = SwapIdInput {
                    secret_hash: &terms.secret_hash.0,
                    initiator: initiator.as_slice(),
                    redeemer: terms.redeemer.as_slice(),
                    timelock: terms.timelock.try_into().unwrap(),
                    amount: terms.amount,
                };
                hex::encode(swap_id::evm(Version::V3, deposit.chain_id, &swap, deposit.initiate.to.as_slice()))
            }
        };
        let paid = initiated(&order, &swap_id);
        let found = |data: Option<&[u8]>| {
            let data = data.map(|data| with_data(&order, &swap_id, data));
            find(&order, &status(&order, &[paid.clone()].into_iter().chain(data).collect::<Vec<_>>()))
        };
        assert_eq!(found(own.as_deref()), Ok(TRANSACTION), "{id}");
        let mut changed = own.clone().unwrap_or_default();
        changed.push(1);
        let mut others = vec![Some(changed.clone()), None, Some(Vec::new())];
        changed[0] ^= 1;
        others.push(Some(changed));
        for other in others.into_iter().filter(|other| *other != own) {
            let (location, message) = found(other.as_deref()).unwrap_err();
            assert_eq!(location, if other.is_some() { "/receipts/0/logs/1/data" } else { "/receipts/0/logs/0" }, "{id}, {other:?}");
            assert!(message.contains("destination data"), "{message}");
            seen += 1;
        }
    }
    assert_eq!(seen, 18);
}

/// The event with the data is compared as strictly as the other.
#[test]
fn a_malformed_event_with_destination_data_is_refused() {
    let case = fixture::<Evm>("evm-v3-destination-data");
    let (order, id) = (verified::<Evm>(&case), recorded_id(&case));
    let honest = status(&order, &logs(&order, &id));
    assert_eq!(find(&order, &honest), Ok(TRANSACTION));
    let data = honest["receipts"][0]["logs"][1]["data"].as_str().unwrap().to_owned();
    let topics = honest["receipts"][0]["logs"][1]["topics"].clone();
    let at = "/receipts/0/logs/1";
    for (member, value, location) in [
        // The event of another contract or order proves nothing about this one.
        ("/address", json!(Address::repeat_byte(9)), "/receipts/0/logs/0"),
        ("/topics/2", json!(B256::repeat_byte(9)), "/receipts/0/logs/0"),
        ("/topics/1", json!(B256::repeat_byte(9)), "/receipts/0/logs/1/topics/1"),
        ("/topics/3", json!(B256::repeat_byte(9)), at),
        ("/topics", json!([topics[0], topics[1], topics[2]]), at),
        ("/data", json!("0x"), at),
        ("/data", json!(format!("{data}{}", "00".repeat(32))), at),
        ("/data", json!(format!("{}01", &data[..data.len() - 2])), at),
    ] {
        let mut changed = honest.clone();
        set(&mut changed, &format!("{at}{member}"), value.clone());
        assert_eq!(refused(&order, &changed), location, "{member} = {value}");
    }
    let twice = [logs(&order, &id), vec![logs(&order, &id)[1].clone()]].concat();
    assert_eq!(refused(&order, &status(&order, &twice)), "/receipts/0/logs/2");
}

#[test]
fn a_second_payment_in_a_bundle_is_refused() {
    let case = fixture::<Evm>(CASE);
    let (order, id) = (verified::<Evm>(&case), recorded_id(&case));
    let log = initiated(&order, &id);
    // The same secret hash under other terms: anyone who knows the secret can take both.
    let other = initiated(&order, &"ab".repeat(32));
    assert_eq!(refused(&order, &status(&order, &[log.clone(), other.clone()])), "/receipts/0/logs/1/topics/1");
    assert_eq!(refused(&order, &status(&order, &[other, log.clone()])), "/receipts/0/logs/0/topics/1");
    assert_eq!(refused(&order, &status(&order, &[log.clone(), log.clone()])), "/receipts/0/logs/1");
    // Some wallets list one receipt for each call, and so one transaction twice.
    let mut twice = status(&order, &[log]);
    let receipt = twice["receipts"][0].clone();
    twice["receipts"] = json!([receipt, receipt]);
    assert_eq!(find(&order, &twice), Ok(TRANSACTION));
    set(&mut twice, "/receipts/1/transactionHash", json!(B256::repeat_byte(1)));
    assert_eq!(refused(&order, &twice), "/receipts/1/logs/0");
}

#[test]
fn a_status_of_calls_is_parsed_strictly() -> TestResult {
    let case = fixture::<Evm>(CASE);
    let order = verified::<Evm>(&case);
    let honest = status(&order, &[initiated(&order, &recorded_id(&case))]);
    let parsed = received::calls_status(honest.to_string().as_bytes())?;
    assert_eq!((parsed.chain_id, parsed.status, parsed.receipts.len()), (Some(order.deposit().chain_id), 200, 1));
    assert_eq!((parsed.receipts[0].transaction_hash, parsed.receipts[0].is_success), (TRANSACTION, true));
    let word = B256::ZERO;
    for (member, value, code) in [
        ("/chainId", json!([8453]), Code::WrongType),
        ("/status", json!(true), Code::WrongType),
        ("/status", json!("perhaps"), Code::DecimalDigit),
        ("/status", json!("2e2"), Code::DecimalExponent),
        ("/receipts", json!({}), Code::WrongType),
        ("/receipts", json!(vec![honest["receipts"][0].clone(); 65]), Code::WrongType),
        ("/receipts/0/status", json!("perhaps"), Code::DecimalDigit),
        ("/receipts/0/transactionHash", json!("0x12"), Code::HexLength),
        ("/receipts/0/logs", json!(vec![honest["receipts"][0]["logs"][0].clone(); 65]), Code::WrongType),
        ("/receipts/0/logs/0/topics", json!([word, word, word, word, word]), Code::WrongType),
        ("/receipts/0/logs/0/address", json!("0x12"), Code::HexLength),
        ("/receipts/0/logs/0/removed", json!(true), Code::WrongType),
        ("/receipts/0/logs/0/data", json!(format!("0x{}", "00".repeat(16 * 1024 + 1))), Code::HexLength),
    ] {
        let mut changed = honest.clone();
        set(&mut changed, member, value);
        let refusal = received::calls_status(changed.to_string().as_bytes()).unwrap_err();
        assert_eq!(refusal.code(), code, "{member}: {refusal}");
        assert!(refusal.location().starts_with(member), "{member}: {refusal}");
    }
    let mut changed = honest.clone();
    changed.as_object_mut().unwrap().remove("status");
    let refusal = received::calls_status(changed.to_string().as_bytes()).unwrap_err();
    assert_eq!((refusal.code(), refusal.location()), (Code::MissingField, "/status"));
    Ok(())
}

/// Version 1.0 of EIP-5792 had two words and no chain id, viem has words of its own, and some wallets write numbers as text.
#[test]
fn older_words_of_a_status_are_understood() {
    let case = fixture::<Evm>(CASE);
    let order = verified::<Evm>(&case);
    let honest = status(&order, &[initiated(&order, &recorded_id(&case))]);
    let with = |change: &dyn Fn(&mut Value)| {
        let mut changed = honest.clone();
        change(&mut changed);
        find(&order, &changed)
    };
    for word in [json!("CONFIRMED"), json!("success"), json!("Confirmed"), json!("0xc8"), json!("200")] {
        assert_eq!(with(&|status| status["status"] = word.clone()), Ok(TRANSACTION), "{word}");
    }
    for (word, said) in
        [("PENDING", "not confirmed yet"), ("pending", "not confirmed yet"), ("failure", "reverted"), ("0x190", "did not send")]
    {
        let (at, message) = with(&|status| status["status"] = word.into()).unwrap_err();
        assert!(at == "/status" && message.contains(said), "{word}: {message}");
    }
    for chain_id in [json!(order.deposit().chain_id), json!(order.deposit().chain_id.to_string()), Value::Null] {
        assert_eq!(with(&|status| status["chainId"] = chain_id.clone()), Ok(TRANSACTION), "{chain_id}");
    }
    // The word of the calls does not hide the status of a receipt.
    for reverted in [json!("0x0"), json!("reverted"), json!(0)] {
        let (at, _) =
            with(&|status| (status["status"], status["receipts"][0]["status"]) = (json!("CONFIRMED"), reverted.clone())).unwrap_err();
        assert_eq!(at, "/receipts/0/status");
    }
    assert_eq!(with(&|status| status["receipts"][0]["status"] = json!("success")), Ok(TRANSACTION));
    // Without receipts nothing is shown, and nothing is denied.
    for none in [json!([]), Value::Null] {
        let (at, message) = with(&|status| status["receipts"] = none.clone()).unwrap_err();
        assert!(at == "/receipts" && message.contains("no receipts") && message.contains("read the source leg"), "{message}");
    }
}

/// A relay of a wallet, a bundler or an owner of a Safe sends in its own name. The contract's event shows whose payment it is.
#[test]
fn the_receipt_of_another_accounts_transaction_shows_the_payment() {
    let case = fixture::<Evm>(CASE);
    let order = verified::<Evm>(&case);
    let honest = status(&order, &[other_logs(&order)[0].clone(), initiated(&order, &recorded_id(&case))]);
    let mut receipt = honest["receipts"][0].clone();
    receipt["from"] = json!(Address::repeat_byte(0x12));
    receipt["to"] = json!(Address::repeat_byte(0x13));
    let found = |receipt: &Value| {
        let status = received::receipt(receipt.to_string().as_bytes()).unwrap();
        order.deposit().find_payment(&status).map_err(|refusal| refusal.location().to_owned())
    };
    assert_eq!(found(&receipt), Ok(TRANSACTION));
    receipt["logs"][1]["topics"][1] = json!(B256::repeat_byte(9));
    assert_eq!(found(&receipt), Err("/receipts/0/logs/1/topics/1".to_owned()), "another initiator, redeemer, timelock or chain");
    receipt["status"] = json!("0x0");
    assert_eq!(found(&receipt), Err("/status".to_owned()));
}
