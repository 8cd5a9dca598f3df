//! Asset ids: `<chain>:<symbol>`, both in lower case.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::from_str;
use crate::json::Cursor;
use crate::report::Refusal;
use crate::report::{Code, ParseError};

/// An asset id, `<chain>:<symbol>`, as the service lists it.
///
/// ```
/// use countersign::AssetId;
///
/// # fn main() -> Result<(), countersign::report::ParseError> {
/// let id: AssetId = "ethereum_sepolia:wbtc".parse()?;
/// assert_eq!((id.chain(), id.symbol()), ("ethereum_sepolia", "wbtc"));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AssetId {
    text: String,
    colon: usize,
}

impl AssetId {
    /// Parses an asset id.
    ///
    /// # Errors
    ///
    /// [`Code::AssetIdMalformed`] unless both parts are 1 to 64 characters of `a-z`, `0-9`, `_`, `-`, `.`, `+` and `$`.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        let part = |part: &str| {
            (1..=64).contains(&part.len())
                && part.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'_' | b'-' | b'.' | b'+' | b'$'))
        };
        match text.split_once(':') {
            Some((chain, symbol)) if part(chain) && part(symbol) => Ok(Self { text: text.to_owned(), colon: chain.len() }),
            _ => Err(Code::AssetIdMalformed.into()),
        }
    }

    pub(crate) fn read(cursor: Cursor<'_, '_>) -> Result<Self, Refusal> {
        Self::parse(cursor.text()?).map_err(|error| cursor.refuse(error))
    }

    /// Returns the name of the chain.
    #[must_use]
    pub fn chain(&self) -> &str {
        self.text.get(..self.colon).unwrap_or_default()
    }

    /// Returns the symbol of the asset on that chain.
    #[must_use]
    pub fn symbol(&self) -> &str {
        self.text.get(self.colon.saturating_add(1)..).unwrap_or_default()
    }

    /// Returns the whole id.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl FromStr for AssetId {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        Self::parse(text)
    }
}

impl TryFrom<&str> for AssetId {
    type Error = ParseError;

    fn try_from(text: &str) -> Result<Self, ParseError> {
        Self::parse(text)
    }
}

impl AsRef<str> for AssetId {
    fn as_ref(&self) -> &str {
        &self.text
    }
}

impl<'de> Deserialize<'de> for AssetId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        from_str(deserializer)
    }
}

impl fmt::Display for AssetId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for AssetId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Serialize for AssetId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_parts_are_lower_case_words() {
        let id = AssetId::parse("ethereum_sepolia:usdc.e").unwrap();
        assert_eq!((id.chain(), id.symbol()), ("ethereum_sepolia", "usdc.e"));
        for text in ["", ":", "a:", ":b", "a", "A:b", "a:B", "a:b:c", "a :b", "a:b\n", "é:b"] {
            assert_eq!(AssetId::parse(text), Err(Code::AssetIdMalformed.into()), "{text:?}");
        }
        assert!(AssetId::parse(&format!("{}:x", "a".repeat(65))).is_err());
    }
}
