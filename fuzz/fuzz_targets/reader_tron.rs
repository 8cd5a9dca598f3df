//! Gives arbitrary endpoint answers to the reader of this family's HTLCs.
#![no_main]

use std::sync::LazyLock;

use countersign::reader::{Answer, Request};
use countersign::{
    Family,
    evidence::{HtlcTerms, VerifiedTerms},
};
use countersign_fuzz::chains::{less, orders};
use countersign_fuzz::reader::{Chain, Orders, Story, read};
use countersign_testkit::chain;
use libfuzzer_sys::fuzz_target;

static ORDERS: LazyLock<Orders<Tron>> = LazyLock::new(Orders::new);

fuzz_target!(|input: &[u8]| read(&ORDERS, input));

/// A Tron chain.
struct Tron(chain::tron::Tron);

impl Chain for Tron {
    const FAMILY: Family = Family::Tron;
    const SECRET: [u8; 32] = chain::tron::SECRET;
    const NOW: u64 = chain::tron::NOW;

    fn orders() -> Vec<VerifiedTerms> {
        orders(Self::FAMILY, &Self::SECRET, |terms| terms.chain == "tron")
    }

    fn new(terms: &HtlcTerms, story: Story) -> Option<Self> {
        let mut chain = chain::tron::Tron::funded(terms);
        chain.coins = u64::try_from(terms.amount).ok()?;
        match story {
            Story::Funded => {}
            Story::Unfunded => {
                chain.order = None;
                chain.infos.clear();
            }
            Story::Less => chain = chain::tron::Tron { coins: chain.coins, ..chain::tron::Tron::funded(&less(terms)) },
            Story::Redeemed => chain = chain.redeemed(terms, Self::SECRET),
            Story::Refunded => chain = chain.refunded(terms),
        }
        Some(Self(chain))
    }

    fn answer(&self, request: &Request) -> Answer {
        self.0.answer(request)
    }
}
