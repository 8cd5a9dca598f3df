//! Recovery from an order record alone: redeem with the secret, refund after the timelock.
//!
//! Anyone may send these calls; the funds go to the redeemer or the initiator that the contract stored. Whether a refund
//! is due is for the caller to see on chain: `initiated at + timelock < block number`.
//!
//! No live record has confirmed how Tron's contract makes swap ids. So the calls take the record's own id, and say whether
//! the formula gives the same.
//!
//! Specification: `docs/spec/tron.md#redeem-and-refund`.

use std::fmt;

use alloy_primitives::{U256, hex};
pub use countersign_core::Leg;
use countersign_core::chains::{Network, swap_id as formula};
use countersign_core::number::bare_hex_array;
use countersign_core::{
    Account, Code, Family, OrderRecord, Policy, RecordedLeg, Refusal, Registry, Role, Summary, Topic, TypedValue, Warnings,
};

use crate::address::Address;
use crate::transaction::{Calls, TronTransaction, Unsigned};
use crate::verify::{Call, check_fee_limit};
use crate::{UnsignedOrder, htlc};

/// Fee limit that these calls are given unless the wallet names its own, in sun. 100 TRX are enough for the contract's storage
/// writes and one token transfer at the energy prices of the last years.
pub const FEE_LIMIT: i64 = 100_000_000;

/// A recovery call, ready to be given a sender and a reference block.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Recovery {
    /// The order's id, as the record has it.
    pub order_id: String,
    /// Whether the call redeems or refunds.
    pub role: Role,
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
    /// The policy's ceiling for the fee limit, in sun.
    max_fee_limit: u64,
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
    /// Replaces the default policy's ceiling for the fee limit with the wallet's own.
    #[must_use]
    pub const fn with_policy(mut self, policy: &Policy) -> Self {
        self.max_fee_limit = policy.tron_fee_limit;
        self
    }

    /// Makes the call a transaction of `sender`, who pays for it and need not be a party of the swap. A fee limit in `calls`
    /// replaces [`FEE_LIMIT`].
    ///
    /// A swap id that the formula does not give is a warning of the result ([`Code::SwapIdUnchecked`]).
    ///
    /// # Errors
    ///
    /// [`Code::WalletChainMismatch`] if the wallet is set to another chain, [`Code::GasLimitTooHigh`] or
    /// [`Code::GasLimitTooLow`] at `/fee_limit`, or [`Code::ExpirationPassed`].
    pub fn prepare(&self, sender: Address, calls: &Calls) -> Result<UnsignedOrder, Refusal> {
        calls.check(self.chain_id)?;
        let fee_limit = calls.fee_limit.map_or_else(|| U256::from(self.call.fee_limit.unsigned_abs()), U256::from);
        let refuse = |code| Refusal::new(code, "/fee_limit").with_actual(fee_limit);
        let fee_limit = check_fee_limit(self.max_fee_limit, fee_limit, &refuse)?;
        let transaction = TronTransaction::new(sender, calls, &Call { fee_limit, ..self.call.clone() });
        let mut summary = Summary::default();
        let text = format!("{} of swap {} pays {} base units to {}", self.role, hex::encode(self.swap_id), self.amount, self.to);
        summary.add_values(Topic::Payout, text, [self.to.into(), TypedValue::from(self.amount)]);
        let mut warnings = Warnings::default();
        if !self.swap_id_recomputed {
            warnings.warn(Code::SwapIdUnchecked);
        }
        let unsigned = Unsigned::new(sender.bytes(), [(self.role, transaction)], None);
        Ok(UnsignedOrder::from_recovery(self.order_id.clone(), summary, unsigned, warnings))
    }
}

/// Returns the swap id of a Tron leg of a record, and whether its fields and the pinned contract give it.
///
/// # Errors
///
/// [`Code::RecordSwapId`] if the id is not 64 hex digits, and what [`RecordedLeg::new`] refuses.
pub fn swap_id(record: &OrderRecord, leg: Leg, registry: &Registry) -> Result<([u8; 32], bool), Refusal> {
    recompute(&RecordedLeg::new(record, leg, registry, Family::Tron)?)
}

/// Returns the call that redeems a leg with the secret.
///
/// # Errors
///
/// [`Code::SecretWrong`] if the secret is not that of the hash, and as [`fn@swap_id`].
pub fn redeem(record: &OrderRecord, leg: Leg, secret: &[u8; 32], registry: &Registry) -> Result<Recovery, Refusal> {
    let leg = RecordedLeg::new(record, leg, registry, Family::Tron)?;
    leg.check_secret(secret)?;
    let id = recompute(&leg)?;
    recovery(record, &leg, Role::Redeem, htlc::redeem(id.0, secret), id)
}

/// Returns the call that refunds a leg after its timelock.
///
/// # Errors
///
/// As [`fn@swap_id`].
pub fn refund(record: &OrderRecord, leg: Leg, registry: &Registry) -> Result<Recovery, Refusal> {
    let leg = RecordedLeg::new(record, leg, registry, Family::Tron)?;
    let id = recompute(&leg)?;
    recovery(record, &leg, Role::Refund, htlc::refund(id.0), id)
}

fn chain_id(leg: &RecordedLeg<'_>) -> Result<u64, Refusal> {
    match leg.asset.chain.network {
        Network::Tron(chain_id) => Ok(chain_id),
        _ => Err(leg.refuse(Code::RecordMismatch, "chain")),
    }
}

fn recompute(leg: &RecordedLeg<'_>) -> Result<([u8; 32], bool), Refusal> {
    let recomputed = formula::evm(leg.version, chain_id(leg)?, &leg.terms(), leg.htlc()?.bytes());
    let id = bare_hex_array(&leg.swap.swap_id)
        .map_err(|error| leg.refuse(Code::RecordSwapId, "swap_id").with_reason(error.to_string()).with_actual(&leg.swap.swap_id))?;
    Ok((id, id == recomputed))
}

fn recovery(record: &OrderRecord, leg: &RecordedLeg<'_>, role: Role, data: Vec<u8>, id: ([u8; 32], bool)) -> Result<Recovery, Refusal> {
    let address = |account: &Account| Address::from_account(account).ok_or_else(|| leg.refuse(Code::RecordMismatch, "chain"));
    let to = address(if role == Role::Redeem { &leg.redeemer } else { &leg.initiator })?;
    let call = Call { to: address(leg.htlc()?)?, value: 0, fee_limit: FEE_LIMIT, data: data.into() };
    let (swap_id, swap_id_recomputed) = id;
    let (order_id, amount) = (record.order_id.clone(), leg.swap.amount);
    let (chain_id, max_fee_limit) = (chain_id(leg)?, Policy::default().tron_fee_limit);
    Ok(Recovery { order_id, role, chain_id, call, swap_id, swap_id_recomputed, to, amount, max_fee_limit })
}
