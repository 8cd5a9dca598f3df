//! Sui by the Sui Rust SDK: sui-sdk-types and sui-crypto.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use sui_crypto::SuiSigner;
use sui_crypto::ed25519::Ed25519PrivateKey;
use sui_crypto::simple::SimpleKeypair;
use sui_sdk_types::{Address, GasPayment, ObjectReference, Transaction, TransactionExpiration};

use crate::orders::peer::{Order, Signed, bytes, number, text};

pub(super) fn sign(order: &Order) -> Signed {
    let (mut result, wallet) = (order.result(), &order.wallet);
    let kind: Vec<u8> = serde_json::from_value(result["ptb_bytes"].take()).expect("bytes");
    let sender = address(&order.request["source"]["owner"]);
    let transaction = Transaction {
        kind: bcs::from_bytes(&kind).expect("a kind"),
        sender,
        gas_payment: GasPayment {
            objects: wallet["gas_payment"].as_array().expect("coins").iter().map(coin).collect(),
            owner: wallet.get("sponsor").map_or(sender, address),
            price: number(&wallet["gas_price"]).parse().expect("a price"),
            budget: number(&wallet["gas_budget"]).parse().expect("a budget"),
        },
        expiration: wallet["expiration_epoch"].as_u64().map_or(TransactionExpiration::None, TransactionExpiration::Epoch),
    };
    let key = order.key();
    let signature = if key.starts_with("suiprivkey") {
        SimpleKeypair::from_suiprivkey(key).expect("a key").sign_transaction(&transaction)
    } else {
        Ed25519PrivateKey::new(bytes(key).try_into().expect("a key")).sign_transaction(&transaction)
    };
    vec![
        ("/transaction/transaction_data".to_owned(), STANDARD.encode(bcs::to_bytes(&transaction).expect("memory"))),
        ("/transaction/signature".to_owned(), signature.expect("a signature").to_base64()),
    ]
}

fn coin(coin: &Value) -> ObjectReference {
    let version = number(&coin["version"]).parse().expect("a version");
    ObjectReference::new(address(&coin["object_id"]), version, text(&coin["digest"]).parse().expect("a digest"))
}

fn address(value: &Value) -> Address {
    format!("0x{}", text(value).trim_start_matches("0x")).parse().expect("an address")
}
