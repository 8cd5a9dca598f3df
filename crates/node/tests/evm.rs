//! Reading an order from honest and lying endpoints: honest answers become evidence. A lie becomes "unknown" or a hold, never a proof of
//! funding.
use crate::support;

use countersign::chains::UnixTime;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use countersign::evm::alloy_primitives::{Address, B256, U256, hex};
use countersign::evm::read;
use countersign::reader::HtlcQuorum;
use countersign::{
    Funded,
    chains::FinalityRule,
    evidence::{HtlcState, VerifiedTerms},
    trust::{EvmGeneration, Generation},
};
use countersign_client::TransportErrorKind;
use countersign_client::driver::Chains as _;
use countersign_node::{Endpoint, Endpoints, NodeConfig, NodeError, Nodes};
use countersign_testkit::registry;
use serde_json::{Value, json};
use support::{Chain, INITIATED, LATEST, NOW, SECRET, hash_of, id, judged, log, nodes, redeemed_data, shows_no_key, terms};

const RULE: FinalityRule = FinalityRule::new(countersign::chains::Finality::Safe, 64, 50);

async fn read_with(chain: Chain, count: usize, terms: &VerifiedTerms) -> Result<HtlcQuorum, NodeError> {
    let nodes = nodes(chain, count);
    shows_no_key(nodes.evm("ethereum").unwrap().htlc(&terms.destination).await)
}

async fn judge(chain: Chain, count: usize) -> Result<Funded, String> {
    let terms = terms();
    judged(read_with(chain, count, &terms).await, &terms, &RULE, NOW)
}

fn chain() -> Chain {
    Chain::funded(&terms().destination)
}

#[tokio::test(start_paused = true)]
async fn a_funded_order_is_evidence() {
    let terms = terms();
    for count in [1, 2, 3] {
        let quorum = read_with(chain(), count, &terms).await.unwrap();
        let (state, seen) = quorum.state().unwrap();
        let HtlcState::Locked(locked) = &state else { panic!("{state:?}") };
        assert_eq!((&locked.initiator, &locked.redeemer), (&terms.destination.initiator, &terms.destination.redeemer));
        assert_eq!((locked.amount, locked.timelock, locked.elapsed), (terms.destination.amount, terms.destination.timelock, 99));
        assert_eq!((&locked.token, locked.secret_hash, locked.covered), (&terms.destination.token, None, true));
        assert_eq!((seen.height.get(), &seen.hash, seen.depth), (LATEST, &hash_of(LATEST).to_string(), 100));
        assert_eq!((seen.is_safe, seen.is_finalized, seen.head_time.as_secs()), (true, true, NOW - 5));
        // The third endpoint is not waited for.
        assert_eq!(u32::try_from(count).unwrap().min(2), seen.agreed);
        assert!(Funded::judge(&terms, &quorum, &RULE, UnixTime::from_secs(NOW)).is_ok());
    }
}

#[tokio::test(start_paused = true)]
async fn three_round_trips_per_endpoint_and_its_identity_in_the_first() {
    let nodes = nodes(chain(), 1);
    let terms = terms();
    let ethereum = nodes.evm("ethereum").unwrap();
    let first = ethereum.htlc(&terms.destination).await.unwrap().state();
    let chain = nodes.transport();
    let requests = || chain.requests.lock().unwrap()["a.example"];
    assert_eq!(requests(), 3);
    // Later reads request only the newest blocks, as long as these are the same.
    assert_eq!(ethereum.htlc(&terms.destination).await.unwrap().state(), first);
    assert_eq!(requests(), 3 + 1);
    let seen = chain.seen.lock().unwrap();
    assert_eq!(seen.iter().filter(|(_, method, _)| method == "eth_chainId").count(), 1);
    assert_eq!(seen[0].1, "eth_chainId");
    let reads: Vec<_> = seen.iter().filter(|(_, method, _)| method == "eth_call" || method == "eth_getProof").collect();
    assert!(reads.iter().all(|(_, _, params)| params.as_array().unwrap().last().unwrap()["requireCanonical"] == true));
}

