//! Litecoin's own regression-test network: litecoind.

use std::env;
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard};

use bitcoin::hashes::{Hash as _, hash160};
use serde_json::{Value, json};

use super::http;
use super::{poll, project};

const USER: &str = "countersign";
const PASSWORD: &str = "regtest";
/// The two as HTTP wants them.
pub const AUTHORIZATION: &str = "Basic Y291bnRlcnNpZ246cmVndGVzdA==";

/// Where a node is installed: the daemon, and where its libraries are.
fn installed() -> Result<(PathBuf, PathBuf), String> {
    let own = project().join("proofs/bitcoin/.engine");
    let daemon = [own.as_path(), Path::new("/")].map(|place| place.join("usr/lib/litecoin/litecoind"));
    let found = daemon
        .into_iter()
        .find(|path| path.is_file())
        .ok_or("no litecoind: run proofs/bitcoin/fetch-litecoind, or install Debian's package")?;
    Ok((found, own.join(format!("usr/lib/{}-linux-gnu", env::consts::ARCH))))
}

/// A running node with a wallet of mature coins. Stopped, and its folder removed, on drop.
pub struct Litecoin {
    child: Child,
    folder: PathBuf,
    pub port: u16,
    miner: String,
    index: Mutex<Index>,
}

/// A confirmed output.
#[derive(Debug, Clone)]
pub struct Output {
    pub address: String,
    pub txid: String,
    pub vout: u64,
    pub value: u64,
    pub height: u64,
    pub spent: Option<Spend>,
}

/// What has spent an output.
#[derive(Debug, Clone)]
pub struct Spend {
    pub txid: String,
    pub witness: Vec<Vec<u8>>,
}

/// The outputs of every block before `next`.
#[derive(Default)]
struct Index {
    next: u64,
    outputs: Vec<Output>,
}

/// The endpoint of a node, or of what stands between, as the program is told.
pub fn url(port: u16) -> String {
    format!("rpc+http://{USER}:{PASSWORD}@127.0.0.1:{port}")
}

pub fn sats(value: &Value) -> u64 {
    (value.as_f64().unwrap() * 1e8).round() as u64
}

impl Litecoin {
    pub fn start() -> Result<Self, String> {
        let (daemon, libraries) = installed()?;
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let folder = env::temp_dir().join(format!("countersign-swap-{}-{port}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let child = Command::new(daemon)
            .env("LD_LIBRARY_PATH", libraries)
            .args(["-regtest", "-server", "-listen=0", "-dnsseed=0", "-fallbackfee=0.0001", "-txindex=1", "-acceptnonstdtxn=0"])
            // By default, Litecoin's nodes replace nothing, and nothing could be evicted.
            .arg("-mempoolreplacement=1")
            .args(["-rpcbind=127.0.0.1", "-rpcallowip=127.0.0.1", &format!("-rpcuser={USER}"), &format!("-rpcpassword={PASSWORD}")])
            .args([format!("-datadir={}", folder.display()), format!("-rpcport={port}")])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| format!("litecoind does not start here: {error}"))?;
        let mut node = Self { child, folder, port, miner: String::new(), index: Mutex::default() };
        let mut ended = None;
        poll("litecoind answers", || {
            ended = node.child.try_wait().unwrap();
            (ended.is_some() || node.call("getblockcount", json!([])).is_ok()).then_some(())
        });
        if let Some(status) = ended {
            return Err(format!("litecoind does not start here: {status}"));
        }
        node.call("createwallet", json!(["miner"])).unwrap();
        node.miner = node.call("getnewaddress", json!(["", "bech32"])).unwrap().as_str().unwrap().to_owned();
        node.mine(110);
        Ok(node)
    }

    pub fn url(&self) -> String {
        url(self.port)
    }

    pub fn call(&self, method: &str, params: Value) -> Result<Value, String> {
        http::call(self.port, Some(AUTHORIZATION), method, &params)
    }

    pub fn mine(&self, blocks: u64) {
        self.call("generatetoaddress", json!([blocks, self.miner])).unwrap();
    }

    pub fn new_address(&self) -> String {
        self.call("getnewaddress", json!(["", "bech32"])).unwrap().as_str().unwrap().to_owned()
    }

    /// Pays from the node's wallet, and returns the transaction's id.
    pub fn pay(&self, address: &str, value: u64) -> String {
        let coins = format!("{}.{:08}", value / 100_000_000, value % 100_000_000);
        self.call("sendtoaddress", json!([address, coins])).unwrap().as_str().unwrap().to_owned()
    }

    /// The outputs at an address that are confirmed and not spent.
    ///
    /// They are found block by block: a node makes one `scantxoutset` at a time, and the program needs it.
    pub fn outputs(&self, address: &str) -> Vec<Output> {
        let index = self.index();
        let unspent = index.outputs.iter().filter(|output| output.address == address && output.spent.is_none());
        unspent.cloned().collect()
    }

    /// Reads the blocks that are new.
    fn index(&self) -> MutexGuard<'_, Index> {
        let mut index = self.index.lock().unwrap();
        let height = self.height();
        while index.next <= height {
            let hash = self.call("getblockhash", json!([index.next])).unwrap();
            let block = self.call("getblock", json!([hash, 2])).unwrap();
            index.read(&block);
        }
        index
    }

