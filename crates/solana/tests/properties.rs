//! Properties: every change of a response is refused, is shown, or has no effect on what is signed. No bytes make the library
//! panic.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use countersign_solana::Solana;
use countersign_testkit::properties::{
    Payloads, account_for, at, every_scalar_is_accounted_for, is_refused_at_the_wallet, spans_cover, wallet_values,
};
use countersign_testkit::{Case, fixture, outcome};
use proptest::prelude::*;
use serde_json::{Value as Json, json};

const POINTERS: [&str; 2] = ["/response/result/versioned_tx", "/response/result/versioned_tx_gasless"];

const PAYLOADS: Payloads = Payloads {
    pointers: &POINTERS,
    read: |text| text.as_str().map(|text| STANDARD.decode(text).expect("base64")),
    spell: |bytes| json!(STANDARD.encode(bytes)),
};

const EVERY_KIND: [&str; 10] = [
    "solana-native-legacy",
    "solana-native-v0-blockhash-replaced",
    "solana-token-v0-sponsor-signed",
    "solana-token-destination-data",
    "solana-token-legacy",
    "solana-record-testnet",
    "solana-audited-native-gasless",
    "solana-audited-native-legacy",
    "solana-audited-token-v0-sponsor-signed",
    "solana-audited-token-record",
];

const VERSION_1: [&str; 3] = ["solana-v1-native-heap", "solana-v1-native-fee-zero", "solana-v1-token-sponsor-signed"];

fn payload(line: &Json, pointer: &str) -> Option<Vec<u8>> {
    line.pointer(pointer).and_then(PAYLOADS.read)
}

#[test]
fn every_byte_of_a_transaction_is_accounted_for() {
    PAYLOADS.every_byte_is_accounted_for::<Solana>(&EVERY_KIND);
}

#[test]
fn every_byte_of_a_transaction_of_version_1_is_accounted_for() {
    PAYLOADS.every_byte_is_accounted_for::<Solana>(&VERSION_1);
}

/// Accepted flips are those in the blockhash, the owner's slot, and a sponsor that has not signed. Without a second transaction, a flip
/// in the timelock is accepted too if the policy allows the result, except in the audited generation, where the timelock is a seed.
#[test]
fn only_blockhash_owners_slot_sponsor_and_timelock_are_free() {
    for id in EVERY_KIND {
        let case = fixture::<Solana>(id);
        for (pointer, slots, owner) in [(POINTERS[0], 1, 0), (POINTERS[1], 2, 1)] {
            let mut line = case.json();
            let Some(bytes) = payload(&line, pointer) else { continue };
            let own = 1 + 64 * owner..65 + 64 * owner;
            let message = 1 + 64 * slots;
            let keys = message + usize::from(bytes[message] == 0x80) + 3;
            let hash = keys + 1 + 32 * usize::from(bytes[keys]);
            for index in 0..bytes.len() {
                let mut changed = bytes.clone();
                changed[index] ^= 0x10;
                *at(&mut line, pointer) = json!(STANDARD.encode(changed));
                // If the sponsor has signed, its signature covers all of this too.
                let sponsored = slots == 2 && bytes[1..65] != [0; 64];
                // The native program's data follow the hash, two counts, four indexes and the data's own count.
                let data = hash + 32 + 7;
                if id.starts_with("solana-native") && (data + 16..data + 24).contains(&index) {
                    continue;
                }
                let shown = (hash..hash + 32).contains(&index) || (slots == 2 && (keys + 1..keys + 33).contains(&index));
                let free = own.contains(&index) || (!sponsored && shown);
                assert_eq!(outcome::<Solana>(&case.with_input(line.to_string())).is_ok(), free, "{id} {pointer} byte {index}");
            }
        }
    }
}

#[test]
fn every_scalar_of_a_response_is_accounted_for() {
    every_scalar_is_accounted_for::<Solana>(&EVERY_KIND);
}

#[test]
fn spans_cover_every_byte() {
    spans_cover::<Solana>(&["versioned_tx", "versioned_tx_gasless", "order_id"], |pointer, scalar| {
        let text = scalar.as_str().filter(|_| POINTERS.contains(&pointer))?;
        let in_hex = text.bytes().all(|byte| byte.is_ascii_hexdigit());
        Some(if in_hex { text.len() / 2 } else { STANDARD.decode(text).expect("base64").len() })
    });
}

fn proposed(case: &Case, pointer: &str, text: &str) -> Json {
    let mut line = case.json();
    *at(&mut line, pointer) = json!(text);
    line
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_bytes_make_the_library_panic(bytes in proptest::collection::vec(any::<u8>(), 0..1400), gasless in any::<bool>()) {
        let case = fixture::<Solana>("solana-token-legacy");
        let line = proposed(&case, POINTERS[usize::from(gasless)], &STANDARD.encode(bytes));
        prop_assert!(outcome::<Solana>(&case.with_input(line.to_string())).is_err());
    }

    #[test]
    fn no_text_makes_the_library_panic(text in any::<String>()) {
        let case = fixture::<Solana>("solana-token-legacy");
        let line = proposed(&case, POINTERS[0], &text);
        let refusal = outcome::<Solana>(&case.with_input(line.to_string())).expect_err("no transaction");
        prop_assert!(refusal.location().starts_with(POINTERS[0]), "{}", refusal);
    }

    #[test]
    fn spliced_transactions_are_accounted_for(
        at in any::<prop::sample::Index>(),
        cut in 0..40_usize,
        bytes in proptest::collection::vec(any::<u8>(), 0..40),
        gasless in any::<bool>(),
    ) {
        let case = fixture::<Solana>("solana-token-v0-sponsor-signed");
        let base = outcome::<Solana>(&case).expect("honest");
        let pointer = POINTERS[usize::from(gasless)];
        let mut transaction = payload(&case.json(), pointer).expect("a payload");
        let from = at.index(transaction.len());
        let to = (from + cut).min(transaction.len());
        transaction.splice(from..to, bytes);
        let line = proposed(&case, pointer, &STANDARD.encode(transaction));
        prop_assert_eq!(account_for::<Solana>(&case, &base, &line, "spliced"), Ok(()));
    }

    #[test]
    fn no_wallet_makes_the_library_panic(
        member in 0..3_usize,
        value in prop_oneof![any::<String>().prop_map(Json::from), any::<i64>().prop_map(Json::from), wallet_values()],
    ) {
        let member = ["recent_blockhash", "last_valid_block_height", "block_height"][member];
        is_refused_at_the_wallet::<Solana>("solana-native-heights", member, value)?;
    }
}
