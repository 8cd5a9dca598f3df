//! An order is ended by the pins that it was signed under, whatever the service lists today; what is heard too late is heard.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test ends by panicking")]

use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;

use countersign::bitcoin::recover::{Funding, InstantRefund, RecordedHtlc};
use countersign::{CreateOrder, Leg, OrderRecord, Policy, Proposal, Registry};
use countersign_client::CreatedOrder;
use countersign_client::driver::{Delivery, Entry, Event as Noted, Outcome, Purpose, SignedUnder};
use countersign_client::rescue::Missing;
use countersign_json::objects::Failure;
use countersign_store::Zeroizing;
use countersign_store::rescue::Rescue;
use countersign_testkit::lines::accepted_case;
use serde_json::{Value, json};

use super::*;
use crate::need::{Ask, Signing, Write};
use crate::options::Options;

const CASE: &str = "bitcoin-delegate";
const NOW: UnixMillis = UnixMillis::from_millis(1_772_601_000_000);
const TXID: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";

type Documents = BTreeMap<String, Zeroizing<Vec<u8>>>;

fn keep(documents: &mut Documents, writes: &[Write]) {
    for Write { name, bytes } in writes {
        match bytes {
            Some(bytes) => drop(documents.insert(name.clone(), bytes.clone())),
            None => drop(documents.remove(name)),
        }
    }
}

/// Polls until the future is ready, and keeps what it writes.
fn run<T>(host: &Host, documents: &mut Documents, future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(done) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            return done;
        }
        for need in host.take_needs().0 {
            let Ask::Store(writes) = &need.ask else { panic!("{need:?}") };
            keep(documents, writes);
            assert!(host.reply(need.id, Reply::Stored(Ok(()))).unwrap());
        }
    }
}

/// An order that was paid, with the documents of its store.
struct Paid {
    id: String,
    documents: Documents,
    registry: Registry,
    request: CreateOrder,
    response: String,
    /// The service's record of today.
    record: Value,
}

/// Corrects the ids that follow from a changed member: the address of a deposit, and the id of a swap.
fn mend(request: &CreateOrder, response: &mut String, record: &mut String, registry: &Registry) {
    loop {
        let proposal = Proposal::new(request, response.as_bytes()).with_record(record.as_bytes());
        let Err(refusal) = countersign::verify_record(proposal, registry, &Policy::default()) else { return };
        let (expected, actual) = (refusal.expected().unwrap().to_string(), refusal.actual().unwrap().to_string());
        *response = response.replace(&actual, &expected);
        *record = record.replace(&actual, &expected);
    }
}

impl Paid {
    /// Takes the order of a fixture, whose refund key becomes one of the store's rescue phrase.
    fn new() -> Self {
        let text = |at: &str| accepted_case(CASE).tree().at(at).unwrap().text();
        let registry = countersign_testkit::registry().clone();
        let (host, mut documents) = (Host::default(), Documents::new());
        host.set_now(NOW.as_millis());
        let store = HostStore::open(host.clone(), HostDisk::new(Vec::new(), "here")).unwrap();
        let mut request = CreateOrder::from_json(text("/request").as_bytes()).unwrap();
        let of_fixture = request.source.delegate.take().unwrap();
        let (phrase, at) = run(&host, &mut documents, async {
            let (phrase, _) = store.run(|store| store.first_phrase()).await.unwrap();
            (phrase, store.take_index().await.unwrap())
        });
        Missing::of(&request, &registry, true).derive(&mut request, &Rescue::new(&phrase).unwrap(), at).unwrap();
        let own = request.source.delegate.clone().unwrap();
        let [mut response, mut record] = ["/response", "/order"].map(|at| text(at).replace(&of_fixture, &own));
        mend(&request, &mut response, &mut record, &registry);
        let mut order = OrderState::new(CreatedOrder::new(request.clone(), response.clone()).unwrap(), None);
        (order.index, order.branch) = (Some(at.index), at.branch);
        let id = order.swap.id().clone();
        let pins = SignedUnder { registry: registry.clone(), policy: Policy::default() };
        run(&host, &mut documents, async {
            store.create(&order).await.unwrap();
            let guard = store.lock(&id).await.unwrap();
            store.keep_pins(&guard, &pins).await.unwrap();
            store.keep_record(&guard, record.as_bytes()).await.unwrap();
        });
        let mut record: Value = serde_json::from_str(&record).unwrap();
        let leg = &mut record["source_swap"];
        (leg["initiate_tx_hash"], leg["filled_amount"]) = (json!(format!("{TXID}:90249")), leg["amount"].clone());
        Self { id: id.to_string(), documents, registry, request, response, record }
    }

