//! The words and the members of events are those that the bindings declare.
#![allow(clippy::arithmetic_side_effects, reason = "a test ends by panicking")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use countersign::{Code, Refusal, evidence::Hold};
use countersign_client::driver::{Outcome, Status, Trouble, WaitingFor};
use countersign_json::objects::Failure;
use serde_json::json;

use super::*;

type Words = BTreeSet<String>;

fn words(set: &str) -> Words {
    countersign_json::objects::words::of(set).into_iter().map(str::to_owned).collect()
}

fn read(name: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name)).unwrap()
}

fn amount() -> Value {
    (&countersign::report::TypedValue::from("5")).into()
}

/// Returns the event after this one, so that a new one does not compile until it is listed.
fn next(last: Option<&Event>) -> Option<Event> {
    let (call, order_id, message) = (1, "ab".repeat(32), "words".to_owned());
    Some(match last {
        None => Event::Quoted { call, solver_id: "one".to_owned(), pay: amount(), receive: amount() },
        Some(Event::Quoted { .. }) => Event::PhraseCreated,
        Some(Event::PhraseCreated) => Event::Contract { order_id, asset: "base:usdc".to_owned(), is_new: true, message },
        Some(Event::Contract { .. }) => Event::Warning { order_id, code: "single_provider", message },
        Some(Event::Warning { .. }) => Event::Created { call, order_id },
        Some(Event::Created { .. }) => Event::Deposit { order_id, message, summary: Vec::new() },
        Some(Event::Deposit { .. }) => {
            let mut progress = Progress::new(Status::Unsigned);
            progress.trouble = Some(Trouble::NotSubmitted);
            Event::Status { order_id, message, progress: Box::new(progress) }
        }
        Some(Event::Status { .. }) => Event::Alert { order_id, alert: "retrying", message },
        Some(Event::Alert { .. }) => Event::Stopped { call, order_id, reason: "lost".to_owned(), message, error: None },
        Some(Event::Stopped { .. }) => Event::Listed { call, orders: Vec::new() },
        Some(Event::Listed { .. }) => Event::Failed { call, error: Failure::usage("", "this") },
        Some(Event::Failed { .. }) => return None,
    })
}

fn events() -> Vec<Event> {
    let mut all = Vec::new();
    while let Some(one) = next(all.last()) {
        all.push(one);
    }
    all
}

fn camel(name: &str) -> String {
    let mut parts = name.split('_');
    let first = parts.next().unwrap().to_owned();
    parts.fold(first, |name, part| name + &part[..1].to_uppercase() + &part[1..])
}

/// Returns the names of the members of an object, as they are in JavaScript.
fn members(value: &impl Serialize) -> Words {
    serde_json::to_value(value).unwrap().as_object().unwrap().keys().map(|name| camel(name)).collect()
}

/// Returns the members that a piece of TypeScript declares on its outermost level.
fn declared(text: &str) -> Words {
    let mut found = Words::new();
    let mut depth = 0_i32;
    for part in text.split("readonly ") {
        // The name is behind `readonly`, and what the part opens or closes is behind the name.
        let name: String = part.chars().take_while(|letter| letter.is_ascii_alphanumeric()).collect();
        if depth == 1 && part[name.len()..].trim_start_matches('?').starts_with(':') {
            found.insert(name);
        }
        depth += part.chars().map(|letter| i32::from(letter == '{') - i32::from(letter == '}')).sum::<i32>();
    }
    found
}

/// Returns the pieces of TypeScript that declare an alternative with this word, each from its brace to the end of the alternative.
fn alternative<'t>(text: &'t str, member: &str, word: &str) -> &'t str {
    let place = text.find(&format!("readonly {member}: \"{word}\"")).unwrap_or_else(|| panic!("no {member} {word} in TypeScript"));
    let start = text[..place].rfind('{').unwrap();
    let mut depth = 0_i32;
    let end = text[start..].char_indices().find(|(_, letter)| {
        depth += i32::from(*letter == '{') - i32::from(*letter == '}');
        depth == 0
    });
    &text[start..=start + end.unwrap().0]
}

#[test]
fn the_events_have_the_members_that_typescript_declares() {
    let (types, loops) = (read("bindings/js/lib/swap-types.ts"), read("bindings/js/lib/swap.ts"));
    let mut names = Words::new();
    for event in events() {
        let mut members = members(&event);
        let name = serde_json::to_value(&event).unwrap()["event"].as_str().unwrap().to_owned();
        // `call` is for the loop of the bindings. `status` is that of the alternatives of `SwapStatus`.
        let place = if matches!(event, Event::Quoted { .. } | Event::Listed { .. } | Event::Failed { .. }) { &loops } else { &types };
        let mut expected = declared(alternative(place, "event", &name));
        match event {
            Event::Quoted { .. } => expected.extend(["solverId", "pay", "receive"].map(str::to_owned)),
            Event::Status { .. } => drop(expected.insert("status".to_owned())),
            Event::Created { .. } | Event::Stopped { .. } => drop(members.remove("call")),
            _ => {}
        }
        assert_eq!(members, expected, "{name}");
        names.insert(name);
    }
    assert_eq!(names, words("SwapEvent"));
    // Quotes and stored orders have types of their own.
    let interface = |name: &str| types.split(&format!("export interface {name} ")).nth(1).unwrap().split("\n}").next().unwrap().to_owned();
    assert_eq!(declared(&interface("Quote")), ["solverId", "pay", "receive"].map(str::to_owned).into());
    assert_eq!(declared(&interface("StoredSwap")), members(&unread()));
}

