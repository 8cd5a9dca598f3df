//! The rules of the swap contract, in place of its Move code. Specification: `docs/spec/sui.md`.

use alloy_primitives::U256;
use countersign_chains::swap_id::{self, SwapIdInput};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use sui_sdk_types::bcs::{FromBcs as _, ToBcs};
use sui_sdk_types::{Address, Argument, Event, ExecutionError, Identifier, MoveCall, MoveLocation, Owner, StructTag, TypeTag};

use super::execute::{Coin, Stop, Work};
use super::ledger::CLOCK;
use crate::chains::engine::Change;

/// The contract's module.
pub(super) const MODULE: Identifier = Identifier::from_static("AtomicSwap");
/// The longest timelock: seven days, in milliseconds.
const MAX_TIMELOCK: u64 = 604_800_000;

/// Returns a type of the contract.
pub(super) fn type_of(package: Address, name: &'static str, parameters: Vec<TypeTag>) -> StructTag {
    StructTag::new(package, MODULE, Identifier::from_static(name), parameters)
}

/// An order, as a field of the registry object.
#[derive(Serialize, Deserialize)]
struct Order {
    field: Address,
    key: Vec<u8>,
    uid: Address,
    has_ended: bool,
    initiator: Address,
    redeemer: Address,
    amount: u64,
    /// Unix milliseconds as a `u256`. The timelock is a `u256` too.
    initiated_at: [u64; 4],
    coin: Address,
    balance: u64,
    timelock: [u64; 4],
}

/// Calls a function of the contract.
pub(super) fn call(work: &mut Work<'_>, call: &MoveCall) -> Result<(), Stop> {
    let unknown = || Stop::Unknown(format!("calls of {}::{}::{} with these arguments", call.package, call.module, call.function));
    let is_swap = call.package == work.context.package && call.module == MODULE && call.type_arguments == [StructTag::sui().into()];
    let (registry, rest) = call.arguments.split_first().filter(|_| is_swap).ok_or_else(unknown)?;
    work.shared(registry, work.context.registry, true)?;
    match (call.function.as_str(), rest) {
        (
            "initiate",
            [initiator, redeemer, hash, amount, timelock, data, coin @ (Argument::Result(_) | Argument::NestedResult(..)), clock],
        ) => {
            work.shared(clock, CLOCK, false)?;
            let (initiator, redeemer, amount) = (work.pure(initiator)?, work.pure(redeemer)?, work.pure(amount)?);
            let timelock: [u64; 4] = work.pure(timelock)?;
            let (hash, data, coin) = (work.pure::<Vec<u8>>(hash)?, work.pure::<Vec<u8>>(data)?, work.take(coin)?);
            ensure(call, initiator != Address::ZERO, 3)?;
            ensure(call, redeemer != Address::ZERO, 4)?;
            ensure(call, initiator != redeemer, 11)?;
            ensure(call, work.signed.transaction.sender != redeemer, 15)?;
            ensure(call, amount != 0, 10)?;
            ensure(call, matches!(timelock, [1..=MAX_TIMELOCK, 0, 0, 0]), 9)?;
            let secret_hash = <[u8; 32]>::try_from(hash.as_slice()).map_err(|_| abort(call, 13))?;
            ensure(call, coin.balance == amount, 1)?;
            let (uid, initiated_at, coin, balance) = (work.new_id(), [work.context.millis, 0, 0, 0], coin.id, coin.balance);
            let (field, key, has_ended) = (Address::ZERO, vec![], false);
            let mut order = Order { field, key, uid, has_ended, initiator, redeemer, amount, initiated_at, coin, balance, timelock };
            let id = order.id(work, &secret_hash).ok_or_else(|| abort(call, 9))?;
            (order.field, order.key) = (field_of(work, &id), id.to_vec());
            ensure(call, find(work, &id).is_none(), 7)?;
            store(work, &order);
            emit(work, "Initiated", encoded(&(id.to_vec(), hash, amount, data)));
            work.swaps.push((id, Change::Initiated { amount: amount.into() }));
        }
        ("redeem", [id, secret]) => {
            let (id, secret) = (work.pure::<Vec<u8>>(id)?, work.pure::<Vec<u8>>(secret)?);
            let (id, order) = open(work, call, &id)?;
            let secret = <[u8; 32]>::try_from(secret.as_slice()).map_err(|_| abort(call, 8))?;
            let hash: [u8; 32] = Sha256::digest(secret).into();
            ensure(call, order.id(work, &hash) == Some(id), 8)?;
            let to = order.redeemer;
            end(work, order, to);
            emit(work, "Redeemed", encoded(&(id.to_vec(), hash.to_vec(), secret.to_vec())));
            work.swaps.push((id, Change::Redeemed { secret }));
        }
        // The sender may refund after the timelock. The redeemer may do so at any time.
        ("refund" | "instant_refund", [id, rest @ ..]) if rest.len() == usize::from(call.function.as_str() == "refund") => {
            rest.iter().try_for_each(|clock| work.shared(clock, CLOCK, false))?;
            let (id, order) = open(work, call, &work.pure::<Vec<u8>>(id)?)?;
            match rest {
                [] => ensure(call, work.signed.transaction.sender == order.redeemer, 16)?,
                _ => ensure(call, order.initiated_at[0].saturating_add(order.timelock[0]) < work.context.millis, 2)?,
            }
            let to = order.initiator;
            end(work, order, to);
            emit(work, "Refunded", encoded(&id.to_vec()));
            work.swaps.push((id, Change::Refunded));
        }
        _ => return Err(unknown()),
    }
    Ok(())
}

