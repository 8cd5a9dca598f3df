//! Tests which output an endpoint shows, how it ended, and how much is requested to find out.

use countersign_bitcoin::bitcoin::{Amount, BlockHash, Transaction};
use countersign_bitcoin::htlc::Leaf;
use countersign_bitcoin::reader::{Deposit, FoundPayment, Htlc, OnChain, PaymentSearch};
use countersign_core::reader::{Agree, Answer, Known, Observation, Request};
use countersign_core::{Code, HtlcState, U256};
use countersign_testkit::chain::bitcoin::{AMOUNT, Ledger, SECRET, funding, spend, terms, tree};
use serde_json::json;

use super::{asks, drive, edited, malformed, named, protocol, read, read_again, read_known, redeemed, refunded};

fn payment(ledger: &Ledger, amount: u64, known: &Known) -> Observation<PaymentSearch> {
    let subject = OnChain::new(named(), Deposit::new(tree(), Amount::from_sat(amount)));
    drive::<PaymentSearch>(&subject, known, |_, _, request| ledger.answer(request)).0.unwrap()
}

/// Transactions that pay 330 units to the address.
fn dust(count: u8) -> Vec<Transaction> {
    (100..100 + count).map(|byte| funding(byte, 330)).collect()
}

/// Reads an HTLC. Returns its state and the number of rounds.
fn rounds(ledger: &Ledger, is_rpc: bool) -> (HtlcState, usize) {
    let (outcome, rounds, _) = drive::<Htlc>(&terms("bitcoin"), &protocol(is_rpc), |_, _, request| ledger.answer(request));
    (outcome.unwrap().into_output().state, rounds)
}

fn amount(state: &HtlcState) -> U256 {
    let HtlcState::Locked(locked) = state else { panic!("{state:?}") };
    locked.amount
}

/// Two orders with different amounts may have the same address. An earlier reading is only a hint where to search.
#[test]
fn an_output_of_an_earlier_reading_must_cover_the_amount() {
    let mut ledger = Ledger::new();
    ledger.mempool.extend(dust(1));
    ledger.mine(1);
    ledger.mempool.push(funding(1, AMOUNT));
    ledger.mine(1);
    for is_rpc in [false, true] {
        let small = payment(&ledger, 330, &protocol(is_rpc));
        assert!(matches!(small.output(), FoundPayment::Output(output) if output.funding.value.to_sat() == 330));
        assert_eq!(amount(&read_again(&ledger, is_rpc, small.known()).state), U256::from(AMOUNT), "{is_rpc}");
    }
}

/// The search of a payment finds the output of the evidence, and remembers it in the same way.
#[test]
fn a_payment_is_known_to_later_readings() {
    for is_rpc in [false, true] {
        let (mut ledger, transaction) = Ledger::funded(3);
        let observation = payment(&ledger, AMOUNT, &protocol(is_rpc));
        assert_eq!(observation.known(), read_known(&ledger, &terms("bitcoin"), &protocol(is_rpc)).known());
        let refund = spend(&transaction, Leaf::Refund, &[]);
        ledger.mempool.push(refund.clone());
        ledger.mine(1);
        // A node does not list an output that was spent in a block.
        let mut known = protocol(is_rpc);
        known.learn(observation.known());
        let again = payment(&ledger, AMOUNT, &known);
        assert_eq!(again.output().key(), observation.output().key(), "{is_rpc}");
        let FoundPayment::Output(output) = again.output() else { panic!("{again:?}") };
        let spend = output.spend.as_ref().unwrap();
        assert_eq!((spend.is_mined, spend.by.as_ref().unwrap().0.compute_txid()), (true, refund.compute_txid()));
    }
}

/// Anyone can have many small outputs refunded in the block of the redemption. Only some of them are checked.
#[test]
fn refunds_of_dust_in_its_block_do_not_hide_a_redemption() {
    let (mut ledger, transaction) = Ledger::funded(1);
    let small = dust(40);
    ledger.mempool.extend(small.iter().cloned());
    ledger.mine(1);
    let redeem = spend(&transaction, Leaf::Redeem, &SECRET);
    ledger.mempool.extend(small.iter().map(|small| spend(small, Leaf::Refund, &[])));
    ledger.mempool.push(redeem.clone());
    ledger.mine(1);
    for has_transaction_index in [false, true] {
        ledger.has_transaction_index = has_transaction_index;
        assert_eq!(read(&ledger, true).state, redeemed(&redeem), "{has_transaction_index}");
    }
}

