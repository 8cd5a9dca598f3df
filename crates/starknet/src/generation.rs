//! The differences between the generations of the contract.
//!
//! Specification: `docs/spec/starknet.md#generations`.
//!
//! | | 2025_02 | captured_2025_07 | 2025_11 | client_3_1_3 |
//! |---|---|---|---|---|
//! | words of the secret hash | 8 of 32 bits | 8 of 32 bits | 8 of 32 bits | 2 of 128 bits |
//! | felts of `initiate` | 12 | 12 | 12 | 6 |
//! | version of the domain | `1` | `1` | `1` | `2` |
//! | `verifyingContract` in `Initiate` | no | no | yes | yes |
//! | functions with destination data | no | not known | yes | yes |
//! | felts of `redeem` | 10 | not known | 10 | 9 |
//! | `instantRefund` names its contract | no | not known | yes | not known |
//! | an order is read from | storage | not known | `get_order` | `get_order` |
//! | swap id | of the initiator | of the terms | of terms and contract | not known |

use countersign_core::{Code, Refusal, StarknetGeneration as Generation};
use starknet_types_core::felt::Felt;

use crate::read::Access;

/// How the calldata of `redeem` contains the secret, which has eight words in every generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SecretForm {
    /// As an array: the length, then the words.
    Array,
    /// As the words alone.
    Words,
}

/// The forms of one generation: a column of the table above.
#[derive(Debug)]
pub(crate) struct Forms {
    /// The number of words into which the secret hash is split.
    pub(crate) hash_words: usize,
    /// The version of the typed data's domain, a short string.
    pub(crate) domain_version: Felt,
    /// Whether the gasless message contains the address of its contract.
    pub(crate) names_contract: bool,
    /// Whether the contract has functions with destination data, which it only logs.
    pub(crate) takes_destination_data: bool,
    /// How the calldata of `redeem` contains the secret; `None` if that is not known.
    pub(crate) secret: Option<SecretForm>,
    /// Whether the message of an instant refund contains the address of its contract; `None` if that message is not known.
    pub(crate) instant_refund_names_contract: Option<bool>,
    /// The source from which orders are read; `None` if it is not known.
    pub(crate) access: Option<Access>,
}

const FEBRUARY_2025: Forms = Forms {
    hash_words: 8,
    domain_version: Felt::from_hex_unchecked("0x31"),
    names_contract: false,
    takes_destination_data: false,
    secret: Some(SecretForm::Array),
    instant_refund_names_contract: Some(false),
    access: Some(Access::Storage),
};

const JULY_2025: Forms = Forms { secret: None, instant_refund_names_contract: None, access: None, ..FEBRUARY_2025 };

const NOVEMBER_2025: Forms = Forms {
    names_contract: true,
    takes_destination_data: true,
    instant_refund_names_contract: Some(true),
    access: Some(Access::Getter),
    ..FEBRUARY_2025
};

const CLIENT_3_1_3: Forms = Forms {
    hash_words: 2,
    domain_version: Felt::from_hex_unchecked("0x32"),
    secret: Some(SecretForm::Words),
    instant_refund_names_contract: None,
    ..NOVEMBER_2025
};

/// Returns the forms of a generation.
pub(crate) const fn forms(generation: Generation) -> &'static Forms {
    match generation {
        Generation::February2025 => &FEBRUARY_2025,
        Generation::November2025 => &NOVEMBER_2025,
        Generation::Client313 => &CLIENT_3_1_3,
        // July 2025, which is expected if no generation is pinned.
        _ => &JULY_2025,
    }
}

impl Forms {
    /// Returns the size of each word of the secret hash in bytes.
    pub(crate) const fn word_size(&self) -> usize {
        if self.hash_words == 2 { 16 } else { 4 }
    }
}

/// Returns the refusal of a payload that has the form of another generation than the expected one; `None` if no other generation has
/// this form.
pub(crate) fn mismatch(
    expected: Generation,
    has_form: impl Fn(Generation) -> bool,
    refuse: impl FnOnce(Code) -> Refusal,
) -> Option<Refusal> {
    let others = Generation::ALL.iter().copied().filter(|generation| *generation != expected && has_form(*generation));
    let names: Vec<_> = others.map(Generation::name).collect();
    let actual = match names.as_slice() {
        [] => return None,
        [others @ .., last] if !others.is_empty() => format!("{} or {last}", others.join(", ")),
        _ => names.concat(),
    };
    Some(refuse(Code::GenerationMismatch).with_expected(expected.name()).with_actual(actual))
}
