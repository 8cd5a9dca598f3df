//! The wire model: the documents of the service's interface (`docs/spec/service.md`).
//!
//! Strings stay strings until a rule reads them. Unknown members are ignored, because the interface grows. Payloads that are
//! signed are decoded by the families instead, which refuse everything unknown.

mod asset_id;
mod basis_points;
mod market;
mod request;
mod secret_hash;
mod service;
mod swap;
mod time;

use std::fmt::Display;
use std::str::FromStr;

use ruint::aliases::U256;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serializer};

pub use asset_id::AssetId;
pub use basis_points::BasisPoints;
pub use market::{AssetRecord, ChainRecord, ContractRecord, LiquidityRecord, Quote, QuotedLeg, Seconds};
pub(crate) use request::least_after_slippage;
pub use request::{AffiliateFee, CreateOrder, RequestedLeg};
pub use secret_hash::SecretHash;
pub use service::{Balance, Earnings, Fees, Page, SchemaRecord, SolverBalances};
pub use swap::{OrderRecord, RecordFee, SwapRecord};
pub use time::{RecordTime, format_time, parse_time};

use crate::json::{Cursor, Members};
use crate::report::{Code, Refusal};

/// A type that is read from a JSON value.
#[doc(hidden)]
pub trait Read: Sized {
    /// Reads the value.
    ///
    /// # Errors
    ///
    /// A [`Refusal`] at the first member that does not have its shape.
    fn read(cursor: Cursor<'_, '_>) -> Result<Self, Refusal>;
}

impl<T: Read> Read for Vec<T> {
    fn read(cursor: Cursor<'_, '_>) -> Result<Self, Refusal> {
        cursor.array()?.map(|item| T::read(item)).collect()
    }
}

impl Read for String {
    fn read(cursor: Cursor<'_, '_>) -> Result<Self, Refusal> {
        cursor.text().map(str::to_owned)
    }
}

/// Opens an envelope and reads its result: `{"status":"Ok","result":..}`. An envelope with an error,
/// `{"status":"Error","error":"<text>"}`, is refused.
///
/// # Errors
///
/// [`Code::ServiceError`] with the service's text, [`Code::StatusNotOk`], [`Code::ErrorBesideOk`], [`Code::MissingField`] or
/// [`Code::WrongType`], or the refusal of `read`.
#[doc(hidden)]
pub fn with_result<'v, T>(envelope: Cursor<'_, 'v>, read: impl FnOnce(Cursor<'_, 'v>) -> Result<T, Refusal>) -> Result<T, Refusal> {
    let members = envelope.object()?;
    let status = members.need("status")?;
    match status.text()? {
        "Ok" => {}
        "Error" => {
            let refusal = status.at().refuse(Code::ServiceError);
            return Err(match members.get("error").map(|error| error.text()) {
                Some(Ok(text)) => refusal.with_actual(text),
                _ => refusal,
            });
        }
        _ => return Err(status.refuse(Code::StatusNotOk).with_expected("Ok")),
    }
    if let Some(error) = members.get("error") {
        return Err(error.refuse(Code::ErrorBesideOk));
    }
    read(members.need("result")?)
}

/// Implements the conversions that Rust users expect for a document with a strict parser `from_json`.
///
/// `Deserialize` goes through a value tree that keeps only the last of duplicate keys, so documents from the network must be parsed
/// with `from_json`.
macro_rules! strict_json {
    ($($document:ty)*) => {
        $(
            impl std::str::FromStr for $document {
                type Err = $crate::report::Refusal;

                fn from_str(text: &str) -> Result<Self, Self::Err> {
                    Self::from_json(text.as_bytes())
                }
            }

            impl TryFrom<&[u8]> for $document {
                type Error = $crate::report::Refusal;

                fn try_from(text: &[u8]) -> Result<Self, Self::Error> {
                    Self::from_json(text)
                }
            }

            impl<'de> serde::Deserialize<'de> for $document {
                fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                    let value = serde_json::Value::deserialize(deserializer)?;
                    Self::from_json(value.to_string().as_bytes()).map_err(serde::de::Error::custom)
                }
            }
        )*
    };
}
pub(crate) use strict_json;

/// Serializes base units as the service does.
fn decimal<S: Serializer>(amount: &U256, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(amount)
}

/// Deserializes a value from its text.
fn from_str<'de, T: FromStr<Err: Display>, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    std::borrow::Cow::<str>::deserialize(deserializer)?.parse().map_err(D::Error::custom)
}

/// Reads an optional text member.
fn text(members: &Members<'_, '_>, key: &str) -> Result<Option<String>, Refusal> {
    members.get(key).map(|cursor| cursor.text().map(str::to_owned)).transpose()
}

/// Reads a text member that is empty until it is known. Missing, null and empty mean the same.
fn non_empty(members: &Members<'_, '_>, key: &str) -> Result<Option<String>, Refusal> {
    Ok(text(members, key)?.filter(|text| !text.is_empty()))
}

/// Reads a text that is only shown; empty if it is missing.
fn shown(members: &Members<'_, '_>, key: &str) -> Result<String, Refusal> {
    text(members, key).map(Option::unwrap_or_default)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_of_the_service_is_refused_with_its_words() {
        for (text, words) in [
            (r#"{"status":"Error","error":"no liquidity"}"#, Some("no liquidity")),
            (r#"{"status":"Error","error":7}"#, None),
            (r#"{"status":"Error"}"#, None),
        ] {
            let value = crate::json::parse(text.as_bytes()).unwrap();
            let refusal = with_result(Cursor::new(&value, crate::json::At::RESPONSE), |_| Ok(())).unwrap_err();
            assert_eq!((refusal.code(), refusal.location()), (Code::ServiceError, "/response/status"));
            assert_eq!(refusal.actual().map(ToString::to_string).as_deref(), words, "{text}");
        }
    }
}
