//! Lists of outputs.

use countersign::bitcoin::bitcoin::BlockHash;
use countersign::bitcoin::recover::Funding;

/// Where a transaction was mined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Block {
    pub(super) height: u64,
    pub(super) hash: BlockHash,
}

/// An output to the HTLC's script as an endpoint lists it. Nothing of it is proven yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Claim {
    pub(super) funding: Funding,
    pub(super) height: Option<u64>,
    pub(super) hash: Option<BlockHash>,
    pub(super) is_unspent: bool,
}
