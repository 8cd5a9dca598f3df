//! The store on the real file system.

use std::fs;
use std::path::{Path, PathBuf};

use countersign_store::rescue::Phrase;
use countersign_store::{Error, INDICES, KeyIndex, Kind, MAX_FILE, MAX_JOURNAL, Store};
use tempfile::TempDir;

const WORDS: &str = "abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon about";

struct Home {
    directory: TempDir,
    store: Store,
}

impl Home {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(directory.path().join("store")).unwrap();
        Self { directory, store }
    }

    fn root(&self) -> PathBuf {
        self.directory.path().join("store")
    }

    fn reopen(&self) -> Result<Store, Error> {
        Store::open(self.root())
    }
}

fn id(order: u8) -> String {
    format!("{order:02x}").repeat(32)
}

fn every_file(directory: &Path) -> Vec<PathBuf> {
    let mut files = vec![];
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { files.extend(every_file(&path)) } else { files.push(path) }
    }
    files.sort();
    files
}

#[test]
fn an_order_id_that_repeats_is_refused() {
    let home = Home::new();
    let order = home.store.create(&id(0xab)).unwrap();
    assert_eq!(order.id(), id(0xab));
    for again in [id(0xab), id(0xab).to_uppercase()] {
        assert!(matches!(home.store.create(&again), Err(Error::OrderExists { order }) if order == id(0xab)));
        assert_eq!(home.store.open_order(&again).unwrap().id(), id(0xab));
    }
    assert!(matches!(home.store.open_order(&id(1)), Err(Error::OrderNotFound { .. })));
    for text in ["", "..", &"g".repeat(64), &"0".repeat(63), &format!("0x{}", "0".repeat(62)), &format!("../{}", "0".repeat(61))] {
        assert!(matches!(home.store.create(text), Err(Error::OrderId)), "{text}");
    }
}

#[test]
fn documents_are_replaced_whole_and_some_never() {
    let home = Home::new();
    let order = home.store.create(&id(1)).unwrap().lock().unwrap();
    assert!(order.read("record").unwrap().is_none() && !order.exists("record").unwrap());
    order.write("record", b"a long first version").unwrap();
    order.write("record", b"second").unwrap();
    assert_eq!(**order.read("record").unwrap().unwrap(), *b"second");

    order.create_new("request", b"{}").unwrap();
    assert!(matches!(order.create_new("request", b"{}"), Err(Error::Exists { .. })));
    order.write("secret", b"once").unwrap();
    assert!(matches!(order.write("secret", b"twice"), Err(Error::Exists { .. })));
    assert!(matches!(order.append("secret", b"{}"), Err(Error::Exists { .. })));
    assert_eq!(**order.read("secret").unwrap().unwrap(), *b"once");
    assert_eq!(order.documents().unwrap(), ["record", "request", "secret"]);

    for name in ["", "..", "a/b", "lock", ".new-record", "Record"] {
        assert!(matches!(order.write(name, b""), Err(Error::Name { .. })), "{name}");
        assert!(matches!(order.read(name), Err(Error::Name { .. })), "{name}");
    }
}

#[test]
fn what_could_not_be_read_back_is_not_written() {
    let home = Home::new();
    let order = home.store.create(&id(1)).unwrap().lock().unwrap();
    order.write("record", &vec![b' '; MAX_FILE]).unwrap();
    assert!(matches!(order.write("record", &vec![b' '; MAX_FILE + 1]), Err(Error::TooLarge { .. })));
    assert_eq!(order.read("record").unwrap().unwrap().len(), MAX_FILE);
    let entry = format!("{{\"a\":\"{}\"}}", "x".repeat(MAX_JOURNAL / 2));
    order.append("journal", entry.as_bytes()).unwrap();
    assert!(matches!(order.append("journal", entry.as_bytes()), Err(Error::TooLarge { limit: MAX_JOURNAL, .. })));
    assert!(matches!(order.replace_lines("journal", &[&entry, &entry]), Err(Error::TooLarge { .. })));
    assert_eq!(order.read_journal("journal").unwrap().entries.len(), 1);

    fs::write(home.root().join("orders").join(id(1)).join("record"), vec![0; MAX_FILE + 1]).unwrap();
    assert!(matches!(order.read("record"), Err(Error::TooLarge { file, .. }) if file == format!("orders/{}/record", id(1))));
}

