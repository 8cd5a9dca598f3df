//! The chain families. What is particular to one of them is in a file of its own, whose [`Rules`] the rest of this crate reads.

mod bitcoin;
mod evm;
mod solana;
mod starknet;
mod sui;
mod tron;

use crate::address::{Account, AddressError};
use crate::network::{BitcoinNet, Coin};
use crate::profile::{ChainProfile, KnownChain};

/// A chain family: the chains on which funds are locked in the same way. Each family has its own crate.
///
/// | family | addresses, in the form that users write | canonical bytes of an [`Account`] | transaction ids in records |
/// |---|---|---|---|
/// | EVM | `0x` and 40 digits, all lower, all upper or with the right EIP-55 checksum, on Rootstock also that of EIP-1191 | the 20 bytes | 64 hex digits, with or without `0x` |
/// | Tron | base58check | the 20 bytes, without Tron's `41` | as on EVM |
/// | Starknet | `0x` and a felt, leading zeros optional | the felt, 32 bytes big-endian | a felt in hex, with or without `0x` |
/// | Solana | base58 of 32 bytes | the 32 bytes | base58 of 64 bytes |
/// | Sui | `0x` and 64 digits | the 32 bytes | base58 of 32 bytes |
/// | Bitcoin, Litecoin | the network's bech32, bech32m or base58check addresses | the script pubkey of an address, or the 32 bytes of an x-only key | 64 hex digits, also as `<txid>:<number>`; up to 64 of them, separated by commas |
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
    /// An EVM chain, by its EIP-155 chain id: `evm:8453`.
    Evm(u64),
    /// A Tron network, by the low 32 bits of its genesis-derived chain id: `tron:728126428`.
    Tron(u64),
    /// A Starknet network, by its chain id as a short string: `starknet:SN_MAIN`.
    Starknet(String),
    /// A Solana cluster, by its name or the number that the service gives it: `solana:mainnet`.
    Solana(String),
    /// A Sui network, by its name: `sui:mainnet`.
    Sui(String),
    /// Bitcoin or Litecoin: `bitcoin:mainnet`, `litecoin:testnet`.
    Bitcoin(Coin, BitcoinNet),
}

impl Family {
    /// Every family, in the order of the documentation.
    pub const ALL: [Self; 6] = [Self::Evm, Self::Tron, Self::Starknet, Self::Solana, Self::Sui, Self::Bitcoin];

    pub(crate) const fn rules(self) -> &'static Rules {
        match self {
            Self::Evm => &evm::RULES,
            Self::Tron => &tron::RULES,
            Self::Starknet => &starknet::RULES,
            Self::Solana => &solana::RULES,
            Self::Sui => &sui::RULES,
            Self::Bitcoin => &bitcoin::RULES,
        }
    }
}

impl Network {
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

/// Parses what follows the `:` in the id of a network.
type ParseNetwork = fn(&str) -> Option<Network>;

/// What differs between the families, and every build knows.
pub(crate) struct Rules {
    pub(crate) name: &'static str,
    /// The unit of timelocks: `blocks`, `slots` or `ms`.
    pub(crate) timelock_unit: &'static str,
    /// Whether an HTLC contract holds a single token.
    pub(crate) is_htlc_of_one_token: bool,
    /// Whether an order can name a delegate.
    pub(crate) has_delegates: bool,
    /// The decimals of the coin in which the family's chains count; `None` if every asset is a token, which states its own.
    pub(crate) coin_decimals: Option<u8>,
    /// What precedes the `:` in the ids of the family's networks, each with the parser of what follows.
    pub(crate) networks: &'static [(&'static str, ParseNetwork)],
    /// Parses an address of one of the family's networks.
    pub(crate) address: fn(&Network, &str) -> Result<Account, AddressError>,
    /// Formats an account as users write it. `None` is `0x` and the canonical bytes in hex.
    pub(crate) format: fn(&Account) -> Option<String>,
    /// The schemes of payment URIs: those of specifications, and what wallets write in the same way.
    pub(crate) schemes: &'static [&'static str],
    /// Returns why a text is not an address, given the reason of the parser, which stays if there is no better one.
    pub(crate) copied: fn(&str, AddressError) -> AddressError,
    /// Returns whether a text has the form of a transaction id.
    pub(crate) is_transaction_id: fn(&str) -> bool,
    /// This form, in words.
    pub(crate) transaction_id: &'static str,
    /// The chains that are known without a registry.
    pub(crate) chains: &'static [KnownChain],
    /// Returns the profile of a chain that is not among them.
    pub(crate) profile: fn(&Network) -> &'static ChainProfile,
}

/// The parsers of single families, which [`address`](crate::address) shows.
pub(crate) mod parsers {
    pub use super::bitcoin::{hrp, is_key, parse_bitcoin, parse_xonly, parse_xonly_unless_known};
    pub use super::evm::{checksum_evm, parse_evm, parse_evm_on};
    pub use super::solana::parse_solana;
    pub use super::starknet::{STARK_PRIME, parse_felt};
    pub use super::sui::parse_sui;
    pub use super::tron::{TRON_PREFIX, parse_tron_base58, tron_base58};
}
