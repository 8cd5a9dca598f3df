//! Faults between the service and the client. Each ends in its own error, no call that may have been acted on is sent twice, and the
//! application id is sent to no other host.
use crate::support;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use countersign_client::countersign::{Blame, CreateOrder, U256, report::Origin};
use countersign_client::{
    Action, Api, AppId, Client, Error, ErrorCode, Http, OrderFilter, OrderId, QuoteAmount, QuoteRequest, Retry, Timeouts,
};
use support::{Fixture, Reply, Server};

const ID: &str = "f8a12d1320fce93c5888b6014abeb5f5de85ecc8c0eef8133f3da03822592121";

fn client(base: &str) -> Client<Http> {
    let timeouts = Timeouts { connect: Duration::from_millis(500), call: Duration::from_millis(1_500) };
    let retry = Retry { attempts: 3, first: Duration::from_millis(4), longest: Duration::from_secs(1) };
    let http = Http::new(timeouts).unwrap().with_max_body(200_000);
    Client::new(Api::new(base, Some(AppId::new("private-id").unwrap())).unwrap(), http).with_retry(retry)
}

fn id() -> OrderId {
    OrderId::parse(ID).unwrap()
}

fn order() -> CreateOrder {
    Fixture::load("evm-record-evm-v3").create()
}

/// Returns the client's result for one reply to `GET /v2/volume`, and the number of requests.
async fn volume(reply: Reply) -> (Result<String, Error>, usize) {
    let server = Server::start(move |_| reply.clone());
    let result = client(&server.base).volume(&[]).await.map(|answer| answer.value);
    (result, server.seen().len())
}

async fn code(reply: Reply) -> (&'static str, usize) {
    let (result, asked) = volume(reply).await;
    (result.expect_err("a fault").code().name(), asked)
}

fn gzipped() -> Vec<u8> {
    // RFC 1952 header; what follows is never inflated.
    let mut body = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3];
    body.extend([0; 64]);
    body
}

