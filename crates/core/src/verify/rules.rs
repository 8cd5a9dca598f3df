//! Rules on the terms that every family's payload states. Each rule compares a term with the request, the registry or the policy
//! (`docs/spec/batch.md#terms`).

use std::sync::Arc;

use countersign_chains::{Account, Span};
use ruint::aliases::U256;

use super::OrderContext;
use crate::json::At;
use crate::report::{Code, Refusal, TypedValue, Warnings};
use crate::trust::{ApprovalPolicy, Solver};
use crate::wire::SecretHash;

/// Where the request names the source asset: the location of a refusal for something that the registry lacks.
const ASSET: &str = "/source/asset";

/// Creates a refusal at a location that only the family knows: a byte range of a payload, or a member.
pub type RefuseAt<'p> = &'p dyn Fn(Code) -> Refusal;

impl<'d> OrderContext<'d> {
    /// Returns the pinned HTLC of the source asset, converted to the family's own type by `of`.
    ///
    /// # Errors
    ///
    /// [`Code::UnknownAsset`] if none is pinned.
    pub fn pinned_htlc<T>(&self, of: impl FnOnce(&Account) -> Option<T>) -> Result<T, Refusal> {
        self.source.htlc.as_ref().and_then(of).ok_or_else(|| {
            At::REQUEST
                .refuse_below(Code::UnknownAsset, ASSET)
                .with_reason("no HTLC is pinned for the asset")
                .with_actual(&self.source.record.id)
        })
    }

    /// Returns the pinned token of the source asset, converted to the family's own type by `of`; `None` for the chain's own coin.
    ///
    /// # Errors
    ///
    /// [`Code::Internal`] if the token is not an account of the family.
    pub fn pinned_token<T>(&self, of: impl FnOnce(&Account) -> Option<T>) -> Result<Option<T>, Refusal> {
        let Some(token) = &self.source.token else { return Ok(None) };
        token.account.as_ref().and_then(of).map(Some).ok_or_else(|| At::REQUEST.refuse_below(Code::Internal, ASSET))
    }

    /// Returns the source owner, converted to the family's own type by `of`.
    ///
    /// # Errors
    ///
    /// [`Code::Internal`] if there is no owner, which is possible only on Bitcoin-like chains.
    pub fn owner_as<T>(&self, of: impl FnOnce(&Account) -> Option<T>) -> Result<T, Refusal> {
        self.owner.as_ref().and_then(of).ok_or_else(|| At::REQUEST.refuse_below(Code::Internal, "/source/owner"))
    }

    /// Requires that an approval covers the amount, and returns how much will be approved: what was proposed, unless the policy
    /// rewrites it to exactly the amount.
    ///
    /// # Errors
    ///
    /// [`Code::ApprovalBelowAmount`] or [`Code::ApprovalNotExact`].
    pub fn check_approval(&self, proposed: U256, warnings: &mut Warnings, refuse: RefuseAt<'_>) -> Result<U256, Refusal> {
        let amount = self.request.source.amount;
        if proposed < amount {
            return Err(refuse(Code::ApprovalBelowAmount).with_expected(TypedValue::AtLeast(amount)).with_actual(proposed));
        }
        if proposed > amount || proposed == U256::MAX {
            match self.policy.approvals {
                ApprovalPolicy::Exact => return Ok(amount),
                ApprovalPolicy::RefuseInexact => return Err(refuse(Code::ApprovalNotExact).with_expected(amount).with_actual(proposed)),
                ApprovalPolicy::AsProposed => warnings.warn_about_approval(proposed, amount),
            }
        }
        Ok(proposed)
    }

    /// Requires that the amount, in base units, is the requested one.
    ///
    /// # Errors
    ///
    /// [`Code::AmountMismatch`].
    pub fn check_amount(&self, amount: U256, refuse: RefuseAt<'_>) -> Result<(), Refusal> {
        let wanted = self.request.source.amount;
        if amount == wanted { Ok(()) } else { Err(refuse(Code::AmountMismatch).with_expected(wanted).with_actual(amount)) }
    }

    /// Requires that the initiator, who gets refunds, is the owner.
    ///
    /// # Errors
    ///
    /// [`Code::InitiatorMismatch`].
    pub fn check_initiator(&self, initiator: &Account, refuse: RefuseAt<'_>) -> Result<(), Refusal> {
        match &self.owner {
            Some(owner) if owner == initiator => Ok(()),
            Some(owner) => Err(refuse(Code::InitiatorMismatch).with_expected(owner).with_actual(initiator)),
            None => Err(refuse(Code::InitiatorMismatch).with_actual(initiator)),
        }
    }

