//! Reads a line of the journal.

use countersign::{BroadcastTransaction, chains::UnixTime};
use serde::de::{Deserialize, Deserializer, Error};

use super::{Delivery, Entry, Event, Outcome, Purpose, SecretRoute, once};

/// A line with the members of every event. It takes a fraction of the code that a form for each event takes, of which the line's name for
/// the event chooses one.
#[derive(serde::Deserialize)]
struct Line {
    event: Name,
    #[serde(default, deserialize_with = "given")]
    at: Option<UnixTime>,
    #[serde(default, deserialize_with = "given")]
    purpose: Option<Purpose>,
    #[serde(default, deserialize_with = "given")]
    transactions: Option<Vec<BroadcastTransaction>>,
    #[serde(default)]
    gasless: Option<String>,
    #[serde(default, deserialize_with = "given")]
    what: Option<Delivery>,
    #[serde(default = "once")]
    times: u32,
    #[serde(default, deserialize_with = "given")]
    error: Option<String>,
    #[serde(default)]
    is_rejected: bool,
    #[serde(default, deserialize_with = "given")]
    path: Option<SecretRoute>,
    #[serde(default, deserialize_with = "given")]
    outcome: Option<Outcome>,
}

/// The name of an event: see [`Event::name`].
#[derive(serde::Deserialize)]
#[serde(variant_identifier, rename_all = "snake_case")]
enum Name {
    Signed,
    Sending,
    Sent,
    NotSent,
    Printed,
    OnChain,
    PaymentLeaving,
    PaymentStayed,
    SecretLeaving,
    Ended,
}

/// Reads a member that is there: `null` is no value of it.
fn given<'de, T: Deserialize<'de>, D: Deserializer<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

fn need<T, E: Error>(member: Option<T>, name: &'static str) -> Result<T, E> {
    member.ok_or_else(|| E::missing_field(name))
}

impl Line {
    fn event<E: Error>(self) -> Result<Event, E> {
        let what = || need(self.what, "what");
        Ok(match self.event {
            Name::Signed => Event::Signed {
                purpose: need(self.purpose, "purpose")?,
                transactions: need(self.transactions, "transactions")?,
                gasless: self.gasless,
            },
            Name::Sending => Event::Sending { what: what()?, times: self.times },
            Name::Sent => Event::Sent { what: what()? },
            Name::NotSent => Event::NotSent { what: what()?, error: need(self.error, "error")?, is_rejected: self.is_rejected },
            Name::Printed => Event::Printed { what: what()? },
            Name::OnChain => Event::OnChain { what: what()? },
            Name::PaymentLeaving => Event::PaymentLeaving,
            Name::PaymentStayed => Event::PaymentStayed,
            Name::SecretLeaving => Event::SecretLeaving { path: need(self.path, "path")? },
            Name::Ended => Event::Ended { outcome: need(self.outcome, "outcome")? },
        })
    }
}

impl<'de> Deserialize<'de> for Entry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let line = Line::deserialize(deserializer)?;
        Ok(Self { at: need(line.at, "at")?, event: line.event()? })
    }
}

impl<'de> Deserialize<'de> for Event {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Line::deserialize(deserializer)?.event()
    }
}
