//! Verifies every spend path with Bitcoin Core's script verifier.

#![cfg(test)]
#![allow(clippy::arithmetic_side_effects, reason = "a panic in a test is a failed test")]

mod support;

use bitcoin::{Amount, OutPoint, Sequence, Transaction, TxOut};
use countersign_bitcoin::htlc::Leaf;
use countersign_bitcoin::recover::{Exceptions, Fee, FeeCoins, Funding, FundingSource, InstantRefund, Payout};
use countersign_bitcoin::{FeeRate, TxContext, Utxo};
use countersign_proofs_bitcoin::verify;
use support::by_hand::through_leaf;
use support::{INITIATOR, REDEEMER, SECRET, Scene, WALLET, coin, key, outpoint, scripts, signed};

const NETWORKS: [&str; 2] = ["bitcoin:testnet", "litecoin:testnet"];

fn scenes() -> impl Iterator<Item = Scene> {
    // A timelock of 144 blocks is a push of two bytes, 12 is an opcode, and 40,000 is a push of three bytes.
    NETWORKS.into_iter().flat_map(|network| [144, 12, 40_000].map(|timelock| Scene::new(network, timelock, 50_000)))
}

fn fundings() -> [Funding; 2] {
    [Funding::new(outpoint(1), Amount::from_sat(50_000)), Funding::new(outpoint(2), Amount::from_sat(1_234))]
}

fn prevouts(scene: &Scene) -> Vec<TxOut> {
    fundings().iter().map(|funding| scene.prevout(funding.value.to_sat())).collect()
}

/// Pays everything to the owner in one transaction. Several inputs are also valid.
fn payout(scene: &Scene) -> Payout {
    let payout = Payout::new(fundings(), scene.owner(), Fee::Deducted(FeeRate::from_whole(2)));
    payout.with_source(FundingSource::Chain).with_exceptions(Exceptions { less: true, ..Exceptions::default() })
}

fn refund(scene: &Scene) -> Transaction {
    signed(scene.htlc().refund(&payout(scene)).expect("a refund"), INITIATOR).expect("the key")
}

fn redeem(scene: &Scene) -> Transaction {
    signed(scene.htlc().redeem(&SECRET, &payout(scene)).expect("a redemption"), REDEEMER).expect("the key")
}

#[test]
fn redeem_and_refund_are_valid() {
    for scene in scenes() {
        assert_eq!(verify(&redeem(&scene), &prevouts(&scene)), Ok(()));
        assert_eq!(verify(&refund(&scene), &prevouts(&scene)), Ok(()));
    }
}

/// Changes one item of a witness, and checks that the script fails.
fn broken(good: &Transaction, scene: &Scene, item: usize, bytes: Vec<u8>) {
    let mut bad = good.clone();
    let mut items: Vec<_> = bad.input[0].witness.iter().map(<[u8]>::to_vec).collect();
    assert_ne!(items[item], bytes);
    items[item] = bytes;
    bad.input[0].witness = bitcoin::Witness::from_slice(&items);
    assert_eq!(verify(&bad, &prevouts(scene)), Err(0), "item {item}");
}

#[test]
fn a_wrong_secret_a_wrong_key_and_another_leaf_fail() {
    for scene in scenes() {
        let (redeem, refund) = (redeem(&scene), refund(&scene));
        broken(&redeem, &scene, 1, vec![7; 32]);
        broken(&redeem, &scene, 1, Vec::new());
        // The other party's signature, and the script and control block of the other leaf.
        let item = |transaction: &Transaction, index: usize| transaction.input[0].witness.nth(index).expect("an item").to_vec();
        broken(&redeem, &scene, 0, item(&refund, 0));
        broken(&refund, &scene, 0, item(&redeem, 0));
        broken(&refund, &scene, 1, item(&redeem, 2));
        broken(&refund, &scene, 2, item(&redeem, 3));
    }
}

#[test]
fn a_refund_before_its_timelock_fails() {
    for scene in scenes() {
        let unsigned = scene.htlc().refund(&payout(&scene)).expect("a refund");
        let payment = unsigned.payloads().payment.as_ref().expect("a transaction");
        let timelock = scene.tree.htlc.timelock;
        let by_hand = |transaction| through_leaf(transaction, &prevouts(&scene), (&scene.tree, Leaf::Refund), INITIATOR, None);
        for sequence in [Sequence::from_height(timelock - 1), Sequence::MAX, Sequence::ZERO, Sequence::from_512_second_intervals(timelock)]
        {
            // The transaction is signed again, so that the script is the reason for the failure.
            let mut transaction = payment.transaction().clone();
            transaction.input.iter_mut().for_each(|input| input.sequence = sequence);
            let early = by_hand(transaction);
            assert_eq!(verify(&early, &prevouts(&scene)), Err(0), "{sequence}");
        }
        let on_time = by_hand(payment.transaction().clone());
        assert_eq!(verify(&on_time, &prevouts(&scene)), Ok(()));
    }
}

