//! What must hold before an order is paid, and before its secret leaves.
//!
//! A payment waits for a refund if it can never be redeemed, and a redemption shows the secret even if it fails. So everything that
//! evidence and redemption will need is asked beforehand, of a quorum, by questions that do not contain the secret. This is the whole
//! list: every caller asks it by [`Stage`], and nothing of it stands before a retry once the secret may be out.

use std::fmt;

/// When preconditions are asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "what can be lost begins at these moments")]
pub enum Stage {
    /// Before the order is paid, and before it is created.
    BeforePaying,
    /// Right before the secret is shown to anybody for the first time.
    BeforeSecret,
    /// Right before a redemption that was built offline is handed to the owner. No preflight has checked that it can succeed.
    BeforeHandingOut,
}

macro_rules! preconditions {
    ($($variant:ident = $name:literal, $meaning:literal, [$($stage:ident),+];)*) => {
        /// Something that must hold before money or the secret leaves.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum Precondition {
            $(#[doc = concat!("`", $name, "`: ", $meaning, ".")] $variant,)*
        }

        impl Precondition {
            /// Every precondition, in the order in which it is reported.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// Returns the stable name, in snake case.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// Returns what must hold.
            #[must_use]
            pub const fn meaning(self) -> &'static str {
                match self { $(Self::$variant => $meaning,)* }
            }

            /// Returns whether it is asked at a stage.
            #[must_use]
            pub const fn is_asked(self, stage: Stage) -> bool {
                match self { $(Self::$variant => matches!(stage, $(Stage::$stage)|+),)* }
            }
        }
    };
}

// That both legs can be judged is decided by the driver, from what it reads in every round. That the account can still pay is required by
// the preflight of the redemption, at the fee that it offers, before it is signed.
preconditions! {
    PinnedAsset = "pinned_asset", "the registry of the order has the asset", [BeforePaying, BeforeSecret, BeforeHandingOut];
    KnownChains = "known_chains", "every chain with endpoints is a chain of the registry", [BeforePaying];
    FinalityMark = "finality_mark", "the endpoints serve the mark that the finality rule needs", [BeforePaying];
    LowerHeight = "lower_height", "the endpoints show the height of the chain below, if a contract may count its blocks", [BeforePaying];
    NodeVersion = "node_version", "the nodes know the newest rules of their chain", [BeforePaying];
    Contract = "contract", "the HTLC runs the code that it had when the order was paid", [BeforeSecret, BeforeHandingOut];
    Decimals = "decimals", "the token has the decimals of the registry", [BeforePaying];
    Mint = "mint", "the token lets the whole amount be paid out", [BeforePaying, BeforeSecret, BeforeHandingOut];
    Receiver = "receiver", "the receiver can be paid", [BeforePaying, BeforeSecret, BeforeHandingOut];
    Payout = "payout", "the payout is worth more than its redemption costs today", [BeforePaying, BeforeHandingOut];
    Redeemer = "redeemer", "the account that redeems can pay the fee", [BeforePaying, BeforeHandingOut];
}

impl fmt::Display for Precondition {
    /// Writes the stable name.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What makes a redemption pay is asked again before the secret leaves. What was proven once does not change.
    #[test]
    fn what_can_change_is_asked_at_both_stages() {
        let at = |stage| Precondition::ALL.iter().filter(|item| item.is_asked(stage)).map(|item| item.name()).collect::<Vec<_>>();
        // Before an order is paid, its contracts are compared with their stored descriptions on both legs.
        assert_eq!(at(Stage::BeforePaying).len() + 1, Precondition::ALL.len());
        assert_eq!(at(Stage::BeforeSecret), ["pinned_asset", "contract", "mint", "receiver"]);
        assert_eq!(at(Stage::BeforeHandingOut), ["pinned_asset", "contract", "mint", "receiver", "payout", "redeemer"]);
    }
}
