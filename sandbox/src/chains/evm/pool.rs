//! The pool of pending transactions, with Geth's rules and error texts.

use std::collections::BTreeMap;

use alloy_consensus::{Transaction as _, TxEnvelope};
use alloy_primitives::{Address, B256, U256};
use countersign_proofs_evm::{SendError, World};

use super::error;
use crate::chains::rpc::Fault;

/// The gas limit of a block.
pub(crate) const BLOCK_GAS: u64 = 30_000_000;
/// The maximum gas of a transaction (EIP-7825).
const MAX_GAS: u64 = 16_777_216;
const MAX_BYTES: usize = 128 * 1024;
/// The maximum number of transactions, per account and in total.
const MAX_OF_ACCOUNT: usize = 128;
const MAX_ALL: usize = 8_192;

/// A pending transaction.
#[derive(Debug, Clone)]
pub(crate) struct Waiting {
    pub(crate) id: B256,
    pub(crate) from: Address,
    pub(crate) envelope: TxEnvelope,
}

/// All pending transactions, in the order of arrival.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    all: Vec<Waiting>,
}

impl Pool {
    pub(crate) const fn len(&self) -> usize {
        self.all.len()
    }

    pub(crate) fn get(&self, id: B256) -> Option<&Waiting> {
        self.all.iter().find(|waiting| waiting.id == id)
    }

    /// Returns the nonce after an account's transactions, up to the first gap.
    pub(crate) fn next_nonce(&self, world: &World, account: Address) -> u64 {
        let mut nonce = world.nonce_of(account);
        let mut own: Vec<_> = self.of(account).map(|waiting| waiting.envelope.nonce()).collect();
        own.sort_unstable();
        for one in own {
            if one == nonce {
                nonce = nonce.saturating_add(1);
            }
        }
        nonce
    }

    fn of(&self, account: Address) -> impl Iterator<Item = &Waiting> {
        self.all.iter().filter(move |waiting| waiting.from == account)
    }

    /// Adds a signed transaction.
    pub(crate) fn add(&mut self, world: &World, raw: &[u8]) -> Result<B256, Fault> {
        if raw.len() > MAX_BYTES {
            return Err(error::server(format!("oversized data: transaction size {}, limit {MAX_BYTES}", raw.len())));
        }
        let (envelope, from) = World::decode(raw).map_err(|error| error::server(undecodable(&error)))?;
        let id = *envelope.tx_hash();
        if self.get(id).is_some() {
            return Err(error::server("already known"));
        }
        check(world, &envelope, from).map_err(error::server)?;
        let same = self.all.iter().position(|waiting| waiting.from == from && waiting.envelope.nonce() == envelope.nonce());
        let queued = self.of(from).filter(|waiting| waiting.envelope.nonce() != envelope.nonce());
        let (count, queued) = queued
            .fold((0_usize, U256::ZERO), |(count, sum), waiting| (count.saturating_add(1), sum.saturating_add(cost(&waiting.envelope))));
        let (balance, own) = (world.native_balance_of(from), cost(&envelope));
        if let Some(missing) = queued.saturating_add(own).checked_sub(balance).filter(|missing| !missing.is_zero()) {
            return Err(error::server(match queued {
                U256::ZERO => {
                    format!("insufficient funds for gas * price + value: balance {balance}, tx cost {own}, overshot {missing}")
                }
                _ => format!(
                    "insufficient funds for gas * price + value: balance {balance}, queued cost {queued}, tx cost {own}, overshot {missing}"
                ),
            }));
        }
        let waiting = Waiting { id, from, envelope };
        let is_full = count >= MAX_OF_ACCOUNT || self.all.len() >= MAX_ALL;
        match same.and_then(|place| self.all.get_mut(place)) {
            Some(old) if replaces(&waiting.envelope, &old.envelope) => *old = waiting,
            Some(_) => return Err(error::server("replacement transaction underpriced")),
            None if is_full => return Err(error::server("txpool is full")),
            None => self.all.push(waiting),
        }
        Ok(id)
    }

    /// Returns the transactions for the next block, in the order of arrival as far as nonces allow.
    pub(crate) fn ready(&self, world: &World) -> Vec<Waiting> {
        let mut nonces: BTreeMap<Address, u64> = BTreeMap::new();
        let (mut ready, mut gas, mut is_going_on) = (Vec::<Waiting>::new(), 0_u64, true);
        let mut left: Vec<_> = self.all.iter().filter(|one| one.envelope.max_fee_per_gas() >= world.base_fee().into()).collect();
        while is_going_on {
            let before = ready.len();
            left.retain(|waiting| {
                let nonce = nonces.entry(waiting.from).or_insert_with(|| world.nonce_of(waiting.from));
                let sum = gas.saturating_add(waiting.envelope.gas_limit());
                let fits = waiting.envelope.nonce() == *nonce && sum <= BLOCK_GAS;
                if fits {
                    (gas, *nonce) = (sum, nonce.saturating_add(1));
                    ready.push((*waiting).clone());
                }
                !fits
            });
            is_going_on = ready.len() > before;
        }
        ready
    }

