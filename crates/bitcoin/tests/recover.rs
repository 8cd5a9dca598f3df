//! Recovery from an order record. Keys and secret belong to these tests. Every transaction here is also checked with consensus code in
//! `proofs/bitcoin`.

mod instant;
mod rules;

use bitcoin::hashes::Hash;
use bitcoin::{Amount, OutPoint, Sequence, Transaction, TxIn, TxOut, Witness};
use countersign_bitcoin::recover::{Fee, FeeCoins, Funding, FundingStatus, InstantRefund, Leg, Payout, RecordedHtlc};
use countersign_bitcoin::{Bitcoin, FeeRate, Key, KeyOrigin, Payment, UnsignedOrder, Utxo};
use countersign_core::{Code, Policy, Refusal, RequestId, Role};
use countersign_testkit::recover::read_record;
use countersign_testkit::{TestResult, fixture, registry};
use serde_json::{Value as Json, json};

pub(crate) const INITIATOR: &str = "1111111111111111111111111111111111111111111111111111111111111111";
const REDEEMER: &str = "2222222222222222222222222222222222222222222222222222222222222222";
pub(crate) const SECRET: [u8; 32] = *b"thirty-two bytes of good secret!";
/// An example of BIP-173.
pub(crate) const TO: &str = "tb1qw508d6qejxtdg4y5r3zarvary0c5xw7kxpjzsx";

fn key(text: &str) -> Key {
    Key::parse(text).expect("a key")
}

/// The record of a fixture with the parties of these tests, and with the swap id recomputed for them.
fn order() -> Json {
    let mut order = fixture::<Bitcoin>("bitcoin-address").json()["order"].take();
    let swap = &mut order["source_swap"];
    swap["delegate"] = json!(key(INITIATOR).x_only().to_string());
    swap["redeemer"] = json!(key(REDEEMER).x_only().to_string());
    swap["secret_hash"] = json!(hex::encode(bitcoin::hashes::sha256::Hash::hash(&SECRET).to_byte_array()));
    let refusal = read(&order).map(|_| ()).expect_err("the old address");
    assert_eq!((refusal.code(), refusal.location()), (Code::RecordSwapId, "/order/source_swap/swap_id"));
    order["source_swap"]["swap_id"] = json!(refusal.expected().expect("the address").to_string());
    order
}

fn read(order: &Json) -> Result<RecordedHtlc, Refusal> {
    RecordedHtlc::new(&read_record(order)?, Leg::Source, registry())
}

pub(crate) fn swap() -> RecordedHtlc {
    read(&order()).expect("a coherent record")
}

pub(crate) fn funding(byte: u8, vout: u32, value: u64) -> Funding {
    Funding::new(OutPoint { txid: bitcoin::Txid::from_byte_array([byte; 32]), vout }, Amount::from_sat(value))
}

fn deducted(rate: &str) -> Fee {
    Fee::Deducted(FeeRate::parse(rate).expect("a rate"))
}

/// A payout to the address of these tests, at 1 sat/vB.
fn payout(fundings: &[Funding]) -> Payout {
    Payout::new(fundings, TO, deducted("1"))
}

fn payment(unsigned: &UnsignedOrder) -> &Payment {
    unsigned.payloads().payment.as_ref().expect("a recovery has a transaction")
}

/// Signs a recovery that needs no other key.
fn signed(mut unsigned: UnsignedOrder, secret_key: &str) -> Result<Transaction, Refusal> {
    unsigned.sign(&key(secret_key))?;
    Ok(unsigned.finish()?.transactions().remove(0).native)
}

#[test]
fn a_refund_waits_for_the_timelock_and_pays_its_fee() -> TestResult {
    let swap = swap();
    let unsigned = swap.refund(&Payout::new([funding(1, 0, 49_000), funding(2, 3, 1_700)], TO, deducted("3")))?;
    let (transaction, vsize) = (payment(&unsigned).transaction().clone(), payment(&unsigned).vsize);
    assert_eq!(transaction.version.0, 2);
    assert!(transaction.input.iter().all(|input| input.sequence == Sequence::from_height(144)));
    assert_eq!(transaction.output.len(), 1);
    assert_eq!(unsigned.missing(), [RequestId::Input(0), RequestId::Input(1)]);
    let signed = signed(unsigned, INITIATOR)?;
    // The weight is exact, because BIP-340 signatures have a fixed length.
    assert_eq!(signed.vsize() as u64, vsize);
    assert_eq!(transaction.output[0].value.to_sat(), 50_700 - 3 * vsize);
    assert_eq!(signed.input[0].witness.len(), 3);
    Ok(())
}

