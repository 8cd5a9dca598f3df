//! The order record and its two swap records (`docs/spec/service.md#order-record`).

use ruint::aliases::U256;
use serde::{Serialize, Serializer};

use super::{AssetId, Read, RecordTime, SecretHash, decimal, non_empty, strict_json, text, with_result};
use crate::json::{self, At, Cursor, Members};
use crate::report::{Code, Origin, Refusal};

/// The order record: the service's second statement about an order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct OrderRecord {
    /// The order's id, in the letter case of the record.
    pub order_id: String,
    /// The leg on which the owner pays.
    pub source_swap: SwapRecord,
    /// The leg on which the owner is paid.
    pub destination_swap: SwapRecord,
    /// Time of creation; `None` if it is missing or empty.
    #[serde(serialize_with = "or_empty")]
    pub created_at: Option<RecordTime>,
    /// The order's nonce, a decimal number, often beyond 53 bits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nonce: Option<String>,
    /// `v1`, `v2` or `v3`: which fields an EVM swap id binds.
    pub version: String,
    /// The solver's id, if the record names it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub solver_id: Option<String>,
    /// The application that embeds the wallet, if the record names it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub integrator: Option<String>,
    /// Until when the payment must be confirmed (`docs/spec/service.md#times`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline: Option<RecordTime>,
    /// Affiliate fees; the shape of their entries is not documented.
    pub affiliate_fees: Vec<RecordFee>,
}

/// An affiliate fee, with those of its members that could be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct RecordFee {
    /// The asset id, if there is one.
    pub asset: Option<String>,
    /// The recipient's address, if there is one.
    pub address: Option<String>,
    /// The fee in basis points, as written, if there is one.
    pub fee: Option<String>,
}

/// One leg of an order, as its record states it. The service writes `""` or 0 for what has not happened yet. Both are `None` here, and
/// `None` is serialized as the service writes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SwapRecord {
    /// Id of the swap in the HTLC; on Bitcoin-like chains the HTLC's address.
    pub swap_id: String,
    /// Chain name.
    pub chain: String,
    /// Asset id.
    pub asset: AssetId,
    /// Who funds, and gets refunds.
    pub initiator: String,
    /// Who redeems.
    pub redeemer: String,
    /// On Bitcoin-like chains the x-only key of the party that is written as an address; on other chains the delegate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delegate: Option<String>,
    /// The timelock, in the chain's own unit: blocks, slots or milliseconds.
    pub timelock: u64,
    /// The amount in base units.
    #[serde(serialize_with = "decimal")]
    pub amount: U256,
    /// The amount that has arrived, in base units.
    #[serde(serialize_with = "decimal")]
    pub filled_amount: U256,
    /// SHA-256 of the secret.
    pub secret_hash: SecretHash,
    /// The secret in hex, once it is public.
    #[serde(serialize_with = "or_empty")]
    pub secret: Option<String>,
    /// Presigned instant refund of a Bitcoin-like swap, a raw transaction in hex.
    #[serde(serialize_with = "or_empty")]
    pub instant_refund_tx: Option<String>,
    /// Id of the funding transaction. On Bitcoin-like chains `<txid>:<number>`, several separated by commas.
    #[serde(serialize_with = "or_empty")]
    pub initiate_tx_hash: Option<String>,
    /// Id of the redeeming transaction.
    #[serde(serialize_with = "or_empty")]
    pub redeem_tx_hash: Option<String>,
    /// Id of the refunding transaction.
    #[serde(serialize_with = "or_empty")]
    pub refund_tx_hash: Option<String>,
    /// Block of the funding.
    #[serde(serialize_with = "or_zero")]
    pub initiate_block_number: Option<u64>,
    /// Block of the redemption.
    #[serde(serialize_with = "or_zero")]
    pub redeem_block_number: Option<u64>,
    /// Block of the refund.
    #[serde(serialize_with = "or_zero")]
    pub refund_block_number: Option<u64>,
    /// Number of confirmations that the service waits for.
    pub required_confirmations: u64,
    /// Number of confirmations so far.
    pub current_confirmations: u64,
    /// Time of the funding. It can be missing although the swap is confirmed, so no state follows from a missing time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initiate_timestamp: Option<RecordTime>,
    /// Time of the redemption.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub redeem_timestamp: Option<RecordTime>,
    /// Time of the refund.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refund_timestamp: Option<RecordTime>,
}

impl OrderRecord {
    /// Parses a record, bare or in its envelope.
    ///
    /// # Errors
    ///
    /// A [`Refusal`] with a pointer into the text.
    pub fn from_json(text: &[u8]) -> Result<Self, Refusal> {
        const AT: At<'_> = At::of("", Origin::Service);
        Self::read_enveloped(Cursor::new(&json::parse(text).map_err(|refusal| refusal.within(&AT))?, AT)).map(|(record, _)| record)
    }

