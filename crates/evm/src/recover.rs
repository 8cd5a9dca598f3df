//! Recovery from an order record alone: redeem with the secret, refund after the timelock.
//!
//! Anyone may send these calls; the funds go to the redeemer or the initiator that the contract stored. Whether a refund
//! is due is for the caller to see on chain: `initiated at + timelock < block number`.
//!
//! Specification: `docs/spec/evm.md#redeem-and-refund`.

use std::fmt;

use alloy_primitives::{Address, U256, hex};
pub use countersign_core::Leg;
use countersign_core::chains::Network;
use countersign_core::{Account, Code, Family, OrderRecord, Policy, RecordedLeg, Refusal, Registry, Role, Summary, Topic, Warnings};

use crate::transaction::{Calls, EvmTransaction, Unsigned};
use crate::verify::{Call, check_gas_limit};
use crate::{UnsignedOrder, address, htlc};

/// Gas limit that these calls are given unless the wallet names its own: enough for the contract's storage writes and one token
/// transfer.
pub const GAS_LIMIT: u64 = 300_000;

/// A recovery call, ready to be given a sender, a nonce and fees.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Recovery {
    /// The order's id, as the record has it.
    pub order_id: String,
    /// Whether the call redeems or refunds.
    pub role: Role,
    /// EIP-155 chain id.
    pub chain_id: u64,
    /// The call.
    pub call: Call,
    /// The swap that it ends.
    pub swap_id: [u8; 32],
    /// Whether the record's other fields and the pinned contract give that id. Where the formula of the pinned generation is not
    /// known, as for the older contract of the chain's own coin, it is the record's. Then simulate a refund first, and do not
    /// redeem before the contract has shown an order of this id: a redemption that fails has shown the secret all the same.
    pub swap_id_recomputed: bool,
    /// Who gets the funds.
    pub to: Address,
    /// Base units.
    pub amount: U256,
    /// The policy's ceiling for the gas limit.
    max_gas_limit: u64,
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
    /// Replaces the default policy's ceiling for the gas limit with the wallet's own.
    #[must_use]
    pub const fn with_policy(mut self, policy: &Policy) -> Self {
        self.max_gas_limit = policy.evm_gas_limit;
        self
    }

    /// Makes the call a transaction of `sender`, who need not be a party of the swap. A gas limit in `calls` replaces
    /// [`GAS_LIMIT`].
    ///
    /// A swap id that was not recomputed is a warning of the result ([`Code::SwapIdUnchecked`]).
    ///
    /// # Errors
    ///
    /// [`Code::WalletChainMismatch`] if the wallet is set to another chain, [`Code::GasLimitTooHigh`] or
    /// [`Code::GasLimitTooLow`], and what is wrong with nonce or fees.
    pub fn prepare(&self, sender: Address, calls: &Calls) -> Result<UnsignedOrder, Refusal> {
        calls.check(self.chain_id)?;
        let gas_limit = U256::from(calls.gas_limit.unwrap_or(self.call.gas_limit));
        let refuse = |code| Refusal::new(code, "/gas_limit").with_actual(gas_limit);
        let gas_limit = check_gas_limit(self.max_gas_limit, gas_limit, &refuse)?;
        let call = Call { gas_limit, ..self.call.clone() };
        let transaction = EvmTransaction::new(self.chain_id, calls.nonce, calls.fees, &call);
        let mut summary = Summary::default();
        let text = format!("{} of swap {} pays {} base units to {}", self.role, hex::encode(self.swap_id), self.amount, self.to);
        summary.add_values(Topic::Payout, text, [address::to_account(self.to).into(), self.amount.into()]);
        let mut warnings = Warnings::default();
        if !self.swap_id_recomputed {
            warnings.warn(Code::SwapIdUnchecked);
        }
        let unsigned = Unsigned::new(sender, [(self.role, transaction)], None);
        Ok(UnsignedOrder::from_recovery(self.order_id.clone(), summary, unsigned, warnings))
    }
}

/// Returns the swap id of an EVM leg of a record, recomputed from its fields and the pinned contract. Where the formula of the
/// pinned generation is not known it is the record's: [`Recovery::swap_id_recomputed`].
///
/// # Errors
///
/// [`Code::RecordSwapId`] if the record's id is another, and what [`RecordedLeg::new`] refuses.
pub fn swap_id(record: &OrderRecord, leg: Leg, registry: &Registry) -> Result<[u8; 32], Refusal> {
    Ok(RecordedLeg::new(record, leg, registry, Family::Evm)?.hash_swap_id()?.0)
}

/// Returns the call that redeems a leg with the secret.
///
/// # Errors
///
/// [`Code::SecretWrong`] if the secret is not that of the hash, and as [`swap_id`].
pub fn redeem(record: &OrderRecord, leg: Leg, secret: &[u8; 32], registry: &Registry) -> Result<Recovery, Refusal> {
    let leg = RecordedLeg::new(record, leg, registry, Family::Evm)?;
    leg.check_secret(secret)?;
    let id = leg.hash_swap_id()?;
    recovery(record, &leg, Role::Redeem, htlc::redeem(id.0, secret), id)
}

/// Returns the call that refunds a leg after its timelock.
///
/// # Errors
///
/// As [`swap_id`].
pub fn refund(record: &OrderRecord, leg: Leg, registry: &Registry) -> Result<Recovery, Refusal> {
    let leg = RecordedLeg::new(record, leg, registry, Family::Evm)?;
    let id = leg.hash_swap_id()?;
    recovery(record, &leg, Role::Refund, htlc::refund(id.0), id)
}

fn chain_id(leg: &RecordedLeg<'_>) -> Result<u64, Refusal> {
    match leg.asset.chain.network {
        Network::Evm(chain_id) => Ok(chain_id),
        _ => Err(leg.refuse(Code::RecordMismatch, "chain")),
    }
}

fn recovery(record: &OrderRecord, leg: &RecordedLeg<'_>, role: Role, data: Vec<u8>, id: ([u8; 32], bool)) -> Result<Recovery, Refusal> {
    let address = |account: &Account| address::from_account(account).ok_or_else(|| leg.refuse(Code::RecordMismatch, "chain"));
    let to = address(if role == Role::Redeem { &leg.redeemer } else { &leg.initiator })?;
    let call = Call { to: address(leg.htlc()?)?, value: U256::ZERO, gas_limit: GAS_LIMIT, data: data.into() };
    let (order_id, amount) = (record.order_id.clone(), leg.swap.amount);
    let max_gas_limit = Policy::default().evm_gas_limit;
    let (swap_id, swap_id_recomputed) = id;
    Ok(Recovery { order_id, role, chain_id: chain_id(leg)?, call, swap_id, swap_id_recomputed, to, amount, max_gas_limit })
}
