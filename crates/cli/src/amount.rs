//! Amounts of assets, as people write and read them.

use countersign::{AssetId, Registry, U256};
use countersign_client::amount::base_units;

use crate::failure::{Failure, usage};

/// Parses an amount of an asset into base units, as [`base_units`] does.
pub(crate) fn units(text: &str, asset: &AssetId, registry: Option<&Registry>) -> Result<U256, Failure> {
    base_units(text, asset, registry).map_err(usage)
}

/// Writes an amount for people: whole units with the asset, and base units behind them. Without the asset's pinned decimals, only base
/// units are known.
pub(crate) fn shown(amount: U256, asset: &AssetId, registry: Option<&Registry>) -> String {
    match whole(amount, asset, registry) {
        Some(whole) => format!("{whole} {asset} ({amount} base units)"),
        None => format!("{amount} base units of {asset}"),
    }
}

/// Returns an amount in whole units; `None` if the asset is not pinned.
pub(crate) fn whole(amount: U256, asset: &AssetId, registry: Option<&Registry>) -> Option<String> {
    Some(registry?.asset(asset.as_str())?.amount(amount).whole_units())
}
