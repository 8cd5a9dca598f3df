//! Preparing redemptions and refunds on EVM chains: nothing is signed that the sender cannot pay for or that would fail, and no node sees a
//! secret before the redemption is sent.
use crate::support;

use countersign::evm::alloy_consensus::Transaction as _;
use countersign::evm::alloy_consensus::TypedTransaction;
use countersign::evm::alloy_primitives::{Address, U256};
use countersign::evm::recover::{self, Leg};
use countersign::evm::{Evm, TxContext};
use countersign::recover::Recovery;
use countersign::{BroadcastTransaction, Code, Family, Key, Policy, SecretHash, Signed, Transaction, Unsigned};
use countersign_node::{Attempt, NodeError, Nodes, SettlementKey, Speed};
use countersign_testkit::recover::record;
use countersign_testkit::{key, registry, verified};
use serde_json::json;
use support::{Chain, SECRET, case, nodes, terms};

const GWEI: u128 = 1_000_000_000;
const SENDER: Address = Address::repeat_byte(0xa1);
const ORDER: &str = "evm-record-evm-v1";

fn chain() -> Chain {
    Chain::funded(&terms().destination)
}

fn refused(error: &NodeError) -> (Code, &str) {
    match error {
        NodeError::Refused(refusal) => (refusal.code(), refusal.location()),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_redemption_is_never_shown_before_it_is_sent() {
    let hash = SecretHash::of(&SECRET).to_string();
    let mut record = record::<Evm>(ORDER, |order| order["source_swap"]["secret_hash"] = hash.into()).unwrap();
    let refusal = recover::redeem(&record, Leg::Source, &SECRET, registry()).unwrap_err();
    record.source_swap.swap_id = refusal.expected().unwrap().to_string();
    let redemption = recover::redeem(&record, Leg::Source, &SECRET, registry()).unwrap();
    let order = redemption.prepare(TxContext::eip1559(1, 30 * GWEI, GWEI).sent_by(SENDER)).unwrap();
    let rich = || chain().lying(|_, method, _| (method == "eth_getBalance").then(|| json!("0xde0b6b3a7640000")));
    let nodes = nodes(rich(), 1);
    let preflight = nodes.evm("ethereum").unwrap().preflight(&order).await.unwrap();
    assert_eq!(preflight.gas_used, None);
    let seen = nodes.transport().seen.lock().unwrap();
    assert!(seen.iter().all(|(_, method, _)| method == "eth_chainId" || method == "eth_getBalance"), "{seen:?}");
}

#[tokio::test(start_paused = true)]
async fn a_sender_that_cannot_pay_the_fee_signs_no_redemption_and_no_refund() {
    let mut record = record::<Evm>(ORDER, |order| {
        order["source_swap"]["secret_hash"] = SecretHash::of(&SECRET).to_string().into();
    })
    .unwrap();
    record.source_swap.swap_id = recover::refund(&record, Leg::Source, registry()).unwrap_err().expected().unwrap().to_string();
    let refund = Recovery::Evm(recover::refund(&record, Leg::Source, registry()).unwrap());
    let redemption = Recovery::Evm(recover::redeem(&record, Leg::Source, &SECRET, registry()).unwrap());
    let prepare = async |recovery: &Recovery, balance: U256, status: u8| {
        let chain = chain().lying(move |_, method, _| match method {
            "eth_getBalance" => Some(json!(format!("{balance:#x}"))),
            "eth_simulateV1" => {
                let data = if status == 0 { "0x839f009c" } else { "0x" };
                let call = json!({"status": format!("{status:#x}"), "gasUsed": "0x5208", "logs": [], "returnData": data});
                Some(json!([{"calls": [call]}]))
            }
            _ => None,
        });
        let nodes = nodes(chain, 1);
        nodes.prepare_recovery(recovery, "ethereum", &SENDER.to_string(), Speed::Normal, &Policy::default()).await
    };
    for recovery in [&redemption, &refund] {
        let Unsigned::Evm(unsigned) = prepare(recovery, U256::MAX, 1).await.unwrap() else { panic!("not of EVM") };
        let transaction = &unsigned.payloads().calls[0].transaction.transaction;
        let fee = U256::from(transaction.gas_limit()) * U256::from(transaction.max_fee_per_gas());
        assert!(prepare(recovery, fee, 1).await.is_ok());
        assert_eq!(refused(&prepare(recovery, fee - U256::from(1), 1).await.unwrap_err()), (Code::InsufficientFunds, "/balance"));
    }
    // A refund that would fail is not signed. A redemption is not shown to any node.
    let early = prepare(&refund, U256::MAX, 0).await.unwrap_err();
    assert_eq!(refused(&early), (Code::SimulationReverted, "/refund"));
    assert!(early.to_string().contains("the timelock has not expired (HTLC__OrderNotExpired)"), "{early}");
    assert!(prepare(&redemption, U256::MAX, 0).await.is_ok());
}

// ---- stuck transactions

/// A redemption and a refund of the same leg.
fn recoveries() -> [Recovery; 2] {
    let mut record = record::<Evm>(ORDER, |order| {
        order["source_swap"]["secret_hash"] = SecretHash::of(&SECRET).to_string().into();
    })
    .unwrap();
    record.source_swap.swap_id = recover::refund(&record, Leg::Source, registry()).unwrap_err().expected().unwrap().to_string();
    let redemption = recover::redeem(&record, Leg::Source, &SECRET, registry()).unwrap();
    [Recovery::Evm(redemption), Recovery::Evm(recover::refund(&record, Leg::Source, registry()).unwrap())]
}

/// A sender with enough coins and these nonces: after the mined transactions, and on each host after the pending ones.
fn stuck(mined: u64, pending: [u64; 3]) -> Chain {
    with_nonces(move |host, tag, _| if tag == "latest" { mined } else { pending[usize::from(host.as_bytes()[0] - b'a')] })
}

/// A sender with enough coins and nonces that depend on the host, the tag and the number of earlier questions.
fn with_nonces(nonce: impl Fn(&str, &str, usize) -> u64 + Send + Sync + 'static) -> Chain {
    let asked = std::sync::atomic::AtomicUsize::new(0);
    chain().lying(move |host, method, params| match method {
        "eth_getBalance" => Some(json!("0xde0b6b3a7640000")),
        "eth_getTransactionCount" => {
            let before = asked.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            Some(json!(format!("{:#x}", nonce(host, params[1].as_str().unwrap(), before))))
        }
        "eth_simulateV1" => {
            let call = json!({"status": "0x1", "gasUsed": "0x5208", "logs": [], "returnData": "0x"});
            Some(json!([{"calls": [call]}]))
        }
        _ => None,
    })
}

fn transaction(unsigned: &Unsigned) -> &TypedTransaction {
    let Unsigned::Evm(unsigned) = unsigned else { panic!("not of EVM") };
    &unsigned.payloads().calls[0].transaction.transaction
}

/// Nonce, fee cap and tip.
fn offer(unsigned: &Unsigned) -> (u64, u128, u128) {
    let transaction = transaction(unsigned);
    (transaction.nonce(), transaction.max_fee_per_gas(), transaction.max_priority_fee_per_gas().unwrap())
}

async fn prepared(nodes: &Nodes<Chain>, recovery: &Recovery) -> Result<Unsigned, NodeError> {
    nodes.prepare_recovery(recovery, "ethereum", &SENDER.to_string(), Speed::Normal, &Policy::default()).await
}

#[tokio::test(start_paused = true)]
async fn a_redemption_does_not_queue_behind_a_stuck_transaction() {
    let [redemption, refund] = recoveries();
    // Fast fees are a cap of 42 gwei and a tip of 2. Whatever is stuck at the chain's own tips offers less than twice and a quarter of it.
    let (cap, tip) = (2 * (42 * GWEI + 1), (2 * (42 * GWEI + 1)) / 4);
    for pending in [[42; 3], [41, 41, 42], [42, 40, 50]] {
        let nodes = nodes(stuck(40, pending), 3);
        assert_eq!(offer(&prepared(&nodes, &redemption).await.unwrap()), (40, cap, tip), "{pending:?}");
    }
    // The policy bounds the fees.
    let policy = Policy::from_json(br#"{"evm_gas_price": 50}"#).unwrap();
    let nodes_ = nodes(stuck(40, [42; 3]), 3);
    let bounded = nodes_.prepare_recovery(&redemption, "ethereum", &SENDER.to_string(), Speed::Normal, &policy).await.unwrap();
    assert_eq!(offer(&bounded), (40, 50 * GWEI, 50 * GWEI / 4));
    // Without a gap, nothing is replaced and nothing is waited for.
    let nodes_ = nodes(stuck(42, [42; 3]), 3);
    assert_eq!(offer(&prepared(&nodes_, &redemption).await.unwrap()), (42, 31 * GWEI + 1, GWEI + 1));
    assert_eq!(nodes_.transport().seen.lock().unwrap().iter().filter(|(_, method, _)| method == "eth_feeHistory").count(), 3);
    // A refund is not worth replacing another transaction for, so it waits and reports that.
    let Unsigned::Evm(unsigned) = prepared(&nodes(stuck(40, [42; 3]), 3), &refund).await.unwrap() else { panic!("not of EVM") };
    assert_eq!(unsigned.payloads().calls[0].transaction.transaction.nonce(), 42);
    let [warning] = unsigned.warnings().list() else { panic!("{:?}", unsigned.warnings()) };
    assert_eq!((warning.code(), warning.detail()), (Code::NonceGap, Some("2 of them, from nonce 40 on")));
}

/// A gap in front of a redemption counts only if as many endpoints as must agree show it.
#[tokio::test(start_paused = true)]
async fn one_endpoint_can_neither_make_nor_hide_a_gap() {
    let [redemption, _] = recoveries();
    let ordinary = (42, 31 * GWEI + 1, GWEI + 1);
    for pending in [[42, 42, 50], [50, 42, 42], [42, 0, 42]] {
        let nodes = nodes(stuck(42, pending), 3);
        assert_eq!(offer(&prepared(&nodes, &redemption).await.unwrap()), ordinary, "{pending:?}");
        assert_eq!(nodes.transport().seen.lock().unwrap().iter().filter(|(_, method, _)| method == "eth_feeHistory").count(), 3, "waited");
    }
    for pending in [[42, 42, 40], [40, 42, 42], [42, 0, 42]] {
        let (nonce, cap, _) = offer(&prepared(&nodes(stuck(40, pending), 3), &redemption).await.unwrap());
        assert_eq!((nonce, cap), (40, 2 * (42 * GWEI + 1)), "{pending:?}");
    }
    // Of two endpoints that must agree, one shows a gap: the lowest unmined nonce, and no more than the ordinary fees.
    assert_eq!(offer(&prepared(&nodes(stuck(42, [42, 50, 0]), 2), &redemption).await.unwrap()), ordinary);
}

#[tokio::test(start_paused = true)]
async fn a_transaction_that_was_just_sent_is_given_the_time_to_be_mined() {
    let [redemption, _] = recoveries();
    // The first look shows a gap, the second one does not.
    let nodes_ = nodes(with_nonces(|_, tag, before| if tag == "latest" && before < 2 { 41 } else { 42 }), 1);
    assert_eq!(offer(&prepared(&nodes_, &redemption).await.unwrap()), (42, 31 * GWEI + 1, GWEI + 1));
    // The queue moves, and another transaction is in it.
    let moving = with_nonces(|_, tag, before| {
        if tag != "latest" {
            43
        } else if before < 2 {
            41
        } else {
            42
        }
    });
    assert_eq!(offer(&prepared(&nodes(moving, 1), &redemption).await.unwrap()).0, 43);
}

#[tokio::test(start_paused = true)]
async fn a_sender_that_cannot_pay_for_more_offers_the_ordinary_fees() {
    let [redemption, _] = recoveries();
    let ordinary = U256::from(300_000) * U256::from(31 * GWEI + 1);
    let poor = |balance: U256| {
        let chain = stuck(40, [42; 3]);
        let lie = chain.lie;
        let chain = self::chain();
        nodes(
            chain.lying(
                move |host, method, params| if method == "eth_getBalance" { Some(json!(balance)) } else { lie(host, method, params) },
            ),
            1,
        )
    };
    assert_eq!(offer(&prepared(&poor(ordinary), &redemption).await.unwrap()), (40, 31 * GWEI + 1, GWEI + 1));
    let error = prepared(&poor(ordinary - U256::from(1)), &redemption).await.unwrap_err();
    assert_eq!(refused(&error), (Code::InsufficientFunds, "/balance"));
}

/// The redemption, signed with a nonce by the key of a case, and the account of the key.
fn sent(nonce: u64) -> (BroadcastTransaction, String) {
    let [redemption, _] = recoveries();
    let Recovery::Evm(redemption) = redemption else { panic!("not of EVM") };
    let case = case("evm-chain-id-integer");
    let account = verified::<Evm>(&case).deposit().sender;
    let mut unsigned = redemption.prepare(TxContext::eip1559(nonce, 30 * GWEI, GWEI).sent_by(account)).unwrap();
    unsigned.sign(&key::<Evm>(&case)).unwrap();
    let [kept] = countersign::Signed::from(unsigned.finish().unwrap()).broadcasts().try_into().unwrap();
    (kept, account.to_string())
}

#[tokio::test(start_paused = true)]
async fn an_overdue_redemption_takes_the_lowest_unmined_nonce_at_once() {
    let [redemption, refund] = recoveries();
    let replaced = async |chain: Chain, recovery: &Recovery, nonce: u64| {
        let (kept, account) = sent(nonce);
        let nodes = nodes(chain, 3);
        let submission = nodes.submission("ethereum", &kept.id, &kept.payload).unwrap();
        offer(&nodes.prepare_replacement(recovery, "ethereum", &account, &submission, Speed::Fast, &Policy::default()).await.unwrap())
    };
    // It queues behind two others: no time is lost with waiting.
    assert_eq!(replaced(stuck(40, [43; 3]), &redemption, 42).await.0, 40);
    // It is the lowest itself.
    assert_eq!(replaced(stuck(42, [43; 3]), &redemption, 42).await, (42, 42 * GWEI + 1, 2 * GWEI + 1));
    // No endpoint has it, and nothing is in front of it.
    assert_eq!(replaced(stuck(42, [42; 3]), &redemption, 42).await, (42, 42 * GWEI + 1, 2 * GWEI + 1));
    // Another transaction has taken its nonce.
    assert_eq!(replaced(stuck(44, [44; 3]), &redemption, 42).await.0, 44);
    // A refund keeps its place.
    assert_eq!(replaced(stuck(40, [43; 3]), &refund, 42).await.0, 42);
}

#[tokio::test(start_paused = true)]
async fn a_gap_in_front_of_a_payment_is_said() {
    let warned = async |chain: Chain| {
        let nodes = nodes(chain, 3);
        let calls = nodes.evm("ethereum").unwrap().calls(SENDER, Speed::Normal, &Policy::default()).await.unwrap();
        let order = verified::<Evm>(&case("evm-chain-id-integer")).prepare(calls.clone()).unwrap();
        let gaps = order.warnings().list().iter().filter(|warning| warning.code() == Code::NonceGap).count();
        (calls.nonce, calls.unmined, gaps)
    };
    assert_eq!(warned(stuck(40, [42, 42, 41])).await, (42, 2, 1));
    assert_eq!(warned(stuck(42, [42; 3])).await, (42, 0, 0));
    // Mempools differ: neither a lower nor a higher nonce is right.
    let nodes = nodes(stuck(40, [41, 42, 43]), 3);
    let error = nodes.evm("ethereum").unwrap().calls(SENDER, Speed::Normal, &Policy::default()).await.unwrap_err();
    assert_eq!(error.code().name(), "node_disagree");
    assert!(error.to_string().contains("different pending transactions"), "{error}");
}

// ---- fees

#[tokio::test(start_paused = true)]
async fn a_fee_above_the_policy_is_refused_with_what_it_costs_and_pays() {
    for recovery in recoveries() {
        let policy = Policy::from_json(br#"{"evm_gas_price": 30}"#).unwrap();
        let nodes = nodes(stuck(42, [42; 3]), 1);
        let error = nodes.prepare_recovery(&recovery, "ethereum", &SENDER.to_string(), Speed::Normal, &policy).await.unwrap_err();
        assert_eq!(refused(&error), (Code::GasPriceTooHigh, "/max_fee_per_gas"));
        // 300,000 gas at 31 gwei and a bit.
        for part in ["may cost up to 0.0093", "wei", "pays", "evm_gas_price", "wait until gas is cheaper, or raise the limit"] {
            assert!(error.to_string().contains(part), "{error}");
        }
    }
}

/// The secret is out, so a slow redemption is better than none. Its fees are the maximum of the policy, and a warning
/// states that.
#[tokio::test(start_paused = true)]
async fn once_the_secret_is_out_the_limit_of_the_policy_is_paid_and_said() {
    let [redemption, _] = recoveries();
    let limit = |gwei: u128| Policy::from_json(format!(r#"{{"evm_gas_price": {gwei}}}"#).as_bytes()).unwrap();
    let warned = |unsigned: &Unsigned| {
        let Unsigned::Evm(unsigned) = unsigned else { panic!("not of EVM") };
        let said = unsigned.warnings().list().iter().find(|warning| warning.code() == Code::GasPriceTooHigh).map(ToString::to_string);
        said.is_some_and(|said| said.contains("the redemption may cost") && said.contains("it pays that limit"))
    };
    for (gwei, cap, is_lowered) in [(30, 30 * GWEI, true), (31, 31 * GWEI, true), (32, 31 * GWEI + 1, false)] {
        let nodes = nodes(stuck(42, [42; 3]), 1);
        let urgent = nodes.prepare_urgent(&redemption, "ethereum", &SENDER.to_string(), Speed::Normal, &limit(gwei)).await.unwrap();
        assert_eq!((offer(&urgent), warned(&urgent)), ((42, cap, GWEI + 1), is_lowered), "{gwei}");
    }
    // A replacement too. Nodes that have the first one ask for ten percent more than 30 gwei; the others take what is allowed.
    let (kept, account) = sent(42);
    for (gwei, cap) in [(43, 42 * GWEI + 1), (35, 35 * GWEI), (33, 33 * GWEI), (32, 32 * GWEI)] {
        let nodes = nodes(stuck(42, [43; 3]), 1);
        let submission = nodes.submission("ethereum", &kept.id, &kept.payload).unwrap();
        let replaced = nodes.prepare_replacement(&redemption, "ethereum", &account, &submission, Speed::Fast, &limit(gwei)).await;
        assert_eq!(offer(&replaced.unwrap()), (42, cap, 2 * GWEI + 1), "{gwei}");
    }
    // Another one that is stuck in front of it is displaced within the policy.
    let nodes = nodes(stuck(40, [43; 3]), 1);
    let submission = nodes.submission("ethereum", &kept.id, &kept.payload).unwrap();
    let displacing = nodes.prepare_replacement(&redemption, "ethereum", &account, &submission, Speed::Fast, &limit(35)).await.unwrap();
    let (nonce, cap, _) = offer(&displacing);
    assert_eq!((nonce, cap, warned(&displacing)), (40, 35 * GWEI, true));
}

// ---- with a local key

/// The key of the case that `sent` uses.
fn settlement_key() -> SettlementKey {
    let text = case("evm-chain-id-integer").secret_key().unwrap();
    SettlementKey::new(Key::parse(Family::Evm, &text).unwrap(), None).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_settlement_is_signed_with_the_fees_of_its_attempt() {
    let [redemption, refund] = recoveries();
    let settle = async |recovery: &Recovery, attempt: Attempt<'_>, gwei: u128| {
        let policy = Policy::from_json(format!(r#"{{"evm_gas_price": {gwei}}}"#).as_bytes()).unwrap();
        nodes(stuck(42, [43; 3]), 1).settle(recovery, "ethereum", attempt, &settlement_key(), &policy).await
    };
    let offer = |signed: Signed| {
        let [one] = signed.transactions().try_into().unwrap();
        let Transaction::Evm(transaction) = one.native else { panic!("not of EVM") };
        (transaction.nonce(), transaction.max_fee_per_gas(), transaction.max_priority_fee_per_gas().unwrap())
    };
    let (kept, account) = sent(42);
    assert_eq!(settlement_key().account, account);
    let replacement = Attempt::Replacement { id: &kept.id, payload: &kept.payload };
    // The first refund queues, an urgent redemption and a replacement offer fast fees.
    assert_eq!(offer(settle(&refund, Attempt::First(Speed::Normal), 100).await.unwrap()), (43, 31 * GWEI + 1, GWEI + 1));
    assert_eq!(offer(settle(&refund, Attempt::First(Speed::Fast), 100).await.unwrap()).1, 42 * GWEI + 1);
    assert_eq!(offer(settle(&redemption, replacement, 100).await.unwrap()), (42, 42 * GWEI + 1, 2 * GWEI + 1));
    // Only the first one waits for fees within the policy.
    assert_eq!(refused(&settle(&refund, Attempt::First(Speed::Normal), 20).await.unwrap_err()).0, Code::GasPriceTooHigh);
    assert_eq!(offer(settle(&redemption, Attempt::Urgent, 20).await.unwrap()).1, 20 * GWEI);
}

#[tokio::test(start_paused = true)]
async fn a_key_that_is_not_the_senders_settles_nothing() {
    let [_, refund] = recoveries();
    let mut other = settlement_key();
    other.account = SENDER.to_string();
    let settle = async |key: &SettlementKey| {
        let nodes = nodes(stuck(42, [42; 3]), 1);
        nodes.settle(&refund, "ethereum", Attempt::First(Speed::Normal), key, &Policy::default()).await.unwrap_err()
    };
    assert_eq!(refused(&settle(&other).await).0, Code::KeyMismatch);
    let bitcoin = Key::parse(Family::Bitcoin, &"11".repeat(32)).unwrap();
    let bitcoin = SettlementKey::new(bitcoin, Some(SENDER.to_string())).unwrap();
    assert_eq!(refused(&settle(&bitcoin).await).0, Code::KeyMismatch);
    let starknet = Key::parse(Family::Starknet, "0x1234").unwrap();
    assert!(SettlementKey::new(starknet, None).is_none(), "the account of Starknet does not follow from the key");
}
