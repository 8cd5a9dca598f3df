//! What becomes of a transaction that was sent.

use std::fmt;

use countersign_core::Refusal;
use countersign_core::reader::{self, Fault, Head, Identity, Known, Replies, Request, Submission, Trace, Tracing};
use sui_sdk_types::{Address, Digest, Input, ObjectReference, Transaction, TransactionExpiration, TransactionKind};

use super::fields::{epoch, found_epoch, method, object, transaction};
use super::proto::{Message, Writer};
use super::{Checkpoint, digest, grpc, identity, objects, transactions};

/// The maximum number of objects that are looked up: as many as a transaction may use for its gas. One that has changed is enough.
const MAX_OBJECTS: usize = 256;
/// The maximum number of transactions that are looked up because they changed an object.
const MAX_RIVALS: usize = 8;
/// The fields that are read of an object.
const OBJECT: [&str; 4] = ["object_id", "version", "digest", "previous_transaction"];

/// Reads what becomes of a transaction.
///
/// It is dead if the endpoint does not know it, and one of these holds: the epoch of its expiration is over; another transaction has changed
/// an owned object that it uses, and is in a checkpoint; or such an object no longer exists, although the endpoint has it at the version
/// that is used. It is also dead if it failed in a checkpoint.
pub type FateOf = reader::FateOf<Tracer>;

/// A transaction whose fate is read.
pub struct Tracer {
    identity: Identity,
    id: Digest,
    /// The owned objects that it uses, at these versions.
    objects: Vec<ObjectReference>,
    /// The last epoch in which it is valid.
    last_epoch: Option<u64>,
    known: Known,
    head: Option<Head>,
    proof: Proof,
}

/// What can prove that the transaction is dead.
#[derive(Debug, Default)]
struct Proof {
    /// Whether the last epoch is over.
    is_expired: bool,
    /// Other transactions that changed an object.
    rivals: Vec<(Address, Digest)>,
    /// Objects that do not exist at present.
    gone: Vec<ObjectReference>,
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
        let last_epoch = match transaction.expiration {
            TransactionExpiration::Epoch(epoch) => Some(epoch),
            TransactionExpiration::ValidDuring { max_epoch, .. } | TransactionExpiration::Validity { max_epoch, .. } => max_epoch,
            _ => None,
        };
        let objects = owned(transaction);
        Ok(Self { identity, id, objects, last_epoch, known: known.clone(), head: None, proof: Proof::default() })
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
        let mut requests = vec![Checkpoint::newest(), grpc::request(method::GET_EPOCH, &Writer::default().mask(2, &["epoch"]))];
        if !self.objects.is_empty() {
            requests.push(objects::request(&ids(&self.objects), &OBJECT));
        }
        requests
    }

    fn read_marks(&mut self, replies: &Replies<'_>) -> Result<Option<Vec<Request>>, Fault> {
        self.head = Some(Checkpoint::read(&replies.get(0)?, &self.known)?.head());
        let found: Message<'_> = grpc::read(&replies.get(1)?)?.need(found_epoch::EPOCH)?;
        let current: u64 = found.need(epoch::EPOCH)?;
        let mut proof = Proof { is_expired: self.last_epoch.is_some_and(|last| current > last), ..Proof::default() };
        let found = if self.objects.is_empty() { Vec::new() } else { objects::read(&replies.get(2)?, &ids(&self.objects))? };
        for (used, found) in self.objects.iter().zip(found) {
            let Some(found) = found else {
                proof.gone.push(used.clone());
                continue;
            };
            if found.need::<u64>(object::VERSION)? > used.version() {
                let by = digest(found.need(object::PREVIOUS_TRANSACTION)?, object::PREVIOUS_TRANSACTION)?;
                if by != self.id && proof.rivals.len() < MAX_RIVALS {
                    proof.rivals.push((*used.object_id(), by));
                }
            }
        }
        self.proof = proof;
        Ok(self.proof.requests())
    }

    fn read_proof(&mut self, replies: &Replies<'_>) -> Result<Option<String>, Fault> {
        let Proof { is_expired, rivals, gone } = &self.proof;
        let mut reason = is_expired.then(|| "its last epoch is over".to_owned());
        for (index, (id, by)) in rivals.iter().enumerate() {
            let rival = objects::read_transaction(&replies.get(index)?, *by)?;
            if rival.map(|rival| rival.get::<u64>(transaction::CHECKPOINT)).transpose()?.flatten().is_some() {
                reason = Some(format!("the transaction {by} has used the object {id}"));
            }
        }
        if !gone.is_empty() {
            let [then, now] = [0, 1].map(|index| replies.get(rivals.len().saturating_add(index)));
            let (then, now) = (objects::read(&then?, &ids(gone))?, objects::read(&now?, &ids(gone))?);
            for ((used, then), now) in gone.iter().zip(then).zip(now) {
                let Some(then) = then.filter(|_| now.is_none()) else { continue };
                let is_used = then.need::<u64>(object::VERSION)? == used.version()
                    && digest(then.need(object::DIGEST)?, object::DIGEST)? == *used.digest();
                if is_used {
                    reason = Some(format!("another transaction has used up the object {}", used.object_id()));
                }
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
        let Self { is_expired, rivals, gone } = self;
        let mut requests: Vec<_> = rivals.iter().map(|(_, by)| objects::request_transaction(*by, &["digest", "checkpoint"])).collect();
        if !gone.is_empty() {
            requests.push(objects::request_versions(gone, &OBJECT));
            requests.push(objects::request(&ids(gone), &OBJECT));
        }
        (*is_expired || !requests.is_empty()).then_some(requests)
    }
}

/// Returns the owned objects that a transaction uses: each is locked at its version, so the transaction cannot be executed once it has
/// another one.
fn owned(transaction: Transaction) -> Vec<ObjectReference> {
    let mut owned = transaction.gas_payment.objects;
    if let TransactionKind::ProgrammableTransaction(call) = transaction.kind {
        owned.extend(call.inputs.into_iter().filter_map(|input| if let Input::ImmutableOrOwned(used) = input { Some(used) } else { None }));
    }
    owned.truncate(MAX_OBJECTS);
    owned
}

fn ids(objects: &[ObjectReference]) -> Vec<Address> {
    objects.iter().map(|used| *used.object_id()).collect()
}
