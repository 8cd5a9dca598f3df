//! Tests how the program lists and explains ended orders, and several refunds at once.

use std::process::Output;

use crate::home::{Home, NOWHERE, at_once, out, said};
use crate::support::{Fixture, Reply, Server, Service, Step};
use crate::whole::Whole;
use countersign_client::countersign::{BroadcastTransaction, Policy, Registry, Role, chains::UnixTime};
use countersign_client::driver::{Delivery, Entry, Event, OrderState, OrderStore, Purpose, SignedUnder};
use countersign_client::{CreatedOrder, OrderId, Secret};
use countersign_store::Store;
use serde_json::{Value, json};

fn store(home: &Home) -> Store {
    Store::open(home.path.join(".local/share/countersign")).unwrap()
}

fn journal(store: &Store, id: &str, at: UnixTime, events: Vec<Event>) {
    let guard = at_once(store.lock(&OrderId::parse(id).unwrap())).unwrap();
    for event in events {
        at_once(store.append(&guard, &Entry { at, event })).unwrap();
    }
}

fn document(output: &Output) -> Value {
    serde_json::from_str(&out(output)).unwrap_or_else(|error| panic!("{error}: {}", said(output)))
}

#[test]
fn an_order_that_is_complete_by_the_services_word_is_listed_and_explained_so() {
    let whole = Whole::new("ended-trusted");
    let server = whole.service.start();
    let output = whole.run(&server.base, &whole.begin);
    assert!(output.status.success(), "{}", said(&output));
    let id = whole.service.fixture.order_id().to_owned();
    let listed = || document(&whole.home.run(NOWHERE, &["orders", "--json"]))["orders"][0].clone();
    let order = listed();
    assert_eq!((&order["stage"], &order["stated"], &order["finished"]), (&json!("complete"), &json!("complete"), &json!(true)), "{order}");
    assert_eq!((&order["next"], &order["short_id"]), (&Value::Null, &json!(id[..8].to_lowercase())), "{order}");
    let people = out(&whole.home.run(NOWHERE, &["orders"]));
    assert!(people.contains("complete*") && people.contains("only the service's word"), "{people}");
    assert!(!people.contains("swap --resume") && people.lines().all(|line| line.chars().count() <= 100), "{people}");

    // The order as it was paid. That the secret is public today is not a reason against it.
    let short = &id[..8];
    let page = whole.home.path.join("order.html");
    let explained = whole.home.run(NOWHERE, &["explain", short, "--html", page.to_str().unwrap()]);
    let told = said(&explained);
    assert!(explained.status.success() && told.contains("Lock ") && !told.contains("record_secret_known"), "{told}");
    assert!(told.contains("stage  complete, as the service states it"), "{told}");
    assert!(told.contains(&format!("wrote {}", page.display())), "{told}");
    let page = std::fs::read_to_string(&page).unwrap();
    for text in ["Verified: every byte accounted for", "What became of it", "complete, as the service states it"] {
        assert!(page.contains(text), "{text}: {page}");
    }
    let registry = whole.home.path.join("registry.json").to_str().unwrap().to_owned();
    let stated = out(&whole.home.run(&server.base, &["order", "show", short, "--registry", &registry]));
    assert!(stated.contains("redeemed: the order is complete, as the service states it"), "{stated}");
    let shown = document(&whole.home.run(NOWHERE, &["explain", short, "--json"]));
    assert_eq!((&shown["ok"], &shown["progress"]["stage"]), (&json!(true), &json!("complete")), "{shown}");
    // A note that cannot be read is none, as in the list.
    let note = whole.home.kept(&id, "stated.json");
    let text = std::fs::read(&note).unwrap();
    std::fs::remove_file(&note).unwrap();
    std::fs::create_dir(&note).unwrap();
    let shown = document(&whole.home.run(NOWHERE, &["explain", short, "--json"]));
    assert_eq!((&shown["ok"], &shown["progress"]["stated"]), (&json!(true), &Value::Null), "{shown}");
    std::fs::remove_dir(&note).unwrap();
    std::fs::write(&note, text).unwrap();
    // The service's record of today contains the secret: with it the order could not be paid any more.
    let order_file = whole.home.kept(&id, "order.json").to_str().unwrap().to_owned();
    let mut record = whole.service.fixture.at(Step::Redeemed);
    record["destination_swap"]["secret"] = json!(*whole.secret.to_hex());
    let today = whole.home.file("today.json", &record.to_string());
    let again = whole.home.run(NOWHERE, &["explain", "--registry", &registry, "--case", &order_file, "--order", &today]);
    assert!(again.status.code() == Some(1) && said(&again).contains("record_secret_known"), "{}", said(&again));

    // Later events count more than the statement.
    journal(&store(&whole.home), &id, UnixTime::from_secs(1), vec![Event::sending(Delivery::Secret)]);
    assert_eq!((&listed()["stage"], &listed()["stated"]), (&json!("redeeming"), &Value::Null));
}

