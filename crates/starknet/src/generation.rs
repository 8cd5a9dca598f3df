//! The form of a generation's contract, as far as its row in the table of generations needs a computation.
//!
//! Specification: `docs/spec/starknet.md#generations`.

use countersign_core::{Code, Refusal, StarknetGeneration};
use starknet_types_core::felt::Felt;

/// Returns the version of the typed data's domain.
pub(crate) fn domain_version(generation: &StarknetGeneration) -> Felt {
    Felt::from_bytes_be_slice(generation.domain_version.as_bytes())
}

/// Returns the refusal of a payload that has the form of another generation than the expected one; `None` if no other generation has
/// this form.
pub(crate) fn mismatch(
    expected: &StarknetGeneration,
    has_form: impl Fn(&'static StarknetGeneration) -> bool,
    refuse: impl FnOnce(Code) -> Refusal,
) -> Option<Refusal> {
    let others = StarknetGeneration::ALL.iter().filter(|generation| generation.name != expected.name && has_form(generation));
    let names: Vec<_> = others.map(|generation| generation.name).collect();
    let actual = match names.as_slice() {
        [] => return None,
        [others @ .., last] if !others.is_empty() => format!("{} or {last}", others.join(", ")),
        _ => names.concat(),
    };
    Some(refuse(Code::GenerationMismatch).with_expected(expected.name).with_actual(actual))
}
