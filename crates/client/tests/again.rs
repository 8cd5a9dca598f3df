//! A payment that seems to be lost, so that the owner is asked for another one, and lands after all.
use crate::world;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use countersign_client::countersign::{BroadcastTransaction, OrderRecord, Policy, Registry, Verified};
use countersign_client::driver::{
    Delivery, Following, FundingReply, MemoryStore, NewOrder, OrderState, OrderStore as _, Outcome, Owner, OwnerError, Settlement, Status,
};
use countersign_client::{Driver, OrderId};
use world::Worlds;
use world::plan::{Bad, Plan};

/// How an owner answers who is asked for another payment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Second {
    Signs,
    /// The question stays open.
    IsOpen,
    /// The signer, which can send by itself, never replies.
    IsAtSigner,
}

struct Asked {
    world: Arc<Worlds>,
    second: Second,
    is_second: AtomicBool,
}

impl Asked {
    async fn sign(&self, order: &Verified) -> Result<FundingReply, OwnerError> {
        if self.is_second.swap(true, Ordering::SeqCst) && self.second != Second::Signs {
            std::future::pending::<()>().await;
        }
        self.world.fund(order).await
    }
}

impl Owner for Asked {
    async fn fund(&self, order: &Verified) -> Result<FundingReply, OwnerError> {
        if self.second == Second::IsAtSigner { Ok(FundingReply::Outside) } else { self.sign(order).await }
    }

    async fn hand_out(&self, order: &Verified) -> Result<FundingReply, OwnerError> {
        self.sign(order).await
    }

    async fn check_release(&self, record: &OrderRecord, registry: &Registry) -> Result<(), OwnerError> {
        self.world.check_release(record, registry).await
    }

    async fn settle(&self, task: &Settlement<'_>) -> Result<Option<Vec<BroadcastTransaction>>, OwnerError> {
        self.world.settle(task).await
    }

    fn can_redeem(&self, chain: &str) -> bool {
        self.world.can_redeem(chain)
    }

    fn signs_here(&self, chain: &str) -> bool {
        self.world.signs_here(chain)
    }
}

type AskedDriver = Driver<Arc<Worlds>, Arc<Worlds>, MemoryStore, Asked>;

async fn load(driver: &AskedDriver, id: &OrderId) -> OrderState {
    driver.store().load(id).await.unwrap()
}

/// Returns an order whose payment two of three endpoints have rejected, because they follow the chain a minute too late. The third has taken
/// it, and has not said so in time.
async fn rejected(world: &Arc<Worlds>, second: Second) -> (AskedDriver, OrderId) {
    let flow = world.driver_with(MemoryStore::default(), &world.registry, Policy::default()).flow().clone();
    let owner = Asked { world: Arc::clone(world), second, is_second: AtomicBool::new(false) };
    let driver = Driver::new(flow, Arc::clone(world), MemoryStore::default(), owner);
    let (fixture, secret) = world.order(1);
    let id = driver.create(NewOrder::new(fixture.create(), Some(secret))).await.unwrap();
    while load(&driver, &id).await.attempts(Delivery::Funding).0 == 0 {
        driver.advance(&id).await.unwrap();
    }
    assert!(load(&driver, &id).await.payment_was_rejected());
    assert_eq!(world.end(&id).0, 1);
    (driver, id)
}

fn plan() -> Plan {
    let late = vec![(0, Bad::ConfirmsLate), (1, Bad::LagsAndRejects(60)), (2, Bad::LagsAndRejects(60))];
    Plan { gasless: false, endpoints: 3, bad: [late, Vec::new()], ..Plan::honest() }
}

/// Follows an order until it ends. Nothing stops the following before.
async fn follow(driver: &AskedDriver, id: &OrderId) -> Outcome {
    let mut following = Following::new(&load(driver, id).await, driver.chains(), None);
    loop {
        // No step may take as long as the question is open.
        let result = tokio::time::timeout(Duration::from_secs(900), driver.advance(id)).await.unwrap();
        if let Ok(progress) = &result
            && let Status::Ended { outcome } = progress.status
            && !progress.acted
        {
            return outcome;
        }
        assert_eq!(following.hear(&load(driver, id).await, &result).stop, None, "{result:?}");
        tokio::time::sleep(Duration::from_secs(10)).await;
    }
}

/// The service has seen the payment that the other endpoints do not show yet, so its record is not one to sign.
#[tokio::test(start_paused = true)]
async fn a_refusal_of_another_payment_does_not_end_the_following_of_the_first() {
    let world = Worlds::new(0, plan());
    let (driver, id) = rejected(&world, Second::Signs).await;
    tokio::time::sleep(Duration::from_secs(30)).await;
    let progress = driver.advance(&id).await.unwrap();
    assert!(progress.is_paid && progress.failure().is_some_and(|why| why.contains("already funded")), "{progress:?}");
    assert_eq!(follow(&driver, &id).await, Outcome::Complete);
    assert_eq!(world.end(&id), (1, true, false));
}

/// While nobody answers, the first payment arrives, and the destination has to be redeemed in time.
#[tokio::test(start_paused = true)]
async fn an_open_question_about_another_payment_does_not_hold_up_the_first() {
    for second in [Second::IsOpen, Second::IsAtSigner] {
        let world = Worlds::new(0, plan());
        let (driver, id) = rejected(&world, second).await;
        assert_eq!(follow(&driver, &id).await, Outcome::Complete, "{second:?}");
        assert_eq!(world.end(&id), (1, true, false), "{second:?}");
    }
}
