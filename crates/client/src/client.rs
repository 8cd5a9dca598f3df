//! The client: a method for every endpoint of the interface (`docs/spec/service.md#endpoints`).
//!
//! A method builds its request with [`Api`], sends it through the [`Transport`], retries where [`Retry`] allows it, and parses the
//! response with [`response`](crate::response).

use countersign::json::{Cursor, Value};
use countersign::wire::{AssetRecord, ChainRecord, Earnings, Fees, Page, Quote, Read, SchemaRecord, SolverBalances};
use countersign::{Code, CreateOrder, OrderRecord, Refusal, Registry, number, trust::ServicePins};
use futures_util::{Stream, StreamExt, stream};

use crate::error::Error;
use crate::request::{Action, Api, ExtraParameters, List, OrderFilter, OrderId, QuoteRequest};
use crate::response::{self, Answer};
use crate::retry::{Retry, random};
use crate::route::Routes;
use countersign_transport::{BoxTransport, Request, Response, Transport, TransportError};

/// A client of one service, for one application.
///
/// ```no_run
/// use countersign_client::{Api, Client, Http, OrderId, Timeouts};
///
/// # async fn show() -> Result<(), Box<dyn std::error::Error>> {
/// let client = Client::new(
///     Api::new("https://service.example", None)?,
///     Http::new(Timeouts::default())?,
/// );
/// let id = OrderId::parse(
///     "4784d9c7706413956fcfe6b9148adddc60eb6cfe3765f95b0f50600d874d3c26",
/// )?;
/// if let Some(redemption) =
///     client.order(&id).await?.value.destination_swap.redeem_tx_hash
/// {
///     println!("redeemed by {redemption}");
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Client<T> {
    api: Api,
    transport: T,
    retry: Retry,
}

impl<T: Transport> Client<T> {
    /// Creates a client with the default [`Retry`].
    #[must_use]
    pub fn new(api: Api, transport: T) -> Self {
        Self { api, transport, retry: Retry::default() }
    }

    /// Sets how often a call is attempted, and how long the client waits in between.
    #[must_use]
    pub fn with_retry(mut self, retry: Retry) -> Self {
        self.retry = retry;
        self
    }

    /// Returns the transport.
    #[must_use]
    pub const fn transport(&self) -> &T {
        &self.transport
    }

    /// Erases the type of the transport, so that the client's type does not name its HTTP stack.
    #[must_use]
    pub fn boxed(self) -> Client<BoxTransport>
    where
        T: 'static,
    {
        let Self { api, transport, retry } = self;
        Client { api, transport: BoxTransport::new(transport), retry }
    }

    /// Sends a request, retries where that is safe, and parses the response.
    async fn call<R>(&self, request: &Request, read: impl Fn(Response) -> Result<Answer<R>, Error>) -> Result<Answer<R>, Error> {
        self.call_with(&self.retry, request, read).await
    }

    async fn call_with<R>(
        &self,
        retry: &Retry,
        request: &Request,
        read: impl Fn(Response) -> Result<Answer<R>, Error>,
    ) -> Result<Answer<R>, Error> {
        let mut attempt = 1_u32;
        loop {
            let answer = self.transport.send(request).await.map_err(|error| Error::Transport(at_host(error, &request.url)));
            let status = answer.as_ref().map(|answer| answer.status).unwrap_or_default();
            let result = answer.and_then(&read);
            // Of a request only this is logged. The base of the URL may contain a key, and the rest of a request can be private.
            let (method, host) = (request.method.name(), request.url.host_str());
            let path = request.url.path().rsplit_once("/v2/").map(|(_, path)| path);
            let Err(error) = result else {
                tracing::debug!(method, host, path, attempt, status, "response");
                return result;
            };
            attempt = attempt.saturating_add(1);
            let wait = retry.wait(request.method, &error, attempt, random());
            tracing::debug!(
                method,
                host,
                path,
                attempt = attempt.saturating_sub(1),
                status,
                code = error.code().name(),
                again = wait.is_some(),
                "failed"
            );
            match wait {
                Some(wait) => self.transport.sleep(wait).await,
                None => return Err(error),
            }
        }
    }

