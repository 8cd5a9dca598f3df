//! The wallet's part of a transaction: gas, and the selection of the coins that pay for it.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use countersign_core::{Code, ContextVersion, Refusal, SentBy, sort};
use serde::{Deserialize, Serialize};
use sui_sdk_types::{Address, Argument, Command, Input, ObjectReference, TransactionExpiration, TransactionKind};

use crate::balance::{self, ValidDuring};

/// The most coins that may pay for one transaction (Sui's `max_gas_payment_objects`).
pub const MAX_GAS_COINS: usize = 256;

/// The wallet's part of a transaction: gas price, budget and coins, the sponsor and the expiration.
///
/// ```
/// use countersign::sui::TxContext;
/// use countersign::sui::sui_sdk_types::{Address, Digest, ObjectReference};
///
/// let coin = ObjectReference::new(Address::new([1; 32]), 7, Digest::new([2; 32]));
/// let gas = TxContext::new(1_000, 5_000_000, vec![coin]).with_expiration_epoch(812);
/// assert_eq!(gas.sponsor, None, "the sender pays");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct TxContext {
    /// The version of the stored form.
    #[serde(default)]
    version: ContextVersion,
    /// Price in MIST per unit of gas, at least the network's reference price.
    pub price: u64,
    /// The most MIST that the transaction may cost.
    pub budget: u64,
    /// The coins that pay: at most [`MAX_GAS_COINS`], each once. The network merges the others into the first one.
    ///
    /// Without coins the payer's address balance pays, and `valid_during` is required. One of the references may be a
    /// [`reservation`](crate::balance::reservation), which takes a part from the address balance.
    #[serde(default)]
    pub payment: Vec<ObjectReference>,
    /// The account that owns these coins, if it is not the sender. The transaction then needs its signature too. `None` if the sender
    /// pays.
    pub sponsor: Option<Address>,
    /// The last epoch in which the transaction may be executed; `None` if it does not expire, or has `valid_during`.
    pub expiration_epoch: Option<u64>,
    /// The epochs and the network in which the transaction is valid, for a payment from the address balance; `None` otherwise.
    #[serde(default)]
    pub valid_during: Option<ValidDuring>,
}

impl TxContext {
    /// Creates a context in which the sender pays and the transaction does not expire. Price and budget are in MIST.
    #[must_use]
    pub const fn new(price: u64, budget: u64, payment: Vec<ObjectReference>) -> Self {
        Self { version: ContextVersion, price, budget, payment, sponsor: None, expiration_epoch: None, valid_during: None }
    }

    /// Creates a context in which the sender's address balance pays. Price and budget are in MIST.
    ///
    /// If the transaction splits an amount from the coins that pay, there have to be such coins. Then a [`reservation`] of the amount and
    /// the budget takes the place of them, which [`UnsignedOrder`](crate::UnsignedOrder) shows.
    ///
    /// [`reservation`]: crate::balance::reservation
    #[must_use]
    pub const fn from_balance(price: u64, budget: u64, valid_during: ValidDuring) -> Self {
        Self::new(price, budget, Vec::new()).with_valid_during(valid_during)
    }

    /// Creates a context in which the sponsor pays with its own coins. Price and budget are in MIST.
    ///
    /// A deposit in SUI whose amount is split from these coins is then the sponsor's own money, and its refund goes to the owner:
    /// [`Code::SponsorPaysDeposit`](countersign_core::Code::SponsorPaysDeposit) warns of it.
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

    /// Sets the epochs and the network in which the transaction is valid, for a payment from the address balance.
    #[must_use]
    pub const fn with_valid_during(mut self, valid_during: ValidDuring) -> Self {
        self.valid_during = Some(valid_during);
        self
    }

    /// Adds the account that sends a recovery. It also pays, unless there is a sponsor.
    #[must_use]
    pub const fn sent_by(self, sender: Address) -> SentBy<Address, Self> {
        SentBy::new(sender, self)
    }

    /// Returns when the transaction expires.
    pub(crate) fn expiration(&self) -> TransactionExpiration {
        match (&self.valid_during, self.expiration_epoch) {
            (Some(valid), _) => valid.expiration(),
            (None, Some(epoch)) => TransactionExpiration::Epoch(epoch),
            (None, None) => TransactionExpiration::None,
        }
    }

