//! The double is the one of Turnkey's own tests: `wiremock`.

use alloy_signer_turnkey::{TurnkeyClient, TurnkeyP256ApiKey};
use countersign::Code;
use countersign_team_signers::turnkey;
use serde_json::{Value, json};
use wiremock::matchers::{header_exists, method, path};
use wiremock::{Mock, MockServer, Request, ResponseTemplate};

use crate::keys::{Service, bytes};
use crate::orders::{self, Case, code_of, written};

/// Starts a substitute that signs with a key for whatever address it is asked, and changes its answers.
async fn start(service: Service, change: impl Fn(&mut Value) + Send + Sync + 'static) -> (MockServer, TurnkeyClient) {
    let server = MockServer::start().await;
    let answer = move |request: &Request| {
        let asked: Value = request.body_json().unwrap();
        let parameters = &asked["parameters"];
        assert_eq!(parameters["encoding"], "PAYLOAD_ENCODING_HEXADECIMAL");
        assert_eq!(parameters["hashFunction"], "HASH_FUNCTION_NO_OP");
        let (signature, id) = service.sign(&bytes(parameters["payload"].as_str().unwrap()));
        let mut result = json!({
            "r": format!("{:x}", signature.r()),
            "s": format!("{:x}", signature.s()),
            "v": format!("{:02x}", id.is_y_odd() as u8),
        });
        change(&mut result);
        ResponseTemplate::new(200).set_body_json(json!({"activity": {
            "id": "1", "organizationId": asked["organizationId"], "fingerprint": "sha256:1",
            "type": asked["type"], "status": "ACTIVITY_STATUS_COMPLETED",
            "result": {"signRawPayloadResult": result},
        }}))
    };
    Mock::given(method("POST"))
        .and(path("/public/v1/submit/sign_raw_payload"))
        .and(header_exists("X-Stamp"))
        .respond_with(answer)
        .mount(&server)
        .await;
    let client = TurnkeyClient::builder().api_key(TurnkeyP256ApiKey::generate()).base_url(server.uri()).build().unwrap();
    (server, client)
}

#[tokio::test]
async fn turnkey_signs_what_the_owners_own_key_signs() {
    let case = orders::evm();
    for high_s in [false, true] {
        for (order, expected) in case.evm_paths() {
            let (_server, client) = start(Service::new(case.key(), high_s), |_| ()).await;
            assert_eq!(written(&turnkey::sign(order, client, "team").await.unwrap()), expected, "high s: {high_s}");
        }
    }
}

async fn refused(case: &Case, service: Service, change: impl Fn(&mut Value) + Send + Sync + 'static) -> Result<Code, String> {
    let (_server, client) = start(service, change).await;
    code_of::<alloy_signer::Error>(&*turnkey::sign(case.evm(), client, "team").await.unwrap_err())
}

#[tokio::test]
async fn an_answer_that_is_not_the_owners_is_refused() {
    let case = orders::evm();
    let own = || Service::new(case.key(), false);
    assert_eq!(refused(&case, Service::of_another(), |_| ()).await, Ok(Code::SignatureMismatch));
    assert_eq!(refused(&case, own(), |result| result["s"] = result["r"].clone()).await, Ok(Code::SignatureMismatch));
    // r and s prove the signature, whatever v is; what is no v, the library of alloy refuses.
    assert_eq!(
        refused(&case, own(), |result| result["v"] = "05".into()).await,
        Err("the signer failed: invalid signature format".to_owned())
    );
    for (order, expected) in case.evm_paths() {
        let (_server, client) = start(own(), |result| result["v"] = if result["v"] == "00" { "01" } else { "00" }.into()).await;
        assert_eq!(written(&turnkey::sign(order, client, "team").await.unwrap()), expected);
    }
}
