//! What an execution left behind.

use alloy_primitives::{Address, B256, Bytes, Log};
use alloy_sol_types::{SolError, SolEvent};
use revm::context_interface::result::HaltReason;

/// How the execution ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It ran to its end. For a deployment, `output` is the runtime code.
    Success {
        /// Return data.
        output: Bytes,
    },
    /// The contract refused. Everything but the fee and the nonce is as before.
    Reverted {
        /// Revert data: a four-byte error selector and its arguments.
        output: Bytes,
    },
    /// The machine stopped it and took all the gas.
    Halted {
        /// Out of gas, invalid opcode, and so on.
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
    /// How it ended.
    pub outcome: Outcome,
    /// Gas charged, after refunds.
    pub gas_used: u64,
    /// Wei charged per unit of gas: base fee plus tip. Zero for an unsigned call.
    pub gas_price: u128,
    /// Logs in order. None if it did not succeed.
    pub logs: Vec<Log>,
}

impl Receipt {
    /// Returns the receipt of an unsigned call that left no logs.
    #[must_use]
    pub const fn of_call(from: Address, outcome: Outcome, gas_used: u64) -> Self {
        Self { hash: None, from, outcome, gas_used, gas_price: 0, logs: Vec::new() }
    }

    /// Returns whether the execution succeeded.
    #[must_use]
    pub const fn is_success(&self) -> bool {
        matches!(self.outcome, Outcome::Success { .. })
    }

    /// Returns the error the contract reverted with, if it is an `E`.
    #[must_use]
    pub fn reverted_with<E: SolError>(&self) -> Option<E> {
        match &self.outcome {
            Outcome::Reverted { output } => E::abi_decode_validate(output).ok(),
            Outcome::Success { .. } | Outcome::Halted { .. } => None,
        }
    }

    /// Returns the first event `E` that `emitter` logged.
    #[must_use]
    pub fn event<E: SolEvent>(&self, emitter: Address) -> Option<E> {
        let mut from_emitter = self.logs.iter().filter(|log| log.address == emitter);
        from_emitter.find_map(|log| E::decode_log_data_validate(&log.data).ok())
    }
}
