//! Ids of orders, as the user writes them: all 64 hex digits, or the first ones of a stored order.

use countersign_client::OrderId;

use crate::failure::{Failure, usage};
use crate::show;
use crate::state::{State, StateArgs};

/// The minimum number of digits of a short id.
const MIN_DIGITS: usize = 4;
/// The number of digits of a short id that is printed, if they are enough.
const SHOWN_DIGITS: usize = 8;

/// Returns whether a text can be a short id.
fn is_short(text: &str) -> bool {
    (MIN_DIGITS..64).contains(&text.len()) && text.bytes().all(|digit| digit.is_ascii_hexdigit())
}

/// Returns the number of digits with which each of these ids is the only one: at least [`SHOWN_DIGITS`]. The ids are sorted.
pub(crate) fn digits<'i>(ids: impl IntoIterator<Item = &'i str>) -> usize {
    let (mut digits, mut last) = (SHOWN_DIGITS, "");
    for id in ids {
        let same = last.bytes().zip(id.bytes()).take_while(|(one, other)| one == other).count();
        digits = digits.max(same.saturating_add(1));
        last = id;
    }
    digits
}

/// Returns the first digits of an id.
pub(crate) fn short(id: &str, digits: usize) -> &str {
    id.get(..digits).unwrap_or(id)
}

/// Parses an id that the user wrote in full.
///
/// # Errors
///
/// A usage error: no service wrote it.
pub(crate) fn full(text: &str) -> Result<OrderId, Failure> {
    OrderId::parse(text).map_err(|_| usage(format_args!("{text}: not the id of an order: it has 64 hex digits")))
}

impl StateArgs {
    /// Returns the order that the user means: by its id, or by the first digits of the id of a stored order.
    pub(crate) fn id(&self, text: &str) -> Result<OrderId, Failure> {
        match OrderId::parse(text) {
            Ok(id) => Ok(id),
            Err(_) => self.open_existing()?.map_or_else(|| wrong(text), |state| state.id(text)),
        }
    }
}

impl State {
    /// Returns the order that the user means, as [`StateArgs::id`] does.
    pub(crate) fn id(&self, text: &str) -> Result<OrderId, Failure> {
        if let Ok(id) = OrderId::parse(text) {
            return Ok(id);
        }
        if !is_short(text) {
            return wrong(text);
        }
        let small = text.to_ascii_lowercase();
        let mut found = self.store.order_ids()?;
        found.retain(|id| id.starts_with(&small));
        match found.as_slice() {
            [id] => full(id),
            [] => wrong(text),
            several => Err(usage(format_args!("{text}: {} begin with this: {}", show::count(several.len(), "order"), several.join(", ")))),
        }
    }
}

fn wrong<T>(text: &str) -> Result<T, Failure> {
    Err(usage(match is_short(text) {
        true => {
            format!("{text}: no stored order begins with this: `countersign orders` lists them; the id of another order has 64 hex digits")
        }
        false => {
            format!("{text}: not the id of an order: it has 64 hex digits; of a stored order the first {MIN_DIGITS} or more are enough")
        }
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_id_is_as_long_as_it_must_be() {
        assert_eq!(digits([]), 8);
        assert_eq!(digits(["0123456789", "1123456789"]), 8);
        assert_eq!(digits(["0123456700", "0123456789", "1123456789"]), 9);
        assert_eq!(digits(["0123456788", "0123456789"]), 10);
        assert_eq!(short("0123456789", 8), "01234567");
        assert_eq!(short("01", 8), "01");
    }
}
