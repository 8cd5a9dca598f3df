//! Tests what one endpoint can show of an HTLC: an honest chain, the cases in which two earlier readings differed,
//! and every lie in a single answer.
mod chains;
mod dust;
mod ends;
mod fate;
mod lies;
mod limits;
mod others;
mod preflight;
mod wallet;

use countersign_bitcoin::bitcoin::consensus::encode::serialize;
use countersign_bitcoin::bitcoin::{OutPoint, ScriptBuf, Transaction};
use countersign_bitcoin::htlc::Leaf;
use countersign_bitcoin::reader::{Htlc, HtlcReader, NamedChain};
use countersign_core::reader::{Agree, Answer, Fault, Known, Machine, Next, Observation, Reader, Request};
use countersign_core::{Code, Finding, HtlcState, HtlcTerms, SecretHash, U256};
use countersign_testkit::chain::bitcoin::{AMOUNT, Ledger, SECRET, TIMELOCK, chain, funding, outpoint, pay, spend, terms, tree};
use serde_json::Value;

/// Drives a reading to its end. Returns it with its rounds, and the number of requests without the identity.
fn drive<M: Machine>(
    subject: &M::Subject,
    known: &Known,
    mut answer: impl FnMut(usize, usize, &Request) -> Answer,
) -> (Result<Observation<M>, Fault>, usize, usize) {
    let (mut reader, mut round, mut requests) = (Reader::<M>::new(subject, known).unwrap(), 0, 0);
    while let Next::Ask(asked) = reader.next() {
        requests += asked.len() - 1;
        let is_call = |request: &Request| matches!(request, Request::JsonRpc { .. });
        assert!(asked.iter().all(|request| is_call(request) == known.is_rpc()), "{asked:?}");
        let answers: Vec<_> = asked.iter().enumerate().map(|(place, request)| answer(round, place, request)).collect();
        reader.answer(&answers).unwrap();
        round += 1;
    }
    assert!(round <= M::MAX_ROUNDS);
    (reader.finish(), round, requests)
}

fn read_known(ledger: &Ledger, terms: &HtlcTerms, known: &Known) -> Observation<Htlc> {
    drive::<Htlc>(terms, known, |_, _, request| ledger.answer(request)).0.unwrap()
}

fn protocol(is_rpc: bool) -> Known {
    Known::default().with_rpc(is_rpc)
}

fn read(ledger: &Ledger, is_rpc: bool) -> Finding {
    read_known(ledger, &terms("bitcoin"), &protocol(is_rpc)).into_output()
}

/// Reads with what an earlier reading has shown.
fn read_again(ledger: &Ledger, is_rpc: bool, earlier: &Known) -> Finding {
    let mut known = protocol(is_rpc);
    known.learn(earlier);
    read_known(ledger, &terms("bitcoin"), &known).into_output()
}

fn named() -> NamedChain {
    NamedChain::new(chain("bitcoin"), "bitcoin_regtest")
}

/// Whether a request is the call of a method, or the GET of a path that ends so.
fn asks(request: &Request, what: &str) -> bool {
    match request {
        Request::JsonRpc { method, .. } => **method == *what,
        Request::Get { path, .. } => path.ends_with(what),
        _ => false,
    }
}

/// Changes an answer in JSON.
fn edited(answer: Answer, edit: impl FnOnce(&mut Value)) -> Answer {
    let change = |text: &[u8]| {
        let mut value = serde_json::from_slice(text).unwrap();
        edit(&mut value);
        value.to_string().into_bytes()
    };
    match answer {
        Answer::Http { status, body, .. } => Answer::http(status, change(&body)),
        Answer::Result(text) => Answer::result(change(&text)),
        other => panic!("{other:?}"),
    }
}

/// Returns the code of an answer that is refused as malformed.
fn malformed<T: std::fmt::Debug>(outcome: Result<T, Fault>) -> Code {
    match outcome {
        Err(Fault::Malformed(refusal)) => refusal.code(),
        other => panic!("{other:?}"),
    }
}

