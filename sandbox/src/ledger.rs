//! Orders on disk. What has been acknowledged survives whatever happens to the process.

mod commits;
mod finding;

use std::path::Path;
use std::sync::Arc;

use redb::{Database, MultimapTableDefinition, ReadTransaction, ReadableDatabase, ReadableTable, TableDefinition};
use serde_json::Value;
use thiserror::Error;

use crate::order::Order;
use commits::{Commits, Entry};
pub use finding::{Brief, Page, Role};

/// Orders by number, as JSON.
const ORDERS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("orders");
/// Numbers by order id.
const IDS: TableDefinition<'_, &str, u64> = TableDefinition::new("ids");
/// Numbers by `chain/swap id`.
const SWAPS: TableDefinition<'_, &str, u64> = TableDefinition::new("swaps");
/// Numbers by the key of a request that may come again.
const REQUESTS: TableDefinition<'_, &str, u64> = TableDefinition::new("requests");
/// What filters see of an order, by number.
const BRIEFS: TableDefinition<'_, u64, (bool, bool, bool, u64, &str, &str)> = TableDefinition::new("briefs");
/// Numbers of orders that have been paid and have not ended.
const UNDER_WAY: TableDefinition<'_, u64, ()> = TableDefinition::new("under way");
/// What completed orders have paid, in base units by source asset.
const COMPLETED: TableDefinition<'_, &str, u128> = TableDefinition::new("completed");
/// Numbers and roles by each address and transaction of an order, in lower case.
const WORDS: MultimapTableDefinition<'_, &str, u64> = MultimapTableDefinition::new("words");

/// Pages of the file that stay in memory; the rest is read when it is needed.
const CACHE: usize = 4 << 20;

