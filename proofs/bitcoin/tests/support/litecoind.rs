//! A Litecoin node in regtest mode, which a test starts and stops.

use std::env;
use std::error::Error;
use std::ffi::OsString;
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use bitcoin::consensus::encode::{deserialize_hex, serialize_hex};
use bitcoin::{OutPoint, Transaction};
use serde_json::Value;

pub(crate) type Done<T> = Result<T, Box<dyn Error>>;

/// Returns the paths of an installed node: the daemon, the client, and their libraries.
fn installed() -> Result<(PathBuf, PathBuf, PathBuf), String> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join(".engine");
    let places = [own.clone(), PathBuf::from("/")];
    let found = places.iter().find(|place| place.join("usr/lib/litecoin/litecoind").is_file());
    let place = found.ok_or("no litecoind: run proofs/bitcoin/fetch-litecoind, or install Debian's package")?;
    Ok((
        place.join("usr/lib/litecoin/litecoind"),
        place.join("usr/bin/litecoin-cli"),
        own.join(format!("usr/lib/{}-linux-gnu", env::consts::ARCH)),
    ))
}

/// A running node. Dropping it stops the node and removes its folder.
pub(crate) struct Node {
    child: Child,
    client: PathBuf,
    libraries: OsString,
    folder: PathBuf,
    port: u16,
}

impl Node {
    pub(crate) fn start() -> Done<Result<Self, String>> {
        let (daemon, client, libraries) = match installed() {
            Ok(found) => found,
            Err(reason) => return Ok(Err(reason)),
        };
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let folder = env::temp_dir().join(format!("countersign-regtest-{}-{port}", std::process::id()));
        fs::create_dir_all(&folder)?;
        let libraries = libraries.into_os_string();
        let child = Command::new(daemon)
            .env("LD_LIBRARY_PATH", &libraries)
            .args(["-regtest", "-server", "-listen=0", "-dnsseed=0", "-fallbackfee=0.0001", "-txindex=1", "-acceptnonstdtxn=0"])
            .arg(format!("-datadir={}", folder.display()))
            .arg(format!("-rpcport={port}"))
            .args(["-rpcbind=127.0.0.1", "-rpcallowip=127.0.0.1", "-rpcuser=user", "-rpcpassword=password"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let mut node = Self { child, client, libraries, folder, port };
        for _ in 0..150 {
            if node.call("getblockcount", &[]).is_ok() {
                node.call("createwallet", &["miner"])?;
                return Ok(Ok(node));
            }
            if let Some(status) = node.child.try_wait()? {
                return Ok(Err(format!("litecoind does not start here: {status}")));
            }
            sleep(Duration::from_millis(200));
        }
        Err("litecoind did not answer within 30 s".into())
    }

    /// Calls a method. Returns the node's own message if it refuses.
    pub(crate) fn call(&self, method: &str, arguments: &[&str]) -> Result<String, String> {
        let output = Command::new(&self.client)
            .env("LD_LIBRARY_PATH", &self.libraries)
            .args(["-regtest", "-rpcconnect=127.0.0.1", "-rpcuser=user", "-rpcpassword=password"])
            .arg(format!("-datadir={}", self.folder.display()))
            .arg(format!("-rpcport={}", self.port))
            .arg(method)
            .args(arguments)
            .output()
            .map_err(|error| error.to_string())?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
        if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
    }

    pub(crate) fn mine(&self, blocks: u16) -> Result<(), String> {
        let address = self.call("getnewaddress", &["", "bech32"])?;
        self.call("generatetoaddress", &[&blocks.to_string(), &address]).map(drop)
    }

    /// Sends coins from the node's wallet and confirms them. Returns the transaction and the outpoint.
    pub(crate) fn pay(&self, address: &str, coins: &str) -> Done<(Transaction, OutPoint)> {
        let id = self.call("sendtoaddress", &[address, coins])?;
        self.mine(1)?;
        let transaction: Transaction = deserialize_hex(&self.call("getrawtransaction", &[&id])?)?;
        let details: Value = serde_json::from_str(&self.call("getrawtransaction", &[&id, "true"])?)?;
        let outputs = details["vout"].as_array().ok_or("outputs")?;
        let vout = outputs.iter().position(|output| output["scriptPubKey"]["addresses"][0] == *address).ok_or("not paid")?;
        Ok((transaction.clone(), OutPoint { txid: transaction.compute_txid(), vout: u32::try_from(vout)? }))
    }

    pub(crate) fn send(&self, transaction: &Transaction) -> Result<String, String> {
        self.call("sendrawtransaction", &[&serialize_hex(transaction)])
    }

    pub(crate) fn confirmed(&self, transaction: &Transaction) -> Done<()> {
        let details: Value = serde_json::from_str(&self.call("getrawtransaction", &[&transaction.compute_txid().to_string(), "true"])?)?;
        assert!(details["confirmations"].as_u64().is_some_and(|confirmations| confirmations > 0), "{details}");
        Ok(())
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.call("stop", &[]);
        for _ in 0..50 {
            if matches!(self.child.try_wait(), Ok(Some(_))) {
                break;
            }
            sleep(Duration::from_millis(200));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}
