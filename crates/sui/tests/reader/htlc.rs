//! Tests what an honest chain shows of an HTLC, including the cases in which two readings once differed: `U1` to
//! `U9`, `E1`, `E2`, `G1` to `G4`.

use countersign_core::reader::{Agree, Fault, Known, Observation, Quorum};
use countersign_core::{Account, Family, HtlcState, HtlcTerms, LockedHtlc, SecretHash, U256};
use countersign_sui::reader::Htlc;
use countersign_sui::sui_sdk_types::Address;
use countersign_testkit::chain::sui::{
    FUNDED, HEAD, Ledger, MAINNET, NOW, Object, address, digest_of, event, made, order, package, package_id, terms, word,
};

use crate::reader::{changed, drive, read, unclear};

pub(crate) fn locked(state: HtlcState) -> LockedHtlc {
    match state {
        HtlcState::Locked(locked) => locked,
        other => panic!("{other:?}"),
    }
}

pub(crate) fn malformed_at(fault: &Fault) -> &str {
    match fault {
        Fault::Malformed(refusal) => refusal.location(),
        other => panic!("{other:?}"),
    }
}

/// The methods of the rounds, after the identity.
const ROUNDS: [&str; 3] = ["BatchGetObjects", "GetTransaction", "GetCheckpoint"];

fn rounds(ledger: &Ledger) -> Vec<Vec<String>> {
    drive::<Htlc>(&terms(), &Known::default(), |_, request| ledger.answer(request)).1
}

#[test]
fn an_open_or_ended_order_takes_three_rounds_and_an_absent_one_two() {
    for ledger in [Ledger::funded(), Ledger::ended("Redeemed"), Ledger::ended("Refunded")] {
        assert_eq!(rounds(&ledger), ROUNDS.map(|method| vec!["GetServiceInfo".to_owned(), method.to_owned()]));
    }
    let mut absent = Ledger::funded();
    absent.objects.remove(0);
    assert_eq!(rounds(&absent), ["BatchGetObjects", "GetCheckpoint"].map(|method| vec!["GetServiceInfo".to_owned(), method.to_owned()]));
    assert_eq!(read(&absent, &terms()).unwrap().state, HtlcState::Absent);
}

#[test]
fn a_funded_order_has_the_parties_the_amount_and_the_timelock_of_the_chain() {
    let (terms, found) = (terms(), read(&Ledger::funded(), &terms()).unwrap());
    let expected = LockedHtlc::new(terms.initiator, terms.redeemer, terms.amount, terms.timelock, 62_682);
    assert_eq!(locked(found.state), expected.with_secret_hash(terms.secret_hash));
    assert_eq!((found.seen.height.get(), found.seen.depth, found.seen.is_safe, found.seen.is_finalized), (HEAD, 62, true, true));
    assert_eq!(found.seen.hash, hex::encode([9; 32]));
    assert_eq!(found.origin, [&411_u64.to_be_bytes()[..], &[1; 32]].concat());

    // Each byte of the contents changes what is locked, or the order cannot be judged: nothing comes from the terms.
    let account = |bytes: &[u8]| Account::from_array(Family::Sui, <[u8; 32]>::try_from(bytes).unwrap());
    let number = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().unwrap());
    for at in 0..274 {
        let mut ledger = Ledger::funded();
        ledger.objects[0].contents[at] ^= 0x80;
        ledger.transactions[0].events.clear();
        let contents = ledger.objects[0].contents.clone();
        match read(&ledger, &super::terms()).map(|found| found.state) {
            Ok(HtlcState::Locked(locked)) => {
                assert_eq!((locked.initiator, locked.redeemer), (account(&contents[98..130]), account(&contents[130..162])));
                assert_eq!((locked.amount, locked.timelock), (U256::from(number(&contents[162..170])), number(&contents[242..250])));
                assert_eq!(locked.elapsed, (NOW - 3) * 1_000 + 250 - number(&contents[170..178]));
                assert_eq!(locked.covered, number(&contents[234..242]) >= number(&contents[162..170]));
            }
            Ok(HtlcState::Unclear(_)) | Err(Fault::Malformed(_)) => {}
            other => panic!("byte {at}: {other:?}"),
        }
    }
}

// ---- types and ids

#[test]
fn u1_an_upgraded_package_keeps_the_types_of_the_one_that_defined_them() {
    let first = Address::new([8; 32]);
    let upgraded = |ledger: &mut Ledger| {
        ledger.objects[0].kind = ledger.objects[0].kind.replace(&package_id().to_string(), &first.to_string());
        ledger.transactions[0].events[1].0 = format!("{first}::AtomicSwap::Initiated");
    };
    let found = changed(|ledger| {
        upgraded(ledger);
        ledger.objects[1] = package(first);
    });
    assert_eq!(locked(found.unwrap().state).secret_hash, Some(terms().secret_hash));
    // The pinned package does not say so, or says it of another one.
    assert_eq!(unclear(changed(upgraded)), "the order belongs to another package than the pinned one");
    let other = changed(|ledger| {
        upgraded(ledger);
        ledger.objects[1] = package(Address::new([7; 32]));
    });
    assert_eq!(unclear(other), "the order belongs to another package than the pinned one");
}

