//! Beside starknet-rs: one `Felt`, its signers sign an order, its providers take the transaction, and the calls of an order go
//! to its accounts.

use countersign::family::SignWithAsync;
use countersign::starknet::{ApprovalStep, SignedOrder, Starknet, TxContext, UnsignedOrder, VerifiedOrder};
use countersign::{CreateOrder, Policy, Proposal, Refusal, Registry};
use starknet::accounts::{ConnectedAccount, ExecutionV3};
use starknet::core::types::{BroadcastedInvokeTransactionV3, Call, Felt, ResourceBoundsMapping};
use starknet::providers::{Provider, ProviderError};
use starknet::signers::{LocalWallet, SigningKey};

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

/// Has a wallet of starknet-rs sign.
///
/// # Errors
///
/// What the wallet fails with, or a refusal.
pub async fn sign(unsigned: &mut UnsignedOrder, signer: &LocalWallet) -> Result<(), <Starknet as SignWithAsync<LocalWallet>>::Error> {
    unsigned.sign_with_async(signer).await
}

/// Sends the signed transaction.
///
/// # Errors
///
/// What the node refuses.
pub async fn send(provider: &impl Provider, signed: &SignedOrder) -> Result<Vec<Felt>, ProviderError> {
    let mut hashes = Vec::new();
    for transaction in signed.transactions() {
        let native: BroadcastedInvokeTransactionV3 = transaction.native.into();
        hashes.push(provider.add_invoke_transaction(native).await?.transaction_hash);
    }
    Ok(hashes)
}

/// The calls of an order, for an account that chooses nonce and fees itself.
pub fn execution<'a, A: ConnectedAccount + Sync>(account: &'a A, order: &VerifiedOrder) -> ExecutionV3<'a, A> {
    let calls: Vec<Call> = order.deposit().calls(ApprovalStep::AsVerified).into_iter().map(|(_, call)| call.into()).collect();
    account.execute_v3(calls)
}
