//! The newest block.

use countersign_core::reader::{Fault, Head, Identity, Known, Machine, Replies, Request, Turn};
use countersign_core::{BlockHeight, Refusal};

use super::{NamedChain, esplora, rpc};

/// Reads the newest block of an endpoint, whose header must have the work that it claims.
#[derive(Debug)]
pub struct NewestBlock {
    chain: NamedChain,
    known: Known,
    state: State,
    height: BlockHeight,
}

#[derive(Debug)]
enum State {
    Esplora,
    RpcTip,
    RpcHeader((BlockHeight, bitcoin::BlockHash)),
}

impl Machine for NewestBlock {
    type Subject = NamedChain;
    type Output = Head;
    const MAX_ROUNDS: usize = 2;

    fn start(subject: &NamedChain, known: &Known) -> Result<(Self, Vec<Request>), Refusal> {
        let (state, request) = if known.is_rpc() { (State::RpcTip, rpc::tip()) } else { (State::Esplora, esplora::newest()) };
        Ok((Self { chain: subject.clone(), known: known.clone(), state, height: BlockHeight::default() }, vec![request]))
    }

    fn identity(&self) -> Identity {
        self.chain.identity(self.known.is_rpc())
    }

    fn answer(&mut self, replies: &Replies<'_>) -> Result<Turn<Head>, Fault> {
        let cursor = replies.json(0)?;
        let head = match self.state {
            State::Esplora => esplora::read_newest(cursor, self.chain.chain)?,
            State::RpcTip => {
                let tip = rpc::read_tip(cursor)?;
                self.state = State::RpcHeader(tip);
                return Ok(Turn::Ask(vec![rpc::header(tip.1)]));
            }
            State::RpcHeader(tip) => rpc::read_head(cursor, tip, self.chain.chain)?,
        };
        self.chain.check_height(&self.known, head.height)?;
        self.height = head.height;
        Ok(Turn::Done(head))
    }

    fn learned(&self) -> Known {
        Known::default().with_height(self.height)
    }
}
