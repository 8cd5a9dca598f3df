//! Blocks as `eth_getBlockByNumber` returns them.

use alloy_consensus::Header;
use alloy_primitives::{Address, B256};
use countersign_core::chains::{ChainProfile, Network};
use countersign_core::json::{Cursor, Members};
use countersign_core::reader::{Fault, Known, Replies, Request};
use countersign_core::{Code, Refusal};
use serde_json::json;

use super::{hash, price, quantity};

/// The tag of the newest block.
pub(super) const LATEST: &str = "latest";
/// The tag of the newest block that the chain itself marks as safe.
pub(super) const SAFE: &str = "safe";
/// The tag of the newest final block, which is never replaced.
pub(super) const FINALIZED: &str = "finalized";

/// The maximum length in bytes of a header's `extraData`. Chains that store validator sets in it use a few thousand.
const MAX_EXTRA_DATA: usize = 16 * 1024;

/// A block's place on the chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Block {
    pub(super) number: u64,
    pub(super) hash: B256,
    /// Unix seconds.
    pub(super) time: u64,
    /// Wei per gas; `None` on a chain without EIP-1559.
    pub(super) base_fee: Option<u128>,
    /// The root of the state trie; `None` unless the header hashes to the block's hash, which proves the root.
    pub(super) state_root: Option<B256>,
    /// The height of the chain below, on a chain whose contracts may count that chain's blocks: Arbitrum.
    pub(super) l1_number: Option<u64>,
}

/// The newest, safe and final blocks.
#[derive(Debug, Clone, Copy)]
pub(super) struct Blocks {
    pub(super) latest: Block,
    pub(super) safe: Option<Block>,
    pub(super) finalized: Option<Block>,
}

/// Creates the request for the block with a tag.
pub(super) fn by_tag(tag: &str) -> Request {
    Request::json_rpc("eth_getBlockByNumber", json!([tag, false]))
}

/// Creates the request for a block of the canonical chain.
pub(super) fn by_number(number: u64) -> Request {
    by_tag(&format!("{number:#x}"))
}

/// Reads the newest block of a chain from the reply at `index`. It must not have gone back by more than [the profile](ChainProfile::max_step_back)
/// allows.
pub(super) fn latest(replies: &Replies<'_>, index: usize, chain_id: u64, known: &Known) -> Result<Block, Fault> {
    let cursor = replies.json(index)?;
    let block = Block::read(&cursor)?.ok_or_else(|| cursor.at().refuse(Code::MissingField).with_expected("a block"))?;
    known.check_height(block.number.into(), ChainProfile::of_network(&Network::Evm(chain_id)).max_step_back())?;
    Ok(block)
}

/// Returns what a newest block adds to what is known about the endpoint.
pub(super) fn learned(newest: Option<&Block>) -> Known {
    newest.map_or_else(Known::default, |block| Known::default().with_height(block.number.into()))
}

impl Blocks {
    /// Reads the blocks from the first three replies.
    pub(super) fn read(replies: &Replies<'_>, chain_id: u64, known: &Known) -> Result<Self, Fault> {
        let latest = latest(replies, 0, chain_id, known)?;
        // Not every chain has the marks. A mark above the newest block comes from another node behind the same address that is ahead.
        let is_below = |block: &Block| if block.number == latest.number { block.hash == latest.hash } else { block.number < latest.number };
        let marked = |index| match replies.get(index)?.json_or_error()? {
            Ok(cursor) => Ok::<_, Fault>(Block::read(&cursor)?.filter(is_below)),
            Err(_) => Ok(None),
        };
        Ok(Self { latest, safe: marked(1)?, finalized: marked(2)? })
    }
}

impl Block {
    /// Reads a block; `None` if the chain does not have it.
    pub(super) fn read(cursor: &Cursor<'_, '_>) -> Result<Option<Self>, Refusal> {
        if cursor.is_null() {
            return Ok(None);
        }
        let members = cursor.object()?;
        let hash = hash(&members.need("hash")?)?;
        // A chain whose headers have other fields than Ethereum's is read without proofs.
        let proven = header(&members).ok().filter(|header| header.hash_slow() == hash);
        Ok(Some(Self {
            number: quantity(&members.need("number")?)?,
            hash,
            time: quantity(&members.need("timestamp")?)?,
            base_fee: members.get("baseFeePerGas").map(|fee| price(&fee)).transpose()?,
            state_root: proven.map(|header| header.state_root),
            l1_number: members.get("l1BlockNumber").map(|number| quantity(&number)).transpose()?,
        }))
    }
}

/// Reads the header fields that the block's hash covers.
fn header(members: &Members<'_, '_>) -> Result<Header, Refusal> {
    let word = |key: &'static str| hash(&members.need(key)?);
    let number = |key: &'static str| quantity(&members.need(key)?);
    let optional_word = |key: &'static str| members.get(key).map(|cursor| hash(&cursor)).transpose();
    let optional_number = |key: &'static str| members.get(key).map(|cursor| quantity(&cursor)).transpose();
    if members.get("blockAccessListHash").is_some() || members.get("slotNumber").is_some() {
        return Err(members.at().refuse(Code::UnexpectedField));
    }
    Ok(Header {
        parent_hash: word("parentHash")?,
        ommers_hash: word("sha3Uncles")?,
        beneficiary: Address::from(members.need("miner")?.hex_array::<20>()?),
        state_root: word("stateRoot")?,
        transactions_root: word("transactionsRoot")?,
        receipts_root: word("receiptsRoot")?,
        logs_bloom: members.need("logsBloom")?.hex_array::<256>()?.into(),
        difficulty: members.need("difficulty")?.hex_number()?,
        number: number("number")?,
        gas_limit: number("gasLimit")?,
        gas_used: number("gasUsed")?,
        timestamp: number("timestamp")?,
        extra_data: members.need("extraData")?.hex_bytes(MAX_EXTRA_DATA)?.into(),
        mix_hash: word("mixHash")?,
        nonce: members.need("nonce")?.hex_array::<8>()?.into(),
        base_fee_per_gas: optional_number("baseFeePerGas")?,
        withdrawals_root: optional_word("withdrawalsRoot")?,
        blob_gas_used: optional_number("blobGasUsed")?,
        excess_blob_gas: optional_number("excessBlobGas")?,
        parent_beacon_block_root: optional_word("parentBeaconBlockRoot")?,
        requests_hash: optional_word("requestsHash")?,
        ..Header::default()
    })
}
