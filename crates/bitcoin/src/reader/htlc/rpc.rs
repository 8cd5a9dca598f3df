//! An HTLC through a node's own RPC.

use std::sync::Arc;

use bitcoin::{Amount, BlockHash, OutPoint, Transaction, Txid};
use countersign_core::json::Cursor;
use countersign_core::reader::{Fault, Head, Replies, Request, RpcError};
use countersign_core::{BlockHeight, Code, Refusal};

use super::super::look::{self, Block, Claim, HtlcEnd, Kept, Look, Output, Parents};
use super::super::{parse, rpc};
use super::walk::{Spends, Walk};
use super::{Context, Step};
use crate::chain::{self, HtlcSpend};
use crate::recover::Funding;

/// The maximum size of a mempool that is searched for the transaction that spends an output, if the node has no method for that.
const MAX_MEMPOOL: usize = 500;

/// The height and the hash of the newest block.
pub(super) type Tip = (BlockHeight, BlockHash);

#[derive(Debug)]
pub(super) enum State {
    /// Asked for the newest block, the block at the known height, and the output without and with what the mempool spends.
    Kept(Kept),
    /// Asked for the newest header and the output that is known.
    KeptOutput { kept: Kept, tip: Tip, hash: BlockHash, is_spent: IsSpent },
    /// Asked for a scan.
    Scan,
    /// Asked for the newest header, and for the block of the output.
    Scanned { tip: Tip, claim: Claim },
    /// Asked for the newest header, and for the hash of the block at its height.
    NotListed { tip: Tip },
    /// Asked for the output, its proof, and whether the mempool spends it.
    Chosen { head: Head, claim: Claim, block: Block },
    /// Asked for the parents.
    Parents { found: Found, parents: Parents },
    /// Asked for the id of the transaction that spends the output, and for the size of the mempool.
    Spender(Found),
    /// Asked for the mempool.
    Mempool(Found),
    /// Asked for transactions in the mempool.
    Candidates { found: Found, txids: Vec<Txid> },
    /// Asked for a block.
    Walk(Walk),
    /// Asked for the proofs of the transactions that spend the HTLC, and for the transactions of the outputs that they spend.
    Spent { walk: Walk, block: Block, spends: Vec<Spends> },
}

/// Whether an output is spent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum IsSpent {
    /// It is not, and has this value.
    No(Amount),
    InMempool,
    InBlock,
}

/// An output that covers the amount.
#[derive(Debug)]
pub(super) struct Found {
    head: Head,
    funding: Funding,
    block: Block,
}

impl Found {
    fn done(self, spend: Option<HtlcEnd>, is_from_mweb: bool) -> Step<State> {
        let Self { head, funding, block } = self;
        Step::Done(head, Look::Output(Output { funding, block: Some(block), spend, is_from_mweb }))
    }

    /// Goes on with the transaction in the mempool that spends the output, or, for an unspent output, with where it came from.
    fn next(self, context: &Context, is_spent: bool, transaction: &Transaction) -> Step<State> {
        if is_spent {
            let requests = vec![rpc::spending(self.funding.outpoint), Request::json_rpc("getmempoolinfo", "[]")];
            return Step::Ask(State::Spender(self), requests);
        }
        match Parents::new(transaction, context.chain(), Some(self.block), &self.head) {
            Parents::Irrelevant => self.done(None, false),
            Parents::TooMany => self.done(None, true),
            parents @ Parents::Check(_) => {
                let requests = parents.txids().iter().map(|txid| rpc::transaction(*txid, None)).collect();
                Step::Ask(State::Parents { found: self, parents }, requests)
            }
        }
    }
}

impl State {
    pub(super) fn start(context: &Context) -> (Self, Vec<Request>) {
        let Some(kept) = context.kept() else { return Self::scan(context) };
        let Kept { outpoint, height } = kept;
        let requests = vec![rpc::tip(), rpc::block_hash(height), rpc::output(outpoint, false), rpc::output(outpoint, true)];
        (Self::Kept(kept), requests)
    }

    fn scan(context: &Context) -> (Self, Vec<Request>) {
        (Self::Scan, vec![rpc::scan(&context.script())])
    }

    fn ask_scan(context: &Context) -> Step<Self> {
        let (state, requests) = Self::scan(context);
        Step::Ask(state, requests)
    }

