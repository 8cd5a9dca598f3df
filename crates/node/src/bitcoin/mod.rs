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

/// The maximum number of coins of an address that are used. The most valuable ones are chosen.
const MAX_COINS: usize = 200;

/// The maximum number of inputs of a funding transaction whose origin is checked.
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

    /// Reads the state of one HTLC from every endpoint. The endpoints must agree. The swap id in the terms must be the address that
    /// follows from the other terms.
    ///
    /// A locked HTLC has the amount of its output, and the keys, timelock and secret hash that the address proves. `elapsed` counts
    /// blocks as BIP-68 does: it is 1 in the block of the funding, and nodes relay a refund once it equals the timelock. An unconfirmed
    /// funding has a depth of 0. If several outputs pay the address, one of them decides: outputs that cover the amount come first, then
    /// unspent ones, then the one that was mined first. [`BitcoinChain::fundings`] lists all unspent ones.
    ///
    /// [`SeenAt`] contains the block of the funding or, after the end, of the transaction that spent it. If that transaction is not in a
    /// block, [`SeenAt`] contains the newest block, and the depth is 0. On Litecoin, an output that was paid with coins from the extension
    /// block (MWEB) is [`HtlcState::Unclear`] until it is 24 blocks deep.
    ///
    /// # Errors
    ///
    /// Returns [`NodeError::Refused`] if the terms are invalid or do not give the address. Returns another [`NodeError`] if no endpoint
    /// answers or too few of them agree. The state is then unknown.
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

/// The transactions that show whether a payment comes from Litecoin's extension block.
enum Parents {
    /// The payment is deep enough, or not on Litecoin.
    Irrelevant,
    /// There are more than are checked.
    TooMany,
    /// These must be checked.
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

/// Returns the output of a transaction that pays the HTLC, with the amount from the transaction's bytes.
fn proven(transaction: &Transaction, tree: &Tree, claim: Funding) -> Result<Funding, Refusal> {
    let refuse = |why: &'static str| Refusal::new(Code::FundingMismatch, "/vout").with_reason(why).with_actual(claim.outpoint.to_string());
    let fundings = Funding::from_transaction(transaction, tree);
    let funding = fundings.into_iter().find(|funding| funding.outpoint == claim.outpoint);
    let funding = funding.ok_or_else(|| refuse("the output does not pay the HTLC"))?;
    // The output was chosen by the amounts in the list, so the list must be right.
    if funding.value != claim.value {
        return Err(refuse("the amount of the output differs from the list of outputs"));
    }
    Ok(funding)
}
