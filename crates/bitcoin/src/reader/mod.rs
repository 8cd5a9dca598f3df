//! Reads Bitcoin-like chains without I/O: what to ask an endpoint, and what its answers prove.
//!
//! An endpoint is an Esplora server or, with [`Known::is_rpc`], a node's own RPC. These parts of an answer are checked against bytes that
//! prove them:
//!
//! | fact | proof |
//! |---|---|
//! | a transaction | its id |
//! | an amount | the output |
//! | the terms of an HTLC | the tree that its address commits to |
//! | a block | its header |
//! | the place of a transaction in a block | a Merkle proof |
//!
//! There is no proof for the height of a block, for its chain having the most work, and for an output being unspent. The endpoints must
//! agree on these. With a single endpoint, a false answer about them goes unnoticed.
//!
//! A node's own RPC has no address index. It does not see a funding transaction in the mempool. It finds the transaction that spent an
//! output only in the mempool and in the newest eight blocks. After that the state is unclear, and an Esplora server next to it
//! disagrees.
//!
//! By default, Litecoin nodes do not replace transactions in their mempool (`-mempoolreplacement=1` enables it).
//!
//! Specification: `docs/spec/bitcoin.md#reading-an-order`, `docs/spec/chains.md#bitcoin-and-litecoin`.

mod broadcast;
mod esplora;
mod fate;
pub mod fees;
mod head;
mod htlc;
mod look;
mod parse;
mod payment;
mod preflight;
mod rpc;
mod sent;
mod status;
mod unspent;
pub mod version;

use bitcoin::Network as BitcoinNetwork;
use bitcoin::constants::genesis_block;
use countersign_core::chains::{BitcoinNet, Coin, Network};
use countersign_core::reader::{Fault, Format, Identity, Known, Reply, Request};
use countersign_core::{BlockHeight, Code, Refusal};

pub use broadcast::{Broadcast, Sender, decode};
pub use fate::{FateOf, Tracer};
pub use fees::{FeeEstimation, FeeQuote};
pub use head::NewestBlock;
pub use htlc::{Htlc, HtlcReader};
pub use payment::{Deposit, FoundPayment, PaymentOutput, PaymentSearch, PaymentSpend};
pub use preflight::{Plan, Preflight, PreflightCheck};
pub use sent::{Sent, SentTransaction};
pub use status::{Included, Status, TransactionStatus};
pub use unspent::{Coins, ConfirmedOutput, ListedCoins, Outputs, Unspent};
pub use version::VersionCheck;

use crate::address::Chain;

/// A Bitcoin-like chain with its name in the registry.
///
/// The registry has one network for the three Bitcoin networks that share test addresses. The chain's name may identify one of them.
/// Otherwise the quorum on block hashes keeps them apart.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct NamedChain {
    /// The coin and its network.
    pub chain: Chain,
    /// The name, such as `bitcoin_testnet4`.
    pub name: String,
}

impl NamedChain {
    /// Creates a chain with its name.
    #[must_use]
    pub fn new(chain: Chain, name: impl Into<String>) -> Self {
        Self { chain, name: name.into() }
    }

    /// Creates the chain of a network.
    ///
    /// # Errors
    ///
    /// [`Code::UnsupportedFamily`] for a network of another family.
    pub fn from_network(network: &Network, name: &str) -> Result<Self, Refusal> {
        let chain = Chain::from_network(network).ok_or_else(|| Refusal::new(Code::UnsupportedFamily, "/chain").with_actual(name))?;
        Ok(Self::new(chain, name))
    }

    /// Returns what identifies the chain: the hash of block 0.
    ///
    /// The hashes for Bitcoin are those of the crate `bitcoin`, and those for Litecoin come from Litecoin Core's `chainparams.cpp`.
    fn identity(&self, is_rpc: bool) -> Identity {
        let bitcoin = |network: BitcoinNetwork| genesis_block(network).block_hash().to_string();
        let is_any_test = self.chain == Chain { coin: Coin::Bitcoin, net: BitcoinNet::Test } && self.test_network().is_none();
        let expected = match (self.chain.coin, self.chain.net) {
            (Coin::Bitcoin, BitcoinNet::Main) => bitcoin(BitcoinNetwork::Bitcoin),
            (Coin::Bitcoin, BitcoinNet::Test) => bitcoin(self.test_network().unwrap_or(BitcoinNetwork::Testnet)),
            (Coin::Bitcoin, BitcoinNet::Regtest) => bitcoin(BitcoinNetwork::Regtest),
            (Coin::Litecoin, BitcoinNet::Main) => "12a765e31ffd4059bada1e25190f6e98c99d9714d334efa41a195a7e7e04bfe2".to_owned(),
            (Coin::Litecoin, BitcoinNet::Test) => "4966625a4b2851d9fdee139e56211a0d88575f59ed816ff5e6a63deb4e3e29a0".to_owned(),
            (Coin::Litecoin, BitcoinNet::Regtest) => "530827f38f93b43ed12af0b3ad25a288dc02ed74d6d7857862df51fc56c416f9".to_owned(),
        };
        let request = if is_rpc { Request::json_rpc("getblockhash", "[0]") } else { Request::get("/block-height/0", Format::Text) };
        Identity { request, expected, read: if is_any_test { any_test_genesis } else { genesis } }
    }

    fn test_network(&self) -> Option<BitcoinNetwork> {
        match self.name.as_str() {
            "bitcoin_testnet4" => Some(BitcoinNetwork::Testnet4),
            "bitcoin_signet" => Some(BitcoinNetwork::Signet),
            _ => None,
        }
    }

    /// Requires that the newest block has not gone back by more than a reorganization explains.
    fn check_height(&self, known: &Known, height: BlockHeight) -> Result<(), Fault> {
        known.check_height(height, self.chain.coin.profile().max_reorganization)
    }
}

/// A subject on a chain.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "a pair")]
pub struct OnChain<S> {
    /// The chain.
    pub chain: NamedChain,
    /// What is read on it.
    pub subject: S,
}

impl<S> OnChain<S> {
    /// Creates a subject on a chain.
    #[must_use]
    pub const fn new(chain: NamedChain, subject: S) -> Self {
        Self { chain, subject }
    }
}

/// Reads the hash of block 0 in the form of either protocol.
fn genesis(reply: &Reply<'_>) -> Result<String, Fault> {
    let hash = match reply {
        Reply::Json(cursor) => parse::block_hash(cursor)?,
        other => parse::hash_text(other.bytes()?)?,
    };
    Ok(hash.to_string())
}

/// Reads the hash of block 0, and returns that of testnet 3 for each of Bitcoin's test networks.
fn any_test_genesis(reply: &Reply<'_>) -> Result<String, Fault> {
    let hash = genesis(reply)?;
    let known = [BitcoinNetwork::Testnet, BitcoinNetwork::Testnet4, BitcoinNetwork::Signet]
        .map(|network| genesis_block(network).block_hash().to_string());
    let [first, ..] = &known;
    Ok(if known.contains(&hash) { first.clone() } else { hash })
}
