//! Sui through nodes that lie, fail or disagree: the result is "unknown" or a hold, never a proof of funding.
#![cfg(feature = "sui")]
mod endpoints;
mod fake;
mod preconditions;
mod prices;
mod replace;
mod send;
mod wallet;

use countersign::chains::UnixTime;
use std::collections::BTreeSet;

use countersign::reader::HtlcQuorum;
use countersign::sui::sui_sdk_types::Address;
use countersign::{
    Funded, SecretHash,
    chains::FinalityRule,
    evidence::{HtlcState, VerifiedTerms},
};
use countersign_client::Response;
use countersign_node::NodeError;

use crate::support::{judged, shows_no_key};
use fake::{Executed, HEAD, Ledger, NOW, Network, Object, address, bytes, digest_of, event, made, order, package, package_id, terms, word};

const RULE: FinalityRule = FinalityRule::new(countersign::chains::Finality::Finalized, 10_000, 600_000);

fn funded() -> Network {
    Network::new(&[Ledger::funded()])
}

fn one(change: impl FnOnce(&mut Ledger)) -> Network {
    let mut ledger = Ledger::funded();
    change(&mut ledger);
    Network::new(&[ledger])
}

async fn read_with(network: Network, terms: &VerifiedTerms) -> Result<HtlcQuorum, NodeError> {
    let nodes = network.connect();
    shows_no_key(nodes.sui("sui_testnet").unwrap().htlc(&terms.destination).await)
}

async fn read(network: Network) -> Result<HtlcQuorum, NodeError> {
    read_with(network, &terms()).await
}

async fn judge(network: Network) -> Result<Funded, String> {
    judged(read(network).await, &terms(), &RULE, NOW)
}

