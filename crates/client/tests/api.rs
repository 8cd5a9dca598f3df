//! The public API: which values and futures can move between threads, and how a wallet plugs in its own transport.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "a test ends by panicking")]

mod support;

use std::error::Error as _;
use std::sync::Arc;

use countersign_client::countersign::{AssetId, Code, Policy, Refusal, Registry};
use countersign_client::driver::TrustTheService;
use countersign_client::{
    Answer, Api, AppId, BoxTransport, Client, Error, Flow, Hold, Http, MaybeSend, OrderFilter, OrderId, Pace, Progress, Release, Request,
    Response, Secret, StoredSwap, StreamExt, Timeouts, Transport, VerifiedSwap, track,
};
use support::memory::{Memory, ok};
use support::{Fixture, Service};

fn crosses<T: Send + Sync>() {}
fn moves<T: Send>(_: &T) {}

#[test]
fn values_cross_threads() {
    crosses::<(Client<Http>, Client<BoxTransport>, Api, AppId, Secret, StoredSwap, OrderId)>();
    crosses::<(Request, Response, Answer<AssetId>, Progress, Error, VerifiedSwap)>();
    crosses::<(Flow<Http>, Flow<BoxTransport>)>();
}

/// Every call and stream is `Send`, whatever the transport is, so a multi-threaded runtime can drive them.
fn calls_and_streams_move<T: Transport>(client: &Client<T>, flow: &Flow<T>, swap: &StoredSwap, secret: &Secret) {
    let (registry, id) = (Registry::default(), swap.id());
    moves(&client.order(id));
    moves(&client.orders(OrderFilter::default()));
    moves(&client.all_orders(OrderFilter::default()).take(1));
    moves(&client.registry());
    moves(&flow.create(swap.request().clone()));
    moves(&flow.verify(swap));
    moves(&flow.follow(swap));
    moves(&flow.redeem(swap, secret, &Release::Trust(TrustTheService)));
    moves(&flow.refund(id));
    moves(&flow.instant_refund(swap, |_, _| Ok(Vec::new())));
    moves(&flow.watch(swap, Pace::default()));
    moves(&track(client, &registry, id.clone(), Pace::default(), |_| Ok(())));
}

fn stored(fixture: &Fixture) -> StoredSwap {
    StoredSwap::new(fixture.create(), fixture.response.to_string()).unwrap()
}

#[test]
fn calls_and_streams_move_between_threads() {
    let fixture = Fixture::load("evm-record-evm-v2");
    let (swap, secret) = (stored(&fixture), Secret::generate().unwrap());
    let client = Client::new(Api::new("https://service.example", None).unwrap(), Http::new(Timeouts::default()).unwrap());
    let flow = Flow::new(client.clone(), Registry::default(), Policy::default());
    calls_and_streams_move(&client, &flow, &swap, &secret);
    let client = client.boxed();
    calls_and_streams_move(&client, &Flow::new(client.clone(), Registry::default(), Policy::default()), &swap, &secret);
}

/// A wallet can store a flow in a struct that does not name the HTTP stack, and move it into a task on another thread.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flow_is_kept_in_a_struct_and_moved_into_a_task() {
    struct Wallet {
        flow: Flow<BoxTransport>,
    }
    let fixture = Fixture::load("evm-record-evm-v2");
    let server = Service::new(fixture.clone()).start();
    let client = Client::new(Api::new(&server.base, None).unwrap(), Http::new(Timeouts::default()).unwrap()).boxed();
    let registry = Arc::new(Registry::from_json(fixture.registry.as_bytes()).unwrap());
    let wallet = Wallet { flow: Flow::new(client, Arc::clone(&registry), Policy::default()) };
    let (flow, request) = (wallet.flow.clone(), fixture.create());
    let verified = tokio::spawn(async move {
        let swap = flow.create(request).await?;
        flow.verify(&swap).await
    });
    let verified = verified.await.unwrap().unwrap();
    assert_eq!((verified.order.order_id(), verified.record.order_id.as_str()), (fixture.order_id(), fixture.order_id()));
    // The record is the one that was verified, and can be stored.
    let kept = serde_json::to_string(&verified.record).unwrap();
    assert_eq!(kept.parse(), Ok(verified.record));
    assert_eq!(wallet.flow.client().transport().now() > 0, registry.asset("base:eth").is_some());
}

/// A transport without a network works too, behind a pointer or not.
#[tokio::test]
async fn a_transport_works_behind_any_pointer() {
    async fn volume<T: Transport>(transport: T) -> String {
        let client = Client::new(Api::new("https://service.example", None).unwrap(), transport);
        client.volume(&[]).await.unwrap().value
    }
    let memory = || Memory::new(7, |_: &Request| ok(&serde_json::json!("5")));
    let kept = memory();
    assert_eq!(volume(&kept).await, "5");
    assert_eq!(volume(Box::new(memory())).await, "5");
    assert_eq!(volume(Arc::new(memory())).await, "5");
    let boxed = BoxTransport::new(memory());
    assert_eq!((volume(boxed.clone()).await, boxed.now()), ("5".to_owned(), 7));
    boxed.sleep(std::time::Duration::from_secs(3)).await;
    assert_eq!(boxed.now(), 10);
    fn maybe<T: MaybeSend>(_: T) {}
    maybe(boxed);
}

/// An error says what failed and its source says why, without repetition.
#[test]
fn errors_have_sources() {
    let refusal = || Refusal::new(Code::AmountZero, "/amount");
    for error in [Error::Shape(refusal()), Error::Input(refusal()), Error::Refused(refusal()), Error::Held(Hold::NotFunded)] {
        let source = error.source().unwrap().to_string();
        assert!(!source.is_empty() && !error.to_string().contains(&source), "{error}: {source}");
    }
    let refused = Error::Refused(refusal());
    assert_eq!(refused.source().unwrap().downcast_ref::<Refusal>(), Some(&refusal()));
}

#[test]
fn a_proxy_must_be_an_address() {
    assert_eq!(Http::with_proxy(Timeouts::default(), "no address at all").unwrap_err().kind.code(), "transport_setup");
    assert!(Http::with_proxy(Timeouts::default(), "http://proxy.example:3128").is_ok());
}
