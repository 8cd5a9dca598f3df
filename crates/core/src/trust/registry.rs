//! What the wallet has pinned: chains, assets and solvers.
//!
//! Built once from `/v2/chains`, `/v2/assets` and `/v2/liquidity`, kept in a file, and compared when it is refreshed: a
//! contract address that changed is news the user must see.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, OnceLock};

use countersign_chains::{Account, Family, Network, NetworkError, address, network};
use ruint::aliases::U256;
use serde::ser::{Serialize, SerializeStruct, Serializer};

use crate::json::{self, Node, Value, number};
use crate::report::text::escape_untrusted;
use crate::report::{Amount, Code, ParseError, Refusal, Timelock};
use crate::wire::{self, AssetId, AssetRecord, ChainRecord, ContractRecord, LiquidityRecord, Read, strict_json};

mod diff;
mod sponsors;

pub use diff::Change;
pub use sponsors::Sponsor;

/// The pinned chains, assets and solvers. Chains of families that this library does not know are left out.
#[derive(Debug, Clone, Default)]
pub struct Registry {
    chains: BTreeMap<String, Arc<Chain>>,
    assets: HashMap<String, Arc<Asset>>,
    solvers: HashMap<String, Vec<Arc<Solver>>>,
    sponsors: HashMap<String, Vec<Sponsor>>,
}

/// A pinned chain.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Chain {
    /// As it was pinned.
    pub record: ChainRecord,
    /// What its id says.
    pub network: Network,
    /// Whether it is a test network.
    pub test: bool,
    /// Nominal milliseconds per timelock unit.
    pub unit_millis: u64,
}

/// A pinned asset.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Asset {
    /// As it was pinned.
    pub record: AssetRecord,
    /// Its chain.
    pub chain: Arc<Chain>,
    /// The HTLC's account.
    pub htlc: Option<Account>,
    /// The token, `None` for a native asset. A Sui coin is a type, not an account.
    pub token: Option<Contract>,
    /// Sui: the shared orders registry.
    pub htlc_registry: Option<Account>,
    min_amount: Option<U256>,
    max_amount: Option<U256>,
    domain: OnceLock<Domain>,
    program_addresses: OnceLock<Option<[[u8; 32]; 2]>>,
}

/// The hash of a typed-data domain, for one version of the contract.
#[derive(Debug, Clone)]
struct Domain {
    version: Box<str>,
    separator: [u8; 32],
}

/// A token.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Contract {
    /// As it was pinned.
    pub text: String,
    /// Its account, where the text is an address.
    pub account: Option<Account>,
}

/// A solver's account on one chain.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Solver {
    /// The solver.
    pub solver_id: String,
    /// Chain name.
    pub chain: String,
    /// As it was pinned.
    pub address: String,
    /// The account, or x-only key.
    pub account: Account,
}

impl Asset {
    /// Whether an amount is within the limits that the asset had when it was pinned.
    #[must_use]
    pub fn takes(&self, amount: U256) -> bool {
        self.min_amount.is_none_or(|min| amount >= min) && self.max_amount.is_none_or(|max| amount <= max)
    }

    /// Returns the domain separator of the HTLC's messages for a version. It follows from the pins, so it is computed for
    /// the first order and kept; another version than that order's is computed each time.
    pub fn domain_separator(&self, version: &str, compute: impl Fn() -> [u8; 32]) -> [u8; 32] {
        let kept = self.domain.get_or_init(|| Domain { version: version.into(), separator: compute() });
        if *kept.version == *version { kept.separator } else { compute() }
    }

    /// Returns the two addresses that a Solana program derives for itself. They follow from the pins, so they are computed
    /// for the first order and kept.
    pub fn program_addresses(&self, compute: impl FnOnce() -> Option<[[u8; 32]; 2]>) -> Option<[[u8; 32]; 2]> {
        *self.program_addresses.get_or_init(compute)
    }

    /// Returns an amount of this asset.
    #[must_use]
    pub fn amount(&self, base_units: U256) -> Amount {
        Amount::new(base_units, self.record.decimals, self.symbol())
    }

    /// The asset's symbol.
    #[must_use]
    pub fn symbol(&self) -> &str {
        self.record.id.symbol()
    }
}

