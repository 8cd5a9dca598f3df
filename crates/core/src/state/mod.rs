//! The states of an order. Each is a type that only the step before it can create.
//!
//! | state | meaning | next step |
//! |---|---|---|
//! | [`Proposal`] | the documents as received; nothing is trusted yet | [`verify`] |
//! | [`VerifiedOrder`] | every field equals the request, the registry or the record, or is shown | [`VerifiedOrder::prepare`], as often as fees change |
//! | [`UnsignedOrder`] | payloads for any signer, and the signatures so far | [`UnsignedOrder::sign`], [`UnsignedOrder::attach`], [`UnsignedOrder::finish`] |
//! | [`SignedOrder`] | every signature is there | |
//!
//! ```compile_fail
//! // A verified order cannot be created outside this crate: its field is private.
//! use countersign::VerifiedOrder;
//! use countersign::family::ChainFamily;
//! fn forge<F: ChainFamily>(deposit: F::Deposit) -> VerifiedOrder<F> {
//!     VerifiedOrder { deposit }
//! }
//! ```
//!
//! ```compile_fail
//! // Nor can payloads be signed, changed or not, except as part of an unsigned order: that
//! // takes a seal.
//! use countersign::Warnings;
//! use countersign::family::{ChainFamily, Signable};
//! fn sign<F: ChainFamily>(mut payloads: F::Unsigned, key: &F::Key) {
//!     let _ = payloads.sign(key, &mut Warnings::default());
//! }
//! ```

mod origin;
mod received;
mod recovery;
pub(crate) mod request;
mod signed;
mod signer;
mod terms;

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use countersign_chains::{Family, UnixTime};

use origin::Origin;
pub use recovery::{RecoveryTerms, SwapRecovery};
pub use request::{GaslessSubmission, RequestId, Role, Scheme, SignedTransaction, SigningRequest};
pub use signed::{Incomplete, SignedOrder};
pub use signer::SignerError;

use crate::evidence::VerifiedRecord;
use crate::family::{ChainFamily, Deposit, Recovered, Seal, SignWith, SignWithAsync, Signable, Signing};
use crate::json::At;
use crate::report::{ByteCoverage, Code, NetworkFee, OrderTerms, Overview, Refusal, Summary, Topic, Warnings};
use crate::trust::{Asset, Policy, Registry};
use crate::verify::{Leg, OrderContext, Proposal, RecordCheck, RecordParties, SwapTerms, check_record};

/// Verifies an order of one family. It decodes the payload, rebuilds it from the order's terms, and requires that both are the
/// same. Then it requires that the order record agrees, where there is one. The checks have the order of
/// `docs/spec/batch.md#order-of-checks`.
///
/// # Errors
///
/// A [`Refusal`] at the first member or byte that differs; [`Code::UnsupportedFamily`] if another family signs for the order;
/// [`Code::WarningRefused`] for a warning that the policy refuses.
pub fn verify<F: ChainFamily>(proposal: Proposal<'_>, registry: &Registry, policy: &Policy) -> Result<VerifiedOrder<F>, Refusal> {
    proposal.open(registry, policy, verify_context)
}

/// Verifies an order whose documents are already parsed.
///
/// # Errors
///
/// As [`verify`].
pub fn verify_context<F: ChainFamily>(order: OrderContext<'_>) -> Result<VerifiedOrder<F>, Refusal> {
    let mut warnings = Warnings::default();
    let Judged { deposit, terms, .. } = judge::<F>(&order, RecordCheck::Signing, &mut warnings)?;
    let refused = order.policy.refused_warnings.clone();
    warnings.check_refused(&refused)?;
    Ok(VerifiedOrder(Arc::new(Verified { overview: Overview::new(order, terms), deposit, warnings, refused })))
}

