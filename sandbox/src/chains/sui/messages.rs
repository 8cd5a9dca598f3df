//! The ledger's contents as messages.

use sui_sdk_types::bcs::ToBcs;
use sui_sdk_types::{
    Address, Argument, ChangedObject, Command, Event, ExecutionError, ExecutionStatus, GasCostSummary, IdOperation, Input, Object,
    ObjectData, ObjectIn, ObjectOut, ObjectReference, Owner, Transaction, TransactionEffects, TransactionExpiration, TransactionKind,
    UnchangedConsensusKind, UserSignature,
};

use super::ledger::{Checkpoint, Executed, GAS_PRICE, coin, epoch};
use super::proto::{self, Message};

/// The version of the protocol that answers show.
const PROTOCOL: u64 = 100;

pub(super) fn time(millis: u64) -> Message {
    let message = Message::new(&proto::TIMESTAMP).put("seconds", millis / 1_000);
    message.put("nanos", (millis % 1_000).saturating_mul(1_000_000))
}

fn bcs(name: &str, value: &impl ToBcs) -> Message {
    named(name, value.to_bcs().unwrap_or_default())
}

pub(super) fn named(name: &str, value: Vec<u8>) -> Message {
    Message::new(&proto::BCS).put("name", name).put("value", value)
}

fn owner(owner: &Owner) -> Message {
    let message = |kind: u64| Message::new(&proto::OWNER).put("kind", kind);
    match owner {
        Owner::Address(of) => message(1).put("address", of.to_string()),
        Owner::Object(of) => message(2).put("address", of.to_string()),
        Owner::Shared(version) => message(3).put("version", *version),
        Owner::ConsensusAddress { start_version, owner } => message(5).put("address", owner.to_string()).put("version", *start_version),
        _ => message(4),
    }
}

pub(super) fn object(object: &Object) -> Message {
    let message = Message::new(&proto::OBJECT).put("bcs", bcs("Object", object)).put("object_id", object.object_id().to_string());
    let message = message.put("version", object.version()).put("digest", object.digest().to_base58());
    let message = message.put("owner", owner(object.owner())).put("storage_rebate", object.storage_rebate());
    let message = message.put("previous_transaction", object.previous_transaction().to_base58());
    match object.data() {
        ObjectData::Struct(data) => {
            let kind = data.object_type().to_string();
            let message = message.put("has_public_transfer", data.has_public_transfer());
            let message = message.put("contents", named(&kind, data.contents().to_vec())).put("object_type", kind);
            message.maybe("balance", coin(object).map(|(_, balance)| balance))
        }
        ObjectData::Package(package) => {
            let id = package.id.to_string();
            let modules = package
                .modules
                .iter()
                .map(|(name, contents)| Message::new(&proto::MODULE).put("name", name.as_str()).put("contents", contents.clone()));
            let origins = package.type_origin_table.iter().map(|origin| {
                let message = Message::new(&proto::TYPE_ORIGIN).put("module_name", origin.module_name.as_str());
                message.put("datatype_name", origin.struct_name.as_str()).put("package_id", origin.package.to_string())
            });
            let content =
                Message::new(&proto::PACKAGE).put("storage_id", id.clone()).put("original_id", id).put("version", package.version);
            message.put("object_type", "package").put("package", content.all("modules", modules).all("type_origins", origins))
        }
    }
}

fn reference(reference: &ObjectReference) -> Message {
    let message = Message::new(&proto::REFERENCE).put("object_id", reference.object_id().to_string());
    message.put("version", reference.version()).put("digest", reference.digest().to_base58())
}

fn input(input: &Input) -> Message {
    let message = |kind: u64| Message::new(&proto::INPUT).put("kind", kind);
    let object = |kind, reference: &ObjectReference| {
        let message = message(kind).put("object_id", reference.object_id().to_string());
        message.put("version", reference.version()).put("digest", reference.digest().to_base58())
    };
    match input {
        Input::Pure(bytes) => message(1).put("pure", bytes.clone()),
        Input::ImmutableOrOwned(reference) => object(2, reference),
        Input::Shared(shared) => {
            let message = message(3).put("object_id", shared.object_id().to_string()).put("version", shared.version());
            let is_mutable = shared.mutability().is_mutable();
            message.put("mutable", is_mutable).put("mutability", if is_mutable { 2 } else { 1_u64 })
        }
        Input::Receiving(reference) => object(4, reference),
        _ => message(0),
    }
}

