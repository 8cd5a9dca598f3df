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

    /// Returns whether the node says that it does not have the method. Only then may a reader do without the method's answer: any other
    /// error, such as a rate limit, says nothing about the node or the chain.
    ///
    /// JSON-RPC has the code -32601 for this, and EIP-1474 -32004 on EVM chains. Others use the code of an invalid request, or one of their
    /// own, and say it in words.
    #[must_use]
    pub fn is_unknown_method(&self) -> bool {
        const MISSING: [&str; 9] = [
            "not found",
            "does not exist",
            "not available",
            "not supported",
            "unsupported",
            "unknown method",
            "not whitelisted",
            "not allowed",
            "disabled",
        ];
        // What passes: the same node may have the method a minute later.
        const PASSING: [&str; 6] = ["limit", "exceed", "too many", "again", "tempora", "time"];
        if matches!(self.code, -32_601 | -32_004) {
            return true;
        }
        let message = self.message.to_ascii_lowercase();
        let says = |words: &[&str]| words.iter().any(|word| message.contains(word));
        // A contract's revert has data, or the code 3, and may contain any words.
        let is_of_node = self.data.is_none() && !matches!(self.code, 3 | -32_005);
        let is_of_request = self.code == -32_600 || message.contains("method");
        is_of_node && is_of_request && says(&MISSING) && !says(&PASSING)
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

#[cfg(test)]
mod tests {
    use super::*;

    /// What nodes and providers say, and the texts of the two specifications.
    #[test]
    fn a_node_without_a_method_is_told_from_one_that_fails() {
        let error = |(code, message): (i64, &str)| RpcError::new(code, message, None);
        for missing in [
            (-32_601, "Method not found"),
            (-32_601, "the method eth_simulateV1 does not exist/is not available"),
            (-32_601, ""),
            (-32_004, "Method not supported"),
            (-32_600, "Unsupported method: eth_simulateV1. See available methods at https://docs.example"),
            (-32_600, "The method 'eth_simulateV1' is found but the namespace 'eth' is disabled"),
            (-32_600, "unsupported"),
            (-32_000, "rpc method is not whitelisted"),
            (0, "Method eth_simulateV1 is not available on the free tier"),
        ] {
            assert!(error(missing).is_unknown_method(), "{missing:?}");
        }
        for failed in [
            (-32_005, "limit exceeded"),
            (-32_005, "method not available: daily request count exceeded"),
            (429, "Too Many Requests"),
            (-32_000, "you have exceeded the rate limit of this method, which is not available now"),
            (-32_603, "internal error"),
            (-32_603, "method handler crashed"),
            (-32_000, "method temporarily not available"),
            (-32_000, "header not found"),
            (-32_600, "batch too large"),
            (-32_602, "invalid argument"),
            (3, "execution reverted: method not found"),
            (0, ""),
        ] {
            assert!(!error(failed).is_unknown_method(), "{failed:?}");
        }
        assert!(!RpcError::new(-32_000, "method not found", Some(vec![8])).is_unknown_method(), "a contract's revert");
    }
}
