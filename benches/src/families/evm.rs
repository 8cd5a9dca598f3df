//! EVM by alloy.

use alloy_consensus::{SignableTransaction, TxEip1559, TxEnvelope, TxLegacy};
use alloy_dyn_abi::eip712::TypedData;
use alloy_eips::Encodable2718;
use alloy_primitives::{Address, Bytes, Signature, TxKind, U256, hex};
use alloy_signer::SignerSync;
use alloy_signer_local::PrivateKeySigner;
use serde_json::Value;

use crate::orders::peer::{Order, Signed, number, text};

pub(super) fn sign(order: &Order) -> Signed {
    let mut result = order.result();
    let signer: PrivateKeySigner = order.key().parse().expect("a key");
    let mut signed = Signed::new();
    let mut nonce = order.wallet["nonce"].as_u64().expect("a nonce");
    for (name, key) in [("approval", "approval_transaction"), ("initiate", "initiate_transaction"), ("initiate", "transaction")] {
        if result[key].is_object() {
            signed.push((format!("/{name}/signed"), sign_call(&result[key], &order.wallet, nonce, &signer)));
            nonce += 1;
        }
    }
    if result["typed_data"].is_object() {
        let typed: TypedData = serde_json::from_value(result["typed_data"].take()).expect("typed data");
        let signature = signer.sign_dynamic_typed_data_sync(&typed).expect("a signature");
        signed.push(("/typed_data/signature".to_owned(), hex::encode_prefixed(signature.as_bytes())));
    }
    signed
}

fn sign_call(call: &Value, wallet: &Value, nonce: u64, signer: &PrivateKeySigner) -> String {
    let chain_id = call["chain_id"].as_u64().expect("a chain id");
    let gas_limit = text(&call["gas_limit"]).parse::<U256>().expect("a gas limit").to();
    let to = TxKind::Call(text(&call["to"]).parse::<Address>().expect("an address"));
    let value = text(&call["value"]).parse::<U256>().expect("a value");
    let input = text(&call["data"]).parse::<Bytes>().expect("calldata");
    let fee = |name: &str| number(&wallet[name]).parse().expect("a fee");
    let transaction: TxEnvelope = if wallet["gas_price"].is_null() {
        let (max_fee_per_gas, max_priority_fee_per_gas) = (fee("max_fee_per_gas"), fee("max_priority_fee_per_gas"));
        let access_list = Default::default();
        let transaction =
            TxEip1559 { chain_id, nonce, gas_limit, max_fee_per_gas, max_priority_fee_per_gas, to, value, input, access_list };
        let signature = signature(&transaction, signer);
        transaction.into_signed(signature).into()
    } else {
        let transaction = TxLegacy { chain_id: Some(chain_id), nonce, gas_limit, gas_price: fee("gas_price"), to, value, input };
        let signature = signature(&transaction, signer);
        transaction.into_signed(signature).into()
    };
    hex::encode_prefixed(transaction.encoded_2718())
}

fn signature(transaction: &impl SignableTransaction<Signature>, signer: &PrivateKeySigner) -> Signature {
    signer.sign_hash_sync(&transaction.signature_hash()).expect("a signature")
}
