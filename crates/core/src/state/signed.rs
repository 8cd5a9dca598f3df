//! The last state of an order, and what is returned while a signature is missing.

use std::fmt;

use super::{GaslessSubmission, Origin, RequestId, SignedTransaction, UnsignedOrder, VerifiedOrder};
use crate::family::{ChainFamily, Signed};
use crate::report::{Code, Refusal, Warnings};

/// The error for an order with missing signatures. Nothing is lost: [`Incomplete::into_unsigned`] returns the order.
pub struct Incomplete<F: ChainFamily>(Box<UnsignedOrder<F>>);

impl<F: ChainFamily> Incomplete<F> {
    pub(super) fn new(order: UnsignedOrder<F>) -> Self {
        Self(Box::new(order))
    }

    /// Returns the requests that still need a signature.
    #[must_use]
    pub fn missing(&self) -> Vec<RequestId> {
        self.0.missing()
    }

    /// Returns the order with the signatures so far.
    pub fn into_unsigned(self) -> UnsignedOrder<F> {
        *self.0
    }
}

impl<F: ChainFamily> fmt::Debug for Incomplete<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Incomplete").field(&self.0).finish()
    }
}

impl<F: ChainFamily> fmt::Display for Incomplete<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let missing: Vec<_> = self.missing().into_iter().map(RequestId::name).collect();
        write!(f, "signatures are missing: {}", missing.join(", "))
    }
}

impl<F: ChainFamily> std::error::Error for Incomplete<F> {}

impl<F: ChainFamily> From<Incomplete<F>> for Refusal {
    fn from(incomplete: Incomplete<F>) -> Self {
        Self::new(Code::SignatureMissing, "").with_reason(incomplete.to_string())
    }
}

/// An order with all its signatures.
///
/// Each signature was made with a local key, or checked when it was attached. One that only the chain can verify (of a contract
/// or a multisig) carries a warning.
pub struct SignedOrder<F: ChainFamily> {
    signed: F::Signed,
    warnings: Warnings,
    origin: Origin<F>,
}

impl<F: ChainFamily> fmt::Debug for SignedOrder<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SignedOrder").field("order_id", &self.order_id()).field("payloads", &self.signed).finish_non_exhaustive()
    }
}

impl<F: ChainFamily> SignedOrder<F> {
    pub(super) const fn new(signed: F::Signed, warnings: Warnings, origin: Origin<F>) -> Self {
        Self { signed, warnings, origin }
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

    /// Returns the family's own signed payloads.
    pub const fn payloads(&self) -> &F::Signed {
        &self.signed
    }

    /// Returns the transactions in the order in which they are broadcast.
    #[must_use]
    pub fn transactions(&self) -> Vec<SignedTransaction<F::Transaction>> {
        self.signed.transactions()
    }

    /// Returns the gasless submission for the service, which replaces a transaction; `None` on the self-funded path.
    #[must_use]
    pub fn gasless(&self) -> Option<GaslessSubmission> {
        self.signed.gasless()
    }

    /// Returns what the owner should know.
    #[must_use]
    pub const fn warnings(&self) -> &Warnings {
        &self.warnings
    }
}
