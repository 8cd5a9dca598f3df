//! Reads Sui over gRPC-web, without I/O.
//!
//! Every full node serves gRPC-web at the same address as gRPC. Each round asks for the digest of the genesis checkpoint, which must be
//! that of the pinned network. An HTLC takes three rounds:
//!
//! 1. the objects that may hold the order, and the pinned package;
//! 2. the transaction that last changed the order;
//! 3. the newest checkpoint, whose time is the clock.
//!
//! A message has at most 1 MiB, a transaction at most 1,024 events. The newest checkpoint may go back 128 checkpoints.
//!
//! Specification: `docs/spec/sui.md#reading-an-order`, `docs/spec/chains.md#sui`.

mod aborts;
mod fate;
mod fields;
mod grpc;
mod htlc;
mod objects;
mod package;
mod proto;
mod receiver;
mod sent;
mod simulation;
mod transactions;
mod wallet;

use countersign_core::chains::Network;
use countersign_core::reader::{Fault, Head, Identity, Known, Reply, Request};
use countersign_core::{Account, BlockHeight, Code, Refusal, UnixTime};
use sui_sdk_types::{Address, Digest};

pub use fate::{FateOf, Tracer};
pub use grpc::is_message;
pub use htlc::{Htlc, HtlcReader, field_of};
pub use package::{Package, PackageDescription, UpgradeAuthority};
pub use receiver::{DENY_LIST, Receiver, ReceiverCheck};
pub use sent::SentTransaction;
pub use simulation::{Check, Preflight, Rehearsal};
pub use transactions::{Broadcast, Receipt, Sender, TransactionReceipt, decode};
pub use wallet::{
    Balance, CoinDecimals, CurrentEpoch, HeldCoins, Holdings, InitialSharedVersion, ListedCoins, NewestCheckpoint, OwnedCoins,
    ReferenceGasPrice, WhereHeld,
};

use fields::{checkpoint, found_checkpoint, method, service, summary, timestamp};
use proto::{Field, Message, Writer};

/// The digest of the main network's genesis checkpoint.
const MAINNET: &str = "4btiuiMPvEENsttpZC7CZ53DruC3MAgfznDbASZ7DR6S";
/// The digest of the test network's genesis checkpoint.
const TESTNET: &str = "69WiPg3DAQiwdxfncX6wYQ2siKwAe6L9BZthQea3JNMD";
/// The number of checkpoints that an endpoint's newest one may go back: half a minute between nodes behind the same address.
const MAX_STEP_BACK: u64 = 128;

/// Returns the digest of a network's genesis checkpoint, in base58. `None` for the development network, and for other chains.
#[must_use]
pub fn genesis(network: &Network) -> Option<&'static str> {
    match network {
        Network::Sui(name) if name == "mainnet" => Some(MAINNET),
        Network::Sui(name) if name == "testnet" => Some(TESTNET),
        _ => None,
    }
}

/// Returns what identifies a network: the digest of its genesis checkpoint.
///
/// # Errors
///
/// [`Code::UnknownChain`] at `/network` for any other than the main network and the test network. The development network is restarted
/// too often to be pinned.
pub fn identity(network: &Network) -> Result<Identity, Refusal> {
    let expected = genesis(network).ok_or_else(|| {
        let refusal = Refusal::new(Code::UnknownChain, "/network");
        if let Network::Sui(name) = network { refusal.with_actual(name) } else { refusal.with_expected("a network of Sui") }
    })?;
    let request = grpc::request(method::GET_SERVICE_INFO, &Writer::default());
    Ok(Identity { request, expected: expected.to_owned(), read: |reply| grpc::read(reply)?.need(service::CHAIN_ID).map(str::to_owned) })
}

/// What is read, and on which network.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct On<S> {
    /// The network.
    pub network: Network,
    /// What is read.
    pub subject: S,
}

impl<S> On<S> {
    /// Creates the subject of a reading.
    #[must_use]
    pub const fn new(network: Network, subject: S) -> Self {
        Self { network, subject }
    }
}

/// A checkpoint: Sui's block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Checkpoint {
    height: BlockHeight,
    digest: Digest,
    /// Unix milliseconds.
    time: u64,
}

impl Checkpoint {
    /// Requests the newest checkpoint.
    fn newest() -> Request {
        grpc::request(method::GET_CHECKPOINT, &Writer::default().mask(3, &["sequence_number", "digest", "summary.timestamp"]))
    }

    /// Reads the newest checkpoint, which must not be older than those that the endpoint showed before.
    fn read(reply: &Reply<'_>, known: &Known) -> Result<Self, Fault> {
        let message: Message<'_> = grpc::read(reply)?.need(found_checkpoint::CHECKPOINT)?;
        let height = message.need::<u64>(checkpoint::SEQUENCE_NUMBER)?.into();
        let digest = digest(message.need(checkpoint::DIGEST)?, checkpoint::DIGEST)?;
        let time: Message<'_> = message.need::<Message<'_>>(checkpoint::SUMMARY)?.need(summary::TIMESTAMP)?;
        let (seconds, nanos) = (time.get::<u64>(timestamp::SECONDS)?, time.get::<u64>(timestamp::NANOS)?.unwrap_or_default());
        let millis = seconds.unwrap_or_default().checked_mul(1_000).and_then(|millis| millis.checked_add(nanos / 1_000_000));
        let time = millis.filter(|_| nanos < 1_000_000_000).ok_or_else(|| summary::TIMESTAMP.wrong("a time since 1970"))?;
        known.check_height(height, MAX_STEP_BACK)?;
        Ok(Self { height, digest, time })
    }

    fn head(&self) -> Head {
        Head::new(self.height, hex::encode(self.digest.as_bytes()), UnixTime::from_millis(self.time))
    }
}

fn digest(text: &str, field: Field) -> Result<Digest, Fault> {
    // The library also accepts the text of fewer bytes.
    let digest = Digest::from_base58(text).ok().filter(|digest| digest.to_base58() == text);
    digest.ok_or_else(|| field.wrong("base58 of 32 bytes"))
}

fn address(text: &str, field: Field) -> Result<Address, Fault> {
    text.parse().map_err(|_| Fault::Malformed(Refusal::new(Code::AddressMalformed, field.1)))
}

/// Returns the pinned account as an address.
fn pinned(account: Option<&Account>, at: &'static str) -> Result<Address, Refusal> {
    account.and_then(crate::address::from_account).ok_or_else(|| Refusal::new(Code::AddressMalformed, at))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test ends by panicking")]

    use super::*;

    #[test]
    fn networks_have_their_known_short_ids() {
        for (name, short) in [("mainnet", "35834a8a"), ("testnet", "4c78adac")] {
            let identity = identity(&Network::Sui(name.to_owned())).unwrap();
            let digest = Digest::from_base58(&identity.expected).unwrap();
            assert_eq!(hex::encode(digest.as_bytes().get(..4).unwrap()), short);
        }
        for network in [Network::Sui("devnet".to_owned()), Network::Solana("mainnet".to_owned())] {
            assert_eq!(identity(&network).unwrap_err().code(), Code::UnknownChain);
        }
    }
}
