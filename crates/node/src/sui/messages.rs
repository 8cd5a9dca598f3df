//! The subset of Sui's protobuf messages that is used here.
//!
//! Tags and types come from the package `sui.rpc.v2` of <https://github.com/MystenLabs/sui-apis>, which the crate sui-rpc contains in
//! `vendored/proto`. Fields that are not listed here are ignored when they arrive. That package marks every singular field as optional.

use prost::Message;

impl FieldMask {
    /// Creates a mask of these fields.
    pub(super) fn new(paths: &[&str]) -> Option<Self> {
        Some(Self { paths: paths.iter().map(ToString::to_string).collect() })
    }
}

impl Bcs {
    pub(super) fn new(value: impl Into<Vec<u8>>) -> Option<Self> {
        Some(Self { value: Some(value.into()) })
    }
}

impl Timestamp {
    /// Returns Unix milliseconds; `None` for a time before 1970 or an invalid one.
    pub(super) fn millis(&self) -> Option<u64> {
        let (seconds, nanos) = (u64::try_from(self.seconds).ok()?, u64::try_from(self.nanos).ok()?);
        if nanos >= 1_000_000_000 {
            return None;
        }
        seconds.checked_mul(1_000)?.checked_add(nanos / 1_000_000)
    }
}

/// The requested fields: `google.protobuf.FieldMask`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct FieldMask {
    #[prost(string, repeated, tag = "1")]
    pub(super) paths: Vec<String>,
}

/// A time: `google.protobuf.Timestamp`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Timestamp {
    #[prost(int64, tag = "1")]
    pub(super) seconds: i64,
    #[prost(int32, tag = "2")]
    pub(super) nanos: i32,
}

/// The error of one part of a request: `google.rpc.Status`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Status {
    #[prost(int32, tag = "1")]
    pub(super) code: i32,
    #[prost(string, tag = "2")]
    pub(super) message: String,
}

/// A value in BCS.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Bcs {
    #[prost(bytes = "vec", optional, tag = "2")]
    pub(super) value: Option<Vec<u8>>,
}

// ---- LedgerService

/// The request for the chain that a node serves.
#[derive(Clone, PartialEq, Message)]
pub(super) struct GetServiceInfoRequest {}

/// The chain that a node serves.
#[derive(Clone, PartialEq, Message)]
pub(super) struct GetServiceInfoResponse {
    #[prost(string, optional, tag = "1")]
    pub(super) chain_id: Option<String>,
}

/// The request for the newest checkpoint.
#[derive(Clone, PartialEq, Message)]
pub(super) struct GetCheckpointRequest {
    #[prost(message, optional, tag = "3")]
    pub(super) read_mask: Option<FieldMask>,
}

/// The response with a checkpoint.
#[derive(Clone, PartialEq, Message)]
pub(super) struct GetCheckpointResponse {
    #[prost(message, optional, tag = "1")]
    pub(super) checkpoint: Option<Checkpoint>,
}

/// A checkpoint: Sui's block.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Checkpoint {
    #[prost(uint64, optional, tag = "1")]
    pub(super) sequence_number: Option<u64>,
    #[prost(string, optional, tag = "2")]
    pub(super) digest: Option<String>,
    #[prost(message, optional, tag = "3")]
    pub(super) summary: Option<CheckpointSummary>,
}

/// The time of a checkpoint.
#[derive(Clone, PartialEq, Message)]
pub(super) struct CheckpointSummary {
    #[prost(message, optional, tag = "9")]
    pub(super) timestamp: Option<Timestamp>,
}

/// The request for an object at its newest version.
#[derive(Clone, PartialEq, Message)]
pub(super) struct GetObjectRequest {
    #[prost(string, optional, tag = "1")]
    pub(super) object_id: Option<String>,
}

/// The request for several objects.
#[derive(Clone, PartialEq, Message)]
pub(super) struct BatchGetObjectsRequest {
    #[prost(message, repeated, tag = "1")]
    pub(super) requests: Vec<GetObjectRequest>,
    #[prost(message, optional, tag = "2")]
    pub(super) read_mask: Option<FieldMask>,
}

