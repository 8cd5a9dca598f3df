//! Beside the RPC client: a transaction that countersign signed goes to it as it is.

use beside::versioned::VersionedTransaction;
use countersign::solana::{Address, solana_signature, solana_signer, solana_transaction};
use solana_client::client_error::Result;
use solana_client::rpc_client::RpcClient;
use solana_keypair::Keypair;

/// Sends a signed transaction.
///
/// # Errors
///
/// What the node refuses.
pub fn send(client: &RpcClient, signed: &solana_transaction::versioned::VersionedTransaction) -> Result<solana_signature::Signature> {
    let signed: &VersionedTransaction = signed;
    client.send_transaction(signed)
}

/// The signers of the Solana SDK are those that countersign asks.
#[must_use]
pub fn account(signer: &Keypair) -> Address {
    solana_signer::Signer::pubkey(signer)
}
