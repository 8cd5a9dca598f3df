//! Reads the chain without I/O, over JSON-RPC of version 0.9 or 0.10.
//!
//! Each type here is a [`Machine`](countersign_core::reader::Machine): it says what to ask an endpoint, and decides what the answers
//! mean. [`Reader`] drives it, and asks for the chain id in every round. Every machine requires a known version of the interface in its
//! first round.
//!
//! | machine | asks | rounds |
//! |---|---|---|
//! | [`Htlc`] | newest block; class, token, balance and order at its hash; the block or the event that led to the state | 3 while the HTLC is open and its events fit one page, else up to 16 pages of events |
//! | [`NewestBlock`] | newest block | 1 |
//! | [`Amount`] | balance or allowance | 1 |
//! | [`Context`] | nonce and prices; estimate | 2, a redemption 1 |
//! | [`PreflightCheck`] | balance of STRK and token; balance of the token, allowance and simulation | 2 |
//! | [`Broadcast`] | chain and version alone; the transaction; its status if it is refused | 3 |
//! | [`FateOf`] | status and receipt of a transaction, newest block; the account's nonce at a final block | 1 or 2 |
//! | [`Status`] | status of a transaction | 1 |
//! | [`Effect`] | receipt of a transaction | 1 |
//! | [`Contract`] | newest block; class and token at its hash | 2 |
//! | [`TokenCheck`] | decimals, a balance, or whether the token is paused or has frozen the receiver or the HTLC | 1 |
//!
//! An answer is bounded: 64 felts of a call, 8 events of an order, and core's limits on JSON.
//!
//! JSON-RPC: <https://github.com/starkware-libs/starknet-specs/tree/v0.9.0/api>
//!
//! Specification: `docs/spec/starknet.md#reading-an-order`, `docs/spec/chains.md#starknet`.

mod amount;
mod block;
mod broadcast;
mod context;
mod contract;
mod effect;
mod events;
mod fate;
mod head;
mod htlc;
mod preflight;
mod sent;
mod token;

use countersign_core::chains::Network;
use countersign_core::json::Cursor;
use countersign_core::reader::{Fault, Identity, Known, Reader, Reply, Request, RpcError};
use countersign_core::{Code, Refusal};
use serde_json::{Value, json};
use starknet_types_core::felt::Felt;

pub use amount::{Amount, AmountQuery};
pub use broadcast::{Broadcast, SignedInvoke, Status, StatusShown, TransactionQuery, TransactionStatus, decode};
pub use context::{Context, Costs, Sender, at_limit, check_fee, execution, least_raised, raised};
pub use contract::{Contract, ContractDescription, ContractQuery};
pub use effect::{Effect, EffectQuery};
pub use fate::{FateOf, Tracer};
pub use head::{HeadQuery, NewestBlock};
pub use htlc::{Htlc, MAX_ROUNDS};
pub use preflight::{Intended, Preflight, PreflightCheck};
pub use sent::{Sent, SentQuery};
pub use token::{TokenAsked, TokenCheck, TokenQuery};

use crate::felt;
use crate::read::{self, Unclear};
use block::Block;

/// Reads the state of one HTLC from one endpoint.
pub type HtlcReader = Reader<Htlc>;

/// The token in which fees are paid. STRK has this address on the main network and on the test network.
pub const STRK: Felt = Felt::from_hex_unchecked("0x4718f5a0fc34cc1af16a1cdee98ffb20c31f5cd61d6ab07201858f4287c938d");

/// The maximum number of felts that a call returns. Every call that is made here returns a few.
const MAX_ANSWER: usize = 64;
/// The prefixes of the supported versions of the interface.
const VERSIONS: [&str; 2] = ["0.9.", "0.10."];

/// Returns how an endpoint shows that it serves the chain with this id.
#[must_use]
pub fn identity(chain_id: Felt) -> Identity {
    Identity {
        request: Request::json_rpc("starknet_chainId", "[]"),
        expected: chain_name(chain_id),
        read: |reply| Ok(chain_name(felt::read(reply.json()?)?)),
    }
}

/// Returns the chain id of a Starknet network; `None` for a network of another family.
#[must_use]
pub fn chain_id(network: &Network) -> Option<Felt> {
    match network {
        Network::Starknet(name) => felt::from_short_string(name).ok(),
        _ => None,
    }
}

