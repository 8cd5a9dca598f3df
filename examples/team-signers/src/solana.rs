//! An Ed25519 key behind any backend of `solana-keychain`: Vault, AWS KMS, Google Cloud KMS, Turnkey, Privy, Fireblocks, a local key.

use countersign::solana::{SignedOrder, UnsignedOrder};
use countersign::{Refusal, SignerError};
use solana_keychain::SolanaSigner;

/// Has a signer sign the message of each transaction that it has not signed yet: the one that the owner sends, or the gasless one, which the
/// sponsor sends.
///
/// The backend gets bytes and returns 64 bytes, so this holds for every version of the SDK that it is built with. A Ledger signs no bytes:
/// it takes the transaction of the request (`TransactionSigner::sign_transaction`). Backends that change a transaction or send it
/// (`ModifyingSigner`, `SendingSigner`) cannot sign what was verified.
///
/// # Errors
///
/// `SignerError::Signer` with what the backend fails with; `SignerError::Refused` with `signature_mismatch` if the answer is not the owner's
/// signature of this message.
pub async fn sign(mut order: UnsignedOrder, signer: &dyn SolanaSigner) -> Result<SignedOrder, SignerError<solana_keychain::SignerError>> {
    for request in order.requests() {
        if !order.missing().contains(&request.id) {
            continue;
        }
        let signature = signer.sign_message(&request.message).await.map_err(SignerError::Signer)?;
        order.attach(request.id, <[u8; 64]>::from(signature))?;
    }
    Ok(order.finish().map_err(Refusal::from)?)
}
