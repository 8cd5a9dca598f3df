//! Reading an order without I/O, from honest and lying endpoints: a lie is a fault or unclear, never a funded or redeemed order.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "a test ends by panicking"
)]

use countersign_core::reader::{
    Agree, Answer, FailureKind, Fault, Known, Machine, Next, Observation, Reader, Request, RpcError, Sent, Submission,
};
use countersign_core::{EvmGeneration, Finding, Generation, HtlcState, HtlcTerms, Network, Policy, SecretHash, U256};
use countersign_evm::alloy_primitives::{Address, B256, hex};
use countersign_evm::reader::{Broadcast, Htlc, HtlcReader, Tip, fees};
use countersign_evm::{Calls, Evm, Fees, address, read};
use countersign_testkit::chain::evm::{
    Evm as EvmChain, INITIATED, LATEST, NOW, SECRET, answer_with, hash_of, id, log, redeemed_data, terms,
};
use proptest::prelude::{any, prop_assert, proptest};
use serde_json::{Value, json};

fn leg() -> HtlcTerms {
    terms().destination
}

fn leg_with(change: impl FnOnce(&mut HtlcTerms)) -> HtlcTerms {
    let mut terms = leg();
    change(&mut terms);
    terms
}

/// The terms of an order whose id does not commit to the secret hash.
fn unbound() -> HtlcTerms {
    leg_with(|terms| terms.swap_id_recomputed = false)
}

fn chain() -> EvmChain {
    EvmChain::funded(&leg())
}

/// A chain with the event of the funding.
fn with_event() -> EvmChain {
    let (mut chain, terms) = (chain(), leg());
    let topics = [read::INITIATED, id(&terms), terms.secret_hash.0.into(), terms.amount.into()];
    chain.logs = vec![log(chain.htlc, &topics, &[], INITIATED)];
    chain
}

/// Drives a reader to its end. `answer` gets the round and the place of each request.
fn drive<M: Machine>(
    subject: &M::Subject,
    known: &Known,
    answer: impl Fn(usize, usize, &Request) -> Answer,
) -> (Result<Observation<M>, Fault>, Vec<usize>) {
    let mut reader = Reader::<M>::new(subject, known).unwrap();
    let mut asked = Vec::new();
    while let Next::Ask(requests) = reader.next() {
        let round = asked.len();
        asked.push(requests.len());
        let answers: Vec<_> = requests.iter().enumerate().map(|(place, request)| answer(round, place, request)).collect();
        reader.answer(&answers).unwrap();
    }
    assert!(asked.len() <= M::MAX_ROUNDS);
    (reader.finish(), asked)
}

fn read(chain: &EvmChain, terms: &HtlcTerms) -> Result<Finding, Fault> {
    drive::<Htlc>(terms, &Known::default(), |_, _, request| chain.answer(request)).0.map(Observation::into_output)
}

/// Reads with other results for some requests.
fn read_lie(chain: &EvmChain, terms: &HtlcTerms, lie: impl Fn(&str, &Value) -> Option<Value>) -> Result<Finding, Fault> {
    let answer = |_: usize, _: usize, request: &Request| {
        let Request::JsonRpc { method, params } = request else { panic!("{request:?}") };
        let params = serde_json::from_str(params).unwrap();
        answer_with(&lie(method, &params).unwrap_or_else(|| chain.result(method, &params)))
    };
    drive::<Htlc>(terms, &Known::default(), answer).0.map(Observation::into_output)
}

fn is_call_of(method: &str, params: &Value, data: &[u8]) -> bool {
    method == "eth_call" && params[0]["data"].as_str().unwrap().starts_with(&hex::encode_prefixed(&data[..4]))
}

fn is_orders(method: &str, params: &Value) -> bool {
    is_call_of(method, params, &read::orders_call([0; 32]))
}

fn words(words: &[U256]) -> Value {
    json!(hex::encode_prefixed(words.iter().flat_map(U256::to_be_bytes::<32>).collect::<Vec<_>>()))
}

#[track_caller]
fn assert_unclear(outcome: Result<Finding, Fault>) {
    let state = outcome.unwrap().state;
    assert!(matches!(state, HtlcState::Unclear(_)), "{state:?}");
}

