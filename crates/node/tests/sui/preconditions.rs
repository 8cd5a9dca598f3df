//! Tests the preconditions for paying an order whose owner receives coins on Sui.

use countersign::recover::Recovery;
use countersign::{
    OrderRecord, Policy, Registry, Role, U256,
    evidence::{Precondition, Stage},
};
use countersign_node::{Ends, Nodes, Speed};
use countersign_testkit::{registry, registry_json};
use serde_json::json;

use crate::sui::fake::{Executed, Ledger, Network, SUI, digest_of, record};
use crate::sui::prices::connected;
use crate::sui::wallet::{order, recovery, rich};

const COIN: &str = "0x00000000000000000000000000000000000000000000000000000000000000c5::usd::USD";

/// The registry with a coin other than SUI, and the record of an order that pays in it.
fn with_coin() -> (Registry, OrderRecord) {
    let mut text = registry_json();
    let assets = text["assets"].as_array_mut().unwrap();
    let mut asset = assets.iter().find(|asset| asset["id"] == "sui_testnet:sui").unwrap().clone();
    (asset["id"], asset["decimals"], asset["token"]) = (json!("sui_testnet:usd"), json!(6), json!({"address": COIN}));
    assets.push(asset);
    let registry = Registry::from_json(text.to_string().as_bytes()).unwrap();
    let mut record = record();
    record.destination_swap.asset = "sui_testnet:usd".parse().unwrap();
    (registry, record)
}

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
    let (registry, record) = with_coin();
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

