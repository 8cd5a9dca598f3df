//! The service lists other assets than before while an order is under way, or the owner chooses another policy. The pins that were stored with
//! the order decide, and they are those of the signature.
use crate::driver::{create, last_status, run};
use crate::support;
use crate::world::plan::Plan;
use crate::world::{BLOCK, World, Worlds};

use std::path::Path;
use std::sync::Arc;

use countersign_client::Driver;
use countersign_client::countersign::chains::{Finality, FinalityRule};
use countersign_client::countersign::{BroadcastTransaction, Leg, Policy, Registry, Verified};
use countersign_client::driver::{
    FundingReply, MemoryStore, NewOrder, OrderStore, Outcome, Owner, OwnerError, Purpose, Settlement, Status,
};
use countersign_store::Store;
use countersign_store::testing::MemoryDisk;
use serde_json::{Value, json};

/// What the service does to the destination asset of an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Relists {
    Nothing,
    Delists,
    OtherToken,
    OtherHtlc,
}

const CHANGES: [Relists; 3] = [Relists::Delists, Relists::OtherToken, Relists::OtherHtlc];

impl Relists {
    /// Returns the registry of a wallet that has taken the newest list.
    fn registry(self, world: &World) -> Arc<Registry> {
        let mut list: Value = serde_json::from_str(&support::registry_text()).unwrap();
        let id = world.terms(Leg::Destination).asset.to_string();
        let assets = list["assets"].as_array_mut().unwrap();
        let place = assets.iter().position(|asset| asset["id"] == id.as_str()).unwrap();
        let other = json!("0x00000000000000000000000000000000000000dd");
        match self {
            Self::Nothing => {}
            Self::Delists => drop(assets.remove(place)),
            Self::OtherToken => assets[place]["token"]["address"] = other,
            Self::OtherHtlc => assets[place]["htlc"]["address"] = other,
        }
        Arc::new(Registry::from_json(list.to_string().as_bytes()).unwrap())
    }
}

/// A receiver that the order's own token has frozen keeps the secret in, whatever is listed today; one that can be paid is paid.
#[tokio::test(start_paused = true)]
async fn the_release_asks_about_the_pins_of_the_order() {
    for change in CHANGES {
        for (freezes_the_receiver, cannot_pay_to_redeem) in [(true, false), (true, true), (false, false), (false, true)] {
            let cannot_pay = cannot_pay_to_redeem.then_some(Purpose::Redemption).into_iter().collect();
            let world = Worlds::new(0, Plan { freezes_the_receiver, cannot_pay, ..Plan::honest() });
            let store = MemoryStore::default();
            let id = create(&world.driver(store.clone()), &world, 1).await;
            assert!(matches!(last_status(&world.driver(store.clone()), 30).await, Status::Waiting { .. }));
            let driver = world.driver_with(store, &change.registry(&world.first()), Policy::default()).allow_relayer();
            let outcome = if freezes_the_receiver { Outcome::Refunded } else { Outcome::Complete };
            assert_eq!(run(&driver).await, [(id.clone(), outcome)], "{change:?}: {freezes_the_receiver} {cannot_pay_to_redeem}");
            assert_eq!(world.end(&id), (1, !freezes_the_receiver, false), "{change:?}");
            assert_eq!(world.has_leaked(), cannot_pay_to_redeem && !freezes_the_receiver, "{change:?}");
        }
    }
}

/// Pays later.
struct Hesitates(Arc<Worlds>);

impl Owner for Hesitates {
    async fn fund(&self, _: &Verified) -> Result<FundingReply, OwnerError> {
        Ok(FundingReply::NotNow)
    }

    async fn settle(&self, task: &Settlement<'_>) -> Result<Option<Vec<BroadcastTransaction>>, OwnerError> {
        self.0.settle(task).await
    }

    fn can_redeem(&self, chain: &str) -> bool {
        self.0.can_redeem(chain)
    }
}

