//! Reads files, replaces them atomically, and creates new ones.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::Path;

use countersign::json;
use zeroize::Zeroizing;

use crate::failure::{Failure, usage};

/// Reads a file, or stdin for `-`, up to one byte more than the largest document that is parsed.
pub(crate) fn read(path: &Path) -> Result<Zeroizing<Vec<u8>>, Failure> {
    let limit = u64::try_from(json::MAX_BYTES).unwrap_or(u64::MAX).saturating_add(1);
    // A document with a key is far shorter, so the buffer does not grow and leave an unwiped copy behind.
    let mut bytes = Zeroizing::new(Vec::with_capacity(64 * 1024));
    let read = if path == Path::new("-") {
        io::stdin().lock().take(limit).read_to_end(&mut bytes)
    } else {
        File::open(path).and_then(|file| file.take(limit).read_to_end(&mut bytes))
    };
    match read {
        Ok(_) => Ok(bytes),
        Err(error) => Err(usage(format_args!("{}: {error}", path.display()))),
    }
}

/// Who may read a file.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// Only the user.
    Private,
    /// Everyone whom the user's default permissions allow.
    Shared,
}

/// Replaces a file. The old content stays complete until the new content is on disk. Of several processes that replace it at the same time,
/// the last one wins.
pub(crate) fn replace(path: &Path, bytes: &[u8], access: Access) -> Result<(), Failure> {
    // A name of its own, so that another process neither renames nor truncates this file.
    let mut beside = OsString::from(path);
    beside.push(format!(".{}.new", std::process::id()));
    let beside = Path::new(&beside);
    let written = write(beside, bytes, access).and_then(|()| fs::rename(beside, path)).and_then(|()| sync_directory(path));
    written.map_err(|error| {
        // Best effort: the first error is reported in any case.
        let _ = fs::remove_file(beside);
        usage(format_args!("{}: {error}", path.display()))
    })
}

/// Creates a file that must not exist, readable only by the user. It is durable when this returns. After an error the incomplete file is
/// removed.
pub(crate) fn create_private(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let failed = |error: io::Error| usage(format_args!("{}: {error}", path.display()));
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path).map_err(failed)?;
    let written = file.write_all(bytes).and_then(|()| file.sync_all()).and_then(|()| sync_directory(path));
    written.map_err(|error| {
        // Best effort: the first error is reported in any case.
        let _ = fs::remove_file(path);
        failed(error)
    })
}

fn write(path: &Path, bytes: &[u8], access: Access) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    if access == Access::Private {
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    }
    let mut file: File = options.open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// Makes the new name of a file durable. On Unix the name is part of the directory.
fn sync_directory(path: &Path) -> io::Result<()> {
    #[cfg(unix)]
    if let Some(directory) = path.parent() {
        let directory = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
        File::open(directory)?.sync_all()?;
    }
    Ok(())
}
