//! Bitcoin and Litecoin: sighashes by `bitcoin`, signatures by libsecp256k1.

use std::hint::black_box;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use countersign::bitcoin::bitcoin::base58::decode_check;
use countersign::bitcoin::bitcoin::hashes::Hash;
use countersign::bitcoin::bitcoin::key::{Keypair, Secp256k1, TapTweak};
use countersign::bitcoin::bitcoin::psbt::Psbt;
use countersign::bitcoin::bitcoin::secp256k1::{All, Message, SecretKey};
use countersign::bitcoin::bitcoin::sighash::{EcdsaSighashType, Prevouts, SighashCache, TapSighashType};
use countersign::bitcoin::bitcoin::{Transaction, TxOut};
use countersign::chains::taproot::{Htlc, InternalKey};
use serde_json::Value;

use crate::floor::{Work, artefacts, text};

pub(super) fn floor(case: &Value) -> Vec<Work> {
    let secp = Secp256k1::new();
    let keys: Vec<_> = text(&case["wallet"]["secret_key"]).split_whitespace().map(key).collect();
    let mut floor: Vec<Work> = Vec::new();
    for key in keys.clone() {
        let secp = secp.clone();
        floor.push(Box::new(move || _ = black_box(black_box(key).public_key(&secp))));
    }
    for (_, artefact) in artefacts(case) {
        let psbt = Psbt::deserialize(&STANDARD.decode(text(&artefact["psbt"])).expect("base64")).expect("a PSBT");
        let payment = psbt.unsigned_tx.clone();
        let coins = Coins::new(&secp, &keys, psbt, text(&artefact["signed"]));
        floor.push(Box::new(move || coins.sign()));
        floor.push(Box::new(move || _ = black_box(black_box(&payment).compute_txid())));
    }
    floor
}

/// Returns the key in hex digits or in a wallet's text format.
fn key(text: &str) -> SecretKey {
    let bytes = hex::decode(text).unwrap_or_else(|_| decode_check(text).expect("base58")[1..33].to_vec());
    SecretKey::from_slice(&bytes).expect("a key")
}

/// The coins of a payment with their keys.
struct Coins {
    secp: Secp256k1<All>,
    psbt: Psbt,
    outputs: Vec<TxOut>,
    keys: Vec<SecretKey>,
}

impl Coins {
    /// Finds each coin's key: the one whose signature is in the expected transaction.
    fn new(secp: &Secp256k1<All>, keys: &[SecretKey], psbt: Psbt, signed: &str) -> Self {
        let outputs: Vec<TxOut> = (0..psbt.inputs.len()).map(|index| coin(&psbt, index)).collect();
        let mut coins = Self { secp: secp.clone(), psbt, outputs, keys: Vec::new() };
        coins.keys = (0..coins.outputs.len())
            .map(|index| {
                let mut hashes = SighashCache::new(&coins.psbt.unsigned_tx);
                let is_expected = |key: &&SecretKey| signed.contains(&hex::encode(coins.sign_coin(&mut hashes, index, key)));
                *keys.iter().find(is_expected).expect("a key that signs as expected")
            })
            .collect();
        coins
    }

    fn sign(&self) {
        let mut hashes = SighashCache::new(&self.psbt.unsigned_tx);
        for (index, key) in self.keys.iter().enumerate() {
            black_box(self.sign_coin(&mut hashes, index, black_box(key)));
        }
    }

    /// Returns the signature for a coin, hashed as its script requires.
    fn sign_coin(&self, hashes: &mut SighashCache<&Transaction>, index: usize, key: &SecretKey) -> Vec<u8> {
        let (secp, coin, all) = (&self.secp, &self.outputs[index], EcdsaSighashType::All);
        let digest = if coin.script_pubkey.is_p2tr() {
            let coins = Prevouts::All(&self.outputs);
            let hash = hashes.taproot_key_spend_signature_hash(index, &coins, TapSighashType::Default).expect("a coin");
            let pair = Keypair::from_secret_key(secp, key).tap_tweak(secp, None).to_keypair();
            return secp.sign_schnorr_no_aux_rand(&Message::from_digest(hash.to_byte_array()), &pair).as_ref().to_vec();
        } else if coin.script_pubkey.is_p2pkh() {
            hashes.legacy_signature_hash(index, &coin.script_pubkey, all.to_u32()).expect("a coin").to_byte_array()
        } else {
            let script = self.psbt.inputs[index].redeem_script.as_ref().unwrap_or(&coin.script_pubkey);
            hashes.p2wpkh_signature_hash(index, script, coin.value, all).expect("a coin").to_byte_array()
        };
        secp.sign_ecdsa(&Message::from_digest(digest), key).serialize_der().to_vec()
    }
}

fn coin(psbt: &Psbt, index: usize) -> TxOut {
    let input = &psbt.inputs[index];
    let whole = || {
        let outpoint = psbt.unsigned_tx.input[index].previous_output;
        input.non_witness_utxo.as_ref().expect("a coin").output[outpoint.vout as usize].clone()
    };
    input.witness_utxo.clone().unwrap_or_else(whole)
}

/// Returns the work for a taproot output: the points of both parties, three leaves, two branches, and the tweak of a
/// known internal key.
pub(super) fn taproot(secret_hash: [u8; 32]) -> Work {
    // The point of BIP-341 without a known secret key, and the generator.
    let [point, key] = [
        "50929b74c1a04954b78b4b6035e97a5e078a5a0f28ec96d547bfee9ace803ac0",
        "79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798",
    ]
    .map(|digits| hex::decode(digits).expect("hex").try_into().expect("32 bytes"));
    let htlc = Htlc { internal_key: point, initiator: key, redeemer: point, secret_hash, timelock: 144 };
    let internal = InternalKey::lift(point).expect("a point");
    Box::new(move || {
        let htlc = black_box(htlc);
        black_box([htlc.initiator, htlc.redeemer].map(InternalKey::lift));
        black_box(htlc.output_under(&internal).expect("an output"));
    })
}
