//! The subset of Tron's protobuf messages that a contract call needs.
//!
//! Tags and types come from `tronprotocol/protocol`: `Transaction` of `core/Tron.proto` at commit
//! `0929047b8eae0d94c37a4db8bc9aba6131460de8`, `TriggerSmartContract` of `core/contract/smart_contract.proto` at commit
//! `8af46d79cfc4eeffe9dee1a44db2f6542cf872aa`, `Any` of protobuf's own `google/protobuf/any.proto`. Fields that are never
//! set here (`auths`, `ret`) are left out, because absent fields take no bytes.
//!
//! Integers are `int64`. Amounts that do not fit 63 bits are refused before they are encoded.

use prost::Message;

/// The value of [`Contract::kind`] for a contract call: `ContractType.TriggerSmartContract`.
pub const TRIGGER_SMART_CONTRACT: i32 = 31;
/// The name of this kind in the JSON of node APIs.
pub const TRIGGER_SMART_CONTRACT_NAME: &str = "TriggerSmartContract";
/// The value of [`Any::type_url`] for a contract call.
pub const TRIGGER_SMART_CONTRACT_URL: &str = "type.googleapis.com/protocol.TriggerSmartContract";

/// A signed transaction: `protocol.Transaction`.
#[derive(Clone, PartialEq, Message)]
pub struct Transaction {
    /// The part that is signed.
    #[prost(message, optional, tag = "1")]
    pub raw_data: Option<Raw>,
    /// The signatures, each r‖s‖v in 65 bytes.
    #[prost(bytes = "vec", repeated, tag = "2")]
    pub signature: Vec<Vec<u8>>,
}

/// The signed part of a transaction: `protocol.Transaction.raw`. Its SHA-256 is the transaction's id.
#[derive(Clone, PartialEq, Message)]
pub struct Raw {
    /// Bytes 6 and 7 of the reference block's number.
    #[prost(bytes = "vec", tag = "1")]
    pub ref_block_bytes: Vec<u8>,
    /// Number of the reference block. Not used here: `ref_block_bytes` identifies the block.
    #[prost(int64, tag = "3")]
    pub ref_block_num: i64,
    /// Bytes 8 to 15 of the reference block's id.
    #[prost(bytes = "vec", tag = "4")]
    pub ref_block_hash: Vec<u8>,
    /// When nodes stop accepting the transaction, in Unix milliseconds.
    #[prost(int64, tag = "8")]
    pub expiration: i64,
    /// A memo; never set here.
    #[prost(bytes = "vec", tag = "10")]
    pub data: Vec<u8>,
    /// The operations. Nodes accept exactly one.
    #[prost(message, repeated, tag = "11")]
    pub contract: Vec<Contract>,
    /// Never set here.
    #[prost(bytes = "vec", tag = "12")]
    pub scripts: Vec<u8>,
    /// When the transaction was created, in Unix milliseconds.
    #[prost(int64, tag = "14")]
    pub timestamp: i64,
    /// The most sun that the transaction may burn for energy.
    #[prost(int64, tag = "18")]
    pub fee_limit: i64,
}

/// One operation: `protocol.Transaction.Contract`.
#[derive(Clone, PartialEq, Message)]
pub struct Contract {
    /// The operation, for example [`TRIGGER_SMART_CONTRACT`]. The field is called `type` in the protocol.
    #[prost(int32, tag = "1")]
    pub kind: i32,
    /// The parameters of the operation.
    #[prost(message, optional, tag = "2")]
    pub parameter: Option<Any>,
    /// Never set here.
    #[prost(bytes = "vec", tag = "3")]
    pub provider: Vec<u8>,
    /// Never set here.
    #[prost(bytes = "vec", tag = "4")]
    pub contract_name: Vec<u8>,
    /// The permission of the owner's account that signs; 0 is the owner permission.
    #[prost(int32, tag = "5")]
    pub permission_id: i32,
}

/// A message with the name of its type: `google.protobuf.Any`.
#[derive(Clone, PartialEq, Message)]
pub struct Any {
    /// The name of the type, for example [`TRIGGER_SMART_CONTRACT_URL`].
    #[prost(string, tag = "1")]
    pub type_url: String,
    /// The encoded message.
    #[prost(bytes = "vec", tag = "2")]
    pub value: Vec<u8>,
}

/// A contract call: `protocol.TriggerSmartContract`.
#[derive(Clone, PartialEq, Message)]
pub struct TriggerSmartContract {
    /// The account that calls and pays: 21 bytes, prefix included.
    #[prost(bytes = "vec", tag = "1")]
    pub owner_address: Vec<u8>,
    /// The contract that is called: 21 bytes, prefix included.
    #[prost(bytes = "vec", tag = "2")]
    pub contract_address: Vec<u8>,
    /// Sun sent with the call.
    #[prost(int64, tag = "3")]
    pub call_value: i64,
    /// Calldata: selector and arguments.
    #[prost(bytes = "vec", tag = "4")]
    pub data: Vec<u8>,
    /// Amount of TRC-10 tokens sent with the call; never set here.
    #[prost(int64, tag = "5")]
    pub call_token_value: i64,
    /// Id of the TRC-10 token; never set here.
    #[prost(int64, tag = "6")]
    pub token_id: i64,
}

impl TriggerSmartContract {
    /// Returns the call as an operation of a transaction.
    #[must_use]
    pub fn to_contract(&self) -> Contract {
        let parameter = Any { type_url: TRIGGER_SMART_CONTRACT_URL.to_owned(), value: self.encode_to_vec() };
        Contract { kind: TRIGGER_SMART_CONTRACT, parameter: Some(parameter), ..Contract::default() }
    }
}
