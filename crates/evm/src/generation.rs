//! The functions of each generation of the contract, and the message that it hashes. Checked only if the registry pins a generation.
//!
//! Specification: `docs/spec/evm.md#generations`.

use countersign_core::json::{At, Cursor};
use countersign_core::{Code, EvmGeneration, Generation, OrderContext, Refusal};
use countersign_evm_core::call::Initiate;
use countersign_evm_core::typed_data::Message;

/// Returns the generation that is pinned for an order's source asset.
pub(crate) fn pinned(order: &OrderContext<'_>) -> Option<&'static EvmGeneration> {
    order.source.generation.and_then(Generation::evm)
}

fn mismatch(refusal: Refusal, expected: &EvmGeneration, actual: Option<&EvmGeneration>) -> Refusal {
    let refusal = refusal.with_expected(expected.name);
    if let Some(actual) = actual { refusal.with_actual(actual.name) } else { refusal }
}

/// Requires that contracts of the pinned generation have the function of a decoded call.
pub(crate) fn check_call(order: &OrderContext<'_>, call: &Initiate, at: &At<'_>) -> Result<(), Refusal> {
    let has_function = |generation: &EvmGeneration| {
        let contract = generation.contract(order.is_native());
        (call.initiator.is_none() || contract.on_behalf) && (call.destination_data.is_none() || contract.destination_data)
    };
    let Some(pinned) = pinned(order).filter(|pinned| !has_function(pinned)) else { return Ok(()) };
    let refusal = at.refuse_bytes(Code::GenerationMismatch, 0, 4);
    let refusal = refusal.with_reason("the pinned generation of the contract does not have this function");
    Err(mismatch(refusal, pinned, EvmGeneration::ALL.iter().copied().find(|generation| has_function(generation))))
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
    let actual = EvmGeneration::of_domain(&message.version);
    let is_own = actual.is_some_and(|actual| actual.domain_version == generation.domain_version);
    let is_pinned_apart =
        order.source.record.htlc.as_ref().and_then(|htlc| htlc.domain.as_ref()).is_some_and(|domain| domain.get("version").is_some());
    if !is_own && !is_pinned_apart {
        let refusal = cursor.at().key("domain").key("version").refuse(Code::GenerationMismatch);
        return Err(mismatch(refusal, generation, actual).with_reason("the domain has the version of another generation"));
    }
    Ok(())
}