/// Several objects, in the order of the request.
#[derive(Clone, PartialEq, Message)]
pub(super) struct BatchGetObjectsResponse {
    #[prost(message, repeated, tag = "1")]
    pub(super) objects: Vec<GetObjectResult>,
}

/// Either an object, or the reason why there is none.
#[derive(Clone, PartialEq, Message)]
pub(super) struct GetObjectResult {
    #[prost(message, optional, tag = "1")]
    pub(super) object: Option<Object>,
    #[prost(message, optional, tag = "2")]
    pub(super) error: Option<Status>,
}

/// An object: a Move value or a package.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Object {
    #[prost(string, optional, tag = "2")]
    pub(super) object_id: Option<String>,
    #[prost(uint64, optional, tag = "3")]
    pub(super) version: Option<u64>,
    #[prost(string, optional, tag = "4")]
    pub(super) digest: Option<String>,
    #[prost(message, optional, tag = "5")]
    pub(super) owner: Option<Owner>,
    #[prost(string, optional, tag = "6")]
    pub(super) object_type: Option<String>,
    #[prost(message, optional, tag = "8")]
    pub(super) contents: Option<Bcs>,
    #[prost(message, optional, tag = "9")]
    pub(super) package: Option<Package>,
    #[prost(string, optional, tag = "10")]
    pub(super) previous_transaction: Option<String>,
    #[prost(uint64, optional, tag = "101")]
    pub(super) balance: Option<u64>,
}

/// The owner of an object. The version is the one at which the object was shared.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Owner {
    #[prost(int32, optional, tag = "1")]
    pub(super) kind: Option<i32>,
    #[prost(string, optional, tag = "2")]
    pub(super) address: Option<String>,
    #[prost(uint64, optional, tag = "3")]
    pub(super) version: Option<u64>,
}

/// A package. Its modules are not read.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Package {
    #[prost(string, optional, tag = "2")]
    pub(super) original_id: Option<String>,
    #[prost(uint64, optional, tag = "3")]
    pub(super) version: Option<u64>,
    #[prost(message, repeated, tag = "5")]
    pub(super) type_origins: Vec<TypeOrigin>,
}

/// The package that defined a type.
#[derive(Clone, PartialEq, Message)]
pub(super) struct TypeOrigin {
    #[prost(string, optional, tag = "1")]
    pub(super) module_name: Option<String>,
    #[prost(string, optional, tag = "2")]
    pub(super) datatype_name: Option<String>,
    #[prost(string, optional, tag = "3")]
    pub(super) package_id: Option<String>,
}

/// The request for a transaction.
#[derive(Clone, PartialEq, Message)]
pub(super) struct GetTransactionRequest {
    #[prost(string, optional, tag = "1")]
    pub(super) digest: Option<String>,
    #[prost(message, optional, tag = "2")]
    pub(super) read_mask: Option<FieldMask>,
}

/// The response with a transaction.
#[derive(Clone, PartialEq, Message)]
pub(super) struct GetTransactionResponse {
    #[prost(message, optional, tag = "1")]
    pub(super) transaction: Option<ExecutedTransaction>,
}

/// The request for the current epoch.
#[derive(Clone, PartialEq, Message)]
pub(super) struct GetEpochRequest {
    #[prost(message, optional, tag = "2")]
    pub(super) read_mask: Option<FieldMask>,
}

/// The response with an epoch.
#[derive(Clone, PartialEq, Message)]
pub(super) struct GetEpochResponse {
    #[prost(message, optional, tag = "1")]
    pub(super) epoch: Option<Epoch>,
}

/// An epoch. The gas price is in MIST per unit.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Epoch {
    #[prost(uint64, optional, tag = "8")]
    pub(super) reference_gas_price: Option<u64>,
}

// ---- transactions