    pub(super) fn answer(self, context: &Context, replies: &Replies<'_>) -> Result<Step<Self>, Fault> {
        let chain = context.chain();
        match self {
            Self::Kept(kept) => read_kept(context, kept, replies),
            Self::KeptOutput { kept, tip, hash, is_spent } => read_kept_output(context, kept, tip, hash, is_spent, replies),
            Self::Scan => {
                let (tip, claims) = rpc::read_scan(replies.json(0)?)?;
                let header = [rpc::header(tip.1)].into_iter();
                Ok(match look::choose(&claims, context.amount) {
                    Some(claim) => {
                        let block = claim.height.map(rpc::block_hash);
                        Step::Ask(Self::Scanned { tip, claim }, header.chain(block).collect())
                    }
                    None => Step::Ask(Self::NotListed { tip }, header.chain([rpc::block_hash(tip.0)]).collect()),
                })
            }
            Self::Scanned { tip, claim } => {
                let head = rpc::read_head(replies.json(0)?, tip, chain)?;
                let hash = parse::block_hash(&replies.json(1)?)?;
                let OutPoint { txid, .. } = claim.funding.outpoint;
                let block = Block { height: claim.height.unwrap_or_default(), hash };
                let requests = vec![rpc::transaction(txid, Some(hash)), rpc::proof(txid, hash), rpc::output(claim.funding.outpoint, true)];
                Ok(Step::Ask(Self::Chosen { head, claim, block }, requests))
            }
            Self::NotListed { tip } => {
                let head = rpc::read_head(replies.json(0)?, tip, chain)?;
                check_tip(tip, &replies.json(1)?)?;
                Ok(Walk::new(context, head, tip, None).next())
            }
            Self::Chosen { head, claim, block } => {
                let txid = claim.funding.outpoint.txid;
                let transaction = rpc::read_transaction(&replies.get(0)?, txid)?;
                rpc::check_proof(&replies.get(1)?, txid, block.hash, chain)?;
                let funding = look::proven(&transaction, &context.tree, claim.funding)?;
                let value = rpc::read_value(replies.json(2)?)?;
                value.map_or(Ok(()), |value| rpc::check_value(value, funding))?;
                Ok(Found { head, funding, block }.next(context, value.is_none(), &transaction))
            }
            Self::Parents { found, parents } => {
                let is_from_mweb = parents.is_from_mweb(replies.all().iter().map(rpc::read_raw))?;
                Ok(found.done(None, is_from_mweb))
            }
            Self::Spender(found) => spender(found, replies),
            Self::Mempool(found) => {
                let list = replies.json(0)?;
                let txids = list.array()?.take(MAX_MEMPOOL).map(|txid| parse::txid(&txid)).collect::<Result<Vec<_>, _>>()?;
                Ok(candidates(found, txids))
            }
            Self::Candidates { found, txids } => {
                let outpoint = found.funding.outpoint;
                let by = search(context, outpoint, &txids, replies)?;
                Ok(found.done(Some(HtlcEnd { by, block: None }), false))
            }
            Self::Walk(walk) => walk.read_block(context, replies),
            Self::Spent { walk, block, spends } => walk.read_spent(context, block, spends, replies),
        }
    }
}

/// Reads where the known output is and whether it is spent. Scans if the node has no block at its height.
fn read_kept(context: &Context, kept: Kept, replies: &Replies<'_>) -> Result<Step<State>, Fault> {
    let tip = rpc::read_tip(replies.json(0)?)?;
    let Ok(hash) = replies.get(1)?.json_or_error()? else { return Ok(State::ask_scan(context)) };
    let hash = parse::block_hash(&hash)?;
    let is_spent = match (rpc::read_value(replies.json(2)?)?, rpc::read_value(replies.json(3)?)?) {
        (None, _) => IsSpent::InBlock,
        (Some(_), None) => IsSpent::InMempool,
        (Some(_), Some(value)) => IsSpent::No(value),
    };
    let txid = kept.outpoint.txid;
    let mut requests = vec![rpc::header(tip.1), rpc::transaction(txid, Some(hash)), rpc::proof(txid, hash)];
    if is_spent == IsSpent::InBlock {
        requests.push(rpc::block_hash(tip.0));
    }
    Ok(Step::Ask(State::KeptOutput { kept, tip, hash, is_spent }, requests))
}

