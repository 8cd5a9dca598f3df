//! What a person reads before signing: lines with their values, and the bytes behind each line.

use std::fmt::{self, Write as _};

use ruint::aliases::U256;
use serde::Serialize;

use super::amount::format_allowance;
use super::{Severity, TypedValue};

/// What a line is about. A family names the topics that its payload's bytes belong to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Topic {
    /// Order id.
    Order,
    /// Amount and asset that the owner pays.
    Send,
    /// The owner, who gets refunds.
    Owner,
    /// The account that sends and pays for the owner.
    Delegate,
    /// Source chain.
    Chain,
    /// HTLC contract, program or package.
    Contract,
    /// Token contract.
    Token,
    /// Who may redeem.
    Redeemer,
    /// The hash that locks the funds.
    SecretHash,
    /// How long until a refund is possible.
    Timelock,
    /// Bytes that are passed on to the destination.
    DestinationData,
    /// Amount and asset that the owner receives.
    Receive,
    /// Where the owner is paid.
    Payout,
    /// What the order record adds.
    Record,
    /// Affiliate fees.
    Fees,
    /// The token approval.
    Approval,
    /// Gas or fee limits.
    Gas,
    /// The gasless message.
    Message,
    /// A remark on the encoding of the response.
    Encoding,
    /// What the wallet adds: nonce, fees, coins.
    Wallet,
    /// What will be signed.
    Digest,
}

impl Topic {
    /// Returns the heading of the line, such as `secret hash`.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::Order => "order",
            Self::Send => "pay",
            Self::Owner => "owner",
            Self::Delegate => "delegate",
            Self::Chain => "chain",
            Self::Contract => "contract",
            Self::Token => "token",
            Self::Redeemer => "redeemer",
            Self::SecretHash => "secret hash",
            Self::Timelock => "timelock",
            Self::DestinationData => "destination data",
            Self::Receive => "get",
            Self::Payout => "pay-out",
            Self::Record => "record",
            Self::Fees => "affiliate fees",
            Self::Approval => "approval",
            Self::Gas => "gas",
            Self::Message => "message",
            Self::Encoding => "encoding",
            Self::Wallet => "wallet",
            Self::Digest => "to sign",
        }
    }
}

/// One line of a summary.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Line {
    /// What it is about.
    pub topic: Topic,
    /// The text in English; untrusted text in it is escaped.
    pub text: String,
    /// The values in the text, for wallets with their own layout or language.
    pub values: Vec<TypedValue>,
    /// How closely the owner should look.
    pub severity: Severity,
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.topic.title())?;
        f.write_str(": ")?;
        f.write_str(&self.text)
    }
}

/// Bytes of the response that the lines of a topic describe.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ByteCoverage {
    /// The topic whose lines describe these bytes.
    #[serde(serialize_with = "title")]
    pub topic: Topic,
    /// JSON pointer of the payload.
    pub at: String,
    /// First byte and the byte after the last, in the decoded payload; `None` means the whole member.
    pub bytes: Option<(usize, usize)>,
    /// What these bytes are.
    pub what: &'static str,
}

fn title<S: serde::Serializer>(topic: &Topic, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(topic.title())
}

/// Where the gasless message is, in every family that has typed data.
const TYPED_DATA: &str = "/response/result/typed_data";

impl ByteCoverage {
    /// Returns the members that every family's typed data has.
    #[doc(hidden)]
    #[must_use]
    pub fn typed_data() -> Vec<Self> {
        [
            (Topic::Message, "primaryType", "message type"),
            (Topic::Message, "types", "member types"),
            (Topic::Message, "domain/name", "domain name"),
            (Topic::Message, "domain/version", "domain version"),
            (Topic::Chain, "domain/chainId", "chain id"),
            (Topic::Redeemer, "message/redeemer", "redeemer"),
            (Topic::Timelock, "message/timelock", "timelock"),
            (Topic::Send, "message/amount", "amount"),
            (Topic::SecretHash, "message/secretHash", "secret hash"),
        ]
        .map(|(topic, path, what)| Self::of_message(topic, path, what))
        .into()
    }

    /// Creates the coverage of a member of the typed data. `path` begins below the typed data: `domain/name`.
    #[doc(hidden)]
    #[must_use]
    pub fn of_message(topic: Topic, path: &str, what: &'static str) -> Self {
        Self::member(topic, format!("{TYPED_DATA}/{path}"), what)
    }

