//! What is known about each chain without a registry: one row of [`KNOWN_CHAINS`] (`docs/spec/chains.md#known-chains`).
//!
//! The rows are in the file of each family. If a chain differs from the others of its family, its profile is made from theirs.

use std::time::Duration;

use ruint::aliases::U256;

use crate::finality::FinalityRule;
use crate::pace::Span;
use crate::{Coin, Family, Network, Pace};

/// What is known about a chain, whatever its name. It is the same for a chain and its test networks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChainProfile {
    /// The chain's family.
    pub family: Family,
    /// The coin of a Bitcoin-like chain.
    pub coin: Option<Coin>,
    /// How fast the chain counts one unit of a timelock. What a registry lists comes first.
    pub pace: Pace,
    /// Whether a list of the service may say how fast the chain is, because nothing else is known of it.
    pub has_listed_pace: bool,
    /// When a payment is final, and what must be left of its timelock.
    pub finality: FinalityRule,
    /// The rules of larger payments of the chain's own coin: from so many base units, this one. In rising order.
    pub steps: &'static [(u128, FinalityRule)],
    /// For how long after an order's creation the service accepts its payment, if the record names no deadline.
    pub payment_window: Duration,
    /// The maximum age of the newest block. An endpoint whose newest block is older does not follow the chain.
    pub max_head_age: Duration,
    /// How far the time in a header may be ahead of the true time by consensus.
    pub header_lead: Duration,
    /// The highest price of one unit of gas that is taken from nodes unless the policy states another, in gwei; `None` if none is known,
    /// and outside the EVM family. Above it the user is asked to raise the limit of the policy.
    pub price_ceiling: Option<u64>,
    /// Whether the headers show the height of the chain below (`l1BlockNumber`), whose blocks a contract may count instead of the
    /// chain's own.
    pub has_l1_number: bool,
    /// Whether a transaction pays a fee for the chain below beside its gas, which the contract `GasPriceOracle` of the OP stack states. A
    /// chain of which nothing is known may be one of that stack. On Arbitrum, that fee is a part of the gas.
    pub has_l1_fee: bool,
    /// The highest gas limit that the chain allows one transaction (EIP-7825); `None` if none is known, and outside the EVM family.
    pub max_tx_gas: Option<u64>,
}

impl ChainProfile {
    /// Creates the profile of a chain that differs from no other but in these.
    pub(crate) const fn new(family: Family, pace: Pace, finality: FinalityRule) -> Self {
        Self {
            family,
            coin: None,
            pace,
            has_listed_pace: false,
            finality,
            steps: &[],
            payment_window: Duration::from_secs(3_600),
            max_head_age: Duration::from_secs(120),
            header_lead: Duration::ZERO,
            price_ceiling: None,
            has_l1_number: false,
            has_l1_fee: false,
            max_tx_gas: None,
        }
    }

