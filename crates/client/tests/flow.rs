//! The order lifecycle without a driver: every family, every step in a separate process, and the refusals before anything is signed.
use crate::support;
use crate::traces::Log;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use countersign_client::countersign::json::{self, Cursor};
use countersign_client::countersign::{
    Code, CreateOrder, OrderRecord, Policy, Proposal, Refusal, Registry, Unsigned, Verified, verify_record,
};
use countersign_client::driver::OrderState;
use countersign_client::{
    Action, Api, AppId, Client, CreatedOrder, Error, Flow, Http, Pace, Progress, Request, Response, Retry, Secret, State, Stream,
    StreamExt, Timeouts, Transport, TransportErrorKind, VerifiedSwap, track,
};
use countersign_json::Artefacts;
use serde_json::{Value, json};
use support::memory::{Memory, ok};
use support::{Fixture, Reply, Server, Service, Step};

fn create(value: &Value) -> CreateOrder {
    CreateOrder::from_json(value.to_string().as_bytes()).unwrap()
}

/// The stored swap of a fixture's order.
fn stored(fixture: &Fixture) -> CreatedOrder {
    CreatedOrder::new(fixture.create(), fixture.response.to_string()).unwrap()
}

fn http(server: &Server) -> Client<Http> {
    let api = Api::new(&server.base, Some(AppId::new("private-id").unwrap())).unwrap();
    Client::new(api, Http::new(Timeouts::default()).unwrap()).with_retry(Retry { attempts: 1, ..Retry::default() })
}

fn flow<T: Transport>(client: Client<T>, fixture: &Fixture) -> Flow<T> {
    Flow::new(client, pinned(fixture), Policy::default())
}

/// Follows an order, whose every record is verified.
fn watch<T: Transport>(flow: &Flow<T>, swap: &CreatedOrder, pace: Pace) -> impl Stream<Item = Result<Progress, Error>> {
    let (registry, policy) = (flow.registry(), flow.policy());
    track(flow.client(), registry, swap.id().clone(), pace, move |answer| {
        let proposal = Proposal::new(swap.request(), swap.response()).with_record(&answer.body);
        verify_record(proposal, registry, policy).map(drop).map_err(Error::Refused)
    })
}

fn pinned(fixture: &Fixture) -> Registry {
    Registry::from_json(fixture.registry.as_bytes()).unwrap()
}

fn key(fixture: &Fixture) -> Option<&str> {
    fixture.wallet["secret_key"].as_str()
}

/// Prepares with the fixture's wallet.
fn prepare(verified: &Verified, fixture: &Fixture) -> Unsigned {
    let text = fixture.wallet.to_string();
    let wallet = json::parse(text.as_bytes()).unwrap();
    countersign_json::prepare(verified, Cursor::root(&wallet, "/wallet")).unwrap()
}

/// Prepares with the fixture's wallet, and signs.
fn sign(verified: &Verified, fixture: &Fixture) -> Unsigned {
    let mut unsigned = prepare(verified, fixture);
    countersign_json::sign(&mut unsigned, key(fixture).unwrap()).unwrap();
    unsigned
}

