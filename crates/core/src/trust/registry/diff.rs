//! What changed between two registries, member by member.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::Registry;
use crate::wire::ContractRecord;

/// One pinned value that is new, gone or different.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Change {
    /// `chain ethereum`, `asset ethereum:usdc`, `solver <id> on ethereum, <address>`, `sponsor on solana, <address>`.
    pub entry: String,
    /// The member, such as `htlc address`.
    pub field: &'static str,
    /// What was pinned before.
    pub old: Option<String>,
    /// What would be pinned now.
    pub new: Option<String>,
}

type Facts = BTreeMap<(String, &'static str), String>;

impl Registry {
    /// Everything in `newer` that differs from what is pinned here, sorted.
    #[must_use]
    pub fn diff(&self, newer: &Self) -> Vec<Change> {
        let (old, new) = (self.facts(), newer.facts());
        let keys: BTreeSet<_> = old.keys().chain(new.keys()).collect();
        keys.into_iter()
            .filter(|key| old.get(key) != new.get(key))
            .map(|key| Change { entry: key.0.clone(), field: key.1, old: old.get(key).cloned(), new: new.get(key).cloned() })
            .collect()
    }

    fn facts(&self) -> Facts {
        let mut facts = Facts::new();
        let mut put = |entry: &str, field: &'static str, value: Option<String>| {
            if let Some(value) = value {
                facts.insert((entry.to_owned(), field), value);
            }
        };
        for chain in self.chains() {
            let entry = format!("chain {}", chain.record.chain);
            put(&entry, "id", Some(chain.record.id.clone()));
            put(&entry, "native asset", Some(chain.record.native_asset_id.clone()).filter(|id| !id.is_empty()));
            put(&entry, "source timelock", chain.record.source_timelock.map(|units| units.to_string()));
            put(&entry, "block time", chain.record.block_time.map(|seconds| seconds.to_string()));
        }
        for asset in self.assets() {
            let entry = format!("asset {}", asset.record.id);
            put(&entry, "decimals", Some(asset.record.decimals.to_string()));
            put(&entry, "chain id", asset.record.chain_id.clone());
            put(&entry, "smallest amount", asset.record.min_amount.clone());
            put(&entry, "largest amount", asset.record.max_amount.clone());
            let mut contract = |names: [&'static str; 5], record: &Option<ContractRecord>| {
                if let Some(record) = record {
                    let [address, schema, registry, version, domain] = names;
                    put(&entry, address, Some(record.address.clone()));
                    put(&entry, schema, record.schema.clone());
                    put(&entry, registry, record.registry.clone());
                    put(&entry, version, record.registry_initial_shared_version.clone());
                    put(&entry, domain, record.domain.as_ref().map(|domain| format!("{domain:?}")));
                }
            };
            contract(["htlc address", "htlc schema", "htlc registry", "htlc registry version", "htlc domain"], &asset.record.htlc);
            contract(["token address", "token schema", "token registry", "token registry version", "token domain"], &asset.record.token);
        }
        for solver in self.solvers() {
            put(&format!("solver {} on {}, {}", solver.solver_id, solver.chain, solver.address), "address", Some(solver.address.clone()));
        }
        for sponsor in self.sponsors() {
            put(&format!("sponsor on {}, {}", sponsor.chain, sponsor.address), "address", Some(sponsor.address.clone()));
        }
        facts
    }
}
