//! The trait of the chains' engines, with its arguments and results. It is separate from the list of chains, which
//! imports the engines.

use serde_json::{Map, Value};

use crate::http::{Reply, Request};

/// The terms of one side of an order, before its chain adds addresses and ids.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Terms {
    /// The asset id, for example `base:usdc`.
    pub asset: String,
    /// The amount in base units.
    pub amount: u128,
    /// The user's address on this chain, as the request has it.
    pub owner: String,
    /// The delegate in the request. On Bitcoin-like chains, this is the user's x-only key in hex.
    pub delegate: Option<String>,
    /// Whether this is the source, which the user locks and the solver redeems. On the destination it is the reverse.
    pub is_source: bool,
    /// The timelock in the chain's own units: blocks, slots or milliseconds.
    pub timelock: u64,
    /// The hash of the secret.
    pub secret_hash: [u8; 32],
}

/// What a new order's record states about one side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leg {
    /// The id of the swap, as the service's records spell it on this chain.
    pub swap_id: String,
    /// The account that locks.
    pub initiator: String,
    /// The account that redeems.
    pub redeemer: String,
    /// The user's x-only key. Only Bitcoin-like chains have it.
    pub delegate: Option<String>,
}

/// The effect of a block on a swap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// The same id as [`Leg::swap_id`].
    pub swap_id: String,
    /// The transaction's id, as the service's records spell it.
    pub transaction: String,
    /// The height: a block, slot or checkpoint.
    pub height: u64,
    /// What happened.
    pub change: Change,
}

/// What happened to a swap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// The amount was locked.
    Initiated {
        /// The amount in base units.
        amount: u128,
    },
    /// The redeemer was paid, and revealed the secret.
    Redeemed {
        /// The secret.
        secret: [u8; 32],
    },
    /// The initiator was refunded.
    Refunded,
}

/// A chain's entries in the registry and in the service's lists.
#[derive(Debug, Clone)]
pub struct Listing {
    /// The chain as in `GET /v2/chains`, without `assets`.
    pub chain: Value,
    /// Its assets as in `GET /v2/assets`.
    pub assets: Vec<Value>,
    /// The solver's account. On Bitcoin-like chains, this is an x-only key in hex.
    pub solver: String,
}

impl Listing {
    /// Returns whether this chain is a model that runs no code of the real network, according to its title.
    #[must_use]
    pub fn is_model(&self) -> bool {
        self.chain.get("name").and_then(Value::as_str).is_some_and(|title| title.ends_with("(model)"))
    }
}

/// One chain.
///
/// Methods that submit a transaction return its id as the service's records spell it. The transaction is pending
/// until the next block. It has passed a node's checks, so it will succeed unless another transaction gets ahead of
/// it.
pub trait Engine: Send {
    /// Returns what the service and a registry list about this chain.
    fn listing(&self) -> Listing;

    /// Returns the address that a 32-byte key controls.
    fn address_of(&self, key: &[u8; 32]) -> String;

    /// Returns a key in the format of this chain's wallets, or `None` where they use hex.
    fn key_text(&self, _key: &[u8; 32]) -> Option<String> {
        None
    }

    /// Credits an account with base units of an asset. Nobody pays for them.
    ///
    /// # Errors
    ///
    /// Fails if the account or the asset is invalid.
    fn fund(&mut self, account: &str, asset: &str, amount: u128) -> Result<(), String>;

    /// Credits an account's address balance with base units of an asset, and moves all its coins there too.
    ///
    /// # Errors
    ///
    /// Fails if the account or the asset is invalid, or if the chain has no address balances.
    fn fund_balance(&mut self, _account: &str, _asset: &str, _amount: u128) -> Result<(), String> {
        Err("this chain has no address balances".to_owned())
    }

    /// Returns the maximum number of whole units of an asset that a user starts with. A real node cannot create coins
    /// at will.
    fn max_endowment(&self) -> u128 {
        u128::MAX
    }

    /// Returns the balance that an account has of an asset, in base units.
    ///
    /// # Errors
    ///
    /// Fails if the account or the asset is invalid.
    fn balance(&self, account: &str, asset: &str) -> Result<u128, String>;

    /// Freezes an account of a token as its issuer could. Without an account, the whole token is paused.
    ///
    /// # Errors
    ///
    /// Fails if the chain does not support this.
    fn stop(&mut self, asset: &str, _account: Option<&str>) -> Result<(), String> {
        Err(format!("{asset} cannot be frozen or paused"))
    }

