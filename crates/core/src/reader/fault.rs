//! Why an endpoint's answers are not used.

use std::fmt;

use countersign_chains::BlockHeight;

use super::{Failure, FailureKind, RpcError};
use crate::report::{Code, Refusal};

/// Why an endpoint's answers are not used. It means "unknown", never "no".
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// No complete response arrived, or its HTTP status is not 200.
    Unanswered(Failure),
    /// The node returned an error.
    Rpc(RpcError),
    /// An answer does not have the documented format, or the answers contradict each other.
    Malformed(Refusal),
    /// The endpoint serves another chain.
    WrongChain {
        /// The identity of the pinned chain: its chain id, or the hash of its genesis block.
        expected: String,
        /// The identity that the endpoint reports.
        actual: String,
    },
    /// The newest block of the endpoint is older than one that it showed before, by more than a reorganization explains.
    WentBack {
        /// The greatest height that the endpoint has shown.
        before: BlockHeight,
        /// The height that it shows now.
        now: BlockHeight,
    },
    /// The answers are longer, or need more rounds, than a reading allows.
    TooMuch(&'static str),
    /// The node rejected a transaction as invalid.
    Rejected(String),
    /// What was read rules the intended act out: the figures exceed the policy, or the sender has too little.
    Refused(Refusal),
}

/// The code of a [`Fault`]: which one it is, without its texts. [`FaultCode::name`] never changes once released.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum FaultCode {
    /// [`Fault::Unanswered`], and what failed.
    Unanswered(FailureKind),
    /// [`Fault::Rpc`].
    Rpc,
    /// [`Fault::Malformed`].
    Malformed,
    /// [`Fault::WrongChain`].
    WrongChain,
    /// [`Fault::WentBack`].
    WentBack,
    /// [`Fault::TooMuch`].
    TooMuch,
    /// [`Fault::Rejected`].
    Rejected,
    /// [`Fault::Refused`], and the code of the refusal.
    Refused(Code),
}

impl FaultCode {
    /// Returns the stable name, in snake case.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unanswered(kind) => kind.name(),
            Self::Rpc => "node_error",
            Self::Malformed => "node_malformed",
            Self::WrongChain => "node_wrong_chain",
            Self::WentBack => "node_went_back",
            Self::TooMuch => "node_too_much",
            Self::Rejected => "transaction_rejected",
            Self::Refused(code) => code.name(),
        }
    }
}

impl fmt::Display for FaultCode {
    /// Writes the stable name.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Fault {
    /// Returns the stable code.
    #[must_use]
    pub fn code(&self) -> FaultCode {
        match self {
            Self::Unanswered(failure) => FaultCode::Unanswered(failure.kind),
            Self::Rpc(_) => FaultCode::Rpc,
            Self::Malformed(_) => FaultCode::Malformed,
            Self::WrongChain { .. } => FaultCode::WrongChain,
            Self::WentBack { .. } => FaultCode::WentBack,
            Self::TooMuch(_) => FaultCode::TooMuch,
            Self::Rejected(_) => FaultCode::Rejected,
            Self::Refused(refusal) => FaultCode::Refused(refusal.code()),
        }
    }

    /// Returns whether the same reading may succeed later.
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        match self {
            Self::Unanswered(failure) => !matches!(failure.kind, FailureKind::Unsupported | FailureKind::TooLarge),
            Self::Rpc(_) | Self::Malformed(_) | Self::WentBack { .. } => true,
            Self::WrongChain { .. } | Self::TooMuch(_) | Self::Rejected(_) | Self::Refused(_) => false,
        }
    }
}

impl From<Refusal> for Fault {
    /// An answer that a strict reader refuses is malformed.
    fn from(refusal: Refusal) -> Self {
        Self::Malformed(refusal)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unanswered(failure) => failure.fmt(f),
            Self::Rpc(error) => error.fmt(f),
            Self::Malformed(refusal) | Self::Refused(refusal) => refusal.fmt(f),
            Self::WrongChain { expected, actual } => write!(f, "serves another chain: {actual} instead of {expected}"),
            Self::WentBack { before, now } => write!(f, "the newest block went back from {before} to {now}"),
            Self::TooMuch(what) => f.write_str(what),
            Self::Rejected(message) => write!(f, "rejected the transaction: {message}"),
        }
    }
}

impl std::error::Error for Fault {}
