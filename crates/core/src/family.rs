//! What a chain family adds to the common flow.

use std::borrow::Cow;
use std::fmt;

use countersign_chains::Family;
use serde::Serialize;

use crate::code::Code;
use crate::json::Node;
use crate::number::Hex;
use crate::order::{Order, Terms};
use crate::refusal::Refusal;
use crate::summary::{Span, Summary, Warnings};

/// Something to sign: who signs, the payload, and its digest. Hardware signers want the payload, not only the digest.
#[derive(Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SigningRequest {
    /// Which payload of the order this is: `approval`, `initiate`, `typed_data`, ...; `input_0` and on, where a family signs
    /// each input by itself.
    pub name: Cow<'static, str>,
    /// The account whose signature is needed, as its network's users write it.
    pub signer: String,
    /// The bytes that the digest is taken of.
    pub payload: Hex,
    /// What the signature is made over.
    pub digest: Hex,
}

impl SigningRequest {
    /// A request for `signer`.
    #[must_use]
    pub fn new(name: impl Into<Cow<'static, str>>, signer: String, payload: Vec<u8>, digest: Vec<u8>) -> Self {
        Self { name: name.into(), signer, payload: Hex(payload), digest: Hex(digest) }
    }
}

impl fmt::Debug for SigningRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SigningRequest({}, {} bytes, digest {})", self.name, self.payload.0.len(), self.digest)
    }
}

/// A chain family: how its payloads are decoded, rebuilt, prepared and signed.
///
/// Implementations hold no state. The type states ([`crate::Proposed`] and on) drive them, so that no step can be left
/// out; none of these functions does I/O or reads a clock.
pub trait ChainFamily: Sized {
    /// Which family this is.
    const FAMILY: Family;
    /// The members of a result that carry this family's payloads; those of other families beside them are refused.
    const PAYLOAD_KEYS: &'static [&'static str];

    /// What the order locks, rebuilt from the terms.
    type Deposit: fmt::Debug;
    /// What only the wallet knows: nonce, fees, coins, blockhash.
    type Wallet: fmt::Debug;
    /// Payloads ready to be signed; serializes as the batch contract's artefacts without signatures.
    type Unsigned: fmt::Debug + Serialize;
    /// A key that signs locally. Wiped on drop, never printed.
    type Key;
    /// A signature as it comes from outside.
    type Signature;
    /// Signed payloads; serializes as the batch contract's artefacts.
    type Artefacts: fmt::Debug + Serialize;

    /// Decodes the result, rebuilds it from the order's own terms and refuses it where the two differ.
    ///
    /// The terms are `None` only where the payload does not state them (a Bitcoin address without a record).
    ///
    /// # Errors
    ///
    /// A [`Refusal`] at the first member or byte that differs.
    fn check(order: &Order<'_>, warnings: &mut Warnings) -> Result<(Self::Deposit, Option<Terms>), Refusal>;

    /// Says what the payload locks beyond the common lines.
    fn describe(deposit: &Self::Deposit, summary: &mut Summary);

    /// Which bytes of the response each line of the summary stands for: together they cover the payload.
    fn covers(deposit: &Self::Deposit) -> Vec<Span>;

    /// Reads the wallet context of the batch contract.
    ///
    /// # Errors
    ///
    /// A [`Refusal`] at the member that is missing or malformed.
    fn read_wallet(wallet: Node<'_, '_>) -> Result<Self::Wallet, Refusal>;

    /// Adds what only the wallet knows.
    ///
    /// # Errors
    ///
    /// A [`Refusal`] at a member of `/wallet` that cannot be.
    fn prepare(deposit: &Self::Deposit, wallet: &Self::Wallet) -> Result<Self::Unsigned, Refusal>;

    /// Says what the wallet added, and ends with the digest of everything that will be signed.
    fn describe_unsigned(unsigned: &Self::Unsigned, summary: &mut Summary);

    /// What a signer outside is asked for, in order.
    fn requests(unsigned: &Self::Unsigned) -> Vec<SigningRequest>;

    /// Reads a local key.
    ///
    /// # Errors
    ///
    /// [`Code::KeyMalformed`], without any part of the text.
    fn read_key(text: &str) -> Result<Self::Key, Code>;

    /// Signs everything with a local key.
    ///
    /// # Errors
    ///
    /// [`Code::KeyMismatch`] if the key does not control the sender.
    fn sign(unsigned: Self::Unsigned, key: &Self::Key, warnings: &mut Warnings) -> Result<Self::Artefacts, Refusal>;

    /// Reads a signature from outside, in the spellings that signers of this family use.
    ///
    /// # Errors
    ///
    /// [`Code::SignatureMalformed`] or a code that says more.
    fn read_signature(signature: Node<'_, '_>) -> Result<Self::Signature, Refusal>;

    /// Proves signatures from outside and attaches them. Requests without a signature stay unsigned.
    ///
    /// # Errors
    ///
    /// A [`Refusal`] at `/signatures/<request>` if a signature is not the signer's over exactly this digest.
    fn attach(
        unsigned: Self::Unsigned,
        signatures: Vec<(String, Self::Signature)>,
        warnings: &mut Warnings,
    ) -> Result<Self::Artefacts, Refusal>;

    /// The `signature` of the gasless `PATCH /v2/orders/{id}?action=initiate`; `None` where the family has no gasless way or
    /// nothing was signed for it.
    fn submission(_: &Self::Artefacts) -> Option<String> {
        None
    }
}
