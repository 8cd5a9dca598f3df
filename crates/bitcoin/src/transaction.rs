//! The payment of a deposit from the wallet's own coins. Without them there is nothing to sign, and any wallet can pay the address.
//!
//! Specification: `docs/spec/bitcoin.md#signing`.

mod change;
mod coins;
pub(crate) mod fee_rate;
mod funding;
mod gaps;
mod origin;
mod payment;
mod replacement;
mod sighash;
mod utxo;
mod wallet;

use countersign_core::Role;

pub use change::ChangeRule;
pub(crate) use change::{ChangePlan, Draft, sum};
pub use fee_rate::FeeRate;
pub(crate) use funding::{check_coins, prepare};
pub use origin::KeyOrigin;
pub(crate) use origin::Origins;
pub(crate) use payment::{INPUT_WEIGHT, Input, Kind, LeafSpend, PaymentPlan, Secret, new_psbt, new_transaction};
pub use payment::{MAX_WEIGHT, Payment};
pub use replacement::replacement;
pub(crate) use sighash::{ExplicitAll, NO_CODE_SEPARATOR, digests};
pub use utxo::{Spend, Utxo};
pub(crate) use utxo::{check_previous, parse_txid, read_spend};
pub use wallet::{Selection, TxContext, TxOrdering};

use crate::deposit::Deposit;

/// The transaction that the owner has to sign: the payment of a deposit, or a recovery.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Unsigned {
    /// What the transaction does.
    pub role: Role,
    /// The deposit that is paid; `None` for a recovery.
    pub deposit: Option<Deposit>,
    /// The transaction; `None` if another wallet pays the deposit.
    pub payment: Option<Payment>,
}
