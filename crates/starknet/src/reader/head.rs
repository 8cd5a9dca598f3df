//! The newest block.

use countersign_core::UnixTime;
use countersign_core::reader::{Ask, Fault, Head, Identity, Known, Question, Replies, Request};
use countersign_core::{BlockHeight, Refusal};
use starknet_types_core::felt::Felt;

use super::block::{self, Block, LATEST};
use super::{check_version, hex, spec_version};

/// The chain whose newest block is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "callers construct it")]
pub struct HeadQuery {
    /// The chain id.
    pub chain_id: Felt,
}

/// Reads the newest block that L2 has accepted.
pub type NewestBlock = Ask<HeadQuery>;

impl Question for HeadQuery {
    type Output = Head;

    fn identity(&self) -> Result<Identity, Refusal> {
        Ok(super::identity(self.chain_id))
    }

    fn requests(&self) -> Vec<Request> {
        vec![spec_version(), block::by_tag(LATEST)]
    }

    fn read(&self, replies: &Replies<'_>, known: &Known) -> Result<Head, Fault> {
        check_version(&replies.get(0)?)?;
        let block = Block::read_newest(&replies.json(1)?, known)?;
        Ok(Head::new(block.number.into(), hex(block.hash), UnixTime::from_secs(block.time)))
    }

    fn height(head: &Head) -> BlockHeight {
        head.height
    }
}
