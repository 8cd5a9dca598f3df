//! Reading an order from honest and lying Starknet endpoints: honest answers become evidence. A lie becomes "unknown" or a hold, never a
//! proof of funding.
mod fake;
mod preconditions;
mod prices;
mod replace;
mod shapes;
mod wallet;

use crate::support::{judged, shows_no_key};
use countersign::chains::UnixTime;
use countersign::reader::HtlcQuorum;
use countersign::starknet::{Felt, StarknetGeneration, felt, read};
use countersign::{
    Funded, SecretHash, U256,
    chains::{Finality, FinalityRule},
    evidence::{HtlcState, VerifiedTerms},
};
use countersign_client::TransportErrorKind;
use countersign_client::driver::Chains as _;
use countersign_node::NodeError;
use fake::{CLASS, Chain, Front, INITIATED, LATEST, NOW, READABLE, SECRET, chain_of, halves, hash_of, hex, nodes, redeemed_data, terms};
use serde_json::{Value, json};

const RULE: FinalityRule = FinalityRule::new(Finality::Safe, 64, 50);
const USUAL: &str = "starknet-to-2025-11";

async fn read_with(chain: impl Into<Front>, count: usize, terms: &VerifiedTerms) -> Result<HtlcQuorum, NodeError> {
    let nodes = nodes(chain, count);
    shows_no_key(nodes.starknet("starknet").unwrap().htlc(&terms.destination).await)
}

async fn judge_of(id: &str, chain: impl Into<Front>, count: usize) -> Result<Funded, String> {
    let terms = terms(id);
    judged(read_with(chain, count, &terms).await, &terms, &RULE, NOW)
}

async fn judge(chain: impl Into<Front>, count: usize) -> Result<Funded, String> {
    judge_of(USUAL, chain, count).await
}

fn chain() -> Chain {
    chain_of(USUAL)
}

#[tokio::test(start_paused = true)]
async fn a_funded_order_is_evidence() {
    for id in READABLE {
        for count in [1, 2, 3] {
            let terms = terms(id);
            let quorum = read_with(chain_of(id), count, &terms).await.unwrap();
            let (state, seen) = quorum.state().unwrap();
            let HtlcState::Locked(locked) = &state else { panic!("{id}: {state:?}") };
            assert_eq!((&locked.initiator, &locked.redeemer), (&terms.destination.initiator, &terms.destination.redeemer));
            assert_eq!((locked.amount, locked.timelock, locked.elapsed), (terms.destination.amount, terms.destination.timelock, 99));
            let hash = (!terms.destination.swap_id_recomputed).then_some(SecretHash::of(&SECRET));
            assert_eq!((&locked.token, locked.secret_hash, locked.covered), (&terms.destination.token, hash, true));
            assert_eq!((seen.height.get(), &seen.hash, seen.depth), (LATEST, &hash_of(LATEST), 100));
            assert_eq!((seen.is_safe, seen.is_finalized, seen.head_time.as_secs()), (true, true, NOW - 5));
            assert_eq!(u32::try_from(count / 2 + 1).unwrap(), seen.agreed, "as many as must agree");
            assert!(Funded::judge(&terms, &quorum, &RULE, UnixTime::from_secs(NOW)).is_ok(), "{id}");
        }
    }
}

/// Without a pinned generation, the contract of July 2025 is expected. It is not known how that contract stores its orders.
#[tokio::test(start_paused = true)]
async fn an_order_that_cannot_be_read_is_unclear_and_never_locked() {
    for id in ["starknet-to-captured-2025-07", USUAL] {
        let mut terms = terms(id);
        let mut chain = Chain::funded(&terms.destination);
        // Even if the contract has a getter that would fit.
        chain.generation = StarknetGeneration::NOVEMBER_2025;
        terms.destination.generation = terms.destination.generation.filter(|_| id != USUAL);
        let quorum = read_with(chain, 1, &terms).await.unwrap();
        let (state, _) = quorum.state().unwrap();
        let HtlcState::Unclear(why) = &state else { panic!("{id}: {state:?}") };
        assert!(why.contains("not known"), "{why}");
        assert_eq!(Funded::judge(&terms, &quorum, &RULE, UnixTime::from_secs(NOW)).unwrap_err().code().name(), "destination_unclear");
    }
}

