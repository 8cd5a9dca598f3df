//! Signers of the Solana SDK: local keypairs, hardware wallets, remote signers. They receive the message.

use countersign_core::family::{SignWith, Signing};
use solana_signer::Signer;

use crate::Solana;
use crate::sign::{ExternalSignature, check_signer};

/// Why a Solana signer did not sign.
pub type SignerError = countersign_core::SignerError<solana_signer::SignerError>;

impl<S: Signer + ?Sized> SignWith<S> for Solana {
    type Error = SignerError;

    fn sign_with(signing: &mut Signing<'_, Self>, signer: &S) -> Result<(), SignerError> {
        // Checked first, so that a hardware signer never asks its owner to confirm a signature that would be refused.
        check_signer(signing.payloads().signer, signer.try_pubkey().map_err(SignerError::Signer)?)?;
        for request in signing.requests() {
            let signature = signer.try_sign_message(&request.message).map_err(SignerError::Signer)?;
            signing.attach(request.id, ExternalSignature(signature))?;
        }
        Ok(())
    }
}
