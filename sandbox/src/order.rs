//! An order as the ledger stores it.

use chrono::{DateTime, SecondsFormat};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::chains::{Leg, Terms};
use crate::http::put;

/// How long an order waits for its payment, in milliseconds. The service's clients expect this value.
pub const PAYMENT_WINDOW: u64 = 3_600_000;
/// The same where the source is Bitcoin.
pub const BITCOIN_PAYMENT_WINDOW: u64 = 21_600_000;

/// Everything that is known about an order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Order {
    /// The order's id: 64 hex digits.
    pub id: String,
    /// Its place among all orders, starting at 1.
    pub number: u64,
    /// When it was created, in milliseconds since 1970.
    pub created_at: u64,
    /// The nonce of the request, or the order's number if the request had none.
    pub nonce: String,
    /// The affiliate fees of the request.
    pub affiliate_fees: Value,
    /// The application id of the request.
    pub integrator: String,
    /// The side of the user's payment.
    pub source: Side,
    /// The side of the solver's payment.
    pub destination: Side,
    /// The secret that the service generated because the request had no hash.
    pub kept_secret: Option<String>,
    /// The answer, which a repeated request gets again.
    pub answer: Value,
}

/// One side of an order, with what its chain has shown.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Side {
    /// The asset id.
    pub asset: String,
    /// In base units.
    pub amount: u128,
    /// The user's address, as in the request.
    pub owner: String,
    /// The delegate in the request.
    pub delegate: Option<String>,
    /// In the chain's own units.
    pub timelock: u64,
    /// The secret hash, in hex.
    pub secret_hash: String,
    /// The id of the HTLC.
    pub swap_id: String,
    /// The account that locks.
    pub initiator: String,
    /// The account that redeems.
    pub redeemer: String,
    /// The user's key on Bitcoin-like chains.
    pub shown_delegate: Option<String>,
    /// What has been paid so far, in base units.
    pub filled: u128,
    /// The price of a whole unit, in USD.
    pub price: f64,
    /// The payments.
    pub initiated: Option<Seen>,
    /// The redemption.
    pub redeemed: Option<Seen>,
    /// The refund.
    pub refunded: Option<Seen>,
    /// The secret, in hex, once this chain shows it.
    pub secret: Option<String>,
}

/// A transaction in a block.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    /// The id as records spell it. Several payments are separated by commas.
    pub transaction: String,
    /// The block, slot or checkpoint of the first transaction.
    pub height: u64,
    /// When it was first seen, in milliseconds since 1970.
    pub at: u64,
}

impl Side {
    /// Returns a side on which nothing has happened.
    #[must_use]
    pub fn new(terms: &Terms, leg: Leg, price: f64) -> Self {
        Self {
            asset: terms.asset.clone(),
            amount: terms.amount,
            owner: terms.owner.clone(),
            delegate: terms.delegate.clone(),
            timelock: terms.timelock,
            secret_hash: hex::encode(terms.secret_hash),
            swap_id: leg.swap_id,
            initiator: leg.initiator,
            redeemer: leg.redeemer,
            shown_delegate: leg.delegate,
            filled: 0,
            price,
            initiated: None,
            redeemed: None,
            refunded: None,
            secret: None,
        }
    }

    /// Returns the chain's name.
    #[must_use]
    pub fn chain(&self) -> &str {
        self.asset.split_once(':').map_or(self.asset.as_str(), |(chain, _)| chain)
    }

    /// Returns the terms in the form that the chain's engine takes.
    #[must_use]
    pub fn terms(&self, is_source: bool) -> Terms {
        let mut secret_hash = [0; 32];
        if hex::decode_to_slice(&self.secret_hash, &mut secret_hash).is_err() {
            secret_hash = [0; 32];
        }
        Terms {
            asset: self.asset.clone(),
            amount: self.amount,
            owner: self.owner.clone(),
            delegate: self.delegate.clone(),
            is_source,
            timelock: self.timelock,
            secret_hash,
        }
    }

    /// Returns whether this side has been redeemed or refunded.
    #[must_use]
    pub const fn has_ended(&self) -> bool {
        self.redeemed.is_some() || self.refunded.is_some()
    }

    /// Removes what the chain has shown.
    fn forget(&mut self) {
        self.filled = 0;
        self.initiated = None;
        self.redeemed = None;
        self.refunded = None;
        self.secret = None;
    }

