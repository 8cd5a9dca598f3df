//! Reads the newest block.

use alloy_primitives::hex;
use countersign_core::UnixTime;
use countersign_core::reader::{Ask, Fault, Head, Identity, Known, Question, Replies, Request};
use countersign_core::{BlockHeight, Refusal};

use super::{Block, MAX_STEP_BACK, OnChain, View};

/// Reads the newest block of a view.
pub type NewestBlock = Ask<OnChain<View>>;

impl Question for OnChain<View> {
    type Output = Head;

    fn identity(&self) -> Result<Identity, Refusal> {
        Ok(super::identity(self.chain_id))
    }

    fn requests(&self) -> Vec<Request> {
        vec![Block::newest_request(self.subject)]
    }

    fn read(&self, replies: &Replies<'_>, known: &Known) -> Result<Head, Fault> {
        let block = Block::read_newest(&replies.get(0)?)?;
        if self.subject == View::Newest {
            known.check_height(block.number.into(), MAX_STEP_BACK)?;
        }
        Ok(Head::new(block.number.into(), hex::encode(block.id), UnixTime::from_millis(block.millis)))
    }

    fn height(head: &Head) -> BlockHeight {
        head.height
    }
}
