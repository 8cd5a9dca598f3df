//! The methods and the fields of messages that are used here.
//!
//! They come from the package `sui.rpc.v2` of <https://github.com/MystenLabs/sui-apis>, which the crate sui-rpc contains in
//! `vendored/proto`. Other fields are ignored when they arrive.

/// Declares the fields of a message as a module of constants, with their location in refusals.
macro_rules! fields {
    ($($(#[$doc:meta])* $message:ident $at:literal { $($name:ident $number:literal $field:literal,)* })*) => {
        $($(#[$doc])* pub(super) mod $message {
            use crate::reader::proto::Field;

            $(pub(in crate::reader) const $name: Field = Field($number, concat!($at, $field));)*
        })*
    };
}

/// The paths of methods.
pub(super) mod method {
    macro_rules! methods {
        ($($name:ident $path:literal;)*) => {
            $(pub(in crate::reader) const $name: &str = concat!("/sui.rpc.v2.", $path);)*
        };
    }

    methods! {
        GET_SERVICE_INFO "LedgerService/GetServiceInfo";
        GET_CHECKPOINT "LedgerService/GetCheckpoint";
        BATCH_GET_OBJECTS "LedgerService/BatchGetObjects";
        GET_TRANSACTION "LedgerService/GetTransaction";
    }
}

fields! {
    /// `GetServiceInfoResponse`.
    service "" {
        CHAIN_ID 1 "/chain_id",
    }
    /// `GetCheckpointResponse`.
    found_checkpoint "" {
        CHECKPOINT 1 "/checkpoint",
    }
    checkpoint "/checkpoint" {
        SEQUENCE_NUMBER 1 "/sequence_number",
        DIGEST 2 "/digest",
        SUMMARY 3 "/summary",
    }
    summary "/checkpoint/summary" {
        TIMESTAMP 9 "/timestamp",
    }
    /// `google.protobuf.Timestamp`.
    timestamp "/checkpoint/summary/timestamp" {
        SECONDS 1 "/seconds",
        NANOS 2 "/nanos",
    }
    /// `BatchGetObjectsResponse`.
    found_objects "" {
        OBJECTS 1 "/objects",
    }
    /// `GetObjectResult`.
    result "/objects" {
        OBJECT 1 "/object",
        ERROR 2 "/error",
    }
    /// `google.rpc.Status`.
    status "/objects/error" {
        CODE 1 "/code",
        MESSAGE 2 "/message",
    }
    object "/object" {
        OBJECT_ID 2 "/object_id",
        VERSION 3 "/version",
        DIGEST 4 "/digest",
        OBJECT_TYPE 6 "/object_type",
        CONTENTS 8 "/contents",
        PACKAGE 9 "/package",
        PREVIOUS_TRANSACTION 10 "/previous_transaction",
    }
    package "/object/package" {
        TYPE_ORIGINS 5 "/type_origins",
    }
    type_origin "/object/package/type_origins" {
        MODULE_NAME 1 "/module_name",
        DATATYPE_NAME 2 "/datatype_name",
        PACKAGE_ID 3 "/package_id",
    }
    bcs "" {
        VALUE 2 "/value",
    }
    /// `GetTransactionResponse`, and the responses to a simulated and to an executed transaction.
    found_transaction "" {
        TRANSACTION 1 "/transaction",
    }
    transaction "/transaction" {
        DIGEST 1 "/digest",
        EVENTS 5 "/events",
        CHECKPOINT 6 "/checkpoint",
    }
    events "/transaction/events" {
        EVENTS 3 "/events",
    }
    event "/transaction/events" {
        EVENT_TYPE 4 "/event_type",
        CONTENTS 5 "/contents",
    }
}
