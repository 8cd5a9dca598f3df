//! One endpoint: where requests are sent, and how JSON-RPC calls are made.

#[cfg(feature = "starknet")]
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use countersign::json::{self, Node, Value};
use countersign::{Code, Refusal};
use countersign_client::url::Url;
use countersign_client::{Method, Request, Response, Transport, TransportErrorKind, is_safe};
use countersign_core::reader::{Answer, Failure, FailureKind, Request as ReadRequest, json_rpc};
use futures_util::future::join_all;
use serde_json::json;
use zeroize::Zeroizing;

use crate::error::NodeError;
use crate::lane::{Admission, Lane, Shared, Waiter};

/// The maximum length in bytes of revert data that is kept.
const MAX_REVERT: usize = 4 * 1024;

/// An endpoint that the user has chosen.
///
/// Errors and `Debug` show only its host, because paths, queries and passwords may contain API keys.
pub struct Endpoint {
    url: Url,
    /// The value of the header `authorization`, from the user name and password of the URL.
    authorization: Option<Zeroizing<String>>,
    host: String,
    name: String,
    /// Whether this is a node's own RPC, where an index server is the default.
    pub(crate) is_rpc: bool,
    /// Whether the endpoint is known to serve the right chain.
    pub(crate) is_identified: AtomicBool,
    /// The greatest height that the endpoint has reported.
    height: AtomicU64,
    /// Limits the concurrent requests to the endpoint.
    lane: Lane,
    /// The request for the chain's identity, and its answer: an endpoint with a fixed address serves one chain.
    identity: Mutex<Option<(ReadRequest, Answer)>>,
    #[cfg(feature = "evm")]
    pub(crate) evm: crate::evm::Cache,
    /// The class hash that the endpoint first reported for each contract.
    #[cfg(feature = "starknet")]
    code: Mutex<BTreeMap<Contract, [u8; 32]>>,
}

/// A contract's address, and the name of the generation that it is read as.
#[cfg(feature = "starknet")]
type Contract = ([u8; 32], &'static str);

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Endpoint({})", self.host)
    }
}

impl Endpoint {
    /// Parses the URL of an endpoint: https, or http to this machine.
    ///
    /// The prefix `rpc+` marks a node's own RPC, on chains that are read through an index server by default (Bitcoin, Litecoin).
    ///
    /// ```
    /// use countersign_node::Endpoint;
    ///
    /// assert_eq!(Endpoint::parse("https://user:password@node.example/key")?.host(), "node.example");
    /// assert!(Endpoint::parse("http://node.example").is_err());
    /// # Ok::<(), countersign_node::NodeError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns [`NodeError::Endpoint`] if the text is not such a URL. The error does not contain the text.
    pub fn parse(text: &str) -> Result<Self, NodeError> {
        let refuse = NodeError::Endpoint;
        let (text, is_rpc) = text.strip_prefix("rpc+").map_or((text, false), |rest| (rest, true));
        let mut url = Url::parse(text).map_err(|_| refuse("the endpoint is not a valid URL"))?;
        let authorization = url.password().map(|password| {
            let pair = Zeroizing::new(format!("{}:{password}", url.username()));
            Zeroizing::new(format!("Basic {}", STANDARD.encode(pair.as_bytes())))
        });
        let cleared = url.set_password(None).and_then(|()| url.set_username(""));
        cleared.map_err(|()| refuse("the URL of the endpoint has no host"))?;
        if !is_safe(&url) || url.fragment().is_some() {
            return Err(refuse("the URL of the endpoint must use https, or http to this machine, and must not have a fragment"));
        }
        let host = match (url.host_str(), url.port()) {
            (Some(host), Some(port)) => format!("{host}:{port}"),
            (host, _) => host.unwrap_or_default().to_owned(),
        };
        let (is_identified, height) = (AtomicBool::new(false), AtomicU64::new(0));
        Ok(Self {
            url,
            authorization,
            name: host.clone(),
            host,
            is_rpc,
            is_identified,
            height,
            lane: Lane::default(),
            identity: Mutex::default(),
            #[cfg(feature = "evm")]
            evm: crate::evm::Cache::default(),
            #[cfg(feature = "starknet")]
            code: Mutex::default(),
        })
    }

