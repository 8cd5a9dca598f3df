//! Tests that an account on an OP-stack chain has enough coins for the L1 fee, before an order is paid and before
//! anything is signed.
use crate::support;

use countersign::evm::alloy_consensus::Transaction as _;
use countersign::evm::alloy_primitives::{Address, U256};
use countersign::evm::reader::fees;
use countersign::evm::recover::{self, Leg};
use countersign::evm::{Evm, TxContext};
use countersign::recover::Recovery;
use countersign::{
    Code, OrderRecord, Policy, SecretHash, Unsigned,
    evidence::{Precondition, Stage},
};
use countersign_node::{Endpoint, Endpoints, Ends, NodeConfig, NodeError, Nodes, Speed};
use countersign_testkit::recover::record;
use countersign_testkit::{registry, verified};
use serde_json::{Value, json};
use support::{Chain, SECRET, terms};

const HOSTS: [&str; 3] = ["a.example", "b.example", "c.example"];
const ORACLE: &str = "0x420000000000000000000000000000000000000f";
const ACCOUNT: Address = Address::repeat_byte(0x77);
const OTHER: Address = Address::repeat_byte(0x5a);
/// The L1 fee of one transaction according to honest endpoints, in wei.
const L1_FEE: u64 = 1_000_000_000_000;
/// The gas limit of a redemption and of a refund.
const GAS_LIMIT: u64 = 300_000;
/// The gas for a redemption's data that endpoints of Arbitrum state.
const DATA_GAS: u64 = 1_000_000;
const GWEI: u128 = 1_000_000_000;
/// The order that pays ether on Base, and the start of the call that pays it.
const PAYMENT: &str = "evm-record-evm-v2";
const INITIATE: &str = "0x97ffc7ae";

fn word(number: U256) -> Value {
    json!(format!("{number:#066x}"))
}

fn failure(code: i64) -> Value {
    json!({"error": {"code": code, "message": "no"}})
}

/// What one endpoint of three says of the fee, although it is another: nothing, the maximum, an error, a revert, and what is no answer.
fn lies() -> Vec<Value> {
    let reverted = json!({"error": {"code": 3, "message": "execution reverted"}});
    vec![word(U256::ZERO), word(U256::MAX), failure(-32_005), reverted, json!("0x"), Value::Null, json!("0x00")]
}

/// Endpoints of a chain where an account has so much. `liar` answers the question for the fee with `lie`.
fn connected(name: &str, chain_id: u64, balance: U256, liar: Option<usize>, lie: &Value) -> Nodes<Chain> {
    let lie = lie.clone();
    let chain = Chain::funded(&terms().destination).with(|evm| evm.chain_id = chain_id).lying(move |host, method, params| {
        let is_oracle = params[0]["to"].as_str().is_some_and(|to| to.eq_ignore_ascii_case(ORACLE));
        match method {
            "eth_getBalance" => Some(json!(format!("{balance:#x}"))),
            "eth_getCode" => Some(json!("0x")),
            "eth_call" if is_oracle => {
                // The selector of `getL1FeeUpperBound(uint256)`, and a size.
                let data = params[0]["data"].as_str().unwrap();
                assert!(data.starts_with("0xf1c7a58b") && data.len() == 2 + 8 + 64, "{data}");
                Some(if liar.is_some_and(|liar| HOSTS[liar] == host) { lie.clone() } else { word(U256::from(L1_FEE)) })
            }
            "eth_call" => match params[0]["data"].as_str().map(|data| &data[..10]) {
                Some("0x313ce567") => Some(word(U256::from(6))),
                Some("0xa9059cbb" | INITIATE) | None => Some(json!("0x")),
                _ => None,
            },
            "eth_feeHistory" => Some(json!({"baseFeePerGas": ["0x3b9aca00", "0x3b9aca00"], "reward": [["0x1", "0x1", "0x1"]]})),
            "eth_simulateV1" if params.to_string().contains(INITIATE) => Some(failure(-32_601)),
            "eth_simulateV1" => {
                let call = json!({"status": "0x1", "gasUsed": "0x5208", "logs": [], "returnData": "0x"});
                Some(json!([{"calls": [call]}]))
            }
            _ => None,
        }
    });
    let all = HOSTS.iter().map(|host| Endpoint::parse(&format!("https://{host}")).unwrap()).collect();
    Nodes::new(chain, NodeConfig::new().with(name, Endpoints::new(all).unwrap()), registry())
}

