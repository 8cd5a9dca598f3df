//! Sui, read over gRPC-web.
//!
//! Every full node serves gRPC-web at the same address as gRPC. The first request to an endpoint reads the digest of its genesis
//! checkpoint, which must be that of the pinned network. Reading an order takes three requests:
//!
//! 1. the objects that may hold the order, and the pinned package;
//! 2. the transaction that last changed the order;
//! 3. the newest checkpoint, whose time is the clock.
//!
//! Specification: `docs/spec/sui.md#reading-an-order`, `docs/spec/chains.md`.

mod grpc;
mod htlc;
mod messages;
mod methods;
mod package;
mod preflight;
mod prepare;
mod send;
mod wallet;

use countersign::chains::Network;
use countersign::sui::sui_sdk_types::{Address, Digest};
use countersign::{Account, Code, Refusal, sui};
use countersign_client::Transport;

pub use package::{PackageDescription, UpgradeAuthority};
pub use preflight::Preflight;
pub use send::Receipt;

use crate::endpoint::Caller;
use crate::error::NodeError;
use crate::nodes::{Connection, Head};
use grpc::NOT_FOUND;
use messages::{BatchGetObjectsRequest, FieldMask, GetCheckpointRequest, GetObjectRequest, GetObjectResult, GetServiceInfoRequest, Object};

/// The digest of the main network's genesis checkpoint.
const MAINNET: &str = "4btiuiMPvEENsttpZC7CZ53DruC3MAgfznDbASZ7DR6S";
/// The digest of the test network's genesis checkpoint.
const TESTNET: &str = "69WiPg3DAQiwdxfncX6wYQ2siKwAe6L9BZthQea3JNMD";
/// The number of checkpoints that an endpoint's newest one may go back: half a minute between nodes behind the same address.
const MAX_STEP_BACK: u64 = 128;

/// A connected Sui network.
#[derive(Debug)]
pub struct SuiChain<'n, T> {
    connection: Connection<'n, T>,
    chain_id: &'static str,
}

impl<T> Clone for SuiChain<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for SuiChain<'_, T> {}

/// A checkpoint: Sui's block.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Checkpoint {
    height: u64,
    digest: Digest,
    /// Unix milliseconds.
    time: u64,
}

impl Checkpoint {
    /// Returns the time in Unix seconds.
    const fn seconds(&self) -> u64 {
        self.time / 1_000
    }

    /// Returns the digest in hex without `0x`.
    fn hash(&self) -> String {
        hex::encode(self.digest.as_bytes())
    }
}

impl<'n, T: Transport> SuiChain<'n, T> {
    /// Connects the main network or the test network. The development network is restarted too often to be pinned.
    pub(crate) fn new(connection: Connection<'n, T>) -> Result<Self, NodeError> {
        let chain_id = match connection.network {
            Network::Sui(name) if name == "mainnet" => MAINNET,
            Network::Sui(name) if name == "testnet" => TESTNET,
            _ => return Err(NodeError::NotConnected(connection.name.to_owned())),
        };
        Ok(Self { connection, chain_id })
    }

    /// Requires that the endpoint serves the pinned network.
    async fn identify(&self, caller: Caller<'n, T>) -> Result<(), NodeError> {
        let ask = || async move {
            let info = caller.grpc(&GetServiceInfoRequest {}).await?;
            info.chain_id.ok_or_else(|| missing(caller, "/chain_id"))
        };
        caller.identify(self.chain_id, ask).await
    }

    pub(crate) async fn head(&self, caller: Caller<'n, T>) -> Result<Head, NodeError> {
        self.identify(caller).await?;
        let newest = newest(caller).await?;
        Ok(Head::new(newest.height, newest.hash(), newest.seconds()))
    }
}

