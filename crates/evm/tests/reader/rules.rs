//! The rules about orders, each with the lies that it finds.

use countersign_core::UnixTime;
use countersign_core::reader::{Agree, Answer, Fault, Known, Request};
use countersign_core::{EvmGeneration, Finding, Generation, HtlcState, HtlcTerms, SecretHash, U256};
use countersign_evm::alloy_primitives::{Address, B256};
use countersign_evm::reader::{Htlc, Newest, NewestBlock, OnChain};
use countersign_testkit::chain::evm::{Evm as EvmChain, INITIATED, LATEST, SECRET, hash_of, id, log, redeemed_data};
use serde_json::{Value, json};

use super::{assert_fault, assert_unclear, chain, drive, is_call_of, is_orders, leg, leg_with, read, read_lie, unbound, with_event, words};

/// E1
#[test]
fn the_chain_id_is_asked_in_every_round() {
    for wrong in 0..3 {
        let answer = |round: usize, place: usize, request: &Request| {
            if (round, place) == (wrong, 0) { Answer::result(*b"\"0xa\"") } else { chain().answer(request) }
        };
        let fault = drive::<Htlc>(&leg(), &Known::default(), answer).0.unwrap_err();
        assert_eq!(fault, Fault::WrongChain { expected: "1".to_owned(), actual: "10".to_owned() });
    }
}

/// E2
#[test]
fn a_chain_must_not_become_shorter() {
    let read = |height: u64| drive::<Htlc>(&leg(), &Known::default().with_height(height.into()), |_, _, request| chain().answer(request)).0;
    assert!(read(LATEST + 16).is_ok());
    assert_eq!(read(LATEST + 17).unwrap_err(), Fault::WentBack { before: (LATEST + 17).into(), now: LATEST.into() });
    // Half a minute of Base, which may have ten blocks a second.
    let query = OnChain { chain_id: 8_453, subject: Newest };
    let head = |height: u64| {
        let chain = || EvmChain { chain_id: 8_453, ..chain() };
        drive::<NewestBlock>(&query, &Known::default().with_height(height.into()), |_, _, request| chain().answer(request)).0
    };
    assert!(head(LATEST + 300).is_ok());
    assert_eq!(head(LATEST + 301).unwrap_err(), Fault::WentBack { before: (LATEST + 301).into(), now: LATEST.into() });
    let tip = OnChain { chain_id: 1, subject: Newest };
    let tip =
        |height: u64| drive::<NewestBlock>(&tip, &Known::default().with_height(height.into()), |_, _, request| chain().answer(request)).0;
    assert_eq!(tip(LATEST).unwrap().output().height.get(), LATEST);
    assert_eq!(tip(u64::MAX).unwrap_err().code().name(), "node_went_back");
}

/// E3
#[test]
fn a_foreign_contract_without_the_order_is_no_absence() {
    for token in [Address::ZERO, Address::repeat_byte(1), read::NATIVE] {
        assert_unclear(read(&EvmChain { order: None, token, ..chain() }, &leg()));
        assert_unclear(read(&EvmChain { token, ..chain() }, &leg()));
    }
}

/// E4
#[test]
fn all_parts_are_asked_at_one_block() {
    let blocks = std::cell::RefCell::new(Vec::new());
    read_lie(&chain(), &leg(), |method, params| {
        if method == "eth_call" || method == "eth_getProof" {
            let block = params.as_array().unwrap().last().unwrap().clone();
            assert_eq!(block["requireCanonical"], true);
            blocks.borrow_mut().push(block["blockHash"].as_str().unwrap().to_owned());
        }
        None
    })
    .unwrap();
    let hash = |number: u64| hash_of(number).to_string();
    let newest = hash(LATEST);
    assert_eq!(blocks.into_inner(), [newest.clone(), newest.clone(), newest.clone(), newest, hash(LATEST - 32), hash(LATEST - 64)]);
}

/// E5
#[test]
fn a_proof_must_contain_the_order() {
    let terms = leg();
    let proving = chain().proving(&terms);
    assert!(matches!(read(&proving, &terms).unwrap().state, HtlcState::Locked(_)));
    let absent = EvmChain { order: None, ..proving.clone() };
    assert_eq!(read(&absent, &terms).unwrap().state, HtlcState::Absent);
    let mut larger = proving.order.unwrap();
    larger[4] += U256::ONE;
    for lie in [words(&larger), words(&[U256::ZERO; 6]), words(&chain().redeemed(&terms, SECRET).order.unwrap())] {
        let newest = proving.hash(LATEST).to_string();
        let outcome = read_lie(&proving, &terms, |method, params| {
            (is_orders(method, params) && params[1]["blockHash"] == newest).then(|| lie.clone())
        });
        assert_fault(outcome, "node_malformed");
    }
    // An order on an endpoint that proves that there is none.
    let outcome = read_lie(&absent, &terms, |method, params| is_orders(method, params).then(|| words(&proving.order.unwrap())));
    assert_fault(outcome, "node_malformed");
    // A proof for another root proves nothing, and a chain without proofs is read without them.
    for proof in [
        json!({"error": {"code": -32601, "message": "no such method"}}),
        Value::Null,
        json!({}),
        absent.result("eth_getProof", &json!([proving.htlc, [], {"blockHash": absent.hash(LATEST)}])),
    ] {
        let outcome = read_lie(&proving, &terms, |method, _| (method == "eth_getProof").then(|| proof.clone()));
        assert!(matches!(outcome.unwrap().state, HtlcState::Locked(_)), "{proof}");
    }
}