#[test]
fn a_recovery_ends_in_the_states_of_an_order() -> TestResult {
    let swap = swap();
    let order = order();
    let mut unsigned = swap.refund(&payout(&[funding(1, 0, 50_000)]))?;
    assert_eq!(unsigned.order_id(), order["order_id"].as_str());
    assert!(unsigned.verified().is_none());
    let summary = unsigned.summary().to_string();
    let paid = payment(&unsigned).transaction().output[0].value.to_sat();
    let address = order["source_swap"]["swap_id"].as_str().ok_or("no id")?;
    assert!(summary.contains(&format!("refund of swap {address} pays 0.000{paid} BTC ({paid} sat) to {TO}")), "{summary}");
    assert!(summary.contains("144 confirmations"), "{summary}");
    // The signature of an external signer is proven like that of a payment.
    let request = unsigned.requests().remove(0);
    assert_eq!(request.signer, key(INITIATOR).x_only().to_string());
    let keypair = bitcoin::key::Keypair::from_seckey_str(&bitcoin::key::Secp256k1::new(), INITIATOR)?;
    let digest: [u8; 32] = request.digest.as_slice().try_into()?;
    let signature = bitcoin::key::Secp256k1::new().sign_schnorr_no_aux_rand(&bitcoin::secp256k1::Message::from_digest(digest), &keypair);
    unsigned.attach(request.id, signature)?;
    let transactions = unsigned.finish()?.transactions();
    assert_eq!((transactions.len(), transactions[0].role), (1, Role::Refund));
    assert_eq!(transactions[0].id, transactions[0].native.compute_txid().to_string());
    let redeem = swap.redeem(&SECRET, &payout(&[funding(1, 0, 50_000)]))?;
    assert_eq!(redeem.matches(&transactions[0].native).expect_err("a recovery has no order").code(), Code::TransactionMismatch);
    Ok(())
}

/// With the derivation of the refund key, a seed can sign a refund: a hardware signer, or an extended key as here.
#[test]
fn a_seed_refunds_by_the_origin_of_its_key() -> TestResult {
    use bitcoin::bip32::{DerivationPath, Xpriv};

    let secp = bitcoin::key::Secp256k1::new();
    let master = Xpriv::new_master(bitcoin::Network::Testnet, &[9; 32])?;
    let path: DerivationPath = "m/86'/1'/0'/7/0".parse()?;
    let public_key = bitcoin::CompressedPublicKey(master.derive_priv(&secp, &path)?.private_key.public_key(&secp));
    let origin = KeyOrigin::new(master.fingerprint(&secp), path, public_key);
    let mut order = order();
    order["source_swap"]["delegate"] = json!(public_key.0.x_only_public_key().0.to_string());
    let refusal = read(&order).map(|_| ()).expect_err("the old address");
    order["source_swap"]["swap_id"] = json!(refusal.expected().expect("the address").to_string());
    let swap = read(&order)?;
    let mut without = swap.refund(&payout(&[funding(1, 0, 50_000)]))?;
    assert_eq!(without.sign_with(&master).expect_err("no origin").code(), Code::KeyMismatch);
    let mut unsigned = swap.refund(&payout(&[funding(1, 0, 50_000)]).with_origins([origin]))?;
    unsigned.sign_with(&master)?;
    assert_eq!(unsigned.finish()?.transactions()[0].native.input[0].witness.len(), 3);
    Ok(())
}

