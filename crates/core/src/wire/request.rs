//! The create-order request (interface.md section 2.4).

use ruint::aliases::U256;
use serde::ser::{Serialize, SerializeStruct, Serializer};

use super::Read;
use crate::asset::AssetId;
use crate::code::Code;
use crate::json::Node;
use crate::refusal::Refusal;
use crate::secret_hash::SecretHash;

/// What the wallet itself asks for. It is trusted: everything else is compared with it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CreateOrder {
    /// What the owner pays.
    pub source: Side,
    /// What the owner gets.
    pub destination: Side,
    /// SHA-256 of the secret, where the wallet chose one.
    pub secret_hash: Option<SecretHash>,
    /// The solver whose quote was taken, where the wallet says so.
    pub solver_id: Option<String>,
    /// Slippage that the owner allows, in basis points.
    pub slippage: Option<u64>,
    /// The order's nonce, a decimal number.
    pub nonce: Option<String>,
    /// Fees of whoever embeds the wallet.
    pub affiliate_fees: Vec<AffiliateFee>,
}

/// One side of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Side {
    /// The asset.
    pub asset: AssetId,
    /// The owner's address on the asset's chain; optional on Bitcoin-like chains.
    pub owner: Option<String>,
    /// Amount in base units.
    pub amount: U256,
    /// On account chains the account that sends and pays for the owner; on Bitcoin-like chains the owner's x-only key.
    pub delegate: Option<String>,
}

/// A share that goes to whoever embeds the wallet.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct AffiliateFee {
    /// The asset in which it is paid.
    pub asset: AssetId,
    /// The recipient's address.
    pub address: String,
    /// Basis points, 0 to 10000.
    pub fee: u64,
}

/// One whole, in basis points.
const WHOLE: u64 = 10_000;

/// The least that an order may pay out where `slippage` basis points were allowed, rounded up; never more than `amount`.
pub(crate) fn least_after_slippage(amount: U256, slippage: u64) -> U256 {
    let whole = U256::from(WHOLE);
    let kept = U256::from(WHOLE.saturating_sub(slippage));
    // amount * kept / whole without overflow: whole parts first, then the rest, which is below `whole`.
    let (parts, rest) = amount.div_rem(whole);
    parts.saturating_mul(kept).saturating_add(rest.saturating_mul(kept).div_ceil(whole))
}

impl CreateOrder {
    /// A request for `amount` base units of `source`, without options.
    #[must_use]
    pub const fn new(source: Side, destination: Side) -> Self {
        Self { source, destination, secret_hash: None, solver_id: None, slippage: None, nonce: None, affiliate_fees: Vec::new() }
    }
}

impl AffiliateFee {
    /// A share of `fee` basis points.
    ///
    /// # Errors
    ///
    /// [`Code::NumberTooLarge`] at `/fee` above 10000 basis points.
    pub fn new(asset: AssetId, address: String, fee: u64) -> Result<Self, Refusal> {
        if fee > WHOLE {
            return Err(Refusal::new(Code::NumberTooLarge, "/fee").expected("at most 10000 basis points").got(fee));
        }
        Ok(Self { asset, address, fee })
    }
}

impl Side {
    /// One side without a delegate.
    #[must_use]
    pub const fn new(asset: AssetId, owner: String, amount: U256) -> Self {
        Self { asset, owner: Some(owner), amount, delegate: None }
    }
}

impl Read for CreateOrder {
    fn read(node: Node<'_, '_>) -> Result<Self, Refusal> {
        let members = node.object()?;
        let secret_hash = members.get("secret_hash").map(|node| SecretHash::parse(node.text()?).map_err(|code| node.refuse(code)));
        Ok(Self {
            source: Side::read(members.need("source")?)?,
            destination: Side::read(members.need("destination")?)?,
            secret_hash: secret_hash.transpose()?,
            solver_id: super::text(&members, "solver_id")?,
            slippage: members.get("slippage").map(basis_points).transpose()?,
            nonce: members.get("nonce").map(|node| node.any_number().map(|nonce| nonce.to_string())).transpose()?,
            affiliate_fees: members.get("affiliate_fees").map(Read::read).transpose()?.unwrap_or_default(),
        })
    }
}

impl Read for Side {
    fn read(node: Node<'_, '_>) -> Result<Self, Refusal> {
        let members = node.object()?;
        let amount = members.need("amount")?;
        let units = amount.decimal()?;
        if units.is_zero() {
            return Err(amount.refuse(Code::AmountZero));
        }
        Ok(Self {
            asset: AssetId::read(members.need("asset")?)?,
            owner: super::text(&members, "owner")?,
            amount: units,
            delegate: super::text(&members, "delegate")?,
        })
    }
}

impl Read for AffiliateFee {
    fn read(node: Node<'_, '_>) -> Result<Self, Refusal> {
        let members = node.object()?;
        Ok(Self {
            asset: AssetId::read(members.need("asset")?)?,
            address: members.need("address")?.text()?.to_owned(),
            fee: basis_points(members.need("fee")?)?,
        })
    }
}

fn basis_points(node: Node<'_, '_>) -> Result<u64, Refusal> {
    let points = node.any_number()?;
    match u64::try_from(points) {
        Ok(points) if points <= WHOLE => Ok(points),
        _ => Err(node.refuse(Code::NumberTooLarge).expected("at most 10000 basis points")),
    }
}

impl Serialize for CreateOrder {
    /// The body of `POST /v2/orders`.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_struct("CreateOrder", 7)?;
        map.serialize_field("source", &self.source)?;
        map.serialize_field("destination", &self.destination)?;
        if let Some(hash) = self.secret_hash {
            map.serialize_field("secret_hash", &hash.to_string())?;
        }
        if let Some(solver_id) = &self.solver_id {
            map.serialize_field("solver_id", solver_id)?;
        }
        if let Some(slippage) = self.slippage {
            map.serialize_field("slippage", &slippage)?;
        }
        if let Some(nonce) = &self.nonce {
            map.serialize_field("nonce", nonce)?;
        }
        if !self.affiliate_fees.is_empty() {
            map.serialize_field("affiliate_fees", &self.affiliate_fees)?;
        }
        map.end()
    }
}

impl Serialize for Side {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_struct("Side", 4)?;
        map.serialize_field("asset", &self.asset)?;
        if let Some(owner) = &self.owner {
            map.serialize_field("owner", owner)?;
        }
        if let Some(delegate) = &self.delegate {
            map.serialize_field("delegate", delegate)?;
        }
        map.serialize_field("amount", &self.amount.to_string())?;
        map.end()
    }
}
