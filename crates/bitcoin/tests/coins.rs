//! Coin selection: it covers the amount and the exact fee, and costs no more than simple strategies.

#![allow(
    clippy::arithmetic_side_effects,
    clippy::as_conversions,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a panic in a test is a failed test"
)]

use std::collections::BTreeSet;

use bitcoin::hashes::Hash;
use bitcoin::{Amount, OutPoint, ScriptBuf, TxOut, Txid};
use countersign_bitcoin::{Bitcoin, FeeRate, Payment, Selection, TxContext, TxOrdering, Utxo};
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
