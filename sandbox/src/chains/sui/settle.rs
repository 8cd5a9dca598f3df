//! The end of a transaction: what it costs, and its effects.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use sui_sdk_types::bcs::ToBcs as _;
use sui_sdk_types::{
    Address, BalanceChange, ChangedObject, Digest, ExecutionStatus, GasCostSummary, IdOperation, MoveStruct, Object, ObjectData, ObjectIn,
    ObjectOut, Owner, SignedTransaction, TransactionEffects, TransactionEffectsV2, TransactionEvents, TypeTag, UnchangedConsensusKind,
    UnchangedConsensusObject,
};

use super::check::{Loaded, MIN_UNITS};
use super::execute::{Draft, Machine, Slot, simulated_gas};
use super::ledger::{Executed, coin};

/// What a byte of storage costs, in MIST.
const STORAGE_PRICE: u64 = 7_600;

impl Machine<'_> {
    /// Completes the transaction; `None` if the budget does not cover it.
    pub(super) fn finish(&mut self, loaded: &Loaded<'_>, signed: &SignedTransaction, status: &ExecutionStatus) -> Option<Executed> {
        let executed = self.settle(loaded, signed, status, false);
        (executed.effects.gas_summary().gas_used() <= signed.transaction.gas_payment.budget).then_some(executed)
    }

    /// Completes the transaction, at the cost of its whole budget or at what it costs.
    pub(super) fn settle(&mut self, loaded: &Loaded<'_>, signed: &SignedTransaction, status: &ExecutionStatus, is_flat: bool) -> Executed {
        let (transaction, digest, version) = (&signed.transaction, self.digest, self.version);
        let payer = Owner::Address(transaction.gas_payment.owner);
        let gas_id = loaded.gas.first().map_or_else(|| simulated_gas(digest), |first| first.object_id());
        // What no command has moved goes back, at a new version.
        for (slot, owner) in std::iter::once((&self.gas, payer)).chain(self.inputs.iter().map(|slot| (slot, Owner::Address(self.sender)))) {
            let (id, draft) = match slot {
                Slot::Coin(coin) => (coin.id, Some(coin.draft(owner))),
                Slot::Owned(id) => (*id, self.unchanged(id, owner)),
                Slot::Shared(id, true) => (*id, self.view.get(id).and_then(|object| self.unchanged(id, *object.owner()))),
                _ => continue,
            };
            if let Some(draft) = draft {
                self.drafts.entry(id).or_insert(draft);
            }
        }
        self.deleted.extend(&self.wrapped);
        let read: Vec<&Arc<Object>> = loaded.gas.iter().chain(loaded.inputs.iter().flatten()).collect();
        let build = |draft: &Draft, rebate: u64| {
            let data = MoveStruct::new(draft.kind.clone(), draft.is_public, version, draft.contents.clone());
            data.map(|data| Object::new(ObjectData::Struct(data), draft.owner, digest, rebate))
        };
        let size = |draft: &Draft| {
            let bytes = build(draft, 0).and_then(|object| object.to_bcs().ok()).unwrap_or_default();
            u64::try_from(bytes.len()).unwrap_or(u64::MAX).saturating_mul(STORAGE_PRICE)
        };
        let rebates: BTreeMap<Address, u64> = self.drafts.iter().map(|(id, draft)| (*id, size(draft))).collect();
        let before: BTreeMap<Address, &Arc<Object>> =
            self.drafts.keys().chain(&self.deleted).filter_map(|id| Some((*id, self.view.get(id)?))).collect();
        let summary = if is_flat {
            GasCostSummary::new(transaction.gas_payment.budget, 0, 0, 0)
        } else {
            let stored = before.values().fold(0_u64, |sum, object| sum.saturating_add(object.storage_rebate()));
            let kept = stored / 100;
            let storage = rebates.values().fold(0_u64, |sum, rebate| sum.saturating_add(*rebate));
            GasCostSummary::new(transaction.gas_payment.price.saturating_mul(MIN_UNITS), storage, stored.saturating_sub(kept), kept)
        };
        let spent = summary.computation_cost.saturating_add(summary.storage_cost);
        let refund = transaction.gas_payment.budget.saturating_add(summary.storage_rebate).saturating_sub(spent);
        if let Some(balance) = self.drafts.get_mut(&gas_id).and_then(|draft| draft.contents.get_mut(32..)) {
            let old = <[u8; 8]>::try_from(&*balance).map_or(0, u64::from_le_bytes);
            balance.copy_from_slice(&old.saturating_add(refund).to_le_bytes());
        }
        if loaded.gas.is_empty() {
            self.drafts.remove(&gas_id);
        }
        let written: Vec<Arc<Object>> =
            self.drafts.iter().filter_map(|(id, draft)| build(draft, rebates.get(id).copied().unwrap_or_default()).map(Arc::new)).collect();
        // An object that came into being in this transaction and ended in it was never there.
        let removed: Vec<Address> =
            self.deleted.iter().filter(|id| before.contains_key(id) && !self.drafts.contains_key(id)).copied().collect();
        let events = TransactionEvents(self.events.clone());
        let mut changed: Vec<ChangedObject> = written.iter().map(|object| change(&before, object)).collect();
        changed.extend(removed.iter().map(|id| ChangedObject {
            object_id: *id,
            input_state: before.get(id).map_or(ObjectIn::NotExist, |object| exists(object)),
            output_state: ObjectOut::NotExist,
            id_operation: if self.wrapped.contains(id) { IdOperation::None } else { IdOperation::Deleted },
        }));
        changed.sort_by_key(|one| one.object_id);
        let dependencies: BTreeSet<Digest> = read.iter().map(|object| object.previous_transaction()).collect();
        let is_read = |slot: &Slot| if let Slot::Shared(id, false) = slot { self.view.get(id).cloned() } else { None };
        let unchanged_consensus_objects = self.inputs.iter().filter_map(is_read).map(|object| UnchangedConsensusObject {
            object_id: object.object_id(),
            kind: UnchangedConsensusKind::ReadOnlyRoot { version: object.version(), digest: object.digest() },
        });
        let gas_index = changed.iter().position(|one| one.object_id == gas_id);
        let effects = TransactionEffectsV2 {
            status: status.clone(),
            epoch: self.context.epoch,
            gas_used: summary,
            transaction_digest: digest,
            gas_object_index: gas_index.and_then(|index| u32::try_from(index).ok()),
            events_digest: (!events.0.is_empty()).then(|| events.digest()),
            dependencies: dependencies.into_iter().collect(),
            lamport_version: version,
            unchanged_consensus_objects: unchanged_consensus_objects.collect(),
            changed_objects: changed,
            auxiliary_data_digest: None,
        };
        let of = |object: &Arc<Object>| object.as_struct().map(|data| (object.object_id(), data.object_type().to_string()));
        Executed {
            signed: signed.clone(),
            digest,
            effects: TransactionEffects::V2(Box::new(effects)),
            events,
            balances: balance_changes(before.values().copied(), &written),
            types: before.values().copied().chain(&written).filter_map(of).collect(),
            written,
            removed,
            swaps: std::mem::take(&mut self.swaps),
            checkpoint: None,
        }
    }
}

