//! The error of reads and writes: why a chain did not answer, or why its answer is not used.

use std::fmt;

use countersign::{Code, Refusal, chains::BlockHeight};
use countersign_core::reader::{Doubt, Failure, FailureKind, Fault};
use countersign_transport::{GatherError, TransportError, TransportErrorKind};

/// Why a chain did not answer, or why its answer is not used.
///
/// A failed read means "unknown", never "no". Errors show only the host of an endpoint, because many providers put an API key into the
/// path.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NodeError {
    /// No complete HTTP response arrived.
    #[error("{endpoint}: {error}")]
    Transport {
        /// The host.
        endpoint: String,
        /// What failed in the transport.
        error: TransportError,
    },
    /// The HTTP status of the response is not 200.
    #[error("{endpoint}: HTTP status {status}")]
    Status {
        /// The host.
        endpoint: String,
        /// The HTTP status.
        status: u16,
    },
    /// The node returned an error.
    #[error("{endpoint}: {message} ({code})")]
    Rpc {
        /// The host.
        endpoint: String,
        /// The node's error code; 0 if it gives none.
        code: i64,
        /// The node's error message, with its length capped and control characters escaped.
        message: String,
        /// The revert data of a failed call, if the node returned any.
        data: Option<Vec<u8>>,
    },
    /// The answer does not have the documented format, or contradicts itself.
    #[error("{endpoint}: {refusal}")]
    Malformed {
        /// The host.
        endpoint: String,
        /// What is wrong, and where in the answer.
        refusal: Refusal,
    },
    /// The endpoint serves another chain.
    #[error("{endpoint} serves another chain: {actual} instead of {expected}")]
    WrongChain {
        /// The host.
        endpoint: String,
        /// The identity of the pinned chain: its chain id, or the hash of its genesis block.
        expected: String,
        /// The identity that the endpoint reports.
        actual: String,
    },
    /// The newest block of the endpoint is older than one that it reported before, by more than a reorganization explains.
    #[error("{endpoint}: the newest block went back from {before} to {now}")]
    WentBack {
        /// The host.
        endpoint: String,
        /// The greatest height that the endpoint has reported.
        before: BlockHeight,
        /// The height that it reports now.
        now: BlockHeight,
    },
    /// Too few endpoints gave the same answer.
    #[error("too few endpoints agree: {agreed} of the required {needed}{detail}")]
    Disagree {
        /// The number of endpoints that gave the most frequent answer.
        agreed: u32,
        /// The number of endpoints that must give the same answer.
        needed: u32,
        /// The errors of the endpoints that failed, each after `; `. Empty if none failed.
        detail: String,
    },
    /// The configuration is invalid, or a configured endpoint cannot be used. Nothing of the URL is shown, because it may contain a key.
    #[error("{0}")]
    Endpoint(&'static str),
    /// No endpoint is configured for the chain, or this build does not support its family. Contains the name of the chain.
    #[error("not connected to {0}")]
    NotConnected(String),
    /// An input is invalid, the node's figures exceed the policy, the sender has too little, or the transaction would not do what was
    /// verified.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The node rejected the transaction as invalid.
    #[error("{endpoint} rejected the transaction: {message}")]
    Rejected {
        /// The host.
        endpoint: String,
        /// The node's reason, with its length capped and control characters escaped.
        message: String,
    },
}

/// The code of a [`NodeError`]: which one it is, without its texts. [`NodeErrorCode::name`] never changes once released.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum NodeErrorCode {
    /// [`NodeError::Transport`], and what failed.
    Transport(TransportErrorKind),
    /// [`NodeError::Status`].
    Status,
    /// [`NodeError::Rpc`].
    Rpc,
    /// [`NodeError::Malformed`].
    Malformed,
    /// [`NodeError::WrongChain`].
    WrongChain,
    /// [`NodeError::WentBack`].
    WentBack,
    /// [`NodeError::Disagree`].
    Disagree,
    /// [`NodeError::Endpoint`].
    Endpoint,
    /// [`NodeError::NotConnected`].
    NotConnected,
    /// [`NodeError::Refused`], and the code of the refusal.
    Refused(Code),
    /// [`NodeError::Rejected`].
    Rejected,
}

impl NodeErrorCode {
    /// Returns the stable name, in snake case.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Transport(kind) => kind.name(),
            Self::Status => "node_http_status",
            Self::Rpc => "node_error",
            Self::Malformed => "node_malformed",
            Self::WrongChain => "node_wrong_chain",
            Self::WentBack => "node_went_back",
            Self::Disagree => "node_disagree",
            Self::Endpoint => "node_endpoint",
            Self::NotConnected => "not_connected",
            Self::Refused(code) => code.name(),
            Self::Rejected => "transaction_rejected",
        }
    }
}

