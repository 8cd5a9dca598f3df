//! Why reading or writing a store failed, and what the user can do next.

use std::io;

use crate::disk::Kind;
use crate::rescue::PhraseError;

/// Why reading or writing a store failed.
///
/// [`Display`](std::fmt::Display) says what is wrong and names the file relative to the store. [`source`](std::error::Error::source)
/// is the operating system's error. [`advice`](Self::advice) says what the user can do next.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The text is not 64 hex digits.
    #[error("an order id has 64 hex digits")]
    OrderId,
    /// The store already has an order with this id.
    #[error("order {order} is already kept")]
    OrderExists {
        /// The order's id.
        order: String,
    },
    /// The store does not have an order with this id.
    #[error("order {order} is not kept in this store")]
    OrderNotFound {
        /// The order's id.
        order: String,
    },
    /// Another process or thread holds the lock.
    #[error("{file} is held by another process or thread")]
    Busy {
        /// The lock file.
        file: String,
    },
    /// The name cannot be used for a document.
    #[error("invalid document name {name:?}")]
    Name {
        /// The name.
        name: String,
    },
    /// The document exists and is never overwritten.
    #[error("{file} already exists and is never overwritten")]
    Exists {
        /// The document.
        file: String,
    },
    /// The file is larger than [`MAX_FILE`](crate::MAX_FILE).
    #[error("{file} is larger than {limit} bytes")]
    TooLarge {
        /// The document.
        file: String,
        /// The limit in bytes.
        limit: usize,
    },
    /// The entry is of another kind than expected, for instance a directory instead of a file. Symbolic links are not followed.
    #[error("{file} is {actual}, expected {expected}")]
    WrongKind {
        /// The name.
        file: String,
        /// The expected kind.
        expected: Kind,
        /// The actual kind.
        actual: Kind,
    },
    /// A file of the store's own does not have its format, or is missing.
    #[error("{file}: {reason}")]
    Damaged {
        /// The file.
        file: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The text is not one JSON object on one line.
    #[error("{file}: a journal entry is one JSON object on one line")]
    Line {
        /// The journal.
        file: String,
    },
    /// A newer version of this library wrote the store.
    #[error("the store has version {actual}, this program knows versions up to {max}")]
    NewerVersion {
        /// The store's version.
        actual: u32,
        /// The newest version that this library knows.
        max: u32,
    },
    /// The directory holds files and is not a store.
    #[error("the directory is not a store, and not empty: it holds {name:?}")]
    NotAStore {
        /// One of the entries.
        name: String,
    },
    /// All 2^31 indices are used.
    #[error("all indices of the rescue phrase are used")]
    IndicesExhausted,
    /// The user has no home directory.
    #[error("the user has no home directory")]
    NoHome,
    /// The rescue phrase, stored or given, is not valid.
    #[error("the rescue phrase is not valid")]
    Phrase(#[from] PhraseError),
    /// The operating system returned no random numbers.
    #[error("no random numbers")]
    Random(#[source] getrandom::Error),
    /// The disk failed. After a failed write the file has its old or its new content, and the write can be repeated.
    #[error("cannot {action} {file}")]
    Disk {
        /// What failed: `read`, `write`, `list`, `create`, `lock` or `sync`.
        action: &'static str,
        /// The file or directory.
        file: String,
        /// The operating system's error.
        source: io::Error,
    },
}

impl Error {
    /// Returns what the user can do next.
    #[must_use]
    pub fn advice(&self) -> &'static str {
        match self {
            Self::OrderId | Self::Name { .. } | Self::Line { .. } => "nothing was written; correct the input",
            Self::OrderExists { .. } => "do not pay the new order: the service repeated an id; the kept order is unchanged",
            Self::OrderNotFound { .. } => "check the id and the state directory, or restore a backup",
            Self::Busy { .. } => "wait until the other process ends, then try again",
            Self::Exists { .. } => "the kept document is unchanged; go on with it",
            Self::TooLarge { .. } | Self::WrongKind { .. } => {
                "move the entry away and restore it from a backup; the other documents of the store are not affected"
            }
            Self::Damaged { .. } | Self::Phrase(_) => {
                "restore a backup into a new directory; orders and documents that can be read are not affected"
            }
            Self::NewerVersion { .. } => "update this program; nothing was written",
            Self::NotAStore { .. } => {
                "name an empty directory or the store's own; if a restore into this one was interrupted, delete it and restore again"
            }
            Self::IndicesExhausted => "finish the open orders, then begin a new store with a new phrase",
            Self::NoHome => "name a directory",
            Self::Random(_) => "try again; nothing was written",
            Self::Disk { .. } => "check space and permissions of the disk, then try again; what was written before is kept",
        }
    }

    pub(crate) fn disk(action: &'static str, file: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let file = file.into();
        move |source| Self::Disk { action, file, source }
    }
}
