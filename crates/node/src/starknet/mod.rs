//! Starknet, by JSON-RPC of version 0.9 or 0.10.
//!
//! An endpoint is asked for its chain id and the version of its interface before anything else. Reads of an order are made at the
//! hash of one block, so that all parts of an answer belong together, and take three requests.
//!
//! Specification: <https://github.com/starkware-libs/starknet-specs/tree/v0.9.0/api>
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

/// How many blocks an endpoint's newest block may go back: a reorganisation, or a neighbour behind the same address.
const MAX_STEP_BACK: u64 = 16;
/// Most felts of the answer of a call: every one that is read has a few.
const MAX_ANSWER: usize = 64;
/// The versions of the interface that are read, by how their names begin.
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

    /// Requires that an endpoint serves the pinned chain, by a version of the interface that is read here.
    async fn identify(&self, caller: Caller<'n, T>) -> Result<(), NodeError> {
        let calls = [Call::new("starknet_chainId", json!([])), Call::new("starknet_specVersion", json!([]))];
        let read = |results: &[Node<'_, '_>]| Ok((felt::read(first(results)?)?, nth(results, 1)?.text()?.to_owned()));
        let ask = async || {
            let (chain_id, version) = caller.rpc(&calls, read).await?;
            if !VERSIONS.iter().any(|known| version.starts_with(known)) {
                return Err(NodeError::Endpoint("an endpoint of Starknet speaks version 0.9 or 0.10 of the JSON-RPC interface"));
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

    /// Requires that the newest block did not go back.
    fn latest(caller: Caller<'n, T>, block: Block) -> Result<Block, NodeError> {
        caller.check_height(block.number, MAX_STEP_BACK)?;
        Ok(block)
    }

    fn not_connected(&self) -> NodeError {
        NodeError::NotConnected(self.connection.name.to_owned())
    }
}

/// Returns a chain id as its short string, or as a felt if it is none.
fn name(chain_id: Felt) -> String {
    felt::to_short_string(&chain_id).unwrap_or_else(|| hex(chain_id))
}

/// Returns a felt as nodes take it.
fn hex(felt: Felt) -> String {
    format!("{felt:#x}")
}

/// Returns felts as nodes take them.
fn hexes(felts: &[Felt]) -> Vec<String> {
    felts.iter().copied().map(hex).collect()
}

/// Returns a call of a contract's function at a block.
fn call(contract: Felt, selector: Felt, calldata: &[Felt], block: &Value) -> Call {
    let request = json!({"contract_address": hex(contract), "entry_point_selector": hex(selector), "calldata": hexes(calldata)});
    Call::new("starknet_call", json!({"request": request, "block_id": block}))
}

/// Returns the call of a token's `balance_of`.
fn balance_of(token: Felt, owner: Felt, block: &Value) -> Call {
    call(token, read::BALANCE_OF, &[owner], block)
}

/// Returns the first of the results; there is one for each call.
fn first<'r, 'v>(results: &[Node<'r, 'v>]) -> Result<Node<'r, 'v>, Refusal> {
    nth(results, 0)
}

fn nth<'r, 'v>(results: &[Node<'r, 'v>], index: usize) -> Result<Node<'r, 'v>, Refusal> {
    endpoint::nth(results, index).copied()
}

/// Reads an array of felts, of which there are not many.
fn felts(node: &Node<'_, '_>, max: usize) -> Result<Vec<Felt>, Refusal> {
    let all = node.array()?;
    if all.len() > max {
        return Err(node.at().refuse(Code::WrongType).with_expected(format!("at most {max} felts")).with_actual(all.len()));
    }
    all.map(|felt| felt::read(felt)).collect()
}

/// Reads the answer of a call as one value: a contract that answers something else cannot be used.
fn answer<R>(node: &Node<'_, '_>, read: impl FnOnce(&[Felt]) -> Result<R, Unclear>) -> Result<R, Refusal> {
    read(&felts(node, MAX_ANSWER)?).map_err(|unclear| node.at().refuse(Code::WrongType).with_reason(unclear.to_string()))
}

/// Returns whether a call failed because of the contract: there is none, it lacks the function, or it panics. A node that fails for
/// another reason has said nothing.
const fn is_of_contract(error: &NodeError) -> bool {
    matches!(error, NodeError::Rpc { code: 20 | 21 | 40, .. })
}

/// Reads an address that is not the service's.
fn parse(text: &str, at: &'static str) -> Result<Felt, Refusal> {
    felt::parse(text).map_err(|error| Refusal::new(error, at))
}
