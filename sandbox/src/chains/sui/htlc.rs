//! The rules of the swap contract, in place of its Move code: see `docs/spec/sui.md`.

use alloy_primitives::U256;
use countersign_chains::swap_id::{self, SwapIdInput};
use sha2::{Digest as _, Sha256};
use sui_sdk_types::bcs::{FromBcs as _, ToBcs};
use sui_sdk_types::{
    Address, Argument, CommandArgumentError, Event, ExecutionError, Identifier, MoveCall, MoveLocation, Object, Owner, StructTag, TypeTag,
};

use super::execute::{Coin, Draft, Machine, at};
use super::ledger::CLOCK;
use crate::chains::Change;

/// The contract's module.
pub(super) const MODULE: Identifier = Identifier::from_static("AtomicSwap");
/// The longest timelock: seven days, in milliseconds.
const MAX_TIMELOCK: U256 = U256::from_limbs([604_800_000, 0, 0, 0]);
/// Its functions, in the order in which aborts count them.
const FUNCTIONS: [&str; 5] = ["create_orders_registry", "initiate", "redeem", "refund", "instant_refund"];

/// The type of an orders registry.
pub(super) fn registry_type(package: Address, coin_type: TypeTag) -> StructTag {
    StructTag::new(package, MODULE, Identifier::from_static("OrdersRegistry"), vec![coin_type])
}

/// What a leg commits to, as the contract hashes it.
pub(super) fn swap_id(registry: Address, input: &SwapIdInput<'_>) -> Option<[u8; 32]> {
    swap_id::sui(input, registry.as_ref())
}

/// An order: the value of a dynamic field of its registry.
struct Order {
    uid: Address,
    has_ended: bool,
    initiator: Address,
    redeemer: Address,
    amount: u64,
    initiated_at: U256,
    coin: Address,
    balance: u64,
    timelock: U256,
}

/// The field of an order, as BCS has it: field, key, order, ended, initiator, redeemer, amount, initiated at, coin, balance, timelock.
type Stored = (Address, Vec<u8>, Address, bool, Address, Address, u64, [u8; 32], Address, u64, [u8; 32]);

/// Where the field of an order says whether it has ended: after the field's id, the key and the order's id.
const HAS_ENDED: usize = 97;

/// Whether an order has ended, by the object that holds it; `None` for another object.
pub(super) fn has_ended(object: &Object) -> Option<bool> {
    let flag = object.as_struct()?.contents().get(HAS_ENDED)?;
    matches!(object.owner(), Owner::Object(_)).then_some(*flag == 1)
}

/// What goes wrong: an abort of the contract, or an argument that it cannot have.
enum Stop {
    Abort(u64),
    Error(ExecutionError),
}

impl From<ExecutionError> for Stop {
    fn from(error: ExecutionError) -> Self {
        Self::Error(error)
    }
}

fn ensure(holds: bool, code: u64) -> Result<(), Stop> {
    if holds { Ok(()) } else { Err(Stop::Abort(code)) }
}

/// Calls a function of the contract.
pub(super) fn call(machine: &mut Machine<'_>, call: &MoveCall) -> Result<(), ExecutionError> {
    let position = FUNCTIONS.iter().position(|name| *name == call.function.as_str() && call.module == MODULE);
    let Some(position) = position else { return Err(ExecutionError::FunctionNotFound) };
    let [coin_type] = call.type_arguments.as_slice() else { return Err(ExecutionError::TypeArityMismatch) };
    let outcome = match (position, call.arguments.as_slice()) {
        (0, []) => create_registry(machine, coin_type),
        (1, arguments) => match <&[Argument; 9]>::try_from(arguments) {
            Ok(arguments) => initiate(machine, coin_type, arguments),
            Err(_) => Err(ExecutionError::ArityMismatch.into()),
        },
        (2, [registry, id, secret]) => redeem(machine, coin_type, registry, id, secret),
        (3, [registry, id, clock]) => refund(machine, coin_type, registry, id, Some(clock)),
        (4, [registry, id]) => refund(machine, coin_type, registry, id, None),
        _ => Err(ExecutionError::ArityMismatch.into()),
    };
    outcome.map_err(|stop| match stop {
        Stop::Error(error) => error,
        Stop::Abort(code) => {
            let function_name = Identifier::new(call.function.as_str()).ok();
            let function = u16::try_from(position).unwrap_or_default();
            let location = MoveLocation { package: call.package, module: MODULE, function, instruction: 0, function_name };
            ExecutionError::MoveAbort { location, code }
        }
    })
}

