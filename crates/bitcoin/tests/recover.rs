//! The way out. Keys and secret are the tests' own; every transaction here also runs through consensus code in
//! `proofs/bitcoin`.

#![allow(
    clippy::arithmetic_side_effects,
    clippy::as_conversions,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a panic in a test is a failed test"
)]

mod support;

use bitcoin::hashes::Hash;
use bitcoin::{OutPoint, Sequence, Transaction, TxIn, TxOut, Witness};
use countersign_bitcoin::recover::{Fee, Funded, Funding, InstantRefund, Leg, Swap};
use countersign_bitcoin::{FeeRate, Key};
use countersign_core::{Code, Refusal};
use serde_json::{Value as Json, json};
use support::{TestResult, fixture, record, registry};

const INITIATOR: &str = "1111111111111111111111111111111111111111111111111111111111111111";
const REDEEMER: &str = "2222222222222222222222222222222222222222222222222222222222222222";
const SECRET: [u8; 32] = *b"thirty-two bytes of good secret!";
/// Of BIP-173's examples.
const TO: &str = "tb1qw508d6qejxtdg4y5r3zarvary0c5xw7kxpjzsx";

fn key(text: &str) -> Key {
    Key::parse(text).expect("a key")
}

/// A fixture's record with these tests' own parties; the swap id is recomputed, as the address has to be.
fn order() -> Json {
    let mut order = fixture("bitcoin-address").json()["order"].take();
    let swap = &mut order["source_swap"];
    swap["delegate"] = json!(hex::encode(key(INITIATOR).x_only().expect("a key")));
    swap["redeemer"] = json!(hex::encode(key(REDEEMER).x_only().expect("a key")));
    swap["secret_hash"] = json!(hex::encode(bitcoin::hashes::sha256::Hash::hash(&SECRET).to_byte_array()));
    let refusal = Swap::of(&record(&order), Leg::Source, registry()).map(|_| ()).expect_err("the old address");
    assert_eq!((refusal.code(), refusal.location()), (Code::RecordSwapId, "/order/source_swap/swap_id"));
    order["source_swap"]["swap_id"] = json!(refusal.expected().expect("the address"));
    order
}

fn swap() -> Swap {
    Swap::of(&record(&order()), Leg::Source, registry()).expect("a coherent record")
}

fn funding(byte: u8, vout: u32, value: u64) -> Funding {
    Funding::new(OutPoint { txid: bitcoin::Txid::from_byte_array([byte; 32]), vout }, value)
}

fn deducted(rate: &str) -> Fee {
    Fee::Deducted(FeeRate::parse(rate).expect("a rate"))
}

#[test]
fn a_refund_waits_for_the_timelock_and_pays_its_fee() -> TestResult {
    let swap = swap();
    let payment = swap.refund(&[funding(1, 0, 50_000), funding(2, 3, 700)], TO, &deducted("3"))?;
    let transaction = payment.transaction();
    assert_eq!(transaction.version.0, 2);
    assert!(transaction.input.iter().all(|input| input.sequence == Sequence::from_height(144)));
    assert_eq!(transaction.output.len(), 1);
    let signed = payment.sign(&key(INITIATOR), swap.chain)?.transaction.ok_or("signed")?;
    // The finished transaction's own size, to the weight unit: BIP-340 signatures have one length.
    assert_eq!(signed.vsize() as u64, payment.vsize);
    assert_eq!(transaction.output[0].value.to_sat(), 50_700 - 3 * payment.vsize);
    assert_eq!(signed.input[0].witness.len(), 3);
    Ok(())
}

#[test]
fn only_the_initiator_refunds_and_only_the_redeemer_redeems() -> TestResult {
    let swap = swap();
    let refund = swap.refund(&[funding(1, 0, 50_000)], TO, &deducted("1"))?;
    assert_eq!(refund.sign(&key(REDEEMER), swap.chain).map(|_| ()).expect_err("another key").code(), Code::KeyMismatch);
    let redeem = swap.redeem(&SECRET, &[funding(1, 0, 50_000)], TO, &deducted("1"))?;
    assert_eq!(redeem.sign(&key(INITIATOR), swap.chain).map(|_| ()).expect_err("another key").code(), Code::KeyMismatch);
    let signed = redeem.sign(&key(REDEEMER), swap.chain)?.transaction.ok_or("signed")?;
    assert_eq!(signed.input[0].witness.nth(1), Some(&SECRET[..]));
    assert_eq!(signed.vsize() as u64, redeem.vsize);
    Ok(())
}