    /// Reads a record, bare or in its envelope, and returns whether it came in its envelope.
    ///
    /// # Errors
    ///
    /// A [`Refusal`] at the first member that does not have its shape.
    pub fn read_enveloped(cursor: Cursor<'_, '_>) -> Result<(Self, bool), Refusal> {
        let members = cursor.object()?;
        if members.get("source_swap").is_none() && members.get("result").is_some() {
            return with_result(cursor, Self::read).map(|record| (record, true));
        }
        Self::read(cursor).map(|record| (record, false))
    }
}

strict_json!(OrderRecord);

impl SwapRecord {
    /// Returns whether any member states that funds have arrived or are on their way.
    #[must_use]
    pub fn is_funded(&self) -> bool {
        self.signs_of_funding().iter().any(|(_, sign)| sign.is_some())
    }

    /// Returns whether any member states that the swap is redeemed.
    #[must_use]
    pub fn is_redeemed(&self) -> bool {
        self.signs_of_redemption().iter().any(|(_, sign)| sign.is_some())
    }

    /// Returns whether any member states that the swap is refunded.
    #[must_use]
    pub fn is_refunded(&self) -> bool {
        self.signs_of_refund().iter().any(|(_, sign)| sign.is_some())
    }

    /// Returns the members that can state that funds have arrived, each with its value if it does.
    pub(crate) fn signs_of_funding(&self) -> [(&'static str, Option<String>); 4] {
        [
            ("initiate_tx_hash", self.initiate_tx_hash.clone()),
            ("initiate_block_number", text_of(self.initiate_block_number)),
            ("filled_amount", Some(self.filled_amount.to_string()).filter(|_| !self.filled_amount.is_zero())),
            ("current_confirmations", text_of(non_zero(self.current_confirmations))),
        ]
    }

    /// Returns the members that can state that the swap is redeemed, each with its value if it does.
    pub(crate) fn signs_of_redemption(&self) -> [(&'static str, Option<String>); 2] {
        [("redeem_tx_hash", self.redeem_tx_hash.clone()), ("redeem_block_number", text_of(self.redeem_block_number))]
    }

    /// Returns the members that can state that the swap is refunded, each with its value if it does.
    pub(crate) fn signs_of_refund(&self) -> [(&'static str, Option<String>); 2] {
        [("refund_tx_hash", self.refund_tx_hash.clone()), ("refund_block_number", text_of(self.refund_block_number))]
    }
}

fn text_of(number: Option<u64>) -> Option<String> {
    number.map(|number| number.to_string())
}

fn non_zero(number: u64) -> Option<u64> {
    Some(number).filter(|number| *number != 0)
}

impl Read for OrderRecord {
    fn read(cursor: Cursor<'_, '_>) -> Result<Self, Refusal> {
        let members = cursor.object()?;
        Ok(Self {
            order_id: members.need("order_id")?.text()?.to_owned(),
            source_swap: SwapRecord::read(members.need("source_swap")?)?,
            destination_swap: SwapRecord::read(members.need("destination_swap")?)?,
            created_at: non_empty(&members, "created_at")?.map(RecordTime),
            nonce: members.get("nonce").map(|cursor| cursor.any_number().map(|nonce| nonce.to_string())).transpose()?,
            version: members.need("version")?.text()?.to_owned(),
            solver_id: text(&members, "solver_id")?,
            integrator: text(&members, "integrator")?,
            deadline: members.get("deadline").map(scalar).transpose()?.map(RecordTime),
            affiliate_fees: members.get("affiliate_fees").map(RecordFee::list).unwrap_or_default(),
        })
    }
}

impl RecordFee {
    /// Reads the fees, whatever shape the member has. They are shown, but never relied on.
    fn list(cursor: Cursor<'_, '_>) -> Vec<Self> {
        // A parsed array of small numbers takes a byte for each. As a fee, each would take a hundred times as much.
        if cursor.byte_array().is_ok_and(|bytes| !bytes.is_empty()) {
            return vec![Self::of(cursor)];
        }
        match cursor.array() {
            Ok(entries) => entries.map(Self::of).collect(),
            Err(_) => vec![Self::of(cursor)],
        }
    }

    fn of(cursor: Cursor<'_, '_>) -> Self {
        let member = |key| cursor.object().ok().and_then(|members| scalar(members.get(key)?).ok());
        Self { asset: member("asset"), address: member("address"), fee: member("fee") }
    }
}

impl Read for SwapRecord {
    fn read(cursor: Cursor<'_, '_>) -> Result<Self, Refusal> {
        let members = cursor.object()?;
        let need = |key| members.need(key).and_then(|cursor| cursor.text().map(str::to_owned));
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
            filled_amount: members.get("filled_amount").map(|cursor| cursor.decimal()).transpose()?.unwrap_or_default(),
            secret_hash: SecretHash::parse(secret_hash.text()?).map_err(|error| secret_hash.refuse(error))?,
            secret: non_empty(&members, "secret")?,
            instant_refund_tx: non_empty(&members, "instant_refund_tx")?,
            initiate_tx_hash: non_empty(&members, "initiate_tx_hash")?,
            redeem_tx_hash: non_empty(&members, "redeem_tx_hash")?,
            refund_tx_hash: non_empty(&members, "refund_tx_hash")?,
            initiate_block_number: non_zero(count(&members, "initiate_block_number")?),
            redeem_block_number: non_zero(count(&members, "redeem_block_number")?),
            refund_block_number: non_zero(count(&members, "refund_block_number")?),
            required_confirmations: count(&members, "required_confirmations")?,
            current_confirmations: count(&members, "current_confirmations")?,
            initiate_timestamp: text(&members, "initiate_timestamp")?.map(RecordTime),
            redeem_timestamp: text(&members, "redeem_timestamp")?.map(RecordTime),
            refund_timestamp: text(&members, "refund_timestamp")?.map(RecordTime),
        })
    }
}

/// Serializes `None` as the service does, as an empty text.
fn or_empty<S: Serializer>(text: &Option<impl AsRef<str>>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(text.as_ref().map_or("", AsRef::as_ref))
}

/// Serializes `None` as the service does, as a zero.
fn or_zero<S: Serializer>(number: &Option<u64>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(number.unwrap_or_default())
}

/// Reads a count, written as a number or a string; 0 if it is missing.
fn count(members: &Members<'_, '_>, key: &str) -> Result<u64, Refusal> {
    let Some(cursor) = members.get(key) else { return Ok(0) };
    u64::try_from(cursor.any_number()?).map_err(|_| cursor.refuse(Code::NumberTooLarge))
}

/// Reads a number or a string, as text.
fn scalar(cursor: Cursor<'_, '_>) -> Result<String, Refusal> {
    cursor.integer().map(|number| number.to_string()).or_else(|_| cursor.text().map(str::to_owned))
}

#[cfg(test)]
mod tests {
    use countersign_chains::UnixTime;
    use serde_json::{Value, json};