/// Every kind of source, over the wire: create, verify, sign, submit or broadcast, and follow to the end. Each step starts like a
/// separate process, with nothing but what the previous step stored.
#[tokio::test]
async fn every_kind_of_source_reaches_its_end_in_separate_steps() {
    let mut kinds = BTreeSet::new();
    for (kind, fixture) in Fixture::of_each_source() {
        kinds.insert(kind);
        let server = Service::new(fixture.clone()).start();
        let saved = {
            let swap = flow(http(&server), &fixture).create(fixture.create()).await.unwrap();
            serde_json::to_vec(&swap).unwrap()
        };
        let signed = {
            let swap = CreatedOrder::from_json(&saved).unwrap();
            assert_eq!(swap.id().as_str(), fixture.order_id());
            let verified = flow(http(&server), &fixture).verify(&swap).await.unwrap_or_else(|error| panic!("{}: {error:?}", fixture.id));
            let VerifiedSwap { order: verified, record, .. } = verified;
            assert_eq!(record, OrderRecord::from_json(fixture.order.to_string().as_bytes()).unwrap());
            if key(&fixture).is_none() {
                // A Bitcoin deposit without coins is an address and a URI: nothing is signed here.
                let unsigned = prepare(&verified, &fixture);
                assert_eq!(serde_json::to_value(Artefacts(&unsigned)).unwrap()["deposit"]["address"], fixture.expect["deposit"]["address"]);
                None
            } else {
                Some(sign(&verified, &fixture))
            }
        };
        let before = server.seen().len();
        if let Some(signed) = signed {
            // The artefacts are those of the reference libraries.
            let artefacts = serde_json::to_value(Artefacts(&signed)).unwrap();
            for (name, expected) in fixture.expect.as_object().unwrap() {
                assert_eq!(&artefacts[name], expected, "{}: {name}", fixture.id);
            }
            let swap = CreatedOrder::from_json(&saved).unwrap();
            let submission = signed.finish().unwrap().gasless();
            match fixture.gasless() {
                Some(signature) => {
                    let submitted = http(&server).act(swap.id(), &Action::Initiate(&submission.unwrap())).await;
                    assert_eq!(submitted.unwrap().value.as_deref(), Some("0xtransaction"));
                    let patch = server.seen().pop().unwrap();
                    assert_eq!(patch.line(), format!("PATCH /v2/orders/{}?action=initiate", fixture.order_id()));
                    assert_eq!(patch.text(), format!(r#"{{"signature":"{signature}"}}"#));
                }
                None => assert!(submission.is_none() && server.seen().len() == before, "{}", fixture.id),
            }
        }
        let service = Service { step: Arc::new(Mutex::new(Step::SourceSeen)), ..Service::new(fixture.clone()) };
        let server = service.start();
        let (flow, swap) = (flow(http(&server), &fixture), CreatedOrder::from_json(&saved).unwrap());
        let pace = Pace { quickest: Duration::from_millis(1), slowest: Duration::from_millis(2) };
        let mut states = Vec::new();
        let mut changes = std::pin::pin!(watch(&flow, &swap, pace));
        while let Some(progress) = changes.next().await {
            let progress = progress.unwrap_or_else(|error| panic!("{}: {error:?}", fixture.id));
            states.push(progress.status.complete);
            if states.len() == 3 {
                *service.step.lock().unwrap() = Step::Redeemed;
            }
        }
        assert_eq!(states, [false, false, false, true], "{}", fixture.id);
    }
    assert_eq!(kinds.len(), 7, "{kinds:?}");
}

#[tokio::test]
async fn the_request_goes_out_as_it_was_made() {
    let fixture = Fixture::load("evm-record-evm-v2");
    let server = Service::new(fixture.clone()).start();
    flow(http(&server), &fixture).create(fixture.create()).await.unwrap();
    let seen = &server.seen()[0];
    assert_eq!(seen.line(), "POST /v2/orders");
    assert_eq!(seen.headers["content-type"], "application/json");
    assert_eq!(seen.headers["service-app-id"], "private-id");
    let request = &fixture.request;
    let side = |side: &Value| format!(r#"{{"asset":{},"owner":{},"amount":{}}}"#, side["asset"], side["owner"], side["amount"]);
    let hash = request["secret_hash"].as_str().unwrap().trim_start_matches("0x");
    let body =
        format!(r#"{{"source":{},"destination":{},"secret_hash":"{hash}"}}"#, side(&request["source"]), side(&request["destination"]));
    assert_eq!(seen.text(), body);
}

/// Every reject case that changes the response or the record of an order with a record. The flow ends with the case's code and location,
/// and the service sees only the creation of the order and the request for its record.
#[tokio::test]
async fn a_tampered_answer_or_record_ends_the_flow_before_anything_leaves() {
    let mut cases = 0;
    for family in ["evm", "tron", "starknet", "solana", "sui", "bitcoin"] {
        let Ok(text) = std::fs::read_to_string(support::project().join(format!("fixtures/reject/{family}.json"))) else { continue };
        let bases = Fixture::all(family);
        let reject: Value = serde_json::from_str(&text).unwrap();
        for case in reject["cases"].as_array().unwrap() {
            let (Some(base), Some(set), Some(code)) =
                (bases.iter().find(|base| case["base"] == json!(base.id)), case["set"].as_object(), case["code"].as_str())
            else {
                continue;
            };
            let theirs = set.keys().all(|at| at.starts_with("/response/result/") || at.starts_with("/order/"));
            // serde_json turns such numbers into floats, which would be a different case.
            let mangled = set.values().any(Value::is_f64);
            // The client refuses the id of another order before the record is verified.
            if !theirs
                || mangled
                || case.get("policy").is_some()
                || case.get("registry").is_some()
                || set.keys().any(|at| at.ends_with("order_id"))
            {
                continue;
            }
            let mut documents = json!({"response": base.response, "order": base.order});
            let changed = set.iter().all(|(at, value)| {
                let Some((parent, member)) = at.rsplit_once('/') else { return false };
                match documents.pointer_mut(parent) {
                    Some(Value::Object(members)) => {
                        members.insert(member.to_owned(), value.clone());
                        true
                    }
                    Some(Value::Array(items)) => {
                        member.parse::<usize>().ok().and_then(|index| items.get_mut(index)).map(|item| *item = value.clone()).is_some()
                    }
                    _ => false,
                }
            });
            if !changed {
                continue;
            }
            let mut fixture = base.clone();
            (fixture.response, fixture.order) = (documents["response"].clone(), documents["order"].clone());
            let asked = Mutex::new(Vec::new());
            let client = Memory::client(base.created(), |request: &Request| {
                asked.lock().unwrap().push(request.method.name());
                serve(&fixture, Step::Created, request)
            });
            let flow = flow(client, base);
            let swap = flow.create(base.create()).await.unwrap_or_else(|error| panic!("{}: {error:?}", case["id"]));
            match flow.verify(&swap).await {
                Err(Error::Refused(refusal)) => {
                    // The service's record is in its envelope; the case's record is bare.
                    let at = refusal.location().replace("/order/result/", "/order/");
                    assert_eq!((refusal.code().name(), at.as_str()), (code, case["at"].as_str().unwrap()), "{}", case["id"]);
                }
                // A record of another shape is refused before it is verified.
                Err(Error::Shape(refusal)) => assert_eq!(refusal.code().name(), code, "{}", case["id"]),
                other => panic!("{}: {other:?}", case["id"]),
            }
            assert_eq!(*asked.lock().unwrap(), ["POST", "GET"], "{}", case["id"]);
            cases += 1;
        }
    }
    assert!(cases >= 60, "only {cases} cases");
}

fn serve(fixture: &Fixture, step: Step, request: &Request) -> Result<Response, TransportErrorKind> {
    match request.method.name() {
        "POST" => support::memory::whole(200, &fixture.response.to_string()),
        "PATCH" => ok(&json!("0xtransaction")),
        _ => ok(&fixture.at(step)),
    }
}

/// Terms that the record changes after the order was signed, one at a time.
#[tokio::test]
async fn a_record_with_other_terms_is_refused() {
    let (fixture, stranger) = (Fixture::with_secret(&Secret::generate().unwrap()), Secret::generate().unwrap());
    for (member, value, code) in [
        ("amount", json!("1"), "record_pays_less"),
        ("timelock", json!(1), "record_swap_id"),
        ("redeemer", fixture.order["destination_swap"]["initiator"].clone(), "record_pays_elsewhere"),
        ("secret_hash", json!(stranger.hash().to_string()), "record_mismatch"),
        ("secret", json!(*stranger.to_hex()), "secret_wrong"),
    ] {
        let mut record = fixture.at(Step::DestinationFunded);
        record["destination_swap"][member] = value;
        let client = Memory::client(fixture.created() + 600, |_: &Request| ok(&record));
        let error = flow(client, &fixture).follow(&stored(&fixture)).await.unwrap_err();
        assert_eq!(error.code().name(), code, "{member}");
    }
}

#[tokio::test]
async fn a_record_that_changes_its_story_ends_the_watch() {
    let fixture = Fixture::load("evm-record-evm-v2");
    let asked = Mutex::new(0);
    let client = Memory::client(fixture.created(), |_: &Request| {
        let mut count = asked.lock().unwrap();
        *count += 1;
        let mut order = fixture.at(if *count == 1 { Step::SourceFunded } else { Step::DestinationFunded });
        if *count > 1 {
            order["destination_swap"]["amount"] = json!("1");
        }
        ok(&order)
    });
    let (flow, swap) = (flow(client, &fixture), stored(&fixture));
    let items: Vec<_> = watch(&flow, &swap, Pace::default())
        .map(|item| item.map(|item| item.status.state).map_err(|error| error.code().name()))
        .collect()
        .await;
    assert_eq!(items, [Ok(State::Initiated), Err("record_pays_less")]);
}

#[tokio::test]
async fn a_funded_order_is_not_signed_again() {
    let fixture = Fixture::load("evm-record-evm-v2");
    let server = { Service { step: Arc::new(Mutex::new(Step::SourceFunded)), ..Service::new(fixture.clone()) } }.start();
    let error = flow(http(&server), &fixture).verify(&stored(&fixture)).await.unwrap_err();
    assert_eq!(error.code().name(), "record_funded");
}

#[tokio::test]
async fn assets_that_are_not_pinned_are_not_even_asked_for() {
    let mut fixture = Fixture::load("evm-record-evm-v2");
    let server = Server::start(|_| Reply::Reset);
    fixture.request["destination"]["asset"] = json!("nowhere:x");
    let error = flow(http(&server), &fixture).create(fixture.create()).await.unwrap_err();
    assert!(error.code().name() == "unknown_asset" && server.seen().is_empty());
}

#[test]
fn what_is_kept_is_a_case_and_must_be_whole() {
    let fixture = Fixture::load("evm-record-evm-v2");
    // Byte for byte as received, including spaces and unknown members.
    let response = fixture.response.to_string().replacen('{', " {\n\"unknown\" :1e400 ,", 1);
    let swap = CreatedOrder::new(fixture.create(), response.clone()).unwrap();
    let text = serde_json::to_string(&swap).unwrap();
    let again: CreatedOrder = text.parse().unwrap();
    assert_eq!((again.id().as_str(), again.request()), (fixture.order_id(), &create(&fixture.request)));
    assert_eq!(again.response(), response.trim().as_bytes());
    let value = json::parse(text.as_bytes()).unwrap();
    let case = countersign_json::line::Case::from_value(&value).unwrap();
    assert!(case.verify(&pinned(&fixture), &Policy::default()).is_ok());

    let id = fixture.order_id();
    for text in ["", "{}", r#"{"id":"x","request":{},"response":{}}"#, &format!(r#"{{"id":"{id}","request":{{}}}}"#)] {
        assert!(matches!(CreatedOrder::from_json(text.as_bytes()), Err(Error::Input(_))), "{text}");
    }
    let inserted = text.replacen('{', &format!(r#"{{"id":"{id}","#), 1);
    assert_eq!(CreatedOrder::from_json(inserted.as_bytes()).unwrap_err().code().name(), "json_duplicate_key");
    for response in ["", "{}", "{}, \"wallet\": {}", r#"{"status":"Error","error":"no"}"#] {
        assert!(matches!(CreatedOrder::new(fixture.create(), response), Err(Error::Input(_))), "{response}");
    }
}

/// A stored swap with the id of another order is refused when it is parsed.
#[test]
fn what_is_kept_names_its_own_order() {
    let fixture = Fixture::load("evm-record-evm-v2");
    let (id, other) = (fixture.order_id(), "f".repeat(64));
    let text = serde_json::to_string(&stored(&fixture)).unwrap();
    let named = text.replacen(id, &other, 1);
    let Err(Error::Input(refusal)) = CreatedOrder::from_json(named.as_bytes()) else { panic!() };
    assert_eq!((refusal.code(), refusal.location()), (Code::RecordMismatch, "/id"));
}

/// Instant refund: nothing is sent if the signer refuses, and signatures are sent unchanged.
#[tokio::test]
async fn an_instant_refund_is_sent_only_as_it_was_signed() {
    let fixture = Fixture::load("evm-record-evm-v2");
    let hashes = json!(["11".repeat(32), format!("0x{}", "22".repeat(32))]);
    let asked = Mutex::new(Vec::new());
    let client = Memory::client(0, |request: &Request| {
        let body = request.body.as_ref().map(|body| String::from_utf8(body.to_vec()).unwrap()).unwrap_or_default();
        asked.lock().unwrap().push(format!("{} {body}", request.method.name()));
        if request.url.path().ends_with("/instant-refund-hash") { ok(&hashes) } else { serve(&fixture, Step::SourceFunded, request) }
    });
    let (flow, order) = (flow(client, &fixture), OrderState::new(stored(&fixture), None));
    let log = Log::default();
    let _listening = log.listen();
    let good = format!("{}83", "ab".repeat(64));
    for (signed, code) in [
        (Err(Refusal::new(Code::SecretHashMismatch, "/hashes/0")), "secret_hash_mismatch"),
        (Ok(vec![good.clone()]), "signature_count"),
        (Ok(vec![good.clone(), "ab".repeat(65)]), "signature_malformed"),
        (Ok(vec![good.clone(), good.clone()[2..].to_owned()]), "signature_malformed"),
    ] {
        let error = flow.instant_refund(&order, |_, _| signed).await.unwrap_err();
        assert_eq!(error.code().name(), code);
        let reported = format!("order{{order=\"{}\"}}: countersign::refused: refused code=\"{code}\"", order.swap.id());
        assert!(log.text().contains(&reported), "{reported} is missing:\n{}", log.text());
    }
    assert!(asked.lock().unwrap().iter().all(|line| line.starts_with("GET")));
    flow.instant_refund(&order, |_, hashes| {
        assert_eq!(hashes, [[0x11; 32], [0x22; 32]]);
        Ok(vec![good.clone(), good.clone()])
    })
    .await
    .unwrap();
    assert_eq!(asked.lock().unwrap().last().unwrap(), &format!(r#"PATCH {{"signatures":["{good}","{good}"]}}"#));
}

/// A limit for a misspelt name has no effect, so nothing is created or verified under it.
#[tokio::test]
async fn a_policy_with_a_misspelt_name_creates_and_verifies_nothing() {
    let fixture = Fixture::load("evm-record-evm-v2");
    let server = Service::new(fixture.clone()).start();
    let policy: Policy = r#"{"max_timelock_seconds":{"aribtrum":7200}}"#.parse().unwrap();
    let flow = Flow::new(http(&server), pinned(&fixture), policy);
    let is_refused = |error: &Error| matches!(error, Error::Input(refusal) if refusal.code() == Code::UnknownChain);
    assert!(flow.create(fixture.create()).await.is_err_and(|error| is_refused(&error)));
    assert!(flow.verify(&stored(&fixture)).await.is_err_and(|error| is_refused(&error)));
    assert!(server.seen().is_empty());
}
