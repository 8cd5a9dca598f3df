//! EVM chains, read over JSON-RPC.
//!
//! The first request to an endpoint reads its chain id, which must be the pinned one. Reading an order takes three requests. All of them
//! name the same block by its hash, so that all parts of the answer belong together.
//!
//! Specification: `docs/spec/evm.md#reading-an-order`, `docs/spec/chains.md`.

mod block;
mod contract;
mod preflight;
mod prepare;
mod send;
mod wallet;

use countersign::chains::Network;
use countersign::evm::alloy_primitives::{Address, B256, hex};
use countersign::evm::read::{self, Unclear};
use countersign::evm::reader;
use countersign::json::Node;
use countersign::{Code, HtlcState, HtlcTerms, Refusal, SeenAt};
use countersign_client::Transport;
use serde_json::{Value, json};

pub use contract::{ContractDescription, Domain};
pub use preflight::Preflight;
pub use send::Receipt;

use crate::endpoint::{self, Call, Caller};
use crate::error::NodeError;
use crate::nodes::{Connection, Head};
use block::{Block, LATEST};

/// The number of blocks that an endpoint's newest block may go back, because of a reorganization or another node behind the same address.
const MAX_STEP_BACK: u64 = 16;
/// The maximum length in bytes of what a call returns. Every call that is made here returns a few words.
const MAX_ANSWER: usize = 4 * 1024;

/// A connected EVM chain.
#[derive(Debug)]
pub struct EvmChain<'n, T> {
    connection: Connection<'n, T>,
    chain_id: u64,
}

impl<T> Clone for EvmChain<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for EvmChain<'_, T> {}

impl<'n, T: Transport> EvmChain<'n, T> {
    pub(crate) fn new(connection: Connection<'n, T>) -> Result<Self, NodeError> {
        match connection.network {
            Network::Evm(chain_id) => Ok(Self { connection, chain_id: *chain_id }),
            _ => Err(NodeError::NotConnected(connection.name.to_owned())),
        }
    }

    /// Requires that the endpoint serves the pinned chain.
    async fn identify(&self, caller: Caller<'n, T>) -> Result<(), NodeError> {
        let calls = [Call::new("eth_chainId", json!([]))];
        let ask = || caller.rpc(&calls, |results| Ok(first(results)?.hex_number()?.to_string()));
        caller.identify(&self.chain_id.to_string(), ask).await
    }

    /// Reads the state of one HTLC from every endpoint, at the endpoint's newest block, as [`reader::Htlc`] says. The endpoints must agree.
    ///
    /// # Errors
    ///
    /// Returns [`NodeError::Refused`] with [`Code::AddressMalformed`] or a code for malformed hex if the terms are invalid. Returns another
    /// [`NodeError`] if no endpoint answers or too few of them agree. The state is then unknown.
    pub async fn htlc(&self, terms: &HtlcTerms) -> Result<(HtlcState, SeenAt), NodeError> {
        self.connection.read_htlc::<reader::Htlc>(terms).await
    }

    pub(crate) async fn head(&self, caller: Caller<'n, T>) -> Result<Head, NodeError> {
        self.identify(caller).await?;
        let block = caller.rpc(&[block::by_tag(LATEST)], |results| Block::read(&first(results)?)).await?;
        let block = self.latest(caller, block)?;
        Ok(Head::new(block.number, block.hash.to_string(), block.time))
    }

    /// Requires that there is a newest block, and that it has not gone back.
    fn latest(&self, caller: Caller<'n, T>, block: Option<Block>) -> Result<Block, NodeError> {
        let block = block.ok_or_else(|| caller.malformed(Refusal::new(Code::MissingField, "/result").with_expected("a block")))?;
        caller.check_height(block.number, MAX_STEP_BACK)?;
        Ok(block)
    }
}

/// Creates an `eth_call` at a block.
fn call(to: Address, data: &[u8], block: &Value) -> Call {
    Call::new("eth_call", json!([{"to": to, "data": hex::encode_prefixed(data)}, block]))
}

/// Returns the parameter that names a block by its hash and requires that it is on the canonical chain (EIP-1898).
fn at(hash: B256) -> Value {
    json!({"blockHash": hash, "requireCanonical": true})
}

/// Returns the result of the first call.
fn first<'r, 'v>(results: &[Node<'r, 'v>]) -> Result<Node<'r, 'v>, Refusal> {
    nth(results, 0)
}

fn nth<'r, 'v>(results: &[Node<'r, 'v>], index: usize) -> Result<Node<'r, 'v>, Refusal> {
    endpoint::nth(results, index).copied()
}

/// Reads a number of at most 64 bits.
fn quantity(node: &Node<'_, '_>) -> Result<u64, Refusal> {
    u64::try_from(node.hex_number()?).map_err(|_| node.refuse(Code::NumberTooLarge))
}

/// Reads a price of at most 128 bits, in wei.
fn price(node: &Node<'_, '_>) -> Result<u128, Refusal> {
    u128::try_from(node.hex_number()?).map_err(|_| node.refuse(Code::NumberTooLarge))
}

fn hash(node: &Node<'_, '_>) -> Result<B256, Refusal> {
    node.hex_array().map(B256::from)
}

/// Decodes what a call returned as one number or address. A contract that returns anything else cannot be used.
fn answer<R>(node: &Node<'_, '_>, read: impl FnOnce(&[u8]) -> Result<R, Unclear>) -> Result<R, Refusal> {
    read(&node.hex_bytes(MAX_ANSWER)?).map_err(|unclear| node.at().refuse(Code::WrongType).with_reason(unclear.to_string()))
}

/// Returns the reason if the error is a revert by the contract; `None` if the node failed for another reason.
fn revert(error: &NodeError) -> Option<String> {
    match error {
        NodeError::Rpc { code, message, data, .. } if *code == 3 || data.is_some() || message.contains("revert") => {
            let reason = data.as_deref().and_then(read::revert_reason);
            Some(reason.unwrap_or_else(|| message.clone()))
        }
        _ => None,
    }
}