    use super::*;

    fn record(created_at: &str, swap: &Value) -> Value {
        let swap = || {
            let mut whole = json!({
                "swap_id": "a1", "chain": "base", "asset": "base:usdc", "initiator": "b", "redeemer": "c", "timelock": 5, "amount": "7",
                "filled_amount": "0", "secret_hash": "ab".repeat(32), "secret": "", "instant_refund_tx": "", "initiate_tx_hash": "",
                "redeem_tx_hash": "", "refund_tx_hash": "", "initiate_block_number": 0, "redeem_block_number": 0, "refund_block_number": 0,
                "required_confirmations": 3, "current_confirmations": 0,
            });
            whole.as_object_mut().unwrap().extend(swap.as_object().unwrap().clone());
            whole
        };
        json!({"order_id": "id", "source_swap": swap(), "destination_swap": swap(), "created_at": created_at, "version": "v3", "affiliate_fees": []})
    }

    fn read(record: &Value) -> OrderRecord {
        OrderRecord::from_json(record.to_string().as_bytes()).unwrap()
    }

    #[test]
    fn what_is_not_known_yet_is_none_and_is_written_as_the_service_writes_it() {
        let text = record("", &json!({}));
        let OrderRecord { created_at, source_swap: swap, .. } = read(&text);
        assert_eq!((created_at, swap.secret, swap.instant_refund_tx, swap.redeem_timestamp), (None, None, None, None));
        assert_eq!([swap.initiate_tx_hash, swap.redeem_tx_hash, swap.refund_tx_hash], [None, None, None]);
        assert_eq!([swap.initiate_block_number, swap.redeem_block_number, swap.refund_block_number], [None, None, None]);
        assert_eq!(serde_json::to_value(read(&text)).unwrap(), text);
        // Missing means the same.
        let mut bare = text.clone();
        bare.as_object_mut().unwrap().remove("created_at");
        bare["source_swap"].as_object_mut().unwrap().retain(|key, _| !key.ends_with("_tx_hash") && !key.ends_with("_block_number"));
        assert_eq!(read(&bare), read(&text));
    }

    #[test]
    fn what_is_known_is_kept_as_written_also_a_malformed_time() {
        let known = json!({
            "secret": "0x", "initiate_tx_hash": "t", "redeem_block_number": 9, "initiate_timestamp": "2025-07-09T06:38:18+02:00",
            "redeem_timestamp": "yesterday", "refund_timestamp": "",
        });
        let (text, at) = (record("1752035898", &known), Some(UnixTime::from_secs(1_752_035_898)));
        let OrderRecord { created_at, source_swap: swap, .. } = read(&text);
        assert_eq!((swap.secret.as_deref(), swap.initiate_tx_hash.as_deref(), swap.redeem_block_number), (Some("0x"), Some("t"), Some(9)));
        let times = [created_at, swap.initiate_timestamp, swap.redeem_timestamp, swap.refund_timestamp];
        assert_eq!(times.map(|time| time.unwrap().time()), [at, at, None, None]);
        assert_eq!(serde_json::to_value(read(&text)).unwrap(), text);
    }
}
