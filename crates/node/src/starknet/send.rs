//! Sending transactions, and finding out what became of them.

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

/// How far a transaction is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum TransactionStatus {
    /// In no block that L2 has accepted.
    Pending,
    /// In a block that L2 has accepted, which can still be replaced.
    AcceptedOnL2 {
        /// Whether it did what it says; a transaction that reverted is in a block too.
        success: bool,
    },
    /// In a block that L1 has accepted, which is never replaced.
    AcceptedOnL1 {
        /// Whether it did what it says.
        success: bool,
    },
}

impl<'n, T: Transport> StarknetChain<'n, T> {
    /// Broadcasts a signed transaction through every endpoint. One that the chain knows already counts as accepted.
    ///
    /// # Errors
    ///
    /// [`NodeError::Rejected`] if every endpoint refuses it and none knows it, [`NodeError::Refused`] if it is not a transaction
    /// of this chain with the id that was kept. Any other [`NodeError`] does not tell whether it arrived.
    pub async fn broadcast(&self, transaction: &KeptTransaction) -> Result<(), NodeError> {
        let (id, native) = self.read(transaction)?;
        let outcomes = self.connection.each(|caller| self.send(caller, &native, id)).await;
        any_accepts(outcomes).unwrap_or_else(|| Err(self.not_connected()))
    }

    /// Reads a kept transaction and computes its hash on this chain, which must be the id that was kept.
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
        // It may be known already, or in a block: nodes then complain about a nonce that is too low.
        match status(caller, id).await {
            Ok(Some(_)) => Ok(()),
            Ok(None) if is_refusal(code) => Err(error.rejected()),
            Ok(None) => Err(error),
            Err(unknown) => Err(unknown),
        }
    }

    /// Returns how far a transaction is; `None` if the chain does not know it. The endpoints must agree.
    ///
    /// # Errors
    ///
    /// [`NodeError`].
    pub async fn status(&self, id: Felt) -> Result<Option<TransactionStatus>, NodeError> {
        let ask = async |caller: Caller<'n, T>| {
            self.identify(caller).await?;
            status(caller, id).await
        };
        let statuses = agree(self.connection.each(ask).await, self.connection.needed(), |status| *status)?;
        statuses.first().copied().ok_or_else(|| self.not_connected())
    }
}

/// Asks an endpoint how far a transaction is; `None` if it does not know it.
async fn status<T: Transport>(caller: Caller<'_, T>, id: Felt) -> Result<Option<TransactionStatus>, NodeError> {
    let calls = [Call::new("starknet_getTransactionStatus", json!({"transaction_hash": hex(id)}))];
    match caller.rpc(&calls, |results| read_status(&first(results)?)).await {
        // The node's code for a hash that it does not know.
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
        // It is in no block and never will be.
        "REJECTED" => None,
        _ => return Err(finality.refuse(Code::WrongType).with_expected("a finality status")),
    })
}

/// Returns whether an error is about the transaction itself. Other codes are about the node: its limits, its faults.
const fn is_refusal(code: i64) -> bool {
    // Nonce, resources, balance, validation, no account, version, replacement underpriced, fee below the minimum.
    matches!(code, 52..=55 | 58 | 61 | 64 | 65)
}
