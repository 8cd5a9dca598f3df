//! The entries of `GET /v2/chains` and `GET /v2/assets`. They have the same members in every family.

use serde_json::{Value, json};

/// A chain.
pub(super) struct ChainRow<'a> {
    /// The name in asset ids.
    pub chain: &'a str,
    /// The family and network, for example `evm:8453`.
    pub id: String,
    /// The display name.
    pub title: String,
    /// The symbol of the coin that pays fees, in lower case.
    pub coin: &'a str,
    /// The timelocks of source and destination, in the chain's units.
    pub timelocks: [u64; 2],
    /// The schemas of its HTLCs.
    pub htlcs: Value,
    /// The schemas of its tokens.
    pub tokens: Value,
}

impl ChainRow<'_> {
    pub(super) fn json(self) -> Value {
        let Self { chain, id, title, coin, timelocks: [source, destination], htlcs, tokens } = self;
        json!({
            "chain": chain,
            "id": id,
            "name": title,
            "icon": "",
            "explorer_url": format!("https://explorer.invalid/{chain}"),
            "native_asset_id": format!("{chain}:{coin}"),
            "confirmation_target": 1,
            "source_timelock": source.to_string(),
            "destination_timelock": destination.to_string(),
            "supported_htlc_schemas": htlcs,
            "supported_token_schemas": tokens,
        })
    }
}

/// An asset.
pub(super) struct AssetRow<'a> {
    /// The name of the chain in asset ids.
    pub chain: &'a str,
    /// The chain's network: a number on EVM chains and Tron, elsewhere a name.
    pub network: Value,
    /// The symbol in lower case.
    pub symbol: &'a str,
    pub decimals: u8,
    /// The minimum and maximum amount of a swap, in base units.
    pub limits: [String; 2],
    pub htlc: Value,
    /// The token. `null` for the chain's own coin.
    pub token: Value,
}

impl AssetRow<'_> {
    pub(super) fn json(self) -> Value {
        let Self { chain, network, symbol, decimals, limits: [min, max], htlc, token } = self;
        let cents = cents(symbol);
        json!({
            "id": format!("{chain}:{symbol}"),
            "name": symbol.to_uppercase(),
            "chain": chain,
            "chain_id": network,
            "icon": "",
            "decimals": decimals,
            "min_amount": min,
            "max_amount": max,
            "price": f64::from(cents) / 100.0,
            "htlc": htlc,
            "token": token,
        })
    }
}

/// Returns the price of a symbol in cents. Prices are round numbers of the right magnitude.
pub(super) const fn cents(symbol: &str) -> u32 {
    match symbol.as_bytes() {
        b"btc" | b"wbtc" | b"cbbtc" | b"btcb" => 10_000_000,
        b"eth" => 400_000,
        b"bnb" => 80_000,
        b"sol" => 20_000,
        b"ltc" => 10_000,
        b"sui" => 400,
        b"trx" => 30,
        b"strk" => 20,
        _ => 100,
    }
}