fn argument(argument: &Argument) -> Message {
    let message = |kind: u64| Message::new(&proto::ARGUMENT).put("kind", kind);
    match *argument {
        Argument::Gas => message(1),
        Argument::Input(index) => message(2).put("input", u64::from(index)),
        Argument::Result(index) => message(3).put("result", u64::from(index)),
        Argument::NestedResult(index, nested) => message(3).put("result", u64::from(index)).put("subresult", u64::from(nested)),
    }
}

fn command(command: &Command) -> Message {
    let message = Message::new(&proto::COMMAND);
    match command {
        Command::MoveCall(call) => {
            let content = Message::new(&proto::MOVE_CALL).put("package", call.package.to_string()).put("module", call.module.as_str());
            let content = content.put("function", call.function.as_str());
            let content = content.all("type_arguments", call.type_arguments.iter().map(ToString::to_string));
            message.put("move_call", content.all("arguments", call.arguments.iter().map(argument)))
        }
        Command::TransferObjects(transfer) => {
            let content = Message::new(&proto::TRANSFER_OBJECTS).all("objects", transfer.objects.iter().map(argument));
            message.put("transfer_objects", content.put("address", argument(&transfer.address)))
        }
        Command::SplitCoins(split) => {
            let content = Message::new(&proto::SPLIT_COINS).put("coin", argument(&split.coin));
            message.put("split_coins", content.all("amounts", split.amounts.iter().map(argument)))
        }
        Command::MergeCoins(merge) => {
            let content = Message::new(&proto::MERGE_COINS).put("coin", argument(&merge.coin));
            message.put("merge_coins", content.all("coins_to_merge", merge.coins_to_merge.iter().map(argument)))
        }
        Command::Publish(publish) => {
            let content = Message::new(&proto::PUBLISH).all("modules", publish.modules.iter().cloned());
            message.put("publish", content.all("dependencies", publish.dependencies.iter().map(ToString::to_string)))
        }
        _ => message,
    }
}

fn expiration(expiration: &TransactionExpiration) -> Message {
    let message = |kind: u64| Message::new(&proto::EXPIRATION).put("kind", kind);
    match expiration {
        TransactionExpiration::Epoch(last) => message(2).put("epoch", *last),
        TransactionExpiration::ValidDuring { min_epoch, max_epoch, min_timestamp, max_timestamp, chain, nonce } => {
            let message = message(3).maybe("epoch", *max_epoch).maybe("min_epoch", *min_epoch);
            let message = message.maybe("min_timestamp", min_timestamp.map(time)).maybe("max_timestamp", max_timestamp.map(time));
            message.put("chain", chain.to_base58()).put("nonce", u64::from(*nonce))
        }
        _ => message(1),
    }
}

pub(super) fn transaction(transaction: &Transaction) -> Message {
    let message = Message::new(&proto::TRANSACTION).put("bcs", bcs("TransactionData", transaction));
    let message = message.put("digest", transaction.digest().to_base58()).put("version", 1_u64);
    let message = match &transaction.kind {
        TransactionKind::ProgrammableTransaction(program) => {
            let content = Message::new(&proto::PROGRAMMABLE).all("inputs", program.inputs.iter().map(input));
            let content = content.all("commands", program.commands.iter().map(command));
            message.put("kind", Message::new(&proto::KIND).put("kind", 1_u64).put("programmable_transaction", content))
        }
        _ => message,
    };
    let payment = &transaction.gas_payment;
    let gas = Message::new(&proto::GAS_PAYMENT).all("objects", payment.objects.iter().map(reference));
    let gas = gas.put("owner", payment.owner.to_string()).put("price", payment.price).put("budget", payment.budget);
    let message = message.put("sender", transaction.sender.to_string()).put("gas_payment", gas);
    message.put("expiration", expiration(&transaction.expiration))
}

fn signature(signature: &UserSignature) -> Message {
    let bytes = signature.to_bytes();
    let message = Message::new(&proto::SIGNATURE).put("scheme", u64::from(signature.scheme().to_u8()));
    message.put("bcs", named("UserSignatureBytes", bytes))
}

fn gas(summary: &GasCostSummary) -> Message {
    let message = Message::new(&proto::GAS_USED).put("computation_cost", summary.computation_cost);
    let message = message.put("storage_cost", summary.storage_cost).put("storage_rebate", summary.storage_rebate);
    message.put("non_refundable_storage_fee", summary.non_refundable_storage_fee)
}

