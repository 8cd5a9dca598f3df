//! PSBTs for hardware signers: key origins, previous transactions, and signers that look keys up by origin.

use std::collections::HashMap;

use bitcoin::bip32::{DerivationPath, Xpriv};
use bitcoin::key::Secp256k1;
use bitcoin::{
    Amount, CompressedPublicKey, Network, OutPoint, PrivateKey, PublicKey, ScriptBuf, Transaction, TxIn, TxOut, absolute, transaction,
};
use countersign_bitcoin::{Bitcoin, FeeRate, KeyOrigin, TxContext, UnsignedOrder, Utxo, VerifiedOrder};
use countersign_core::{Code, RequestId};
use countersign_testkit::{TestResult, fixture, outcome, verified};
use serde_json::{Value as Json, json};

fn master() -> Xpriv {
    Xpriv::new_master(Network::Testnet, &[42; 64]).expect("a seed")
}

fn private_key(path: &str) -> PrivateKey {
    let path: DerivationPath = path.parse().expect("a path");
    master().derive_priv(&Secp256k1::new(), &path).expect("a key").to_priv()
}

fn origin(path: &str) -> KeyOrigin {
    let secp = Secp256k1::new();
    let public_key = CompressedPublicKey::from_private_key(&secp, &private_key(path)).expect("compressed");
    KeyOrigin::new(master().fingerprint(&secp), path.parse().expect("a path"), public_key)
}

const P2WPKH: &str = "m/84'/1'/0'/0/0";
const P2TR: &str = "m/86'/1'/0'/0/1";
const P2SH: &str = "m/49'/1'/0'/0/2";
const P2PKH: &str = "m/44'/1'/0'/0/3";
const CHANGE: &str = "m/86'/1'/0'/1/0";

fn p2wpkh(path: &str) -> ScriptBuf {
    ScriptBuf::new_p2wpkh(&origin(path).public_key.wpubkey_hash())
}

fn p2tr(path: &str) -> ScriptBuf {
    ScriptBuf::new_p2tr(&Secp256k1::new(), origin(path).public_key.0.x_only_public_key().0, None)
}

/// The transaction that created all four coins.
fn previous() -> Transaction {
    let scripts = [
        p2wpkh(P2WPKH),
        p2tr(P2TR),
        ScriptBuf::new_p2sh(&p2wpkh(P2SH).script_hash()),
        ScriptBuf::new_p2pkh(&origin(P2PKH).public_key.pubkey_hash()),
    ];
    Transaction {
        version: transaction::Version::TWO,
        lock_time: absolute::LockTime::ZERO,
        input: vec![TxIn::default()],
        output: scripts.into_iter().map(|script_pubkey| TxOut { value: Amount::from_sat(20_000), script_pubkey }).collect(),
    }
}

/// The four coins, each with its previous transaction.
fn coins() -> Vec<Utxo> {
    let previous = previous();
    let coin = |(vout, output): (u32, &TxOut)| {
        let redeem_script = output.script_pubkey.is_p2sh().then(|| p2wpkh(P2SH));
        Utxo::from_parts(OutPoint { txid: previous.compute_txid(), vout }, output.clone(), redeem_script, Some(previous.clone()))
    };
    (0..).zip(&previous.output).map(coin).collect::<Result<_, _>>().expect("coins")
}

fn order() -> VerifiedOrder {
    verified::<Bitcoin>(&fixture::<Bitcoin>("bitcoin-address"))
}

fn wallet() -> TxContext {
    TxContext::new(coins(), p2tr(CHANGE), FeeRate::from_whole(2))
}

fn prepared(wallet: TxContext) -> UnsignedOrder {
    order().prepare(wallet).expect("the coins are enough")
}

fn origins() -> [KeyOrigin; 5] {
    [P2WPKH, P2TR, P2SH, P2PKH, CHANGE].map(origin)
}