/// Once the list names another contract than when the owner was first asked, the owner would pay another order than the one that was shown.
#[tokio::test(start_paused = true)]
async fn an_order_whose_pins_differ_from_todays_is_not_paid() {
    for change in [Relists::Nothing].into_iter().chain(CHANGES) {
        let world = Worlds::new(0, Plan::honest());
        let store = MemoryStore::default();
        let id = create(&world.driver(store.clone()), &world, 1).await;
        let flow = world.driver(store.clone()).flow().clone();
        let hesitates = Driver::new(flow, Arc::clone(&world), store.clone(), Hesitates(Arc::clone(&world)));
        assert_eq!(hesitates.advance(&id).await.unwrap().status, Status::Unsigned);
        let driver = world.driver_with(store, &change.registry(&world.first()), Policy::default());
        if change == Relists::Nothing {
            assert_eq!(run(&driver).await, [(id.clone(), Outcome::Complete)]);
            continue;
        }
        let Status::Refused { refusal } = last_status(&driver, 30).await else { panic!("{change:?}") };
        let expected = if change == Relists::Delists { "unknown_asset" } else { "record_changed" };
        assert_eq!(refusal.code().name(), expected, "{change:?}: {refusal}");
        assert_eq!(world.end(&id), (0, false, false), "{change:?}");
    }
}

/// The owner is asked under one rule, hesitates, and pays under another one, which alone lets the secret leave: blocks are safe after a minute
/// and final after ten.
#[tokio::test(start_paused = true)]
async fn the_rule_under_which_the_owner_pays_releases_the_secret() {
    let under = |finality| Policy::default().with_finality("arbitrum", FinalityRule::new(finality, 60, 60));
    for (first, then, safe_after) in [(Finality::Safe, Finality::Finalized, 600..900), (Finality::Finalized, Finality::Safe, 60..300)] {
        let world = Worlds::new(0, Plan::honest());
        let store = MemoryStore::default();
        let flow = world.driver_with(store.clone(), &world.registry, under(first)).flow().clone();
        let hesitates = Driver::new(flow, Arc::clone(&world), store.clone(), Hesitates(Arc::clone(&world)));
        let (fixture, secret) = world.order(1);
        let id = hesitates.create(NewOrder::new(fixture.create(), Some(secret))).await.unwrap();
        assert_eq!(hesitates.advance(&id).await.unwrap().status, Status::Unsigned);
        assert!(store.load(&id).await.unwrap().pins.is_some());
        let driver = world.driver_with(store, &world.registry, under(then));
        assert_eq!(run(&driver).await, [(id.clone(), Outcome::Complete)], "{then:?}");
        let htlc = world.of(id.as_str()).now().destination;
        let took = htlc.ended.unwrap().1 - BLOCK - htlc.funded.unwrap();
        assert!(safe_after.contains(&took), "{then:?}: {took} s");
    }
}

/// The documents on disk, too: those of the last question before the payment stay.
#[tokio::test(start_paused = true)]
async fn the_stored_pins_are_those_of_the_last_question() {
    let world = Worlds::new(0, Plan::honest());
    let store = Arc::new(Store::open_on(Arc::new(MemoryDisk::new()), Path::new("/state")).unwrap());
    let under = |margin| Policy::default().with_finality("arbitrum", FinalityRule::new(Finality::Safe, 60, margin));
    let (fixture, secret) = world.order(1);
    let id = world.driver(Arc::clone(&store)).create(NewOrder::new(fixture.create(), Some(secret))).await.unwrap();
    for margin in [61, 62] {
        let flow = world.driver_with(Arc::clone(&store), &world.registry, under(margin)).flow().clone();
        let hesitates = Driver::new(flow, Arc::clone(&world), Arc::clone(&store), Hesitates(Arc::clone(&world)));
        while hesitates.advance(&id).await.unwrap().acted {}
        assert_eq!(OrderStore::load(&*store, &id).await.unwrap().pins.unwrap().policy, under(margin));
    }
    let driver = world.driver_with(Arc::clone(&store), &world.registry, under(63));
    while !driver.advance(&id).await.unwrap().is_paid {}
    let later = world.driver_with(Arc::clone(&store), &world.registry, under(64));
    for _ in 0..5 {
        later.advance(&id).await.unwrap();
    }
    assert_eq!(OrderStore::load(&*store, &id).await.unwrap().pins.unwrap().policy, under(63));
}