#[test]
fn only_the_initiator_refunds_and_only_the_redeemer_redeems() -> TestResult {
    let swap = swap();
    let payout = payout(&[funding(1, 0, 50_000)]);
    assert_eq!(refused(signed(swap.refund(&payout)?, REDEEMER)), (Code::KeyMismatch, String::new()));
    assert_eq!(refused(signed(swap.redeem(&SECRET, &payout)?, INITIATOR)), (Code::KeyMismatch, String::new()));
    let redeem = swap.redeem(&SECRET, &payout)?;
    let vsize = payment(&redeem).vsize;
    let signed = signed(redeem, REDEEMER)?;
    assert_eq!(signed.input[0].witness.nth(1), Some(&SECRET[..]));
    assert_eq!(signed.vsize() as u64, vsize);
    Ok(())
}

#[test]
fn another_secret_is_refused_and_none_is_printed() -> TestResult {
    let swap = swap();
    let payout = payout(&[funding(1, 0, 50_000)]);
    let refusal = swap.redeem(&[7; 32], &payout).map(|_| ()).expect_err("another secret");
    assert_eq!((refusal.code(), refusal.location()), (Code::SecretWrong, "/order/source_swap/secret_hash"));
    assert!(!refusal.to_string().contains(&"07".repeat(8)));
    let is_shown = |shown: &str| shown.contains(&hex::encode(SECRET)) || shown.contains(&format!("{SECRET:?}"));
    let mut unsigned = swap.redeem(&SECRET, &payout)?;
    assert!(!is_shown(&format!("{unsigned:?}")));
    unsigned.sign(&key(REDEEMER))?;
    assert!(!is_shown(&format!("{unsigned:?}")));
    assert!(!is_shown(&format!("{:?}", unsigned.finish()?)));
    Ok(())
}

#[test]
fn other_coins_can_pay_the_fee() -> TestResult {
    let swap = swap();
    let wallet = fixture::<Bitcoin>("bitcoin-p2wpkh").json()["wallet"].take();
    let utxo = &wallet["utxos"][0];
    let output = TxOut {
        value: Amount::from_sat(utxo["value"].as_str().expect("a value").parse()?),
        script_pubkey: bitcoin::ScriptBuf::from_hex(utxo["script_pubkey"].as_str().expect("hex"))?,
    };
    let coin = Utxo::new(funding(9, 0, 0).outpoint, output)?;
    let coins = FeeCoins::new(vec![coin], TO, FeeRate::from_whole(5));
    let wallet_key = wallet["secret_key"].as_str().expect("a key");
    let mut unsigned = swap.refund(&Payout::new([funding(1, 0, 50_000)], TO, Fee::Paid(coins.clone())))?;
    let paid = payment(&unsigned);
    let outputs = &paid.transaction().output;
    assert_eq!((outputs[0].value.to_sat(), outputs[1].value.to_sat()), (50_000, 120_000 - paid.fee.to_sat()));
    assert_eq!((paid.change, paid.fee.to_sat()), (Some(1), 5 * paid.vsize));
    // The refund key and the wallet key may belong to two signers.
    unsigned.sign(&key(INITIATOR))?;
    assert_eq!(unsigned.missing(), [RequestId::Input(1)]);
    unsigned.sign(&key(wallet_key))?;
    assert!(unsigned.finish().is_ok());

    // The same for an instant refund that both parties have signed.
    let refund = InstantRefund::new(&swap, &[funding(1, 0, 50_000)], TO)?;
    let complete = refund.complete(&refund.sign(&key(INITIATOR))?, &refund.countersign(&key(REDEEMER))?)?;
    let unsigned = refund.with_fee(&complete, &coins)?;
    assert_eq!(unsigned.missing(), [RequestId::Input(1)]);
    let summary = unsigned.summary().to_string();
    assert!(summary.contains("input 1, digest ") && !summary.contains("input 0, digest "), "{summary}");
    let whole = signed(unsigned, wallet_key)?;
    assert_eq!(whole.input[0], complete.input[0]);
    assert_eq!(whole.output[0], complete.output[0]);
    assert_eq!((whole.input.len(), whole.output.len()), (2, 2));
    let mut other = complete;
    other.output[0].value = Amount::from_sat(1);
    assert_eq!(refused(refund.with_fee(&other, &coins)).0, Code::InstantRefundMismatch);
    Ok(())
}

