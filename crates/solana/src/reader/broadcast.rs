//! Sends transactions, and reads their status.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use countersign_core::chains::Network;
use countersign_core::json::Cursor;
use countersign_core::reader::{
    Agree, Ask, Fault, Identity, Known, NotTaken, Question, Replies, Reply, Request, Sending, Sent, Submission,
};
use countersign_core::{Code, Refusal};
use solana_hash::Hash;
use solana_signature::Signature;
use solana_transaction::versioned::VersionedTransaction;
use zeroize::Zeroizing;

use super::account::{self, Accounts};
use super::context::{read_is_valid, request_is_valid};
use super::{FINALIZED, identity};
use crate::nonce::{ACCOUNT_LENGTH, UsedNonce};
use crate::read;

/// Decodes a transaction that is to be sent, and requires that it has the stated id. Returns it with its base64 form.
///
/// # Errors
///
/// [`Code::TransactionMismatch`] at `/payload` or `/id`.
pub fn decode(submission: &Submission) -> Result<(VersionedTransaction, Zeroizing<String>), Refusal> {
    let refuse = |at, reason| Refusal::new(Code::TransactionMismatch, at).with_reason(reason);
    let bytes = hex::decode(submission.payload.as_bytes()).map_err(|_| refuse("/payload", "the transaction is not in hex"))?;
    let transaction = read::transaction(&bytes).ok_or_else(|| refuse("/payload", "the bytes are not one transaction"))?;
    let id = transaction.signatures.first().map(ToString::to_string).unwrap_or_default();
    if submission.id != id {
        return Err(refuse("/id", "the transaction has another id").with_expected(id).with_actual(&submission.id));
    }
    Ok((transaction, Zeroizing::new(STANDARD.encode(bytes))))
}

/// Sends a transaction to one endpoint, without a simulation or retries by the node. If the node refuses it, reads whether it is on chain
/// already.
///
/// The first round only asks for the identity, and whether the blockhash is still valid or the nonce account still stores the nonce, so that
/// no transaction is sent to another chain or after its time: a redemption would show the secret for nothing.
pub type Broadcast = countersign_core::reader::Broadcast<Sender>;

/// A signed transaction, as [`Broadcast`] sends it.
pub struct Sender {
    identity: Identity,
    id: String,
    lifetime: Lifetime,
    /// The transaction in base64.
    payload: Zeroizing<String>,
}

/// What ends the time in which a transaction can be included.
enum Lifetime {
    Blockhash(Hash),
    Nonce(UsedNonce),
}

impl fmt::Debug for Sender {
    /// Leaves out the payload, because that of a redemption contains the secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sender({})", self.id)
    }
}

impl Sending for Sender {
    fn decode(submission: &Submission, _: &Known) -> Result<Self, Refusal> {
        let (identity, (transaction, payload)) = (identity(&submission.network)?, decode(submission)?);
        let message = &transaction.message;
        let lifetime = UsedNonce::of(message).map_or_else(|| Lifetime::Blockhash(*message.recent_blockhash()), Lifetime::Nonce);
        Ok(Self { identity, id: submission.id.clone(), lifetime, payload })
    }

    fn identity(&self) -> Identity {
        self.identity.clone()
    }

    fn before(&self) -> Option<Request> {
        // Another endpoint has confirmed the block already. This one may be slightly behind, so its newest block counts.
        Some(match &self.lifetime {
            Lifetime::Blockhash(blockhash) => request_is_valid(blockhash, "processed"),
            Lifetime::Nonce(used) => account::get_part(&used.nonce.account, "processed", ACCOUNT_LENGTH),
        })
    }

    fn check(&self, reply: &Reply<'_>) -> Result<Option<NotTaken>, Fault> {
        // An endpoint that does not say is sent the transaction: it has most likely been valid a moment ago.
        let Ok(Ok(cursor)) = reply.json_or_error() else { return Ok(None) };
        let (is_valid, why) = match &self.lifetime {
            Lifetime::Nonce(used) => {
                let accounts = Accounts::read(&cursor, 1)?;
                let is_stored = accounts.get(0).is_some_and(|account| used.is_stored(&account.owner, &account.data));
                (is_stored, "the nonce account stores another nonce or has another authority, or there is no such account")
            }
            Lifetime::Blockhash(_) => (read_is_valid(reply)?, "the blockhash is unknown, or no longer valid"),
        };
        Ok((!is_valid).then(|| NotTaken::Invalid(why.to_owned())))
    }

