//! Sui through nodes that lie, fail or disagree: an unknown or a hold, never the proof of a funding.
#![cfg(feature = "sui")]
#![allow(
    clippy::arithmetic_side_effects,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test ends by panicking"
)]

mod fake;
mod proto;
mod wallet;

use countersign::sui::sui_sdk_types::{Address, Digest};
use countersign::{FinalityRule, Funded, Hold, HtlcState, SecretHash, SeenAt, U256, VerifiedTerms};
use countersign_client::driver::Chains as _;
use countersign_client::{Response, TransportErrorKind};
use countersign_node::sui::{PackageDescription, UpgradeAuthority};
use countersign_node::{NodeError, Nodes};

use fake::{
    Executed, FUNDED, HEAD, Ledger, MAINNET, NOW, Network, Object, address, bytes, digest_of, event, made, order, package, package_id,
    terms, word,
};
use proto::{Message, answer, error, frame};

const RULE: FinalityRule = FinalityRule::new(countersign::Finality::Finalized, 10_000, 600_000);

fn funded() -> Network {
    Network::new(&[Ledger::funded()])
}

fn one(change: impl FnOnce(&mut Ledger)) -> Network {
    let mut ledger = Ledger::funded();
    change(&mut ledger);
    Network::new(&[ledger])
}

/// A node whose every answer is honest but those of one method.
fn lying(method: &'static str, body: impl Fn() -> Result<Response, TransportErrorKind> + Send + Sync + 'static) -> Network {
    funded().answering(move |_, asked, _| (asked == method).then(&body))
}

async fn read_with(network: Network, terms: &VerifiedTerms) -> Result<(HtlcState, SeenAt), NodeError> {
    let nodes = network.connect();
    let read = nodes.sui("sui_testnet").unwrap().htlc(&terms.destination).await;
    if let Err(error) = &read {
        assert!(!error.to_string().contains("the-key"), "{error}");
        assert!(!format!("{error:?}").contains("the-key"), "{error:?}");
    }
    read
}

async fn read(network: Network) -> Result<(HtlcState, SeenAt), NodeError> {
    read_with(network, &terms()).await
}

async fn judge(network: Network) -> Result<Funded, String> {
    let (state, seen) = read(network).await.map_err(|error| error.code().to_owned())?;
    Funded::judge(&terms(), &state, &seen, &RULE, NOW).map_err(|hold| hold.code().to_owned())
}