/// How often the fee was asked.
fn asked(nodes: &Nodes<Chain>) -> usize {
    let seen = nodes.transport().seen.lock().unwrap();
    seen.iter().filter(|(_, _, params)| params.to_string().to_ascii_lowercase().contains(ORACLE)).count()
}

/// A redemption and a refund of the same leg on a chain.
fn recoveries(chain: &str) -> [Recovery; 2] {
    let mut record = record::<Evm>("evm-record-evm-v1", |order| {
        order["source_swap"]["secret_hash"] = SecretHash::of(&SECRET).to_string().into();
        order["source_swap"]["chain"] = chain.into();
        order["source_swap"]["asset"] = format!("{chain}:usdc").into();
    })
    .unwrap();
    record.source_swap.swap_id = recover::refund(&record, Leg::Source, registry()).unwrap_err().expected().unwrap().to_string();
    let redemption = recover::redeem(&record, Leg::Source, &SECRET, registry()).unwrap();
    [Recovery::Evm(redemption), Recovery::Evm(recover::refund(&record, Leg::Source, registry()).unwrap())]
}

async fn prepared(nodes: &Nodes<Chain>, name: &str, recovery: &Recovery) -> Result<Unsigned, NodeError> {
    nodes.prepare_recovery(recovery, name, &ACCOUNT.to_string(), Speed::Normal, &Policy::default()).await
}

/// The record of an order that pays USDC, or ether with `is_native`, on a chain.
fn paying(chain: &str, is_native: bool) -> OrderRecord {
    let case = support::case(PAYMENT);
    let value = countersign::json::parse(case.input.as_bytes()).unwrap();
    let proposal = countersign_json::line::Case::from_value(&value).unwrap().proposal().unwrap();
    let mut record = countersign::verify_record(proposal, registry(), &Policy::default()).unwrap().record;
    record.destination_swap.asset = format!("{chain}:{}", if is_native { "eth" } else { "usdc" }).parse().unwrap();
    record.destination_swap.chain = chain.to_owned();
    record.destination_swap.redeemer = OTHER.to_string();
    record
}

async fn unmet(nodes: &Nodes<Chain>, record: &OrderRecord) -> Vec<(Precondition, &'static str)> {
    let account = ACCOUNT.to_string();
    let ends = Ends::of_record(record, registry()).redeemed_by(Some(&account));
    let found = nodes.preconditions(&ends, Stage::BeforePaying, Speed::Normal, &Policy::default()).await;
    found.unmet.iter().map(|unmet| (unmet.precondition, unmet.error.code().name())).collect()
}

/// The price of one unit of gas that these endpoints lead to.
async fn cap(name: &str, chain_id: u64) -> U256 {
    let nodes = connected(name, chain_id, U256::MAX, None, &Value::Null);
    let Unsigned::Evm(unsigned) = prepared(&nodes, name, &recoveries(name)[0]).await.unwrap() else { panic!("not of EVM") };
    let transaction = &unsigned.payloads().calls[0].transaction.transaction;
    assert_eq!(transaction.gas_limit(), GAS_LIMIT);
    U256::from(transaction.max_fee_per_gas())
}

/// The liars: none, and each of the three with each lie.
fn cases() -> Vec<(Option<usize>, Value)> {
    let mut all = vec![(None, Value::Null)];
    for liar in 0..HOSTS.len() {
        all.extend(lies().into_iter().map(|lie| (Some(liar), lie)));
    }
    all
}

