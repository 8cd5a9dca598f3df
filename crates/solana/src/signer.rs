//! Signers of the Solana SDK: local keypairs, hardware wallets, remote signers. They receive the message.

use countersign_core::Warnings;
use countersign_core::family::{SignWith, Signable};
use solana_signer::Signer;

use crate::Solana;
use crate::sign::{ExternalSignature, check_signer};
use crate::transaction::Unsigned;

/// Why a Solana signer did not sign.
pub type SignerError = countersign_core::SignerError<solana_signer::SignerError>;

impl<S: Signer + ?Sized> SignWith<S> for Solana {
    type Error = SignerError;

    fn sign_with(unsigned: &mut Unsigned, signer: &S, warnings: &mut Warnings) -> Result<(), SignerError> {
        // Checked first, so that a hardware signer never asks its owner to confirm a signature that would be refused.
        check_signer(unsigned.signer, signer.try_pubkey().map_err(SignerError::Signer)?)?;
        let missing = unsigned.missing();
        for request in unsigned.requests().into_iter().filter(|request| missing.contains(&request.id)) {
            let signature = signer.try_sign_message(&request.message).map_err(SignerError::Signer)?;
            unsigned.attach(request.id, ExternalSignature(signature), warnings)?;
        }
        Ok(())
    }
}
