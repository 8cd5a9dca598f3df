//! What the driver asks of its caller: the owner's signatures, and connections to chains.

use std::fmt;
use std::sync::Arc;

use countersign::{Broadcast, HtlcState, HtlcTerms, Leg, OrderRecord, Refusal, Registry, SeenAt, Signed, Verified};

use super::kept::{KeptTransaction, Purpose};
use crate::secret::Secret;
use crate::transport::{MaybeSend, MaybeSync};

/// Signs for the owner: with a local key, a hardware wallet, or by asking a person.
///
/// The owner need not be there to sign now: the driver then says what it waits for.
pub trait Owner: MaybeSend + MaybeSync {
    /// Signs the funding of an order. The order was verified a moment ago, against the time too.
    fn fund(&self, order: &Verified) -> impl Future<Output = Result<FundingReply, OwnerError>> + MaybeSend;

    /// Signs the transaction that redeems the destination or refunds the source; `None` if the owner is not there to sign.
    fn settle(&self, task: &Settlement<'_>) -> impl Future<Output = Result<Option<Vec<KeptTransaction>>, OwnerError>> + MaybeSend;

    /// Returns whether the owner can redeem on a chain: has a key and can pay the fees there. If not, only the service's
    /// relayer can redeem.
    fn can_redeem(&self, chain: &str) -> bool;
}

/// What the owner says to a funding.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "the three things that an owner can say")]
pub enum FundingReply {
    /// Signed: the driver sends it.
    Signed(SignedFunding),
    /// The owner pays with another wallet: from now on the payment may be on chain.
    Elsewhere,
    /// The owner is not there to sign.
    NotNow,
}

/// A signed funding.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "its caller makes it")]
pub struct SignedFunding {
    /// The transactions that are broadcast, in order.
    pub transactions: Vec<KeptTransaction>,
    /// What the service is sent instead of a funding transaction, once `transactions` are on chain.
    pub gasless: Option<String>,
}

impl SignedFunding {
    /// Takes what was signed for an order. Where there is a gasless message, only the approvals before it are broadcast.
    #[must_use]
    pub fn from_signed(signed: &Signed, chain: &str) -> Self {
        let gasless = signed.gasless().map(|submission| submission.signature);
        let mut transactions = KeptTransaction::all(signed, chain);
        if gasless.is_some() {
            transactions.retain(|transaction| transaction.role.starts_with("approval"));
        }
        Self { transactions, gasless }
    }
}

impl KeptTransaction {
    /// Takes every transaction that was signed, in the order in which they are broadcast.
    #[must_use]
    pub fn all(signed: &Signed, chain: &str) -> Vec<Self> {
        let kept = |broadcast: Broadcast| Self {
            chain: chain.to_owned(),
            role: broadcast.role.to_string(),
            id: broadcast.id,
            payload: broadcast.payload,
            inputs: broadcast.spends,
        };
        signed.broadcasts().into_iter().map(kept).collect()
    }
}

/// What has to be signed to end a swap.
#[derive(Debug)]
#[non_exhaustive]
pub struct Settlement<'s> {
    /// [`Purpose::Redemption`] or [`Purpose::Refund`].
    pub purpose: Purpose,
    /// Which side: the destination is redeemed, the source refunded.
    pub leg: Leg,
    /// The record, every term of which was verified.
    pub record: &'s OrderRecord,
    /// What the wallet has pinned.
    pub registry: &'s Registry,
    /// The secret, for a redemption.
    pub secret: Option<&'s Secret>,
    /// What was sent before and is still not on chain, empty the first time. What is signed now must pay more and exclude it: the
    /// same nonce, the same inputs. A chain on which that is not possible has no replacement: sign nothing.
    pub replaces: &'s [KeptTransaction],
}

/// Why the owner's side did not sign.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OwnerError {
    /// The wallet refuses.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// Something that the owner's side needs did not answer: it is asked again.
    #[error("{0}")]
    Unavailable(String),
    /// The signer failed, or the owner said no.
    #[error("{message}")]
    Failed {
        /// A stable name, of the owner's side.
        code: &'static str,
        /// Why, for people.
        message: String,
    },
}

