//! Orders, in memory and in an append-only file. Acknowledged orders survive a crash or kill of the process.

use std::collections::{BTreeMap, HashMap};
use std::fs::{File, TryLockError};
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use thiserror::Error;

use crate::order::{Order, Seen, Side};

/// The disk has failed, or the file is not a ledger.
#[derive(Debug, Error)]
pub enum LedgerError {
    /// The file cannot be read or written.
    #[error("{path}: {source}")]
    Disk {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// Another process has the file.
    #[error("{path}: another sandbox runs on this directory{process}: stop it, or choose another directory with --dir")]
    Busy {
        /// The file.
        path: PathBuf,
        /// ", process" and its id, if the lock file states it.
        process: String,
    },
    /// The directory holds orders of an earlier version, which kept them in a database.
    #[error(
        "{0}: an earlier version kept orders in this file, and this version cannot read it: move it away, or choose another directory with --dir"
    )]
    Old(PathBuf),
    /// A line does not hold an order.
    #[error("{path}, line {line}: {source}; move the file away to begin anew")]
    Line {
        /// The file.
        path: PathBuf,
        /// The number of the line, from 1.
        line: usize,
        /// What is wrong with it.
        source: serde_json::Error,
    },
    /// An order cannot be written as JSON.
    #[error("an order cannot be written: {0}")]
    Order(#[from] serde_json::Error),
}

/// A line of the file: an order as it is after a change.
#[derive(Serialize, Deserialize)]
struct Entry {
    order: Order,
    /// The key by which a repeated request finds its order. Present only on an order's first line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    request: Option<String>,
}

/// The file, with the position where its next line begins.
#[derive(Debug)]
struct Log {
    file: File,
    path: PathBuf,
    end: u64,
    /// Locked until the ledger is dropped.
    _lock: File,
}

#[derive(Debug, Default)]
struct Orders {
    by_number: BTreeMap<u64, Order>,
    ids: HashMap<String, u64>,
    /// Order numbers by `chain/swap id`.
    swaps: HashMap<String, u64>,
    requests: HashMap<String, u64>,
}

/// All orders.
#[derive(Debug, Default)]
pub struct Ledger {
    /// `None` for a ledger in memory. It is locked before the orders and held until they agree with it.
    log: Mutex<Option<Log>>,
    orders: Mutex<Orders>,
}

/// Whose address a search word has to match.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Any party's address, or a transaction.
    Any,
    /// The user's on the source chain.
    From,
    /// The user's on the destination chain.
    To,
}

/// A page of a list.
#[derive(Debug)]
pub struct Page {
    /// The orders on this page.
    pub orders: Vec<Order>,
    /// The number of orders in the whole list.
    pub total: usize,
}

impl Ledger {
    /// Opens the file, or creates it. An incomplete last line was never acknowledged, so it is dropped.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be read or has an invalid line, if another process has it open, or if an earlier
    /// version left its orders in the same directory.
    pub fn open(path: &Path) -> Result<Self, LedgerError> {
        let failed = |source| LedgerError::Disk { path: path.to_owned(), source };
        let old = path.with_extension("redb");
        if old.exists() {
            return Err(LedgerError::Old(old));
        }
        let lock = lock(path)?;
        let file = opened(path)?;
        let mut orders = Orders::default();
        let (mut reader, mut end, mut text) = (BufReader::new(&file), 0_u64, Vec::new());
        for line in 1.. {
            text.clear();
            let read = reader.read_until(b'\n', &mut text).map_err(failed)?;
            if text.last() != Some(&b'\n') {
                break;
            }
            let entry = serde_json::from_slice(&text).map_err(|source| LedgerError::Line { path: path.to_owned(), line, source })?;
            orders.put(entry);
            end = end.saturating_add(u64::try_from(read).unwrap_or(u64::MAX));
        }
        drop(reader);
        file.set_len(end).map_err(failed)?;
        let log = Log { file, path: path.to_owned(), end, _lock: lock };
        Ok(Self { log: Mutex::new(Some(log)), orders: Mutex::new(orders) })
    }

