//! The orders that the reader targets read. Each target's own chain is that of the testkit, in the form that
//! [`read`](crate::reader::read) needs.

use std::sync::LazyLock;

use countersign::{
    Family, Policy, SecretHash, U256,
    evidence::{HtlcTerms, VerifiedTerms},
    for_each_family, json, verify_record,
};
use countersign_json::line::Case;
use countersign_testkit::all_fixtures;

macro_rules! all_cases {
    ([] $($feature:literal $family:ident $module:ident,)*) => {
        [$(all_fixtures::<countersign::$module::$family>()),*]
    };
}

/// Returns the terms of every record in the fixtures.
fn records() -> &'static [VerifiedTerms] {
    static RECORDS: LazyLock<Vec<VerifiedTerms>> = LazyLock::new(|| {
        let cases = for_each_family! { all_cases! [] }.into_iter().flat_map(|cases| cases.expect("every family has fixtures"));
        let verified = cases.filter_map(|case| {
            let line = json::parse(case.input.as_bytes()).ok()?;
            let proposal = Case::from_value(&line).ok()?.proposal().ok()?;
            verify_record(proposal, case.registry, &Policy::default()).ok()
        });
        verified.map(|verified| verified.terms).collect()
    });
    &RECORDS
}

/// Returns an order with this destination.
pub fn order(destination: HtlcTerms) -> VerifiedTerms {
    let mut order = records()[0].clone();
    order.destination = destination;
    order
}

/// Returns the same terms with a smaller amount.
pub fn less(terms: &HtlcTerms) -> HtlcTerms {
    let mut less = terms.clone();
    less.amount -= U256::from(1);
    less
}

/// Returns an order for each kind of HTLC in a family's fixtures. The HTLC is the destination, with another secret.
pub fn orders(family: Family, secret: &[u8; 32], is_readable: impl Fn(&HtlcTerms) -> bool) -> Vec<VerifiedTerms> {
    let mut orders: Vec<VerifiedTerms> = Vec::new();
    for leg in records().iter().flat_map(|terms| [&terms.source, &terms.destination]) {
        let mut leg = leg.clone();
        leg.secret_hash = SecretHash::of(secret);
        let is_same = |other: &VerifiedTerms| {
            let kind = |one: &HtlcTerms| (one.chain.clone(), one.htlc.clone(), one.generation, one.token.clone(), one.swap_id_recomputed);
            kind(&other.destination) == kind(&leg)
        };
        if leg.family == family && is_readable(&leg) && !orders.iter().any(is_same) {
            orders.push(order(leg));
        }
    }
    orders
}
