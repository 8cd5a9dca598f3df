//! The journal of an order: what was done or about to be done, in order.

use countersign::{BroadcastTransaction, chains::UnixTime};
use serde::{Deserialize, Serialize};

use super::kept::OrderState;

mod fold;
mod line;
#[cfg(test)]
mod tests;

#[doc(hidden)]
pub use fold::fold;
pub(super) use fold::folded;

/// The number of signatures for a funding that are kept. A payment is raised now and then, and any of them may be mined.
pub(super) const KEPT_FUNDINGS: usize = 16;

/// One line of the journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[expect(clippy::exhaustive_structs, reason = "a line of a file whose form is documented")]
pub struct Entry {
    /// The time of writing, by the caller's clock.
    pub at: UnixTime,
    /// What happened.
    #[serde(flatten)]
    pub event: Event,
}

/// Something that was done or is about to be done. An event that moves money or a secret is written before it happens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Event {
    /// The owner signed. From then on these transactions are sent, unless a later entry replaces them. A funding is replaced only if
    /// it was rejected, or can never be included; or by one that spends the same coins for a higher fee, so that one of the two at most can
    /// be mined.
    Signed {
        /// What the transactions do.
        purpose: Purpose,
        /// The transactions, in the order in which they are broadcast.
        transactions: Vec<BroadcastTransaction>,
        /// The gasless submission that the service gets in place of a funding transaction; `None` without one.
        #[serde(skip_serializing_if = "Option::is_none")]
        gasless: Option<String>,
    },
    /// Something is about to be sent.
    Sending {
        /// What is sent.
        what: Delivery,
        /// The number of attempts that this line counts: 1, or more if older lines were merged into it.
        #[serde(skip_serializing_if = "is_once")]
        times: u32,
    },
    /// It was sent, and accepted.
    Sent {
        /// What is sent.
        what: Delivery,
    },
    /// It was refused, or it is unknown whether it arrived.
    NotSent {
        /// What is sent.
        what: Delivery,
        /// Why, for display.
        error: String,
        /// Whether as many endpoints as must agree rejected it as invalid.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        is_rejected: bool,
    },
    /// It was printed, or handed to the owner, who may broadcast it or not. That is a note, and never a permission to send anything.
    Printed {
        /// What was printed.
        what: Delivery,
    },
    /// The owner reports that a transaction is on chain already.
    OnChain {
        /// What is sent.
        what: Delivery,
    },
    /// A signer that can send the payment by itself is about to get it. Until a later line says what the signer did, the payment may be on
    /// its way.
    PaymentLeaving,
    /// The signer that got the payment has neither signed nor sent it.
    PaymentStayed,
    /// The secret is about to be released. From then on the redemption is urgent.
    SecretLeaving {
        /// How it is released.
        path: SecretRoute,
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
pub enum Delivery {
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
pub enum SecretRoute {
    /// In a redemption that a signer outside of this process is asked to sign. The signer sees the secret, and could broadcast it.
    Signer,
    /// In a redemption that the owner broadcasts. Apart from the signer, nobody learns the secret before the transaction is broadcast.
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

impl Outcome {
    /// Returns the stable name, in snake case.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::Refunded => "refunded",
            Self::Expired => "expired",
            Self::Lost => "lost",
        }
    }
}

const fn once() -> u32 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_once(times: &u32) -> bool {
    *times == 1
}

impl Event {
    /// Returns the stable name, in snake case: the member `event` of the line.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Signed { .. } => "signed",
            Self::Sending { .. } => "sending",
            Self::Sent { .. } => "sent",
            Self::NotSent { .. } => "not_sent",
            Self::Printed { .. } => "printed",
            Self::OnChain { .. } => "on_chain",
            Self::PaymentLeaving => "payment_leaving",
            Self::PaymentStayed => "payment_stayed",
            Self::SecretLeaving { .. } => "secret_leaving",
            Self::Ended { .. } => "ended",
        }
    }

    /// Creates the intent to send something.
    #[must_use]
    pub const fn sending(what: Delivery) -> Self {
        Self::Sending { what, times: 1 }
    }
}

/// Returns whether two payments spend a coin in common: of the two at most one can be mined.
fn share_a_coin(one: &[BroadcastTransaction], other: &[BroadcastTransaction]) -> bool {
    one.iter().flat_map(|one| &one.spends).any(|coin| other.iter().any(|other| other.spends.contains(coin)))
}

