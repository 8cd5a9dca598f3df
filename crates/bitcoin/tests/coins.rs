//! Coin selection: it covers the amount and the exact fee, and costs no more than simple strategies.

use std::collections::BTreeSet;

use bitcoin::hashes::Hash;
use bitcoin::{Amount, OutPoint, ScriptBuf, TxOut, Txid};
use countersign_bitcoin::{Bitcoin, FeeRate, Payment, Selection, TxContext, TxOrdering, Utxo, transaction};
use countersign_core::{Code, Refusal};
use countersign_testkit::{fixture, verified};
use proptest::prelude::*;

/// A p2wpkh output without a known key.
fn coin(index: u32, value: u64) -> Utxo {
    let outpoint = OutPoint { txid: Txid::from_byte_array([7; 32]), vout: index };
    let script_pubkey = ScriptBuf::from_bytes([&[0x00, 0x14][..], &[9; 20]].concat());
    Utxo::new(outpoint, TxOut { value: Amount::from_sat(value), script_pubkey }).expect("p2wpkh")
}

fn coins(values: &[u64]) -> Vec<Utxo> {
    (0..).zip(values).map(|(index, value)| coin(index, *value)).collect()
}

const CHANGE: &str = "tb1qw508d6qejxtdg4y5r3zarvary0c5xw7kxpjzsx";

/// Pays the fixture's 50,000 satoshi with these coins.
fn pay(utxos: Vec<Utxo>, rate: &str, selection: Selection, ordering: TxOrdering) -> Result<Payment, Refusal> {
    let wallet = TxContext::new(utxos, CHANGE, FeeRate::parse(rate).expect("a rate")).with_selection(selection).with_ordering(ordering);
    let unsigned = verified::<Bitcoin>(&fixture::<Bitcoin>("bitcoin-address")).prepare(wallet)?;
    Ok(unsigned.payloads().payment.clone().expect("coins"))
}

fn values(payment: &Payment) -> Vec<u64> {
    payment.psbt.inputs.iter().map(|input| input.witness_utxo.as_ref().expect("segwit").value.to_sat()).collect()
}

/// Returns the weight of a signed transaction of p2wpkh inputs (BIP-141), with signatures of the maximal length.
fn vsize(payment: &Payment) -> u64 {
    let inputs = payment.transaction().input.len() as u64;
    let stripped = payment.transaction().base_size() as u64;
    (stripped * 4 + 2 + inputs * 108).div_ceil(4)
}

#[test]
fn an_exact_match_needs_no_change() {
    // 50,000 and 122 vB at 2 sat/vB: branch and bound finds the only coin that fits, among larger and smaller ones.
    let payment = pay(coins(&[40_000, 900_000, 50_244, 60_000, 300]), "2", Selection::LowestFee, TxOrdering::Given).expect("enough");
    assert_eq!((values(&payment), payment.change), (vec![50_244], None));
    assert_eq!(payment.fee.to_sat(), 244);
}

#[test]
fn worthless_coins_are_left_alone() {
    let payment = pay(coins(&[600, 500, 90_000, 400]), "10", Selection::LowestFee, TxOrdering::Given).expect("enough");
    assert_eq!(values(&payment), [90_000]);
    assert_eq!(payment.change, Some(1));
}

#[test]
fn too_few_coins_are_refused() {
    for selection in [Selection::All, Selection::LowestFee] {
        let refusal = pay(coins(&[50_000, 100]), "2", selection, TxOrdering::Given).map(|_| ()).expect_err("too little");
        assert_eq!((refusal.code(), refusal.location()), (Code::InsufficientFunds, "/utxos"));
    }
}

#[test]
fn a_transaction_that_no_node_relays_is_refused() {
    let refusal = pay(coins(&vec![1_000; 1_500]), "1", Selection::All, TxOrdering::Given).map(|_| ()).expect_err("too large");
    assert_eq!(refusal.code(), Code::TransactionAboveStandard);
    // 400,000 weight units less the rest, by 272 an input.
    assert!(pay(coins(&vec![1_000; 1_469]), "1", Selection::All, TxOrdering::Given).is_ok());
}

