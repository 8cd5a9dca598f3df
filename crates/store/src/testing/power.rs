//! Cuts the power before every disk operation of many sequences. No write that returned is lost, no document is half written, and the
//! store opens again.
#![allow(clippy::arithmetic_side_effects, reason = "a test")]

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use proptest::collection::vec;
use proptest::prelude::{Strategy, any, prop_oneof};
use proptest::test_runner::{Config, TestRunner};

use super::MemoryDisk;
use crate::backup::{Cost, backup_at, restore_on};
use crate::rescue::Phrase;
use crate::{Error, KeyIndex, Store};

const PATH: &str = "/home/user/store";
const NAMES: [&str; 3] = ["request", "record", "secret"];
const WORDS: &str = "legal winner thank year wave sausage worth useful legal winner thank yellow";

#[derive(Debug, Clone)]
enum Operation {
    CreateOrder(u8),
    CreateWhole(u8, Vec<u8>),
    CreateNew(u8, usize, Vec<u8>),
    Write(u8, usize, Vec<u8>),
    Append(u8, u32),
    ReplaceLines(u8, Vec<u32>),
    TakeIndex,
    StartBranch,
    KeepPhrase,
}

/// What successful calls have reported to the caller.
#[derive(Debug, Default)]
struct Told {
    orders: BTreeMap<u8, BTreeMap<usize, Vec<u8>>>,
    journals: BTreeMap<u8, Vec<Vec<u8>>>,
    /// The last index that was handed out; `None` after another branch was started, which may be one of earlier.
    last: Option<KeyIndex>,
    phrase: bool,
}

fn id(order: u8) -> String {
    format!("{order:02x}").repeat(32)
}

fn entry(number: u32) -> Vec<u8> {
    format!("{{\"number\":{number},\"text\":\"{}\"}}", "x".repeat(usize::try_from(number % 40).unwrap())).into_bytes()
}

/// Carries out an operation. An operation that is not possible, such as one on an order that does not exist, does nothing.
fn carry_out(store: &Store, operation: &Operation, told: &mut Told) -> Result<(), Error> {
    match operation {
        Operation::CreateOrder(order) => match store.create(&id(*order)) {
            Err(Error::OrderExists { .. }) => assert!(told.orders.contains_key(order)),
            created => {
                created?;
                assert!(told.orders.insert(*order, BTreeMap::new()).is_none(), "an id was accepted twice");
            }
        },
        Operation::CreateWhole(order, bytes) => {
            match store.lock_store()?.create_order(&id(*order), &[(NAMES[0], bytes), (NAMES[2], bytes)]) {
                Err(Error::OrderExists { .. }) => assert!(told.orders.contains_key(order)),
                created => {
                    created?;
                    let documents = BTreeMap::from([(0, bytes.clone()), (2, bytes.clone())]);
                    assert!(told.orders.insert(*order, documents).is_none(), "an id was accepted twice");
                }
            }
        }
        Operation::CreateNew(order, name, bytes) | Operation::Write(order, name, bytes) => {
            let Some(documents) = told.orders.get_mut(order) else { return Ok(()) };
            let locked = store.open_order(&id(*order))?.lock()?;
            let new = matches!(operation, Operation::CreateNew(..));
            let written = if new { locked.create_new(NAMES[*name], bytes) } else { locked.write(NAMES[*name], bytes) };
            match written {
                Err(Error::Exists { .. }) => assert!(documents.contains_key(name) && (new || NAMES[*name] == "secret")),
                written => {
                    written?;
                    documents.insert(*name, bytes.clone());
                }
            }
        }
        Operation::Append(order, number) => {
            if told.orders.contains_key(order) {
                store.open_order(&id(*order))?.lock()?.append("journal", &entry(*number))?;
                told.journals.entry(*order).or_default().push(entry(*number));
            }
        }
        Operation::ReplaceLines(order, numbers) => {
            if told.orders.contains_key(order) {
                let lines: Vec<_> = numbers.iter().map(|number| entry(*number)).collect();
                store.open_order(&id(*order))?.lock()?.replace_lines("journal", &lines)?;
                told.journals.insert(*order, lines);
            }
        }
        Operation::TakeIndex => {
            let index = store.take_index()?;
            assert!(told.last.is_none_or(|last| last.branch == index.branch && last < index), "{index:?} after {:?}", told.last);
            told.last = Some(index);
        }
        Operation::StartBranch => {
            told.last = None;
            let before = store.next_index()?;
            let branch = store.start_branch()?;
            assert!(branch != 0 && branch != before.branch);
            assert_eq!(store.next_index()?, KeyIndex { branch, index: 0 });
        }
        Operation::KeepPhrase => match store.keep_phrase(&Phrase::parse(WORDS).unwrap()) {
            Err(Error::Exists { .. }) => assert!(told.phrase),
            kept => {
                kept?;
                told.phrase = true;
            }
        },
    }
    Ok(())
}

