//! Which events of a transaction show the payment of an order.
//!
//! The event of an HTLC that is funded has the order's id, the secret hash and the amount. The other terms are proven by the id, where it is a
//! hash of all of them: the pinned contract writes the hash that it computed, and nobody finds other terms with this hash. That holds also where
//! nobody has confirmed the formula.
//!
//! No id commits to destination data. The contract writes the data beside the id: in an event of its own, or in place of the other event.

use super::HtlcEvent;
use crate::report::{Code, Refusal, TypedValue};
use crate::{SecretHash, U256};

/// The terms that the events are compared with.
#[derive(Debug)]
#[allow(clippy::exhaustive_structs, reason = "the families fill in every member")]
pub struct PaymentTerms<Id> {
    /// The secret hash.
    pub secret_hash: SecretHash,
    /// The amount in base units.
    pub amount: U256,
    /// The ids that the contract can give to the order's terms.
    pub swap_ids: SwapIds<Id>,
    /// The destination data of the order's own call; `None` if the call has no such argument.
    pub destination_data: Option<Vec<u8>>,
    /// Whether the order has a gasless message, which has no destination data. A payment by it does not show data that is empty.
    pub is_gasless: bool,
}

/// The ids that a contract can give to an order's terms.
#[derive(Debug)]
#[allow(clippy::exhaustive_structs, reason = "the families fill in every member")]
pub struct SwapIds<Id> {
    /// By the formulas that commit to all terms but destination data.
    pub proving: Vec<Id>,
    /// By the contract's other formulas.
    pub others: Vec<Id>,
    /// The swap id of the order's record, in hex.
    pub recorded: Option<String>,
    /// Returns an id as bytes.
    pub bytes: fn(Id) -> [u8; 32],
}

/// The events of transactions that are not the order's own, compared with the order.
#[derive(Debug)]
pub struct PaymentSearch<Id> {
    secret_hash: SecretHash,
    amount: U256,
    /// The ids by which the payment is found.
    ids: Vec<Id>,
    bytes: fn(Id) -> [u8; 32],
    destination_data: Option<Vec<u8>>,
    is_gasless: bool,
    /// The event that shows the payment.
    payment: Option<Found<Id>>,
    /// The event that shows the destination data.
    data: Option<Found<Id>>,
}

#[derive(Debug)]
struct Found<Id> {
    /// The position of its receipt.
    receipt: usize,
    /// The location of the event.
    location: String,
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

impl<Id: Copy + PartialEq> SwapIds<Id> {
    /// Returns the ids that prove the terms, without those that the record contradicts.
    fn proving(&self) -> Result<Vec<Id>, Refusal> {
        let recorded = self.recorded.as_ref().map(|id| format!("{:0>64}", id.trim_start_matches("0x")));
        let is_recorded = |id: Id| recorded.as_ref().is_none_or(|recorded| hex::encode((self.bytes)(id)).eq_ignore_ascii_case(recorded));
        let ids: Vec<_> = self.proving.iter().copied().filter(|id| is_recorded(*id)).collect();
        if !ids.is_empty() {
            return Ok(ids);
        }
        let unproven = |reason: &'static str| Refusal::new(Code::TransactionMismatch, "").with_reason(reason);
        if self.proving.is_empty() && self.others.is_empty() {
            return Err(unproven("no formula of the contract's swap ids is known, so its event does not prove the payment"));
        }
        match &self.recorded {
            Some(recorded) if !self.others.iter().any(|id| is_recorded(*id)) => {
                let reason = "the swap id of the order record does not follow from the order's terms, so no event of the contract proves the \
                              payment under it";
                let refusal = unproven(reason).with_actual(recorded);
                Err(if self.proving.is_empty() { refusal } else { refusal.with_expected(spell(&self.proving, self.bytes)) })
            }
            _ => Err(unproven("the contract's swap ids do not commit to redeemer and timelock, so its event does not prove the payment")),
        }
    }
}

/// Spells the ids that are accepted.
fn spell<Id: Copy>(ids: &[Id], bytes: fn(Id) -> [u8; 32]) -> String {
    ids.iter().map(|id| hex::encode(bytes(*id))).collect::<Vec<_>>().join(" or ")
}

/// Spells destination data.
fn spell_data(data: Option<&[u8]>) -> String {
    match data {
        None => "none".to_owned(),
        Some([]) => "empty".to_owned(),
        Some(data) => hex::encode(data),
    }
}

impl<Id: Copy + PartialEq> PaymentSearch<Id> {
    /// Begins to look for the payment of an order.
    ///
    /// # Errors
    ///
    /// [`Code::TransactionMismatch`] without a location if no id of the contract commits to the terms, or if the order's record has another one.
    pub fn new(order: PaymentTerms<Id>) -> Result<Self, Refusal> {
        let PaymentTerms { secret_hash, amount, swap_ids, destination_data, is_gasless } = order;
        let (ids, bytes) = (swap_ids.proving()?, swap_ids.bytes);
        Ok(Self { secret_hash, amount, ids, bytes, destination_data, is_gasless, payment: None, data: None })
    }

