//! A key at Turnkey.
//!
//! The library believes the address that it is given, and returns r, s and v as they come. countersign proves them, and makes a high s low.

use std::error::Error;

use alloy_signer_turnkey::{TurnkeyClient, TurnkeySigner};
use countersign::evm::{SignedOrder, UnsignedOrder};

/// Has the key of the order's owner sign everything that is not signed yet.
///
/// `client` is `TurnkeyClient::builder().api_key(..).build()`, with the API key of a user whose policies allow the signature. Where they ask for
/// a second approval, the client fails with `ActivityRequiresApproval`, and the order is signed again once it is given.
///
/// # Errors
///
/// What Turnkey fails with; `signature_mismatch` if the answer is not the owner's signature.
pub async fn sign(mut order: UnsignedOrder, client: TurnkeyClient, organization: &str) -> Result<SignedOrder, Box<dyn Error>> {
    let requests = order.requests();
    let owner = &requests.first().ok_or("nothing is left to sign")?.signer;
    let signer = TurnkeySigner::new(client, organization.to_owned(), owner.parse()?, None);
    order.sign_with_async(&signer).await?;
    Ok(order.finish()?)
}
