//! The wallet context for signing: the gas price, coins that pay for gas, balances, and the initial shared version of an object.

use std::iter;

use countersign::sui::balance::{self, ValidDuring};
use countersign::sui::reader::{
    Balance, Check, CurrentEpoch, HeldCoins, Holdings, InitialSharedVersion, OwnedCoins, Preflight, ReferenceGasPrice, WhereHeld,
};
use countersign::sui::recover::Recovery;
use countersign::sui::sui_sdk_types::{Address, Digest, ObjectReference, TypeTag};
use countersign::sui::{Coin, Deposit, MAX_GAS_COINS, TxContext, UnsignedOrder, htlc};
use countersign::{Code, Refusal, U256, chains::UnixTime, trust::Contract};
use countersign_core::reader::{Ask, outbid, overdue_limit};
use countersign_core::sort;
use countersign_transport::Transport;

use super::{SuiChain, own_address, reader};
use crate::error::NodeError;
use crate::nodes::Speed;

/// The gas price, and coins that can pay for gas, by the list of one endpoint.
#[derive(Clone)]
pub(super) struct GasCoins {
    /// The price of one unit of gas, in MIST.
    pub(super) price: u64,
    /// The lowest price with which a transaction can be executed.
    pub(super) min_price: u64,
    owner: Address,
    coins: Vec<Coin>,
}

/// What pays for a transaction.
#[derive(Clone, Copy)]
pub(super) enum Purse {
    /// Coin objects alone.
    Coins,
    /// The address balance, which has this many MIST to spend, and coin objects for what it lacks.
    Balance { available: u64, valid_during: ValidDuring },
}

impl GasCoins {
    /// Raises the price above that of a transaction that is overdue, to at most four times the reference price.
    pub(super) fn outbidding(&self, before: u64) -> Self {
        let price = outbid(before.into()).min(overdue_limit(self.min_price.into()));
        self.at_price(u64::try_from(price).unwrap_or(u64::MAX).max(self.price))
    }

    /// Returns the same coins at another price.
    pub(super) fn at_price(&self, price: u64) -> Self {
        Self { price, ..self.clone() }
    }

    /// Returns the same coins without these objects, at whatever version.
    pub(super) fn without(&self, used: &[ObjectReference]) -> Self {
        let is_used = |coin: &Coin| used.iter().any(|object| object.object_id() == coin.reference.object_id());
        Self { coins: self.coins.iter().filter(|coin| !is_used(coin)).cloned().collect(), ..*self }
    }

    /// Returns the maximum that a purse can pay in one transaction, in MIST.
    pub(super) fn total(&self, purse: &Purse) -> u64 {
        match purse {
            Purse::Coins => self.in_coins(MAX_GAS_COINS),
            Purse::Balance { available, .. } => self.beside_reservation().saturating_add(*available),
        }
    }

    /// Returns what coins can pay in a transaction with a reservation, which takes the place of one.
    fn beside_reservation(&self) -> u64 {
        self.in_coins(MAX_GAS_COINS.saturating_sub(1))
    }

    fn in_coins(&self, places: usize) -> u64 {
        let mut balances: Vec<_> = self.coins.iter().map(|coin| coin.balance).collect();
        sort::by(&mut balances, sort::descending);
        balances.into_iter().take(places).fold(0, u64::saturating_add)
    }
}

/// Returns the price of one unit of gas for a speed.
const fn at_speed(reference: u64, speed: Speed) -> u64 {
    let tenths: u64 = match speed {
        Speed::Slow => 10,
        Speed::Normal => 11,
        Speed::Fast => 20,
    };
    reference.saturating_mul(tenths).div_ceil(10)
}

/// Returns the type of a pinned coin.
pub(super) fn type_of(token: &Contract) -> Result<TypeTag, Refusal> {
    token.text.parse().map_err(|_| Refusal::new(Code::AddressMalformed, "/token").with_actual(token.text.as_str()))
}

