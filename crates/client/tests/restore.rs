//! Orders of a rescue phrase are restored from the service's records, and nothing that could be another's.
use crate::support;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use countersign_client::countersign::{Leg, OrderRecord};
use countersign_client::driver::{self, OrderState, OrderStore, StoreError};
use countersign_client::restore::{NotRestored, Restoration, RestoreError, RestoredOrder, owner_key};
use countersign_client::{CreatedOrder, OrderId, Secret};
use countersign_store::rescue::{Extent, IndexError, Phrase, Rescue};
use countersign_store::testing::MemoryDisk;
use countersign_store::{KeyIndex, Store};
use futures_util::FutureExt as _;
use serde_json::{Value, json};
use support::Fixture;

fn phrase() -> Phrase {
    Phrase::parse("legal winner thank year wave sausage worth useful legal winner thank yellow").unwrap()
}

fn store() -> Store {
    Store::open_on(Arc::new(MemoryDisk::new()), Path::new("/state")).unwrap()
}

fn secret(index: u32) -> Secret {
    let secret = Rescue::new(&phrase()).unwrap().branch(0).unwrap().secret(index).unwrap();
    Secret::parse(&hex::encode(*secret)).unwrap()
}

/// The record of an order under the secret of an index, with an id of its own.
fn order(index: u32, byte: &str) -> (String, Value) {
    let mut order = Fixture::with_secret(&secret(index)).order;
    order["order_id"] = json!(byte.repeat(32));
    (byte.repeat(32), order)
}

fn records(orders: impl IntoIterator<Item = (String, Value)>) -> BTreeMap<String, OrderRecord> {
    orders.into_iter().map(|(id, order)| (id, OrderRecord::from_json(order.to_string().as_bytes()).unwrap())).collect()
}

fn search<'r>(phrase: &'r Phrase, records: &'r BTreeMap<String, OrderRecord>) -> Restoration<'r> {
    let extent = Extent { look_ahead: 5, branches: vec![0], ..Extent::default() };
    Restoration::search(phrase, records, &extent, &mut |_, _| {}).unwrap()
}

#[test]
fn what_is_restored_is_read_back_and_never_replaced() {
    let (phrase, store) = (phrase(), store());
    let records = records([order(1, "a1"), order(2, "a2")]);
    let outcome = search(&phrase, &records).restore(&store).unwrap();
    let at = |id: &str| outcome[id.repeat(32).as_str()].as_ref().unwrap().at;
    assert_eq!((at("a1"), at("a2")), (KeyIndex { branch: 0, index: 1 }, KeyIndex { branch: 0, index: 2 }));
    let id = OrderId::parse(&"a2".repeat(32)).unwrap();
    let restored = RestoredOrder::find(&store, &id).unwrap().unwrap();
    assert_eq!(restored.record, records[id.as_str()]);
    assert_eq!(restored.secret.unwrap().expose(), secret(2).expose());
    let index = RestoredOrder::index(&store.open_order(id.as_str()).unwrap()).unwrap();
    assert_eq!(index, Some(KeyIndex { branch: 0, index: 2 }));
    // New orders are made in another branch: the service may not know of every index that was used.
    assert!(store.next_index().unwrap().branch != 0);
    assert_eq!(store.phrase().unwrap().unwrap().words(), phrase.words());
    // Again, after an interruption.
    let again = search(&phrase, &records).restore(&store).unwrap();
    assert!(again.values().all(|outcome| *outcome == Err(NotRestored::Exists)), "{again:?}");
    // The branch and the phrase stay.
    assert_eq!(store.open_order(id.as_str()).unwrap().documents().unwrap().len(), 3);
}

/// An older copy of a store hands out the index of an order again that is restored into it.
#[test]
fn an_older_copy_gives_no_restored_secret_to_another_order() {
    let (phrase, store) = (phrase(), store());
    store.keep_phrase(&phrase).unwrap();
    let records = records([order(0, "a1")]);
    search(&phrase, &records).restore(&store).unwrap();
    assert_eq!(store.take_index().unwrap(), KeyIndex { branch: 0, index: 0 });
    let fixture = Fixture::with_secret(&secret(0));
    let swap = CreatedOrder::new(fixture.create(), fixture.response.to_string()).unwrap();
    let created = OrderStore::create(&store, &OrderState::new(swap, Some(secret(0)))).now_or_never().unwrap();
    assert!(matches!(&created, Err(StoreError::SecretUsed(id)) if id.as_str() == "a1".repeat(32)), "{created:?}");
    assert_eq!(store.order_ids().unwrap().len(), 1);
}

