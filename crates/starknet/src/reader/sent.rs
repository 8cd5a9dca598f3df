//! A transaction that was sent, with its signature.

use countersign_core::Refusal;
use countersign_core::reader::{Ask, Equal, Fault, Identity, Judged, Known, Question, Replies, Request};
use serde_json::json;
use starknet_types_core::felt::Felt;

use super::broadcast::UNKNOWN;
use super::{check_version, hex, spec_version};
use crate::InvokeTransaction;

/// The transaction with this hash on a chain. An endpoint can withhold it, or claim that it has a type or version that is not read. It cannot
/// change what is signed. The hash does not cover the signature: that endpoints must agree protects it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "callers construct it")]
pub struct SentQuery {
    /// The chain id.
    pub chain_id: Felt,
    /// The transaction's hash.
    pub id: Felt,
}

/// Reads the transaction with a hash; `None` if the endpoint does not know it.
pub type Sent = Ask<SentQuery>;

impl Question for SentQuery {
    type Output = Judged<Equal<Option<InvokeTransaction>>>;

    fn identity(&self) -> Result<Identity, Refusal> {
        Ok(super::identity(self.chain_id))
    }

    fn requests(&self) -> Vec<Request> {
        vec![spec_version(), Request::json_rpc("starknet_getTransactionByHash", json!({"transaction_hash": hex(self.id)}))]
    }

    fn read(&self, replies: &Replies<'_>, _: &Known) -> Result<Self::Output, Fault> {
        check_version(&replies.get(0)?)?;
        let cursor = match replies.get(1)?.json_or_error()? {
            Ok(cursor) => cursor,
            Err(error) if error.code == UNKNOWN => return Ok(Judged::unknown()),
            Err(error) => return Err(Fault::Rpc(error.clone())),
        };
        let id_of = |read: Option<&InvokeTransaction>| Some(hex(read?.hashes(self.chain_id).tx_hash));
        Judged::found(InvokeTransaction::read(&cursor), hex(self.id), id_of)
    }
}
