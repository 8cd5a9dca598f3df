//! One sentence that says what an order does, in any language that has a catalogue.

use std::borrow::Cow;
use std::fmt;

use countersign::{
    Code, Warnings,
    report::{Amount, OrderTerms, Timelock, TypedValue, amount},
    text,
};
use fluent_bundle::{FluentArgs, FluentBundle, FluentResource, FluentValue};
use serde::ser::{Serialize, SerializeMap, Serializer};
use unic_langid::LanguageIdentifier;

const ENGLISH: &str = include_str!("../locales/en.ftl");
const GERMAN: &str = include_str!("../locales/de.ftl");
/// The languages that this crate has, by their tags.
pub const LANGUAGES: [&str; 2] = ["en", "de"];

/// A message of the catalogue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Message {
    /// What is locked, what is received, and when a refund is possible.
    Lock,
    /// The same if the payout is only a promise of the service: nothing that was verified binds it to the owner.
    LockForPromise,
    /// The same if only the service can refund.
    LockWithoutRefund,
    /// The same if the payout is a promise, and only the service can refund.
    LockForPromiseWithoutRefund,
    /// The payout is a promise, and no time of a refund is known: a deposit address whose terms no record tells.
    LockWithoutTerms,
}

impl Message {
    const ALL: [Self; 5] =
        [Self::Lock, Self::LockForPromise, Self::LockWithoutRefund, Self::LockForPromiseWithoutRefund, Self::LockWithoutTerms];

    /// Returns the message for an order with these warnings.
    fn new(has_terms: bool, certainty: Certainty) -> Self {
        match (has_terms, certainty.payout_is_promised, certainty.service_refunds) {
            (false, ..) => Self::LockWithoutTerms,
            (true, false, false) => Self::Lock,
            (true, true, false) => Self::LockForPromise,
            (true, false, true) => Self::LockWithoutRefund,
            (true, true, true) => Self::LockForPromiseWithoutRefund,
        }
    }

    /// Returns the message's id in a catalogue.
    #[must_use]
    pub const fn id(self) -> &'static str {
        match self {
            Self::Lock => "lock",
            Self::LockForPromise => "lock-for-promise",
            Self::LockWithoutRefund => "lock-without-refund",
            Self::LockForPromiseWithoutRefund => "lock-for-promise-without-refund",
            Self::LockWithoutTerms => "lock-without-terms",
        }
    }

    /// Returns the names of its values.
    const fn values(self) -> &'static [&'static str] {
        match self {
            Self::LockWithoutTerms => &["pay", "source", "receive", "destination", "payout"],
            _ => &["pay", "source", "receive", "destination", "payout", "refund"],
        }
    }
}

/// What the warnings of an order leave of what its terms say.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Certainty {
    /// Nothing that was verified binds the payout to the owner.
    pub(crate) payout_is_promised: bool,
    /// The owner has no key to a refund.
    pub(crate) service_refunds: bool,
}

impl Certainty {
    pub(crate) fn new(warnings: &Warnings) -> Self {
        let has = |codes: &[Code]| warnings.list().iter().any(|warning| codes.contains(&warning.code()));
        Self { payout_is_promised: has(&[Code::RedeemKeyNotYours, Code::NoOrderRecord]), service_refunds: has(&[Code::RefundKeyNotYours]) }
    }
}

/// What an order does, as a message with typed values. It displays itself in English.
///
/// The values are those of [`OrderTerms`], so each of them was compared with the request, the registry or the record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sentence {
    message: Message,
    values: Vec<(&'static str, TypedValue)>,
}

impl Sentence {
    /// Creates the sentence of a verified order's terms. It promises nothing that the order's warnings deny.
    #[must_use]
    pub fn new(terms: &OrderTerms<'_>, warnings: &Warnings) -> Self {
        let mut values = vec![
            ("pay", terms.pay.clone().into()),
            ("source", chain_name(terms.source_chain_title, terms.source.chain()).into()),
            ("receive", terms.receive_at_least.clone().into()),
            ("destination", chain_name(terms.destination_chain_title, terms.destination.chain()).into()),
            ("payout", terms.payout.unwrap_or_default().into()),
        ];
        values.extend(terms.timelock.map(|timelock| ("refund", timelock.into())));
        Self { message: Message::new(terms.timelock.is_some(), Certainty::new(warnings)), values }
    }

    /// Returns the message.
    #[must_use]
    pub const fn message(&self) -> Message {
        self.message
    }

