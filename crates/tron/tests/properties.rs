//! Properties: every change of a response is refused, is shown, or has no effect on what is signed. No bytes make the library
//! panic.

use alloy_primitives::{B256, Bytes, U256, hex};
use countersign_core::json::{self, Cursor};
use countersign_core::{Policy, Role};
use countersign_testkit::properties::{
    Payloads, account_for, every_member_is_needed_or_without_effect, every_scalar_is_accounted_for, is_refused_at_the_wallet, spans_cover,
    values, wallet_values,
};
use countersign_testkit::{Case, fixture, outcome, with_unsigned};
use countersign_tron::htlc::{Approve, Initiate};
use countersign_tron::transaction::protocol::{Raw, TriggerSmartContract};
use countersign_tron::{Address, Tron, message};
use proptest::prelude::*;
use prost::Message as _;
use serde_json::{Value as Json, json};

const PAYLOADS: Payloads = Payloads {
    pointers: &["/response/result/approval_transaction/data", "/response/result/initiate_transaction/data"],
    read: |text| text.as_str().map(|text| hex::decode(text).expect("hex")),
    spell: |bytes| json!(hex::encode_prefixed(bytes)),
};

const EVERY_KIND: [&str; 5] =
    ["tron-token-approval-unlimited", "tron-destination-data-longer", "tron-native-typed-data", "tron-record-testnets", "tron-without-key"];

#[test]
fn every_byte_of_calldata_is_accounted_for() {
    PAYLOADS.every_byte_is_accounted_for::<Tron>(&EVERY_KIND);
}

#[test]
fn every_scalar_of_a_response_is_accounted_for() {
    every_scalar_is_accounted_for::<Tron>(&EVERY_KIND);
}

#[test]
fn every_member_of_a_response_is_needed_or_without_effect() {
    every_member_is_needed_or_without_effect::<Tron>(&EVERY_KIND);
}

#[test]
fn spans_cover_every_byte_and_every_scalar() {
    spans_cover::<Tron>(&["approval_transaction", "initiate_transaction", "typed_data", "order_id"], |pointer, scalar| {
        let data = PAYLOADS.pointers.contains(&pointer);
        data.then(|| (PAYLOADS.read)(scalar).expect("calldata").len())
    });
}

/// Terms that an honest service could respond with.
#[derive(Debug, Clone)]
struct Terms {
    amount: U256,
    timelock: u64,
    secret_hash: B256,
    data: Vec<u8>,
    fee_limit: u64,
    unlimited: bool,
}

fn terms() -> impl Strategy<Value = Terms> {
    let amount = prop_oneof![any::<u64>().prop_map(U256::from), any::<[u8; 32]>().prop_map(U256::from_be_bytes)];
    let amount = amount.prop_map(|amount| amount.max(U256::ONE));
    let data = proptest::collection::vec(any::<u8>(), 0..=1024);
    (amount, 1..=172_800_u64, any::<[u8; 32]>(), data, 1..=15_000_000_000_u64, any::<bool>()).prop_map(
        |(amount, timelock, secret_hash, data, fee_limit, unlimited)| Terms {
            amount,
            timelock,
            secret_hash: secret_hash.into(),
            data,
            fee_limit,
            unlimited,
        },
    )
}

fn address(value: &Json) -> Address {
    Address::parse_any(value.as_str().expect("an address")).expect("an address")
}

