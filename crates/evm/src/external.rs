//! JSON-RPC parameters for external wallets, which choose nonce, fees and gas themselves.
//!
//! [`VerifiedOrder::matches`](crate::VerifiedOrder) compares the transaction that such a wallet broadcast with the order. Calls that a
//! wallet bundled have no transaction of their own: [`Deposit::find_payment`] finds their effect. [`received`](crate::received) reads both.
//!
//! Specification: `docs/spec/evm.md#signing`.

use alloy_primitives::{Address, Bytes, U64, U256};
use countersign_core::Role;
use countersign_evm_core::funding::ApprovalPlan;
use serde::Serialize;
use serde_json::Value;

use crate::deposit::{Call, Deposit};

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
    /// The gas limit that the service proposed. `None` leaves it to the wallet: see [`SendTransaction::without_gas`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gas: Option<U64>,
    /// Calldata: selector and arguments.
    pub data: Bytes,
    /// EIP-155 chain id.
    pub chain_id: U64,
}

impl SendTransaction {
    /// Leaves the gas limit to the wallet. A Safe takes a gas limit for its `safeTxGas`, which is signed: its owners then see other hashes
    /// than those of a card without it, and a call that fails uses up the Safe's nonce.
    #[must_use]
    pub const fn without_gas(mut self) -> Self {
        self.gas = None;
        self
    }
}

/// Parameters of `wallet_sendCalls` (EIP-5792): approval and initiate in one request.
///
/// A wallet without smart-account features refuses a request for atomic execution (error 5760). [`SendCalls::without_atomicity`] lets it
/// send the calls one after the other.
///
/// ```
/// # fn request(order: &countersign::evm::VerifiedOrder) {
/// use serde_json::json;
///
/// let calls =
///     order.deposit().send_calls(countersign::evm::ApprovalStep::Exact).without_atomicity();
/// let paymaster = json!({ "url": "https://paymaster.example", "optional": true });
/// let calls = calls.with_capabilities(json!({ "paymasterService": paymaster }));
/// let params = json!([calls]);
/// // provider.request({ method: "wallet_sendCalls", params })
/// # }
/// ```
///
/// Specification: <https://eips.ethereum.org/EIPS/eip-5792>
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
    /// Whether either all calls must take effect or none. By default true for several calls, and false for a single call, which every
    /// wallet can send.
    pub atomic_required: bool,
    /// The calls, in the order in which they are executed.
    pub calls: Vec<SendCall>,
    /// What the application asks of the wallet for all calls, such as a paymaster; left out of the JSON if `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capabilities: Option<Value>,
}

impl SendCalls {
    /// Requires that either all calls take effect or none. A wallet that cannot promise this refuses the request.
    #[must_use]
    pub fn requiring_atomicity(mut self) -> Self {
        self.atomic_required = true;
        self
    }

    /// Lets the wallet send the calls one after the other if it cannot bundle them. If it stops after an approval, the approval remains.
    #[must_use]
    pub fn without_atomicity(mut self) -> Self {
        self.atomic_required = false;
        self
    }

    /// Adds capabilities, a JSON object with one member for each capability. They are passed on as they are and never read.
    #[must_use]
    pub fn with_capabilities(mut self, capabilities: Value) -> Self {
        self.capabilities = Some(capabilities);
        self
    }
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
    /// # fn request(order: &countersign::evm::VerifiedOrder) {
    /// for call in order.deposit().send_transactions(countersign::evm::ApprovalStep::Exact) {
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
            gas: Some(U64::from(gas_limit)),
            data,
            chain_id: U64::from(self.chain_id),
        });
        calls.collect()
    }

    /// Returns the parameters of one `wallet_sendCalls` with all calls of the order. Several calls are to be executed atomically.
    #[must_use]
    pub fn send_calls(&self, approvals: impl Into<ApprovalPlan>) -> SendCalls {
        let calls = self.calls(approvals).into_iter().map(|(_, Call { to, value, data, .. })| SendCall { to, value, data });
        let calls: Vec<_> = calls.collect();
        SendCalls {
            version: "2.0.0",
            chain_id: U64::from(self.chain_id),
            from: self.sender,
            atomic_required: calls.len() > 1,
            calls,
            capabilities: None,
        }
    }
}
