//! The public surface: what crosses threads, and a transport of the wallet's own.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "a test ends by panicking")]

mod support;

use countersign_client::countersign::{AssetId, Policy, Registry};
use countersign_client::{
    Answer, Api, AppId, Client, Error, Flow, Http, OrderFilter, OrderId, Pace, Progress, Request, Response, Secret, StreamExt, Swap,
    Timeouts, track,
};

fn crosses<T: Send + Sync>() {}
fn moves<T: Send>(_: &T) {}

#[test]
fn values_cross_threads() {
    crosses::<(Client<Http>, Api, AppId, Secret, Swap, OrderId)>();
    crosses::<(Request, Response, Answer<AssetId>, Progress, Error)>();
    crosses::<Flow<'_, Http>>();
}

/// With a transport whose futures are `Send`, every call and stream is: a runtime of many threads can drive them.
#[test]
fn calls_and_streams_move_between_threads() {
    let client = Client::new(Api::new("https://service.example", None).unwrap(), Http::new(Timeouts::default()).unwrap());
    let (registry, policy) = (Registry::default(), Policy::default());
    let id = OrderId::parse(&"a".repeat(64)).unwrap();
    let flow = Flow::new(&client, &registry, &policy);
    moves(&client.order(&id));
    moves(&client.orders(OrderFilter::default()));
    moves(&client.all_orders(OrderFilter::default()).take(1));
    moves(&client.registry());
    moves(&flow.refund(&id));
    moves(&track(&client, &id, &registry, Pace::default(), |_| Ok(())));
}

#[test]
fn a_proxy_must_be_an_address() {
    assert_eq!(Http::through(Timeouts::default(), "no address at all").unwrap_err().kind.code(), "transport_setup");
    assert!(Http::through(Timeouts::default(), "http://proxy.example:3128").is_ok());
}
