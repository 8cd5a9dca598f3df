//! Tests the preflight: what is read before anything is signed, and which answers permit it.

use std::cell::RefCell;

use alloy_sol_types::SolValue as _;
use countersign_core::reader::{Fault, Known, Observation, Request};
use countersign_core::wire::OrderRecord;
use countersign_core::{Code, Refusal, SecretHash};
use countersign_evm::alloy_consensus::{SignableTransaction as _, Transaction as _, TypedTransaction};
use countersign_evm::alloy_primitives::{Address, U256, hex, keccak256};
use countersign_evm::reader::{Plan, Preflight, PreflightCheck};
use countersign_evm::recover::{self, Leg};
use countersign_evm::{Evm, Gasless, TxContext, UnsignedOrder, read};
use countersign_evm_core::transfer::BYSTANDERS;
use countersign_testkit::chain::evm::{SECRET, answer_with};
use countersign_testkit::recover::record;
use countersign_testkit::{fixture, registry, verified};
use serde_json::{Value, json};

use super::drive;

const WITH_APPROVAL: &str = "evm-chain-id-integer";
const WITHOUT_APPROVAL: &str = "evm-record-evm-v1";
const NATIVE: &str = "evm-record-native";
/// An order that pays ether on Base.
const ON_BASE: &str = "evm-record-evm-v2";
/// The contract that states the fee for the chain below.
const ORACLE: &str = "0x420000000000000000000000000000000000000F";
const GWEI: u128 = 1_000_000_000;

fn order(id: &str) -> UnsignedOrder {
    verified::<Evm>(&fixture::<Evm>(id)).prepare(TxContext::eip1559(1, 30 * GWEI, GWEI)).unwrap()
}

/// Sender, HTLC and amount of an order.
fn parties(order: &UnsignedOrder) -> (Address, Address, U256) {
    let deposit = order.verified().unwrap().deposit();
    (deposit.sender, deposit.initiate.to, deposit.terms.amount)
}

/// The token that an order pays: the approved one, or one that only the contract names.
fn token(order: &UnsignedOrder) -> Address {
    let approval = order.verified().and_then(|order| order.deposit().approval.as_ref());
    approval.map_or(Address::repeat_byte(0x70), |approval| approval.call.to)
}

fn transfer(asset: Address, from: Address, to: Address, amount: U256) -> Value {
    json!({
        "address": asset,
        "topics": [read::TRANSFER, from.into_word(), to.into_word()],
        "data": hex::encode_prefixed(amount.to_be_bytes::<32>()),
    })
}

/// The transfer that an order makes.
fn payment(order: &UnsignedOrder) -> Value {
    let (sender, htlc, amount) = parties(order);
    let is_native = !order.verified().unwrap().deposit().initiate.value.is_zero();
    transfer(if is_native { read::NATIVE } else { token(order) }, sender, htlc, amount)
}

/// The simulation of the calls of an order, of which the last one emits these logs.
fn simulated(order: &UnsignedOrder, logs: &[Value]) -> Value {
    let count = order.payloads().calls.len();
    let call = |index: usize| {
        let logs = if index + 1 == count { logs } else { &[] };
        json!({"status": "0x1", "gasUsed": "0x5208", "logs": logs, "returnData": "0x"})
    };
    json!([{"calls": (0..count).map(call).collect::<Vec<_>>()}])
}

fn error(code: i64, message: &str) -> Value {
    json!({"error": {"code": code, "message": message}})
}

type Rounds = Vec<Vec<(String, Value)>>;