#[test]
fn another_secret_is_refused_and_none_is_printed() -> TestResult {
    let swap = swap();
    let refusal = swap.redeem(&[7; 32], &[funding(1, 0, 50_000)], TO, &deducted("1")).map(|_| ()).expect_err("another secret");
    assert_eq!((refusal.code(), refusal.location()), (Code::SecretWrong, "/order/source_swap/secret_hash"));
    assert!(!refusal.to_string().contains(&"07".repeat(8)));
    let shown = format!("{:?}", swap.redeem(&SECRET, &[funding(1, 0, 50_000)], TO, &deducted("1"))?);
    assert!(!shown.contains(&hex::encode(SECRET)) && !shown.contains(&format!("{SECRET:?}")));
    Ok(())
}

#[test]
fn other_coins_can_pay_the_fee() -> TestResult {
    let swap = swap();
    let wallet = fixture("bitcoin-p2wpkh").json()["wallet"].take();
    let utxo = &wallet["utxos"][0];
    let output = TxOut {
        value: bitcoin::Amount::from_sat(utxo["value"].as_str().expect("a value").parse()?),
        script_pubkey: bitcoin::ScriptBuf::from_hex(utxo["script_pubkey"].as_str().expect("hex"))?,
    };
    let coin = countersign_bitcoin::Utxo::new(funding(9, 0, 0).outpoint, output)?;
    let fee = Fee::Paid { rate: FeeRate::whole(5), utxos: vec![coin], change_address: TO.to_owned() };
    let payment = swap.refund(&[funding(1, 0, 50_000)], TO, &fee)?;
    let outputs = &payment.transaction().output;
    assert_eq!((outputs[0].value.to_sat(), outputs[1].value.to_sat()), (50_000, 120_000 - payment.fee));
    assert_eq!((payment.change, payment.fee), (Some(1), 5 * payment.vsize));
    let keys = key(&format!("{INITIATOR} {}", wallet["secret_key"].as_str().expect("a key")));
    assert!(payment.sign(&keys, swap.chain)?.transaction.is_some());

    // The same for an instant refund, which both have signed already.
    let refund = InstantRefund::new(&swap, &[funding(1, 0, 50_000)], TO)?;
    let complete = refund.complete(&refund.sign(&key(INITIATOR))?, &refund.countersign(&key(REDEEMER))?)?;
    let whole = refund.with_fee(&complete, &fee, &keys)?.transaction.ok_or("signed")?;
    assert_eq!(whole.input[0], complete.input[0]);
    assert_eq!(whole.output[0], complete.output[0]);
    assert_eq!((whole.input.len(), whole.output.len()), (2, 2));
    Ok(())
}

fn refused<T>(result: Result<T, Refusal>) -> (Code, String) {
    result.map(|_| ()).map_err(|refusal| (refusal.code(), refusal.location().to_owned())).expect_err("a refusal")
}

#[test]
fn funding_outputs_are_the_records_own() {
    let mut order = order();
    order["source_swap"]["initiate_tx_hash"] = json!(format!("{}:90249,{}", "01".repeat(32), "02".repeat(32)));
    order["source_swap"]["filled_amount"] = json!("49999");
    let swap = Swap::of(&record(&order), Leg::Source, registry()).expect("a record");
    assert_eq!((swap.funding.len(), swap.funding[0].number, swap.funding[1].number), (2, Some(90_249), None));
    assert_eq!(swap.funded(), Funded::Partly { missing: 1 });
    let at = "/order/source_swap/initiate_tx_hash".to_owned();
    assert!(swap.refund(&[funding(1, 0, 40_000), funding(2, 1, 9_999)], TO, &deducted("1")).is_ok());
    for fundings in [vec![], vec![funding(3, 0, 50_000)], vec![funding(1, 0, 1), funding(1, 0, 1)], vec![funding(1, 0, u64::MAX)]] {
        assert_eq!(refused(swap.refund(&fundings, TO, &deducted("1"))), (Code::FundingMismatch, at.clone()));
    }
    order["source_swap"]["initiate_tx_hash"] = json!("0x1234:5");
    assert_eq!(refused(Swap::of(&record(&order), Leg::Source, registry())), (Code::FundingMismatch, at));
    // Not funded, by this record: the caller's node knows better.
    assert_eq!(self::swap().funded(), Funded::No);
}

#[test]
fn funding_outputs_are_found_in_their_transaction() {
    let swap = swap();
    let output = |value, script_pubkey| TxOut { value: bitcoin::Amount::from_sat(value), script_pubkey };
    let transaction = Transaction {
        version: bitcoin::transaction::Version::TWO,
        lock_time: bitcoin::absolute::LockTime::ZERO,
        input: vec![TxIn { witness: Witness::new(), ..TxIn::default() }],
        output: vec![output(1, swap.chain.script(TO, "").expect("an address")), output(50_000, swap.tree.script_pubkey())],
    };
    let found = Funding::of_transaction(&transaction, &swap.tree);
    assert_eq!(found, [Funding::new(OutPoint { txid: transaction.compute_txid(), vout: 1 }, 50_000)]);
    let text = format!("{}:1:50000", transaction.compute_txid());
    assert_eq!(Funding::parse(&text), Ok(found[0]));
    for text in ["", "1:2:3", &format!("{text}:4"), &text.replace(":1:", ":+1:")] {
        assert_eq!(Funding::parse(text), Err(Code::FundingMismatch), "{text}");
    }
}

