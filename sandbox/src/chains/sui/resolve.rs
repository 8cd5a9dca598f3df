//! Transactions that wallets send in parts, to have them completed in a simulation: objects by their ids, and gas.

use sui_sdk_types::bcs::FromBcs as _;
use sui_sdk_types::{
    Address, Argument, Command, Digest, GasPayment, Identifier, Input, MergeCoins, MoveCall, Object, ObjectReference, Owner,
    ProgrammableTransaction, SharedInput, SplitCoins, StructTag, Transaction, TransactionExpiration, TransactionKind, TransferObjects,
    TypeTag,
};

use super::grpc::Status;
use super::ledger::{CLOCK, GAS_PRICE, View};
use super::proto::Message;

/// The most coins that are chosen to pay.
const MAX_GAS_COINS: usize = 256;
/// How deep a type may be nested.
const MAX_TYPE_DEPTH: usize = 16;

fn wrong(field: &str) -> Status {
    Status::invalid(format!("invalid {field}"))
}

fn parse<T: std::str::FromStr>(message: &Message, field: &str) -> Result<T, Status> {
    message.text(field).and_then(|text| text.parse().ok()).ok_or_else(|| wrong(field))
}

/// Reads a type. The SDK's parser is recursive, so the depth is limited first, to what the protocol allows.
pub(super) fn parse_type<T: std::str::FromStr>(text: &str, field: &str) -> Result<T, Status> {
    let is_deep = text.matches('<').count() > MAX_TYPE_DEPTH;
    if is_deep { Err(wrong(field)) } else { text.parse().map_err(|_| wrong(field)) }
}

/// Reads a transaction that has been completed, in BCS.
pub(super) fn complete(message: &Message) -> Result<Transaction, Status> {
    let bytes = message.message("bcs").and_then(|bcs| bcs.bytes("value")).ok_or_else(|| Status::invalid("missing transaction.bcs"))?;
    Transaction::from_bcs(bytes).map_err(|error| Status::invalid(format!("invalid transaction.bcs: {error}")))
}

/// Reads a transaction in either form. A budget of 0 is one that has not been chosen.
pub(super) fn resolve(view: &View, message: &Message) -> Result<Transaction, Status> {
    if message.message("bcs").is_some() {
        return complete(message);
    }
    let program = message.message("kind").and_then(|kind| kind.message("programmable_transaction"));
    let program = program.ok_or_else(|| Status::invalid("missing transaction.kind.programmable_transaction"))?;
    let commands = program.messages("commands").map(command).collect::<Result<Vec<_>, _>>()?;
    let inputs = program.messages("inputs").map(|message| input(view, message)).collect::<Result<Vec<_>, _>>()?;
    let sender = parse(message, "sender")?;
    let gas_payment = match message.message("gas_payment") {
        Some(gas) => GasPayment {
            objects: gas.messages("objects").map(|message| reference(view, message)).collect::<Result<Vec<_>, _>>()?,
            owner: if gas.text("owner").is_some() { parse(gas, "owner")? } else { sender },
            price: gas.number("price").unwrap_or(GAS_PRICE),
            budget: gas.number("budget").unwrap_or_default(),
        },
        None => GasPayment { objects: vec![], owner: sender, price: GAS_PRICE, budget: 0 },
    };
    let expiration = message.message("expiration").map_or(Ok(TransactionExpiration::None), expiration)?;
    let kind = TransactionKind::ProgrammableTransaction(ProgrammableTransaction { inputs, commands });
    Ok(Transaction { kind, sender, gas_payment, expiration })
}

fn expiration(message: &Message) -> Result<TransactionExpiration, Status> {
    let millis = |field| {
        let time = message.message(field)?;
        let nanos = time.number("nanos").unwrap_or_default();
        Some(time.number("seconds").unwrap_or_default().saturating_mul(1_000).saturating_add(nanos / 1_000_000))
    };
    match message.number("kind") {
        Some(0 | 1) | None => Ok(TransactionExpiration::None),
        Some(2) => message.number("epoch").map(TransactionExpiration::Epoch).ok_or_else(|| wrong("epoch")),
        Some(3) => Ok(TransactionExpiration::ValidDuring {
            min_epoch: message.number("min_epoch"),
            max_epoch: message.number("epoch"),
            min_timestamp: millis("min_timestamp"),
            max_timestamp: millis("max_timestamp"),
            chain: message.text("chain").and_then(|text| Digest::from_base58(text).ok()).ok_or_else(|| wrong("chain"))?,
            nonce: message.number("nonce").and_then(|nonce| u32::try_from(nonce).ok()).ok_or_else(|| wrong("nonce"))?,
        }),
        Some(_) => Err(wrong("expiration")),
    }
}

fn find<'v>(view: &'v View, id: &Address) -> Result<&'v Object, Status> {
    view.get(id).map(AsRef::as_ref).ok_or_else(|| Status::not_found(format!("Object {id} not found")))
}

