//! The newest block.

use countersign_core::chains::Network;
use countersign_core::reader::{Ask, Fault, Head, Identity, Known, Question, Replies, Request};
use countersign_core::{BlockHeight, Code, Refusal};
use solana_hash::Hash;

use super::account::{self, Accounts};
use super::{FINALIZED, MAX_STEP_BACK, identity};
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

/// Reads the newest finalized slot of an endpoint, with the newest blockhash and the time of its clock.
pub type NewestBlock = Ask<HeadQuery>;

impl Question for HeadQuery {
    type Output = Head;

    fn identity(&self) -> Result<Identity, Refusal> {
        identity(&self.network)
    }

    fn requests(&self) -> Vec<Request> {
        let latest = Request::json_rpc("getLatestBlockhash", format!(r#"[{{"commitment":"{FINALIZED}"}}]"#));
        vec![account::get(&[CLOCK], FINALIZED, 0), latest]
    }

    fn read(&self, replies: &Replies<'_>, known: &Known) -> Result<Head, Fault> {
        let clock = Accounts::read(&replies.json(0)?, 1)?.clock()?;
        let members = replies.json(1)?;
        let value = members.object()?.need("value")?;
        let hash = value.object()?.need("blockhash")?;
        let blockhash: Hash = hash.text()?.parse().map_err(|_| hash.refuse(Code::BlockhashMalformed))?;
        known.check_height(clock.slot.into(), MAX_STEP_BACK)?;
        Ok(Head::new(clock.slot.into(), blockhash.to_string(), clock.time))
    }

    fn height(head: &Head) -> BlockHeight {
        head.height
    }
}
