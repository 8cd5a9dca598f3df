//! Signers outside of the process: what the journal says before they get a payment or a secret, and what follows if nobody replies.
use crate::world;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use countersign_client::countersign::{BroadcastTransaction, Verified};
use countersign_client::driver::{
    DriveError, Event, FundingReply, MemoryStore, NewOrder, OrderState, OrderStore, Outcome, Owner, OwnerCode, OwnerError, Purpose,
    SecretRoute, Settlement, Status,
};
use countersign_client::{Api, Client, Driver, Flow, OrderId, Pace, StreamExt};
use futures_util::FutureExt as _;
use world::Worlds;
use world::plan::Plan;

/// How the signer treats its requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Does {
    /// It never replies.
    Hangs,
    Signs,
    /// The owner declines what is shown.
    Declines,
    NotNow,
    Fails,
    /// It sends a payment itself.
    Sends,
}

/// An owner whose signer is outside, and who notes what the journal says whenever the signer gets something.
struct Outside {
    world: Arc<Worlds>,
    store: MemoryStore,
    pays: Mutex<Does>,
    redeems: Does,
    seen: Mutex<Vec<(Purpose, Vec<Event>)>>,
}

impl Outside {
    fn note(&self, id: &str, purpose: Purpose) {
        let kept = load(&self.store, &OrderId::parse(id).unwrap());
        self.seen.lock().unwrap().push((purpose, kept.journal.into_iter().map(|entry| entry.event).collect()));
    }

    /// Returns what the journal said each time the signer got something.
    fn seen(&self, wanted: Purpose) -> Vec<Vec<Event>> {
        self.seen.lock().unwrap().iter().filter(|(purpose, _)| *purpose == wanted).map(|(_, events)| events.clone()).collect()
    }
}

const DECLINED: OwnerCode = OwnerCode::new("declined");

fn failed() -> OwnerError {
    OwnerError::Failed { code: DECLINED, message: "no".to_owned() }
}

impl Owner for Outside {
    async fn fund(&self, _: &Verified) -> Result<FundingReply, OwnerError> {
        let does = *self.pays.lock().unwrap();
        if does == Does::Declines { Err(failed()) } else { Ok(FundingReply::Outside) }
    }

    async fn hand_out(&self, order: &Verified) -> Result<FundingReply, OwnerError> {
        self.note(order.order_id(), Purpose::Funding);
        let does = *self.pays.lock().unwrap();
        match does {
            Does::Hangs => std::future::pending().await,
            Does::Signs => self.world.fund(order).await,
            Does::NotNow => Ok(FundingReply::NotNow),
            Does::Sends => Ok(FundingReply::Elsewhere),
            Does::Fails | Does::Declines => Err(failed()),
        }
    }

    async fn settle(&self, task: &Settlement<'_>) -> Result<Option<Vec<BroadcastTransaction>>, OwnerError> {
        self.note(&task.record.order_id, task.purpose);
        match self.redeems {
            Does::Hangs => std::future::pending().await,
            Does::Signs => self.world.settle(task).await,
            _ => Ok(None),
        }
    }

    fn can_redeem(&self, _: &str) -> bool {
        true
    }
}

type OutsideDriver = Driver<Arc<Worlds>, Arc<Worlds>, MemoryStore, Arc<Outside>>;

fn owner(world: &Arc<Worlds>, store: &MemoryStore, pays: Does, redeems: Does) -> Arc<Outside> {
    Arc::new(Outside { world: Arc::clone(world), store: store.clone(), pays: Mutex::new(pays), redeems, seen: Mutex::default() })
}

fn driver(owner: &Arc<Outside>) -> OutsideDriver {
    let world = &owner.world;
    let client = Client::new(Api::new("https://service.example", None).unwrap(), Arc::clone(world));
    let flow = Flow::new(client, Arc::clone(&world.registry), countersign_client::countersign::Policy::default());
    let pace = Pace { quickest: Duration::from_secs(4), slowest: Duration::from_secs(20) };
    Driver::new(flow, Arc::clone(world), owner.store.clone(), Arc::clone(owner)).with_pace(pace)
}

