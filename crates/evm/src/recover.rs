//! The way out from an order record alone: redeem with the secret, refund after the timelock.
//!
//! Anyone may send these calls; the funds go to the redeemer or the initiator that the contract stored. Whether a refund
//! is due is for the caller to see on chain: `initiated at + timelock < block number` (protocol.md section 4).

use alloy_primitives::{Address, U256, hex};
pub use countersign_core::Leg;
use countersign_core::chains::{Network, swap_id as formula};
use countersign_core::wire::OrderRecord;
use countersign_core::{Account, Code, Family, Refusal, Registry, Side};

use crate::transaction::{Payload, Wallet};
use crate::verify::Call;
use crate::{address, htlc};

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
/// [`Code::RecordSwapId`] if the record's id is another, and what [`Side::of`] refuses.
pub fn swap_id(record: &OrderRecord, leg: Leg, registry: &Registry) -> Result<[u8; 32], Refusal> {
    recompute(&Side::of(record, leg, registry, Family::Evm)?)
}

/// The call that redeems a side with the secret.
///
/// # Errors
///
/// [`Code::SecretWrong`] if the secret is not that of the hash, and as [`swap_id`].
pub fn redeem(record: &OrderRecord, leg: Leg, secret: &[u8; 32], registry: &Registry) -> Result<Recovery, Refusal> {
    let side = Side::of(record, leg, registry, Family::Evm)?;
    side.check_secret(secret)?;
    let swap_id = recompute(&side)?;
    recovery(&side, htlc::redeem(swap_id, secret), swap_id, &side.redeemer)
}

/// The call that refunds a side after its timelock.
///
/// # Errors
///
/// As [`swap_id`].
pub fn refund(record: &OrderRecord, leg: Leg, registry: &Registry) -> Result<Recovery, Refusal> {
    let side = Side::of(record, leg, registry, Family::Evm)?;
    let swap_id = recompute(&side)?;
    recovery(&side, htlc::refund(swap_id), swap_id, &side.initiator)
}

fn chain_id(side: &Side<'_>) -> Result<u64, Refusal> {
    match side.asset.chain.network {
        Network::Evm(chain_id) => Ok(chain_id),
        _ => Err(side.refuse(Code::Internal, "chain")),
    }
}

fn recompute(side: &Side<'_>) -> Result<[u8; 32], Refusal> {
    let id = formula::evm(side.version, chain_id(side)?, &side.terms(), side.htlc()?.bytes());
    let text = hex::encode(id);
    if text.eq_ignore_ascii_case(&side.swap.swap_id) {
        return Ok(id);
    }
    Err(side.refuse(Code::RecordSwapId, "swap_id").with_expected(text).with_actual(&side.swap.swap_id))
}

fn recovery(side: &Side<'_>, data: Vec<u8>, swap_id: [u8; 32], to: &Account) -> Result<Recovery, Refusal> {
    let address = |account: &Account| address::of(account).ok_or_else(|| side.refuse(Code::Internal, "chain"));
    let call = Call { to: address(side.htlc()?)?, value: U256::ZERO, gas_limit: GAS_LIMIT, data: data.into() };
    Ok(Recovery { chain_id: chain_id(side)?, call, swap_id, to: address(to)?, amount: side.swap.amount })
}
