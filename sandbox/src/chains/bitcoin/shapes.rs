//! Blocks and transactions in the JSON format of an Esplora server.

use bitcoin::{OutPoint, Script, TxOut, Txid, consensus};
use serde_json::{Value, json};

use super::ledger::{Block, Entry, Ledger, ScriptHash, script_hash};
use super::network::Network;
use crate::http::put;

pub(super) fn block(ledger: &Ledger, block: &Block) -> Value {
    let Block { height, hash, header, txids } = block;
    let transactions = || txids.iter().filter_map(|txid| ledger.entries.get(txid)).map(|entry| &entry.transaction);
    let count = txids.len();
    let head = consensus::serialize(header).len().saturating_add(if count < 0xfd { 1 } else { 3 });
    let size = transactions().map(|transaction| transaction.total_size()).fold(head, usize::saturating_add);
    let weight = transactions().map(|transaction| transaction.weight().to_wu()).fold(0, u64::saturating_add);
    let weight = u64::try_from(head.saturating_mul(4)).unwrap_or_default().saturating_add(weight);
    let mut value = json!({
        "id": hash.to_string(), "height": height, "version": header.version.to_consensus(), "timestamp": header.time, "tx_count": count,
        "size": size, "weight": weight, "merkle_root": header.merkle_root.to_string(),
        "previousblockhash": header.prev_blockhash.to_string(), "mediantime": ledger.median_time(*height), "nonce": header.nonce,
        "bits": header.bits.to_consensus(), "difficulty": header.difficulty_float(),
    });
    if *height == 0 {
        put(&mut value, "previousblockhash", Value::Null);
    }
    value
}

/// Returns where a transaction is: in which block, or in none.
pub(super) fn status(ledger: &Ledger, entry: Option<&Entry>) -> Value {
    match entry.and_then(Entry::height).and_then(|height| ledger.blocks.get(&height)) {
        Some(block) => json!({
            "confirmed": true, "block_height": block.height, "block_hash": block.hash.to_string(), "block_time": block.header.time,
        }),
        None => json!({ "confirmed": false }),
    }
}

pub(super) fn transaction(ledger: &Ledger, txid: &Txid, entry: &Entry) -> Value {
    let transaction = &entry.transaction;
    let input = |(index, input): (usize, &bitcoin::TxIn)| {
        let prevout = entry.prevouts.get(index).map(|prevout| output(&ledger.network, prevout));
        let mut value = json!({
            "txid": input.previous_output.txid.to_string(), "vout": input.previous_output.vout, "prevout": prevout,
            "scriptsig": hex::encode(input.script_sig.as_bytes()), "scriptsig_asm": input.script_sig.to_asm_string(),
            "is_coinbase": input.previous_output.is_null(), "sequence": input.sequence.to_consensus_u32(),
        });
        if !input.witness.is_empty() {
            put(&mut value, "witness", input.witness.iter().map(hex::encode).collect());
        }
        value
    };
    json!({
        "txid": txid.to_string(), "version": transaction.version.0, "locktime": transaction.lock_time.to_consensus_u32(),
        "vin": transaction.input.iter().enumerate().map(input).collect::<Vec<_>>(),
        "vout": transaction.output.iter().map(|one| output(&ledger.network, one)).collect::<Vec<_>>(),
        "size": transaction.total_size(), "weight": transaction.weight().to_wu(), "fee": entry.fee(),
        "status": status(ledger, Some(entry)),
    })
}

fn output(network: &Network, output: &TxOut) -> Value {
    let script = &output.script_pubkey;
    let mut value = json!({
        "scriptpubkey": hex::encode(script.as_bytes()), "scriptpubkey_asm": script.to_asm_string(), "scriptpubkey_type": kind(script),
        "value": output.value.to_sat(),
    });
    if let Some(address) = network.address(script) {
        put(&mut value, "scriptpubkey_address", address.into());
    }
    value
}

fn kind(script: &Script) -> &'static str {
    let kinds = [
        (script.is_empty(), "empty"),
        (script.is_op_return(), "op_return"),
        (script.is_p2pk(), "p2pk"),
        (script.is_p2pkh(), "p2pkh"),
        (script.is_p2sh(), "p2sh"),
        (script.is_p2wpkh(), "v0_p2wpkh"),
        (script.is_p2wsh(), "v0_p2wsh"),
        (script.is_p2tr(), "v1_p2tr"),
        (script.is_multisig(), "multisig"),
    ];
    kinds.into_iter().find(|(is_kind, _)| *is_kind).map_or("unknown", |(_, kind)| kind)
}

pub(super) fn outspend(ledger: &Ledger, outpoint: OutPoint) -> Value {
    match ledger.spends.get(&outpoint) {
        Some((txid, vin)) => {
            json!({ "spent": true, "txid": txid.to_string(), "vin": vin, "status": status(ledger, ledger.entries.get(txid)) })
        }
        None => json!({ "spent": false }),
    }
}

/// Returns what blocks, or the mempool, have paid to a script and spent from it.
pub(super) fn stats(ledger: &Ledger, script: ScriptHash, is_mined: bool) -> Value {
    let (mut funded, mut spent, mut count) = ((0_u64, 0_u64), (0_u64, 0_u64), 0_u64);
    for (_, entry) in ledger.history(script).filter(|(_, entry)| entry.height().is_some() == is_mined) {
        count = count.saturating_add(1);
        for (sums, outputs) in [(&mut funded, &entry.transaction.output), (&mut spent, &entry.prevouts)] {
            for output in outputs.iter().filter(|output| script_hash(&output.script_pubkey) == script) {
                *sums = (sums.0.saturating_add(1), sums.1.saturating_add(output.value.to_sat()));
            }
        }
    }
    json!({
        "funded_txo_count": funded.0, "funded_txo_sum": funded.1, "spent_txo_count": spent.0, "spent_txo_sum": spent.1, "tx_count": count,
    })
}
