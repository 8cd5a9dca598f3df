//! Turns lists of chains, assets and solvers into a registry. A wallet's own file is read strictly: its first fault makes all of it
//! unreadable. From the service's lists, every entry that can be pinned is pinned, and a notice names each of the others.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

use countersign_chains::{Account, ChainProfile, Family, Network, NetworkError, Pace, address, profile};

use super::entries::AccountText;
use super::rules::{self, Clash};
use super::{Asset, Chain, Contract, Generation, Notice, Registry, ServicePins, Solver, TokenStandard};
use crate::json::{self, At, Cursor, Value, number};
use crate::report::text::escape_untrusted;
use crate::report::{Code, Origin, Refusal};
use crate::wire::{self, AssetId, AssetRecord, ChainRecord, ContractRecord, LiquidityRecord, Read};

/// The entries of a list with their locations, each with its value or the reason why it could not be read.
type Listed<T> = Vec<(String, Result<T, Refusal>)>;

impl Registry {
    /// Parses a registry file: an object with the arrays `chains` and `assets`, and optionally `solvers` and `sponsors`.
    ///
    /// # Errors
    ///
    /// A [`Refusal`] with a pointer into the file: [`Code::RegistryMalformed`], [`Code::UnknownGeneration`], or the code of a
    /// malformed member.
    pub fn from_json(text: &[u8]) -> Result<Self, Refusal> {
        let value = json::parse(text)?;
        let cursor = Cursor::root(&value, "");
        let members = cursor.object()?;
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
    /// What cannot be pinned is left out with a [`Notice`]: an entry that cannot be read, a chain of an unknown network and
    /// everything on it, an entry with an invalid address, and every entry that another one contradicts. Show the notices to the
    /// user.
    ///
    /// # Errors
    ///
    /// A [`Refusal`] if a body is not valid JSON, has an envelope with an error, or is not a list. Its location begins with
    /// `/chains`, `/assets` or `/liquidity`.
    pub fn from_service(chains: &[u8], assets: &[u8], liquidity: &[u8]) -> Result<ServicePins, Refusal> {
        fn list<T: Read>(text: &[u8], prefix: &'static str) -> Result<Listed<T>, Refusal> {
            let read = |cursor: Cursor<'_, '_>| Ok(cursor.array()?.map(|item| (item.at().to_string(), T::read(item))).collect());
            let at = At::of(prefix, Origin::Service);
            let value = json::parse(text).map_err(|refusal| refusal.within(&at))?;
            let cursor = Cursor::new(&value, at);
            match value {
                Value::Object(_) => wire::with_result(cursor, read),
                _ => read(cursor),
            }
        }
        let mut notices = Vec::new();
        let pinning = Pinning { notices: Some(&mut notices), ..Pinning::default() };
        let registry = pinning.run(list(chains, "/chains")?, list(assets, "/assets")?, list(liquidity, "/liquidity")?)?;
        Ok(ServicePins { registry, notices })
    }

    /// Pins records. Chains of families that this library does not know are left out, with everything on them.
    ///
    /// # Errors
    ///
    /// [`Code::RegistryMalformed`] if records contradict each other or a known chain, or have an invalid address;
    /// [`Code::UnknownGeneration`] if a contract names a generation that its family does not have.
    pub fn pin(chains: Vec<ChainRecord>, assets: Vec<AssetRecord>, solvers: Vec<LiquidityRecord>) -> Result<Self, Refusal> {
        fn listed<T>(list: &str, records: Vec<T>) -> Listed<T> {
            records.into_iter().enumerate().map(|(index, record)| (format!("/{list}/{index}"), Ok(record))).collect()
        }
        Pinning::default().run(listed("chains", chains), listed("assets", assets), listed("solvers", solvers))
    }
}

/// A registry that is being built.
#[derive(Default)]
struct Pinning<'n> {
    registry: Registry,
    /// Names of chains that are listed but not pinned.
    left_out: Vec<String>,
    /// Entries that could not be pinned. `None` makes the first of them a refusal.
    notices: Option<&'n mut Vec<Notice>>,
}

