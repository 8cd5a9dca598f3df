//! An HTLC through a node's own RPC.

use bitcoin::{BlockHash, OutPoint, Transaction, Txid};
use countersign_core::reader::{Fault, Head, Replies, Request, RpcError};
use countersign_core::{Code, Refusal, U256};

use super::super::look::{self, Block, Claim, HtlcEnd, Kept, Look, Output, Parents};
use super::super::{parse, rpc};
use super::{Context, Step};
use crate::chain::{self, HtlcSpend};
use crate::recover::Funding;

/// The maximum size of a mempool that is searched for the transaction that spends an output, if the node has no method for that.
const MAX_MEMPOOL: usize = 500;

/// The number of newest blocks that are searched for the transaction that spent an output. By default, fewer confirmations make a
/// transaction final.
const MAX_WALK: u64 = 8;

/// The maximum number of outputs that a transaction may spend for their amounts to be checked.
const MAX_SPENT: usize = 32;

const NOT_LISTED: &str = "no unspent output covers the amount, and a node without an address index does not find outputs that were spent before its newest blocks";
const NO_AMOUNT: &str = "outputs of the HTLC were refunded, and the node does not show whether they covered the amount";

/// The height and the hash of the newest block.
type Tip = (u64, BlockHash);

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
    /// Asked for the newest header, and for the hashes of the newest blocks.
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
    /// Asked for one of the newest blocks. The hashes are those of the blocks that are still to be searched.
    Walk { head: Head, found: Option<(Funding, Block)>, hashes: Vec<(u64, BlockHash)> },
    /// Asked for the proof of the transaction that spends the HTLC, and for the transactions of the outputs that it spends.
    Spent { head: Head, found: Option<(Funding, Block)>, block: Block, spends: Spends },
}

/// Whether an output is spent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum IsSpent {
    /// It is not, and has this value.
    No(u64),
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