    async fn get<R: Read>(&self, request: &Request) -> Result<Answer<R>, Error> {
        self.call(request, response::read).await
    }

    /// Fetches the quotes of all solvers, in the service's order: `GET /v2/quote`.
    ///
    /// # Errors
    ///
    /// Any [`Error`].
    pub async fn quote(&self, quote: &QuoteRequest) -> Result<Answer<Vec<Quote>>, Error> {
        self.get(&self.api.quote(quote)?).await
    }

    /// Creates an order and returns its id: `POST /v2/orders`, sent once.
    ///
    /// The body contains the payloads to sign. Do not trust them before [`crate::Flow::verify`] has succeeded.
    ///
    /// # Errors
    ///
    /// Any [`Error`]; [`Error::may_have_acted`] tells whether the order may exist nevertheless.
    pub async fn create_order(&self, order: &CreateOrder) -> Result<Answer<OrderId>, Error> {
        let request = self.api.create_order(order)?;
        self.call(&request, |response| response::read_with(response, OrderId::from_result)).await
    }

    /// Fetches the record of an order: `GET /v2/orders/{order}`.
    ///
    /// # Errors
    ///
    /// Any [`Error`]; [`Error::Shape`] with [`Code::RecordMismatch`] if the record is that of another order.
    pub async fn order(&self, id: &OrderId) -> Result<Answer<OrderRecord>, Error> {
        self.order_with(id, &self.retry).await
    }

    /// Fetches the record of an order like [`Client::order`], without a second attempt.
    pub(crate) async fn order_once(&self, id: &OrderId) -> Result<Answer<OrderRecord>, Error> {
        self.order_with(id, &Retry { attempts: 1, ..self.retry }).await
    }

    async fn order_with(&self, id: &OrderId, retry: &Retry) -> Result<Answer<OrderRecord>, Error> {
        let reader = |node: Cursor<'_, '_>| {
            let record = OrderRecord::read(node)?;
            let wrong = || node.at().refuse_below(Code::RecordMismatch, "/order_id");
            if record.order_id.eq_ignore_ascii_case(id.as_str()) {
                return Ok(record);
            }
            Err(wrong().with_expected(id.as_str()).with_actual(record.order_id))
        };
        self.call_with(retry, &self.api.order(id), |response| response::read_with(response, reader)).await
    }

    /// Fetches one page of orders: `GET /v2/orders`.
    ///
    /// # Errors
    ///
    /// Any [`Error`].
    pub async fn orders_page(&self, filter: &OrderFilter) -> Result<Answer<Page<OrderRecord>>, Error> {
        self.get(&self.api.orders(filter)).await
    }

    /// Fetches page after page, starting with the filter's: `GET /v2/orders`. The stream ends after the last page, an empty page, a page
    /// that was not requested, or an error.
    ///
    /// The interface does not document whether pages are counted from 0 or 1. The first response shows it
    /// (`docs/spec/service.md#listing-orders`).
    pub fn orders(&self, filter: OrderFilter) -> impl Stream<Item = Result<Answer<Page<OrderRecord>>, Error>> {
        stream::unfold((Some(filter), 0_u64), move |(filter, seen)| async move {
            let mut filter = filter?;
            let answer = self.orders_page(&filter).await;
            let Ok(Answer { value: page, .. }) = &answer else { return Some((answer, (None, seen))) };
            let entries = u64::try_from(page.data.len()).unwrap_or(u64::MAX);
            let seen = seen.saturating_add(entries);
            // A service that returns a different page than requested, or the same one again, must not keep the client in a loop.
            let expected = filter.page.is_none_or(|asked| asked == page.page);
            let more = entries > 0 && expected && seen < page.total_items && page.page < page.total_pages;
            filter.page = page.page.checked_add(1);
            let next = Some(filter).filter(|filter| more && filter.page.is_some());
            Some((answer, (next, seen)))
        })
    }

