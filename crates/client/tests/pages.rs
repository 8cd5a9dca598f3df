//! Lists: pages as a stream, and the other lists of the service.
use crate::support;

use std::sync::Mutex;

use countersign_client::countersign::Registry;
use countersign_client::countersign::wire::Fees;
use countersign_client::{Error, OrderFilter, Request, Response, StreamExt, TransportErrorKind};
use serde_json::{Value, json};
use support::memory::{Memory, ok, whole};
use support::{Fixture, Reply, Server, beside};

/// A service with `count` orders, five per page, that counts its pages from `base`.
fn service(count: u64, base: u64, asked: &Mutex<Vec<String>>) -> impl Fn(&Request) -> Result<Response, TransportErrorKind> {
    let order = Fixture::load("evm-record-evm-v3").order;
    move |request| {
        asked.lock().unwrap().push(request.url.query().unwrap_or_default().to_owned());
        let page = request.url.query_pairs().find(|(name, _)| name == "page").map_or(base, |(_, page)| page.parse().unwrap());
        let first = (page - base) * 5;
        let data: Vec<Value> = (first..count.min(first + 5))
            .map(|index| {
                let mut order = order.clone();
                order["order_id"] = json!(format!("{index:064x}"));
                order
            })
            .collect();
        ok(&json!({"data": data, "page": page, "total_pages": count.div_ceil(5), "total_items": count, "per_page": 5}))
    }
}

async fn list(count: u64, base: u64, filter: OrderFilter) -> (Vec<String>, Vec<String>) {
    let asked = Mutex::new(Vec::new());
    let client = Memory::client(0, service(count, base, &asked));
    let ids = client.all_orders(filter).map(|order| order.unwrap().order_id).collect().await;
    drop(client);
    (ids, asked.into_inner().unwrap())
}

#[tokio::test]
async fn every_order_comes_once_whatever_the_first_page_is_called() {
    for base in [0, 1] {
        for count in [0, 1, 4, 5, 6, 10, 23] {
            let (ids, asked) = list(count, base, OrderFilter::default()).await;
            assert_eq!(ids, (0..count).map(|index| format!("{index:064x}")).collect::<Vec<_>>(), "{count} from {base}");
            assert_eq!(asked.len(), usize::try_from(count.div_ceil(5).max(1)).unwrap());
            assert_eq!(asked[0], "");
        }
    }
}

#[tokio::test]
async fn filters_go_with_every_page() {
    let filter = OrderFilter { from_owner: Some("0xab".into()), per_page: Some(5), page: Some(2), ..OrderFilter::default() };
    let (ids, asked) = list(23, 1, filter).await;
    assert_eq!(ids.len(), 18);
    assert_eq!(asked[0], "from_owner=0xab&page=2&per_page=5");
    assert_eq!(asked.last().unwrap(), "from_owner=0xab&page=5&per_page=5");
}

#[tokio::test]
async fn a_service_that_repeats_itself_keeps_nobody_busy() {
    let order = Fixture::load("evm-record-evm-v3").order;
    let page = json!({"data": [order], "page": 1, "total_pages": 1_000_000, "total_items": 1_000_000, "per_page": 1});
    let client = Memory::client(0, move |_| ok(&page));
    assert_eq!(client.orders(OrderFilter::default()).count().await, 2);
    let empty = json!({"data": [], "page": 1, "total_pages": 9, "total_items": 9, "per_page": 1});
    let client = Memory::client(0, move |_| ok(&empty));
    assert_eq!(client.orders(OrderFilter::default()).count().await, 1);
}

#[tokio::test]
async fn a_failure_ends_the_list() {
    let client = Memory::client(0, |_| whole(500, "no"));
    let items: Vec<_> = client.all_orders(OrderFilter::default()).collect().await;
    assert_eq!(items.into_iter().map(|item| item.unwrap_err().code().name()).collect::<Vec<_>>(), ["http_status"]);
}

