//! Payments from an address balance, which needs no coin objects (SIP-58).
//!
//! An account has a balance of each coin type beside its coin objects. A transaction pays gas from the SUI balance if its gas payment is empty,
//! or if the payment contains a *coin reservation*: an object reference that encodes an amount of the balance. Commands can use `GasCoin`
//! only if the payment is not empty: otherwise the network refuses the transaction.
//!
//! Without an object that changes its version, the same transaction could be executed again. So such a transaction is valid in at most two
//! epochs of one network, for which validators remember what they have executed.
//!
//! Source: `sui-types`, `coin_reservation.rs` and `transaction.rs`; `@mysten/sui`, `coin-reservation` and `core-resolver`.
//!
//! Specification: `docs/spec/sui.md#address-balances`.

use std::ops::RangeInclusive;

use countersign_core::{Code, Refusal};
use serde::{Deserialize, Serialize};
use sui_sdk_types::{Address, Digest, Identifier, ObjectReference, StructTag, TransactionExpiration, TypeTag};

use crate::gas::{self, Coin, MAX_GAS_COINS, TxContext};
use crate::htlc;

/// The object whose dynamic fields are all address balances.
const ACCUMULATOR: Address = Address::from_static("0xacc");
/// The last bytes of the digest of a reservation.
const MARK: [u8; 20] = [0xac; 20];

/// The epochs and the network in which a transaction is valid that pays from an address balance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ValidDuring {
    /// The first epoch: the current one.
    pub min_epoch: u64,
    /// The last epoch: the first one, or the next.
    pub max_epoch: u64,
    /// The digest of the network's genesis checkpoint.
    pub chain: Digest,
    /// Any number. Two transactions that differ only in it are both executed; with the same number, only the first is.
    pub nonce: u32,
}

impl ValidDuring {
    /// Creates the longest validity that begins with an epoch: that one and the next.
    ///
    /// ```
    /// use countersign::sui::TxContext;
    /// use countersign::sui::balance::ValidDuring;
    /// use countersign::sui::sui_sdk_types::Digest;
    ///
    /// let genesis: Digest =
    ///     "4btiuiMPvEENsttpZC7CZ53DruC3MAgfznDbASZ7DR6S".parse().expect("a digest");
    /// let gas = TxContext::from_balance(
    ///     1_000,
    ///     5_000_000,
    ///     ValidDuring::from_epoch(900, genesis, 42),
    /// );
    /// assert!(gas.payment.is_empty(), "no coins are needed");
    /// ```
    #[must_use]
    pub const fn from_epoch(epoch: u64, chain: Digest, nonce: u32) -> Self {
        Self { min_epoch: epoch, max_epoch: epoch.saturating_add(1), chain, nonce }
    }

    /// Sets the last epoch.
    #[must_use]
    pub const fn until(mut self, epoch: u64) -> Self {
        self.max_epoch = epoch;
        self
    }

    pub(crate) const fn expiration(&self) -> TransactionExpiration {
        let Self { min_epoch, max_epoch, chain, nonce } = *self;
        let (min_epoch, max_epoch) = (Some(min_epoch), Some(max_epoch));
        TransactionExpiration::ValidDuring { min_epoch, max_epoch, min_timestamp: None, max_timestamp: None, chain, nonce }
    }

    /// Requires one or two epochs of the right network, and no other expiration.
    pub(crate) fn check(&self, expiration_epoch: Option<u64>, genesis: Option<&str>) -> Result<(), Refusal> {
        let (first, last) = (self.min_epoch, self.max_epoch);
        if last.checked_sub(first).is_none_or(|more| more > 1) {
            let refusal = refuse("/valid_during/max_epoch", "a payment from the address balance is valid in at most two epochs");
            return Err(refusal.with_expected(format!("{first} or {}", first.saturating_add(1))).with_actual(last));
        }
        if let Some(epoch) = expiration_epoch {
            return Err(refuse("/expiration_epoch", "valid_during already says when the transaction expires").with_actual(epoch));
        }
        match genesis {
            Some(genesis) if self.chain.to_base58() != genesis => Err(Refusal::new(Code::WalletChainMismatch, "/valid_during/chain")
                .with_expected(genesis)
                .with_actual(self.chain.to_base58())),
            _ => Ok(()),
        }
    }
}

/// Returns the refusal of a payment from the address balance.
pub(crate) fn refuse(at: &str, reason: &'static str) -> Refusal {
    Refusal::new(Code::AddressBalancePayment, at).with_reason(reason)
}

