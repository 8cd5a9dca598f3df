/// The warnings whose presence a case fixes (`expect.warnings` in `fixtures/case.schema.json`), because they follow from the
/// order alone: where a case names its warnings, these are all named. Others may come and go.
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
