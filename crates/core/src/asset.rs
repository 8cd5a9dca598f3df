//! Asset ids: `<chain>:<symbol>`, both in lower case.

use std::fmt;

use serde::{Serialize, Serializer};

use crate::code::Code;
use crate::json::Node;
use crate::refusal::Refusal;

/// An asset id such as `ethereum_sepolia:wbtc` (interface.md section 2.1).
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AssetId {
    text: String,
    colon: usize,
}

impl AssetId {
    /// Reads an id.
    ///
    /// # Errors
    ///
    /// [`Code::AssetIdMalformed`] unless both parts are 1 to 64 characters of `a-z`, `0-9`, `_`, `-`, `.`, `+` and `$`.
    pub fn parse(text: &str) -> Result<Self, Code> {
        let part = |part: &str| {
            (1..=64).contains(&part.len())
                && part.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'_' | b'-' | b'.' | b'+' | b'$'))
        };
        match text.split_once(':') {
            Some((chain, symbol)) if part(chain) && part(symbol) => Ok(Self { text: text.to_owned(), colon: chain.len() }),
            _ => Err(Code::AssetIdMalformed),
        }
    }

    pub(crate) fn read(node: Node<'_, '_>) -> Result<Self, Refusal> {
        Self::parse(node.text()?).map_err(|code| node.refuse(code))
    }

    /// The chain's name.
    #[must_use]
    pub fn chain(&self) -> &str {
        self.text.get(..self.colon).unwrap_or_default()
    }

    /// The asset's symbol on that chain.
    #[must_use]
    pub fn symbol(&self) -> &str {
        self.text.get(self.colon.saturating_add(1)..).unwrap_or_default()
    }

    /// The whole id.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
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
            assert_eq!(AssetId::parse(text), Err(Code::AssetIdMalformed), "{text:?}");
        }
        assert!(AssetId::parse(&format!("{}:x", "a".repeat(65))).is_err());
    }
}
