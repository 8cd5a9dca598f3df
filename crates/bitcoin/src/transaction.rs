//! The payment of a deposit from the wallet's own coins.
//!
//! Without unspent outputs there is nothing to sign: any wallet can pay the address.

mod change;
mod coins;
mod fee_rate;
mod funding;
mod origin;
mod payment;
mod sighash;
mod utxo;
mod wallet;

use countersign_core::Role;

pub use change::ChangeRule;
pub(crate) use change::{ChangePlan, Draft};
pub use fee_rate::FeeRate;
pub(crate) use funding::{check_coins, prepare};
pub use origin::KeyOrigin;
pub(crate) use origin::Origins;
pub(crate) use payment::{Input, Kind, LeafSpend, PaymentPlan, Secret, new_psbt, new_transaction};
pub use payment::{MAX_WEIGHT, Payment};
pub(crate) use sighash::NO_CODE_SEPARATOR;
pub(crate) use utxo::parse_txid;
pub use utxo::{Spend, Utxo};
pub use wallet::{Selection, TxOrdering, Wallet};

use crate::verify::Deposit;

/// What the owner is asked to sign: the payment of a deposit, or the transaction of a recovery.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Unsigned {
    /// What the transaction does.
    pub role: Role,
    /// What is paid; `None` for a recovery.
    pub deposit: Option<Deposit>,
    /// The transaction; `None` where the deposit is paid by another wallet.
    pub payment: Option<Payment>,
}
