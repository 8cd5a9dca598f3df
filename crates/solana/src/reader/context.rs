//! The wallet context for signing: a recent blockhash that enough endpoints show, and a priority fee.
//!
//! A blockhash is valid for 150 blocks. That it is still valid does not mean that it will be for long: a transaction with an old one shows
//! the secret of a redemption and expires on the way. So every endpoint shows the account that lists the recent blockhashes, and
//! [`wallet_context`] takes the newest one that enough of them list among their newest [`MAX_AGE`].

use std::fmt;

use countersign_core::chains::Network;
use countersign_core::json::Cursor;
use countersign_core::reader::{Agree, Ask, Fault, Identity, Known, Question, Replies, Reply, Request, median, middle};
use countersign_core::{Code, Refusal, sort};
use solana_hash::Hash;

use super::account::{self, Accounts};
use super::{FINALIZED, identity};
use crate::address::Address;
use crate::fees::PriorityFee;
use crate::read::{self, RECENT_BLOCKHASH, RECENT_BLOCKHASHES, RECENT_BLOCKHASHES_COUNT};
use crate::transaction::{LIFE, TxContext};

/// The maximum number of blocks after a blockhash that is used: two thirds of its life are left.
pub const MAX_AGE: usize = 50;
/// The maximum number of slots whose fees are read. Nodes keep this many.
const MAX_SLOTS: usize = 150;
/// The maximum number of accounts that nodes accept in a request for recent fees.
const MAX_WRITTEN: usize = 128;

/// What a wallet context is read for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContextQuery {
    network: Network,
    written: Vec<Address>,
    percentile: usize,
}

impl ContextQuery {
    /// Creates the query for a transaction that writes to the accounts `written`. Its price of a compute unit is the `percentile` (0 to
    /// 100) of the lowest prices that were paid to write to them in recent slots.
    #[must_use]
    pub fn new(network: &Network, written: &[Address], percentile: usize) -> Self {
        Self { network: network.clone(), written: written.iter().copied().take(MAX_WRITTEN).collect(), percentile }
    }
}

/// What one endpoint shows for a wallet context.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    /// The blockhashes of the newest blocks, the newest first: one for each block.
    blockhashes: Vec<Hash>,
    block_height: u64,
    /// The price of a compute unit, in micro-lamports; 0 for none.
    price: u64,
}

impl Agree for Offer {
    type Key = ();

    /// Endpoints at different heights show different blockhashes and prices.
    fn key(&self) {}
}

/// Reads the newest blockhashes, the block height, and the price of a compute unit in recent slots.
pub type Context = Ask<ContextQuery>;

impl Question for ContextQuery {
    type Output = Offer;

    fn identity(&self) -> Result<Identity, Refusal> {
        identity(&self.network)
    }

    fn requests(&self) -> Vec<Request> {
        let length = RECENT_BLOCKHASH.saturating_mul(MAX_AGE).saturating_add(RECENT_BLOCKHASHES_COUNT);
        vec![
            account::get_part(&RECENT_BLOCKHASHES, FINALIZED, length),
            Request::json_rpc("getBlockHeight", format!(r#"[{{"commitment":"{FINALIZED}"}}]"#)),
            Request::json_rpc("getRecentPrioritizationFees", format!("[{}]", account::addresses(&self.written))),
        ]
    }

    fn read(&self, replies: &Replies<'_>, _: &Known) -> Result<Offer, Fault> {
        let accounts = Accounts::read(&replies.json(0)?, 1)?;
        let data = accounts.get(0).map(|account| account.data.as_slice()).unwrap_or_default();
        let malformed = |why: read::Unclear| Refusal::new(Code::BlockhashMalformed, "/result/value/0").with_reason(why.to_string());
        let blockhashes = read::recent_blockhashes(data, MAX_AGE).map_err(malformed)?;
        let block_height = replies.json(1)?.integer()?;
        Ok(Offer { blockhashes, block_height, price: price(&replies.json(2)?, self.percentile)? })
    }
}

/// Returns the price of a compute unit in recent slots, in micro-lamports.
fn price(cursor: &Cursor<'_, '_>, percentile: usize) -> Result<u64, Refusal> {
    let fees = cursor.array()?.take(MAX_SLOTS).map(|slot| slot.object()?.need("prioritizationFee")?.integer());
    let fees = fees.collect::<Result<Vec<_>, _>>()?;
    let index = fees.len().saturating_mul(percentile) / 100;
    let place = index.min(fees.len().saturating_sub(1));
    Ok(sort::nth(fees, place, Ord::cmp).unwrap_or_default())
}

/// Returns the wallet context with the newest blockhash that `needed` endpoints show among their newest [`MAX_AGE`], with the median of the
/// block heights, and with the [middle] of the prices. If the price is 0, no fee is set. `None` if too few endpoints show the same blockhash.
///
/// How long the blockhash is valid follows from its place in their lists, not from what one of them states.
#[must_use]
pub fn wallet_context(offers: &[Offer], needed: usize, makes_public: bool) -> Option<TxContext> {
    let age = |offer: &Offer, hash: &Hash| offer.blockhashes.iter().position(|one| one == hash);
    let mut newest: Option<(usize, Hash)> = None;
    for hash in offers.iter().flat_map(|offer| &offer.blockhashes) {
        let ages = offers.iter().filter_map(|offer| age(offer, hash));
        // Enough endpoints show that it is at most this old.
        if let Some(oldest) = sort::nth(ages, needed.saturating_sub(1), Ord::cmp)
            && newest.is_none_or(|(age, _)| oldest < age)
        {
            newest = Some((oldest, *hash));
        }
    }
    let (age, blockhash) = newest?;
    let block_height = median(offers.iter().map(|offer| offer.block_height))?;
    let last_valid = block_height.saturating_add(LIFE).saturating_sub(u64::try_from(age).unwrap_or(LIFE));
    let context = TxContext::new().with_blockhash(blockhash).with_block_heights(block_height, last_valid);
    Some(match middle(makes_public, offers.iter().map(|offer| offer.price))? {
        0 => context,
        price => context.with_priority_fee(PriorityFee::new(price)),
    })
}

pub(super) fn request_is_valid(blockhash: impl fmt::Display, commitment: &str) -> Request {
    Request::json_rpc("isBlockhashValid", format!(r#"["{blockhash}",{{"commitment":"{commitment}"}}]"#))
}

pub(super) fn read_is_valid(reply: &Reply<'_>) -> Result<bool, Fault> {
    Ok(reply.json()?.object()?.need("value")?.bool()?)
}
