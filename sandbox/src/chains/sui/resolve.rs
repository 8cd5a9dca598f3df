//! Transactions that wallets send in parts, to have them completed in a simulation: objects by their ids, and gas.

use std::str::FromStr;

use sui_rpc::proto::TryFromProtoError;
use sui_rpc::proto::sui::rpc::v2::command::Command as Kind;
use sui_rpc::proto::sui::rpc::v2::input::{InputKind, Mutability};
use sui_rpc::proto::sui::rpc::v2::transaction_expiration::TransactionExpirationKind;
use sui_rpc::proto::sui::rpc::v2::transaction_kind::Data;
use sui_rpc::proto::sui::rpc::v2::{self as proto, Bcs};
use sui_sdk_types::{
    Address, Command, Digest, GasPayment, Input, Object, ObjectReference, Owner, ProgrammableTransaction, SharedInput, StructTag,
    Transaction, TransactionExpiration, TransactionKind, TypeTag,
};
use tonic::Status;

use super::ledger::{CLOCK, GAS_PRICE, View};

/// The most coins that are chosen to pay.
const MAX_GAS_COINS: usize = 256;
/// How deep a type may be nested.
const MAX_TYPE_DEPTH: usize = 16;

fn wrong(field: &str) -> Status {
    Status::invalid_argument(format!("invalid {field}"))
}

fn unread(error: &TryFromProtoError) -> Status {
    Status::invalid_argument(error.to_string())
}

fn parse<T: FromStr>(text: Option<&str>, field: &str) -> Result<T, Status> {
    text.and_then(|text| text.parse().ok()).ok_or_else(|| wrong(field))
}

/// Reads a type. The SDK's parser is recursive, so the depth is limited first, to what the protocol allows.
pub(super) fn parse_type<T: FromStr>(text: &str, field: &str) -> Result<T, Status> {
    let is_deep = text.matches('<').count() > MAX_TYPE_DEPTH;
    if is_deep { Err(wrong(field)) } else { text.parse().map_err(|_| wrong(field)) }
}

/// Reads a transaction that has been completed, in BCS.
pub(super) fn complete(bcs: &Bcs) -> Result<Transaction, Status> {
    bcs.deserialize().map_err(|error| Status::invalid_argument(format!("invalid transaction.bcs: {error}")))
}

/// Reads a transaction in either form. A budget of 0 is one that has not been chosen.
pub(super) fn resolve(view: &View, message: &proto::Transaction) -> Result<Transaction, Status> {
    if let Some(bcs) = &message.bcs {
        return complete(bcs);
    }
    let Some(Data::ProgrammableTransaction(program)) = message.kind.as_ref().and_then(|kind| kind.data.as_ref()) else {
        return Err(Status::invalid_argument("missing transaction.kind.programmable_transaction"));
    };
    let commands = program.commands.iter().map(command).collect::<Result<Vec<_>, _>>()?;
    let inputs = program.inputs.iter().map(|message| input(view, message)).collect::<Result<Vec<_>, _>>()?;
    let sender = parse(message.sender_opt(), "sender")?;
    let gas_payment = match &message.gas_payment {
        Some(gas) => GasPayment {
            objects: gas.objects.iter().map(|object| reference(view, object)).collect::<Result<Vec<_>, _>>()?,
            owner: if gas.owner.is_some() { parse(gas.owner_opt(), "owner")? } else { sender },
            price: gas.price.unwrap_or(GAS_PRICE),
            budget: gas.budget(),
        },
        None => GasPayment { objects: vec![], owner: sender, price: GAS_PRICE, budget: 0 },
    };
    let expiration = message.expiration.as_ref().filter(|expiration| expiration.kind() != TransactionExpirationKind::Unknown);
    let expiration = expiration.map_or(Ok(TransactionExpiration::None), TryInto::try_into).map_err(|error| unread(&error))?;
    let kind = TransactionKind::ProgrammableTransaction(ProgrammableTransaction { inputs, commands });
    Ok(Transaction { kind, sender, gas_payment, expiration })
}

fn find<'v>(view: &'v View, id: &Address) -> Result<&'v Object, Status> {
    view.get(id).map(AsRef::as_ref).ok_or_else(|| Status::not_found(format!("Object {id} not found")))
}

/// A reference, with what is missing filled in from the state.
fn reference(view: &View, message: &proto::ObjectReference) -> Result<ObjectReference, Status> {
    let id = parse(message.object_id_opt(), "object_id")?;
    let digest = message.digest_opt().map(|text| Digest::from_base58(text).map_err(|_| wrong("digest"))).transpose()?;
    if let (Some(version), Some(digest)) = (message.version, digest) {
        return Ok(ObjectReference::new(id, version, digest));
    }
    let object = find(view, &id)?;
    Ok(ObjectReference::new(id, message.version.unwrap_or(object.version()), digest.unwrap_or_else(|| object.digest())))
}

fn input(view: &View, message: &proto::Input) -> Result<Input, Status> {
    let shared = |version| {
        let id: Address = parse(message.object_id_opt(), "object_id")?;
        // Without a word from the caller: every function changes the objects that it takes, except the clock.
        let is_mutable = message.mutable.or(message.mutability.map(|_| message.mutability() == Mutability::Mutable));
        Ok(Input::Shared(SharedInput::new(id, version, is_mutable.unwrap_or(id != CLOCK))))
    };
    let owned = || {
        let mut object = proto::ObjectReference::default();
        (object.object_id, object.version, object.digest) = (message.object_id.clone(), message.version, message.digest.clone());
        reference(view, &object).map(Input::ImmutableOrOwned)
    };
    match (message.kind(), &message.pure) {
        (InputKind::Pure | InputKind::Unknown, Some(bytes)) => Ok(Input::Pure(bytes.to_vec())),
        (InputKind::ImmutableOrOwned, _) => owned(),
        (InputKind::Shared, _) => shared(message.version.ok_or_else(|| wrong("version"))?),
        (InputKind::Unknown, None) => match find(view, &parse(message.object_id_opt(), "object_id")?)?.owner() {
            Owner::Shared(version) => shared(*version),
            _ => owned(),
        },
        _ => Err(wrong("transaction.kind.programmable_transaction.inputs")),
    }
}

fn command(message: &proto::Command) -> Result<Command, Status> {
    match &message.command {
        Some(Kind::MoveCall(call)) => {
            call.type_arguments.iter().try_for_each(|text| parse_type::<TypeTag>(text, "type_arguments").map(drop))?;
        }
        Some(Kind::TransferObjects(_) | Kind::SplitCoins(_) | Kind::MergeCoins(_)) => {}
        _ => return Err(Status::invalid_argument("this model knows calls, transfers, splits and merges")),
    }
    message.try_into().map_err(|error| unread(&error))
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