/// The owner of a wallet moves it to another chain whenever an application asks for that.
#[tokio::test(start_paused = true)]
async fn a_wallet_connection_is_asked_for_its_chain_in_every_round() {
    let is_elsewhere = Arc::new(AtomicBool::new(false));
    let moved = Arc::clone(&is_elsewhere);
    let chain = chain().lying(move |_, method, _| (method == "eth_chainId" && moved.load(Ordering::Relaxed)).then(|| json!("0x2105")));
    let wallet = Endpoint::parse("https://provider-1.ethereum.invalid/").unwrap();
    let nodes = Nodes::new(chain, NodeConfig::new().with("ethereum", Endpoints::new(vec![wallet]).unwrap()), registry());
    let terms = terms();
    let ethereum = nodes.evm("ethereum").unwrap();
    let first = ethereum.htlc(&terms.destination).await.unwrap().state();
    is_elsewhere.store(true, Ordering::Relaxed);
    let elsewhere = ethereum.htlc(&terms.destination).await.unwrap_err();
    assert_eq!(elsewhere.code().name(), "node_wrong_chain");
    is_elsewhere.store(false, Ordering::Relaxed);
    assert_eq!(ethereum.htlc(&terms.destination).await.unwrap().state(), first);
}

#[tokio::test(start_paused = true)]
async fn a_young_payment_is_not_final() {
    let young = chain().with(|evm| {
        evm.safe = Some(INITIATED - 1);
        evm.finalized = Some(INITIATED - 40);
    });
    assert_eq!(judge(young, 1).await.unwrap_err(), "destination_not_final");
    let (_, seen) = read_with(
        chain().with(|evm| {
            evm.safe = Some(INITIATED);
            evm.finalized = None;
        }),
        1,
        &terms(),
    )
    .await
    .unwrap()
    .state()
    .unwrap();
    assert_eq!((seen.is_safe, seen.is_finalized), (true, false));
    // One endpoint without a mark is enough to remove it.
    let one = chain().with(|evm| evm.finalized = None).lying(|host, method, params| {
        (host == "b.example" && method == "eth_getBlockByNumber" && params[0] == "safe").then_some(Value::Null)
    });
    let (_, seen) = read_with(one, 2, &terms()).await.unwrap().state().unwrap();
    assert_eq!((seen.agreed, seen.is_safe), (2, false));
}

#[tokio::test(start_paused = true)]
async fn a_chain_without_marks_is_never_final_by_them() {
    let without = chain().lying(|_, method, params| {
        let is_mark = method == "eth_getBlockByNumber" && (params[0] == "safe" || params[0] == "finalized");
        is_mark.then(|| json!({"error": {"code": -32602, "message": "unknown block tag"}}))
    });
    assert_eq!(judge(without, 1).await.unwrap_err(), "destination_not_final");
    let ahead = chain().with(|evm| {
        evm.safe = Some(LATEST + 1);
        evm.finalized = Some(LATEST + 1);
    });
    assert_eq!(judge(ahead, 1).await.unwrap_err(), "destination_not_final");
}

#[tokio::test(start_paused = true)]
async fn another_order_at_the_safe_block_is_no_mark() {
    let safe = json!(hash_of(LATEST - 32));
    let lie = move |_: &str, method: &str, params: &Value| {
        let is_safe = method == "eth_call" && params[1]["blockHash"] == safe;
        is_safe.then(|| json!(hex::encode_prefixed([1_u8; 192])))
    };
    let (_, seen) = read_with(chain().with(|evm| evm.finalized = None).lying(lie), 1, &terms()).await.unwrap().state().unwrap();
    assert!(!seen.is_safe);
}

