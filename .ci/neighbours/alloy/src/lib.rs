//! Beside alloy with everything in it: what countersign verified goes to alloy's signers and providers without a conversion,
//! and what alloy's providers return goes back.

use std::error::Error;

use alloy::consensus::{Transaction, TxEnvelope};
use alloy::eips::eip1559::Eip1559Estimation;
use alloy::network::{Ethereum, TxSigner};
use alloy::primitives::{Address, B256, Signature};
use alloy::providers::{PendingTransactionBuilder, Provider};
use alloy::signers::Signer;
use alloy::signers::local::PrivateKeySigner;
use alloy::transports::TransportResult;
use countersign::evm::{Evm, FundingPath, Payload, SignedOrder, TxContext, UnsignedOrder, VerifiedOrder};
use countersign::family::SignWithAsync;
use countersign::{CreateOrder, Policy, Proposal, Refusal, Registry, Role};

/// Verifies a response and prepares its calls at the fees that a provider estimates.
///
/// # Errors
///
/// A refusal of the response.
pub fn prepare(
    (request, response, registry): (&CreateOrder, &[u8], &Registry),
    nonce: u64,
    fees: Eip1559Estimation,
) -> Result<UnsignedOrder, Refusal> {
    let order = countersign::evm::verify(Proposal::new(request, response), registry, &Policy::default())?;
    order.prepare(TxContext::eip1559(nonce, fees.max_fee_per_gas, fees.max_priority_fee_per_gas))
}

/// Prepares the gasless message only, and signs it with a key of alloy's.
///
/// # Errors
///
/// What the signer fails with, or a refusal.
pub fn sign_gasless(order: &VerifiedOrder, signer: &PrivateKeySigner) -> Result<Option<String>, Box<dyn Error>> {
    let mut unsigned = order.prepare(FundingPath::Gasless)?;
    unsigned.sign_with(signer)?;
    Ok(unsigned.finish()?.gasless().map(|body| body.signature))
}

/// Has any asynchronous signer of alloy's sign.
///
/// # Errors
///
/// What the signer fails with, or a refusal.
pub async fn sign<S>(unsigned: &mut UnsignedOrder, signer: &S) -> Result<(), <Evm as SignWithAsync<S>>::Error>
where
    S: TxSigner<Signature> + Signer + Sync,
{
    unsigned.sign_with_async(signer).await
}

/// Sends the signed calls in their order.
///
/// # Errors
///
/// What the node refuses.
pub async fn send(provider: &impl Provider, signed: &SignedOrder) -> TransportResult<Vec<PendingTransactionBuilder<Ethereum>>> {
    let mut pending = Vec::new();
    for transaction in signed.transactions() {
        let native: TxEnvelope = transaction.native;
        pending.push(provider.send_tx_envelope(native).await?);
    }
    Ok(pending)
}

/// Tells which part of the order a transaction is that a wallet of its own broadcast.
///
/// # Errors
///
/// What the node fails with, or the refusal of another transaction.
pub async fn find(provider: &impl Provider, order: &VerifiedOrder, hash: B256) -> Result<Option<Role>, Box<dyn Error>> {
    let Some(found) = provider.get_transaction_by_hash(hash).await? else { return Ok(None) };
    let envelope: &TxEnvelope = found.inner.inner();
    Ok(Some(order.matches(envelope)?))
}

/// Returns the contracts that the payloads of an order call, as a wallet shows them.
#[must_use]
pub fn called(unsigned: &UnsignedOrder) -> Vec<Address> {
    let requests = unsigned.requests().into_iter();
    let contracts = requests.filter_map(|request| match request.payload {
        Payload::Transaction(transaction) => transaction.to(),
        Payload::TypedData(typed_data) => typed_data.domain.verifying_contract,
        _ => None,
    });
    contracts.collect()
}