    /// Returns the values by name, in the order of the English sentence, for a program with its own catalogue.
    #[must_use]
    pub fn values(&self) -> &[(&'static str, TypedValue)] {
        &self.values
    }

    /// Returns the sentence in a catalogue's language. Untrusted text in it is escaped.
    #[must_use]
    pub fn in_language(&self, catalogue: &Catalogue) -> String {
        catalogue.format(self.message, &self.values)
    }
}

impl fmt::Display for Sentence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.in_language(&Catalogue::english()))
    }
}

impl Serialize for Sentence {
    /// Writes the message's id, its values as text, and the English text.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let values: serde_json::Map<_, _> =
            self.values.iter().map(|(name, value)| ((*name).to_owned(), serde_json::Value::String(value.to_string()))).collect();
        let mut map = serializer.serialize_map(Some(3))?;
        map.serialize_entry("message", self.message.id())?;
        map.serialize_entry("values", &values)?;
        map.serialize_entry("text", &self.to_string())?;
        map.end()
    }
}

/// Why a catalogue cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum CatalogueError {
    /// The language tag is malformed.
    Language(String),
    /// The text is not Fluent, or says a message twice.
    Syntax(String),
    /// A message of [`Message`] is missing or cannot be formatted.
    Message(&'static str),
    /// A message does not show one of its values.
    LosesValue {
        /// The message's id.
        message: &'static str,
        /// The name of the value.
        value: &'static str,
    },
}

impl fmt::Display for CatalogueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Language(tag) => write!(f, "{tag} is not a language tag; pass one like de or pt-BR"),
            Self::Syntax(error) => write!(f, "the catalogue is not valid Fluent: {error}"),
            Self::Message(id) => write!(f, "the catalogue has no message {id} that can be formatted; add it"),
            Self::LosesValue { message, value } => write!(f, "the message {message} does not show ${value}; add it to every variant"),
        }
    }
}

impl std::error::Error for CatalogueError {}

/// The messages of one language, in [Fluent](https://projectfluent.org) syntax.
pub struct Catalogue {
    language: LanguageIdentifier,
    bundle: FluentBundle<FluentResource>,
    decimal_sign: String,
}

/// The id of the message that is the language's decimal sign. `12.345` is twelve thousand to a reader whose sign is the comma.
const DECIMAL_SIGN: &str = "decimal-sign";

impl fmt::Debug for Catalogue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Catalogue({})", self.language)
    }
}

impl Catalogue {
    /// Parses a catalogue, and requires that each of its messages shows all of its values.
    ///
    /// ```
    /// use countersign_view::{Catalogue, CatalogueError};
    ///
    /// let error =
    ///     Catalogue::new("nl", "decimal-sign = ,\nlock = Zet { $pay } vast.").unwrap_err();
    /// assert!(matches!(
    ///     error,
    ///     CatalogueError::LosesValue { message: "lock", value: "source" }
    /// ));
    /// ```
    ///
    /// # Errors
    ///
    /// [`CatalogueError`] with the message and the value that is missing.
    pub fn new(language: &str, messages: &str) -> Result<Self, CatalogueError> {
        let catalogue = Self::parse(language, messages)?;
        Message::ALL.into_iter().try_for_each(|message| catalogue.check(message))?;
        Ok(catalogue)
    }

    /// Returns the catalogue of one of [`LANGUAGES`]; `None` for any other.
    #[must_use]
    pub fn of(language: &str) -> Option<Self> {
        let messages = match language {
            "en" => ENGLISH,
            "de" => GERMAN,
            _ => return None,
        };
        Self::parse(language, messages).ok()
    }

    /// Returns the English catalogue.
    #[must_use]
    pub fn english() -> Self {
        Self::of("en").unwrap_or_else(|| Self {
            language: LanguageIdentifier::default(),
            bundle: FluentBundle::default(),
            decimal_sign: ".".to_owned(),
        })
    }

    /// Returns the language's tag, for the `lang` attribute of a page.
    #[must_use]
    pub fn language(&self) -> String {
        self.language.to_string()
    }