    /// Fetches the orders of all pages, like [`Client::orders`]: `GET /v2/orders`.
    pub fn all_orders(&self, filter: OrderFilter) -> impl Stream<Item = Result<OrderRecord, Error>> {
        self.orders(filter).flat_map(|answer| match answer {
            Ok(answer) => stream::iter(answer.value.data.into_iter().map(Ok).collect::<Vec<_>>()),
            Err(error) => stream::iter(vec![Err(error)]),
        })
    }

    /// Performs an action on an order, once: `PATCH /v2/orders/{order_id}?action=..`. Returns the service's text, usually a transaction
    /// id; `None` if the response has none.
    ///
    /// [`Action::Redeem`] reveals the secret to the service. A [`Driver`](crate::Driver) checks the order first.
    ///
    /// # Errors
    ///
    /// Any [`Error`]; [`Error::may_have_acted`] tells whether the service may have acted nevertheless.
    pub async fn act(&self, id: &OrderId, action: &Action<'_>) -> Result<Answer<Option<String>>, Error> {
        self.call(&self.api.act(id, action), response::read_text).await
    }

    /// Fetches the sighashes that the service wants signed for an instant refund, 32 bytes each, one for each funding output:
    /// `GET /v2/orders/{id}/instant-refund-hash`.
    ///
    /// Never sign them as received. [`crate::Flow::instant_refund`] requires the caller to compute them again.
    ///
    /// # Errors
    ///
    /// Any [`Error`].
    pub async fn instant_refund_hash(&self, id: &OrderId) -> Result<Answer<Vec<[u8; 32]>>, Error> {
        self.call(&self.api.instant_refund_hash(id), |response| response::read_with(response, hashes)).await
    }

    /// Fetches the application's affiliate earnings: `GET /v2/apps/earnings`.
    ///
    /// # Errors
    ///
    /// Any [`Error`].
    pub async fn earnings(&self) -> Result<Answer<Vec<Earnings>>, Error> {
        self.get(&self.api.earnings()).await
    }

    /// Fetches the chains: `GET /v2/chains`.
    ///
    /// # Errors
    ///
    /// Any [`Error`].
    pub async fn chains(&self, extra: ExtraParameters<'_>) -> Result<Answer<Vec<ChainRecord>>, Error> {
        self.get(&self.api.list(List::Chains, extra)).await
    }

    /// Fetches the assets: `GET /v2/assets`.
    ///
    /// # Errors
    ///
    /// Any [`Error`].
    pub async fn assets(&self, extra: ExtraParameters<'_>) -> Result<Answer<Vec<AssetRecord>>, Error> {
        self.get(&self.api.list(List::Assets, extra)).await
    }

    /// Fetches the liquidity of all solvers: `GET /v2/liquidity`.
    ///
    /// # Errors
    ///
    /// Any [`Error`].
    pub async fn liquidity(&self, extra: ExtraParameters<'_>) -> Result<Answer<Vec<SolverBalances>>, Error> {
        self.get(&self.api.list(List::Liquidity, extra)).await
    }

    /// Fetches the fees: `GET /v2/fee`.
    ///
    /// # Errors
    ///
    /// Any [`Error`].
    pub async fn fee(&self, extra: ExtraParameters<'_>) -> Result<Answer<Fees>, Error> {
        self.call(&self.api.list(List::Fee, extra), |response| response::read_lenient(response, Fees::read)).await
    }

    /// Fetches the fees from the endpoint's older name: `GET /v2/fees`.
    ///
    /// # Errors
    ///
    /// Any [`Error`].
    pub async fn fees(&self, extra: ExtraParameters<'_>) -> Result<Answer<Fees>, Error> {
        self.call(&self.api.list(List::Fees, extra), |response| response::read_lenient(response, Fees::read)).await
    }

