//! A driver step that finds nothing new. The order is on disk and paid, and the service returns the same record as before. A process that
//! waits for a swap does this every few seconds.

use std::fs;
use std::future::{Future, ready};
use std::hint::black_box;
use std::path::PathBuf;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use countersign::chains::UnixTime;
use countersign::{CreateOrder, Policy, Registry};
use countersign_client::driver::{Delivery, Driver, Entry, Event, NoChains, NoOwner, OrderState, OrderStore, SignedUnder, Status};
use countersign_client::{Api, Client, CreatedOrder, Flow, Request, Response, Transport, TransportError};
use countersign_store::Store;
use serde_json::Value;

use crate::steps::REGISTRY;

const CASES: &str = include_str!("../../../fixtures/accept/evm.jsonl");
const CASE: &str = "evm-record-bitcoin-v3";
const PAID_AT: UnixTime = UnixTime::from_secs(1_772_600_000);

/// A service that answers every request with the order's record, at once.
struct Service(Vec<u8>);

impl Transport for Service {
    fn send(&self, _: &Request) -> impl Future<Output = Result<Response, TransportError>> {
        ready(Ok(Response::new(200, self.0.clone())))
    }

    fn sleep(&self, _: Duration) -> impl Future<Output = ()> {
        ready(())
    }

    fn now(&self) -> UnixTime {
        PAID_AT.saturating_add(Duration::from_secs(60))
    }
}

/// A folder that is removed on drop.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Runs the step once, and then `times` times.
pub(crate) fn run(times: u32) -> Result<(), String> {
    let case = CASES.lines().map(|line| serde_json::from_str::<Value>(line).expect("a fixture is JSON")).find(|case| case["id"] == CASE);
    let case = case.ok_or(CASE)?;
    let [request, response, record] = ["request", "response", "order"].map(|member| case[member].to_string());
    let registry = || Registry::from_json(REGISTRY.as_bytes()).expect("fixture");
    let swap = CreatedOrder::new(CreateOrder::from_json(request.as_bytes()).expect("a request"), response).expect("a response");
    let id = swap.id().clone();

    let folder = Folder(std::env::temp_dir().join(format!("countersign-counts-{}", std::process::id())));
    let store = Store::open(&folder.0).map_err(|error| error.to_string())?;
    at_once(OrderStore::create(&store, &OrderState::new(swap, None))).map_err(|error| error.to_string())?;
    let guard = at_once(store.lock(&id)).map_err(|error| error.to_string())?;
    let keep = async {
        store.keep_pins(&guard, &SignedUnder { registry: registry(), policy: Policy::default() }).await?;
        store.keep_record(&guard, record.as_bytes()).await?;
        store.append(&guard, &Entry { at: PAID_AT, event: Event::OnChain { what: Delivery::Funding } }).await
    };
    at_once(keep).map_err(|error| error.to_string())?;
    drop(guard);

    let body = format!("{{\"status\":\"Ok\",\"result\":{record}}}").into_bytes();
    let client = Client::new(Api::new("https://service.example", None).expect("an address"), Service(body));
    let driver = Driver::new(Flow::new(client, registry(), Policy::default()), NoChains, store, NoOwner);
    for _ in 0..=times {
        let progress = black_box(at_once(driver.advance(&id))).map_err(|error| error.to_string())?;
        if progress.acted || !matches!(progress.status, Status::Paying) {
            return Err(format!("the order does not wait for its payment: {progress:?}"));
        }
    }
    Ok(())
}

/// Returns the result of a future that waits for nothing.
fn at_once<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(result) => result,
        Poll::Pending => unreachable!("nothing here waits"),
    }
}