#[tokio::test(start_paused = true)]
async fn three_round_trips_per_endpoint() {
    for id in READABLE {
        let (nodes, terms) = (nodes(chain_of(id), 1), terms(id));
        let starknet = nodes.starknet("starknet").unwrap();
        for _ in 0..3 {
            starknet.htlc(&terms.destination).await.unwrap();
        }
        let chain = nodes.transport();
        assert_eq!(chain.requests.lock().unwrap()["a.example"], 3 + 3 + 1, "the third time, nothing has changed");
        assert_eq!((chain.count("starknet_chainId"), chain.count("starknet_getClassAt")), (1, 1), "once for each endpoint");
        let seen = chain.seen.lock().unwrap();
        assert_eq!(seen[0].1, "starknet_chainId");
        let at_block = ["starknet_call", "starknet_getStorageAt", "starknet_getClassHashAt", "starknet_getClassAt"];
        let reads = seen.iter().filter(|(_, method, _)| at_block.contains(&method.as_str()));
        assert!(reads.clone().count() >= 6 && reads.clone().all(|(_, _, params)| params["block_id"]["block_hash"].is_string()));
    }
}

#[tokio::test(start_paused = true)]
async fn a_young_payment_is_not_final() {
    let (_, seen) = read_with(Chain { on_l1: Some(INITIATED - 1), ..chain() }, 1, &terms(USUAL)).await.unwrap().state().unwrap();
    assert_eq!((seen.is_safe, seen.is_finalized), (true, false));
    // A block that only L2 has accepted can still be replaced, so some of the timelock must have passed.
    let young = || Chain { latest: INITIATED + 63, on_l1: None, ..chain() };
    assert_eq!(judge(young(), 1).await.unwrap_err(), "destination_not_final");
    assert!(judge(Chain { latest: INITIATED + 64, ..young() }, 1).await.is_ok());
    assert!(judge(Chain { on_l1: Some(INITIATED), ..young() }, 1).await.is_ok(), "L1 has accepted it");
    // One endpoint without a mark is enough to remove it.
    let one = chain().lying(|host, method, params| {
        let is_mark = method == "starknet_getBlockWithTxHashes" && params["block_id"] == "l1_accepted";
        (host == "b.example" && is_mark).then(|| json!({"error": {"code": 24, "message": "Block not found"}}))
    });
    let (_, seen) = read_with(one, 2, &terms(USUAL)).await.unwrap().state().unwrap();
    assert_eq!((seen.agreed, seen.is_finalized), (2, false));
    // The order was different or did not exist in the block that L1 accepted.
    let on_l1 = hash_of(INITIATED + 10);
    for answer in [json!(vec!["0x0"; 7]), json!(vec!["0x1"; 7]), json!([]), json!({"error": {"code": -32000, "message": "pruned"}})] {
        let on_l1 = on_l1.clone();
        let lie = move |_: &str, method: &str, params: &Value| {
            (method == "starknet_call" && params["block_id"]["block_hash"] == on_l1).then(|| answer.clone())
        };
        let (_, seen) = read_with(chain().lying(lie), 1, &terms(USUAL)).await.unwrap().state().unwrap();
        assert!(!seen.is_finalized);
    }
}