    /// Returns the refund of the first output of the payment.
    fn refund(&self) -> InstantRefund {
        let record = OrderRecord::from_json(self.record.to_string().as_bytes()).unwrap();
        let htlc = RecordedHtlc::new(&record, Leg::Source, &self.registry).unwrap();
        let funding = Funding::parse(&format!("{TXID}:0:{}", htlc.filled.to_sat())).unwrap();
        InstantRefund::new(&htlc, &[funding], record.source_swap.initiator.as_str()).unwrap()
    }

    /// Writes lines of the order's journal.
    fn note(&mut self, events: impl IntoIterator<Item = Noted>) {
        let host = Host::default();
        let store = HostStore::open(host.clone(), HostDisk::new(self.documents.clone(), "here")).unwrap();
        let id = OrderId::parse(&self.id).unwrap();
        run(&host, &mut self.documents, async {
            let guard = store.lock(&id).await.unwrap();
            for event in events {
                store.append(&guard, &Entry { at: NOW.into(), event }).await.unwrap();
            }
        });
    }

    /// Opens the machine with a list, options and endpoints.
    fn open(&self, registry: Registry, options: &Value, nodes: &Value) -> Swaps {
        let options = Options::from_json(options.to_string().as_bytes()).unwrap();
        let mut setup = Setup { place: "here".to_owned(), ..Setup::new(options, registry, NOW) };
        setup.nodes = countersign_node::NodeConfig::from_json(nodes.to_string().as_bytes()).unwrap();
        setup.documents = self.documents.clone().into_iter().collect();
        Swaps::open(setup).unwrap()
    }

