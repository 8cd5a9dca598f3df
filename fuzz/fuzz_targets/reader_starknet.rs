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

static ORDERS: LazyLock<Orders<Starknet>> = LazyLock::new(Orders::new);

fuzz_target!(|input: &[u8]| read(&ORDERS, input));

/// A Starknet chain.
struct Starknet(chain::starknet::Chain);

impl Chain for Starknet {
    const FAMILY: Family = Family::Starknet;
    const SECRET: [u8; 32] = chain::starknet::SECRET;
    const NOW: u64 = chain::starknet::NOW;

    fn orders() -> Vec<VerifiedTerms> {
        use countersign::starknet::{StarknetGeneration, read};
        // It is not known how the other generations store their orders.
        let is_known = |terms: &HtlcTerms| read::access(StarknetGeneration::expected(terms.generation)).is_ok();
        orders(Self::FAMILY, &Self::SECRET, |terms| terms.chain == "starknet" && is_known(terms))
    }

    fn new(terms: &HtlcTerms, story: Story) -> Option<Self> {
        let mut chain = chain::starknet::Chain::funded(terms);
        chain.events = vec![chain.initiated(terms.secret_hash, terms.amount)];
        match story {
            Story::Funded => {}
            Story::Unfunded => {
                chain.order = None;
                chain.events.clear();
            }
            Story::Less => chain.order.as_mut()?[5] -= countersign::starknet::Felt::ONE,
            Story::Redeemed => chain = chain.redeemed(&Self::SECRET),
            Story::Refunded => chain = chain.refunded(),
        }
        Some(Self(chain))
    }

    fn answer(&self, request: &Request) -> Answer {
        self.0.seen.lock().expect("no chain panics while it writes").clear();
        self.0.answer(request)
    }
}
