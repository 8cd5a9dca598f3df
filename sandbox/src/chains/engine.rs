//! The trait of the chains' engines, with its arguments and results. Engines import this file, and the list of chains imports engines.

use serde_json::{Map, Value};

use crate::http::{Reply, Request};

/// What a leg of an order says, before its chain is asked for addresses and ids.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Terms {
    /// The asset id, for example `base:usdc`.
    pub asset: String,
    /// Base units.
    pub amount: u128,
    /// The user's address on this chain, as the request has it.
    pub owner: String,
    /// The delegate of the request: on Bitcoin-like chains the user's x-only key in hex.
    pub delegate: Option<String>,
    /// Whether the user locks and the solver redeems. On a destination it is the other way round.
    pub is_source: bool,
    /// In the chain's own units: blocks, slots, milliseconds.
    pub timelock: u64,
    /// The hash of the secret.
    pub secret_hash: [u8; 32],
}

/// What the record states about a leg from its beginning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leg {
    /// In the spelling that the service's records have on this chain.
    pub swap_id: String,
    /// Who locks.
    pub initiator: String,
    /// Who redeems.
    pub redeemer: String,
    /// Bitcoin-like chains only: the user's x-only key.
    pub delegate: Option<String>,
}

/// Something that a block did to a swap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// As in [`Leg::swap_id`].
    pub swap_id: String,
    /// The transaction, in the spelling of the service's records.
    pub transaction: String,
    /// The block, slot or checkpoint.
    pub height: u64,
    /// What happened.
    pub change: Change,
}

/// What happened to a swap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// Somebody locked this much.
    Initiated {
        /// Base units.
        amount: u128,
    },
    /// The redeemer took it, and so showed the secret.
    Redeemed {
        /// The secret.
        secret: [u8; 32],
    },
    /// It went back.
    Refunded,
}

/// A chain's rows of the registry and what the service lists about it.
#[derive(Debug, Clone)]
pub struct Listing {
    /// The chain as `GET /v2/chains` has it, without `assets`.
    pub chain: Value,
    /// Its assets as `GET /v2/assets` has them.
    pub assets: Vec<Value>,
    /// The solver's account: an x-only key in hex on Bitcoin-like chains.
    pub solver: String,
}

impl Listing {
    /// Returns whether no code of the true network runs on this chain, as its title says.
    #[must_use]
    pub fn is_model(&self) -> bool {
        self.chain.get("name").and_then(Value::as_str).is_some_and(|title| title.ends_with("(model)"))
    }
}

/// One chain.
///
/// Every method that submits a transaction returns its id in the spelling of the service's records. The transaction is pending until
/// the next block; it has been checked as a node checks it, so it will succeed unless another one comes before.
pub trait Engine: Send {
    /// Returns what the service and a registry list.
    fn listing(&self) -> Listing;

    /// The address that a 32-byte key controls.
    fn address_of(&self, key: &[u8; 32]) -> String;

    /// Gives base units of an asset to an account, from nowhere.
    ///
    /// # Errors
    ///
    /// What is wrong with the account or the asset.
    fn fund(&mut self, account: &str, asset: &str, amount: u128) -> Result<(), String>;

    /// Gives base units of an asset to an account from nowhere, without any coin object, and puts all its coins there, too.
    ///
    /// # Errors
    ///
    /// What is wrong with the account or the asset, or that the chain has no such balances.
    fn fund_balance(&mut self, _account: &str, _asset: &str, _amount: u128) -> Result<(), String> {
        Err("this chain has no address balances beside coins".to_owned())
    }

    /// Returns the most whole units of an asset that a user starts with. A real node cannot create coins at will.
    fn max_endowment(&self) -> u128 {
        u128::MAX
    }

    /// Returns what an account has of an asset, in base units.
    ///
    /// # Errors
    ///
    /// What is wrong with the account or the asset.
    fn balance(&self, account: &str, asset: &str) -> Result<u128, String>;

    /// The issuer of a token freezes an account, or pauses the token where none is named.
    ///
    /// # Errors
    ///
    /// Why that cannot be done.
    fn stop(&mut self, asset: &str, _account: Option<&str>) -> Result<(), String> {
        Err(format!("nobody can stop {asset}"))
    }