#[tokio::test(start_paused = true)]
async fn every_changed_term_holds_the_secret() {
    let changes: [(usize, U256); 5] = [
        (0, U256::from(0x1234_5678)),
        (1, U256::from(0x1234_5678)),
        (3, U256::from(599)),
        (4, terms().destination.amount - U256::ONE),
        (2, U256::from(INITIATED - 700)),
    ];
    for (field, value) in changes {
        let mut order = chain().order.unwrap();
        order[field] = value;
        let hold = judge(chain().with(|evm| evm.order = Some(order)), 1).await.unwrap_err();
        assert!(["destination_differs", "destination_no_time"].contains(&hold.as_str()), "{field}: {hold}");
    }
    assert_eq!(
        judge(chain().with(|evm| evm.holds = terms().destination.amount - U256::ONE), 1).await.unwrap_err(),
        "destination_not_covered"
    );
    assert_eq!(judge(chain().with(|evm| evm.order = None), 1).await.unwrap_err(), "destination_not_funded");
    assert_eq!(judge(chain().with(|evm| evm.time = NOW - 600), 1).await.unwrap_err(), "chain_stale");
    let late = chain().with(|evm| {
        evm.latest = INITIATED + 560;
        evm.safe = Some(INITIATED + 540);
    });
    assert_eq!(judge(late, 1).await.unwrap_err(), "destination_no_time");
}

#[tokio::test(start_paused = true)]
async fn a_contract_of_another_kind_is_unclear() {
    let orders = |result: Value| {
        chain().lying(move |_, method, params| {
            let is_orders = method == "eth_call" && params[0]["data"].as_str().unwrap().starts_with("0x9c3f1e90");
            is_orders.then(|| result.clone())
        })
    };
    let mut six = [U256::from(2); 6];
    six[0] = U256::MAX;
    let six: Vec<_> = six.iter().flat_map(U256::to_be_bytes::<32>).collect();
    for result in [
        json!("0x"),
        json!(hex::encode_prefixed([0; 32])),
        json!(hex::encode_prefixed([1; 224])),
        json!(hex::encode_prefixed([0; 224])),
        json!(hex::encode_prefixed(six)),
        json!({"error": {"code": 3, "message": "execution reverted", "data": "0x"}}),
        json!({"error": {"code": -32000, "message": "execution reverted"}}),
    ] {
        assert_eq!(judge(orders(result.clone()), 1).await.unwrap_err(), "destination_unclear", "{result}");
    }
    for token in [Address::ZERO, Address::repeat_byte(1), read::NATIVE] {
        assert_eq!(judge(chain().with(|evm| evm.token = token), 1).await.unwrap_err(), "destination_unclear");
    }
    // A failing node is not a contract that reverts.
    let failing = json!({"error": {"code": -32000, "message": "header not found"}});
    assert_eq!(judge(orders(failing), 1).await.unwrap_err(), "node_error");
}

#[tokio::test(start_paused = true)]
async fn an_order_of_the_older_layout_is_read_too() {
    let terms = terms();
    let [initiator, redeemer, initiated, timelock, amount, _] = chain().order.unwrap();
    let open = chain().with(|evm| evm.order = Some([U256::ZERO, initiator, redeemer, initiated, timelock, amount]));
    assert!(judge(open, 1).await.is_ok());
    let mut ended = chain().redeemed(&terms.destination, SECRET);
    ended.order = Some([U256::ONE, initiator, redeemer, initiated, timelock, amount]);
    let (state, _) = read_with(ended, 1, &terms).await.unwrap().state().unwrap();
    assert!(matches!(state, HtlcState::Redeemed { secret: Some(SECRET), .. }), "{state:?}");
}