/// A transaction that spends outputs of the HTLC.
#[derive(Debug)]
pub(super) struct Spends {
    txid: Txid,
    outputs: Vec<(OutPoint, HtlcSpend)>,
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
                Ok(match look::choose(&claims, context.terms.amount) {
                    Some(claim) => {
                        let block = claim.height.map(rpc::block_hash);
                        Step::Ask(Self::Scanned { tip, claim }, header.chain(block).collect())
                    }
                    None => Step::Ask(Self::NotListed { tip }, header.chain(newest(tip.0).map(rpc::block_hash)).collect()),
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
                walk(head, tip, None, replies, 1)
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
            Self::Walk { head, found, hashes } => read_block(context, head, found, hashes, replies),
            Self::Spent { head, found, block, spends } => read_spent(context, head, found, block, spends, replies),
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
        requests.extend(newest(tip.0).map(rpc::block_hash));
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
        IsSpent::InBlock => return walk(head, tip, Some((funding, block)), replies, 3),
        IsSpent::InMempool => {}
        IsSpent::No(value) => rpc::check_value(value, funding)?,
    }
    Ok(Found { head, funding, block }.next(context, is_spent == IsSpent::InMempool, &transaction))
}

/// Returns the heights of the newest blocks, the newest first.
fn newest(height: u64) -> impl Iterator<Item = u64> {
    (0..MAX_WALK.min(height)).map(move |back| height.saturating_sub(back))
}

/// Reads the hashes of the newest blocks, from the reply at `first` on, and asks for the first block.
fn walk(head: Head, tip: Tip, found: Option<(Funding, Block)>, replies: &Replies<'_>, first: usize) -> Result<Step<State>, Fault> {
    let mut hashes = Vec::new();
    for (height, index) in newest(tip.0).zip(first..) {
        hashes.push((height, parse::block_hash(&replies.json(index)?)?));
    }
    if hashes.first().is_some_and(|(_, hash)| *hash != tip.1) {
        return Err(Refusal::new(Code::FundingMismatch, "/block").with_reason("the newest block is not at its height").into());
    }
    hashes.reverse();
    Ok(next_block(head, found, hashes))
}

/// Asks for the newest of the blocks that are still to be searched, which is the last.
fn next_block(head: Head, found: Option<(Funding, Block)>, hashes: Vec<(u64, BlockHash)>) -> Step<State> {
    match hashes.last() {
        Some((_, hash)) => {
            let request = rpc::block(*hash);
            Step::Ask(State::Walk { head, found, hashes }, vec![request])
        }
        None => Step::Done(head, Look::Unclear(NOT_LISTED)),
    }
}

/// Searches one of the newest blocks for a transaction that spends the HTLC.
fn read_block(
    context: &Context,
    head: Head,
    found: Option<(Funding, Block)>,
    mut hashes: Vec<(u64, BlockHash)>,
    replies: &Replies<'_>,
) -> Result<Step<State>, Fault> {
    let Some((height, hash)) = hashes.pop() else { return Ok(Step::Done(head, Look::Unclear(NOT_LISTED))) };
    let spends = |transaction: &Transaction| {
        let inputs = transaction.input.iter().map(|input| input.previous_output);
        let own = inputs.filter(|outpoint| found.is_none_or(|(funding, _)| funding.outpoint == *outpoint));
        let outputs: Vec<_> =
            own.filter_map(|outpoint| Some((outpoint, chain::read_spend(&context.tree, outpoint, transaction).ok()?))).collect();
        (!outputs.is_empty()).then(|| Spends { txid: transaction.compute_txid(), outputs })
    };
    let (header, spends) = rpc::search_block(&replies.get(0)?, hash, context.chain(), spends)?;
    if hashes.last().is_some_and(|(_, before)| header.prev_blockhash != *before) {
        return Err(Refusal::new(Code::FundingMismatch, "/block").with_reason("the newest blocks do not follow each other").into());
    }
    let Some(spends) = spends else { return Ok(next_block(head, found, hashes)) };
    let mut requests = vec![rpc::proof(spends.txid, hash)];
    if found.is_none() {
        requests.extend(spends.parents().into_iter().map(|txid| rpc::transaction(txid, None)));
    }
    Ok(Step::Ask(State::Spent { head, found, block: Block { height, hash }, spends }, requests))
}

impl Spends {
    /// Returns the transactions of the outputs, each once.
    fn parents(&self) -> Vec<Txid> {
        let mut txids: Vec<_> = self.outputs.iter().map(|(outpoint, _)| outpoint.txid).collect();
        txids.sort_unstable();
        txids.dedup();
        txids.truncate(MAX_SPENT);
        txids
    }
}

/// Checks the proof of the transaction that spends the HTLC. If the output was not known, it must be one that covers the amount.
fn read_spent(
    context: &Context,
    head: Head,
    found: Option<(Funding, Block)>,
    block: Block,
    spends: Spends,
    replies: &Replies<'_>,
) -> Result<Step<State>, Fault> {
    rpc::check_proof(&replies.get(0)?, spends.txid, block.hash, context.chain())?;
    let mut fundings = Vec::new();
    if found.is_none() {
        for (txid, reply) in spends.parents().into_iter().zip(replies.all().iter().skip(1)) {
            if let Some(raw) = rpc::read_raw(reply)? {
                fundings.extend(Funding::from_transaction(&chain::parse_transaction(&raw, txid)?, &context.tree));
            }
        }
    }
    let funding_of = |outpoint: OutPoint| match found {
        Some((funding, _)) => Some(funding),
        None => fundings.iter().copied().find(|funding| funding.outpoint == outpoint),
    };
    let covers = |funding: Funding| U256::from(funding.value) >= context.terms.amount;
    // The secret proves itself, so a redemption counts even if the node does not show the amount. Small outputs that were refunded say
    // nothing about the payment.
    let spent = spends.outputs.iter().find_map(|(outpoint, how)| match (funding_of(*outpoint), how) {
        (Some(funding), _) if covers(funding) => Some((funding, *how)),
        (None, HtlcSpend::Redeem(_)) => Some((Funding::new(*outpoint, 0), *how)),
        _ => None,
    });
    let look = spent.map_or(Look::Unclear(NO_AMOUNT), |(funding, how)| {
        let spend = Some(HtlcEnd { by: Some((spends.txid, how)), block: Some(block) });
        Look::Output(Output { funding, block: found.map(|(_, block)| block), spend, is_from_mweb: false })
    });
    Ok(Step::Done(head, look))
}

/// Reads the id of the transaction in the mempool that spends the output. Newer nodes have a method for it. Otherwise a small mempool is
/// searched.
fn spender(found: Found, replies: &Replies<'_>) -> Result<Step<State>, Fault> {
    let txid = match replies.get(0)?.json_or_error()? {
        Ok(list) => {
            let first = list.array()?.next().ok_or_else(|| list.at().refuse(Code::MissingField))?;
            first.object()?.get("spendingtxid").map(|node| parse::txid(&node)).transpose()?
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
fn search(context: &Context, outpoint: OutPoint, txids: &[Txid], replies: &Replies<'_>) -> Result<Option<(Txid, HtlcSpend)>, Fault> {
    for (txid, reply) in txids.iter().zip(replies.all()) {
        // The transaction may have left the mempool since it was listed.
        let Ok(node) = reply.json_or_error()? else { continue };
        // HTLCs are spent by ordinary transactions, so one that cannot be decoded spends something else.
        let Ok(transaction) = parse::bytes(&node).and_then(|raw| chain::parse_transaction(&raw, *txid)) else { continue };
        if transaction.input.iter().any(|input| input.previous_output == outpoint) {
            return Ok(Some((*txid, chain::read_spend(&context.tree, outpoint, &transaction)?)));
        }
    }
    Ok(None)
}
