//! How an order is funded: the wallet's choice, made before nonce and fees are asked for.

use crate::report::{Code, Refusal};

/// What to do with the token approval that an order comes with. Orders of native assets have none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[allow(clippy::exhaustive_enums, reason = "an approval is sent as it is, sent exact, or left out")]
pub enum ApprovalStep {
    /// Send it as it was verified: as the service proposed it, or exact where the policy rewrites it.
    #[default]
    AsVerified,
    /// Send one of exactly the amount.
    Exact,
    /// Leave it out: an allowance that covers the amount is on the chain already.
    AlreadyApproved,
}

/// The gasless path: the owner only signs, and the service sends and pays for the transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "it has nothing to configure")]
pub struct Gasless;

/// How an order is funded. `C` is what transactions of the wallet's own need: nonce and fees, or a blockhash.
///
/// ```
/// use countersign_core::{FundingPath, Gasless};
///
/// let path: FundingPath<u64> = Gasless.into();
/// assert_eq!(path, FundingPath::Gasless);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
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
    /// Creates the path on which the owner pays least: through the service where the order offers that, with the owner's own
    /// transactions beside it where a token is not approved yet.
    #[must_use]
    pub fn cheapest(is_gasless_offered: bool, is_approved: bool, context: C) -> Self {
        match (is_gasless_offered, is_approved) {
            (true, true) => Self::Gasless,
            (true, false) => Self::Both(context),
            (false, _) => Self::SelfFunded(context),
        }
    }

    /// Returns what the wallet's own transactions need, where they are prepared.
    #[must_use]
    pub const fn self_funded(&self) -> Option<&C> {
        match self {
            Self::Gasless => None,
            Self::SelfFunded(context) | Self::Both(context) => Some(context),
        }
    }

    /// Returns what is signed for the service, where the path has it.
    ///
    /// # Errors
    ///
    /// [`Code::NothingToSign`] if nothing else is wanted and the order has none.
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
