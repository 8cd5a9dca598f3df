//! The newest block.

use countersign_core::UnixTime;
use countersign_core::reader::{Ask, Fault, Head, Identity, Known, Question, Replies, Request};
use countersign_core::{BlockHeight, Refusal};

use super::{OnChain, block};

/// The newest block of a chain, as the subject of [`NewestBlock`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "it has no members")]
pub struct Newest;

/// Reads the newest block.
pub type NewestBlock = Ask<OnChain<Newest>>;

impl Question for OnChain<Newest> {
    type Output = Head;

    fn identity(&self) -> Result<Identity, Refusal> {
        Ok(super::identity(self.chain_id))
    }

    fn requests(&self) -> Vec<Request> {
        vec![block::by_tag(block::LATEST)]
    }

    fn read(&self, replies: &Replies<'_>, known: &Known) -> Result<Head, Fault> {
        let block = block::latest(replies, 0, self.chain_id, known)?;
        Ok(Head::new(block.number.into(), block.hash.to_string(), UnixTime::from_secs(block.time)))
    }

    fn height(head: &Head) -> BlockHeight {
        head.height
    }
}
