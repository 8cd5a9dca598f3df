//! Builds the requests of the interface, independently of any HTTP stack (`docs/spec/service.md#endpoints`).

use std::fmt;
use std::str::FromStr;

use countersign::json::Cursor;
use countersign::wire::BasisPoints;
use countersign::{AssetId, Code, CreateOrder, GaslessSubmission, Refusal, U256};
use serde::{Serialize, Serializer};
use serde_json::json;
use url::Url;
use zeroize::Zeroizing;

use crate::affiliate;
use crate::error::Error;
use crate::secret::{AppId, Secret};
use countersign_transport::{Method, Request, is_safe};
use countersign_transport::{TransportError, TransportErrorKind};

const JSON: &str = "application/json";

/// An order id: 64 hex digits without `0x`. Only this form can become part of a URL's path.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct OrderId(String);

impl OrderId {
    /// Parses an id.
    ///
    /// # Errors
    ///
    /// [`Code::OrderIdMalformed`] at `/order_id`.
    pub fn parse(text: &str) -> Result<Self, Error> {
        if text.len() == 64 && text.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return Ok(Self(text.to_owned()));
        }
        Err(Error::Input(Refusal::new(Code::OrderIdMalformed, "/order_id").with_actual(text)))
    }

    /// Reads the `order_id` of a result.
    pub(crate) fn from_result(result: Cursor<'_, '_>) -> Result<Self, Refusal> {
        let members = result.object()?;
        let id = members.need("order_id")?;
        Self::parse(id.text()?).map_err(|_| id.refuse(Code::OrderIdMalformed))
    }

    /// Returns the hex digits, in the case in which they were received.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for OrderId {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        Self::parse(text)
    }
}

impl AsRef<str> for OrderId {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl Serialize for OrderId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl fmt::Display for OrderId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The parameters of `GET /v2/quote`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct QuoteRequest {
    /// Source asset.
    pub from: AssetId,
    /// Destination asset.
    pub to: AssetId,
    /// The amount of one of the legs, in base units.
    pub amount: QuoteAmount,
    /// Affiliate fee; `None` for no fee.
    pub affiliate_fee: Option<BasisPoints>,
    /// Slippage that the owner allows; `None` for the service's default.
    pub slippage: Option<BasisPoints>,
    /// Whether to include quotes that exceed the available liquidity.
    pub indicative: bool,
}

/// The amount of a quote, given for one of the legs, in base units.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a swap has two legs")]
pub enum QuoteAmount {
    /// The amount that the owner pays.
    From(U256),
    /// The amount that the owner receives.
    To(U256),
}

impl QuoteRequest {
    /// Creates a request without options.
    #[must_use]
    pub const fn new(from: AssetId, to: AssetId, amount: QuoteAmount) -> Self {
        Self { from, to, amount, affiliate_fee: None, slippage: None, indicative: false }
    }
}

/// The filter of `GET /v2/orders`. A field that is `None` or empty is not sent, and matches any order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "a set of filters; new ones are a new version of the interface")]
pub struct OrderFilter {
    /// Owner on the source chain.
    pub from_owner: Option<String>,
    /// Owner on the destination chain.
    pub to_owner: Option<String>,
    /// Any address in the order.
    pub address: Option<String>,
    /// Id of any transaction of the order.
    pub tx_hash: Option<String>,
    /// Name of the source chain.
    pub from_chain: Option<String>,
    /// Name of the destination chain.
    pub to_chain: Option<String>,
    /// The statuses, of which an order has one; empty for any.
    pub status: Vec<OrderStatus>,
    /// The first page to fetch; `None` for the service's first.
    pub page: Option<u64>,
    /// Entries per page; `None` for the service's default.
    pub per_page: Option<u64>,
}

/// A status by which orders can be listed (`docs/spec/service.md#listing-orders`). It is the service's word; [`State`](crate::State) follows
/// from the record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OrderStatus {
    /// The owner has not paid.
    NotInitiated,
    /// The owner has paid.
    InProgress,
    /// The swap is complete.
    Completed,
    /// The owner did not pay in time.
    Expired,
    /// The owner has the source funds back.
    Refunded,
    /// What the service's own application shows.
    Display,
}

impl OrderStatus {
    /// Every status.
    pub const ALL: [Self; 6] = [Self::NotInitiated, Self::InProgress, Self::Completed, Self::Expired, Self::Refunded, Self::Display];

    /// Returns the name in requests, such as `not-initiated`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::NotInitiated => "not-initiated",
            Self::InProgress => "in-progress",
            Self::Completed => "completed",
            Self::Expired => "expired",
            Self::Refunded => "refunded",
            Self::Display => "display",
        }
    }
}

/// The error for a text that is not the name of an [`OrderStatus`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected one of {}", OrderStatus::ALL.map(OrderStatus::name).join(", "))]
pub struct ParseOrderStatusError;

impl FromStr for OrderStatus {
    type Err = ParseOrderStatusError;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|status| status.name() == name).ok_or(ParseOrderStatusError)
    }
}

