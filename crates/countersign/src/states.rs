//! The states of an order of any family: one variant for each family that this build has code for.
//!
//! The pinned chain of the source asset decides the family, never the shape of the response.

use std::fmt;

use countersign_core::family::ChainFamily;
use countersign_core::{
    Asset, ByteCoverage, Code, Family, GaslessSubmission, Leg, NetworkFee, OrderContext, OrderTerms, Policy, Proposal, Refusal, Registry,
    RequestId, Role, SignedOrder, SignedTransaction, SigningRequest, Summary, UnixTime, UnsignedOrder, VerifiedOrder, VerifiedRecord,
    Warnings, verify_context,
};

use crate::key::Key;

any_family! {
    /// An order whose every byte is accounted for. Prepare it with a [`Context`](crate::Context), or match on it for the wallet context of
    /// its family.
    #[derive(Clone)]
    #[must_use = "nothing is signed until a verified order is prepared"]
    Verified = VerifiedOrder
}

any_family! {
    /// Payloads for any signer, and the signatures that have been attached so far.
    #[allow(clippy::large_enum_variant, reason = "an order is moved a few times, and never stored by the thousand")]
    #[must_use = "nothing is sent until an unsigned order is signed"]
    Unsigned = UnsignedOrder
}

any_family! {
    /// An order with all its signatures. Each is made with a local key or proven, or there is a warning that only the chain can
    /// verify it.
    #[allow(clippy::large_enum_variant, reason = "an order is moved a few times, and never stored by the thousand")]
    Signed = SignedOrder
}

type PayloadOf<F> = <F as ChainFamily>::Payload;
type TransactionOf<F> = <F as ChainFamily>::Transaction;

any_family! {
    /// What a signer is given, in the native type of its family.
    #[allow(clippy::large_enum_variant, reason = "a payload is handed to a signer, and never stored by the thousand")]
    Payload = PayloadOf
}

any_family! {
    /// A signed transaction in the native type of its family.
    #[allow(clippy::large_enum_variant, reason = "a transaction is broadcast, and never stored by the thousand")]
    Transaction = TransactionOf
}

macro_rules! from_family {
    ([$of:ident => $any:ident] $($feature:literal $family:ident $module:ident,)*) => {
        $(
            #[cfg(feature = $feature)]
            impl From<$of<crate::$module::$family>> for $any {
                fn from(order: $of<crate::$module::$family>) -> Self {
                    Self::$family(order)
                }
            }
        )*
    };
}

for_each! { from_family! [VerifiedOrder => Verified] }
for_each! { from_family! [UnsignedOrder => Unsigned] }
for_each! { from_family! [SignedOrder => Signed] }

macro_rules! list {
    ([] $($feature:literal $family:ident $module:ident,)*) => {
        #[cfg(not(any($(feature = $feature),*)))]
        compile_error!("countersign needs at least one family: enable a feature");

        /// The families that this build has code for.
        pub const FAMILIES: &[Family] = &[$(#[cfg(feature = $feature)] Family::$family,)*];
    };
}

for_each! { list! [] }

fn unsupported(family: Family) -> Refusal {
    countersign_core::json::At::REQUEST.refuse_below(Code::UnsupportedFamily, "/source/asset").with_actual(family)
}

/// Verifies an order of any family: the pinned chain of the source asset decides which.
///
/// # Errors
///
/// [`Code::UnsupportedFamily`] if this build has no code for the family, else a [`Refusal`] at the first member or byte that is
/// malformed, unknown or contradictory.
pub fn verify(proposal: Proposal<'_>, registry: &Registry, policy: &Policy) -> Result<Verified, Refusal> {
    proposal.open(registry, policy, |order: OrderContext<'_>| {
        for_each! { by_family! [order.family(), |wrap: Verified| verify_context(order).map(wrap), family => Err(unsupported(family))] }
    })
}

/// Verifies the record of an order that is under way: every rule of [`verify`], but the record may say that the order is
/// funded, redeemed or refunded. Returns the record and its terms, and nothing that could be signed.
///
/// # Errors
///
/// As [`verify`]; [`Code::MissingField`] without a record; [`Code::SecretWrong`] if the record shows a secret that does not
/// match its hash.
pub fn verify_record(proposal: Proposal<'_>, registry: &Registry, policy: &Policy) -> Result<VerifiedRecord, Refusal> {
    /// Verifies the record of the family whose variant is given.
    fn verify_record_of<F: ChainFamily>(_: fn(VerifiedOrder<F>) -> Verified, order: OrderContext<'_>) -> Result<VerifiedRecord, Refusal> {
        countersign_core::verify_record::<F>(order)
    }

    proposal.open(registry, policy, |order: OrderContext<'_>| {
        for_each! { by_family! [order.family(), |wrap: Verified| verify_record_of(wrap, order), family => Err(unsupported(family))] }
    })
}

impl Verified {
    /// Returns the family that signs.
    #[must_use]
    pub fn family(&self) -> Family {
        each_family!(self, Self => |order| order.family())
    }

    /// Returns the name in asset ids of the chain that the payloads are for, such as `arbitrum`.
    #[must_use]
    pub fn chain(&self) -> &str {
        each_family!(self, Self => |order| order.chain())
    }

