//! The public API: which values and futures can move between threads, and how a wallet plugs in its own transport.
use crate::support;
use crate::world;

use countersign_client::countersign::chains::UnixTime;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use countersign_client::countersign::evm::Evm;
use countersign_client::countersign::{
    AssetId, BroadcastTransaction, Code, Gasless, Leg, Policy, Proposal, Refusal, Registry, Role, Unsigned, UnsignedOrder, Verified,
};
use countersign_client::driver::{
    BoxChains, BoxOwner, BoxStore, Chains as _, DriveError, FundingReply, MemoryStore, NewOrder, NoChains, OrderState, Outcome, Owner,
    OwnerError, OwnerTask, Settlement, SignedFunding, Status, StoreError, Trouble, TrustTheService, WaitingFor,
};
use countersign_client::{
    Action, Answer, Api, AppId, BoxTransport, Client, CreatedOrder, Driver, Error, Flow, Hold, Http, MaybeSend, OrderFilter, OrderId, Pace,
    Progress, Request, Response, Secret, StreamExt, Timeouts, Transport, VerifiedSwap, track,
};
use support::memory::{Memory, ok};
use support::{Fixture, Service};
use world::Worlds;
use world::owner::evm_transaction;
use world::plan::{self, Plan, Solver};

fn crosses<T: Send + Sync>() {}
fn moves<T: Send>(_: &T) {}

#[test]
fn values_cross_threads() {
    crosses::<(Client<Http>, Client<BoxTransport>, Api, AppId, Secret, CreatedOrder, OrderId)>();
    crosses::<(Request, Response, Answer<AssetId>, Progress, Error, VerifiedSwap)>();
    crosses::<(Flow<Http>, Flow<BoxTransport>)>();
}

/// Every call and stream is `Send`, whatever the transport is, so a multi-threaded runtime can drive them.
fn calls_and_streams_move<T: Transport>(client: &Client<T>, flow: &Flow<T>, order: &OrderState, secret: &Secret) {
    let swap = &order.swap;
    let (registry, id) = (Registry::default(), swap.id());
    moves(&client.order(id));
    moves(&client.orders(OrderFilter::default()));
    moves(&client.all_orders(OrderFilter::default()).take(1));
    moves(&client.registry());
    moves(&client.act(id, &Action::Redeem { secret }));
    moves(&flow.create(swap.request().clone()));
    moves(&flow.verify(swap));
    moves(&flow.follow(swap));
    moves(&flow.follow_stored(order));
    moves(&flow.instant_refund(order, |_, _| Ok(Vec::new())));
    moves(&track(client, &registry, id.clone(), Pace::default(), |_| Ok(())));
}

fn stored(fixture: &Fixture) -> CreatedOrder {
    CreatedOrder::new(fixture.create(), fixture.response.to_string()).unwrap()
}

#[test]
fn calls_and_streams_move_between_threads() {
    let fixture = Fixture::load("evm-record-evm-v2");
    let (order, secret) = (OrderState::new(stored(&fixture), None), Secret::generate().unwrap());
    let client = Client::new(Api::new("https://service.example", None).unwrap(), Http::new(Timeouts::default()).unwrap());
    let flow = Flow::new(client.clone(), Registry::default(), Policy::default());
    calls_and_streams_move(&client, &flow, &order, &secret);
    let client = client.boxed();
    calls_and_streams_move(&client, &Flow::new(client.clone(), Registry::default(), Policy::default()), &order, &secret);
}

