//! Signers of the alloy ecosystem: local keys, Ledger, Trezor, AWS, browser wallets.
//!
//! They receive the transaction or the typed data, never a bare hash, which hardware signers refuse.

use alloy_network::{TxSigner, TxSignerSync};
use alloy_primitives::{Address, Signature};
use alloy_signer::{Signer, SignerSync};
use countersign_abi::signature::ExternalSignature;
use countersign_core::family::{SignWith, SignWithAsync, Signable};
use countersign_core::{Code, Refusal, RequestId, Warnings};

use crate::transaction::Unsigned;
use crate::{Evm, Payload};

/// Why an alloy signer did not sign.
pub type SignerError = countersign_core::SignerError<alloy_signer::Error>;

/// Returns the requests that are not signed yet. First checks that the signer controls the sender, so that a hardware signer
/// never asks its owner to confirm a signature that would be refused.
fn open_requests(unsigned: &Unsigned, signer: Address) -> Result<Vec<(RequestId, Payload)>, Refusal> {
    if signer != unsigned.sender {
        let expected = format!("the signer of {}", unsigned.sender);
        return Err(Refusal::new(Code::KeyMismatch, "").with_expected(expected).with_actual(format!("the signer of {signer}")));
    }
    let missing = unsigned.missing();
    let open = unsigned.requests().into_iter().filter(|request| missing.contains(&request.id));
    Ok(open.map(|request| (request.id, request.payload)).collect())
}

impl<S: TxSignerSync<Signature> + SignerSync + ?Sized> SignWith<S> for Evm {
    type Error = SignerError;

    fn sign_with(unsigned: &mut Unsigned, signer: &S, warnings: &mut Warnings) -> Result<(), SignerError> {
        for (id, payload) in open_requests(unsigned, TxSignerSync::address(signer))? {
            let signature = match payload {
                Payload::Transaction(mut transaction) => signer.sign_transaction_sync(&mut transaction),
                Payload::TypedData(typed_data) => signer.sign_dynamic_typed_data_sync(&typed_data),
            };
            let signature = signature.map_err(SignerError::Signer)?;
            unsigned.attach(id, ExternalSignature::Ecdsa(signature), warnings)?;
        }
        Ok(())
    }
}

impl<S: TxSigner<Signature> + Signer + Sync + ?Sized> SignWithAsync<S> for Evm {
    type Error = SignerError;

    async fn sign_with_async(unsigned: &mut Unsigned, signer: &S, warnings: &mut Warnings) -> Result<(), SignerError> {
        for (id, payload) in open_requests(unsigned, TxSigner::address(signer))? {
            let signature = match payload {
                Payload::Transaction(mut transaction) => signer.sign_transaction(&mut transaction).await,
                Payload::TypedData(typed_data) => signer.sign_dynamic_typed_data(&typed_data).await,
            };
            let signature = signature.map_err(SignerError::Signer)?;
            unsigned.attach(id, ExternalSignature::Ecdsa(signature), warnings)?;
        }
        Ok(())
    }
}
