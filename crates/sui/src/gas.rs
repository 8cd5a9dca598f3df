//! The wallet's part of a transaction: gas, and the selection of the coins that pay for it.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use countersign_core::{Code, Refusal, SentBy};
use serde::{Deserialize, Serialize};
use sui_sdk_types::{Address, Input, ObjectReference, TransactionKind};

/// The most coins that may pay for one transaction (Sui's `max_gas_payment_objects`).
pub const MAX_GAS_COINS: usize = 256;

/// The wallet's part of a transaction: gas price, budget and coins, the sponsor and the expiration.
///
/// ```
/// use countersign_sui::TxContext;
/// use countersign_sui::sui_sdk_types::{Address, Digest, ObjectReference};
///
/// let coin = ObjectReference::new(Address::new([1; 32]), 7, Digest::new([2; 32]));
/// let gas = TxContext::new(1_000, 5_000_000, vec![coin]).with_expiration_epoch(812);
/// assert_eq!(gas.sponsor, None, "the sender pays");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TxContext {
    /// Price in MIST per unit of gas, at least the network's reference price.
    pub price: u64,
    /// The most MIST that the transaction may cost.
    pub budget: u64,
    /// The coins that pay: 1 to [`MAX_GAS_COINS`], each once. The network merges the others into the first one.
    pub payment: Vec<ObjectReference>,
    /// The account that owns these coins, if it is not the sender. The transaction then needs its signature too. `None` if the sender
    /// pays.
    pub sponsor: Option<Address>,
    /// The last epoch in which the transaction may be executed; `None` if it does not expire.
    pub expiration_epoch: Option<u64>,
}

impl TxContext {
    /// Creates a context in which the sender pays and the transaction does not expire. Price and budget are in MIST.
    #[must_use]
    pub const fn new(price: u64, budget: u64, payment: Vec<ObjectReference>) -> Self {
        Self { price, budget, payment, sponsor: None, expiration_epoch: None }
    }

    /// Creates a context in which the sponsor pays with its own coins. Price and budget are in MIST.
    #[must_use]
    pub const fn sponsored(sponsor: Address, price: u64, budget: u64, payment: Vec<ObjectReference>) -> Self {
        Self::new(price, budget, payment).with_sponsor(sponsor)
    }

    /// Sets the account that owns the coins.
    #[must_use]
    pub const fn with_sponsor(mut self, sponsor: Address) -> Self {
        self.sponsor = Some(sponsor);
        self
    }

    /// Sets the last epoch in which the transaction may be executed.
    #[must_use]
    pub const fn with_expiration_epoch(mut self, epoch: u64) -> Self {
        self.expiration_epoch = Some(epoch);
        self
    }

    /// Adds the account that sends a recovery. It also pays, unless there is a sponsor.
    #[must_use]
    pub const fn sent_by(self, sender: Address) -> SentBy<Address, Self> {
        SentBy::new(sender, self)
    }

    /// Requires an allowed number of coins, each listed once, and none that is also an input of the transaction.
    pub(crate) fn check(&self, kind: &TransactionKind) -> Result<(), Refusal> {
        if !(1..=MAX_GAS_COINS).contains(&self.payment.len()) {
            let refusal = Refusal::new(Code::GasCoinCount, "/gas_payment").with_expected(format!("1 to {MAX_GAS_COINS} coins"));
            return Err(refusal.with_actual(self.payment.len()));
        }
        let inputs: &[Input] = match kind {
            TransactionKind::ProgrammableTransaction(transaction) => &transaction.inputs,
            _ => &[],
        };
        let mut seen = BTreeSet::new();
        for (index, coin) in self.payment.iter().enumerate() {
            let refuse = |code| Refusal::new(code, format!("/gas_payment/{index}/object_id")).with_actual(coin.object_id().to_string());
            if !seen.insert(coin.object_id()) {
                return Err(refuse(Code::GasCoinTwice));
            }
            if inputs.iter().any(|input| object_of(input) == Some(*coin.object_id())) {
                return Err(refuse(Code::GasCoinIsInput));
            }
        }
        Ok(())
    }
}

fn object_of(input: &Input) -> Option<Address> {
    match input {
        Input::ImmutableOrOwned(object) | Input::Receiving(object) => Some(*object.object_id()),
        Input::Shared(object) => Some(object.object_id()),
        _ => None,
    }
}

/// A SUI coin of the wallet with its balance.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Coin {
    /// Id, version and digest of the coin object.
    pub reference: ObjectReference,
    /// Balance in MIST.
    pub balance: u64,
}

impl Coin {
    /// Creates a coin with a balance in MIST.
    #[must_use]
    pub const fn new(reference: ObjectReference, balance: u64) -> Self {
        Self { reference, balance }
    }
}

/// Selects the coins that pay: see [`Deposit::choose_gas`](crate::Deposit::choose_gas). `split` is the number of MIST that the transaction
/// splits from the gas coin.
pub(crate) fn choose_gas(coins: &[Coin], split: u64, budget: u64) -> Result<Vec<ObjectReference>, Refusal> {
    let need = u128::from(split).saturating_add(u128::from(budget));
    let mut sorted: Vec<&Coin> = coins.iter().collect();
    sorted.sort_unstable_by_key(|coin| (std::cmp::Reverse(coin.balance), coin.reference.object_id(), coin.reference.version()));
    let mut seen = BTreeSet::new();
    sorted.retain(|coin| seen.insert(coin.reference.object_id()));

    let mut held = 0_u128;
    let mut chosen = Vec::new();
    let mut rest = sorted.into_iter();
    while held < need || chosen.is_empty() {
        match rest.next() {
            Some(coin) if chosen.len() < MAX_GAS_COINS => {
                held = held.saturating_add(u128::from(coin.balance));
                chosen.push(coin.reference.clone());
            }
            _ => {
                return Err(Refusal::new(Code::InsufficientFunds, "/gas_payment")
                    .with_expected(format!("at least {need} MIST in at most {MAX_GAS_COINS} coins"))
                    .with_actual(held));
            }
        }
    }
    let room = MAX_GAS_COINS.saturating_sub(chosen.len());
    chosen.extend(rest.rev().take_while(|coin| coin.balance < budget).take(room).map(|coin| coin.reference.clone()));
    Ok(chosen)
}