    /// Returns the payment of a transaction: an allowed number of coins, each listed once, and none that is also an input; or what the
    /// sender's address balance pays. `genesis` is the digest that identifies the network, if it is known.
    pub(crate) fn pay(&self, kind: &TransactionKind, sender: Address, genesis: Option<&str>) -> Result<Vec<ObjectReference>, Refusal> {
        let empty = (&[][..], &[][..]);
        let (inputs, commands) = match kind {
            TransactionKind::ProgrammableTransaction(transaction) => (&transaction.inputs[..], &transaction.commands[..]),
            _ => empty,
        };
        if let Some(valid) = &self.valid_during {
            valid.check(self.expiration_epoch, genesis)?;
        }
        if self.payment.is_empty() {
            let Some(valid) = &self.valid_during else { return Err(count(0)) };
            return match split_from_gas(inputs, commands) {
                None => Ok(Vec::new()),
                Some(_) if self.sponsor.is_some() => {
                    Err(balance::refuse("/gas_payment", "the amount is split from coins, which a sponsor's address balance does not have"))
                }
                Some(amount) => {
                    let amount = amount.checked_add(self.budget).ok_or_else(|| Refusal::new(Code::NumberTooLarge, "/gas_budget"))?;
                    Ok(vec![balance::reservation(sender, amount, valid.min_epoch, valid.chain)?])
                }
            };
        }
        if self.payment.len() > MAX_GAS_COINS {
            return Err(count(self.payment.len()));
        }
        let mut seen = BTreeSet::new();
        for (index, coin) in self.payment.iter().enumerate() {
            let refuse = |code| Refusal::new(code, format!("/gas_payment/{index}/object_id")).with_actual(coin.object_id().to_string());
            if !seen.insert(coin.object_id()) {
                return Err(refuse(Code::GasCoinTwice));
            }
            if inputs.iter().any(|input| object_of(input) == Some(*coin.object_id())) {
                return Err(refuse(Code::GasCoinIsInput));
            }
            if balance::reserved(coin).is_some() {
                balance::check_reservation(coin, sender, self, &format!("/gas_payment/{index}"))?;
            }
        }
        Ok(self.payment.clone())
    }
}

/// Returns the refusal of a number of coins.
fn count(actual: usize) -> Refusal {
    let expected = format!("1 to {MAX_GAS_COINS} coins, or none and valid_during");
    Refusal::new(Code::GasCoinCount, "/gas_payment").with_expected(expected).with_actual(actual)
}

/// Returns the MIST that commands split from the coin that pays for gas; `None` if none uses it.
pub(crate) fn split_from_gas(inputs: &[Input], commands: &[Command]) -> Option<u64> {
    let amount = |argument: &Argument| match argument {
        Argument::Input(index) => match inputs.get(usize::from(*index)) {
            Some(Input::Pure(bytes)) => bytes.as_slice().try_into().ok().map(u64::from_le_bytes),
            _ => None,
        },
        _ => None,
    };
    let splits = commands.iter().filter_map(|command| match command {
        Command::SplitCoins(split) if split.coin == Argument::Gas => Some(&split.amounts),
        _ => None,
    });
    splits.map(|amounts| amounts.iter().filter_map(amount).fold(0, u64::saturating_add)).reduce(u64::saturating_add)
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
    let (mut chosen, rest) = fewest(coins, need, MAX_GAS_COINS)?;
    let room = MAX_GAS_COINS.saturating_sub(chosen.len());
    chosen.extend(rest.into_iter().rev().take_while(|coin| coin.balance < budget).take(room));
    Ok(chosen.into_iter().map(|coin| coin.reference.clone()).collect())
}

/// Selects the fewest coins that hold `need` MIST, and at least one. Returns them, and the others, the largest first. A coin that is listed
/// twice is one.
pub(crate) fn fewest(coins: &[Coin], need: u128, max: usize) -> Result<(Vec<&Coin>, Vec<&Coin>), Refusal> {
    let mut sorted: Vec<&Coin> = coins.iter().collect();
    let key = |coin: &Coin| (std::cmp::Reverse(coin.balance), *coin.reference.object_id(), coin.reference.version());
    sort::by(&mut sorted, |one, other| key(one).cmp(&key(other)));
    let mut seen = BTreeSet::new();
    sorted.retain(|coin| seen.insert(coin.reference.object_id()));

    let mut held = 0_u128;
    let mut chosen = Vec::new();
    let mut rest = sorted.into_iter();
    while held < need || chosen.is_empty() {
        match rest.next() {
            Some(coin) if chosen.len() < max => {
                held = held.saturating_add(u128::from(coin.balance));
                chosen.push(coin);
            }
            _ => {
                return Err(Refusal::new(Code::InsufficientFunds, "/gas_payment")
                    .with_expected(format!("at least {need} MIST in at most {max} coins"))
                    .with_actual(held));
            }
        }
    }
    Ok((chosen, rest.collect()))
}
