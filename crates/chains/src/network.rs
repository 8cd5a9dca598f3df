//! Chain families, and networks as the registry writes them (`<family>:<network>`).

use std::fmt;
use std::str::FromStr;

pub use crate::family::{Family, Network};

impl Family {
    /// Returns the name, such as `evm`. Litecoin is of family `bitcoin`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.rules().name
    }

    /// Returns the name of the timelock unit on this family's chains: `blocks`, `slots` or `ms`.
    #[must_use]
    pub const fn timelock_unit(self) -> &'static str {
        self.rules().timelock_unit
    }

    /// Returns whether each HTLC contract on this family's chains holds a single token, so that two tokens never share one.
    #[must_use]
    pub const fn is_htlc_of_one_token(self) -> bool {
        self.rules().is_htlc_of_one_token
    }

    /// Returns whether an order on this family's chains can name a delegate: an account, or a key on Bitcoin-like chains.
    #[must_use]
    pub const fn has_delegates(self) -> bool {
        self.rules().has_delegates
    }

    /// Returns the decimals of the coins of this family's chains, which no contract states: 18 on EVM, where amounts are in wei, for
    /// example. `None` on Starknet, where every asset is a token.
    #[must_use]
    pub const fn coin_decimals(self) -> Option<u8> {
        self.rules().coin_decimals
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
        let mut networks = Family::ALL.into_iter().flat_map(|family| family.rules().networks);
        let (_, parse) = networks.find(|(prefix, _)| *prefix == family).ok_or(NetworkError::UnknownFamily)?;
        parse(network).ok_or(NetworkError::UnknownNetwork)
    }
}

/// Parses the name of a network.
pub(crate) fn named(text: &str) -> Option<String> {
    let plain = !text.is_empty() && text.len() <= 31 && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
    plain.then(|| text.to_owned())
}

/// Parses the number of a network, without leading zeros.
pub(crate) fn number(text: &str) -> Option<u64> {
    let canonical = !text.starts_with('0') && text.bytes().all(|b| b.is_ascii_digit());
    text.parse().ok().filter(|_| canonical)
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
