//! Sends a signed transaction.

use std::fmt;

use bitcoin::consensus::encode::deserialize_hex;
use bitcoin::{Transaction, Txid};
use countersign_core::reader::{Fault, Identity, Known, Machine, Replies, Reply, Request, RpcError, Sent, Submission, Turn};
use countersign_core::{Code, Refusal};

use super::{NamedChain, esplora, parse, rpc};

/// The messages of a node that already has a transaction.
pub(super) const KNOWN: [&str; 4] = ["txn-already-in-mempool", "txn-already-known", "already in block chain", "already in utxo set"];

/// The codes of a transaction that is malformed, whose inputs are missing or spent, or that breaks the rules.
const REJECTED: [i64; 3] = [-22, -25, -26];

/// The status of an Esplora server whose node returned an error.
const BAD_REQUEST: u16 = 400;

/// Sends a signed transaction to one endpoint.
///
/// The first round asks for the chain's identity alone, so that the transaction, which may contain the secret, is not sent to an endpoint
/// of another chain. If the endpoint refuses the transaction, the last round looks it up: the endpoint may know it already.
pub struct Broadcast {
    chain: NamedChain,
    submission: Submission,
    txid: Txid,
    is_rpc: bool,
    state: State,
}

#[derive(Debug)]
enum State {
    Identity,
    Sending,
    /// Refused with this error, and looked up.
    LookingUp(RpcError),
}

impl fmt::Debug for Broadcast {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Broadcast({}, {:?})", self.txid, self.state)
    }
}

impl Machine for Broadcast {
    type Subject = Submission;
    type Output = Sent;
    const MAX_ROUNDS: usize = 3;

    fn start(submission: &Submission, known: &Known) -> Result<(Self, Vec<Request>), Refusal> {
        let chain = NamedChain::from_network(&submission.network, "")?;
        let (_, txid) = decode(submission)?;
        Ok((Self { chain, submission: submission.clone(), txid, is_rpc: known.is_rpc(), state: State::Identity }, Vec::new()))
    }

    fn identity(&self) -> Identity {
        self.chain.identity(self.is_rpc)
    }

    fn answer(&mut self, replies: &Replies<'_>) -> Result<Turn<Sent>, Fault> {
        let error = match &self.state {
            State::Identity => {
                self.state = State::Sending;
                let hex = &self.submission.payload;
                return Ok(Turn::Ask(vec![if self.is_rpc { rpc::send(hex) } else { esplora::send(hex) }]));
            }
            State::Sending => match self.read(&replies.get(0)?)? {
                None => return Ok(Turn::Done(Sent::Accepted)),
                Some(error) => error,
            },
            State::LookingUp(error) => {
                let reply = replies.get(0)?;
                let is_known =
                    if self.is_rpc { rpc::read_raw(&reply)?.is_some() } else { esplora::read_status(&reply, self.txid)?.is_some() };
                return match error {
                    _ if is_known => Ok(Turn::Done(Sent::Accepted)),
                    error if REJECTED.contains(&error.code) || !self.is_rpc => Ok(Turn::Done(Sent::rejected(&error.message))),
                    error => Err(Fault::Rpc(error.clone())),
                };
            }
        };
        // Without a transaction index, a node does not find a mined transaction by its id. Its message shows that it knows it.
        if self.is_rpc && KNOWN.iter().any(|known| error.message.contains(known)) {
            return Ok(Turn::Done(Sent::Accepted));
        }
        self.state = State::LookingUp(error);
        Ok(Turn::Ask(vec![if self.is_rpc { rpc::transaction(self.txid, None) } else { esplora::status(self.txid) }]))
    }
}

impl Broadcast {
    /// Reads the reply to the transaction: `None` if it was accepted, or the error.
    fn read(&self, reply: &Reply<'_>) -> Result<Option<RpcError>, Fault> {
        let node = match reply {
            Reply::Status { status: BAD_REQUEST, body } => {
                let text = String::from_utf8_lossy(body.get(..1_024).unwrap_or(body));
                return Ok(Some(RpcError::new(i64::from(BAD_REQUEST), &text, None)));
            }
            Reply::Bytes(body) => {
                return self.check(std::str::from_utf8(body).ok().and_then(|text| text.trim().parse().ok()));
            }
            other => other.json_or_error()?,
        };
        match node {
            Ok(node) => self.check(Some(parse::txid(&node)?)),
            Err(error) => Ok(Some(error.clone())),
        }
    }

    /// Requires that the endpoint reports the id of the transaction that was sent.
    fn check(&self, id: Option<Txid>) -> Result<Option<RpcError>, Fault> {
        if id == Some(self.txid) {
            return Ok(None);
        }
        let refusal = Refusal::new(Code::TransactionIdMalformed, "").with_expected(self.txid.to_string());
        Err(id.map_or(refusal.clone(), |id| refusal.with_actual(id.to_string())).into())
    }
}

/// Decodes a stored transaction, and requires that it has the stored id. Returns it with its id.
///
/// # Errors
///
/// [`Code::TransactionMalformed`].
pub fn decode(submission: &Submission) -> Result<(Transaction, Txid), Refusal> {
    let transaction: Transaction =
        deserialize_hex(&submission.payload).map_err(|_| Refusal::new(Code::TransactionMalformed, "/payload"))?;
    let txid = transaction.compute_txid();
    if !submission.id.eq_ignore_ascii_case(&txid.to_string()) {
        let refusal = Refusal::new(Code::TransactionMalformed, "/id");
        return Err(refusal.with_expected(txid.to_string()).with_actual(&submission.id));
    }
    Ok((transaction, txid))
}
