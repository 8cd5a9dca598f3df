//! Solana, read over JSON-RPC.
//!
//! The first request to an endpoint reads the hash of its genesis block, which must be that of the pinned cluster. A swap is read at the
//! newest finalized slot. One call returns its account, the vault and the clock, so that all of them come from the same bank. Timelocks
//! are counted in slots, up to the newest confirmed one.
//!
//! Specification: `docs/spec/solana.md#reading-an-order`, `docs/spec/chains.md`.

mod account;
mod preflight;
mod prepare;
mod program;
mod send;
mod wallet;

use countersign::chains::Network;
use countersign::json::Node;
use countersign::solana::read::{CLOCK, Unclear};
use countersign::solana::reader;
use countersign::solana::{Address, address};
use countersign::{Code, HtlcState, HtlcTerms, Refusal, SeenAt};
use countersign_client::Transport;
use serde_json::json;

pub use preflight::Preflight;
pub use program::ProgramDescription;
pub use send::TransactionStatus;

use crate::endpoint::{self, Call, Caller};
use crate::error::NodeError;
use crate::nodes::{Connection, Head};
use account::Accounts;

/// The commitment of blocks that are never replaced.
const FINALIZED: &str = "finalized";
/// The commitment of blocks that a supermajority of the stake has voted for.
const CONFIRMED: &str = "confirmed";

/// The number of slots that an endpoint may go back, because nodes behind the same address differ.
const MAX_STEP_BACK: u64 = 150;
/// The maximum length of a hash, an address or a signature in base58.
const MAX_BASE58: usize = 90;

const MAINNET: &str = "5eykt4UsFv8P8NJdTREpY1vzqKqZKvdpKuc147dw2N9d";
const DEVNET: &str = "EtWTRABZaYq6iMfeYKouRu166VU2xqa1wcaWoxPkrZBG";
const TESTNET: &str = "4uhcVJyU9pJkvQyS88uRDiswHXSCkY3zQawwpjk2NsNY";

/// A connected Solana cluster.
#[derive(Debug)]
pub struct SolanaChain<'n, T> {
    connection: Connection<'n, T>,
    /// The hash of the genesis block; `None` for a local cluster, which has any hash but those of the public clusters.
    genesis: Option<&'static str>,
}

impl<T> Clone for SolanaChain<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for SolanaChain<'_, T> {}

impl<'n, T: Transport> SolanaChain<'n, T> {
    pub(crate) fn new(connection: Connection<'n, T>) -> Result<Self, NodeError> {
        let Network::Solana(cluster) = connection.network else { return Err(NodeError::NotConnected(connection.name.to_owned())) };
        let genesis = match cluster.as_str() {
            "mainnet" | "mainnet-beta" | "101" => Some(MAINNET),
            // The test network of the swap service is devnet.
            "testnet" | "devnet" | "103" => Some(DEVNET),
            "102" => Some(TESTNET),
            "localnet" | "104" => None,
            _ => return Err(NodeError::NotConnected(connection.name.to_owned())),
        };
        Ok(Self { connection, genesis })
    }

    /// Reads the state of one swap from every endpoint, at the endpoint's newest finalized slot: see [`reader::Htlc`]. The endpoints must
    /// agree.
    ///
    /// # Errors
    ///
    /// Returns [`NodeError::Refused`] if the terms are invalid. Returns another [`NodeError`] if no endpoint answers or too few of them
    /// agree. The state is then unknown.
    pub async fn htlc(&self, terms: &HtlcTerms) -> Result<(HtlcState, SeenAt), NodeError> {
        self.connection.read_htlc::<reader::Htlc>(terms).await
    }

    /// Requires that the endpoint serves the pinned cluster.
    async fn identify(&self, caller: Caller<'n, T>) -> Result<(), NodeError> {
        const LOCAL: &str = "a local cluster";
        let ask = || async {
            let genesis = caller.rpc(&[Call::new("getGenesisHash", json!([]))], |results| base58(nth(results, 0)?, 32)).await?;
            let is_public = [MAINNET, DEVNET, TESTNET].contains(&genesis.as_str());
            Ok(if self.genesis.is_none() && !is_public { LOCAL.to_owned() } else { genesis })
        };
        caller.identify(self.genesis.unwrap_or(LOCAL), ask).await
    }

    /// Returns the newest confirmed slot of an endpoint, with the newest blockhash and the time of its clock.
    pub(crate) async fn head(&self, caller: Caller<'n, T>) -> Result<Head, NodeError> {
        self.identify(caller).await?;
        let calls = [account::get(&[CLOCK], CONFIRMED, 0), Call::new("getLatestBlockhash", json!([{"commitment": CONFIRMED}]))];
        let (clock, hash) = caller
            .rpc(&calls, |results| {
                let accounts = Accounts::read(nth(results, 0)?, 1)?;
                Ok((accounts.clock()?, wallet::LatestBlockhash::read(nth(results, 1)?)?.blockhash))
            })
            .await?;
        caller.check_height(clock.slot, MAX_STEP_BACK)?;
        Ok(Head::new(clock.slot, hash.to_string(), clock.time))
    }
}

/// Returns the result of the call at `index`.
fn nth<'s, 'r, 'v>(results: &'s [Node<'r, 'v>], index: usize) -> Result<&'s Node<'r, 'v>, Refusal> {
    endpoint::nth(results, index)
}

/// Reads the base58 text of exactly `length` bytes.
fn base58(node: &Node<'_, '_>, length: usize) -> Result<String, Refusal> {
    let text = node.text()?;
    let is_valid = text.len() <= MAX_BASE58
        && match length {
            32 => address::parse(text).is_ok(),
            _ => text.parse::<countersign::solana::solana_signature::Signature>().is_ok(),
        };
    if is_valid { Ok(text.to_owned()) } else { Err(node.refuse(Code::AddressMalformed).with_expected(format!("base58 of {length} bytes"))) }
}

/// Reads an address.
fn key(node: &Node<'_, '_>) -> Result<Address, Refusal> {
    address::parse(node.text()?).map_err(|error| node.refuse(error))
}

/// Parses an address that comes from the caller, not from the service.
fn parse(text: &str, at: &'static str) -> Result<Address, Refusal> {
    address::parse(text).map_err(|error| Refusal::new(error, at))
}

/// Creates a refusal of an answer with an unknown format.
fn unclear(node: &Node<'_, '_>, why: Unclear) -> Refusal {
    node.at().refuse(Code::WrongType).with_reason(why.to_string())
}
