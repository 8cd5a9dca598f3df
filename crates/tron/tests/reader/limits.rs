//! Tests how much a node may return, and reading at the limits: in the newest block, and at equal times.

use countersign_core::reader::{Answer, Fault, Known, Observation, Reader, Sending as _};
use countersign_core::{Code, Finding, HtlcState, UnixMillis};
use countersign_testkit::chain::tron::{INITIATED, LATEST, NOW, SOLID, Tron, bare, id, info, log, returned, terms};
use countersign_testkit::{fixture, verified};
use countersign_tron::alloy_primitives::{B256, keccak256};
use countersign_tron::reader::{Contract, EncodedTransaction, NewestBlock, OnChain, Plan, PreflightCheck, View};
use countersign_tron::{Address, Tron as Family, TxContext, read};
use serde_json::{Value, json};

use super::others::signed;
use super::{LOGS, ORDER, ORIGIN, TOKEN, drive, funded, locked, malformed, read_lie, tron, unclear};

const CHAIN_ID: u64 = 728_126_428;

/// The event of the order's funding.
fn funding() -> Value {
    let terms = terms(TOKEN);
    log(tron().htlc, &[read::INITIATED, id(&terms), terms.secret_hash.0.into(), terms.amount.into()], &[])
}

fn with_logs(logs: &[Value]) -> Result<Finding, Fault> {
    read_lie(&tron(), LOGS, |_| json!([info(INITIATED, logs)]))
}

#[test]
fn at_most_256_logs_of_the_contract_are_read_of_a_transaction() {
    let other = log(tron().htlc, &[read::INITIATED, B256::ZERO, B256::ZERO, B256::ZERO], &[]);
    let logs = |count: usize| [vec![other.clone(); count - 1], vec![funding()]].concat();
    assert_eq!(locked(with_logs(&logs(256)).unwrap()).secret_hash, Some(terms(TOKEN).secret_hash));
    malformed(with_logs(&logs(257)));
    // Anyone can put any number of logs of another contract into a block.
    let foreign = log(Address::from([7; 20]), &[read::INITIATED, id(&terms(TOKEN)), B256::ZERO, B256::ZERO], &[]);
    let logs = [vec![foreign; 1_000], vec![funding()]].concat();
    assert_eq!(locked(with_logs(&logs).unwrap()).secret_hash, Some(terms(TOKEN).secret_hash));
}

#[test]
fn what_a_call_returns_and_what_a_log_has_is_bounded() {
    let order = |bytes| read_lie(&tron(), ORDER, move |_| returned(&vec![1; bytes]));
    assert!(unclear(order(4_096)).contains("layout"));
    malformed(order(4_097));
    // The log of another order.
    let with = |bytes| with_logs(&[funding(), log(tron().htlc, &[read::INITIATED, B256::ZERO], &vec![1; bytes])]);
    assert_eq!(locked(with(262_144).unwrap()).secret_hash, Some(terms(TOKEN).secret_hash));
    malformed(with(262_145));
    let code = |bytes: usize| {
        let subject = OnChain { chain_id: CHAIN_ID, subject: tron().htlc };
        let reader = Reader::<Contract>::new(&subject, &Known::default()).unwrap();
        let code = json!({"runtimecode": bare(vec![1; bytes])}).to_string().into_bytes();
        drive(reader, |_, place, request| if place == 1 { Answer::http(200, code.clone()) } else { tron().answer(request) })
    };
    assert_eq!(code(524_288).unwrap().output().0.code_hash, Some(keccak256(vec![1; 524_288])));
    assert!(matches!(code(524_289), Err(Fault::Malformed(_))));
}

#[test]
fn the_contract_of_a_log_has_20_bytes_or_21_with_the_prefix() {
    let with = |address: String| {
        let mut other = funding();
        other["address"] = json!(address);
        with_logs(&[funding(), other])
    };
    // Another contract, whose own first byte is that of the prefix.
    for address in [format!("41{}", "07".repeat(19)), format!("4141{}", "07".repeat(19)), "07".repeat(20)] {
        assert_eq!(locked(with(address).unwrap()).secret_hash, Some(terms(TOKEN).secret_hash));
    }
    for address in ["07".repeat(19), "07".repeat(21), "07".repeat(22), format!("41{}", "07".repeat(18)), "41".to_owned(), String::new()] {
        malformed(with(address));
    }
}

