//! The service lists other assets than before while an order is under way. The pins that were stored with the order are asked about.
use crate::driver::{create, last_status, run};
use crate::support;
use crate::world::plan::Plan;
use crate::world::{World, Worlds};

use std::sync::Arc;

use countersign_client::Driver;
use countersign_client::countersign::{BroadcastTransaction, Leg, Policy, Registry, Verified};
use countersign_client::driver::{FundingReply, MemoryStore, Outcome, Owner, OwnerError, Purpose, Settlement, Status};
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

/// The pins are stored when the owner is first asked. Once the list names another contract, an order that is still to be paid would be
/// checked against one, and redeemed by the other.
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
