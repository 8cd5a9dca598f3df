//! EVM chains: revm with the swap contracts that were written for this project, blocks, a pool of transactions, and the JSON-RPC of a
//! node in front.
//!
//! Blocks hash as on Ethereum, their state roots can be proven, and `safe` and `finalized` follow the newest block at fixed distances.
//! What is left out: uncles, blobs, withdrawals, access lists of their own type, and subscriptions.

pub(crate) mod contracts;
mod error;
mod header;
pub(crate) mod ledger;
mod network;
mod params;
mod pool;
mod rpc;
mod shape;
mod simulate;
mod trie;

use std::sync::Arc;

use alloy_consensus::{TxEip1559, TxEnvelope};
use alloy_primitives::{Address, TxKind, U256, hex};
use countersign_proofs_evm::{Account, CallError, Changes, UnsignedCall, World};
use serde_json::{Map, Value, json};

pub use network::Network;

use self::contracts::{Asset, Swap};
use self::header::Ethereum;
use self::ledger::{Ledger, Mined};
use self::pool::Pool;
use super::{Engine, Event, Leg, Listing, Terms};
use crate::accounts;
use crate::chains::listing::{AssetRow, ChainRow, cents};
use crate::clock::Clock;
use crate::http::{Reply, Request};

/// Gas that payloads name. Both are well above what the calls need.
const APPROVE_GAS: u64 = 100_000;
const INITIATE_GAS: u64 = 300_000;

/// An EVM chain.
#[derive(Debug)]
pub struct Evm {
    network: Network,
    ledger: Ledger<Ethereum>,
    pool: Pool,
    assets: Vec<Asset>,
    solver: Account,
    relayer: Account,
    events: Vec<Event>,
}

impl Evm {
    /// A chain with its tokens and swap contracts, whose solver and relayer have plenty of everything.
    ///
    /// # Errors
    ///
    /// Says why a contract could not be deployed.
    pub fn new(network: Network, clock: Arc<Clock>) -> Result<Self, String> {
        let account = |role| Account::from_secret(&accounts::key(role)).ok_or_else(|| format!("{role} has no key"));
        let (solver, relayer) = (account(accounts::SOLVER)?, account(accounts::RELAYER)?);
        let mut world = World::new(network.id, network.start);
        world.set_block(network.start, clock.seconds());
        world.set_base_fee(network.base_fee);
        let assets = contracts::deploy(&mut world, (network.coin, 18), &network.tokens);
        if assets.len() != network.tokens.len().saturating_add(1) {
            return Err("a contract could not be deployed".to_owned());
        }
        contracts::endow(&mut world, &assets, &[solver.address(), relayer.address()]);
        let format = Ethereum { tries: trie::Tries::default(), chain_id: network.id, base_fee: network.base_fee };
        let ledger = Ledger::new(format, world, clock, network.start, network.interval);
        Ok(Self { network, ledger, pool: Pool::default(), assets, solver, relayer, events: Vec::new() })
    }

    fn asset(&self, id: &str) -> Result<&Asset, String> {
        let symbol = id.split_once(':').filter(|(chain, _)| *chain == self.network.chain).map(|(_, symbol)| symbol);
        let asset = symbol.and_then(|symbol| self.assets.iter().find(|asset| asset.symbol == symbol));
        asset.ok_or_else(|| format!("{id} is not an asset of {}", self.network.chain))
    }

    fn swap(&self, terms: &Terms) -> Result<Swap, String> {
        let (owner, solver) = (address(&terms.owner)?, self.solver.address());
        let (initiator, redeemer) = if terms.is_source { (owner, solver) } else { (solver, owner) };
        Ok(Swap::new(self.network.id, self.asset(&terms.asset)?, initiator, redeemer, terms))
    }

    /// The solver's account for what it does itself, the relayer's for what it does for the user.
    const fn sender(&self, is_solver: bool) -> &Account {
        if is_solver { &self.solver } else { &self.relayer }
    }

    /// Submits a call of the sandbox's own accounts, if it would succeed now or after what is waiting.
    fn submit(&mut self, is_solver: bool, to: Address, data: Vec<u8>, value: U256) -> Result<String, String> {
        let from = self.sender(is_solver).address();
        let call = UnsignedCall { from, to: Some(to), data: data.into(), value, gas: None };
        let used = self.dry_run(&call, false).or_else(|_| self.dry_run(&call, true))?;
        let tip = self.tip();
        let transaction = TxEip1559 {
            chain_id: self.network.id,
            nonce: self.pool.next_nonce(&self.ledger.world, from),
            gas_limit: used.saturating_mul(3).saturating_div(2).saturating_add(30_000),
            max_fee_per_gas: u128::from(self.network.base_fee).saturating_mul(2).saturating_add(tip),
            max_priority_fee_per_gas: tip,
            to: TxKind::Call(to),
            value,
            input: call.data,
            ..TxEip1559::default()
        };
        let raw = self.sender(is_solver).sign_transaction(transaction);
        let id = self.pool.add(&self.ledger.world, &raw).map_err(|error| error.message().to_owned())?;
        Ok(id.to_string())
    }

