//! Blocks, by the header that nodes show.

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
    /// The number in its first 8 bytes, then bytes 8 to 31 of the header's SHA-256.
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
        // The genesis block has the number and the time 0, which nodes leave out.
        let (number, millis) = (count(raw.get("number"))?, count(raw.get("timestamp"))?);
        match id.first_chunk::<8>() {
            Some(first) if *first == number.to_be_bytes() => Ok(Self { number, id, millis }),
            _ => Err(contradiction("/blockID", "the id of the block does not begin with its number")),
        }
    }
}

/// Reads the newest block of a view of the chain.
pub(super) async fn newest<T: Transport>(caller: Caller<'_, T>, view: &str) -> Result<Block, NodeError> {
    ask(caller, &format!("{view}/getnowblock"), json!({}), Block::read).await
}

/// Reads a block of the chain.
pub(super) async fn by_number<T: Transport>(caller: Caller<'_, T>, number: u64) -> Result<Block, NodeError> {
    let read = |node: &Node<'_, '_>| {
        let block = Block::read(node)?;
        if block.number == number { Ok(block) } else { Err(contradiction("/block_header/raw_data/number", "another block was asked for")) }
    };
    ask(caller, &format!("{NEWEST}/getblockbynum"), json!({"num": number}), read).await
}