impl Chain {
    /// The chain's family.
    #[must_use]
    pub fn family(&self) -> Family {
        self.network.family()
    }

    /// The display name, or the name that asset ids carry.
    #[must_use]
    pub fn title(&self) -> &str {
        if self.record.name.is_empty() { &self.record.chain } else { &self.record.name }
    }

    /// Returns a timelock of this chain.
    #[must_use]
    pub fn timelock(&self, units: u64) -> Timelock {
        Timelock::new(units, self.family(), self.nominal_millis(units))
    }

    /// Returns what a timelock means in nominal milliseconds.
    #[must_use]
    pub fn nominal_millis(&self, timelock: u64) -> u128 {
        u128::from(timelock).saturating_mul(u128::from(self.unit_millis))
    }
}

impl Registry {
    /// Reads a registry file: `{"chains": [..], "assets": [..], "solvers": [..], "sponsors"?: [..]}`.
    ///
    /// # Errors
    ///
    /// A [`Refusal`] with a pointer into the file.
    pub fn from_json(text: &[u8]) -> Result<Self, Refusal> {
        let value = json::parse(text)?;
        let node = Node::root(&value, "");
        let members = node.object()?;
        let mut registry = Self::pin(
            Read::read(members.need("chains")?)?,
            Read::read(members.need("assets")?)?,
            members.get("solvers").map(Read::read).transpose()?.unwrap_or_default(),
        )?;
        if let Some(sponsors) = members.get("sponsors") {
            registry.add_sponsors(sponsors)?;
        }
        Ok(registry)
    }

    /// Pins what the service lists: the bodies of `GET /v2/chains`, `/v2/assets` and `/v2/liquidity`, in their envelopes
    /// or bare.
    ///
    /// # Errors
    ///
    /// A [`Refusal`] whose pointer begins with `/chains`, `/assets` or `/liquidity`.
    pub fn from_service(chains: &[u8], assets: &[u8], liquidity: &[u8]) -> Result<Self, Refusal> {
        fn list<T: Read>(text: &[u8], prefix: &'static str) -> Result<Vec<T>, Refusal> {
            let value = json::parse(text).map_err(|refusal| refusal.under(prefix))?;
            let node = Node::root(&value, prefix);
            match value {
                Value::Object(_) => wire::with_result(node, Read::read),
                _ => Read::read(node),
            }
        }
        Self::pin(list(chains, "/chains")?, list(assets, "/assets")?, list(liquidity, "/liquidity")?)
    }

    /// Pins records.
    ///
    /// # Errors
    ///
    /// [`Code::RegistryMalformed`] where they contradict each other or name no valid address.
    pub fn pin(chains: Vec<ChainRecord>, assets: Vec<AssetRecord>, solvers: Vec<LiquidityRecord>) -> Result<Self, Refusal> {
        let mut registry = Self::default();
        let mut left_out = Vec::new();
        for (index, record) in chains.into_iter().enumerate() {
            let at = format!("/chains/{index}");
            match registry.add_chain(record) {
                Ok(None) => {}
                Ok(Some(name)) => left_out.push(name),
                Err(detail) => return Err(Refusal::new(Code::RegistryMalformed, at).with_reason(detail)),
            }
        }
        for (index, record) in assets.into_iter().enumerate() {
            if !left_out.contains(&record.chain) {
                registry
                    .add_asset(record)
                    .map_err(|detail| Refusal::new(Code::RegistryMalformed, format!("/assets/{index}")).with_reason(detail))?;
            }
        }
        for (index, record) in solvers.into_iter().enumerate() {
            registry
                .add_solver(record, &left_out)
                .map_err(|detail| Refusal::new(Code::RegistryMalformed, format!("/solvers/{index}")).with_reason(detail))?;
        }
        Ok(registry)
    }

    /// Adds a chain; its name comes back if its family is unknown here.
    fn add_chain(&mut self, record: ChainRecord) -> Result<Option<String>, String> {
        let network = match Network::parse(&record.id) {
            Ok(network) => network,
            Err(NetworkError::UnknownFamily) => return Ok(Some(record.chain)),
            Err(error) => return Err(format!("chain id {}: {error}", escape_untrusted(&record.id))),
        };
        if AssetId::parse(&format!("{}:x", record.chain)).is_err() {
            return Err("a chain name is lower case, as asset ids carry it".to_owned());
        }
        let unit_millis = network::nominal_unit_millis(&record.chain, &network, record.block_time.map(wire::Seconds::millis));
        let test = network::is_test_network(&record.chain, &record.id);
        let name = record.chain.clone();
        match self.chains.insert(name, Arc::new(Chain { record, network, test, unit_millis })) {
            None => Ok(None),
            Some(twice) => Err(format!("chain {} is listed twice", twice.record.chain)),
        }
    }