    /// Returns the address of a contract that takes coins, but not with the gas that swap contracts give.
    fn vault(&self) -> Option<String> {
        None
    }

    /// Parties and id of a leg.
    ///
    /// # Errors
    ///
    /// What is wrong with the terms, as the service says it.
    fn leg(&self, terms: &Terms) -> Result<Leg, String>;

    /// Returns what the answer to `POST /v2/orders` has beside `order_id` if this is the source.
    ///
    /// # Errors
    ///
    /// What is wrong with the terms, as the service says it.
    fn payloads(&self, terms: &Terms) -> Result<Map<String, Value>, String>;

    /// Returns the same with messages of version 1, which only Solana has.
    ///
    /// # Errors
    ///
    /// What is wrong with the terms, as the service says it.
    fn v1_payloads(&self, terms: &Terms) -> Result<Map<String, Value>, String> {
        self.payloads(terms)
    }

    /// Lets the swap contract take a user's tokens from now on, so that a payment needs no approval. Only EVM chains and Tron do.
    ///
    /// # Errors
    ///
    /// What is wrong with the terms.
    fn approve(&mut self, _terms: &Terms) -> Result<(), String> {
        Ok(())
    }

    /// Gasless initiation: submits what the user has signed, and pays for it.
    ///
    /// # Errors
    ///
    /// Why it cannot be done.
    fn initiate(&mut self, terms: &Terms, signature: &str) -> Result<String, String>;

    /// Returns the solver locks a leg, or with `is_source` somebody locks it for a user whom the sandbox plays.
    ///
    /// # Errors
    ///
    /// Why the chain refuses it.
    fn lock(&mut self, terms: &Terms) -> Result<String, String>;

    /// The solver, or the relayer for the user, redeems.
    ///
    /// # Errors
    ///
    /// Why the chain refuses it.
    fn redeem(&mut self, terms: &Terms, secret: &[u8; 32]) -> Result<String, String>;

    /// The solver, or the relayer for the user, takes it back after the timelock.
    ///
    /// # Errors
    ///
    /// Why the chain refuses it.
    fn refund(&mut self, terms: &Terms) -> Result<String, String>;

    /// Returns the hashes that the user signs for a refund before the timelock, in hex. Only Bitcoin-like chains have it.
    ///
    /// # Errors
    ///
    /// Why there are none.
    fn instant_refund_hashes(&self, _terms: &Terms) -> Result<Vec<String>, String> {
        Err("this chain has no instant refund".to_owned())
    }

    /// Refunds before the timelock with the user's signatures.
    ///
    /// # Errors
    ///
    /// Why it cannot be done.
    fn instant_refund(&mut self, _terms: &Terms, _signatures: &[String]) -> Result<String, String> {
        Err("this chain has no instant refund".to_owned())
    }

    /// Makes blocks. Pending transactions go into the first; more than a hundred thousand empty ones take no noticeable time. A real node
    /// makes each of them, so it makes a limited number at once, and none if it has ended.
    fn mine(&mut self, blocks: u64);

    /// Takes back the newest blocks and what they held; where an engine cannot, an error says so.
    ///
    /// # Errors
    ///
    /// Why it cannot be done.
    fn reorganize(&mut self, _depth: u64) -> Result<(), String> {
        Err("this chain does not reorganize".to_owned())
    }

    /// Returns the newest block, slot or checkpoint.
    fn height(&self) -> u64;

    /// Returns whether a timelock is over that began in a block: at `height`, seen at `at` milliseconds since 1970.
    fn is_over(&self, height: u64, _at: u64, timelock: u64) -> bool {
        self.height() > height.saturating_add(timelock)
    }

    /// Returns how many transactions wait for a block.
    fn pending(&self) -> usize;

    /// Returns how many blocks after its own a transaction is final by the strictest rule that wallets apply.
    fn depth(&self) -> u64;

    /// Nominal milliseconds between blocks: without transactions, blocks come this often.
    fn interval(&self) -> u64;

    /// Returns what blocks have done to swaps since the last call.
    fn events(&mut self) -> Vec<Event>;

    /// Answers a call of a wallet as a node of this chain does. Any bytes may come in.
    fn answer(&mut self, request: &Request) -> Reply;
}
