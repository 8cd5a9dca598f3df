//! Reads orders from a chain in memory that answers honestly, or lies in one place.
mod fate;
mod lies;
mod limits;
mod others;
mod permissions;
mod wallet;

use countersign_core::reader::{Answer, Doubt, Fault, Known, Machine, Next, Observation, Quorum, Reader, Request};
use countersign_core::{Finding, HtlcState, HtlcTerms, LockedHtlc, Network, SecretHash};
use countersign_testkit::chain::tron::{
    INITIATED, LATEST, NOW, SECRET, SOLID, Tron, bare, id, id_of, info, log, redeemed, returned, reverted, terms,
};
use countersign_tron::alloy_primitives::{Address as AbiAddress, B256, U256};
use countersign_tron::reader::{Htlc, HtlcReader};
use countersign_tron::{Address, read};
use serde_json::{Value, json};

const TOKEN: &str = "tron-record-evm-v2";
const NATIVE: &str = "tron-record-native-v3";

/// A funded order, whose amount is covered in either asset.
fn funded(terms: &HtlcTerms) -> Tron {
    Tron { coins: u64::try_from(terms.amount).unwrap(), ..Tron::funded(terms) }
}

fn tron() -> Tron {
    funded(&terms(TOKEN))
}

/// Drives a reader. `answer` takes the round and the place of a request, both from 0. The first request of a round is the identity.
fn drive<M: Machine>(mut reader: Reader<M>, answer: impl Fn(usize, usize, &Request) -> Answer) -> Result<Observation<M>, Fault> {
    loop {
        let answers: Vec<_> = match reader.next() {
            Next::Ask(requests) => {
                let round = reader.rounds() - 1;
                requests.iter().enumerate().map(|(place, request)| answer(round, place, request)).collect()
            }
            Next::Done(_) | Next::Failed(_) => return reader.finish(),
        };
        reader.answer(&answers).unwrap();
        assert!(reader.rounds() <= M::MAX_ROUNDS);
    }
}

fn read_known(chain: &Tron, known: &Known) -> Result<Finding, Fault> {
    let reader = HtlcReader::new(&terms(TOKEN), known).unwrap();
    drive(reader, |_, _, request| chain.answer(request)).map(Observation::into_output)
}

fn read(chain: &Tron) -> Result<Finding, Fault> {
    read_known(chain, &Known::default())
}

/// Reads with other answers: `lie` changes the JSON of the request in this round at this place.
fn read_lie(chain: &Tron, at: (usize, usize), lie: impl Fn(Value) -> Value) -> Result<Finding, Fault> {
    let reader = HtlcReader::new(&terms(TOKEN), &Known::default()).unwrap();
    let answer = |round, place, request: &Request| {
        let honest = chain.answer(request);
        if (round, place) == at { Answer::http(200, lie(body(&honest)).to_string().into_bytes()) } else { honest }
    };
    drive(reader, answer).map(Observation::into_output)
}

fn body(answer: &Answer) -> Value {
    let Answer::Http { body, .. } = answer else { panic!("{answer:?}") };
    serde_json::from_slice(body).unwrap()
}

fn locked(finding: Finding) -> LockedHtlc {
    match finding.state {
        HtlcState::Locked(locked) => locked,
        other => panic!("{other:?}"),
    }
}

