//! The page of an accepted order shows every summary line and every byte. The page of a refused order marks the refused place and gives the
//! reason.
use std::collections::BTreeSet;

use crate::common;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use common::{FAMILIES, rejected, with_case};
use countersign::{Code, Family, Policy, json};
use countersign_testkit::{TestResult, fixtures_of, registry, set};
use countersign_view::hashes::hash_cards;
use countersign_view::{Documents, Page};
use maud::{Render, html};
use proptest::prelude::*;
use serde_json::json;

/// The most bytes that a page may have.
const MAX_PAGE: usize = 300_000;

/// Returns the text of a page without its tags, as HTML spells it.
fn text(html: &str) -> String {
    let body = html.split_once("<body>").unwrap().1;
    body.split('<').map(|part| part.split_once('>').map_or(part, |(_, text)| text)).collect()
}

fn escaped(text: &str) -> String {
    html! { (text) }.render().into_string()
}

#[test]
fn a_page_has_every_line_and_every_byte() -> TestResult {
    let (mut largest, mut kinds) = (0, BTreeSet::new());
    for family in FAMILIES {
        let mut ranges = 0;
        for case in fixtures_of(family)? {
            with_case(&case.input, |documents| {
                let page = Page::new(documents, case.registry, &Policy::default());
                let order = page.verdict().expect(&case.id);
                let html = page.to_html();
                largest = largest.max(html.len());
                let text = text(&html);
                assert!(text.contains("Verified: every byte accounted for") && !text.contains("refused"), "{}", case.id);
                // Green is only for an order whose destination was checked.
                let is_checked = order.warnings().list().iter().all(|warning| warning.code() != Code::NoOrderRecord);
                assert_eq!(text.contains("but the destination was not checked"), !is_checked, "{}", case.id);
                assert_eq!((html.contains("verdict good"), html.contains("verdict partly")), (is_checked, !is_checked), "{}", case.id);
                kinds.insert(is_checked);
                for line in order.summary().lines() {
                    assert!(text.contains(&escaped(&line.text)), "{}: {line}", case.id);
                }
                let root = case.json();
                for covered in order.coverage() {
                    let value = root.pointer(&covered.at).expect(&covered.at);
                    let Some((start, end)) = covered.bytes else { continue };
                    let payload = match value {
                        serde_json::Value::Array(items) => items.iter().map(|item| u8::try_from(item.as_u64().unwrap()).unwrap()).collect(),
                        other => {
                            let text = other.as_str().unwrap();
                            hex::decode(text).or_else(|_| STANDARD.decode(text)).unwrap()
                        }
                    };
                    assert!(text.contains(&hex::encode(&payload[start..end])), "{}: {}#{start}-{end}", case.id, covered.at);
                    ranges += 1;
                }
            });
        }
        assert!(ranges > 100 || family == Family::Starknet || family == Family::Bitcoin, "{family}: {ranges}");
    }
    assert!((30_000..MAX_PAGE).contains(&largest), "{largest}");
    assert_eq!(kinds.len(), 2);
    Ok(())
}

#[test]
fn a_refused_page_marks_the_place() {
    let mut marked = 0;
    for family in FAMILIES {
        for case in rejected(family) {
            let of_order = ["/request", "/response", "/order"].iter().any(|document| case.at.starts_with(document));
            if !of_order {
                continue;
            }
            with_case(&case.input, |documents| {
                let page = Page::new(documents, case.registry, &Policy::default());
                // A few cases are refused only when the wallet prepares them.
                let Err(refusal) = page.verdict() else { return };
                let html = page.to_html();
                assert!(html.len() < MAX_PAGE || case.input.len() > 100_000, "{}: {}", case.id, html.len());
                let text = text(&html);
                assert!(text.contains("Do not sign") && text.contains(refusal.code().name()), "{}", case.id);
                assert!(html.contains("<tr class=\"wrong"), "{}: {refusal}", case.id);
                marked += 1;
            });
        }
    }
    assert!(marked > 1_000, "{marked}");
}

#[test]
fn a_changed_spender_is_shown_beside_the_pinned_one() {
    let case = rejected(Family::Evm).into_iter().find(|case| case.id == "spender-htlc-of-another-asset").unwrap();
    with_case(&case.input, |documents| {
        let page = Page::new(documents, case.registry, &Policy::default());
        let refusal = page.verdict().unwrap_err();
        let [expected, actual] = [refusal.expected(), refusal.actual()].map(|value| value.unwrap().to_string().to_lowercase());
        let text = text(&page.to_html());
        let [expected, actual] = [expected, actual].map(|account| "0".repeat(24) + account.trim_start_matches("0x"));
        assert!(text.contains(&expected) && text.contains(&actual));
        // The summary is that of the order without the change.
        assert!(text.contains("What would have been accepted") && text.contains("pinned HTLC"), "{text}");
    })
    .unwrap();
}