    /// Returns the order's id.
    #[must_use]
    pub fn order_id(&self) -> &str {
        each_family!(self, Self => |order| order.order_id())
    }

    /// Returns the asset of a leg, as the registry had pinned it that the order was verified with.
    #[must_use]
    pub fn asset(&self, leg: Leg) -> &Asset {
        each_family!(self, Self => |order| order.asset(leg))
    }

    /// Returns the terms that the owner agrees to, as values.
    #[must_use]
    pub fn terms(&self) -> OrderTerms<'_> {
        each_family!(self, Self => |order| order.terms())
    }

    /// Returns what the owner reads before signing: every value that the response chose.
    #[must_use]
    pub fn summary(&self) -> Summary {
        each_family!(self, Self => |order| order.summary())
    }

    /// Returns what the owner should know.
    #[must_use]
    pub fn warnings(&self) -> &Warnings {
        each_family!(self, Self => |order| order.warnings())
    }

    /// Returns the role in this order of a transaction that an external wallet has signed or broadcast, and refuses what the owner would
    /// have to be warned about: see [`VerifiedOrder::matches`].
    ///
    /// # Errors
    ///
    /// As [`VerifiedOrder::matches`], or [`Code::TransactionMismatch`] if the transaction is of another family.
    pub fn matches(&self, transaction: &Transaction) -> Result<Role, Refusal> {
        self.match_with_warnings(transaction).and_then(Warnings::only_informational)
    }

    /// Returns the role in this order of a transaction, and warnings about what the wallet changed: see
    /// [`VerifiedOrder::match_with_warnings`].
    ///
    /// # Errors
    ///
    /// As [`VerifiedOrder::match_with_warnings`], or [`Code::TransactionMismatch`] if the transaction is of another family.
    pub fn match_with_warnings(&self, transaction: &Transaction) -> Result<(Role, Warnings), Refusal> {
        let other = || {
            let refusal = Refusal::new(Code::TransactionMismatch, "").with_reason("the transaction is of another chain family");
            Err(refusal.with_expected(self.family()))
        };
        for_each! { match_both! [(self, transaction), |order: Self, native: Transaction| order.match_with_warnings(native), other()] }
    }

    /// Returns the role in this order of a signed transaction, given as bytes, in the form that the page of its family lists: see
    /// [`VerifiedOrder::matches_bytes`].
    ///
    /// # Errors
    ///
    /// [`Code::TransactionMismatch`] if the bytes are not exactly one signed transaction of the order's family, or if the transaction
    /// is not part of the order or has a warning that [`VerifiedOrder::matches`] refuses. Other codes are those of the family's `received`
    /// module.
    pub fn matches_bytes(&self, bytes: &[u8]) -> Result<Role, Refusal> {
        self.match_bytes_with_warnings(bytes).and_then(Warnings::only_informational)
    }

    /// Returns the role of a signed transaction, given as bytes, and warnings about what the wallet changed: see
    /// [`VerifiedOrder::match_with_warnings`].
    ///
    /// # Errors
    ///
    /// As [`matches_bytes`](Self::matches_bytes) and [`VerifiedOrder::match_with_warnings`].
    pub fn match_bytes_with_warnings(&self, bytes: &[u8]) -> Result<(Role, Warnings), Refusal> {
        each_family!(self, Self => |order| order.match_bytes_with_warnings(bytes))
    }

    /// Checks that there is still time to pay at `now`: call it again right before submitting.
    ///
    /// # Errors
    ///
    /// As [`VerifiedOrder::check_deadline`].
    pub fn check_deadline(&self, now: UnixTime) -> Result<(), Refusal> {
        each_family!(self, Self => |order| order.check_deadline(now))
    }

    /// Returns which bytes of the response each line of the summary describes.
    #[must_use]
    pub fn coverage(&self) -> Vec<ByteCoverage> {
        each_family!(self, Self => |order| order.coverage())
    }
}

impl Unsigned {
    /// Returns the family that signs.
    #[must_use]
    pub const fn family(&self) -> Family {
        each_family!(self, Self => |_order, family: Family| family)
    }

    /// Returns the name in asset ids of the chain that the payloads are for, such as `arbitrum`.
    #[must_use]
    pub fn chain(&self) -> &str {
        each_family!(self, Self => |order| order.chain())
    }

    /// Returns the order's id; `None` if the payloads belong to no order (a claim of earnings).
    #[must_use]
    pub fn order_id(&self) -> Option<&str> {
        each_family!(self, Self => |order| order.order_id())
    }

    /// Returns what the owner reads before signing. The last lines are the digests.
    #[must_use]
    pub fn summary(&self) -> Summary {
        each_family!(self, Self => |order| order.summary())
    }

    /// Returns what the owner should know.
    #[must_use]
    pub fn warnings(&self) -> &Warnings {
        each_family!(self, Self => |order| order.warnings())
    }

    /// Returns the most that the signer pays to the chain for sending the payloads: see [`UnsignedOrder::network_fee`].
    #[must_use]
    pub fn network_fee(&self) -> Option<NetworkFee> {
        each_family!(self, Self => |order| order.network_fee())
    }