#[test]
fn every_command_takes_the_first_digits_of_a_stored_order() {
    let whole = Whole::new("ended-short");
    let server = Service { moves: false, ..whole.service.clone() }.start();
    whole.create(&server.base);
    let id = whole.service.fixture.order_id().to_lowercase();
    let registry = whole.home.path.join("registry.json").to_str().unwrap().to_owned();
    for digits in [&id[..4], &id[..8], &id[..63].to_uppercase()] {
        for command in [
            &["order", "show", digits, "--registry", &registry][..],
            &["explain", digits],
            &["swap", "--resume", digits, "--dry-run", "--registry", &registry],
            &["refund", digits],
            &["redeem", digits, "--registry", &registry],
        ] {
            let output = whole.home.run(&server.base, command);
            assert_ne!(output.status.code(), Some(2), "{command:?}: {}", said(&output));
        }
    }
    // Two orders that begin alike.
    let secret = Secret::generate().unwrap();
    let fixture = Fixture::with_secret(&secret);
    let mut response = fixture.response.clone();
    let other = format!("{}{}", &id[..62], if id.ends_with("00") { "11" } else { "00" });
    response["result"]["order_id"] = json!(other);
    let swap = CreatedOrder::new(fixture.create(), response.to_string()).unwrap();
    at_once(OrderStore::create(&store(&whole.home), &OrderState::new(swap, Some(secret)))).unwrap();
    let output = whole.home.run(&server.base, &["explain", &id[..8]]);
    assert!(output.status.code() == Some(2) && said(&output).contains("2 orders begin with this"), "{}", said(&output));
    assert!(said(&output).contains(&id) && said(&output).contains(&other), "{}", said(&output));
    let orders = document(&whole.home.run(NOWHERE, &["orders", "--json"]));
    for order in orders["orders"].as_array().unwrap() {
        let short = order["short_id"].as_str().unwrap();
        assert!(short.len() >= 63 && order["order_id"].as_str().unwrap().starts_with(short), "{order}");
    }
}

#[test]
fn an_order_that_is_not_paid_is_not_a_question_of_trust() {
    let whole = Whole::new("ended-unpaid");
    let server = Service { moves: false, ..whole.service.clone() }.start();
    whole.create(&server.base);
    let (id, registry) = (whole.service.fixture.order_id().to_owned(), whole.home.path.join("registry.json"));
    let redeem = ["redeem", &id, "--registry", registry.to_str().unwrap(), "--json"];
    let run = |base: &str| {
        let output = whole.home.run(base, &redeem);
        (output.status.code(), document(&output)["error"]["code"].clone())
    };
    assert_eq!(run(&server.base), (Some(1), json!("not_paid")));
    // It is unknown whether another wallet has paid it.
    assert_eq!(run(NOWHERE), (Some(4), json!("evidence_needed")));
    *whole.service.step.lock().unwrap() = Step::SourceFunded;
    assert_eq!(run(&server.base), (Some(4), json!("evidence_needed")));
    assert!(server.seen().iter().all(|seen| seen.method != "PATCH"), "{:?}", server.lines());
}