/// A wallet can store a flow in a struct that does not name the HTTP stack, and move it into a task on another thread.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flow_is_kept_in_a_struct_and_moved_into_a_task() {
    struct Wallet {
        flow: Flow<BoxTransport>,
    }
    let fixture = Fixture::load("evm-record-evm-v2");
    let server = Service::new(fixture.clone()).start();
    let client = Client::new(Api::new(&server.base, None).unwrap(), Http::new(Timeouts::default()).unwrap()).boxed();
    let registry = Arc::new(Registry::from_json(fixture.registry.as_bytes()).unwrap());
    let wallet = Wallet { flow: Flow::new(client, Arc::clone(&registry), Policy::default()) };
    let (flow, request) = (wallet.flow.clone(), fixture.create());
    let verified = tokio::spawn(async move {
        let swap = flow.create(request).await?;
        flow.verify(&swap).await
    });
    let verified = verified.await.unwrap().unwrap();
    assert_eq!((verified.order.order_id(), verified.record.order_id.as_str()), (fixture.order_id(), fixture.order_id()));
    // The record is the one that was verified, and can be stored.
    let kept = serde_json::to_string(&verified.record).unwrap();
    assert_eq!(kept.parse(), Ok(verified.record));
    let asset: AssetId = "base:eth".parse().unwrap();
    assert!(
        wallet.flow.client().transport().now() > UnixTime::from_secs(0)
            && registry.asset(&asset).is_some()
            && registry.asset("base:eth").is_some()
    );
}

/// A transport without a network works too, behind a pointer or not.
#[tokio::test]
async fn a_transport_works_behind_any_pointer() {
    async fn volume<T: Transport>(transport: T) -> String {
        let client = Client::new(Api::new("https://service.example", None).unwrap(), transport);
        client.volume(&[]).await.unwrap().value
    }
    let memory = || Memory::new(7, |_: &Request| ok(&serde_json::json!("5")));
    let kept = memory();
    assert_eq!(volume(&kept).await, "5");
    assert_eq!(volume(Box::new(memory())).await, "5");
    assert_eq!(volume(Arc::new(memory())).await, "5");
    let boxed = BoxTransport::new(memory());
    assert_eq!((volume(boxed.clone()).await, boxed.now().as_secs()), ("5".to_owned(), 7));
    boxed.sleep(std::time::Duration::from_secs(3)).await;
    assert_eq!(boxed.now(), UnixTime::from_secs(10));
    fn maybe<T: MaybeSend>(_: T) {}
    maybe(boxed);
}

/// An error's message states what failed and why. Printing its sources as well repeats nothing.
#[test]
fn errors_say_why_once() {
    fn says(error: &dyn std::error::Error, why: &str) {
        assert!(error.to_string().contains(why) && error.to_string() != why, "{error}: {why}");
        let mut source = error.source();
        while let Some(cause) = source {
            assert!(!error.to_string().contains(&cause.to_string()), "{error}: {cause}");
            source = cause.source();
        }
    }
    let refusal = || Refusal::new(Code::AmountZero, "/amount");
    let why = refusal().to_string();
    // The body comes from the service, so the user is not told to correct it.
    let found = refusal().finding().to_string();
    assert!(!Error::Shape(refusal()).to_string().contains(refusal().remedy()));
    for (error, why) in [(Error::Shape(refusal()), &found), (Error::Input(refusal()), &why), (Error::Refused(refusal()), &why)] {
        says(&error, why);
        says(&DriveError::Create(error), why);
    }
    for error in [DriveError::Refused(refusal()), DriveError::Owner(refusal().into())] {
        says(&error, &why);
    }
    says(&DriveError::Store(StoreError::Busy), &StoreError::Busy.to_string());
}

/// A wallet's driver whose type names neither the HTTP stack nor the nodes nor where orders are kept nor the signer.
type AnyDriver = Driver<BoxTransport, BoxChains, BoxStore, BoxOwner>;

/// A wallet can store a driver whose parts are chosen at run time, and move its steps into tasks.
#[tokio::test(start_paused = true)]
async fn a_driver_of_erased_parts_completes_an_order() {
    crosses::<AnyDriver>();
    let world = Worlds::new(0, Plan::honest());
    let client = Client::new(Api::new("https://service.example", None).unwrap(), BoxTransport::new(Arc::clone(&world)));
    let flow = Flow::new(client, Arc::clone(&world.registry), Policy::default());
    let (fixture, secret) = world.order(1);
    let (chains, owner) = (BoxChains::new(Arc::clone(&world)), BoxOwner::new(Box::new(Arc::clone(&world))));
    assert_eq!((chains.endpoints("base"), chains.has("base")), (world.endpoints("base"), true));
    let driver: AnyDriver = Driver::new(flow, chains, BoxStore::new(MemoryStore::default()), owner);
    let id = driver.create(NewOrder::new(fixture.create(), Some(secret))).await.unwrap();
    let order = id.clone();
    let ends = tokio::spawn(async move {
        let mut changes = std::pin::pin!(driver.drive(vec![order]));
        let mut last = None;
        while let Some(change) = changes.next().await {
            last = Some(change.result.unwrap().status);
        }
        last
    });
    assert_eq!(ends.await.unwrap(), Some(Status::Ended { outcome: Outcome::Complete }));
    assert_eq!(world.end(&id), (1, true, false));
}

