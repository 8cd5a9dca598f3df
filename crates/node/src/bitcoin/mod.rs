//! Bitcoin-like chains: Bitcoin and Litecoin.
//!
//! An endpoint is an Esplora server or, with `rpc+` before its URL, a node's own RPC. These parts of an answer are checked against
//! bytes that prove them:
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
//! Specification: `docs/spec/bitcoin.md#reading-an-order`, `docs/spec/chains.md`.

mod esplora;
mod look;
mod prepare;
mod read;
mod rpc;
mod send;
mod wallet;

use std::iter;

use countersign::bitcoin::bitcoin::constants::genesis_block;
use countersign::bitcoin::bitcoin::{Network as BitcoinNetwork, OutPoint, Transaction, Txid};
use countersign::bitcoin::reader;
use countersign::bitcoin::recover::Funding;
use countersign::bitcoin::{Chain, Utxo};
use countersign::chains::{BitcoinNet, Coin};
use countersign::{Code, HtlcState, HtlcTerms, Refusal, SeenAt};
use countersign_client::Transport;

use self::look::{Block, Claim};
use crate::endpoint::Caller;
use crate::error::NodeError;
use crate::nodes::{Connection, Head};
use crate::quorum::agree;

pub use send::TransactionStatus;
pub use wallet::FeeEstimate;

/// The maximum number of coins of an address that are used. The most valuable ones are chosen.
const MAX_COINS: usize = 200;

/// A connected Bitcoin-like chain.
#[derive(Debug, Clone, Copy)]
pub struct BitcoinChain<'n, T> {
    connection: Connection<'n, T>,
    chain: Chain,
}

impl<'n, T: Transport> BitcoinChain<'n, T> {
    pub(crate) fn new(connection: Connection<'n, T>) -> Result<Self, NodeError> {
        let chain = Chain::from_network(connection.network).ok_or_else(|| NodeError::NotConnected(connection.name.to_owned()))?;
        Ok(Self { connection, chain })
    }

    pub(crate) async fn head(&self, caller: Caller<'n, T>) -> Result<Head, NodeError> {
        self.identify(caller).await?;
        let head = if caller.endpoint.is_rpc { rpc::head(caller, self.chain).await } else { esplora::head(caller, self.chain).await }?;
        caller.check_height(head.height, self.longest_reorganisation())?;
        Ok(head)
    }

    /// Reads the state of one HTLC from every endpoint. The endpoints must agree. The swap id in the terms must be the address that
    /// follows from the other terms.
    ///
    /// What the state means is in [`Htlc`](countersign::bitcoin::reader::Htlc).
    ///
    /// # Errors
    ///
    /// Returns [`NodeError::Refused`] if the terms are invalid or do not give the address. Returns another [`NodeError`] if no endpoint
    /// answers or too few of them agree. The state is then unknown.
    pub async fn htlc(&self, terms: &HtlcTerms) -> Result<(HtlcState, SeenAt), NodeError> {
        self.connection.read_htlc::<reader::Htlc>(terms).await
    }

    async fn identify(&self, caller: Caller<'n, T>) -> Result<(), NodeError> {
        let all = genesis(self.chain, self.connection.name);
        let expected = all.first().cloned().unwrap_or_default();
        let ask = || async {
            let hash = if caller.endpoint.is_rpc { rpc::genesis(caller).await } else { esplora::genesis(caller).await }?.to_string();
            Ok(if all.contains(&hash) { expected.clone() } else { hash })
        };
        caller.identify(&expected, ask).await
    }

    /// Returns the number of blocks that the newest block may go back.
    const fn longest_reorganisation(&self) -> u64 {
        match self.chain.coin {
            Coin::Bitcoin => 3,
            Coin::Litecoin => 15,
        }
    }
}

/// Returns the hashes of block 0 that a chain may have.
///
/// The registry has one network for the three Bitcoin networks that share test addresses. The chain's name may identify one of them.
/// Otherwise the quorum on block hashes keeps them apart.
///
/// The hashes for Bitcoin are those of the crate `bitcoin`, and those for Litecoin come from Litecoin Core's `chainparams.cpp`.
fn genesis(chain: Chain, name: &str) -> Vec<String> {
    let bitcoin = |networks: &[BitcoinNetwork]| networks.iter().map(|network| genesis_block(*network).block_hash().to_string()).collect();
    match (chain.coin, chain.net) {
        (Coin::Bitcoin, BitcoinNet::Main) => bitcoin(&[BitcoinNetwork::Bitcoin]),
        (Coin::Bitcoin, BitcoinNet::Test) => match name {
            "bitcoin_testnet4" => bitcoin(&[BitcoinNetwork::Testnet4]),
            "bitcoin_signet" => bitcoin(&[BitcoinNetwork::Signet]),
            _ => bitcoin(&[BitcoinNetwork::Testnet, BitcoinNetwork::Testnet4, BitcoinNetwork::Signet]),
        },
        (Coin::Bitcoin, BitcoinNet::Regtest) => bitcoin(&[BitcoinNetwork::Regtest]),
        (Coin::Litecoin, net) => {
            let hash = match net {
                BitcoinNet::Main => "12a765e31ffd4059bada1e25190f6e98c99d9714d334efa41a195a7e7e04bfe2",
                BitcoinNet::Test => "4966625a4b2851d9fdee139e56211a0d88575f59ed816ff5e6a63deb4e3e29a0",
                BitcoinNet::Regtest => "530827f38f93b43ed12af0b3ad25a288dc02ed74d6d7857862df51fc56c416f9",
            };
            iter::once(hash.to_owned()).collect()
        }
    }
}

/// The block of a transaction that an endpoint knows; `None` if it is in the mempool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Status {
    block: Option<Block>,
}
