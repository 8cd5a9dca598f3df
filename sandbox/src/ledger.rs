//! Orders on disk. What has been acknowledged survives whatever happens to the process.

use std::path::Path;

use redb::{Database, MultimapTableDefinition, ReadableDatabase, ReadableTable, TableDefinition};
use serde_json::Value;
use thiserror::Error;

use crate::order::Order;

/// Orders by number, as JSON.
const ORDERS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("orders");
/// Numbers by order id.
const IDS: TableDefinition<'_, &str, u64> = TableDefinition::new("ids");
/// Numbers by `chain/swap id`.
const SWAPS: TableDefinition<'_, &str, u64> = TableDefinition::new("swaps");
/// Numbers by the key of a request that may come again.
const REQUESTS: TableDefinition<'_, &str, u64> = TableDefinition::new("requests");
/// Numbers by each address and transaction of an order, in lower case.
const WORDS: MultimapTableDefinition<'_, &str, u64> = MultimapTableDefinition::new("words");

/// The disk has failed, or the file is not a ledger.
#[derive(Debug, Error)]
pub enum LedgerError {
    /// The database has failed.
    #[error("the ledger: {0}")]
    Database(#[from] Box<redb::Error>),
    /// What is stored cannot be read.
    #[error("the ledger has an order that cannot be read: {0}")]
    Stored(#[from] serde_json::Error),
}

impl LedgerError {
    fn new(error: impl Into<redb::Error>) -> Self {
        Self::Database(Box::new(error.into()))
    }
}

/// All orders.
#[derive(Debug)]
pub struct Ledger {
    database: Database,
}

impl Ledger {
    /// Opens a file, or makes it.
    ///
    /// # Errors
    ///
    /// The file cannot be opened, or another process has it.
    pub fn open(path: &Path) -> Result<Self, LedgerError> {
        Self::with(Database::create(path).map_err(LedgerError::new)?)
    }

    /// A ledger in memory, for tests.
    ///
    /// # Errors
    ///
    /// None that is known.
    pub fn in_memory() -> Result<Self, LedgerError> {
        let backend = redb::backends::InMemoryBackend::new();
        Self::with(Database::builder().create_with_backend(backend).map_err(LedgerError::new)?)
    }

    fn with(database: Database) -> Result<Self, LedgerError> {
        let write = database.begin_write().map_err(LedgerError::new)?;
        write.open_table(ORDERS).map_err(LedgerError::new)?;
        write.open_table(IDS).map_err(LedgerError::new)?;
        write.open_table(SWAPS).map_err(LedgerError::new)?;
        write.open_table(REQUESTS).map_err(LedgerError::new)?;
        write.open_multimap_table(WORDS).map_err(LedgerError::new)?;
        write.commit().map_err(LedgerError::new)?;
        Ok(Self { database })
    }

    /// How many orders there are. Numbers run from 1 to this one.
    ///
    /// # Errors
    ///
    /// The disk has failed.
    pub fn count(&self) -> Result<u64, LedgerError> {
        let read = self.database.begin_read().map_err(LedgerError::new)?;
        let orders = read.open_table(ORDERS).map_err(LedgerError::new)?;
        let last = orders.last().map_err(LedgerError::new)?;
        Ok(last.map_or(0, |(number, _)| number.value()))
    }

    /// Adds an order; `request` finds it again. It is on disk when this returns.
    ///
    /// # Errors
    ///
    /// The disk has failed.
    pub fn add(&self, order: &Order, request: &str) -> Result<(), LedgerError> {
        let write = self.database.begin_write().map_err(LedgerError::new)?;
        {
            write.open_table(IDS).map_err(LedgerError::new)?.insert(order.id.as_str(), order.number).map_err(LedgerError::new)?;
            write.open_table(REQUESTS).map_err(LedgerError::new)?.insert(request, order.number).map_err(LedgerError::new)?;
            let mut swaps = write.open_table(SWAPS).map_err(LedgerError::new)?;
            for side in [&order.source, &order.destination] {
                swaps.insert(swap_key(side.chain(), &side.swap_id).as_str(), order.number).map_err(LedgerError::new)?;
            }
        }
        put(&write, order)?;
        write.commit().map_err(LedgerError::new)
    }

    /// Replaces orders by what they have become.
    ///
    /// # Errors
    ///
    /// The disk has failed.
    pub fn update(&self, orders: &[Order]) -> Result<(), LedgerError> {
        let write = self.database.begin_write().map_err(LedgerError::new)?;
        for order in orders {
            put(&write, order)?;
        }
        write.commit().map_err(LedgerError::new)
    }

    /// The order with a number.
    ///
    /// # Errors
    ///
    /// The disk has failed.
    pub fn by_number(&self, number: u64) -> Result<Option<Order>, LedgerError> {
        let read = self.database.begin_read().map_err(LedgerError::new)?;
        let orders = read.open_table(ORDERS).map_err(LedgerError::new)?;
        let found = orders.get(number).map_err(LedgerError::new)?;
        Ok(found.map(|bytes| serde_json::from_slice(bytes.value())).transpose()?)
    }

    /// The order with an id.
    ///
    /// # Errors
    ///
    /// The disk has failed.
    pub fn by_id(&self, id: &str) -> Result<Option<Order>, LedgerError> {
        self.by(IDS, id)
    }

    /// The order that an HTLC of a chain belongs to.
    ///
    /// # Errors
    ///
    /// The disk has failed.
    pub fn by_swap(&self, chain: &str, swap_id: &str) -> Result<Option<Order>, LedgerError> {
        self.by(SWAPS, &swap_key(chain, swap_id))
    }

    /// The order that a request has made.
    ///
    /// # Errors
    ///
    /// The disk has failed.
    pub fn by_request(&self, request: &str) -> Result<Option<Order>, LedgerError> {
        self.by(REQUESTS, request)
    }

    fn by(&self, table: TableDefinition<'static, &'static str, u64>, key: &str) -> Result<Option<Order>, LedgerError> {
        let read = self.database.begin_read().map_err(LedgerError::new)?;
        let numbers = read.open_table(table).map_err(LedgerError::new)?;
        let found = numbers.get(key).map_err(LedgerError::new)?.map(|number| number.value());
        found.map_or(Ok(None), |number| self.by_number(number))
    }

    /// The numbers of orders that have an address or a transaction, the newest first.
    ///
    /// # Errors
    ///
    /// The disk has failed.
    pub fn with_word(&self, word: &str) -> Result<Vec<u64>, LedgerError> {
        let read = self.database.begin_read().map_err(LedgerError::new)?;
        let words = read.open_multimap_table(WORDS).map_err(LedgerError::new)?;
        let found = words.get(word.to_lowercase().as_str()).map_err(LedgerError::new)?;
        let numbers: Result<Vec<_>, _> = found.rev().map(|number| number.map(|number| number.value())).collect();
        numbers.map_err(LedgerError::new)
    }
}

fn put(write: &redb::WriteTransaction, order: &Order) -> Result<(), LedgerError> {
    let bytes = serde_json::to_vec(order)?;
    write.open_table(ORDERS).map_err(LedgerError::new)?.insert(order.number, bytes.as_slice()).map_err(LedgerError::new)?;
    let mut words = write.open_multimap_table(WORDS).map_err(LedgerError::new)?;
    for word in words_of(order) {
        words.insert(word.as_str(), order.number).map_err(LedgerError::new)?;
    }
    Ok(())
}

fn swap_key(chain: &str, swap_id: &str) -> String {
    format!("{chain}/{}", swap_id.to_lowercase())
}

/// What `GET /v2/orders` finds an order by.
fn words_of(order: &Order) -> Vec<String> {
    let mut words = Vec::new();
    for side in [&order.source, &order.destination] {
        words.extend([&side.owner, &side.initiator, &side.redeemer].map(|word| word.to_lowercase()));
        words.extend(side.delegate.iter().chain(&side.shown_delegate).map(|word| word.to_lowercase()));
        for seen in [&side.initiated, &side.redeemed, &side.refunded].into_iter().flatten() {
            for transaction in seen.transaction.split(',') {
                let id = transaction.split_once(':').map_or(transaction, |(id, _)| id);
                words.push(id.to_lowercase());
            }
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// What finds the order of a request that comes again.
#[must_use]
pub fn request_key(source_owner: &str, nonce: &Value, hash: &str) -> String {
    format!("{}/{nonce}/{hash}", source_owner.to_lowercase())
}
