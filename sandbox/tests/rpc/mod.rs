//! Tests that hold for every EVM chain of the sandbox, whatever its engine. They read and pay through its JSON-RPC
//! interface.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::missing_panics_doc,
    missing_debug_implementations,
    missing_docs,
    dead_code,
    unreachable_pub,
    reason = "a test ends by panicking, and uses the parts that it needs"
)]

use std::sync::Arc;

use countersign_proofs_evm::Account;
use countersign_proofs_evm::alloy_consensus::TxEip1559;
use countersign_proofs_evm::alloy_primitives::{Address, TxKind, U256, hex};
use countersign_sandbox::accounts;
use countersign_sandbox::chains::Engine;
use countersign_sandbox::chains::evm::Network;
use countersign_sandbox::clock::Clock;
use serde_json::{Value, json};

use crate::wallet::{Chains, Swap, post};

pub const GWEI: u128 = 1_000_000_000;

/// Creates the engine of a chain.
pub type Make = fn(Network, Arc<Clock>) -> Box<dyn Engine>;

/// Returns chains by their names and ids, with swaps between them.
pub fn chains(make: Make, known: &[(&'static str, u64)]) -> Arc<Chains> {
    let clock = Arc::new(Clock::default());
    let engines = known.iter().map(|(name, id)| (*name, make(Network::new(name, *id), Arc::clone(&clock))));
    Chains::new(Arc::clone(&clock), engines.collect())
}

pub fn a_token_is_swapped_without_gas(make: Make) {
    let chains = chains(make, &[("base", 8453), ("ethereum", 1)]);
    Swap::new(&chains, ("base:usdc", 1_500_000), ("ethereum:wbtc", 50_000)).run(true);
}

pub fn coins_are_swapped_by_transactions(make: Make) {
    let chains = chains(make, &[("ethereum", 1), ("base", 8453), ("bnbchain", 56)]);
    let coins = 1_000_000_000_000_000;
    Swap::new(&chains, ("ethereum:eth", coins), ("base:cbbtc", 4_000)).run(false);
    Swap::new(&chains, ("base:cbbtc", 4_000), ("bnbchain:bnb", coins)).run(false);
    Swap::new(&chains, ("bnbchain:bnb", coins), ("base:eth", coins)).run(false);
}

pub fn a_token_that_resets_its_allowance_is_swapped(make: Make) {
    let chains = chains(make, &[("ethereum", 1), ("base", 8453)]);
    Swap::new(&chains, ("ethereum:usdt", 2_000_000), ("base:usdc", 1_900_000)).run(true);
}

/// Checks that no approval remains to be done. The token allows raising an allowance only from zero.
pub fn a_contract_is_allowed_without_the_owners_key(make: Make) {
    let chains = chains(make, &[("ethereum", 1), ("base", 8453)]);
    let Swap { source, .. } = Swap::new(&chains, ("ethereum:usdt", 2_000_000), ("base:usdc", 1_900_000));
    chains.with("ethereum", |engine| {
        assert!(engine.payloads(&source).unwrap()["approval_transaction"].is_object());
        for _ in 0..2 {
            engine.approve(&source).unwrap();
            assert!(engine.payloads(&source).unwrap()["approval_transaction"].is_null());
        }
    });
}

pub fn the_owner_takes_it_back_after_the_timelock(make: Make) {
    let chains = chains(make, &[("ethereum", 1), ("base", 8453)]);
    Swap::new(&chains, ("ethereum:wbtc", 50_000), ("base:usdc", 1_500_000)).refund();
    Swap::new(&chains, ("ethereum:eth", 1_000_000_000_000_000), ("base:usdc", 1_000_000)).refund();
}

/// A chain with a funded user.
pub struct Node {
    pub evm: Box<dyn Engine>,
    pub user: Account,
}

impl Node {
    pub fn new(make: Make, chain: &str, id: u64) -> Self {
        Self::with_clock(make, chain, id, Clock::default().into())
    }

    pub fn with_clock(make: Make, chain: &str, id: u64, clock: Arc<Clock>) -> Self {
        let mut evm = make(Network::new(chain, id), clock);
        let user = Account::from_secret(&accounts::key(accounts::USER)).unwrap();
        let coin = evm.listing().chain["native_asset_id"].as_str().unwrap().to_owned();
        evm.fund(&user.address().to_string(), &coin, 10_u128.pow(19)).unwrap();
        Self { evm, user }
    }

    pub fn ask(&mut self, method: &str, params: Value) -> Result<Value, (i64, String)> {
        let answer = post(self.evm.as_mut(), "/", &json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params}));
        assert_eq!((&answer["jsonrpc"], &answer["id"]), (&json!("2.0"), &json!(7)));
        match answer.get("error") {
            Some(error) => Err((error["code"].as_i64().unwrap(), error["message"].as_str().unwrap().to_owned())),
            None => Ok(answer["result"].clone()),
        }
    }

    pub fn payment(&self, nonce: u64, price: u128, value: u64) -> String {
        let transaction = TxEip1559 {
            chain_id: 1,
            nonce,
            gas_limit: 21_000,
            max_fee_per_gas: price,
            max_priority_fee_per_gas: price / 10,
            to: TxKind::Call(Address::repeat_byte(5)),
            value: U256::from(value),
            ..TxEip1559::default()
        };
        hex::encode_prefixed(self.user.sign_transaction(transaction))
    }

    pub fn send(&mut self, raw: &str) -> Result<String, String> {
        let sent = self.ask("eth_sendRawTransaction", json!([raw]));
        sent.map(|id| id.as_str().unwrap().to_owned()).map_err(|(code, message)| {
            assert_eq!(code, -32_000, "{message}");
            message
        })
    }

    pub fn block(&mut self, name: &str) -> Value {
        self.ask("eth_getBlockByNumber", json!([name, false])).unwrap()
    }
}

