//! The way out from an order record alone: redeem with the secret, refund after the timelock.
//!
//! Anyone may send these calls; the funds go to the redeemer or the initiator that the contract stored. Whether a refund
//! is due is for the caller to see on chain: `initiated at + timelock < block number` (protocol.md section 6).

pub use countersign_core::Leg;
use countersign_core::chains::{Network, swap_id as formula};
use countersign_core::wire::OrderRecord;
use countersign_core::{Account, Code, Family, Refusal, Registry, Side, U256};
use starknet_crypto::Felt;

use crate::transaction::{Call, Invoke, Wallet};
use crate::{address, felt, htlc};

/// A recovery call, ready to be made a transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Recovery {
    /// Chain id as a short string.
    pub chain_id: Felt,
    /// The call.
    pub call: Call,
    /// The swap that it ends.
    pub swap_id: Felt,
    /// Who gets the funds.
    pub to: Felt,
    /// Base units.
    pub amount: U256,
}

impl Recovery {
    /// Makes it a transaction of `sender`; sign its hash.
    ///
    /// # Errors
    ///
    /// [`Code::WalletChainMismatch`] if the wallet is set to another chain.
    pub fn prepare(&self, sender: Felt, wallet: &Wallet) -> Result<Invoke, Refusal> {
        Invoke::new(sender, self.chain_id, &[&self.call], wallet)
    }
}

/// The swap id of a Starknet side of a record, recomputed from its fields.
///
/// # Errors
///
/// [`Code::RecordSwapId`] if the record's id is another, and what [`Side::of`] refuses.
pub fn swap_id(record: &OrderRecord, leg: Leg, registry: &Registry) -> Result<Felt, Refusal> {
    recompute(&Side::of(record, leg, registry, Family::Starknet)?)
}

/// The call that redeems a side with the secret.
///
/// # Errors
///
/// [`Code::SecretWrong`] if the secret is not that of the hash, and as [`swap_id`].
pub fn redeem(record: &OrderRecord, leg: Leg, secret: &[u8; 32], registry: &Registry) -> Result<Recovery, Refusal> {
    let side = Side::of(record, leg, registry, Family::Starknet)?;
    side.check_secret(secret)?;
    let swap_id = recompute(&side)?;
    recovery(&side, htlc::REDEEM, htlc::redeem(swap_id, secret), swap_id, &side.redeemer)
}

/// The call that refunds a side after its timelock.
///
/// # Errors
///
/// As [`swap_id`].
pub fn refund(record: &OrderRecord, leg: Leg, registry: &Registry) -> Result<Recovery, Refusal> {
    let side = Side::of(record, leg, registry, Family::Starknet)?;
    let swap_id = recompute(&side)?;
    recovery(&side, htlc::REFUND, htlc::refund(swap_id), swap_id, &side.initiator)
}

fn chain<'s>(side: &'s Side<'_>) -> Result<&'s str, Refusal> {
    match &side.asset.chain.network {
        Network::Starknet(chain) => Ok(chain),
        _ => Err(side.refuse(Code::Internal, "asset")),
    }
}

/// Records write the id without `0x` and leading zeros; more zeros are the same felt.
fn recompute(side: &Side<'_>) -> Result<Felt, Refusal> {
    let id = formula::starknet(chain(side)?, &side.terms()).and_then(felt::of_bytes);
    let id = id.ok_or_else(|| side.refuse(Code::Internal, "swap_id"))?;
    if felt::parse(&format!("0x{}", side.swap.swap_id)) == Ok(id) {
        return Ok(id);
    }
    Err(side.refuse(Code::RecordSwapId, "swap_id").with_expected(format!("{id:x}")).with_actual(&side.swap.swap_id))
}

fn recovery(side: &Side<'_>, selector: Felt, calldata: Vec<Felt>, swap_id: Felt, to: &Account) -> Result<Recovery, Refusal> {
    let internal = || side.refuse(Code::Internal, "asset");
    let htlc = address::of(side.htlc()?).ok_or_else(internal)?;
    let chain_id = felt::of_short_string(chain(side)?).ok_or_else(internal)?;
    let to = address::of(to).ok_or_else(internal)?;
    Ok(Recovery { chain_id, call: Call::new(htlc, selector, calldata), swap_id, to, amount: side.swap.amount })
}
