//! Recovery of any family from an order record alone: redeem with the secret, refund after the timelock.
//!
//! The record is all that is needed, so this works when the service is gone. The pinned chain of the leg's asset decides the
//! family. On account chains anyone may send the transaction, and the contract pays the party that it stored. On Bitcoin-like
//! chains only the holder of the key can take the coins, and the payout names where they go.
//!
//! A record by itself is only coherent: its parties and its hash may be anybody's. Verify it against the request and the
//! response first ([`verify_record`](crate::verify_record)), or show the owner who is paid.
//!
//! ```
//! use countersign::recover::{self, Leg, Recovery};
//! use countersign::{OrderRecord, Refusal, Registry};
//!
//! /// Returns the calldata that refunds what was paid on an EVM chain.
//! fn refund(
//!     record: &OrderRecord,
//!     registry: &Registry,
//! ) -> Result<Option<Vec<u8>>, Refusal> {
//!     match recover::refund(record, Leg::Source, registry)? {
//!         # #[cfg(feature = "evm")]
//!         Recovery::Evm(recovery) => Ok(Some(recovery.call().data.to_vec())),
//!         _ => Ok(None),
//!     }
//! }
//! # let _ = refund;
//! ```

use countersign_core::{Code, Family, Refusal, Registry};
pub use countersign_core::{Leg, OrderRecord, RecoveryTerms};

/// The families' own type, as it is.
type Own<T> = T;

any_family! {
    /// A recovery, ready to be given what only the wallet knows. Match on it to prepare it with the wallet context of its family;
    /// the result converts into [`Unsigned`](crate::Unsigned).
    #[derive(Clone)]
    #[must_use = "nothing is signed until a recovery is prepared"]
    #[allow(clippy::large_enum_variant, reason = "a recovery is prepared and dropped, and never stored by the thousand")]
    Recovery: Own<recover::Recovery>
}

/// Calls a function of the leg's family.
macro_rules! of_family {
    ([$leg:ident $record:ident $registry:ident $function:ident $arguments:tt] $($feature:literal $family:ident $module:ident,)*) => {
        match $leg.pinned($leg.of($record), $registry)?.chain.family() {
            $(#[cfg(feature = $feature)] Family::$family => crate::$module::recover::$function $arguments.map(Recovery::$family),)*
            family => Err($leg.refuse(Code::UnsupportedFamily, "asset").with_actual(family)),
        }
    };
}

/// Returns the recovery that redeems a leg with the secret. Whoever sees it can redeem the other leg too, so broadcasting it
/// makes the secret public: do it at once, or check the chain again before.
///
/// # Errors
///
/// [`Code::SecretWrong`] if the secret is not that of the hash, and as [`refund`].
pub fn redeem(record: &OrderRecord, leg: Leg, secret: &[u8; 32], registry: &Registry) -> Result<Recovery, Refusal> {
    for_each! { of_family! [leg record registry redeem(record, leg, secret, registry)] }
}

/// Returns the recovery that refunds a leg after its timelock. Whether that has passed is for the caller to see on chain.
///
/// # Errors
///
/// [`Code::UnsupportedFamily`] if this build has no code for the family, [`Code::UnknownAsset`], [`Code::RecordSwapId`],
/// [`Code::RecordMismatch`] or [`Code::RecordVersion`] where the record contradicts itself or the registry.
pub fn refund(record: &OrderRecord, leg: Leg, registry: &Registry) -> Result<Recovery, Refusal> {
    for_each! { of_family! [leg record registry refund(record, leg, registry)] }
}

impl Recovery {
    /// Returns the family of the leg's chain.
    #[must_use]
    pub fn family(&self) -> Family {
        each_family!(self, Self => |_recovery, family: Family| family)
    }

    /// Returns the terms of the recovery: order, chain, role, recipient and amount.
    #[must_use]
    pub fn terms(&self) -> RecoveryTerms {
        each_family!(self, Self => |recovery| recovery.terms().to_owned())
    }
}
