//! Errors of the client, sorted by who has to act.

use std::fmt;
use std::time::Duration;

use countersign::{Code, Refusal, text};
use countersign_transport::{TransportError, TransportErrorKind};

/// An error of a call.
///
/// The message says what failed and why. No variant has a [`source`](std::error::Error::source) that the message repeats.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The transport failed: no complete response arrived.
    #[error(transparent)]
    Transport(#[from] TransportError),
    /// The response has an HTTP status other than 2xx, and its body is not the service's error envelope. Redirects end here, because
    /// they are not followed.
    #[error("the service responded with HTTP status {status}{}", behind_status(*status, body))]
    Status {
        /// The HTTP status.
        status: u16,
        /// The body, truncated and escaped.
        body: String,
        /// How long to wait by the header `retry-after`; `None` if it is missing or not in seconds.
        retry_after: Option<Duration>,
    },
    /// The service returned an error envelope.
    #[error("the service responded with an error (HTTP status {status}): {}", text::quote_whole(error))]
    Service {
        /// The HTTP status.
        status: u16,
        /// The service's text, truncated and escaped.
        error: String,
        /// How long to wait by the header `retry-after`; `None` if it is missing or not in seconds.
        retry_after: Option<Duration>,
    },
    /// The response does not have its documented shape. The refusal's location is a pointer into the body.
    #[error("the response does not have its documented shape: {}", .0.finding())]
    Shape(Refusal),
    /// The caller's input is invalid. Nothing was sent.
    #[error("invalid input; nothing was sent: {0}")]
    Input(Refusal),
    /// The order was refused. The call sent neither a signature nor a secret.
    #[error("the order was refused: {0}")]
    Refused(Refusal),
    /// The operating system returned no random numbers.
    #[error("the operating system returned no random numbers: {0}")]
    Random(RandomError),
}

/// The operating system returned no random numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct RandomError(pub(crate) getrandom::Error);

impl From<RandomError> for Error {
    fn from(error: RandomError) -> Self {
        Self::Random(error)
    }
}

/// The code of an [`Error`]: which one it is, without its texts. [`ErrorCode::name`] never changes once released.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorCode {
    /// [`Error::Transport`], and what failed.
    Transport(TransportErrorKind),
    /// [`Error::Status`].
    Status,
    /// [`Error::Service`].
    Service,
    /// [`Error::Shape`], [`Error::Input`] or [`Error::Refused`], and the code of the refusal.
    Refused(Code),
    /// [`Error::Random`].
    Random,
}

impl ErrorCode {
    /// Returns the stable name, in snake case.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Transport(kind) => kind.name(),
            Self::Status => "http_status",
            Self::Service => "service_error",
            Self::Refused(code) => code.name(),
            Self::Random => "random",
        }
    }
}

impl fmt::Display for ErrorCode {
    /// Writes the stable name.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Formats an HTTP status: its meaning for the caller, and the text of the response.
fn behind_status(status: u16, body: &str) -> String {
    let redirect = if (300..400).contains(&status) { ", a redirect, which is not followed: check the base URL" } else { "" };
    if body.trim().is_empty() { redirect.to_owned() } else { format!("{redirect}: {}", text::quote_whole(body)) }
}

impl Error {
    /// Returns the stable code.
    #[must_use]
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Transport(error) => ErrorCode::Transport(error.kind),
            Self::Status { .. } => ErrorCode::Status,
            Self::Service { .. } => ErrorCode::Service,
            Self::Shape(refusal) | Self::Input(refusal) | Self::Refused(refusal) => ErrorCode::Refused(refusal.code()),
            Self::Random(_) => ErrorCode::Random,
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
