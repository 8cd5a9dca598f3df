//! A store whose type is erased.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use countersign::SecretHash;

use super::journal::Entry;
use super::kept::{OrderState, OrderStore, SignedUnder, StoreError};
use crate::request::OrderId;
use countersign_transport::{BoxFuture, MaybeSend, MaybeSync};

type StoreFuture<'f, T> = BoxFuture<'f, Result<T, StoreError>>;

/// A lock of any store, released when it is dropped.
trait Lock: Any + MaybeSend + MaybeSync {}

impl<G: Any + MaybeSend + MaybeSync> Lock for G {}

/// The lock on an order of a [`BoxStore`], released when it is dropped.
pub struct BoxGuard(Box<dyn Lock>);

impl BoxGuard {
    /// Returns the lock of the store inside.
    fn of<G: 'static>(&self) -> Result<&G, StoreError> {
        let lock: &dyn Any = &*self.0;
        lock.downcast_ref().ok_or_else(|| StoreError::Failed("the lock is of another store".to_owned()))
    }
}

impl fmt::Debug for BoxGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BoxGuard(..)")
    }
}

/// The object-safe form of a store.
trait Erased: MaybeSend + MaybeSync {
    fn create<'f>(&'f self, order: &'f OrderState) -> StoreFuture<'f, ()>;
    fn lock<'f>(&'f self, id: &'f OrderId) -> StoreFuture<'f, BoxGuard>;
    fn load<'f>(&'f self, id: &'f OrderId) -> StoreFuture<'f, OrderState>;
    fn keep_record<'f>(&'f self, guard: &'f BoxGuard, body: &'f [u8]) -> StoreFuture<'f, ()>;
    fn keep_pins<'f>(&'f self, guard: &'f BoxGuard, pins: &'f SignedUnder) -> StoreFuture<'f, ()>;
    fn append<'f>(&'f self, guard: &'f BoxGuard, entry: &'f Entry) -> StoreFuture<'f, ()>;
    fn replace_journal<'f>(&'f self, guard: &'f BoxGuard, entries: &'f [Entry]) -> StoreFuture<'f, ()>;
    fn orders(&self) -> StoreFuture<'_, Vec<OrderId>>;
    fn order_of<'f>(&'f self, hash: &'f SecretHash) -> StoreFuture<'f, Option<OrderId>>;
}

impl<S: OrderStore> Erased for S
where
    S::Guard: 'static,
{
    fn create<'f>(&'f self, order: &'f OrderState) -> StoreFuture<'f, ()> {
        Box::pin(S::create(self, order))
    }

    fn lock<'f>(&'f self, id: &'f OrderId) -> StoreFuture<'f, BoxGuard> {
        Box::pin(async move { Ok(BoxGuard(Box::new(S::lock(self, id).await?))) })
    }

    fn load<'f>(&'f self, id: &'f OrderId) -> StoreFuture<'f, OrderState> {
        Box::pin(S::load(self, id))
    }

    fn keep_record<'f>(&'f self, guard: &'f BoxGuard, body: &'f [u8]) -> StoreFuture<'f, ()> {
        Box::pin(async move { S::keep_record(self, guard.of()?, body).await })
    }

    fn keep_pins<'f>(&'f self, guard: &'f BoxGuard, pins: &'f SignedUnder) -> StoreFuture<'f, ()> {
        Box::pin(async move { S::keep_pins(self, guard.of()?, pins).await })
    }

    fn append<'f>(&'f self, guard: &'f BoxGuard, entry: &'f Entry) -> StoreFuture<'f, ()> {
        Box::pin(async move { S::append(self, guard.of()?, entry).await })
    }

    fn replace_journal<'f>(&'f self, guard: &'f BoxGuard, entries: &'f [Entry]) -> StoreFuture<'f, ()> {
        Box::pin(async move { S::replace_journal(self, guard.of()?, entries).await })
    }

    fn orders(&self) -> StoreFuture<'_, Vec<OrderId>> {
        Box::pin(S::orders(self))
    }

    fn order_of<'f>(&'f self, hash: &'f SecretHash) -> StoreFuture<'f, Option<OrderId>> {
        Box::pin(S::order_of(self, hash))
    }
}

/// A store whose type is erased, for a driver whose type does not name where orders are kept. Cloning is cheap.
///
/// ```
/// use countersign_client::driver::{BoxChains, BoxOwner, BoxStore, MemoryStore};
/// use countersign_client::{BoxTransport, Driver};
///
/// /// A wallet, whatever it is connected through, wherever its orders are kept, and whoever
/// /// signs.
/// struct Wallet {
///     driver: Driver<BoxTransport, BoxChains, BoxStore, BoxOwner>,
/// }
///
/// let store = BoxStore::new(MemoryStore::default());
/// assert_eq!(format!("{store:?}"), "BoxStore(..)");
/// ```
#[derive(Clone)]
pub struct BoxStore(Arc<dyn Erased>);

impl BoxStore {
    /// Erases the type of a store.
    #[must_use]
    pub fn new<S: OrderStore<Guard: 'static> + 'static>(store: S) -> Self {
        Self(Arc::new(store))
    }
}

impl fmt::Debug for BoxStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BoxStore(..)")
    }
}

impl OrderStore for BoxStore {
    type Guard = BoxGuard;

    async fn create(&self, order: &OrderState) -> Result<(), StoreError> {
        self.0.create(order).await
    }

    async fn lock(&self, id: &OrderId) -> Result<BoxGuard, StoreError> {
        self.0.lock(id).await
    }

    async fn load(&self, id: &OrderId) -> Result<OrderState, StoreError> {
        self.0.load(id).await
    }

    async fn keep_record(&self, guard: &BoxGuard, body: &[u8]) -> Result<(), StoreError> {
        self.0.keep_record(guard, body).await
    }

    async fn keep_pins(&self, guard: &BoxGuard, pins: &SignedUnder) -> Result<(), StoreError> {
        self.0.keep_pins(guard, pins).await
    }

    async fn append(&self, guard: &BoxGuard, entry: &Entry) -> Result<(), StoreError> {
        self.0.append(guard, entry).await
    }

    async fn replace_journal(&self, guard: &BoxGuard, entries: &[Entry]) -> Result<(), StoreError> {
        self.0.replace_journal(guard, entries).await
    }

    async fn orders(&self) -> Result<Vec<OrderId>, StoreError> {
        self.0.orders().await
    }

    async fn order_of(&self, hash: &SecretHash) -> Result<Option<OrderId>, StoreError> {
        self.0.order_of(hash).await
    }
}
