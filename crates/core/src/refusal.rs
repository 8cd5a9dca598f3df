//! A refusal: which rule, where, what was expected, what came, and what to do.

use std::borrow::Cow;
use std::fmt;

use serde::ser::{Serialize, SerializeMap, Serializer};

use crate::code::Code;
use crate::text;

/// Why a response, a wallet context or a signature was not accepted.
///
/// Foreign text in it is capped and escaped; no secret is ever put into one.
#[derive(Clone, PartialEq, Eq)]
pub struct Refusal(Box<Inner>);

#[derive(Clone, PartialEq, Eq)]
struct Inner {
    code: Code,
    at: String,
    detail: Option<Cow<'static, str>>,
    expected: Option<String>,
    got: Option<String>,
}

impl Refusal {
    /// A refusal at a JSON pointer, `/response/result/order_id`, or at a byte range of a payload behind one,
    /// `/response/result/initiate_transaction/data#4-36`.
    #[must_use]
    pub fn new(code: Code, at: impl Into<String>) -> Self {
        Self(Box::new(Inner { code, at: at.into(), detail: None, expected: None, got: None }))
    }

    /// Says in words of this case what the code says in general.
    #[must_use]
    pub fn because(mut self, detail: impl Into<Cow<'static, str>>) -> Self {
        self.0.detail = Some(detail.into());
        self
    }

    /// What would have been right.
    #[must_use]
    pub fn expected(mut self, value: impl fmt::Display) -> Self {
        self.0.expected = Some(text::shown(&value.to_string()));
        self
    }

    /// What came instead. Never call this with a secret.
    #[must_use]
    pub fn got(mut self, value: impl fmt::Display) -> Self {
        self.0.got = Some(text::shown(&value.to_string()));
        self
    }

    /// Puts a prefix before the pointer: the document's place inside a larger one.
    #[must_use]
    pub fn under(mut self, prefix: &str) -> Self {
        self.0.at.insert_str(0, prefix);
        self
    }

    /// The stable code.
    #[must_use]
    pub fn code(&self) -> Code {
        self.0.code
    }

    /// JSON pointer, with a byte range behind `#` where a payload is meant.
    #[must_use]
    pub fn at(&self) -> &str {
        &self.0.at
    }

    /// What would have been right, where that can be said.
    #[must_use]
    pub fn wanted(&self) -> Option<&str> {
        self.0.expected.as_deref()
    }

    /// What came, where it can be shown.
    #[must_use]
    pub fn found(&self) -> Option<&str> {
        self.0.got.as_deref()
    }

    /// The rule that was broken, and what to do about it.
    #[must_use]
    pub fn message(&self) -> String {
        let what = self.0.detail.as_deref().unwrap_or_else(|| self.0.code.meaning());
        format!("{what}; {}", self.0.code.remedy())
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {}: {}", self.0.code, if self.0.at.is_empty() { "/" } else { &self.0.at }, self.message())?;
        if let Some(expected) = &self.0.expected {
            write!(f, "; expected {expected}")?;
        }
        if let Some(got) = &self.0.got {
            write!(f, "; got {got}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Refusal({self})")
    }
}

impl std::error::Error for Refusal {}

impl Serialize for Refusal {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("code", self.0.code.name())?;
        map.serialize_entry("message", &self.message())?;
        map.serialize_entry("at", &self.0.at)?;
        if let Some(expected) = &self.0.expected {
            map.serialize_entry("expected", expected)?;
        }
        if let Some(got) = &self.0.got {
            map.serialize_entry("got", got)?;
        }
        map.end()
    }
}
