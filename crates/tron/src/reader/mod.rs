//! Reads a Tron chain without I/O: what to ask, and what the answers mean.
//!
//! All requests use the HTTP interface of the chain's nodes. JSON is posted to `/wallet/..`, which serves the newest block, and to
//! `/walletsolidity/..`, which serves the newest irreversible (solidified) block. An endpoint must serve both. Each machine is driven by
//! a [`Reader`](countersign_core::reader::Reader), which asks in every round for the genesis block: its id ends with the bytes that
//! identify the pinned chain.
//!
//! | machine | rounds | requests, without those for the identity | what it reads | what endpoints must agree on |
//! |---|---|---|---|---|
//! | [`Htlc`] | 3 | 9 | the state of one order | state, and the id of the block that led to it |
//! | [`NewestBlock`] | 1 | 1 | the newest block, or the newest irreversible one | nothing |
//! | [`Context`] | 1 | 1 | the context for signing calls: an irreversible block by its height | the context |
//! | [`Balance`] | 1 | 1 | a balance or an allowance | the amount |
//! | [`PreflightCheck`] | at most 2 | at most 9 | whether an order can be funded | that it can, or the code of the refusal |
//! | [`Broadcast`] | at most 3 | at most 3 | whether the endpoint accepts a transaction | whether it does |
//! | [`FateOf`] | at most 2 | 3, then 2 | whether a transaction that was sent can still be included | the answer |
//! | [`ReceiverCheck`] | 1 | at most 5 | whether the receiver of an order can be paid | that it can, or the code of the refusal |
//! | [`DecimalsCheck`] | 1 | 1 | whether a token has the decimals of the registry | that it has, or the code of the refusal |
//! | [`AuthorityCheck`] | 1 | 1 | whether the keys of a permission can sign calls | that they can, or the code of the refusal |
//! | [`Status`] | 1 | 2 | the receipt of a transaction | block and success |
//! | [`Effect`] | 1 | 1 | what a transaction did, also that of another account | success, and every log |
//! | [`Contract`] | 1 | 3 | the description of a contract | the description |
//!
//! A transaction that a node has built is never signed, and no method that takes a private key is called.
//!
//! Specification: `docs/spec/tron.md#reading-an-order`, `docs/spec/chains.md#tron`.

mod balance;
mod block;
mod broadcast;
mod call;
mod contract;
mod effect;
mod fate;
mod head;
mod htlc;
mod permission;
mod preflight;
mod receipt;
mod receiver;
mod reference;
mod sent;

use alloy_primitives::{U256, hex};
use countersign_core::json::Cursor;
use countersign_core::reader::{Fault, Format, Identity, Reply, Request, RpcError};
use countersign_core::{Code, Network, Refusal, number, text};
use serde_json::{Value, json};

pub use balance::{Balance, BalanceOf};
pub use broadcast::{Broadcast, EncodedTransaction};
pub use contract::{Contract, ContractDescription};
pub(crate) use effect::read_info;
pub use effect::{Effect, EffectOf, InfoLog, TransactionInfo};
pub use fate::{FateOf, Tracer};
pub use head::NewestBlock;
pub use htlc::{Htlc, HtlcReader};
pub use permission::{Authority, AuthorityCheck};
pub(crate) use preflight::REDEMPTION_ENERGY;
pub use preflight::{Payer, PayerCheck, Plan, Preflight, PreflightCheck};
pub use receipt::{Included, Receipt, Status};
pub use receiver::{Decimals, DecimalsCheck, Receiver, ReceiverCheck};
pub use reference::{Context, candidates};
pub use sent::{Sent, SentTransaction};

use crate::Address;
use block::Block;

/// The number of blocks that an endpoint's newest block may go back, because of a reorganization or another node behind the same address.
const MAX_STEP_BACK: u64 = 20;
/// The bits of the chain id with which the id of the genesis block ends.
const GENESIS_BITS: u64 = 0xffff_ffff;

/// The block at which a node reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "the interface has these two paths")]
pub enum View {
    /// The newest block, below `/wallet`.
    Newest,
    /// The newest irreversible (solidified) block, below `/walletsolidity`.
    Irreversible,
}