    /// Returns the profile of a chain: that of the known chain with this name, or of the known chain whose name precedes the first `_`,
    /// as in `ethereum_hoodi`. Any other chain has the profile of its family, or of its coin.
    ///
    /// ```
    /// use countersign::chains::{ChainProfile, Network};
    ///
    /// let nominal = |name| ChainProfile::of(name, &Network::Evm(560_048)).pace.nominal;
    /// assert_eq!([nominal("ethereum_hoodi"), nominal("hoodi")], [12_000, 2_000]);
    /// ```
    #[must_use]
    pub fn of(name: &str, network: &Network) -> &'static Self {
        let other = Self::of_family(network);
        let named = |name| known_chain(name).map(|known| &known.profile).filter(|profile| profile.is_alike(other));
        named(name).or_else(|| named(name.split_once('_')?.0)).unwrap_or(other)
    }

    /// Returns the profile of the known chain with a network's id, as in `evm:8453`; otherwise that of its family, or of its coin.
    ///
    /// ```
    /// use countersign::chains::{ChainProfile, Network};
    ///
    /// let fastest = |id| ChainProfile::of_network(&Network::Evm(id)).pace.fastest;
    /// assert_eq!([fastest(1), fastest(8_453), fastest(999)], [12_000, 100, 100]);
    /// ```
    #[must_use]
    pub fn of_network(network: &Network) -> &'static Self {
        let known = KNOWN_CHAINS.iter().find(|known| Network::parse(known.id).as_ref() == Ok(network));
        known.map_or_else(|| Self::of_family(network), |known| &known.profile)
    }

    /// Returns the profile of a chain of which only the network is known.
    fn of_family(network: &Network) -> &'static Self {
        (network.family().rules().profile)(network)
    }

    fn is_alike(&self, other: &Self) -> bool {
        (self.family, self.coin) == (other.family, other.coin)
    }

    /// Returns when a payment of so many base units of the chain's own coin is final: the chain's rule, or that of the greatest step
    /// that the payment reaches.
    #[must_use]
    pub fn finality_for(&self, base_units: U256) -> FinalityRule {
        self.steps.iter().rfind(|(from, _)| base_units >= U256::from(*from)).map_or(self.finality, |(_, rule)| *rule)
    }

    /// Returns how many units an endpoint's newest block may go back. A reorganization replaces a few blocks. Nodes behind one address differ
    /// by seconds, which are as many units as the chain can count in them.
    #[must_use]
    pub fn max_step_back(&self) -> u64 {
        const REORGANIZATION: u64 = 16;
        const BEHIND: Duration = Duration::from_secs(30);
        Span::Time(BEHIND).units(self.pace.fastest).max(REORGANIZATION)
    }

    /// Returns how far the newest block may be ahead of the caller's clock. If it is further ahead, one of the two is wrong.
    #[must_use]
    pub fn max_head_ahead(&self) -> Duration {
        const CLOCKS_DIFFER: Duration = Duration::from_secs(60);
        self.header_lead.max(CLOCKS_DIFFER)
    }
}

pub(crate) const fn minutes(minutes: u64) -> Duration {
    Duration::from_secs(minutes.saturating_mul(60))
}

/// A chain name that is known without a registry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct KnownChain {
    /// Chain name as in asset ids, such as `ethereum`.
    pub name: &'static str,
    /// The id, `<family>:<network>`.
    pub id: &'static str,
    /// Other ids of the same network, as the service or wallets write them.
    pub aliases: &'static [&'static str],
    /// Whether this is a test network.
    pub test: bool,
    /// What is known about the chain.
    pub profile: ChainProfile,
}

impl KnownChain {
    /// Returns whether an id is this chain's id or one of its aliases.
    #[must_use]
    pub fn has_id(&self, id: &str) -> bool {
        self.id == id || self.aliases.contains(&id)
    }

    pub(crate) const fn with_aliases(mut self, aliases: &'static [&'static str]) -> Self {
        self.aliases = aliases;
        self
    }
}

pub(crate) const fn main(name: &'static str, id: &'static str, profile: ChainProfile) -> KnownChain {
    KnownChain { name, id, aliases: &[], test: false, profile }
}

pub(crate) const fn test(name: &'static str, id: &'static str, profile: ChainProfile) -> KnownChain {
    KnownChain { name, id, aliases: &[], test: true, profile }
}

/// The chain names that the service is known to use, with their test networks, in the order of the families.
pub const KNOWN_CHAINS: &[KnownChain] = &listed::<{ count() }>();

const fn count() -> usize {
    let (mut count, mut families): (usize, &[Family]) = (0, &Family::ALL);
    while let Some((family, others)) = families.split_first() {
        count = count.saturating_add(family.rules().chains.len());
        families = others;
    }
    count
}

#[expect(clippy::indexing_slicing, reason = "the compiler evaluates it, and refuses an index out of bounds")]
const fn listed<const COUNT: usize>() -> [KnownChain; COUNT] {
    let mut all = [Family::ALL[0].rules().chains[0]; COUNT];
    let (mut at, mut families): (usize, &[Family]) = (0, &Family::ALL);
    while let Some((family, others)) = families.split_first() {
        let mut chains = family.rules().chains;
        while let Some((chain, more)) = chains.split_first() {
            all[at] = *chain;
            (at, chains) = (at.saturating_add(1), more);
        }
        families = others;
    }
    all
}

