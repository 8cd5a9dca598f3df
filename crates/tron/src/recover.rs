//! The way out from an order record alone: redeem with the secret, refund after the timelock.
//!
//! Anyone may send these calls; the funds go to the redeemer or the initiator that the contract stored. Whether a refund
//! is due is for the caller to see on chain: `initiated at + timelock < block number`.
//!
//! No live record has confirmed how Tron's contract makes swap ids (protocol.md section 5). So the calls take the
//! record's own id, and say whether the formula gives the same.

use alloy_primitives::U256;
pub use countersign_core::Leg;
use countersign_core::chains::{Network, swap_id as formula};
use countersign_core::number::bare_hex_array;
use countersign_core::wire::OrderRecord;
use countersign_core::{Account, Code, Family, Refusal, Registry, Side};

use crate::address::Address;
use crate::htlc;
use crate::transaction::{Payload, Wallet};
use crate::verify::Call;

/// Fee limit that these calls are given, in sun: 100 TRX, enough for the contract's storage writes and one token transfer
/// at the energy prices of the last years.
pub const FEE_LIMIT: i64 = 100_000_000;

/// A recovery call, ready to be given a sender and a reference block.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Recovery {
    /// Chain id.
    pub chain_id: u64,
    /// The call.
    pub call: Call,
    /// The swap that it ends: the record's id.
    pub swap_id: [u8; 32],
    /// Whether the record's other fields and the pinned contract give that id by EVM's formula. Where they do not,
    /// simulate the call first: a redeem that fails has shown the secret to everybody all the same.
    pub swap_id_recomputed: bool,
    /// Who gets the funds.
    pub to: Address,
    /// Base units.
    pub amount: U256,
}

impl Recovery {
    /// Gives the call a sender, who pays for it, and a reference block; sign the payload's id, or hand its bytes to a
    /// hardware signer.
    ///
    /// # Errors
    ///
    /// [`Code::WalletChainMismatch`] if the wallet is set to another chain, or a refusal of its lifetime.
    pub fn prepare(&self, sender: Address, wallet: &Wallet) -> Result<Payload, Refusal> {
        wallet.check(self.chain_id)?;
        Ok(Payload::new(sender, wallet, &self.call))
    }
}

/// The swap id of a Tron side of a record, and whether its fields and the pinned contract give it.
///
/// # Errors
///
/// [`Code::RecordSwapId`] if the id is not 64 hex digits, and what [`Side::of`] refuses.
pub fn swap_id(record: &OrderRecord, leg: Leg, registry: &Registry) -> Result<([u8; 32], bool), Refusal> {
    recompute(&Side::of(record, leg, registry, Family::Tron)?)
}

/// The call that redeems a side with the secret.
///
/// # Errors
///
/// [`Code::SecretWrong`] if the secret is not that of the hash, and as [`fn@swap_id`].
pub fn redeem(record: &OrderRecord, leg: Leg, secret: &[u8; 32], registry: &Registry) -> Result<Recovery, Refusal> {
    let side = Side::of(record, leg, registry, Family::Tron)?;
    side.check_secret(secret)?;
    let id = recompute(&side)?;
    recovery(&side, htlc::redeem(id.0, secret), id, &side.redeemer)
}

/// The call that refunds a side after its timelock.
///
/// # Errors
///
/// As [`fn@swap_id`].
pub fn refund(record: &OrderRecord, leg: Leg, registry: &Registry) -> Result<Recovery, Refusal> {
    let side = Side::of(record, leg, registry, Family::Tron)?;
    let id = recompute(&side)?;
    recovery(&side, htlc::refund(id.0), id, &side.initiator)
}

fn chain_id(side: &Side<'_>) -> Result<u64, Refusal> {
    match side.asset.chain.network {
        Network::Tron(chain_id) => Ok(chain_id),
        _ => Err(side.refuse(Code::Internal, "chain")),
    }
}

fn recompute(side: &Side<'_>) -> Result<([u8; 32], bool), Refusal> {
    let recomputed = formula::evm(side.version, chain_id(side)?, &side.terms(), side.htlc()?.bytes());
    let id = bare_hex_array(&side.swap.swap_id)
        .map_err(|code| side.refuse(Code::RecordSwapId, "swap_id").with_reason(code.meaning()).with_actual(&side.swap.swap_id))?;
    Ok((id, id == recomputed))
}

fn recovery(side: &Side<'_>, data: Vec<u8>, id: ([u8; 32], bool), to: &Account) -> Result<Recovery, Refusal> {
    let address = |account: &Account| Address::of(account).ok_or_else(|| side.refuse(Code::Internal, "chain"));
    let call = Call { to: address(side.htlc()?)?, value: 0, fee_limit: FEE_LIMIT, data: data.into() };
    let (swap_id, swap_id_recomputed) = id;
    Ok(Recovery { chain_id: chain_id(side)?, call, swap_id, swap_id_recomputed, to: address(to)?, amount: side.swap.amount })
}