async fn unclear(network: Network) -> String {
    match read(network).await.unwrap().0 {
        HtlcState::Unclear(why) => why,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_funded_order_is_evidence() {
    let terms = terms();
    for count in [1, 2, 3] {
        let (state, seen) = read(Network::new(&vec![Ledger::funded(); count])).await.unwrap();
        let HtlcState::Locked(locked) = &state else { panic!("{state:?}") };
        assert_eq!((&locked.initiator, &locked.redeemer), (&terms.destination.initiator, &terms.destination.redeemer));
        // The head is 62.682 seconds after the funding: 65.432 before the clock, which is 2.75 before the head.
        assert_eq!((locked.amount, locked.timelock, locked.elapsed), (terms.destination.amount, 7_200_000, 62_682));
        assert_eq!((&locked.token, locked.secret_hash, locked.covered), (&None, Some(terms.destination.secret_hash), true));
        assert_eq!((seen.height, seen.hash.as_str(), seen.depth), (HEAD, hex::encode([9; 32]).as_str(), 62));
        assert_eq!((seen.is_safe, seen.is_finalized, seen.head_time), (true, true, NOW - 3));
        assert_eq!(u32::try_from(count).unwrap(), seen.agreed);
        assert!(Funded::judge(&terms, &state, &seen, &RULE, NOW).is_ok());
    }
}

#[tokio::test]
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

/// A node whose answers @mysten/sui has encoded, of an order that was last changed as the event says.
fn recorded(state: &'static str) -> Network {
    let answers = made()["answers"].clone();
    Network::new(&[Ledger::funded()]).answering(move |_, method, _| {
        let answer = answers.get(method).or_else(|| answers.get(format!("{method} {state}"))).unwrap();
        Some(Ok(Response::new(200, bytes(answer))))
    })
}

#[tokio::test]
async fn what_the_reference_sdk_encodes_is_evidence() {
    let (made, terms) = (made(), terms());
    let transaction = made["digests"]["transaction"].as_str().unwrap().to_owned();
    let (state, seen) = read(recorded("Initiated")).await.unwrap();
    let HtlcState::Locked(locked) = &state else { panic!("{state:?}") };
    assert_eq!((locked.amount, locked.elapsed), (terms.destination.amount, 62_682));
    assert_eq!((seen.height, seen.depth, seen.is_finalized), (HEAD, 62, true));
    assert_eq!(seen.hash, made["digests"]["head"].as_str().unwrap());
    assert!(Funded::judge(&terms, &state, &seen, &RULE, NOW).is_ok());
    let redeemed = HtlcState::Redeemed { secret: Some(word(&made["order"]["secret"])), transaction: Some(transaction.clone()) };
    assert_eq!(read(recorded("Redeemed")).await.unwrap().0, redeemed);
    assert_eq!(read(recorded("Refunded")).await.unwrap().0, HtlcState::Refunded { transaction: Some(transaction) });
}

#[tokio::test]
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
    assert_eq!(seen.len(), expected.len());
    for (_, url, body) in seen.iter() {
        let request = &expected[url.rsplit('/').next().unwrap()];
        assert_eq!((url.as_str(), hex::encode(body)), (request["url"].as_str().unwrap(), request["body"].as_str().unwrap().to_owned()));
    }
}

// ---- what is on chain

#[tokio::test]
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
            // Of the amount, of the balance and of the timelock the lowest bit was set: one less.
            ledger.objects[0].contents[at] ^= 1;
            ledger.transactions[0].events.clear();
        });
        assert_eq!(judge(network).await.unwrap_err(), code, "byte {at}");
    }
}

#[tokio::test]
async fn an_order_of_another_kind_is_unclear() {
    let kind = order(false).kind;
    let other = |from: &str, to: &str| kind.replacen(from, to, 1);
    let pinned = package_id().to_string();
    for (kind, why) in [
        (other("::Order<", "::Offer<"), "the object is not an order of the contract"),
        (other("::sui::SUI", "::usdc::USDC"), "the order holds another coin than the pinned one"),
        (other(&pinned, &Address::new([8; 32]).to_string()), "the order is of another package than the pinned one"),
        (String::new(), "the object is not an order of the contract"),
    ] {
        assert_eq!(unclear(one(|ledger| ledger.objects[0].kind = kind)).await, why);
    }
    let layout = "the contract stores orders in an unknown layout";
    assert_eq!(unclear(one(|ledger| drop(ledger.objects[0].contents.split_off(200)))).await, layout);
    assert_eq!(unclear(one(|ledger| ledger.objects[0].contents.clear())).await, layout);
    assert_eq!(unclear(one(|ledger| drop(ledger.objects.remove(1)))).await, "the pinned package does not exist");
}

#[tokio::test]
async fn an_upgraded_package_keeps_the_types_of_the_first() {
    let first = Address::new([8; 32]);
    let upgraded = |ledger: &mut Ledger| {
        ledger.objects[0].kind = ledger.objects[0].kind.replace(&package_id().to_string(), &first.to_string());
        ledger.transactions[0].events[1].0 = format!("{first}::AtomicSwap::Initiated");
        ledger.objects[1] = package(first);
    };
    assert!(judge(one(upgraded)).await.is_ok());
}

