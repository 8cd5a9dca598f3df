//! The state directory: its version, its orders, the next index and the rescue phrase.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use std::{fmt, io};

use etcetera::BaseStrategy;
use zeroize::Zeroizing;

use crate::disk::{Disk, Files, Kind, LockGuard};
use crate::error::Error;
use crate::folder::{Folder, is_scratch};
use crate::order::OrderDir;
use crate::rescue::Phrase;

/// The version of the store's format that this library writes, and the newest that it opens.
pub const VERSION: u32 = 1;
/// The number of indices of a rescue phrase. Hardened indices are below 2^31.
pub const INDICES: u32 = 1 << 31;

pub(crate) const VERSION_FILE: &str = "version";
pub(crate) const INDEX_FILE: &str = "index";
pub(crate) const RESCUE_FILE: &str = "rescue";
pub(crate) const ORDERS: &str = "orders";

/// How long to wait for the store's own lock, which is held only for short operations.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// A directory with everything about the swaps of a user.
///
/// | entry | content |
/// |---|---|
/// | `version` | the store's version; written last when a store is created |
/// | `index` | the next index of the rescue phrase to hand out |
/// | `rescue` | the rescue phrase, if there is one |
/// | `lock` | locked while one of these files is written |
/// | `orders/<id>/` | one directory for each order, with its documents and its own lock |
///
/// Files are readable only by the user. The store is as safe as the user's account. Secrets that need more protection, such as a
/// wallet's keys, must not be stored here.
#[derive(Debug, Clone)]
pub struct Store {
    pub(crate) root: Folder,
}

impl Store {
    /// Returns the program's default directory for the store: `$XDG_DATA_HOME/countersign` or `~/.local/share/countersign` on
    /// Linux, `~/Library/Application Support/countersign` on macOS, `%LOCALAPPDATA%\countersign` on Windows.
    ///
    /// # Errors
    ///
    /// [`Error::NoHome`] if the home directory is not known.
    pub fn default_path() -> Result<PathBuf, Error> {
        let directories = etcetera::base_strategy::choose_native_strategy().map_err(|_| Error::NoHome)?;
        // Windows copies the roaming data directory between machines, and two copies of a store would hand out an index twice.
        let data = if cfg!(windows) { directories.cache_dir() } else { directories.data_dir() };
        Ok(data.join("countersign"))
    }

