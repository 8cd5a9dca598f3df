//! Signatures of external signers, and their proofs.

use std::fmt;
use std::str::FromStr;

use countersign_core::{Code, Refusal, Warnings};
use ed25519_dalek::VerifyingKey;
use sui_crypto::Verifier as _;
use sui_crypto::simple::SimpleVerifier;
use sui_sdk_types::{SimpleSignature, UserSignature};

use crate::key::is_high_s;

/// The longest text of a signature that is parsed, in bytes. Even a multisig of zkLogin signatures is much shorter.
const MAX_SIGNATURE: usize = 64 * 1024;
/// The same limit for the signature's bytes, of which three are four characters.
pub(crate) const MAX_SIGNATURE_BYTES: usize = MAX_SIGNATURE / 4 * 3;

/// A signature of an external signer, of any of Sui's schemes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExternalSignature(pub(crate) UserSignature);

impl ExternalSignature {
    /// Returns the signature as Mysten's own type.
    #[must_use]
    pub const fn inner(&self) -> &UserSignature {
        &self.0
    }
}

impl From<UserSignature> for ExternalSignature {
    fn from(signature: UserSignature) -> Self {
        Self(signature)
    }
}

impl fmt::Display for ExternalSignature {
    /// Writes base64.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.to_base64())
    }
}

impl FromStr for ExternalSignature {
    type Err = Refusal;

    /// Parses base64 of flag, signature and public key, or of a multisig, zkLogin or passkey signature.
    ///
    /// # Errors
    ///
    /// [`Code::SignatureMalformed`] for any other text.
    fn from_str(text: &str) -> Result<Self, Refusal> {
        let malformed = || Refusal::new(Code::SignatureMalformed, "").with_expected("base64 of flag, signature and public key");
        if text.len() > MAX_SIGNATURE {
            return Err(malformed());
        }
        UserSignature::from_base64(text).map(Self).map_err(|_| malformed())
    }
}

/// Requires that s is in the lower half of the curve order, where a whole transaction is read: nodes do not execute it otherwise.
pub(crate) fn check_low_s(signature: &UserSignature) -> Result<(), Refusal> {
    match signature {
        UserSignature::Simple(simple) if is_high_s(simple) => Err(Refusal::new(Code::SignatureHighS, "")),
        _ => Ok(()),
    }
}

/// Returns whether a simple signature of this digest is valid. Returns `true` with a warning for any other scheme, which only the network can
/// verify.
pub(crate) fn is_sound(signature: &UserSignature, digest: &[u8; 32], warnings: &mut Warnings) -> bool {
    match signature {
        UserSignature::Simple(SimpleSignature::Ed25519 { signature, public_key }) => {
            let signature = ed25519_dalek::Signature::from_bytes(signature.inner());
            VerifyingKey::from_bytes(public_key.inner()).is_ok_and(|key| key.verify_strict(digest, &signature).is_ok())
        }
        UserSignature::Simple(simple) => SimpleVerifier.verify(digest, simple).is_ok(),
        other => {
            warnings.warn_about(Code::SignatureUnverified, other.scheme().name());
            true
        }
    }
}
