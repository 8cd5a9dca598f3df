//! An HTLC through a node's own RPC.

use std::sync::Arc;

use bitcoin::{Amount, BlockHash, OutPoint, Transaction, Txid};
use countersign_core::reader::{Fault, Head, Replies, Request, RpcError};
use countersign_core::{BlockHeight, Code, Refusal, U256};

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

/// The maximum number of transactions of a block that are checked because they spend outputs of the HTLC, and of the transactions that
/// created these outputs.
const MAX_SPENT: usize = 32;

const NOT_LISTED: &str = "no unspent output covers the amount, and a node without an address index does not find outputs that were spent before its newest blocks";
const NO_AMOUNT: &str = "outputs of the HTLC were refunded, and the node does not show whether they covered the amount";

/// The height and the hash of the newest block.
type Tip = (BlockHeight, BlockHash);

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
    /// Asked for one of the newest blocks.
    Walk(Newest),
    /// Asked for the proofs of the transactions that spend the HTLC, and for the transactions of the outputs that they spend.
    Spent { newest: Newest, block: Block, spends: Vec<Spends> },
}

/// The newest blocks that are still to be searched for the transaction that spent an output.
#[derive(Debug)]
pub(super) struct Newest {
    head: Head,
    /// The output, if it is known.
    found: Option<(Funding, Block)>,
    /// The heights and hashes of the blocks, the oldest first.
    hashes: Vec<(BlockHeight, BlockHash)>,
    /// Why the state is unclear if nothing is found.
    why: &'static str,
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

/// A transaction that spends outputs of the HTLC.
#[derive(Debug)]
pub(super) struct Spends {
    transaction: Arc<Transaction>,
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
                Ok(match look::choose(&claims, context.amount) {
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
            Self::Walk(newest) => read_block(context, newest, replies),
            Self::Spent { newest, block, spends } => read_spent(context, newest, block, spends, replies),
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
fn newest(height: BlockHeight) -> impl Iterator<Item = BlockHeight> {
    (0..MAX_WALK.min(height.get())).map(move |back| height.saturating_sub(back))
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
    Ok(Newest { head, found, hashes, why: NOT_LISTED }.next())
}

impl Newest {
    /// Asks for the newest of the blocks that are still to be searched, which is the last.
    fn next(self) -> Step<State> {
        match self.hashes.last() {
            Some((_, hash)) => {
                let request = rpc::block(*hash);
                Step::Ask(State::Walk(self), vec![request])
            }
            None => Step::Done(self.head, Look::Unclear(self.why)),
        }
    }
}

/// Searches one of the newest blocks for transactions that spend the HTLC.
fn read_block(context: &Context, mut newest: Newest, replies: &Replies<'_>) -> Result<Step<State>, Fault> {
    let Some((height, hash)) = newest.hashes.pop() else { return Ok(newest.next()) };
    let spends = |transaction: Transaction| {
        let inputs = transaction.input.iter().map(|input| input.previous_output);
        let own = inputs.filter(|outpoint| newest.found.is_none_or(|(funding, _)| funding.outpoint == *outpoint));
        let outputs: Vec<_> =
            own.filter_map(|outpoint| Some((outpoint, chain::read_spend(&context.tree, outpoint, &transaction).ok()?))).collect();
        let txid = transaction.compute_txid();
        (!outputs.is_empty()).then(|| Spends { transaction: Arc::new(transaction), txid, outputs })
    };
    let (header, mut spends) = rpc::search_block(&replies.get(0)?, hash, context.chain(), spends)?;
    if newest.hashes.last().is_some_and(|(_, before)| header.prev_blockhash != *before) {
        return Err(Refusal::new(Code::FundingMismatch, "/block").with_reason("the newest blocks do not follow each other").into());
    }
    if spends.is_empty() {
        return Ok(newest.next());
    }
    // A redemption proves itself, and anybody's small outputs can be refunded in the same block.
    spends.sort_by_key(|spends| !spends.redeems());
    spends.truncate(MAX_SPENT);
    let mut requests: Vec<_> = spends.iter().map(|spends| rpc::proof(spends.txid, hash)).collect();
    if newest.found.is_none() {
        requests.extend(parents(&spends).into_iter().map(|txid| rpc::transaction(txid, None)));
    }
    Ok(Step::Ask(State::Spent { newest, block: Block { height, hash }, spends }, requests))
}

impl Spends {
    fn redeems(&self) -> bool {
        self.outputs.iter().any(|(_, how)| matches!(how, HtlcSpend::Redeem(_)))
    }
}

/// Returns the transactions of the outputs that are spent, each once.
fn parents(spends: &[Spends]) -> Vec<Txid> {
    let outpoints = spends.iter().flat_map(|spends| &spends.outputs).map(|(outpoint, _)| outpoint);
    let mut txids: Vec<_> = outpoints.map(|outpoint| outpoint.txid).collect();
    txids.sort_unstable();
    txids.dedup();
    txids.truncate(MAX_SPENT);
    txids
}

/// Checks the proofs of the transactions that spend the HTLC. If the output was not known, it must be one that covers the amount: small
/// outputs that were refunded say nothing about the payment, whose end may be in an older block.
fn read_spent(
    context: &Context,
    mut newest: Newest,
    block: Block,
    spends: Vec<Spends>,
    replies: &Replies<'_>,
) -> Result<Step<State>, Fault> {
    let mut rest = replies.all().iter();
    for (spends, reply) in spends.iter().zip(rest.by_ref()) {
        rpc::check_proof(reply, spends.txid, block.hash, context.chain())?;
    }
    let mut fundings = Vec::new();
    if newest.found.is_none() {
        for (txid, reply) in parents(&spends).into_iter().zip(rest) {
            if let Some(raw) = rpc::read_raw(reply)? {
                fundings.extend(Funding::from_transaction(&chain::parse_transaction(&raw, txid)?, &context.tree));
            }
        }
    }
    let funding_of = |outpoint: OutPoint| match newest.found {
        Some((funding, _)) => Some(funding),
        None => fundings.iter().copied().find(|funding| funding.outpoint == outpoint),
    };
    let covers = |funding: Funding| U256::from(funding.value.to_sat()) >= context.amount;
    // The secret proves itself, so a redemption counts even if the node does not show the amount.
    let is_end = |(outpoint, how): &(OutPoint, HtlcSpend)| match (funding_of(*outpoint), how) {
        (Some(funding), _) if covers(funding) => Some((funding, *how)),
        (None, HtlcSpend::Redeem(_)) => Some((Funding::new(*outpoint, Amount::ZERO), *how)),
        _ => None,
    };
    let end = spends.into_iter().find_map(|spends| {
        let (funding, how) = spends.outputs.iter().find_map(is_end)?;
        Some((funding, spends.transaction, how))
    });
    let Some((funding, transaction, how)) = end else {
        newest.why = NO_AMOUNT;
        return Ok(newest.next());
    };
    let spend = Some(HtlcEnd { by: Some((transaction, how)), block: Some(block) });
    let output = Output { funding, block: newest.found.map(|(_, block)| block), spend, is_from_mweb: false };
    Ok(Step::Done(newest.head, Look::Output(output)))
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