/// Compares the store with what was reported to the caller. Only for the interrupted operation are both outcomes allowed.
fn check(store: &Store, told: &mut Told, under_way: Option<&Operation>) -> Result<(), String> {
    let found: Vec<_> = store.orders().unwrap().into_iter().map(|order| order.unwrap()).collect();
    let created = match under_way {
        Some(Operation::CreateOrder(order) | Operation::CreateWhole(order, _)) => Some(*order),
        _ => None,
    };
    for order in 0..=2_u8 {
        let directory = found.iter().find(|directory| directory.id() == id(order));
        let Some(directory) = directory else {
            if told.orders.contains_key(&order) {
                return Err(format!("order {order} is lost"));
            }
            continue;
        };
        if !told.orders.contains_key(&order) && created != Some(order) {
            return Err(format!("order {order} appeared"));
        }
        let documents = told.orders.entry(order).or_insert_with(|| match under_way {
            // An order that appears has all its documents.
            Some(Operation::CreateWhole(_, bytes)) => BTreeMap::from([(0, bytes.clone()), (2, bytes.clone())]),
            _ => BTreeMap::new(),
        });
        for (name, text) in NAMES.iter().enumerate() {
            let found = directory.read(text).map_err(|error| error.to_string())?.map(|bytes| bytes.to_vec());
            let new = match under_way {
                Some(Operation::CreateNew(o, n, bytes) | Operation::Write(o, n, bytes)) if (*o, *n) == (order, name) => Some(bytes),
                _ => None,
            };
            if found.as_ref() != documents.get(&name) && (found.is_none() || found.as_ref() != new) {
                return Err(format!("order {order}, {text}: found {found:?}, told {:?}, under way {new:?}", documents.get(&name)));
            }
            if let Some(found) = found {
                documents.insert(name, found);
            }
        }
        let journal = directory.read_journal("journal").unwrap();
        let lines = told.journals.entry(order).or_default();
        if journal.entries.len() == lines.len() + 1
            && let Some(Operation::Append(o, number)) = under_way
            && *o == order
        {
            lines.push(entry(*number));
        }
        let equals = |lines: &[Vec<u8>]| journal.entries.iter().map(|line| line.as_slice()).eq(lines.iter().map(Vec::as_slice));
        if let Some(Operation::ReplaceLines(o, numbers)) = under_way
            && *o == order
        {
            let new: Vec<_> = numbers.iter().map(|number| entry(*number)).collect();
            if equals(&new) {
                *lines = new;
            }
        }
        if !journal.entries.iter().map(|line| line.as_slice()).eq(lines.iter().map(Vec::as_slice)) {
            return Err(format!("order {order}: the journal has {} entries of {}", journal.entries.len(), lines.len()));
        }
    }
    match store.phrase() {
        Ok(Some(phrase)) => {
            if phrase.words().as_str() != WORDS {
                return Err("another phrase".to_owned());
            }
            told.phrase = true;
        }
        Ok(None) if told.phrase => return Err("the phrase is lost".to_owned()),
        Ok(None) => {}
        Err(error) => return Err(error.to_string()),
    }
    let next = store.next_index().map_err(|error| error.to_string())?;
    if told.last.is_some_and(|last| last >= next || last.branch != next.branch) {
        return Err("the next index fell back".to_owned());
    }
    Ok(())
}

/// Runs operations until the power is cut, and returns the interrupted one; `None` if opening the store was interrupted.
fn run<'a>(disk: &MemoryDisk, operations: &'a [Operation], told: &mut Told) -> Result<Option<&'a Operation>, usize> {
    let off = |error: &Error| matches!(error, Error::Disk { .. });
    let store = match Store::open_on(Arc::new(disk.clone()), Path::new(PATH)) {
        Ok(store) => store,
        Err(error) => {
            assert!(off(&error), "{error}");
            return Ok(None);
        }
    };
    for operation in operations {
        if let Err(error) = carry_out(&store, operation, told) {
            assert!(off(&error), "{operation:?}: {error}");
            return Ok(Some(operation));
        }
    }
    Err(operations.len())
}

