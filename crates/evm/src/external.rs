//! JSON-RPC parameters for external wallets, which choose nonce, fees and gas themselves.
//!
//! [`VerifiedOrder::matches`](crate::VerifiedOrder) compares the transaction that such a wallet broadcast with the order;
//! [`received`](crate::received) reads it.
//!
//! Specification: `docs/spec/evm.md#signing`.

use alloy_primitives::{Address, Bytes, U64, U256};
use countersign_abi::funding::ApprovalPlan;
use countersign_core::Role;
use serde::Serialize;

use crate::verify::{Call, Deposit};

/// Parameters of `eth_sendTransaction`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SendTransaction {
    /// What the transaction does. It is not part of the JSON.
    #[serde(skip)]
    pub role: Role,
    /// The account that sends and pays.
    pub from: Address,
    /// The contract that is called.
    pub to: Address,
    /// Wei sent with the call.
    pub value: U256,
    /// The gas limit that the service proposed.
    pub gas: U64,
    /// Calldata: selector and arguments.
    pub data: Bytes,
    /// EIP-155 chain id.
    pub chain_id: U64,
}

/// Parameters of `wallet_sendCalls` (EIP-5792): approval and initiate in one request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SendCalls {
    /// The version of the request, `2.0.0`.
    pub version: &'static str,
    /// EIP-155 chain id.
    pub chain_id: U64,
    /// The account that sends and pays.
    pub from: Address,
    /// Whether either all calls must take effect or none. Always true.
    pub atomic_required: bool,
    /// The calls, in the order in which they are executed.
    pub calls: Vec<SendCall>,
}

/// A call of `wallet_sendCalls`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SendCall {
    /// The contract that is called.
    pub to: Address,
    /// Wei sent with the call.
    pub value: U256,
    /// Calldata: selector and arguments.
    pub data: Bytes,
}

impl Deposit {
    /// Returns the parameters of one `eth_sendTransaction` for each call, in the order in which the wallet must send them.
    ///
    /// ```
    /// # fn request(order: &countersign_evm::VerifiedOrder) {
    /// for call in order.deposit().send_transactions(countersign_evm::ApprovalStep::Exact) {
    ///     let params = serde_json::json!([call]);
    ///     // provider.request({ method: "eth_sendTransaction", params })
    /// }
    /// # }
    /// ```
    #[must_use]
    pub fn send_transactions(&self, approvals: impl Into<ApprovalPlan>) -> Vec<SendTransaction> {
        let calls = self.calls(approvals).into_iter().map(|(role, Call { to, value, gas_limit, data })| SendTransaction {
            role,
            from: self.sender,
            to,
            value,
            gas: U64::from(gas_limit),
            data,
            chain_id: U64::from(self.chain_id),
        });
        calls.collect()
    }

    /// Returns the parameters of one `wallet_sendCalls` with all calls of the order.
    #[must_use]
    pub fn send_calls(&self, approvals: impl Into<ApprovalPlan>) -> SendCalls {
        let calls = self.calls(approvals).into_iter().map(|(_, Call { to, value, data, .. })| SendCall { to, value, data });
        SendCalls { version: "2.0.0", chain_id: U64::from(self.chain_id), from: self.sender, atomic_required: true, calls: calls.collect() }
    }
}
