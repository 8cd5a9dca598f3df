//! Encrypted backups: one file with the whole store, that is, the orders, the rescue phrase and what is known about contracts.
//!
//! # Format, version 1
//!
//! Numbers are big-endian.
//!
//! | bytes | field |
//! |---|---|
//! | 0..8 | `CSBACKUP` |
//! | 8..10 | version of this format: 1 |
//! | 10..14 | Argon2id: memory in KiB, at most 1 GiB |
//! | 14..18 | Argon2id: passes, at most 16 |
//! | 18..22 | Argon2id: lanes, at most 16 |
//! | 22..38 | Argon2id: salt |
//! | 38..62 | nonce |
//! | 62.. | the archive, encrypted with XChaCha20-Poly1305, with the 16-byte tag at the end; bytes 0..62 are authenticated as well |
//!
//! The key is the output of Argon2id (version 0x13, 32 bytes, no secret, no associated data) for the password's UTF-8 bytes. New
//! backups use the second recommended option of RFC 9106: 64 MiB, 3 passes, 4 lanes.
//!
//! The archive consists of the [store's version](crate::VERSION) (4 bytes) and entries in strictly ascending order of their paths. An
//! entry is the length of the path (2 bytes), the path, the length of the content (4 bytes) and the content. The paths are
//! `contracts.json`, `index` (not written any more, and ignored), `rescue`, `orders/<id>/` (an order, without content) and
//! `orders/<id>/<document>`. No other path is accepted.

mod archive;
mod container;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use zeroize::Zeroizing;

use crate::disk::{Disk, Files};
use crate::error::Error;
use crate::folder::{HOST_LOCK, LOCK, MAX_JOURNAL, is_document_name, is_scratch};
use crate::index::{KeyIndex, NextIndex, other_branch};
use crate::order::OrderDir;
use crate::rescue::Phrase;
use crate::store::{CONTRACTS_FILE, LOCK_TIMEOUT, RESCUE_FILE, Store, create_all, is_order_name, root};

use archive::Place;
pub use container::{Cost, MAX_BACKUP, MIN_PASSWORD};

/// A backup, with a list of what it does not contain.
#[derive(Debug)]
#[must_use]
pub struct Backup {
    /// The encrypted file.
    pub bytes: Vec<u8>,
    /// The entries that are missing: each path relative to the store, with the error if it could not be read, or with `None` if the file
    /// does not belong to the store.
    pub left_out: Vec<(String, Option<Error>)>,
}

/// An error of creating or restoring a backup.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BackupError {
    /// The password has fewer than [`MIN_PASSWORD`] bytes.
    #[error("the password is shorter than {MIN_PASSWORD} bytes")]
    PasswordTooShort,
    /// The password is wrong or the file was changed. The encryption cannot distinguish these cases.
    #[error("the password is wrong, or the backup is damaged")]
    WrongPasswordOrDamaged,
    /// The file does not begin like a backup, or is truncated.
    #[error("the file is not a backup of this program, or is truncated")]
    NotABackup,
    /// The file has a newer format.
    #[error("the backup has version {actual}; this program supports versions up to {max}")]
    NewerVersion {
        /// The file's version.
        actual: u32,
        /// The newest version that this library reads.
        max: u32,
    },
    /// Deriving the key would take more memory or time than for any backup of this library.
    #[error("the backup's Argon2 parameters are out of bounds: {memory} KiB, {passes} passes, {lanes} lanes")]
    Cost {
        /// Memory in KiB.
        memory: u32,
        /// Passes over the memory.
        passes: u32,
        /// Number of lanes.
        lanes: u32,
    },
    /// There is not enough memory to derive the key.
    #[error("not enough memory to derive the key")]
    OutOfMemory,
    /// The backup is larger than [`MAX_BACKUP`].
    #[error("the backup is larger than {MAX_BACKUP} bytes")]
    TooLarge,
    /// The password is right, but the content is not a valid archive.
    #[error("the content of the backup is invalid: {reason}")]
    Content {
        /// What is wrong.
        reason: &'static str,
    },
    /// The directory to restore into is not empty.
    #[error("the directory to restore into is not empty: it contains {name:?}")]
    NotEmpty {
        /// One of its entries.
        name: String,
    },
    /// The store could not be read or written.
    #[error(transparent)]
    Store(#[from] Error),
}

/// Encrypts the whole store with a password. The password's bytes are used as they are, without normalization.
///
/// Each order is read while its lock is held, so its documents are consistent. Entries that cannot be read are listed in
/// [`Backup::left_out`]; everything else is backed up.
///
/// # Errors
///
/// [`BackupError::PasswordTooShort`], [`BackupError::TooLarge`] or [`BackupError::OutOfMemory`]; [`BackupError::Store`] with
/// [`Error::Busy`] if an order stays locked for ten seconds, or with any other [`Error`] about the phrase, the list of orders or the
/// random numbers.
pub fn backup(store: &Store, password: &str) -> Result<Backup, BackupError> {
    backup_at(store, password, Cost::default())
}