impl Pinning<'_> {
    fn run(
        mut self,
        chains: Listed<ChainRecord>,
        assets: Listed<AssetRecord>,
        solvers: Listed<LiquidityRecord>,
    ) -> Result<Registry, Refusal> {
        self.chains(chains)?;
        self.assets(assets)?;
        self.solvers(solvers)?;
        Ok(self.registry)
    }

    /// Leaves an entry out with a notice, or refuses if no notices are collected.
    fn skip(&mut self, entry: String, refusal: Refusal) -> Result<(), Refusal> {
        let Some(notices) = &mut self.notices else { return Err(refusal) };
        // Only the service's lists have notices.
        notices.push(Notice { entry, refusal: refusal.with_origin(Origin::Service) });
        Ok(())
    }

    /// Returns a record that could be read, and leaves out any other.
    fn readable<T>(&mut self, at: &str, record: Result<T, Refusal>) -> Result<Option<T>, Refusal> {
        match record {
            Ok(record) => Ok(Some(record)),
            Err(refusal) => self.skip(at.to_owned(), refusal).map(|()| None),
        }
    }

    /// Leaves out what is on a chain that is not pinned. In a wallet's own file that can only be a chain of a family that this
    /// library does not know, which is not a fault of the file.
    fn skip_of_chain(&mut self, entry: String, at: &str) -> Result<(), Refusal> {
        if self.notices.is_none() {
            return Ok(());
        }
        self.skip(entry, malformed(at, "its chain is not pinned"))
    }

    fn chains(&mut self, listed: Listed<ChainRecord>) -> Result<(), Refusal> {
        let mut read = Vec::new();
        for (at, record) in listed {
            let Some(mut record) = self.readable(&at, record)? else { continue };
            // Only the wallet's own file may say how fast a chain is. The service may say it of a chain that nothing else is known of.
            if self.notices.is_some() {
                let network = Network::parse(&record.id);
                let has_listed_pace = network.is_ok_and(|network| ChainProfile::of(&record.chain, &network).has_listed_pace);
                (record.block_time, record.min_block_time) = (record.block_time.filter(|_| has_listed_pace), None);
            }
            let (name, entry) = (record.chain.clone(), format!("chain {}", escape_untrusted(&record.chain)));
            match chain(record) {
                Ok(Some(chain)) => read.push((at, entry, chain)),
                // The file is not at fault: this library does not know the family yet.
                Ok(None) if self.notices.is_none() => self.left_out.push(name),
                Ok(None) => {
                    self.left_out.push(name);
                    self.skip(entry, Refusal::new(Code::UnsupportedFamily, at).with_reason("no such chain family"))?;
                }
                Err(reason) => {
                    self.left_out.push(name);
                    self.skip(entry, malformed(&at, reason))?;
                }
            }
        }
        let records = || read.iter().map(|(_, _, chain)| &chain.record).enumerate();
        let twice = |record: &ChainRecord, _: &ChainRecord| format!("chain {} is listed twice", record.chain);
        let same_id = |record: &ChainRecord, other: &ChainRecord| format!("{} has the id of {}, {}", record.chain, other.chain, other.id);
        let mut clashes = rules::clashes(&mut records(), &|record| (record.id.clone(), None), &|_, _| false, &same_id);
        clashes.extend(rules::clashes(&mut records(), &|record| (record.chain.clone(), None), &|_, _| false, &twice));
        // An entry also clashes with one of the same name that could not be pinned.
        for (index, record) in records().filter(|(_, record)| self.left_out.contains(&record.chain)) {
            clashes.insert(index, Clash { reason: twice(record, record), member: "", is_later: true });
        }
        for chain in self.without(read, &clashes, |pinning, chain| pinning.left_out.push(chain.record.chain))? {
            self.registry.chains.insert(chain.name().to_owned(), Arc::new(chain));
        }
        Ok(())
    }

    fn assets(&mut self, listed: Listed<AssetRecord>) -> Result<(), Refusal> {
        let mut read = Vec::new();
        for (at, record) in listed {
            let Some(mut record) = self.readable(&at, record)? else { continue };
            let entry = format!("asset {}", record.id);
            // Only the wallet's own file may name the generation of a contract, not the service.
            if let Some(htlc) = record.htlc.as_mut().filter(|_| self.notices.is_some()) {
                htlc.generation = None;
            }
            if self.left_out.contains(&record.chain) {
                self.skip_of_chain(entry, &at)?;
                continue;
            }
            match asset(&self.registry, record) {
                Ok(asset) => read.push((at, entry, asset)),
                Err(Fault::Generation(name)) => {
                    let refusal = Refusal::new(Code::UnknownGeneration, format!("{at}/htlc/generation"));
                    self.skip(entry, refusal.with_actual(name))?;
                }
                Err(Fault::Contradiction(reason)) => self.skip(entry, malformed(&at, reason))?,
            }
        }
        let all = || read.iter().map(|(_, _, asset)| asset).enumerate();
        let twice = |asset: &Asset, _: &Asset| format!("{} is listed twice", asset.record.id);
        let shared = |asset: &Asset, other: &Asset| {
            format!("{} shares the HTLC of {}, but has another token or other decimals", asset.record.id, other.record.id)
        };
        let mut with_htlc = all().filter(|(_, asset)| asset.htlc.is_some());
        let htlc = |asset: &Asset| (asset.record.chain.clone(), asset.htlc.clone());
        // On every chain a contract has one generation. An asset that names none contradicts nothing.
        let mut generations = with_htlc.clone().filter(|(_, asset)| asset.generation.is_some());
        let same_generation = |asset: &Asset, other: &Asset| asset.generation == other.generation;
        let mixed = |asset: &Asset, other: &Asset| {
            format!("{} shares the HTLC of {}, but names another generation", asset.record.id, other.record.id)
        };
        let mut clashes = rules::clashes(&mut generations, &htlc, &same_generation, &mixed);
        clashes.values_mut().for_each(|clash| clash.member = "/htlc/generation");
        // A token has the same decimals in every HTLC.
        let mut with_token = all().filter(|(_, asset)| asset.token.is_some());
        let token = |asset: &Asset| rules::token_key(asset).unwrap_or_default();
        let same_decimals = |asset: &Asset, other: &Asset| asset.record.decimals == other.record.decimals;
        let other_decimals =
            |asset: &Asset, other: &Asset| format!("{} is the token of {}, but has other decimals", asset.record.id, other.record.id);
        clashes.extend(rules::clashes(&mut with_token, &token, &same_decimals, &other_decimals));
        clashes.extend(rules::clashes(&mut with_htlc, &htlc, &rules::may_share_htlc, &shared));
        clashes.extend(rules::clashes(&mut all(), &|asset| (asset.record.id.to_string(), None), &|_, _| false, &twice));
        for asset in self.without(read, &clashes, |_, _| ())? {
            self.registry.add_asset(asset);
        }
        Ok(())
    }

    /// Returns the entries that no other one contradicts, and leaves out the rest.
    fn without<T>(
        &mut self,
        entries: Vec<(String, String, T)>,
        clashes: &BTreeMap<usize, Clash>,
        mut leave_out: impl FnMut(&mut Self, T),
    ) -> Result<Vec<T>, Refusal> {
        let mut kept = Vec::new();
        for (index, (at, entry, value)) in entries.into_iter().enumerate() {
            match clashes.get(&index) {
                None => kept.push(value),
                // A strict reader refuses at the second entry.
                Some(clash) if self.notices.is_none() && !clash.is_later => {}
                Some(clash) => {
                    leave_out(self, value);
                    self.skip(entry, malformed(&format!("{at}{}", clash.member), clash.reason.clone()))?;
                }
            }
        }
        Ok(kept)
    }

    fn solvers(&mut self, listed: Listed<LiquidityRecord>) -> Result<(), Refusal> {
        let contracts = rules::contracts(&self.registry);
        for (at, record) in listed {
            let Some(record) = self.readable(&at, record)? else { continue };
            let mut chains = BTreeSet::new();
            match &record.chain {
                Some(chain) => chains.extend([chain.as_str()]),
                None => chains.extend(record.assets.iter().map(AssetId::chain)),
            }
            let (id, account) = (escape_untrusted(&record.solver_id), escape_untrusted(&record.address));
            if chains.is_empty() {
                self.skip(format!("solver {id}, {account}"), malformed(&at, "the solver has neither a chain nor assets"))?;
            }
            for name in chains {
                let entry = format!("solver {id} on {}, {account}", escape_untrusted(name));
                if self.left_out.iter().any(|left| left == name) {
                    self.skip_of_chain(entry, &at)?;
                    continue;
                }
                match solver(&self.registry, &contracts, &record, name) {
                    Ok(solver) => {
                        let known = self.registry.solvers.entry(name.to_owned()).or_default();
                        if !known.iter().any(|known| **known == solver) {
                            known.push(Arc::new(solver));
                        }
                    }
                    Err(reason) => self.skip(entry, malformed(&at, reason))?,
                }
            }
        }
        Ok(())
    }
}

