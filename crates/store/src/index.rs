//! The file `index`: the next index of the rescue phrase, its branch, and the place in which both are valid.

use sha2::{Digest, Sha256};

use crate::disk::Disk;
use crate::error::Error;
use crate::folder::Folder;

/// The number of indices in a branch of a rescue phrase. Hardened indices are below 2^31.
pub const INDICES: u32 = 1 << 31;
/// The number of branches of a rescue phrase.
pub const BRANCHES: u32 = 1 << 16;

pub(crate) const INDEX_FILE: &str = "index";

/// An index of the rescue phrase, with the branch that it belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(clippy::exhaustive_structs, reason = "two numbers of the documented path")]
pub struct KeyIndex {
    /// The branch; 0 for the first branch of a phrase.
    pub branch: u16,
    /// The index in the branch.
    pub index: u32,
}

/// The content of the file.
///
/// A line with the next index, the branch and the place, separated by spaces. A line with only the next index belongs to branch 0 and is
/// valid in any place.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NextIndex {
    pub(crate) next: KeyIndex,
    place: Option<String>,
}

impl NextIndex {
    /// Reads the file.
    pub(crate) fn read(root: &Folder) -> Result<Self, Error> {
        let bytes = root.read(INDEX_FILE)?;
        let found = bytes.as_deref().and_then(|bytes| Self::parse(bytes));
        found.ok_or_else(|| Error::Damaged { file: INDEX_FILE.to_owned(), reason: "the next index is missing or out of range" })
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        let line = std::str::from_utf8(bytes.strip_suffix(b"\n")?).ok()?;
        let mut parts = line.split(' ');
        let index = parse_number(parts.next()?).filter(|next| *next <= INDICES)?;
        let Some(branch) = parts.next() else { return Some(Self { next: KeyIndex { branch: 0, index }, place: None }) };
        let branch = parse_number(branch).and_then(|branch| u16::try_from(branch).ok())?;
        let place = parts.next().filter(|place| !place.is_empty()).map(str::to_owned)?;
        parts.next().is_none().then_some(Self { next: KeyIndex { branch, index }, place: Some(place) })
    }

    /// Writes the file. It names itself and its directory, so that a copy of either is noticed.
    pub(crate) fn write(root: &Folder, next: KeyIndex) -> Result<(), Error> {
        root.replace_marked(INDEX_FILE, |file| {
            let place = place(&*root.disk, root, file)?;
            Ok(format!("{} {} {place}\n", next.index, next.branch).into_bytes())
        })
    }

    /// Returns whether the file is where it was written. It is not if it or its directory is a copy, or if an older version of it was put
    /// in its place.
    pub(crate) fn is_in_place(&self, root: &Folder) -> Result<bool, Error> {
        let Some(kept) = &self.place else { return Ok(true) };
        let failed = Error::disk("read", INDEX_FILE);
        Ok(*kept == place(&*root.disk, root, &root.path.join(INDEX_FILE)).map_err(failed)?)
    }
}

/// Returns a random branch other than the first one and `current`.
pub(crate) fn other_branch(current: u16) -> Result<u16, Error> {
    loop {
        let mut bytes = [0; 2];
        getrandom::fill(&mut bytes).map_err(Error::Random)?;
        let branch = u16::from_be_bytes(bytes);
        if branch != 0 && branch != current {
            return Ok(branch);
        }
    }
}

/// Returns what identifies a file in its directory, as text without spaces.
fn place(disk: &dyn Disk, root: &Folder, file: &std::path::Path) -> std::io::Result<String> {
    let text = format!("{}\n{}", disk.identity(&root.path)?, disk.identity(file)?);
    // Half of the hash is enough to tell two places apart.
    let mut digest = hex::encode(Sha256::digest(text));
    digest.truncate(32);
    Ok(digest)
}

/// Parses a number that consists of decimal digits only.
pub(crate) fn parse_number(text: &str) -> Option<u32> {
    let is_decimal = !text.is_empty() && text.bytes().all(|digit| digit.is_ascii_digit());
    if is_decimal { text.parse().ok() } else { None }
}
