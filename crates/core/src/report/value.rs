//! A value of a summary line or a refusal, in its own type, so that nobody has to parse it out of a sentence.

use std::fmt;

use countersign_chains::{Account, Family};
use ruint::aliases::U256;

use super::text::{escape_owned, escape_untrusted, quote_whole};
use super::{Amount, Timelock};
use crate::wire::{AssetId, SecretHash};

/// One typed value.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum TypedValue {
    /// Text. Control and bidirectional characters are escaped, and the length is capped.
    Text(String),
    /// A number, in the unit of its field or line.
    Number(U256),
    /// A lower bound: at least this is accepted.
    AtLeast(U256),
    /// An upper bound: at most this is accepted.
    AtMost(U256),
    /// An amount of an asset.
    Amount(Amount),
    /// An account, contract or key.
    Account(Account),
    /// A hash or digest.
    Hash([u8; 32]),
    /// A timelock.
    Timelock(Timelock),
}

impl TypedValue {
    /// Returns the value for a sentence: untrusted text that is more than one plain word is in quotation marks.
    #[must_use]
    pub fn quoted(&self) -> String {
        match self {
            // The text was shortened and escaped before.
            Self::Text(text) => quote_whole(text),
            other => other.to_string(),
        }
    }
}

impl fmt::Display for TypedValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Number(number) => write!(f, "{number}"),
            Self::AtLeast(bound) => write!(f, "at least {bound}"),
            Self::AtMost(bound) => write!(f, "at most {bound}"),
            Self::Amount(amount) => write!(f, "{amount}"),
            Self::Account(account) => write!(f, "{account}"),
            Self::Hash(hash) => f.write_str(&hex::encode(hash)),
            Self::Timelock(timelock) => write!(f, "{timelock}"),
        }
    }
}

impl From<&str> for TypedValue {
    fn from(text: &str) -> Self {
        Self::Text(escape_untrusted(text))
    }
}

impl From<String> for TypedValue {
    fn from(text: String) -> Self {
        Self::Text(escape_owned(text))
    }
}

impl From<&String> for TypedValue {
    fn from(text: &String) -> Self {
        Self::Text(escape_untrusted(text))
    }
}

macro_rules! numbers {
    ($($number:ty)*) => {
        $(impl From<$number> for TypedValue {
            fn from(number: $number) -> Self {
                Self::Number(U256::from(number))
            }
        })*
    };
}

numbers!(u8 u16 u32 u64 u128 usize);

impl From<U256> for TypedValue {
    fn from(number: U256) -> Self {
        Self::Number(number)
    }
}

impl From<SecretHash> for TypedValue {
    fn from(hash: SecretHash) -> Self {
        Self::Hash(hash.0)
    }
}

impl From<&AssetId> for TypedValue {
    fn from(asset: &AssetId) -> Self {
        Self::Text(asset.as_str().to_owned())
    }
}

impl From<Family> for TypedValue {
    fn from(family: Family) -> Self {
        Self::Text(family.name().to_owned())
    }
}

impl From<Account> for TypedValue {
    fn from(account: Account) -> Self {
        Self::Account(account)
    }
}

impl From<&Account> for TypedValue {
    fn from(account: &Account) -> Self {
        Self::Account(account.clone())
    }
}

impl From<Amount> for TypedValue {
    fn from(amount: Amount) -> Self {
        Self::Amount(amount)
    }
}

impl From<Timelock> for TypedValue {
    fn from(timelock: Timelock) -> Self {
        Self::Timelock(timelock)
    }
}
