//! Tests swaps made with the program's own crates, and how they end.

use bitcoin::consensus::encode::deserialize_hex;
use bitcoin::hashes::{Hash, sha256};
use bitcoin::{Amount, OutPoint, Transaction};
use countersign::bitcoin::recover::{Funding, InstantRefund, RecordedHtlc};
use countersign::bitcoin::{FeeRate, TxContext};
use countersign::recover::{self, Leg};
use countersign::{
    BroadcastTransaction, Funded, Key, Policy, U256,
    chains::{Finality, FinalityRule},
    evidence::{HtlcState, HtlcTerms, ObservedAt, VerifiedTerms},
};
use countersign_client::Transport;
use countersign_node::bitcoin::BitcoinChain;
use countersign_node::{Attempt, NodeError, Nodes, SettlementKey, Speed};
use countersign_sandbox::chains::{Change, Engine, Terms};

use super::{AMOUNT, CHAINS, Order, SECRET, Through, World, user, world};

/// A payment is final in its sixth block, and three more are needed to redeem it.
const RULE: FinalityRule = FinalityRule::new(Finality::Depth(6), 6, 3);

fn of_user() -> Key {
    Key::Bitcoin(hex::encode(user()).parse().unwrap())
}

async fn state(nodes: &Nodes<World>, terms: &HtlcTerms) -> (HtlcState, u64) {
    let (state, seen) = nodes.htlc(terms).await.unwrap().state().unwrap();
    (state, seen.depth)
}

/// Requires that an HTLC holds the amount, in a block of this depth. Returns where that was seen.
async fn locked(nodes: &Nodes<World>, terms: &HtlcTerms, depth: u64) -> ObservedAt {
    let (state, seen) = nodes.htlc(terms).await.unwrap().state().unwrap();
    let HtlcState::Locked(locked) = &state else { panic!("{state:?}") };
    assert_eq!((locked.elapsed, seen.depth, locked.amount), (depth, depth, U256::from(AMOUNT)));
    seen
}

/// Returns why the destination is not evidence.
async fn judge(world: &World, nodes: &Nodes<World>, terms: &VerifiedTerms) -> Option<&'static str> {
    let quorum = nodes.htlc(&terms.destination).await.unwrap();
    Funded::judge(terms, &quorum, &RULE, world.now()).err().map(|hold| hold.code().name())
}

async fn send(nodes: &Nodes<World>, chain: &str, sent: &BroadcastTransaction) -> Result<(), NodeError> {
    nodes.broadcast(chain, &sent.id, &sent.payload).await
}

/// Checks what is about to be sent. Returns its fee.
async fn preflight(nodes: &Nodes<World>, chain: &str, sent: &BroadcastTransaction) -> Result<Amount, NodeError> {
    let transaction = deserialize_hex(&sent.payload).unwrap();
    nodes.bitcoin(chain).unwrap().preflight(&transaction, &Policy::default()).await
}

/// Pays the source of an order as the program does.
async fn pay(world: &World, nodes: &Nodes<World>, order: &Order, chain: &str) -> String {
    let owner = world.owner(chain);
    let verified = order.verified(world);
    let mut unsigned = nodes.prepare(&verified, chain, &owner, Speed::Normal, &Policy::default()).await.unwrap();
    unsigned.sign(&of_user()).unwrap();
    let sent = unsigned.finish().unwrap().broadcasts().remove(0);
    assert!(preflight(nodes, chain, &sent).await.unwrap() > Amount::ZERO);
    send(nodes, chain, &sent).await.unwrap();
    send(nodes, chain, &sent).await.expect("again is not an error");
    sent.id
}

