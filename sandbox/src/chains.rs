//! The chains: one engine for each family, behind one trait.

pub mod bitcoin;
pub mod evm;
mod listing;
mod node;
pub mod solana;
pub mod starknet;
pub mod sui;
pub mod tron;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use countersign_chains::KNOWN_CHAINS;
use countersign_chains::profile::known_chain;
use serde_json::{Map, Value};

use crate::clock::Clock;
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
    /// Whether no code of the true network runs on this chain, as its title says.
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
    /// What the service and a registry list.
    fn listing(&self) -> Listing;

    /// The address that a 32-byte key controls.
    fn address_of(&self, key: &[u8; 32]) -> String;

    /// Gives base units of an asset to an account, from nowhere.
    ///
    /// # Errors
    ///
    /// What is wrong with the account or the asset.
    fn fund(&mut self, account: &str, asset: &str, amount: u128) -> Result<(), String>;

    /// The most whole units of an asset that a user starts with. A real node cannot create coins at will.
    fn max_endowment(&self) -> u128 {
        u128::MAX
    }

    /// What an account has of an asset, in base units.
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

    /// The address of a contract that takes coins, but not with the gas that swap contracts give.
    fn vault(&self) -> Option<String> {
        None
    }

    /// Parties and id of a leg.
    ///
    /// # Errors
    ///
    /// What is wrong with the terms, as the service says it.
    fn leg(&self, terms: &Terms) -> Result<Leg, String>;

    /// What the answer to `POST /v2/orders` has beside `order_id` if this is the source.
    ///
    /// # Errors
    ///
    /// What is wrong with the terms, as the service says it.
    fn payloads(&self, terms: &Terms) -> Result<Map<String, Value>, String>;

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

    /// The solver locks a leg, or with `is_source` somebody locks it for a user whom the sandbox plays.
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

    /// The hashes that the user signs for a refund before the timelock, in hex. Only Bitcoin-like chains have it.
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

    /// The newest block, slot or checkpoint.
    fn height(&self) -> u64;

    /// Whether a timelock is over that began in a block: at `height`, seen at `at` milliseconds since 1970.
    fn is_over(&self, height: u64, _at: u64, timelock: u64) -> bool {
        self.height() > height.saturating_add(timelock)
    }

    /// How many transactions wait for a block.
    fn pending(&self) -> usize;

    /// How many blocks after its own a transaction is final by the strictest rule that wallets apply.
    fn depth(&self) -> u64;

    /// Nominal milliseconds between blocks: without transactions, blocks come this often.
    fn interval(&self) -> u64;

    /// What blocks have done to swaps since the last call.
    fn events(&mut self) -> Vec<Event>;

    /// Answers a call of a wallet as a node of this chain does. Any bytes may come in.
    fn answer(&mut self, request: &Request) -> Reply;
}

/// A chain's engine by the chain's name in asset ids.
pub type Engines = BTreeMap<String, Box<dyn Engine>>;

/// The test networks that local clients of the service expect.
const LOCAL: &[&str] = &["arbitrum_localnet", "bitcoin_regtest", "ethereum_localnet", "solana_localnet", "starknet_devnet"];

/// Programs that take the place of the sandbox's own engines.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "callers name the programs that they have")]
pub struct Nodes {
    /// Foundry's anvil: a process for each EVM chain.
    pub anvil: Option<PathBuf>,
    /// Litecoin's node: for the chain `litecoin_regtest`.
    pub litecoind: Option<PathBuf>,
}

/// The engines of chains by their names; all main networks if none is named, and `local` for those of local clients.
///
/// # Errors
///
/// A name is not known, or a program does not start.
pub fn engines(names: &[String], clock: &Arc<Clock>, nodes: &Nodes) -> Result<Engines, String> {
    let names: Vec<&str> = match names {
        [] => main_networks().collect(),
        [name] if name == "local" => LOCAL.to_vec(),
        names => names.iter().map(String::as_str).collect(),
    };
    if nodes.litecoind.is_some() && !names.contains(&bitcoin::LITECOIND) {
        let chain = bitcoin::LITECOIND;
        return Err(format!("litecoind needs the chain {chain}: add it to the chains, for example `--chains base_sepolia,{chain}`"));
    }
    names.into_iter().map(|name| Ok((name.to_owned(), engine(name, clock, nodes)?))).collect()
}

/// All main networks that clients of the service know.
fn main_networks() -> impl Iterator<Item = &'static str> {
    KNOWN_CHAINS.iter().filter(|chain| !chain.test).map(|chain| chain.name)
}

fn engine(name: &str, clock: &Arc<Clock>, nodes: &Nodes) -> Result<Box<dyn Engine>, String> {
    let clock = Arc::clone(clock);
    let id = match (known_chain(name), name) {
        (Some(known), _) => known.id,
        (None, "ethereum_localnet") => "evm:31337",
        (None, "arbitrum_localnet") => "evm:31338",
        (None, "solana_localnet") => "solana:localnet",
        (None, "starknet_devnet") => "starknet:SN_DEVNET",
        _ => {
            let known: Vec<_> = KNOWN_CHAINS.iter().map(|chain| chain.name).chain(LOCAL.iter().copied()).collect();
            return Err(format!("unknown chain: {name}; known: {}", known.join(", ")));
        }
    };
    let (family, network) = id.split_once(':').unwrap_or((id, ""));
    let number = || network.parse::<u32>().map_err(|_| format!("no chain id: {network}"));
    Ok(match family {
        "evm" => {
            let network = evm::Network::new(name, number()?.into());
            match &nodes.anvil {
                // Anvil's blocks of Arbitrum show Ethereum's height as a number, where those of Arbitrum's nodes have hex digits.
                Some(program) if !network.has_l1_number => Box::new(evm::Anvil::new(program, network, clock)?),
                _ => Box::new(evm::Evm::new(network, clock)?),
            }
        }
        "tron" => Box::new(tron::Tron::new(tron::Network::new(name, number()?), clock)?),
        "starknet" => Box::new(starknet::Starknet::new(name, network, clock)),
        "sui" if network == "mainnet" => Box::new(sui::Sui::new(sui::Network::mainnet(), clock)),
        "sui" if network == "testnet" => Box::new(sui::Sui::new(sui::Network::testnet(), clock)),
        "sui" => return Err(format!("the sandbox does not have the chain {name}")),
        "solana" => Box::new(solana::Solana::new(name, network, clock)),
        _ => match &nodes.litecoind {
            Some(program) if name == bitcoin::LITECOIND => Box::new(bitcoin::Bitcoin::beside_litecoind(program, clock)?),
            _ => Box::new(bitcoin::Bitcoin::new(name, id, clock)?),
        },
    })
}
