//! Tests on Tron: what the library signs and what it refuses, executed by this crate's engine.

#![cfg(test)]

mod calls;
mod tampered;

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

use alloy_primitives::{Address, B256, Signature, U256};
use countersign::Registry;
use countersign::tron::prost::Message as _;
use countersign::tron::transaction::protocol::{Transaction, TriggerSmartContract};
use countersign_proofs_evm::{Receipt, World};
use serde_json::Value;

/// The first block.
const START: u64 = 60_000_000;

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures")
}

fn registry() -> Result<Registry, Box<dyn Error>> {
    Ok(Registry::from_json(&fs::read(fixtures().join("registry.json"))?)?)
}

/// Returns the accepted orders of the family.
fn lines() -> Vec<Value> {
    let text = fs::read_to_string(fixtures().join("accept/tron.jsonl")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Executes what a node would accept: a transaction's call as its owner, if only these keys have signed its id. Returns
/// the contract too.
fn execute(
    world: &mut World,
    transaction: &Transaction,
    id: B256,
    owner: Address,
    signers: &[Address],
) -> Result<(Address, Receipt), Box<dyn Error>> {
    let contract = transaction.raw_data.as_ref().and_then(|raw| raw.contract.first()).ok_or("no call")?;
    let trigger = TriggerSmartContract::decode(contract.parameter.as_ref().ok_or("no call")?.value.as_slice())?;
    let recovered = transaction.signature.iter().map(|bytes| Ok(Signature::from_raw(bytes)?.recover_address_from_prehash(&id)?));
    let signed = recovered.collect::<Result<Vec<_>, Box<dyn Error>>>()?;
    assert!(!signed.is_empty() && signed.iter().all(|address| signers.contains(address)), "{signed:?}");
    assert_eq!(trigger.owner_address, [&[0x41], owner.as_slice()].concat());
    let to = Address::from_slice(&trigger.contract_address[1..]);
    let receipt = world.call(owner, to, trigger.data, U256::try_from(trigger.call_value)?)?;
    Ok((to, receipt))
}