    fn add_asset(&mut self, record: AssetRecord) -> Result<(), String> {
        let id = record.id.clone();
        if id.chain() != record.chain {
            return Err(format!("{id} names another chain than its record"));
        }
        let chain = self.chains.get(&record.chain).cloned().ok_or_else(|| format!("the chain of {id} is not listed"))?;
        let network_part = chain.record.id.split_once(':').map(|(_, network)| network);
        if record.chain_id.is_some() && record.chain_id.as_deref() != network_part {
            return Err(format!("chain_id of {id} is not that of its chain"));
        }
        let account = |contract: &ContractRecord| {
            address::parse_party(&chain.network, &contract.address).map_err(|error| format!("HTLC of {id}: {error}"))
        };
        let htlc = record.htlc.as_ref().map(account).transpose()?;
        let htlc_registry = match record.htlc.as_ref().and_then(|htlc| htlc.registry.as_deref()) {
            Some(object) => Some(address::parse(&chain.network, object).map_err(|error| format!("registry object of {id}: {error}"))?),
            None => None,
        };
        let token = match &record.token {
            Some(contract) => {
                let account = address::parse(&chain.network, &contract.address);
                if account.is_err() && chain.family() != Family::Sui {
                    return Err(format!("token of {id} has no valid address"));
                }
                Some(Contract { text: contract.address.clone(), account: account.ok() })
            }
            None => None,
        };
        let limit =
            |text: &Option<String>| text.as_deref().map(number::decimal).transpose().map_err(|error| format!("limits of {id}: {error}"));
        let (min_amount, max_amount) = (limit(&record.min_amount)?, limit(&record.max_amount)?);
        let asset = Asset {
            record,
            chain,
            htlc,
            token,
            htlc_registry,
            min_amount,
            max_amount,
            domain: OnceLock::new(),
            program_addresses: OnceLock::new(),
        };
        match self.assets.insert(id.as_str().to_owned(), Arc::new(asset)) {
            None => Ok(()),
            Some(_) => Err(format!("{id} is listed twice")),
        }
    }

    fn add_solver(&mut self, record: LiquidityRecord, left_out: &[String]) -> Result<(), String> {
        let mut chains: Vec<&str> = match &record.chain {
            Some(chain) => vec![chain],
            None => record.assets.iter().map(AssetId::chain).collect(),
        };
        chains.sort_unstable();
        chains.dedup();
        if chains.is_empty() {
            return Err("a solver without chain and assets".to_owned());
        }
        for name in chains {
            if left_out.iter().any(|left| left == name) {
                continue;
            }
            let chain = self.chains.get(name).ok_or_else(|| format!("chain {} of a solver is not listed", escape_untrusted(name)))?;
            let account = address::parse_party(&chain.network, &record.address).map_err(|error| format!("solver on {name}: {error}"))?;
            let (solver_id, address) = (record.solver_id.clone(), record.address.clone());
            let solver = Arc::new(Solver { solver_id, chain: name.to_owned(), address, account });
            let known = self.solvers.entry(name.to_owned()).or_default();
            if !known.contains(&solver) {
                known.push(solver);
            }
        }
        Ok(())
    }

    /// The family of a chain: pinned, else from the table of known names.
    ///
    /// # Errors
    ///
    /// [`Code::UnknownChain`].
    pub fn family(&self, chain: &str) -> Result<Family, ParseError> {
        if let Some(chain) = self.chains.get(chain) {
            return Ok(chain.family());
        }
        let known = network::known_chain(chain).ok_or(Code::UnknownChain)?;
        Network::parse(known.id).map(|network| network.family()).map_err(|_| Code::UnknownChain.into())
    }

    /// A pinned asset.
    #[must_use]
    pub fn asset(&self, id: &str) -> Option<&Arc<Asset>> {
        self.assets.get(id)
    }

