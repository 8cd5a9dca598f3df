//! What the caller supplies besides connections: the owner's signatures.

use std::fmt;
use std::sync::Arc;

use countersign::family::ChainFamily;
use countersign::recover::{self, Recovery};
use countersign::{BroadcastTransaction, Incomplete, IncompleteOrder, Leg, OrderRecord, Refusal, Registry, Role, Signed, Verified};

use super::journal::Purpose;
use crate::secret::Secret;
use countersign_transport::{BoxFuture, MaybeSend, MaybeSync};

/// Signs for the owner: with a local key, a hardware wallet, or by asking a person.
///
/// The owner may be absent. The driver then reports what it is waiting for.
pub trait Owner: MaybeSend + MaybeSync {
    /// Signs the funding of an order, which the driver has just verified, including its deadline. A signer that can send the payment by
    /// itself must not get it here: return [`FundingReply::Outside`] then.
    ///
    /// The owner may take hours to agree. But where the payment is signed again while the first one may still arrive, the driver drops this
    /// future after five minutes, looks at the chains, and asks again.
    fn fund(&self, order: &Verified) -> impl Future<Output = Result<FundingReply, OwnerError>> + MaybeSend;

    /// Gives the funding of an order to a signer that can send it by itself. Called after [`FundingReply::Outside`], once the journal says
    /// that the payment may be on its way.
    ///
    /// Every reply but [`FundingReply::Elsewhere`], and every error, states that the signer has sent nothing. If that is not known, return
    /// [`FundingReply::Elsewhere`]. A reply about another payment is waited for like that of [`fund`](Self::fund), and counts as
    /// [`FundingReply::Elsewhere`] if it takes longer.
    fn hand_out(&self, order: &Verified) -> impl Future<Output = Result<FundingReply, OwnerError>> + MaybeSend {
        let _ = order;
        std::future::ready(Ok(FundingReply::NotNow))
    }

    /// Signs the payment of an order again for a higher fee, with the same coins and the same deposit, so that one of the two at most is
    /// mined: see `Nodes::prepare_raised` of `countersign-node`. `sent` is what was sent and is in no block after a while. Called on
    /// Bitcoin-like chains, before the deadline. `None` means that nothing was signed; what was sent remains the payment then.
    fn raise(
        &self,
        order: &Verified,
        sent: &BroadcastTransaction,
    ) -> impl Future<Output = Result<Option<Vec<BroadcastTransaction>>, OwnerError>> + MaybeSend {
        let _ = (order, sent);
        std::future::ready(Ok(None))
    }

    /// Checks that a redemption of the destination would pay: see `Nodes::preconditions` of `countersign-node`, with
    /// [`Stage::BeforeSecret`](countersign::evidence::Stage::BeforeSecret). Called right before the secret is shown to anybody for the first time,
    /// to a signer or to the service's relayer, and never once it may be out. After an error the secret stays, and the driver tries again.
    ///
    /// `registry` has the pins that the order was signed with. Ask about its assets: the wallet's newest list may lack one, or have another
    /// contract under its id.
    fn check_release(&self, record: &OrderRecord, registry: &Registry) -> impl Future<Output = Result<(), OwnerError>> + MaybeSend {
        let _ = (record, registry);
        std::future::ready(Ok(()))
    }