#[track_caller]
fn assert_fault(outcome: Result<Finding, Fault>, code: &str) {
    assert_eq!(outcome.unwrap_err().code(), code);
}

// ---- what honest endpoints show

#[test]
fn an_open_order_is_read_in_three_rounds() {
    let terms = leg();
    let (observation, asked) = drive::<Htlc>(&terms, &Known::default(), |_, _, request| chain().answer(request));
    let observation = observation.unwrap();
    // Each round also asks for the identity.
    assert_eq!(asked, [1 + 3, 1 + 6, 1 + 1]);
    assert_eq!((observation.subject(), observation.known().height()), (&terms, LATEST));
    let Finding { state, origin, seen, .. } = observation.output();
    let HtlcState::Locked(locked) = state else { panic!("{state:?}") };
    assert_eq!((&locked.initiator, &locked.redeemer), (&terms.initiator, &terms.redeemer));
    assert_eq!((locked.amount, locked.timelock, locked.covered), (terms.amount, terms.timelock, true));
    // The elapsed time, the height and the time are the chain's own (G1, G2).
    assert_eq!((locked.elapsed, locked.least_elapsed, seen.height, seen.head_time), (99, 99, LATEST, NOW - 5));
    assert_eq!((seen.hash.as_str(), seen.depth), (hash_of(LATEST).to_string().as_str(), 100));
    assert_eq!((seen.is_safe, seen.is_finalized, seen.agreed, seen.needed), (true, true, 1, 1));
    // The hash of the block of the funding is what endpoints agree on (E7).
    assert_eq!(origin.as_slice(), hash_of(INITIATED).as_slice());
}

#[test]
fn an_order_that_has_ended_is_read_in_three_rounds() {
    let terms = leg();
    for (chain, is_redeemed) in [(chain().redeemed(&terms, SECRET), true), (chain().refunded(&terms), false)] {
        let (observation, asked) = drive::<Htlc>(&terms, &Known::default(), |_, _, request| chain.answer(request));
        let Finding { state, origin, .. } = observation.unwrap().into_output();
        assert_eq!(asked, [1 + 3, 1 + 6, 1 + 1]);
        let block = chain.order.unwrap()[5].to::<u64>();
        assert_eq!(origin.as_slice(), hash_of(block).as_slice());
        let transaction = Some(hash_of(block + 1_000_000_000).to_string());
        let expected =
            if is_redeemed { HtlcState::Redeemed { secret: Some(SECRET), transaction } } else { HtlcState::Refunded { transaction } };
        assert_eq!(state, expected);
    }
}

#[test]
fn an_order_that_does_not_exist_takes_two_rounds() {
    let chain = EvmChain { order: None, ..chain() };
    let (observation, asked) = drive::<Htlc>(&leg(), &Known::default(), |_, _, request| chain.answer(request));
    assert_eq!((observation.unwrap().into_output().state, asked), (HtlcState::Absent, vec![4, 7]));
}