#[tokio::test(start_paused = true)]
async fn a_contract_of_another_generation_than_the_pinned_one_is_unclear() {
    let [initiator, redeemer, initiated, timelock, amount, _] = chain().order.unwrap();
    let older = Some([U256::ZERO, initiator, redeemer, initiated, timelock, amount]);
    for (generation, order, is_pinned) in [
        (EvmGeneration::V3, chain().order, true),
        (EvmGeneration::V3, older, false),
        (EvmGeneration::OLD, chain().order, false),
        (EvmGeneration::OLD, older, true),
        (EvmGeneration::V3, None, true),
        (EvmGeneration::OLD, None, true),
    ] {
        let mut terms = terms();
        terms.destination.generation = Some(Generation::Evm(generation));
        let (state, _) = read_with(chain().with(|evm| evm.order = order), 1, &terms).await.unwrap().state().unwrap();
        match (&state, is_pinned) {
            (HtlcState::Unclear(why), false) => assert!(why.contains("`old`") && why.contains("`v3`"), "{why}"),
            (HtlcState::Locked(_), true) => assert!(order.is_some()),
            (HtlcState::Absent, true) => assert_eq!(order, None),
            _ => panic!("{generation:?}: {state:?}"),
        }
    }
}

/// If no formula of the id is known, only the funding event shows the secret hash.
#[tokio::test(start_paused = true)]
async fn the_event_of_the_funding_shows_the_hash_that_the_id_does_not() {
    let mut terms = terms();
    terms.destination.swap_id_recomputed = false;
    let destination = terms.destination.clone();
    let (htlc, id, amount) = (chain().htlc, id(&destination), B256::from(destination.amount));
    let judge = async |logs: Vec<Value>| {
        let quorum = read_with(chain().with(|evm| evm.logs = logs), 1, &terms).await.map_err(|error| error.code().name().to_owned())?;
        Funded::judge(&terms, &quorum, &RULE, UnixTime::from_secs(NOW)).map(|_| ()).map_err(|hold| hold.code().name().to_owned())
    };
    let hash = B256::from(destination.secret_hash.0);
    let good = log(htlc, &[read::INITIATED, id, hash, amount], &[], INITIATED);
    assert_eq!(judge(vec![good.clone()]).await, Ok(()));
    let older = log(htlc, &[read::INITIATED, id, hash], amount.as_slice(), INITIATED);
    assert_eq!(judge(vec![older]).await, Ok(()));
    assert_eq!(judge(Vec::new()).await.unwrap_err(), "destination_unclear");
    assert_eq!(judge(vec![good.clone(), good]).await.unwrap_err(), "destination_unclear");
    let other = log(htlc, &[read::INITIATED, id, B256::ZERO, amount], &[], INITIATED);
    assert_eq!(judge(vec![other]).await.unwrap_err(), "destination_differs");
    for foreign in [
        log(htlc, &[read::INITIATED, B256::ZERO, hash, amount], &[], INITIATED),
        log(htlc, &[read::INITIATED, id, hash, B256::ZERO], &[], INITIATED),
        log(htlc, &[read::INITIATED, id, hash, amount], &[], INITIATED + 1),
        log(Address::ZERO, &[read::INITIATED, id, hash, amount], &[], INITIATED),
        log(htlc, &[read::REFUNDED, id], &[], INITIATED),
    ] {
        assert_eq!(judge(vec![foreign]).await.unwrap_err(), "node_malformed");
    }
}

#[tokio::test(start_paused = true)]
async fn the_event_says_how_an_order_ended() {
    let terms = terms();
    let (state, seen) = read_with(chain().redeemed(&terms.destination, SECRET), 2, &terms).await.unwrap().state().unwrap();
    let transaction = Some(hash_of(LATEST - 70 + 1_000_000_000).to_string());
    assert_eq!(state, HtlcState::Redeemed { secret: Some(SECRET), transaction });
    assert_eq!((seen.depth, seen.agreed), (71, 2));
    let (state, _) = read_with(chain().refunded(&terms.destination), 1, &terms).await.unwrap().state().unwrap();
    assert!(matches!(state, HtlcState::Refunded { transaction: Some(_) }), "{state:?}");
    assert_eq!(judge(chain().refunded(&terms.destination), 1).await.unwrap_err(), "destination_refunded");

    let silent = chain().redeemed(&terms.destination, SECRET).with(|evm| evm.logs = Vec::new());
    assert_eq!(judge(silent, 1).await.unwrap_err(), "destination_unclear");
    let mut both = chain().redeemed(&terms.destination, SECRET);
    let block = LATEST - 70;
    let htlc = both.htlc;
    both.logs.push(log(htlc, &[read::REFUNDED, id(&terms.destination)], &[], block));
    assert_eq!(judge(both, 1).await.unwrap_err(), "destination_unclear");
}

