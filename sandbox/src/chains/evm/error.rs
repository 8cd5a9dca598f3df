//! JSON-RPC errors as nodes return them.

use countersign_proofs_evm::Outcome;
use serde_json::{Value, json};

use super::put;

/// An error of JSON-RPC.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RpcError {
    code: i64,
    message: String,
    data: Option<Value>,
}

impl RpcError {
    pub(crate) fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    /// Returns the error for the node's own failures and for everything about transactions.
    pub(crate) fn server(message: impl Into<String>) -> Self {
        Self::new(-32_000, message)
    }

    pub(crate) fn invalid(index: usize, why: &str) -> Self {
        Self::new(-32_602, format!("invalid argument {index}: {why}"))
    }

    pub(crate) fn missing(index: usize) -> Self {
        Self::new(-32_602, format!("missing value for required argument {index}"))
    }

    /// Returns the error of a call that failed, or `None` if it succeeded.
    pub(crate) fn of(outcome: &Outcome) -> Option<Self> {
        match outcome {
            Outcome::Success { .. } => None,
            Outcome::Reverted { output } => {
                let reason = alloy_sol_types::decode_revert_reason(output).and_then(|reason| {
                    // Nodes know error texts and panics, but not a contract's custom errors.
                    reason.strip_prefix("revert: ").map(ToOwned::to_owned)
                });
                let message = reason.map_or_else(|| "execution reverted".to_owned(), |reason| format!("execution reverted: {reason}"));
                Some(Self { code: 3, message, data: Some(json!(output)) })
            }
            Outcome::Halted { reason } => {
                use countersign_proofs_evm::revm::context_interface::result::HaltReason;
                let message = match reason {
                    HaltReason::OutOfGas(_) => "out of gas".to_owned(),
                    HaltReason::OpcodeNotFound => "invalid opcode".to_owned(),
                    other => format!("execution stopped: {other:?}"),
                };
                Some(Self::server(message))
            }
        }
    }

    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    pub(crate) fn json(&self) -> Value {
        let mut error = json!({"code": self.code, "message": self.message});
        if let Some(data) = &self.data {
            put(&mut error, "data", data.clone());
        }
        error
    }
}
