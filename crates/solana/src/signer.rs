//! Signers of the Solana SDK: local keypairs, hardware wallets, remote signers. They receive the message.
//!
//! Every major version of `solana-signer` has a trait of its own, so each has a feature, a marker for [`SignWith`] and an error.

use countersign_core::SignerError;
use countersign_core::family::{SignWith, Signing};
use solana_signature::Signature;

use crate::Solana;
use crate::address::Address;
use crate::sign::{ExternalSignature, check_signer};

/// Why a signer of `solana-signer` 3 did not sign.
#[cfg(feature = "solana-signer-3")]
pub type SignerError3 = SignerError<solana_signer_3::SignerError>;
/// Why a signer of `solana-signer` 4 did not sign.
#[cfg(feature = "solana-signer-4")]
pub type SignerError4 = SignerError<solana_signer_4::SignerError>;

/// Signers of `solana-signer` 3. It is always inferred.
#[cfg(feature = "solana-signer-3")]
#[derive(Debug)]
pub enum Signer3 {}
/// Signers of `solana-signer` 4. It is always inferred.
#[cfg(feature = "solana-signer-4")]
#[derive(Debug)]
pub enum Signer4 {}

#[cfg(feature = "solana-signer-3")]
impl<S: solana_signer_3::Signer + ?Sized> SignWith<S, Signer3> for Solana {
    type Error = SignerError3;

    fn sign_with(signing: &mut Signing<'_, Self>, signer: &S) -> Result<(), SignerError3> {
        sign_each(signing, || signer.try_pubkey(), |message| signer.try_sign_message(message))
    }
}

#[cfg(feature = "solana-signer-4")]
impl<S: solana_signer_4::Signer + ?Sized> SignWith<S, Signer4> for Solana {
    type Error = SignerError4;

    fn sign_with(signing: &mut Signing<'_, Self>, signer: &S) -> Result<(), SignerError4> {
        sign_each(signing, || signer.try_pubkey(), |message| signer.try_sign_message(message))
    }
}

fn sign_each<E>(
    signing: &mut Signing<'_, Solana>,
    account: impl FnOnce() -> Result<Address, E>,
    sign: impl Fn(&[u8]) -> Result<Signature, E>,
) -> Result<(), SignerError<E>> {
    // Checked first, so that a hardware signer never asks its owner to confirm a signature that would be refused.
    check_signer(signing.payloads().signer, account().map_err(SignerError::Signer)?)?;
    for request in signing.requests() {
        let signature = sign(&request.message).map_err(SignerError::Signer)?;
        signing.attach(request.id, ExternalSignature(signature))?;
    }
    Ok(())
}
