//! Starknet by starknet-rs.

use serde_json::Value;
use starknet_core::types::Felt;
use starknet_core::types::typed_data::TypedData;
use starknet_crypto::poseidon_hash_many;
use starknet_signers::SigningKey;

use crate::orders::peer::{Order, Signed, number};

pub(super) fn sign(order: &Order) -> Signed {
    let mut result = order.result();
    let key = SigningKey::from_secret_scalar(felt(&order.wallet["secret_key"]));
    let source = &order.request["source"];
    let owner = felt(&source["owner"]);
    let sender = source.get("delegate").map_or(owner, felt);
    let mut signed = Signed::new();
    let mut sign = |name: &str, hash_name: &str, hash: Felt| {
        let signature = key.sign(&hash).expect("a signature");
        signed.push((format!("/{name}/{hash_name}"), format!("{hash:#x}")));
        signed.push((format!("/{name}/signature/0"), format!("{:#x}", signature.r)));
        signed.push((format!("/{name}/signature/1"), format!("{:#x}", signature.s)));
    };
    sign("invoke", "tx_hash", transaction_hash(&result, &order.wallet, sender));
    if result["typed_data"].is_object() {
        let typed: TypedData = serde_json::from_value(result["typed_data"].take()).expect("typed data");
        sign("typed_data", "message_hash", typed.message_hash(owner).expect("a hash"));
    }
    signed
}

fn transaction_hash(result: &Value, wallet: &Value, sender: Felt) -> Felt {
    let names = ["approval_transaction", "initiate_transaction", "transaction"];
    let calls: Vec<_> = names.iter().map(|name| &result[name]).filter(|call| call.is_object()).collect();
    let calldata = if number(&wallet["cairo_version"]) == "0" { encode_cairo_0(&calls) } else { encode_cairo_1(&calls) };
    let list = |name: &str| poseidon_hash_many(&wallet[name].as_array().map_or(vec![], |felts| felts.iter().map(felt).collect()));
    let bound = |name: &str, member: &str| {
        let bound = &wallet["resource_bounds"][member];
        let (amount, price) = (felt(&bound["max_amount"]), felt(&bound["max_price_per_unit"]));
        // The name, eight bytes for the amount, and sixteen for the price.
        Felt::from_bytes_be_slice(name.as_bytes()) * two_to(192) + amount * two_to(128) + price
    };
    let tip = if wallet["tip"].is_null() { Felt::ZERO } else { felt(&wallet["tip"]) };
    let fees = [tip, bound("L1_GAS", "l1_gas"), bound("L2_GAS", "l2_gas"), bound("L1_DATA", "l1_data_gas")];
    let mode = |name: &str| Felt::from(u64::from(wallet[name] == "L2"));
    let modes = mode("nonce_data_availability_mode") * two_to(32) + mode("fee_data_availability_mode");
    let chain = number(&wallet["chain_id"]);
    let chain = if chain.starts_with("0x") { felt(&wallet["chain_id"]) } else { Felt::from_bytes_be_slice(chain.as_bytes()) };
    poseidon_hash_many(&[
        Felt::from_bytes_be_slice(b"invoke"),
        Felt::THREE,
        sender,
        poseidon_hash_many(&fees),
        list("paymaster_data"),
        chain,
        felt(&wallet["nonce"]),
        modes,
        list("account_deployment_data"),
        poseidon_hash_many(&calldata),
    ])
}

fn encode_cairo_1(calls: &[&Value]) -> Vec<Felt> {
    let mut felts = vec![Felt::from(calls.len())];
    for call in calls {
        let calldata = calldata(call);
        felts.extend([felt(&call["to"]), felt(&call["selector"]), Felt::from(calldata.len())]);
        felts.extend(calldata);
    }
    felts
}

fn encode_cairo_0(calls: &[&Value]) -> Vec<Felt> {
    let (mut felts, mut all) = (vec![Felt::from(calls.len())], Vec::new());
    for call in calls {
        let calldata = calldata(call);
        felts.extend([felt(&call["to"]), felt(&call["selector"]), Felt::from(all.len()), Felt::from(calldata.len())]);
        all.extend(calldata);
    }
    felts.push(Felt::from(all.len()));
    felts.extend(all);
    felts
}

fn calldata(call: &Value) -> Vec<Felt> {
    call["calldata"].as_array().expect("calldata").iter().map(felt).collect()
}

fn two_to(exponent: u32) -> Felt {
    Felt::TWO.pow(exponent)
}

fn felt(value: &Value) -> Felt {
    let text = number(value);
    if text.starts_with("0x") { Felt::from_hex(&text) } else { Felt::from_dec_str(&text) }.expect("a felt")
}
