//! Responses of the remaining endpoints: lists of orders, earnings, liquidity, fees, schemas (`docs/spec/service.md#endpoints`).

use ruint::aliases::U256;

use super::{AssetId, Read, shown, text};
use crate::json::{Cursor, Value};
use crate::report::Refusal;

/// One page of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Page<T> {
    /// The entries.
    pub data: Vec<T>,
    /// Number of this page. The service does not document whether it counts from 0 or 1.
    pub page: u64,
    /// Number of pages.
    pub total_pages: u64,
    /// Number of entries on all pages.
    pub total_items: u64,
    /// Number of entries on a full page.
    pub per_page: u64,
}

/// What an affiliate has earned in one asset.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Earnings {
    /// Everything ever earned, claimed or not, in base units: `totalRewards` of the claim.
    pub total_earnings: U256,
    /// `total_earnings` in US dollars, for display.
    pub total_earnings_usd: String,
    /// The affiliate's address.
    pub affiliate: String,
    /// The asset.
    pub asset: AssetId,
    /// The token contract on the asset's chain; `None` in older responses.
    pub token_address: Option<String>,
    /// What is not claimed yet, in base units.
    pub claim_amount: Option<U256>,
    /// `claim_amount` in US dollars, for display.
    pub claim_amount_usd: Option<String>,
    /// The distributor's signature for the claim, in hex.
    pub claim_signature: Option<String>,
    /// The distributor's contract.
    pub claim_contract: Option<String>,
}

/// What a solver holds, as `GET /v2/liquidity` lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SolverBalances {
    /// The solver's id.
    pub solver_id: String,
    /// The solver's address; empty in older responses.
    pub address: String,
    /// The balance of each asset.
    pub liquidity: Vec<Balance>,
}

/// What a solver holds of one asset, as text. Only for display: nothing is computed from it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Balance {
    /// The asset.
    pub asset: AssetId,
    /// The balance in base units.
    pub balance: String,
    /// The part that is not promised to other orders, in base units.
    pub virtual_balance: String,
    /// The balance in whole units.
    pub readable_balance: String,
    /// The value in a fiat currency.
    pub fiat_value: String,
}

/// The name of a contract schema. The schema itself, an ABI or interface definition, is not parsed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SchemaRecord {
    /// The name, such as `evm:htlc_erc20`.
    pub name: String,
}

/// The response of `GET /v2/fee`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fees {
    /// All fees, a decimal number for display.
    Total(String),
    /// The earnings of the application whose id is sent with the request.
    Earned(Vec<Earnings>),
}

impl<T: Read> Read for Page<T> {
    fn read(cursor: Cursor<'_, '_>) -> Result<Self, Refusal> {
        let members = cursor.object()?;
        let number = |key| members.need(key).and_then(|cursor| cursor.integer());
        Ok(Self {
            data: Read::read(members.need("data")?)?,
            page: number("page")?,
            total_pages: number("total_pages")?,
            total_items: number("total_items")?,
            per_page: number("per_page")?,
        })
    }
}

impl Read for Earnings {
    fn read(cursor: Cursor<'_, '_>) -> Result<Self, Refusal> {
        let members = cursor.object()?;
        Ok(Self {
            total_earnings: members.need("total_earnings")?.decimal()?,
            total_earnings_usd: shown(&members, "total_earnings_usd")?,
            affiliate: members.need("affiliate")?.text()?.to_owned(),
            asset: AssetId::read(members.need("asset")?)?,
            token_address: text(&members, "token_address")?,
            claim_amount: members.get("claim_amount").map(|cursor| cursor.decimal()).transpose()?,
            claim_amount_usd: text(&members, "claim_amount_usd")?,
            claim_signature: text(&members, "claim_signature")?,
            claim_contract: text(&members, "claim_contract")?,
        })
    }
}

impl Read for SolverBalances {
    fn read(cursor: Cursor<'_, '_>) -> Result<Self, Refusal> {
        let members = cursor.object()?;
        Ok(Self {
            solver_id: shown(&members, "solver_id")?,
            address: shown(&members, "address")?,
            liquidity: members.get("liquidity").or_else(|| members.get("assets")).map(Read::read).transpose()?.unwrap_or_default(),
        })
    }
}

impl Read for Balance {
    fn read(cursor: Cursor<'_, '_>) -> Result<Self, Refusal> {
        let members = cursor.object()?;
        Ok(Self {
            asset: AssetId::read(members.need("asset")?)?,
            balance: shown(&members, "balance")?,
            virtual_balance: shown(&members, "virtual_balance")?,
            readable_balance: shown(&members, "readable_balance")?,
            fiat_value: shown(&members, "fiat_value")?,
        })
    }
}

impl Read for SchemaRecord {
    fn read(cursor: Cursor<'_, '_>) -> Result<Self, Refusal> {
        Ok(Self { name: cursor.object()?.need("name")?.text()?.to_owned() })
    }
}

impl Read for Fees {
    fn read(cursor: Cursor<'_, '_>) -> Result<Self, Refusal> {
        match cursor.value() {
            Value::Array(_) => Read::read(cursor).map(Self::Earned),
            Value::Number(text) => Ok(Self::Total((*text).to_owned())),
            _ => cursor.text().map(|total| Self::Total(total.to_owned())),
        }
    }
}
