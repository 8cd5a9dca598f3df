//! What every recovery states, whatever its chain.

use std::fmt::Display;

use countersign_chains::Account;
use ruint::aliases::U256;

use super::Role;
use crate::family::{ChainFamily, Recovered};
use crate::report::{Summary, Topic, Warnings};
use crate::verify::RecordedLeg;
use crate::wire::OrderRecord;

/// The terms of a recovery, as the order record states them: order, chain, role, recipient and amount.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecoveryTerms {
    /// The order id of the record.
    pub order_id: String,
    /// The chain's name in asset ids, such as `arbitrum`.
    pub chain: String,
    /// Whether it redeems or refunds.
    pub role: Role,
    /// The account that receives the funds. On Bitcoin-like chains this is the x-only key that takes the coins; the payout says where
    /// they go.
    pub payee: Account,
    /// The amount of the leg in base units, before any fee.
    pub amount: U256,
}

impl RecoveryTerms {
    /// Creates the terms from their parts.
    #[doc(hidden)]
    #[must_use]
    pub const fn new(order_id: String, chain: String, role: Role, payee: Account, amount: U256) -> Self {
        Self { order_id, chain, role, payee, amount }
    }

    /// Returns the terms of a leg on an account chain: a redemption pays the redeemer, a refund the initiator.
    #[doc(hidden)]
    #[must_use]
    pub fn of_leg(record: &OrderRecord, leg: &RecordedLeg<'_>, role: Role) -> Self {
        let payee = if role == Role::Redeem { &leg.redeemer } else { &leg.initiator };
        Self::new(record.order_id.clone(), leg.asset.chain_name().to_owned(), role, payee.clone(), leg.swap.amount)
    }

    /// Describes the payout of a swap to an account.
    #[doc(hidden)]
    #[must_use]
    pub fn describe(&self, swap_id: impl Display, to: impl Display) -> Summary {
        let mut summary = Summary::default();
        let text = format!("{} of swap {swap_id} pays {} base units to {to}", self.role, self.amount);
        summary.add_values(Topic::Payout, text, [self.payee.clone().into(), self.amount.into()]);
        summary
    }

    /// Adds the payloads of the recovery.
    #[doc(hidden)]
    pub fn recovered<F: ChainFamily>(&self, summary: Summary, unsigned: F::Unsigned, warnings: Warnings) -> Recovered<F> {
        Recovered { order_id: Some(self.order_id.clone()), chain: self.chain.clone(), summary, unsigned, warnings }
    }
}
