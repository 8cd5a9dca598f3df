//! Tests small outputs that anyone can pay to an HTLC's address, and endpoints that cannot prove their answers.

use countersign_bitcoin::bitcoin::{Amount, OutPoint, ScriptBuf, Transaction};
use countersign_bitcoin::htlc::Leaf;
use countersign_bitcoin::reader::{Deposit, FoundPayment, Htlc, OnChain, PaymentSearch, Status, Unspent};
use countersign_core::HtlcState;
use countersign_core::reader::{Agree, Fault, Machine};
use countersign_testkit::chain::bitcoin::{AMOUNT, Ledger, SECRET, funding, outpoint, pay, spend, terms, tree};

use super::{drive, is_locked, named, protocol, read, read_again, read_known, redeemed, refunded};

/// Dust of 330 units: `each` outputs in each of `count` transactions.
fn dust(count: u32, each: usize) -> impl Iterator<Item = Transaction> {
    let outputs = vec![(330, tree().script_pubkey()); each];
    (0..count).map(move |number| pay(OutPoint { vout: number, ..outpoint(9) }, &[vec![1; 64]], &outputs))
}

fn payment(ledger: &Ledger, is_rpc: bool) -> FoundPayment {
    let subject = OnChain::new(named(), Deposit::new(tree(), Amount::from_sat(AMOUNT)));
    let (outcome, ..) = drive::<PaymentSearch>(&subject, &protocol(is_rpc), |_, _, request| ledger.answer(request));
    outcome.unwrap().into_output()
}

fn funding_of(payment: &FoundPayment) -> (OutPoint, u64) {
    let FoundPayment::Output(output) = payment else { panic!("{payment:?}") };
    (output.funding.outpoint, output.funding.value.to_sat())
}

/// One output, 199 of them, more than servers list, in one transaction or in many, before and after the payment.
#[test]
fn foreign_dust_hides_neither_the_payment_nor_its_end() {
    for (count, each) in [(1, 1), (199, 1), (1, 199), (1, 501), (520, 1), (2, 1_500)] {
        for is_later in [false, true] {
            let (mut ledger, transaction) = (Ledger::new(), funding(1, AMOUNT));
            if !is_later {
                ledger.mempool.extend(dust(count, each));
                ledger.mine(1);
            }
            for is_rpc in [false, true] {
                assert!(!is_locked(&read(&ledger, is_rpc)), "dust is no payment");
                assert!(matches!(payment(&ledger, is_rpc), FoundPayment::None(_)));
            }
            ledger.mempool.push(transaction.clone());
            ledger.mine(1);
            if is_later {
                ledger.mempool.extend(dust(count, each));
                ledger.mine(1);
            }
            let earlier = read_known(&ledger, &terms("bitcoin"), &protocol(false)).known().clone();
            let expected = (OutPoint { txid: transaction.compute_txid(), vout: 1 }, AMOUNT);
            for is_rpc in [false, true] {
                let finding = read(&ledger, is_rpc);
                assert!(is_locked(&finding), "{count} {each} {is_later} {is_rpc}: {finding:?}");
                // A server without the limit, and one that knows the output, agree with it.
                assert_eq!(finding.key(), read(&Ledger { max_unspent: usize::MAX, ..ledger.clone() }, false).key());
                assert_eq!(finding.key(), read_again(&ledger, is_rpc, &earlier).key());
                assert_eq!(funding_of(&payment(&ledger, is_rpc)), expected);
            }
            let spender = spend(&transaction, Leaf::Redeem, &SECRET);
            ledger.mempool.push(spender.clone());
            for _ in 0..2 {
                for is_rpc in [false, true] {
                    assert_eq!(read(&ledger, is_rpc).state, redeemed(&spender), "{count} {each} {is_later} {is_rpc}");
                    assert_eq!(read_again(&ledger, is_rpc, &earlier).state, redeemed(&spender));
                }
                ledger.mine(1);
            }
        }
    }
}

/// The payment may be found by the history alone. Endpoints that list what is unspent must choose the same output.
#[test]
fn a_refused_list_changes_nothing_about_the_choice() {
    let (mut ledger, first) = Ledger::funded(1);
    let second = funding(2, AMOUNT + 1);
    ledger.mempool.push(second.clone());
    ledger.mempool.extend(dust(1, 501));
    ledger.mine(1);
    for _ in 0..2 {
        let open = Ledger { max_unspent: usize::MAX, ..ledger.clone() };
        for is_rpc in [false, true] {
            assert_eq!(read(&ledger, is_rpc).key(), read(&open, false).key());
            assert_eq!(payment(&ledger, is_rpc), payment(&open, false));
        }
        ledger.mempool.push(spend(&first, Leaf::Refund, &[]));
        ledger.mine(1);
    }
    assert_eq!(funding_of(&payment(&ledger, false)), (OutPoint { txid: second.compute_txid(), vout: 1 }, AMOUNT + 1));
    // Nor does it hide the parts of a payment.
    let subject = OnChain::new(named(), tree().script_pubkey());
    let (outcome, rounds, _) = drive::<Unspent>(&subject, &protocol(false), |_, _, request| ledger.answer(request));
    let outputs = outcome.unwrap().into_output();
    assert!(rounds <= Unspent::MAX_ROUNDS);
    assert_eq!(outputs.covering(Amount::from_sat(AMOUNT)).map(|funding| funding.value.to_sat()), Some(AMOUNT + 1));
    assert!(outputs.0.iter().all(|output| output.funding.outpoint.txid != first.compute_txid()), "that one is spent");
}