#[test]
fn coins_do_not_go_to_another_chain_back_into_the_htlc_or_into_fees() {
    let swap = swap();
    let to = |address: &str| refused(swap.refund(&[funding(1, 0, 50_000)], address, &deducted("1")));
    assert_eq!(to("bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4"), (Code::AddressNetwork, "/to".to_owned()));
    assert_eq!(to(&swap.tree.address(swap.chain).expect("an address")), (Code::ChangeToDeposit, "/to".to_owned()));
    assert_eq!(refused(swap.refund(&[funding(1, 0, 400)], TO, &deducted("1"))), (Code::InsufficientFunds, "/fee_rate".to_owned()));
}

#[test]
fn no_other_hash_is_signed_above_all_not_the_refund_leafs() -> TestResult {
    let swap = swap();
    let refund = InstantRefund::new(&swap, &[funding(1, 0, 50_000)], TO)?;
    let good = hex::encode(refund.sighashes[0]);
    refund.check_hashes(&[&good])?;
    let mismatch = (Code::SighashMismatch, "/hashes/0".to_owned());
    // One of the refund leaf: what the refund of the same output to the same address would be signed with.
    let payment = swap.refund(&[funding(1, 0, 50_000)], TO, &Fee::Deducted(FeeRate::whole(0)))?;
    let of_refund = hex::encode(&payment.requests(swap.chain)[0].digest.0);
    let refusal = refund.check_hashes(&[&of_refund]).expect_err("the refund leaf's");
    assert_eq!((refusal.code(), refusal.location()), (Code::SighashMismatch, "/hashes/0"));
    assert!(refusal.message().contains("refund leaf"), "{refusal}");
    // Another output, another amount.
    let other = "tb1pqqqqp399et2xygdj5xreqhjjvcmzhxw4aywxecjdzew6hylgvsesf3hn0c";
    let elsewhere = InstantRefund::new(&swap, &[funding(1, 0, 50_000)], other)?;
    assert_eq!(refused(refund.check_hashes(&[&hex::encode(elsewhere.sighashes[0])])), mismatch);
    let less = InstantRefund::new(&swap, &[funding(1, 0, 49_999)], TO)?;
    assert_eq!(refused(refund.check_hashes(&[&hex::encode(less.sighashes[0])])), mismatch);
    assert_eq!(refused(refund.check_hashes(&["zz"])), mismatch);
    assert_eq!(refused(refund.check_hashes(&[])), (Code::SighashMismatch, "/hashes".to_owned()));
    assert_eq!(refused(refund.check_hashes(&[&good, &good])), (Code::SighashMismatch, "/hashes".to_owned()));
    Ok(())
}

#[test]
fn the_body_of_the_patch_has_65_bytes_for_each_output() -> TestResult {
    let swap = swap();
    let refund = InstantRefund::new(&swap, &[funding(1, 0, 50_000), funding(2, 0, 600)], TO)?;
    let body = refund.sign(&key(INITIATOR))?;
    assert_eq!(body.signatures.len(), 2);
    assert!(body.signatures.iter().all(|text| text.len() == 130 && text.ends_with("83")));
    assert_eq!(serde_json::to_value(&body)?, json!({ "signatures": body.signatures }));
    assert_eq!(refused(refund.sign(&key(REDEEMER))).0, Code::KeyMismatch);
    let texts: Vec<_> = body.signatures.iter().map(String::as_str).collect();
    assert_eq!(refund.attach(&texts)?, body);
    let swapped: Vec<_> = texts.iter().rev().copied().collect();
    assert_eq!(refused(refund.attach(&swapped)), (Code::SignatureMismatch, "/signatures/0".to_owned()));
    assert_eq!(refused(refund.attach(&texts[..1])).0, Code::SignatureCount);
    assert_eq!(refused(refund.attach(&["00", texts[1]])).0, Code::SignatureMalformed);
    let requests = refund.requests();
    assert_eq!(requests.len(), 2);
    for (request, sighash) in requests.iter().zip(&refund.sighashes) {
        assert_eq!(bitcoin::TapSighash::hash(&request.payload.0).to_byte_array(), *sighash);
    }
    Ok(())
}