    /// Returns the number of orders. They are numbered from 1.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.orders().by_number.last_key_value().map_or(0, |(number, _)| *number)
    }

    /// Adds an order, which a repeated `request` finds again. The order is on disk when this returns.
    ///
    /// # Errors
    ///
    /// Fails if the disk does.
    pub fn add(&self, order: &Order, request: &str) -> Result<(), LedgerError> {
        self.write(vec![Entry { order: order.clone(), request: Some(request.to_owned()) }])
    }

    /// Replaces orders by their new states.
    ///
    /// # Errors
    ///
    /// Fails if the disk does.
    pub fn update(&self, orders: &[Order]) -> Result<(), LedgerError> {
        self.write(orders.iter().map(|order| Entry { order: order.clone(), request: None }).collect())
    }

    fn write(&self, entries: Vec<Entry>) -> Result<(), LedgerError> {
        if entries.is_empty() {
            return Ok(());
        }
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(log) = &mut *log {
            let mut text = Vec::new();
            for entry in &entries {
                serde_json::to_writer(&mut text, entry)?;
                text.push(b'\n');
            }
            log.append(&text).map_err(|source| LedgerError::Disk { path: log.path.clone(), source })?;
        }
        let mut orders = self.orders();
        entries.into_iter().for_each(|entry| orders.put(entry));
        Ok(())
    }

    fn orders(&self) -> MutexGuard<'_, Orders> {
        self.orders.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the numbers of orders that have been paid and have not ended.
    #[must_use]
    pub fn under_way(&self) -> Vec<u64> {
        let is_under_way = |order: &&Order| order.source.initiated.is_some() && !order.has_ended();
        self.orders().by_number.values().filter(is_under_way).map(|order| order.number).collect()
    }

    /// Returns the total that completed orders have paid, in base units by source asset.
    #[must_use]
    pub fn completed(&self) -> BTreeMap<String, u128> {
        let mut sums = BTreeMap::<String, u128>::new();
        for order in self.orders().by_number.values().filter(|order| order.destination.redeemed.is_some()) {
            let sum = sums.entry(order.source.asset.clone()).or_default();
            *sum = sum.saturating_add(order.source.amount);
        }
        sums
    }

    /// Returns the order with a number.
    #[must_use]
    pub fn by_number(&self, number: u64) -> Option<Order> {
        self.orders().by_number.get(&number).cloned()
    }

    /// Returns the order with an id.
    #[must_use]
    pub fn by_id(&self, id: &str) -> Option<Order> {
        self.orders().find(|orders| orders.ids.get(id))
    }

    /// Returns the order that an HTLC on a chain belongs to.
    #[must_use]
    pub fn by_swap(&self, chain: &str, swap_id: &str) -> Option<Order> {
        self.orders().find(|orders| orders.swaps.get(&swap_key(chain, swap_id)))
    }

    /// Returns the order that a request created.
    #[must_use]
    pub fn by_request(&self, request: &str) -> Option<Order> {
        self.orders().find(|orders| orders.requests.get(request))
    }

    /// Returns the orders that match all words and the filter, newest first: at most `most` of them, starting with
    /// the one at `first`.
    pub fn find(&self, words: &[(&str, Role)], takes: impl Fn(&Order) -> bool, first: usize, most: usize) -> Page {
        let orders = self.orders();
        let is_found = |order: &&Order| words.iter().all(|(word, role)| has_word(order, word, *role)) && takes(order);
        let found = || orders.by_number.values().rev().filter(is_found);
        Page { orders: found().skip(first).take(most).cloned().collect(), total: found().count() }
    }
}

fn opened(path: &Path) -> Result<File, LedgerError> {
    let opened = File::options().create(true).truncate(false).read(true).write(true).open(path);
    opened.map_err(|source| LedgerError::Disk { path: path.to_owned(), source })
}

/// Locks a file next to the ledger. The file states the id of the process that holds the lock.
fn lock(ledger: &Path) -> Result<File, LedgerError> {
    let path = ledger.with_extension("lock");
    let mut file = opened(&path)?;
    let failed = |source| LedgerError::Disk { path: path.clone(), source };
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::Error(source)) => return Err(failed(source)),
        Err(TryLockError::WouldBlock) => {
            // The holder may not have written its id yet, and some systems do not allow reading a locked file.
            let mut id = String::new();
            let process = match file.read_to_string(&mut id) {
                Ok(_) if !id.is_empty() => format!(", process {}", id.trim_end()),
                _ => String::new(),
            };
            return Err(LedgerError::Busy { path: ledger.to_owned(), process });
        }
    }
    file.set_len(0).and_then(|()| writeln!(file, "{}", std::process::id())).map_err(failed)?;
    Ok(file)
}

impl Log {
    /// Writes after the last acknowledged line. This overwrites what a failed attempt may have left there.
    fn append(&mut self, text: &[u8]) -> io::Result<()> {
        self.file.set_len(self.end)?;
        self.file.seek(SeekFrom::Start(self.end))?;
        self.file.write_all(text)?;
        self.file.sync_data()?;
        self.end = self.end.saturating_add(u64::try_from(text.len()).unwrap_or(u64::MAX));
        Ok(())
    }
}

impl Orders {
    fn put(&mut self, Entry { order, request }: Entry) {
        if let Some(request) = request {
            self.requests.insert(request, order.number);
            self.ids.insert(order.id.clone(), order.number);
            for side in [&order.source, &order.destination] {
                self.swaps.insert(swap_key(side.chain(), &side.swap_id), order.number);
            }
        }
        self.by_number.insert(order.number, order);
    }

    fn find(&self, number: impl FnOnce(&Self) -> Option<&u64>) -> Option<Order> {
        self.by_number.get(number(self)?).cloned()
    }
}

fn swap_key(chain: &str, swap_id: &str) -> String {
    format!("{chain}/{}", swap_id.to_lowercase())
}

/// Returns the key by which a repeated request finds its order.
#[must_use]
pub fn request_key(source_owner: &str, nonce: &Value, hash: &str) -> String {
    format!("{}/{nonce}/{hash}", source_owner.to_lowercase())
}

/// Returns whether a word is an address of a party of the order, or one of its transactions.
fn has_word(order: &Order, word: &str, role: Role) -> bool {
    let is = |text: &str| !word.is_empty() && text.to_lowercase() == word.to_lowercase();
    let is_one = |texts: &[Option<&String>]| texts.iter().flatten().any(|text| is(text));
    let delegates = |side: &Side| is_one(&[side.delegate.as_ref(), side.shown_delegate.as_ref()]);
    let (source, destination) = (&order.source, &order.destination);
    let is_from = is(&source.owner) || is(&source.initiator) || delegates(source);
    let is_to = is(&destination.owner) || is(&destination.redeemer) || delegates(destination);
    let has_transaction = |side: &Side| {
        let seen = [&side.initiated, &side.redeemed, &side.refunded];
        let mut transactions = seen.into_iter().flatten().flat_map(|Seen { transaction, .. }| transaction.split(','));
        transactions.any(|transaction| is(transaction.split_once(':').map_or(transaction, |(id, _)| id)))
    };
    match role {
        Role::From => is_from,
        Role::To => is_to,
        Role::Any => {
            let is_solver = is(&source.redeemer) || is(&destination.initiator);
            is_from || is_to || is_solver || has_transaction(source) || has_transaction(destination)
        }
    }
}
