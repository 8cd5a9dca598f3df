//! The stored form of an order: everything that any step needs, even as the first one after a restart.

use std::fmt;
use std::sync::Arc;

use countersign::{Policy, Registry, SecretHash, U256};
use serde::{Deserialize, Serialize};

use crate::request::OrderId;
use crate::secret::Secret;
use crate::stored::StoredSwap;
use countersign_transport::{MaybeSend, MaybeSync};

/// A stored order.
#[derive(Debug)]
#[non_exhaustive]
pub struct KeptOrder {
    /// The request and the response to it.
    pub swap: StoredSwap,
    /// The body of the record that the order was verified with when it was signed; `None` before. Its terms apply until the order ends.
    pub record: Option<Vec<u8>>,
    /// The wallet's pins and policy of that time; `None` before. They apply until the order ends, because a pin that is removed later
    /// must not prevent a paid order from being redeemed or refunded.
    pub pins: Option<Pins>,
    /// The secret; `None` if the service or somebody else holds it.
    pub secret: Option<Secret>,
    /// The index with which the secret and the owner's keys are derived from the rescue phrase; `None` if they are not.
    pub index: Option<u32>,
    /// The minimum that the order must pay, in base units of the destination asset; `None` for no minimum. An order that pays less is not
    /// signed.
    pub at_least: Option<U256>,
    /// The journal: what was done or about to be done, in order.
    pub journal: Vec<Entry>,
}

/// The registry and the policy that an order was verified with.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[expect(clippy::exhaustive_structs, reason = "a file whose form is documented")]
pub struct Pins {
    /// The pinned registry at that time.
    pub registry: Registry,
    /// The policy at that time.
    pub policy: Policy,
}

/// One line of the journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::exhaustive_structs, reason = "a line of a file whose form is documented")]
pub struct Entry {
    /// The time of writing, in Unix seconds by the caller's clock.
    pub at: u64,
    /// What happened.
    #[serde(flatten)]
    pub event: Event,
}

/// Something that was done or is about to be done. An event that moves money or a secret is written before it happens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Event {
    /// The owner signed. From then on these transactions are sent, unless a later entry replaces them. A funding is never replaced.
    Signed {
        /// What the transactions do.
        purpose: Purpose,
        /// The transactions, in the order in which they are broadcast.
        transactions: Vec<KeptTransaction>,
        /// The gasless submission that the service gets in place of a funding transaction; `None` without one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        gasless: Option<String>,
    },
    /// Something is about to be sent.
    Sending {
        /// What is sent.
        what: Sendable,
    },
    /// It was sent, and accepted.
    Sent {
        /// What is sent.
        what: Sendable,
    },
    /// It was refused, or it is unknown whether it arrived.
    NotSent {
        /// What is sent.
        what: Sendable,
        /// Why, for display.
        error: String,
    },
    /// The owner reports that a transaction is on chain already.
    OnChain {
        /// What is sent.
        what: Sendable,
    },
    /// The secret is about to be released. From then on the redemption is urgent.
    SecretLeaving {
        /// How it is released.
        path: Path,
    },
    /// The swap ended.
    Ended {
        /// How it ended.
        outcome: Outcome,
    },
}

/// The purpose of signed transactions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Purpose {
    /// Locks the owner's funds on the source chain.
    Funding,
    /// Redeems on the destination chain with the secret.
    Redemption,
    /// Refunds the owner on the source chain.
    Refund,
}

/// Something that is sent to a chain or to the service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Sendable {
    /// The gasless funding, sent to the service.
    Gasless,
    /// The funding transactions that the owner broadcasts; with a gasless funding, only its approvals.
    Funding,
    /// The redemption that the owner broadcasts.
    Redemption,
    /// The secret, sent to the service's relayer.
    Secret,
    /// The refund that the owner broadcasts.
    Refund,
    /// The request to the service's relayer to refund.
    RefundRequest,
}

/// How the secret is released.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Path {
    /// In a redemption that the owner broadcasts. Nobody learns the secret before the transaction is broadcast.
    Own,
    /// By sending it to the service's relayer, which redeems for the owner.
    Relayer,
}

/// How a swap ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Outcome {
    /// The owner has received the destination funds.
    Complete,
    /// The owner has the source funds back.
    Refunded,
    /// Nothing was paid, and nothing will be.
    Expired,
    /// The source was redeemed and the destination refunded: the funds are gone.
    Lost,
}

