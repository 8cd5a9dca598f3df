//! Broadcasts transactions, and reads their status.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use countersign::json::Node;
use countersign::solana::read;
use countersign::solana::solana_signature::Signature;
use countersign::solana::solana_transaction::versioned::VersionedTransaction;
use countersign::{Code, Refusal};
use countersign_client::Transport;
use countersign_client::driver::KeptTransaction;
use serde_json::json;

use super::{FINALIZED, SolanaChain, nth};
use crate::endpoint::{Call, Caller};
use crate::error::NodeError;
use crate::quorum::{agree, any_accepts};

/// The status of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum TransactionStatus {
    /// The transaction is in a block.
    Landed {
        /// The slot of the block.
        slot: u64,
        /// Whether it succeeded. A transaction that failed has paid its fee.
        success: bool,
        /// Whether the block is finalized.
        is_finalized: bool,
    },
    /// The transaction is not in a block, and its blockhash is still valid.
    Pending,
    /// The transaction is not in a block, and its blockhash is no longer valid. It will never be mined.
    Expired,
}

impl<'n, T: Transport> SolanaChain<'n, T> {
    /// Broadcasts a signed transaction through every endpoint, without a simulation or retries by the nodes. Succeeds if one of them
    /// accepts it or already knows it.
    ///
    /// Call it repeatedly until the transaction has landed or its blockhash has expired. Sending it again is harmless: it has the same
    /// signature, so it is mined at most once.
    ///
    /// # Errors
    ///
    /// Returns [`NodeError::Refused`] with [`Code::TransactionMismatch`] if the payload is not a transaction with the stored id. Returns
    /// [`NodeError::Rejected`] if every endpoint rejects the transaction and none knows it. After any other [`NodeError`] it is unknown
    /// whether the transaction arrived.
    pub async fn broadcast(&self, transaction: &KeptTransaction) -> Result<(), NodeError> {
        let (decoded, id) = decode(transaction)?;
        let payload = STANDARD.encode(read::transaction_bytes(&decoded));
        let outcomes = self.connection.each(|caller| self.send(caller, &payload, &id)).await;
        any_accepts(outcomes).unwrap_or_else(|| Err(NodeError::NotConnected(self.connection.name.to_owned())))
    }

    async fn send(&self, caller: Caller<'n, T>, payload: &str, id: &str) -> Result<(), NodeError> {
        self.identify(caller).await?;
        let options = json!({"encoding": "base64", "skipPreflight": true, "maxRetries": 0});
        let send = [Call::new("sendTransaction", json!([payload, options]))];
        let sent = caller.rpc(&send, |results| {
            let node = nth(results, 0)?;
            if node.text()? == id { Ok(()) } else { Err(node.refuse(Code::TransactionMismatch).with_expected(id)) }
        });
        let Err(error) = sent.await else { return Ok(()) };
        let NodeError::Rpc { code, .. } = &error else { return Err(error) };
        let is_refusal = is_refusal(*code);
        // The transaction may be on chain already.
        match self.look_up(caller, id).await {
            Ok(Some(_)) => Ok(()),
            Ok(None) if is_refusal => Err(error.rejected()),
            Ok(None) => Err(error),
            Err(unknown) => Err(unknown),
        }
    }

    /// Reads the status of a transaction from one endpoint: its slot, whether it succeeded, and whether it is finalized.
    async fn look_up(&self, caller: Caller<'n, T>, id: &str) -> Result<Option<(u64, bool, bool)>, NodeError> {
        caller.rpc(&[statuses(id)], |results| read_status(nth(results, 0)?)).await
    }

    /// Reads the status of a transaction. `last_valid_block_height` is the block height up to which its blockhash is valid. The endpoints
    /// must agree.
    ///
    /// # Errors
    ///
    /// Returns [`NodeError`] if no endpoint answers, or if too few of them agree.
    pub async fn status(&self, id: Signature, last_valid_block_height: u64) -> Result<TransactionStatus, NodeError> {
        let id = id.to_string();
        let calls = [statuses(&id), Call::new("getBlockHeight", json!([{"commitment": FINALIZED}]))];
        let ask = async |caller: Caller<'n, T>| {
            self.identify(caller).await?;
            let read = |results: &[Node<'_, '_>]| {
                let height = nth(results, 1)?.integer()?;
                Ok(match read_status(nth(results, 0)?)? {
                    Some((slot, success, is_finalized)) => TransactionStatus::Landed { slot, success, is_finalized },
                    // The height is that of a finalized block, which no block with the transaction can replace.
                    None if height > last_valid_block_height => TransactionStatus::Expired,
                    None => TransactionStatus::Pending,
                })
            };
            caller.rpc(&calls, read).await
        };
        let mut statuses = agree(self.connection.each(ask).await, self.connection.needed(), |status| *status)?;
        statuses.pop().ok_or_else(|| NodeError::NotConnected(self.connection.name.to_owned()))
    }
}

/// Decodes a stored transaction, and requires that it has the stored id. Returns it with its id.
pub(super) fn decode(transaction: &KeptTransaction) -> Result<(VersionedTransaction, String), Refusal> {
    let refuse = |at, reason| Refusal::new(Code::TransactionMismatch, at).with_reason(reason);
    let bytes = hex::decode(&transaction.payload).map_err(|_| refuse("/payload", "the transaction is not in hex"))?;
    let decoded = read::transaction(&bytes).ok_or_else(|| refuse("/payload", "the bytes are not one transaction"))?;
    let id = decoded.signatures.first().map(ToString::to_string).unwrap_or_default();
    if transaction.id != id {
        return Err(refuse("/id", "the transaction has another id").with_expected(id).with_actual(&transaction.id));
    }
    Ok((decoded, id))
}

fn statuses(id: &str) -> Call {
    Call::new("getSignatureStatuses", json!([[id], {"searchTransactionHistory": true}]))
}

/// Reads the status of one transaction; `None` if the endpoint does not know it.
fn read_status(node: &Node<'_, '_>) -> Result<Option<(u64, bool, bool)>, Refusal> {
    let members = node.object()?;
    let value = members.need("value")?;
    let status = value.array()?.next().ok_or_else(|| value.refuse(Code::MissingField))?;
    if status.is_null() {
        return Ok(None);
    }
    let members = status.object()?;
    let is_finalized = match members.get("confirmationStatus") {
        Some(mark) => mark.text()? == FINALIZED,
        None => false,
    };
    Ok(Some((members.need("slot")?.integer()?, members.get("err").is_none(), is_finalized)))
}

/// Returns whether an error code concerns the transaction itself. Other codes concern the node: its limits and its faults.
const fn is_refusal(code: i64) -> bool {
    // In this order: failed simulation, invalid signature, failed precompile, parameters that are not a transaction.
    matches!(code, -32_002 | -32_003 | -32_006 | -32_602)
}
