//! What endpoints of every family show besides HTLCs.

use std::fmt;

use countersign_chains::{BlockHeight, Network, UnixTime};
use zeroize::Zeroizing;

use super::{Agree, Reply, RpcError};
use crate::report::text;

/// The newest block that an endpoint shows: the newest confirmed slot on Solana, the newest checkpoint on Sui.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Head {
    /// The height: the slot on Solana, the sequence number of the checkpoint on Sui.
    pub height: BlockHeight,
    /// The hash in hex, with `0x` on EVM chains and Starknet and without it elsewhere. On Solana, the newest blockhash in base58.
    pub hash: String,
    /// The time of the block.
    pub time: UnixTime,
}

impl Head {
    /// Creates the newest block.
    #[must_use]
    pub fn new(height: BlockHeight, hash: impl Into<String>, time: UnixTime) -> Self {
        Self { height, hash: hash.into(), time }
    }
}

impl Agree for Head {
    type Key = ();

    /// Honest endpoints at different heights have nothing in common: each head is judged alone.
    fn key(&self) {}
}

/// A signed transaction that is sent to an endpoint.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Submission {
    /// The chain.
    pub network: Network,
    /// The transaction id, as explorers write it.
    pub id: String,
    /// The form that nodes accept: the bytes in hex, or on Starknet the transaction as JSON.
    pub payload: Zeroizing<String>,
}

impl Submission {
    /// Creates the submission of a transaction.
    #[must_use]
    pub fn new(network: &Network, id: &str, payload: &str) -> Self {
        Self { network: network.clone(), id: id.to_owned(), payload: Zeroizing::new(payload.to_owned()) }
    }
}

impl fmt::Debug for Submission {
    /// Leaves out the payload, because that of a redemption contains the secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Submission({} on {:?})", self.id, self.network)
    }
}

/// What an endpoint says to a transaction that was sent to it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a transaction is accepted or rejected; everything else is a fault")]
pub enum Sent {
    /// It accepted the transaction, or knows it already.
    Accepted,
    /// It rejected the transaction as invalid. Contains its reason, capped and escaped.
    Rejected(String),
}

impl Sent {
    /// Creates the rejection with a node's reason, which is escaped.
    #[must_use]
    pub fn rejected(reason: &str) -> Self {
        Self::Rejected(text::escape_untrusted(reason))
    }

    /// Reads the reply to a JSON-RPC call that sends a transaction: any result accepts it.
    ///
    /// # Errors
    ///
    /// The [`Fault`](super::Fault) of a reply that is neither a result nor an error: the endpoint may have relayed the transaction.
    pub fn read(reply: &Reply<'_>) -> Result<Self, super::Fault> {
        Ok(match reply.json_or_error()? {
            Ok(_) => Self::Accepted,
            Err(RpcError { message, .. }) => Self::Rejected(message.clone()),
        })
    }
}

impl Agree for Sent {
    type Key = bool;

    fn key(&self) -> bool {
        matches!(self, Self::Accepted)
    }
}
