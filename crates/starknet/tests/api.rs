//! The public surface: states cross threads, and native types come with the crate.

use countersign_core::{Proposed, Signed, Unsigned, Verified};
use countersign_starknet::{Felt, Invoke, Key, Signature, Starknet, Wallet, starknet_crypto};

const fn crosses_threads<T: Send + Sync>() {}

#[test]
fn states_and_keys_cross_threads() {
    crosses_threads::<Proposed<'_, Starknet>>();
    crosses_threads::<Verified<Starknet>>();
    crosses_threads::<Unsigned<Starknet>>();
    crosses_threads::<Signed<Starknet>>();
    crosses_threads::<(Felt, Invoke, Key, Signature, Wallet)>();
}

#[test]
fn felts_are_those_of_the_curve_library() {
    assert_eq!(starknet_crypto::get_public_key(&Felt::ONE), starknet_crypto::get_public_key(&starknet_crypto::Felt::ONE));
}