/// A reference, with what is missing filled in from the state.
fn reference(view: &View, message: &Message) -> Result<ObjectReference, Status> {
    let id = parse(message, "object_id")?;
    let digest = message.text("digest").map(|text| Digest::from_base58(text).map_err(|_| wrong("digest"))).transpose()?;
    if let (Some(version), Some(digest)) = (message.number("version"), digest) {
        return Ok(ObjectReference::new(id, version, digest));
    }
    let object = find(view, &id)?;
    Ok(ObjectReference::new(id, message.number("version").unwrap_or(object.version()), digest.unwrap_or_else(|| object.digest())))
}

fn input(view: &View, message: &Message) -> Result<Input, Status> {
    let shared = |version| {
        let id: Address = parse(message, "object_id")?;
        // Without a word from the caller: every function changes the objects that it takes, except the clock.
        let is_mutable = message.number("mutable").map(|value| value != 0).or(message.number("mutability").map(|value| value == 2));
        Ok(Input::Shared(SharedInput::new(id, version, is_mutable.unwrap_or(id != CLOCK))))
    };
    match (message.number("kind"), message.bytes("pure")) {
        (Some(1) | None | Some(0), Some(bytes)) => Ok(Input::Pure(bytes.to_vec())),
        (Some(2), _) => reference(view, message).map(Input::ImmutableOrOwned),
        (Some(3), _) => shared(message.number("version").ok_or_else(|| wrong("version"))?),
        (None | Some(0), None) => match find(view, &parse(message, "object_id")?)?.owner() {
            Owner::Shared(version) => shared(*version),
            _ => reference(view, message).map(Input::ImmutableOrOwned),
        },
        _ => Err(Status::invalid("invalid transaction.kind.programmable_transaction.inputs")),
    }
}

fn argument(message: &Message) -> Result<Argument, Status> {
    let index = |field| message.number(field).and_then(|index| u16::try_from(index).ok());
    let found = match message.number("kind") {
        Some(1) => Some(Argument::Gas),
        Some(2) => index("input").map(Argument::Input),
        Some(3) => match (index("result"), message.number("subresult")) {
            (Some(result), Some(_)) => index("subresult").map(|nested| Argument::NestedResult(result, nested)),
            (result, _) => result.map(Argument::Result),
        },
        _ => None,
    };
    found.ok_or_else(|| wrong("argument"))
}

fn arguments(message: &Message, field: &str) -> Result<Vec<Argument>, Status> {
    message.messages(field).map(argument).collect()
}

fn one(message: &Message, field: &str) -> Result<Argument, Status> {
    message.message(field).ok_or_else(|| wrong(field)).and_then(argument)
}

fn command(message: &Message) -> Result<Command, Status> {
    if let Some(call) = message.message("move_call") {
        let name = |field| call.text(field).and_then(|text| Identifier::new(text).ok()).ok_or_else(|| wrong(field));
        let types = call.texts("type_arguments").into_iter().map(|text| parse_type::<TypeTag>(&text, "type_arguments"));
        return Ok(Command::MoveCall(MoveCall {
            package: parse(call, "package")?,
            module: name("module")?,
            function: name("function")?,
            type_arguments: types.collect::<Result<_, _>>()?,
            arguments: arguments(call, "arguments")?,
        }));
    }
    if let Some(transfer) = message.message("transfer_objects") {
        let (objects, address) = (arguments(transfer, "objects")?, one(transfer, "address")?);
        return Ok(Command::TransferObjects(TransferObjects { objects, address }));
    }
    if let Some(split) = message.message("split_coins") {
        return Ok(Command::SplitCoins(SplitCoins { coin: one(split, "coin")?, amounts: arguments(split, "amounts")? }));
    }
    if let Some(merge) = message.message("merge_coins") {
        return Ok(Command::MergeCoins(MergeCoins { coin: one(merge, "coin")?, coins_to_merge: arguments(merge, "coins_to_merge")? }));
    }
    Err(Status::invalid("this model knows calls, transfers, splits and merges"))
}

/// The largest SUI coins of an account that a transaction does not use otherwise.
pub(super) fn gas_coins(view: &View, owner: Address, transaction: &Transaction) -> Vec<ObjectReference> {
    let inputs = match &transaction.kind {
        TransactionKind::ProgrammableTransaction(program) => program.inputs.as_slice(),
        _ => &[],
    };
    let is_used =
        |id: &Address| inputs.iter().any(|input| matches!(input, Input::ImmutableOrOwned(reference) if reference.object_id() == id));
    let sui = StructTag::sui().into();
    let mut coins: Vec<_> = view.coins(owner, &sui).filter(|(object, _)| !is_used(&object.object_id())).collect();
    coins.sort_by_key(|(object, balance)| (std::cmp::Reverse(*balance), object.object_id()));
    let chosen = coins.into_iter().take(MAX_GAS_COINS);
    chosen.map(|(object, _)| ObjectReference::new(object.object_id(), object.version(), object.digest())).collect()
}
