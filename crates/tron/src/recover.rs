//! Recovery from an order record alone: redeem with the secret, refund after the timelock.
//!
//! Anyone may send these calls. The funds go to the redeemer or the initiator that the contract has stored. The caller must
//! check on chain whether a refund is due: `initiated at + timelock < block number`.
//!
//! No live record has confirmed how Tron's contract computes swap ids. Therefore the calls use the record's own id, and
//! [`SwapRecovery::swap_id_recomputed`] tells whether the EVM formula gives the same one.
//!
//! Specification: `docs/spec/tron.md#redeem-and-refund`.

use std::ops::Deref;

use alloy_primitives::{U256, hex};
pub use countersign_core::Leg;
use countersign_core::chains::{Network, swap_id as formula};
use countersign_core::number::bare_hex_array;
use countersign_core::reader::{Expense, check_low_fee};
use countersign_core::{
    Account, Code, Family, OrderRecord, Policy, RecordedLeg, RecoveryTerms, Refusal, Registry, Role, SentBy, SwapRecovery, Warnings,
};

use crate::address::Address;
use crate::deposit::{Call, check_fee_limit, low_limit};
use crate::transaction::{TronTransaction, TxContext, Unsigned, permission};
use crate::{Tron, UnsignedOrder, htlc};

/// Default fee limit of these calls, in sun. 100 TRX cover the contract's storage writes and one token transfer at the energy prices
/// of recent years.
pub const FEE_LIMIT: i64 = 100_000_000;

/// Returns the fee limit of these calls under a policy, in sun. A redemption cannot be run without showing the secret, so it is the same for
/// whoever asks beforehand whether an account can pay for it.
///
/// # Errors
///
/// [`Code::GasLimitTooHigh`] at `/fee_limit` if the policy allows less than [`FEE_LIMIT`].
pub fn fee_limit(policy: &Policy) -> Result<u64, Refusal> {
    let limit = FEE_LIMIT.unsigned_abs();
    let refuse = |code| Refusal::new(code, "/fee_limit").with_actual(limit);
    check_fee_limit(policy.tron.fee_limit, U256::from(limit), &refuse).map(i64::unsigned_abs)
}

/// A recovery call, to which [`Recovery::prepare`] adds a sender and a reference block.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Recovery {
    swap: SwapRecovery<Call, [u8; 32], Address>,
    chain_id: u64,
    /// The highest fee limit that the policy allows, in sun.
    max_fee_limit: u64,
    /// Whether TRX is paid, and not a token.
    pays_coin: bool,
}

impl Deref for Recovery {
    type Target = SwapRecovery<Call, [u8; 32], Address>;

    fn deref(&self) -> &Self::Target {
        &self.swap
    }
}

impl Recovery {
    /// Returns the chain id of the pinned asset.
    #[must_use]
    pub const fn chain_id(&self) -> u64 {
        self.chain_id
    }

    /// Applies the fee limit ceiling of `policy` instead of the default policy's.
    #[must_use]
    pub const fn with_policy(mut self, policy: &Policy) -> Self {
        self.max_fee_limit = policy.tron.fee_limit;
        self
    }

    /// Prepares the transaction in which the sender makes the call and pays for it: see [`TxContext::sent_by`]. The sender need not be a
    /// party to the swap. A fee limit of the context replaces [`FEE_LIMIT`]; its approvals are not used.
    ///
    /// The result has the warning [`Code::SwapIdUnchecked`] if the swap id was not recomputed, [`Code::FeeTooLow`] if the fee limit may be
    /// too low, and [`Code::SignatureUnverified`] for a redemption under a named permission, which only the chain knows.
    ///
    /// # Errors
    ///
    /// [`Code::WalletChainMismatch`] if the wallet is set to another chain, [`Code::GasLimitTooHigh`] or
    /// [`Code::GasLimitTooLow`] or [`Code::FeeTooLow`] at `/fee_limit`, [`Code::ExpirationPassed`], or [`Code::ExpirationTooLate`].
    pub fn prepare(&self, context: SentBy<Address, TxContext>) -> Result<UnsignedOrder, Refusal> {
        let SentBy { sender, context: calls, accepts_low_fee } = context;
        calls.check(self.chain_id)?;
        let fee_limit = calls.fee_limit.map_or_else(|| U256::from(self.call.fee_limit.unsigned_abs()), U256::from);
        let expense = self.expense(fee_limit);
        let refuse = |code| {
            let refusal = Refusal::new(code, "/fee_limit").with_actual(fee_limit);
            if code == Code::GasLimitTooHigh { expense.explain(refusal, "tron_fee_limit") } else { refusal }
        };
        let fee_limit = check_fee_limit(self.max_fee_limit, fee_limit, &refuse)?;
        let mut warnings = Warnings::default();
        if let Some(why) = low_limit(self.terms.role, fee_limit.unsigned_abs()) {
            check_low_fee(self.terms.role, accepts_low_fee, "/fee_limit", &why, &mut warnings)?;
        }
        let transaction = TronTransaction::new(sender, &calls, &Call { fee_limit, ..self.call.clone() });
        let summary = self.terms.describe(&hex::encode(self.swap_id));
        if !self.swap_id_recomputed {
            warnings.warn(Code::SwapIdUnchecked);
        }
        if let (Role::Redeem, Some(permission)) = (self.terms.role, &calls.permission) {
            let detail = format!(
                "under {} of {sender}: if the chain has other keys, weights or operations of it, nodes refuse the redemption after they have \
                 seen the secret; compare them with `/wallet/getaccount` before you broadcast it",
                permission::name(permission.id.into())
            );
            warnings.warn_in_full(Code::SignatureUnverified, &detail);
        }
        let unsigned = Unsigned::new(sender.bytes(), [(self.terms.role, transaction)], None).with_signers(calls.signers());
        Ok(UnsignedOrder::from_recovery(self.terms.recovered(summary, unsigned, warnings), Tron(())))
    }

    /// Returns what the call may cost with this fee limit, in sun, and what it pays.
    #[must_use]
    pub fn expense(&self, fee_limit: U256) -> Expense {
        Expense { role: self.terms.role, cost: fee_limit, pays: self.pays_coin.then_some(self.terms.amount), unit: ("sun", 6) }
    }
}

/// Returns the recorded swap id of a Tron leg, and whether the EVM formula gives the same one: see [`SwapRecovery::swap_id_recomputed`].
///
/// # Errors
///
/// [`Code::RecordSwapId`] if the id is not 64 hex digits, or the errors of [`RecordedLeg::new`].
pub fn swap_id(record: &OrderRecord, leg: Leg, registry: &Registry) -> Result<([u8; 32], bool), Refusal> {
    recompute(&RecordedLeg::new(record, leg, registry, Family::Tron)?)
}

/// Returns the call that redeems a leg with the secret.
///
/// # Errors
///
/// [`Code::SecretWrong`] if the secret does not hash to the record's secret hash, or the errors of [`fn@swap_id`].
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
/// The errors of [`fn@swap_id`].
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
    let terms = RecoveryTerms::of_leg(record, leg, role);
    let (chain_id, max_fee_limit, pays_coin) = (chain_id(leg)?, Policy::default().tron.fee_limit, leg.asset.token.is_none());
    let swap = SwapRecovery { terms, call, swap_id, swap_id_recomputed, to };
    Ok(Recovery { swap, chain_id, max_fee_limit, pays_coin })
}
