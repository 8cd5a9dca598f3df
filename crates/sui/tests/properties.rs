//! Properties: every change of a response is refused, is shown, or has no effect on what is signed. No bytes make the library
//! panic.

use countersign_core::{Code, Policy, U256};
use countersign_sui::Sui;
use countersign_sui::htlc::Initiate;
use countersign_sui::sui_sdk_types::{Argument, Command, Input, ProgrammableTransaction, TransactionKind};
use countersign_testkit::properties::{Payloads, account_for, every_scalar_is_accounted_for};
use countersign_testkit::{Case, fixture, outcome, with_verified};
use proptest::prelude::*;
use serde_json::{Value as Json, json};

const PTB: &str = "/response/result/ptb_bytes";

const EVERY_KIND: [&str; 5] =
    ["sui-native", "sui-nested-two-amounts", "sui-inputs-reversed", "sui-destination-data-128", "sui-secret-hash-not-requested"];

fn bytes_of(case: &Case) -> Vec<u8> {
    serde_json::from_value(case.json().pointer(PTB).expect("bytes").clone()).expect("bytes")
}

fn with_bytes(case: &Case, bytes: &[u8]) -> Json {
    let mut line = case.json();
    *line.pointer_mut(PTB).expect("bytes") = json!(bytes);
    line
}

#[test]
fn every_byte_of_the_payload_is_accounted_for() {
    let payloads = Payloads {
        pointers: &[PTB],
        read: |bytes| Some(serde_json::from_value(bytes.clone()).expect("bytes")),
        spell: |bytes| json!(bytes),
    };
    payloads.every_byte_is_accounted_for::<Sui>(&EVERY_KIND);
}

#[test]
fn a_changed_byte_that_the_terms_fix_is_refused() {
    let case = fixture::<Sui>("sui-native");
    let bytes = bytes_of(&case);
    let accepted: Vec<_> = (0..bytes.len())
        .filter(|index| {
            let mut bytes = bytes.clone();
            bytes[*index] ^= 0x01;
            outcome::<Sui>(&case.with_input(with_bytes(&case, &bytes).to_string())).is_ok()
        })
        .collect();
    // The 32 bytes of the timelock follow the head, the amount, the registry, two addresses, the hash, a tag and a length.
    // The service may choose a timelock within the policy's range, which is its four low bytes, and it is shown. Everything else is
    // fixed by the request and the registry.
    let timelock = 2 + 10 + 43 + 34 + 34 + 35 + 2;
    assert_eq!(accepted, [timelock, timelock + 1, timelock + 2, timelock + 3]);
}

#[test]
fn every_scalar_of_a_response_and_record_is_accounted_for() {
    every_scalar_is_accounted_for::<Sui>(&["sui-native", "sui-record-bitcoin", "sui-record-mainnet"]);
}

fn programmable(case: &Case) -> ProgrammableTransaction {
    match bcs::from_bytes(&bytes_of(case)).expect("a kind") {
        TransactionKind::ProgrammableTransaction(transaction) => transaction,
        other => panic!("{other:?}"),
    }
}

fn arguments(transaction: &mut ProgrammableTransaction) -> Vec<&mut Argument> {
    let mut all = Vec::new();
    for command in &mut transaction.commands {
        match command {
            Command::SplitCoins(split) => {
                all.push(&mut split.coin);
                all.extend(&mut split.amounts);
            }
            Command::MoveCall(call) => all.extend(&mut call.arguments),
            _ => {}
        }
    }
    all
}

/// With the inputs in another order, and the arguments adapted, the deposit is the same. The artefacts differ, the terms do not.
fn permuted(case: &Case, order: &[usize]) -> Json {
    let mut transaction = programmable(case);
    transaction.inputs = order.iter().map(|index| transaction.inputs[*index].clone()).collect();
    for argument in arguments(&mut transaction) {
        if let Argument::Input(index) = argument {
            *index = u16::try_from(order.iter().position(|old| old == &usize::from(*index)).expect("an input")).expect("few inputs");
        }
    }
    with_bytes(case, &bcs::to_bytes(&TransactionKind::ProgrammableTransaction(transaction)).expect("encodes"))
}

