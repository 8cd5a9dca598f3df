//! The platform: HTTP, a timer, a clock, and connections to chains.
//!
//! # Transport
//!
//! [`Transport`](crate::Transport) has three methods:
//!
//! | method | what it is used for | what depends on it |
//! |---|---|---|
//! | `send` | one request to the service, sent once; the client repeats what may be repeated | |
//! | `sleep` | waits between two polls ([`Pace`](crate::Pace)) and two attempts ([`Retry`](crate::Retry)), and the time limits of endpoints: 10 s for a round, 20 s for a reading, 30 s for a Bitcoin-like node's own RPC | it must complete; otherwise a silent endpoint holds up a swap |
//! | `now` | the time: the deadline of a payment, the time that is left for a redemption, the age of the newest block, the journal | money: a clock that is behind pays too late and releases the secret too late. The head of a chain that is far ahead of the clock, or behind it, stops the driver |
//!
//! An example for an imaginary platform, whose network and timer are functions of the host:
//!
//! ```
//! use std::time::{Duration, SystemTime};
//!
//! use countersign_client::countersign::chains::UnixTime;
//! use countersign_client::{
//!     MAX_BODY, Request, Response, Transport, TransportError, TransportErrorKind,
//! };
//!
//! # #[derive(Debug)] enum HostError { Offline, Late, Broken }
//! # struct HostResponse { status: u16, headers: Vec<(String, String)>, body: Vec<u8> }
//! # async fn host_fetch(_: &str, _: &str, _: &[(&str, &str)], _: Option<&[u8]>, _: usize) -> Result<HostResponse, HostError> { Err(HostError::Offline) }
//! # async fn host_sleep(_: Duration) {}
//! /// The host's network, timer and clock.
//! struct Platform;
//!
//! impl Transport for Platform {
//!     async fn send(&self, request: &Request) -> Result<Response, TransportError> {
//!         let headers: Vec<_> =
//!             request.headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
//!         let body = request.body.as_ref().map(|body| body.as_slice());
//!         // No redirects to another origin, no repetition, no decoding of compressed
//!         // bodies, at most MAX_BODY bytes.
//!         let answer = host_fetch(
//!             request.method.name(),
//!             request.url.as_str(),
//!             &headers,
//!             body,
//!             MAX_BODY,
//!         )
//!         .await
//!         .map_err(|error| {
//!             let kind = match error {
//!                 // Nothing was sent: the only kind after which a POST is repeated.
//!                 HostError::Offline => TransportErrorKind::Connect,
//!                 HostError::Late => TransportErrorKind::Timeout,
//!                 HostError::Broken => TransportErrorKind::Interrupted,
//!             };
//!             TransportError::new(kind, "")
//!         })?;
//!         let response = Response::new(answer.status, answer.body);
//!         Ok(answer
//!             .headers
//!             .iter()
//!             .fold(response, |response, (name, value)| response.with_header(name, value)))
//!     }
//!
//!     async fn sleep(&self, duration: Duration) {
//!         host_sleep(duration).await;
//!     }
//!
//!     fn now(&self) -> UnixTime {
//!         SystemTime::now().into()
//!     }
//! }
//! # assert!(Platform.now() > UnixTime::EPOCH);
//! ```
//!
//! # Chains
//!
//! [`Chains`](crate::driver::Chains) sends the requests of readers to the endpoints that the user chose, and returns what they answered.
//! The name of a chain is that of asset ids: `base` for `base:usdc`. With several endpoints, more than half must agree.
//!
//! | request | for example | answer |
//! |---|---|---|
//! | `JsonRpc` | EVM chains, a Bitcoin node | `Answer::result` with the JSON text of `result`, or `Answer::Error`; [`json_rpc`](countersign::reader::json_rpc) writes and reads the bodies |
//! | `Get`, `Post` | an Esplora server of Bitcoin, Sui's gRPC-web | `Answer::http` with any status |
//! | any | | `Answer::Failed` if no complete response came: it says nothing about the chain |
//!
//! ```
//! use countersign_client::countersign::reader::{
//!     Answer, Failure, FailureKind, Request, json_rpc,
//! };
//! use countersign_client::driver::{ChainEndpoints, Chains};
//!
//! # async fn host_post(_: &str, _: String) -> Option<(u16, Vec<u8>)> { None }
//! # async fn host_request(_: &str, _: &str, _: &[u8], _: &str) -> Option<(u16, Vec<u8>)> { None }
//! /// The user's endpoints of two chains.
//! struct Endpoints;
//!
//! impl Endpoints {
//!     /// Only this type knows the URLs, because a URL may contain a key. The names of
//!     /// endpoints are shown.
//!     fn url(&self, chain: &str, endpoint: &str) -> String {
//!         format!("https://{endpoint}/{chain}")
//!     }
//! }
//!
//! impl Chains for Endpoints {
//!     fn endpoints(&self, chain: &str) -> Option<ChainEndpoints> {
//!         match chain {
//!             "base" => Some(ChainEndpoints::new(
//!                 ["one.example", "two.example", "own.example"],
//!                 2,
//!             )),
//!             "bitcoin" => Some(ChainEndpoints::new(["esplora.example"], 1)),
//!             _ => None, // the driver reports `NotConnected`
//!         }
//!     }
//!
//!     async fn ask(
//!         &self,
//!         chain: &str,
//!         endpoint: &str,
//!         requests: &[Request],
//!     ) -> Vec<Answer> {
//!         let url = self.url(chain, endpoint);
//!         // All requests of a round are JSON-RPC calls, or none is.
//!         if let Some(body) = json_rpc::encode(requests) {
//!             return match host_post(&url, body).await {
//!                 Some((status, body)) => json_rpc::answers(status, &body, requests.len()),
//!                 None => vec![Answer::Failed(FailureKind::Connect.into()); requests.len()],
//!             };
//!         }
//!         let mut answers = Vec::new();
//!         for request in requests {
//!             let answer = match request {
//!                 Request::Get { path, .. } => {
//!                     host_request("GET", &format!("{url}{path}"), &[], "").await
//!                 }
//!                 Request::Post { path, body, format } => {
//!                     host_request(
//!                         "POST",
//!                         &format!("{url}{path}"),
//!                         body,
//!                         format.content_type(),
//!                     )
//!                     .await
//!                 }
//!                 _ => None,
//!             };
//!             answers.push(match answer {
//!                 Some((status, body)) => Answer::http(status, body),
//!                 None => Answer::Failed(Failure::new(
//!                     FailureKind::Other,
//!                     "the host has no network",
//!                 )),
//!             });
//!         }
//!         answers
//!     }
//! }
//! # assert!(Endpoints.has("base") && !Endpoints.has("sui"));
//! ```
