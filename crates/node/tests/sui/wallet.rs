//! What a wallet signs and sends: gas within the policy, a simulation that refuses what was not verified, and transactions that are
//! sent once.

use countersign::recover::Recovery;
use countersign::sui::balance;
use countersign::sui::recover::{self, Leg};
use countersign::sui::sui_sdk_types::{Address, TransactionExpiration};
use countersign::sui::{Coin, Sui, UnsignedOrder};
use countersign::{Code, Family, Policy, Role, Unsigned, Verified};
use countersign_node::sui::Preflight;
use countersign_node::{NodeError, Nodes, Speed};
use countersign_testkit::recover::read_record;
use countersign_testkit::{registry, verified};

use crate::sui::fake::{Executed, Ledger, Network, Object, SUI, case, digest_of, shared_registry, word};
use countersign_testkit::chain::sui::proto::{Message, members};
use countersign_testkit::chain::sui::{EPOCH, TESTNET};

/// The amount of the case's order.
const AMOUNT: i64 = 3_000_000_000;
/// The gas cost of a simulation, after rebates.
const NET: i64 = 4_000_000;
/// The budget of the order: six million spent, a fifth more, and 1,000 units at 602 MIST.
const BUDGET: u64 = 6_000_000 + 1_200_000 + 602_000;
const REGISTRY_VERSION: u64 = 117_440_512;

pub(crate) fn order() -> countersign::sui::VerifiedOrder {
    verified::<Sui>(&case(Family::Sui, "sui-native"))
}

fn coin(what: u8, balance: u64) -> Object {
    let (id, digest, kind) = (Some(Address::new([what; 32])), Some(digest_of(what)), format!("0x2::coin::Coin<{SUI}>"));
    Object { id, version: Some(u64::from(what)), digest, kind, balance: Some(balance), ..Object::default() }
}

/// A node where the case's owner has some coins, and a simulation of the order transfers what it should.
pub(crate) fn rich() -> Ledger {
    let owner = order().deposit().sender.to_string();
    let change = (owner, SUI.to_owned(), (-(AMOUNT + NET)).to_string());
    let simulated = Ok(Executed { changes: vec![change], checkpoint: None, ..Executed::new(digest_of(7)) });
    let coins = vec![vec![coin(0x21, 2_500_000_000), coin(0x22, 4)], vec![coin(0x23, 1_000_000_000)]];
    Ledger { coins, simulated, balances: [(SUI.to_owned(), 3_500_000_004)].into(), ..Ledger::funded() }
}

pub(crate) fn refused(error: &NodeError) -> (Code, &str) {
    match error {
        NodeError::Refused(refusal) => (refusal.code(), refusal.location()),
        other => panic!("{other:?}"),
    }
}

async fn prepare(nodes: &Nodes<Network>, speed: Speed, policy: &Policy) -> Result<UnsignedOrder, NodeError> {
    let order = order();
    let owner = order.deposit().sender.to_string();
    match nodes.prepare(&Verified::Sui(order), "sui_testnet", &owner, speed, policy).await? {
        Unsigned::Sui(unsigned) => Ok(unsigned),
        other => panic!("{other:?}"),
    }
}

pub(crate) async fn prepared(ledger: Ledger) -> Result<UnsignedOrder, NodeError> {
    prepare(&Network::new(&[ledger]).connect(), Speed::Normal, &Policy::default()).await
}

/// The transactions that were simulated.
fn simulated(nodes: &Nodes<Network>) -> Vec<Vec<u8>> {
    let nested = |message: &[u8], path: &[u64]| {
        path.iter().fold(message.to_vec(), |message, field| members(&message).into_iter().find(|(tag, _)| tag == field).unwrap().1)
    };
    let seen = nodes.transport().seen.lock().unwrap();
    let simulations = seen.iter().filter(|(_, url, _)| url.ends_with("/SimulateTransaction"));
    simulations.map(|(_, _, body)| nested(&body[5..], &[1, 1, 2])).collect()
}

// ---- gas

