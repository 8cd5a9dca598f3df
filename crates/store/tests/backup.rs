//! Backups: a restored store equals the original, and restoring a changed backup writes nothing.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use countersign_store::backup::{BackupError, Cost, backup, backup_at, restore};
use countersign_store::rescue::{Phrase, Rescue};
use countersign_store::{Error, KeyIndex, MAX_FILE, Store};
use serde_json::Value;
use tempfile::TempDir;

const PASSWORD: &str = "correct horse battery staple";
/// A cost that is cheap enough for tests without optimization.
const CHEAP: Cost = Cost { memory: 64, passes: 1, lanes: 1 };

fn id(order: u8) -> String {
    format!("{order:02x}").repeat(32)
}

fn store() -> (TempDir, Store) {
    let home = tempfile::tempdir().unwrap();
    let store = Store::open(home.path().join("store")).unwrap();
    store.keep_phrase(&Phrase::generate().unwrap()).unwrap();
    for order in [1, 2] {
        store.take_index().unwrap();
        let order = store.create(&id(order)).unwrap().lock().unwrap();
        order.create_new("request", b"{}").unwrap();
        order.create_new("secret", b"secret").unwrap();
        order.append("journal", b"{\"n\":1}").unwrap();
    }
    store.create(&id(3)).unwrap();
    (home, store)
}

fn content(store: &Store) -> Vec<(String, Vec<u8>)> {
    let mut content = vec![("rescue".to_owned(), store.phrase().unwrap().unwrap().words().as_bytes().to_vec())];
    for order in store.orders().unwrap() {
        let order = order.unwrap();
        content.push((order.id().to_owned(), vec![]));
        for name in order.documents().unwrap() {
            content.push((format!("{}/{name}", order.id()), order.read(&name).unwrap().unwrap().to_vec()));
        }
    }
    content
}

fn is_untouched(path: &Path) -> bool {
    !path.exists() || fs::read_dir(path).unwrap().next().is_none()
}

#[test]
fn everything_comes_back_at_the_default_cost() {
    let (home, store) = store();
    let kept = backup(&store, PASSWORD).unwrap();
    assert!(kept.left_out.is_empty(), "{:?}", kept.left_out);
    let restored = restore(&kept.bytes, PASSWORD, home.path().join("other")).unwrap();
    assert_eq!(content(&restored), content(&store));
    let next = restored.next_index().unwrap();
    assert!(next.branch != 0 && next.index == 0, "{next:?}");
    assert_eq!(content(&Store::open(home.path().join("other")).unwrap()), content(&store));
    let text = String::from_utf8_lossy(&kept.bytes);
    assert!(!text.contains("request") && !text.contains(&id(1)));
}

#[test]
fn opens_a_backup_that_other_libraries_made() {
    let vector: Value = serde_json::from_str(include_str!("vectors/backup.json")).unwrap();
    let bytes = hex::decode(vector["backup"].as_str().unwrap()).unwrap();
    let home = tempfile::tempdir().unwrap();
    let store = restore(&bytes, vector["password"].as_str().unwrap(), home.path()).unwrap();
    // The index in the backup belongs to another branch.
    assert_eq!(store.next_index().unwrap().index, 0);
    assert_ne!(store.next_index().unwrap().branch, 0);
    let entry = |path: &str| hex::decode(vector["entries"][path].as_str().unwrap()).unwrap();
    let order = store.open_order(&id(10)).unwrap();
    for name in ["journal", "request"] {
        assert_eq!(*order.read(name).unwrap().unwrap(), entry(&format!("orders/{}/{name}", id(10))));
    }
    assert_eq!(store.phrase().unwrap().unwrap().words().as_bytes(), entry("rescue"));
}