#[test]
fn every_difference_is_listed() {
    let case = fixtures_of(Family::Evm).unwrap().into_iter().find(|case| case.id == "evm-token-approval-unlimited").unwrap();
    let mut input = case.json();
    set(&mut input, "/response/result/initiate_transaction/value", json!("0x1"));
    set(&mut input, "/response/result/initiate_transaction/gas_limit", json!("0xffffffff"));
    set(&mut input, "/response/result/typed_data/message/timelock", json!("0x1"));
    with_case(&input.to_string(), |documents| {
        let html = Page::new(documents, case.registry, &Policy::default()).to_html();
        assert_eq!(html.matches("<tr class=\"wrong").count(), 3);
        for code in ["value_mismatch", "gas limit too high", "payloads disagree"] {
            assert!(html.contains(code), "{code}");
        }
    })
    .unwrap();
}

/// Texts that would break out of a page, forge its display, or say something else than they show.
const HOSTILE: [&str; 8] = [
    "<script>alert(1)</script>",
    "\"><img src=x onerror=alert(1)>",
    "</style><style>*{display:none}</style>",
    "'\"`<!--",
    "&lt;b&gt;&#60;",
    "a\u{202e}b\u{2066}c\u{200b}d\u{feff}",
    "line\nbreak\u{0}\u{1b}[31m\u{2028}",
    "-->]]><svg onload=1>",
];

fn assert_harmless(html: &str, what: &str) {
    let lower = html.to_lowercase();
    for open in ["<script", "<img", "<!--", "<iframe", "<link", "<a ", "<svg onload", "<b>"] {
        let own = if open == "<a " { 1 } else { 0 };
        assert_eq!(lower.matches(open).count(), own, "{what}: {open}");
    }
    assert_eq!(lower.matches("<style").count(), 1, "{what}");
    let forges = |character: char| matches!(character, '\0'..='\u{9}' | '\u{b}'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}');
    assert!(!html.chars().any(forges), "{what}");
}

/// Returns the pointers of all strings, and of all objects, in a document.
fn places(value: &serde_json::Value, at: String, strings: &mut Vec<String>, objects: &mut Vec<String>) {
    match value {
        serde_json::Value::String(_) => strings.push(at),
        serde_json::Value::Array(items) => {
            items.iter().enumerate().for_each(|(index, item)| places(item, format!("{at}/{index}"), strings, objects));
        }
        serde_json::Value::Object(members) => {
            members
                .iter()
                .for_each(|(key, item)| places(item, format!("{at}/{}", key.replace('~', "~0").replace('/', "~1")), strings, objects));
            objects.push(at);
        }
        _ => {}
    }
}

#[test]
fn nothing_of_a_response_reaches_the_page_unescaped() {
    let mut pages = 0;
    for family in FAMILIES {
        let cases = fixtures_of(family).unwrap();
        let Some(case) = cases.iter().find(|case| case.json()["order"].is_object()).or_else(|| cases.first()) else { continue };
        let root = case.json();
        let (mut strings, mut objects) = (Vec::new(), Vec::new());
        for document in ["response", "order", "request"] {
            places(&root[document], format!("/{document}"), &mut strings, &mut objects);
        }
        let members = objects.iter().map(|at| (at, true)).chain(strings.iter().map(|at| (at, false)));
        for (index, (at, is_object)) in members.enumerate() {
            let hostile = HOSTILE[index % HOSTILE.len()];
            let mut input = root.clone();
            if is_object {
                input.pointer_mut(at).unwrap()[hostile] = json!(hostile);
            } else {
                set(&mut input, at, json!(hostile));
            }
            with_case(&input.to_string(), |documents| {
                let html = Page::new(documents, case.registry, &Policy::default()).to_html();
                assert_harmless(&html, at);
                pages += 1;
            });
        }
    }
    assert!(pages > 200, "{pages}");
}

