//! A refusal: which rule was broken, where, what was expected, what came, what to do, and who has to do it.

use std::borrow::Cow;
use std::fmt;

use serde::ser::{Serialize, SerializeMap, Serializer};

use super::{Code, TypedValue, text};

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

/// Who wrote the document in which a fault stands.
///
/// It is set once, where the document is read, and decides who is to blame for a fault that every document can have. Where the document is
/// located inside a larger one, and what the location is called, changes nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Origin {
    /// The caller passed it: a registry, a policy, a wallet context, a key, a signature, a transaction.
    #[default]
    Caller,
    /// The request of an order, which the caller wrote.
    Request,
    /// The service sent it: a response, an order record, a quote, a list, the hashes of an instant refund, earnings.
    Service,
}

/// When a refusal is read: what its reader can still do depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum OrderStage {
    /// The payment has not been signed, so the order can be left alone.
    #[default]
    BeforePaying,
    /// The payment may be on chain. Nobody has to sign it any more, and the timelock decides when it can be taken back.
    AfterPaying,
}

/// Maximum number of differing bytes that are shown. Their digits fit into a text that is not cut.
const MAX_DIFFERENCE: usize = 48;

/// What to do about an order that is paid and refused. The secret is kept back as long as an order is refused.
const REFUND: &str = "the payment is out and nothing is lost, because the secret is kept back: refund it when its timelock has expired";
/// The same, where the service is to blame.
const REPORT_AND_REFUND: &str =
    "the payment is out and nothing is lost, because the secret is kept back: report the service, and refund when the timelock has expired";
/// The same, where this library cannot judge.
const UPDATE_AND_REFUND: &str =
    "the payment is out and nothing is lost, because the secret is kept back: update this library, or refund when the timelock has expired";

/// Why a response, a wallet context, a key or a signature was not accepted.
///
/// Untrusted text in it is capped and escaped. It never contains a secret.
///
/// ```
/// use countersign::{Blame, Code, CreateOrder};
///
/// let refusal =
///     CreateOrder::from_json(br#"{"source": {"amount": "1.5"}}"#).unwrap_err();
/// assert_eq!(
///     (refusal.code(), refusal.location()),
///     (Code::DecimalFraction, "/source/amount")
/// );
/// assert_eq!(
///     (refusal.blame(), refusal.remedy()),
///     (Blame::Caller, "convert it to base units first")
/// );
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Refusal(Box<Inner>);

#[derive(Clone, PartialEq, Eq)]
struct Inner {
    code: Code,
    origin: Origin,
    location: String,
    reason: Option<Cow<'static, str>>,
    expected: Option<TypedValue>,
    actual: Option<TypedValue>,
}

impl Refusal {
    /// Creates a refusal at a location in what the caller passed: see [`Refusal::location`]. One in a document of an order is made by
    /// [`At`](crate::json::At), which knows the document.
    #[doc(hidden)]
    #[must_use]
    pub fn new(code: impl Into<Code>, location: impl Into<String>) -> Self {
        let (code, location) = (code.into(), location.into());
        Self(Box::new(Inner { code, origin: Origin::Caller, location, reason: None, expected: None, actual: None }))
    }

    /// Sets who wrote the document.
    #[doc(hidden)]
    #[must_use]
    pub fn with_origin(mut self, origin: Origin) -> Self {
        self.0.origin = origin;
        self
    }