    /// Compares an event that the pinned contract has emitted in a transaction that succeeded. Events of other orders are skipped.
    ///
    /// # Errors
    ///
    /// [`Code::TransactionMismatch`] at the part of the event that differs: it pays the same secret hash under other terms, or twice.
    pub fn add(&mut self, transaction: Id, event: &HtlcEvent<Id>, place: EventPlace<'_>) -> Result<(), Refusal> {
        let Some(found) = self.compare(transaction, event, place)? else { return Ok(()) };
        if self.payment.as_ref().is_some_and(|earlier| earlier.is_other(&found)) {
            return Err(Refusal::new(Code::TransactionMismatch, place.event).with_reason("the order was paid twice"));
        }
        self.payment = Some(found);
        Ok(())
    }

    /// Compares the destination data that the pinned contract has emitted for an order with these terms. The data of other orders is skipped.
    ///
    /// # Errors
    ///
    /// [`Code::TransactionMismatch`] at the part of the event that differs, such as the data.
    pub fn add_data(&mut self, transaction: Id, event: &HtlcEvent<Id>, data: &[u8], place: EventPlace<'_>) -> Result<(), Refusal> {
        let Some(found) = self.compare(transaction, event, place)? else { return Ok(()) };
        let own = self.destination_data.as_deref();
        if own != Some(data) {
            let refusal = Refusal::new(Code::TransactionMismatch, format!("{}/data", place.event));
            let refusal = refusal.with_reason("the order was paid with other destination data");
            return Err(refusal.with_expected(spell_data(own)).with_actual(spell_data(Some(data))));
        }
        if self.data.as_ref().is_some_and(|earlier| earlier.is_other(&found)) {
            return Err(Refusal::new(Code::TransactionMismatch, place.event).with_reason("the order's destination data is emitted twice"));
        }
        self.data = Some(found);
        Ok(())
    }

    /// Compares the terms that an event has; `None` if it is another event, or that of another order.
    fn compare(&self, transaction: Id, event: &HtlcEvent<Id>, place: EventPlace<'_>) -> Result<Option<Found<Id>>, Refusal> {
        let HtlcEvent::Initiated { order_id, secret_hash, amount } = event else { return Ok(None) };
        if *secret_hash != self.secret_hash {
            return Ok(None);
        }
        let differs = |part: &str| Refusal::new(Code::TransactionMismatch, format!("{}{part}", place.event));
        if !self.ids.contains(order_id) {
            let reason = "the contract was paid with this secret hash under other terms";
            let refusal = differs(place.order_id).with_reason(reason).with_actual(TypedValue::Hash((self.bytes)(*order_id)));
            return Err(refusal.with_expected(spell(&self.ids, self.bytes)));
        }
        if *amount != self.amount {
            return Err(differs("").with_reason("another amount").with_expected(self.amount).with_actual(*amount));
        }
        Ok(Some(Found { receipt: place.receipt, location: place.event.to_owned(), order_id: *order_id, transaction }))
    }

    /// Returns the transaction that paid; `None` if no event shows the payment.
    ///
    /// # Errors
    ///
    /// [`Code::TransactionMismatch`] at the event that shows the payment, if the contract does not show the order's destination data beside it.
    pub fn transaction(self) -> Result<Option<Id>, Refusal> {
        let Some(payment) = self.payment else { return Ok(None) };
        let is_shown = self.data.as_ref().is_some_and(|data| data.is_of(&payment));
        let is_needed = self.destination_data.as_ref().is_some_and(|data| !(data.is_empty() && self.is_gasless));
        if is_needed && !is_shown {
            let refusal = Refusal::new(Code::TransactionMismatch, payment.location);
            let refusal = refusal.with_reason("no event of the contract shows that the order was paid with its destination data");
            return Err(refusal.with_expected(spell_data(self.destination_data.as_deref())).with_actual(spell_data(None)));
        }
        Ok(Some(payment.transaction))
    }
}

impl<Id: PartialEq> Found<Id> {
    /// Whether two events are about one payment.
    fn is_of(&self, other: &Self) -> bool {
        (&self.order_id, &self.transaction) == (&other.order_id, &other.transaction)
    }

