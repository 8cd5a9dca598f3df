//! Tests swaps made with the program's own crates, and how they end.

use bitcoin::Transaction;
use bitcoin::consensus::encode::deserialize_hex;
use bitcoin::hashes::{Hash, sha256};
use countersign::bitcoin::recover::{Funding, InstantRefund, RecordedHtlc};
use countersign::recover::{self, Leg};
use countersign::{
    Funded, Key, Policy,
    chains::{Finality, FinalityRule},
    evidence::{HtlcState, HtlcTerms},
};
use countersign_client::Transport;
use countersign_node::{Attempt, NodeError, Nodes, SettlementKey, Speed};
use countersign_sandbox::chains::{Change, Engine, Terms};

use super::{AMOUNT, CHAINS, Order, SECRET, World, user, world};

fn of_user() -> Key {
    Key::Bitcoin(hex::encode(user()).parse().unwrap())
}

async fn state(nodes: &Nodes<World>, terms: &HtlcTerms) -> (HtlcState, u64) {
    let (state, seen) = nodes.htlc(terms).await.unwrap().state().unwrap();
    (state, seen.depth)
}

/// Pays the source of an order as the program does.
async fn pay(world: &World, nodes: &Nodes<World>, order: &Order, chain: &str) -> String {
    let owner = world.owner(chain);
    let verified = order.verified(world);
    let mut unsigned = nodes.prepare(&verified, chain, &owner, Speed::Normal, &Policy::default()).await.unwrap();
    unsigned.sign(&of_user()).unwrap();
    let sent = unsigned.finish().unwrap().broadcasts().remove(0);
    nodes.broadcast(chain, &sent.id, &sent.payload).await.unwrap();
    sent.id
}

async fn settle(world: &World, nodes: &Nodes<World>, chain: &str, recovery: &recover::Recovery) -> Result<String, NodeError> {
    let key = SettlementKey::new(of_user(), Some(world.owner(chain))).unwrap();
    let signed = nodes.settle(recovery, chain, Attempt::First(Speed::Normal), &key, &Policy::default()).await?;
    let sent = signed.broadcasts().remove(0);
    nodes.broadcast(chain, &sent.id, &sent.payload).await?;
    Ok(sent.id)
}

#[tokio::test]
async fn a_swap_completes_in_both_directions() {
    for (from, to) in [("litecoin_regtest", "bitcoin_regtest"), ("bitcoin_regtest", "litecoin_regtest")] {
        completes(&world(), from, to).await;
    }
}

pub(super) async fn completes(world: &World, from: &str, to: &str) {
    let (nodes, order) = (world.nodes(), Order::new(world, from, to));
    let terms = order.terms(world);
    world.on(from, |engine| drop(engine.events()));

    let paid = pay(world, &nodes, &order, from).await;
    assert_eq!(world.on(from, |engine| engine.pending()), 1);
    world.mine(from, 1);
    let height = world.on(from, |engine| engine.height());
    let events = world.on(from, Engine::events);
    let funded = events.iter().find(|event| event.swap_id == order.address("source_swap")).unwrap();
    assert_eq!((funded.transaction.clone(), funded.height), (format!("{paid}:{height}"), height));
    assert_eq!(funded.change, Change::Initiated { amount: AMOUNT });

    world.on(to, |engine| engine.lock(&order.destination).unwrap());
    assert!(matches!(state(&nodes, &terms.destination).await, (HtlcState::Locked(_), 0)));
    let depth = world.on(to, |engine| engine.depth());
    world.mine(to, 1 + depth);
    let rule = FinalityRule::new(Finality::Depth(1 + depth), 1 + depth, 6);
    Funded::judge(&terms, &nodes.htlc(&terms.destination).await.unwrap(), &rule, world.now()).unwrap();

    let redemption = recover::redeem(&order.record(), Leg::Destination, &SECRET, &world.registry()).unwrap();
    let redeemed = settle(world, &nodes, to, &redemption).await.unwrap();
    world.mine(to, 1);
    let expected = HtlcState::Redeemed { secret: Some(SECRET), transaction: Some(redeemed.clone()) };
    assert_eq!(state(&nodes, &terms.destination).await, (expected, 1));
    let events = world.on(to, Engine::events);
    let shown = events.iter().find(|event| event.transaction == redeemed).unwrap();
    assert_eq!((&shown.swap_id, &shown.change), (&order.address("destination_swap"), &Change::Redeemed { secret: SECRET }));
    assert!(world.balance(to, &world.owner(to)) > 3_490_000);

    assert!(world.on(from, |engine| engine.redeem(&order.source, &[7; 32])).is_err());
    let by_solver = world.on(from, |engine| engine.redeem(&order.source, &SECRET).unwrap());
    world.mine(from, 1);
    let expected = HtlcState::Redeemed { secret: Some(SECRET), transaction: Some(by_solver) };
    assert_eq!(state(&nodes, &terms.source).await, (expected, 1));
}

