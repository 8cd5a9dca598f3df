//! Signers of the alloy ecosystem: local keys, Ledger, Trezor, AWS, browser wallets, and the wallet of an alloy provider.
//!
//! They receive the transaction or the typed data, never a bare hash, which hardware signers refuse.

use alloy_network::{Ethereum, NetworkWallet, TxSigner, TxSignerSync};
use alloy_primitives::{Address, Signature};
use alloy_signer::{Signer, SignerSync};
use countersign_core::family::{SignWith, SignWithAsync, Signing};
use countersign_core::{Code, Refusal, SigningRequest};
use countersign_evm_core::signature::ExternalSignature;

use crate::{Evm, Payload};

/// Why an alloy signer did not sign.
pub type SignerError = countersign_core::SignerError<alloy_signer::Error>;

/// Returns the requests that are not signed yet. First checks that the signer controls the sender, so that a hardware signer
/// never asks its owner to confirm a signature that would be refused.
fn open_requests(signing: &Signing<'_, Evm>, signer: Address) -> Result<Vec<SigningRequest<Payload>>, Refusal> {
    let sender = signing.payloads().sender;
    if signer != sender {
        let expected = format!("the signer of {sender}");
        return Err(Refusal::new(Code::KeyMismatch, "").with_expected(expected).with_actual(format!("the signer of {signer}")));
    }
    Ok(signing.requests())
}

impl<S: TxSignerSync<Signature> + SignerSync + ?Sized> SignWith<S> for Evm {
    type Error = SignerError;

    fn sign_with(signing: &mut Signing<'_, Self>, signer: &S) -> Result<(), SignerError> {
        for request in open_requests(signing, TxSignerSync::address(signer))? {
            let signature = match request.payload {
                Payload::Transaction(mut transaction) => signer.sign_transaction_sync(&mut transaction),
                Payload::TypedData(typed_data) => signer.sign_dynamic_typed_data_sync(&typed_data),
            };
            let signature = signature.map_err(SignerError::Signer)?;
            signing.attach(request.id, ExternalSignature::Ecdsa(signature))?;
        }
        Ok(())
    }
}

impl<S: TxSigner<Signature> + Signer + Sync + ?Sized> SignWithAsync<S> for Evm {
    type Error = SignerError;

    async fn sign_with_async(signing: &mut Signing<'_, Self>, signer: &S) -> Result<(), SignerError> {
        for request in open_requests(signing, TxSigner::address(signer))? {
            let signature = match request.payload {
                Payload::Transaction(mut transaction) => signer.sign_transaction(&mut transaction).await,
                Payload::TypedData(typed_data) => signer.sign_dynamic_typed_data(&typed_data).await,
            };
            let signature = signature.map_err(SignerError::Signer)?;
            signing.attach(request.id, ExternalSignature::Ecdsa(signature))?;
        }
        Ok(())
    }
}

/// Tells wallets of alloy providers apart from alloy signers, in the parameter `Via` of [`SignWithAsync`]. It is always inferred.
#[derive(Debug, Clone, Copy)]
pub enum ViaWallet {}

/// The wallet of an alloy provider, such as `EthereumWallet`, signs transactions with its key for the sender. It cannot sign typed data,
/// so the gasless message stays unsigned; an order that needs nothing else is refused with [`Code::NothingToSign`].
impl<W: NetworkWallet<Ethereum>> SignWithAsync<W, ViaWallet> for Evm {
    type Error = SignerError;

    async fn sign_with_async(signing: &mut Signing<'_, Self>, wallet: &W) -> Result<(), SignerError> {
        let sender = signing.payloads().sender;
        if !wallet.has_signer_for(&sender) {
            let signers: Vec<_> = wallet.signer_addresses().map(|address| address.to_string()).collect();
            let refusal = Refusal::new(Code::KeyMismatch, "").with_expected(format!("a wallet with the signer of {sender}"));
            return Err(refusal.with_actual(format!("a wallet with the signers of: {}", signers.join(", "))).into());
        }
        let requests = signing.requests();
        let has_only_message = !requests.is_empty() && requests.iter().all(|request| matches!(request.payload, Payload::TypedData(_)));
        if has_only_message {
            let reason = "this wallet signs transactions only, not messages; use an alloy signer, or prepare the self-funded path";
            return Err(Refusal::new(Code::NothingToSign, "").with_reason(reason).into());
        }
        for request in requests {
            let Payload::Transaction(transaction) = request.payload else { continue };
            let envelope = wallet.sign_transaction_from(sender, transaction).await.map_err(SignerError::Signer)?;
            signing.attach(request.id, ExternalSignature::Ecdsa(*envelope.signature()))?;
        }
        Ok(())
    }
}