    /// Requires that the redeemer is a pinned solver of the source chain. If the registry pins no solver at all, this is the warning
    /// [`Code::UnpinnedSolver`].
    ///
    /// # Errors
    ///
    /// [`Code::RedeemerInvalid`] for an account that no solver can have: zero, the owner, the delegate, the HTLC or the token;
    /// [`Code::UnknownRedeemer`] for any other account that is not pinned.
    pub fn check_redeemer(&self, redeemer: &Account, warnings: &mut Warnings, refuse: RefuseAt<'_>) -> Result<(), Refusal> {
        let token = self.source.token.as_ref().and_then(|token| token.account.as_ref());
        let what = [
            (redeemer.is_zero(), "zero"),
            (self.owner.as_ref() == Some(redeemer), "the owner"),
            (self.delegate.as_ref() == Some(redeemer), "the delegate"),
            (self.source.htlc.as_ref() == Some(redeemer), "the HTLC itself"),
            (token == Some(redeemer), "the token"),
        ];
        if let Some((_, what)) = what.iter().find(|(is, _)| *is) {
            return Err(refuse(Code::RedeemerInvalid).with_reason(format!("the redeemer is {what}")).with_actual(redeemer));
        }
        match self.solver(redeemer) {
            Some(_) => Ok(()),
            None if self.registry.pins_solvers() => Err(refuse(Code::UnknownRedeemer).with_actual(redeemer)),
            None => {
                warnings.warn(Code::UnpinnedSolver);
                Ok(())
            }
        }
    }

    /// Returns the pinned solver of the source chain with this account.
    #[must_use]
    pub fn solver(&self, redeemer: &Account) -> Option<&'d Arc<Solver>> {
        self.registry.solver(self.source.chain_name(), redeemer)
    }

    /// Requires that the key with which the source of a Bitcoin-like chain is refunded can be the owner's: it is neither the HTLC's
    /// internal key, nor a pinned solver's, nor one whose secret key everybody knows.
    ///
    /// # Errors
    ///
    /// [`Code::InitiatorMismatch`].
    pub fn check_refund_key(&self, key: &Account, refuse: RefuseAt<'_>) -> Result<(), Refusal> {
        match self.registry.key_fault(self.source, key) {
            Some(fault) => Err(refuse(Code::InitiatorMismatch).with_reason(format!("the refund key {fault}")).with_actual(key)),
            None => Ok(()),
        }
    }

    /// Requires that the timelock is neither zero nor longer than the policy allows, in units and in nominal time. Returns it in the
    /// chain's own unit.
    ///
    /// # Errors
    ///
    /// [`Code::TimelockZero`] or [`Code::TimelockTooLong`].
    pub fn check_timelock(&self, timelock: U256, warnings: &mut Warnings, refuse: RefuseAt<'_>) -> Result<u64, Refusal> {
        let (family, chain) = (self.family(), &self.source.chain);
        let max = self.policy.timelock(family);
        let units = match u64::try_from(timelock) {
            Ok(0) => return Err(refuse(Code::TimelockZero).with_actual(0_u64)),
            Ok(units) if units <= max => units,
            _ => {
                let expected = format!("at most {max} {}", family.timelock_unit());
                return Err(refuse(Code::TimelockTooLong).with_expected(expected).with_actual(timelock));
            }
        };
        if let Some(max) = self.policy.max_timelock_of(chain.name())
            && Span::Units(units).millis(chain.pace.slowest()) > max.as_millis()
        {
            let expected = format!("at most {} s at nominal block times", max.as_secs());
            return Err(refuse(Code::TimelockTooLong).with_expected(expected).with_actual(chain.timelock(units)));
        }
        if let Some(listed) = chain.record.source_timelock.filter(|listed| units > *listed) {
            warnings.warn_about(Code::TimelockAboveListed, format!("{units} of {listed} {}", family.timelock_unit()));
        }
        Ok(units)
    }

    /// Requires that the secret hash is the requested one, and not that of a secret which anybody can guess.
    ///
    /// # Errors
    ///
    /// [`Code::SecretHashMismatch`] or [`Code::SecretHashTrivial`].
    pub fn check_secret_hash(&self, hash: SecretHash, refuse: RefuseAt<'_>) -> Result<(), Refusal> {
        if let Some(wanted) = self.request.secret_hash
            && wanted != hash
        {
            return Err(refuse(Code::SecretHashMismatch).with_expected(wanted).with_actual(hash));
        }
        if hash.is_trivial() {
            return Err(refuse(Code::SecretHashTrivial).with_actual(hash));
        }
        Ok(())
    }

    /// Requires that the request names no source delegate: for families without delegates.
    ///
    /// # Errors
    ///
    /// [`Code::DelegateNotSupported`].
    pub fn check_no_delegate(&self) -> Result<(), Refusal> {
        match &self.request.source.delegate {
            Some(delegate) => Err(At::REQUEST.refuse_below(Code::DelegateNotSupported, "/source/delegate").with_actual(delegate)),
            None => Ok(()),
        }
    }
}
