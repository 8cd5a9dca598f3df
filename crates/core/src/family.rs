//! The interface between this crate and the family crates.
//!
//! **Not covered by semantic versioning.** Wallets call the states ([`VerifiedOrder`](crate::VerifiedOrder) and on), which
//! call these traits in the only order that is safe. The traits are public because each family is a separate crate. What decodes,
//! prepares or signs takes a [`Seal`], which only this crate can make, so nobody else can call it.

use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;

use countersign_chains::taproot::{Htlc, Output};
use countersign_chains::{Account, Family};
use serde::Serialize;

use crate::report::{ByteCoverage, Code, NetworkFee, ParseError, Refusal, Summary, Warnings};
use crate::state::request::{GaslessSubmission, RequestId, Role, SignedTransaction, SigningRequest};
use crate::verify::{OrderContext, SwapTerms};

/// Shows a method of `T` that this crate calls it. A seal of one type is of no use with another.
///
/// ```compile_fail
/// use countersign::family::Seal;
/// fn forge<T>() -> Seal<T> {
///     Seal(std::marker::PhantomData)
/// }
/// ```
pub struct Seal<T: ?Sized>(PhantomData<fn() -> T>);

impl<T: ?Sized> Seal<T> {
    pub(crate) const fn new() -> Self {
        Self(PhantomData)
    }
}

impl<T: ?Sized> fmt::Debug for Seal<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Seal")
    }
}

/// A chain family: how its payloads are decoded, rebuilt, prepared and signed.
pub trait ChainFamily: Sized + 'static {
    /// Which family this is.
    const FAMILY: Family;
    /// The members of a response's `result` that carry this family's payloads. A payload of another family is refused.
    const PAYLOAD_KEYS: &'static [&'static str];
    /// What an order locks.
    type Deposit: Deposit<Context = Self::Context, Unsigned = Self::Unsigned>;
    /// What only the wallet knows: funding path, nonce, fees, coins, blockhash.
    type Context: fmt::Debug;
    /// What is signed, and the signatures so far.
    type Unsigned: Signable<Payload = Self::Payload, Key = Self::Key, Signature = Self::Signature, Signed = Self::Signed>;
    /// What a signer receives: a transaction, typed data or a PSBT.
    type Payload: fmt::Debug;
    /// A key that signs locally. Wiped on drop, never printed.
    type Key: FromStr<Err = ParseError>;
    /// A signature made by an external signer.
    type Signature: FromStr<Err = Refusal> + fmt::Display;
    /// Payloads with all their signatures.
    type Signed: Signed<Transaction = Self::Transaction>;
    /// The native type of a signed transaction.
    type Transaction;

    /// Returns the context of the gasless path, which needs nothing from the wallet; `None` if the family has no such path.
    #[must_use]
    fn gasless() -> Option<Self::Context> {
        None
    }

    /// Returns the account that a key controls; `None` if the account does not follow from the key, or if the key has several.
    #[must_use]
    fn account(key: &Self::Key) -> Option<Account> {
        let _ = key;
        None
    }
}

/// The payloads of a recovery, before any signature.
#[derive(Debug)]
#[allow(clippy::exhaustive_structs, reason = "the family crates create it")]
pub struct Recovered<F: ChainFamily> {
    /// The order's id; `None` if the payloads belong to no order.
    pub order_id: Option<String>,
    /// The chain's name in asset ids.
    pub chain: String,
    /// What the owner reads before signing.
    pub summary: Summary,
    /// The payloads.
    pub unsigned: F::Unsigned,
    /// What the owner should know.
    pub warnings: Warnings,
}

/// What an order locks, rebuilt from its terms.
pub trait Deposit: fmt::Debug + PartialEq + Sized {
    /// What only the wallet knows: funding path, nonce, fees, coins, blockhash.
    type Context: fmt::Debug;
    /// What is signed.
    type Unsigned: Signable;

