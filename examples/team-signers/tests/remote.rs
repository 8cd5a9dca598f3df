//! The double is a server on this machine that holds published keys.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use countersign::{Code, RequestId, Unsigned, evm};
use countersign_team_signers::remote;
use ed25519_dalek::{Signer, SigningKey};
use reqwest::{Client, Url};
use serde_json::{Value, json};
use wiremock::matchers::{header, method, path};
use wiremock::{Mock, MockServer, Request, ResponseTemplate};

use crate::keys::{Service, bytes, hex};
use crate::orders::{self, code_of};

/// Starts a service that answers a request for a signature by a function.
async fn start(answer: impl Fn(&Value) -> String + Send + Sync + 'static) -> (MockServer, Url) {
    let server = MockServer::start().await;
    let respond = move |request: &Request| ResponseTemplate::new(200).set_body_string(answer(&request.body_json().unwrap()));
    Mock::given(method("POST")).and(path("/sign")).and(header("Authorization", "Bearer token")).respond_with(respond).mount(&server).await;
    let url = format!("{}/sign", server.uri()).parse().unwrap();
    (server, url)
}

/// Has a service sign an EVM order, and returns the order as text.
async fn signed(order: evm::UnsignedOrder, answer: impl Fn(&Value) -> String + Send + Sync + 'static) -> Result<Vec<String>, String> {
    let (_server, url) = start(answer).await;
    let order = remote::signed(order.into(), &Client::new(), &url, "token").await;
    let order = order.map_err(|error| code_of::<std::io::Error>(&*error).map_or_else(|other| other, |code| code.to_string()))?;
    let transactions = order.transactions().into_iter().map(|transaction| hex(&transaction.bytes));
    Ok(transactions.chain(order.gasless().map(|body| body.signature)).collect())
}

fn digest(asked: &Value) -> Vec<u8> {
    assert_eq!(asked["scheme"], "secp256k1_keccak256");
    bytes(asked["digest"].as_str().unwrap())
}

#[tokio::test]
async fn every_spelling_of_the_owners_signature_gives_the_same_bytes() {
    let case = orders::evm();
    for high_s in [false, true] {
        let service = Service::new(case.key(), high_s);
        let spellings: [fn(&Service, &[u8]) -> String; 5] = [
            |service, digest| hex(&service.sign_der(digest)),
            |service, digest| hex(&service.sign(digest).0.to_bytes()),
            |service, digest| {
                let (signature, id) = service.sign(digest);
                hex(&[&signature.to_bytes()[..], &[27 + id.is_y_odd() as u8]].concat())
            },
            |service, digest| {
                let (signature, id) = service.sign(digest);
                json!({"r": format!("0x{:x}", signature.r()), "s": format!("0x{:x}", signature.s()), "v": id.is_y_odd() as u8}).to_string()
            },
            |service, digest| {
                let point = service.public_key().to_encoded_point(false);
                json!({"signature": hex(&service.sign_der(digest)), "public_key": hex(point.as_bytes())}).to_string()
            },
        ];
        for (at, spell) in spellings.into_iter().enumerate() {
            for (order, expected) in case.evm_paths() {
                let service = service.clone();
                let signed = signed(order, move |asked| spell(&service, &digest(asked))).await;
                assert_eq!(signed, Ok(expected), "spelling {at}, high s: {high_s}");
            }
        }
    }
}

#[tokio::test]
async fn a_wrong_answer_is_refused() {
    let case = orders::evm();
    let own = Service::new(case.key(), false);
    let refused = async |code: &str, answer: Box<dyn Fn(&Value) -> String + Send + Sync>| {
        assert_eq!(signed(case.evm(), answer).await, Err(code.to_owned()));
    };
    let by = |service: Service| move |asked: &Value| service.sign_der(&digest(asked));
    let (of_own, of_other) = (by(own.clone()), by(Service::of_another()));
    // Another key.
    refused("signature_mismatch", Box::new(move |asked| hex(&of_other(asked)))).await;
    // Another message.
    let service = own.clone();
    refused("signature_mismatch", Box::new(move |_| hex(&service.sign_der(&[7; 32])))).await;
    // The public key of another signer beside a signature of the owner.
    let (signature, point) = (of_own.clone(), Service::of_another().public_key().to_encoded_point(true));
    let with_key = move |asked: &Value| json!({"signature": hex(&signature(asked)), "public_key": hex(point.as_bytes())}).to_string();
    refused("key_mismatch", Box::new(with_key)).await;
    // A signature with one bit changed, one that is cut, and text.
    let signature = of_own.clone();
    let changed = move |asked: &Value| {
        let mut der = signature(asked);
        *der.last_mut().unwrap() ^= 1;
        hex(&der)
    };
    refused("signature_mismatch", Box::new(changed)).await;
    refused("signature_malformed", Box::new(move |asked| hex(&of_own(asked)[..20]))).await;
    refused("signature_malformed", Box::new(|_| "no such key".into())).await;
    refused("the answer is too long for a signature", Box::new(|_| "00".repeat(4096))).await;
    // The service refuses.
    let server = MockServer::start().await;
    Mock::given(method("POST")).respond_with(ResponseTemplate::new(403)).mount(&server).await;
    let url = server.uri().parse().unwrap();
    let error = remote::signed(case.evm().into(), &Client::new(), &url, "token").await.unwrap_err();
    assert!(error.to_string().contains("403"), "{error}");
}

#[tokio::test]
async fn a_refused_answer_leaves_the_order_as_it_was() {
    let case = orders::evm();
    let (own, other) = (Service::new(case.key(), false), Service::of_another());
    // The payment is signed by another key, and the approval by the owner's.
    let (_server, url) = start(move |asked| {
        let service = if asked["id"] == "initiate" { &other } else { &own };
        hex(&service.sign_der(&digest(asked)))
    })
    .await;
    let mut order: Unsigned = case.evm().into();
    let error = remote::sign(&mut order, &Client::new(), &url, "token").await.unwrap_err();
    assert_eq!(code_of::<std::io::Error>(&*error), Ok(Code::SignatureMismatch));
    assert_eq!(order.missing(), [RequestId::Initiate]);
    let Unsigned::Evm(mut order) = order else { panic!("an EVM order") };
    order.sign(&case.key().parse::<evm::Key>().unwrap()).unwrap();
    let [(_, expected), _] = case.evm_paths();
    assert_eq!(orders::written(&order.finish().unwrap()), expected);
}

#[tokio::test]
async fn the_same_function_signs_orders_of_another_family() {
    let case = orders::solana();
    let pair: [u8; 64] = bs58::decode(case.key()).into_vec().unwrap().try_into().unwrap();
    let key = SigningKey::from_keypair_bytes(&pair).unwrap();
    let (_server, url) = start(move |asked| {
        assert_eq!(asked["scheme"], "ed25519");
        hex(&key.sign(&bytes(asked["message"].as_str().unwrap())).to_bytes())
    })
    .await;
    for (order, expected) in case.solana_paths() {
        let order = remote::signed(order.into(), &Client::new(), &url, "token").await.unwrap();
        let transactions = order.transactions().into_iter().map(|transaction| STANDARD.encode(&transaction.bytes));
        assert_eq!(transactions.chain(order.gasless().map(|body| body.signature)).collect::<Vec<_>>(), expected);
    }
}