impl fmt::Display for NodeErrorCode {
    /// Writes the stable name.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl NodeError {
    /// Returns the stable code.
    #[must_use]
    pub fn code(&self) -> NodeErrorCode {
        match self {
            Self::Transport { error, .. } => NodeErrorCode::Transport(error.kind),
            Self::Status { .. } => NodeErrorCode::Status,
            Self::Rpc { .. } => NodeErrorCode::Rpc,
            Self::Malformed { .. } => NodeErrorCode::Malformed,
            Self::WrongChain { .. } => NodeErrorCode::WrongChain,
            Self::WentBack { .. } => NodeErrorCode::WentBack,
            Self::Disagree { .. } => NodeErrorCode::Disagree,
            Self::Endpoint(_) => NodeErrorCode::Endpoint,
            Self::NotConnected(_) => NodeErrorCode::NotConnected,
            Self::Refused(refusal) => NodeErrorCode::Refused(refusal.code()),
            Self::Rejected { .. } => NodeErrorCode::Rejected,
        }
    }

    /// Returns whether this says no, and not only that there is no answer.
    #[must_use]
    pub const fn is_refused(&self) -> bool {
        matches!(self, Self::Refused(_))
    }

    /// Returns whether the same request may succeed later.
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        match self {
            Self::Transport { error, .. } => {
                matches!(error.kind, TransportErrorKind::Connect | TransportErrorKind::Timeout | TransportErrorKind::Interrupted)
            }
            Self::Status { .. } | Self::Rpc { .. } | Self::Disagree { .. } | Self::WentBack { .. } | Self::Malformed { .. } => true,
            Self::WrongChain { .. } | Self::Endpoint(_) | Self::NotConnected(_) | Self::Refused(_) | Self::Rejected { .. } => false,
        }
    }
}

impl NodeError {
    /// Converts the fault of an endpoint.
    pub(crate) fn from_fault(endpoint: &str, fault: Fault) -> Self {
        let endpoint = endpoint.to_owned();
        match fault {
            Fault::Unanswered(Failure { kind: FailureKind::Status(status), .. }) => Self::Status { endpoint, status },
            Fault::Unanswered(Failure { kind: FailureKind::NotJsonRpc, detail, .. }) => {
                Self::Malformed { endpoint, refusal: Refusal::new(Code::JsonSyntax, "").with_reason(detail) }
            }
            Fault::Unanswered(failure) => {
                let kind = match failure.kind {
                    FailureKind::Connect => TransportErrorKind::Connect,
                    FailureKind::Timeout => TransportErrorKind::Timeout,
                    FailureKind::TooLarge => TransportErrorKind::TooLarge,
                    _ => TransportErrorKind::Interrupted,
                };
                Self::Transport { endpoint, error: TransportError::new(kind, &failure.detail) }
            }
            Fault::Rpc(error) => Self::Rpc { endpoint, code: error.code, message: error.message, data: error.data },
            Fault::Malformed(refusal) => Self::Malformed { endpoint, refusal },
            Fault::WrongChain { expected, actual } => Self::WrongChain { endpoint, expected, actual },
            Fault::WentBack { before, now } => Self::WentBack { endpoint, before, now },
            Fault::Rejected(message) => Self::Rejected { endpoint, message },
            Fault::Refused(refusal) => Self::Refused(refusal),
            other => Self::Malformed { endpoint, refusal: Refusal::new(Code::JsonTooLarge, "").with_reason(other.to_string()) },
        }
    }

    /// Converts why too few endpoints agree. `only` is the name of the endpoint if there is one only.
    pub(crate) fn from_doubt<E: fmt::Display>(only: &str, doubt: Doubt<E>) -> Self {
        match doubt {
            Doubt::Fault(fault) => Self::from_fault(only, fault),
            Doubt::Disagree { agreed, needed, detail } => Self::Disagree { agreed, needed, detail },
            Doubt::Held(reason) => Self::Disagree { agreed: 0, needed: 0, detail: format!("; {reason}") },
        }
    }

    /// Converts an error on the way to an endpoint.
    pub(crate) fn failure(self) -> Failure {
        match self {
            Self::Transport { error, .. } => {
                let kind = match error.kind {
                    TransportErrorKind::Connect => FailureKind::Connect,
                    TransportErrorKind::Timeout => FailureKind::Timeout,
                    TransportErrorKind::Interrupted => FailureKind::Interrupted,
                    TransportErrorKind::TooLarge => FailureKind::TooLarge,
                    _ => FailureKind::Other,
                };
                Failure::new(kind, &error.detail)
            }
            Self::Status { status, .. } => FailureKind::Status(status).into(),
            other => Failure::new(FailureKind::Other, &other.to_string()),
        }
    }
}

impl From<GatherError> for NodeError {
    fn from(error: GatherError) -> Self {
        match error {
            GatherError::Refused(refusal) => Self::Refused(refusal),
            GatherError::NotConnected(chain) => Self::NotConnected(chain),
            other => Self::NotConnected(other.to_string()),
        }
    }
}
