//! Errors of the HTTP stack.

use countersign_core::text;

/// An error of the transport: no complete response arrived.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{kind}: {detail}")]
#[non_exhaustive]
pub struct TransportError {
    /// What failed.
    pub kind: TransportErrorKind,
    /// The messages of the HTTP stack and its causes, truncated and escaped, without address, headers or body. The error has no
    /// source, because a source could contain all three.
    pub detail: String,
}

impl TransportError {
    /// Creates an error with the HTTP stack's message, which is truncated and escaped.
    #[must_use]
    pub fn new(kind: TransportErrorKind, detail: &str) -> Self {
        Self { kind, detail: text::escape_untrusted(detail) }
    }
}

/// Which part of a call failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TransportErrorKind {
    /// No connection was established, so nothing was sent.
    #[error("no connection")]
    Connect,
    /// No complete response arrived within the timeout.
    #[error("timed out")]
    Timeout,
    /// The connection broke after sending had begun.
    #[error("the connection broke")]
    Interrupted,
    /// The body is longer than [`MAX_BODY`](crate::MAX_BODY).
    #[error("the response is too long")]
    TooLarge,
    /// The body is compressed, although the request asked for none.
    #[error("the response is compressed")]
    Encoded,
    /// The HTTP stack cannot be set up.
    #[error("the HTTP stack cannot be set up")]
    Setup,
    /// The address is not one that a request may be sent to: see [`is_safe`](crate::is_safe).
    #[error("unsafe address")]
    Insecure,
}

impl TransportErrorKind {
    /// Returns the stable name, in snake case.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Connect => "transport_connect",
            Self::Timeout => "transport_timeout",
            Self::Interrupted => "transport_interrupted",
            Self::TooLarge => "transport_too_large",
            Self::Encoded => "transport_encoded",
            Self::Setup => "transport_setup",
            Self::Insecure => "transport_insecure",
        }
    }
}
