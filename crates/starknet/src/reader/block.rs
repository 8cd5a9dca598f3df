//! Blocks as `starknet_getBlockWithTxHashes` returns them.

use countersign_core::chains::{ChainProfile, Network};
use countersign_core::json::Cursor;
use countersign_core::reader::{Fault, Known, Request};
use countersign_core::{Code, Refusal};
use serde_json::{Value, json};
use starknet_types_core::felt::Felt;

use super::hex;
use crate::felt;

/// The tag of the newest block that L2 has accepted.
pub(super) const LATEST: &str = "latest";
/// The tag of the newest block that L1 has accepted, which is never replaced.
pub(super) const ON_L1: &str = "l1_accepted";
/// The tag of the block that is being built.
pub(super) const PENDING: &str = "pre_confirmed";

/// A block's place on the chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Block {
    pub(super) number: u64,
    pub(super) hash: Felt,
    /// Unix seconds.
    pub(super) time: u64,
    pub(super) is_on_l1: bool,
    pub(super) prices: Prices,
}

/// The prices of one unit of each resource in a block, in FRI.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Prices {
    pub(super) l1_gas: u128,
    pub(super) l2_gas: u128,
    pub(super) l1_data_gas: u128,
}

/// Creates the request for the block with a tag.
pub(super) fn by_tag(tag: &str) -> Request {
    by_id(&json!(tag))
}

/// Creates the request for a block of the canonical chain.
pub(super) fn by_number(number: u64) -> Request {
    by_id(&json!({"block_number": number}))
}

fn by_id(id: &Value) -> Request {
    Request::json_rpc("starknet_getBlockWithTxHashes", json!({"block_id": id}))
}

/// Returns the parameter that names a block by its hash.
pub(super) fn at(hash: Felt) -> Value {
    json!({"block_hash": hex(hash)})
}

impl Block {
    /// Returns whether both can be blocks of one chain: at the same height, they are the same block.
    pub(super) fn agrees_with(&self, number: u64, hash: Felt) -> bool {
        (self.number == number) == (self.hash == hash)
    }

    /// Reads the newest block, which must not have gone back by more than [the profile](ChainProfile::max_step_back) allows. All networks have
    /// the same.
    pub(super) fn read_newest(cursor: &Cursor<'_, '_>, known: &Known) -> Result<Self, Fault> {
        let block = Self::read(cursor)?;
        known.check_height(block.number.into(), ChainProfile::of_network(&Network::Starknet(String::new())).max_step_back())?;
        Ok(block)
    }

    /// Reads a block that L2 or L1 has accepted.
    pub(super) fn read(cursor: &Cursor<'_, '_>) -> Result<Self, Refusal> {
        let members = cursor.object()?;
        let status = members.need("status")?;
        let is_on_l1 = match status.text()? {
            "ACCEPTED_ON_L1" => true,
            "ACCEPTED_ON_L2" => false,
            _ => return Err(status.refuse(Code::WrongType).with_expected("ACCEPTED_ON_L2 or ACCEPTED_ON_L1")),
        };
        let price = |key: &'static str| felt::read_u128(members.need(key)?.object()?.need("price_in_fri")?);
        Ok(Self {
            number: members.need("block_number")?.integer()?,
            hash: felt::read(members.need("block_hash")?)?,
            time: members.need("timestamp")?.integer()?,
            is_on_l1,
            prices: Prices { l1_gas: price("l1_gas_price")?, l2_gas: price("l2_gas_price")?, l1_data_gas: price("l1_data_gas_price")? },
        })
    }
}
