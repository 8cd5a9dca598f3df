//! Stored orders: `countersign orders` with the stage and the next command of each, and the files of one.

use countersign_client::countersign::chains::UnixTime;
use std::fs;
use std::path::PathBuf;

use crate::home::{Home, NOWHERE, at_once, out, said};
use crate::support::{Fixture, Service};
use countersign_client::countersign::{BroadcastTransaction, Role};
use countersign_client::driver::{Delivery, Entry, Event, OrderState, OrderStore, Outcome, Purpose, SecretRoute};
use countersign_client::{CreatedOrder, OrderId, Secret};
use countersign_store::Store;
use serde_json::{Value, json};

struct Kept {
    home: Home,
    store: Store,
    fixture: Fixture,
}

impl Kept {
    fn new(name: &str) -> Self {
        let home = Home::new(&format!("orders-{name}"));
        let store = Store::open(home.path.join("state")).unwrap();
        Self { home, store, fixture: Fixture::load("evm-record-evm-v2") }
    }

    /// Creates an order whose id is a byte repeated, with these events in its journal.
    fn keep(&self, byte: &str, events: Vec<Event>) -> String {
        let (id, secret) = (byte.repeat(32), secret(byte));
        let fixture = self.fixture.with_secret_hash(&secret.hash().to_string());
        let mut response = fixture.response.clone();
        response["result"]["order_id"] = json!(id);
        let swap = CreatedOrder::new(fixture.create(), response.to_string()).unwrap();
        at_once(OrderStore::create(&self.store, &OrderState::new(swap, Some(secret)))).unwrap();
        let order = at_once(self.store.lock(&OrderId::parse(&id).unwrap())).unwrap();
        for event in events {
            at_once(self.store.append(&order, &Entry { at: UnixTime::from_secs(1), event })).unwrap();
        }
        id
    }

    fn path(&self, id: &str, document: &str) -> PathBuf {
        self.home.path.join("state/orders").join(id).join(document)
    }

    fn run(&self, arguments: &[&str]) -> std::process::Output {
        let state = self.home.path.join("state");
        self.home.run(NOWHERE, &[&["orders", "--state", state.to_str().unwrap()], arguments].concat())
    }

    fn json(&self, code: i32) -> Vec<Value> {
        let output = self.run(&["--json"]);
        assert_eq!(output.status.code(), Some(code), "{}", said(&output));
        let shown: Value = serde_json::from_str(&out(&output)).unwrap();
        assert_eq!(shown["ok"], code == 0);
        shown["orders"].as_array().unwrap().clone()
    }
}

/// A secret of its own for each order: no two may share one.
fn secret(byte: &str) -> Secret {
    Secret::parse(&format!("5ec2e7{}", byte.repeat(29))).unwrap()
}

fn signed(purpose: Purpose) -> Event {
    let transaction = BroadcastTransaction {
        chain: "base".to_owned(),
        role: Role::Initiate,
        id: "0xabc".to_owned(),
        payload: "0x02".to_owned(),
        spends: Vec::new(),
    };
    Event::Signed { purpose, transactions: vec![transaction], gasless: None }
}

