//! `countersign refund --all`: several orders, one key, and orders that cannot be read.

use std::fs;
use std::process::Output;

use crate::delegated::node;
use crate::home::{Home, at_once, out, said};
use crate::support::{Fixture, Server, Service, Step};
use crate::terminal::answer;
use countersign_client::countersign::{Registry, chains::UnixTime};
use countersign_client::driver::{Delivery, Entry, Event, OrderState, OrderStore, SecretRoute, SignedUnder};
use countersign_client::{CreatedOrder, OrderId, Secret};
use countersign_store::Store;
use serde_json::{Value, json};

/// Stored orders, and the service that knows them.
struct Refunds {
    home: Home,
    store: Store,
    services: Vec<Service>,
}

impl Refunds {
    fn new(name: &str) -> Self {
        let home = Home::new(&format!("refunds-{name}"));
        let store = Store::open(home.path.join(".local/share/countersign")).unwrap();
        Self { home, store, services: Vec::new() }
    }

    /// Stores an order whose id is a byte repeated, and that was paid long ago.
    fn keep(&mut self, byte: &str, more: Vec<Event>) -> String {
        self.keep_under(byte, more, "{}")
    }

    /// Stores such an order that was signed under a policy.
    fn keep_under(&mut self, byte: &str, more: Vec<Event>, policy: &str) -> String {
        let (id, secret) = (byte.repeat(32), Secret::generate().unwrap());
        let mut fixture = Fixture::with_secret(&secret);
        fixture.response["result"]["order_id"] = json!(id);
        fixture.order["order_id"] = json!(id);
        let swap = CreatedOrder::new(fixture.create(), fixture.response.to_string()).unwrap();
        at_once(OrderStore::create(&self.store, &OrderState::new(swap, Some(secret)))).unwrap();
        let guard = at_once(self.store.lock(&OrderId::parse(&id).unwrap())).unwrap();
        let registry = Registry::from_json(fixture.registry.as_bytes()).unwrap();
        at_once(self.store.keep_pins(&guard, &SignedUnder { registry, policy: policy.parse().unwrap() })).unwrap();
        at_once(self.store.keep_record(&guard, fixture.order.to_string().as_bytes())).unwrap();
        for event in [vec![Event::OnChain { what: Delivery::Funding }], more].concat() {
            at_once(self.store.append(&guard, &Entry { at: UnixTime::from_secs(1), event })).unwrap();
        }
        let service = Service { moves: false, ..Service::new(fixture) };
        *service.step.lock().unwrap() = Step::SourceFunded;
        self.services.push(service);
        id
    }

    fn serve(&self) -> Server {
        let services = self.services.clone();
        Server::start(move |seen| {
            let of = services.iter().find(|service| seen.path().contains(service.fixture.order_id()));
            of.unwrap_or(&services[0]).answer(seen)
        })
    }

    fn folder(&self, byte: &str) -> std::path::PathBuf {
        self.home.path.join(".local/share/countersign/orders").join(byte.repeat(32))
    }
}

fn document(output: &Output) -> Value {
    serde_json::from_str(&out(output)).unwrap_or_else(|error| panic!("{error}: {}", said(output)))
}

/// The outcome of an order.
fn of<'r>(report: &'r Value, id: &str) -> &'r Value {
    report["orders"].as_array().unwrap().iter().find(|order| order["order_id"] == id).unwrap_or_else(|| panic!("{id}: {report}"))
}

/// The ids of the orders whose refund was requested.
fn requested(server: &Server) -> Vec<String> {
    let requests = server.seen().into_iter().filter(|seen| seen.target.ends_with("action=refund"));
    requests.map(|seen| seen.path().rsplit('/').next().unwrap()[..2].to_owned()).collect()
}

#[test]
fn an_order_that_cannot_be_read_is_a_failure_and_stops_no_refund() {
    let mut refunds = Refunds::new("unreadable");
    let (damaged, due) = (refunds.keep("a1", vec![]), refunds.keep("a2", vec![]));
    let server = refunds.serve();
    // Its creation was interrupted before anything was written.
    fs::create_dir(refunds.folder("a4")).unwrap();
    let run = || refunds.home.run(&server.base, &["refund", "--all", "--yes", "--json"]);
    assert_eq!(run().status.code(), Some(0), "{}", said(&run()));

    fs::write(refunds.folder("a1").join("order.json"), "{\"id\":").unwrap();
    let damaged_only = run();
    let report = document(&damaged_only);
    assert_eq!((damaged_only.status.code(), &report["ok"]), (Some(2), &json!(false)), "{report}");
    assert_eq!(of(&report, &damaged)["error"]["code"], "order_unreadable", "{report}");
    assert_eq!(of(&report, &due)["refunded"], true, "{report}");
    assert_eq!(report["orders"].as_array().unwrap().len(), 2, "{report}");
    // Its restoration was interrupted, and a file in place of a directory.
    fs::remove_dir_all(refunds.folder("a1")).unwrap();
    fs::create_dir(refunds.folder("a3")).unwrap();
    fs::write(refunds.folder("a3").join("secret"), "5e".repeat(32)).unwrap();
    fs::write(refunds.folder("a5"), "a file").unwrap();
    let others = run();
    let report = document(&others);
    assert_eq!((others.status.code(), &report["ok"]), (Some(2), &json!(false)), "{report}");
    assert_eq!(of(&report, &"a3".repeat(32))["error"]["code"], "order_unreadable", "{report}");
    let unnamed = report["orders"].as_array().unwrap().iter().find(|order| order["order_id"].is_null()).unwrap();
    assert!(unnamed["error"]["message"].as_str().unwrap().contains(&"a5".repeat(32)), "{report}");
    let people = said(&refunds.home.run(&server.base, &["refund", "--all", "--yes"]));
    assert!(people.contains("order_unreadable  a3a3a3a3: ") && people.contains("refunded  a2a2a2a2: accepted"), "{people}");
}