#[tokio::test]
async fn refunds_wait_for_their_timelock() {
    are_refunded(&world(), "bitcoin_regtest", "litecoin_regtest").await;
}

pub(super) async fn are_refunded(world: &World, from: &str, to: &str) {
    let (nodes, order) = (world.nodes(), Order::new(world, from, to));
    let terms = order.terms(world);
    pay(world, &nodes, &order, from).await;
    world.on(to, |engine| engine.lock(&order.destination).unwrap());
    world.mine(from, order.source.timelock - 1);
    world.mine(to, order.destination.timelock - 1);

    let refund = recover::refund(&order.record(), Leg::Source, &world.registry()).unwrap();
    let early = settle(world, &nodes, from, &refund).await.unwrap_err();
    assert!(early.to_string().contains("non-BIP68-final"), "{early}");
    assert_eq!(world.on(to, |engine| engine.refund(&order.destination)), Err("non-BIP68-final".to_owned()));
    world.mine(from, 1);
    world.mine(to, 1);
    let by_user = settle(world, &nodes, from, &refund).await.unwrap();
    let by_solver = world.on(to, |engine| engine.refund(&order.destination).unwrap());

    // A transaction with a higher fee replaces the pending one.
    let raw = world.text(from, &format!("/tx/{by_user}/hex"));
    let key = SettlementKey::new(of_user(), Some(world.owner(from))).unwrap();
    let replacement = Attempt::Replacement { id: &by_user, payload: &raw };
    let replacement = nodes.settle(&refund, from, replacement, &key, &Policy::default()).await.unwrap().broadcasts().remove(0);
    nodes.broadcast(from, &replacement.id, &replacement.payload).await.unwrap();
    assert_eq!(world.on(from, |engine| engine.pending()), 1);
    let replaced = world.post(from, &deserialize_hex(&raw).unwrap()).unwrap_err();
    assert!(replaced.contains(r#""code":-26,"message":"insufficient fee, rejecting replacement"#), "{replaced}");

    for (chain, terms, transaction) in [(from, &terms.source, replacement.id), (to, &terms.destination, by_solver)] {
        world.on(chain, |engine| drop(engine.events()));
        world.mine(chain, 1);
        assert_eq!(state(&nodes, terms).await, (HtlcState::Refunded { transaction: Some(transaction.clone()) }, 1));
        let events = world.on(chain, Engine::events);
        assert!(events.iter().any(|event| event.transaction == transaction && event.change == Change::Refunded));
    }
}

#[tokio::test]
async fn an_instant_refund_needs_the_hashes_that_the_wallet_computes() {
    let world = world();
    for (from, to) in [("litecoin_regtest", "bitcoin_regtest"), ("bitcoin_regtest", "litecoin_regtest")] {
        is_refunded_instantly(&world, from, to).await;
    }
}

pub(super) async fn is_refunded_instantly(world: &World, from: &str, to: &str) {
    let (nodes, order) = (world.nodes(), Order::new(world, from, to));
    let terms = order.terms(world);
    let paid = pay(world, &nodes, &order, from).await;
    world.mine(from, 1);
    let hashes = world.on(from, |engine| engine.instant_refund_hashes(&order.source).unwrap());

    let htlc = RecordedHtlc::new(&order.record(), Leg::Source, &world.registry()).unwrap();
    let funding: Transaction = deserialize_hex(&world.text(from, &format!("/tx/{paid}/hex"))).unwrap();
    let fundings = Funding::from_transaction(&funding, &htlc.tree);
    let refund = InstantRefund::new(&htlc, &fundings, world.owner(from)).unwrap();
    refund.check_hashes(&hashes.iter().map(String::as_str).collect::<Vec<_>>()).unwrap();
    let signatures = refund.sign(&hex::encode(user()).parse().unwrap()).unwrap().signatures;

    let wrong = vec![format!("{}83", "11".repeat(64)); signatures.len()];
    assert!(world.on(from, |engine| engine.instant_refund(&order.source, &wrong)).is_err());
    let before = world.balance(from, &world.owner(from));
    let done = world.on(from, |engine| engine.instant_refund(&order.source, &signatures).unwrap());
    world.mine(from, 1);
    assert_eq!(state(&nodes, &terms.source).await, (HtlcState::Refunded { transaction: Some(done) }, 1));
    assert_eq!(world.balance(from, &world.owner(from)), before + AMOUNT, "the solver paid the fee");
}

#[tokio::test]
async fn without_a_delegate_the_service_holds_the_key() {
    let world = world();
    CHAINS.iter().for_each(|(chain, _)| is_held_by_the_service(&world, chain));
}

pub(super) fn is_held_by_the_service(world: &World, chain: &str) {
    let terms = |is_source| Terms { delegate: None, ..world.terms(chain, is_source) };
    let owner = world.owner(chain);
    for is_source in [true, false] {
        let (terms, before) = (terms(is_source), world.balance(chain, &owner));
        world.on(chain, |engine| {
            engine.lock(&terms).unwrap();
            engine.mine(terms.timelock);
            if is_source { engine.refund(&terms) } else { engine.redeem(&terms, &SECRET) }.unwrap();
            engine.mine(1);
        });
        assert!(world.balance(chain, &owner) > before + AMOUNT - 1_000);
    }
    let theirs = world.terms(chain, false);
    world.on(chain, |engine| engine.lock(&theirs).unwrap());
    assert!(world.on(chain, |engine| engine.redeem(&theirs, &SECRET)).is_err(), "the user has the key");
}

#[test]
fn two_hundred_swaps_fit_into_one_block() {
    fit_into_one_block(&world(), "litecoin_regtest");
}

pub(super) fn fit_into_one_block(world: &World, chain: &str) {
    let secrets: Vec<[u8; 32]> = (0..200).map(|index| [index; 32]).collect();
    world.on(chain, |engine| drop(engine.events()));
    let both = |secret: &[u8; 32]| {
        let secret_hash = sha256::Hash::hash(secret).to_byte_array();
        [true, false].map(|is_source| Terms { secret_hash, ..world.terms(chain, is_source) })
    };
    for terms in secrets.iter().flat_map(both) {
        world.on(chain, |engine| engine.lock(&terms).unwrap());
    }
    world.mine(chain, 1);
    assert_eq!((world.on(chain, |engine| engine.pending()), world.on(chain, Engine::events).len()), (0, 400));
    for secret in &secrets {
        let [source, _] = both(secret);
        world.on(chain, |engine| engine.redeem(&source, secret).unwrap());
    }
    world.mine(chain, 1);
    let shown = world.on(chain, Engine::events);
    assert!(secrets.iter().all(|secret| shown.iter().any(|event| event.change == Change::Redeemed { secret: *secret })));
}

#[tokio::test]
async fn a_reorganisation_returns_transactions_to_the_mempool() {
    is_taken_back(&world(), "bitcoin_regtest", "litecoin_regtest").await;
}

pub(super) async fn is_taken_back(world: &World, from: &str, to: &str) {
    let (nodes, order) = (world.nodes(), Order::new(world, from, to));
    let terms = order.terms(world);
    let paid = pay(world, &nodes, &order, from).await;
    world.mine(from, 3);
    let (height, before) = (world.on(from, |engine| engine.height()), world.text(from, "/blocks/tip/hash"));
    assert_eq!(state(&nodes, &terms.source).await.1, 3);

    world.on(from, |engine| engine.reorganize(3).unwrap());
    assert_eq!((world.on(from, |engine| engine.height()), world.on(from, |engine| engine.pending())), (height - 3, 1));
    assert!(matches!(state(&nodes, &terms.source).await, (HtlcState::Locked(_), 0)));
    assert_eq!(world.get(from, &format!("/block/{before}")).status, 404);
    world.on(from, |engine| engine.mine(3));
    assert_ne!(world.text(from, "/blocks/tip/hash"), before);
    assert_eq!(world.json(from, &format!("/tx/{paid}"))["status"]["block_height"], height - 2);
    assert!(world.on(from, |engine| engine.reorganize(1_000_000)).is_err());
}

#[test]
fn terms_that_no_chain_would_take_are_refused() {
    let (world, chain) = (world(), "litecoin_regtest");
    let good = world.terms(chain, false);
    let solver = world.on(chain, |engine| engine.listing().solver);
    let bad = [
        Terms { asset: "base:usdc".to_owned(), ..good.clone() },
        Terms { owner: "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4".to_owned(), ..good.clone() },
        Terms { owner: String::new(), ..good.clone() },
        Terms { delegate: Some("00".repeat(32)), ..good.clone() },
        Terms { delegate: Some(solver), ..good.clone() },
        Terms { timelock: 0, ..good.clone() },
        Terms { timelock: 65_536, ..good.clone() },
        Terms { amount: 3_299, ..good.clone() },
        Terms { amount: u128::MAX, ..good.clone() },
    ];
    for terms in bad {
        assert!(world.on(chain, |engine| engine.leg(&terms)).is_err(), "{terms:?}");
        assert!(world.on(chain, |engine| engine.payloads(&terms)).is_err());
    }
    assert!(world.on(chain, |engine| engine.redeem(&good, &SECRET)).is_err(), "nothing is locked");
    assert!(world.on(chain, |engine| engine.instant_refund_hashes(&good)).is_err(), "not a source");
    let rich = Terms { amount: 8_000_000_000_000_000, ..good.clone() };
    assert!(world.on(chain, |engine| engine.lock(&rich)).is_err());
    assert!(world.on(chain, |engine| engine.initiate(&good, "")).is_err());
    assert!(world.on(chain, |engine| engine.fund("nobody", "litecoin_regtest:ltc", 1)).is_err());
}