#[test]
fn all_refunds_are_one_command() {
    let mut whole = Whole::new("ended-refunds");
    let id = whole.service.fixture.order_id().to_owned();
    let first = Service { moves: false, ..whole.service.clone() }.start();
    whole.create(&first.base);
    // Its payment is of last spring.
    let old = Fixture::with_secret(&whole.secret);
    for member in ["created_at", "deadline"] {
        whole.service.fixture.order[member] = old.order[member].clone();
    }
    *whole.service.step.lock().unwrap() = Step::SourceFunded;
    let server = Service { moves: false, ..whole.service.clone() }.start();
    let store = store(&whole.home);
    journal(&store, &id, UnixTime::from_secs(1), vec![Event::OnChain { what: Delivery::Funding }]);
    // One that was paid a moment ago, and one that was not paid.
    let keep = |byte: &str, is_paid: bool| {
        let secret = Secret::generate().unwrap();
        let (fixture, id) = (Fixture::with_secret(&secret), byte.repeat(32));
        let (mut response, mut record) = (fixture.response.clone(), fixture.order.clone());
        response["result"]["order_id"] = json!(id);
        record["order_id"] = json!(id);
        let swap = CreatedOrder::new(fixture.create(), response.to_string()).unwrap();
        at_once(OrderStore::create(&store, &OrderState::new(swap, Some(secret)))).unwrap();
        let guard = at_once(store.lock(&OrderId::parse(&id).unwrap())).unwrap();
        let registry = Registry::from_json(fixture.registry.as_bytes()).unwrap();
        at_once(store.keep_pins(&guard, &SignedUnder { registry, policy: Policy::default() })).unwrap();
        at_once(store.keep_record(&guard, record.to_string().as_bytes())).unwrap();
        drop(guard);
        if is_paid {
            let transaction = BroadcastTransaction {
                chain: "base".to_owned(),
                role: Role::Initiate,
                id: "0xabc".to_owned(),
                payload: "0x02".to_owned(),
                spends: Vec::new(),
            };
            let signed = Event::Signed { purpose: Purpose::Funding, transactions: vec![transaction], gasless: None };
            let events = vec![signed, Event::sending(Delivery::Funding), Event::Sent { what: Delivery::Funding }];
            journal(&store, &id, std::time::SystemTime::now().into(), events);
        }
        id
    };
    let (early, unpaid) = (keep("e1", true), keep("e2", false));
    // Nobody can agree.
    let alone = whole.home.run(&server.base, &["refund", "--all"]);
    assert!(alone.status.code() == Some(2) && said(&alone).contains("--yes"), "{}", said(&alone));
    assert!(server.seen().is_empty());
    let output = whole.home.run(&server.base, &["refund", "--all", "--yes", "--json"]);
    let report = document(&output);
    assert_eq!((output.status.code(), &report["ok"]), (Some(0), &json!(true)), "{}", said(&output));
    let of = |id: &str| report["orders"].as_array().unwrap().iter().find(|order| order["order_id"] == id.to_lowercase()).unwrap().clone();
    assert_eq!(of(&id)["refunded"], true);
    assert_eq!((&of(&early)["refunded"], &of(&early)["error"]["code"]), (&json!(false), &json!("not_refundable")), "{report}");
    assert!(of(&early)["possible_from"].as_u64().unwrap() > u64::try_from(chrono::Utc::now().timestamp()).unwrap(), "{report}");
    assert_eq!(of(&unpaid)["error"]["code"], "not_paid");
    let acts: Vec<_> = server.seen().into_iter().filter(|seen| seen.method != "GET").map(|seen| seen.line()).collect();
    assert_eq!(acts, [format!("PATCH /v2/orders/{id}?action=refund")]);
    let people = whole.home.run(&server.base, &["refund", "--all", "--yes"]);
    let told = said(&people);
    for words in [
        &format!("refunded  {}: accepted", &id[..8].to_lowercase()),
        "e1e1e1e1: the timelock",
        "possible from about 20",
        "e2e2e2e2: nothing was paid",
    ] {
        assert!(told.contains(words), "{words}: {told}");
    }
    // A failure is not hidden by the others.
    let down = whole.home.run(NOWHERE, &["refund", "--all", "--yes", "--json"]);
    assert_eq!((down.status.code(), &document(&down)["ok"]), (Some(3), &json!(false)), "{}", said(&down));
}

#[test]
fn a_slow_answer_and_an_empty_one_are_told() {
    let home = Home::new("ended-slow");
    let server = Server::start(|seen| {
        if seen.target.contains("chains") {
            std::thread::sleep(std::time::Duration::from_secs(6));
        }
        Reply::json(301, "")
    });
    for json in [&[][..], &["--json"]] {
        let slow = home.run(&server.base, &[&["chains"], json].concat());
        assert_eq!(said(&slow).matches("still waiting").count(), 1, "{}", said(&slow));
    }
    let quick = said(&home.run(&server.base, &["assets"]));
    assert!(quick.contains("HTTP status 301, a redirect, which is not followed: check the base URL"), "{quick}");
    assert!(!quick.contains("still waiting") && !quick.trim_end().ends_with(':'), "{quick}");
}

