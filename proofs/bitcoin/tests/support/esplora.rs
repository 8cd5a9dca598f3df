//! A small Esplora server on top of a node's RPC, with the routes that countersign's node crate uses.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use bitcoin::consensus::encode::deserialize_hex;
use bitcoin::hashes::{Hash, sha256};
use bitcoin::{OutPoint, Transaction, TxOut};
use serde_json::{Value, json};

use super::litecoind::{Cli, Done};

/// The transactions of each block that was read, by block hash.
type Blocks = HashMap<String, (String, Arc<Vec<Transaction>>)>;

/// A server on loopback. Its thread ends with the test.
#[derive(Clone)]
pub(crate) struct Esplora {
    node: Cli,
    blocks: Arc<Mutex<Blocks>>,
}

/// A transaction with the height and hash of its block.
struct Known {
    transaction: Transaction,
    block: Option<(u64, String)>,
}

impl Known {
    fn status(&self) -> Value {
        match &self.block {
            Some((height, hash)) => json!({"confirmed": true, "block_height": height, "block_hash": hash}),
            None => json!({"confirmed": false}),
        }
    }

    fn id(&self) -> String {
        self.transaction.compute_txid().to_string()
    }
}

impl Esplora {
    /// Starts a server and returns its URL.
    pub(crate) fn start(node: Cli) -> Done<String> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let url = format!("http://{}", listener.local_addr()?);
        let server = Self { node, blocks: Arc::default() };
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let server = server.clone();
                thread::spawn(move || server.serve(stream));
            }
        });
        Ok(url)
    }

    fn serve(&self, mut stream: TcpStream) {
        let Some((path, body)) = request(&mut stream) else { return };
        let (status, body) = self.answer(&path, &body).unwrap_or_else(|error| (500, error.to_string().into_bytes()));
        let head = format!("HTTP/1.1 {status} Word\r\nconnection: close\r\ncontent-length: {}\r\n\r\n", body.len());
        let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&body));
        let _ = stream.shutdown(Shutdown::Both);
    }

    fn json(&self, method: &str, arguments: &[&str]) -> Done<Value> {
        Ok(serde_json::from_str(&self.node.call(method, arguments)?)?)
    }

    /// Returns the hash of a block's parent, and the block's transactions.
    fn block(&self, hash: &str) -> Done<(String, Arc<Vec<Transaction>>)> {
        if let Some(known) = self.blocks.lock().expect("no panic").get(hash) {
            return Ok(known.clone());
        }
        let block = self.json("getblock", &[hash, "2"])?;
        let all = block["tx"].as_array().ok_or("transactions")?;
        // Transactions of the extension block have another format.
        let all = all.iter().filter_map(|tx| deserialize_hex(tx["hex"].as_str()?).ok());
        let before = block["previousblockhash"].as_str().unwrap_or_default().to_owned();
        let known = (before, Arc::new(all.collect::<Vec<Transaction>>()));
        self.blocks.lock().expect("no panic").insert(hash.to_owned(), known.clone());
        Ok(known)
    }

    /// Returns all transactions from block 1 to the mempool.
    fn all(&self) -> Done<Vec<Known>> {
        let mut known = Vec::new();
        let mut hash = self.node.call("getbestblockhash", &[])?;
        let mut height: u64 = self.json("getblockheader", &[&hash])?["height"].as_u64().ok_or("height")?;
        while height > 0 {
            let block = Some((height, hash.clone()));
            let (before, all) = self.block(&hash)?;
            known.extend(all.iter().map(|tx| Known { transaction: tx.clone(), block: block.clone() }));
            height -= 1;
            hash = before;
        }
        for id in self.json("getrawmempool", &[])?.as_array().ok_or("mempool")? {
            let raw = self.node.call("getrawtransaction", &[id.as_str().ok_or("id")?])?;
            known.push(Known { transaction: deserialize_hex(&raw)?, block: None });
        }
        Ok(known)
    }

    fn answer(&self, path: &str, body: &str) -> Done<(u16, Vec<u8>)> {
        let parts: Vec<&str> = path.trim_start_matches('/').split('/').collect();
        let ok = |value: Value| Ok((200, value.to_string().into_bytes()));
        let missing = || Ok((404, b"not found".to_vec()));
        let spender = |all: &[Known], from: OutPoint| {
            let spends = |known: &&Known| known.transaction.input.iter().any(|input| input.previous_output == from);
            all.iter().find(spends).map_or_else(
                || json!({"spent": false}),
                |known| json!({"spent": true, "txid": known.id(), "vin": 0, "status": known.status()}),
            )
        };
        match parts.as_slice() {
            ["block-height", height] => Ok((200, self.node.call("getblockhash", &[height])?.into_bytes())),
            ["blocks"] => {
                let hash = self.node.call("getbestblockhash", &[])?;
                let header = self.json("getblockheader", &[&hash])?;
                let bits = u32::from_str_radix(header["bits"].as_str().ok_or("bits")?, 16)?;
                ok(json!([{
                    "id": hash, "height": header["height"], "version": header["version"], "timestamp": header["time"],
                    "merkle_root": header["merkleroot"], "previousblockhash": header["previousblockhash"], "nonce": header["nonce"],
                    "bits": bits, "difficulty": header["difficulty"],
                }]))
            }
            ["scripthash", hash, what] => {
                let all = self.all()?;
                let pays = |output: &TxOut| sha256::Hash::hash(output.script_pubkey.as_bytes()).to_string() == *hash;
                let mut list = Vec::new();
                for known in all.iter().filter(|known| known.transaction.output.iter().any(pays)) {
                    let outputs = &known.transaction.output;
                    if *what == "txs" {
                        let output = |output: &TxOut| json!({"scriptpubkey": hex::encode(output.script_pubkey.as_bytes()), "value": output.value.to_sat()});
                        list.push(
                            json!({"txid": known.id(), "vout": outputs.iter().map(output).collect::<Vec<_>>(), "status": known.status()}),
                        );
                        continue;
                    }
                    for (vout, output) in (0..).zip(outputs).filter(|(_, output)| pays(output)) {
                        let from = OutPoint { txid: known.transaction.compute_txid(), vout };
                        if spender(&all, from)["spent"] == false {
                            let value = output.value.to_sat();
                            list.push(json!({"txid": known.id(), "vout": vout, "status": known.status(), "value": value}));
                        }
                    }
                }
                ok(json!(list))
            }
            ["fee-estimates"] => ok(json!({})),
            ["tx"] => Ok(match self.node.call("sendrawtransaction", &[body]) {
                Ok(id) => (200, id.into_bytes()),
                Err(why) => (400, format!("sendrawtransaction RPC error: {why}").into_bytes()),
            }),
            ["tx", id, rest @ ..] => {
                let Ok(raw) = self.node.call("getrawtransaction", &[id]) else { return missing() };
                match rest {
                    ["raw"] => Ok((200, hex::decode(raw)?)),
                    ["merkleblock-proof"] => match self.node.call("gettxoutproof", &[&format!("[\"{id}\"]")]) {
                        Ok(proof) => Ok((200, proof.into_bytes())),
                        Err(_) => missing(),
                    },
                    ["outspend", vout] => ok(spender(&self.all()?, OutPoint { txid: id.parse()?, vout: vout.parse()? })),
                    // After a reorganization, a node still has the transactions of the replaced blocks.
                    [] => match self.all()?.iter().find(|known| known.id() == *id) {
                        Some(known) => ok(json!({"txid": id, "status": known.status()})),
                        None => missing(),
                    },
                    _ => missing(),
                }
            }
            _ => missing(),
        }
    }
}

/// Reads the path and the body of a request.
fn request(stream: &mut TcpStream) -> Option<(String, String)> {
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let count = stream.read(&mut buffer).ok().filter(|count| *count > 0)?;
        bytes.extend_from_slice(&buffer[..count]);
        let text = String::from_utf8_lossy(&bytes);
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length = head.lines().find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length:")?.trim().parse().ok());
        if body.len() >= length.unwrap_or(0) {
            return Some((head.split(' ').nth(1)?.to_owned(), body.to_owned()));
        }
    }
}