#[test]
fn one_key_is_read_once_and_used_for_the_orders_of_its_family() {
    let mut refunds = Refunds::new("key");
    refunds.keep("b1", vec![]);
    refunds.keep("b2", vec![]);
    let key = refunds.services[0].fixture.wallet["secret_key"].as_str().unwrap().to_owned();
    let of_solana = bs58::encode([7; 32]).into_string();
    // The source chain is not connected, so the service's relayer refunds.
    let command = ["refund", "--all", "--yes", "--json", "--node", "litecoin=http://127.0.0.1:9", "--key-stdin"];
    for (key, is_used) in [(key, true), (of_solana.clone(), false)] {
        let server = refunds.serve();
        let output = refunds.home.run_with(&server.base, &command, &[], &key);
        assert_eq!((output.status.code(), &document(&output)["ok"]), (Some(0), &json!(true)), "{}", said(&output));
        assert_eq!(requested(&server), ["b1", "b2"]);
        assert_eq!(said(&output).matches("stdin has no key of evm").count(), if is_used { 0 } else { 2 }, "{}", said(&output));
        assert!(!said(&output).contains(&*key), "{}", said(&output));
    }
    // A key that is valid on no chain is not left out.
    let server = refunds.serve();
    let output = refunds.home.run_with(&server.base, &command, &[], &format!("KEY={of_solana}"));
    assert!(output.status.code() == Some(2) && said(&output).contains("name with ="), "{}", said(&output));
    assert!(requested(&server).is_empty(), "{:?}", server.lines());
}

const TWO_GWEI: &str = "0x77359400";

/// Fees have risen since the order was signed, and so has the owner's limit. Without one of today, that of the order remains, and the relayer
/// is asked.
#[test]
fn a_refund_pays_what_the_policy_of_today_allows() {
    for is_raised in [false, true] {
        let mut refunds = Refunds::new("policy");
        let id = refunds.keep_under("d1", vec![], r#"{"evm_gas_price": 1}"#);
        let fixture = refunds.services[0].fixture.clone();
        let timelock = fixture.order["source_swap"]["timelock"].as_u64().unwrap();
        let (node, sent) = node(&fixture, TWO_GWEI, move |chain| {
            chain.block_millis = 2_000;
            chain.latest += timelock + 1_000;
            (chain.safe, chain.finalized) = (Some(chain.latest - 32), Some(chain.latest - 64));
        });
        let server = refunds.serve();
        let key = refunds.home.file("key.txt", fixture.wallet["secret_key"].as_str().unwrap());
        let policy = refunds.home.file("policy.json", r#"{"evm_gas_price": 100}"#);
        let node = format!("base={}", node.base);
        let command = ["refund", &id, "--key-file", &key, "--node", &node];
        let named: &[&str] = if is_raised { &["--policy", &policy] } else { &[] };
        let output = refunds.home.run(&server.base, &[&command[..], named].concat());
        assert!(output.status.success(), "{}", said(&output));
        assert_eq!(sent.lock().unwrap().len(), usize::from(is_raised), "{}", said(&output));
        assert_eq!(requested(&server).is_empty(), is_raised, "{:?}", server.lines());
    }
}

#[test]
fn an_order_whose_secret_left_names_both_ways_to_go_on() {
    let mut refunds = Refunds::new("left");
    let id = refunds.keep("c1", vec![Event::SecretLeaving { path: SecretRoute::Relayer }]);
    let server = refunds.serve();
    let report = document(&refunds.home.run(&server.base, &["refund", "--all", "--yes", "--json"]));
    let error = &of(&report, &id)["error"];
    assert_eq!(error["code"], "redeem_needed", "{report}");
    for command in [format!("`countersign redeem {id}`"), format!("time is over: `countersign refund {id}`")] {
        assert!(error["message"].as_str().unwrap().contains(&command), "{command}: {report}");
    }
    assert!(requested(&server).is_empty(), "{:?}", server.lines());
}

/// With `--json` at a terminal, the question follows what it is about.
#[test]
fn a_program_reads_what_it_is_asked() {
    let mut refunds = Refunds::new("asked");
    let id = refunds.keep("d1", vec![]);
    let server = refunds.serve();
    let question = "refund this?";
    let Some(screen) = answer(&refunds.home, &server.base, &["refund", "--all", "--json"], &[(question, "n\n")]) else { return };
    let events = screen.before(question).lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let consent = events.into_iter().find(|event| event["event"] == "consent").unwrap_or_else(|| panic!("{}", screen.said));
    let headline = consent["headline"].as_str().unwrap();
    assert!(headline.starts_with("Refund ") && headline.contains(&id), "{consent}");
    assert_eq!((&consent["lines"][0]["label"], &consent["warnings"]), (&json!("fee"), &json!([])), "{consent}");
    assert!(screen.code == 1 && requested(&server).is_empty(), "{}", screen.said);
}
