//! `countersign restore --phrase`: finds the orders of a rescue phrase again, and they end without the service.
//!
//! The phrase, its secrets and its keys are vectors that another implementation made: crates/store/tests/vectors.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::arithmetic_side_effects, reason = "a test ends by panicking")]

mod home;
#[allow(dead_code, reason = "used in part")]
mod kept;
#[path = "../../client/tests/support/mod.rs"]
mod support;

use std::fs;
use std::process::Output;
use std::sync::{Arc, Mutex};

use countersign::bitcoin::bitcoin::Transaction;
use countersign::bitcoin::bitcoin::consensus::encode::deserialize_hex;
use countersign_client::driver::{KeptOrder, StoreError};
use countersign_client::{Secret, StoredSwap};
use countersign_store::Store;
use countersign_store::backup::RESTORE_SKIP;
use home::{Home, out, said};
use kept::{derived, mended, wallet};
use serde_json::{Value, json};
use support::{Fixture, Reply, Server};

/// Nothing listens here.
const NOWHERE: &str = "http://127.0.0.1:9";
const OWNER: &str = "0x75196C3fEa443e4f086cF9f30D51CF375704f166";

/// A vector of the derivation.
struct Vector(Value);

impl Vector {
    fn at(index: u32) -> Self {
        let vectors: Value =
            serde_json::from_slice(&std::fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/../store/tests/vectors/rescue.json")).unwrap())
                .unwrap();
        let all = vectors["vectors"].as_array().unwrap();
        Self(all.iter().find(|vector| vector["index"] == index && vector["phrase"] == words()).unwrap().clone())
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
    let mut order = Fixture::with_secret(&Vector::at(index).secret()).order;
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
    let report = restored(&home, &server.base, &["--from-owner", OWNER, "--to-owner", "0x4804d5d6114Ce275b29eD910c123051CB981dEB4"]);
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
    // The service may not know of every index that was used, so the next one is far beyond.
    assert_eq!((&report["next_index"], &report["searched"]), (&json!(20 + RESTORE_SKIP), &json!(20 + 5000)));
    let store = Store::open(home.path.join("state")).unwrap();
    assert_eq!((store.next_index().unwrap(), store.phrase().unwrap().unwrap().words().as_str()), (20 + RESTORE_SKIP, words()));
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
    let registry = home.file("registry.json", &support::registry_text());
    let json = |arguments: &[&str]| {
        let output = home.run(NOWHERE, &[arguments, &["--state", &state, "--json"]].concat());
        assert_eq!(output.status.code(), Some(0), "{}", said(&output));
        serde_json::from_str::<Value>(&out(&output)).unwrap()
    };
    let listed = &json(&["orders"])["orders"][0];
    assert_eq!((&listed["order_id"], &listed["stage"], &listed["secret_kept"]), (&json!(id), &json!("restored"), &json!(true)));
    assert_eq!(listed["next"], format!("countersign order show {id}"));
    assert_eq!(listed["then"], json!([format!("countersign redeem --self {id}"), format!("countersign refund --self {id}")]));
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
    let vector = Vector::at(2);
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
    let home = Home::new("restore-bitcoin");
    let server = service(vec![fixture.order.clone()]);
    let report = restored(&home, &server.base, &["--from-owner", OWNER]);
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
    let report = restored(&home, &server.base, &["--from-owner", OWNER]);
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
    let registry = home.file("registry.json", &support::registry_text());
    let secret = home.file("secret.txt", vector.text("/secret"));
    let arguments = ["order", "create", "--registry", &registry, "--state", &state, "--from", "base:eth", "--from-owner", OWNER];
    let more = ["--amount", "1 eth", "--to", "arbitrum:eth", "--to-owner", OWNER, "--receive", "0.9 eth", "--secret-file", &secret];
    let output = home.run(&server.base, &[&arguments[..], &more].concat());
    assert!(output.status.code() == Some(2) && said(&output).contains(&format!("that of order {id}")), "{}", said(&output));
    assert_eq!(server.seen().len(), calls);

    let fixture = Fixture::with_secret(&Vector::at(1).secret());
    let mut response = fixture.response.clone();
    response["result"]["order_id"] = json!(id);
    let swap = StoredSwap::new(fixture.create(), response.to_string()).unwrap();
    let created = countersign_client::driver::Store::create(&Store::open(&state).unwrap(), &KeptOrder::new(swap, None));
    assert_eq!(created, Err(StoreError::Exists(id)));
}

/// One order is restored, but the indices of the others are used as well.
#[test]
fn an_order_restored_by_name_frees_no_index_of_another() {
    let home = Home::new("restore-name");
    let server = service(vec![order(0, "a0"), order(19, "af"), order(2, "a2"), order(2, "b2")]);
    let report = restored(&home, &server.base, &["--from-owner", OWNER, "--order", &"a0".repeat(32), "--order", &"a2".repeat(32)]);
    assert_eq!((ids(&report, "restored"), report["listed"].clone()), (vec!["a0".to_owned(), "a2".to_owned()], json!(2)), "{report}");
    assert_eq!(report["next_index"], json!(20 + RESTORE_SKIP));
    assert_eq!(Store::open(home.path.join("state")).unwrap().next_index().unwrap(), 20 + RESTORE_SKIP);
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
