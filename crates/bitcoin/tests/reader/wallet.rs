//! The unspent outputs of a script, and the coins of a wallet.

use countersign_bitcoin::bitcoin::{OutPoint, ScriptBuf, Transaction};
use countersign_bitcoin::reader::{Coins, Htlc, OnChain, Unspent};
use countersign_core::Code;
use countersign_core::reader::{Answer, Request};
use countersign_testkit::chain::bitcoin::{AMOUNT, Ledger, outpoint, pay, terms, tree};
use serde_json::json;

use super::{asks, drive, edited, malformed, named, protocol, read_known};

/// Pay to witness public key hash.
fn segwit() -> ScriptBuf {
    ScriptBuf::from_bytes([&[0, 20][..], &[7; 20]].concat())
}

fn paying(byte: u8, value: u64, script: &ScriptBuf) -> Transaction {
    pay(outpoint(byte), &[vec![1; 64]], &[(value, script.clone())])
}

fn spending(transaction: &Transaction) -> Transaction {
    let from = OutPoint { txid: transaction.compute_txid(), vout: 0 };
    pay(from, &[vec![1; 64]], &[(1, ScriptBuf::new_op_return([1]))])
}

/// A chain with two coins. Of the others, a block spends one, the mempool another, and one is not mined.
fn wallet(script: &ScriptBuf) -> (Ledger, [Transaction; 2]) {
    let mut ledger = Ledger::new();
    let coins = [3_000, 2_000, 6_000, 5_000, 4_000].into_iter().zip(1..).map(|(value, byte)| paying(byte, value, script));
    let [first, second, mined, waiting, new] = coins.collect::<Vec<_>>().try_into().unwrap();
    ledger.mempool.extend([second.clone(), mined.clone(), waiting.clone()]);
    ledger.mine(1);
    ledger.mempool.extend([first.clone(), spending(&mined)]);
    ledger.mine(1);
    ledger.mempool.extend([spending(&waiting), new]);
    (ledger, [first, second])
}

/// A server that lists them, one that refuses, and a node.
fn endpoints(ledger: Ledger) -> [(Ledger, bool); 3] {
    [(ledger.clone(), false), (Ledger { max_unspent: 0, ..ledger.clone() }, false), (ledger, true)]
}

#[test]
fn what_a_block_or_the_mempool_spends_is_not_unspent() {
    let (ledger, [first, second]) = wallet(&segwit());
    for (ledger, is_rpc) in endpoints(ledger) {
        let subject = OnChain::new(named(), segwit());
        let (outcome, ..) = drive::<Unspent>(&subject, &protocol(is_rpc), |_, _, request| ledger.answer(request));
        let outputs = outcome.unwrap().into_output();
        let found: Vec<_> = outputs.0.iter().map(|output| (output.funding.outpoint.txid, output.height.get())).collect();
        assert_eq!(found, [(first.compute_txid(), 7), (second.compute_txid(), 6)], "{is_rpc}: the most valuable first");
        assert_eq!(outputs.sum().to_sat(), 5_000);
    }
    // Of a script that was never paid there is nothing more to ask.
    for (is_rpc, is_listed) in [(false, true), (false, false), (true, true)] {
        let (ledger, subject) = (Ledger::new(), OnChain::new(named(), segwit()));
        let answer = |_, _: usize, request: &Request| {
            if asks(request, "/utxo") && !is_listed { Answer::http(400, *b"") } else { ledger.answer(request) }
        };
        let (outcome, rounds, _) = drive::<Unspent>(&subject, &protocol(is_rpc), answer);
        assert_eq!((outcome.unwrap().into_output().0.len(), rounds), (0, if is_listed { 1 } else { 2 }));
        let (outcome, rounds, _) = drive::<Coins>(&subject, &protocol(is_rpc), answer);
        assert_eq!((outcome.unwrap().into_output().0.len(), rounds), (0, if is_listed { 1 } else { 2 }));
    }
}

