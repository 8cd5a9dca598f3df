//! The public API: thread safety, and the re-exported native types.

use countersign_sui::{Coin, ExternalSignature, Key, SignedOrder, SignedPayloads, TxContext, Unsigned, UnsignedOrder, VerifiedOrder};

const fn crosses_threads<T: Send + Sync>() {}

#[test]
fn states_and_keys_cross_threads() {
    crosses_threads::<VerifiedOrder>();
    crosses_threads::<UnsignedOrder>();
    crosses_threads::<SignedOrder>();
    crosses_threads::<(Key, TxContext, Coin, Unsigned, SignedPayloads, ExternalSignature)>();
}

#[test]
fn native_types_come_with_the_crate() {
    let address = countersign_sui::sui_sdk_types::Address::new([1; 32]);
    assert_eq!(countersign_sui::address::from_account(&countersign_sui::address::to_account(address)), Some(address));
}
