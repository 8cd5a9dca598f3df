//! What wallets of their own take over JSON-RPC: they choose nonce, fees and gas themselves.
//!
//! What such a wallet broadcast is proven by [`VerifiedOrder::matches`](crate::VerifiedOrder) with the transaction as a node
//! returns it.

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
    /// What the transaction does. Not part of the JSON.
    #[serde(skip)]
    pub role: Role,
    /// The sender.
    pub from: Address,
    /// The contract.
    pub to: Address,
    /// Wei.
    pub value: U256,
    /// Gas limit, as the service proposed it.
    pub gas: U64,
    /// Calldata.
    pub data: Bytes,
    /// EIP-155 chain id.
    pub chain_id: U64,
}

/// Parameters of `wallet_sendCalls` (EIP-5792): approval and initiate in one request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SendCalls {
    /// `2.0.0`
    pub version: &'static str,
    /// EIP-155 chain id.
    pub chain_id: U64,
    /// The sender.
    pub from: Address,
    /// Whether the calls take effect together or not at all.
    pub atomic_required: bool,
    /// The calls, in their order.
    pub calls: Vec<SendCall>,
}

/// A call of `wallet_sendCalls`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SendCall {
    /// The contract.
    pub to: Address,
    /// Wei.
    pub value: U256,
    /// Calldata.
    pub data: Bytes,
}

impl Deposit {
    /// Returns the parameters of one `eth_sendTransaction` for each call, in the order in which they are sent.
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
