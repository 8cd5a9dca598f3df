//! Broadcasts transactions.

use std::fmt;

use alloy_primitives::{B256, hex};
use countersign_core::reader::{self, Fault, Identity, Known, NotTaken, Reply, Request, Sending, Sent, Submission};
use countersign_core::{Code, Refusal};
use serde_json::json;
use zeroize::Zeroizing;

use super::{Block, View, chain_id, failed, hash, post, value, words};
use crate::SignedTronTransaction;

/// How long after the newest block a transaction that is sent must be valid, in milliseconds: five blocks, in which it reaches the witness
/// that makes the next one. Wallets let theirs wait a minute.
const MARGIN: u64 = 15_000;

/// Broadcasts a signed transaction. If the endpoint does not accept it, the endpoint is asked whether it has it already: the transaction
/// may be in a block, and have expired since.
///
/// The first round asks for the identity and the newest block, so that nothing is sent to another chain, or so late that no block contains
/// it: a redemption would show the secret for nothing. The reference block is not asked for: see `docs/spec/chains.md#tron`.
pub type Broadcast = reader::Broadcast<EncodedTransaction>;

/// A signed transaction in hex, with its id and its chain.
pub struct EncodedTransaction {
    chain_id: u64,
    payload: Zeroizing<String>,
    id: B256,
    /// Unix milliseconds.
    expiration: u64,
}

impl fmt::Debug for EncodedTransaction {
    /// Leaves out the transaction, because a redemption contains the secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EncodedTransaction({})", self.id)
    }
}

impl Sending for EncodedTransaction {
    fn decode(submission: &Submission, _: &Known) -> Result<Self, Refusal> {
        let (chain_id, signed) = (chain_id(&submission.network)?, decode(submission)?);
        Ok(Self { chain_id, payload: submission.payload.clone(), id: signed.tx_id(), expiration: expiration(&signed) })
    }

    fn identity(&self) -> Identity {
        super::identity(self.chain_id)
    }

    fn before(&self) -> Option<Request> {
        Some(Block::newest_request(View::Newest))
    }

    fn check(&self, reply: &Reply<'_>) -> Result<Option<NotTaken>, Fault> {
        // An endpoint that does not say is sent the transaction: the time was read when it was prepared.
        let newest = match Block::read_newest(reply) {
            Err(Fault::Rpc(_)) => return Ok(None),
            newest => newest?.millis,
        };
        let (code, expiration) = (Code::ExpirationPassed, self.expiration);
        let is_late = newest.saturating_add(MARGIN) >= expiration;
        let why = || format!("{code}: it expires at {expiration} ms, and the newest block is of {newest} ms: {}", code.remedy());
        Ok(is_late.then(|| NotTaken::Invalid(why())))
    }

    fn send(&self) -> Request {
        post(View::Newest, "broadcasthex", &json!({"transaction": self.payload.as_str()}))
    }

    fn read_sent(&self, reply: &Reply<'_>) -> Result<Result<Sent, NotTaken>, Fault> {
        let cursor = value(reply)?;
        let members = cursor.object()?;
        if let Some(named) = members.get("txid")
            && hash(&named)? != self.id.0
        {
            return Err(named.refuse(Code::TransactionMismatch).with_expected(hex::encode(self.id)).into());
        }
        let is_accepted = members.get("result").is_some_and(|result| result.bool() == Ok(true));
        let message = members.get("message").map(|message| words(&message)).unwrap_or_default();
        let code = members.get("code").map(|code| code.text()).transpose()?;
        Ok(match code {
            None | Some("SUCCESS") if is_accepted => Ok(Sent::Accepted),
            Some("DUP_TRANSACTION_ERROR") => Ok(Sent::Accepted),
            Some(
                code @ ("SIGERROR"
                | "CONTRACT_VALIDATE_ERROR"
                | "CONTRACT_EXE_ERROR"
                | "BANDWITH_ERROR"
                | "TAPOS_ERROR"
                | "TOO_BIG_TRANSACTION_ERROR"
                | "TRANSACTION_EXPIRATION_ERROR"),
            ) => Err(NotTaken::Invalid(format!("{code}: {message}"))),
            // The node is busy, has no peers, or has another problem.
            code => Err(NotTaken::Failed(failed(&format!("{}: {message}", code.unwrap_or("no code"))))),
        })
    }

    fn find(&self) -> Request {
        post(View::Newest, "gettransactionbyid", &json!({"value": hex::encode(self.id)}))
    }

    fn read_found(&self, reply: &Reply<'_>) -> Result<Option<Sent>, Fault> {
        let cursor = value(reply)?;
        let found = cursor.object()?.get("txID").map(|found| hash(&found)).transpose()?;
        Ok((found == Some(self.id.0)).then_some(Sent::Accepted))
    }
}

/// Returns when nodes stop accepting a transaction, in Unix milliseconds. A time before 1970 is over.
pub(super) fn expiration(signed: &SignedTronTransaction) -> u64 {
    u64::try_from(signed.transaction().raw.expiration).unwrap_or_default()
}

/// Decodes a transaction that is to be sent, and requires that it has the stated id.
///
/// # Errors
///
/// [`Code::TransactionMismatch`] at `/payload` or `/id`, and another [`Refusal`] below `/payload` if it cannot be decoded.
pub(super) fn decode(submission: &Submission) -> Result<SignedTronTransaction, Refusal> {
    let refuse = |at, reason| Refusal::new(Code::TransactionMismatch, at).with_reason(reason);
    let bytes = hex::decode(submission.payload.as_str()).map_err(|_| refuse("/payload", "the transaction is not in hex"))?;
    let signed = SignedTronTransaction::from_bytes(&bytes).map_err(|refusal| refusal.with_prefix("/payload"))?;
    let id = hex::encode(signed.tx_id());
    if !id.eq_ignore_ascii_case(&submission.id) {
        return Err(refuse("/id", "the transaction has another id").with_expected(id).with_actual(&submission.id));
    }
    Ok(signed)
}