fn is_locked(finding: &Finding) -> bool {
    matches!(&finding.state, HtlcState::Locked(locked) if locked.amount >= U256::from(AMOUNT))
}

fn redeemed(by: &Transaction) -> HtlcState {
    HtlcState::Redeemed { secret: Some(SECRET), transaction: Some(by.compute_txid().to_string()) }
}

fn refunded(by: &Transaction) -> HtlcState {
    HtlcState::Refunded { transaction: Some(by.compute_txid().to_string()) }
}

/// B6, G2: depth and elapsed time are the endpoint's own, and belong together.
#[test]
fn an_open_htlc_takes_three_rounds_and_later_two() {
    let (mut ledger, _) = Ledger::funded(1);
    for depth in 1..=u64::from(TIMELOCK) {
        for (is_rpc, first, later) in [(false, (2, 7), (2, 6)), (true, (3, 6), (2, 7))] {
            let (outcome, rounds, requests) = drive::<Htlc>(&terms("bitcoin"), &protocol(is_rpc), |_, _, request| ledger.answer(request));
            let observation = outcome.unwrap();
            assert_eq!((rounds, requests), first);
            let HtlcState::Locked(locked) = &observation.output().state else { panic!("{observation:?}") };
            assert_eq!((locked.elapsed, locked.least_elapsed, observation.output().seen.depth), (depth, depth, depth));
            assert_eq!((locked.timelock, locked.amount), (u64::from(TIMELOCK), U256::from(AMOUNT)));
            assert_eq!(observation.known().height().get(), 5 + depth);
            let mut known = protocol(is_rpc);
            known.learn(observation.known());
            let (again, rounds, requests) = drive::<Htlc>(&terms("bitcoin"), &known, |_, _, request| ledger.answer(request));
            assert_eq!((rounds, requests), later);
            assert_eq!(again.unwrap().output(), observation.output());
        }
        assert_eq!(read(&ledger, false).key(), read(&ledger, true).key());
        ledger.mine(1);
    }
}

#[test]
fn both_protocols_show_the_same_end() {
    for (leaf, is_redeemed) in [(Leaf::Redeem, true), (Leaf::Refund, false), (Leaf::InstantRefund, false)] {
        for has_spending_method in [true, false] {
            let (mut ledger, transaction) = Ledger::funded(3);
            ledger.has_spending_method = has_spending_method;
            let earlier = read_known(&ledger, &terms("bitcoin"), &protocol(false)).known().clone();
            let spender = spend(&transaction, leaf, &SECRET);
            let expected = if is_redeemed { redeemed(&spender) } else { refunded(&spender) };
            ledger.mempool.push(spender);
            for depth in 0..8 {
                for is_rpc in [false, true] {
                    let found = read_again(&ledger, is_rpc, &earlier);
                    assert_eq!((&found.state, found.seen.depth), (&expected, depth), "{is_rpc}");
                    assert_eq!(found.key(), read(&ledger, false).key());
                }
                // Without an earlier reading, a node shows a refund from a block only if it can show what was refunded.
                ledger.has_transaction_index = true;
                assert_eq!(read(&ledger, true).state, expected);
                ledger.has_transaction_index = false;
                let is_clear = is_redeemed || depth == 0;
                assert_eq!(read(&ledger, true).state == expected, is_clear, "{leaf:?} {depth}");
                ledger.mine(1);
            }
        }
    }
}

