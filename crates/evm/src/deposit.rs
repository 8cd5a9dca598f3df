//! What an EVM order locks: its calls and its message.

use alloy_primitives::{Address, Bytes, U256};
use countersign_core::{Code, Refusal, RefuseAt, Role};
use countersign_evm_core::call::{self, Initiate};
use countersign_evm_core::funding::ApprovalPlan;
use countersign_evm_core::typed_data::Message;

use crate::payment::SwapIdRule;

/// Gas of the cheapest possible transaction. A transaction with a lower limit is never mined.
pub(crate) const MIN_GAS: u64 = 21_000;

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
    pub(crate) swap_id_rule: SwapIdRule,
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
}

pub(crate) fn check_gas_limit(max: u64, limit: U256, refuse: RefuseAt<'_>) -> Result<u64, Refusal> {
    match u64::try_from(limit) {
        Ok(gas) if gas < MIN_GAS => Err(refuse(Code::GasLimitTooLow).with_expected(format!("at least {MIN_GAS:#x}"))),
        Ok(gas) if gas <= max => Ok(gas),
        _ => Err(refuse(Code::GasLimitTooHigh).with_expected(format!("at most {max:#x}"))),
    }
}
