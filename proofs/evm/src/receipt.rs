//! The result of an execution.

use alloy_primitives::{Address, B256, Bytes, Log};
use alloy_sol_types::{SolError, SolEvent};
use revm::context_interface::result::HaltReason;

/// How the execution ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The execution succeeded. For a deployment, `output` is the runtime code.
    Success {
        /// The return data.
        output: Bytes,
    },
    /// The contract reverted. Everything but the fee and the nonce is as before.
    Reverted {
        /// The revert data: a four-byte error selector and its arguments.
        output: Bytes,
    },
    /// The virtual machine stopped it and used up all gas.
    Halted {
        /// The reason, such as out of gas or an invalid opcode.
        reason: HaltReason,
    },
}

/// An executed transaction or call.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Receipt {
    /// The transaction's hash, or `None` for an unsigned call.
    pub hash: Option<B256>,
    /// The recovered signer, or the caller named in an unsigned call.
    pub from: Address,
    /// How the execution ended.
    pub outcome: Outcome,
    /// The gas charged, after refunds.
    pub gas_used: u64,
    /// The price per unit of gas in wei: base fee plus priority fee. Zero for an unsigned call.
    pub gas_price: u128,
    /// The logs in order. Empty if the execution did not succeed.
    pub logs: Vec<Log>,
}

impl Receipt {
    /// Returns the receipt of an unsigned call without logs.
    #[must_use]
    pub const fn of_call(from: Address, outcome: Outcome, gas_used: u64) -> Self {
        Self { hash: None, from, outcome, gas_used, gas_price: 0, logs: Vec::new() }
    }

    /// Returns whether the execution succeeded.
    #[must_use]
    pub const fn is_success(&self) -> bool {
        matches!(self.outcome, Outcome::Success { .. })
    }

    /// Returns the error with which the contract reverted, if it is an `E`.
    #[must_use]
    pub fn reverted_with<E: SolError>(&self) -> Option<E> {
        match &self.outcome {
            Outcome::Reverted { output } => E::abi_decode_validate(output).ok(),
            Outcome::Success { .. } | Outcome::Halted { .. } => None,
        }
    }

    /// Returns the first event `E` from `emitter`.
    #[must_use]
    pub fn event<E: SolEvent>(&self, emitter: Address) -> Option<E> {
        let mut from_emitter = self.logs.iter().filter(|log| log.address == emitter);
        from_emitter.find_map(|log| E::decode_log_data_validate(&log.data).ok())
    }
}
