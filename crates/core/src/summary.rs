//! What a person reads before signing: lines, the bytes that each line covers, and warnings.

use std::fmt;

use serde::Serialize;

use crate::code::Code;
use crate::text;

/// What a line is about. A family names the topics that its payload's bytes stand for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Topic {
    /// Order id.
    Order,
    /// Amount and asset that the owner pays.
    Pay,
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
    /// How long until a refund.
    Timelock,
    /// Bytes that go on to the destination.
    DestinationData,
    /// Amount and asset that the owner gets.
    Get,
    /// Where the owner gets it.
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
    /// Something about the encoding that came.
    Encoding,
    /// What the wallet adds: nonce, fees, coins.
    Wallet,
    /// What will be signed.
    Digest,
}

impl Topic {
    /// The heading of the line.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::Order => "order",
            Self::Pay => "pay",
            Self::Owner => "owner",
            Self::Delegate => "delegate",
            Self::Chain => "chain",
            Self::Contract => "contract",
            Self::Token => "token",
            Self::Redeemer => "redeemer",
            Self::SecretHash => "secret hash",
            Self::Timelock => "timelock",
            Self::DestinationData => "destination data",
            Self::Get => "get",
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
    /// What it says; foreign text in it is escaped.
    pub text: String,
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.topic.title(), self.text)
    }
}

/// Bytes that a topic's line stands for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Span {
    /// The topic whose lines cover these bytes.
    #[serde(serialize_with = "title")]
    pub topic: Topic,
    /// JSON pointer of the payload.
    pub at: String,
    /// First byte and the byte after the last, in the decoded payload; `None` means the whole member.
    pub bytes: Option<(usize, usize)>,
    /// What stands there.
    pub what: &'static str,
}

fn title<S: serde::Serializer>(topic: &Topic, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(topic.title())
}

/// Where the gasless message stands, in every family that has typed data.
const TYPED_DATA: &str = "/response/result/typed_data";

impl Span {
    /// The members that every family's typed data has.
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
            (Topic::Pay, "message/amount", "amount"),
            (Topic::SecretHash, "message/secretHash", "secret hash"),
        ]
        .map(|(topic, path, what)| Self::of_message(topic, path, what))
        .into()
    }

    /// A member of the typed data.
    #[must_use]
    pub fn of_message(topic: Topic, path: &str, what: &'static str) -> Self {
        Self::member(topic, format!("{TYPED_DATA}/{path}"), what)
    }

    /// Bytes of a payload.
    #[must_use]
    pub fn bytes(topic: Topic, at: impl Into<String>, start: usize, end: usize, what: &'static str) -> Self {
        Self { topic, at: at.into(), bytes: Some((start, end)), what }
    }

    /// A whole JSON member.
    #[must_use]
    pub fn member(topic: Topic, at: impl Into<String>, what: &'static str) -> Self {
        Self { topic, at: at.into(), bytes: None, what }
    }
}

/// The lines of a summary, in the order in which they are read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Summary(Vec<Line>);

impl Summary {
    /// Adds a line; control and bidirectional characters of foreign text in it are escaped.
    pub fn say(&mut self, topic: Topic, text: impl Into<String>) {
        self.0.push(Line { topic, text: text.into() });
    }

    /// The lines.
    #[must_use]
    pub fn lines(&self) -> &[Line] {
        &self.0
    }
}

impl Serialize for Summary {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(ToString::to_string))
    }
}

/// Something that could not be checked, or that the owner should know.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Warning {
    /// The stable code.
    pub code: Code,
    /// What it is about in this order, empty where the code says all.
    pub detail: String,
}

impl Warning {
    /// What a person reads.
    #[must_use]
    pub fn message(&self) -> String {
        let (meaning, remedy) = (self.code.meaning(), self.code.remedy());
        if self.detail.is_empty() { format!("{meaning}; {remedy}") } else { format!("{meaning} ({}); {remedy}", self.detail) }
    }
}

impl Serialize for Warning {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeStruct;
        let mut map = serializer.serialize_struct("Warning", 2)?;
        map.serialize_field("code", self.code.name())?;
        map.serialize_field("message", &self.message())?;
        map.end()
    }
}

/// The warnings of one order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Warnings(Vec<Warning>);

impl Warnings {
    /// Adds a warning that its code says all about; the same one twice is one.
    pub fn warn(&mut self, code: Code) {
        self.about(code, String::new());
    }

    /// Adds a warning with what it is about; foreign text in it is escaped.
    pub fn about(&mut self, code: Code, detail: impl Into<String>) {
        let warning = Warning { code, detail: text::shown(&detail.into()) };
        if !self.0.contains(&warning) {
            self.0.push(warning);
        }
    }

    /// The warnings.
    #[must_use]
    pub fn list(&self) -> &[Warning] {
        &self.0
    }
}

impl Serialize for Warnings {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}
