//! The newest block.

use countersign_core::Refusal;
use countersign_core::reader::{Fault, Head, Identity, Known, Machine, Replies, Request, Turn};
use starknet_types_core::felt::Felt;

use super::block::{self, LATEST};
use super::{Endpoint, check_version, hex, spec_version};

/// Reads the newest block that L2 has accepted. The subject is the chain id.
#[derive(Debug)]
pub struct NewestBlock(Endpoint);

impl Machine for NewestBlock {
    type Subject = Felt;
    type Output = Head;
    const MAX_ROUNDS: usize = 1;

    fn start(chain_id: &Felt, known: &Known) -> Result<(Self, Vec<Request>), Refusal> {
        Ok((Self(Endpoint::new(*chain_id, known)), vec![spec_version(), block::by_tag(LATEST)]))
    }

    fn identity(&self) -> Identity {
        super::identity(self.0.chain_id)
    }

    fn answer(&mut self, replies: &Replies<'_>) -> Result<Turn<Head>, Fault> {
        check_version(&replies.get(0)?)?;
        let block = self.0.newest(&replies.json(1)?)?;
        Ok(Turn::Done(Head::new(block.number, hex(block.hash), block.time)))
    }

    fn learned(&self) -> Known {
        self.0.learned.clone()
    }
}
