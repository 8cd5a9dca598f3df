//! Gives arbitrary endpoint answers to the reader of this family's HTLCs.
#![no_main]

use std::sync::LazyLock;

use countersign::reader::{Answer, Request};
use countersign::{
    Family,
    evidence::{HtlcTerms, VerifiedTerms},
};
use countersign_fuzz::chains::order;
use countersign_fuzz::reader::{Chain, Orders, Story, read};
use countersign_testkit::chain;
use libfuzzer_sys::fuzz_target;

static ORDERS: LazyLock<Orders<Sui>> = LazyLock::new(Orders::new);

fuzz_target!(|input: &[u8]| read(&ORDERS, input));

/// A Sui node.
struct Sui(chain::sui::Ledger);

impl Chain for Sui {
    const FAMILY: Family = Family::Sui;
    // The secret of the order that the reference SDK encoded: fixtures/chain/sui.json.
    const SECRET: [u8; 32] =
        *b"\x38\x54\xde\x55\xf5\x99\x40\x88\x55\xa5\xcf\xf0\x13\x46\xb4\x94\x68\xb2\xa7\xc2\x8a\xa1\x80\x86\x29\xd5\x19\x0a\xda\x41\xc9\x46";
    const NOW: u64 = chain::sui::NOW;

    fn orders() -> Vec<VerifiedTerms> {
        vec![order(chain::sui::terms())]
    }

    fn new(_: &HtlcTerms, story: Story) -> Option<Self> {
        use chain::sui::{Ledger, package, package_id};
        Some(Self(match story {
            Story::Funded => Ledger::funded(),
            Story::Unfunded => Ledger { objects: vec![package(package_id())], transactions: Vec::new(), ..Ledger::funded() },
            // The order's id depends on its amount.
            Story::Less => return None,
            Story::Redeemed => Ledger::ended("Redeemed"),
            Story::Refunded => Ledger::ended("Refunded"),
        }))
    }

    fn answer(&self, request: &Request) -> Answer {
        self.0.answer(request)
    }
}