/// Cuts the power at every step of `operations`, and a second time while they run again on what is left.
fn survives(operations: &[Operation], new_disk: fn() -> MemoryDisk) -> Result<u64, String> {
    let whole = new_disk();
    assert!(run(&whole, operations, &mut Told::default()).is_err());
    let steps = whole.steps();
    for cut in 0..steps {
        for seed in 0..3 {
            let mut told = Told::default();
            let mut disk = new_disk();
            let mut under_way = cut_at(&disk, operations, cut, &mut told)?;
            for round in 0..2 {
                disk = disk.reboot(cut * 16 + seed * 4 + round);
                let store = Store::open_on(Arc::new(disk.clone()), Path::new(PATH)).map_err(|error| format!("cut at {cut}: {error}"))?;
                check(&store, &mut told, under_way).map_err(|error| format!("cut at {cut}, seed {seed}, round {round}: {error}"))?;
                // The second cut happens while the same operations run again on what was found.
                disk.cut_after((cut * 7 + seed * 5) % steps);
                under_way = run(&disk, operations, &mut told).unwrap_or(None);
            }
        }
    }
    Ok(steps)
}

fn cut_at<'a>(disk: &MemoryDisk, operations: &'a [Operation], cut: u64, told: &mut Told) -> Result<Option<&'a Operation>, String> {
    disk.cut_after(cut);
    run(disk, operations, told).map_err(|_| "the power was not cut".to_owned())
}

fn operation() -> impl Strategy<Value = Operation> {
    let bytes = || vec(any::<u8>(), 0..40);
    prop_oneof![
        2 => (0..2_u8).prop_map(Operation::CreateOrder),
        3 => (0..2_u8, 0..3_usize, bytes()).prop_map(|(order, name, bytes)| Operation::CreateNew(order, name, bytes)),
        4 => (0..2_u8, 0..3_usize, bytes()).prop_map(|(order, name, bytes)| Operation::Write(order, name, bytes)),
        4 => (0..2_u8, any::<u32>()).prop_map(|(order, number)| Operation::Append(order, number)),
        2 => proptest::strategy::Just(Operation::TakeIndex),
        1 => proptest::strategy::Just(Operation::StartBranch),
        2 => (0..2_u8, bytes()).prop_map(|(order, bytes)| Operation::CreateWhole(order, bytes)),
        2 => (0..2_u8, vec(any::<u32>(), 0..4)).prop_map(|(order, numbers)| Operation::ReplaceLines(order, numbers)),
        1 => proptest::strategy::Just(Operation::KeepPhrase),
    ]
}

#[test]
fn no_power_cut_loses_or_halves_anything() {
    let mut runner = TestRunner::new(Config { cases: 40, failure_persistence: None, ..Config::default() });
    let sequences = vec(operation(), 1..14).prop_map(|mut operations| {
        operations.insert(0, Operation::CreateOrder(0));
        operations
    });
    runner
        .run(&sequences, |operations| {
            survives(&operations, MemoryDisk::new).map(|_| ()).map_err(proptest::test_runner::TestCaseError::fail)
        })
        .unwrap();
}

fn one_of_each() -> Vec<Operation> {
    vec![
        Operation::KeepPhrase,
        Operation::TakeIndex,
        Operation::CreateOrder(0),
        Operation::CreateNew(0, 2, vec![7; 32]),
        Operation::Write(0, 0, b"first".to_vec()),
        Operation::Write(0, 0, b"second, longer".to_vec()),
        Operation::Append(0, 1),
        Operation::Append(0, 37),
        Operation::ReplaceLines(0, vec![37, 5]),
        Operation::Append(0, 38),
        Operation::CreateWhole(1, vec![9; 40]),
    ]
}

#[test]
fn one_of_each_operation_survives() {
    assert!(survives(&one_of_each(), MemoryDisk::new).unwrap() > 40);
}

