//! What becomes of a transaction that was sent.

use std::fmt;

use countersign_core::Refusal;
use countersign_core::reader::{self, Fault, Head, Identity, Known, Replies, Request, Submission, Trace, Tracing};
use sui_sdk_types::{Address, Digest, Input, ObjectReference, Transaction, TransactionKind};

use super::fields::{changed_object, effects, object, transaction};
use super::proto::Message;
use super::{Checkpoint, address, digest, identity, objects, transactions};
use crate::balance;

/// The maximum number of objects that are looked up: as many as a transaction may use for its gas. One that has changed is enough.
const MAX_OBJECTS: usize = 256;
/// The maximum number of objects whose change is looked into.
const MAX_CHANGED: usize = 8;
/// The maximum number of changed objects that are read of a transaction.
const MAX_EFFECTS: usize = 4_096;
/// The fields that are read of an object.
const OBJECT: [&str; 4] = ["object_id", "version", "digest", "previous_transaction"];

/// Reads what becomes of a transaction.
///
/// It is dead if the endpoint does not know it, and one of these holds:
///
/// - The last epoch in which it is valid is over, and a coin for its gas still has the version that it uses.
/// - Another transaction has used an owned object at the same version, and is in a checkpoint.
/// - An owned object is at another version by another transaction in a checkpoint, or no longer exists, and the endpoint still has the
///   version that is used. A node that has it has not yet thrown away the transaction that used it, which is therefore another one.
///
/// It is also dead if it failed in a checkpoint.
pub type FateOf = reader::FateOf<Tracer>;

/// A transaction whose fate is read.
pub struct Tracer {
    identity: Identity,
    id: Digest,
    /// The owned objects that it uses, at these versions. The first ones are coins for its gas.
    objects: Vec<ObjectReference>,
    /// The number of coins for its gas.
    coins: usize,
    /// The last epoch in which it is valid.
    last_epoch: Option<u64>,
    known: Known,
    head: Option<Head>,
    proof: Proof,
}

/// What can prove that the transaction is dead.
#[derive(Debug, Default)]
struct Proof {
    /// Whether the last epoch is over, and a coin for the gas is unchanged. Every transaction changes its coins.
    is_expired: bool,
    /// The objects that have another version, with the transaction that made it; `None` if an object does not exist.
    changed: Vec<(ObjectReference, Option<Digest>)>,
}

impl fmt::Debug for Tracer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tracer({})", self.id)
    }
}

impl Tracing for Tracer {
    fn decode(submission: &Submission, known: &Known) -> Result<Self, Refusal> {
        let transaction = transactions::decode(submission)?.transaction;
        let (identity, id) = (identity(&submission.network)?, transaction.digest());
        let last_epoch = transactions::epochs(&transaction).map(|epochs| *epochs.end());
        // A reservation of the address balance is not an object.
        let is_coin = |used: &&ObjectReference| balance::reserved(used).is_none();
        let coins = transaction.gas_payment.objects.iter().filter(is_coin).count();
        let objects = owned(transaction);
        Ok(Self { identity, id, objects, coins, last_epoch, known: known.clone(), head: None, proof: Proof::default() })
    }

    fn identity(&self) -> Identity {
        self.identity.clone()
    }

    fn find(&self) -> Vec<Request> {
        vec![objects::request_transaction(self.id, &transactions::EXECUTED)]
    }

    fn read_found(&self, replies: &Replies<'_>) -> Result<Trace, Fault> {
        let Some(executed) = objects::read_transaction(&replies.get(0)?, self.id)? else { return Ok(Trace::Unknown) };
        let (failure, checkpoint) = (transactions::failure(executed)?, executed.get::<u64>(transaction::CHECKPOINT)?);
        Ok(match (checkpoint, failure) {
            (None, _) => Trace::Waiting,
            (Some(_), None) => Trace::Included,
            (Some(checkpoint), Some(why)) => Trace::Failed(format!("it failed in checkpoint {checkpoint}: {why}")),
        })
    }

    fn marks(&self) -> Vec<Request> {
        let mut requests = vec![Checkpoint::newest(), transactions::request_epoch()];
        if !self.objects.is_empty() {
            requests.push(objects::request(&ids(&self.objects), &OBJECT));
        }
        requests
    }