async fn unclear(network: Network) -> String {
    match read(network).await.unwrap().state().unwrap().0 {
        HtlcState::Unclear(why) => why,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_funded_order_is_evidence() {
    let terms = terms();
    for (count, needed) in [(1, 1), (2, 2), (3, 2)] {
        let quorum = read(Network::new(&vec![Ledger::funded(); count])).await.unwrap();
        let (state, seen) = quorum.state().unwrap();
        let HtlcState::Locked(locked) = &state else { panic!("{state:?}") };
        assert_eq!((&locked.initiator, &locked.redeemer), (&terms.destination.initiator, &terms.destination.redeemer));
        // The head is 62.682 seconds after the funding: 65.432 before the clock, which is 2.75 before the head.
        assert_eq!((locked.amount, locked.timelock, locked.elapsed), (terms.destination.amount, 7_200_000, 62_682));
        assert_eq!((&locked.token, locked.secret_hash, locked.covered), (&None, Some(terms.destination.secret_hash), true));
        assert_eq!((seen.height.get(), seen.hash.as_str(), seen.depth), (HEAD, hex::encode([9; 32]).as_str(), 62));
        assert_eq!((seen.is_safe, seen.is_finalized, seen.head_time.as_secs()), (true, true, NOW - 3));
        assert_eq!((seen.agreed, seen.needed), (needed, needed), "as soon as enough agree");
        assert!(Funded::judge(&terms, &quorum, &RULE, UnixTime::from_secs(NOW)).is_ok());
    }
}

#[tokio::test(start_paused = true)]
async fn three_requests_per_endpoint_and_one_for_its_identity() {
    let nodes = funded().connect();
    let terms = terms();
    let sui = nodes.sui("sui_testnet").unwrap();
    sui.htlc(&terms.destination).await.unwrap();
    sui.htlc(&terms.destination).await.unwrap();
    let each = ["BatchGetObjects", "GetTransaction", "GetCheckpoint"];
    assert_eq!(nodes.transport().methods("a.example"), [&["GetServiceInfo"][..], &each, &each].concat());
}

// ---- the reference SDK's own messages

/// A node whose answers @mysten/sui has encoded, with an order that the event's transaction changed last.
fn recorded(state: &'static str) -> Network {
    let answers = made()["answers"].clone();
    Network::new(&[Ledger::funded()]).answering(move |_, method, _| {
        let answer = answers.get(method).or_else(|| answers.get(format!("{method} {state}"))).unwrap();
        Some(Ok(Response::new(200, bytes(answer))))
    })
}

#[tokio::test(start_paused = true)]
async fn what_the_reference_sdk_encodes_is_evidence() {
    let (made, terms) = (made(), terms());
    let transaction = made["digests"]["transaction"].as_str().unwrap().to_owned();
    let quorum = read(recorded("Initiated")).await.unwrap();
    let (state, seen) = quorum.state().unwrap();
    let HtlcState::Locked(locked) = &state else { panic!("{state:?}") };
    assert_eq!((locked.amount, locked.elapsed), (terms.destination.amount, 62_682));
    assert_eq!((seen.height.get(), seen.depth, seen.is_finalized), (HEAD, 62, true));
    assert_eq!(seen.hash, made["digests"]["head"].as_str().unwrap());
    assert!(Funded::judge(&terms, &quorum, &RULE, UnixTime::from_secs(NOW)).is_ok());
    let redeemed = HtlcState::Redeemed { secret: Some(word(&made["order"]["secret"])), transaction: Some(transaction.clone()) };
    assert_eq!(read(recorded("Redeemed")).await.unwrap().state().unwrap().0, redeemed);
    assert_eq!(read(recorded("Refunded")).await.unwrap().state().unwrap().0, HtlcState::Refunded { transaction: Some(transaction) });
}

#[tokio::test(start_paused = true)]
async fn requests_are_those_of_the_reference_sdk() {
    let made = made();
    let nodes = recorded("Initiated").connect();
    let sui = nodes.sui("sui_testnet").unwrap();
    sui.htlc(&terms().destination).await.unwrap();
    let owner = address(&made["owner"]);
    sui.gas_price(countersign_node::Speed::Slow).await.unwrap();
    sui.coins(owner).await.unwrap();
    sui.balance(owner, &countersign::sui::htlc::sui()).await.unwrap();
    let seen = nodes.transport().seen.lock().unwrap();
    let expected = made["requests"].as_object().unwrap();
    let methods: BTreeSet<_> = seen.iter().map(|(_, url, _)| url.rsplit('/').next().unwrap()).collect();
    assert_eq!(methods, expected.keys().map(String::as_str).collect());
    for (_, url, body) in seen.iter() {
        let request = &expected[url.rsplit('/').next().unwrap()];
        assert_eq!((url.as_str(), hex::encode(body)), (request["url"].as_str().unwrap(), request["body"].as_str().unwrap().to_owned()));
    }
}

// ---- what is on chain

#[tokio::test(start_paused = true)]
async fn every_changed_term_holds_the_secret() {
    for (at, code) in [
        (98, "destination_differs"),
        (130, "destination_differs"),
        (162, "destination_differs"),
        (242, "destination_differs"),
        (234, "destination_not_covered"),
        (33, "destination_unclear"),
        (0, "destination_unclear"),
    ] {
        let network = one(|ledger| {
            // The lowest bit of the amount, the balance and the timelock was set, so the value is one less.
            ledger.objects[0].contents[at] ^= 1;
            ledger.transactions[0].events.clear();
        });
        assert_eq!(judge(network).await.unwrap_err(), code, "byte {at}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_order_of_another_kind_is_unclear() {
    let kind = order(false).kind;
    let other = |from: &str, to: &str| kind.replacen(from, to, 1);
    let pinned = package_id().to_string();
    for (kind, why) in [
        (other("::Order<", "::Offer<"), "the object is not an order of the contract"),
        (other("::sui::SUI", "::usdc::USDC"), "the order holds another coin than the pinned one"),
        (other(&pinned, &Address::new([8; 32]).to_string()), "the order belongs to another package than the pinned one"),
        (String::new(), "the object is not an order of the contract"),
    ] {
        assert_eq!(unclear(one(|ledger| ledger.objects[0].kind = kind)).await, why);
    }
    let layout = "the contract stores orders in an unknown layout";
    assert_eq!(unclear(one(|ledger| drop(ledger.objects[0].contents.split_off(200)))).await, layout);
    assert_eq!(unclear(one(|ledger| ledger.objects[0].contents.clear())).await, layout);
    assert_eq!(unclear(one(|ledger| drop(ledger.objects.remove(1)))).await, "the pinned package does not exist");
}

#[tokio::test(start_paused = true)]
async fn an_upgraded_package_keeps_the_types_of_the_first() {
    let first = Address::new([8; 32]);
    let upgraded = |ledger: &mut Ledger| {
        ledger.objects[0].kind = ledger.objects[0].kind.replace(&package_id().to_string(), &first.to_string());
        ledger.transactions[0].events[1].0 = format!("{first}::AtomicSwap::Initiated");
        ledger.objects[1] = package(first);
    };
    assert!(judge(one(upgraded)).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn an_order_that_is_not_there_is_absent_and_not_under_another_id() {
    let (state, seen) = read(one(|ledger| drop(ledger.objects.remove(0)))).await.unwrap().state().unwrap();
    assert_eq!((state, seen.height.get(), seen.depth, seen.is_finalized), (HtlcState::Absent, HEAD, 0, false));
    // The id that follows from the terms with the other chain word.
    let elsewhere = |ledger: &mut Ledger| ledger.objects[0].id = Some(address(&made()["order"]["fields"][1]));
    assert_eq!(unclear(one(elsewhere)).await, "the order has another id than the record");
    let twice = |ledger: &mut Ledger| {
        let second = Object { id: Some(address(&made()["order"]["fields"][1])), ..order(false) };
        ledger.objects.push(second);
    };
    assert_eq!(unclear(one(twice)).await, "there are two orders with these terms");
}

/// An id that follows from the terms with neither chain word, as a contract on the main network may use.
fn other_id(ledger: &mut Ledger, terms: &mut VerifiedTerms) {
    let id = [0x5a; 32];
    terms.destination.swap_id = hex::encode(id);
    terms.destination.swap_id_recomputed = false;
    let field = countersign::sui::read::field_id(address(&made()["order"]["registry"]), &id);
    let object = &mut ledger.objects[0];
    object.id = Some(field);
    object.contents[..32].copy_from_slice(field.as_bytes());
    object.contents[33..65].copy_from_slice(&id);
    ledger.transactions[0].events[1].1[1..33].copy_from_slice(&id);
}

#[tokio::test(start_paused = true)]
async fn an_id_that_does_not_follow_from_the_terms_needs_the_event() {
    let (mut ledger, mut terms) = (Ledger::funded(), terms());
    other_id(&mut ledger, &mut terms);
    let judged = async |ledger: &Ledger, terms: &VerifiedTerms| {
        let quorum = read_with(Network::new(std::slice::from_ref(ledger)), terms).await.unwrap();
        Funded::judge(terms, &quorum, &RULE, UnixTime::from_secs(NOW)).map_err(|hold| hold.code().name())
    };
    assert!(judged(&ledger, &terms).await.is_ok(), "the event shows the secret hash");
    let mut without = ledger.clone();
    without.transactions[0].events.pop();
    assert_eq!(judged(&without, &terms).await.unwrap_err(), "destination_unclear");
    let mut other = ledger.clone();
    other.transactions[0].events[1].1[40] ^= 1;
    assert_eq!(judged(&other, &terms).await.unwrap_err(), "destination_differs");
}

#[tokio::test(start_paused = true)]
async fn the_other_chain_word_proves_the_secret_hash_too() {
    let (mut ledger, mut terms, made) = (Ledger::funded(), terms(), made());
    let order = &made["order"];
    terms.destination.swap_id = order["ids"][1].as_str().unwrap().to_owned();
    terms.destination.swap_id_recomputed = false;
    let object = &mut ledger.objects[0];
    object.id = Some(address(&order["fields"][1]));
    object.contents[..32].copy_from_slice(&word(&order["fields"][1]));
    object.contents[33..65].copy_from_slice(&word(&order["ids"][1]));
    ledger.transactions[0].events.clear();
    let quorum = read_with(Network::new(&[ledger]), &terms).await.unwrap();
    assert!(Funded::judge(&terms, &quorum, &RULE, UnixTime::from_secs(NOW)).is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_transaction_in_no_checkpoint_is_not_final() {
    let early = |ledger: &mut Ledger| ledger.transactions[0].checkpoint = None;
    let (_, seen) = read(one(early)).await.unwrap().state().unwrap();
    assert_eq!((seen.depth, seen.is_safe, seen.is_finalized), (0, false, false));
    assert_eq!(judge(one(early)).await.unwrap_err(), "destination_not_final");
    // One endpoint that has not seen the checkpoint is enough to remove the mark.
    let (mut other, ledger) = (Ledger::funded(), Ledger::funded());
    early(&mut other);
    let (_, seen) = read(Network::new(&[ledger, other])).await.unwrap().state().unwrap();
    assert_eq!((seen.agreed, seen.depth, seen.is_finalized), (2, 0, false));
}

#[tokio::test(start_paused = true)]
async fn the_event_says_how_an_order_ended() {
    let transaction = Some(digest_of(2));
    let secret = Some(word(&made()["order"]["secret"]));
    let (state, seen) = read(Network::new(&[Ledger::ended("Redeemed")])).await.unwrap().state().unwrap();
    assert_eq!(state, HtlcState::Redeemed { secret, transaction: transaction.clone() });
    assert!(seen.is_finalized);
    let (state, _) = read(Network::new(&[Ledger::ended("Refunded")])).await.unwrap().state().unwrap();
    assert_eq!(state, HtlcState::Refunded { transaction });
    assert_eq!(judge(Network::new(&[Ledger::ended("Redeemed")])).await.unwrap_err(), "destination_redeemed");
    assert_eq!(judge(Network::new(&[Ledger::ended("Refunded")])).await.unwrap_err(), "destination_refunded");
}

#[tokio::test(start_paused = true)]
async fn a_forged_event_says_nothing() {
    let ended = |change: &dyn Fn(&mut Executed)| {
        let mut ledger = Ledger::ended("Redeemed");
        change(&mut ledger.transactions[0]);
        Network::new(&[ledger])
    };
    let silent = "the order has ended, and no event shows how";
    assert_eq!(unclear(ended(&|transaction| transaction.events.clear())).await, silent);
    // An event of another package, one of another order, and one with another name.
    assert_eq!(unclear(ended(&|transaction| transaction.events[0].0 = "0x7::AtomicSwap::Redeemed".to_owned())).await, silent);
    assert_eq!(unclear(ended(&|transaction| transaction.events[0].1[5] ^= 1)).await, silent);
    assert_eq!(unclear(ended(&|transaction| transaction.events[0].0.push('2'))).await, silent);
    let twice = ended(&|transaction| transaction.events.push(event("Refunded")));
    assert_eq!(unclear(twice).await, "the order has ended more than once");
    let lost = ended(&|transaction| transaction.events[0].1[90] ^= 1);
    assert_eq!(unclear(lost).await, "the secret does not hash to the secret hash");
    let other = ended(&|transaction| {
        let contents = &mut transaction.events[0].1;
        contents[67..].fill(7);
        contents[34..66].copy_from_slice(&SecretHash::of(&[7; 32]).0);
    });
    assert_eq!(unclear(other).await, "the order was redeemed with another secret");
    // An open order whose last event contradicts that.
    let mut open = Ledger::funded();
    open.transactions[0].events = vec![event("Refunded")];
    assert_eq!(unclear(Network::new(&[open])).await, "the events contradict the order");
    let mut amount = Ledger::funded();
    amount.transactions[0].events[1].1[66] ^= 1;
    assert_eq!(unclear(Network::new(&[amount])).await, "the events contradict the order");
}