#[test]
fn tampering_is_refused_before_anything_is_written() {
    let (home, store) = store();
    let bytes = backup_at(&store, PASSWORD, CHEAP).unwrap().bytes;
    let target = home.path().join("other");
    let refused = |bytes: &[u8], password: &str| {
        let error = restore(bytes, password, &target).map(|_| ()).unwrap_err();
        assert!(is_untouched(&target));
        error
    };
    assert!(matches!(refused(&bytes, "correct horse battery stapler"), BackupError::WrongPasswordOrDamaged));
    assert!(matches!(refused(&bytes, ""), BackupError::WrongPasswordOrDamaged));
    for len in (0..bytes.len()).step_by(3) {
        let error = refused(&bytes[..len], PASSWORD);
        assert!(matches!(error, BackupError::NotABackup | BackupError::WrongPasswordOrDamaged), "{len}: {error}");
    }
    // Every bit of the header except the cost, which has a separate test, and one bit of every other byte.
    for (at, bit) in (0..62 * 8).map(|bit| (bit / 8, bit % 8)).chain((62..bytes.len()).map(|at| (at, at % 8))) {
        if (10..22).contains(&at) {
            continue;
        }
        let mut changed = bytes.clone();
        changed[at] ^= 1 << bit;
        let error = refused(&changed, PASSWORD);
        let expected = match at {
            0..8 => matches!(error, BackupError::NotABackup),
            8..10 => matches!(error, BackupError::NewerVersion { max: 1, .. } | BackupError::NotABackup),
            _ => matches!(error, BackupError::WrongPasswordOrDamaged),
        };
        assert!(expected, "{at}: {error}");
    }
    let mut longer = bytes.clone();
    longer.push(0);
    assert!(matches!(refused(&longer, PASSWORD), BackupError::WrongPasswordOrDamaged));
    assert_eq!(content(&restore(&bytes, PASSWORD, &target).unwrap()), content(&store));
}

#[test]
fn hostile_costs_are_refused_at_once() {
    let (home, store) = store();
    let bytes = backup_at(&store, PASSWORD, CHEAP).unwrap().bytes;
    let max = u32::MAX;
    for (memory, passes, lanes) in [
        (max, 1, 1),
        ((1 << 20) + 1, 1, 1),
        (64, max, 1),
        (64, 17, 1),
        (1 << 20, 1, 17),
        (1 << 20, 1, max),
        (0, 1, 1),
        (64, 0, 1),
        (64, 1, 0),
        (7, 1, 1),
    ] {
        let mut hostile = bytes.clone();
        let numbers: Vec<u8> = [memory, passes, lanes].into_iter().flat_map(u32::to_be_bytes).collect();
        hostile[10..22].copy_from_slice(&numbers);
        let error = restore(&hostile, PASSWORD, home.path().join("other")).map(|_| ()).unwrap_err();
        assert!(matches!(error, BackupError::Cost { .. }), "{memory} {passes} {lanes}: {error}");
    }
    // A cost within bounds that is not the authenticated one.
    let mut cheaper = bytes;
    cheaper[13] = 32;
    assert!(matches!(restore(&cheaper, PASSWORD, home.path().join("other")), Err(BackupError::WrongPasswordOrDamaged)));
    assert!(matches!(backup_at(&store, "1234567", CHEAP), Err(BackupError::PasswordTooShort)));
}

#[test]
fn restores_into_an_empty_directory_only() {
    let (home, store) = store();
    let bytes = backup_at(&store, PASSWORD, CHEAP).unwrap().bytes;
    let before = content(&store);
    assert!(matches!(restore(&bytes, PASSWORD, home.path().join("store")), Err(BackupError::NotEmpty { .. })));
    assert_eq!(content(&store), before);
    let foreign = tempfile::tempdir().unwrap();
    fs::write(foreign.path().join("a"), "").unwrap();
    assert!(matches!(restore(&bytes, PASSWORD, foreign.path()), Err(BackupError::NotEmpty { name }) if name == "a"));
    assert_eq!(fs::read_dir(foreign.path()).unwrap().count(), 1);
}

#[test]
fn what_cannot_be_read_is_named_and_keeps_nothing_else_out() {
    let (home, store) = store();
    let orders = home.path().join("store/orders");
    fs::write(orders.join(id(4)), "").unwrap();
    fs::write(orders.join("stray"), "").unwrap();
    fs::write(orders.join(id(1)).join("Notes"), "").unwrap();
    fs::create_dir(orders.join(id(1)).join("record")).unwrap();
    let kept = backup_at(&store, PASSWORD, CHEAP).unwrap();
    let mut names: Vec<_> = kept.left_out.iter().map(|(path, error)| (path.replace("orders/", ""), error.is_some())).collect();
    names.sort();
    let expected = [(format!("{}/Notes", id(1)), false), (format!("{}/record", id(1)), true), (id(4), true), ("stray".to_owned(), false)];
    assert_eq!(names, expected);
    assert_eq!(restore(&kept.bytes, PASSWORD, home.path().join("other")).unwrap().orders().unwrap().len(), 3);

    // The index is not needed: the restored store has a branch of its own.
    fs::write(home.path().join("store/index"), "garbage").unwrap();
    let kept = backup_at(&store, PASSWORD, CHEAP).unwrap();
    assert_eq!(restore(&kept.bytes, PASSWORD, home.path().join("third")).unwrap().take_index().unwrap().index, 0);
    fs::write(home.path().join("store/rescue"), "garbage").unwrap();
    assert!(matches!(backup_at(&store, PASSWORD, CHEAP), Err(BackupError::Store(Error::Phrase(_)))));
}

