//! A redemption that was signed and never sent: its secret is still here.
use crate::driver::{create, run};
use crate::world::plan::Plan;
use crate::world::{TestDriver, Worlds};

use std::time::Duration;

use countersign_client::driver::{Delivery, Entry, Event, MemoryStore, OrderStore as _, Outcome, Purpose, SecretRoute};
use countersign_client::{OrderId, Transport as _};

/// Writes down a redemption that was signed now, and neither sent nor, unless it is printed, shown to anybody: the process has ended, the
/// disk was full, or the chain was not connected.
async fn sign_without_sending(driver: &TestDriver, world: &Worlds, id: &OrderId, is_printed: bool) {
    let transactions = vec![world.of(id.as_str()).unsent_redemption()];
    let signed = Event::Signed { purpose: Purpose::Redemption, transactions, gasless: None };
    let printed = is_printed.then_some(Event::Printed { what: Delivery::Redemption });
    let guard = driver.store().lock(id).await.unwrap();
    for event in [Event::SecretLeaving { path: SecretRoute::Own }, signed].into_iter().chain(printed) {
        driver.store().append(&guard, &Entry { at: world.now(), event }).await.unwrap();
    }
}

async fn pay(driver: &TestDriver, id: &OrderId) {
    while !driver.store().load(id).await.unwrap().may_be_paid() {
        driver.advance(id).await.unwrap();
    }
}

/// The secret of a redemption that was never sent is still here. It is signed anew, and the evidence is read again after that.
#[tokio::test(start_paused = true)]
async fn an_old_redemption_that_was_never_sent_is_not_replaced_without_evidence() {
    for is_printed in [false, true] {
        let world = Worlds::new(0, Plan { signing: 6 * 3_600, ..Plan::honest() });
        let driver = world.driver(MemoryStore::default());
        let id = create(&driver, &world, 1).await;
        pay(&driver, &id).await;
        sign_without_sending(&driver, &world, &id, is_printed).await;
        // The evidence is there, and the redemption is overdue. The new one takes hours.
        tokio::time::sleep(Duration::from_secs(180)).await;
        assert_eq!(run(&driver).await, [(id.clone(), Outcome::Refunded)], "{is_printed}");
        assert_eq!(world.end(&id), (1, false, false), "{is_printed}");
        assert!(world.of(id.as_str()).now().secret_known.is_none(), "{is_printed}");
    }
}

/// What was signed a moment ago is sent as it is, and something older is signed anew.
#[tokio::test(start_paused = true)]
async fn a_redemption_that_was_never_sent_is_signed_anew_once_it_is_old() {
    for (age, signatures) in [(0, 1), (120, 2)] {
        let world = Worlds::new(0, Plan::honest());
        let driver = world.driver(MemoryStore::default());
        let id = create(&driver, &world, 1).await;
        pay(&driver, &id).await;
        tokio::time::sleep(Duration::from_secs(180)).await;
        sign_without_sending(&driver, &world, &id, false).await;
        tokio::time::sleep(Duration::from_secs(age)).await;
        assert_eq!(run(&driver).await, [(id.clone(), Outcome::Complete)], "{age}");
        assert_eq!(world.end(&id), (1, true, false), "{age}");
        let kept = driver.store().load(&id).await.unwrap();
        let is_signed = |entry: &&Entry| matches!(entry.event, Event::Signed { purpose: Purpose::Redemption, .. });
        assert_eq!(kept.journal.iter().filter(is_signed).count(), signatures, "{age}");
    }
}
