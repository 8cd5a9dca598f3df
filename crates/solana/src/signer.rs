//! Signers of the Solana SDK: local keypairs, hardware, remote signers. They are given the message.

use std::fmt;

use countersign_core::family::{SignWith, Signable};
use countersign_core::{Refusal, Warnings};
use solana_signer::Signer;

use crate::Solana;
use crate::sign::{ExternalSignature, check_signer};
use crate::transaction::Unsigned;

/// Why a Solana signer did not sign.
#[derive(Debug)]
#[non_exhaustive]
pub enum SignerError {
    /// The signer's own error.
    Signer(solana_signer::SignerError),
    /// The signer controls another account, or made another signature than it was asked for.
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

impl From<solana_signer::SignerError> for SignerError {
    fn from(error: solana_signer::SignerError) -> Self {
        Self::Signer(error)
    }
}

impl From<Refusal> for SignerError {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl<S: Signer + ?Sized> SignWith<S> for Solana {
    type Error = SignerError;

    fn sign_with(unsigned: &mut Unsigned, signer: &S, warnings: &mut Warnings) -> Result<(), SignerError> {
        // A hardware signer with another account would ask its owner in vain.
        check_signer(unsigned.signer, signer.try_pubkey()?)?;
        let missing = unsigned.missing();
        for request in unsigned.requests().into_iter().filter(|request| missing.contains(&request.id)) {
            let signature = signer.try_sign_message(&request.message)?;
            unsigned.attach(request.id, ExternalSignature(signature), warnings)?;
        }
        Ok(())
    }
}
