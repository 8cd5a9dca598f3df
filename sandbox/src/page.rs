//! The sandbox's page, and the calls that control blocks, the clock, funds and lies.

mod chains;
mod html;
mod lies;
mod order;
mod orders;
mod switches;

use serde_json::{Value, json};

use crate::http::{Reply, Request};
use crate::world::{Chain, World};

/// Allows nothing from other hosts, only the page's own script, and forms that post to the sandbox.
const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src data:; form-action 'self'; \
                      frame-ancestors 'none'; base-uri 'none'";

/// The path of an order's page, before its id.
const ORDER: &str = "/order/";

/// Answers a call of the page or of one of its switches.
#[must_use]
pub fn answer(world: &World, request: &Request) -> Reply {
    match (request.method.as_str(), request.path.as_str()) {
        ("GET", "/") => html_reply(html::page(world), POLICY),
        ("GET", "/style.css") => Reply::new(200, "text/css; charset=utf-8", include_str!("page/style.css")),
        ("GET", "/refresh.js") => Reply::new(200, "text/javascript; charset=utf-8", include_str!("page/refresh.js")),
        ("GET", "/sandbox/state") => Reply::json(200, &state(world)),
        ("GET", "/sandbox/registry") => Reply::json(200, &crate::home::registry(world)),
        ("GET", path) if path.starts_with(ORDER) => order::page(world, path.trim_start_matches(ORDER)),
        ("POST", path) if path.starts_with("/sandbox/") => switches::turn(world, request),
        ("GET" | "HEAD", _) => Reply::text(404, "not found"),
        _ => Reply::text(405, "method not allowed"),
    }
}

fn html_reply(html: String, policy: &str) -> Reply {
    let mut reply = Reply::new(200, "text/html; charset=utf-8", html);
    // With `no-referrer`, browsers would send `Origin: null` with the page's own forms, and the switches would refuse
    // them.
    for (name, value) in [("content-security-policy", policy), ("x-content-type-options", "nosniff"), ("referrer-policy", "same-origin")] {
        reply.headers.push((name.to_owned(), value.to_owned()));
    }
    reply.headers.push(("cache-control".to_owned(), "no-store".to_owned()));
    reply
}

/// Returns the state that the page shows, as JSON.
fn state(world: &World) -> Value {
    let chain = |(name, chain): (&String, &Chain)| {
        let engine = chain.engine();
        json!({ "chain": name, "height": engine.height(), "pending": engine.pending() })
    };
    json!({
        "chains": world.chains.iter().map(chain).collect::<Vec<_>>(), "lies": world.lies.active(),
        "settings": switches::settings(world),
        "time": world.clock.millis(), "lines": world.lines(),
    })
}
