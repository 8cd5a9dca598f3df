//! Tron, read over the HTTP interface of its nodes: JSON is posted to `/wallet/..`, which serves the newest block, and to
//! `/walletsolidity/..`, which serves the newest irreversible (solidified) block. An endpoint must serve both.
//!
//! The first request to an endpoint reads its genesis block, whose id must end with the bytes that identify the pinned chain.
//!
//! The interface cannot read a contract at a chosen block. So the newest block is read before and after the contract, and the result
//! is the state of a block between the two. The depth is counted up to the first of them, and the elapsed time up to the second, so that
//! both are on the cautious side.
//!
//! A transaction that a node has built is never signed, and no method that takes a private key is called.
//!
//! Specification: `docs/spec/tron.md#reading-an-order`, `docs/spec/chains.md`.

mod block;
mod call;
mod contract;
mod preflight;
mod prepare;
mod send;
mod wallet;

use countersign::chains::Network;
use countersign::json::{self, Node};
use countersign::tron::alloy_primitives::hex;
use countersign::tron::{Address, reader};
use countersign::{Code, HtlcState, HtlcTerms, Refusal, SeenAt, number, text};
use countersign_client::Transport;
use serde_json::{Value, json};

pub use contract::ContractDescription;
pub use preflight::Preflight;
pub use send::Receipt;

use crate::endpoint::Caller;
use crate::error::NodeError;
use crate::nodes::{Connection, Head};
use block::Block;

/// The number of blocks that an endpoint's newest block may go back, because of a reorganization or another node behind the same address.
const MAX_STEP_BACK: u64 = 20;
/// The bits of the chain id with which the id of the genesis block ends.
const GENESIS_BITS: u64 = 0xffff_ffff;

/// The path of methods that read at the newest block.
const NEWEST: &str = "/wallet";
/// The path of methods that read at the newest irreversible block.
const SOLID: &str = "/walletsolidity";

/// A connected Tron chain.
#[derive(Debug)]
pub struct TronChain<'n, T> {
    connection: Connection<'n, T>,
    chain_id: u64,
}

impl<T> Clone for TronChain<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for TronChain<'_, T> {}

impl<'n, T: Transport> TronChain<'n, T> {
    pub(crate) fn new(connection: Connection<'n, T>) -> Result<Self, NodeError> {
        match connection.network {
            Network::Tron(chain_id) => Ok(Self { connection, chain_id: *chain_id }),
            _ => Err(NodeError::NotConnected(connection.name.to_owned())),
        }
    }

    /// Reads the state of one HTLC from every endpoint, at the endpoint's newest block. The endpoints must agree. What is read is
    /// described at [`reader::Htlc`].
    ///
    /// # Errors
    ///
    /// Returns [`NodeError::Refused`] if the terms contain an invalid address or swap id. Returns another [`NodeError`] if no endpoint
    /// answers or too few of them agree. The state is then unknown.
    pub async fn htlc(&self, terms: &HtlcTerms) -> Result<(HtlcState, SeenAt), NodeError> {
        self.connection.read_htlc::<reader::Htlc>(terms).await
    }

    /// Requires that the endpoint serves the pinned chain.
    async fn identify(&self, caller: Caller<'n, T>) -> Result<(), NodeError> {
        let ask = async || {
            let genesis = block::by_number(caller, 0).await?;
            let [.., a, b, c, d] = genesis.id;
            Ok(u32::from_be_bytes([a, b, c, d]).to_string())
        };
        caller.identify(&(self.chain_id & GENESIS_BITS).to_string(), ask).await
    }

    pub(crate) async fn head(&self, caller: Caller<'n, T>) -> Result<Head, NodeError> {
        self.identify(caller).await?;
        let block = self.newest(caller).await?;
        Ok(Head::new(block.number, hex::encode(block.id), block.millis / 1_000))
    }

    /// Reads the newest block, and requires that it has not gone back.
    async fn newest(&self, caller: Caller<'n, T>) -> Result<Block, NodeError> {
        let block = block::newest(caller, NEWEST).await?;
        caller.check_height(block.number, MAX_STEP_BACK)?;
        Ok(block)
    }
}

/// Posts a request to a method, and reads the answer.
async fn ask<T: Transport, R>(
    caller: Caller<'_, T>,
    path: &str,
    query: Value,
    read: impl FnOnce(&Node<'_, '_>) -> Result<R, Refusal>,
) -> Result<R, NodeError> {
    let answer = caller.post(path, query.to_string().into_bytes()).await?;
    let value = json::parse(&answer).map_err(|refusal| caller.malformed(refusal))?;
    let node = Node::root(&value, "");
    // A node reports its failures with HTTP status 200.
    if let Ok(members) = node.object()
        && let Some(error) = members.get("Error")
    {
        return Err(NodeError::rpc(caller.endpoint.host(), 0, error.text().unwrap_or("an error without a message"), None));
    }
    read(&node).map_err(|refusal| caller.malformed(refusal))
}

/// Returns an address as nodes accept it: `41` and the 20 bytes in hex.
fn written(address: Address) -> String {
    hex::encode(address.prefixed())
}

/// Returns the request body for an account.
fn account(address: Address) -> Value {
    json!({"address": written(address), "visible": false})
}

/// Reads bytes in hex without `0x`.
fn bytes(node: &Node<'_, '_>, max: usize) -> Result<Vec<u8>, Refusal> {
    let digits = node.text()?;
    if digits.is_empty() {
        return Ok(Vec::new());
    }
    number::hex_bytes(&format!("0x{digits}"), max).map_err(|error| node.refuse(error))
}

/// Reads a hash in hex without `0x`.
fn hash(node: &Node<'_, '_>) -> Result<[u8; 32], Refusal> {
    number::bare_hex_array(node.text()?).map_err(|error| node.refuse(error))
}

/// Reads a number. Nodes omit numbers that are 0.
fn count(node: Option<Node<'_, '_>>) -> Result<u64, Refusal> {
    node.map_or(Ok(0), |node| node.integer())
}

/// Returns a node's message, which most methods encode in hex.
fn words(node: &Node<'_, '_>) -> String {
    let plain = node.text().unwrap_or_default();
    let decoded = hex::decode(plain).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    text::escape_untrusted(decoded.as_deref().unwrap_or(plain))
}

/// Parses an address that comes from the caller, not from the service.
fn parse(text: &str, at: &'static str) -> Result<Address, Refusal> {
    Address::parse(text).map_err(|error| Refusal::new(error, at).with_actual(text))
}

/// Creates a refusal of an answer that does not match the request, or contradicts another answer.
fn contradiction(at: &'static str, reason: &'static str) -> Refusal {
    Refusal::new(Code::WrongType, at).with_reason(reason)
}
