//! One directory of the store. Its files are written so that a power failure leaves the old or the new content, never a mixture.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::de::IgnoredAny;
use zeroize::Zeroizing;

use crate::disk::{Disk, Kind, LockGuard};
use crate::error::Error;

/// The largest document, in bytes.
pub const MAX_FILE: usize = 4 << 20;
/// The largest journal, in bytes. It is larger than a document, because a journal that cannot be read or extended ends its order.
pub const MAX_JOURNAL: usize = 64 << 20;

/// The name of a directory's lock file.
pub(crate) const LOCK: &str = "lock";
/// The prefix of what hosts in other languages keep for themselves in a store, which is no part of it.
const HOST: &str = ".host-";
/// The lock of a host in another language that has the store open, and rewrites its documents from memory. Nothing is changed meanwhile.
pub(crate) const HOST_LOCK: &str = ".host-lock";
/// The prefix of temporary files. No document name begins with it.
pub(crate) const TEMPORARY: &str = ".new-";
/// The pause between two attempts to take a lock.
const LOCK_PAUSE: Duration = Duration::from_millis(5);

/// The entries of a journal.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Journal {
    /// The entries, oldest first: each is one JSON object, without a line feed.
    pub entries: Vec<Zeroizing<Vec<u8>>>,
    /// The numbers of the lines that are not JSON objects, counted from 1. Each is an append that a crash or a full disk interrupted
    /// before it returned. The entries before and after it are complete.
    pub damaged_lines: Vec<usize>,
}

impl Journal {
    fn parse(bytes: &[u8]) -> Self {
        let mut journal = Self::default();
        let lines = bytes.strip_suffix(b"\n").unwrap_or(bytes).split(|byte| *byte == b'\n');
        for (line, number) in lines.zip(1_usize..) {
            if is_json_object(line) {
                journal.entries.push(Zeroizing::new(line.to_vec()));
            } else if !bytes.is_empty() {
                journal.damaged_lines.push(number);
            }
        }
        journal
    }
}

/// Returns whether a line is a complete JSON object. Its line feed is not proof enough, because after an interrupted write a file system
/// may keep the new length and fill a part with zeros.
fn is_json_object(line: &[u8]) -> bool {
    line.first() == Some(&b'{') && serde_json::from_slice::<IgnoredAny>(line).is_ok()
}

/// A directory of the store.
#[derive(Debug, Clone)]
pub(crate) struct Folder {
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) path: PathBuf,
    /// The path relative to the store, for messages: empty for the store itself, otherwise with a slash at the end.
    pub(crate) label: String,
}

impl Folder {
    pub(crate) fn folder(&self, name: &str) -> Self {
        Self { disk: Arc::clone(&self.disk), path: self.path.join(name), label: format!("{}{name}/", self.label) }
    }

    pub(crate) fn label(&self, name: &str) -> String {
        format!("{}{name}", self.label)
    }

    fn own_label(&self) -> String {
        match self.label.strip_suffix('/') {
            Some(label) => label.to_owned(),
            None => self.path.display().to_string(),
        }
    }

    pub(crate) fn kind(&self, name: &str) -> Result<Option<Kind>, Error> {
        self.disk.kind(&self.path.join(name)).map_err(Error::disk("read", self.label(name)))
    }

    /// Returns whether an entry exists. An entry of another kind is an error.
    pub(crate) fn has(&self, name: &str, expected: Kind) -> Result<bool, Error> {
        match self.kind(name)? {
            None => Ok(false),
            Some(actual) if actual == expected => Ok(true),
            Some(actual) => Err(Error::WrongKind { file: self.label(name), expected, actual }),
        }
    }

    /// Returns the names in the directory, sorted. A name that is not Unicode contains replacement characters.
    pub(crate) fn list(&self) -> Result<Vec<String>, Error> {
        let names = self.disk.list(&self.path).map_err(Error::disk("list", self.own_label()))?;
        let mut names: Vec<String> = names.iter().map(|name| name.to_string_lossy().into_owned()).collect();
        names.sort_unstable();
        Ok(names)
    }

    /// Returns an empty directory with a temporary name. What an interrupted attempt left there is removed; nothing relies on it.
    pub(crate) fn empty_folder(&self, name: &str) -> Result<Self, Error> {
        let folder = self.folder(name);
        if !self.has(name, Kind::Directory)? {
            folder.create()?;
        }
        for entry in folder.list()? {
            self.disk.remove(&folder.path.join(&entry)).map_err(Error::disk("write", folder.label(&entry)))?;
        }
        Ok(folder)
    }

    pub(crate) fn create(&self) -> Result<(), Error> {
        self.disk.create_directory(&self.path).map_err(Error::disk("create", self.own_label()))
    }

    pub(crate) fn sync(&self) -> Result<(), Error> {
        self.disk.sync_directory(&self.path).map_err(Error::disk("sync", self.own_label()))
    }

