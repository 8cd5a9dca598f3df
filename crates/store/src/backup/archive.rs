//! The unencrypted archive inside a backup: paths and contents. Only the paths of a store are accepted.

use std::collections::BTreeMap;

use zeroize::Zeroizing;

use super::BackupError;
use super::container::MAX_ARCHIVE;
use crate::folder::{MAX_JOURNAL, is_document_name};
use crate::index::INDEX_FILE;
use crate::store::{CONTRACTS_FILE, ORDERS, RESCUE_FILE, VERSION, is_order_name};

/// The place of an entry in the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Place<'a> {
    /// What is known about contracts.
    Contracts,
    /// The next index of the original store, in backups of earlier versions. A restored store has indices of its own.
    Index,
    /// The rescue phrase.
    Rescue,
    /// The directory of the order with this id.
    Order(&'a str),
    /// A document, by the order's id and the document's name.
    Document(&'a str, &'a str),
}

impl<'a> Place<'a> {
    fn parse(path: &'a str) -> Option<Self> {
        match path {
            CONTRACTS_FILE => return Some(Self::Contracts),
            INDEX_FILE => return Some(Self::Index),
            RESCUE_FILE => return Some(Self::Rescue),
            _ => {}
        }
        let (id, name) = path.strip_prefix(ORDERS)?.strip_prefix('/')?.split_once('/')?;
        if !is_order_name(id) {
            return None;
        }
        match name {
            "" => Some(Self::Order(id)),
            name if is_document_name(name) => Some(Self::Document(id, name)),
            _ => None,
        }
    }
}

/// Serializes an archive, with the entries in the order of the map.
pub(super) fn write(entries: &BTreeMap<String, Zeroizing<Vec<u8>>>) -> Result<Zeroizing<Vec<u8>>, BackupError> {
    let size = entries.iter().map(|(path, bytes)| path.len().saturating_add(bytes.len()).saturating_add(6)).fold(4, usize::saturating_add);
    if size > MAX_ARCHIVE {
        return Err(BackupError::TooLarge);
    }
    let mut archive = Zeroizing::new(Vec::with_capacity(size));
    archive.extend_from_slice(&VERSION.to_be_bytes());
    for (path, bytes) in entries {
        let path_len = u16::try_from(path.len()).map_err(|_| BackupError::TooLarge)?;
        let len = u32::try_from(bytes.len()).map_err(|_| BackupError::TooLarge)?;
        archive.extend_from_slice(&path_len.to_be_bytes());
        archive.extend_from_slice(path.as_bytes());
        archive.extend_from_slice(&len.to_be_bytes());
        archive.extend_from_slice(bytes);
    }
    Ok(archive)
}

/// Parses an archive up to its last byte.
pub(super) fn read(mut archive: &[u8]) -> Result<BTreeMap<Place<'_>, &[u8]>, BackupError> {
    const CUT_OFF: BackupError = BackupError::Content { reason: "the archive is truncated" };
    let actual = u32::from_be_bytes(take(&mut archive).ok_or(CUT_OFF)?);
    if actual > VERSION {
        return Err(BackupError::NewerVersion { actual, max: VERSION });
    }
    let mut entries = BTreeMap::new();
    let mut last = "";
    while !archive.is_empty() {
        let path_len = u16::from_be_bytes(take(&mut archive).ok_or(CUT_OFF)?);
        let path = split(&mut archive, usize::from(path_len)).ok_or(CUT_OFF)?;
        let len = u32::from_be_bytes(take(&mut archive).ok_or(CUT_OFF)?);
        let len = usize::try_from(len).ok().filter(|len| *len <= MAX_JOURNAL);
        let bytes = split(&mut archive, len.ok_or(BackupError::Content { reason: "a document is too large" })?).ok_or(CUT_OFF)?;

        let path = std::str::from_utf8(path).map_err(|_| BackupError::Content { reason: "a path is not text" })?;
        // Strictly ascending paths cannot repeat.
        if path <= last {
            return Err(BackupError::Content { reason: "the paths are not in ascending order" });
        }
        last = path;
        let place = Place::parse(path).ok_or(BackupError::Content { reason: "a path does not belong to a store" })?;
        match place {
            Place::Document(id, _) if !entries.contains_key(&Place::Order(id)) => {
                return Err(BackupError::Content { reason: "a document without its order" });
            }
            Place::Order(_) if !bytes.is_empty() => return Err(BackupError::Content { reason: "a directory with content" }),
            place => entries.insert(place, bytes),
        };
    }
    Ok(entries)
}

