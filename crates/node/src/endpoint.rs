//! One endpoint: where requests are sent, and how JSON-RPC calls are made.

use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use countersign_core::reader::{Answer, FailureKind, Request as ReadRequest, json_rpc};
use countersign_core::sort;
use countersign_transport::url::Url;
use countersign_transport::{Method, Request, Response, Transport, TransportErrorKind, is_safe};
use futures_util::future::join_all;
use zeroize::Zeroizing;

use crate::error::NodeError;
use crate::queue::{Admission, Batch, RequestQueue};

/// The error of a Bitcoin-like node that is busy: it runs only one scan of its outputs at a time.
const SCANNING: (i64, &str) = (-8, "Scan already in progress");
/// The number of retries of a scan, and the pause between them: together less than the time limit of a round.
const SCAN_RETRY: (u32, Duration) = (16, Duration::from_millis(500));

/// The shortest part of a URL that is taken for a key. `v2` and `rpc` are not.
const MIN_KEY: usize = 6;

/// An endpoint that the user has chosen.
///
/// Errors and `Debug` show only its host, because paths, queries and passwords may contain API keys.
pub struct Endpoint {
    url: Url,
    /// The value of the header `authorization`, from the user name and password of the URL.
    authorization: Option<Zeroizing<String>>,
    host: String,
    name: String,
    provider: String,
    /// The parts of the URL that may be keys, the longest first. An endpoint may repeat them in an error.
    keys: Vec<Zeroizing<String>>,
    /// Whether this is a node's own RPC, where an index server is the default.
    pub(crate) is_rpc: bool,
    /// Limits the concurrent requests to the endpoint.
    queue: RequestQueue,
    /// The request for the chain's identity, and its answer: an endpoint with a fixed address serves one chain.
    identity: Mutex<Option<(ReadRequest, Answer)>>,
    /// Whether its owner can move it to another chain at any time, so that no answer about the identity is kept.
    can_move: bool,
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Endpoint({})", self.host)
    }
}

