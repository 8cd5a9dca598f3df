//! Tests how the status of a sent transaction is read.

use countersign_bitcoin::bitcoin::consensus::encode::serialize_hex;
use countersign_bitcoin::htlc::Leaf;
use countersign_bitcoin::reader::FateOf;
use countersign_core::reader::{Fate, Fault, Known, Observation, Request, Submission};
use countersign_testkit::chain::bitcoin::{Ledger, SECRET, spend, terms};
use countersign_testkit::fate::{one_lie_decides_nothing, read};

use super::protocol;

/// A chain with a mined output, a transaction that spends it and was sent, and another one that spends it too and was mined. The other one
/// is this many blocks deep; in no block if 0.
struct Race {
    ledger: Ledger,
    sent: Submission,
    coin: &'static str,
}

fn race(coin: &'static str, depth: usize) -> Race {
    let (mut ledger, funding) = Ledger::funded(3);
    (ledger.is_litecoin, ledger.has_transaction_index) = (coin == "litecoin", true);
    let (sent, rival) = (spend(&funding, Leaf::Redeem, &SECRET), spend(&funding, Leaf::Refund, &[]));
    ledger.mempool.push(rival);
    ledger.mine(depth);
    let sent = Submission::new(&terms(coin).network, &sent.compute_txid().to_string(), &serialize_hex(&sent));
    Race { ledger, sent, coin }
}

impl Race {
    fn read(&self, known: &Known) -> Observation<FateOf> {
        read::<FateOf>(&self.sent, known, |_, _, request| self.ledger.answer(request)).0.unwrap()
    }

    fn esplora(&self) -> Fate {
        self.read(&protocol(false)).into_output()
    }
}

/// As deep as the largest payment must be: 6 blocks on Bitcoin and 24 on Litecoin, by the table of known chains. If the other transaction were
/// replaced, both payments could be mined.
#[test]
fn an_input_that_another_deep_transaction_spent_is_death() {
    for (coin, needed) in [("bitcoin", 6), ("litecoin", 24)] {
        for depth in 0..=needed + 1 {
            let race = race(coin, depth);
            let fate = race.esplora();
            assert_eq!(matches!(fate, Fate::Dead(_)), depth >= needed, "{} {depth}: {fate:?}", race.coin);
        }
    }
    let unspent = Race { ledger: Ledger::funded(3).0, ..race("bitcoin", 3) };
    assert_eq!(unspent.esplora(), Fate::Open);
}

#[test]
fn a_transaction_that_an_endpoint_knows_is_not_dead() {
    for is_rpc in [false, true] {
        let (mut ledger, funding) = Ledger::funded(3);
        ledger.has_transaction_index = true;
        let sent = spend(&funding, Leaf::Redeem, &SECRET);
        let submission = Submission::new(&terms("bitcoin").network, &sent.compute_txid().to_string(), &serialize_hex(&sent));
        ledger.mempool.push(sent);
        let mut race = Race { ledger, sent: submission, coin: "bitcoin" };
        assert_eq!(race.read(&protocol(is_rpc)).into_output(), Fate::Open, "it waits");
        race.ledger.mine(1);
        assert_eq!(race.read(&protocol(is_rpc)).into_output(), Fate::Included);
        race.ledger.mine(6);
        assert_eq!(race.read(&protocol(is_rpc)).into_output(), Fate::Included);
    }
}

/// A node's own RPC does not say which transaction spends an output, nor in which block.
#[test]
fn a_nodes_rpc_shows_death_in_two_readings() {
    let mut race = race("bitcoin", 1);
    let mut known = protocol(true);
    let read = |race: &Race, known: &mut Known| {
        let observation = race.read(known);
        known.learn(&observation.known().progress_only());
        observation.into_output()
    };
    assert_eq!(read(&race, &mut known), Fate::Open);
    race.ledger.mine(5);
    assert_eq!(read(&race, &mut known), Fate::Open);
    race.ledger.mine(1);
    assert!(matches!(read(&race, &mut known), Fate::Dead(_)));
    // After a reorganization without the other transaction, the wait begins again.
    let short = race.ledger.blocks.len() - 7;
    race.ledger.blocks.truncate(short);
    race.ledger.mine(8);
    assert_eq!(read(&race, &mut known), Fate::Open);
    race.ledger.mempool.push(countersign_bitcoin::bitcoin::consensus::encode::deserialize_hex(&rival()).unwrap());
    race.ledger.mine(1);
    assert_eq!(read(&race, &mut known), Fate::Open);
    race.ledger.mine(6);
    assert!(matches!(read(&race, &mut known), Fate::Dead(_)));
}

fn rival() -> String {
    serialize_hex(&spend(&Ledger::funded(3).1, Leaf::Refund, &[]))
}

/// Without an index, a node does not know whether a transaction is in a block.
#[test]
fn a_node_without_a_transaction_index_cannot_tell() {
    let mut race = race("bitcoin", 9);
    race.ledger.has_transaction_index = false;
    let known = protocol(true).with_progress(format!("fate {}", race.sent.id), 1_u64.to_be_bytes());
    let outcome = read::<FateOf>(&race.sent, &known, |_, _, request| race.ledger.answer(request)).0;
    assert!(matches!(outcome, Err(Fault::Rpc(_))), "{outcome:?}");
}

#[test]
fn one_liar_of_three_does_not_decide_a_fate() {
    let decide =
        |race: &Race, known: &Known| one_lie_decides_nothing::<FateOf>(&race.sent, known, |request: &Request| race.ledger.answer(request));
    assert!(matches!(decide(&race("bitcoin", 6), &protocol(false)), Fate::Dead(_)));
    assert_eq!(decide(&race("bitcoin", 5), &protocol(false)), Fate::Open);
    let race = race("bitcoin", 3);
    let waited = protocol(true).with_progress(format!("fate {}", race.sent.id), 1_u64.to_be_bytes());
    assert!(matches!(decide(&race, &waited), Fate::Dead(_)));
    assert_eq!(decide(&race, &protocol(true)), Fate::Open);
    let other = Ledger { is_litecoin: true, ..race.ledger.clone() };
    let outcome = read::<FateOf>(&race.sent, &protocol(false), |_, _, request| other.answer(request)).0;
    assert!(matches!(outcome, Err(Fault::WrongChain { .. })));
}
