//! Tests the check of a transaction before it is sent.

use countersign_bitcoin::FeeRate;
use countersign_bitcoin::bitcoin::{Amount, Sequence, Transaction};
use countersign_bitcoin::htlc::Leaf;
use countersign_bitcoin::reader::{OnChain, Plan, Preflight, PreflightCheck};
use countersign_core::reader::{Agree as _, Answer, Reader, Request};
use countersign_core::{Code, Refusal};
use countersign_testkit::chain::bitcoin::{AMOUNT, Ledger, SECRET, TIMELOCK, outpoint, spend};
use serde_json::{Value, json};

use super::{asks, drive, edited, malformed, named, protocol};

fn check_with(
    transaction: &Transaction,
    max_fee_rate: Option<u64>,
    is_rpc: bool,
    answer: impl Fn(&Request) -> Answer,
) -> Result<Preflight, Refusal> {
    let subject = OnChain::new(named(), Plan::new(transaction, max_fee_rate.map(FeeRate::from_whole)));
    drive::<PreflightCheck>(&subject, &protocol(is_rpc), |_, _, request| answer(request)).0.unwrap().into_output().0
}

fn check(ledger: &Ledger, transaction: &Transaction, max_fee_rate: Option<u64>, is_rpc: bool) -> Result<Preflight, Refusal> {
    check_with(transaction, max_fee_rate, is_rpc, |request| ledger.answer(request))
}

/// Returns why a transaction cannot be mined.
fn reverted(outcome: Result<Preflight, Refusal>) -> String {
    let refusal = outcome.unwrap_err();
    assert_eq!(refusal.code(), Code::SimulationReverted);
    refusal.actual().unwrap().to_string()
}

#[test]
fn a_fee_may_reach_the_policy_and_not_exceed_it() {
    let (ledger, funding) = Ledger::funded(3);
    let mut redeem = spend(&funding, Leaf::Redeem, &SECRET);
    let limit = 7 * redeem.weight().to_vbytes_ceil();
    for is_rpc in [false, true] {
        for (fee, is_within) in [(0, true), (limit, true), (limit + 1, false)] {
            redeem.output[0].value = Amount::from_sat(AMOUNT - fee);
            let outcome = check(&ledger, &redeem, Some(7), is_rpc);
            let code = outcome.as_ref().map(|preflight| preflight.fee.to_sat()).map_err(Refusal::code);
            assert_eq!(code, if is_within { Ok(fee) } else { Err(Code::FeeRateTooHigh) }, "{is_rpc} {fee}");
            // Without a policy, any fee passes.
            assert_eq!(check(&ledger, &redeem, None, is_rpc).unwrap().fee.to_sat(), fee);
        }
        redeem.output[0].value = Amount::from_sat(AMOUNT + 1);
        assert_eq!(reverted(check(&ledger, &redeem, None, is_rpc)), "its outputs exceed its inputs");
    }
}

