//! Tests the whole path on a Litecoin node in regtest mode, which the test starts and stops.

#![cfg(test)]
#![allow(clippy::arithmetic_side_effects, reason = "a panic in a test is a failed test")]

mod support;

use bitcoin::ScriptBuf;
use countersign_bitcoin::recover::{Fee, FeeCoins, Funding, FundingSource, InstantRefund, Payout};
use countersign_bitcoin::{FeeRate, TxContext, Utxo};
use serde_json::Value;
use support::litecoind::{Done, Node};
use support::{INITIATOR, REDEEMER, SECRET, Scene, WALLET, coin, key, scripts, signed};

/// A short timelock keeps the test short. `tests/consensus.rs` covers the longest push of a timelock.
const TIMELOCK: u16 = 20;
const AMOUNT: u64 = 500_000;

/// Pays the owner. The fee is taken from the amount.
fn payout<const N: usize>(fundings: [Funding; N], to: &str) -> Payout {
    Payout::new(fundings, to, Fee::Deducted(FeeRate::from_whole(5)))
}

/// Pays an HTLC from one coin of this script, with the library.
fn deposit(node: &Node, scene: &Scene, script: &ScriptBuf) -> Done<Funding> {
    let address = scene.chain.address(script).ok_or("an address")?;
    let (previous, outpoint) = node.pay(&address, "0.01")?;
    let output = previous.output[usize::try_from(outpoint.vout)?].clone();
    let wallet = TxContext::new(vec![coin(outpoint, output, &previous)], scene.owner(), FeeRate::parse("2.5")?);
    let transaction = signed(scene.unsigned(wallet), WALLET)?;
    assert_eq!(node.send(&transaction)?, transaction.compute_txid().to_string());
    node.mine(1)?;
    node.confirmed(&transaction)?;
    Funding::from_transaction(&transaction, &scene.tree).pop().ok_or_else(|| "not funded".into())
}

#[test]
#[expect(clippy::print_stderr, reason = "a test that was left out says so")]
fn deposits_from_every_kind_of_coin_and_every_recovery() -> Done<()> {
    let node = match Node::start()? {
        Ok(node) => node,
        Err(reason) => {
            eprintln!("skipped: {reason}");
            return Ok(());
        }
    };
    node.mine(110)?;
    let scene = Scene::new("litecoin:regtest", TIMELOCK, AMOUNT);
    let (htlc, own, to) = (scene.htlc(), scripts(), scene.owner());
    let redeemed = deposit(&node, &scene, &own.p2wpkh)?;
    let refunded = deposit(&node, &scene, &own.p2tr)?;
    let instant = deposit(&node, &scene, &own.p2sh)?;
    let partial = deposit(&node, &scene, &own.p2pkh)?;
    assert!([redeemed, refunded, instant, partial].iter().all(|funding| funding.value.to_sat() == AMOUNT));

    // The dust limit behind the warning `amount_below_dust` is this node's own.
    let refusal = deposit(&node, &Scene::new("litecoin:regtest", TIMELOCK, 3_299), &own.p2wpkh).expect_err("dust").to_string();
    assert!(refusal.contains("dust"), "{refusal}");
    assert_eq!(deposit(&node, &Scene::new("litecoin:regtest", TIMELOCK, 3_300), &own.p2wpkh)?.value.to_sat(), 3_300);

    // A redemption with another secret in the witness fails, and one with the right secret succeeds.
    let redeem = signed(htlc.redeem(&SECRET, &payout([redeemed], &to))?, REDEEMER)?;
    let mut wrong = redeem.clone();
    let mut items: Vec<_> = wrong.input[0].witness.iter().map(<[u8]>::to_vec).collect();
    items[1] = vec![7; 32];
    wrong.input[0].witness = bitcoin::Witness::from_slice(&items);
    assert!(node.send(&wrong).is_err());
    node.send(&redeem)?;

    // An instant refund alone pays no fee, so no node relays it. With a coin for the fee, it confirms.
    let refund = InstantRefund::new(&htlc, &[instant], to.as_str())?;
    let complete = refund.complete(&refund.sign(&key(INITIATOR))?, &refund.countersign(&key(REDEEMER))?)?;
    let refusal = node.send(&complete).expect_err("no fee");
    assert!(refusal.contains("fee not met"), "{refusal}");
    let (previous, outpoint) = node.pay(&to, "0.001")?;
    let coin = Utxo::new(outpoint, previous.output[usize::try_from(outpoint.vout)?].clone())?;
    let coins = FeeCoins::new(vec![coin], to.as_str(), FeeRate::from_whole(4));
    let paid = signed(refund.with_fee(&complete, &coins)?, WALLET)?;
    node.send(&paid)?;
    node.mine(1)?;
    node.confirmed(&redeem)?;
    node.confirmed(&paid)?;

    // A refund of two outputs is refused until the younger one has as many confirmations as the timelock.
    let refund = signed(htlc.refund(&payout([refunded, partial], &to).with_source(FundingSource::Chain))?, INITIATOR)?;
    let details: Value = serde_json::from_str(&node.call("getrawtransaction", &[&partial.outpoint.txid.to_string(), "true"])?)?;
    let confirmations = u16::try_from(details["confirmations"].as_u64().ok_or("confirmations")?)?;
    node.mine(TIMELOCK - confirmations - 1)?;
    let refusal = node.send(&refund).expect_err("a block too early");
    assert!(refusal.contains("non-BIP68-final"), "{refusal}");
    node.mine(1)?;
    node.send(&refund)?;
    node.mine(1)?;
    node.confirmed(&refund)?;
    Ok(())
}
