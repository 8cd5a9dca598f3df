//! The course of a swap, according to the transactions that name its account.

use countersign_core::{Code, HtlcState, Refusal, SecretHash};

use crate::address::Address;
use crate::htlc::Initiate;
use crate::read::{ChainTransaction, SwapAccount, SwapLocation, SwapStep};

/// The course of the swap of the terms. The first end after its initiation decides, because anything later at the same account concerns
/// another swap.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct SwapHistory {
    /// Whether the swap of the terms was initiated.
    pub is_initiated: bool,
    /// Whether earlier transactions may be missing, so that the first one that is followed is not the oldest that names the account.
    /// One of them may have ended the swap.
    pub is_incomplete: bool,
    /// How the swap ended, and in which slot.
    end: Option<(HtlcState, u64)>,
    /// A redemption that revealed the secret, but may have ended another swap at the same account.
    shown: Option<HtlcState>,
}

impl SwapHistory {
    /// Returns whether it is known how the swap ended, so that later transactions do not matter.
    #[must_use]
    pub const fn has_ended(&self) -> bool {
        self.end.is_some()
    }

    /// Follows the next transaction, which is newer than those before.
    ///
    /// # Errors
    ///
    /// [`Code::SecretWrong`] if the swap was redeemed with a secret that does not match its hash.
    pub fn follow(&mut self, location: &SwapLocation, transaction: &ChainTransaction) -> Result<(), Refusal> {
        // In the audited generation, the account's address is derived from all terms, so every swap there has the terms.
        let is_bound = location.htlc.is_audited();
        for step in transaction.record.steps(location) {
            let decides = self.end.is_none() && !self.is_incomplete && (self.is_initiated || is_bound);
            let id = Some(transaction.signature.clone());
            let ended = match step {
                SwapStep::Initiated { call, mint } => {
                    // An open account cannot be created again, so the transaction that closed it is missing.
                    self.is_incomplete |= self.is_initiated;
                    self.is_initiated |= is_of_terms(location, &call, mint);
                    continue;
                }
                SwapStep::Refunded => HtlcState::Refunded { transaction: id },
                SwapStep::Redeemed { secret } if SecretHash::of(&secret).0 == location.swap.secret_hash => {
                    HtlcState::Redeemed { secret: Some(secret), transaction: id }
                }
                SwapStep::Redeemed { .. } => {
                    return Err(
                        Refusal::new(Code::SecretWrong, "").with_reason("the swap was redeemed with a secret that does not match its hash")
                    );
                }
            };
            if decides {
                self.end = Some((ended, transaction.slot));
            } else if self.end.is_none() && matches!(ended, HtlcState::Redeemed { .. }) {
                self.shown.get_or_insert(ended);
            }
        }
        Ok(())
    }

    /// Returns how the swap ended and in which slot; `None` if the transactions do not show it. A redemption that may belong to another
    /// swap has no slot, so that it does not count as final. Its secret is public nevertheless.
    #[must_use]
    pub fn ended(self) -> Option<(HtlcState, Option<u64>)> {
        match (self.end, self.shown) {
            (Some((state, slot)), _) => Some((state, Some(slot))),
            (None, shown) => shown.map(|state| (state, None)),
        }
    }
}

impl ChainTransaction {
    /// Returns the timelock and the mint with which this transaction initiated the swap in an account; `None` if it did not.
    #[must_use]
    pub fn initiation(&self, location: &SwapLocation, stored: &SwapAccount) -> Option<(u64, Option<Address>)> {
        self.record.steps(location).into_iter().rev().find_map(|step| match step {
            SwapStep::Initiated { call, mint }
                if (call.amount, call.redeemer, call.secret_hash) == (stored.amount, stored.redeemer, stored.secret_hash)
                    && self.slot.checked_add(call.timelock) == Some(stored.expiry) =>
            {
                Some((call.timelock, mint))
            }
            _ => None,
        })
    }
}

/// Returns whether a call initiated a swap with the recipient, hash and token of the terms, and at least their amount. The timelock is not
/// compared. It has no effect on a swap that has ended, and an open account of the client's native program does not contain it either.
fn is_of_terms(location: &SwapLocation, call: &Initiate, mint: Option<Address>) -> bool {
    let swap = &location.swap;
    (call.redeemer, call.secret_hash, mint) == (swap.redeemer, swap.secret_hash, location.htlc.token.map(|token| token.mint))
        && call.amount >= swap.amount
}