async fn signed(world: &World, nodes: &Nodes<World>, chain: &str, recovery: &recover::Recovery) -> BroadcastTransaction {
    let key = SettlementKey::new(of_user(), Some(world.owner(chain))).unwrap();
    let signed = nodes.settle(recovery, chain, Attempt::First(Speed::Normal), &key, &Policy::default()).await;
    signed.unwrap().broadcasts().remove(0)
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

    // A node has no index, so it cannot rule out that somebody has paid and spent the HTLC.
    match (world.through(to), nodes.htlc(&terms.destination).await.map(|quorum| quorum.state().unwrap().0)) {
        (Through::Esplora, Ok(HtlcState::Absent))
        | (Through::Rpc, Ok(HtlcState::Unclear(_)))
        | (Through::Both, Err(NodeError::Disagree { .. })) => {}
        (_, other) => panic!("{other:?}"),
    }
    world.on(to, |engine| engine.lock(&order.destination).unwrap());
    if world.through(to) == Through::Esplora {
        locked(&nodes, &terms.destination, 0).await;
    }
    for depth in 1..=7 {
        world.mine(to, 1);
        locked(&nodes, &terms.destination, depth).await;
        assert_eq!(judge(world, &nodes, &terms).await, (depth < 6).then_some("destination_not_final"), "{depth}");
    }

    let redemption = recover::redeem(&order.record(), Leg::Destination, &SECRET, &world.registry()).unwrap();
    let sent = signed(world, &nodes, to, &redemption).await;
    assert!(preflight(&nodes, to, &sent).await.unwrap() > Amount::ZERO);
    send(&nodes, to, &sent).await.unwrap();
    let redeemed = sent.id;
    // It is first in the mempool, then in a block.
    for depth in 0..3 {
        let expected = HtlcState::Redeemed { secret: Some(SECRET), transaction: Some(redeemed.clone()) };
        assert_eq!(state(&nodes, &terms.destination).await, (expected, depth));
        let status = nodes.bitcoin(to).unwrap().status(&redeemed).await.unwrap().unwrap();
        assert_eq!(status.confirmations, depth);
        world.mine(to, 1);
    }
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

    locked(&nodes, &terms.source, order.source.timelock - 1).await;
    let refund = recover::refund(&order.record(), Leg::Source, &world.registry()).unwrap();
    let early = signed(world, &nodes, from, &refund).await;
    // An Esplora server does not simulate transactions, so it does not agree with a node.
    let code = match world.through(from) {
        Through::Esplora => None,
        Through::Rpc => Some("transaction_rejected"),
        Through::Both => Some("node_disagree"),
    };
    assert_eq!(preflight(&nodes, from, &early).await.err().map(|error| error.code().name()), code);
    let refused = send(&nodes, from, &early).await.unwrap_err();
    assert!(matches!(&refused, NodeError::Rejected { message, .. } if message.contains("non-BIP68-final")), "{refused}");
    assert_eq!(world.on(to, |engine| engine.refund(&order.destination)), Err("non-BIP68-final".to_owned()));
    world.mine(from, 1);
    world.mine(to, 1);
    locked(&nodes, &terms.source, order.source.timelock).await;
    assert_eq!(judge(world, &nodes, &terms).await, Some("destination_no_time"));
    let sent = signed(world, &nodes, from, &refund).await;
    send(&nodes, from, &sent).await.unwrap();
    let by_solver = world.on(to, |engine| engine.refund(&order.destination).unwrap());

    // A transaction with a higher fee replaces the pending one.
    let key = SettlementKey::new(of_user(), Some(world.owner(from))).unwrap();
    let replacement = Attempt::Replacement { id: &sent.id, payload: &sent.payload };
    let replacement = nodes.settle(&refund, from, replacement, &key, &Policy::default()).await.unwrap().broadcasts().remove(0);
    send(&nodes, from, &replacement).await.unwrap();
    assert_eq!(world.on(from, |engine| engine.pending()), 1);
    let replaced = world.post(from, &deserialize_hex(&sent.payload).unwrap()).unwrap_err();
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
    for (from, to) in [("litecoin_regtest", "bitcoin_regtest"), ("bitcoin_regtest", "litecoin_regtest")] {
        starts_again(&world(), from, to).await;
    }
}

