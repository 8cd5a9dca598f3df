//! Tests what a wallet reads before it signs, and how transactions end.

use countersign::starknet::{Call, Deposit, Felt, ResourceBound, ResourceBounds, TxContext, UnsignedOrder};
use countersign::{ApprovalStep, BroadcastTransaction, Code, Policy, U256, Unsigned, Verified, evidence::HtlcState};
use countersign_node::starknet::TransactionStatus;
use countersign_node::{NodeError, Speed};
use serde_json::{Value, json};

use crate::stage::{Account, CHAIN, ETH, OTHER_SECRET, Order, STRK, Stage, Swap, connect, felt, hex, htlc_of, selector, signed};

/// Returns why the library refused, and where.
pub fn refused(error: NodeError) -> (Code, String) {
    match error {
        NodeError::Refused(refusal) => (refusal.code(), refusal.location().to_owned()),
        other => panic!("{other}"),
    }
}

pub fn native(unsigned: Unsigned) -> UnsignedOrder {
    match unsigned {
        Unsigned::Starknet(order) => order,
        other => panic!("{other:?}"),
    }
}

/// Prepares an order through the interface that all families share.
pub async fn prepare(stage: &Stage, order: Order) -> Result<UnsignedOrder, NodeError> {
    let order = Verified::Starknet(order.verified);
    stage.nodes.prepare(&order, CHAIN, "", Speed::Normal, &Policy::default()).await.map(native)
}

/// Returns the calls of an order as its account makes them.
fn calls_of(deposit: &Deposit) -> Vec<Call> {
    deposit.calls(ApprovalStep::AsVerified).into_iter().map(|(_, call)| call).collect()
}

fn number(value: &Value) -> U256 {
    value.as_str().unwrap().parse().unwrap()
}

#[tokio::test]
async fn a_node_is_identified_before_anything_else() {
    let Some(stage) = Stage::new().await else { return };
    let chain_id = stage.rpc("starknet_chainId", json!([])).await;
    assert_eq!(felt(chain_id.as_str().unwrap()), Felt::from_bytes_be_slice(b"SN_SEPOLIA"));

    let latest = stage.latest().await;
    let head = stage.nodes.head(CHAIN, 0).await.unwrap();
    assert_eq!((json!(head.height), json!(head.time)), (latest["block_number"].clone(), latest["timestamp"].clone()));
    assert_eq!(json!(head.hash), latest["block_hash"]);
    stage.mine(3).await;
    assert_eq!(stage.nodes.head(CHAIN, 0).await.unwrap().height, head.height.saturating_add(3));

    // The same node, configured as an endpoint of the main network.
    let other = connect(&[stage.devnet.url()], "starknet", stage.registry, |_, _| (), |_, _| ());
    let error = other.head("starknet", 0).await.unwrap_err();
    assert!(matches!(&error, NodeError::WrongChain { expected, actual, .. } if expected == "SN_MAIN" && actual == "SN_SEPOLIA"), "{error}");
    // An unsupported interface version.
    let old = stage.through(
        |_, _| (),
        |method, reply| {
            if method == "starknet_specVersion" {
                reply["result"] = json!("0.8.1");
            }
        },
    );
    let error = old.head(CHAIN, 0).await.unwrap_err();
    assert!(error.code().name() == "node_malformed" && error.to_string().contains("unsupported version"), "{error}");
    // A path that the node does not serve.
    let lost = connect(&[format!("{}/rpc/v0_9", stage.devnet.url())], CHAIN, stage.registry, |_, _| (), |_, _| ());
    assert!(lost.head(CHAIN, 0).await.is_err());
}

#[tokio::test]
async fn balances_and_allowances_are_those_of_the_tokens() {
    let Some(stage) = Stage::new().await else { return };
    for (asset, unit) in [("starknet_sepolia:strk", "FRI"), ("starknet_sepolia:eth", "WEI")] {
        let expected = stage.rpc("devnet_getAccountBalance", json!({"address": stage.user.text, "unit": unit, "block_id": "latest"})).await;
        assert_eq!(stage.nodes.balance(stage.registry.asset(asset).unwrap(), &stage.user.text).await.unwrap(), number(&expected["amount"]));
    }
    assert_eq!(stage.chain().balance(Felt::from(0x1234), felt(ETH)).await.unwrap(), U256::ZERO);
    // An amount that uses both halves.
    let (token, htlc) = (felt(ETH), htlc_of("starknet_sepolia:eth"));
    assert_eq!(stage.chain().allowance(token, stage.user.address, htlc).await.unwrap(), U256::ZERO);
    let amount = (U256::from(7) << 128) + U256::from(9);
    stage.approve(&stage.user, ETH, htlc, amount).await;
    assert_eq!(stage.chain().allowance(token, stage.user.address, htlc).await.unwrap(), amount);
    // There is no token at the address, or no contract at all.
    assert_eq!(stage.chain().balance(stage.user.address, stage.user.address).await.unwrap_err().code().name(), "node_error");
    assert_eq!(stage.chain().balance(stage.user.address, Felt::from(0x1234)).await.unwrap_err().code().name(), "node_error");
}

