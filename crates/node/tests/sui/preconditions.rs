//! Tests the preconditions for paying an order whose owner receives coins on Sui.

use countersign::{
    Policy, Registry, U256,
    evidence::{Precondition, Stage},
};
use countersign_node::{Ends, Nodes, Speed};
use countersign_testkit::{registry, registry_json};
use serde_json::json;

use crate::sui::fake::{Ledger, Network, SUI, record};
use crate::sui::prices::connected;
use crate::sui::wallet::{order, rich};

/// The gas of a redemption is a fixed budget: 5,000 units at the normal price of 602 MIST, and 0.025 SUI for storage.
#[tokio::test(start_paused = true)]
async fn the_account_that_redeems_has_the_coins_for_its_budget() {
    const BUDGET: u64 = 5_000 * 602 + 25_000_000;
    let has = |coins: u64| Ledger { balances: [(SUI.to_owned(), coins)].into(), ..rich() };
    let (account, policy) = (order().deposit().sender.to_string(), Policy::default());
    let mut record = record();
    record.destination_swap.asset = "sui_testnet:sui".parse().unwrap();
    let ends = Ends::of_record(&record, registry()).redeemed_by(Some(&account));
    let ask = async |nodes: Nodes<Network>, policy: &Policy, ends: &Ends<'_>, stage| {
        let found = nodes.preconditions(ends, stage, Speed::Normal, policy).await;
        found.unmet.iter().map(|unmet| (unmet.precondition, unmet.error.code().name())).collect::<Vec<_>>()
    };
    let poor = [(Precondition::Redeemer, "insufficient_funds")];
    let stage = Stage::BeforePaying;
    assert_eq!(ask(connected(&has(BUDGET - 1), None), &policy, &ends, stage).await, poor);
    assert_eq!(ask(connected(&has(BUDGET), None), &policy, &ends, stage).await, []);
    for place in 0..3 {
        assert_eq!(ask(connected(&has(0), Some((place, |ledger| ledger.balances = rich().balances))), &policy, &ends, stage).await, poor);
        assert_eq!(ask(connected(&has(BUDGET), Some((place, |ledger| ledger.balances.clear()))), &policy, &ends, stage).await, []);
    }
    // The service's relayer pays for its own gas.
    assert_eq!(ask(connected(&has(0), None), &policy, &ends.with_relayer(true), stage).await, []);
    assert_eq!(ask(connected(&has(0), None), &policy, &ends, Stage::BeforeSecret).await, [], "the redemption's own preflight asks it");
    // What the policy would refuse at the end is refused before the payment.
    let limit = |budget: u64| Policy::from_json(format!(r#"{{"sui_gas_budget": {budget}}}"#).as_bytes()).unwrap();
    let above = [Precondition::Payout, Precondition::Redeemer].map(|item| (item, "gas_limit_too_high"));
    assert_eq!(ask(connected(&has(BUDGET), None), &limit(BUDGET - 1), &ends, stage).await, above);
    assert_eq!(ask(connected(&has(BUDGET), None), &limit(BUDGET), &ends, stage).await, []);
    // A payout in SUI is worth more than it costs.
    for (payout, expected) in [(BUDGET, vec![(Precondition::Payout, "fee_above_payout")]), (BUDGET + 1, vec![])] {
        assert_eq!(ask(connected(&has(BUDGET), None), &policy, &ends.paying(U256::from(payout)), stage).await, expected);
    }
}

/// A coin's decimals are those of its metadata, by a quorum: otherwise every amount that the owner reads is wrong.
#[tokio::test(start_paused = true)]
async fn the_decimals_of_a_coin_are_those_of_the_registry() {
    const COIN: &str = "0x00000000000000000000000000000000000000000000000000000000000000c5::usd::USD";
    let mut text = registry_json();
    let assets = text["assets"].as_array_mut().unwrap();
    let mut asset = assets.iter().find(|asset| asset["id"] == "sui_testnet:sui").unwrap().clone();
    (asset["id"], asset["decimals"], asset["token"]) = (json!("sui_testnet:usd"), json!(6), json!({"address": COIN}));
    assets.push(asset);
    let registry = Registry::from_json(text.to_string().as_bytes()).unwrap();
    let mut record = record();
    record.destination_swap.asset = "sui_testnet:usd".parse().unwrap();
    let ask = async |shown: [Option<u64>; 3]| {
        let of =
            |decimals: Option<u64>| Ledger { decimals: decimals.map(|number| (COIN.to_owned(), number)).into_iter().collect(), ..rich() };
        let nodes = Network::new(&shown.map(of)).connect_with("sui_testnet", &registry);
        let found = nodes.preconditions(&Ends::of_record(&record, &registry), Stage::BeforePaying, Speed::Normal, &Policy::default()).await;
        found.unmet.iter().map(|unmet| (unmet.precondition, unmet.error.code().name())).collect::<Vec<_>>()
    };
    let differ = [(Precondition::Decimals, "decimals_differ")];
    for (shown, expected) in [
        ([Some(6), Some(6), Some(9)], &[][..]),
        ([None, Some(6), Some(6)], &[]),
        ([Some(9), Some(9), Some(6)], &differ),
        ([Some(0), Some(0), Some(0)], &differ),
        ([None, None, None], &differ),
        ([Some(6 + (1 << 32)); 3], &differ),
    ] {
        assert_eq!(ask(shown).await, expected, "{shown:?}");
    }
}