    /// Returns the name, by which the endpoint is told from the other endpoints of its chain: the host, with a number if several
    /// endpoints have the same host.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn set_name(&mut self, name: String) {
        self.name = name;
    }

    /// Returns whether both are the same endpoint, with the same URL and the same password.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.url == other.url && self.is_rpc == other.is_rpc && self.authorization == other.authorization
    }

    /// Returns the host, with the port if the URL has one. Nothing else of the URL is ever shown.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }
}

/// One JSON-RPC call.
#[allow(dead_code, reason = "Tron is not read by JSON-RPC, and a build may have Tron alone")]
pub(crate) struct Call {
    method: &'static str,
    /// The parameters, as JSON.
    params: serde_json::Value,
}

impl Call {
    #[allow(dead_code, reason = "Tron is not read by JSON-RPC, and a build may have Tron alone")]
    pub(crate) const fn new(method: &'static str, params: serde_json::Value) -> Self {
        Self { method, params }
    }
}

/// Returns the result of the call at `index`.
#[allow(dead_code, reason = "Tron is not read by JSON-RPC, and a build may have Tron alone")]
pub(crate) fn nth<'s, 'r, 'v>(results: &'s [Node<'r, 'v>], index: usize) -> Result<&'s Node<'r, 'v>, Refusal> {
    results.get(index).ok_or_else(|| Refusal::new(Code::MissingField, "/result"))
}

/// An endpoint, and the HTTP stack that reaches it.
pub(crate) struct Caller<'c, T> {
    pub(crate) endpoint: &'c Endpoint,
    pub(crate) transport: &'c T,
}

impl<T> Clone for Caller<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Caller<'_, T> {}