#[tokio::test(start_paused = true)]
async fn a_forged_event_is_unknown() {
    let terms = terms();
    let destination = &terms.destination;
    let (htlc, id, hash) = (chain().htlc, id(destination), B256::from(destination.secret_hash.0));
    let block = LATEST - 70;
    let topics = [read::REDEEMED, id, hash];
    let other = [0x11; 32];
    let other_hash = B256::from(countersign::SecretHash::of(&other).0);
    let changed = |member: &str, value: Value| {
        let mut log = log(htlc, &topics, &redeemed_data(&SECRET), block);
        log[member] = value;
        log
    };
    for (why, log) in [
        ("a secret that does not hash", log(htlc, &topics, &redeemed_data(&other), block)),
        ("a secret of another hash", log(htlc, &[read::REDEEMED, id, other_hash], &redeemed_data(&other), block)),
        ("another order", log(htlc, &[read::REDEEMED, B256::ZERO, hash], &redeemed_data(&SECRET), block)),
        ("another contract", log(Address::ZERO, &topics, &redeemed_data(&SECRET), block)),
        ("another block", log(htlc, &topics, &redeemed_data(&SECRET), block - 1)),
        ("another event", log(htlc, &[read::TRANSFER, id, hash], &redeemed_data(&SECRET), block)),
        ("removed", changed("removed", json!(true))),
        ("endless data", changed("data", json!(format!("0x{}", "00".repeat(5_000))))),
        ("a number that is too large", changed("blockNumber", json!(format!("0x{}", "f".repeat(64))))),
        ("no block", changed("blockHash", Value::Null)),
        ("no log", json!("log")),
    ] {
        let mut chain = chain().redeemed(destination, SECRET);
        chain.logs = vec![log];
        assert_eq!(judge(chain, 1).await.unwrap_err(), "node_malformed", "{why}");
    }
    let mut many = chain().redeemed(destination, SECRET);
    many.logs = vec![many.logs[0].clone(); 9];
    assert_eq!(judge(many, 1).await.unwrap_err(), "node_malformed");
}

