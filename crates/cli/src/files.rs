//! Reads files, replaces them atomically, and creates new ones.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::Path;

use countersign::json;
use zeroize::Zeroizing;

use crate::command::quoted;
use crate::failure::{Failure, usage};
use crate::session::Session;

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

/// The longest file with a key, a secret, a password or words.
const MAX_PRIVATE: usize = 16 * 1024;

/// Reads a file with a key, a secret, a password or words; stdin for `-`. Warns if other users can read or change it.
///
/// # Errors
///
/// A usage error as for [`private`].
pub(crate) fn read_private(path: &Path, session: &Session) -> Result<Zeroizing<Vec<u8>>, Failure> {
    let bytes = private(path)?;
    if let Some(doubt) = open_to_others(path) {
        session.warn(&doubt);
    }
    Ok(bytes)
}

/// Reads a file with a key, a secret, a password or words; stdin for `-`.
///
/// # Errors
///
/// A usage error if the file cannot be read or is far too long, and if it is neither a regular file nor a descriptor of this process: a pipe
/// or a device with a name could keep the program waiting, or never end.
pub(crate) fn private(path: &Path) -> Result<Zeroizing<Vec<u8>>, Failure> {
    if path == Path::new("-") {
        return read(path);
    }
    let failed = |error: io::Error| usage(format_args!("{}: {error}", path.display()));
    if !path.metadata().map_err(failed)?.is_file() && !is_descriptor(path) {
        return Err(usage(format_args!("{}: not a regular file", path.display())));
    }
    // The buffer does not grow and leave an unwiped copy behind.
    let mut bytes = Zeroizing::new(Vec::with_capacity(MAX_PRIVATE.saturating_mul(2)));
    let limit = u64::try_from(MAX_PRIVATE).unwrap_or(u64::MAX).saturating_add(1);
    File::open(path).and_then(|file| file.take(limit).read_to_end(&mut bytes)).map_err(failed)?;
    if bytes.len() > MAX_PRIVATE {
        return Err(usage(format_args!("{}: longer than any key, password or secret", path.display())));
    }
    Ok(bytes)
}

/// Returns whether a path names a descriptor of this process, as `<(command)` of a shell does.
fn is_descriptor(path: &Path) -> bool {
    path == Path::new("/dev/stdin") || path.starts_with("/dev/fd") || path.starts_with("/proc/self/fd")
}

/// Says that other users can read or change a file; `None` if they cannot, or if that is not known.
pub(crate) fn open_to_others(path: &Path) -> Option<String> {
    #[cfg(unix)]
    {
        let metadata = path.metadata().ok().filter(std::fs::Metadata::is_file)?;
        let mode = std::os::unix::fs::PermissionsExt::mode(&metadata.permissions());
        (mode & 0o077 != 0).then(|| {
            let fix = quoted(path.as_os_str());
            format!("{}: other users can read or change it: chmod 600 {fix}", path.display())
        })
    }
    #[cfg(not(unix))]
    {
        let _ = path;
        None
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
