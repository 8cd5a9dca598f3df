//! Orders on disk: implements [`OrderStore`] for the store of `countersign-store`.
//!
//! | document | content |
//! |---|---|
//! | `order.json` | request and response, as a case of the batch contract (`docs/spec/batch.md#case`) |
//! | `record.json` | the record that the order was verified with when it was signed |
//! | `pins.json` | the registry and the policy of that time ([`SignedUnder`]), replaced until something is signed |
//! | `secret` | the secret, 64 hex digits |
//! | `index` | the index with which secret and keys are derived from the rescue phrase, in decimal |
//! | `branch` | the branch of the rescue phrase that the index belongs to, in decimal; absent for branch 0 |
//! | `floor` | the minimum that the order must pay, in base units of the destination asset, in decimal |
//! | `journal` | one [`Entry`] per line |
//!
//! Files are read and written where the future is first polled, and it is ready then: a few kilobytes for each operation.

use std::str;

use countersign::SecretHash;
use countersign_store::{Error, LockedOrder, OrderDir};

use super::journal::Entry;
use super::kept::{OrderState, OrderStore, SignedUnder, StoreError, created_with};
use crate::request::OrderId;
use crate::restore::RestoredOrder;
use crate::secret::Secret;
use crate::stored::CreatedOrder;

/// Names of the documents.
const ORDER: &str = "order.json";
const RECORD: &str = "record.json";
const PINS: &str = "pins.json";
const SECRET: &str = "secret";
const INDEX: &str = "index";
const BRANCH: &str = "branch";
const FLOOR_FILE: &str = "floor";
const JOURNAL: &str = "journal";

impl From<Error> for StoreError {
    fn from(error: Error) -> Self {
        match error {
            Error::Busy { .. } => Self::Busy,
            Error::OrderExists { order } => Self::Exists(order),
            Error::OrderNotFound { order } => Self::Unknown(order),
            other => Self::Failed(format!("{}; {}", with_causes(&other), other.advice())),
        }
    }
}

