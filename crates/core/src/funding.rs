//! How an order is funded. The wallet chooses before it fetches nonce and fees.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::report::{Code, Refusal};

/// What to do with the token approval of an order. An order that pays a native asset has none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(clippy::exhaustive_enums, reason = "an approval is sent as it is, sent exact, or left out")]
pub enum ApprovalStep {
    /// Send it as it was verified: as the service proposed it, or for exactly the amount where the policy rewrites it.
    #[default]
    AsVerified,
    /// Send an approval of exactly the amount.
    Exact,
    /// Leave it out, because the allowance on the chain already covers the amount.
    AlreadyApproved,
}

/// The version of the form in which a wallet context is stored: the member `version`. It is written with every context.
///
/// A context without it has the first version. One of a newer version is refused, because it may have a member that this library would have
/// to respect. A new member with a sensible default does not change the version.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[allow(clippy::exhaustive_structs, reason = "it says only that the version is one that can be read")]
pub struct ContextVersion;

impl ContextVersion {
    /// The version that is written, and the newest that is read.
    const NEWEST: u64 = 1;
}

impl Serialize for ContextVersion {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(Self::NEWEST)
    }
}

impl<'de> Deserialize<'de> for ContextVersion {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match u64::deserialize(deserializer)? {
            Self::NEWEST => Ok(Self),
            version if version > Self::NEWEST => Err(D::Error::custom(format_args!(
                "the wallet context has version {version}, and this library reads version {}: update it, or prepare with a new context",
                Self::NEWEST
            ))),
            version => Err(D::Error::custom(format_args!("a wallet context has no version {version}"))),
        }
    }
}

/// The gasless path: the owner only signs, and the service sends and pays for the transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "it has nothing to configure")]
pub struct Gasless;

/// How an order is funded. `C` is what the wallet's own transactions need: nonce and fees, or a blockhash.
///
/// ```
/// use countersign::{FundingPath, Gasless};
///
/// let path: FundingPath<u64> = Gasless.into();
/// assert_eq!(path, FundingPath::Gasless);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(clippy::exhaustive_enums, reason = "an order is funded by the owner, through the service, or prepared for either")]
pub enum FundingPath<C> {
    /// The owner signs for the service, which sends and pays for the transaction.
    Gasless,
    /// The sender signs, broadcasts and pays for its own transactions.
    SelfFunded(C),
    /// Both are prepared, where the order offers both. Submit only one of them.
    Both(C),
}

impl<C> From<Gasless> for FundingPath<C> {
    fn from(_: Gasless) -> Self {
        Self::Gasless
    }
}

impl<C> FundingPath<C> {
    /// Returns what the wallet's own transactions need; `None` if only the gasless path is prepared.
    #[must_use]
    pub const fn self_funded(&self) -> Option<&C> {
        match self {
            Self::Gasless => None,
            Self::SelfFunded(context) | Self::Both(context) => Some(context),
        }
    }

    /// Returns the payload that is signed for the service, given the one that the order offers. `None` on the self-funded path, and
    /// where both paths are wanted but the order offers no gasless one.
    ///
    /// # Errors
    ///
    /// [`Code::NothingToSign`] if only the gasless path is wanted and the order does not offer it.
    pub fn gasless<G: Clone>(&self, offered: Option<&G>) -> Result<Option<G>, Refusal> {
        match self {
            Self::Gasless if offered.is_none() => {
                Err(Refusal::new(Code::NothingToSign, "").with_reason("this order has no gasless funding path"))
            }
            Self::Gasless | Self::Both(_) => Ok(offered.cloned()),
            Self::SelfFunded(_) => Ok(None),
        }
    }
}

/// A wallet context for a redemption, a refund or a claim, and the account that sends and pays for the transaction.
///
/// The `sent_by` method of each context creates it. An order needs none, because it knows its sender. Anyone may send a recovery.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "a context and its sender")]
pub struct SentBy<A, C> {
    /// The account that sends and pays for the transaction, in the family's own address type.
    pub sender: A,
    /// What the transaction needs: nonce and fees, or a blockhash, or gas coins.
    pub context: C,
    /// Whether the user accepts a redemption whose fee is so low that nodes may not mine it, although they see its secret.
    pub accepts_low_fee: bool,
}

impl<A, C> SentBy<A, C> {
    /// Creates a context for a transaction that this account sends.
    #[must_use]
    pub const fn new(sender: A, context: C) -> Self {
        Self { sender, context, accepts_low_fee: false }
    }

    /// Sets whether a redemption may have a fee so low that nodes may not mine it, although they see its secret.
    #[must_use]
    pub fn with_low_fee(mut self, is_accepted: bool) -> Self {
        self.accepts_low_fee = is_accepted;
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_asks_for_what_it_needs() {
        let has = |path: FundingPath<u8>, offered: Option<&str>| path.gasless(offered.map(|_| &7)).map(|message| message.is_some());
        assert!(has(FundingPath::Gasless, Some("a message")).unwrap());
        assert!(has(FundingPath::Both(1), Some("a message")).unwrap());
        assert!(!has(FundingPath::SelfFunded(1), Some("a message")).unwrap());
        assert!(!has(FundingPath::Both(1), None).unwrap());
        assert!(!has(FundingPath::SelfFunded(1), None).unwrap());
        assert_eq!(has(FundingPath::Gasless, None).unwrap_err().code(), Code::NothingToSign);
        assert_eq!(FundingPath::from(Gasless).self_funded(), None::<&u8>);
        assert_eq!((FundingPath::SelfFunded(1).self_funded(), FundingPath::Both(2).self_funded()), (Some(&1), Some(&2)));
    }
}
