//! Broadcasts transactions, and reads their receipts.

use countersign::evm::alloy_consensus::{Transaction as _, TxEnvelope};
use countersign::evm::alloy_primitives::{B256, hex};
use countersign::evm::received;
use countersign::{Code, Refusal};
use countersign_client::Transport;
use countersign_client::driver::KeptTransaction;
use serde_json::json;

use super::{EvmChain, first, hash, quantity};
use crate::endpoint::{Call, Caller};
use crate::error::NodeError;
use crate::quorum::{agree, any_accepts};

/// The outcome of a mined transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Receipt {
    /// The height of its block.
    pub block: u64,
    /// The hash of its block.
    pub hash: B256,
    /// Whether it succeeded. A transaction that reverted is mined too.
    pub success: bool,
}

impl<'n, T: Transport> EvmChain<'n, T> {
    /// Broadcasts a signed transaction through every endpoint. Succeeds if one of them accepts it or already knows it.
    ///
    /// # Errors
    ///
    /// Returns [`NodeError::Refused`] with [`Code::TransactionMismatch`] if the payload is not a transaction of this chain with the stored
    /// id. Returns [`NodeError::Rejected`] if every endpoint rejects the transaction and none knows it. After any other [`NodeError`] it
    /// is unknown whether the transaction arrived.
    pub async fn broadcast(&self, transaction: &KeptTransaction) -> Result<(), NodeError> {
        let (_, id) = self.decode(transaction)?;
        let outcomes = self.connection.each(|caller| self.send(caller, &transaction.payload, id)).await;
        any_accepts(outcomes).unwrap_or_else(|| Err(NodeError::NotConnected(self.connection.name.to_owned())))
    }

    /// Decodes a stored transaction, and requires that it belongs to this chain and has the stored id. Returns it with its id.
    pub(super) fn decode(&self, transaction: &KeptTransaction) -> Result<(TxEnvelope, B256), Refusal> {
        let refuse = |at, reason| Refusal::new(Code::TransactionMismatch, at).with_reason(reason);
        let bytes = hex::decode(&transaction.payload).map_err(|_| refuse("/payload", "the transaction is not in hex"))?;
        let envelope = received::from_bytes(&bytes).map_err(|refusal| refusal.under("/payload"))?;
        if envelope.chain_id() != Some(self.chain_id) {
            return Err(refuse("/payload", "the transaction belongs to another chain"));
        }
        let id = *envelope.tx_hash();
        if transaction.id.parse() != Ok(id) {
            return Err(refuse("/id", "the transaction has another id").with_expected(id.to_string()).with_actual(&transaction.id));
        }
        Ok((envelope, id))
    }

    async fn send(&self, caller: Caller<'n, T>, payload: &str, id: B256) -> Result<(), NodeError> {
        self.identify(caller).await?;
        let payload = payload.strip_prefix("0x").unwrap_or(payload);
        let send = [Call::new("eth_sendRawTransaction", json!([format!("0x{payload}")]))];
        let sent = caller.rpc(&send, |results| {
            let node = first(results)?;
            if hash(&node)? == id { Ok(()) } else { Err(node.refuse(Code::TransactionMismatch).with_expected(id.to_string())) }
        });
        let Err(error) = sent.await else { return Ok(()) };
        let NodeError::Rpc { code, .. } = &error else { return Err(error) };
        let is_refusal = is_refusal(*code);
        // The transaction may be known already, or mined. Nodes then report that the nonce is too low.
        let find = [Call::new("eth_getTransactionByHash", json!([id]))];
        let is_known = caller.rpc(&find, |results| {
            let node = first(results)?;
            Ok(!node.is_null() && hash(&node.object()?.need("hash")?)? == id)
        });
        match is_known.await {
            Ok(true) => Ok(()),
            Ok(false) if is_refusal => Err(error.rejected()),
            Ok(false) => Err(error),
            Err(unknown) => Err(unknown),
        }
    }

    /// Reads the receipt of a transaction; `None` while it is not in a block. The endpoints must agree.
    ///
    /// # Errors
    ///
    /// Returns [`NodeError`] if no endpoint answers, or if too few of them agree.
    pub async fn receipt(&self, id: B256) -> Result<Option<Receipt>, NodeError> {
        let calls = [Call::new("eth_getTransactionReceipt", json!([id]))];
        let ask = async |caller: Caller<'n, T>| {
            self.identify(caller).await?;
            caller
                .rpc(&calls, |results| {
                    let node = first(results)?;
                    if node.is_null() {
                        return Ok(None);
                    }
                    let members = node.object()?;
                    let of = members.need("transactionHash")?;
                    if hash(&of)? != id {
                        return Err(of.refuse(Code::TransactionMismatch).with_expected(id.to_string()));
                    }
                    let status = members.need("status")?;
                    let success = match quantity(&status)? {
                        0 => false,
                        1 => true,
                        _ => return Err(status.refuse(Code::NumberTooLarge).with_expected("0 or 1")),
                    };
                    let (block, hash) = (quantity(&members.need("blockNumber")?)?, hash(&members.need("blockHash")?)?);
                    Ok(Some(Receipt { block, hash, success }))
                })
                .await
        };
        let mut receipts = agree(self.connection.each(ask).await, self.connection.needed(), |receipt| *receipt)?;
        Ok(receipts.pop().flatten())
    }
}

/// Returns whether an error code concerns the transaction itself. Other codes concern the node: its limits and its faults.
const fn is_refusal(code: i64) -> bool {
    // In this order: Geth, EIP-1474, OpenEthereum and its successors, and an execution that reverts.
    matches!(code, -32_000 | -32_003 | -32_010 | 3)
}
