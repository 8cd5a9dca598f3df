//! The page, and the calls that turn the sandbox: blocks, clock, funds, lies.

use serde_json::{Value, json};

use crate::http::{Reply, Request};
use crate::lies;
use crate::world::World;

/// Answers a call to the page or to a switch.
#[must_use]
pub fn answer(world: &World, request: &Request) -> Reply {
    match (request.method.as_str(), request.path.as_str()) {
        ("GET", "/") => Reply::text(200, world.lines().join("\n")),
        ("GET", "/sandbox/state") => Reply::json(200, &state(world)),
        ("POST", path) => match switch(world, path, request) {
            Some(Ok(done)) => Reply::json(200, &done),
            Some(Err(reason)) => Reply::json(400, &json!({ "error": reason })),
            None => Reply::text(404, "not found"),
        },
        _ => Reply::text(404, "not found"),
    }
}

fn state(world: &World) -> Value {
    let chain = |(name, chain): (&String, &crate::world::Chain)| {
        let engine = chain.engine();
        json!({ "chain": name, "height": engine.height(), "pending": engine.pending() })
    };
    json!({
        "chains": world.chains.iter().map(chain).collect::<Vec<_>>(), "lies": world.lies.active(),
        "time": world.clock.millis(), "lines": world.lines(),
    })
}

fn switch(world: &World, path: &str, request: &Request) -> Option<Result<Value, String>> {
    let body: Value = serde_json::from_slice(&request.body).unwrap_or(Value::Null);
    let text = |name: &str| request.parameter(name).or_else(|| body.get(name)?.as_str().map(str::to_owned)).unwrap_or_default();
    let number = |name: &str| text(name).parse::<u64>().map_err(|_| format!("{name} is not a number"));
    Some(match path {
        "/sandbox/mine" => number("blocks").and_then(|blocks| {
            let chain = world.chain(&text("chain"))?;
            chain.engine().mine(blocks.min(1_000_000));
            let height = chain.engine().height();
            Ok(json!({ "height": height }))
        }),
        "/sandbox/reorganize" => number("depth").and_then(|depth| {
            world.chain(&text("chain"))?.engine().reorganize(depth)?;
            Ok(json!({}))
        }),
        "/sandbox/clock" => number("advance").map(|seconds| {
            world.clock.advance(seconds.saturating_mul(1_000));
            json!({ "time": world.clock.millis() })
        }),
        "/sandbox/fund" => text("amount").parse::<u128>().map_err(|_| "amount is not a number".to_owned()).and_then(|amount| {
            let asset = text("asset");
            world.chain_of(&asset)?.engine().fund(&text("account"), &asset, amount)?;
            Ok(json!({}))
        }),
        "/sandbox/lies" => {
            let (name, is_on) = (text("name"), text("on") != "false");
            if world.lies.set(&name, is_on) {
                Ok(json!({ "lies": world.lies.active() }))
            } else if name == "none" {
                world.lies.clear();
                Ok(json!({ "lies": [] }))
            } else {
                Err(format!("no lie is called {name}; known: {}", lies::all().map(|lie| lie.name).collect::<Vec<_>>().join(", ")))
            }
        }
        _ => return None,
    })
}