/// A transaction that was executed or simulated.
#[derive(Clone, PartialEq, Message)]
pub(super) struct ExecutedTransaction {
    #[prost(string, optional, tag = "1")]
    pub(super) digest: Option<String>,
    #[prost(message, optional, tag = "4")]
    pub(super) effects: Option<Effects>,
    #[prost(message, optional, tag = "5")]
    pub(super) events: Option<Events>,
    #[prost(uint64, optional, tag = "6")]
    pub(super) checkpoint: Option<u64>,
    #[prost(message, repeated, tag = "8")]
    pub(super) balance_changes: Vec<BalanceChange>,
}

/// The effects of a transaction.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Effects {
    #[prost(message, optional, tag = "4")]
    pub(super) status: Option<ExecutionStatus>,
    #[prost(message, optional, tag = "6")]
    pub(super) gas_used: Option<GasUsed>,
    #[prost(message, repeated, tag = "12")]
    pub(super) changed_objects: Vec<ChangedObject>,
}

/// Whether a transaction succeeded.
#[derive(Clone, PartialEq, Message)]
pub(super) struct ExecutionStatus {
    #[prost(bool, optional, tag = "1")]
    pub(super) success: Option<bool>,
    #[prost(message, optional, tag = "2")]
    pub(super) error: Option<ExecutionError>,
}

/// Why a transaction failed.
#[derive(Clone, PartialEq, Message)]
pub(super) struct ExecutionError {
    #[prost(string, optional, tag = "1")]
    pub(super) description: Option<String>,
    #[prost(message, optional, tag = "4")]
    pub(super) abort: Option<MoveAbort>,
}

/// Where a contract aborted, and with which of its codes.
#[derive(Clone, PartialEq, Message)]
pub(super) struct MoveAbort {
    #[prost(uint64, optional, tag = "1")]
    pub(super) abort_code: Option<u64>,
    #[prost(message, optional, tag = "2")]
    pub(super) location: Option<MoveLocation>,
}

/// A place in a contract.
#[derive(Clone, PartialEq, Message)]
pub(super) struct MoveLocation {
    #[prost(string, optional, tag = "2")]
    pub(super) module: Option<String>,
}

/// The gas cost of a transaction, in MIST.
#[derive(Clone, PartialEq, Message)]
pub(super) struct GasUsed {
    #[prost(uint64, optional, tag = "1")]
    pub(super) computation_cost: Option<u64>,
    #[prost(uint64, optional, tag = "2")]
    pub(super) storage_cost: Option<u64>,
    #[prost(uint64, optional, tag = "3")]
    pub(super) storage_rebate: Option<u64>,
}

/// An object that a transaction changed.
#[derive(Clone, PartialEq, Message)]
pub(super) struct ChangedObject {
    #[prost(string, optional, tag = "1")]
    pub(super) object_id: Option<String>,
    #[prost(string, optional, tag = "11")]
    pub(super) object_type: Option<String>,
}

/// The events of a transaction.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Events {
    #[prost(message, repeated, tag = "3")]
    pub(super) events: Vec<Event>,
}

/// An event.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Event {
    #[prost(string, optional, tag = "4")]
    pub(super) event_type: Option<String>,
    #[prost(message, optional, tag = "5")]
    pub(super) contents: Option<Bcs>,
}

/// The change of an account's balance of a coin.
#[derive(Clone, PartialEq, Message)]
pub(super) struct BalanceChange {
    #[prost(string, optional, tag = "1")]
    pub(super) address: Option<String>,
    #[prost(string, optional, tag = "2")]
    pub(super) coin_type: Option<String>,
    #[prost(string, optional, tag = "3")]
    pub(super) amount: Option<String>,
}

/// A transaction, as its bytes.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Transaction {
    #[prost(message, optional, tag = "1")]
    pub(super) bcs: Option<Bcs>,
}

/// A signature, as its bytes.
#[derive(Clone, PartialEq, Message)]
pub(super) struct UserSignature {
    #[prost(message, optional, tag = "1")]
    pub(super) bcs: Option<Bcs>,
}

// ---- TransactionExecutionService

