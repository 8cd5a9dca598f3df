//! EVM chains: the project's own swap contracts in revm, with blocks, a transaction pool, and the JSON-RPC interface
//! of a node.
//!
//! Blocks hash as on Ethereum, and state roots support proofs. `safe` and `finalized` follow the newest block at
//! fixed distances. Uncles, blobs, withdrawals, access lists as their own transaction type, and subscriptions are
//! left out.

mod anvil;
pub(crate) mod contracts;
pub(crate) mod engine;
mod error;
mod header;
pub(crate) mod ledger;
pub(crate) mod lies;
mod network;
mod params;
mod pool;
mod rpc;
mod shape;
mod simulate;
mod trie;

use std::sync::Arc;

use alloy_consensus::TxEnvelope;
use alloy_primitives::{Address, U256};
use countersign_proofs_evm::{CallError, UnsignedCall};

pub use anvil::Anvil;
pub use network::Network;

use self::contracts::Asset;
use self::engine::{Contracts, Dialect, Machine};
use self::header::Ethereum;
use self::ledger::{Ledger, Mined};
use self::pool::Pool;
use super::Event;
use super::family::Family;
use crate::clock::Clock;
use crate::http::{Reply, Request};

pub(super) const FAMILY: Family = Family {
    prefixes: &["evm"],
    local: &[("arbitrum_localnet", "evm:31338"), ("ethereum_localnet", "evm:31337")],
    start: |start| {
        let network = Network::new(start.name, start.number()?.into());
        Ok(match &start.nodes.anvil {
            // Anvil reports Ethereum's block height in an Arbitrum block as a number. Arbitrum's nodes report it in hex.
            Some(program) if !network.has_l1_number => Box::new(Anvil::new(program, network, start.clock)?),
            _ => Box::new(Evm::new(network, start.clock)?),
        })
    },
    tour: &[["base:usdc", "litecoin:ltc"], ["litecoin:ltc", "base:usdc"]],
    lies: lies::LIES,
    variants: lies::VARIANTS,
    interface: &lies::Rpc,
};

/// An EVM chain.
#[derive(Debug)]
pub struct Evm {
    contracts: Contracts,
    ledger: Ledger<Ethereum>,
    pool: Pool,
}

impl Evm {
    /// Returns a chain with its tokens and swap contracts. Solver and relayer are well funded.
    ///
    /// # Errors
    ///
    /// Fails if a contract could not be deployed.
    pub fn new(network: Network, clock: Arc<Clock>) -> Result<Self, String> {
        let (contracts, world) = Contracts::deploy(network, Dialect::Evm, &clock)?;
        let Network { id, start, interval, base_fee, .. } = contracts.network;
        let format = Ethereum { tries: trie::Tries::default(), chain_id: id, base_fee };
        let ledger = Ledger::new(format, world, clock, start, interval);
        Ok(Self { contracts, ledger, pool: Pool::default() })
    }

    /// Returns the gas that a call uses in the next block.
    fn dry_run(&self, call: &UnsignedCall, after_waiting: bool) -> Result<u64, String> {
        let waiting = if after_waiting { self.pool.ready(&self.ledger.world) } else { Vec::new() };
        let receipt = self.ledger.dry_run(waiting.iter().map(|waiting| unsigned(&waiting.envelope, waiting.from)), call);
        let reason = |error: CallError| std::error::Error::source(&error).map_or_else(|| error.to_string(), ToString::to_string);
        let receipt = receipt.map_err(reason)?;
        contracts::failure(&receipt.outcome).map_or(Ok(receipt.gas_used), Err)
    }

    /// Makes one block of pending transactions. `left` counts the blocks still to make.
    fn mine_waiting(&mut self, left: u64) {
        let millis = self.ledger.open(left);
        let waiting = self.pool.ready(&self.ledger.world);
        let mut mined = Vec::new();
        for one in &waiting {
            // Transactions that can no longer be executed are dropped, as on a node.
            let Ok(receipt) = self.ledger.world.send(&one.envelope, one.from) else { continue };
            self.ledger.events.extend(self.contracts.events(&receipt, &one.id.to_string(), self.ledger.head().saturating_add(1)));
            let to = alloy_consensus::Transaction::to(&one.envelope);
            mined.push(Mined { id: one.id, transaction: one.envelope.clone(), to, receipt });
        }
        self.ledger.seal(mined, millis);
        self.pool.settle(&self.ledger.world, &waiting);
    }
}

impl Machine for Evm {
    fn contracts(&self) -> &Contracts {
        &self.contracts
    }

    fn submit(&mut self, is_solver: bool, to: Address, data: Vec<u8>, value: U256) -> Result<String, String> {
        let from = self.contracts.sender(is_solver).address();
        let call = UnsignedCall { from, to: Some(to), data: data.clone().into(), value, gas: None };
        let used = self.dry_run(&call, false).or_else(|_| self.dry_run(&call, true))?;
        let nonce = self.pool.next_nonce(&self.ledger.world, from);
        let raw = self.contracts.sign(is_solver, nonce, used, to, data, value);
        let id = self.pool.add(&self.ledger.world, &raw).map_err(|error| error.message().to_owned())?;
        Ok(id.to_string())
    }

    fn fund(&mut self, account: Address, asset: &Asset, amount: U256) -> Result<(), String> {
        self.ledger.change(|world| contracts::fund(world, asset, account, amount))
    }

    fn call(&mut self, from: Address, to: Address, data: Vec<u8>) -> Result<(), String> {
        self.ledger.change(|world| contracts::call(world, from, to, data))
    }

    fn balance(&self, account: Address, asset: &Asset) -> Result<U256, String> {
        contracts::balance(&self.ledger.world, asset, account)
    }

    fn allowance(&self, token: Address, owner: Address, spender: Address) -> Result<U256, String> {
        self.ledger.world.allowance(token, owner, spender).map_err(|error| error.to_string())
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
        self.contracts.check_depth(depth)?;
        self.ledger.reorganize(depth).map(drop)
    }

    fn height(&self) -> u64 {
        self.ledger.head()
    }

    fn pending(&self) -> usize {
        self.pool.len()
    }

    fn events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.ledger.events)
    }

    fn answer(&mut self, request: &Request) -> Reply {
        rpc::answer(self, request)
    }
}

/// Returns a pending transaction as a call.
fn unsigned(envelope: &TxEnvelope, from: Address) -> UnsignedCall {
    use alloy_consensus::Transaction as _;
    UnsignedCall { from, to: envelope.to(), data: envelope.input().clone(), value: envelope.value(), gas: Some(envelope.gas_limit()) }
}
