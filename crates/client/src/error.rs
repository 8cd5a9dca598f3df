//! Why a call did not give its result, sorted by who is to blame.

use std::time::Duration;

use countersign::Refusal;
use countersign::core::text;

use crate::release::Hold;

/// Why a call did not give its result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No whole answer came.
    #[error(transparent)]
    Transport(#[from] TransportError),
    /// An HTTP status other than 2xx, and a body that is not the service's error envelope. Redirects end here: none is
    /// followed.
    #[error("the service answered with HTTP status {status}: {body}")]
    Status {
        /// The HTTP status.
        status: u16,
        /// The body, capped and escaped.
        body: String,
        /// How long the service asks to wait.
        retry_after: Option<Duration>,
    },
    /// The service says in its envelope that it failed.
    #[error("the service answered with an error (HTTP status {status}): {error}")]
    Service {
        /// The HTTP status.
        status: u16,
        /// The service's text, capped and escaped.
        error: String,
        /// How long the service asks to wait.
        retry_after: Option<Duration>,
    },
    /// The answer does not have its documented shape. The pointer leads into the body.
    #[error("the answer does not have its documented shape: {0}")]
    Shape(Refusal),
    /// What was given cannot be asked for. Nothing was sent.
    #[error("this cannot be asked for: {0}")]
    Input(Refusal),
    /// The order was refused. Nothing was signed, no secret has left.
    #[error("refused: {0}")]
    Refused(Refusal),
    /// The secret stays where it is.
    #[error("the secret is held back: {0}")]
    Held(#[from] Hold),
    /// The operating system gave no random numbers.
    #[error("the operating system gave no random numbers: {0}")]
    Random(String),
}

impl Error {
    /// A stable name.
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

    /// Whether the same call may give a result later: the network failed, or the service is busy.
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

    /// How long the service asked to wait.
    #[must_use]
    pub const fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Status { retry_after, .. } | Self::Service { retry_after, .. } => *retry_after,
            _ => None,
        }
    }

    /// Whether the service may have acted on the call all the same. A POST or PATCH with such an end is not sent again:
    /// ask for the order instead.
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
    matches!(status, 429 | 503)
}

/// No whole answer came.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{kind}: {detail}")]
#[non_exhaustive]
pub struct TransportError {
    /// What failed.
    pub kind: TransportErrorKind,
    /// What the HTTP stack says, without address, header or body.
    pub detail: String,
}

impl TransportError {
    /// A failure with the HTTP stack's words, which are capped and escaped.
    #[must_use]
    pub fn new(kind: TransportErrorKind, detail: &str) -> Self {
        Self { kind, detail: text::escape_untrusted(detail) }
    }
}

/// What failed on the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TransportErrorKind {
    /// No connection came about: nothing was sent.
    #[error("no connection")]
    Connect,
    /// No whole answer within the time that is allowed.
    #[error("timed out")]
    Timeout,
    /// The connection broke after the request began to leave.
    #[error("the connection broke")]
    Interrupted,
    /// The body is longer than is allowed.
    #[error("the answer is too long")]
    TooLarge,
    /// The body is compressed, although nobody asked for that.
    #[error("the answer is compressed")]
    Encoded,
    /// The HTTP stack cannot be set up.
    #[error("the HTTP stack cannot be set up")]
    Setup,
    /// The request would leave the host that it is meant for, or leave without TLS.
    #[error("the address is not safe to send to")]
    Insecure,
}

impl TransportErrorKind {
    /// A stable name.
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
