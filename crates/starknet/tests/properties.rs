//! Properties: every change of a response is refused, is shown, or has no effect on what is signed. No bytes make the library
//! panic.

use countersign_core::{Code, Role, U256};
use countersign_starknet::{ExternalSignature, Felt, InvokeTransaction, Key, Starknet, felt};
use countersign_testkit::properties::{
    account_for, at, every_member_is_needed_or_without_effect, every_scalar_is_accounted_for, is_refused_at_the_wallet, scalars,
    spans_cover, values, wallet_values,
};
use countersign_testkit::{Case, attach, fixture, outcome, verified, wallet};
use proptest::prelude::*;
use serde_json::{Value as Json, json};

const EVERY_KIND: [&str; 12] = [
    "starknet-approval-unlimited",
    "starknet-older-shape",
    "starknet-delegate",
    "starknet-message-hex",
    "starknet-record-testnets",
    "starknet-amount-near-u256",
    "starknet-2025-02",
    "starknet-2025-11",
    "starknet-client-3-1-3",
    "starknet-client-3-1-3-delegate",
    "starknet-2025-11-destination-data",
    "starknet-client-3-1-3-destination-data",
];

#[test]
fn every_bit_of_every_felt_is_accounted_for() {
    let mut faults = Vec::new();
    for id in EVERY_KIND {
        let case = fixture::<Starknet>(id);
        let base = outcome::<Starknet>(&case).expect(id);
        let line = case.json();
        for pointer in scalars(&line, "/response/result") {
            let Some(digits) = line.pointer(&pointer).and_then(Json::as_str).and_then(|text| text.strip_prefix("0x")) else { continue };
            let felt = U256::from_str_radix(digits, 16).expect("hex");
            for bit in 0..256 {
                let mut changed = line.clone();
                *at(&mut changed, &pointer) = json!(format!("{:#x}", felt ^ (U256::ONE << bit)));
                faults.extend(account_for::<Starknet>(&case, &base, &changed, &format!("{id} {pointer} bit {bit}")).err());
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn every_scalar_of_a_response_is_accounted_for() {
    every_scalar_is_accounted_for::<Starknet>(&EVERY_KIND);
}

#[test]
fn every_member_of_a_response_is_needed_or_without_effect() {
    every_member_is_needed_or_without_effect::<Starknet>(&EVERY_KIND);
}

#[test]
fn coverage_spans_every_byte_and_every_scalar() {
    let members = ["approval_transaction", "initiate_transaction", "transaction", "typed_data", "order_id"];
    spans_cover::<Starknet>(&members, |_, _| None);
}

/// Terms that an honest service could respond with.
#[derive(Debug, Clone)]
struct Terms {
    amount: U256,
    timelock: u64,
    secret_hash: [u8; 32],
    unlimited: bool,
    delegate: bool,
}

fn terms() -> impl Strategy<Value = Terms> {
    let amount = prop_oneof![any::<u64>().prop_map(U256::from), any::<[u8; 32]>().prop_map(U256::from_be_bytes)];
    (amount, 1..=14_400_u64, any::<[u8; 32]>(), any::<bool>(), any::<bool>()).prop_map(
        |(amount, timelock, secret_hash, unlimited, delegate)| Terms {
            amount: amount.max(U256::ONE),
            timelock,
            secret_hash,
            unlimited,
            delegate,
        },
    )
}

/// An honest response to a request for these terms, and the felts of its calls.
fn honest(terms: &Terms) -> (Case, Vec<String>) {
    let case = fixture::<Starknet>(if terms.delegate { "starknet-delegate" } else { "starknet-approval-unlimited" });
    let mut line = case.json();
    let hex = |number: U256| format!("{number:#x}");
    let halves = |amount: U256| [amount & U256::from(u128::MAX), amount >> 128].map(hex);
    let words: Vec<_> = terms.secret_hash.chunks(4).map(|word| u32::from_be_bytes(word.try_into().expect("four bytes"))).collect();
    line["request"]["source"]["amount"] = json!(terms.amount.to_string());
    let digits: String = words.iter().map(|word| format!("{word:08x}")).collect();
    line["request"]["secret_hash"] = json!(digits);

    let result = &mut line["response"]["result"];
    let [low, high] = halves(terms.amount);
    let mut arguments: Vec<_> = [hex(U256::from(terms.timelock)), low.clone(), high.clone()].into();
    arguments.extend(words.iter().map(|word| format!("{word:#x}")));
    let calldata = result["initiate_transaction"]["calldata"].as_array_mut().expect("calldata");
    for (felt, argument) in calldata.iter_mut().rev().zip(arguments.iter().rev()) {
        *felt = json!(argument);
    }
    let [approved_low, approved_high] = halves(if terms.unlimited { U256::MAX } else { terms.amount });
    result["approval_transaction"]["calldata"][1] = json!(approved_low);
    result["approval_transaction"]["calldata"][2] = json!(approved_high);
    if !terms.delegate {
        let message = &mut result["typed_data"]["message"];
        message["timelock"] = json!(terms.timelock);
        message["amount"] = json!({ "low": low, "high": high });
        message["secretHash"] = json!(words);
    }
    let felts = ["approval_transaction", "initiate_transaction"].map(|name| {
        let call = &result[name];
        let felts = call["calldata"].as_array().expect("calldata").clone();
        [vec![call["to"].clone(), call["selector"].clone(), json!(format!("{:#x}", felts.len()))], felts].concat()
    });
    let felts = felts.concat().iter().map(|felt| felt.as_str().expect("a felt").to_owned()).collect();
    (case.with_input(line.to_string()), felts)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn honest_terms_come_out_as_they_went_in(terms in terms()) {
        let (case, felts) = honest(&terms);
        let order = verified::<Starknet>(&case);
        let unsigned = order.prepare(wallet::<Starknet>(&case)).map_err(|refusal| TestCaseError::fail(refusal.to_string()))?;
        let payloads = unsigned.payloads();
        let transaction = &payloads.invoke.as_ref().expect("both paths").invoke.transaction;
        let signed = transaction.clone().with_signature(vec![Felt::ONE, Felt::TWO]);
        prop_assert_eq!(order.matches(&signed), Ok(Role::Initiate));
        let (calldata, gasless) = (&transaction.calldata, payloads.message.is_some());
        let shown: Vec<_> = calldata.iter().map(|felt| format!("{felt:#x}")).collect();
        prop_assert_eq!(&shown[..1], &["0x2".to_owned()]);
        let stripped: Vec<_> = felts.iter().map(|felt| format!("{:#x}", felt::parse(felt).expect("a felt"))).collect();
        prop_assert_eq!(&shown[1..], &stripped[..]);
        prop_assert_eq!(gasless, !terms.delegate);
    }

    #[test]
    fn a_changed_felt_of_honest_calldata_is_accounted_for(terms in terms(), at in any::<prop::sample::Index>(), other in any::<[u8; 32]>()) {
        let (case, _) = honest(&terms);
        let base = outcome::<Starknet>(&case).expect("honest");
        let mut line = case.json();
        let calldata = line["response"]["result"]["initiate_transaction"]["calldata"].as_array_mut().expect("calldata");
        let at = at.index(calldata.len());
        calldata[at] = json!(format!("{:#x}", U256::from_be_bytes(other) >> 5));
        prop_assert_eq!(account_for::<Starknet>(&case, &base, &line, &format!("felt {at}")), Ok(()));
    }

    #[test]
    fn felts_read_back(bytes in any::<[u8; 32]>(), zeros in 0..64_usize) {
        let number = U256::from_be_bytes(bytes) >> 4;
        let text = format!("0x{}{number:x}", "0".repeat(zeros));
        match felt::parse(&text) {
            Ok(felt) => prop_assert_eq!(U256::from_be_bytes(felt.to_bytes_be()), number),
            Err(error) if error.code() == Code::NumberTooLarge => prop_assert!(text.len() > 66),
            Err(error) => {
                prop_assert_eq!(error.code(), Code::FeltOutOfRange);
                prop_assert!(number > U256::from_be_bytes(Felt::MAX.to_bytes_be()));
            }
        }
        prop_assert_eq!(felt::from_number(number).is_ok(), number <= U256::from_be_bytes(Felt::MAX.to_bytes_be()));
    }

    #[test]
    fn no_text_makes_a_felt_or_a_key_panic(text in prop_oneof![any::<String>(), "0x.{0,70}", "0x[0-9a-fA-F]{0,70}"]) {
        let _ = (felt::parse(&text), felt::from_short_string(&text), Key::parse(&text).is_ok());
        let _ = (text.parse::<ExternalSignature>(), InvokeTransaction::from_json(text.as_bytes()));
    }

    #[test]
    fn no_signature_makes_the_library_panic(value in values(), named in any::<bool>()) {
        let case = fixture::<Starknet>("starknet-public-key");
        let mut unsigned = verified::<Starknet>(&case).prepare(wallet::<Starknet>(&case)).expect("an order");
        let name = if named { "invoke" } else { "typed_data" };
        let _ = attach(&mut unsigned, &json!({ name: value }));
    }

    #[test]
    fn no_typed_data_makes_the_library_panic(place in any::<prop::sample::Index>(), value in values()) {
        let case = fixture::<Starknet>("starknet-approval-unlimited");
        let base = outcome::<Starknet>(&case).expect("honest");
        let mut line = case.json();
        let pointers = scalars(&line, "/response");
        let pointer = place.get(&pointers);
        *at(&mut line, pointer) = value;
        prop_assert_eq!(account_for::<Starknet>(&case, &base, &line, pointer), Ok(()));
    }

    #[test]
    fn no_wallet_makes_the_library_panic(member in 0..10_usize, value in wallet_values()) {
        const MEMBERS: [&str; 10] = [
            "nonce", "chain_id", "resource_bounds", "tip", "public_key", "cairo_version", "paymaster_data", "account_deployment_data",
            "nonce_data_availability_mode", "fee_data_availability_mode",
        ];
        is_refused_at_the_wallet::<Starknet>("starknet-approval-exact", MEMBERS[member], value)?;
    }
}
