//! Tests how the status of a sent transaction is read.

use countersign_core::reader::{Fate, Fault, Known, Observation, Submission};
use countersign_sui::reader::FateOf;
use countersign_sui::sui_sdk_types::{Address, Digest, ObjectReference};
use countersign_sui::{Sui, TxContext};
use countersign_testkit::chain::sui::{EPOCH, Executed, FUNDED, Ledger, MAINNET, Object, digest_of};
use countersign_testkit::fate::{one_lie_decides_nothing, read};
use countersign_testkit::{fixture, key, verified};

use super::send::{network, submission};

/// The coin that pays for the gas of [`submission`], and the version at which it is used.
const COIN: [u8; 32] = [0x21; 32];
const VERSION: u64 = 7;

/// The coin at a version, which a transaction has made.
fn coin(version: u64, digest: u8, transaction: &str) -> Object {
    Object {
        id: Some(Address::new(COIN)),
        version: Some(version),
        digest: Some(digest_of(digest)),
        kind: "0x2::coin::Coin<0x2::sui::SUI>".to_owned(),
        transaction: Some(transaction.to_owned()),
        ..Object::default()
    }
}

/// A ledger with the coin as the transaction uses it.
fn open() -> Ledger {
    let mut ledger = Ledger::funded();
    ledger.objects.push(coin(VERSION, 2, &digest_of(30)));
    ledger
}

/// A ledger on which another transaction has changed the coin, which it used at a version. `checkpoint` is that of the other one.
fn changed_at(version: u64, checkpoint: Option<u64>) -> Ledger {
    let mut ledger = Ledger::funded();
    ledger.objects.push(coin(version + 1, 3, &digest_of(31)));
    let used = vec![(Address::new(COIN), version, digest_of(2))];
    ledger.transactions.push(Executed { checkpoint, used, ..Executed::new(digest_of(31)) });
    ledger
}

fn changed(checkpoint: Option<u64>) -> Ledger {
    changed_at(VERSION, checkpoint)
}

/// A ledger without the coin, which has it at an old version.
fn gone(version: u64, digest: u8) -> Ledger {
    let mut ledger = Ledger::funded();
    ledger.past.push(coin(version, digest, &digest_of(30)));
    ledger
}

/// A signed transaction that expires after an epoch.
fn expiring(epoch: u64) -> Submission {
    let case = fixture::<Sui>("sui-native");
    let coin = ObjectReference::new(Address::new(COIN), VERSION, Digest::new([2; 32]));
    let context = TxContext::new(1_000, 5_000_000, vec![coin]).with_expiration_epoch(epoch);
    let mut unsigned = verified::<Sui>(&case).prepare(context).unwrap();
    unsigned.sign(&key::<Sui>(&case)).unwrap();
    let signed = unsigned.finish().unwrap();
    let id = signed.payloads().payloads().digest().to_base58();
    Submission::new(&network(), &id, &serde_json::to_string(&signed.payloads().execution()).unwrap())
}

fn outcome(submission: &Submission, ledger: &Ledger) -> Result<Fate, Fault> {
    read::<FateOf>(submission, &Known::default(), |_, _, request| ledger.answer(request)).0.map(Observation::into_output)
}

fn fate(ledger: &Ledger) -> Fate {
    outcome(&submission(), ledger).unwrap()
}

#[test]
fn a_coin_that_another_transaction_changed_in_a_checkpoint_is_death() {
    assert!(matches!(fate(&changed(Some(FUNDED))), Fate::Dead(why) if why.contains("used the object 0x2121")));
    let mut other = changed(Some(FUNDED));
    other.transactions.last_mut().unwrap().used[0].2 = digest_of(9);
    assert_eq!(fate(&other), Fate::Open, "another object at this version");
    assert_eq!(fate(&changed(None)), Fate::Open, "the other transaction is in no checkpoint");
    let mut unknown = changed(None);
    unknown.transactions.pop();
    assert_eq!(fate(&unknown), Fate::Open);
    assert_eq!(fate(&open()), Fate::Open);
    let mut behind = Ledger::funded();
    behind.objects.push(coin(VERSION - 1, 9, &digest_of(29)));
    assert_eq!(fate(&behind), Fate::Open, "the endpoint is behind");
    // It changed the coin itself, and the endpoint finds it later.
    let mut own = Ledger::funded();
    own.objects.push(coin(VERSION + 1, 3, &submission().id));
    assert_eq!(fate(&own), Fate::Open);
}