/// Signs a transaction that funds the order, and delegates the rest.
struct Funds(Arc<Worlds>);

impl Owner for Funds {
    async fn fund(&self, order: &Verified) -> Result<FundingReply, OwnerError> {
        let payment = evm_transaction(self.0.of(order.order_id()).terms(Leg::Source), Role::Initiate, 0, 0);
        Ok(FundingReply::Signed(SignedFunding { transactions: vec![payment], gasless: None }))
    }

    async fn settle(&self, task: &Settlement<'_>) -> Result<Option<Vec<BroadcastTransaction>>, OwnerError> {
        self.0.settle(task).await
    }

    fn can_redeem(&self, chain: &str) -> bool {
        self.0.can_redeem(chain)
    }
}

/// A wallet that forgot to connect a chain is told which one.
#[tokio::test(start_paused = true)]
async fn a_chain_that_is_needed_and_not_connected_is_named() {
    let world = Worlds::new(0, Plan::honest());
    let flow = world.driver(MemoryStore::default()).flow().clone();
    let not_connected = |chain: &str| Some(Trouble::NotConnected(chain.to_owned()));
    // The payment is a transaction on Base that the driver cannot broadcast.
    let driver = Driver::new(flow.clone(), NoChains, MemoryStore::default(), Funds(Arc::clone(&world)));
    let (fixture, secret) = world.order(1);
    let id = driver.create(NewOrder::new(fixture.create(), Some(secret))).await.unwrap();
    let signed = driver.advance(&id).await.unwrap();
    assert!(signed.acted && signed.trouble.is_none(), "{signed:?}");
    for _ in 0..2 {
        let progress = driver.advance(&id).await.unwrap();
        assert_eq!(progress.status, Status::NeedsOwner { what: OwnerTask::BroadcastFunding });
        assert_eq!(progress.trouble, not_connected("base"));
        assert_eq!(serde_json::to_value(&progress).unwrap()["trouble"], "not connected to base");
    }
    // The service takes a gasless payment, and only the destination chain can show that the secret may be released.
    let driver = Driver::new(flow.clone(), NoChains, MemoryStore::default(), Arc::clone(&world));
    let (fixture, secret) = world.order(2);
    let id = driver.create(NewOrder::new(fixture.create(), Some(secret))).await.unwrap();
    let waits = async |driver: &Driver<Arc<Worlds>, NoChains, MemoryStore, Arc<Worlds>>| loop {
        let progress = driver.advance(&id).await.unwrap();
        if matches!(progress.status, Status::Waiting { .. } | Status::NeedsOwner { .. }) && !progress.acted {
            return progress;
        }
        tokio::time::sleep(std::time::Duration::from_secs(5)).await;
    };
    let progress = waits(&driver).await;
    assert!(matches!(progress.status, Status::Waiting { on: WaitingFor::Evidence(Hold::Unclear(_)) }), "{progress:?}");
    assert_eq!(progress.trouble, not_connected("arbitrum"));
    // A user who trusts the service needs the chain only for the redemption.
    let driver = driver.with_trust(Some(TrustTheService));
    world.may_redeem.store(false, Ordering::SeqCst);
    assert_eq!(waits(&driver).await.trouble, None);
    tokio::time::sleep(std::time::Duration::from_secs(60)).await;
    let progress = waits(&driver).await;
    assert_eq!((progress.status, progress.trouble), (Status::NeedsOwner { what: OwnerTask::Redeem }, not_connected("arbitrum")));
}

