//! Signers of Mysten's SDK: any type that implements [`SuiSigner`]. They receive the transaction, never a bare digest.

use countersign_core::family::{SignWith, Signing};
use sui_crypto::{SignatureError, SuiSigner};
use sui_sdk_types::UserSignature;

use crate::Sui;
use crate::key::low_s;

/// Why a Sui signer did not sign.
pub type SignerError = countersign_core::SignerError<SignatureError>;

impl<S: SuiSigner + ?Sized> SignWith<S> for Sui {
    type Error = SignerError;

    /// Has the signer sign, and attaches the signature for the sender or the sponsor. A [`SuiSigner`] does not reveal its account, so
    /// the account is derived from the signature.
    fn sign_with(signing: &mut Signing<'_, Self>, signer: &S) -> Result<(), SignerError> {
        let unsigned = signing.payloads();
        let signature = match signer.sign_transaction(&unsigned.transaction()).map_err(SignerError::Signer)? {
            // Mysten's secp256r1 keys do not normalize s, and validators refuse it in the upper half.
            UserSignature::Simple(simple) => UserSignature::Simple(low_s(simple)),
            other => other,
        };
        let signers: Vec<_> = signature.derive_addresses().collect();
        let id = signers.iter().find_map(|address| unsigned.request_of(*address));
        let id = id.ok_or_else(|| unsigned.key_mismatch(signers.first().copied().unwrap_or(unsigned.sender)))?;
        Ok(signing.attach(id, signature)?)
    }
}
