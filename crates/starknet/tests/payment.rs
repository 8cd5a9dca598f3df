//! The payment of an order in the transaction of another account, by the event that the contract emitted.

use countersign_core::chains::swap_id::{self, StarknetFormula, SwapIdInput};
use countersign_core::reader::{Answer, Equal, Fault, Known, Next, Observation, Quorum, Reader};
use countersign_core::{Code, Refusal, StarknetGeneration};
use countersign_starknet::reader::{Effect, EffectQuery};
use countersign_starknet::received::{self, TransactionReceipt};
use countersign_starknet::{Felt, Starknet, VerifiedOrder, felt, read};
use countersign_testkit::{Case, TestResult, fixture, fixtures, set, verified};
use serde_json::{Value, json};

/// An order whose record has the id of the generation, as starknet.js computed it.
const CASE: &str = "starknet-2025-11";
const TRANSACTION: Felt = Felt::from_hex_unchecked("0x777");

fn hex(felt: Felt) -> String {
    format!("{felt:#x}")
}

/// The event that the contract emits for the order's own call if it gives the order this id.
fn initiated(order: &VerifiedOrder, id: Felt) -> Value {
    with_data(order, id, order.deposit().destination_data.as_deref())
}

/// The event of a call with this destination data.
fn with_data(order: &VerifiedOrder, id: Felt, destination_data: Option<&[Felt]>) -> Value {
    let deposit = order.deposit();
    let words = deposit.terms.secret_hash.0.chunks(4).map(Felt::from_bytes_be_slice);
    let array = destination_data.map(|data| [&[Felt::from(data.len())], data].concat()).unwrap_or_default();
    let data: Vec<_> = words.chain(felt::halves(deposit.terms.amount)).chain(array).map(hex).collect();
    let name = if destination_data.is_some() { read::INITIATED_WITH_DESTINATION_DATA } else { read::INITIATED };
    json!({"from_address": hex(deposit.initiate.to), "keys": [hex(name), hex(id)], "data": data})
}

/// What a node returns for the transaction of a paymaster that executes the owner's calls, in the form of the RPC specification.
fn receipt(order: &VerifiedOrder, id: Felt) -> Value {
    let transfer = json!({"from_address": "0x5", "keys": ["0x99cd8bde557814842a3121e8ddfd433a539b8c9f14bf31ebf108d12e6196e9"], "data": ["0x1", "0x2", "0x3", "0x0"]});
    let mut other = initiated(order, Felt::TWO);
    other["data"][0] = json!("0x3");
    json!({
        "type": "INVOKE", "transaction_hash": hex(TRANSACTION), "actual_fee": {"amount": "0x1", "unit": "FRI"},
        "finality_status": "ACCEPTED_ON_L2", "execution_status": "SUCCEEDED", "block_hash": "0x8", "block_number": 9,
        "messages_sent": [], "events": [transfer, other, initiated(order, id)],
        "execution_resources": {"l1_gas": 0, "l1_data_gas": 128, "l2_gas": 1_000_000},
    })
}

fn parse(receipt: &Value) -> Result<TransactionReceipt, Refusal> {
    received::receipt(receipt.to_string().as_bytes())
}

fn find(order: &VerifiedOrder, receipt: &Value) -> Result<Felt, (String, String)> {
    order.deposit().find_payment(&parse(receipt).unwrap()).map_err(|refusal| {
        assert_eq!(refusal.code(), Code::TransactionMismatch, "{refusal}");
        (refusal.location().to_owned(), refusal.to_string())
    })
}

fn refused(order: &VerifiedOrder, receipt: &Value) -> String {
    find(order, receipt).unwrap_err().0
}

fn recorded_id(case: &Case) -> Option<Felt> {
    let line = case.json();
    Some(felt::parse(&format!("0x{}", line["order"]["source_swap"]["swap_id"].as_str()?)).unwrap())
}

/// The id that the contract gives to the order of an owner that sends for itself.
fn computed_id(order: &VerifiedOrder) -> Felt {
    let (deposit, terms) = (order.deposit(), &order.deposit().terms);
    let [initiator, redeemer, htlc] = [deposit.sender, terms.redeemer, deposit.initiate.to].map(|felt| felt.to_bytes_be());
    let (secret_hash, timelock) = (&terms.secret_hash.0, terms.timelock.try_into().unwrap());
    let swap = SwapIdInput { secret_hash, initiator: &initiator, redeemer: &redeemer, timelock, amount: terms.amount };
    let chain = felt::to_short_string(&deposit.chain_id).unwrap();
    Felt::from_bytes_be(&swap_id::starknet(StarknetFormula::TermsAndContract, &chain, &swap, &htlc)[0])
}

