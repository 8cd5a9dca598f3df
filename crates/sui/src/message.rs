//! Sui has no gasless message: the contract takes no signature of the owner, so the owner's transaction itself is sent.
//! Another account can pay for it all the same: see [`crate::Wallet::sponsor`].

use countersign_core::{Code, Refusal};

/// The answer to whoever asks for the gasless way of an order: [`Code::NothingToSign`].
#[must_use]
pub fn gasless(at: impl Into<String>) -> Refusal {
    Refusal::new(Code::NothingToSign, at).with_reason("Sui has no gasless way: send the signed transaction, or let a sponsor pay for it")
}
