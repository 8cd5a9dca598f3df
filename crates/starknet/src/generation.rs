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

/// How the calldata of `redeem` contains the secret, which has eight words in every generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SecretForm {
    /// As an array: the length, then the words.
    Array,
    /// As the words alone.
    Words,
}

/// Returns the number of words into which the secret hash is split.
pub(crate) const fn hash_words(generation: Generation) -> usize {
    match generation {
        Generation::Client313 => 2,
        _ => 8,
    }
}

/// Returns the size of each of these words in bytes.
pub(crate) const fn word_size(generation: Generation) -> usize {
    match generation {
        Generation::Client313 => 16,
        _ => 4,
    }
}

/// Returns whether the gasless message contains the address of its contract.
pub(crate) const fn names_contract(generation: Generation) -> bool {
    matches!(generation, Generation::November2025 | Generation::Client313)
}

/// Returns whether the contract has functions with destination data, which it only logs.
pub(crate) const fn takes_destination_data(generation: Generation) -> bool {
    matches!(generation, Generation::November2025 | Generation::Client313)
}

/// Returns the version of the typed data's domain, a short string.
pub(crate) const fn domain_version(generation: Generation) -> Felt {
    match generation {
        Generation::Client313 => Felt::from_hex_unchecked("0x32"),
        _ => Felt::from_hex_unchecked("0x31"),
    }
}

/// Returns how the calldata of `redeem` contains the secret; `None` if that is not known.
pub(crate) const fn secret_form(generation: Generation) -> Option<SecretForm> {
    match generation {
        Generation::February2025 | Generation::November2025 => Some(SecretForm::Array),
        Generation::Client313 => Some(SecretForm::Words),
        _ => None,
    }
}

/// Returns whether the message of an instant refund contains the address of its contract; `None` if that message is not known.
pub(crate) const fn instant_refund_names_contract(generation: Generation) -> Option<bool> {
    match generation {
        Generation::February2025 => Some(false),
        Generation::November2025 => Some(true),
        _ => None,
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