fn unclear(outcome: Result<Finding, Fault>) -> String {
    match outcome.unwrap().state {
        HtlcState::Unclear(why) => why,
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn malformed(outcome: Result<Finding, Fault>) {
    assert!(matches!(outcome, Err(Fault::Malformed(_))), "{outcome:?}");
}

// Where a request is, by round and place.
const ORDER: (usize, usize) = (1, 1);
const CONTRACT_TOKEN: (usize, usize) = (1, 2);
const HOLDS: (usize, usize) = (1, 3);
const FINAL_ORDER: (usize, usize) = (1, 4);
const ORIGIN: (usize, usize) = (2, 2);
const LOGS: (usize, usize) = (2, 3);

// ---- what is asked

#[test]
fn rounds_and_requests_are_counted() {
    let ask = |chain: &Tron, record: &str| {
        let asked = std::cell::RefCell::new(Vec::new());
        let reader = HtlcReader::new(&terms(record), &Known::default()).unwrap();
        let observation = drive(reader, |round, _, request| {
            let mut asked = asked.borrow_mut();
            if asked.len() == round {
                asked.push(0);
            }
            asked[round] += 1;
            chain.answer(request)
        });
        // What was read is tied to the terms.
        let observation = observation.unwrap();
        assert_eq!(observation.subject(), &terms(record));
        assert!(observation.stamp().is_none());
        assert_eq!(observation.known().height().get(), LATEST);
        asked.into_inner()
    };
    for record in [TOKEN, NATIVE] {
        let terms = terms(record);
        assert_eq!(ask(&funded(&terms), record), [3, 5, 4], "open");
        assert_eq!(ask(&funded(&terms).redeemed(&terms, SECRET), record), [3, 5, 4], "redeemed");
        assert_eq!(ask(&funded(&terms).refunded(&terms), record), [3, 5, 4], "refunded");
        assert_eq!(ask(&Tron { order: None, ..funded(&terms) }, record), [3, 5], "absent");
    }
}

#[test]
fn an_order_is_read_as_the_chain_stores_it() {
    for record in [TOKEN, NATIVE] {
        let terms = terms(record);
        let read = |chain: &Tron| {
            let reader = HtlcReader::new(&terms, &Known::default()).unwrap();
            drive(reader, |_, _, request| chain.answer(request)).unwrap().into_output()
        };
        let finding = read(&funded(&terms));
        assert_eq!((finding.seen.height.get(), finding.seen.head_time.as_secs(), finding.seen.depth), (LATEST, NOW - 3, 100));
        assert_eq!((finding.seen.hash.clone(), finding.seen.is_finalized), (bare(id_of(LATEST)), true));
        assert_eq!(finding.origin, id_of(INITIATED).to_vec());
        let locked = locked(finding);
        assert_eq!((&locked.initiator, &locked.redeemer, locked.amount), (&terms.initiator, &terms.redeemer, terms.amount));
        assert_eq!((locked.timelock, locked.elapsed, locked.least_elapsed), (terms.timelock, 99, 99));
        assert_eq!((locked.token, locked.secret_hash, locked.covered), (terms.token.clone(), Some(terms.secret_hash), true));
        let transaction = Some(bare(id_of(LATEST - 70 + 1_000_000_000)));
        let end = read(&funded(&terms).redeemed(&terms, SECRET));
        assert_eq!((end.state, end.seen.depth), (HtlcState::Redeemed { secret: Some(SECRET), transaction }, 71));
        assert!(matches!(read(&funded(&terms).refunded(&terms)).state, HtlcState::Refunded { transaction: Some(_) }));
    }
}

#[test]
fn terms_that_name_no_order_are_refused() {
    let changes: [fn(&mut HtlcTerms); 4] = [
        |terms| terms.htlc = None,
        |terms| terms.swap_id = "12".to_owned(),
        |terms| terms.token = Some("0x00".to_owned()),
        |terms| terms.network = Network::Evm(1),
    ];
    for change in changes {
        let mut terms = terms(TOKEN);
        change(&mut terms);
        assert!(HtlcReader::new(&terms, &Known::default()).is_err());
    }
}

// ---- the rules that the two former readings did not share

/// E1: in every round, because a connection may change its chain between two.
#[test]
fn e1_the_identity_is_checked_in_every_round() {
    let other = Tron { genesis: 2_494_104_990, ..tron() };
    for round in 0..3 {
        let wrong = read_lie(&tron(), (round, 0), |_| other.block(0));
        let expected = Fault::WrongChain { expected: "728126428".to_owned(), actual: "2494104990".to_owned() };
        assert_eq!(wrong, Err(expected), "round {round}");
    }
}

/// E2
#[test]
fn e2_a_newest_block_that_went_back_is_a_fault() {
    let known = |height: u64| Known::default().with_height(height.into());
    assert!(read_known(&tron(), &known(LATEST + 20)).is_ok());
    assert_eq!(read_known(&tron(), &known(LATEST + 21)), Err(Fault::WentBack { before: (LATEST + 21).into(), now: LATEST.into() }));
    // Between the two readings of the newest block.
    assert!(read_lie(&tron(), (2, 1), |_| tron().block(LATEST - 20)).is_ok());
    let back = read_lie(&tron(), (2, 1), |_| tron().block(LATEST - 21));
    assert_eq!(back, Err(Fault::WentBack { before: LATEST.into(), now: (LATEST - 21).into() }));
}

/// E3, T4: the token is compared before anything else that the contract says.
#[test]
fn e3_t4_the_word_of_another_contract_counts_for_nothing() {
    let without_order = Tron { order: None, ..tron() };
    assert_eq!(read(&without_order).unwrap().state, HtlcState::Absent);
    for token in [AbiAddress::ZERO, AbiAddress::repeat_byte(1), read::NATIVE] {
        for chain in [tron(), without_order.clone(), tron().redeemed(&terms(TOKEN), SECRET)] {
            assert!(unclear(read(&Tron { token, ..chain })).contains("token"));
        }
        let older = read_lie(&Tron { token, ..tron() }, ORDER, |_| returned(&older(false)));
        assert!(unclear(older).contains("token"));
    }
    for lie in [reverted(&[]), returned(&[]), returned(&[1; 32])] {
        assert!(unclear(read_lie(&without_order, CONTRACT_TOKEN, |_| lie.clone())).contains("token"));
    }
}

/// The order in the layout of an older generation.
fn older(has_ended: bool) -> Vec<u8> {
    let [initiator, redeemer, initiated, timelock, amount, _] = tron().order.unwrap();
    [U256::from(has_ended), initiator, redeemer, initiated, timelock, amount].iter().flat_map(U256::to_be_bytes::<32>).collect()
}

/// E4: a call cannot name a block, so the blocks that are read must be of one chain.
#[test]
fn e4_blocks_that_cannot_be_of_one_chain_are_a_fault() {
    let at = |number: u64, change: fn(&mut Value)| {
        let mut block = tron().block(number);
        change(&mut block);
        block
    };
    let other_id = |block: &mut Value| {
        let text = block["blockID"].as_str().unwrap().to_owned();
        block["blockID"] = json!(format!("{}ff", &text[..62]));
    };
    let later = |block: &mut Value| block["block_header"]["raw_data"]["timestamp"] = json!((NOW + 9) * 1_000);
    malformed(read_lie(&tron(), ORIGIN, |_| at(INITIATED, later)));
    malformed(read_lie(&tron(), ORIGIN, |_| at(INITIATED + 1, |_| {})));
    malformed(read_lie(&tron(), ORIGIN, |_| json!({})));
    // The newest and the irreversible block at the height of the origin.
    malformed(read_lie(&Tron { solid: INITIATED, ..tron() }, ORIGIN, |_| at(INITIATED, other_id)));
    malformed(read_lie(&Tron { solid: INITIATED, latest: INITIATED, ..tron() }, ORIGIN, |_| at(INITIATED, other_id)));
    malformed(read_lie(&tron(), (0, 2), |_| at(SOLID, |block| block["block_header"]["raw_data"]["timestamp"] = json!(5))));
}

/// E6
#[test]
fn e6_an_order_is_final_only_if_it_is_the_same_at_the_irreversible_block() {
    let is_final = |outcome: Result<Finding, Fault>| {
        let finding = outcome.unwrap();
        assert!(matches!(finding.state, HtlcState::Locked(_) | HtlcState::Refunded { .. }));
        (finding.seen.is_safe, finding.seen.is_finalized)
    };
    assert_eq!(is_final(read(&Tron { solid: INITIATED, ..tron() })), (true, true));
    assert_eq!(is_final(read(&Tron { solid: INITIATED - 1, ..tron() })), (false, false));
    // Open at the irreversible block, and refunded since.
    assert_eq!(is_final(read(&tron().refunded(&terms(TOKEN)))), (false, false));
    for lie in [returned(&[0; 192]), returned(&[]), returned(&older(false)), reverted(&[])] {
        assert_eq!(is_final(read_lie(&tron(), FINAL_ORDER, |_| lie.clone())), (false, false), "{lie}");
    }
    // An irreversible state without its block, or with one that is not mined yet.
    assert_eq!(is_final(read_lie(&tron(), (0, 2), |_| tron().block(INITIATED - 5))), (false, false));
    assert_eq!(is_final(read_lie(&tron(), (0, 2), |_| tron().block(LATEST + 1))), (false, false));
}

/// E7, G3: endpoints must agree on the block of the last change, and each of them counts once.
#[test]
fn e7_g3_distinct_endpoints_must_agree_on_the_origin() {
    let honest = || {
        let reader = HtlcReader::new(&terms(TOKEN), &Known::default()).unwrap();
        drive(reader, |_, _, request| tron().answer(request))
    };
    let lying = || {
        let reader = HtlcReader::new(&terms(TOKEN), &Known::default()).unwrap();
        drive(reader, |round, place, request| {
            let mut block = body(&tron().answer(request));
            if (round, place) == ORIGIN {
                let text = block["blockID"].as_str().unwrap().to_owned();
                block["blockID"] = json!(format!("{}ff", &text[..62]));
            }
            Answer::http(200, block.to_string().into_bytes())
        })
    };
    assert!(Quorum::<Observation<Htlc>>::new(["a", "a", "b"], 3).is_err());
    let mut quorum = Quorum::new(["a", "b", "c"], 2).unwrap();
    quorum.hear("a", honest());
    quorum.hear("a", honest());
    quorum.hear("b", lying());
    assert!(matches!(quorum.agreed::<()>(), Err(Doubt::Disagree { agreed: 1, needed: 2, .. })));
    quorum.hear("c", honest());
    assert_eq!(quorum.agreed::<()>().unwrap().len(), 2);
}

/// E8, T1: events are those of the named block, in the form of Tron's interface.
#[test]
fn e8_t1_events_are_of_the_named_block_and_in_the_form_of_the_interface() {
    let terms = terms(TOKEN);
    let topics = [read::INITIATED, id(&terms), terms.secret_hash.0.into(), terms.amount.into()];
    let event = log(tron().htlc, &topics, &[]);
    for chain in [tron(), tron().redeemed(&terms, SECRET), tron().refunded(&terms)] {
        malformed(read_lie(&chain, LOGS, |mut infos| {
            infos[0]["blockNumber"] = json!(infos[0]["blockNumber"].as_u64().unwrap() + 1);
            infos
        }));
        malformed(read_lie(&chain, LOGS, |mut infos| {
            infos[0]["id"] = json!("ff");
            infos
        }));
    }
    // As `eth_getLogs` returns it.
    let prefixed: Vec<_> = topics.iter().map(|topic| format!("0x{}", bare(topic))).collect();
    for address in [bare(tron().htlc.bytes()), format!("0x{}", bare(tron().htlc.bytes()))] {
        let foreign = json!({"address": address, "topics": prefixed, "data": "0x", "transactionHash": format!("0x{}", bare([7; 32]))});
        malformed(read_lie(&tron(), LOGS, |_| json!([info(INITIATED, std::slice::from_ref(&foreign))])));
    }
    let mut five = event.clone();
    five["topics"].as_array_mut().unwrap().push(json!(bare([0; 32])));
    malformed(read_lie(&tron(), LOGS, |_| json!([info(INITIATED, std::slice::from_ref(&five))])));
    malformed(read_lie(&tron(), LOGS, |_| json!([info(INITIATED, &vec![event.clone(); 257])])));
}

/// E9
#[test]
fn e9_two_ends_are_unclear() {
    let terms = terms(TOKEN);
    let refund = log(tron().htlc, &[read::REFUNDED, id(&terms)], &[]);
    let block = LATEST - 70;
    let two = read_lie(&tron().redeemed(&terms, SECRET), LOGS, |mut infos| {
        infos.as_array_mut().unwrap().push(info(block, std::slice::from_ref(&refund)));
        infos
    });
    unclear(two);
    let twice = |mut infos: Value| {
        let first = infos[0].clone();
        infos.as_array_mut().unwrap().push(first);
        infos
    };
    for chain in [tron(), tron().redeemed(&terms, SECRET), tron().refunded(&terms)] {
        unclear(read_lie(&chain, LOGS, twice));
    }
    unclear(read_lie(&tron().redeemed(&terms, SECRET), LOGS, |_| json!([])));
}

/// E10
#[test]
fn e10_an_order_of_another_layout_or_progress_is_unclear() {
    let [initiator, redeemer, initiated, timelock, amount, _] = tron().order.unwrap();
    let early: Vec<_> =
        [initiator, redeemer, initiated, timelock, amount, initiated - U256::ONE].iter().flat_map(U256::to_be_bytes::<32>).collect();
    for words in [older(false), older(true), early, vec![], vec![0; 32], vec![1; 224], vec![0; 224], vec![0xff; 192]] {
        unclear(read_lie(&tron(), ORDER, |_| returned(&words)));
    }
    unclear(read_lie(&tron(), ORDER, |_| reverted(&[])));
    let no_contract = json!({"result": {"code": "CONTRACT_VALIDATE_ERROR", "message": bare("No contract")}});
    unclear(read_lie(&tron(), ORDER, |_| no_contract.clone()));
    // A node that cannot run calls is at fault.
    let failing = json!({"result": {"code": "OTHER_ERROR", "message": bare("not supported")}});
    assert!(matches!(read_lie(&tron(), ORDER, |_| failing.clone()), Err(Fault::Rpc(_))));
}

/// E11
#[test]
fn e11_an_order_of_the_future_is_a_fault() {
    let at = |field: usize, block: u64| {
        let mut order = tron().order.unwrap();
        order[field] = U256::from(block);
        let words: Vec<_> = order.iter().flat_map(U256::to_be_bytes::<32>).collect();
        read_lie(&tron(), ORDER, move |_| returned(&words))
    };
    for field in [2, 5] {
        malformed(at(field, LATEST + 1));
        malformed(at(field, u64::MAX));
    }
}

/// T2, G1, G2: the chain's own blocks give height, time, depth and the elapsed time, each on the cautious side.
#[test]
fn t2_g1_g2_of_the_blocks_before_and_after_the_contract_the_cautious_one_counts() {
    let later = Tron { latest: LATEST + 7, time: NOW - 3 + 21, ..tron() };
    let finding = read_lie(&tron(), (2, 1), |_| later.block(LATEST + 7)).unwrap();
    assert_eq!((finding.seen.height.get(), finding.seen.head_time.as_secs(), finding.seen.depth), (LATEST, NOW - 3, 100));
    let locked = locked(finding);
    assert_eq!((locked.least_elapsed, locked.elapsed), (99, 106));
    // Initiated between the two.
    let mut new = tron();
    new.order.as_mut().unwrap()[2] = U256::from(LATEST + 1);
    new.infos = [(
        LATEST + 1,
        new.infos
            .remove(&INITIATED)
            .unwrap()
            .into_iter()
            .map(|mut info| {
                info["blockNumber"] = json!(LATEST + 1);
                info
            })
            .collect(),
    )]
    .into();
    let after = Tron { latest: LATEST + 2, time: NOW - 3 + 6, ..new };
    let reader = HtlcReader::new(&terms(TOKEN), &Known::default()).unwrap();
    let finding = drive(reader, |round, _, request| if round == 0 { tron().answer(request) } else { after.answer(request) });
    let finding = finding.unwrap().into_output();
    assert_eq!((finding.seen.height.get(), finding.seen.depth, finding.seen.is_finalized), (LATEST, 0, false));
    let locked = self::locked(finding);
    assert_eq!((locked.least_elapsed, locked.elapsed), (0, 1));
}

/// T3
#[test]
fn t3_events_that_contradict_the_order_are_a_fault() {
    let terms = terms(TOKEN);
    let (htlc, order, hash, amount) = (tron().htlc, id(&terms), B256::from(terms.secret_hash.0), B256::from(terms.amount));
    let with = |log: Value| read_lie(&tron(), LOGS, move |_| json!([info(INITIATED, std::slice::from_ref(&log))]));
    malformed(with(log(htlc, &[read::INITIATED, order, hash, B256::ZERO], &[])));
    malformed(with(log(htlc, &[read::REFUNDED, order], &[])));
    malformed(with(log(htlc, &[read::INITIATED, order, hash, amount], &[0])));
    malformed(with(redeemed(htlc, &terms, SECRET)));
    let end = |log: Value| read(&tron().ended(70, &log));
    malformed(end(redeemed(htlc, &terms, [0x11; 32])));
    malformed(end(log(htlc, &[read::REFUNDED, order], &[0])));
    // Another hash is the chain's word, and differs from the terms.
    let other = locked(with(log(htlc, &[read::INITIATED, order, B256::ZERO, amount], &[])).unwrap());
    assert_eq!(other.secret_hash, Some(SecretHash([0; 32])));
    // Events of other orders and contracts say nothing.
    for log in [log(htlc, &[read::INITIATED, B256::ZERO, B256::ZERO, amount], &[]), redeemed(Address::from([7; 20]), &terms, SECRET)] {
        assert_eq!(locked(with(log).unwrap()).secret_hash, None);
    }
}
