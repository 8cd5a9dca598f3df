//! Blocks, transactions, receipts and logs as JSON.

use alloy_consensus::{Header, Receipt as ConsensusReceipt, Transaction as _, TxEnvelope};
use alloy_primitives::{Address, B256, Log, U256, hex};
use serde_json::{Value, json};

use super::ledger::{Block, Mined};
use crate::http::put;

pub(crate) fn quantity(number: impl Into<u128>) -> Value {
    json!(format!("{:#x}", number.into()))
}

pub(crate) fn number(number: U256) -> Value {
    json!(format!("{number:#x}"))
}

/// Returns a block with its transactions, or with their hashes only.
pub(crate) fn block(block: &Block<TxEnvelope>, header: &Header, l1_number: Option<u64>, is_full: bool) -> Value {
    let transactions: Vec<_> = block
        .transactions
        .iter()
        .enumerate()
        .map(
            |(index, mined)| {
                if is_full { transaction(&mined.transaction, mined.receipt.from, Some((block, index))) } else { json!(mined.id) }
            },
        )
        .collect();
    let mut value = json!({
        "number": quantity(block.number),
        "hash": block.hash,
        "parentHash": header.parent_hash,
        "nonce": header.nonce,
        "mixHash": header.mix_hash,
        "sha3Uncles": header.ommers_hash,
        "logsBloom": header.logs_bloom,
        "stateRoot": header.state_root,
        "transactionsRoot": header.transactions_root,
        "receiptsRoot": header.receipts_root,
        "miner": header.beneficiary,
        "difficulty": number(header.difficulty),
        "totalDifficulty": "0x0",
        "extraData": header.extra_data,
        "size": quantity(u64::try_from(alloy_rlp::encode(header).len()).unwrap_or_default()),
        "gasLimit": quantity(header.gas_limit),
        "gasUsed": quantity(header.gas_used),
        "timestamp": quantity(header.timestamp),
        "baseFeePerGas": quantity(header.base_fee_per_gas.unwrap_or_default()),
        "transactions": transactions,
        "uncles": [],
    });
    if let Some(number) = l1_number {
        put(&mut value, "l1BlockNumber", quantity(number));
    }
    value
}

/// Returns a transaction, with its place if it is in a block.
pub(crate) fn transaction(envelope: &TxEnvelope, from: Address, place: Option<(&Block<TxEnvelope>, usize)>) -> Value {
    let signature = envelope.signature();
    let parity = u64::from(signature.v());
    let is_legacy = envelope.is_legacy();
    // EIP-155 includes the chain id in `v`.
    let v = if is_legacy {
        envelope.chain_id().unwrap_or_default().saturating_mul(2).saturating_add(35).saturating_add(parity)
    } else {
        parity
    };
    let base_fee = place.and_then(|(block, index)| block.transactions.get(index)).map(|mined| mined.receipt.gas_price);
    let mut value = json!({
        "blockHash": place.map(|(block, _)| block.hash),
        "blockNumber": place.map(|(block, _)| quantity(block.number)),
        "transactionIndex": place.map(|(_, index)| quantity(u64::try_from(index).unwrap_or_default())),
        "hash": envelope.tx_hash(),
        "type": quantity(u8::from(envelope.tx_type())),
        "from": from,
        "to": envelope.to(),
        "nonce": quantity(envelope.nonce()),
        "value": number(envelope.value()),
        "input": envelope.input(),
        "gas": quantity(envelope.gas_limit()),
        "gasPrice": quantity(base_fee.unwrap_or_else(|| envelope.max_fee_per_gas())),
        "chainId": envelope.chain_id().map(quantity),
        "v": quantity(v),
        "r": number(signature.r()),
        "s": number(signature.s()),
    });
    if !is_legacy {
        put(&mut value, "maxFeePerGas", quantity(envelope.max_fee_per_gas()));
        put(&mut value, "maxPriorityFeePerGas", quantity(envelope.max_priority_fee_per_gas().unwrap_or_default()));
        let items = envelope.access_list().map(|list| &list.0).into_iter().flatten();
        let items = items.map(|item| json!({"address": item.address, "storageKeys": item.storage_keys}));
        put(&mut value, "accessList", items.collect());
        put(&mut value, "yParity", quantity(parity));
    }
    value
}

/// Returns the receipt of a transaction in a block.
pub(crate) fn receipt(block: &Block<TxEnvelope>, index: usize) -> Option<Value> {
    let mined = block.transactions.get(index)?;
    let before = block.transactions.get(..index)?;
    let cumulative = before.iter().fold(mined.receipt.gas_used, |sum, mined| sum.saturating_add(mined.receipt.gas_used));
    let logs: Vec<_> = logs_of(block, index).collect();
    let written =
        ConsensusReceipt { status: mined.receipt.is_success().into(), cumulative_gas_used: cumulative, logs: mined.receipt.logs.clone() };
    let created = mined.to.is_none().then(|| mined.receipt.from.create(mined.transaction.nonce()));
    Some(json!({
        "transactionHash": mined.id,
        "transactionIndex": quantity(u64::try_from(index).unwrap_or_default()),
        "blockHash": block.hash,
        "blockNumber": quantity(block.number),
        "from": mined.receipt.from,
        "to": mined.to,
        "cumulativeGasUsed": quantity(cumulative),
        "gasUsed": quantity(mined.receipt.gas_used),
        "effectiveGasPrice": quantity(mined.receipt.gas_price),
        "contractAddress": created,
        "logs": logs.iter().map(|(_, log)| log).collect::<Vec<_>>(),
        "logsBloom": written.bloom_slow(),
        "status": if mined.receipt.is_success() { "0x1" } else { "0x0" },
        "type": quantity(u8::from(mined.transaction.tx_type())),
    }))
}

/// Returns the logs of a transaction in a block.
pub(crate) fn logs_of(block: &Block<TxEnvelope>, index: usize) -> impl Iterator<Item = (&Log, Value)> {
    let count = |mined: &Mined<TxEnvelope>| mined.receipt.logs.len();
    let before: usize = block.transactions.iter().take(index).map(count).sum();
    let mined = block.transactions.get(index);
    mined.into_iter().flat_map(|mined| mined.receipt.logs.iter().map(move |log| (mined.id, log))).zip(before..).map(
        move |((id, log), place)| {
            let value = self::log(log, (block.number, block.hash), (id, index), place);
            (log, value)
        },
    )
}

/// Returns a log with its block, and its transaction and that one's index.
pub(crate) fn log(log: &Log, block: (u64, B256), transaction: (B256, usize), place: usize) -> Value {
    json!({
        "address": log.address,
        "topics": log.topics(),
        "data": hex::encode_prefixed(&log.data.data),
        "blockNumber": quantity(block.0),
        "blockHash": block.1,
        "transactionHash": transaction.0,
        "transactionIndex": quantity(u64::try_from(transaction.1).unwrap_or_default()),
        "logIndex": quantity(u64::try_from(place).unwrap_or_default()),
        "removed": false,
    })
}
