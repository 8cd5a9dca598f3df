//! Signers of starknet-rs, and of starknet-rust, its maintained fork: local keys, Ledger.
//!
//! The signer traits of both sign hashes. These hashes are computed from the verified order, and each returned signature is
//! proven.

use std::error::Error;
use std::fmt;

use countersign_core::Refusal;
use countersign_core::family::{SignWithAsync, Signing};
use starknet_types_core::felt::Felt;

use crate::Starknet;
use crate::payloads;
use crate::signature::ExternalSignature;

/// Why a signer of starknet-rs or starknet-rust did not sign. `P` is its error for the public key, `S` its error for signing.
///
/// The message contains the cause, so [`source`](Error::source) is the cause's own source.
#[derive(Debug)]
#[non_exhaustive]
pub enum SignerError<P, S> {
    /// The signer did not return its public key.
    PublicKey(P),
    /// The signer did not sign.
    Sign(S),
    /// The signer has another key, or its signature is not valid for the requested hash.
    Refused(Refusal),
}

impl<P: fmt::Display, S: fmt::Display> fmt::Display for SignerError<P, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PublicKey(error) => write!(f, "the signer did not return its public key: {error}"),
            Self::Sign(error) => write!(f, "the signer did not sign: {error}"),
            Self::Refused(refusal) => write!(f, "the signature was refused: {refusal}"),
        }
    }
}

impl<P: Error + 'static, S: Error + 'static> Error for SignerError<P, S> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::PublicKey(error) => error.source(),
            Self::Sign(error) => error.source(),
            Self::Refused(refusal) => refusal.source(),
        }
    }
}

impl<P, S> From<Refusal> for SignerError<P, S> {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

/// Tells signers of starknet-rust apart from those of starknet-rs, in the parameter `Via` of [`SignWithAsync`]. It is always inferred.
#[cfg(feature = "starknet-rust-signer")]
#[derive(Debug)]
pub enum ViaStarknetRust {}

/// Lets the signers of a crate sign. The traits of the two crates have the same functions, and are two traits to Rust.
macro_rules! let_sign {
    ($sdk:ident, $via:ty) => {
        impl<S: $sdk::Signer + Sync + ?Sized> SignWithAsync<S, $via> for Starknet
        where
            S::GetPublicKeyError: 'static,
            S::SignError: 'static,
        {
            type Error = SignerError<S::GetPublicKeyError, S::SignError>;

            /// Signs all requests that are not signed yet. Each signature is proven with the signer's own public key. If the wallet gave
            /// the account's public key, the signer must have that key.
            async fn sign_with_async(signing: &mut Signing<'_, Self>, signer: &S) -> Result<(), Self::Error> {
                let public_key = signer.get_public_key().await.map_err(SignerError::PublicKey)?.scalar();
                // Checked first, so that a hardware signer never asks its owner to confirm a signature that would be refused.
                payloads::check_public_key(signing.payloads().public_key, || public_key)?;
                for request in signing.requests() {
                    let hash = Felt::from_bytes_be_slice(&request.digest);
                    let made = signer.sign_hash(&hash).await.map_err(SignerError::Sign)?;
                    signing.attach(request.id, ExternalSignature::from([made.r, made.s]).with_public_key(public_key))?;
                }
                Ok(())
            }
        }
    };
}

#[cfg(feature = "starknet-signer")]
let_sign!(starknet_signers, ());
#[cfg(feature = "starknet-rust-signer")]
let_sign!(starknet_rust_signers, ViaStarknetRust);
