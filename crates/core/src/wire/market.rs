//! Quotes, and the chains, assets and liquidity that a registry is pinned from (`docs/spec/service.md#quotes`,
//! `docs/spec/service.md#chains-assets-and-liquidity`).

use std::collections::BTreeMap;
use std::fmt;

use ruint::aliases::U256;
use serde::{Serialize, Serializer};

use super::{AssetId, BasisPoints, Read, non_empty, shown, text};
use crate::json::{Cursor, Value, number};
use crate::report::{Code, Refusal};

/// An offer of one solver.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Quote {
    /// What the owner would pay.
    pub source: QuotedLeg,
    /// What the owner would receive.
    pub destination: QuotedLeg,
    /// The solver's id.
    pub solver_id: String,
    /// Estimated duration of the swap. Third parties report seconds; the service does not document the unit.
    pub estimated_time: Option<u64>,
    /// The slippage.
    pub slippage: Option<BasisPoints>,
    /// The fee.
    pub fee: Option<BasisPoints>,
    /// Fixed part of the fee, a decimal number. The service does not document its unit.
    pub fixed_fee: Option<String>,
}

/// One side of a quote. `display` and `value` are rounded: never compute from them.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct QuotedLeg {
    /// The asset.
    pub asset: AssetId,
    /// The amount in base units.
    pub amount: U256,
    /// The amount in whole units, rounded for display.
    pub display: String,
    /// The value in a fiat currency, rounded for display.
    pub value: String,
}

impl Read for Quote {
    fn read(cursor: Cursor<'_, '_>) -> Result<Self, Refusal> {
        let share = |cursor: Cursor<'_, '_>| cursor.integer().map(BasisPoints::new);
        let members = cursor.object()?;
        Ok(Self {
            source: QuotedLeg::read(members.need("source")?)?,
            destination: QuotedLeg::read(members.need("destination")?)?,
            solver_id: members.need("solver_id")?.text()?.to_owned(),
            estimated_time: members.get("estimated_time").map(|cursor| cursor.integer()).transpose()?,
            slippage: members.get("slippage").map(share).transpose()?,
            fee: members.get("fee").map(share).transpose()?,
            fixed_fee: text(&members, "fixed_fee")?,
        })
    }
}

impl Read for QuotedLeg {
    fn read(cursor: Cursor<'_, '_>) -> Result<Self, Refusal> {
        let members = cursor.object()?;
        Ok(Self {
            asset: AssetId::read(members.need("asset")?)?,
            amount: members.need("amount")?.decimal()?,
            display: shown(&members, "display")?,
            value: shown(&members, "value")?,
        })
    }
}

/// A chain as `GET /v2/chains` lists it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ChainRecord {
    /// Chain name as in asset ids, such as `ethereum`.
    pub chain: String,
    /// `<family>:<network>`, such as `evm:1`.
    pub id: String,
    /// Display name, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// URL of a block explorer, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub explorer_url: Option<String>,
    /// Asset id of the chain's own coin, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub native_asset_id: Option<String>,
    /// Nominal seconds per block, where the list has them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block_time: Option<Seconds>,
    /// The fewest seconds per block that are expected, where the wallet has pinned them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_block_time: Option<Seconds>,
    /// The timelock that the service uses for a source leg on this chain, in the chain's own unit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_timelock: Option<u64>,
}

/// A contract that an asset names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ContractRecord {
    /// Address of a contract, program or package, a Sui coin type, or the x-only internal key on a Bitcoin-like chain.
    pub address: String,
    /// Schema name, such as `evm:htlc_erc20`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema: Option<String>,
    /// Sui: object id of the shared orders registry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub registry: Option<String>,
    /// Sui: the version at which the registry became shared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub registry_initial_shared_version: Option<String>,
    /// Members of the contract's typed-data domain, where the list has them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub domain: Option<BTreeMap<String, String>>,
    /// Name of the contract's generation, where the wallet has pinned one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub generation: Option<String>,
}

/// An asset as `GET /v2/assets` lists it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct AssetRecord {
    /// Asset id.
    pub id: AssetId,
    /// Display name, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Chain name.
    pub chain: String,
    /// The network part of the chain's id, where it is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chain_id: Option<String>,
    /// Decimal places of one whole unit, at most 77.
    pub decimals: u8,
    /// The HTLC, if the asset has one.
    pub htlc: Option<ContractRecord>,
    /// The token; `None` for a native asset.
    pub token: Option<ContractRecord>,
    /// Smallest amount that the service accepts, in base units, decimal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_amount: Option<String>,
    /// Largest amount that the service accepts, in base units, decimal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_amount: Option<String>,
}

/// A solver's liquidity: an entry of a registry's `solvers`, or of `GET /v2/liquidity`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct LiquidityRecord {
    /// The solver's id.
    pub solver_id: String,
    /// The chain on which the solver has this address, where it is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chain: Option<String>,
    /// The solver's address; on Bitcoin-like chains the x-only key.
    pub address: String,
    /// Assets that the solver offers. Only their chains matter, and only if `chain` is missing.
    #[serde(skip)]
    pub assets: Vec<AssetId>,
}