/// The request to execute a transaction.
#[derive(Clone, PartialEq, Message)]
pub(super) struct ExecuteTransactionRequest {
    #[prost(message, optional, tag = "1")]
    pub(super) transaction: Option<Transaction>,
    #[prost(message, repeated, tag = "2")]
    pub(super) signatures: Vec<UserSignature>,
    #[prost(message, optional, tag = "3")]
    pub(super) read_mask: Option<FieldMask>,
}

/// The response to an executed transaction.
#[derive(Clone, PartialEq, Message)]
pub(super) struct ExecuteTransactionResponse {
    #[prost(message, optional, tag = "1")]
    pub(super) transaction: Option<ExecutedTransaction>,
}

/// The request to simulate a transaction, with every check of the chain except those of the signatures.
#[derive(Clone, PartialEq, Message)]
pub(super) struct SimulateTransactionRequest {
    #[prost(message, optional, tag = "1")]
    pub(super) transaction: Option<Transaction>,
    #[prost(message, optional, tag = "2")]
    pub(super) read_mask: Option<FieldMask>,
}

/// The response to a simulated transaction.
#[derive(Clone, PartialEq, Message)]
pub(super) struct SimulateTransactionResponse {
    #[prost(message, optional, tag = "1")]
    pub(super) transaction: Option<ExecutedTransaction>,
}

// ---- StateService

/// The request for a page of the objects of one type that an account owns.
#[derive(Clone, PartialEq, Message)]
pub(super) struct ListOwnedObjectsRequest {
    #[prost(string, optional, tag = "1")]
    pub(super) owner: Option<String>,
    #[prost(uint32, optional, tag = "2")]
    pub(super) page_size: Option<u32>,
    #[prost(bytes = "vec", optional, tag = "3")]
    pub(super) page_token: Option<Vec<u8>>,
    #[prost(message, optional, tag = "4")]
    pub(super) read_mask: Option<FieldMask>,
    #[prost(string, optional, tag = "5")]
    pub(super) object_type: Option<String>,
}

/// A page of objects.
#[derive(Clone, PartialEq, Message)]
pub(super) struct ListOwnedObjectsResponse {
    #[prost(message, repeated, tag = "1")]
    pub(super) objects: Vec<Object>,
    #[prost(bytes = "vec", optional, tag = "2")]
    pub(super) next_page_token: Option<Vec<u8>>,
}

/// The request for an account's balance of a coin.
#[derive(Clone, PartialEq, Message)]
pub(super) struct GetBalanceRequest {
    #[prost(string, optional, tag = "1")]
    pub(super) owner: Option<String>,
    #[prost(string, optional, tag = "2")]
    pub(super) coin_type: Option<String>,
}

/// The response with a balance.
#[derive(Clone, PartialEq, Message)]
pub(super) struct GetBalanceResponse {
    #[prost(message, optional, tag = "1")]
    pub(super) balance: Option<Balance>,
}

/// A balance, in base units.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Balance {
    #[prost(uint64, optional, tag = "3")]
    pub(super) balance: Option<u64>,
}

// ---- MovePackageService

/// The request for a page of the versions of a package, oldest first.
#[derive(Clone, PartialEq, Message)]
pub(super) struct ListPackageVersionsRequest {
    #[prost(string, optional, tag = "1")]
    pub(super) package_id: Option<String>,
    #[prost(uint32, optional, tag = "2")]
    pub(super) page_size: Option<u32>,
    #[prost(bytes = "vec", optional, tag = "3")]
    pub(super) page_token: Option<Vec<u8>>,
}

/// A page of versions.
#[derive(Clone, PartialEq, Message)]
pub(super) struct ListPackageVersionsResponse {
    #[prost(message, repeated, tag = "1")]
    pub(super) versions: Vec<PackageVersion>,
    #[prost(bytes = "vec", optional, tag = "2")]
    pub(super) next_page_token: Option<Vec<u8>>,
}

/// One version of a package.
#[derive(Clone, PartialEq, Message)]
pub(super) struct PackageVersion {
    #[prost(string, optional, tag = "1")]
    pub(super) package_id: Option<String>,
    #[prost(uint64, optional, tag = "2")]
    pub(super) version: Option<u64>,
}