/// Verifies the record of an order that is under way, and returns the record and its terms. There is nothing to sign.
///
/// The rules are those of [`verify`], with three exceptions: the record may state that the order is funded, redeemed or refunded,
/// the deadline is not checked, and no warning is refused. In addition, the record's times and transaction ids must be well formed.
///
/// # Errors
///
/// A [`Refusal`] at the first member or byte that differs; [`Code::MissingField`] without a record; [`Code::SecretWrong`] if a
/// secret in the record does not match its hash; [`Code::TimeMalformed`] or [`Code::TransactionIdMalformed`].
pub fn verify_record<F: ChainFamily>(mut order: OrderContext<'_>) -> Result<VerifiedRecord, Refusal> {
    let mut warnings = Warnings::default();
    let Judged { legs, .. } = judge::<F>(&order, RecordCheck::Tracking, &mut warnings)?;
    let (record, legs) = order.record.take().zip(legs).ok_or_else(|| At::RECORD.refuse_below(Code::MissingField, ""))?;
    Ok(VerifiedRecord { terms: crate::evidence::collect(&order, &record, legs), record: *record, warnings })
}

/// What the documents of an order say, as far as it was judged.
struct Judged<F: ChainFamily> {
    deposit: F::Deposit,
    terms: Option<SwapTerms>,
    /// `None` without a record.
    legs: Option<RecordParties>,
}

fn judge<F: ChainFamily>(order: &OrderContext<'_>, purpose: RecordCheck, warnings: &mut Warnings) -> Result<Judged<F>, Refusal> {
    order.check_family(F::FAMILY)?;
    order.check_request(warnings);
    order.check_payload_keys(F::PAYLOAD_KEYS)?;
    let (deposit, terms) = F::Deposit::verify(order, warnings, Seal::new())?;
    let legs = check_record(order, terms.as_ref(), deposit.taproot(), purpose, warnings)?;
    Ok(Judged { deposit, terms, legs })
}

struct Verified<F: ChainFamily> {
    deposit: F::Deposit,
    overview: Overview,
    warnings: Warnings,
    /// Warnings that the policy refuses, also those that only arise when the order is signed.
    refused: BTreeSet<Code>,
}

/// An order whose every byte is accounted for. Cloning is cheap.
#[must_use = "a verified order must be prepared before it can be signed"]
pub struct VerifiedOrder<F: ChainFamily>(Arc<Verified<F>>);

impl<F: ChainFamily> Clone for VerifiedOrder<F> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<F: ChainFamily> fmt::Debug for VerifiedOrder<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VerifiedOrder").field("order_id", &self.order_id()).field("deposit", self.deposit()).finish_non_exhaustive()
    }
}

impl<F: ChainFamily> VerifiedOrder<F> {
    /// Returns the order's id.
    #[must_use]
    pub fn order_id(&self) -> &str {
        self.0.overview.order_id()
    }

    /// Returns the family that signs.
    #[must_use]
    pub const fn family(&self) -> Family {
        F::FAMILY
    }

    /// Returns the name of the source chain in asset ids, such as `arbitrum`.
    #[must_use]
    pub fn chain(&self) -> &str {
        self.0.overview.chain()
    }

    /// Returns what the order locks, rebuilt from its terms.
    #[must_use]
    pub fn deposit(&self) -> &F::Deposit {
        &self.0.deposit
    }

    /// Returns the terms that the owner agrees to, as values.
    #[must_use]
    pub fn terms(&self) -> OrderTerms<'_> {
        self.0.overview.terms()
    }

    /// Returns the asset of a leg, as the registry had pinned it that the order was verified with.
    #[must_use]
    pub fn asset(&self, leg: Leg) -> &Asset {
        self.0.overview.asset(leg)
    }

    /// Returns what the owner should know.
    #[must_use]
    pub fn warnings(&self) -> &Warnings {
        &self.0.warnings
    }

    /// Requires that there is still time to pay at `now`. Call it again right before submitting. An order without
    /// a record passes, because its deadline is not known.
    ///
    /// # Errors
    ///
    /// [`Code::OrderExpired`] or [`Code::DeadlineTooClose`]; [`Code::CreatedInFuture`], [`Code::TimeMalformed`] or
    /// [`Code::MissingField`] if no deadline follows from the record's times.
    pub fn check_deadline(&self, now: UnixTime) -> Result<(), Refusal> {
        self.0.overview.check_deadline(now)
    }

    /// Returns what the owner reads before signing: every value that the response chose.
    #[must_use]
    pub fn summary(&self) -> Summary {
        let mut summary = Summary::default();
        self.0.overview.describe(&mut summary);
        self.0.deposit.describe(&mut summary);
        summary
    }

    /// Returns which bytes of the response each topic of the summary describes.
    #[must_use]
    pub fn coverage(&self) -> Vec<ByteCoverage> {
        let mut coverage = vec![ByteCoverage::member(Topic::Order, "/response/result/order_id", "order id")];
        coverage.extend(self.0.deposit.coverage());
        coverage
    }

    /// Chooses the funding path and adds what only the wallet knows. The verified order can be prepared again when fees change.
    ///
    /// # Errors
    ///
    /// A [`Refusal`] at the member of the wallet context that is invalid, or [`Code::NothingToSign`] if the order does not offer
    /// the funding path. [`Code::WarningRefused`] for a warning about the wallet context that the policy refuses.
    pub fn prepare(&self, context: impl Into<F::Context>) -> Result<UnsignedOrder<F>, Refusal> {
        let context = context.into();
        let unsigned = self.0.deposit.prepare(&context, Seal::new())?;
        let mut warnings = self.0.warnings.clone();
        warnings.remove(&self.0.deposit.settled_warnings(&unsigned));
        self.0.deposit.warn_about_wallet(&context, &mut warnings);
        warnings.check_refused(&self.0.refused)?;
        Ok(UnsignedOrder { unsigned, warnings, origin: Origin::Order(self.clone()) })
    }
}

