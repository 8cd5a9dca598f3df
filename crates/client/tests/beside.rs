//! Tests that nothing else can hold up a swap: not a hanging service, another process, or an attempt that is repeated
//! for hours.
use crate::world;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use countersign_client::countersign::Leg;
use countersign_client::driver::{
    Delivery, DriveError, Entry, Event, MemoryStore, NewOrder, OrderState, OrderStore, Outcome, OwnerError, Progress, Purpose, SignedUnder,
    Status, StoreError, Trouble,
};
use countersign_client::{OrderId, Secret, StreamExt, Transport as _};
use countersign_store::testing::MemoryDisk;
use countersign_testkit::chain::view::Htlc;
use futures_util::FutureExt as _;
use world::plan::{Bad, Lie, Miners, Plan, Service, Solver};
use world::{BLOCK, TestDriver, WorldDriver, Worlds};

/// The longest wait between two observations of the test's drivers, in seconds.
const POLL: u64 = 20;

async fn create<S: OrderStore>(driver: &WorldDriver<S>, world: &Worlds, number: u64) -> OrderId {
    let (fixture, secret) = world.order(number);
    driver.create(NewOrder::new(fixture.create(), Some(secret))).await.unwrap()
}

/// Drives until a step satisfies `is_done`, for at most four days.
async fn drive_until(driver: &TestDriver, is_done: impl Fn(&Result<Progress, DriveError>) -> bool) {
    let mut changes = std::pin::pin!(driver.run().await.unwrap());
    let all = async {
        while let Some(change) = changes.next().await {
            if is_done(&change.result) {
                return;
            }
        }
        panic!("every order ended before");
    };
    tokio::time::timeout(Duration::from_secs(4 * 86_400), all).await.unwrap();
}

fn ended(outcome: Outcome) -> impl Fn(&Result<Progress, DriveError>) -> bool {
    move |result| matches!(result, Ok(Progress { status: Status::Ended { outcome: one }, .. }) if *one == outcome)
}

/// Runs swaps and requires that each is redeemed at most one poll and two seconds after the destination's chain proves the payment.
async fn check_delay(seeds: u64, plan: Plan) {
    for seed in 0..seeds {
        let world = Worlds::new(seed, plan.clone());
        let driver = world.driver(MemoryStore::default());
        let id = create(&driver, &world, 1).await;
        drive_until(&driver, ended(Outcome::Complete)).await;
        let order = world.of(id.as_str());
        let tempo = order.tempo(Leg::Destination);
        let Htlc { funded, ended, .. } = order.now().destination;
        let proven = tempo.arrives(tempo.includes(funded.unwrap())) + plan.pays.settles_after();
        let redeemed = ended.unwrap().1 - BLOCK;
        let took = redeemed.saturating_sub(proven);
        assert!(took <= POLL + 2, "seed {seed}, {plan:?}: {took} s");
    }
}

/// The service stops answering once the owner has paid.
#[tokio::test(start_paused = true)]
async fn a_service_that_hangs_delays_a_redemption_by_a_poll_and_two_seconds() {
    check_delay(20, Plan { service: vec![Service::HangsOncePaid], ..Plan::honest() }).await;
}