    /// Removes transactions that are now in a block, and those that can no longer be.
    pub(crate) fn settle(&mut self, world: &World, tried: &[Waiting]) {
        self.all.retain(|waiting| {
            waiting.envelope.nonce() >= world.nonce_of(waiting.from) && !tried.iter().any(|tried| tried.id == waiting.id)
        });
    }
}

/// Returns the maximum amount that a transaction can cost its sender.
fn cost(envelope: &TxEnvelope) -> U256 {
    let fee = U256::from(envelope.gas_limit()).saturating_mul(U256::from(envelope.max_fee_per_gas()));
    fee.saturating_add(envelope.value())
}

fn tip(envelope: &TxEnvelope) -> u128 {
    envelope.max_priority_fee_per_gas().unwrap_or_else(|| envelope.max_fee_per_gas())
}

/// Returns the priority fee that nodes suggest.
pub(crate) fn asked_tip(base_fee: u64) -> u128 {
    u128::from(base_fee / 10).max(1)
}

/// Returns whether a transaction may replace another: both fees have to be at least a tenth higher.
fn replaces(new: &TxEnvelope, old: &TxEnvelope) -> bool {
    let outbids = |new: u128, old: u128| new > old && new.saturating_mul(10) >= old.saturating_mul(11);
    outbids(new.max_fee_per_gas(), old.max_fee_per_gas()) && outbids(tip(new), tip(old))
}

/// Checks what a node checks about a single transaction.
fn check(world: &World, envelope: &TxEnvelope, from: Address) -> Result<(), String> {
    let (chain_id, wanted) = (envelope.chain_id().unwrap_or_default(), world.chain_id());
    if chain_id != wanted {
        return Err(format!("invalid chain id for signer: have {chain_id} want {wanted}"));
    }
    let gas = envelope.gas_limit();
    if gas > BLOCK_GAS {
        return Err("exceeds block gas limit".to_owned());
    }
    if gas > MAX_GAS {
        return Err(format!("transaction gas limit too high (cap: {MAX_GAS}, tx: {gas})"));
    }
    let (cap, tip) = (envelope.max_fee_per_gas(), tip(envelope));
    if tip > cap {
        let what = "max priority fee per gas higher than max fee per gas";
        return Err(format!("{what}: address {from}, maxPriorityFeePerGas: {tip}, maxFeePerGas: {cap}"));
    }
    // Nodes that want a priority fee accept one that is slightly too low, and let the transaction wait.
    let least = asked_tip(world.base_fee()).div_ceil(2);
    if tip < least {
        return Err(format!("transaction underpriced: gas tip cap {tip}, minimum needed {least}"));
    }
    let (nonce, next) = (envelope.nonce(), world.nonce_of(from));
    if nonce < next {
        return Err(format!("nonce too low: next nonce {next}, tx nonce {nonce}"));
    }
    let needed = intrinsic_gas(envelope);
    if gas < needed {
        return Err(format!("intrinsic gas too low: gas {gas}, minimum needed {needed}"));
    }
    Ok(())
}

/// Returns the gas that a transaction costs before execution: the greater of EIP-2028's and EIP-7623's amounts.
fn intrinsic_gas(envelope: &TxEnvelope) -> u64 {
    let count = |wanted: bool| envelope.input().iter().filter(|byte| (**byte == 0) == wanted).count();
    let count = |wanted| u64::try_from(count(wanted)).unwrap_or(u64::MAX);
    let tokens = count(true).saturating_add(count(false).saturating_mul(4));
    let words = count(true).saturating_add(count(false)).div_ceil(32);
    let creation = if envelope.is_create() { words.saturating_mul(2).saturating_add(32_000) } else { 0 };
    let keys = |list: &alloy_eips::eip2930::AccessList| {
        let keys = list.0.iter().fold(0_u64, |sum, item| {
            let slots = u64::try_from(item.storage_keys.len()).unwrap_or(u64::MAX);
            sum.saturating_add(2_400).saturating_add(slots.saturating_mul(1_900))
        });
        Some(keys)
    };
    let listed = envelope.access_list().and_then(keys).unwrap_or_default();
    let standard = tokens.saturating_mul(4).saturating_add(creation).saturating_add(listed);
    standard.max(tokens.saturating_mul(10)).saturating_add(21_000)
}

fn undecodable(error: &SendError) -> String {
    match error {
        SendError::Unprotected => "only replay-protected (EIP-155) transactions allowed over RPC".to_owned(),
        SendError::UnsupportedType(_) => "transaction type not supported".to_owned(),
        SendError::Signature(_) => "invalid sender".to_owned(),
        SendError::NotCanonical => "rlp: non-canonical encoding".to_owned(),
        _ => "rlp: the bytes are not a transaction".to_owned(),
    }
}