/// E6
#[test]
fn a_mark_counts_only_if_the_order_was_the_same_there() {
    let marks = |chain: &EvmChain| {
        let seen = read(chain, &leg()).unwrap().seen;
        (seen.is_safe, seen.is_finalized)
    };
    assert_eq!(marks(&EvmChain { safe: None, finalized: None, ..chain() }), (false, false));
    assert_eq!(marks(&EvmChain { safe: Some(INITIATED - 1), finalized: None, ..chain() }), (false, false));
    assert_eq!(marks(&EvmChain { safe: Some(INITIATED), finalized: Some(INITIATED - 1), ..chain() }), (true, false));
    assert_eq!(marks(&EvmChain { safe: Some(LATEST), finalized: Some(LATEST), ..chain() }), (true, true));
    assert_eq!(marks(&EvmChain { safe: Some(LATEST + 1), finalized: Some(LATEST + 1), ..chain() }), (false, false));
    let other = chain().redeemed(&leg(), SECRET).order.unwrap();
    for there in [words(&other), words(&[U256::ZERO; 6]), Value::Null, json!({"error": {"code": -32000, "message": "missing trie node"}})] {
        let outcome = read_lie(&chain(), &leg(), |method, params| {
            (is_orders(method, params) && params[1]["blockHash"] != hash_of(LATEST).to_string()).then(|| there.clone())
        });
        let seen = outcome.unwrap().seen;
        assert!(!seen.is_safe && !seen.is_finalized, "{there}");
    }
    // A block at the newest height with another hash is on another branch.
    let outcome = read_lie(&chain(), &leg(), |method, params| {
        (method == "eth_getBlockByNumber" && params[0] == "finalized").then(|| {
            let mut block = chain().block(LATEST);
            block["hash"] = json!(hash_of(7));
            block
        })
    });
    assert!(!outcome.unwrap().seen.is_finalized);
}

/// E7
#[test]
fn the_block_of_the_funding_must_fit_the_newest_one() {
    let origin = |change: &dyn Fn(&mut Value)| {
        read_lie(&chain(), &leg(), |method, params| {
            (method == "eth_getBlockByNumber" && params[0] == format!("{INITIATED:#x}")).then(|| {
                let mut block = chain().block(INITIATED);
                change(&mut block);
                block
            })
        })
    };
    for (member, value) in
        [("number", json!("0x1")), ("hash", json!(hash_of(LATEST))), ("timestamp", json!("0xffffffffffff")), ("hash", Value::Null)]
    {
        assert_fault(origin(&|block| block[member] = value.clone()), "node_malformed");
    }
    assert_fault(origin(&|block| *block = Value::Null), "node_malformed");
    // Another hash is another result, which other endpoints do not share.
    let other = origin(&|block| block["hash"] = json!(hash_of(7))).unwrap();
    assert_ne!(other.key(), read(&chain(), &leg()).unwrap().key());
}

