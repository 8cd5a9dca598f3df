//! Tests how the status of a sent transaction is read.

use std::sync::LazyLock;

use countersign_core::reader::{Answer, Fate, Fault, Known, Observation, Request};
use countersign_testkit::chain::tron::{NOW, SOLID, Tron, bare};
use countersign_testkit::fate::{one_lie_decides_nothing, read};
use countersign_tron::reader::FateOf;
use serde_json::{Value, json};

use super::others::signed;
use super::tron;

static CHAIN: LazyLock<Tron> = LazyLock::new(tron);

/// The time after which no block contains the transaction, in seconds.
const EXPIRATION: u64 = 1_800_003_600;
const RECEIPT: &str = "gettransactioninfobyid";

/// What a chain shows of the transaction: the time of its newest irreversible block in Unix seconds, and the receipts in both views.
struct Shown {
    solid_time: u64,
    solid: Value,
    newest: Value,
}

fn shown(solid_time: u64) -> Shown {
    Shown { solid_time, solid: json!({}), newest: json!({}) }
}

fn receipt(result: &str) -> Value {
    json!({"id": signed().id, "blockNumber": SOLID, "receipt": {"result": result}})
}

impl Shown {
    fn answer(&self, request: &Request) -> Answer {
        let Request::Post { path, .. } = request else { panic!("{request:?}") };
        let value = match &**path {
            "/walletsolidity/gettransactioninfobyid" => self.solid.clone(),
            "/wallet/gettransactioninfobyid" => self.newest.clone(),
            "/walletsolidity/getnowblock" => {
                let mut block = CHAIN.reply(path, &json!({}));
                block["block_header"]["raw_data"]["timestamp"] = json!(self.solid_time * 1_000);
                block
            }
            _ => return CHAIN.answer(request),
        };
        Answer::http(200, value.to_string().into_bytes())
    }
}

fn outcome(shown: &Shown) -> Result<Fate, Fault> {
    read::<FateOf>(&signed(), &Known::default(), |_, _, request| shown.answer(request)).0.map(Observation::into_output)
}

fn fate(shown: &Shown) -> Fate {
    outcome(shown).unwrap()
}

#[test]
fn a_transaction_that_expired_before_an_irreversible_block_is_dead() {
    assert!(matches!(fate(&shown(EXPIRATION + 60)), Fate::Dead(why) if why.contains("expired")));
    for time in [NOW, EXPIRATION, EXPIRATION + 59] {
        assert_eq!(fate(&shown(time)), Fate::Open, "{time}");
    }
}

#[test]
fn a_transaction_in_a_block_is_included_or_has_failed_for_good() {
    for time in [NOW, EXPIRATION + 60] {
        let with = |solid: Value, newest: Value| fate(&Shown { solid, newest, ..shown(time) });
        assert_eq!(with(json!({}), receipt("SUCCESS")), Fate::Included);
        assert_eq!(with(receipt("SUCCESS"), receipt("SUCCESS")), Fate::Included);
        assert_eq!(with(json!({}), receipt("REVERT")), Fate::Open, "its block may be replaced");
        for result in ["REVERT", "OUT_OF_ENERGY"] {
            assert!(matches!(with(receipt(result), receipt(result)), Fate::Dead(why) if why.contains("failed")));
        }
    }
    let other = json!({"id": bare([7; 32]), "blockNumber": SOLID, "receipt": {"result": "REVERT"}});
    assert!(matches!(outcome(&Shown { solid: other, ..shown(NOW) }), Err(Fault::Malformed(_))));
}

/// The nodes behind one address differ by some blocks.
#[test]
fn a_transaction_that_was_included_between_two_rounds_is_not_dead() {
    let answer = |round: usize, _: usize, request: &Request| match round {
        0 => shown(EXPIRATION + 60).answer(request),
        _ => Shown { newest: receipt("SUCCESS"), ..shown(EXPIRATION + 60) }.answer(request),
    };
    assert_eq!(read::<FateOf>(&signed(), &Known::default(), answer).0.unwrap().into_output(), Fate::Included);
}

#[test]
fn one_liar_of_three_does_not_decide_a_fate() {
    let decide = |shown: &Shown| one_lie_decides_nothing::<FateOf>(&signed(), &Known::default(), |request| shown.answer(request));
    assert!(matches!(decide(&shown(EXPIRATION + 60)), Fate::Dead(_)));
    assert_eq!(decide(&shown(EXPIRATION)), Fate::Open);
    assert_eq!(decide(&Shown { newest: receipt("REVERT"), ..shown(EXPIRATION + 60) }), Fate::Open);
    let elsewhere = |request: &Request| Tron { genesis: 1, ..tron() }.answer(request);
    assert!(matches!(read::<FateOf>(&signed(), &Known::default(), |_, _, request| elsewhere(request)).0, Err(Fault::WrongChain { .. })));
    let asked = read::<FateOf>(&signed(), &Known::default(), |_, _, request| shown(NOW).answer(request)).1;
    assert!(asked.concat().iter().filter(|request| format!("{request:?}").ends_with(RECEIPT)).count() == 2);
}
