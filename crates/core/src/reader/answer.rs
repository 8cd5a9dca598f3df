//! An endpoint's answers, as untrusted bytes, and how a reader sees them.

use std::fmt;
use std::sync::Arc;

use super::Fault;
use crate::json::Cursor;
use crate::report::{Code, Refusal, text};

/// The answer to one [`Request`](super::Request). Its content is untrusted.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Answer {
    /// The JSON text of a JSON-RPC `result`; `null` if the reply has none.
    Result(Arc<[u8]>),
    /// The error of a JSON-RPC reply.
    Error(RpcError),
    /// The complete response to a GET or POST, with any status.
    Http {
        /// The HTTP status.
        status: u16,
        /// The body.
        body: Arc<[u8]>,
        /// The header `grpc-status`, if there is one.
        grpc_status: Option<String>,
    },
    /// No complete response arrived. This never says anything about the chain.
    Failed(Failure),
}

impl Answer {
    /// Creates the answer for the JSON text of a `result`.
    #[must_use]
    pub fn result(text: impl Into<Arc<[u8]>>) -> Self {
        Self::Result(text.into())
    }

    /// Creates the answer for a response to a GET or POST.
    #[must_use]
    pub fn http(status: u16, body: impl Into<Arc<[u8]>>) -> Self {
        Self::Http { status, body: body.into(), grpc_status: None }
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Self::Result(bytes) | Self::Http { body: bytes, .. } => bytes.len(),
            Self::Error(error) => error.message.len().saturating_add(error.data.as_ref().map_or(0, Vec::len)),
            Self::Failed(_) => 0,
        }
    }
}

/// A node's error: the call failed, or the contract reverted.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RpcError {
    /// The node's code; 0 if it gives none.
    pub code: i64,
    /// The node's message, with its length capped and control characters escaped.
    pub message: String,
    /// The revert data of a failed call, if the node returned any.
    pub data: Option<Vec<u8>>,
}

impl RpcError {
    /// Creates an error. The message is escaped.
    #[must_use]
    pub fn new(code: i64, message: &str, data: Option<Vec<u8>>) -> Self {
        Self { code, message: text::escape_untrusted(message), data }
    }
}

impl fmt::Display for RpcError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.message, self.code)
    }
}

/// Why no complete response arrived.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Failure {
    /// What failed.
    pub kind: FailureKind,
    /// The message of the connection, with its length capped and control characters escaped. It may be empty.
    pub detail: String,
}

/// What failed on the way to an endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum FailureKind {
    /// No connection was established, so nothing was sent.
    Connect,
    /// No complete response arrived in time.
    Timeout,
    /// The connection broke after sending had begun.
    Interrupted,
    /// The response is larger than the transport reads.
    TooLarge,
    /// The response to a JSON-RPC request has an HTTP status other than 200.
    Status(u16),
    /// The response to a JSON-RPC request is not one.
    NotJsonRpc,
    /// The connection refused to send the request.
    Unsupported,
    /// Anything else.
    Other,
}

impl FailureKind {
    /// Returns the stable name, in snake case.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Connect => "connect",
            Self::Timeout => "timeout",
            Self::Interrupted => "interrupted",
            Self::TooLarge => "response_too_large",
            Self::Status(_) => "node_http_status",
            Self::NotJsonRpc => "node_malformed",
            Self::Unsupported => "unsupported",
            Self::Other => "network",
        }
    }
}

impl Failure {
    /// Creates a failure. The detail is escaped.
    #[must_use]
    pub fn new(kind: FailureKind, detail: &str) -> Self {
        Self { kind, detail: text::escape_untrusted(detail) }
    }
}

impl From<FailureKind> for Failure {
    fn from(kind: FailureKind) -> Self {
        Self { kind, detail: String::new() }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.kind {
            FailureKind::Connect => "no connection",
            FailureKind::Timeout => "timed out",
            FailureKind::Interrupted => "the connection broke",
            FailureKind::TooLarge => "the response is too large",
            FailureKind::Status(status) => return write!(f, "HTTP status {status}"),
            FailureKind::NotJsonRpc => "the response is not a JSON-RPC reply",
            FailureKind::Unsupported => "the connection does not support the request",
            FailureKind::Other => "the request failed",
        };
        f.write_str(what)?;
        if self.detail.is_empty() { Ok(()) } else { write!(f, ": {}", self.detail) }
    }
}

