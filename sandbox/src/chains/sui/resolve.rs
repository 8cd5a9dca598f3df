//! Completes the partial transactions that wallets send to a simulation: objects named by id, and gas.

use std::cmp::Reverse;
use std::str::FromStr;

use sui_rpc::proto::sui::rpc::v2 as proto;
use sui_rpc::proto::sui::rpc::v2::command::Command;
use sui_rpc::proto::sui::rpc::v2::input::InputKind;
use sui_rpc::proto::sui::rpc::v2::transaction_expiration::TransactionExpirationKind;
use sui_rpc::proto::sui::rpc::v2::transaction_kind::{Data, Kind};
use sui_sdk_types::{Address, Input, ObjectReference, Owner, Transaction, TransactionExpiration, TransactionKind, TypeTag};
use tonic::Status;

use super::check::MAX_GAS_COINS;
use super::ledger::{CLOCK, GAS_PRICE, Objects, coins};

/// The maximum nesting depth of a type.
const MAX_TYPE_DEPTH: usize = 16;
/// The budget if the sender chooses none, in MIST. The unspent part is returned.
const BUDGET: u64 = 100_000_000;

/// Parses a type. The SDK's parser is recursive, so the depth is limited first, to what the protocol allows.
pub(super) fn parse_type<T: FromStr>(text: &str, field: &str) -> Result<T, Status> {
    let parsed = if text.matches('<').count() > MAX_TYPE_DEPTH { None } else { text.parse().ok() };
    parsed.ok_or_else(|| Status::invalid_argument(format!("invalid {field}")))
}

/// Decodes a complete or a partial transaction. A budget of 0 means that none was chosen.
pub(super) fn complete(objects: &Objects, message: &proto::Transaction) -> Result<Transaction, Status> {
    let mut message = message.clone();
    if message.bcs.is_none() {
        if let Some((Data::ProgrammableTransaction(program), kind)) =
            message.kind.as_mut().and_then(|kind| Some((kind.data.as_mut()?, &mut kind.kind)))
        {
            *kind = Some(Kind::ProgrammableTransaction.into());
            program.inputs.iter_mut().try_for_each(|input| complete_input(objects, input))?;
            for command in &program.commands {
                let Some(Command::MoveCall(call)) = &command.command else { continue };
                call.type_arguments.iter().try_for_each(|text| parse_type::<TypeTag>(text, "type_arguments").map(drop))?;
            }
        }
        let gas = message.gas_payment.get_or_insert_default();
        gas.owner = gas.owner.take().or_else(|| message.sender.clone());
        (gas.price, gas.budget) = (gas.price.or(Some(GAS_PRICE)), gas.budget.or(Some(0)));
        message.version = Some(1);
        message.expiration.get_or_insert_with(|| proto::TransactionExpiration::default().with_kind(TransactionExpirationKind::None));
    }
    Transaction::try_from(&message).map_err(|error| Status::invalid_argument(format!("invalid transaction: {error}")))
}

/// Adds the kind, version and digest of an object that a wallet names only by id.
fn complete_input(objects: &Objects, input: &mut proto::Input) -> Result<(), Status> {
    if input.kind() != InputKind::Unknown {
        return Ok(());
    }
    let object = input.object_id().parse().ok().and_then(|id: Address| objects.get(&id));
    let object = object.ok_or_else(|| Status::not_found(format!("Object {} not found", input.object_id())))?;
    if let Owner::Shared(version) = object.owner() {
        input.set_kind(InputKind::Shared);
        // Every function changes the objects that it takes, except the clock.
        let is_mutable = input.mutable.unwrap_or(object.object_id() != CLOCK);
        (input.version, input.mutable) = (Some(*version), Some(is_mutable));
    } else {
        input.set_kind(InputKind::ImmutableOrOwned);
        input.version.get_or_insert(object.version());
        input.digest.get_or_insert_with(|| object.digest().to_base58());
    }
    Ok(())
}

/// Chooses what the sender left open: the budget, and the coins that pay. These are the largest ones not used
/// elsewhere.
pub(super) fn pay(objects: &Objects, transaction: &mut Transaction) {
    let TransactionKind::ProgrammableTransaction(program) = &transaction.kind else { return };
    let payment = &mut transaction.gas_payment;
    if payment.budget == 0 {
        payment.budget = BUDGET;
    }
    // With `ValidDuring`, an empty payment means that the address balance pays.
    if payment.objects.is_empty() && !matches!(transaction.expiration, TransactionExpiration::ValidDuring { .. }) {
        let is_used = |id| program.inputs.iter().any(|input| matches!(input, Input::ImmutableOrOwned(used) if *used.object_id() == id));
        let mut coins: Vec<_> = coins(objects, payment.owner).filter(|(coin, _)| !is_used(coin.object_id())).collect();
        coins.sort_by_key(|(_, balance)| Reverse(*balance));
        let chosen = coins.into_iter().take(MAX_GAS_COINS);
        payment.objects = chosen.map(|(coin, _)| ObjectReference::new(coin.object_id(), coin.version(), coin.digest())).collect();
    }
}