#[tokio::test(start_paused = true)]
async fn every_changed_term_holds_the_secret() {
    for id in READABLE {
        let amount = terms(id).destination.amount;
        let [low, _] = felt::halves(amount - U256::ONE);
        for (field, value) in
            [(1, Felt::from(0x1234)), (2, Felt::from(0x1234)), (4, Felt::from(239)), (5, low), (3, Felt::from(INITIATED - 250))]
        {
            let mut chain = chain_of(id);
            chain.order.as_mut().unwrap()[field] = value;
            let hold = judge_of(id, chain, 1).await.unwrap_err();
            assert!(
                ["destination_differs", "destination_no_time", "node_malformed", "destination_unclear"].contains(&hold.as_str()),
                "{id} {field}: {hold}"
            );
        }
        assert_eq!(judge_of(id, Chain { holds: amount - U256::ONE, ..chain_of(id) }, 1).await.unwrap_err(), "destination_not_covered");
        assert_eq!(judge_of(id, Chain { order: None, ..chain_of(id) }, 1).await.unwrap_err(), "destination_not_funded");
        assert_eq!(judge_of(id, Chain { time: NOW - 600, ..chain_of(id) }, 1).await.unwrap_err(), "chain_stale");
        let late = Chain { latest: INITIATED + 195, ..chain_of(id) };
        assert_eq!(judge_of(id, late, 1).await.unwrap_err(), "destination_no_time");
    }
}

/// The id of the newest contract proves nothing, so the funding event must contain the hash that locks the payment.
#[tokio::test(start_paused = true)]
async fn a_hash_that_the_id_does_not_prove_is_shown_by_the_event() {
    let id = "starknet-to-client-3-1-3";
    let destination = terms(id).destination;
    let with = |events: Vec<Value>| Chain { events, ..chain_of(id) };
    let own = chain_of(id).initiated(destination.secret_hash, destination.amount);
    let other = chain_of(id).initiated(SecretHash([7; 32]), destination.amount);
    assert_eq!(judge_of(id, with(vec![other.clone()]), 1).await.unwrap_err(), "destination_differs");
    for events in [vec![], vec![own.clone(), other], vec![chain_of(id).initiated(destination.secret_hash, U256::ONE)]] {
        assert_eq!(judge_of(id, with(events.clone()), 1).await.unwrap_err(), "destination_unclear", "{events:?}");
    }
    let mut elsewhere = own;
    elsewhere["block_hash"] = json!(hash_of(7));
    assert_eq!(judge_of(id, with(vec![elsewhere]), 1).await.unwrap_err(), "destination_unclear");
}

#[tokio::test(start_paused = true)]
async fn a_contract_of_another_kind_is_unclear() {
    let orders = |result: Value| {
        chain().lying(move |_, method, params| {
            let is_order = method == "starknet_call" && params["request"]["entry_point_selector"] == hex(read::GET_ORDER);
            is_order.then(|| result.clone())
        })
    };
    for result in [
        json!([]),
        json!(["0x1"]),
        json!(vec!["0x1"; 8]),
        json!(vec!["0x1"; 6]),
        json!(["0x0", "0xa", "0xb", "0x0", "0x1", "0x1", "0x0"]),
        json!({"error": {"code": 20, "message": "Contract not found"}}),
        json!({"error": {"code": 21, "message": "Requested entrypoint does not exist in the contract"}}),
        json!({"error": {"code": 40, "message": "Contract error"}}),
    ] {
        assert_eq!(judge(orders(result.clone()), 1).await.unwrap_err(), "destination_unclear", "{result}");
    }
    // Invalid felts, and more felts than any order has.
    for result in [json!(vec!["0x1"; 65]), json!(["x"]), json!([1]), json!("0x1"), json!([format!("0x{}", "f".repeat(64))])] {
        assert_eq!(judge(orders(result.clone()), 1).await.unwrap_err(), "node_malformed", "{result}");
    }
    // A failing node is not a contract that panics.
    for code in [24, -32_603, 63] {
        let failing = json!({"error": {"code": code, "message": "header not found"}});
        assert_eq!(judge(orders(failing), 1).await.unwrap_err(), "node_error");
    }
    assert_eq!(judge(Chain { token: Felt::ONE, ..chain() }, 1).await.unwrap_err(), "destination_unclear");
}

