//! Tests `countersign restore --phrase`: it finds the orders of a rescue phrase, and they end without the service.
//!
//! The phrase, its secrets and its keys are vectors that another implementation made: crates/store/tests/vectors.

use std::fs;
use std::process::Output;
use std::sync::{Arc, Mutex};

use crate::home::{Home, NOWHERE, at_once, out, said};
use crate::kept::{derived, mended, wallet};
use crate::support::{Fixture, Reply, Server, Service};
use crate::whole::ask;
use countersign::bitcoin::bitcoin::Transaction;
use countersign::bitcoin::bitcoin::consensus::encode::deserialize_hex;
use countersign_client::driver::{OrderState, OrderStore, StoreError};
use countersign_client::{CreatedOrder, Secret};
use countersign_store::{KeyIndex, Store};
use serde_json::{Value, json};

mod judged;
mod over;

const OWNER: &str = "0x75196C3fEa443e4f086cF9f30D51CF375704f166";

/// A vector of the derivation.
struct Vector(Value);

impl Vector {
    fn at(index: u32) -> Self {
        Self::of(0, index)
    }

    fn of(branch: u16, index: u32) -> Self {
        let vectors: Value =
            serde_json::from_slice(&std::fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/../store/tests/vectors/rescue.json")).unwrap())
                .unwrap();
        let all = vectors["vectors"].as_array().unwrap();
        Self(
            all.iter()
                .find(|vector| vector["branch"] == branch && vector["index"] == index && vector["phrase"] == words())
                .unwrap()
                .clone(),
        )
    }

    fn secret(&self) -> Secret {
        Secret::parse(self.0["secret"].as_str().unwrap()).unwrap()
    }

    fn text(&self, pointer: &str) -> &str {
        self.0.pointer(pointer).unwrap().as_str().unwrap()
    }
}

fn words() -> &'static str {
    "legal winner thank year wave sausage worth useful legal winner thank yellow"
}

/// An order of two EVM chains under the secret of an index, with an id of its own.
fn order(index: u32, byte: &str) -> Value {
    order_of(0, index, byte)
}

fn order_of(branch: u16, index: u32, byte: &str) -> Value {
    let mut order = Fixture::with_secret(&Vector::of(branch, index).secret()).order;
    order["order_id"] = json!(byte.repeat(32));
    order
}

