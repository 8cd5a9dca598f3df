//! countersign with all of alloy. Verified orders go to alloy's signers and providers without conversion, and so does
//! what the providers return.

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

/// Verifies a response, and prepares its calls with a provider's fee estimate.
///
/// # Errors
///
/// Returns the refusal of the response.
pub fn prepare(
    (request, response, registry): (&CreateOrder, &[u8], &Registry),
    nonce: u64,
    fees: Eip1559Estimation,
) -> Result<UnsignedOrder, Refusal> {
    let order = countersign::evm::verify(Proposal::new(request, response), registry, &Policy::default())?;
    order.prepare(TxContext::eip1559(nonce, fees.max_fee_per_gas, fees.max_priority_fee_per_gas))
}

/// Prepares only the gasless message, and signs it with an alloy key.
///
/// # Errors
///
/// Returns the signer's error or a refusal.
pub fn sign_gasless(order: &VerifiedOrder, signer: &PrivateKeySigner) -> Result<Option<String>, Box<dyn Error>> {
    let mut unsigned = order.prepare(FundingPath::Gasless)?;
    unsigned.sign_with(signer)?;
    Ok(unsigned.finish()?.gasless().map(|body| body.signature))
}

/// Signs with any asynchronous alloy signer.
///
/// # Errors
///
/// Returns the signer's error or a refusal.
pub async fn sign<S>(unsigned: &mut UnsignedOrder, signer: &S) -> Result<(), <Evm as SignWithAsync<S>>::Error>
where
    S: TxSigner<Signature> + Signer + Sync,
{
    unsigned.sign_with_async(signer).await
}

/// Sends the signed calls in order.
///
/// # Errors
///
/// Returns the node's error.
pub async fn send(provider: &impl Provider, signed: &SignedOrder) -> TransportResult<Vec<PendingTransactionBuilder<Ethereum>>> {
    let mut pending = Vec::new();
    for transaction in signed.transactions() {
        let native: TxEnvelope = transaction.native;
        pending.push(provider.send_tx_envelope(native).await?);
    }
    Ok(pending)
}

/// Returns the role in the order of a transaction that the wallet broadcast itself.
///
/// # Errors
///
/// Returns the node's error, or the refusal of a transaction that does not belong to the order.
pub async fn find(provider: &impl Provider, order: &VerifiedOrder, hash: B256) -> Result<Option<Role>, Box<dyn Error>> {
    let Some(found) = provider.get_transaction_by_hash(hash).await? else { return Ok(None) };
    let envelope: &TxEnvelope = found.inner.inner();
    Ok(Some(order.matches(envelope)?))
}

/// Returns the contracts that an order's payloads call, for display in a wallet.
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
