//! The four states of an order. Each is a type that only the step before it can make.
//!
//! | state | meaning | leaves it by |
//! |---|---|---|
//! | [`Proposed`] | decoded, nothing believed | [`Proposed::verify`] |
//! | [`Verified`] | every field equals the request, the registry or the record, or is shown | [`Verified::prepare`] |
//! | [`Unsigned`] | payloads and digests for any signer | [`Unsigned::sign`], [`Unsigned::attach`] |
//! | [`Signed`] | signatures proven to be the owner's | |
//!
//! ```compile_fail
//! // A verified order cannot be made outside this crate: its fields are private.
//! use countersign_core::{ChainFamily, Verified};
//! fn forge<F: ChainFamily>(deposit: F::Deposit) -> Verified<F> {
//!     Verified { deposit }
//! }
//! ```

use std::fmt;
use std::marker::PhantomData;

use crate::code::Code;
use crate::family::{ChainFamily, SigningRequest};
use crate::json::Node;
use crate::order::{Order, Terms};
use crate::overview::Overview;
use crate::record::{self, Purpose};
use crate::refusal::Refusal;
use crate::summary::{Span, Summary, Topic, Warnings};
use crate::wire::OrderRecord;

/// An order as it came. Nothing in it is believed.
#[derive(Debug)]
#[must_use = "a proposed order is worth nothing until it is verified"]
pub struct Proposed<'d, F> {
    order: Order<'d>,
    family: PhantomData<F>,
}

impl<'d, F: ChainFamily> Proposed<'d, F> {
    /// Takes an opened order.
    ///
    /// # Errors
    ///
    /// [`Code::UnsupportedFamily`] if another family signs for it.
    pub fn new(order: Order<'d>) -> Result<Self, Refusal> {
        if order.family() == F::FAMILY {
            return Ok(Self { order, family: PhantomData });
        }
        Err(Refusal::new(Code::UnsupportedFamily, "/request/source/asset").expected(F::FAMILY).got(order.family()))
    }

    /// Decodes the payload, rebuilds it from the order's terms, and requires that both are the same; then requires that
    /// the order record, where there is one, says the same.
    ///
    /// # Errors
    ///
    /// A [`Refusal`] at the first member or byte that differs.
    pub fn verify(self) -> Result<Verified<F>, Refusal> {
        let order = self.order;
        let mut warnings = Warnings::default();
        let (deposit, terms) = judge::<F>(&order, Purpose::Signing, &mut warnings)?;
        Ok(Verified { overview: Overview::new(order, terms), deposit, warnings })
    }

    /// Judges an order that is under way: every rule of [`Proposed::verify`], but the record may say that the order is
    /// funded, redeemed or refunded. Nothing to sign comes out of it, only the record, every term of which holds.
    ///
    /// # Errors
    ///
    /// A [`Refusal`] at the first member or byte that differs; [`Code::MissingField`] without a record;
    /// [`Code::SecretWrong`] if a secret that the record shows is not that of its hash.
    pub fn follow(self) -> Result<(OrderRecord, Warnings), Refusal> {
        let mut order = self.order;
        let mut warnings = Warnings::default();
        judge::<F>(&order, Purpose::Tracking, &mut warnings)?;
        let record = order.record.take().ok_or_else(|| Refusal::new(Code::MissingField, "/order"))?;
        Ok((*record, warnings))
    }
}

fn judge<F: ChainFamily>(order: &Order<'_>, purpose: Purpose, warnings: &mut Warnings) -> Result<(F::Deposit, Option<Terms>), Refusal> {
    order.check_request(warnings);
    order.check_payload_keys(F::PAYLOAD_KEYS)?;
    let (deposit, terms) = F::check(order, warnings)?;
    record::check(order, terms.as_ref(), purpose, warnings)?;
    Ok((deposit, terms))
}

/// An order whose every byte is accounted for.
#[must_use = "a verified order is there to be prepared"]
pub struct Verified<F: ChainFamily> {
    deposit: F::Deposit,
    overview: Overview,
    warnings: Warnings,
}

impl<F: ChainFamily> fmt::Debug for Verified<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Verified").field("order_id", &self.overview.order_id()).field("deposit", &self.deposit).finish_non_exhaustive()
    }
}

impl<F: ChainFamily> Verified<F> {
    /// The order's id.
    #[must_use]
    pub fn order_id(&self) -> &str {
        self.overview.order_id()
    }

    /// What the order locks, rebuilt from the terms.
    pub const fn deposit(&self) -> &F::Deposit {
        &self.deposit
    }

    /// What the owner should know.
    #[must_use]
    pub const fn warnings(&self) -> &Warnings {
        &self.warnings
    }

    /// What the owner reads before signing: every value that the response chose.
    #[must_use]
    pub fn summary(&self) -> Summary {
        let mut summary = Summary::default();
        self.overview.describe(&mut summary);
        F::describe(&self.deposit, &mut summary);
        summary
    }

