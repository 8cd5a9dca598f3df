//! The HTTP interface of an Esplora server, including its error texts. It also serves the fee rates of a
//! mempool.space server, which some wallets request.
//!
//! <https://github.com/Blockstream/esplora/blob/master/API.md>

use bitcoin::hashes::{Hash, sha256d};
use bitcoin::{BlockHash, MerkleBlock, OutPoint, Txid, consensus};
use countersign_chains::AddressError;
use serde_json::{Map, Value, json};

use super::ledger::{Block, Entry, Ledger, ScriptHash, script_hash};
use super::shapes;
use crate::http::{Reply, Request};

/// The number of mined transactions, or of blocks, on a page.
const PAGE: usize = 25;
const PAGE_OF_BLOCKS: usize = 10;
/// The maximum number of mempool transactions in a history.
const MAX_WAITING: usize = 50;
/// The maximum number of unspent outputs in a list.
const MAX_UNSPENT: usize = 500;

/// The status and the text of an error.
type Failure = (u16, String);

fn invalid(text: &str) -> Failure {
    (400, text.to_owned())
}

fn missing(text: &str) -> Failure {
    (404, text.to_owned())
}

/// Answers a client's call. Some clients put `/api` in front of every path.
pub(super) fn answer(ledger: &mut Ledger, request: &Request) -> Reply {
    let path = request.path.strip_prefix("/api").filter(|rest| rest.starts_with('/')).unwrap_or(&request.path);
    let parts: Vec<&str> = path.split('/').skip(1).collect();
    let result = match (request.method.as_str(), parts.as_slice()) {
        ("POST", ["tx"]) => {
            std::str::from_utf8(&request.body).map_err(|error| invalid(&error.to_string())).and_then(|hex| send(ledger, hex))
        }
        ("GET", ["broadcast"]) => request.parameter("tx").ok_or_else(|| invalid("Missing tx")).and_then(|hex| send(ledger, &hex)),
        // The node's own RPC, for clients that use it instead of Esplora.
        ("POST", [""]) => ledger.pass(request).ok_or_else(|| missing("")),
        ("GET" | "HEAD", parts) => get(ledger, parts),
        _ => None.ok_or_else(|| missing("")),
    };
    result.unwrap_or_else(|(status, text)| {
        let text = if text.is_empty() { format!("endpoint does not exist {:?}", request.path) } else { text };
        Reply::new(status, "text/plain", text)
    })
}

fn text(text: impl ToString) -> Reply {
    Reply::new(200, "text/plain", text.to_string())
}

fn send(ledger: &mut Ledger, hex: &str) -> Result<Reply, Failure> {
    let sent = ledger.accept_hex(hex).map_err(|rejection| json!({ "code": rejection.code, "message": rejection.message }));
    sent.map(text).map_err(|error| (400, format!("sendrawtransaction RPC error: {error}")))
}

fn get(ledger: &Ledger, parts: &[&str]) -> Result<Reply, Failure> {
    let tip = || ledger.blocks.last_key_value().map(|(_, block)| block).ok_or_else(|| missing("Block not found"));
    match parts {
        ["blocks", "tip", "hash"] => Ok(text(tip()?.hash)),
        ["blocks", "tip", "height"] => Ok(text(ledger.height())),
        ["blocks"] | ["blocks", _] => {
            let first = parts.get(1).and_then(|height| height.parse().ok());
            let first = first.map_or_else(|| Ok(ledger.height()), |height| at_height(ledger, height).map(|block| block.height))?;
            let blocks = ledger.blocks.range(..=first).rev().take(PAGE_OF_BLOCKS);
            Ok(Reply::json(200, &blocks.map(|(_, block)| shapes::block(ledger, block)).collect()))
        }
        ["block-height", height] => Ok(text(at_height(ledger, number(height)?)?.hash)),
        ["block", hash, rest @ ..] => block(ledger, hash.parse().map_err(|_| invalid("Invalid hex string"))?, rest),
        ["tx", txid, rest @ ..] => transaction(ledger, txid.parse().map_err(|_| invalid("Invalid hex string"))?, rest),
        [kind @ "address", address, rest @ ..] => {
            let script = ledger.network.script(address).map_err(|error| match error {
                AddressError::OtherNetwork => invalid("Address on invalid network"),
                _ => invalid("Invalid Bitcoin address"),
            });
            script_of(ledger, kind, address, script_hash(&script?), rest)
        }
        [kind @ "scripthash", hash, rest @ ..] => {
            let bytes = hex::decode(hash).map_err(|_| invalid("Invalid hex string"))?;
            script_of(ledger, kind, hash, bytes.try_into().map_err(|_| invalid("Invalid scripthash"))?, rest)
        }
        ["mempool", rest @ ..] => mempool(ledger, rest),
        ["fee-estimates"] => Ok(Reply::json(200, &estimates())),
        ["v1", "fees", "recommended"] => {
            let rate = |blocks| json!(rate(blocks));
            let fees = json!({
                "fastestFee": rate(1),
                "halfHourFee": rate(3),
                "hourFee": rate(6),
                "economyFee": rate(144),
                "minimumFee": rate(144),
            });
            Ok(Reply::json(200, &fees))
        }
        _ => Err(missing("")),
    }
}

