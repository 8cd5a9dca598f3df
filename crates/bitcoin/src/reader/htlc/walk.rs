//! The search for the transaction that spent an output, through a node's own RPC.
//!
//! A node without an address index does not say in which block an output was spent. So blocks are searched one by one, from the newest one
//! back, and each reading searches at most [`MAX_WALK`] of them. The next reading searches the blocks that are new, and then goes on below
//! those that were searched, if these are still in the chain. The search ends at the block of the output if that is known, otherwise after
//! [`MAX_BACK`] blocks.

use std::sync::Arc;

use bitcoin::hashes::Hash as _;
use bitcoin::{Amount, BlockHash, OutPoint, Transaction, Txid};
use countersign_core::reader::{Fault, Head, Replies};
use countersign_core::{BlockHeight, U256, sort};

use super::super::look::{Block, HtlcEnd, Look, Output};
use super::super::rpc;
use super::rpc::{State, Tip};
use super::{Context, Step};
use crate::chain::{self, HtlcSpend};
use crate::recover::Funding;

/// The maximum number of blocks that one reading searches.
const MAX_WALK: u64 = 8;

/// The maximum number of blocks below the newest one that are searched if the block of the output is not known: two weeks on Bitcoin, and
/// three and a half days on Litecoin.
const MAX_BACK: u64 = 2_016;

/// The maximum number of transactions of a block that are checked because they spend outputs of the HTLC, and of the transactions that
/// created these outputs.
const MAX_SPENT: usize = 32;

const NOT_LISTED: &str = "no unspent output covers the amount, and the blocks that were searched do not spend one; through a node without an address index, each reading searches eight more blocks";
const NOT_FOUND: &str = "the HTLC was spent, and the transaction is not in the blocks that were searched; through a node without an address index, each reading searches eight more blocks";
const NO_AMOUNT: &str = "outputs of the HTLC were refunded, and the node does not show whether they covered the amount";

/// The blocks that were searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Searched {
    /// The newest one.
    top: Tip,
    /// The block below the oldest one.
    below: Tip,
}

impl Searched {
    pub(super) fn parse(hint: &[u8]) -> Option<Self> {
        let (top, below) = hint.split_at_checked(40)?;
        let tip = |bytes: &[u8]| -> Option<Tip> {
            let (height, hash) = bytes.split_first_chunk::<8>()?;
            Some((u64::from_le_bytes(*height).into(), BlockHash::from_byte_array(hash.try_into().ok()?)))
        };
        Some(Self { top: tip(top)?, below: tip(below)? })
    }

    pub(super) fn to_bytes(self) -> Vec<u8> {
        let tip = |(height, hash): Tip| [height.get().to_le_bytes().as_slice(), hash.as_byte_array()].concat();
        [tip(self.top), tip(self.below)].concat()
    }
}

/// A search of blocks, from the newest one back.
#[derive(Debug)]
pub(super) struct Walk {
    head: Head,
    /// The output, if it is known.
    found: Option<(Funding, Block)>,
    /// What this reading has searched.
    searched: Searched,
    /// What earlier readings have searched.
    earlier: Option<Searched>,
    /// The height of the oldest block to search.
    oldest: BlockHeight,
    /// The number of blocks that this reading may still search.
    left: u64,
    /// Why the state is unclear if nothing is found.
    why: &'static str,
}

/// A transaction that spends outputs of the HTLC.
#[derive(Debug)]
pub(super) struct Spends {
    transaction: Arc<Transaction>,
    txid: Txid,
    outputs: Vec<(OutPoint, HtlcSpend)>,
}

impl Walk {
    pub(super) fn new(context: &Context, head: Head, tip: Tip, found: Option<(Funding, Block)>) -> Self {
        // Nothing in the first block of a chain can be spent.
        let oldest = found.map_or(tip.0.saturating_sub(MAX_BACK), |(_, block)| block.height).max(BlockHeight::from(1));
        let why = if found.is_some() { NOT_FOUND } else { NOT_LISTED };
        Self { head, found, searched: Searched { top: tip, below: tip }, earlier: context.searched(), oldest, left: MAX_WALK, why }
    }

