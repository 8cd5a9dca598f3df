//! Tests how following an order ends: the service's statements, lost replies, and the resulting messages.

use countersign_client::countersign::chains::UnixTime;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use crate::home::{at_once, out, said};
use crate::support::{Reply, Seen, Server, Service, Step};
use crate::whole::Whole;
use countersign_client::countersign::{BroadcastTransaction, Policy, Proposal, Registry, Role, verify_record};
use countersign_client::driver::{Delivery, Entry, Event, OrderStore as _, Purpose, SecretRoute};
use countersign_client::{OrderId, Secret};
use countersign_testkit::chain::evm::Evm;
use serde_json::{Value, json};

/// A service whose record is set by the test.
fn stating(service: &Service) -> (Server, Arc<Mutex<Value>>) {
    let record = Arc::new(Mutex::new(service.fixture.at(Step::Created)));
    let (served, service) = (Arc::clone(&record), service.clone());
    let one = format!("/v2/orders/{}", service.fixture.order_id());
    let server = Server::start(move |seen| match (seen.method.as_str(), seen.path() == one) {
        ("GET", true) => Reply::ok(&served.lock().unwrap()),
        _ => service.answer(seen),
    });
    (server, record)
}

/// Writes events of long ago to the journal of the order.
fn journal(whole: &Whole, events: Vec<Event>) {
    journal_at(whole, 1, events);
}

fn journal_at(whole: &Whole, at: u64, events: Vec<Event>) {
    let store = countersign_store::Store::open(whole.home.path.join(".local/share/countersign")).unwrap();
    let id = OrderId::parse(whole.service.fixture.order_id()).unwrap();
    let guard = at_once(store.lock(&id)).unwrap();
    for event in events {
        at_once(store.append(&guard, &Entry { at: UnixTime::from_secs(at), event })).unwrap();
    }
}

fn watch<'a>(whole: &'a Whole, registry: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&["order", "watch", whole.service.fixture.order_id(), "--registry", registry, "--poll", "20"], more].concat()
}

fn registry(whole: &Whole) -> String {
    whole.home.path.join("registry.json").to_str().unwrap().to_owned()
}

/// The record of an order whose destination the service calls redeemed, although the secret never left.
fn with_redemption(whole: &Whole) -> Value {
    whole.service.fixture.at(Step::Redeemed)
}

/// The record of an order whose source the service calls refunded.
fn with_refund(whole: &Whole) -> Value {
    let mut record = whole.service.fixture.at(Step::SourceFunded);
    record["source_swap"]["refund_tx_hash"] = json!(format!("0x{}", "cc".repeat(32)));
    record["source_swap"]["refund_block_number"] = json!("1250");
    record
}

/// The record of a theft: the source is redeemed, and the destination refunded.
fn with_theft(whole: &Whole, secret: Option<&Secret>) -> Value {
    let mut record = whole.service.fixture.at(Step::DestinationFunded);
    let id = |byte: u8| format!("0x{}", format!("{byte:02x}").repeat(32));
    record["source_swap"]["redeem_tx_hash"] = json!(id(0xcc));
    record["source_swap"]["redeem_block_number"] = json!("1250");
    record["destination_swap"]["refund_tx_hash"] = json!(id(0xdd));
    record["destination_swap"]["refund_block_number"] = json!("1260");
    if let Some(secret) = secret {
        record["source_swap"]["secret"] = json!(*secret.to_hex());
    }
    record
}

/// The service acts on the payment, and its reply is lost: the program never denies the payment, and follows it.
#[test]
fn a_payment_whose_reply_is_lost_is_followed() {
    for acts in [true, false] {
        let whole = Whole::new(&format!("lost-reply-{acts}"));
        let (service, lost) = (whole.service.clone(), AtomicBool::new(false));
        let server = Server::start(move |seen| {
            if !seen.target.ends_with("action=initiate") || lost.swap(true, Ordering::SeqCst) {
                return service.answer(seen);
            }
            if acts {
                service.answer(seen);
            }
            Reply::Reset
        });
        let output = whole.run(&server.base, &whole.begin);
        let told = said(&output);
        assert!(output.status.success() && out(&output).contains("complete"), "{acts}: {told}");
        assert!(told.contains("may have been paid") && !told.contains("has sent nothing"), "{acts}: {told}");
    }
}

/// The service may not be reached at all after the payment. Only what is stored says that something may have been sent.
#[test]
fn a_program_that_may_have_paid_does_not_end_when_the_service_is_gone() {
    let whole = Whole::new("gone");
    let (service, paid) = (whole.service.clone(), AtomicBool::new(false));
    let server = Server::start(move |seen| {
        if paid.load(Ordering::SeqCst) || seen.target.ends_with("action=initiate") {
            paid.store(true, Ordering::SeqCst);
            return Reply::Reset;
        }
        service.answer(seen)
    });
    let arguments: Vec<_> = whole.begin.iter().map(String::as_str).collect();
    let (code, told) = whole.home.run_until(&server.base, &arguments, "may have been paid");
    assert!(code.is_none() && !told.contains("has sent nothing"), "{code:?} {told}");
}