    /// Takes the directory's lock, waiting for it up to `patience`, and keeps hosts in other languages from opening the store meanwhile.
    pub(crate) fn lock(&self, patience: Duration) -> Result<LockGuard, Error> {
        self.has(LOCK, Kind::File)?;
        let path = self.path.join(LOCK);
        // The store's own directory is as far up as the label has names.
        let root = self.path.ancestors().nth(self.label.matches('/').count()).unwrap_or(&self.path);
        let mut begun = None;
        loop {
            let mut held_by = self.label(LOCK);
            if let Some(guard) = self.disk.lock(&path).map_err(Error::disk("lock", self.label(LOCK)))? {
                match self.disk.lock_shared(&root.join(HOST_LOCK)).map_err(Error::disk("lock", HOST_LOCK))? {
                    Some(shared) => return Ok(Box::new((guard, shared))),
                    None => held_by = HOST_LOCK.to_owned(),
                }
            }
            // Only who waits needs a clock, which WebAssembly does not have.
            if patience.is_zero() || begun.get_or_insert_with(Instant::now).elapsed() >= patience {
                return Err(Error::Busy { file: held_by });
            }
            std::thread::sleep(LOCK_PAUSE);
        }
    }

    pub(crate) fn read(&self, name: &str) -> Result<Option<Zeroizing<Vec<u8>>>, Error> {
        self.read_within(name, MAX_FILE)
    }

    /// Reads a file of at most `limit` bytes.
    pub(crate) fn read_within(&self, name: &str, limit: usize) -> Result<Option<Zeroizing<Vec<u8>>>, Error> {
        if !self.has(name, Kind::File)? {
            return Ok(None);
        }
        let path = self.path.join(name);
        let bytes = self.disk.read(&path, limit.saturating_add(1)).map_err(Error::disk("read", self.label(name)))?;
        self.check_len(name, bytes.len(), limit)?;
        Ok(Some(bytes))
    }

    pub(crate) fn check_len(&self, name: &str, len: usize, limit: usize) -> Result<(), Error> {
        if len > limit {
            return Err(Error::TooLarge { file: self.label(name), limit });
        }
        Ok(())
    }

    /// Writes a file that must not exist. The caller must hold the lock, so that nothing else creates the file in between.
    pub(crate) fn create_new(&self, name: &str, bytes: &[u8]) -> Result<(), Error> {
        if self.kind(name)?.is_some() {
            // The caller will rely on the existing file, but the write that created it may have failed to sync.
            self.sync()?;
            return Err(Error::Exists { file: self.label(name) });
        }
        self.check_len(name, bytes.len(), MAX_FILE)?;
        self.put(name, |temporary| self.disk.write_new(temporary, bytes))
    }

    /// Writes a file of a backup into a new directory.
    pub(crate) fn restore(&self, name: &str, bytes: &[u8]) -> Result<(), Error> {
        self.check_len(name, bytes.len(), MAX_JOURNAL)?;
        self.put(name, |temporary| self.disk.write_new(temporary, bytes))
    }

    /// Writes or replaces a file. The caller must hold the lock.
    pub(crate) fn replace(&self, name: &str, bytes: &[u8]) -> Result<(), Error> {
        self.has(name, Kind::File)?;
        self.check_len(name, bytes.len(), MAX_FILE)?;
        self.put(name, |temporary| self.disk.write_new(temporary, bytes))
    }

    /// Writes or replaces a file whose content depends on the file itself. `content` gets the path of the new file, which exists and is
    /// empty. The caller must hold the lock.
    pub(crate) fn replace_marked(&self, name: &str, content: impl FnOnce(&Path) -> io::Result<Vec<u8>>) -> Result<(), Error> {
        self.has(name, Kind::File)?;
        self.put(name, |temporary| {
            self.disk.write_new(temporary, &[])?;
            self.disk.append(temporary, &content(temporary)?)
        })
    }

    /// Replaces a journal by other entries. The caller must hold the lock.
    pub(crate) fn replace_journal(&self, name: &str, entries: &[impl AsRef<[u8]>]) -> Result<(), Error> {
        self.has(name, Kind::File)?;
        let mut bytes = Zeroizing::new(Vec::with_capacity(
            entries.iter().fold(0, |len: usize, entry| len.saturating_add(entry.as_ref().len()).saturating_add(1)),
        ));
        for entry in entries {
            self.check_entry(name, entry.as_ref())?;
            bytes.extend_from_slice(entry.as_ref());
            bytes.push(b'\n');
        }
        self.check_len(name, bytes.len(), MAX_JOURNAL)?;
        self.put(name, |temporary| self.disk.write_new(temporary, &bytes))
    }

    fn check_entry(&self, name: &str, entry: &[u8]) -> Result<(), Error> {
        if entry.contains(&b'\n') || !is_json_object(entry) {
            return Err(Error::Line { file: self.label(name) });
        }
        Ok(())
    }

