//! The interface between this crate and the family crates.
//!
//! **Not covered by semantic versioning.** Wallets call the states ([`VerifiedOrder`](crate::VerifiedOrder) and on), which
//! call these traits in the only order that is safe. The traits are public because each family is a separate crate. Nothing
//! else should implement or call them.

use std::fmt;
use std::str::FromStr;

use countersign_chains::Family;

use crate::report::{ByteCoverage, Code, ParseError, Refusal, Summary, Warnings};
use crate::state::{GaslessSubmission, RequestId, Role, SignedTransaction, SigningRequest};
use crate::verify::{OrderContext, SwapTerms};

/// A chain family: how its payloads are decoded, rebuilt, prepared and signed.
pub trait ChainFamily: Sized + 'static {
    /// Which family this is.
    const FAMILY: Family;
    /// The members of a response's `result` that carry this family's payloads. A payload of another family is refused.
    const PAYLOAD_KEYS: &'static [&'static str];
    /// What an order locks.
    type Deposit: Deposit;
}

/// What an order locks, rebuilt from its terms.
pub trait Deposit: fmt::Debug + Sized {
    /// What only the wallet knows: funding path, nonce, fees, coins, blockhash.
    type Wallet: fmt::Debug;
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
    fn verify(order: &OrderContext<'_>, warnings: &mut Warnings) -> Result<(Self, Option<SwapTerms>), Refusal>;

    /// Adds the family's own lines on what the payload locks, after the lines that all families share.
    fn describe(&self, summary: &mut Summary);

    /// Adds the same lines for a prepared order. A payload that will not be signed must not be described as if it were.
    fn describe_prepared(&self, unsigned: &Self::Unsigned, summary: &mut Summary) {
        let _ = unsigned;
        self.describe(summary);
    }

    /// Adds warnings about what the wallet contributed.
    fn warn_about_wallet(&self, wallet: &Self::Wallet, warnings: &mut Warnings) {
        let _ = (wallet, warnings);
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
    fn prepare(&self, wallet: &Self::Wallet) -> Result<Self::Unsigned, Refusal>;

    /// Returns the role in this order of a transaction that an external wallet has signed or broadcast.
    ///
    /// The external wallet may choose nonce, fees, blockhash and gas coins. Everything else must equal what was verified.
    ///
    /// # Errors
    ///
    /// [`Code::TransactionMismatch`], with the first difference, if the transaction is not part of the order.
    fn matches(&self, transaction: &Transaction<Self>) -> Result<Role, Refusal>;
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

    /// Returns every request, whether it is signed or not, in the order in which payloads are sent.
    fn requests(&self) -> Vec<SigningRequest<Self::Payload>>;

    /// Returns the requests that have no signature yet.
    fn missing(&self) -> Vec<RequestId>;

    /// Signs everything that a local key can sign.
    ///
    /// # Errors
    ///
    /// [`Code::KeyMismatch`] if the key can sign none of the payloads.
    fn sign(&mut self, key: &Self::Key, warnings: &mut Warnings) -> Result<(), Refusal>;

    /// Checks that a signature is the signer's over the requested payload, and attaches it. Signatures attached before are kept.
    ///
    /// # Errors
    ///
    /// [`Code::NothingToSign`] if there is no such request; [`Code::SignatureMalformed`], [`Code::SignatureMismatch`] or another
    /// refusal of the signature, with a location inside it.
    fn attach(&mut self, id: RequestId, signature: Self::Signature, warnings: &mut Warnings) -> Result<(), Refusal>;

    /// Combines payloads and signatures.
    ///
    /// # Errors
    ///
    /// Returns itself unchanged while a signature is missing.
    fn finish(self) -> Result<Self::Signed, Self>;
}

/// Payloads with all their signatures.
pub trait Signed: fmt::Debug {
    /// The native type of a signed transaction.
    type Transaction;

    /// Returns the transactions in the order in which they are broadcast.
    fn transactions(&self) -> Vec<SignedTransaction<Self::Transaction>>;

    /// Returns what is sent to the service instead of a transaction; `None` unless the wallet chose the gasless path.
    fn gasless(&self) -> Option<GaslessSubmission> {
        None
    }
}

/// Lets a foreign signer type `S` sign for this family.
pub trait SignWith<S: ?Sized>: ChainFamily {
    /// The signer's error.
    type Error: fmt::Debug + From<Refusal>;

    /// Has the signer sign everything that it can sign, and checks each signature.
    ///
    /// # Errors
    ///
    /// The signer's own error, or the refusal of a signature.
    fn sign_with(unsigned: &mut UnsignedOf<Self>, signer: &S, warnings: &mut Warnings) -> Result<(), Self::Error>;
}

/// Lets an asynchronous foreign signer type `S` sign for this family.
pub trait SignWithAsync<S: ?Sized>: ChainFamily {
    /// The signer's error.
    type Error: fmt::Debug + From<Refusal>;

    /// Has the signer sign everything that it can sign, and checks each signature.
    ///
    /// # Errors
    ///
    /// The signer's own error, or the refusal of a signature.
    fn sign_with_async(
        unsigned: &mut UnsignedOf<Self>,
        signer: &S,
        warnings: &mut Warnings,
    ) -> impl Future<Output = Result<(), Self::Error>>;
}

/// The wallet context of a family.
pub type WalletOf<F> = <<F as ChainFamily>::Deposit as Deposit>::Wallet;
/// The payloads of a family.
pub type UnsignedOf<F> = <<F as ChainFamily>::Deposit as Deposit>::Unsigned;
/// The native payload of a family's signing requests.
pub type PayloadOf<F> = <UnsignedOf<F> as Signable>::Payload;
/// The local key of a family.
pub type KeyOf<F> = <UnsignedOf<F> as Signable>::Key;
/// The external signature of a family.
pub type SignatureOf<F> = <UnsignedOf<F> as Signable>::Signature;
/// The signed payloads of a family.
pub type SignedOf<F> = <UnsignedOf<F> as Signable>::Signed;
/// The native transaction of a family.
pub type TransactionOf<F> = <SignedOf<F> as Signed>::Transaction;
