//! The block that transactions refer to.
//!
//! A transaction with a reference that its chain does not have is never mined, and a redemption shows the secret all the same. So the
//! reference is read twice: [`NewestBlock`](super::NewestBlock) shows the irreversible height of each endpoint, and [`Context`] reads the
//! block at one of those [`candidates`], on which enough endpoints must agree.

use std::time::Duration;

use countersign_core::reader::{Ask, Equal, Fault, Identity, Known, Question, Replies, Request, newest_first};
use countersign_core::{BlockHeight, Code, Refusal, UnixMillis};

use super::{Block, MAX_STEP_BACK, OnChain, View};
use crate::TxContext;

/// The lifetime of a transaction: enough for a user with a hardware wallet. Nodes accept at most one day.
const LIFETIME: Duration = Duration::from_hours(1);

/// Reads the irreversible block at a height, as the context for signing the next calls: the reference, and a lifetime of one hour after
/// the time of the block. Endpoints must agree on all of it.
pub type Context = Ask<OnChain<BlockHeight>>;

impl Question for OnChain<BlockHeight> {
    type Output = Equal<TxContext>;

    fn identity(&self) -> Result<Identity, Refusal> {
        Ok(super::identity(self.chain_id))
    }

    fn requests(&self) -> Vec<Request> {
        vec![Block::request(View::Irreversible, self.subject.get())]
    }

    fn read(&self, replies: &Replies<'_>, _: &Known) -> Result<Equal<TxContext>, Fault> {
        let block = Block::read_at(self.subject.get(), &replies.get(0)?)?;
        let [.., high, low] = block.number.to_be_bytes();
        let hash = block.id.get(8..16).and_then(|part| part.try_into().ok()).unwrap_or_default();
        let too_large = |_| Refusal::new(Code::NumberTooLarge, "/block_header/raw_data/timestamp");
        let made = UnixMillis::from_millis(block.millis);
        let expires = made.saturating_add(LIFETIME);
        // The protocol's times are signed.
        i64::try_from(expires.as_millis()).map_err(too_large)?;
        Ok(Equal(TxContext::new([high, low], hash, expires, made).with_chain_id(self.chain_id)))
    }
}

/// Returns the heights at which a reference is searched, in this order, given the irreversible heights that endpoints show.
///
/// They are the heights themselves, and for each the one 20 blocks below, which endpoints that are a little behind have too. The greatest
/// comes first: an endpoint that shows a height that does not exist costs one more reading, and one that shows an old block, which nodes
/// no longer accept as a reference, is not used as long as a later block is agreed on.
#[must_use]
pub fn candidates(heights: impl IntoIterator<Item = BlockHeight>) -> Vec<BlockHeight> {
    newest_first(heights.into_iter().flat_map(|height| [height, height.saturating_sub(MAX_STEP_BACK)]))
}
