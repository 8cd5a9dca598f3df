//! Tron: the virtual machine and contracts of the EVM chains, with Tron's transactions, fees, blocks and the HTTP
//! interface of its nodes.
//!
//! It differs from the real Tron in four ways. Energy equals the EVM's gas. There is no free bandwidth and no
//! staking. Accounts need no activation. Blocks carry no signature of their witness.

mod block;
mod front;
mod lies;
mod wire;

use std::sync::Arc;

use alloy_primitives::{Address, B256, Bytes, Signature, U256};
use countersign_proofs_evm::{Changes, Outcome, Receipt, UnsignedCall};

use self::block::Executed;
use self::wire::{Operation, Raw, Signed, show};
use super::Event;
use super::evm::Network;
use super::evm::contracts::{self, Asset};
use super::evm::engine::{Contracts, Dialect, Machine};
use super::evm::ledger::{Ledger, Mined};
use super::family::Family;
use crate::clock::Clock;
use crate::http::{Reply, Request};

pub(super) const FAMILY: Family = Family {
    prefixes: &["tron"],
    local: &[],
    start: |start| Ok(Box::new(Tron::new(start.name, start.number()?, start.clock)?)),
    tour: &[["tron:usdt", "base:usdc"], ["base:eth", "tron:trx"]],
    lies: lies::LIES,
    variants: lies::VARIANTS,
    interface: &lies::Http,
};

/// The prices of a unit of energy and of a byte, in sun.
const ENERGY_PRICE: u64 = 100;
const BANDWIDTH_PRICE: u64 = 1_000;
/// The lifetime of the sandbox's transactions, and the maximum that a node accepts, in milliseconds.
const LIFE: u64 = 10 * 3_600_000;
const MAX_LIFE: u64 = 24 * 3_600_000;
/// How many blocks back a reference block may be.
const MAX_REFERENCE: u64 = 65_536;
const MAX_BYTES: usize = 500 * 1024;
const MAX_WAITING: usize = 4_096;
/// The maximum size of a block's transactions, in bytes.
const BLOCK_BYTES: u64 = 2_000_000;

/// A Tron chain.
#[derive(Debug)]
pub struct Tron {
    contracts: Contracts,
    ledger: Ledger<block::Tron>,
    clock: Arc<Clock>,
    waiting: Vec<Signed>,
    /// The number of transactions that the sandbox has made. It keeps them distinct.
    made: u64,
}

