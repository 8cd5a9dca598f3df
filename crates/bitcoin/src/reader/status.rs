//! How far a transaction is confirmed.

use bitcoin::{BlockHash, Txid};
use countersign_core::reader::{Agree, Fault, Head, Identity, Known, Machine, Replies, Request, Turn};
use countersign_core::{BlockHeight, Refusal};

use super::look::{self, Block};
use super::{OnChain, esplora, rpc};

/// How far a transaction is confirmed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TransactionStatus {
    /// The number of blocks from its block to the newest one, both included; 0 while it is in the mempool.
    pub confirmations: u64,
    /// The hash of its block, in hex without `0x`; `None` while it is in the mempool.
    pub block_hash: Option<String>,
}

/// What an endpoint knows about a transaction; `None` if nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Included(pub Option<TransactionStatus>);

impl Agree for Included {
    type Key = Option<Option<String>>;

    /// Returns whether the endpoint knows the transaction, and its block. The number of confirmations differs between honest endpoints.
    fn key(&self) -> Self::Key {
        self.0.as_ref().map(|status| status.block_hash.clone())
    }
}

/// Reads how far a transaction is confirmed. A node's own RPC finds mined transactions only if it has a transaction index
/// (`-txindex=1`). Without one, it cannot prove that it does not know a transaction, and its error is a [`Fault`].
#[derive(Debug)]
pub struct Status {
    subject: OnChain<Txid>,
    known: Known,
    state: State,
    height: BlockHeight,
}

#[derive(Debug)]
enum State {
    Esplora,
    Rpc,
    RpcBlock { tip: (BlockHeight, BlockHash), found: Option<Option<BlockHash>> },
}

impl Machine for Status {
    type Subject = OnChain<Txid>;
    type Output = Included;
    const MAX_ROUNDS: usize = 2;

    fn start(subject: &OnChain<Txid>, known: &Known) -> Result<(Self, Vec<Request>), Refusal> {
        let (state, requests) = if known.is_rpc() {
            (State::Rpc, vec![rpc::tip(), rpc::found(subject.subject)])
        } else {
            (State::Esplora, vec![esplora::newest(), esplora::status(subject.subject)])
        };
        Ok((Self { subject: subject.clone(), known: known.clone(), state, height: BlockHeight::default() }, requests))
    }

    fn identity(&self) -> Identity {
        self.subject.chain.identity(self.known.is_rpc())
    }

    fn answer(&mut self, replies: &Replies<'_>) -> Result<Turn<Included>, Fault> {
        let (chain, txid) = (self.subject.chain.chain, self.subject.subject);
        match self.state {
            State::Esplora => {
                let head = esplora::read_newest(replies.json(0)?, chain)?;
                self.finish(&head, esplora::read_status(&replies.get(1)?, txid)?)
            }
            State::Rpc => {
                let tip = rpc::read_tip(replies.json(0)?)?;
                let found = rpc::read_found(&replies.get(1)?, txid)?;
                self.state = State::RpcBlock { tip, found };
                Ok(Turn::Ask([rpc::header(tip.1)].into_iter().chain(found.flatten().map(rpc::height)).collect()))
            }
            State::RpcBlock { tip, found } => {
                let head = rpc::read_head(replies.json(0)?, tip, chain)?;
                let block = match found.flatten() {
                    Some(hash) => Some(Block { height: rpc::read_height(replies.json(1)?)?, hash }),
                    None => None,
                };
                self.finish(&head, found.map(|_| block))
            }
        }
    }

    fn learned(&self) -> Known {
        Known::default().with_height(self.height)
    }
}

impl Status {
    fn finish(&mut self, head: &Head, found: Option<Option<Block>>) -> Result<Turn<Included>, Fault> {
        self.subject.chain.check_height(&self.known, head.height)?;
        self.height = head.height;
        let status = |block: Option<Block>| {
            let confirmations = look::depth(block, head)?;
            Ok::<_, Fault>(TransactionStatus { confirmations, block_hash: block.map(|block| block.hash.to_string()) })
        };
        Ok(Turn::Done(Included(found.map(status).transpose()?)))
    }
}
