//! Why a call did not return its result, sorted by who has to act.

use std::time::Duration;

use countersign::{Hold, Refusal, text};

/// Why a call did not return its result.
///
/// [`Display`](std::fmt::Display) says what failed, [`source`](std::error::Error::source) why: print both.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No complete response arrived.
    #[error(transparent)]
    Transport(#[from] TransportError),
    /// An HTTP status other than 2xx, and a body that is not the service's error envelope. A redirect ends here, because none is
    /// followed.
    #[error("the service responded with HTTP status {status}: {body}")]
    Status {
        /// The HTTP status.
        status: u16,
        /// The body, capped and escaped.
        body: String,
        /// How long the service asks to wait.
        retry_after: Option<Duration>,
    },
    /// The service says in its envelope that it failed.
    #[error("the service responded with an error (HTTP status {status}): {error}")]
    Service {
        /// The HTTP status.
        status: u16,
        /// The service's text, capped and escaped.
        error: String,
        /// How long the service asks to wait.
        retry_after: Option<Duration>,
    },
    /// The response does not have its documented shape. The refusal's location is a pointer into the body.
    #[error("the response does not have its documented shape")]
    Shape(#[source] Refusal),
    /// The caller's input is invalid. Nothing was sent.
    #[error("the input is invalid, nothing was sent")]
    Input(#[source] Refusal),
    /// The order was refused. The call sent neither a signature nor a secret.
    #[error("the order was refused")]
    Refused(#[source] Refusal),
    /// The secret was not released.
    #[error("the secret was not released")]
    Held(#[from] Hold),
    /// The operating system returned no random numbers.
    #[error("no random numbers")]
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

    /// Returns whether the same call may succeed later: the network failed, or the service or a proxy before it is unavailable.
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

    /// Returns how long the service asks to wait.
    #[must_use]
    pub const fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Status { retry_after, .. } | Self::Service { retry_after, .. } => *retry_after,
            _ => None,
        }
    }

    /// Returns whether the service may have acted on the call although it failed. A POST or PATCH that ends like this is not
    /// repeated: fetch the order instead.
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

/// No complete response arrived.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{kind}: {detail}")]
#[non_exhaustive]
pub struct TransportError {
    /// What failed.
    pub kind: TransportErrorKind,
    /// What the HTTP stack and its causes say, capped and escaped, without address, header or body. The error has no
    /// source, because that would contain all three.
    pub detail: String,
}

impl TransportError {
    /// Creates an error with the HTTP stack's message, which is capped and escaped.
    #[must_use]
    pub fn new(kind: TransportErrorKind, detail: &str) -> Self {
        Self { kind, detail: text::escape_untrusted(detail) }
    }
}

/// Which part of a call failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TransportErrorKind {
    /// No connection was established: nothing was sent.
    #[error("no connection")]
    Connect,
    /// No complete response within the timeout.
    #[error("timed out")]
    Timeout,
    /// The connection broke after the request began to leave.
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
    /// The request would leave the host that it is meant for, or leave without TLS.
    #[error("the address is not safe to send to")]
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
