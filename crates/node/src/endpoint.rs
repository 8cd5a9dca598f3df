//! One endpoint: where requests go, and how JSON-RPC is spoken with it.

#[cfg(feature = "starknet")]
use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
#[cfg(feature = "starknet")]
use std::sync::{Mutex, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use countersign::json::{self, Node, Value};
use countersign::{Code, Refusal};
use countersign_client::url::Url;
use countersign_client::{Method, Request, Response, Transport, is_safe};
use serde_json::json;
use zeroize::Zeroizing;

use crate::error::NodeError;

/// Most bytes of a revert reason that are kept.
const MAX_REVERT: usize = 4 * 1024;

/// An endpoint of the user's own choice. It is shown as its host alone: paths, queries and passwords are keys of accounts.
pub struct Endpoint {
    url: Url,
    /// The value of the header `authorization`, from user and password of the URL.
    authorization: Option<Zeroizing<String>>,
    host: String,
    /// Whether it is a node's own RPC where an index server is expected otherwise.
    pub(crate) is_rpc: bool,
    /// Whether it has shown that it serves the right chain.
    pub(crate) is_identified: AtomicBool,
    /// The greatest height that it has shown.
    height: AtomicU64,
    /// The code that it has shown of each contract.
    #[cfg(feature = "starknet")]
    code: Mutex<BTreeMap<Contract, [u8; 32]>>,
}

/// A contract's address, and what it is taken for.
#[cfg(feature = "starknet")]
type Contract = ([u8; 32], &'static str);

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Endpoint({})", self.host)
    }
}

impl Endpoint {
    /// Reads the URL of an endpoint: https, or http to this machine. `rpc+` before it says that it is a node's own RPC, where
    /// the chain's family is read through an index server otherwise.
    ///
    /// # Errors
    ///
    /// [`NodeError::Endpoint`]. The text is not part of the error.
    pub fn parse(text: &str) -> Result<Self, NodeError> {
        let refuse = NodeError::Endpoint;
        let (text, is_rpc) = text.strip_prefix("rpc+").map_or((text, false), |rest| (rest, true));
        let mut url = Url::parse(text).map_err(|_| refuse("an endpoint is a URL"))?;
        let authorization = url.password().map(|password| {
            let pair = Zeroizing::new(format!("{}:{password}", url.username()));
            Zeroizing::new(format!("Basic {}", STANDARD.encode(pair.as_bytes())))
        });
        let cleared = url.set_password(None).and_then(|()| url.set_username(""));
        cleared.map_err(|()| refuse("an endpoint has a host"))?;
        if !is_safe(&url) || url.fragment().is_some() {
            return Err(refuse("an endpoint is reached by https, or by http on this machine"));
        }
        let host = match (url.host_str(), url.port()) {
            (Some(host), Some(port)) => format!("{host}:{port}"),
            (host, _) => host.unwrap_or_default().to_owned(),
        };
        let (is_identified, height) = (AtomicBool::new(false), AtomicU64::new(0));
        Ok(Self {
            url,
            authorization,
            host,
            is_rpc,
            is_identified,
            height,
            #[cfg(feature = "starknet")]
            code: Mutex::default(),
        })
    }

    /// Returns the host, which is all that is shown of an endpoint.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }
}

/// One call of JSON-RPC.
pub(crate) struct Call {
    method: &'static str,
    /// The parameters, as JSON.
    params: serde_json::Value,
}

impl Call {
    pub(crate) const fn new(method: &'static str, params: serde_json::Value) -> Self {
        Self { method, params }
    }
}

