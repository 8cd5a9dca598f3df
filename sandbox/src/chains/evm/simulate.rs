//! Calls that have no effect on the chain: `eth_call`, `eth_estimateGas` and `eth_simulateV1`.

use alloy_primitives::{B256, hex};
use countersign_proofs_evm::{CallError, Outcome, Receipt, Simulation, UnsignedCall};
use serde_json::{Value, json};

use super::Evm;
use super::error;
use super::ledger::{Block, Format as _};
use super::params::{self, Params, call, object, override_state, small};
use super::shape::{self, quantity};
use crate::chains::rpc::Fault;
use crate::http::put;

/// The maximum number of calls in a simulation.
const MAX_CALLS: usize = 256;
/// The maximum gas of a simulation.
const MAX_GAS: u64 = 16_000_000;

fn rejected(error: &CallError) -> Fault {
    // The reason is in the error's source.
    let reason = std::error::Error::source(error).map(ToString::to_string).unwrap_or_default();
    if reason.contains("lack of funds") {
        return error::server("insufficient funds for gas * price + value");
    }
    error::server(format!("err: {reason}"))
}

fn returned(receipt: &Receipt) -> Value {
    match &receipt.outcome {
        Outcome::Success { output } | Outcome::Reverted { output } => json!(hex::encode_prefixed(output)),
        Outcome::Halted { .. } => json!("0x"),
    }
}

/// Applies the overrides at a position of the parameters.
fn overridden(simulation: &mut Simulation<'_>, params: Params<'_>, index: usize) -> Result<(), Fault> {
    match params.get(index) {
        Some(overrides) => override_state(simulation, overrides).map_err(|why| error::invalid(index, &why)),
        None => Ok(()),
    }
}

pub(crate) fn eth_call(evm: &Evm, params: Params<'_>) -> Result<Value, Fault> {
    let call = params.read(0, call)?;
    let number = evm.number(params.block(1)?)?;
    let block = evm.shown(number)?;
    evm.at(number, |state| {
        let mut simulation = state.simulate(number, block.millis / 1_000);
        overridden(&mut simulation, params, 2)?;
        let receipt = simulation.run(&call, false).map_err(|error| rejected(&error))?;
        error::of(&receipt.outcome).map_or_else(|| Ok(returned(&receipt)), Err)
    })?
}

/// Estimates the minimum gas with which a call succeeds, within one and a half per cent, as Geth does.
pub(crate) fn estimate_gas(evm: &Evm, params: Params<'_>) -> Result<Value, Fault> {
    let call = params.read(0, call)?;
    let number = evm.number(params.block(1)?)?;
    let millis = evm.shown(number)?.millis;
    evm.at(number, |state| {
        let run = |gas: u64| {
            let mut simulation = state.simulate(number.saturating_add(1), millis / 1_000);
            overridden(&mut simulation, params, 2)?;
            simulation.run(&UnsignedCall { gas: Some(gas), ..call.clone() }, false).map_err(|error| rejected(&error))
        };
        let most = call.gas.filter(|gas| *gas >= 21_000).unwrap_or(MAX_GAS).min(MAX_GAS);
        let first = run(most)?;
        if let Some(error) = error::of(&first.outcome) {
            return Err(error);
        }
        // The cost of a plain payment is fixed.
        let to = call.to.filter(|to| call.data.is_empty() && state.code(*to).is_empty());
        if to.is_some() && run(21_000)?.is_success() {
            return Ok(quantity(21_000_u64));
        }
        let succeeds = |gas: u64| run(gas).is_ok_and(|receipt| receipt.is_success());
        // A call can pass on at most 63/64 of its gas.
        let (mut low, mut high) = (first.gas_used.saturating_sub(1), most);
        let guess = first.gas_used.saturating_add(2_300).saturating_mul(64).div_ceil(63).min(most);
        if succeeds(guess) {
            high = guess;
        } else {
            low = guess;
        }
        while high.saturating_sub(low).saturating_mul(200) > high.saturating_mul(3) {
            let middle = low.midpoint(high);
            if succeeds(middle) { high = middle } else { low = middle }
        }
        Ok(quantity(high))
    })?
}

/// Simulates several calls that build on each other, in one block or more.
pub(crate) fn simulate(evm: &Evm, params: Params<'_>) -> Result<Value, Fault> {
    let request = params.read(0, |value| object(value).cloned())?;
    let number = evm.number(params.block(1)?)?;
    let parent = evm.shown(number)?;
    let blocks = request.get("blockStateCalls").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let calls = |block: &Value| block.get("calls").and_then(Value::as_array).map_or(0, Vec::len);
    if blocks.is_empty() {
        return Err(Fault::params("empty input"));
    }
    if blocks.iter().map(calls).fold(blocks.len(), usize::saturating_add) > MAX_CALLS {
        return Err(Fault::new(-38_026, "too many blocks"));
    }
    let traced = request.get("traceTransfers").and_then(Value::as_bool).unwrap_or_default();
    let invalid = |why: String| error::invalid(0, &why);
    evm.at(number, |state| {
        let (mut next, mut seconds, mut parent_hash) = (number, parent.millis / 1_000, parent.hash);
        let mut simulation = state.simulate(next.saturating_add(1), seconds);
        let mut shown = Vec::new();
        for block in blocks {
            let overrides = block.get("blockOverrides").filter(|value| !value.is_null());
            let read = |name| overrides.and_then(|members| members.get(name)).map(small).transpose().map_err(invalid);
            next = read("number")?.unwrap_or_else(|| next.saturating_add(1));
            seconds = read("time")?.unwrap_or_else(|| seconds.saturating_add(evm.contracts.network.interval.div_ceil(1_000)));
            simulation.set_block(next, seconds);
            if let Some(overrides) = block.get("stateOverrides").filter(|value| !value.is_null()) {
                override_state(&mut simulation, overrides).map_err(invalid)?;
            }
            let calls = block.get("calls").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
            let mut made = Block {
                number: next,
                millis: seconds.saturating_mul(1_000),
                hash: B256::ZERO,
                parent: parent_hash,
                fork: parent.fork,
                roots: evm.ledger.format.empty(parent.roots.state),
                transactions: Vec::new(),
            };
            // Nobody can verify the hash of a simulated block, so it ignores the members that follow.
            made.hash = evm.ledger.format.hash(&made);
            parent_hash = made.hash;
            let (mut outcomes, mut place) = (Vec::new(), 0_usize);
            for (index, call) in calls.iter().enumerate() {
                let receipt = simulation.run(&params::call(call).map_err(invalid)?, traced).map_err(|error| rejected(&error))?;
                made.roots.gas_used = made.roots.gas_used.saturating_add(receipt.gas_used);
                let logs = receipt.logs.iter().zip(place..);
                let logs: Vec<_> = logs.map(|(log, place)| shape::log(log, (next, made.hash), (B256::ZERO, index), place)).collect();
                place = place.saturating_add(logs.len());
                let mut outcome = json!({
                    "returnData": returned(&receipt),
                    "logs": logs,
                    "gasUsed": quantity(receipt.gas_used),
                    "status": if receipt.is_success() { "0x1" } else { "0x0" },
                });
                if let Some(error) = error::of(&receipt.outcome) {
                    put(&mut outcome, "error", error.json());
                }
                outcomes.push(outcome);
            }
            let mut block = shape::block(&made, &evm.ledger.format.header(&made), evm.contracts.network.l1_number(made.millis), false);
            put(&mut block, "calls", json!(outcomes));
            shown.push(block);
        }
        Ok(Value::Array(shown))
    })?
}
