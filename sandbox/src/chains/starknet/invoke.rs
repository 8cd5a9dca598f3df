//! Invoke transactions of version 3: their JSON, their hash, and what executing them does and costs.

use std::collections::BTreeMap;

use alloy_primitives::U256;
use serde_json::{Value, json};
use starknet_crypto::{Felt, poseidon_hash_many};

use super::felts::{hex, parse, selector, short};
use super::machine::{ACCOUNT_CLASS, Event, Failure, Frame, Machine, NONCE, STRK, Slot, World};

/// The prices of a unit of L1 gas, L2 gas and L1 data gas, in FRI.
pub(super) const PRICES: [u128; 3] = [45_000_000_000_000, 3_000_000_000, 60_000];
/// Who gets the fees.
pub(super) const SEQUENCER: Felt = Felt::from_hex_unchecked("0x1176a1bd84444c89232ec27754698e5d2e7e1a7f1539f12027f28b23ec9f3d8");
/// Marks a transaction that is only estimated.
const QUERY: Felt = Felt::from_hex_unchecked("0x100000000000000000000000000000003");
/// How many felts calldata and signatures may have.
const MAX_FELTS: usize = 5_000;
/// L2 gas that validation takes.
const VALIDATION: u64 = 500_000;
const RESOURCES: [(&str, &[u8; 8]); 3] = [("l1_gas", b"\0\0L1_GAS"), ("l2_gas", b"\0\0L2_GAS"), ("l1_data_gas", b"\0L1_DATA")];

/// An invoke transaction.
#[derive(Debug, Clone)]
pub(super) struct Invoke {
    pub(super) sender: Felt,
    pub(super) calldata: Vec<Felt>,
    pub(super) signature: Vec<Felt>,
    pub(super) nonce: Felt,
    /// Amount and price of L1 gas, L2 gas and L1 data gas.
    pub(super) bounds: [(u64, u128); 3],
    pub(super) tip: u64,
    pub(super) paymaster: Vec<Felt>,
    pub(super) deployment: Vec<Felt>,
    /// Of the nonce and of the fee: 0 is L1, 1 is L2.
    pub(super) modes: [u8; 2],
    pub(super) version: Felt,
}

fn felt(value: &Value) -> Option<Felt> {
    parse(value.as_str()?)
}

fn felts(value: &Value) -> Option<Vec<Felt>> {
    value.as_array().filter(|list| list.len() <= MAX_FELTS)?.iter().map(felt).collect()
}

pub(super) fn hexes(felts: &[Felt]) -> Value {
    felts.iter().copied().map(hex).collect()
}

