//! What a Sui order locks: its transaction kind.

use std::sync::Arc;

use countersign_core::Refusal;
use sui_sdk_types::{Address, ObjectReference, ProgrammableTransaction, TransactionKind};

use crate::gas::{self, Coin};
use crate::htlc::{Initiate, PtbLayout};

/// The field of a result that contains this family's payload.
pub(crate) const PAYLOAD_KEY: &str = "ptb_bytes";

/// The deposit of an order: its transaction kind, rebuilt from the order's own terms.
#[derive(Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Deposit {
    /// The account that sends: the owner.
    pub sender: Address,
    /// The rebuilt transaction kind. Its bytes are equal to those of the response.
    pub kind: Arc<TransactionKind>,
    /// The decoded content of the call that locks the funds.
    pub terms: Initiate,
    /// The form of the transaction, which the service chose.
    pub layout: PtbLayout,
    pub(crate) kind_bytes: Vec<u8>,
    /// The digest that identifies the network, if it is known.
    pub(crate) genesis: Option<&'static str>,
}

impl Deposit {
    /// Returns the BCS bytes of the transaction kind, for `Transaction.fromKind` in external wallets, which choose gas themselves.
    ///
    /// [`VerifiedOrder::matches`](crate::VerifiedOrder) compares the transaction that such a wallet signs or broadcasts with the order.
    #[must_use]
    pub fn kind_bytes(&self) -> &[u8] {
        &self.kind_bytes
    }

    /// Returns the MIST that the transaction splits from the coins that pay for gas: the amount of a SUI deposit, 0 for any other coin, and
    /// 0 if the amount is withdrawn from the address balance.
    #[must_use]
    pub const fn split_from_gas(&self) -> u64 {
        if self.layout.splits_gas() { self.terms.amount } else { 0 }
    }

    /// Returns the base units of the coin that the transaction withdraws from the sender's address balance.
    #[must_use]
    pub fn withdrawn(&self) -> u64 {
        self.layout.withdrawn()
    }

    /// Selects the coins that pay for gas, and for the deposit if that is in SUI: the fewest that cover both, largest first. Then adds dust
    /// while there is room, smallest first, because the transaction merges it into the first coin. The budget is in MIST.
    ///
    /// Dust is a coin that could not pay the budget alone. The result does not depend on the order of the coins. A coin that is listed
    /// twice counts once. For a sponsored transaction, list the sponsor's coins. A deposit in SUI would be split from them too, which is the
    /// warning [`Code::SponsorPaysDeposit`](countersign_core::Code::SponsorPaysDeposit).
    ///
    /// # Errors
    ///
    /// [`Code::InsufficientFunds`](countersign_core::Code::InsufficientFunds) at `/gas_payment` if the
    /// [`MAX_GAS_COINS`](crate::MAX_GAS_COINS) largest coins do not cover it.
    pub fn choose_gas(&self, coins: &[Coin], budget: u64) -> Result<Vec<ObjectReference>, Refusal> {
        gas::choose_gas(coins, self.split_from_gas(), budget)
    }

    /// Returns the inputs and commands of the rebuilt kind.
    pub(crate) fn programmable(&self) -> Option<&ProgrammableTransaction> {
        match self.kind.as_ref() {
            TransactionKind::ProgrammableTransaction(transaction) => Some(transaction),
            _ => None,
        }
    }
}