/// A node tests the transaction. An Esplora server does not get it, so it can only show what is spent.
#[test]
fn a_node_says_why_it_would_not_accept_a_transaction() {
    let (mut ledger, funding) = Ledger::funded(3);
    let mut refund = spend(&funding, Leaf::Refund, &[]);
    refund.input[0].sequence = Sequence::from_height(TIMELOCK);
    assert_eq!(reverted(check(&ledger, &refund, Some(1_000_000), true)), "non-BIP68-final");
    assert!(check(&ledger, &refund, None, true).is_ok(), "the inputs alone");
    assert!(check(&ledger, &refund, Some(1_000_000), false).is_ok());
    ledger.mine(usize::from(TIMELOCK));
    let expected = check(&ledger, &refund, Some(1_000_000), true);
    assert_eq!(expected.as_ref().unwrap().fee.to_sat(), AMOUNT - 1_000);
    assert_eq!(expected.as_ref().unwrap().inputs.iter().map(|input| input.value.to_sat()).collect::<Vec<_>>(), [AMOUNT]);
    // A transaction that the node has already is not refused for that.
    ledger.mempool.push(refund.clone());
    for is_rpc in [false, true] {
        assert_eq!(check(&ledger, &refund, Some(1_000_000), is_rpc), expected);
    }
    let test = |result: Value| {
        check_with(&refund, Some(1_000_000), true, |request| match ledger.answer(request) {
            honest if asks(request, "testmempoolaccept") => edited(honest, |test| *test = result.clone()),
            honest => honest,
        })
    };
    for known in ["txn-already-in-mempool", "txn-already-known"] {
        assert_eq!(test(json!([{"allowed": false, "reject-reason": known}])), expected);
    }
    assert_eq!(reverted(test(json!([{"allowed": false, "reject-reason": "min relay fee not met"}]))), "min relay fee not met");
    assert_eq!(reverted(test(json!([{"allowed": false}]))), "no reason given");
    // It must answer.
    let subject = OnChain::new(named(), Plan::new(&refund, Some(FeeRate::from_whole(1_000_000))));
    let answer = |_, _: usize, request: &Request| match ledger.answer(request) {
        honest if asks(request, "testmempoolaccept") => edited(honest, |test| *test = json!([])),
        honest => honest,
    };
    assert_eq!(malformed(drive::<PreflightCheck>(&subject, &protocol(true), answer).0), Code::MissingField);
}

#[test]
fn an_input_that_another_transaction_spends_is_refused() {
    let (mut ledger, funding) = Ledger::funded(30);
    let (redeem, refund) = (spend(&funding, Leaf::Redeem, &SECRET), spend(&funding, Leaf::Refund, &[]));
    let mut unknown = redeem.clone();
    unknown.input[0].previous_output = outpoint(77);
    ledger.mempool.push(refund.clone());
    for is_mined in [false, true] {
        for is_rpc in [false, true] {
            // A node names no spender, so it cannot tell a rival in the mempool from the transaction itself. Its test does.
            let is_refused = is_mined || !is_rpc;
            assert_eq!(check(&ledger, &redeem, None, is_rpc).is_err(), is_refused, "{is_mined} {is_rpc}");
            assert_eq!(check(&ledger, &refund, None, is_rpc).is_err(), is_mined && is_rpc, "a node does not find what a block spends");
            assert!(reverted(check(&ledger, &unknown, None, is_rpc)).ends_with("does not exist or is spent"));
        }
        assert!(check(&ledger, &redeem, Some(1_000_000), true).is_err());
        ledger.mine(1);
    }
}

/// Two requests for each input fit into a round.
#[test]
fn the_inputs_of_a_transaction_are_limited() {
    let (_, funding) = Ledger::funded(1);
    let mut transaction = spend(&funding, Leaf::Redeem, &SECRET);
    let input = transaction.input[0].clone();
    for (count, is_read) in [(0, false), (1, true), (500, true), (501, false)] {
        transaction.input = vec![input.clone(); count];
        for is_rpc in [false, true] {
            let subject = OnChain::new(named(), Plan::new(&transaction, Some(FeeRate::from_whole(1))));
            let code = Reader::<PreflightCheck>::new(&subject, &protocol(is_rpc)).map(drop).map_err(|refusal| refusal.code());
            assert_eq!(code, if is_read { Ok(()) } else { Err(Code::TransactionMalformed) }, "{count}");
        }
    }
}

/// Endpoints must show the same inputs.
#[test]
fn endpoints_agree_on_what_is_spent() {
    let (ledger, funding) = Ledger::funded(3);
    let redeem = spend(&funding, Leaf::Redeem, &SECRET);
    let esplora = check(&ledger, &redeem, None, false).unwrap();
    assert_eq!(esplora.key(), check(&ledger, &redeem, None, true).unwrap().key());
    let mut other = esplora.clone();
    other.fee = Amount::from_sat(esplora.fee.to_sat() + 1);
    assert_ne!(esplora.key(), other.key());
}
