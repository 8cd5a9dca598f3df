//! Reading an order from honest and lying Tron nodes: honest answers become evidence. A lie becomes "unknown" or a hold, never a proof of
//! funding.
mod broadcast;
mod effect;
mod fake;
mod prices;
mod replace;
mod tokens;
mod wallet;

use countersign::chains::UnixTime;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::support::{judged, shows_no_key};
use countersign::reader::HtlcQuorum;
use countersign::tron::alloy_primitives::{Address as AbiAddress, B256, U256};
use countersign::tron::{Address, read};
use countersign::{
    Funded, SecretHash,
    chains::{Finality, FinalityRule},
    evidence::{HtlcState, VerifiedTerms},
};
use countersign_client::TransportErrorKind;
use countersign_client::driver::Chains as _;
use countersign_node::NodeError;
use countersign_testkit::abi;
use fake::{
    Fake, INITIATED, LATEST, Lying, NOW, SECRET, SOLID, Tron, bare, id, id_of, info, log, nodes, redeemed, returned, reverted, terms,
};
use serde_json::{Value, json};

const RULE: FinalityRule = FinalityRule::new(Finality::Finalized, 20, 300);
const ORDERS: &str = "9c3f1e90";

async fn read_with(tron: impl Into<Fake>, count: usize, terms: &VerifiedTerms) -> Result<HtlcQuorum, NodeError> {
    let nodes = nodes(tron, count);
    shows_no_key(nodes.tron("tron").unwrap().htlc(&terms.destination).await)
}

async fn judge(tron: impl Into<Fake>, count: usize) -> Result<Funded, String> {
    judge_terms(tron, count, &terms()).await
}

async fn judge_terms(tron: impl Into<Fake>, count: usize, terms: &VerifiedTerms) -> Result<Funded, String> {
    judged(read_with(tron, count, terms).await, terms, &RULE, NOW)
}

fn tron() -> Tron {
    Tron::funded(&terms().destination)
}

#[tokio::test(start_paused = true)]
async fn a_funded_order_is_evidence() {
    let terms = terms();
    for count in [1, 2, 3] {
        let quorum = read_with(tron(), usize::try_from(count).unwrap(), &terms).await.unwrap();
        let (state, seen) = quorum.state().unwrap();
        let HtlcState::Locked(locked) = &state else { panic!("{state:?}") };
        assert_eq!((&locked.initiator, &locked.redeemer), (&terms.destination.initiator, &terms.destination.redeemer));
        assert_eq!((locked.amount, locked.timelock, locked.elapsed), (terms.destination.amount, terms.destination.timelock, 99));
        // No formula of the id is certain, so the hash comes from the event.
        assert!(!terms.destination.swap_id_recomputed);
        assert_eq!((&locked.token, locked.secret_hash, locked.covered), (&terms.destination.token, Some(SecretHash::of(&SECRET)), true));
        assert_eq!((seen.height.get(), &seen.hash, seen.depth), (LATEST, &bare(id_of(LATEST)), 100));
        assert_eq!((seen.is_safe, seen.is_finalized, seen.head_time.as_secs()), (true, true, NOW - 3));
        // The reading ends as soon as enough endpoints agree.
        assert_eq!((seen.agreed, seen.needed), (count.min(2), count.min(2)));
        assert!(Funded::judge(&terms, &quorum, &RULE, UnixTime::from_secs(NOW)).is_ok());
    }
}

#[tokio::test(start_paused = true)]
async fn an_order_of_the_chains_own_coin_is_evidence_too() {
    let mut terms = terms();
    terms.destination.token = None;
    let amount = u64::try_from(terms.destination.amount).unwrap();
    let funded = |coins| Tron { coins, holds: U256::ZERO, ..Tron::funded(&terms.destination) };
    assert!(judge_terms(funded(amount), 1, &terms).await.is_ok());
    assert_eq!(judge_terms(funded(amount - 1), 1, &terms).await.unwrap_err(), "destination_not_covered");
    assert_eq!(judge_terms(tron(), 1, &terms).await.unwrap_err(), "destination_unclear");
}