#[test]
fn every_kept_order_is_listed_with_how_far_it_is_and_what_to_do_next() {
    let kept = Kept::new("stages");
    let (sending, sent) = (Event::sending, |what| Event::Sent { what });
    let paid = || vec![signed(Purpose::Funding), sending(Delivery::Funding), sent(Delivery::Funding)];
    let left = |path| [paid(), vec![Event::SecretLeaving { path }]].concat();
    let ended = |outcome| [paid(), vec![Event::Ended { outcome }]].concat();
    let cases = [
        ("01", vec![], "created", json!(null)),
        ("02", vec![signed(Purpose::Funding)], "signed", json!(null)),
        ("03", vec![signed(Purpose::Funding), sending(Delivery::Funding)], "paid", json!(null)),
        ("04", paid(), "paid", json!(null)),
        ("05", vec![signed(Purpose::Funding), sent(Delivery::Gasless)], "paid", json!(null)),
        ("06", left(SecretRoute::Own), "redeeming", json!("own")),
        ("07", left(SecretRoute::Relayer), "redeeming", json!("relayer")),
        ("08", [paid(), vec![signed(Purpose::Refund)]].concat(), "refunding", json!(null)),
        ("09", [paid(), vec![sending(Delivery::RefundRequest)]].concat(), "refunding", json!(null)),
        // The secret left after the refund was signed: the order is redeeming.
        (
            "0a",
            [paid(), vec![signed(Purpose::Refund), Event::SecretLeaving { path: SecretRoute::Own }]].concat(),
            "redeeming",
            json!("own"),
        ),
        ("0b", ended(Outcome::Complete), "complete", json!(null)),
        ("0c", ended(Outcome::Refunded), "refunded", json!(null)),
        ("0d", vec![Event::Ended { outcome: Outcome::Expired }], "expired", json!(null)),
        ("0e", ended(Outcome::Lost), "lost", json!(null)),
    ];
    for (byte, events, ..) in &cases {
        kept.keep(byte, events.clone());
    }
    let shown = kept.json(0);
    assert_eq!(shown.len(), cases.len());
    // Complete commands: they can be pasted.
    let state = kept.home.path.join("state").to_str().unwrap().to_owned();
    for (byte, _, stage, left) in &cases {
        let id = byte.repeat(32);
        let order = shown.iter().find(|order| order["order_id"] == id).unwrap();
        assert_eq!((&order["stage"], &order["secret_left"]), (&json!(stage), left), "{byte}");
        let next = match *stage {
            "complete" | "refunded" | "expired" => json!(null),
            "lost" => json!(format!("countersign order show {id} --state {state}")),
            _ => json!(format!("countersign swap --resume {id} --state {state}")),
        };
        assert_eq!((&order["next"], &order["finished"]), (&next, &json!(matches!(*byte, "0b" | "0c" | "0d" | "0e"))), "{byte}");
        assert_eq!((&order["secret_kept"], &order["source"]["amount"]), (&json!(true), &json!("1000000000000000000")));
    }
    let funding = |byte: &str| shown.iter().find(|order| order["order_id"] == byte.repeat(32)).unwrap()["funding"].clone();
    assert_eq!(["01", "02", "03", "04"].map(funding), ["no", "signed", "maybe_sent", "sent"].map(|done| json!(done)));
    // Orders that need the user come first.
    let first_finished = shown.iter().position(|order| order["finished"] == true).unwrap();
    assert!(shown[first_finished..].iter().all(|order| order["finished"] == true));

    // One line each for people, in whole units where there is a registry.
    let registry = kept.home.file("registry.json", &kept.fixture.registry);
    let people = out(&kept.run(&["--registry", &registry]));
    // One with the command below it, where there is one.
    let commands = shown.iter().filter(|order| !order["next"].is_null()).count();
    assert_eq!(people.lines().count(), cases.len() + commands + 1, "{people}");
    let rows: Vec<_> = people.lines().filter(|line| !line.starts_with(' ')).collect();
    assert!(rows.iter().all(|row| row.chars().count() <= 100), "{people}");
    assert!(people.contains("\n    countersign swap --resume 01010101 --state "), "{people}");
    assert!(people.contains("1 base:eth") && people.contains("0.998 arbitrum:eth"), "{people}");
    let machines = out(&kept.run(&["--json"]));
    for (byte, ..) in &cases {
        let secret = secret(byte).to_hex();
        assert!(!people.contains(secret.as_str()) && !machines.contains(secret.as_str()));
    }
}

