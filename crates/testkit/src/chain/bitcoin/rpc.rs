//! The node's JSON-RPC of the chain in memory.

use countersign_bitcoin::bitcoin::consensus::encode::{deserialize_hex, serialize_hex};
use countersign_bitcoin::bitcoin::{Amount, OutPoint, Transaction};
use serde_json::{Value, json};

use super::{LITECOIN, Ledger};

impl Ledger {
    pub(super) fn height_of(&self, hash: &Value) -> Result<usize, (i64, &'static str)> {
        self.blocks.iter().position(|(header, _)| *hash == header.block_hash().to_string()).ok_or((-5, "Block not found"))
    }

    /// Returns the result of a method of a node's RPC, or its error.
    pub(super) fn call(&self, method: &str, params: &Value) -> Result<Value, (i64, &'static str)> {
        const UNKNOWN: (i64, &str) = (-5, "No such mempool or blockchain transaction. Use gettransaction for wallet transactions.");
        const NO_INDEX: (i64, &str) =
            (-5, "No such mempool transaction. Use -txindex or provide a block hash to enable blockchain transaction queries.");
        const PRUNED: (i64, &str) = (-1, "Block not available (pruned data)");
        let best = self.blocks.len() - 1;
        let coins = |value: Amount| serde_json::from_str::<Value>(&format!("{:.8}", value.to_btc())).unwrap();
        let outpoint = |txid: &Value, vout: &Value| OutPoint {
            txid: txid.as_str().unwrap().parse().unwrap(),
            vout: u32::try_from(vout.as_u64().unwrap()).unwrap(),
        };
        let unknown = if self.has_transaction_index { UNKNOWN } else { NO_INDEX };
        let find = |txid: &Value| self.find(txid.as_str().unwrap()).ok_or(unknown);
        let stored =
            |hash: &Value| self.height_of(hash).and_then(|height| if height < self.pruned_below { Err(PRUNED) } else { Ok(height) });
        let decode = |hex: &Value| deserialize_hex::<Transaction>(hex.as_str().unwrap()).unwrap();
        Ok(match method {
            "getblockhash" if params[0] == 0 && self.is_litecoin => json!(LITECOIN),
            "getblockhash" => {
                let height = usize::try_from(params[0].as_u64().unwrap()).unwrap();
                json!(self.blocks.get(height).ok_or((-8, "Block height out of range"))?.0.block_hash().to_string())
            }
            "getblockheader" if params[1] == true => json!({"height": self.height_of(&params[0])?}),
            "getblockheader" => json!(serialize_hex(&self.blocks[self.height_of(&params[0])?].0)),
            "getblock" => {
                let (header, txdata) = self.blocks[stored(&params[0])?].clone();
                json!(serialize_hex(&countersign_bitcoin::bitcoin::Block { header, txdata }))
            }
            "getblockchaininfo" => json!({"blocks": best, "bestblockhash": self.hash(best).to_string()}),
            "scantxoutset" => {
                let script = params[1][0]["desc"].as_str().unwrap().trim_start_matches("raw(").trim_end_matches(')').to_owned();
                let mut list = Vec::new();
                for (height, tx) in self.all() {
                    let (Some(height), txid) = (height, tx.compute_txid()) else { continue };
                    for (vout, output) in (0..).zip(&tx.output) {
                        let is_spent = self.outspend(OutPoint { txid, vout })["status"]["confirmed"] == true;
                        if hex::encode(output.script_pubkey.as_bytes()) == script && !is_spent {
                            list.push(json!({"txid": txid.to_string(), "vout": vout, "amount": coins(output.value), "height": height}));
                        }
                    }
                }
                json!({"success": true, "height": best, "bestblock": self.hash(best).to_string(), "unspents": list})
            }
            "getrawtransaction" => {
                let (height, tx) = find(&params[0])?;
                let is_there = match params[2].as_str() {
                    Some(_) => height == Some(stored(&params[2])?),
                    None => height.is_none() || self.has_transaction_index,
                };
                if !is_there {
                    return Err(unknown);
                }
                if params[1] == true {
                    let block = height.map(|height| self.hash(height).to_string());
                    let confirmations = height.map(|height| best - height + 1);
                    return Ok(json!({"txid": params[0], "blockhash": block, "confirmations": confirmations}));
                }
                json!(serialize_hex(tx))
            }
            "gettxoutproof" => {
                let height = stored(&params[1])?;
                let id = params[0][0].as_str().unwrap();
                if self.find(id).and_then(|(height, _)| height) != Some(height) {
                    return Err((-5, "Not all transactions found in specified or retrieved block"));
                }
                json!(self.proof(height, id))
            }
            "gettxout" => {
                let outpoint = outpoint(&params[0], &params[1]);
                let found = self.find(params[0].as_str().unwrap()).filter(|(height, _)| height.is_some() || params[2] == true);
                let spend = self.outspend(outpoint);
                let is_spent = spend["spent"] == true && (params[2] == true || spend["status"]["confirmed"] == true);
                let output = found.filter(|_| !is_spent).and_then(|(_, tx)| tx.output.get(usize::try_from(outpoint.vout).unwrap()));
                output.map_or(
                    Value::Null,
                    |output| json!({"value": coins(output.value), "scriptPubKey": {"hex": output.script_pubkey.to_hex_string()}}),
                )
            }
            "gettxspendingprevout" if !self.has_spending_method => return Err((-32601, "Method not found")),
            "gettxspendingprevout" => {
                let spend = self.outspend(outpoint(&params[0][0]["txid"], &params[0][0]["vout"]));
                let mut entry = params[0][0].clone();
                if spend["status"]["confirmed"] == false {
                    entry["spendingtxid"] = spend["txid"].clone();
                }
                json!([entry])
            }
            // Litecoin Core 0.21.5.8, or Bitcoin Core 28.
            "getnetworkinfo" => json!({"version": if self.is_litecoin { 210_508 } else { 280_000 }}),
            "getmempoolinfo" => json!({"size": self.mempool.len(), "mempoolminfee": 0.000_01, "minrelaytxfee": 0.000_01}),
            "getrawmempool" => json!(self.mempool.iter().map(|tx| tx.compute_txid().to_string()).collect::<Vec<_>>()),
            "estimatesmartfee" => json!({"feerate": 0.000_025, "blocks": 3}),
            "testmempoolaccept" => match self.test(&decode(&params[0][0])) {
                Some(why) => json!([{"allowed": false, "reject-reason": why}]),
                None => json!([{"allowed": true}]),
            },
            "sendrawtransaction" => {
                let transaction = decode(&params[0]);
                if let Some(why) = self.test(&transaction) {
                    return Err((-25, why));
                }
                json!(transaction.compute_txid().to_string())
            }
            other => panic!("{other}"),
        })
    }
}
