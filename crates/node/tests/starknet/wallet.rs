//! The wallet context for signing, the preflight, and sending transactions.

use countersign::recover::{self, Leg};
use countersign::starknet::{Felt, ResourceBound, Starknet, read};
use countersign::{BroadcastTransaction, Code, Policy, Role, U256, Unsigned, Verified, VerifiedOrder};
use countersign_node::starknet::TransactionStatus;
use countersign_node::{NodeError, Speed};
use countersign_testkit::recover::read_record;
use countersign_testkit::{registry, verified};
use serde_json::{Value, json};

use crate::starknet::fake::{CLASS, Chain, LATEST, NOW, case, halves, hash_of, hex, nodes};

const ID: &str = "starknet-2025-11";

pub fn order() -> VerifiedOrder<Starknet> {
    verified::<Starknet>(&case(ID))
}

/// The chain on which the order is paid, with the result of an honest simulation.
pub fn chain() -> Chain {
    let mut chain = Chain { order: None, ..Chain::funded(&crate::starknet::fake::terms(ID).source) };
    let order = order();
    let deposit = order.deposit();
    chain.trace = trace(vec![transfer(chain.token, deposit.sender, chain.htlc, deposit.terms.amount)]);
    chain
}

/// A call in a trace.
fn invocation(contract: Felt, events: Vec<Value>, calls: Vec<Value>) -> Value {
    json!({
        "contract_address": hex(contract),
        "entry_point_selector": "0x1",
        "calldata": [],
        "caller_address": "0x2",
        "class_hash": "0x3",
        "entry_point_type": "EXTERNAL",
        "call_type": "CALL",
        "result": [],
        "events": events,
        "calls": calls,
        "messages": [],
        "execution_resources": {"l1_gas": 0, "l2_gas": 1},
        "is_reverted": false,
    })
}

/// A call of a token that transfers some of it.
fn transfer(token: Felt, from: Felt, to: Felt, amount: U256) -> Value {
    let event = json!({"order": 0, "keys": [hex(read::TRANSFER), hex(from), hex(to)], "data": halves(amount)});
    invocation(token, vec![event], Vec::new())
}

fn trace(calls: Vec<Value>) -> Value {
    let run = invocation(Felt::from(0x78), Vec::new(), vec![invocation(Felt::from(0x77), Vec::new(), calls)]);
    let resources = json!({"l1_gas": 0, "l1_data_gas": 0, "l2_gas": 1});
    json!({"type": "INVOKE", "execute_invocation": run, "execution_resources": resources})
}

pub fn verified_order() -> Verified {
    Verified::Starknet(order())
}

async fn prepare(chain: Chain, policy: &Policy) -> Result<Unsigned, NodeError> {
    nodes(chain, 1).prepare(&verified_order(), "starknet", "", Speed::Normal, policy).await
}

