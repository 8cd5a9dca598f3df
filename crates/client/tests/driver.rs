//! Swaps driven to their end in a simulated world with faults, false statements and crashes.
use crate::support;
use crate::world;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use countersign_client::countersign::{
    Code, Policy, Registry, U256,
    chains::{Finality, FinalityRule},
    evidence::Hold,
};
use countersign_client::driver::{
    DriveError, Entry, Event, MemoryStore, NewOrder, OrderState, OrderStore, Outcome, OwnerTask, Purpose, Status, StoreError,
    TrustTheService, WaitingFor,
};
use countersign_client::{CreatedOrder, OrderId, Secret, StreamExt};
use countersign_store::testing::MemoryDisk;
use support::Fixture;
use world::plan::{Bad, Dice, Miners, Plan, Service, Solver};
use world::{TestDriver, WorldDriver, Worlds};

/// Creates an order, however often the service fails.
pub(crate) async fn create(driver: &TestDriver, world: &Worlds, number: u64) -> OrderId {
    let (fixture, secret) = world.order(number);
    driver.create(NewOrder::new(fixture.create(), Some(secret))).await.unwrap()
}

/// Drives until every order ends, or for four days.
pub(crate) async fn run(driver: &TestDriver) -> Vec<(OrderId, Outcome)> {
    let mut ends = Vec::new();
    let all = async {
        let mut changes = std::pin::pin!(driver.run().await.unwrap());
        while let Some(change) = changes.next().await {
            if let Ok(progress) = &change.result
                && let Status::Ended { outcome } = progress.status
                && !progress.acted
            {
                ends.push((change.id, outcome));
            }
        }
    };
    let _ = tokio::time::timeout(Duration::from_secs(4 * 86_400), all).await;
    ends
}

/// Drives one order for a while and returns its last status.
pub(crate) async fn last_status(driver: &TestDriver, seconds: u64) -> Status {
    let mut last = Status::Unsigned;
    let all = async {
        let mut changes = std::pin::pin!(driver.run().await.unwrap());
        while let Some(change) = changes.next().await {
            match change.result {
                Ok(progress) => last = progress.status,
                Err(DriveError::Refused(refusal)) => last = Status::Refused { refusal },
                Err(error) => panic!("{error}"),
            }
        }
    };
    let _ = tokio::time::timeout(Duration::from_secs(seconds), all).await;
    last
}

#[tokio::test(start_paused = true)]
async fn a_swap_completes_by_the_owners_own_redemption() {
    let world = Worlds::new(0, Plan::honest());
    let driver = world.driver(MemoryStore::default());
    let id = create(&driver, &world, 1).await;
    assert_eq!(run(&driver).await, [(id.clone(), Outcome::Complete)]);
    assert_eq!(world.end(&id), (1, true, false));
    assert!(!world.has_leaked(), "the service never learned the secret before the chain did");
}

/// Whatever the path: the secret reaches neither a signer nor the relayer, and the owner is refunded.
#[tokio::test(start_paused = true)]
async fn a_receiver_that_cannot_be_paid_holds_the_secret_back() {
    for cannot_pay_to_redeem in [false, true] {
        let world = Worlds::new(
            0,
            Plan {
                freezes_the_receiver: true,
                cannot_pay: cannot_pay_to_redeem.then_some(Purpose::Redemption).into_iter().collect(),
                ..Plan::honest()
            },
        );
        let driver = world.driver(MemoryStore::default());
        let driver = if cannot_pay_to_redeem { driver.allow_relayer() } else { driver };
        let id = create(&driver, &world, 1).await;
        assert_eq!(run(&driver).await, [(id.clone(), Outcome::Refunded)], "{cannot_pay_to_redeem}");
        assert_eq!(world.end(&id), (1, false, false));
        assert!(!world.has_leaked());
    }
}