/// An action on an order: `PATCH /v2/orders/{id}?action=..`.
#[derive(Debug)]
#[expect(clippy::exhaustive_enums, reason = "the interface has these four")]
pub enum Action<'a> {
    /// Gasless initiation, with the submission that [`countersign::Signed::gasless`] returns.
    Initiate(&'a GaslessSubmission),
    /// Redemption by the service's relayer, which learns the secret. A [`Driver`](crate::Driver) checks the order first.
    Redeem {
        /// The secret.
        secret: &'a Secret,
    },
    /// Refund by the service's relayer.
    Refund,
    /// The owner's consent to an early refund on Bitcoin-like chains.
    InstantRefund {
        /// One signature for each sighash: 65 bytes as 130 hex digits.
        signatures: &'a [String],
    },
}

impl Action<'_> {
    const fn name(&self) -> &'static str {
        match self {
            Self::Initiate(_) => "initiate",
            Self::Redeem { .. } => "redeem",
            Self::Refund => "refund",
            Self::InstantRefund { .. } => "instant-refund",
        }
    }

    fn body(&self) -> Zeroizing<Vec<u8>> {
        let text = match self {
            Self::Initiate(submission) => json!({ "signature": submission.signature }).to_string(),
            // Assembled in a wiped buffer: a JSON value would leave behind a copy of the secret that is never wiped.
            Self::Redeem { secret } => {
                let mut body = Zeroizing::new(Vec::with_capacity(80));
                body.extend_from_slice(br#"{"secret":""#);
                body.extend_from_slice(secret.to_hex().as_bytes());
                body.extend_from_slice(br#""}"#);
                return body;
            }
            Self::Refund => "{}".to_owned(),
            Self::InstantRefund { signatures } => json!({ "signatures": signatures }).to_string(),
        };
        Zeroizing::new(text.into_bytes())
    }
}

/// Additional query parameters as names and values. The interface accepts them without documenting them.
pub type ExtraParameters<'a> = &'a [(&'a str, &'a str)];

/// A builder of the requests to one service, for one application.
///
/// ```
/// use countersign_client::{Api, List};
///
/// # fn main() -> Result<(), countersign_client::Error> {
/// let request = Api::new("https://service.example", None)?.list(List::Chains, &[]);
/// assert_eq!(request.url.as_str(), "https://service.example/v2/chains");
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Api {
    base: Url,
    app_id: Option<AppId>,
}

/// Shows the host alone: the path of a URL can be a key.
impl fmt::Debug for Api {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Api").field("host", &self.base.host_str()).field("app_id", &self.app_id).finish()
    }
}

impl Api {
    /// Creates a builder for the service at `base`, the URL below which `/v2` is located. `app_id` is sent with every request except
    /// [`Api::health`].
    ///
    /// # Errors
    ///
    /// [`TransportErrorKind::Insecure`] unless `base` is an `https` URL, or an `http` URL of this machine, without user, password, query
    /// and fragment.
    pub fn new(base: &str, app_id: Option<AppId>) -> Result<Self, Error> {
        let refuse = |why| Error::Transport(TransportError::new(TransportErrorKind::Insecure, why));
        let mut base = Url::parse(base).map_err(|_| refuse("the base address is not a URL"))?;
        if !is_safe(&base) || base.query().is_some() {
            return Err(refuse("the base address must be https, or http to this machine, without user, password, query and fragment"));
        }
        let path = base.path().trim_end_matches('/').to_owned();
        base.set_path(&path);
        Ok(Self { base, app_id })
    }

    /// Builds `GET /v2/quote`.
    ///
    /// # Errors
    ///
    /// [`Error::Input`] with [`Code::NumberTooLarge`] for a fee or slippage above 10000 basis points.
    pub fn quote(&self, quote: &QuoteRequest) -> Result<Request, Error> {
        let mut query = vec![("from", quote.from.to_string()), ("to", quote.to.to_string())];
        query.push(match quote.amount {
            QuoteAmount::From(amount) => ("from_amount", amount.to_string()),
            QuoteAmount::To(amount) => ("to_amount", amount.to_string()),
        });
        if let Some(fee) = quote.affiliate_fee {
            query.push(("affiliate_fee", fee.check("/affiliate_fee").map_err(Error::Input)?.to_string()));
        }
        if let Some(slippage) = quote.slippage {
            query.push(("slippage", slippage.check("/slippage").map_err(Error::Input)?.to_string()));
        }
        if quote.indicative {
            query.push(("indicative", "true".to_owned()));
        }
        Ok(self.get(&["quote"], &query))
    }

    /// Builds `POST /v2/orders`.
    ///
    /// # Errors
    ///
    /// [`Error::Input`] with [`Code::NumberTooLarge`] for affiliate fees above 10000 basis points in total.
    pub fn create_order(&self, order: &CreateOrder) -> Result<Request, Error> {
        affiliate::check(&order.affiliate_fees)?;
        let body = serde_json::to_vec(order).map_err(|_| Error::Input(Refusal::new(Code::Internal, "")))?;
        Ok(self.request(Method::Post, &["orders"], &NONE, Some(Zeroizing::new(body))))
    }