impl<T: Transport> Caller<'_, T> {
    /// Sends what a reader asks, and returns the answers as they came. The first request is the one for the chain's identity, which is
    /// sent once.
    pub(crate) async fn ask(&self, requests: &[ReadRequest]) -> Vec<Answer> {
        let identity = || self.endpoint.identity.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = identity().as_ref().filter(|(request, _)| requests.first() == Some(request)).map(|(_, answer)| answer.clone());
        let Some(kept) = kept else {
            let answers = self.exchange_all(requests).await;
            if let (Some(request), Some(answer)) = (requests.first(), answers.first())
                && may_be_kept(request, answer)
            {
                *identity() = Some((request.clone(), answer.clone()));
            }
            return answers;
        };
        let mut answers = vec![kept];
        answers.extend(self.exchange_all(requests.get(1..).unwrap_or_default()).await);
        answers
    }

    /// Sends JSON-RPC calls in one request, and every other request by itself.
    async fn exchange_all(&self, requests: &[ReadRequest]) -> Vec<Answer> {
        if requests.iter().all(|request| matches!(request, ReadRequest::JsonRpc { .. })) {
            return self.call(requests).await;
        }
        join_all(requests.iter().map(|request| self.fetch(request))).await
    }

    async fn call(&self, requests: &[ReadRequest]) -> Vec<Answer> {
        let mut calls = Vec::new();
        for request in requests {
            if let ReadRequest::JsonRpc { method, params } = request {
                calls.push(Call::new(method, serde_json::from_str(params).unwrap_or_default()));
            }
        }
        if calls.is_empty() {
            return Vec::new();
        }
        let failed = |failure| vec![Answer::Failed(failure); requests.len()];
        let shared = match self.share(&calls).await {
            Ok(shared) => shared,
            Err(error) => return failed(error.failure()),
        };
        match &shared.body {
            Ok(body) => match json_rpc::decode(body, shared.all) {
                Ok(answers) => answers.into_iter().skip(shared.first).take(requests.len()).collect(),
                Err(refusal) => failed(Failure::new(FailureKind::NotJsonRpc, &refusal.to_string())),
            },
            Err(error) => failed(error.clone().failure()),
        }
    }

    async fn fetch(&self, request: &ReadRequest) -> Answer {
        let (method, path, format, body) = match request {
            ReadRequest::Get { path, format } => (Method::Get, path, format, None),
            ReadRequest::Post { path, body, format } => (Method::Post, path, format, Some(body.to_vec())),
            one => return self.call(std::slice::from_ref(one)).await.pop().unwrap_or(Answer::Failed(FailureKind::Other.into())),
        };
        let _permit = self.enter(&[]).await;
        let mut request = self.request(method, path);
        if let Some(body) = body {
            request = request.with_header("content-type", format.content_type()).with_body(body);
        }
        match self.exchange(&request).await {
            Ok(response) => Answer::Http { status: response.status, body: response.body.into(), grpc_status: response.grpc_status },
            Err(error) => Answer::Failed(error.failure()),
        }
    }

    /// Calls several methods in one request, and reads the results in the order of the calls. If one call fails, all of them count as
    /// failed.
    #[allow(dead_code, reason = "Tron is not read by JSON-RPC, and a build may have Tron alone")]
    pub(crate) async fn rpc<R>(&self, calls: &[Call], read: impl FnOnce(&[Node<'_, '_>]) -> Result<R, Refusal>) -> Result<R, NodeError> {
        let read = |answers: Vec<Result<Node<'_, '_>, NodeError>>| {
            let results = answers.into_iter().collect::<Result<Vec<_>, _>>()?;
            read(&results).map_err(|refusal| self.malformed(refusal))
        };
        self.rpc_each(calls, read).await?
    }

    /// Calls several methods in one request, and reads the outcome of each in the order of the calls.
    pub(crate) async fn rpc_each<R>(
        &self,
        calls: &[Call],
        read: impl FnOnce(Vec<Result<Node<'_, '_>, NodeError>>) -> R,
    ) -> Result<R, NodeError> {
        let shared = self.share(calls).await?;
        let body = shared.body?;
        let value = json::parse(&body).map_err(|refusal| self.malformed(refusal))?;
        let mut replies: Vec<Option<&Value<'_>>> = vec![None; calls.len()];
        let all = match &value {
            Value::Array(all) if shared.all > 1 => all,
            one => std::slice::from_ref(one),
        };
        for reply in all {
            let node = Node::root(reply, "");
            // A node that does not accept a batch returns a single error without an id.
            if let Err(error) = self.result(reply)
                && member(reply, "id").is_none()
            {
                return Err(error);
            }
            let id = node.object().and_then(|members| members.need("id")?.integer()).map_err(|refusal| self.malformed(refusal))?;
            let unexpected = || self.malformed(Refusal::new(Code::UnexpectedField, "/id").with_actual(id));
            let index = usize::try_from(id).ok().filter(|index| *index < shared.all).ok_or_else(unexpected)?;
            // The response may also contain the replies to other callers' calls.
            match index.checked_sub(shared.first).and_then(|own| replies.get_mut(own)) {
                Some(slot @ None) => *slot = Some(reply),
                Some(Some(_)) => return Err(unexpected()),
                None => {}
            }
        }
        Ok(read(replies.into_iter().map(|reply| self.outcome(reply)).collect()))
    }

    /// Sends calls and returns the response. If the endpoint is busy, they share a request with the calls of other callers.
    async fn share(&self, calls: &[Call]) -> Result<Shared, NodeError> {
        let own: Vec<_> = calls.iter().map(|call| json!({"jsonrpc": "2.0", "method": call.method, "params": call.params})).collect();
        loop {
            let (permit, others) = match self.enter(&own).await {
                Admission::Answered(shared) => return Ok(shared),
                Admission::Send(permit, others) => (permit, others),
            };
            let mut body = own.clone();
            body.extend(others.iter().flat_map(|waiter| waiter.calls.iter().cloned()));
            for (id, call) in body.iter_mut().enumerate() {
                call["id"] = json!(id);
            }
            let all = body.len();
            // Some nodes do not accept a batch with one call.
            let body = match &mut body[..] {
                [only] => only.take(),
                _ => serde_json::Value::Array(body),
            };
            let request = self.request(Method::Post, "").with_header("content-type", "application/json");
            let answer = self.send(&request.with_body(body.to_string().into_bytes())).await;
            drop(permit);
            if !others.is_empty() && is_too_much(&answer, all) {
                self.endpoint.lane.share_less(all);
                others.into_iter().for_each(Waiter::again);
                continue;
            }
            let mut shared = Shared { body: answer.map(Arc::new), first: 0, all };
            let own = shared.clone();
            shared.first = calls.len();
            for waiter in others {
                let next = shared.first.saturating_add(waiter.calls.len());
                waiter.answer(shared.clone());
                shared.first = next;
            }
            return Ok(own);
        }
    }

    /// Waits until a request may be sent.
    async fn enter(&self, calls: &[serde_json::Value]) -> Admission<'_> {
        self.endpoint.lane.enter(calls).await
    }

    fn outcome<'v>(&self, reply: Option<&'v Value<'v>>) -> Result<Node<'static, 'v>, NodeError> {
        match reply {
            Some(reply) => Ok(self.result(reply)?.map_or(NULL, |result| Node::root(result, "/result"))),
            None => Err(self.malformed(Refusal::new(Code::MissingField, "/id").with_expected("a reply to each call"))),
        }
    }

    /// Returns the result of a reply; `None` if it is null.
    fn result<'v>(&self, reply: &'v Value<'v>) -> Result<Option<&'v Value<'v>>, NodeError> {
        let Some(error) = member(reply, "error") else { return Ok(member(reply, "result")) };
        let number = |value: &Value<'_>| match value {
            Value::Number(text) => text.parse().ok(),
            _ => None,
        };
        let code = member(error, "code").and_then(number).unwrap_or_default();
        let message = match (member(error, "message"), error) {
            (Some(Value::String(text)), _) | (None, Value::String(text)) => text.as_ref(),
            _ => "an error without a message",
        };
        let data = member(error, "data");
        let message = match data.and_then(reason) {
            // Some reasons are the message in more detail.
            Some(reason) if reason.starts_with(message) => reason.to_owned(),
            Some(reason) => format!("{message}: {reason}"),
            None => message.to_owned(),
        };
        let data = data.and_then(|data| Node::root(data, "").hex_bytes(MAX_REVERT).ok());
        Err(NodeError::rpc(self.endpoint.host(), code, &message, data))
    }

    /// Posts JSON to a path below the endpoint's URL.
    pub(crate) async fn post(&self, path: &str, body: Vec<u8>) -> Result<Vec<u8>, NodeError> {
        let _permit = self.enter(&[]).await;
        let request = self.request(Method::Post, path).with_header("content-type", "application/json").with_body(body);
        self.send(&request).await
    }

    /// Posts a body of another type to a path below the endpoint's URL, and returns the response with any status.
    pub(crate) async fn post_as(&self, content_type: &str, path: &str, body: Vec<u8>) -> Result<Response, NodeError> {
        let _permit = self.enter(&[]).await;
        let request = self.request(Method::Post, path).with_header("content-type", content_type).with_body(body);
        self.exchange(&request).await
    }

    /// Gets a path below the endpoint's URL.
    pub(crate) async fn get(&self, path: &str) -> Result<Vec<u8>, NodeError> {
        let _permit = self.enter(&[]).await;
        self.send(&self.request(Method::Get, path)).await
    }

    fn request(&self, method: Method, path: &str) -> Request {
        let mut url = self.endpoint.url.clone();
        if !path.is_empty() {
            let base = url.path().trim_end_matches('/').to_owned();
            url.set_path(&format!("{base}{path}"));
        }
        let request = Request::new(method, url);
        match &self.endpoint.authorization {
            Some(value) => request.with_header("authorization", value.as_str()),
            None => request,
        }
    }

    async fn send(&self, request: &Request) -> Result<Vec<u8>, NodeError> {
        let answer = self.exchange(request).await?;
        match answer.status {
            200 => Ok(answer.body),
            // Bitcoin's RPC returns a failed call with status 500 and the error as JSON.
            500 if self.endpoint.is_rpc && answer.body.first() == Some(&b'{') => Ok(answer.body),
            status => Err(NodeError::Status { endpoint: self.endpoint.host().to_owned(), status }),
        }
    }

    async fn exchange(&self, request: &Request) -> Result<Response, NodeError> {
        let answer = self.transport.send(request).await;
        answer.map_err(|error| NodeError::Transport { endpoint: self.endpoint.host().to_owned(), error })
    }

    /// Creates the error for an answer that is malformed or contradicts itself.
    pub(crate) fn malformed(&self, refusal: Refusal) -> NodeError {
        NodeError::Malformed { endpoint: self.endpoint.host().to_owned(), refusal }
    }

    /// Requires that the endpoint's newest block has not gone back by more than `tolerance` blocks. If it has, the node is stale, or one
    /// of several behind the same address. A step back of a few blocks may be a reorganization.
    pub(crate) fn check_height(&self, now: u64, tolerance: u64) -> Result<(), NodeError> {
        let before = self.endpoint.height.fetch_max(now, Ordering::Relaxed);
        if now.saturating_add(tolerance) < before {
            return Err(NodeError::WentBack { endpoint: self.endpoint.host().to_owned(), before, now });
        }
        Ok(())
    }

    /// Returns whether the endpoint has already reported the code of a contract that is read as this kind.
    #[cfg(feature = "starknet")]
    pub(crate) fn has_code(&self, contract: [u8; 32], kind: &'static str) -> bool {
        self.endpoint.code.lock().unwrap_or_else(PoisonError::into_inner).contains_key(&(contract, kind))
    }

    /// Returns whether the contract's code equals the code that the endpoint first reported. Remembers the code the first time.
    #[cfg(feature = "starknet")]
    pub(crate) fn is_same_code(&self, contract: [u8; 32], kind: &'static str, code: [u8; 32]) -> bool {
        *self.endpoint.code.lock().unwrap_or_else(PoisonError::into_inner).entry((contract, kind)).or_insert(code) == code
    }
}

