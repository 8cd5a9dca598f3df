//! What the wallet has pinned: chains, assets and solvers.
//!
//! It is built once from `/v2/chains`, `/v2/assets` and `/v2/liquidity`, kept in a file (`docs/spec/batch.md#registry-file`), and
//! compared when it is refreshed, because the user must see when a contract address changes.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, OnceLock};

use countersign_chains::{Account, ChainProfile, Family, profile};
use serde::ser::{Serialize, SerializeStruct, Serializer};
use sha2::{Digest, Sha256};

use super::generation::Generation;
use crate::report::{Code, ParseError};
use crate::sort;
use crate::wire::strict_json;

mod diff;
mod entries;
mod notice;
mod pin;
mod rules;
mod sponsors;
mod token;

pub use diff::Change;
pub use entries::{Asset, Chain, Contract, Solver};
pub use notice::{Notice, ServicePins};
pub use sponsors::Sponsor;
pub use token::TokenStandard;

/// The pinned chains, assets and solvers. Chains of families that this library does not know are left out.
///
/// ```
/// use countersign::{Family, Registry};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let registry: Registry = r#"{
///     "chains": [{"chain": "bitcoin", "id": "bitcoin:mainnet"}],
///     "assets": [{"id": "bitcoin:btc", "chain": "bitcoin", "decimals": 8}]
/// }"#
/// .parse()?;
/// assert_eq!(registry.family("bitcoin")?, Family::Bitcoin);
/// assert!(
///     registry.asset("bitcoin:btc").is_some()
///         && registry.asset("ethereum:eth").is_none()
/// );
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Default)]
pub struct Registry {
    chains: BTreeMap<String, Arc<Chain>>,
    assets: HashMap<String, Arc<Asset>>,
    /// What the accounts of contracts are, by the name of their chain.
    contracts: HashMap<String, HashMap<Account, ContractKind>>,
    solvers: HashMap<String, Vec<Arc<Solver>>>,
    sponsors: HashMap<String, Vec<Sponsor>>,
}

/// What a pinned account is that nobody can be paid on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ContractKind {
    /// An HTLC, or the object that lists the orders of one.
    Htlc,
    Token,
}

impl Registry {
    /// Returns the family of a chain: of the pinned chain, else of the known chain with this name.
    ///
    /// # Errors
    ///
    /// [`Code::UnknownChain`] if the chain is neither pinned nor known.
    pub fn family(&self, chain: &str) -> Result<Family, ParseError> {
        self.profile(chain).map(|profile| profile.family)
    }

