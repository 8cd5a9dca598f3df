//! Beside starknet-rs: one `Felt`, and the calls of an order go to its accounts.

use countersign::starknet::{Felt, starknet_crypto};
use starknet::accounts::{ConnectedAccount, ExecutionV3};
use starknet::core::types::Call;
use starknet::signers::SigningKey;

/// A prepared call as an account of starknet-rs executes it.
#[must_use]
pub fn call(to: Felt, selector: Felt, calldata: Vec<Felt>) -> Call {
    Call { to, selector, calldata }
}

/// The calls of an order, by any account.
pub fn execution<A: ConnectedAccount + Sync>(account: &A, calls: Vec<Call>) -> ExecutionV3<'_, A> {
    account.execute_v3(calls)
}

/// Whether a key of starknet-rs signed a hash that countersign gave out.
#[must_use]
pub fn proves(key: &SigningKey, hash: &Felt) -> bool {
    let Ok(signature) = key.sign(hash) else { return false };
    starknet_crypto::verify(&key.verifying_key().scalar(), hash, &signature.r, &signature.s).unwrap_or(false)
}