    /// Decodes the response's `result`, rebuilds it from the order's own terms, and requires that both are the same.
    ///
    /// Returns the deposit and the terms that the payload states. The terms are `None` only if the payload states none (a Bitcoin
    /// address without a record).
    ///
    /// # Errors
    ///
    /// A [`Refusal`] at the first member or byte that differs.
    fn verify(order: &OrderContext<'_>, warnings: &mut Warnings, seal: Seal<Self>) -> Result<(Self, Option<SwapTerms>), Refusal>;

    /// Returns the taproot HTLC of the deposit with its output, if the address was recomputed from them. The order record is then
    /// compared with the same output instead of a second one. `None` on all other chains.
    fn taproot(&self) -> Option<(&Htlc, &Output)> {
        None
    }

    /// Adds the family's own lines on what the payload locks, after the lines that all families share.
    fn describe(&self, summary: &mut Summary);

    /// Adds the same lines for a prepared order. A payload that will not be signed must not be described as if it were.
    fn describe_prepared(&self, unsigned: &Self::Unsigned, summary: &mut Summary) {
        let _ = unsigned;
        self.describe(summary);
    }

    /// Adds warnings about what the wallet contributed.
    fn warn_about_wallet(&self, context: &Self::Context, warnings: &mut Warnings) {
        let _ = (context, warnings);
    }

    /// Returns the codes of warnings of the verified order that do not apply to what was prepared.
    fn settled_warnings(&self, unsigned: &Self::Unsigned) -> Vec<Code> {
        let _ = unsigned;
        Vec::new()
    }

    /// Returns which bytes of the response each topic of the summary describes. Together they cover the whole payload.
    fn coverage(&self) -> Vec<ByteCoverage>;

    /// Combines the deposit with what only the wallet knows, and returns the payloads to sign.
    ///
    /// # Errors
    ///
    /// A [`Refusal`] at the member of the wallet context that is invalid.
    fn prepare(&self, context: &Self::Context, seal: Seal<Self>) -> Result<Self::Unsigned, Refusal>;

    /// Decodes a signed transaction in the form in which nodes of this family return it: see
    /// [`VerifiedOrder::matches_bytes`](crate::VerifiedOrder::matches_bytes).
    ///
    /// # Errors
    ///
    /// [`Code::TransactionMismatch`] if the bytes are not exactly one signed transaction, or another refusal of its parts.
    fn read_transaction(&self, bytes: &[u8], seal: Seal<Self>) -> Result<Transaction<Self>, Refusal>;

    /// Returns the role in this order of a transaction that an external wallet has signed or broadcast.
    ///
    /// The external wallet may choose nonce, fees, blockhash and gas coins. Everything else must equal what was verified, except what the
    /// family's specification says that a wallet may change or add: that is a warning.
    ///
    /// # Errors
    ///
    /// [`Code::TransactionMismatch`], with the first difference, if the transaction is not part of the order.
    fn matches(&self, transaction: &Transaction<Self>, warnings: &mut Warnings) -> Result<Role, Refusal>;
}

/// The native transaction type of a deposit's family.
pub type Transaction<D> = <<<D as Deposit>::Unsigned as Signable>::Signed as Signed>::Transaction;

/// Payloads ready to be signed, together with the signatures that they have so far.
pub trait Signable: fmt::Debug + Clone {
    /// What a signer receives: a transaction, typed data or a PSBT.
    type Payload: fmt::Debug;
    /// A key that signs locally. Wiped on drop, never printed.
    type Key: FromStr<Err = ParseError>;
    /// A signature made by an external signer.
    type Signature: FromStr<Err = Refusal>;
    /// Payloads with all their signatures.
    type Signed: Signed;

    /// Adds lines on what the wallet contributed, and last the digest of everything that will be signed.
    fn describe(&self, summary: &mut Summary);

    /// Returns the most that the signer pays to the chain; `None` if the signer pays nothing, because others send the payloads or pay for
    /// them.
    fn network_fee(&self) -> Option<NetworkFee>;

    /// Returns every request, whether it is signed or not, in the order in which payloads are sent.
    fn requests(&self) -> Vec<SigningRequest<Self::Payload>>;

    /// Returns the requests that have no signature yet.
    fn missing(&self) -> Vec<RequestId>;

    /// Returns the signatures so far, each with its request.
    fn signatures(&self) -> Vec<(RequestId, Self::Signature)>;

    /// Signs everything that a local key can sign.
    ///
    /// # Errors
    ///
    /// [`Code::KeyMismatch`] if the key can sign none of the payloads.
    fn sign(&mut self, key: &Self::Key, warnings: &mut Warnings, seal: Seal<Self>) -> Result<(), Refusal>;

    /// Checks that a signature is the signer's over the requested payload, and attaches it. Signatures attached before are kept.
    ///
    /// # Errors
    ///
    /// [`Code::NothingToSign`] if there is no such request; [`Code::SignatureMalformed`], [`Code::SignatureMismatch`] or another
    /// refusal of the signature, with a location inside it.
    fn attach(&mut self, id: RequestId, signature: Self::Signature, warnings: &mut Warnings, seal: Seal<Self>) -> Result<(), Refusal>;

    /// Checks and attaches the signatures of several keys over one payload as [`Signable::attach`] does: all of them or none. A key that has
    /// signed before is passed over.
    ///
    /// # Errors
    ///
    /// As [`Signable::attach`], with the signature's index in front of the location where several keys can sign; [`Code::SignatureCount`] for
    /// no signature, and for several where one key signs.
    fn attach_all(
        &mut self,
        id: RequestId,
        signatures: Vec<Self::Signature>,
        warnings: &mut Warnings,
        seal: Seal<Self>,
    ) -> Result<(), Refusal> {
        self.attach(id, only_one(signatures)?, warnings, seal)
    }

    /// Takes the signatures out of a transaction that an external signer has signed, each with its request. They are not proven yet.
    ///
    /// # Errors
    ///
    /// [`Code::TransactionMismatch`] if the bytes are not one of the payloads with signatures: see [`not_a_payload`].
    fn read_signed(&self, transaction: &[u8]) -> Result<Vec<(RequestId, Self::Signature)>, Refusal>;

