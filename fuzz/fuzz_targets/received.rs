//! Parses arbitrary bytes as a transaction that a wallet signed for an order, and as a node's report on the effects
//! of a transaction. The first byte chooses the family, the second the order.
#![no_main]

use std::sync::LazyLock;

use countersign::{Family, Policy, Proposal, Verified, json};
use countersign_fuzz::{REGISTRY, cases};
use countersign_json::line::Case;
use libfuzzer_sys::fuzz_target;

/// The verified orders of each family, with their responses.
static ORDERS: LazyLock<Vec<Vec<Verified>>> = LazyLock::new(|| {
    let orders = Family::ALL.iter().map(|family| {
        let verified = cases(*family).lines().take(16).filter_map(|line| {
            let value = json::parse(line.as_bytes()).expect("fixtures are JSON");
            let case = Case::from_value(&value).expect("a fixture is a case");
            let request = case.proposal().ok()?.request().clone();
            countersign::verify(Proposal::from_parsed(request, case.response, None), &REGISTRY, &Policy::default()).ok()
        });
        verified.collect()
    });
    orders.collect()
});

fuzz_target!(|input: &[u8]| {
    let [family, order, transaction @ ..] = input else { return };
    let orders = &ORDERS[usize::from(*family) % ORDERS.len()];
    let order = &orders[usize::from(*order) % orders.len()];
    // No second text proves the same payment: without its last byte, the text is not valid JSON.
    if countersign_json::find_payment(order, transaction).is_ok() {
        let cut = transaction.trim_ascii_end();
        assert!(countersign_json::find_payment(order, &cut[..cut.len() - 1]).is_err());
    }
    if order.matches_bytes(transaction).is_ok() {
        // Without its last byte, it is another transaction or none.
        assert!(order.matches_bytes(&transaction[..transaction.len() - 1]).is_err());
    }
});
