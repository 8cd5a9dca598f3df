//! The client: every endpoint of the interface as a method.

use countersign::core::Registry as Pins;
use countersign::json::{Node, Value};
use countersign::wire::{
    AssetRecord, ChainRecord, CreateOrder, Earnings, Fees, OrderRecord, Page, Quote, Read, SchemaRecord, SolverBalances,
};
use countersign::{Code, Refusal};
use futures_util::{Stream, StreamExt, stream};

use crate::error::Error;
use crate::request::{Action, Api, Extra, List, OrderFilter, OrderId, QuoteRequest};
use crate::response::{self, Answer};
use crate::retry::{Retry, random};
use crate::route::Routes;
use crate::transport::{Request, Response, Transport};

/// A client of one service for one application.
#[derive(Debug, Clone)]
pub struct Client<T> {
    api: Api,
    transport: T,
    retry: Retry,
}

impl<T: Transport> Client<T> {
    /// A client with the default pace of retries.
    pub fn new(api: Api, transport: T) -> Self {
        Self { api, transport, retry: Retry::default() }
    }

    /// Sets the pace of retries.
    #[must_use]
    pub fn with_retry(mut self, retry: Retry) -> Self {
        self.retry = retry;
        self
    }

    /// The transport.
    pub const fn transport(&self) -> &T {
        &self.transport
    }