/// Reads until the state is clear, each time with what the readings before have shown. Returns the state, and the blocks that each reading
/// asked for.
fn read_on(ledger: &Ledger, known: &mut Known, most: usize) -> (HtlcState, Vec<usize>) {
    let mut blocks = Vec::new();
    loop {
        let mut asked = 0;
        let (outcome, _, _) = drive::<Htlc>(&terms("bitcoin"), known, |_, _, request| {
            asked += usize::from(matches!(request, Request::JsonRpc { method, .. } if &**method == "getblock"));
            ledger.answer(request)
        });
        let observation = outcome.unwrap();
        known.learn(observation.known());
        blocks.push(asked);
        if !matches!(observation.output().state, HtlcState::Unclear(_)) || blocks.len() == most {
            return (observation.into_output().state, blocks);
        }
    }
}

/// A node without an address index finds an end that is older than what one reading searches, whether the output is known or not.
#[test]
fn a_node_is_searched_for_an_old_end_in_several_readings() {
    for (leaf, is_known) in [(Leaf::Redeem, true), (Leaf::Refund, true), (Leaf::InstantRefund, true), (Leaf::Redeem, false)] {
        let (mut ledger, transaction) = Ledger::funded(3);
        let mut known = protocol(true);
        if is_known {
            known.learn(read_known(&ledger, &terms("bitcoin"), &known).known());
        }
        let spender = spend(&transaction, leaf, &SECRET);
        let expected = if leaf == Leaf::Redeem { redeemed(&spender) } else { refunded(&spender) };
        ledger.mempool.push(spender);
        // In the mempool it is found at once if the output is known; otherwise it is not listed in any block yet.
        ledger.mine(1);
        ledger.mine(20);
        // It is in the 21st block from the newest one.
        let (state, blocks) = read_on(&ledger, &mut known, 9);
        assert_eq!((state, blocks), (expected.clone(), vec![8, 8, 5]), "{leaf:?} {is_known}");
        // From then on it is found in new blocks and its own.
        ledger.mine(2);
        assert_eq!(read_on(&ledger, &mut known, 1), (expected.clone(), vec![3]));
        assert_eq!(read_on(&ledger, &mut known, 1), (expected, vec![1]));
    }
}

/// The blocks that were searched may leave the chain. A search of an output's blocks that finds nothing begins again.
#[test]
fn a_search_begins_again_after_a_reorganization() {
    let (mut ledger, transaction) = Ledger::funded(3);
    let mut known = protocol(true);
    known.learn(read_known(&ledger, &terms("bitcoin"), &known).known());
    let spender = spend(&transaction, Leaf::Redeem, &SECRET);
    ledger.mine(2);
    let common = ledger.blocks.len();
    ledger.mempool.push(spender.clone());
    ledger.mine(1);
    ledger.mine(12);
    assert!(matches!(read_on(&ledger, &mut known, 1), (HtlcState::Unclear(_), blocks) if blocks == [8]));
    // Its block is replaced, and so are those that were searched: the redemption is now in one of them.
    ledger.blocks.truncate(common);
    ledger.mempool.clear();
    ledger.mempool.push(funding(7, 1_000));
    ledger.mine(1);
    ledger.mine(9);
    ledger.mempool.push(spender.clone());
    ledger.mine(1);
    ledger.mine(2);
    assert_eq!(read_on(&ledger, &mut known, 1), (redeemed(&spender), vec![3]));
    // The remembered facts are wrong: the blocks above the output were all searched, and nothing was found.
    let mut wrong = protocol(true);
    wrong.learn(&known);
    let address = terms("bitcoin").swap_id.to_lowercase();
    let tip =
        |height: usize| [&u64::try_from(height).unwrap().to_le_bytes()[..], &serialize(&ledger.blocks[height].0.block_hash())].concat();
    wrong = wrong.with_progress(address, [tip(ledger.blocks.len() - 1), tip(2)].concat());
    assert_eq!(read_on(&ledger, &mut wrong, 9), (redeemed(&spender), vec![0, 3]));
}