#[tokio::test(start_paused = true)]
async fn the_class_is_that_of_the_pinned_generation_and_stays() {
    let own = [StarknetGeneration::FEBRUARY_2025, StarknetGeneration::NOVEMBER_2025, StarknetGeneration::CLIENT_3_1_3];
    let abi = |generation| countersign_testkit::cairo::abi(generation).to_string();
    for (id, generation) in READABLE.into_iter().zip(own) {
        for other in own.into_iter().filter(|other| *other != generation) {
            let hold = judge_of(id, Chain { abi: abi(other), ..chain_of(id) }, 1).await.unwrap_err();
            assert_eq!(hold, "destination_unclear", "{id} is {other:?}");
        }
        for text in ["", "[]", "{"] {
            let hold = judge_of(id, Chain { abi: text.to_owned(), ..chain_of(id) }, 1).await.unwrap_err();
            assert_eq!(hold, "destination_unclear", "{id}: {text}");
        }
    }
    let classes = std::sync::atomic::AtomicU64::new(CLASS);
    let moving = chain().lying(move |_, method, _| {
        let is_class = method == "starknet_getClassHashAt";
        is_class.then(|| json!(hex(Felt::from(classes.fetch_add(1, std::sync::atomic::Ordering::SeqCst)))))
    });
    let (nodes, terms) = (nodes(moving, 1), terms(USUAL));
    let starknet = nodes.starknet("starknet").unwrap();
    assert!(matches!(starknet.htlc(&terms.destination).await.unwrap().state().unwrap().0, HtlcState::Locked(_)));
    let (state, _) = starknet.htlc(&terms.destination).await.unwrap().state().unwrap();
    assert!(matches!(&state, HtlcState::Unclear(why) if why.contains("changed")), "{state:?}");
    // Endpoints that report different classes do not agree.
    let two = chain().lying(|host, method, _| (host == "b.example" && method == "starknet_getClassHashAt").then(|| json!("0x7")));
    assert_eq!(judge(two, 2).await.unwrap_err(), "node_disagree");
}

#[tokio::test(start_paused = true)]
async fn the_event_says_how_an_order_ended() {
    for id in READABLE {
        let terms = terms(id);
        let (state, seen) = read_with(chain_of(id).redeemed(&SECRET), 2, &terms).await.unwrap().state().unwrap();
        let transaction = Some(hash_of(LATEST - 95 + 1_000_000_000));
        assert_eq!(state, HtlcState::Redeemed { secret: Some(SECRET), transaction }, "{id}");
        assert_eq!((seen.depth, seen.agreed), (96, 2));
        let (state, seen) = read_with(chain_of(id).refunded(), 1, &terms).await.unwrap().state().unwrap();
        assert!(matches!(state, HtlcState::Refunded { transaction: Some(_) }), "{state:?}");
        assert_eq!(seen.depth, 11);
        assert_eq!(judge_of(id, chain_of(id).refunded(), 1).await.unwrap_err(), "destination_refunded");

        // An empty answer proves nothing.
        let silent = Chain { events: Vec::new(), ..chain_of(id).redeemed(&SECRET) };
        assert_eq!(judge_of(id, silent, 1).await.unwrap_err(), "destination_unclear");
        let mut both = chain_of(id).redeemed(&SECRET);
        both.events.push(both.event(&[read::REFUNDED, both.id], &[], LATEST - 95));
        assert_eq!(judge_of(id, both, 1).await.unwrap_err(), "destination_unclear");
    }
}