#[test]
fn what_happened_in_the_newest_block_has_happened() {
    let terms = terms(TOKEN);
    let newest = Tron { latest: INITIATED, solid: INITIATED, ..tron() };
    let finding = super::read(&newest).unwrap();
    assert_eq!((finding.seen.depth, finding.seen.is_safe, finding.seen.is_finalized), (1, true, true));
    let locked = locked(finding);
    assert_eq!((locked.least_elapsed, locked.elapsed), (0, 0));
    let refund = log(tron().htlc, &[read::REFUNDED, id(&terms)], &[]);
    let finding = super::read(&Tron { solid: LATEST, ..tron().ended(0, &refund) }).unwrap();
    assert!(matches!(finding.state, HtlcState::Refunded { .. }), "{finding:?}");
    assert_eq!((finding.seen.depth, finding.seen.is_finalized), (1, true));
}

/// A later block has no earlier time. Blocks at the same height are the same.
#[test]
fn a_later_block_may_have_the_time_of_an_earlier_one() {
    let at = |millis: u64| {
        read_lie(&tron(), ORIGIN, move |mut block| {
            block["block_header"]["raw_data"]["timestamp"] = json!(millis);
            block
        })
    };
    // The irreversible block is the earliest of those that are later.
    let solid = (NOW - 3 - (LATEST - SOLID) * 3) * 1_000;
    assert!(at(solid).is_ok());
    malformed(at(solid + 1));
}

/// So the id of a block cannot be that of another height.
#[test]
fn the_id_of_a_block_begins_with_its_number() {
    for (at, number) in [((0, 1), LATEST), ((0, 2), SOLID), (ORIGIN, INITIATED)] {
        let with = |shown: u64| {
            read_lie(&tron(), at, move |mut block| {
                block["blockID"] = tron().block(shown)["blockID"].clone();
                block
            })
        };
        assert!(with(number).is_ok(), "{at:?}");
        malformed(with(number - 1));
    }
}

/// A redemption contains the secret.
#[test]
fn a_signed_transaction_is_shown_by_its_id_alone() {
    let submission = signed();
    let encoded = EncodedTransaction::decode(&submission, &Known::default()).unwrap();
    assert_eq!(format!("{encoded:?}"), format!("EncodedTransaction(0x{})", submission.id));
}

#[test]
fn every_reading_of_a_newest_block_remembers_its_height() {
    for (view, height) in [(View::Newest, LATEST), (View::Irreversible, SOLID)] {
        let reader = Reader::<NewestBlock>::new(&OnChain { chain_id: CHAIN_ID, subject: view }, &Known::default()).unwrap();
        let head = drive(reader, |_, _, request| tron().answer(request)).unwrap();
        assert_eq!(head.known().height().get(), height);
    }
}

/// The fee limit of the fixtures is 300 TRX: at 100 sun, 3,000,000 units of energy.
#[test]
fn a_call_may_use_all_of_the_energy_that_its_fee_limit_pays() {
    let order = verified::<Family>(&fixture::<Family>("tron-native-typed-data-null"));
    let prepared = order
        .prepare(TxContext::new([1, 2], [3; 8], UnixMillis::from_millis(1_800_003_600_000), UnixMillis::from_millis(1_800_000_000_000)))
        .unwrap();
    let plan = Plan::new(CHAIN_ID, &prepared).unwrap();
    let check = |energy: u64| {
        let simulated = json!({"result": {"result": true}, "energy_used": energy, "constant_result": []});
        let chain = Tron { simulated, coins: u64::MAX, ..funded(&terms(TOKEN)) };
        let reader = Reader::<PreflightCheck>::new(&plan, &Known::default()).unwrap();
        let judged = drive(reader, |_, _, request| chain.answer(request)).map(Observation::into_output).unwrap().0;
        judged.map(|found| found.energy_used).map_err(|refusal| (refusal.code(), refusal.location().to_owned()))
    };
    assert_eq!(check(3_000_000), Ok(Some(3_000_000)));
    assert_eq!(check(3_000_001), Err((Code::GasLimitTooLow, "/fee_limit".to_owned())));
}