#[test]
fn an_order_whose_secret_is_not_certain_is_not_restored() {
    let (phrase, store) = (phrase(), store());
    let (foreign, mut split) = (Fixture::load("evm-record-evm-v2").order, order(3, "a3"));
    split.1["destination_swap"]["secret_hash"] = foreign["destination_swap"]["secret_hash"].clone();
    let foreign = (foreign["order_id"].as_str().unwrap().to_owned(), foreign);
    let records = records([order(1, "a1"), order(1, "b1"), split, foreign.clone()]);
    let outcome = search(&phrase, &records).restore(&store).unwrap();
    let reason = |id: &str| outcome[id].clone().unwrap_err();
    assert_eq!(reason(&"a1".repeat(32)), NotRestored::Index(IndexError::Shared(vec!["b1".repeat(32)])));
    assert_eq!(reason(&"a3".repeat(32)), NotRestored::HashesDiffer);
    assert_eq!(reason(&foreign.0), NotRestored::Index(IndexError::NotFound));
    assert!(store.orders().unwrap().is_empty());
    // The owner names one of them.
    let own = search(&phrase, &records).only(|id| id.starts_with("a1"));
    assert_eq!(own.count(), 1);
    let outcome = own.restore(&store).unwrap();
    assert!(outcome.len() == 1 && outcome.values().all(Result::is_ok), "{outcome:?}");
}

#[test]
fn nothing_is_restored_beside_another_phrase() {
    let (phrase, store) = (phrase(), store());
    store.keep_phrase(&Phrase::generate().unwrap()).unwrap();
    let records = records([order(1, "a1")]);
    assert!(matches!(search(&phrase, &records).restore(&store), Err(RestoreError::OtherPhrase)));
    assert!(store.orders().unwrap().is_empty());
}

#[test]
fn a_restored_order_is_not_one_that_was_created_here_nor_one_that_was_changed() {
    let (phrase, store) = (phrase(), store());
    let fixture = Fixture::load("evm-record-evm-v2");
    let swap = CreatedOrder::new(fixture.create(), fixture.response.to_string()).unwrap();
    driver::OrderStore::create(&store, &OrderState::new(swap, None)).now_or_never().unwrap().unwrap();
    let created = OrderId::parse(fixture.order_id()).unwrap();
    assert!(RestoredOrder::find(&store, &created).unwrap().is_none());
    assert!(RestoredOrder::find(&store, &OrderId::parse(&"ee".repeat(32)).unwrap()).unwrap().is_none());
    let records = records([order(1, "a1")]);
    search(&phrase, &records).restore(&store).unwrap();
    let dir = store.open_order(&"a1".repeat(32)).unwrap();
    let record = dir.read("record.json").unwrap().unwrap();
    for (name, bytes, said) in [
        ("record.json", order(2, "a1").1.to_string(), "its secret belongs to another order"),
        ("record.json", order(1, "a2").1.to_string(), "its record belongs to another order"),
        ("record.json", "{}".to_owned(), "record.json"),
    ] {
        dir.lock().unwrap().write(name, bytes.as_bytes()).unwrap();
        let error = RestoredOrder::read(&dir).unwrap_err().to_string();
        assert!(error.contains(said) && error.contains("restore again"), "{error}");
    }
    dir.lock().unwrap().write("record.json", &record).unwrap();
    dir.lock().unwrap().write("index", b"one").unwrap();
    assert!(RestoredOrder::read(&dir).unwrap().is_some());
    assert!(RestoredOrder::index(&dir).unwrap_err().to_string().contains("not a number"));
}

#[test]
fn the_owners_key_is_found_in_old_and_new_records() {
    let key = "ab".repeat(32);
    let mut record = records([order(1, "a1")]).into_values().next().unwrap();
    assert_eq!((owner_key(&record, Leg::Source), owner_key(&record, Leg::Destination)), (None, None), "accounts are no keys");
    record.source_swap.delegate = Some(key.clone());
    record.destination_swap.redeemer = format!("02{key}");
    assert_eq!((owner_key(&record, Leg::Source), owner_key(&record, Leg::Destination)), (Some(key.as_str()), Some(key.as_str())));
}