/// The identity is read once. A read then requests the newest blocks, the contract, and the order's block with the newest block again.
#[tokio::test(start_paused = true)]
async fn three_round_trips_per_endpoint_and_one_for_its_identity() {
    let nodes = nodes(tron(), 1);
    let terms = terms();
    let chain = nodes.tron("tron").unwrap();
    chain.htlc(&terms.destination).await.unwrap();
    chain.htlc(&terms.destination).await.unwrap();
    let seen = nodes.transport().seen.lock().unwrap();
    let paths: Vec<_> = seen.iter().map(|(_, path, _)| path.as_str()).collect();
    let reading = [
        "/wallet/getnowblock",
        "/walletsolidity/getnowblock",
        "/wallet/triggerconstantcontract",
        "/wallet/triggerconstantcontract",
        "/wallet/triggerconstantcontract",
        "/walletsolidity/triggerconstantcontract",
        "/wallet/getnowblock",
        "/wallet/getblockbynum",
        "/wallet/gettransactioninfobyblocknum",
    ];
    assert_eq!(paths, [&["/wallet/getblockbynum"][..], &reading, &reading].concat());
    // The data alone defines a call, and addresses have their prefix.
    let call = seen.iter().find(|(_, path, _)| path.ends_with("constantcontract")).unwrap().2.clone();
    assert!(call.get("function_selector").is_none());
    assert_eq!(call["owner_address"], format!("41{}", "0".repeat(40)));
    assert!(call["contract_address"].as_str().unwrap().starts_with("41"));
}

#[tokio::test(start_paused = true)]
async fn what_is_not_irreversible_is_not_final() {
    let young = |solid| Tron { solid, ..tron() };
    assert!(judge(young(INITIATED), 1).await.is_ok());
    assert_eq!(judge(young(INITIATED - 1), 1).await.unwrap_err(), "destination_not_final");
    let (_, seen) = read_with(young(INITIATED - 1), 1, &terms()).await.unwrap().state().unwrap();
    assert_eq!((seen.is_safe, seen.is_finalized), (false, false));
    // One endpoint that has not seen it is enough to remove the mark.
    let one = tron().lying(|host, path, question| {
        let is_solid = host == "b.example" && path == "/walletsolidity/triggerconstantcontract";
        (is_solid && question["data"].as_str().unwrap().starts_with(ORDERS)).then(|| returned(&[0; 192]))
    });
    let (_, seen) = read_with(one, 2, &terms()).await.unwrap().state().unwrap();
    assert_eq!((seen.agreed, seen.is_finalized), (2, false));
    // An irreversible state without its block does not count.
    let other = tron().lying(|_, path, _| (path == "/walletsolidity/getnowblock").then(|| tron().block(INITIATED - 5)));
    assert_eq!(judge(other, 1).await.unwrap_err(), "destination_not_final");
}

#[tokio::test(start_paused = true)]
async fn every_changed_term_holds_the_secret() {
    for (field, value) in [(0, U256::from(0x1234_5678)), (1, U256::from(0x1234_5678)), (3, U256::from(599))] {
        let mut order = tron().order.unwrap();
        order[field] = value;
        let hold = judge(Tron { order: Some(order), ..tron() }, 1).await.unwrap_err();
        assert!(["destination_differs", "destination_no_time"].contains(&hold.as_str()), "{field}: {hold}");
    }
    // Less than was verified, with a matching event.
    let mut terms = terms();
    terms.destination.amount -= U256::ONE;
    let less = Tron::funded(&terms.destination);
    assert_eq!(judge(less, 1).await.unwrap_err(), "destination_differs");
    let holds = Tron { holds: terms.destination.amount, ..tron() };
    assert_eq!(judge(holds, 1).await.unwrap_err(), "destination_not_covered");
    assert_eq!(judge(Tron { order: None, ..tron() }, 1).await.unwrap_err(), "destination_not_funded");
    assert_eq!(judge(Tron { time: NOW - 600, ..tron() }, 1).await.unwrap_err(), "chain_stale");
    let late = Tron { latest: INITIATED + 2_101, solid: INITIATED + 2_080, ..tron() };
    assert_eq!(judge(late, 1).await.unwrap_err(), "destination_no_time");
}