#[test]
fn complete_without_the_secret_is_only_a_statement() {
    for trust in [&["--trust-the-service"][..], &[]] {
        let whole = Whole::new(&format!("stated-complete-{}", trust.len()));
        let (server, record) = stating(&whole.service);
        whole.create(&server.base);
        journal(&whole, vec![Event::OnChain { what: Delivery::Funding }]);
        *record.lock().unwrap() = with_redemption(&whole);
        let (registry, after) = (registry(&whole), Arc::clone(&record));
        let (secret, stated) = (whole.secret.to_hex().to_string(), with_redemption(&whole));
        // The right secret in the record is what a redemption leaves behind; before, the program goes on.
        let (code, told) = whole.home.watched(&server.base, &watch(&whole, &registry, trust), "look at your address", |child| {
            std::thread::sleep(std::time::Duration::from_millis(600));
            assert!(child.try_wait().unwrap().is_none(), "it is followed");
            let mut stated = stated;
            stated["destination_swap"]["secret"] = json!(secret);
            *after.lock().unwrap() = stated;
            if trust.is_empty() {
                std::thread::sleep(std::time::Duration::from_millis(600));
                assert!(child.try_wait().unwrap().is_none(), "without trust no statement ends it");
                child.kill().unwrap();
            }
        });
        assert_eq!(told.matches("and this program cannot check that").count(), 1, "said once: {told}");
        assert_eq!(code, if trust.is_empty() { None } else { Some(0) }, "{told}");
    }
}

#[test]
fn refunded_is_only_a_statement_unless_the_service_is_trusted() {
    let whole = Whole::new("stated-refund");
    let (server, record) = stating(&whole.service);
    whole.create(&server.base);
    journal(&whole, vec![Event::OnChain { what: Delivery::Funding }]);
    *record.lock().unwrap() = with_refund(&whole);
    let registry = registry(&whole);
    let (code, told) = whole.home.run_until(&server.base, &watch(&whole, &registry, &[]), "look at your address");
    assert!(code.is_none() && told.contains("states that the order is refunded"), "{code:?} {told}");
    let trusting = whole.home.run(&server.base, &watch(&whole, &registry, &["--trust-the-service"]));
    assert!(trusting.status.code() == Some(1) && said(&trusting).contains("look at your address"), "{}", said(&trusting));
    // The secret has left: the destination must be redeemed, whatever the service says about the source.
    journal(&whole, vec![Event::SecretLeaving { path: SecretRoute::Relayer }]);
    let (code, told) = whole.home.run_until(&server.base, &watch(&whole, &registry, &["--trust-the-service"]), "look at your address");
    assert!(code.is_none(), "{code:?} {told}");
}

/// A node of the destination chain, which shows the solver's payment from a number of blocks ago.
fn locked(whole: &Whole, elapsed: u64) -> Server {
    let registry = Registry::from_json(whole.service.fixture.registry.as_bytes()).unwrap();
    let (request, response) = (whole.service.fixture.create(), whole.service.fixture.response.to_string());
    let record = whole.service.fixture.at(Step::DestinationFunded).to_string();
    let proposal = Proposal::new(&request, response.as_bytes()).with_record(record.as_bytes());
    let terms = verify_record(proposal, &registry, &Policy::default()).unwrap().terms.destination;
    Server::start(move |seen: &Seen| {
        let mut chain = Evm::funded(&terms);
        (chain.chain_id, chain.time) = (42_161, u64::try_from(chrono::Utc::now().timestamp()).unwrap());
        // The contract counts blocks of the chain itself.
        (chain.latest, chain.l1_number) = (chain.initiated + elapsed, Some(1));
        let result = |call: &Value| {
            let result = chain.result(call["method"].as_str().unwrap(), &call["params"]);
            json!({"jsonrpc": "2.0", "id": call["id"], "result": result})
        };
        let reply = match serde_json::from_str(&seen.text()).unwrap() {
            Value::Array(calls) => Value::Array(calls.iter().map(result).collect()),
            call => result(&call),
        };
        Reply::json(200, reply.to_string())
    })
}

