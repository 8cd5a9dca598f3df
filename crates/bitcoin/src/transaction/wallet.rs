//! The wallet's part of a payment: its coins, its change address, its fee rate and its choices.

use countersign_core::ContextVersion;
use countersign_core::serde_text;
use serde::{Deserialize, Serialize};

use super::{ChangeRule, FeeRate, KeyOrigin, Utxo};
use crate::address::Destination;

/// The wallet's part of a payment: its coins, its change address, its fee rate and its choices.
///
/// ```
/// use countersign::bitcoin::{FeeRate, Selection, TxContext};
///
/// // Any wallet can pay the address, so there is nothing to sign here.
/// let wallet = TxContext::address_only();
/// assert!(wallet.utxos.is_none());
///
/// // This library selects coins and creates the PSBT.
/// let coins = Vec::new();
/// let wallet = TxContext::new(
///     coins,
///     "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4",
///     FeeRate::from_whole(3),
/// )
/// .with_selection(Selection::LowestFee);
/// assert!(wallet.replaceable);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default = "TxContext::address_only", deny_unknown_fields)]
#[non_exhaustive]
pub struct TxContext {
    /// The version of the stored form.
    version: ContextVersion,
    /// The unspent outputs that the wallet may spend, each listed once; `None` if another wallet pays. With outputs, the change address
    /// and the fee rate are required too. Without, they are optional but still checked.
    pub utxos: Option<Vec<Utxo>>,
    /// The address for the change, on the deposit's own chain.
    pub change_address: Option<Destination>,
    /// The fee rate in sat/vB, within the policy.
    #[serde(with = "serde_text::option")]
    pub fee_rate: Option<FeeRate>,
    /// Whether the fee rate was read from nodes, so that it is not lower than they relay. Otherwise a rate that only newer nodes relay has a
    /// warning.
    pub rate_from_nodes: bool,
    /// Which of the outputs are spent.
    pub selection: Selection,
    /// How inputs and outputs are ordered.
    pub ordering: TxOrdering,
    /// Whether the transaction signals that a transaction with a higher fee may replace it (BIP-125).
    pub replaceable: bool,
    /// When a change output is created, and which weight the fee is computed from.
    pub change_rule: ChangeRule,
    /// The keys of inputs and change with their derivations, for hardware signers.
    #[serde(with = "serde_text::list")]
    pub origins: Vec<KeyOrigin>,
}

/// Which of the wallet's outputs are spent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Selection {
    /// All of them.
    #[default]
    All,
    /// Those with the lowest fee, including the cost of spending the change later.
    LowestFee,
}

/// How inputs and outputs are ordered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TxOrdering {
    /// Inputs in the given order; the deposit output first, the change last.
    #[default]
    Given,
    /// Sorted as in BIP-69, which does not reveal the change output.
    Bip69,
    /// Sorted by hashes with this seed, which does not reveal the change output either. The same seed gives the same order.
    Shuffled([u8; 32]),
}

impl TxContext {
    /// Creates the context of a wallet that only shows the address, which another wallet pays.
    #[must_use]
    pub const fn address_only() -> Self {
        Self {
            version: ContextVersion,
            utxos: None,
            change_address: None,
            fee_rate: None,
            rate_from_nodes: false,
            selection: Selection::All,
            ordering: TxOrdering::Given,
            replaceable: true,
            change_rule: ChangeRule::Standard,
            origins: Vec::new(),
        }
    }

    /// Creates the context of a wallet that pays with these outputs. It spends all of them, unless [`TxContext::with_selection`] sets
    /// another selection.
    #[must_use]
    pub fn new(utxos: Vec<Utxo>, change_address: impl Into<Destination>, fee_rate: FeeRate) -> Self {
        Self { utxos: Some(utxos), change_address: Some(change_address.into()), fee_rate: Some(fee_rate), ..Self::address_only() }
    }

    /// Sets which of the outputs are spent.
    #[must_use]
    pub const fn with_selection(mut self, selection: Selection) -> Self {
        self.selection = selection;
        self
    }

    /// Sets whether the fee rate was read from nodes.
    #[must_use]
    pub const fn with_rate_from_nodes(mut self, is_read: bool) -> Self {
        self.rate_from_nodes = is_read;
        self
    }

    /// Sets how inputs and outputs are ordered.
    #[must_use]
    pub const fn with_ordering(mut self, ordering: TxOrdering) -> Self {
        self.ordering = ordering;
        self
    }

    /// Sets whether the transaction signals that it may be replaced (BIP-125). The default is true.
    #[must_use]
    pub const fn with_replaceable(mut self, replaceable: bool) -> Self {
        self.replaceable = replaceable;
        self
    }

    /// Sets when a change output is created, and which weight the fee is computed from.
    #[must_use]
    pub const fn with_change_rule(mut self, rule: ChangeRule) -> Self {
        self.change_rule = rule;
        self
    }

    /// Adds the derivations of the wallet's keys, by which hardware signers and [`bitcoin::psbt::GetKey`] look keys up. The PSBT
    /// contains those whose key can spend an input or the change; others are ignored.
    #[must_use]
    pub fn with_origins(mut self, origins: impl IntoIterator<Item = KeyOrigin>) -> Self {
        self.origins.extend(origins);
        self
    }
}

impl Default for TxContext {
    fn default() -> Self {
        Self::address_only()
    }
}
