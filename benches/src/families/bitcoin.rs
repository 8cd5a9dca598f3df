//! Bitcoin and Litecoin by rust-bitcoin.

use std::collections::HashMap;
use std::sync::LazyLock;

use bitcoin::absolute::LockTime;
use bitcoin::consensus::encode::serialize_hex;
use bitcoin::hashes::Hash;
use bitcoin::key::{Keypair, TapTweak};
use bitcoin::script::{Builder, PushBytesBuf};
use bitcoin::secp256k1::{All, Message, Secp256k1, SecretKey};
use bitcoin::sighash::{EcdsaSighashType, Prevouts, SighashCache, TapSighashType};
use bitcoin::transaction::Version;
use bitcoin::{
    Address, Amount, CompressedPublicKey, OutPoint, PrivateKey, ScriptBuf, Sequence, Transaction, TxIn, TxOut, Witness, WitnessProgram,
    WitnessVersion, base58,
};
use serde_json::Value;

use crate::orders::peer::{Order, Signed, bytes, number, text};

static SECP: LazyLock<Secp256k1<All>> = LazyLock::new(Secp256k1::new);

pub(super) fn sign(order: &Order) -> Signed {
    let (result, wallet) = (order.result(), &order.wallet);
    let coins: Vec<_> = wallet["utxos"].as_array().expect("coins").iter().map(coin).collect();
    let sequence = if wallet["rbf"] == false { Sequence::ENABLE_LOCKTIME_NO_RBF } else { Sequence::ENABLE_RBF_NO_LOCKTIME };
    let input = coins.iter().map(|(outpoint, _)| TxIn { previous_output: *outpoint, sequence, ..TxIn::default() });
    let (input, output) = (input.collect(), outputs(&result, wallet, &coins));
    let mut transaction = Transaction { version: Version::TWO, lock_time: LockTime::ZERO, input, output };
    let spent: Vec<TxOut> = coins.into_iter().map(|(_, output)| output).collect();
    let keys = keys(order.key());
    let solved: Vec<_> = (0..spent.len()).map(|index| solve(&transaction, index, &spent, keys[&spent[index].script_pubkey])).collect();
    for (input, (script_sig, witness)) in transaction.input.iter_mut().zip(solved) {
        (input.script_sig, input.witness) = (script_sig, witness);
    }
    vec![("/deposit/signed".to_owned(), serialize_hex(&transaction)), ("/deposit/tx_id".to_owned(), transaction.compute_txid().to_string())]
}

fn coin(coin: &Value) -> (OutPoint, TxOut) {
    let txid = text(&coin["txid"]).parse().expect("a transaction id");
    let vout = coin["vout"].as_u64().and_then(|vout| vout.try_into().ok()).expect("an index");
    let value = Amount::from_sat(number(&coin["value"]).parse().expect("a value"));
    (OutPoint { txid, vout }, TxOut { value, script_pubkey: bytes(text(&coin["script_pubkey"])).into() })
}

/// Returns the deposit output, and a change output if it exceeds the dust limit.
fn outputs(result: &Value, wallet: &Value, coins: &[(OutPoint, TxOut)]) -> Vec<TxOut> {
    let deposit = TxOut {
        value: Amount::from_sat(number(&result["amount"]).parse().expect("an amount")),
        script_pubkey: script_of(text(&result["to"])),
    };
    let change = script_of(text(&wallet["change_address"]));
    let weight: usize = coins.iter().map(|(_, output)| input_weight(&output.script_pubkey)).sum();
    let weight = 42 + weight + 4 * (9 + deposit.script_pubkey.len()) + 4 * (9 + change.len());
    let total: u64 = coins.iter().map(|(_, output)| output.value.to_sat()).sum();
    let fee = fee(weight.div_ceil(4), text(&wallet["fee_rate"]));
    let rest = total.checked_sub(deposit.value.to_sat() + fee).map(Amount::from_sat);
    let change = rest.filter(|rest| *rest >= change.minimal_non_dust()).map(|value| TxOut { value, script_pubkey: change });
    [deposit].into_iter().chain(change).collect()
}

fn input_weight(script: &ScriptBuf) -> usize {
    match script.len() {
        22 => 272,
        34 => 230,
        23 => 364,
        _ => 593,
    }
}

