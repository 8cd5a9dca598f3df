//! Why a chain did not answer, or why its answer is not used.

use countersign::{Refusal, text};
use countersign_client::driver::ChainError;
use countersign_client::{TransportError, TransportErrorKind};

/// Why a chain did not answer, or why its answer is not used. A failed read is "unknown", never "no".
///
/// An endpoint is named by its host alone: many providers put the key of an account into the path.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NodeError {
    /// No complete response arrived.
    #[error("{endpoint}: {error}")]
    Transport {
        /// The host.
        endpoint: String,
        /// What failed.
        error: TransportError,
    },
    /// The response has another HTTP status than 200.
    #[error("{endpoint}: HTTP status {status}")]
    Status {
        /// The host.
        endpoint: String,
        /// The status.
        status: u16,
    },
    /// The node answers with an error.
    #[error("{endpoint}: {message} ({code})")]
    Rpc {
        /// The host.
        endpoint: String,
        /// The node's code.
        code: i64,
        /// The node's words, capped and escaped.
        message: String,
        /// The revert data of a call, if there is any.
        data: Option<Vec<u8>>,
    },
    /// The answer does not have the shape that the method promises, or contradicts itself.
    #[error("{endpoint}: {refusal}")]
    Malformed {
        /// The host.
        endpoint: String,
        /// Where, and what.
        refusal: Refusal,
    },
    /// The endpoint serves another chain.
    #[error("{endpoint} serves another chain: {actual} instead of {expected}")]
    WrongChain {
        /// The host.
        endpoint: String,
        /// What identifies the chain.
        expected: String,
        /// What the endpoint says.
        actual: String,
    },
    /// The newest block of the endpoint is older than one that it has shown before.
    #[error("{endpoint}: its newest block went from {before} back to {now}")]
    WentBack {
        /// The host.
        endpoint: String,
        /// The height before.
        before: u64,
        /// The height now.
        now: u64,
    },
    /// Too few endpoints give the same answer.
    #[error("{agreed} of {needed} endpoints give the same answer{detail}")]
    Disagree {
        /// How many gave the most frequent answer.
        agreed: u32,
        /// How many must.
        needed: u32,
        /// What the others said.
        detail: String,
    },
    /// The configuration names something that is not an endpoint. Nothing of it is shown, because it may hold a key.
    #[error("{0}")]
    Endpoint(&'static str),
    /// No endpoint is configured for the chain, or this build has no code for its family.
    #[error("not connected to {0}")]
    NotConnected(String),
    /// What the node says is beyond the policy, or the transaction would not do what was verified.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The chain refuses the transaction.
    #[error("{endpoint} refuses the transaction: {message}")]
    Rejected {
        /// The host.
        endpoint: String,
        /// The node's words, capped and escaped.
        message: String,
    },
}

impl NodeError {
    /// Returns the stable code.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Transport { error, .. } => error.kind.code(),
            Self::Status { .. } => "node_http_status",
            Self::Rpc { .. } => "node_error",
            Self::Malformed { .. } => "node_malformed",
            Self::WrongChain { .. } => "node_wrong_chain",
            Self::WentBack { .. } => "node_went_back",
            Self::Disagree { .. } => "node_disagree",
            Self::Endpoint(_) => "node_endpoint",
            Self::NotConnected(_) => "not_connected",
            Self::Refused(refusal) => refusal.code().name(),
            Self::Rejected { .. } => "transaction_rejected",
        }
    }

    /// Returns whether the same question may get an answer later.
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

    /// Creates the error of a node's own words.
    pub(crate) fn rpc(endpoint: &str, code: i64, message: &str, data: Option<Vec<u8>>) -> Self {
        Self::Rpc { endpoint: endpoint.to_owned(), code, message: text::escape_untrusted(message), data }
    }

    /// Makes a node's refusal of a transaction of the node's own words.
    pub(crate) fn rejected(self) -> Self {
        match self {
            Self::Rpc { endpoint, message, .. } => Self::Rejected { endpoint, message },
            other => other,
        }
    }
}

impl From<NodeError> for ChainError {
    fn from(error: NodeError) -> Self {
        match error {
            NodeError::NotConnected(chain) => Self::NotConnected(chain),
            rejected @ NodeError::Rejected { .. } => Self::Rejected(rejected.to_string()),
            other => Self::Unavailable(other.to_string()),
        }
    }
}
