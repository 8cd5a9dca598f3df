//! What a Starknet order locks: its calls and its message.

use countersign_core::{ApprovalStep, Role, U256};
use starknet_types_core::felt::Felt;

use crate::htlc::{Approve, Initiate};
use crate::message::Message;
use crate::payloads::Unsigned;
use crate::transaction::Call;

/// The deposit of an order: its calls and its message, rebuilt from the order's own terms.
#[derive(Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Deposit {
    /// Chain id of the pinned asset, as a short string.
    pub chain_id: Felt,
    /// The account that sends and pays: the delegate if there is one, else the owner.
    pub sender: Felt,
    /// The token approval; `None` if the order needs none.
    pub approval: Option<Approval>,
    /// The call that locks the funds.
    pub initiate: Call,
    /// The decoded arguments of that call.
    pub terms: Initiate,
    /// Data for the destination, which the contract only logs; `None` if the function does not take it.
    pub destination_data: Option<Vec<Felt>>,
    /// The gasless message; `None` if the order has no gasless path.
    pub typed_data: Option<Message>,
    pub(crate) initiate_key: &'static str,
    /// The swap id of the order record.
    pub(crate) recorded_id: Option<String>,
}

/// A token approval, as the service proposed it and as it will be signed.
#[derive(Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Approval {
    /// The call that will be signed.
    pub call: Call,
    /// The approval that the service proposed.
    pub proposed: Approve,
    /// The approval that will be signed: the proposed one, or one for exactly the amount if the policy rewrites approvals.
    pub signed: Approve,
}

impl Approval {
    /// Returns the approval call of a step, for a deposit of `amount` base units; `None` if the step leaves it out.
    pub(crate) fn step(&self, step: ApprovalStep, amount: U256) -> Option<Call> {
        match step {
            ApprovalStep::AsVerified => Some(self.call.clone()),
            ApprovalStep::Exact => {
                let exact = Approve { amount, ..self.signed };
                Some(Call::new(self.call.to, self.call.selector, exact.encode()))
            }
            ApprovalStep::AlreadyApproved => None,
        }
    }
}

impl Deposit {
    /// Returns the calls of the order's transaction in their order: the approval of the step, then the call that locks the funds.
    ///
    /// They are for `account.execute_v3` of starknet-rs. For browser wallets see [`external`](crate::external).
    #[must_use]
    pub fn calls(&self, approval: ApprovalStep) -> Vec<(Role, Call)> {
        let approve = self.approval.as_ref().and_then(|proposal| proposal.step(approval, self.terms.amount));
        approve.map(|call| (Role::Approval, call)).into_iter().chain([(Role::Initiate, self.initiate.clone())]).collect()
    }

    /// Returns the calls without their roles, as one transaction makes them.
    pub(crate) fn send(&self, approval: ApprovalStep) -> Vec<Call> {
        self.calls(approval).into_iter().map(|(_, call)| call).collect()
    }

    /// Returns the amount of the approval among the prepared calls; `None` if there is none.
    pub(crate) fn sent_approval(&self, unsigned: &Unsigned) -> Option<U256> {
        let approval = self.approval.as_ref()?;
        let calls = &unsigned.invoke.as_ref()?.invoke.calls;
        [ApprovalStep::AsVerified, ApprovalStep::Exact].into_iter().find_map(|step| {
            let call = approval.step(step, self.terms.amount)?;
            let amount = if step == ApprovalStep::Exact { self.terms.amount } else { approval.signed.amount };
            calls.contains(&call).then_some(amount)
        })
    }
}