#[test]
fn u2_an_order_under_another_id_than_the_record_is_unclear() {
    let fields = &made()["order"]["fields"];
    let elsewhere = changed(|ledger| ledger.objects[0].id = Some(address(&fields[1])));
    assert_eq!(unclear(elsewhere), "the order has another id than the record");
    // The record has the other id, and the chain an order under the first one.
    let mut other = terms();
    other.swap_id = made()["order"]["ids"][1].as_str().unwrap().to_owned();
    assert_eq!(unclear(read(&Ledger::funded(), &other)), "the order has another id than the record");
}

#[test]
fn u3_two_orders_with_these_terms_are_unclear() {
    let second = Object { id: Some(address(&made()["order"]["fields"][1])), ..order(false) };
    assert_eq!(unclear(changed(|ledger| ledger.objects.push(second))), "there are two orders with these terms");
}

/// An id that follows from the terms with neither chain word.
fn other_id() -> (Ledger, HtlcTerms) {
    let (mut ledger, mut terms, id) = (Ledger::funded(), terms(), [0x5a; 32]);
    terms.swap_id = hex::encode(id);
    let field = countersign_sui::read::field_id(address(&made()["order"]["registry"]), &id);
    let object = &mut ledger.objects[0];
    object.id = Some(field);
    object.contents[..32].copy_from_slice(field.as_bytes());
    object.contents[33..65].copy_from_slice(&id);
    ledger.transactions[0].events[1].1[1..33].copy_from_slice(&id);
    (ledger, terms)
}

#[test]
fn u4_an_id_without_a_known_formula_takes_the_secret_hash_from_the_event() {
    let (mut ledger, terms) = other_id();
    assert_eq!(locked(read(&ledger, &terms).unwrap().state).secret_hash, Some(terms.secret_hash));
    ledger.transactions[0].events[1].1[40] ^= 1;
    assert_ne!(locked(read(&ledger, &terms).unwrap().state).secret_hash, Some(terms.secret_hash));
    ledger.transactions[0].events.clear();
    assert_eq!(locked(read(&ledger, &terms).unwrap().state).secret_hash, None);
    // An id that proves the hash is not overruled by the event.
    let contradicts = changed(|ledger| ledger.transactions[0].events[1].1[40] ^= 1);
    assert_eq!(unclear(contradicts), "the events contradict the order");
}

#[test]
fn u5_without_the_pinned_package_nothing_is_clear() {
    for gone in [|ledger: &mut Ledger| drop(ledger.objects.remove(1)), |ledger: &mut Ledger| ledger.objects[1].package = None] {
        assert_eq!(unclear(changed(gone)), "the pinned package does not exist");
        let absent = changed(|ledger| {
            gone(ledger);
            ledger.objects.remove(0);
        });
        assert_eq!(unclear(absent), "the pinned package does not exist");
    }
}

// ---- events

#[test]
fn u6_more_than_one_event_about_the_order_is_unclear() {
    let ends = |first, second| {
        let mut ledger = Ledger::ended(first);
        ledger.transactions[0].events.push(event(second));
        unclear(read(&ledger, &terms()))
    };
    assert_eq!(ends("Redeemed", "Refunded"), "the order has ended more than once");
    assert_eq!(ends("Refunded", "Refunded"), "the order has ended more than once");
    let twice = changed(|ledger| ledger.transactions[0].events.push(event("Initiated")));
    assert_eq!(unclear(twice), "the events contradict the order");
    // More events than a transaction can have.
    let endless = changed(|ledger| ledger.transactions[0].events = vec![("0x7::a::B".to_owned(), vec![]); 1_025]);
    assert_eq!(malformed_at(&endless.unwrap_err()), "/transaction/events/events");
}

#[test]
fn an_end_needs_its_event_and_the_secret_of_the_hash() {
    let (made, transaction) = (made(), Some(digest_of(2)));
    let found = read(&Ledger::ended("Redeemed"), &terms()).unwrap();
    let secret = Some(word(&made["order"]["secret"]));
    assert_eq!(found.state, HtlcState::Redeemed { secret, transaction: transaction.clone() });
    assert_eq!(found.seen.depth, 62);
    assert_eq!(read(&Ledger::ended("Refunded"), &terms()).unwrap().state, HtlcState::Refunded { transaction });
    let mut silent = Ledger::ended("Redeemed");
    silent.transactions[0].events.clear();
    assert_eq!(unclear(read(&silent, &terms())), "the order has ended, and no event shows how");
    for at in 0..99 {
        let mut forged = Ledger::ended("Redeemed");
        forged.transactions[0].events[0].1[at] ^= 1;
        unclear(read(&forged, &terms()));
    }
    let mut other = Ledger::ended("Redeemed");
    other.transactions[0].events[0].1[67..].fill(7);
    other.transactions[0].events[0].1[34..66].copy_from_slice(&SecretHash::of(&[7; 32]).0);
    assert_eq!(unclear(read(&other, &terms())), "the order was redeemed with another secret");
}

