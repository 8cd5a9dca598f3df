//! The stored form of an order: everything that any step needs, even as the first one after a restart.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use countersign::{BroadcastTransaction, OrderRecord, Policy, Refusal, Registry, SecretHash, U256, VerifiedRecord, chains::UnixTime};
use serde::{Deserialize, Serialize};

use super::journal::{Delivery, Entry, Purpose};
use crate::request::OrderId;
use crate::secret::Secret;
use crate::stored::CreatedOrder;
use countersign_transport::{MaybeSend, MaybeSync};

/// A stored order.
#[derive(Debug)]
#[non_exhaustive]
pub struct OrderState {
    /// The request and the response to it.
    pub swap: CreatedOrder,
    /// The body of the record that the order was verified with when it was signed; `None` before. Its terms apply until the order ends.
    pub record: Option<Vec<u8>>,
    /// The wallet's pins and policy of that time; `None` before. They apply until the order ends, because a pin that is removed later
    /// must not prevent a paid order from being redeemed or refunded. As long as nothing is signed, they are those of the last question.
    pub pins: Option<Arc<SignedUnder>>,
    /// The secret; `None` if the service or somebody else holds it.
    pub secret: Option<Secret>,
    /// The index with which the secret and the owner's keys are derived from the rescue phrase; `None` if they are not.
    pub index: Option<u32>,
    /// The branch of the rescue phrase that the index belongs to; 0 for the first one. Every copy of a store has a branch of its own.
    pub branch: u16,
    /// The minimum that the order must pay, in base units of the destination asset; `None` for no minimum. An order that pays less is not
    /// signed.
    pub at_least: Option<U256>,
    /// The journal: what was done or about to be done, in order.
    pub journal: Vec<Entry>,
}

impl OrderState {
    /// Returns from about when the payment can be refunded: its timelock at nominal block times, counted from the signature. `None` if
    /// nothing was signed here.
    #[must_use]
    pub fn refund_possible_from(&self) -> Option<UnixTime> {
        let (signed_at, record) = (self.signed_at(Purpose::Funding)?, OrderRecord::from_json(self.record.as_ref()?).ok()?);
        let asset = self.pins.as_ref()?.registry.asset(record.source_swap.asset.as_str())?;
        let millis = u64::try_from(asset.chain.nominal_millis(record.source_swap.timelock)).ok()?;
        Some(signed_at.saturating_add(Duration::from_millis(millis)))
    }
}

/// The registry and the policy that an order was verified with.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[expect(clippy::exhaustive_structs, reason = "a file whose form is documented")]
pub struct SignedUnder {
    /// The pinned registry at that time.
    pub registry: Registry,
    /// The policy at that time.
    pub policy: Policy,
}

/// The size of the cache of [`SignedUnder::from_json`].
const REMEMBERED_PINS: usize = 8;

impl SignedUnder {
    /// Parses what [`OrderStore::keep_pins`] has stored: its JSON, by `Serialize`.
    ///
    /// Caches the documents that were parsed last, because a driver parses one at every step, and most orders have the same one. Without the
    /// cache, that would be two thirds of a step that finds nothing new.
    ///
    /// # Errors
    ///
    /// [`StoreError::Failed`] if the document is not such JSON, or if its registry or its policy is refused.
    pub fn from_json(bytes: &[u8]) -> Result<Arc<Self>, StoreError> {
        type Parsed = VecDeque<(Box<[u8]>, Arc<SignedUnder>)>;
        static NEWEST: Mutex<Parsed> = Mutex::new(VecDeque::new());
        let known = |newest: &Parsed| newest.iter().find(|(document, _)| **document == *bytes).map(|(_, pins)| Arc::clone(pins));
        let newest = || NEWEST.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(pins) = known(&newest()) {
            return Ok(pins);
        }
        let pins = Arc::new(serde_json::from_slice::<Self>(bytes).map_err(|error| StoreError::Failed(error.to_string()))?);
        let mut newest = newest();
        newest.truncate(REMEMBERED_PINS.saturating_sub(1));
        newest.push_front((bytes.into(), Arc::clone(&pins)));
        Ok(pins)
    }
}

impl OrderState {
    /// Creates a stored order from its request, response and secret; everything else is empty.
    #[must_use]
    pub const fn new(swap: CreatedOrder, secret: Option<Secret>) -> Self {
        Self { swap, record: None, pins: None, secret, index: None, branch: 0, at_least: None, journal: Vec::new() }
    }

