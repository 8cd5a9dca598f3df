//! Generations of the swap service's contracts. Each has its own arguments, typed data, ids and storage layout. Neither an address
//! nor a schema name tells them apart, so the wallet pins the generation of an HTLC (`docs/spec/batch.md#contract-generations`).
//!
//! Each family has one table here, because an order has two legs, and every build must know the names and the swap ids of both. A row
//! has everything that differs between the generations of a family. Other code reads the row, and names no generation.

use std::fmt;

use countersign_chains::Family;

mod evm;
mod solana;
mod starknet;

pub use evm::{EvmContract, EvmGeneration, EvmLayout};
pub use solana::{SolanaForm, SolanaGeneration};
pub use starknet::{StarknetAccess, StarknetGeneration, StarknetSecret};

/// The generation of a pinned HTLC.
#[derive(Debug, Clone, Copy, Eq)]
#[non_exhaustive]
pub enum Generation {
    /// The generation of an EVM contract.
    Evm(&'static EvmGeneration),
    /// The generation of a Starknet contract.
    Starknet(&'static StarknetGeneration),
    /// The generation of a Solana program.
    Solana(&'static SolanaGeneration),
}

impl Generation {
    /// Returns all generations of a family's contract, oldest first; none for a family whose contract has only one.
    pub fn all(family: Family) -> impl Iterator<Item = Self> {
        let evm = EvmGeneration::ALL.iter().copied().map(Self::Evm);
        let starknet = StarknetGeneration::ALL.iter().copied().map(Self::Starknet);
        let solana = SolanaGeneration::ALL.iter().copied().map(Self::Solana);
        evm.chain(starknet).chain(solana).filter(move |generation| generation.family() == family)
    }

    /// Returns the generation of a family's contract with this name in a registry; `None` for any other text, and for a family
    /// whose contract has only one generation.
    #[must_use]
    pub fn parse(family: Family, name: &str) -> Option<Self> {
        Self::all(family).find(|generation| generation.name() == name)
    }

    /// Returns its name in a registry.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Evm(generation) => generation.name,
            Self::Starknet(generation) => generation.name,
            Self::Solana(generation) => generation.name,
        }
    }

    /// Returns the family of its contracts.
    #[must_use]
    pub const fn family(self) -> Family {
        match self {
            Self::Evm(_) => Family::Evm,
            Self::Starknet(_) => Family::Starknet,
            Self::Solana(_) => Family::Solana,
        }
    }

    /// Returns the row of an EVM contract; `None` for a contract of another family.
    #[must_use]
    pub const fn evm(self) -> Option<&'static EvmGeneration> {
        if let Self::Evm(generation) = self { Some(generation) } else { None }
    }
}

impl PartialEq for Generation {
    /// Names are unique in a family.
    fn eq(&self, other: &Self) -> bool {
        (self.family(), self.name()) == (other.family(), other.name())
    }
}

impl fmt::Display for Generation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
