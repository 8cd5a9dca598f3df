//! What only the wallet knows: its coins, where the change goes, and its choices.

use super::{ChangeRule, FeeRate, KeyOrigin, Utxo};
use crate::address::Destination;

/// What only the wallet knows.
///
/// ```
/// use countersign_bitcoin::{FeeRate, Selection, Wallet};
///
/// // Any wallet pays the address: there is nothing to sign here.
/// let wallet = Wallet::address_only();
/// assert!(wallet.utxos.is_none());
///
/// // This library chooses coins and makes the PSBT.
/// let coins = Vec::new();
/// let wallet = Wallet::new(coins, "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4", FeeRate::from_whole(3))
///     .with_selection(Selection::LowestFee);
/// assert!(wallet.replaceable);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Wallet {
    /// What the wallet may spend, each output once; `None` if another wallet pays. Change address and fee rate have to be there
    /// as well, and are checked wherever they are given.
    pub utxos: Option<Vec<Utxo>>,
    /// Where the change goes, on the deposit's own chain.
    pub change_address: Option<Destination>,
    /// At most the policy's ceiling.
    pub fee_rate: Option<FeeRate>,
    /// Which of the outputs are spent.
    pub selection: Selection,
    /// How inputs and outputs are ordered.
    pub ordering: TxOrdering,
    /// Whether the transaction signals that one with a higher fee may replace it (BIP-125).
    pub replaceable: bool,
    /// When change is made, and which weight the fee is computed from.
    pub change_rule: ChangeRule,
    /// The keys of inputs and change with their derivations, for hardware signers.
    pub origins: Vec<KeyOrigin>,
}

/// Which of the wallet's outputs are spent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Selection {
    /// All of them.
    #[default]
    All,
    /// Those that cost the lowest fee, the later spending of the change included.
    LowestFee,
}

/// How inputs and outputs are ordered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum TxOrdering {
    /// Inputs as given; the deposit first, the change last.
    #[default]
    Given,
    /// Sorted (BIP-69): does not tell which output is the change.
    Bip69,
    /// Sorted by hashes with this seed: does not tell either. The same seed gives the same order.
    Shuffled([u8; 32]),
}

impl Wallet {
    /// Creates the context of a wallet that only shows the address: another wallet pays it.
    #[must_use]
    pub const fn address_only() -> Self {
        Self {
            utxos: None,
            change_address: None,
            fee_rate: None,
            selection: Selection::All,
            ordering: TxOrdering::Given,
            replaceable: true,
            change_rule: ChangeRule::Standard,
            origins: Vec::new(),
        }
    }

    /// Creates the context of a wallet that pays with these outputs: with all of them, unless
    /// [`Wallet::with_selection`] chooses.
    #[must_use]
    pub fn new(utxos: Vec<Utxo>, change_address: impl Into<Destination>, fee_rate: FeeRate) -> Self {
        Self { utxos: Some(utxos), change_address: Some(change_address.into()), fee_rate: Some(fee_rate), ..Self::address_only() }
    }

    /// Chooses which of the outputs are spent.
    #[must_use]
    pub const fn with_selection(mut self, selection: Selection) -> Self {
        self.selection = selection;
        self
    }

    /// Chooses how inputs and outputs are ordered.
    #[must_use]
    pub const fn with_ordering(mut self, ordering: TxOrdering) -> Self {
        self.ordering = ordering;
        self
    }

    /// Chooses whether the transaction signals that it may be replaced (BIP-125). It does unless told otherwise.
    #[must_use]
    pub const fn with_replaceable(mut self, replaceable: bool) -> Self {
        self.replaceable = replaceable;
        self
    }

    /// Chooses when change is made, and which weight the fee is computed from.
    #[must_use]
    pub const fn with_change_rule(mut self, rule: ChangeRule) -> Self {
        self.change_rule = rule;
        self
    }

    /// Adds the derivations of the wallet's keys, which hardware signers and [`bitcoin::psbt::GetKey`] look keys up by. Each is
    /// put where its key opens an input or the change; others are ignored.
    #[must_use]
    pub fn with_origins(mut self, origins: impl IntoIterator<Item = KeyOrigin>) -> Self {
        self.origins.extend(origins);
        self
    }
}

impl Default for Wallet {
    fn default() -> Self {
        Self::address_only()
    }
}
