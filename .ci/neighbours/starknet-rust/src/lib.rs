//! countersign with starknet-rust, the maintained fork of starknet-rs. Both have the same `Felt`. Its signers sign
//! orders, and its providers and accounts take their transactions and calls.

use countersign::starknet::{ApprovalStep, SignedOrder, SignerError, TxContext, UnsignedOrder, VerifiedOrder};
use countersign::{CreateOrder, Policy, Proposal, Refusal, Registry, Role};
use starknet_rust_core::types::{BroadcastedInvokeTransaction, Call, Felt, ResourceBoundsMapping};
use starknet_rust_signers::local_wallet::SignError;
use starknet_rust_signers::{Infallible, LocalWallet, SigningKey};

/// Verifies a response, and prepares it with the nonce and resource bounds of an account.
///
/// # Errors
///
/// Returns the refusal of the response.
pub fn prepare(
    (request, response, registry): (&CreateOrder, &[u8], &Registry),
    nonce: Felt,
    bounds: ResourceBoundsMapping,
    key: &SigningKey,
) -> Result<UnsignedOrder, Refusal> {
    let order = countersign::starknet::verify(Proposal::new(request, response), registry, &Policy::default())?;
    order.prepare(TxContext::new(nonce, bounds.into()).with_public_key(key.verifying_key().scalar()))
}

/// Signs with a wallet of starknet-rust.
///
/// # Errors
///
/// Returns the wallet's error or a refusal.
pub async fn sign(unsigned: &mut UnsignedOrder, signer: &LocalWallet) -> Result<(), SignerError<Infallible, SignError>> {
    unsigned.sign_with_async(signer).await
}

/// Returns the signed transactions, in the type for a provider's `add_invoke_transaction`.
#[must_use]
pub fn signed(signed: &SignedOrder) -> Vec<BroadcastedInvokeTransaction> {
    signed.transactions().into_iter().map(|transaction| transaction.native.into()).collect()
}

/// Returns the calls of an order, for an account that chooses nonce and fees itself.
#[must_use]
pub fn calls(order: &VerifiedOrder) -> Vec<Call> {
    order.deposit().calls(ApprovalStep::AsVerified).into_iter().map(|(_, call)| call.into()).collect()
}

/// Matches a transaction that such an account broadcast.
///
/// # Errors
///
/// Returns the refusal of a simulation, of a proof, or of a transaction that does not belong to the order.
pub fn matches(order: &VerifiedOrder, sent: BroadcastedInvokeTransaction) -> Result<Role, Refusal> {
    order.matches(&sent.try_into()?)
}
