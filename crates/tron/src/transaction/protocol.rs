//! The subset of Tron's protobuf messages that a contract call needs.
//!
//! Tags and types come from `tronprotocol/protocol`: `Transaction` of `core/Tron.proto` at commit
//! `0929047b8eae0d94c37a4db8bc9aba6131460de8`, `TriggerSmartContract` of `core/contract/smart_contract.proto` at commit
//! `8af46d79cfc4eeffe9dee1a44db2f6542cf872aa`, `Any` of protobuf's own `google/protobuf/any.proto`. Members that are never
//! set here (`auths`, `ret`) are left out: absent members take no bytes.
//!
//! Integers are `int64`, so what does not fit 63 bits is refused before it gets here.

use prost::Message;

/// Type of a contract call in [`Contract::kind`]: `ContractType.TriggerSmartContract`.
pub const TRIGGER_SMART_CONTRACT: i32 = 31;
/// Name of the same type in the JSON of node APIs.
pub const TRIGGER_SMART_CONTRACT_NAME: &str = "TriggerSmartContract";
/// Type of the message in [`Any::value`].
pub const TRIGGER_SMART_CONTRACT_URL: &str = "type.googleapis.com/protocol.TriggerSmartContract";

/// A signed transaction: `protocol.Transaction`.
#[derive(Clone, PartialEq, Message)]
pub struct Transaction {
    /// What is signed.
    #[prost(message, optional, tag = "1")]
    pub raw_data: Option<Raw>,
    /// r‖s‖v, 65 bytes each.
    #[prost(bytes = "vec", repeated, tag = "2")]
    pub signature: Vec<Vec<u8>>,
}

/// What is signed: `protocol.Transaction.raw`. Its SHA-256 is the transaction's id.
#[derive(Clone, PartialEq, Message)]
pub struct Raw {
    /// Bytes 6 and 7 of the reference block's number.
    #[prost(bytes = "vec", tag = "1")]
    pub ref_block_bytes: Vec<u8>,
    /// Number of the reference block; unused since the bytes above say it.
    #[prost(int64, tag = "3")]
    pub ref_block_num: i64,
    /// Bytes 8 to 15 of the reference block's id.
    #[prost(bytes = "vec", tag = "4")]
    pub ref_block_hash: Vec<u8>,
    /// When nodes stop taking it, Unix milliseconds.
    #[prost(int64, tag = "8")]
    pub expiration: i64,
    /// A memo; never set here.
    #[prost(bytes = "vec", tag = "10")]
    pub data: Vec<u8>,
    /// Exactly one.
    #[prost(message, repeated, tag = "11")]
    pub contract: Vec<Contract>,
    /// Never used.
    #[prost(bytes = "vec", tag = "12")]
    pub scripts: Vec<u8>,
    /// When it was made, Unix milliseconds.
    #[prost(int64, tag = "14")]
    pub timestamp: i64,
    /// Most sun that it may burn for energy.
    #[prost(int64, tag = "18")]
    pub fee_limit: i64,
}

/// One operation: `protocol.Transaction.Contract`.
#[derive(Clone, PartialEq, Message)]
pub struct Contract {
    /// Which operation.
    #[prost(int32, tag = "1")]
    pub kind: i32,
    /// Its parameters.
    #[prost(message, optional, tag = "2")]
    pub parameter: Option<Any>,
    /// Never used.
    #[prost(bytes = "vec", tag = "3")]
    pub provider: Vec<u8>,
    /// Never used.
    #[prost(bytes = "vec", tag = "4")]
    pub contract_name: Vec<u8>,
    /// Which of the owner's permissions signs; 0 is the owner's own.
    #[prost(int32, tag = "5")]
    pub permission_id: i32,
}

/// A message with its type's name: `google.protobuf.Any`.
#[derive(Clone, PartialEq, Message)]
pub struct Any {
    /// The type's name.
    #[prost(string, tag = "1")]
    pub type_url: String,
    /// The message.
    #[prost(bytes = "vec", tag = "2")]
    pub value: Vec<u8>,
}

/// A contract call: `protocol.TriggerSmartContract`.
#[derive(Clone, PartialEq, Message)]
pub struct TriggerSmartContract {
    /// Who calls and pays, 21 bytes.
    #[prost(bytes = "vec", tag = "1")]
    pub owner_address: Vec<u8>,
    /// The contract, 21 bytes.
    #[prost(bytes = "vec", tag = "2")]
    pub contract_address: Vec<u8>,
    /// Sun that go with the call.
    #[prost(int64, tag = "3")]
    pub call_value: i64,
    /// Selector and arguments.
    #[prost(bytes = "vec", tag = "4")]
    pub data: Vec<u8>,
    /// TRC-10 tokens that go with the call; never set here.
    #[prost(int64, tag = "5")]
    pub call_token_value: i64,
    /// Which TRC-10 token; never set here.
    #[prost(int64, tag = "6")]
    pub token_id: i64,
}

impl TriggerSmartContract {
    /// The call as the one operation of a transaction.
    #[must_use]
    pub fn to_contract(&self) -> Contract {
        let parameter = Any { type_url: TRIGGER_SMART_CONTRACT_URL.to_owned(), value: self.encode_to_vec() };
        Contract { kind: TRIGGER_SMART_CONTRACT, parameter: Some(parameter), ..Contract::default() }
    }
}
