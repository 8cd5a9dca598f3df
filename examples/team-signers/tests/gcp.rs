//! The library has no double of its own. Its client takes another address and other credentials, so a service of two methods on this machine
//! answers, with the messages of the library.

use std::convert::Infallible;

use alloy_signer_gcp::gcloud_sdk::google::cloud::kms::v1::{
    AsymmetricSignRequest, AsymmetricSignResponse, GetPublicKeyRequest, PublicKey, digest::Digest,
};
use alloy_signer_gcp::gcloud_sdk::tonic::codegen::{BoxFuture, Context, Poll, http};
use alloy_signer_gcp::gcloud_sdk::tonic::server::{Grpc, NamedService, UnaryService};
use alloy_signer_gcp::gcloud_sdk::tonic::transport::Server;
use alloy_signer_gcp::gcloud_sdk::tonic::{Request, Response, Status, body::Body, codegen};
use alloy_signer_gcp::gcloud_sdk::{Source, Token, TokenSourceType, error};
use countersign::Code;
use countersign_team_signers::gcp;
use k256::pkcs8::{EncodePublicKey, LineEnding};
use tokio::net::TcpListener;
use tokio_stream::wrappers::TcpListenerStream;
use tonic_prost::ProstCodec;

use crate::keys::Service;
use crate::orders::{self, code_of, written};

const KEY: &str = "projects/team/locations/global/keyRings/wallets/cryptoKeys/hot/cryptoKeyVersions/3";

/// A service that names one key and signs with another, which is the same one if it is honest.
#[derive(Clone)]
struct Kms {
    named: Service,
    signing: Service,
}

impl NamedService for Kms {
    const NAME: &'static str = "google.cloud.kms.v1.KeyManagementService";
}

impl codegen::Service<http::Request<Body>> for Kms {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<Self::Response, Infallible>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let Self { named, signing } = self.clone();
        assert_eq!(request.headers()["authorization"], "Bearer token");
        Box::pin(async move {
            Ok(match request.uri().path().rsplit('/').next() {
                Some("GetPublicKey") => Grpc::new(ProstCodec::default()).unary(Names(named), request).await,
                Some("AsymmetricSign") => Grpc::new(ProstCodec::default()).unary(Signs(signing), request).await,
                _ => Status::unimplemented("").into_http(),
            })
        })
    }
}

struct Names(Service);

impl UnaryService<GetPublicKeyRequest> for Names {
    type Response = PublicKey;
    type Future = BoxFuture<Response<PublicKey>, Status>;

    fn call(&mut self, request: Request<GetPublicKeyRequest>) -> Self::Future {
        assert_eq!(request.get_ref().name, KEY);
        let pem = self.0.public_key().to_public_key_pem(LineEnding::LF).unwrap();
        Box::pin(async { Ok(Response::new(PublicKey { pem, ..Default::default() })) })
    }
}

struct Signs(Service);

impl UnaryService<AsymmetricSignRequest> for Signs {
    type Response = AsymmetricSignResponse;
    type Future = BoxFuture<Response<AsymmetricSignResponse>, Status>;

    fn call(&mut self, request: Request<AsymmetricSignRequest>) -> Self::Future {
        let AsymmetricSignRequest { name, digest, .. } = request.into_inner();
        assert_eq!(name, KEY);
        let Some(Digest::Sha256(digest)) = digest.and_then(|digest| digest.digest) else { panic!("no digest") };
        let signature = self.0.sign_der(&digest);
        Box::pin(async { Ok(Response::new(AsymmetricSignResponse { signature, ..Default::default() })) })
    }
}

/// Credentials of nobody.
struct Credentials;

#[codegen::async_trait]
impl Source for Credentials {
    async fn token(&self) -> error::Result<Token> {
        Ok(Token::new("Bearer".into(), "token".into(), chrono::DateTime::<chrono::Utc>::MAX_UTC))
    }
}

async fn connect(named: Service, signing: Service) -> gcp::Client {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let service = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(Server::builder().add_service(Kms { named, signing }).serve_with_incoming(TcpListenerStream::new(listener)));
    gcp::connect(&service, TokenSourceType::ExternalSource(Box::new(Credentials))).await.unwrap()
}

fn key() -> alloy_signer_gcp::KeySpecifier {
    gcp::key("team", "global", "wallets", "hot", 3)
}

#[tokio::test]
async fn kms_signs_what_the_owners_own_key_signs() {
    let case = orders::evm();
    for high_s in [false, true] {
        let service = Service::new(case.key(), high_s);
        for (order, expected) in case.evm_paths() {
            let signed = gcp::sign(order, connect(service.clone(), service.clone()).await, key()).await.unwrap();
            assert_eq!(written(&signed), expected, "high s: {high_s}");
        }
    }
}

#[tokio::test]
async fn another_key_is_refused() {
    let case = orders::evm();
    let refused = async |named: Service, signing: Service| {
        let error = gcp::sign(case.evm(), connect(named, signing).await, key()).await.unwrap_err();
        code_of::<alloy_signer::Error>(&*error)
    };
    let (own, other) = (Service::new(case.key(), false), Service::of_another());
    // Found before anything is signed.
    assert_eq!(refused(other.clone(), other.clone()).await, Ok(Code::KeyMismatch));
    // Found by the library of alloy, which knows the public key too.
    let error = refused(own, other).await.unwrap_err();
    assert!(error.contains("failed to recover signature parity"), "{error}");
}