fn load(store: &MemoryStore, id: &OrderId) -> OrderState {
    store.load(id).now_or_never().unwrap().unwrap()
}

async fn create(driver: &OutsideDriver, world: &Worlds) -> OrderId {
    let (fixture, secret) = world.order(1);
    driver.create(NewOrder::new(fixture.create(), Some(secret))).await.unwrap()
}

/// Drives for some seconds. Returns the end, if there is one.
async fn run(driver: &OutsideDriver, seconds: u64) -> Option<Outcome> {
    let all = async {
        let mut changes = std::pin::pin!(driver.run().await.unwrap());
        while let Some(change) = changes.next().await {
            if let Status::Ended { outcome } = change.result.unwrap().status {
                return Some(outcome);
            }
        }
        None
    };
    tokio::time::timeout(Duration::from_secs(seconds), all).await.unwrap_or_default()
}

const DAYS: u64 = 4 * 86_400;

#[tokio::test(start_paused = true)]
async fn the_journal_says_that_the_secret_may_be_out_before_a_signer_gets_it() {
    let (world, store) = (Worlds::new(0, Plan::honest()), MemoryStore::default());
    let hanging = owner(&world, &store, Does::Signs, Does::Hangs);
    let id = create(&driver(&hanging), &world).await;
    // The process ends while the signer has the redemption.
    assert_eq!(run(&driver(&hanging), 600).await, None);
    let [journal] = <[_; 1]>::try_from(hanging.seen(Purpose::Redemption)).unwrap();
    assert_eq!(journal.last(), Some(&Event::SecretLeaving { path: SecretRoute::Signer }));
    assert!(load(&store, &id).secret_has_left());
    // The next run continues and asks again.
    let signing = owner(&world, &store, Does::Signs, Does::Signs);
    assert_eq!(run(&driver(&signing), DAYS).await, Some(Outcome::Complete));
    assert_eq!(world.end(&id), (1, true, false));
    assert!(!world.has_leaked());
}

/// The keys are in this process: signing shows the secret to nobody.
#[tokio::test(start_paused = true)]
async fn a_key_in_this_process_gets_the_secret_without_a_line() {
    let (world, store) = (Worlds::new(0, Plan::honest()), MemoryStore::default());
    let driver = world.driver(store.clone());
    let (fixture, secret) = world.order(1);
    let id = driver.create(NewOrder::new(fixture.create(), Some(secret))).await.unwrap();
    let all = async {
        let mut changes = std::pin::pin!(driver.run().await.unwrap());
        while let Some(change) = changes.next().await {
            assert!(change.result.is_ok());
        }
    };
    tokio::time::timeout(Duration::from_secs(DAYS), all).await.unwrap();
    let kept = load(&store, &id);
    assert_eq!(kept.outcome(), Some(Outcome::Complete));
    assert!(!kept.journal.iter().any(|entry| entry.event == Event::SecretLeaving { path: SecretRoute::Signer }));
}

/// The solver could take its payment back. Neither the signer, which may have done nothing, nor the relayer, which is allowed, is made to
/// reveal the secret so late.
#[tokio::test(start_paused = true)]
async fn once_the_margin_has_passed_nobody_is_asked_to_reveal_the_secret() {
    let (world, store) = (Worlds::new(0, Plan::honest()), MemoryStore::default());
    let hanging = owner(&world, &store, Does::Signs, Does::Hangs);
    let id = create(&driver(&hanging), &world).await;
    assert_eq!(run(&driver(&hanging), 600).await, None);
    tokio::time::sleep(Duration::from_secs(6 * 3_600)).await;
    let declining = owner(&world, &store, Does::Signs, Does::NotNow);
    let progress = driver(&declining).allow_relayer().advance(&id).await.unwrap();
    assert!(matches!(progress.status, Status::AwaitingRefund { .. }), "{progress:?}");
    assert!(declining.seen(Purpose::Redemption).is_empty());
    assert!(!world.has_leaked());
}

