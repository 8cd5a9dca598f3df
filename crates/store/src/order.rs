//! The directory of one order: documents by name, and the lock that writing needs.

use std::fmt;
use std::ops::Deref;
use std::time::Duration;

use zeroize::Zeroizing;

use crate::disk::{Kind, LockGuard};
use crate::error::Error;
use crate::folder::{Folder, Journal, is_document_name};

/// The document that is written once and never replaced, whatever the caller asks.
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

    /// Takes the order's lock. It is held until the returned value is dropped, or the process ends.
    ///
    /// # Errors
    ///
    /// [`Error::Busy`] if another process or thread holds it, [`Error::Disk`] if the file system has no locks.
    pub fn lock(&self) -> Result<LockedOrder, Error> {
        self.lock_within(Duration::ZERO)
    }

    /// Takes the order's lock like [`lock`](Self::lock), and waits for it up to `patience`.
    ///
    /// # Errors
    ///
    /// As [`lock`](Self::lock).
    pub fn lock_within(&self, patience: Duration) -> Result<LockedOrder, Error> {
        let guard = self.folder.lock(patience)?;
        // A process that was killed may have renamed a file and not synced the directory. What this process is about to read and
        // act on must outlive a power cut.
        self.folder.sync()?;
        self.orders.sync()?;
        Ok(LockedOrder { order: self.clone(), _guard: guard })
    }

    /// Reads a document. Returns `None` if it does not exist.
    ///
    /// # Errors
    ///
    /// [`Error::Name`], [`Error::WrongKind`], [`Error::TooLarge`] or [`Error::Disk`]. A document that cannot be read is never
    /// reported as absent.
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

    /// Reads the entries of a journal. A journal that does not exist has none.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read). A torn line is not an error: it is listed in [`Journal::damaged_lines`].
    pub fn read_journal(&self, name: &str) -> Result<Journal, Error> {
        self.folder.journal(checked(name)?)
    }

    /// Returns the names of the documents and journals, sorted. A new order has none: its creation may have been interrupted
    /// right after [`Store::create`](crate::Store::create).
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

/// An order whose lock is held: the only way to write. Dropping it releases the lock.
///
/// Every method that writes returns only when the bytes are durable. After an error the document has its old or its new content.
pub struct LockedOrder {
    order: OrderDir,
    _guard: LockGuard,
}

impl LockedOrder {
    /// Writes a document, or replaces the one of this name as a whole.
    ///
    /// # Errors
    ///
    /// [`Error::Exists`] for the document `secret`, which is only ever created; [`Error::Name`], [`Error::TooLarge`],
    /// [`Error::WrongKind`] or [`Error::Disk`].
    pub fn write(&self, name: &str, bytes: &[u8]) -> Result<(), Error> {
        if name == SECRET {
            return self.create_new(name, bytes);
        }
        self.folder.replace(checked(name)?, bytes)
    }

    /// Writes a document that must not exist: a request, a response, a secret.
    ///
    /// # Errors
    ///
    /// [`Error::Exists`]; else as [`write`](Self::write).
    pub fn create_new(&self, name: &str, bytes: &[u8]) -> Result<(), Error> {
        self.folder.create_new(checked(name)?, bytes)
    }

    /// Reads the entries of a journal like [`OrderDir::read_journal`]. What it returns is durable, even if the process that appended
    /// it was killed in between: it can be acted on.
    ///
    /// # Errors
    ///
    /// As [`OrderDir::read_journal`].
    pub fn read_journal(&self, name: &str) -> Result<Journal, Error> {
        self.folder.durable_journal(checked(name)?)
    }

    /// Appends an entry to a journal: one JSON object, without a line's end. The journal is created by its first entry.
    ///
    /// # Errors
    ///
    /// [`Error::Line`] if the entry is not one JSON object on one line; [`Error::TooLarge`] if the journal would outgrow
    /// [`MAX_FILE`](crate::MAX_FILE); [`Error::Exists`] for the document `secret`; else as [`write`](Self::write).
    pub fn append(&self, name: &str, entry: &[u8]) -> Result<(), Error> {
        if name == SECRET {
            return Err(Error::Exists { file: self.folder.label(name) });
        }
        self.folder.append(checked(name)?, entry)
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

fn checked(name: &str) -> Result<&str, Error> {
    if is_document_name(name) { Ok(name) } else { Err(Error::Name { name: name.to_owned() }) }
}
