//! Blocks, read from the headers that nodes return.

use countersign::Refusal;
use countersign::json::Node;
use countersign_client::Transport;
use serde_json::json;

use super::{NEWEST, ask, contradiction, count, hash};
use crate::endpoint::Caller;
use crate::error::NodeError;

/// A block's place on the chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Block {
    pub(super) number: u64,
    /// The block's number in 8 bytes (big-endian), followed by bytes 8 to 31 of the header's SHA-256.
    pub(super) id: [u8; 32],
    /// Unix milliseconds.
    pub(super) millis: u64,
}

impl Block {
    fn read(node: &Node<'_, '_>) -> Result<Self, Refusal> {
        let members = node.object()?;
        let id = hash(&members.need("blockID")?)?;
        let header = members.need("block_header")?;
        let header = header.object()?;
        let raw = header.need("raw_data")?;
        let raw = raw.object()?;
        // The genesis block has the number 0 and the time 0, which nodes omit.
        let (number, millis) = (count(raw.get("number"))?, count(raw.get("timestamp"))?);
        match id.first_chunk::<8>() {
            Some(first) if *first == number.to_be_bytes() => Ok(Self { number, id, millis }),
            _ => Err(contradiction("/blockID", "the id of the block does not begin with its number")),
        }
    }
}

/// Reads the newest block, or the newest irreversible one. `view` is [`NEWEST`] or [`SOLID`](super::SOLID).
pub(super) async fn newest<T: Transport>(caller: Caller<'_, T>, view: &str) -> Result<Block, NodeError> {
    ask(caller, &format!("{view}/getnowblock"), json!({}), Block::read).await
}

/// Reads a block of the chain.
pub(super) async fn by_number<T: Transport>(caller: Caller<'_, T>, number: u64) -> Result<Block, NodeError> {
    let read = |node: &Node<'_, '_>| {
        let block = Block::read(node)?;
        if block.number == number {
            Ok(block)
        } else {
            Err(contradiction("/block_header/raw_data/number", "the node returned another block than the requested one"))
        }
    };
    ask(caller, &format!("{NEWEST}/getblockbynum"), json!({"num": number}), read).await
}
