//! A refusal: which rule was broken, where, what was expected, what came, what to do, and who has to do it.

use std::borrow::Cow;
use std::fmt;

use serde::ser::{Serialize, SerializeMap, Serializer};

use super::{Code, TypedValue};

/// Who has to act on a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Blame {
    /// The service sent something that must not be signed.
    Service,
    /// The caller's own input is wrong: request, registry, policy, wallet context, key or signature.
    Caller,
    /// The input may be right, but this library or this build cannot judge it.
    Unsupported,
    /// This library has a defect.
    Bug,
}

impl fmt::Display for Blame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Service => "service",
            Self::Caller => "caller",
            Self::Unsupported => "unsupported",
            Self::Bug => "bug",
        })
    }
}

/// Why a response, a wallet context, a key or a signature was not accepted.
///
/// Untrusted text in it is capped and escaped. It never contains a secret.
///
/// ```
/// use countersign_core::{Blame, Code, CreateOrder};
///
/// let refusal = CreateOrder::from_json(br#"{"source": {"amount": "1.5"}}"#).unwrap_err();
/// assert_eq!((refusal.code(), refusal.location()), (Code::DecimalFraction, "/source/amount"));
/// assert_eq!((refusal.blame(), refusal.remedy()), (Blame::Caller, "convert it to base units first"));
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Refusal(Box<Inner>);

#[derive(Clone, PartialEq, Eq)]
struct Inner {
    code: Code,
    location: String,
    reason: Option<Cow<'static, str>>,
    expected: Option<TypedValue>,
    actual: Option<TypedValue>,
}

impl Refusal {
    /// Creates a refusal at a location: see [`Refusal::location`].
    #[doc(hidden)]
    #[must_use]
    pub fn new(code: impl Into<Code>, location: impl Into<String>) -> Self {
        Self(Box::new(Inner { code: code.into(), location: location.into(), reason: None, expected: None, actual: None }))
    }

    /// Replaces the general meaning of the code with the reason in this case.
    #[doc(hidden)]
    #[must_use]
    pub fn with_reason(mut self, reason: impl Into<Cow<'static, str>>) -> Self {
        self.0.reason = Some(reason.into());
        self
    }

    /// Adds what would have been accepted.
    #[doc(hidden)]
    #[must_use]
    pub fn with_expected(mut self, value: impl Into<TypedValue>) -> Self {
        self.0.expected = Some(value.into());
        self
    }

    /// Adds what came instead. Never pass a secret.
    #[doc(hidden)]
    #[must_use]
    pub fn with_actual(mut self, value: impl Into<TypedValue>) -> Self {
        self.0.actual = Some(value.into());
        self
    }

    /// Puts a prefix in front of the location: where the document is located inside a larger one.
    #[doc(hidden)]
    #[must_use]
    pub fn with_prefix(mut self, prefix: &str) -> Self {
        self.0.location.insert_str(0, prefix);
        self
    }

    /// Returns the stable code.
    #[must_use]
    pub fn code(&self) -> Code {
        self.0.code
    }

    /// Returns the location: an RFC 6901 pointer, with a half-open byte range behind `#` where bytes of a payload are meant.
    ///
    /// It begins with `/request`, `/response` or `/order` for the three documents of an order. For any other argument, such
    /// as a wallet context or a signature, it points into that argument and is empty where the whole argument is meant.
    #[must_use]
    pub fn location(&self) -> &str {
        &self.0.location
    }

    /// Returns what would have been accepted, where that can be stated.
    #[must_use]
    pub fn expected(&self) -> Option<&TypedValue> {
        self.0.expected.as_ref()
    }

    /// Returns what came, where it can be shown.
    #[must_use]
    pub fn actual(&self) -> Option<&TypedValue> {
        self.0.actual.as_ref()
    }

    /// Returns who has to act.
    #[must_use]
    pub fn blame(&self) -> Blame {
        let from_service = ["/response", "/order"].iter().any(|document| self.0.location.starts_with(document));
        self.0.code.fixed_blame().unwrap_or(if from_service { Blame::Service } else { Blame::Caller })
    }

    /// Returns what to do, addressed to whoever can do it.
    #[must_use]
    pub fn remedy(&self) -> &'static str {
        let code = self.0.code;
        match self.blame() {
            Blame::Service if code.is_about_form() && !code.is_for_service() => "do not sign; report the service",
            Blame::Caller if code.is_for_service() => "correct the input and try again",
            _ => code.remedy(),
        }
    }

    /// Returns the rule that was broken, and what to do about it.
    #[must_use]
    pub fn message(&self) -> String {
        format!("{}; {}", self.reason(), self.remedy())
    }

    /// Returns the reason in this case, or else the general meaning of the code.
    #[must_use]
    pub fn reason(&self) -> &str {
        self.0.reason.as_deref().unwrap_or_else(|| self.0.code.meaning())
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.code)?;
        if !self.0.location.is_empty() {
            write!(f, " at {}", self.0.location)?;
        }
        write!(f, ": {}", self.message())?;
        if let Some(expected) = &self.0.expected {
            write!(f, "; expected {expected}")?;
        }
        if let Some(actual) = &self.0.actual {
            write!(f, "; got {actual}")?;
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
        map.serialize_entry("at", &self.0.location)?;
        if let Some(expected) = &self.0.expected {
            map.serialize_entry("expected", &expected.to_string())?;
        }
        if let Some(actual) = &self.0.actual {
            map.serialize_entry("got", &actual.to_string())?;
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_document_tells_who_has_to_act() {
        let blame = |code, location: &str| Refusal::new(code, location).blame();
        assert_eq!(blame(Code::MissingField, "/response/result"), Blame::Service);
        assert_eq!(blame(Code::MissingField, "/order/version"), Blame::Service);
        assert_eq!(blame(Code::MissingField, "/request/source"), Blame::Caller);
        assert_eq!(blame(Code::NonceLimit, "/nonce"), Blame::Caller);
        assert_eq!(blame(Code::UnknownAsset, "/request/source/asset"), Blame::Unsupported);
        assert_eq!(blame(Code::Internal, ""), Blame::Bug);
        let typo = Refusal::new(Code::UnexpectedField, "/request/sourse");
        assert!(!typo.to_string().contains("report the service"), "{typo}");
        let cut = Refusal::new(Code::MissingField, "/response/result/order_id");
        assert!(cut.to_string().contains("report the service"), "{cut}");
    }
}
