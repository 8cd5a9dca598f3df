//! What is kept of an order between two steps: enough for any step to be the first one after a restart.

use std::fmt;
use std::sync::Arc;

use countersign::{Policy, Registry, SecretHash, U256};
use serde::{Deserialize, Serialize};

use crate::request::OrderId;
use crate::secret::Secret;
use crate::stored::StoredSwap;
use crate::transport::{MaybeSend, MaybeSync};

/// One order as it is kept.
#[derive(Debug)]
#[non_exhaustive]
pub struct KeptOrder {
    /// The request and the response to it.
    pub swap: StoredSwap,
    /// The body of the record that the order was verified with when it was signed. Its terms hold until the end.
    pub record: Option<Vec<u8>>,
    /// What the wallet had pinned and allowed at that time. It holds until the end, too: a pin that is removed later must not
    /// keep a paid order from being redeemed or refunded.
    pub pins: Option<Pins>,
    /// The secret, where the owner has chosen it.
    pub secret: Option<Secret>,
    /// The index of the rescue phrase from which the secret and the owner's keys are derived, if they are.
    pub index: Option<u32>,
    /// The least that the order may pay, in base units of the destination asset. An order that pays less is not signed.
    pub at_least: Option<U256>,
    /// What was done, in order.
    pub journal: Vec<Entry>,
}

/// What an order was verified by, besides its own documents.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[expect(clippy::exhaustive_structs, reason = "a file whose form is documented")]
pub struct Pins {
    /// What the wallet had pinned.
    pub registry: Registry,
    /// What the wallet allowed.
    pub policy: Policy,
}

/// One line of the journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::exhaustive_structs, reason = "a line of a file whose form is documented")]
pub struct Entry {
    /// When it was written, in Unix seconds by the caller's clock.
    pub at: u64,
    /// What happened.
    #[serde(flatten)]
    pub event: Event,
}

/// Something that was done, or is about to be done. Whatever moves money or a secret is written before it is done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Event {
    /// The owner signed. From then on these very transactions are sent, never others.
    Signed {
        /// What they do.
        purpose: Purpose,
        /// The transactions, in the order in which they are broadcast.
        transactions: Vec<KeptTransaction>,
        /// What the service is sent instead of a funding transaction.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        gasless: Option<String>,
    },
    /// Something is about to be sent.
    Sending {
        /// What.
        what: Sendable,
    },
    /// It was sent, and accepted.
    Sent {
        /// What.
        what: Sendable,
    },
    /// It was refused, or nothing tells whether it arrived.
    NotSent {
        /// What.
        what: Sendable,
        /// Why, for people.
        error: String,
    },
    /// The owner says that a transaction is on chain already.
    OnChain {
        /// What.
        what: Sendable,
    },
    /// The secret is about to leave. From then on redemption is urgent.
    SecretLeaving {
        /// By which path.
        path: Path,
    },
    /// The swap ended.
    Ended {
        /// How.
        outcome: Outcome,
    },
}

/// What signed transactions are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Purpose {
    /// To lock the owner's funds on the source chain.
    Funding,
    /// To redeem on the destination chain with the secret.
    Redemption,
    /// To take the owner's funds back on the source chain.
    Refund,
}

/// Something that leaves the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Sendable {
    /// The gasless funding, to the service.
    Gasless,
    /// The transactions of the funding that the owner broadcasts: with a gasless funding, its approvals.
    Funding,
    /// The redemption that the owner broadcasts.
    Redemption,
    /// The secret, to the service's relayer.
    Secret,
    /// The refund that the owner broadcasts.
    Refund,
    /// The request to the service's relayer to refund.
    RefundRequest,
}

/// How the secret leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Path {
    /// In a redemption that the owner broadcasts: the chain reveals it, and nobody learns it before.
    Own,
    /// To the service's relayer, which redeems for the owner.
    Relayer,
}

