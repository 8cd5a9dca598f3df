//! An EVM chain: anvil, with the contracts of `proofs/evm` deployed.

use std::env;
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use super::http;
use super::{poll, project};

pub const CHAIN_ID: u64 = 31_337;
/// The first accounts of anvil's published test phrase, which it signs for itself. The program has the key of the first one.
pub const USER: &str = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266";
pub const USER_KEY: &str = "ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80";
pub const SOLVER: &str = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8";
const DEPLOYER: &str = "0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC";

/// What user and solver hold of the token at the start.
pub const TOKENS: u128 = 1_000_000_000;

/// Where anvil is installed.
fn installed() -> Result<PathBuf, String> {
    let packages = Path::new(env!("CARGO_MANIFEST_DIR")).join("node_modules/@foundry-rs");
    let found = fs::read_dir(packages)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path().join("bin").join(format!("anvil{}", env::consts::EXE_SUFFIX)));
    found.into_iter().find(|path| path.is_file()).ok_or_else(|| "no anvil: run npm ci in proofs/swap".to_owned())
}

/// A running chain that makes a block every second. Stopped on drop.
pub struct Anvil {
    child: Child,
    pub port: u16,
    pub token: String,
    /// The HTLC of the token.
    pub htlc: String,
    /// The HTLC of the chain's own coin.
    pub native_htlc: String,
    selectors: Selectors,
}

struct Selectors {
    redeem: String,
    orders: String,
    initiate: String,
}

/// What the HTLC contract has on record for an id.
pub struct OnRecord {
    pub initiated_at: u64,
    pub closed_at: u64,
}

pub fn word(value: u128) -> String {
    format!("{value:064x}")
}

pub fn padded(hex: &str) -> String {
    format!("{:0>64}", hex.trim_start_matches("0x").to_lowercase())
}

pub fn number(value: &Value) -> u64 {
    u64::from_str_radix(value.as_str().unwrap().trim_start_matches("0x"), 16).unwrap()
}

/// The bytecode that deploys a contract of `proofs/evm`.
fn bytecode(name: &str) -> String {
    let text = fs::read_to_string(project().join(format!("proofs/evm/contracts/out/{name}.json"))).unwrap();
    serde_json::from_str::<Value>(&text).unwrap()["bytecode"].as_str().unwrap().to_owned()
}

/// A short text as its length and one word of bytes.
fn text(text: &str) -> String {
    format!("{}{:0<64}", word(text.len() as u128), hex::encode(text))
}

