//! The wallet context for signing: a blockhash that enough endpoints know, and a priority fee.
//!
//! There are two readings. [`Context`] reads what each endpoint offers. [`Blockhash`] then asks all endpoints whether they know one of the
//! offered blockhashes, because a transaction with a false one can never be mined, and a redemption would have revealed the secret for
//! nothing. [`wallet_context`] combines what was read.

use std::fmt;

use countersign_core::chains::Network;
use countersign_core::json::Cursor;
use countersign_core::reader::{Agree, Ask, Equal, Fault, Identity, Known, Question, Replies, Reply, Request};
use countersign_core::{Code, Refusal};
use solana_hash::Hash;

use super::{CONFIRMED, account, identity};
use crate::address::Address;
use crate::fees::PriorityFee;
use crate::transaction::TxContext;

/// The number of blocks for which a blockhash is valid.
pub(super) const MAX_AGE: u64 = 150;
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

/// The newest blockhash of an endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LatestBlockhash {
    pub(super) blockhash: Hash,
    last_valid_block_height: u64,
}

impl LatestBlockhash {
    pub(super) fn request() -> Request {
        Request::json_rpc("getLatestBlockhash", format!(r#"[{{"commitment":"{CONFIRMED}"}}]"#))
    }

    pub(super) fn read(cursor: &Cursor<'_, '_>) -> Result<Self, Refusal> {
        let members = cursor.object()?;
        let value = members.need("value")?;
        let value = value.object()?;
        let hash = value.need("blockhash")?;
        let blockhash = hash.text()?.parse().map_err(|_| hash.refuse(Code::BlockhashMalformed))?;
        Ok(Self { blockhash, last_valid_block_height: value.need("lastValidBlockHeight")?.integer()? })
    }
}

/// What one endpoint offers for a wallet context.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Offer {
    latest: LatestBlockhash,
    block_height: u64,
    /// The price of a compute unit, in micro-lamports; 0 for none.
    price: u64,
}

impl Offer {
    /// Returns the newest blockhash of the endpoint.
    #[must_use]
    pub const fn blockhash(&self) -> Hash {
        self.latest.blockhash
    }
}

impl Agree for Offer {
    type Key = ();

    /// Endpoints at different heights offer different blockhashes and prices.
    fn key(&self) {}
}

/// Reads the newest confirmed blockhash, the block height, and the price of a compute unit in recent slots.
pub type Context = Ask<ContextQuery>;

impl Question for ContextQuery {
    type Output = Offer;

    fn identity(&self) -> Result<Identity, Refusal> {
        identity(&self.network)
    }

    fn requests(&self) -> Vec<Request> {
        vec![
            LatestBlockhash::request(),
            Request::json_rpc("getBlockHeight", format!(r#"[{{"commitment":"{CONFIRMED}"}}]"#)),
            Request::json_rpc("getRecentPrioritizationFees", format!("[{}]", account::addresses(&self.written))),
        ]
    }

    fn read(&self, replies: &Replies<'_>, _: &Known) -> Result<Offer, Fault> {
        let latest = LatestBlockhash::read(&replies.json(0)?)?;
        let block_height = replies.json(1)?.integer()?;
        Ok(Offer { latest, block_height, price: price(&replies.json(2)?, self.percentile)? })
    }
}

/// Returns the price of a compute unit in recent slots, in micro-lamports.
fn price(cursor: &Cursor<'_, '_>, percentile: usize) -> Result<u64, Refusal> {
    let fees = cursor.array()?.take(MAX_SLOTS).map(|slot| slot.object()?.need("prioritizationFee")?.integer());
    let mut fees = fees.collect::<Result<Vec<_>, _>>()?;
    fees.sort_unstable();
    let index = fees.len().saturating_mul(percentile) / 100;
    Ok(fees.get(index.min(fees.len().saturating_sub(1))).copied().unwrap_or_default())
}

/// Returns the wallet context with the blockhash of `chosen`, which enough endpoints must know, and the medians of the block heights and
/// the prices of `offers`. If the price is 0, no fee is set.
#[must_use]
pub fn wallet_context(chosen: &Offer, offers: &[Offer]) -> TxContext {
    let block_height = median(offers.iter().map(|offer| offer.block_height));
    // Nobody else vouches for the height up to which the blockhash is valid. With too great a height, a transaction that has expired would
    // be waited for.
    let last_valid = chosen.latest.last_valid_block_height.min(block_height.saturating_add(MAX_AGE));
    let context = TxContext::new().with_blockhash(chosen.latest.blockhash).with_block_heights(block_height, last_valid);
    match median(offers.iter().map(|offer| offer.price)) {
        0 => context,
        price => context.with_priority_fee(PriorityFee::new(price)),
    }
}

/// Returns the median, or the lower of the two middle numbers; 0 without numbers.
fn median(numbers: impl Iterator<Item = u64>) -> u64 {
    let mut numbers: Vec<_> = numbers.collect();
    numbers.sort_unstable();
    numbers.get(numbers.len().saturating_sub(1) / 2).copied().unwrap_or_default()
}

/// Which blockhash an endpoint is asked about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockhashQuery {
    network: Network,
    blockhash: Hash,
}

impl BlockhashQuery {
    /// Creates the query for a blockhash.
    #[must_use]
    pub fn new(network: &Network, blockhash: Hash) -> Self {
        Self { network: network.clone(), blockhash }
    }
}

/// Reads whether an endpoint knows a blockhash, and a transaction with it can still be mined. Otherwise the reading ends in
/// [`Fault::Refused`] with [`Code::BlockhashExpired`].
pub type Blockhash = Ask<BlockhashQuery>;

impl Question for BlockhashQuery {
    type Output = Equal<()>;

    fn identity(&self) -> Result<Identity, Refusal> {
        identity(&self.network)
    }

    fn requests(&self) -> Vec<Request> {
        // Another endpoint has confirmed the block already. This one may be slightly behind, so its newest block counts.
        vec![request_is_valid(self.blockhash, "processed")]
    }

    fn read(&self, replies: &Replies<'_>, _: &Known) -> Result<Equal<()>, Fault> {
        if read_is_valid(&replies.get(0)?)? {
            return Ok(Equal(()));
        }
        let refusal = Refusal::new(Code::BlockhashExpired, "/blockhash");
        Err(Fault::Refused(refusal.with_reason("the endpoint does not know the blockhash, or no longer accepts it")))
    }
}

pub(super) fn request_is_valid(blockhash: impl fmt::Display, commitment: &str) -> Request {
    Request::json_rpc("isBlockhashValid", format!(r#"["{blockhash}",{{"commitment":"{commitment}"}}]"#))
}

pub(super) fn read_is_valid(reply: &Reply<'_>) -> Result<bool, Fault> {
    Ok(reply.json()?.object()?.need("value")?.bool()?)
}