fn number<T: std::str::FromStr>(text: &str) -> Result<T, Failure> {
    text.parse().map_err(|_| invalid("Invalid number"))
}

fn at_height(ledger: &Ledger, height: u32) -> Result<&Block, Failure> {
    ledger.blocks.get(&height).ok_or_else(|| missing("Block not found"))
}

/// Returns the fee rate in sat/vB for confirmation within a number of blocks. Blocks are never full, so these are the
/// rates of quiet days. The service's clients underestimate sizes, so rates for the next hours are above the minimum.
const fn rate(blocks: u32) -> f64 {
    match blocks {
        1 => 3.0,
        2 => 2.5,
        3..=12 => 2.0,
        _ => 1.0,
    }
}

fn estimates() -> Value {
    (1..=25).chain([144, 504, 1_008]).map(|blocks| (blocks.to_string(), json!(rate(blocks)))).collect::<Map<_, _>>().into()
}

fn block(ledger: &Ledger, hash: BlockHash, rest: &[&str]) -> Result<Reply, Failure> {
    let found = ledger.by_hash(&hash);
    if rest == ["status"] {
        let next = |block: &Block| ledger.blocks.get(&block.height.saturating_add(1)).map(|next| next.hash.to_string());
        return Ok(Reply::json(
            200,
            &match found {
                Some(block) => json!({ "in_best_chain": true, "height": block.height, "next_best": next(block) }),
                None => json!({ "in_best_chain": false }),
            },
        ));
    }
    let block = found.ok_or_else(|| missing("Block not found"))?;
    match rest {
        [] => Ok(Reply::json(200, &shapes::block(ledger, block))),
        ["header"] => Ok(text(consensus::encode::serialize_hex(&block.header))),
        ["txids"] => Ok(Reply::json(200, &block.txids.iter().map(ToString::to_string).collect())),
        ["txid", index] => {
            let txid = block.txids.get(number::<usize>(index)?);
            txid.map(text).ok_or_else(|| missing("tx index out of range"))
        }
        ["txs"] | ["txs", _] => {
            let start = rest.get(1).and_then(|start| start.parse().ok()).unwrap_or(0_usize);
            if start >= block.txids.len() {
                return Err(missing("start index out of range"));
            }
            if !start.is_multiple_of(PAGE) {
                return Err(invalid("start index must be a multipication of 25"));
            }
            let page = block.txids.iter().skip(start).take(PAGE);
            let page: Option<Value> = page.map(|txid| Some(shapes::transaction(ledger, txid, ledger.entries.get(txid)?))).collect();
            page.map(|page| Reply::json(200, &page)).ok_or_else(|| invalid("missing tx"))
        }
        ["raw"] => {
            let bytes = ledger.raw(block).ok_or_else(|| missing("Block not found"))?;
            Ok(Reply::new(200, "application/octet-stream", bytes))
        }
        _ => Err(missing("")),
    }
}

fn transaction(ledger: &Ledger, txid: Txid, rest: &[&str]) -> Result<Reply, Failure> {
    let found = ledger.entries.get(&txid);
    // These two paths also work for unknown transactions.
    match rest {
        ["status"] => return Ok(Reply::json(200, &shapes::status(ledger, found))),
        ["outspend", vout] => return Ok(Reply::json(200, &shapes::outspend(ledger, OutPoint { txid, vout: number(vout)? }))),
        _ => {}
    }
    let unproven = || missing("Transaction not found or is unconfirmed");
    let mined = || found.and_then(Entry::height).and_then(|height| ledger.blocks.get(&height)).ok_or_else(unproven);
    match rest {
        ["merkleblock-proof"] => {
            let block = mined()?;
            let proof = MerkleBlock::from_header_txids_with_predicate(&block.header, &block.txids, |id| *id == txid);
            return Ok(text(consensus::encode::serialize_hex(&proof)));
        }
        ["merkle-proof"] => {
            let block = mined()?;
            let position = block.txids.iter().position(|id| *id == txid).ok_or_else(unproven)?;
            let merkle = branch(&block.txids, position);
            return Ok(Reply::json(200, &json!({ "block_height": block.height, "merkle": merkle, "pos": position })));
        }
        _ => {}
    }
    let entry = found.ok_or_else(|| missing("Transaction not found"))?;
    match rest {
        [] => Ok(Reply::json(200, &shapes::transaction(ledger, &txid, entry))),
        ["hex"] => Ok(text(consensus::encode::serialize_hex(&*entry.transaction))),
        ["raw"] => Ok(Reply::new(200, "application/octet-stream", consensus::serialize(&*entry.transaction))),
        ["outspends"] => {
            let outpoints = (0..).zip(&entry.transaction.output).map(|(vout, _)| OutPoint { txid, vout });
            Ok(Reply::json(200, &outpoints.map(|outpoint| shapes::outspend(ledger, outpoint)).collect()))
        }
        _ => Err(missing("")),
    }
}