/// A stored signed transaction, which can be sent again without being signed again.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::exhaustive_structs, reason = "a member of a file whose form is documented")]
pub struct KeptTransaction {
    /// Name of the chain.
    pub chain: String,
    /// What it does, by its stable name: `approval`, `initiate`, `redeem`, `refund`.
    pub role: String,
    /// The transaction id, as explorers write it.
    pub id: String,
    /// The form that nodes accept: the bytes in hex, or on Starknet the transaction as JSON.
    pub payload: String,
    /// The outputs that it spends on Bitcoin-like chains; empty on other chains.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<String>,
}

impl fmt::Debug for KeptTransaction {
    /// Leaves out the payload, because that of a redemption contains the secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeptTransaction({} {} on {})", self.role, self.id, self.chain)
    }
}

impl KeptOrder {
    /// Creates a stored order from its request, response and secret; everything else is empty.
    #[must_use]
    pub const fn new(swap: StoredSwap, secret: Option<Secret>) -> Self {
        Self { swap, record: None, pins: None, secret, index: None, at_least: None, journal: Vec::new() }
    }

    /// Returns the secret if the order's request contains its hash. The secret of another order is never used.
    #[must_use]
    pub fn own_secret(&self) -> Option<&Secret> {
        self.secret.as_ref().filter(|secret| self.swap.request().secret_hash == Some(secret.hash()))
    }

    /// Returns the most recently signed transactions for a purpose, with the gasless funding if there is one; `None` if nothing was
    /// signed. A funding is signed once. A redemption or a refund is signed again if the chain rejected it, or to raise its fee.
    #[must_use]
    pub fn signed(&self, wanted: Purpose) -> Option<(&[KeptTransaction], Option<&str>)> {
        self.journal.iter().rev().find_map(|entry| match &entry.event {
            Event::Signed { purpose, transactions, gasless } if *purpose == wanted => Some((transactions.as_slice(), gasless.as_deref())),
            _ => None,
        })
    }

    /// Returns when the transactions for a purpose were last signed, in Unix seconds; `None` if never.
    #[must_use]
    pub fn signed_at(&self, wanted: Purpose) -> Option<u64> {
        let is_signed = |entry: &&Entry| matches!(&entry.event, Event::Signed { purpose, .. } if *purpose == wanted);
        self.journal.iter().rev().find(is_signed).map(|entry| entry.at)
    }

    /// Returns whether the transaction with this id was signed for a purpose, even if another one replaced it later.
    #[must_use]
    pub fn has_signed(&self, wanted: Purpose, id: &str) -> bool {
        self.has(|event| match event {
            Event::Signed { purpose, transactions, .. } => {
                *purpose == wanted && transactions.iter().any(|transaction| transaction.id.eq_ignore_ascii_case(id))
            }
            _ => false,
        })
    }

    /// Returns whether the order is paid by a gasless message to the service. The owner then broadcasts only approvals.
    #[must_use]
    pub fn is_gasless(&self) -> bool {
        self.signed(Purpose::Funding).is_some_and(|(_, gasless)| gasless.is_some())
    }

    /// Returns whether the payment may have been sent. An approval for a gasless payment does not count.
    #[must_use]
    pub fn may_be_paid(&self) -> bool {
        self.may_be_sent(Sendable::Gasless) || (!self.is_gasless() && self.may_be_sent(Sendable::Funding))
    }

    /// Returns whether something was sent and accepted, or is on chain.
    #[must_use]
    pub fn was_sent(&self, wanted: Sendable) -> bool {
        self.has(|event| matches!(event, Event::Sent { what } | Event::OnChain { what } if *what == wanted))
    }

    /// Returns whether something may have been sent: its intent was written, whatever the outcome.
    #[must_use]
    pub fn may_be_sent(&self, wanted: Sendable) -> bool {
        self.was_sent(wanted) || self.has(|event| matches!(event, Event::Sending { what } if *what == wanted))
    }

    /// Returns how the secret was released, or may have been; `None` if it was not.
    #[must_use]
    pub fn secret_left(&self) -> Option<Path> {
        self.journal.iter().rev().find_map(|entry| match entry.event {
            Event::SecretLeaving { path } => Some(path),
            _ => None,
        })
    }

    /// Returns how the swap ended; `None` if it has not.
    #[must_use]
    pub fn outcome(&self) -> Option<Outcome> {
        self.journal.iter().rev().find_map(|entry| match entry.event {
            Event::Ended { outcome } => Some(outcome),
            _ => None,
        })
    }

