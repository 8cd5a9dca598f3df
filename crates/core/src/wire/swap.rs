//! The order record and its two swap records.

use ruint::aliases::U256;
use serde::Serialize;

use super::{AssetId, Read, SecretHash, decimal, strict_json, text, text_or_empty, with_result};
use crate::json::{self, Members, Node};
use crate::report::{Code, Refusal};

/// The service's second statement on an order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct OrderRecord {
    /// The order's id, as it came.
    pub order_id: String,
    /// What the owner pays.
    pub source_swap: SwapRecord,
    /// What the owner gets.
    pub destination_swap: SwapRecord,
    /// ISO 8601.
    pub created_at: String,
    /// A decimal number, often beyond 53 bits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nonce: Option<String>,
    /// `v1`, `v2` or `v3`: which fields an EVM swap id binds.
    pub version: String,
    /// The solver, where the record names it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub solver_id: Option<String>,
    /// The embedding app, where the record names it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub integrator: Option<String>,
    /// Unix seconds or ISO text (`docs/spec/service.md#times`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline: Option<String>,
    /// Affiliate fees; the shape of their entries is not documented.
    pub affiliate_fees: Vec<RecordFee>,
}

/// An affiliate fee as far as its members could be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct RecordFee {
    /// The asset id, where there is one.
    pub asset: Option<String>,
    /// The recipient, where there is one.
    pub address: Option<String>,
    /// Basis points as written, where they are given.
    pub fee: Option<String>,
}

/// One side of an order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SwapRecord {
    /// The id that the HTLC gives the swap; on Bitcoin-like chains its address.
    pub swap_id: String,
    /// Chain name.
    pub chain: String,
    /// Asset id.
    pub asset: AssetId,
    /// Who funds, and gets refunds.
    pub initiator: String,
    /// Who redeems.
    pub redeemer: String,
    /// On Bitcoin-like chains the key of the side that is written as an address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delegate: Option<String>,
    /// In the chain's own unit.
    pub timelock: u64,
    /// Base units.
    #[serde(serialize_with = "decimal")]
    pub amount: U256,
    /// Base units that have arrived.
    #[serde(serialize_with = "decimal")]
    pub filled_amount: U256,
    /// SHA-256 of the secret.
    pub secret_hash: SecretHash,
    /// The secret's hex once it is public, else empty.
    pub secret: String,
    /// Presigned refund of a Bitcoin-like swap, raw hex, else empty.
    pub instant_refund_tx: String,
    /// Funding transaction, `<txid>:<number>` on Bitcoin-like chains, else empty.
    pub initiate_tx_hash: String,
    /// Redeeming transaction, else empty.
    pub redeem_tx_hash: String,
    /// Refunding transaction, else empty.
    pub refund_tx_hash: String,
    /// Block of the funding, 0 before it.
    pub initiate_block_number: u64,
    /// Block of the redemption, 0 before it.
    pub redeem_block_number: u64,
    /// Block of the refund, 0 without one.
    pub refund_block_number: u64,
    /// Confirmations that the service waits for.
    pub required_confirmations: u64,
    /// Confirmations so far.
    pub current_confirmations: u64,
    /// ISO 8601, where the service knows it. A confirmed swap can be without: no state follows from a time that is missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initiate_timestamp: Option<String>,
    /// The same of the redemption.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub redeem_timestamp: Option<String>,
    /// The same of the refund.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refund_timestamp: Option<String>,
}

impl OrderRecord {
    /// Parses a record, bare or in its envelope.
    ///
    /// # Errors
    ///
    /// A [`Refusal`] with a pointer into the text.
    pub fn from_json(text: &[u8]) -> Result<Self, Refusal> {
        Self::read_enveloped(Node::root(&json::parse(text)?, "")).map(|(record, _)| record)
    }

    /// Reads a record, and returns whether it came in its envelope.
    ///
    /// # Errors
    ///
    /// A [`Refusal`] at the first member that does not have its shape.
    pub fn read_enveloped(node: Node<'_, '_>) -> Result<(Self, bool), Refusal> {
        let members = node.object()?;
        if members.get("source_swap").is_none() && members.get("result").is_some() {
            return with_result(node, Self::read).map(|record| (record, true));
        }
        Self::read(node).map(|record| (record, false))
    }
}

strict_json!(OrderRecord);

impl SwapRecord {
    /// Whether anything says that funds have arrived or are on their way.
    #[must_use]
    pub fn is_funded(&self) -> bool {
        self.signs_of_funding().iter().any(|(_, sign)| sign.is_some())
    }

    /// Whether anything says that the swap is redeemed.
    #[must_use]
    pub fn is_redeemed(&self) -> bool {
        self.signs_of_redemption().iter().any(|(_, sign)| sign.is_some())
    }

    /// Whether anything says that the swap is refunded.
    #[must_use]
    pub fn is_refunded(&self) -> bool {
        self.signs_of_refund().iter().any(|(_, sign)| sign.is_some())
    }