#[tokio::test]
async fn an_order_that_is_not_there_is_absent_and_not_under_another_id() {
    let (state, seen) = read(one(|ledger| drop(ledger.objects.remove(0)))).await.unwrap();
    assert_eq!((state, seen.height, seen.depth, seen.is_finalized), (HtlcState::Absent, HEAD, 0, false));
    // The id that the terms have with the other chain word.
    let elsewhere = |ledger: &mut Ledger| ledger.objects[0].id = Some(address(&made()["order"]["fields"][1]));
    assert_eq!(unclear(one(elsewhere)).await, "the order has another id than the record says");
    let twice = |ledger: &mut Ledger| {
        let second = Object { id: Some(address(&made()["order"]["fields"][1])), ..order(false) };
        ledger.objects.push(second);
    };
    assert_eq!(unclear(one(twice)).await, "there are two orders with these terms");
}

/// Another id than the terms give with either chain word, as a main network's contract may have.
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

#[tokio::test]
async fn an_id_that_does_not_follow_from_the_terms_needs_the_event() {
    let (mut ledger, mut terms) = (Ledger::funded(), terms());
    other_id(&mut ledger, &mut terms);
    let judged = async |ledger: &Ledger, terms: &VerifiedTerms| {
        let (state, seen) = read_with(Network::new(std::slice::from_ref(ledger)), terms).await.unwrap();
        Funded::judge(terms, &state, &seen, &RULE, NOW).map_err(|hold| hold.code())
    };
    assert!(judged(&ledger, &terms).await.is_ok(), "the event shows the secret hash");
    let mut without = ledger.clone();
    without.transactions[0].events.pop();
    assert_eq!(judged(&without, &terms).await.unwrap_err(), "destination_unclear");
    let mut other = ledger.clone();
    other.transactions[0].events[1].1[40] ^= 1;
    assert_eq!(judged(&other, &terms).await.unwrap_err(), "destination_differs");
}

#[tokio::test]
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
    let (state, seen) = read_with(Network::new(&[ledger]), &terms).await.unwrap();
    assert!(Funded::judge(&terms, &state, &seen, &RULE, NOW).is_ok());
}

#[tokio::test]
async fn a_transaction_in_no_checkpoint_is_not_final() {
    let early = |ledger: &mut Ledger| ledger.transactions[0].checkpoint = None;
    let (_, seen) = read(one(early)).await.unwrap();
    assert_eq!((seen.depth, seen.is_safe, seen.is_finalized), (0, false, false));
    assert_eq!(judge(one(early)).await.unwrap_err(), "destination_not_final");
    // One endpoint that has not seen the checkpoint is enough.
    let (mut other, ledger) = (Ledger::funded(), Ledger::funded());
    early(&mut other);
    let (_, seen) = read(Network::new(&[ledger, other])).await.unwrap();
    assert_eq!((seen.agreed, seen.depth, seen.is_finalized), (2, 0, false));
}

#[tokio::test]
async fn the_event_says_how_an_order_ended() {
    let transaction = Some(digest_of(2));
    let secret = Some(word(&made()["order"]["secret"]));
    let (state, seen) = read(Network::new(&[Ledger::ended("Redeemed")])).await.unwrap();
    assert_eq!(state, HtlcState::Redeemed { secret, transaction: transaction.clone() });
    assert!(seen.is_finalized);
    let (state, _) = read(Network::new(&[Ledger::ended("Refunded")])).await.unwrap();
    assert_eq!(state, HtlcState::Refunded { transaction });
    assert_eq!(judge(Network::new(&[Ledger::ended("Redeemed")])).await.unwrap_err(), "destination_redeemed");
    assert_eq!(judge(Network::new(&[Ledger::ended("Refunded")])).await.unwrap_err(), "destination_refunded");
}

