//! The payment of an HTLC: the output that a redemption or a refund spends.

use std::sync::Arc;

use bitcoin::{Amount, BlockHash, OutPoint, Transaction};
use countersign_core::reader::{Agree, Fault, Identity, Known, Machine, Replies, Request, Turn};
use countersign_core::{Refusal, U256};

use super::htlc::Search;
use super::look::{HtlcEnd, Look, Output};
use super::{NamedChain, OnChain};
use crate::chain::HtlcSpend;
use crate::htlc::Tree;
use crate::recover::Funding;

/// An HTLC, and the amount that its payment must cover.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Deposit {
    /// The HTLC.
    pub tree: Tree,
    /// The amount.
    pub amount: Amount,
}

impl Deposit {
    /// Creates the subject of a reading.
    #[must_use]
    pub const fn new(tree: Tree, amount: Amount) -> Self {
        Self { tree, amount }
    }
}

/// Finds the payment of an HTLC by the rule of the evidence ([`Htlc`](super::Htlc)), so that a transaction spends exactly the output that
/// the evidence is about.
#[derive(Debug)]
pub struct PaymentSearch(Search);

/// What one endpoint shows of the payment of an HTLC.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "there is a payment or not")]
pub enum FoundPayment {
    /// No output in a block covers the amount, and why.
    None(String),
    /// This output.
    Output(PaymentOutput),
}

/// The output that pays an HTLC.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PaymentOutput {
    /// The outpoint and the value.
    pub funding: Funding,
    /// The hash of its block.
    pub block: BlockHash,
    /// What spends it, in the mempool or in a block.
    pub spend: Option<PaymentSpend>,
}

/// What spends the payment of an HTLC.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PaymentSpend {
    /// The transaction, and how it spends the output; `None` if a node does not identify it.
    pub by: Option<(Arc<Transaction>, HtlcSpend)>,
    /// Whether the transaction is in a block.
    pub is_mined: bool,
}

impl Agree for FoundPayment {
    type Key = Option<(OutPoint, Amount, BlockHash)>;

    /// Returns the output alone. What spends it is a question to each endpoint, because mempools differ.
    fn key(&self) -> Self::Key {
        match self {
            Self::None(_) => None,
            Self::Output(PaymentOutput { funding, block, .. }) => Some((funding.outpoint, funding.value, *block)),
        }
    }
}

impl Machine for PaymentSearch {
    type Subject = OnChain<Deposit>;
    type Output = FoundPayment;
    const MAX_ROUNDS: usize = Search::MAX_ROUNDS;

    fn start(subject: &Self::Subject, known: &Known) -> Result<(Self, Vec<Request>), Refusal> {
        let Deposit { tree, amount } = subject.subject;
        let NamedChain { chain, name } = &subject.chain;
        let (search, requests) = Search::start(NamedChain::new(*chain, name), tree, U256::from(amount.to_sat()), known);
        Ok((Self(search), requests))
    }

    fn identity(&self) -> Identity {
        self.0.identity()
    }

    fn answer(&mut self, replies: &Replies<'_>) -> Result<Turn<FoundPayment>, Fault> {
        let look = match self.0.answer(replies)? {
            Turn::Ask(requests) => return Ok(Turn::Ask(requests)),
            Turn::Done((_, look)) => look,
        };
        let none = |why: &str| FoundPayment::None(why.to_owned());
        Ok(Turn::Done(match look {
            Look::Nothing => none("nothing was paid to the address"),
            Look::Unclear(why) => none(why),
            Look::Output(Output { block: None, spend: None, .. }) => none("the payment is not in a block yet"),
            Look::Output(Output { block: None, .. }) => none("the payment was spent, and the endpoint does not show it"),
            Look::Output(Output { funding, block: Some(block), spend, .. }) => {
                let spend = spend.map(|HtlcEnd { by, block }| PaymentSpend { by, is_mined: block.is_some() });
                FoundPayment::Output(PaymentOutput { funding, block: block.hash, spend })
            }
        }))
    }

    fn learned(&self) -> Known {
        self.0.learned()
    }
}