/// Before an address is paid, a node's blocks are searched once, and then only the new ones.
#[test]
fn an_address_that_was_not_paid_costs_a_node_no_more_than_its_new_blocks() {
    let mut ledger = Ledger::new();
    ledger.mine(30);
    let mut known = protocol(true);
    let height = ledger.blocks.len() - 1;
    let (state, blocks) = read_on(&ledger, &mut known, 8);
    assert!(matches!(state, HtlcState::Unclear(_)));
    assert_eq!(blocks.iter().sum::<usize>(), height, "all but the first block of the chain");
    assert_eq!(blocks[6..], [0, 0]);
    ledger.mine(3);
    assert_eq!(read_on(&ledger, &mut known, 1).1, [3]);
    let (funded, _) = Ledger::funded(1);
    ledger.mempool.push(funded.blocks.iter().flat_map(|(_, transactions)| transactions).last().unwrap().clone());
    ledger.mine(1);
    assert!(matches!(read_on(&ledger, &mut known, 1).0, HtlcState::Locked(_)));
}

/// B1: coins that have just left the extension block count at 24 blocks.
#[test]
fn coins_of_the_extension_block_wait() {
    let holds_all = ScriptBuf::from_bytes([&[0x58, 0x20][..], &[3; 32]].concat());
    for (parent_pays, first_clear) in [(holds_all, 24), (ScriptBuf::new_op_return([3]), 1)] {
        let mut ledger = Ledger { is_litecoin: true, has_transaction_index: true, ..Ledger::new() };
        let parent = pay(outpoint(4), &[vec![1; 64]], &[(600_000, parent_pays)]);
        let from = OutPoint { txid: parent.compute_txid(), vout: 0 };
        let funding = pay(from, &[vec![1; 64]], &[(AMOUNT, tree().script_pubkey())]);
        ledger.mempool.extend([parent, funding]);
        ledger.mine(1);
        for depth in 1..=25 {
            for is_rpc in [false, true] {
                let finding = read_known(&ledger, &terms("litecoin"), &protocol(is_rpc)).into_output();
                assert_eq!((finding.seen.depth, is_locked(&finding)), (depth, depth >= first_clear), "{is_rpc}");
            }
            ledger.has_transaction_index = false;
            let unknown = read_known(&ledger, &terms("litecoin"), &protocol(true)).into_output();
            assert_eq!(is_locked(&unknown), depth >= 24, "a parent that the node does not know may be one of the extension block");
            ledger.has_transaction_index = true;
            ledger.mine(1);
        }
    }
}

/// B2, B5: only an endpoint that lists spent outputs can say that nothing was ever paid.
#[test]
fn nothing_is_absent_only_where_spent_outputs_are_listed() {
    let ledger = Ledger::new();
    assert_eq!(read(&ledger, false).state, HtlcState::Absent);
    assert!(matches!(read(&ledger, true).state, HtlcState::Unclear(_)));
    // A missing answer proves nothing.
    for (round, place) in [(0, 1), (0, 2), (0, 3)] {
        let silent = |at: usize, index: usize, request: &Request| {
            if (at, index) == (round, place) { Answer::http(404, *b"") } else { ledger.answer(request) }
        };
        assert!(drive::<Htlc>(&terms("bitcoin"), &protocol(false), silent).0.is_err());
    }
}