#[test]
fn help_is_in_groups_and_as_wide_as_the_terminal() {
    let home = Home::new("ended-help");
    let help =
        |command: &[&str], columns: &str| out(&home.run_with(NOWHERE, &[command, &["--help"]].concat(), &[("COLUMNS", columns)], ""));
    let all = help(&[], "");
    let names: Vec<_> =
        all.lines().skip_while(|line| *line != "Commands:").skip(1).map_while(|line| line.trim_start().split(' ').next()).collect();
    let names: Vec<_> =
        names.into_iter().take_while(|name| !name.is_empty()).filter(|name| name.starts_with(|c: char| c.is_ascii_lowercase())).collect();
    assert!(names.len() > 20, "{all}");
    for command in
        names.iter().map(|name| vec![*name]).chain([vec![], vec!["order", "create"], vec!["registry", "pin"], vec!["node", "check"]])
    {
        let wide = help(&command, "");
        for line in wide.lines() {
            assert!(line.chars().count() <= 100 || line.trim_start().starts_with('{'), "{command:?}: {line}");
        }
        // A line of an example that goes on says so.
        let narrow = help(&command, "60");
        let prose = narrow.split("Examples:").next().unwrap();
        assert!(prose.lines().skip_while(|line| !line.is_empty()).all(|line| line.chars().count() <= 60), "{command:?}: {narrow}");
    }
    for command in ["redeem", "refund", "recover", "instant-refund"] {
        let help = help(&[command], "");
        let groups = ["The order:", "Your own transaction:", "Trust:"];
        let places: Vec<_> =
            groups.iter().map(|group| help.find(&format!("\n{group}\n")).unwrap_or_else(|| panic!("{group}: {help}"))).collect();
        assert!(places.is_sorted() && help.contains("\nExamples:\n"), "{help}");
        assert!(help.contains(&format!("  countersign {command} ")), "{help}");
    }
}

/// The service takes a chain off its list while an order is under way. Its endpoints are those of a chain of the order's own pins.
#[test]
fn the_chains_of_a_paid_order_are_connected_whatever_is_listed_today() {
    let fixture = Fixture::load("evm-record-evm-v2");
    let (home, id) = (Home::new("ended-relisted"), fixture.order_id().to_owned());
    home.keep(&id, &fixture.request, &fixture.response, None);
    let pins = SignedUnder { registry: Registry::from_json(fixture.registry.as_bytes()).unwrap(), policy: Policy::default() };
    let store = store(&home);
    let guard = at_once(store.lock(&OrderId::parse(&id).unwrap())).unwrap();
    at_once(store.keep_pins(&guard, &pins)).unwrap();
    at_once(store.keep_record(&guard, fixture.order.to_string().as_bytes())).unwrap();
    drop(guard);
    journal(&store, &id, UnixTime::from_secs(1), vec![Event::OnChain { what: Delivery::Funding }]);
    let mut list: Value = serde_json::from_str(&fixture.registry).unwrap();
    for member in ["chains", "assets", "solvers"] {
        list[member].as_array_mut().unwrap().retain(|entry| entry["chain"] != "arbitrum");
    }
    let list = home.file("registry.json", &list.to_string());
    for command in [&["swap", "--resume", &id][..], &["redeem", &id]] {
        let told = said(&home.run(NOWHERE, &[command, &["--registry", &list, "--node", "arbitrum=http://127.0.0.1:9"]].concat()));
        assert!(!told.contains("not a chain of the registry") && !told.contains("not connected to the destination"), "{told}");
    }
}

#[test]
fn text_and_json_have_the_same_labels_and_green_is_for_what_was_checked() {
    let home = Home::new("ended-labels");
    for family in ["evm", "bitcoin", "solana"] {
        let fixture = Fixture::all(family).remove(0);
        let registry = home.file("registry.json", &fixture.registry);
        let (request, response) = (home.file("q.json", &fixture.request.to_string()), home.file("r.json", &fixture.response.to_string()));
        let record = home.file("o.json", &fixture.order.to_string());
        let explain = ["explain", "--registry", &registry, "--request", &request, "--response", &response];
        let checked = [&explain[..], &["--order", &record]].concat();
        let shown = document(&home.run(NOWHERE, &[&checked[..], &["--json"]].concat()));
        let text = out(&home.run(NOWHERE, &checked));
        for line in shown["summary"].as_array().unwrap() {
            let (label, words) = line.as_str().unwrap().split_once(": ").unwrap();
            assert!(text.contains(&format!("{label}  {words}")), "{label}: {text}");
        }
        assert!(text.contains("past  the deadline of the order has passed"), "{text}");
        let colour = |arguments: &[&str]| {
            let text = out(&home.run_with(NOWHERE, arguments, &[("CLICOLOR_FORCE", "1")], ""));
            text.split('L').next().unwrap().to_owned()
        };
        assert!(colour(&checked).contains("32m"), "{:?}", colour(&checked));
        assert!(colour(&explain).contains("33m"), "{:?}", colour(&explain));
    }
}