    /// Returns the registry and the policy that apply to the order: those that it was signed with, or before that the current ones.
    #[must_use]
    pub fn pins_or<'p>(&'p self, registry: &'p Registry, policy: &'p Policy) -> (&'p Registry, &'p Policy) {
        self.pins.as_ref().map_or((registry, policy), |pins| (&pins.registry, &pins.policy))
    }

    /// Verifies a record of the order with [the pins that apply to it](Self::pins_or). Its terms must be those of the record that the order
    /// was signed with.
    ///
    /// # Errors
    ///
    /// The refusals of [`verify_record`](countersign::verify_record); [`Code::RecordChanged`](countersign::Code::RecordChanged) at the first
    /// member that differs.
    pub fn verify_record(&self, record: &[u8], registry: &Registry, policy: &Policy) -> Result<VerifiedRecord, Refusal> {
        let (registry, policy) = self.pins_or(registry, policy);
        let verify = |record: &[u8]| countersign::verify_record(self.swap.proposal(record), registry, policy);
        let verified = verify(record)?;
        if let Some(first) = &self.record {
            verify(first)?.terms.check_unchanged(&verified.terms)?;
        }
        Ok(verified)
    }

    /// Returns the secret if the order's request contains its hash. The secret of another order is never used.
    #[must_use]
    pub fn own_secret(&self) -> Option<&Secret> {
        self.secret.as_ref().filter(|secret| self.swap.request().secret_hash == Some(secret.hash()))
    }
}

/// What an observation depends on, of all that is stored of an order.
#[derive(Debug, Clone)]
#[non_exhaustive]
#[doc(hidden)]
pub struct Subject<'k> {
    /// The request and the response to it.
    pub swap: &'k CreatedOrder,
    /// The body of the record that was verified when the order was signed.
    pub record: Option<&'k [u8]>,
    /// Whether the payment may have been sent.
    pub is_paid: bool,
    /// Whether the secret may have left this process.
    pub has_left: bool,
    /// Whether the secret may be known to others than the owner's signer.
    pub is_out: bool,
    /// When the newest payment was signed.
    pub signed_at: Option<UnixTime>,
    /// When a payment was last sent, or [`UnixTime::EPOCH`].
    pub sent_at: UnixTime,
    /// The payments that are looked for where the chain shows none.
    pub payments: Vec<&'k BroadcastTransaction>,
}

impl<'k> Subject<'k> {
    /// Creates the subject of a stored order.
    #[must_use]
    pub fn of(kept: &'k OrderState) -> Self {
        let payments = if kept.newest_payment_may_be_sent() { kept.payments() } else { None };
        Self {
            swap: &kept.swap,
            record: kept.record.as_deref(),
            is_paid: kept.may_be_paid(),
            has_left: kept.secret_has_left(),
            is_out: kept.secret_was_sent(),
            signed_at: kept.signed_at(Purpose::Funding),
            sent_at: kept.attempts(Delivery::Funding).1.max(kept.attempts(Delivery::Gasless).1),
            payments: payments.unwrap_or_default(),
        }
    }
}

/// An error of an [`OrderStore`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// Another step of this order is under way, in this or another process.
    #[error("another process is working on this order")]
    Busy,
    /// The order is not in the store.
    #[error("order {0} is not in the store")]
    Unknown(String),
    /// The store already contains this order, or a different record of it.
    #[error("order {0} is already in the store")]
    Exists(String),
    /// Another stored order has the same secret hash.
    #[error("order {0} already uses this secret hash: use a new secret for every order")]
    SecretUsed(OrderId),
    /// The store failed.
    #[error("{0}")]
    Failed(String),
}

/// A durable store of orders: when the future of a method is ready, what it wrote must survive a power failure.
///
/// An implementation that loses writes can lose money. `countersign-store` is an implementation on disk (feature `store`), whose futures
/// block on the disk and are ready at once; a browser's store waits for IndexedDB.
///
/// A lock excludes every other task and process from the order, not only other threads, because any method may give way to them.
pub trait OrderStore: MaybeSend + MaybeSync {
    /// A lock on one order. While it exists, no other process or task works on that order. It is released when it is dropped, which also
    /// happens when the future that holds it is dropped.
    type Guard: MaybeSend + MaybeSync;

    /// Stores a new order atomically: request, response, secret, index and minimum. Record, pins and journal of `order` are ignored.
    ///
    /// # Errors
    ///
    /// [`StoreError::Exists`] if the order is stored already, [`StoreError::SecretUsed`] if another order has the same secret hash, or
    /// [`StoreError::Failed`].
    fn create(&self, order: &OrderState) -> impl Future<Output = Result<(), StoreError>> + MaybeSend;

    /// Locks an order for one step, without waiting.
    ///
    /// # Errors
    ///
    /// [`StoreError::Busy`] if it is locked, [`StoreError::Unknown`] if it is not stored, or [`StoreError::Failed`].
    fn lock(&self, id: &OrderId) -> impl Future<Output = Result<Self::Guard, StoreError>> + MaybeSend;

    /// Reads an order.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unknown`] if it is not stored, or [`StoreError::Failed`] if it cannot be read.
    fn load(&self, id: &OrderId) -> impl Future<Output = Result<OrderState, StoreError>> + MaybeSend;