    /// Members that would say that funds have arrived, and what they say.
    pub(crate) fn signs_of_funding(&self) -> [(&'static str, Option<String>); 4] {
        [
            ("initiate_tx_hash", hash(&self.initiate_tx_hash)),
            ("initiate_block_number", number(self.initiate_block_number)),
            ("filled_amount", Some(self.filled_amount.to_string()).filter(|_| !self.filled_amount.is_zero())),
            ("current_confirmations", number(self.current_confirmations)),
        ]
    }

    /// Members that would say that the swap is redeemed, and what they say.
    pub(crate) fn signs_of_redemption(&self) -> [(&'static str, Option<String>); 2] {
        [("redeem_tx_hash", hash(&self.redeem_tx_hash)), ("redeem_block_number", number(self.redeem_block_number))]
    }

    /// Members that would say that the swap is refunded, and what they say.
    pub(crate) fn signs_of_refund(&self) -> [(&'static str, Option<String>); 2] {
        [("refund_tx_hash", hash(&self.refund_tx_hash)), ("refund_block_number", number(self.refund_block_number))]
    }
}

fn hash(text: &str) -> Option<String> {
    Some(text.to_owned()).filter(|text| !text.is_empty())
}

fn number(number: u64) -> Option<String> {
    Some(number.to_string()).filter(|_| number != 0)
}

impl Read for OrderRecord {
    fn read(node: Node<'_, '_>) -> Result<Self, Refusal> {
        let members = node.object()?;
        Ok(Self {
            order_id: members.need("order_id")?.text()?.to_owned(),
            source_swap: SwapRecord::read(members.need("source_swap")?)?,
            destination_swap: SwapRecord::read(members.need("destination_swap")?)?,
            created_at: text_or_empty(&members, "created_at")?,
            nonce: members.get("nonce").map(|node| node.any_number().map(|nonce| nonce.to_string())).transpose()?,
            version: members.need("version")?.text()?.to_owned(),
            solver_id: text(&members, "solver_id")?,
            integrator: text(&members, "integrator")?,
            deadline: members.get("deadline").map(scalar).transpose()?,
            affiliate_fees: members.get("affiliate_fees").map(RecordFee::list).unwrap_or_default(),
        })
    }
}

impl RecordFee {
    /// Whatever shape the member has: it is shown, never relied on.
    fn list(node: Node<'_, '_>) -> Vec<Self> {
        match node.array() {
            Ok(entries) => entries.map(Self::of).collect(),
            Err(_) => vec![Self::of(node)],
        }
    }

    fn of(node: Node<'_, '_>) -> Self {
        let member = |key| node.object().ok().and_then(|members| scalar(members.get(key)?).ok());
        Self { asset: member("asset"), address: member("address"), fee: member("fee") }
    }
}

impl Read for SwapRecord {
    fn read(node: Node<'_, '_>) -> Result<Self, Refusal> {
        let members = node.object()?;
        let need = |key| members.need(key).and_then(|node| node.text().map(str::to_owned));
        let secret_hash = members.need("secret_hash")?;
        Ok(Self {
            swap_id: need("swap_id")?,
            chain: need("chain")?,
            asset: AssetId::read(members.need("asset")?)?,
            initiator: need("initiator")?,
            redeemer: need("redeemer")?,
            delegate: text(&members, "delegate")?,
            timelock: members.need("timelock")?.integer()?,
            amount: members.need("amount")?.decimal()?,
            filled_amount: members.get("filled_amount").map(|node| node.decimal()).transpose()?.unwrap_or_default(),
            secret_hash: SecretHash::parse(secret_hash.text()?).map_err(|error| secret_hash.refuse(error))?,
            secret: text_or_empty(&members, "secret")?,
            instant_refund_tx: text_or_empty(&members, "instant_refund_tx")?,
            initiate_tx_hash: text_or_empty(&members, "initiate_tx_hash")?,
            redeem_tx_hash: text_or_empty(&members, "redeem_tx_hash")?,
            refund_tx_hash: text_or_empty(&members, "refund_tx_hash")?,
            initiate_block_number: count(&members, "initiate_block_number")?,
            redeem_block_number: count(&members, "redeem_block_number")?,
            refund_block_number: count(&members, "refund_block_number")?,
            required_confirmations: count(&members, "required_confirmations")?,
            current_confirmations: count(&members, "current_confirmations")?,
            initiate_timestamp: text(&members, "initiate_timestamp")?,
            redeem_timestamp: text(&members, "redeem_timestamp")?,
            refund_timestamp: text(&members, "refund_timestamp")?,
        })
    }
}

/// A count that is 0 where it is missing, written as a number or as a decimal string.
fn count(members: &Members<'_, '_>, key: &str) -> Result<u64, Refusal> {
    let Some(node) = members.get(key) else { return Ok(0) };
    u64::try_from(node.any_number()?).map_err(|_| node.refuse(Code::NumberTooLarge))
}

/// A number or text, as text.
fn scalar(node: Node<'_, '_>) -> Result<String, Refusal> {
    node.integer().map(|number| number.to_string()).or_else(|_| node.text().map(str::to_owned))
}