/// Returns whether an answer may be kept as the identity of an endpoint's chain. An error may be gone the next time.
fn may_be_kept(request: &ReadRequest, answer: &Answer) -> bool {
    match (request, answer) {
        // An error of gRPC has the HTTP status 200.
        #[cfg(feature = "sui")]
        (ReadRequest::Post { format: countersign_core::reader::Format::GrpcWeb, .. }, _) => countersign::sui::reader::is_message(answer),
        (_, answer) => matches!(answer, Answer::Result(_) | Answer::Http { status: 200, .. }),
    }
}

/// Returns whether an endpoint refused a request because it has too many calls. The sign of that is an HTTP status, a single error for
/// all calls, or a response that exceeds the size limit.
fn is_too_much(answer: &Result<Vec<u8>, NodeError>, calls: usize) -> bool {
    match answer {
        Ok(body) => json::parse(body).is_ok_and(|value| !matches!(value, Value::Array(replies) if replies.len() >= calls)),
        Err(NodeError::Status { status, .. }) => matches!(status, 400 | 413 | 422),
        Err(NodeError::Transport { error, .. }) => error.kind == TransportErrorKind::TooLarge,
        Err(_) => false,
    }
}

/// Returns why a call failed: a text, or the innermost level of an error of nested calls,
/// `{"execution_error": {.., "error": {.., "error": ".."}}}`. Hex is revert data, which does not say it in words.
fn reason<'v>(data: &'v Value<'v>) -> Option<&'v str> {
    if let Value::String(text) = data {
        return (!text.is_empty() && !text.starts_with("0x")).then(|| end_of_trace(text));
    }
    let mut inner = ["execution_error", "revert_error"].into_iter().find_map(|name| member(data, name))?;
    while let Some(error) = member(inner, "error") {
        inner = error;
    }
    match inner {
        Value::String(text) => Some(end_of_trace(text)),
        _ => None,
    }
}

/// Returns the last line of a stack trace that says why the call failed. Each line before it names a call, and together they are longer
/// than what is shown of a node's text.
pub(crate) fn end_of_trace(text: &str) -> &str {
    let (trace, _) = text.split_once("Cairo traceback").unwrap_or((text, ""));
    // Some nodes add the panic data once more, as a list of felts.
    let mut lines = trace.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('['));
    lines.next_back().unwrap_or(text).trim_end_matches('.')
}

#[cfg(feature = "solana")]
impl<T> Caller<'_, T> {
    /// Returns the minimum height that the endpoint must have, given what it reported before.
    pub(crate) fn min_height(&self, tolerance: u64) -> u64 {
        self.endpoint.height.load(Ordering::Relaxed).saturating_sub(tolerance)
    }
}

const NULL: Node<'static, 'static> = Node::root(&Value::Null, "/result");

/// Returns a member of an object; `None` if it is missing or null.
fn member<'v>(value: &'v Value<'v>, name: &str) -> Option<&'v Value<'v>> {
    let Value::Object(members) = value else { return None };
    members.iter().find(|(key, value)| key == name && *value != Value::Null).map(|(_, value)| value)
}