/// Returns a chain id as a short string, or in hex if it is not a short string.
#[must_use]
pub fn chain_name(chain_id: Felt) -> String {
    felt::to_short_string(&chain_id).unwrap_or_else(|| hex(chain_id))
}

/// The chain that an endpoint must serve, and what it showed before.
#[derive(Debug)]
struct Endpoint {
    chain_id: Felt,
    known: Known,
    learned: Known,
}

impl Endpoint {
    fn new(chain_id: Felt, known: &Known) -> Self {
        Self { chain_id, known: known.clone(), learned: Known::default() }
    }

    /// Reads the newest block, which must not have gone back.
    fn newest(&mut self, cursor: &Cursor<'_, '_>) -> Result<Block, Fault> {
        let block = Block::read_newest(cursor, &self.known)?;
        self.learned = Known::default().with_height(block.number.into());
        Ok(block)
    }
}

/// Returns a felt in hex with `0x`, as nodes accept it.
fn hex(felt: Felt) -> String {
    felt::to_hex(&felt)
}

/// Creates the request for the version of the interface.
fn spec_version() -> Request {
    Request::json_rpc("starknet_specVersion", "[]")
}

/// Requires a version of the interface that this module knows.
fn check_version(reply: &Reply<'_>) -> Result<(), Fault> {
    let cursor = reply.json()?;
    let version = cursor.text()?;
    if VERSIONS.iter().any(|known| version.starts_with(known)) {
        return Ok(());
    }
    let refusal = cursor.refuse(Code::WrongType).with_reason("the endpoint serves an unsupported version of the JSON-RPC interface");
    Err(refusal.with_expected("0.9 or 0.10").with_actual(version).into())
}

/// Creates a call of a contract's function at a block.
fn call(contract: Felt, selector: Felt, calldata: &[Felt], block: &Value) -> Request {
    let calldata: Vec<_> = calldata.iter().copied().map(hex).collect();
    let request = json!({"contract_address": hex(contract), "entry_point_selector": hex(selector), "calldata": calldata});
    Request::json_rpc("starknet_call", json!({"request": request, "block_id": block}))
}

/// Creates a call of a token's `balance_of`.
fn balance_of(token: Felt, owner: Felt, block: &Value) -> Request {
    call(token, read::BALANCE_OF, &[owner], block)
}

/// Reads an array of at most `max` felts.
fn felts(cursor: &Cursor<'_, '_>, max: usize) -> Result<Vec<Felt>, Refusal> {
    let all = cursor.array()?;
    if all.len() > max {
        return Err(cursor.at().refuse(Code::WrongType).with_expected(format!("at most {max} felts")).with_actual(all.len()));
    }
    all.map(felt::read).collect()
}

/// Decodes what a call returned as one value. A contract that returns anything else cannot be used.
fn answer<R>(cursor: &Cursor<'_, '_>, read: impl FnOnce(&[Felt]) -> Result<R, Unclear>) -> Result<R, Refusal> {
    read(&felts(cursor, MAX_ANSWER)?).map_err(|unclear| cursor.at().refuse(Code::WrongType).with_reason(unclear.to_string()))
}

/// Returns the result of a call; `None` if the call failed because of the contract: it does not exist, does not have the function, or
/// panics. Any other error says nothing about the contract.
fn unless_of_contract<'a>(reply: &Reply<'a>) -> Result<Option<Cursor<'a, 'a>>, Fault> {
    match reply.json_or_error()? {
        Ok(cursor) => Ok(Some(cursor)),
        // CONTRACT_NOT_FOUND, ENTRYPOINT_NOT_FOUND and CONTRACT_ERROR.
        Err(error) if matches!(error.code, 20 | 21 | 40) => Ok(None),
        Err(error) => Err(Fault::Rpc(error.clone())),
    }
}

/// Returns whether an error means that a simulated transaction fails.
const fn is_reverted(error: &RpcError) -> bool {
    // CONTRACT_ERROR and TRANSACTION_EXECUTION_ERROR.
    matches!(error.code, 40 | 41)
}

/// Parses an address that comes from the caller, not from the service.
fn parse(text: &str, at: &'static str) -> Result<Felt, Refusal> {
    felt::parse(text).map_err(|error| Refusal::new(error, at))
}
