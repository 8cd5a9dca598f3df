//! Descriptions of the pinned contracts, stored beside the registry, so that the owner learns when a contract has changed.

use std::collections::BTreeMap;
use std::fmt;

use countersign::json::{self, Node};
use countersign::{Asset, Code, Generation, Refusal, text};
use serde::Serialize;

/// Most characters of a fact: hashes, addresses, versions.
const MAX_FACT: usize = 200;

/// What a chain says about the contract that holds an asset's swaps: hashes of its code, its version, its token, who may change it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(transparent)]
pub struct Description {
    facts: BTreeMap<String, String>,
    #[serde(skip)]
    generation: Option<Generation>,
}

/// A fact that has changed since it was kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ContractChange {
    /// The asset.
    pub asset: String,
    /// What has changed.
    pub fact: String,
    /// What it was; `None` if it was not there.
    pub old: Option<String>,
    /// What it is; `None` if it is gone.
    pub new: Option<String>,
}

impl fmt::Display for ContractChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = |value: &Option<String>| value.clone().unwrap_or_else(|| "nothing".to_owned());
        write!(f, "{}: {} was {}, and is {}", self.asset, self.fact, value(&self.old), value(&self.new))
    }
}

impl Description {
    /// Adds a fact, if there is one. Text of a chain is capped and escaped.
    #[must_use]
    pub(crate) fn with(mut self, name: &str, value: Option<impl ToString>) -> Self {
        if let Some(value) = value {
            let value: String = text::escape_untrusted(&value.to_string()).chars().take(MAX_FACT).collect();
            self.facts.insert(name.to_owned(), value);
        }
        self
    }

    /// Sets which generation the contract was recognised as.
    #[must_use]
    #[allow(dead_code, reason = "a build can be without the families whose contracts have generations")]
    pub(crate) const fn with_generation(mut self, generation: Option<Generation>) -> Self {
        self.generation = generation;
        self
    }

    /// Returns every fact with its name, sorted by name.
    pub fn facts(&self) -> impl Iterator<Item = (&str, &str)> {
        self.facts.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Returns the generation that the contract was recognised as.
    #[must_use]
    pub const fn generation(&self) -> Option<Generation> {
        self.generation
    }
}

/// The descriptions of pinned contracts, by asset: a file beside the registry.
///
/// ```
/// let contracts = countersign_node::Contracts::from_json(br#"{"base:usdc": {"code": "0xaa", "version": "3"}}"#)?;
/// assert_eq!(contracts.get("base:usdc").unwrap().facts().collect::<Vec<_>>(), [("code", "0xaa"), ("version", "3")]);
/// # Ok::<(), countersign::Refusal>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(transparent)]
pub struct Contracts {
    all: BTreeMap<String, Description>,
}

impl Contracts {
    /// Reads the file: an object with a member for each asset, each an object of texts.
    ///
    /// # Errors
    ///
    /// A [`Refusal`] at the member that is malformed.
    pub fn from_json(bytes: &[u8]) -> Result<Self, Refusal> {
        let value = json::parse(bytes)?;
        let root = Node::root(&value, "");
        let members = root.object()?;
        let mut contracts = Self::default();
        for asset in members.keys() {
            let entry = members.need(asset)?;
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
            contracts.all.insert(asset.to_owned(), description);
        }
        Ok(contracts)
    }

    /// Returns the file: sorted and indented JSON with a line break at the end.
    #[must_use]
    pub fn to_file(&self) -> Vec<u8> {
        // Texts can always be written to memory.
        let mut bytes = serde_json::to_vec_pretty(self).unwrap_or_default();
        bytes.push(b'\n');
        bytes
    }

    /// Returns the stored description of an asset's contract.
    #[must_use]
    pub fn get(&self, asset: &str) -> Option<&Description> {
        self.all.get(asset)
    }

    /// Keeps what a contract says now.
    pub fn insert(&mut self, asset: &Asset, description: Description) {
        self.all.insert(asset.record.id.as_str().to_owned(), description);
    }

    /// Takes over descriptions, in place of those of the same assets.
    pub fn extend(&mut self, other: Self) {
        self.all.extend(other.all);
    }

    /// Returns what has changed since a contract was kept: nothing if it was not.
    #[must_use]
    pub fn changes(&self, asset: &Asset, now: &Description) -> Vec<ContractChange> {
        let id = asset.record.id.as_str();
        let Some(kept) = self.get(id) else { return Vec::new() };
        let names: std::collections::BTreeSet<&String> = kept.facts.keys().chain(now.facts.keys()).collect();
        let change = |name: &String| {
            let (old, new) = (kept.facts.get(name).cloned(), now.facts.get(name).cloned());
            (old != new).then(|| ContractChange { asset: id.to_owned(), fact: name.clone(), old, new })
        };
        names.into_iter().filter_map(change).collect()
    }
}