fn malformed(at: &str, reason: impl Into<std::borrow::Cow<'static, str>>) -> Refusal {
    Refusal::new(Code::RegistryMalformed, at).with_reason(reason)
}

/// Reads a chain; `None` if its family is unknown here.
fn chain(record: ChainRecord) -> Result<Option<Chain>, String> {
    rules::check_name(&record.chain, &record.id)?;
    let network = match Network::parse(&record.id) {
        Ok(network) => network,
        Err(NetworkError::UnknownFamily) => return Ok(None),
        Err(error) => return Err(format!("chain id {}: {error}", escape_untrusted(&record.id))),
    };
    if AssetId::parse(&format!("{}:x", record.chain)).is_err() {
        return Err("the chain name cannot be part of an asset id, which is in lower case".to_owned());
    }
    let profile = ChainProfile::of(&record.chain, &network);
    let pace = pace(profile, &record);
    let test = profile::is_test_network(&record.chain, &record.id);
    Ok(Some(Chain { record, network, test, pace, profile }))
}

/// Returns the paces of a chain: those that its entry gives, else those of its profile.
pub(super) fn pace(profile: &ChainProfile, record: &ChainRecord) -> Pace {
    profile.pace.pinned(record.block_time.map(wire::Seconds::millis), record.min_block_time.map(wire::Seconds::millis))
}