/// What is read, and the chain from which it is read.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "a pair")]
pub struct OnChain<S> {
    /// The id of the pinned chain.
    pub chain_id: u64,
    /// What is read.
    pub subject: S,
}

/// Returns what identifies the chain with this id: the last four bytes of the id of its genesis block.
#[must_use]
pub fn identity(chain_id: u64) -> Identity {
    let read = |reply: &Reply<'_>| {
        let genesis = Block::read_at(0, reply)?;
        let [.., a, b, c, d] = genesis.id;
        Ok(u32::from_be_bytes([a, b, c, d]).to_string())
    };
    Identity { request: Block::request(View::Newest, 0), expected: (chain_id & GENESIS_BITS).to_string(), read }
}

/// Returns the chain id of a Tron network.
///
/// # Errors
///
/// [`Code::UnsupportedFamily`] if it is not a Tron network.
pub fn chain_id(network: &Network) -> Result<u64, Refusal> {
    match network {
        Network::Tron(chain_id) => Ok(*chain_id),
        other => Err(Refusal::new(Code::UnsupportedFamily, "/network").with_actual(other.family())),
    }
}

fn post(view: View, method: &str, query: &Value) -> Request {
    let path = match view {
        View::Newest => "/wallet",
        View::Irreversible => "/walletsolidity",
    };
    Request::post(format!("{path}/{method}"), query.to_string().into_bytes(), Format::Json)
}

/// Returns the JSON of a reply.
fn value<'a>(reply: &Reply<'a>) -> Result<Cursor<'a, 'a>, Fault> {
    let cursor = reply.json()?;
    // A node reports its failures with HTTP status 200.
    if let Ok(members) = cursor.object()
        && let Some(error) = members.get("Error")
    {
        return Err(failed(error.text().unwrap_or("an error without a message")));
    }
    Ok(cursor)
}

/// Creates the fault of a node that could not do what was asked.
fn failed(why: &str) -> Fault {
    Fault::Rpc(RpcError::new(0, why, None))
}

/// Returns an address as nodes accept it: `41` and the 20 bytes in hex.
fn written(address: Address) -> String {
    hex::encode(address.prefixed())
}

/// Returns the request body for an account.
fn account(address: Address) -> Value {
    json!({"address": written(address), "visible": false})
}

/// Returns the request for the TRX balance of an account.
fn coins_request(owner: Address) -> Request {
    post(View::Newest, "getaccount", &account(owner))
}

/// Reads the TRX balance of an account, in sun. The balance of an account that does not exist is 0.
fn coins(reply: &Reply<'_>) -> Result<U256, Fault> {
    Ok(U256::from(count(value(reply)?.object()?.get("balance"))?))
}

/// Reads bytes in hex without `0x`.
fn bytes(cursor: &Cursor<'_, '_>, max: usize) -> Result<Vec<u8>, Refusal> {
    let digits = cursor.text()?;
    if digits.is_empty() {
        return Ok(Vec::new());
    }
    number::hex_bytes(&format!("0x{digits}"), max).map_err(|error| cursor.refuse(error))
}

/// Reads a hash in hex without `0x`.
fn hash(cursor: &Cursor<'_, '_>) -> Result<[u8; 32], Refusal> {
    number::bare_hex_array(cursor.text()?).map_err(|error| cursor.refuse(error))
}

/// Reads a number. Nodes omit numbers that are 0.
fn count(cursor: Option<Cursor<'_, '_>>) -> Result<u64, Refusal> {
    cursor.map_or(Ok(0), |cursor| cursor.integer())
}

/// Returns a node's message, which most methods encode in hex.
fn words(cursor: &Cursor<'_, '_>) -> String {
    let plain = cursor.text().unwrap_or_default();
    let decoded = hex::decode(plain).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    text::escape_untrusted(decoded.as_deref().unwrap_or(plain))
}

/// Creates a refusal of an answer that does not match the request, or contradicts another answer.
fn contradiction(at: &'static str, reason: &'static str) -> Refusal {
    Refusal::new(Code::WrongType, at).with_reason(reason)
}

/// The fault of a machine that is asked to read on after its last round.
const AFTER_THE_END: Fault = Fault::TooMuch("the reading is complete");
