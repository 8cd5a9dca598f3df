//! One encrypted file with the whole store: orders, rescue phrase, next index.
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
//! | 62.. | XChaCha20-Poly1305 of the archive, 16 bytes of tag at the end; bytes 0..62 are authenticated as well |
//!
//! The key is Argon2id (version 0x13, 32 bytes, no secret, no associated data) of the password's UTF-8 bytes. New backups take
//! RFC 9106's second recommendation: 64 MiB, 3 passes, 4 lanes.
//!
//! The archive is the [store's version](crate::VERSION) (4 bytes), then entries until its end, in ascending order of their
//! paths: length of the path (2 bytes), path, length of the content (4 bytes), content. The paths are `index`, `rescue`,
//! `orders/<id>/` (an order, without content) and `orders/<id>/<document>`. Nothing else is accepted.

mod archive;
mod container;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use zeroize::Zeroizing;

use crate::disk::{Disk, Files};
use crate::error::Error;
use crate::folder::{LOCK, is_document_name, is_scratch};
use crate::order::OrderDir;
use crate::rescue::Phrase;
use crate::store::{INDEX_FILE, INDICES, PATIENCE, RESCUE_FILE, Store, create_all, is_order_name, parse_number, root};

use archive::Place;
pub use container::{Cost, MAX_BACKUP, MIN_PASSWORD};

/// How many indices a restored store skips.
///
/// The original store may have handed out more indices after the backup was made. If one of them were used again, two swaps would
/// share a secret, and redeeming one would give away the other. A search for the orders of a phrase has to look more than this
/// many indices past the last one that it found.
pub const RESTORE_SKIP: u32 = 1000;

/// A backup, and a list of what it lacks.
#[derive(Debug)]
#[must_use]
pub struct Backup {
    /// The encrypted file.
    pub bytes: Vec<u8>,
    /// What is missing: the path relative to the store, with the error if it could not be read, or `None` if the file does not
    /// belong to the store.
    pub left_out: Vec<(String, Option<Error>)>,
}

/// Why a backup could not be made or restored.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BackupError {
    /// The password has fewer than [`MIN_PASSWORD`] bytes.
    #[error("the password is shorter than {MIN_PASSWORD} bytes")]
    PasswordTooShort,
    /// The password is wrong, or the file was changed: the encryption cannot tell these apart.
    #[error("the password is wrong, or the backup is damaged")]
    WrongPasswordOrDamaged,
    /// The file does not begin as a backup does, or ends too early.
    #[error("not a backup of this program, or cut off")]
    NotABackup,
    /// The file has a newer format.
    #[error("the backup has version {actual}, this program knows versions up to {max}")]
    NewerVersion {
        /// The file's version.
        actual: u32,
        /// The newest version that this library reads.
        max: u32,
    },
    /// Deriving the key would take more memory or time than any backup of ours does.
    #[error("the backup asks for {memory} KiB and {passes} passes in {lanes} lanes, which is out of bounds")]
    Cost {
        /// Memory in KiB.
        memory: u32,
        /// Passes over the memory.
        passes: u32,
        /// Lanes.
        lanes: u32,
    },
    /// There is not enough memory to derive the key.
    #[error("not enough memory to derive the key")]
    OutOfMemory,
    /// The backup is larger than [`MAX_BACKUP`].
    #[error("the backup is larger than {MAX_BACKUP} bytes")]
    TooLarge,
    /// The password is right, but the content does not have its format.
    #[error("the content of the backup is not valid: {reason}")]
    Content {
        /// What is wrong.
        reason: &'static str,
    },
    /// The directory to restore into is not empty.
    #[error("the directory to restore into is not empty: it holds {name:?}")]
    NotEmpty {
        /// One of its entries.
        name: String,
    },
    /// The store could not be read or written.
    #[error(transparent)]
    Store(#[from] Error),
}

/// Encrypts the whole store with a password, which is used byte for byte.
///
/// Each order is read while its lock is held, so that its documents belong together. The next index is read last, so that it is
/// beyond every index that the orders use. What cannot be read is named in [`Backup::left_out`], and everything else is backed up.
///
/// # Errors
///
/// [`BackupError::PasswordTooShort`]; [`BackupError::TooLarge`]; [`Error::Busy`] if an order stays locked for ten seconds; any
/// other [`Error`] about the phrase, the index or the list of orders.
pub fn backup(store: &Store, password: &str) -> Result<Backup, BackupError> {
    backup_at(store, password, Cost::default())
}