fn create_registry(machine: &mut Machine<'_>, coin_type: &TypeTag) -> Result<(), Stop> {
    let id = machine.new_id();
    let kind = registry_type(machine.context.package, coin_type.clone());
    let owner = Owner::Shared(machine.version);
    machine.drafts.insert(id, Draft { kind, is_public: false, contents: id.into(), owner });
    emit(machine, "RegistryCreated", id.into());
    Ok(())
}

fn initiate(machine: &mut Machine<'_>, coin_type: &TypeTag, arguments: &[Argument; 9]) -> Result<(), Stop> {
    let [registry, initiator, redeemer, hash, amount, timelock, data, coin, clock] = arguments;
    let registry = registry_of(machine, coin_type, registry)?;
    let initiator = Address::new(machine.fixed(initiator).map_err(at(1))?);
    let redeemer = Address::new(machine.fixed(redeemer).map_err(at(2))?);
    let hash = bytes(machine, hash, 3)?;
    let amount = u64::from_le_bytes(machine.fixed(amount).map_err(at(4))?);
    let timelock = U256::from_le_bytes(machine.fixed::<32>(timelock).map_err(at(5))?);
    let data = bytes(machine, data, 6)?;
    let coin = machine.take_coin(coin).map_err(at(7))?;
    if coin.of != *coin_type {
        return Err(at(7)(CommandArgumentError::TypeMismatch).into());
    }
    clock_of(machine, clock, 8)?;

    ensure(initiator != Address::ZERO, 3)?;
    ensure(redeemer != Address::ZERO, 4)?;
    ensure(initiator != redeemer, 11)?;
    ensure(machine.sender != redeemer, 15)?;
    ensure(amount != 0, 10)?;
    ensure(timelock != U256::ZERO && timelock <= MAX_TIMELOCK, 9)?;
    let secret_hash = <[u8; 32]>::try_from(hash.as_slice()).map_err(|_| Stop::Abort(13))?;
    ensure(coin.balance == amount, 1)?;
    let initiated_at = U256::from(machine.context.millis);
    let uid = machine.new_id();
    let (coin, balance) = (coin.id, coin.balance);
    let order = Order { uid, has_ended: false, initiator, redeemer, amount, initiated_at, coin, balance, timelock };
    let id = order.id(registry, &secret_hash).ok_or(Stop::Abort(9))?;
    ensure(find(machine, registry, &id).is_none(), 7)?;
    machine.wrapped.insert(coin);
    store(machine, registry, coin_type, &id, &order);
    emit(machine, "Initiated", encoded(&(id.to_vec(), hash, amount, data)));
    machine.swaps.push((id, Change::Initiated { amount: amount.into() }));
    Ok(())
}

fn redeem(machine: &mut Machine<'_>, coin_type: &TypeTag, registry: &Argument, id: &Argument, secret: &Argument) -> Result<(), Stop> {
    let registry = registry_of(machine, coin_type, registry)?;
    let (id, secret) = (bytes(machine, id, 1)?, bytes(machine, secret, 2)?);
    let (id, order) = open(machine, registry, &id)?;
    let secret = <[u8; 32]>::try_from(secret.as_slice()).map_err(|_| Stop::Abort(8))?;
    let hash: [u8; 32] = Sha256::digest(secret).into();
    ensure(order.id(registry, &hash) == Some(id), 8)?;
    let to = order.redeemer;
    end(machine, registry, coin_type, &id, order, to);
    emit(machine, "Redeemed", encoded(&(id.to_vec(), hash.to_vec(), secret.to_vec())));
    machine.swaps.push((id, Change::Redeemed { secret }));
    Ok(())
}

/// Refunds an order after its timelock, or with the redeemer as the sender at any time.
fn refund(machine: &mut Machine<'_>, of: &TypeTag, registry: &Argument, id: &Argument, clock: Option<&Argument>) -> Result<(), Stop> {
    let registry = registry_of(machine, of, registry)?;
    let id = bytes(machine, id, 1)?;
    clock.map_or(Ok(()), |clock| clock_of(machine, clock, 2))?;
    let (id, order) = open(machine, registry, &id)?;
    match clock {
        Some(_) => ensure(order.initiated_at.saturating_add(order.timelock) < U256::from(machine.context.millis), 2)?,
        None => ensure(machine.sender == order.redeemer, 16)?,
    }
    let to = order.initiator;
    end(machine, registry, of, &id, order, to);
    emit(machine, "Refunded", encoded(&id.to_vec()));
    machine.swaps.push((id, Change::Refunded));
    Ok(())
}

impl Order {
    fn id(&self, registry: Address, secret_hash: &[u8; 32]) -> Option<[u8; 32]> {
        let (initiator, redeemer) = (self.initiator.inner(), self.redeemer.inner());
        let (timelock, amount) = (u64::try_from(self.timelock).ok()?, U256::from(self.amount));
        swap_id(registry, &SwapIdInput { secret_hash, initiator, redeemer, timelock, amount })
    }
}