    /// Signs the transactions that redeem the destination or refund the source. `None` or an empty list means that the owner cannot sign
    /// now.
    fn settle(&self, task: &Settlement<'_>) -> impl Future<Output = Result<Option<Vec<BroadcastTransaction>>, OwnerError>> + MaybeSend;

    /// Returns whether the owner can redeem on a chain, that is, has a key there and can pay the fees. Otherwise only the service's relayer
    /// can redeem.
    fn can_redeem(&self, chain: &str) -> bool;

    /// Returns whether the keys for a chain are in this process, so that nobody sees the secret of a redemption while it is signed.
    ///
    /// `false` by default: the journal then says that the secret may be out before [`settle`](Self::settle) gets it.
    fn signs_here(&self, chain: &str) -> bool {
        let _ = chain;
        false
    }
}

/// The owner's reply to the request to sign a funding.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "the owner signs, pays elsewhere or does neither")]
pub enum FundingReply {
    /// The funding is signed. The driver sends it.
    Signed(SignedFunding),
    /// The owner agrees, and a signer that can send the payment by itself has to be asked. The driver writes down that the payment may be
    /// on its way, and calls [`Owner::hand_out`].
    Outside,
    /// The owner pays with another wallet. From now on the payment may be on chain.
    Elsewhere,
    /// The owner cannot sign now.
    NotNow,
}

/// A signed funding.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "its caller constructs it")]
pub struct SignedFunding {
    /// The transactions to broadcast, in order.
    pub transactions: Vec<BroadcastTransaction>,
    /// The gasless submission, which the service gets after `transactions` were accepted; `None` if a transaction funds the order.
    pub gasless: Option<String>,
}

impl SignedFunding {
    /// Converts a signed order. With a gasless message, only the approvals are broadcast.
    #[must_use]
    pub fn from_signed(signed: &Signed) -> Self {
        let gasless = signed.gasless().map(|submission| submission.signature);
        let is_sent = |role: Role| gasless.is_none() || role.is_approval();
        let transactions = signed.broadcasts().into_iter().filter(|transaction| is_sent(transaction.role)).collect();
        Self { transactions, gasless }
    }
}

/// The request to sign a redemption or a refund.
#[derive(Debug)]
#[non_exhaustive]
pub struct Settlement<'s> {
    /// [`Purpose::Redemption`] or [`Purpose::Refund`].
    pub purpose: Purpose,
    /// The leg: the destination for a redemption, the source for a refund.
    pub leg: Leg,
    /// The record, every term of which was verified.
    pub record: &'s OrderRecord,
    /// The wallet's pins at the time of signing.
    pub registry: &'s Registry,
    /// The secret for a redemption; `None` for a refund, or if the secret is not known.
    pub secret: Option<&'s Secret>,
    /// The transactions that were sent before and are still not on chain; empty the first time, and always for a redemption that is not
    /// urgent. A replacement should pay a higher fee and exclude them, by the same nonce or the same inputs. Where that is not possible, two
    /// do no harm: an HTLC ends once.
    pub replaces: &'s [BroadcastTransaction],
    /// Whether others may know the secret of a redemption. Then a slow one is better than none.
    pub is_urgent: bool,
}

impl Settlement<'_> {
    /// Builds the redemption or the refund from the record. Prepare and sign it to settle the leg.
    ///
    /// # Errors
    ///
    /// The errors of [`recover::redeem`] and [`recover::refund`].
    pub fn recovery(&self) -> Result<Recovery, Refusal> {
        match self.secret {
            Some(secret) => recover::redeem(self.record, self.leg, secret.expose(), self.registry),
            None => recover::refund(self.record, self.leg, self.registry),
        }
    }
}

/// An error of an [`Owner`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OwnerError {
    /// The wallet refuses to sign.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// Something that the signer needs is unavailable. The driver tries again.
    #[error("{0}")]
    Unavailable(String),
    /// The signer failed, or the owner declined.
    #[error("{message}")]
    Failed {
        /// A code of the implementation.
        code: OwnerCode,
        /// Why, for display.
        message: String,
    },
}

/// The code of an [`Owner`]'s own failure, such as `not_confirmed`. The driver passes it on and never compares it.
///
/// ```
/// use countersign_client::driver::{OwnerCode, OwnerError};
///
/// const DECLINED: OwnerCode = OwnerCode::new("declined");
/// let error =
///     OwnerError::Failed { code: DECLINED, message: "the owner declined".to_owned() };
/// assert!(matches!(error, OwnerError::Failed { code: DECLINED, .. }));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct OwnerCode(&'static str);