    /// Opens a store. A directory that does not exist or is empty becomes a new store.
    ///
    /// # Errors
    ///
    /// [`Error::NewerVersion`] or [`Error::NotAStore`], and nothing is written then; [`Error::Damaged`] if the version is malformed;
    /// [`Error::Busy`] if another process has been creating the store for ten seconds; [`Error::WrongKind`] or [`Error::Disk`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        Self::open_on(Arc::new(Files), path.as_ref())
    }

    /// Like [`open`](Self::open), on another [`Disk`], for tests.
    ///
    /// # Errors
    ///
    /// The errors of [`open`](Self::open).
    #[doc(hidden)]
    pub fn open_on(disk: Arc<dyn Disk>, path: &Path) -> Result<Self, Error> {
        let store = Self { root: root(disk, path)? };
        if !store.version_is_known()? {
            let _guard = store.prepare_new()?;
            // Another process may have created the store while this one waited for the lock.
            if !store.version_is_known()? {
                store.initialize()?;
            }
        }
        // The process that created the store may have been killed before it synced.
        store.root.sync()?;
        Ok(store)
    }

    /// Returns whether the directory is a store with a supported version; `false` if it is not a store yet.
    fn version_is_known(&self) -> Result<bool, Error> {
        let Some(actual) = self.number(VERSION_FILE)? else { return Ok(false) };
        if actual > VERSION {
            return Err(Error::NewerVersion { actual, max: VERSION });
        }
        Ok(true)
    }

    /// Creates the directory of a new store and locks it.
    fn prepare_new(&self) -> Result<LockGuard, Error> {
        create_all(&self.root)?;
        self.only_unfinished()?;
        self.root.lock(PATIENCE)
    }

    /// Checks that the directory contains nothing but what an interrupted [`initialize`](Self::initialize) leaves behind.
    fn only_unfinished(&self) -> Result<(), Error> {
        let strange = |name: &String| !(is_scratch(name) || name == INDEX_FILE || name == ORDERS);
        let mut name = self.root.list()?.into_iter().find(strange);
        // Orders without a version mean that a restore was interrupted or the version was deleted, so this is not a new store.
        if name.is_none() && self.root.has(ORDERS, Kind::Directory)? && !self.orders_folder().list()?.is_empty() {
            name = Some(ORDERS.to_owned());
        }
        match name {
            // Checked last: if another process has just created the store, it wrote the version before anything else that it adds.
            Some(name) if !self.root.has(VERSION_FILE, Kind::File)? => Err(Error::NotAStore { name }),
            _ => Ok(()),
        }
    }

    fn initialize(&self) -> Result<(), Error> {
        self.root.replace(INDEX_FILE, b"0\n")?;
        if !self.root.has(ORDERS, Kind::Directory)? {
            self.orders_folder().create()?;
        }
        self.finish_new()
    }

    /// Writes the version. It is written last, so that a store with a version is complete.
    pub(crate) fn finish_new(&self) -> Result<(), Error> {
        self.root.sync()?;
        self.root.replace(VERSION_FILE, format!("{VERSION}\n").as_bytes())
    }

    /// Creates the directory of an order, durably. `order_id` consists of 64 hex digits in any case.
    ///
    /// # Errors
    ///
    /// [`Error::OrderExists`] if the store already contains the order; [`Error::OrderId`] for text of another form; [`Error::Disk`].
    pub fn create(&self, order_id: &str) -> Result<OrderDir, Error> {
        let order = self.order(order_id)?;
        match order.folder.create() {
            Err(Error::Disk { source, .. }) if source.kind() == io::ErrorKind::AlreadyExists => {
                // The caller will rely on the existing directory, but its creation may have been interrupted before it synced.
                order.orders.sync()?;
                return Err(Error::OrderExists { order: order.id });
            }
            created => created?,
        }
        order.folder.sync()?;
        order.orders.sync()?;
        Ok(order)
    }

    /// Opens the directory of a stored order. `order_id` consists of 64 hex digits in any case.
    ///
    /// # Errors
    ///
    /// [`Error::OrderNotFound`] if the store does not contain the order; [`Error::OrderId`] for text of another form;
    /// [`Error::WrongKind`] or [`Error::Disk`].
    pub fn open_order(&self, order_id: &str) -> Result<OrderDir, Error> {
        let order = self.order(order_id)?;
        if order.orders.has(&order.id, Kind::Directory)? {
            return Ok(order);
        }
        Err(Error::OrderNotFound { order: order.id })
    }

    /// Returns the stored orders, sorted by id. An order that is not a directory or cannot be listed is an error in its place; the others are
    /// not affected.
    ///
    /// # Errors
    ///
    /// [`Error::Disk`] if the orders cannot be listed at all.
    pub fn orders(&self) -> Result<Vec<Result<OrderDir, Error>>, Error> {
        let names = self.orders_folder().list()?;
        let ids = names.iter().filter(|name| is_order_name(name));
        Ok(ids.map(|id| self.open_order(id).and_then(|order| order.documents().map(|_| order))).collect())
    }

    /// Returns the index that will be handed out next.
    ///
    /// # Errors
    ///
    /// [`Error::Damaged`] if the file is missing or not a valid number, because an index is never guessed; [`Error::WrongKind`],
    /// [`Error::TooLarge`] or [`Error::Disk`].
    pub fn next_index(&self) -> Result<u32, Error> {
        let next = self.number(INDEX_FILE)?.filter(|next| *next <= INDICES);
        next.ok_or_else(|| Error::Damaged { file: INDEX_FILE.to_owned(), reason: "the next index is missing or out of range" })
    }

    /// Hands out an index of the rescue phrase. It is durably marked as used before this returns, so no process ever hands it out again,
    /// even after a power failure. Not using an index costs nothing.
    ///
    /// # Errors
    ///
    /// [`Error::IndicesExhausted`]; [`Error::Busy`] if the store stays locked for ten seconds; the errors of
    /// [`next_index`](Self::next_index).
    pub fn take_index(&self) -> Result<u32, Error> {
        let _guard = self.root.lock(PATIENCE)?;
        let index = self.next_index()?;
        let next = index.checked_add(1).filter(|next| *next <= INDICES).ok_or(Error::IndicesExhausted)?;
        self.root.replace(INDEX_FILE, format!("{next}\n").as_bytes())?;
        Ok(index)
    }

    /// Takes the store's own lock, for an operation that must not run in two processes at once. Hold it only briefly, because handing out
    /// an index waits for it.
    ///
    /// # Errors
    ///
    /// [`Error::Busy`] if the store stays locked for ten seconds; [`Error::WrongKind`] or [`Error::Disk`].
    pub fn lock_store(&self) -> Result<LockedStore, Error> {
        Ok(LockedStore { _guard: self.root.lock(PATIENCE)? })
    }

    /// Marks every index below `next` as used, for a phrase that was used elsewhere before. Does nothing if they are marked already.
    ///
    /// # Errors
    ///
    /// [`Error::IndicesExhausted`] if `next` is larger than [`INDICES`]; otherwise the errors of [`take_index`](Self::take_index).
    pub fn skip_to_index(&self, next: u32) -> Result<(), Error> {
        if next > INDICES {
            return Err(Error::IndicesExhausted);
        }
        let _guard = self.root.lock(PATIENCE)?;
        if next > self.next_index()? {
            self.root.replace(INDEX_FILE, format!("{next}\n").as_bytes())?;
        }
        Ok(())
    }

    /// Reads the rescue phrase; `None` if the store does not have one yet.
    ///
    /// # Errors
    ///
    /// [`Error::Phrase`] or [`Error::Damaged`] if the file is not a valid phrase; [`Error::Disk`], [`Error::WrongKind`],
    /// [`Error::TooLarge`].
    pub fn phrase(&self) -> Result<Option<Phrase>, Error> {
        let Some(bytes) = self.root.read(RESCUE_FILE)? else { return Ok(None) };
        let damaged = Error::Damaged { file: RESCUE_FILE.to_owned(), reason: "the file is not UTF-8 text" };
        let text = std::str::from_utf8(&bytes).map_err(|_| damaged)?;
        Ok(Some(Phrase::parse(text)?))
    }

    /// Stores the rescue phrase durably. It cannot be replaced.
    ///
    /// For a phrase that was used before, also call [`skip_to_index`](Self::skip_to_index). Otherwise its indices are handed out again.
    ///
    /// # Errors
    ///
    /// [`Error::Exists`] if a phrase is stored already, even the same one; [`Error::Busy`] if the store stays locked for ten seconds;
    /// [`Error::Disk`].
    pub fn keep_phrase(&self, phrase: &Phrase) -> Result<(), Error> {
        let _guard = self.root.lock(PATIENCE)?;
        let words = phrase.words();
        let mut line = Zeroizing::new(Vec::with_capacity(words.len().saturating_add(1)));
        line.extend_from_slice(words.as_bytes());
        line.push(b'\n');
        self.root.create_new(RESCUE_FILE, &line)
    }

    pub(crate) fn orders_folder(&self) -> Folder {
        self.root.folder(ORDERS)
    }

    pub(crate) fn order(&self, order_id: &str) -> Result<OrderDir, Error> {
        let id = order_id_of(order_id)?;
        let orders = self.orders_folder();
        Ok(OrderDir { folder: orders.folder(&id), orders, id })
    }

    fn number(&self, name: &str) -> Result<Option<u32>, Error> {
        let Some(bytes) = self.root.read(name)? else { return Ok(None) };
        let number = bytes.strip_suffix(b"\n").and_then(parse_number);
        number.map(Some).ok_or_else(|| Error::Damaged { file: name.to_owned(), reason: "the file does not contain a valid number" })
    }
}

