//! Which event of a transaction shows the payment of an order.
//!
//! The event of an HTLC that is funded has the order's id, the secret hash and the amount. The other terms are proven by the id, where it is a
//! hash of all of them: the pinned contract writes the hash that it computed, and nobody finds other terms with this hash. That holds also where
//! nobody has confirmed the formula.

use super::HtlcEvent;
use crate::report::{Code, Refusal, TypedValue};
use crate::{SecretHash, U256};

/// The events of transactions that are not the order's own, compared with the order.
#[derive(Debug)]
pub struct PaymentSearch<Id> {
    secret_hash: SecretHash,
    amount: U256,
    /// The ids that the contract can give to the order's terms.
    ids: Vec<Id>,
    /// Returns an id as bytes, for messages.
    bytes: fn(Id) -> [u8; 32],
    found: Option<Found<Id>>,
}

#[derive(Debug)]
struct Found<Id> {
    /// The position of its receipt.
    receipt: usize,
    order_id: Id,
    transaction: Id,
}

/// Where a transaction has an event.
#[derive(Debug, Clone, Copy)]
#[allow(clippy::exhaustive_structs, reason = "the families fill in every member")]
pub struct EventPlace<'a> {
    /// The position of the receipt: some wallets list the receipt of one transaction once for each call.
    pub receipt: usize,
    /// The location of the event.
    pub event: &'a str,
    /// The place of the order's id in the event, which begins with `/`.
    pub order_id: &'static str,
}

impl<Id: Copy + PartialEq> PaymentSearch<Id> {
    /// Begins to look for the payment of an order that the contract can give one of these ids, each of which commits to all terms.
    ///
    /// # Errors
    ///
    /// [`Code::TransactionMismatch`] without a location if there is no such id.
    pub fn new(secret_hash: SecretHash, amount: U256, ids: Vec<Id>, bytes: fn(Id) -> [u8; 32]) -> Result<Self, Refusal> {
        if ids.is_empty() {
            let reason = "the contract's swap ids do not commit to redeemer and timelock, so its event does not prove the payment";
            return Err(Refusal::new(Code::TransactionMismatch, "").with_reason(reason));
        }
        Ok(Self { secret_hash, amount, ids, bytes, found: None })
    }

    /// Compares an event that the pinned contract has emitted in a transaction that succeeded. Events of other orders are skipped.
    ///
    /// # Errors
    ///
    /// [`Code::TransactionMismatch`] at the part of the event that differs: it pays the same secret hash under other terms, or twice.
    pub fn add(&mut self, transaction: Id, event: &HtlcEvent<Id>, place: EventPlace<'_>) -> Result<(), Refusal> {
        let HtlcEvent::Initiated { order_id, secret_hash, amount } = event else { return Ok(()) };
        if *secret_hash != self.secret_hash {
            return Ok(());
        }
        let differs = |part: &str| Refusal::new(Code::TransactionMismatch, format!("{}{part}", place.event));
        if !self.ids.contains(order_id) {
            let expected: Vec<_> = self.ids.iter().map(|id| hex::encode((self.bytes)(*id))).collect();
            let reason = "the contract was paid with this secret hash under other terms";
            let refusal = differs(place.order_id).with_reason(reason).with_actual(TypedValue::Hash((self.bytes)(*order_id)));
            return Err(refusal.with_expected(expected.join(" or ")));
        }
        if *amount != self.amount {
            return Err(differs("").with_reason("another amount").with_expected(self.amount).with_actual(*amount));
        }
        let is_other =
            |earlier: &Found<Id>| earlier.receipt == place.receipt || (earlier.order_id, earlier.transaction) != (*order_id, transaction);
        if self.found.as_ref().is_some_and(is_other) {
            return Err(differs("").with_reason("the order was paid twice"));
        }
        self.found = Some(Found { receipt: place.receipt, order_id: *order_id, transaction });
        Ok(())
    }

    /// Returns the transaction that paid; `None` if no event shows the payment.
    #[must_use]
    pub fn transaction(self) -> Option<Id> {
        self.found.map(|found| found.transaction)
    }
}