/// Nobody is there to sign: for watching orders that were signed before.
#[derive(Debug, Clone, Copy, Default)]
#[expect(clippy::exhaustive_structs, reason = "it has no content")]
pub struct NoOwner;

impl Owner for NoOwner {
    async fn fund(&self, _: &Verified) -> Result<FundingReply, OwnerError> {
        Ok(FundingReply::NotNow)
    }

    async fn settle(&self, _: &Settlement<'_>) -> Result<Option<Vec<KeptTransaction>>, OwnerError> {
        Ok(None)
    }

    fn can_redeem(&self, _: &str) -> bool {
        false
    }
}

/// Reads and writes chains: `countersign-node`, or the wallet's own connections.
///
/// What it returns decides about money: it must come from endpoints that the user chose, never from the service.
pub trait Chains: MaybeSend + MaybeSync {
    /// Reads the state of one HTLC, at the chain's head.
    fn htlc(&self, terms: &HtlcTerms) -> impl Future<Output = Result<(HtlcState, SeenAt), ChainError>> + MaybeSend;

    /// Broadcasts a signed transaction. One that is known already counts as accepted.
    fn broadcast(&self, transaction: &KeptTransaction) -> impl Future<Output = Result<(), ChainError>> + MaybeSend;

    /// Returns whether there is a connection to a chain.
    fn has(&self, chain: &str) -> bool;
}

/// Why a chain did not answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ChainError {
    /// The caller is not connected to this chain.
    #[error("not connected to {0}")]
    NotConnected(String),
    /// The chain's endpoints did not answer, or did not agree.
    #[error("{0}")]
    Unavailable(String),
    /// The chain refuses the transaction.
    #[error("the chain refuses the transaction: {0}")]
    Rejected(String),
}

/// No connection to any chain.
#[derive(Debug, Clone, Copy, Default)]
#[expect(clippy::exhaustive_structs, reason = "it has no content")]
pub struct NoChains;

impl Chains for NoChains {
    async fn htlc(&self, terms: &HtlcTerms) -> Result<(HtlcState, SeenAt), ChainError> {
        Err(ChainError::NotConnected(terms.chain.clone()))
    }

    async fn broadcast(&self, transaction: &KeptTransaction) -> Result<(), ChainError> {
        Err(ChainError::NotConnected(transaction.chain.clone()))
    }

    fn has(&self, _: &str) -> bool {
        false
    }
}

/// States that the service's word about the destination chain is enough to release the secret.
///
/// **It is not evidence.** A service that says "funded" when nothing is on chain gets the secret, redeems the source with it
/// and pays nothing. Use this only if you cannot connect to the destination chain, and tell the owner about the risk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "it has no content: naming it is the statement")]
pub struct TrustTheService;

impl fmt::Display for TrustTheService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the service's word releases the secret")
    }
}

/// Lets whatever points to the caller's side be it.
macro_rules! forward {
    ($([$($lifetime:lifetime)?] $pointer:ty;)*) => {
        $(
            impl<$($lifetime,)? P: Owner> Owner for $pointer where $pointer: MaybeSend + MaybeSync {
                fn fund(&self, order: &Verified) -> impl Future<Output = Result<FundingReply, OwnerError>> + MaybeSend {
                    P::fund(self, order)
                }

                fn settle(
                    &self,
                    task: &Settlement<'_>,
                ) -> impl Future<Output = Result<Option<Vec<KeptTransaction>>, OwnerError>> + MaybeSend {
                    P::settle(self, task)
                }

                fn can_redeem(&self, chain: &str) -> bool {
                    P::can_redeem(self, chain)
                }
            }

            impl<$($lifetime,)? P: Chains> Chains for $pointer where $pointer: MaybeSend + MaybeSync {
                fn htlc(&self, terms: &HtlcTerms) -> impl Future<Output = Result<(HtlcState, SeenAt), ChainError>> + MaybeSend {
                    P::htlc(self, terms)
                }

                fn broadcast(&self, transaction: &KeptTransaction) -> impl Future<Output = Result<(), ChainError>> + MaybeSend {
                    P::broadcast(self, transaction)
                }

                fn has(&self, chain: &str) -> bool {
                    P::has(self, chain)
                }
            }
        )*
    };
}

forward! { ['p] &'p P; [] Arc<P>; }