fn terms_of(line: &str, case: &Case) -> Initiate {
    with_verified::<Sui, _>(line.as_bytes(), case.registry, &Policy::default(), |verified, _| Ok(verified.deposit().terms.clone()))
        .expect("honest")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_order_of_inputs_is_the_same_deposit(order in Just((0..9_usize).collect::<Vec<_>>()).prop_shuffle()) {
        let case = fixture::<Sui>("sui-nested-two-amounts");
        let changed = permuted(&case, &order);
        prop_assert_eq!(terms_of(&changed.to_string(), &case), terms_of(&case.input, &case));
        prop_assert_eq!(outcome::<Sui>(&case.with_input(changed.to_string())).expect("honest")["warnings"].clone(), outcome::<Sui>(&case).expect("honest")["warnings"].clone());
    }

    #[test]
    fn honest_terms_come_out_as_they_went_in(
        amount in 1..u64::MAX,
        timelock in 1..=604_800_000_u64,
        secret_hash in any::<[u8; 32]>(),
        data in proptest::collection::vec(any::<u8>(), 0..=1024),
    ) {
        let case = fixture::<Sui>("sui-native");
        let mut transaction = programmable(&case);
        let vector = |bytes: &[u8]| bcs::to_bytes(bytes).expect("encodes");
        transaction.inputs[0] = Input::Pure(amount.to_le_bytes().to_vec());
        transaction.inputs[4] = Input::Pure(vector(&secret_hash));
        transaction.inputs[5] = Input::Pure(U256::from(timelock).to_le_bytes::<32>().to_vec());
        transaction.inputs[6] = Input::Pure(vector(&data));
        let mut line = with_bytes(&case, &bcs::to_bytes(&TransactionKind::ProgrammableTransaction(transaction)).expect("encodes"));
        line["request"]["source"]["amount"] = json!(amount.to_string());
        line["request"]["secret_hash"] = json!(secret_hash.iter().map(|byte| format!("{byte:02x}")).collect::<String>());
        let terms = terms_of(&line.to_string(), &case);
        prop_assert_eq!((terms.amount, terms.timelock, terms.secret_hash), (amount, U256::from(timelock), secret_hash));
        prop_assert_eq!(&terms.destination_data, &data);
    }

    #[test]
    fn any_argument_in_place_of_another_is_refused_or_the_same_deposit(
        place in 0..11_usize,
        argument in prop_oneof![
            Just(Argument::Gas),
            (0..12_u16).prop_map(Argument::Input),
            (0..3_u16).prop_map(Argument::Result),
            (0..3_u16, 0..3_u16).prop_map(|(index, part)| Argument::NestedResult(index, part)),
        ],
    ) {
        let case = fixture::<Sui>("sui-two-amounts");
        let mut transaction = programmable(&case);
        *arguments(&mut transaction)[place] = argument;
        let line = with_bytes(&case, &bcs::to_bytes(&TransactionKind::ProgrammableTransaction(transaction)).expect("encodes"));
        let base = outcome::<Sui>(&case).expect("honest");
        prop_assert_eq!(account_for::<Sui>(&case, &base, &line, "argument"), Ok(()));
        if let Ok(got) = outcome::<Sui>(&case.with_input(line.to_string())) {
            prop_assert_eq!(terms_of(&line.to_string(), &case), terms_of(&case.input, &case), "{}", got);
        }
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
        let case = fixture::<Sui>("sui-native");
        prop_assert!(outcome::<Sui>(&case.with_input(with_bytes(&case, &bytes).to_string())).is_err());
        prop_assert!(outcome::<Sui>(&case.with_input(with_bytes(&case, &[&[0][..], &bytes].concat()).to_string())).is_err());
    }

    #[test]
    fn bytes_overwritten_anywhere_never_panic(at in 0..369_usize, bytes in proptest::collection::vec(any::<u8>(), 1..12)) {
        let case = fixture::<Sui>("sui-native");
        let base = outcome::<Sui>(&case).expect("honest");
        let mut changed = bytes_of(&case);
        changed.splice(at..changed.len().min(at + bytes.len()), bytes);
        prop_assert_eq!(account_for::<Sui>(&case, &base, &with_bytes(&case, &changed), "overwritten"), Ok(()));
    }

    #[test]
    fn arbitrary_members_never_panic(value in "\\PC{0,40}", number in any::<i64>()) {
        let case = fixture::<Sui>("sui-native");
        for pointer in [PTB, "/response/result/order_id", "/wallet/gas_payment", "/wallet/gas_payment/0/digest", "/wallet/gas_price", "/wallet/secret_key"] {
            for other in [json!(value), json!(number), json!([value]), json!({ "x": number }), json!([number])] {
                let mut line = case.json();
                *line.pointer_mut(pointer).expect(pointer) = other;
                let code = outcome::<Sui>(&case.with_input(line.to_string())).map_or_else(|refusal| refusal.code(), |_| Code::JsonSyntax);
                prop_assert_ne!(code, Code::Internal);
            }
        }
    }
}

#[test]
fn deep_and_wide_payloads_are_refused_quickly() {
    let case = fixture::<Sui>("sui-native");
    let head = [vec![0, 0, 1, 0], vec![7; 32], vec![1, b'm', 1, b'f', 1]].concat();
    // A type argument of vectors in vectors, a length beyond the bytes, and the longest payload of zeros.
    let deep = [head.clone(), vec![6; 100_000]].concat();
    let long = [head, vec![0xff, 0xff, 0xff, 0xff, 0x07]].concat();
    for bytes in [deep, long, vec![0; 128 * 1024], vec![0; 128 * 1024 + 1], vec![0xff; 4096]] {
        let refusal = outcome::<Sui>(&case.with_input(with_bytes(&case, &bytes).to_string())).expect_err("no deposit");
        assert!(matches!(refusal.code(), Code::KindMalformed | Code::KindNotProgrammable), "{refusal}");
    }
}
