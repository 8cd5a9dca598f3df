//! countersign with starknet-rs. Both have the same `Felt`. Its signers sign orders, its providers take the
//! transactions, and its accounts the calls.

use countersign::family::SignWithAsync;
use countersign::starknet::{ApprovalStep, SignedOrder, Starknet, TxContext, UnsignedOrder, VerifiedOrder};
use countersign::{CreateOrder, Policy, Proposal, Refusal, Registry};
use starknet::accounts::{ConnectedAccount, ExecutionV3};
use starknet::core::types::{BroadcastedInvokeTransactionV3, Call, Felt, ResourceBoundsMapping};
use starknet::providers::{Provider, ProviderError};
use starknet::signers::{LocalWallet, SigningKey};

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

/// Signs with a wallet of starknet-rs.
///
/// # Errors
///
/// Returns the wallet's error or a refusal.
pub async fn sign(unsigned: &mut UnsignedOrder, signer: &LocalWallet) -> Result<(), <Starknet as SignWithAsync<LocalWallet>>::Error> {
    unsigned.sign_with_async(signer).await
}

/// Sends the signed transaction.
///
/// # Errors
///
/// Returns the node's error.
pub async fn send(provider: &impl Provider, signed: &SignedOrder) -> Result<Vec<Felt>, ProviderError> {
    let mut hashes = Vec::new();
    for transaction in signed.transactions() {
        let native: BroadcastedInvokeTransactionV3 = transaction.native.into();
        hashes.push(provider.add_invoke_transaction(native).await?.transaction_hash);
    }
    Ok(hashes)
}

/// Returns the calls of an order, for an account that chooses nonce and fees itself.
pub fn execution<'a, A: ConnectedAccount + Sync>(account: &'a A, order: &VerifiedOrder) -> ExecutionV3<'a, A> {
    let calls: Vec<Call> = order.deposit().calls(ApprovalStep::AsVerified).into_iter().map(|(_, call)| call.into()).collect();
    account.execute_v3(calls)
}
