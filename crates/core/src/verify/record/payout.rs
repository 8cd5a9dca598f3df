//! Where the destination pays out, and who can redeem it.

use countersign_chains::Family;
use ruint::aliases::U256;

use super::{Check, NO_DELEGATE, Parties};
use crate::report::{Code, Refusal, TypedValue, Warnings};
use crate::verify::Leg;
use crate::wire::least_after_slippage;

impl Check<'_, '_> {
    /// Requires that the destination pays the requested owner at least the requested amount, less the allowed slippage.
    pub(super) fn payout(&self, parties: &Parties, warnings: &mut Warnings) -> Result<(), Refusal> {
        let (leg, wanted) = (Leg::Destination, &self.order.request.destination);
        let swap = self.swap(leg);
        let redeemer = self.account(leg, "redeemer", &swap.redeemer)?;
        if redeemer != self.order.payout {
            return Err(self
                .refuse_leg(Code::RecordPaysElsewhere, leg, "redeemer")
                .with_expected(wanted.owner.as_deref().unwrap_or_default())
                .with_actual(&swap.redeemer));
        }
        let actual = swap.delegate.as_deref().unwrap_or_default();
        if let Some(delegate) = &wanted.delegate {
            let requested = self.account(leg, "delegate", delegate)?;
            if actual.is_empty() || self.account(leg, "delegate", actual)? != requested {
                return Err(self.refuse_leg(Code::RecordPaysElsewhere, leg, "delegate").with_expected(delegate).with_actual(actual));
            }
        } else if !actual.is_empty() && self.asset(leg).chain.family() != Family::Bitcoin {
            return Err(self.refuse_leg(Code::RecordPaysElsewhere, leg, "delegate").with_expected(NO_DELEGATE).with_actual(actual));
        }
        // Only on Bitcoin-like chains are the parties keys; on the others the redeemer is the requested owner.
        if self.asset(leg).chain.family() == Family::Bitcoin && parties.initiator == parties.redeemer {
            let member = if swap.delegate.is_some() { "delegate" } else { "redeemer" };
            let refusal =
                self.refuse_leg(Code::RecordPaysElsewhere, leg, member).with_reason("the party that locks the payout could also redeem it");
            return Err(refusal.with_actual(&parties.redeemer));
        }
        self.redeem_key(parties, warnings)?;
        if swap.amount >= wanted.amount {
            return Ok(());
        }
        // However much slippage was allowed, an order must pay something.
        let allowed = least_after_slippage(wanted.amount, self.order.request.slippage.unwrap_or_default()).max(U256::ONE);
        if swap.amount < allowed {
            return Err(self
                .refuse_leg(Code::RecordPaysLess, leg, "amount")
                .with_expected(TypedValue::AtLeast(allowed))
                .with_actual(swap.amount));
        }
        warnings.warn_about(Code::PaysLessWithinSlippage, format!("{} of {} base units", swap.amount, wanted.amount));
        Ok(())
    }

    /// Checks the redeem key of Bitcoin-like chains: this key in the HTLC decides who is paid, not the address beside it. A requested
    /// key was already compared.
    fn redeem_key(&self, parties: &Parties, warnings: &mut Warnings) -> Result<(), Refusal> {
        let (leg, asset) = (Leg::Destination, self.asset(Leg::Destination));
        if asset.chain.family() != Family::Bitcoin {
            return Ok(());
        }
        let key = &parties.redeemer;
        if let Some(fault) = self.order.registry.key_fault(asset, key) {
            let refusal = self.refuse_leg(Code::PayoutInvalid, leg, "delegate").with_reason(format!("the redeem key {fault}"));
            return Err(refusal.with_actual(key));
        }
        if self.order.request.destination.delegate.is_none() {
            let key = self.swap(leg).delegate.as_deref().unwrap_or_default();
            warnings.warn_about(Code::RedeemKeyNotYours, format!("key {key}"));
        }
        Ok(())
    }
}
