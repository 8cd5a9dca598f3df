//! Generations of the swap service's contracts. Each has its own arguments, typed data, ids and storage layout. Neither an address
//! nor a schema name tells them apart, so the wallet pins the generation of an HTLC (`docs/spec/batch.md#contract-generations`).

use std::fmt;

use countersign_chains::Family;
use countersign_chains::swap_id::StarknetFormula;

/// The generation of a pinned HTLC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Generation {
    /// The generation of an EVM contract.
    Evm(EvmGeneration),
    /// The generation of a Starknet contract.
    Starknet(StarknetGeneration),
    /// The generation of a Solana program.
    Solana(SolanaGeneration),
}

/// Declares the generations of a family's contract, with their names in a registry.
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

            /// Returns its name in a registry.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }

            /// Returns the generation with this name in a registry; `None` for any other text.
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
        /// Before version 3. The first word of a stored order tells whether the order has ended.
        Old = "old",
        /// Version 3, the audited contract of November 2025.
        V3 = "v3",
    }
}

generations! {
    /// Generations of the Starknet contract.
    StarknetGeneration {
        /// The public source of February 2025. The secret hash is eight words of 32 bits, the swap id binds chain, secret hash and
        /// initiator, and there is no getter for orders.
        February2025 = "2025_02",
        /// The contract captured in July 2025, which is expected if none is pinned. The swap id binds every term but the contract.
        July2025 = "captured_2025_07",
        /// The audited source of November 2025. The typed data has `verifyingContract`, `get_order` is the getter for orders, and the
        /// swap id binds every term and the contract.
        November2025 = "2025_11",
        /// The contract that version 3.1.3 of the service's own client calls. The secret hash is two words of 128 bits.
        Client313 = "client_3_1_3",
    }
}

generations! {
    /// Generations of the Solana programs, for tokens and for SOL.
    SolanaGeneration {
        /// The program that version 3.1.3 of the service's own client calls, which is expected if none is pinned.
        Client313 = "client_3_1_3",
        /// The audited source of November 2025.
        November2025 = "audited_2025_11",
    }
}

impl StarknetGeneration {
    /// Returns the generation that is expected of a contract: the pinned one, or that of July 2025 if none is pinned.
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
    /// Returns the generation of a family's contract with this name in a registry; `None` for any other text, and for a family
    /// whose contract has only one generation.
    #[must_use]
    pub fn parse(family: Family, name: &str) -> Option<Self> {
        match family {
            Family::Evm => EvmGeneration::parse(name).map(Self::Evm),
            Family::Starknet => StarknetGeneration::parse(name).map(Self::Starknet),
            Family::Solana => SolanaGeneration::parse(name).map(Self::Solana),
            _ => None,
        }
    }

    /// Returns its name in a registry.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Evm(generation) => generation.name(),
            Self::Starknet(generation) => generation.name(),
            Self::Solana(generation) => generation.name(),
        }
    }

    /// Returns the names of all generations of a family's contract.
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
