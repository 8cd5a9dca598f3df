//! What an EVM order locks: its calls and its message.

use alloy_primitives::{Address, Bytes, U256};
use countersign_core::{ApprovalStep, ContextVersion, FundingPath, Gasless, Role, Warnings};
use countersign_evm_core::call::{self, Initiate};
use countersign_evm_core::effect::SwapIdRule;
use countersign_evm_core::funding::ApprovalPlan;
use countersign_evm_core::typed_data::Message;
use serde::{Deserialize, Serialize};

use crate::gas;
use crate::transaction::TxContext;

/// The deposit of an order: its calls and its message, rebuilt from the order's own terms.
#[derive(Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Deposit {
    /// EIP-155 chain id of the pinned asset.
    pub chain_id: u64,
    /// The account that sends and pays: the delegate if there is one, else the owner.
    pub sender: Address,
    /// The token approval; `None` if the order needs none.
    pub approval: Option<Approval>,
    /// The call that locks the funds.
    pub initiate: Call,
    /// The decoded arguments of that call.
    pub terms: Initiate,
    /// The gasless message; `None` if the order has no gasless path.
    pub typed_data: Option<Message>,
    pub(crate) initiate_key: &'static str,
    /// The highest gas limit that the policy allows the wallet to set.
    pub(crate) max_gas_limit: u64,
    /// The highest gas limit that the chain allows one transaction, if that is known.
    pub(crate) max_tx_gas: Option<u64>,
    pub(crate) swap_id_rule: SwapIdRule,
}

/// The funding path, and what the chain shows of the account that signs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct OwnerPath {
    /// The version of the stored form.
    #[serde(default)]
    version: ContextVersion,
    /// The funding path.
    pub path: FundingPath<TxContext>,
    /// Whether the chain shows code at the account that signs the gasless message; `None` if it was not asked. A signature in the wrapper
    /// of ERC-6492 is taken only from an account with code.
    pub has_code: Option<bool>,
}

impl OwnerPath {
    /// States whether the chain shows code at the account that signs the gasless message: see [`CodeCheck`](crate::reader::CodeCheck).
    #[must_use]
    pub const fn with_code(mut self, has_code: Option<bool>) -> Self {
        self.has_code = has_code;
        self
    }
}

impl From<FundingPath<TxContext>> for OwnerPath {
    fn from(path: FundingPath<TxContext>) -> Self {
        Self { version: ContextVersion, path, has_code: None }
    }
}

impl From<Gasless> for OwnerPath {
    fn from(gasless: Gasless) -> Self {
        FundingPath::from(gasless).into()
    }
}

impl From<TxContext> for OwnerPath {
    fn from(calls: TxContext) -> Self {
        FundingPath::SelfFunded(calls).into()
    }
}

/// A call to a contract.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Call {
    /// The contract that is called.
    pub to: Address,
    /// Wei sent with the call.
    pub value: U256,
    /// The most gas that the call may use.
    pub gas_limit: u64,
    /// Calldata: selector and arguments.
    pub data: Bytes,
}

/// A token approval, as the service proposed it and as it will be signed.
pub type Approval = call::Approval<Call>;

impl Deposit {
    /// Returns the calls in the order in which they must be sent: the approvals of the plan, then the call that locks the funds.
    #[must_use]
    pub fn calls(&self, approvals: impl Into<ApprovalPlan>) -> Vec<(Role, Call)> {
        let approvals = approvals.into().approvals(self.approval.as_ref(), self.terms.amount);
        let calls = approvals.into_iter().filter_map(|(role, approve)| {
            let call = &self.approval.as_ref()?.call;
            Some((role, Call { data: approve.encode().into(), ..call.clone() }))
        });
        calls.chain([(Role::Initiate, self.initiate.clone())]).collect()
    }

    /// Adds a warning about each gas limit that no node of the chain accepts: the approval's, unless none is sent, and that of the call
    /// that locks the funds, `initiate` if the wallet has set it.
    pub(crate) fn warn_about_gas(&self, step: ApprovalStep, initiate: Option<u64>, warnings: &mut Warnings) {
        let approval = self.approval.as_ref().filter(|_| step != ApprovalStep::AlreadyApproved);
        let approval = approval.map(|approval| (Role::Approval, approval.call.gas_limit, &approval.call.data));
        let initiate = (Role::Initiate, initiate.unwrap_or(self.initiate.gas_limit), &self.initiate.data);
        for (role, limit, data) in approval.into_iter().chain([initiate]) {
            gas::warn_above_cap(self.max_tx_gas, limit, warnings);
            gas::warn_below_bytes(role, limit, data, warnings);
        }
    }
}
