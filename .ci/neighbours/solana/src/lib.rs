//! countersign with the RPC client. The client provides the blockhash, a keypair of the SDK signs, and the client
//! sends the signed transaction unchanged.

use std::error::Error;

use beside::versioned::VersionedTransaction;
use countersign::solana::{SignedOrder, TxContext, VerifiedOrder, solana_signature};
use countersign::{CreateOrder, Policy, Proposal, Refusal, Registry};
use solana_client::client_error::Result as ClientResult;
use solana_client::rpc_client::RpcClient;
use solana_keypair::Keypair;

/// Verifies a response.
///
/// # Errors
///
/// Returns the refusal of the response.
pub fn verify(request: &CreateOrder, response: &[u8], registry: &Registry) -> Result<VerifiedOrder, Refusal> {
    countersign::solana::verify(Proposal::new(request, response), registry, &Policy::default())
}

/// Prepares the order with the client's blockhash, and signs it with a signer of the SDK.
///
/// # Errors
///
/// Returns the node's or the signer's error, or a refusal.
pub fn sign(client: &RpcClient, order: &VerifiedOrder, signer: &Keypair) -> Result<SignedOrder, Box<dyn Error>> {
    let mut unsigned = order.prepare(TxContext::new().with_blockhash(client.get_latest_blockhash()?))?;
    unsigned.sign_with(signer)?;
    Ok(unsigned.finish()?)
}

/// Sends the signed transactions.
///
/// # Errors
///
/// Returns the node's error.
pub fn send(client: &RpcClient, signed: &SignedOrder) -> ClientResult<Vec<solana_signature::Signature>> {
    let natives = signed.transactions().into_iter().map(|transaction| -> VersionedTransaction { transaction.native });
    natives.map(|native| client.send_transaction(&native)).collect()
}
