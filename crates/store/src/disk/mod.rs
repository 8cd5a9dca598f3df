//! The file system calls of the store, as an interface, so that tests can cut the power between any two of them.

mod files;

use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::Path;

use zeroize::Zeroizing;

pub use files::Files;

/// What a path names. Symbolic links are not followed.
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
/// New directories and files belong to the user alone: modes 0700 and 0600 on Unix.
pub trait Disk: fmt::Debug + Send + Sync {
    /// Returns what a path names, `None` if it does not exist.
    ///
    /// # Errors
    ///
    /// The operating system's, for instance if a permission is missing.
    fn kind(&self, path: &Path) -> io::Result<Option<Kind>>;

    /// Returns the names in a directory, in any order.
    ///
    /// # Errors
    ///
    /// The operating system's.
    fn list(&self, directory: &Path) -> io::Result<Vec<OsString>>;

    /// Reads a file, at most its first `max` bytes.
    ///
    /// # Errors
    ///
    /// The operating system's.
    fn read(&self, file: &Path, max: usize) -> io::Result<Zeroizing<Vec<u8>>>;

    /// Creates a directory. Durable once its parent is synced.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::AlreadyExists`], or the operating system's.
    fn create_directory(&self, directory: &Path) -> io::Result<()>;

    /// Makes the entries of a directory durable: what was created, renamed and removed in it.
    ///
    /// # Errors
    ///
    /// The operating system's.
    fn sync_directory(&self, directory: &Path) -> io::Result<()>;

    /// Creates a file that must not exist, writes it and syncs its content. Its name is durable once its directory is synced.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::AlreadyExists`], or the operating system's. The file may then exist with any content.
    fn write_new(&self, file: &Path, bytes: &[u8]) -> io::Result<()>;

    /// Appends to a file, which is created if it does not exist, and syncs its content.
    ///
    /// # Errors
    ///
    /// The operating system's. A part of the bytes may then have been appended.
    fn append(&self, file: &Path, bytes: &[u8]) -> io::Result<()>;

    /// Renames a file within its directory and replaces what has the new name. Durable once the directory is synced.
    ///
    /// # Errors
    ///
    /// The operating system's.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Removes a file or a symbolic link.
    ///
    /// # Errors
    ///
    /// The operating system's.
    fn remove(&self, file: &Path) -> io::Result<()>;

    /// Takes an exclusive lock on a file, which is created if it does not exist. Returns `None` if it is held elsewhere, in
    /// this process or another one. The operating system releases the lock of a process that ended.
    ///
    /// # Errors
    ///
    /// The operating system's, also where the file system has no locks.
    fn lock(&self, file: &Path) -> io::Result<Option<LockGuard>>;
}