    /// Combines payloads and signatures.
    ///
    /// # Errors
    ///
    /// Returns itself unchanged while a signature is missing.
    fn finish(self, seal: Seal<Self>) -> Result<Self::Signed, Self>;
}

/// Returns the JSON text of texts, numbers and lists, which always serialize.
#[must_use]
pub fn to_json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

/// Requires that one key has signed.
///
/// # Errors
///
/// [`Code::SignatureCount`] for none or several.
pub fn only_one<S>(signatures: Vec<S>) -> Result<S, Refusal> {
    let count = signatures.len();
    let mut signatures = signatures.into_iter();
    match (signatures.next(), signatures.next()) {
        (Some(signature), None) => Ok(signature),
        _ => Err(Refusal::new(Code::SignatureCount, "").with_expected("one signature").with_actual(count)),
    }
}

/// Returns the refusal of a signed transaction that is none of the payloads.
#[must_use]
pub fn not_a_payload() -> Refusal {
    let reason = "this is not the prepared transaction; if the wallet chose its own nonce or fees, compare it with the order by `matches`";
    Refusal::new(Code::TransactionMismatch, "").with_reason(reason)
}

/// Payloads with all their signatures.
pub trait Signed: fmt::Debug {
    /// The native type of a signed transaction.
    type Transaction;

    /// Returns the transactions in the order in which they are broadcast.
    fn transactions(&self) -> Vec<SignedTransaction<Self::Transaction>>;

    /// Returns one of the transactions as the text that nodes take. By default it is the bytes in hex.
    fn payload(&self, transaction: &SignedTransaction<Self::Transaction>) -> String {
        hex::encode(&transaction.bytes)
    }

    /// Returns the outputs that a transaction spends, on chains where two transactions that share one cannot both be mined.
    fn spends(transaction: &Self::Transaction) -> Vec<String> {
        let _ = transaction;
        Vec::new()
    }

    /// Returns the gasless submission for the service, which replaces a transaction; `None` on the self-funded path.
    fn gasless(&self) -> Option<GaslessSubmission> {
        None
    }
}

/// The payloads of an order while a signer signs them. Each signature is checked when it is attached; nothing else can be changed.
#[derive(Debug)]
pub struct Signing<'s, F: ChainFamily> {
    unsigned: &'s mut F::Unsigned,
    warnings: &'s mut Warnings,
}

impl<'s, F: ChainFamily> Signing<'s, F> {
    pub(crate) const fn new(unsigned: &'s mut F::Unsigned, warnings: &'s mut Warnings) -> Self {
        Self { unsigned, warnings }
    }

    /// Returns the payloads.
    #[must_use]
    pub const fn payloads(&self) -> &F::Unsigned {
        self.unsigned
    }

    /// Returns the requests that have no signature yet.
    #[must_use]
    pub fn requests(&self) -> Vec<SigningRequest<F::Payload>> {
        let missing = self.unsigned.missing();
        self.unsigned.requests().into_iter().filter(|request| missing.contains(&request.id)).collect()
    }

    /// Checks that a signature is the signer's over the requested payload, and attaches it.
    ///
    /// # Errors
    ///
    /// As [`Signable::attach`].
    pub fn attach(&mut self, id: RequestId, signature: impl Into<F::Signature>) -> Result<(), Refusal> {
        self.unsigned.attach(id, signature.into(), self.warnings, Seal::new())
    }
}

/// Lets a foreign signer type `S` sign for this family.
///
/// `Via` tells apart signers that have no type or trait in common, such as those of two major versions of an SDK. It is always inferred.
#[diagnostic::on_unimplemented(
    message = "`{S}` is not a signer for `{Self}`",
    note = "turn on the feature of the family for this signer, or sign with a closure: `sign_with_fn`"
)]
pub trait SignWith<S: ?Sized, Via = ()>: ChainFamily {
    /// The signer's error.
    type Error: std::error::Error + From<Refusal>;

    /// Has the signer sign everything that it can sign.
    ///
    /// # Errors
    ///
    /// The signer's own error, or the refusal of a signature.
    fn sign_with(signing: &mut Signing<'_, Self>, signer: &S) -> Result<(), Self::Error>;
}

/// Lets an asynchronous foreign signer type `S` sign for this family. `Via` is as for [`SignWith`].
#[diagnostic::on_unimplemented(
    message = "`{S}` is not an asynchronous signer for `{Self}`",
    note = "turn on the feature of the family for this signer, or sign with a closure: `sign_with_fn`"
)]
pub trait SignWithAsync<S: ?Sized, Via = ()>: ChainFamily {
    /// The signer's error.
    type Error: std::error::Error + From<Refusal>;

    /// Has the signer sign everything that it can sign.
    ///
    /// # Errors
    ///
    /// The signer's own error, or the refusal of a signature.
    fn sign_with_async(signing: &mut Signing<'_, Self>, signer: &S) -> impl Future<Output = Result<(), Self::Error>>;
}