/// In a node's newest blocks, refunds of dust come before the end of the payment and next to it.
#[test]
fn refunds_of_dust_hide_no_end_from_a_node() {
    for leaf in [Leaf::Redeem, Leaf::Refund] {
        let (mut ledger, transaction) = Ledger::funded(1);
        ledger.has_transaction_index = true;
        let small: Vec<_> = (10..14).map(|byte| funding(byte, 330)).collect();
        ledger.mempool.extend(small.iter().cloned());
        ledger.mine(1);
        let spender = spend(&transaction, leaf, &SECRET);
        ledger.mempool.extend([spend(&small[0], Leaf::Refund, &[]), spender.clone(), spend(&small[1], Leaf::Refund, &[])]);
        ledger.mine(1);
        let expected = if leaf == Leaf::Redeem { redeemed(&spender) } else { refunded(&spender) };
        for small in [None, Some(&small[2]), Some(&small[3])] {
            ledger.mempool.extend(small.map(|small| spend(small, Leaf::Refund, &[])));
            ledger.mine(1);
            for is_rpc in [false, true] {
                assert_eq!(read(&ledger, is_rpc).state, expected, "{leaf:?}");
            }
        }
    }
}

/// An endpoint that cannot prove its answer has a fault. It counts as unusable, not as disagreeing.
#[test]
fn a_node_without_the_block_cannot_be_used() {
    let (mut ledger, transaction) = Ledger::funded(3);
    let earlier = read_known(&ledger, &terms("bitcoin"), &protocol(true)).known().clone();
    ledger.pruned_below = 7;
    let mut known = protocol(true);
    for _ in 0..2 {
        let (outcome, ..) = drive::<Htlc>(&terms("bitcoin"), &known, |_, _, request| ledger.answer(request));
        assert!(matches!(outcome, Err(Fault::Rpc(_))), "{outcome:?}");
        known.learn(&earlier);
    }
    let subject = OnChain::new(named(), Deposit::new(tree(), Amount::from_sat(AMOUNT)));
    let (outcome, ..) = drive::<PaymentSearch>(&subject, &protocol(true), |_, _, request| ledger.answer(request));
    assert!(matches!(outcome, Err(Fault::Rpc(_))));
    ledger.pruned_below = 6;
    assert!(is_locked(&read(&ledger, true)));

    // Without a transaction index, a node that does not find a transaction has searched the mempool alone.
    let find = |ledger: &Ledger, transaction: &Transaction| {
        let subject = OnChain::new(named(), transaction.compute_txid());
        drive::<Status>(&subject, &protocol(true), |_, _, request| ledger.answer(request)).0.map(|found| found.into_output().0)
    };
    let unknown = pay(outpoint(8), &[vec![1]], &[(600, ScriptBuf::new())]);
    for wanted in [&transaction, &unknown] {
        assert!(matches!(find(&ledger, wanted), Err(Fault::Rpc(_))));
    }
    ledger.has_transaction_index = true;
    assert_eq!(find(&ledger, &unknown), Ok(None));
    assert_eq!(find(&ledger, &transaction).unwrap().map(|found| found.confirmations), Some(3));
    let mut waiting = ledger.clone();
    waiting.has_transaction_index = false;
    waiting.mempool.push(unknown.clone());
    assert_eq!(find(&waiting, &unknown).unwrap().map(|found| found.confirmations), Some(0));
}

/// What the payment is does not depend on how far a Litecoin payment from the extension block is confirmed.
#[test]
fn a_payment_is_the_output_of_the_evidence() {
    let (mut ledger, transaction) = Ledger::funded(2);
    let finding = read(&ledger, false);
    let (outpoint, value) = funding_of(&payment(&ledger, false));
    assert!(finding.origin.starts_with(&countersign_bitcoin::bitcoin::consensus::serialize(&outpoint)));
    assert_eq!(value, AMOUNT);
    let rival = spend(&transaction, Leaf::Refund, &[]);
    ledger.mempool.push(rival.clone());
    for is_mined in [false, true] {
        for is_rpc in [false, true] {
            let FoundPayment::Output(output) = payment(&ledger, is_rpc) else {
                // A node finds an output that was spent in a block only if it knew the outpoint.
                assert!(is_rpc && is_mined);
                continue;
            };
            let found = output.spend.unwrap();
            assert_eq!((found.is_mined, found.by.map(|(by, _)| by.compute_txid())), (is_mined, Some(rival.compute_txid())));
        }
        ledger.mine(1);
    }
    assert!(matches!(read(&ledger, false).state, HtlcState::Refunded { .. }));
}
