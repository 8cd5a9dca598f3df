//! Sends transactions, and reads how they ended.

use std::fmt;
use std::ops::RangeInclusive;

use countersign_core::reader::{
    self, Equal, Fault, Identity, Known, NotTaken, Question, Replies, Reply, Request, RpcError, Sending, Sent, Submission,
};
use countersign_core::{BlockHeight, Code, Refusal, text};
use sui_sdk_types::bcs::ToBcs as _;
use sui_sdk_types::{Digest, SignedTransaction, Transaction, TransactionExpiration, UserSignature};
use zeroize::Zeroizing;

use super::fields::{effects, epoch, execution, execution_error, found_epoch, method, transaction};
use super::proto::{Message, Writer};
use super::{On, aborts, grpc, identity, objects};
use crate::balance;
use crate::received::Execution;

/// The fields that are read of a transaction that was sent.
pub(super) const EXECUTED: [&str; 3] = ["digest", "effects", "checkpoint"];

/// The outcome of a transaction in a checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Receipt {
    /// The sequence number of its checkpoint.
    pub checkpoint: BlockHeight,
    /// Whether it succeeded. A transaction that failed has paid for its gas, and can never be executed again.
    pub success: bool,
}

/// Asks for the receipt of a transaction; `None` while it is not in a checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "it has one value")]
pub struct TransactionReceipt(pub Digest);

impl Question for On<TransactionReceipt> {
    type Output = Equal<Option<Receipt>>;

    fn identity(&self) -> Result<Identity, Refusal> {
        identity(&self.network)
    }

    fn requests(&self) -> Vec<Request> {
        vec![objects::request_transaction(self.subject.0, &EXECUTED)]
    }

    fn read(&self, replies: &Replies<'_>, _: &Known) -> Result<Equal<Option<Receipt>>, Fault> {
        let Some(executed) = objects::read_transaction(&replies.get(0)?, self.subject.0)? else { return Ok(Equal(None)) };
        let success = failure(executed)?.is_none();
        Ok(Equal(executed.get::<u64>(transaction::CHECKPOINT)?.map(|checkpoint| Receipt { checkpoint: checkpoint.into(), success })))
    }
}

/// Returns why a transaction failed, in the node's words, after what the contract's error means; `None` if it succeeded.
pub(super) fn failure(executed: Message<'_>) -> Result<Option<String>, Fault> {
    let effects: Message<'_> = executed.need(transaction::EFFECTS)?;
    let status: Message<'_> = effects.need(effects::STATUS)?;
    if status.need(execution::SUCCESS)? {
        return Ok(None);
    }
    let error: Option<Message<'_>> = status.get(execution::ERROR)?;
    let words = error.map(|error| error.get(execution_error::DESCRIPTION)).transpose()?.flatten();
    let words = text::escape_untrusted(words.unwrap_or("no reason given"));
    Ok(Some(match aborts::meaning(executed)? {
        Some(meaning) => format!("{meaning}: {words}"),
        None => words,
    }))
}

/// Writes a transaction or a signature as its BCS bytes.
pub(super) fn bcs(bytes: &[u8]) -> Writer {
    Writer::default().bytes(1, Writer::default().bytes(2, bytes))
}

/// Sends a signed transaction to one endpoint. The payload is the JSON form of an [`Execution`].
///
/// If the transaction is valid in certain epochs only, the first round asks for the current one, so that it is not sent at another time: a
/// redemption would show the secret for nothing. If the node does not confirm that it has executed the transaction, it is looked up: the
/// first error that nodes report is that its coins are spent, although the transaction itself has spent them. A transaction that was
/// executed and failed is rejected.
pub type Broadcast = reader::Broadcast<Sender>;

/// A signed transaction, in the form in which nodes take it.
pub struct Sender {
    identity: Identity,
    id: Digest,
    /// The epochs in which it is valid; `None` if it is in all of them.
    epochs: Option<RangeInclusive<u64>>,
    bytes: Zeroizing<Vec<u8>>,
    signatures: Vec<Vec<u8>>,
}

impl fmt::Debug for Sender {
    /// Leaves out the bytes, because those of a redemption contain the secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sender({})", self.id)
    }
}

/// Decodes a transaction that is to be sent, and requires that it has the stated id.
///
/// # Errors
///
/// [`Code::TransactionMismatch`] at `/id`, and another [`Refusal`] below `/payload` if it cannot be decoded.
pub fn decode(submission: &Submission) -> Result<SignedTransaction, Refusal> {
    let signed = Execution::from_json(submission.payload.as_bytes()).map_err(|refusal| refusal.with_prefix("/payload"))?;
    let id = signed.transaction.digest().to_base58();
    if submission.id != id {
        let refusal = Refusal::new(Code::TransactionMismatch, "/id").with_reason("the transaction has another id");
        return Err(refusal.with_expected(id).with_actual(&submission.id));
    }
    Ok(signed)
}

