//! What becomes of a transaction that was sent.

use std::fmt;

use bitcoin::{OutPoint, Txid};
use countersign_core::chains::{ChainProfile, Finality};
use countersign_core::reader::{self, Fault, Head, Identity, Known, Replies, Request, Submission, Trace, Tracing};
use countersign_core::{BlockHeight, Refusal, U256};

use super::{NamedChain, broadcast, esplora, look, rpc};

/// The maximum number of inputs that are looked up. One that is spent elsewhere is enough.
const MAX_INPUTS: usize = 250;

/// Reads what becomes of a transaction.
///
/// It is dead if another transaction spends one of its inputs, and is as deep as the largest payment must be to be final. A node's own RPC needs a
/// transaction index (`-txindex=1`). It does not say which transaction spends an output. There the input must be spent in the blocks
/// twice: in one reading, and in a later one that is as many blocks above it as make a payment final.
pub type FateOf = reader::FateOf<Tracer>;

/// A transaction whose fate is read.
pub struct Tracer {
    chain: NamedChain,
    txid: Txid,
    inputs: Vec<OutPoint>,
    /// The number of blocks that make a payment of any amount final.
    needed: u64,
    known: Known,
    head: Option<Newest>,
    /// The newest block of the node's own RPC in the first reading that shows an input spent.
    spent_at: Option<u64>,
}

/// The newest block.
enum Newest {
    Esplora(Head),
    Rpc(BlockHeight),
}

impl fmt::Debug for Tracer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tracer({})", self.txid)
    }
}

impl Tracing for Tracer {
    fn decode(submission: &Submission, known: &Known) -> Result<Self, Refusal> {
        let chain = NamedChain::from_network(&submission.network, "")?;
        let (transaction, txid) = broadcast::decode(submission)?;
        let inputs = transaction.input.iter().map(|input| input.previous_output).take(MAX_INPUTS).collect();
        let needed = match ChainProfile::of_network(&submission.network).finality_for(U256::MAX).finality {
            Finality::Depth(blocks) => blocks,
            _ => chain.chain.coin.profile().max_reorganization,
        };
        let height = known.progress(&name(txid)).and_then(|bytes| bytes.try_into().ok()).map(u64::from_be_bytes);
        let spent_at = height.filter(|height| *height != NOT_SPENT);
        Ok(Self { chain, txid, inputs, needed, known: known.clone(), head: None, spent_at })
    }

    fn identity(&self) -> Identity {
        self.chain.identity(self.known.is_rpc())
    }

    fn find(&self) -> Vec<Request> {
        vec![if self.known.is_rpc() { rpc::found(self.txid) } else { esplora::status(self.txid) }]
    }

    fn read_found(&self, replies: &Replies<'_>) -> Result<Trace, Fault> {
        let reply = replies.get(0)?;
        let is_in_block = if self.known.is_rpc() {
            rpc::read_found(&reply, self.txid)?.map(|block| block.is_some())
        } else {
            esplora::read_status(&reply, self.txid)?.map(|block| block.is_some())
        };
        Ok(match is_in_block {
            Some(true) => Trace::Included,
            Some(false) => Trace::Waiting,
            None => Trace::Unknown,
        })
    }

    fn marks(&self) -> Vec<Request> {
        vec![if self.known.is_rpc() { rpc::tip() } else { esplora::newest() }]
    }

    fn read_marks(&mut self, replies: &Replies<'_>) -> Result<Option<Vec<Request>>, Fault> {
        let cursor = replies.json(0)?;
        let (head, height, requests) = if self.known.is_rpc() {
            let (height, _) = rpc::read_tip(cursor)?;
            let spent = |input: &OutPoint| [rpc::found(input.txid), rpc::output(*input, false)];
            (Newest::Rpc(height), height, self.inputs.iter().flat_map(spent).collect())
        } else {
            let head = esplora::read_newest(cursor, self.chain.chain)?;
            let height = head.height;
            (Newest::Esplora(head), height, self.inputs.iter().copied().map(esplora::outspend).collect())
        };
        self.chain.check_height(&self.known, height)?;
        self.head = Some(head);
        Ok(Some(requests))
    }

    fn read_proof(&mut self, replies: &Replies<'_>) -> Result<Option<String>, Fault> {
        match &self.head {
            Some(Newest::Esplora(head)) => self.rival(head, replies),
            Some(Newest::Rpc(height)) => {
                let height = height.get();
                let Some(input) = self.spent(replies)? else {
                    self.spent_at = None;
                    return Ok(None);
                };
                let spent_at = *self.spent_at.get_or_insert(height);
                let is_deep = height >= spent_at.saturating_add(self.needed);
                Ok(is_deep.then(|| format!("another transaction has spent its input {input}, in block {spent_at} or before")))
            }
            None => Ok(None),
        }
    }

    fn learned(&self) -> Known {
        match &self.head {
            Some(Newest::Esplora(head)) => Known::default().with_height(head.height),
            Some(Newest::Rpc(height)) => {
                Known::default().with_height(*height).with_progress(name(self.txid), self.spent_at.unwrap_or(NOT_SPENT).to_be_bytes())
            }
            None => Known::default(),
        }
    }
}

impl Tracer {
    /// Returns the reason if an Esplora server shows another transaction that spends an input and is deep enough.
    fn rival(&self, head: &Head, replies: &Replies<'_>) -> Result<Option<String>, Fault> {
        let mut reason = None;
        for (index, input) in self.inputs.iter().enumerate() {
            let Some((rival, block)) = esplora::read_outspend(replies.json(index)?)? else { continue };
            if rival != self.txid && look::depth(block, head)? >= self.needed {
                reason = Some(format!("the transaction {rival} has spent its input {input}"));
            }
        }
        Ok(reason)
    }

    /// Returns an input that a node's RPC shows as spent in the blocks: the transaction that pays it is in a block, and the output is not
    /// among the unspent ones.
    fn spent(&self, replies: &Replies<'_>) -> Result<Option<OutPoint>, Fault> {
        let mut spent = None;
        for (input, pair) in self.inputs.iter().zip(replies.all().chunks_exact(2)) {
            let [paid, unspent] = pair else { continue };
            let is_paid = rpc::read_found(paid, input.txid)?.flatten().is_some();
            if rpc::read_value(unspent.json()?)?.is_none() && is_paid {
                spent = Some(*input);
            }
        }
        Ok(spent)
    }
}

/// What is remembered in place of a height while no input is spent.
const NOT_SPENT: u64 = u64::MAX;

/// Returns the name of what is remembered of a transaction.
fn name(txid: Txid) -> String {
    format!("fate {txid}")
}
