//! How an order of the swap contract is funded: the wallet's choice, made before nonce and fees are asked for.

use alloy_primitives::U256;
use countersign_core::{Code, Refusal, Role};

use crate::call::{Approval, Approve};
use crate::typed_data::Message;

/// What to do with the token approval that an order comes with. Orders of native assets have none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum ApprovalStep {
    /// Send it as it was verified: as the service proposed it, or exact where the policy rewrites it.
    #[default]
    AsVerified,
    /// Send one of exactly the amount.
    Exact,
    /// Leave it out: an allowance that covers the amount is on the chain already.
    AlreadyApproved,
}

/// Which approvals precede the call that locks the funds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ApprovalPlan {
    /// What to do with the approval.
    pub step: ApprovalStep,
    /// Whether the allowance is set to zero first, as some tokens need where one is left over.
    pub reset_first: bool,
}

impl ApprovalPlan {
    /// Creates a plan.
    #[must_use]
    pub const fn new(step: ApprovalStep) -> Self {
        Self { step, reset_first: false }
    }

    /// Sets the allowance to zero first.
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

/// The gasless path: the owner signs a message, and the service sends and pays for the transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "it has nothing to configure")]
pub struct Gasless;

/// How an order is funded. `C` is what calls need: nonce and fees, or a reference block.
///
/// ```
/// use countersign_abi::funding::{FundingPath, Gasless};
///
/// let path: FundingPath<u64> = Gasless.into();
/// assert_eq!(path, FundingPath::Gasless);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "an order is funded by calls, by a message, or prepared for either")]
pub enum FundingPath<C> {
    /// The owner signs the gasless message only.
    Gasless,
    /// The sender signs and broadcasts the calls.
    Calls(C),
    /// Both are prepared, where the order offers both. Submit only one of them.
    Both(C),
}

impl<C> From<Gasless> for FundingPath<C> {
    fn from(_: Gasless) -> Self {
        Self::Gasless
    }
}

impl<C> FundingPath<C> {
    /// Returns what calls need, where calls are prepared.
    #[must_use]
    pub const fn calls(&self) -> Option<&C> {
        match self {
            Self::Gasless => None,
            Self::Calls(calls) | Self::Both(calls) => Some(calls),
        }
    }

    /// Returns the gasless message, where the path has it.
    ///
    /// # Errors
    ///
    /// [`Code::NothingToSign`] if only the message is wanted and the order has none.
    pub fn message(&self, offered: Option<&Message>) -> Result<Option<Message>, Refusal> {
        match self {
            Self::Gasless if offered.is_none() => {
                Err(Refusal::new(Code::NothingToSign, "").with_reason("this order has no gasless funding path"))
            }
            Self::Gasless | Self::Both(_) => Ok(offered.cloned()),
            Self::Calls(_) => Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use alloy_primitives::{Address, B256};

    use super::*;
    use crate::call::Initiate;

    fn approval(proposed: u64, signed: u64) -> Approval<()> {
        let approve = |amount| Approve { spender: Address::repeat_byte(7), amount: U256::from(amount) };
        Approval { call: (), proposed: approve(proposed), signed: approve(signed) }
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
    fn an_order_without_an_approval_sends_none_whatever_is_planned() {
        for step in [ApprovalStep::AsVerified, ApprovalStep::Exact, ApprovalStep::AlreadyApproved] {
            assert_eq!(amounts(ApprovalPlan::new(step).with_reset(), None), []);
        }
    }

    #[test]
    fn a_path_has_the_message_where_it_is_wanted_and_offered() {
        let terms = Initiate {
            initiator: None,
            redeemer: Address::repeat_byte(2),
            timelock: U256::from(7200),
            amount: U256::from(5),
            secret_hash: B256::repeat_byte(3),
            destination_data: None,
        };
        let message = Message::for_tests(terms);
        let has = |path: FundingPath<u8>, offered: Option<&Message>| path.message(offered).map(|message| message.is_some());
        assert!(has(FundingPath::Gasless, Some(&message)).unwrap());
        assert!(has(FundingPath::Both(1), Some(&message)).unwrap());
        assert!(!has(FundingPath::Calls(1), Some(&message)).unwrap());
        assert!(!has(FundingPath::Both(1), None).unwrap());
        assert!(!has(FundingPath::Calls(1), None).unwrap());
        let refusal = has(FundingPath::Gasless, None).unwrap_err();
        assert_eq!((refusal.code(), refusal.location()), (Code::NothingToSign, ""));
    }

    #[test]
    fn calls_are_prepared_on_every_path_but_the_gasless_one() {
        assert_eq!(FundingPath::from(Gasless).calls(), None::<&u8>);
        assert_eq!((FundingPath::Calls(1).calls(), FundingPath::Both(2).calls()), (Some(&1), Some(&2)));
    }
}