    /// Sends a request, again where it may be sent again, and reads the answer.
    async fn call<R>(&self, request: &Request, read: impl Fn(Response) -> Result<Answer<R>, Error>) -> Result<Answer<R>, Error> {
        let mut attempt = 1_u32;
        loop {
            let answer = self.transport.send(request).await.map_err(Error::from);
            let status = answer.as_ref().map(|answer| answer.status).unwrap_or_default();
            let result = answer.and_then(&read);
            // Method and path only: the rest of a request can be private.
            let (method, path) = (request.method.name(), request.url.path());
            let Err(error) = result else {
                tracing::debug!(method, path, attempt, status, "answered");
                return result;
            };
            attempt = attempt.saturating_add(1);
            let wait = self.retry.wait(request.method, &error, attempt, random());
            tracing::debug!(
                method,
                path,
                attempt = attempt.saturating_sub(1),
                status,
                code = error.code(),
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

    /// `GET /v2/quote`: offers, in the service's order.
    ///
    /// # Errors
    ///
    /// Any [`Error`].
    pub async fn quote(&self, quote: &QuoteRequest) -> Result<Answer<Vec<Quote>>, Error> {
        self.get(&self.api.quote(quote)?).await
    }

    /// `POST /v2/orders`, once: the answer's id. Its payload is believed by nobody before [`crate::Flow::verify`].
    ///
    /// # Errors
    ///
    /// Any [`Error`]; see [`Error::may_have_acted`].
    pub async fn create_order(&self, order: &CreateOrder) -> Result<Answer<OrderId>, Error> {
        let request = self.api.create_order(order)?;
        self.call(&request, |response| response::read_with(response, order_id)).await
    }

    /// `GET /v2/orders/{order}`: the order record.
    ///
    /// # Errors
    ///
    /// Any [`Error`]; [`Error::Shape`] if it is the record of another order.
    pub async fn order(&self, id: &OrderId) -> Result<Answer<OrderRecord>, Error> {
        let reader = |node: Node<'_, '_>| {
            let record = OrderRecord::read(node)?;
            if record.order_id.eq_ignore_ascii_case(id.as_str()) {
                return Ok(record);
            }
            Err(Refusal::new(Code::RecordMismatch, "/result/order_id").with_expected(id).with_actual(record.order_id))
        };
        self.call(&self.api.order(id), |response| response::read_with(response, reader)).await
    }

    /// `GET /v2/orders`: one page.
    ///
    /// # Errors
    ///
    /// Any [`Error`].
    pub async fn orders_page(&self, filter: &OrderFilter) -> Result<Answer<Page<OrderRecord>>, Error> {
        self.get(&self.api.orders(filter)).await
    }

    /// `GET /v2/orders`: the pages from the filter's on, until one is empty or the last that the service counts.
    ///
    /// Whether the service counts pages from 0 or 1 is not documented: the first answer says.
    pub fn orders(&self, filter: OrderFilter) -> impl Stream<Item = Result<Answer<Page<OrderRecord>>, Error>> {
        stream::unfold((Some(filter), 0_u64), move |(filter, seen)| async move {
            let mut filter = filter?;
            let answer = self.orders_page(&filter).await;
            let Ok(Answer { value: page, .. }) = &answer else { return Some((answer, (None, seen))) };
            let entries = u64::try_from(page.data.len()).unwrap_or(u64::MAX);
            let seen = seen.saturating_add(entries);
            // A service that names the page that was asked for not at all, or the same one again, must not keep anyone busy.
            let expected = filter.page.is_none_or(|asked| asked == page.page);
            let more = entries > 0 && expected && seen < page.total_items && page.page < page.total_pages;
            filter.page = page.page.checked_add(1);
            let next = Some(filter).filter(|filter| more && filter.page.is_some());
            Some((answer, (next, seen)))
        })
    }

    /// `GET /v2/orders`: the orders of all pages.
    pub fn all_orders(&self, filter: OrderFilter) -> impl Stream<Item = Result<OrderRecord, Error>> {
        self.orders(filter).flat_map(|answer| match answer {
            Ok(answer) => stream::iter(answer.value.data.into_iter().map(Ok).collect::<Vec<_>>()),
            Err(error) => stream::iter(vec![Err(error)]),
        })
    }

    /// `PATCH /v2/orders/{order_id}?action=..`, once: what the service says, usually a transaction's id.
    ///
    /// [`Action::Redeem`] gives the secret away: [`crate::Flow::redeem`] checks the order first.
    ///
    /// # Errors
    ///
    /// Any [`Error`]; see [`Error::may_have_acted`].
    pub async fn act(&self, id: &OrderId, action: &Action<'_>) -> Result<Answer<Option<String>>, Error> {
        self.call(&self.api.act(id, action), response::read_text).await
    }

    /// `GET /v2/orders/{id}/instant-refund-hash`: the hashes that the service wants signed, one for each funding input.
    /// Nobody signs them as they are: [`crate::Flow::instant_refund`] computes them again.
    ///
    /// # Errors
    ///
    /// Any [`Error`].
    pub async fn instant_refund_hash(&self, id: &OrderId) -> Result<Answer<Vec<[u8; 32]>>, Error> {
        self.call(&self.api.instant_refund_hash(id), |response| response::read_with(response, hashes)).await
    }

    /// `GET /v2/apps/earnings`
    ///
    /// # Errors
    ///
    /// Any [`Error`].
    pub async fn earnings(&self) -> Result<Answer<Vec<Earnings>>, Error> {
        self.get(&self.api.earnings()).await
    }

    /// `GET /v2/chains`
    ///
    /// # Errors
    ///
    /// Any [`Error`].
    pub async fn chains(&self, extra: Extra<'_>) -> Result<Answer<Vec<ChainRecord>>, Error> {
        self.get(&self.api.list(List::Chains, extra)).await
    }

    /// `GET /v2/assets`
    ///
    /// # Errors
    ///
    /// Any [`Error`].
    pub async fn assets(&self, extra: Extra<'_>) -> Result<Answer<Vec<AssetRecord>>, Error> {
        self.get(&self.api.list(List::Assets, extra)).await
    }

    /// `GET /v2/liquidity`
    ///
    /// # Errors
    ///
    /// Any [`Error`].
    pub async fn liquidity(&self, extra: Extra<'_>) -> Result<Answer<Vec<SolverBalances>>, Error> {
        self.get(&self.api.list(List::Liquidity, extra)).await
    }

    /// `GET /v2/fee`
    ///
    /// # Errors
    ///
    /// Any [`Error`].
    pub async fn fee(&self, extra: Extra<'_>) -> Result<Answer<Fees>, Error> {
        self.call(&self.api.list(List::Fee, extra), |response| response::read_lenient(response, Fees::read)).await
    }

    /// `GET /v2/fees`, the older name.
    ///
    /// # Errors
    ///
    /// Any [`Error`].
    pub async fn fees(&self, extra: Extra<'_>) -> Result<Answer<Fees>, Error> {
        self.call(&self.api.list(List::Fees, extra), |response| response::read_lenient(response, Fees::read)).await
    }

    /// `GET /v2/volume`: a decimal number for display.
    ///
    /// # Errors
    ///
    /// Any [`Error`].
    pub async fn volume(&self, extra: Extra<'_>) -> Result<Answer<String>, Error> {
        let reader = |node: Node<'_, '_>| match node.value() {
            Value::Number(text) => Ok((*text).to_owned()),
            _ => node.text().map(str::to_owned),
        };
        self.call(&self.api.list(List::Volume, extra), |response| response::read_lenient(response, reader)).await
    }

    /// `GET /v2/schemas`
    ///
    /// # Errors
    ///
    /// Any [`Error`].
    pub async fn schemas(&self) -> Result<Answer<Vec<SchemaRecord>>, Error> {
        self.get(&self.api.list(List::Schemas, &[])).await
    }

    /// `GET /v2/schemas/{name}`
    ///
    /// # Errors
    ///
    /// Any [`Error`].
    pub async fn schema(&self, name: &str) -> Result<Answer<SchemaRecord>, Error> {
        self.get(&self.api.schema(name)?).await
    }

    /// `GET /v2/policy`: which routes the service takes.
    ///
    /// # Errors
    ///
    /// Any [`Error`].
    pub async fn policy(&self) -> Result<Answer<Routes>, Error> {
        self.get(&self.api.list(List::Policy, &[])).await
    }

    /// `GET /v2/health`: what the service says of itself, where it says anything.
    ///
    /// # Errors
    ///
    /// Any [`Error`]; [`Error::Status`] or [`Error::Service`] with status 503 if the service is not well.
    pub async fn health(&self) -> Result<Answer<Option<String>>, Error> {
        self.call(&self.api.health(), response::read_text).await
    }

    /// What the service lists now, as a registry that could be pinned. Compare it with what is pinned
    /// ([`countersign::Registry::diff`]), and let a person accept what changed.
    ///
    /// # Errors
    ///
    /// Any [`Error`]; [`Error::Shape`] for lists that contradict each other, at `/chains`, `/assets` or `/liquidity`.
    pub async fn registry(&self) -> Result<Pins, Error> {
        let raw = |response| response::read_with(response, |node| node.array().map(drop));
        let chains = self.call(&self.api.list(List::Chains, &[]), raw).await?;
        let assets = self.call(&self.api.list(List::Assets, &[]), raw).await?;
        let liquidity = self.call(&self.api.list(List::Liquidity, &[]), raw).await?;
        Pins::from_service(&chains.body, &assets.body, &liquidity.body).map_err(Error::Shape)
    }
}

/// The id of a create-order result: 64 hex digits.
fn order_id(node: Node<'_, '_>) -> Result<OrderId, Refusal> {
    let members = node.object()?;
    let id = members.need("order_id")?;
    OrderId::parse(id.text()?).map_err(|_| id.refuse(Code::OrderIdMalformed))
}

/// One hash, or an array of them; each 64 hex digits with or without `0x`.
fn hashes(node: Node<'_, '_>) -> Result<Vec<[u8; 32]>, Refusal> {
    let hash = |node: Node<'_, '_>| {
        let text = node.text()?;
        countersign::core::number::bare_hex_array(text.strip_prefix("0x").unwrap_or(text)).map_err(|code| node.refuse(code))
    };
    match node.value() {
        Value::Array(_) => node.array()?.map(hash).collect(),
        _ => hash(node).map(|hash| vec![hash]),
    }
}
