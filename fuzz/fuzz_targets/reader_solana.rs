//! Gives arbitrary endpoint answers to the reader of this family's HTLCs.
#![no_main]

use std::sync::LazyLock;

use countersign::reader::{Answer, Request};
use countersign::{
    Family,
    evidence::{HtlcTerms, VerifiedTerms},
};
use countersign_fuzz::chains::orders;
use countersign_fuzz::reader::{Chain, Orders, Story, read};
use countersign_testkit::chain;
use libfuzzer_sys::fuzz_target;

static ORDERS: LazyLock<Orders<Solana>> = LazyLock::new(Orders::new);

fuzz_target!(|input: &[u8]| read(&ORDERS, input));

/// A Solana cluster.
struct Solana(chain::solana::Chain);

impl Chain for Solana {
    const FAMILY: Family = Family::Solana;
    const SECRET: [u8; 32] = chain::solana::SECRET;
    const NOW: u64 = chain::solana::NOW;

    fn orders() -> Vec<VerifiedTerms> {
        orders(Self::FAMILY, &Self::SECRET, |_| true)
    }

    fn new(terms: &HtlcTerms, story: Story) -> Option<Self> {
        use countersign::solana::Address;
        let (htlc, swap) = chain::solana::swap_of(terms);
        let sponsor = Address::from(chain::solana::SPONSOR);
        Some(Self(match story {
            Story::Funded => chain::solana::Chain::funded(terms),
            Story::Unfunded => chain::solana::Chain::empty(terms),
            Story::Less => {
                let mut less = swap;
                less.amount -= 1;
                chain::solana::Chain::with_swap(terms, &less, chain::solana::INITIATED + swap.timelock)
            }
            Story::Redeemed => chain::solana::Chain::ended(terms, &htlc.redeem(&swap, sponsor, &Self::SECRET)?),
            Story::Refunded => chain::solana::Chain::ended(terms, &htlc.refund(&swap, sponsor)?),
        }))
    }

    fn answer(&self, request: &Request) -> Answer {
        self.0.seen.lock().expect("no chain panics while it writes").clear();
        self.0.answer(request)
    }
}