#[tokio::test(start_paused = true)]
async fn endpoints_of_other_chains_are_asked_for_no_order() {
    let nodes = nodes(chain().with(|evm| evm.chain_id = 10), 1);
    let error = nodes.evm("ethereum").unwrap().htlc(&terms().destination).await.unwrap_err();
    assert_eq!((error.code().name(), error.is_transient()), ("node_wrong_chain", false));
    assert_eq!(error.to_string(), "a.example serves another chain: 10 instead of 1");
    let seen = nodes.transport().seen.lock().unwrap().clone();
    assert!(seen.iter().all(|(_, method, _)| method == "eth_chainId" || method == "eth_getBlockByNumber"), "{seen:?}");
    // Two honest endpoints remain.
    let one = chain().lying(|host, method, _| (host == "c.example" && method == "eth_chainId").then(|| json!("0x2105")));
    assert!(judge(one, 3).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn bodies_that_are_no_answer_are_unknown() {
    let nested = |depth: usize| [vec![b'['; depth], vec![b']'; depth]].concat();
    let bodies: Vec<(&str, u16, Vec<u8>)> = vec![
        ("node_malformed", 200, b"<html>Too many requests</html>".to_vec()),
        ("node_malformed", 200, Vec::new()),
        ("node_malformed", 200, nested(100_000)),
        ("node_malformed", 200, nested(60)),
        ("node_malformed", 200, br#"{"jsonrpc":"2.0","id":7,"result":"0x1"}"#.to_vec()),
        ("node_malformed", 200, br#"{"jsonrpc":"2.0","id":"0","result":"0x1"}"#.to_vec()),
        ("node_malformed", 200, br#"{"jsonrpc":"2.0","id":0,"result":1}"#.to_vec()),
        ("node_malformed", 200, br#"{"jsonrpc":"2.0","id":0,"result":null}"#.to_vec()),
        ("node_malformed", 200, br#"{"jsonrpc":"2.0","id":0}"#.to_vec()),
        ("node_malformed", 200, format!(r#"{{"id":0,"result":"0x{}"}}"#, "f".repeat(1_000_000)).into_bytes()),
        ("node_error", 200, br#"{"jsonrpc":"2.0","id":0,"error":{"code":-32005,"message":"limit exceeded"}}"#.to_vec()),
        ("node_error", 200, br#"{"error":"no such account"}"#.to_vec()),
        ("node_http_status", 429, br#"{"jsonrpc":"2.0","id":0,"result":"0x1"}"#.to_vec()),
        ("node_http_status", 301, Vec::new()),
        ("node_http_status", 500, Vec::new()),
    ];
    for (code, status, body) in bodies {
        let shown = String::from_utf8_lossy(&body[..body.len().min(80)]).into_owned();
        let lying = chain().answering(move |_, _| Some(Ok((status, body.clone()))));
        assert_eq!(judge(lying, 1).await.unwrap_err(), code, "{shown}");
    }
    let silent = chain().answering(|_, _| Some(Err(TransportErrorKind::Timeout)));
    assert_eq!(judge(silent, 1).await.unwrap_err(), "transport_timeout");
}

#[tokio::test(start_paused = true)]
async fn batches_with_missing_double_or_foreign_replies_are_unknown() {
    let change = |change: fn(&mut Vec<Value>)| {
        let honest = chain();
        chain().answering(move |host, body| {
            let calls: Value = serde_json::from_slice(body).unwrap();
            let calls = calls.as_array()?;
            let mut replies: Vec<_> = calls.iter().map(|call| honest.reply_to(host, call)).collect();
            change(&mut replies);
            Some(Ok((200, json!(replies).to_string().into_bytes())))
        })
    };
    assert!(judge(change(|replies| replies.reverse()), 1).await.is_ok(), "the order of replies is free");
    let changes: [fn(&mut Vec<Value>); 4] = [
        |replies| drop(replies.remove(0)),
        |replies| replies[1] = replies[0].clone(),
        |replies| replies[0]["id"] = json!(99),
        |replies| replies.clear(),
    ];
    for tampered in changes {
        assert_eq!(judge(change(tampered), 1).await.unwrap_err(), "node_malformed");
    }
}

#[tokio::test(start_paused = true)]
async fn blocks_that_contradict_each_other_are_unknown() {
    let block = |which: &'static str, member: &'static str, value: Value| {
        let honest = chain();
        chain().lying(move |_, method, params| {
            (method == "eth_getBlockByNumber" && params[0] == which).then(|| {
                let number = if which == "latest" { LATEST } else { INITIATED };
                let mut block = honest.block(number);
                block[member] = value.clone();
                block
            })
        })
    };
    let at = Box::leak(format!("{INITIATED:#x}").into_boxed_str());
    for (which, member, value) in [
        ("latest", "number", json!(format!("0x{}", "f".repeat(64)))),
        ("latest", "number", json!(format!("{:#x}", INITIATED - 1))),
        ("latest", "number", Value::Null),
        ("latest", "hash", json!("0x12")),
        ("latest", "timestamp", json!("soon")),
        (at, "number", json!("0x1")),
        (at, "hash", json!(hash_of(LATEST))),
        (at, "timestamp", json!("0xffffffffffff")),
    ] {
        assert_eq!(judge(block(which, member, value.clone()), 1).await.unwrap_err(), "node_malformed", "{which} {member} {value}");
    }
    for which in ["latest", at] {
        let missing =
            chain().lying(move |_, method, params| (method == "eth_getBlockByNumber" && params[0] == which).then_some(Value::Null));
        assert_eq!(judge(missing, 1).await.unwrap_err(), "node_malformed");
    }
}

#[tokio::test(start_paused = true)]
async fn a_chain_that_becomes_shorter_is_unknown() {
    let heights = std::sync::atomic::AtomicU64::new(0);
    let honest = chain();
    let shrinking = chain().lying(move |_, method, params| {
        (method == "eth_getBlockByNumber" && params[0] == "latest").then(|| {
            let step = heights.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            honest.block(LATEST - [0, 5, 40][usize::try_from(step).unwrap()])
        })
    });
    let nodes = nodes(shrinking, 1);
    let (chain, terms) = (nodes.evm("ethereum").unwrap(), terms());
    for _ in 0..2 {
        chain.htlc(&terms.destination).await.unwrap();
        nodes.transport().clock.fetch_add(1, Ordering::SeqCst);
    }
    let error = chain.htlc(&terms.destination).await.unwrap_err();
    assert_eq!(error.code().name(), "node_went_back");
}

#[tokio::test(start_paused = true)]
async fn enough_endpoints_must_agree() {
    let lie = |liars: &'static [&'static str]| {
        move |host: &str, method: &str, params: &Value| {
            let is_origin = method == "eth_getBlockByNumber" && params[0] == format!("{INITIATED:#x}");
            (liars.contains(&host) && is_origin).then(|| {
                let mut block = chain().block(INITIATED);
                block["hash"] = json!(hash_of(7));
                block
            })
        }
    };
    assert!(judge(chain().lying(lie(&["a.example"])), 3).await.is_ok());
    assert_eq!(judge(chain().lying(lie(&["a.example"])), 2).await.unwrap_err(), "node_disagree");
    // Two endpoints with the same lie outvote the third. This is the limit of a quorum.
    let (_, seen) = read_with(chain().lying(lie(&["a.example", "b.example"])), 3, &terms()).await.unwrap().state().unwrap();
    assert_eq!((seen.agreed, seen.needed), (2, 2));

    // One endpoint that reports "funded" is not enough.
    let unfunded = chain().with(|evm| evm.order = None);
    let words: Vec<_> = chain().order.unwrap().iter().flat_map(U256::to_be_bytes::<32>).collect();
    let one = unfunded.lying(move |host, method, params| {
        let is_orders = method == "eth_call" && params[0]["data"].as_str().unwrap().starts_with("0x9c3f1e90");
        (host == "b.example" && is_orders).then(|| json!(hex::encode_prefixed(&words)))
    });
    assert_eq!(judge(one, 3).await.unwrap_err(), "destination_not_funded");
}

#[tokio::test(start_paused = true)]
async fn the_worst_of_the_agreeing_endpoints_counts() {
    let honest = chain();
    let behind = chain().lying(move |host, method, params| {
        let block = (method == "eth_getBlockByNumber" && host == "b.example").then(|| params[0].as_str().unwrap().to_owned())?;
        (block == "latest").then(|| honest.block(LATEST - 20))
    });
    let (state, seen) = read_with(behind.with(|evm| evm.safe = Some(LATEST - 32)), 2, &terms()).await.unwrap().state().unwrap();
    let HtlcState::Locked(locked) = state else { panic!("{state:?}") };
    assert_eq!((locked.elapsed, seen.depth, seen.height.get(), seen.head_time.as_secs()), (99, 80, LATEST - 20, NOW - 5 - 20 * 12));
}

#[tokio::test(start_paused = true)]
async fn the_driver_sees_an_unknown_and_no_path() {
    let nodes = nodes(chain().answering(|_, _| Some(Ok((429, Vec::new())))), 2);
    assert!(nodes.has("ethereum") && !nodes.has("base"));
    let error = nodes.htlc(&terms().destination).await.unwrap_err().to_string();
    assert!(error.contains("429") && error.contains("a.example") && !error.contains("the-key"), "{error}");
}