/// Like [`backup`], with other parameters of Argon2id, for tests.
///
/// # Errors
///
/// As [`backup`], and [`BackupError::Cost`].
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
        if !is_order_name(&name) {
            left_out.push((store.orders_folder().label(&name), None));
        }
    }
    if let Some(phrase) = store.phrase()? {
        entries.insert(RESCUE_FILE.to_owned(), Zeroizing::new(phrase.words().as_bytes().to_vec()));
    }
    entries.insert(INDEX_FILE.to_owned(), Zeroizing::new(store.next_index()?.to_string().into_bytes()));
    Ok(Backup { bytes: container::seal(&archive::write(&entries)?, password, cost)?, left_out })
}

fn add_order(
    order: &OrderDir,
    entries: &mut BTreeMap<String, Zeroizing<Vec<u8>>>,
    left_out: &mut Vec<(String, Option<Error>)>,
) -> Result<(), Error> {
    let locked = order.lock_within(PATIENCE)?;
    entries.insert(locked.folder.label.clone(), Zeroizing::default());
    for name in locked.folder.list()? {
        let path = locked.folder.label(&name);
        if !is_document_name(&name) {
            if !is_scratch(&name) {
                left_out.push((path, None));
            }
            continue;
        }
        match locked.read(&name) {
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
/// Everything is checked before anything is written. The store's version is written last: a restore that was interrupted leaves
/// a directory that does not open, to be deleted and restored again. The next index is [`RESTORE_SKIP`] beyond the backup's.
///
/// Use only one of the two stores from then on. An order may have advanced after the backup was made: read its state from the
/// chains and the service before acting on it.
///
/// # Errors
///
/// [`BackupError`].
pub fn restore(bytes: &[u8], password: &str, path: impl AsRef<Path>) -> Result<Store, BackupError> {
    restore_on(Arc::new(Files), bytes, password, path.as_ref())
}

/// Restores onto another [`Disk`], for tests.
///
/// # Errors
///
/// As [`restore`].
#[doc(hidden)]
pub fn restore_on(disk: Arc<dyn Disk>, bytes: &[u8], password: &str, path: &Path) -> Result<Store, BackupError> {
    let archive = container::open(bytes, password)?;
    let entries = archive::read(&archive)?;
    let next = next_index(&entries)?;
    if let Some(words) = entries.get(&Place::Rescue) {
        let text = std::str::from_utf8(words).map_err(|_| BackupError::Content { reason: "the rescue phrase is not text" })?;
        Phrase::parse(text).map_err(Error::Phrase)?;
    }

    let store = Store { root: root(disk, path)? };
    create_all(&store.root)?;
    // Checked before the lock file is written into a directory that is not empty, and again in case another restore came first.
    check_empty(&store)?;
    let _guard = store.root.lock(PATIENCE)?;
    check_empty(&store)?;
    store.orders_folder().create()?;
    for (place, bytes) in &entries {
        match place {
            Place::Index => store.root.create_new(INDEX_FILE, format!("{next}\n").as_bytes())?,
            Place::Rescue => store.root.create_new(RESCUE_FILE, bytes)?,
            Place::Order(id) => {
                store.create(id)?;
            }
            Place::Document(id, name) => store.order(id)?.folder.create_new(name, bytes)?,
        }
    }
    store.finish_new()?;
    Ok(store)
}

fn check_empty(store: &Store) -> Result<(), BackupError> {
    match store.root.list()?.into_iter().find(|name| name != LOCK) {
        Some(name) => Err(BackupError::NotEmpty { name }),
        None => Ok(()),
    }
}

fn next_index(entries: &BTreeMap<Place<'_>, &[u8]>) -> Result<u32, BackupError> {
    let next = entries
        .get(&Place::Index)
        .and_then(|bytes| parse_number(bytes))
        .filter(|next| *next <= INDICES)
        .ok_or(BackupError::Content { reason: "the next index is missing or out of range" })?;
    Ok(next.saturating_add(RESTORE_SKIP).min(INDICES))
}
