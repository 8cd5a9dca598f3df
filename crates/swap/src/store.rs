//! The store over the host's documents: the same as the program's on disk, and every write waits until the host has kept it.

use std::path::Path;
use std::sync::Arc;

use countersign::SecretHash;
use countersign_client::OrderId;
use countersign_client::driver::{Entry, OrderState, OrderStore, Outcome, SignedUnder, StoreError};
use countersign_store::{Error, KeyIndex, LockedOrder, Store, Zeroizing};
use futures_util::FutureExt as _;
use futures_util::lock::Mutex;

use crate::disk::{HostDisk, ROOT};
use crate::host::Host;
use crate::need::{Ask, Reply};

/// How many branches are tried before it is said that none is free.
const MAX_BRANCHES: u8 = 64;

/// A store whose writes the host keeps. Cloning is cheap.
#[derive(Debug, Clone)]
pub(crate) struct HostStore {
    host: Host,
    disk: HostDisk,
    store: Store,
    /// One operation at a time, so that nothing is read that the host has not kept.
    turn: Arc<Mutex<()>>,
}

impl HostStore {
    /// Opens the store. What it writes on first use goes to the host with the first operation.
    pub(crate) fn open(host: Host, disk: HostDisk) -> Result<Self, Error> {
        let store = Store::open_on(Arc::new(disk.clone()), Path::new(ROOT))?;
        Ok(Self { host, disk, store, turn: Arc::default() })
    }

    /// Returns the words of the rescue phrase that the host has kept; `None` if it has none. One that is still being written could be lost,
    /// and another one made in its place.
    pub(crate) fn kept_phrase(&self) -> Result<Option<Zeroizing<String>>, Error> {
        let phrase = Store::open_on(Arc::new(self.disk.kept()), Path::new(ROOT))?.phrase()?;
        Ok(phrase.map(|phrase| phrase.words()))
    }

    /// Returns the pins of the stored orders that may go on. Those of an order that cannot be read are missing, and nothing is written.
    pub(crate) fn open_pins(&self) -> Vec<Arc<SignedUnder>> {
        // The store's own futures are ready at once. Its disk is in memory, and every other operation begins by having it kept.
        let ids = OrderStore::orders(&self.store).now_or_never().and_then(Result::ok).unwrap_or_default();
        let orders = ids.iter().filter_map(|id| self.store.load(id).now_or_never()?.ok());
        // One that expired is open again once its chain shows a payment.
        let open = orders.filter(|kept| kept.outcome().is_none_or(|outcome| outcome == Outcome::Expired));
        open.filter_map(|kept| kept.pins).collect()
    }

    /// Does one operation, and waits until the host has kept what it changed. Nothing has changed if the host cannot.
    pub(crate) async fn with<T>(&self, operation: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
        let _turn = self.turn.lock().await;
        // What a new store begins with is written by itself. Nothing is reverted if that fails, so that it is written with the next operation.
        self.flush().await?;
        // The store's own futures are ready at once.
        let result = operation.await;
        if let Err(error) = self.flush().await {
            self.disk.revert();
            return Err(error);
        }
        result
    }

    /// Has the host keep what changed.
    async fn flush(&self) -> Result<(), StoreError> {
        let writes = self.disk.changes();
        if !writes.is_empty()
            && let Reply::Stored(Err(why)) = self.host.ask(Ask::Store(writes)).await
        {
            return Err(StoreError::Failed(why));
        }
        self.disk.keep();
        Ok(())
    }

    /// Hands out an index of the rescue phrase that is above those of every stored order in its branch. Otherwise the document `index` is older
    /// than the orders, and a branch is started.
    pub(crate) async fn take_index(&self) -> Result<KeyIndex, StoreError> {
        let mut used = Vec::new();
        for id in self.orders().await? {
            // One that cannot be read must not stop the others.
            used.extend(self.load(&id).await.ok().and_then(|order| order.key_index()));
        }
        for _ in 0..MAX_BRANCHES {
            let at = self.run(Store::take_index).await?;
            if used.iter().all(|used| used.branch != at.branch || used.index < at.index) {
                return Ok(at);
            }
            self.run(Store::start_branch).await?;
        }
        Err(StoreError::Failed("every branch of the rescue phrase that was tried has been used".to_owned()))
    }

    /// Does one operation that has no future.
    pub(crate) async fn run<T>(&self, operation: impl FnOnce(&Store) -> Result<T, Error>) -> Result<T, StoreError> {
        self.with(async { Ok(operation(&self.store)?) }).await
    }
}

impl OrderStore for HostStore {
    type Guard = LockedOrder;

    async fn create(&self, order: &OrderState) -> Result<(), StoreError> {
        self.with(OrderStore::create(&self.store, order)).await
    }

    async fn lock(&self, id: &OrderId) -> Result<LockedOrder, StoreError> {
        self.with(OrderStore::lock(&self.store, id)).await
    }

    async fn load(&self, id: &OrderId) -> Result<OrderState, StoreError> {
        self.with(self.store.load(id)).await
    }