#[tokio::test(start_paused = true)]
async fn a_payment_whose_signer_never_replied_is_not_asked_for_again() {
    let (world, store) = (Worlds::new(0, Plan::honest()), MemoryStore::default());
    let hanging = owner(&world, &store, Does::Hangs, Does::Signs);
    let id = create(&driver(&hanging), &world).await;
    assert_eq!(run(&driver(&hanging), 30).await, None);
    assert_eq!(hanging.seen(Purpose::Funding), [vec![Event::PaymentLeaving]]);
    assert!(load(&store, &id).may_be_paid());
    let next = owner(&world, &store, Does::Signs, Does::Signs);
    let after = driver(&next);
    let progress = after.advance(&id).await.unwrap();
    assert!(progress.is_paid && progress.status == Status::Paying, "{progress:?}");
    // The signer had sent it.
    world.of(id.as_str()).fund_at(world.time());
    assert_eq!(run(&after, DAYS).await, Some(Outcome::Complete));
    assert!(next.seen(Purpose::Funding).is_empty(), "it would be paid twice");
}

#[tokio::test(start_paused = true)]
async fn what_the_signer_did_not_send_is_not_paid() {
    for does in [Does::Declines, Does::NotNow, Does::Fails] {
        let (world, store) = (Worlds::new(0, Plan::honest()), MemoryStore::default());
        let owner = owner(&world, &store, does, Does::Signs);
        let driver = driver(&owner);
        let id = create(&driver, &world).await;
        let result = driver.advance(&id).await;
        match does {
            Does::NotNow => {
                assert!(matches!(&result, Ok(progress) if progress.status == Status::Unsigned && !progress.is_paid), "{result:?}")
            }
            _ => assert!(matches!(&result, Err(DriveError::Owner(OwnerError::Failed { code: DECLINED, .. }))), "{result:?}"),
        }
        let kept = load(&store, &id);
        assert!(!kept.may_be_paid(), "{does:?}");
        // The signer was not asked to sign what the owner declined.
        assert_eq!(kept.journal.is_empty(), does == Does::Declines, "{does:?}");
        // The owner changes their mind.
        *owner.pays.lock().unwrap() = Does::Signs;
        assert_eq!(run(&driver, DAYS).await, Some(Outcome::Complete), "{does:?}");
        assert_eq!(world.end(&id), (1, true, false), "{does:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_the_signer_sent_counts_as_paid() {
    let (world, store) = (Worlds::new(0, Plan::honest()), MemoryStore::default());
    let owner = owner(&world, &store, Does::Sends, Does::Signs);
    let driver = driver(&owner);
    let id = create(&driver, &world).await;
    assert!(driver.advance(&id).await.unwrap().is_paid);
    run(&driver, 3_600).await;
    assert_eq!(owner.seen(Purpose::Funding).len(), 1);
    assert!(load(&store, &id).may_be_paid());
}

/// The source chain is not connected, and the service states that an order is paid which nobody here has signed.
#[tokio::test(start_paused = true)]
async fn a_payment_that_only_the_service_states_is_not_called_paid() {
    let world = Worlds::unconnected(Plan::honest());
    let store = MemoryStore::default();
    let owner = owner(&world, &store, Does::NotNow, Does::NotNow);
    let driver = driver(&owner);
    let id = create(&driver, &world).await;
    world.of(id.as_str()).fund_at(world.time());
    tokio::time::sleep(Duration::from_secs(60)).await;
    let progress = driver.advance(&id).await.unwrap();
    assert!(!progress.is_paid && progress.is_stated_paid, "{progress:?}");
    assert_eq!(serde_json::to_value(&progress).unwrap()["is_paid"], false);
    assert!(load(&store, &id).journal.is_empty());
}