/// Why an asset cannot be pinned.
enum Fault {
    Contradiction(String),
    /// Its HTLC names a generation that its family does not have.
    Generation(String),
}

impl From<String> for Fault {
    fn from(reason: String) -> Self {
        Self::Contradiction(reason)
    }
}

fn asset(registry: &Registry, record: AssetRecord) -> Result<Asset, Fault> {
    let id = record.id.clone();
    if id.chain() != record.chain {
        return Err(format!("{id} is not on the chain that its entry names").into());
    }
    let chain = registry.chains.get(&record.chain).cloned().ok_or_else(|| format!("the chain of {id} is not listed"))?;
    let network_part = chain.record.id.split_once(':').map(|(_, network)| network);
    if record.chain_id.is_some() && record.chain_id.as_deref() != network_part {
        return Err(format!("chain_id of {id} is not that of its chain").into());
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
                return Err(format!("token of {id} has no valid address").into());
            }
            let standard = TokenStandard::from_schema(contract.schema.as_deref());
            Some(Contract { text: contract.address.clone(), account: account.ok(), standard })
        }
        None => None,
    };
    let generation = match record.htlc.as_ref().and_then(|htlc| htlc.generation.as_deref()) {
        Some(name) => Some(Generation::parse(chain.family(), name).ok_or_else(|| Fault::Generation(escape_untrusted(name)))?),
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
        generation,
        min_amount,
        max_amount,
        domain: OnceLock::new(),
        program_addresses: OnceLock::new(),
        internal_key: OnceLock::new(),
        htlc_text: AccountText::default(),
    };
    rules::check_contracts(&asset)?;
    Ok(asset)
}

fn solver(registry: &Registry, contracts: &rules::Contracts, record: &LiquidityRecord, name: &str) -> Result<Solver, String> {
    let chain = registry.chains.get(name).ok_or_else(|| format!("chain {} of a solver is not listed", escape_untrusted(name)))?;
    let account: Account = address::parse_party(&chain.network, &record.address).map_err(|error| format!("solver on {name}: {error}"))?;
    rules::check_solver(contracts, name, &account)?;
    Ok(Solver {
        solver_id: record.solver_id.clone(),
        chain: name.to_owned(),
        address: record.address.clone(),
        account,
        account_text: AccountText::default(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listed_block_time_may_be_a_fraction_and_comes_first() {
        let unit = |chain: &str, id: &str, listed: &str| {
            let text = format!(r#"{{"chains":[{{"chain":"{chain}","id":"{id}","name":"x","block_time":{listed}}}],"assets":[]}}"#);
            let registry = Registry::from_json(text.as_bytes())?;
            // What is written is read again as the same.
            let again = Registry::from_json(&serde_json::to_vec(&registry).unwrap()).unwrap();
            assert_eq!(again.chains().next().unwrap().record, registry.chains().next().unwrap().record);
            Ok::<_, Refusal>(registry.chains().next().unwrap().pace)
        };
        for (chain, id, listed, wanted) in [
            ("corn", "evm:21000000", "0.25", Pace::new(250, 250, 100)),
            ("corn", "evm:21000000", "3", Pace::new(3_000, 3_000, 100)),
            ("corn", "evm:21000000", "\"1.5\"", Pace::new(1_500, 1_500, 100)),
            ("corn", "evm:21000000", "0", Pace::new(2_000, 2_000, 100)),
            ("ethereum", "evm:1", "1", Pace::new(1_000, 1_000, 1_000)),
            ("base_sepolia", "evm:84532", "9", Pace::new(9_000, 9_000, 100)),
            ("base", "evm:8453", r#"0.2,"min_block_time":0.05"#, Pace::new(200, 200, 50)),
            ("base", "evm:8453", r#"0,"min_block_time":"0.15""#, Pace::new(2_000, 200, 150)),
            ("solana", "solana:101", "0.5", Pace::new(500, 500, 100)),
        ] {
            assert_eq!(unit(chain, id, listed).unwrap(), wanted, "{chain} {listed}");
        }
        for listed in ["-1", "1e3", "\"\"", "\"1.\"", "\"x\"", "[]", "99999999999999999999"] {
            let refusal = unit("corn", "evm:21000000", listed).unwrap_err();
            assert_eq!(refusal.location(), "/chains/0/block_time", "{listed}");
        }
    }
}