/// An answer, as a [`Machine`](super::Machine) reads it: parsed where its format is JSON.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum Reply<'a> {
    /// A JSON-RPC result, or the body of a response in JSON with the status 200. Its location is `/result` or `""`.
    Json(Cursor<'a, 'a>),
    /// The body of a response in another format with the status 200.
    Bytes(&'a [u8]),
    /// The response of a gRPC-web service, with any status.
    Grpc {
        /// The HTTP status.
        status: u16,
        /// The frames.
        body: &'a [u8],
        /// The header `grpc-status`.
        grpc_status: Option<&'a str>,
    },
    /// A node's error.
    Error(&'a RpcError),
    /// A response with another status than 200.
    Status {
        /// The HTTP status.
        status: u16,
        /// The body.
        body: &'a [u8],
    },
    /// No complete response arrived.
    Failed(&'a Failure),
}

impl<'a> Reply<'a> {
    /// Returns the JSON value.
    ///
    /// # Errors
    ///
    /// The [`Fault`] of any other reply.
    pub fn json(&self) -> Result<Cursor<'a, 'a>, Fault> {
        match self {
            Self::Json(cursor) => Ok(*cursor),
            other => Err(other.fault()),
        }
    }

    /// Returns the JSON value, or the node's error.
    ///
    /// # Errors
    ///
    /// The [`Fault`] of any other reply.
    pub fn json_or_error(&self) -> Result<Result<Cursor<'a, 'a>, &'a RpcError>, Fault> {
        match self {
            Self::Json(cursor) => Ok(Ok(*cursor)),
            Self::Error(error) => Ok(Err(error)),
            other => Err(other.fault()),
        }
    }

    /// Returns the bytes of a body that is not JSON.
    ///
    /// # Errors
    ///
    /// The [`Fault`] of any other reply.
    pub fn bytes(&self) -> Result<&'a [u8], Fault> {
        match self {
            Self::Bytes(bytes) => Ok(bytes),
            other => Err(other.fault()),
        }
    }

    /// Returns the fault of a reply that cannot be used.
    #[must_use]
    pub fn fault(&self) -> Fault {
        match self {
            Self::Error(error) => Fault::Rpc((*error).clone()),
            Self::Status { status, .. } | Self::Grpc { status, .. } if *status != 200 => {
                Fault::Unanswered(FailureKind::Status(*status).into())
            }
            Self::Failed(failure) => Fault::Unanswered((*failure).clone()),
            Self::Json(_) | Self::Bytes(_) | Self::Grpc { .. } | Self::Status { .. } => {
                Fault::Malformed(Refusal::new(Code::WrongType, "").with_reason("the response is in another format than requested"))
            }
        }
    }
}

/// The replies to the requests of one round, in their order.
#[derive(Debug, Clone, Copy)]
pub struct Replies<'a>(&'a [Reply<'a>]);

impl<'a> Replies<'a> {
    pub(super) const fn new(replies: &'a [Reply<'a>]) -> Self {
        Self(replies)
    }

    /// Returns the reply to the request at `index`.
    ///
    /// # Errors
    ///
    /// [`Fault::Malformed`] if there were fewer requests.
    pub fn get(&self, index: usize) -> Result<Reply<'a>, Fault> {
        self.0.get(index).copied().ok_or_else(|| Fault::Malformed(Refusal::new(Code::MissingField, "/result")))
    }

    /// Returns the JSON value of the reply at `index`: see [`Reply::json`].
    ///
    /// # Errors
    ///
    /// The [`Fault`] of any other reply.
    pub fn json(&self, index: usize) -> Result<Cursor<'a, 'a>, Fault> {
        self.get(index)?.json()
    }

    /// Returns all replies.
    #[must_use]
    pub const fn all(&self) -> &'a [Reply<'a>] {
        self.0
    }
}