impl OrderState {
    /// Returns the most recently signed transactions for a purpose, with the gasless funding if there is one; `None` if nothing was
    /// signed. A funding is signed again if it was rejected or is dead, and on Bitcoin-like chains to raise its fee; a redemption or a refund
    /// also to raise its fee.
    #[must_use]
    pub fn signed(&self, wanted: Purpose) -> Option<(&[BroadcastTransaction], Option<&str>)> {
        self.journal.iter().rev().find_map(|entry| match &entry.event {
            Event::Signed { purpose, transactions, gasless } if *purpose == wanted => Some((transactions.as_slice(), gasless.as_deref())),
            _ => None,
        })
    }

    /// Returns when the transactions for a purpose were last signed; `None` if never.
    #[must_use]
    pub fn signed_at(&self, wanted: Purpose) -> Option<UnixTime> {
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

    /// Returns whether the payment may have been sent, from here or by a signer that can send by itself. An approval for a gasless payment
    /// does not count.
    #[must_use]
    pub fn may_be_paid(&self) -> bool {
        let is_sent = self.may_be_sent(Delivery::Gasless) || (!self.is_gasless() && self.may_be_sent(Delivery::Funding));
        is_sent || self.is_payment_at_signer()
    }

    /// Returns whether the order is still to be paid: it has not ended, and no payment may have been sent.
    #[must_use]
    pub fn is_to_be_paid(&self) -> bool {
        !self.may_be_paid() && self.outcome().is_none()
    }

    /// Returns whether a signer that can send the payment by itself has got it, and what it did is not known.
    fn is_payment_at_signer(&self) -> bool {
        let last = self.journal.iter().rev().find(|entry| match &entry.event {
            Event::PaymentLeaving | Event::PaymentStayed => true,
            Event::Signed { purpose, .. } => *purpose == Purpose::Funding,
            _ => false,
        });
        last.is_some_and(|entry| entry.event == Event::PaymentLeaving)
    }

    /// Returns whether no payment was signed here since a signer that can send by itself was last asked for one, whatever it has replied.
    #[must_use]
    pub fn newest_payment_was_handed_out(&self) -> bool {
        let last = self.journal.iter().rev().find_map(|entry| match &entry.event {
            Event::PaymentLeaving => Some(true),
            Event::Signed { purpose: Purpose::Funding, .. } => Some(false),
            _ => None,
        });
        last.unwrap_or(true)
    }

    /// Returns whether the newest signed payment was rejected whenever it was sent, by as many endpoints as must agree. A payment that was
    /// raised counts together with the older ones that spend the same coins, because any of them may be mined.
    #[must_use]
    pub fn payment_was_rejected(&self) -> bool {
        let newest = self.signed(Purpose::Funding).map(|(transactions, _)| transactions).unwrap_or_default();
        let is_same = |other: &[BroadcastTransaction]| {
            other.is_empty() || share_a_coin(newest, other) || other.iter().any(|other| newest.iter().any(|one| one.id == other.id))
        };
        let is_payment = |event: &Event| match event {
            Event::Signed { purpose: Purpose::Funding, transactions, .. } => is_same(transactions),
            _ => false,
        };
        let after = self.journal.iter().position(|entry| is_payment(&entry.event)).and_then(|signed| self.journal.get(signed..));
        let mut is_rejected = false;
        for entry in after.unwrap_or_default() {
            match &entry.event {
                Event::NotSent { what: Delivery::Funding, is_rejected: true, .. } => is_rejected = true,
                Event::NotSent { what: Delivery::Funding, .. }
                | Event::Sent { what: Delivery::Funding }
                | Event::OnChain { .. }
                | Event::PaymentLeaving => return false,
                _ => {}
            }
        }
        is_rejected && !self.is_gasless()
    }

    /// Returns whether the newest signed payment may have been sent, or an older one that spends the same coins: either may be mined. After
    /// a payment was signed again with other coins, it was not yet.
    #[must_use]
    pub fn newest_payment_may_be_sent(&self) -> bool {
        let mut newest: Option<&[BroadcastTransaction]> = None;
        let mut is_sent = false;
        for entry in self.journal.iter().rev() {
            match (&entry.event, newest) {
                (Event::Sending { what: Delivery::Funding, .. } | Event::Sent { what: Delivery::Funding }, None) => return true,
                (Event::Sending { what: Delivery::Funding, .. } | Event::Sent { what: Delivery::Funding }, Some(_)) => is_sent = true,
                (Event::Signed { purpose: Purpose::Funding, transactions, .. }, None) => newest = Some(transactions),
                (Event::Signed { purpose: Purpose::Funding, transactions, .. }, Some(newest)) if is_sent => {
                    return share_a_coin(newest, transactions);
                }
                _ => {}
            }
        }
        false
    }

    /// Returns every payment that was signed and may be on its way, the newest first, by its last transaction; `None` if one of them is a
    /// message, which never expires, or if a signer that can send by itself may have sent one that is not known here.
    #[must_use]
    pub fn payments(&self) -> Option<Vec<&BroadcastTransaction>> {
        if self.is_payment_at_signer() {
            return None;
        }
        let mut payments: Vec<&BroadcastTransaction> = Vec::new();
        for entry in self.journal.iter().rev() {
            if let Event::Signed { purpose: Purpose::Funding, transactions, gasless } = &entry.event {
                let last = transactions.last().filter(|_| gasless.is_none())?;
                if payments.iter().all(|payment| payment.id != last.id) {
                    payments.push(last);
                }
            }
        }
        Some(payments)
    }

    /// Returns how many payments were signed, one after the other, of those that the journal keeps.
    #[must_use]
    pub fn fundings(&self) -> usize {
        self.journal.iter().filter(|entry| matches!(entry.event, Event::Signed { purpose: Purpose::Funding, .. })).count()
    }

    /// Returns whether something was sent and accepted, or is on chain.
    #[must_use]
    pub fn was_sent(&self, wanted: Delivery) -> bool {
        self.has(|event| matches!(event, Event::Sent { what } | Event::OnChain { what } if *what == wanted))
    }

    /// Returns whether something may have been sent: its intent was written, whatever the outcome.
    #[must_use]
    pub fn may_be_sent(&self, wanted: Delivery) -> bool {
        self.was_sent(wanted) || self.has(|event| matches!(event, Event::Sending { what, .. } if *what == wanted))
    }

    /// Returns how the secret was last released, or may have been; `None` if it was not.
    #[must_use]
    pub fn secret_left(&self) -> Option<SecretRoute> {
        self.journal.iter().rev().find_map(|entry| match entry.event {
            Event::SecretLeaving { path } => Some(path),
            _ => None,
        })
    }

    /// Returns whether the secret may have left this process.
    #[must_use]
    pub fn secret_has_left(&self) -> bool {
        self.has_left_by(SecretRoute::Signer) || self.redemption_was_printed() || self.secret_was_sent()
    }

    /// Returns whether the owner was given a redemption to broadcast. Whether that happened is not known.
    #[must_use]
    pub fn redemption_was_printed(&self) -> bool {
        self.has(|event| matches!(event, Event::Printed { what: Delivery::Redemption }))
    }

    /// Returns whether the secret may be known to others than the owner's signer.
    #[must_use]
    pub fn secret_was_sent(&self) -> bool {
        // A signed redemption that was neither sent nor handed out is known only here, and to its signer.
        self.relayer_has_secret() || (self.has_left_by(SecretRoute::Own) && self.may_be_sent(Delivery::Redemption))
    }

    /// Returns whether the service's relayer has the secret, or may have it.
    #[must_use]
    pub fn relayer_has_secret(&self) -> bool {
        self.has_left_by(SecretRoute::Relayer)
    }

    fn has_left_by(&self, wanted: SecretRoute) -> bool {
        self.has(|event| matches!(event, Event::SecretLeaving { path } if *path == wanted))
    }

    /// Returns how the swap ended; `None` if it has not. An order that ended because nothing was paid is open again once a later line says
    /// otherwise: another wallet, or a copy of this store, may have sent a payment that was not seen before.
    #[must_use]
    pub fn outcome(&self) -> Option<Outcome> {
        self.journal.iter().rev().enumerate().find_map(|(later, entry)| match entry.event {
            Event::Ended { outcome: Outcome::Expired } if later > 0 => Some(None),
            Event::Ended { outcome } => Some(Some(outcome)),
            _ => None,
        })?
    }

    /// Returns the number of attempts to send something, and the time of the last one ([`UnixTime::EPOCH`] without an attempt).
    #[must_use]
    pub fn attempts(&self, wanted: Delivery) -> (u32, UnixTime) {
        self.journal.iter().fold((0, UnixTime::EPOCH), |(count, last), entry| match entry.event {
            Event::Sending { what, times } if what == wanted => (u32::saturating_add(count, times), entry.at),
            _ => (count, last),
        })
    }

    fn has(&self, is: impl Fn(&Event) -> bool) -> bool {
        self.journal.iter().any(|entry| is(&entry.event))
    }
}