    /// Fetches the traded volume as a decimal number for display: `GET /v2/volume`.
    ///
    /// # Errors
    ///
    /// Any [`Error`].
    pub async fn volume(&self, extra: ExtraParameters<'_>) -> Result<Answer<String>, Error> {
        let reader = |node: Cursor<'_, '_>| match node.value() {
            Value::Number(text) => Ok((*text).to_owned()),
            _ => node.text().map(str::to_owned),
        };
        self.call(&self.api.list(List::Volume, extra), |response| response::read_lenient(response, reader)).await
    }

    /// Fetches the contract schemas: `GET /v2/schemas`.
    ///
    /// # Errors
    ///
    /// Any [`Error`].
    pub async fn schemas(&self) -> Result<Answer<Vec<SchemaRecord>>, Error> {
        self.get(&self.api.list(List::Schemas, &[])).await
    }

    /// Fetches one contract schema: `GET /v2/schemas/{name}`.
    ///
    /// # Errors
    ///
    /// Any [`Error`].
    pub async fn schema(&self, name: &str) -> Result<Answer<SchemaRecord>, Error> {
        self.get(&self.api.schema(name)?).await
    }

    /// Fetches the rules that decide which routes the service accepts: `GET /v2/policy`.
    ///
    /// # Errors
    ///
    /// Any [`Error`].
    pub async fn policy(&self) -> Result<Answer<Routes>, Error> {
        self.get(&self.api.list(List::Policy, &[])).await
    }

    /// Checks the service's health: `GET /v2/health`. Returns the service's message, `None` if it has none.
    ///
    /// # Errors
    ///
    /// Any [`Error`]; [`Error::Status`] or [`Error::Service`] with status 503 if the service is not healthy.
    pub async fn health(&self) -> Result<Answer<Option<String>>, Error> {
        self.call(&self.api.health(), response::read_text).await
    }

    /// Fetches chains, assets and liquidity as a candidate registry. Nothing is pinned by this call: compare the result with the pinned
    /// registry ([`Registry::diff`]), show the notices on entries that cannot be pinned, and let a person accept the changes.
    ///
    /// # Errors
    ///
    /// Any [`Error`]; [`Error::Shape`] at `/result` for a response that is not a list, or below `/chains`, `/assets` or `/liquidity` for
    /// an invalid entry.
    pub async fn registry(&self) -> Result<ServicePins, Error> {
        let raw = |response| response::read_with(response, |node| node.array().map(drop));
        let chains = self.call(&self.api.list(List::Chains, &[]), raw).await?;
        let assets = self.call(&self.api.list(List::Assets, &[]), raw).await?;
        let liquidity = self.call(&self.api.list(List::Liquidity, &[]), raw).await?;
        Registry::from_service(&chains.body, &assets.body, &liquidity.body).map_err(Error::Shape)
    }
}

/// Parses one hash or an array of hashes, each 64 hex digits with or without `0x`.
fn hashes(node: Cursor<'_, '_>) -> Result<Vec<[u8; 32]>, Refusal> {
    let hash = |node: Cursor<'_, '_>| {
        let text = node.text()?;
        number::bare_hex_array(text.strip_prefix("0x").unwrap_or(text)).map_err(|error| node.refuse(error))
    };
    match node.value() {
        Value::Array(_) => node.array()?.map(hash).collect(),
        _ => hash(node).map(|hash| vec![hash]),
    }
}

/// Names the host that did not answer. The rest of a URL can be private.
fn at_host(mut error: TransportError, url: &url::Url) -> TransportError {
    let host = url.host_str().unwrap_or_default();
    let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
    error.detail = if error.detail.is_empty() { format!("{host}{port}") } else { format!("{host}{port}: {}", error.detail) };
    error
}
