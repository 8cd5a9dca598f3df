//! The state directory: its version, its orders, the next index and the rescue phrase.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use std::{fmt, io};

use etcetera::BaseStrategy;
use zeroize::Zeroizing;

use crate::disk::{Disk, Files, Kind, LockGuard};
use crate::error::Error;
use crate::folder::{Folder, MAX_FILE, TEMPORARY, is_scratch};
use crate::index::{INDEX_FILE, INDICES, KeyIndex, NextIndex, other_branch, parse_number};
use crate::order::{OrderDir, checked};
use crate::rescue::Phrase;

/// The version of the store's format that this library writes, and the newest that it opens.
pub const VERSION: u32 = 1;

pub(crate) const VERSION_FILE: &str = "version";
pub(crate) const RESCUE_FILE: &str = "rescue";
pub(crate) const CONTRACTS_FILE: &str = "contracts.json";
pub(crate) const ORDERS: &str = "orders";

/// How long to wait for the store's own lock, which is held only for short operations.
pub(crate) const LOCK_TIMEOUT: Duration = Duration::from_secs(10);

/// A directory with everything about the swaps of a user.
///
/// | entry | content |
/// |---|---|
/// | `version` | the store's version; written last when a store is created |
/// | `index` | the next index of the rescue phrase to hand out, its branch, and the place of this file |
/// | `rescue` | the rescue phrase, if there is one |
/// | `contracts.json` | what the caller knows about contracts, if anything |
/// | `lock` | locked while one of these files is written |
/// | `.host-lock` | locked by a host in another language as long as it has the store open, and shared by everything that takes another lock of the store |
/// | `orders/<id>/` | one directory for each order, with its documents and its own lock |
///
/// Files are readable only by the user. The store is as safe as the user's account. Secrets that need more protection, such as a
/// wallet's keys, must not be stored here.
///
/// # Copies
///
/// Every copy of a store continues in a [branch](crate::rescue#branches) of its own. [`take_index`](Self::take_index) recognizes a copy
/// by the place that the file `index` names:
///
/// | | recognized on Unix by | recognized on Windows by |
/// |---|---|---|
/// | a copy of the directory, also on another machine | the inode number and the time of creation of the directory and of `index` | the path and the time of creation of the directory |
/// | an older version of `index`, copied into the directory | the inode number and the time of creation of `index` | not recognized |
/// | a snapshot of the whole file system or of a virtual machine, or an image of a disk | not recognized | not recognized |
///
/// Moving the directory within its file system is not copying it, except on Windows. A branch too many does no harm. What is not
/// recognized can only be noticed by comparing a new secret hash with the orders that the service lists.
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
        // Windows copies the roaming data directory between machines, and the orders of two copies would drift apart.
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
        self.root.lock(LOCK_TIMEOUT)
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
        NextIndex::write(&self.root, KeyIndex { branch: 0, index: 0 })?;
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

    /// Creates the directory of an order without documents, like [`LockedStore::create_order`].
    ///
    /// # Errors
    ///
    /// [`Error::Busy`] if the store stays locked for ten seconds; otherwise the errors of [`LockedStore::create_order`].
    pub fn create(&self, order_id: &str) -> Result<OrderDir, Error> {
        self.lock_store()?.create_order(order_id, &[])
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

    /// Returns the stored orders, sorted by id. An order that is not a directory or cannot be listed is an error in its place; the others
    /// are not affected.
    ///
    /// # Errors
    ///
    /// [`Error::Disk`] if the orders cannot be listed at all.
    pub fn orders(&self) -> Result<Vec<Result<OrderDir, Error>>, Error> {
        let open = |id: &String| self.open_order(id).and_then(|order| order.documents().map(|_| order));
        Ok(self.order_ids()?.iter().map(open).collect())
    }

    /// Returns the directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.root.path
    }

    /// Returns the ids of the stored orders, sorted, also of those that cannot be read.
    ///
    /// # Errors
    ///
    /// [`Error::Disk`] if the orders cannot be listed at all.
    pub fn order_ids(&self) -> Result<Vec<String>, Error> {
        let mut names = self.orders_folder().list()?;
        names.retain(|name| is_order_name(name));
        Ok(names)
    }

    /// Returns the index that will be handed out next, unless the store turns out to be a copy then.
    ///
    /// # Errors
    ///
    /// [`Error::Damaged`] if the file is missing or not valid, because an index is never guessed; [`Error::WrongKind`],
    /// [`Error::TooLarge`] or [`Error::Disk`].
    pub fn next_index(&self) -> Result<KeyIndex, Error> {
        Ok(NextIndex::read(&self.root)?.next)
    }

    /// Hands out an index of the rescue phrase. It is durably marked as used before this returns, so no process ever hands it out again,
    /// even after a power failure. Not using an index costs nothing. A [copy](Self#copies) starts a branch of its own first.
    ///
    /// # Errors
    ///
    /// [`Error::IndicesExhausted`]; [`Error::Busy`] if the store stays locked for ten seconds; [`Error::Random`]; the errors of
    /// [`next_index`](Self::next_index).
    pub fn take_index(&self) -> Result<KeyIndex, Error> {
        let _guard = self.root.lock(LOCK_TIMEOUT)?;
        let kept = NextIndex::read(&self.root)?;
        let taken = match kept.is_in_place(&self.root)? {
            true => kept.next,
            false => KeyIndex { branch: other_branch(kept.next.branch)?, index: 0 },
        };
        let next = taken.index.checked_add(1).filter(|next| *next <= INDICES).ok_or(Error::IndicesExhausted)?;
        NextIndex::write(&self.root, KeyIndex { index: next, ..taken })?;
        Ok(taken)
    }

    /// Starts a random branch of the rescue phrase, in which the indices begin at 0. Call this before
    /// [`keep_phrase`](Self::keep_phrase) for a phrase that was used elsewhere before. Returns the branch.
    ///
    /// # Errors
    ///
    /// [`Error::Busy`] if the store stays locked for ten seconds; [`Error::Random`]; the errors of [`next_index`](Self::next_index).
    pub fn start_branch(&self) -> Result<u16, Error> {
        let _guard = self.root.lock(LOCK_TIMEOUT)?;
        let branch = other_branch(self.next_index()?.branch)?;
        NextIndex::write(&self.root, KeyIndex { branch, index: 0 })?;
        Ok(branch)
    }

    /// Takes the store's own lock, for an operation that must not run in two processes at once. Hold it only briefly, because handing out
    /// an index waits for it.
    ///
    /// # Errors
    ///
    /// [`Error::Busy`] if the store stays locked for ten seconds; [`Error::WrongKind`] or [`Error::Disk`].
    pub fn lock_store(&self) -> Result<LockedStore, Error> {
        Ok(LockedStore { _guard: self.root.lock(LOCK_TIMEOUT)?, store: self.clone() })
    }

    /// Reads what the caller stored about contracts with [`update_contracts`](Self::update_contracts); `None` if there is nothing.
    ///
    /// # Errors
    ///
    /// [`Error::WrongKind`], [`Error::TooLarge`] or [`Error::Disk`].
    pub fn contracts(&self) -> Result<Option<Zeroizing<Vec<u8>>>, Error> {
        self.root.read(CONTRACTS_FILE)
    }

    /// Replaces what is stored about contracts, while the store's own lock is held. `change` gets the current content and returns the new
    /// one; nothing is written if it returns `None`.
    ///
    /// # Errors
    ///
    /// [`Error::Busy`] if the store stays locked for ten seconds; the errors of [`contracts`](Self::contracts).
    pub fn update_contracts(&self, change: impl FnOnce(Option<&[u8]>) -> Option<Vec<u8>>) -> Result<(), Error> {
        let _guard = self.root.lock(LOCK_TIMEOUT)?;
        match change(self.contracts()?.as_deref().map(Vec::as_slice)) {
            Some(bytes) => self.root.replace(CONTRACTS_FILE, &bytes),
            None => Ok(()),
        }
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

    /// Returns the stored rescue phrase, or generates and stores one. The second value is whether this call generated it; show its words
    /// to the user then. If several processes need the first phrase at once, all of them get the same one.
    ///
    /// # Errors
    ///
    /// [`Error::Random`]; [`Error::Busy`] if the store stays locked for ten seconds; the errors of [`phrase`](Self::phrase).
    pub fn first_phrase(&self) -> Result<(Phrase, bool), Error> {
        let _guard = self.root.lock(LOCK_TIMEOUT)?;
        if let Some(kept) = self.phrase()? {
            return Ok((kept, false));
        }
        let phrase = Phrase::generate()?;
        self.write_phrase(&phrase)?;
        Ok((phrase, true))
    }

    /// Stores a given rescue phrase durably. It cannot be replaced.
    ///
    /// For a phrase that was used before, call [`start_branch`](Self::start_branch) first. Otherwise its indices are handed out again.
    ///
    /// # Errors
    ///
    /// [`Error::Exists`] if a phrase is stored already, even the same one; [`Error::Busy`] if the store stays locked for ten seconds;
    /// [`Error::Disk`].
    pub fn keep_phrase(&self, phrase: &Phrase) -> Result<(), Error> {
        let _guard = self.root.lock(LOCK_TIMEOUT)?;
        self.write_phrase(phrase)
    }

    fn write_phrase(&self, phrase: &Phrase) -> Result<(), Error> {
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
        let line = bytes.strip_suffix(b"\n").and_then(|line| std::str::from_utf8(line).ok());
        let number = line.and_then(parse_number);
        number.map(Some).ok_or_else(|| Error::Damaged { file: name.to_owned(), reason: "the file does not contain a valid number" })
    }
}