/// Returns a quantity in an answer.
pub fn number(value: &Value) -> u64 {
    u64::from_str_radix(&value.as_str().unwrap()[2..], 16).unwrap()
}

/// Checks that blocks name their parents, that time passes evenly, and that wallets see which blocks are final.
pub fn blocks_follow_each_other(make: Make) {
    let clock = Arc::new(Clock::fixed(1_795_500_000_000));
    let mut node = Node::with_clock(make, "ethereum", 1, Arc::clone(&clock));
    node.evm.mine(1);
    let before = node.block("latest");
    assert_eq!(number(&before["timestamp"]), 1_795_500_000);
    clock.advance(120_000);
    node.evm.mine(10);
    assert_eq!(node.evm.height(), number(&before["number"]) + 10);
    let mut parent = before["hash"].clone();
    for offset in 1..=10 {
        let block = node.block(&format!("{:#x}", number(&before["number"]) + offset));
        assert_eq!((&block["parentHash"], number(&block["timestamp"])), (&parent, 1_795_500_000 + 12 * offset));
        assert_eq!(node.ask("eth_getBlockByHash", json!([block["hash"], false])).unwrap(), block);
        parent = block["hash"].clone();
    }
    let head = node.evm.height();
    let marks = ["latest", "safe", "finalized"].map(|tag| number(&node.block(tag)["number"]));
    assert_eq!(marks, [head, head - 32, head - 64]);
    assert_eq!(node.evm.depth(), 64);
    assert_eq!(node.block(&format!("{:#x}", head + 1)), Value::Null);
}

/// Rolls back a block. Returns the error of a call at that block.
pub fn a_reorganization_takes_back_what_blocks_held(make: Make) -> (i64, String) {
    let mut node = Node::new(make, "ethereum", 1);
    let account = Address::repeat_byte(5).to_string();
    let before = node.evm.height();
    let id = node.send(&node.payment(0, 3 * GWEI, 7)).unwrap();
    node.evm.mine(2);
    let old = node.block(&format!("{:#x}", before + 1));
    assert_eq!(node.ask("eth_getBalance", json!([account, "latest"])).unwrap(), "0x7");
    assert_eq!(node.ask("eth_getBalance", json!([account, format!("{before:#x}")])).unwrap(), "0x0");
    node.evm.reorganize(2).unwrap();
    assert_eq!((node.evm.height(), node.evm.pending()), (before, 0));
    assert_eq!(node.ask("eth_getTransactionReceipt", json!([id])).unwrap(), Value::Null);
    assert_eq!(node.ask("eth_getBalance", json!([account, "latest"])).unwrap(), "0x0");
    node.evm.mine(1);
    let new = node.block(&format!("{:#x}", before + 1));
    assert_ne!(new["hash"], old["hash"]);
    assert_eq!(new["parentHash"], old["parentHash"]);
    let gone = node.ask("eth_call", json!([{"to": account}, {"blockHash": old["hash"], "requireCanonical": true}]));
    assert!(node.evm.reorganize(64).is_err());
    node.evm.mine(100);
    node.evm.reorganize(50).unwrap();
    assert_eq!(node.evm.height(), before + 51);
    node.evm.mine(3);
    gone.unwrap_err()
}

/// Checks that events of rolled back blocks are not reported, and that the solver can repeat its transactions.
pub fn events_of_blocks_that_were_taken_back_are_not_told(make: Make) {
    let chains = chains(make, &[("base", 8453), ("ethereum", 1)]);
    let swap = Swap::new(&chains, ("base:usdc", 1_500_000), ("ethereum:wbtc", 50_000));
    let mut heights = Vec::new();
    for is_undone in [true, false] {
        chains.with("ethereum", |engine| {
            engine.lock(&swap.destination).expect("the solver locks");
            assert_eq!(engine.pending(), 1);
            assert!(engine.lock(&swap.destination).is_ok(), "one that waits has not happened");
            engine.mine(1);
            assert_eq!(engine.pending(), 0);
            if is_undone {
                engine.reorganize(1).unwrap();
            }
            heights.extend(engine.events().into_iter().map(|event| (event.height, engine.height())));
            if is_undone {
                assert!(heights.is_empty());
            } else {
                assert!(engine.lock(&swap.destination).is_err(), "a swap is locked once");
            }
        });
    }
    let [(height, head)] = heights.try_into().unwrap();
    assert_eq!(height, head);
}
