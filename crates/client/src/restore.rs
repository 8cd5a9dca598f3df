//! Restores orders from a rescue phrase and the service's records of them.
//!
//! The secrets and keys of every index can be derived from the phrase. Only the service knows which orders they belong to, so its list of
//! the owner's orders is searched for their hashes and public keys. A dishonest service can hide an order, or list one with the hash of
//! another. If two orders have a value of the same index, neither is restored until the owner names the right one.
//!
//! A restored order has its record, its secret and its keys. Its request and response are lost, so the record is only what the service
//! states: look at the recipient before redeeming or refunding with it.

use std::collections::BTreeMap;
use std::str::FromStr;

use countersign::{Leg, OrderRecord};
use countersign_store::rescue::{DeriveError, Extent, FoundIndex, IndexError, OrderKeys, Phrase, Rescue, Search};
use countersign_store::{Error, KeyIndex, OrderDir, Store};

use crate::request::OrderId;
use crate::secret::Secret;

/// Names of documents, as in the stored orders of the driver. Every order that was created here has the first one.
const ORDER: &str = "order.json";
const RECORD: &str = "record.json";
const SECRET: &str = "secret";
const INDEX: &str = "index";
const BRANCH: &str = "branch";

/// An error of restoring orders, or of reading a restored order.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RestoreError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] Error),
    /// A secret or a key could not be derived.
    #[error(transparent)]
    Derive(#[from] DeriveError),
    /// The store has the phrase of other orders.
    #[error("the store has another rescue phrase: restore into a new one")]
    OtherPhrase,
    /// A stored document is damaged. The message says which, and what to do.
    #[error("{0}")]
    Damaged(String),
}

/// Why an order was not restored.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotRestored {
    /// It has no index of the phrase, or no certain one.
    #[error(transparent)]
    Index(#[from] IndexError),
    /// Its two legs have different secret hashes.
    #[error("its two legs have different secret hashes: report the service")]
    HashesDiffer,
    /// It is already in the store.
    #[error("it is already in the store")]
    Exists,
}

/// A search for the orders of a phrase, before anything is stored.
///
/// ```
/// use std::collections::BTreeMap;
///
/// use countersign_client::countersign::OrderRecord;
/// use countersign_client::restore::{Restoration, RestoreError};
/// use countersign_store::Store;
/// use countersign_store::rescue::{Extent, Phrase};
///
/// /// Restores the orders that the service lists for the owner's addresses, by their ids.
/// fn restore(
///     phrase: &Phrase,
///     listed: &BTreeMap<String, OrderRecord>,
///     store: &Store,
/// ) -> Result<(), RestoreError> {
///     let search = Restoration::search(phrase, listed, &Extent::default(), &mut |_, _| {})?;
///     for (id, outcome) in search.restore(store)? {
///         match outcome {
///             Ok(found) => println!("{id}: index {}", found.at.index),
///             Err(reason) => println!("{id}: not restored: {reason}"),
///         }
///     }
///     Ok(())
/// }
/// # let _ = restore;
/// ```
#[derive(Debug)]
pub struct Restoration<'r> {
    phrase: &'r Phrase,
    rescue: Rescue,
    records: BTreeMap<&'r str, &'r OrderRecord>,
    search: Search,
}

impl<'r> Restoration<'r> {
    /// Searches for the indices of all records, by the order's id. See [`Search::run`] for the extent and for `progress`.
    ///
    /// # Errors
    ///
    /// [`DeriveError`], which happens for one phrase or index in 2^127.
    pub fn search(
        phrase: &'r Phrase,
        records: &'r BTreeMap<String, OrderRecord>,
        extent: &Extent,
        progress: &mut dyn FnMut(usize, usize),
    ) -> Result<Self, DeriveError> {
        let rescue = Rescue::new(phrase)?;
        let keys = records.iter().map(|(id, record)| (id.clone(), order_keys(record))).collect();
        let search = Search::run(&rescue, &keys, extent, progress)?;
        Ok(Self { phrase, rescue, records: records.iter().map(|(id, record)| (id.as_str(), record)).collect(), search })
    }

