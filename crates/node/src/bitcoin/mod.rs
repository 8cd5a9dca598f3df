//! Bitcoin-like chains: Bitcoin and Litecoin.
//!
//! An endpoint is an Esplora server, or with `rpc+` before its URL a node's own RPC. Either is believed as far as its bytes prove
//! it: a transaction by its id, an amount by the output, an HTLC by the tree that its address proves, a block by its header, and
//! a place in a block by a Merkle proof. How high a block is, that its chain has the most work, and that an output is unspent is
//! what the endpoints must agree on: about these nothing contradicts the lie of an only endpoint.
//!
//! A node's own RPC has no index of addresses. It does not see a funding in the mempool, and it sees what has spent an output
//! only in the mempool and for eight blocks after that. Then it cannot tell, and an Esplora server beside it disagrees.
//!
//! Litecoin's nodes do not replace transactions in their mempool unless they are told to (`-mempoolreplacement=1`).
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
use countersign::bitcoin::chain;
use countersign::bitcoin::htlc::Tree;
use countersign::bitcoin::recover::Funding;
use countersign::bitcoin::{Chain, Utxo};
use countersign::chains::{BitcoinNet, Coin};
use countersign::{Code, HtlcState, HtlcTerms, Refusal, SeenAt};
use countersign_client::Transport;

use self::look::{Block, Claim, Look, MWEB_DEPTH, Seen};
use crate::endpoint::Caller;
use crate::error::NodeError;
use crate::nodes::{Connection, Head};
use crate::quorum::agree;

pub use send::TransactionStatus;
pub use wallet::FeeEstimate;

/// Most coins of an address that are used: those of the greatest value.
const MAX_COINS: usize = 200;

/// Most inputs of a funding whose origin is looked at.
const MAX_PARENTS: usize = 32;

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

    /// Reads the state of one HTLC from every endpoint. The terms' swap id must be the address that follows from the others.
    ///
    /// A locked HTLC has the amount of its output and the keys, timelock and secret hash that the address proves. `elapsed` counts
    /// as BIP-68 does: the block of the funding is 1, and nodes relay a refund once it is equal to the timelock. An unconfirmed
    /// funding has a depth of 0. Where several outputs pay the address, the state is that of one that covers the amount, unspent
    /// ones first, and of these the one that was mined first; [`BitcoinChain::fundings`] lists them all.
    ///
    /// [`SeenAt`] has the block that made the state: of the funding, or of what spent it. Where that is in no block, it has the
    /// newest one. A redemption or a refund in the mempool has a depth of 0. On Litecoin an output that is paid with coins from
    /// the extension block is not clear before it is 24 blocks deep.
    ///
    /// # Errors
    ///
    /// [`NodeError`]; a failed read tells nothing.
    pub async fn htlc(&self, terms: &HtlcTerms) -> Result<(HtlcState, SeenAt), NodeError> {
        let tree = chain::tree(terms, self.chain)?;
        let all = self.connection.each(|caller| self.look(caller, &tree, terms)).await;
        let (needed, all) = (self.connection.needed(), agree(all, self.connection.needed(), Seen::key)?);
        // A quorum is at least one endpoint.
        Seen::combine(all, needed).ok_or_else(|| NodeError::NotConnected(self.connection.name.to_owned()))
    }

    async fn look(&self, caller: Caller<'n, T>, tree: &Tree, terms: &HtlcTerms) -> Result<Seen, NodeError> {
        self.identify(caller).await?;
        let look: Look = if caller.endpoint.is_rpc {
            rpc::look(caller, tree, terms, self.chain).await?
        } else {
            esplora::look(caller, tree, terms, self.chain).await?
        };
        caller.check_height(look.head.height, self.longest_reorganisation())?;
        Ok(Seen::new(look, terms, self.chain.coin))
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

    /// How many blocks the newest block may go back.
    const fn longest_reorganisation(&self) -> u64 {
        match self.chain.coin {
            Coin::Bitcoin => 3,
            Coin::Litecoin => 15,
        }
    }
}

/// Returns the hashes of block 0 that a chain may have. The registry has one network for the three that share Bitcoin's test
/// addresses: the chain's name may say which one it is, and the quorum on block hashes keeps them apart.
///
/// Bitcoin's are those of the crate `bitcoin`; Litecoin's are those of Litecoin Core's `chainparams.cpp`.
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

/// Where a transaction is that an endpoint knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Status {
    block: Option<Block>,
}

/// Which transactions tell whether a payment comes from Litecoin's extension block.
enum Parents {
    /// The payment is deep enough, or of another coin.
    Irrelevant,
    /// More than are looked at.
    TooMany,
    Look(Vec<Txid>),
}

impl Parents {
    fn of(transaction: &Transaction, chain: Chain, block: Option<Block>, head: &Head) -> Self {
        let is_deep = block.is_some_and(|block| head.height.saturating_add(1) >= block.height.saturating_add(MWEB_DEPTH));
        if chain.coin != Coin::Litecoin || is_deep || transaction.is_coinbase() {
            return Self::Irrelevant;
        }
        if transaction.input.len() > MAX_PARENTS {
            return Self::TooMany;
        }
        let mut txids: Vec<Txid> = transaction.input.iter().map(|input| input.previous_output.txid).collect();
        txids.sort_unstable();
        txids.dedup();
        Self::Look(txids)
    }
}

/// Returns whether a transaction moves coins between Litecoin's extension block and the chain.
fn is_peg_out(raw: &[u8], txid: Txid) -> Result<bool, Refusal> {
    if chain::is_mweb(raw) {
        return Ok(true);
    }
    Ok(chain::holds_mweb(&chain::parse_transaction(raw, txid)?))
}

/// Returns the output of a transaction that pays the HTLC, with the amount that its bytes have.
fn proven(transaction: &Transaction, tree: &Tree, claim: Funding) -> Result<Funding, Refusal> {
    let refuse = |why: &'static str| Refusal::new(Code::FundingMismatch, "/vout").with_reason(why).with_actual(claim.outpoint.to_string());
    let fundings = Funding::from_transaction(transaction, tree);
    let funding = fundings.into_iter().find(|funding| funding.outpoint == claim.outpoint);
    let funding = funding.ok_or_else(|| refuse("the output does not pay the HTLC"))?;
    // The choice between several outputs was made by the amounts in the list.
    if funding.value != claim.value {
        return Err(refuse("the output has another amount than the list"));
    }
    Ok(funding)
}
