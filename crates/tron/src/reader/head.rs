//! Reads the newest block.

use alloy_primitives::hex;
use countersign_core::Refusal;
use countersign_core::reader::{Fault, Head, Identity, Known, Machine, Replies, Request, Turn};

use super::{Block, MAX_STEP_BACK, OnChain, View};

/// Reads the newest block of a view.
#[derive(Debug)]
pub struct Tip {
    chain_id: u64,
    view: View,
    /// The greatest height that the endpoint has shown.
    highest: u64,
}

impl Machine for Tip {
    type Subject = OnChain<View>;
    type Output = Head;
    const MAX_ROUNDS: usize = 1;

    fn start(subject: &Self::Subject, known: &Known) -> Result<(Self, Vec<Request>), Refusal> {
        let OnChain { chain_id, subject: view } = *subject;
        Ok((Self { chain_id, view, highest: known.height() }, vec![Block::newest_request(view)]))
    }

    fn identity(&self) -> Identity {
        super::identity(self.chain_id)
    }

    fn answer(&mut self, replies: &Replies<'_>) -> Result<Turn<Head>, Fault> {
        let block = Block::read_newest(&replies.get(0)?)?;
        if self.view == View::Newest {
            Known::default().with_height(self.highest).check_height(block.number, MAX_STEP_BACK)?;
            self.highest = self.highest.max(block.number);
        }
        Ok(Turn::Done(Head::new(block.number, hex::encode(block.id), block.millis / 1_000)))
    }

    fn learned(&self) -> Known {
        Known::default().with_height(self.highest)
    }
}
