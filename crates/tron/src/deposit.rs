//! What a Tron order locks: its calls and its message.

use alloy_primitives::{Bytes, U256};
use countersign_core::{ApprovalStep, Code, Refusal, RefuseAt, Role, Warnings};
use countersign_evm_core::call::{self, Initiate};
use countersign_evm_core::effect::SwapIdRule;
use countersign_evm_core::funding::ApprovalPlan;
use countersign_evm_core::typed_data::Message;

use crate::address::Address;
use crate::reader::REDEMPTION_ENERGY;

/// The price of one unit of energy, in sun. Votes have changed it several times. It was 420 and 210 before.
const ENERGY_PRICE: u64 = 100;
/// The energy of the one storage write that every approval makes.
const APPROVAL_ENERGY: u64 = 20_000;
/// The energy of a deposit: the transfer of a token, and the writes of the order.
const DEPOSIT_ENERGY: u64 = 160_000;

/// The deposit of an order: its calls and its message, rebuilt from the order's own terms.
#[derive(Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Deposit {
    /// Chain id of the pinned asset.
    pub chain_id: u64,
    /// The account that sends and pays: the owner.
    pub sender: Address,
    /// The token approval; `None` if the order needs none.
    pub approval: Option<Approval>,
    /// The call that locks the funds.
    pub initiate: Call,
    /// The decoded arguments of that call.
    pub terms: Initiate,
    /// The gasless message; `None` if the order has no gasless path.
    pub typed_data: Option<Message>,
    /// The highest fee limit that the policy allows the wallet to set, in sun.
    pub(crate) max_fee_limit: u64,
    pub(crate) swap_id_rule: SwapIdRule,
}

/// A call to a contract.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Call {
    /// The contract that is called.
    pub to: Address,
    /// Sun sent with the call. `int64` as in the protocol, but never negative.
    pub value: i64,
    /// The most sun that the call may burn for energy. `int64` as in the protocol, but never negative.
    pub fee_limit: i64,
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

/// Checks a fee limit in sun, which a response calls `gas_limit`. Zero is refused: a call with that limit never runs, however much
/// energy the owner has staked.
pub(crate) fn check_fee_limit(max: u64, limit: U256, refuse: RefuseAt<'_>) -> Result<i64, Refusal> {
    match i64::try_from(limit) {
        Ok(0) => Err(refuse(Code::GasLimitTooLow).with_expected("at least 1 sun")),
        Ok(fee_limit) if limit <= U256::from(max) => Ok(fee_limit),
        _ => Err(refuse(Code::GasLimitTooHigh).with_expected(format!("at most {max} sun"))),
    }
}

/// Returns why a fee limit may be too low for the energy of a call; `None` if it is not. The limit also applies to staked energy. Only the
/// chain knows today's price of energy, so this never refuses a call on its own.
pub(crate) fn low_limit(role: Role, fee_limit: u64) -> Option<String> {
    let (call, energy) = match role {
        Role::Approval | Role::ApprovalReset => ("an approval", APPROVAL_ENERGY),
        Role::Redeem => ("a redemption", REDEMPTION_ENERGY),
        Role::Refund => ("a refund", REDEMPTION_ENERGY),
        _ => ("a deposit", DEPOSIT_ENERGY),
    };
    let needed = energy.saturating_mul(ENERGY_PRICE);
    (fee_limit < needed).then(|| format!("a fee limit of {fee_limit} sun, and {call} may need {needed}, also with staked energy"))
}

impl Deposit {
    /// Adds a warning about each fee limit that may be too low: the approval's, unless none is sent, and that of the call that locks the
    /// funds, `initiate` if the wallet has set it.
    pub(crate) fn warn_about_limits(&self, step: ApprovalStep, initiate: Option<u64>, warnings: &mut Warnings) {
        let approval = self.approval.as_ref().filter(|_| step != ApprovalStep::AlreadyApproved);
        let approval = approval.map(|approval| (Role::Approval, approval.call.fee_limit.unsigned_abs()));
        let initiate = (Role::Initiate, initiate.unwrap_or(self.initiate.fee_limit.unsigned_abs()));
        for (role, limit) in approval.into_iter().chain([initiate]) {
            if let Some(why) = low_limit(role, limit) {
                warnings.warn_about(Code::FeeTooLow, why);
            }
        }
    }
}
