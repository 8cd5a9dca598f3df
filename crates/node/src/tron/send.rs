//! Broadcasts transactions, and reads their receipts.

use countersign::json::Node;
use countersign::tron::SignedTronTransaction;
use countersign::tron::alloy_primitives::{B256, hex};
use countersign::{Code, Refusal};
use countersign_client::Transport;
use countersign_client::driver::KeptTransaction;
use serde_json::json;

use super::{NEWEST, SOLID, TronChain, ask, contradiction, count, hash, words};
use crate::endpoint::Caller;
use crate::error::NodeError;
use crate::quorum::{agree, any_accepts};

/// The outcome of a transaction in a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Receipt {
    /// The height of its block.
    pub block: u64,
    /// Whether it succeeded. A transaction that reverted or ran out of energy is in a block too.
    pub success: bool,
    /// Whether the block is irreversible (solidified).
    pub is_final: bool,
}

/// A node's answer to a broadcast.
enum Answer {
    /// The node accepted the transaction, or already had it.
    Accepted,
    /// The transaction itself is invalid.
    Refused(String),
    /// The node is busy, has no peers, or has another problem.
    Failed(String),
}

impl<'n, T: Transport> TronChain<'n, T> {
    /// Broadcasts a signed transaction through every endpoint. Succeeds if one of them accepts it or already knows it.
    ///
    /// # Errors
    ///
    /// Returns [`NodeError::Refused`] if the payload is not a transaction with the stored id. Returns [`NodeError::Rejected`] if every
    /// endpoint rejects the transaction and none knows it. After any other [`NodeError`] it is unknown whether the transaction arrived.
    pub async fn broadcast(&self, transaction: &KeptTransaction) -> Result<(), NodeError> {
        let id = check(transaction)?;
        let outcomes = self.connection.each(|caller| self.send(caller, &transaction.payload, id)).await;
        any_accepts(outcomes).unwrap_or_else(|| Err(NodeError::NotConnected(self.connection.name.to_owned())))
    }

    async fn send(&self, caller: Caller<'n, T>, payload: &str, id: B256) -> Result<(), NodeError> {
        self.identify(caller).await?;
        let sent = ask(caller, &format!("{NEWEST}/broadcasthex"), json!({"transaction": payload}), |node| read_answer(node, id)).await?;
        let error = |why: &str| NodeError::rpc(caller.endpoint.host(), 0, why, None);
        let (error, is_refusal) = match sent {
            Answer::Accepted => return Ok(()),
            Answer::Refused(why) => (error(&why), true),
            Answer::Failed(why) => (error(&why), false),
        };
        // The transaction may be in a block already, and have expired since.
        let read = |node: &Node<'_, '_>| match node.object()?.get("txID") {
            Some(found) => Ok(hash(&found)? == id.0),
            None => Ok(false),
        };
        match ask(caller, &format!("{NEWEST}/gettransactionbyid"), json!({"value": hex::encode(id)}), read).await? {
            true => Ok(()),
            false if is_refusal => Err(error.rejected()),
            false => Err(error),
        }
    }

    /// Reads the receipt of a transaction; `None` while it is not in a block. The endpoints must agree.
    ///
    /// # Errors
    ///
    /// Returns [`NodeError`] if no endpoint answers, or if too few of them agree.
    pub async fn receipt(&self, id: B256) -> Result<Option<Receipt>, NodeError> {
        let look = async |caller: Caller<'n, T>| {
            self.identify(caller).await?;
            let query = json!({"value": hex::encode(id)});
            for (view, is_final) in [(SOLID, true), (NEWEST, false)] {
                let path = format!("{view}/gettransactioninfobyid");
                let found = ask(caller, &path, query.clone(), |node| read_receipt(node, id, is_final)).await?;
                if found.is_some() {
                    return Ok(found);
                }
            }
            Ok(None)
        };
        let found = agree(self.connection.each(look).await, self.connection.needed(), |receipt| {
            receipt.as_ref().map(|receipt| (receipt.block, receipt.success))
        })?;
        let is_final = found.iter().flatten().all(|receipt| receipt.is_final);
        Ok(found.into_iter().next().flatten().map(|receipt| Receipt { is_final, ..receipt }))
    }
}

/// Computes the id of a stored transaction, and requires that it is the stored id.
fn check(transaction: &KeptTransaction) -> Result<B256, Refusal> {
    let refuse = |at, reason| Refusal::new(Code::TransactionMismatch, at).with_reason(reason);
    let bytes = hex::decode(&transaction.payload).map_err(|_| refuse("/payload", "the transaction is not in hex"))?;
    let signed = SignedTronTransaction::from_bytes(&bytes).map_err(|refusal| refusal.under("/payload"))?;
    let id = signed.tx_id();
    if !hex::encode(id).eq_ignore_ascii_case(&transaction.id) {
        let refusal = refuse("/id", "the transaction has another id");
        return Err(refusal.with_expected(hex::encode(id)).with_actual(&transaction.id));
    }
    Ok(id)
}

fn read_answer(node: &Node<'_, '_>, id: B256) -> Result<Answer, Refusal> {
    let members = node.object()?;
    if let Some(named) = members.get("txid")
        && hash(&named)? != id.0
    {
        return Err(named.refuse(Code::TransactionMismatch).with_expected(hex::encode(id)));
    }
    let is_accepted = members.get("result").is_some_and(|result| result.bool() == Ok(true));
    let message = members.get("message").map(|message| words(&message)).unwrap_or_default();
    let code = members.get("code").map(|code| code.text()).transpose()?;
    Ok(match code {
        None | Some("SUCCESS") if is_accepted => Answer::Accepted,
        Some("DUP_TRANSACTION_ERROR") => Answer::Accepted,
        Some(
            code @ ("SIGERROR"
            | "CONTRACT_VALIDATE_ERROR"
            | "CONTRACT_EXE_ERROR"
            | "BANDWITH_ERROR"
            | "TAPOS_ERROR"
            | "TOO_BIG_TRANSACTION_ERROR"
            | "TRANSACTION_EXPIRATION_ERROR"),
        ) => Answer::Refused(format!("{code}: {message}")),
        code => Answer::Failed(format!("{}: {message}", code.unwrap_or("no code"))),
    })
}

fn read_receipt(node: &Node<'_, '_>, id: B256, is_final: bool) -> Result<Option<Receipt>, Refusal> {
    let members = node.object()?;
    let Some(named) = members.get("id") else { return Ok(None) };
    if hash(&named)? != id.0 {
        return Err(named.refuse(Code::TransactionMismatch).with_expected(hex::encode(id)));
    }
    let block = count(members.get("blockNumber"))?;
    if block == 0 {
        return Err(contradiction("/blockNumber", "the receipt does not name a block"));
    }
    // A failure is marked in one of two places. The result of a contract call is always present.
    let receipt = members.need("receipt")?;
    let result = receipt.object()?.get("result").map(|result| result.text()).transpose()?;
    let failed = members.get("result").map(|result| result.text()).transpose()? == Some("FAILED");
    Ok(Some(Receipt { block, success: !failed && result == Some("SUCCESS"), is_final }))
}