#[tokio::test]
async fn a_forged_event_says_nothing() {
    let ended = |change: &dyn Fn(&mut Executed)| {
        let mut ledger = Ledger::ended("Redeemed");
        change(&mut ledger.transactions[0]);
        Network::new(&[ledger])
    };
    let silent = "the order has ended, and no event says how";
    assert_eq!(unclear(ended(&|transaction| transaction.events.clear())).await, silent);
    // Another package's event, another order's, and one of another name.
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
    // An order that is open, whose last event says that it is not.
    let mut open = Ledger::funded();
    open.transactions[0].events = vec![event("Refunded")];
    assert_eq!(unclear(Network::new(&[open])).await, "the events contradict the order");
    let mut amount = Ledger::funded();
    amount.transactions[0].events[1].1[66] ^= 1;
    assert_eq!(unclear(Network::new(&[amount])).await, "the events contradict the order");
}

// ---- endpoints

#[tokio::test]
async fn endpoints_of_other_chains_are_asked_nothing_else() {
    for chain_id in [MAINNET, "", "35834a8a", &digest_of(7)] {
        let nodes = one(|ledger| chain_id.clone_into(&mut ledger.chain_id)).connect();
        let error = nodes.sui("sui_testnet").unwrap().htlc(&terms().destination).await.unwrap_err();
        assert!(matches!(&error, NodeError::WrongChain { .. }), "{error}");
        assert_eq!(nodes.transport().methods("a.example"), ["GetServiceInfo"]);
    }
    let main = one(|ledger| MAINNET.clone_into(&mut ledger.chain_id)).connect_to("sui");
    assert_eq!(main.head("sui", 0).await.unwrap().height, HEAD);
}

#[tokio::test]
async fn each_endpoint_shows_its_newest_checkpoint() {
    let nodes = funded().connect();
    let head = nodes.head("sui_testnet", 0).await.unwrap();
    assert_eq!((head.height, head.hash.as_str(), head.time), (HEAD, hex::encode([9; 32]).as_str(), NOW - 3));
    assert!(nodes.has("sui_testnet") && nodes.sui("sui").is_err());
}

#[tokio::test]
async fn enough_endpoints_must_agree() {
    let (good, mut lie) = (Ledger::funded(), Ledger::funded());
    lie.objects[0].contents[162] ^= 1;
    lie.transactions[0].events.clear();
    for (ledgers, is_funded) in [
        (vec![good.clone(), good.clone(), lie.clone()], true),
        (vec![good.clone(), lie.clone(), lie.clone()], false),
        (vec![good.clone(), lie.clone()], false),
    ] {
        let judged = judge(Network::new(&ledgers)).await;
        assert_eq!(judged.is_ok(), is_funded, "{judged:?}");
    }
    // The same order in an object of another version is another answer.
    for change in [|object: &mut Object| object.version = Some(412), |object: &mut Object| object.digest = Some(digest_of(8))] {
        let mut other = good.clone();
        change(&mut other.objects[0]);
        assert_eq!(judge(Network::new(&[good.clone(), other])).await.unwrap_err(), "node_disagree");
    }
}

#[tokio::test]
async fn the_worst_of_the_agreeing_endpoints_counts() {
    let mut behind = Ledger::funded();
    (behind.height, behind.time, behind.digest) = (FUNDED + 4, (NOW - 50, 0), digest_of(6));
    let (state, seen) = read(Network::new(&[Ledger::funded(), behind])).await.unwrap();
    let HtlcState::Locked(locked) = state else { panic!("{state:?}") };
    assert_eq!(locked.elapsed, 62_682, "the most that has passed");
    assert_eq!((seen.height, seen.depth, seen.head_time), (FUNDED + 4, 5, NOW - 50));
    assert_eq!(seen.hash, hex::encode([6; 32]));
}

#[tokio::test]
async fn an_old_head_is_stale() {
    let old = one(|ledger| ledger.time = (NOW - 121, 0));
    // Older than the order itself, which no node can know.
    assert_eq!(judge(old).await.unwrap_err(), "node_malformed");
    let (state, seen) = read(funded()).await.unwrap();
    let held = Funded::judge(&terms(), &state, &seen, &RULE, NOW + 200).unwrap_err();
    assert!(matches!(held, Hold::Stale { .. }), "{held}");
}

