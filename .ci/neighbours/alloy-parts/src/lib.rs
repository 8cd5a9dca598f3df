//! Beside single parts of alloy: signed calls are serialized by features that the wallet turned on.

use countersign::evm::SignedOrder;
use serde::Serializer;

/// Serializes the signed calls of an order as JSON-RPC shows them.
///
/// # Errors
///
/// The serializer's own.
pub fn serialize<S: Serializer>(signed: &SignedOrder, serializer: S) -> Result<S::Ok, S::Error> {
    let calls: Vec<alloy_consensus::TxEnvelope> = signed.transactions().into_iter().map(|transaction| transaction.native).collect();
    serializer.collect_seq(calls)
}
