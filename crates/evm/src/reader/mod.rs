//! Reads EVM chains without I/O: what to ask a node over JSON-RPC, and what its answers mean.
//!
//! | machine | rounds | what it shows | what endpoints must agree on |
//! |---|---|---|---|
//! | [`Htlc`] | 3 | the state of one HTLC | state, and the hash of the block that led to it |
//! | [`NewestBlock`] | 1 | the newest block | nothing |
//! | [`Context`] | 1 | nonces and fees | the nonce after the mined transactions |
//! | [`Amount`] | 1 | a balance or an allowance | the amount |
//! | [`PreflightCheck`] | 3 | whether the sender can pay, and what the calls would do | that it passes, or the code of the refusal |
//! | [`Broadcast`] | 3 | whether the endpoint takes a transaction | that it does |
//! | [`FateOf`] | 2 | whether a transaction that was sent can still be included | the answer |
//! | [`ReceiverCheck`] | 1 | whether the receiver of an HTLC can be paid | that it can, or the code of the refusal |
//! | [`Effect`] | 1 | what a transaction did, by its receipt | the logs, or that there is no receipt |
//! | [`CodeCheck`] | 1 | whether an account has code | that it has, or not |
//! | [`SignatureCheck`] | 1 | whether the contract will take a gasless signature | that it will, or the code of the refusal |
//! | [`ServedCheck`] | 1 | whether the endpoint serves what the evidence will need | that it does, or the code of the refusal |
//! | [`Status`] | 1 | the receipt of a transaction | the receipt |
//! | [`Contract`] | 2 | the description of a contract | the description |
//!
//! Every round also asks for the chain id, which must be the pinned one. All parts of an order are read at one block, which is named by
//! its hash. An endpoint's newest block may go back 16 blocks.
//!
//! Specification: `docs/spec/evm.md#reading-an-order`, `docs/spec/chains.md#evm`.

mod amount;
mod block;
mod broadcast;
mod context;
mod contract;
mod fate;
pub mod fees;
mod gasless;
mod head;
mod htlc;
mod l1_fee;
mod l1_gas;
mod preflight;
mod proof;
mod receipt;
mod receiver;
mod sent;
mod served;

use alloy_primitives::{Address, B256, hex};
use countersign_core::json::Cursor;
use countersign_core::reader::{Fault, Identity, Reply, Request, RpcError};
use countersign_core::{Code, Network, Refusal};
use countersign_evm_core::revert::revert_reason;
use serde_json::{Value, json};

use crate::read::{self, Unclear};
pub use amount::{Amount, AmountOf};
pub use broadcast::{Broadcast, Sender, decode};
pub use context::{Context, NonceAndFees, pending_nonce};
pub use contract::{Contract, ContractDescription, Domain};
pub use fate::{FateOf, Tracer};
pub use fees::{FeeLevels, Prices};
pub use gasless::{CodeCheck, CodeOf, GaslessSignature, SignatureCheck};
pub use head::{Newest, NewestBlock};
pub use htlc::{Htlc, HtlcReader};
pub use l1_fee::has_l1_fee;
pub use l1_gas::{L1Gas, L1GasEstimation, RedemptionOf};
pub use preflight::{Plan, Preflight, PreflightCheck};
pub use receipt::{Effect, EffectOf, Receipt, Status};
pub use receiver::{Receiver, ReceiverCheck};
pub use sent::{Sent, SentTransaction};
pub use served::{Served, ServedCheck, needs_lower_height};

/// The maximum length in bytes of what a call returns. Every call that is made here returns a few words.
const MAX_ANSWER: usize = 4 * 1024;

/// The code of a node's own failures, such as state that it has pruned. Some nodes also use it for reverts, and say so.
const SERVER_ERROR: i64 = -32_000;

/// What is read, and the chain from which it is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "a pair")]
pub struct OnChain<S> {
    /// The chain id.
    pub chain_id: u64,
    /// What is read.
    pub subject: S,
}

/// Returns the chain id of a network.
///
/// # Errors
///
/// [`Code::UnsupportedFamily`] if it is not an EVM network.
pub fn chain_id(network: &Network) -> Result<u64, Refusal> {
    match network {
        Network::Evm(chain_id) => Ok(*chain_id),
        other => Err(Refusal::new(Code::UnsupportedFamily, "/network").with_actual(other.family())),
    }
}

/// Returns how an endpoint shows its chain id.
fn identity(chain_id: u64) -> Identity {
    Identity {
        request: Request::json_rpc("eth_chainId", "[]"),
        expected: chain_id.to_string(),
        read: |reply| Ok(reply.json()?.hex_number()?.to_string()),
    }
}

/// Returns the fault of a machine that is asked to go on after its end.
const fn complete() -> Fault {
    Fault::TooMuch("the reading is complete")
}

/// Creates an `eth_call` at a block.
fn call(to: Address, data: &[u8], block: &Value) -> Request {
    Request::json_rpc("eth_call", json!([{"to": to, "data": hex::encode_prefixed(data)}, block]))
}

/// Creates the request for the balance of an account: of a token, or of the chain's own coin.
fn balance(owner: Address, token: Option<Address>, block: &Value) -> Request {
    match token {
        Some(token) => call(token, &read::balance_call(owner), block),
        None => Request::json_rpc("eth_getBalance", json!([owner, block])),
    }
}

/// Returns the parameter that names a block by its hash and requires that it is on the canonical chain (EIP-1898).
fn at(hash: B256) -> Value {
    json!({"blockHash": hash, "requireCanonical": true})
}

/// Reads a number of at most 64 bits.
fn quantity(cursor: &Cursor<'_, '_>) -> Result<u64, Refusal> {
    u64::try_from(cursor.hex_number()?).map_err(|_| cursor.refuse(Code::NumberTooLarge))
}

/// Reads a price of at most 128 bits, in wei.
fn price(cursor: &Cursor<'_, '_>) -> Result<u128, Refusal> {
    u128::try_from(cursor.hex_number()?).map_err(|_| cursor.refuse(Code::NumberTooLarge))
}

fn hash(cursor: &Cursor<'_, '_>) -> Result<B256, Refusal> {
    cursor.hex_array().map(B256::from)
}

/// Decodes what a call returned as one number or address. A contract that returns anything else cannot be used.
fn answer<R>(cursor: &Cursor<'_, '_>, read: impl FnOnce(&[u8]) -> Result<R, Unclear>) -> Result<R, Refusal> {
    read(&cursor.hex_bytes(MAX_ANSWER)?).map_err(|unclear| cursor.at().refuse(Code::WrongType).with_reason(unclear.to_string()))
}

/// Returns what a call returned; `None` if the contract reverted. A failure of the node means nothing.
fn returned(reply: &Reply<'_>, max: usize) -> Result<Option<Vec<u8>>, Fault> {
    match reply.json_or_error()? {
        Ok(cursor) => Ok(Some(cursor.hex_bytes(max)?)),
        Err(error) if revert(error).is_some() => Ok(None),
        Err(_) => Err(reply.fault()),
    }
}

/// Returns the reason if the error is a revert by the contract; `None` if the node failed for another reason.
fn revert(error: &RpcError) -> Option<String> {
    let RpcError { code, message, data, .. } = error;
    // With the code for every failure of its own, a node may add data too: "missing trie node" says nothing about the contract.
    let has_data = data.is_some() && *code != SERVER_ERROR;
    (*code == 3 || has_data || message.to_ascii_lowercase().contains("revert"))
        .then(|| data.as_deref().and_then(revert_reason).unwrap_or_else(|| message.clone()))
}