impl Invoke {
    /// Reads `BROADCASTED_INVOKE_TXN_V3`; the error names what is wrong.
    pub(super) fn read(value: &Value) -> Result<Self, &'static str> {
        if value.get("type").and_then(Value::as_str) != Some("INVOKE") {
            return Err("type");
        }
        let one = |name: &'static str| value.get(name).and_then(felt).ok_or(name);
        let list = |name: &'static str| value.get(name).and_then(felts).ok_or(name);
        let mode = |name: &'static str| match value.get(name).and_then(Value::as_str) {
            Some("L1") => Ok(0),
            Some("L2") => Ok(1),
            _ => Err(name),
        };
        let mut bounds = [(0, 0); 3];
        for (bound, (name, _)) in bounds.iter_mut().zip(RESOURCES) {
            let part = |part: &str| value.get("resource_bounds")?.get(name)?.get(part).and_then(felt);
            let amount = part("max_amount").and_then(|amount| u64::try_from(amount).ok());
            let price = part("max_price_per_unit").and_then(|price| u128::try_from(price).ok());
            *bound = amount.zip(price).ok_or("resource_bounds")?;
        }
        let version = one("version")?;
        if version != Felt::THREE && version != QUERY {
            return Err("version");
        }
        Ok(Self {
            sender: one("sender_address")?,
            calldata: list("calldata")?,
            signature: list("signature")?,
            nonce: one("nonce")?,
            bounds,
            tip: u64::try_from(one("tip")?).map_err(|_| "tip")?,
            paymaster: list("paymaster_data")?,
            deployment: list("account_deployment_data")?,
            modes: [mode("nonce_data_availability_mode")?, mode("fee_data_availability_mode")?],
            version,
        })
    }

    /// Returns the transaction as nodes show it.
    pub(super) fn json(&self) -> Value {
        let mode = |place: usize| if self.modes.get(place) == Some(&1) { "L2" } else { "L1" };
        let bounds: BTreeMap<_, _> = RESOURCES
            .iter()
            .zip(self.bounds)
            .map(|((name, _), (amount, price))| {
                (*name, json!({"max_amount": format!("{amount:#x}"), "max_price_per_unit": format!("{price:#x}")}))
            })
            .collect();
        json!({
            "type": "INVOKE", "version": hex(self.version), "sender_address": hex(self.sender), "calldata": hexes(&self.calldata),
            "signature": hexes(&self.signature), "nonce": hex(self.nonce), "resource_bounds": bounds, "tip": format!("{:#x}", self.tip),
            "paymaster_data": hexes(&self.paymaster), "account_deployment_data": hexes(&self.deployment),
            "nonce_data_availability_mode": mode(0), "fee_data_availability_mode": mode(1),
        })
    }

    pub(super) fn hash(&self, chain_id: Felt) -> Felt {
        let mut fees = vec![Felt::from(self.tip)];
        for ((_, name), (amount, price)) in RESOURCES.iter().zip(self.bounds) {
            let parts = [&name[..], &amount.to_be_bytes(), &price.to_be_bytes()].concat();
            fees.push(Felt::from_bytes_be_slice(&parts));
        }
        let [nonce_mode, fee_mode] = self.modes.map(u64::from);
        poseidon_hash_many(&[
            short("invoke"),
            self.version,
            self.sender,
            poseidon_hash_many(&fees),
            poseidon_hash_many(&self.paymaster),
            chain_id,
            self.nonce,
            Felt::from((nonce_mode << 32) | fee_mode),
            poseidon_hash_many(&self.deployment),
            poseidon_hash_many(&self.calldata),
        ])
    }

    /// Returns the most that the transaction can cost, in FRI.
    pub(super) fn max_fee(&self) -> U256 {
        let [_, (l2_gas, _), _] = self.bounds;
        let bounds = self.bounds.iter().map(|(amount, price)| U256::from(*amount).saturating_mul(U256::from(*price)));
        bounds.fold(U256::from(l2_gas).saturating_mul(U256::from(self.tip)), U256::saturating_add)
    }

    /// Returns why the bounds are not enough for a transaction to be taken.
    pub(super) fn check_bounds(&self) -> Result<(), String> {
        for (((name, _), (_, offered)), price) in RESOURCES.iter().zip(self.bounds).zip(PRICES) {
            if offered < price {
                return Err(format!("Max {name} price ({offered}) is lower than the actual gas price: {price}."));
            }
        }
        let [_, (l2_gas, _), _] = self.bounds;
        if l2_gas < VALIDATION {
            return Err(format!("Max l2_gas amount ({l2_gas}) is lower than the minimal gas amount: {VALIDATION}."));
        }
        Ok(())
    }

    /// Decodes the calls as accounts of Cairo 1 do: count, then address, selector, length and arguments of each.
    fn calls(&self) -> Option<Vec<(Felt, Felt, &[Felt])>> {
        let (count, mut rest) = self.calldata.split_first()?;
        let mut calls = Vec::new();
        for _ in 0..u16::try_from(*count).ok()? {
            let (&[to, selector, length], after) = rest.split_first_chunk()?;
            let (arguments, after) = after.split_at_checked(usize::try_from(length).ok()?)?;
            calls.push((to, selector, arguments));
            rest = after;
        }
        rest.is_empty().then_some(calls)
    }
}