/// Payloads for any signer, with the signatures so far: those that fund an order, or those of its recovery.
#[must_use = "an unsigned order must be signed before it has an effect"]
pub struct UnsignedOrder<F: ChainFamily> {
    unsigned: F::Unsigned,
    warnings: Warnings,
    origin: Origin<F>,
}

impl<F: ChainFamily> fmt::Debug for UnsignedOrder<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UnsignedOrder").field("order_id", &self.order_id()).field("payloads", &self.unsigned).finish_non_exhaustive()
    }
}

impl<F: ChainFamily> UnsignedOrder<F> {
    /// Creates an order from the payloads of a recovery. Wallets call the `prepare` of the family's recovery, which calls this. It takes
    /// a value of the family's type, which only the family's crate can make.
    #[doc(hidden)]
    pub fn from_recovery(recovered: Recovered<F>, _: F) -> Self {
        let Recovered { order_id, chain, summary, unsigned, warnings } = recovered;
        Self { unsigned, warnings, origin: Origin::Recovery { order_id, chain, summary } }
    }

    /// Adds a warning about what was prepared.
    pub fn with_warning(mut self, code: Code, detail: impl Into<String>) -> Self {
        self.warnings.warn_about(code, detail);
        self
    }

    /// Returns the order's id; `None` if the payloads belong to no order (a claim of earnings).
    #[must_use]
    pub fn order_id(&self) -> Option<&str> {
        self.origin.order_id()
    }

    /// Returns the name in asset ids of the chain that the payloads are for, such as `arbitrum`.
    #[must_use]
    pub fn chain(&self) -> &str {
        self.origin.chain()
    }

    /// Returns the order as it was verified; `None` for a recovery.
    pub const fn verified(&self) -> Option<&VerifiedOrder<F>> {
        self.origin.verified()
    }

    /// Returns whether these payloads were prepared from this order: from documents that say and sign the same, judged by the same registry
    /// and policy. The order id alone proves nothing, because the service chooses it.
    #[must_use]
    pub fn is_from(&self, order: &VerifiedOrder<F>) -> bool {
        let is_same = |own: &VerifiedOrder<F>| {
            own.deposit() == order.deposit() && own.warnings() == order.warnings() && own.summary() == order.summary()
        };
        self.verified().is_some_and(|own| Arc::ptr_eq(&own.0, &order.0) || is_same(own))
    }

    /// Returns what the owner should know.
    #[must_use]
    pub const fn warnings(&self) -> &Warnings {
        &self.warnings
    }

    /// Returns the family's own payloads, with native types and everything that only this family has.
    pub const fn payloads(&self) -> &F::Unsigned {
        &self.unsigned
    }

    /// Returns what the owner reads before signing. The last lines are the digests.
    #[must_use]
    pub fn summary(&self) -> Summary {
        let mut summary = match &self.origin {
            Origin::Order(order) => {
                let mut summary = Summary::default();
                order.0.overview.describe(&mut summary);
                order.0.deposit.describe_prepared(&self.unsigned, &mut summary);
                summary
            }
            Origin::Recovery { summary, .. } => summary.clone(),
        };
        self.unsigned.describe(&mut summary);
        summary
    }