#[test]
fn another_amount_or_destination_fails() {
    for scene in scenes() {
        for good in [redeem(&scene), refund(&scene)] {
            let mut elsewhere = good.clone();
            elsewhere.output[0].script_pubkey = scripts().p2tr;
            assert_eq!(verify(&elsewhere, &prevouts(&scene)), Err(0));
            let mut other = prevouts(&scene);
            other[0].value = Amount::from_sat(50_001);
            assert_eq!(verify(&good, &other), Err(0));
        }
    }
}

#[test]
fn an_instant_refund_needs_both_and_takes_a_fee_from_anywhere() {
    for scene in scenes() {
        let prevouts = prevouts(&scene);
        let refund = InstantRefund::new(&scene.htlc(), &fundings(), scene.owner()).expect("a refund");
        let (ours, theirs) = (refund.sign(&key(INITIATOR)).expect("ours"), refund.countersign(&key(REDEEMER)).expect("theirs"));
        let complete = refund.complete(&ours, &theirs).expect("both");
        assert_eq!(verify(&complete, &prevouts), Ok(()));
        // The service's placeholder when it presigns: the initiator's signature in both slots.
        let mut placeholder = complete.clone();
        let items: Vec<_> = complete.input[0].witness.iter().map(<[u8]>::to_vec).collect();
        placeholder.input[0].witness = bitcoin::Witness::from_slice(&[&items[1], &items[1], &items[2], &items[3]]);
        assert_eq!(verify(&placeholder, &prevouts), Err(0));
        // The two slots are swapped, as a comment in the published client describes them.
        placeholder.input[0].witness = bitcoin::Witness::from_slice(&[&items[1], &items[0], &items[2], &items[3]]);
        assert_eq!(verify(&placeholder, &prevouts), Err(0));

        let output = TxOut { value: Amount::from_sat(20_000), script_pubkey: scripts().p2tr };
        let coin = Utxo::new(outpoint(9), output.clone()).expect("p2tr");
        let coins = FeeCoins::new(vec![coin], scene.owner(), FeeRate::from_whole(3));
        let whole = signed(refund.with_fee(&complete, &coins).expect("a fee"), WALLET).expect("the key");
        assert_eq!(verify(&whole, &[prevouts, vec![output]].concat()), Ok(()));
        assert_eq!(whole.output[0].value.to_sat(), 50_000);
    }
}

#[test]
fn a_deposit_from_every_kind_of_coin_is_valid() {
    for network in NETWORKS {
        let scene = Scene::new(network, 144, 50_000);
        let own = scripts();
        let previous = Transaction {
            version: bitcoin::transaction::Version::TWO,
            lock_time: bitcoin::absolute::LockTime::ZERO,
            input: vec![bitcoin::TxIn::default()],
            output: vec![TxOut { value: Amount::from_sat(20_000), script_pubkey: own.p2pkh.clone() }],
        };
        let output = |script: &bitcoin::ScriptBuf| TxOut { value: Amount::from_sat(20_000), script_pubkey: script.clone() };
        let mut prevouts = [&own.p2wpkh, &own.p2tr, &own.p2sh, &own.p2pkh].map(output);
        let made_by_previous = OutPoint { txid: previous.compute_txid(), vout: 0 };
        let outpoints = [outpoint(1), outpoint(2), outpoint(3), made_by_previous];
        let utxos = outpoints.into_iter().zip(&prevouts).map(|(outpoint, output)| coin(outpoint, output.clone(), &previous));
        let wallet = TxContext::new(utxos.collect(), scene.owner(), FeeRate::parse("2.5").expect("a rate"));
        let transaction = signed(scene.unsigned(wallet), WALLET).expect("the key");
        assert_eq!(verify(&transaction, &prevouts), Ok(()), "{network}");
        assert_eq!(transaction.output[0], scene.prevout(50_000));
        // Segwit signatures commit to amounts. The first input with such a signature fails.
        prevouts[0].value = Amount::from_sat(20_001);
        assert_eq!(verify(&transaction, &prevouts), Err(0));
    }
}
