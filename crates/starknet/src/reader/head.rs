//! The newest block.

use countersign_core::Refusal;
use countersign_core::reader::{Fault, Head, Identity, Known, Machine, Replies, Request, Turn};
use starknet_types_core::felt::Felt;

use super::block::{self, Block, LATEST};
use super::{MAX_STEP_BACK, check_version, hex, spec_version};

/// Reads the newest block that L2 has accepted. The subject is the chain id.
#[derive(Debug)]
pub struct NewestBlock {
    chain_id: Felt,
    known: Known,
    learned: Known,
}

impl Machine for NewestBlock {
    type Subject = Felt;
    type Output = Head;
    const MAX_ROUNDS: usize = 1;

    fn start(chain_id: &Felt, known: &Known) -> Result<(Self, Vec<Request>), Refusal> {
        let machine = Self { chain_id: *chain_id, known: known.clone(), learned: Known::default() };
        Ok((machine, vec![spec_version(), block::by_tag(LATEST)]))
    }

    fn identity(&self) -> Identity {
        super::identity(self.chain_id)
    }

    fn answer(&mut self, replies: &Replies<'_>) -> Result<Turn<Head>, Fault> {
        check_version(&replies.get(0)?)?;
        let block = Block::read(&replies.json(1)?)?;
        self.known.check_height(block.number, MAX_STEP_BACK)?;
        self.learned = Known::default().with_height(block.number);
        Ok(Turn::Done(Head::new(block.number, hex(block.hash), block.time)))
    }

    fn learned(&self) -> Known {
        self.learned.clone()
    }
}