/// How a swap ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Outcome {
    /// The owner is paid.
    Complete,
    /// The owner has the funds back.
    Refunded,
    /// Nothing was paid, and nothing will be.
    Expired,
    /// The source was redeemed and the destination refunded: the funds are gone.
    Lost,
}

/// A signed transaction as it is kept: it can be sent again, and never has to be signed again.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::exhaustive_structs, reason = "a member of a file whose form is documented")]
pub struct KeptTransaction {
    /// Name of the chain.
    pub chain: String,
    /// What it does, by its stable name: `approval`, `initiate`, `redeem`, `refund`.
    pub role: String,
    /// Its id, as explorers write it.
    pub id: String,
    /// What nodes take: the bytes in hex, or on Starknet the transaction as JSON.
    pub payload: String,
    /// The outputs that it spends, on Bitcoin-like chains.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<String>,
}

impl fmt::Debug for KeptTransaction {
    /// Leaves the payload out: that of a redemption has the secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeptTransaction({} {} on {})", self.role, self.id, self.chain)
    }
}

impl KeptOrder {
    /// Creates an order of which nothing but request and response is known.
    #[must_use]
    pub const fn new(swap: StoredSwap, secret: Option<Secret>) -> Self {
        Self { swap, record: None, pins: None, secret, index: None, at_least: None, journal: Vec::new() }
    }

    /// Returns the secret, if the request of this order names its hash. A secret of another order is never used.
    #[must_use]
    pub fn own_secret(&self) -> Option<&Secret> {
        self.secret.as_ref().filter(|secret| self.swap.request().secret_hash == Some(secret.hash()))
    }

    /// Returns the transactions that were signed last for a purpose, and the gasless funding. A funding is signed once; a
    /// redemption or a refund that its chain rejected is signed again.
    #[must_use]
    pub fn signed(&self, wanted: Purpose) -> Option<(&[KeptTransaction], Option<&str>)> {
        self.journal.iter().rev().find_map(|entry| match &entry.event {
            Event::Signed { purpose, transactions, gasless } if *purpose == wanted => Some((transactions.as_slice(), gasless.as_deref())),
            _ => None,
        })
    }

    /// Returns when the transactions for a purpose were signed last, in Unix seconds.
    #[must_use]
    pub fn signed_at(&self, wanted: Purpose) -> Option<u64> {
        let is_signed = |entry: &&Entry| matches!(&entry.event, Event::Signed { purpose, .. } if *purpose == wanted);
        self.journal.iter().rev().find(is_signed).map(|entry| entry.at)
    }

    /// Returns whether a transaction is one that was signed for a purpose, also if another one replaced it later.
    #[must_use]
    pub fn has_signed(&self, wanted: Purpose, id: &str) -> bool {
        self.has(|event| match event {
            Event::Signed { purpose, transactions, .. } => {
                *purpose == wanted && transactions.iter().any(|transaction| transaction.id.eq_ignore_ascii_case(id))
            }
            _ => false,
        })
    }

    /// Returns whether the order is paid by a message to the service. What the owner broadcasts then are only approvals.
    #[must_use]
    pub fn is_gasless(&self) -> bool {
        self.signed(Purpose::Funding).is_some_and(|(_, gasless)| gasless.is_some())
    }

    /// Returns whether the payment may have been sent. Where there is a gasless message, what the owner broadcasts are only approvals.
    #[must_use]
    pub fn may_be_paid(&self) -> bool {
        self.may_be_sent(Sendable::Gasless) || (!self.is_gasless() && self.may_be_sent(Sendable::Funding))
    }

    /// Returns whether something was sent and accepted, or is on chain.
    #[must_use]
    pub fn was_sent(&self, wanted: Sendable) -> bool {
        self.has(|event| matches!(event, Event::Sent { what } | Event::OnChain { what } if *what == wanted))
    }

    /// Returns whether something may have been sent: its intent is written, whatever became of it.
    #[must_use]
    pub fn may_be_sent(&self, wanted: Sendable) -> bool {
        self.was_sent(wanted) || self.has(|event| matches!(event, Event::Sending { what } if *what == wanted))
    }

