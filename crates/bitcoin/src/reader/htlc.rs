//! The state of an HTLC.
//!
//! | | Esplora | a node's RPC |
//! |---|---|---|
//! | first reading | newest block and lists; the output, its block and the id of its spender; the spender, its block, the parents | scan; newest header and block; the output, its proof, whether the mempool spends it |
//! | later readings | the known output by its outpoint; its block, the spender, the parents | the known output by its outpoint; newest header, the output and its proof |
//! | after the end, or if the server refuses to list the unspent outputs | up to 40 more pages of the history, and whether the outputs on them are spent | the mempool, or eight blocks one by one, and the proof of the spender; later readings search older blocks |

mod esplora;
mod rpc;
mod walk;

use bitcoin::{ScriptBuf, Transaction};
use countersign_core::reader::{Fault, Head, Identity, Known, Machine, Reader, Replies, Request, Turn};
use countersign_core::{Finding, HtlcTerms, Refusal, U256};

use self::walk::Searched;
use super::NamedChain;
use super::look::{self, Block, Kept, Look, Output};
use crate::address::Chain;
use crate::chain;
use crate::htlc::Tree;
use crate::recover::Funding;

/// Reads the state of an HTLC from one endpoint.
///
/// A locked HTLC has at least the amount of the terms, and the keys, timelock and secret hash that the address proves. `elapsed` counts
/// blocks as BIP-68 does: it is 1 in the block of the funding, and nodes relay a refund once it equals the timelock. An unconfirmed
/// funding has a depth of 0.
///
/// If several outputs that cover the amount pay the address, one of them decides: outputs in a block come first, then unspent ones, then
/// the one that was mined first. Once an output is known from an earlier reading and still in a block, it decides. Smaller outputs never
/// decide anything: alone, they make the state unclear.
///
/// [`ObservedAt`](countersign_core::ObservedAt) contains the block of the funding or, after the end, of the transaction that spent it. If
/// that transaction is not in a block, it contains the newest block, and the depth is 0. On Litecoin, an output that was paid with coins
/// from the extension block (MWEB) is [`Unclear`](countersign_core::HtlcState::Unclear) until it is 24 blocks deep.
#[derive(Debug)]
pub struct Htlc {
    terms: HtlcTerms,
    search: Search,
}

/// Reads the state of an HTLC from one endpoint.
pub type HtlcReader = Reader<Htlc>;

/// Finds the output that decides about an HTLC, and what has become of it.
#[derive(Debug)]
pub(super) struct Search {
    context: Context,
    /// `None` after the last round.
    state: Option<State>,
    learned: Known,
}

/// What stays the same in all rounds.
#[derive(Debug)]
struct Context {
    named: NamedChain,
    tree: Tree,
    amount: U256,
    known: Known,
}

#[derive(Debug)]
enum State {
    Esplora(esplora::State),
    Rpc(rpc::State),
}

/// The outcome of one round.
#[allow(clippy::large_enum_variant, reason = "it lives for a moment")]
enum Step<S> {
    Ask(S, Vec<Request>),
    Done(Head, Look),
    /// Done after a search of blocks, which later readings continue.
    Searched(Head, Look, Searched),
}

impl Machine for Htlc {
    type Subject = HtlcTerms;
    type Output = Finding;
    const MAX_ROUNDS: usize = Search::MAX_ROUNDS;

    fn start(terms: &HtlcTerms, known: &Known) -> Result<(Self, Vec<Request>), Refusal> {
        let named = NamedChain::from_network(&terms.network, &terms.chain)?;
        let tree = chain::tree(terms, named.chain)?;
        let (search, requests) = Search::start(named, tree, terms.amount, known);
        Ok((Self { terms: terms.clone(), search }, requests))
    }

    fn identity(&self) -> Identity {
        self.search.identity()
    }

    fn answer(&mut self, replies: &Replies<'_>) -> Result<Turn<Finding>, Fault> {
        Ok(match self.search.answer(replies)? {
            Turn::Ask(requests) => Turn::Ask(requests),
            Turn::Done((head, look)) => Turn::Done(look::judge(look, &head, &self.terms, self.search.context.named.chain.coin)?),
        })
    }

