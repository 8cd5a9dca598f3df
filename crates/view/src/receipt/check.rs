//! What a check of a receipt found.

use std::fmt;

use countersign::text::quote_untrusted;
use serde::Serialize;
use serde_json::Value as Json;

/// What [`Receipt::check`](super::Receipt::check) found.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub struct Check {
    pub(super) differences: Vec<Difference>,
    pub(super) signer: Option<String>,
}

/// A difference between a receipt and what was computed again. What the receipt has is text of whoever wrote it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Difference {
    /// JSON pointer into the receipt.
    pub at: String,
    /// What the receipt has.
    pub receipt: String,
    /// What was computed or required instead.
    pub computed: String,
}

/// A member of a receipt's policy that is not the default.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct OwnLimit {
    /// The name of the member in a policy file.
    pub name: String,
    /// The value of the receipt's policy, as JSON.
    pub value: Json,
    /// The value of the default policy.
    pub default: Json,
}

impl Difference {
    /// Returns the same difference as people may see it: each part is quoted like other untrusted text, and cut.
    #[must_use]
    pub fn quoted(&self) -> Self {
        let Self { at, receipt, computed } = self;
        Self { at: quote_untrusted(at), receipt: quote_untrusted(receipt), computed: quote_untrusted(computed) }
    }
}

impl fmt::Display for OwnLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} (default {})", self.name, self.value, self.default)
    }
}

impl Check {
    /// Returns whether everything is as the receipt says.
    #[must_use]
    pub const fn is_proven(&self) -> bool {
        self.differences.is_empty()
    }

    /// Returns what differs.
    #[must_use]
    pub fn differences(&self) -> &[Difference] {
        &self.differences
    }

    /// Returns the public key of the valid signature, in hex; `None` without one.
    #[must_use]
    pub fn signer(&self) -> Option<&str> {
        self.signer.as_deref()
    }

    pub(super) fn differs(&mut self, at: &str, receipt: &str, computed: &str) {
        self.differences.push(Difference { at: at.to_owned(), receipt: receipt.to_owned(), computed: computed.to_owned() });
    }

    pub(super) fn compare(&mut self, at: &str, receipt: &str, computed: &str) {
        if receipt != computed {
            self.differs(at, receipt, computed);
        }
    }

    /// Adds each member or item that differs.
    pub(super) fn compare_json(&mut self, at: &str, receipt: &Json, computed: &Json) {
        match (receipt, computed) {
            (Json::Object(left), Json::Object(right)) => {
                for key in left.keys().chain(right.keys().filter(|key| !left.contains_key(*key))) {
                    self.compare_json(&format!("{at}/{key}"), left.get(key).unwrap_or(&Json::Null), right.get(key).unwrap_or(&Json::Null));
                }
            }
            (Json::Array(left), Json::Array(right)) => {
                for index in 0..left.len().max(right.len()) {
                    self.compare_json(
                        &format!("{at}/{index}"),
                        left.get(index).unwrap_or(&Json::Null),
                        right.get(index).unwrap_or(&Json::Null),
                    );
                }
            }
            (Json::String(left), Json::String(right)) => self.compare(at, left, right),
            _ if receipt == computed => {}
            _ => self.differs(at, &receipt.to_string(), &computed.to_string()),
        }
    }
}
