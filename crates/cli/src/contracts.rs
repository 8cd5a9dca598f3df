//! Descriptions of the pinned contracts, in a file next to the registry.

use std::path::{Path, PathBuf};

use countersign::{Asset, Registry, RequestedLeg};
use countersign_client::Http;
use countersign_client::driver::Chains as _;
use countersign_node::{ContractChange, Contracts, Nodes};

use crate::files::{self, Access};
use crate::input::{Failure, read, usage};
use crate::show;

/// Returns the path of the descriptions for a registry: `registry.contracts.json` for `registry.json`.
fn beside(registry: &Path) -> PathBuf {
    registry.with_extension("contracts.json")
}

fn kept(registry: &Path) -> Result<Contracts, Failure> {
    let path = beside(registry);
    if !path.try_exists().unwrap_or(true) {
        return Ok(Contracts::default());
    }
    Contracts::from_json(&read(&path)?).map_err(|refusal| usage(format_args!("{}: {refusal}", path.display())))
}

/// Updates the stored descriptions with new ones. Descriptions of other contracts stay unchanged.
pub(crate) fn keep(registry: &Path, described: Contracts) -> Result<(), Failure> {
    let mut contracts = kept(registry)?;
    contracts.extend(described);
    if contracts != Contracts::default() {
        files::replace(&beside(registry), &contracts.to_file(), Access::Shared)?;
    }
    Ok(())
}

/// Returns the changes since the contracts of a registry were last described.
pub(crate) fn changes(path: &Path, registry: &Registry, now: &Contracts) -> Result<Vec<ContractChange>, Failure> {
    let before = kept(path)?;
    let of = |asset: &&Asset| now.get(asset.record.id.as_str()).map(|description| before.changes(asset, description));
    Ok(registry.assets().iter().filter_map(of).flatten().collect())
}

/// Compares the contracts of both legs with their stored descriptions, where their chains are connected. A contract that is seen for the
/// first time is stored. A change is shown; if nobody reads the output (`is_read` is false), it is the failure `contract_changed`.
pub(crate) async fn check(
    nodes: &Nodes<Http>,
    path: &Path,
    registry: &Registry,
    legs: [&RequestedLeg; 2],
    is_read: bool,
) -> Result<(), Failure> {
    let (contracts, mut new, mut changes) = (kept(path)?, Contracts::default(), Vec::new());
    for asset in legs.into_iter().filter_map(|leg| registry.asset(leg.asset.as_str())) {
        if asset.htlc.is_none() || !nodes.has(&asset.chain.record.chain) {
            continue;
        }
        let description = nodes.describe(asset).await?;
        let is_kept = contracts.get(asset.record.id.as_str()).is_some();
        if !is_kept && description.facts().next().is_none() {
            continue;
        }
        if !is_kept {
            show::progress(&format!(
                "{}: its contract is seen for the first time; its description is stored next to the registry",
                asset.record.id
            ));
            new.insert(asset, description);
        } else {
            changes.extend(contracts.changes(asset, &description));
        }
    }
    for change in &changes {
        show::progress(&format!("CHANGED: the contract of {change}"));
    }
    if !changes.is_empty() && !is_read {
        let message = "a pinned contract has changed: inspect it, then pin it again with registry pin --nodes";
        return Err(Failure::Held { code: "contract_changed", message: message.to_owned() });
    }
    keep(path, new)
}