    /// Asks for the next block.
    pub(super) fn next(mut self) -> Step<State> {
        if let Some(earlier) = self.earlier.take_if(|earlier| earlier.top == self.searched.below) {
            self.searched.below = earlier.below;
        }
        let (height, hash) = self.searched.below;
        let is_at_end = height < self.oldest;
        if is_at_end && self.found.is_some() {
            // The output was spent in one of these blocks, so the chain has changed in between. Begin again.
            self.searched.below = self.searched.top;
        }
        match self.left.checked_sub(1).filter(|_| !is_at_end) {
            Some(left) => {
                self.left = left;
                Step::Ask(State::Walk(self), vec![rpc::block(hash)])
            }
            None => Step::Searched(self.head, Look::Unclear(self.why), self.searched),
        }
    }

    /// Searches a block for transactions that spend the HTLC.
    pub(super) fn read_block(mut self, context: &Context, replies: &Replies<'_>) -> Result<Step<State>, Fault> {
        let (height, hash) = self.searched.below;
        let spends = |transaction: Transaction| {
            let inputs = transaction.input.iter().map(|input| input.previous_output);
            let own = inputs.filter(|outpoint| self.found.is_none_or(|(funding, _)| funding.outpoint == *outpoint));
            let outputs: Vec<_> =
                own.filter_map(|outpoint| Some((outpoint, chain::read_spend(&context.tree, outpoint, &transaction).ok()?))).collect();
            let txid = transaction.compute_txid();
            (!outputs.is_empty()).then(|| Spends { transaction: Arc::new(transaction), txid, outputs })
        };
        let (header, mut spends) = rpc::search_block(&replies.get(0)?, hash, context.chain(), spends)?;
        self.searched.below = (height.saturating_sub(1), header.prev_blockhash);
        if spends.is_empty() {
            return Ok(self.next());
        }
        // A redemption proves itself, and anybody's small outputs can be refunded in the same block.
        sort::by_cached_key(&mut spends, |spends| !spends.redeems());
        spends.truncate(MAX_SPENT);
        let mut requests: Vec<_> = spends.iter().map(|spends| rpc::proof(spends.txid, hash)).collect();
        if self.found.is_none() {
            requests.extend(parents(&spends).into_iter().map(|txid| rpc::transaction(txid, None)));
        }
        Ok(Step::Ask(State::Spent { walk: self, block: Block { height, hash }, spends }, requests))
    }

    /// Checks the proofs of the transactions that spend the HTLC. If the output was not known, it must be one that covers the amount: small
    /// outputs that were refunded say nothing about the payment, whose end may be in an older block.
    pub(super) fn read_spent(
        mut self,
        context: &Context,
        block: Block,
        spends: Vec<Spends>,
        replies: &Replies<'_>,
    ) -> Result<Step<State>, Fault> {
        let mut rest = replies.all().iter();
        for (spends, reply) in spends.iter().zip(rest.by_ref()) {
            rpc::check_proof(reply, spends.txid, block.hash, context.chain())?;
        }
        let mut fundings = Vec::new();
        if self.found.is_none() {
            for (txid, reply) in parents(&spends).into_iter().zip(rest) {
                if let Some(raw) = rpc::read_raw(reply)? {
                    fundings.extend(Funding::from_transaction(&chain::parse_transaction(&raw, txid)?, &context.tree));
                }
            }
        }
        let funding_of = |outpoint: OutPoint| match self.found {
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
            self.why = NO_AMOUNT;
            return Ok(self.next());
        };
        let spend = Some(HtlcEnd { by: Some((transaction, how)), block: Some(block) });
        let output = Output { funding, block: self.found.map(|(_, block)| block), spend, is_from_mweb: false };
        // The next reading finds it in the first block that it searches.
        let searched = Searched { below: (block.height, block.hash), ..self.searched };
        Ok(Step::Searched(self.head, Look::Output(output), searched))
    }
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
    sort::ascending(&mut txids);
    txids.dedup();
    txids.truncate(MAX_SPENT);
    txids
}