    fn send(&self) -> Request {
        let options = r#"{"encoding":"base64","skipPreflight":true,"maxRetries":0}"#;
        Request::json_rpc("sendTransaction", format!(r#"["{}",{options}]"#, self.payload.as_str()))
    }

    fn read_sent(&self, reply: &Reply<'_>) -> Result<Result<Sent, NotTaken>, Fault> {
        match reply.json_or_error()? {
            Ok(cursor) if cursor.text()? == self.id => Ok(Ok(Sent::Accepted)),
            Ok(cursor) => Err(cursor.refuse(Code::TransactionMismatch).with_expected(self.id.as_str()).into()),
            Err(error) if is_refusal(error.code) => Ok(Err(NotTaken::Invalid(error.message.clone()))),
            Err(error) => Ok(Err(NotTaken::Failed(Fault::Rpc(error.clone())))),
        }
    }

    fn find(&self) -> Request {
        statuses(&self.id)
    }

    fn read_found(&self, reply: &Reply<'_>) -> Result<Option<Sent>, Fault> {
        Ok(read_status(&reply.json()?)?.map(|_| Sent::Accepted))
    }
}

/// Returns whether an error code concerns the transaction itself. Other codes concern the node: its limits and its faults.
const fn is_refusal(code: i64) -> bool {
    // In this order: failed simulation, invalid signature, failed precompile, parameters that are not a transaction.
    matches!(code, -32_002 | -32_003 | -32_006 | -32_602)
}

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

impl TransactionStatus {
    /// Returns whether the transaction is in a finalized block.
    #[must_use]
    pub const fn is_finalized(&self) -> bool {
        matches!(self, Self::Landed { is_finalized: true, .. })
    }
}

impl Agree for TransactionStatus {
    type Key = Self;

    /// Returns the status without what differs between endpoints at different heights: whether the block is finalized.
    fn key(&self) -> Self {
        match *self {
            Self::Landed { slot, success, .. } => Self::Landed { slot, success, is_finalized: false },
            other => other,
        }
    }
}

/// Which transaction is looked up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatusQuery {
    network: Network,
    id: Signature,
    last_valid_block_height: u64,
}

impl StatusQuery {
    /// Creates the query for a transaction. `last_valid_block_height` is the block height up to which its blockhash is valid.
    #[must_use]
    pub fn new(network: &Network, id: Signature, last_valid_block_height: u64) -> Self {
        Self { network: network.clone(), id, last_valid_block_height }
    }
}

/// Reads the status of a transaction.
pub type Status = Ask<StatusQuery>;

impl Question for StatusQuery {
    type Output = TransactionStatus;

    fn identity(&self) -> Result<Identity, Refusal> {
        identity(&self.network)
    }

    fn requests(&self) -> Vec<Request> {
        let height = Request::json_rpc("getBlockHeight", format!(r#"[{{"commitment":"{FINALIZED}"}}]"#));
        vec![statuses(&self.id.to_string()), height]
    }

    fn read(&self, replies: &Replies<'_>, _: &Known) -> Result<TransactionStatus, Fault> {
        let height = replies.json(1)?.integer()?;
        Ok(match read_status(&replies.json(0)?)? {
            Some(landed) => landed,
            // The height is that of a finalized block, which no block with the transaction can replace.
            None if height > self.last_valid_block_height => TransactionStatus::Expired,
            None => TransactionStatus::Pending,
        })
    }
}

pub(super) fn statuses(id: &str) -> Request {
    Request::json_rpc("getSignatureStatuses", format!(r#"[["{id}"],{{"searchTransactionHistory":true}}]"#))
}

/// Reads the status of one transaction; `None` if the endpoint does not know it.
pub(super) fn read_status(cursor: &Cursor<'_, '_>) -> Result<Option<TransactionStatus>, Refusal> {
    let members = cursor.object()?;
    let value = members.need("value")?;
    let mut all = value.array()?;
    let (Some(status), None) = (all.next(), all.next()) else { return Err(value.at().refuse(Code::WrongType).with_expected("one status")) };
    if status.is_null() {
        return Ok(None);
    }
    let members = status.object()?;
    let is_finalized = match members.get("confirmationStatus") {
        Some(mark) => mark.text()? == FINALIZED,
        None => false,
    };
    let (slot, success) = (members.need("slot")?.integer()?, read::error(&members)?.is_none());
    Ok(Some(TransactionStatus::Landed { slot, success, is_finalized }))
}