/// A node that searches many blocks may return empty pages first.
#[tokio::test(start_paused = true)]
async fn events_are_followed_over_a_bounded_number_of_pages() {
    for id in READABLE {
        let terms = terms(id);
        for (empty, is_found) in [(0, true), (3, true), (15, true), (16, false), (1_000, false)] {
            let nodes = nodes(Chain { empty_pages: Some(empty), ..chain_of(id).redeemed(&SECRET) }, 1);
            let (state, _) = nodes.starknet("starknet").unwrap().htlc(&terms.destination).await.unwrap().state().unwrap();
            assert_eq!(matches!(state, HtlcState::Redeemed { secret: Some(SECRET), .. }), is_found, "{id} {empty}: {state:?}");
            assert_eq!(matches!(state, HtlcState::Unclear(_)), !is_found, "{id} {empty}: {state:?}");
            assert_eq!(nodes.transport().count("starknet_getEvents"), (empty + 1).min(16));
        }
        // A contradiction on a later page counts.
        let mut both = Chain { empty_pages: Some(2), ..chain_of(id).redeemed(&SECRET) };
        both.events.push(both.event(&[read::REFUNDED, both.id], &[], LATEST - 95));
        assert_eq!(judge_of(id, both, 1).await.unwrap_err(), "destination_unclear");
        if !terms.destination.swap_id_recomputed {
            assert!(judge_of(id, Chain { empty_pages: Some(3), ..chain_of(id) }, 1).await.is_ok(), "{id}: how it began");
        }
    }
    let mut many = Chain { empty_pages: Some(0), ..chain().redeemed(&SECRET) };
    many.events = vec![many.events[0].clone(); 9];
    assert_eq!(judge(many, 1).await.unwrap_err(), "node_malformed");
    for token in [json!(7), json!("x".repeat(1_025))] {
        let odd = chain()
            .redeemed(&SECRET)
            .lying(move |_, method, _| (method == "starknet_getEvents").then(|| json!({"events": [], "continuation_token": token})));
        assert_eq!(judge(odd, 1).await.unwrap_err(), "node_malformed");
    }
}

#[tokio::test(start_paused = true)]
async fn a_forged_event_is_unknown() {
    let chain_ = chain();
    let (id, block) = (chain_.id, LATEST - 95);
    let data = |secret: &[u8; 32]| redeemed_data(StarknetGeneration::NOVEMBER_2025, secret);
    let mut mismatched = data(&SECRET);
    mismatched[0] = Felt::ONE;
    let good = chain_.event(&[read::REDEEMED, id], &data(&SECRET), block);
    let changed = |member: &str, value: Value| {
        let mut event = good.clone();
        event[member] = value;
        event
    };
    for (why, event) in [
        ("a secret that does not hash", chain_.event(&[read::REDEEMED, id], &mismatched, block)),
        ("a secret of another hash", chain_.event(&[read::REDEEMED, id], &data(&[0x11; 32]), block)),
        ("another order", chain_.event(&[read::REDEEMED, Felt::ONE], &data(&SECRET), block)),
        ("another block", chain_.event(&[read::REDEEMED, id], &data(&SECRET), block - 1)),
        ("another event", chain_.event(&[read::TRANSFER, id], &data(&SECRET), block)),
        ("no keys", changed("keys", json!([]))),
        ("another contract", changed("from_address", json!("0x1"))),
        ("too many keys", changed("keys", json!(vec!["0x1"; 5]))),
        ("endless data", changed("data", json!(vec!["0x0"; 129]))),
        ("a number that is too large", changed("block_number", json!(1e30))),
        ("no block", changed("block_hash", Value::Null)),
        ("no transaction", changed("transaction_hash", Value::Null)),
        ("no event", json!("event")),
    ] {
        let mut chain = chain().redeemed(&SECRET);
        chain.events = vec![event];
        assert_eq!(judge(chain, 1).await.unwrap_err(), "node_malformed", "{why}");
    }
    let mut many = chain().redeemed(&SECRET);
    many.events = vec![good.clone(); 9];
    assert_eq!(judge(many, 1).await.unwrap_err(), "node_malformed");
}