    /// Opens the machine with the newest list and policy, and asks for the instant refund. Returns the signatures that the service gets.
    fn refunded(&self, registry: Registry, policy: Policy) -> Result<Vec<String>, Failure> {
        let options = Options::from_json(br#"{"service":"https://service.example"}"#).unwrap();
        let mut setup = Setup { policy, place: "here".to_owned(), ..Setup::new(options, registry, NOW) };
        setup.documents = self.documents.clone().into_iter().collect();
        let mut swaps = Swaps::open(setup).unwrap();
        swaps.instant_refund(&self.id).unwrap();
        let hashes: Vec<_> = self.refund().sighashes.iter().map(hex).collect();
        let (mut now, mut signatures) = (NOW, Vec::new());
        for _ in 0..100 {
            let output = swaps.poll(now);
            for need in output.needs {
                let reply = match &need.ask {
                    Ask::Store(_) => Reply::Stored(Ok(())),
                    Ask::Http(asked) => {
                        let result = match asked.method {
                            "PATCH" => {
                                let body: Value = serde_json::from_slice(asked.body.as_deref().unwrap()).unwrap();
                                signatures = serde_json::from_value(body["signatures"].clone()).unwrap();
                                json!("done")
                            }
                            _ if asked.url.ends_with("/instant-refund-hash") => json!(hashes),
                            _ => self.record.clone(),
                        };
                        let body = json!({"status": "Ok", "result": result}).to_string().into_bytes();
                        Reply::Response { status: 200, headers: Vec::new(), body }
                    }
                    other => panic!("{other:?}"),
                };
                swaps.reply(need.id, reply).unwrap();
            }
            for event in output.events {
                match event {
                    Event::Failed { error, .. } => return Err(error),
                    Event::Stopped { reason, .. } => {
                        assert_eq!(reason, "refunding");
                        return Ok(signatures);
                    }
                    _ => {}
                }
            }
            now = output.wake_at.unwrap_or(now).max(now);
        }
        panic!("it does not end")
    }
}

fn hex(bytes: &[u8; 32]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn an_instant_refund_goes_by_the_pins_of_the_order() {
    let paid = Paid::new();
    let listed = serde_json::to_value(&paid.registry).unwrap();
    let without = |member: &str, name: &str, gone: &str| {
        let mut list = listed.clone();
        list[member].as_array_mut().unwrap().retain(|entry| entry[name] != gone);
        Registry::from_json(list.to_string().as_bytes()).unwrap()
    };
    let strict = Policy::from_json(br#"{"max_timelock_seconds": {"bitcoin_testnet": 3600}}"#).unwrap();
    for (registry, policy) in [
        (paid.registry.clone(), Policy::default()),
        (without("solvers", "chain", "bitcoin_testnet"), Policy::default()),
        (without("assets", "id", "bitcoin_testnet:btc"), Policy::default()),
        (paid.registry.clone(), strict),
    ] {
        let signatures = paid.refunded(registry, policy).unwrap();
        let texts: Vec<&str> = signatures.iter().map(String::as_str).collect();
        assert_eq!(paid.refund().attach(&texts).unwrap().signatures, signatures);
    }
    // Terms that differ from those that were signed for are refused before the key is used.
    let mut changed = paid;
    changed.record["destination_swap"]["timelock"] = json!(3_601);
    let mut record = changed.record.to_string();
    mend(&changed.request, &mut changed.response, &mut record, &changed.registry);
    changed.record = serde_json::from_str(&record).unwrap();
    let failure = changed.refunded(changed.registry.clone(), Policy::default()).unwrap_err();
    assert_eq!(failure.code, "record_changed");
}

/// Polls a machine that needs nothing but its store, and returns what it reports.
fn told(swaps: &mut Swaps) -> Vec<Event> {
    let mut events = Vec::new();
    for _ in 0..10 {
        let output = swaps.poll(NOW);
        events.extend(output.events);
        for need in output.needs {
            assert!(matches!(need.ask, Ask::Store(_)), "{need:?}");
            swaps.reply(need.id, Reply::Stored(Ok(()))).unwrap();
        }
    }
    events
}

const BOTH_CHAINS: [&str; 2] = ["base_sepolia", "bitcoin_testnet"];

/// The service takes the chains of a paid order off its list, and the application takes over that list. Its endpoints and accounts stay.
#[test]
fn the_chains_of_an_open_order_are_connected_whatever_is_listed_today() {
    let paid_by = Noted::OnChain { what: Delivery::Funding };
    let ended = |outcome| Noted::Ended { outcome };
    for (events, is_open, is_followed) in [
        (vec![], true, false),
        (vec![paid_by.clone()], true, true),
        (vec![ended(Outcome::Expired)], true, true),
        (vec![paid_by, ended(Outcome::Complete)], false, false),
    ] {
        let mut paid = Paid::new();
        paid.note(events);
        let mut list = serde_json::to_value(&paid.registry).unwrap();
        for member in ["chains", "assets", "solvers"] {
            let name = |entry: &Value| entry["chain"].as_str().unwrap().to_owned();
            list[member].as_array_mut().unwrap().retain(|entry| !BOTH_CHAINS.contains(&&*name(entry)));
        }
        let list = Registry::from_json(list.to_string().as_bytes()).unwrap();
        let accounts = json!({"base_sepolia": "0x70F6FA007BD0459344bBf78f801Eb21672cB0681"});
        let options = json!({"service": "https://service.example", "accounts": accounts});
        let nodes = json!({"bitcoin_testnet": ["https://source.example"], "base_sepolia": ["https://destination.example"]});
        let mut swaps = paid.open(list, &options, &nodes);
        assert_eq!(swaps.inner.nodes.unknown(), if is_open { &[][..] } else { &BOTH_CHAINS[..] });
        assert_eq!(swaps.inner.options.check_names(&swaps.inner.chains).is_ok(), is_open);
        let call = swaps.list();
        let listed = told(&mut swaps);
        assert!(matches!(&listed[..], [Event::Listed { call: of, orders }] if *of == call && orders.len() == 1), "{listed:?}");
        assert!(swaps.phrase().unwrap().is_some());
        if !is_followed {
            continue;
        }
        swaps.follow(&paid.id).unwrap();
        let (mut now, mut asked) = (NOW, BTreeSet::new());
        for _ in 0..50 {
            let output = swaps.poll(now);
            for need in output.needs {
                let reply = match &need.ask {
                    Ask::Store(_) => Reply::Stored(Ok(())),
                    Ask::Http(request) => {
                        asked.insert(request.url.split('/').nth(2).unwrap().to_owned());
                        Reply::NoResponse { kind: countersign_transport::TransportErrorKind::Connect, detail: String::new() }
                    }
                    other => panic!("{other:?}"),
                };
                swaps.reply(need.id, reply).unwrap();
            }
            now = output.wake_at.unwrap_or(now).max(now);
        }
        assert!(["destination.example", "source.example"].iter().all(|host| asked.contains(*host)), "{asked:?}");
    }
}

/// The time for a signature is over, and the owner confirms on a phone. Nobody waits for the reply, and the secret is out.
#[test]
fn what_a_wallet_has_sent_is_written_down_however_late_it_says_so() {
    for (purpose, what) in [(Purpose::Redemption, Delivery::Redemption), (Purpose::Refund, Delivery::Refund)] {
        let mut paid = Paid::new();
        let mut swaps = paid.open(paid.registry.clone(), &json!({"service": "https://service.example"}), &json!({}));
        let (host, store) = (swaps.inner.host.clone(), swaps.inner.store.clone());
        let signing =
            Signing { order_id: paid.id.clone(), purpose, chain: "base_sepolia".to_owned(), account: String::new(), replaces: None };
        let need = {
            let mut asking = pin!(host.ask(Ask::Sign(signing)));
            assert!(asking.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
            swaps.poll(NOW).needs.pop().unwrap().id
        };
        assert_eq!(swaps.poll(NOW).withdrawn, [need]);
        assert_eq!(swaps.reply(need, Reply::NotSigned("declined".to_owned())), Ok(false));
        assert_eq!(swaps.reply(need, Reply::Sent), Ok(true));
        assert_eq!(swaps.reply(need, Reply::Sent), Ok(false), "once");
        // The disk is full at first.
        let (mut now, mut stored) = (NOW, Err("the disk is full".to_owned()));
        for _ in 0..20 {
            let output = swaps.poll(now);
            for need in output.needs {
                let Ask::Store(writes) = &need.ask else { panic!("{need:?}") };
                if stored.is_ok() {
                    keep(&mut paid.documents, writes);
                }
                swaps.reply(need.id, Reply::Stored(std::mem::replace(&mut stored, Ok(())))).unwrap();
            }
            now = output.wake_at.unwrap_or(now).max(now);
        }
        let kept = run(&host, &mut paid.documents, store.load(&OrderId::parse(&paid.id).unwrap())).unwrap();
        assert!(kept.was_sent(what), "{:?}", kept.journal);
        assert_eq!(kept.secret_was_sent(), purpose == Purpose::Redemption);
    }
}

#[test]
fn a_refund_that_came_too_late_is_not_called_under_way() {
    let sent = || [Noted::sending(Delivery::Refund), Noted::Sent { what: Delivery::Refund }];
    for outcome in [Outcome::Lost, Outcome::Complete, Outcome::Refunded] {
        let mut paid = Paid::new();
        paid.note([Noted::OnChain { what: Delivery::Funding }].into_iter().chain(sent()).chain([Noted::Ended { outcome }]));
        let mut swaps = paid.open(paid.registry.clone(), &json!({"service": "https://service.example"}), &json!({}));
        swaps.refund(&paid.id).unwrap();
        let events = told(&mut swaps);
        let reasons: Vec<_> =
            events.iter().filter_map(|event| if let Event::Stopped { reason, .. } = event { Some(reason) } else { None }).collect();
        assert_eq!(reasons, [outcome.name()], "{events:?}");
    }
}
