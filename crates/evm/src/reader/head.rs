//! The newest block.

use countersign_core::Refusal;
use countersign_core::reader::{Fault, Head, Identity, Known, Machine, Replies, Request, Turn};

use super::block::{self, Block};

/// Reads the newest block. The subject is the chain id.
#[derive(Debug)]
pub struct Tip {
    chain_id: u64,
    known: Known,
    newest: Option<Block>,
}

impl Machine for Tip {
    type Subject = u64;
    type Output = Head;
    const MAX_ROUNDS: usize = 1;

    fn start(chain_id: &u64, known: &Known) -> Result<(Self, Vec<Request>), Refusal> {
        Ok((Self { chain_id: *chain_id, known: known.clone(), newest: None }, vec![block::by_tag(block::LATEST)]))
    }

    fn identity(&self) -> Identity {
        super::identity(self.chain_id)
    }

    fn answer(&mut self, replies: &Replies<'_>) -> Result<Turn<Head>, Fault> {
        let block = block::latest(replies, 0, &self.known)?;
        self.newest = Some(block);
        Ok(Turn::Done(Head::new(block.number, block.hash.to_string(), block.time)))
    }

    fn learned(&self) -> Known {
        block::learned(self.newest.as_ref())
    }
}