/// Like [`backup`], with other Argon2id parameters, for tests.
///
/// # Errors
///
/// The errors of [`backup`], and [`BackupError::Cost`].
#[doc(hidden)]
pub fn backup_at(store: &Store, password: &str, cost: Cost) -> Result<Backup, BackupError> {
    container::check_new(password, cost)?;
    let mut entries = BTreeMap::new();
    let mut left_out = Vec::new();
    for order in store.orders()? {
        match order.and_then(|order| add_order(&order, &mut entries, &mut left_out)) {
            Ok(()) => {}
            Err(busy @ Error::Busy { .. }) => return Err(busy.into()),
            Err(error) => left_out.push((file_of(&error), Some(error))),
        }
    }
    for name in store.orders_folder().list()? {
        if !is_order_name(&name) && !is_scratch(&name) {
            left_out.push((store.orders_folder().label(&name), None));
        }
    }
    if let Some(phrase) = store.phrase()? {
        entries.insert(RESCUE_FILE.to_owned(), Zeroizing::new(phrase.words().as_bytes().to_vec()));
    }
    match store.contracts() {
        Ok(contracts) => drop(contracts.map(|bytes| entries.insert(CONTRACTS_FILE.to_owned(), bytes))),
        Err(error) => left_out.push((CONTRACTS_FILE.to_owned(), Some(error))),
    }
    Ok(Backup { bytes: container::seal(&archive::write(&entries)?, password, cost)?, left_out })
}

fn add_order(
    order: &OrderDir,
    entries: &mut BTreeMap<String, Zeroizing<Vec<u8>>>,
    left_out: &mut Vec<(String, Option<Error>)>,
) -> Result<(), Error> {
    let locked = order.lock_within(LOCK_TIMEOUT)?;
    entries.insert(locked.folder.label.clone(), Zeroizing::default());
    for name in locked.folder.list()? {
        let path = locked.folder.label(&name);
        if !is_document_name(&name) {
            if !is_scratch(&name) {
                left_out.push((path, None));
            }
            continue;
        }
        // A document can be a journal, whose limit is higher.
        match locked.folder.read_within(&name, MAX_JOURNAL) {
            Ok(Some(bytes)) => {
                entries.insert(path, bytes);
            }
            Ok(None) => {}
            Err(error) => left_out.push((path, Some(error))),
        }
    }
    Ok(())
}

fn file_of(error: &Error) -> String {
    match error {
        Error::Disk { file, .. } | Error::WrongKind { file, .. } => file.clone(),
        other => other.to_string(),
    }
}

/// Decrypts a backup and writes its store into a new or empty directory.
///
/// Everything is checked before anything is written. The store's version is written last, so an interrupted restore leaves a directory
/// that does not open: delete it and restore again. The restored store starts a [branch](crate::rescue#branches) of its own, so that it
/// hands out other secrets than the original store and than any other restored one.
///
/// An order may have advanced after the backup was made, so read its state from the chains and the service before acting on it.
///
/// # Errors
///
/// Any [`BackupError`] except [`BackupError::PasswordTooShort`]. [`BackupError::NotEmpty`] if the directory is not empty.
pub fn restore(bytes: &[u8], password: &str, path: impl AsRef<Path>) -> Result<Store, BackupError> {
    restore_on(Arc::new(Files), bytes, password, path.as_ref())
}

/// Like [`restore`], onto another [`Disk`], for tests.
///
/// # Errors
///
/// The errors of [`restore`].
#[doc(hidden)]
pub fn restore_on(disk: Arc<dyn Disk>, bytes: &[u8], password: &str, path: &Path) -> Result<Store, BackupError> {
    let archive = container::open(bytes, password)?;
    let entries = archive::read(&archive)?;
    if let Some(words) = entries.get(&Place::Rescue) {
        let text = std::str::from_utf8(words).map_err(|_| BackupError::Content { reason: "the rescue phrase is not text" })?;
        Phrase::parse(text).map_err(Error::Phrase)?;
    }

    let store = Store { root: root(disk, path)? };
    create_all(&store.root)?;
    // Checked before the lock file is created, and again under the lock in case another restore came first.
    check_empty(&store)?;
    let _guard = store.root.lock(LOCK_TIMEOUT)?;
    check_empty(&store)?;
    store.orders_folder().create()?;
    for (place, bytes) in &entries {
        match place {
            Place::Index => {}
            Place::Contracts => store.root.create_new(CONTRACTS_FILE, bytes)?,
            Place::Rescue => store.root.create_new(RESCUE_FILE, bytes)?,
            Place::Order(id) => store.order(id)?.folder.create()?,
            Place::Document(id, name) => store.order(id)?.folder.restore(name, bytes)?,
        }
    }
    store.orders_folder().sync()?;
    NextIndex::write(&store.root, KeyIndex { branch: other_branch(0)?, index: 0 })?;
    store.finish_new()?;
    Ok(store)
}

fn check_empty(store: &Store) -> Result<(), BackupError> {
    match store.root.list()?.into_iter().find(|name| name != LOCK && name != HOST_LOCK) {
        Some(name) => Err(BackupError::NotEmpty { name }),
        None => Ok(()),
    }
}
