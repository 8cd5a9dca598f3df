//! The states of an order of any family: one variant for each family that this build has code for.
//!
//! The pinned chain of the source asset decides the family, never the shape of the response.

use std::fmt;

use countersign_core::family::ChainFamily;
use countersign_core::{
    ByteCoverage, Code, Family, GaslessSubmission, OrderContext, OrderTerms, Policy, Proposal, Refusal, Registry, RequestId, Role,
    SignedOrder, SignedTransaction, SigningRequest, Summary, UnixTime, UnsignedOrder, VerifiedOrder, VerifiedRecord, Warnings,
    verify_context,
};

#[cfg(feature = "bitcoin")]
use countersign_bitcoin::Bitcoin;
#[cfg(feature = "evm")]
use countersign_evm::Evm;
#[cfg(feature = "solana")]
use countersign_solana::Solana;
#[cfg(feature = "starknet")]
use countersign_starknet::Starknet;
#[cfg(feature = "sui")]
use countersign_sui::Sui;
#[cfg(feature = "tron")]
use countersign_tron::Tron;

#[cfg(not(any(feature = "bitcoin", feature = "evm", feature = "solana", feature = "starknet", feature = "sui", feature = "tron")))]
compile_error!("countersign needs at least one family: enable a feature");

/// Declares an enum with one variant for each family: of one generic type, or of the types that are named.
macro_rules! any_family {
    ($(#[$attribute:meta])* $name:ident = $of:ident) => {
        any_family! { $(#[$attribute])* $name: $of<Evm>, $of<Tron>, $of<Starknet>, $of<Solana>, $of<Sui>, $of<Bitcoin> }
    };
    ($(#[$attribute:meta])* $name:ident: $evm:ty, $tron:ty, $starknet:ty, $solana:ty, $sui:ty, $bitcoin:ty) => {
        $(#[$attribute])*
        #[derive(Debug)]
        #[non_exhaustive]
        pub enum $name {
            /// EVM.
            #[cfg(feature = "evm")]
            Evm($evm),
            /// Tron.
            #[cfg(feature = "tron")]
            Tron($tron),
            /// Starknet.
            #[cfg(feature = "starknet")]
            Starknet($starknet),
            /// Solana.
            #[cfg(feature = "solana")]
            Solana($solana),
            /// Sui.
            #[cfg(feature = "sui")]
            Sui($sui),
            /// Bitcoin and Litecoin.
            #[cfg(feature = "bitcoin")]
            Bitcoin($bitcoin),
        }
    };
}
pub(crate) use any_family;

/// Evaluates an expression for the family of a state. `$wrap` is that family's variant of the enum `$to`.
macro_rules! each_family {
    ($state:expr, $from:ident => |$order:ident $(, $wrap:ident: $to:ident)?| $body:expr) => {
        match $state {
            #[cfg(feature = "evm")]
            $from::Evm($order) => {
                $(let $wrap = $to::Evm;)?
                $body
            }
            #[cfg(feature = "tron")]
            $from::Tron($order) => {
                $(let $wrap = $to::Tron;)?
                $body
            }
            #[cfg(feature = "starknet")]
            $from::Starknet($order) => {
                $(let $wrap = $to::Starknet;)?
                $body
            }
            #[cfg(feature = "solana")]
            $from::Solana($order) => {
                $(let $wrap = $to::Solana;)?
                $body
            }
            #[cfg(feature = "sui")]
            $from::Sui($order) => {
                $(let $wrap = $to::Sui;)?
                $body
            }
            #[cfg(feature = "bitcoin")]
            $from::Bitcoin($order) => {
                $(let $wrap = $to::Bitcoin;)?
                $body
            }
        }
    };
}

pub(crate) use each_family;

any_family! {
    /// An order whose every byte is accounted for. Match on it to prepare it with the wallet context of its family.
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

/// Converts the states of one family into the states of any family.
macro_rules! from_family {
    ($($feature:literal $family:ident)*) => {
        $(from_family! { $feature $family: VerifiedOrder => Verified, UnsignedOrder => Unsigned, SignedOrder => Signed })*
    };
    ($feature:literal $family:ident: $($of:ident => $any:ident),*) => {
        $(
            #[cfg(feature = $feature)]
            impl From<$of<$family>> for $any {
                fn from(order: $of<$family>) -> Self {
                    Self::$family(order)
                }
            }
        )*
    };
}

from_family! { "evm" Evm "tron" Tron "starknet" Starknet "solana" Solana "sui" Sui "bitcoin" Bitcoin }

/// The families that this build has code for.
pub const FAMILIES: &[Family] = &[
    #[cfg(feature = "evm")]
    Family::Evm,
    #[cfg(feature = "tron")]
    Family::Tron,
    #[cfg(feature = "starknet")]
    Family::Starknet,
    #[cfg(feature = "solana")]
    Family::Solana,
    #[cfg(feature = "sui")]
    Family::Sui,
    #[cfg(feature = "bitcoin")]
    Family::Bitcoin,
];

fn unsupported(family: Family) -> Refusal {
    Refusal::new(Code::UnsupportedFamily, "/request/source/asset").with_actual(family)
}

/// Verifies an order of any family: the pinned chain of the source asset decides which.
///
/// # Errors
///
/// [`Code::UnsupportedFamily`] if this build has no code for the family, else a [`Refusal`] at the first member or byte that is
/// malformed, unknown or contradictory.
pub fn verify(proposal: Proposal<'_>, registry: &Registry, policy: &Policy) -> Result<Verified, Refusal> {
    proposal.open(registry, policy, |order: OrderContext<'_>| match order.family() {
        #[cfg(feature = "evm")]
        Family::Evm => verify_context(order).map(Verified::Evm),
        #[cfg(feature = "tron")]
        Family::Tron => verify_context(order).map(Verified::Tron),
        #[cfg(feature = "starknet")]
        Family::Starknet => verify_context(order).map(Verified::Starknet),
        #[cfg(feature = "solana")]
        Family::Solana => verify_context(order).map(Verified::Solana),
        #[cfg(feature = "sui")]
        Family::Sui => verify_context(order).map(Verified::Sui),
        #[cfg(feature = "bitcoin")]
        Family::Bitcoin => verify_context(order).map(Verified::Bitcoin),
        family => Err(unsupported(family)),
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
    use countersign_core::verify_record as verify_record_of;

    proposal.open(registry, policy, |order: OrderContext<'_>| match order.family() {
        #[cfg(feature = "evm")]
        Family::Evm => verify_record_of::<Evm>(order),
        #[cfg(feature = "tron")]
        Family::Tron => verify_record_of::<Tron>(order),
        #[cfg(feature = "starknet")]
        Family::Starknet => verify_record_of::<Starknet>(order),
        #[cfg(feature = "solana")]
        Family::Solana => verify_record_of::<Solana>(order),
        #[cfg(feature = "sui")]
        Family::Sui => verify_record_of::<Sui>(order),
        #[cfg(feature = "bitcoin")]
        Family::Bitcoin => verify_record_of::<Bitcoin>(order),
        family => Err(unsupported(family)),
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

    /// Returns the role in this order of a transaction that an external wallet has signed or broadcast: see [`VerifiedOrder::matches`].
    ///
    /// # Errors
    ///
    /// [`Code::TransactionMismatch`] if the transaction is not part of the order, or is of another family.
    pub fn matches(&self, transaction: &Transaction) -> Result<Role, Refusal> {
        match (self, transaction) {
            #[cfg(feature = "evm")]
            (Self::Evm(order), Transaction::Evm(transaction)) => order.matches(transaction),
            #[cfg(feature = "tron")]
            (Self::Tron(order), Transaction::Tron(transaction)) => order.matches(transaction),
            #[cfg(feature = "starknet")]
            (Self::Starknet(order), Transaction::Starknet(transaction)) => order.matches(transaction),
            #[cfg(feature = "solana")]
            (Self::Solana(order), Transaction::Solana(transaction)) => order.matches(transaction),
            #[cfg(feature = "sui")]
            (Self::Sui(order), Transaction::Sui(transaction)) => order.matches(transaction),
            #[cfg(feature = "bitcoin")]
            (Self::Bitcoin(order), Transaction::Bitcoin(transaction)) => order.matches(transaction),
            #[allow(unreachable_patterns, reason = "a build with one family has no other transactions")]
            _ => Err(Refusal::new(Code::TransactionMismatch, "")
                .with_reason("the transaction is of another chain family")
                .with_expected(self.family())),
        }
    }

    /// Returns the role in this order of a signed transaction, given as bytes. The form of each family is listed at
    /// [`VerifiedOrder::matches_bytes`].
    ///
    /// # Errors
    ///
    /// [`Code::TransactionMismatch`] if the bytes are not exactly one signed transaction of the order's family, or if the transaction
    /// is not part of the order. Other codes are those of the family's `received` module.
    pub fn matches_bytes(&self, bytes: &[u8]) -> Result<Role, Refusal> {
        each_family!(self, Self => |order| order.matches_bytes(bytes))
    }

    /// Checks that there is still time to pay at `now`,: call it again right before submitting.
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
        const fn family<F: ChainFamily>(_: &UnsignedOrder<F>) -> Family {
            F::FAMILY
        }
        each_family!(self, Self => |order| family(order))
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

    /// Signs everything that a local key can sign. The key is in the family's usual text form.
    ///
    /// # Errors
    ///
    /// [`Code::KeyMalformed`], never with any part of the text, or [`Code::KeyMismatch`] if there is nothing that the key can
    /// sign.
    pub fn sign(&mut self, key: &str) -> Result<(), Refusal> {
        each_family!(self, Self => |order| {
            let key = key.parse().map_err(|error| Refusal::new(error, ""))?;
            order.sign(&key)
        })
    }

    /// Proves a signature made by an external signer, in the family's usual text form, and attaches it.
    ///
    /// # Errors
    ///
    /// A [`Refusal`] of a malformed or wrong signature, which changes nothing.
    pub fn attach(&mut self, id: RequestId, signature: &str) -> Result<(), Refusal> {
        each_family!(self, Self => |order| order.attach_text(id, signature))
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

    /// Returns the order's id.
    #[must_use]
    pub fn order_id(&self) -> &str {
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
