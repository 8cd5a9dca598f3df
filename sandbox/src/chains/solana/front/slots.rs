//! The methods about slots, blockhashes and the node itself.

use serde_json::{Value, json};

use super::params::Params;
use super::views::context;
use super::{Answer, Solana};
use crate::chains::rpc::Fault;
use crate::chains::solana::bank::{Commitment, MAX_AGE, height};

/// The maximum number of slots whose fees are listed, and of accounts in that call.
const MAX_FEES: usize = 150;
const MAX_ACCOUNTS: usize = 128;

impl Solana {
    pub(super) fn about_slots(&self, method: &str, params: &Params<'_>) -> Answer {
        let bank = &self.bank;
        let slot = |index: usize| params.config(index).and_then(|config| config.slot(bank));
        Ok(match method {
            "getGenesisHash" => json!(bank.genesis().to_string()),
            "getSlot" => json!(slot(0)?),
            "getFirstAvailableBlock" => json!(0),
            "getBlockHeight" => json!(height(slot(0)?)),
            "getLatestBlockhash" => {
                let slot = slot(0)?;
                let hash = bank.block(slot).map(|block| block.hash.to_string());
                context(slot, json!({"blockhash": hash, "lastValidBlockHeight": height(slot).saturating_add(MAX_AGE)}))
            }
            "isBlockhashValid" => {
                let slot = slot(1)?;
                let hash = params.address(0)?.to_bytes();
                context(slot, json!(bank.find_blockhash(&hash.into(), slot).is_some()))
            }
            "getBlockTime" => self.block_time(params.number(0)?)?,
            "getRecentPrioritizationFees" => {
                if params.get(0).is_some() {
                    params.texts(0, MAX_ACCOUNTS)?;
                }
                let recent = bank.blocks().rev().take(MAX_FEES).map(|block| json!({"slot": block.slot, "prioritizationFee": 0}));
                Value::Array(recent.collect())
            }
            _ => return Err(Fault::no_method("Method not found")),
        })
    }

    fn block_time(&self, slot: u64) -> Answer {
        if slot > self.bank.slot(Commitment::Confirmed) {
            return Err(Fault::new(-32_004, format!("Block not available for slot {slot}")));
        }
        let block = self.bank.block(slot).map(|block| block.time);
        let record = || self.bank.records().find(|record| record.slot == slot).map(|record| record.time);
        let time = block.or_else(record);
        time.map(Value::from).ok_or_else(|| {
            let first = self.bank.blocks().next().map_or(0, |block| block.slot);
            Fault::new(-32_001, format!("Block {slot} cleaned up, does not exist on node. First available block: {first}"))
        })
    }
}
