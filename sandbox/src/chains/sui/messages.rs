//! Converts the ledger's contents to messages, including parts that the SDK's own conversions omit.

use std::collections::BTreeMap;

use sui_rpc::field::FieldMaskTree;
use sui_rpc::merge::Merge as _;
use sui_rpc::proto::sui::rpc::v2::dynamic_field::DynamicFieldKind;
use sui_rpc::proto::sui::rpc::v2::{
    self as proto, Bcs, DynamicField, Epoch, ExecutedTransaction, ProtocolConfig, SystemParameters, SystemState,
};
use sui_rpc::proto::timestamp_ms_to_proto;
use sui_sdk_types::{
    Address, BalanceChange, ExecutionError, ExecutionStatus, Object, ObjectData, SignedTransaction, StructTag, TransactionEffects,
    TransactionEvents, TypeTag,
};

use super::ledger::{DAY, GAS_PRICE, balance, epoch};

/// The protocol version in answers.
const PROTOCOL: u64 = 100;

pub(super) fn object(object: &Object) -> proto::Object {
    let mut message = proto::Object::from(object.clone());
    message.balance = balance(object);
    if let (ObjectData::Package(of), Some(package)) = (object.data(), &mut message.package) {
        // This is the first version. Packages are never upgraded here.
        package.set_storage_id(of.id.to_string());
        package.set_original_id(of.id.to_string());
        package.set_version(of.version);
    }
    message
}

/// Returns why a transaction failed, in a node's words.
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

/// Returns a transaction with its effects, its balance changes in SUI, and the types of changed objects.
pub(super) fn executed(
    signed: &SignedTransaction,
    effects: &TransactionEffects,
    events: TransactionEvents,
    balances: &BTreeMap<Address, i128>,
    types: &BTreeMap<Address, String>,
) -> ExecutedTransaction {
    let mut message = ExecutedTransaction::default().with_digest(effects.transaction_digest().to_base58());
    message.set_transaction(signed.transaction.clone());
    message.signatures = signed.signatures.iter().cloned().map(Into::into).collect();
    message.events = (!events.0.is_empty()).then(|| events.into());
    let balances = balances.iter().filter(|(_, amount)| **amount != 0);
    let change = |(address, amount): (&Address, &i128)| {
        BalanceChange { address: *address, coin_type: StructTag::sui().into(), amount: *amount }.into()
    };
    message.balance_changes = balances.map(change).collect();
    let mut shown = proto::TransactionEffects::from(effects.clone());
    for change in shown.changed_objects.iter_mut().chain(&mut shown.gas_object) {
        let kind = change.object_id().parse().ok().and_then(|id: Address| types.get(&id));
        change.set_object_type(kind.map_or("package", String::as_str));
    }
    let failure = shown.status.as_mut().and_then(|status| status.error.as_mut());
    if let (Some(shown), ExecutionStatus::Failure { error, command }) = (failure, effects.status()) {
        shown.set_description(reason(error, *command));
    }
    message.with_effects(shown)
}

/// Returns the epoch at a time. Earlier and later epochs are unknown.
pub(super) fn epoch_at(millis: u64) -> Epoch {
    let (number, start) = epoch(millis);
    let mut parameters = SystemParameters::default();
    parameters.set_epoch_duration_ms(DAY);
    let state = SystemState::default().with_version(2).with_epoch(number).with_protocol_version(PROTOCOL).with_parameters(parameters);
    let state = state.with_reference_gas_price(GAS_PRICE).with_safe_mode(false).with_epoch_start_timestamp_ms(start);
    let message = Epoch::default().with_epoch(number).with_start(timestamp_ms_to_proto(start)).with_reference_gas_price(GAS_PRICE);
    message.with_system_state(state).with_protocol_config(ProtocolConfig::default().with_protocol_version(PROTOCOL))
}

/// Returns a dynamic field, given the object that holds it. The object is included if a mask selects it. All keys are
/// `vector<u8>` of 32 bytes.
pub(super) fn field(parent: Address, holder: &Object, mask: &FieldMaskTree) -> Option<DynamicField> {
    let data = holder.as_struct()?;
    let [name, value] = data.object_type().type_params() else { return None };
    let (key, content) = data.contents().get(32..)?.split_at_checked(33)?;
    let named = |kind: &TypeTag, value: &[u8]| Bcs::default().with_name(kind.to_string()).with_value(value.to_vec());
    let message = DynamicField::default().with_kind(DynamicFieldKind::Field).with_parent(parent.to_string());
    let message = message.with_field_id(holder.object_id().to_string()).with_value_type(value.to_string());
    let mut message = message.with_name(named(name, key)).with_value(named(value, content));
    message.field_object = mask.subtree("field_object").map(|mask| proto::Object::merge_from(&object(holder), &mask));
    Some(message)
}
