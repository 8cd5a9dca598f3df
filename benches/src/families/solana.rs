//! Solana by the parts of the Solana SDK.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use solana_keypair::Keypair;
use solana_signer::Signer;
use solana_transaction::versioned::VersionedTransaction;

use crate::orders::peer::{Order, Signed};

pub(super) fn sign(order: &Order) -> Signed {
    let result = order.result();
    let secret = bs58::decode(order.key()).into_vec().expect("base58");
    let key = match secret.as_slice().try_into() {
        Ok(seed) => Keypair::new_from_array(seed),
        Err(_) => Keypair::try_from(secret.as_slice()).expect("a keypair"),
    };
    let mut signed = Signed::new();
    for (name, member) in [("versioned_tx", "/transaction/signed"), ("versioned_tx_gasless", "/gasless/submission")] {
        let Some(text) = result[name].as_str() else { continue };
        let bytes = hex::decode(text).or_else(|_| STANDARD.decode(text)).expect("hex or base64");
        let mut transaction: VersionedTransaction = wincode::deserialize_exact(&bytes).expect("a transaction");
        if let ("versioned_tx", Some(hash)) = (name, order.wallet["recent_blockhash"].as_str()) {
            transaction.message.set_recent_blockhash(hash.parse().expect("a blockhash"));
        }
        let owner = transaction.message.static_account_keys().iter().position(|account| *account == key.pubkey()).expect("the owner");
        transaction.signatures[owner] = key.sign_message(&transaction.message.serialize());
        if name == "versioned_tx" {
            signed.push(("/transaction/signature".to_owned(), transaction.signatures[0].to_string()));
        }
        signed.push((member.to_owned(), STANDARD.encode(wincode::serialize(&transaction).expect("memory"))));
    }
    signed
}
