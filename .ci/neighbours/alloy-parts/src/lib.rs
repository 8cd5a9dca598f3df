//! Beside single parts of alloy: a signed call is serialized by features that the wallet turned on.

use countersign::evm::alloy_consensus::TxEnvelope;
use serde::{Serialize, Serializer};

/// A signed call as JSON-RPC shows it.
///
/// # Errors
///
/// The serializer's own.
pub fn shown<S: Serializer>(signed: &TxEnvelope, serializer: S) -> Result<S::Ok, S::Error> {
    let signed: &alloy_consensus::TxEnvelope = signed;
    signed.serialize(serializer)
}