/// Why a transaction failed, in a node's words.
pub(super) fn reason(error: &ExecutionError, command: Option<u64>) -> String {
    let place = command.map(|command| format!(" in command {command}")).unwrap_or_default();
    match error {
        ExecutionError::MoveAbort { location, code } => {
            let function = location.function_name.as_ref().map(|name| name.as_str()).unwrap_or_default();
            format!("MoveAbort{place}, abort code: {code}, in '{}::{}::{function}'", location.package, location.module)
        }
        other => format!("{other:?}{place}"),
    }
}

fn status(status: &ExecutionStatus) -> Message {
    let message = Message::new(&proto::EXECUTION);
    let ExecutionStatus::Failure { error, command } = status else { return message.put("success", true) };
    let kind: u64 = match error {
        ExecutionError::InsufficientGas => 1,
        ExecutionError::InvariantViolation => 3,
        ExecutionError::FeatureNotYetSupported => 4,
        ExecutionError::InsufficientCoinBalance => 8,
        ExecutionError::CoinBalanceOverflow => 9,
        ExecutionError::MoveAbort { .. } => 13,
        ExecutionError::FunctionNotFound => 16,
        ExecutionError::ArityMismatch => 17,
        ExecutionError::TypeArityMismatch => 18,
        ExecutionError::CommandArgumentError { .. } => 20,
        ExecutionError::UnusedValueWithoutDrop { .. } => 22,
        _ => 0,
    };
    let content = Message::new(&proto::ERROR).put("description", reason(error, *command)).maybe("command", *command).put("kind", kind);
    let content = match error {
        ExecutionError::MoveAbort { location, code } => {
            let place = Message::new(&proto::LOCATION).put("package", location.package.to_string()).put("module", location.module.as_str());
            let place = place.put("function", u64::from(location.function)).put("instruction", u64::from(location.instruction));
            let place = place.maybe("function_name", location.function_name.as_ref().map(|name| name.as_str()));
            content.put("abort", Message::new(&proto::ABORT).put("abort_code", *code).put("location", place))
        }
        _ => content,
    };
    message.put("success", false).put("error", content)
}

fn changed(change: &ChangedObject, executed: &Executed, lamport: u64) -> Message {
    let message = Message::new(&proto::CHANGED).put("object_id", change.object_id.to_string());
    let message = match &change.input_state {
        ObjectIn::Exist { version, digest, owner: of } => {
            let message = message.put("input_state", 2_u64).put("input_version", *version);
            message.put("input_digest", digest.to_base58()).put("input_owner", owner(of))
        }
        _ => message.put("input_state", 1_u64),
    };
    let message = match &change.output_state {
        ObjectOut::ObjectWrite { digest, owner: of } => {
            let message = message.put("output_state", 2_u64).put("output_version", lamport);
            message.put("output_digest", digest.to_base58()).put("output_owner", owner(of))
        }
        ObjectOut::PackageWrite { version, digest } => {
            let message = message.put("output_state", 3_u64).put("output_version", *version).put("output_digest", digest.to_base58());
            message.put("output_owner", owner(&Owner::Immutable))
        }
        _ => message.put("output_state", 1_u64),
    };
    let operation = match change.id_operation {
        IdOperation::Created => 2_u64,
        IdOperation::Deleted => 3,
        _ => 1,
    };
    let kind = executed.types.get(&change.object_id).map_or("package", String::as_str);
    message.put("id_operation", operation).put("object_type", kind)
}

fn effects(executed: &Executed) -> Message {
    let all = &executed.effects;
    let message = Message::new(&proto::EFFECTS).put("bcs", bcs("TransactionEffects", all)).put("digest", all.digest().to_base58());
    let message = message.put("version", 2_u64).put("status", status(all.status())).put("epoch", all.epoch());
    let message = message.put("gas_used", gas(all.gas_summary())).put("transaction_digest", all.transaction_digest().to_base58());
    let TransactionEffects::V2(effects) = all else { return message };
    let lamport = effects.lamport_version;
    let gas_object = effects.gas_object_index.and_then(|index| effects.changed_objects.get(usize::try_from(index).ok()?));
    let message = message.maybe("gas_object", gas_object.map(|change| changed(change, executed, lamport)));
    let message = message.maybe("events_digest", effects.events_digest.map(|digest| digest.to_base58()));
    let message = message.all("dependencies", effects.dependencies.iter().map(|digest| digest.to_base58()));
    let message = message.put("lamport_version", lamport);
    let message = message.all("changed_objects", effects.changed_objects.iter().map(|change| changed(change, executed, lamport)));
    let unchanged = effects.unchanged_consensus_objects.iter().map(|object| {
        let message = Message::new(&proto::UNCHANGED).put("object_id", object.object_id.to_string());
        match &object.kind {
            UnchangedConsensusKind::ReadOnlyRoot { version, digest } => {
                message.put("kind", 1_u64).put("version", *version).put("digest", digest.to_base58())
            }
            _ => message.put("kind", 0_u64),
        }
    });
    message.all("unchanged_consensus_objects", unchanged)
}