// ---- time and height

#[test]
fn u7_a_transaction_in_no_checkpoint_has_no_depth_and_no_mark() {
    let seen = changed(|ledger| ledger.transactions[0].checkpoint = None).unwrap().seen;
    assert_eq!((seen.depth, seen.is_safe, seen.is_finalized), (0, false, false));
    let newest = changed(|ledger| ledger.transactions[0].checkpoint = Some(HEAD)).unwrap().seen;
    assert_eq!((newest.depth, newest.is_finalized), (1, true));
}

#[test]
fn u8_an_order_from_the_future_is_a_fault_of_the_endpoint() {
    let old = changed(|ledger| ledger.time = (NOW - 100, 0)).unwrap_err();
    assert_eq!(malformed_at(&old), "/object/contents");
    let ahead = changed(|ledger| ledger.transactions[0].checkpoint = Some(HEAD + 1)).unwrap_err();
    assert_eq!(malformed_at(&ahead), "/transaction/checkpoint");
    let mut ended = Ledger::ended("Redeemed");
    ended.transactions[0].checkpoint = Some(u64::MAX);
    assert_eq!(malformed_at(&read(&ended, &terms()).unwrap_err()), "/transaction/checkpoint");
}

#[test]
fn u9_an_object_without_type_or_contents_is_not_absent() {
    let kind = changed(|ledger| ledger.objects[0].kind.clear());
    assert_eq!(unclear(kind), "the object is not an order of the contract");
    let contents = changed(|ledger| ledger.objects[0].contents.clear());
    assert_eq!(unclear(contents), "the contract stores orders in an unknown layout");
}

// ---- what every family shares

#[test]
fn e1_every_round_shows_the_chain() {
    for wrong in 0..3 {
        let ledgers = [Ledger::funded(), Ledger { chain_id: MAINNET.to_owned(), ..Ledger::funded() }];
        let (found, asked) =
            drive::<Htlc>(&terms(), &Known::default(), |round, request| ledgers[usize::from(round == wrong)].answer(request));
        assert!(matches!(found, Err(Fault::WrongChain { .. })), "{found:?}");
        assert_eq!(asked.len(), wrong + 1, "nothing else is asked");
    }
}

#[test]
fn e2_a_height_that_goes_back_is_a_fault() {
    let at = |height: u64| {
        let known = Known::default().with_height(height.into());
        drive::<Htlc>(&terms(), &known, |_, request| Ledger::funded().answer(request)).0
    };
    assert_eq!(at(HEAD + 128).unwrap().known().height().get(), HEAD);
    assert_eq!(at(HEAD + 129).unwrap_err(), Fault::WentBack { before: (HEAD + 129).into(), now: HEAD.into() });
}

#[test]
fn g1_and_g2_time_and_height_are_those_of_this_endpoint() {
    let behind = changed(|ledger| (ledger.height, ledger.time, ledger.digest) = (FUNDED + 4, (NOW - 50, 0), digest_of(6))).unwrap();
    assert_eq!((behind.seen.height.get(), behind.seen.head_time.as_secs(), behind.seen.depth), (FUNDED + 4, NOW - 50, 5));
    assert_eq!(behind.seen.hash, hex::encode([6; 32]));
    let LockedHtlc { elapsed, least_elapsed, .. } = locked(behind.state.clone());
    assert_eq!((elapsed, least_elapsed), (62_682 - 47_250, 62_682 - 47_250));
    assert_eq!(behind.key(), read(&Ledger::funded(), &terms()).unwrap().key(), "they agree");
    assert_eq!((behind.seen.agreed, behind.seen.needed), (1, 1));
}

#[test]
fn g3_and_g4_an_observation_counts_once_and_belongs_to_its_terms() {
    let observe =
        || -> Observation<Htlc> { drive::<Htlc>(&terms(), &Known::default(), |_, request| Ledger::funded().answer(request)).0.unwrap() };
    let mut quorum = Quorum::new(["one", "another"], 2).unwrap();
    quorum.hear("one", Ok(observe()));
    quorum.hear("one", Ok(observe()));
    assert!(quorum.agreed::<()>().is_err());
    quorum.hear("another", Ok(observe()));
    assert_eq!(quorum.agreed::<()>().unwrap().len(), 2);
    assert_eq!(observe().subject(), &terms());
}

#[test]
fn endpoints_agree_on_the_version_and_the_digest_of_the_object() {
    let honest = read(&Ledger::funded(), &terms()).unwrap();
    for change in [|object: &mut Object| object.version = Some(412), |object: &mut Object| object.digest = Some(digest_of(8))] {
        assert_ne!(changed(|ledger| change(&mut ledger.objects[0])).unwrap().key(), honest.key());
    }
}