/// An order's key in its registry.
fn key(id: &[u8]) -> Vec<u8> {
    encoded(&id.to_vec())
}

fn field(registry: Address, id: &[u8]) -> Address {
    registry.derive_dynamic_child_id(&TypeTag::Vector(Box::new(TypeTag::U8)), &key(id))
}

fn find(machine: &Machine<'_>, registry: Address, id: &[u8]) -> Option<Order> {
    let field = field(registry, id);
    let stored = machine.view.get(&field).and_then(|object| object.as_struct()).map(|data| data.contents());
    let stored = machine.drafts.get(&field).map(|draft| draft.contents.as_slice()).or(stored)?;
    let (_, _, uid, has_ended, initiator, redeemer, amount, initiated_at, coin, balance, timelock) = Stored::from_bcs(stored).ok()?;
    let (initiated_at, timelock) = (U256::from_le_bytes(initiated_at), U256::from_le_bytes(timelock));
    Some(Order { uid, has_ended, initiator, redeemer, amount, initiated_at, coin, balance, timelock })
}

fn open(machine: &Machine<'_>, registry: Address, id: &[u8]) -> Result<([u8; 32], Order), Stop> {
    let order = find(machine, registry, id).ok_or(Stop::Abort(5))?;
    ensure(!order.has_ended, 14)?;
    Ok((id.try_into().map_err(|_| Stop::Abort(5))?, order))
}

fn store(machine: &mut Machine<'_>, registry: Address, coin_type: &TypeTag, id: &[u8; 32], order: &Order) {
    let field = field(registry, id);
    let (initiated_at, timelock) = (order.initiated_at.to_le_bytes::<32>(), order.timelock.to_le_bytes::<32>());
    let (initiator, redeemer) = (order.initiator, order.redeemer);
    let stored: Stored = (
        field,
        id.to_vec(),
        order.uid,
        order.has_ended,
        initiator,
        redeemer,
        order.amount,
        initiated_at,
        order.coin,
        order.balance,
        timelock,
    );
    let of = StructTag::new(machine.context.package, MODULE, Identifier::from_static("Order"), vec![coin_type.clone()]);
    let parameters = vec![TypeTag::Vector(Box::new(TypeTag::U8)), of.into()];
    let name = (Identifier::from_static("dynamic_field"), Identifier::from_static("Field"));
    let kind = StructTag::new(Address::TWO, name.0, name.1, parameters);
    machine.drafts.insert(field, Draft { kind, is_public: false, contents: encoded(&stored), owner: Owner::Object(registry) });
}

/// Pays out an order. Its object stays, with an empty coin.
fn end(machine: &mut Machine<'_>, registry: Address, coin_type: &TypeTag, id: &[u8; 32], mut order: Order, to: Address) {
    let paid = Coin { id: machine.new_id(), of: coin_type.clone(), balance: order.balance };
    machine.give(&paid, to);
    (order.has_ended, order.balance) = (true, 0);
    store(machine, registry, coin_type, id, &order);
}

fn registry_of(machine: &mut Machine<'_>, coin_type: &TypeTag, argument: &Argument) -> Result<Address, ExecutionError> {
    let id = machine.shared(argument, true).map_err(at(0))?;
    let expected = registry_type(machine.context.package, coin_type.clone());
    let is_registry = machine.view.get(&id).and_then(|object| object.as_struct()).is_some_and(|data| *data.object_type() == expected);
    if is_registry { Ok(id) } else { Err(at(0)(CommandArgumentError::TypeMismatch)) }
}

fn clock_of(machine: &mut Machine<'_>, argument: &Argument, position: u16) -> Result<(), Stop> {
    let id = machine.shared(argument, false).map_err(at(position))?;
    if id == CLOCK { Ok(()) } else { Err(at(position)(CommandArgumentError::TypeMismatch).into()) }
}

/// An argument of the type `vector<u8>`.
fn bytes(machine: &mut Machine<'_>, argument: &Argument, position: u16) -> Result<Vec<u8>, ExecutionError> {
    let encoded = machine.pure(argument).map_err(at(position))?;
    Vec::from_bcs(&encoded).map_err(|_| at(position)(CommandArgumentError::InvalidBcsBytes))
}

fn emit(machine: &mut Machine<'_>, name: &str, contents: Vec<u8>) {
    let (package_id, sender) = (machine.context.package, machine.sender);
    let Ok(name) = Identifier::new(name) else { return };
    machine.events.push(Event { package_id, module: MODULE, sender, type_: StructTag::new(package_id, MODULE, name, vec![]), contents });
}

fn encoded(value: &impl ToBcs) -> Vec<u8> {
    value.to_bcs().unwrap_or_default()
}