    /// Returns how the secret has left, or may have left.
    #[must_use]
    pub fn secret_left(&self) -> Option<Path> {
        self.journal.iter().rev().find_map(|entry| match entry.event {
            Event::SecretLeaving { path } => Some(path),
            _ => None,
        })
    }

    /// Returns how the swap ended.
    #[must_use]
    pub fn outcome(&self) -> Option<Outcome> {
        self.journal.iter().rev().find_map(|entry| match entry.event {
            Event::Ended { outcome } => Some(outcome),
            _ => None,
        })
    }

    /// Returns the number of attempts to send something, and when the last one was.
    #[must_use]
    pub fn attempts(&self, wanted: Sendable) -> (u32, u64) {
        let attempts = self.journal.iter().filter(|entry| matches!(entry.event, Event::Sending { what } if what == wanted));
        attempts.fold((0, 0), |(count, _), entry| (count.saturating_add(1), entry.at))
    }

    fn has(&self, is: impl Fn(&Event) -> bool) -> bool {
        self.journal.iter().any(|entry| is(&entry.event))
    }
}

/// Why a store did not do what it was asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// Another step of this order is under way, here or in another process.
    #[error("another process works on this order")]
    Busy,
    /// Nothing is kept of this order.
    #[error("nothing is kept of order {0}")]
    Unknown(String),
    /// An order of this id is kept already.
    #[error("order {0} is kept already")]
    Exists(String),
    /// The secret hash is that of an order that is kept: a secret belongs to one order.
    #[error("the secret hash is that of order {0}: a secret belongs to one order")]
    SecretUsed(OrderId),
    /// The store failed.
    #[error("{0}")]
    Failed(String),
}

/// Keeps orders durably: when a method returns, what it wrote survives a power cut.
///
/// An implementation that keeps less than it says loses money: see `countersign-store` for one on disk.
pub trait Store: MaybeSend + MaybeSync {
    /// Holds an order: while it lives, nobody else works on it.
    type Guard: MaybeSend;

    /// Keeps a new order, all of it or nothing: request, response, secret, index and the least that it may pay.
    ///
    /// # Errors
    ///
    /// [`StoreError::Exists`] if an order of this id is kept, [`StoreError::SecretUsed`] if one names the same secret hash.
    fn create(&self, order: &KeptOrder) -> Result<(), StoreError>;

    /// Takes an order to work on it.
    ///
    /// # Errors
    ///
    /// [`StoreError::Busy`] if somebody else has it.
    fn lock(&self, id: &OrderId) -> Result<Self::Guard, StoreError>;

    /// Reads an order.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unknown`], or what cannot be read.
    fn load(&self, id: &OrderId) -> Result<KeptOrder, StoreError>;

    /// Keeps the body of the record that the order was verified with. It is kept once: another one is refused.
    ///
    /// # Errors
    ///
    /// [`StoreError::Exists`] if a different one is kept.
    fn keep_record(&self, guard: &Self::Guard, body: &[u8]) -> Result<(), StoreError>;

    /// Keeps what the order is verified by. It is kept once: what is kept already stays.
    ///
    /// # Errors
    ///
    /// Whatever failed.
    fn keep_pins(&self, guard: &Self::Guard, pins: &Pins) -> Result<(), StoreError>;

    /// Appends a line to the journal.
    ///
    /// # Errors
    ///
    /// Whatever failed: the caller does not do what it wanted to write.
    fn append(&self, guard: &Self::Guard, entry: &Entry) -> Result<(), StoreError>;

    /// Lists the orders that are kept.
    ///
    /// # Errors
    ///
    /// What cannot be read.
    fn orders(&self) -> Result<Vec<OrderId>, StoreError>;

    /// Returns the order whose request names a hash: a secret belongs to one order.
    ///
    /// # Errors
    ///
    /// What cannot be read.
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