    fn record(&self, created_at: &str, height: u64) -> Value {
        let id = |seen: &Option<Seen>| seen.as_ref().map_or_else(String::new, |seen| seen.transaction.clone());
        let block = |seen: &Option<Seen>| seen.as_ref().map_or_else(|| "0".to_owned(), |seen| seen.height.to_string());
        let time = |seen: &Option<Seen>| seen.as_ref().map_or(Value::Null, |seen| json!(iso(seen.at)));
        let confirmations = self.initiated.as_ref().map_or(0, |seen| height.saturating_sub(seen.height).saturating_add(1).min(1));
        let mut record = json!({
            "created_at": created_at, "swap_id": self.swap_id, "chain": self.chain(), "asset": self.asset, "initiator": self.initiator,
            "redeemer": self.redeemer, "timelock": self.timelock, "filled_amount": self.filled.to_string(), "asset_price": self.price,
            "amount": self.amount.to_string(), "secret_hash": self.secret_hash, "secret": self.secret.clone().unwrap_or_default(),
            "initiate_tx_hash": id(&self.initiated), "redeem_tx_hash": id(&self.redeemed), "refund_tx_hash": id(&self.refunded),
            "initiate_block_number": block(&self.initiated), "redeem_block_number": block(&self.redeemed),
            "refund_block_number": block(&self.refunded), "required_confirmations": 1, "current_confirmations": confirmations,
            "initiate_timestamp": time(&self.initiated), "redeem_timestamp": time(&self.redeemed), "refund_timestamp": time(&self.refunded),
        });
        if let Some(delegate) = &self.shown_delegate {
            put(&mut record, "delegate", json!(delegate));
        }
        record
    }
}

/// The values of the filter `status` of `GET /v2/orders`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// Nothing has been paid, and the time for it has not run out.
    NotInitiated,
    /// The source has been paid, and the order has not ended.
    InProgress,
    /// The destination has been redeemed.
    Completed,
    /// The source has been refunded.
    Refunded,
    /// Nothing was paid in time.
    Expired,
}

impl Order {
    /// Returns the time by which the payment must have been seen.
    #[must_use]
    pub fn deadline(&self) -> u64 {
        let window = if self.source.chain().starts_with("bitcoin") { BITCOIN_PAYMENT_WINDOW } else { PAYMENT_WINDOW };
        self.created_at.saturating_add(window)
    }

    /// Returns the order's status at a time, in milliseconds.
    #[must_use]
    pub fn status(&self, now: u64) -> Status {
        match (&self.destination.redeemed, &self.source.refunded, &self.source.initiated) {
            (Some(_), ..) => Status::Completed,
            (None, Some(_), _) => Status::Refunded,
            (None, None, Some(_)) => Status::InProgress,
            (None, None, None) if now > self.deadline() => Status::Expired,
            (None, None, None) => Status::NotInitiated,
        }
    }

    /// Returns whether neither the solver nor the relayer has anything left to do.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.source.has_ended() && (self.destination.initiated.is_none() || self.destination.has_ended())
    }

    /// Returns the order without what the chains have shown.
    #[must_use]
    pub fn as_made(&self) -> Self {
        let mut order = self.clone();
        order.source.forget();
        order.destination.forget();
        order
    }

    /// Adapts an open order to chains that have started anew. If its user has received nothing yet, the order becomes
    /// unpaid again. If the user has redeemed the destination or got the payment back, it stays as it is.
    pub fn lose_chains(&mut self) {
        if self.destination.redeemed.is_none() && !self.source.has_ended() {
            *self = self.as_made();
        }
    }

    /// Returns the record for `GET /v2/orders/{order}`, with the newest heights of both chains.
    #[must_use]
    pub fn record(&self, heights: [u64; 2], solver: &str) -> Value {
        let created_at = iso(self.created_at);
        let [source, destination] = heights;
        json!({
            "created_at": created_at, "source_swap": self.source.record(&created_at, source),
            "destination_swap": self.destination.record(&created_at, destination), "nonce": self.nonce, "order_id": self.id,
            "affiliate_fees": self.affiliate_fees, "version": "v3", "solver_id": solver, "integrator": self.integrator,
            "deadline": self.deadline() / 1_000,
        })
    }
}

/// Returns a time in the format of records: UTC, with six digits after the second.
#[must_use]
pub fn iso(millis: u64) -> String {
    let time = i64::try_from(millis).ok().and_then(DateTime::from_timestamp_millis).unwrap_or_default();
    time.to_rfc3339_opts(SecondsFormat::Micros, true)
}