    /// Returns the most that the signer pays to the chain for sending the payloads, all of them together; `None` if the signer pays nothing,
    /// because others send the payloads or pay for them.
    #[must_use]
    pub fn network_fee(&self) -> Option<NetworkFee> {
        self.unsigned.network_fee()
    }

    /// Returns the signing requests, in the order in which payloads are sent.
    #[must_use]
    pub fn requests(&self) -> Vec<SigningRequest<F::Payload>> {
        self.unsigned.requests()
    }

    /// Returns the requests that still need a signature.
    #[must_use]
    pub fn missing(&self) -> Vec<RequestId> {
        self.unsigned.missing()
    }

    /// Returns the signatures so far, each with its request, in the text form that [`UnsignedOrder::attach_text`] takes. A wallet keeps
    /// them, and attaches them to the same order that it has verified and prepared again.
    #[must_use]
    pub fn signatures(&self) -> Vec<(RequestId, String)> {
        self.unsigned.signatures().into_iter().map(|(id, signature)| (id, signature.to_string())).collect()
    }

    /// Signs everything that a local key can sign.
    ///
    /// # Errors
    ///
    /// [`Code::KeyMismatch`] if the key can sign none of the payloads; [`Code::WarningRefused`] if a warning arises that the policy
    /// refuses.
    pub fn sign(&mut self, key: &F::Key) -> Result<(), Refusal> {
        self.try_signing(|unsigned, warnings| unsigned.sign(key, warnings, Seal::new()))
    }

    /// Changes payloads and warnings together. If a warning arises that the policy refuses, nothing changes.
    fn try_signing<E: From<Refusal>>(&mut self, sign: impl FnOnce(&mut F::Unsigned, &mut Warnings) -> Result<(), E>) -> Result<(), E> {
        let Some((mut unsigned, mut warnings)) = self.trial() else { return sign(&mut self.unsigned, &mut self.warnings) };
        let result = sign(&mut unsigned, &mut warnings);
        self.accept(unsigned, warnings)?;
        result
    }

    /// Returns a copy to sign if the policy refuses any warning, because a refused warning must undo the signature.
    fn trial(&self) -> Option<(F::Unsigned, Warnings)> {
        let refuses = self.verified().is_some_and(|order| !order.0.refused.is_empty());
        refuses.then(|| (self.unsigned.clone(), self.warnings.clone()))
    }

    /// Replaces the payloads by a signed copy, unless the policy refuses one of its warnings.
    fn accept(&mut self, unsigned: F::Unsigned, warnings: Warnings) -> Result<(), Refusal> {
        if let Some(order) = self.verified() {
            warnings.check_refused(&order.0.refused)?;
        }
        (self.unsigned, self.warnings) = (unsigned, warnings);
        Ok(())
    }

    /// Has a signer of the chain's ecosystem sign everything that it can sign: see the signer features of the family's crate.
    ///
    /// # Errors
    ///
    /// The signer's own error, the refusal of a signature, or [`Code::WarningRefused`] as for [`UnsignedOrder::sign`]. Signatures
    /// attached before are kept.
    pub fn sign_with<S: ?Sized, Via>(&mut self, signer: &S) -> Result<(), F::Error>
    where
        F: SignWith<S, Via>,
    {
        self.try_signing(|unsigned, warnings| F::sign_with(&mut Signing::new(unsigned, warnings), signer))
    }

    /// Has a closure sign every request that has no signature yet: for a signer of any SDK and version, a hardware module or a remote
    /// service. It gets the native payload, the signed bytes and the digest.
    ///
    /// # Errors
    ///
    /// [`SignerError::Signer`] with the closure's error; [`SignerError::Refused`] with the refusal of a signature, or with
    /// [`Code::WarningRefused`] as for [`UnsignedOrder::sign`]. Signatures attached before are kept.
    pub fn sign_with_fn<G: Into<F::Signature>, E>(
        &mut self,
        mut sign: impl FnMut(&SigningRequest<F::Payload>) -> Result<G, E>,
    ) -> Result<(), SignerError<E>> {
        self.try_signing(|unsigned, warnings| {
            let mut signing = Signing::<F>::new(unsigned, warnings);
            for request in signing.requests() {
                let signature = sign(&request).map_err(SignerError::Signer)?;
                signing.attach(request.id, signature)?;
            }
            Ok(())
        })
    }