/// The ids of the records, computed by the outside tool, are those by which payments are found: of the owner and of a delegate.
#[test]
fn a_payment_of_another_account_is_found_by_the_order_id() -> TestResult {
    let (mut found, mut unproven) = (0, 0);
    for case in fixtures::<Starknet>()? {
        let (order, Some(id)) = (verified::<Starknet>(&case), recorded_id(&case)) else { continue };
        let receipt = receipt(&order, id);
        if order.deposit().terms.generation == StarknetGeneration::NOVEMBER_2025 {
            assert_eq!(find(&order, &receipt), Ok(TRANSACTION), "{}", case.id);
            found += 1;
        } else {
            let words = match order.deposit().terms.generation.name {
                "2025_02" => "do not commit to redeemer and timelock",
                "captured_2025_07" => "the events of the contract are not known",
                _ => "no formula of the contract's swap ids is known",
            };
            let (location, message) = find(&order, &receipt).unwrap_err();
            assert!(location.is_empty() && message.contains(words), "{}: {message}", case.id);
            unproven += 1;
        }
    }
    assert!(found >= 4 && unproven > 4, "{found}, {unproven}");
    Ok(())
}

/// The event with destination data is emitted in place of the other. No id commits to the data, so it is compared.
#[test]
fn a_payment_with_other_destination_data_is_refused() {
    let cases = ["", "-destination-data", "-destination-data-empty", "-destination-data-longest"].map(|kind| format!("{CASE}{kind}"));
    let mut seen = Vec::new();
    for id in cases {
        let case = fixture::<Starknet>(&id);
        let order = verified::<Starknet>(&case);
        let id_on_chain = recorded_id(&case).unwrap_or_else(|| computed_id(&order));
        let own = order.deposit().destination_data.clone();
        let found = |data: Option<&[Felt]>| {
            let mut receipt = receipt(&order, id_on_chain);
            receipt["events"][2] = with_data(&order, id_on_chain, data);
            find(&order, &receipt).map_err(|(location, message)| {
                assert!(message.contains("destination data"), "{message}");
                location
            })
        };
        assert_eq!(found(own.as_deref()), Ok(TRANSACTION), "{id}");
        let felts = own.clone().unwrap_or_default();
        let changed: Vec<_> = felts.iter().map(|felt| *felt + Felt::ONE).collect();
        let others = [Some(vec![Felt::THREE]), Some(Vec::new()), Some(changed), Some(felts.iter().copied().skip(1).collect()), None];
        for other in others.into_iter().filter(|other| *other != own) {
            // The gasless message has no data, so that a payment by it does not show that there is none.
            let is_same = other.is_none() && felts.is_empty() && order.deposit().typed_data.is_some();
            let location = if other.is_some() { "/events/2/data" } else { "/events/2" };
            assert_eq!(found(other.as_deref()), if is_same { Ok(TRANSACTION) } else { Err(location.to_owned()) }, "{id}: {other:?}");
            seen.push(is_same);
        }
        // Without the length.
        if own.is_some() {
            let mut receipt = receipt(&order, id_on_chain);
            receipt["events"][2]["data"].as_array_mut().unwrap().truncate(10);
            assert_eq!(refused(&order, &receipt), "/events/2");
        }
    }
    assert!(seen.contains(&true) && seen.len() > 12, "{seen:?}");
}

#[test]
fn a_transaction_that_does_not_pay_the_order_is_refused() {
    let case = fixture::<Starknet>(CASE);
    let (order, id) = (verified::<Starknet>(&case), recorded_id(&case).unwrap());
    let honest = receipt(&order, id);
    assert_eq!(find(&order, &honest), Ok(TRANSACTION));
    for (member, value, location) in [
        ("/execution_status", json!("REVERTED"), "/execution_status"),
        ("/finality_status", json!("PRE_CONFIRMED"), "/finality_status"),
        ("/finality_status", json!("RECEIVED"), "/finality_status"),
        ("/events", json!([]), "/events"),
        // The event of another contract, of another order, or another event.
        ("/events/2/from_address", json!("0x9"), "/events"),
        ("/events/2/data/0", json!("0x9"), "/events"),
        ("/events/2/keys/0", json!("0x9"), "/events"),
        // Another redeemer, timelock, initiator, amount, contract or chain gives another id.
        ("/events/2/keys/1", json!("0x9"), "/events/2/keys/1"),
        ("/events/2/data/8", json!("0x9"), "/events/2"),
        ("/events/2/data/9", json!("0x1"), "/events/2"),
        ("/events/2/data", json!([]), "/events/2"),
        ("/events/2/keys", json!([hex(read::INITIATED)]), "/events/2"),
    ] {
        let mut changed = honest.clone();
        set(&mut changed, member, value.clone());
        assert_eq!(refused(&order, &changed), location, "{member} = {value}");
    }
    let with = |second: &Value| {
        let mut changed = honest.clone();
        changed["events"].as_array_mut().unwrap().push(second.clone());
        find(&order, &changed).unwrap_err()
    };
    assert_eq!(with(&initiated(&order, Felt::THREE)).0, "/events/3/keys/1");
    let (location, message) = with(&initiated(&order, id));
    assert!(location == "/events/3" && message.contains("paid twice"), "{message}");
    // The record of another order.
    let mut line = case.json();
    line.as_object_mut().unwrap().remove("order");
    let without = verified::<Starknet>(&case.with_input(line.to_string()));
    assert_eq!(find(&without, &honest), Ok(TRANSACTION), "the id follows from the terms");
}