/// What a transaction did.
#[derive(Debug)]
pub(super) struct Outcome {
    /// The call of the account; if the transaction reverted, without effects.
    pub(super) frame: Frame,
    pub(super) failure: Option<Failure>,
    /// Why it reverted, as receipts have it.
    pub(super) reverted: Option<String>,
    /// L1 gas, L2 gas and L1 data gas.
    pub(super) gas: [u64; 3],
    pub(super) fee: U256,
    pub(super) fee_events: Vec<Event>,
    pub(super) writes: BTreeMap<Slot, Felt>,
}

impl Outcome {
    /// Returns all events in the order in which they were emitted.
    pub(super) fn events(&self) -> Vec<Event> {
        let mut events = self.frame.all_events();
        events.extend(self.fee_events.iter().cloned());
        events
    }
}

fn fee(gas: [u64; 3], tip: u64) -> U256 {
    let [_, l2_gas, _] = gas;
    let sum =
        gas.iter().zip(PRICES).fold(U256::ZERO, |sum, (gas, price)| sum.saturating_add(U256::from(*gas).saturating_mul(U256::from(price))));
    sum.saturating_add(U256::from(l2_gas).saturating_mul(U256::from(tip)))
}

/// Executes a transaction after validation, on top of what is written before it. The fee is charged only if somebody asks for that.
pub(super) fn execute(
    world: &World,
    base: &dyn Fn(&Slot) -> Felt,
    before: &BTreeMap<Slot, Felt>,
    block: u64,
    transaction: &Invoke,
    is_charged: bool,
) -> Outcome {
    let machine = |writes| Machine { world, base, writes, block, events: 0 };
    let mut start = machine(before.clone());
    start.write(transaction.sender, NONCE, super::felts::after(transaction.nonce, 1));
    let start = start.writes;
    let mut run = machine(start.clone());
    let mut frame = Frame {
        contract: transaction.sender,
        class: ACCOUNT_CLASS,
        selector: selector("__execute__"),
        calldata: transaction.calldata.clone(),
        ..Frame::default()
    };
    let mut failure = None;
    match transaction.calls() {
        None => failure = Some(Failure::panic("Failed to deserialize param #1", &frame)),
        Some(calls) => {
            for (to, selector, arguments) in calls {
                match run.call(transaction.sender, to, selector, arguments) {
                    Ok(call) => frame.calls.push(call),
                    Err(mut error) => {
                        error.path.push([frame.contract, frame.class, frame.selector]);
                        failure = Some(error);
                        break;
                    }
                }
            }
        }
    }
    // Plausible numbers, which grow with what is done.
    let felts = u64::try_from(transaction.calldata.len()).unwrap_or(u64::MAX);
    let written = run.writes.iter().filter(|(slot, value)| start.get(*slot) != Some(*value)).count();
    let written = u64::try_from(written).unwrap_or(u64::MAX).saturating_add(4);
    let l2_gas = frame.count().saturating_mul(400_000).saturating_add(felts.saturating_mul(5_000)).saturating_add(VALIDATION);
    let mut gas = [0, l2_gas, written.saturating_mul(32)];
    let mut reverted = failure.as_ref().map(Failure::trace);
    if is_charged {
        for ((used, (max, _)), (name, _)) in gas.iter_mut().zip(transaction.bounds).zip(RESOURCES) {
            if *used > max && reverted.is_none() {
                reverted = Some(format!("Insufficient max {name}: max amount: {max}, actual used: {used}."));
            }
            *used = (*used).min(max);
        }
        if run.balance(STRK, transaction.sender) < fee(gas, transaction.tip) && reverted.is_none() {
            reverted = Some("Insufficient fee token balance.".to_owned());
        }
    }
    if reverted.is_some() {
        (frame.calls, frame.events) = (Vec::new(), Vec::new());
        run.writes = start;
        run.events = 0;
    }
    let fee = fee(gas, transaction.tip);
    let fee_events = if is_charged { run.charge(STRK, transaction.sender, SEQUENCER, fee) } else { Vec::new() };
    Outcome { frame, failure, reverted, gas, fee, fee_events, writes: run.writes }
}