#[test]
fn a_torn_line_is_not_continued() {
    let home = Home::new();
    let order = home.store.create(&id(1)).unwrap().lock().unwrap();
    order.append("journal", b"{\"n\":1}").unwrap();
    let file = home.root().join("orders").join(id(1)).join("journal");
    let mut torn = fs::read(&file).unwrap();
    torn.extend_from_slice(b"{\"n\":2,");
    fs::write(&file, &torn).unwrap();
    assert_eq!(order.read_journal("journal").unwrap().damaged_lines, [2]);
    order.append("journal", b"{\"n\":3}").unwrap();
    let journal = order.read_journal("journal").unwrap();
    assert_eq!(journal.entries.iter().map(|entry| entry.as_slice()).collect::<Vec<_>>(), [b"{\"n\":1}", b"{\"n\":3}"]);
    assert_eq!(journal.damaged_lines, [2]);
    for entry in ["", "7", "[]", "{", "{}\n", "{}\n{}", " {}", "{} x"] {
        assert!(matches!(order.append("journal", entry.as_bytes()), Err(Error::Line { .. })), "{entry:?}");
        assert!(matches!(order.replace_lines("journal", &["{}", entry]), Err(Error::Line { .. })), "{entry:?}");
    }
    assert_eq!(order.read_journal("journal").unwrap(), journal);
}

#[test]
fn a_journal_longer_than_a_document_is_read_extended_and_shortened() {
    let home = Home::new();
    let order = home.store.create(&id(1)).unwrap().lock().unwrap();
    let file = home.root().join("orders").join(id(1)).join("journal");
    let line = format!("{{\"n\":\"{}\"}}\n", "x".repeat(1 << 20));
    fs::write(&file, line.repeat(5)).unwrap();
    assert!(fs::metadata(&file).unwrap().len() > u64::try_from(MAX_FILE).unwrap());
    assert_eq!(order.read_journal("journal").unwrap().entries.len(), 5);
    order.append("journal", b"{\"n\":6}").unwrap();
    assert_eq!(order.read_journal("journal").unwrap().entries.len(), 6);
    order.replace_lines("journal", &["{\"n\":5}", "{\"n\":6}"]).unwrap();
    order.append("journal", b"{\"n\":7}").unwrap();
    assert_eq!(fs::read_to_string(&file).unwrap(), "{\"n\":5}\n{\"n\":6}\n{\"n\":7}\n");
    assert!(matches!(order.replace_lines("secret", &["{}"]), Err(Error::Exists { .. })));
    assert!(matches!(order.replace_lines("Journal", &["{}"]), Err(Error::Name { .. })));
    order.replace_lines("journal", &[""; 0]).unwrap();
    assert!(order.read_journal("journal").unwrap().entries.is_empty());
}