/// Reads the known output. Scans if it is no longer in its block.
fn read_kept_output(
    context: &Context,
    kept: Kept,
    tip: Tip,
    hash: BlockHash,
    is_spent: IsSpent,
    replies: &Replies<'_>,
) -> Result<Step<State>, Fault> {
    let head = rpc::read_head(replies.json(0)?, tip, context.chain())?;
    let txid = kept.outpoint.txid;
    let Some(raw) = rpc::read_raw(&replies.get(1)?)? else { return Ok(State::ask_scan(context)) };
    let transaction = chain::parse_transaction(&raw, txid)?;
    let Some(funding) = context.kept_funding(kept, &transaction) else { return Ok(State::ask_scan(context)) };
    rpc::check_proof(&replies.get(2)?, txid, hash, context.chain())?;
    let block = Block { height: kept.height, hash };
    match is_spent {
        IsSpent::InBlock => {
            check_tip(tip, &replies.json(3)?)?;
            return Ok(Walk::new(context, head, tip, Some((funding, block))).next());
        }
        IsSpent::InMempool => {}
        IsSpent::No(value) => rpc::check_value(value, funding)?,
    }
    Ok(Found { head, funding, block }.next(context, is_spent == IsSpent::InMempool, &transaction))
}

/// Requires that the newest block is the one at its height.
fn check_tip((_, newest): Tip, hash: &Cursor<'_, '_>) -> Result<(), Refusal> {
    if parse::block_hash(hash)? == newest {
        return Ok(());
    }
    Err(Refusal::new(Code::FundingMismatch, "/block").with_reason("the newest block is not at its height"))
}

/// Reads the id of the transaction in the mempool that spends the output. Newer nodes have a method for it. Otherwise a small mempool is
/// searched.
fn spender(found: Found, replies: &Replies<'_>) -> Result<Step<State>, Fault> {
    let txid = match replies.get(0)?.json_or_error()? {
        Ok(list) => {
            let first = list.array()?.next().ok_or_else(|| list.at().refuse(Code::MissingField))?;
            first.object()?.get("spendingtxid").map(|cursor| parse::txid(&cursor)).transpose()?
        }
        Err(RpcError { .. }) => None,
    };
    let size = match replies.get(1)?.json_or_error()? {
        Ok(info) => info.object()?.need("size")?.integer()?,
        Err(RpcError { .. }) => u64::MAX,
    };
    let is_small = usize::try_from(size).is_ok_and(|size| size <= MAX_MEMPOOL);
    Ok(match txid {
        None if is_small => Step::Ask(State::Mempool(found), vec![Request::json_rpc("getrawmempool", "[]")]),
        txid => candidates(found, txid.into_iter().collect()),
    })
}

/// Asks for transactions in the mempool, one of which may spend the output.
fn candidates(found: Found, txids: Vec<Txid>) -> Step<State> {
    if txids.is_empty() {
        return found.done(Some(HtlcEnd { by: None, block: None }), false);
    }
    let requests = txids.iter().map(|txid| rpc::transaction(*txid, None)).collect();
    Step::Ask(State::Candidates { found, txids }, requests)
}

/// Searches transactions in the mempool for the one that spends an output.
fn search(
    context: &Context,
    outpoint: OutPoint,
    txids: &[Txid],
    replies: &Replies<'_>,
) -> Result<Option<(Arc<Transaction>, HtlcSpend)>, Fault> {
    for (txid, reply) in txids.iter().zip(replies.all()) {
        // The transaction may have left the mempool since it was listed.
        let Ok(cursor) = reply.json_or_error()? else { continue };
        // HTLCs are spent by ordinary transactions, so one that cannot be decoded spends something else.
        let Ok(transaction) = parse::bytes(&cursor).and_then(|raw| chain::parse_transaction(&raw, *txid)) else { continue };
        if transaction.input.iter().any(|input| input.previous_output == outpoint) {
            let how = chain::read_spend(&context.tree, outpoint, &transaction)?;
            return Ok(Some((Arc::new(transaction), how)));
        }
    }
    Ok(None)
}