    /// Stores the body of the record that the order was verified with. It is stored once. Storing the same bytes again succeeds.
    ///
    /// # Errors
    ///
    /// [`StoreError::Exists`] or [`StoreError::Failed`] if a different record is stored already, or [`StoreError::Failed`].
    fn keep_record(&self, guard: &Self::Guard, body: &[u8]) -> impl Future<Output = Result<(), StoreError>> + MaybeSend;

    /// Stores the pins and the policy that the order is verified with, in place of those that are stored, atomically: after a power failure
    /// the order has either of the two. Called again whenever the owner is asked to pay, until something is signed.
    ///
    /// # Errors
    ///
    /// [`StoreError::Failed`]. The stored ones are unchanged then.
    fn keep_pins(&self, guard: &Self::Guard, pins: &SignedUnder) -> impl Future<Output = Result<(), StoreError>> + MaybeSend;

    /// Appends a line to the journal.
    ///
    /// # Errors
    ///
    /// [`StoreError::Failed`]. The caller must then not do what the line announces.
    fn append(&self, guard: &Self::Guard, entry: &Entry) -> impl Future<Output = Result<(), StoreError>> + MaybeSend;

    /// Replaces the journal by a shorter one that says the same, atomically: after a power failure the order has either of the two.
    ///
    /// # Errors
    ///
    /// [`StoreError::Failed`]. The journal is unchanged then.
    fn replace_journal(&self, guard: &Self::Guard, entries: &[Entry]) -> impl Future<Output = Result<(), StoreError>> + MaybeSend;

    /// Lists the stored orders.
    ///
    /// # Errors
    ///
    /// [`StoreError::Failed`] if the store cannot be read.
    fn orders(&self) -> impl Future<Output = Result<Vec<OrderId>, StoreError>> + MaybeSend;

    /// Returns the order that has a secret hash; `None` if there is no such order. A store that can restore orders looks at these too.
    ///
    /// # Errors
    ///
    /// [`StoreError::Failed`] if the orders cannot be listed.
    fn order_of(&self, hash: &SecretHash) -> impl Future<Output = Result<Option<OrderId>, StoreError>> + MaybeSend {
        created_with(self, hash)
    }
}

/// Returns the stored order whose request contains a secret hash.
pub(super) async fn created_with<S: OrderStore + ?Sized>(store: &S, hash: &SecretHash) -> Result<Option<OrderId>, StoreError> {
    for id in store.orders().await? {
        // One order that cannot be read must not stop every new one.
        if store.load(&id).await.is_ok_and(|order| order.swap.request().secret_hash == Some(*hash)) {
            return Ok(Some(id));
        }
    }
    Ok(None)
}

/// Implements [`OrderStore`] for pointers to an implementation.
macro_rules! forward {
    ($([$($lifetime:lifetime)?] $pointer:ty;)*) => {
        $(
            impl<$($lifetime,)? S: OrderStore> OrderStore for $pointer where $pointer: MaybeSend + MaybeSync {
                type Guard = S::Guard;

                fn create(&self, order: &OrderState) -> impl Future<Output = Result<(), StoreError>> + MaybeSend {
                    S::create(self, order)
                }

                fn lock(&self, id: &OrderId) -> impl Future<Output = Result<Self::Guard, StoreError>> + MaybeSend {
                    S::lock(self, id)
                }

                fn load(&self, id: &OrderId) -> impl Future<Output = Result<OrderState, StoreError>> + MaybeSend {
                    S::load(self, id)
                }

                fn keep_record(&self, guard: &Self::Guard, body: &[u8]) -> impl Future<Output = Result<(), StoreError>> + MaybeSend {
                    S::keep_record(self, guard, body)
                }

                fn keep_pins(&self, guard: &Self::Guard, pins: &SignedUnder) -> impl Future<Output = Result<(), StoreError>> + MaybeSend {
                    S::keep_pins(self, guard, pins)
                }

                fn append(&self, guard: &Self::Guard, entry: &Entry) -> impl Future<Output = Result<(), StoreError>> + MaybeSend {
                    S::append(self, guard, entry)
                }

                fn replace_journal(&self, guard: &Self::Guard, entries: &[Entry]) -> impl Future<Output = Result<(), StoreError>> + MaybeSend {
                    S::replace_journal(self, guard, entries)
                }

                fn orders(&self) -> impl Future<Output = Result<Vec<OrderId>, StoreError>> + MaybeSend {
                    S::orders(self)
                }

                fn order_of(&self, hash: &SecretHash) -> impl Future<Output = Result<Option<OrderId>, StoreError>> + MaybeSend {
                    S::order_of(self, hash)
                }
            }
        )*
    };
}

forward! { ['s] &'s S; [] Box<S>; [] Arc<S>; }
