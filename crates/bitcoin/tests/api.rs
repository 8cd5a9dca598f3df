//! The public surface: what crosses threads, and what is never printed.

#![allow(
    clippy::arithmetic_side_effects,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a panic in a test is a failed test"
)]

use countersign_bitcoin::recover::{Body, Funded, Funding, InstantRefund, Swap};
use countersign_bitcoin::transaction::Payment;
use countersign_bitcoin::{Artefacts, Bitcoin, Deposit, FeeRate, Key, Signature, Signed, Unsigned, Utxo, Wallet};
use countersign_core::{Code, Verified};

#[test]
fn every_public_type_crosses_threads() {
    const fn crosses<T: Send + Sync>() {}
    crosses::<Verified<Bitcoin>>();
    crosses::<Deposit>();
    crosses::<Wallet>();
    crosses::<Utxo>();
    crosses::<FeeRate>();
    crosses::<Payment>();
    crosses::<Unsigned>();
    crosses::<Signature>();
    crosses::<Signed>();
    crosses::<Artefacts>();
    crosses::<Key>();
    crosses::<Swap>();
    crosses::<Funding>();
    crosses::<Funded>();
    crosses::<InstantRefund>();
    crosses::<Body>();
}

#[test]
fn keys_are_read_strictly_and_never_printed() {
    let key = Key::parse("0000000000000000000000000000000000000000000000000000000000000001").expect("a key");
    assert_eq!(format!("{key:?} {key:#?}"), "Key(..) Key(..)");
    // The generator's x coordinate, and the WIF of the same key: SEC 2 and the Bitcoin wiki.
    let generator = "79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798";
    assert_eq!(key.x_only().map(hex::encode).as_deref(), Some(generator));
    let wif = Key::parse("KwDiBf89QgGbjEhKnhXJuH7LrciVrZi3qYjgd9M7rFU73sVHnoWn").expect("WIF");
    assert_eq!(wif.x_only(), key.x_only());
    for text in [
        "",
        " ",
        "1",
        "0000000000000000000000000000000000000000000000000000000000000000",
        "fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141",
        // Uncompressed, and a wrong checksum.
        "5HpHagT65TZzG1PH3CSu63k8DbpvD8s5ip4nEB3kEsreAnchuDf",
        "KwDiBf89QgGbjEhKnhXJuH7LrciVrZi3qYjgd9M7rFU73sVHnoWm",
    ] {
        assert_eq!(Key::parse(text).err(), Some(Code::KeyMalformed), "{text:?}");
    }
}
