//! Tests the preconditions for paying an order, and for sending its secret.

use countersign::starknet::{Felt, address::from_account, read};
use countersign::{
    Policy, U256,
    evidence::{Precondition, Stage},
};
use countersign_node::{Contracts, Ends, Speed};
use countersign_testkit::registry;
use serde_json::{Value, json};

use super::wallet::{chain, recovery, verified_order};
use crate::starknet::fake::{Chain, halves, hex, nodes};

/// The record of an order whose destination is on Starknet.
fn record() -> countersign::OrderRecord {
    let case = countersign_testkit::fixtures_of(countersign::Family::Evm)
        .unwrap()
        .into_iter()
        .find(|case| case.id == "evm-record-starknet")
        .unwrap();
    let value = countersign::json::parse(case.input.as_bytes()).unwrap();
    let proposal = countersign_json::line::Case::from_value(&value).unwrap().proposal().unwrap();
    countersign::verify_record(proposal, registry(), &Policy::default()).unwrap().record
}

/// What `chain` does not hold at a stage; these hosts answer as `lie` says. `redeemer` pays for the redemption.
async fn unmet(
    mut chain: Chain,
    hosts: [&'static str; 2],
    stage: Stage,
    redeemer: Option<&str>,
    lie: impl Fn(&str, &Value) -> Option<Value> + Send + Sync + 'static,
) -> Vec<(Precondition, &'static str)> {
    let record = record();
    let decimals = registry().asset(record.destination_swap.asset.as_str()).unwrap().record.decimals;
    chain.lie = Box::new(move |host, method, params| {
        let lied = if hosts.contains(&host) { lie(method, params) } else { None };
        let is_decimals = method == "starknet_call" && params["request"]["entry_point_selector"] == hex(read::DECIMALS);
        lied.or_else(|| is_decimals.then(|| json!([format!("{decimals:#x}")])))
    });
    let ends = Ends::of_record(&record, registry()).redeemed_by(redeemer);
    let found = nodes(chain, 3).preconditions(&ends, stage, Speed::Normal, &Policy::default()).await;
    found.unmet.iter().map(|unmet| (unmet.precondition, unmet.error.code().name())).collect()
}

const TWO: [&str; 2] = ["a.example", "c.example"];
const ONE: [&str; 2] = ["b.example", "b.example"];

/// What a Starknet token can show about a receiver: that it is paused, or has frozen it. A call has no sender, so no transfer is tried.
#[tokio::test(start_paused = true)]
async fn a_token_that_says_it_is_paused_or_has_frozen_the_receiver_is_not_paid_for() {
    let not_payable = Some((Precondition::Receiver, "receiver_not_payable"));
    for (selector, answer, expected) in [
        (None, json!(["0x1"]), None),
        (Some(read::IS_PAUSED), json!(["0x1"]), not_payable),
        (Some(read::PAUSED), json!(["0x1"]), not_payable),
        (Some(read::IS_BLACKLISTED), json!(["0x1"]), not_payable),
        (Some(read::IS_FROZEN), json!(["0x1"]), not_payable),
        (Some(read::IS_FROZEN), json!(["0x0"]), None),
        (Some(read::DECIMALS), json!(["0x1"]), Some((Precondition::Decimals, "decimals_differ"))),
    ] {
        for (hosts, is_enough) in [(TWO, true), (ONE, false)] {
            for stage in [Stage::BeforePaying, Stage::BeforeSecret] {
                let answer = answer.clone();
                let lie = move |method: &str, params: &Value| {
                    let is_asked = selector.is_some_and(|selector| params["request"]["entry_point_selector"] == hex(selector));
                    (method == "starknet_call" && is_asked).then(|| answer.clone())
                };
                let found = unmet(chain(), hosts, stage, None, lie).await;
                let expected = expected.filter(|(item, _)| is_enough && item.is_asked(stage));
                assert_eq!(found, expected.into_iter().collect::<Vec<_>>(), "{selector:?} {hosts:?} {stage:?}");
            }
        }
    }
}

/// The class that a reading has seen is forgotten at a restart. The description that was stored before the payment is not.
#[tokio::test(start_paused = true)]
async fn a_class_that_is_replaced_after_the_payment_holds_the_secret_back_also_after_a_restart() {
    let record = record();
    let asset = registry().asset(record.destination_swap.asset.as_str()).unwrap();
    let mut contracts = Contracts::default();
    contracts.insert(asset, nodes(chain(), 3).describe(asset).await.unwrap());
    let of_class = |class: u64| Chain { class, ..chain() };
    for stage in [Stage::BeforeSecret, Stage::BeforeHandingOut] {
        for (class, expected) in [(chain().class, vec![]), (chain().class + 1, vec![(Precondition::Contract, "cannot_be_judged")])] {
            let ends = Ends::of_record(&record, registry()).described(&contracts);
            let found = nodes(of_class(class), 3).preconditions(&ends, stage, Speed::Normal, &Policy::default()).await;
            let unmet: Vec<_> = found.unmet.iter().map(|unmet| (unmet.precondition, unmet.error.code().name())).collect();
            assert_eq!(unmet, expected, "{stage:?}");
        }
    }
}

/// An HTLC that is frozen pays nobody: not the receiver of the destination, at any stage, and no refund of the source.
#[tokio::test(start_paused = true)]
async fn a_token_that_has_frozen_the_htlc_is_not_paid_for_and_holds_the_secret_back() {
    let order = verified_order();
    let pinned = registry().assets().into_iter().filter(|asset| asset.chain_name() == "starknet");
    let htlcs: Vec<_> = pinned.filter_map(|asset| from_account(asset.htlc.as_ref()?)).map(|htlc| json!([hex(htlc)])).collect();
    for selector in [read::IS_BLACKLISTED, read::IS_FROZEN] {
        for (hosts, is_enough) in [(TWO, true), (ONE, false)] {
            let htlcs = htlcs.clone();
            let frozen = move |method: &str, params: &Value| {
                let request = &params["request"];
                let is_asked = request["entry_point_selector"] == hex(selector) && htlcs.contains(&request["calldata"]);
                (method == "starknet_call" && is_asked).then(|| json!(["0x1"]))
            };
            let expected = if is_enough { vec![(Precondition::Receiver, "receiver_not_payable")] } else { vec![] };
            for stage in [Stage::BeforePaying, Stage::BeforeSecret, Stage::BeforeHandingOut] {
                assert_eq!(unmet(chain(), hosts, stage, None, frozen.clone()).await, expected, "{hosts:?} {stage:?}");
            }
            let lying = chain().lying(move |host, method, params| if hosts.contains(&host) { frozen(method, params) } else { None });
            let prepared = nodes(lying, 3).prepare(&order, "starknet", "", Speed::Normal, &Policy::default()).await;
            assert_eq!(prepared.err().map(|error| error.code().name()), is_enough.then_some("receiver_not_payable"), "{hosts:?}");
        }
    }
}

/// Two endpoints that limit requests say nothing about the receiver. With the answer of the third alone nothing is paid, and no secret
/// leaves.
#[tokio::test(start_paused = true)]
async fn a_rate_limit_is_no_yes() {
    for error in [json!({"code": -32_005, "message": "rate limited"}), json!({"code": -32_603, "message": "internal"})] {
        for stage in [Stage::BeforePaying, Stage::BeforeSecret] {
            for (hosts, is_enough) in [(TWO, true), (ONE, false)] {
                let answer = json!({ "error": error });
                let lie = move |method: &str, params: &Value| {
                    let is_asked = params["request"]["entry_point_selector"] == hex(read::IS_FROZEN);
                    (method == "starknet_call" && is_asked).then(|| answer.clone())
                };
                let expected = if is_enough { vec![(Precondition::Receiver, "node_disagree")] } else { vec![] };
                assert_eq!(unmet(chain(), hosts, stage, None, lie).await, expected, "{stage:?} {hosts:?}");
            }
        }
    }
}

/// The bounds of a redemption at the normal speed: 5,000 units at 1,500 FRI, 40,000,000 at 4,500 and 5,000 at 11.
#[tokio::test(start_paused = true)]
async fn the_account_that_redeems_has_the_coins_for_its_bounds() {
    let (account, fee) = (hex(Felt::from(0xacc)), U256::from(5_000_u64 * 1_500 + 40_000_000 * 4_500 + 5_000 * 11));
    for (balance, expected) in [(fee - U256::ONE, vec![(Precondition::Redeemer, "insufficient_funds")]), (fee, vec![])] {
        let found = unmet(Chain { balance, ..chain() }, ONE, Stage::BeforePaying, Some(&account), |_, _| None).await;
        assert_eq!(found, expected, "{balance}");
        // The redeemer needs exactly this much.
        let nodes = nodes(Chain { balance, ..chain() }, 3);
        let redemption = recovery(Some(&[0x5a; 32]));
        let prepared = nodes.prepare_recovery(&redemption, "starknet", &account, Speed::Normal, &Policy::default()).await;
        assert_eq!(prepared.is_ok(), expected.is_empty());
    }
    // One liar neither opens nor closes it.
    let balance_of = |balance: U256| {
        move |method: &str, params: &Value| {
            let is_asked = params["request"]["entry_point_selector"] == hex(read::BALANCE_OF)
                && params["request"]["calldata"] == json!([hex(Felt::from(0xacc))]);
            (method == "starknet_call" && is_asked).then(|| halves(balance))
        }
    };
    let poor = Chain { balance: fee - U256::ONE, ..chain() };
    assert_eq!(
        unmet(poor, ONE, Stage::BeforePaying, Some(&account), balance_of(U256::MAX)).await,
        [(Precondition::Redeemer, "insufficient_funds")]
    );
    assert_eq!(unmet(chain(), ONE, Stage::BeforePaying, Some(&account), balance_of(U256::ZERO)).await, []);
}
