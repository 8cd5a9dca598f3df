//! The chains: one engine for each family, behind the trait [`Engine`].

pub mod bitcoin;
pub mod engine;
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

pub use engine::{Change, Engine, Event, Leg, Listing, Terms};

use countersign_chains::KNOWN_CHAINS;
use countersign_chains::profile::known_chain;

use crate::clock::Clock;

/// The engines, by the chain's name in asset ids.
pub type Engines = BTreeMap<String, Box<dyn Engine>>;

/// The test networks that local clients of the service expect.
const LOCAL: &[&str] = &["arbitrum_localnet", "bitcoin_regtest", "ethereum_localnet", "solana_localnet", "starknet_devnet"];

/// External node programs that replace the sandbox's own engines.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "callers name the programs that they have")]
pub struct Nodes {
    /// Foundry's anvil. One process is started for each EVM chain.
    pub anvil: Option<PathBuf>,
    /// Litecoin's node. It serves the chain `litecoin_regtest`.
    pub litecoind: Option<PathBuf>,
}

/// Returns the engines of the named chains. No names select all main networks, and `local` selects the networks of
/// local clients.
///
/// # Errors
///
/// Fails if a name is unknown or a program does not start.
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

/// Returns all main networks that clients of the service know.
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
    let number = || network.parse::<u32>().map_err(|_| format!("not a chain id: {network}"));
    Ok(match family {
        "evm" => {
            let network = evm::Network::new(name, number()?.into());
            match &nodes.anvil {
                // Anvil reports Ethereum's block height in an Arbitrum block as a number. Arbitrum's nodes report it
                // in hex.
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
