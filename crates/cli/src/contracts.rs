//! Descriptions of the pinned contracts, in the state directory. Any number of swaps may use and extend them at the same time.

use countersign::{Registry, trust::Asset, wire::RequestedLeg};
use countersign_client::Http;
use countersign_node::{ContractChange, ContractReport, Contracts, Nodes};
use countersign_store::Store;

use crate::failure::{Failure, chain, described, usage};
use crate::session::Session;
use crate::state::{State, StateArgs};

const NOT_STORED: &str = "the descriptions of the contracts could not be stored, so a later change of them may go unnoticed";

/// Opens the state directory; `None` if that is impossible, which is only reported.
pub(crate) fn open(args: &StateArgs, session: &Session) -> Option<State> {
    match args.open() {
        Ok(state) => Some(state),
        Err(failure) => {
            session.progress(&format!("{NOT_STORED}: {}", failure.message()));
            None
        }
    }
}

/// Returns the stored descriptions.
pub(crate) fn kept(store: &Store) -> Result<Contracts, Failure> {
    let Some(bytes) = store.contracts()? else { return Ok(Contracts::default()) };
    Contracts::from_json(&bytes).map_err(|refusal| {
        usage(format_args!(
            "contracts.json of the state directory: {}; remove the file to trust the contracts as they are now",
            described(&refusal)
        ))
    })
}

/// Stores new descriptions, and replaces those of the same contracts. Nothing is written if there is nothing new. A failure is only
/// reported, because an order can be paid and redeemed without them.
pub(crate) fn keep(store: &Store, new: &Contracts, session: &Session) {
    let added = |bytes: Option<&[u8]>| {
        let mut all = bytes.map_or_else(|| Ok(Contracts::default()), Contracts::from_json).ok()?;
        let before = all.to_file();
        all.extend(new.clone());
        let after = all.to_file();
        (after != before).then_some(after)
    };
    if *new == Contracts::default() {
        return;
    }
    if let Err(error) = store.update_contracts(added) {
        session.progress(&format!("{NOT_STORED}: {}; {}", chain(&error), error.advice()));
    }
}

/// Returns the changes since the contracts of a registry were last described.
pub(crate) fn changes(store: &Store, registry: &Registry, now: &Contracts) -> Result<Vec<ContractChange>, Failure> {
    let before = kept(store)?;
    let of = |asset: &&Asset| now.get(asset).map(|description| before.changes(asset, description));
    Ok(registry.assets().iter().filter_map(of).flatten().collect())
}

/// Compares the contracts of both legs with their stored descriptions, where their chains are connected. A contract that is seen for the
/// first time is stored. A change is the failure `contract_changed`: with another description than the stored one, the secret of the order
/// would never leave.
pub(crate) async fn check(
    nodes: &Nodes<Http>,
    store: &Store,
    registry: &Registry,
    legs: [&RequestedLeg; 2],
    session: &Session,
) -> Result<(), Failure> {
    let assets = legs.into_iter().filter_map(|leg| registry.asset(leg.asset.as_str())).map(AsRef::as_ref);
    let ContractReport { first_seen, new, changes, .. } = kept(store)?.check(nodes, assets).await?;
    for asset in first_seen {
        session.progress(&format!("{asset}: its contract is seen for the first time; its description is stored in the state directory"));
    }
    for change in &changes {
        session.progress(&format!("CHANGED: the contract of {change}"));
    }
    if !changes.is_empty() {
        let message = "a pinned contract has changed: inspect it, then pin it again with registry pin --nodes --accept";
        return Err(Failure::Held { code: "contract_changed", message: message.to_owned() });
    }
    keep(store, &new, session);
    Ok(())
}