#[test]
fn the_summary_of_an_instant_refund_has_the_sum_of_all_outputs() -> TestResult {
    let swap = swap();
    let refund = InstantRefund::new(&swap, &[funding(1, 0, 50_000), funding(2, 0, 600)], TO)?;
    let complete = refund.complete(&refund.sign(&key(INITIATOR))?, &refund.countersign(&key(REDEEMER))?)?;
    let script_pubkey = swap.chain.script(TO, "")?;
    let coin = Utxo::new(funding(9, 0, 0).outpoint, TxOut { value: Amount::from_sat(9_000), script_pubkey })?;
    let summary = refund.with_fee(&complete, &FeeCoins::new(vec![coin], TO, FeeRate::from_whole(1)))?.summary().to_string();
    assert!(summary.contains(&format!("pays 0.000506 BTC (50600 sat) to {TO}")), "{summary}");
    Ok(())
}

/// A refusal states what the recovery would cost, and what it would pay.
#[test]
fn a_fee_that_is_too_high_is_shown_with_its_cost() {
    let (swap, secret) = (swap(), Some(&SECRET));
    let refuse = |rate: &str| {
        let payout = Payout::new([funding(1, 0, 50_000)], TO, deducted(rate));
        secret.map_or_else(|| swap.refund(&payout), |secret| swap.redeem(secret, &payout)).map(|_| ()).expect_err("a high fee")
    };
    // The redemption has 142 vB.
    for (rate, code, parts) in [
        ("1001", Code::FeeAbovePayout, ["at 1001 sat/vB the fee would be 0.00142142 BTC (142142 sat)", "of 0.0005 BTC (50000 sat)"]),
        ("200", Code::FeeAbovePayout, ["would cost 0.000284 BTC (28400 sat)", "pay out 0.000216 BTC (21600 sat)"]),
    ] {
        let refusal = refuse(rate);
        assert_eq!((refusal.code(), refusal.location()), (code, "/fee_rate"));
        assert!(parts.iter().all(|part| refusal.message().contains(part)), "{}", refusal.message());
    }
    let low = swap.clone().with_policy(&Policy::from_json(br#"{"bitcoin_fee_rate":2}"#).expect("a policy"));
    let refusal = low.redeem(&SECRET, &Payout::new([funding(1, 0, 50_000)], TO, deducted("3"))).map(|_| ()).expect_err("a limit");
    assert_eq!(refusal.code(), Code::FeeRateTooHigh);
    assert!(refusal.message().contains("above the policy's: the redemption would cost 0.00000426 BTC (426 sat)"), "{}", refusal.message());
}

#[test]
fn fee_coins_are_not_the_htlcs_and_their_change_does_not_go_there() -> TestResult {
    let swap = swap();
    let spent = funding(1, 0, 50_000);
    let coin = |outpoint, script_pubkey| Utxo::new(outpoint, TxOut { value: Amount::from_sat(50_000), script_pubkey });
    let paid = |coin, change: &str| {
        let coins = FeeCoins::new(vec![coin], change, FeeRate::from_whole(1));
        refused(swap.refund(&Payout::new([spent], TO, Fee::Paid(coins))))
    };
    let own = coin(spent.outpoint, swap.tree.script_pubkey())?;
    assert_eq!(paid(own, TO), (Code::UtxoTwice, "/utxos/0/txid".to_owned()));
    let other = coin(funding(9, 0, 0).outpoint, swap.chain.script(TO, "")?)?;
    assert_eq!(paid(other, &swap.tree.address(swap.chain)), (Code::ChangeToDeposit, "/change_address".to_owned()));
    Ok(())
}

fn refused<T>(result: Result<T, Refusal>) -> (Code, String) {
    result.map(|_| ()).map_err(|refusal| (refusal.code(), refusal.location().to_owned())).expect_err("a refusal")
}

#[test]
fn funding_outputs_are_found_in_their_transaction() {
    let swap = swap();
    let output = |value, script_pubkey| TxOut { value: Amount::from_sat(value), script_pubkey };
    let transaction = Transaction {
        version: bitcoin::transaction::Version::TWO,
        lock_time: bitcoin::absolute::LockTime::ZERO,
        input: vec![TxIn { witness: Witness::new(), ..TxIn::default() }],
        output: vec![output(1, swap.chain.script(TO, "").expect("an address")), output(50_000, swap.tree.script_pubkey())],
    };
    let found = Funding::from_transaction(&transaction, &swap.tree);
    assert_eq!(found, [Funding::new(OutPoint { txid: transaction.compute_txid(), vout: 1 }, Amount::from_sat(50_000))]);
    let text = format!("{}:1:50000", transaction.compute_txid());
    assert_eq!(Funding::parse(&text), Ok(found[0]));
    for text in ["", "1:2:3", &format!("{text}:4"), &text.replace(":1:", ":+1:")] {
        assert_eq!(Funding::parse(text).expect_err(text).code(), Code::FundingMismatch);
    }
}

#[test]
fn coins_do_not_go_to_another_chain_back_into_the_htlc_or_into_fees() {
    let swap = swap();
    let to = |address: &str| refused(swap.refund(&Payout::new([funding(1, 0, 50_000)], address, deducted("1"))));
    assert_eq!(to("bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4"), (Code::AddressNetwork, "/to".to_owned()));
    assert_eq!(to(&swap.tree.address(swap.chain)), (Code::ChangeToDeposit, "/to".to_owned()));
    assert_eq!(refused(swap.refund(&payout(&[funding(1, 0, 400)]))), (Code::FeeAbovePayout, "/fee_rate".to_owned()));
}

/// However the fee is paid, its rate must be within the policy, and it must not be higher than the recovered amount.
#[test]
fn a_fee_has_ceilings() -> TestResult {
    let swap = swap();
    let [too_high, above_payout] = [Code::FeeRateTooHigh, Code::FeeAbovePayout].map(|code| (code, "/fee_rate".to_owned()));
    let deducted = |value, rate: &str| swap.refund(&Payout::new([funding(1, 0, value)], TO, deducted(rate)));
    assert!(deducted(10_000_000, "1000").is_ok());
    assert_eq!(refused(deducted(10_000_000, "1000.1")), too_high);
    // About 130 vB: 650 of 1,000.
    assert_eq!(refused(deducted(1_000, "5")), above_payout);
    assert!(deducted(1_000, "3").is_ok());
    // The fee may equal the remaining amount, but not exceed it.
    let vsize = payment(&deducted(1_000, "3")?).vsize;
    assert!(deducted(6 * vsize, "3").is_ok());
    assert_eq!(refused(deducted(6 * vsize - 1, "3")), above_payout);
    let coin = |value| -> Result<Utxo, Refusal> {
        let script_pubkey = swap.chain.script(TO, "")?;
        Utxo::new(funding(9, 0, 0).outpoint, TxOut { value: Amount::from_sat(value), script_pubkey })
    };
    let paid = |value, rate| {
        let coins = FeeCoins::new(vec![coin(10_000_000)?], TO, FeeRate::from_whole(rate));
        swap.refund(&Payout::new([funding(1, 0, value)], TO, Fee::Paid(coins)))
    };
    assert!(paid(1_000_000, 1_000).is_ok());
    assert_eq!(refused(paid(1_000_000, 1_001)), too_high);
    assert_eq!(refused(paid(1_000, 5)), above_payout);
    let instant = InstantRefund::new(&swap, &[funding(1, 0, 50_000)], TO)?;
    let complete = instant.complete(&instant.sign(&key(INITIATOR))?, &instant.countersign(&key(REDEEMER))?)?;
    let coins = FeeCoins::new(vec![coin(10_000_000)?], TO, FeeRate::from_whole(1_001));
    assert_eq!(refused(instant.with_fee(&complete, &coins)), too_high);
    // The wallet's own ceiling.
    let strict = read(&order())?.with_policy(&Policy::from_json(br#"{"bitcoin_fee_rate":2}"#)?);
    assert_eq!(refused(strict.refund(&Payout::new([funding(1, 0, 50_000)], TO, self::deducted("3")))), too_high);
    Ok(())
}

#[test]
fn a_recovery_of_either_role_is_prepared_later() -> TestResult {
    use countersign_bitcoin::recover::{redeem, refund};

    let record = read_record(&order())?;
    let payout = payout(&[funding(1, 0, 50_000)]);
    let (back, taken) = (refund(&record, Leg::Source, registry())?, redeem(&record, Leg::Source, &SECRET, registry())?);
    assert_eq!((back.role(), taken.role()), (Role::Refund, Role::Redeem));
    assert_eq!(back.signer().bytes(), key(INITIATOR).x_only().serialize());
    assert_eq!(taken.signer().bytes(), key(REDEEMER).x_only().serialize());
    assert_eq!(payment(&back.prepare(payout.clone())?).transaction(), payment(&swap().refund(&payout)?).transaction());
    assert_eq!(payment(&taken.prepare(payout.clone())?).transaction(), payment(&swap().redeem(&SECRET, &payout)?).transaction());
    assert!(!format!("{taken:?}").contains(&format!("{:?}", &SECRET[..4]).replace(['[', ']'], "")));
    assert!(format!("{taken:?}").contains("Redeem"), "{taken:?}");
    let refusal = redeem(&record, Leg::Source, &[7; 32], registry()).map(|_| ()).expect_err("another secret");
    assert_eq!((refusal.code(), refusal.location()), (Code::SecretWrong, "/order/source_swap/secret_hash"));
    let low = Policy::from_json(br#"{"bitcoin_fee_rate":0}"#)?;
    assert_eq!(refused(back.with_policy(&low).prepare(payout.clone())).0, Code::FeeRateTooHigh);
    Ok(())
}

/// The size of an input is that of a signed transaction, by the library of Bitcoin.
#[test]
fn an_output_is_spent_only_if_it_pays_more_than_its_input_costs() -> TestResult {
    use countersign_bitcoin::recover::{Exceptions, redeem, refund};

    let record = read_record(&order())?;
    for (recovery, signer) in
        [(refund(&record, Leg::Source, registry())?, INITIATOR), (redeem(&record, Leg::Source, &SECRET, registry())?, REDEEMER)]
    {
        let less = Exceptions { less: true, ..Exceptions::default() };
        let weight = |fundings: &[Funding]| -> Result<u64, Refusal> {
            Ok(signed(recovery.prepare(payout(fundings).with_exceptions(less))?, signer)?.weight().to_wu())
        };
        let (one, two) = ([funding(1, 0, 49_000)], [funding(1, 0, 49_000), funding(2, 0, 700)]);
        let vbytes = (weight(&two)? - weight(&one)?).div_ceil(4);
        for rate in [1, 7] {
            let is_worth = |value| !recovery.divide([funding(3, 0, value)], FeeRate::from_whole(rate)).0.is_empty();
            assert!(!is_worth(0) && !is_worth(vbytes * rate), "{rate} sat/vB, {vbytes} vB");
            assert!(is_worth(vbytes * rate + 1) && is_worth(49_999), "{rate} sat/vB, {vbytes} vB");
        }
        for fundings in [&one[..], &two] {
            assert_eq!(recovery.vsize(&payout(fundings))?, weight(fundings)?.div_ceil(4));
        }
        let back = Payout::new(one, swap().tree.address(swap().chain), deducted("1"));
        assert_eq!(refused(recovery.vsize(&back)).0, Code::ChangeToDeposit);
    }
    Ok(())
}

#[test]
fn a_swap_is_funded_once_the_whole_amount_is_paid() -> TestResult {
    let mut order = order();
    for (filled, expected) in [
        ("0", FundingStatus::Unfunded),
        ("1", FundingStatus::Partial { missing: Amount::from_sat(49_999) }),
        ("50000", FundingStatus::Full),
        ("50001", FundingStatus::Full),
    ] {
        order["source_swap"]["filled_amount"] = json!(filled);
        assert_eq!(read(&order)?.funding_status(), expected, "{filled}");
    }
    Ok(())
}