#[tokio::test]
async fn a_chain_that_becomes_shorter_is_unknown() {
    let nodes = funded().connect();
    let sui = nodes.sui("sui_testnet").unwrap();
    let height = |height| nodes.transport().ledgers.lock().unwrap()[0].height = height;
    sui.htlc(&terms().destination).await.unwrap();
    height(HEAD + 200);
    sui.htlc(&terms().destination).await.unwrap();
    // Neighbours behind one address are some checkpoints apart.
    height(HEAD + 72);
    sui.htlc(&terms().destination).await.unwrap();
    height(HEAD + 71);
    let error = sui.htlc(&terms().destination).await.unwrap_err();
    assert_eq!((error.code(), error.is_transient()), ("node_went_back", true));
}

#[tokio::test]
async fn a_node_that_contradicts_itself_is_unknown() {
    let changes: [fn(&mut Ledger); 9] = [
        |ledger| ledger.transactions[0].checkpoint = Some(HEAD + 1),
        |ledger| ledger.transactions[0].digest = digest_of(7),
        |ledger| ledger.objects[0].transaction = None,
        |ledger| ledger.objects[0].transaction = Some("not base58".to_owned()),
        |ledger| ledger.objects[0].version = None,
        |ledger| ledger.objects[0].digest = None,
        |ledger| ledger.digest = "short".to_owned(),
        |ledger| ledger.time = (NOW, 1_000_000_000),
        |ledger| ledger.time = (u64::MAX, 0),
    ];
    for (index, change) in changes.into_iter().enumerate() {
        assert_eq!(judge(one(change)).await.unwrap_err(), "node_malformed", "{index}");
    }
}

#[tokio::test]
async fn answers_to_another_question_are_unknown() {
    let object = |object: &Object| {
        let id = object.id.unwrap().to_string();
        Message::default().message(1, &Message::default().text(2, &id).number(3, 1).text(6, &object.kind))
    };
    let (first, second, missing) =
        (object(&order(false)), object(&package(package_id())), Message::default().message(2, &Message::default().number(1, 5)));
    let busy = Message::default().message(2, &Message::default().number(1, 14).text(2, "busy"));
    for (results, code) in [
        (vec![], "node_malformed"),
        (vec![&first, &second], "node_malformed"),
        (vec![&first, &missing, &second, &missing], "node_malformed"),
        (vec![&second, &missing, &first], "node_malformed"),
        (vec![&first, &busy, &second], "node_error"),
        (vec![&busy, &missing, &second], "node_error"),
    ] {
        let body = answer(&Message::default().all(1, results));
        assert_eq!(judge(lying("BatchGetObjects", move || Ok(Response::new(200, body.clone())))).await.unwrap_err(), code);
    }
    // Another transaction than the one that was asked for.
    let other = answer(&Message::default().message(1, &Executed::new(digest_of(7)).message()));
    assert_eq!(judge(lying("GetTransaction", move || Ok(Response::new(200, other.clone())))).await.unwrap_err(), "node_malformed");
}

