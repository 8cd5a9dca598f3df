//! An HTLC through an Esplora server.

use bitcoin::{Transaction, Txid};
use countersign_core::json::Node;
use countersign_core::reader::{Fault, Head, Replies, Reply, Request};
use countersign_core::{Code, Refusal};

use super::super::esplora::{self, History};
use super::super::look::{self, Block, Claim, HtlcEnd, Kept, Look, Output, Parents};
use super::{Context, Step};
use crate::chain;
use crate::recover::Funding;

/// The maximum number of further pages of the history that are read.
const MAX_PAGES: usize = 9;

/// The number of mined transactions on a page from which there may be another page. Servers show 25 a page, some of them 10.
const FULL_PAGE: usize = 10;

const TOO_MANY: &str = "no unspent output covers the amount, and the address has more transactions than are read";
const TOO_SMALL: &str = "the address holds or held outputs, but none that covers the amount: only a refund returns them";

#[derive(Debug)]
pub(super) enum State {
    /// Asked for the output that is known, by its outpoint.
    Kept(Kept),
    /// Asked for the lists, and for the newest block unless it is known.
    Lists(Option<Head>),
    /// Asked for another page of the history.
    Page { head: Head, claims: Vec<Claim>, pages: usize },
    /// Asked for the output and its block.
    Chosen { head: Head, claim: Claim },
    /// Asked for what is missing.
    Rest(Found),
}

/// An output that covers the amount.
#[derive(Debug)]
pub(super) struct Found {
    head: Head,
    funding: Funding,
    block: Option<Block>,
    /// Whether the block is known to be the one at its height.
    is_checked: bool,
    /// The id of the transaction that spends the output, and its block.
    spender: Option<(Txid, Option<Block>)>,
    parents: Parents,
}

impl State {
    pub(super) fn start(context: &Context) -> (Self, Vec<Request>) {
        let Some(kept) = context.kept() else { return Self::lists(context, None) };
        let Kept { outpoint, .. } = kept;
        let output = [esplora::status(outpoint.txid), esplora::raw(outpoint.txid), esplora::outspend(outpoint)];
        (Self::Kept(kept), [esplora::newest()].into_iter().chain(output).collect())
    }

    fn lists(context: &Context, head: Option<Head>) -> (Self, Vec<Request>) {
        let script = context.script();
        let mut requests = vec![esplora::unspent(&script), esplora::history(&script, None)];
        if head.is_none() {
            requests.push(esplora::newest());
        }
        (Self::Lists(head), requests)
    }

    pub(super) fn answer(self, context: &Context, replies: &Replies<'_>) -> Result<Step<Self>, Fault> {
        match self {
            Self::Kept(kept) => kept_output(context, kept, replies),
            Self::Lists(head) => {
                let head = match head {
                    Some(head) => head,
                    None => esplora::read_newest(replies.json(2)?, context.chain())?,
                };
                let claims = esplora::read_unspent(replies.json(0)?)?;
                history(context, head, claims, 0, replies.json(1)?)
            }
            Self::Page { head, claims, pages } => history(context, head, claims, pages, replies.json(0)?),
            Self::Chosen { head, claim } => {
                let (block, txid) = (claim.block(), claim.funding.outpoint.txid);
                let transaction = esplora::read_transaction(&replies.get(0)?, txid)?;
                let funding = look::proven(&transaction, &context.tree, claim.funding)?;
                let spender = esplora::read_outspend(replies.json(1)?)?;
                esplora::check_block(&mut replies.all().iter().copied().skip(2), txid, block, context.chain())?;
                let parents = parents(context, &head, block, spender.is_some(), &transaction);
                Found { head, funding, block, is_checked: true, spender, parents }.ask(context)
            }
            Self::Rest(found) => found.read(context, &mut replies.all().iter().copied()),
        }
    }
}

impl Found {
    /// Asks for what is missing about the output, or ends the reading if nothing is.
    fn ask(self, context: &Context) -> Result<Step<State>, Fault> {
        let mut requests = Vec::new();
        if !self.is_checked {
            requests.extend(esplora::block(self.funding.outpoint.txid, self.block));
        }
        if let Some((txid, block)) = self.spender {
            requests.push(esplora::raw(txid));
            requests.extend(esplora::block(txid, block));
        }
        requests.extend(self.parents.txids().iter().map(|txid| esplora::raw(*txid)));
        if requests.is_empty() { self.read(context, &mut std::iter::empty()) } else { Ok(Step::Ask(State::Rest(self), requests)) }
    }