impl Endpoint {
    /// Parses the URL of an endpoint: https, or http to this machine.
    ///
    /// The prefix `rpc+` marks a node's own RPC, on chains that are read through an index server by default (Bitcoin, Litecoin).
    /// A host below `.invalid` identifies a wallet's own connection, which the transport answers itself; no server can have such a name
    /// (RFC 2606). The wallet may switch to another chain at any time, so each round asks for its chain id again.
    ///
    /// ```
    /// use countersign_node::Endpoint;
    ///
    /// assert_eq!(
    ///     Endpoint::parse("https://user:password@node.example/key")?.host(),
    ///     "node.example"
    /// );
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
        let mut keys: Vec<_> = url.path_segments().into_iter().flatten().map(str::to_owned).collect();
        keys.extend(url.query_pairs().map(|(_, value)| value.into_owned()));
        keys.extend([url.username().to_owned(), url.password().unwrap_or_default().to_owned()]);
        keys.retain(|key| key.len() >= MIN_KEY);
        sort::by(&mut keys, |one, other| other.len().cmp(&one.len()));
        let keys = keys.into_iter().map(Zeroizing::new).collect();
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
        // Each port of this machine may be another node.
        let is_local = url.scheme() == "http";
        let provider = if is_local { host.clone() } else { url.host_str().unwrap_or_default().to_owned() };
        let can_move = url.host_str().is_some_and(|host| host.ends_with(".invalid"));
        let (name, queue, identity) = (host.clone(), RequestQueue::default(), Mutex::default());
        Ok(Self { url, authorization, name, provider, keys, host, is_rpc, queue, identity, can_move })
    }

    /// Says who runs the endpoint. By default that is its host: endpoints of one provider count once. On this machine, each port is a
    /// provider of its own.
    #[must_use]
    pub fn with_provider(mut self, provider: impl Into<String>) -> Self {
        self.provider = provider.into();
        self
    }

    /// Returns who runs the endpoint.
    #[must_use]
    pub fn provider(&self) -> &str {
        &self.provider
    }

    /// Returns the name, by which the endpoint is told from the other endpoints of its chain: the host, with a number if several
    /// endpoints have the same host.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Removes the keys of the URL from the message of an error, which is shown to the user and written to logs.
    fn without_keys(&self, answer: Answer) -> Answer {
        match answer {
            Answer::Error(mut error) => {
                for key in &self.keys {
                    error.message = error.message.replace(key.as_str(), "***");
                }
                Answer::Error(error)
            }
            other => other,
        }
    }

    /// Forgets the answer about the chain's identity, so that it is asked again.
    pub(crate) fn forget_identity(&self) {
        *self.identity.lock().unwrap_or_else(PoisonError::into_inner) = None;
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
    /// sent once to an endpoint that cannot move.
    pub(crate) async fn ask(&self, requests: &[ReadRequest]) -> Vec<Answer> {
        let identity = || self.endpoint.identity.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = identity().as_ref().filter(|(request, _)| requests.first() == Some(request)).map(|(_, answer)| answer.clone());
        let Some(kept) = kept else {
            let answers = self.exchange_idle(requests).await;
            if let (Some(request), Some(answer)) = (requests.first(), answers.first())
                && !self.endpoint.can_move
                && may_be_kept(request, answer)
            {
                *identity() = Some((request.clone(), answer.clone()));
            }
            return answers;
        };
        let mut answers = vec![kept];
        answers.extend(self.exchange_idle(requests.get(1..).unwrap_or_default()).await);
        answers
    }

    /// Sends requests, and again while a Bitcoin-like node is busy with another scan of its outputs.
    async fn exchange_idle(&self, requests: &[ReadRequest]) -> Vec<Answer> {
        let is_busy = |answer: &Answer| matches!(answer, Answer::Error(error) if (error.code, error.message.contains(SCANNING.1)) == (SCANNING.0, true));
        for _ in 0..SCAN_RETRY.0 {
            let answers = self.exchange_all(requests).await;
            if !answers.iter().any(is_busy) {
                return answers;
            }
            self.transport.sleep(SCAN_RETRY.1).await;
        }
        self.exchange_all(requests).await
    }

    /// Sends JSON-RPC calls together, and every other request by itself.
    async fn exchange_all(&self, requests: &[ReadRequest]) -> Vec<Answer> {
        let are_calls = requests.iter().all(|request| matches!(request, ReadRequest::JsonRpc { .. }));
        let mut answers: Vec<Option<Answer>> = vec![None; requests.len()];
        loop {
            let open: Vec<_> = answers.iter().enumerate().filter(|(_, answer)| answer.is_none()).map(|(place, _)| place).collect();
            if open.is_empty() {
                return answers.into_iter().flatten().collect();
            }
            let size = if are_calls { self.endpoint.queue.max_batch() } else { 1 };
            let parts: Vec<(&[usize], Vec<ReadRequest>)> =
                open.chunks(size).map(|part| (part, part.iter().filter_map(|place| requests.get(*place).cloned()).collect())).collect();
            for ((part, _), shared) in parts.iter().zip(join_all(parts.iter().map(|(_, part)| self.share(part))).await) {
                for (place, answer) in part.iter().zip(shared.into_iter().flatten()) {
                    if let Some(open) = answers.get_mut(*place) {
                        *open = Some(answer);
                    }
                }
            }
        }
    }

    /// Sends requests and returns their answers. If the endpoint is busy, they are sent together with those of other callers, and equal
    /// ones once. `None` if the endpoint refused so many calls at once.
    async fn share(&self, requests: &[ReadRequest]) -> Option<Vec<Answer>> {
        let (permit, others) = match self.endpoint.queue.enter(requests).await {
            Admission::Send(permit, others) => (permit, others),
            Admission::Answered(answers) => return Some(answers),
            Admission::Refused => return None,
        };
        let mut batch = Batch::default();
        let own = batch.add(requests);
        let others: Vec<_> = others.into_iter().map(|waiter| (batch.add(waiter.requests()), waiter)).collect();
        let all = batch.requests.len();
        let answers = match json_rpc::encode(&batch.requests) {
            Some(body) => {
                let request = self.request(Method::Post, "").with_header("content-type", "application/json");
                let response = self.exchange(&request.with_body(body.into_bytes())).await;
                drop(permit);
                if all > 1 && is_too_much(&response) {
                    self.endpoint.queue.batch_less(all);
                    others.into_iter().for_each(|(_, waiter)| waiter.refuse());
                    return None;
                }
                match response {
                    Ok(response) => {
                        let answers = json_rpc::answers(response.status, &response.body, all);
                        answers.into_iter().map(|answer| self.endpoint.without_keys(answer)).collect()
                    }
                    Err(error) => vec![Answer::Failed(error.failure()); all],
                }
            }
            None => {
                let answers = join_all(batch.requests.iter().map(|request| self.fetch(request))).await;
                drop(permit);
                answers
            }
        };
        let missing = Answer::Failed(FailureKind::Other.into());
        let slice = |places: &[usize]| places.iter().map(|place| answers.get(*place).unwrap_or(&missing).clone()).collect();
        for (places, waiter) in others {
            waiter.answer(slice(&places));
        }
        Some(slice(&own))
    }

    async fn fetch(&self, request: &ReadRequest) -> Answer {
        let (request, format) = match request {
            ReadRequest::Get { path, format } => (self.request(Method::Get, path), format),
            ReadRequest::Post { path, body, format } => (self.request(Method::Post, path).with_body(body.to_vec()), format),
            _ => return Answer::Failed(FailureKind::Unsupported.into()),
        };
        let request = if request.body.is_some() { request.with_header("content-type", format.content_type()) } else { request };
        match self.exchange(&request).await {
            Ok(response) => Answer::Http { status: response.status, body: response.body.into(), grpc_status: response.grpc_status },
            Err(error) => Answer::Failed(error.failure()),
        }
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

    async fn exchange(&self, request: &Request) -> Result<Response, NodeError> {
        let answer = self.transport.send(request).await;
        let (endpoint, method) = (self.endpoint.name(), request.method.name());
        match &answer {
            Ok(response) => tracing::debug!(endpoint, method, status = response.status, bytes = response.body.len(), "answered"),
            Err(error) => tracing::debug!(endpoint, method, code = error.kind.name(), "not answered"),
        }
        answer.map_err(|error| NodeError::Transport { endpoint: self.endpoint.host().to_owned(), error })
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

/// Returns whether an endpoint refused a batch because it has too many calls. The sign of that is an HTTP status, a single reply to all
/// calls, or a response that exceeds the size limit.
fn is_too_much(response: &Result<Response, NodeError>) -> bool {
    match response {
        Ok(Response { status: 200, body, .. }) => body.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'{'),
        Ok(response) => matches!(response.status, 400 | 413 | 422),
        Err(NodeError::Transport { error, .. }) => error.kind == TransportErrorKind::TooLarge,
        Err(_) => false,
    }
}