fn event(event: &Event) -> Message {
    let kind = event.type_.to_string();
    let message = Message::new(&proto::EVENT).put("package_id", event.package_id.to_string()).put("module", event.module.as_str());
    let message = message.put("sender", event.sender.to_string()).put("contents", named(&kind, event.contents.clone()));
    message.put("event_type", kind)
}

pub(super) fn executed(executed: &Executed) -> Message {
    let message = Message::new(&proto::EXECUTED).put("digest", executed.digest.to_base58());
    let message = message.put("transaction", transaction(&executed.signed.transaction));
    let message = message.all("signatures", executed.signed.signatures.iter().map(signature)).put("effects", effects(executed));
    let events = Message::new(&proto::EVENTS).put("bcs", bcs("TransactionEvents", &executed.events));
    let events = events.put("digest", executed.events.digest().to_base58()).all("events", executed.events.0.iter().map(event));
    let message = if executed.events.0.is_empty() { message } else { message.put("events", events) };
    let message = match executed.checkpoint {
        Some((height, millis)) => message.put("checkpoint", height).put("timestamp", time(millis)),
        None => message,
    };
    let changes = executed.balances.iter().map(|change| {
        let message = Message::new(&proto::BALANCE_CHANGE).put("address", change.address.to_string());
        message.put("coin_type", change.coin_type.to_string()).put("amount", change.amount.to_string())
    });
    message.all("balance_changes", changes)
}

pub(super) fn checkpoint<'l>(checkpoint: &Checkpoint, transactions: impl Iterator<Item = &'l Executed>) -> Message {
    let of = &checkpoint.summary;
    let summary = Message::new(&proto::SUMMARY).put("bcs", bcs("CheckpointSummary", of)).put("digest", checkpoint.digest.to_base58());
    let summary = summary.put("epoch", of.epoch).put("sequence_number", of.sequence_number);
    let summary = summary.put("total_network_transactions", of.network_total_transactions);
    let summary = summary.put("content_digest", of.content_digest.to_base58());
    let summary = summary.maybe("previous_digest", of.previous_digest.map(|digest| digest.to_base58()));
    let summary = summary.put("epoch_rolling_gas_cost_summary", gas(&of.epoch_rolling_gas_cost_summary));
    let message = Message::new(&proto::CHECKPOINT).put("sequence_number", of.sequence_number).put("digest", checkpoint.digest.to_base58());
    message.put("summary", summary.put("timestamp", time(of.timestamp_ms))).all("transactions", transactions.map(executed))
}

/// The epoch at a time. Those before and after it are not known.
pub(super) fn epoch_at(millis: u64) -> Message {
    let (number, start) = epoch(millis);
    let parameters = Message::new(&proto::PARAMETERS).put("epoch_duration_ms", 86_400_000_u64);
    let state = Message::new(&proto::SYSTEM_STATE).put("version", 2_u64).put("epoch", number).put("protocol_version", PROTOCOL);
    let state = state.put("parameters", parameters).put("reference_gas_price", GAS_PRICE).put("safe_mode", false);
    let message = Message::new(&proto::EPOCH).put("epoch", number).put("start", time(start)).put("reference_gas_price", GAS_PRICE);
    let message = message.put("system_state", state.put("epoch_start_timestamp_ms", start));
    message.put("protocol_config", Message::new(&proto::PROTOCOL).put("protocol_version", PROTOCOL))
}

/// A dynamic field, from the object that holds it. All keys are `vector<u8>` of 32 bytes.
pub(super) fn field(parent: Address, holder: &Object) -> Option<Message> {
    let data = holder.as_struct()?;
    let [name, value] = data.object_type().type_params() else { return None };
    let (key, content) = data.contents().get(32..)?.split_at_checked(33)?;
    let message = Message::new(&proto::FIELD).put("kind", 1_u64).put("parent", parent.to_string());
    let message = message.put("field_id", holder.object_id().to_string()).put("field_object", object(holder));
    let message = message.put("name", named(&name.to_string(), key.to_vec()));
    Some(message.put("value", named(&value.to_string(), content.to_vec())).put("value_type", value.to_string()))
}