#[tokio::test]
async fn bodies_that_are_no_answer_are_unknown() {
    let message = Message::default().text(1, "x");
    let good = answer(&message);
    let cases: Vec<(Vec<u8>, &str)> = vec![
        (Vec::new(), "node_malformed"),
        (b"<html>busy</html>".to_vec(), "node_malformed"),
        (br#"{"error":"busy"}"#.to_vec(), "node_malformed"),
        // Cut anywhere.
        (good[..3].to_vec(), "node_malformed"),
        (good[..7].to_vec(), "node_malformed"),
        (good[..8].to_vec(), "node_malformed"),
        (good[..good.len() - 1].to_vec(), "node_malformed"),
        // More than one answer, or something behind it.
        ([&good[..], b"\n"].concat(), "node_malformed"),
        ([&good[..], &good].concat(), "node_malformed"),
        ([frame(0, &message.0), good.clone()].concat(), "node_malformed"),
        // Compressed, a message of another form, trailers that are none.
        ([frame(1, &message.0), frame(0x80, b"grpc-status:0\r\n")].concat(), "node_malformed"),
        ([frame(0, &[0xff; 9]), frame(0x80, b"grpc-status:0\r\n")].concat(), "node_malformed"),
        ([frame(0, &message.0), frame(0x80, b"\xff\r\n")].concat(), "node_malformed"),
        ([frame(0, &message.0), frame(0x80, b"")].concat(), "node_malformed"),
        ([frame(0, &message.0), frame(0x80, b"grpc-status\r\n")].concat(), "node_malformed"),
        ([frame(0, &message.0), frame(0x80, b"grpc-status:0\r\ngrpc-status:0\r\n")].concat(), "node_malformed"),
        ([frame(0, &message.0), frame(0x80, b"grpc-status:-1\r\n")].concat(), "node_malformed"),
        ([frame(0, &message.0), frame(0x80, b"grpc-status:+0\r\n")].concat(), "node_malformed"),
        (frame(0x80, b"grpc-status:0\r\n"), "node_malformed"),
        // A length beyond the body.
        ([&[0, 0xff, 0xff, 0xff, 0xff][..], &message.0].concat(), "node_malformed"),
        // Errors with status 200, with and without a message.
        (error(14, "busy"), "node_error"),
        ([frame(0, &message.0), error(8, "too%20much")].concat(), "node_error"),
        (error(16, "\u{1b}[31m"), "node_error"),
    ];
    for method in ["GetServiceInfo", "BatchGetObjects", "GetTransaction", "GetCheckpoint"] {
        for (body, code) in cases.clone() {
            let shown = String::from_utf8_lossy(&body).into_owned();
            assert_eq!(judge(lying(method, move || Ok(Response::new(200, body.clone())))).await.unwrap_err(), code, "{method}: {shown:?}");
        }
        for status in [204, 302, 429, 500, 503] {
            let body = good.clone();
            let judged = judge(lying(method, move || Ok(Response::new(status, body.clone())))).await;
            assert_eq!(judged.unwrap_err(), "node_http_status", "{method}: {status}");
        }
        for kind in [TransportErrorKind::Timeout, TransportErrorKind::Connect, TransportErrorKind::TooLarge] {
            let judged = judge(lying(method, move || Err(kind))).await;
            assert_eq!(judged.unwrap_err(), kind.code(), "{method}");
        }
    }
}

#[tokio::test]
async fn a_status_can_be_a_header_of_an_empty_response() {
    let with = |status: &'static str, body: Vec<u8>| {
        lying("BatchGetObjects", move || Ok(Response::new(200, body.clone()).with_header("grpc-status", status)))
    };
    assert_eq!(judge(with("14", Vec::new())).await.unwrap_err(), "node_error");
    assert_eq!(judge(with("0", Vec::new())).await.unwrap_err(), "node_malformed");
    assert_eq!(judge(with("ok", Vec::new())).await.unwrap_err(), "node_malformed");
    // A message without trailers was cut off, whatever the header says.
    assert_eq!(judge(with("0", frame(0, b""))).await.unwrap_err(), "node_malformed");
    assert_eq!(judge(with("5", answer(&Message::default()))).await.unwrap_err(), "node_malformed", "header and trailers differ");
}

#[tokio::test]
async fn the_words_of_a_node_are_escaped_and_capped() {
    let words = format!("no\u{1b}[31m%0a{}", "x".repeat(4_000));
    let error = read(lying("BatchGetObjects", move || Ok(Response::new(200, error(13, &words))))).await.unwrap_err();
    let shown = error.to_string();
    assert!(shown.starts_with("a.example: no") && shown.len() < 2_000, "{shown}");
    assert!(!shown.contains('\u{1b}') && !shown.contains('\n'), "{shown}");
}