/// The chain shows that the solver's payment is still there: no statement about the other leg ends the order.
#[test]
fn a_stated_refund_does_not_end_an_order_whose_destination_is_locked() {
    let whole = Whole::new("stated-locked");
    let (server, record) = stating(&whole.service);
    whole.create(&server.base);
    journal(&whole, vec![Event::OnChain { what: Delivery::Funding }]);
    let mut refunded = whole.service.fixture.at(Step::DestinationFunded);
    refunded["source_swap"]["refund_tx_hash"] = json!(format!("0x{}", "cc".repeat(32)));
    refunded["source_swap"]["refund_block_number"] = json!("1250");
    *record.lock().unwrap() = refunded;
    let node = locked(&whole, 99);
    let (registry, endpoint) = (registry(&whole), format!("arbitrum={}", node.base));
    let more = ["--trust-the-service", "--node", &endpoint];
    let (code, told) = whole.home.run_until(&server.base, &watch(&whole, &registry, &more), "look at your address");
    assert!(code.is_none() && !node.seen().is_empty(), "{code:?} {told}");
}

#[test]
fn a_theft_ends_with_5_if_the_secret_is_really_out() {
    let whole = Whole::new("theft");
    let (server, record) = stating(&whole.service);
    whole.create(&server.base);
    journal(&whole, vec![Event::OnChain { what: Delivery::Funding }]);
    let registry = registry(&whole);
    // The secret is unknown here, so the service is not believed.
    *record.lock().unwrap() = with_theft(&whole, None);
    let (code, told) = whole.home.run_until(&server.base, &watch(&whole, &registry, &[]), "look at your address");
    assert!(code.is_none() && told.contains("states that the order is lost"), "{code:?} {told}");
    // It is never a reason not to refund.
    let refund = whole.home.run(&server.base, &["refund", whole.service.fixture.order_id(), "--registry", &registry]);
    assert!(refund.status.code() != Some(5), "{}", said(&refund));
    *record.lock().unwrap() = with_theft(&whole, Some(&whole.secret));
    let (code, told) = whole.home.run_until(&server.base, &watch(&whole, &registry, &["--json"]), "this is never said");
    assert_eq!(code, Some(5), "{told}");
    let shown: Value = serde_json::from_str(told.split("\n{\"event\"").next().unwrap()).unwrap();
    assert_eq!((&shown["ok"], &shown["error"]["code"]), (&json!(false), &json!("lost")));
    assert!(shown["error"]["message"].as_str().unwrap().contains("countersign refund --self"), "{shown}");
    let refund = whole.home.run(&server.base, &["refund", whole.service.fixture.order_id(), "--registry", &registry]);
    assert!(refund.status.code() != Some(5), "{}", said(&refund));
    // The same order on a machine that does not have it.
    let other = crate::home::Home::new("theft-other");
    let output = other.run(&server.base, &watch(&whole, &registry, &[]));
    assert_eq!(output.status.code(), Some(5), "{}", said(&output));
}

/// An order that another machine has: completion and loss need the right secret in the record there too.
#[test]
fn the_stated_end_of_an_order_that_is_not_stored_needs_the_secret() {
    for (name, code) in [("complete", 0), ("lost", 5)] {
        let whole = Whole::new(&format!("elsewhere-{name}"));
        let (server, record) = stating(&whole.service);
        let stated = |secret: Option<&Secret>| {
            let mut record = if name == "lost" { with_theft(&whole, None) } else { with_redemption(&whole) };
            record["destination_swap"]["secret"] = json!(secret.map(|secret| secret.to_hex().to_string()).unwrap_or_default());
            record
        };
        *record.lock().unwrap() = stated(None);
        let (registry, after) = (registry(&whole), Arc::clone(&record));
        let (wrong, right) = (stated(Some(&Secret::generate().unwrap())), stated(Some(&whole.secret)));
        let arguments = watch(&whole, &registry, &["--json"]);
        let (ended, told) = whole.home.watched(&server.base, &arguments, "look at your address", |child| {
            for next in [wrong, right] {
                std::thread::sleep(std::time::Duration::from_millis(600));
                assert!(child.try_wait().unwrap().is_none(), "{name}: it is followed");
                *after.lock().unwrap() = next;
            }
        });
        assert_eq!(ended, Some(code), "{name}: {told}");
        assert_eq!(
            told.matches(&format!("order is {name}, and this program cannot check that: look at your address. The order is followed"))
                .count(),
            1,
            "{told}"
        );
        assert!(told.contains("only what the service states"), "{name}: {told}");
        let document: Value = serde_json::from_str(told.split("\n{\"event\"").next().unwrap()).unwrap();
        assert_eq!(document["ok"], code == 0, "{document}");
        assert_eq!(document["error"]["code"], if code == 0 { Value::Null } else { json!("lost") }, "{document}");
    }
}

