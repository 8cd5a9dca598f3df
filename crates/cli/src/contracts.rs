//! Descriptions of the pinned contracts, in the state directory. Any number of swaps may use and extend them at the same time.

use std::io::{self, IsTerminal};

use countersign::{Registry, Severity, trust::Asset, wire::RequestedLeg};
use countersign_client::{Http, OrderId};
use countersign_node::{ContractChange, ContractReport, Contracts, Nodes};
use countersign_store::Store;

use crate::consent::{self, Consent, Question};
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

fn kept(store: &Store) -> Result<Contracts, Failure> {
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
/// first time is stored. A change is a question of its own, because a deposit that any wallet can pay is shown without one. Where nobody can
/// answer, without a terminal or after `--yes` (`may_ask` is false), it is the failure `contract_changed`.
pub(crate) async fn check(
    nodes: &Nodes<Http>,
    store: &Store,
    registry: &Registry,
    legs: [&RequestedLeg; 2],
    (id, may_ask): (&OrderId, bool),
    session: &Session,
) -> Result<(), Failure> {
    let assets = legs.into_iter().filter_map(|leg| registry.asset(leg.asset.as_str())).map(AsRef::as_ref);
    let ContractReport { first_seen, new, changes, .. } = kept(store)?.check(nodes, assets).await?;
    for asset in first_seen {
        session.progress(&format!("{asset}: its contract is seen for the first time; its description is stored in the state directory"));
    }
    let said: Vec<_> = changes.iter().map(|change| format!("CHANGED: the contract of {change}")).collect();
    if !said.is_empty() && !(may_ask && io::stdin().is_terminal()) {
        said.iter().for_each(|change| session.progress(change));
        let message = "a pinned contract has changed: inspect it, then pin it again with registry pin --nodes";
        return Err(Failure::Held { code: "contract_changed", message: message.to_owned() });
    }
    if !said.is_empty() {
        let headline = "A pinned contract is not as it was described before: what is paid may go elsewhere, or never come back.".to_owned();
        let warnings = said.into_iter().map(|change| (Severity::Danger, change)).collect();
        let after_no = consent::unpaid(id, &session.commands.resume(id));
        let question = Question { text: "go on with the changed contract?", after_no, is_full: false };
        consent::ask(&Consent { headline, warnings, ..Consent::default() }, None, &question, session)?;
    }
    keep(store, &new, session);
    Ok(())
}
