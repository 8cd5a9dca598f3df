//! Broadcasts transactions, and reads their status.

use countersign::json::Node;
use countersign::starknet::{Felt, InvokeTransaction, felt};
use countersign::{Code, Refusal};
use countersign_client::Transport;
use countersign_client::driver::KeptTransaction;
use serde_json::json;

use super::{StarknetChain, first, hex};
use crate::endpoint::{Call, Caller};
use crate::error::NodeError;
use crate::quorum::{agree, any_accepts};

/// How far a transaction has been accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum TransactionStatus {
    /// The transaction is known, but not in a block that L2 has accepted.
    Pending,
    /// The transaction is in a block that L2 has accepted, which can still be replaced.
    AcceptedOnL2 {
        /// Whether it succeeded. A transaction that reverted is in a block too.
        success: bool,
    },
    /// The transaction is in a block that L1 has accepted, which is never replaced.
    AcceptedOnL1 {
        /// Whether it succeeded.
        success: bool,
    },
}

impl<'n, T: Transport> StarknetChain<'n, T> {
    /// Broadcasts a signed transaction through every endpoint. Succeeds if one of them accepts it or already knows it.
    ///
    /// # Errors
    ///
    /// Returns [`NodeError::Refused`] if the payload is not a transaction that has the stored id on this chain. Returns
    /// [`NodeError::Rejected`] if every endpoint rejects the transaction and none knows it. After any other [`NodeError`] it is unknown
    /// whether the transaction arrived.
    pub async fn broadcast(&self, transaction: &KeptTransaction) -> Result<(), NodeError> {
        let (id, native) = self.read(transaction)?;
        let outcomes = self.connection.each(|caller| self.send(caller, &native, id)).await;
        any_accepts(outcomes).unwrap_or_else(|| Err(self.not_connected()))
    }

    /// Parses a stored transaction and computes its hash on this chain, which must be the stored id.
    fn read(&self, transaction: &KeptTransaction) -> Result<(Felt, InvokeTransaction), Refusal> {
        let native = InvokeTransaction::from_json(transaction.payload.as_bytes()).map_err(|refusal| refusal.under("/payload"))?;
        let id = native.hashes(self.chain_id).tx_hash;
        if felt::parse(&transaction.id) != Ok(id) {
            let refusal = Refusal::new(Code::TransactionMismatch, "/id").with_reason("the transaction has another id on this chain");
            return Err(refusal.with_expected(hex(id)).with_actual(&transaction.id));
        }
        Ok((id, native))
    }

    async fn send(&self, caller: Caller<'n, T>, transaction: &InvokeTransaction, id: Felt) -> Result<(), NodeError> {
        self.identify(caller).await?;
        let send = [Call::new("starknet_addInvokeTransaction", json!({"invoke_transaction": transaction}))];
        let sent = caller.rpc(&send, |results| {
            let node = first(results)?;
            let members = node.object()?;
            let hash = members.need("transaction_hash")?;
            if felt::read(hash)? == id { Ok(()) } else { Err(hash.refuse(Code::TransactionMismatch).with_expected(hex(id))) }
        });
        let Err(error) = sent.await else { return Ok(()) };
        let NodeError::Rpc { code, .. } = &error else { return Err(error) };
        let code = *code;
        // The transaction may be known already, or in a block. Nodes then report that the nonce is too low.
        match status(caller, id).await {
            Ok(Some(_)) => Ok(()),
            Ok(None) if is_refusal(code) => Err(error.rejected()),
            Ok(None) => Err(error),
            Err(unknown) => Err(unknown),
        }
    }

    /// Reads the status of a transaction; `None` if the chain does not know it. The endpoints must agree.
    ///
    /// # Errors
    ///
    /// Returns [`NodeError`] if no endpoint answers, or if too few of them agree.
    pub async fn status(&self, id: Felt) -> Result<Option<TransactionStatus>, NodeError> {
        let ask = async |caller: Caller<'n, T>| {
            self.identify(caller).await?;
            status(caller, id).await
        };
        let statuses = agree(self.connection.each(ask).await, self.connection.needed(), |status| *status)?;
        statuses.first().copied().ok_or_else(|| self.not_connected())
    }
}

/// Reads the status of a transaction from one endpoint; `None` if it does not know the transaction.
async fn status<T: Transport>(caller: Caller<'_, T>, id: Felt) -> Result<Option<TransactionStatus>, NodeError> {
    let calls = [Call::new("starknet_getTransactionStatus", json!({"transaction_hash": hex(id)}))];
    match caller.rpc(&calls, |results| read_status(&first(results)?)).await {
        // TXN_HASH_NOT_FOUND.
        Err(NodeError::Rpc { code: 29, .. }) => Ok(None),
        status => status,
    }
}

fn read_status(node: &Node<'_, '_>) -> Result<Option<TransactionStatus>, Refusal> {
    let members = node.object()?;
    let finality = members.need("finality_status")?;
    let success = || {
        let execution = members.need("execution_status")?;
        match execution.text()? {
            "SUCCEEDED" => Ok(true),
            "REVERTED" => Ok(false),
            _ => Err(execution.refuse(Code::WrongType).with_expected("SUCCEEDED or REVERTED")),
        }
    };
    Ok(match finality.text()? {
        "RECEIVED" | "CANDIDATE" | "PRE_CONFIRMED" => Some(TransactionStatus::Pending),
        "ACCEPTED_ON_L2" => Some(TransactionStatus::AcceptedOnL2 { success: success()? }),
        "ACCEPTED_ON_L1" => Some(TransactionStatus::AcceptedOnL1 { success: success()? }),
        // A rejected transaction is not in a block and never will be.
        "REJECTED" => None,
        _ => return Err(finality.refuse(Code::WrongType).with_expected("a finality status")),
    })
}

/// Returns whether an error code concerns the transaction itself. Other codes concern the node: its limits and its faults.
const fn is_refusal(code: i64) -> bool {
    // In this order: nonce, resources, balance, validation, no account, version, replacement underpriced, fee below the minimum.
    matches!(code, 52..=55 | 58 | 61 | 64 | 65)
}
