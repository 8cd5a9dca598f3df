//! JSON-RPC errors as nodes return them.

use countersign_proofs_evm::Outcome;
use serde_json::json;

use crate::chains::rpc::Fault;

/// Returns the error for the node's own failures and for everything about transactions.
pub(crate) fn server(message: impl Into<String>) -> Fault {
    Fault::new(-32_000, message)
}

pub(crate) fn invalid(index: usize, why: &str) -> Fault {
    Fault::params(format!("invalid argument {index}: {why}"))
}

pub(crate) fn missing(index: usize) -> Fault {
    Fault::params(format!("missing value for required argument {index}"))
}

/// Returns the error of a call that failed, or `None` if it succeeded.
pub(crate) fn of(outcome: &Outcome) -> Option<Fault> {
    match outcome {
        Outcome::Success { .. } => None,
        Outcome::Reverted { output } => {
            let reason = alloy_sol_types::decode_revert_reason(output).and_then(|reason| {
                // Nodes know error texts and panics, but not a contract's custom errors.
                reason.strip_prefix("revert: ").map(ToOwned::to_owned)
            });
            let message = reason.map_or_else(|| "execution reverted".to_owned(), |reason| format!("execution reverted: {reason}"));
            Some(Fault::new(3, message).with_data(json!(output)))
        }
        Outcome::Halted { reason } => {
            use countersign_proofs_evm::revm::context_interface::result::HaltReason;
            Some(server(match reason {
                HaltReason::OutOfGas(_) => "out of gas".to_owned(),
                HaltReason::OpcodeNotFound => "invalid opcode".to_owned(),
                other => format!("execution stopped: {other:?}"),
            }))
        }
    }
}
