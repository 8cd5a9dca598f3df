//! The double is the AWS SDK's own: `aws-smithy-mocks`.

use alloy_signer_aws::aws_sdk_kms::operation::get_public_key::GetPublicKeyOutput;
use alloy_signer_aws::aws_sdk_kms::operation::sign::SignOutput;
use alloy_signer_aws::aws_sdk_kms::primitives::Blob;
use alloy_signer_aws::aws_sdk_kms::types::{MessageType, SigningAlgorithmSpec};
use alloy_signer_aws::aws_sdk_kms::{self, Client};
use aws_smithy_mocks::{RuleMode, mock, mock_client};
use countersign::Code;
use countersign_team_signers::aws;
use k256::pkcs8::EncodePublicKey;

use crate::keys::Service;
use crate::orders::{self, code_of, written};

const KEY: &str = "arn:aws:kms:eu-central-1:111122223333:key/wallet";

/// KMS that names one key and signs with another, which is the same one if it is honest.
fn kms(named: Service, signing: Service) -> Client {
    let public_key = mock!(Client::get_public_key).match_requests(|asked| asked.key_id() == Some(KEY)).then_output(move || {
        GetPublicKeyOutput::builder().public_key(Blob::new(named.public_key().to_public_key_der().unwrap().into_vec())).build()
    });
    let sign = mock!(Client::sign)
        .match_requests(|asked| {
            let form = (asked.message_type(), asked.signing_algorithm());
            asked.key_id() == Some(KEY) && form == (Some(&MessageType::Digest), Some(&SigningAlgorithmSpec::EcdsaSha256))
        })
        .then_compute_output(move |asked| {
            SignOutput::builder().signature(Blob::new(signing.sign_der(asked.message().unwrap().as_ref()))).build()
        });
    mock_client!(aws_sdk_kms, RuleMode::MatchAny, &[&public_key, &sign])
}

#[tokio::test]
async fn kms_signs_what_the_owners_own_key_signs() {
    let case = orders::evm();
    for high_s in [false, true] {
        let key = Service::new(case.key(), high_s);
        for (order, expected) in case.evm_paths() {
            let signed = aws::sign(order, kms(key.clone(), key.clone()), KEY).await.unwrap();
            assert_eq!(written(&signed), expected, "high s: {high_s}");
        }
    }
}

#[tokio::test]
async fn another_key_is_refused() {
    let case = orders::evm();
    let refused = async |named: Service, signing: Service| {
        let error = aws::sign(case.evm(), kms(named, signing), KEY).await.unwrap_err();
        code_of::<alloy_signer::Error>(&*error)
    };
    let (own, other) = (Service::new(case.key(), false), Service::of_another());
    // Found before anything is signed.
    assert_eq!(refused(other.clone(), other.clone()).await, Ok(Code::KeyMismatch));
    // Found by the library of alloy, which knows the public key too.
    let error = refused(own, other).await.unwrap_err();
    assert!(error.contains("failed to recover signature parity"), "{error}");
}