    /// Restores only the orders whose ids `is_own` selects. It decides which of several orders with one index is the owner's.
    #[must_use]
    pub fn only(mut self, is_own: impl Fn(&str) -> bool) -> Self {
        self.search.retain(&is_own);
        self.records.retain(|id, _| is_own(id));
        self
    }

    /// Returns the number of orders to restore.
    #[must_use]
    pub fn count(&self) -> usize {
        self.records.len()
    }

    /// Returns the number of branches of the phrase that were searched.
    #[must_use]
    pub const fn branches(&self) -> usize {
        self.search.branches()
    }

    /// Stores the phrase, if the store has none, and every order whose index was found. Returns what became of each order, by its id. An
    /// interrupted restoration can be repeated.
    ///
    /// # Errors
    ///
    /// [`RestoreError::OtherPhrase`], [`RestoreError::Store`] or [`RestoreError::Derive`].
    pub fn restore(&self, store: &Store) -> Result<BTreeMap<&'r str, Result<FoundIndex, NotRestored>>, RestoreError> {
        match store.phrase()? {
            Some(kept) if *kept.words() == *self.phrase.words() => {}
            Some(_) => return Err(RestoreError::OtherPhrase),
            None => {
                // Written first, so that no index that was used elsewhere is ever handed out here.
                store.start_branch()?;
                store.keep_phrase(self.phrase)?;
            }
        }
        let restored = self.records.iter().map(|(id, record)| Ok((*id, self.restore_order(store, id, record)?)));
        restored.collect()
    }

    fn restore_order(&self, store: &Store, id: &str, record: &OrderRecord) -> Result<Result<FoundIndex, NotRestored>, RestoreError> {
        let found = match self.search.index_of(id) {
            Ok(found) => *found,
            Err(error) => return Ok(Err(error.into())),
        };
        if record.source_swap.secret_hash != record.destination_swap.secret_hash {
            return Ok(Err(NotRestored::HashesDiffer));
        }
        let KeyIndex { branch, index } = found.at;
        let secret = if found.has_secret { Some(Secret::from_bytes(*self.rescue.branch(branch)?.secret(index)?)) } else { None };
        let is_new = RestoredOrder { record: record.clone(), secret }.keep(store, found.at)?;
        Ok(if is_new { Ok(found) } else { Err(NotRestored::Exists) })
    }
}

/// A stored order that was restored from the rescue phrase.
#[derive(Debug)]
#[non_exhaustive]
pub struct RestoredOrder {
    /// The record as the service listed it. It was not verified.
    pub record: OrderRecord,
    /// The secret; `None` if it is not derived from the phrase.
    pub secret: Option<Secret>,
}

