//! Chain families, networks as the registry writes them (`<family>:<network>`), and the chain names that are known without a
//! registry (`docs/spec/batch.md#known-chains`).

use std::fmt;
use std::str::FromStr;

/// A chain family: the chains on which funds are locked in the same way. Each family has its own crate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Family {
    /// Ethereum and similar chains: calls and EIP-712.
    Evm,
    /// Tron: `TriggerSmartContract` and TIP-712.
    Tron,
    /// Starknet: invoke v3 and SNIP-12.
    Starknet,
    /// Solana: legacy and version 0 transactions.
    Solana,
    /// Sui: programmable transactions.
    Sui,
    /// Bitcoin and Litecoin: deposit addresses.
    Bitcoin,
}

impl Family {
    /// Every family, in the order of the documentation.
    pub const ALL: [Self; 6] = [Self::Evm, Self::Tron, Self::Starknet, Self::Solana, Self::Sui, Self::Bitcoin];

    /// Returns the name, such as `evm`. Litecoin is of family `bitcoin`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Evm => "evm",
            Self::Tron => "tron",
            Self::Starknet => "starknet",
            Self::Solana => "solana",
            Self::Sui => "sui",
            Self::Bitcoin => "bitcoin",
        }
    }

    /// Returns the name of the timelock unit on this family's chains: `blocks`, `slots` or `ms`.
    #[must_use]
    pub const fn timelock_unit(self) -> &'static str {
        match self {
            Self::Evm | Self::Tron | Self::Starknet | Self::Bitcoin => "blocks",
            Self::Solana => "slots",
            Self::Sui => "ms",
        }
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The coin of a Bitcoin-like chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Coin {
    /// Bitcoin.
    Bitcoin,
    /// Litecoin.
    Litecoin,
}

/// The network of a Bitcoin-like chain. Testnet 3, testnet 4 and signet have the same address forms.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum BitcoinNet {
    /// The main network.
    Main,
    /// Testnet 3, testnet 4 or signet.
    Test,
    /// A local regression-test network.
    Regtest,
}

/// A network that a registry names as `<family>:<network>`.
///
/// ```
/// use countersign_chains::{Family, Network};
///
/// # fn main() -> Result<(), countersign_chains::NetworkError> {
/// assert_eq!(Network::parse("evm:8453")?, Network::Evm(8_453));
/// assert_eq!(Network::parse("litecoin:testnet")?.family(), Family::Bitcoin);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Network {
    /// An EVM chain, by its EIP-155 chain id.
    Evm(u64),
    /// A Tron network, by the low 32 bits of its genesis-derived chain id.
    Tron(u64),
    /// A Starknet network, by its chain id as a short string: `SN_MAIN`.
    Starknet(String),
    /// A Solana cluster, by its name or the number that the service gives it.
    Solana(String),
    /// A Sui network, by its name.
    Sui(String),
    /// Bitcoin or Litecoin.
    Bitcoin(Coin, BitcoinNet),
}

/// Why a chain id could not be parsed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum NetworkError {
    /// The text is not `<family>:<network>`.
    Form,
    /// The family is unknown.
    UnknownFamily,
    /// The network is unknown or malformed.
    UnknownNetwork,
}

impl fmt::Display for NetworkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Form => "the chain id does not have the form <family>:<network>",
            Self::UnknownFamily => "no such chain family",
            Self::UnknownNetwork => "no such network in this family",
        })
    }
}

impl std::error::Error for NetworkError {}

impl FromStr for Network {
    type Err = NetworkError;

    fn from_str(id: &str) -> Result<Self, NetworkError> {
        Self::parse(id)
    }
}

impl Network {
    /// Parses `<family>:<network>`, such as `evm:1`, `starknet:SN_MAIN` or `litecoin:testnet`. [`FromStr`] does the same.
    ///
    /// ```
    /// use countersign_chains::Network;
    ///
    /// assert_eq!("evm:1".parse(), Ok(Network::Evm(1)));
    /// assert_eq!(Network::parse("evm:1"), "evm:1".parse());
    /// ```
    ///
    /// # Errors
    ///
    /// [`NetworkError`] if the text has another form, or names a family or network that is unknown.
    pub fn parse(id: &str) -> Result<Self, NetworkError> {
        let (family, network) = id.split_once(':').ok_or(NetworkError::Form)?;
        let named = |text: &str| {
            let plain = !text.is_empty() && text.len() <= 31 && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
            if plain { Ok(text.to_owned()) } else { Err(NetworkError::UnknownNetwork) }
        };
        let number = |text: &str| {
            let canonical = !text.starts_with('0') && text.bytes().all(|b| b.is_ascii_digit());
            if canonical { text.parse().map_err(|_| NetworkError::UnknownNetwork) } else { Err(NetworkError::UnknownNetwork) }
        };
        let bitcoin = |coin| {
            let net = match network {
                "mainnet" => BitcoinNet::Main,
                "testnet" | "testnet3" | "testnet4" | "signet" => BitcoinNet::Test,
                "regtest" => BitcoinNet::Regtest,
                _ => return Err(NetworkError::UnknownNetwork),
            };
            Ok(Self::Bitcoin(coin, net))
        };
        match family {
            "evm" => number(network).map(Self::Evm),
            "tron" => number(network).map(Self::Tron),
            "starknet" => named(network).map(Self::Starknet),
            "solana" => named(network).map(Self::Solana),
            "sui" => named(network).map(Self::Sui),
            "bitcoin" => bitcoin(Coin::Bitcoin),
            "litecoin" => bitcoin(Coin::Litecoin),
            _ => Err(NetworkError::UnknownFamily),
        }
    }

