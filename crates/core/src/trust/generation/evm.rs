//! The generations of the EVM contracts: `docs/spec/evm.md#generations`.
//!
//! `Initiate`, the message of the gasless path, has four members in each: destination data is not part of any message. No contract
//! for the chain's own coin has that path. `redeem` and `refund` are the same in all. `v3` accepts secrets of 32 bytes only, `old` of
//! any length. This library uses 32 bytes everywhere.

use countersign_chains::swap_id::Version::{self, Source2024, V1, V2, V3};

/// A generation of the EVM contracts, for tokens and for the chain's own coin.
#[derive(Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EvmGeneration {
    /// Its name in a registry.
    pub name: &'static str,
    /// The version of the EIP-712 domain, which `version()` returns too. `None` if an argument of the constructor is the version: any
    /// that is not another generation's. Such contracts do not have `version()`.
    pub domain_version: Option<&'static str>,
    /// The layout in which contracts store orders.
    pub layout: EvmLayout,
    /// The contract for tokens.
    pub token: EvmContract,
    /// The contract for the chain's own coin.
    pub native: EvmContract,
}

/// What one of the two contracts of a generation has. Both have `initiate`, `redeem`, `refund` and `orders`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct EvmContract {
    /// The formulas of its swap ids; none if no formula is known.
    pub swap_ids: &'static [Version],
    /// Whether it has `initiateOnBehalf`.
    pub on_behalf: bool,
    /// Whether its functions take destination data.
    pub destination_data: bool,
    /// Whether it has `token()`.
    pub has_token: bool,
    /// The storage slot of the mapping of orders; `None` if it is not known.
    pub slot: Option<u64>,
}

/// The layout in which an EVM contract stores orders.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "who decodes an order must know every layout")]
pub enum EvmLayout {
    /// The layout of version 3.
    V3,
    /// The layout of older versions.
    Older,
}

impl EvmGeneration {
    /// Before version 3. The first word of a stored order tells whether the order has ended.
    ///
    /// Records of both versions follow their formulas. The public source of 2024 is of the same generation, and contains its own. Of
    /// the contract for the chain's own coin, no source is public, and no record has an id.
    pub const OLD: &Self = &Self {
        name: "old",
        domain_version: None,
        layout: EvmLayout::Older,
        token: EvmContract { swap_ids: &[V1, V2, Source2024], on_behalf: false, destination_data: false, has_token: true, slot: None },
        native: EvmContract { swap_ids: &[], on_behalf: true, destination_data: false, has_token: false, slot: None },
    };

    /// Version 3, the audited contract of November 2025.
    pub const V3: &Self = &Self {
        name: "v3",
        domain_version: Some("3"),
        layout: EvmLayout::V3,
        token: EvmContract { swap_ids: &[V3], on_behalf: true, destination_data: true, has_token: true, slot: Some(4) },
        native: EvmContract { swap_ids: &[V3], on_behalf: true, destination_data: true, has_token: true, slot: Some(2) },
    };

    /// Every generation, oldest first.
    pub const ALL: &[&Self] = &[Self::OLD, Self::V3];

    /// Returns the contract for the chain's own coin, or for tokens.
    #[must_use]
    pub const fn contract(&self, is_native: bool) -> &EvmContract {
        if is_native { &self.native } else { &self.token }
    }

    /// Returns the generation to which this version of the EIP-712 domain belongs.
    pub fn of_domain(version: &str) -> Option<&'static Self> {
        let with = |version| Self::ALL.iter().copied().find(|generation| generation.domain_version == version);
        with(Some(version)).or_else(|| with(None))
    }
}
