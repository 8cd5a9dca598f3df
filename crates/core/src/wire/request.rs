//! The create-order request (`docs/spec/service.md#creating-an-order`).

use ruint::aliases::U256;
use serde::{Deserialize, Serialize};

use super::basis_points::AT_MOST_ALL;
use super::{AssetId, BasisPoints, Quote, Read, SecretHash, decimal, strict_json};
use crate::json::{self, At, Cursor};
use crate::report::{Code, Origin, Refusal};

/// What the wallet requests. The request is trusted: the response and the record are compared with it.
///
/// It serializes as the body of `POST /v2/orders`.
///
/// ```
/// use countersign::wire::{BasisPoints, RequestedLeg};
/// use countersign::{CreateOrder, SecretHash, U256};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let secret = *b"thirty-two bytes of good secret!";
/// let request = CreateOrder::new(
///     RequestedLeg::new(
///         "ethereum:usdc".parse()?,
///         "0x70997970c51812dc3a010c7d01b50e0d17dc79c8",
///         U256::from(5_000_000),
///     ),
///     RequestedLeg::new(
///         "bitcoin:btc".parse()?,
///         "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4",
///         U256::from(4_900),
///     ),
/// )
/// .with_secret_hash(SecretHash::of(&secret))
/// .with_slippage(BasisPoints::new(50))?;
/// assert_eq!(
///     request,
///     CreateOrder::from_json(serde_json::to_string(&request)?.as_bytes())?
/// );
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct CreateOrder {
    /// What the owner pays.
    pub source: RequestedLeg,
    /// What the owner receives.
    pub destination: RequestedLeg,
    /// SHA-256 of the secret; `None` leaves the choice of the secret to the service.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_hash: Option<SecretHash>,
    /// Id of the solver whose quote is taken, if the wallet names it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub solver_id: Option<String>,
    /// Slippage that the owner allows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slippage: Option<BasisPoints>,
    /// The order's nonce, a decimal number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nonce: Option<String>,
    /// Fees for the application that embeds the wallet.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub affiliate_fees: Vec<AffiliateFee>,
}

/// One leg of a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct RequestedLeg {
    /// The asset.
    pub asset: AssetId,
    /// The owner's address on the asset's chain. Only the source leg may leave it out, and only on Bitcoin-like chains.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// On account chains the account that sends and pays for the owner; on Bitcoin-like chains the owner's x-only key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delegate: Option<String>,
    /// The amount in base units.
    #[serde(serialize_with = "decimal")]
    pub amount: U256,
}

/// A fee for the application that embeds the wallet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct AffiliateFee {
    /// The asset in which the fee is paid.
    pub asset: AssetId,
    /// The recipient's address.
    pub address: String,
    /// The fee, at most the whole amount.
    pub fee: BasisPoints,
}

/// Returns the smallest payout that a slippage allows, rounded up; never more than `amount`.
pub(crate) fn least_after_slippage(amount: U256, slippage: BasisPoints) -> U256 {
    let whole = U256::from(BasisPoints::WHOLE.get());
    let kept = whole.saturating_sub(U256::from(slippage.get()));
    // amount * kept / whole without overflow: first the parts, then the rest, which is below `whole`.
    let (parts, rest) = amount.div_rem(whole);
    parts.saturating_mul(kept).saturating_add(rest.saturating_mul(kept).div_ceil(whole))
}

impl CreateOrder {
    /// Creates a request without options.
    #[must_use]
    pub const fn new(source: RequestedLeg, destination: RequestedLeg) -> Self {
        Self { source, destination, secret_hash: None, solver_id: None, slippage: None, nonce: None, affiliate_fees: Vec::new() }
    }

    /// Creates a request from a quote, with its assets, amounts, solver and slippage, and the addresses of the two owners.
    ///
    /// The quote comes from the service: compare its amounts with what the user wants before the order is created.
    #[must_use]
    pub fn from_quote(quote: &Quote, source_owner: impl Into<String>, destination_owner: impl Into<String>) -> Self {
        let leg = |leg: &super::QuotedLeg, owner| RequestedLeg::new(leg.asset.clone(), owner, leg.amount);
        let mut request = Self::new(leg(&quote.source, source_owner.into()), leg(&quote.destination, destination_owner.into()));
        request.solver_id = Some(quote.solver_id.clone());
        request.slippage = quote.slippage.filter(|slippage| *slippage <= BasisPoints::WHOLE);
        request
    }

    /// Sets the hash of a secret that the wallet chose and keeps.
    #[must_use]
    pub const fn with_secret_hash(mut self, hash: SecretHash) -> Self {
        self.secret_hash = Some(hash);
        self
    }

    /// Sets the id of the solver whose quote is taken.
    #[must_use]
    pub fn with_solver_id(mut self, solver_id: impl Into<String>) -> Self {
        self.solver_id = Some(solver_id.into());
        self
    }

    /// Sets the slippage that the owner allows.
    ///
    /// # Errors
    ///
    /// [`Code::NumberTooLarge`] above 10000 basis points.
    pub fn with_slippage(mut self, slippage: BasisPoints) -> Result<Self, Refusal> {
        self.slippage = Some(slippage.check("/slippage")?);
        Ok(self)
    }

