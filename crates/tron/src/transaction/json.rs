//! Transactions in the JSON of node APIs. Hex has no `0x`, addresses have their prefix byte, and default values are left out.

use alloy_primitives::hex;
use serde_json::{Map, Value, json};

use super::TronTransaction;
use super::protocol::{TRIGGER_SMART_CONTRACT_NAME, TRIGGER_SMART_CONTRACT_URL};

/// Returns a transaction as `/wallet/broadcasttransaction` accepts it, or without a signature as wallets accept it to sign.
pub(super) fn transaction(transaction: &TronTransaction, signatures: &[Vec<u8>]) -> Value {
    let TronTransaction { raw, trigger, raw_data, tx_id } = transaction;
    let set = |number: i64| Some(number).filter(|number| *number != 0).map(Value::from);
    let value = object([
        ("owner_address", Some(hex::encode(&trigger.owner_address).into())),
        ("contract_address", Some(hex::encode(&trigger.contract_address).into())),
        ("call_value", set(trigger.call_value)),
        ("data", Some(hex::encode(&trigger.data).into())),
        ("call_token_value", set(trigger.call_token_value)),
        ("token_id", set(trigger.token_id)),
    ]);
    let permission = set(transaction.permission_id().into());
    let signature = (!signatures.is_empty()).then(|| signatures.iter().map(hex::encode).collect());
    let contract = object([
        ("parameter", Some(json!({ "value": value, "type_url": TRIGGER_SMART_CONTRACT_URL }))),
        ("type", Some(TRIGGER_SMART_CONTRACT_NAME.into())),
        ("Permission_id", permission),
    ]);
    let raw_json = object([
        ("contract", Some(json!([contract]))),
        ("ref_block_bytes", Some(hex::encode(&raw.ref_block_bytes).into())),
        ("ref_block_hash", Some(hex::encode(&raw.ref_block_hash).into())),
        ("expiration", Some(raw.expiration.into())),
        ("data", Some(&raw.data).filter(|memo| !memo.is_empty()).map(|memo| hex::encode(memo).into())),
        ("fee_limit", Some(raw.fee_limit.into())),
        ("timestamp", Some(raw.timestamp.into())),
    ]);
    object([
        ("visible", Some(false.into())),
        ("txID", Some(hex::encode(tx_id).into())),
        ("raw_data", Some(raw_json)),
        ("raw_data_hex", Some(hex::encode(raw_data).into())),
        ("signature", signature),
    ])
}

/// Returns an object of the members that have a value.
fn object<const N: usize>(members: [(&str, Option<Value>); N]) -> Value {
    let mut object = Map::new();
    for (name, value) in members {
        // Not by `collect`, which would compile a sort for every `N` into WebAssembly modules.
        if let Some(value) = value {
            object.insert(name.to_owned(), value);
        }
    }
    Value::Object(object)
}
