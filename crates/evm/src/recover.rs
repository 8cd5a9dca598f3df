//! Recovery from an order record alone: redeem with the secret, refund after the timelock.
//!
//! Anyone may send these calls. The funds go to the redeemer or the initiator that the contract has stored. The caller must
//! check on chain whether a refund is due: `initiated at + timelock < block number`.
//!
//! Specification: `docs/spec/evm.md#redeem-and-refund`.

use std::ops::Deref;

use alloy_primitives::{Address, U256, hex};
pub use countersign_core::Leg;
use countersign_core::chains::Network;
use countersign_core::reader::{Expense, check_low_fee};
use countersign_core::{
    Account, Code, Family, OrderRecord, Policy, RecordedLeg, RecoveryTerms, Refusal, Registry, Role, SentBy, SwapRecovery, Warnings,
};

use crate::deposit::Call;
use crate::gas;
use crate::reader::fees::cap;
use crate::transaction::{EvmTransaction, TxContext, Unsigned};
use crate::{Evm, UnsignedOrder, address, htlc};

/// Default gas limit of these calls. It covers the contract's storage writes and one token transfer.
pub const GAS_LIMIT: u64 = 300_000;

/// The gas that a redemption within [`GAS_LIMIT`] uses at most beside the payment: about 24,000 for the transaction and its bytes, and about
/// 45,000 for the contract's reads of the order, its one write, the hash and the event, with a margin for chains whose writes cost more.
const OWN_GAS: u64 = 100_000;
/// The gas that is left for the token's transfer. A contract can pass on 63/64 of what it has.
pub(crate) const PAYMENT_GAS: u64 = (GAS_LIMIT - OWN_GAS) / 64 * 63;

/// Returns the gas limit of these calls under a policy: [`GAS_LIMIT`] plus twice `data_gas`.
///
/// `data_gas` is the gas for the call's data on the chain below, and 0 on chains that do not charge data as gas. It is doubled because its
/// price may rise until the call is mined. A redemption cannot be estimated without showing the secret, so the same limit applies when an
/// account's balance is checked beforehand.
///
/// # Errors
///
/// [`Code::GasLimitTooHigh`] at `/gas_limit` if the policy allows less.
pub fn gas_limit(policy: &Policy, data_gas: u64) -> Result<u64, Refusal> {
    let limit = GAS_LIMIT.saturating_add(data_gas.saturating_mul(2));
    gas::check_limit(policy.evm.gas_limit, U256::from(limit), &|code| Refusal::new(code, "/gas_limit").with_actual(limit))
}

/// A recovery call, to which [`Recovery::prepare`] adds a sender, a nonce and fees.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Recovery {
    swap: SwapRecovery<Call, [u8; 32], Address>,
    chain_id: u64,
    /// The highest gas limit that the policy allows.
    max_gas_limit: u64,
    /// The highest gas limit that the chain allows one transaction, if that is known.
    max_tx_gas: Option<u64>,
    /// Whether the chain's own coin is paid, and not a token.
    pays_coin: bool,
}

impl Deref for Recovery {
    type Target = SwapRecovery<Call, [u8; 32], Address>;

    fn deref(&self) -> &Self::Target {
        &self.swap
    }
}

impl Recovery {
    /// Returns the EIP-155 chain id.
    #[must_use]
    pub const fn chain_id(&self) -> u64 {
        self.chain_id
    }

    /// Returns the address of the HTLC.
    #[must_use]
    pub fn contract(&self) -> Address {
        self.call.to
    }

    /// Applies the gas limit ceiling of `policy` instead of the default policy's.
    #[must_use]
    pub const fn with_policy(mut self, policy: &Policy) -> Self {
        self.max_gas_limit = policy.evm.gas_limit;
        self
    }