/// Finds a chain name that is known without a registry.
#[must_use]
pub fn known_chain(name: &str) -> Option<&'static KnownChain> {
    KNOWN_CHAINS.iter().find(|chain| chain.name == name)
}

/// Finds the known chain that a name and an id contradict: a known name with an id that is not its own, or a known id with another
/// name. `None` if nothing known is contradicted.
#[must_use]
pub fn misnamed(name: &str, id: &str) -> Option<&'static KnownChain> {
    match known_chain(name) {
        Some(known) => (!known.has_id(id)).then_some(known),
        None => KNOWN_CHAINS.iter().find(|known| known.has_id(id)),
    }
}

/// Returns whether a chain is a test network. A known id decides, else a known name, else words such as `test` in name or id.
#[must_use]
pub fn is_test_network(name: &str, id: &str) -> bool {
    const WORDS: [&str; 10] = ["test", "sepolia", "devnet", "signet", "regtest", "shasta", "nile", "hoodi", "holesky", "local"];
    if let Some(known) = KNOWN_CHAINS.iter().find(|chain| chain.has_id(id)).or_else(|| known_chain(name)) {
        return known.test;
    }
    let id = id.to_ascii_lowercase();
    WORDS.iter().any(|word| name.contains(word) || id.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_known_chain_has_a_network() {
        for chain in KNOWN_CHAINS {
            let network = Network::parse(chain.id).expect(chain.name);
            assert_eq!(ChainProfile::of(chain.name, &network), &chain.profile, "{}", chain.name);
            for id in chain.aliases.iter().chain([&chain.id]) {
                assert_eq!(is_test_network(chain.name, id), chain.test, "{} {id}", chain.name);
                assert_eq!((misnamed(chain.name, id), Network::parse(id).map(|network| network.family())), (None, Ok(network.family())));
            }
        }
    }

    /// Half a minute, however fast the blocks are, and a reorganization of 16 blocks.
    #[test]
    fn nodes_behind_one_address_may_differ_by_half_a_minute() {
        let blocks = |id| ChainProfile::of_network(&Network::parse(id).unwrap()).max_step_back();
        for (id, expected) in [
            ("evm:1", 16),
            ("evm:8453", 300),
            ("evm:42161", 300),
            ("evm:56", 134),
            ("evm:999", 300),
            ("starknet:SN_MAIN", 30),
            ("tron:728126428", 16),
        ] {
            assert_eq!(blocks(id), expected, "{id}");
        }
    }

    #[test]
    fn the_op_stack_charges_a_fee_for_the_chain_below() {
        let charging = KNOWN_CHAINS.iter().filter(|chain| chain.profile.has_l1_fee).map(|chain| chain.name);
        assert_eq!(charging.collect::<Vec<_>>(), ["base", "base_sepolia", "unichain", "unichain_sepolia"]);
        // What nothing is known of may be of that stack.
        assert!(ChainProfile::of_network(&Network::Evm(999)).has_l1_fee);
    }

    #[test]
    fn a_known_name_and_a_known_id_belong_together() {
        let contradicted = |name, id| misnamed(name, id).map(|known| known.name);
        assert_eq!(contradicted("ethereum", "evm:56"), Some("ethereum"));
        assert_eq!(contradicted("ethereum", "evm:999"), Some("ethereum"));
        assert_eq!(contradicted("eth", "evm:1"), Some("ethereum"));
        assert_eq!(contradicted("solana", "solana:103"), Some("solana"));
        assert_eq!(contradicted("monad", "evm:143"), None);
        assert!(is_test_network("ethereum", "evm:11155111"), "the id tells, not the name");
    }

    #[test]
    fn an_unknown_chain_is_a_test_network_by_its_words() {
        assert!(is_test_network("monad_testnet", "evm:10143"));
        assert!(is_test_network("renamed", "evm:11155111"));
        assert!(!is_test_network("monad", "evm:143"));
    }
}