/// Reads the newest checkpoint.
async fn newest<T: Transport>(caller: Caller<'_, T>) -> Result<Checkpoint, NodeError> {
    let request = GetCheckpointRequest { read_mask: FieldMask::new(&["sequence_number", "digest", "summary.timestamp"]) };
    let checkpoint = caller.grpc(&request).await?.checkpoint.ok_or_else(|| missing(caller, "/checkpoint"))?;
    let height = checkpoint.sequence_number.ok_or_else(|| missing(caller, "/checkpoint/sequence_number"))?;
    let digest = digest(caller, checkpoint.digest, "/checkpoint/digest")?;
    let time = checkpoint.summary.and_then(|summary| summary.timestamp).and_then(|time| time.millis());
    let time = time.ok_or_else(|| missing(caller, "/checkpoint/summary/timestamp"))?;
    caller.check_height(height, MAX_STEP_BACK)?;
    Ok(Checkpoint { height, digest, time })
}

/// Reads objects at their newest version; `None` for one that does not exist.
async fn objects<T: Transport>(caller: Caller<'_, T>, ids: &[Address], members: &[&str]) -> Result<Vec<Option<Object>>, NodeError> {
    let requests = ids.iter().map(|id| GetObjectRequest { object_id: Some(id.to_string()) }).collect();
    let request = BatchGetObjectsRequest { requests, read_mask: FieldMask::new(members) };
    let answer = caller.grpc(&request).await?.objects;
    if answer.len() != ids.len() {
        let refusal = Refusal::new(Code::WrongType, "/objects").with_expected(format!("{} objects", ids.len()));
        return Err(caller.malformed(refusal.with_actual(answer.len())));
    }
    let read = |(result, id): (GetObjectResult, &Address)| match result {
        GetObjectResult { object: Some(object), error: None } => {
            if address(caller, object.object_id.as_deref(), "/object/object_id")? != *id {
                let refusal = Refusal::new(Code::WrongType, "/object/object_id")
                    .with_reason("the node returned another object than the requested one");
                return Err(caller.malformed(refusal));
            }
            Ok(Some(object))
        }
        GetObjectResult { object: None, error: Some(status) } if i64::from(status.code) == NOT_FOUND => Ok(None),
        GetObjectResult { object: None, error: Some(status) } => {
            Err(NodeError::rpc(caller.endpoint.host(), status.code.into(), &status.message, None))
        }
        _ => Err(missing(caller, "/object")),
    };
    answer.into_iter().zip(ids).map(read).collect()
}

/// Creates the error for a missing field of an answer.
fn missing<T: Transport>(caller: Caller<'_, T>, at: &'static str) -> NodeError {
    caller.malformed(Refusal::new(Code::MissingField, at))
}

fn digest<T: Transport>(caller: Caller<'_, T>, text: Option<String>, at: &'static str) -> Result<Digest, NodeError> {
    let text = text.ok_or_else(|| missing(caller, at))?;
    // The library also accepts the text of fewer bytes.
    let digest = Digest::from_base58(&text).ok().filter(|digest| digest.to_base58() == text);
    digest.ok_or_else(|| caller.malformed(Refusal::new(Code::WrongType, at).with_expected("base58 of 32 bytes")))
}

fn address<T: Transport>(caller: Caller<'_, T>, text: Option<&str>, at: &'static str) -> Result<Address, NodeError> {
    let text = text.ok_or_else(|| missing(caller, at))?;
    text.parse().map_err(|_| caller.malformed(Refusal::new(Code::AddressMalformed, at)))
}

/// Parses an address that comes from the caller, not from an endpoint.
fn own_address(text: &str, at: &'static str) -> Result<Address, Refusal> {
    text.parse().map_err(|_| Refusal::new(Code::AddressMalformed, at).with_actual(text))
}

/// Returns the pinned account as an address.
fn pinned(account: Option<&Account>, at: &'static str) -> Result<Address, Refusal> {
    account.and_then(sui::address::from_account).ok_or_else(|| Refusal::new(Code::AddressMalformed, at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_have_their_known_short_ids() {
        for (digest, short) in [(MAINNET, "35834a8a"), (TESTNET, "4c78adac")] {
            let digest = Digest::from_base58(digest).unwrap();
            assert_eq!(hex::encode(digest.as_bytes().get(..4).unwrap()), short);
        }
    }
}
