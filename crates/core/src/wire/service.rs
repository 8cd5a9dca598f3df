//! What the rest of the interface answers: lists of orders, earnings, liquidity, fees, schemas.

use ruint::aliases::U256;

use super::{AssetId, Read, text, text_or_empty};
use crate::json::{Node, Value};
use crate::report::Refusal;

/// One page of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Page<T> {
    /// The entries.
    pub data: Vec<T>,
    /// Which page this is, as the service counts: whether from 0 or 1 is not documented.
    pub page: u64,
    /// How many pages there are.
    pub total_pages: u64,
    /// How many entries all pages hold.
    pub total_items: u64,
    /// How many entries a page holds.
    pub per_page: u64,
}

/// What an affiliate has earned in one asset.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Earnings {
    /// Base units earned ever, claimed or not: what the claim names as `totalRewards`.
    pub total_earnings: U256,
    /// The same in US dollars, for display.
    pub total_earnings_usd: String,
    /// The affiliate's address.
    pub affiliate: String,
    /// The asset.
    pub asset: AssetId,
    /// The token contract on the asset's chain; older responses leave it out.
    pub token_address: Option<String>,
    /// Base units not yet claimed.
    pub claim_amount: Option<U256>,
    /// The same in US dollars, for display.
    pub claim_amount_usd: Option<String>,
    /// The distributor's consent to the claim, hex.
    pub claim_signature: Option<String>,
    /// The distributor's contract.
    pub claim_contract: Option<String>,
}

/// What a solver holds, as `GET /v2/liquidity` lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SolverBalances {
    /// The solver.
    pub solver_id: String,
    /// The solver's account; older responses leave it out.
    pub address: String,
    /// By asset.
    pub liquidity: Vec<Balance>,
}

/// What a solver holds of one asset. Only for display: nothing is computed from it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Balance {
    /// The asset.
    pub asset: AssetId,
    /// Base units.
    pub balance: String,
    /// Base units that are not promised to other orders.
    pub virtual_balance: String,
    /// Whole units.
    pub readable_balance: String,
    /// In a fiat currency.
    pub fiat_value: String,
}

/// A contract schema. The schema itself, an ABI or interface definition, stays in the body.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SchemaRecord {
    /// Such as `evm:htlc_erc20`.
    pub name: String,
}

/// Answer of `GET /v2/fee`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fees {
    /// All fees, a decimal number for display.
    Total(String),
    /// Those of the application that asks.
    Earned(Vec<Earnings>),
}

impl<T: Read> Read for Page<T> {
    fn read(node: Node<'_, '_>) -> Result<Self, Refusal> {
        let members = node.object()?;
        let number = |key| members.need(key).and_then(|node| node.integer());
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
    fn read(node: Node<'_, '_>) -> Result<Self, Refusal> {
        let members = node.object()?;
        Ok(Self {
            total_earnings: members.need("total_earnings")?.decimal()?,
            total_earnings_usd: text_or_empty(&members, "total_earnings_usd")?,
            affiliate: members.need("affiliate")?.text()?.to_owned(),
            asset: AssetId::read(members.need("asset")?)?,
            token_address: text(&members, "token_address")?,
            claim_amount: members.get("claim_amount").map(|node| node.decimal()).transpose()?,
            claim_amount_usd: text(&members, "claim_amount_usd")?,
            claim_signature: text(&members, "claim_signature")?,
            claim_contract: text(&members, "claim_contract")?,
        })
    }
}

impl Read for SolverBalances {
    fn read(node: Node<'_, '_>) -> Result<Self, Refusal> {
        let members = node.object()?;
        Ok(Self {
            solver_id: text_or_empty(&members, "solver_id")?,
            address: text_or_empty(&members, "address")?,
            liquidity: members.get("liquidity").or_else(|| members.get("assets")).map(Read::read).transpose()?.unwrap_or_default(),
        })
    }
}

impl Read for Balance {
    fn read(node: Node<'_, '_>) -> Result<Self, Refusal> {
        let members = node.object()?;
        Ok(Self {
            asset: AssetId::read(members.need("asset")?)?,
            balance: text_or_empty(&members, "balance")?,
            virtual_balance: text_or_empty(&members, "virtual_balance")?,
            readable_balance: text_or_empty(&members, "readable_balance")?,
            fiat_value: text_or_empty(&members, "fiat_value")?,
        })
    }
}

impl Read for SchemaRecord {
    fn read(node: Node<'_, '_>) -> Result<Self, Refusal> {
        Ok(Self { name: node.object()?.need("name")?.text()?.to_owned() })
    }
}

impl Read for Fees {
    fn read(node: Node<'_, '_>) -> Result<Self, Refusal> {
        match node.value() {
            Value::Array(_) => Read::read(node).map(Self::Earned),
            Value::Number(text) => Ok(Self::Total((*text).to_owned())),
            _ => node.text().map(|total| Self::Total(total.to_owned())),
        }
    }
}