#[test]
fn terms_that_name_no_order_are_refused() {
    type Change = (fn(&mut HtlcTerms), &'static str);
    let changes: [Change; 4] = [
        (|terms| terms.htlc = None, "/htlc"),
        (|terms| terms.token = Some("USDC".to_owned()), "/token"),
        (|terms| terms.swap_id = "0x12".to_owned(), "/swap_id"),
        (|terms| terms.network = Network::Tron(1), "/network"),
    ];
    for (change, at) in changes {
        assert_eq!(HtlcReader::new(&leg_with(change), &Known::default()).unwrap_err().location(), at);
    }
}

#[test]
fn endpoints_at_different_heights_agree() {
    let ahead = EvmChain { latest: LATEST + 3, time: NOW + 31, ..chain() };
    let (one, other) = (read(&chain(), &leg()).unwrap(), read(&ahead, &leg()).unwrap());
    assert_ne!(one, other);
    assert_eq!(one.key(), other.key());
}

/// The stamp names what is still to be read: it changes with the order and with each of the three blocks.
#[test]
fn a_stamp_is_of_one_order_at_three_blocks() {
    let stamp = |chain: &EvmChain, terms: &HtlcTerms| {
        let mut reader = HtlcReader::new(terms, &Known::default()).unwrap();
        assert_eq!(reader.stamp(), None);
        let Next::Ask(requests) = reader.next() else { panic!("{reader:?}") };
        let answers: Vec<_> = requests.iter().map(|request| chain.answer(request)).collect();
        reader.answer(&answers).unwrap();
        reader.stamp().unwrap()
    };
    let first = stamp(&chain(), &leg());
    let observation = drive::<Htlc>(&leg(), &Known::default(), |_, _, request| chain().answer(request)).0.unwrap();
    assert_eq!((stamp(&chain(), &leg()), observation.stamp()), (first.clone(), Some(first.as_slice())));
    let other_id = leg_with(|terms| terms.swap_id = "11".repeat(32));
    let other_hash = leg_with(|terms| terms.secret_hash = SecretHash([1; 32]));
    let pinned = leg_with(|terms| terms.generation = Some(Generation::Evm(EvmGeneration::V3)));
    for terms in [other_id, other_hash, pinned, unbound(), leg_with(|terms| terms.token = None)] {
        assert_ne!(stamp(&chain(), &terms), first);
    }
    for chain in [
        EvmChain { latest: LATEST + 1, ..chain() },
        EvmChain { safe: None, ..chain() },
        EvmChain { finalized: Some(LATEST - 65), ..chain() },
    ] {
        assert_ne!(stamp(&chain, &leg()), first);
    }
}

// ---- what the two readings did differently

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
    let read = |height| drive::<Htlc>(&leg(), &Known::default().with_height(height), |_, _, request| chain().answer(request)).0;
    assert!(read(LATEST + 16).is_ok());
    assert_eq!(read(LATEST + 17).unwrap_err(), Fault::WentBack { before: LATEST + 17, now: LATEST });
    let tip = |height| drive::<Tip>(&1, &Known::default().with_height(height), |_, _, request| chain().answer(request)).0;
    assert_eq!(tip(LATEST).unwrap().output().height, LATEST);
    assert_eq!(tip(u64::MAX).unwrap_err().code(), "node_went_back");
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
    // Another hash is another story, which other endpoints do not tell.
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
    assert_unclear(with(Vec::new()));
    assert_unclear(with(vec![good(), good()]));
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
    assert_eq!(read(&absent, &native(EvmGeneration::Old)).unwrap().state, HtlcState::Absent);
    assert!(matches!(read(&older, &native(EvmGeneration::Old)).unwrap().state, HtlcState::Locked(_)));
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

// ---- the table of lies

/// The answers that no request can have, and the code of the fault; none where it may also be unclear.
fn lies() -> Vec<(&'static str, Answer)> {
    let text = |text: String| Answer::result(text.into_bytes());
    let error = |code, message, data| Answer::Error(RpcError::new(code, message, data));
    vec![
        ("missing", text("null".to_owned())),
        ("a boolean", text("true".to_owned())),
        ("a number", text("7".to_owned())),
        ("a text", text("\"soon\"".to_owned())),
        ("nothing in hex", text("\"0x\"".to_owned())),
        ("too long for a number", text(format!("\"0x{}\"", "f".repeat(1_000)))),
        ("too long for an answer", text(format!("\"0x{}\"", "00".repeat(10_000)))),
        ("too deep", text(format!("{}{}", "[".repeat(100_000), "]".repeat(100_000)))),
        ("an empty object", text("{}".to_owned())),
        ("an empty list", text("[]".to_owned())),
        ("a list of nothing", text("[null]".to_owned())),
        ("a member twice", text(r#"{"number":"0x1","number":"0x2","hash":"0x"}"#.to_owned())),
        ("not JSON", text("<html>".to_owned())),
        ("no text", text(String::new())),
        ("an error", error(-32_000, "header not found", None)),
        ("a rate limit", error(-32_005, "limit exceeded", None)),
        ("a revert", error(3, "execution reverted", Some(vec![8, 0xc3, 0x79, 0xa0]))),
        ("a timeout", Answer::Failed(FailureKind::Timeout.into())),
        ("a broken connection", Answer::Failed(FailureKind::Interrupted.into())),
        ("a status", Answer::Failed(FailureKind::Status(503).into())),
        ("another protocol", Answer::http(200, *b"\"0x1\"")),
    ]
}

/// The readings of the table: an open order whose id commits to the hash, one whose id does not, and the two ends.
fn readings() -> Vec<(EvmChain, HtlcTerms)> {
    let terms = leg();
    vec![
        (chain(), leg()),
        (with_event(), unbound()),
        (chain().proving(&terms), leg()),
        (chain().redeemed(&terms, SECRET), leg()),
        (chain().refunded(&terms), leg()),
    ]
}

/// Requires that what is found is what the chain stores.
fn assert_own(chain: &EvmChain, terms: &HtlcTerms, finding: &Finding, why: &str) {
    match &finding.state {
        HtlcState::Locked(locked) => {
            let account = |word: U256| address::to_account(Address::from_word(word.into()));
            let [initiator, redeemer, _, timelock, amount, end] = chain.order.unwrap();
            assert!(end.is_zero(), "{why}");
            assert_eq!((&locked.initiator, &locked.redeemer), (&account(initiator), &account(redeemer)), "{why}");
            assert_eq!((locked.amount, U256::from(locked.timelock)), (amount, timelock), "{why}");
        }
        HtlcState::Redeemed { secret, .. } => assert_eq!(secret.map(|secret| SecretHash::of(&secret)), Some(terms.secret_hash), "{why}"),
        _ => {}
    }
}

#[test]
fn a_lie_is_a_fault_or_unclear() {
    let mut cases = 0;
    for (chain, terms) in readings() {
        let (_, asked) = drive::<Htlc>(&terms, &Known::default(), |_, _, request| chain.answer(request));
        for (round, requests) in asked.into_iter().enumerate() {
            for place in 0..requests {
                for (why, lie) in lies() {
                    let answer = |now: usize, at: usize, request: &Request| {
                        if (now, at) == (round, place) { lie.clone() } else { chain.answer(request) }
                    };
                    let (outcome, _) = drive::<Htlc>(&terms, &Known::default(), answer);
                    let why = format!("{why} at {round}/{place}");
                    cases += 1;
                    let Ok(observation) = outcome else { continue };
                    let finding = observation.into_output();
                    assert_own(&chain, &terms, &finding, &why);
                    let is_read = matches!(finding.state, HtlcState::Locked(_) | HtlcState::Redeemed { .. } | HtlcState::Refunded { .. });
                    match (round, place) {
                        // Without its answer the order is not marked. What is final is safe.
                        (0, 2) | (1, 5) => assert!(finding.seen.is_safe == finding.seen.is_finalized || !is_read, "{why}"),
                        (0, 3) | (1, 6) => assert!(!finding.seen.is_finalized || !is_read, "{why}"),
                        // Not every node has proofs, and some answer with something else.
                        (1, 4) => {}
                        // The event of the funding: without it the hash is unknown, and a judgement holds the secret.
                        (2, 2) => assert!(matches!(&finding.state, HtlcState::Locked(locked) if locked.secret_hash.is_none()), "{why}"),
                        _ => assert!(matches!(finding.state, HtlcState::Unclear(_)), "{why}: {:?}", finding.state),
                    }
                }
            }
        }
    }
    assert!(cases > 1_000, "{cases}");
}

#[test]
fn an_answer_to_another_request_shows_no_other_order() {
    for (chain, terms) in readings() {
        for round in 0..3 {
            for shift in 1..7 {
                let mut reader = HtlcReader::new(&terms, &Known::default()).unwrap();
                let mut now = 0;
                while let Next::Ask(requests) = reader.next() {
                    let mut answers: Vec<_> = requests.iter().map(|request| chain.answer(request)).collect();
                    if now == round {
                        let count = answers.len();
                        answers.rotate_left(shift % count);
                    }
                    now += 1;
                    reader.answer(&answers).unwrap();
                }
                if let Ok(observation) = reader.finish() {
                    assert_own(&chain, &terms, observation.output(), &format!("round {round}, shifted by {shift}"));
                }
            }
        }
    }
}

proptest! {
    /// A byte of an answer is changed: nothing panics, and no round is added.
    #[test]
    fn a_changed_byte_does_no_harm(which in 0_usize..5, round in 0_usize..3, place in 0_usize..8, at in any::<usize>(), byte in any::<u8>()) {
        let (chain, terms) = readings().swap_remove(which);
        let answer = |now: usize, there: usize, request: &Request| match chain.answer(request) {
            Answer::Result(text) if (now, there) == (round, place) => {
                let mut text = text.to_vec();
                let at = at % text.len();
                text[at] = byte;
                Answer::result(text)
            }
            other => other,
        };
        let (_, asked) = drive::<Htlc>(&terms, &Known::default(), answer);
        prop_assert!(asked.len() <= Htlc::MAX_ROUNDS);
    }
}

// ---- sending, and fees

fn submission() -> Submission {
    let case = countersign_testkit::fixture::<Evm>("evm-chain-id-integer");
    let mut order = countersign_testkit::verified::<Evm>(&case).prepare(Calls::eip1559(1, 30_000_000_000, 1)).unwrap();
    order.sign(&countersign_testkit::key::<Evm>(&case)).unwrap();
    let signed = order.finish().unwrap();
    let transaction = signed.transactions().pop().unwrap();
    Submission::new(&Network::Evm(1), &transaction.id, &hex::encode(&transaction.bytes))
}

#[test]
fn a_transaction_is_sent_to_no_other_chain() {
    let sent = std::cell::Cell::new(0);
    let send = |chain_id: u64, reply: Value, found: Value| {
        sent.set(0);
        drive::<Broadcast>(&submission(), &Known::default(), |_, _, request| {
            let Request::JsonRpc { method, .. } = request else { panic!("{request:?}") };
            answer_with(&match *method {
                "eth_chainId" => json!(format!("{chain_id:#x}")),
                "eth_sendRawTransaction" => {
                    sent.set(sent.get() + 1);
                    reply.clone()
                }
                "eth_getTransactionByHash" => found.clone(),
                other => panic!("{other}"),
            })
        })
        .0
        .map(Observation::into_output)
    };
    let id = submission().id;
    assert_eq!(send(10, json!(id), Value::Null).unwrap_err().code(), "node_wrong_chain");
    assert_eq!(sent.get(), 0);
    assert_eq!(send(1, json!(id), Value::Null), Ok(Sent::Accepted));
    let error = |code: i64| json!({"error": {"code": code, "message": "nonce too low"}});
    assert_eq!(send(1, error(-32_000), json!({"hash": id})), Ok(Sent::Accepted));
    assert_eq!(send(1, error(-32_000), Value::Null), Ok(Sent::Rejected("nonce too low".to_owned())));
    // It is unknown what the endpoint did with it.
    assert_eq!(send(1, error(-32_005), Value::Null).unwrap_err().code(), "node_error");
    assert_eq!(send(1, json!(hash_of(1)), Value::Null).unwrap_err().code(), "node_malformed");
    assert_eq!(send(1, error(-32_000), json!({"hash": hash_of(1)})), Ok(Sent::Rejected("nonce too low".to_owned())));
    let wrong = Submission::new(&Network::Evm(10), &id, &submission().payload);
    assert!(Reader::<Broadcast>::new(&wrong, &Known::default()).is_err());
}

#[test]
fn one_endpoint_makes_no_redemption_wait() {
    let fees = |gwei: u128| Fees::Legacy { gas_price: gwei * 1_000_000_000 };
    let policy = Policy::from_json(br#"{"evm_gas_price": 100}"#).unwrap();
    assert_eq!(fees::median(vec![fees(1), fees(50), fees(30)]), Some(fees(30)));
    assert_eq!(fees::median(Vec::new()), None);
    assert_eq!(fees::highest_within(vec![fees(1), fees(30), fees(101)], &policy), Some(fees(30)));
    assert_eq!(fees::highest_within(vec![fees(200), fees(101)], &policy), Some(fees(101)));
    assert!(fees::check(fees(100), &policy).is_ok() && fees::check(fees(101), &policy).is_err());
}
