//! The directory of one order: its documents by name, and the lock that is required for writing.

use std::fmt;
use std::ops::Deref;
use std::time::Duration;

use zeroize::Zeroizing;

use crate::disk::{Kind, LockGuard};
use crate::error::Error;
use crate::folder::{Folder, Journal, is_document_name};

/// The name of the document that can be written once and never replaced.
const SECRET: &str = "secret";

/// The directory of one order, for reading. [`lock`](Self::lock) it to write.
#[derive(Debug, Clone)]
pub struct OrderDir {
    pub(crate) folder: Folder,
    pub(crate) orders: Folder,
    pub(crate) id: String,
}

impl OrderDir {
    /// Returns the order's id: 64 hex digits in lower case.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Takes the order's lock without waiting. It is held until the returned value is dropped or the process ends.
    ///
    /// # Errors
    ///
    /// [`Error::Busy`] if another process or thread holds it, [`Error::WrongKind`] if the lock is not a file, or [`Error::Disk`], also if
    /// the file system does not support locks.
    pub fn lock(&self) -> Result<LockedOrder, Error> {
        self.lock_within(Duration::ZERO)
    }

    /// Takes the order's lock like [`lock`](Self::lock), waiting for it up to `patience`.
    ///
    /// # Errors
    ///
    /// The errors of [`lock`](Self::lock).
    pub fn lock_within(&self, patience: Duration) -> Result<LockedOrder, Error> {
        let guard = self.folder.lock(patience)?;
        // A killed process may have renamed a file without syncing the directory. This process is about to read that file and act on
        // it, so it must survive a power failure.
        self.folder.sync()?;
        self.orders.sync()?;
        Ok(LockedOrder { order: self.clone(), _guard: guard })
    }

    /// Reads a document; `None` if it does not exist.
    ///
    /// # Errors
    ///
    /// [`Error::Name`], [`Error::WrongKind`], [`Error::TooLarge`] or [`Error::Disk`]. A document that cannot be read is never reported as
    /// missing.
    pub fn read(&self, name: &str) -> Result<Option<Zeroizing<Vec<u8>>>, Error> {
        self.folder.read(checked(name)?)
    }

    /// Returns whether a document exists.
    ///
    /// # Errors
    ///
    /// [`Error::Name`]; [`Error::WrongKind`] if the entry is not a file; [`Error::Disk`].
    pub fn exists(&self, name: &str) -> Result<bool, Error> {
        self.folder.has(checked(name)?, Kind::File)
    }

    /// Reads the entries of a journal. A journal that does not exist has no entries.
    ///
    /// # Errors
    ///
    /// The errors of [`read`](Self::read), with a limit of [`MAX_JOURNAL`](crate::MAX_JOURNAL). A torn line is not an error; it is listed
    /// in [`Journal::damaged_lines`].
    pub fn read_journal(&self, name: &str) -> Result<Journal, Error> {
        self.folder.journal(checked(name)?)
    }

    /// Returns the names of the documents and journals, sorted.
    ///
    /// # Errors
    ///
    /// [`Error::Disk`] if the directory cannot be listed.
    pub fn documents(&self) -> Result<Vec<String>, Error> {
        let mut names = self.folder.list()?;
        names.retain(|name| is_document_name(name));
        Ok(names)
    }
}

/// A locked order, which is required for writing. Dropping it releases the lock.
///
/// Every method that writes returns only when the bytes are durable. After an error a document has its old or its new content, and a
/// journal can end with a torn line.
pub struct LockedOrder {
    order: OrderDir,
    _guard: LockGuard,
}

impl LockedOrder {
    /// Writes a document, replacing an existing one of this name atomically.
    ///
    /// # Errors
    ///
    /// [`Error::Exists`] if the document `secret` exists, because it is never replaced; [`Error::Name`], [`Error::TooLarge`],
    /// [`Error::WrongKind`] or [`Error::Disk`].
    pub fn write(&self, name: &str, bytes: &[u8]) -> Result<(), Error> {
        if name == SECRET {
            return self.create_new(name, bytes);
        }
        self.folder.replace(checked(name)?, bytes)
    }

    /// Writes a document that must not exist yet, for example a request or a secret.
    ///
    /// # Errors
    ///
    /// [`Error::Exists`] if an entry of this name exists; [`Error::Name`], [`Error::TooLarge`] or [`Error::Disk`].
    pub fn create_new(&self, name: &str, bytes: &[u8]) -> Result<(), Error> {
        self.folder.create_new(checked(name)?, bytes)
    }

    /// Reads the entries of a journal like [`OrderDir::read_journal`]. The returned entries are durable, even if the process that appended
    /// them was killed before it synced, so it is safe to act on them.
    ///
    /// # Errors
    ///
    /// The errors of [`OrderDir::read_journal`].
    pub fn read_journal(&self, name: &str) -> Result<Journal, Error> {
        self.folder.durable_journal(checked(name)?)
    }

    /// Appends an entry to a journal: one JSON object, without a line feed. The first entry creates the journal.
    ///
    /// # Errors
    ///
    /// [`Error::Line`] if the entry is not one JSON object on one line; [`Error::TooLarge`] if the journal would exceed
    /// [`MAX_JOURNAL`](crate::MAX_JOURNAL); [`Error::Exists`] for the name `secret`; [`Error::Name`], [`Error::WrongKind`] or
    /// [`Error::Disk`].
    pub fn append(&self, name: &str, entry: &[u8]) -> Result<(), Error> {
        if name == SECRET {
            return Err(Error::Exists { file: self.folder.label(name) });
        }
        self.folder.append(checked(name)?, entry)
    }

    /// Replaces all entries of a journal atomically: after a crash or a power failure it has either its old or its new entries. The
    /// journal need not exist.
    ///
    /// # Errors
    ///
    /// The errors of [`append`](Self::append). The journal is then unchanged, unless the error is [`Error::Disk`].
    pub fn replace_lines(&self, name: &str, lines: &[impl AsRef<[u8]>]) -> Result<(), Error> {
        if name == SECRET {
            return Err(Error::Exists { file: self.folder.label(name) });
        }
        self.folder.replace_journal(checked(name)?, lines)
    }
}

impl Deref for LockedOrder {
    type Target = OrderDir;

    fn deref(&self) -> &OrderDir {
        &self.order
    }
}

impl fmt::Debug for LockedOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LockedOrder").field("id", &self.order.id).finish_non_exhaustive()
    }
}

pub(crate) fn checked(name: &str) -> Result<&str, Error> {
    if is_document_name(name) { Ok(name) } else { Err(Error::Name { name: name.to_owned() }) }
}