/// A payment is replaced. Then its block is orphaned twice, and the second time its coin is spent elsewhere.
pub(super) async fn starts_again(world: &World, from: &str, to: &str) {
    let (index, order, policy) = (World { other: None, ..world.clone() }.nodes(), Order::new(world, from, to), Policy::default());
    let (nodes, owner) = (world.nodes(), world.owner(from));
    let mut terms = order.terms(world);
    terms.destination = terms.source.clone();
    let chain = index.bitcoin(from).unwrap();
    let coin = chain.coins(&owner).await.unwrap().remove(0);
    let paying = |order: &Order, rate: FeeRate| {
        let mut unsigned = order.verified(world).prepare(&TxContext::new(vec![coin.clone()], owner.as_str(), rate).into()).unwrap();
        unsigned.sign(&of_user()).unwrap();
        unsigned.finish().unwrap().broadcasts().remove(0)
    };

    // The pending payment is replaced at the lowest accepted rate, and at no lower one.
    let first = paying(&order, FeeRate::from_whole(2));
    send(&index, from, &first).await.unwrap();
    let transaction: Transaction = deserialize_hex(&first.payload).unwrap();
    let fee = coin.output().value - transaction.output.iter().map(|output| output.value).sum::<Amount>();
    let rate = BitcoinChain::<World>::replacement_rate(fee, transaction.weight().to_vbytes_ceil(), &policy).unwrap();
    let cheap = paying(&order, FeeRate::parse("2.5").unwrap());
    assert!(matches!(send(&index, from, &cheap).await, Err(NodeError::Rejected { .. })));
    let second = paying(&order, rate);
    send(&index, from, &second).await.unwrap();
    assert_eq!(chain.status(&first.id).await.unwrap(), None);
    locked(&index, &terms.source, 0).await;
    world.mine(from, 7);
    let before = locked(&nodes, &terms.source, 7).await;
    assert_eq!(judge(world, &nodes, &terms).await, None);

    let (height, tip) = (world.on(from, |engine| engine.height()), world.text(from, "/blocks/tip/hash"));
    world.on(from, |engine| engine.reorganize(7).unwrap());
    assert_eq!((world.on(from, |engine| engine.height()), world.on(from, |engine| engine.pending())), (height - 7, 1));
    assert_eq!(world.get(from, &format!("/block/{tip}")).status, 404);
    if world.through(from) == Through::Both {
        assert!(nodes.htlc(&terms.source).await.is_err(), "one sees it in the mempool, the other does not see it");
    }
    locked(&index, &terms.source, 0).await;
    assert_eq!(judge(world, &index, &terms).await, Some("destination_not_final"));
    // Four new blocks: an endpoint of Bitcoin may go back by three.
    world.mine(from, 4);
    let after = locked(&nodes, &terms.source, 4).await;
    assert_ne!(after.hash, before.hash);
    assert_eq!(judge(world, &nodes, &terms).await, Some("destination_not_final"));
    assert_eq!(world.json(from, &format!("/tx/{}", second.id))["status"]["block_height"], height - 6);

    world.on(from, |engine| engine.reorganize(4).unwrap());
    let shorter = Terms { timelock: order.source.timelock - 1, ..order.source.clone() };
    let elsewhere = Order::of(world, (from, shorter), (to, order.destination.clone()));
    let rival = paying(&elsewhere, FeeRate::from_whole(50));
    send(&index, from, &rival).await.unwrap();
    world.mine(from, 4);
    assert_eq!(state(&index, &terms.source).await.0, HtlcState::Absent);
    assert_eq!(chain.status(&second.id).await.unwrap(), None);
    let refused = send(&index, from, &second).await.unwrap_err();
    assert!(matches!(&refused, NodeError::Rejected { message, .. } if message.contains("missingorspent")), "{refused}");
    locked(&nodes, &elsewhere.terms(world).source, 4).await;
    let htlc = RecordedHtlc::new(&elsewhere.record(), Leg::Source, &world.registry()).unwrap();
    let funding = Funding::new(OutPoint { txid: rival.id.parse().unwrap(), vout: 0 }, Amount::from_sat(AMOUNT.try_into().unwrap()));
    assert_eq!(nodes.bitcoin(from).unwrap().fundings(&htlc.tree).await.unwrap(), [funding]);
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