/// `.ci/slow` sets `FAULTY_SWAPS=200`: each request is compared with everything that was signed, so time grows with the square.
#[tokio::test(start_paused = true)]
async fn swaps_of_one_driver_complete_at_five_per_cent_faults() {
    let swaps = std::env::var("FAULTY_SWAPS").map_or(60, |number| number.parse().unwrap());
    let world = Worlds::new(0, Plan { fault_rate: 5, ..Plan::honest() });
    let driver = world.driver(MemoryStore::default());
    let mut ids = Vec::new();
    for number in 1..=swaps {
        let (fixture, secret) = world.order(number);
        // The caller repeats a failed creation: an order that was created but not stored is never paid.
        loop {
            match driver.create(NewOrder::new(fixture.create(), Some(Secret::parse(&secret.to_hex()).unwrap()))).await {
                Ok(id) => break ids.push(id),
                Err(DriveError::Create(_)) => {}
                Err(error) => panic!("{error}"),
            }
        }
    }
    let ends = run(&driver).await;
    assert_eq!(ends.len(), ids.len());
    assert!(ends.iter().all(|(_, outcome)| *outcome == Outcome::Complete), "{ends:?}");
    for id in &ids {
        assert_eq!(world.end(id), (1, true, false), "{id}");
    }
}

/// The process dies at 200 random moments. Each time a new one continues from the store.
#[tokio::test(start_paused = true)]
async fn whatever_dies_in_between_nothing_is_paid_twice_and_no_secret_is_lost() {
    let mut deaths = 0;
    for seed in 0.. {
        let world = Worlds::new(seed, Plan { fault_rate: 5 * (seed % 2), ..Plan::honest() });
        let mut dice = Dice(seed);
        let store = MemoryStore::default();
        let id = loop {
            let driver = world.driver(store.clone());
            let (fixture, secret) = world.order(seed + 1);
            if let Ok(id) = driver.create(NewOrder::new(fixture.create(), Some(secret))).await {
                break id;
            }
        };
        loop {
            *world.life.fuse.lock().unwrap() = Some(dice.below(30));
            let driver = world.driver(store.clone());
            tokio::select! {
                ends = run(&driver) => {
                    assert_eq!(ends, [(id.clone(), Outcome::Complete)], "seed {seed}");
                    break;
                }
                () = world.life.died.notified() => deaths += 1,
            }
        }
        assert_eq!(world.end(&id), (1, true, false), "seed {seed}");
        if deaths >= 200 {
            return;
        }
    }
}

/// The power fails at 200 random moments, and the disk loses what was not synced. Each time a new process continues with what the disk
/// still has.
#[tokio::test(start_paused = true)]
async fn a_power_cut_loses_no_secret_and_pays_nothing_twice() {
    let mut cuts = 0;
    for seed in 0.. {
        let world = Worlds::new(seed, Plan { fault_rate: 5 * (seed % 2), ..Plan::honest() });
        let mut dice = Dice(seed);
        let mut disk = MemoryDisk::new();
        let open = |disk: &MemoryDisk| countersign_store::Store::open_on(Arc::new(disk.clone()), Path::new("/state")).map(Arc::new);
        let (fixture, secret) = world.order(seed + 1);
        let mut order = None;
        loop {
            disk.cut_after(dice.below(40));
            let outcome = match open(&disk) {
                Ok(store) => live(&world.driver(store), &mut order, &fixture, &secret).await,
                Err(_) => None,
            };
            if outcome.is_some() {
                assert_eq!(outcome, Some(Outcome::Complete), "seed {seed}");
                break;
            }
            cuts += 1;
            disk = disk.reboot(dice.next());
        }
        assert_eq!(world.end(&order.unwrap()), (1, true, false), "seed {seed}");
        if cuts >= 200 {
            return;
        }
    }
}