#[test]
fn key_origins_are_in_the_psbt() {
    let unsigned = prepared(wallet().with_origins(origins()));
    let psbt = &unsigned.payloads().payment.as_ref().expect("coins").psbt;
    for (index, path) in [(0, P2WPKH), (2, P2SH), (3, P2PKH)] {
        let KeyOrigin { fingerprint, path, public_key, .. } = origin(path);
        let derivations: Vec<_> = psbt.inputs[index].bip32_derivation.clone().into_iter().collect();
        assert_eq!(derivations, [(public_key.0, (fingerprint, path))], "{index}");
        assert!(psbt.inputs[index].tap_key_origins.is_empty());
    }
    let taproot = |path: &str| {
        let KeyOrigin { fingerprint, path, public_key, .. } = origin(path);
        let key = public_key.0.x_only_public_key().0;
        (Some(key), vec![(key, (Vec::new(), (fingerprint, path)))])
    };
    let input = &psbt.inputs[1];
    assert_eq!((input.tap_internal_key, input.tap_key_origins.clone().into_iter().collect()), taproot(P2TR));
    let change = unsigned.payloads().payment.as_ref().and_then(|payment| payment.change).expect("change");
    let output = &psbt.outputs[change];
    assert_eq!((output.tap_internal_key, output.tap_key_origins.clone().into_iter().collect()), taproot(CHANGE));
    // The wallet has no key for the deposit.
    assert_eq!(psbt.outputs[0], bitcoin::psbt::Output::default());
}

#[test]
fn a_change_address_of_any_kind_has_its_origin() {
    let key = origin(CHANGE).public_key;
    for script in [p2wpkh(CHANGE), ScriptBuf::new_p2sh(&p2wpkh(CHANGE).script_hash()), ScriptBuf::new_p2pkh(&key.pubkey_hash())] {
        let unsigned = prepared(TxContext::new(coins(), script.clone(), FeeRate::from_whole(2)).with_origins(origins()));
        let output = &unsigned.payloads().payment.as_ref().expect("coins").psbt.outputs[1];
        assert!(output.bip32_derivation.contains_key(&key.0));
        assert_eq!(output.redeem_script.is_some(), script.is_p2sh());
    }
}

#[test]
fn previous_transactions_are_in_the_psbt_for_all_but_taproot() {
    let unsigned = prepared(wallet());
    let psbt = &unsigned.payloads().payment.as_ref().expect("coins").psbt;
    let whole: Vec<_> = psbt.inputs.iter().map(|input| (input.non_witness_utxo.is_some(), input.witness_utxo.is_some())).collect();
    assert_eq!(whole, [(true, true), (false, true), (true, true), (true, false)]);
    // Origins whose keys can spend neither an input nor the change are ignored.
    let others = prepared(wallet().with_origins([origin("m/0")]));
    assert_eq!(others.payloads().payment.as_ref().expect("coins").psbt, *psbt);
}

#[test]
fn a_previous_transaction_is_checked_for_every_kind_of_output() {
    let previous = previous();
    for (vout, output) in (0..).zip(&previous.output) {
        let redeem_script = output.script_pubkey.is_p2sh().then(|| p2wpkh(P2SH));
        let refused = |outpoint, output, previous: &Transaction| {
            let refusal = Utxo::from_parts(outpoint, output, redeem_script.clone(), Some(previous.clone())).map(|_| ());
            let refusal = refusal.expect_err("another transaction");
            assert_eq!((refusal.code(), refusal.location()), (Code::UtxoMismatch, "/previous_tx"));
        };
        let outpoint = OutPoint { txid: previous.compute_txid(), vout };
        let mut other = previous.clone();
        other.lock_time = absolute::LockTime::from_consensus(1);
        refused(outpoint, output.clone(), &other);
        refused(OutPoint { vout: (vout + 1) % 4, ..outpoint }, output.clone(), &previous);
        refused(OutPoint { vout: 4, ..outpoint }, output.clone(), &previous);
        refused(outpoint, TxOut { value: Amount::from_sat(20_001), ..output.clone() }, &previous);
    }
}

