//! An EVM chain that Foundry's anvil executes. Each chain has its own process, with the contracts and accounts of the
//! sandbox's own engine at the same addresses. The sandbox decides when a block is made, and sets its timestamp.
//!
//! Anvil differs from the engine in four ways: the base fee falls while blocks are empty, there are no blocks before the first one, error
//! messages are anvil's, and a long run of empty blocks takes time. Wallets' calls are passed on unchanged, including those of
//! development nodes such as `anvil_setBalance`.

use std::path::Path;
use std::sync::Arc;

use alloy_primitives::{Address, B256, Bytes, Log, U64, U256, address, hex};
use alloy_sol_types::SolCall;
use countersign_proofs_evm::abi::Erc20;
use countersign_proofs_evm::{Changes, World};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::Network;
use super::contracts::{self, Asset};
use super::engine::{Contracts, Dialect, Machine};
use super::pool::BLOCK_GAS;
use crate::chains::engine::Event;
use crate::chains::node::{CallError, Files, Node};
use crate::clock::Clock;
use crate::http::{Reply, Request};

/// States kept from before the final block. Without a limit, anvil writes old states to the disk.
const STATES: u64 = 16;
/// Blocks made in one call, few enough that it cannot time out.
const RUN: u64 = 1_000;
/// Where EIP-2935 keeps the hashes of blocks.
const HISTORY: Address = address!("0000F90827F1C53a10cb7A02335B175320002935");

/// An EVM chain over anvil.
#[derive(Debug)]
pub struct Anvil {
    node: Node,
    contracts: Contracts,
    clock: Arc<Clock>,
    /// The newest block whose events have been read.
    seen: u64,
}

/// A log of a block.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Found {
    #[serde(flatten)]
    log: Log,
    block_number: U64,
    transaction_hash: B256,
}

#[derive(Deserialize)]
struct Header {
    timestamp: U64,
}

#[derive(Deserialize)]
struct Waiting {
    pending: U64,
    queued: U64,
}

impl Anvil {
    /// Starts anvil and gives it the chain's tokens, swap contracts, and a well-funded solver and relayer.
    ///
    /// # Errors
    ///
    /// A contract cannot be deployed, or anvil does not start or refuses a call.
    pub fn new(program: &Path, network: Network, clock: Arc<Clock>) -> Result<Self, String> {
        // Anvil's final block is twice as far behind as its safe one.
        let network = Network { finalized: network.safe.saturating_mul(2), ..network };
        let (contracts, world) = Contracts::deploy(network, Dialect::Evm, &clock)?;
        let Network { id, start, safe, finalized, interval, base_fee, .. } = contracts.network;
        // A final block has to exist from the start, and the state has to be set before it.
        let before = finalized.saturating_add(1);
        let genesis = clock.seconds().saturating_sub(before.saturating_mul(interval) / 1_000);
        let files = Files::new("anvil").map_err(|error| error.to_string())?;
        // Without it, each start would leave an empty folder in the user's home.
        let cache = files.path().display().to_string();
        let node = Node::start(program, None, files, "eth_chainId", |port| {
            let numbers = [
                ("--port", port.into()),
                ("--chain-id", id),
                ("--number", start.saturating_sub(before)),
                ("--timestamp", genesis),
                ("--slots-in-an-epoch", safe),
                ("--gas-limit", BLOCK_GAS),
                ("--base-fee", base_fee),
                ("--prune-history", finalized.saturating_add(STATES)),
                ("--accounts", 0),
            ];
            let words = ["--quiet", "--no-mining", "--host", "127.0.0.1", "--order", "fifo", "--cache-path", &cache].map(str::to_owned);
            words.into_iter().chain(numbers.iter().flat_map(|(name, number)| [(*name).to_owned(), number.to_string()])).collect()
        })?;
        let anvil = Self { node, contracts, clock, seen: start };
        anvil.load(&world)?;
        anvil.make(before)?;
        Ok(anvil)
    }

    /// Copies a world's state into the newest block.
    fn load(&self, world: &World) -> Result<(), String> {
        let nothing = Changes::default();
        let state = world.before(&nothing);
        for address in state.addresses() {
            let account = state.account(address).unwrap_or_default();
            self.tell("anvil_setBalance", json!([address, account.balance]))?;
            self.tell("anvil_setNonce", json!([address, U64::from(account.nonce)]))?;
            self.tell("anvil_setCode", json!([address, state.code(address)]))?;
            for (slot, value) in state.storage(address) {
                self.tell("anvil_setStorageAt", json!([address, slot, B256::from(value)]))?;
            }
        }
        // Its contract stores a slot per block, and anvil hashes them all for each block: ten times slower after a few thousand blocks.
        self.tell("anvil_setCode", json!([HISTORY, "0x"]))
    }

    /// Makes blocks, with timestamps spread evenly from the newest block to the clock's time.
    fn make(&self, blocks: u64) -> Result<(), String> {
        let newest: Header = self.ask("eth_getBlockByNumber", json!(["latest", false]))?;
        let before: u64 = newest.timestamp.saturating_to();
        let last = self.clock.seconds().max(before);
        let step = last.saturating_sub(before).checked_div(blocks).unwrap_or_default();
        self.tell("anvil_setBlockTimestampInterval", json!([step]))?;
        let mut left = blocks;
        while left > 1 {
            let count = left.saturating_sub(1).min(RUN);
            self.tell("anvil_mine", json!([U64::from(count)]))?;
            left = left.saturating_sub(count);
        }
        if left > 0 {
            self.tell("evm_setNextBlockTimestamp", json!([last]))?;
            self.tell("anvil_mine", json!([U64::from(left)]))?;
        }
        Ok(())
    }