/// Two of three endpoints are healthy, and two must agree. The third is asked first.
#[tokio::test(start_paused = true)]
async fn one_bad_endpoint_of_three_delays_a_redemption_by_a_poll_and_two_seconds() {
    for third in [Bad::Hangs, Bad::Lies(Lie::Absent), Bad::Lags(7_200)] {
        for service in [Vec::new(), vec![Service::HangsOncePaid]] {
            check_delay(6, Plan { endpoints: 3, bad: [(); 2].map(|()| vec![(0, third)]), service, ..Plan::honest() }).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_service_is_not_asked_while_the_secret_is_out() {
    let world = Worlds::new(0, Plan::honest());
    let driver = world.driver(MemoryStore::default());
    let id = create(&driver, &world, 1).await;
    drive_until(&driver, |_| driver.store().load(&id).now_or_never().unwrap().unwrap().may_be_sent(Delivery::Redemption)).await;
    let asked = world.requests.load(Ordering::SeqCst);
    drive_until(&driver, ended(Outcome::Complete)).await;
    assert_eq!(world.requests.load(Ordering::SeqCst), asked);
}

/// Another process can lock the order whenever this one waits for a network, from the payment on.
#[tokio::test(start_paused = true)]
async fn the_lock_is_held_around_acts_and_not_around_waiting() {
    let world = Worlds::new(0, Plan { latency: (3_000, 3_100), ..Plan::honest() });
    let store = MemoryStore::default();
    let driver = world.driver(store.clone());
    let id = create(&driver, &world, 1).await;
    drive_until(&driver, |_| store.load(&id).now_or_never().unwrap().unwrap().may_be_paid()).await;
    let (mut locks, mut busy) = (0, 0);
    let other = async {
        loop {
            tokio::time::sleep(Duration::from_millis(371)).await;
            match store.lock(&id).await {
                Ok(_) => locks += 1,
                Err(_) => busy += 1,
            }
        }
    };
    tokio::select! {
        () = drive_until(&driver, ended(Outcome::Complete)) => {}
        () = other => {}
    }
    assert!(locks > 30 && busy == 0, "{locks} {busy}");
}

/// A redemption that every node rejects for six hours, signed again each time, leaves room for the refund and the end.
#[tokio::test(start_paused = true)]
async fn a_journal_stays_short_whatever_is_tried_again() {
    let world = Worlds::new(0, Plan { miners: Miners::RejectRedemptions, ..Plan::honest() });
    let disk = MemoryDisk::new();
    let store = Arc::new(countersign_store::Store::open_on(Arc::new(disk.clone()), Path::new("/state")).unwrap());
    let driver = world.driver(Arc::clone(&store));
    let (fixture, secret) = world.order(1);
    let id = driver.create(NewOrder::new(fixture.create(), Some(Secret::parse(&secret.to_hex()).unwrap()))).await.unwrap();
    let begin = world.time();
    let mut longest = 0;
    while world.time() < begin + 6 * 3_600 {
        driver.advance(&id).await.unwrap();
        let kept = store.load(&id).await.unwrap();
        longest = longest.max(kept.journal.len());
        tokio::time::sleep(Duration::from_secs(60)).await;
    }
    let kept = store.load(&id).await.unwrap();
    let (attempts, _) = kept.attempts(Delivery::Redemption);
    assert!(attempts > 300, "{attempts}");
    assert!(longest < 90, "{longest}");
    let signatures = kept.journal.iter().filter(|entry| matches!(entry.event, Event::Signed { purpose: Purpose::Redemption, .. }));
    assert!(signatures.count() <= 6);
    // The swap is still driven on: the solver never gets the secret, so the source is refunded. The redemption is tried as long as the
    // destination is locked.
    while !store.load(&id).await.unwrap().was_sent(Delivery::Refund) {
        driver.advance(&id).await.unwrap();
        tokio::time::sleep(Duration::from_secs(600)).await;
    }
}

/// The reply to the payment is lost. Whether the payment may have been sent is known after the attempt.
#[tokio::test(start_paused = true)]
async fn after_a_lost_reply_the_order_may_be_paid() {
    let world = Worlds::new(0, Plan { service: vec![Service::LosesReplies], ..Plan::honest() });
    let driver = world.driver(MemoryStore::default());
    let id = create(&driver, &world, 1).await;
    loop {
        let progress = driver.advance(&id).await.unwrap();
        if world.end(&id).0 == 1 {
            assert!(progress.is_paid && progress.trouble.is_some(), "{progress:?}");
            break;
        }
        assert!(!progress.is_paid);
    }
}

/// Endpoints whose newest block is old, or ahead of the clock, stop a payment.
#[tokio::test(start_paused = true)]
async fn a_head_that_does_not_fit_the_clock_stops_a_payment() {
    for (offset, word) in [(-2_400_i64, "old"), (90, "ahead of the clock")] {
        let world = Worlds::new(0, Plan { bad: [(); 2].map(|()| vec![(0, Bad::HeadIsOff(offset))]), ..Plan::honest() });
        let driver = world.driver(MemoryStore::default());
        let id = create(&driver, &world, 1).await;
        for _ in 0..5 {
            let progress = driver.advance(&id).await.unwrap();
            assert!(progress.trouble.as_ref().is_some_and(|trouble| trouble.to_string().contains(word)), "{progress:?}");
        }
        assert_eq!(world.end(&id).0, 0);
    }
}

/// A clock that is behind does not let an expired order be paid: the chain's time counts.
#[tokio::test(start_paused = true)]
async fn a_clock_that_is_behind_does_not_hide_that_the_deadline_has_passed() {
    let world = Worlds::new(0, Plan { bad: [(); 2].map(|()| vec![(0, Bad::HeadIsOff(50))]), deadline: Some(30), ..Plan::honest() });
    let driver = world.driver(MemoryStore::default());
    let id = create(&driver, &world, 1).await;
    drive_until(&driver, ended(Outcome::Expired)).await;
    assert_eq!(world.end(&id).0, 0);
}

/// A term that the record did not have when the order was signed.
#[tokio::test(start_paused = true)]
async fn affiliate_fees_that_appear_after_the_payment_are_a_changed_record() {
    let world = Worlds::new(0, Plan { service: vec![Service::AddsAFee], solver: Solver::Never, ..Plan::honest() });
    let driver = world.driver(MemoryStore::default());
    create(&driver, &world, 1).await;
    let is_changed = |result: &Result<Progress, DriveError>| matches!(result, Ok(Progress { status: Status::Refused { refusal }, .. }) if refusal.code().name() == "record_changed");
    drive_until(&driver, is_changed).await;
}

/// An owner who paid by a gasless message may have no coin for the fee of a refund. The relayer can only pay the owner.
#[tokio::test(start_paused = true)]
async fn where_the_owner_cannot_pay_for_a_refund_the_relayer_is_asked() {
    let world = Worlds::new(0, Plan { solver: Solver::Never, cannot_pay: vec![Purpose::Refund], ..Plan::honest() });
    let driver = world.driver(MemoryStore::default());
    let id = create(&driver, &world, 1).await;
    drive_until(&driver, ended(Outcome::Refunded)).await;
    assert!(world.is_refunded(&id));
}

/// The counterpart of the test above. The owner has an account on the destination chain but no coin for fees, which
/// is as good as no account.
#[tokio::test(start_paused = true)]
async fn where_the_owner_cannot_pay_for_a_redemption_the_relayer_is_asked() {
    for is_allowed in [true, false] {
        let world = Worlds::new(0, Plan { cannot_pay: vec![Purpose::Redemption], ..Plan::honest() });
        let driver = world.driver(MemoryStore::default());
        let driver = if is_allowed { driver.allow_relayer() } else { driver };
        let id = create(&driver, &world, 1).await;
        if is_allowed {
            drive_until(&driver, ended(Outcome::Complete)).await;
            assert_eq!(world.end(&id), (1, true, false));
        } else {
            drive_until(&driver, |result| matches!(result, Err(DriveError::Owner(OwnerError::Refused(_))))).await;
            assert!(!world.has_leaked(), "the owner is told, and nobody learns the secret");
        }
    }
}

/// A store that can be read, and from some moment on not written: a full disk, a quota, a file system that became read-only.
#[derive(Default)]
struct Full {
    store: MemoryStore,
    is_full: AtomicBool,
    cannot_lock: bool,
}

impl Full {
    fn check(&self) -> Result<(), StoreError> {
        if self.is_full.load(Ordering::SeqCst) { Err(StoreError::Failed("no space left".to_owned())) } else { Ok(()) }
    }
}

impl OrderStore for Full {
    type Guard = <MemoryStore as OrderStore>::Guard;

    async fn create(&self, order: &OrderState) -> Result<(), StoreError> {
        self.check()?;
        self.store.create(order).await
    }

    async fn lock(&self, id: &OrderId) -> Result<Self::Guard, StoreError> {
        if self.cannot_lock {
            self.check()?;
        }
        self.store.lock(id).await
    }

    async fn load(&self, id: &OrderId) -> Result<OrderState, StoreError> {
        self.store.load(id).await
    }

    async fn keep_record(&self, guard: &Self::Guard, body: &[u8]) -> Result<(), StoreError> {
        self.check()?;
        self.store.keep_record(guard, body).await
    }

    async fn keep_pins(&self, guard: &Self::Guard, pins: &SignedUnder) -> Result<(), StoreError> {
        self.check()?;
        self.store.keep_pins(guard, pins).await
    }

    async fn append(&self, guard: &Self::Guard, entry: &Entry) -> Result<(), StoreError> {
        self.check()?;
        self.store.append(guard, entry).await
    }

    async fn replace_journal(&self, guard: &Self::Guard, entries: &[Entry]) -> Result<(), StoreError> {
        self.check()?;
        self.store.replace_journal(guard, entries).await
    }

    async fn orders(&self) -> Result<Vec<OrderId>, StoreError> {
        self.store.orders().await
    }
}

/// What is out already is sent again, and its fee is raised, whatever becomes of the store. Only a replacement is mined in this world.
#[tokio::test(start_paused = true)]
async fn a_store_that_cannot_be_written_stops_no_retry() {
    for (never_pays, cannot_lock) in [(false, false), (false, true), (true, false), (true, true)] {
        let world = Worlds::new(
            0,
            Plan { miners: Miners::WantMore, solver: if never_pays { Solver::Never } else { Solver::Pays(30) }, ..Plan::honest() },
        );
        let driver = world.driver(Full { cannot_lock, ..Full::default() });
        let id = create(&driver, &world, 1).await;
        let purpose = if never_pays { Purpose::Refund } else { Purpose::Redemption };
        let (mut is_told, mut is_over) = (false, false);
        for _ in 0..4_000 {
            let kept = driver.store().load(&id).await.unwrap();
            let what = if never_pays { Delivery::Refund } else { Delivery::Redemption };
            if kept.signed(purpose).is_some() && kept.may_be_sent(what) {
                driver.store().is_full.store(true, Ordering::SeqCst);
            }
            if let Ok(Progress { trouble: Some(Trouble::NotWritten(_)), .. }) = driver.advance(&id).await {
                is_told = true;
            }
            is_over = if never_pays { world.is_refunded(&id) } else { world.end(&id).1 };
            if is_over {
                break;
            }
            let waits_for_a_day = never_pays && !driver.store().is_full.load(Ordering::SeqCst);
            tokio::time::sleep(Duration::from_secs(if waits_for_a_day { 900 } else { 5 })).await;
        }
        assert!(is_over && is_told, "{never_pays} {cannot_lock}: over {is_over}, told {is_told}");
    }
}

/// A payment that was signed here, and sent from a copy of the store, may be mined after the order has ended.
#[tokio::test(start_paused = true)]
async fn an_order_that_ended_without_a_payment_is_open_again_once_the_chain_shows_one() {
    for (is_commanded, cannot_write) in [(false, false), (true, false), (true, true)] {
        let world = Worlds::new(0, Plan { solver: Solver::Never, ..Plan::honest() });
        let driver = world.driver(Full { cannot_lock: true, ..Full::default() });
        let id = create(&driver, &world, 1).await;
        let order = async || driver.store().load(&id).await.unwrap();
        while order().await.signed(Purpose::Funding).is_none() {
            driver.advance(&id).await.unwrap();
        }
        assert!(!order().await.may_be_paid());
        // The order has a deadline of some hours.
        tokio::time::sleep(Duration::from_secs(86_400)).await;
        let is_ended = |progress: &Progress, outcome| progress.status == Status::Ended { outcome };
        while !is_ended(&driver.advance(&id).await.unwrap(), Outcome::Expired) || order().await.outcome().is_none() {}
        assert!(is_ended(&driver.refund(&id).await.unwrap(), Outcome::Expired), "the chain shows nothing");
        world.of(id.as_str()).fund_at(world.time());
        driver.store().is_full.store(cannot_write, Ordering::SeqCst);
        tokio::time::sleep(Duration::from_secs(60)).await;
        let progress = if is_commanded { driver.refund(&id).await } else { driver.advance(&id).await }.unwrap();
        assert!(matches!(progress.status, Status::Waiting { .. }), "{:?}", progress.status);
        driver.store().is_full.store(false, Ordering::SeqCst);
        for _ in 0..2_000 {
            driver.refund(&id).await.unwrap();
            tokio::time::sleep(Duration::from_secs(300)).await;
        }
        assert!(world.is_refunded(&id) && order().await.outcome() == Some(Outcome::Refunded));
    }
}

/// Before the first attempt, the intent must be stored: what cannot be written is not done.
#[tokio::test(start_paused = true)]
async fn with_a_store_that_cannot_be_written_no_secret_leaves() {
    let world = Worlds::new(0, Plan::honest());
    let driver = world.driver(Full::default());
    let id = create(&driver, &world, 1).await;
    for _ in 0..60 {
        if driver.advance(&id).await.is_ok_and(|progress| progress.is_paid) {
            driver.store().is_full.store(true, Ordering::SeqCst);
        }
        tokio::time::sleep(Duration::from_secs(5)).await;
    }
    assert_eq!(world.end(&id), (1, false, false));
    assert!(!world.has_leaked());
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_was_set_back_does_not_stop_a_fee_from_being_raised() {
    let world = Worlds::new(0, Plan::honest());
    let driver = world.driver(MemoryStore::default());
    let id = create(&driver, &world, 1).await;
    let mut kept = driver.store().load(&id).await.unwrap();
    let signed = Event::Signed { purpose: Purpose::Redemption, transactions: Vec::new(), gasless: None };
    kept.journal =
        vec![Entry { at: driver.flow().client().transport().now().saturating_add(Duration::from_secs(3 * 3_600)), event: signed }];
    assert!(driver.is_overdue(&kept, Purpose::Redemption), "signed three hours from now");
}