#[test]
fn an_extended_key_signs_by_the_origins() -> TestResult {
    let mut unsigned = prepared(wallet().with_origins(origins()));
    unsigned.sign_with(&master())?;
    assert_eq!(unsigned.missing(), []);
    let transactions = unsigned.finish()?.transactions();
    // The local signer makes the same signatures.
    let keys: Vec<_> = [P2WPKH, P2TR, P2SH, P2PKH].iter().map(|path| private_key(path).to_wif()).collect();
    let mut local = prepared(wallet());
    local.sign(&keys.join(" ").parse()?)?;
    assert_eq!(local.finish()?.transactions()[0].native, transactions[0].native);
    Ok(())
}

#[test]
fn signers_without_the_key_or_its_origin_are_refused() -> TestResult {
    let refused = |unsigned: &mut UnsignedOrder, signer: &Xpriv| {
        let refusal = unsigned.sign_with(signer).expect_err("no key");
        assert_eq!((refusal.code(), refusal.location()), (Code::KeyMismatch, ""));
        assert_eq!(unsigned.missing().len(), 4);
    };
    refused(&mut prepared(wallet()), &master());
    refused(&mut prepared(wallet().with_origins(origins())), &Xpriv::new_master(Network::Testnet, &[7; 64])?);
    let mut nothing = order().prepare(TxContext::address_only())?;
    assert_eq!(nothing.sign_with(&master()).expect_err("nothing").code(), Code::NothingToSign);

    // One of several signers signs its own input. A map of keys is a signer too.
    let mut unsigned = prepared(wallet().with_origins(origins()));
    let key = private_key(P2SH);
    unsigned.sign_with(&HashMap::from([(PublicKey::new(origin(P2SH).public_key.0), key)]))?;
    assert_eq!(unsigned.missing(), [0, 1, 3].map(RequestId::Input));
    unsigned.sign_with(&master())?;
    assert!(unsigned.finish().is_ok());
    Ok(())
}

/// The JSON of the batch: origins as key expressions, previous transactions for segwit outputs too.
#[test]
fn the_wallets_json_has_origins_and_previous_transactions() -> TestResult {
    let case = fixture::<Bitcoin>("bitcoin-address");
    let previous = previous();
    let hex = bitcoin::consensus::encode::serialize_hex(&previous);
    let utxo = |vout: usize| {
        let script = hex::encode(previous.output[vout].script_pubkey.as_bytes());
        json!({ "txid": previous.compute_txid().to_string(), "vout": vout, "value": "60000", "script_pubkey": script })
    };
    let mut line = case.json();
    line["wallet"] = json!({
        "utxos": [utxo(0)],
        "change_address": bitcoin::Address::from_script(&p2tr(CHANGE), Network::Testnet)?.to_string(),
        "fee_rate": "2",
        "origins": [origin(P2WPKH).to_string(), origin(CHANGE).to_string()],
        "secret_key": private_key(P2WPKH).to_wif(),
    });
    let got = outcome::<Bitcoin>(&case.with_input(line.to_string()))?;
    let psbt: bitcoin::Psbt = got["artefacts"]["deposit"]["signed_psbt"].as_str().ok_or("a PSBT")?.parse()?;
    assert_eq!((psbt.inputs[0].bip32_derivation.len(), psbt.outputs[1].tap_key_origins.len()), (1, 1));

    let refused = |line: &Json| {
        let refusal = outcome::<Bitcoin>(&case.with_input(line.to_string())).map(|_| ()).expect_err("a fault");
        (refusal.code(), refusal.location().to_owned())
    };
    // The coin has a higher value than the output of its transaction.
    let mut other = line.clone();
    other["wallet"]["utxos"][0]["previous_tx"] = hex.into();
    assert_eq!(refused(&other), (Code::UtxoMismatch, "/wallet/utxos/0/previous_tx".to_owned()));
    other["wallet"]["utxos"][0]["value"] = "20000".into();
    assert_eq!(refused(&other).0, Code::InsufficientFunds);
    line["wallet"]["origins"][1] = "m/86'".into();
    assert_eq!(refused(&line), (Code::KeyMalformed, "/wallet/origins/1".to_owned()));
    Ok(())
}

