//! Blocks, read from the headers that nodes return.

use countersign_core::Refusal;
use countersign_core::json::Cursor;
use countersign_core::reader::{Fault, Reply, Request};
use serde_json::json;

use super::{View, contradiction, count, hash, post, value};

/// A block's place on the chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Block {
    /// The height.
    pub(super) number: u64,
    /// The block's number in 8 bytes (big-endian), followed by bytes 8 to 31 of the header's SHA-256.
    pub(super) id: [u8; 32],
    /// Unix milliseconds.
    pub(super) millis: u64,
}

impl Block {
    fn read(cursor: &Cursor<'_, '_>) -> Result<Self, Refusal> {
        let members = cursor.object()?;
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

    /// Returns the request for the newest block of a view.
    pub(super) fn newest_request(view: View) -> Request {
        post(view, "getnowblock", &json!({}))
    }

    /// Reads the newest block.
    pub(super) fn read_newest(reply: &Reply<'_>) -> Result<Self, Fault> {
        Ok(Self::read(&value(reply)?)?)
    }

    /// Returns the request for the block at a height.
    pub(super) fn request(view: View, number: u64) -> Request {
        post(view, "getblockbynum", &json!({"num": number}))
    }

    /// Reads the block that was requested by its height.
    pub(super) fn read_at(number: u64, reply: &Reply<'_>) -> Result<Self, Fault> {
        let block = Self::read_newest(reply)?;
        if block.number == number {
            Ok(block)
        } else {
            Err(contradiction("/block_header/raw_data/number", "the node returned another block than the requested one").into())
        }
    }

    /// Returns whether both cannot be blocks of one chain: two blocks of the same height, or a later one with an earlier time.
    pub(super) fn contradicts(&self, other: &Self) -> bool {
        if self.number == other.number { self != other } else { (self.number < other.number) != (self.millis < other.millis) }
    }
}
