//! Rules on the terms that every family's payload states: each compares with the request, the registry or the policy.

use std::sync::Arc;

use countersign_chains::{Account, address};
use ruint::aliases::U256;

use crate::code::Code;
use crate::order::Order;
use crate::policy::Approvals;
use crate::refusal::Refusal;
use crate::registry::Solver;
use crate::secret_hash::SecretHash;
use crate::summary::Warnings;

/// Where the request names the source asset, for what the registry lacks.
const ASSET: &str = "/request/source/asset";

/// A refusal at the place that a family knows: a payload's byte range, or a member.
pub type Place<'p> = &'p dyn Fn(Code) -> Refusal;

impl<'d> Order<'d> {
    /// The pinned HTLC of the source asset, in the family's own type.
    ///
    /// # Errors
    ///
    /// [`Code::UnknownAsset`] if none is pinned.
    pub fn pinned_htlc<T>(&self, of: impl FnOnce(&Account) -> Option<T>) -> Result<T, Refusal> {
        self.source
            .htlc
            .as_ref()
            .and_then(of)
            .ok_or_else(|| Refusal::new(Code::UnknownAsset, ASSET).because("no HTLC is pinned for the asset").got(&self.source.record.id))
    }

    /// The pinned token of the source asset, in the family's own type; `None` for the chain's own coin.
    ///
    /// # Errors
    ///
    /// [`Code::Internal`] if the token is no account of the family.
    pub fn pinned_token<T>(&self, of: impl FnOnce(&Account) -> Option<T>) -> Result<Option<T>, Refusal> {
        let Some(token) = &self.source.token else { return Ok(None) };
        token.account.as_ref().and_then(of).map(Some).ok_or_else(|| Refusal::new(Code::Internal, ASSET))
    }

    /// The owner, in the family's own type.
    ///
    /// # Errors
    ///
    /// [`Code::Internal`] if there is none: only Bitcoin-like chains may go without.
    pub fn owner_as<T>(&self, of: impl FnOnce(&Account) -> Option<T>) -> Result<T, Refusal> {
        self.owner.as_ref().and_then(of).ok_or_else(|| Refusal::new(Code::Internal, "/request/source/owner"))
    }

    /// An approval covers the amount; answers how much will be approved, which is what was proposed unless the policy
    /// rewrites it to exactly the amount.
    ///
    /// # Errors
    ///
    /// [`Code::ApprovalBelowAmount`] or [`Code::ApprovalNotExact`].
    pub fn check_approval(&self, proposed: U256, warnings: &mut Warnings, refuse: Place<'_>) -> Result<U256, Refusal> {
        let amount = self.request.source.amount;
        if proposed < amount {
            return Err(refuse(Code::ApprovalBelowAmount).expected(format!("at least {amount}")).got(proposed));
        }
        if proposed > amount || proposed == U256::MAX {
            match self.policy.approvals {
                Approvals::Exact => return Ok(amount),
                Approvals::RefuseInexact => return Err(refuse(Code::ApprovalNotExact).expected(amount).got(proposed)),
                Approvals::AsProposed if proposed == U256::MAX => warnings.warn(Code::UnlimitedApproval),
                Approvals::AsProposed => warnings.about(Code::ApprovalAboveAmount, format!("{proposed} base units for {amount}")),
            }
        }
        Ok(proposed)
    }

    /// The amount is the requested one.
    ///
    /// # Errors
    ///
    /// [`Code::AmountMismatch`].
    pub fn check_amount(&self, amount: U256, refuse: Place<'_>) -> Result<(), Refusal> {
        let wanted = self.request.source.amount;
        if amount == wanted { Ok(()) } else { Err(refuse(Code::AmountMismatch).expected(wanted).got(amount)) }
    }

    /// The initiator, who gets refunds, is the owner.
    ///
    /// # Errors
    ///
    /// [`Code::InitiatorMismatch`].
    pub fn check_initiator(&self, initiator: &Account, refuse: Place<'_>) -> Result<(), Refusal> {
        match &self.owner {
            Some(owner) if owner == initiator => Ok(()),
            Some(owner) => Err(refuse(Code::InitiatorMismatch).expected(address::shown(owner)).got(address::shown(initiator))),
            None => Err(refuse(Code::InitiatorMismatch).got(address::shown(initiator))),
        }
    }

    /// The redeemer is a pinned solver of the source chain, and nobody who cannot be one.
    ///
    /// # Errors
    ///
    /// [`Code::RedeemerInvalid`] or [`Code::UnknownRedeemer`].
    pub fn check_redeemer(&self, redeemer: &Account, warnings: &mut Warnings, refuse: Place<'_>) -> Result<(), Refusal> {
        let token = self.source.token.as_ref().and_then(|token| token.account.as_ref());
        let what = [
            (redeemer.is_zero(), "zero"),
            (self.owner.as_ref() == Some(redeemer), "the owner"),
            (self.delegate.as_ref() == Some(redeemer), "the delegate"),
            (self.source.htlc.as_ref() == Some(redeemer), "the HTLC itself"),
            (token == Some(redeemer), "the token"),
        ];
        if let Some((_, what)) = what.iter().find(|(is, _)| *is) {
            return Err(refuse(Code::RedeemerInvalid).because(format!("the redeemer is {what}")).got(address::shown(redeemer)));
        }
        match self.solver(redeemer) {
            Some(_) => Ok(()),
            None if self.registry.pins_solvers() => Err(refuse(Code::UnknownRedeemer).got(address::shown(redeemer))),
            None => {
                warnings.warn(Code::UnpinnedSolver);
                Ok(())
            }
        }
    }

    /// The pinned solver of the source chain with this account.
    #[must_use]
    pub fn solver(&self, redeemer: &Account) -> Option<&'d Arc<Solver>> {
        self.registry.solver(&self.source.chain.record.chain, redeemer)
    }

    /// The timelock is neither zero nor longer than the policy allows.
    ///
    /// # Errors
    ///
    /// [`Code::TimelockZero`] or [`Code::TimelockTooLong`].
    pub fn check_timelock(&self, timelock: U256, refuse: Place<'_>) -> Result<u64, Refusal> {
        let family = self.family();
        let longest = self.policy.timelock(family);
        match u64::try_from(timelock) {
            Ok(0) => Err(refuse(Code::TimelockZero).got(0)),
            Ok(timelock) if timelock <= longest => Ok(timelock),
            _ => Err(refuse(Code::TimelockTooLong).expected(format!("at most {longest} {}", family.timelock_unit())).got(timelock)),
        }
    }

    /// The secret hash is the requested one, and not one whose secret anybody knows.
    ///
    /// # Errors
    ///
    /// [`Code::SecretHashMismatch`] or [`Code::SecretHashTrivial`].
    pub fn check_secret_hash(&self, hash: SecretHash, refuse: Place<'_>) -> Result<(), Refusal> {
        if let Some(wanted) = self.request.secret_hash
            && wanted != hash
        {
            return Err(refuse(Code::SecretHashMismatch).expected(wanted).got(hash));
        }
        if hash.is_trivial() {
            return Err(refuse(Code::SecretHashTrivial).got(hash));
        }
        Ok(())
    }

    /// A family without delegates refuses one.
    ///
    /// # Errors
    ///
    /// [`Code::DelegateNotSupported`].
    pub fn check_no_delegate(&self) -> Result<(), Refusal> {
        match &self.request.source.delegate {
            Some(delegate) => Err(Refusal::new(Code::DelegateNotSupported, "/request/source/delegate").got(delegate)),
            None => Ok(()),
        }
    }
}
