//! Tests the page and its switches without a socket.
#![cfg(test)]
#![allow(missing_docs, reason = "a test ends by panicking")]

use std::sync::Arc;

use countersign_sandbox::accounts::{self, key};
use countersign_sandbox::chains::{Nodes, engines};
use countersign_sandbox::clock::Clock;
use countersign_sandbox::http::{Reply, Request};
use countersign_sandbox::ledger::Ledger;
use countersign_sandbox::solver::Solver;
use countersign_sandbox::world::{Settings, World};
use countersign_sandbox::{lies, page, service};
use serde_json::json;

const HOST: &str = "127.0.0.1:7700";
const FORM: (&str, &str) = ("content-type", "application/x-www-form-urlencoded");

fn world() -> World {
    let clock = Arc::new(Clock::default());
    World::new(engines(&["base".to_owned(), "arbitrum".to_owned()], &clock, &Nodes::default()).unwrap(), Ledger::default(), clock, 1)
}

fn call(world: &World, method: &str, target: &str, headers: &[(&str, &str)], body: &str) -> Reply {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let headers = headers.iter().chain(&[("host", HOST)]).map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let request = Request { method: method.to_owned(), path: path.to_owned(), query: query.to_owned(), headers, body: body.into() };
    if path.starts_with("/v2") { service::answer(world, &request) } else { page::answer(world, &request) }
}

fn header<'a>(reply: &'a Reply, name: &str) -> Option<&'a str> {
    reply.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
}

fn html(world: &World) -> String {
    String::from_utf8(call(world, "GET", "/", &[], "").body).unwrap()
}

#[test]
fn the_page_forbids_everything_from_elsewhere() {
    let reply = call(&world(), "GET", "/", &[], "");
    assert_eq!((reply.status, header(&reply, "content-type")), (200, Some("text/html; charset=utf-8")));
    let policy = header(&reply, "content-security-policy").unwrap();
    for rule in
        ["default-src 'none'", "script-src 'self'", "style-src 'self'", "form-action 'self'", "frame-ancestors 'none'", "base-uri 'none'"]
    {
        assert!(policy.split("; ").any(|part| part == rule), "{rule} is not in {policy}");
    }
    assert!(!policy.contains("unsafe"), "{policy}");
    assert_eq!(header(&reply, "x-content-type-options"), Some("nosniff"));
    // With `no-referrer`, browsers would send `Origin: null` with forms, and the switches would refuse them.
    assert_eq!(header(&reply, "referrer-policy"), Some("same-origin"));
}

#[test]
fn what_comes_from_outside_is_escaped() {
    let world = world();
    let owner = world.chain("base").unwrap().engine().address_of(&key(accounts::USER));
    let order = json!({
        "source": { "asset": "base:usdc", "owner": owner, "amount": "25000000" },
        "destination": { "asset": "arbitrum:eth", "owner": owner, "amount": "6000000000000000" },
        "secret_hash": "5a".repeat(32), "nonce": "\"'><script>alert(1)</script>&amp;",
    });
    let reply = call(&world, "POST", "/v2/orders", &[("service-app-id", "<img src=x onerror=alert(2)>")], &order.to_string());
    assert_eq!(reply.status, 200, "{}", String::from_utf8_lossy(&reply.body));
    world.note("<b>a line</b>");
    let html = html(&world);
    assert!(html.contains("&quot;&#39;&gt;&lt;script&gt;alert(1)&lt;/script&gt;&amp;amp;"));
    assert!(html.contains("&lt;img src=x onerror=alert(2)&gt;"));
    assert!(html.contains("&lt;b&gt;a line&lt;/b&gt;"));
    assert_eq!(html.matches("<script").count(), 1, "the page's own");
    assert!(!html.contains("<img") && !html.contains("<b>"));
}

#[test]
fn every_lie_has_a_switch_that_says_what_it_does() {
    let world = world();
    assert!(world.lies.set("solver-pays-less", true));
    let html = html(&world);
    for lie in lies::all() {
        let is_on = lie.name == "solver-pays-less";
        assert!(
            html.contains(&format!("id=\"lie-{0}\" name=\"on\" value=\"{1}\" role=\"switch\" aria-checked=\"{is_on}\"", lie.name, !is_on)),
            "{}",
            lie.name
        );
        assert!(html.contains(&format!("id=\"about-{}\"", lie.name)));
    }
    assert!(html.contains("The solver pays half of what is agreed."));
}

#[test]
fn a_page_of_another_origin_turns_nothing() {
    let world = world();
    for origin in ["http://evil.example", "null", "https://127.0.0.1:7700", "http://127.0.0.1:7701", "http://127.0.0.1:7700.evil.example"] {
        let reply = call(&world, "POST", "/sandbox/lies", &[FORM, ("origin", origin)], "name=net-slow&on=true");
        assert_eq!(reply.status, 403, "{origin}");
    }
    // To a browser, a foreign name that points at this machine is the same origin.
    for host in ["evil.example", "evil.example:7700", "localhost.evil.example:7700", "127.0.0.1.evil.example:7700"] {
        let origin = format!("http://{host}");
        let reply = call(&world, "POST", "/sandbox/lies", &[("host", host), FORM, ("origin", &origin)], "name=net-slow&on=true");
        assert_eq!(reply.status, 403, "{host}");
    }
    assert!(world.lies.active().is_empty());
    for host in ["127.0.0.1:7700", "[::1]:7700", "localhost:7700", "192.0.2.1"] {
        let origin = format!("http://{host}");
        let reply = call(&world, "POST", "/sandbox/lies", &[("host", host), FORM, ("origin", &origin)], "name=none");
        assert_eq!(reply.status, 303, "{host}");
    }
}

