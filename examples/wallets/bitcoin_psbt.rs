//! A Bitcoin wallet with a hardware signer. The deposit address is recomputed from the order record, the PSBT contains the key origins of
//! its inputs and change, and the signatures in the signed PSBT are proven before the broadcast.

use std::error::Error;

use countersign::bitcoin::bitcoin::absolute::LockTime;
use countersign::bitcoin::bitcoin::bip32::{DerivationPath, Xpriv};
use countersign::bitcoin::bitcoin::key::Secp256k1;
use countersign::bitcoin::bitcoin::transaction::Version;
use countersign::bitcoin::bitcoin::{
    Amount, CompressedPublicKey, Network, OutPoint, Psbt, ScriptBuf, Sequence, Transaction, TxIn, TxOut, Witness,
};
use countersign::bitcoin::{self, ExternalSignature, FeeRate, KeyOrigin, TxContext, Utxo};
use countersign::{CreateOrder, Policy, Proposal, RequestId, U256, wire::RequestedLeg};
use countersign_examples::{pinned_registry, service};

/// A substitute for a hardware signer. It signs only inputs whose keys the PSBT derives from its own seed, and requires the
/// previous transaction of each.
struct Hardware(Xpriv);

impl Hardware {
    fn sign(&self, psbt: &str) -> Result<Psbt, Box<dyn Error>> {
        let mut psbt: Psbt = psbt.parse()?;
        for input in &psbt.inputs {
            let own = input.bip32_derivation.values().all(|(fingerprint, _)| *fingerprint == self.0.fingerprint(&Secp256k1::new()));
            if input.bip32_derivation.is_empty() || !own || input.non_witness_utxo.is_none() {
                return Err("the device does not know this input".into());
            }
        }
        psbt.sign(&self.0, &Secp256k1::new()).map_err(|_| "the device could not sign")?;
        Ok(psbt)
    }
}

/// Derives a key of the wallet. Returns its origin, and the script that pays to it.
fn derive(master: &Xpriv, path: &str) -> Result<(KeyOrigin, ScriptBuf), Box<dyn Error>> {
    let secp = Secp256k1::new();
    let path: DerivationPath = path.parse()?;
    let key = CompressedPublicKey::from_private_key(&secp, &master.derive_priv(&secp, &path)?.to_priv())?;
    Ok((KeyOrigin::new(master.fingerprint(&secp), path, key), ScriptBuf::new_p2wpkh(&key.wpubkey_hash())))
}

/// A substitute for the wallet's node: returns a coin with the transaction that created it.
fn coin(script_pubkey: ScriptBuf) -> Result<Utxo, Box<dyn Error>> {
    let output = TxOut { value: Amount::from_sat(120_000), script_pubkey };
    let previous = Transaction {
        version: Version::TWO,
        lock_time: LockTime::ZERO,
        input: vec![TxIn {
            previous_output: OutPoint::null(),
            script_sig: ScriptBuf::new(),
            sequence: Sequence::MAX,
            witness: Witness::new(),
        }],
        output: vec![output.clone()],
    };
    Ok(Utxo::with_previous_tx(OutPoint { txid: previous.compute_txid(), vout: 0 }, output, previous)?)
}

#[expect(clippy::print_stdout, reason = "an example shows what it does")]
fn main() -> Result<(), Box<dyn Error>> {
    let device = Hardware(Xpriv::new_master(Network::Testnet, b"countersign example: bitcoin")?);
    let request = CreateOrder::new(
        RequestedLeg::new(
            "bitcoin_testnet:btc".parse()?,
            "tb1pjrrcgcfdy7g4myuhnfa507khd7t2wuh04rxgfpjpet5eepp3fq5qvlce5a",
            U256::from(50_000),
        ),
        RequestedLeg::new("base_sepolia:usdc".parse()?, "0x8B68811FD7257C126E9d6ac074a76C5AE34424c4", U256::from(49_000_000)),
    )
    .with_secret_hash("0x2dbe3df67b8b4a6d6cf1289af19adf99507bdbbe12601025b9a5812071570f2c".parse()?);
    let response = service::create_order(&request);
    let record = service::order(&request).ok_or("the service has no record of the order")?;
    let order = bitcoin::verify(Proposal::new(&request, response).with_record(record), &pinned_registry(), &Policy::default())?;
    print!("{}", order.summary());
    for warning in order.warnings() {
        println!("{}: {warning}", warning.severity());
    }

    let (coin_key, coin_script) = derive(&device.0, "m/84'/1'/0'/0/0")?;
    let (change_key, change_script) = derive(&device.0, "m/84'/1'/0'/1/0")?;
    let wallet = TxContext::new(vec![coin(coin_script)?], change_script, FeeRate::from_whole(3)).with_origins([coin_key, change_key]);
    let mut unsigned = order.prepare(wallet)?;
    let request = unsigned.requests().into_iter().next().ok_or("the order has no input to sign")?;
    let signed = device.sign(&request.payload.psbt.to_string())?;
    unsigned.attach(RequestId::Input(0), ExternalSignature::Psbt(Box::new(signed)))?;
    for transaction in unsigned.finish()?.transactions() {
        println!(
            "broadcast {}, {} bytes; it pays the deposit: {}",
            transaction.id,
            transaction.bytes.len(),
            order.matches(&transaction.native)?
        );
    }
    Ok(())
}
