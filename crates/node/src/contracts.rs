//! Facts about the pinned contracts, stored by the wallet, so that a later change of a contract is noticed.

use std::collections::BTreeMap;
use std::fmt;

use countersign::json::{self, Cursor};
use countersign::{
    AssetId, Code, Refusal,
    trust::{Asset, Generation},
};
use countersign_core::sort;
use countersign_transport::{Chains as _, Transport};
use serde::Serialize;

use crate::error::NodeError;
use crate::nodes::Nodes;

/// The maximum length of a fact in characters. Facts are hashes, addresses and versions.
const MAX_FACT: usize = 200;

/// The facts of a description that say nothing about the code that runs. Others can change some of them at any time: on Solana anybody may
/// extend a program, which is a deployment of the same code. If that held a secret back, a solver could keep the owner from redeeming.
const BESIDE_CODE: [&str; 4] = ["deploy_slot", "newest_version", "upgrade_authority", "upgrade_capability"];

/// Facts about the contract that holds an asset's swaps: the hash of its code, its version, its token, and who may upgrade it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(transparent)]
pub struct Description {
    facts: BTreeMap<String, String>,
    #[serde(skip)]
    generation: Option<Generation>,
}

/// A fact that differs from the stored one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ContractChange {
    /// The id of the asset.
    pub asset: String,
    /// The name of the fact, for example `code_hash`.
    pub fact: String,
    /// The stored value; `None` if there was none.
    pub old: Option<String>,
    /// The value on chain now; `None` if there is none.
    pub new: Option<String>,
}

impl fmt::Display for ContractChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = |value: &Option<String>| value.clone().unwrap_or_else(|| "nothing".to_owned());
        write!(f, "{}: {} was {}, and is now {}", self.asset, self.fact, value(&self.old), value(&self.new))
    }
}

/// The comparison of contracts with their stored descriptions.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ContractReport {
    /// The assets whose contract has no stored description.
    pub first_seen: Vec<AssetId>,
    /// The descriptions of these contracts, to store.
    pub new: Contracts,
    /// The facts that differ from the stored ones.
    pub changes: Vec<ContractChange>,
    /// The descriptions of the contracts with these facts, to store if the changes are accepted.
    pub changed: Contracts,
}

impl Description {
    /// Adds a fact if it has a value. Caps and escapes the value, which comes from the chain.
    #[cfg(any(feature = "evm", feature = "solana", feature = "starknet", feature = "sui", feature = "tron"))]
    #[must_use]
    pub(crate) fn with(mut self, name: &str, value: Option<impl ToString>) -> Self {
        if let Some(value) = value {
            let value: String = countersign::text::escape_untrusted(&value.to_string()).chars().take(MAX_FACT).collect();
            self.facts.insert(name.to_owned(), value);
        }
        self
    }

    /// Sets the generation that the contract was recognized as.
    #[cfg(any(feature = "evm", feature = "solana", feature = "starknet"))]
    #[must_use]
    pub(crate) const fn with_generation(mut self, generation: Option<Generation>) -> Self {
        self.generation = generation;
        self
    }

    /// Returns the names and values of all facts, sorted by name.
    pub fn facts(&self) -> impl Iterator<Item = (&str, &str)> {
        self.facts.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Returns the generation that the contract was recognized as; `None` if it was not recognized, or if the description was read from a
    /// file.
    #[must_use]
    pub const fn generation(&self) -> Option<Generation> {
        self.generation
    }
}

/// The stored descriptions of pinned contracts, by asset and contract. They do not depend on the registry in which both are pinned, so
/// several registries can share them.
///
/// ```
/// let text = br#"{"base:usdc 5fa58e4e89c85b8d678ade970bd6afd4311af17e": {"code": "0xaa", "version": "3"}}"#;
/// let contracts = countersign_node::Contracts::from_json(text)?;
/// let text = String::from_utf8(contracts.to_file()).unwrap();
/// assert!(text.contains("\"code\": \"0xaa\""));
/// # Ok::<(), countersign::Refusal>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(transparent)]
pub struct Contracts {
    all: BTreeMap<String, Description>,
}

impl Contracts {
    /// Parses the file: a JSON object with one member for each contract of an asset, whose value is an object of strings. The name of the
    /// member is the id of the asset and the bytes of the contract's address in hex, separated by a space.
    ///
    /// # Errors
    ///
    /// Returns a [`Refusal`] that points at the invalid member: with [`Code::TextNotPlain`] for a value of more than 200 characters, and
    /// with the codes of the JSON parser.
    pub fn from_json(bytes: &[u8]) -> Result<Self, Refusal> {
        let value = json::parse(bytes)?;
        let root = Cursor::root(&value, "");
        let members = root.object()?;
        let mut contracts = Self::default();
        for name in members.keys() {
            let entry = members.need(name)?;
            let facts = entry.object()?;
            let mut description = Description::default();
            for name in facts.keys() {
                let value = facts.need(name)?;
                let text = value.text()?;
                if text.chars().count() > MAX_FACT {
                    return Err(value.refuse(Code::TextNotPlain));
                }
                description.facts.insert(name.to_owned(), text.to_owned());
            }
            contracts.all.insert(name.to_owned(), description);
        }
        Ok(contracts)
    }