/// Returns one of the results; there is one for each call.
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
    /// Calls several methods in one request, and reads the results in the order of the calls. A node that fails one of them fails
    /// all: what was not read is unknown.
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
        let body = |(id, call): (usize, &Call)| json!({"jsonrpc": "2.0", "id": id, "method": call.method, "params": call.params});
        // Some nodes know no batch of one.
        let body = match calls {
            [only] => body((0, only)),
            _ => serde_json::Value::Array(calls.iter().enumerate().map(body).collect()),
        };
        let answer = self.post("", body.to_string().into_bytes()).await?;
        let value = json::parse(&answer).map_err(|refusal| self.malformed(refusal))?;
        let mut replies: Vec<Option<&Value<'_>>> = vec![None; calls.len()];
        let all = match &value {
            Value::Array(all) if calls.len() > 1 => all,
            one => std::slice::from_ref(one),
        };
        for reply in all {
            let node = Node::root(reply, "");
            // A node that cannot read a batch answers it with one error without an id.
            if let Err(error) = self.result(reply)
                && member(reply, "id").is_none()
            {
                return Err(error);
            }
            let id = node.object().and_then(|members| members.need("id")?.integer()).map_err(|refusal| self.malformed(refusal))?;
            match usize::try_from(id).ok().and_then(|id| replies.get_mut(id)) {
                Some(slot @ None) => *slot = Some(reply),
                _ => return Err(self.malformed(Refusal::new(Code::UnexpectedField, "/id").with_actual(id))),
            }
        }
        Ok(read(replies.into_iter().map(|reply| self.outcome(reply)).collect()))
    }

    fn outcome<'v>(&self, reply: Option<&'v Value<'v>>) -> Result<Node<'static, 'v>, NodeError> {
        match reply {
            Some(reply) => Ok(self.result(reply)?.map_or(NULL, |result| Node::root(result, "/result"))),
            None => Err(self.malformed(Refusal::new(Code::MissingField, "/id").with_expected("a reply to each call"))),
        }
    }

    /// Returns the result of a reply; `None` for null.
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
            Some(reason) => format!("{message}: {reason}"),
            None => message.to_owned(),
        };
        let data = data.and_then(|data| Node::root(data, "").hex_bytes(MAX_REVERT).ok());
        Err(NodeError::rpc(self.endpoint.host(), code, &message, data))
    }

    /// Posts a body to a path below the endpoint.
    pub(crate) async fn post(&self, path: &str, body: Vec<u8>) -> Result<Vec<u8>, NodeError> {
        let request = self.request(Method::Post, path).with_header("content-type", "application/json").with_body(body);
        self.send(&request).await
    }

    /// Posts plain text to a path below the endpoint, and returns the response whatever its status is: the body says why the text
    /// was not taken.
    #[cfg(feature = "bitcoin")]
    pub(crate) async fn post_text(&self, path: &str, text: &str) -> Result<Response, NodeError> {
        let request = self.request(Method::Post, path).with_header("content-type", "text/plain").with_body(text.as_bytes().to_vec());
        self.exchange(&request).await
    }

    /// Reads a path below the endpoint.
    #[allow(dead_code, reason = "only index servers are read by path, and a build can be without their family")]
    pub(crate) async fn get(&self, path: &str) -> Result<Vec<u8>, NodeError> {
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
            // A node's own RPC answers a call that failed with a status of 500 and the error as JSON.
            500 if self.endpoint.is_rpc && answer.body.first() == Some(&b'{') => Ok(answer.body),
            status => Err(NodeError::Status { endpoint: self.endpoint.host().to_owned(), status }),
        }
    }

    async fn exchange(&self, request: &Request) -> Result<Response, NodeError> {
        let answer = self.transport.send(request).await;
        answer.map_err(|error| NodeError::Transport { endpoint: self.endpoint.host().to_owned(), error })
    }

    /// What the endpoint says cannot be read, or contradicts itself.
    pub(crate) fn malformed(&self, refusal: Refusal) -> NodeError {
        NodeError::Malformed { endpoint: self.endpoint.host().to_owned(), refusal }
    }

    /// Requires that the chain of the endpoint has not become shorter since it was last asked: one that goes back is stale, or
    /// one of several behind the same address. A few blocks are a reorganisation.
    pub(crate) fn check_height(&self, now: u64, tolerance: u64) -> Result<(), NodeError> {
        let before = self.endpoint.height.fetch_max(now, Ordering::Relaxed);
        if now.saturating_add(tolerance) < before {
            return Err(NodeError::WentBack { endpoint: self.endpoint.host().to_owned(), before, now });
        }
        Ok(())
    }

    /// Returns whether the endpoint has shown the code of a contract that is taken for one of a kind before.
    #[cfg(feature = "starknet")]
    pub(crate) fn has_code(&self, contract: [u8; 32], kind: &'static str) -> bool {
        self.endpoint.code.lock().unwrap_or_else(PoisonError::into_inner).contains_key(&(contract, kind))
    }

    /// Returns whether such a contract has the code that the endpoint has shown before. The first time it is remembered.
    #[cfg(feature = "starknet")]
    pub(crate) fn is_same_code(&self, contract: [u8; 32], kind: &'static str, code: [u8; 32]) -> bool {
        *self.endpoint.code.lock().unwrap_or_else(PoisonError::into_inner).entry((contract, kind)).or_insert(code) == code
    }
}

/// Returns why a call failed, where the node names the calls on the way there: `{"execution_error": {.., "error": {.., "error": ".."}}}`.
fn reason<'v>(data: &'v Value<'v>) -> Option<&'v str> {
    let mut inner = ["execution_error", "revert_error"].into_iter().find_map(|name| member(data, name))?;
    while let Some(error) = member(inner, "error") {
        inner = error;
    }
    match inner {
        Value::String(text) => Some(text),
        _ => None,
    }
}

const NULL: Node<'static, 'static> = Node::root(&Value::Null, "/result");

/// Returns a member of an object that is not null.
fn member<'v>(value: &'v Value<'v>, name: &str) -> Option<&'v Value<'v>> {
    let Value::Object(members) = value else { return None };
    members.iter().find(|(key, value)| key == name && *value != Value::Null).map(|(_, value)| value)
}