/// E8, E9
#[test]
fn an_end_is_one_event_in_the_block_that_the_contract_names() {
    let terms = leg();
    let with = |logs: Vec<Value>| read(&EvmChain { logs, ..chain().redeemed(&terms, SECRET) }, &terms);
    let block = LATEST - 70;
    let (htlc, hash) = (chain().htlc, B256::from(terms.secret_hash.0));
    let good = || log(htlc, &[read::REDEEMED, id(&terms), hash], &redeemed_data(&SECRET), block);
    assert!(with(vec![good()]).is_ok());
    let why = |logs: Vec<Value>| match with(logs).unwrap().state {
        HtlcState::Unclear(why) => why,
        other => panic!("{other:?}"),
    };
    assert_eq!(why(Vec::new()), "the order has ended, and no event shows how");
    assert_eq!(why(vec![good(), good()]), "the order has ended more than once");
    assert_eq!(why(vec![good(); 8]), "the order has ended more than once");
    assert_unclear(with(vec![good(), log(htlc, &[read::REFUNDED, id(&terms)], &[], block)]));
    assert_fault(with(vec![good(); 9]), "node_malformed");
    let other = [0x11; 32];
    let other_hash = B256::from(SecretHash::of(&other).0);
    for foreign in [
        log(htlc, &[read::REDEEMED, id(&terms), hash], &redeemed_data(&SECRET), block - 1),
        log(htlc, &[read::REDEEMED, id(&terms), hash], &redeemed_data(&SECRET), block + 1),
        log(htlc, &[read::REDEEMED, id(&terms), hash], &redeemed_data(&other), block),
        log(htlc, &[read::REDEEMED, id(&terms), other_hash], &redeemed_data(&other), block),
        log(htlc, &[read::REDEEMED, B256::ZERO, hash], &redeemed_data(&SECRET), block),
        log(Address::ZERO, &[read::REDEEMED, id(&terms), hash], &redeemed_data(&SECRET), block),
        log(htlc, &[read::INITIATED, id(&terms), hash, terms.amount.into()], &[], block),
    ] {
        assert_fault(with(vec![foreign]), "node_malformed");
    }
    // The event is in the newest block, which has another hash.
    let mut newest = chain().redeemed(&terms, SECRET);
    newest.order.as_mut().unwrap()[5] = U256::from(LATEST);
    let mut event = log(htlc, &[read::REDEEMED, id(&terms), hash], &redeemed_data(&SECRET), LATEST);
    newest.logs = vec![event.clone()];
    assert_eq!(read(&newest, &terms).unwrap().seen.depth, 1);
    event["blockHash"] = json!(hash_of(7));
    newest.logs = vec![event];
    assert_fault(read(&newest, &terms), "node_malformed");
}

/// E10
#[test]
fn an_order_that_no_contract_stores_is_unclear() {
    let mut before = chain().redeemed(&leg(), SECRET).order.unwrap();
    before[5] = U256::from(INITIATED - 1);
    let mut foreign = chain().order.unwrap();
    foreign[1] = U256::MAX;
    for lie in [words(&before), words(&foreign), words(&[U256::ONE; 5]), words(&[U256::ONE; 7]), json!("0x")] {
        assert_unclear(read_lie(&chain(), &leg(), |method, params| is_orders(method, params).then(|| lie.clone())));
    }
    for revert in
        [json!({"code": 3, "message": "execution reverted", "data": "0x"}), json!({"code": -32000, "message": "execution reverted"})]
    {
        let outcome = read_lie(&chain(), &leg(), |method, params| is_orders(method, params).then(|| json!({"error": revert})));
        assert_unclear(outcome);
    }
    // A failing node proves nothing about the contract.
    for failure in [
        json!({"code": -32000, "message": "missing trie node"}),
        json!({"code": -32000, "message": "historical state is not available", "data": "0x5f0e"}),
        json!({"code": -32603, "message": "internal error"}),
    ] {
        let outcome = read_lie(&chain(), &leg(), |method, params| is_orders(method, params).then(|| json!({"error": failure})));
        assert_fault(outcome, "node_error");
    }
}

/// E11
#[test]
fn an_order_from_the_future_is_a_fault() {
    let mut order = chain().order.unwrap();
    order[2] = U256::from(LATEST + 1);
    assert_fault(read(&EvmChain { order: Some(order), ..chain() }, &leg()), "node_malformed");
    let mut ended = chain().redeemed(&leg(), SECRET);
    ended.order.as_mut().unwrap()[5] = U256::from(LATEST + 1);
    assert_fault(read(&ended, &leg()), "node_malformed");
}

/// E12
#[test]
fn only_the_old_native_contract_has_no_token() {
    let native = |generation| leg_with(|terms| (terms.token, terms.generation) = (None, Some(Generation::Evm(generation))));
    let read = |chain: &EvmChain, terms: &HtlcTerms| {
        read_lie(chain, terms, |method, params| {
            is_call_of(method, params, &read::token_call()).then(|| json!({"error": {"code": 3, "message": "execution reverted"}}))
        })
    };
    let (absent, older) = (EvmChain { order: None, ..chain() }, EvmChain { order: Some(chain().older(false)), ..chain() });
    assert_eq!(read(&absent, &native(EvmGeneration::OLD)).unwrap().state, HtlcState::Absent);
    assert!(matches!(read(&older, &native(EvmGeneration::OLD)).unwrap().state, HtlcState::Locked(_)));
    assert!(matches!(read(&older, &leg_with(|terms| terms.token = None)).unwrap().state, HtlcState::Locked(_)));
    assert_unclear(read(&absent, &native(EvmGeneration::V3)));
    assert_unclear(read(&absent, &leg_with(|terms| terms.token = None)));
    assert_unclear(read(&chain(), &native(EvmGeneration::V3)));
    assert_unclear(read(&older, &leg()));
}