/// Returns the id of the object that holds an account's address balance of SUI.
fn holder(owner: Address) -> Address {
    let tag = |module: &'static str, name: &'static str, of: TypeTag| {
        StructTag::new(Address::TWO, Identifier::from_static(module), Identifier::from_static(name), vec![of])
    };
    let key = tag("accumulator", "Key", tag("balance", "Balance", htlc::sui()).into());
    ACCUMULATOR.derive_dynamic_child_id(&key.into(), owner.as_bytes())
}

/// Returns the id of the reservations of an account on a network.
fn id(owner: Address, chain: Digest) -> Address {
    let (holder, chain) = (holder(owner).into_inner(), chain.into_inner());
    let mut bytes = [0; 32];
    for (byte, (one, other)) in bytes.iter_mut().zip(holder.into_iter().zip(chain)) {
        *byte = one ^ other;
    }
    Address::new(bytes)
}

/// Returns the coin reservation for an amount of an account's SUI address balance, in MIST, for the gas payment. It is valid in this epoch
/// and the next one, on the network with this genesis checkpoint. It is not an object: nodes do not find it.
///
/// # Errors
///
/// [`Code::NumberTooLarge`] at `/valid_during/min_epoch` if the epoch has more than 32 bits.
pub fn reservation(owner: Address, amount: u64, epoch: u64, chain: Digest) -> Result<ObjectReference, Refusal> {
    let epoch = u32::try_from(epoch).map_err(|_| Refusal::new(Code::NumberTooLarge, "/valid_during/min_epoch").with_actual(epoch))?;
    let mut digest = [0; 32];
    let parts = amount.to_le_bytes().into_iter().chain(epoch.to_le_bytes()).chain(MARK);
    digest.iter_mut().zip(parts).for_each(|(byte, part)| *byte = part);
    Ok(ObjectReference::new(id(owner, chain), 0, Digest::new(digest)))
}

/// Selects the coins that pay the MIST that an address balance lacks: the fewest, with one place left for the reservation.
///
/// # Errors
///
/// [`Code::InsufficientFunds`] if they hold less.
pub fn choose_coins(coins: &[Coin], missing: u64) -> Result<Vec<&Coin>, Refusal> {
    Ok(gas::fewest(coins, missing.into(), MAX_GAS_COINS.saturating_sub(1))?.0)
}

/// Returns the amount in MIST and the epoch of a reservation; `None` for the reference of an object.
#[must_use]
pub fn reserved(reference: &ObjectReference) -> Option<(u64, u64)> {
    let bytes = reference.digest().as_bytes();
    let (amount, rest) = bytes.split_first_chunk()?;
    let (epoch, mark) = rest.split_first_chunk()?;
    (mark == MARK).then(|| (u64::from_le_bytes(*amount), u32::from_le_bytes(*epoch).into()))
}

/// Returns the epochs in which a reservation for an epoch is valid: that one and the next.
pub(crate) const fn valid_in(epoch: u64) -> RangeInclusive<u64> {
    epoch..=epoch.saturating_add(1)
}

/// Requires that a reservation is of the sender's own SUI, and valid whenever the transaction is.
pub(crate) fn check_reservation(found: &ObjectReference, sender: Address, gas: &TxContext, at: &str) -> Result<(), Refusal> {
    let Some(valid) = &gas.valid_during else {
        return Err(refuse(at, "a reservation of the address balance needs valid_during"));
    };
    if gas.sponsor.is_some_and(|sponsor| sponsor != sender) {
        return Err(refuse(at, "only the sender's own address balance can be reserved"));
    }
    let (amount, epoch) = reserved(found).unwrap_or_default();
    if amount == 0 {
        return Err(refuse(at, "the reservation is of nothing"));
    }
    if ![valid.min_epoch, valid.max_epoch].iter().all(|needed| valid_in(epoch).contains(needed)) {
        let refusal = refuse(at, "the reservation is not valid in every epoch in which the transaction is").with_actual(epoch);
        return Err(refusal.with_expected(valid.min_epoch));
    }
    let expected = id(sender, valid.chain);
    if *found.object_id() != expected {
        let refusal = refuse(at, "the reservation is not of the sender's SUI on this network");
        return Err(refusal.with_expected(expected.to_string()).with_actual(found.object_id().to_string()));
    }
    Ok(())
}
