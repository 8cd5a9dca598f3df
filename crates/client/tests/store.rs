//! Stores that wait, such as IndexedDB: every operation gives way to other tasks, before and after it takes effect.
use crate::world;

use std::time::Duration;

use countersign_client::OrderId;
use countersign_client::StreamExt;
use countersign_client::countersign::{SecretHash, chains::UnixTime};
use countersign_client::driver::{
    BoxStore, Delivery, Entry, Event, MemoryGuard, MemoryStore, NewOrder, OrderState, OrderStore, Outcome, Purpose, SignedUnder, Status,
    StoreError,
};
use futures_util::future::join_all;
use world::Worlds;
use world::plan::Plan;

/// A store in memory that waits.
struct Slow(MemoryStore);

/// Waits, does something, and waits again.
async fn slowly<T>(operation: impl Future<Output = T>) -> T {
    let pause = || tokio::time::sleep(Duration::from_millis(700));
    pause().await;
    let result = operation.await;
    pause().await;
    result
}

impl OrderStore for Slow {
    type Guard = MemoryGuard;

    async fn create(&self, order: &OrderState) -> Result<(), StoreError> {
        slowly(self.0.create(order)).await
    }

    async fn lock(&self, id: &OrderId) -> Result<MemoryGuard, StoreError> {
        slowly(self.0.lock(id)).await
    }

    async fn load(&self, id: &OrderId) -> Result<OrderState, StoreError> {
        slowly(self.0.load(id)).await
    }

    async fn keep_record(&self, guard: &MemoryGuard, body: &[u8]) -> Result<(), StoreError> {
        slowly(self.0.keep_record(guard, body)).await
    }

    async fn keep_pins(&self, guard: &MemoryGuard, pins: &SignedUnder) -> Result<(), StoreError> {
        slowly(self.0.keep_pins(guard, pins)).await
    }

    async fn append(&self, guard: &MemoryGuard, entry: &Entry) -> Result<(), StoreError> {
        slowly(self.0.append(guard, entry)).await
    }

    async fn replace_journal(&self, guard: &MemoryGuard, entries: &[Entry]) -> Result<(), StoreError> {
        slowly(self.0.replace_journal(guard, entries)).await
    }

    async fn orders(&self) -> Result<Vec<OrderId>, StoreError> {
        slowly(self.0.orders()).await
    }

    async fn order_of(&self, hash: &SecretHash) -> Result<Option<OrderId>, StoreError> {
        slowly(self.0.order_of(hash)).await
    }
}

/// Between the lock of an order and the reading under it, other tasks run. None of them may sign the payment a second time.
#[tokio::test(start_paused = true)]
async fn drivers_that_share_a_slow_store_pay_an_order_once() {
    let world = Worlds::new(0, Plan { has_rival: true, ..Plan::honest() });
    let store = BoxStore::new(Slow(MemoryStore::default()));
    let drivers = [0, 1, 2].map(|_| world.driver(store.clone()));
    let (fixture, secret) = world.order(1);
    let id = drivers[0].create(NewOrder::new(fixture.create(), Some(secret))).await.unwrap();
    let outcomes = join_all(drivers.iter().map(|driver| async {
        let mut changes = std::pin::pin!(driver.run().await.unwrap());
        let mut last = None;
        while let Some(change) = changes.next().await {
            last = change.result.ok().map(|progress| progress.status).or(last);
        }
        last
    }))
    .await;
    assert_eq!(outcomes, [0, 1, 2].map(|_| Some(Status::Ended { outcome: Outcome::Complete })));
    assert_eq!(world.end(&id), (1, true, false), "one funding, paid, and no secret lost");
    let is_funding = |entry: &&Entry| matches!(entry.event, Event::Signed { purpose: Purpose::Funding, .. });
    assert_eq!(store.load(&id).await.unwrap().journal.iter().filter(is_funding).count(), 1);
}

#[tokio::test]
async fn a_lock_excludes_others_until_it_is_dropped_and_belongs_to_its_store() {
    let world = Worlds::new(0, Plan::honest());
    let store = BoxStore::new(MemoryStore::default());
    let (fixture, secret) = world.order(1);
    let id = world.driver(store.clone()).create(NewOrder::new(fixture.create(), Some(secret))).await.unwrap();
    let guard = store.lock(&id).await.unwrap();
    assert_eq!(store.lock(&id).await.unwrap_err(), StoreError::Busy);
    let entry = Entry { at: UnixTime::from_secs(1), event: Event::sending(Delivery::Funding) };
    store.append(&guard, &entry).await.unwrap();
    assert!(store.load(&id).await.unwrap().journal.contains(&entry));
    // The lock of a boxed store that is boxed once more is of another type.
    let twice = BoxStore::new(store.clone());
    assert_eq!(twice.append(&guard, &entry).await, Err(StoreError::Failed("the lock is of another store".to_owned())));
    drop(guard);
    drop(store.lock(&id).await.unwrap());
}