/// A service that accepts the signed payment and keeps it is reported, and the order is not given up: the message has no end.
#[tokio::test(start_paused = true)]
async fn a_payment_that_the_service_does_not_submit_is_reported() {
    let world = Worlds::new(0, Plan { service: vec![plan::Service::KeepsThePayment], ..Plan::honest() });
    let driver = world.driver(MemoryStore::default());
    let (fixture, secret) = world.order(2);
    let id = driver.create(NewOrder::new(fixture.create(), Some(secret))).await.unwrap();
    let rests = async || loop {
        let progress = driver.advance(&id).await.unwrap();
        if !progress.acted {
            return progress;
        }
    };
    let progress = rests().await;
    assert_eq!((progress.status, progress.trouble), (Status::Paying, None));
    for seconds in [180, 30 * 86_400] {
        tokio::time::sleep(std::time::Duration::from_secs(seconds)).await;
        let progress = rests().await;
        assert_eq!((progress.status, progress.trouble), (Status::Paying, Some(Trouble::NotSubmitted)));
    }
    // No payment of another kind is made in addition.
    assert_eq!(world.end(&id).0, 1);
}

/// A result that equals the previous one is not a change, although times that the service states may differ.
#[tokio::test(start_paused = true)]
async fn only_what_changed_is_reported() {
    let world = Worlds::new(0, Plan { solver: Solver::Never, ..Plan::honest() });
    let driver = world.driver(MemoryStore::default());
    let (fixture, secret) = world.order(1);
    driver.create(NewOrder::new(fixture.create(), Some(secret))).await.unwrap();
    let mut reports = Vec::new();
    let all = async {
        let mut changes = std::pin::pin!(driver.run().await.unwrap());
        while let Some(change) = changes.next().await {
            let progress = change.result.unwrap();
            reports.push((progress.status, progress.trouble, progress.stated.map(|stated| stated.status.state)));
        }
    };
    let _ = tokio::time::timeout(std::time::Duration::from_secs(3_600), all).await;
    assert!((3..20).contains(&reports.len()), "{reports:?}");
    assert!(reports.iter().zip(reports.iter().skip(1)).all(|(one, next)| one != next), "{reports:?}");
}

/// `?` on an order that still lacks a signature works in an owner, for one family and for any.
#[test]
fn an_owner_passes_on_that_a_signature_is_missing() {
    fn one(order: UnsignedOrder<Evm>) -> Result<(), OwnerError> {
        order.finish()?;
        Ok(())
    }
    fn any(order: Unsigned) -> Result<(), OwnerError> {
        order.finish()?;
        Ok(())
    }
    let fixture = Fixture::load("evm-record-evm-v2");
    let registry = Registry::from_json(fixture.registry.as_bytes()).unwrap();
    let (request, response) = (fixture.create(), fixture.response.to_string());
    let record = serde_json::json!({"status": "Ok", "result": fixture.order}).to_string();
    let proposal = || Proposal::new(&request, response.as_bytes()).with_record(record.as_bytes());
    let verify = || countersign_client::countersign::verify(proposal(), &registry, &Policy::default()).unwrap();
    let unsigned = || {
        let Verified::Evm(order) = verify() else { panic!("another family") };
        order.prepare(Gasless).unwrap()
    };
    for error in [one(unsigned()).unwrap_err(), any(unsigned().into()).unwrap_err()] {
        let OwnerError::Refused(refusal) = &error else { panic!("{error:?}") };
        assert_eq!(refusal.code(), Code::SignatureMissing);
        assert!(error.to_string().contains("typed"), "{error}");
    }
}

#[test]
fn a_proxy_must_be_an_address() {
    for proxy in ["no address at all", "proxy.example:3128", "socks5://user:word@proxy.example"] {
        let error = Http::with_proxy(Timeouts::default(), proxy, "").unwrap_err();
        assert_eq!(error.kind.name(), "transport_setup", "{proxy}");
        assert!(!error.to_string().contains("word"), "{error}");
    }
    assert!(Http::with_proxy(Timeouts::default(), "http://proxy.example:3128", "localhost,.example").is_ok());
}