/// B3: less than the amount neither makes an order paid nor hides what happened to the payment.
#[test]
fn dust_decides_nothing() {
    for is_rpc in [false, true] {
        let mut ledger = Ledger::new();
        ledger.mempool.push(funding(2, 330));
        ledger.mine(2);
        assert!(matches!(read(&ledger, is_rpc).state, HtlcState::Unclear(_)), "dust alone");
        let transaction = funding(1, AMOUNT);
        ledger.mempool.push(transaction.clone());
        ledger.mine(2);
        let earlier = read_known(&ledger, &terms("bitcoin"), &protocol(is_rpc)).known().clone();
        // More dust, another payment, and one that is not mined.
        ledger.mempool.extend((3..60).map(|byte| funding(byte, 330)));
        ledger.mine(1);
        ledger.mempool.extend([funding(80, AMOUNT + 1)]);
        ledger.mine(1);
        ledger.mempool.push(funding(81, AMOUNT + 2));
        let finding = read(&ledger, is_rpc);
        assert!(matches!(&finding.state, HtlcState::Locked(locked) if locked.amount == U256::from(AMOUNT)), "{finding:?}");
        assert_eq!(finding.seen.depth, 4);
        assert_eq!(finding.key(), read_again(&ledger, is_rpc, &earlier).key());
        let spender = spend(&transaction, Leaf::Redeem, &SECRET);
        ledger.mempool.push(spender.clone());
        ledger.mine(1);
        assert_eq!(read_again(&ledger, is_rpc, &earlier).state, redeemed(&spender), "the output that is known decides");
    }
}

/// The history is followed to its end, which is bounded.
#[test]
fn dust_does_not_push_a_spent_payment_off_the_page() {
    for (dust, is_read) in [(20, true), (60, true), (480, true), (1_030, false)] {
        let (mut ledger, transaction) = Ledger::funded(1);
        let earlier = read_known(&ledger, &terms("bitcoin"), &protocol(false)).known().clone();
        let spender = spend(&transaction, Leaf::Redeem, &SECRET);
        ledger.mempool.push(spender.clone());
        let small = |number: u32| pay(OutPoint { vout: number, ..outpoint(9) }, &[vec![1; 64]], &[(330, tree().script_pubkey())]);
        ledger.mempool.extend((0..dust).map(small));
        ledger.mine(1);
        let (outcome, rounds, _) = drive::<Htlc>(&terms("bitcoin"), &protocol(false), |_, _, request| ledger.answer(request));
        let state = outcome.unwrap().into_output().state;
        assert!(rounds <= Htlc::MAX_ROUNDS);
        assert_eq!(state == redeemed(&spender), is_read, "{dust}: {state:?}");
        assert!(is_read || matches!(state, HtlcState::Unclear(_)), "unclear, and never absent or locked");
        assert_eq!(read_again(&ledger, false, &earlier).state, redeemed(&spender), "asked for by its outpoint");
    }
}

/// A refund of dust in the newest blocks is not the refund of the payment.
#[test]
fn a_refund_of_dust_is_not_the_end() {
    let (mut ledger, payment) = Ledger::funded(1);
    let dust = funding(2, 330);
    ledger.mempool.push(dust.clone());
    ledger.mine(1);
    let earlier = read_known(&ledger, &terms("bitcoin"), &protocol(true)).known().clone();
    let redeem = spend(&payment, Leaf::Redeem, &SECRET);
    ledger.mempool.push(redeem.clone());
    ledger.mine(1);
    ledger.mempool.push(spend(&dust, Leaf::Refund, &[]));
    ledger.mine(1);
    for has_transaction_index in [false, true] {
        ledger.has_transaction_index = has_transaction_index;
        assert_eq!(read(&ledger, true).state, redeemed(&redeem), "the redemption is in an older block");
        for is_rpc in [false, true] {
            assert_eq!(read_again(&ledger, is_rpc, &earlier).state, redeemed(&redeem));
        }
    }
}