#[tokio::test(start_paused = true)]
async fn the_account_that_redeems_has_the_fee_of_the_chain_below_before_paying() {
    let gas = cap("base", 8_453).await * U256::from(GAS_LIMIT);
    let enough = gas + U256::from(L1_FEE);
    for (liar, lie) in cases() {
        for is_native in [false, true] {
            let record = paying("base", is_native);
            let nodes = connected("base", 8_453, enough, liar, &lie);
            assert_eq!(unmet(&nodes, &record).await, [], "{liar:?} {lie}");
            for balance in [enough - U256::from(1), gas] {
                let nodes = connected("base", 8_453, balance, liar, &lie);
                assert_eq!(unmet(&nodes, &record).await, [(Precondition::Redeemer, "insufficient_funds")], "{liar:?} {lie}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_payout_is_worth_more_than_gas_and_the_fee_of_the_chain_below() {
    // Gas is counted with a third of the limit.
    let cost = cap("base", 8_453).await * U256::from(GAS_LIMIT / 3) + U256::from(L1_FEE);
    for (liar, lie) in cases() {
        for (payout, expected) in [(cost, vec![(Precondition::Payout, "fee_above_payout")]), (cost + U256::from(1), vec![])] {
            let mut record = paying("base", true);
            record.destination_swap.amount = payout;
            let nodes = connected("base", 8_453, U256::MAX >> 1, liar, &lie);
            assert_eq!(unmet(&nodes, &record).await, expected, "{liar:?} {lie}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_sender_that_cannot_pay_the_fee_of_the_chain_below_signs_nothing() {
    let gas = cap("base", 8_453).await * U256::from(GAS_LIMIT);
    let enough = gas + U256::from(L1_FEE);
    for recovery in &recoveries("base") {
        for (liar, lie) in cases() {
            let nodes = connected("base", 8_453, enough, liar, &lie);
            assert!(prepared(&nodes, "base", recovery).await.is_ok(), "{liar:?} {lie}");
            for balance in [enough - U256::from(1), gas] {
                let error = prepared(&connected("base", 8_453, balance, liar, &lie), "base", recovery).await.unwrap_err();
                let NodeError::Refused(refusal) = error else { panic!("{error:?}") };
                assert_eq!((refusal.code(), refusal.location()), (Code::InsufficientFunds, "/balance"), "{liar:?} {lie}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_payment_needs_the_fee_of_the_chain_below() {
    let order = verified::<Evm>(&support::case(PAYMENT)).prepare(TxContext::eip1559(1, 10 * GWEI, GWEI)).unwrap();
    let [payload] = order.payloads().calls.as_slice() else { panic!("one call") };
    let transaction = &payload.transaction.transaction;
    let gas = U256::from(transaction.gas_limit()) * U256::from(10 * GWEI);
    let enough = transaction.value() + gas + U256::from(L1_FEE);
    for (liar, lie) in cases() {
        let preflight = async |balance| connected("base", 8_453, balance, liar, &lie).evm("base").unwrap().preflight(&order).await;
        assert_eq!(preflight(enough).await.unwrap().balance, enough, "{liar:?} {lie}");
        let error = preflight(enough - U256::from(1)).await.unwrap_err();
        let NodeError::Refused(refusal) = error else { panic!("{error:?}") };
        assert_eq!((refusal.code(), refusal.location()), (Code::InsufficientFunds, "/balance"), "{liar:?} {lie}");
    }
}

/// Nothing is asked about the chain below where gas is all that is paid.
#[tokio::test(start_paused = true)]
async fn a_chain_without_the_fee_is_asked_nothing_more() {
    let gas = cap("ethereum", 1).await * U256::from(GAS_LIMIT);
    for is_native in [false, true] {
        let nodes = connected("ethereum", 1, gas, None, &Value::Null);
        assert_eq!(unmet(&nodes, &paying("ethereum", is_native)).await, []);
        for recovery in &recoveries("ethereum") {
            assert!(prepared(&nodes, "ethereum", recovery).await.is_ok());
        }
        assert_eq!(asked(&nodes), 0);
    }
    let nodes = connected("base", 8_453, U256::MAX >> 1, None, &Value::Null);
    assert_eq!(unmet(&nodes, &paying("base", false)).await, []);
    let seen = nodes.transport().seen.lock().unwrap();
    let balances = seen.iter().filter(|(_, method, _)| method == "eth_getBalance").count();
    drop(seen);
    assert_eq!(asked(&nodes), balances, "once with each balance");
}

/// Endpoints of Base of which each answers the question for the fee with this.
fn all_say(answer: &Value) -> Nodes<Chain> {
    let answer = answer.clone();
    let chain = Chain::funded(&terms().destination).with(|evm| evm.chain_id = 8_453).lying(move |_, method, params| match method {
        "eth_call" if params[0]["to"].as_str().is_some_and(|to| to.eq_ignore_ascii_case(ORACLE)) => Some(answer.clone()),
        "eth_getBalance" => Some(json!("0xde0b6b3a7640000")),
        "eth_feeHistory" => Some(json!({"baseFeePerGas": ["0x3b9aca00", "0x3b9aca00"], "reward": [["0x1", "0x1", "0x1"]]})),
        _ => None,
    });
    let all = HOSTS.iter().map(|host| Endpoint::parse(&format!("https://{host}")).unwrap()).collect();
    Nodes::new(chain, NodeConfig::new().with("base", Endpoints::new(all).unwrap()), registry())
}

/// If no contract states a fee, there is none. If no endpoint answers, the secret is not sent. Once it is out,
/// nothing is delayed.
#[tokio::test(start_paused = true)]
async fn what_no_endpoint_tells_delays_no_redemption_whose_secret_is_out() {
    let [redemption, _] = &recoveries("base");
    let (account, policy) = (ACCOUNT.to_string(), Policy::default());
    let reverted = json!({"error": {"code": 3, "message": "execution reverted"}});
    for (answer, is_known) in [(json!("0x"), true), (reverted, true), (failure(-32_005), false), (json!("0x00"), false)] {
        let nodes = all_say(&answer);
        let first = prepared(&nodes, "base", redemption).await;
        assert_eq!(first.is_ok(), is_known, "{answer}: {first:?}");
        assert!(!matches!(first, Err(NodeError::Refused(_))), "{answer}");
        let urgent = nodes.prepare_urgent(redemption, "base", &account, Speed::Fast, &policy).await;
        assert!(urgent.is_ok(), "{answer}: {urgent:?}");
    }
}

/// Where data is paid for as gas, a redemption uses that gas beside its own.
#[tokio::test(start_paused = true)]
async fn the_gas_for_data_counts_against_the_payout() {
    let endpoints = || {
        let chain = Chain::funded(&terms().destination).with(|evm| evm.chain_id = 42_161).lying(|_, method, params| match method {
            "eth_call" if params[0]["to"].as_str()?.to_ascii_lowercase().ends_with("00c8") => {
                Some(json!(format!("0x{:064x}{:064x}{:064x}", DATA_GAS, 7, 9)))
            }
            "eth_call" => Some(json!("0x")),
            "eth_getBalance" => Some(word(U256::MAX >> 1)),
            "eth_getCode" => Some(json!("0x")),
            "eth_feeHistory" => Some(json!({"baseFeePerGas": ["0x3b9aca00", "0x3b9aca00"], "reward": [["0x1", "0x1", "0x1"]]})),
            _ => None,
        });
        let all = HOSTS.iter().map(|host| Endpoint::parse(&format!("https://{host}")).unwrap()).collect();
        Nodes::new(chain, NodeConfig::new().with("arbitrum", Endpoints::new(all).unwrap()), registry())
    };
    let calls = endpoints().evm("arbitrum").unwrap().calls(ACCOUNT, Speed::Normal, &Policy::default()).await.unwrap();
    let cost = U256::from(GAS_LIMIT / 3 + DATA_GAS) * U256::from(fees::cap(calls.fees));
    for (payout, expected) in [(cost, vec![(Precondition::Payout, "fee_above_payout")]), (cost + U256::from(1), vec![])] {
        let mut record = paying("arbitrum", true);
        record.destination_swap.amount = payout;
        let found = unmet(&endpoints(), &record).await;
        let found: Vec<_> = found.into_iter().filter(|(item, _)| *item != Precondition::LowerHeight).collect();
        assert_eq!(found, expected);
    }
}
