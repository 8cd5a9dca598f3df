//! A wallet with solana-transaction 6 and no other: its types are those of countersign, without a second copy of any of them.

use std::error::Error;

use countersign::solana::{SignedOrder, TxContext, UnsignedOrder, VerifiedOrder};
use solana_keypair::Keypair;
use solana_message::VersionedMessage;
use solana_transaction::versioned::VersionedTransaction;

/// Signs with a keypair of the SDK.
///
/// # Errors
///
/// Returns a refusal, or the signer's error.
pub fn sign(order: &VerifiedOrder, context: TxContext, signer: &Keypair) -> Result<SignedOrder, Box<dyn Error>> {
    let mut unsigned = order.prepare(context)?;
    unsigned.sign_with(signer)?;
    Ok(unsigned.finish()?)
}

/// Returns the messages that an order asks a wallet to sign.
#[must_use]
pub fn messages(unsigned: &UnsignedOrder) -> Vec<VersionedMessage> {
    unsigned.requests().into_iter().map(|request| request.payload.message).collect()
}

/// Returns the signed transactions in the wallet's own type.
#[must_use]
pub fn natives(signed: &SignedOrder) -> Vec<VersionedTransaction> {
    signed.transactions().into_iter().map(|transaction| transaction.native).collect()
}
