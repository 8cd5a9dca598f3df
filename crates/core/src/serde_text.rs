//! Serializes values as the text that `Display` writes and `FromStr` parses: for `#[serde(with = "..")]` in family crates.

use std::fmt::Display;
use std::str::FromStr;

use serde::de::{Deserialize, Deserializer, Error};
use serde::ser::Serializer;

fn parse<T: FromStr<Err: Display>, E: Error>(text: &str) -> Result<T, E> {
    text.parse().map_err(E::custom)
}

/// Serializes a value as text.
///
/// # Errors
///
/// Those of the serializer.
pub fn serialize<T: Display, S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(value)
}

/// Parses a value.
///
/// # Errors
///
/// Those of the deserializer and of `FromStr`.
pub fn deserialize<'de, T: FromStr<Err: Display>, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    parse(&String::deserialize(deserializer)?)
}

/// The same for an optional value.
pub mod option {
    use super::{Deserialize, Deserializer, Display, FromStr, Serializer, parse};

    /// Serializes a value as text, if there is one.
    ///
    /// # Errors
    ///
    /// Those of the serializer.
    pub fn serialize<T: Display, S: Serializer>(value: &Option<T>, serializer: S) -> Result<S::Ok, S::Error> {
        match value {
            Some(value) => serializer.collect_str(value),
            None => serializer.serialize_none(),
        }
    }

    /// Parses a value, if there is one.
    ///
    /// # Errors
    ///
    /// Those of the deserializer and of `FromStr`.
    pub fn deserialize<'de, T: FromStr<Err: Display>, D: Deserializer<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
        Option::<String>::deserialize(deserializer)?.map(|text| parse(&text)).transpose()
    }
}

/// The same for a list of values.
pub mod list {
    use super::{Deserialize, Deserializer, Display, FromStr, Serializer, parse};

    /// Serializes each value as text.
    ///
    /// # Errors
    ///
    /// Those of the serializer.
    pub fn serialize<T: Display, S: Serializer>(values: &[T], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(values.iter().map(ToString::to_string))
    }

    /// Parses each value.
    ///
    /// # Errors
    ///
    /// Those of the deserializer and of `FromStr`.
    pub fn deserialize<'de, T: FromStr<Err: Display>, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<T>, D::Error> {
        Vec::<String>::deserialize(deserializer)?.iter().map(|text| parse(text)).collect()
    }
}
