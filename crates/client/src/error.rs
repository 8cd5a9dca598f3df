//! Errors of the client, sorted by who has to act.

use std::time::Duration;

use countersign::{Hold, Refusal, text};

/// An error of a call.
///
/// [`Display`](std::fmt::Display) says what failed; [`source`](std::error::Error::source) says why. Print both.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The transport failed: no complete response arrived.
    #[error(transparent)]
    Transport(#[from] TransportError),
    /// The response has an HTTP status other than 2xx, and its body is not the service's error envelope. Redirects end here, because
    /// they are not followed.
    #[error("the service responded with HTTP status {status}: {body}")]
    Status {
        /// The HTTP status.
        status: u16,
        /// The body, truncated and escaped.
        body: String,
        /// How long to wait by the header `retry-after`; `None` if it is missing or not in seconds.
        retry_after: Option<Duration>,
    },
    /// The service returned an error envelope.
    #[error("the service responded with an error (HTTP status {status}): {error}")]
    Service {
        /// The HTTP status.
        status: u16,
        /// The service's text, truncated and escaped.
        error: String,
        /// How long to wait by the header `retry-after`; `None` if it is missing or not in seconds.
        retry_after: Option<Duration>,
    },
    /// The response does not have its documented shape. The refusal's location is a pointer into the body.
    #[error("the response does not have its documented shape")]
    Shape(#[source] Refusal),
    /// The caller's input is invalid. Nothing was sent.
    #[error("invalid input; nothing was sent")]
    Input(#[source] Refusal),
    /// The order was refused. The call sent neither a signature nor a secret.
    #[error("the order was refused")]
    Refused(#[source] Refusal),
    /// The secret was not released.
    #[error("the secret was not released")]
    Held(#[from] Hold),
    /// The operating system returned no random numbers.
    #[error("the operating system returned no random numbers")]
    Random(#[from] RandomError),
}

/// The operating system returned no random numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct RandomError(pub(crate) getrandom::Error);

impl Error {
    /// Returns the stable code.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Transport(error) => error.kind.code(),
            Self::Status { .. } => "http_status",
            Self::Service { .. } => "service_error",
            Self::Shape(refusal) | Self::Input(refusal) | Self::Refused(refusal) => refusal.code().name(),
            Self::Held(hold) => hold.code(),
            Self::Random(_) => "random",
        }
    }

    /// Returns whether the same call may succeed later: the network failed, or the service or a proxy in front of it is unavailable.
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        match self {
            Self::Transport(error) => {
                matches!(error.kind, TransportErrorKind::Connect | TransportErrorKind::Timeout | TransportErrorKind::Interrupted)
            }
            Self::Status { status, .. } | Self::Service { status, .. } => is_busy(*status),
            _ => false,
        }
    }

    /// Returns how long to wait by the header `retry-after`; `None` if it is missing or not in seconds.
    #[must_use]
    pub const fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Status { retry_after, .. } | Self::Service { retry_after, .. } => *retry_after,
            _ => None,
        }
    }

    /// Returns whether the service may have acted on the call although it failed. The client does not repeat such a POST or PATCH.
    /// Fetch the order instead.
    #[must_use]
    pub const fn may_have_acted(&self) -> bool {
        match self {
            Self::Transport(error) => !matches!(error.kind, TransportErrorKind::Connect | TransportErrorKind::Insecure),
            Self::Status { .. } | Self::Service { .. } | Self::Shape(_) => true,
            _ => false,
        }
    }
}

pub(crate) const fn is_busy(status: u16) -> bool {
    matches!(status, 408 | 425 | 429 | 500 | 502 | 503 | 504)
}

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
    /// Returns the stable code.
    #[must_use]
    pub const fn code(self) -> &'static str {
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
