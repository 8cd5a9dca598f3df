//! A payment that can never be included: what proves it, and what does not.
use crate::world;

use std::sync::Arc;
use std::time::Duration;

use countersign_client::OrderId;
use countersign_client::Transport as _;
use countersign_client::countersign::chains::{Finality, FinalityRule};
use countersign_client::countersign::{Leg, Policy, Role};
use countersign_client::driver::{Delivery, Entry, Event, MemoryStore, NewOrder, OrderStore as _, Purpose, SignedUnder};
use serde_json::json;
use world::owner::evm_transaction;
use world::plan::Plan;
use world::{TestDriver, Worlds};

/// An order for which transactions with these nonces were signed and sent, the last one two minutes ago.
async fn paid(world: &Arc<Worlds>, nonces: &[u64]) -> (TestDriver, OrderId) {
    let driver = world.driver(MemoryStore::default());
    let (fixture, secret) = world.order(1);
    let id = driver.create(NewOrder::new(fixture.create(), Some(secret))).await.unwrap();
    let body = json!({"status": "Ok", "result": fixture.order}).to_string();
    let guard = driver.store().lock(&id).await.unwrap();
    let pins = SignedUnder { registry: (*world.registry).clone(), policy: Policy::default() };
    driver.store().keep_pins(&guard, &pins).await.unwrap();
    driver.store().keep_record(&guard, body.as_bytes()).await.unwrap();
    for nonce in nonces {
        let order = world.of(id.as_str());
        let transactions = vec![evm_transaction(order.terms(Leg::Source), Role::Initiate, *nonce, 0)];
        let signed = Event::Signed { purpose: Purpose::Funding, transactions, gasless: None };
        for event in [signed, Event::sending(Delivery::Funding), Event::Sent { what: Delivery::Funding }] {
            driver.store().append(&guard, &Entry { at: world.now(), event }).await.unwrap();
        }
    }
    drop(guard);
    tokio::time::sleep(Duration::from_secs(120)).await;
    (driver, id)
}

async fn payments(driver: &TestDriver, id: &OrderId) -> usize {
    driver.advance(id).await.unwrap();
    driver.store().load(id).await.unwrap().fundings()
}

/// The owner's wallet has raised the payment: its nonce is used, and the order is paid all the same. The block that proves it is newer than
/// the one that showed no payment.
#[tokio::test(start_paused = true)]
async fn a_payment_that_the_wallet_has_raised_is_not_signed_again() {
    for (raises_in_the_wallet, expected) in [(false, 2), (true, 1)] {
        let world = Worlds::new(0, Plan { raises_in_the_wallet, ..Plan::honest() });
        let (driver, id) = paid(&world, &[3]).await;
        assert_eq!(payments(&driver, &id).await, expected, "{raises_in_the_wallet}");
    }
}

/// Any of the payments that were signed may be included.
#[tokio::test(start_paused = true)]
async fn a_payment_is_dead_only_if_every_one_that_was_signed_is() {
    for (nonces, is_signed_again) in [(&[3, 4][..], true), (&[42, 4], false), (&[4, 42], false), (&[41], true), (&[42], false)] {
        let world = Worlds::new(0, Plan::honest());
        let (driver, id) = paid(&world, nonces).await;
        let before = nonces.len();
        assert_eq!(payments(&driver, &id).await, before + usize::from(is_signed_again), "{nonces:?}");
    }
}

/// Another payment would be judged by the rules of the first one, and the owner would be asked under those of today.
#[tokio::test(start_paused = true)]
async fn a_payment_is_signed_again_only_under_the_finality_rules_of_the_first() {
    let other = FinalityRule::new(Finality::Finalized, 60, 60);
    for (chain, expected) in [(None, 2), (Some("arbitrum"), 1), (Some("base"), 1)] {
        let world = Worlds::new(0, Plan::honest());
        let (driver, id) = paid(&world, &[3]).await;
        let policy = chain.map_or_else(Policy::default, |chain| Policy::default().with_finality(chain, other));
        let driver = world.driver_with(driver.store().clone(), &world.registry, policy);
        let progress = driver.advance(&id).await.unwrap();
        assert_eq!(driver.store().load(&id).await.unwrap().fundings(), expected, "{chain:?}: {progress:?}");
        assert_eq!(progress.failure().is_some_and(|why| why.contains("finality rules")), chain.is_some(), "{progress:?}");
    }
}