/// Computes ceil(vsize * rate) with integers.
fn fee(vsize: usize, rate: &str) -> u64 {
    let (whole, fraction) = rate.split_once('.').unwrap_or((rate, ""));
    let scaled: u128 = format!("{whole}{fraction}").parse().expect("a fee rate");
    let digits = u32::try_from(fraction.len()).expect("few digits");
    (scaled * vsize as u128).div_ceil(10_u128.pow(digits)).try_into().expect("a fee")
}

/// Returns the script of an address. rust-bitcoin does not support Litecoin's addresses. Those in the fixtures are
/// segwit.
fn script_of(address: &str) -> ScriptBuf {
    if let Ok(address) = address.parse::<Address<_>>() {
        return address.assume_checked().script_pubkey();
    }
    let (_, version, program) = bech32::segwit::decode(address).expect("a segwit address");
    let version = WitnessVersion::try_from(version.to_u8()).expect("a version");
    ScriptBuf::new_witness_program(&WitnessProgram::new(version, &program).expect("a program"))
}

/// Returns the keys, by the scripts that they can spend.
fn keys(text: &str) -> HashMap<ScriptBuf, Keypair> {
    let mut keys = HashMap::new();
    for part in text.split(' ') {
        let secret = match SecretKey::from_slice(&hex::decode(part.trim_start_matches("0x")).unwrap_or_default()) {
            Ok(secret) => secret,
            Err(_) => from_wif(part),
        };
        let pair = Keypair::from_secret_key(&SECP, &secret);
        let public = CompressedPublicKey(pair.public_key());
        let segwit = ScriptBuf::new_p2wpkh(&public.wpubkey_hash());
        let nested = ScriptBuf::new_p2sh(&segwit.script_hash());
        let taproot = ScriptBuf::new_p2tr(&SECP, pair.x_only_public_key().0, None);
        for script in [segwit, nested, ScriptBuf::new_p2pkh(&public.pubkey_hash()), taproot] {
            keys.insert(script, pair);
        }
    }
    keys
}

/// Decodes a key. rust-bitcoin does not support Litecoin's keys either.
fn from_wif(text: &str) -> SecretKey {
    PrivateKey::from_wif(text)
        .map_or_else(|_| SecretKey::from_slice(&base58::decode_check(text).expect("a key in WIF")[1..33]).expect("a key"), |key| key.inner)
}

/// Returns the script and the witness that spend one input.
fn solve(transaction: &Transaction, index: usize, spent: &[TxOut], pair: Keypair) -> (ScriptBuf, Witness) {
    let mut cache = SighashCache::new(transaction);
    let TxOut { value, script_pubkey } = &spent[index];
    if script_pubkey.is_p2tr() {
        let hash = cache.taproot_key_spend_signature_hash(index, &Prevouts::All(spent), TapSighashType::Default).expect("a hash");
        let tweaked = pair.tap_tweak(&SECP, None).to_keypair();
        let signature = SECP.sign_schnorr_no_aux_rand(&Message::from_digest(hash.to_byte_array()), &tweaked);
        let signature = bitcoin::taproot::Signature { signature, sighash_type: TapSighashType::Default };
        return (ScriptBuf::new(), Witness::p2tr_key_spend(&signature));
    }
    let public = CompressedPublicKey(pair.public_key());
    let sign = |digest: [u8; 32]| bitcoin::ecdsa::Signature {
        signature: SECP.sign_ecdsa(&Message::from_digest(digest), &pair.secret_key()),
        sighash_type: EcdsaSighashType::All,
    };
    if script_pubkey.is_p2pkh() {
        let hash = cache.legacy_signature_hash(index, script_pubkey, EcdsaSighashType::All.to_u32()).expect("a hash");
        let signature = sign(hash.to_byte_array());
        let script = Builder::new().push_slice(signature.serialize()).push_key(&public.into()).into_script();
        return (script, Witness::new());
    }
    let segwit = ScriptBuf::new_p2wpkh(&public.wpubkey_hash());
    let hash = cache.p2wpkh_signature_hash(index, &segwit, *value, EcdsaSighashType::All).expect("a hash");
    let signature = sign(hash.to_byte_array());
    let script_sig = if script_pubkey.is_p2sh() {
        Builder::new().push_slice(PushBytesBuf::try_from(segwit.into_bytes()).expect("22 bytes")).into_script()
    } else {
        ScriptBuf::new()
    };
    (script_sig, Witness::p2wpkh(&signature, &public.0))
}
