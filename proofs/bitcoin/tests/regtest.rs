//! The whole path on a Litecoin node's own regression-test network, started here and stopped again.

#![allow(
    clippy::arithmetic_side_effects,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a panic in a test is a failed test"
)]

mod support;

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
use bitcoin::{OutPoint, ScriptBuf, Transaction};
use countersign_bitcoin::recover::{Fee, FeeCoins, Funding, InstantRefund, Payout};
use countersign_bitcoin::{FeeRate, Utxo, Wallet};
use serde_json::Value;
use support::{INITIATOR, REDEEMER, SECRET, Scene, WALLET, coin, key, scripts, signed};

type Done<T> = Result<T, Box<dyn Error>>;

/// Short, so that the test is: the longest push of a timelock is `tests/consensus.rs`'s.
const TIMELOCK: u16 = 20;
const AMOUNT: u64 = 500_000;

/// Where a node is installed: the daemon, the client, and where its libraries are.
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

/// A running node. Stopped, and its folder removed, on drop.
struct Node {
    child: Child,
    client: PathBuf,
    libraries: OsString,
    folder: PathBuf,
    port: u16,
}

impl Node {
    fn start() -> Done<Result<Self, String>> {
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
            .args(["-rpcbind=127.0.0.1", "-rpcallowip=127.0.0.1"])
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

    /// One call; the node's own message where it refuses.
    fn call(&self, method: &str, arguments: &[&str]) -> Result<String, String> {
        let output = Command::new(&self.client)
            .env("LD_LIBRARY_PATH", &self.libraries)
            .args(["-regtest", "-rpcconnect=127.0.0.1"])
            .arg(format!("-datadir={}", self.folder.display()))
            .arg(format!("-rpcport={}", self.port))
            .arg(method)
            .args(arguments)
            .output()
            .map_err(|error| error.to_string())?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
        if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
    }

    fn mine(&self, blocks: u16) -> Result<(), String> {
        let address = self.call("getnewaddress", &["", "bech32"])?;
        self.call("generatetoaddress", &[&blocks.to_string(), &address]).map(drop)
    }

    /// Sends coins from the node's wallet and confirms them: the transaction, and where in it they are.
    fn pay(&self, address: &str, coins: &str) -> Done<(Transaction, OutPoint)> {
        let id = self.call("sendtoaddress", &[address, coins])?;
        self.mine(1)?;
        let transaction: Transaction = deserialize_hex(&self.call("getrawtransaction", &[&id])?)?;
        let details: Value = serde_json::from_str(&self.call("getrawtransaction", &[&id, "true"])?)?;
        let outputs = details["vout"].as_array().ok_or("outputs")?;
        let vout = outputs.iter().position(|output| output["scriptPubKey"]["addresses"][0] == *address).ok_or("not paid")?;
        Ok((transaction.clone(), OutPoint { txid: transaction.compute_txid(), vout: u32::try_from(vout)? }))
    }

    fn send(&self, transaction: &Transaction) -> Result<String, String> {
        self.call("sendrawtransaction", &[&serialize_hex(transaction)])
    }

    fn confirmed(&self, transaction: &Transaction) -> Done<()> {
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

/// To the owner, who pays the fee out of it.
fn payout<const N: usize>(fundings: [Funding; N], to: &str) -> Payout {
    Payout::new(fundings, to, Fee::Deducted(FeeRate::from_whole(5)))
}

/// Pays an HTLC from one coin of this script through the library.
fn deposit(node: &Node, scene: &Scene, script: &ScriptBuf) -> Done<Funding> {
    let address = scene.chain.address(script).ok_or("an address")?;
    let (previous, outpoint) = node.pay(&address, "0.01")?;
    let output = previous.output[usize::try_from(outpoint.vout)?].clone();
    let wallet = Wallet::new(vec![coin(outpoint, output, &previous)], scene.owner(), FeeRate::parse("2.5")?);
    let transaction = signed(scene.unsigned(wallet), WALLET)?;
    assert_eq!(node.send(&transaction)?, transaction.compute_txid().to_string());
    node.mine(1)?;
    node.confirmed(&transaction)?;
    Funding::from_transaction(&transaction, &scene.tree).pop().ok_or_else(|| "not funded".into())
}

#[test]
#[expect(clippy::print_stderr, reason = "a test that was left out says so")]
fn deposits_from_every_kind_of_coin_and_every_recovery() -> Done<()> {
    let node = match Node::start()? {
        Ok(node) => node,
        Err(reason) => {
            eprintln!("skipped: {reason}");
            return Ok(());
        }
    };
    node.mine(110)?;
    let scene = Scene::new("litecoin:regtest", TIMELOCK, AMOUNT);
    let (htlc, own, to) = (scene.htlc(), scripts(), scene.owner());
    let redeemed = deposit(&node, &scene, &own.p2wpkh)?;
    let refunded = deposit(&node, &scene, &own.p2tr)?;
    let instant = deposit(&node, &scene, &own.p2sh)?;
    let partial = deposit(&node, &scene, &own.p2pkh)?;
    assert!([redeemed, refunded, instant, partial].iter().all(|funding| funding.value == AMOUNT));

    // The dust limit that the warning `amount_below_dust` is about is this node's own.
    let refusal = deposit(&node, &Scene::new("litecoin:regtest", TIMELOCK, 3_299), &own.p2wpkh).expect_err("dust").to_string();
    assert!(refusal.contains("dust"), "{refusal}");
    assert_eq!(deposit(&node, &Scene::new("litecoin:regtest", TIMELOCK, 3_300), &own.p2wpkh)?.value, 3_300);

    // Redeem: not with another secret in the witness, then with the secret.
    let redeem = signed(htlc.redeem(&SECRET, &payout([redeemed], &to))?, REDEEMER)?;
    let mut wrong = redeem.clone();
    let mut items: Vec<_> = wrong.input[0].witness.iter().map(<[u8]>::to_vec).collect();
    items[1] = vec![7; 32];
    wrong.input[0].witness = bitcoin::Witness::from_slice(&items);
    assert!(node.send(&wrong).is_err());
    node.send(&redeem)?;

    // Instant refund: it pays no fee by itself, so no node relays it; with a coin that pays, it confirms.
    let refund = InstantRefund::new(&htlc, &[instant], to.as_str())?;
    let complete = refund.complete(&refund.sign(&key(INITIATOR))?, &refund.countersign(&key(REDEEMER))?)?;
    let refusal = node.send(&complete).expect_err("no fee");
    assert!(refusal.contains("fee not met"), "{refusal}");
    let (previous, outpoint) = node.pay(&to, "0.001")?;
    let coin = Utxo::new(outpoint, previous.output[usize::try_from(outpoint.vout)?].clone())?;
    let coins = FeeCoins::new(vec![coin], to.as_str(), FeeRate::from_whole(4));
    let paid = signed(refund.with_fee(&complete, &coins)?, WALLET)?;
    node.send(&paid)?;
    node.mine(1)?;
    node.confirmed(&redeem)?;
    node.confirmed(&paid)?;

    // Refund of two outputs at once: refused until the younger has as many confirmations as the timelock has blocks.
    let refund = signed(htlc.refund(&payout([refunded, partial], &to))?, INITIATOR)?;
    let details: Value = serde_json::from_str(&node.call("getrawtransaction", &[&partial.outpoint.txid.to_string(), "true"])?)?;
    let confirmations = u16::try_from(details["confirmations"].as_u64().ok_or("confirmations")?)?;
    node.mine(TIMELOCK - confirmations - 1)?;
    let refusal = node.send(&refund).expect_err("a block too early");
    assert!(refusal.contains("non-BIP68-final"), "{refusal}");
    node.mine(1)?;
    node.send(&refund)?;
    node.mine(1)?;
    node.confirmed(&refund)?;
    Ok(())
}
