//! Signed transactions as nodes return them, in alloy's own JSON and bytes.
use countersign_core::{Code, Refusal};
use countersign_evm::alloy_consensus::{SignableTransaction, TxEip1559, TxEip2930, TxEip4844, TxEip7702, TxEnvelope, TxLegacy};
use countersign_evm::alloy_eips::eip2718::Encodable2718 as _;
use countersign_evm::alloy_eips::eip2930::{AccessList, AccessListItem};
use countersign_evm::alloy_primitives::{Address, B256, Bytes, Signature, TxKind, U256};
use countersign_evm::{Evm, received};
use countersign_testkit::{fixture, key};
use serde_json::{Value, json};

const TO: TxKind = TxKind::Call(Address::repeat_byte(0x12));
const VALUE: U256 = U256::from_limbs([7, 1, 0, 0]);

fn sign<T: SignableTransaction<Signature>>(transaction: T) -> TxEnvelope
where
    countersign_evm::alloy_consensus::Signed<T>: Into<TxEnvelope>,
{
    let signature = key::<Evm>(&fixture::<Evm>("evm-token-approval-unlimited")).sign(&transaction.signature_hash()).unwrap();
    transaction.into_signed(signature).into()
}

fn input() -> Bytes {
    Bytes::from_static(b"\0\x01calldata")
}

fn access_list() -> AccessList {
    AccessList(vec![AccessListItem { address: Address::repeat_byte(3), storage_keys: vec![B256::ZERO, B256::repeat_byte(9)] }])
}

fn eip1559() -> TxEip1559 {
    TxEip1559 {
        chain_id: 8453,
        nonce: 0,
        gas_limit: 987_654,
        max_fee_per_gas: u128::MAX,
        max_priority_fee_per_gas: 0,
        to: TO,
        value: VALUE,
        access_list: access_list(),
        input: input(),
    }
}

/// One transaction of each kind that orders may have.
fn all() -> Vec<TxEnvelope> {
    let legacy = |chain_id| TxLegacy { chain_id, nonce: 5, gas_price: 9, gas_limit: 21_000, to: TO, value: VALUE, input: input() };
    let eip2930 =
        |to| TxEip2930 { chain_id: 1, nonce: 5, gas_price: 9, gas_limit: 1, to, value: VALUE, access_list: access_list(), input: input() };
    vec![
        sign(legacy(Some(1))),
        sign(legacy(Some(u64::from(u32::MAX)))),
        sign(legacy(None)),
        sign(eip2930(TO)),
        sign(eip2930(TxKind::Create)),
        sign(eip1559()),
        sign(TxEip1559 { access_list: AccessList::default(), input: Bytes::new(), ..eip1559() }),
    ]
}

fn from_json(value: &Value) -> Result<TxEnvelope, Refusal> {
    received::from_json(value.to_string().as_bytes())
}

#[test]
fn the_json_and_the_bytes_of_alloy_are_read() {
    for envelope in all() {
        let mut value = serde_json::to_value(&envelope).unwrap();
        assert_eq!(from_json(&value).unwrap(), envelope, "{value}");
        assert_eq!(received::from_bytes(&envelope.encoded_2718()).unwrap(), envelope);
        // Nodes say more, which is not believed, and some write the parity only as `v` or only as `yParity`.
        value["from"] = json!(Address::ZERO);
        value["blockNumber"] = json!(null);
        assert_eq!(from_json(&value).unwrap(), envelope, "{value}");
        if value["type"] != "0x0" {
            for key in ["v", "yParity"] {
                let mut without = value.clone();
                without.as_object_mut().unwrap().remove(key);
                assert_eq!(from_json(&without).unwrap(), envelope, "{without}");
            }
        }
    }
}