/// Why a node refuses a transaction: the code and the message.
struct Refusal(&'static str, String);

impl Tron {
    /// Returns a chain with its tokens and swap contracts. `chain` is its name in asset ids, and `id` the last four
    /// bytes of its first block's id. Solver and relayer are well funded.
    ///
    /// # Errors
    ///
    /// Fails if a contract could not be deployed.
    pub fn new(chain: &str, id: u32, clock: Arc<Clock>) -> Result<Self, String> {
        let name = if chain == "tron" { "Tron".to_owned() } else { format!("Tron ({chain})") };
        let (coin, tokens, timelocks) = ("trx", vec![("usdt", 6)], (28_800, 2_400));
        let (start, interval, safe, finalized) = (88_000_000, 3_000, 19, 19);
        let network = Network { name, interval, start, safe, finalized, timelocks, coin, tokens, ..Network::new(chain, id.into()) };
        let (contracts, world) = Contracts::deploy(network, Dialect::Tron, &clock)?;
        let ledger = Ledger::new(block::Tron { id }, world, Arc::clone(&clock), start, interval);
        Ok(Self { contracts, ledger, clock, waiting: Vec::new(), made: 0 })
    }

    /// Returns the newest irreversible block.
    fn solid(&self) -> u64 {
        self.ledger.head().saturating_sub(self.contracts.network.finalized)
    }

    /// Returns the time of the newest block, in Unix milliseconds.
    fn now(&self) -> u64 {
        self.ledger.newest().millis
    }

    /// Returns an unsigned transaction that refers to the newest irreversible block.
    fn draft(&self, owner: Address, to: Address, value: u64, operation: Operation, fee_limit: u64) -> Raw {
        let (mut ref_block_bytes, mut ref_block_hash) = ([0; 2], [0; 8]);
        if let Some(block) = self.ledger.block(self.solid()) {
            ref_block_bytes = block.number.to_be_bytes().last_chunk().copied().unwrap_or_default();
            ref_block_hash = block.hash.get(8..16).and_then(|bytes| bytes.try_into().ok()).unwrap_or_default();
        }
        let (timestamp, expiration) = (self.clock.millis(), self.now().saturating_add(60_000));
        Raw { owner, to, value, operation, ref_block_bytes, ref_block_hash, expiration, timestamp, fee_limit }
    }

    fn dry_run(&self, call: &UnsignedCall, after_waiting: bool) -> Result<(), String> {
        let waiting = self.waiting.iter().filter(|_| after_waiting).map(|waiting| unsigned(&waiting.raw));
        let receipt = self.ledger.dry_run(waiting, call).map_err(|_| "the account has too little".to_owned())?;
        contracts::failure(&receipt.outcome).map_or(Ok(()), Err)
    }

    /// Accepts a signed transaction for the next block, if a node would.
    fn take(&mut self, signed: Signed) -> Result<(), Refusal> {
        let refuse = |code, why: &str| Err(Refusal(code, why.to_owned()));
        if signed.bytes.len() > MAX_BYTES {
            return refuse("TOO_BIG_TRANSACTION_ERROR", "Transaction size is too big.");
        }
        if self.ledger.place(signed.id).is_some() || self.waiting.iter().any(|waiting| waiting.id == signed.id) {
            return refuse("DUP_TRANSACTION_ERROR", "Dup transaction.");
        }
        self.check_times(&signed.raw)?;
        let signer = match signed.signatures.as_slice() {
            [signature] => Signature::from_raw(signature).ok().and_then(|one| one.recover_address_from_prehash(&signed.id).ok()),
            _ => return refuse("SIGERROR", "Validate signature error: the transaction does not have exactly one signature"),
        };
        let raw = &signed.raw;
        if signer != Some(raw.owner) {
            return refuse("SIGERROR", "Validate signature error: the signature is not that of the owner");
        }
        let world = &self.ledger.world;
        let nothing = Changes::default();
        let is_contract = !world.before(&nothing).code(raw.to).is_empty();
        let why = match raw.operation {
            Operation::Transfer if is_contract => Some("Cannot transfer TRX to a smartContract."),
            Operation::Transfer if raw.value == 0 => Some("Amount must be greater than 0."),
            Operation::Trigger(_) if !is_contract => Some("No contract or not a valid smart contract"),
            _ if world.native_balance_of(raw.owner) < raw.amount() => Some("Validate InternalTransfer error, balance is not sufficient."),
            _ => None,
        };
        if let Some(why) = why {
            return Err(Refusal("CONTRACT_VALIDATE_ERROR", format!("Contract validate error : {why}")));
        }
        let bandwidth = U256::from(signed.size().saturating_mul(BANDWIDTH_PRICE));
        if world.native_balance_of(raw.owner) < raw.amount().saturating_add(bandwidth) {
            return refuse("BANDWITH_ERROR", "Account resource insufficient error.");
        }
        if self.waiting.len() >= MAX_WAITING {
            return refuse("SERVER_BUSY", "Server busy.");
        }
        self.waiting.push(signed);
        Ok(())
    }

    /// Checks that a transaction refers to a recent block of this chain and has not expired.
    fn check_times(&self, raw: &Raw) -> Result<(), Refusal> {
        let (now, head) = (self.now(), self.ledger.head());
        if raw.expiration <= now || raw.expiration > now.saturating_add(MAX_LIFE) {
            let why = format!("Transaction expiration, transaction expiration time is {}, but headBlockTime is {now}", raw.expiration);
            return Err(Refusal("TRANSACTION_EXPIRATION_ERROR", why));
        }
        let low = u64::from(u16::from_be_bytes(raw.ref_block_bytes));
        let back = head.wrapping_sub(low) % MAX_REFERENCE;
        let block = head.checked_sub(back).and_then(|number| self.ledger.block(number));
        match block {
            Some(block) if block.hash.get(8..16) == Some(raw.ref_block_hash.as_slice()) => Ok(()),
            _ => Err(Refusal("TAPOS_ERROR", "Tapos check error.".to_owned())),
        }
    }

    /// Executes a transaction in the current block. Returns `None` if it can no longer be in a block.
    fn execute(&mut self, signed: &Signed) -> Option<Mined<Executed>> {
        self.check_times(&signed.raw).ok()?;
        let raw = &signed.raw;
        let world = &mut self.ledger.world;
        let net_fee = signed.size().saturating_mul(BANDWIDTH_PRICE);
        let before = world.native_balance_of(raw.owner);
        let spare = before.checked_sub(raw.amount().saturating_add(U256::from(net_fee)))?;
        world.burn(raw.owner, U256::from(net_fee));
        let is_call = matches!(raw.operation, Operation::Trigger(_));
        let limit = if is_call { raw.fee_limit.min(spare.saturating_to()) / ENERGY_PRICE } else { 100_000 };
        let failed = |outcome| Receipt::of_call(raw.owner, outcome, limit);
        let receipt = world.run(&UnsignedCall { gas: Some(limit), ..unsigned(raw) });
        // If the energy does not even cover the call itself, nothing is executed.
        let receipt = receipt.unwrap_or_else(|_| failed(Outcome::Reverted { output: Bytes::new() }));
        let result = match &receipt.outcome {
            Outcome::Success { .. } => "SUCCESS",
            Outcome::Reverted { .. } if receipt.gas_used >= limit => "OUT_OF_ENERGY",
            Outcome::Reverted { .. } => "REVERT",
            Outcome::Halted { .. } => "OUT_OF_ENERGY",
        };
        let energy = if is_call { receipt.gas_used } else { 0 };
        let energy_fee = energy.saturating_mul(ENERGY_PRICE);
        world.burn(raw.owner, U256::from(energy_fee));
        let to = Some(raw.to);
        let transaction = Executed { signed: signed.clone(), result, energy, energy_fee, net_fee };
        Some(Mined { id: signed.id, transaction, to, receipt })
    }

    fn mine_waiting(&mut self, left: u64) {
        let millis = self.ledger.open(left);
        let (mut mined, mut bytes) = (Vec::new(), 0_u64);
        let mut later = std::mem::take(&mut self.waiting).into_iter();
        for signed in later.by_ref() {
            bytes = bytes.saturating_add(signed.size());
            let Some(one) = self.execute(&signed) else { continue };
            self.ledger.events.extend(self.contracts.events(&one.receipt, &hex::encode(one.id), self.ledger.head().saturating_add(1)));
            mined.push(one);
            if bytes > BLOCK_BYTES {
                break;
            }
        }
        self.waiting = later.collect();
        self.ledger.seal(mined, millis);
    }
}

/// Returns a transaction as a call.
fn unsigned(raw: &Raw) -> UnsignedCall {
    let data = match &raw.operation {
        Operation::Trigger(data) => data.clone(),
        Operation::Transfer => Vec::new(),
    };
    UnsignedCall { from: raw.owner, to: Some(raw.to), data: data.into(), value: raw.amount(), gas: None }
}

pub(crate) fn base58(address: Address) -> String {
    show(address, true)
}

impl Machine for Tron {
    fn contracts(&self) -> &Contracts {
        &self.contracts
    }

    fn submit(&mut self, is_solver: bool, to: Address, data: Vec<u8>, value: U256) -> Result<String, String> {
        let owner = self.contracts.sender(is_solver).address();
        let call = UnsignedCall { from: owner, to: Some(to), data: data.clone().into(), value, gas: None };
        self.dry_run(&call, false).or_else(|_| self.dry_run(&call, true))?;
        let value = u64::try_from(value).map_err(|_| "the amount is too large".to_owned())?;
        let [_, limit] = Dialect::Tron.limits();
        let mut raw = self.draft(owner, to, value, Operation::Trigger(data), limit);
        self.made = self.made.saturating_add(1);
        raw.timestamp = raw.timestamp.saturating_add(self.made);
        raw.expiration = self.now().saturating_add(LIFE);
        let mut signed = Signed::new(raw.bytes(), Vec::new())?;
        signed.signatures.push(self.contracts.sender(is_solver).sign_digest(signed.id).as_bytes().to_vec());
        let id = signed.id;
        self.take(signed).map_err(|Refusal(code, why)| format!("{code}: {why}"))?;
        Ok(hex::encode(id))
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
        while left > 0 && !self.waiting.is_empty() {
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
        self.waiting.len()
    }

    fn events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.ledger.events)
    }

    fn answer(&mut self, request: &Request) -> Reply {
        front::answer(self, request)
    }
}

/// Parses the id of a transaction or a block.
fn hash(text: &str) -> Option<B256> {
    let bytes: [u8; 32] = hex::decode(text).ok()?.try_into().ok()?;
    Some(B256::from(bytes))
}