/// Checks an order on a node where its sender has enough of everything, except for what `lie` answers. Returns what each round asked for
/// beside the identity.
fn check(order: &UnsignedOrder, lie: impl Fn(&str, &Value) -> Option<Value>) -> (Result<Result<Preflight, Refusal>, Fault>, Rounds) {
    let asked = RefCell::new(Rounds::new());
    let honest = |method: &str, params: &Value| {
        let word = |number: U256| json!(hex::encode_prefixed(number.to_be_bytes::<32>()));
        match method {
            "eth_getBalance" => json!("0xde0b6b3a7640000"),
            "eth_simulateV1" if order.verified().is_some() => simulated(order, &[payment(order)]),
            "eth_simulateV1" => simulated(order, &[]),
            "eth_call" => match hex::decode(params[0]["data"].as_str().unwrap()).unwrap().get(..4) {
                Some(start) if *start == read::token_call() => word(token(order).into_word().into()),
                Some(start) if *start == read::balance_call(Address::ZERO)[..4] => word(parties(order).2),
                Some(start) if *start == read::allowance_call(Address::ZERO, Address::ZERO)[..4] => word(parties(order).2),
                _ => json!("0x"),
            },
            other => panic!("{other}"),
        }
    };
    let chain_id = order.payloads().calls.first().and_then(|call| call.transaction.transaction.chain_id()).unwrap_or(1);
    let (outcome, _) = drive::<PreflightCheck>(&Plan::new(order, chain_id).unwrap(), &Known::default(), |round, place, request| {
        let Request::JsonRpc { method, params } = request else { panic!("{request:?}") };
        let params = serde_json::from_str(params).unwrap();
        let mut asked = asked.borrow_mut();
        asked.resize(round + 1, Vec::new());
        if place == 0 {
            assert_eq!(*method, "eth_chainId");
            return answer_with(&json!(format!("{chain_id:#x}")));
        }
        let reply = answer_with(&lie(method, &params).unwrap_or_else(|| honest(method, &params)));
        asked[round].push(((*method).to_owned(), params));
        reply
    });
    (outcome.map(|observation: Observation<PreflightCheck>| observation.into_output().0), asked.into_inner())
}

/// The calls of an order as JSON-RPC transaction objects, from what will be signed.
fn calls(order: &UnsignedOrder) -> Vec<Value> {
    let payloads = order.payloads();
    let calls = payloads.calls.iter().map(|payload| &payload.transaction.transaction);
    calls
        .map(|transaction| {
            json!({
                "from": payloads.sender,
                "to": transaction.to().unwrap(),
                "value": format!("{:#x}", transaction.value()),
                "data": transaction.input(),
                "gas": format!("{:#x}", transaction.gas_limit()),
            })
        })
        .collect()
}

fn request(method: &str, params: Value) -> (String, Value) {
    (method.to_owned(), params)
}

fn simulation(order: &UnsignedOrder) -> (String, Value) {
    let blocks = json!({"blockStateCalls": [{"calls": calls(order)}], "traceTransfers": true, "validation": false});
    request("eth_simulateV1", json!([blocks, "latest"]))
}

fn call(call: Value) -> (String, Value) {
    request("eth_call", json!([call, "latest"]))
}

#[test]
fn what_is_simulated_is_what_is_signed() {
    for (id, count) in [(WITH_APPROVAL, 2), (WITHOUT_APPROVAL, 1)] {
        let order = order(id);
        let ((sender, htlc, _), token) = (parties(&order), token(&order));
        let (outcome, asked) = check(&order, |_, _| None);
        let balance = request("eth_getBalance", json!([sender, "latest"]));
        let holds = call(json!({"to": htlc, "data": hex::encode_prefixed(read::token_call())}));
        let empty = |from: Address, to: Address| {
            call(json!({"from": from, "to": token, "data": hex::encode_prefixed(read::empty_transfer_call(to))}))
        };
        let funds = [
            call(json!({"to": token, "data": hex::encode_prefixed(read::balance_call(sender))})),
            call(json!({"to": token, "data": hex::encode_prefixed(read::allowance_call(sender, htlc))})),
            empty(htlc, sender),
            empty(sender, htlc),
            empty(BYSTANDERS[0], BYSTANDERS[1]),
            simulation(&order),
        ];
        assert_eq!(asked, [vec![balance, holds], funds.to_vec()], "{id}");
        let preflight = outcome.unwrap().unwrap();
        // Each simulated call uses 21,000 gas, and may use as much as it offers, at 30 gwei.
        let gas = order.payloads().calls.iter().map(|payload| payload.transaction.transaction.gas_limit()).sum::<u64>();
        let most = U256::from(gas) * U256::from(30 * GWEI);
        assert_eq!((preflight.gas_used, preflight.cost), (Some(count * 21_000), most), "{id}");
        assert_eq!(preflight.balance, U256::from(0xde0_b6b3_a764_0000_u64));
    }
    let order = order(NATIVE);
    let (outcome, asked) = check(&order, |_, _| None);
    let balance = request("eth_getBalance", json!([parties(&order).0, "latest"]));
    assert_eq!(asked, [vec![balance], vec![simulation(&order)]]);
    assert_eq!(outcome.unwrap().unwrap().gas_used, Some(21_000));
}