#[tokio::test]
async fn bodies_that_are_no_answer() {
    let html = "<!doctype html><html><body>bad gateway</body></html>";
    let with = |name, value: &str| Reply::Whole(200, vec![(name, value.to_owned())], br#"{"status":"Ok","result":"1"}"#.to_vec());
    for (reply, expected) in [
        (Reply::json(200, html), ("json_syntax", 1)),
        (Reply::json(200, ""), ("json_syntax", 1)),
        (Reply::json(200, r#"{"status":"Ok","result":"1"} x"#), ("json_syntax", 1)),
        (Reply::json(200, "\u{feff}{}"), ("json_syntax", 1)),
        (Reply::Whole(200, vec![], b"{\"status\":\"Ok\",\"result\":\"\xff\"}".to_vec()), ("json_not_utf8", 1)),
        (Reply::json(200, r#"{"status":"Ok","status":"Ok","result":"1"}"#), ("json_duplicate_key", 1)),
        (Reply::json(200, "[".repeat(10_000)), ("json_too_deep", 1)),
        (Reply::json(200, r#"{"status":"Ok"}"#), ("missing_field", 1)),
        (Reply::json(200, r#"{"result":"1"}"#), ("missing_field", 1)),
        (Reply::json(200, r#"{"status":"Maybe","result":"1"}"#), ("status_not_ok", 1)),
        (Reply::json(200, r#"{"status":"Ok","result":"1","error":"but no"}"#), ("error_beside_ok", 1)),
        (Reply::json(200, r#"{"status":"Ok","result":[1]}"#), ("wrong_type", 1)),
        (Reply::json(200, r#"{"status":"Error","error":"no liquidity"}"#), ("service_error", 1)),
        (Reply::json(400, r#"{"status":"Error","error":"no liquidity"}"#), ("service_error", 1)),
        (Reply::json(502, html), ("http_status", 3)),
        (Reply::json(404, ""), ("http_status", 1)),
        (with("content-encoding", "gzip"), ("transport_encoded", 1)),
        (with("content-encoding", "br"), ("transport_encoded", 1)),
        (Reply::Whole(200, vec![("content-encoding", "gzip".into())], gzipped()), ("transport_encoded", 1)),
        (Reply::Whole(200, vec![], gzipped()), ("json_not_utf8", 1)),
        (Reply::json(200, format!(r#"{{"status":"Ok","result":"{}"}}"#, "1".repeat(300_000))), ("transport_too_large", 1)),
        (Reply::Endless, ("transport_too_large", 1)),
    ] {
        let said = format!("{reply:?}");
        assert_eq!(code(reply).await, expected, "{}", &said[..said.len().min(200)]);
    }
}

#[tokio::test]
async fn errors_carry_what_came_capped_and_escaped() {
    let (result, _) = volume(Reply::json(418, format!("tea\u{1b}[2J\n{}", "x".repeat(5_000)))).await;
    let Err(Error::Status { status: 418, body, .. }) = result else { panic!() };
    assert!(body.starts_with("tea\\u{001b}[2J\\u{000a}x") && body.chars().count() < 200, "{body}");
    let (result, _) = volume(Reply::json(409, r#"{"status":"Error","error":"order\u202e exists"}"#)).await;
    assert!(matches!(result, Err(Error::Service { status: 409, error, .. }) if error == "order\\u{202e} exists"));
}

#[tokio::test]
async fn broken_connections() {
    let head = "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{\"status\":";
    assert_eq!(code(Reply::Reset).await, ("transport_interrupted", 3));
    assert_eq!(code(Reply::Raw(head.into())).await, ("transport_interrupted", 3));
    assert_eq!(code(Reply::Raw(b"HTTP/9.9 what\r\n\r\n".to_vec())).await, ("transport_interrupted", 3));
    assert_eq!(code(Reply::Raw(b"\x00\x01\x02".to_vec())).await, ("transport_interrupted", 3));
    let slow = Instant::now();
    let wait = Duration::from_secs(20);
    assert_eq!(code(Reply::Stall(head.into(), wait)).await, ("transport_timeout", 3));
    assert_eq!(code(Reply::Stall(Vec::new(), wait)).await, ("transport_timeout", 3));
    assert!(slow.elapsed() < Duration::from_secs(12), "{:?}", slow.elapsed());
}

#[tokio::test]
async fn nobody_there() {
    let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let client = client(&format!("http://{gone}"));
    let error = client.create_order(&order()).await.unwrap_err();
    // Without a connection the service cannot have acted, so even a POST is tried again.
    assert_eq!((error.code().name(), error.may_have_acted(), error.is_transient()), ("transport_connect", false, true));
    // The host, and no more of the URL.
    assert!(error.to_string().contains("no connection: 127.0.0.1:"), "{error}");
    assert!(!error.to_string().contains("/v2/"), "{error}");
}

#[tokio::test]
async fn storms_pass_or_end() {
    for status in [429, 503] {
        let asked = AtomicUsize::new(0);
        let server = Server::start(move |_| match asked.fetch_add(1, Ordering::SeqCst) {
            0 | 1 => Reply::Whole(status, vec![("retry-after", "0".into())], b"busy".to_vec()),
            _ => Reply::json(200, r#"{"status":"Ok","result":"5"}"#),
        });
        assert_eq!(client(&server.base).volume(&[]).await.unwrap().value, "5");
        assert_eq!(server.seen().len(), 3);
        assert_eq!(code(Reply::json(status, "busy")).await, ("http_status", 3));
        assert_eq!(code(Reply::json(status, r#"{"status":"Error","error":"busy"}"#)).await, ("service_error", 3));
        // The wait is too long, so the call fails and the error tells the caller how long it is.
        let (result, asked) = volume(Reply::Whole(status, vec![("retry-after", "86400".into())], Vec::new())).await;
        assert_eq!((result.unwrap_err().retry_after(), asked), (Some(Duration::from_secs(86_400)), 1));
    }
}

#[tokio::test]
async fn what_may_have_been_acted_on_is_sent_once() {
    let wait = Duration::from_secs(20);
    for reply in [
        Reply::Reset,
        Reply::Raw(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{".to_vec()),
        Reply::Stall(Vec::new(), wait),
        Reply::Whole(429, vec![("retry-after", "0".into())], Vec::new()),
        Reply::Whole(503, vec![("retry-after", "0".into())], Vec::new()),
        Reply::json(500, "oops"),
        Reply::json(200, "<html>"),
        Reply::Whole(307, vec![("location", "/v2/orders".into())], Vec::new()),
    ] {
        let server = Server::start(move |_| reply.clone());
        let client = client(&server.base);
        let created = client.create_order(&order()).await.unwrap_err();
        let acted = client.act(&id(), &Action::Refund).await.unwrap_err();
        assert!(created.may_have_acted() && acted.may_have_acted(), "{created} {acted}");
        let methods: Vec<_> = server.seen().iter().map(|seen| seen.method.clone()).collect();
        assert_eq!(methods, ["POST", "PATCH"], "{created}");
    }
}

#[tokio::test]
async fn no_redirect_is_followed() {
    let other = Server::start(|_| Reply::json(200, r#"{"status":"Ok","result":"1"}"#));
    for status in [301, 302, 303, 307, 308] {
        let target = format!("{}/v2/volume", other.base.replace("127.0.0.1", "localhost"));
        let reply = Reply::Whole(status, vec![("location", target)], Vec::new());
        assert_eq!(code(reply).await, ("http_status", 1));
    }
    assert!(other.seen().is_empty());
}

#[tokio::test]
async fn headers_on_the_wire() {
    let server = Server::start(|_| Reply::json(200, r#"{"status":"Ok","result":"done"}"#));
    let client = client(&server.base);
    client.act(&id(), &Action::Refund).await.unwrap();
    client.health().await.unwrap();
    let seen = server.seen();
    let header = |index: usize, name: &str| seen[index].headers.get(name).map(String::as_str);
    assert_eq!(header(0, "service-app-id"), Some("private-id"));
    assert_eq!(header(0, "content-type"), Some("application/json"));
    assert_eq!(header(0, "accept"), Some("application/json"));
    assert_eq!(header(0, "accept-encoding"), Some("identity"));
    assert_eq!(header(0, "authorization"), None);
    assert_eq!((seen[0].line(), seen[0].text()), (format!("PATCH /v2/orders/{ID}?action=refund"), "{}".into()));
    assert_eq!((header(1, "service-app-id"), header(1, "content-type")), (None, None));
}

#[tokio::test]
async fn health_says_whether_the_service_is_healthy() {
    for (reply, expected) in [
        (Reply::json(200, r#"{"status":"Ok","result":"Online"}"#), Ok(Some("Online"))),
        (Reply::json(200, r#"{"status":"Ok"}"#), Ok(None)),
        (Reply::json(200, r#"{"status":"Ok","result":{"uptime":1.5}}"#), Ok(None)),
        (Reply::json(503, r#"{"status":"Error","error":"down"}"#), Err(ErrorCode::Service)),
        (Reply::json(200, r#"{"status":"Error","error":"down"}"#), Err(ErrorCode::Service)),
    ] {
        let server = Server::start(move |_| reply.clone());
        let health = client(&server.base).health().await;
        let health = health.as_ref().map(|answer| answer.value.as_deref()).map_err(Error::code);
        assert_eq!(health, expected);
    }
}

/// A response of the wrong shape is refused at its member; additional members are accepted.
#[tokio::test]
async fn shapes_of_records() {
    let record = Fixture::load("evm-record-evm-v3").order;
    let get = async |change: &dyn Fn(&mut serde_json::Value)| {
        let mut order = record.clone();
        change(&mut order);
        let server = Server::start(move |_| Reply::ok(&order));
        let id = OrderId::parse(record["order_id"].as_str().unwrap()).unwrap();
        client(&server.base).order(&id).await.map(|answer| answer.value).map_err(|error| match error {
            Error::Shape(refusal) => {
                assert_eq!((refusal.blame(), refusal.remedy()), (Blame::Service, "do not sign; report the service"), "{refusal}");
                (refusal.code().name(), refusal.location().to_owned())
            }
            other => panic!("{other}"),
        })
    };
    assert!(get(&|order| order["unknown"] = serde_json::json!({"status": "brand new"})).await.is_ok());
    assert!(get(&|order| order["source_swap"]["asset_price"] = serde_json::json!(118000.5)).await.is_ok());
    let huge = "123456789012345678901234567890";
    assert_eq!(get(&|order| order["nonce"] = serde_json::json!(huge)).await.unwrap().nonce.as_deref(), Some(huge));
    let wide = "115792089237316195423570985008687907853269984665640564039457584007913129639935";
    let read = get(&|order| order["destination_swap"]["amount"] = serde_json::json!(wide)).await.unwrap();
    assert_eq!(read.destination_swap.amount.to_string(), wide);
    for (at, value, code) in [
        ("/source_swap/amount", serde_json::json!(50_000), "wrong_type"),
        ("/source_swap/amount", serde_json::json!("5e4"), "decimal_exponent"),
        ("/source_swap/timelock", serde_json::json!(7200.5), "integer_not_exact"),
        ("/source_swap/timelock", serde_json::json!("7200"), "wrong_type"),
        ("/source_swap/secret_hash", serde_json::json!("00"), "hex_length"),
        ("/destination_swap/initiate_tx_hash", serde_json::json!(["x"]), "wrong_type"),
        ("/destination_swap", serde_json::Value::Null, "missing_field"),
        ("/order_id", serde_json::json!("f".repeat(64)), "record_mismatch"),
    ] {
        let refused = get(&|order| *order.pointer_mut(at).unwrap() = value.clone()).await.unwrap_err();
        assert_eq!(refused, (code, format!("/result{at}")));
    }
}

/// If the service sends something malformed, the service is to blame, and the user is not told to check any input.
#[tokio::test]
async fn nobody_is_blamed_for_what_the_service_sent() {
    let quote = QuoteRequest::new("base:usdc".parse().unwrap(), "bitcoin:btc".parse().unwrap(), QuoteAmount::From(U256::from(7)));
    for body in [r#"{"status":"Ok","result":true}"#, r#"{"status":"Ok","result":{"x":1,"x":2}}"#, "{"] {
        let server = Server::start(move |_| Reply::json(200, body));
        let client = client(&server.base);
        let failed = [
            client.quote(&quote).await.map(drop),
            client.create_order(&order()).await.map(drop),
            client.order(&id()).await.map(drop),
            client.orders_page(&OrderFilter::default()).await.map(drop),
            client.instant_refund_hash(&id()).await.map(drop),
            client.earnings().await.map(drop),
            client.chains(&[]).await.map(drop),
            client.assets(&[]).await.map(drop),
            client.liquidity(&[]).await.map(drop),
            client.fee(&[]).await.map(drop),
            client.fees(&[]).await.map(drop),
            client.volume(&[]).await.map(drop),
            client.schemas().await.map(drop),
            client.schema("evm:htlc").await.map(drop),
            client.policy().await.map(drop),
            client.registry().await.map(drop),
        ];
        for (index, result) in failed.into_iter().enumerate() {
            let Err(Error::Shape(refusal)) = result else { panic!("{index}: {result:?}") };
            assert_eq!((refusal.origin(), refusal.blame()), (Origin::Service, Blame::Service), "{index}: {refusal}");
            assert!(refusal.to_string().contains("report the service"), "{index}: {refusal}");
        }
    }
}