/// A signature for these outputs does not prove the amount of each input to the signer, so the transaction does. A node finds it by the
/// block, without an index of transactions.
#[test]
fn coins_come_with_the_transactions_that_created_them() {
    let (ledger, expected) = wallet(&segwit());
    for (ledger, is_rpc) in endpoints(ledger) {
        let subject = OnChain::new(named(), segwit());
        let (outcome, ..) = drive::<Coins>(&subject, &protocol(is_rpc), |_, _, request| ledger.answer(request));
        let coins = outcome.unwrap().into_output().0;
        let created: Vec<_> = coins.iter().map(|coin| coin.previous_tx().unwrap().as_ref().clone()).collect();
        assert_eq!(created, expected, "{is_rpc}");
        // The list must show the amounts of the transactions.
        let answer = |_, _: usize, request: &Request| match ledger.answer(request) {
            honest if asks(request, "/utxo") && ledger.max_unspent > 0 => edited(honest, |list| list[0]["value"] = json!(2_999)),
            honest if asks(request, "/txs") => edited(honest, |list| {
                for output in list.as_array_mut().unwrap() {
                    output["vout"][0]["value"] = json!(2_999);
                }
            }),
            honest if asks(request, "scantxoutset") => edited(honest, |found| {
                for output in found["unspents"].as_array_mut().unwrap() {
                    output["amount"] = json!(0.000_029_99);
                }
            }),
            honest if asks(request, "gettxout") && matches!(&honest, Answer::Result(text) if **text != *b"null") => {
                edited(honest, |output| output["value"] = json!(0.000_029_99))
            }
            honest => honest,
        };
        assert_eq!(malformed(drive::<Coins>(&subject, &protocol(is_rpc), answer).0), Code::UtxoMismatch, "{is_rpc}");
    }
}

/// A taproot signature commits to the amounts of all inputs.
#[test]
fn taproot_coins_come_without_their_transactions() {
    let script = tree().script_pubkey();
    let (ledger, expected) = wallet(&script);
    for (ledger, is_rpc) in endpoints(ledger) {
        let subject = OnChain::new(named(), script.clone());
        let (outcome, rounds, _) = drive::<Coins>(&subject, &protocol(is_rpc), |_, _, request| ledger.answer(request));
        let coins = outcome.unwrap().into_output().0;
        assert!(coins.iter().all(|coin| coin.previous_tx().is_none()));
        assert_eq!(coins.iter().map(|coin| coin.outpoint().txid).collect::<Vec<_>>(), expected.clone().map(|coin| coin.compute_txid()));
        let (_, of_outputs, _) = drive::<Unspent>(&subject, &protocol(is_rpc), |_, _, request| ledger.answer(request));
        assert_eq!(rounds, of_outputs);
    }
}

/// A node shows the value of an output in its scan and by itself.
#[test]
fn a_node_must_show_the_same_value_of_an_output_twice() {
    let (ledger, _) = Ledger::funded(3);
    let honest = protocol(true);
    let mut known = honest.clone();
    known.learn(read_known(&ledger, &terms("bitcoin"), &known).known());
    let answer = |_, _: usize, request: &Request| match ledger.answer(request) {
        output if asks(request, "gettxout") => edited(output, |output| output["value"] = json!(0.004_999_99)),
        other => other,
    };
    for known in [&honest, &known] {
        let outcome = drive::<Htlc>(&terms("bitcoin"), known, answer).0;
        assert_eq!(malformed(outcome), Code::FundingMismatch);
    }
    let subject = OnChain::new(named(), tree().script_pubkey());
    assert_eq!(malformed(drive::<Unspent>(&subject, &honest, answer).0), Code::FundingMismatch);
    let (outcome, ..) = drive::<Unspent>(&subject, &honest, |_, _, request| ledger.answer(request));
    assert_eq!(outcome.unwrap().into_output().sum().to_sat(), AMOUNT);
}

/// Anyone can pay tens of thousands of outputs to an address, and a single endpoint can invent them.
#[test]
fn lists_of_outputs_are_compared_in_linear_time() {
    use countersign_bitcoin::bitcoin::Amount;
    use countersign_bitcoin::reader::{ConfirmedOutput, Outputs};
    use countersign_bitcoin::recover::Funding;

    let list = |from: u32, to: u32| {
        let output = |vout| {
            let funding = Funding::new(OutPoint { vout, ..outpoint(1) }, Amount::from_sat(u64::from(vout % 7)));
            ConfirmedOutput::new(funding, 9_u64.into())
        };
        Outputs((from..to).map(output).collect())
    };
    let (honest, other, liar) = (list(0, 10_000), list(1, 10_001), list(60_000, 70_000));
    let began = std::time::Instant::now();
    let agreed = Outputs::agreed([&honest, &other, &liar], 2);
    // A comparison of each with each takes minutes.
    assert!(began.elapsed() < std::time::Duration::from_secs(5), "{:?}", began.elapsed());
    assert_eq!(agreed.0.len(), 9_999);
    assert!(agreed.0.is_sorted_by_key(|output| std::cmp::Reverse(output.funding.value)));
    assert!(agreed.0.iter().all(|output| (1..10_000).contains(&output.funding.outpoint.vout)));
    // An output that one list repeats counts once.
    let repeated = Outputs([list(0, 1).0, list(0, 1).0].concat());
    assert_eq!((Outputs::agreed([&repeated], 2).0.len(), Outputs::agreed([&repeated], 1).0.len()), (0, 1));
}