/// A refund ends the watching of an order that is not stored, but it is never worded as a fact.
#[test]
fn a_refund_of_an_order_that_is_not_stored_is_only_a_statement() {
    let whole = Whole::new("elsewhere-refunded");
    let (server, record) = stating(&whole.service);
    *record.lock().unwrap() = with_refund(&whole);
    let registry = registry(&whole);
    for json in [&[][..], &["--json"]] {
        let output = whole.home.run(&server.base, &watch(&whole, &registry, json));
        let told = said(&output);
        assert!(output.status.code() == Some(1) && told.contains("the service states that the order is refunded"), "{told}");
        assert!(told.contains("look at your address"), "{told}");
        assert!(json.is_empty() || serde_json::from_str::<Value>(&out(&output)).unwrap()["error"]["code"] == "swap_not_complete", "{told}");
    }
}

/// A transaction that the chain has rejected is dead, and is not offered as the way to save the funds.
#[test]
fn a_rejected_redemption_is_not_offered() {
    let rejected = "the chain rejected the transaction: one.example: nonce too low";
    for (error, offered) in [(rejected, false), ("one.example: timeout", true)] {
        let whole = Whole::new(&format!("dead-{offered}"));
        let (server, record) = stating(&whole.service);
        whole.create(&server.base);
        let transaction = |id: &str, payload: &str| BroadcastTransaction {
            chain: "arbitrum".to_owned(),
            role: Role::Redeem,
            id: id.to_owned(),
            payload: payload.to_owned(),
            spends: Vec::new(),
        };
        let signed = |one| Event::Signed { purpose: Purpose::Redemption, transactions: vec![one], gasless: None };
        journal(
            &whole,
            vec![
                Event::OnChain { what: Delivery::Funding },
                Event::SecretLeaving { path: SecretRoute::Own },
                signed(transaction("0x01", "0x02superseded")),
                signed(transaction("0x02", "0x02newest")),
                Event::sending(Delivery::Redemption),
                Event::NotSent { what: Delivery::Redemption, error: error.to_owned(), is_rejected: error.contains("rejected") },
            ],
        );
        *record.lock().unwrap() = whole.service.fixture.at(Step::DestinationFunded);
        let registry = registry(&whole);
        let output = whole.home.run(&server.base, &watch(&whole, &registry, &["--json"]));
        assert_eq!(output.status.code(), Some(4), "{}", said(&output));
        let shown: Value = serde_json::from_str(&out(&output)).unwrap();
        assert!(!said(&output).contains("0x02superseded"), "{shown}");
        assert_eq!(shown["transactions"][0]["payload"] == "0x02newest", offered, "{shown}");
        let message = shown["error"]["message"].as_str().unwrap();
        let is_told = message.contains(&format!("countersign redeem --self {}", whole.service.fixture.order_id()));
        assert_eq!(
            (&shown["ok"], is_told, message.contains(&format!("--registry {registry}"))),
            (&json!(false), !offered, !offered),
            "{shown}"
        );
    }
}

/// The alarm carries a redemption only if it was signed a moment ago: an older one may have left the mempools.
#[test]
fn the_alarm_carries_only_a_redemption_that_was_just_signed() {
    for (age, is_carried) in [(0, true), (3_600, false)] {
        let whole = Whole::new(&format!("alarm-{age}"));
        let (server, record) = stating(&whole.service);
        whole.create(&server.base);
        let transaction = BroadcastTransaction {
            chain: "arbitrum".to_owned(),
            role: Role::Redeem,
            id: "0x02".to_owned(),
            payload: "0x02evicted".to_owned(),
            spends: Vec::new(),
        };
        let at = u64::try_from(chrono::Utc::now().timestamp()).unwrap() - age;
        journal(&whole, vec![Event::OnChain { what: Delivery::Funding }]);
        journal_at(
            &whole,
            at,
            vec![
                Event::SecretLeaving { path: SecretRoute::Own },
                Event::Signed { purpose: Purpose::Redemption, transactions: vec![transaction], gasless: None },
                Event::sending(Delivery::Redemption),
                Event::Sent { what: Delivery::Redemption },
            ],
        );
        *record.lock().unwrap() = whole.service.fixture.at(Step::DestinationFunded);
        let registry = registry(&whole);
        // Half of the timelock has passed.
        let node = locked(&whole, 300);
        let endpoint = format!("arbitrum={}", node.base);
        let (_, told) = whole.home.run_until(&server.base, &watch(&whole, &registry, &["--node", &endpoint, "--json"]), "\"alarm\"");
        let alarm = told.lines().find(|line| line.contains("\"alarm\"")).unwrap();
        let alarm: Value = serde_json::from_str(alarm).unwrap();
        assert_eq!(alarm["transactions"][0]["payload"] == "0x02evicted", is_carried, "{alarm}");
        let command = alarm["command"].as_str().unwrap();
        assert!(command.contains("countersign redeem --self") && alarm["message"].as_str().unwrap().contains(command), "{alarm}");
    }
}
