//! What changed between two registries, member by member.

use std::collections::BTreeMap;

use serde::Serialize;

use super::Registry;
use crate::sort;
use crate::wire::ContractRecord;

/// One pinned value that is new, gone or different.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Change {
    /// The entry: `chain ethereum`, `asset ethereum:usdc`, `solver <id> on ethereum, <address>`, `sponsor on solana, <address>`.
    pub entry: String,
    /// The member of the entry, such as `htlc address`.
    pub field: &'static str,
    /// What was pinned before; `None` if it is new.
    pub old: Option<String>,
    /// What would be pinned now; `None` if it is gone.
    pub new: Option<String>,
}

type Facts = BTreeMap<(String, &'static str), String>;

impl Registry {
    /// Returns everything in `newer` that differs from what is pinned here, sorted by entry and member.
    #[must_use]
    pub fn diff(&self, newer: &Self) -> Vec<Change> {
        let (old, new) = (self.facts(), newer.facts());
        let keys = sort::set(old.keys().chain(new.keys()));
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
            let entry = format!("chain {}", chain.name());
            put(&entry, "id", Some(chain.record.id.clone()));
            put(&entry, "display name", chain.record.name.clone());
            put(&entry, "explorer", chain.record.explorer_url.clone());
            put(&entry, "native asset", chain.record.native_asset_id.clone());
            put(&entry, "source timelock", chain.record.source_timelock.map(|units| units.to_string()));
            put(&entry, "block time", chain.record.block_time.map(|seconds| seconds.to_string()));
            put(&entry, "fastest block time", chain.record.min_block_time.map(|seconds| seconds.to_string()));
        }
        for asset in self.assets() {
            let entry = format!("asset {}", asset.record.id);
            put(&entry, "name", asset.record.name.clone());
            put(&entry, "decimals", Some(asset.record.decimals.to_string()));
            put(&entry, "chain id", asset.record.chain_id.clone());
            put(&entry, "smallest amount", asset.record.min_amount.clone());
            put(&entry, "largest amount", asset.record.max_amount.clone());
            let mut contract = |names: [&'static str; 6], record: &Option<ContractRecord>| {
                if let Some(record) = record {
                    let [address, schema, registry, version, domain, generation] = names;
                    put(&entry, address, Some(record.address.clone()));
                    put(&entry, schema, record.schema.clone());
                    put(&entry, registry, record.registry.clone());
                    put(&entry, version, record.registry_initial_shared_version.clone());
                    put(&entry, domain, record.domain.as_ref().map(written));
                    put(&entry, generation, record.generation.clone());
                }
            };
            let names = ["htlc address", "htlc schema", "htlc registry", "htlc registry version", "htlc domain", "htlc generation"];
            contract(names, &asset.record.htlc);
            let names = ["token address", "token schema", "token registry", "token registry version", "token domain", "token generation"];
            contract(names, &asset.record.token);
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

/// Writes a typed-data domain as `name "HTLC", version "3"`.
fn written(domain: &BTreeMap<String, String>) -> String {
    domain.iter().map(|(key, value)| format!("{key} {value:?}")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::trust::Registry;

    /// Members that are neither shown nor used, by the last step of their pointer.
    const NEITHER_SHOWN_NOR_USED: [&str; 2] = ["icon", "price"];

    fn full() -> Value {
        json!({
            "chains": [
                {"chain": "base", "id": "evm:8453", "name": "Base", "icon": "i", "explorer_url": "https://explorer.invalid", "native_asset_id": "base:eth",
                 "block_time": 2, "min_block_time": 1, "source_timelock": "43200"},
                {"chain": "solana", "id": "solana:mainnet"},
                {"chain": "sui", "id": "sui:mainnet", "name": "Sui"}
            ],
            "assets": [
                {"id": "base:usdc", "chain": "base", "chain_id": 8453, "name": "USD Coin", "icon": "i", "price": 1, "decimals": 6,
                 "min_amount": "5", "max_amount": "500",
                 "htlc": {"address": "0x2a9ea852e504d0d531f83df5d9ec1938f33d5b9e", "schema": "evm:htlc_erc20", "domain": {"name": "HTLC", "version": "3"},
                  "generation": "v3"},
                 "token": {"address": "0xf4358ae0f437456d6815d94f88239c848aeac767", "schema": "evm:erc20"}},
                {"id": "sui:sui", "chain": "sui", "decimals": 9, "name": "SUI", "token": null,
                 "htlc": {"address": "0x945c0bf12bf3c8fbe4b21313a51d7f223c525f7f136dd5001921ffad427c9562", "schema": "sui:htlc",
                  "registry": "0xdf9d3ff623eeaa0ee8edd59f1893863a818e4c5b2d213b9426339f8321f84648", "registry_initial_shared_version": "402653184"}}
            ],
            "solvers": [{"solver_id": "one", "chain": "base", "address": "0x8a47d35b5e9bffb780744735d27117759b0bc2ea"}],
            "sponsors": [{"chain": "solana", "address": "4JVH1tK1mDB5HmmcLCyVQZ5iK2iCK4kBCoj5nsStEBoG"}]
        })
    }

    fn leaves(value: &Value, at: &str, into: &mut Vec<String>) {
        match value {
            Value::Object(members) => members.iter().for_each(|(key, value)| leaves(value, &format!("{at}/{key}"), into)),
            Value::Array(items) => items.iter().enumerate().for_each(|(index, value)| leaves(value, &format!("{at}/{index}"), into)),
            _ => into.push(at.to_owned()),
        }
    }

    /// Returns other values, those of the same form first: most of them are accepted, so the comparison must see them.
    fn others(value: &Value) -> Vec<Value> {
        match value {
            Value::String(text) => {
                let last = if text.ends_with('7') { "8" } else { "7" };
                let mut same_length = text.clone();
                same_length.pop();
                vec![json!(same_length + last), json!(format!("{text}7")), json!("x"), Value::Null]
            }
            Value::Number(number) => vec![json!(number.as_u64().unwrap().wrapping_add(1)), json!("7"), Value::Null],
            _ => vec![json!({"address": "0x2::usdc::USDC"})],
        }
    }

    #[test]
    fn every_member_that_is_shown_or_used_is_compared() {
        let read = |value: &Value| Registry::from_json(value.to_string().as_bytes());
        let (mut pointers, full) = (Vec::new(), full());
        leaves(&full, "", &mut pointers);
        let pinned = read(&full).unwrap();
        assert_eq!(pinned.diff(&pinned), []);
        let (mut seen, mut missed) = (0, Vec::new());
        for at in &pointers {
            for other in others(full.pointer(at).unwrap()) {
                let mut changed = full.clone();
                *changed.pointer_mut(at).unwrap() = other;
                match read(&changed) {
                    Ok(changed) if pinned.diff(&changed).is_empty() => missed.push(at.as_str()),
                    Ok(changed) => {
                        seen += 1;
                        assert_ne!(pinned.digest(), changed.digest(), "{at}");
                    }
                    Err(_) => {}
                }
            }
        }
        missed.retain(|at| !NEITHER_SHOWN_NOR_USED.iter().any(|member| at.ends_with(member)));
        assert!(missed.is_empty(), "not compared: {missed:?}");
        assert!(seen > 40, "{seen}");
        // The registry file holds nothing else.
        let written: Value = serde_json::from_slice(&pinned.to_file()).unwrap();
        let mut kept = Vec::new();
        leaves(&written, "", &mut kept);
        assert!(kept.iter().all(|at| pointers.contains(at)), "{kept:?}");
    }
}
