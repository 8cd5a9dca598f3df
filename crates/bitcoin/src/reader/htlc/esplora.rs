//! An HTLC through an Esplora server.

use std::collections::BTreeMap;
use std::sync::Arc;

use bitcoin::{OutPoint, Transaction, Txid};
use countersign_core::json::Cursor;
use countersign_core::reader::{Fault, Head, Replies, Reply, Request};
use countersign_core::{Code, Refusal, U256, sort};

use super::super::esplora::{self, FULL_PAGE, History, MAX_PAGES};
use super::super::look::{self, Block, Claim, HtlcEnd, Kept, Look, Output, Parents};
use super::{Context, Step};
use crate::chain;
use crate::recover::Funding;

/// The maximum number of outputs that a server is asked about one by one, because it refuses to list the unspent ones.
const MAX_ASKED: usize = 25;

const TOO_MANY: &str = "no unspent output covers the amount, and the address has more transactions than are read";
const TOO_SMALL: &str = "the address holds or held outputs, but none that covers the amount: only a refund returns them";

#[derive(Debug)]
pub(super) enum State {
    /// Asked for the output that is known, by its outpoint.
    Kept(Kept),
    /// Asked for the lists, and for the newest block unless it is known.
    Lists(Option<Head>),
    /// Asked for another page of the history.
    Page { head: Head, listed: Listed, pages: usize },
    /// Asked whether these outputs are spent.
    Unspent { head: Head, claims: Vec<Claim> },
    /// Asked for the output and its block.
    Chosen { head: Head, claim: Claim },
    /// Asked for what is missing.
    Rest(Found),
}

/// What the server lists.
#[derive(Debug, Default)]
pub(super) struct Listed {
    /// The outputs that cover the amount.
    covering: BTreeMap<OutPoint, Claim>,
    /// Whether there are any others.
    has_small: bool,
    /// Whether the server lists which outputs are unspent.
    knows_unspent: bool,
}

impl Listed {
    /// Adds outputs. What is already known about an output stays.
    fn add(&mut self, claims: Vec<Claim>, amount: U256) {
        for claim in claims {
            if claim.covers(amount) {
                self.covering.entry(claim.funding.outpoint).or_insert(claim);
            } else {
                self.has_small = true;
            }
        }
    }
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
                let unspent = esplora::read_unspent(&replies.get(0)?)?;
                let mut listed = Listed { knows_unspent: unspent.is_some(), ..Listed::default() };
                listed.add(unspent.unwrap_or_default(), context.amount);
                history(context, head, listed, 0, replies.json(1)?)
            }
            Self::Page { head, listed, pages } => history(context, head, listed, pages, replies.json(0)?),
            Self::Unspent { head, mut claims } => {
                for (claim, reply) in claims.iter_mut().zip(replies.all()) {
                    claim.is_unspent = esplora::read_outspend(reply.json()?)?.is_none();
                }
                Ok(ask_chosen(head, look::choose(&claims, context.amount)))
            }
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
                Some(HtlcEnd { by: Some((Arc::new(transaction), how)), block })
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
fn history(context: &Context, head: Head, mut listed: Listed, pages: usize, page: Cursor<'_, '_>) -> Result<Step<State>, Fault> {
    let script = context.script();
    let History { claims, last, mined } = esplora::read_history(page, &script)?;
    listed.add(claims, context.amount);
    let chosen = look::choose(listed.covering.values(), context.amount);
    let is_certain = chosen.is_some_and(|claim| claim.is_unspent && claim.height.is_some());
    let next = last.filter(|_| mined >= FULL_PAGE && !is_certain);
    if let Some(last) = next.filter(|_| pages < MAX_PAGES) {
        let state = State::Page { head, listed, pages: pages.saturating_add(1) };
        return Ok(Step::Ask(state, vec![esplora::history(&script, Some(last))]));
    }
    if chosen.is_none() {
        let look = match next {
            Some(_) => Look::Unclear(TOO_MANY),
            None if listed.has_small => Look::Unclear(TOO_SMALL),
            None => Look::Nothing,
        };
        return Ok(Step::Done(head, look));
    }
    // The endpoints choose by which outputs are unspent, so this one must know it too.
    if !listed.knows_unspent && listed.covering.len() > 1 {
        let mut claims: Vec<_> = listed.covering.into_values().collect();
        let key = |claim: &Claim| (claim.height.is_none(), claim.height, claim.funding.outpoint);
        sort::by(&mut claims, |one, other| key(one).cmp(&key(other)));
        claims.truncate(MAX_ASKED);
        let requests = claims.iter().map(|claim| esplora::outspend(claim.funding.outpoint)).collect();
        return Ok(Step::Ask(State::Unspent { head, claims }, requests));
    }
    Ok(ask_chosen(head, chosen))
}

/// Asks for the chosen output and its block.
fn ask_chosen(head: Head, chosen: Option<Claim>) -> Step<State> {
    let Some(claim) = chosen else { return Step::Done(head, Look::Unclear(TOO_MANY)) };
    let outpoint = claim.funding.outpoint;
    let mut requests = vec![esplora::raw(outpoint.txid), esplora::outspend(outpoint)];
    requests.extend(esplora::block(outpoint.txid, claim.block()));
    Step::Ask(State::Chosen { head, claim }, requests)
}

fn parents(context: &Context, head: &Head, block: Option<Block>, is_spent: bool, transaction: &Transaction) -> Parents {
    // How an output was spent does not depend on where it came from.
    if is_spent { Parents::Irrelevant } else { Parents::new(transaction, context.chain(), block, head) }
}