/// Litecoin's nodes have a higher dust limit than Bitcoin's. The typed API uses the limit of the chain, the batch that of its contract.
#[test]
fn litecoins_change_is_made_by_its_own_dust_limit() -> TestResult {
    use countersign_bitcoin::ChangeRule;

    let order = verified::<Bitcoin>(&fixture::<Bitcoin>("bitcoin-address-litecoin"));
    // 50,000, the fee of 141 vB at 1 sat/vB, and 1,000 litoshi, which are dust only on Litecoin.
    let output = TxOut { value: Amount::from_sat(50_000 + 153 + 1_000), script_pubkey: p2wpkh(P2WPKH) };
    let coin = Utxo::new(OutPoint::null(), output)?;
    let change = |rule| {
        let wallet = TxContext::new(vec![coin.clone()], p2wpkh(CHANGE), FeeRate::from_whole(1)).with_change_rule(rule);
        order.prepare(wallet).map(|unsigned| unsigned.payloads().payment.as_ref().and_then(|payment| payment.change))
    };
    assert_eq!(change(ChangeRule::Standard)?, None);
    assert_eq!(change(ChangeRule::BatchContract)?, Some(1));
    Ok(())
}

/// Offline, it is unknown what nodes relay today. A rate that was read from them causes no warning.
#[test]
fn a_rate_that_older_nodes_do_not_relay_has_a_warning_off_line() {
    let is_warned = |rate: &str, from_nodes| {
        let wallet = TxContext::new(coins(), p2tr(CHANGE), FeeRate::parse(rate).expect("a rate")).with_rate_from_nodes(from_nodes);
        let unsigned = prepared(wallet);
        unsigned.warnings().into_iter().any(|warning| warning.code() == Code::FeeTooLow)
    };
    for (rate, is_low) in [("0.1", true), ("0.999", true), ("1", false), ("2.5", false)] {
        assert_eq!((is_warned(rate, false), is_warned(rate, true)), (is_low, false), "{rate}");
    }
}

#[test]
fn a_payment_can_be_replaced_unless_told_otherwise() {
    let is_replaceable = |wallet: TxContext| {
        let unsigned = prepared(wallet);
        unsigned.payloads().payment.as_ref().expect("coins").transaction().is_explicitly_rbf()
    };
    assert!(wallet().replaceable);
    assert!(is_replaceable(wallet()));
    assert!(is_replaceable(wallet().with_replaceable(true)));
    assert!(!is_replaceable(wallet().with_replaceable(false)));
}

#[test]
fn an_address_or_script_takes_change() -> TestResult {
    let address = bitcoin::Address::from_script(&p2tr(CHANGE), Network::Testnet)?;
    let with = |wallet: TxContext| order().prepare(wallet).map(|unsigned| unsigned.payloads().payment.clone().expect("coins").psbt);
    let expected = with(wallet())?;
    assert_eq!(with(TxContext::new(coins(), address.clone(), FeeRate::from_whole(2)))?, expected);
    assert_eq!(with(TxContext::new(coins(), address.to_string(), FeeRate::from_whole(2)))?, expected);
    let main = bitcoin::Address::from_script(&p2tr(CHANGE), Network::Bitcoin)?;
    let refusal = with(TxContext::new(coins(), main, FeeRate::from_whole(2))).expect_err("another network");
    assert_eq!((refusal.code(), refusal.location()), (Code::AddressNetwork, "/change_address"));
    let burn = ScriptBuf::new_op_return([1, 2, 3]);
    let refusal = with(TxContext::new(coins(), burn, FeeRate::from_whole(2))).expect_err("no address");
    assert_eq!((refusal.code(), refusal.location()), (Code::AddressMalformed, "/change_address"));
    Ok(())
}