    fn parse(language: &str, messages: &str) -> Result<Self, CatalogueError> {
        let language: LanguageIdentifier = language.parse().map_err(|_| CatalogueError::Language(text::escape_untrusted(language)))?;
        let first = |errors: Vec<String>| CatalogueError::Syntax(text::escape_untrusted(errors.first().map_or("", |error| error)));
        let resource =
            FluentResource::try_new(messages.to_owned()).map_err(|(_, errors)| first(errors.iter().map(ToString::to_string).collect()))?;
        let mut bundle = FluentBundle::new(vec![language.clone()]);
        // Values are printable after escaping, and have no direction of their own; isolates would end up in copied text.
        bundle.set_use_isolating(false);
        bundle.add_resource(resource).map_err(|errors| first(errors.iter().map(ToString::to_string).collect()))?;
        let sign = bundle.get_message(DECIMAL_SIGN).and_then(|message| message.value());
        let decimal_sign = sign.map(|sign| bundle.format_pattern(sign, None, &mut Vec::new()).into_owned());
        // A digit or a space would make another number.
        let is_sign =
            |sign: &String| sign.chars().count() == 1 && !sign.contains(|sign: char| sign.is_alphanumeric() || sign.is_whitespace());
        let decimal_sign = decimal_sign.filter(is_sign).ok_or(CatalogueError::Message(DECIMAL_SIGN))?;
        Ok(Self { language, bundle, decimal_sign })
    }

    /// Requires that a message shows each of its values, in every variant of the refund's time.
    fn check(&self, message: Message) -> Result<(), CatalogueError> {
        for (units, millis) in [(7, 1_000_u128), (7, 7_000), (7, 60_000), (7, 420_000), (7, 3_600_000), (7, 25_200_000), (7, 604_800_000)] {
            let refund = Timelock::new(units, countersign::Family::Evm, millis);
            let values: Vec<_> = message
                .values()
                .iter()
                .map(|name| (*name, if *name == "refund" { refund.into() } else { TypedValue::Text(format!("<{name}>")) }))
                .collect();
            let text = self.try_format(message, &values).ok_or(CatalogueError::Message(message.id()))?;
            for (name, value) in &values {
                let shown = match value {
                    TypedValue::Timelock(timelock) => self.number(&amount::round_duration(timelock.nominal_millis).0),
                    other => other.to_string(),
                };
                if !text.contains(&shown) {
                    return Err(CatalogueError::LosesValue { message: message.id(), value: name });
                }
            }
        }
        Ok(())
    }

    /// Writes a number with the language's decimal sign.
    fn number(&self, text: &str) -> String {
        text.replace('.', &self.decimal_sign)
    }

    fn format(&self, message: Message, values: &[(&'static str, TypedValue)]) -> String {
        self.try_format(message, values).unwrap_or_else(|| {
            // A catalogue is checked before it is used, so nobody sees this; no value is lost in any case.
            let values: Vec<_> = values.iter().map(|(name, value)| format!("{name} {value}")).collect();
            format!("{}: {}", message.id(), values.join(", "))
        })
    }

    fn try_format(&self, message: Message, values: &[(&'static str, TypedValue)]) -> Option<String> {
        let mut arguments = FluentArgs::new();
        for (name, value) in values {
            match value {
                TypedValue::Timelock(timelock) => {
                    let (count, unit) = amount::round_duration(timelock.nominal_millis);
                    // The number is for the plural rule alone: what is shown is the text.
                    arguments.set("plural", FluentValue::from(count.parse::<f64>().unwrap_or_default()));
                    arguments.set("count", self.number(&count));
                    arguments.set("unit", unit.name());
                }
                TypedValue::Amount(amount) => {
                    arguments.set(*name, format!("{} {}", self.number(&amount.whole_units().to_string()), symbol(amount)));
                }
                other => arguments.set(*name, other.to_string()),
            }
        }
        let pattern = self.bundle.get_message(message.id())?.value()?;
        let mut errors = Vec::new();
        let text = self.bundle.format_pattern(pattern, Some(&arguments), &mut errors);
        errors.is_empty().then(|| Cow::into_owned(text))
    }
}

/// Returns the display name of a chain, or its name in asset ids if the display name could read as words of the sentence.
fn chain_name<'t>(title: &'t str, name: &'t str) -> &'t str {
    let is_plain = |character: char| character.is_alphanumeric() || matches!(character, ' ' | '.' | '-' | '(' | ')');
    let is_name = title.chars().count() <= 32 && title.split(' ').count() <= 4 && title.chars().all(is_plain);
    if is_name { title } else { name }
}

/// Writes an amount without its base units: `0.031 WBTC`.
pub(crate) fn short_amount(amount: &Amount) -> String {
    format!("{} {}", amount.whole_units(), symbol(amount))
}

fn symbol(amount: &Amount) -> String {
    text::escape_untrusted(&amount.symbol.to_ascii_uppercase())
}