    /// Returns whether these payloads were prepared from this order: see [`UnsignedOrder::is_from`].
    #[must_use]
    pub fn is_from(&self, order: &Verified) -> bool {
        for_each! { match_both! [(self, order), |payloads: Self, order: Verified| payloads.is_from(order), false] }
    }

    /// Returns what signers are asked for, in the order in which payloads are sent.
    #[must_use]
    pub fn requests(&self) -> Vec<SigningRequest<Payload>> {
        each_family!(self, Self => |order, wrap: Payload| order.requests().into_iter().map(|request| request.map(wrap)).collect())
    }

    /// Returns the requests that still need a signature.
    #[must_use]
    pub fn missing(&self) -> Vec<RequestId> {
        each_family!(self, Self => |order| order.missing())
    }

    /// Returns the signatures so far, each with its request, in the text form that [`Unsigned::attach_text`] takes.
    #[must_use]
    pub fn signatures(&self) -> Vec<(RequestId, String)> {
        each_family!(self, Self => |order| order.signatures())
    }

    /// Signs everything that a local key can sign. [`Key::parse`] takes the text form of a family.
    ///
    /// # Errors
    ///
    /// [`Code::KeyMismatch`] if there is nothing that the key can sign, also because it is a key of another family.
    pub fn sign(&mut self, key: &Key) -> Result<(), Refusal> {
        let other = || Refusal::new(Code::KeyMismatch, "").with_reason("the key is of another chain family");
        for_each! { match_both! [(self, key), |order: Self, key: Key| order.sign(key), Err(other())] }
    }

    /// Proves a signature made by an external signer, in one of the text forms that the page of its family lists, and attaches it.
    ///
    /// # Errors
    ///
    /// A [`Refusal`] of a malformed or wrong signature, which changes nothing.
    pub fn attach_text(&mut self, id: RequestId, signature: &str) -> Result<(), Refusal> {
        each_family!(self, Self => |order| order.attach_text(id, signature))
    }

    /// Takes the signatures out of a transaction that an external signer has signed, proves and attaches them, and returns their requests:
    /// see [`UnsignedOrder::attach_transaction`](countersign_core::UnsignedOrder::attach_transaction).
    ///
    /// # Errors
    ///
    /// As there. A refused transaction changes nothing.
    pub fn attach_transaction(&mut self, transaction: &[u8]) -> Result<Vec<RequestId>, Refusal> {
        each_family!(self, Self => |order| order.attach_transaction(transaction))
    }

    /// Combines the payloads with their signatures.
    ///
    /// # Errors
    ///
    /// [`Incomplete`], which gives the order back, while a signature is missing.
    pub fn finish(self) -> Result<Signed, Incomplete> {
        each_family!(self, Self => |order, wrap: Signed| {
            order.finish().map(wrap).map_err(|incomplete| Incomplete(Box::new(incomplete.into_unsigned().into())))
        })
    }
}

impl Signed {
    /// Returns the name in asset ids of the chain that the payloads are for, such as `arbitrum`.
    #[must_use]
    pub fn chain(&self) -> &str {
        each_family!(self, Self => |order| order.chain())
    }

    /// Returns the order's id; `None` if the payloads belong to no order (a claim of earnings).
    #[must_use]
    pub fn order_id(&self) -> Option<&str> {
        each_family!(self, Self => |order| order.order_id())
    }

    /// Returns the transactions in the order in which they are broadcast.
    #[must_use]
    pub fn transactions(&self) -> Vec<SignedTransaction<Transaction>> {
        each_family!(self, Self => |order, wrap: Transaction| {
            order.transactions().into_iter().map(|transaction| transaction.map(wrap)).collect()
        })
    }

    /// Returns what the service is sent instead of a transaction, where the wallet chose the gasless path.
    #[must_use]
    pub fn gasless(&self) -> Option<GaslessSubmission> {
        each_family!(self, Self => |order| order.gasless())
    }

    /// Returns what the owner should know.
    #[must_use]
    pub fn warnings(&self) -> &Warnings {
        each_family!(self, Self => |order| order.warnings())
    }
}

/// An order that still lacks signatures. Nothing is lost: [`Incomplete::into_unsigned`] gives it back.
#[derive(Debug)]
pub struct Incomplete(Box<Unsigned>);

impl Incomplete {
    /// Returns the requests that still need a signature.
    #[must_use]
    pub fn missing(&self) -> Vec<RequestId> {
        self.0.missing()
    }

    /// Returns the order with the signatures that it has.
    pub fn into_unsigned(self) -> Unsigned {
        *self.0
    }
}

impl fmt::Display for Incomplete {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let missing: Vec<_> = self.missing().into_iter().map(RequestId::name).collect();
        write!(f, "signatures are missing: {}", missing.join(", "))
    }
}

impl std::error::Error for Incomplete {}

impl From<Incomplete> for Refusal {
    fn from(incomplete: Incomplete) -> Self {
        Self::new(Code::SignatureMissing, "").with_reason(incomplete.to_string())
    }
}
