//! Signed transactions as wallets and nodes return them, and what transactions did.

use countersign_core::Refusal;
use countersign_core::json::{self, Cursor};

use crate::reader::read_info;
pub use crate::reader::{InfoLog, TransactionInfo};
use crate::transaction::SignedTronTransaction;

/// Decodes a transaction in protobuf, as nodes return it over gRPC: see [`SignedTronTransaction::from_bytes`].
///
/// ```
/// # use countersign::Refusal;
/// # fn check(order: &countersign::tron::VerifiedOrder, from_node: &[u8]) -> Result<(), Refusal> {
/// use countersign::tron::received;
///
/// let role = order.matches(&received::from_bytes(from_node)?)?;
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// As [`SignedTronTransaction::from_bytes`].
pub fn from_bytes(bytes: &[u8]) -> Result<SignedTronTransaction, Refusal> {
    SignedTronTransaction::from_bytes(bytes)
}

/// Parses a transaction in the JSON of TronWeb, TronLink and `/wallet/gettransactionbyid`: see [`SignedTronTransaction::from_json`].
///
/// # Errors
///
/// As [`SignedTronTransaction::from_json`].
pub fn from_json(text: &[u8]) -> Result<SignedTronTransaction, Refusal> {
    SignedTronTransaction::from_json(text)
}

/// Parses what `/wallet/gettransactioninfobyid` returns: an object with `id`, `blockNumber`, `receipt` and, if the transaction has any, `log`.
/// Other members are ignored. The transaction must be in a block. There may be at most 256 logs, whose data may have at most 256 KiB each. The
/// transaction may be that of any account, such as an owner of a contract with several owners, or a relay.
///
/// # Errors
///
/// The codes of malformed JSON; [`Code::MissingField`](countersign_core::Code::MissingField), also for the empty object of a node that does
/// not know the transaction; [`Code::WrongType`](countersign_core::Code::WrongType), also for too many entries and without a block; a `hex_` code.
pub fn transaction_info(text: &[u8]) -> Result<TransactionInfo, Refusal> {
    let value = json::parse(text)?;
    read_info(&Cursor::root(&value, ""))
}