/// A node searches the blocks of the chain that it calls the newest one.
#[test]
fn a_newest_block_must_be_at_its_height() {
    let (mut ledger, transaction) = Ledger::funded(3);
    let mut known = protocol(true);
    known.learn(read_known(&ledger, &terms("bitcoin"), &known).known());
    ledger.mempool.push(spend(&transaction, Leaf::Redeem, &SECRET));
    ledger.mine(1);
    let newest = format!("[{}]", ledger.blocks.len() - 1);
    let is_newest = |request: &Request| matches!(request, Request::JsonRpc { params, .. } if **params == *newest);
    let other: BlockHash = ledger.hash(3);
    let answer = |_, _: usize, request: &Request| match ledger.answer(request) {
        honest if asks(request, "getblockhash") && is_newest(request) => edited(honest, |hash| *hash = json!(other.to_string())),
        honest => honest,
    };
    for known in [&protocol(true), &known] {
        assert!(matches!(read_known(&ledger, &terms("bitcoin"), known).into_output().state, HtlcState::Redeemed { .. }));
        assert_eq!(malformed(drive::<Htlc>(&terms("bitcoin"), known, answer).0), Code::FundingMismatch);
    }
}

/// An older node does not name the transaction that spends an output. Its mempool is searched if it has at most 500 transactions.
#[test]
fn a_large_mempool_is_not_searched() {
    let (mut ledger, transaction) = Ledger::funded(3);
    ledger.has_spending_method = false;
    let refund = spend(&transaction, Leaf::Refund, &[]);
    ledger.mempool.push(refund.clone());
    for (size, is_searched) in [(Some(1), true), (Some(500), true), (Some(501), false), (Some(u64::MAX), false), (None, false)] {
        let mut lists = 0;
        let answer = |_, _: usize, request: &Request| {
            lists += usize::from(asks(request, "getrawmempool"));
            match (ledger.answer(request), size) {
                (honest, Some(size)) if asks(request, "getmempoolinfo") => edited(honest, |info| info["size"] = json!(size)),
                (_, None) if asks(request, "getmempoolinfo") => {
                    Answer::Error(countersign_core::reader::RpcError::new(-32601, "Method not found", None))
                }
                (honest, _) => honest,
            }
        };
        let state = drive::<Htlc>(&terms("bitcoin"), &protocol(true), answer).0.unwrap().into_output().state;
        assert_eq!(lists, usize::from(is_searched), "{size:?}");
        if is_searched {
            assert_eq!(state, refunded(&refund));
        } else {
            assert!(matches!(state, HtlcState::Unclear(_)), "{state:?}");
        }
    }
}

/// A server is asked for more of the history only if that could change which output decides.
#[test]
fn the_history_is_read_as_far_as_it_decides() {
    let many = |count: u8, payments: &[&Transaction]| {
        let mut ledger = Ledger::new();
        for payment in payments {
            ledger.mempool.push((*payment).clone());
            ledger.mine(1);
        }
        ledger.mempool.extend(dust(count));
        ledger.mine(1);
        ledger
    };
    let (first, second) = (funding(1, AMOUNT), funding(2, AMOUNT + 1));
    let refund = spend(&first, Leaf::Refund, &[]);
    let locked = |ledger: &Ledger| {
        let (state, rounds) = rounds(ledger, false);
        (amount(&state).to::<u64>(), rounds)
    };
    // The lists, then the output. No page, and no question whether an output is spent.
    assert_eq!(locked(&many(3, &[&first])), (AMOUNT, 2));
    assert_eq!(locked(&many(55, &[&first])), (AMOUNT, 2));
    assert_eq!(locked(&many(55, &[&first, &second])), (AMOUNT, 2));
    // A server that refuses to list them is asked for the pages, and whether one of several outputs is spent.
    let refusing = |ledger: Ledger| Ledger { max_unspent: 0, ..ledger };
    assert_eq!(locked(&refusing(many(3, &[&first]))), (AMOUNT, 2));
    assert_eq!(locked(&refusing(many(3, &[&first, &second]))), (AMOUNT, 3));
    assert_eq!(locked(&refusing(many(55, &[&first]))), (AMOUNT, 4), "56 transactions on three pages");
    assert_eq!(locked(&refusing(many(55, &[&first, &second]))), (AMOUNT, 5));
    // The one that was mined first is on an older page.
    let mut between = many(55, &[&first]);
    between.mempool.push(second.clone());
    between.mine(1);
    assert_eq!(locked(&refusing(between.clone())), (AMOUNT, 5));
    assert_eq!(read(&refusing(between.clone()), false).key(), read(&between, false).key());
    // An output in no block does not come before one in a block.
    let mut waiting = many(55, &[&first]);
    waiting.mempool.push(second);
    assert_eq!(locked(&waiting), (AMOUNT, 2));
    assert_eq!(locked(&refusing(waiting)).0, AMOUNT);
    // The output, and its spender, are on the only page. Nothing was paid, or too little.
    let mut ended = many(3, &[&first]);
    ended.mempool.push(refund.clone());
    assert_eq!(rounds(&ended, false), (refunded(&refund), 3));
    assert_eq!(rounds(&many(0, &[]), false), (HtlcState::Absent, 1));
    let (state, asked) = rounds(&many(3, &[]), false);
    assert!(matches!(state, HtlcState::Unclear(_)) && asked == 1, "{state:?} {asked}");
}
