//! What an order has from the rescue phrase: its secret, and the owner's keys on Bitcoin-like chains.

use countersign::{CreateOrder, Family, Leg, Registry, wire::RequestedLeg};
use countersign_store::rescue::{DeriveError, Rescue, RescueKey};
use countersign_store::{KeyIndex, Zeroizing};

use crate::driver::OrderState;
use crate::secret::Secret;

/// What a request lacks that can be derived from the rescue phrase.
///
/// An index is used up by what is derived from it, so take one only if [`is_needed`](Self::is_needed).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Missing {
    secret: bool,
    refund_key: bool,
    redeem_key: bool,
}

impl Missing {
    /// Returns what a request lacks: the secret hash, the refund key of a Bitcoin-like source, and the redeem key of a Bitcoin-like
    /// destination. If somebody else holds the secret (`is_secret_elsewhere`), neither a secret nor a redeem key is derived.
    #[must_use]
    pub fn of(request: &CreateOrder, registry: &Registry, is_secret_elsewhere: bool) -> Self {
        let is_bitcoin = |leg: &RequestedLeg| registry.family(leg.asset.chain()).is_ok_and(|family| family == Family::Bitcoin);
        Self {
            secret: request.secret_hash.is_none() && !is_secret_elsewhere,
            refund_key: is_bitcoin(&request.source) && request.source.delegate.is_none(),
            redeem_key: is_bitcoin(&request.destination) && request.destination.delegate.is_none() && !is_secret_elsewhere,
        }
    }

    /// Returns whether anything is derived.
    #[must_use]
    pub const fn is_needed(self) -> bool {
        self.secret || self.refund_key || self.redeem_key
    }

    /// Derives what is missing, adds it to the request, and returns the secret if it was missing. `at` must be durably marked as used
    /// before ([`Store::take_index`](countersign_store::Store::take_index)).
    ///
    /// # Errors
    ///
    /// [`DeriveError`], which practically does not happen.
    pub fn derive(self, request: &mut CreateOrder, rescue: &Rescue, at: KeyIndex) -> Result<Option<Secret>, DeriveError> {
        let branch = rescue.branch(at.branch)?;
        if self.refund_key {
            request.source.delegate = Some(branch.refund_key(at.index)?.public_key());
        }
        if self.redeem_key {
            request.destination.delegate = Some(branch.redeem_key(at.index)?.public_key());
        }
        if !self.secret {
            return Ok(None);
        }
        let secret = Secret::from_bytes(*branch.secret(at.index)?);
        request.secret_hash = Some(secret.hash());
        Ok(Some(secret))
    }
}

impl OrderState {
    /// Returns the index of the rescue phrase from which the secret and the owner's keys are derived; `None` if they are not.
    #[must_use]
    pub fn key_index(&self) -> Option<KeyIndex> {
        self.index.map(|index| KeyIndex { branch: self.branch, index })
    }
}

/// Returns the key that is derived from the rescue phrase for a leg, in hex, if `named` is its public key. The owner may have chosen another
/// key; then the result is `None`.
///
/// # Errors
///
/// [`DeriveError`], which practically does not happen.
pub fn derived_key(rescue: &Rescue, leg: Leg, at: KeyIndex, named: &str) -> Result<Option<Zeroizing<String>>, DeriveError> {
    let branch = rescue.branch(at.branch)?;
    let key: RescueKey = if leg == Leg::Source { branch.refund_key(at.index)? } else { branch.redeem_key(at.index)? };
    Ok(named.eq_ignore_ascii_case(&key.public_key()).then(|| Zeroizing::new(hex::encode(key.expose()))))
}
