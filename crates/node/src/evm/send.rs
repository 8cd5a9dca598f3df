//! Sending transactions, and finding out what became of them.

use countersign::evm::alloy_consensus::{Transaction as _, TxEnvelope};
use countersign::evm::alloy_eips::eip2718::{Decodable2718 as _, Encodable2718 as _};
use countersign::evm::alloy_primitives::{B256, hex};
use countersign::{Code, Refusal};
use countersign_client::Transport;
use countersign_client::driver::KeptTransaction;
use serde_json::json;

use super::{EvmChain, first, hash, quantity};
use crate::endpoint::{Call, Caller};
use crate::error::NodeError;
use crate::quorum::{agree, any_accepts};

/// What became of a transaction that was mined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Receipt {
    /// Height of its block.
    pub block: u64,
    /// Hash of its block.
    pub hash: B256,
    /// Whether it did what it says; a transaction that reverted is mined too.
    pub success: bool,
}

impl<'n, T: Transport> EvmChain<'n, T> {
    /// Broadcasts a signed transaction through every endpoint. One that the chain knows already counts as accepted.
    ///
    /// # Errors
    ///
    /// [`NodeError::Rejected`] if every endpoint refuses it and none knows it, [`NodeError::Refused`] if it is not a transaction
    /// of this chain with the id that was kept. Any other [`NodeError`] does not tell whether it arrived.
    pub async fn broadcast(&self, transaction: &KeptTransaction) -> Result<(), NodeError> {
        let (_, id) = self.decode(transaction)?;
        let outcomes = self.connection.each(|caller| self.send(caller, &transaction.payload, id)).await;
        any_accepts(outcomes).unwrap_or_else(|| Err(NodeError::NotConnected(self.connection.name.to_owned())))
    }

    /// Decodes a kept transaction with its id, and requires that it is the one that was kept.
    pub(super) fn decode(&self, transaction: &KeptTransaction) -> Result<(TxEnvelope, B256), Refusal> {
        let refuse = |at, reason| Refusal::new(Code::TransactionMismatch, at).with_reason(reason);
        let bytes = hex::decode(&transaction.payload).map_err(|_| refuse("/payload", "the transaction is not in hex"))?;
        let envelope = TxEnvelope::decode_2718_exact(&bytes).map_err(|_| refuse("/payload", "the bytes are not one transaction"))?;
        if envelope.encoded_2718() != bytes {
            return Err(refuse("/payload", "the bytes are not one transaction"));
        }
        if envelope.chain_id() != Some(self.chain_id) {
            return Err(refuse("/payload", "the transaction is of another chain"));
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
        // It may be known already, or mined: nodes then complain about a nonce that is too low.
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

    /// Returns what became of a transaction; `None` while it is in no block. The endpoints must agree.
    ///
    /// # Errors
    ///
    /// [`NodeError`].
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

/// Returns whether an error is about the transaction itself. Other codes are about the node: its limits, its faults.
const fn is_refusal(code: i64) -> bool {
    // Geth, EIP-1474, OpenEthereum and its successors, and an execution that reverts.
    matches!(code, -32_000 | -32_003 | -32_010 | 3)
}