/// The service sends and pays for the transaction of a gasless order, so there is no call to run.
#[test]
fn a_gasless_order_needs_the_token_and_the_allowance_alone() {
    let order = verified::<Evm>(&fixture::<Evm>(WITH_APPROVAL)).prepare(Gasless).unwrap();
    assert!(order.payloads().calls.is_empty());
    let (outcome, asked) = check(&order, |method, _| (method == "eth_getBalance").then(|| json!("0x0")));
    assert_eq!(asked.iter().map(Vec::len).collect::<Vec<_>>(), [2, 5]);
    assert!(asked[1].iter().all(|(method, _)| method == "eth_call"), "{asked:?}");
    let preflight = outcome.unwrap().unwrap();
    assert_eq!((preflight.balance, preflight.cost, preflight.gas_used), (U256::ZERO, U256::ZERO, None));
    let little = json!(hex::encode_prefixed((parties(&order).2 - U256::ONE).to_be_bytes::<32>()));
    for (call, code) in [
        (read::balance_call(Address::ZERO), Code::InsufficientFunds),
        (read::allowance_call(Address::ZERO, Address::ZERO), Code::AllowanceTooLow),
    ] {
        let start = hex::encode_prefixed(&call[..4]);
        let (outcome, _) =
            check(&order, |_, params| params[0]["data"].as_str().filter(|data| data.starts_with(&start)).map(|_| little.clone()));
        assert_eq!(outcome.unwrap().unwrap_err().code(), code);
    }
}

/// A node that cannot simulate several calls runs the first one alone, because the later ones may need what it does. A node that could, and
/// limits requests or fails, has shown nothing: a token that takes a fee passes its first call, which is the approval.
#[test]
fn a_node_without_simulations_runs_the_first_call() {
    for id in [WITH_APPROVAL, WITHOUT_APPROVAL, NATIVE] {
        let order = order(id);
        let with = |error: Value| check(&order, |method, _| (method == "eth_simulateV1").then(|| error.clone()));
        for missing in [
            error(-32_601, "the method eth_simulateV1 does not exist/is not available"),
            error(-32_600, "Unsupported method: eth_simulateV1"),
            error(-32_004, "Method not supported"),
        ] {
            let (outcome, asked) = with(missing);
            assert_eq!((asked.len(), &asked[2]), (3, &vec![call(calls(&order)[0].clone())]), "{id}");
            assert_eq!(outcome.unwrap().unwrap().gas_used, None, "{id}");
        }
        for failed in [
            error(-32_005, "limit exceeded"),
            error(429, "Too Many Requests"),
            error(-32_603, "internal error"),
            error(-32_000, "method temporarily not available, try again"),
        ] {
            let (outcome, asked) = with(failed.clone());
            assert_eq!((outcome.unwrap_err().code().name(), asked.len()), ("node_error", 2), "{id} {failed}");
        }
    }
}