/// A response that is large in every way in which it can be.
#[test]
fn a_huge_response_makes_a_short_page() {
    let long = "k".repeat(1_000_000);
    let many: Vec<_> = vec!["x"; 20_000];
    let members: serde_json::Map<_, _> = (0..50_000).map(|index| (format!("a{index}"), json!(["x"]))).collect();
    let payload = "00".repeat(4_000_000);
    for result in
        [json!({"x": {&long: many}}), json!(members), json!({"x": {&long: &payload}}), json!({"to": &payload}), json!({"to": &long})]
    {
        let mut input = fixtures_of(Family::Evm).unwrap().first().unwrap().json();
        set(&mut input, "/response/result", result);
        with_case(&input.to_string(), |documents| {
            let page = Page::new(documents, registry(), &Policy::default());
            assert!(page.verdict().is_err());
            let html = page.to_html();
            assert!(html.len() < 2 * MAX_PAGE && html.contains("Do not sign"), "{}", html.len());
        })
        .unwrap();
    }
}

#[test]
fn a_name_of_a_chain_cannot_extend_the_sentence() {
    let forged =
        countersign_testkit::registry_with(&[("/chains/0/name", json!("Ethereum at bc1qgood; refund after about 1 hour. Ignore"))]);
    let mut seen = 0;
    for case in fixtures_of(Family::Evm).unwrap() {
        with_case(&case.input, |documents| {
            let page = Page::new(documents, &forged, &Policy::default());
            let Ok(order) = page.verdict() else { return };
            let sentence = countersign_view::Sentence::new(&order.terms(), order.warnings()).to_string();
            assert!(!sentence.contains("bc1qgood"), "{sentence}");
            seen += usize::from(order.terms().source_chain_title.contains("bc1qgood"));
        });
    }
    assert!(seen > 0);
}

/// The service may add members at will, before what is signed.
#[test]
fn what_is_signed_comes_first_however_many_members_are_not() {
    let case = fixtures_of(Family::Evm).unwrap().into_iter().find(|case| case.id == "evm-token-approval-unlimited").unwrap();
    let mut input = case.json();
    for index in 0..600 {
        input["response"]["result"][format!("a{index:03}")] = json!("says the service");
        input["response"]["result"][format!("b{index:03}")] = json!({"c": ["says the service"]});
    }
    with_case(&input.to_string(), |documents| {
        let page = Page::new(documents, case.registry, &Policy::default());
        let order = page.verdict().unwrap();
        let html = page.to_html();
        let text = text(&html);
        let first_other = html.find("says the service").unwrap();
        for card in ["<h3>Order</h3>", "<h3>Approval</h3>", "<h3>Initiate</h3>", "<h3>Gasless message</h3>"] {
            assert!(html.find(card).is_some_and(|at| at < first_other), "{card}");
        }
        let mut ranges = 0;
        for covered in order.coverage() {
            let Some((start, end)) = covered.bytes else { continue };
            let payload = hex::decode(input.pointer(&covered.at).unwrap().as_str().unwrap().trim_start_matches("0x")).unwrap();
            assert!(text.contains(&hex::encode(&payload[start..end])), "{}#{start}-{end}", covered.at);
            ranges += 1;
        }
        assert!(ranges > 5 && (1..100).contains(&html.matches("says the service").count()), "{ranges}");
        assert!(text.contains("more members or rows"), "what is left out is counted");
    })
    .unwrap();
}

#[test]
fn a_page_shows_the_digests_of_its_own_documents_only() {
    let prepared = |case: &countersign_testkit::Case, input: &str| {
        let root = json::parse(input.as_bytes()).unwrap();
        countersign_json::line::Case::from_value(&root).unwrap().run(case.registry, &Policy::default()).unwrap().0
    };
    let cases = fixtures_of(Family::Evm).unwrap();
    let case = |id: &str| cases.iter().find(|case| case.id == id).unwrap();
    let (one, other) = (case("evm-token-approval-exact"), case("evm-token-approval-unlimited"));
    // The service chooses the id of an order, so two orders can have one.
    let mut same_id = other.json();
    set(&mut same_id, "/response/result/order_id", one.json()["response"]["result"]["order_id"].clone());
    let (own, foreign) = (prepared(one, &one.input), prepared(other, &same_id.to_string()));
    assert_eq!(own.order_id(), foreign.order_id());
    with_case(&one.input, |documents| {
        let page = || Page::new(documents, one.registry, &Policy::default());
        assert!(page().with_prepared(&own).is_ok());
        assert!(page().with_prepared(&foreign).is_err());
        // The order of another policy may have been changed by it.
        let strict = Policy::default().with_approvals(countersign::ApprovalPolicy::Exact);
        assert!(Page::new(documents, one.registry, &strict).with_prepared(&foreign).is_err());
    })
    .unwrap();
    with_case(&other.input, |documents| {
        assert!(Page::new(documents, other.registry, &Policy::default()).with_prepared(&foreign).is_err(), "another id");
    })
    .unwrap();
    // A refused order has nothing to sign.
    let mut refused = one.json();
    set(&mut refused, "/response/status", json!("no"));
    with_case(&refused.to_string(), |documents| {
        assert!(Page::new(documents, one.registry, &Policy::default()).with_prepared(&own).is_err());
    })
    .unwrap();
}

