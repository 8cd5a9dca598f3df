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
    pub(in crate::reader) const GET_SERVICE_INFO: &str = "/sui.rpc.v2.LedgerService/GetServiceInfo";
    pub(in crate::reader) const GET_CHECKPOINT: &str = "/sui.rpc.v2.LedgerService/GetCheckpoint";
    pub(in crate::reader) const BATCH_GET_OBJECTS: &str = "/sui.rpc.v2.LedgerService/BatchGetObjects";
    pub(in crate::reader) const GET_TRANSACTION: &str = "/sui.rpc.v2.LedgerService/GetTransaction";
    pub(in crate::reader) const GET_EPOCH: &str = "/sui.rpc.v2.LedgerService/GetEpoch";
    pub(in crate::reader) const LIST_OWNED_OBJECTS: &str = "/sui.rpc.v2.StateService/ListOwnedObjects";
    pub(in crate::reader) const GET_BALANCE: &str = "/sui.rpc.v2.StateService/GetBalance";
    pub(in crate::reader) const GET_COIN_INFO: &str = "/sui.rpc.v2.StateService/GetCoinInfo";
    pub(in crate::reader) const LIST_PACKAGE_VERSIONS: &str = "/sui.rpc.v2.MovePackageService/ListPackageVersions";
    pub(in crate::reader) const SIMULATE_TRANSACTION: &str = "/sui.rpc.v2.TransactionExecutionService/SimulateTransaction";
    pub(in crate::reader) const EXECUTE_TRANSACTION: &str = "/sui.rpc.v2.TransactionExecutionService/ExecuteTransaction";
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
        OWNER 5 "/owner",
        OBJECT_TYPE 6 "/object_type",
        CONTENTS 8 "/contents",
        PACKAGE 9 "/package",
        PREVIOUS_TRANSACTION 10 "/previous_transaction",
        BALANCE 101 "/balance",
    }
    owner "/object/owner" {
        KIND 1 "/kind",
        ADDRESS 2 "/address",
        VERSION 3 "/version",
    }
    package "/object/package" {
        ORIGINAL_ID 2 "/original_id",
        VERSION 3 "/version",
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
    /// `SimulateTransactionResponse`.
    found_simulation "" {
        TRANSACTION 1 "/transaction",
        COMMAND_OUTPUTS 2 "/command_outputs",
    }
    /// `CommandResult`.
    outputs "/command_outputs" {
        RETURN_VALUES 1 "/return_values",
    }
    /// `CommandOutput`.
    output "/command_outputs/return_values" {
        VALUE 2 "/value",
    }
    transaction "/transaction" {
        DIGEST 1 "/digest",
        TRANSACTION 2 "/transaction",
        SIGNATURES 3 "/signatures",
        EFFECTS 4 "/effects",
        EVENTS 5 "/events",
        CHECKPOINT 6 "/checkpoint",
        BALANCE_CHANGES 8 "/balance_changes",
    }
    /// `Transaction` and `UserSignature`.
    encoded "/transaction" {
        BCS 1 "/bcs",
    }
    effects "/transaction/effects" {
        STATUS 4 "/status",
        GAS_USED 6 "/gas_used",
        CHANGED_OBJECTS 12 "/changed_objects",
    }
    execution "/transaction/effects/status" {
        SUCCESS 1 "/success",
        ERROR 2 "/error",
    }
    execution_error "/transaction/effects/status/error" {
        DESCRIPTION 1 "/description",
        KIND 3 "/kind",
        ABORT 4 "/abort",
    }
    abort "/transaction/effects/status/error/abort" {
        CODE 1 "/abort_code",
        LOCATION 2 "/location",
    }
    location "/transaction/effects/status/error/abort/location" {
        MODULE 2 "/module",
    }
    gas_used "/transaction/effects/gas_used" {
        COMPUTATION_COST 1 "/computation_cost",
        STORAGE_COST 2 "/storage_cost",
        STORAGE_REBATE 3 "/storage_rebate",
    }
    changed_object "/transaction/effects/changed_objects" {
        OBJECT_ID 1 "/object_id",
        INPUT_VERSION 3 "/input_version",
        INPUT_DIGEST 4 "/input_digest",
        OBJECT_TYPE 11 "/object_type",
    }
    balance_change "/transaction/balance_changes" {
        ADDRESS 1 "/address",
        COIN_TYPE 2 "/coin_type",
        AMOUNT 3 "/amount",
    }
    events "/transaction/events" {
        EVENTS 3 "/events",
    }
    event "/transaction/events" {
        EVENT_TYPE 4 "/event_type",
        CONTENTS 5 "/contents",
    }
    /// `GetEpochResponse`.
    found_epoch "" {
        EPOCH 1 "/epoch",
    }
    epoch "/epoch" {
        EPOCH 1 "/epoch",
        REFERENCE_GAS_PRICE 8 "/reference_gas_price",
    }
    /// `ListOwnedObjectsResponse`.
    page "" {
        OBJECTS 1 "/objects",
        NEXT_PAGE_TOKEN 2 "/next_page_token",
    }
    /// `GetBalanceResponse`.
    found_balance "" {
        BALANCE 1 "/balance",
    }
    balance "/balance" {
        BALANCE 3 "/balance",
        ADDRESS_BALANCE 4 "/address_balance",
        COIN_BALANCE 5 "/coin_balance",
    }
    /// `GetCoinInfoResponse`.
    found_coin "" {
        METADATA 2 "/metadata",
    }
    metadata "/metadata" {
        DECIMALS 2 "/decimals",
    }
    /// `ListPackageVersionsResponse`.
    versions "" {
        VERSIONS 1 "/versions",
    }
    version "/versions" {
        VERSION 2 "/version",
    }
}