/// Nothing depends on the simulation of a refund that a call alone does not show.
#[test]
fn a_simulation_that_fails_does_not_stand_before_a_refund() {
    let refund = recover::refund(&with_secret(), Leg::Source, registry()).unwrap();
    let order = refund.prepare(TxContext::eip1559(1, 30 * GWEI, GWEI).sent_by(Address::repeat_byte(0xa1))).unwrap();
    let with = |call: Value| {
        let (outcome, _) = check(&order, |method, _| match method {
            "eth_simulateV1" => Some(error(-32_603, "internal error")),
            "eth_call" => Some(call.clone()),
            _ => None,
        });
        outcome
    };
    assert_eq!(with(json!("0x")).unwrap().unwrap().gas_used, None);
    assert_eq!(with(error(3, "execution reverted")).unwrap().unwrap_err().code(), Code::SimulationReverted);
    assert!(with(error(-32_005, "limit exceeded")).is_err());
}

/// What a node says when a call fails: that the contract reverted, or that the node did.
#[test]
fn only_a_revert_of_the_contract_refuses_the_call() {
    let order = order(NATIVE);
    // Error(string) with "paused".
    let paused = hex::encode_prefixed([hex!("08c379a0").to_vec(), "paused".to_owned().abi_encode()].concat());
    let first = |error: Value| {
        let (outcome, _) = check(&order, |method, _| match method {
            "eth_simulateV1" => Some(self::error(-32_601, "the method does not exist")),
            "eth_call" => Some(json!({"error": error})),
            _ => None,
        });
        outcome
    };
    for (code, message, data, reason) in [
        (3, "VM exception", Value::Null, "VM exception"),
        (3, "execution reverted", json!(paused), "paused"),
        (-32_015, "VM execution error", json!(paused), "paused"),
        (-32_000, "Execution Reverted: paused", Value::Null, "Execution Reverted: paused"),
        (-32_000, "execution reverted", json!(paused), "paused"),
    ] {
        let refusal = first(json!({"code": code, "message": message, "data": data})).unwrap().unwrap_err();
        assert_eq!((refusal.code(), refusal.location()), (Code::SimulationReverted, "/initiate"), "{code} {message}");
        assert!(refusal.to_string().contains(reason), "{refusal}");
    }
    for (code, message, data) in [
        (-32_000, "missing trie node", Value::Null),
        (-32_000, "historical state is not available", json!("0x5f0e")),
        (-32_005, "limit exceeded", Value::Null),
        (-32_603, "internal error", Value::Null),
    ] {
        let fault = first(json!({"code": code, "message": message, "data": data})).unwrap_err();
        assert_eq!(fault.code().name(), "node_error", "{code} {message}");
    }
}

/// A chain may charge more for storage (EIP-8037) than the service's gas limit covers. Each call is simulated with its own limit.
#[test]
fn a_gas_limit_below_what_the_call_uses_is_refused() {
    let order = order(NATIVE);
    let limit = calls(&order)[0]["gas"].clone();
    let failed =
        json!({"status": "0x0", "gasUsed": limit, "logs": [], "returnData": "0x", "error": {"code": -32_015, "message": "out of gas"}});
    let (outcome, asked) = check(&order, |method, _| (method == "eth_simulateV1").then(|| json!([{"calls": [failed]}])));
    assert!(asked.iter().flatten().any(|request| *request == simulation(&order)), "the limit is what is signed");
    let refusal = outcome.unwrap().unwrap_err();
    assert_eq!((refusal.code(), refusal.location()), (Code::SimulationReverted, "/initiate"));
    assert!(refusal.to_string().contains("it used its whole gas limit of 300000"), "{refusal}");
}

/// The calls of an order emit a handful of logs.
#[test]
fn a_simulation_with_more_than_64_logs_is_no_answer() {
    for id in [WITHOUT_APPROVAL, NATIVE] {
        let order = order(id);
        let other = Address::repeat_byte(0x66);
        let with = |count: usize| {
            let mut logs = vec![transfer(other, other, other, U256::ONE); count - 1];
            logs.push(payment(&order));
            check(&order, |method, _| (method == "eth_simulateV1").then(|| simulated(&order, &logs))).0
        };
        assert!(with(64).unwrap().is_ok());
        assert_eq!(with(65).unwrap_err().code().name(), "node_malformed");
    }
}

