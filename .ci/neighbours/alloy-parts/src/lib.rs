//! countersign with individual parts of alloy. Features that the wallet has enabled serialize signed calls.

use countersign::evm::SignedOrder;
use serde::Serializer;

/// Serializes the signed calls of an order in the JSON-RPC format.
///
/// # Errors
///
/// Returns the serializer's own error.
pub fn serialize<S: Serializer>(signed: &SignedOrder, serializer: S) -> Result<S::Ok, S::Error> {
    let calls: Vec<alloy_consensus::TxEnvelope> = signed.transactions().into_iter().map(|transaction| transaction.native).collect();
    serializer.collect_seq(calls)
}