/// Runs one process: creates the order if there is none, and drives it until it ends or the disk fails.
async fn live<S: OrderStore>(driver: &WorldDriver<S>, order: &mut Option<OrderId>, fixture: &Fixture, secret: &Secret) -> Option<Outcome> {
    let kept = driver.store().orders().await.ok()?;
    if kept.is_empty() {
        // An order that was not stored was never paid.
        *order = Some(driver.create(NewOrder::new(fixture.create(), Some(Secret::parse(&secret.to_hex()).unwrap()))).await.ok()?);
    } else {
        *order = kept.first().cloned();
    }
    let mut changes = std::pin::pin!(driver.run().await.ok()?);
    while let Some(change) = changes.next().await {
        match change.result {
            Ok(progress) => {
                if let Status::Ended { outcome } = progress.status
                    && !progress.acted
                {
                    return Some(outcome);
                }
            }
            Err(DriveError::Store(_)) => return None,
            Err(error) => panic!("{error}"),
        }
    }
    None
}

#[tokio::test(start_paused = true)]
async fn two_drivers_of_one_store_do_not_act_twice() {
    for seed in 0..10 {
        let world = Worlds::new(seed, Plan { fault_rate: 2, has_rival: true, ..Plan::honest() });
        let store = MemoryStore::default();
        let (one, other) = (world.driver(store.clone()), world.driver(store.clone()));
        let id = loop {
            let (fixture, secret) = world.order(1);
            if let Ok(id) = one.create(NewOrder::new(fixture.create(), Some(secret))).await {
                break id;
            }
        };
        let (first, second) = tokio::join!(run(&one), run(&other));
        assert_eq!((first.len(), second.len()), (1, 1));
        assert_eq!(world.end(&id), (1, true, false));
    }
}

/// If the service or the solver lies, the secret is not released and the owner gets a refund.
#[tokio::test(start_paused = true)]
async fn lies_release_nothing_and_the_funds_come_back() {
    let lies = [
        Plan { service: vec![Service::SaysFunded], solver: Solver::Never, ..Plan::honest() },
        Plan { solver: Solver::Never, ..Plan::honest() },
        Plan { solver: Solver::PaysLess, ..Plan::honest() },
        // The blocks that show it come while the owner signs.
        Plan { solver: Solver::TakesBack, signing: 180, ..Plan::honest() },
    ];
    for plan in lies {
        let world = Worlds::new(0, plan.clone());
        let driver = world.driver(MemoryStore::default()).allow_relayer();
        let id = create(&driver, &world, 1).await;
        let ends = run(&driver).await;
        let (fundings, paid, stolen) = world.end(&id);
        assert!(fundings == 1 && !paid && !stolen, "{plan:?}: {fundings} {paid} {stolen}");
        assert!(!world.has_leaked(), "{plan:?}");
        assert!(world.is_refunded(&id), "{plan:?}: {ends:?}");
        assert_eq!(ends, [(id, Outcome::Refunded)], "{plan:?}");
    }
}

/// Both chains show what was verified. What a newer record says is shown, and decides nothing.
#[tokio::test(start_paused = true)]
async fn a_record_that_changes_stops_nothing_that_both_chains_have_proven() {
    let world = Worlds::new(0, Plan { service: vec![Service::ChangesTerms], ..Plan::honest() });
    let driver = world.driver(MemoryStore::default());
    let id = create(&driver, &world, 1).await;
    assert_eq!(run(&driver).await, [(id.clone(), Outcome::Complete)]);
    assert_eq!(world.end(&id), (1, true, false));
}

/// A relayer that keeps the secret to itself: the owner, who could not redeem at first, overtakes it.
#[tokio::test(start_paused = true)]
async fn a_relayer_that_relays_nothing_is_overtaken() {
    let world = Worlds::new(0, Plan { service: vec![Service::KeepsTheSecret, Service::LosesReplies], ..Plan::honest() });
    let driver = world.driver(MemoryStore::default()).allow_relayer().with_trust(Some(TrustTheService));
    let id = create(&driver, &world, 1).await;
    world.may_redeem.store(false, Ordering::SeqCst);
    assert_eq!(last_status(&driver, 240).await, Status::Redeeming);
    assert!(world.has_leaked());
    assert_eq!(world.end(&id), (1, false, true), "the service has the secret, and redeems nothing");
    world.may_redeem.store(true, Ordering::SeqCst);
    assert_eq!(run(&driver).await, [(id.clone(), Outcome::Complete)]);
    assert_eq!(world.end(&id), (1, true, false));
}