#[test]
fn an_order_that_cannot_be_read_is_listed_and_hides_no_other() {
    let kept = Kept::new("damaged");
    let ids: Vec<_> = ["11", "22", "33", "44", "55"].iter().map(|byte| kept.keep(byte, vec![])).collect();
    fs::write(kept.path(&ids[0], "order.json"), "{\"id\":").unwrap();
    fs::write(kept.path(&ids[1], "secret"), "not a secret").unwrap();
    fs::write(kept.path(&ids[2], "journal"), "{\"at\":1,\"event\":\"of a newer program\"}\n").unwrap();
    // The documents of another order.
    fs::copy(kept.path(&ids[4], "order.json"), kept.path(&ids[3], "order.json")).unwrap();
    fs::write(kept.home.path.join("state/orders").join("66".repeat(32)), "a file").unwrap();
    // Its creation was interrupted before anything was written.
    fs::create_dir(kept.home.path.join("state/orders").join("77".repeat(32))).unwrap();
    let shown = kept.json(2);
    assert_eq!(shown.len(), 6);
    for id in &ids[..4] {
        let order = shown.iter().find(|order| order["order_id"] == *id).unwrap();
        assert!(order["error"]["code"] == "order_unreadable" && order["stage"].is_null(), "{order}");
        assert!(!order.to_string().contains("not a secret"));
    }
    assert!(shown.iter().any(|order| order["order_id"] == ids[4] && order["stage"] == "created"));
    assert!(shown.iter().any(|order| order["error"]["message"].as_str().is_some_and(|error| error.contains(&"66".repeat(32)))));
    let people = out(&kept.run(&[]));
    assert!(people.contains("cannot be read") && people.contains(&format!("countersign swap --resume {}", &ids[4][..8])), "{people}");
}

#[test]
fn a_list_creates_nothing() {
    let home = Home::new("orders-none");
    let state = home.path.join("nothing");
    let output = home.run(NOWHERE, &["orders", "--state", state.to_str().unwrap(), "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert_eq!(serde_json::from_str::<Value>(&out(&output)).unwrap(), json!({"ok": true, "orders": []}));
    assert!(!state.exists());
}

/// The stored files are complete and only the user can read them. A file that was changed on disk is refused before any request.
#[test]
fn kept_orders_are_private_and_name_their_own_order() {
    let home = Home::new("kept");
    let fixture = Fixture::load("evm-record-evm-v2");
    let registry = home.file("registry.json", &fixture.registry);
    let request = home.file("request.json", &fixture.request.to_string());
    let server = Service::new(fixture.clone()).start();
    let create = ["order", "create", "--registry", &registry, "--request", &request, "--service-secret"];
    assert!(home.run(&server.base, &create).status.success());
    let id = fixture.order_id();
    let file = home.kept(id, "order.json");
    let kept = fs::read_to_string(&file).unwrap();
    let value: Value = serde_json::from_str(&kept).unwrap();
    assert_eq!((&value["id"], &value["response"]), (&json!(id), &fixture.response));
    #[cfg(unix)]
    assert_eq!(std::os::unix::fs::PermissionsExt::mode(&fs::metadata(&file).unwrap().permissions()) & 0o777, 0o600);
    let pins: Value = serde_json::from_str(&fs::read_to_string(home.kept(id, "pins.json")).unwrap()).unwrap();
    let assets = |registry: &Value| registry["assets"].as_array().unwrap().len();
    assert_eq!(assets(&pins["registry"]), assets(&serde_json::from_str(&fixture.registry).unwrap()), "the pins of this order");
    // It is a case that other commands read.
    let explained = home.run(&server.base, &["explain", "--registry", &registry, "--case", file.to_str().unwrap(), "--json"]);
    assert_eq!(serde_json::from_str::<Value>(&out(&explained)).unwrap()["order_id"], json!(id));

    let before = server.seen().len();
    fs::write(&file, kept.replacen(id, &"f".repeat(64), 1)).unwrap();
    for command in [&["swap", "--resume", id][..], &["order", "show", id], &["order", "watch", id]] {
        let output = home.run(&server.base, &[command, &["--registry", &registry]].concat());
        assert!(output.status.code() == Some(2) && said(&output).contains("record_mismatch"), "{}", said(&output));
    }
    assert_eq!(server.seen().len(), before);
}
