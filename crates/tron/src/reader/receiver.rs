//! Whether a token lets the receiver of an HTLC be paid.

use countersign_core::Refusal;
use countersign_core::reader::{Ask, Fault, Identity, Judged, Known, Question, Replies, Request};
use countersign_evm_core::read;
use countersign_evm_core::transfer::check_receiver;

use super::call::Call;
use super::preflight::failure;
use super::{OnChain, View};
use crate::Address;

/// Who will be paid by which contract, in which token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "callers construct it")]
pub struct Receiver {
    /// The token.
    pub token: Address,
    /// The HTLC that pays.
    pub htlc: Address,
    /// The account that receives.
    pub receiver: Address,
}

/// Checks that a token has not frozen the receiver: see [`check_receiver`].
pub type ReceiverCheck = Ask<OnChain<Receiver>>;

impl Question for OnChain<Receiver> {
    type Output = Judged<()>;

    fn identity(&self) -> Result<Identity, Refusal> {
        Ok(super::identity(self.chain_id))
    }

    fn requests(&self) -> Vec<Request> {
        let Receiver { token, htlc, receiver } = self.subject;
        let transfer = |(sender, to): (Address, Address)| Call { sender, to: token, value: 0, data: read::empty_transfer_call(to.bytes()) };
        [(htlc, htlc), (htlc, receiver), (receiver, htlc)].map(|pair| transfer(pair).request(View::Newest)).into()
    }

    fn read(&self, replies: &Replies<'_>, _: &Known) -> Result<Judged<()>, Fault> {
        let outcome = |index: usize| failure(&replies.get(index)?);
        Ok(Judged(check_receiver(outcome(0)?, outcome(1)?, outcome(2)?)))
    }
}
