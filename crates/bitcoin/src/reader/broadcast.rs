//! Sends a signed transaction.

use bitcoin::consensus::encode::deserialize_hex;
use bitcoin::{Transaction, Txid};
use countersign_core::reader::{self, Fault, Identity, Known, NotTaken, Reply, Request, RpcError, Sending, Sent, Submission};
use countersign_core::{Code, Refusal};

use super::{NamedChain, esplora, parse, rpc};

/// The messages of a node that already has a transaction.
pub(super) const KNOWN: [&str; 4] = ["txn-already-in-mempool", "txn-already-known", "already in block chain", "already in utxo set"];

/// The codes of a transaction that is malformed, whose inputs are missing or spent, or that breaks the rules.
const REJECTED: [i64; 3] = [-22, -25, -26];

/// Sends a signed transaction to one endpoint.
pub type Broadcast = reader::Broadcast<Sender>;

/// A signed transaction, and the protocol of the endpoint that it is sent to.
#[derive(Debug)]
pub struct Sender {
    chain: NamedChain,
    submission: Submission,
    txid: Txid,
    is_rpc: bool,
}

impl Sending for Sender {
    fn decode(submission: &Submission, known: &Known) -> Result<Self, Refusal> {
        let chain = NamedChain::from_network(&submission.network, "")?;
        let (_, txid) = decode(submission)?;
        Ok(Self { chain, submission: submission.clone(), txid, is_rpc: known.is_rpc() })
    }

    fn identity(&self) -> Identity {
        self.chain.identity(self.is_rpc)
    }

    fn send(&self) -> Request {
        let hex = &self.submission.payload;
        if self.is_rpc { rpc::send(hex) } else { esplora::send(hex) }
    }

    fn read_sent(&self, reply: &Reply<'_>) -> Result<Result<Sent, NotTaken>, Fault> {
        let error = match reply {
            Reply::Status { status: esplora::BAD_REQUEST, body } => {
                let text = String::from_utf8_lossy(body.get(..1_024).unwrap_or(body));
                RpcError::new(i64::from(esplora::BAD_REQUEST), &text, None)
            }
            Reply::Bytes(body) => {
                self.check(std::str::from_utf8(body).ok().and_then(|text| text.trim().parse().ok()))?;
                return Ok(Ok(Sent::Accepted));
            }
            other => match other.json_or_error()? {
                Ok(cursor) => {
                    self.check(Some(parse::txid(&cursor)?))?;
                    return Ok(Ok(Sent::Accepted));
                }
                Err(error) => error.clone(),
            },
        };
        // Without a transaction index, a node does not find a mined transaction by its id. Its message shows that it knows it.
        if self.is_rpc && KNOWN.iter().any(|known| error.message.contains(known)) {
            return Ok(Ok(Sent::Accepted));
        }
        let is_invalid = !self.is_rpc || REJECTED.contains(&error.code);
        Ok(Err(if is_invalid { NotTaken::Invalid(error.message) } else { NotTaken::Failed(Fault::Rpc(error)) }))
    }

    fn find(&self) -> Request {
        if self.is_rpc { rpc::transaction(self.txid, None) } else { esplora::status(self.txid) }
    }

    fn read_found(&self, reply: &Reply<'_>) -> Result<Option<Sent>, Fault> {
        let is_known = if self.is_rpc { rpc::read_raw(reply)?.is_some() } else { esplora::read_status(reply, self.txid)?.is_some() };
        Ok(is_known.then_some(Sent::Accepted))
    }
}

impl Sender {
    /// Requires that the endpoint reports the id of the transaction that was sent.
    fn check(&self, id: Option<Txid>) -> Result<(), Refusal> {
        if id == Some(self.txid) {
            return Ok(());
        }
        let refusal = Refusal::new(Code::TransactionIdMalformed, "").with_expected(self.txid.to_string());
        Err(id.map_or(refusal.clone(), |id| refusal.with_actual(id.to_string())))
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