    /// Creates the coverage of the bytes `start..end` of the payload at `at`.
    #[doc(hidden)]
    #[must_use]
    pub fn bytes(topic: Topic, at: impl Into<String>, start: usize, end: usize, what: &'static str) -> Self {
        Self { topic, at: at.into(), bytes: Some((start, end)), what }
    }

    /// Creates the coverage of the whole JSON member at `at`.
    #[doc(hidden)]
    #[must_use]
    pub fn member(topic: Topic, at: impl Into<String>, what: &'static str) -> Self {
        Self { topic, at: at.into(), bytes: None, what }
    }
}

/// Room for the lines of most summaries, and for the characters of most lines, so that neither is moved while it grows.
const LINES: usize = 32;
const CHARACTERS: usize = 160;

/// Formats the text of a line: see [`line_text!`](crate::line_text).
#[doc(hidden)]
#[must_use]
pub fn format_line(text: fmt::Arguments<'_>) -> String {
    let mut line = String::with_capacity(CHARACTERS);
    // Writing to a String cannot fail.
    let _ = line.write_fmt(text);
    line
}

/// Formats the text of a line like `format!`, which would move it several times while it grows.
#[doc(hidden)]
#[macro_export]
macro_rules! line_text {
    ($($argument:tt)*) => {
        $crate::report::format_line(format_args!($($argument)*))
    };
}

/// The lines of a summary, in the order in which they are read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Summary(Vec<Line>);

impl Summary {
    /// Adds a line without values. Untrusted text in it must already be escaped.
    #[doc(hidden)]
    pub fn add(&mut self, topic: Topic, text: impl Into<String>) {
        self.add_values(topic, text, []);
    }

    /// Adds a line with the values in its text.
    #[doc(hidden)]
    pub fn add_values(&mut self, topic: Topic, text: impl Into<String>, values: impl IntoIterator<Item = TypedValue>) {
        self.add_line(topic, text, values, Severity::Info);
    }

    /// Adds a line with its values and its severity.
    #[doc(hidden)]
    pub fn add_line(&mut self, topic: Topic, text: impl Into<String>, values: impl IntoIterator<Item = TypedValue>, severity: Severity) {
        if self.0.is_empty() {
            self.0.reserve(LINES);
        }
        self.0.push(Line { topic, text: text.into(), values: values.into_iter().collect(), severity });
    }

    /// Adds a line whose text is one value.
    #[doc(hidden)]
    pub fn add_value(&mut self, topic: Topic, value: impl Into<TypedValue>) {
        let value = value.into();
        self.add_values(topic, format_line(format_args!("{value}")), [value]);
    }

    /// Adds the line on the token approval: what the HTLC may take, and what the response proposed if that differs. `sent` is `None`
    /// if no approval is sent.
    #[doc(hidden)]
    pub fn add_approval(&mut self, proposed: U256, sent: Option<U256>) {
        let Some(sent) = sent else {
            return self.add(Topic::Approval, "none is sent: the allowance must cover the amount already");
        };
        let rewritten = if sent == proposed { String::new() } else { format!(", rewritten from {}", format_allowance(proposed)) };
        let text = crate::line_text!("the HTLC may take {}{rewritten}", format_allowance(sent));
        let severity = if sent == U256::MAX { Severity::Danger } else { Severity::Info };
        self.add_line(Topic::Approval, text, [sent.into()], severity);
    }

    /// Adds that there is no gasless payload, and why: the order offers none, or the wallet has chosen another path.
    #[doc(hidden)]
    pub fn add_no_gasless(&mut self, is_offered: bool) {
        let why = if is_offered { "the wallet sends its own transactions" } else { "this order has no gasless funding path" };
        self.add(Topic::Message, crate::line_text!("none: {why}"));
    }

    /// Returns the lines.
    #[must_use]
    pub fn lines(&self) -> &[Line] {
        &self.0
    }

    /// Returns the lines about one topic.
    pub fn about(&self, topic: Topic) -> impl Iterator<Item = &Line> {
        self.0.iter().filter(move |line| line.topic == topic)
    }
}

impl<'s> IntoIterator for &'s Summary {
    type Item = &'s Line;
    type IntoIter = std::slice::Iter<'s, Line>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

impl fmt::Display for Summary {
    /// Writes one line of text for each line of the summary.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|line| writeln!(f, "{line}"))
    }
}

/// A line that serializes as its text.
struct Shown<'s>(&'s Line);

impl Serialize for Shown<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self.0)
    }
}

impl Serialize for Summary {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(Shown))
    }
}
