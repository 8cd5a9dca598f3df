//! The functions of each generation of the contract, and the message that it hashes. Checked only if the registry pins a generation.
//!
//! | | `old`, token | `old`, native | `v3`, token | `v3`, native |
//! |---|---|---|---|---|
//! | `initiate` | yes | yes | yes | yes |
//! | `initiateOnBehalf` | no | yes | yes | yes |
//! | both with destination data | no | no | yes | yes |
//! | `initiateWithSignature`, which the gasless path needs | yes | no | yes | no |
//! | version of the domain | any but 3: an argument of its constructor | the same | 3 | 3 |
//!
//! `Initiate` has four members in both generations: destination data is not part of any message. `redeem` and `refund` are the same
//! in both. `v3` accepts secrets of 32 bytes only, `old` of any length. This library uses 32 bytes everywhere.
//!
//! Specification: `docs/spec/evm.md#generations`.

use countersign_core::json::{At, Cursor};
use countersign_core::{Code, EvmGeneration, Generation, OrderContext, Refusal};
use countersign_evm_core::call::Initiate;
use countersign_evm_core::typed_data::Message;

/// The domain version of contracts of the generation `v3`.
const V3_DOMAIN: &str = "3";

/// Returns the generation that is pinned for an order's source asset.
pub(crate) fn pinned(order: &OrderContext<'_>) -> Option<EvmGeneration> {
    match order.source.generation {
        Some(Generation::Evm(generation)) => Some(generation),
        _ => None,
    }
}

fn mismatch(refusal: Refusal, expected: EvmGeneration, actual: EvmGeneration) -> Refusal {
    refusal.with_expected(expected.name()).with_actual(actual.name())
}

/// Requires that contracts of the pinned generation have the function of a decoded call.
pub(crate) fn check_call(order: &OrderContext<'_>, call: &Initiate, at: &At<'_>) -> Result<(), Refusal> {
    let is_newer = call.destination_data.is_some() || (call.initiator.is_some() && !order.is_native());
    if pinned(order) == Some(EvmGeneration::Old) && is_newer {
        let refusal = at.refuse_bytes(Code::GenerationMismatch, 0, 4);
        let refusal = refusal.with_reason("the pinned generation of the contract does not have this function");
        return Err(mismatch(refusal, EvmGeneration::Old, EvmGeneration::V3));
    }
    Ok(())
}

/// Requires that contracts of the pinned generation have the gasless path, and that the message is the one that they hash. If the
/// registry also pins the version of the domain, that version takes precedence.
pub(crate) fn check_message(order: &OrderContext<'_>, cursor: &Cursor<'_, '_>, message: &Message) -> Result<(), Refusal> {
    let Some(generation) = pinned(order) else { return Ok(()) };
    if order.is_native() {
        return Err(cursor.at().refuse(Code::GaslessNative));
    }
    if message.terms.destination_data.is_some() {
        let refusal = cursor.at().key("types").key("Initiate").refuse(Code::TypedDataTypes);
        return Err(refusal.with_expected("four members").with_reason("the contract does not hash destination data"));
    }
    let actual = if message.version == V3_DOMAIN { EvmGeneration::V3 } else { EvmGeneration::Old };
    let is_pinned_apart =
        order.source.record.htlc.as_ref().and_then(|htlc| htlc.domain.as_ref()).is_some_and(|domain| domain.get("version").is_some());
    if actual != generation && !is_pinned_apart {
        let refusal = cursor.at().key("domain").key("version").refuse(Code::GenerationMismatch);
        return Err(mismatch(refusal, generation, actual).with_reason("the domain has the version of another generation"));
    }
    Ok(())
}
