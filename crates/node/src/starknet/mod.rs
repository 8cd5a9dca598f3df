//! Starknet, read over JSON-RPC of version 0.9 or 0.10.
//!
//! The first request to an endpoint reads its chain id, which must be the pinned one, and the version of its interface. Reading an order
//! takes three requests. All of them name the same block by its hash, so that all parts of the answer belong together.
//!
//! JSON-RPC: <https://github.com/starkware-libs/starknet-specs/tree/v0.9.0/api>
//!
//! Specification: `docs/spec/starknet.md#reading-an-order`, `docs/spec/chains.md`.

mod block;
mod contract;
mod events;
mod htlc;
mod preflight;
mod prepare;
mod send;
mod wallet;

use countersign::chains::Network;
use countersign::json::Node;
use countersign::starknet::read::{self, Unclear};
use countersign::starknet::{Felt, felt};
use countersign::{Code, Refusal};
use countersign_client::Transport;
use serde_json::{Value, json};

pub use contract::ContractDescription;
pub use preflight::Preflight;
pub use send::TransactionStatus;

use crate::endpoint::{self, Call, Caller};
use crate::error::NodeError;
use crate::nodes::{Connection, Head};
use block::{Block, LATEST};

/// The number of blocks that an endpoint's newest block may go back, because of a reorganization or another node behind the same address.
const MAX_STEP_BACK: u64 = 16;
/// The maximum number of felts that a call returns. Every call that is made here returns a few.
const MAX_ANSWER: usize = 64;
/// The prefixes of the supported versions of the interface.
const VERSIONS: [&str; 2] = ["0.9.", "0.10."];

/// A connected Starknet chain.
#[derive(Debug)]
pub struct StarknetChain<'n, T> {
    connection: Connection<'n, T>,
    chain_id: Felt,
}

impl<T> Clone for StarknetChain<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for StarknetChain<'_, T> {}

impl<'n, T: Transport> StarknetChain<'n, T> {
    pub(crate) fn new(connection: Connection<'n, T>) -> Result<Self, NodeError> {
        let chain_id = match connection.network {
            Network::Starknet(chain) => felt::from_short_string(chain),
            _ => None,
        };
        let chain_id = chain_id.ok_or_else(|| NodeError::NotConnected(connection.name.to_owned()))?;
        Ok(Self { connection, chain_id })
    }

    /// Requires that the endpoint serves the pinned chain, and supports a known version of the interface.
    async fn identify(&self, caller: Caller<'n, T>) -> Result<(), NodeError> {
        let calls = [Call::new("starknet_chainId", json!([])), Call::new("starknet_specVersion", json!([]))];
        let read = |results: &[Node<'_, '_>]| Ok((felt::read(first(results)?)?, nth(results, 1)?.text()?.to_owned()));
        let ask = async || {
            let (chain_id, version) = caller.rpc(&calls, read).await?;
            if !VERSIONS.iter().any(|known| version.starts_with(known)) {
                return Err(NodeError::Endpoint("the Starknet endpoint does not serve version 0.9 or 0.10 of the JSON-RPC interface"));
            }
            Ok(name(chain_id))
        };
        caller.identify(&name(self.chain_id), ask).await
    }

    pub(crate) async fn head(&self, caller: Caller<'n, T>) -> Result<Head, NodeError> {
        self.identify(caller).await?;
        let block = caller.rpc(&[block::by_tag(LATEST)], |results| Block::read(&first(results)?)).await?;
        let block = Self::latest(caller, block)?;
        Ok(Head::new(block.number, hex(block.hash), block.time))
    }

    /// Requires that the newest block has not gone back.
    fn latest(caller: Caller<'n, T>, block: Block) -> Result<Block, NodeError> {
        caller.check_height(block.number, MAX_STEP_BACK)?;
        Ok(block)
    }

    fn not_connected(&self) -> NodeError {
        NodeError::NotConnected(self.connection.name.to_owned())
    }
}

/// Returns a chain id as a short string, or in hex if it is not a short string.
fn name(chain_id: Felt) -> String {
    felt::to_short_string(&chain_id).unwrap_or_else(|| hex(chain_id))
}

/// Returns a felt in hex with `0x`, as nodes accept it.
fn hex(felt: Felt) -> String {
    format!("{felt:#x}")
}

/// Returns felts in hex with `0x`.
fn hexes(felts: &[Felt]) -> Vec<String> {
    felts.iter().copied().map(hex).collect()
}

/// Creates a call of a contract's function at a block.
fn call(contract: Felt, selector: Felt, calldata: &[Felt], block: &Value) -> Call {
    let request = json!({"contract_address": hex(contract), "entry_point_selector": hex(selector), "calldata": hexes(calldata)});
    Call::new("starknet_call", json!({"request": request, "block_id": block}))
}

/// Creates a call of a token's `balance_of`.
fn balance_of(token: Felt, owner: Felt, block: &Value) -> Call {
    call(token, read::BALANCE_OF, &[owner], block)
}

/// Returns the result of the first call.
fn first<'r, 'v>(results: &[Node<'r, 'v>]) -> Result<Node<'r, 'v>, Refusal> {
    nth(results, 0)
}

fn nth<'r, 'v>(results: &[Node<'r, 'v>], index: usize) -> Result<Node<'r, 'v>, Refusal> {
    endpoint::nth(results, index).copied()
}

/// Reads an array of at most `max` felts.
fn felts(node: &Node<'_, '_>, max: usize) -> Result<Vec<Felt>, Refusal> {
    let all = node.array()?;
    if all.len() > max {
        return Err(node.at().refuse(Code::WrongType).with_expected(format!("at most {max} felts")).with_actual(all.len()));
    }
    all.map(|felt| felt::read(felt)).collect()
}

/// Decodes what a call returned as one value. A contract that returns anything else cannot be used.
fn answer<R>(node: &Node<'_, '_>, read: impl FnOnce(&[Felt]) -> Result<R, Unclear>) -> Result<R, Refusal> {
    read(&felts(node, MAX_ANSWER)?).map_err(|unclear| node.at().refuse(Code::WrongType).with_reason(unclear.to_string()))
}

/// Returns whether a call failed because of the contract: it does not exist, does not have the function, or panics. Any other failure
/// says nothing about the contract.
const fn is_of_contract(error: &NodeError) -> bool {
    matches!(error, NodeError::Rpc { code: 20 | 21 | 40, .. })
}

/// Parses an address that comes from the caller, not from the service.
fn parse(text: &str, at: &'static str) -> Result<Felt, Refusal> {
    felt::parse(text).map_err(|error| Refusal::new(error, at))
}
