//! The public API: thread safety, secrets in printed text, and the parsing of keys.

use countersign_bitcoin::recover::{Body, Fee, FeeCoins, Funding, FundingStatus, InstantRefund, Payout, RecordedHtlc};
use countersign_bitcoin::{
    ChangeRule, Deposit, Destination, ExternalSignature, FeeRate, Key, KeyOrigin, Payload, Payment, SignedOrder, SignedPayment, TxContext,
    Unsigned, UnsignedOrder, Utxo, VerifiedOrder,
};
use countersign_core::Code;

#[test]
fn every_public_type_crosses_threads() {
    const fn crosses<T: Send + Sync>() {}
    crosses::<(VerifiedOrder, UnsignedOrder, SignedOrder)>();
    crosses::<(Deposit, Unsigned, Payment, SignedPayment, Payload)>();
    crosses::<(TxContext, Utxo, FeeRate, KeyOrigin, ChangeRule, Destination)>();
    crosses::<(Key, ExternalSignature)>();
    crosses::<(RecordedHtlc, Payout, Fee, FeeCoins, Funding, FundingStatus, InstantRefund, Body)>();
}

#[test]
fn keys_are_parsed_strictly_and_never_printed() {
    let key: Key = "0000000000000000000000000000000000000000000000000000000000000001".parse().expect("a key");
    assert_eq!(format!("{key:?} {key:#?}"), "Key(..) Key(..)");
    // The generator's x coordinate, and the WIF of the same key: SEC 2 and the Bitcoin wiki.
    let generator = "79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798";
    assert_eq!(key.x_only().to_string(), generator);
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
        assert_eq!(Key::parse(text).map(|_| ()).expect_err(text).code(), Code::KeyMalformed, "{text:?}");
    }
    let text = "0000000000000000000000000000000000000000000000000000000000000001 ";
    assert!(Key::parse(&text.repeat(2_000)).is_ok());
    assert!(Key::parse(&text.repeat(2_001)).is_err());
}