fn abort(call: &MoveCall, code: u64) -> Stop {
    let (package, module, function_name) = (call.package, MODULE, Some(call.function.clone()));
    ExecutionError::MoveAbort { location: MoveLocation { package, module, function: 0, instruction: 0, function_name }, code }.into()
}

fn ensure(call: &MoveCall, holds: bool, code: u64) -> Result<(), Stop> {
    if holds { Ok(()) } else { Err(abort(call, code)) }
}

impl Order {
    fn id(&self, work: &Work<'_>, secret_hash: &[u8; 32]) -> Option<[u8; 32]> {
        let (initiator, redeemer) = (self.initiator.inner(), self.redeemer.inner());
        let (timelock, amount) = (self.timelock[0], U256::from(self.amount));
        swap_id::sui(&SwapIdInput { secret_hash, initiator, redeemer, timelock, amount }, work.context.registry.as_ref())
    }
}

fn field_of(work: &Work<'_>, id: &[u8]) -> Address {
    work.context.registry.derive_dynamic_child_id(&TypeTag::Vector(Box::new(TypeTag::U8)), &encoded(&id.to_vec()))
}

fn find(work: &Work<'_>, id: &[u8]) -> Option<Order> {
    let field = field_of(work, id);
    let object = work.after.get(&field).and_then(Option::as_ref).or_else(|| work.live.get(&field))?;
    Order::from_bcs(object.as_struct()?.contents()).ok()
}

/// Returns an order that has not ended.
fn open(work: &Work<'_>, call: &MoveCall, id: &[u8]) -> Result<([u8; 32], Order), Stop> {
    let order = find(work, id).ok_or_else(|| abort(call, 5))?;
    ensure(call, !order.has_ended, 14)?;
    Ok((id.try_into().map_err(|_| abort(call, 5))?, order))
}

fn store(work: &mut Work<'_>, order: &Order) {
    let of = type_of(work.context.package, "Order", vec![StructTag::sui().into()]);
    let (module, name) = (Identifier::from_static("dynamic_field"), Identifier::from_static("Field"));
    let kind = StructTag::new(Address::TWO, module, name, vec![TypeTag::Vector(Box::new(TypeTag::U8)), of.into()]);
    work.write((kind, encoded(order)), Owner::Object(work.context.registry));
}

/// Pays out an order. The order's object remains with an empty coin.
fn end(work: &mut Work<'_>, order: Order, to: Address) {
    let paid = Coin { id: work.new_id(), balance: order.balance };
    work.give(paid, to);
    store(work, &Order { has_ended: true, balance: 0, ..order });
}

fn emit(work: &mut Work<'_>, name: &'static str, contents: Vec<u8>) {
    let (package_id, sender) = (work.context.package, work.signed.transaction.sender);
    work.events.push(Event { package_id, module: MODULE, sender, type_: type_of(package_id, name, vec![]), contents });
}

fn encoded(value: &impl ToBcs) -> Vec<u8> {
    value.to_bcs().unwrap_or_default()
}