    /// Writes a file under a temporary name with `write`, and renames it. Its name must be free, or that of a file.
    fn put(&self, name: &str, write: impl FnOnce(&Path) -> io::Result<()>) -> Result<(), Error> {
        let temporary_name = format!("{TEMPORARY}{name}");
        let temporary = self.path.join(&temporary_name);
        // A temporary file is left over from a crash. It was never renamed, so nothing relies on it.
        if matches!(self.kind(&temporary_name)?, Some(Kind::File | Kind::Link)) {
            self.disk.remove(&temporary).map_err(Error::disk("write", self.label(&temporary_name)))?;
        }
        let written = write(&temporary).and_then(|()| self.disk.rename(&temporary, &self.path.join(name)));
        if written.is_err() {
            // Best effort: the next write of this document removes the file otherwise.
            let _ = self.disk.remove(&temporary);
        }
        written.map_err(Error::disk("write", self.label(name)))?;
        self.sync()
    }

    /// Appends an entry to a journal. The caller must hold the lock.
    pub(crate) fn append(&self, name: &str, entry: &[u8]) -> Result<(), Error> {
        self.check_entry(name, entry)?;
        let kept = self.read_within(name, MAX_JOURNAL)?.unwrap_or_default();
        let mut line = Zeroizing::new(Vec::with_capacity(entry.len().saturating_add(2)));
        if kept.last().is_some_and(|byte| *byte != b'\n') {
            // The last append was interrupted. Terminate its line, so that the new entry begins on a new line.
            line.push(b'\n');
        }
        line.extend_from_slice(entry);
        line.push(b'\n');
        self.check_len(name, kept.len().saturating_add(line.len()), MAX_JOURNAL)?;
        self.disk.append(&self.path.join(name), &line).map_err(Error::disk("write", self.label(name)))?;
        // Synced every time, not only for a new file, because the process that created the file may have ended before it synced.
        self.sync()
    }

    /// Reads a journal after making its content durable. The caller must hold the lock.
    pub(crate) fn durable_journal(&self, name: &str) -> Result<Journal, Error> {
        if self.has(name, Kind::File)? {
            // A killed process may have appended an entry without syncing it. Appending nothing syncs the file.
            self.disk.append(&self.path.join(name), &[]).map_err(Error::disk("sync", self.label(name)))?;
        }
        self.journal(name)
    }

    pub(crate) fn journal(&self, name: &str) -> Result<Journal, Error> {
        Ok(self.read_within(name, MAX_JOURNAL)?.map(|bytes| Journal::parse(&bytes)).unwrap_or_default())
    }
}

/// Returns whether a file is the lock or a temporary file left over from a crash. Backups do not contain these.
pub(crate) fn is_scratch(name: &str) -> bool {
    name == LOCK || name.starts_with(HOST) || name.starts_with(TEMPORARY)
}

/// Returns whether a name is allowed for a document: up to 64 lower-case letters, digits, `_`, `-` and `.`, beginning with a letter and not
/// ending with a dot. `lock` and the device names of Windows are reserved.
pub(crate) fn is_document_name(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'_' | b'-' | b'.');
    let stem = name.split('.').next().unwrap_or_default();
    let device = matches!(stem, "con" | "prn" | "aux" | "nul")
        || (stem.len() == 4 && (stem.starts_with("com") || stem.starts_with("lpt")) && stem.ends_with(|c: char| c.is_ascii_digit()));
    name.len() <= 64
        && name.starts_with(|first: char| first.is_ascii_lowercase())
        && name.bytes().all(plain)
        && !name.ends_with('.')
        && name != LOCK
        && !device
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn document_names_are_plain_on_every_system() {
        for name in ["request", "record.json", "a", "signed_tx-2", "journal.jsonl", "com", "console"] {
            assert!(is_document_name(name), "{name}");
        }
        for name in ["", "lock", ".new-a", "..", "a/b", "a\\b", "A", "a.", "nul", "con.json", "com1", "lpt9.txt", "a b", "ä", "1", "-a"] {
            assert!(!is_document_name(name), "{name}");
        }
        assert!(is_document_name(&"a".repeat(64)) && !is_document_name(&"a".repeat(65)));
    }

    #[test]
    fn a_torn_line_is_reported_and_what_is_before_and_after_it_is_kept() {
        let read = |text: &str| {
            let journal = Journal::parse(text.as_bytes());
            let entries: Vec<String> = journal.entries.iter().map(|entry| String::from_utf8(entry.to_vec()).unwrap()).collect();
            (entries.join(" "), journal.damaged_lines)
        };
        assert_eq!(read(""), (String::new(), vec![]));
        assert_eq!(read("{\"a\":1}\n{}\n"), ("{\"a\":1} {}".to_owned(), vec![]));
        assert_eq!(read("{\"a\":1}\n{\"b\""), ("{\"a\":1}".to_owned(), vec![2]));
        // Complete except for the line feed: the append did not return, but its entry can be used.
        assert_eq!(read("{\"a\":1}\n{}"), ("{\"a\":1} {}".to_owned(), vec![]));
        assert_eq!(read("{\"a\":1}\n{\"b\"\n{}\n"), ("{\"a\":1} {}".to_owned(), vec![2]));
        assert_eq!(read("{}\n\0\0\0\0\n"), ("{}".to_owned(), vec![2]));
        assert_eq!(read("{}\n{\"a\0\0\0\n[]\n7\n"), ("{}".to_owned(), vec![2, 3, 4]));
    }
}