/// The evidence is read again after the owner has signed, because a person with a hardware wallet may take hours.
#[tokio::test(start_paused = true)]
async fn a_signature_that_took_hours_releases_nothing() {
    let world = Worlds::new(0, Plan { signing: 6 * 3_600, ..Plan::honest() });
    let driver = world.driver(MemoryStore::default());
    let id = create(&driver, &world, 1).await;
    assert_eq!(run(&driver).await, [(id.clone(), Outcome::Refunded)]);
    assert_eq!(world.end(&id), (1, false, false));
}

/// The wallet unpins a solver during one of its orders. The pins from the time of signing still apply to the order.
#[tokio::test(start_paused = true)]
async fn a_pin_that_is_removed_does_not_abandon_a_paid_order() {
    let world = Worlds::new(0, Plan::honest());
    let store = MemoryStore::default();
    let id = create(&world.driver(store.clone()), &world, 1).await;
    assert!(matches!(last_status(&world.driver(store.clone()), 30).await, Status::Waiting { .. }));
    let mut file: serde_json::Value = serde_json::from_str(&support::registry_text()).unwrap();
    for solver in file["solvers"].as_array_mut().unwrap() {
        solver["solver_id"] = serde_json::json!("another");
        solver["address"] = serde_json::json!("0x00000000000000000000000000000000000000ff");
    }
    file["solvers"].as_array_mut().unwrap().retain(|solver| ["base", "arbitrum"].contains(&solver["chain"].as_str().unwrap()));
    let unpinned = Arc::new(Registry::from_json(file.to_string().as_bytes()).unwrap());
    assert_eq!(run(&world.driver_with(store, &unpinned, Policy::default())).await, [(id.clone(), Outcome::Complete)]);
    // A new order of that solver is refused by the same pins.
    let driver = world.driver_with(MemoryStore::default(), &unpinned, Policy::default());
    create(&driver, &world, 2).await;
    assert!(matches!(last_status(&driver, 60).await, Status::Refused { .. }));
}

/// An order that could not be redeemed in time is not paid, unless the policy accepts that.
#[tokio::test(start_paused = true)]
async fn a_destination_timelock_that_is_too_short_is_not_paid() {
    let world = Worlds::new(0, Plan::honest());
    // The orders' 600 blocks are enough by default.
    let strict = Policy::default().with_finality("arbitrum", FinalityRule::new(Finality::Safe, 301, 300));
    let driver = world.driver_with(MemoryStore::default(), &world.registry, strict.clone());
    let id = create(&driver, &world, 1).await;
    let refusal = driver.advance(&id).await.unwrap_err();
    assert!(refusal.to_string().contains("refused") && format!("{refusal:?}").contains("destination_timelock_short"), "{refusal:?}");
    assert_eq!(world.end(&id), (0, false, false));
    let lenient = strict.accepting(Code::DestinationTimelockShort);
    let driver = world.driver_with(MemoryStore::default(), &world.registry, lenient);
    let id = create(&driver, &world, 2).await;
    assert!(driver.advance(&id).await.unwrap().acted);
}

#[tokio::test(start_paused = true)]
async fn a_chain_that_never_answers_does_not_delay_the_other() {
    let world = Worlds::new(0, Plan { bad: [vec![(0, Bad::HangsOncePaid)], Vec::new()], ..Plan::honest() });
    let driver = world.driver(MemoryStore::default());
    let id = create(&driver, &world, 1).await;
    assert_eq!(run(&driver).await, [(id.clone(), Outcome::Complete)]);
    assert_eq!(world.end(&id), (1, true, false));
}

/// A redemption that its chain rejects is signed again and sent at once, before it expires again.
#[tokio::test(start_paused = true)]
async fn a_redemption_that_expires_is_signed_anew_and_lands() {
    let world = Worlds::new(0, Plan { miners: Miners::Expire, ..Plan::honest() });
    let driver = world.driver(MemoryStore::default());
    let id = create(&driver, &world, 1).await;
    let begin = world.time();
    assert_eq!(run(&driver).await, [(id.clone(), Outcome::Complete)]);
    assert!(world.end(&id) == (1, true, false) && world.time() - begin < 600, "{} s", world.time() - begin);
}

