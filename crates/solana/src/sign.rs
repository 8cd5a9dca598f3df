//! Signing: the requests, external signatures and their proofs, and the local signer.

use std::fmt;
use std::str::FromStr;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use countersign_core::chains::digits;
use countersign_core::family::{Seal, Signable, Signed, not_a_payload};
use countersign_core::{
    Code, GaslessSubmission, NetworkFee, ParseError, Refusal, RequestId, Role, Scheme, SignedTransaction, SigningRequest, Summary, U256,
    Warnings,
};
use ed25519_dalek::{Signer as _, SigningKey, VerifyingKey};
use solana_signature::Signature;
use solana_transaction::versioned::VersionedTransaction;
use zeroize::Zeroizing;

use crate::address::Address;
use crate::received;
use crate::summary::duration;
use crate::transaction::{LIFE, Unsigned};

/// Decimal places of one SOL, whose base unit is the lamport.
const SOL: u8 = 9;
/// The longest base58 text of a key that is decoded. The time grows with the square of the length.
const MAX_KEY_TEXT: usize = 90;

/// An Ed25519 secret key. Wiped on drop, never printed.
///
/// ```
/// use countersign::solana::Key;
///
/// let key = Key::from_seed(&[7; 32]);
/// assert_eq!(key.address().to_string(), "GmaDrppBC7P5ARKV8g3djiwP89vz1jLK23V2GBjuAEGB");
/// ```
pub struct Key(SigningKey);

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(..)")
    }
}

impl Key {
    /// Parses base58 of a 32-byte seed, or of a 64-byte keypair whose public key must be that of its seed.
    ///
    /// # Errors
    ///
    /// [`Code::KeyMalformed`] for any other text.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        let malformed = || ParseError::from(Code::KeyMalformed);
        if text.len() > MAX_KEY_TEXT {
            return Err(malformed());
        }
        let mut bytes = Zeroizing::new([0; 64]);
        let len = bs58::decode(text).onto(bytes.as_mut_slice()).map_err(|_| malformed())?;
        let (Some(seed), Some(public)) = (bytes.first_chunk::<32>(), bytes.last_chunk::<32>()) else { return Err(malformed()) };
        let key = Self::from_seed(seed);
        match len {
            32 => Ok(key),
            // Only one encoding of the public key is canonical, so equal bytes are an equal point.
            64 if key.0.verifying_key().as_bytes() == public => Ok(key),
            _ => Err(malformed()),
        }
    }

    /// Creates a key from the 32 bytes of a seed. The caller must wipe its own copy.
    #[must_use]
    pub fn from_seed(seed: &[u8; 32]) -> Self {
        Self(SigningKey::from_bytes(seed))
    }

    /// Returns the account that this key controls.
    #[must_use]
    pub fn address(&self) -> Address {
        self.0.verifying_key().to_bytes().into()
    }

    fn sign(&self, message: &[u8]) -> Signature {
        self.0.sign(message).to_bytes().into()
    }
}

impl FromStr for Key {
    type Err = ParseError;

    /// Parses a key: see [`Key::parse`].
    fn from_str(text: &str) -> Result<Self, ParseError> {
        Self::parse(text)
    }
}

/// Returns whether an account signed a message, by the strict rules of Solana's nodes: small-order points and non-canonical encodings
/// are refused.
pub(crate) fn is_signed_by(signature: &Signature, account: &Address, message: &[u8]) -> bool {
    let signature = ed25519_dalek::Signature::from_bytes(signature.as_array());
    VerifyingKey::from_bytes(account.as_array()).is_ok_and(|key| key.verify_strict(message, &signature).is_ok())
}

/// A signature of an external signer, 64 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "Ed25519 has one form of signature")]
pub struct ExternalSignature(pub Signature);

impl ExternalSignature {
    /// Returns the owner's signature in a transaction that an external wallet has signed; `None` if `owner` is not one of its signers.
    /// Attaching the signature proves that the wallet signed the prepared message.
    #[must_use]
    pub fn from_transaction(transaction: &VersionedTransaction, owner: Address) -> Option<Self> {
        let mut slots = transaction.message.static_account_keys().iter().zip(&transaction.signatures);
        slots.find(|(key, _)| **key == owner).map(|(_, signature)| Self(*signature))
    }
}

impl From<Signature> for ExternalSignature {
    fn from(signature: Signature) -> Self {
        Self(signature)
    }
}

impl From<[u8; 64]> for ExternalSignature {
    /// Takes the 64 bytes of a signature, from a signer of any SDK and version.
    ///
    /// ```
    /// # use std::convert::Infallible;
    /// # use countersign::SignerError;
    /// # fn example(unsigned: &mut countersign::solana::UnsignedOrder, device: impl Fn(&[u8]) -> [u8; 64]) -> Result<(), SignerError<Infallible>> {
    /// unsigned.sign_with_fn(|request| Ok(device(&request.message)))
    /// # }
    /// ```
    fn from(bytes: [u8; 64]) -> Self {
        Self(bytes.into())
    }
}

impl fmt::Display for ExternalSignature {
    /// Writes base58.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for ExternalSignature {
    type Err = Refusal;