    fn learned(&self) -> Known {
        self.search.learned()
    }
}

impl Search {
    /// An HTLC that is open takes at most three rounds; one more if the output that was known has left the chain, and, on a node's RPC, one
    /// more for the check where a Litecoin payment comes from. The others are for pages of the history, or for eight blocks of a node, two
    /// each.
    pub(super) const MAX_ROUNDS: usize = 45;

    pub(super) fn start(named: NamedChain, tree: Tree, amount: U256, known: &Known) -> (Self, Vec<Request>) {
        let context = Context { named, tree, amount, known: known.clone() };
        let (state, requests) = if known.is_rpc() {
            let (state, requests) = rpc::State::start(&context);
            (State::Rpc(state), requests)
        } else {
            let (state, requests) = esplora::State::start(&context);
            (State::Esplora(state), requests)
        };
        (Self { context, state: Some(state), learned: Known::default() }, requests)
    }

    pub(super) fn identity(&self) -> Identity {
        self.context.named.identity(self.context.known.is_rpc())
    }

    pub(super) fn answer(&mut self, replies: &Replies<'_>) -> Result<Turn<(Head, Look)>, Fault> {
        let step = match self.state.take() {
            Some(State::Esplora(state)) => state.answer(&self.context, replies)?.map(State::Esplora),
            Some(State::Rpc(state)) => state.answer(&self.context, replies)?.map(State::Rpc),
            None => return Err(Fault::TooMuch("the reading has ended")),
        };
        match step {
            Step::Ask(state, requests) => {
                self.state = Some(state);
                Ok(Turn::Ask(requests))
            }
            Step::Done(head, look) => {
                self.learn(&head, &look)?;
                Ok(Turn::Done((head, look)))
            }
            Step::Searched(head, look, searched) => {
                self.learn(&head, &look)?;
                self.learned = self.learned.clone().with_progress(self.context.address(), searched.to_bytes());
                Ok(Turn::Done((head, look)))
            }
        }
    }

    pub(super) fn learned(&self) -> Known {
        self.learned.clone()
    }

    fn learn(&mut self, head: &Head, look: &Look) -> Result<(), Fault> {
        self.context.named.check_height(&self.context.known, head.height)?;
        self.learned = Known::default().with_height(head.height);
        if let Look::Output(Output { funding, block: Some(Block { height, .. }), .. }) = look {
            let kept = Kept { outpoint: funding.outpoint, height: *height };
            self.learned = self.learned.clone().with_hint(self.context.hint(), kept.to_bytes());
        }
        Ok(())
    }
}

impl<S> Step<S> {
    fn map<T>(self, wrap: impl FnOnce(S) -> T) -> Step<T> {
        match self {
            Self::Ask(state, requests) => Step::Ask(wrap(state), requests),
            Self::Done(head, look) => Step::Done(head, look),
            Self::Searched(head, look, searched) => Step::Searched(head, look, searched),
        }
    }
}

impl Context {
    const fn chain(&self) -> Chain {
        self.named.chain
    }

    fn script(&self) -> ScriptBuf {
        self.tree.script_pubkey()
    }

    /// Returns the name of the hint that holds the output.
    fn hint(&self) -> String {
        Kept::name(&self.tree.address(self.chain()))
    }

    fn address(&self) -> String {
        self.tree.address(self.chain()).to_lowercase()
    }

    /// Returns the blocks that earlier readings have searched.
    fn searched(&self) -> Option<Searched> {
        Searched::parse(self.known.progress(&self.address())?)
    }

    /// Returns the output that an earlier reading has found in a block.
    fn kept(&self) -> Option<Kept> {
        Kept::parse(self.known.hint(&self.hint())?)
    }

    /// Returns the output of a transaction that was kept, if it pays the HTLC and covers the amount.
    fn kept_funding(&self, kept: Kept, transaction: &Transaction) -> Option<Funding> {
        let mut fundings = Funding::from_transaction(transaction, &self.tree).into_iter();
        fundings.find(|funding| funding.outpoint == kept.outpoint && U256::from(funding.value.to_sat()) >= self.amount)
    }
}