impl OwnerCode {
    /// Creates a code from its stable name, in snake case.
    #[must_use]
    pub const fn new(name: &'static str) -> Self {
        Self(name)
    }

    /// Returns the stable name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.0
    }
}

impl fmt::Display for OwnerCode {
    /// Writes the stable name.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

/// An order that still lacks signatures: [`Code::SignatureMissing`](countersign::Code::SignatureMissing).
impl From<Incomplete> for OwnerError {
    fn from(incomplete: Incomplete) -> Self {
        Self::Refused(incomplete.into())
    }
}

/// An order that still lacks signatures: [`Code::SignatureMissing`](countersign::Code::SignatureMissing).
impl<F: ChainFamily> From<IncompleteOrder<F>> for OwnerError {
    fn from(incomplete: IncompleteOrder<F>) -> Self {
        Self::Refused(incomplete.into())
    }
}

/// An owner who never signs, to follow orders that were signed before.
#[derive(Debug, Clone, Copy, Default)]
#[expect(clippy::exhaustive_structs, reason = "it has no content")]
pub struct NoOwner;

impl Owner for NoOwner {
    async fn fund(&self, _: &Verified) -> Result<FundingReply, OwnerError> {
        Ok(FundingReply::NotNow)
    }

    async fn settle(&self, _: &Settlement<'_>) -> Result<Option<Vec<BroadcastTransaction>>, OwnerError> {
        Ok(None)
    }

    fn can_redeem(&self, _: &str) -> bool {
        false
    }
}

/// The explicit choice to release the secret on the service's word about the destination chain.
///
/// **The service's word is not evidence.** A service that says "funded" when nothing is on chain gets the secret, redeems the source with
/// it and pays nothing. Use this only if you cannot connect to the destination chain, and tell the owner about the risk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "it has no content: naming it is the statement")]
pub struct TrustTheService;

impl fmt::Display for TrustTheService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the service's word releases the secret")
    }
}

/// Implements [`Owner`] for pointers to an implementation.
macro_rules! forward {
    ($([$($lifetime:lifetime)?] $pointer:ty;)*) => {
        $(
            impl<$($lifetime,)? P: Owner> Owner for $pointer where $pointer: MaybeSend + MaybeSync {
                fn fund(&self, order: &Verified) -> impl Future<Output = Result<FundingReply, OwnerError>> + MaybeSend {
                    P::fund(self, order)
                }

                fn hand_out(&self, order: &Verified) -> impl Future<Output = Result<FundingReply, OwnerError>> + MaybeSend {
                    P::hand_out(self, order)
                }

                fn raise(
                    &self,
                    order: &Verified,
                    sent: &BroadcastTransaction,
                ) -> impl Future<Output = Result<Option<Vec<BroadcastTransaction>>, OwnerError>> + MaybeSend {
                    P::raise(self, order, sent)
                }

                fn check_release(
                    &self,
                    record: &OrderRecord,
                    registry: &Registry,
                ) -> impl Future<Output = Result<(), OwnerError>> + MaybeSend {
                    P::check_release(self, record, registry)
                }

                fn settle(
                    &self,
                    task: &Settlement<'_>,
                ) -> impl Future<Output = Result<Option<Vec<BroadcastTransaction>>, OwnerError>> + MaybeSend {
                    P::settle(self, task)
                }

                fn can_redeem(&self, chain: &str) -> bool {
                    P::can_redeem(self, chain)
                }

                fn signs_here(&self, chain: &str) -> bool {
                    P::signs_here(self, chain)
                }
            }
        )*
    };
}

