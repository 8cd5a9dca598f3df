//! Signers of Mysten's ecosystem: anything that implements [`SuiSigner`]. They are given the transaction, never a bare digest.

use std::fmt;

use countersign_core::family::{SignWith, Signable};
use countersign_core::{Refusal, Warnings};
use sui_crypto::{SignatureError, SuiSigner};
use sui_sdk_types::UserSignature;

use crate::key::low_s;
use crate::sign::ExternalSignature;
use crate::{Sui, Unsigned};

/// Why a Sui signer did not sign.
#[derive(Debug)]
#[non_exhaustive]
pub enum SignerError {
    /// The signer's own error.
    Signer(SignatureError),
    /// The signer controls neither the sender nor the sponsor, or made another signature than it was asked for.
    Refused(Refusal),
}

impl fmt::Display for SignerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Signer(_) => f.write_str("the signer failed"),
            Self::Refused(_) => f.write_str("the signature was refused"),
        }
    }
}

impl std::error::Error for SignerError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Signer(error) => Some(error),
            Self::Refused(refusal) => Some(refusal),
        }
    }
}

impl From<SignatureError> for SignerError {
    fn from(error: SignatureError) -> Self {
        Self::Signer(error)
    }
}

impl From<Refusal> for SignerError {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl<S: SuiSigner + ?Sized> SignWith<S> for Sui {
    type Error = SignerError;

    /// A signer does not say which account it controls: its signature does.
    fn sign_with(unsigned: &mut Unsigned, signer: &S, warnings: &mut Warnings) -> Result<(), SignerError> {
        let signature = match signer.sign_transaction(&unsigned.transaction())? {
            // Mysten's secp256r1 keys leave s as it falls, and validators refuse it in the upper half.
            UserSignature::Simple(simple) => UserSignature::Simple(low_s(simple)),
            other => other,
        };
        let signers: Vec<_> = signature.derive_addresses().collect();
        let id = signers.iter().find_map(|address| unsigned.request_of(*address));
        let id = id.ok_or_else(|| unsigned.key_mismatch(signers.first().copied().unwrap_or(unsigned.sender)))?;
        Ok(unsigned.attach(id, ExternalSignature::from(signature), warnings)?)
    }
}