/// A service that lists orders page by page, two on each, and knows nothing else.
fn service(orders: Vec<Value>) -> Server {
    Server::start(move |seen| {
        if seen.method != "GET" || seen.path() != "/v2/orders" {
            return Reply::json(404, r#"{"status":"Error","error":"not found"}"#);
        }
        let page = seen.target.split(['?', '&']).find_map(|part| part.strip_prefix("page=")).map_or(1, |page| page.parse().unwrap());
        let data: Vec<_> = orders.iter().skip((page - 1) * 2).take(2).collect();
        let pages = orders.len().div_ceil(2);
        Reply::ok(&json!({"data": data, "page": page, "total_pages": pages, "total_items": orders.len(), "per_page": 2}))
    })
}

fn restore(home: &Home, base: &str, arguments: &[&str]) -> Output {
    let state = home.path.join("state");
    let all = [&["restore", "--phrase", "--state", state.to_str().unwrap(), "--json"], arguments].concat();
    home.run_with(base, &all, &[], words())
}

fn restored(home: &Home, base: &str, arguments: &[&str]) -> Value {
    let output = restore(home, base, arguments);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert!(!said(&output).contains("winner"), "no word is shown");
    serde_json::from_str(&out(&output)).unwrap()
}

fn ids(report: &Value, list: &str) -> Vec<String> {
    report[list].as_array().unwrap().iter().map(|entry| entry["order_id"].as_str().unwrap()[..2].to_owned()).collect()
}

#[test]
fn orders_are_found_on_every_page_and_by_every_index() {
    let home = Home::new("restore-pages");
    let foreign = Fixture::load("evm-record-evm-v2").order;
    let nameless = order(1, "../");
    // The last one is beyond eighteen indices without an order.
    let server = service(vec![order(0, "a0"), foreign.clone(), order(2, "a2"), nameless, order(1, "a1"), order(19, "af")]);
    let owners = ["--from-owner", OWNER, "--to-owner", "0x4804d5d6114Ce275b29eD910c123051CB981dEB4"];
    let report = restored(&home, &server.base, &[&owners[..], &["--branch", "0"]].concat());
    let asked: Vec<_> = server.lines();
    assert_eq!(asked.len(), 6, "{asked:?}");
    assert!(asked[0].contains("from_owner") && asked[3].contains("to_owner"), "{asked:?}");
    assert_eq!(ids(&report, "restored"), ["a0", "a1", "a2", "af"]);
    let indices: Vec<_> = report["restored"].as_array().unwrap().iter().map(|order| order["index"].as_u64().unwrap()).collect();
    assert_eq!(indices, [0, 1, 2, 19]);
    assert!(report["restored"].as_array().unwrap().iter().all(|order| order["secret"] == true));
    assert!(report["not_restored"][1]["reason"].as_str().unwrap().contains("order id"), "{report}");
    let not = &report["not_restored"][0];
    assert!(not["order_id"] == foreign["order_id"] && not["reason"].as_str().unwrap().contains("this phrase"), "{report}");
    // The service may not know of every index that was used, so new orders are made in another branch.
    let store = Store::open(home.path.join("state")).unwrap();
    let KeyIndex { branch, index } = store.next_index().unwrap();
    assert!(branch != 0 && index == 0);
    assert_eq!((&report["branch"], &report["next_index"], &report["branches"]), (&json!(branch), &json!(0), &json!(1)));
    assert_eq!(store.phrase().unwrap().unwrap().words().as_str(), words());
    for (byte, index) in [("a0", 0), ("af", 19)] {
        let kept = store.open_order(&byte.repeat(32)).unwrap();
        assert_eq!(kept.read("secret").unwrap().unwrap().as_slice(), Vector::at(index).text("/secret").as_bytes());
    }
}

#[test]
fn a_restored_order_is_listed_and_ends_without_the_service() {
    let home = Home::new("restore-self");
    let id = "a2".repeat(32);
    let server = service(vec![order(2, "a2")]);
    restored(&home, &server.base, &["--from-owner", OWNER]);
    let state = home.path.join("state").to_str().unwrap().to_owned();
    let registry = home.file("registry.json", &crate::support::registry_text());
    let json = |arguments: &[&str]| {
        let output = home.run(NOWHERE, &[arguments, &["--state", &state, "--json"]].concat());
        assert_eq!(output.status.code(), Some(0), "{}", said(&output));
        serde_json::from_str::<Value>(&out(&output)).unwrap()
    };
    let listed = &json(&["orders"])["orders"][0];
    assert_eq!((&listed["order_id"], &listed["stage"], &listed["secret_kept"]), (&json!(id), &json!("restored"), &json!(true)));
    let begins = |text: &Value, command: &str| text.as_str().unwrap().starts_with(&format!("countersign {command} {id}"));
    assert!(begins(&listed["next"], "order show"), "{listed}");
    assert!(begins(&listed["then"][0], "redeem --self") && begins(&listed["then"][1], "refund --self"), "{listed}");
    let (mut context, _) = wallet("evm", None);
    context.as_object_mut().unwrap().remove("sender");
    let context = home.file("wallet.json", &context.to_string());
    let key = home.file("redeem.txt", &derived("destination owner of evm-record-evm-v2"));
    let refund_key = Fixture::load("evm-record-evm-v2").wallet["secret_key"].as_str().unwrap().to_owned();
    let refund_key = home.file("refund.txt", &refund_key);
    let secret = Vector::at(2).text("/secret").to_owned();
    for (command, key, has_secret) in [("redeem", &key, true), ("refund", &refund_key, false)] {
        let shown = json(&[command, "--self", &id, "--registry", &registry, "--wallet", &context, "--key-file", key]);
        assert_eq!((&shown["record_verified"], &shown["role"]), (&json!(false), &json!(command)), "{shown}");
        let bytes = shown["transactions"][0]["bytes"].as_str().unwrap();
        assert_eq!(bytes.contains(&secret), has_secret);
    }
    let resumed = home.run(NOWHERE, &["swap", "--resume", &id, "--registry", &registry, "--state", &state]);
    assert!(resumed.status.code() == Some(2) && said(&resumed).contains("redeem --self"), "{}", said(&resumed));
    // The same with the record given: a fresher one than that of the list.
    let record = home.file("record.json", &order(2, "a2").to_string());
    let shown = json(&["redeem", "--self", &id, "--order", &record, "--registry", &registry, "--wallet", &context, "--key-file", &key]);
    assert!(shown["transactions"][0]["bytes"].as_str().unwrap().contains(&secret));
    // The secret of this order leaves under no other.
    let other = home.file("other.json", &order(2, "a3").to_string());
    let arguments = ["redeem", "--self", &id, "--order", &other, "--registry", &registry, "--wallet", &context, "--state", &state];
    assert_eq!(home.run(NOWHERE, &arguments).status.code(), Some(1));
    let arguments =
        ["redeem", "--self", &"a3".repeat(32), "--order", &other, "--registry", &registry, "--wallet", &context, "--state", &state];
    assert_eq!(home.run(NOWHERE, &arguments).status.code(), Some(2));
}

/// The solver's payment on a Bitcoin-like chain is redeemed with the key of the phrase. The program asks for no other key.
#[test]
fn a_bitcoin_redemption_is_signed_with_the_derived_key() {
    for branch in [0, 3] {
        redeems_with_the_key_of(branch);
    }
}

fn redeems_with_the_key_of(branch: u16) {
    let vector = Vector::of(branch, 2);
    let fixture = Fixture::load("evm-record-bitcoin-testnet");
    let hash = fixture.order["source_swap"]["secret_hash"].as_str().unwrap().to_owned();
    let delegate = fixture.order["destination_swap"]["delegate"].as_str().unwrap().to_owned();
    let changed = |value: &Value| {
        let text = value.to_string().replace(&hash, vector.text("/secret_hash")).replace(&delegate, vector.text("/redeem_key/public_key"));
        serde_json::from_str(&text).unwrap()
    };
    let fixture = mended(Fixture {
        request: changed(&fixture.request),
        response: changed(&fixture.response),
        order: changed(&fixture.order),
        ..fixture.clone()
    });
    let home = Home::new(&format!("restore-bitcoin-{branch}"));
    let server = service(vec![fixture.order.clone()]);
    let report = restored(&home, &server.base, &["--from-owner", OWNER, "--branch", &branch.to_string()]);
    assert_eq!(report["restored"][0]["keys"], json!(["destination"]), "{report}");
    let state = home.path.join("state").to_str().unwrap().to_owned();
    let registry = home.file("registry.json", &fixture.registry);
    let funding = format!("{}:0:{}", "aa".repeat(32), fixture.order["destination_swap"]["amount"].as_str().unwrap());
    let arguments = [
        "redeem",
        "--self",
        fixture.order_id(),
        "--registry",
        &registry,
        "--state",
        &state,
        "--funding",
        &funding,
        // Of BIP-173's examples.
        "--to",
        "tb1qw508d6qejxtdg4y5r3zarvary0c5xw7kxpjzsx",
        "--fee-rate",
        "2",
        "--json",
    ];
    let output = home.run(NOWHERE, &arguments);
    let shown: Value = serde_json::from_str(&out(&output)).unwrap_or_else(|error| panic!("{error}: {}", said(&output)));
    let bytes = shown["transactions"][0]["bytes"].as_str().unwrap_or_else(|| panic!("{shown}"));
    let transaction: Transaction = deserialize_hex(bytes.trim_start_matches("0x")).unwrap();
    let witness = &transaction.input[0].witness;
    assert!(witness.iter().any(|item| hex::encode(item) == vector.text("/secret")), "{shown}");
    // The script in the witness names the key, and the program proves each signature under the script's key.
    assert!(witness.iter().any(|item| hex::encode(item).contains(vector.text("/redeem_key/public_key"))), "{shown}");
    // A phrase that its owner has not confirmed yet stands in the way of no redemption, and is not shown by one.
    home.file("state/phrase_not_confirmed", "");
    if let Some(screen) = crate::terminal::answer(&home, NOWHERE, &arguments, &[]) {
        assert!(screen.code == 0 && screen.said.contains(bytes) && !screen.said.contains("rescue phrase"), "{}", screen.said);
    }
    // Without the phrase nothing is signed, and none is generated in its place.
    let phrase = home.path.join("state/rescue");
    std::fs::remove_file(&phrase).unwrap();
    let output = home.run(NOWHERE, &arguments);
    assert!(!out(&output).contains(bytes) && !phrase.exists(), "{}", said(&output));
}

#[test]
fn a_refund_key_finds_an_order_whose_secret_is_not_of_the_phrase() {
    let home = Home::new("restore-key");
    let mut order = Fixture::load("bitcoin-delegate").order;
    order["source_swap"]["delegate"] = json!(Vector::at(1).text("/refund_key/public_key"));
    // The same key on the other side belongs to another role.
    let mut other = order.clone();
    other["order_id"] = json!("b0".repeat(32));
    other["source_swap"]["delegate"] = json!(Vector::at(2).text("/redeem_key/public_key"));
    let server = service(vec![order.clone(), other]);
    let report = restored(&home, &server.base, &["--from-owner", OWNER, "--branch", "0"]);
    let found = &report["restored"][0];
    assert_eq!((&found["order_id"], &found["index"], &found["keys"]), (&order["order_id"], &json!(1), &json!(["source"])), "{report}");
    assert_eq!((&found["secret"], ids(&report, "not_restored")), (&json!(false), vec!["b0".to_owned()]));
}

/// A service that lies cannot make the secret of one order leave under another.
#[test]
fn two_orders_of_one_secret_are_restored_only_by_name() {
    let home = Home::new("restore-twice");
    let mut torn = order(19, "c0");
    torn["destination_swap"]["secret_hash"] = json!(Vector::at(0).text("/secret_hash"));
    let server = service(vec![order(2, "a2"), order(2, "b2"), order(1, "a1"), torn]);
    let report = restored(&home, &server.base, &["--from-owner", OWNER]);
    assert_eq!(ids(&report, "restored"), ["a1"]);
    assert_eq!(ids(&report, "not_restored"), ["a2", "b2", "c0"]);
    let reason = |index: usize| report["not_restored"][index]["reason"].as_str().unwrap();
    assert!(reason(0).contains(&"b2".repeat(32)) && reason(1).contains(&"a2".repeat(32)) && reason(2).contains("two legs"), "{report}");
    let store = Store::open(home.path.join("state")).unwrap();
    assert_eq!(store.orders().unwrap().len(), 1);
    // The user knows which one it is: the same directory is completed.
    let report = restored(&home, &server.base, &["--from-owner", OWNER, "--order", &"a2".repeat(32)]);
    assert_eq!((ids(&report, "restored"), report["listed"].clone()), (vec!["a2".to_owned()], json!(1)));
    assert_eq!(store.orders().unwrap().len(), 2);
    // Nothing is written twice, and no index goes back.
    let next = store.next_index().unwrap();
    let again = restored(&home, &server.base, &["--from-owner", OWNER]);
    assert!(ids(&again, "restored").is_empty() && store.next_index().unwrap() == next, "{again}");
}

/// A restored order's secret and id cannot be used for another order.
#[test]
fn a_restored_secret_and_id_begin_no_other_order() {
    let home = Home::new("restore-used");
    let (vector, id) = (Vector::at(2), "a2".repeat(32));
    let server = service(vec![order(2, "a2")]);
    restored(&home, &server.base, &["--from-owner", OWNER]);
    let calls = server.seen().len();
    let state = home.path.join("state").to_str().unwrap().to_owned();
    let registry = home.file("registry.json", &crate::support::registry_text());
    let secret = home.file("secret.txt", vector.text("/secret"));
    let arguments = ["order", "create", "--registry", &registry, "--state", &state, "--from", "base:eth", "--from-owner", OWNER];
    let more = ["--amount", "1 eth", "--to", "arbitrum:eth", "--to-owner", OWNER, "--receive", "0.9 eth", "--secret-file", &secret];
    let output = home.run(&server.base, &[&arguments[..], &more].concat());
    assert!(output.status.code() == Some(2) && said(&output).contains(&format!("that of order {id}")), "{}", said(&output));
    assert_eq!(server.seen().len(), calls);

    let fixture = Fixture::with_secret(&Vector::at(1).secret());
    let mut response = fixture.response.clone();
    response["result"]["order_id"] = json!(id);
    let swap = CreatedOrder::new(fixture.create(), response.to_string()).unwrap();
    let created = at_once(OrderStore::create(&Store::open(&state).unwrap(), &OrderState::new(swap, None)));
    assert_eq!(created, Err(StoreError::Exists(id)));
}

/// One order is restored, but the indices of the others are used as well.
#[test]
fn an_order_restored_by_name_frees_no_index_of_another() {
    let home = Home::new("restore-name");
    let server = service(vec![order(0, "a0"), order(19, "af"), order(2, "a2"), order(2, "b2")]);
    let report = restored(&home, &server.base, &["--from-owner", OWNER, "--order", &"a0".repeat(32), "--order", &"a2".repeat(32)]);
    assert_eq!((ids(&report, "restored"), report["listed"].clone()), (vec!["a0".to_owned(), "a2".to_owned()], json!(2)), "{report}");
    assert_ne!(Store::open(home.path.join("state")).unwrap().next_index().unwrap().branch, 0);
}

/// A phrase whose orders were made by several copies of a state directory.
#[test]
fn orders_of_several_branches_are_found() {
    let home = Home::new("restore-branches");
    let server = service(vec![order_of(3, 19, "b3"), order(1, "a1"), order_of(1, 2, "b1"), order_of(3, 0, "c3")]);
    let report = restored(&home, &server.base, &["--from-owner", OWNER]);
    assert_eq!(ids(&report, "restored"), ["a1", "b1", "b3", "c3"], "{report}");
    let place = |order: &Value| (order["branch"].as_u64().unwrap(), order["index"].as_u64().unwrap());
    let places: Vec<_> = report["restored"].as_array().unwrap().iter().map(place).collect();
    assert_eq!(places, [(0, 1), (1, 2), (3, 19), (3, 0)]);
    // Everything was found in the first block of branches.
    assert_eq!(report["branches"], json!(1 + 4096));
    let store = Store::open(home.path.join("state")).unwrap();
    let kept = store.open_order(&"b3".repeat(32)).unwrap();
    assert_eq!(**kept.read("branch").unwrap().unwrap(), *b"3");
    assert_eq!(kept.read("secret").unwrap().unwrap().as_slice(), Vector::of(3, 19).text("/secret").as_bytes());
    // An order of branch 0 is stored as before.
    assert!(store.open_order(&"a1".repeat(32)).unwrap().read("branch").unwrap().is_none());
}

#[test]
fn the_last_branch_and_a_late_index_are_found_where_the_search_is_limited() {
    let home = Home::new("restore-limited");
    let mut by_key = Fixture::load("bitcoin-delegate").order;
    by_key["source_swap"]["delegate"] = json!(Vector::of(3, 1).text("/refund_key/public_key"));
    let server = service(vec![order_of(65535, 19, "ff"), order_of(1, 19, "b1"), by_key.clone()]);
    let limits = ["--branch", "65535", "--branch", "3", "--branch", "1", "--branch-look-ahead"];
    let report = restored(&home, &server.base, &[&["--from-owner", OWNER], &limits[..], &["19"]].concat());
    assert_eq!((&report["restored"].as_array().unwrap().len(), &report["branches"]), (&1, &json!(3)), "{report}");
    let found = &report["restored"][0];
    assert_eq!((&found["order_id"], &found["branch"], &found["index"]), (&by_key["order_id"], &json!(3), &json!(1)));
    // Twenty indices reach the index 19.
    let report = restored(&home, &server.base, &[&["--from-owner", OWNER], &limits[..], &["20"]].concat());
    assert_eq!(ids(&report, "restored"), ["b1", "ff"], "{report}");
}

/// A copy that could not be recognized: the service lists an order of the other copy with the same hash.
#[test]
fn an_order_whose_hash_the_service_lists_for_another_one_is_not_signed() {
    let home = Home::new("restore-listed");
    let vector = Vector::at(2);
    let mut fixture = Fixture::with_secret(&vector.secret());
    fixture.order["created_at"] = json!(chrono::Utc::now().to_rfc3339());
    fixture.order["deadline"] = json!(chrono::Utc::now().timestamp() + 3_600);
    let service = Service::new(fixture.clone());
    let mut other = fixture.order.clone();
    other["order_id"] = json!("b2".repeat(32));
    let hide = Arc::new(Mutex::new(false));
    let server = Server::start({
        let (service, hide) = (service.clone(), Arc::clone(&hide));
        move |seen| {
            if seen.method != "GET" || seen.path() != "/v2/orders" || *hide.lock().unwrap() {
                return service.answer(seen);
            }
            // The owner's list on the destination chain has the other order on its second page.
            let (page, pages) = (if seen.target.contains("page=2") { 2 } else { 1 }, if seen.target.contains("to_owner") { 2 } else { 1 });
            let data = if page == 2 { [&other] } else { [&service.fixture.order] };
            Reply::ok(&json!({"data": data, "page": page, "total_pages": pages, "total_items": pages, "per_page": 1}))
        }
    });
    let state = home.path.join("state");
    let store = Store::open(&state).unwrap();
    let swap = CreatedOrder::new(fixture.create(), fixture.response.to_string()).unwrap();
    let mut kept = OrderState::new(swap, Some(vector.secret()));
    kept.index = Some(2);
    at_once(OrderStore::create(&store, &kept)).unwrap();
    let mut wallet = fixture.wallet.clone();
    let key = wallet.as_object_mut().unwrap().remove("secret_key").unwrap();
    let (wallet, key) = (home.file("wallet.json", &wallet.to_string()), home.file("key.txt", key.as_str().unwrap()));
    let (state, registry) = (state.to_str().unwrap().to_owned(), home.file("registry.json", &fixture.registry));
    let arguments = ["swap", "--resume", fixture.order_id(), "--state", &state, "--registry", &registry, "--wallet", &wallet];
    let arguments = [&arguments[..], &["--key-file", &key, "--yes", "--poll", "20", "--trust-the-service", "--json"]].concat();
    let output = home.run(&server.base, &arguments);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    let refused: Value = serde_json::from_str(&out(&output)).unwrap();
    assert_eq!(refused["error"]["code"], "secret_used", "{refused}");
    assert!(refused["error"]["message"].as_str().unwrap().contains(&"b2".repeat(32)), "{refused}");
    assert!(server.seen().iter().all(|seen| seen.method != "PATCH"), "nothing was submitted");
    let loaded = at_once(store.load(kept.swap.id())).unwrap();
    assert!(loaded.journal.is_empty(), "nothing was signed: {:?}", loaded.journal);
    // The next order has a secret of another branch.
    assert_ne!(store.next_index().unwrap().branch, 0);
    // The list contains the order itself, which is not a reason to stop.
    *hide.lock().unwrap() = true;
    let output = home.run(&server.base, &arguments);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert!(server.seen().iter().any(|seen| seen.target.ends_with("action=initiate")));
}

/// Any wallet may pay what `order create` shows, so such an order is not shown either.
#[test]
fn an_order_whose_hash_the_service_lists_for_another_one_is_not_shown() {
    for is_listed in [true, false] {
        let home = Home::new("restore-created");
        let secret = Vector::at(2).secret();
        let mut fixture = Fixture::with_secret(&secret);
        fixture.order["created_at"] = json!(chrono::Utc::now().to_rfc3339());
        fixture.order["deadline"] = json!(chrono::Utc::now().timestamp() + 3_600);
        let (service, mut other) = (Service::new(fixture.clone()), fixture.order.clone());
        other["order_id"] = json!("b2".repeat(32));
        let server = Server::start(move |seen| match (seen.method.as_str(), seen.path()) {
            ("GET", "/v2/orders") if is_listed => {
                Reply::ok(&json!({"data": [other], "page": 1, "total_pages": 1, "total_items": 1, "per_page": 10}))
            }
            _ => service.answer(seen),
        });
        let (registry, given) = (home.file("registry.json", &fixture.registry), home.file("given.secret", &secret.to_hex()));
        let receive = fixture.request["destination"]["amount"].as_str().unwrap();
        let mut arguments = vec!["order".to_owned(), "create".to_owned()];
        arguments.extend(ask(&fixture));
        arguments.extend(["--secret-file", &given, "--receive", receive, "--registry", &registry, "--json"].map(str::to_owned));
        let output = home.run(&server.base, &arguments.iter().map(String::as_str).collect::<Vec<_>>());
        let shown: Value = serde_json::from_str(&out(&output)).unwrap();
        assert_eq!(output.status.code(), Some(i32::from(is_listed)), "{shown}");
        if is_listed {
            assert_eq!(shown["error"]["code"], "secret_used", "{shown}");
            assert!(shown["error"]["message"].as_str().unwrap().contains(&"b2".repeat(32)), "{shown}");
        }
        // What another wallet would pay.
        let to = fixture.response["result"]["initiate_transaction"]["to"].as_str().unwrap().to_lowercase();
        assert_eq!(said(&output).to_lowercase().contains(&to), !is_listed, "{}", said(&output));
    }
}

/// A service that repeats an id refuses the user an order; no file is to blame.
#[test]
fn a_repeated_order_id_is_a_refusal() {
    let home = Home::new("restore-repeated");
    let fixture = Fixture::load("evm-record-evm-v2");
    let server = Service::new(fixture.clone()).start();
    let (state, registry) = (home.path.join("state").to_str().unwrap().to_owned(), home.file("registry.json", &fixture.registry));
    let create = || {
        let (from, to) = (fixture.request["source"]["owner"].as_str().unwrap(), fixture.request["destination"]["owner"].as_str().unwrap());
        let arguments = ["order", "create", "--registry", &registry, "--state", &state, "--from", "base:eth", "--from-owner", from];
        let more = ["--amount", "1 eth", "--to", "arbitrum:eth", "--to-owner", to, "--receive", "0.9 eth", "--json"];
        home.run(&server.base, &[&arguments[..], &more].concat())
    };
    // The service's answer is for another request, which is refused only after the order is stored.
    let first = create();
    assert_eq!(first.status.code(), Some(1), "{}", said(&first));
    let before = fs::read(home.path.join("state/orders").join(fixture.order_id()).join("order.json")).unwrap();
    let again = create();
    let refused: Value = serde_json::from_str(&out(&again)).unwrap();
    assert_eq!((again.status.code(), &refused["error"]["code"]), (Some(1), &json!("order_exists")), "{}", said(&again));
    assert_eq!(fs::read(home.path.join("state/orders").join(fixture.order_id()).join("order.json")).unwrap(), before);
}

#[test]
fn a_directory_in_use_and_a_wrong_phrase_are_refused_before_any_call() {
    let home = Home::new("restore-refused");
    let server = service(vec![order(0, "a0")]);
    let code = |arguments: &[&str], words: &str| {
        let output = home.run_with(&server.base, &[&["restore", "--phrase", "--json"], arguments].concat(), &[("WORDS", words)], words);
        assert!(!said(&output).contains("winner"), "no word is shown: {}", said(&output));
        (output.status.code(), said(&output))
    };
    let state = home.path.join("state").to_str().unwrap().to_owned();
    let used = home.path.join("used");
    Store::open(&used).unwrap().keep_phrase(&countersign_store::rescue::Phrase::generate().unwrap()).unwrap();
    let owner = ["--from-owner", OWNER];
    let (refused, said) = code(&[&["--state", used.to_str().unwrap()], &owner[..]].concat(), words());
    assert!(refused == Some(2) && said.contains("not empty"), "{said}");
    let files = home.file("files/mine.txt", "mine");
    let files = std::path::Path::new(&files).parent().unwrap().to_str().unwrap();
    assert_eq!(code(&[&["--state", files], &owner[..]].concat(), words()).0, Some(2));
    for wrong in ["", "winner", &words().replace("yellow", "year"), &format!("{} {}", words(), words()), &words().replace("legal", "legel")]
    {
        assert_eq!(code(&[&["--state", &state], &owner[..]].concat(), wrong).0, Some(2), "{wrong}");
    }
    assert_eq!(code(&["--state", &state], words()).0, Some(2), "no address");
    assert_eq!(code(&[&["--state", &state, "--look-ahead", "1199"], &owner[..]].concat(), words()).0, Some(2));
    assert_eq!(code(&[&["--state", &state, "legal winner"], &owner[..]].concat(), words()).0, Some(2), "words are no argument");
    assert!(server.seen().is_empty() && !fs::exists(&state).unwrap());
    // From the environment, with every address of the configuration file on both sides.
    home.file(".config/countersign/config.json", &json!({"owners": {"base": OWNER, "arbitrum": OWNER, "bitcoin": "bc1q"}}).to_string());
    let (done, said) = code(&["--state", &state, "--phrase-env", "WORDS"], words());
    assert!(done == Some(0) && server.lines().len() == 4, "{said} {:?}", server.lines());
}

#[test]
fn a_service_that_fails_writes_nothing_and_can_be_asked_again() {
    let home = Home::new("restore-again");
    let fails = Arc::new(Mutex::new(true));
    let (failing, record) = (Arc::clone(&fails), order(0, "a0"));
    let server = Server::start(move |_| {
        if *failing.lock().unwrap() {
            return Reply::json(500, "no");
        }
        Reply::ok(&json!({"data": [record], "page": 1, "total_pages": 1, "total_items": 1, "per_page": 10}))
    });
    let output = restore(&home, &server.base, &["--from-owner", OWNER]);
    assert_eq!(output.status.code(), Some(3), "{}", said(&output));
    assert!(said(&output).contains("nothing was written") && !fs::exists(home.path.join("state")).unwrap());
    *fails.lock().unwrap() = false;
    assert_eq!(ids(&restored(&home, &server.base, &["--from-owner", OWNER]), "restored"), ["a0"]);
}