/// How a transfer of nothing to the receiver ends at a node.
type Transfer = Result<Executed, (u32, &'static str)>;

/// A transfer that fails with this kind of `ExecutionError`.
fn failing(kind: u64, reason: &'static str) -> Transfer {
    Ok(Executed { success: false, reason: Some(reason), kind: Some(kind), ..Executed::new(digest_of(8)) })
}

/// A node that has the coin. A redemption with a wrong secret fails there for this reason alone, and nobody has coins for gas.
fn node(transfer: Transfer) -> Ledger {
    let (abort, reason) = (Some(("AtomicSwap", 8)), Some("a wrong secret"));
    let simulated = Ok(Executed { success: false, abort, reason, ..Executed::new(digest_of(7)) });
    let poor = Ledger { coins: vec![], balances: [].into(), ..rich() };
    Ledger { decimals: [(COIN.to_owned(), 6)].into(), simulated, transfer, ..poor }
}

/// What a record's order does not hold at a stage, on nodes that simulate a transfer like this. The relayer may redeem.
async fn unmet(record: &OrderRecord, registry: &Registry, transfers: [Transfer; 3], stage: Stage) -> Vec<(Precondition, &'static str)> {
    let nodes = Network::new(&transfers.map(node)).connect_with("sui_testnet", registry);
    let account = order().deposit().sender.to_string();
    let ends = Ends::of_record(record, registry).redeemed_by(Some(&account)).with_relayer(true);
    let found = nodes.preconditions(&ends, stage, Speed::Normal, &Policy::default()).await;
    let simulations = nodes.transport().methods("a.example").iter().filter(|method| *method == "SimulateTransaction").count();
    assert_eq!(simulations, 1, "the transfer, and no redemption");
    found.unmet.iter().map(|unmet| (unmet.precondition, unmet.error.code().name())).collect()
}

const STAGES: [Stage; 3] = [Stage::BeforePaying, Stage::BeforeSecret, Stage::BeforeHandingOut];

/// The network checks a coin's deny list after an execution that succeeded, so a rehearsal with a wrong secret does not show it.
#[tokio::test(start_paused = true)]
async fn a_coin_that_denies_the_receiver_or_is_paused_holds_the_secret_back() {
    let (registry, record) = with_coin();
    let (pays, not_payable) = (|| Ok(Executed::new(digest_of(8))), [(Precondition::Receiver, "receiver_not_payable")]);
    for denied in [failing(35, "AddressDeniedForCoin"), failing(36, "CoinTypeGlobalPause")] {
        for stage in STAGES {
            let ask = async |transfers| unmet(&record, &registry, transfers, stage).await;
            assert_eq!(ask([pays(), pays(), pays()]).await, [], "{stage:?}");
            assert_eq!(ask([denied.clone(), denied.clone(), pays()]).await, not_payable, "{stage:?}");
            for place in 0..3 {
                let (mut one, mut two) = ([pays(), pays(), pays()], [denied.clone(), denied.clone(), denied.clone()]);
                (one[place], two[place]) = (denied.clone(), pays());
                assert_eq!((ask(one).await, ask(two).await), (vec![], not_payable.to_vec()), "{stage:?}: {place}");
            }
        }
        // With coins for gas the redemption is rehearsed, and would be signed.
        let rich = Ledger { coins: rich().coins, balances: rich().balances, ..node(denied.clone()) };
        let (nodes, redemption) = (Network::new(&[rich]).connect(), Recovery::Sui(recovery(Role::Redeem).0));
        let sender = order().deposit().sender.to_string();
        let prepared = nodes.prepare_recovery(&redemption, "sui_testnet", &sender, Speed::Normal, &Policy::default()).await;
        assert!(prepared.is_ok(), "{prepared:?}");
        // An account is refused before there is an order, too. SUI has no deny list.
        let nodes = Network::new(&[node(denied)]).connect_with("sui_testnet", &registry);
        let check = |asset: &str| nodes.check_receiver(registry.asset(asset).unwrap(), &record.destination_swap.redeemer);
        let refused = check("sui_testnet:usd").await.unwrap_err();
        assert_eq!(refused.code().name(), "receiver_not_payable");
        assert_eq!(check("sui_testnet:sui").await, Ok(()));
    }
}

/// The owner of the source gets a refund in the coin.
#[tokio::test(start_paused = true)]
async fn an_owner_whom_a_coin_denies_is_not_refunded() {
    let (registry, mut record) = with_coin();
    std::mem::swap(&mut record.source_swap, &mut record.destination_swap);
    let denied = || failing(35, "AddressDeniedForCoin");
    let found = unmet(&record, &registry, [denied(), denied(), denied()], Stage::BeforePaying).await;
    assert_eq!(found, [(Precondition::Receiver, "receiver_not_payable")]);
}

/// Only a simulation that ends is an answer. What fails for a reason that is not the receiver's is no yes either.
#[tokio::test(start_paused = true)]
async fn a_transfer_that_nobody_simulates_is_no_yes() {
    let (registry, record) = with_coin();
    let pays = || Ok(Executed::new(digest_of(8)));
    for stage in STAGES {
        for code in [3, 9, 12, 14] {
            let (silent, ask) = (|| Err((code, "no")), async |transfers| unmet(&record, &registry, transfers, stage).await);
            assert_eq!(ask([silent(), silent(), pays()]).await, [(Precondition::Receiver, "node_disagree")], "{stage:?}: {code}");
            assert_eq!(ask([silent(), pays(), pays()]).await, [], "{stage:?}: {code}");
        }
        let other = || failing(3, "InvariantViolation");
        let found = unmet(&record, &registry, [other(), other(), pays()], stage).await;
        assert_eq!(found, [(Precondition::Receiver, "simulation_reverted")], "{stage:?}");
    }
}

/// What the deny list gets in this epoch stops the receiver at once from using the coin, and from the next epoch on from getting it.
#[tokio::test(start_paused = true)]
async fn a_receiver_whom_a_coin_denies_from_the_next_epoch_on_is_not_paid() {
    let (registry, record) = with_coin();
    let ask = async |shown: [[bool; 2]; 3], stage| {
        let ledgers = shown.map(|next_epoch| Ledger { next_epoch, ..node(Ok(Executed::new(digest_of(8)))) });
        let nodes = Network::new(&ledgers).connect_with("sui_testnet", &registry);
        let found = nodes.preconditions(&Ends::of_record(&record, &registry), stage, Speed::Normal, &Policy::default()).await;
        found.unmet.iter().map(|unmet| (unmet.precondition, unmet.error.code().name())).collect::<Vec<_>>()
    };
    let open = [false; 2];
    for denied in [[true, false], [false, true]] {
        for stage in STAGES {
            assert_eq!(ask([denied, denied, open], stage).await, [(Precondition::Receiver, "receiver_not_payable")], "{stage:?}");
            assert_eq!(ask([open, open, denied], stage).await, [], "{stage:?}");
        }
    }
}
