//! Tests how the status of a sent transaction is read.

use std::sync::LazyLock;

use countersign_core::reader::{Answer, Fate, Fault, Known, Observation, Request, Submission};
use countersign_core::{Code, Network};
use countersign_evm::reader::FateOf;
use countersign_testkit::chain::evm::{LATEST, answer_with, hash_of};
use countersign_testkit::fate::{one_lie_decides_nothing, read};
use serde_json::{Value, json};

use super::others::submission;
use super::{EvmChain, chain};

static CHAIN: LazyLock<EvmChain> = LazyLock::new(chain);

/// The nonce of the transaction.
const NONCE: u64 = 2;
/// The newest safe block and the newest final one.
const SAFE: u64 = LATEST - 32;
const FINAL: u64 = LATEST - 64;

/// What a chain shows of the transaction and of its sender.
#[derive(Clone)]
struct Shown {
    chain_id: u64,
    /// The sender's nonce at the newest, the safe and the final block.
    nonces: [u64; 3],
    receipt: Value,
    has_marks: [bool; 2],
}

fn shown(nonces: [u64; 3]) -> Shown {
    Shown { chain_id: 1, nonces, receipt: Value::Null, has_marks: [true; 2] }
}

fn mined(block: u64, status: u64) -> Value {
    let number = |number: u64| format!("{number:#x}");
    json!({"transactionHash": submission().id, "blockNumber": number(block), "blockHash": hash_of(block), "status": number(status)})
}

impl Shown {
    fn answer(&self, request: &Request) -> Answer {
        let Request::JsonRpc { method, params } = request else { panic!("{request:?}") };
        let params: Value = serde_json::from_str(params).unwrap();
        let [safe, finalized] = self.has_marks;
        let (safe, finalized) = (safe.then_some(SAFE), finalized.then_some(FINAL));
        let chain = EvmChain { chain_id: self.chain_id, safe, finalized, ..CHAIN.clone() };
        answer_with(&match *method {
            "eth_getTransactionReceipt" => self.receipt.clone(),
            "eth_getTransactionCount" => {
                let at = |number: u64| params[1] == json!({"blockHash": hash_of(number), "requireCanonical": true});
                let place = [LATEST, SAFE, FINAL].into_iter().position(at).expect("a block by its hash");
                json!(format!("{:#x}", self.nonces[place]))
            }
            method => chain.result(method, &params),
        })
    }
}

fn fate_on(submission: &Submission, shown: &Shown) -> Result<Fate, Fault> {
    read::<FateOf>(submission, &Known::default(), |_, _, request| shown.answer(request)).0.map(Observation::into_output)
}

fn fate(shown: &Shown) -> Fate {
    fate_on(&submission(), shown).unwrap()
}

fn is_dead(fate: &Fate) -> bool {
    matches!(fate, Fate::Dead(_))
}

#[test]
fn a_nonce_that_another_final_transaction_used_is_death() {
    let dead = fate(&shown([NONCE + 1; 3]));
    assert!(matches!(&dead, Fate::Dead(why) if why.contains("nonce 2")), "{dead:?}");
    // The other transaction is not final yet.
    assert_eq!(fate(&shown([NONCE + 1, NONCE + 1, NONCE])), Fate::Open);
    // The next transaction is this one, or one before it.
    assert_eq!(fate(&shown([NONCE; 3])), Fate::Open);
    assert_eq!(fate(&shown([0; 3])), Fate::Open);
}

#[test]
fn a_transaction_in_a_block_is_included_or_has_failed_for_good() {
    let with = |receipt: Value| fate(&Shown { receipt, ..shown([NONCE + 1; 3]) });
    for block in [FINAL - 1, FINAL, LATEST] {
        assert_eq!(with(mined(block, 1)), Fate::Included);
    }
    assert!(is_dead(&with(mined(FINAL - 1, 0))) && is_dead(&with(mined(FINAL, 0))));
    assert_eq!(with(mined(FINAL + 1, 0)), Fate::Open, "its block may be replaced");
    let mut elsewhere = mined(FINAL, 0);
    elsewhere["blockHash"] = json!(hash_of(7));
    assert_eq!(with(elsewhere), Fate::Open, "another block than the final one");
    let mut other = mined(FINAL - 1, 0);
    other["transactionHash"] = json!(hash_of(7));
    let outcome = fate_on(&submission(), &Shown { receipt: other, ..shown([NONCE + 1; 3]) });
    assert!(matches!(outcome, Err(Fault::Malformed(_))), "the receipt of another transaction");
}

/// The receipt and the nonce may come from two moments.
#[test]
fn a_transaction_that_was_included_between_two_rounds_is_not_dead() {
    let before = shown([NONCE + 1; 3]);
    let after = Shown { receipt: mined(FINAL, 1), ..before.clone() };
    let answer = |round: usize, _: usize, request: &Request| if round == 0 { before.answer(request) } else { after.answer(request) };
    let outcome = read::<FateOf>(&submission(), &Known::default(), answer).0.unwrap();
    assert_eq!(outcome.output(), &Fate::Included);
}

#[test]
fn a_payment_is_dead_only_by_a_final_block() {
    let without = |has_marks, nonces| fate(&Shown { has_marks, ..shown(nonces) });
    assert_eq!(without([true, false], [NONCE + 1; 3]), Fate::Open, "a safe block of Ethereum can still be replaced");
    assert!(is_dead(&without([true, true], [NONCE + 1; 3])));
    assert_eq!(without([false, false], [NONCE + 1; 3]), Fate::Open, "nothing shows what is final");
}

#[test]
fn one_liar_of_three_does_not_decide_a_fate() {
    let decide = |shown: &Shown| one_lie_decides_nothing::<FateOf>(&submission(), &Known::default(), |request| shown.answer(request));
    assert!(is_dead(&decide(&shown([NONCE + 1; 3]))));
    assert_eq!(decide(&shown([NONCE; 3])), Fate::Open);
    assert_eq!(decide(&Shown { receipt: mined(FINAL, 1), ..shown([NONCE + 1; 3]) }), Fate::Included);
    assert_eq!(decide(&Shown { receipt: mined(LATEST, 0), ..shown([NONCE + 1; 3]) }), Fate::Open);
}

#[test]
fn a_fate_is_read_of_a_decodable_transaction_on_its_chain() {
    let other = Shown { chain_id: 10, ..shown([NONCE + 1; 3]) };
    assert!(matches!(fate_on(&submission(), &other), Err(Fault::WrongChain { .. })));
    let wrong = Submission::new(&Network::Evm(10), &submission().id, &submission().payload);
    let refused = countersign_core::reader::Reader::<FateOf>::new(&wrong, &Known::default()).unwrap_err();
    assert_eq!(refused.code(), Code::TransactionMismatch);
}
