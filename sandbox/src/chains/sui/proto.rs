//! Protobuf messages as trees whose fields are found by name, because read masks name them.
//!
//! The tables follow `sui.rpc.v2` of <https://github.com/MystenLabs/sui-apis>. Fields that no answer here has and no request needs are
//! left out.

use super::grpc::Status;

/// The most fields that a request may have, at all depths.
const MAX_FIELDS: usize = 65_536;

/// The fields of a message: name, number, and the message inside.
#[derive(Debug)]
pub(super) struct Schema(&'static [(&'static str, u32, Option<&'static Self>)]);

macro_rules! messages {
    ($($name:ident { $($field:ident $number:literal $(: $of:ident)?,)* })*) => {
        $(pub(super) static $name: Schema = Schema(&[$((stringify!($field), $number, messages!(@ $($of)?)),)*]);)*
    };
    (@ $of:ident) => { Some(&$of) };
    (@) => { None };
}

messages! {
    MASK { paths 1, }
    TIMESTAMP { seconds 1, nanos 2, }
    BCS { name 1, value 2, }
    STATUS { code 1, message 2, }
    OWNER { kind 1, address 2, version 3, }
    MODULE { name 1, contents 2, }
    TYPE_ORIGIN { module_name 1, datatype_name 2, package_id 3, }
    LINKAGE { original_id 1, upgraded_id 2, upgraded_version 3, }
    PACKAGE { storage_id 1, original_id 2, version 3, modules 4: MODULE, type_origins 5: TYPE_ORIGIN, linkage 6: LINKAGE, }
    OBJECT {
        bcs 1: BCS, object_id 2, version 3, digest 4, owner 5: OWNER, object_type 6, has_public_transfer 7, contents 8: BCS,
        package 9: PACKAGE, previous_transaction 10, storage_rebate 11, json 100, balance 101, display 102,
    }
    REFERENCE { object_id 1, version 2, digest 3, }

    INPUT { kind 1, pure 2, object_id 3, version 4, digest 5, mutable 6, mutability 7, funds_withdrawal 8, literal 1000, }
    ARGUMENT { kind 1, input 2, result 3, subresult 4, }
    MOVE_CALL { package 1, module 2, function 3, type_arguments 4, arguments 5: ARGUMENT, }
    TRANSFER_OBJECTS { objects 1: ARGUMENT, address 2: ARGUMENT, }
    SPLIT_COINS { coin 1: ARGUMENT, amounts 2: ARGUMENT, }
    MERGE_COINS { coin 1: ARGUMENT, coins_to_merge 2: ARGUMENT, }
    PUBLISH { modules 1, dependencies 2, }
    COMMAND {
        move_call 1: MOVE_CALL, transfer_objects 2: TRANSFER_OBJECTS, split_coins 3: SPLIT_COINS, merge_coins 4: MERGE_COINS,
        publish 5: PUBLISH, make_move_vector 6, upgrade 7,
    }
    PROGRAMMABLE { inputs 1: INPUT, commands 2: COMMAND, }
    KIND { kind 1, programmable_transaction 2: PROGRAMMABLE, }
    GAS_PAYMENT { objects 1: REFERENCE, owner 2, price 3, budget 4, }
    EXPIRATION { kind 1, epoch 2, min_epoch 3, min_timestamp 4: TIMESTAMP, max_timestamp 5: TIMESTAMP, chain 6, nonce 7, }
    TRANSACTION {
        bcs 1: BCS, digest 2, version 3, kind 4: KIND, sender 5, gas_payment 6: GAS_PAYMENT, expiration 7: EXPIRATION,
    }
    SIMPLE { scheme 1, signature 2, public_key 3, }
    SIGNATURE { bcs 1: BCS, scheme 2, simple 3: SIMPLE, }

    LOCATION { package 1, module 2, function 3, instruction 4, function_name 5, }
    ABORT { abort_code 1, location 2: LOCATION, }
    ERROR { description 1, command 2, kind 3, abort 4: ABORT, }
    EXECUTION { success 1, error 2: ERROR, }
    GAS_USED { computation_cost 1, storage_cost 2, storage_rebate 3, non_refundable_storage_fee 4, }
    CHANGED {
        object_id 1, input_state 2, input_version 3, input_digest 4, input_owner 5: OWNER, output_state 6, output_version 7,
        output_digest 8, output_owner 9: OWNER, id_operation 10, object_type 11,
    }
    UNCHANGED { kind 1, object_id 2, version 3, digest 4, object_type 5, }
    EFFECTS {
        bcs 1: BCS, digest 2, version 3, status 4: EXECUTION, epoch 5, gas_used 6: GAS_USED, transaction_digest 7, gas_object 8: CHANGED,
        events_digest 9, dependencies 10, lamport_version 11, changed_objects 12: CHANGED, unchanged_consensus_objects 13: UNCHANGED,
        auxiliary_data_digest 14, unchanged_loaded_runtime_objects 15: REFERENCE,
    }
    EVENT {
        package_id 1, module 2, sender 3, event_type 4, contents 5: BCS, json 6, checkpoint 7, transaction_digest 8, transaction_index 9,
        event_index 10,
    }
    EVENTS { bcs 1: BCS, digest 2, events 3: EVENT, }
    BALANCE_CHANGE { address 1, coin_type 2, amount 3, }
    OBJECT_SET { objects 1: OBJECT, }
    EXECUTED {
        digest 1, transaction 2: TRANSACTION, signatures 3: SIGNATURE, effects 4: EFFECTS, events 5: EVENTS, checkpoint 6,
        timestamp 7: TIMESTAMP, balance_changes 8: BALANCE_CHANGE, objects 9: OBJECT_SET, transaction_index 10,
    }
    SUMMARY {
        bcs 1: BCS, digest 2, epoch 3, sequence_number 4, total_network_transactions 5, content_digest 6, previous_digest 7,
        epoch_rolling_gas_cost_summary 8: GAS_USED, timestamp 9: TIMESTAMP, commitments 10, end_of_epoch_data 11,
        version_specific_data 12,
    }
    CHECKPOINT {
        sequence_number 1, digest 2, summary 3: SUMMARY, signature 4, contents 5, transactions 6: EXECUTED, objects 7: OBJECT_SET,
    }
    PARAMETERS { epoch_duration_ms 1, }
    SYSTEM_STATE {
        version 1, epoch 2, protocol_version 3, validators 4, storage_fund 5, parameters 6: PARAMETERS, reference_gas_price 7,
        stake_subsidy 9, safe_mode 10, safe_mode_storage_rewards 11, safe_mode_computation_rewards 12, safe_mode_storage_rebates 13,
        safe_mode_non_refundable_storage_fee 14, epoch_start_timestamp_ms 15,
    }
    PROTOCOL { protocol_version 1, feature_flags 2, attributes 3, }
    EPOCH {
        epoch 1, committee 2, system_state 3: SYSTEM_STATE, first_checkpoint 4, last_checkpoint 5, start 6: TIMESTAMP, end 7: TIMESTAMP,
        reference_gas_price 8, protocol_config 9: PROTOCOL,
    }
    FIELD {
        kind 1, parent 2, field_id 3, field_object 4: OBJECT, name 5: BCS, value 6: BCS, value_type 7, child_id 8, child_object 9: OBJECT,
    }
    BALANCE { coin_type 1, balance 3, address_balance 4, coin_balance 5, }

    EMPTY { }
    SERVICE_INFO {
        chain_id 1, chain 2, epoch 3, checkpoint_height 4, timestamp 5: TIMESTAMP, lowest_available_checkpoint 6,
        lowest_available_checkpoint_objects 7, server 8,
    }
    GET_OBJECT { object_id 1, version 2, read_mask 3: MASK, }
    GOT_OBJECT { object 1: OBJECT, error 2: STATUS, }
    BATCH_GET_OBJECTS { requests 1: GET_OBJECT, read_mask 2: MASK, }
    BATCH_GOT_OBJECTS { objects 1: GOT_OBJECT, }
    GET_TRANSACTION { digest 1, read_mask 2: MASK, }
    GOT_TRANSACTION { transaction 1: EXECUTED, }
    GET_CHECKPOINT { sequence_number 1, digest 2, read_mask 3: MASK, }
    GOT_CHECKPOINT { checkpoint 1: CHECKPOINT, }
    GET_EPOCH { epoch 1, read_mask 2: MASK, }
    GOT_EPOCH { epoch 1: EPOCH, }
    LIST { owner 1, page_size 2, page_token 3, read_mask 4: MASK, object_type 5, }
    OBJECTS_PAGE { objects 1: OBJECT, next_page_token 2, }
    FIELDS_PAGE { dynamic_fields 1: FIELD, next_page_token 2, }
    GET_BALANCE { owner 1, coin_type 2, }
    GOT_BALANCE { balance 1: BALANCE, }
    EXECUTE { transaction 1: TRANSACTION, signatures 2: SIGNATURE, read_mask 3: MASK, }
    SIMULATE { transaction 1: TRANSACTION, read_mask 2: MASK, checks 3, do_gas_selection 4, }
    SIMULATED { transaction 1: EXECUTED, command_outputs 2, suggested_gas_price 3, }
    LIST_VERSIONS { package_id 1, page_size 2, page_token 3, }
    VERSION { package_id 1, version 2, }
    VERSIONS_PAGE { versions 1: VERSION, next_page_token 2, }
}

impl Schema {
    fn by_name(&self, name: &str) -> Option<(u32, Option<&'static Self>)> {
        self.0.iter().find(|field| field.0 == name).map(|field| (field.1, field.2))
    }

    /// Whether a path of a read mask names a field.
    fn has(&self, path: &str) -> bool {
        let (name, rest) = path.split_once('.').map_or((path, None), |(name, rest)| (name, Some(rest)));
        match (self.by_name(name), rest) {
            (Some(_), None) => true,
            (Some((_, Some(inner))), Some(rest)) => inner.has(rest),
            _ => false,
        }
    }
}

/// A value of a field.
#[derive(Debug, Clone)]
pub(super) enum Value {
    Number(u64),
    Bytes(Vec<u8>),
    Message(Message),
}

macro_rules! from {
    ($($of:ty: $value:ident => $to:expr;)*) => {
        $(impl From<$of> for Value {
            fn from($value: $of) -> Self {
                $to
            }
        })*
    };
}

from! {
    u64: value => Self::Number(value);
    bool: value => Self::Number(u64::from(value));
    &str: value => Self::Bytes(value.as_bytes().to_vec());
    String: value => Self::Bytes(value.into_bytes());
    Vec<u8>: value => Self::Bytes(value);
    Message: value => Self::Message(value);
}

/// A message, with its fields by number.
#[derive(Debug, Clone)]
pub(super) struct Message {
    schema: &'static Schema,
    fields: Vec<(u32, Value)>,
}

impl Message {
    pub(super) const fn new(schema: &'static Schema) -> Self {
        Self { schema, fields: Vec::new() }
    }

    /// Adds a field, which the schema has.
    pub(super) fn put(mut self, name: &str, value: impl Into<Value>) -> Self {
        let found = self.schema.by_name(name);
        debug_assert!(found.is_some(), "{name}");
        self.fields.extend(found.map(|(number, _)| (number, value.into())));
        self
    }

    pub(super) fn maybe(self, name: &str, value: Option<impl Into<Value>>) -> Self {
        value.into_iter().fold(self, |message, value| message.put(name, value))
    }

    pub(super) fn all(self, name: &str, values: impl IntoIterator<Item = impl Into<Value>>) -> Self {
        values.into_iter().fold(self, |message, value| message.put(name, value))
    }

    fn values(&self, name: &str) -> impl DoubleEndedIterator<Item = &Value> {
        let number = self.schema.by_name(name).map(|(number, _)| number);
        self.fields.iter().filter(move |field| Some(field.0) == number).map(|(_, value)| value)
    }

    pub(super) fn number(&self, name: &str) -> Option<u64> {
        self.values(name).rev().find_map(|value| if let Value::Number(number) = value { Some(*number) } else { None })
    }

    pub(super) fn bytes(&self, name: &str) -> Option<&[u8]> {
        self.values(name).rev().find_map(|value| if let Value::Bytes(bytes) = value { Some(bytes.as_slice()) } else { None })
    }

    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.bytes(name).and_then(|bytes| std::str::from_utf8(bytes).ok())
    }

    pub(super) fn texts(&self, name: &str) -> Vec<String> {
        let text = |value: &Value| if let Value::Bytes(bytes) = value { String::from_utf8(bytes.clone()).ok() } else { None };
        self.values(name).filter_map(text).collect()
    }

    pub(super) fn message(&self, name: &str) -> Option<&Self> {
        self.messages(name).last()
    }

    pub(super) fn messages(&self, name: &str) -> impl Iterator<Item = &Self> {
        self.values(name).filter_map(|value| if let Value::Message(message) = value { Some(message) } else { None })
    }

    /// Changes the numbers at a place, for example `/objects/version`.
    pub(super) fn change(&mut self, place: &str, change: &mut dyn FnMut(u64) -> u64) {
        let (name, rest) =
            place.strip_prefix('/').map_or((place, ""), |place| place.find('/').map_or((place, ""), |end| place.split_at(end)));
        let number = self.schema.by_name(name).map(|(number, _)| number);
        for (_, value) in self.fields.iter_mut().filter(|field| Some(field.0) == number) {
            match value {
                Value::Number(number) if rest.is_empty() => *number = change(*number),
                Value::Message(inner) if !rest.is_empty() => inner.change(rest, change),
                _ => {}
            }
        }
    }

    /// Reads a message; `None` if it is malformed.
    pub(super) fn decode(schema: &'static Schema, bytes: &[u8]) -> Option<Self> {
        Self::read(schema, bytes, &mut 0)
    }

    fn read(schema: &'static Schema, mut rest: &[u8], count: &mut usize) -> Option<Self> {
        let mut message = Self::new(schema);
        while !rest.is_empty() {
            *count = count.checked_add(1).filter(|count| *count <= MAX_FIELDS)?;
            let tag = varint(&mut rest)?;
            let number = u32::try_from(tag >> 3).ok()?;
            let value = match tag & 7 {
                0 => Value::Number(varint(&mut rest)?),
                1 => Value::Bytes(split(&mut rest, 8)?.to_vec()),
                2 => {
                    let length = usize::try_from(varint(&mut rest)?).ok()?;
                    let content = split(&mut rest, length)?;
                    match schema.0.iter().find(|field| field.1 == number) {
                        Some((_, _, Some(inner))) => Value::Message(Self::read(inner, content, count)?),
                        Some(_) => Value::Bytes(content.to_vec()),
                        None => continue,
                    }
                }
                5 => Value::Bytes(split(&mut rest, 4)?.to_vec()),
                _ => return None,
            };
            message.fields.push((number, value));
        }
        Some(message)
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (number, value) in &self.fields {
            let tag = u64::from(*number) << 3;
            let content = match value {
                Value::Number(number) => {
                    push(&mut bytes, tag);
                    push(&mut bytes, *number);
                    continue;
                }
                Value::Bytes(content) => content.clone(),
                Value::Message(message) => message.encode(),
            };
            push(&mut bytes, tag | 2);
            push(&mut bytes, u64::try_from(content.len()).unwrap_or(u64::MAX));
            bytes.extend(content);
        }
        bytes
    }

    /// The message with the fields that a request's mask names, or those that a node takes if there is none.
    pub(super) fn masked(&self, request: &Self, default: &str) -> Result<Self, Status> {
        let paths = match request.message("read_mask") {
            Some(mask) => mask.texts("paths").iter().flat_map(|path| path.split(',')).map(str::to_owned).collect(),
            None => default.split(',').map(str::to_owned).collect::<Vec<_>>(),
        };
        if let Some(wrong) = paths.iter().find(|path| *path != "*" && !self.schema.has(path)) {
            return Err(Status::invalid(format!("invalid read_mask path: {wrong}")));
        }
        if paths.iter().any(|path| path == "*") {
            return Ok(self.clone());
        }
        Ok(self.cut(&paths.iter().map(String::as_str).collect::<Vec<_>>()))
    }

    fn cut(&self, paths: &[&str]) -> Self {
        let mut message = Self::new(self.schema);
        for (number, value) in &self.fields {
            let Some((name, ..)) = self.schema.0.iter().find(|field| field.1 == *number) else { continue };
            let rest: Vec<_> = paths.iter().filter_map(|path| path.strip_prefix(name)?.strip_prefix('.')).collect();
            match value {
                _ if paths.contains(name) => message.fields.push((*number, value.clone())),
                Value::Message(inner) if !rest.is_empty() => message.fields.push((*number, Value::Message(inner.cut(&rest)))),
                _ => {}
            }
        }
        message
    }
}

fn varint(rest: &mut &[u8]) -> Option<u64> {
    let mut value = 0_u64;
    for shift in (0..64).step_by(7) {
        let (first, after) = rest.split_first()?;
        *rest = after;
        value |= u64::from(first & 0x7f).checked_shl(shift)?;
        if first & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

fn split<'b>(rest: &mut &'b [u8], length: usize) -> Option<&'b [u8]> {
    let (content, after) = rest.split_at_checked(length)?;
    *rest = after;
    Some(content)
}

fn push(bytes: &mut Vec<u8>, mut value: u64) {
    loop {
        let [low, ..] = value.to_le_bytes();
        value >>= 7;
        if value == 0 {
            bytes.push(low & 0x7f);
            return;
        }
        bytes.push(low | 0x80);
    }
}