#[test]
fn every_changed_member_is_noticed_or_refused() {
    let envelope = sign(eip1559());
    let honest = serde_json::to_value(&envelope).unwrap();
    for (member, value, at) in [
        ("hash", json!(B256::ZERO), "/hash"),
        ("nonce", json!("0x1"), "/hash"),
        ("nonce", json!(1), "/nonce"),
        ("nonce", json!("0x10000000000000000"), "/nonce"),
        ("maxFeePerGas", json!("0x100000000000000000000000000000000"), "/maxFeePerGas"),
        ("gas", Value::Null, "/gas"),
        ("input", json!("0x0"), "/input"),
        ("to", json!("0x12"), "/to"),
        ("type", json!("0x3"), "/type"),
        ("type", json!("0x4"), "/type"),
        ("type", json!("0x0"), "/gasPrice"),
        ("v", json!("0x2"), "/v"),
        ("r", json!("0x"), "/r"),
        ("accessList", json!([{"address": Address::ZERO}]), "/accessList/0/storageKeys"),
        ("accessList", json!([]), "/hash"),
        ("chainId", Value::Null, "/chainId"),
    ] {
        let mut changed = honest.clone();
        changed[member] = value;
        assert_eq!(from_json(&changed).unwrap_err().location(), at, "{changed}");
    }
    // Without the hash, the sender that follows from the signature changes instead.
    let mut changed = honest;
    changed["value"] = json!("0x1");
    changed.as_object_mut().unwrap().remove("hash");
    let sender = |envelope: &TxEnvelope| {
        use countersign_evm::alloy_consensus::transaction::SignerRecoverable as _;
        envelope.recover_signer().unwrap()
    };
    assert_ne!(sender(&from_json(&changed).unwrap()), sender(&envelope));
}

#[test]
fn other_kinds_and_malformed_bytes_are_refused() {
    let blobs = TxEip4844 { chain_id: 1, blob_versioned_hashes: vec![B256::ZERO], ..TxEip4844::default() };
    let delegation = TxEip7702 { chain_id: 1, ..TxEip7702::default() };
    for envelope in [sign(blobs), sign(delegation)] {
        assert_eq!(from_json(&serde_json::to_value(&envelope).unwrap()).unwrap_err().location(), "/type");
    }
    let bytes = sign(eip1559()).encoded_2718();
    let longer = [bytes.as_slice(), &[0]].concat();
    for malformed in [&[][..], &bytes[..bytes.len() - 1], &longer, b"{}", &[0xff; 32]] {
        assert_eq!(received::from_bytes(malformed).unwrap_err().code(), Code::TransactionMismatch);
    }
}

fn said(value: &Value) -> (String, String) {
    let refusal = from_json(value).unwrap_err();
    assert_eq!(refusal.code(), Code::TransactionMismatch, "{refusal}");
    (refusal.location().to_owned(), refusal.to_string())
}

/// A signed transaction of type 2, as alloy writes it.
pub(crate) fn signed_by_alloy() -> Value {
    serde_json::to_value(sign(eip1559())).unwrap()
}

/// The members that ethers 6.17.0 (`TransactionResponse.toJSON`) and viem 2.57.1 (`Transaction` with its bigints as text) write otherwise than
/// nodes, and what `safe-apps-provider` answers to `eth_getTransactionByHash`.
#[test]
fn objects_that_are_not_a_nodes_are_named() {
    let node = serde_json::to_value(sign(eip1559())).unwrap();
    let with = |members: &[(&str, Value)], without: &[&str]| {
        let mut changed = node.clone();
        for member in without {
            changed.as_object_mut().unwrap().remove(*member);
        }
        for (member, value) in members {
            changed[*member] = value.clone();
        }
        changed
    };
    let signature = json!({ "_type": "signature", "networkV": null, "r": node["r"], "s": node["s"], "v": 27 });
    let ethers =
        with(&[("type", json!(2)), ("gasLimit", json!("300000")), ("signature", signature)], &["r", "s", "v", "yParity", "gas", "input"]);
    let viem =
        with(&[("type", json!("eip1559")), ("nonce", json!(7)), ("gas", json!("300000")), ("v", json!("0")), ("yParity", json!(0))], &[]);
    for (sdk, at) in [
        (ethers, "/signature"),
        (viem, "/type"),
        (with(&[("gas", json!("300000"))], &[]), "/gas"),
        (with(&[("value", json!("5"))], &[]), "/value"),
    ] {
        let (location, text) = said(&sdk);
        assert!(location == at && text.contains("pass what eth_getTransactionByHash returns"), "{text}");
    }
    let safe = with(
        &[("from", json!(Address::repeat_byte(1))), ("gas", json!(0)), ("gasPrice", json!("0x00")), ("nonce", json!(0))],
        &["r", "s", "v", "yParity", "type", "chainId"],
    );
    let (location, text) = said(&safe);
    assert!(location == "/r" && text.contains("a contract wallet such as a Safe") && text.contains("find_payment"), "{text}");
    let (_, text) = said(&with(&[("type", json!("0x4"))], &[]));
    assert!(text.contains("EIP-7702") && text.contains("receipt"), "{text}");
}