/// The output that is known may leave the chain, and another may take its place.
#[test]
fn a_reorganization_starts_again() {
    for is_rpc in [false, true] {
        let (mut ledger, transaction) = Ledger::funded(3);
        let earlier = read_known(&ledger, &terms("bitcoin"), &protocol(is_rpc)).known().clone();
        ledger.blocks.truncate(6);
        let mut abandoned = ledger.clone();
        ledger.mine(1);
        ledger.mempool.push(transaction.clone());
        ledger.mine(1);
        let finding = read_again(&ledger, is_rpc, &earlier);
        assert_eq!((is_locked(&finding), finding.seen.depth, finding.seen.height.get()), (true, 1, 7));
        let rival = funding(5, AMOUNT + 7);
        abandoned.mempool.push(rival);
        abandoned.mine(3);
        let finding = read_again(&abandoned, is_rpc, &earlier);
        assert!(matches!(&finding.state, HtlcState::Locked(locked) if locked.amount == U256::from(AMOUNT + 7)), "{finding:?}");
        // E2: a chain that is much shorter than before is not believed.
        abandoned.blocks.truncate(4);
        let mut known = protocol(is_rpc);
        known.learn(&earlier);
        let (outcome, ..) = drive::<Htlc>(&terms("bitcoin"), &known, |_, _, request| abandoned.answer(request));
        assert_eq!(outcome.unwrap_err(), Fault::WentBack { before: 8.into(), now: 3.into() });
    }
}

/// After a reorganization, the output that took the place of the first one is asked for by its outpoint.
#[test]
fn a_reorganization_replaces_the_known_outpoint() {
    for (is_rpc, expected_rounds) in [(false, 2), (true, 4)] {
        let (mut ledger, _) = Ledger::funded(3);
        let mut known = protocol(is_rpc);
        known.learn(read_known(&ledger, &terms("bitcoin"), &known).known());
        ledger.blocks.truncate(6);
        let rival = funding(5, AMOUNT + 7);
        ledger.mempool.push(rival.clone());
        ledger.mine(3);
        known.learn(read_known(&ledger, &terms("bitcoin"), &known).known());
        let refund = spend(&rival, Leaf::Refund, &[]);
        ledger.mempool.push(refund.clone());
        ledger.mine(1);
        let (outcome, rounds, _) = drive::<Htlc>(&terms("bitcoin"), &known, |_, _, request| ledger.answer(request));
        // Without the newest outpoint, a node does not show whether the refunded output covered the amount.
        assert_eq!((outcome.unwrap().into_output().state, rounds), (refunded(&refund), expected_rounds), "{is_rpc}");
    }
}

/// E1: the identity is asked in every round. G4: an observation belongs to its terms.
#[test]
fn another_chain_and_other_terms_are_not_read() {
    let (ledger, _) = Ledger::funded(3);
    for is_rpc in [false, true] {
        let (_, rounds, _) = drive::<Htlc>(&terms("bitcoin"), &protocol(is_rpc), |_, _, request| ledger.answer(request));
        for switched in 0..rounds {
            let other = Ledger { is_litecoin: true, ..ledger.clone() };
            let answer =
                |round, _: usize, request: &Request| if round == switched { other.answer(request) } else { ledger.answer(request) };
            assert!(matches!(drive::<Htlc>(&terms("bitcoin"), &protocol(is_rpc), answer).0, Err(Fault::WrongChain { .. })), "{switched}");
        }
    }
    let terms = terms("bitcoin");
    assert_eq!(read_known(&ledger, &terms, &protocol(false)).subject(), &terms);
    let mut changed = [terms.clone(), terms.clone(), terms.clone(), terms.clone()];
    changed[0].timelock += 1;
    changed[1].secret_hash = SecretHash([7; 32]);
    changed[2].initiator = terms.redeemer.clone();
    changed[3].swap_id.replace_range(10..11, "x");
    for terms in changed {
        assert!(HtlcReader::new(&terms, &Known::default()).is_err());
    }
}

/// B4: a block must be the one at its height, and above nothing.
#[test]
fn a_block_from_the_future_is_not_believed() {
    let (ledger, _) = Ledger::funded(3);
    let mut behind = ledger.clone();
    behind.blocks.truncate(5);
    let ahead = |_, _: usize, request: &Request| match request {
        Request::Get { path, .. } if &**path == "/blocks" => behind.answer(request),
        other => ledger.answer(other),
    };
    assert!(matches!(drive::<Htlc>(&terms("bitcoin"), &protocol(false), ahead).0, Err(Fault::Malformed(_))));
}
