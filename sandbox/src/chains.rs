//! The chains: one engine for each family, behind the trait [`Engine`].

pub mod bitcoin;
pub mod engine;
pub mod evm;
mod family;
mod listing;
mod node;
mod rpc;
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

use self::family::{Family, Start};
use crate::clock::Clock;

/// The engines, by the chain's name in asset ids.
pub type Engines = BTreeMap<String, Box<dyn Engine>>;

/// The families, in the order of the tour.
pub(crate) static FAMILIES: [Family; 6] = [evm::FAMILY, bitcoin::FAMILY, tron::FAMILY, solana::FAMILY, starknet::FAMILY, sui::FAMILY];

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
        [name] if name == "local" => local().map(|(name, _)| name).collect(),
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

/// Returns the test networks that local clients of the service expect: names and ids.
fn local() -> impl Iterator<Item = (&'static str, &'static str)> {
    FAMILIES.iter().flat_map(|family| family.local.iter().copied())
}

/// Returns the id of the chain with a name.
fn id_of(name: &str) -> Option<&'static str> {
    let id = local().find_map(|(local, id)| (local == name).then_some(id));
    known_chain(name).map(|known| known.id).or(id)
}

/// Returns the family of the chain with a name.
pub(crate) fn family_of(name: &str) -> Option<&'static Family> {
    let (prefix, _) = id_of(name)?.split_once(':')?;
    FAMILIES.iter().find(|family| family.prefixes.contains(&prefix))
}

fn engine(name: &str, clock: &Arc<Clock>, nodes: &Nodes) -> Result<Box<dyn Engine>, String> {
    let (Some(family), Some(id)) = (family_of(name), id_of(name)) else {
        let mut local: Vec<_> = local().map(|(name, _)| name).collect();
        local.sort_unstable();
        let known: Vec<_> = KNOWN_CHAINS.iter().map(|chain| chain.name).chain(local).collect();
        return Err(format!("unknown chain: {name}; known: {}", known.join(", ")));
    };
    (family.start)(Start { name, id, clock: Arc::clone(clock), nodes })
}