/// A process is killed, the next one reads what it left and may act on it, and then the power fails.
#[test]
fn what_was_read_under_a_lock_outlives_a_power_cut() {
    let open = |disk: &MemoryDisk| Store::open_on(Arc::new(disk.clone()), Path::new(PATH)).unwrap();
    let read = |store: &Store| {
        let order = store.open_order(&id(0)).ok()?.lock().unwrap();
        let documents = NAMES.map(|name| order.read(name).unwrap());
        Some((documents, order.read_journal("journal").unwrap()))
    };
    let whole = MemoryDisk::new();
    assert!(run(&whole, &one_of_each(), &mut Told::default()).is_err());
    for killed in 0..whole.steps() {
        let disk = MemoryDisk::new();
        disk.cut_after(killed);
        assert!(run(&disk, &one_of_each(), &mut Told::default()).is_ok());
        disk.revive();
        let store = open(&disk);
        let (seen, phrase) = (read(&store), store.phrase().unwrap().is_some());
        for seed in 0..8 {
            let found = open(&disk.reboot(killed * 8 + seed));
            if seen.is_some() {
                assert_eq!(read(&found), seen, "killed at {killed}");
            }
            assert!(!phrase || found.phrase().unwrap().is_some(), "killed at {killed}");
        }
    }
}

#[test]
fn a_failed_write_is_repeated_and_loses_nothing() {
    let open = |disk: &MemoryDisk| Store::open_on(Arc::new(disk.clone()), Path::new(PATH));
    let whole = MemoryDisk::new();
    assert!(run(&whole, &one_of_each(), &mut Told::default()).is_err());
    let mut failed = 0;
    for fail in 0..whole.steps() {
        let (disk, mut told) = (MemoryDisk::new(), Told::default());
        disk.fail_after(fail);
        let store = open(&disk).or_else(|_| open(&disk)).unwrap();
        for operation in one_of_each() {
            if carry_out(&store, &operation, &mut told).is_err() {
                check(&store, &mut told, Some(&operation)).unwrap();
                carry_out(&store, &operation, &mut told).unwrap();
                failed += 1;
            }
            // Everything that returned so far survives a power failure.
            for seed in 0..4 {
                let store = open(&disk.reboot(fail * 4 + seed)).unwrap();
                check(&store, &mut told, None).unwrap_or_else(|error| panic!("failed at {fail}, {operation:?}: {error}"));
            }
        }
    }
    assert!(failed > 30, "{failed}");
}

#[test]
fn an_interrupted_restore_is_not_taken_for_a_store() {
    let whole = MemoryDisk::new();
    assert!(run(&whole, &one_of_each(), &mut Told::default()).is_err());
    let store = Store::open_on(Arc::new(whole), Path::new(PATH)).unwrap();
    let cost = Cost { memory: 8, passes: 1, lanes: 1 };
    let kept = backup_at(&store, "a password", cost).unwrap().bytes;
    let restored = MemoryDisk::new();
    restore_on(Arc::new(restored.clone()), &kept, "a password", Path::new(PATH)).unwrap();

    let mut refused = 0;
    for cut in 0..=restored.steps() {
        for seed in 0..3 {
            let disk = MemoryDisk::new();
            disk.cut_after(cut);
            let done = restore_on(Arc::new(disk.clone()), &kept, "a password", Path::new(PATH)).is_ok();
            let disk = disk.reboot(cut * 8 + seed);
            match Store::open_on(Arc::new(disk.clone()), Path::new(PATH)) {
                Ok(found) if found.phrase().unwrap().is_some() => {
                    let order = found.open_order(&id(0)).unwrap();
                    for name in order.documents().unwrap() {
                        assert_eq!(order.read(&name).unwrap(), store.open_order(&id(0)).unwrap().read(&name).unwrap());
                    }
                    assert_eq!(order.documents().unwrap().len(), 3);
                    let next = found.next_index().unwrap();
                    assert!(next.branch != 0 && next.index == 0, "{next:?}");
                }
                // Nothing was restored yet, so the directory becomes a new store.
                Ok(found) => assert!(!done && found.orders().unwrap().is_empty()),
                Err(error) => {
                    assert!(!done && matches!(error, Error::NotAStore { .. }), "cut at {cut}: {error}");
                    refused += 1;
                }
            }
        }
    }
    assert!(refused > 20);
}

#[test]
fn a_disk_that_does_not_sync_is_noticed() {
    let survived = std::panic::catch_unwind(|| survives(&one_of_each(), MemoryDisk::lazy));
    assert!(!matches!(survived, Ok(Ok(_))));
}
