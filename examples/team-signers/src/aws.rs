//! A key in AWS KMS: `ECC_SECG_P256K1`, for `SIGN_VERIFY`. The role of the process needs `kms:GetPublicKey` and `kms:Sign`.
//!
//! KMS answers in DER, without a recovery id, and with a high s half of the time. The library of alloy turns that into a signature, and
//! countersign proves it.

use std::error::Error;

use alloy_signer_aws::{AwsSigner, aws_sdk_kms::Client};
use countersign::evm::{SignedOrder, UnsignedOrder};

/// Has the key sign everything that is not signed yet: the transactions and the gasless message of an order, a redemption or a refund.
///
/// `client` is `Client::new(&aws_config::load_from_env().await)`, with the default features of `aws-config`. `key` is an id or an ARN; an alias
/// can begin to mean another key, which is then refused.
///
/// # Errors
///
/// What KMS fails with; `key_mismatch` before anything is signed if the key is not that of the order's owner.
pub async fn sign(mut order: UnsignedOrder, client: Client, key: &str) -> Result<SignedOrder, Box<dyn Error>> {
    let signer = AwsSigner::new(client, key.to_owned(), None).await?;
    order.sign_with_async(&signer).await?;
    Ok(order.finish()?)
}
