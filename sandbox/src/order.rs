//! An order as the ledger keeps it.

use chrono::{DateTime, SecondsFormat};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::chains::{Leg, Terms};

/// How long an order waits for its payment, in milliseconds: that of the service's clients.
pub const PAYMENT_WINDOW: u64 = 3_600_000;
/// The same where the source is Bitcoin.
pub const BITCOIN_PAYMENT_WINDOW: u64 = 21_600_000;

/// Everything that is known of an order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Order {
    /// 64 hex digits.
    pub id: String,
    /// Its place among all orders, from 1.
    pub number: u64,
    /// Milliseconds since 1970.
    pub created_at: u64,
    /// As the request had it; otherwise the order's number.
    pub nonce: String,
    /// As the request had them.
    pub affiliate_fees: Value,
    /// The application id of the request.
    pub integrator: String,
    /// The side of the user's payment.
    pub source: Side,
    /// The side of the solver's payment.
    pub destination: Side,
    /// The secret of an order whose request had no hash.
    pub kept_secret: Option<String>,
    /// What was answered, for a request that comes again.
    pub answer: Value,
}

/// A leg with what its chain has shown.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Side {
    /// The asset id.
    pub asset: String,
    /// Base units.
    pub amount: u128,
    /// The user's address, as in the request.
    pub owner: String,
    /// The request's delegate.
    pub delegate: Option<String>,
    /// In the chain's units.
    pub timelock: u64,
    /// In hex.
    pub secret_hash: String,
    /// The id of the HTLC.
    pub swap_id: String,
    /// Who locks.
    pub initiator: String,
    /// Who redeems.
    pub redeemer: String,
    /// The user's key on Bitcoin-like chains.
    pub shown_delegate: Option<String>,
    /// Base units that have arrived.
    pub filled: u128,
    /// The price of a whole unit in USD.
    pub price: f64,
    /// The payments, the redemption and the refund.
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
    /// In the spelling of records; several payments are separated by commas.
    pub transaction: String,
    /// The block, slot or checkpoint of the first of them.
    pub height: u64,
    /// Milliseconds since 1970.
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

    /// Returns the terms, as the chain takes them.
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

    /// Returns whether it has been redeemed or refunded.
    #[must_use]
    pub const fn has_ended(&self) -> bool {
        self.redeemed.is_some() || self.refunded.is_some()
    }

    /// Forgets what its chain has shown.
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
        if let (Some(delegate), Some(members)) = (&self.shown_delegate, record.as_object_mut()) {
            members.insert("delegate".to_owned(), json!(delegate));
        }
        record
    }
}

/// What the filter `status` of `GET /v2/orders` tells apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// Nothing has been paid, and there is time.
    NotInitiated,
    /// Paid, and not ended.
    InProgress,
    /// The destination is redeemed.
    Completed,
    /// The source has gone back.
    Refunded,
    /// Nothing was paid in time.
    Expired,
}

impl Order {
    /// When the payment must have been seen.
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

    /// Returns whether nothing can happen any more that the solver or the relayer would act on.
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

    /// What becomes of an order that was under way when the chains were lost. Of one whose user has got nothing yet, nothing has happened
    /// on the new chains: it is unpaid again, and so it says. One whose user has got the destination, or the payment back, stays as it is.
    pub fn lose_chains(&mut self) {
        if self.destination.redeemed.is_none() && !self.source.has_ended() {
            *self = self.as_made();
        }
    }

    /// The record of `GET /v2/orders/{order}`, with the newest heights of both chains.
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

/// Returns a time as records have it: UTC with six digits of a second.
#[must_use]
pub fn iso(millis: u64) -> String {
    let time = i64::try_from(millis).ok().and_then(DateTime::from_timestamp_millis).unwrap_or_default();
    time.to_rfc3339_opts(SecondsFormat::Micros, true)
}