/// Splits off the first `N` bytes; `None` if there are fewer.
pub(super) fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (first, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(*first)
}

fn split<'a>(bytes: &mut &'a [u8], len: usize) -> Option<&'a [u8]> {
    let (first, rest) = bytes.split_at_checked(len)?;
    *bytes = rest;
    Some(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn archive(entries: &[(&str, &[u8])]) -> Vec<u8> {
        let mut archive = VERSION.to_be_bytes().to_vec();
        for (path, bytes) in entries {
            archive.extend_from_slice(&u16::try_from(path.len()).unwrap().to_be_bytes());
            archive.extend_from_slice(path.as_bytes());
            archive.extend_from_slice(&u32::try_from(bytes.len()).unwrap().to_be_bytes());
            archive.extend_from_slice(bytes);
        }
        archive
    }

    fn reason(entries: &[(&str, &[u8])]) -> String {
        read(&archive(entries)).unwrap_err().to_string().replace("the content of the backup is invalid: ", "")
    }

    #[test]
    fn only_paths_of_a_store_are_accepted() {
        let order = format!("orders/{}/", "0a".repeat(32));
        let document = format!("{order}request");
        assert_eq!(read(&archive(&[("index", b"1"), (&order, b""), (&document, b"x"), ("rescue", b"")])).unwrap().len(), 4);
        let upper = order.to_uppercase().replace("ORDERS", "orders");
        for path in [
            "",
            "/",
            "..",
            "../index",
            "/etc/passwd",
            "version",
            "lock",
            "orders",
            "orders/",
            "orders/..",
            "orders/../x",
            "index/",
            "INDEX",
            "orders/0a/x",
            "C:\\x",
            "index\0",
            &upper,
            &format!("{order}.."),
            &format!("{order}../rescue"),
            &format!("{order}a/b"),
            &format!("{order}lock"),
            &format!("{order}.new-a"),
            &format!("{order}A"),
            &format!("{order}nul"),
            &format!("{order}a\\b"),
            &format!("/{document}"),
            &format!("orders//{}", "0a".repeat(32)),
        ] {
            let expected = if path.is_empty() { "the paths are not in ascending order" } else { "a path does not belong to a store" };
            assert_eq!(reason(&[(path, b"")]), expected, "{path}");
        }
        assert_eq!(reason(&[(&document, b"x")]), "a document without its order");
        assert_eq!(reason(&[(&order, b"x")]), "a directory with content");
        assert_eq!(reason(&[("index", b"1"), ("index", b"2")]), "the paths are not in ascending order");
        assert_eq!(reason(&[("rescue", b"1"), ("index", b"2")]), "the paths are not in ascending order");
    }

    #[test]
    fn a_truncated_archive_is_refused_except_between_entries() {
        let whole = archive(&[("index", b"123"), ("rescue", b"words")]);
        let first = archive(&[("index", b"123")]).len();
        for len in 0..whole.len() {
            assert_eq!(read(&whole[..len]).is_ok(), len == 4 || len == first, "{len}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_panic(at in 0..200_usize, byte: u8, cut in 0..200_usize) {
            let order = format!("orders/{}/", "0a".repeat(32));
            let mut bytes = archive(&[("index", b"1"), (&order, b""), (&format!("{order}a"), b"xyz"), ("rescue", b"")]);
            bytes.truncate(cut);
            if let Some(place) = bytes.get_mut(at) {
                *place = byte;
            }
            let _ = read(&bytes);
        }
    }

    #[test]
    fn sizes_are_bounded() {
        // Zeros that are never touched take no memory. The map is not dropped, because wiping would touch them.
        let content = MAX_ARCHIVE.checked_sub(4 + 6 + "index".len()).unwrap();
        let entries = std::mem::ManuallyDrop::new(BTreeMap::from([("index".to_owned(), Zeroizing::new(vec![0; content + 1]))]));
        assert!(matches!(write(&entries), Err(BackupError::TooLarge)));

        let mut large = VERSION.to_be_bytes().to_vec();
        large.extend_from_slice(&[0, 5]);
        large.extend_from_slice(b"index");
        large.extend_from_slice(&u32::MAX.to_be_bytes());
        assert!(matches!(read(&large), Err(BackupError::Content { reason: "a document is too large" })));
        let newer = VERSION.checked_add(1).unwrap().to_be_bytes();
        assert!(matches!(read(&newer), Err(BackupError::NewerVersion { actual: 2, max: 1 })));
    }
}