    /// Has an asynchronous signer of the chain's ecosystem sign everything that it can sign: see the signer features of the family's
    /// crate.
    ///
    /// # Errors
    ///
    /// As for [`UnsignedOrder::sign_with`].
    pub async fn sign_with_async<S: ?Sized, Via>(&mut self, signer: &S) -> Result<(), F::Error>
    where
        F: SignWithAsync<S, Via>,
    {
        let Some((mut unsigned, mut warnings)) = self.trial() else {
            return F::sign_with_async(&mut Signing::new(&mut self.unsigned, &mut self.warnings), signer).await;
        };
        let result = F::sign_with_async(&mut Signing::new(&mut unsigned, &mut warnings), signer).await;
        self.accept(unsigned, warnings)?;
        result
    }

    /// Checks that an external signer's signature is over exactly the requested payload, and attaches it. A refused signature changes
    /// nothing.
    ///
    /// # Errors
    ///
    /// [`Code::NothingToSign`] if the order has no such request; [`Code::SignatureMismatch`] if the signature is not the signer's
    /// over exactly this payload; [`Code::SignatureMalformed`] or another code of the family for its form;
    /// [`Code::WarningRefused`] if a warning arises that the policy refuses.
    pub fn attach(&mut self, id: RequestId, signature: impl Into<F::Signature>) -> Result<(), Refusal> {
        self.try_signing(|unsigned, warnings| Signing::<F>::new(unsigned, warnings).attach(id, signature))
    }

    /// Checks signatures of several keys over one payload, and attaches all of them or none, as [`UnsignedOrder::attach`] does. A key that has
    /// signed before is passed over, and one key may not be among them twice.
    ///
    /// # Errors
    ///
    /// As for [`UnsignedOrder::attach`], with the signature's index in front of the location where several keys can sign;
    /// [`Code::SignatureCount`] for no signature, and for several where one key signs.
    pub fn attach_all(&mut self, id: RequestId, signatures: Vec<F::Signature>) -> Result<(), Refusal> {
        self.try_signing(|unsigned, warnings| unsigned.attach_all(id, signatures, warnings, Seal::new()))
    }

    /// Parses a signature in one of the family's text forms, and attaches it as [`UnsignedOrder::attach`] does. The forms are listed on the
    /// family's page, under "External wallets".
    ///
    /// # Errors
    ///
    /// As for [`UnsignedOrder::attach`].
    pub fn attach_text(&mut self, id: RequestId, signature: &str) -> Result<(), Refusal> {
        self.attach(id, signature.parse::<F::Signature>()?)
    }

    /// Takes the signatures out of a transaction that an external signer has signed, and attaches each as [`UnsignedOrder::attach`] does.
    /// Returns their requests. For signers that return a signed transaction instead of a signature, in the form that the family's page
    /// lists under "External wallets".
    ///
    /// # Errors
    ///
    /// [`Code::TransactionMismatch`] or [`Code::PsbtMismatch`] if it is not one of the payloads of this order; otherwise as for
    /// [`UnsignedOrder::attach`]. A refused transaction changes nothing.
    pub fn attach_transaction(&mut self, transaction: &[u8]) -> Result<Vec<RequestId>, Refusal> {
        let signatures = self.unsigned.read_signed(transaction)?;
        let (mut unsigned, mut warnings) = (self.unsigned.clone(), self.warnings.clone());
        let mut signing = Signing::<F>::new(&mut unsigned, &mut warnings);
        let attached = signatures.into_iter().map(|(id, signature)| signing.attach(id, signature).map(|()| id));
        let attached = attached.collect::<Result<_, _>>()?;
        self.accept(unsigned, warnings)?;
        Ok(attached)
    }

    /// Combines payloads and signatures.
    ///
    /// # Errors
    ///
    /// [`Incomplete`], which holds the order, while a signature is missing.
    pub fn finish(self) -> Result<SignedOrder<F>, Incomplete<F>> {
        let Self { unsigned, warnings, origin } = self;
        match unsigned.finish(Seal::new()) {
            Ok(signed) => Ok(SignedOrder::new(signed, warnings, origin)),
            Err(unsigned) => Err(Incomplete::new(Self { unsigned, warnings, origin })),
        }
    }
}
