//! The double is the one of the library's own tests: `wiremock`, in the place of Vault.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use countersign::{Code, SignerError};
use countersign_team_signers::solana;
use ed25519_dalek::{Signer, SigningKey};
use serde_json::{Value, json};
use solana_keychain::vault::reqwest;
use solana_keychain::{MemorySigner, SolanaSigner, VaultSigner};
use wiremock::matchers::{header, method, path};
use wiremock::{Mock, MockServer, Request, ResponseTemplate};

use crate::orders::{self, Case};

/// Vault, which answers by a function of the message.
async fn vault(account: String, sign: impl Fn(Vec<u8>) -> Vec<u8> + Send + Sync + 'static) -> (MockServer, VaultSigner) {
    let server = MockServer::start().await;
    let answer = move |request: &Request| {
        let asked: Value = request.body_json().unwrap();
        let signature = sign(STANDARD.decode(asked["input"].as_str().unwrap()).unwrap());
        ResponseTemplate::new(200).set_body_json(json!({"data": {"signature": format!("vault:v1:{}", STANDARD.encode(signature))}}))
    };
    Mock::given(method("POST"))
        .and(path("/v1/transit/sign/wallet"))
        .and(header("X-Vault-Token", "token"))
        .respond_with(answer)
        .mount(&server)
        .await;
    // The client of the tests speaks HTTP; a wallet's own comes from `VaultSigner::new`, which speaks HTTPS alone.
    let signer = VaultSigner::with_client_builder(reqwest::Client::builder(), server.uri(), "token".into(), "wallet".into(), account);
    (server, signer.unwrap())
}

fn key(case: &Case) -> SigningKey {
    let pair: [u8; 64] = bs58::decode(case.key()).into_vec().unwrap().try_into().unwrap();
    SigningKey::from_keypair_bytes(&pair).unwrap()
}

fn account(key: &SigningKey) -> String {
    bs58::encode(key.verifying_key().as_bytes()).into_string()
}

fn written(order: &countersign::solana::SignedOrder) -> Vec<String> {
    let transactions = order.transactions().into_iter().map(|transaction| STANDARD.encode(&transaction.bytes));
    transactions.chain(order.gasless().map(|body| body.signature)).collect()
}

#[tokio::test]
async fn vault_and_memory_sign_what_the_owners_own_key_signs() {
    let case = orders::solana();
    let key = key(&case);
    let memory = MemorySigner::from_private_key_string(case.key()).unwrap();
    let (_server, signer) = vault(account(&key), move |message| key.sign(&message).to_vec()).await;
    for signer in [&signer as &dyn SolanaSigner, &memory] {
        for (order, expected) in case.solana_paths() {
            assert_eq!(written(&solana::sign(order, signer).await.unwrap()), expected);
        }
    }
}

#[tokio::test]
async fn an_answer_that_is_not_the_owners_is_refused() {
    let case = orders::solana();
    let (own, other) = (key(&case), SigningKey::from_bytes(&[7; 32]));
    // An honest Vault with another key, which the library cannot know.
    let (_server, signer) = vault(account(&other), {
        let other = other.clone();
        move |message| other.sign(&message).to_vec()
    })
    .await;
    let error = solana::sign(case.solana(), &signer).await.unwrap_err();
    assert!(matches!(&error, SignerError::Refused(refusal) if refusal.code() == Code::SignatureMismatch), "{error}");
    // The library itself finds a signature by another key than its own, over another message, and one that is cut.
    for answer in [
        Box::new(move |message: Vec<u8>| other.sign(&message).to_vec()) as Box<dyn Fn(Vec<u8>) -> Vec<u8> + Send + Sync>,
        Box::new({
            let own = own.clone();
            move |_| own.sign(b"another message").to_vec()
        }),
        Box::new({
            let own = own.clone();
            move |message| own.sign(&message).to_bytes()[..63].to_vec()
        }),
    ] {
        let (_server, signer) = vault(account(&own), answer).await;
        assert!(matches!(solana::sign(case.solana(), &signer).await, Err(SignerError::Signer(_))));
    }
}