/// Returns bounds that are enough for everything here.
fn generous(nonce: Felt) -> TxContext {
    let bound = |amount| ResourceBound::new(amount, 1_000_000_000_000);
    TxContext::new(nonce, ResourceBounds::new(bound(100_000), bound(200_000_000), bound(100_000)))
}

#[tokio::test]
async fn what_is_missing_is_said_before_signing() {
    let Some(stage) = Stage::new().await else { return };
    let chain = stage.chain();
    let user = stage.user.address;
    let has = chain.balance(user, felt(ETH)).await.unwrap();
    let swap = |amount| Swap { source: "starknet_sepolia:eth", destination: "starknet_sepolia:strk", amount, ..Swap::default() };
    let execution = || generous(Felt::ZERO);

    // The amount exceeds the balance, whether the wallet provides the fees or the node estimates them.
    let unsigned = stage.order(&swap(has + U256::ONE)).verified.prepare(execution()).unwrap();
    assert_eq!(refused(chain.preflight(&unsigned).await.unwrap_err()), (Code::InsufficientFunds, "/token".to_owned()));
    let error = prepare(&stage, stage.order(&swap(has + U256::ONE))).await.unwrap_err();
    assert_eq!(refused(error), (Code::InsufficientFunds, "/token".to_owned()));
    // There is no allowance, and the order has no approval.
    let bare = || stage.order(&Swap { approval: false, ..swap(U256::from(5)) });
    let unsigned = bare().verified.prepare(execution()).unwrap();
    assert_eq!(refused(chain.preflight(&unsigned).await.unwrap_err()), (Code::AllowanceTooLow, "/allowance".to_owned()));
    let calls = calls_of(bare().verified.deposit());
    let error = chain.execution(user, &calls, Speed::Normal, &Policy::default()).await.unwrap_err();
    assert!(error.to_string().contains("ERC20"), "{error}");
    assert_eq!(refused(error), (Code::SimulationReverted, "/estimate".to_owned()));
    // The balance does not cover the fee.
    let poor = ResourceBounds::new(ResourceBound::new(u64::MAX, u128::from(u64::MAX)), ResourceBound::default(), ResourceBound::default());
    let unsigned = stage.order(&swap(U256::from(5))).verified.prepare(TxContext::new(Felt::ZERO, poor)).unwrap();
    assert_eq!(refused(chain.preflight(&unsigned).await.unwrap_err()), (Code::InsufficientFunds, "/balance".to_owned()));
    // Both the amount and the fee are paid in STRK.
    let strk = chain.balance(user, felt(STRK)).await.unwrap();
    let all = Swap { amount: strk, ..Swap::default() };
    let unsigned = stage.order(&all).verified.prepare(execution()).unwrap();
    assert_eq!(refused(chain.preflight(&unsigned).await.unwrap_err()), (Code::InsufficientFunds, "/balance".to_owned()));
    // A policy whose limit is below the node's prices.
    let strict = Policy::from_json(br#"{"starknet_fee": 1}"#).unwrap();
    let calls = calls_of(stage.order(&Swap::default()).verified.deposit());
    let error = chain.execution(user, &calls, Speed::Normal, &strict).await.unwrap_err();
    assert_eq!(refused(error), (Code::GasLimitTooHigh, "/resource_bounds".to_owned()));
    // None of these transactions was sent.
    assert_eq!(stage.nonce(&stage.user).await, Felt::ZERO);

    // With everything in place, the simulation succeeds and shows a single transfer.
    let unsigned = stage.order(&swap(has)).verified.prepare(execution()).unwrap();
    let preflight = chain.preflight(&unsigned).await.unwrap();
    assert_eq!((preflight.is_simulated, preflight.balance), (true, strk));
    // The same order fails a second time.
    let once = prepare(&stage, stage.order(&swap(U256::from(5)))).await.unwrap();
    stage.broadcast(&signed(once, &stage.user)).await;
    let error = prepare(&stage, stage.order(&swap(U256::from(5)))).await.unwrap_err();
    assert!(error.to_string().contains("HTLC: duplicate order"), "{error}");
    let again = stage.order(&swap(U256::from(5))).verified.prepare(generous(Felt::ONE)).unwrap();
    let error = chain.preflight(&again).await.unwrap_err();
    assert!(error.to_string().contains("HTLC: duplicate order"), "{error}");
    assert_eq!(refused(error).0, Code::SimulationReverted);
}

/// Returns the fee that a transaction has paid, in FRI.
pub fn fee(receipt: &Value) -> U256 {
    assert_eq!(receipt["actual_fee"]["unit"], "FRI");
    U256::from_str_radix(receipt["actual_fee"]["amount"].as_str().unwrap().trim_start_matches("0x"), 16).unwrap()
}

/// Checks that the bounds of a transaction cover what it used.
fn covers(bounds: &ResourceBounds, receipt: &Value) {
    let used = &receipt["execution_resources"];
    for (bound, name) in [(bounds.l1_gas, "l1_gas"), (bounds.l2_gas, "l2_gas"), (bounds.l1_data_gas, "l1_data_gas")] {
        let used = used[name].as_u64().unwrap();
        assert!(bound.max_amount >= used, "{name}: {} for {used}", bound.max_amount);
    }
    assert!(bounds.max_fee(0) >= fee(receipt));
}

fn bounds(order: &UnsignedOrder) -> ResourceBounds {
    order.payloads().invoke.as_ref().unwrap().invoke.transaction.resource_bounds
}

#[tokio::test]
async fn a_transaction_is_sent_once_and_followed_to_l1() {
    let Some(stage) = Stage::new().await else { return };
    let chain = stage.chain();
    let before = chain.balance(stage.user.address, felt(STRK)).await.unwrap();
    let unsigned = prepare(&stage, stage.order(&Swap::default())).await.unwrap();
    let (bounds, tx) = (bounds(&unsigned), unsigned.payloads().invoke.as_ref().unwrap().invoke.transaction.clone());
    assert_eq!((tx.sender_address, tx.nonce), (stage.user.address, Felt::ZERO));
    let sent = signed(unsigned, &stage.user);
    let id = felt(&sent.id);
    assert_eq!(chain.status(id).await.unwrap(), None);
    let receipt = stage.broadcast(&sent).await;
    covers(&bounds, &receipt);
    // A second broadcast succeeds and has no effect.
    chain.broadcast(&sent.id, &sent.payload).await.unwrap();
    assert_eq!(stage.nonce(&stage.user).await, Felt::ONE);
    let paid = before - chain.balance(stage.user.address, felt(STRK)).await.unwrap();
    assert_eq!(paid, Swap::default().amount + fee(&receipt));
    // The next context has the next nonce.
    let calls = calls_of(stage.order(&Swap { secret: OTHER_SECRET, ..Swap::default() }).verified.deposit());
    let next = chain.execution(stage.user.address, &calls, Speed::Fast, &Policy::default()).await.unwrap();
    assert_eq!(next.nonce, Felt::ONE);

    // The node refuses a used nonce, a foreign key, bounds that the account cannot pay, and too little gas.
    let swap = || stage.order(&Swap { secret: OTHER_SECRET, ..Swap::default() }).verified;
    let sign = |execution: TxContext, account: &Account| signed(swap().prepare(execution).unwrap(), account);
    let with = |nonce: Felt, amount: u64, price: u128| {
        TxContext::new(
            nonce,
            ResourceBounds::new(ResourceBound::new(0, price), ResourceBound::new(amount, price), ResourceBound::new(amount, price)),
        )
    };
    let price = bounds.l2_gas.max_price_per_unit;
    let refused: [(&str, BroadcastTransaction); 4] = [
        ("Account nonce: 1; got: 0", sign(generous(Felt::ZERO), &stage.user)),
        ("invalid signature", sign(generous(Felt::ONE), &stage.stranger)),
        ("balance", sign(with(Felt::ONE, u64::MAX, price), &stage.user)),
        ("resources", sign(with(Felt::ONE, 1, price), &stage.user)),
    ];
    for (why, transaction) in refused {
        let error = chain.broadcast(&transaction.id, &transaction.payload).await.unwrap_err();
        assert!(matches!(&error, NodeError::Rejected { .. }) && error.to_string().contains(why), "{error}");
        assert_eq!(chain.status(felt(&transaction.id)).await.unwrap(), None, "{why}");
    }
    assert_eq!(stage.nonce(&stage.user).await, Felt::ONE);

    // This transaction is included but reverts.
    let duplicate = stage.order(&Swap::default()).verified.prepare(generous(Felt::ONE)).unwrap();
    let duplicate = signed(duplicate, &stage.user);
    chain.broadcast(&duplicate.id, &duplicate.payload).await.unwrap();
    assert_eq!(chain.status(felt(&duplicate.id)).await.unwrap(), Some(TransactionStatus::AcceptedOnL2 { success: false }));

    // L1 has accepted the first one, but not yet the second.
    stage.rpc("devnet_acceptOnL1", json!({"starting_block_id": {"block_number": receipt["block_number"]}})).await;
    assert_eq!(chain.status(id).await.unwrap(), Some(TransactionStatus::AcceptedOnL1 { success: true }));
    assert_eq!(chain.status(felt(&duplicate.id)).await.unwrap(), Some(TransactionStatus::AcceptedOnL2 { success: false }));
    assert_eq!(stage.nonce(&stage.user).await, Felt::TWO);
}

#[tokio::test]
async fn a_transaction_is_pending_until_its_block_is_made() {
    let Some(stage) = Stage::on_demand().await else { return };
    let chain = stage.chain();
    let swaps = [Swap::default(), Swap { secret: OTHER_SECRET, ..Swap::default() }];
    let mut sent = Vec::new();
    for (nonce, swap) in [Felt::ZERO, Felt::ONE].into_iter().zip(&swaps) {
        // The nonce includes pending transactions.
        let unsigned = prepare(&stage, stage.order(swap)).await.unwrap();
        assert_eq!(unsigned.payloads().invoke.as_ref().unwrap().invoke.transaction.nonce, nonce);
        let transaction = signed(unsigned, &stage.user);
        chain.broadcast(&transaction.id, &transaction.payload).await.unwrap();
        chain.broadcast(&transaction.id, &transaction.payload).await.unwrap();
        assert_eq!(chain.status(felt(&transaction.id)).await.unwrap(), Some(TransactionStatus::Pending));
        // Nothing that is pending counts as evidence.
        assert_eq!(stage.read(&stage.order(swap).record.terms.source).await.0, HtlcState::Absent);
        sent.push(transaction);
    }
    assert_eq!(stage.nonce(&stage.user).await, Felt::ZERO);
    stage.mine(1).await;
    for (transaction, swap) in sent.iter().zip(&swaps) {
        assert_eq!(chain.status(felt(&transaction.id)).await.unwrap(), Some(TransactionStatus::AcceptedOnL2 { success: true }));
        let (state, seen) = stage.read(&stage.order(swap).record.terms.source).await;
        assert!(matches!(state, HtlcState::Locked(_)) && seen.depth == 1, "{state:?}");
    }
    assert_eq!(stage.nonce(&stage.user).await, Felt::TWO);
}

#[tokio::test]
async fn a_gasless_order_is_sent_by_somebody_else() {
    let Some(stage) = Stage::new().await else { return };
    let swap = Swap::default();
    let htlc = htlc_of(swap.source);
    stage.approve(&stage.user, STRK, htlc, swap.amount).await;
    // No approval is needed any more, so the message is enough.
    let mut unsigned = prepare(&stage, stage.order(&swap)).await.unwrap();
    assert!(unsigned.payloads().invoke.is_none());
    let hash = unsigned.payloads().message.as_ref().unwrap().hashes.message_hash;
    // The account itself accepts the signature for this hash. The contract hashes the message independently.
    unsigned.sign(&stage.user.key()).unwrap();
    assert!(unsigned.finish().is_ok());
    let [r, s] = stage.user.key().sign(&hash).unwrap();
    let request = json!({
        "contract_address": hex(stage.user.address), "entry_point_selector": hex(selector("is_valid_signature")),
        "calldata": [hex(hash), "0x2", hex(r), hex(s)],
    });
    let valid = stage.rpc("starknet_call", json!({"request": request, "block_id": "latest"})).await;
    assert_eq!(felt(valid[0].as_str().unwrap()), Felt::from_bytes_be_slice(b"VALID"));
    let order = stage.order(&swap);
    let calldata = order.verified.deposit().initiate.calldata.clone();
    let arguments = [vec![stage.user.address], calldata, vec![Felt::TWO, r, s]].concat();
    stage.execute(&stage.solver, &[(htlc, "initiate_with_signature", arguments)]).await;
    let (state, _) = stage.read(&order.record.terms.source).await;
    assert!(matches!(state, HtlcState::Locked(_)), "{state:?}");
}
