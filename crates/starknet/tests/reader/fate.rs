//! Tests how the status of a sent transaction is read.

use countersign_core::reader::{Answer, Fate, Fault, Known, Observation, Request};
use countersign_starknet::reader::FateOf;
use countersign_testkit::chain::starknet::{Chain, LATEST, hash_of, terms};
use countersign_testkit::fate::{one_lie_decides_nothing, read};
use serde_json::{Value, json};

use crate::reader::send::signed;

/// The nonce of the transaction.
const NONCE: u64 = 1;
/// Half an hour, in which a payment settles, in blocks of a second.
const SETTLE: u64 = 1_800;

/// What a chain shows of the transaction: the account's nonce at the final block and after it, and status and receipt.
#[derive(Clone)]
struct Shown {
    nonces: [u64; 2],
    on_l1: Option<u64>,
    status: Value,
    receipt: Value,
}

fn unknown() -> Value {
    json!({"error": {"code": 29, "message": "Transaction hash not found"}})
}

fn shown(nonces: [u64; 2]) -> Shown {
    Shown { nonces, on_l1: Some(LATEST - 10), status: unknown(), receipt: unknown() }
}

fn status(finality: &str, execution: &str) -> Value {
    json!({"finality_status": finality, "execution_status": execution})
}

fn receipt(block: u64) -> Value {
    json!({"transaction_hash": signed().id, "block_number": block, "block_hash": hash_of(block)})
}

impl Shown {
    fn chain(&self) -> Chain {
        let (shown, mark) = (self.clone(), self.on_l1.unwrap_or(0).max(LATEST - SETTLE));
        let chain = Chain { on_l1: self.on_l1, ..Chain::funded(&terms("starknet-2025-11").source) };
        chain.lying(move |_, method, params| match method {
            "starknet_getTransactionStatus" => Some(shown.status.clone()),
            "starknet_getTransactionReceipt" => Some(shown.receipt.clone()),
            "starknet_getNonce" => {
                let is_final = params["block_id"]["block_number"].as_u64().unwrap() <= mark;
                Some(json!(format!("{:#x}", shown.nonces[usize::from(!is_final)])))
            }
            _ => None,
        })
    }
}

fn outcome(shown: &Shown) -> Result<Fate, Fault> {
    let chain = shown.chain();
    read::<FateOf>(&signed(), &Known::default(), |_, _, request| chain.answer(request)).0.map(Observation::into_output)
}

fn fate(shown: &Shown) -> Fate {
    outcome(shown).unwrap()
}

#[test]
fn a_nonce_that_another_final_transaction_used_is_death() {
    for on_l1 in [Some(LATEST - 10), None] {
        let with = |nonces| fate(&Shown { on_l1, ..shown(nonces) });
        assert!(matches!(with([NONCE + 1; 2]), Fate::Dead(why) if why.contains("nonce 0x1")));
        assert_eq!(with([NONCE, NONCE + 1]), Fate::Open, "the other transaction is not final yet");
        assert_eq!(with([NONCE; 2]), Fate::Open);
        assert_eq!(with([0; 2]), Fate::Open);
    }
    // Without a block that L1 has accepted, the mark is as many blocks below the newest one as settle a payment.
    let chain = Shown { on_l1: None, ..shown([NONCE; 2]) }.chain();
    let (_, rounds) = read::<FateOf>(&signed(), &Known::default(), |_, _, request| chain.answer(request));
    let Some(Request::JsonRpc { params, .. }) = rounds[1].last() else { panic!("{rounds:?}") };
    assert_eq!(serde_json::from_str::<Value>(params).unwrap()["block_id"], json!({"block_number": LATEST - SETTLE}));
}

#[test]
fn a_transaction_that_an_endpoint_knows_is_dead_only_if_it_reverted_for_good() {
    let with = |status: Value, receipt: Value| fate(&Shown { status, receipt, ..shown([NONCE + 1; 2]) });
    for finality in ["ACCEPTED_ON_L2", "ACCEPTED_ON_L1"] {
        assert_eq!(with(status(finality, "SUCCEEDED"), receipt(LATEST)), Fate::Included);
    }
    assert!(matches!(with(status("ACCEPTED_ON_L1", "REVERTED"), receipt(LATEST - 50)), Fate::Dead(_)));
    assert!(matches!(with(status("ACCEPTED_ON_L2", "REVERTED"), receipt(LATEST - 10)), Fate::Dead(_)), "a final block");
    assert_eq!(with(status("ACCEPTED_ON_L2", "REVERTED"), receipt(LATEST - 9)), Fate::Open);
    for finality in ["RECEIVED", "CANDIDATE", "PRE_CONFIRMED"] {
        assert_eq!(with(json!({"finality_status": finality}), unknown()), Fate::Open);
    }
    assert_eq!(with(unknown(), receipt(LATEST)), Fate::Open, "another node behind the same address knows it");
    let other = json!({"transaction_hash": "0x7", "block_number": 1});
    let outcome = outcome(&Shown { status: status("ACCEPTED_ON_L2", "REVERTED"), receipt: other, ..shown([NONCE; 2]) });
    assert!(matches!(outcome, Err(Fault::Malformed(_))), "the receipt of another transaction");
}

/// Anyone who has a rejected transaction can send it again.
#[test]
fn a_rejected_transaction_is_dead_once_its_nonce_is_used() {
    let rejected = |nonces| fate(&Shown { status: json!({"finality_status": "REJECTED"}), ..shown(nonces) });
    assert_eq!(rejected([NONCE; 2]), Fate::Open);
    assert!(matches!(rejected([NONCE + 1; 2]), Fate::Dead(_)));
}

#[test]
fn one_liar_of_three_does_not_decide_a_fate() {
    let decide = |shown: &Shown| {
        let chain = shown.chain();
        one_lie_decides_nothing::<FateOf>(&signed(), &Known::default(), |request: &Request| -> Answer { chain.answer(request) })
    };
    assert!(matches!(decide(&shown([NONCE + 1; 2])), Fate::Dead(_)));
    assert_eq!(decide(&shown([NONCE, NONCE + 1])), Fate::Open);
    let reverted = Shown { status: status("ACCEPTED_ON_L2", "REVERTED"), receipt: receipt(LATEST), ..shown([NONCE + 1; 2]) };
    assert_eq!(decide(&reverted), Fate::Open);
    let elsewhere = Chain { chain_id: "SN_SEPOLIA", ..shown([NONCE + 1; 2]).chain() };
    let outcome = read::<FateOf>(&signed(), &Known::default(), |_, _, request| elsewhere.answer(request)).0;
    assert!(matches!(outcome, Err(Fault::WrongChain { .. })));
}
