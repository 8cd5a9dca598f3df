//! Beside alloy with everything in it: what countersign prepares and signs is what alloy sends, without a conversion.

use alloy::consensus::{TxEip1559, TxEnvelope};
use alloy::primitives::Address;
use alloy::providers::{PendingTransactionBuilder, Provider};
use alloy::transports::TransportResult;
use countersign::evm::{alloy_consensus, alloy_dyn_abi, alloy_primitives};

/// Sends a signed call through any provider.
///
/// # Errors
///
/// What the node refuses.
pub async fn send(
    provider: &impl Provider,
    signed: alloy_consensus::TxEnvelope,
) -> TransportResult<PendingTransactionBuilder<alloy::network::Ethereum>> {
    let signed: TxEnvelope = signed;
    provider.send_tx_envelope(signed).await
}

/// Typed data as alloy's signers take it, an unsigned call, an account.
#[must_use]
pub fn the_same(
    typed_data: alloy_dyn_abi::TypedData,
    call: alloy_consensus::TxEip1559,
    account: alloy_primitives::Address,
) -> (alloy::dyn_abi::TypedData, TxEip1559, Address) {
    (typed_data, call, account)
}