/// The disk has failed, or the file is not a ledger.
#[derive(Debug, Error)]
pub enum LedgerError {
    /// The database has failed.
    #[error("the ledger: {0}")]
    Database(#[from] Box<redb::Error>),
    /// What is stored cannot be read.
    #[error("the ledger has an order that cannot be read: {0}")]
    Stored(#[from] serde_json::Error),
    /// What was written together with others has not been committed.
    #[error(transparent)]
    Commit(Arc<Self>),
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
    commits: Commits,
}

impl Ledger {
    /// Opens a file, or makes it.
    ///
    /// # Errors
    ///
    /// The file cannot be opened, or another process has it.
    pub fn open(path: &Path) -> Result<Self, LedgerError> {
        Self::with(Database::builder().set_cache_size(CACHE).create(path).map_err(LedgerError::new)?)
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
        write.open_table(BRIEFS).map_err(LedgerError::new)?;
        write.open_table(UNDER_WAY).map_err(LedgerError::new)?;
        write.open_table(COMPLETED).map_err(LedgerError::new)?;
        write.open_multimap_table(WORDS).map_err(LedgerError::new)?;
        write.commit().map_err(LedgerError::new)?;
        Ok(Self { database, commits: Commits::default() })
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
        let entry = Entry { order: order.clone(), request: Some(request.to_owned()) };
        self.commits.commit(vec![entry], |entries| self.write(&entries))
    }

    /// Replaces orders by what they have become.
    ///
    /// # Errors
    ///
    /// The disk has failed.
    pub fn update(&self, orders: &[Order]) -> Result<(), LedgerError> {
        if orders.is_empty() {
            return Ok(());
        }
        let entries = orders.iter().map(|order| Entry { order: order.clone(), request: None }).collect();
        self.commits.commit(entries, |entries| self.write(&entries))
    }

    /// Writes orders of several callers in one transaction.
    fn write(&self, entries: &[Entry]) -> Result<(), LedgerError> {
        let mut write = self.database.begin_write().map_err(LedgerError::new)?;
        // After a kill the file is opened at once, in place of being read through.
        write.set_quick_repair(true);
        {
            let mut orders = write.open_table(ORDERS).map_err(LedgerError::new)?;
            let mut ids = write.open_table(IDS).map_err(LedgerError::new)?;
            let mut requests = write.open_table(REQUESTS).map_err(LedgerError::new)?;
            let mut swaps = write.open_table(SWAPS).map_err(LedgerError::new)?;
            let mut briefs = write.open_table(BRIEFS).map_err(LedgerError::new)?;
            let mut under_way = write.open_table(UNDER_WAY).map_err(LedgerError::new)?;
            let mut completed = write.open_table(COMPLETED).map_err(LedgerError::new)?;
            let mut words = write.open_multimap_table(WORDS).map_err(LedgerError::new)?;
            for Entry { order, request } in entries {
                let number = order.number;
                if let Some(request) = request {
                    ids.insert(order.id.as_str(), number).map_err(LedgerError::new)?;
                    requests.insert(request.as_str(), number).map_err(LedgerError::new)?;
                    for side in [&order.source, &order.destination] {
                        swaps.insert(swap_key(side.chain(), &side.swap_id).as_str(), number).map_err(LedgerError::new)?;
                    }
                }
                orders.insert(number, serde_json::to_vec(order)?.as_slice()).map_err(LedgerError::new)?;
                let brief = Brief::of(order);
                let before = briefs.insert(number, brief.stored()).map_err(LedgerError::new)?.map(|before| before.value().2);
                if brief.completed && before != Some(true) {
                    let asset = order.source.asset.as_str();
                    let sum = completed.get(asset).map_err(LedgerError::new)?.map_or(0, |sum| sum.value());
                    completed.insert(asset, sum.saturating_add(order.source.amount)).map_err(LedgerError::new)?;
                }
                if brief.paid && !order.has_ended() {
                    under_way.insert(number, ()).map_err(LedgerError::new)?;
                } else {
                    under_way.remove(number).map_err(LedgerError::new)?;
                }
                for (word, value) in finding::words_of(order) {
                    words.insert(word.as_str(), value).map_err(LedgerError::new)?;
                }
            }
        }
        write.commit().map_err(LedgerError::new)
    }

    /// The numbers of orders that have been paid and have not ended.
    ///
    /// # Errors
    ///
    /// The disk has failed.
    pub fn under_way(&self) -> Result<Vec<u64>, LedgerError> {
        let read = self.database.begin_read().map_err(LedgerError::new)?;
        let numbers = read.open_table(UNDER_WAY).map_err(LedgerError::new)?;
        let numbers: Result<Vec<_>, _> =
            numbers.iter().map_err(LedgerError::new)?.map(|row| row.map(|(number, _)| number.value())).collect();
        numbers.map_err(LedgerError::new)
    }

    /// What completed orders have paid: base units by source asset.
    ///
    /// # Errors
    ///
    /// The disk has failed.
    pub fn completed(&self) -> Result<Vec<(String, u128)>, LedgerError> {
        let read = self.database.begin_read().map_err(LedgerError::new)?;
        let sums = read.open_table(COMPLETED).map_err(LedgerError::new)?;
        let sums: Result<Vec<_>, _> =
            sums.iter().map_err(LedgerError::new)?.map(|row| row.map(|(asset, sum)| (asset.value().to_owned(), sum.value()))).collect();
        sums.map_err(LedgerError::new)
    }

    /// The order with a number.
    ///
    /// # Errors
    ///
    /// The disk has failed.
    pub fn by_number(&self, number: u64) -> Result<Option<Order>, LedgerError> {
        let read = self.database.begin_read().map_err(LedgerError::new)?;
        parsed(&read, number)
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
}

fn parsed(read: &ReadTransaction, number: u64) -> Result<Option<Order>, LedgerError> {
    let orders = read.open_table(ORDERS).map_err(LedgerError::new)?;
    let found = orders.get(number).map_err(LedgerError::new)?;
    Ok(found.map(|bytes| serde_json::from_slice(bytes.value())).transpose()?)
}

fn swap_key(chain: &str, swap_id: &str) -> String {
    format!("{chain}/{}", swap_id.to_lowercase())
}

/// What finds the order of a request that comes again.
#[must_use]
pub fn request_key(source_owner: &str, nonce: &Value, hash: &str) -> String {
    format!("{}/{nonce}/{hash}", source_owner.to_lowercase())
}