    /// Returns the number of attempts to send something, and the time of the last one in Unix seconds (0 without an attempt).
    #[must_use]
    pub fn attempts(&self, wanted: Sendable) -> (u32, u64) {
        let attempts = self.journal.iter().filter(|entry| matches!(entry.event, Event::Sending { what } if what == wanted));
        attempts.fold((0, 0), |(count, _), entry| (count.saturating_add(1), entry.at))
    }

    fn has(&self, is: impl Fn(&Event) -> bool) -> bool {
        self.journal.iter().any(|entry| is(&entry.event))
    }
}

/// An error of a [`Store`].
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

/// A durable store of orders: when a method returns, what it wrote must survive a power failure.
///
/// An implementation that loses writes can lose money. `countersign-store` is an implementation on disk.
pub trait Store: MaybeSend + MaybeSync {
    /// A lock on one order. While it exists, no other process or task works on that order.
    type Guard: MaybeSend;

    /// Stores a new order atomically: request, response, secret, index and minimum. Record, pins and journal of `order` are ignored.
    ///
    /// # Errors
    ///
    /// [`StoreError::Exists`] if the order is stored already, [`StoreError::SecretUsed`] if another order has the same secret hash, or
    /// [`StoreError::Failed`].
    fn create(&self, order: &KeptOrder) -> Result<(), StoreError>;

    /// Locks an order for one step, without waiting.
    ///
    /// # Errors
    ///
    /// [`StoreError::Busy`] if it is locked, [`StoreError::Unknown`] if it is not stored, or [`StoreError::Failed`].
    fn lock(&self, id: &OrderId) -> Result<Self::Guard, StoreError>;

    /// Reads an order.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unknown`] if it is not stored, or [`StoreError::Failed`] if it cannot be read.
    fn load(&self, id: &OrderId) -> Result<KeptOrder, StoreError>;

    /// Stores the body of the record that the order was verified with. It is stored once. Storing the same bytes again succeeds.
    ///
    /// # Errors
    ///
    /// [`StoreError::Exists`] or [`StoreError::Failed`] if a different record is stored already, or [`StoreError::Failed`].
    fn keep_record(&self, guard: &Self::Guard, body: &[u8]) -> Result<(), StoreError>;

    /// Stores the pins and the policy that the order is verified with, unless some are stored already.
    ///
    /// # Errors
    ///
    /// [`StoreError::Failed`].
    fn keep_pins(&self, guard: &Self::Guard, pins: &Pins) -> Result<(), StoreError>;

    /// Appends a line to the journal.
    ///
    /// # Errors
    ///
    /// [`StoreError::Failed`]. The caller must then not do what the line announces.
    fn append(&self, guard: &Self::Guard, entry: &Entry) -> Result<(), StoreError>;

    /// Lists the stored orders.
    ///
    /// # Errors
    ///
    /// [`StoreError::Failed`] if the store cannot be read.
    fn orders(&self) -> Result<Vec<OrderId>, StoreError>;

    /// Returns the order whose request contains a secret hash; `None` if there is no such order.
    ///
    /// # Errors
    ///
    /// [`StoreError::Failed`] if an order cannot be read.
    fn order_of(&self, hash: &SecretHash) -> Result<Option<OrderId>, StoreError> {
        for id in self.orders()? {
            if self.load(&id)?.swap.request().secret_hash == Some(*hash) {
                return Ok(Some(id));
            }
        }
        Ok(None)
    }
}

impl<S: Store> Store for Arc<S> {
    type Guard = S::Guard;

    fn create(&self, order: &KeptOrder) -> Result<(), StoreError> {
        S::create(self, order)
    }

    fn lock(&self, id: &OrderId) -> Result<Self::Guard, StoreError> {
        S::lock(self, id)
    }

    fn load(&self, id: &OrderId) -> Result<KeptOrder, StoreError> {
        S::load(self, id)
    }

    fn keep_record(&self, guard: &Self::Guard, body: &[u8]) -> Result<(), StoreError> {
        S::keep_record(self, guard, body)
    }

    fn keep_pins(&self, guard: &Self::Guard, pins: &Pins) -> Result<(), StoreError> {
        S::keep_pins(self, guard, pins)
    }

    fn append(&self, guard: &Self::Guard, entry: &Entry) -> Result<(), StoreError> {
        S::append(self, guard, entry)
    }

    fn orders(&self) -> Result<Vec<OrderId>, StoreError> {
        S::orders(self)
    }
}
