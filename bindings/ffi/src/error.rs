//! The one error of the interface.

use countersign_json::objects::Failure;

/// Why nothing was verified, prepared or signed.
///
/// There is one case, so that every error has the same fields.
#[derive(Debug, Clone, PartialEq, Eq, uniffi::Error)]
pub enum CountersignError {
    /// What was refused, where, and who has to act.
    Failure {
        /// The stable code, which `docs/codes.md` lists.
        code: String,
        /// What is wrong, and what to do, for people. Untrusted text in it is capped and escaped.
        reason: String,
        /// Where: a JSON pointer, with a byte range behind `#` inside a payload. Empty where the whole argument is meant.
        at: String,
        /// What would have been right, where that can be said.
        expected: Option<String>,
        /// What came, where it can be shown.
        actual: Option<String>,
        /// Who has to act: `service`, `caller`, `unsupported` or `bug`; `chain` where only waiting or the other party can help.
        blame: String,
    },
}

impl std::fmt::Display for CountersignError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self::Failure { code, reason, at, .. } = self;
        let at = if at.is_empty() { String::new() } else { format!(" at {at}") };
        write!(f, "{code}{at}: {reason}")
    }
}

impl std::error::Error for CountersignError {}

impl From<Failure> for CountersignError {
    fn from(failure: Failure) -> Self {
        // Kotlin's exceptions have a `message` of their own, which is why the field has another name here.
        let Failure { code, message: reason, at, expected, actual, blame, .. } = failure;
        Self::Failure { code: code.to_owned(), reason, at: at.into(), expected, actual, blame: blame.to_owned() }
    }
}