#[test]
fn a_shuffle_moves_everything_and_only_that() {
    let many = coins(&(0..50).map(|index| 2_000 + index).collect::<Vec<_>>());
    let given = pay(many.clone(), "1", Selection::All, TxOrdering::Given).expect("enough");
    let shuffled = |seed| pay(many.clone(), "1", Selection::All, TxOrdering::Shuffled([seed; 32])).expect("enough");
    assert_ne!(values(&given), values(&shuffled(1)));
    assert_ne!(values(&shuffled(2)), values(&shuffled(1)));
    assert_eq!(values(&shuffled(1)), values(&shuffled(1)));
    let set = |payment: &Payment| values(payment).into_iter().collect::<BTreeSet<_>>();
    assert_eq!(set(&given), set(&shuffled(1)));
    // The index of the change is right in every order.
    for seed in 0..8 {
        let payment = shuffled(seed);
        let change = payment.change.expect("change");
        assert!(payment.transaction().output[change].script_pubkey.is_p2wpkh());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn a_choice_pays_exactly_the_amount_and_at_least_the_rate(
        values in prop::collection::vec(1_u64..200_000, 1..60),
        rate in prop_oneof![Just("0.5"), Just("1"), Just("2.37"), Just("17.03"), Just("250")],
    ) {
        let chosen = pay(coins(&values), rate, Selection::LowestFee, TxOrdering::Given);
        let all = pay(coins(&values), rate, Selection::All, TxOrdering::Given);
        match chosen {
            Ok(payment) => {
                let transaction = payment.transaction();
                prop_assert_eq!(transaction.output[0].value.to_sat(), 50_000);
                let spent: u64 = self::values(&payment).iter().sum();
                let paid: u64 = transaction.output.iter().map(|output| output.value.to_sat()).sum();
                prop_assert_eq!(spent - paid, payment.fee.to_sat());
                let needed = FeeRate::parse(rate).expect("a rate").fee(vsize(&payment)).expect("64 bits");
                prop_assert!(payment.fee >= needed, "{} below {needed}", payment.fee);
                // Nothing is wasted: without change, the surplus is at most the cost of a change output and dust.
                let wasted = FeeRate::parse(rate).expect("a rate").fee(31).expect("64 bits") + Amount::from_sat(294 + 1);
                prop_assert!(payment.fee <= needed + wasted, "{} far above {needed}", payment.fee);
            }
            Err(refusal) => {
                prop_assert_eq!(refusal.code(), Code::InsufficientFunds);
                prop_assert!(all.is_err());
            }
        }
    }
}

/// The fixture's order, and its payment from coins of these values: signed, as it was sent.
fn sent(values: &[u64], rate: &str, change: bool) -> (countersign_bitcoin::VerifiedOrder, bitcoin::Transaction, Vec<TxOut>) {
    let case = fixture::<Bitcoin>("bitcoin-p2wpkh");
    let wallet = case.json()["wallet"].take();
    let script = ScriptBuf::from_hex(wallet["utxos"][0]["script_pubkey"].as_str().expect("hex")).expect("a script");
    let prevout = |value: &u64| TxOut { value: Amount::from_sat(*value), script_pubkey: script.clone() };
    let prevouts: Vec<_> = values.iter().map(prevout).collect();
    let txid = Txid::from_byte_array([8; 32]);
    let coins = (0..).zip(&prevouts).map(|(vout, prevout)| Utxo::new(OutPoint { txid, vout }, prevout.clone()).expect("p2wpkh"));
    let order = verified::<Bitcoin>(&case);
    let mut unsigned = order.prepare(TxContext::new(coins.collect(), CHANGE, FeeRate::parse(rate).expect("a rate"))).expect("enough");
    assert_eq!(unsigned.payloads().payment.as_ref().expect("coins").change.is_some(), change);
    unsigned.sign(&wallet["secret_key"].as_str().expect("a key").parse().expect("a key")).expect("the key of the coins");
    let transaction = unsigned.finish().expect("signed").transactions().remove(0).native;
    (order, transaction, prevouts)
}

/// The amount of the order, which the deposit holds.
const LOCKED: u64 = 50_000;

#[test]
fn a_payment_is_raised_with_the_same_coins_and_the_same_deposit() {
    let (order, sent, prevouts) = sent(&[40_000, 30_000], "2", true);
    let old_fee = 70_000 - sent.output.iter().map(|output| output.value.to_sat()).sum::<u64>();
    for (asked, expected) in [("10", None), ("1", Some(1)), ("2", Some(1)), ("2.5", Some(1))] {
        let raised = transaction::replacement(&order, &sent, &prevouts, FeeRate::parse(asked).expect("a rate")).expect("a raise");
        let payment = raised.payloads().payment.clone().expect("coins");
        let transaction = payment.transaction();
        let outpoints =
            |transaction: &bitcoin::Transaction| transaction.input.iter().map(|input| input.previous_output).collect::<Vec<_>>();
        assert_eq!(outpoints(transaction), outpoints(&sent), "only one of the two can be mined");
        assert_eq!(transaction.output[0], sent.output[0]);
        assert_eq!((transaction.output[0].value.to_sat(), transaction.output.len()), (LOCKED, 2));
        assert_eq!(transaction.output[1].script_pubkey, sent.output[1].script_pubkey);
        assert!(transaction.is_explicitly_rbf(), "it can be raised again");
        assert_ne!(transaction.compute_txid(), sent.compute_txid());
        // The inputs equal the outputs plus the fee.
        assert_eq!(payment.fee.to_sat(), 70_000 - LOCKED - transaction.output[1].value.to_sat());
        // BIP-125: the old fee, and 1 sat/vB for the relay of the new transaction. Signatures may be a few bytes shorter than the maximum.
        let least = old_fee + vsize(&payment);
        match expected {
            None => assert_eq!(payment.fee.to_sat(), 10 * vsize(&payment)),
            Some(_) => assert!((least..least + 6).contains(&payment.fee.to_sat()), "{} of {least}", payment.fee.to_sat()),
        }
    }
    // The raised payment is raised once more.
    let raised = transaction::replacement(&order, &sent, &prevouts, FeeRate::from_whole(10)).expect("a raise");
    let unsigned = raised.payloads().payment.clone().expect("coins").transaction().clone();
    assert!(transaction::replacement(&order, &unsigned, &prevouts, FeeRate::from_whole(10)).is_ok());
}

#[test]
fn a_payment_is_raised_only_within_its_change_and_the_policy() {
    let refused = |order: &_, sent: &_, prevouts: &[TxOut], rate: u64| {
        let refusal = transaction::replacement(order, sent, prevouts, FeeRate::from_whole(rate)).map(|_| ()).expect_err("no raise");
        (refusal.code(), refusal.location().to_owned())
    };
    let at = |code, location: &str| (code, location.to_owned());
    let (order, paid, prevouts) = sent(&[52_000], "2", true);
    assert_eq!(refused(&order, &paid, &prevouts, 100), at(Code::InsufficientFunds, "/utxos"));
    assert_eq!(refused(&order, &paid, &prevouts, 1_001), at(Code::FeeRateTooHigh, "/fee_rate"));
    assert_eq!(refused(&order, &paid, &[], 5), at(Code::TransactionMismatch, "/sent"));
    // Coins that supposedly hold less than the payment spends.
    assert_eq!(
        refused(&order, &paid, &[TxOut { value: Amount::from_sat(51_000), ..prevouts[0].clone() }], 5),
        at(Code::TransactionMismatch, "/sent")
    );
    let mut other = paid.clone();
    other.output.push(TxOut { value: Amount::from_sat(1), script_pubkey: ScriptBuf::new() });
    assert_eq!(refused(&order, &other, &prevouts, 5), at(Code::TransactionMismatch, "/sent"));
    let mut other = paid.clone();
    other.output[0].value = Amount::from_sat(LOCKED + 1);
    assert_eq!(refused(&order, &other, &prevouts, 5), at(Code::TransactionMismatch, "/output/0/value"));
    let mut other = paid;
    other.input[0].sequence = bitcoin::Sequence::ENABLE_LOCKTIME_NO_RBF;
    assert_eq!(refused(&order, &other, &prevouts, 5), at(Code::TransactionMismatch, "/sent"));
    let (order, paid, prevouts) = sent(&[50_300], "2", false);
    assert_eq!(refused(&order, &paid, &prevouts, 3), at(Code::InsufficientFunds, "/sent"));
    // The change is 400 sat, of which 294 must stay: less than the 153 for the relay can be taken, and all of it is 400.
    let (order, paid, prevouts) = sent(&[50_706], "2", true);
    let raised = transaction::replacement(&order, &paid, &prevouts, FeeRate::from_whole(1)).expect("the change becomes the fee");
    let payment = raised.payloads().payment.clone().expect("coins");
    assert_eq!((payment.change, payment.fee.to_sat()), (None, 706));
}