/// A contract on Arbitrum counts that chain's blocks or Ethereum's. The event in the block that the order names tells which.
#[test]
fn a_contract_that_counts_the_blocks_of_another_chain_is_unclear() {
    let young = EvmChain { l1_number: Some(INITIATED - 1), ..chain() };
    assert!(matches!(read(&young, &leg()).unwrap().state, HtlcState::Locked(_)));
    assert_unclear(read(&EvmChain { l1_number: Some(INITIATED), ..chain() }, &leg()));
    let told = EvmChain { l1_number: Some(LATEST), ..with_event() };
    let finding = read(&told, &leg()).unwrap();
    assert_eq!(finding.key(), read(&chain(), &leg()).unwrap().key());
    // The id commits to the hash that the event must therefore have.
    let mut other = told.clone();
    let topics = [read::INITIATED, id(&leg()), B256::ZERO, leg().amount.into()];
    other.logs = vec![log(other.htlc, &topics, &[], INITIATED)];
    assert_fault(read(&other, &leg()), "node_malformed");
}

/// The terms of the order on another chain.
fn leg_on(chain: &str, chain_id: u64) -> HtlcTerms {
    leg_with(|terms| (terms.chain, terms.network) = (chain.to_owned(), countersign_core::Network::Evm(chain_id)))
}

/// Without Ethereum's height beside the contract's own number, nobody can tell which of the two is counted.
#[test]
fn on_arbitrum_the_chain_itself_tells_which_blocks_are_counted() {
    for (name, chain_id) in [("arbitrum", 42_161), ("nova", 42_170), ("arbitrum_sepolia", 421_614), ("arbitrum_new", 7)] {
        let silent = EvmChain { chain_id, ..with_event() };
        assert_unclear(read(&silent, &leg_on(name, chain_id)));
        let told = EvmChain { l1_number: Some(INITIATED - 1), ..silent.clone() };
        assert!(matches!(read(&told, &leg_on(name, chain_id)).unwrap().state, HtlcState::Locked(_)));
        // Everything that does not depend on the unit is read.
        let absent = EvmChain { order: None, ..silent.clone() };
        assert_eq!(read(&absent, &leg_on(name, chain_id)).unwrap().state, HtlcState::Absent);
        let redeemed = silent.redeemed(&leg_on(name, chain_id), SECRET);
        assert!(matches!(read(&redeemed, &leg_on(name, chain_id)).unwrap().state, HtlcState::Redeemed { .. }));
    }
    assert!(matches!(read(&chain(), &leg()).unwrap().state, HtlcState::Locked(_)), "another chain has one unit");
}

/// A height of the chain below that does not grow with the chain tells nothing.
#[test]
fn counters_that_stand_still_or_contradict_each_other_are_unclear() {
    let told = EvmChain { l1_number: Some(1_000), ..with_event() };
    // The block of the funding shows this height, and this is its age in seconds.
    let read = |before: Option<u64>, age: u64| {
        read_lie(&told, &leg(), |method, params| {
            (method == "eth_getBlockByNumber" && params[0] == format!("{INITIATED:#x}")).then(|| {
                let mut block = told.block(INITIATED);
                block["timestamp"] = json!(format!("{:#x}", told.time - age));
                block["l1BlockNumber"] = before.map_or(Value::Null, |number| json!(format!("{number:#x}")));
                block
            })
        })
    };
    let is_locked = |outcome: Result<Finding, Fault>| matches!(outcome.unwrap().state, HtlcState::Locked(_));
    assert!(is_locked(read(Some(900), 86_400)) && is_locked(read(Some(1_000), 3_600)));
    assert_unclear(read(Some(1_000), 3_601));
    assert_unclear(read(Some(1_001), 60));
    assert_unclear(read(None, 60));
    // The contract's own number has stood still in the same way: the newest block is the one of the funding.
    let mut stalled = EvmChain { latest: INITIATED, safe: None, finalized: None, ..told.clone() };
    stalled.time = told.time - 86_400;
    let found = super::read(&stalled, &leg()).unwrap();
    assert_eq!(found.seen.head_time, UnixTime::from_secs(told.time - 86_400), "its age is for the judgement, which refuses an old head");
}

#[test]
fn the_event_of_the_funding_shows_the_hash_that_the_id_does_not() {
    let hash = |logs: Vec<Value>| match read(&EvmChain { logs, ..chain() }, &unbound()).unwrap().state {
        HtlcState::Locked(locked) => locked.secret_hash,
        other => panic!("{other:?}"),
    };
    let good = with_event().logs;
    assert_eq!(hash(good.clone()), Some(leg().secret_hash));
    assert_eq!(hash(Vec::new()), None);
    assert_eq!(hash([good.clone(), good.clone()].concat()), None);
    let mut elsewhere = good;
    elsewhere[0]["blockHash"] = json!(hash_of(7));
    assert_fault(read(&EvmChain { logs: elsewhere, ..chain() }, &unbound()), "node_malformed");
}