    /// The gas of a call in the next block.
    fn dry_run(&self, call: &UnsignedCall, after_waiting: bool) -> Result<u64, String> {
        let nothing = Changes::default();
        let next = self.ledger.head().saturating_add(1);
        let mut simulation = self.ledger.world.before(&nothing).simulate(next, self.ledger.next_millis() / 1_000);
        let waiting = if after_waiting { self.pool.ready(&self.ledger.world) } else { Vec::new() };
        for waiting in waiting {
            // One that fails changes nothing, and is not the question.
            let _ = simulation.run(&unsigned(&waiting.envelope, waiting.from), false);
        }
        let reason = |error: CallError| std::error::Error::source(&error).map_or_else(|| error.to_string(), ToString::to_string);
        let receipt = simulation.run(call, false).map_err(reason)?;
        contracts::failure(&receipt.outcome).map_or(Ok(receipt.gas_used), Err)
    }

    /// What transactions offer on top of the base fee.
    fn tip(&self) -> u128 {
        u128::from(self.network.base_fee / 10).max(1)
    }

    /// Makes one of `left` blocks, with transactions that wait.
    fn mine_waiting(&mut self, left: u64) {
        let millis = self.ledger.open(left);
        let waiting = self.pool.ready(&self.ledger.world);
        let mut mined = Vec::new();
        for one in &waiting {
            // What cannot be executed any more is dropped, as by a node.
            let Ok(receipt) = self.ledger.world.send(&one.envelope, one.from) else { continue };
            for (id, change) in contracts::changes(&self.assets, &receipt) {
                let height = self.ledger.head().saturating_add(1);
                self.events.push(Event { swap_id: hex::encode(id), transaction: one.id.to_string(), height, change });
            }
            let to = alloy_consensus::Transaction::to(&one.envelope);
            mined.push(Mined { id: one.id, transaction: one.envelope.clone(), to, receipt });
        }
        self.ledger.seal(mined, millis);
        self.pool.settle(&self.ledger.world, &waiting);
    }
}

impl Engine for Evm {
    fn listing(&self) -> Listing {
        let Network { chain, id, name, interval, timelocks, coin, .. } = &self.network;
        let mut row = ChainRow {
            chain,
            id: format!("evm:{id}"),
            title: (*name).to_string(),
            coin,
            timelocks: (*timelocks).into(),
            htlcs: json!(["evm:htlc", "evm:htlc_erc20"]),
            tokens: json!(["evm:erc20"]),
        }
        .json();
        if *interval >= 1_000 {
            put(&mut row, "block_time", json!(interval / 1_000));
        }
        let assets = self.assets.iter().map(|asset| {
            let token = asset.token.map(|token| json!({"address": token, "schema": "evm:erc20"}));
            let schema = if token.is_some() { "evm:htlc_erc20" } else { "evm:htlc" };
            asset_row(chain, *id, asset, json!({"address": asset.htlc, "schema": schema}), token)
        });
        Listing { chain: row, assets: assets.collect(), solver: self.solver.address().to_string() }
    }

    fn address_of(&self, key: &[u8; 32]) -> String {
        Account::from_secret(key).map_or_else(String::new, |account| account.address().to_string())
    }

    fn fund(&mut self, account: &str, asset: &str, amount: u128) -> Result<(), String> {
        let (account, asset) = (address(account)?, self.asset(asset)?.clone());
        // A block of its own, because the state of a block never changes.
        let millis = self.ledger.open(1);
        let funded = contracts::fund(&mut self.ledger.world, &asset, account, U256::from(amount));
        self.ledger.seal(Vec::new(), millis);
        funded
    }

    fn balance(&self, account: &str, asset: &str) -> Result<u128, String> {
        contracts::balance(&self.ledger.world, self.asset(asset)?, address(account)?)
    }

    fn leg(&self, terms: &Terms) -> Result<Leg, String> {
        let swap = self.swap(terms)?;
        let (initiator, redeemer) = (swap.initiator.to_string(), swap.redeemer.to_string());
        Ok(Leg { swap_id: hex::encode(swap.id), initiator, redeemer, delegate: None })
    }