    /// Every pinned asset, by id.
    #[must_use]
    pub fn assets(&self) -> Vec<&Asset> {
        let mut assets: Vec<_> = self.assets.values().map(AsRef::as_ref).collect();
        assets.sort_by_key(|asset| asset.record.id.as_str());
        assets
    }

    /// Every pinned chain, by name.
    pub fn chains(&self) -> impl Iterator<Item = &Chain> {
        self.chains.values().map(AsRef::as_ref)
    }

    /// Every pinned solver, by chain, solver and address.
    #[must_use]
    pub fn solvers(&self) -> Vec<&Solver> {
        let mut solvers: Vec<_> = self.solvers.values().flatten().map(AsRef::as_ref).collect();
        solvers.sort_by_key(|solver| (&solver.chain, &solver.solver_id, &solver.address));
        solvers
    }

    /// The solver with this account on a chain.
    #[must_use]
    pub fn solver(&self, chain: &str, account: &Account) -> Option<&Arc<Solver>> {
        self.solvers.get(chain)?.iter().find(|solver| solver.account == *account)
    }

    /// The solvers of one chain.
    #[must_use]
    pub fn solvers_of(&self, chain: &str) -> &[Arc<Solver>] {
        self.solvers.get(chain).map(Vec::as_slice).unwrap_or_default()
    }

    /// Whether any solver is pinned.
    #[must_use]
    pub fn pins_solvers(&self) -> bool {
        !self.solvers.is_empty()
    }
}

impl Serialize for Registry {
    /// The registry file: sorted, so that equal pins are equal bytes.
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

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn a_listed_block_time_may_be_a_fraction_and_does_not_change_nominal_units() {
        let unit = |chain: &str, id: &str, listed: &str| {
            let text = format!(r#"{{"chains":[{{"chain":"{chain}","id":"{id}","name":"x","block_time":{listed}}}],"assets":[]}}"#);
            let registry = Registry::from_json(text.as_bytes())?;
            // What is written is read again as the same.
            let again = Registry::from_json(&serde_json::to_vec(&registry).unwrap()).unwrap();
            assert_eq!(again.chains().next().unwrap().record, registry.chains().next().unwrap().record);
            Ok::<_, Refusal>(registry.chains().next().unwrap().unit_millis)
        };
        for (chain, id, listed, wanted) in [
            ("corn", "evm:21000000", "0.25", 250),
            ("corn", "evm:21000000", "3", 3_000),
            ("corn", "evm:21000000", "\"1.5\"", 1_500),
            ("corn", "evm:21000000", "0", 2_000),
            ("ethereum", "evm:1", "1", 12_000),
            ("base_sepolia", "evm:84532", "9", 2_000),
            ("solana", "solana:101", "0.5", 400),
        ] {
            assert_eq!(unit(chain, id, listed).unwrap(), wanted, "{chain} {listed}");
        }
        for listed in ["-1", "1e3", "\"\"", "\"1.\"", "\"x\"", "[]", "99999999999999999999"] {
            let refusal = unit("corn", "evm:21000000", listed).unwrap_err();
            assert_eq!(refusal.location(), "/chains/0/block_time", "{listed}");
        }
    }

    #[test]
    fn a_domain_is_hashed_once_and_never_mistaken_for_another_version() {
        let text = br#"{"chains":[{"chain":"ethereum","id":"evm:1","name":"Ethereum"}],"assets":[{"id":"ethereum:eth",
            "chain":"ethereum","name":"Ether","decimals":18,"htlc":{"address":"0x00000000000000000000000000000000000000aa"}}]}"#;
        let registry = Registry::from_json(text).unwrap();
        let asset = registry.asset("ethereum:eth").unwrap();
        let computed = Cell::new(0);
        let hash = |version: &str| {
            asset.domain_separator(version, || {
                computed.set(computed.get() + 1);
                [version.len().to_le_bytes()[0]; 32]
            })
        };
        assert_eq!([hash("3"), hash("3"), hash("3.1"), hash("3"), hash("3.1")], [[1; 32], [1; 32], [3; 32], [1; 32], [3; 32]]);
        assert_eq!(computed.get(), 3, "once for the first version, each time for another");
    }
}