#[test]
fn a_simulated_log_with_more_than_16_kib_is_no_answer() {
    let order = order(NATIVE);
    let with = |length: usize| {
        let log = json!({"address": Address::ZERO, "topics": [], "data": hex::encode_prefixed(vec![1; length])});
        let logs = [payment(&order), log];
        check(&order, |method, _| (method == "eth_simulateV1").then(|| simulated(&order, &logs))).0
    };
    assert!(with(16 * 1024).unwrap().is_ok());
    assert_eq!(with(16 * 1024 + 1).unwrap_err().code().name(), "node_malformed");
}

/// The sender pays what was verified once, and the approval of a gasless order pays nothing.
#[test]
fn a_simulation_without_the_payment_is_refused() {
    let differs = |order: &UnsignedOrder, logs: &[Value]| {
        let (outcome, _) = check(order, |method, _| (method == "eth_simulateV1").then(|| simulated(order, logs)));
        outcome.unwrap().map_err(|refusal| (refusal.code(), refusal.location().to_owned()))
    };
    for id in [WITH_APPROVAL, WITHOUT_APPROVAL, NATIVE] {
        let order = order(id);
        assert!(differs(&order, &[payment(&order)]).is_ok());
        for logs in [vec![], vec![payment(&order), payment(&order)]] {
            assert_eq!(differs(&order, &logs).unwrap_err(), (Code::SimulationDiffers, "/transfers".to_owned()), "{id}");
        }
    }
}

/// The record of an order with the secret of these tests.
fn with_secret() -> OrderRecord {
    let hash = SecretHash::of(&SECRET).to_string();
    let mut record = record::<Evm>(WITHOUT_APPROVAL, |order| order["source_swap"]["secret_hash"] = hash.into()).unwrap();
    record.source_swap.swap_id = recover::refund(&record, Leg::Source, registry()).unwrap_err().expected().unwrap().to_string();
    record
}

/// A call with the secret would show it to the node.
#[test]
fn a_redemption_asks_for_the_balance_alone() {
    let sender = Address::repeat_byte(0xa1);
    let calls = || TxContext::eip1559(1, 30 * GWEI, GWEI).sent_by(sender);
    let balance = request("eth_getBalance", json!([sender, "latest"]));
    let redemption = recover::redeem(&with_secret(), Leg::Source, &SECRET, registry()).unwrap().prepare(calls()).unwrap();
    let (outcome, asked) = check(&redemption, |_, _| None);
    assert_eq!((outcome.unwrap().unwrap().gas_used, asked), (None, vec![vec![balance.clone()]]));
    let plan = format!("{:?}", Plan::new(&redemption, 1).unwrap());
    assert_eq!(plan, format!("Plan(1 calls of {sender} on 1)"));
    let refund = recover::refund(&with_secret(), Leg::Source, registry()).unwrap().prepare(calls()).unwrap();
    let (outcome, asked) = check(&refund, |_, _| None);
    assert_eq!(asked, [vec![balance], vec![simulation(&refund)]]);
    assert_eq!(outcome.unwrap().unwrap().gas_used, Some(21_000));
    let (outcome, _) = check(&refund, |method, _| (method == "eth_getBalance").then(|| json!("0x1")));
    assert_eq!(outcome.unwrap().unwrap_err().code(), Code::InsufficientFunds);
}

