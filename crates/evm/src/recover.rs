//! The way out from an order record alone: redeem with the secret, refund after the timelock.
//!
//! Anyone may send these calls; the funds go to the redeemer or the initiator that the contract stored. Whether a refund
//! is due is for the caller to see on chain: `initiated at + timelock < block number` (protocol.md section 4).

use alloy_primitives::{Address, U256};
use countersign_core::chains::swap_id::{self, Swap, Version};
use countersign_core::chains::{Network, address as spelling};
use countersign_core::wire::{OrderRecord, SwapRecord};
use countersign_core::{Account, Asset, Code, Refusal, Registry, SecretHash};

use crate::transaction::{Payload, Wallet};
use crate::verify::Call;
use crate::{address, htlc};

/// Which side of an order to leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Leg {
    /// Where the owner paid: refund it.
    Source,
    /// Where the owner is paid: redeem it.
    Destination,
}

/// Gas limits that these calls are given: enough for the contract's storage writes and one token transfer.
pub const GAS_LIMIT: u64 = 300_000;

/// A recovery call, ready to be given a nonce and fees.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Recovery {
    /// EIP-155 chain id.
    pub chain_id: u64,
    /// The call.
    pub call: Call,
    /// The swap that it ends.
    pub swap_id: [u8; 32],
    /// Who gets the funds.
    pub to: Address,
    /// Base units.
    pub amount: U256,
}

impl Recovery {
    /// Gives the call a nonce and fees; sign the payload's hash, or hand its bytes to a hardware signer.
    ///
    /// # Errors
    ///
    /// [`Code::WalletChainMismatch`] if the wallet is set to another chain.
    pub fn prepare(&self, wallet: &Wallet) -> Result<Payload, Refusal> {
        wallet.check(self.chain_id)?;
        Ok(Payload::new(self.chain_id, wallet.nonce, wallet.fees, &self.call))
    }
}

/// The swap id of an EVM side of a record, recomputed from its fields and the pinned contract.
///
/// # Errors
///
/// [`Code::RecordVersion`], [`Code::RecordMismatch`] for a member that is no account of the chain, and
/// [`Code::RecordSwapId`] if the record's id is another.
pub fn swap_id(record: &OrderRecord, leg: Leg, registry: &Registry) -> Result<[u8; 32], Refusal> {
    Side::of(record, leg, registry)?.swap_id(record)
}

/// The call that redeems a side with the secret.
///
/// # Errors
///
/// [`Code::SecretWrong`] if the secret is not that of the hash, and as [`swap_id`].
pub fn redeem(record: &OrderRecord, leg: Leg, secret: &[u8; 32], registry: &Registry) -> Result<Recovery, Refusal> {
    let side = Side::of(record, leg, registry)?;
    if SecretHash::of(secret) != side.swap.secret_hash {
        return Err(side.refuse(Code::SecretWrong, "secret_hash").expected(side.swap.secret_hash));
    }
    let swap_id = side.swap_id(record)?;
    let to = side.account("redeemer", &side.swap.redeemer)?;
    side.recovery(htlc::redeem(swap_id, secret), swap_id, &to)
}

/// The call that refunds a side after its timelock.
///
/// # Errors
///
/// As [`swap_id`].
pub fn refund(record: &OrderRecord, leg: Leg, registry: &Registry) -> Result<Recovery, Refusal> {
    let side = Side::of(record, leg, registry)?;
    let swap_id = side.swap_id(record)?;
    let to = side.account("initiator", &side.swap.initiator)?;
    side.recovery(htlc::refund(swap_id), swap_id, &to)
}

struct Side<'r> {
    swap: &'r SwapRecord,
    name: &'static str,
    asset: &'r Asset,
    chain_id: u64,
    htlc: Address,
}

impl<'r> Side<'r> {
    fn of(record: &'r OrderRecord, leg: Leg, registry: &'r Registry) -> Result<Self, Refusal> {
        let (swap, name) = match leg {
            Leg::Source => (&record.source_swap, "source_swap"),
            Leg::Destination => (&record.destination_swap, "destination_swap"),
        };
        let at = || format!("/order/{name}/asset");
        let asset = registry.asset(swap.asset.as_str()).ok_or_else(|| Refusal::new(Code::UnknownAsset, at()).got(&swap.asset))?;
        let Network::Evm(chain_id) = asset.chain.network else {
            return Err(Refusal::new(Code::UnsupportedFamily, at()).expected("evm").got(asset.chain.family()));
        };
        let htlc = asset.htlc.as_ref().and_then(address::of).ok_or_else(|| Refusal::new(Code::UnknownAsset, at()))?;
        Ok(Self { swap, name, asset, chain_id, htlc })
    }

    fn refuse(&self, code: Code, member: &str) -> Refusal {
        Refusal::new(code, format!("/order/{}/{member}", self.name))
    }

    fn account(&self, member: &str, text: &str) -> Result<Account, Refusal> {
        spelling::parse(&self.asset.chain.network, text)
            .map_err(|error| self.refuse(Code::RecordMismatch, member).because(error.to_string()).got(text))
    }

    fn swap_id(&self, record: &OrderRecord) -> Result<[u8; 32], Refusal> {
        let version = Version::parse(&record.version)
            .ok_or_else(|| Refusal::new(Code::RecordVersion, "/order/version").expected("v1, v2 or v3").got(&record.version))?;
        let (initiator, redeemer) = (self.account("initiator", &self.swap.initiator)?, self.account("redeemer", &self.swap.redeemer)?);
        let swap = Swap {
            secret_hash: &self.swap.secret_hash.0,
            initiator: initiator.bytes(),
            redeemer: redeemer.bytes(),
            timelock: self.swap.timelock,
            amount: self.swap.amount,
        };
        let id = swap_id::evm(version, self.chain_id, &swap, self.htlc.as_slice());
        let text = alloy_primitives::hex::encode(id);
        if text.eq_ignore_ascii_case(&self.swap.swap_id) {
            return Ok(id);
        }
        Err(self.refuse(Code::RecordSwapId, "swap_id").expected(text).got(&self.swap.swap_id))
    }

    fn recovery(&self, data: Vec<u8>, swap_id: [u8; 32], to: &Account) -> Result<Recovery, Refusal> {
        let to = address::of(to).ok_or_else(|| self.refuse(Code::Internal, "redeemer"))?;
        let call = Call { to: self.htlc, value: U256::ZERO, gas_limit: GAS_LIMIT, data: data.into() };
        Ok(Recovery { chain_id: self.chain_id, call, swap_id, to, amount: self.swap.amount })
    }
}