fn native(unsigned: &Unsigned) -> &countersign::starknet::UnsignedOrder {
    match unsigned {
        Unsigned::Starknet(order) => order,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn an_order_that_needs_an_approval_is_one_transaction() {
    let unsigned = prepare(chain(), &Policy::default()).await.unwrap();
    let payloads = native(&unsigned).payloads();
    assert!(payloads.message.is_none(), "the approval would be missing");
    let invoke = &payloads.invoke.as_ref().unwrap().invoke;
    assert_eq!((invoke.calls.len(), invoke.transaction.nonce), (2, Felt::from(0x2a)));
    // 1.5 times the estimate, at 1.5 times the price.
    let bounds = invoke.transaction.resource_bounds;
    assert_eq!(bounds.l1_gas, ResourceBound::new(0, 1_500));
    assert_eq!(bounds.l2_gas, ResourceBound::new(1_500_000, 4_500));
    assert_eq!(bounds.l1_data_gas, ResourceBound::new(386, 11));
    for (speed, price) in [(Speed::Slow, 3_600), (Speed::Fast, 6_000)] {
        let nodes = nodes(chain(), 1);
        let order = order();
        let sender = order.deposit().sender;
        let calls: Vec<_> = order.deposit().calls(Default::default()).into_iter().map(|(_, call)| call).collect();
        let execution = nodes.starknet("starknet").unwrap().execution(sender, &calls, speed, &Policy::default()).await.unwrap();
        assert_eq!(execution.resource_bounds.l2_gas.max_price_per_unit, price);
    }
}

#[tokio::test(start_paused = true)]
async fn an_approved_order_takes_the_gasless_path() {
    let amount = order().deposit().terms.amount;
    let unsigned = prepare(Chain { allowance: amount, ..chain() }, &Policy::default()).await.unwrap();
    let payloads = native(&unsigned).payloads();
    assert!(payloads.invoke.is_none() && payloads.message.is_some());
    // By its own transaction, if the owner prefers it.
    let nodes = nodes(Chain { allowance: amount, ..chain() }, 1);
    let own = nodes.prepare_own(&verified_order(), "starknet", "", Speed::Normal, &Policy::default()).await.unwrap();
    let payloads = native(&own).payloads();
    assert!(payloads.invoke.is_some() && payloads.message.is_none());
    let unsigned = prepare(Chain { allowance: amount - U256::ONE, ..chain() }, &Policy::default()).await.unwrap();
    assert!(native(&unsigned).payloads().invoke.is_some());
}

#[tokio::test(start_paused = true)]
async fn fees_are_bounded_by_the_policy() {
    let fee = native(&prepare(chain(), &Policy::default()).await.unwrap())
        .payloads()
        .invoke
        .as_ref()
        .unwrap()
        .invoke
        .transaction
        .resource_bounds
        .max_fee(0);
    let in_policy_units = u64::try_from(fee / U256::from(1_000_000_000)).unwrap();
    let low = Policy::from_json(json!({"starknet_fee": in_policy_units}).to_string().as_bytes()).unwrap();
    let NodeError::Refused(refusal) = prepare(chain(), &low).await.unwrap_err() else { panic!("not refused") };
    assert_eq!((refusal.code(), refusal.location()), (Code::GasLimitTooHigh, "/resource_bounds"));
    let enough = Policy::from_json(json!({"starknet_fee": in_policy_units + 1}).to_string().as_bytes()).unwrap();
    assert!(prepare(chain(), &enough).await.is_ok());
    // The largest numbers that a node can return.
    let greedy = chain().lying(|_, method, _| {
        let most = json!("0xffffffffffffffff");
        let estimate = json!([{"l1_gas_consumed": most, "l2_gas_consumed": most, "l1_data_gas_consumed": most}]);
        (method == "starknet_estimateFee").then_some(estimate)
    });
    assert_eq!(prepare(greedy, &Policy::default()).await.unwrap_err().code().name(), "gas_limit_too_high");
}

#[tokio::test(start_paused = true)]
async fn money_and_allowance_are_counted() {
    let amount = order().deposit().terms.amount;
    let poor = Chain { balance: amount - U256::ONE, ..chain() };
    assert_eq!(prepare(poor, &Policy::default()).await.unwrap_err().code().name(), "insufficient_funds");
    let without_fee = Chain { balance: amount, ..chain() };
    assert_eq!(prepare(without_fee, &Policy::default()).await.unwrap_err().code().name(), "insufficient_funds");
    // A node cannot estimate a transaction that cannot be paid. The reason is still reported.
    let failing = |balance| {
        let estimate = |_: &str, method: &str, _: &Value| {
            (method == "starknet_estimateFee").then(|| json!({"error": {"code": 41, "message": "ERC20: insufficient balance"}}))
        };
        Chain { balance, ..chain().lying(estimate) }
    };
    assert_eq!(prepare(failing(amount - U256::ONE), &Policy::default()).await.unwrap_err().code().name(), "insufficient_funds");
    assert_eq!(prepare(failing(amount), &Policy::default()).await.unwrap_err().code().name(), "simulation_reverted");
    let other_token = Chain { token: Felt::from(9), ..chain() };
    assert_eq!(prepare(other_token, &Policy::default()).await.unwrap_err().code().name(), "simulation_differs");
    // Without an approval, the allowance must exist already.
    let case = case("starknet-2025-11-testnet");
    let verified = verified::<Starknet>(&case);
    let fees = countersign::starknet::TxContext::new(Felt::ONE, Default::default());
    let unsigned = verified.prepare(fees).unwrap();
    let testnet =
        Chain { chain_id: "SN_SEPOLIA", order: None, ..Chain::funded(&crate::starknet::fake::terms("starknet-2025-11-testnet").source) };
    let config = countersign_node::NodeConfig::from_json(br#"{"starknet_sepolia": ["https://a.example"]}"#).unwrap();
    let nodes = countersign_node::Nodes::new(crate::starknet::fake::Front::from(testnet), config, registry());
    let error = nodes.starknet("starknet_sepolia").unwrap().preflight(&unsigned).await.unwrap_err();
    assert_eq!(error.code().name(), "allowance_too_low");
}

#[tokio::test(start_paused = true)]
async fn a_simulation_that_moves_anything_else_is_refused() {
    let base = chain();
    let order = order();
    let (sender, amount) = (order.deposit().sender, order.deposit().terms.amount);
    let good = || transfer(base.token, sender, base.htlc, amount);
    let stranger = Felt::from(0xbad);
    let cases = [
        ("nothing", vec![]),
        ("too little", vec![transfer(base.token, sender, base.htlc, amount - U256::ONE)]),
        ("another token", vec![transfer(stranger, sender, base.htlc, amount)]),
        ("to a stranger", vec![transfer(base.token, sender, stranger, amount)]),
        ("twice", vec![good(), good()]),
        ("something more", vec![good(), transfer(stranger, sender, stranger, U256::ONE)]),
        ("out of the contract", vec![good(), transfer(base.token, base.htlc, stranger, amount)]),
    ];
    for (why, calls) in cases {
        let error = prepare(Chain { trace: trace(calls), ..chain() }, &Policy::default()).await.unwrap_err();
        assert_eq!(error.code().name(), "simulation_differs", "{why}");
    }
    // A call that failed has no effect, whether it would have paid or stolen.
    let reverted = |mut call: Value| {
        call["is_reverted"] = json!(true);
        call
    };
    let stolen = || transfer(stranger, sender, stranger, U256::ONE);
    assert!(prepare(Chain { trace: trace(vec![good(), reverted(stolen())]), ..chain() }, &Policy::default()).await.is_ok());
    let unpaid = prepare(Chain { trace: trace(vec![reverted(good())]), ..chain() }, &Policy::default()).await.unwrap_err();
    assert_eq!(unpaid.code().name(), "simulation_differs");
    // Transfers between other accounts do not matter.
    let others = vec![good(), transfer(base.token, stranger, sender, amount)];
    assert!(prepare(Chain { trace: trace(others), ..chain() }, &Policy::default()).await.is_ok());
    let reverted = json!({"type": "INVOKE", "execute_invocation": {"revert_reason": "HTLC: duplicate order\u{202e}"}});
    let NodeError::Refused(refusal) = prepare(Chain { trace: reverted, ..chain() }, &Policy::default()).await.unwrap_err() else {
        panic!()
    };
    assert_eq!(refusal.code(), Code::SimulationReverted);
    assert!(refusal.message().contains("duplicate order") && !refusal.message().contains('\u{202e}'), "{refusal}");
    // Too many calls and events.
    let many = trace(vec![good(); 300]);
    assert_eq!(prepare(Chain { trace: many, ..chain() }, &Policy::default()).await.unwrap_err().code().name(), "node_malformed");
    let inner = json!({"contract_address": "0x1", "error": {"contract_address": "0x2", "error": "HTLC: duplicate order"}});
    let named = chain().lying(move |_, method, _| {
        let data = json!({"transaction_index": 0, "execution_error": inner});
        (method == "starknet_estimateFee").then(|| json!({"error": {"code": 41, "message": "Transaction execution error", "data": data}}))
    });
    let error = prepare(named, &Policy::default()).await.unwrap_err().to_string();
    assert!(error.contains("Transaction execution error: HTLC: duplicate order"), "{error}");
    for method in ["starknet_estimateFee", "starknet_simulateTransactions"] {
        let failing = chain()
            .lying(move |_, asked, _| (asked == method).then(|| json!({"error": {"code": 41, "message": "Transaction execution error"}})));
        assert_eq!(prepare(failing, &Policy::default()).await.unwrap_err().code().name(), "simulation_reverted", "{method}");
    }
}

/// What starknet-devnet 0.10.1 says of calls that fail: each line names a call, and the last one says why.
const TRACE: &str = "Transaction execution has failed:\n0: Error in the called contract (contract address: \
    0x0722301fe0f3fff911031e4b30ed32215aa98fe553b2c6e8dd68405b47be0e87, class hash: \
    0x05b4b537eaa2399e3aa99c4e2e0208ebd6c71bc1467938cd52c798c601e43564, selector: \
    0x015d40a3d6ca2ac30f4031e42be28da9b056fef9bb7357ac5e85627ee876e5ad):\nExecution failed. Failure reason:\nError in contract (contract \
    address: 0x03ea8b47303135c213b309247613f168b53ea4023b5db12213336c1e2867221e, class hash: \
    0x05e20dcfacd356c6ba4fe1d2ce5e55dc54fd5cccda2af24a3e47e4efd5d0f71e, selector: \
    0x02aed25fcd0101fcece997d93f9d0643dfa3fbd4118cae16bf7d6cd533577c28):\n\"HTLC: duplicate order\".\n";

#[tokio::test(start_paused = true)]
async fn the_reason_of_a_failure_is_the_end_of_its_trace() {
    let estimate = chain().lying(|_, method, _| {
        // The panic data follows once more.
        let error =
            json!({"contract_address": "0x1", "error": {"contract_address": "0x2", "error": format!("{TRACE} [\"0x0\",\"0x15\"]")}});
        let error =
            json!({"code": 41, "message": "Transaction execution error", "data": {"transaction_index": 0, "execution_error": error}});
        (method == "starknet_estimateFee").then(|| json!({ "error": error }))
    });
    let simulation = Chain { trace: json!({"type": "INVOKE", "execute_invocation": {"revert_reason": TRACE}}), ..chain() };
    for (chain, expected) in
        [(estimate, "Transaction execution error: \"HTLC: duplicate order\""), (simulation, "\"HTLC: duplicate order\"")]
    {
        let NodeError::Refused(refusal) = prepare(chain, &Policy::default()).await.unwrap_err() else { panic!("not refused") };
        assert_eq!(refusal.code(), Code::SimulationReverted);
        assert!(refusal.message().starts_with(expected), "{refusal}");
    }
    // The trace of the program itself comes last, and says nothing to a user.
    let crashed =
        "Error at pc=0:7:\nAn ASSERT_EQ instruction failed: 1 != 0.\nCairo traceback (most recent call last):\nUnknown location (pc=0:9)\n";
    let crashed = Chain { trace: json!({"type": "INVOKE", "execute_invocation": {"revert_reason": crashed}}), ..chain() };
    let error = prepare(crashed, &Policy::default()).await.unwrap_err().to_string();
    assert!(error.contains(": An ASSERT_EQ instruction failed: 1 != 0;"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_rejection_says_why() {
    let validate =
        "The `validate` entry point panicked with:\nError in contract (contract address: 0x1):\n0x41 ('Account: invalid signature').\n";
    let nonce = "Invalid transaction nonce of contract at address 0x1. Account nonce: 1; got: 0.";
    for (code, message, data, expected) in [
        (55, "Account validation failed", json!(validate), "Account validation failed: 0x41 ('Account: invalid signature')"),
        (52, "Invalid transaction nonce", json!(nonce), nonce.trim_end_matches('.')),
        (54, "Too little", json!(""), "Too little"),
        (54, "Too little", json!("0x1234"), "Too little"),
        (54, "Too little", Value::Null, "Too little"),
    ] {
        let reply = json!({"error": {"code": code, "message": message, "data": data}});
        let rejecting = chain().lying(move |_, method, _| (method == "starknet_addInvokeTransaction").then(|| reply.clone()));
        let error = nodes(rejecting, 1).starknet("starknet").unwrap().broadcast(&kept().id, &kept().payload).await.unwrap_err();
        assert!(matches!(&error, NodeError::Rejected { message, .. } if message == expected), "{error:?}");
    }
}

/// The record of an order whose destination is on Starknet, with a secret.
pub fn recovery(secret: Option<&[u8; 32]>) -> countersign::recover::Recovery {
    let mut order = case("starknet-to-client-3-1-3").json()["order"].take();
    let record = read_record(&order).unwrap();
    let Some(secret) = secret else { return recover::refund(&record, Leg::Destination, registry()).unwrap() };
    order["destination_swap"]["secret_hash"] = json!(countersign::SecretHash::of(secret).to_string());
    recover::redeem(&read_record(&order).unwrap(), Leg::Destination, secret, registry()).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_redemption_is_shown_to_nobody_before_it_is_sent() {
    let secret = [0x5a; 32];
    let nodes = nodes(chain(), 2);
    let account = hex(Felt::from(0xacc));
    let prepared = nodes.prepare_recovery(&recovery(Some(&secret)), "starknet", &account, Speed::Fast, &Policy::default()).await.unwrap();
    let payload = native(&prepared).payloads().invoke.as_ref().unwrap();
    assert_eq!((payload.role, payload.invoke.transaction.sender_address), (Role::Redeem, Felt::from(0xacc)));
    assert!(payload.invoke.transaction.resource_bounds.max_fee(0) > U256::ZERO);
    let word = hex(Felt::from(0x5a5a_5a5a));
    let preflight = nodes.starknet("starknet").unwrap().preflight(native(&prepared)).await.unwrap();
    assert!(!preflight.is_simulated);
    let seen = nodes.transport().seen.lock().unwrap();
    assert!(seen.iter().all(|(_, _, params)| !params.to_string().contains(&word)), "{seen:?}");
}

#[tokio::test(start_paused = true)]
async fn a_refund_that_would_fail_is_not_signed() {
    let account = hex(Felt::from(0xacc));
    let prepared =
        nodes(chain(), 1).prepare_recovery(&recovery(None), "starknet", &account, Speed::Normal, &Policy::default()).await.unwrap();
    assert_eq!(native(&prepared).payloads().invoke.as_ref().unwrap().role, Role::Refund);
    let early = chain().lying(|_, method, _| {
        (method == "starknet_estimateFee").then(|| json!({"error": {"code": 41, "message": "HTLC: order not expired"}}))
    });
    let error = nodes(early, 1).prepare_recovery(&recovery(None), "starknet", &account, Speed::Normal, &Policy::default()).await;
    assert_eq!(error.unwrap_err().code().name(), "simulation_reverted");
    let error = nodes(chain(), 1).prepare_recovery(&recovery(None), "starknet", "me", Speed::Normal, &Policy::default()).await;
    assert_eq!(error.unwrap_err().code().name(), "hex_prefix");
}

#[tokio::test(start_paused = true)]
async fn a_sender_that_cannot_pay_the_fee_signs_no_redemption_and_no_refund() {
    let account = hex(Felt::from(0xacc));
    for recovery in [recovery(Some(&[0x5a; 32])), recovery(None)] {
        let prepare = async |balance: U256| {
            let nodes = nodes(Chain { balance, ..chain() }, 1);
            nodes.prepare_recovery(&recovery, "starknet", &account, Speed::Normal, &Policy::default()).await
        };
        let prepared = prepare(U256::MAX).await.unwrap();
        let transaction = &native(&prepared).payloads().invoke.as_ref().unwrap().invoke.transaction;
        let fee = transaction.resource_bounds.max_fee(transaction.tip);
        assert!(prepare(fee).await.is_ok());
        assert_eq!(prepare(fee - U256::from(1)).await.unwrap_err().code().name(), "insufficient_funds");
    }
    // A refund that fails in the simulation is not signed either.
    let reverting = chain().lying(|_, method, _| {
        (method == "starknet_simulateTransactions").then(|| json!({"error": {"code": 41, "message": "HTLC: order not expired"}}))
    });
    let error = nodes(reverting, 1).prepare_recovery(&recovery(None), "starknet", &account, Speed::Normal, &Policy::default()).await;
    assert_eq!(error.unwrap_err().code().name(), "simulation_reverted");
}

/// A signed transaction, as it is stored.
pub fn kept() -> BroadcastTransaction {
    let case = case("starknet-public-key");
    let execution = countersign::starknet::TxContext::new(Felt::ONE, Default::default());
    let mut unsigned = verified::<Starknet>(&case).prepare(execution).unwrap();
    unsigned.sign(&countersign_testkit::key::<Starknet>(&case)).unwrap();
    let signed = countersign::Signed::Starknet(unsigned.finish().unwrap());
    signed.broadcasts().pop().unwrap()
}

#[tokio::test(start_paused = true)]
async fn what_is_sent_is_the_transaction_that_was_kept() {
    let kept = kept();
    let id = kept.id.clone();
    let accepting = chain().lying(move |_, method, _| (method == "starknet_addInvokeTransaction").then(|| json!({"transaction_hash": id})));
    let nodes_ = nodes(accepting, 2);
    nodes_.broadcast("starknet", &kept.id, &kept.payload).await.unwrap();
    {
        let seen = nodes_.transport().seen.lock().unwrap();
        let sent: Vec<_> = seen.iter().filter(|(_, method, _)| method == "starknet_addInvokeTransaction").collect();
        assert_eq!(sent.len(), 2);
        assert_eq!(sent[0].2["invoke_transaction"], serde_json::from_str::<Value>(&kept.payload).unwrap());
    }

    let changed = |change: &dyn Fn(&mut BroadcastTransaction)| {
        let mut kept = kept.clone();
        change(&mut kept);
        kept
    };
    for other in [
        changed(&|kept| kept.id = "0x1".to_owned()),
        changed(&|kept| kept.payload = kept.payload.replace("\"nonce\":\"0x1\"", "\"nonce\":\"0x2\"")),
        changed(&|kept| kept.payload = "{}".to_owned()),
        changed(&|kept| kept.payload = "0x00".to_owned()),
    ] {
        let nodes = nodes(chain(), 1);
        let error = nodes.starknet("starknet").unwrap().broadcast(&other.id, &other.payload).await.unwrap_err();
        assert!(matches!(error, NodeError::Refused(_)), "{error}");
        assert!(nodes.transport().seen.lock().unwrap().is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn a_refusal_is_told_from_a_failure() {
    let kept = kept();
    let failing = |code: i64| {
        let reply = move || json!({"error": {"code": code, "message": "no"}});
        chain().lying(move |_, method, _| (method == "starknet_addInvokeTransaction").then(reply))
    };
    for (code, expected) in [
        (52, "transaction_rejected"),
        (54, "transaction_rejected"),
        (55, "transaction_rejected"),
        (63, "node_error"),
        (-32_603, "node_error"),
        (59, "node_error"),
    ] {
        let nodes = nodes(failing(code), 1);
        let error = nodes.starknet("starknet").unwrap().broadcast(&kept.id, &kept.payload).await.unwrap_err();
        assert_eq!(error.code().name(), expected, "{code}");
    }
    // A known transaction counts as accepted, whatever error the node returns for sending it again.
    for status in ["RECEIVED", "CANDIDATE", "PRE_CONFIRMED", "ACCEPTED_ON_L2", "ACCEPTED_ON_L1"] {
        let mut chain = failing(52);
        chain.statuses.insert(kept.id.clone(), json!({"finality_status": status, "execution_status": "SUCCEEDED"}));
        nodes(chain, 1).broadcast("starknet", &kept.id, &kept.payload).await.unwrap_or_else(|error| panic!("{status}: {error}"));
    }
    let mut chain_ = failing(52);
    chain_.statuses.insert(kept.id.clone(), json!({"finality_status": "REJECTED"}));
    assert!(nodes(chain_, 1).broadcast("starknet", &kept.id, &kept.payload).await.is_err());
    // A node that returns another hash has not accepted the transaction.
    let lying = chain().lying(|_, method, _| (method == "starknet_addInvokeTransaction").then(|| json!({"transaction_hash": "0x1"})));
    assert_eq!(
        nodes(lying, 1).starknet("starknet").unwrap().broadcast(&kept.id, &kept.payload).await.unwrap_err().code().name(),
        "node_malformed"
    );
    // Too few can accept the transaction, and one rejects it.
    let mixed = chain().lying(|host, method, _| {
        let code = if host == "a.example" { 52 } else { -32_603 };
        (method == "starknet_addInvokeTransaction").then(|| json!({"error": {"code": code, "message": "no"}}))
    });
    assert_eq!(
        nodes(mixed, 2).starknet("starknet").unwrap().broadcast(&kept.id, &kept.payload).await.unwrap_err().code().name(),
        "transaction_rejected"
    );
}

#[tokio::test(start_paused = true)]
async fn a_transaction_is_followed_to_its_end() {
    let id = Felt::from(0x1d);
    let status = async |status: Value| {
        let mut chain = chain();
        chain.statuses.insert(hex(id), status);
        nodes(chain, 2).starknet("starknet").unwrap().status(id).await.map_err(|error| error.code().name())
    };
    let done = |finality: &str, execution: &str| json!({"finality_status": finality, "execution_status": execution});
    assert_eq!(status(json!({"finality_status": "RECEIVED"})).await, Ok(Some(TransactionStatus::Pending)));
    assert_eq!(status(done("ACCEPTED_ON_L2", "SUCCEEDED")).await, Ok(Some(TransactionStatus::AcceptedOnL2 { success: true })));
    assert_eq!(status(done("ACCEPTED_ON_L2", "REVERTED")).await, Ok(Some(TransactionStatus::AcceptedOnL2 { success: false })));
    assert_eq!(status(done("ACCEPTED_ON_L1", "SUCCEEDED")).await, Ok(Some(TransactionStatus::AcceptedOnL1 { success: true })));
    assert_eq!(status(json!({"finality_status": "REJECTED"})).await, Ok(None));
    for odd in [
        json!({}),
        json!({"finality_status": "DONE"}),
        json!({"finality_status": "ACCEPTED_ON_L2"}),
        done("ACCEPTED_ON_L1", "MAYBE"),
        Value::Null,
    ] {
        assert!(status(odd.clone()).await.is_err(), "{odd}");
    }
    assert_eq!(nodes(chain(), 1).starknet("starknet").unwrap().status(id).await.unwrap(), None);
}

#[tokio::test(start_paused = true)]
async fn contracts_describe_themselves() {
    let nodes_ = nodes(chain(), 2);
    let (htlc, token) = (nodes_.transport().htlc, nodes_.transport().token);
    let described = nodes_.starknet("starknet").unwrap().describe_contract(htlc).await.unwrap();
    let generation = Some(nodes_.transport().generation);
    assert_eq!((described.class_hash, described.generation, described.token), (Some(Felt::from(CLASS)), generation, Some(token)));
    let nothing = chain().lying(|_, method, _| {
        let is_contract = method == "starknet_call" || method.starts_with("starknet_getClass");
        is_contract.then(|| json!({"error": {"code": 20, "message": "Contract not found"}}))
    });
    let described = nodes(nothing, 1).starknet("starknet").unwrap().describe_contract(htlc).await.unwrap();
    assert_eq!((described.class_hash, described.generation, described.token), (None, None, None));
    // In a Cairo 0 class, the interface is a list.
    let older = chain().lying(|_, method, _| (method == "starknet_getClassAt").then(|| json!({"program": "", "abi": []})));
    assert_eq!(nodes(older, 1).starknet("starknet").unwrap().describe_contract(htlc).await.unwrap().generation, None);
    let failing =
        chain().lying(|_, method, _| (method == "starknet_getClassAt").then(|| json!({"error": {"code": -32_603, "message": "no"}})));
    assert_eq!(nodes(failing, 1).starknet("starknet").unwrap().describe_contract(htlc).await.unwrap_err().code().name(), "node_error");
}

#[tokio::test(start_paused = true)]
async fn balances_and_heads_are_read() {
    let nodes_ = nodes(chain(), 2);
    let asset = registry().asset("starknet:eth").unwrap();
    assert_eq!(nodes_.balance(asset, "0x5").await.unwrap(), nodes_.transport().balance);
    assert_eq!(nodes_.balance(asset, "me").await.unwrap_err().code().name(), "hex_prefix");
    let head = nodes_.head("starknet", 1).await.unwrap();
    assert_eq!((head.height.get(), head.hash, head.time.as_secs()), (LATEST, hash_of(LATEST), NOW - 5));
    let wide = chain().lying(|_, method, _| (method == "starknet_call").then(|| json!([hex(Felt::MAX), "0x0"])));
    assert_eq!(nodes(wide, 1).balance(asset, "0x5").await.unwrap_err().code().name(), "node_malformed");
}