    /// Whether a later event is another one, and not this one in a second receipt of its transaction.
    fn is_other(&self, later: &Self) -> bool {
        self.receipt == later.receipt || !self.is_of(later)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(proving: &[u8], others: &[u8], recorded: Option<u8>) -> SwapIds<[u8; 32]> {
        let of = |ids: &[u8]| ids.iter().map(|id| [*id; 32]).collect();
        let recorded = recorded.map(|id| format!("0x{}", hex::encode_upper([id; 32])));
        SwapIds { proving: of(proving), others: of(others), recorded, bytes: |id| id }
    }

    #[test]
    fn it_is_said_why_no_id_proves_the_payment() {
        let why = |ids: SwapIds<[u8; 32]>| ids.proving().map_err(|refusal| (refusal.location().to_owned(), refusal.to_string()));
        for (found, expected) in [(ids(&[0xa1, 0xa2], &[0xb1], None), vec![0xa1, 0xa2]), (ids(&[0xa1, 0xa2], &[], Some(0xa2)), vec![0xa2])]
        {
            assert_eq!(why(found), Ok(expected.into_iter().map(|id| [id; 32]).collect()));
        }
        for (unproven, words) in [
            (ids(&[], &[], None), "no formula"),
            (ids(&[], &[], Some(0xa1)), "no formula"),
            (ids(&[], &[0xb1], None), "do not commit"),
            (ids(&[], &[0xb1], Some(0xb1)), "do not commit"),
            (ids(&[0xa1], &[0xb1], Some(0xb1)), "do not commit"),
            (ids(&[], &[0xb1], Some(0xcc)), "does not follow from the order's terms"),
            (ids(&[0xa1], &[0xb1], Some(0xcc)), "does not follow from the order's terms"),
        ] {
            let (location, message) = why(unproven).unwrap_err();
            assert!(location.is_empty() && message.contains(words), "{words}: {message}");
        }
        let message = why(ids(&[0xa1], &[], Some(0xcc))).unwrap_err().1;
        assert!(message.contains(&"a1".repeat(32)) && message.contains(&"CC".repeat(32)), "{message}");
    }

    /// The data of an order belongs to the event of its own transaction, in every receipt that lists it.
    #[test]
    fn the_data_belongs_to_the_payment() {
        let event = HtlcEvent::Initiated { order_id: [1; 32], secret_hash: SecretHash([2; 32]), amount: U256::from(3) };
        let place = |receipt, event| EventPlace { receipt, event, order_id: "/id" };
        let search = |data: Option<&[u8]>, is_gasless| {
            let (secret_hash, amount, swap_ids) = (SecretHash([2; 32]), U256::from(3), ids(&[1], &[], None));
            PaymentSearch::new(PaymentTerms { secret_hash, amount, swap_ids, destination_data: data.map(<[u8]>::to_vec), is_gasless })
                .unwrap()
        };
        // Each event: the transaction, the receipt, and the data, if it is the one that shows them.
        let judged = |mut search: PaymentSearch<[u8; 32]>, events: &[(u8, usize, Option<&[u8]>)]| {
            for (transaction, receipt, data) in events {
                match data {
                    None => search.add([*transaction; 32], &event, place(*receipt, "/event")),
                    Some(data) => search.add_data([*transaction; 32], &event, data, place(*receipt, "/data-event")),
                }
                .map_err(|refusal| refusal.location().to_owned())?;
            }
            search.transaction().map_err(|refusal| refusal.location().to_owned())
        };
        let (paid, at) = (Ok(Some([7; 32])), |location: &str| Err(location.to_owned()));
        let (ab, abc, empty): (&[u8], &[u8], &[u8]) = (b"ab", b"abc", b"");
        let shown: &[_] = &[(7, 0, None), (7, 0, Some(ab))];
        assert_eq!(judged(search(Some(ab), false), shown), paid);
        assert_eq!(judged(search(Some(ab), false), &[(7, 0, Some(ab)), (7, 0, None)]), paid);
        assert_eq!(judged(search(Some(ab), false), &[shown, &[(7, 1, None), (7, 1, Some(ab))]].concat()), paid);
        assert_eq!(judged(search(Some(ab), false), &[shown, &[(7, 0, Some(ab))]].concat()), at("/data-event"), "twice");
        assert_eq!(judged(search(Some(ab), false), &[(7, 0, Some(ab))]), Ok(None), "no payment");
        assert_eq!(judged(search(Some(ab), false), &[(7, 0, None), (8, 1, Some(ab))]), at("/event"), "of another transaction");
        for (own, shown) in [(Some(ab), abc), (Some(ab), empty), (Some(empty), ab), (None, ab), (None, empty)] {
            for is_gasless in [false, true] {
                assert_eq!(judged(search(own, is_gasless), &[(7, 0, None), (7, 0, Some(shown))]), at("/data-event/data"), "{own:?}");
            }
        }
        // The gasless message has no data, so that a payment by it shows none.
        for (own, is_gasless, expected) in [
            (None, false, paid.clone()),
            (None, true, paid.clone()),
            (Some(empty), true, paid.clone()),
            (Some(empty), false, at("/event")),
            (Some(ab), true, at("/event")),
            (Some(ab), false, at("/event")),
        ] {
            assert_eq!(judged(search(own, is_gasless), &[(7, 0, None)]), expected, "{own:?}");
        }
        assert_eq!(judged(search(Some(empty), true), &[(7, 0, None), (7, 0, Some(empty))]), paid);
    }
}