#[test]
fn one_backup_restored_several_times_gives_different_secrets() {
    let (home, store) = store();
    let bytes = backup_at(&store, PASSWORD, CHEAP).unwrap().bytes;
    let rescue = Rescue::new(&store.phrase().unwrap().unwrap()).unwrap();
    let hash = |taken: KeyIndex| rescue.branch(taken.branch).unwrap().secret_hash(taken.index).unwrap();
    // The original goes on after the backup. Branches are random, so two of three could be the same, once in 20,000 times.
    let used: Vec<_> = (0..3).map(|_| hash(store.take_index().unwrap())).collect();
    let restored: BTreeSet<_> = (0..3)
        .map(|copy| restore(&bytes, PASSWORD, home.path().join(format!("copy{copy}"))).unwrap())
        .map(|copy| hash(copy.take_index().unwrap()))
        .collect();
    assert!(restored.len() >= 2, "{restored:?}");
    assert!(used.iter().all(|hash| !restored.contains(hash)));
}

#[test]
fn what_is_known_about_contracts_comes_back() {
    let (home, store) = store();
    store.update_contracts(|kept| kept.is_none().then(|| b"{}".to_vec())).unwrap();
    // Nothing new: nothing is written.
    store.update_contracts(|kept| kept.is_none().then(|| b"other".to_vec())).unwrap();
    let bytes = backup_at(&store, PASSWORD, CHEAP).unwrap().bytes;
    let restored = restore(&bytes, PASSWORD, home.path().join("other")).unwrap();
    assert_eq!(**restored.contracts().unwrap().unwrap(), *b"{}");
}

#[test]
fn an_interrupted_creation_is_in_no_backup() {
    let (home, store) = store();
    // The files that a killed process leaves while it creates an order.
    let left = home.path().join("store/orders").join(format!(".new-{}", id(9)));
    fs::create_dir(&left).unwrap();
    fs::write(left.join("secret"), "of an attempt that ended early").unwrap();
    let kept = backup_at(&store, PASSWORD, CHEAP).unwrap();
    assert!(kept.left_out.is_empty(), "{:?}", kept.left_out);
    assert_eq!(
        (store.orders().unwrap().len(), restore(&kept.bytes, PASSWORD, home.path().join("other")).unwrap().orders().unwrap().len()),
        (3, 3)
    );
    // The next attempt does not mix with it.
    let order = store.lock_store().unwrap().create_order(&id(9), &[("request", b"{}")]).unwrap();
    assert_eq!(order.documents().unwrap(), ["request"]);
    assert!(!left.exists());
}

#[test]
fn a_long_journal_is_in_the_backup() {
    let (home, store) = store();
    let line = format!("{{\"text\":\"{}\"}}", "x".repeat(MAX_FILE));
    store.open_order(&id(1)).unwrap().lock().unwrap().append("journal", line.as_bytes()).unwrap();
    let kept = backup_at(&store, PASSWORD, CHEAP).unwrap();
    assert!(kept.left_out.is_empty(), "{:?}", kept.left_out);
    let restored = restore(&kept.bytes, PASSWORD, home.path().join("other")).unwrap();
    assert_eq!(restored.open_order(&id(1)).unwrap().read_journal("journal").unwrap().entries.len(), 2);
}

#[test]
fn an_order_that_is_being_written_is_consistent() {
    let (home, store) = store();
    let done = Arc::new(AtomicBool::new(false));
    let writer = std::thread::spawn({
        let (store, done) = (store.clone(), Arc::clone(&done));
        move || {
            for round in 0.. {
                if done.load(Ordering::Relaxed) {
                    break;
                }
                let order = store.open_order(&id(1)).unwrap().lock_within(Duration::from_secs(30)).unwrap();
                order.write("first", format!("{round}").as_bytes()).unwrap();
                order.write("second", format!("{round}").as_bytes()).unwrap();
                drop(order);
                std::thread::sleep(Duration::from_millis(2));
            }
        }
    });
    for round in 0..20 {
        let kept = backup_at(&store, PASSWORD, CHEAP).unwrap();
        let restored = restore(&kept.bytes, PASSWORD, home.path().join(format!("other{round}"))).unwrap();
        let order = restored.open_order(&id(1)).unwrap();
        assert_eq!(order.read("first").unwrap(), order.read("second").unwrap());
    }
    done.store(true, Ordering::Relaxed);
    writer.join().unwrap();
}
