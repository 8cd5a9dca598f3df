//! Transactions as wallets and nodes return them. They have no other form than JSON.

use countersign_core::json::{self, Cursor};
use countersign_core::{Code, Refusal};
use starknet_types_core::felt::Felt;

use crate::deposit::Deposit;
use crate::felt;
use crate::transaction::InvokeTransaction;

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
