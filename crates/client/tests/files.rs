//! The files of an order, as an earlier version of this library wrote them: `tests/files` holds one of each, and a journal with every kind
//! of line.
#![cfg(feature = "store")]
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use countersign_client::countersign::{Role, U256};
use countersign_client::driver::{Event, OrderState, OrderStore as _, Outcome, Purpose, StoreError};
use countersign_client::{CreatedOrder, OrderId};
use countersign_store::Store;
use countersign_store::testing::MemoryDisk;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/files")
}

/// Returns a store with the order of `tests/files` and this journal.
fn store(journal: &str) -> (Store, OrderId) {
    store_with(journal, "")
}

/// Returns a store with the order of `tests/files` and this journal, and with more at the end of the pins.
fn store_with(journal: &str, more: &str) -> (Store, OrderId) {
    let store = Store::open_on(Arc::new(MemoryDisk::new()), Path::new("/state")).unwrap();
    let read = |name: &'static str| (name, fs::read(folder().join(name)).unwrap());
    let documents = ["order.json", "record.json", "pins.json", "secret", "index", "branch", "floor"].map(read);
    let documents = documents.map(|(name, bytes)| (name, if name == "pins.json" { [&bytes, more.as_bytes()].concat() } else { bytes }));
    let id = CreatedOrder::from_json(&documents[0].1).unwrap().id().clone();
    let documents = documents.each_ref().map(|(name, bytes)| (*name, bytes.as_slice()));
    store.lock_store().unwrap().create_order(id.as_str(), &documents).unwrap();
    let order = store.open_order(id.as_str()).unwrap().lock().unwrap();
    for line in journal.lines() {
        order.append("journal", line.as_bytes()).unwrap();
    }
    drop(order);
    (store, id)
}

async fn load(journal: &str) -> Result<OrderState, StoreError> {
    let (store, id) = store(journal);
    store.load(&id).await
}

#[tokio::test]
async fn the_files_of_an_earlier_version_are_read_and_written_unchanged() {
    let journal = fs::read_to_string(folder().join("journal")).unwrap();
    let kept = load(&journal).await.unwrap();
    assert_eq!((kept.index, kept.branch, kept.at_least), (Some(7), 4711, Some(U256::from(9))));
    assert!(kept.own_secret().is_some());
    assert_eq!(kept.record.as_deref(), Some(fs::read(folder().join("record.json")).unwrap().as_slice()));
    assert_eq!(serde_json::to_vec(&kept.pins.as_deref()).unwrap(), fs::read(folder().join("pins.json")).unwrap());
    assert_eq!(serde_json::to_vec(&kept.swap).unwrap(), fs::read(folder().join("order.json")).unwrap());
    let written: Vec<_> = kept.journal.iter().map(|entry| serde_json::to_string(entry).unwrap() + "\n").collect();
    assert_eq!(written.concat(), journal);
    for (entry, line) in kept.journal.iter().zip(&written) {
        assert!(line.contains(&format!(r#""event":"{}""#, entry.event.name())), "{line}");
    }

    let roles = |entry: usize| match &kept.journal[entry].event {
        Event::Signed { transactions, .. } => transactions.iter().map(|transaction| transaction.role).collect::<Vec<_>>(),
        other => panic!("{other:?}"),
    };
    assert_eq!([roles(0), roles(5), roles(8)], [vec![Role::ApprovalReset, Role::Approval], vec![Role::Initiate], vec![Role::Redeem]]);
    let (refund, _) = kept.signed(Purpose::Refund).unwrap();
    assert_eq!((refund[0].role, refund[0].spends.as_slice()), (Role::Refund, ["aa:0".to_owned(), "bb:1".to_owned()].as_slice()));
    assert_eq!(format!("{refund:?}"), "[BroadcastTransaction(refund 05 on bitcoin)]", "without the payload, which may contain the secret");
    assert_eq!(kept.outcome(), Some(Outcome::Refunded));
}

/// A driver reads its orders at every step.
#[tokio::test]
async fn the_same_pins_are_parsed_once_and_changed_ones_are_read() {
    let pins = async |more| {
        let (store, id) = store_with("", more);
        store.load(&id).await.map(|kept| kept.pins.unwrap())
    };
    let first = pins("").await.unwrap();
    assert!(Arc::ptr_eq(&first, &pins("").await.unwrap()));
    let spaced = pins(" ").await.unwrap();
    assert!(!Arc::ptr_eq(&first, &spaced));
    assert_eq!(serde_json::to_vec(&*first).unwrap(), serde_json::to_vec(&*spaced).unwrap());
    assert!(pins("}").await.unwrap_err().to_string().contains("pins.json of order"), "a damaged document is never answered from memory");
}

/// Only a newer version can have written it, so the order is not driven with a guess.
#[tokio::test]
async fn an_unknown_role_is_an_error_that_names_it() {
    let line = r#"{"at":1,"event":"signed","purpose":"refund","transactions":[{"chain":"base","role":"donate","id":"0x01","payload":""}]}"#;
    let error = load(line).await.unwrap_err().to_string();
    assert!(error.contains("journal of order") && error.contains("unknown role of a transaction: donate"), "{error}");
}