forward! { ['p] &'p P; [] Box<P>; [] Arc<P>; }

/// The object-safe form of an owner.
trait Erased: MaybeSend + MaybeSync {
    fn fund<'f>(&'f self, order: &'f Verified) -> BoxFuture<'f, Result<FundingReply, OwnerError>>;
    fn hand_out<'f>(&'f self, order: &'f Verified) -> BoxFuture<'f, Result<FundingReply, OwnerError>>;
    fn raise<'f>(
        &'f self,
        order: &'f Verified,
        sent: &'f BroadcastTransaction,
    ) -> BoxFuture<'f, Result<Option<Vec<BroadcastTransaction>>, OwnerError>>;
    fn check_release<'f>(&'f self, record: &'f OrderRecord, registry: &'f Registry) -> BoxFuture<'f, Result<(), OwnerError>>;
    fn settle<'f>(&'f self, task: &'f Settlement<'f>) -> BoxFuture<'f, Result<Option<Vec<BroadcastTransaction>>, OwnerError>>;
    fn can_redeem(&self, chain: &str) -> bool;
    fn signs_here(&self, chain: &str) -> bool;
}

impl<P: Owner> Erased for P {
    fn fund<'f>(&'f self, order: &'f Verified) -> BoxFuture<'f, Result<FundingReply, OwnerError>> {
        Box::pin(P::fund(self, order))
    }

    fn hand_out<'f>(&'f self, order: &'f Verified) -> BoxFuture<'f, Result<FundingReply, OwnerError>> {
        Box::pin(P::hand_out(self, order))
    }

    fn raise<'f>(
        &'f self,
        order: &'f Verified,
        sent: &'f BroadcastTransaction,
    ) -> BoxFuture<'f, Result<Option<Vec<BroadcastTransaction>>, OwnerError>> {
        Box::pin(P::raise(self, order, sent))
    }

    fn check_release<'f>(&'f self, record: &'f OrderRecord, registry: &'f Registry) -> BoxFuture<'f, Result<(), OwnerError>> {
        Box::pin(P::check_release(self, record, registry))
    }

    fn settle<'f>(&'f self, task: &'f Settlement<'f>) -> BoxFuture<'f, Result<Option<Vec<BroadcastTransaction>>, OwnerError>> {
        Box::pin(P::settle(self, task))
    }

    fn can_redeem(&self, chain: &str) -> bool {
        P::can_redeem(self, chain)
    }

    fn signs_here(&self, chain: &str) -> bool {
        P::signs_here(self, chain)
    }
}

/// An owner whose type is erased, for a driver whose type does not name the signer: see [`BoxStore`](super::BoxStore). Cloning is cheap.
///
/// ```
/// use countersign_client::driver::{BoxOwner, NoOwner};
///
/// let owner = BoxOwner::new(NoOwner);
/// assert_eq!(format!("{owner:?}"), "BoxOwner(..)");
/// ```
#[derive(Clone)]
pub struct BoxOwner(Arc<dyn Erased>);

impl BoxOwner {
    /// Erases the type of an owner.
    #[must_use]
    pub fn new(owner: impl Owner + 'static) -> Self {
        Self(Arc::new(owner))
    }
}

impl fmt::Debug for BoxOwner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BoxOwner(..)")
    }
}

impl Owner for BoxOwner {
    async fn fund(&self, order: &Verified) -> Result<FundingReply, OwnerError> {
        self.0.fund(order).await
    }

    async fn hand_out(&self, order: &Verified) -> Result<FundingReply, OwnerError> {
        self.0.hand_out(order).await
    }

    async fn raise(&self, order: &Verified, sent: &BroadcastTransaction) -> Result<Option<Vec<BroadcastTransaction>>, OwnerError> {
        self.0.raise(order, sent).await
    }

    async fn check_release(&self, record: &OrderRecord, registry: &Registry) -> Result<(), OwnerError> {
        self.0.check_release(record, registry).await
    }

    async fn settle(&self, task: &Settlement<'_>) -> Result<Option<Vec<BroadcastTransaction>>, OwnerError> {
        self.0.settle(task).await
    }

    fn can_redeem(&self, chain: &str) -> bool {
        self.0.can_redeem(chain)
    }

    fn signs_here(&self, chain: &str) -> bool {
        self.0.signs_here(chain)
    }
}
