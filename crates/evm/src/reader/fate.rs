//! What becomes of a transaction that was sent.

use alloy_consensus::Transaction as _;
use alloy_consensus::transaction::SignerRecoverable as _;
use alloy_primitives::{Address, B256, U256};
use countersign_core::chains::{Finality, KNOWN_CHAINS};
use countersign_core::reader::{self, Fault, Identity, Known, Replies, Request, Submission, Trace, Tracing};
use countersign_core::{Code, Refusal};
use serde_json::json;

use super::block::{self, Block};
use super::{at, broadcast, chain_id, quantity, receipt};

/// Reads what becomes of a transaction.
///
/// It is dead if it has no receipt, although the sender's nonce at the newest final block is above that of the transaction: another
/// transaction has used the nonce. It is also dead if it reverted in a block that is final. The final block is the one with the tag
/// `finalized`; on a chain without it, the one with the tag `safe`, if payments of any amount are final with that.
pub type FateOf = reader::FateOf<Tracer>;

/// A transaction whose fate is read.
#[derive(Debug)]
pub struct Tracer {
    chain_id: u64,
    id: B256,
    sender: Address,
    nonce: u64,
    known: Known,
    latest: Option<Block>,
    /// The newest final block.
    mark: Option<Block>,
}

impl Tracing for Tracer {
    fn decode(submission: &Submission, known: &Known) -> Result<Self, Refusal> {
        let (envelope, id) = broadcast::decode(submission)?;
        let sender = envelope.recover_signer().map_err(|_| Refusal::new(Code::TransactionMismatch, "/payload"))?;
        let (chain_id, nonce) = (chain_id(&submission.network)?, envelope.nonce());
        Ok(Self { chain_id, id, sender, nonce, known: known.clone(), latest: None, mark: None })
    }

    fn identity(&self) -> Identity {
        super::identity(self.chain_id)
    }

    fn find(&self) -> Vec<Request> {
        vec![receipt::request(self.id)]
    }

    fn read_found(&self, replies: &Replies<'_>) -> Result<Trace, Fault> {
        let is_final =
            |number: u64, hash: B256| self.mark.is_some_and(|mark| number < mark.number || (number == mark.number && hash == mark.hash));
        Ok(match receipt::read(&replies.json(0)?, self.id)? {
            None => Trace::Unknown,
            Some(receipt) if receipt.success => Trace::Included,
            Some(receipt) if is_final(receipt.block.get(), receipt.hash) => {
                Trace::Failed(format!("it reverted in the final block {}", receipt.block))
            }
            Some(_) => Trace::Waiting,
        })
    }

    fn marks(&self) -> Vec<Request> {
        vec![block::by_tag(block::LATEST), block::by_tag(block::SAFE), block::by_tag(block::FINALIZED)]
    }

    fn read_marks(&mut self, replies: &Replies<'_>) -> Result<Option<Vec<Request>>, Fault> {
        let block::Blocks { latest, safe, finalized } = block::Blocks::read(replies, self.chain_id, &self.known)?;
        self.latest = Some(latest);
        self.mark = finalized.or_else(|| safe.filter(|_| is_safe_final(self.chain_id)));
        // The block is named by its hash, so the nonce is that of a block that both rounds are about.
        let nonce = |mark: Block| vec![Request::json_rpc("eth_getTransactionCount", json!([self.sender, at(mark.hash)]))];
        Ok(self.mark.map(nonce))
    }

    fn read_proof(&mut self, replies: &Replies<'_>) -> Result<Option<String>, Fault> {
        let next = quantity(&replies.json(0)?)?;
        Ok((next > self.nonce).then(|| format!("another transaction has used its nonce {}, in a final block", self.nonce)))
    }

    fn learned(&self) -> Known {
        block::learned(self.latest.as_ref())
    }
}

/// Returns whether payments of any amount are final in a safe block. Of a chain that is not listed, nothing is known.
fn is_safe_final(chain_id: u64) -> bool {
    let id = format!("evm:{chain_id}");
    let known = KNOWN_CHAINS.iter().find(|known| known.has_id(&id));
    known.is_some_and(|known| known.profile.finality_for(U256::MAX).finality == Finality::Safe)
}
