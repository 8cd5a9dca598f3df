//! What one endpoint shows of an HTLC, and the state that follows from it.

use countersign::bitcoin::bitcoin::{BlockHash, OutPoint, Txid};
use countersign::bitcoin::chain::HtlcSpend;
use countersign::bitcoin::recover::Funding;
use countersign::chains::Coin;
use countersign::{HtlcState, HtlcTerms, LockedHtlc, SeenAt, U256};

use crate::nodes::Head;
use crate::quorum::with_elapsed;

/// How deep an output that spends coins of Litecoin's extension block must be before it counts. When blocks of the extension were
/// found invalid, miners abandoned 13 blocks.
pub(super) const MWEB_DEPTH: u64 = 24;

/// Where a transaction was mined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Block {
    pub(super) height: u64,
    pub(super) hash: BlockHash,
}

/// An output to the HTLC's script as a list of the endpoint names it. Nothing of it is proven.
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
    /// Whether it was paid with coins that had just left Litecoin's extension block.
    pub(super) is_from_mweb: bool,
}

/// What spends an output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Spend {
    /// The transaction and what it does; `None` if the node does not say which one it is.
    pub(super) by: Option<(Txid, HtlcSpend)>,
    pub(super) block: Option<Block>,
}

/// What one endpoint shows.
#[derive(Debug)]
pub(super) struct Look {
    pub(super) head: Head,
    pub(super) output: Option<Output>,
    /// Whether the endpoint would know an output that was spent.
    pub(super) knows_spent: bool,
}

/// A state with what the endpoints must agree on beside it.
pub(super) struct Seen {
    pub(super) state: HtlcState,
    pub(super) elapsed: u64,
    pub(super) outpoint: Option<OutPoint>,
    pub(super) block: Option<Block>,
    pub(super) depth: u64,
    pub(super) head: Head,
}

/// Chooses the output that a swap is judged by: one that covers the amount before one that does not, unspent before spent, and
/// then the one that was mined first. All endpoints choose the same.
pub(super) fn choose(claims: Vec<Claim>, amount: U256) -> Option<Claim> {
    claims.into_iter().min_by_key(|claim| {
        let is_covering = U256::from(claim.funding.value) >= amount;
        // Among outputs that are all too small the largest counts.
        let missing = if is_covering { 0 } else { u64::MAX.saturating_sub(claim.funding.value) };
        (!is_covering, !claim.is_unspent, missing, claim.height.unwrap_or(u64::MAX), claim.funding.outpoint)
    })
}

impl Seen {
    pub(super) fn new(look: Look, terms: &HtlcTerms, coin: Coin) -> Self {
        let depth_of = |block: Option<Block>| {
            // Both ends count. A block above the head belongs to a chain that the head does not know.
            block
                .filter(|block| block.height <= look.head.height)
                .map_or(0, |block| look.head.height.saturating_sub(block.height).saturating_add(1))
        };
        let (head, knows_spent) = (look.head.clone(), look.knows_spent);
        let Some(output) = look.output else {
            let state = if knows_spent {
                HtlcState::Absent
            } else {
                HtlcState::Unclear("no unspent output pays it, and a node without an index of addresses knows no spent ones".to_owned())
            };
            return Self { state, elapsed: 0, outpoint: None, block: None, depth: 0, head };
        };
        let depth = depth_of(output.block);
        let (state, block) = match output.spend {
            Some(Spend { by: Some((txid, how)), block }) => (ended(txid, how), block),
            Some(Spend { by: None, block }) => {
                (HtlcState::Unclear("a transaction that is not mined yet spends it, and the node does not say which".to_owned()), block)
            }
            None if coin == Coin::Litecoin && output.is_from_mweb && depth < MWEB_DEPTH => {
                let why = format!("it is paid with coins that have left the extension block, and not yet {MWEB_DEPTH} blocks deep");
                (HtlcState::Unclear(why), output.block)
            }
            None => {
                let locked =
                    LockedHtlc::new(terms.initiator.clone(), terms.redeemer.clone(), U256::from(output.funding.value), terms.timelock, 0);
                (HtlcState::Locked(locked.with_secret_hash(terms.secret_hash)), output.block)
            }
        };
        // The refund is valid in block f + T of an output mined in block f (BIP-68), and nodes relay it once block f + T - 1 is
        // there: when the output is T blocks deep. So what has passed is the depth.
        Self { elapsed: depth, outpoint: Some(output.funding.outpoint), depth: depth_of(block), block, head, state }
    }

    /// What endpoints must agree on. Their newest blocks may differ.
    pub(super) fn key(&self) -> (HtlcState, Option<OutPoint>, Option<Block>) {
        (self.state.clone(), self.outpoint, self.block)
    }

    /// Combines results that agree: takes the shortest and the longest elapsed time, the smallest depth and the oldest head.
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