    /// Returns the profile of a chain: that of the pinned chain, otherwise that of the known chain with this name.
    ///
    /// # Errors
    ///
    /// [`Code::UnknownChain`] if the chain is neither pinned nor known.
    pub fn profile(&self, chain: &str) -> Result<&'static ChainProfile, ParseError> {
        let pinned = self.chains.get(chain).map(|chain| chain.profile);
        let profile = pinned.or_else(|| Some(&profile::known_chain(chain)?.profile));
        profile.ok_or_else(|| Code::UnknownChain.into())
    }

    /// Returns the pinned asset with this id: an [`AssetId`](crate::AssetId) or its text, such as `base:usdc`.
    #[must_use]
    pub fn asset(&self, id: impl AsRef<str>) -> Option<&Arc<Asset>> {
        self.assets.get(id.as_ref())
    }

    /// Returns every pinned asset, sorted by id.
    #[must_use]
    pub fn assets(&self) -> Vec<&Asset> {
        let mut assets: Vec<_> = self.assets.values().map(AsRef::as_ref).collect();
        sort::by(&mut assets, |one, other| one.record.id.as_str().cmp(other.record.id.as_str()));
        assets
    }

    /// Returns what the contract with this account is on a chain. An account that is both an HTLC and a token is an HTLC.
    pub(crate) fn contract_kind(&self, chain: &str, account: &Account) -> Option<ContractKind> {
        self.contracts.get(chain)?.get(account).copied()
    }

    /// Adds an asset with the accounts of its contracts.
    fn add_asset(&mut self, asset: Asset) {
        let contracts = self.contracts.entry(asset.record.chain.clone()).or_default();
        if let Some(token) = asset.token.as_ref().and_then(|token| token.account.as_ref()) {
            contracts.entry(token.clone()).or_insert(ContractKind::Token);
        }
        for htlc in asset.htlc.iter().chain(&asset.htlc_registry) {
            contracts.insert(htlc.clone(), ContractKind::Htlc);
        }
        self.assets.insert(asset.record.id.as_str().to_owned(), Arc::new(asset));
    }

    /// Returns every pinned chain, sorted by name.
    pub fn chains(&self) -> impl Iterator<Item = &Chain> {
        self.chains.values().map(AsRef::as_ref)
    }

    /// Returns every pinned solver, sorted by chain, solver id and address.
    #[must_use]
    pub fn solvers(&self) -> Vec<&Solver> {
        fn key(solver: &Solver) -> [&str; 3] {
            [&solver.chain, &solver.solver_id, &solver.address]
        }
        let mut solvers: Vec<_> = self.solvers.values().flatten().map(AsRef::as_ref).collect();
        sort::by(&mut solvers, |one, other| key(one).cmp(&key(other)));
        solvers
    }

    /// Returns the pinned solver with this account on a chain.
    #[must_use]
    pub fn solver(&self, chain: &str, account: &Account) -> Option<&Arc<Solver>> {
        self.solvers.get(chain)?.iter().find(|solver| solver.account == *account)
    }

    /// Returns why a key in an HTLC of a Bitcoin-like chain cannot be the owner's; `None` if it can. The solvers of every chain count,
    /// because these chains have the same keys.
    pub(crate) fn key_fault(&self, asset: &Asset, key: &Account) -> Option<&'static str> {
        if asset.htlc.as_ref() == Some(key) {
            return Some("is the HTLC's internal key, which has no known secret key");
        }
        let is_solver = || self.solvers.values().flatten().any(|solver| solver.account == *key);
        rules::fault(key).or_else(|| is_solver().then_some("is a solver's"))
    }

    /// Returns the pinned solvers of one chain.
    #[must_use]
    pub fn solvers_of(&self, chain: &str) -> &[Arc<Solver>] {
        self.solvers.get(chain).map(Vec::as_slice).unwrap_or_default()
    }

    /// Pins the generation of an asset's contract, or unpins it with `None`. Nothing changes if the asset or its contract is not
    /// pinned, or if the family has no such generation.
    #[must_use]
    pub fn with_generation(mut self, asset: &str, generation: Option<Generation>) -> Self {
        let Some(pinned) = self.assets.get(asset) else { return self };
        let mut changed = pinned.as_ref().clone();
        let is_of_family =
            generation.is_none_or(|generation| Generation::parse(changed.chain.family(), generation.name()) == Some(generation));
        let Some(htlc) = changed.record.htlc.as_mut().filter(|_| is_of_family) else { return self };
        htlc.generation = generation.map(|generation| generation.name().to_owned());
        (changed.generation, changed.domain, changed.program_addresses) = (generation, OnceLock::new(), OnceLock::new());
        self.assets.insert(asset.to_owned(), Arc::new(changed));
        self
    }

    /// Takes over the generations of older pins, for contracts whose address has not changed. The service does not list them.
    #[must_use]
    pub fn with_generations_of(mut self, older: &Self) -> Self {
        for was in older.assets.values().filter(|asset| asset.generation.is_some()) {
            let id = was.record.id.as_str();
            if self.assets.get(id).is_some_and(|is| is.htlc == was.htlc && is.generation.is_none()) {
                self = self.with_generation(id, was.generation);
            }
        }
        self
    }

    /// Takes over the paces of older pins, for chains whose id has not changed. The service does not list them.
    #[must_use]
    pub fn with_paces_of(mut self, older: &Self) -> Self {
        for was in older.chains.values().filter(|chain| chain.record.block_time.is_some() || chain.record.min_block_time.is_some()) {
            let Some(is) = self.chains.get_mut(was.name()).filter(|is| is.record.id == was.record.id) else { continue };
            let changed = Arc::make_mut(is);
            changed.record.block_time = changed.record.block_time.or(was.record.block_time);
            changed.record.min_block_time = changed.record.min_block_time.or(was.record.min_block_time);
            changed.pace = pin::pace(changed.profile, &changed.record);
            for asset in self.assets.values_mut().filter(|asset| asset.chain_name() == was.name()) {
                Arc::make_mut(asset).chain = Arc::clone(is);
            }
        }
        self
    }

    /// Adds the chains of older pins that this registry lacks, without their assets and solvers: an order that was signed under those pins
    /// still needs connections to its chains. A chain that both have is the one of this registry.
    #[must_use]
    pub fn with_chains_of(mut self, older: &Self) -> Self {
        for (name, was) in &older.chains {
            self.chains.entry(name.clone()).or_insert_with(|| Arc::clone(was));
        }
        self
    }

    /// Returns the registry file: sorted and indented JSON with a line break at the end, so that equal pins are equal bytes.
    #[must_use]
    pub fn to_file(&self) -> Vec<u8> {
        // Texts and numbers can always be written to memory.
        let mut bytes = serde_json::to_vec_pretty(self).unwrap_or_default();
        bytes.push(b'\n');
        bytes
    }

    /// Returns the SHA-256 of the registry file. Two registries with the same digest have the same pins.
    #[must_use]
    pub fn digest(&self) -> [u8; 32] {
        Sha256::digest(self.to_file()).into()
    }

    /// Returns whether any solver is pinned, on any chain.
    #[must_use]
    pub fn pins_solvers(&self) -> bool {
        !self.solvers.is_empty()
    }
}

impl Serialize for Registry {
    /// Writes the registry file: sorted, so that equal pins are equal bytes.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(serde::Serialize)]
        struct Pinned<'a> {
            solver_id: &'a str,
            chain: &'a str,
            address: &'a str,
        }
        let solvers: Vec<_> = self
            .solvers()
            .into_iter()
            .map(|solver| Pinned { solver_id: &solver.solver_id, chain: &solver.chain, address: &solver.address })
            .collect();
        let sponsors = self.sponsors();
        let mut map = serializer.serialize_struct("Registry", if sponsors.is_empty() { 3 } else { 4 })?;
        map.serialize_field("chains", &self.chains.values().map(|chain| &chain.record).collect::<Vec<_>>())?;
        map.serialize_field("assets", &self.assets().iter().map(|asset| &asset.record).collect::<Vec<_>>())?;
        map.serialize_field("solvers", &solvers)?;
        if sponsors.is_empty() {
            map.skip_field("sponsors")?;
        } else {
            map.serialize_field("sponsors", &sponsors)?;
        }
        map.end()
    }
}

strict_json!(Registry);
