//! The file system calls of the store as a trait, so that tests can simulate a power failure between any two of them.

mod files;

use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::Path;

use zeroize::Zeroizing;

pub use files::Files;

/// The kind of a directory entry. Symbolic links are not followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Link,
    /// A device, pipe or socket.
    Other,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::File => "a file",
            Self::Directory => "a directory",
            Self::Link => "a symbolic link",
            Self::Other => "a device, pipe or socket",
        })
    }
}

/// A lock that is held until it is dropped.
pub type LockGuard = Box<dyn Send + Sync>;

/// The file system calls of the store. [`Files`] is the real implementation.
///
/// New directories and files are accessible only to the user: modes 0700 and 0600 on Unix.
pub trait Disk: fmt::Debug + Send + Sync {
    /// Returns the kind of the entry at a path; `None` if it does not exist.
    ///
    /// # Errors
    ///
    /// An error of the operating system, for instance a missing permission.
    fn kind(&self, path: &Path) -> io::Result<Option<Kind>>;

    /// Returns the names in a directory, in any order.
    ///
    /// # Errors
    ///
    /// An error of the operating system.
    fn list(&self, directory: &Path) -> io::Result<Vec<OsString>>;

    /// Reads at most the first `max` bytes of a file.
    ///
    /// # Errors
    ///
    /// An error of the operating system.
    fn read(&self, file: &Path, max: usize) -> io::Result<Zeroizing<Vec<u8>>>;

    /// Creates a directory, which is durable once its parent is synced.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::AlreadyExists`], or another error of the operating system.
    fn create_directory(&self, directory: &Path) -> io::Result<()>;

    /// Makes the entries of a directory durable: all creations, renames and removals in it.
    ///
    /// # Errors
    ///
    /// An error of the operating system.
    fn sync_directory(&self, directory: &Path) -> io::Result<()>;

    /// Creates a file that must not exist, writes it and syncs its content. Its name is durable once its directory is synced.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::AlreadyExists`], or another error of the operating system. The file may then exist with any content.
    fn write_new(&self, file: &Path, bytes: &[u8]) -> io::Result<()>;

    /// Appends to a file, which is created if it does not exist, and syncs its content.
    ///
    /// # Errors
    ///
    /// An error of the operating system. A part of the bytes may then have been appended.
    fn append(&self, file: &Path, bytes: &[u8]) -> io::Result<()>;

    /// Returns text that identifies a file or a directory. It stays the same when the entry is renamed or written, and a copy has another
    /// one, as far as the file system allows.
    ///
    /// # Errors
    ///
    /// An error of the operating system.
    fn identity(&self, path: &Path) -> io::Result<String>;

    /// Renames a file or a directory within its directory, replacing an existing file of the new name. The rename is durable once the
    /// directory is synced.
    ///
    /// # Errors
    ///
    /// An error of the operating system.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Removes a file or a symbolic link.
    ///
    /// # Errors
    ///
    /// An error of the operating system.
    fn remove(&self, file: &Path) -> io::Result<()>;

    /// Takes an exclusive lock on a file, which is created if it does not exist. Returns `None` if this or another process already holds
    /// the lock. The operating system releases the locks of a process that has ended.
    ///
    /// # Errors
    ///
    /// An error of the operating system, also if the file system does not support locks.
    fn lock(&self, file: &Path) -> io::Result<Option<LockGuard>>;

    /// Takes a lock on a file that excludes only exclusive locks, like [`lock`](Self::lock) otherwise. By default nobody else has the disk.
    ///
    /// # Errors
    ///
    /// An error of the operating system, also if the file system does not support locks.
    fn lock_shared(&self, file: &Path) -> io::Result<Option<LockGuard>> {
        let _ = file;
        Ok(Some(Box::new(())))
    }
}
