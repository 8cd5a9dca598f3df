//! Errors of the store, and what the user can do about them.

use std::io;

use crate::disk::Kind;
use crate::rescue::PhraseError;

/// An error of reading or writing a store.
///
/// [`Display`](std::fmt::Display) says what is wrong and names the file relative to the store. [`source`](std::error::Error::source)
/// is the cause, for instance the operating system's error. [`advice`](Self::advice) says what the user can do next.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The text is not 64 hex digits.
    #[error("invalid order id, expected 64 hex digits")]
    OrderId,
    /// The store already has an order with this id.
    #[error("order {order} is already in the store")]
    OrderExists {
        /// The order's id.
        order: String,
    },
    /// The store does not have an order with this id.
    #[error("order {order} is not in the store")]
    OrderNotFound {
        /// The order's id.
        order: String,
    },
    /// Another process or thread holds the lock.
    #[error("{file} is locked by another process or thread")]
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
    /// The file is larger than [`MAX_FILE`](crate::MAX_FILE), or the journal than [`MAX_JOURNAL`](crate::MAX_JOURNAL).
    #[error("{file} is larger than {limit} bytes")]
    TooLarge {
        /// The document.
        file: String,
        /// The limit in bytes.
        limit: usize,
    },
    /// The entry has an unexpected kind, for instance a directory in place of a file. Symbolic links are not followed.
    #[error("{file} is {actual}, expected {expected}")]
    WrongKind {
        /// The entry.
        file: String,
        /// The expected kind.
        expected: Kind,
        /// The actual kind.
        actual: Kind,
    },
    /// A file that the store itself needs is malformed or missing.
    #[error("{file}: {reason}")]
    Damaged {
        /// The file.
        file: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The text is not one JSON object on one line.
    #[error("{file}: a journal entry must be one JSON object on one line")]
    Line {
        /// The journal.
        file: String,
    },
    /// A newer version of this library wrote the store.
    #[error("the store has version {actual}; this program supports versions up to {max}")]
    NewerVersion {
        /// The store's version.
        actual: u32,
        /// The newest version that this library supports.
        max: u32,
    },
    /// The directory contains files and is not a store.
    #[error("the directory is neither a store nor empty: it contains {name:?}")]
    NotAStore {
        /// One of the entries.
        name: String,
    },
    /// All 2^31 indices of the rescue phrase are used.
    #[error("all indices of the rescue phrase are used")]
    IndicesExhausted,
    /// The home directory of the user is not known.
    #[error("the user has no home directory")]
    NoHome,
    /// The stored or given rescue phrase is invalid.
    #[error("the rescue phrase is invalid")]
    Phrase(#[from] PhraseError),
    /// The operating system returned no random numbers.
    #[error("the operating system returned no random numbers")]
    Random(#[source] getrandom::Error),
    /// The disk failed. After a failed write a document has its old or its new content, and a journal can end with a torn line. The write
    /// can be repeated.
    #[error("cannot {action} {file}")]
    Disk {
        /// The operation that failed: `read`, `write`, `list`, `create`, `lock` or `sync`.
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
            Self::OrderExists { .. } => "do not pay the new order, because the service repeated an id; the stored order is unchanged",
            Self::OrderNotFound { .. } => "check the id and the state directory, or restore a backup",
            Self::Busy { .. } => "wait until the other process ends, then try again",
            Self::Exists { .. } => "the existing document is unchanged; continue with it",
            Self::TooLarge { .. } | Self::WrongKind { .. } => {
                "move the entry away and restore it from a backup; other documents are not affected"
            }
            Self::Damaged { .. } | Self::Phrase(_) => {
                "restore a backup into a new directory; orders and documents that can be read are not affected"
            }
            Self::NewerVersion { .. } => "update this program; nothing was written",
            Self::NotAStore { .. } => {
                "choose an empty directory or that of a store; if a restore into this directory was interrupted, delete it and restore again"
            }
            Self::IndicesExhausted => "finish the open orders, then create a new store with a new phrase",
            Self::NoHome => "specify the directory of the store",
            Self::Random(_) => "try again; nothing was written",
            Self::Disk { .. } => "check the disk's free space and permissions, then try again; earlier writes are not affected",
        }
    }

    pub(crate) fn disk(action: &'static str, file: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let file = file.into();
        move |source| Self::Disk { action, file, source }
    }
}