#[tokio::test(start_paused = true)]
async fn endpoints_of_other_chains_are_asked_nothing_else() {
    let nodes = nodes(Chain { chain_id: "SN_SEPOLIA", ..chain() }, 1);
    let error = nodes.starknet("starknet").unwrap().htlc(&terms(USUAL).destination).await.unwrap_err();
    assert_eq!((error.code().name(), error.is_transient()), ("node_wrong_chain", false));
    assert_eq!(error.to_string(), "a.example serves another chain: SN_SEPOLIA instead of SN_MAIN");
    assert_eq!(nodes.transport().requests.lock().unwrap()["a.example"], 1);
    // Two honest endpoints remain.
    let one = chain().lying(|host, method, _| (host == "c.example" && method == "starknet_chainId").then(|| json!("0x1")));
    assert!(judge(one, 3).await.is_ok());
    for version in ["0.8.1", "0.7.1", "1.0.0", "0.90.0", ""] {
        assert_eq!(judge(Chain { version, ..chain() }, 1).await.unwrap_err(), "node_malformed", "{version}");
    }
    assert!(judge(Chain { version: "0.10.0-rc.1", ..chain() }, 1).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn bodies_that_are_no_answer_are_unknown() {
    let nested = |depth: usize| [vec![b'['; depth], vec![b']'; depth]].concat();
    let bodies: Vec<(&str, u16, Vec<u8>)> = vec![
        ("node_malformed", 200, b"<html>Too many requests</html>".to_vec()),
        ("node_malformed", 200, Vec::new()),
        ("node_malformed", 200, nested(100_000)),
        ("node_malformed", 200, br#"[{"jsonrpc":"2.0","id":7,"result":"0x1"}]"#.to_vec()),
        ("node_malformed", 200, br#"[{"jsonrpc":"2.0","id":0,"result":"0x1"},{"jsonrpc":"2.0","id":0,"result":"0x1"}]"#.to_vec()),
        ("node_malformed", 200, br#"[{"jsonrpc":"2.0","id":0,"result":1},{"jsonrpc":"2.0","id":1,"result":1}]"#.to_vec()),
        ("node_malformed", 200, br#"[{"jsonrpc":"2.0","id":0,"result":null},{"jsonrpc":"2.0","id":1}]"#.to_vec()),
        ("node_error", 200, br#"{"jsonrpc":"2.0","error":{"code":-32005,"message":"limit exceeded"}}"#.to_vec()),
        ("node_http_status", 429, b"{}".to_vec()),
        ("node_http_status", 301, Vec::new()),
        ("node_http_status", 500, Vec::new()),
    ];
    for (code, status, body) in bodies {
        let shown = String::from_utf8_lossy(&body[..body.len().min(80)]).into_owned();
        let lying = Front::answering(chain(), move |_, _| Some(Ok((status, body.clone()))));
        assert_eq!(judge(lying, 1).await.unwrap_err(), code, "{shown}");
    }
    let silent = Front::answering(chain(), |_, _| Some(Err(TransportErrorKind::Timeout)));
    assert_eq!(judge(silent, 1).await.unwrap_err(), "transport_timeout");
}

#[tokio::test(start_paused = true)]
async fn blocks_that_contradict_each_other_are_unknown() {
    let block = |which: Value, member: &'static str, value: Value| {
        let honest = chain();
        chain().lying(move |_, method, params| {
            (method == "starknet_getBlockWithTxHashes" && params["block_id"] == which).then(|| {
                let mut block = honest.block(if which == "latest" { LATEST } else { INITIATED });
                block[member] = value.clone();
                block
            })
        })
    };
    let at = json!({"block_number": INITIATED});
    for (which, member, value) in [
        (json!("latest"), "block_number", json!(1e30)),
        (json!("latest"), "block_number", json!(INITIATED - 1)),
        (json!("latest"), "block_number", Value::Null),
        (json!("latest"), "block_hash", json!("12")),
        (json!("latest"), "timestamp", json!("soon")),
        (json!("latest"), "status", json!("PRE_CONFIRMED")),
        (json!("latest"), "status", json!("REJECTED")),
        (at.clone(), "block_number", json!(1)),
        (at.clone(), "block_hash", json!(hash_of(LATEST))),
        (at.clone(), "timestamp", json!(NOW + 1_000)),
    ] {
        let outcome = judge(block(which.clone(), member, value.clone()), 1).await.unwrap_err();
        assert_eq!(outcome, "node_malformed", "{which} {member} {value}");
    }
    for which in [json!("latest"), at] {
        let missing = chain().lying(move |_, method, params| {
            let is_asked = method == "starknet_getBlockWithTxHashes" && params["block_id"] == which;
            is_asked.then(|| json!({"error": {"code": 24, "message": "Block not found"}}))
        });
        assert_eq!(judge(missing, 1).await.unwrap_err(), "node_error");
    }
}

#[tokio::test(start_paused = true)]
async fn a_chain_that_becomes_shorter_is_unknown() {
    let heights = std::sync::atomic::AtomicUsize::new(0);
    let honest = chain();
    let shrinking = chain().lying(move |_, method, params| {
        (method == "starknet_getBlockWithTxHashes" && params["block_id"] == "latest").then(|| {
            let step = heights.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            honest.block(LATEST - [0, 5, 40][step])
        })
    });
    let (nodes, terms) = (nodes(shrinking, 1), terms(USUAL));
    let starknet = nodes.starknet("starknet").unwrap();
    starknet.htlc(&terms.destination).await.unwrap();
    starknet.htlc(&terms.destination).await.unwrap();
    assert_eq!(starknet.htlc(&terms.destination).await.unwrap_err().code().name(), "node_went_back");
}

#[tokio::test(start_paused = true)]
async fn enough_endpoints_must_agree() {
    let lie = |liars: &'static [&'static str]| {
        move |host: &str, method: &str, params: &Value| {
            let is_origin = method == "starknet_getBlockWithTxHashes" && params["block_id"]["block_number"] == INITIATED;
            (liars.contains(&host) && is_origin).then(|| {
                let mut block = chain().block(INITIATED);
                block["block_hash"] = json!(hash_of(7));
                block
            })
        }
    };
    assert!(judge(chain().lying(lie(&["a.example"])), 3).await.is_ok());
    assert_eq!(judge(chain().lying(lie(&["a.example"])), 2).await.unwrap_err(), "node_disagree");

    // One endpoint that reports "funded" is not enough.
    let felts = json!(chain().order.unwrap().map(hex));
    let one = Chain { order: None, ..chain() }.lying(move |host, method, params| {
        let is_order = method == "starknet_call" && params["request"]["entry_point_selector"] == hex(read::GET_ORDER);
        (host == "b.example" && is_order).then(|| felts.clone())
    });
    assert_eq!(judge(one, 3).await.unwrap_err(), "destination_not_funded");
    let poor = chain().lying(|host, method, params| {
        let is_balance = method == "starknet_call" && params["request"]["entry_point_selector"] == hex(read::BALANCE_OF);
        (host == "b.example" && is_balance).then(|| halves(U256::ZERO))
    });
    assert_eq!(judge(poor, 2).await.unwrap_err(), "destination_not_covered");
}

#[tokio::test(start_paused = true)]
async fn the_worst_of_the_agreeing_endpoints_counts() {
    let honest = chain();
    let behind = chain().lying(move |host, method, params| {
        let is_latest = method == "starknet_getBlockWithTxHashes" && params["block_id"] == "latest";
        (host == "b.example" && is_latest).then(|| honest.block(LATEST - 20))
    });
    let (state, seen) = read_with(behind, 2, &terms(USUAL)).await.unwrap().state().unwrap();
    let HtlcState::Locked(locked) = state else { panic!("{state:?}") };
    assert_eq!((locked.elapsed, seen.depth, seen.height.get(), seen.head_time.as_secs()), (99, 80, LATEST - 20, NOW - 5 - 20 * 4));
}

#[tokio::test(start_paused = true)]
async fn the_driver_sees_an_unknown_and_no_path() {
    let nodes = nodes(Front::answering(chain(), |_, _| Some(Ok((429, Vec::new())))), 2);
    assert!(nodes.has("starknet") && !nodes.has("starknet_sepolia"));
    let error = nodes.htlc(&terms(USUAL).destination).await.unwrap_err().to_string();
    assert!(error.contains("429") && error.contains("a.example") && !error.contains("the-key"), "{error}");
    let head = nodes.head("starknet", 0).await.unwrap_err();
    assert_eq!(head.code().name(), "node_http_status");
}
