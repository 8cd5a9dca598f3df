//! The store's disk in memory. What changes in it goes to the host before it counts.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use countersign_store::disk::{Disk, Kind, LockGuard};
use zeroize::Zeroizing;

use crate::need::Write;

/// The root of the store on this disk.
pub(crate) const ROOT: &str = "/";
/// Documents that complete a directory. They are written after everything else: what has none of them is not there yet.
const LAST: [&str; 2] = ["order.json", "version"];

type Bytes = Zeroizing<Vec<u8>>;

/// Returns what identifies a store. For a host that cannot tell where its documents are, each opening is a place of its own: no two have the
/// same time.
pub(crate) fn place_of(given: &str, now: u64) -> String {
    if given.is_empty() { format!("opened at {now}") } else { given.to_owned() }
}

#[derive(Debug, Default)]
struct Files {
    directories: BTreeSet<PathBuf>,
    files: BTreeMap<PathBuf, Bytes>,
    locked: BTreeSet<PathBuf>,
    /// What the files that changed since the last flush contained before.
    before: BTreeMap<PathBuf, Option<Bytes>>,
    place: String,
}

/// A disk in memory that remembers what changed.
#[derive(Debug, Clone, Default)]
pub(crate) struct HostDisk(Arc<Mutex<Files>>);

impl HostDisk {
    /// Creates a disk with the documents that the host has kept. `place` identifies where: a copy has another one, and so has a store whose
    /// `index` was put back.
    pub(crate) fn new(documents: impl IntoIterator<Item = (String, Bytes)>, place: &str) -> Self {
        let mut files = Files { place: place.to_owned(), ..Files::default() };
        // Directories are not documents, so a store without orders has nothing that names this one.
        files.directories.extend([PathBuf::from(ROOT), Path::new(ROOT).join("orders")]);
        for (name, bytes) in documents {
            let path = Path::new(ROOT).join(name);
            files.directories.extend(path.ancestors().skip(1).map(Path::to_path_buf));
            files.files.insert(path, bytes);
        }
        Self(Arc::new(Mutex::new(files)))
    }

    fn files(&self) -> MutexGuard<'_, Files> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns what changed since the last call of [`keep`](Self::keep) or [`revert`](Self::revert), in the order in which it is written.
    pub(crate) fn changes(&self) -> Vec<Write> {
        let files = self.files();
        let mut writes = Vec::new();
        for (path, before) in &files.before {
            let now = files.files.get(path);
            if now != before.as_ref()
                && let Some(name) = document_name(path)
            {
                writes.push(Write { name, bytes: now.cloned() });
            }
        }
        let is_last = |write: &Write| LAST.iter().any(|last| write.name.rsplit('/').next() == Some(last));
        let (last, mut writes): (Vec<_>, Vec<_>) = writes.into_iter().partition(is_last);
        writes.extend(last);
        writes
    }

    /// Forgets what was there before the last changes, because they are durable.
    pub(crate) fn keep(&self) {
        self.files().before.clear();
    }

    /// Returns a copy of what the host has kept beside the orders.
    pub(crate) fn kept(&self) -> Self {
        let files = self.files();
        let is_beside = |path: &PathBuf| path.parent() == Some(Path::new(ROOT));
        let mut kept = Files { place: files.place.clone(), ..Files::default() };
        kept.directories.extend([PathBuf::from(ROOT), Path::new(ROOT).join("orders")]);
        kept.files.extend(files.files.iter().filter(|(path, _)| is_beside(path)).map(|(path, bytes)| (path.clone(), bytes.clone())));
        for (path, before) in files.before.iter().filter(|(path, _)| is_beside(path)) {
            match before {
                Some(bytes) => drop(kept.files.insert(path.clone(), bytes.clone())),
                None => drop(kept.files.remove(path)),
            }
        }
        Self(Arc::new(Mutex::new(kept)))
    }

    /// Undoes the last changes, because the host could not keep them.
    pub(crate) fn revert(&self) {
        let mut files = self.files();
        for (path, before) in std::mem::take(&mut files.before) {
            match before {
                Some(bytes) => drop(files.files.insert(path, bytes)),
                None => drop(files.files.remove(&path)),
            }
        }
        // A directory exists for its files.
        let Files { directories, files, .. } = &mut *files;
        directories.retain(|directory| {
            directory.parent() != Some(&Path::new(ROOT).join("orders")) || files.keys().any(|path| path.starts_with(directory))
        });
    }
}

/// Returns the name of a document; `None` for locks and temporary files.
fn document_name(path: &Path) -> Option<String> {
    let relative = path.strip_prefix(ROOT).ok()?;
    let parts: Vec<&str> = relative.iter().map(|part| part.to_str()).collect::<Option<_>>()?;
    let is_kept = parts.iter().all(|part| !part.starts_with('.') && *part != "lock");
    is_kept.then(|| parts.join("/"))
}

impl Files {
    /// Remembers the content of a file before its first change.
    fn touch(&mut self, path: &Path) {
        if !self.before.contains_key(path) {
            self.before.insert(path.to_path_buf(), self.files.get(path).cloned());
        }
    }

    fn set(&mut self, path: &Path, bytes: Bytes) {
        self.touch(path);
        self.files.insert(path.to_path_buf(), bytes);
    }

    fn take(&mut self, path: &Path) -> io::Result<Bytes> {
        self.touch(path);
        self.files.remove(path).ok_or_else(|| ErrorKind::NotFound.into())
    }
}

