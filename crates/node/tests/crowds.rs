//! Many concurrent reads: they share requests, and a cancelled read does not keep the others waiting.
use crate::support;

use std::future::poll_fn;
use std::sync::atomic::Ordering;
use std::task::Poll;
use std::time::Duration;

use countersign::evidence::{HtlcState, HtlcTerms};
use futures_util::future::join_all;
use serde_json::Value;
use support::{Chain, nodes, terms};

fn chain() -> Chain {
    Chain::funded(&terms().destination)
}

fn numbered(terms: &HtlcTerms, number: u32) -> HtlcTerms {
    let mut terms = terms.clone();
    terms.swap_id = format!("{number:064x}");
    terms
}

/// Orders that are read together share requests, and few requests run concurrently.
#[tokio::test(start_paused = true)]
async fn a_thousand_orders_take_few_requests() {
    let terms = terms().destination;
    let order = |number| numbered(&terms, number);
    let orders: Vec<_> = (1..=1_000).map(order).collect();
    // The second endpoint accepts at most twenty calls in a request.
    let picky = |host: &str, body: &[u8]| {
        let calls: Value = serde_json::from_slice(body).unwrap();
        let is_too_much = calls.as_array().is_some_and(|calls| calls.len() > 20);
        (host == "b.example" && is_too_much).then(|| Ok((413, b"too large".to_vec())))
    };
    let nodes = nodes(chain().answering(picky), 3);
    let ethereum = nodes.evm("ethereum").unwrap();
    let all = join_all(orders.iter().map(|terms| ethereum.htlc(terms))).await;
    for state in all {
        let (state, seen) = state.unwrap().state().unwrap();
        assert!(matches!(&state, HtlcState::Locked(locked) if locked.amount == terms.amount) && seen.agreed >= 2);
    }
    let chain = nodes.transport();
    let requests = chain.requests.lock().unwrap().clone();
    assert!(requests["a.example"] < 150 && requests["b.example"] < 700, "{requests:?}");
    assert!(chain.under_way.lock().unwrap().1 <= 3 * 4);
}

/// A cancelled read does not lose the answers of others. They send again, or get an error.
#[tokio::test(start_paused = true)]
async fn one_that_gives_up_keeps_nobody_waiting() {
    let terms = terms().destination;
    let order = |number| numbered(&terms, number);
    let orders: Vec<_> = (1..=200).map(order).collect();
    let nodes = nodes(chain(), 1);
    let ethereum = nodes.evm("ethereum").unwrap();
    let read = |(index, terms)| async move {
        // Every third read is dropped after a few steps, some of them while they send for others.
        let mut reading = Box::pin(ethereum.htlc(terms));
        for _ in 0..(index % 17) {
            if let Poll::Ready(state) = poll_fn(|context| Poll::Ready(reading.as_mut().poll(context))).await {
                return Some(state);
            }
            tokio::task::yield_now().await;
        }
        if index % 3 == 0 { None } else { Some(reading.await) }
    };
    let all = join_all(orders.iter().enumerate().map(read)).await;
    let answered = all.iter().flatten().filter(|state| state.is_ok()).count();
    assert!(answered > 30, "{answered}");
    for state in all.into_iter().flatten() {
        let code = state.map_or_else(|error| error.code().name(), |_| "read");
        assert!(["read", "transport_interrupted"].contains(&code), "{code}");
    }
    // The endpoint is free again.
    assert!(ethereum.htlc(&order(1_000)).await.is_ok());
}

/// A driver that is dropped while many reads wait leaves the endpoint free for the next driver.
#[tokio::test(start_paused = true)]
async fn a_crowd_that_is_dropped_frees_the_endpoint() {
    let terms = terms().destination;
    let orders: Vec<_> = (1..=60).map(|number| numbered(&terms, number)).collect();
    let nodes = nodes(chain(), 1);
    let ethereum = nodes.evm("ethereum").unwrap();
    for steps in 1..60 {
        nodes.transport().clock.fetch_add(1, Ordering::SeqCst);
        let mut crowd = Box::pin(join_all(orders.iter().map(|terms| ethereum.htlc(terms))));
        for _ in 0..steps {
            if poll_fn(|context| Poll::Ready(crowd.as_mut().poll(context))).await.is_ready() {
                break;
            }
        }
        drop(crowd);
        let next = ethereum.htlc(&terms);
        assert!(tokio::time::timeout(Duration::from_secs(20), next).await.expect("the endpoint is free").is_ok(), "{steps}");
    }
}
