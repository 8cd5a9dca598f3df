//! What becomes of a transaction that was sent.

use std::fmt;

use countersign_core::chains::ChainProfile;
use countersign_core::reader::{self, Fault, Identity, Known, Replies, Reply, Request, RpcError, Submission, Trace, Tracing};
use countersign_core::{Code, Refusal};
use serde_json::json;
use starknet_types_core::felt::Felt;

use super::block::{self, Block, LATEST, ON_L1};
use super::broadcast::{self, SignedInvoke, TransactionStatus};
use super::{Endpoint, check_version, hex, spec_version};
use crate::felt;

/// Reads what becomes of a transaction.
///
/// It is dead if the endpoint does not know it, although the account's nonce at a final block is above that of the transaction: another
/// transaction has used the nonce. It is also dead if it reverted in a final block. Final are blocks that L1 has accepted, and those with
/// more blocks above them than usually settle a payment.
///
/// A rejected transaction counts as one that the endpoint does not know: whoever has it can send it again until its nonce is used.
pub type FateOf = reader::FateOf<Tracer>;

/// A transaction whose fate is read.
pub struct Tracer {
    endpoint: Endpoint,
    id: Felt,
    sender: Felt,
    nonce: Felt,
    /// The number of blocks that usually settle a payment.
    settle: u64,
    /// The height of the newest final block.
    mark: Option<u64>,
}

impl fmt::Debug for Tracer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tracer({})", hex(self.id))
    }
}

impl Tracing for Tracer {
    fn decode(submission: &Submission, known: &Known) -> Result<Self, Refusal> {
        let SignedInvoke { chain_id, id, transaction } = SignedInvoke::new(submission)?;
        let profile = ChainProfile::of("", &submission.network);
        let settle = profile.finality.settle.units(profile.pace.counted(None));
        let (sender, nonce) = (transaction.sender_address, transaction.nonce);
        Ok(Self { endpoint: Endpoint::new(chain_id, known), id, sender, nonce, settle, mark: None })
    }

    fn identity(&self) -> Identity {
        super::identity(self.endpoint.chain_id)
    }

    fn find(&self) -> Vec<Request> {
        let receipt = Request::json_rpc("starknet_getTransactionReceipt", json!({"transaction_hash": hex(self.id)}));
        vec![broadcast::status_of(self.id), receipt]
    }

    fn read_found(&self, replies: &Replies<'_>) -> Result<Trace, Fault> {
        Ok(match TransactionStatus::read(&replies.get(0)?)? {
            // It may be in a block all the same, if another node behind the same address is behind.
            None if has_receipt(&replies.get(1)?)? => Trace::Waiting,
            None => Trace::Unknown,
            Some(TransactionStatus::Pending) => Trace::Waiting,
            Some(TransactionStatus::AcceptedOnL2 { success: true } | TransactionStatus::AcceptedOnL1 { success: true }) => Trace::Included,
            Some(TransactionStatus::AcceptedOnL1 { success: false }) => {
                Trace::Failed("it reverted in a block that L1 has accepted".to_owned())
            }
            Some(TransactionStatus::AcceptedOnL2 { success: false }) => {
                let height = self.height(&replies.get(1)?)?;
                let is_final = height.is_some_and(|height| self.mark.is_some_and(|mark| height <= mark));
                if is_final { Trace::Failed("it reverted in a final block".to_owned()) } else { Trace::Waiting }
            }
        })
    }

    fn marks(&self) -> Vec<Request> {
        vec![spec_version(), block::by_tag(LATEST), block::by_tag(ON_L1)]
    }

    fn read_marks(&mut self, replies: &Replies<'_>) -> Result<Option<Vec<Request>>, Fault> {
        check_version(&replies.get(0)?)?;
        let latest = self.endpoint.newest(&replies.json(1)?)?;
        let on_l1 = match replies.get(2)?.json_or_error()? {
            Ok(cursor) => Some(Block::read(&cursor)?).filter(|block| block.is_on_l1 && block.number <= latest.number),
            Err(_) => None,
        };
        self.mark = on_l1.map(|block| block.number).max(latest.number.checked_sub(self.settle));
        let nonce = |mark| json!({"block_id": {"block_number": mark}, "contract_address": hex(self.sender)});
        Ok(self.mark.map(|mark| vec![Request::json_rpc("starknet_getNonce", nonce(mark))]))
    }

    fn read_proof(&mut self, replies: &Replies<'_>) -> Result<Option<String>, Fault> {
        let next = felt::read(replies.json(0)?)?;
        Ok((next > self.nonce).then(|| format!("another transaction has used its nonce {}, in a final block", hex(self.nonce))))
    }

    fn learned(&self) -> Known {
        self.endpoint.learned.clone()
    }
}

impl Tracer {
    /// Reads the height of the transaction's block; `None` if the receipt names none.
    fn height(&self, reply: &Reply<'_>) -> Result<Option<u64>, Fault> {
        let cursor = reply.json()?;
        let members = cursor.object()?;
        let hash = members.need("transaction_hash")?;
        if felt::read(hash)? != self.id {
            return Err(hash.refuse(Code::TransactionMismatch).with_expected(hex(self.id)).into());
        }
        Ok(members.get("block_number").map(|number| number.integer()).transpose()?)
    }
}

/// Returns whether the endpoint has a receipt.
fn has_receipt(reply: &Reply<'_>) -> Result<bool, Fault> {
    match reply.json_or_error()? {
        Ok(_) => Ok(true),
        Err(RpcError { code: broadcast::UNKNOWN, .. }) => Ok(false),
        Err(_) => Err(reply.fault()),
    }
}
