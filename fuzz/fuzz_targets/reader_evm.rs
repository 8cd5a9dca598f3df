//! Gives arbitrary endpoint answers to the reader of this family's HTLCs.
#![no_main]

use std::sync::LazyLock;

use countersign::reader::{Answer, Request};
use countersign::{
    Family,
    evidence::{HtlcTerms, VerifiedTerms},
    trust::{EvmGeneration, Generation},
};
use countersign_fuzz::chains::{less, orders};
use countersign_fuzz::reader::{Chain, Orders, Story, read};
use countersign_testkit::chain;
use libfuzzer_sys::fuzz_target;

static ORDERS: LazyLock<Orders<Evm>> = LazyLock::new(Orders::new);

fuzz_target!(|input: &[u8]| read(&ORDERS, input));

/// An EVM chain.
struct Evm(chain::evm::Evm);

impl Chain for Evm {
    const FAMILY: Family = Family::Evm;
    const SECRET: [u8; 32] = chain::evm::SECRET;
    const NOW: u64 = chain::evm::NOW;

    fn orders() -> Vec<VerifiedTerms> {
        orders(Self::FAMILY, &Self::SECRET, |terms| terms.swap_id_recomputed)
    }

    fn new(terms: &HtlcTerms, story: Story) -> Option<Self> {
        let mut chain = chain::evm::Evm::funded(terms).proving(terms);
        match story {
            Story::Funded => {}
            Story::Unfunded => chain.order = None,
            Story::Less => chain = chain::evm::Evm::funded(&less(terms)).proving(terms),
            Story::Redeemed => chain = chain.redeemed(terms, Self::SECRET),
            Story::Refunded => chain = chain.refunded(terms),
        }
        chain.chain_id = countersign::evm::reader::chain_id(&terms.network).ok()?;
        // Arbitrum's headers contain the L1 block number.
        chain.l1_number = matches!(chain.chain_id, 42_161 | 421_614).then_some(1);
        if terms.generation == Some(Generation::Evm(EvmGeneration::OLD)) && chain.order.is_some() {
            chain.order = Some(chain.older(matches!(story, Story::Redeemed | Story::Refunded)));
        }
        Some(Self(chain))
    }

    /// The stored order is proven against the block hash, except in the older layout, whose slots are unknown. A
    /// second lie can take the proof away.
    fn proves(terms: &HtlcTerms) -> bool {
        terms.generation != Some(Generation::Evm(EvmGeneration::OLD))
    }

    fn answer(&self, request: &Request) -> Answer {
        self.0.answer(request)
    }
}
