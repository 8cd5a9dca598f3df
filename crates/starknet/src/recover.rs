//! Recovery from an order record alone: redeem with the secret, refund after the timelock.
//!
//! Anyone may send these calls; the funds go to the redeemer or the initiator that the contract stored. The caller must
//! check on chain whether a refund is due: `initiated at + timelock < block number`.

use std::fmt;

pub use countersign_core::Leg;
use countersign_core::chains::{Network, swap_id as formula};
use countersign_core::{Account, Code, Family, OrderRecord, RecordedLeg, Refusal, Registry, Role, Summary, Topic, U256, Warnings};
use starknet_types_core::felt::Felt;

use crate::funding::Execution;
use crate::payloads::Unsigned;
use crate::transaction::Call;
use crate::{UnsignedOrder, address, felt, htlc};

/// A recovery call, ready to be given a sender, a nonce and fees.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Recovery {
    /// The record's order id.
    pub order_id: String,
    /// Whether the call redeems or refunds.
    pub role: Role,
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

impl fmt::Debug for Recovery {
    /// Leaves out the call, because that of a redemption holds the secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Recovery");
        shown.field("order_id", &self.order_id).field("role", &self.role).field("to", &self.to).field("amount", &self.amount);
        shown.finish_non_exhaustive()
    }
}

impl Recovery {
    /// Makes the call a transaction of `sender`, who need not be a party of the swap.
    ///
    /// # Errors
    ///
    /// [`Code::WalletChainMismatch`] if the wallet is set to another chain.
    pub fn prepare(&self, sender: Felt, execution: &Execution) -> Result<UnsignedOrder, Refusal> {
        let invoke = execution.invoke(sender, self.chain_id, vec![self.call.clone()])?;
        let mut summary = Summary::default();
        let text = format!("{} of swap {:x} pays {} base units to {:#066x}", self.role, self.swap_id, self.amount, self.to);
        summary.add_values(Topic::Payout, text, [address::to_account(self.to).into(), self.amount.into()]);
        let unsigned = Unsigned::new(sender, execution.public_key, Some((self.role, invoke)), None);
        Ok(UnsignedOrder::from_recovery(self.order_id.clone(), summary, unsigned, Warnings::default()))
    }
}

/// Returns the swap id of a Starknet leg of a record, recomputed from its fields.
///
/// # Errors
///
/// [`Code::RecordSwapId`] if the record's id is another, and what [`RecordedLeg::new`] refuses.
pub fn swap_id(record: &OrderRecord, leg: Leg, registry: &Registry) -> Result<Felt, Refusal> {
    recompute(&RecordedLeg::new(record, leg, registry, Family::Starknet)?)
}

/// Returns the call that redeems a leg with the secret.
///
/// # Errors
///
/// [`Code::SecretWrong`] if the secret is not that of the hash, and as [`swap_id`].
pub fn redeem(record: &OrderRecord, leg: Leg, secret: &[u8; 32], registry: &Registry) -> Result<Recovery, Refusal> {
    let leg = RecordedLeg::new(record, leg, registry, Family::Starknet)?;
    leg.check_secret(secret)?;
    let swap_id = recompute(&leg)?;
    recovery(record, &leg, (Role::Redeem, htlc::REDEEM), htlc::redeem(swap_id, secret), swap_id)
}

/// Returns the call that refunds a leg after its timelock.
///
/// # Errors
///
/// As [`swap_id`].
pub fn refund(record: &OrderRecord, leg: Leg, registry: &Registry) -> Result<Recovery, Refusal> {
    let leg = RecordedLeg::new(record, leg, registry, Family::Starknet)?;
    let swap_id = recompute(&leg)?;
    recovery(record, &leg, (Role::Refund, htlc::REFUND), htlc::refund(swap_id), swap_id)
}

fn chain<'l>(leg: &'l RecordedLeg<'_>) -> Result<&'l str, Refusal> {
    match &leg.asset.chain.network {
        Network::Starknet(chain) => Ok(chain),
        _ => Err(leg.refuse(Code::RecordMismatch, "chain")),
    }
}

/// Recomputes the swap id. Records write it without `0x` and leading zeros; more zeros are the same felt.
fn recompute(leg: &RecordedLeg<'_>) -> Result<Felt, Refusal> {
    let id = formula::starknet(chain(leg)?, &leg.terms()).and_then(felt::from_bytes);
    let id = id.ok_or_else(|| leg.refuse(Code::RecordMismatch, "chain"))?;
    if felt::parse(&format!("0x{}", leg.swap.swap_id)) == Ok(id) {
        return Ok(id);
    }
    Err(leg.refuse(Code::RecordSwapId, "swap_id").with_expected(format!("{id:x}")).with_actual(&leg.swap.swap_id))
}

fn recovery(
    record: &OrderRecord,
    leg: &RecordedLeg<'_>,
    (role, selector): (Role, Felt),
    calldata: Vec<Felt>,
    swap_id: Felt,
) -> Result<Recovery, Refusal> {
    let mismatch = || leg.refuse(Code::RecordMismatch, "chain");
    let address = |account: &Account| address::from_account(account).ok_or_else(mismatch);
    let to = address(if role == Role::Redeem { &leg.redeemer } else { &leg.initiator })?;
    let call = Call::new(address(leg.htlc()?)?, selector, calldata);
    let chain_id = felt::from_short_string(chain(leg)?).ok_or_else(mismatch)?;
    Ok(Recovery { order_id: record.order_id.clone(), role, chain_id, call, swap_id, to, amount: leg.swap.amount })
}