    /// Returns the family of this network.
    #[must_use]
    pub const fn family(&self) -> Family {
        match self {
            Self::Evm(_) => Family::Evm,
            Self::Tron(_) => Family::Tron,
            Self::Starknet(_) => Family::Starknet,
            Self::Solana(_) => Family::Solana,
            Self::Sui(_) => Family::Sui,
            Self::Bitcoin(..) => Family::Bitcoin,
        }
    }
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

const fn main(name: &'static str, id: &'static str) -> KnownChain {
    KnownChain { name, id, aliases: &[], test: false }
}

const fn test(name: &'static str, id: &'static str) -> KnownChain {
    KnownChain { name, id, aliases: &[], test: true }
}

/// The chain names that the service is known to use, with their test networks.
pub const KNOWN_CHAINS: &[KnownChain] = &[
    main("ethereum", "evm:1"),
    test("ethereum_sepolia", "evm:11155111"),
    main("base", "evm:8453"),
    test("base_sepolia", "evm:84532"),
    main("arbitrum", "evm:42161"),
    test("arbitrum_sepolia", "evm:421614"),
    main("bnbchain", "evm:56"),
    test("bnbchain_testnet", "evm:97"),
    main("unichain", "evm:130"),
    test("unichain_sepolia", "evm:1301"),
    main("botanix", "evm:3637"),
    test("botanix_testnet", "evm:3636"),
    main("corn", "evm:21000000"),
    test("corn_testnet", "evm:21000001"),
    main("tron", "tron:728126428"),
    test("tron_shasta", "tron:2494104990"),
    test("tron_nile", "tron:3448148188"),
    main("starknet", "starknet:SN_MAIN"),
    test("starknet_sepolia", "starknet:SN_SEPOLIA"),
    main("solana", "solana:mainnet").with_aliases(&["solana:mainnet-beta", "solana:101"]),
    // The service's `solana_testnet` is devnet, 103.
    test("solana_testnet", "solana:testnet").with_aliases(&["solana:devnet", "solana:102", "solana:103"]),
    test("solana_devnet", "solana:devnet").with_aliases(&["solana:103"]),
    main("sui", "sui:mainnet"),
    test("sui_testnet", "sui:testnet"),
    test("sui_devnet", "sui:devnet"),
    main("bitcoin", "bitcoin:mainnet"),
    test("bitcoin_testnet", "bitcoin:testnet").with_aliases(&["bitcoin:testnet3", "bitcoin:testnet4", "bitcoin:signet"]),
    test("bitcoin_testnet4", "bitcoin:testnet4"),
    test("bitcoin_signet", "bitcoin:signet"),
    test("bitcoin_regtest", "bitcoin:regtest"),
    main("litecoin", "litecoin:mainnet"),
    test("litecoin_testnet", "litecoin:testnet").with_aliases(&["litecoin:testnet4"]),
    test("litecoin_regtest", "litecoin:regtest"),
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

/// Returns the nominal milliseconds per unit of a timelock, which are only an approximation (`docs/spec/batch.md#nominal-times`).
///
/// An EVM chain without its own nominal value has the `listed` one, in milliseconds, else two seconds.
#[must_use]
pub fn nominal_unit_millis(name: &str, network: &Network, listed: Option<u64>) -> u64 {
    let base = name.split_once('_').map_or(name, |(base, _)| base);
    match network {
        Network::Bitcoin(Coin::Bitcoin, _) => 600_000,
        Network::Bitcoin(Coin::Litecoin, _) => 150_000,
        Network::Tron(_) => 3_000,
        Network::Starknet(_) => 30_000,
        Network::Solana(_) => 400,
        Network::Sui(_) => 1,
        Network::Evm(_) => match base {
            "ethereum" | "arbitrum" => 12_000,
            "bnbchain" => 3_000,
            "base" => 2_000,
            _ => listed.filter(|millis| *millis > 0).unwrap_or(2_000),
        },
    }
}

/// Returns the fewest milliseconds in which a chain may count one unit of a timelock: the cautious value where time runs out.
///
/// Contracts on Arbitrum may count its own blocks, of 250 milliseconds, instead of Ethereum's.
#[must_use]
pub fn min_unit_millis(name: &str, nominal: u64) -> u64 {
    let base = name.split_once('_').map_or(name, |(base, _)| base);
    if base == "arbitrum" { nominal.min(250) } else { nominal }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_known_chain_has_a_network() {
        for chain in KNOWN_CHAINS {
            let network = Network::parse(chain.id).expect(chain.name);
            assert!(Family::ALL.contains(&network.family()));
            for id in chain.aliases.iter().chain([&chain.id]) {
                assert_eq!(is_test_network(chain.name, id), chain.test, "{} {id}", chain.name);
                assert_eq!((misnamed(chain.name, id), Network::parse(id).map(|network| network.family())), (None, Ok(network.family())));
            }
        }
    }

    #[test]
    fn refuses_chain_ids_of_another_form() {
        for (id, error) in [
            ("evm", NetworkError::Form),
            ("evm:", NetworkError::UnknownNetwork),
            ("evm:01", NetworkError::UnknownNetwork),
            ("evm:+1", NetworkError::UnknownNetwork),
            ("evm:18446744073709551616", NetworkError::UnknownNetwork),
            ("xrpl:mainnet", NetworkError::UnknownFamily),
            ("bitcoin:main", NetworkError::UnknownNetwork),
            ("sui:test net", NetworkError::UnknownNetwork),
        ] {
            assert_eq!(Network::parse(id), Err(error), "{id}");
        }
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