    /// Replaces the code, which is then the finding at the same place of the same document. Expected and actual value are dropped.
    #[doc(hidden)]
    #[must_use]
    pub fn with_code(self, code: Code) -> Self {
        let Inner { origin, location, .. } = *self.0;
        Self::new(code, location).with_origin(origin)
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

    /// Adds the byte range of the difference to the location, and the expected and the actual bytes of that range, in hex.
    ///
    /// Bytes that are equal on both sides are not shown, so that two long texts are never cut before their difference.
    #[doc(hidden)]
    #[must_use]
    pub fn with_difference(mut self, expected: &[u8], actual: &[u8]) -> Self {
        let equal = |pairs: &mut dyn Iterator<Item = (&u8, &u8)>| pairs.take_while(|(one, other)| one == other).count();
        let start = equal(&mut expected.iter().zip(actual));
        let rest = |bytes: &'_ [u8]| bytes.len().saturating_sub(start);
        let same_end = equal(&mut expected.iter().rev().zip(actual.iter().rev())).min(rest(expected)).min(rest(actual));
        let end = |bytes: &[u8]| bytes.len().saturating_sub(same_end);
        let last = end(expected).max(end(actual));
        self.0.location.push_str(&format!("#{start}-{last}"));
        let show = |bytes: &[u8]| {
            let differing = bytes.get(start..end(bytes)).unwrap_or_default();
            let shown = hex::encode(differing.get(..MAX_DIFFERENCE).unwrap_or(differing));
            let more = if differing.len() > MAX_DIFFERENCE { "…" } else { "" };
            let what = if shown.is_empty() { "no more" } else { &shown };
            format!("{what}{more} from byte {start} of {}", bytes.len())
        };
        self.with_expected(show(expected)).with_actual(show(actual))
    }

    /// Puts a prefix in front of the location: where the document is located inside a larger one. Its origin stays.
    #[doc(hidden)]
    #[must_use]
    pub fn with_prefix(mut self, prefix: &str) -> Self {
        self.0.location.insert_str(0, prefix);
        self
    }

    /// Moves a refusal of a text without an origin of its own, such as the one of [`json::parse`](crate::json::parse), into the document at `at`.
    #[doc(hidden)]
    #[must_use]
    pub fn within(self, at: &crate::json::At<'_>) -> Self {
        self.with_prefix(&at.to_string()).with_origin(at.origin())
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

    /// Returns who wrote the document in which the fault stands.
    #[must_use]
    pub fn origin(&self) -> Origin {
        self.0.origin
    }

    /// Returns who has to act. Where the code does not decide it, the [`origin`](Self::origin) does.
    #[must_use]
    pub fn blame(&self) -> Blame {
        self.0.code.fixed_blame().unwrap_or(if self.0.origin == Origin::Service { Blame::Service } else { Blame::Caller })
    }

    /// Returns what to do before the order is paid, addressed to whoever can do it.
    #[must_use]
    pub fn remedy(&self) -> &'static str {
        self.remedy_at(OrderStage::BeforePaying)
    }

    /// Returns what to do at a stage of the order, addressed to whoever can do it. After the payment nobody is told not to sign or pay it.
    #[must_use]
    pub fn remedy_at(&self, stage: OrderStage) -> &'static str {
        let code = self.0.code;
        if stage == OrderStage::AfterPaying {
            return match self.blame() {
                Blame::Service => REPORT_AND_REFUND,
                Blame::Unsupported => UPDATE_AND_REFUND,
                Blame::Caller if self.0.origin != Origin::Caller => REFUND,
                Blame::Caller if code.is_for_service() => "check it and try again",
                _ => code.remedy_after_paying().unwrap_or(REFUND),
            };
        }
        match self.blame() {
            Blame::Service if code.is_about_form() && !code.is_for_service() => "do not sign; report the service",
            Blame::Caller if code.is_for_service() => "correct the input and try again",
            // Nobody signs what the caller wrote, and no update of this library reads it.
            Blame::Caller if code == Code::UnexpectedField => "leave the field out",
            _ => code.remedy(),
        }
    }

    /// Returns the rule that was broken, and what to do about it before the order is paid.
    #[must_use]
    pub fn message(&self) -> String {
        format!("{}; {}", self.reason(), self.remedy())
    }

    /// Returns the refusal with the remedy of a stage. At [`OrderStage::BeforePaying`] it reads as the refusal itself.
    #[must_use]
    pub const fn at_stage(&self, stage: OrderStage) -> Told<'_> {
        Told { refusal: self, stage: Some(stage) }
    }

    /// Returns the refusal without a remedy, for a text that says on its own what to do.
    #[must_use]
    pub const fn finding(&self) -> Told<'_> {
        Told { refusal: self, stage: None }
    }

    /// Returns the reason in this case, or else the general meaning of the code.
    #[must_use]
    pub fn reason(&self) -> &str {
        self.0.reason.as_deref().unwrap_or_else(|| self.0.code.meaning())
    }
}

/// A refusal in the words of one stage: see [`Refusal::at_stage`] and [`Refusal::finding`].
#[derive(Debug, Clone, Copy)]
pub struct Told<'r> {
    refusal: &'r Refusal,
    /// `None` to name no remedy.
    stage: Option<OrderStage>,
}

impl Told<'_> {
    /// Returns the reason, and what to do at the stage, if it is given.
    #[must_use]
    pub fn message(&self) -> String {
        let reason = self.refusal.reason();
        self.stage.map_or_else(|| reason.to_owned(), |stage| format!("{reason}; {}", self.refusal.remedy_at(stage)))
    }
}

impl fmt::Display for Told<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { code, location, expected, actual, .. } = &*self.refusal.0;
        write!(f, "{code}")?;
        if !location.is_empty() {
            write!(f, " at {}", text::quote_whole(location))?;
        }
        write!(f, ": {}", self.message())?;
        if let Some(expected) = expected {
            write!(f, "; expected {expected}")?;
        }
        if let Some(actual) = actual {
            write!(f, "; got {}", actual.quoted())?;
        }
        Ok(())
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.at_stage(OrderStage::BeforePaying).fmt(f)
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
        self.at_stage(OrderStage::BeforePaying).serialize(serializer)
    }
}