    /// Returns the contents of the file: sorted, indented JSON with a line break at the end.
    #[must_use]
    pub fn to_file(&self) -> Vec<u8> {
        // Serializing maps of strings to memory cannot fail.
        let mut bytes = serde_json::to_vec_pretty(self).unwrap_or_default();
        bytes.push(b'\n');
        bytes
    }

    /// Returns the stored description of an asset's contract.
    #[must_use]
    pub fn get(&self, asset: &Asset) -> Option<&Description> {
        self.all.get(&name(asset))
    }

    /// Stores the description of an asset's contract, and replaces the one that was stored.
    pub fn insert(&mut self, asset: &Asset, description: Description) {
        self.all.insert(name(asset), description);
    }

    /// Adds all descriptions of `other`, and replaces those of the same contracts.
    pub fn extend(&mut self, other: Self) {
        self.all.extend(other.all);
    }

    /// Returns the facts in which `now` differs from the stored description. Empty if none is stored.
    #[must_use]
    pub fn changes(&self, asset: &Asset, now: &Description) -> Vec<ContractChange> {
        let id = asset.record.id.as_str();
        let Some(kept) = self.get(asset) else { return Vec::new() };
        let names = sort::set(kept.facts.keys().chain(now.facts.keys()));
        let change = |name: &String| {
            let (old, new) = (kept.facts.get(name).cloned(), now.facts.get(name).cloned());
            (old != new).then(|| ContractChange { asset: id.to_owned(), fact: name.clone(), old, new })
        };
        names.into_iter().filter_map(change).collect()
    }

    /// Requires that an asset's contract runs the code of its stored description. What surrounds the code is not compared.
    ///
    /// # Errors
    ///
    /// [`NodeError::Refused`] with [`Code::CannotBeJudged`] at `/destination` if it runs another one, and the errors of
    /// [`Nodes::describe`].
    pub(crate) async fn check_code<T: Transport>(&self, nodes: &Nodes<T>, asset: &Asset) -> Result<(), NodeError> {
        let changes = self.changes(asset, &nodes.describe(asset).await?);
        // A fact that an older version did not store has not changed.
        match changes.iter().find(|change| change.old.is_some() && !BESIDE_CODE.contains(&change.fact.as_str())) {
            Some(change) => {
                let reason = format!("the contract of {change}: inspect it, and pin it again if the swap can go on");
                Err(Refusal::new(Code::CannotBeJudged, "/destination").with_reason(reason).into())
            }
            None => Ok(()),
        }
    }

    /// Reads the contracts of assets from their chains, and compares them with the stored descriptions. Assets whose chain is not connected
    /// are left out, and so are those without a contract.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Nodes::describe`].
    pub async fn check<T: Transport>(
        &self,
        nodes: &Nodes<T>,
        assets: impl IntoIterator<Item = &Asset>,
    ) -> Result<ContractReport, NodeError> {
        let mut report = ContractReport::default();
        for asset in assets.into_iter().filter(|asset| asset.htlc.is_some() && nodes.has(&asset.chain.record.chain)) {
            let description = nodes.describe(asset).await?;
            if self.get(asset).is_some() {
                let changes = self.changes(asset, &description);
                if !changes.is_empty() {
                    report.changes.extend(changes);
                    report.changed.insert(asset, description);
                }
            } else if description.facts().next().is_some() {
                report.first_seen.push(asset.record.id.clone());
                report.new.insert(asset, description);
            }
        }
        Ok(report)
    }
}

/// Returns the name under which the description of an asset's contract is stored.
fn name(asset: &Asset) -> String {
    format!("{} {}", asset.record.id, asset.htlc.as_ref().map(|htlc| hex::encode(htlc.bytes())).unwrap_or_default())
}
