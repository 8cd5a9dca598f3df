//! Generations of the swap service's contracts. Each has its own arguments, typed data, ids and layout on chain, and nothing in an
//! address or a schema tells them apart: the wallet pins which one an HTLC is of.

use std::fmt;

use countersign_chains::Family;
use countersign_chains::swap_id::StarknetFormula;

/// The generation of a pinned HTLC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Generation {
    /// Of an EVM contract.
    Evm(EvmGeneration),
    /// Of a Starknet contract.
    Starknet(StarknetGeneration),
    /// Of a Solana program.
    Solana(SolanaGeneration),
}

/// Declares the generations of a family's contract, with the names that a registry gives them.
macro_rules! generations {
    ($(#[$attribute:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $text:literal,)* }) => {
        $(#[$attribute])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum $name {
            $($(#[$doc])* $variant,)*
        }

        impl $name {
            /// Every generation, oldest first.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// Returns the name that a registry gives it.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }

            /// Returns the generation that a registry names; `None` for any other text.
            #[must_use]
            pub fn parse(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|generation| generation.name() == name)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.name())
            }
        }
    };
}

generations! {
    /// Generations of the EVM contracts, for tokens and for the chain's own coin.
    EvmGeneration {
        /// Before version 3: an order begins with whether it has ended.
        Old = "old",
        /// Version 3, the audited one.
        V3 = "v3",
    }
}

generations! {
    /// Generations of the Starknet contract.
    StarknetGeneration {
        /// February 2025: the secret hash as eight words of 32 bits, an id of chain, secret hash and initiator, and no getter.
        February2025 = "2025_02",
        /// July 2025, the one expected where none is pinned: another id, of every term but the contract.
        July2025 = "captured_2025_07",
        /// November 2025, the audited one: `verifyingContract` in the typed data, `get_order`, and an id of every term.
        November2025 = "2025_11",
        /// Of version 3.1.3 of the service's own client: the secret hash as two words of 128 bits.
        Client313 = "client_3_1_3",
    }
}

generations! {
    /// Generations of the Solana programs, for tokens and for SOL.
    SolanaGeneration {
        /// Of version 3.1.3 of the service's own client; the one expected where none is pinned.
        Client313 = "client_3_1_3",
        /// November 2025, the audited one.
        November2025 = "audited_2025_11",
    }
}

impl StarknetGeneration {
    /// Returns the generation that is expected of a contract: the pinned one, or that of July 2025 where none is pinned.
    #[must_use]
    pub const fn expected(pinned: Option<Generation>) -> Self {
        match pinned {
            Some(Generation::Starknet(generation)) => generation,
            _ => Self::July2025,
        }
    }

    /// Returns the formula of the contract's swap ids; `None` where it is not known.
    #[must_use]
    pub const fn swap_id_formula(self) -> Option<StarknetFormula> {
        match self {
            Self::February2025 => Some(StarknetFormula::Initiator),
            Self::July2025 => Some(StarknetFormula::Terms),
            Self::November2025 => Some(StarknetFormula::TermsAndContract),
            Self::Client313 => None,
        }
    }
}

impl Generation {
    /// Returns the generation of a family's contract that a registry names; `None` for any other text, and for a family whose
    /// contract has one generation only.
    #[must_use]
    pub fn parse(family: Family, name: &str) -> Option<Self> {
        match family {
            Family::Evm => EvmGeneration::parse(name).map(Self::Evm),
            Family::Starknet => StarknetGeneration::parse(name).map(Self::Starknet),
            Family::Solana => SolanaGeneration::parse(name).map(Self::Solana),
            _ => None,
        }
    }

    /// Returns the name that a registry gives it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Evm(generation) => generation.name(),
            Self::Starknet(generation) => generation.name(),
            Self::Solana(generation) => generation.name(),
        }
    }

    /// Returns the names that a registry can give the contracts of a family.
    pub fn names(family: Family) -> impl Iterator<Item = &'static str> {
        let all: Vec<&'static str> = match family {
            Family::Evm => EvmGeneration::ALL.iter().map(|generation| generation.name()).collect(),
            Family::Starknet => StarknetGeneration::ALL.iter().map(|generation| generation.name()).collect(),
            Family::Solana => SolanaGeneration::ALL.iter().map(|generation| generation.name()).collect(),
            _ => Vec::new(),
        };
        all.into_iter()
    }
}

impl fmt::Display for Generation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
