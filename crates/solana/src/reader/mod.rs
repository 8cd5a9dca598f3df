//! Reads Solana without I/O: what to ask an endpoint, and what its answers mean.
//!
//! | machine | asks | rounds |
//! |---|---|---|
//! | [`Htlc`] | `getMultipleAccounts`, `getSlot`, `getSignaturesForAddress`, `getTransaction`, `getFirstAvailableBlock` | 1 or 2 while the swap is open, at most 8 |
//! | [`NewestBlock`] | `getMultipleAccounts` of the clock, `getLatestBlockhash` | 1 |
//! | [`Context`] | `getMultipleAccounts` of the recent blockhashes, `getBlockHeight`, `getRecentPrioritizationFees` | 1 |
//! | [`Balance`] | `getMultipleAccounts` | 1 |
//! | [`PayoutCheck`] | `getMultipleAccounts`, `getMinimumBalanceForRentExemption` | 1 |
//! | [`Settlement`] | `getMultipleAccounts` | 1 |
//! | [`PreflightCheck`] | `getMultipleAccounts`, `getMinimumBalanceForRentExemption`, `simulateTransaction` | 1 |
//! | [`Broadcast`] | `isBlockhashValid`, then `sendTransaction`, then `getSignatureStatuses` if it was refused | 2 or 3 |
//! | [`FateOf`] | `getSignatureStatuses`, `getBlockHeight`, then `isBlockhashValid` | 1 or 2 |
//! | [`Status`] | `getSignatureStatuses`, `getBlockHeight` | 1 |
//! | [`Effect`] | `getTransaction` | 1 |
//! | [`Program`] | `getMultipleAccounts` of the program, and of its code | 2 |
//!
//! Every round also asks for the hash of the genesis block, which must be that of the pinned cluster. All accounts of one answer come
//! from the same bank, whose clock is one of them.
//!
//! Specification: `docs/spec/solana.md#reading-an-order`, `docs/spec/chains.md#solana`.

mod account;
mod balance;
mod broadcast;
mod context;
mod effect;
mod fate;
mod head;
mod history;
mod htlc;
mod payout;
mod preflight;
mod program;
mod sent;
mod settlement;
mod transactions;

use countersign_core::chains::Network;
use countersign_core::json::Cursor;
use countersign_core::reader::{Fault, Identity, Reader, Reply, Request};
use countersign_core::{Code, Refusal};

use crate::address::{self, Address};
pub use balance::{Balance, BalanceQuery};
pub use broadcast::{Broadcast, Sender, Status, StatusQuery, TransactionStatus, decode};
pub use context::{Context, ContextQuery, MAX_AGE, Offer, wallet_context};
pub use effect::{Effect, EffectQuery};
pub use fate::{FateOf, Tracer};
pub use head::{HeadQuery, NewestBlock};
pub use history::SwapHistory;
pub use htlc::Htlc;
pub use payout::{PayoutAsked, PayoutCheck, PayoutFacts, PayoutQuery};
pub use preflight::{Preflight, PreflightCheck, PreflightQuery};
pub use program::{Program, ProgramDescription, ProgramQuery};
pub use sent::{Sent, SentQuery};
pub use settlement::{Settlement, SettlementFacts, SettlementQuery};

/// Reads the state of an HTLC from one endpoint.
pub type HtlcReader = Reader<Htlc>;

/// The commitment of blocks that are never replaced. Since Alpenglow, `confirmed` means the same blocks and is going away.
const FINALIZED: &str = "finalized";

/// The number of slots that an endpoint may go back, because nodes behind the same address differ.
const MAX_STEP_BACK: u64 = 150;

const MAINNET: &str = "5eykt4UsFv8P8NJdTREpY1vzqKqZKvdpKuc147dw2N9d";
const DEVNET: &str = "EtWTRABZaYq6iMfeYKouRu166VU2xqa1wcaWoxPkrZBG";
const TESTNET: &str = "4uhcVJyU9pJkvQyS88uRDiswHXSCkY3zQawwpjk2NsNY";
/// The identity of a cluster whose genesis block is not that of a public cluster.
const LOCAL: &str = "a local cluster";

type ReadIdentity = fn(&Reply<'_>) -> Result<String, Fault>;

/// Returns how an endpoint shows which cluster it serves: by the hash of the genesis block. A local cluster may have any hash except
/// those of the public clusters.
///
/// # Errors
///
/// [`Code::UnknownChain`] if this is not a known Solana cluster.
pub fn identity(network: &Network) -> Result<Identity, Refusal> {
    let cluster = if let Network::Solana(cluster) = network { cluster.as_str() } else { "" };
    let (expected, read): (_, ReadIdentity) = match cluster {
        "mainnet" | "mainnet-beta" | "101" => (MAINNET, genesis),
        // The test network of the swap service is devnet.
        "testnet" | "devnet" | "103" => (DEVNET, genesis),
        "102" => (TESTNET, genesis),
        "localnet" | "104" => (LOCAL, local_genesis),
        _ => return Err(Refusal::new(Code::UnknownChain, "/network").with_actual(cluster)),
    };
    Ok(Identity { request: Request::json_rpc("getGenesisHash", "[]"), expected: expected.to_owned(), read })
}

fn genesis(reply: &Reply<'_>) -> Result<String, Fault> {
    Ok(key(&reply.json()?)?.to_string())
}

fn local_genesis(reply: &Reply<'_>) -> Result<String, Fault> {
    let hash = genesis(reply)?;
    Ok(if [MAINNET, DEVNET, TESTNET].contains(&hash.as_str()) { hash } else { LOCAL.to_owned() })
}

/// Reads an address, or a hash, which is written in the same way.
fn key(cursor: &Cursor<'_, '_>) -> Result<Address, Refusal> {
    address::parse(cursor.text()?).map_err(|error| cursor.refuse(error))
}
