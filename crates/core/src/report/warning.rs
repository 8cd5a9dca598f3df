//! Warnings: what could not be checked, or what the owner should know before signing.

use std::collections::BTreeSet;
use std::fmt;

use ruint::aliases::U256;
use serde::{Serialize, Serializer};

use super::{Code, Refusal, text};

/// How serious a warning is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Severity {
    /// Good to know; nothing has to be decided.
    Info,
    /// The owner should read it before signing.
    Caution,
    /// Funds depend on it: ask the owner explicitly.
    Danger,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Info => "info",
            Self::Caution => "caution",
            Self::Danger => "danger",
        })
    }
}

/// Something that could not be checked, or that the owner should know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    code: Code,
    /// `None` where the code describes the warning completely.
    detail: Option<String>,
}

impl Warning {
    /// Returns the stable code.
    #[must_use]
    pub const fn code(&self) -> Code {
        self.code
    }

    /// Returns the detail in this order, with untrusted text escaped; `None` where the code describes the warning completely.
    #[must_use]
    pub fn detail(&self) -> Option<&str> {
        self.detail.as_deref()
    }

    /// Returns how serious it is.
    #[must_use]
    pub const fn severity(&self) -> Severity {
        self.code.severity()
    }

    /// Returns the text that a person reads.
    #[must_use]
    pub fn message(&self) -> String {
        let (meaning, remedy) = (self.code.meaning(), self.code.remedy());
        match self.detail() {
            None => format!("{meaning}; {remedy}"),
            Some(detail) => format!("{meaning} ({detail}); {remedy}"),
        }
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.message())
    }
}

impl Serialize for Warning {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeStruct;
        let mut map = serializer.serialize_struct("Warning", 2)?;
        map.serialize_field("code", self.code.name())?;
        map.serialize_field("message", &self.message())?;
        map.end()
    }
}

/// The warnings of one order, without duplicates.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Warnings(Vec<Warning>);

impl Warnings {
    /// Adds a warning that its code describes completely.
    #[doc(hidden)]
    pub fn warn(&mut self, code: Code) {
        self.add(Warning { code, detail: None });
    }

    /// Adds a warning with a detail; untrusted text in it is escaped.
    #[doc(hidden)]
    pub fn warn_about(&mut self, code: Code, detail: impl Into<String>) {
        self.add(Warning { code, detail: Some(text::escape_untrusted(&detail.into())) });
    }

    /// Adds a warning with a detail that is never cut, because every character counts. Pass text of a bounded length.
    #[doc(hidden)]
    pub fn warn_in_full(&mut self, code: Code, detail: &str) {
        self.add(Warning { code, detail: Some(text::escape_whole(detail).into_owned()) });
    }

    /// Adds the warning about an approval of more base units than the order needs.
    #[doc(hidden)]
    pub fn warn_about_approval(&mut self, approved: U256, amount: U256) {
        if approved == U256::MAX {
            self.warn(Code::UnlimitedApproval);
        } else if approved > amount {
            self.warn_about(Code::ApprovalAboveAmount, format!("{approved} base units for {amount}"));
        }
    }

    fn add(&mut self, warning: Warning) {
        if !self.0.contains(&warning) {
            self.0.push(warning);
        }
    }

    /// Removes the warnings with these codes.
    #[doc(hidden)]
    pub fn remove(&mut self, codes: &[Code]) {
        self.0.retain(|warning| !codes.contains(&warning.code));
    }

    /// Returns the warnings in the order in which they were found.
    #[must_use]
    pub fn list(&self) -> &[Warning] {
        &self.0
    }

    /// Requires that none of the warnings has one of these codes.
    ///
    /// # Errors
    ///
    /// [`Code::WarningRefused`] with the first such warning.
    #[doc(hidden)]
    pub fn check_refused(&self, refused: &BTreeSet<Code>) -> Result<(), Refusal> {
        match self.0.iter().find(|warning| refused.contains(&warning.code)) {
            Some(warning) => Err(Refusal::new(Code::WarningRefused, "").with_reason(warning.to_string())),
            None => Ok(()),
        }
    }

    /// Drops the warnings of a match, and requires that all of them are informational, because the caller cannot read them.
    ///
    /// # Errors
    ///
    /// [`Code::TransactionMismatch`] with these warnings.
    #[doc(hidden)]
    pub fn only_informational<T>((matched, warnings): (T, Self)) -> Result<T, Refusal> {
        let unread = warnings.0.iter().filter(|warning| warning.severity() > Severity::Info);
        let unread: Vec<_> = unread.map(ToString::to_string).collect();
        if unread.is_empty() {
            return Ok(matched);
        }
        let reason = format!("{}; match it with warnings to get its role together with them", unread.join("; "));
        Err(Refusal::new(Code::TransactionMismatch, "").with_reason(reason))
    }

    /// Returns the highest severity; `None` if there are no warnings.
    #[must_use]
    pub fn severity(&self) -> Option<Severity> {
        self.0.iter().map(Warning::severity).max()
    }
}

/// Returns the codes of warnings about an approval that no longer apply once it is known what is sent: they are settled if
/// nothing is sent, or an approval of exactly `amount` base units.
#[must_use]
pub fn settled_by_approval(sent: Option<U256>, amount: U256) -> Vec<Code> {
    match sent {
        Some(sent) if sent != amount => Vec::new(),
        _ => vec![Code::UnlimitedApproval, Code::ApprovalAboveAmount],
    }
}

impl<'w> IntoIterator for &'w Warnings {
    type Item = &'w Warning;
    type IntoIter = std::slice::Iter<'w, Warning>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

impl Serialize for Warnings {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}
