//! The state of an HTLC.
//!
//! | | Esplora | a node's RPC |
//! |---|---|---|
//! | first reading | newest block and lists; the output, its block and the id of its spender; the spender, its block, the parents | scan; newest header and block; the output, its proof, whether the mempool spends it |
//! | later readings | the known output by its outpoint; its block, the spender, the parents | the known output by its outpoint; newest header, the output and its proof |
//! | after the end | up to nine more pages of the history, if no list shows the output | the mempool, or the newest eight blocks one by one, and the proof of the spender |

mod esplora;
mod rpc;

use bitcoin::{ScriptBuf, Transaction};
use countersign_core::reader::{Fault, Head, Identity, Known, Machine, Reader, Replies, Request, Turn};
use countersign_core::{Finding, HtlcTerms, Refusal, U256};

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
/// [`SeenAt`](countersign_core::SeenAt) contains the block of the funding or, after the end, of the transaction that spent it. If that
/// transaction is not in a block, it contains the newest block, and the depth is 0. On Litecoin, an output that was paid with coins from
/// the extension block (MWEB) is [`Unclear`](countersign_core::HtlcState::Unclear) until it is 24 blocks deep.
#[derive(Debug)]
pub struct Htlc {
    context: Context,
    /// `None` after the last round.
    state: Option<State>,
    learned: Known,
}

/// Reads the state of an HTLC from one endpoint.
pub type HtlcReader = Reader<Htlc>;

/// What stays the same in all rounds.
#[derive(Debug)]
struct Context {
    named: NamedChain,
    terms: HtlcTerms,
    tree: Tree,
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
}

impl Machine for Htlc {
    type Subject = HtlcTerms;
    type Output = Finding;
    /// An HTLC that is open takes at most three rounds; one more if the output that was known has left the chain, and, on a node's RPC, one
    /// more for the check where a Litecoin payment comes from. The others are for pages of the history, or for the newest eight blocks of
    /// a node, one each.
    const MAX_ROUNDS: usize = 13;

    fn start(terms: &HtlcTerms, known: &Known) -> Result<(Self, Vec<Request>), Refusal> {
        let named = NamedChain::from_network(&terms.network, &terms.chain)?;
        let context = Context { tree: chain::tree(terms, named.chain)?, named, terms: terms.clone(), known: known.clone() };
        let (state, requests) = if known.is_rpc() {
            let (state, requests) = rpc::State::start(&context);
            (State::Rpc(state), requests)
        } else {
            let (state, requests) = esplora::State::start(&context);
            (State::Esplora(state), requests)
        };
        Ok((Self { context, state: Some(state), learned: Known::default() }, requests))
    }

    fn identity(&self) -> Identity {
        self.context.named.identity(self.context.known.is_rpc())
    }

    fn answer(&mut self, replies: &Replies<'_>) -> Result<Turn<Finding>, Fault> {
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
            Step::Done(head, look) => self.finish(&head, look).map(Turn::Done),
        }
    }

    fn learned(&self) -> Known {
        self.learned.clone()
    }
}

impl Htlc {
    fn finish(&mut self, head: &Head, look: Look) -> Result<Finding, Fault> {
        let Context { named, terms, known, .. } = &self.context;
        named.check_height(known, head.height)?;
        self.learned = Known::default().with_height(head.height);
        if let Look::Output(Output { funding, block: Some(Block { height, .. }), .. }) = look {
            let kept = Kept { outpoint: funding.outpoint, height };
            self.learned = self.learned.clone().with_hint(Kept::name(terms), kept.to_bytes());
        }
        look::judge(look, head, terms, named.chain.coin)
    }
}

impl<S> Step<S> {
    fn map<T>(self, wrap: impl FnOnce(S) -> T) -> Step<T> {
        match self {
            Self::Ask(state, requests) => Step::Ask(wrap(state), requests),
            Self::Done(head, look) => Step::Done(head, look),
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

    /// Returns the output that an earlier reading has found in a block.
    fn kept(&self) -> Option<Kept> {
        Kept::parse(self.known.hint(&Kept::name(&self.terms))?)
    }

    /// Returns the output of a transaction that was kept, if it pays the HTLC and covers the amount.
    fn kept_funding(&self, kept: Kept, transaction: &Transaction) -> Option<Funding> {
        let mut fundings = Funding::from_transaction(transaction, &self.tree).into_iter();
        fundings.find(|funding| funding.outpoint == kept.outpoint && U256::from(funding.value) >= self.terms.amount)
    }
}