    async fn keep_record(&self, guard: &LockedOrder, body: &[u8]) -> Result<(), StoreError> {
        self.with(self.store.keep_record(guard, body)).await
    }

    async fn keep_pins(&self, guard: &LockedOrder, pins: &SignedUnder) -> Result<(), StoreError> {
        self.with(self.store.keep_pins(guard, pins)).await
    }

    async fn append(&self, guard: &LockedOrder, entry: &Entry) -> Result<(), StoreError> {
        self.with(self.store.append(guard, entry)).await
    }

    async fn replace_journal(&self, guard: &LockedOrder, entries: &[Entry]) -> Result<(), StoreError> {
        self.with(self.store.replace_journal(guard, entries)).await
    }

    async fn orders(&self) -> Result<Vec<OrderId>, StoreError> {
        self.with(OrderStore::orders(&self.store)).await
    }

    async fn order_of(&self, hash: &SecretHash) -> Result<Option<OrderId>, StoreError> {
        self.with(self.store.order_of(hash)).await
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test ends by panicking")]

    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    /// Polls until the future is ready. Each write is answered with this reply, after `seen` has looked.
    fn answer<T>(host: &Host, future: impl Future<Output = T>, stored: &Result<(), String>, mut seen: impl FnMut()) -> T {
        let mut future = pin!(future);
        loop {
            if let Poll::Ready(done) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                return done;
            }
            seen();
            for need in host.take_needs().0 {
                assert!(host.reply(need.id, Reply::Stored(stored.clone())).unwrap());
            }
        }
    }

    #[test]
    fn the_phrase_is_shown_once_it_is_kept() {
        let host = Host::default();
        let store = HostStore::open(host.clone(), HostDisk::new(Vec::new(), "here")).unwrap();
        let shown = || store.kept_phrase().unwrap();
        assert_eq!(shown(), None);
        let full = Err("the disk is full".to_owned());
        let failed = answer(&host, store.run(|store| store.first_phrase()), &full, || assert_eq!(shown(), None));
        assert!(failed.is_err());
        let mut looks = 0;
        let seen = || {
            looks += 1;
            assert_eq!(shown(), None, "it is being written");
        };
        let (phrase, is_new) = answer(&host, store.run(|store| store.first_phrase()), &Ok(()), seen).unwrap();
        assert!(is_new && looks > 1);
        assert_eq!(shown().unwrap(), phrase.words());
        // A later write that is under way hides nothing.
        answer(&host, store.run(|store| store.take_index()), &Ok(()), || assert!(shown().is_some())).unwrap();
    }

    #[test]
    fn an_index_that_a_stored_order_has_is_not_handed_out_again() {
        let host = Host::default();
        let store = HostStore::open(host.clone(), HostDisk::new(Vec::new(), "here")).unwrap();
        let kept = Ok(());
        let take = || answer(&host, store.take_index(), &kept, || {}).unwrap();
        assert_eq!(take(), KeyIndex { branch: 0, index: 0 });
        // An order from a later time than the document `index`.
        let tree = countersign_testkit::lines::accepted_case("evm-record-evm-v2").tree();
        let text = |at: &str| tree.at(at).unwrap().text();
        let request = countersign::CreateOrder::from_json(text("/request").as_bytes()).unwrap();
        let swap = countersign_client::CreatedOrder::new(request, text("/response")).unwrap();
        let mut order = OrderState::new(swap, None);
        order.index = Some(7);
        answer(&host, store.create(&order), &kept, || {}).unwrap();
        let first = take();
        assert!(first.branch != 0 && first.index == 0, "{first:?}");
        assert_eq!(take(), KeyIndex { index: 1, ..first });
    }

    #[test]
    fn a_host_that_cannot_tell_its_place_starts_a_branch_at_each_opening() {
        let documents =
            |disk: &HostDisk| -> Vec<_> { disk.changes().into_iter().map(|write| (write.name, write.bytes.unwrap())).collect() };
        let branch_at = |place: &str, old: Vec<_>, now| {
            let host = Host::default();
            let disk = HostDisk::new(old, &crate::disk::place_of(place, now));
            let store = HostStore::open(host.clone(), disk.clone()).unwrap();
            let branch = answer(&host, store.take_index(), &Ok(()), || {}).unwrap().branch;
            assert_eq!(answer(&host, store.take_index(), &Ok(()), || {}).unwrap().branch, branch, "within one opening");
            branch
        };
        let first = HostDisk::new(Vec::new(), &crate::disk::place_of("", 1));
        Store::open_on(Arc::new(first.clone()), Path::new(ROOT)).unwrap();
        assert_eq!(branch_at("", documents(&first), 1), 0, "the same opening");
        assert_ne!(branch_at("", documents(&first), 2), 0);
        let named = HostDisk::new(Vec::new(), &crate::disk::place_of("here", 1));
        Store::open_on(Arc::new(named.clone()), Path::new(ROOT)).unwrap();
        assert_eq!(branch_at("here", documents(&named), 2), 0);
        assert_ne!(branch_at("there", documents(&named), 2), 0);
    }
}
