//! The public API: thread safety, and the re-exported native types.

use countersign_starknet::{
    ExternalSignature, Felt, Invoke, InvokeTransaction, Key, KeyedPath, Payload, SignedOrder, TxContext, UnsignedOrder, VerifiedOrder,
    starknet_types_core,
};

const fn crosses_threads<T: Send + Sync>() {}

#[test]
fn states_and_keys_cross_threads() {
    crosses_threads::<VerifiedOrder>();
    crosses_threads::<UnsignedOrder>();
    crosses_threads::<SignedOrder>();
    crosses_threads::<(Felt, Invoke, InvokeTransaction, Payload, Key, ExternalSignature, TxContext, KeyedPath)>();
}

#[test]
fn felts_are_those_of_starknet_rs() {
    assert_eq!(Felt::ONE, starknet_types_core::felt::Felt::ONE);
    assert_eq!(starknet_crypto::get_public_key(&Felt::ONE), Key::parse("0x1").expect("a key").public_key());
}