/// Nodes throw away old transactions. If the transaction itself used the coin long ago, later ones have changed it since.
#[test]
fn a_coin_that_was_changed_again_is_death_only_while_its_old_version_is_kept() {
    let again = changed_at(VERSION + 4, Some(FUNDED));
    assert_eq!(fate(&again), Fate::Open);
    let kept = Ledger { past: vec![coin(VERSION, 2, &digest_of(30))], ..again };
    assert!(matches!(fate(&kept), Fate::Dead(_)));
    let unfinished = Ledger { past: kept.past.clone(), ..changed_at(VERSION + 4, None) };
    assert_eq!(fate(&unfinished), Fate::Open);
}

#[test]
fn a_coin_that_no_longer_exists_is_death() {
    assert!(matches!(fate(&gone(VERSION, 2)), Fate::Dead(why) if why.contains("used the object")));
    assert_eq!(fate(&gone(VERSION, 9)), Fate::Open, "another object at this version");
    assert_eq!(fate(&gone(VERSION - 1, 2)), Fate::Open, "the endpoint does not have the version");
    assert_eq!(fate(&Ledger::funded()), Fate::Open, "the coin may be too new for the endpoint");
    // It is back in the second round: another node behind the same address was behind.
    let (before, mut after) = (gone(VERSION, 2), gone(VERSION, 2));
    after.objects.push(coin(VERSION, 2, &digest_of(30)));
    let answer = |round: usize, _: usize, request: &_| if round == 0 { before.answer(request) } else { after.answer(request) };
    let outcome = read::<FateOf>(&submission(), &Known::default(), answer).0;
    assert_eq!(outcome.unwrap().into_output(), Fate::Open);
}

#[test]
fn a_transaction_whose_last_epoch_is_over_is_dead() {
    for (last, is_dead) in [(EPOCH - 1, true), (EPOCH, false), (EPOCH + 1, false)] {
        let fate = outcome(&expiring(last), &open()).unwrap();
        assert_eq!(matches!(fate, Fate::Dead(_)), is_dead, "{last}: {fate:?}");
    }
    // If its coin has changed since, it may have been executed before, and thrown away.
    for ledger in [changed_at(VERSION + 4, Some(FUNDED)), Ledger::funded()] {
        assert_eq!(outcome(&expiring(EPOCH - 1), &ledger).unwrap(), Fate::Open);
    }
}

#[test]
fn an_executed_transaction_is_included_or_has_failed_for_good() {
    let with = |change: fn(&mut Executed)| {
        let mut ledger = changed(Some(FUNDED));
        let mut own = Executed::new(submission().id);
        change(&mut own);
        ledger.transactions.push(own);
        fate(&ledger)
    };
    assert_eq!(with(|_| ()), Fate::Included);
    assert_eq!(with(|own| own.checkpoint = None), Fate::Open);
    assert_eq!(with(|own| (own.success, own.checkpoint) = (false, None)), Fate::Open);
    let failed = with(|own| (own.success, own.reason) = (false, Some("MoveAbort 7")));
    assert!(matches!(&failed, Fate::Dead(why) if why.contains("MoveAbort 7")), "{failed:?}");
}

#[test]
fn one_liar_of_three_does_not_decide_a_fate() {
    let decide = |submission: &Submission, ledger: &Ledger| {
        one_lie_decides_nothing::<FateOf>(submission, &Known::default(), |request| ledger.answer(request))
    };
    for dead in [changed(Some(FUNDED)), gone(VERSION, 2)] {
        assert!(matches!(decide(&submission(), &dead), Fate::Dead(_)));
    }
    for alive in [open(), changed(None), gone(VERSION, 9)] {
        assert_eq!(decide(&submission(), &alive), Fate::Open);
    }
    assert!(matches!(decide(&expiring(EPOCH - 1), &open()), Fate::Dead(_)));
    assert_eq!(decide(&expiring(EPOCH), &open()), Fate::Open);
    let other = Ledger { chain_id: MAINNET.to_owned(), ..changed(Some(FUNDED)) };
    assert!(matches!(outcome(&submission(), &other), Err(Fault::WrongChain { .. })));
}