    fn read_marks(&mut self, replies: &Replies<'_>) -> Result<Option<Vec<Request>>, Fault> {
        self.head = Some(Checkpoint::read(&replies.get(0)?, &self.known)?.head());
        let current = transactions::read_epoch(&replies.get(1)?)?;
        let is_over = self.last_epoch.is_some_and(|last| current > last);
        let found = if self.objects.is_empty() { Vec::new() } else { objects::read(&replies.get(2)?, &ids(&self.objects))? };
        self.proof = Proof::default();
        for (index, (used, found)) in self.objects.iter().zip(found).enumerate() {
            let by = match found {
                Some(found) if found.need::<u64>(object::VERSION)? > used.version() => {
                    Some(digest(found.need(object::PREVIOUS_TRANSACTION)?, object::PREVIOUS_TRANSACTION)?)
                }
                Some(found) => {
                    self.proof.is_expired |= is_over && index < self.coins && is_at(found, used)?;
                    continue;
                }
                None => None,
            };
            if by != Some(self.id) && self.proof.changed.len() < MAX_CHANGED {
                self.proof.changed.push((used.clone(), by));
            }
        }
        Ok(self.proof.requests())
    }

    fn read_proof(&mut self, replies: &Replies<'_>) -> Result<Option<String>, Fault> {
        let Proof { is_expired, changed } = &self.proof;
        let mut reason = is_expired.then(|| "its last epoch is over".to_owned());
        if changed.is_empty() {
            return Ok(reason);
        }
        let ids = self.proof.ids();
        let (then, now) = (objects::read(&replies.get(0)?, &ids)?, objects::read(&replies.get(1)?, &ids)?);
        let mut index: usize = 2;
        for (((used, by), then), now) in changed.iter().zip(then).zip(now) {
            let is_kept = then.map_or(Ok(false), |then| is_at(then, used))?;
            let is_dead = match by {
                Some(by) => {
                    let rival = objects::read_transaction(&replies.get(index)?, *by)?;
                    index = index.saturating_add(1);
                    match rival {
                        Some(rival) if rival.get::<u64>(transaction::CHECKPOINT)?.is_some() => is_kept || has_used(rival, used)?,
                        _ => false,
                    }
                }
                None => is_kept && now.is_none(),
            };
            if is_dead {
                reason = Some(format!("another transaction has used the object {}", used.object_id()));
            }
        }
        Ok(reason)
    }

    fn learned(&self) -> Known {
        self.head.as_ref().map_or_else(Known::default, |head| Known::default().with_height(head.height))
    }
}

impl Proof {
    /// Returns the requests for the proof; `None` if nothing can prove it.
    fn requests(&self) -> Option<Vec<Request>> {
        if self.changed.is_empty() {
            return self.is_expired.then(Vec::new);
        }
        let used: Vec<_> = self.changed.iter().map(|(used, _)| used.clone()).collect();
        let mut requests = vec![objects::request_versions(&used, &OBJECT), objects::request(&ids(&used), &OBJECT)];
        let rivals = self.changed.iter().filter_map(|(_, by)| *by);
        requests.extend(rivals.map(|by| objects::request_transaction(by, &transactions::EXECUTED)));
        Some(requests)
    }

    fn ids(&self) -> Vec<Address> {
        self.changed.iter().map(|(used, _)| *used.object_id()).collect()
    }
}

/// Returns whether an object has the version and digest that a transaction uses.
fn is_at(found: Message<'_>, used: &ObjectReference) -> Result<bool, Fault> {
    let version = found.need::<u64>(object::VERSION)?;
    Ok(version == used.version() && digest(found.need(object::DIGEST)?, object::DIGEST)? == *used.digest())
}

/// Returns whether an executed transaction has used an object at this version.
fn has_used(executed: Message<'_>, used: &ObjectReference) -> Result<bool, Fault> {
    let effects: Message<'_> = executed.need(transaction::EFFECTS)?;
    for changed in effects.all(effects::CHANGED_OBJECTS, MAX_EFFECTS)? {
        let is_same = address(changed.need(changed_object::OBJECT_ID)?, changed_object::OBJECT_ID)? == *used.object_id();
        if is_same && changed.get::<u64>(changed_object::INPUT_VERSION)? == Some(used.version()) {
            let read: Option<&str> = changed.get(changed_object::INPUT_DIGEST)?;
            return Ok(read.map(|read| digest(read, changed_object::INPUT_DIGEST)).transpose()? == Some(*used.digest()));
        }
    }
    Ok(false)
}

/// Returns the owned objects that a transaction uses: each is locked at its version, so the transaction cannot be executed once it has
/// another one.
fn owned(transaction: Transaction) -> Vec<ObjectReference> {
    let mut owned = transaction.gas_payment.objects;
    if let TransactionKind::ProgrammableTransaction(call) = transaction.kind {
        owned.extend(call.inputs.into_iter().filter_map(|input| if let Input::ImmutableOrOwned(used) = input { Some(used) } else { None }));
    }
    owned.retain(|used| balance::reserved(used).is_none());
    owned.truncate(MAX_OBJECTS);
    owned
}

fn ids(objects: &[ObjectReference]) -> Vec<Address> {
    objects.iter().map(|used| *used.object_id()).collect()
}
