//! Signers of Mysten's ecosystem: anything that implements [`SuiSigner`]. They are given the transaction, never a bare digest.

use countersign_core::Warnings;
use countersign_core::family::{SignWith, Signable};
use sui_crypto::{SignatureError, SuiSigner};
use sui_sdk_types::UserSignature;

use crate::key::low_s;
use crate::sign::ExternalSignature;
use crate::{Sui, Unsigned};

/// Why a Sui signer did not sign.
pub type SignerError = countersign_core::SignerError<SignatureError>;

impl<S: SuiSigner + ?Sized> SignWith<S> for Sui {
    type Error = SignerError;

    /// A signer does not say which account it controls: its signature does.
    fn sign_with(unsigned: &mut Unsigned, signer: &S, warnings: &mut Warnings) -> Result<(), SignerError> {
        let signature = match signer.sign_transaction(&unsigned.transaction()).map_err(SignerError::Signer)? {
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