/// On an OP-stack chain, the balance is asked together with what the calls pay for the chain below. The length in the question is at least
/// that of the transaction, without its signature.
#[test]
fn the_fee_of_the_chain_below_is_a_part_of_what_the_calls_cost() {
    let order = order(ON_BASE);
    let transaction = &order.payloads().calls[0].transaction.transaction;
    let gas = transaction.value() + U256::from(transaction.gas_limit()) * U256::from(30 * GWEI);
    let check_fee = |answer: Value, balance: U256| {
        let (outcome, asked) = check(&order, |method, params| match method {
            "eth_getBalance" => Some(json!(format!("{balance:#x}"))),
            "eth_call" if params[0]["to"].as_str()?.eq_ignore_ascii_case(ORACLE) => Some(answer.clone()),
            _ => None,
        });
        let [(_, of), (_, params)] = asked[0].as_slice() else { panic!("{asked:?}") };
        assert_eq!((&of[0], &of[1], &params[1]), (&json!(parties(&order).0), &json!("latest"), &json!("latest")));
        let data = hex::decode(params[0]["data"].as_str().unwrap()).unwrap();
        assert_eq!(data[..4], keccak256("getL1FeeUpperBound(uint256)")[..4]);
        let size = usize::try_from(U256::from_be_slice(&data[4..])).unwrap();
        let TypedTransaction::Eip1559(transaction) = transaction else { panic!("of EIP-1559") };
        let least = transaction.payload_len_for_signature();
        assert!((least..least + 100).contains(&size), "{size} {least}");
        outcome
    };
    let word = |number: U256| json!(hex::encode_prefixed(number.to_be_bytes::<32>()));
    // Where there is no contract, or none with the function, nobody states a fee.
    let reverted = error(3, "execution reverted");
    for (answer, fee) in [(word(U256::from(7)), 7), (json!("0x"), 0), (word(U256::ZERO), 0), (reverted, 0)] {
        let enough = gas + U256::from(fee);
        assert_eq!(check_fee(answer.clone(), enough).unwrap().unwrap().cost, enough, "{answer}");
        assert_eq!(check_fee(answer, enough - U256::ONE).unwrap().unwrap_err().code(), Code::InsufficientFunds);
    }
    assert_eq!(check_fee(word(U256::MAX), U256::MAX - U256::ONE).unwrap().unwrap_err().code(), Code::InsufficientFunds);
    // A node that does not state the fee proves nothing.
    for answer in [error(-32_005, "rate limited"), json!("0x07"), Value::Null] {
        assert!(check_fee(answer.clone(), U256::MAX).is_err(), "{answer}");
    }
}

/// EIP-7708: the protocol logs native transfers, too. geth and Nethermind then show both logs of each, reth only the protocol's.
#[test]
fn a_native_transfer_counts_once_whoever_logs_it() {
    let order = order(NATIVE);
    let (sender, htlc, amount) = parties(&order);
    let system: Address = "0xfffffffffffffffffffffffffffffffffffffffe".parse().unwrap();
    let [added, logged] = [read::NATIVE, system].map(|emitter| transfer(emitter, sender, htlc, amount));
    let outcome = |logs: &[&Value]| {
        let logs: Vec<Value> = logs.iter().map(|log| (*log).clone()).collect();
        let (outcome, _) = check(&order, |method, _| (method == "eth_simulateV1").then(|| simulated(&order, &logs)));
        outcome.unwrap().map(|_| ()).map_err(|refusal| refusal.code())
    };
    for once in [&[&added][..], &[&logged], &[&added, &logged], &[&logged, &added]] {
        assert_eq!(outcome(once), Ok(()), "{once:?}");
    }
    let twice = [&[&logged, &logged][..], &[&added, &logged, &logged], &[&added, &logged, &added], &[&added, &logged, &added, &logged]];
    let less = transfer(system, sender, htlc, amount - U256::ONE);
    let elsewhere = transfer(system, sender, Address::repeat_byte(0x66), U256::ONE);
    for other in twice.into_iter().chain([&[][..], &[&less], &[&added, &less], &[&logged, &elsewhere]]) {
        assert_eq!(outcome(other), Err(Code::SimulationDiffers), "{other:?}");
    }
}