#[test]
fn a_form_goes_back_to_where_it_was() {
    let world = world();
    let own = format!("http://{HOST}");
    let post = |target: &str, body: &str| call(&world, "POST", target, &[FORM, ("origin", &own)], body);
    for (target, body, back) in [
        ("/sandbox/lies", "name=net-slow&on=true", "/#lie-net-slow"),
        ("/sandbox/lies", "name=none", "/#lies"),
        ("/sandbox/mine", "chain=base&blocks=2", "/#chains"),
        ("/sandbox/clock", "advance=3600", "/#chains"),
        ("/sandbox/settings", "pace=0", "/#service"),
    ] {
        let reply = post(target, body);
        assert_eq!((reply.status, header(&reply, "location")), (303, Some(back)), "{target} {body}");
    }
    assert!(world.lies.active().is_empty());
    // Programs receive JSON.
    let reply = call(&world, "POST", "/sandbox/lies?name=net-slow&on=true", &[], "");
    assert_eq!((reply.status, reply.body.as_slice()), (200, br#"{"lies":["net-slow"]}"#.as_slice()));
}

/// Returns a world with an order that the user has paid and no solver pays, and the order's id.
fn paid() -> (World, String) {
    let world = world();
    let owner = world.chain("base").unwrap().engine().address_of(&key(accounts::USER));
    world.lies.set("solver-never-pays", true);
    let request = json!({
        "source": { "asset": "base:usdc", "owner": owner, "amount": "25000000" },
        "destination": { "asset": "arbitrum:eth", "owner": owner, "amount": "6000000000000000" }, "secret_hash": "5a".repeat(32),
    });
    let made = call(&world, "POST", "/v2/orders", &[], &request.to_string());
    let made: serde_json::Value = serde_json::from_slice(&made.body).unwrap();
    let id = made["result"]["order_id"].as_str().unwrap().to_owned();
    let terms = world.ledger.by_id(&id).unwrap().source.terms(true);
    world.chain("base").unwrap().engine().lock(&terms).unwrap();
    (world, id)
}

#[test]
fn a_day_on_the_clock_makes_the_blocks_that_a_refund_needs() {
    let (world, id) = paid();
    let mut solver = Solver::default();
    let mut is_refunded = || {
        world.tick();
        solver.step(&world).unwrap();
        world.tick();
        solver.step(&world).unwrap();
        world.ledger.by_id(&id).unwrap().source.refunded.is_some()
    };
    assert!(!is_refunded());
    let heights = || ["base", "arbitrum"].map(|chain| world.chain(chain).unwrap().engine().height());
    let before = heights();
    assert_eq!(call(&world, "POST", "/sandbox/clock", &[FORM], "advance=86400").status, 303);
    assert_eq!([0, 1].map(|chain| heights()[chain].abs_diff(before[chain])), [43_201, 345_601]);
    assert!(is_refunded(), "{:?}", world.lines());
}

#[test]
fn what_was_signed_for_an_order_is_shown_however_it_went_on() {
    let (world, id) = paid();
    let mut solver = Solver::default();
    let mut page = |state: &str| {
        world.tick();
        solver.step(&world).unwrap();
        let html = String::from_utf8(call(&world, "GET", &format!("/order/{id}"), &[], "").body).unwrap();
        assert!(html.contains(&format!("By now: {state}. Below")), "{state}: {:?}", world.lines());
        assert!(html.contains("<title>Verified order") && html.contains(&id), "{state}");
    };
    page("The user has paid; the solver is next");
    world.advance(86_400_000);
    page("The user has paid; the solver is next");
    page("Refunded");
    // A lie in the record is still detected.
    world.lies.set("record-of-another", true);
    let html = String::from_utf8(call(&world, "GET", &format!("/order/{id}"), &[], "").body).unwrap();
    assert!(html.contains("Do not sign"));
}

#[test]
fn settings_are_turned_on_the_page() {
    let world = world();
    let set = |query: &str| call(&world, "POST", &format!("/sandbox/settings?{query}"), &[], "");
    let body = set("pace=30000&no_typed_data=true").body;
    assert_eq!(body, br#"{"pace":30000,"no_typed_data":true,"no_approval":false,"v1_messages":false}"#);
    assert_eq!(world.settings(), Settings { pace: 30_000, no_typed_data: true, ..Settings::default() });
    assert!(html(&world).contains("acts 30 s after what it sees. New orders come without typed data, and with the approvals"));
    set("no_approval=true&no_typed_data=false&v1_messages=true");
    assert_eq!(world.settings(), Settings { pace: 30_000, no_approval: true, v1_messages: true, ..Settings::default() });
}

#[test]
fn wrong_parameters_are_refused() {
    let world = world();
    for (target, body) in [
        ("/sandbox/lies", ""),
        ("/sandbox/lies", "name=no-such-lie&on=true"),
        ("/sandbox/mine", "chain=moon&blocks=1"),
        ("/sandbox/mine", "chain=base&blocks=-1"),
        ("/sandbox/mine", "chain=base&blocks=1000001"),
        ("/sandbox/clock", "advance=soon"),
        ("/sandbox/fund", "asset=base:usdc&amount=1.5"),
        ("/sandbox/fund", "asset=base:usdc&amount=1&account=nobody"),
        ("/sandbox/reorganize", "chain=base"),
        ("/sandbox/settings", "pace=soon"),
        ("/sandbox/settings", "no_approval=perhaps"),
        ("/sandbox/nothing", ""),
    ] {
        assert_eq!(call(&world, "POST", target, &[FORM], body).status, 400, "{target} {body}");
    }
    assert_eq!(call(&world, "GET", "/nowhere", &[], "").status, 404);
    assert_eq!(call(&world, "DELETE", "/", &[], "").status, 405);
}
