//! Chain families, and networks as the registry writes them (`<family>:<network>`).

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
/// use countersign::chains::{Family, Network};
///
/// # fn main() -> Result<(), countersign::chains::NetworkError> {
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
    /// use countersign::chains::Network;
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

#[cfg(test)]
mod tests {
    use super::*;

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
}
