//! Why a command ended early, and how that is reported.

use std::error::Error;
use std::fmt::Display;
use std::io::{self, Write};

use countersign::{Code, Refusal, report::OrderStage};
use countersign_client::restore::RestoreError;
use countersign_node::NodeError;

use crate::exit::{INTERRUPTED, LOST, NEEDS_USER, NETWORK, REFUSED, USAGE};
use crate::show;

/// Why a command ended early.
pub(crate) enum Failure {
    /// The order was refused.
    Refused(Refusal),
    /// The same for an order that is paid, where nobody has to sign or pay it any more.
    RefusedAfterPaying(Refusal),
    /// A case was refused. The id is that of the case, if it has one.
    RefusedCase(Option<String>, Refusal),
    /// A usage error, or a file that cannot be read or written.
    Usage(String),
    /// The secret was not released, or another step was not taken.
    Held {
        /// A stable code.
        code: &'static str,
        /// Why, in one sentence.
        message: String,
    },
    /// The network or the service failed: the same command may succeed later.
    Network {
        /// A stable code.
        code: &'static str,
        /// What failed, what may have happened, and how to continue.
        message: String,
    },
    /// The user has to do something first.
    NeedsUser {
        /// A stable code.
        code: &'static str,
        /// What to do.
        message: String,
    },
    /// Several problems of the user's input, all of which have to be solved.
    Problems(Vec<String>),
    /// The user stopped the program.
    Interrupted(String),
    /// The funds are lost.
    Lost(String),
    /// Stdout was closed, so nothing more can be reported.
    Closed,
}

impl Failure {
    /// Returns the message of the failure.
    pub(crate) fn message(&self) -> String {
        match self {
            Self::Refused(refusal) | Self::RefusedCase(_, refusal) => refusal.to_string(),
            Self::RefusedAfterPaying(refusal) => refusal.at_stage(OrderStage::AfterPaying).to_string(),
            Self::Usage(message)
            | Self::Held { message, .. }
            | Self::Network { message, .. }
            | Self::NeedsUser { message, .. }
            | Self::Interrupted(message)
            | Self::Lost(message) => message.clone(),
            Self::Problems(problems) => problems.join("; "),
            Self::Closed => "stdout is closed".to_owned(),
        }
    }

    /// Returns the stable code.
    pub(crate) fn code(&self) -> &'static str {
        match self {
            Self::Refused(refusal) | Self::RefusedAfterPaying(refusal) | Self::RefusedCase(_, refusal) => refusal.code().name(),
            Self::Held { code, .. } | Self::Network { code, .. } | Self::NeedsUser { code, .. } => code,
            Self::Usage(_) | Self::Problems(_) | Self::Closed => "usage",
            Self::Interrupted(_) => "interrupted",
            Self::Lost(_) => "lost",
        }
    }

    /// Returns the exit code.
    pub(crate) const fn exit(&self) -> u8 {
        match self {
            Self::Refused(_) | Self::RefusedAfterPaying(_) | Self::RefusedCase(..) | Self::Held { .. } => REFUSED,
            Self::NeedsUser { .. } => NEEDS_USER,
            Self::Lost(_) => LOST,
            Self::Network { .. } => NETWORK,
            Self::Usage(_) | Self::Problems(_) | Self::Closed => USAGE,
            Self::Interrupted(_) => INTERRUPTED,
        }
    }

    /// Prints the failure and returns its exit code. Refusals and steps that were not taken go to stdout, because they are data; other
    /// messages go to stderr. With `--json` all of them go to stdout, in the same shape.
    pub(crate) fn report(&self, json: bool) -> u8 {
        let held = |code: &str, message: &str| {
            if json { show::json(&show::HeldReport::new(code, message, &[])) } else { show::field(code, message) }
        };
        let error = |code: &str, message: &str, problems: &[String]| {
            if json {
                return show::json(&show::HeldReport::new(code, message, problems));
            }
            let mut out = anstream::stderr().lock();
            match problems {
                [] => writeln!(out, "countersign: {}", show::safe(message))?,
                _ => writeln!(out, "countersign: nothing was sent, because this has to be corrected first:")?,
            }
            problems.iter().try_for_each(|problem| writeln!(out, "  - {}", show::safe(problem)))
        };
        let written = match self {
            Self::Refused(refusal) if json => show::json(&show::Refused::new(refusal, OrderStage::BeforePaying)),
            Self::RefusedAfterPaying(refusal) if json => show::json(&show::Refused::new(refusal, OrderStage::AfterPaying)),
            Self::RefusedCase(id, refusal) if json => show::json(&show::Refused::case(id.as_deref(), refusal)),
            Self::Refused(refusal) | Self::RefusedCase(_, refusal) => show::refusal(refusal, OrderStage::BeforePaying),
            Self::RefusedAfterPaying(refusal) => show::refusal(refusal, OrderStage::AfterPaying),
            Self::Held { code, message } | Self::NeedsUser { code, message } => held(code, message),
            Self::Lost(message) => held(self.code(), message),
            Self::Network { message, .. } | Self::Usage(message) | Self::Interrupted(message) => error(self.code(), message, &[]),
            Self::Problems(problems) => error(self.code(), &self.message(), problems),
            Self::Closed => return USAGE,
        };
        if written.is_ok() { self.exit() } else { USAGE }
    }

    /// Says what can still be done about an order that is paid.
    pub(crate) fn after_paying(self) -> Self {
        match self {
            Self::Refused(refusal) => Self::RefusedAfterPaying(refusal),
            other => other,
        }
    }

    /// Adds to a network failure what may have happened and how to continue.
    pub(crate) fn with_advice(self, advice: impl Display) -> Self {
        match self {
            Self::Network { code, message } => Self::Network { code, message: advised(&message, &advice.to_string()) },
            other => other,
        }
    }
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<countersign_client::Error> for Failure {
    fn from(error: countersign_client::Error) -> Self {
        match error {
            countersign_client::Error::Refused(refusal) => Self::Refused(refusal),
            countersign_client::Error::Input(_) | countersign_client::Error::Random(_) => {
                Self::Usage(format!("{error} ({})", error.code()))
            }
            // The refusal is of the service's response, so its advice to correct the input would go to the wrong person.
            countersign_client::Error::Shape(ref refusal) => Self::Network {
                code: error.code().name(),
                message: format!(
                    "the response does not have its documented shape: {}; try again, and report the service if it happens again",
                    described(refusal)
                ),
            },
            other => Self::Network { code: other.code().name(), message: chain(&other) },
        }
    }
}

