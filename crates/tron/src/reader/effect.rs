//! What a transaction did, also that of another account.

use alloy_primitives::{B256, hex};
use countersign_core::json::Cursor;
use countersign_core::reader::{Ask, Equal, Fault, Identity, Known, Question, Replies, Request};
use countersign_core::{Code, Refusal};
use serde_json::json;

use super::call::{Log, read_logs_of};
use super::receipt::has_succeeded;
use super::{OnChain, View, count, hash, post, value};
use crate::Address;

/// The transaction whose effect is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "it has one value")]
pub struct EffectOf(pub B256);

/// Reads what the transaction with an id did, which may be that of a contract with several owners or of a relay; `None` if the endpoint does
/// not have it in a block. What it means for an order, [`Deposit::find_payment`](crate::Deposit::find_payment) says.
pub type Effect = Ask<OnChain<EffectOf>>;

impl Question for OnChain<EffectOf> {
    type Output = Equal<Option<TransactionInfo>>;

    fn identity(&self) -> Result<Identity, Refusal> {
        Ok(super::identity(self.chain_id))
    }

    fn requests(&self) -> Vec<Request> {
        vec![post(View::Newest, "gettransactioninfobyid", &json!({"value": hex::encode(self.subject.0)}))]
    }

    fn read(&self, replies: &Replies<'_>, _: &Known) -> Result<Self::Output, Fault> {
        let cursor = value(&replies.get(0)?)?;
        let members = cursor.object()?;
        // Nodes answer with an empty object if they do not know the transaction.
        let Some(named) = members.get("id") else { return Ok(Equal(None)) };
        if hash(&named)? != self.subject.0.0 {
            return Err(named.refuse(Code::TransactionMismatch).with_expected(hex::encode(self.subject.0)).into());
        }
        Ok(Equal(Some(read_info(&cursor)?)))
    }
}

/// What `/wallet/gettransactioninfobyid` returns, as far as it says what a transaction did. [`Deposit::find_payment`] reads it.
///
/// [`Deposit::find_payment`]: crate::Deposit::find_payment
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TransactionInfo {
    /// The id of the transaction.
    pub transaction_id: B256,
    /// Whether it succeeded. A transaction that reverted or ran out of energy is in a block too.
    pub is_success: bool,
    /// The logs of all contracts, in order.
    pub logs: Vec<InfoLog>,
}

/// A log of a contract.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct InfoLog {
    /// The contract.
    pub address: Address,
    /// At most four words.
    pub topics: Vec<B256>,
    /// The data.
    pub data: Vec<u8>,
}

/// Reads the answer to `gettransactioninfobyid`. Nodes also know transactions that are in no block yet, which are refused.
pub(crate) fn read_info(info: &Cursor<'_, '_>) -> Result<TransactionInfo, Refusal> {
    let members = info.object()?;
    let transaction_id = hash(&members.need("id")?)?.into();
    if count(members.get("blockNumber"))? == 0 {
        return Err(members.at().key("blockNumber").refuse(Code::WrongType).with_reason("the transaction is in no block"));
    }
    let is_success = has_succeeded(&members)?;
    let logs = members.get("log").map(|logs| read_logs_of(|_| true, &logs)).transpose()?.unwrap_or_default();
    let logs = logs.into_iter().map(|Log { address, topics, data }| InfoLog { address: address.into(), topics, data }).collect();
    Ok(TransactionInfo { transaction_id, is_success, logs })
}
