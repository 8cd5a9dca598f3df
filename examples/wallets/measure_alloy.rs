//! A signing path of a wallet's own, against orders with known answers: does it sign the right bytes, which tampered orders does it sign,
//! and how long does it take beside countersign?
//!
//! Replace `sign` with what your wallet does. This one signs what the response says with alloy, and verifies nothing, which is what
//! `docs/measure.md` measures and counts. It covers the EIP-1559 transactions of EVM chains.

#![expect(clippy::print_stdout, clippy::arithmetic_side_effects, reason = "an example counts, and shows what it found")]

use std::collections::HashMap;
use std::error::Error;
use std::hint::black_box;
use std::time::{Duration, Instant};

use alloy_network::TxSignerSync;
use alloy_signer_local::PrivateKeySigner;
use countersign_orders::countersign::evm::alloy_consensus::TxEip1559;
use countersign_orders::countersign::evm::alloy_consensus::transaction::RlpEcdsaEncodableTx;
use countersign_orders::countersign::evm::alloy_primitives::{Address, U256, hex};
use countersign_orders::countersign::evm::{Fees, TxContext};
use countersign_orders::countersign::{self, Context, Family, Key, Policy, Refusal, Role};
use countersign_orders::{Order, orders, tampered};
use serde_json::{Map, Value};

/// How often all orders are signed. The first time is not counted.
const ROUNDS: usize = 10;

/// Signed transactions with their roles.
type Signed = Vec<(Role, Vec<u8>)>;

fn main() -> Result<(), Box<dyn Error>> {
    let (mut right, mut wrong, mut not_supported) = (HashMap::new(), 0, 0);
    for order in orders(Family::Evm) {
        match sign(&order) {
            Ok(Some(signed)) if is_expected(&order, &signed) => drop(right.insert(order.id.clone(), (order, signed))),
            Ok(None) => not_supported += 1,
            Ok(Some(_)) | Err(_) => wrong += 1,
        }
    }
    println!("honest orders: {} signed with the right bytes, {wrong} not, {not_supported} not supported", right.len());
    if right.is_empty() {
        return Err("no order to measure".into());
    }

    let (mut signed, mut unaffected, mut refused) = (0, 0, 0);
    for case in tampered(Family::Evm) {
        // Where the honest order is not signed, that the tampered one is not signed either says nothing.
        let Some((_, base)) = right.get(&case.base) else { continue };
        match sign(&case.order) {
            Ok(Some(result)) if result == *base => unaffected += 1,
            Ok(Some(_)) => signed += 1,
            Ok(None) | Err(_) => refused += 1,
        }
    }
    println!("tampered orders: {signed} signed, {unaffected} signed as if they were not tampered with, {refused} refused");

    // The two take turns, because the speed of a machine changes from minute to minute.
    let (mut own, mut ours) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        own.push(time(&right, |order| sign(order).map(drop))?);
        ours.push(time(&right, |order| countersign(order).map(drop))?);
    }
    let micros = |mut times: Vec<Duration>| {
        times.drain(..1);
        times.sort_unstable();
        times.get(times.len() / 2).map_or(0.0, Duration::as_secs_f64) * 1e6
    };
    println!("alloy: {:.1} us an order; countersign: {:.1} us", micros(own), micros(ours));
    Ok(())
}

/// Returns whether each transaction is the one that another library has signed.
fn is_expected(order: &Order, signed: &Signed) -> bool {
    let expected = |role| order.artefact(role).and_then(|artefact| artefact.signed.as_ref());
    signed.iter().all(|(role, bytes)| expected(*role) == Some(bytes))
}

/// Signs all orders and returns the time of one.
fn time<E>(all: &HashMap<String, (Order, Signed)>, sign: impl Fn(&Order) -> Result<(), E>) -> Result<Duration, E> {
    let started = Instant::now();
    for (order, _) in all.values() {
        sign(black_box(order))?;
    }
    Ok(started.elapsed() / u32::try_from(all.len()).unwrap_or(u32::MAX).max(1))
}

/// Verifies and signs an order with countersign.
fn countersign(order: &Order) -> Result<Signed, Refusal> {
    let mut unsigned = countersign::verify(order.proposal(), &order.registry, &Policy::default())?.prepare(&order.context)?;
    unsigned.sign(&Key::parse(Family::Evm, order.key.as_deref().unwrap_or_default())?)?;
    Ok(unsigned.finish()?.transactions().into_iter().map(|transaction| (transaction.role, transaction.bytes)).collect())
}

/// Returns what the wallet signs for an order; `None` for an order that it does not support.
fn sign(order: &Order) -> Result<Option<Signed>, Box<dyn Error>> {
    let (Some(key), Context::Evm(context)) = (&order.key, &order.context) else { return Ok(None) };
    let Some(TxContext { nonce, fees: Fees::Eip1559 { max_fee_per_gas, max_priority_fee_per_gas }, .. }) = context.path.self_funded()
    else {
        return Ok(None);
    };
    let response: Value = serde_json::from_str(&order.response)?;
    let Some(result) = response.get("result") else { return Ok(None) };
    let Some(initiate) = result.get("initiate_transaction").and_then(Value::as_object) else { return Ok(None) };
    let signer: PrivateKeySigner = key.parse()?;

    let calls = [(Role::Approval, result.get("approval_transaction").and_then(Value::as_object)), (Role::Initiate, Some(initiate))];
    let calls = calls.into_iter().filter_map(|(role, call)| Some((role, call?)));
    let mut signed = Vec::new();
    for (nonce, (role, call)) in (*nonce..).zip(calls) {
        let mut transaction = transaction(call, nonce, *max_fee_per_gas, *max_priority_fee_per_gas)?;
        let signature = signer.sign_transaction_sync(&mut transaction)?;
        let mut bytes = Vec::new();
        transaction.eip2718_encode(&signature, &mut bytes);
        signed.push((role, bytes));
    }
    Ok(Some(signed))
}

/// Returns the transaction that a member of the response describes, as it is.
fn transaction(
    call: &Map<String, Value>,
    nonce: u64,
    max_fee_per_gas: u128,
    max_priority_fee_per_gas: u128,
) -> Result<TxEip1559, Box<dyn Error>> {
    let text = |name: &str| call.get(name).and_then(Value::as_str).ok_or_else(|| format!("no {name}"));
    Ok(TxEip1559 {
        chain_id: call.get("chain_id").and_then(Value::as_u64).ok_or("no chain_id")?,
        nonce,
        gas_limit: text("gas_limit")?.parse::<U256>()?.try_into()?,
        max_fee_per_gas,
        max_priority_fee_per_gas,
        to: text("to")?.parse::<Address>()?.into(),
        value: text("value")?.parse()?,
        access_list: Default::default(),
        input: hex::decode(text("data")?)?.into(),
    })
}