/// Adds advice to a message, without saying twice to try again.
pub(crate) fn advised(message: &str, advice: &str) -> String {
    const AGAIN: &str = "try again";
    let advice = match advice.strip_suffix(AGAIN) {
        Some(rest) if message.contains(AGAIN) => rest.trim_end_matches([';', ',', ' ']),
        _ => advice,
    };
    if advice.is_empty() { message.to_owned() } else { format!("{message}; {advice}") }
}

/// Describes what a refusal found, and where, without its advice. The advice is for the documents of an order.
pub(crate) fn described(refusal: &Refusal) -> String {
    // The general meaning of this code is about payloads.
    if refusal.code() == Code::UnexpectedField && refusal.reason() == Code::UnexpectedField.meaning() {
        return refusal.clone().with_reason("unknown field").finding().to_string();
    }
    refusal.finding().to_string()
}

/// Removes the advice to correct the input from what a node or the service said. The user did not write it.
pub(crate) fn without_advice(text: &str) -> String {
    let advice = Refusal::new(Code::JsonSyntax, "").remedy();
    text.replace(&format!("; {advice}"), "")
}

impl From<countersign_client::driver::DriveError> for Failure {
    fn from(error: countersign_client::driver::DriveError) -> Self {
        use countersign_client::driver::{DriveError, OwnerError, StoreError};
        match error {
            DriveError::Refused(refusal) | DriveError::Owner(OwnerError::Refused(refusal)) => Self::Refused(refusal),
            DriveError::Owner(OwnerError::Failed { code, message }) => Self::Held { code: code.name(), message },
            DriveError::Owner(OwnerError::Unavailable(message)) => Self::Network { code: "chain_unavailable", message },
            DriveError::Create(error) => Self::from(error),
            DriveError::Store(StoreError::Exists(id)) => Self::Held {
                code: "order_exists",
                message: format!(
                    "the service repeated the id of order {id}: do not pay the new order; the stored order is unchanged, and nothing was signed"
                ),
            },
            other => Self::Usage(chain(&other)),
        }
    }
}

impl From<NodeError> for Failure {
    fn from(error: NodeError) -> Self {
        match error {
            NodeError::Refused(refusal) => Self::Refused(refusal),
            NodeError::Endpoint(_) | NodeError::NotConnected(_) => usage(error),
            rejected @ NodeError::Rejected { .. } => Self::Held { code: "transaction_rejected", message: rejected.to_string() },
            other => Self::Network { code: other.code().name(), message: told(&other) },
        }
    }
}

/// Returns the message of an error. A malformed answer is the node's, so there is no advice to correct the input.
pub(crate) fn told(error: &NodeError) -> String {
    match error {
        NodeError::Malformed { endpoint, refusal } => without_advice(&format!("{endpoint}: {}", described(refusal))),
        other => without_advice(&chain(other)),
    }
}

impl From<countersign_store::Error> for Failure {
    fn from(error: countersign_store::Error) -> Self {
        Self::from(&error)
    }
}

/// Adds what the user can do next.
impl From<&countersign_store::Error> for Failure {
    fn from(error: &countersign_store::Error) -> Self {
        usage(format_args!("{}; {}", chain(error), error.advice()))
    }
}

impl From<RestoreError> for Failure {
    fn from(error: RestoreError) -> Self {
        match error {
            RestoreError::Store(error) => error.into(),
            other => usage(other),
        }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe { Self::Closed } else { Self::Usage(error.to_string()) }
    }
}

/// Returns the messages of an error and its causes, joined with colons.
pub(crate) fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}

pub(crate) fn usage(message: impl Display) -> Failure {
    Failure::Usage(message.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn to_try_again_is_said_once() {
        let shape = "not the documented shape; try again, and report the service if it happens again";
        assert_eq!(advised(shape, "nothing was created; try again"), format!("{shape}; nothing was created"));
        assert_eq!(advised(shape, "try again"), shape);
        assert_eq!(advised("no connection", "nothing was created; try again"), "no connection; nothing was created; try again");
    }
}
