//! Ethereum's block headers, with the roots of state, transactions and receipts. They hash to the block's hash.

use alloy_consensus::constants::{EMPTY_OMMER_ROOT_HASH, EMPTY_RECEIPTS, EMPTY_TRANSACTIONS};
use alloy_consensus::proofs::{calculate_receipt_root, calculate_transaction_root};
use alloy_consensus::{Header, Receipt as ConsensusReceipt, ReceiptEnvelope, TxEnvelope};
use alloy_primitives::{B256, Bloom, address, keccak256};
use countersign_proofs_evm::{Changes, World};

use super::ledger::{Block, Format, Mined, Roots};
use super::pool::BLOCK_GAS;
use super::trie::Tries;

/// The block format of Ethereum.
#[derive(Debug)]
pub(crate) struct Ethereum {
    pub(crate) tries: Tries,
    pub(crate) chain_id: u64,
    pub(crate) base_fee: u64,
}

impl Ethereum {
    pub(crate) fn header(&self, block: &Block<TxEnvelope>) -> Header {
        let fork = if block.fork == 0 { String::new() } else { format!(" {}", block.fork) };
        Header {
            parent_hash: block.parent,
            ommers_hash: EMPTY_OMMER_ROOT_HASH,
            beneficiary: address!("00000000000000000000000000000000000beef1"),
            state_root: block.roots.state,
            transactions_root: block.roots.transactions,
            receipts_root: block.roots.receipts,
            logs_bloom: block.roots.bloom,
            number: block.number,
            gas_limit: BLOCK_GAS,
            gas_used: block.roots.gas_used,
            timestamp: block.millis / 1_000,
            extra_data: format!("countersign sandbox{fork}").into_bytes().into(),
            base_fee_per_gas: Some(self.base_fee),
            ..Header::default()
        }
    }
}

impl Format for Ethereum {
    type Transaction = TxEnvelope;
    const MIN_STEP: u64 = 0;

    fn roots(&mut self, world: &World, changed: &Changes, transactions: &[Mined<TxEnvelope>]) -> Roots {
        let state = self.tries.root(world.before(&Changes::default()), changed);
        if transactions.is_empty() {
            return self.empty(state);
        }
        let (mut gas_used, mut bloom, mut receipts) = (0_u64, Bloom::ZERO, Vec::new());
        for Mined { transaction, receipt, .. } in transactions {
            gas_used = gas_used.saturating_add(receipt.gas_used);
            let written =
                ConsensusReceipt { status: receipt.is_success().into(), cumulative_gas_used: gas_used, logs: receipt.logs.clone() };
            bloom |= written.bloom_slow();
            receipts.push(ReceiptEnvelope::from_typed(transaction.tx_type(), written));
        }
        let envelopes: Vec<_> = transactions.iter().map(|mined| &mined.transaction).collect();
        let transactions = calculate_transaction_root(&envelopes);
        Roots { state, transactions, receipts: calculate_receipt_root(&receipts), bloom, gas_used }
    }

    fn empty(&self, state: B256) -> Roots {
        Roots { state, transactions: EMPTY_TRANSACTIONS, receipts: EMPTY_RECEIPTS, bloom: Bloom::ZERO, gas_used: 0 }
    }

    fn forget(&mut self, _: &Changes) {
        self.tries.forget();
    }

    fn hash(&self, block: &Block<TxEnvelope>) -> B256 {
        self.header(block).hash_slow()
    }

    fn hash_of(&self, number: u64, fork: u64) -> B256 {
        let mut hash = keccak256([self.chain_id, number, fork].map(u64::to_be_bytes).concat());
        if let Some(end) = hash.last_chunk_mut::<8>() {
            *end = number.to_be_bytes();
        }
        hash
    }

    fn number_in(&self, hash: B256) -> u64 {
        hash.last_chunk::<8>().map_or(0, |end| u64::from_be_bytes(*end))
    }
}