#[test]
fn what_a_node_says_is_parsed_strictly() {
    let case = fixture::<Starknet>(CASE);
    let order = verified::<Starknet>(&case);
    let honest = receipt(&order, recorded_id(&case).unwrap());
    let parsed = parse(&honest).unwrap();
    assert_eq!((parsed.transaction_hash, parsed.is_in_block, parsed.is_success, parsed.events.len()), (TRANSACTION, true, true, 3));
    for (member, value, code) in [
        ("/transaction_hash", json!("777"), Code::HexPrefix),
        ("/transaction_hash", Value::Null, Code::MissingField),
        ("/execution_status", json!("PERHAPS"), Code::WrongType),
        ("/execution_status", Value::Null, Code::MissingField),
        ("/finality_status", json!("PERHAPS"), Code::WrongType),
        ("/finality_status", Value::Null, Code::MissingField),
        ("/events", json!({}), Code::WrongType),
        ("/events", Value::Null, Code::MissingField),
        ("/events", json!(vec![honest["events"][0].clone(); 1_025]), Code::WrongType),
        ("/events/0/from_address", Value::Null, Code::MissingField),
        ("/events/0/keys", json!(vec!["0x1"; 1_025]), Code::WrongType),
        ("/events/0/data", json!(vec!["0x1"; 1_025]), Code::WrongType),
        ("/events/0/data/0", json!(format!("0x{}", "f".repeat(64))), Code::FeltOutOfRange),
    ] {
        let mut changed = honest.clone();
        set(&mut changed, member, value);
        let refusal = parse(&changed).unwrap_err();
        assert_eq!(refusal.code(), code, "{member}: {refusal}");
        assert!(refusal.location().starts_with(member), "{member}: {refusal}");
    }
    let text = honest.to_string();
    for end in 0..text.len() {
        assert!(received::receipt(&text.as_bytes()[..end]).is_err(), "{end}");
    }
}

/// What one endpoint shows of a transaction. `None` is the error of a node that does not know it.
fn shown(order: &VerifiedOrder, receipt: Option<&Value>) -> Result<Observation<Effect>, Fault> {
    let subject = EffectQuery { chain_id: order.deposit().chain_id, id: TRANSACTION };
    let mut reader = Reader::<Effect>::new(&subject, &Known::default()).unwrap();
    let Next::Ask([_, _, asked]) = reader.next() else { panic!("the chain, the version and the transaction") };
    assert!(format!("{asked:?}").contains("starknet_getTransactionReceipt"), "{asked:?}");
    let result = |value: &Value| Answer::result(value.to_string().into_bytes());
    let found =
        receipt.map_or_else(|| Answer::Error(countersign_core::reader::RpcError::new(29, "Transaction hash not found", None)), result);
    reader.answer(&[result(&json!(hex(order.deposit().chain_id))), result(&json!("0.9.0")), found]).unwrap();
    reader.finish()
}

#[test]
fn what_a_transaction_did_counts_if_enough_endpoints_agree() {
    let case = fixture::<Starknet>(CASE);
    let (order, id) = (verified::<Starknet>(&case), recorded_id(&case).unwrap());
    let honest = receipt(&order, id);
    let mut lying = honest.clone();
    lying["events"][2]["keys"][1] = json!("0x9");
    let judged = |receipts: [Option<&Value>; 3]| {
        let endpoints = ["a", "b", "c"];
        let mut quorum = Quorum::new(endpoints, 2).unwrap();
        for (endpoint, receipt) in endpoints.into_iter().zip(receipts) {
            quorum.hear(endpoint, shown(&order, receipt));
        }
        let agreed = quorum.agreed::<()>().ok()?;
        let Equal(found) = agreed[0].output();
        Some(found.as_ref().map(|found| order.deposit().find_payment(found).is_ok()))
    };
    assert_eq!(judged([Some(&honest), Some(&lying), Some(&honest)]), Some(Some(true)));
    assert_eq!(judged([Some(&lying), Some(&honest), Some(&lying)]), Some(Some(false)));
    assert_eq!(judged([Some(&honest), None, None]), Some(None));
    assert_eq!(judged([Some(&honest), Some(&lying), None]), None);
    // The receipt of another transaction is the fault of the endpoint; one that is in no block yet says nothing.
    let mut changed = honest.clone();
    changed["transaction_hash"] = json!("0x778");
    assert!(matches!(shown(&order, Some(&changed)), Err(Fault::Malformed(_))));
    let mut pending = honest;
    pending["finality_status"] = json!("PRE_CONFIRMED");
    assert_eq!(shown(&order, Some(&pending)).unwrap().output(), &Equal(None));
}