    /// Builds `GET /v2/orders/{order}`.
    #[must_use]
    pub fn order(&self, id: &OrderId) -> Request {
        self.get(&["orders", id.as_str()], &NONE)
    }

    /// Builds `GET /v2/orders`.
    #[must_use]
    pub fn orders(&self, filter: &OrderFilter) -> Request {
        let number = |number: Option<u64>| number.map(|number| number.to_string());
        let statuses: Vec<_> = filter.status.iter().map(|status| status.name()).collect();
        let query: Vec<_> = [
            ("from_owner", filter.from_owner.clone()),
            ("to_owner", filter.to_owner.clone()),
            ("address", filter.address.clone()),
            ("tx_hash", filter.tx_hash.clone()),
            ("from_chain", filter.from_chain.clone()),
            ("to_chain", filter.to_chain.clone()),
            ("page", number(filter.page)),
            ("per_page", number(filter.per_page)),
            ("status", Some(statuses.join(",")).filter(|statuses| !statuses.is_empty())),
        ]
        .into_iter()
        .filter_map(|(name, value)| Some((name, value?)))
        .collect();
        self.get(&["orders"], &query)
    }

    /// Builds `PATCH /v2/orders/{order_id}?action=..`.
    #[must_use]
    pub fn act(&self, id: &OrderId, action: &Action<'_>) -> Request {
        let query = [("action", action.name())];
        self.request(Method::Patch, &["orders", id.as_str()], &query, Some(action.body()))
    }

    /// Builds `GET /v2/orders/{id}/instant-refund-hash`.
    #[must_use]
    pub fn instant_refund_hash(&self, id: &OrderId) -> Request {
        self.get(&["orders", id.as_str(), "instant-refund-hash"], &NONE)
    }

    /// Builds `GET /v2/apps/earnings`.
    #[must_use]
    pub fn earnings(&self) -> Request {
        self.get(&["apps", "earnings"], &NONE)
    }

    /// Builds `GET /v2/<list>`.
    #[must_use]
    pub fn list(&self, list: List, extra: ExtraParameters<'_>) -> Request {
        self.get(&[list.name()], extra)
    }

    /// Builds `GET /v2/schemas/{name}`.
    ///
    /// # Errors
    ///
    /// [`Error::Input`] with [`Code::TextNotPlain`] unless the name consists of 1 to 64 ASCII letters, digits and characters of `_:-.`,
    /// and not of dots alone.
    pub fn schema(&self, name: &str) -> Result<Request, Error> {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b':' | b'-' | b'.');
        if (1..=64).contains(&name.len()) && name.bytes().all(plain) && !name.bytes().all(|byte| byte == b'.') {
            return Ok(self.get(&["schemas", name], &NONE));
        }
        Err(Error::Input(Refusal::new(Code::TextNotPlain, "/name").with_actual(name)))
    }

    /// Builds `GET /v2/health`, the only request without the application id.
    #[must_use]
    pub fn health(&self) -> Request {
        let mut request = self.get(&["health"], &NONE);
        request.headers.retain(|(name, _)| *name != APP_ID);
        request
    }

    fn get<K: AsRef<str>, V: AsRef<str>>(&self, path: &[&str], query: &[(K, V)]) -> Request {
        self.request(Method::Get, path, query, None)
    }

    fn request<K: AsRef<str>, V: AsRef<str>>(
        &self,
        method: Method,
        path: &[&str],
        query: &[(K, V)],
        body: Option<Zeroizing<Vec<u8>>>,
    ) -> Request {
        let mut url = self.base.clone();
        // No part needs escaping: ids and names were checked, and the other parts are constants.
        url.set_path(&format!("{}/v2/{}", self.base.path().trim_end_matches('/'), path.join("/")));
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        let plain = |text: &str| Zeroizing::new(text.to_owned());
        // A cached record could be outdated.
        let mut headers = vec![("accept", plain(JSON)), ("accept-encoding", plain("identity")), ("cache-control", plain("no-cache"))];
        if body.is_some() {
            headers.push(("content-type", plain(JSON)));
        }
        if let Some(id) = &self.app_id {
            headers.push((APP_ID, id.expose()));
        }
        let mut request = Request::new(method, url);
        (request.headers, request.body) = (headers, body);
        request
    }
}

const APP_ID: &str = "service-app-id";
const NONE: [(&str, &str); 0] = [];

/// The endpoints that return a list or a single public value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum List {
    /// `GET /v2/chains`
    Chains,
    /// `GET /v2/assets`
    Assets,
    /// `GET /v2/liquidity`
    Liquidity,
    /// `GET /v2/fee`
    Fee,
    /// `GET /v2/fees`, the older name
    Fees,
    /// `GET /v2/volume`
    Volume,
    /// `GET /v2/schemas`
    Schemas,
    /// `GET /v2/policy`
    Policy,
}

impl List {
    const fn name(self) -> &'static str {
        match self {
            Self::Chains => "chains",
            Self::Assets => "assets",
            Self::Liquidity => "liquidity",
            Self::Fee => "fee",
            Self::Fees => "fees",
            Self::Volume => "volume",
            Self::Schemas => "schemas",
            Self::Policy => "policy",
        }
    }
}