    /// Which bytes of the response each line stands for.
    #[must_use]
    pub fn covers(&self) -> Vec<Span> {
        let mut spans = vec![Span::member(Topic::Order, "/response/result/order_id", "order id")];
        spans.extend(F::covers(&self.deposit));
        spans
    }

    /// Adds what only the wallet knows.
    ///
    /// # Errors
    ///
    /// A [`Refusal`] at a member of `/wallet` that cannot be.
    pub fn prepare(self, wallet: &F::Wallet) -> Result<Unsigned<F>, Refusal> {
        let unsigned = F::prepare(&self.deposit, wallet)?;
        Ok(Unsigned { unsigned, verified: self })
    }

    /// Reads the wallet context of the batch contract and adds it.
    ///
    /// # Errors
    ///
    /// A [`Refusal`] at the member of `/wallet` that is missing, malformed or cannot be.
    pub fn prepare_json(self, wallet: Node<'_, '_>) -> Result<Unsigned<F>, Refusal> {
        let wallet = F::read_wallet(wallet)?;
        self.prepare(&wallet)
    }
}

/// Payloads and digests for any signer.
#[must_use = "an unsigned order is there to be signed"]
pub struct Unsigned<F: ChainFamily> {
    unsigned: F::Unsigned,
    verified: Verified<F>,
}

impl<F: ChainFamily> fmt::Debug for Unsigned<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Unsigned").field("order_id", &self.order_id()).field("unsigned", &self.unsigned).finish_non_exhaustive()
    }
}

impl<F: ChainFamily> Unsigned<F> {
    /// The order's id.
    #[must_use]
    pub fn order_id(&self) -> &str {
        self.verified.order_id()
    }

    /// What the owner should know.
    #[must_use]
    pub const fn warnings(&self) -> &Warnings {
        self.verified.warnings()
    }

    /// The family's own payloads, native types among them.
    pub const fn payloads(&self) -> &F::Unsigned {
        &self.unsigned
    }

    /// What the owner reads before signing: it ends with the digests.
    #[must_use]
    pub fn summary(&self) -> Summary {
        let mut summary = self.verified.summary();
        F::describe_unsigned(&self.unsigned, &mut summary);
        summary
    }

    /// What a signer outside is asked for, in order.
    #[must_use]
    pub fn requests(&self) -> Vec<SigningRequest> {
        F::requests(&self.unsigned)
    }

    /// Signs everything with a local key.
    ///
    /// # Errors
    ///
    /// [`Code::KeyMismatch`] at `/wallet/secret_key` if the key does not control the sender.
    pub fn sign(self, key: &F::Key) -> Result<Signed<F>, Refusal> {
        let (summary, Verified { overview, mut warnings, .. }) = (self.summary(), self.verified);
        let artefacts = F::sign(self.unsigned, key, &mut warnings)?;
        Ok(Signed { artefacts, order_id: overview.into_order_id(), summary, warnings })
    }

    /// Proves signatures from outside, each named after its request, and attaches them.
    ///
    /// # Errors
    ///
    /// A [`Refusal`] at `/signatures/<request>` if a signature is not the signer's over exactly this digest.
    pub fn attach(self, signatures: Vec<(String, F::Signature)>) -> Result<Signed<F>, Refusal> {
        let (summary, Verified { overview, mut warnings, .. }) = (self.summary(), self.verified);
        let artefacts = F::attach(self.unsigned, signatures, &mut warnings)?;
        Ok(Signed { artefacts, order_id: overview.into_order_id(), summary, warnings })
    }
}

/// An order whose signatures are proven.
pub struct Signed<F: ChainFamily> {
    artefacts: F::Artefacts,
    order_id: String,
    summary: Summary,
    warnings: Warnings,
}

impl<F: ChainFamily> fmt::Debug for Signed<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Signed").field("order_id", &self.order_id).field("artefacts", &self.artefacts).finish_non_exhaustive()
    }
}

impl<F: ChainFamily> Signed<F> {
    /// The order's id.
    #[must_use]
    pub fn order_id(&self) -> &str {
        &self.order_id
    }

    /// What goes to the chain, or to the service.
    pub const fn artefacts(&self) -> &F::Artefacts {
        &self.artefacts
    }

    /// The `signature` of the gasless `PATCH /v2/orders/{id}?action=initiate`; `None` if the order has no gasless way, or
    /// its message is not signed.
    #[must_use]
    pub fn submission(&self) -> Option<String> {
        F::submission(&self.artefacts)
    }

    /// What the owner read before signing.
    #[must_use]
    pub const fn summary(&self) -> &Summary {
        &self.summary
    }

    /// What the owner should know.
    #[must_use]
    pub const fn warnings(&self) -> &Warnings {
        &self.warnings
    }
}
