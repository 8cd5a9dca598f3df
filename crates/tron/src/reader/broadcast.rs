//! Broadcasts transactions.

use std::fmt;

use alloy_primitives::{B256, hex};
use countersign_core::json::Node;
use countersign_core::reader::{Fault, Identity, Known, Machine, Replies, Request, Sent, Submission, Turn};
use countersign_core::{Code, Refusal};
use serde_json::json;
use zeroize::Zeroizing;

use super::{AFTER_THE_END, View, chain_id, failed, hash, post, value, words};
use crate::SignedTronTransaction;

/// Broadcasts a signed transaction.
///
/// The first round asks for nothing but the chain's identity, because the transaction may contain the secret and must reach no other
/// chain. If the endpoint refuses the transaction, a third round asks whether it has it already.
pub struct Broadcast {
    chain_id: u64,
    payload: Zeroizing<String>,
    id: B256,
    state: State,
}

/// What was asked last.
#[derive(Debug)]
enum State {
    /// The chain's identity alone.
    Identity,
    /// To broadcast the transaction.
    Sending,
    /// Whether the node has the transaction that it did not accept.
    Looking(Failed),
    Ended,
}

/// Why a node did not accept a transaction.
#[derive(Debug)]
enum Failed {
    /// The transaction itself is invalid.
    Invalid(String),
    /// The node is busy, has no peers, or has another problem.
    Busy(String),
}

impl fmt::Debug for Broadcast {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Broadcast({}, {:?})", self.id, self.state)
    }
}

impl Machine for Broadcast {
    type Subject = Submission;
    type Output = Sent;
    const MAX_ROUNDS: usize = 3;

    fn start(transaction: &Submission, _: &Known) -> Result<(Self, Vec<Request>), Refusal> {
        let (chain_id, id) = (chain_id(&transaction.network)?, check(transaction)?);
        Ok((Self { chain_id, payload: transaction.payload.clone(), id, state: State::Identity }, Vec::new()))
    }

    fn identity(&self) -> Identity {
        super::identity(self.chain_id)
    }

    fn answer(&mut self, replies: &Replies<'_>) -> Result<Turn<Sent>, Fault> {
        match std::mem::replace(&mut self.state, State::Ended) {
            State::Identity => {
                self.state = State::Sending;
                Ok(Turn::Ask(vec![post(View::Newest, "broadcasthex", &json!({"transaction": self.payload.as_str()}))]))
            }
            State::Sending => match read_answer(&value(&replies.get(0)?)?, self.id)? {
                None => Ok(Turn::Done(Sent::Accepted)),
                // The transaction may be in a block already, and have expired since.
                Some(why) => {
                    self.state = State::Looking(why);
                    Ok(Turn::Ask(vec![post(View::Newest, "gettransactionbyid", &json!({"value": hex::encode(self.id)}))]))
                }
            },
            State::Looking(why) => {
                let node = value(&replies.get(0)?)?;
                let found = node.object()?.get("txID").map(|found| hash(&found)).transpose()?;
                match why {
                    _ if found == Some(self.id.0) => Ok(Turn::Done(Sent::Accepted)),
                    Failed::Invalid(why) => Ok(Turn::Done(Sent::rejected(&why))),
                    Failed::Busy(why) => Err(failed(&why)),
                }
            }
            State::Ended => Err(AFTER_THE_END),
        }
    }
}

/// Computes the id of a stored transaction, and requires that it is the stored id.
fn check(transaction: &Submission) -> Result<B256, Refusal> {
    let refuse = |at, reason| Refusal::new(Code::TransactionMismatch, at).with_reason(reason);
    let bytes = hex::decode(transaction.payload.as_str()).map_err(|_| refuse("/payload", "the transaction is not in hex"))?;
    let id = SignedTronTransaction::from_bytes(&bytes).map_err(|refusal| refusal.under("/payload"))?.tx_id();
    if !hex::encode(id).eq_ignore_ascii_case(&transaction.id) {
        let refusal = refuse("/id", "the transaction has another id");
        return Err(refusal.with_expected(hex::encode(id)).with_actual(&transaction.id));
    }
    Ok(id)
}

/// Reads the answer to a broadcast; `None` if the node accepted the transaction or already had it.
fn read_answer(node: &Node<'_, '_>, id: B256) -> Result<Option<Failed>, Refusal> {
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
        None | Some("SUCCESS") if is_accepted => None,
        Some("DUP_TRANSACTION_ERROR") => None,
        Some(
            code @ ("SIGERROR"
            | "CONTRACT_VALIDATE_ERROR"
            | "CONTRACT_EXE_ERROR"
            | "BANDWITH_ERROR"
            | "TAPOS_ERROR"
            | "TOO_BIG_TRANSACTION_ERROR"
            | "TRANSACTION_EXPIRATION_ERROR"),
        ) => Some(Failed::Invalid(format!("{code}: {message}"))),
        code => Some(Failed::Busy(format!("{}: {message}", code.unwrap_or("no code")))),
    })
}
