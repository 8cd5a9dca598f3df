//! The newest block.

use countersign_core::chains::Network;
use countersign_core::reader::{Ask, Fault, Head, Identity, Known, Question, Replies, Request};
use countersign_core::{BlockHeight, Refusal};

use super::account::{self, Accounts};
use super::context::LatestBlockhash;
use super::{CONFIRMED, MAX_STEP_BACK, identity};
use crate::read::CLOCK;

/// The cluster whose newest slot is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeadQuery {
    network: Network,
}

impl HeadQuery {
    /// Creates the query for a cluster.
    #[must_use]
    pub fn new(network: &Network) -> Self {
        Self { network: network.clone() }
    }
}

/// Reads the newest confirmed slot of an endpoint, with the newest blockhash and the time of its clock.
pub type NewestBlock = Ask<HeadQuery>;

impl Question for HeadQuery {
    type Output = Head;

    fn identity(&self) -> Result<Identity, Refusal> {
        identity(&self.network)
    }

    fn requests(&self) -> Vec<Request> {
        vec![account::get(&[CLOCK], CONFIRMED, 0), LatestBlockhash::request()]
    }

    fn read(&self, replies: &Replies<'_>, known: &Known) -> Result<Head, Fault> {
        let clock = Accounts::read(&replies.json(0)?, 1)?.clock()?;
        let latest = LatestBlockhash::read(&replies.json(1)?)?;
        known.check_height(clock.slot.into(), MAX_STEP_BACK)?;
        Ok(Head::new(clock.slot.into(), latest.blockhash.to_string(), clock.time))
    }

    fn height(head: &Head) -> BlockHeight {
        head.height
    }
}
