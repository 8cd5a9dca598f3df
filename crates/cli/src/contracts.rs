//! What the pinned contracts said about themselves, in a file beside the registry.

use std::path::{Path, PathBuf};

use countersign::{Asset, Registry, RequestedLeg};
use countersign_client::Http;
use countersign_client::driver::Chains as _;
use countersign_node::{ContractChange, Contracts, Nodes};

use crate::files::{self, Access};
use crate::input::{Failure, read, usage};
use crate::show;

/// Returns the file that belongs to a registry: `registry.json` has `registry.contracts.json`.
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

/// Replaces what was kept by what is known now; what was not described stays as it was.
pub(crate) fn keep(registry: &Path, described: Contracts) -> Result<(), Failure> {
    let mut contracts = kept(registry)?;
    contracts.extend(described);
    if contracts != Contracts::default() {
        files::replace(&beside(registry), &contracts.to_file(), Access::Shared)?;
    }
    Ok(())
}

/// Returns what has changed since the contracts of a registry were described.
pub(crate) fn changes(path: &Path, registry: &Registry, now: &Contracts) -> Result<Vec<ContractChange>, Failure> {
    let before = kept(path)?;
    let of = |asset: &&Asset| now.get(asset.record.id.as_str()).map(|description| before.changes(asset, description));
    Ok(registry.assets().iter().filter_map(of).flatten().collect())
}

/// Compares the contracts of both sides with what was kept, where their chains are connected. A contract that is seen for the first time is
/// kept; a change is shown, and counts as `contract_changed` where nobody reads it.
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
            show::progress(&format!("{}: its contract is seen for the first time, and kept beside the registry", asset.record.id));
            new.insert(asset, description);
        } else {
            changes.extend(contracts.changes(asset, &description));
        }
    }
    for change in &changes {
        show::progress(&format!("NEWS: the contract of {change}"));
    }
    if !changes.is_empty() && !is_read {
        let message = "a pinned contract has changed: look at it, then pin it again with registry pin --nodes";
        return Err(Failure::Held { code: "contract_changed", message: message.to_owned() });
    }
    keep(path, new)
}