    fn payloads(&self, terms: &Terms) -> Result<Map<String, Value>, String> {
        let swap = self.swap(terms)?;
        let delegate = terms.delegate.as_deref().map(address).transpose()?;
        let call = |to: Address, data: &[u8], gas: u64, value: U256| {
            json!({
                "chain_id": self.network.id,
                "data": hex::encode_prefixed(data),
                "gas_limit": format!("{gas:#x}"),
                "to": to,
                "value": format!("{value:#x}"),
            })
        };
        let payer = delegate.unwrap_or(swap.initiator);
        let mut approval = Value::Null;
        if let Some(token) = swap.asset.token {
            let allowed = self.ledger.world.allowance(token, payer, swap.asset.htlc).map_err(|error| error.to_string())?;
            if allowed < swap.amount {
                approval = call(token, &swap.approve(), APPROVE_GAS, U256::ZERO);
            }
        }
        let data = if delegate.is_some() { swap.initiate_on_behalf() } else { swap.initiate() };
        // A contract cannot pull the chain's own coin, and what a delegate pays the owner does not sign.
        let has_message = swap.asset.token.is_some() && delegate.is_none();
        let message = if has_message { swap.typed_data(self.network.id, |address| address.to_string(), false) } else { Value::Null };
        let mut payloads = Map::new();
        payloads.insert("approval_transaction".to_owned(), approval);
        payloads.insert("initiate_transaction".to_owned(), call(swap.asset.htlc, &data, INITIATE_GAS, swap.value()));
        payloads.insert("typed_data".to_owned(), message);
        Ok(payloads)
    }

    fn initiate(&mut self, terms: &Terms, signature: &str) -> Result<String, String> {
        let swap = self.swap(terms)?;
        let data = swap.initiate_with_signature(signature)?;
        self.submit(false, swap.asset.htlc, data, U256::ZERO)
    }

    fn lock(&mut self, terms: &Terms) -> Result<String, String> {
        let swap = self.swap(terms)?;
        let data = if terms.is_source { swap.initiate_on_behalf() } else { swap.initiate() };
        self.submit(!terms.is_source, swap.asset.htlc, data, swap.value())
    }

    fn redeem(&mut self, terms: &Terms, secret: &[u8; 32]) -> Result<String, String> {
        let swap = self.swap(terms)?;
        self.submit(terms.is_source, swap.asset.htlc, swap.redeem(secret), U256::ZERO)
    }

    fn refund(&mut self, terms: &Terms) -> Result<String, String> {
        let swap = self.swap(terms)?;
        self.submit(!terms.is_source, swap.asset.htlc, swap.refund(), U256::ZERO)
    }

    fn mine(&mut self, blocks: u64) {
        let mut left = blocks;
        while left > 0 && !self.pool.ready(&self.ledger.world).is_empty() {
            self.mine_waiting(left);
            left = left.saturating_sub(1);
        }
        if left > 0 {
            self.ledger.skip(left);
        }
    }

    fn reorganize(&mut self, depth: u64) -> Result<(), String> {
        if depth >= self.network.finalized {
            return Err(format!("blocks are final after {}", self.network.finalized));
        }
        self.ledger.reorganize(depth)?;
        let head = self.ledger.head();
        self.events.retain(|event| event.height <= head);
        Ok(())
    }

    fn height(&self) -> u64 {
        self.ledger.head()
    }

    fn pending(&self) -> usize {
        self.pool.len()
    }

    fn depth(&self) -> u64 {
        self.network.finalized
    }

    fn interval(&self) -> u64 {
        self.network.interval
    }

    fn events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.events)
    }

    fn answer(&mut self, request: &Request) -> Reply {
        rpc::answer(self, request)
    }
}

fn address(text: &str) -> Result<Address, String> {
    let bytes = countersign_chains::address::parse_evm(text).map_err(|error| format!("{text}: {error}"))?;
    Ok(Address::from(bytes))
}

/// Adds a member to an object.
pub(crate) fn put(object: &mut Value, name: &str, value: Value) {
    if let Some(members) = object.as_object_mut() {
        members.insert(name.to_owned(), value);
    }
}

/// A waiting transaction as a call.
fn unsigned(envelope: &TxEnvelope, from: Address) -> UnsignedCall {
    use alloy_consensus::Transaction as _;
    UnsignedCall { from, to: envelope.to(), data: envelope.input().clone(), value: envelope.value(), gas: Some(envelope.gas_limit()) }
}

/// An asset as `GET /v2/assets` has it: at least about a dollar, at most half a million.
pub(crate) fn asset_row(chain: &str, network: u64, asset: &Asset, htlc: Value, token: Option<Value>) -> Value {
    let units = U256::from(10).saturating_pow(U256::from(asset.decimals));
    let min = units.saturating_mul(U256::from(100)).checked_div(U256::from(cents(&asset.symbol))).unwrap_or_default().max(U256::from(1));
    let limits = [min, min.saturating_mul(U256::from(500_000))].map(|limit| limit.to_string());
    let (symbol, decimals, token) = (asset.symbol.as_str(), asset.decimals, token.unwrap_or_default());
    AssetRow { chain, network: network.into(), symbol, decimals, limits, htlc, token }.json()
}