    /// Parses base58, base64 (88 characters with padding) or hex (128 digits, `0x` optional).
    ///
    /// # Errors
    ///
    /// [`Code::SignatureMalformed`] for any other text.
    fn from_str(text: &str) -> Result<Self, Refusal> {
        let digits = text.strip_prefix("0x").unwrap_or(text);
        let mut bytes = [0; 64];
        let is_read = match text.len() {
            128 | 130 => digits::into(digits, &mut bytes).is_ok(),
            // Base58 does not contain the character `=`.
            88 if text.ends_with("==") => STANDARD.decode_slice(text, &mut bytes).is_ok_and(|len| len == 64),
            64..=88 => bs58::decode(text).onto(&mut bytes).is_ok_and(|len| len == 64),
            _ => false,
        };
        if is_read {
            return Ok(Self(Signature::from(bytes)));
        }
        Err(Refusal::new(Code::SignatureMalformed, "")
            .with_expected("64 bytes in base58, base64 or hex")
            .with_actual(format!("{} characters", text.len())))
    }
}

impl Signable for Unsigned {
    type Payload = VersionedTransaction;
    type Key = Key;
    type Signature = ExternalSignature;
    type Signed = SignedPayloads;

    fn describe(&self, summary: &mut Summary) {
        crate::summary::describe_unsigned(self, summary);
    }

    fn network_fee(&self) -> Option<NetworkFee> {
        let payload = self.transaction.as_ref()?;
        // Every initiation creates at least the swap account.
        let rent = (self.role == Role::Initiate).then_some("the rent of the accounts that it creates");
        Some(NetworkFee::new(U256::from(payload.max_fee()), SOL).in_coin("SOL").and(rent))
    }

    fn requests(&self) -> Vec<SigningRequest<VersionedTransaction>> {
        let signer = self.signer.to_string();
        let requests = self.payloads().map(|(id, payload)| {
            let message = payload.message().to_vec();
            SigningRequest::new(id, signer.clone(), Scheme::Ed25519, payload.transaction().clone(), message.clone(), message)
        });
        requests.collect()
    }

    fn missing(&self) -> Vec<RequestId> {
        self.payloads().filter(|(_, payload)| payload.signature.is_none()).map(|(id, _)| id).collect()
    }

    fn signatures(&self) -> Vec<(RequestId, ExternalSignature)> {
        self.payloads().filter_map(|(id, payload)| Some((id, ExternalSignature(payload.signature?)))).collect()
    }

    fn sign(&mut self, key: &Key, _: &mut Warnings, _: Seal<Self>) -> Result<(), Refusal> {
        check_signer(self.signer, key.address())?;
        // The key was checked to be the signer's, so its signatures need no proof.
        for payload in self.transaction.iter_mut().chain(&mut self.gasless) {
            payload.signature = Some(key.sign(payload.message()));
        }
        Ok(())
    }

    fn attach(&mut self, id: RequestId, signature: ExternalSignature, _: &mut Warnings, _: Seal<Self>) -> Result<(), Refusal> {
        let signer = self.signer;
        let payload = self.payload_mut(id).ok_or_else(|| Refusal::new(Code::NothingToSign, ""))?;
        if !is_signed_by(&signature.0, &signer, payload.message()) {
            let refusal = Refusal::new(Code::SignatureMismatch, "").with_expected(format!("a signature of {signer} over the message"));
            // Only what the owner of an order sends may be changed by the wallet that signs it.
            if id != RequestId::Transaction {
                return Err(refusal);
            }
            let reason = format!(
                "if the wallet replaced the blockhash, which is valid for {}, it has signed another message: `matches` takes its whole \
                 transaction",
                duration(LIFE)
            );
            return Err(refusal.with_reason(reason));
        }
        payload.signature = Some(signature.0);
        Ok(())
    }

    fn read_signed(&self, transaction: &[u8]) -> Result<Vec<(RequestId, ExternalSignature)>, Refusal> {
        let received = received::from_bytes(transaction)?;
        let (id, _) = self.payloads().find(|(_, payload)| payload.transaction().message == received.message).ok_or_else(not_a_payload)?;
        let signature = ExternalSignature::from_transaction(&received, self.signer).ok_or_else(not_a_payload)?;
        Ok(vec![(id, signature)])
    }

    fn finish(self, _: Seal<Self>) -> Result<SignedPayloads, Self> {
        if self.missing().is_empty() { Ok(SignedPayloads(self)) } else { Err(self) }
    }
}

/// Requires that a signer controls the account whose signature is needed.
pub(crate) fn check_signer(needed: Address, signer: Address) -> Result<(), Refusal> {
    if signer == needed {
        return Ok(());
    }
    Err(Refusal::new(Code::KeyMismatch, "").with_expected(format!("the key of {needed}")).with_actual(format!("the key of {signer}")))
}

/// The payloads with all their signatures. Only [`Signable::finish`] creates them.
#[derive(Debug, Clone)]
pub struct SignedPayloads(Unsigned);

impl SignedPayloads {
    /// Returns the payloads, all of which are signed.
    #[must_use]
    pub const fn payloads(&self) -> &Unsigned {
        &self.0
    }
}

impl Signed for SignedPayloads {
    type Transaction = VersionedTransaction;

    fn transactions(&self) -> Vec<SignedTransaction<VersionedTransaction>> {
        let signed = self.0.transaction.iter().filter_map(|payload| {
            let (id, bytes, native) = (payload.id()?, payload.signed_bytes()?, payload.signed()?);
            Some(SignedTransaction::new(self.0.role, id.to_string(), bytes, native))
        });
        signed.collect()
    }

    /// Returns the whole transaction in base64. The sponsor's slot is as the service sent it.
    fn gasless(&self) -> Option<GaslessSubmission> {
        let bytes = self.0.gasless.as_ref()?.signed_bytes()?;
        Some(GaslessSubmission::new(STANDARD.encode(bytes)))
    }
}
