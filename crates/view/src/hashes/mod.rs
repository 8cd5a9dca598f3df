//! Hash cards: what a device that signs blindly shows, in exactly the form in which it shows it, so that the owner can compare.
//!
//! Most devices do not decode the payloads of a swap. They show a hash, each in its own spelling: one Ledger app writes upper case, the
//! next one lower case, the next one base58. A [`HashCard`] has these texts for one signing request. Nothing here is hashed again except
//! where a device shows a hash that is not the one that is signed.
//!
//! A form that no source establishes is left out. Specification and sources: `docs/spec/hashes.md`.

#[cfg(feature = "bitcoin")]
mod bitcoin;
#[cfg(feature = "evm")]
mod evm;
#[cfg(feature = "evm")]
mod safe;
#[cfg(feature = "solana")]
mod solana;
#[cfg(feature = "starknet")]
mod starknet;
#[cfg(feature = "sui")]
mod sui;
#[cfg(feature = "tron")]
mod tron;
#[cfg(any(feature = "evm", feature = "tron"))]
mod typed_data;

use std::collections::BTreeMap;
use std::fmt;

#[cfg(feature = "evm")]
pub use self::safe::{Safe, SafeTxGas, SafeVersion, UnknownSafeTxGas, UnknownSafeVersion};

use countersign::{RequestId, SigningRequest, Unsigned, Verified, for_each_family};
use serde::{Serialize, Serializer};
use sha2::{Digest as _, Sha256};

/// What shows a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Device {
    /// The Ethereum app of Ledger devices.
    LedgerEthereum,
    /// The Tron app of Ledger devices.
    LedgerTron,
    /// The Tron app of Ledger devices, where a wallet sends it the hash instead of the transaction.
    LedgerTronByHash,
    /// The Starknet app of Ledger devices.
    LedgerStarknet,
    /// The Solana app of Ledger devices.
    LedgerSolana,
    /// The Sui app of Ledger devices.
    LedgerSui,
    /// The Bitcoin app of Ledger devices.
    LedgerBitcoin,
    /// Trezor Safe devices and Trezor Model T.
    TrezorCore,
    /// Trezor Model One.
    TrezorOne,
    /// Safe, and the device of the owner that signs for it. Only [`Safe::add_to`] adds it.
    Safe,
    /// No device: the form that software wallets, SDKs and explorers use.
    Software,
}

impl Device {
    /// Returns the name that people know.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::LedgerEthereum => "Ledger, Ethereum app",
            Self::LedgerTron => "Ledger, Tron app",
            Self::LedgerTronByHash => "Ledger, Tron app, sign by hash",
            Self::LedgerStarknet => "Ledger, Starknet app",
            Self::LedgerSolana => "Ledger, Solana app",
            Self::LedgerSui => "Ledger, Sui app",
            Self::LedgerBitcoin => "Ledger, Bitcoin app",
            Self::TrezorCore => "Trezor Safe, Trezor Model T",
            Self::TrezorOne => "Trezor Model One",
            Self::Safe => "Safe, and its owner's device",
            Self::Software => "software",
        }
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Serialize for Device {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// One value on a device's screen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ShownValue {
    /// What shows it.
    pub device: Device,
    /// The label beside it.
    pub label: &'static str,
    /// The value, character by character as it is shown. Devices break long values into lines.
    pub value: String,
}

/// What devices show for one signing request. Its text form has one line for each value, below a line for each device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct HashCard {
    /// Which payload of the order it is for.
    pub request: RequestId,
    /// The account that signs.
    pub signer: String,
    /// The values, those of one device together.
    pub values: Vec<ShownValue>,
}

impl HashCard {
    fn new<P>(request: &SigningRequest<P>) -> Self {
        Self { request: request.id, signer: request.signer.clone(), values: Vec::new() }
    }

    #[must_use]
    fn with(mut self, device: Device, label: &'static str, value: impl Into<String>) -> Self {
        self.add(device, label, value);
        self
    }

    fn add(&mut self, device: Device, label: &'static str, value: impl Into<String>) {
        self.values.push(ShownValue { device, label, value: value.into() });
    }
}

impl fmt::Display for HashCard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} by {}", self.request, self.signer)?;
        let mut device = None;
        for value in &self.values {
            if device.replace(value.device) != Some(value.device) {
                writeln!(f, "  {}", value.device)?;
            }
            writeln!(f, "    {}: {}", value.label, value.value)?;
        }
        Ok(())
    }
}

/// Returns a card for each signing request of a prepared order, in their order.
///
/// On Bitcoin-like chains there is one card for the whole transaction, because devices show its outputs once, however many inputs they
/// sign. A payload for which no form is established has no card.
#[must_use]
pub fn hash_cards(order: &Unsigned) -> Vec<HashCard> {
    macro_rules! cards {
        ([] $($feature:literal $family:ident $module:ident,)*) => {
            match order {
                $(#[cfg(feature = $feature)] Unsigned::$family(order) => $module::cards(order),)*
                _ => Vec::new(),
            }
        };
    }
    let mut cards = for_each_family! { cards! [] };
    cards.retain(|card| !card.values.is_empty());
    cards
}

/// Returns the hashes of the payloads that an order has without a wallet, by their names in a receipt.
pub(crate) fn of_order(order: &Verified) -> BTreeMap<String, String> {
    macro_rules! hashes {
        ([] $($feature:literal $family:ident $module:ident,)*) => {
            match order {
                $(#[cfg(feature = $feature)] Verified::$family(order) => $module::of_deposit(order.deposit()),)*
                _ => Vec::new(),
            }
        };
    }
    for_each_family! { hashes! [] }.into_iter().map(|(name, hash)| (name.to_owned(), hash)).collect()
}

pub(crate) fn sha256(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}