fn unread() -> StoredOrder {
    let (order_id, from, to) = (String::new(), String::new(), String::new());
    StoredOrder { order_id, from, to, may_be_paid: false, outcome: None, error: None }
}

#[test]
fn the_statuses_have_the_members_that_typescript_declares() {
    let types = read("bindings/js/lib/swap-types.ts");
    let refusal = Refusal::new(Code::RecordChanged, "/order");
    for status in [
        Status::NeedsOwner { what: OwnerTask::Redeem },
        Status::Waiting { on: WaitingFor::Evidence(Hold::NotFunded) },
        Status::AwaitingRefund { reason: Hold::Refunded },
        Status::Refused { refusal },
        Status::Ended { outcome: Outcome::Lost },
    ] {
        let name = serde_json::to_value(&status).unwrap()["status"].as_str().unwrap().to_owned();
        assert_eq!(members(&status), declared(alternative(&types, "status", &name)), "{name}");
    }
    // The others have nothing else.
    for status in [Status::Unsigned, Status::Expired, Status::Paying, Status::Redeeming, Status::RedeemNow, Status::Refunding, Status::Lost]
    {
        assert_eq!(members(&status), ["status".to_owned()].into());
    }
}

#[test]
fn alerts_and_stops_have_the_words_of_their_lists() {
    let ends = [StatedEnd::Complete, StatedEnd::Refunded, StatedEnd::Expired, StatedEnd::Lost];
    let mut alerts = vec![Alert::Retrying, Alert::MaybePaid, Alert::RedeemNow];
    alerts.extend(ends.map(Alert::StatedOnly));
    let mut found: Words = alerts.into_iter().map(|alert| of_alert(alert, None).0.to_owned()).collect();
    found.insert("other".to_owned());
    assert_eq!(found, words("SwapAlert"));
    let refusal = || Refusal::new(Code::RecordChanged, "/order");
    let mut stops: Vec<_> = [Outcome::Complete, Outcome::Refunded, Outcome::Expired, Outcome::Lost].map(Stop::Ended).into();
    stops.extend(ends.map(Stop::Stated));
    stops.extend([
        Stop::NotSigned,
        Stop::Owner(OwnerTask::Secret),
        Stop::EvidenceNeeded,
        Stop::Unavailable(String::new()),
        Stop::Refused(refusal()),
        Stop::Failed(DriveError::Refused(refusal())),
    ]);
    let mut found: Words = stops.into_iter().map(|stop| of_stop(stop, OrderStage::BeforePaying).0).collect();
    let refunds = [
        RefundEnd::Refunding,
        RefundEnd::NotYet(String::new()),
        RefundEnd::NotAccepted,
        RefundEnd::Unavailable(String::new()),
        RefundEnd::NeedsOwner,
        RefundEnd::Refused(refusal()),
        RefundEnd::Ended(Outcome::Complete),
        RefundEnd::StatedLost,
        RefundEnd::Lost,
    ];
    found.extend(refunds.map(|end| of_refund(end).0));
    // What a later version adds.
    found.insert("other".to_owned());
    assert_eq!(found, words("SwapStop"));
}

/// Every code in the sources of what a machine is made of is in one of the lists, and the list of swaps has no other.
#[test]
fn every_code_of_a_whole_swap_is_listed() {
    let mut found: BTreeMap<String, &str> = BTreeMap::new();
    for file in ["client/src/error.rs", "client/src/quote.rs", "node/src/error.rs", "transport/src/error.rs"] {
        let text = read(&format!("crates/{file}"));
        let names = text.lines().filter_map(|line| line.trim().strip_suffix("\",")?.split_once(" => \""));
        found.extend(names.map(|(_, name)| (name.to_owned(), file)));
    }
    for file in [
        "swap/src/event.rs",
        "swap/src/options.rs",
        "swap/src/owner.rs",
        "swap/src/swaps.rs",
        "swap/src/swaps/inner.rs",
        "swap/src/wish.rs",
    ] {
        let text = read(&format!("crates/{file}"));
        for call in ["Failure::new(\"", "OwnerCode::new(\"", "CONTRACT_CHANGED: &str = \""] {
            found.extend(text.split(call).skip(1).map(|rest| (rest.split('"').next().unwrap().to_owned(), file)));
        }
    }
    let listed = words("SwapCode");
    let others: Words = ["Code", "HoldCode", "FaultCode", "CallCode"].into_iter().flat_map(words).collect();
    for (code, file) in &found {
        assert!(listed.contains(code) || others.contains(code), "{code} of {file} is not in crates/json/src/objects/words.rs");
    }
    let unknown: Vec<_> = listed.iter().filter(|code| !found.contains_key(*code)).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
    assert!(found.len() > 20, "{found:?}");
    assert_eq!(json!(of_store(&StoreError::Busy).code), "store_failed");
}

/// The service's list is nobody's input: an application that shows "check your input" for `caller` must not show it for this.
#[test]
fn a_list_of_a_wrong_type_blames_the_service() {
    let page = r#"{"status":"Ok","result":{"data":[{"created_at":7}],"page":1,"total_pages":1,"total_items":1,"per_page":1}}"#;
    let response = countersign_client::Response::new(200, page);
    let error = countersign_client::response::read::<countersign::wire::Page<countersign::OrderRecord>>(response).unwrap_err();
    let failure = of_client(error);
    assert_eq!((failure.blame, failure.at.starts_with("/result/data/0")), ("service", true), "{failure}");
    assert!(failure.message.ends_with("do not sign; report the service"), "{failure}");
    // The options are the caller's.
    let own = of_client(Error::Input(Refusal::new(Code::WrongType, "/options/app_id")));
    assert_eq!((own.blame, own.message.contains("report the service")), (CALLER, false), "{own}");
}