impl Serialize for Told<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Inner { code, location, expected, actual, .. } = &*self.refusal.0;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("code", code.name())?;
        map.serialize_entry("message", &self.message())?;
        map.serialize_entry("at", location)?;
        if let Some(expected) = expected {
            map.serialize_entry("expected", &expected.to_string())?;
        }
        if let Some(actual) = actual {
            map.serialize_entry("got", &actual.to_string())?;
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::At;

    #[test]
    fn the_document_tells_who_has_to_act_and_not_its_location() {
        let blame = |at: At<'_>, code, rest: &str| at.refuse_below(code, rest).blame();
        assert_eq!(blame(At::RESPONSE, Code::MissingField, "/result"), Blame::Service);
        assert_eq!(blame(At::RECORD, Code::MissingField, "/version"), Blame::Service);
        assert_eq!(blame(At::REQUEST, Code::MissingField, "/source"), Blame::Caller);
        assert_eq!(blame(At::root(""), Code::NonceLimit, "/nonce"), Blame::Caller);
        assert_eq!(blame(At::REQUEST, Code::UnknownAsset, "/source/asset"), Blame::Unsupported);
        assert_eq!(blame(At::root(""), Code::Internal, ""), Blame::Bug);
        let typo = At::REQUEST.refuse_below(Code::UnexpectedField, "/sourse");
        assert!(!typo.to_string().contains("report the service"), "{typo}");
        let own = Refusal::new(Code::OrderIdMalformed, "/order_id");
        assert!(own.to_string().contains("correct the input and try again"), "{own}");
        let cut = At::RESPONSE.refuse_below(Code::MissingField, "/result/order_id");
        assert!(cut.to_string().contains("report the service"), "{cut}");
        // Whoever embeds a document in a larger one, or calls an argument like a document, moves no blame.
        for prefix in ["", "/request", "/response", "/order", "/wallet", "/case/7"] {
            for (origin, wanted) in [(Origin::Service, Blame::Service), (Origin::Request, Blame::Caller), (Origin::Caller, Blame::Caller)] {
                let refusal = At::of("", origin).key("result").refuse(Code::WrongType).with_prefix(prefix);
                assert_eq!((refusal.blame(), refusal.origin()), (wanted, origin), "{refusal}");
                let words = refusal.remedy();
                let moved = refusal.with_code(Code::TypedDataTypes).with_code(Code::WrongType);
                assert_eq!((moved.origin(), moved.remedy()), (origin, words), "{moved}");
            }
        }
        // A text is parsed before anybody knows whose it is.
        let cut = crate::json::parse(b"{").unwrap_err();
        assert_eq!((cut.blame(), cut.clone().within(&At::RESPONSE).blame()), (Blame::Caller, Blame::Service));
        assert_eq!(cut.within(&At::RESPONSE).location(), "/response#1-2");
    }

    #[test]
    fn a_difference_is_shown_where_it_is() {
        let differ = |expected: &[u8], actual: &[u8]| {
            let refusal = Refusal::new(Code::TransactionMismatch, "/input").with_difference(expected, actual);
            let texts = [refusal.expected(), refusal.actual()].map(|value| value.map(ToString::to_string).unwrap_or_default());
            (refusal.location().to_owned(), texts)
        };
        let texts = |expected: &str, actual: &str| [expected.to_owned(), actual.to_owned()];
        let mut long = [7; 300];
        long[200] = 8;
        assert_eq!(differ(&[7; 300], &long), ("/input#200-201".into(), texts("07 from byte 200 of 300", "08 from byte 200 of 300")));
        assert_eq!(differ(&[1, 2], &[1, 2, 3]), ("/input#2-3".into(), texts("no more from byte 2 of 2", "03 from byte 2 of 3")));
        assert_eq!(differ(&[1, 1], &[1]), ("/input#1-2".into(), texts("01 from byte 1 of 2", "no more from byte 1 of 1")));
        assert_eq!(differ(&[], &[]).0, "/input#0-0");
        let (at, [expected, actual]) = differ(&[0; 300], &[1; 300]);
        assert_eq!(at, "/input#0-300");
        assert!(expected.ends_with("00… from byte 0 of 300") && actual.ends_with("01… from byte 0 of 300"), "{expected} {actual}");
    }

    /// Every code, in each document of an order and in an argument of the caller.
    #[test]
    fn after_the_payment_no_words_are_those_of_before_it() {
        let before = [
            "do not sign",
            "not pay",
            "do not fund",
            "before signing",
            "before paying",
            "correct the input",
            "create a new",
            "new order",
            "new quote",
            "before you sign",
            "update this library if",
        ];
        for (code, at) in
            Code::ALL.iter().flat_map(|code| [At::root(""), At::REQUEST, At::RESPONSE, At::RECORD, At::root("/fee")].map(|at| (*code, at)))
        {
            let refusal = at.refuse_below(code, "/x");
            let text = refusal.at_stage(OrderStage::AfterPaying).to_string();
            let remedy = refusal.remedy_at(OrderStage::AfterPaying);
            assert!(!before.iter().any(|word| remedy.contains(word)), "{text}");
            assert!(text.contains(remedy), "{text}");
            if at.origin() == Origin::Service && refusal.blame() != Blame::Bug {
                assert!(remedy.contains("the payment is out") && remedy.contains("timelock has expired"), "{text}");
            }
            assert_eq!(refusal.at_stage(OrderStage::BeforePaying).to_string(), refusal.to_string());
            assert!(!refusal.finding().to_string().contains(refusal.remedy()), "{}", refusal.finding());
        }
    }
}
