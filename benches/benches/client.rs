//! The cost of a call without the network, and of following many orders: `cargo bench --bench client`.
//!
//! The aims are less than 100 us per call, and 10,000 orders in one process without growing memory.

use std::fs;
use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use countersign::{AssetId, CreateOrder, GaslessSubmission, Policy, Registry, chains::UnixTime};
use countersign_benches::{REGISTRY, case, criterion, member};
use countersign_client::{
    Action, Api, AppId, Client, Flow, OrderId, Pace, QuoteAmount, QuoteRequest, Request, Response, StreamExt, Transport, TransportError,
    track,
};
use criterion::Criterion;
use futures_util::FutureExt;
use futures_util::stream::FuturesUnordered;
use tokio::time::Instant;

const CASES: &str = include_str!("../../fixtures/accept/evm.jsonl");
const CASE: &str = "evm-record-bitcoin-v3";

/// A service in memory. Answers come at once, and only waiting takes (virtual) time.
struct Memory {
    response: Vec<u8>,
    record: String,
    id: String,
}

impl Memory {
    fn new() -> Self {
        let line = case(CASES, CASE);
        let record = format!("{{\"status\":\"Ok\",\"result\":{}}}", member(&line, "order"));
        let id =
            serde_json::from_str::<serde_json::Value>(&record).expect("JSON")["result"]["order_id"].as_str().expect("an id").to_owned();
        Self { response: member(&line, "response").into_bytes(), record, id }
    }
}

impl Transport for Memory {
    async fn send(&self, request: &Request) -> Result<Response, TransportError> {
        let path = request.url.path();
        let body = match (request.method.name(), path) {
            ("POST", _) => self.response.clone(),
            ("PATCH", _) => br#"{"status":"Ok","result":"0xab"}"#.to_vec(),
            (_, "/v2/quote") => br#"{"status":"Ok","result":[{"source":{"asset":"arbitrum:wbtc","amount":"1","display":"1","value":"1"},"destination":{"asset":"bitcoin:btc","amount":"1","display":"1","value":"1"},"solver_id":"s"}]}"#.to_vec(),
            // The record of the requested order.
            _ => self.record.replace(&self.id, path.rsplit('/').next().unwrap_or_default()).into_bytes(),
        };
        Ok(Response::new(200, body))
    }

    fn sleep(&self, duration: Duration) -> impl Future<Output = ()> {
        tokio::time::sleep(duration)
    }

    fn now(&self) -> UnixTime {
        UnixTime::from_secs(1_772_600_000)
    }
}

fn calls(c: &mut Criterion) {
    let memory = Memory::new();
    let id = OrderId::parse(&memory.id).expect("an id");
    let api = Api::new("https://service.example", Some(AppId::new("app").expect("an id"))).expect("an address");
    let client = Arc::new(Client::new(api, memory));
    let line = case(CASES, CASE);
    let request = member(&line, "request");
    let order = CreateOrder::from_json(request.as_bytes()).expect("a request");
    let asset = |text: &str| text.parse::<AssetId>().expect("an asset");
    let quote = QuoteRequest::new(asset("arbitrum:wbtc"), asset("bitcoin:btc"), QuoteAmount::From(order.source.amount));
    let registry = Registry::from_json(REGISTRY.as_bytes()).expect("a registry");
    let flow = Flow::new(Arc::clone(&client), registry, Policy::default());
    let swap = flow.create(order.clone()).now_or_never().expect("at once").expect("created");

    let mut group = c.benchmark_group("client");
    group.bench_function("quote", |b| b.iter(|| client.quote(black_box(&quote)).now_or_never().expect("at once").expect("ok")));
    group.bench_function("create an order", |b| {
        b.iter(|| client.create_order(black_box(&order)).now_or_never().expect("at once").expect("ok"))
    });
    group.bench_function("order record", |b| b.iter(|| client.order(black_box(&id)).now_or_never().expect("at once").expect("ok")));
    group.bench_function("gasless PATCH", |b| {
        let body = GaslessSubmission::new(format!("0x{}1b", "ab".repeat(64)));
        b.iter(|| client.act(&id, &Action::Initiate(black_box(&body))).now_or_never().expect("at once").expect("ok"))
    });
    group.bench_function("fetch the record and verify the order", |b| {
        b.iter(|| flow.verify(black_box(&swap)).now_or_never().expect("at once").expect("ok"))
    });
    group.finish();
}

/// Follows 10,000 orders for an hour of virtual time, and prints how much memory the process uses meanwhile.
fn tracking() {
    // A few orders are enough where benches only have to run without failing, as in CI.
    let count = if std::env::args().any(|argument| argument == "--test") { 100 } else { 10_000 };
    let registry = Registry::from_json(REGISTRY.as_bytes()).expect("a registry");
    let client = Client::new(Api::new("https://service.example", None).expect("an address"), Memory::new());
    let ids: Vec<_> = (0..count).map(|index| OrderId::parse(&format!("{index:064x}")).expect("an id")).collect();
    let before = resident();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().expect("a runtime");
    let mut held = Vec::new();
    runtime.block_on(async {
        let begin = Instant::now();
        let follow = async |id| {
            let mut news = std::pin::pin!(track(&client, &registry, id, Pace::default(), |_| Ok(())));
            while news.next().await.is_some() {}
        };
        let mut all: FuturesUnordered<_> = ids.into_iter().map(follow).collect();
        for minutes in [1, 10, 20, 40, 60] {
            let end = begin + Duration::from_secs(60 * minutes);
            let _ = tokio::time::timeout_at(end, all.next()).await;
            held.push((minutes, all.len(), resident().saturating_sub(before)));
        }
    });
    println!("\n| minutes (virtual) | orders followed | KiB more than before | bytes an order |\n|---:|---:|---:|---:|");
    for (minutes, orders, bytes) in held {
        println!("| {minutes} | {orders} | {} | {} |", bytes / 1024, bytes / count);
    }
}

/// Returns the resident memory in bytes, or 0 if the system does not report it.
fn resident() -> usize {
    let pages = fs::read_to_string("/proc/self/statm").ok().and_then(|text| text.split(' ').nth(1)?.parse::<usize>().ok());
    pages.unwrap_or_default() * 4096
}

fn main() {
    let mut c = criterion();
    calls(&mut c);
    c.final_summary();
    tracking();
}