impl RestoredOrder {
    /// Reads the restored order with an id; `None` if it is not in the store, or was created there.
    ///
    /// # Errors
    ///
    /// [`RestoreError::Store`] or [`RestoreError::Damaged`].
    pub fn find(store: &Store, id: &OrderId) -> Result<Option<Self>, RestoreError> {
        match store.open_order(id.as_str()) {
            Ok(order) => Self::read(&order),
            Err(Error::OrderNotFound { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Reads a restored order; `None` for an order that was created in this store, and for a directory without a record.
    ///
    /// # Errors
    ///
    /// [`RestoreError::Store`], or [`RestoreError::Damaged`] if the record or the secret cannot be read, or belongs to another order.
    pub fn read(order: &OrderDir) -> Result<Option<Self>, RestoreError> {
        if order.exists(ORDER)? {
            return Ok(None);
        }
        let Some(bytes) = order.read(RECORD)? else { return Ok(None) };
        let damaged = |what: &str| RestoreError::Damaged(format!("order {}: {what}; restore again into a new directory", order.id()));
        let record = OrderRecord::from_json(&bytes).map_err(|refusal| damaged(&format!("{RECORD}: {}", refusal.finding())))?;
        if !record.order_id.eq_ignore_ascii_case(order.id()) {
            return Err(damaged("its record belongs to another order"));
        }
        let parse = |bytes: &[u8]| std::str::from_utf8(bytes).ok().and_then(|text| Secret::parse(text.trim()).ok());
        let secret = order.read(SECRET)?.map(|bytes| parse(&bytes).ok_or_else(|| damaged("its secret cannot be read"))).transpose()?;
        // The secret of another order must never be released for this one.
        if secret.as_ref().is_some_and(|secret| secret.hash() != record.destination_swap.secret_hash) {
            return Err(damaged("its secret belongs to another order"));
        }
        Ok(Some(Self { record, secret }))
    }

    /// Reads the index with which the secret and the keys of a stored order are derived; `None` if nothing is derived for it.
    ///
    /// # Errors
    ///
    /// [`RestoreError::Store`], or [`RestoreError::Damaged`] if the index is not a number.
    pub fn index(order: &OrderDir) -> Result<Option<KeyIndex>, RestoreError> {
        let Some(index) = read_number(order, INDEX)? else { return Ok(None) };
        Ok(Some(KeyIndex { branch: read_number(order, BRANCH)?.unwrap_or_default(), index }))
    }

    /// Stores the order. Returns `false` if it existed before.
    fn keep(&self, store: &Store, at: KeyIndex) -> Result<bool, RestoreError> {
        let record = serde_json::to_vec(&self.record).map_err(|error| RestoreError::Damaged(error.to_string()))?;
        let secret = self.secret.as_ref().map(Secret::to_hex);
        let (index, branch) = (at.index.to_string(), at.branch.to_string());
        let mut documents = vec![(INDEX, index.as_bytes()), (RECORD, &record)];
        if at.branch != 0 {
            documents.push((BRANCH, branch.as_bytes()));
        }
        documents.extend(secret.as_ref().map(|digits| (SECRET, digits.as_bytes())));
        match store.lock_store()?.create_order(&self.record.order_id, &documents) {
            Err(Error::OrderExists { .. }) => Ok(false),
            created => Ok(created.map(|_| true)?),
        }
    }
}

/// Reads a document that is a decimal number.
fn read_number<N: FromStr>(order: &OrderDir, name: &str) -> Result<Option<N>, RestoreError> {
    let Some(bytes) = order.read(name)? else { return Ok(None) };
    let number = std::str::from_utf8(&bytes).ok().and_then(|text| text.parse().ok());
    number.map(Some).ok_or_else(|| {
        RestoreError::Damaged(format!("{name} of order {} is not a number: restore a backup into a new directory", order.id()))
    })
}

fn order_keys(record: &OrderRecord) -> OrderKeys {
    let key = |leg| {
        let mut key = [0; 32];
        hex::decode_to_slice(owner_key(record, leg)?, &mut key).ok()?;
        Some(key)
    };
    OrderKeys { secret_hash: record.source_swap.secret_hash.0, refund_key: key(Leg::Source), redeem_key: key(Leg::Destination) }
}

/// Returns the owner's x-only public key of a leg on a Bitcoin-like chain, 64 hex digits in the case of the record; `None` without one.
#[must_use]
pub fn owner_key(record: &OrderRecord, leg: Leg) -> Option<&str> {
    let swap = leg.of(record);
    let party = if leg == Leg::Source { &swap.initiator } else { &swap.redeemer };
    // The delegate is the key if the party is an address. In old records the party itself is the key. Accounts of other chains begin with
    // 0x or are not hex, so they cannot be mistaken for a key.
    [swap.delegate.as_deref(), Some(party.as_str())].into_iter().flatten().find_map(|text| {
        let digits = if text.len() == 66 { text.get(2..).unwrap_or_default() } else { text };
        (digits.len() == 64 && text.bytes().all(|digit| digit.is_ascii_hexdigit())).then_some(digits)
    })
}
