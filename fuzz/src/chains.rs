//! The testkit's in-memory chains, in the form that [`read`] needs.

use std::sync::LazyLock;

use countersign::reader::{Answer, Request};
use countersign::{
    Family, Policy, SecretHash, U256,
    evidence::{HtlcTerms, VerifiedTerms},
    json,
    trust::{EvmGeneration, Generation},
    verify_record,
};
use countersign_json::line::Case;
use countersign_testkit::{all_fixtures, chain};

use crate::reader::{Chain, Orders, Story, read};

/// Defines the function of each reader target.
macro_rules! targets {
    ($($(#[$doc:meta])* $name:ident: $chain:ty),+ $(,)?) => {
        $(
            $(#[$doc])*
            pub fn $name(input: &[u8]) {
                static ORDERS: LazyLock<Orders<$chain>> = LazyLock::new(Orders::new);
                read(&ORDERS, input);
            }
        )+
    };
}

targets! {
    /// Reads an HTLC on an EVM chain.
    evm: Evm,
    /// Reads an HTLC on Tron.
    tron: Tron,
    /// Reads an HTLC on Starknet.
    starknet: Starknet,
    /// Reads an HTLC on Solana.
    solana: Solana,
    /// Reads an HTLC on Sui.
    sui: Sui,
    /// Reads an HTLC on Bitcoin.
    bitcoin: Bitcoin,
}

/// Returns the terms of every record in the fixtures.
fn records() -> &'static [VerifiedTerms] {
    static RECORDS: LazyLock<Vec<VerifiedTerms>> = LazyLock::new(|| {
        use countersign::{bitcoin::Bitcoin, evm::Evm, solana::Solana, starknet::Starknet, sui::Sui, tron::Tron};
        let all = [
            all_fixtures::<Evm>(),
            all_fixtures::<Tron>(),
            all_fixtures::<Starknet>(),
            all_fixtures::<Solana>(),
            all_fixtures::<Sui>(),
            all_fixtures::<Bitcoin>(),
        ];
        let cases = all.into_iter().flat_map(|cases| cases.expect("every family has fixtures"));
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
fn order(destination: HtlcTerms) -> VerifiedTerms {
    let mut order = records()[0].clone();
    order.destination = destination;
    order
}

/// Returns the same terms with a smaller amount.
fn less(terms: &HtlcTerms) -> HtlcTerms {
    let mut less = terms.clone();
    less.amount -= U256::from(1);
    less
}

/// Returns an order for each kind of HTLC in a family's fixtures. The HTLC is the destination, with another secret.
fn orders(family: Family, secret: &[u8; 32], is_readable: impl Fn(&HtlcTerms) -> bool) -> Vec<VerifiedTerms> {
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

/// An EVM chain.
pub struct Evm(chain::evm::Evm);

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

/// A Tron chain.
pub struct Tron(chain::tron::Tron);

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

/// A Starknet chain.
pub struct Starknet(chain::starknet::Chain);

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

/// A Solana cluster.
pub struct Solana(chain::solana::Chain);

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
                let mut less = swap.clone();
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

/// A Sui node.
pub struct Sui(chain::sui::Ledger);

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

/// A Bitcoin or Litecoin chain, with an Esplora server and a node's RPC.
pub struct Bitcoin(chain::bitcoin::Ledger);

impl Chain for Bitcoin {
    const FAMILY: Family = Family::Bitcoin;
    const SECRET: [u8; 32] = chain::bitcoin::SECRET;
    const NOW: u64 = chain::bitcoin::NOW;
    const HAS_RPC: bool = true;

    fn orders() -> Vec<VerifiedTerms> {
        ["bitcoin", "litecoin"].into_iter().map(|coin| order(chain::bitcoin::terms(coin))).collect()
    }

    fn new(terms: &HtlcTerms, story: Story) -> Option<Self> {
        use chain::bitcoin::{AMOUNT, Ledger, SECRET, funding, outpoint, pay, spend};
        use countersign::bitcoin::bitcoin::{OutPoint, ScriptBuf};
        use countersign::bitcoin::htlc::Leaf;
        let mut ledger = Ledger::new();
        ledger.is_litecoin = terms.chain.starts_with("litecoin");
        // On Litecoin, the parents of the funding transaction are read too.
        let parent = pay(outpoint(8), &[vec![1; 64]], &[(2 * AMOUNT, ScriptBuf::new_op_return([8]))]);
        let mut transaction = funding(1, if story == Story::Less { AMOUNT - 1 } else { AMOUNT });
        transaction.input[0].previous_output = OutPoint { txid: parent.compute_txid(), vout: 0 };
        ledger.mempool.push(parent);
        if story != Story::Unfunded {
            ledger.mempool.push(transaction.clone());
        }
        ledger.mine(3);
        match story {
            Story::Redeemed => ledger.mempool.push(spend(&transaction, Leaf::Redeem, &SECRET)),
            Story::Refunded => ledger.mempool.push(spend(&transaction, Leaf::Refund, &SECRET)),
            _ => {}
        }
        ledger.mine(2);
        Some(Self(ledger))
    }

    /// The funding transaction is read and hashed, so a single answer cannot change what it pays.
    fn proves(_: &HtlcTerms) -> bool {
        true
    }

    fn answer(&self, request: &Request) -> Answer {
        self.0.answer(request)
    }
}
