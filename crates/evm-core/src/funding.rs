//! Which approvals are sent before the call that locks the funds.

use alloy_primitives::U256;
use countersign_core::{ApprovalStep, Role};
use serde::{Deserialize, Serialize};

use crate::call::{Approval, Approve};

/// Which approvals are sent before the call that locks the funds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct ApprovalPlan {
    /// What to do with the order's approval.
    pub step: ApprovalStep,
    /// Whether the allowance is set to zero first. Some tokens require that if an allowance is left over.
    pub reset_first: bool,
}

impl From<ApprovalStep> for ApprovalPlan {
    fn from(step: ApprovalStep) -> Self {
        Self::new(step)
    }
}

impl ApprovalPlan {
    /// Creates a plan that does not set the allowance to zero first.
    #[must_use]
    pub const fn new(step: ApprovalStep) -> Self {
        Self { step, reset_first: false }
    }

    /// Creates the plan for the allowance that is on the chain. `allowance` and `amount` are in base units.
    ///
    /// No approval is sent if the allowance covers the amount; otherwise the verified one is sent. An allowance that is too small but
    /// not zero is first set to zero, because some tokens accept a new one only then.
    #[must_use]
    pub fn for_allowance(allowance: U256, amount: U256) -> Self {
        if allowance >= amount {
            ApprovalStep::AlreadyApproved.into()
        } else if allowance.is_zero() {
            ApprovalStep::AsVerified.into()
        } else {
            Self::new(ApprovalStep::AsVerified).with_reset()
        }
    }

    /// Adds a transaction that sets the allowance to zero first.
    #[must_use]
    pub const fn with_reset(mut self) -> Self {
        self.reset_first = true;
        self
    }

    /// Returns the approvals to send, in their order, for a deposit of `amount` base units.
    pub fn approvals<C>(self, approval: Option<&Approval<C>>, amount: U256) -> Vec<(Role, Approve)> {
        let Some(approval) = approval.filter(|_| self.step != ApprovalStep::AlreadyApproved) else { return Vec::new() };
        let spender = approval.signed.spender;
        let signed = if self.step == ApprovalStep::Exact { Approve { spender, amount } } else { approval.signed };
        let reset = self.reset_first.then_some((Role::ApprovalReset, Approve { spender, amount: U256::ZERO }));
        reset.into_iter().chain([(Role::Approval, signed)]).collect()
    }
}

#[cfg(test)]
mod tests {
    use alloy_primitives::Address;

    use super::*;

    fn approval(proposed: u64, signed: u64) -> Approval<()> {
        let approve = |amount| Approve { spender: Address::repeat_byte(7), amount: U256::from(amount) };
        Approval { call: (), proposed: approve(proposed), signed: approve(signed), is_exact: false }
    }

    fn amounts(plan: ApprovalPlan, approval: Option<&Approval<()>>) -> Vec<(Role, u64)> {
        let approvals = plan.approvals(approval, U256::from(5));
        assert!(approvals.iter().all(|(_, approve)| approve.spender == Address::repeat_byte(7)), "the spender is never another");
        approvals.into_iter().map(|(role, approve)| (role, approve.amount.to())).collect()
    }

    #[test]
    fn a_plan_says_which_approvals_are_sent() {
        let (unlimited, plan) = (approval(900, 800), ApprovalPlan::new);
        assert_eq!(amounts(plan(ApprovalStep::AsVerified), Some(&unlimited)), [(Role::Approval, 800)]);
        assert_eq!(amounts(plan(ApprovalStep::Exact), Some(&unlimited)), [(Role::Approval, 5)]);
        assert_eq!(amounts(plan(ApprovalStep::AlreadyApproved), Some(&unlimited)), []);
        let reset = plan(ApprovalStep::Exact).with_reset();
        assert_eq!(amounts(reset, Some(&unlimited)), [(Role::ApprovalReset, 0), (Role::Approval, 5)]);
        assert_eq!(amounts(plan(ApprovalStep::AlreadyApproved).with_reset(), Some(&unlimited)), []);
        assert_eq!(ApprovalPlan::default(), plan(ApprovalStep::AsVerified));
    }

    #[test]
    fn an_allowance_decides_about_the_approval() {
        let plan = |allowance: u64| ApprovalPlan::for_allowance(U256::from(allowance), U256::from(5));
        assert_eq!([plan(5), plan(900)].map(|plan| plan.step), [ApprovalStep::AlreadyApproved; 2]);
        assert_eq!((plan(0).step, plan(0).reset_first), (ApprovalStep::AsVerified, false));
        assert_eq!((plan(4).step, plan(4).reset_first), (ApprovalStep::AsVerified, true));
    }

    #[test]
    fn an_order_without_an_approval_sends_none_whatever_is_planned() {
        for step in [ApprovalStep::AsVerified, ApprovalStep::Exact, ApprovalStep::AlreadyApproved] {
            assert_eq!(amounts(ApprovalPlan::new(step).with_reset(), None), []);
        }
    }
}
