//! The generations of the Starknet contract: `docs/spec/starknet.md#generations`.

use countersign_chains::swap_id::StarknetFormula;

use super::Generation;

/// A generation of the Starknet contract.
#[derive(Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StarknetGeneration {
    /// Its name in a registry.
    pub name: &'static str,
    /// The formula of its swap ids; `None` if it is not known.
    pub swap_id: Option<StarknetFormula>,
    /// The number of words into which the secret hash is split.
    pub hash_words: usize,
    /// The version of the typed data's domain, a short string.
    pub domain_version: &'static str,
    /// Whether the gasless message contains the address of its contract, as the member `verifyingContract`.
    pub names_contract: bool,
    /// Whether the contract has functions with destination data, which it only logs.
    pub takes_destination_data: bool,
    /// How the calldata of `redeem` contains the secret; `None` if that is not known.
    pub secret: Option<StarknetSecret>,
    /// Whether the message of an instant refund contains the address of its contract; `None` if that message is not known.
    pub instant_refund_names_contract: Option<bool>,
    /// The source from which orders are read; `None` if it is not known.
    pub access: Option<StarknetAccess>,
    /// Whether the interface of a class is enough to tell this generation. If not, a maintainer pins it by hand.
    pub is_told_by_class: bool,
}

/// How the calldata of `redeem` contains the secret, which has eight words in every generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "an argument of eight words is an array or a tuple")]
pub enum StarknetSecret {
    /// As an array: the length, then the words.
    Array,
    /// As the words alone.
    Words,
}

/// The source from which the orders of a contract are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a call or storage")]
pub enum StarknetAccess {
    /// The function `get_order`.
    Getter,
    /// The seven felts of an order in storage.
    Storage,
}

impl StarknetGeneration {
    /// The public source of February 2025. A contract of July 2025 may have the interface of this one.
    pub const FEBRUARY_2025: &Self = &Self {
        name: "2025_02",
        swap_id: Some(StarknetFormula::Initiator),
        hash_words: 8,
        domain_version: "1",
        names_contract: false,
        takes_destination_data: false,
        secret: Some(StarknetSecret::Array),
        instant_refund_names_contract: Some(false),
        access: Some(StarknetAccess::Storage),
        is_told_by_class: false,
    };

    /// The contract captured in July 2025. Its interface is not known.
    pub const JULY_2025: &Self = &Self {
        name: "captured_2025_07",
        swap_id: Some(StarknetFormula::Terms),
        secret: None,
        instant_refund_names_contract: None,
        access: None,
        ..*Self::FEBRUARY_2025
    };

    /// The audited source of November 2025.
    pub const NOVEMBER_2025: &Self = &Self {
        name: "2025_11",
        swap_id: Some(StarknetFormula::TermsAndContract),
        names_contract: true,
        takes_destination_data: true,
        instant_refund_names_contract: Some(true),
        access: Some(StarknetAccess::Getter),
        is_told_by_class: true,
        ..*Self::FEBRUARY_2025
    };

    /// The contract that version 3.1.3 of the service's own client calls.
    pub const CLIENT_3_1_3: &Self = &Self {
        name: "client_3_1_3",
        swap_id: None,
        hash_words: 2,
        domain_version: "2",
        secret: Some(StarknetSecret::Words),
        instant_refund_names_contract: None,
        ..*Self::NOVEMBER_2025
    };

    /// Every generation, oldest first.
    pub const ALL: &[&Self] = &[Self::FEBRUARY_2025, Self::JULY_2025, Self::NOVEMBER_2025, Self::CLIENT_3_1_3];

    /// The generation that is expected if none is pinned.
    pub const EXPECTED: &Self = Self::JULY_2025;

    /// Returns the generation that is expected of a contract: the pinned one, or [`Self::EXPECTED`].
    #[must_use]
    pub const fn expected(pinned: Option<Generation>) -> &'static Self {
        match pinned {
            Some(Generation::Starknet(generation)) => generation,
            _ => Self::EXPECTED,
        }
    }

    /// Returns the size of each word of the secret hash in bytes.
    #[must_use]
    pub const fn word_size(&self) -> usize {
        if self.hash_words == 2 { 16 } else { 4 }
    }
}
