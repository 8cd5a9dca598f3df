//! The implementation of [`Disk`] over the operating system's files.

use std::ffi::OsString;
use std::fs::{self, DirBuilder, File, FileType, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::path::Path;
use std::time::UNIX_EPOCH;

use zeroize::Zeroizing;

use super::{Disk, Kind, LockGuard};

/// The operating system's files, through `std::fs`.
///
/// On Windows a directory cannot be synced, so a rename is as durable as the journal of NTFS makes it.
#[derive(Debug, Clone, Copy, Default)]
pub struct Files;

impl Disk for Files {
    fn kind(&self, path: &Path) -> io::Result<Option<Kind>> {
        match fs::symlink_metadata(path) {
            Ok(metadata) => Ok(Some(kind(metadata.file_type()))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<OsString>> {
        fs::read_dir(directory)?.map(|entry| entry.map(|entry| entry.file_name())).collect()
    }

    fn read(&self, file: &Path, max: usize) -> io::Result<Zeroizing<Vec<u8>>> {
        let file = File::open(file)?;
        let len = usize::try_from(file.metadata()?.len()).unwrap_or(usize::MAX).min(max);
        // Allocated at full size, because a buffer that grows leaves copies of a secret behind.
        let mut bytes = Zeroizing::new(Vec::with_capacity(len.saturating_add(1)));
        file.take(u64::try_from(max).unwrap_or(u64::MAX)).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    fn create_directory(&self, directory: &Path) -> io::Result<()> {
        #[cfg_attr(not(unix), expect(unused_mut, reason = "only Unix has modes"))]
        let mut builder = DirBuilder::new();
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(directory)
    }

    #[cfg(unix)]
    fn sync_directory(&self, directory: &Path) -> io::Result<()> {
        File::open(directory)?.sync_all()
    }

    #[cfg(not(unix))]
    fn sync_directory(&self, _directory: &Path) -> io::Result<()> {
        Ok(())
    }

    fn write_new(&self, file: &Path, bytes: &[u8]) -> io::Result<()> {
        write(private().write(true).create_new(true), file, bytes)
    }

    fn append(&self, file: &Path, bytes: &[u8]) -> io::Result<()> {
        write(private().append(true).create(true), file, bytes)
    }

    /// The inode number and the time of creation. The inode number alone may be used again after a file is replaced. Where the file system
    /// has no time of creation, the device number takes its place.
    #[cfg(unix)]
    fn identity(&self, path: &Path) -> io::Result<String> {
        use std::os::unix::fs::MetadataExt;
        let metadata = fs::metadata(path)?;
        let created = metadata.created().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok()).filter(|age| !age.is_zero());
        Ok(match created {
            Some(created) => format!("{} {}", metadata.ino(), created.as_nanos()),
            None => format!("{} on {}", metadata.ino(), metadata.dev()),
        })
    }

    /// The path and the time of creation of a directory; nothing for a file. Windows gives a file that replaces another one the other
    /// one's time of creation, so it identifies no file.
    #[cfg(not(unix))]
    fn identity(&self, path: &Path) -> io::Result<String> {
        let metadata = fs::metadata(path)?;
        if !metadata.is_dir() {
            return Ok(String::new());
        }
        let created = metadata.created().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok()).unwrap_or_default();
        Ok(format!("{} {}", fs::canonicalize(path)?.display(), created.as_nanos()))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove(&self, file: &Path) -> io::Result<()> {
        fs::remove_file(file)
    }

    fn lock(&self, file: &Path) -> io::Result<Option<LockGuard>> {
        let file = private().write(true).create(true).truncate(false).open(file)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Box::new(LockedFile(file)))),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    fn lock_shared(&self, file: &Path) -> io::Result<Option<LockGuard>> {
        let file = private().read(true).write(true).create(true).truncate(false).open(file)?;
        match file.try_lock_shared() {
            Ok(()) => Ok(Some(Box::new(LockedFile(file)))),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }
}

/// A locked file, unlocked explicitly on drop. Closing it may not be enough, because a child process may still have it open.
struct LockedFile(fs::File);

impl Drop for LockedFile {
    fn drop(&mut self) {
        // Best effort: if this fails, the lock ends when every process has closed the file.
        let _ = self.0.unlock();
    }
}

fn private() -> OpenOptions {
    #[cfg_attr(not(unix), expect(unused_mut, reason = "only Unix has modes"))]
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Writes and syncs through one handle, because the operating system reports a failed write only to the handle that wrote.
fn write(options: &OpenOptions, file: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = options.open(file)?;
    file.write_all(bytes)?;
    file.sync_all()
}

fn kind(file: FileType) -> Kind {
    if file.is_symlink() {
        Kind::Link
    } else if file.is_dir() {
        Kind::Directory
    } else if file.is_file() {
        Kind::File
    } else {
        Kind::Other
    }
}
