//! The newest block.

use countersign_core::Refusal;
use countersign_core::chains::Network;
use countersign_core::reader::{Fault, Head as NewestBlock, Identity, Known, Machine, Replies, Request, Turn};

use super::account::{self, Accounts};
use super::context::LatestBlockhash;
use super::{CONFIRMED, MAX_STEP_BACK, identity};
use crate::read::CLOCK;

/// Reads the newest confirmed slot of an endpoint, with the newest blockhash and the time of its clock.
#[derive(Debug)]
pub struct Head {
    identity: Identity,
    known: Known,
}

impl Machine for Head {
    type Subject = Network;
    type Output = NewestBlock;
    const MAX_ROUNDS: usize = 1;

    fn start(network: &Network, known: &Known) -> Result<(Self, Vec<Request>), Refusal> {
        let requests = vec![account::get(&[CLOCK], CONFIRMED, 0), LatestBlockhash::request()];
        Ok((Self { identity: identity(network)?, known: known.clone() }, requests))
    }

    fn identity(&self) -> Identity {
        self.identity.clone()
    }

    fn answer(&mut self, replies: &Replies<'_>) -> Result<Turn<NewestBlock>, Fault> {
        let clock = Accounts::read(&replies.json(0)?, 1)?.clock()?;
        let latest = LatestBlockhash::read(&replies.json(1)?)?;
        self.known.check_height(clock.slot, MAX_STEP_BACK)?;
        self.known = Known::default().with_height(clock.slot);
        Ok(Turn::Done(NewestBlock::new(clock.slot, latest.blockhash.to_string(), clock.time)))
    }

    fn learned(&self) -> Known {
        self.known.clone()
    }
}