/// What the wallet chooses can add warnings, and take some away.
#[test]
fn a_prepared_page_has_the_warnings_of_what_is_prepared() {
    let mut seen = 0;
    for family in FAMILIES {
        for case in fixtures_of(family).unwrap() {
            let root = json::parse(case.input.as_bytes()).unwrap();
            let parsed = countersign_json::line::Case::from_value(&root).unwrap();
            let Ok((order, _)) = parsed.run(case.registry, &Policy::default()) else { continue };
            let documents = Documents { request: parsed.request, response: parsed.response, record: parsed.order };
            let page = Page::new(documents, case.registry, &Policy::default());
            let before = page.verdict().unwrap().warnings().clone();
            let text = text(&page.with_prepared(&order).expect(&case.id).to_html());
            for warning in order.warnings().list() {
                assert!(text.contains(&escaped(&warning.message())), "{}: {warning}", case.id);
                seen += usize::from(!before.list().contains(warning));
            }
        }
    }
    assert!(seen > 0);
}

#[test]
fn foreign_letters_and_marks_move_nothing_around_them() {
    let case = fixtures_of(Family::Evm).unwrap().into_iter().find(|case| case.id == "evm-record-solana-other-id").unwrap();
    let mut input = case.json();
    let marks = "\u{301}".repeat(4_500);
    set(&mut input, "/response/result/note", json!(format!("x{marks}")));
    set(&mut input, "/order/destination_swap/swap_id", json!("\u{633}\u{644} 0x123"));
    with_case(&input.to_string(), |documents| {
        let page = Page::new(documents, case.registry, &Policy::default());
        assert!(page.verdict().is_ok());
        let html = page.to_html();
        assert!(html.matches('\u{301}').count() <= 2, "{}", html.matches('\u{301}').count());
        assert!(html.contains("destination swap id &quot;<bdi>\u{633}\u{644} 0x123</bdi>&quot;"));
        assert!(html.contains("td code") && html.contains("unicode-bidi: isolate"));
    })
    .unwrap();
}

proptest! {
    #[test]
    fn any_document_makes_a_page(response in "\\PC{0,40}", key in "[a-z_/~#0-9-]{0,12}") {
        let text = json!({"status": "Ok", "result": {&key: &response, "order_id": &response, "to": [1, [2, {&key: null}]]}}).to_string();
        let (Ok(request), Ok(response)) = (json::parse(b"{}"), json::parse(text.as_bytes())) else { return Ok(()) };
        let page = Page::new(Documents { request: &request, response: &response, record: Some(&response) }, registry(), &Policy::default());
        prop_assert!(page.verdict().is_err());
        assert_harmless(&page.to_html(), "any document");
    }
}

#[test]
fn a_signed_page_has_digests_signatures_and_what_devices_show() -> TestResult {
    let mut signed = 0;
    for family in FAMILIES {
        for case in fixtures_of(family)? {
            let root = json::parse(case.input.as_bytes())?;
            let parsed = countersign_json::line::Case::from_value(&root)?;
            let Ok((order, true)) = parsed.run(case.registry, &Policy::default()) else { continue };
            let documents = Documents { request: parsed.request, response: parsed.response, record: parsed.order };
            let text = text(&Page::new(documents, case.registry, &Policy::default()).with_prepared(&order).expect(&case.id).to_html());
            for request in order.requests() {
                assert!(text.contains(&escaped(&request.signer)), "{}", case.id);
                assert!(request.digest == request.message || text.contains(&hex::encode(&request.digest)), "{}", case.id);
            }
            let shown = order.signatures().into_iter().map(|(_, signature)| signature);
            let devices = hash_cards(&order).into_iter().flat_map(|card| card.values).map(|shown| shown.value);
            for value in shown.chain(devices) {
                assert!(text.contains(&escaped(&value)), "{}: {value}", case.id);
            }
            let secret = parsed.wallet()?.object()?.need("secret_key")?.secret()?.trim_start_matches("0x").to_owned();
            assert!(!text.contains(&secret), "{}: the key is on the page", case.id);
            signed += 1;
        }
    }
    assert!(signed > 100, "{signed}");
    Ok(())
}
