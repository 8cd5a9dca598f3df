//! The generations of the Solana programs: `docs/spec/solana.md#generations`.

use super::Generation;

/// A generation of the Solana programs, for tokens and for SOL.
#[derive(Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SolanaGeneration {
    /// Its name in a registry.
    pub name: &'static str,
    /// The arguments, accounts and seeds of its instructions, and what its accounts store.
    pub form: SolanaForm,
    /// Whether the formula of its swap ids is known.
    pub is_swap_id_known: bool,
}

/// The form of a program: the arguments, accounts and seeds of its instructions, and what its accounts store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "who decodes an instruction must know every form")]
pub enum SolanaForm {
    /// The form that the service's own client uses.
    Client,
    /// The form of the audited source. The address of a swap account is derived from all terms.
    Audited,
}

impl SolanaGeneration {
    /// The program that version 3.1.3 of the service's own client calls.
    pub const CLIENT_3_1_3: &Self = &Self { name: "client_3_1_3", form: SolanaForm::Client, is_swap_id_known: true };

    /// The audited source of November 2025.
    pub const NOVEMBER_2025: &Self = &Self { name: "audited_2025_11", form: SolanaForm::Audited, is_swap_id_known: false };

    /// Every generation, oldest first.
    pub const ALL: &[&Self] = &[Self::CLIENT_3_1_3, Self::NOVEMBER_2025];

    /// The generation that is expected if none is pinned.
    pub const EXPECTED: &Self = Self::CLIENT_3_1_3;

    /// Returns the generation that is expected of a program: the pinned one, or [`Self::EXPECTED`]; `None` if the pinned one is of
    /// another family.
    #[must_use]
    pub const fn expected(pinned: Option<Generation>) -> Option<&'static Self> {
        match pinned {
            None => Some(Self::EXPECTED),
            Some(Generation::Solana(generation)) => Some(generation),
            Some(_) => None,
        }
    }
}
