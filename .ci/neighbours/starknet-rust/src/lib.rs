//! Beside starknet-rust, the maintained fork of starknet-rs: one `Felt`, its signers sign an order, and transactions and calls of an order
//! are those that its providers and accounts take.

use countersign::starknet::{ApprovalStep, SignedOrder, SignerError, TxContext, UnsignedOrder, VerifiedOrder};
use countersign::{CreateOrder, Policy, Proposal, Refusal, Registry, Role};
use starknet_rust_core::types::{BroadcastedInvokeTransaction, Call, Felt, ResourceBoundsMapping};
use starknet_rust_signers::local_wallet::SignError;
use starknet_rust_signers::{Infallible, LocalWallet, SigningKey};

/// Verifies a response and prepares it with the nonce and the bounds of an account.
///
/// # Errors
///
/// A refusal of the response.
pub fn prepare(
    (request, response, registry): (&CreateOrder, &[u8], &Registry),
    nonce: Felt,
    bounds: ResourceBoundsMapping,
    key: &SigningKey,
) -> Result<UnsignedOrder, Refusal> {
    let order = countersign::starknet::verify(Proposal::new(request, response), registry, &Policy::default())?;
    order.prepare(TxContext::new(nonce, bounds.into()).with_public_key(key.verifying_key().scalar()))
}

/// Has a wallet of starknet-rust sign.
///
/// # Errors
///
/// What the wallet fails with, or a refusal.
pub async fn sign(unsigned: &mut UnsignedOrder, signer: &LocalWallet) -> Result<(), SignerError<Infallible, SignError>> {
    unsigned.sign_with_async(signer).await
}

/// The signed transactions, as a provider's `add_invoke_transaction` takes them.
#[must_use]
pub fn signed(signed: &SignedOrder) -> Vec<BroadcastedInvokeTransaction> {
    signed.transactions().into_iter().map(|transaction| transaction.native.into()).collect()
}

/// The calls of an order, for an account that chooses nonce and fees itself.
#[must_use]
pub fn calls(order: &VerifiedOrder) -> Vec<Call> {
    order.deposit().calls(ApprovalStep::AsVerified).into_iter().map(|(_, call)| call.into()).collect()
}

/// Matches what such an account broadcast.
///
/// # Errors
///
/// A refusal of a simulation, of a proof, or of another transaction than the order's.
pub fn matches(order: &VerifiedOrder, sent: BroadcastedInvokeTransaction) -> Result<Role, Refusal> {
    order.matches(&sent.try_into()?)
}