#[tokio::test(start_paused = true)]
async fn an_order_is_paid_with_its_owners_coins_within_what_a_simulation_spends() {
    let nodes = Network::new(&[rich()]).connect();
    let unsigned = prepare(&nodes, Speed::Normal, &Policy::default()).await.unwrap();
    let payload = unsigned.payloads();
    assert_eq!((payload.gas_payment.price, payload.gas_payment.budget), (602, BUDGET));
    assert_eq!(payload.gas_payment.owner, order().deposit().sender);
    let coins: Vec<_> = payload.gas_payment.objects.iter().map(|coin| (coin.version(), *coin.object_id())).collect();
    assert_eq!(coins, [0x21, 0x23, 0x22].map(|what: u8| (u64::from(what), Address::new([what; 32]))), "the largest, and dust");
    // The transaction that is signed is the one that was simulated.
    let simulated = simulated(&nodes);
    assert_eq!((simulated.len(), simulated.last()), (2, Some(&payload.bytes)));
    let preflight = nodes.sui("sui_testnet").unwrap().preflight(&unsigned).await.unwrap();
    let Preflight { balance, cost, gas_used, .. } = preflight;
    assert_eq!((balance, cost, gas_used), (3_500_000_004, 3_000_000_000 + BUDGET, Some(6_000_000)));
}

#[tokio::test(start_paused = true)]
async fn the_price_follows_the_epoch_and_the_speed() {
    for (speed, price) in [(Speed::Slow, 547), (Speed::Normal, 602), (Speed::Fast, 1_094)] {
        let nodes = Network::new(&[rich()]).connect();
        assert_eq!(nodes.sui("sui_testnet").unwrap().gas_price(speed).await.unwrap(), price);
        assert_eq!(prepare(&nodes, speed, &Policy::default()).await.unwrap().payloads().gas_payment.price, price);
    }
}