/// An honest response to a request for these terms.
fn honest(terms: &Terms) -> (Case, Initiate) {
    let case = fixture::<Tron>("tron-token-approval-unlimited");
    let mut line = case.json();
    let result = line["response"]["result"].clone();
    let call = Initiate {
        initiator: None,
        redeemer: address(&result["typed_data"]["message"]["redeemer"]).bytes(),
        timelock: U256::from(terms.timelock),
        amount: terms.amount,
        secret_hash: terms.secret_hash,
        destination_data: Some(Bytes::copy_from_slice(&terms.data)),
    };
    let htlc = address(&result["initiate_transaction"]["to"]).bytes();
    let approve = Approve { spender: htlc, amount: if terms.unlimited { U256::MAX } else { terms.amount } };
    line["request"]["source"]["amount"] = json!(terms.amount.to_string());
    line["request"]["secret_hash"] = json!(terms.secret_hash.to_string());
    let result = &mut line["response"]["result"];
    result["approval_transaction"]["data"] = json!(hex::encode_prefixed(approve.encode()));
    result["initiate_transaction"]["data"] = json!(hex::encode_prefixed(call.encode()));
    result["initiate_transaction"]["gas_limit"] = json!(terms.fee_limit.to_string());
    let message = &mut result["typed_data"]["message"];
    message["timelock"] = json!(terms.timelock);
    message["amount"] = json!(format!("{:#x}", terms.amount));
    message["secretHash"] = json!(terms.secret_hash.to_string());
    message["destinationData"] = json!(hex::encode_prefixed(&terms.data));
    let input = line.to_string();
    (case.with_input(input), call)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn honest_terms_come_out_as_they_went_in(terms in terms()) {
        let (case, call) = honest(&terms);
        let (raw, hashes) = with_unsigned::<Tron, _>(&case, &Policy::default(), |unsigned, _| {
            let payloads = unsigned.payloads();
            let raw_data = payloads.call(Role::Initiate).map(|call| call.transaction.raw_data.clone());
            Ok((raw_data.expect("a call"), payloads.message.as_ref().map(|message| message.hashes)))
        }).map_err(|refusal| TestCaseError::fail(refusal.to_string()))?;
        let raw = Raw::decode(raw.as_slice()).expect("a transaction");
        let parameter = raw.contract[0].parameter.as_ref().expect("a call");
        let trigger = TriggerSmartContract::decode(parameter.value.as_slice()).expect("a call");
        prop_assert_eq!(trigger.data, call.encode());
        prop_assert_eq!(u64::try_from(raw.fee_limit), Ok(terms.fee_limit));
        prop_assert_eq!(trigger.call_value, 0);
        prop_assert!(hashes.is_some());
    }

    #[test]
    fn a_changed_byte_of_honest_calldata_is_accounted_for(terms in terms(), at in any::<prop::sample::Index>(), flip in 1..=u8::MAX) {
        let (case, call) = honest(&terms);
        let base = outcome::<Tron>(&case).expect("honest");
        let mut data = call.encode();
        let at = at.index(data.len());
        data[at] ^= flip;
        let mut line = case.json();
        line["response"]["result"]["initiate_transaction"]["data"] = json!(hex::encode_prefixed(data));
        prop_assert_eq!(account_for::<Tron>(&case, &base, &line, &format!("byte {at}")), Ok(()));
    }

    #[test]
    fn addresses_read_back(bytes in any::<[u8; 20]>()) {
        let address = Address::from(bytes);
        let digits = hex::encode(address.prefixed());
        for form in [address.to_string(), digits.clone(), format!("0x{digits}"), address.bytes().to_string(), format!("{:#x}", address.bytes())] {
            prop_assert_eq!(Address::parse_any(&form), Ok(address));
        }
        prop_assert_eq!(Address::parse(&address.to_string()), Ok(address));
    }

    #[test]
    fn a_changed_character_of_an_address_is_no_address(bytes in any::<[u8; 20]>(), at in 0..34_usize, other in "[1-9A-HJ-NP-Za-km-z]") {
        let text = Address::from(bytes).to_string();
        let mut changed = text.clone();
        changed.replace_range(at..=at, &other);
        prop_assert!(changed == text || Address::parse_any(&changed).is_err());
    }

    #[test]
    fn no_text_makes_an_address_panic(text in any::<String>()) {
        prop_assert!(Address::parse_any(&text).is_err() || text.len() >= 34);
    }

    #[test]
    fn no_typed_data_makes_the_hasher_panic(kind in "(address|bool|string|bytes|trcToken|M|u?int[0-9]{0,3}|bytes[0-9]{0,2})(\\[[0-9]?\\]){0,3}", value in values()) {
        let typed_data = json!({ "types": { "M": [{ "name": "x", "type": kind }] }, "domain": {}, "primaryType": "M", "message": { "x": value } });
        let text = typed_data.to_string();
        let value = json::parse(text.as_bytes()).expect("JSON");
        let _ = message::hash(Cursor::root(&value, ""));
    }

    #[test]
    fn no_wallet_makes_the_library_panic(member in 0..4_usize, value in wallet_values()) {
        let member = ["ref_block_bytes", "ref_block_hash", "expiration", "timestamp"][member];
        is_refused_at_the_wallet::<Tron>("tron-token-approval-exact", member, value)?;
    }
}