/// What the gas coins pay for.
#[derive(Clone, Copy)]
pub(super) enum Payer<'p> {
    Deposit(&'p Deposit),
    Recovery(&'p Recovery),
}

impl Payer<'_> {
    /// Returns the MIST that the transaction splits from the coins, beside their use for gas.
    pub(super) const fn split(self) -> u64 {
        match self {
            Self::Deposit(deposit) => deposit.split_from_gas(),
            Self::Recovery(_) => 0,
        }
    }

    /// Returns the MIST that the transaction takes from the sender's address balance, beside its use for gas.
    fn withdrawn(self) -> u64 {
        match self {
            Self::Deposit(deposit) if deposit.terms.coin_type == htlc::sui() => deposit.withdrawn(),
            _ => 0,
        }
    }

    fn choose_gas(self, coins: &[Coin], budget: u64) -> Result<Vec<ObjectReference>, Refusal> {
        match self {
            Self::Deposit(deposit) => deposit.choose_gas(coins, budget),
            Self::Recovery(recovery) => recovery.choose_gas(coins, budget),
        }
    }
}

impl<T: Transport> SuiChain<'_, T> {
    /// Reads the price of one unit of gas, in MIST: the reference price of the current epoch, times 1 (slow), 1.1 (normal) or 2 (fast).
    ///
    /// A price above the reference price helps if many transactions change the same object, and at the change of an epoch. The endpoints
    /// must agree, because a transaction with a price below the reference price is never executed.
    ///
    /// # Errors
    ///
    /// Returns [`NodeError`] if no endpoint answers, or if too few of them agree.
    pub async fn gas_price(&self, speed: Speed) -> Result<u64, NodeError> {
        Ok(at_speed(self.connection.agreed::<Ask<_>>(&self.on(ReferenceGasPrice)).await?.0, speed))
    }

    /// Reads the SUI coins of an account at their newest versions: at most 2,000 of them.
    ///
    /// The list is that of one endpoint. A transaction must use only coins that enough endpoints show at their versions.
    ///
    /// # Errors
    ///
    /// Returns [`NodeError`] if too few endpoints answer.
    pub async fn coins(&self, owner: Address) -> Result<Vec<Coin>, NodeError> {
        Ok(self.coin_lists(owner).await?.into_iter().next().unwrap_or_default())
    }

    /// Reads different lists of an account's SUI coins. At least one is of an honest endpoint.
    async fn coin_lists(&self, owner: Address) -> Result<Vec<Vec<Coin>>, NodeError> {
        let quorum = self.connection.gather::<OwnedCoins, _, _>(&self.on(owner), |_| Ok::<_, NodeError>(())).await?;
        let mut lists: Vec<Vec<Coin>> = Vec::new();
        for observation in quorum.agreed().map_err(|doubt| self.connection.doubt::<NodeError>(doubt))? {
            let list = &observation.output().0;
            if !lists.contains(list) {
                lists.push(list.clone());
            }
        }
        Ok(lists)
    }

    /// Reads the gas price and the coins that can pay for gas. An attempt to use them begins with one list, and takes the next one if that
    /// fails: a dishonest endpoint may list coins that do not exist, and hide others. `first` chooses the list, counted on from the end
    /// again, so that attempts need not begin with the same endpoint.
    pub(super) async fn with_gas_coins<R, F: Future<Output = Result<R, NodeError>>>(
        &self,
        owner: Address,
        speed: Speed,
        first: usize,
        attempt: impl Fn(GasCoins) -> F,
    ) -> Result<R, NodeError> {
        let min_price = self.gas_price(Speed::Slow).await?;
        let price = at_speed(min_price, speed);
        let mut failed = None;
        let mut lists = self.coin_lists(owner).await?;
        let first = first.checked_rem(lists.len()).unwrap_or_default();
        lists.rotate_left(first);
        for coins in lists {
            match attempt(GasCoins { price, min_price, owner, coins }).await {
                Err(error) => failed = failed.or(Some(error)),
                found => return found,
            }
        }
        Err(failed.unwrap_or_else(|| NodeError::NotConnected(self.connection.name.to_owned())))
    }

    /// Chooses what pays for a transaction with a budget in MIST: coin objects if they are enough, otherwise the address balance too. If both
    /// together do not cover the budget, they pay what they have, but at least `min`. What the balance is, and which epoch it is, enough
    /// endpoints must show.
    ///
    /// # Errors
    ///
    /// [`Code::InsufficientFunds`] if coins and balance together are not enough.
    pub(super) async fn purse(&self, from: &GasCoins, payer: Payer<'_>, budget: u64, min: u64) -> Result<Purse, NodeError> {
        if payer.choose_gas(&from.coins, budget).is_ok() {
            return Ok(Purse::Coins);
        }
        let in_coins = payer.choose_gas(&from.coins, min).map(|_| Purse::Coins);
        let held = match self.holdings(from.owner, &htlc::sui()).await {
            // Coins that may be enough do not wait for endpoints that do not tell the balance.
            Err(_) if in_coins.is_ok() => return Ok(Purse::Coins),
            held => held?,
        };
        let available = held.address_balance.saturating_sub(payer.withdrawn());
        let needed = payer.split().saturating_add(min);
        if available == 0 || from.beside_reservation().saturating_add(available) < needed {
            return in_coins
                .map_err(|refusal| if held.address_balance > 0 { refusal.with_actual(held.to_string()) } else { refusal }.into());
        }
        let genesis = reader::genesis(self.connection.network).and_then(|text| Digest::from_base58(text).ok());
        let genesis = genesis.ok_or_else(|| NodeError::NotConnected(self.connection.name.to_owned()))?;
        let epoch = self.connection.agreed::<Ask<_>>(&self.on(CurrentEpoch)).await?.0;
        // The lowest bits of the clock: no two transactions that are equal otherwise are prepared in one millisecond.
        let now = self.connection.transport.now().saturating_duration_since(UnixTime::from_secs(0));
        let [a, b, c, d, ..] = now.as_millis().to_le_bytes();
        let valid_during = ValidDuring::from_epoch(epoch, genesis, u32::from_le_bytes([a, b, c, d]));
        Ok(Purse::Balance { available, valid_during })
    }

    /// Prepares a payment from a purse that covers the budget in MIST, and the amount of a deposit in SUI.
    ///
    /// Enough endpoints must show the coins at these versions. One of them alone could list coins that do not exist, and the transaction
    /// that carries the secret would never be executed. Where one endpoint is enough, it has just listed them.
    pub(super) async fn gas(&self, from: &GasCoins, payer: Payer<'_>, budget: u64, purse: &Purse) -> Result<TxContext, NodeError> {
        let (price, owner) = (from.price, from.owner);
        let context = match (payer.choose_gas(&from.coins, budget), purse) {
            (Ok(coins), _) => TxContext::new(price, budget, coins),
            (Err(refusal), Purse::Coins) => return Err(refusal.into()),
            (Err(_), Purse::Balance { available, valid_during }) => {
                let needed = payer.split().saturating_add(budget);
                match needed.checked_sub(*available).filter(|missing| *missing > 0) {
                    None => TxContext::from_balance(price, budget, *valid_during),
                    // Coins pay what they have, and a reservation the rest.
                    Some(missing) => {
                        let chosen = balance::choose_coins(&from.coins, missing)?;
                        let in_coins = chosen.iter().map(|coin| coin.balance).fold(0, u64::saturating_add);
                        let rest = needed.saturating_sub(in_coins).max(1);
                        let reservation = balance::reservation(owner, rest, valid_during.min_epoch, valid_during.chain)?;
                        let coins = chosen.into_iter().map(|coin| coin.reference.clone());
                        TxContext::new(price, budget, iter::once(reservation).chain(coins).collect()).with_valid_during(*valid_during)
                    }
                }
            }
        };
        let chosen: Vec<_> = from.coins.iter().filter(|coin| context.payment.contains(&coin.reference)).cloned().collect();
        if self.connection.needed() > 1 && !chosen.is_empty() && !self.connection.agreed::<Ask<_>>(&self.on(HeldCoins(chosen))).await?.0 {
            let refusal = Refusal::new(Code::InsufficientFunds, "/gas_payment");
            return Err(refusal.with_reason("the coins that an endpoint lists have been spent or do not exist").into());
        }
        Ok(context)
    }

    /// Reads where the balance of an account in a coin is, in base units: in coin objects, or in its address balance. The endpoints must
    /// agree.
    ///
    /// # Errors
    ///
    /// Returns [`NodeError`] if no endpoint answers, or if too few of them agree.
    pub async fn holdings(&self, owner: Address, coin_type: &TypeTag) -> Result<Holdings, NodeError> {
        let subject = self.on(WhereHeld { owner, coin_type: coin_type.clone() });
        Ok(self.connection.agreed::<Ask<_>>(&subject).await?.0)
    }

    /// Reads the balance of an account in base units of a coin: of coin objects and the address balance together. The endpoints must agree.
    ///
    /// # Errors
    ///
    /// Returns [`NodeError`] if no endpoint answers, or if too few of them agree.
    pub async fn balance(&self, owner: Address, coin_type: &TypeTag) -> Result<u64, NodeError> {
        let subject = self.on(Balance { owner, coin_type: coin_type.clone() });
        Ok(self.connection.agreed::<Ask<_>>(&subject).await?.0)
    }

    pub(crate) async fn balance_of(&self, owner: &str, token: Option<&Contract>) -> Result<U256, NodeError> {
        let coin_type = token.map_or_else(|| Ok(htlc::sui()), type_of)?;
        self.balance(own_address(owner, "/owner")?, &coin_type).await.map(U256::from)
    }

    /// Reads the version at which an object was shared. A call that uses the object must contain this version. The endpoints must agree.
    ///
    /// # Errors
    ///
    /// Returns [`NodeError::Refused`] with [`Code::UnknownRegistry`] if the object does not exist or is not shared, and another
    /// [`NodeError`] if no endpoint answers or too few of them agree.
    pub async fn initial_shared_version(&self, object: Address) -> Result<u64, NodeError> {
        let version = self.connection.agreed::<Ask<_>>(&self.on(InitialSharedVersion(object))).await?.0;
        let refusal = || Refusal::new(Code::UnknownRegistry, "/registry").with_reason("there is no shared object with this id");
        version.ok_or_else(|| refusal().with_actual(object.to_string()).into())
    }

    /// Checks that there is enough SUI and enough of the coin, and simulates the transaction. Call it before signing.
    ///
    /// The simulation must take exactly the verified amount and the gas from the accounts that pay them. No other balance may change,
    /// except that a refund may pay out. A redemption is not simulated, because that would show the secret to the node.
    ///
    /// The endpoints must agree. A preflight protects from mistakes, not from dishonest nodes.
    ///
    /// # Errors
    ///
    /// Returns [`NodeError::Refused`] with
    ///
    /// - [`Code::InsufficientFunds`] if an account has too little,
    /// - [`Code::SimulationReverted`] if the transaction fails,
    /// - [`Code::SimulationDiffers`] if the transaction would do something else than what was verified,
    ///
    /// and another [`NodeError`] if no endpoint answers or too few of them agree.
    pub async fn preflight(&self, order: &UnsignedOrder) -> Result<Preflight, NodeError> {
        Ok(self.connection.agreed::<Ask<_>>(&self.on(Check::new(order))).await?.0?)
    }
}