fn with_causes(error: &Error) -> String {
    match std::error::Error::source(error) {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}

fn damaged(order: &OrderDir, document: &str, what: impl std::fmt::Display) -> StoreError {
    StoreError::Failed(format!(
        "{document} of order {} cannot be read: {what}; the other orders and its other documents are not affected; restore a backup into a new \
         directory",
        order.id()
    ))
}

impl OrderStore for countersign_store::Store {
    type Guard = LockedOrder;

    async fn create(&self, new: &OrderState) -> Result<(), StoreError> {
        // Two processes must not both store an order with the same secret.
        let guard = self.lock_store()?;
        if let Some(hash) = &new.swap.request().secret_hash
            && let Some(other) = self.order_of(hash).await?
            && other != *new.swap.id()
        {
            return Err(StoreError::SecretUsed(other));
        }
        let failed = |error: serde_json::Error| StoreError::Failed(error.to_string());
        let swap = serde_json::to_vec(&new.swap).map_err(failed)?;
        let secret = new.secret.as_ref().map(Secret::to_hex);
        let decimal = |number: Option<String>| number.map(String::into_bytes);
        let index = decimal(new.index.map(|index| index.to_string()));
        let branch = decimal(Some(new.branch).filter(|branch| *branch != 0).map(|branch| branch.to_string()));
        let floor = decimal(new.at_least.map(|least| least.to_string()));
        let documents = [
            (ORDER, Some(swap.as_slice())),
            (SECRET, secret.as_ref().map(|digits| digits.as_bytes())),
            (INDEX, index.as_deref()),
            (BRANCH, branch.as_deref()),
            (FLOOR_FILE, floor.as_deref()),
        ];
        let documents: Vec<_> = documents.into_iter().filter_map(|(name, bytes)| Some((name, bytes?))).collect();
        guard.create_order(new.swap.id().as_str(), &documents)?;
        Ok(())
    }

    async fn lock(&self, id: &OrderId) -> Result<LockedOrder, StoreError> {
        Ok(self.open_order(id.as_str())?.lock()?)
    }

    async fn load(&self, id: &OrderId) -> Result<OrderState, StoreError> {
        let order = self.open_order(id.as_str())?;
        let bytes = order.read(ORDER)?.ok_or_else(|| StoreError::Unknown(order.id().to_owned()))?;
        let swap = CreatedOrder::from_json(&bytes).map_err(|error| damaged(&order, ORDER, with_cause(&error)))?;
        if !swap.id().as_str().eq_ignore_ascii_case(id.as_str()) {
            return Err(damaged(&order, ORDER, "it belongs to another order"));
        }
        let mut kept = OrderState::new(swap, read_secret(&order)?);
        kept.index = read_number(&order, INDEX)?;
        kept.branch = read_number(&order, BRANCH)?.unwrap_or_default();
        kept.at_least = read_number(&order, FLOOR_FILE)?;
        kept.record = order.read(RECORD)?.map(|bytes| bytes.to_vec());
        let pins = order.read(PINS)?.map(|bytes| SignedUnder::from_json(&bytes)).transpose();
        kept.pins = pins.map_err(|error| damaged(&order, PINS, error))?;
        for line in order.read_journal(JOURNAL)?.entries {
            let entry: Entry = serde_json::from_slice(&line).map_err(|error| damaged(&order, JOURNAL, error))?;
            kept.journal.push(entry);
        }
        Ok(kept)
    }

    async fn keep_record(&self, guard: &LockedOrder, body: &[u8]) -> Result<(), StoreError> {
        keep(guard, RECORD, body)
    }

    async fn keep_pins(&self, guard: &LockedOrder, pins: &SignedUnder) -> Result<(), StoreError> {
        let bytes = serde_json::to_vec(pins).map_err(|error| StoreError::Failed(error.to_string()))?;
        if guard.read(PINS)?.is_some_and(|kept| kept.as_slice() == bytes) {
            return Ok(());
        }
        Ok(guard.write(PINS, &bytes)?)
    }

    async fn append(&self, guard: &LockedOrder, entry: &Entry) -> Result<(), StoreError> {
        let line = serde_json::to_vec(entry).map_err(|error| StoreError::Failed(error.to_string()))?;
        Ok(guard.append(JOURNAL, &line)?)
    }

    async fn replace_journal(&self, guard: &LockedOrder, entries: &[Entry]) -> Result<(), StoreError> {
        let lines = entries.iter().map(serde_json::to_vec).collect::<Result<Vec<_>, _>>();
        Ok(guard.replace_lines(JOURNAL, &lines.map_err(|error| StoreError::Failed(error.to_string()))?)?)
    }

    async fn orders(&self) -> Result<Vec<OrderId>, StoreError> {
        let mut ids = Vec::new();
        for id in self.order_ids()? {
            // An order that cannot be read fails when it is loaded, and must not stop the others.
            if self.open_order(&id).and_then(|order| order.exists(ORDER)).unwrap_or(true) {
                ids.push(OrderId::parse(&id).map_err(|error| StoreError::Failed(error.to_string()))?);
            }
        }
        Ok(ids)
    }

    /// Looks at restored orders too. Of these, only the record is stored.
    async fn order_of(&self, hash: &SecretHash) -> Result<Option<OrderId>, StoreError> {
        if let Some(id) = created_with(self, hash).await? {
            return Ok(Some(id));
        }
        let mut ids = self.order_ids()?.into_iter().filter_map(|id| OrderId::parse(&id).ok());
        let is_restored =
            |id: &OrderId| matches!(RestoredOrder::find(self, id), Ok(Some(order)) if order.record.source_swap.secret_hash == *hash);
        Ok(ids.find(is_restored))
    }
}

/// The document is this store's own: nobody has to correct an input.
fn with_cause(error: &crate::error::Error) -> String {
    match error {
        crate::error::Error::Input(refusal) | crate::error::Error::Shape(refusal) => refusal.finding().to_string(),
        other => std::error::Error::source(other).map_or_else(|| other.to_string(), ToString::to_string),
    }
}

/// Writes a document once. Writing the same bytes again succeeds, because an earlier attempt may have been interrupted.
fn keep(order: &LockedOrder, name: &str, bytes: &[u8]) -> Result<(), StoreError> {
    match order.create_new(name, bytes) {
        Err(Error::Exists { .. }) if order.read(name)?.is_some_and(|kept| kept.as_slice() == bytes) => Ok(()),
        written => Ok(written?),
    }
}

/// Reads a document that is a decimal number.
fn read_number<N: str::FromStr>(order: &OrderDir, name: &str) -> Result<Option<N>, StoreError> {
    let Some(bytes) = order.read(name)? else { return Ok(None) };
    let text = str::from_utf8(&bytes).ok().filter(|text| text.bytes().all(|digit| digit.is_ascii_digit()));
    let number = text.and_then(|text| text.parse().ok());
    number.map(Some).ok_or_else(|| damaged(order, name, "it is not a number"))
}

fn read_secret(order: &OrderDir) -> Result<Option<Secret>, StoreError> {
    let Some(bytes) = order.read(SECRET)? else { return Ok(None) };
    let text = str::from_utf8(&bytes).map_err(|_| damaged(order, SECRET, "it is not text"))?;
    Secret::parse(text.trim()).map(Some).map_err(|error| damaged(order, SECRET, with_cause(&error)))
}