impl Anvil {
    pub fn start() -> Result<Self, String> {
        let program = installed()?;
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        // With one slot in an epoch `safe` is one block behind the newest, and `finalized` two.
        let arguments = ["--quiet", "--host", "127.0.0.1", "--slots-in-an-epoch", "1"].map(str::to_owned);
        let child = Command::new(program)
            .args(arguments)
            .args(["--port".to_owned(), port.to_string(), "--chain-id".to_owned(), CHAIN_ID.to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| format!("anvil does not start here: {error}"))?;
        let empty = || String::new();
        let selectors = Selectors { redeem: empty(), orders: empty(), initiate: empty() };
        let mut chain = Self { child, port, token: empty(), htlc: empty(), native_htlc: empty(), selectors };
        poll("anvil answers", || chain.call("eth_chainId", json!([])).ok());
        chain.selectors = Selectors {
            redeem: chain.selector("redeem(bytes32,bytes)"),
            orders: chain.selector("orders(bytes32)"),
            initiate: chain.selector("initiate(address,uint256,uint256,bytes32)"),
        };
        let names = format!("{}{}{}{}{}", word(0x60), word(0xa0), word(6), text("USD Coin"), text("USDC"));
        chain.token = chain.deploy("Token", &names);
        chain.htlc = chain.deploy("Htlc", &format!("{}{}{}", padded(&chain.token), word(0x40), text("1")));
        chain.native_htlc = chain.deploy("NativeHtlc", "");
        for holder in [USER, SOLVER] {
            let mint = format!("{}{}{}", chain.selector("mint(address,uint256)"), padded(holder), word(TOKENS));
            chain.transact(DEPLOYER, &chain.token, 0, &mint);
        }
        let approve = format!("{}{}{}", chain.selector("approve(address,uint256)"), padded(&chain.htlc), "f".repeat(64));
        chain.transact(SOLVER, &chain.token, 0, &approve);
        // Until here every transaction was mined at once.
        chain.call("evm_setAutomine", json!([false])).unwrap();
        chain.call("evm_setIntervalMining", json!([1])).unwrap();
        Ok(chain)
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub fn call(&self, method: &str, params: Value) -> Result<Value, String> {
        http::call(self.port, None, method, &params)
    }

    pub fn selector(&self, signature: &str) -> String {
        let hash = self.call("web3_sha3", json!([format!("0x{}", hex::encode(signature))])).unwrap();
        hash.as_str().unwrap()[..10].to_owned()
    }

    fn deploy(&self, name: &str, arguments: &str) -> String {
        let receipt = self.send(json!({ "from": DEPLOYER, "data": format!("{}{arguments}", bytecode(name)), "gas": "0x5b8d80" }));
        receipt["contractAddress"].as_str().unwrap().to_owned()
    }

    /// Sends a transaction of an account that anvil signs for, and waits until it has succeeded.
    pub fn transact(&self, from: &str, to: &str, value: u128, data: &str) -> Value {
        self.send(json!({ "from": from, "to": to, "value": format!("{value:#x}"), "data": data, "gas": "0x7a120" }))
    }

    fn send(&self, transaction: Value) -> Value {
        let id = self.call("eth_sendTransaction", json!([transaction])).unwrap();
        let receipt = poll("a receipt", || self.call("eth_getTransactionReceipt", json!([id])).ok().filter(Value::is_object));
        assert_eq!(receipt["status"], "0x1", "{receipt}");
        receipt
    }

    /// Makes blocks at once.
    pub fn mine(&self, blocks: u64) {
        self.call("anvil_mine", json!([format!("{blocks:#x}")])).unwrap();
    }

    fn read(&self, to: &str, data: &str) -> String {
        self.call("eth_call", json!([{ "to": to, "data": data }, "latest"])).unwrap().as_str().unwrap().to_owned()
    }

    /// What an account holds of the token.
    pub fn tokens(&self, account: &str) -> u128 {
        let balance = self.read(&self.token, &format!("{}{}", self.selector("balanceOf(address)"), padded(account)));
        u128::from_str_radix(&balance[34..], 16).unwrap()
    }

    /// What an account holds of the chain's own coin.
    pub fn coins(&self, account: &str) -> u128 {
        let balance = self.call("eth_getBalance", json!([account, "latest"])).unwrap();
        u128::from_str_radix(balance.as_str().unwrap().trim_start_matches("0x"), 16).unwrap()
    }

    pub fn on_record(&self, htlc: &str, id: &str) -> OnRecord {
        let answer = self.read(htlc, &format!("{}{id}", self.selectors.orders));
        let words: Vec<_> = answer.as_bytes()[2..].chunks(64).map(|word| std::str::from_utf8(&word[48..]).unwrap()).collect();
        let number = |word: &str| u64::from_str_radix(word, 16).unwrap();
        OnRecord { initiated_at: number(words[2]), closed_at: number(words.last().unwrap()) }
    }

    /// The HTLC's logs about an id, oldest first.
    pub fn logs(&self, htlc: &str, id: &str) -> Vec<Value> {
        let filter = json!([{ "address": htlc, "fromBlock": "0x0", "toBlock": "latest", "topics": [null, format!("0x{id}")] }]);
        self.call("eth_getLogs", filter).unwrap().as_array().unwrap().clone()
    }

    /// The secret that a redemption showed, and the redemption.
    pub fn secret(&self, htlc: &str, id: &str) -> Option<([u8; 32], String)> {
        // Of the contract's logs only this one has three words: where the bytes begin, how many there are, and the secret.
        let log = self.logs(htlc, id).into_iter().find(|log| log["data"].as_str().unwrap().len() == 2 + 3 * 64)?;
        let secret = hex::decode(&log["data"].as_str().unwrap()[2 + 2 * 64..]).unwrap();
        Some((secret.try_into().unwrap(), log["transactionHash"].as_str().unwrap().to_owned()))
    }

    pub fn initiate_call(&self, redeemer: &str, timelock: u64, amount: u128, hash: &str) -> String {
        format!("{}{}{}{}{hash}", self.selectors.initiate, padded(redeemer), word(timelock.into()), word(amount))
    }

    pub fn redeem(&self, htlc: &str, id: &str, secret: &[u8; 32]) -> Value {
        let data = format!("{}{id}{}{}{}", self.selectors.redeem, word(0x40), word(32), hex::encode(secret));
        self.transact(SOLVER, htlc, 0, &data)
    }
}

impl Drop for Anvil {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
