//! What every recovery states, whatever its chain.

use std::fmt;

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

    /// Describes the payout of a swap.
    #[doc(hidden)]
    #[must_use]
    pub fn describe(&self, swap_id: &str) -> Summary {
        let mut summary = Summary::default();
        let text = format!("{} of swap {swap_id} pays {} base units to {}", self.role, self.amount, self.payee);
        summary.add_values(Topic::Payout, text, [self.payee.clone().into(), self.amount.into()]);
        summary
    }

    /// Adds the payloads of the recovery.
    #[doc(hidden)]
    pub fn recovered<F: ChainFamily>(&self, summary: Summary, unsigned: F::Unsigned, warnings: Warnings) -> Recovered<F> {
        Recovered { order_id: Some(self.order_id.clone()), chain: self.chain.clone(), summary, unsigned, warnings }
    }
}

/// A recovery of a swap on an account chain: what the record states, and the call that ends the swap. The `Recovery` of a family
/// dereferences to it.
#[derive(Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "the family crates create it; others read it through its methods")]
pub struct SwapRecovery<Call, Id, Address> {
    /// Order, chain, role, recipient and amount.
    #[doc(hidden)]
    pub terms: RecoveryTerms,
    /// The call to the HTLC. That of a redemption contains the secret.
    #[doc(hidden)]
    pub call: Call,
    /// The id of the swap.
    #[doc(hidden)]
    pub swap_id: Id,
    /// Whether a formula gives this id.
    #[doc(hidden)]
    pub swap_id_recomputed: bool,
    /// The account that receives the funds.
    #[doc(hidden)]
    pub to: Address,
}

impl<Call, Id, Address> fmt::Debug for SwapRecovery<Call, Id, Address> {
    /// Leaves out the call, because the call of a redemption contains the secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SwapRecovery").field("terms", &self.terms).finish_non_exhaustive()
    }
}

impl<Call, Id: Copy, Address: Copy> SwapRecovery<Call, Id, Address> {
    /// Returns the terms of the recovery: order, chain, role, recipient and amount.
    #[must_use]
    pub const fn terms(&self) -> &RecoveryTerms {
        &self.terms
    }

    /// Returns the call to the HTLC.
    #[must_use]
    pub const fn call(&self) -> &Call {
        &self.call
    }

    /// Returns the id of the swap that the call ends.
    #[must_use]
    pub const fn swap_id(&self) -> Id {
        self.swap_id
    }

    /// Returns whether a formula gives the swap id from the record's other fields and what is pinned. If it is false, `swap_id` is the
    /// record's: the formula is not known for the pinned generation, as for the older native contract on EVM chains, or not certain on
    /// this chain, as on Tron and on the main networks of Solana and Sui. The prepared transaction then has the warning
    /// [`Code::SwapIdUnchecked`](crate::Code::SwapIdUnchecked).
    ///
    /// In that case, simulate a refund before sending it, and do not redeem until the chain shows an order with this id: a redemption that
    /// fails still reveals the secret.
    #[must_use]
    pub const fn swap_id_recomputed(&self) -> bool {
        self.swap_id_recomputed
    }

    /// Returns the account that receives the funds, in the chain's own type.
    #[must_use]
    pub const fn to(&self) -> Address {
        self.to
    }
}