/// The contract does not store the hash, and no formula of its ids is certain. Without the event, nothing shows the hash.
#[tokio::test(start_paused = true)]
async fn the_event_of_the_funding_shows_the_secret_hash() {
    let terms = terms();
    let destination = &terms.destination;
    let (htlc, order, amount) = (tron().htlc, id(destination), B256::from(destination.amount));
    let with = |logs: Vec<Value>| Tron { infos: [(INITIATED, vec![info(INITIATED, &logs)])].into(), ..tron() };
    let topics = |id: B256, hash: B256, amount: B256| [read::INITIATED, id, hash, amount];
    let hash = B256::from(destination.secret_hash.0);
    let good = log(htlc, &topics(order, hash, amount), &[]);
    let foreign = [
        log(htlc, &topics(B256::ZERO, B256::ZERO, amount), &[]),
        log(Address::from([7; 20]), &topics(order, B256::ZERO, amount), &[]),
        log(htlc, &[read::TRANSFER, order, hash], amount.as_slice()),
    ];
    let mut all = foreign.to_vec();
    all.push(good.clone());
    assert!(judge(with(all), 1).await.is_ok(), "other logs of the block do not matter");
    let mut prefixed = good.clone();
    prefixed["address"] = json!(format!("41{}", bare(htlc.bytes())));
    assert!(judge(with(vec![prefixed]), 1).await.is_ok());

    assert_eq!(judge(with(Vec::new()), 1).await.unwrap_err(), "destination_unclear");
    assert_eq!(judge(with(foreign.to_vec()), 1).await.unwrap_err(), "destination_unclear");
    assert_eq!(judge(with(vec![good.clone(), good.clone()]), 1).await.unwrap_err(), "destination_unclear");
    assert_eq!(judge(Tron { infos: [].into(), ..tron() }, 1).await.unwrap_err(), "destination_unclear");
    let without_history = tron().lying(|_, path, _| path.ends_with("infobyblocknum").then(|| json!({})));
    assert_eq!(judge(without_history, 1).await.unwrap_err(), "destination_unclear");
    assert_eq!(judge(with(vec![log(htlc, &topics(order, B256::ZERO, amount), &[])]), 1).await.unwrap_err(), "destination_differs");

    let changed = |member: &str, value: Value| {
        let mut log = good.clone();
        log[member] = value;
        with(vec![log])
    };
    let mut elsewhere = info(INITIATED, std::slice::from_ref(&good));
    elsewhere["blockNumber"] = json!(INITIATED + 1);
    for (why, tron) in [
        ("another amount", Fake::from(with(vec![log(htlc, &topics(order, hash, B256::ZERO), &[])]))),
        ("another event of the order", with(vec![log(htlc, &[read::REFUNDED, order], &[])]).into()),
        ("data that the event does not have", changed("data", json!("00")).into()),
        ("an address that is none", changed("address", json!("00")).into()),
        ("topics that are none", changed("topics", json!(["zz"])).into()),
        ("a topic with a prefix", changed("topics", json!([format!("0x{}", bare(read::INITIATED))])).into()),
        ("endless data", changed("data", json!("00".repeat(300_000))).into()),
        ("another block", Tron { infos: [(INITIATED, vec![elsewhere])].into(), ..tron() }.into()),
        ("no transactions", tron().lying(|_, path, _| path.ends_with("infobyblocknum").then(|| json!("none")))),
        ("many logs", with(vec![good.clone(); 257]).into()),
    ] {
        assert_eq!(judge(tron, 1).await.unwrap_err(), "node_malformed", "{why}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_contract_of_another_kind_is_unclear() {
    let orders = |result: Value| {
        tron().lying(move |_, _, question| question["data"].as_str().is_some_and(|data| data.starts_with(ORDERS)).then(|| result.clone()))
    };
    let [initiator, redeemer, initiated, timelock, amount, _] = tron().order.unwrap();
    let older: Vec<_> = [U256::ZERO, initiator, redeemer, initiated, timelock, amount].iter().flat_map(U256::to_be_bytes::<32>).collect();
    for result in [
        returned(&[]),
        returned(&[0; 32]),
        returned(&[1; 224]),
        returned(&[0; 224]),
        returned(&[0xff; 192]),
        returned(&older),
        reverted(&[]),
        json!({"result": {"code": "CONTRACT_VALIDATE_ERROR", "message": bare("No contract or not a valid smart contract")}}),
        json!({"result": {"result": true}, "constant_result": [bare([0; 192])], "transaction": {"ret": [{"ret": "FAILED"}]}}),
    ] {
        assert_eq!(judge(orders(result.clone()), 1).await.unwrap_err(), "destination_unclear", "{result}");
    }
    for token in [AbiAddress::ZERO, AbiAddress::repeat_byte(1), read::NATIVE] {
        assert_eq!(judge(Tron { token, ..tron() }, 1).await.unwrap_err(), "destination_unclear");
    }
    // A node that cannot run calls is not a contract that reverts.
    for failing in [
        json!({"result": {"code": "OTHER_ERROR", "message": bare("this node does not support constant")}}),
        json!({"Error": "class java.lang.NullPointerException : null"}),
    ] {
        assert_eq!(judge(orders(failing), 1).await.unwrap_err(), "node_error");
    }
}

#[tokio::test(start_paused = true)]
async fn the_event_says_how_an_order_ended() {
    let terms = terms();
    let destination = &terms.destination;
    let (state, seen) = read_with(tron().redeemed(destination, SECRET), 2, &terms).await.unwrap().state().unwrap();
    let transaction = Some(bare(id_of(LATEST - 70 + 1_000_000_000)));
    assert_eq!(state, HtlcState::Redeemed { secret: Some(SECRET), transaction });
    assert_eq!((seen.depth, seen.agreed, seen.is_finalized), (71, 2, true));
    let (state, seen) = read_with(tron().refunded(destination), 1, &terms).await.unwrap().state().unwrap();
    assert!(matches!(state, HtlcState::Refunded { transaction: Some(_) }), "{state:?}");
    assert!(!seen.is_finalized, "the irreversible block still has it open");
    assert_eq!(judge(tron().refunded(destination), 1).await.unwrap_err(), "destination_refunded");

    // In the block in which it was funded.
    let mut at_once = tron();
    at_once.order.as_mut().unwrap()[5] = U256::from(INITIATED);
    let ending = info(INITIATED, &[redeemed(at_once.htlc, destination, SECRET)]);
    at_once.infos.get_mut(&INITIATED).unwrap().push(ending);
    let (state, _) = read_with(at_once, 1, &terms).await.unwrap().state().unwrap();
    assert!(matches!(state, HtlcState::Redeemed { secret: Some(SECRET), .. }), "{state:?}");

    let silent = Tron { infos: [].into(), ..tron().redeemed(destination, SECRET) };
    assert_eq!(judge(silent, 1).await.unwrap_err(), "destination_unclear");
    let mut both = tron().redeemed(destination, SECRET);
    let block = LATEST - 70;
    let refunded = info(block, &[log(both.htlc, &[read::REFUNDED, id(destination)], &[])]);
    both.infos.get_mut(&block).unwrap().push(refunded);
    assert_eq!(judge(both, 1).await.unwrap_err(), "destination_unclear");
}

#[tokio::test(start_paused = true)]
async fn a_forged_end_is_unknown() {
    let terms = terms();
    let destination = &terms.destination;
    let (htlc, order, hash) = (tron().htlc, id(destination), B256::from(destination.secret_hash.0));
    let other = [0x11; 32];
    let data = |secret: [u8; 32]| abi::bytes(&secret);
    for (why, log) in [
        ("a secret that does not hash", log(htlc, &[read::REDEEMED, order, hash], &data(other))),
        ("a secret of another hash", redeemed(htlc, destination, other)),
        ("no secret", log(htlc, &[read::REDEEMED, order, hash], &[])),
        ("a refund with data", log(htlc, &[read::REFUNDED, order], &[0])),
    ] {
        assert_eq!(judge(tron().ended(70, &log), 1).await.unwrap_err(), "node_malformed", "{why}");
    }
    for (why, log) in [
        ("another order", log(htlc, &[read::REDEEMED, B256::ZERO, hash], &data(SECRET))),
        ("another contract", redeemed(Address::from([7; 20]), destination, SECRET)),
        ("an event of something else", log(htlc, &[read::TRANSFER, order], &[])),
    ] {
        assert_eq!(judge(tron().ended(70, &log), 1).await.unwrap_err(), "destination_unclear", "{why}");
    }
    let mut nameless = tron().redeemed(destination, SECRET);
    nameless.infos.get_mut(&(LATEST - 70)).unwrap()[0]["id"] = json!("ff");
    assert_eq!(judge(nameless, 1).await.unwrap_err(), "node_malformed");
}

#[tokio::test(start_paused = true)]
async fn endpoints_of_other_chains_are_asked_nothing_else() {
    let nodes = nodes(Tron { genesis: 2_494_104_990, ..tron() }, 1);
    let error = nodes.tron("tron").unwrap().htlc(&terms().destination).await.unwrap_err();
    assert_eq!((error.code().name(), error.is_transient()), ("node_wrong_chain", false));
    assert_eq!(error.to_string(), "a.example serves another chain: 2494104990 instead of 728126428");
    assert_eq!(nodes.transport().seen.lock().unwrap().len(), 3, "the identity is asked with the first requests");
    // Two honest endpoints remain.
    let one = tron().lying(|host, path, question| {
        let is_identity = host == "c.example" && path == "/wallet/getblockbynum" && question["num"] == 0;
        is_identity.then(|| Tron { genesis: 1, ..tron() }.block(0))
    });
    assert!(judge(one, 3).await.is_ok());
    assert!(fake::nodes(tron(), 1).evm("tron").is_err());
}

#[tokio::test(start_paused = true)]
async fn bodies_that_are_no_answer_are_unknown() {
    let nested = |depth: usize| [vec![b'['; depth], vec![b']'; depth]].concat();
    let bodies: Vec<(&str, u16, Vec<u8>)> = vec![
        ("node_malformed", 200, b"<html>Too many requests</html>".to_vec()),
        ("node_malformed", 200, Vec::new()),
        ("node_malformed", 200, b"{}".to_vec()),
        ("node_malformed", 200, b"[]".to_vec()),
        ("node_malformed", 200, nested(100_000)),
        ("node_malformed", 200, br#"{"blockID":1,"blockID":2}"#.to_vec()),
        ("node_error", 200, br#"{"Error":"class org.tron.core.exception : rate limited"}"#.to_vec()),
        ("node_error", 200, br#"{"Error":["\u202e"]}"#.to_vec()),
        ("node_http_status", 429, b"{}".to_vec()),
        ("node_http_status", 301, Vec::new()),
        ("node_http_status", 500, br#"{"Error":"x"}"#.to_vec()),
    ];
    for (code, status, body) in bodies {
        let shown = String::from_utf8_lossy(&body[..body.len().min(80)]).into_owned();
        for from in ["/wallet/getblockbynum", "/wallet/getnowblock", "/walletsolidity/getnowblock"] {
            let body = body.clone();
            let lying = tron().answering(move |_, path| (path == from).then(|| Ok((status, body.clone()))));
            assert_eq!(judge(lying, 1).await.unwrap_err(), code, "{from} {shown}");
        }
    }
    let silent = tron().answering(|_, _| Some(Err(TransportErrorKind::Timeout)));
    assert_eq!(judge(silent, 1).await.unwrap_err(), "transport_timeout");
}

#[tokio::test(start_paused = true)]
async fn blocks_that_contradict_each_other_are_unknown() {
    let block = |asked: &'static str, number: u64, pointer: &'static str, value: Value| {
        tron().lying(move |_, path, question| {
            let is_asked = path == asked && question["num"].as_u64().is_none_or(|asked| asked == number);
            is_asked.then(|| {
                let mut block = tron().block(number);
                *block.pointer_mut(pointer).unwrap() = value.clone();
                block
            })
        })
    };
    let raw = |member: &'static str| -> &'static str { Box::leak(format!("/block_header/raw_data/{member}").into_boxed_str()) };
    for (path, number, pointer, value) in [
        ("/wallet/getnowblock", LATEST, raw("number"), json!(LATEST + 1)),
        ("/wallet/getnowblock", LATEST, raw("number"), json!(-1)),
        ("/wallet/getnowblock", LATEST, raw("number"), json!(1.5)),
        ("/wallet/getnowblock", LATEST, raw("number"), json!("60000099")),
        ("/wallet/getnowblock", LATEST, "/blockID", json!(bare(id_of(LATEST - 1)))),
        ("/wallet/getnowblock", LATEST, "/blockID", json!("12")),
        ("/wallet/getnowblock", LATEST, "/block_header", Value::Null),
        ("/wallet/getblockbynum", INITIATED, "/blockID", json!(bare(id_of(INITIATED + 1)))),
        ("/wallet/getblockbynum", INITIATED, raw("timestamp"), json!((NOW + 9) * 1_000)),
    ] {
        assert_eq!(judge(block(path, number, pointer, value.clone()), 1).await.unwrap_err(), "node_malformed", "{path} {pointer} {value}");
    }
    let another = tron()
        .lying(|_, path, question| (path == "/wallet/getblockbynum" && question["num"] == INITIATED).then(|| tron().block(INITIATED + 1)));
    assert_eq!(judge(another, 1).await.unwrap_err(), "node_malformed");
    // An order of a block that does not exist yet.
    let mut future = tron();
    future.order.as_mut().unwrap()[2] = U256::from(LATEST + 1);
    let words: Vec<_> = future.order.unwrap().iter().flat_map(U256::to_be_bytes::<32>).collect();
    let future = tron()
        .lying(move |_, _, question| question["data"].as_str().is_some_and(|data| data.starts_with(ORDERS)).then(|| returned(&words)));
    assert_eq!(judge(future, 1).await.unwrap_err(), "node_malformed");
}

/// The contract is read at some block between two reads of the newest one.
#[tokio::test(start_paused = true)]
async fn of_the_blocks_before_and_after_the_one_that_leaves_less_counts() {
    let asked = AtomicU64::new(0);
    let growing = tron().lying(move |_, path, _| {
        (path == "/wallet/getnowblock").then(|| {
            let step = asked.fetch_add(1, Ordering::SeqCst);
            Tron { latest: LATEST + 7 * step, time: NOW - 3 + 21 * step, ..tron() }.block(LATEST + 7 * step)
        })
    });
    let (state, seen) = read_with(growing, 1, &terms()).await.unwrap().state().unwrap();
    let HtlcState::Locked(locked) = state else { panic!("{state:?}") };
    assert_eq!((locked.elapsed, seen.depth, seen.height.get(), seen.head_time.as_secs()), (106, 100, LATEST, NOW - 3));
}

#[tokio::test(start_paused = true)]
async fn a_chain_that_becomes_shorter_is_unknown() {
    let asked = AtomicU64::new(0);
    let shrinking = tron().lying(move |_, path, _| {
        (path == "/wallet/getnowblock").then(|| {
            let step = asked.fetch_add(1, Ordering::SeqCst);
            tron().block(LATEST - [0, 5, 5, 40][usize::try_from(step.min(3)).unwrap()])
        })
    });
    let nodes = nodes(shrinking, 1);
    let (chain, terms) = (nodes.tron("tron").unwrap(), terms());
    chain.htlc(&terms.destination).await.unwrap();
    assert_eq!(chain.htlc(&terms.destination).await.unwrap_err().code().name(), "node_went_back");
}

#[tokio::test(start_paused = true)]
async fn enough_endpoints_must_agree() {
    let lie = |liars: &'static [&'static str]| {
        move |host: &str, path: &str, question: &Value| {
            let is_origin = path == "/wallet/getblockbynum" && question["num"] == INITIATED;
            (liars.contains(&host) && is_origin).then(|| {
                let mut block = tron().block(INITIATED);
                let mut other = id_of(INITIATED);
                other[31] ^= 1;
                block["blockID"] = json!(bare(other));
                block
            })
        }
    };
    assert!(judge(tron().lying(lie(&["a.example"])), 3).await.is_ok());
    assert_eq!(judge(tron().lying(lie(&["a.example"])), 2).await.unwrap_err(), "node_disagree");
    // One endpoint that reports "funded" is not enough.
    let words: Vec<_> = tron().order.unwrap().iter().flat_map(U256::to_be_bytes::<32>).collect();
    let one = Tron { order: None, ..tron() }.lying(move |host, _, question| {
        let is_orders = question["data"].as_str().is_some_and(|data| data.starts_with(ORDERS));
        (host == "b.example" && is_orders).then(|| returned(&words))
    });
    assert_eq!(judge(one, 3).await.unwrap_err(), "destination_not_funded");
    let behind = tron().lying(|host, path, _| (host == "b.example" && path == "/wallet/getnowblock").then(|| tron().block(LATEST - 20)));
    let (state, seen) = read_with(behind, 2, &terms()).await.unwrap().state().unwrap();
    let HtlcState::Locked(locked) = state else { panic!("{state:?}") };
    assert_eq!((locked.elapsed, seen.depth, seen.height.get(), seen.head_time.as_secs()), (99, 80, LATEST - 20, NOW - 3 - 60));
}

#[tokio::test(start_paused = true)]
async fn the_driver_sees_an_unknown_and_no_path() {
    let nodes = nodes(tron().answering(|_, _| Some(Ok((429, Vec::new())))), 2);
    assert!(nodes.has("tron") && !nodes.has("tron_nile"));
    let error = nodes.htlc(&terms().destination).await.unwrap_err().to_string();
    assert!(error.contains("429") && error.contains("a.example") && !error.contains("the-key"), "{error}");
    let nodes = fake::nodes(tron(), 1);
    assert!(matches!(nodes.htlc(&terms().destination).await, Ok(quorum) if matches!(quorum.state(), Ok((HtlcState::Locked(_), _)))));
    let head = nodes.head("tron", 0).await.unwrap();
    assert_eq!((head.height.get(), head.hash, head.time.as_secs()), (LATEST, bare(id_of(LATEST)), NOW - 3));
    assert_eq!(SOLID, LATEST - 19);
}
