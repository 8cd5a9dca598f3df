//! What is known about each chain without a registry: one row of [`KNOWN_CHAINS`] (`docs/spec/chains.md#known-chains`).
//!
//! A new chain is a new row. If it differs from the other chains of its family, its profile is made from theirs.

use std::time::Duration;

use ruint::aliases::U256;

use crate::finality::{Finality, FinalityRule};
use crate::pace::Span;
use crate::{Coin, Family, Network, Pace};

/// What is known about a chain, whatever its name. It is the same for a chain and its test networks.
#[derive(Debug, Clone, PartialEq, Eq)]
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
    const fn of_family(network: &Network) -> &'static Self {
        match network {
            Network::Evm(_) => &OTHER_EVM,
            Network::Tron(_) => &TRON,
            Network::Starknet(_) => &STARKNET,
            Network::Solana(_) => &SOLANA,
            Network::Sui(_) => &SUI,
            Network::Bitcoin(Coin::Bitcoin, _) => &BITCOIN,
            Network::Bitcoin(Coin::Litecoin, _) => &LITECOIN,
        }
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

const fn minutes(minutes: u64) -> Duration {
    Duration::from_secs(minutes.saturating_mul(60))
}

/// The gas that EIP-7825 allows one transaction.
const OSAKA_GAS: Option<u64> = Some(1 << 24);

const ETHER: u128 = 1_000_000_000_000_000_000;
const WHOLE_COIN: u128 = 100_000_000;

/// Any EVM chain. Chains have blocks of 0.1 s and less, so a chain that is not listed may have them, too.
const EVM: ChainProfile = ChainProfile {
    family: Family::Evm,
    coin: None,
    pace: Pace::new(2_000, 2_000, 100),
    has_listed_pace: true,
    finality: FinalityRule::lasting(Finality::Safe, minutes(10), minutes(10)),
    steps: &[],
    payment_window: Duration::from_secs(3_600),
    max_head_age: Duration::from_secs(120),
    header_lead: Duration::ZERO,
    price_ceiling: None,
    has_l1_number: false,
    has_l1_fee: false,
    max_tx_gas: None,
};

/// An EVM chain that is not listed.
const OTHER_EVM: ChainProfile = ChainProfile { has_l1_fee: true, ..EVM };

/// A chain whose coin is ether. A block that is safe can in theory still be replaced, a final one cannot.
const ETHER_CHAIN: ChainProfile =
    ChainProfile { steps: &[(10 * ETHER, FinalityRule::lasting(Finality::Finalized, minutes(30), minutes(10)))], ..EVM };

/// A slot takes 12 s. Two epochs of 32 slots make a block safe, and usually final.
const ETHEREUM: ChainProfile = ChainProfile {
    pace: Pace::new(12_000, 12_000, 12_000),
    has_listed_pace: false,
    finality: FinalityRule::lasting(Finality::Safe, Duration::from_secs(64 * 12), minutes(10)),
    price_ceiling: Some(1_000),
    max_tx_gas: OSAKA_GAS,
    ..ETHER_CHAIN
};

/// A chain of the OP stack.
const OP_STACK: ChainProfile = ChainProfile { price_ceiling: Some(20), has_l1_fee: true, ..ETHER_CHAIN };

const BASE: ChainProfile = ChainProfile { pace: Pace::new(2_000, 200, 100), has_listed_pace: false, max_tx_gas: OSAKA_GAS, ..OP_STACK };

/// A contract on Arbitrum may count Ethereum's blocks, or Arbitrum's own of 250 milliseconds, as the audited ones do.
const ARBITRUM: ChainProfile = ChainProfile {
    pace: Pace::new(12_000, 250, 100),
    has_listed_pace: false,
    price_ceiling: Some(100),
    has_l1_number: true,
    max_tx_gas: Some(32_000_000),
    ..ETHER_CHAIN
};

const UNICHAIN: ChainProfile = ChainProfile { pace: Pace::new(2_000, 1_000, 250), ..OP_STACK };

/// Botanix and Corn, whose gas is paid in bitcoin.
const PAID_IN_BITCOIN: ChainProfile = ChainProfile { price_ceiling: Some(5), ..EVM };

const BNB_CHAIN: ChainProfile = ChainProfile {
    pace: Pace::new(3_000, 450, 225),
    has_listed_pace: false,
    finality: FinalityRule::lasting(Finality::Finalized, minutes(2), minutes(30)),
    price_ceiling: Some(50),
    max_tx_gas: OSAKA_GAS,
    ..EVM
};

const TRON: ChainProfile = ChainProfile {
    family: Family::Tron,
    pace: Pace::new(3_000, 3_000, 3_000),
    has_listed_pace: false,
    finality: FinalityRule::lasting(Finality::Finalized, minutes(1), minutes(15)),
    ..EVM
};

const STARKNET: ChainProfile = ChainProfile {
    family: Family::Starknet,
    pace: Pace::new(30_000, 2_000, 1_000),
    has_listed_pace: false,
    finality: FinalityRule::lasting(Finality::Safe, minutes(30), minutes(15)),
    ..EVM
};

const SOLANA: ChainProfile = ChainProfile {
    family: Family::Solana,
    pace: Pace::new(400, 250, 100),
    has_listed_pace: false,
    finality: FinalityRule::lasting(Finality::Finalized, Duration::from_secs(30), minutes(10)),
    ..EVM
};