    /// Returns the address of a contract that accepts coins, but not with the little gas that swap contracts provide.
    fn vault(&self) -> Option<String> {
        None
    }

    /// Returns the parties and the id of one side.
    ///
    /// # Errors
    ///
    /// Fails if the terms are invalid, in the service's words.
    fn leg(&self, terms: &Terms) -> Result<Leg, String>;

    /// Returns the members of the answer to `POST /v2/orders` besides `order_id`, for an order with this source.
    ///
    /// # Errors
    ///
    /// Fails if the terms are invalid, in the service's words.
    fn payloads(&self, terms: &Terms) -> Result<Map<String, Value>, String>;

    /// Returns the same members with messages of version 1, which only Solana has.
    ///
    /// # Errors
    ///
    /// Fails if the terms are invalid, in the service's words.
    fn v1_payloads(&self, terms: &Terms) -> Result<Map<String, Value>, String> {
        self.payloads(terms)
    }

    /// Allows the swap contract to take a user's tokens, so that a payment needs no approval. Only EVM chains and
    /// Tron have allowances.
    ///
    /// # Errors
    ///
    /// Fails if the terms are invalid.
    fn approve(&mut self, _terms: &Terms) -> Result<(), String> {
        Ok(())
    }

    /// Initiates gaslessly: submits what the user has signed, and pays the fee.
    ///
    /// # Errors
    ///
    /// Fails if the transaction is refused.
    fn initiate(&mut self, terms: &Terms, signature: &str) -> Result<String, String>;

    /// Locks one side as the solver. With `is_source`, locks it on behalf of a simulated user.
    ///
    /// # Errors
    ///
    /// Fails if the chain refuses the transaction.
    fn lock(&mut self, terms: &Terms) -> Result<String, String>;

    /// Redeems one side, as the solver or as the user's relayer.
    ///
    /// # Errors
    ///
    /// Fails if the chain refuses the transaction.
    fn redeem(&mut self, terms: &Terms, secret: &[u8; 32]) -> Result<String, String>;

    /// Refunds one side after the timelock, as the solver or as the user's relayer.
    ///
    /// # Errors
    ///
    /// Fails if the chain refuses the transaction.
    fn refund(&mut self, terms: &Terms) -> Result<String, String>;

    /// Returns the hashes, in hex, that the user signs for a refund before the timelock. Only Bitcoin-like chains
    /// have this refund.
    ///
    /// # Errors
    ///
    /// Fails if the chain has no such refund, or if there is nothing to refund.
    fn instant_refund_hashes(&self, _terms: &Terms) -> Result<Vec<String>, String> {
        Err("this chain has no instant refund".to_owned())
    }

    /// Refunds before the timelock with the user's signatures.
    ///
    /// # Errors
    ///
    /// Fails if the refund is not possible.
    fn instant_refund(&mut self, _terms: &Terms, _signatures: &[String]) -> Result<String, String> {
        Err("this chain has no instant refund".to_owned())
    }

    /// Makes blocks. The first contains the pending transactions. Even a hundred thousand empty blocks take no
    /// noticeable time. A real node has to make each block, so the number is limited there. If the node has ended,
    /// none is made.
    fn mine(&mut self, blocks: u64);

    /// Rolls back the newest blocks with their transactions.
    ///
    /// # Errors
    ///
    /// Fails if the engine cannot roll back, or not this far.
    fn reorganize(&mut self, _depth: u64) -> Result<(), String> {
        Err("this chain does not reorganize".to_owned())
    }

    /// Returns the newest block, slot or checkpoint.
    fn height(&self) -> u64;

    /// Returns the number of pending transactions.
    fn pending(&self) -> usize;

    /// Returns after how many further blocks a transaction is final by the strictest rule that wallets apply.
    fn depth(&self) -> u64;

    /// Returns the nominal milliseconds between blocks. Without pending transactions, blocks come this often.
    fn interval(&self) -> u64;

    /// Returns the milliseconds between blocks that a registry pins, or `None` where timelocks are not in blocks.
    fn pinned_interval(&self) -> Option<u64> {
        Some(self.interval())
    }

    /// Returns the effects of blocks on swaps since the last call.
    fn events(&mut self) -> Vec<Event>;

    /// Answers a wallet's call as a node of this chain does. The request may contain any bytes.
    fn answer(&mut self, request: &Request) -> Reply;
}