    pub fn held(&self, address: &str) -> u64 {
        self.outputs(address).iter().map(|output| output.value).sum()
    }

    /// The ids of the transactions that wait.
    pub fn mempool(&self) -> Vec<String> {
        let list = self.call("getrawmempool", json!([])).unwrap();
        list.as_array().unwrap().iter().map(|txid| txid.as_str().unwrap().to_owned()).collect()
    }

    pub fn height(&self) -> u64 {
        self.call("getblockcount", json!([])).unwrap().as_u64().unwrap()
    }

    /// The confirmed transaction that spends an output, and the stack of its witness.
    pub fn spender(&self, txid: &str, address: &str) -> Option<Spend> {
        let index = self.index();
        let output = index.outputs.iter().find(|output| output.txid == txid && output.address == address)?;
        output.spent.clone()
    }
}

impl Index {
    fn read(&mut self, block: &Value) {
        for transaction in block["tx"].as_array().unwrap() {
            let txid = transaction["txid"].as_str().unwrap();
            for input in transaction["vin"].as_array().unwrap() {
                let is_spent = |output: &&mut Output| input["txid"] == output.txid.as_str() && input["vout"] == output.vout;
                let Some(output) = self.outputs.iter_mut().find(is_spent) else { continue };
                let witness = input["txinwitness"].as_array().into_iter().flatten();
                let witness = witness.map(|item| hex::decode(item.as_str().unwrap()).unwrap()).collect();
                output.spent = Some(Spend { txid: txid.to_owned(), witness });
            }
            for output in transaction["vout"].as_array().unwrap() {
                let Some(address) = output["scriptPubKey"]["addresses"][0].as_str() else { continue };
                self.outputs.push(Output {
                    address: address.to_owned(),
                    txid: txid.to_owned(),
                    vout: output["n"].as_u64().unwrap(),
                    value: sats(&output["value"]),
                    height: self.next,
                    spent: None,
                });
            }
        }
        self.next += 1;
    }
}

impl Drop for Litecoin {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// The native segwit address of a key.
pub fn address_of(secret_key: &str) -> String {
    let secret = bitcoin::secp256k1::SecretKey::from_slice(&hex::decode(secret_key).unwrap()).unwrap();
    let public = secret.public_key(&bitcoin::secp256k1::Secp256k1::new()).serialize();
    let script = [&[0, 20][..], hash160::Hash::hash(&public).as_byte_array()].concat();
    super::litecoin_chain().format_script(&bitcoin::ScriptBuf::from_bytes(script))
}
