//! The warnings that the fixtures fix.

/// Warnings whose presence a case fixes (`expect.warnings` in `fixtures/case.schema.json`), because they follow from the order
/// alone. A case that lists its warnings lists all of these that the order has. Other warnings may come and go.
pub const FIXED: [&str; 8] = [
    "unlimited_approval",
    "approval_above_amount",
    "unpinned_solver",
    "swap_id_unchecked",
    "key_not_checked",
    "address_on_trust",
    "refund_key_not_yours",
    "amount_below_dust",
];
