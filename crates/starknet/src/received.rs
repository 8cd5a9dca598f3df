//! Transactions as wallets and nodes return them, and what transactions did. They have no other form than JSON.

use countersign_core::json::{self, Cursor};
use countersign_core::{Code, Refusal};
use starknet_types_core::felt::Felt;

use crate::deposit::Deposit;
use crate::felt;
use crate::transaction::InvokeTransaction;

/// Maximum number of events of a receipt.
const MAX_EVENTS: usize = 1_024;
/// Maximum number of keys, and of felts of data, of an event.
const MAX_FELTS: usize = 1_024;

/// Parses the JSON of an invoke transaction of version 3, as `starknet_getTransactionByHash` returns it: see
/// [`InvokeTransaction::from_json`].
///
/// ```
/// # use countersign::Refusal;
/// # fn check(order: &countersign::starknet::VerifiedOrder, from_node: &[u8]) -> Result<(), Refusal> {
/// use countersign::starknet::received;
///
/// let role = order.matches(&received::from_json(from_node)?)?;
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// As [`InvokeTransaction::from_json`].
pub fn from_json(text: &[u8]) -> Result<InvokeTransaction, Refusal> {
    InvokeTransaction::from_json(text)
}

/// Parses the same as [`from_json`], and requires that a `transaction_hash` beside the transaction is its hash on the chain with this id.
///
/// # Errors
///
/// As [`from_json`], and [`Code::TransactionMismatch`] for another hash.
pub fn from_json_on(chain_id: Felt, text: &[u8]) -> Result<InvokeTransaction, Refusal> {
    read(text, |_| Some(chain_id))
}

impl Deposit {
    /// Parses a transaction of an external wallet as [`from_json_on`] does on the order's chain. The hash of another account's transaction is
    /// not compared, because matching it says what is wrong with it.
    ///
    /// # Errors
    ///
    /// As [`from_json_on`].
    pub fn read_sent(&self, text: &[u8]) -> Result<InvokeTransaction, Refusal> {
        read(text, |transaction| (transaction.sender_address == self.sender).then_some(self.chain_id))
    }
}

/// Parses a transaction, and compares its hash on the chain that `chain_of` returns with the stated one.
fn read(text: &[u8], chain_of: impl FnOnce(&InvokeTransaction) -> Option<Felt>) -> Result<InvokeTransaction, Refusal> {
    let value = json::parse(text)?;
    let root = Cursor::root(&value, "");
    let transaction = InvokeTransaction::read(&root)?;
    if let (Some(chain_id), Some(stated)) = (chain_of(&transaction), root.object()?.get("transaction_hash")) {
        let expected = transaction.hashes(chain_id).tx_hash;
        if felt::read(stated)? != expected {
            let refusal = stated.at().refuse(Code::TransactionMismatch).with_expected(felt::to_hex(&expected));
            return Err(refusal.with_reason("this is not the hash of the transaction on the order's chain"));
        }
    }
    Ok(transaction)
}

/// What `starknet_getTransactionReceipt` returns, as far as it says what a transaction did. [`Deposit::find_payment`] reads it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TransactionReceipt {
    /// The hash of the transaction.
    pub transaction_hash: Felt,
    /// Whether the transaction is in a block that L2 or L1 has accepted.
    pub is_in_block: bool,
    /// Whether it succeeded. A transaction that reverted is in a block too.
    pub is_success: bool,
    /// The events of all contracts, in order.
    pub events: Vec<ReceiptEvent>,
}

/// An event of a contract.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReceiptEvent {
    /// The contract.
    pub from_address: Felt,
    /// The keys.
    pub keys: Vec<Felt>,
    /// The data.
    pub data: Vec<Felt>,
}

/// Parses what `starknet_getTransactionReceipt` returns: an object with `transaction_hash`, `finality_status`, `execution_status` and `events`.
/// Other members are ignored. There may be at most 1,024 events, each with at most 1,024 keys and felts of data. The transaction may be that
/// of any account, such as a paymaster.
///
/// # Errors
///
/// The codes of malformed JSON; [`Code::MissingField`]; [`Code::WrongType`], also for an unknown status or too many entries; or the codes of
/// malformed felts.
pub fn receipt(text: &[u8]) -> Result<TransactionReceipt, Refusal> {
    let value = json::parse(text)?;
    TransactionReceipt::read(&Cursor::root(&value, ""))
}

impl TransactionReceipt {
    pub(crate) fn read(cursor: &Cursor<'_, '_>) -> Result<Self, Refusal> {
        let members = cursor.object()?;
        let transaction_hash = felt::read(members.need("transaction_hash")?)?;
        let finality = members.need("finality_status")?;
        let is_in_block = match finality.text()? {
            "RECEIVED" | "CANDIDATE" | "PRE_CONFIRMED" => false,
            "ACCEPTED_ON_L2" | "ACCEPTED_ON_L1" => true,
            _ => return Err(finality.refuse(Code::WrongType).with_expected("a finality status")),
        };
        let execution = members.need("execution_status")?;
        let is_success = match execution.text()? {
            "SUCCEEDED" => true,
            "REVERTED" => false,
            _ => return Err(execution.refuse(Code::WrongType).with_expected("SUCCEEDED or REVERTED")),
        };
        let list = members.need("events")?;
        let events = at_most(MAX_EVENTS, &list)?.map(|event| ReceiptEvent::read(&event)).collect::<Result<_, Refusal>>()?;
        Ok(Self { transaction_hash, is_in_block, is_success, events })
    }
}

impl ReceiptEvent {
    fn read(cursor: &Cursor<'_, '_>) -> Result<Self, Refusal> {
        let members = cursor.object()?;
        let felts = |key| at_most(MAX_FELTS, &members.need(key)?)?.map(felt::read).collect::<Result<Vec<_>, _>>();
        Ok(Self { from_address: felt::read(members.need("from_address")?)?, keys: felts("keys")?, data: felts("data")? })
    }
}

/// Returns the entries of a list, of which there may be at most `max`.
fn at_most<'c, 'v>(max: usize, list: &'c Cursor<'c, 'v>) -> Result<impl ExactSizeIterator<Item = Cursor<'c, 'v>>, Refusal> {
    let entries = list.array()?;
    if entries.len() > max {
        return Err(list.at().refuse(Code::WrongType).with_expected(format!("at most {max} entries")).with_actual(entries.len()));
    }
    Ok(entries)
}