/// The store's own lock. It is held until this value is dropped or the process ends.
pub struct LockedStore {
    _guard: LockGuard,
}

impl fmt::Debug for LockedStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LockedStore(..)")
    }
}

/// Returns the root of a store as a folder with an absolute path, because the parent of a relative path may be missing and could not be
/// synced.
pub(crate) fn root(disk: Arc<dyn Disk>, path: &Path) -> Result<Folder, Error> {
    let path = std::path::absolute(path).map_err(Error::disk("read", path.display().to_string()))?;
    Ok(Folder { disk, path, label: String::new() })
}

/// Creates a directory and its missing ancestors, each durable before the next.
///
/// Existing ancestors are synced as well, because an interrupted call may have created them.
pub(crate) fn create_all(root: &Folder) -> Result<(), Error> {
    let paths: Vec<&Path> = root.path.ancestors().collect();
    for path in paths.into_iter().rev() {
        let Some(parent) = path.parent() else { continue };
        let shown = path.display().to_string();
        let exists = root.disk.kind(path).map_err(Error::disk("read", shown.clone()))?.is_some();
        if !exists {
            match root.disk.create_directory(path) {
                // Another process is creating the same store.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                created => created.map_err(Error::disk("create", shown.clone()))?,
            }
        }
        match root.disk.sync_directory(parent) {
            // Best effort for existing ancestors: the user may not be allowed to read them.
            Err(_) if exists => {}
            synced => synced.map_err(Error::disk("sync", shown))?,
        }
    }
    Ok(())
}

/// Parses a number that consists of decimal digits only.
pub(crate) fn parse_number(bytes: &[u8]) -> Option<u32> {
    let digits = std::str::from_utf8(bytes).ok().filter(|text| text.bytes().all(|digit| digit.is_ascii_digit()));
    digits?.parse().ok()
}

/// Returns whether an entry of `orders` has the name of an order.
pub(crate) fn is_order_name(name: &str) -> bool {
    order_id_of(name).is_ok_and(|id| id == name)
}

/// Returns the directory name of an order id: its digits in lower case, for file systems that ignore case.
pub(crate) fn order_id_of(text: &str) -> Result<String, Error> {
    if text.len() == 64 && text.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return Ok(text.to_ascii_lowercase());
    }
    Err(Error::OrderId)
}