#[test]
fn one_of_many_threads_holds_the_lock() {
    let home = Home::new();
    home.store.create(&id(1)).unwrap();
    let barrier = std::sync::Barrier::new(8);
    let held: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|_| {
                scope.spawn(|| {
                    let order = home.store.open_order(&id(1)).unwrap();
                    barrier.wait();
                    order.lock()
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(held.iter().filter(|lock| lock.is_ok()).count(), 1);
    assert!(held.iter().flat_map(|lock| lock.as_ref().err()).all(|error| matches!(error, Error::Busy { .. })));
    drop(held);
    home.store.open_order(&id(1)).unwrap().lock().unwrap();
}

#[test]
fn a_host_that_has_the_store_open_and_the_program_exclude_each_other() {
    let home = tempfile::tempdir().unwrap();
    let store = Store::open(home.path()).unwrap();
    let order = store.create(&id(1)).unwrap();
    let open = || fs::File::options().read(true).write(true).open(home.path().join(".host-lock")).unwrap();
    // Programs do not exclude each other by it.
    let (held, other) = (order.lock().unwrap(), store.create(&id(2)).unwrap());
    let second = other.lock().unwrap();
    assert!(matches!(open().try_lock(), Err(fs::TryLockError::WouldBlock)));
    drop((held, second));
    let host = open();
    host.try_lock().unwrap();
    assert!(matches!(order.lock(), Err(Error::Busy { file }) if file == ".host-lock"));
    drop(host);
    order.lock().unwrap();
}

#[test]
fn indices_are_handed_out_once() {
    let home = Home::new();
    let mut taken: Vec<KeyIndex> = std::thread::scope(|scope| {
        let threads: Vec<_> =
            (0..4).map(|_| scope.spawn(|| (0..10).map(|_| home.store.take_index().unwrap()).collect::<Vec<_>>())).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    taken.sort_unstable();
    assert_eq!(taken, (0..40).map(first).collect::<Vec<_>>());
    assert_eq!(home.reopen().unwrap().next_index().unwrap(), first(40));
    // A file of an earlier version has neither a branch nor a place.
    fs::write(home.root().join("index"), format!("{}\n", INDICES - 1)).unwrap();
    assert_eq!(home.store.take_index().unwrap(), first(INDICES - 1));
    assert!(matches!(home.store.take_index(), Err(Error::IndicesExhausted)));
    // Another branch has indices again.
    let branch = home.store.start_branch().unwrap();
    assert_ne!(branch, 0);
    assert_eq!(home.store.take_index().unwrap(), KeyIndex { branch, index: 0 });
    assert_eq!(home.reopen().unwrap().take_index().unwrap(), KeyIndex { branch, index: 1 });
}

/// An index in the first branch.
fn first(index: u32) -> KeyIndex {
    KeyIndex { branch: 0, index }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let (path, name) = entry.map(|entry| (entry.path(), entry.file_name())).unwrap();
        if path.is_dir() { copy(&path, &to.join(name)) } else { fs::copy(&path, to.join(name)).map(|_| ()).unwrap() }
    }
}

#[test]
fn a_copied_directory_starts_a_branch_of_its_own() {
    let home = Home::new();
    assert_eq!(home.store.take_index().unwrap(), first(0));
    let elsewhere = home.directory.path().join("copy");
    copy(&home.root(), &elsewhere);
    let taken = Store::open(&elsewhere).unwrap().take_index().unwrap();
    assert!(taken.branch != 0 && taken.index == 0, "{taken:?}");
    // The copy stays in its branch, and the original in its own.
    assert_eq!(Store::open(&elsewhere).unwrap().take_index().unwrap(), KeyIndex { index: 1, ..taken });
    assert_eq!(home.store.take_index().unwrap(), first(1));
    // A copy of the copy is one too.
    copy(&elsewhere, &home.directory.path().join("third"));
    let third = Store::open(home.directory.path().join("third")).unwrap().take_index().unwrap();
    assert!(![0, taken.branch].contains(&third.branch) && third.index == 0, "{third:?}");
}

/// The original is removed and a copy takes its name, as after a reinstallation.
#[test]
fn a_copy_under_the_old_name_starts_a_branch_of_its_own() {
    let home = Home::new();
    home.store.take_index().unwrap();
    let saved = home.directory.path().join("saved");
    copy(&home.root(), &saved);
    home.store.take_index().unwrap();
    fs::remove_dir_all(home.root()).unwrap();
    copy(&saved, &home.root());
    assert_ne!(home.reopen().unwrap().take_index().unwrap().branch, 0);
}

#[cfg(unix)]
#[test]
fn an_index_that_went_back_starts_a_branch() {
    let home = Home::new();
    home.store.take_index().unwrap();
    let saved = fs::read(home.root().join("index")).unwrap();
    for _ in 0..2 {
        home.store.take_index().unwrap();
    }
    // Overwritten in place, and replaced by a new file.
    fs::write(home.root().join("index"), &saved).unwrap();
    let one = home.store.take_index().unwrap();
    assert_ne!(one.branch, 0);
    fs::remove_file(home.root().join("index")).unwrap();
    fs::write(home.root().join("index"), &saved).unwrap();
    assert_ne!(home.store.take_index().unwrap().branch, 0);
}

/// Links to the files of the original have its inode numbers, but the directory differs.
#[cfg(unix)]
#[test]
fn a_copy_of_links_starts_a_branch_of_its_own() {
    let home = Home::new();
    home.store.take_index().unwrap();
    let elsewhere = home.directory.path().join("links");
    fs::create_dir_all(elsewhere.join("orders")).unwrap();
    for name in ["index", "version"] {
        fs::hard_link(home.root().join(name), elsewhere.join(name)).unwrap();
    }
    assert_ne!(Store::open(&elsewhere).unwrap().take_index().unwrap().branch, 0);
    assert_eq!(home.store.take_index().unwrap(), first(1));
}

#[cfg(unix)]
#[test]
fn a_moved_directory_stays_in_its_branch() {
    let home = Home::new();
    home.store.take_index().unwrap();
    fs::rename(home.root(), home.directory.path().join("moved")).unwrap();
    assert_eq!(Store::open(home.directory.path().join("moved")).unwrap().take_index().unwrap(), first(1));
}

#[test]
fn many_first_uses_share_one_phrase() {
    for _ in 0..20 {
        let home = tempfile::tempdir().unwrap();
        let barrier = std::sync::Barrier::new(6);
        let phrases: Vec<(String, bool)> = std::thread::scope(|scope| {
            let first_use = || {
                let store = Store::open(home.path().join("store")).unwrap();
                barrier.wait();
                let (phrase, is_new) = store.first_phrase().unwrap();
                (phrase.words().to_string(), is_new)
            };
            let threads: Vec<_> = (0..6).map(|_| scope.spawn(first_use)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(phrases.iter().all(|(words, _)| *words == phrases[0].0));
        assert_eq!(phrases.iter().filter(|(_, is_new)| *is_new).count(), 1);
    }
}

#[test]
fn many_can_make_one_store_at_the_same_time() {
    for _ in 0..20 {
        let home = tempfile::tempdir().unwrap();
        let barrier = std::sync::Barrier::new(6);
        let mut taken: Vec<KeyIndex> = std::thread::scope(|scope| {
            let open = || {
                barrier.wait();
                Store::open(home.path().join("a/new/store")).unwrap().take_index().unwrap()
            };
            let threads: Vec<_> = (0..6).map(|_| scope.spawn(open)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        taken.sort_unstable();
        assert_eq!(taken, [0, 1, 2, 3, 4, 5].map(first));
    }
}

#[test]
fn an_index_is_never_guessed() {
    let home = Home::new();
    for content in [
        "",
        "\n",
        "-1\n",
        "+1\n",
        "1",
        "1 \n",
        "2147483649\n",
        "99999999999\n",
        "x\n",
        "1 2\n",
        "1 65536 a\n",
        "1 2 \n",
        "1 2 a b\n",
        " 1 2 a\n",
        "1  a\n",
    ] {
        fs::write(home.root().join("index"), content).unwrap();
        assert!(matches!(home.store.take_index(), Err(Error::Damaged { .. })), "{content:?}");
        assert_eq!(fs::read_to_string(home.root().join("index")).unwrap(), content);
    }
    fs::remove_file(home.root().join("index")).unwrap();
    assert!(matches!(home.reopen().unwrap().take_index(), Err(Error::Damaged { .. })));
}

#[test]
fn the_phrase_is_kept_once() {
    let home = Home::new();
    assert!(home.store.phrase().unwrap().is_none());
    home.store.keep_phrase(&Phrase::parse(WORDS).unwrap()).unwrap();
    assert!(matches!(home.store.keep_phrase(&Phrase::generate().unwrap()), Err(Error::Exists { .. })));
    assert_eq!(*home.reopen().unwrap().phrase().unwrap().unwrap().words(), WORDS);
    for content in [&b"abandon"[..], b"\xff\xfe", &WORDS.replace("about", "zebra").into_bytes()] {
        fs::write(home.root().join("rescue"), content).unwrap();
        let error = home.store.phrase().unwrap_err();
        assert!(matches!(error, Error::Phrase(_) | Error::Damaged { .. }));
        assert!(!format!("{error} {error:?}").contains("abandon"));
    }
}

#[test]
fn a_newer_store_is_refused_and_left_alone() {
    let home = Home::new();
    fs::write(home.root().join("version"), "2\n").unwrap();
    let before = every_file(&home.root());
    let error = home.reopen().unwrap_err();
    assert_eq!(error.to_string(), "the store has version 2; this program supports versions up to 1");
    assert_eq!(every_file(&home.root()), before);
    fs::write(home.root().join("version"), "two\n").unwrap();
    assert!(matches!(home.reopen(), Err(Error::Damaged { .. })));
}

#[test]
fn a_directory_that_is_not_a_store_is_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("photo.jpg"), "x").unwrap();
    assert!(matches!(Store::open(directory.path()), Err(Error::NotAStore { name }) if name == "photo.jpg"));
    assert_eq!(every_file(directory.path()).len(), 1);

    // A store whose version was deleted must not become a new store, whose indices would begin at 0 again.
    let home = Home::new();
    home.store.create(&id(1)).unwrap();
    fs::remove_file(home.root().join("version")).unwrap();
    assert!(matches!(home.reopen(), Err(Error::NotAStore { .. })));
    let file = home.directory.path().join("file");
    fs::write(&file, "").unwrap();
    assert!(Store::open(&file).is_err() && Store::open(file.join("below")).is_err());
}

#[test]
fn garbage_in_every_file_is_reported_by_name() {
    let home = Home::new();
    home.store.keep_phrase(&Phrase::parse(WORDS).unwrap()).unwrap();
    for order in [1, 2] {
        let order = home.store.create(&id(order)).unwrap().lock().unwrap();
        order.create_new("request", b"{}").unwrap();
        order.append("journal", b"{}").unwrap();
    }
    for file in every_file(&home.root()) {
        if file.file_name().unwrap() != "version" {
            fs::write(file, b"\x00\xff garbage {").unwrap();
        }
    }
    // Files in place of directories, and directories in place of files.
    let orders = home.root().join("orders");
    fs::write(orders.join(id(3)), "").unwrap();
    fs::create_dir(orders.join(id(1)).join("record")).unwrap();
    fs::create_dir(orders.join(id(4))).unwrap();
    fs::create_dir(orders.join(id(4)).join("lock")).unwrap();
    fs::create_dir(orders.join("not an order")).unwrap();

    let store = home.reopen().unwrap();
    let found = store.orders().unwrap();
    assert_eq!(found.len(), 4);
    assert!(matches!(&found[2], Err(Error::WrongKind { file, actual: Kind::File, .. }) if *file == format!("orders/{}", id(3))));
    let order = found[0].as_ref().unwrap();
    assert_eq!(**order.read("request").unwrap().unwrap(), *b"\x00\xff garbage {");
    assert_eq!(order.read_journal("journal").unwrap().damaged_lines, [1]);
    let locked = order.lock().unwrap();
    assert!(matches!(locked.read("record"), Err(Error::WrongKind { actual: Kind::Directory, .. })));
    assert!(locked.exists("record").is_err() && locked.write("record", b"").is_err());
    assert!(matches!(locked.create_new("record", b""), Err(Error::Exists { .. })));
    // An entry can be appended after garbage.
    locked.append("journal", b"{\"n\":1}").unwrap();
    assert_eq!(locked.read_journal("journal").unwrap().entries.len(), 1);
    assert!(matches!(found[3].as_ref().unwrap().lock(), Err(Error::WrongKind { .. })));
    assert!(store.phrase().is_err() && store.next_index().is_err());
    assert!([store.phrase().unwrap_err(), store.next_index().unwrap_err()].iter().all(|error| !error.advice().is_empty()));
}

#[cfg(unix)]
#[test]
fn files_are_the_users_alone_and_links_are_not_followed() {
    use std::os::unix::fs::{PermissionsExt, symlink};

    let home = Home::new();
    home.store.keep_phrase(&Phrase::parse(WORDS).unwrap()).unwrap();
    let order = home.store.create(&id(1)).unwrap().lock().unwrap();
    order.create_new("secret", b"x").unwrap();
    order.append("journal", b"{}").unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    for file in every_file(&home.root()) {
        assert_eq!(mode(&file), 0o600, "{}", file.display());
    }
    let directory = home.root().join("orders").join(id(1));
    for directory in [home.root(), home.root().join("orders"), directory.clone()] {
        assert_eq!(mode(&directory), 0o700, "{}", directory.display());
    }

    let outside = home.directory.path().join("outside");
    fs::write(&outside, "untouched").unwrap();
    for name in ["record", "other"] {
        symlink(&outside, directory.join(name)).unwrap();
    }
    symlink(&outside, directory.join(".new-fresh")).unwrap();
    assert!(matches!(order.write("record", b"y"), Err(Error::WrongKind { actual: Kind::Link, .. })));
    assert!(matches!(order.append("record", b"{}"), Err(Error::WrongKind { actual: Kind::Link, .. })));
    assert!(matches!(order.create_new("other", b"y"), Err(Error::Exists { .. })));
    order.write("fresh", b"y").unwrap();
    assert_eq!(fs::read_to_string(&outside).unwrap(), "untouched");
    // A link in place of an order is not followed either.
    symlink(&directory, home.root().join("orders").join(id(2))).unwrap();
    assert!(matches!(home.store.open_order(&id(2)), Err(Error::WrongKind { .. })));
    assert!(matches!(home.store.create(&id(2)), Err(Error::OrderExists { .. })));
}

#[test]
fn the_default_path_is_the_programs_own() {
    assert_eq!(Store::default_path().unwrap().file_name().unwrap(), "countersign");
}