    /// Prepares the transaction in which the sender makes the call: see [`TxContext::sent_by`]. The sender need not be a party to the swap.
    /// A gas limit of the context replaces [`GAS_LIMIT`]; its approvals are not used.
    ///
    /// The result has the warning [`Code::SwapIdUnchecked`] if the swap id was not recomputed, [`Code::FeeAbovePayout`] if the call may
    /// cost more than it pays, [`Code::NonceGap`] if it waits for earlier transactions, and [`Code::GasLimitAboveCap`] if the chain allows no
    /// transaction as much gas.
    ///
    /// # Errors
    ///
    /// [`Code::WalletChainMismatch`] if the wallet is set to another chain, [`Code::GasLimitTooHigh`], [`Code::GasLimitTooLow`],
    /// [`Code::PriorityFeeAboveCap`], [`Code::NonceLimit`], or [`Code::FeeTooLow`] for a redemption with a fee of zero or with less gas than
    /// any redemption needs.
    pub fn prepare(&self, context: SentBy<Address, TxContext>) -> Result<UnsignedOrder, Refusal> {
        let SentBy { sender, context: calls, accepts_low_fee } = context;
        calls.check(self.chain_id)?;
        let gas_limit = U256::from(calls.gas_limit.unwrap_or(self.call.gas_limit));
        let refuse = |code| Refusal::new(code, "/gas_limit").with_actual(gas_limit);
        let gas_limit = gas::check_limit(self.max_gas_limit, gas_limit, &refuse)?;
        gas::check_bytes(gas_limit, &self.call.data, &refuse)?;
        let call = Call { gas_limit, ..self.call.clone() };
        let transaction = EvmTransaction::new(self.chain_id, calls.nonce, calls.fees, &call);
        let summary = self.terms.describe(&hex::encode(self.swap_id));
        let mut warnings = Warnings::default();
        if !self.swap_id_recomputed {
            warnings.warn(Code::SwapIdUnchecked);
        }
        calls.warn(&mut warnings);
        gas::warn_above_cap(self.max_tx_gas, gas_limit, &mut warnings);
        if let Some(why) = gas::low_limit(gas_limit) {
            check_low_fee(self.terms.role, accepts_low_fee, "/gas_limit", &why, &mut warnings)?;
        }
        calls.check_low_fee(self.terms.role, accepts_low_fee, &mut warnings)?;
        self.expense(&calls).warn(&mut warnings);
        let unsigned = Unsigned::new(sender, [(self.terms.role, transaction)], None);
        Ok(UnsignedOrder::from_recovery(self.terms.recovered(summary, unsigned, warnings), Evm(())))
    }
}

impl Recovery {
    /// Returns what the call may cost at these fees, in wei, and what it pays. A
    /// [fee for the chain below](crate::reader::has_l1_fee) is not included.
    #[must_use]
    pub fn expense(&self, calls: &TxContext) -> Expense {
        let gas = U256::from(calls.gas_limit.unwrap_or(self.call.gas_limit));
        let cost = gas.saturating_mul(U256::from(cap(calls.fees)));
        Expense { role: self.terms.role, cost, pays: self.pays_coin.then_some(self.terms.amount), unit: ("wei", 18) }
    }
}

/// Returns the swap id of an EVM leg of a record, recomputed from its fields and the pinned contract. If the formula of the pinned
/// generation is not known, returns the record's id: see [`SwapRecovery::swap_id_recomputed`].
///
/// # Errors
///
/// [`Code::RecordSwapId`] if the record has another id or one that is not 64 hex digits, [`Code::GenerationMismatch`] if its id
/// follows the formula of another generation, or the errors of [`RecordedLeg::new`].
pub fn swap_id(record: &OrderRecord, leg: Leg, registry: &Registry) -> Result<[u8; 32], Refusal> {
    Ok(RecordedLeg::new(record, leg, registry, Family::Evm)?.hash_swap_id()?.0)
}

/// Returns the call that redeems a leg with the secret.
///
/// # Errors
///
/// [`Code::SecretWrong`] if the secret does not hash to the record's secret hash, or the errors of [`swap_id`].
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
/// The errors of [`swap_id`].
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
    let terms = RecoveryTerms::of_leg(record, leg, role);
    let max_gas_limit = Policy::default().evm.gas_limit;
    let (swap_id, swap_id_recomputed) = id;
    let (chain_id, pays_coin) = (chain_id(leg)?, leg.asset.token.is_none());
    let swap = SwapRecovery { terms, call, swap_id, swap_id_recomputed, to };
    Ok(Recovery { swap, chain_id, max_gas_limit, max_tx_gas: leg.asset.chain.profile.max_tx_gas, pays_coin })
}
