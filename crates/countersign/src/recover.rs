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
//! fn refund(record: &OrderRecord, registry: &Registry) -> Result<Option<Vec<u8>>, Refusal> {
//!     match recover::refund(record, Leg::Source, registry)? {
//!         # #[cfg(feature = "evm")]
//!         Recovery::Evm(recovery) => Ok(Some(recovery.call().data.to_vec())),
//!         _ => Ok(None),
//!     }
//! }
//! # let _ = refund;
//! ```

use countersign_core::{Account, Code, Family, Refusal, Registry, Role, U256};
pub use countersign_core::{Leg, OrderRecord};

any_family! {
    /// A recovery, ready to be given what only the wallet knows. Match on it to prepare it with the wallet context of its family;
    /// the result converts into [`Unsigned`](crate::Unsigned).
    #[derive(Clone)]
    #[must_use = "nothing is signed until a recovery is prepared"]
    #[allow(clippy::large_enum_variant, reason = "a recovery is prepared and dropped, and never stored by the thousand")]
    Recovery: recover::Recovery
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
/// makes the secret public.
///
/// # Errors
///
/// [`Code::SecretWrong`] if the secret is not that of the hash, and as [`refund`].
pub fn redeem(record: &OrderRecord, leg: Leg, secret: &[u8; 32], registry: &Registry) -> Result<Recovery, Refusal> {
    for_each_family! { of_family! [leg record registry redeem(record, leg, secret, registry)] }
}

/// Returns the recovery that refunds a leg after its timelock. Whether that has passed is for the caller to see on chain.
///
/// # Errors
///
/// [`Code::UnsupportedFamily`] if this build has no code for the family, [`Code::UnknownAsset`], [`Code::RecordSwapId`],
/// [`Code::RecordMismatch`] or [`Code::RecordVersion`] where the record contradicts itself or the registry.
pub fn refund(record: &OrderRecord, leg: Leg, registry: &Registry) -> Result<Recovery, Refusal> {
    for_each_family! { of_family! [leg record registry refund(record, leg, registry)] }
}

/// What every family's recovery can say.
trait Describe {
    fn family(&self) -> Family;
    fn order_id(&self) -> &str;
    fn role(&self) -> Role;
    fn payee(&self) -> Account;
    fn amount(&self) -> U256;
}

/// Describes the recovery of an account chain; the expression converts the address of who is paid.
macro_rules! describe {
    ($($feature:literal $family:ident $recovery:ty, |$to:ident| $account:expr;)*) => {
        $(
            #[cfg(feature = $feature)]
            impl Describe for $recovery {
                fn family(&self) -> Family {
                    Family::$family
                }

                fn order_id(&self) -> &str {
                    &self.order_id()
                }

                fn role(&self) -> Role {
                    self.role()
                }

                fn payee(&self) -> Account {
                    let $to = self.to();
                    $account
                }

                fn amount(&self) -> U256 {
                    self.amount()
                }
            }
        )*
    };
}

describe! {
    "evm" Evm countersign_evm::recover::Recovery, |to| countersign_evm::address::to_account(to);
    "tron" Tron countersign_tron::recover::Recovery, |to| to.to_account();
    "starknet" Starknet countersign_starknet::recover::Recovery, |to| countersign_starknet::address::to_account(to);
    "solana" Solana countersign_solana::recover::Recovery, |to| countersign_solana::address::to_account(to);
    "sui" Sui countersign_sui::recover::Recovery, |to| countersign_sui::address::to_account(to);
}

#[cfg(feature = "bitcoin")]
impl Describe for countersign_bitcoin::recover::Recovery {
    fn family(&self) -> Family {
        Family::Bitcoin
    }

    fn order_id(&self) -> &str {
        &self.htlc.order_id
    }

    fn role(&self) -> Role {
        self.role()
    }

    fn payee(&self) -> Account {
        self.signer()
    }

    fn amount(&self) -> U256 {
        U256::from(self.htlc.amount.to_sat())
    }
}

impl Recovery {
    /// Returns the family of the leg's chain.
    #[must_use]
    pub fn family(&self) -> Family {
        each_family!(self, Self => |recovery| recovery.family())
    }

    /// Returns the order's id, as the record has it.
    #[must_use]
    pub fn order_id(&self) -> &str {
        each_family!(self, Self => |recovery| Describe::order_id(recovery))
    }

    /// Returns whether it redeems or refunds.
    #[must_use]
    pub fn role(&self) -> Role {
        each_family!(self, Self => |recovery| Describe::role(recovery))
    }

    /// Returns who is paid. On Bitcoin-like chains this is the x-only key that takes the coins; the payout says where they go.
    #[must_use]
    pub fn payee(&self) -> Account {
        each_family!(self, Self => |recovery| recovery.payee())
    }

    /// Returns the amount of the leg in base units, before any fee.
    #[must_use]
    pub fn amount(&self) -> U256 {
        each_family!(self, Self => |recovery| Describe::amount(recovery))
    }
}