/// The only chain whose timelock runs while the chain stands, which it has done for hours. The margin is half of the timelock that the
/// service uses.
const SUI: ChainProfile = ChainProfile {
    family: Family::Sui,
    pace: Pace::new(1, 1, 1),
    has_listed_pace: false,
    finality: FinalityRule::lasting(Finality::Finalized, Duration::from_secs(10), minutes(60)),
    ..EVM
};

/// Blocks can be hours apart, and minutes by chance: settle and margin are counts of blocks, and the pace is not measured. By consensus a
/// header's time may be two hours ahead.
const BITCOIN: ChainProfile = ChainProfile {
    family: Family::Bitcoin,
    coin: Some(Coin::Bitcoin),
    pace: Pace::new(600_000, 600_000, 300_000),
    has_listed_pace: false,
    finality: FinalityRule::new(Finality::Depth(2), 2, 6),
    steps: &[(WHOLE_COIN, FinalityRule::new(Finality::Depth(3), 3, 6)), (10 * WHOLE_COIN, FinalityRule::new(Finality::Depth(6), 6, 6))],
    payment_window: Duration::from_secs(6 * 3_600),
    max_head_age: Duration::from_secs(3 * 3_600),
    header_lead: Duration::from_secs(2 * 3_600),
    ..EVM
};

const LITECOIN: ChainProfile = ChainProfile {
    coin: Some(Coin::Litecoin),
    pace: Pace::new(150_000, 150_000, 75_000),
    has_listed_pace: false,
    finality: FinalityRule::new(Finality::Depth(6), 6, 12),
    steps: &[
        (100 * WHOLE_COIN, FinalityRule::new(Finality::Depth(12), 12, 12)),
        (1_000 * WHOLE_COIN, FinalityRule::new(Finality::Depth(24), 24, 12)),
    ],
    payment_window: EVM.payment_window,
    ..BITCOIN
};

/// A chain name that is known without a registry.
#[derive(Debug, Clone, PartialEq, Eq)]
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

    const fn with_aliases(mut self, aliases: &'static [&'static str]) -> Self {
        self.aliases = aliases;
        self
    }
}

const fn main(name: &'static str, id: &'static str, profile: ChainProfile) -> KnownChain {
    KnownChain { name, id, aliases: &[], test: false, profile }
}

const fn test(name: &'static str, id: &'static str, profile: ChainProfile) -> KnownChain {
    KnownChain { name, id, aliases: &[], test: true, profile }
}

/// The chain names that the service is known to use, with their test networks.
pub const KNOWN_CHAINS: &[KnownChain] = &[
    main("ethereum", "evm:1", ETHEREUM),
    test("ethereum_sepolia", "evm:11155111", ETHEREUM),
    main("base", "evm:8453", BASE),
    test("base_sepolia", "evm:84532", BASE),
    main("arbitrum", "evm:42161", ARBITRUM),
    test("arbitrum_sepolia", "evm:421614", ARBITRUM),
    main("bnbchain", "evm:56", BNB_CHAIN),
    test("bnbchain_testnet", "evm:97", BNB_CHAIN),
    main("unichain", "evm:130", UNICHAIN),
    test("unichain_sepolia", "evm:1301", UNICHAIN),
    main("botanix", "evm:3637", PAID_IN_BITCOIN),
    test("botanix_testnet", "evm:3636", PAID_IN_BITCOIN),
    main("corn", "evm:21000000", PAID_IN_BITCOIN),
    test("corn_testnet", "evm:21000001", PAID_IN_BITCOIN),
    main("tron", "tron:728126428", TRON),
    test("tron_shasta", "tron:2494104990", TRON),
    test("tron_nile", "tron:3448148188", TRON),
    main("starknet", "starknet:SN_MAIN", STARKNET),
    test("starknet_sepolia", "starknet:SN_SEPOLIA", STARKNET),
    main("solana", "solana:mainnet", SOLANA).with_aliases(&["solana:mainnet-beta", "solana:101"]),
    // The service's `solana_testnet` is devnet, 103.
    test("solana_testnet", "solana:testnet", SOLANA).with_aliases(&["solana:devnet", "solana:102", "solana:103"]),
    test("solana_devnet", "solana:devnet", SOLANA).with_aliases(&["solana:103"]),
    main("sui", "sui:mainnet", SUI),
    test("sui_testnet", "sui:testnet", SUI),
    test("sui_devnet", "sui:devnet", SUI),
    main("bitcoin", "bitcoin:mainnet", BITCOIN),
    test("bitcoin_testnet", "bitcoin:testnet", BITCOIN).with_aliases(&["bitcoin:testnet3", "bitcoin:testnet4", "bitcoin:signet"]),
    test("bitcoin_testnet4", "bitcoin:testnet4", BITCOIN),
    test("bitcoin_signet", "bitcoin:signet", BITCOIN),
    test("bitcoin_regtest", "bitcoin:regtest", BITCOIN),
    main("litecoin", "litecoin:mainnet", LITECOIN),
    test("litecoin_testnet", "litecoin:testnet", LITECOIN).with_aliases(&["litecoin:testnet4"]),
    test("litecoin_regtest", "litecoin:regtest", LITECOIN),
];

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
