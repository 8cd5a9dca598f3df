//! A key in Google Cloud KMS: `EC_SIGN_SECP256K1_SHA256`, for `ASYMMETRIC_SIGN`. The account of the process needs
//! `cloudkms.cryptoKeyVersions.viewPublicKey` and `cloudkms.cryptoKeyVersions.useToSign`.

use std::error::Error;

use alloy_signer_gcp::gcloud_sdk::google::cloud::kms::v1::key_management_service_client::KeyManagementServiceClient;
use alloy_signer_gcp::gcloud_sdk::{GoogleApi, GoogleAuthMiddleware, TokenSourceType};
use alloy_signer_gcp::{GcpKeyRingRef, GcpSigner, KeySpecifier};
use countersign::evm::{SignedOrder, UnsignedOrder};

/// The address of the service.
pub const SERVICE: &str = "https://cloudkms.googleapis.com";

/// A client of the service.
pub type Client = GoogleApi<KeyManagementServiceClient<GoogleAuthMiddleware>>;

/// Connects to the service at [`SERVICE`], or to a substitute. `TokenSourceType::Default` finds the credentials of the environment.
///
/// # Errors
///
/// What the library fails with.
pub async fn connect(service: &str, credentials: TokenSourceType) -> Result<Client, Box<dyn Error>> {
    let scopes = vec!["https://www.googleapis.com/auth/cloud-platform".to_owned()];
    Ok(GoogleApi::from_function_with_token_source(KeyManagementServiceClient::new, service, None, scopes, credentials).await?)
}

/// Names a version of a key. Another version is another account.
#[must_use]
pub fn key(project: &str, location: &str, ring: &str, name: &str, version: u64) -> KeySpecifier {
    KeySpecifier::new(GcpKeyRingRef::new(project, location, ring), name, version)
}

/// Has the key sign everything that is not signed yet.
///
/// # Errors
///
/// What the service fails with; `key_mismatch` before anything is signed if the key is not that of the order's owner.
pub async fn sign(mut order: UnsignedOrder, client: Client, key: KeySpecifier) -> Result<SignedOrder, Box<dyn Error>> {
    let signer = GcpSigner::new(client, key, None).await?;
    order.sign_with_async(&signer).await?;
    Ok(order.finish()?)
}