/// A redemption or a refund that is not mined is replaced once by one with a higher fee.
#[tokio::test(start_paused = true)]
async fn what_pays_too_little_is_replaced() {
    for (solver, outcome) in [(Solver::Pays(30), Outcome::Complete), (Solver::Never, Outcome::Refunded)] {
        let world = Worlds::new(0, Plan { miners: Miners::WantMore, solver, ..Plan::honest() });
        let driver = world.driver(MemoryStore::default());
        let id = create(&driver, &world, 1).await;
        assert_eq!(run(&driver).await, [(id.clone(), outcome)]);
        let kept = driver.store().load(&id).await.unwrap();
        let purpose = if outcome == Outcome::Complete { Purpose::Redemption } else { Purpose::Refund };
        let is_signed = |entry: &&Entry| matches!(&entry.event, Event::Signed { purpose: signed, .. } if *signed == purpose);
        let signed: Vec<u64> = kept.journal.iter().filter(is_signed).map(|entry| entry.at.as_secs()).collect();
        assert!(signed.len() == 2 && signed[1] - signed[0] >= 60, "{signed:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_order_that_is_too_late_is_not_signed() {
    let world = Worlds::new(0, Plan { deadline: Some(-60), ..Plan::honest() });
    let driver = world.driver(MemoryStore::default());
    let id = create(&driver, &world, 1).await;
    assert_eq!(run(&driver).await, [(id.clone(), Outcome::Expired)]);
    assert_eq!(world.end(&id), (0, false, false));
}

/// Without a connection to the destination chain the service's word is not enough, unless the caller says so.
#[tokio::test(start_paused = true)]
async fn without_evidence_the_secret_stays_unless_the_caller_trusts_the_service() {
    let says_funded = || Plan { service: vec![Service::SaysFunded], solver: Solver::Never, ..Plan::honest() };
    for plan in [Plan::honest(), says_funded()] {
        let world = Worlds::unconnected(plan);
        let driver = world.driver(MemoryStore::default()).allow_relayer();
        create(&driver, &world, 1).await;
        let status = last_status(&driver, 600).await;
        assert!(matches!(status, Status::Waiting { on: WaitingFor::Evidence(Hold::Unclear(_)) }), "{status:?}");
        assert!(!world.has_leaked());
    }
    let world = Worlds::unconnected(Plan::honest());
    let driver = world.driver(MemoryStore::default()).allow_relayer().with_trust(Some(TrustTheService));
    let id = create(&driver, &world, 1).await;
    // The owner is paid, but the service's word for it does not end the order.
    assert_eq!(last_status(&driver, 600).await, Status::Redeeming);
    assert_eq!(world.end(&id), (1, true, false));
    // The risk of trusting the service: nothing is on chain, and the secret is gone.
    let world = Worlds::unconnected(says_funded());
    let driver = world.driver(MemoryStore::default()).allow_relayer().with_trust(Some(TrustTheService));
    create(&driver, &world, 1).await;
    last_status(&driver, 600).await;
    assert!(world.has_leaked());
}

#[tokio::test(start_paused = true)]
async fn a_secret_belongs_to_one_order() {
    let world = Worlds::new(0, Plan::honest());
    let driver = world.driver(MemoryStore::default());
    create(&driver, &world, 1).await;
    let (fixture, secret) = world.order(1);
    let again = driver.create(NewOrder::new(fixture.create(), Some(secret))).await;
    assert!(matches!(&again, Err(DriveError::Refused(refusal)) if refusal.code().name() == "record_secret_known"), "{again:?}");
    let (other, _) = world.order(2);
    let mixed = driver.create(NewOrder::new(other.create(), Some(world.order(1).1))).await;
    assert!(matches!(&mixed, Err(DriveError::Refused(refusal)) if refusal.code().name() == "secret_hash_mismatch"), "{mixed:?}");
}

/// If two processes use the same secret, the store accepts the order of only one of them.
#[tokio::test]
async fn two_processes_cannot_use_one_secret() {
    let disk = MemoryDisk::new();
    let open = || countersign_store::Store::open_on(Arc::new(disk.clone()), Path::new("/state")).unwrap();
    let (first, second) = (open(), open());
    let secret = Secret::generate().unwrap();
    let order = |byte: &str| {
        let fixture = Fixture::with_secret(&secret);
        let response = fixture.response.to_string().replace(fixture.order_id(), &byte.repeat(32));
        let swap = CreatedOrder::new(fixture.create(), response).unwrap();
        let mut order = OrderState::new(swap, Some(Secret::parse(&secret.to_hex()).unwrap()));
        (order.index, order.branch, order.at_least) = (Some(7), 4711, Some(U256::from(9)));
        order
    };
    OrderStore::create(&first, &order("0a")).await.unwrap();
    let again = OrderStore::create(&second, &order("0b")).await;
    assert!(matches!(&again, Err(StoreError::SecretUsed(id)) if id.as_str() == "0a".repeat(32)), "{again:?}");
    assert_eq!(OrderStore::orders(&second).await.unwrap().len(), 1);
    // Everything was stored in one step.
    let kept = second.load(&OrderId::parse(&"0a".repeat(32)).unwrap()).await.unwrap();
    assert_eq!((kept.index, kept.branch, kept.at_least), (Some(7), 4711, Some(U256::from(9))));
    assert!(kept.own_secret().is_some());
}

#[tokio::test(start_paused = true)]
async fn an_order_that_pays_too_little_is_not_signed() {
    let world = Worlds::new(0, Plan::honest());
    let driver = world.driver(MemoryStore::default());
    let (fixture, secret) = world.order(1);
    let pays: U256 = fixture.request["destination"]["amount"].as_str().unwrap().parse().unwrap();
    let id =
        driver.create(NewOrder { at_least: Some(pays + U256::from(1)), ..NewOrder::new(fixture.create(), Some(secret)) }).await.unwrap();
    let refused = driver.advance(&id).await;
    assert!(matches!(&refused, Err(DriveError::Refused(refusal)) if refusal.code() == Code::PaysTooLittle), "{refused:?}");
    assert_eq!(world.end(&id), (0, false, false));
    // The record pays exactly the minimum.
    let (fixture, secret) = world.order(2);
    let enough = driver.create(NewOrder { at_least: Some(pays), ..NewOrder::new(fixture.create(), Some(secret)) }).await.unwrap();
    assert_eq!(run(&driver).await, [(enough, Outcome::Complete), (id, Outcome::Expired)]);
}

/// `Driver::refund` does nothing but refund, whatever the order waits for.
#[tokio::test(start_paused = true)]
async fn a_refund_signs_and_sends_nothing_else() {
    let world = Worlds::new(0, Plan { solver: Solver::Never, ..Plan::honest() });
    let driver = world.driver(MemoryStore::default());
    let id = create(&driver, &world, 1).await;
    let status = driver.refund(&id).await.unwrap().status;
    assert_eq!((status, world.end(&id).0), (Status::Unsigned, 0));
    while world.end(&id).0 == 0 {
        driver.advance(&id).await.unwrap();
    }
    let status = driver.refund(&id).await.unwrap().status;
    assert!(matches!(status, Status::Waiting { .. } | Status::Paying), "{status:?}");
    tokio::time::sleep(Duration::from_secs(3 * 86_400)).await;
    while !matches!(driver.refund(&id).await.unwrap().status, Status::Ended { outcome: Outcome::Refunded }) {
        tokio::time::sleep(Duration::from_secs(5)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn where_the_owner_cannot_redeem_and_the_relayer_may_not_the_driver_says_so() {
    let world = Worlds::unconnected(Plan::honest());
    let driver = world.driver(MemoryStore::default()).with_trust(Some(TrustTheService));
    create(&driver, &world, 1).await;
    assert_eq!(last_status(&driver, 600).await, Status::NeedsOwner { what: OwnerTask::Redeem });
}