    /// Sets the order's nonce.
    #[must_use]
    pub fn with_nonce(mut self, nonce: U256) -> Self {
        self.nonce = Some(nonce.to_string());
        self
    }

    /// Adds a fee for the application that embeds the wallet.
    #[must_use]
    pub fn with_affiliate_fee(mut self, fee: AffiliateFee) -> Self {
        self.affiliate_fees.push(fee);
        self
    }

    /// Parses a request strictly: duplicate keys, inexact numbers and amounts of zero are refused.
    ///
    /// # Errors
    ///
    /// A [`Refusal`] with a pointer into the text.
    pub fn from_json(text: &[u8]) -> Result<Self, Refusal> {
        const AT: At<'_> = At::of("", Origin::Request);
        Self::read(Cursor::new(&json::parse(text).map_err(|refusal| refusal.within(&AT))?, AT))
    }

    /// Requires that no amount is zero, and that slippage and fees are at most the whole amount. Parsing checks this too, but a
    /// program can also set the fields of a request.
    pub(crate) fn check_numbers(&self) -> Result<(), Refusal> {
        for (leg, at) in [(&self.source, "/source/amount"), (&self.destination, "/destination/amount")] {
            if leg.amount.is_zero() {
                return Err(At::REQUEST.refuse_below(Code::AmountZero, at));
            }
        }
        if let Some(slippage) = self.slippage {
            slippage.check("/slippage").map_err(|refusal| refusal.within(&At::REQUEST))?;
        }
        for (index, fee) in self.affiliate_fees.iter().enumerate() {
            fee.fee.check(&format!("/affiliate_fees/{index}/fee")).map_err(|refusal| refusal.within(&At::REQUEST))?;
        }
        Ok(())
    }
}

impl AffiliateFee {
    /// Creates a fee.
    ///
    /// # Errors
    ///
    /// [`Code::NumberTooLarge`] at `/fee` above 10000 basis points.
    pub fn new(asset: AssetId, address: impl Into<String>, fee: BasisPoints) -> Result<Self, Refusal> {
        Ok(Self { asset, address: address.into(), fee: fee.check("/fee")? })
    }
}

impl RequestedLeg {
    /// Creates a leg without a delegate.
    #[must_use]
    pub fn new(asset: AssetId, owner: impl Into<String>, amount: U256) -> Self {
        Self { asset, owner: Some(owner.into()), delegate: None, amount }
    }

    /// Creates a leg that names no owner. Only a source leg on a Bitcoin-like chain may be like this, and it needs the owner's x-only key
    /// ([`Self::with_delegate`]); a destination without an owner is refused.
    #[must_use]
    pub const fn without_owner(asset: AssetId, amount: U256) -> Self {
        Self { asset, owner: None, delegate: None, amount }
    }

    /// Sets the delegate: on account chains the account that sends and pays, on Bitcoin-like chains the owner's x-only key.
    #[must_use]
    pub fn with_delegate(mut self, delegate: impl Into<String>) -> Self {
        self.delegate = Some(delegate.into());
        self
    }
}

impl Read for CreateOrder {
    fn read(cursor: Cursor<'_, '_>) -> Result<Self, Refusal> {
        let members = cursor.object()?;
        members.check_spelling(&["source", "destination", "secret_hash", "solver_id", "slippage", "nonce", "affiliate_fees"])?;
        let secret_hash = members.get("secret_hash").map(|cursor| SecretHash::parse(cursor.text()?).map_err(|error| cursor.refuse(error)));
        Ok(Self {
            source: RequestedLeg::read(members.need("source")?)?,
            destination: RequestedLeg::read(members.need("destination")?)?,
            secret_hash: secret_hash.transpose()?,
            solver_id: super::text(&members, "solver_id")?,
            slippage: members.get("slippage").map(read_basis_points).transpose()?,
            nonce: members.get("nonce").map(|cursor| cursor.any_number().map(|nonce| nonce.to_string())).transpose()?,
            affiliate_fees: members.get("affiliate_fees").map(Read::read).transpose()?.unwrap_or_default(),
        })
    }
}

impl Read for RequestedLeg {
    fn read(cursor: Cursor<'_, '_>) -> Result<Self, Refusal> {
        let members = cursor.object()?;
        members.check_spelling(&["asset", "owner", "amount", "delegate"])?;
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
    fn read(cursor: Cursor<'_, '_>) -> Result<Self, Refusal> {
        let members = cursor.object()?;
        members.check_spelling(&["asset", "address", "fee"])?;
        Ok(Self {
            asset: AssetId::read(members.need("asset")?)?,
            address: members.need("address")?.text()?.to_owned(),
            fee: read_basis_points(members.need("fee")?)?,
        })
    }
}

fn read_basis_points(cursor: Cursor<'_, '_>) -> Result<BasisPoints, Refusal> {
    let points = u64::try_from(cursor.any_number()?).ok().map(BasisPoints::new).filter(|points| *points <= BasisPoints::WHOLE);
    points.ok_or_else(|| cursor.refuse(Code::NumberTooLarge).with_expected(AT_MOST_ALL))
}

strict_json!(CreateOrder);