/// Returns the Merkle branch of a transaction, in the format of Electrum servers.
fn branch(txids: &[Txid], position: usize) -> Vec<String> {
    let (mut layer, mut index) = (txids.iter().map(|txid| txid.to_raw_hash()).collect::<Vec<_>>(), position);
    let mut beside = Vec::new();
    while layer.len() > 1 {
        if !layer.len().is_multiple_of(2) {
            layer.extend(layer.last().copied());
        }
        beside.extend(layer.get(index ^ 1).map(ToString::to_string));
        let join = |pair: &[sha256d::Hash]| sha256d::Hash::hash(&pair.iter().flat_map(|hash| hash.to_byte_array()).collect::<Vec<_>>());
        layer = layer.chunks(2).map(join).collect();
        index /= 2;
    }
    beside
}

fn script_of(ledger: &Ledger, kind: &str, name: &str, script: ScriptHash, rest: &[&str]) -> Result<Reply, Failure> {
    let of = |is_mined: bool| ledger.history(script).filter(move |(_, entry)| entry.height().is_some() == is_mined);
    let shape = |(txid, entry): (&Txid, &Entry)| shapes::transaction(ledger, txid, entry);
    match rest {
        [] => Ok(Reply::json(
            200,
            &json!({
                kind: name, "chain_stats": shapes::stats(ledger, script, true), "mempool_stats": shapes::stats(ledger, script, false),
            }),
        )),
        ["txs"] => Ok(Reply::json(200, &of(false).take(MAX_WAITING).chain(of(true).take(PAGE)).map(shape).collect())),
        ["txs", "mempool"] => Ok(Reply::json(200, &of(false).take(MAX_WAITING).map(shape).collect())),
        ["txs", "chain"] => Ok(Reply::json(200, &of(true).take(PAGE).map(shape).collect())),
        ["txs", "chain", last] => {
            let last: Txid = last.parse().map_err(|_| invalid("Invalid hex string"))?;
            Ok(Reply::json(200, &of(true).skip_while(|(txid, _)| **txid != last).skip(1).take(PAGE).map(shape).collect()))
        }
        ["utxo"] => {
            let mut list = Vec::new();
            for (outpoint, output, entry) in ledger.unspent(script).take(MAX_UNSPENT.saturating_add(1)) {
                let (txid, status) = (outpoint.txid.to_string(), shapes::status(ledger, Some(entry)));
                list.push(json!({ "txid": txid, "vout": outpoint.vout, "status": status, "value": output.value.to_sat() }));
            }
            if list.len() > MAX_UNSPENT {
                return Err(invalid("Too many unspent transaction outputs (>500). Contact support to raise limits."));
            }
            Ok(Reply::json(200, &list.into()))
        }
        _ => Err(missing("")),
    }
}

fn mempool(ledger: &Ledger, rest: &[&str]) -> Result<Reply, Failure> {
    let waiting = || ledger.waiting.iter().rev().filter_map(|(_, txid)| Some((txid, ledger.entries.get(txid)?)));
    match rest {
        [] => {
            let vsize = waiting().map(|(_, entry)| entry.vsize).fold(0, u64::saturating_add);
            let fee = waiting().map(|(_, entry)| entry.fee()).fold(0, u64::saturating_add);
            let rate = fee.checked_div(vsize).unwrap_or_default();
            let histogram = if vsize == 0 { json!([]) } else { json!([[rate, vsize]]) };
            let count = ledger.waiting.len();
            Ok(Reply::json(200, &json!({ "count": count, "vsize": vsize, "total_fee": fee, "fee_histogram": histogram })))
        }
        ["txids"] => Ok(Reply::json(200, &waiting().map(|(txid, _)| txid.to_string()).collect())),
        ["recent"] => {
            let recent = waiting().take(10).map(|(txid, entry)| {
                let value = super::ledger::sum(&entry.transaction.output);
                json!({ "txid": txid.to_string(), "fee": entry.fee(), "vsize": entry.vsize, "value": value })
            });
            Ok(Reply::json(200, &recent.collect()))
        }
        _ => Err(missing("")),
    }
}