    fn ask<T: DeserializeOwned>(&self, method: &str, params: Value) -> Result<T, String> {
        let answer = self.node.call(method, &params).map_err(|error| reason(&error))?;
        serde_json::from_value(answer).map_err(|error| format!("{method}: {error}"))
    }

    fn tell(&self, method: &str, params: Value) -> Result<(), String> {
        self.ask::<Value>(method, params).map(drop)
    }

    fn read<C: SolCall>(&self, to: Address, call: &C) -> Result<C::Return, String> {
        let data = hex::encode_prefixed(call.abi_encode());
        let output: Bytes = self.ask("eth_call", json!([{"to": to, "data": data}, "latest"]))?;
        C::abi_decode_returns_validate(&output).map_err(|error| error.to_string())
    }

    fn new_events(&mut self) -> Result<Vec<Event>, String> {
        let head = self.ask::<U64>("eth_blockNumber", json!([]))?.saturating_to();
        let (first, last) = (self.seen.saturating_add(1), head);
        if first > last {
            // Nothing new, or a client has rolled blocks back.
            self.seen = last;
            return Ok(Vec::new());
        }
        let htlcs: Vec<_> = self.contracts.assets.iter().map(|asset| asset.htlc).collect();
        let filter = json!([{"address": htlcs, "fromBlock": U64::from(first), "toBlock": U64::from(last)}]);
        let found: Vec<Found> = self.ask("eth_getLogs", filter)?;
        self.seen = last;
        let event = |found: &Found| {
            let transaction = found.transaction_hash.to_string();
            contracts::event(&self.contracts.assets, &found.log, &transaction, found.block_number.saturating_to())
        };
        Ok(found.iter().filter_map(event).collect())
    }
}

impl Machine for Anvil {
    fn contracts(&self) -> &Contracts {
        &self.contracts
    }

    fn submit(&mut self, is_solver: bool, to: Address, data: Vec<u8>, value: U256) -> Result<String, String> {
        let from = self.contracts.sender(is_solver).address();
        let call = json!({"from": from, "to": to, "data": hex::encode_prefixed(&data), "value": value});
        let used = |block: &str| self.ask::<U64>("eth_estimateGas", json!([call, block]));
        let used = used("latest").or_else(|_| used("pending"))?.saturating_to();
        let nonce: U64 = self.ask("eth_getTransactionCount", json!([from, "pending"]))?;
        let raw = self.contracts.sign(is_solver, nonce.saturating_to(), used, to, data, value);
        self.ask("eth_sendRawTransaction", json!([hex::encode_prefixed(raw)]))
    }

    fn fund(&mut self, account: Address, asset: &Asset, amount: U256) -> Result<(), String> {
        match asset.token {
            None => {
                let balance = Machine::balance(self, account, asset)?.saturating_add(amount);
                self.tell("anvil_setBalance", json!([account, balance]))?;
            }
            Some(token) => {
                let mint = Erc20::mintCall { to: account, value: amount }.abi_encode();
                self.submit(false, token, mint, U256::ZERO)?;
            }
        }
        // The state of a block that clients have seen must not change.
        self.make(1)
    }

    fn call(&mut self, from: Address, to: Address, data: Vec<u8>) -> Result<(), String> {
        self.tell("anvil_impersonateAccount", json!([from]))?;
        let sent = self.tell("eth_sendTransaction", json!([{"from": from, "to": to, "data": hex::encode_prefixed(&data)}]));
        self.tell("anvil_stopImpersonatingAccount", json!([from]))?;
        sent?;
        self.make(1)
    }

    fn balance(&self, account: Address, asset: &Asset) -> Result<U256, String> {
        match asset.token {
            None => self.ask("eth_getBalance", json!([account, "latest"])),
            Some(token) => self.read(token, &Erc20::balanceOfCall { owner: account }),
        }
    }

    fn allowance(&self, token: Address, owner: Address, spender: Address) -> Result<U256, String> {
        self.read(token, &Erc20::allowanceCall { owner, spender })
    }

    fn mine(&mut self, blocks: u64) {
        // No error can be returned here. If anvil has ended, the next call fails and reports it.
        let _ = self.make(blocks);
    }

    fn reorganize(&mut self, depth: u64) -> Result<(), String> {
        self.contracts.check_depth(depth)?;
        self.tell("anvil_rollback", json!([depth]))?;
        // The events of the replacing blocks are still to be read.
        self.seen = self.seen.min(Machine::height(self));
        Ok(())
    }

    fn height(&self) -> u64 {
        self.ask::<U64>("eth_blockNumber", json!([])).map_or(self.seen, |number| number.saturating_to())
    }

    fn pending(&self) -> usize {
        let waiting = self.ask::<Waiting>("txpool_status", json!([]));
        waiting.map_or(0, |Waiting { pending, queued }| pending.saturating_add(queued).saturating_to())
    }

    fn events(&mut self) -> Vec<Event> {
        self.new_events().unwrap_or_default()
    }

    fn answer(&mut self, request: &Request) -> Reply {
        self.node.pass(request)
    }
}

/// Anvil's error message, with contract errors decoded: anvil does not know their names.
fn reason(error: &CallError) -> String {
    let data = match error {
        CallError::Refused { code: 3, data: Value::String(data), .. } => hex::decode(data).ok(),
        _ => None,
    };
    data.map_or_else(|| error.to_string(), |output| contracts::reverted(&output))
}