    fn read<'r>(self, context: &Context, replies: &mut impl Iterator<Item = Reply<'r>>) -> Result<Step<State>, Fault> {
        let Self { head, funding, block, is_checked, spender, parents } = self;
        if !is_checked {
            esplora::check_block(replies, funding.outpoint.txid, block, context.chain())?;
        }
        let spend = match spender {
            Some((txid, block)) => {
                let raw = replies.next().ok_or_else(|| Refusal::new(Code::MissingField, "/transaction"))?;
                let transaction = esplora::read_transaction(&raw, txid)?;
                esplora::check_block(replies, txid, block, context.chain())?;
                let how = chain::read_spend(&context.tree, funding.outpoint, &transaction)?;
                Some(HtlcEnd { by: Some((txid, how)), block })
            }
            None => None,
        };
        let is_from_mweb = parents.is_from_mweb(replies.map(|reply| Ok(Some(reply.bytes()?.to_vec()))))?;
        Ok(Step::Done(head, Look::Output(Output { funding, block, spend, is_from_mweb })))
    }
}

/// Reads the output that is known, or starts again with the lists if it is no longer in a block.
fn kept_output(context: &Context, kept: Kept, replies: &Replies<'_>) -> Result<Step<State>, Fault> {
    let head = esplora::read_newest(replies.json(0)?, context.chain())?;
    let txid = kept.outpoint.txid;
    if let Some(block @ Some(_)) = esplora::read_status(&replies.get(1)?, txid)? {
        let transaction = esplora::read_transaction(&replies.get(2)?, txid)?;
        let spender = esplora::read_outspend(replies.json(3)?)?;
        if let Some(funding) = context.kept_funding(kept, &transaction) {
            let parents = parents(context, &head, block, spender.is_some(), &transaction);
            return Found { head, funding, block, is_checked: false, spender, parents }.ask(context);
        }
    }
    let (state, requests) = State::lists(context, Some(head));
    Ok(Step::Ask(state, requests))
}

/// Chooses the output from what is listed so far, and follows the pages of the history unless it is in a block and unspent: then nothing
/// on another page could come before it.
fn history(context: &Context, head: Head, mut claims: Vec<Claim>, pages: usize, page: Node<'_, '_>) -> Result<Step<State>, Fault> {
    let script = context.script();
    let History { claims: listed, last, mined } = esplora::read_history(page, &script)?;
    for claim in listed {
        if !claims.iter().any(|known| known.funding.outpoint == claim.funding.outpoint) {
            claims.push(claim);
        }
    }
    let chosen = look::choose(&claims, context.terms.amount);
    let is_certain = chosen.is_some_and(|claim| claim.is_unspent && claim.height.is_some());
    let next = last.filter(|_| mined >= FULL_PAGE && !is_certain);
    if let Some(last) = next.filter(|_| pages < MAX_PAGES) {
        let state = State::Page { head, claims, pages: pages.saturating_add(1) };
        return Ok(Step::Ask(state, vec![esplora::history(&script, Some(last))]));
    }
    let Some(claim) = chosen else {
        let look = match next {
            Some(_) => Look::Unclear(TOO_MANY),
            None if claims.is_empty() => Look::Nothing,
            None => Look::Unclear(TOO_SMALL),
        };
        return Ok(Step::Done(head, look));
    };
    let outpoint = claim.funding.outpoint;
    let mut requests = vec![esplora::raw(outpoint.txid), esplora::outspend(outpoint)];
    requests.extend(esplora::block(outpoint.txid, claim.block()));
    Ok(Step::Ask(State::Chosen { head, claim }, requests))
}

fn parents(context: &Context, head: &Head, block: Option<Block>, is_spent: bool, transaction: &Transaction) -> Parents {
    // How an output was spent does not depend on where it came from.
    if is_spent { Parents::Irrelevant } else { Parents::new(transaction, context.chain(), block, head) }
}
