//! What one endpoint reports about an HTLC, and the state that follows from it.

use countersign::bitcoin::bitcoin::{BlockHash, OutPoint, Txid};
use countersign::bitcoin::chain::HtlcSpend;
use countersign::bitcoin::recover::Funding;
use countersign::chains::Coin;
use countersign::{HtlcState, HtlcTerms, LockedHtlc, SeenAt, U256};

use crate::nodes::Head;
use crate::quorum::with_elapsed;

/// The depth that an output paid from Litecoin's extension block must have before it counts. When invalid extension blocks were found,
/// miners abandoned 13 blocks.
pub(super) const MWEB_DEPTH: u64 = 24;

/// Where a transaction was mined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Block {
    pub(super) height: u64,
    pub(super) hash: BlockHash,
}

/// An output to the HTLC's script as an endpoint lists it. Nothing of it is proven yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Claim {
    pub(super) funding: Funding,
    pub(super) height: Option<u64>,
    pub(super) hash: Option<BlockHash>,
    pub(super) is_unspent: bool,
}

/// An output to the HTLC's script, read from the bytes of its transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Output {
    pub(super) funding: Funding,
    pub(super) block: Option<Block>,
    pub(super) spend: Option<Spend>,
    /// Whether it was paid with coins that came straight from Litecoin's extension block.
    pub(super) is_from_mweb: bool,
}

/// The transaction that spends an output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Spend {
    /// The transaction and its kind; `None` if the node does not identify the transaction.
    pub(super) by: Option<(Txid, HtlcSpend)>,
    pub(super) block: Option<Block>,
}

/// What one endpoint reports.
#[derive(Debug)]
pub(super) struct Look {
    pub(super) head: Head,
    pub(super) output: Option<Output>,
    /// Whether the endpoint also lists outputs that were spent.
    pub(super) knows_spent: bool,
}

/// A state, together with the details that endpoints must agree on.
pub(super) struct Seen {
    pub(super) state: HtlcState,
    pub(super) elapsed: u64,
    pub(super) outpoint: Option<OutPoint>,
    pub(super) block: Option<Block>,
    pub(super) depth: u64,
    pub(super) head: Head,
}

/// Chooses the output that decides about a swap. Outputs that cover the amount come first, then unspent ones, then the one that was mined
/// first. The choice is the same for all endpoints.
pub(super) fn choose(claims: Vec<Claim>, amount: U256) -> Option<Claim> {
    claims.into_iter().min_by_key(|claim| {
        let is_covering = U256::from(claim.funding.value) >= amount;
        // If all outputs are too small, the largest counts.
        let missing = if is_covering { 0 } else { u64::MAX.saturating_sub(claim.funding.value) };
        (!is_covering, !claim.is_unspent, missing, claim.height.unwrap_or(u64::MAX), claim.funding.outpoint)
    })
}

impl Seen {
    pub(super) fn new(look: Look, terms: &HtlcTerms, coin: Coin) -> Self {
        let depth_of = |block: Option<Block>| {
            // Both the block and the head count. A block above the head belongs to another chain than the head.
            block
                .filter(|block| block.height <= look.head.height)
                .map_or(0, |block| look.head.height.saturating_sub(block.height).saturating_add(1))
        };
        let (head, knows_spent) = (look.head.clone(), look.knows_spent);
        let Some(output) = look.output else {
            let state = if knows_spent {
                HtlcState::Absent
            } else {
                HtlcState::Unclear(
                    "no unspent output pays the HTLC, and a node without an address index does not list spent ones".to_owned(),
                )
            };
            return Self { state, elapsed: 0, outpoint: None, block: None, depth: 0, head };
        };
        let depth = depth_of(output.block);
        let (state, block) = match output.spend {
            Some(Spend { by: Some((txid, how)), block }) => (ended(txid, how), block),
            Some(Spend { by: None, block }) => {
                (HtlcState::Unclear("an unmined transaction spends the HTLC, and the node does not identify it".to_owned()), block)
            }
            None if coin == Coin::Litecoin && output.is_from_mweb && depth < MWEB_DEPTH => {
                let why = format!("the HTLC was paid with coins from the extension block, and is not yet {MWEB_DEPTH} blocks deep");
                (HtlcState::Unclear(why), output.block)
            }
            None => {
                let locked =
                    LockedHtlc::new(terms.initiator.clone(), terms.redeemer.clone(), U256::from(output.funding.value), terms.timelock, 0);
                (HtlcState::Locked(locked.with_secret_hash(terms.secret_hash)), output.block)
            }
        };
        // For an output mined in block f with timelock T, a refund is valid in block f + T (BIP-68). Nodes relay it once block f + T - 1
        // exists, which is when the output is T blocks deep. So the elapsed time is the depth.
        Self { elapsed: depth, outpoint: Some(output.funding.outpoint), depth: depth_of(block), block, head, state }
    }

    /// Returns the details that endpoints must agree on. Their newest blocks may differ.
    pub(super) fn key(&self) -> (HtlcState, Option<OutPoint>, Option<Block>) {
        (self.state.clone(), self.outpoint, self.block)
    }

    /// Combines the results of endpoints that agree. Takes the shortest and longest elapsed time, the smallest depth and the lowest head.
    pub(super) fn combine(all: Vec<Self>, needed: u32) -> Option<(HtlcState, SeenAt)> {
        let agreed = u32::try_from(all.len()).unwrap_or(u32::MAX);
        let (least_elapsed, most_elapsed) = (all.iter().map(|seen| seen.elapsed).min()?, all.iter().map(|seen| seen.elapsed).max()?);
        let depth = all.iter().map(|seen| seen.depth).min()?;
        let time = all.iter().map(|seen| seen.head.time).min()?;
        let first = all.into_iter().min_by_key(|seen| seen.head.height)?;
        let (height, hash) = match first.block {
            Some(block) => (block.height, block.hash.to_string()),
            None => (first.head.height, first.head.hash),
        };
        let state = with_elapsed(first.state, least_elapsed, most_elapsed);
        Some((state, SeenAt::new(height, hash, time, depth).with_agreement(agreed, needed)))
    }
}

fn ended(txid: Txid, how: HtlcSpend) -> HtlcState {
    let transaction = Some(txid.to_string());
    match how {
        HtlcSpend::Redeem(secret) => HtlcState::Redeemed { secret, transaction },
        HtlcSpend::Refund | HtlcSpend::InstantRefund => HtlcState::Refunded { transaction },
    }
}