/// The documentation's examples of fees and earnings, in both envelopes.
#[tokio::test]
async fn fees_and_earnings_of_the_documentation() {
    let (Some(total), Some(mine), Some(earnings)) = (
        beside("captures/example-fees-total-1.json"),
        beside("captures/example-fees-affiliate-1.json"),
        beside("captures/example-affiliate-earnings-1.json"),
    ) else {
        return;
    };
    let server = Server::start(move |seen| {
        Reply::json(
            200,
            match seen.target.as_str() {
                "/v2/fee" => total.clone(),
                "/v2/fees" => mine.clone(),
                "/v2/apps/earnings" => earnings.clone(),
                _ => r#"{"status":"Ok","result":123.5}"#.into(),
            },
        )
    });
    let http = countersign_client::Http::new(countersign_client::Timeouts::default()).unwrap();
    let client = countersign_client::Client::new(countersign_client::Api::new(&server.base, None).unwrap(), http);
    assert_eq!(client.fee(&[]).await.unwrap().value, Fees::Total("2668122".into()));
    let Fees::Earned(rows) = client.fees(&[]).await.unwrap().value else { panic!() };
    assert_eq!((rows.len(), rows[0].claim_contract.as_deref(), rows[1].claim_amount), (2, None, None));
    let row = &client.earnings().await.unwrap().value[0];
    assert_eq!((row.total_earnings.to_string(), row.asset.as_str()), ("15075000000".into(), "ethereum:usdc"));
    assert_eq!(client.volume(&[]).await.unwrap().value, "123.5");
}

#[tokio::test]
async fn lists_become_a_registry_that_is_compared_before_it_is_pinned() {
    let registry: Value = serde_json::from_str(&support::registry_text()).unwrap();
    let liquidity: Vec<Value> = registry["solvers"].as_array().unwrap().clone();
    let lists = json!({"/v2/chains": registry["chains"], "/v2/assets": registry["assets"], "/v2/liquidity": liquidity});
    let client = Memory::client(0, move |request| ok(&lists[request.url.path()]));
    let pinned = Registry::from_json(support::registry_text().as_bytes()).unwrap();
    let served = client.registry().await.unwrap();
    // The generation of a contract comes from the wallet, and so does the pace of a known chain. What the service states is not pinned.
    assert!(served.registry.assets().iter().all(|asset| asset.generation.is_none()) && pinned.diff(&served.registry).len() > 3);
    for chain in served.registry.chains() {
        let is_stated = chain.record.block_time.is_some() || chain.record.min_block_time.is_some();
        assert_eq!(is_stated, chain.name() == "unichain", "{}", chain.name());
    }
    assert_eq!((pinned.diff(&served.registry.with_generations_of(&pinned).with_paces_of(&pinned)), served.notices), (vec![], vec![]));

    let mut moved = registry.clone();
    let (index, _) = moved["assets"].as_array().unwrap().iter().enumerate().find(|(_, asset)| asset["id"] == "ethereum:usdc").unwrap();
    moved["assets"][index]["htlc"]["address"] = json!("0x00000000000000000000000000000000000000aa");
    let lists = json!({"/v2/chains": moved["chains"], "/v2/assets": moved["assets"], "/v2/liquidity": moved["solvers"]});
    let client = Memory::client(0, move |request| ok(&lists[request.url.path()]));
    let changes = pinned.diff(&client.registry().await.unwrap().registry.with_generations_of(&pinned).with_paces_of(&pinned));
    assert_eq!(
        changes.iter().map(|change| (change.entry.as_str(), change.field)).collect::<Vec<_>>(),
        [("asset ethereum:usdc", "htlc address")]
    );
}

#[tokio::test]
async fn schemas_policies_and_liquidity() {
    let client = Memory::client(0, |request| match request.url.path() {
        "/v2/schemas" => ok(&json!([{"name": "evm:htlc", "schema": [{"type": "function"}]}, {"name": "solana:htlc", "schema": {}}])),
        "/v2/schemas/evm:htlc" => ok(&json!({"name": "evm:htlc", "schema": []})),
        "/v2/liquidity" => ok(&json!([{"solver_id": "s", "address": "0xab", "liquidity": [
            {"asset": "bitcoin:btc", "balance": "5", "virtual_balance": "4", "readable_balance": "0.00000005", "fiat_value": "1.0"}]}])),
        _ => ok(
            &json!({"default": "closed", "isolation_groups": ["a:x <-> b:x"], "blacklist_pairs": [], "whitelist_overrides": ["nonsense"]}),
        ),
    });
    assert_eq!(
        client.schemas().await.unwrap().value.iter().map(|schema| schema.name.as_str()).collect::<Vec<_>>(),
        ["evm:htlc", "solana:htlc"]
    );
    assert_eq!(client.schema("evm:htlc").await.unwrap().value.name, "evm:htlc");
    assert_eq!(client.liquidity(&[]).await.unwrap().value[0].liquidity[0].virtual_balance, "4");
    let error = client.policy().await.unwrap_err();
    assert!(matches!(&error, Error::Shape(refusal) if refusal.location() == "/result/whitelist_overrides/0"), "{error:?}");
}