fn exists(object: &Object) -> ObjectIn {
    ObjectIn::Exist { version: object.version(), digest: object.digest(), owner: *object.owner() }
}

/// How a transaction changes or creates an object.
pub(super) fn change(before: &BTreeMap<Address, &Arc<Object>>, object: &Object) -> ChangedObject {
    let old = before.get(&object.object_id());
    let output_state = match object.data() {
        ObjectData::Struct(_) => ObjectOut::ObjectWrite { digest: object.digest(), owner: *object.owner() },
        ObjectData::Package(package) => ObjectOut::PackageWrite { version: package.version, digest: object.digest() },
    };
    ChangedObject {
        object_id: object.object_id(),
        input_state: old.map_or(ObjectIn::NotExist, |old| exists(old)),
        output_state,
        id_operation: if old.is_some() { IdOperation::None } else { IdOperation::Created },
    }
}

/// The sums of what accounts have in coins, afterwards less before.
fn balance_changes<'o>(before: impl Iterator<Item = &'o Arc<Object>>, after: &'o [Arc<Object>]) -> Vec<BalanceChange> {
    let mut sums: BTreeMap<(Address, TypeTag), i128> = BTreeMap::new();
    for (object, sign) in before.map(|object| (object, -1)).chain(after.iter().map(|object| (object, 1))) {
        if let (Some((of, balance)), Owner::Address(owner)) = (coin(object), object.owner()) {
            let sum = sums.entry((*owner, of.clone())).or_default();
            *sum = sum.saturating_add(i128::from(balance).saturating_mul(sign));
        }
    }
    let changes = sums.into_iter().filter(|(_, amount)| *amount != 0);
    changes.map(|((address, coin_type), amount)| BalanceChange { address, coin_type, amount }).collect()
}
