//! countersign with Mysten's own crates. They provide object references and keys, and receive the signed transactions
//! in their own types.

use std::error::Error;

use beside::{Address, ObjectReference, SignedTransaction, UserSignature};
use countersign::sui::{ExternalSignature, SignedOrder, TxContext, UnsignedOrder, VerifiedOrder};
use countersign::{CreateOrder, Policy, Proposal, Refusal, Registry, RequestId};
use sui_crypto::SuiSigner;
use sui_crypto::ed25519::Ed25519PrivateKey;

/// Verifies a response.
///
/// # Errors
///
/// Returns the refusal of the response.
pub fn verify(request: &CreateOrder, response: &[u8], registry: &Registry) -> Result<VerifiedOrder, Refusal> {
    countersign::sui::verify(Proposal::new(request, response), registry, &Policy::default())
}

/// Adds gas coins and signs with a key of Mysten's SDK. Returns the transaction in the type for its clients.
///
/// # Errors
///
/// Returns the key's error or a refusal.
pub fn sign(order: &VerifiedOrder, coins: Vec<ObjectReference>, key: &Ed25519PrivateKey) -> Result<Vec<SignedTransaction>, Box<dyn Error>> {
    let mut unsigned = order.prepare(TxContext::new(1_000, 10_000_000, coins))?;
    unsigned.sign_with(key)?;
    let signed: SignedOrder = unsigned.finish()?;
    Ok(signed.transactions().into_iter().map(|transaction| transaction.native).collect())
}

/// Lets another signer of the SDK pay for the gas. Both sign the same transaction, and each signature is verified.
///
/// # Errors
///
/// Returns the signer's error or a refusal.
pub fn sponsor(unsigned: &mut UnsignedOrder, signer: &impl SuiSigner) -> Result<(), Box<dyn Error>> {
    let payer: Option<Address> = unsigned.payloads().sponsor();
    assert!(payer.is_some(), "the wallet pays its own gas");
    let transaction: beside::Transaction = unsigned.payloads().transaction();
    let signature: UserSignature = signer.sign_transaction(&transaction)?;
    unsigned.attach(RequestId::Sponsor, ExternalSignature::from(signature))?;
    Ok(())
}