/// The store's own lock. It is held until this value is dropped or the process ends.
pub struct LockedStore {
    _guard: LockGuard,
    store: Store,
}

impl LockedStore {
    /// Creates the directory of an order with its first documents, durably and atomically: an interrupted call leaves no order.
    /// `order_id` consists of 64 hex digits in any case.
    ///
    /// # Errors
    ///
    /// [`Error::OrderExists`] if the store already contains the order; [`Error::OrderId`] for text of another form; [`Error::Name`],
    /// [`Error::TooLarge`] or [`Error::Disk`].
    pub fn create_order(&self, order_id: &str, documents: &[(&str, &[u8])]) -> Result<OrderDir, Error> {
        let order = self.store.order(order_id)?;
        let OrderDir { folder, orders, id } = &order;
        for (name, bytes) in documents {
            folder.check_len(checked(name)?, bytes.len(), MAX_FILE)?;
        }
        if orders.kind(id)?.is_some() {
            // The caller will rely on the existing directory, but its creation may have been interrupted before it synced.
            orders.sync()?;
            return Err(Error::OrderExists { order: order.id });
        }
        let unfinished = orders.empty_folder(&format!("{TEMPORARY}{id}"))?;
        for (name, bytes) in documents {
            orders.disk.write_new(&unfinished.path.join(name), bytes).map_err(Error::disk("write", folder.label(name)))?;
        }
        unfinished.sync()?;
        orders.disk.rename(&unfinished.path, &folder.path).map_err(Error::disk("create", orders.label(id)))?;
        orders.sync()?;
        Ok(order)
    }
}

impl fmt::Debug for LockedStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LockedStore(..)")
    }
}

/// Returns the root of a store as a folder with an absolute path, because the parent of a relative path may be missing and could not be
/// synced.
pub(crate) fn root(disk: Arc<dyn Disk>, path: &Path) -> Result<Folder, Error> {
    // A disk in memory has a root of its own, which Windows would put on a drive.
    let is_absolute = path.has_root();
    let path = if is_absolute {
        path.to_path_buf()
    } else {
        std::path::absolute(path).map_err(Error::disk("read", path.display().to_string()))?
    };
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
