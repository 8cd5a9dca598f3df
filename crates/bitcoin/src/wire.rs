//! The Bitcoin result, field for field: `{"order_id", "to", "amount"}`, the amount as a decimal string (interface.md section
//! 2.5).

use countersign_core::json::{Members, Node};
use countersign_core::{Refusal, U256};

/// The members that carry this family's payload.
pub(crate) const KEYS: [&str; 2] = ["to", "amount"];

/// The deposit address as text, and the amount in base units.
pub(crate) fn read<'p, 'v>(result: &Members<'p, 'v>) -> Result<(Node<'p, 'v>, U256), Refusal> {
    let [to, amount] = KEYS;
    Ok((result.need(to)?, result.need(amount)?.decimal()?))
}