impl Read for ChainRecord {
    fn read(cursor: Cursor<'_, '_>) -> Result<Self, Refusal> {
        let members = cursor.object()?;
        Ok(Self {
            chain: members.need("chain")?.text()?.to_owned(),
            id: members.need("id")?.text()?.to_owned(),
            name: non_empty(&members, "name")?,
            explorer_url: non_empty(&members, "explorer_url")?,
            native_asset_id: non_empty(&members, "native_asset_id")?,
            block_time: members.get("block_time").map(Seconds::read).transpose()?,
            min_block_time: members.get("min_block_time").map(Seconds::read).transpose()?,
            source_timelock: members.get("source_timelock").map(units).transpose()?,
        })
    }
}

impl Read for ContractRecord {
    fn read(cursor: Cursor<'_, '_>) -> Result<Self, Refusal> {
        let members = cursor.object()?;
        let domain = members.get("domain").map(|cursor| {
            let members = cursor.object()?;
            let mut domain = BTreeMap::new();
            for (key, value) in members.keys().zip(members.iter()) {
                domain.insert(key.to_owned(), spelled(value)?);
            }
            Ok::<_, Refusal>(domain)
        });
        Ok(Self {
            address: members.need("address")?.text()?.to_owned(),
            schema: text(&members, "schema")?,
            registry: text(&members, "registry")?,
            registry_initial_shared_version: members.get("registry_initial_shared_version").map(spelled).transpose()?,
            domain: domain.transpose()?,
            generation: text(&members, "generation")?,
        })
    }
}

impl Read for AssetRecord {
    fn read(cursor: Cursor<'_, '_>) -> Result<Self, Refusal> {
        let members = cursor.object()?;
        let decimals = members.need("decimals")?;
        Ok(Self {
            id: AssetId::read(members.need("id")?)?,
            name: non_empty(&members, "name")?,
            chain: members.need("chain")?.text()?.to_owned(),
            chain_id: members.get("chain_id").map(spelled).transpose()?,
            // No token has more decimals than 256 bits have digits.
            decimals: u8::try_from(decimals.integer()?)
                .ok()
                .filter(|decimals| *decimals <= 77)
                .ok_or_else(|| decimals.refuse(Code::NumberTooLarge).with_expected("at most 77"))?,
            htlc: members.get("htlc").map(Read::read).transpose()?,
            token: members.get("token").map(Read::read).transpose()?,
            min_amount: text(&members, "min_amount")?,
            max_amount: text(&members, "max_amount")?,
        })
    }
}

impl Read for LiquidityRecord {
    fn read(cursor: Cursor<'_, '_>) -> Result<Self, Refusal> {
        let members = cursor.object()?;
        let assets = match members.get("assets").or_else(|| members.get("liquidity")) {
            Some(list) => list.array()?.map(|entry| AssetId::read(entry.object()?.need("asset")?)).collect::<Result<_, _>>()?,
            None => Vec::new(),
        };
        Ok(Self {
            solver_id: members.need("solver_id")?.text()?.to_owned(),
            chain: text(&members, "chain")?,
            address: members.need("address")?.text()?.to_owned(),
            assets,
        })
    }
}

/// A duration in seconds, kept to the millisecond. The service writes it as a number or a decimal string.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seconds {
    millis: u64,
}

impl Seconds {
    /// Returns the duration in milliseconds.
    #[must_use]
    pub const fn millis(self) -> u64 {
        self.millis
    }

    fn read(cursor: Cursor<'_, '_>) -> Result<Self, Refusal> {
        let text = spelled(cursor)?;
        let (whole, fraction) = text.split_once('.').unwrap_or((&text, "0"));
        let whole = number::decimal(whole).ok().and_then(|seconds| u64::try_from(seconds).ok());
        let digits = (1..=9).contains(&fraction.len()) && fraction.bytes().all(|byte| byte.is_ascii_digit());
        let millis = format!("{fraction:0<3}").get(..3).and_then(|digits| digits.parse::<u64>().ok()).filter(|_| digits);
        match (whole.and_then(|seconds| seconds.checked_mul(1_000)), millis) {
            (Some(whole), Some(millis)) => Ok(Self { millis: whole.saturating_add(millis) }),
            _ => Err(cursor.refuse(Code::WrongType).with_expected("seconds as a decimal number")),
        }
    }
}

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&number::in_whole_units(U256::from(self.millis), 3))
    }
}

impl Serialize for Seconds {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match (self.millis.checked_rem(1_000), self.millis.checked_div(1_000)) {
            (Some(0), Some(seconds)) => serializer.serialize_u64(seconds),
            _ => serializer.collect_str(self),
        }
    }
}

/// Reads the units of a timelock, which the service writes as a string.
fn units(cursor: Cursor<'_, '_>) -> Result<u64, Refusal> {
    u64::try_from(cursor.any_number()?).map_err(|_| cursor.refuse(Code::NumberTooLarge))
}

/// Reads a number or a string, as its text.
fn spelled(cursor: Cursor<'_, '_>) -> Result<String, Refusal> {
    match cursor.value() {
        Value::Number(text) => Ok((*text).to_owned()),
        _ => cursor.text().map(str::to_owned),
    }
}