impl Sending for Sender {
    fn decode(submission: &Submission, _: &Known) -> Result<Self, Refusal> {
        let signed = decode(submission)?;
        let id = signed.transaction.digest();
        let bytes = signed.transaction.to_bcs().map_err(|_| Refusal::new(Code::Internal, "/payload/tx_bytes"))?;
        let signatures = signed.signatures.iter().map(UserSignature::to_bytes).collect();
        let epochs = epochs(&signed.transaction);
        Ok(Self { identity: identity(&submission.network)?, id, epochs, bytes: Zeroizing::new(bytes), signatures })
    }

    fn identity(&self) -> Identity {
        self.identity.clone()
    }

    fn before(&self) -> Option<Request> {
        self.epochs.as_ref().map(|_| request_epoch())
    }

    fn check(&self, reply: &Reply<'_>) -> Result<Option<NotTaken>, Fault> {
        // An endpoint that does not say is sent the transaction: the epochs were read when it was prepared.
        let current = match read_epoch(reply) {
            Err(Fault::Rpc(_)) => return Ok(None),
            current => current?,
        };
        let is_valid = self.epochs.as_ref().is_none_or(|epochs| epochs.contains(&current));
        Ok((!is_valid).then(|| NotTaken::Invalid(format!("the transaction is not valid in epoch {current}, the current one"))))
    }

    fn send(&self) -> Request {
        let message = Writer::default().bytes(1, bcs(&self.bytes));
        let message = self.signatures.iter().fold(message, |message, signature| message.bytes(2, bcs(signature)));
        grpc::request(method::EXECUTE_TRANSACTION, &message.mask(3, &EXECUTED))
    }

    fn read_sent(&self, reply: &Reply<'_>) -> Result<Result<Sent, NotTaken>, Fault> {
        let sent = grpc::read(reply).and_then(|message| objects::requested(message, self.id)).and_then(outcome);
        Ok(sent.map_err(|fault| match fault {
            Fault::Rpc(RpcError { code: grpc::INVALID_ARGUMENT | grpc::FAILED_PRECONDITION, message, .. }) => NotTaken::Invalid(message),
            // Other errors concern the node: its limits and its faults.
            fault => NotTaken::Failed(fault),
        }))
    }

    fn find(&self) -> Request {
        objects::request_transaction(self.id, &EXECUTED)
    }

    fn read_found(&self, reply: &Reply<'_>) -> Result<Option<Sent>, Fault> {
        objects::read_transaction(reply, self.id)?.map(outcome).transpose()
    }
}

/// Returns the epochs in which a transaction is valid, and each of its reservations with it; `None` if it is in all of them, or if that is
/// not known.
pub(super) fn epochs(transaction: &Transaction) -> Option<RangeInclusive<u64>> {
    let by_expiration = match &transaction.expiration {
        TransactionExpiration::Epoch(last) => Some(0..=*last),
        TransactionExpiration::ValidDuring { min_epoch, max_epoch, .. } | TransactionExpiration::Validity { min_epoch, max_epoch, .. } => {
            Some(min_epoch.unwrap_or(0)..=max_epoch.unwrap_or(u64::MAX))
        }
        _ => None,
    };
    let reserved = transaction.gas_payment.objects.iter().filter_map(balance::reserved);
    let all = by_expiration.into_iter().chain(reserved.map(|(_, epoch)| balance::valid_in(epoch)));
    all.reduce(|one, other| *one.start().max(other.start())..=*one.end().min(other.end()))
}

/// Creates the request for the number of the current epoch.
pub(super) fn request_epoch() -> Request {
    grpc::request(method::GET_EPOCH, &Writer::default().mask(2, &["epoch"]))
}

/// Reads the number of the current epoch.
pub(super) fn read_epoch(reply: &Reply<'_>) -> Result<u64, Fault> {
    let found: Message<'_> = grpc::read(reply)?.need(found_epoch::EPOCH)?;
    found.need(epoch::EPOCH)
}

/// Returns what an executed transaction says about itself.
fn outcome(executed: Message<'_>) -> Result<Sent, Fault> {
    Ok(match failure(executed)? {
        None => Sent::Accepted,
        Some(why) => Sent::Rejected(format!("it was executed and failed: {why}")),
    })
}