#[tokio::test]
async fn the_driver_sees_an_unknown_and_no_path() {
    let nodes = lying("GetServiceInfo", || Err(TransportErrorKind::Timeout)).connect();
    let error = nodes.htlc(&terms().destination).await.unwrap_err();
    assert!(matches!(error, countersign_client::driver::ChainError::Unavailable(_)), "{error}");
    assert!(!error.to_string().contains("the-key"), "{error}");
}

#[tokio::test]
async fn terms_without_a_registry_or_with_a_malformed_id_are_refused() {
    let at = async |change: fn(&mut countersign::HtlcTerms)| {
        let mut terms = terms();
        change(&mut terms.destination);
        match read_with(funded(), &terms).await.unwrap_err() {
            NodeError::Refused(refusal) => refusal.location().to_owned(),
            other => panic!("{other}"),
        }
    };
    assert_eq!(at(|terms| terms.htlc_registry = None).await, "/htlc_registry");
    assert_eq!(at(|terms| terms.htlc = None).await, "/htlc");
    assert_eq!(at(|terms| terms.swap_id.push('0')).await, "/swap_id");
    assert_eq!(at(|terms| terms.token = Some("a coin".to_owned())).await, "/token");
    // An amount that no order on Sui can have: the record's own id is all that is left to ask for.
    let mut terms = terms();
    terms.destination.amount = U256::MAX;
    let (state, seen) = read_with(funded(), &terms).await.unwrap();
    assert!(Funded::judge(&terms, &state, &seen, &RULE, NOW).is_err());
}

// ---- packages

async fn described(network: Network) -> Result<PackageDescription, NodeError> {
    let nodes: Nodes<Network> = network.connect();
    nodes.sui("sui_testnet").unwrap().describe_package(package_id()).await
}

#[tokio::test]
async fn a_package_says_who_can_upgrade_it() {
    let (capability, owner) = (Address::new([0xca; 32]), Address::new([0xaa; 32]));
    let published = |ledger: &mut Ledger| {
        let changed =
            vec![(Address::new([1; 32]), "0x2::coin::Coin<0x2::sui::SUI>".to_owned()), (capability, "0x2::package::UpgradeCap".to_owned())];
        ledger.transactions.push(Executed { changed, ..Executed::new(digest_of(4)) });
        let id = Some(capability);
        let owner = Some(Message::default().number(1, 1).text(2, &owner.to_string()));
        let contents = [capability.as_bytes(), package_id().as_bytes(), &[1, 0, 0, 0, 0, 0, 0, 0], &[128]].concat();
        ledger.objects.push(Object { id, kind: "0x2::package::UpgradeCap".to_owned(), owner, contents, ..Object::default() });
        ledger.versions = vec![1, 2];
    };
    let description = described(one(published)).await.unwrap();
    assert_eq!((description.digest, description.version), (Digest::new([3; 32]), 1));
    assert_eq!((description.original, description.newest_version), (package_id(), 2));
    let UpgradeAuthority { capability: actual, owner: by, policy, .. } = description.upgrade_authority.unwrap();
    assert_eq!((actual, by, policy), (capability, Some(owner), 128));

    // Destroyed, or wrapped into another object.
    let gone = described(one(|ledger| {
        published(ledger);
        ledger.objects.pop();
    }));
    assert_eq!(gone.await.unwrap().upgrade_authority, None);
    // The node no longer has the publication.
    assert_eq!(described(funded()).await.unwrap().upgrade_authority, None);
    let none = described(one(|ledger| drop(ledger.objects.remove(1)))).await.unwrap_err();
    assert_eq!(none.code(), "unknown_contract");
    let disagree = Network::new(&[Ledger::funded(), Ledger { versions: vec![1, 2], ..Ledger::funded() }]);
    assert_eq!(described(disagree).await.unwrap_err().code(), "node_disagree");
}