impl Disk for HostDisk {
    fn kind(&self, path: &Path) -> io::Result<Option<Kind>> {
        let files = self.files();
        let kind = if files.directories.contains(path) {
            Some(Kind::Directory)
        } else if files.files.contains_key(path) {
            Some(Kind::File)
        } else {
            None
        };
        Ok(kind)
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<OsString>> {
        let files = self.files();
        if !files.directories.contains(directory) {
            return Err(ErrorKind::NotFound.into());
        }
        let paths = files.directories.iter().chain(files.files.keys()).filter(|path| path.parent() == Some(directory));
        Ok(paths.filter_map(|path| path.file_name().map(OsString::from)).collect())
    }

    fn read(&self, file: &Path, max: usize) -> io::Result<Bytes> {
        let files = self.files();
        let bytes = files.files.get(file).ok_or(ErrorKind::NotFound)?;
        Ok(Zeroizing::new(bytes.iter().take(max).copied().collect()))
    }

    fn create_directory(&self, directory: &Path) -> io::Result<()> {
        if self.files().directories.insert(directory.to_path_buf()) { Ok(()) } else { Err(ErrorKind::AlreadyExists.into()) }
    }

    fn sync_directory(&self, _: &Path) -> io::Result<()> {
        Ok(())
    }

    fn write_new(&self, file: &Path, bytes: &[u8]) -> io::Result<()> {
        let mut files = self.files();
        if files.files.contains_key(file) {
            return Err(ErrorKind::AlreadyExists.into());
        }
        files.set(file, Zeroizing::new(bytes.to_vec()));
        Ok(())
    }

    fn append(&self, file: &Path, bytes: &[u8]) -> io::Result<()> {
        let mut files = self.files();
        let kept = files.files.get(file);
        // Allocated at full size, because a buffer that grows leaves copies of a secret behind.
        let mut all = Zeroizing::new(Vec::with_capacity(kept.map_or(0, |kept| kept.len()).saturating_add(bytes.len())));
        all.extend_from_slice(kept.map_or(&[], |kept| kept.as_slice()));
        all.extend_from_slice(bytes);
        files.set(file, all);
        Ok(())
    }

    fn identity(&self, _: &Path) -> io::Result<String> {
        Ok(self.files().place.clone())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut files = self.files();
        if files.directories.remove(from) {
            files.directories.insert(to.to_path_buf());
            let moved: Vec<PathBuf> = files.files.keys().filter(|path| path.starts_with(from)).cloned().collect();
            for path in moved {
                let Ok(below) = path.strip_prefix(from) else { continue };
                let target = to.join(below);
                let bytes = files.take(&path)?;
                files.set(&target, bytes);
            }
            return Ok(());
        }
        let bytes = files.take(from)?;
        files.set(to, bytes);
        Ok(())
    }

    fn remove(&self, file: &Path) -> io::Result<()> {
        self.files().take(file).map(drop)
    }

    fn lock(&self, file: &Path) -> io::Result<Option<LockGuard>> {
        if !self.files().locked.insert(file.to_path_buf()) {
            return Ok(None);
        }
        Ok(Some(Box::new(Locked { disk: self.clone(), file: file.to_path_buf() })))
    }
}

/// A lock in memory, released on drop.
struct Locked {
    disk: HostDisk,
    file: PathBuf,
}

impl Drop for Locked {
    fn drop(&mut self) {
        self.disk.files().locked.remove(&self.file);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test ends by panicking")]

    use countersign_store::Store;

    use super::*;

    fn names(disk: &HostDisk) -> Vec<String> {
        disk.changes().into_iter().map(|write| write.name).collect()
    }

    #[test]
    fn an_operation_is_written_whole_or_undone() {
        let disk = HostDisk::new(Vec::new(), "here");
        let store = Store::open_on(Arc::new(disk.clone()), Path::new(ROOT)).unwrap();
        assert_eq!(names(&disk), ["index", "version"]);
        let documents: Vec<_> = disk.changes().into_iter().map(|write| (write.name, write.bytes.unwrap())).collect();
        let reopened = Store::open_on(Arc::new(HostDisk::new(documents, "here")), Path::new(ROOT)).unwrap();
        assert!(reopened.orders().unwrap().is_empty());
        disk.keep();
        assert_eq!(names(&disk), [""; 0]);

        let id = "ab".repeat(32);
        let documents: [(&str, &[u8]); 2] = [("order.json", b"{}"), ("secret", b"00")];
        let create = || store.lock_store().unwrap().create_order(&id, &documents);
        create().unwrap();
        // What completes an order is written last.
        assert_eq!(names(&disk), [format!("orders/{id}/secret"), format!("orders/{id}/order.json")]);
        disk.revert();
        assert!(store.orders().unwrap().is_empty());
        let order = create().unwrap();
        disk.keep();

        let first = store.take_index().unwrap();
        disk.revert();
        assert_eq!(store.take_index().unwrap(), first);
        disk.keep();
        order.lock().unwrap().append("journal", b"{}").unwrap();
        assert_eq!(names(&disk), [format!("orders/{id}/journal")]);
    }

    #[test]
    fn a_store_in_another_place_is_a_copy() {
        let disk = HostDisk::new(Vec::new(), "here");
        let store = Store::open_on(Arc::new(disk.clone()), Path::new(ROOT)).unwrap();
        assert_eq!(store.take_index().unwrap().branch, 0);
        let documents: Vec<_> = disk.changes().into_iter().map(|write| (write.name, write.bytes.unwrap())).collect();
        let reopened =
            |place| Store::open_on(Arc::new(HostDisk::new(documents.clone(), place)), Path::new(ROOT)).unwrap().take_index().unwrap();
        assert_eq!((reopened("here").branch, reopened("here").index), (0, 1));
        assert_ne!(reopened("there").branch, 0);
    }
}