#[tokio::test(start_paused = true)]
async fn a_budget_above_the_policy_is_refused_and_never_lowered() {
    let policy = |limit: u64| Policy::from_json(format!(r#"{{"sui_gas_budget": {limit}}}"#).as_bytes()).unwrap();
    let nodes = Network::new(&[rich()]).connect();
    assert!(prepare(&nodes, Speed::Normal, &policy(BUDGET)).await.is_ok());
    let error = prepare(&nodes, Speed::Normal, &policy(BUDGET - 1)).await.unwrap_err();
    assert_eq!(refused(&error), (Code::GasLimitTooHigh, "/gas_budget"));
    // A node returns an excessive price: nothing is simulated.
    let nodes = Network::new(&[Ledger { gas_price: u64::MAX, ..rich() }]).connect();
    let error = prepare(&nodes, Speed::Normal, &Policy::default()).await.unwrap_err();
    assert_eq!(refused(&error), (Code::GasLimitTooHigh, "/gas_budget"));
    assert!(simulated(&nodes).is_empty());
    // A node reports that the simulation was too expensive.
    let mut ledger = rich();
    ledger.simulated.as_mut().unwrap().gas = [u64::MAX, u64::MAX, u64::MAX];
    let owner = order().deposit().sender.to_string();
    ledger.simulated.as_mut().unwrap().changes = vec![(owner, SUI.to_owned(), (-AMOUNT).to_string())];
    assert_eq!(refused(&prepared(ledger).await.unwrap_err()), (Code::GasLimitTooHigh, "/gas_budget"));
}

#[tokio::test(start_paused = true)]
async fn what_is_missing_is_said_before_anything_is_signed() {
    let ledger = |balances: &[u64]| {
        let coins = balances.iter().zip(0x21..).map(|(balance, what)| coin(what, *balance)).collect();
        Ledger { coins: vec![coins], balances: [(SUI.to_owned(), balances.iter().sum())].into(), ..rich() }
    };
    for balances in [&[][..], &[2_999_999_999], &[3_000_000_000], &[3_001_203_999]] {
        let nodes = Network::new(&[ledger(balances)]).connect();
        let error = prepare(&nodes, Speed::Normal, &Policy::default()).await.unwrap_err();
        assert_eq!(refused(&error), (Code::InsufficientFunds, "/gas_payment"), "{balances:?}");
        assert!(simulated(&nodes).is_empty());
    }
    // Enough for the simulation, but not for the budget.
    let error = prepared(ledger(&[3_000_000_000 + BUDGET - 1])).await.unwrap_err();
    assert_eq!(refused(&error), (Code::InsufficientFunds, "/gas_payment"));
    assert!(prepared(ledger(&[3_000_000_000 + BUDGET])).await.is_ok());
    // The node lists the coins, but reports a smaller balance.
    let spent = Ledger { balances: [(SUI.to_owned(), 3_000_000_000)].into(), ..rich() };
    assert_eq!(refused(&prepared(spent).await.unwrap_err()), (Code::InsufficientFunds, "/balance"));
}

// ---- address balances

/// A node where the owner has this much in coins, and this much in the address balance.
fn holding(coins: &[u64], funds: u64) -> Ledger {
    let listed = coins.iter().zip(0x21..).map(|(balance, what)| coin(what, *balance)).collect();
    let sum = coins.iter().sum();
    Ledger { coins: vec![listed], balances: [(SUI.to_owned(), sum)].into(), in_balance: [(SUI.to_owned(), funds)].into(), ..rich() }
}

fn reservations(unsigned: &UnsignedOrder) -> Vec<Option<(u64, u64)>> {
    unsigned.payloads().gas_payment.objects.iter().map(balance::reserved).collect()
}

#[tokio::test(start_paused = true)]
async fn the_address_balance_pays_where_coins_do_not() {
    let cost = 3_000_000_000 + BUDGET;
    let unsigned = prepared(holding(&[], cost)).await.unwrap();
    assert_eq!(reservations(&unsigned), [Some((cost, EPOCH))], "the amount is split from a reservation");
    let expiration = &unsigned.payloads().expiration;
    let TransactionExpiration::ValidDuring { min_epoch, max_epoch, chain, .. } = expiration else { panic!("{expiration:?}") };
    assert_eq!((*min_epoch, *max_epoch, chain.to_base58().as_str()), (Some(EPOCH), Some(EPOCH + 1), TESTNET));
    // Coins are taken where they are enough.
    let nodes = Network::new(&[holding(&[cost], cost)]).connect();
    let unsigned = prepare(&nodes, Speed::Normal, &Policy::default()).await.unwrap();
    assert_eq!((reservations(&unsigned), &unsigned.payloads().expiration), (vec![None], &TransactionExpiration::None));
    // Neither is enough: a reservation of what is missing, and coins.
    let unsigned = prepared(holding(&[1_000_000_000], cost - 1_000_000_000)).await.unwrap();
    assert_eq!(reservations(&unsigned), [Some((cost - 1_000_000_000, EPOCH)), None]);
}

/// Coins that cover only the smallest budget do not hide the address balance.
#[tokio::test(start_paused = true)]
async fn the_address_balance_pays_the_gas_that_a_coin_does_not() {
    let (coin, cost) = (3_002_000_000, 3_000_000_000 + BUDGET);
    let unsigned = prepared(holding(&[coin], 10_000_000_000)).await.unwrap();
    assert_eq!(reservations(&unsigned), [Some((cost, EPOCH))]);
    // Less than the amount and the policy's budget in both places together.
    let unsigned = prepared(holding(&[coin], 10_000_000)).await.unwrap();
    assert_eq!(reservations(&unsigned), [Some((cost - coin, EPOCH)), None]);
    let error = prepared(holding(&[coin], cost - coin - 1)).await.unwrap_err();
    assert_eq!(refused(&error).0, Code::InsufficientFunds);
    // Endpoints that do not agree on the address balance do not stop a coin that is enough.
    let told = |funds| {
        let mut ledger = holding(&[cost], funds);
        ledger.objects.extend(ledger.coins.clone().into_iter().flatten());
        ledger
    };
    let unsigned = prepare(&Network::new(&[told(1), told(2)]).connect(), Speed::Normal, &Policy::default()).await.unwrap();
    assert_eq!(reservations(&unsigned), [None]);
}

#[tokio::test(start_paused = true)]
async fn too_little_in_both_places_is_refused_with_both_balances() {
    for (coins, funds) in [(vec![], 2_999_999_999), (vec![1_000_000_000], 1_999_999_999), (vec![5], 1)] {
        let error = prepared(holding(&coins, funds)).await.unwrap_err();
        assert_eq!(refused(&error), (Code::InsufficientFunds, "/gas_payment"));
        let text = format!("coin objects hold {}, and the address balance {funds}", coins.iter().sum::<u64>());
        assert!(error.to_string().contains(&text), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn one_endpoint_decides_neither_the_balance_nor_the_network() {
    let honest = || holding(&[], 4_000_000_000);
    for liar in [
        holding(&[], 9),
        holding(&[], u64::MAX / 2),
        Ledger { chain_id: "4btiuiMPvEENsttpZC7CZ53DruC3MAgfznDbASZ7DR6S".to_owned(), ..honest() },
    ] {
        let nodes = Network::new(&[liar, honest(), honest()]).connect();
        let unsigned = prepare(&nodes, Speed::Normal, &Policy::default()).await.unwrap();
        assert_eq!(reservations(&unsigned), [Some((3_000_000_000 + BUDGET, EPOCH))]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_registry_that_is_shared_since_another_version_is_refused() {
    let with = |object: Option<Object>| {
        let mut ledger = rich();
        ledger.objects.pop();
        ledger.objects.extend(object);
        ledger
    };
    let owned = Object { owner: Some(Message::default().number(1, 1).text(2, "0x7").number(3, REGISTRY_VERSION)), ..shared_registry(0) };
    for object in [Some(shared_registry(REGISTRY_VERSION + 1)), Some(owned), None] {
        let error = prepared(with(object)).await.unwrap_err();
        assert_eq!(refused(&error), (Code::UnknownRegistry, "/registry"));
    }
    assert!(prepared(with(Some(shared_registry(REGISTRY_VERSION)))).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn coins_are_read_from_every_page() {
    let nodes = Network::new(&[rich()]).connect();
    let owner = order().deposit().sender;
    let coins = nodes.sui("sui_testnet").unwrap().coins(owner).await.unwrap();
    let listed: Vec<_> = coins.iter().map(|Coin { reference, balance, .. }| (reference.version(), *balance)).collect();
    assert_eq!(listed, [(0x21, 2_500_000_000), (0x22, 4), (0x23, 1_000_000_000)]);
    // A list that never ends.
    let endless = Ledger { coins: vec![vec![coin(0x21, 1)]; 9], ..rich() };
    let nodes = Network::new(&[endless]).connect();
    assert_eq!(nodes.sui("sui_testnet").unwrap().coins(owner).await.unwrap().len(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_coin_that_is_none_is_malformed() {
    let changes: [fn(&mut Object); 6] = [
        |coin| coin.kind = "0x2::coin::Coin<0x7::sui::SUI>".to_owned(),
        |coin| coin.kind = "0x2::sui::SUI".to_owned(),
        |coin| coin.id = None,
        |coin| coin.version = None,
        |coin| coin.digest = Some("0".to_owned()),
        |coin| coin.balance = None,
    ];
    for (index, change) in changes.into_iter().enumerate() {
        let mut ledger = rich();
        change(&mut ledger.coins[0][1]);
        assert_eq!(prepared(ledger).await.unwrap_err().code().name(), "node_malformed", "{index}");
    }
}

/// A coin of another version, another digest, another balance, or one that nobody else knows.
const FALSE_COINS: [fn(&mut Object); 4] = [
    |coin| coin.version = Some(1),
    |coin| coin.digest = Some(digest_of(0x77)),
    |coin| coin.balance = Some(u64::MAX / 2),
    |coin| coin.id = Some(Address::new([0x77; 32])),
];

/// An honest node, whose coins are objects too.
pub(crate) fn honest() -> Ledger {
    let mut ledger = rich();
    ledger.objects.extend(ledger.coins.clone().into_iter().flatten());
    ledger
}

#[tokio::test(start_paused = true)]
async fn coins_are_used_only_if_enough_endpoints_show_them_at_that_version() {
    let expected = prepare(&Network::new(&[honest()]).connect(), Speed::Normal, &Policy::default()).await.unwrap();
    for change in FALSE_COINS {
        let mut liar = honest();
        let coin = &mut liar.coins[0][0];
        coin.balance = Some(9_000_000_000);
        change(coin);
        liar.objects.push(coin.clone());
        for ledgers in [[liar.clone(), honest(), honest()], [honest(), honest(), liar.clone()]] {
            let unsigned = prepare(&Network::new(&ledgers).connect(), Speed::Normal, &Policy::default()).await.unwrap();
            assert_eq!(unsigned.payloads().bytes, expected.payloads().bytes);
        }
        // Without an honest endpoint to agree with, nothing is prepared.
        let error = prepare(&Network::new(&[liar.clone(), rich()]).connect(), Speed::Normal, &Policy::default()).await.unwrap_err();
        assert!(matches!(error.code().name(), "insufficient_funds" | "node_disagree"), "{error}");
    }
    // One endpoint hides the coins.
    let hides = Ledger { coins: vec![], ..honest() };
    let unsigned = prepare(&Network::new(&[hides, honest(), honest()]).connect(), Speed::Normal, &Policy::default()).await.unwrap();
    assert_eq!(unsigned.payloads().bytes, expected.payloads().bytes);
}

#[tokio::test(start_paused = true)]
async fn a_single_endpoint_neither_sets_the_price_nor_stops_a_preflight() {
    let expected = prepare(&Network::new(&[honest()]).connect(), Speed::Normal, &Policy::default()).await.unwrap();
    let cheap = Ledger { gas_price: 1, ..honest() };
    let dear = Ledger { gas_price: u64::MAX, ..honest() };
    let refuses = Ledger { simulated: Err((3, "no")), ..honest() };
    let poor = Ledger { balances: [(SUI.to_owned(), 1)].into(), ..honest() };
    let mut wasteful = honest();
    wasteful.simulated.as_mut().unwrap().gas = [90_000_000, 0, 86_000_000];
    for liar in [cheap, dear, refuses, poor, wasteful, Ledger { objects: vec![], ..honest() }] {
        let nodes = Network::new(&[liar.clone(), honest(), honest()]).connect();
        let unsigned = prepare(&nodes, Speed::Normal, &Policy::default()).await.unwrap();
        assert_eq!(unsigned.payloads().bytes, expected.payloads().bytes);
        let error = prepare(&Network::new(&[liar, honest()]).connect(), Speed::Normal, &Policy::default()).await.unwrap_err();
        assert_eq!(error.code().name(), "node_disagree");
    }
}

// ---- simulation

#[tokio::test(start_paused = true)]
async fn a_simulation_that_moves_something_else_is_refused() {
    let owner = order().deposit().sender.to_string();
    let change = |owner: &str, coin: &str, amount: i64| (owner.to_owned(), coin.to_owned(), amount.to_string());
    let honest = change(&owner, SUI, -(AMOUNT + NET));
    for changes in [
        vec![],
        vec![change(&owner, SUI, -(AMOUNT + NET + 1))],
        vec![change(&owner, SUI, -(AMOUNT + NET - 1))],
        vec![honest.clone(), change("0x7", SUI, 1)],
        vec![honest.clone(), change(&owner, "0x7::usdc::USDC", -1)],
        vec![honest.clone(), change(&owner, SUI, -1)],
        vec![change(&owner, "0x7::usdc::USDC", -AMOUNT), change(&owner, SUI, -NET)],
    ] {
        let mut ledger = rich();
        ledger.simulated.as_mut().unwrap().changes.clone_from(&changes);
        let error = prepared(ledger).await.unwrap_err();
        assert_eq!(refused(&error), (Code::SimulationDiffers, "/balance_changes"), "{changes:?}");
    }
    // The same change in two parts, and a change of 0.
    let mut ledger = rich();
    let parts = vec![change(&owner, "0x2::sui::SUI", -AMOUNT), change(&owner, SUI, -NET), change("0x7", SUI, 0)];
    ledger.simulated.as_mut().unwrap().changes = parts;
    assert!(prepared(ledger).await.is_ok());
    for malformed in [("owner", SUI, "1"), (owner.as_str(), "coin", "1"), (&owner, SUI, "one"), (&owner, SUI, "")] {
        let mut ledger = rich();
        let (owner, coin, amount) = malformed;
        ledger.simulated.as_mut().unwrap().changes = vec![(owner.to_owned(), coin.to_owned(), amount.to_owned())];
        assert_eq!(prepared(ledger).await.unwrap_err().code().name(), "node_malformed", "{malformed:?}");
    }
    let mut endless = rich();
    endless.simulated.as_mut().unwrap().changes = vec![honest; 65];
    assert_eq!(prepared(endless).await.unwrap_err().code().name(), "node_malformed");
}

#[tokio::test(start_paused = true)]
async fn a_transaction_that_would_fail_is_refused_with_its_reason() {
    let mut ledger = rich();
    let failing = Executed { success: false, reason: Some("MoveAbort 7\u{1b}[0m"), ..ledger.simulated.clone().unwrap() };
    ledger.simulated = Ok(failing);
    let error = prepared(ledger).await.unwrap_err();
    assert_eq!(refused(&error), (Code::SimulationReverted, "/initiate"));
    assert!(error.to_string().contains("MoveAbort 7") && !error.to_string().contains('\u{1b}'), "{error}");
    for (code, expected) in [(3, "simulation_reverted"), (9, "simulation_reverted"), (14, "node_error"), (12, "node_error")] {
        let error = prepared(Ledger { simulated: Err((code, "coins%20are gone")), ..rich() }).await.unwrap_err();
        assert_eq!(error.code().name(), expected, "{code}");
        assert!(error.to_string().contains("coins are gone"), "{error}");
    }
}

// ---- redemptions and refunds

/// A redemption or refund of an order whose secret is known, and the secret.
pub(crate) fn recovery(role: Role) -> (recover::Recovery, [u8; 32]) {
    let outside: serde_json::Value =
        serde_json::from_slice(&std::fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/../sui/tests/outside.json")).unwrap()).unwrap();
    let ways = &outside["ways_out"];
    let (record, secret) = (read_record(&ways["order"]).unwrap(), word(&ways["secret"]));
    let recovery = match role {
        Role::Redeem => recover::redeem(&record, Leg::Source, &secret, registry()),
        _ => recover::refund(&record, Leg::Source, registry()),
    };
    (recovery.unwrap(), secret)
}

const SENDER: Address = Address::new([0xa1; 32]);

async fn recovered(nodes: &Nodes<Network>, role: Role, policy: &Policy) -> Result<UnsignedOrder, NodeError> {
    let recovery = Recovery::Sui(recovery(role).0);
    match nodes.prepare_recovery(&recovery, "sui_testnet", &SENDER.to_string(), Speed::Normal, policy).await? {
        Unsigned::Sui(unsigned) => Ok(unsigned),
        other => panic!("{other:?}"),
    }
}

/// A node on which a redemption with a wrong secret ends in this way.
fn rehearsing(abort: Option<(&'static str, u64)>, reason: Option<&'static str>) -> Nodes<Network> {
    let simulated = Ok(Executed { success: reason.is_none(), reason, abort, ..Executed::new(digest_of(7)) });
    Network::new(&[Ledger { simulated, ..rich() }]).connect()
}

/// Endpoints that do not rehearse keep a secret in that nobody knows, and delay nothing once it is out.
#[tokio::test(start_paused = true)]
async fn a_rehearsal_that_nobody_makes_delays_no_redemption_whose_secret_is_out() {
    let nodes = Network::new(&[Ledger { simulated: Err((12, "not served")), ..rich() }]).connect();
    let first = recovered(&nodes, Role::Redeem, &Policy::default()).await;
    assert!(first.as_ref().is_err_and(|error| !matches!(error, NodeError::Refused(_))), "{first:?}");
    let recovery = Recovery::Sui(recovery(Role::Redeem).0);
    let urgent = nodes.prepare_urgent(&recovery, "sui_testnet", &SENDER.to_string(), Speed::Fast, &Policy::default()).await;
    assert!(urgent.is_ok(), "{urgent:?}");
}

#[tokio::test(start_paused = true)]
async fn a_redemption_is_never_shown_before_it_is_sent() {
    let nodes = rehearsing(Some(("AtomicSwap", 8)), Some("a wrong secret"));
    let unsigned = recovered(&nodes, Role::Redeem, &Policy::default()).await.unwrap();
    let payload = unsigned.payloads();
    assert_eq!((payload.gas_payment.price, payload.gas_payment.budget), (602, 25_000_000 + 5_000 * 602));
    let preflight = nodes.sui("sui_testnet").unwrap().preflight(&unsigned).await.unwrap();
    assert_eq!((preflight.gas_used, preflight.cost), (None, payload.gas_payment.budget));
    let asked = ["GetServiceInfo", "GetEpoch", "ListOwnedObjects", "ListOwnedObjects", "SimulateTransaction", "GetBalance"];
    assert_eq!(nodes.transport().methods("a.example"), asked);
    // The simulated transaction is the redemption, except for the secret.
    let (_, secret) = recovery(Role::Redeem);
    let at = payload.bytes.windows(32).position(|window| window == secret).unwrap();
    let mut rehearsal = payload.bytes.clone();
    rehearsal[at..at + 32].fill(0);
    assert_eq!(simulated(&nodes), [rehearsal]);
    let bodies: Vec<u8> = nodes.transport().seen.lock().unwrap().iter().flat_map(|(_, _, body)| body.clone()).collect();
    assert!(!bodies.windows(32).any(|window| window == secret));

    let low = Policy::from_json(br#"{"sui_gas_budget": 28009999}"#).unwrap();
    assert_eq!(refused(&recovered(&nodes, Role::Redeem, &low).await.unwrap_err()), (Code::GasLimitTooHigh, "/gas_budget"));
    let redemption = Recovery::Sui(recovery(Role::Redeem).0);
    let misspelt = nodes.prepare_recovery(&redemption, "sui_testnet", "0xno", Speed::Normal, &Policy::default()).await.unwrap_err();
    assert_eq!(refused(&misspelt), (Code::AddressMalformed, "/sender"));
}

#[tokio::test(start_paused = true)]
async fn a_redemption_that_would_fail_for_another_reason_is_not_signed() {
    for (abort, reason) in [
        (None, "FunctionNotFound"),
        (None, "InsufficientGas"),
        (Some(("AtomicSwap", 5)), "no such order"),
        (Some(("AtomicSwap", 14)), "it has ended"),
        (Some(("AtomicSwap", 16)), "another sender is needed"),
        (Some(("balance", 8)), "another module's code"),
    ] {
        let nodes = rehearsing(abort, Some(reason));
        let error = recovered(&nodes, Role::Redeem, &Policy::default()).await.unwrap_err();
        assert_eq!(refused(&error), (Code::SimulationReverted, "/redeem"), "{reason}");
        assert!(error.to_string().contains(reason), "{error}");
    }
    let any = rehearsing(None, None);
    assert_eq!(refused(&recovered(&any, Role::Redeem, &Policy::default()).await.unwrap_err()), (Code::SimulationDiffers, "/redeem"));
    let spent = Network::new(&[Ledger { simulated: Err((3, "coins%20are gone")), ..rich() }]).connect();
    assert_eq!(refused(&recovered(&spent, Role::Redeem, &Policy::default()).await.unwrap_err()), (Code::SimulationReverted, "/redeem"));
    let busy = Network::new(&[Ledger { simulated: Err((14, "busy")), ..rich() }]).connect();
    assert_eq!(recovered(&busy, Role::Redeem, &Policy::default()).await.unwrap_err().code().name(), "node_error");
}

#[tokio::test(start_paused = true)]
async fn a_refund_pays_out_and_takes_nothing_but_gas() {
    let (initiator, net) = (recovery(Role::Refund).0.to().to_string(), NET);
    let with = |changes: Vec<(String, String, String)>| {
        let mut ledger = rich();
        ledger.simulated.as_mut().unwrap().changes = changes;
        Network::new(&[ledger]).connect()
    };
    let change = |owner: &str, coin: &str, amount: i64| (owner.to_owned(), coin.to_owned(), amount.to_string());
    let sender = SENDER.to_string();
    let paid = with(vec![change(&initiator, SUI, AMOUNT), change(&sender, SUI, -net)]);
    let unsigned = recovered(&paid, Role::Refund, &Policy::default()).await.unwrap();
    assert_eq!((unsigned.payloads().sender, unsigned.payloads().gas_payment.budget), (SENDER, BUDGET));
    assert_eq!(simulated(&paid).last(), Some(&unsigned.payloads().bytes));
    for changes in [
        vec![change(&initiator, SUI, AMOUNT), change(&sender, SUI, -net - 1)],
        vec![change(&initiator, SUI, AMOUNT), change(&sender, SUI, -net), change(&sender, "0x7::usdc::USDC", -1)],
    ] {
        let error = recovered(&with(changes), Role::Refund, &Policy::default()).await.unwrap_err();
        assert_eq!(refused(&error), (Code::SimulationDiffers, "/balance_changes"));
    }
    let mut early = rich();
    early.simulated.as_mut().unwrap().success = false;
    let error = recovered(&Network::new(&[early.clone()]).connect(), Role::Refund, &Policy::default()).await.unwrap_err();
    assert_eq!(refused(&error), (Code::SimulationReverted, "/refund"));
    // The contract's code is explained, and another module's is not.
    for (module, expected) in [("AtomicSwap", "the timelock has not expired (EOrderNotExpired): aborted"), ("balance", "/refund: aborted")]
    {
        let mut aborted = early.clone();
        let simulated = aborted.simulated.as_mut().unwrap();
        (simulated.reason, simulated.abort) = (Some("aborted"), Some((module, 2)));
        let error = recovered(&Network::new(&[aborted]).connect(), Role::Refund, &Policy::default()).await.unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}
