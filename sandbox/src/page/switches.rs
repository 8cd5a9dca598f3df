//! What turns the sandbox: `POST /sandbox/...` with parameters in the query or in a form.

use std::net::IpAddr;

use serde_json::{Value, json};

use crate::http::{Reply, Request};
use crate::lies;
use crate::world::World;

pub(super) fn turn(world: &World, request: &Request) -> Reply {
    // A page of somebody else that is open in the same browser must not turn anything.
    if let Some(origin) = request.header("origin") {
        let host = request.header("host").unwrap_or_default();
        if origin.strip_prefix("http://") != Some(host) {
            return Reply::text(403, "another origin");
        }
        if !is_fixed(host) {
            return Reply::text(403, "open the page at its IP address: a host name could belong to another site");
        }
    }
    let is_form = request.header("content-type").is_some_and(|kind| kind.starts_with("application/x-www-form-urlencoded"));
    let form = Request { query: String::from_utf8_lossy(&request.body).into_owned(), ..request.clone() };
    let text = |name: &str| request.parameter(name).or_else(|| form.parameter(name)).unwrap_or_default();
    match act(world, &request.path, &text) {
        // A form goes back to the page.
        Ok(_) if is_form => {
            let mut reply = Reply::text(303, "done");
            reply.headers.push(("location".to_owned(), back(&request.path, &text("name"))));
            reply
        }
        Ok(done) => Reply::json(200, &done),
        Err(reason) => Reply::json(400, &json!({ "error": reason })),
    }
}

/// Whether a `Host` is an address or `localhost`: the DNS of another site can point a name at this machine.
fn is_fixed(host: &str) -> bool {
    let name = host.rsplit_once(':').filter(|(_, port)| port.bytes().all(|digit| digit.is_ascii_digit())).map_or(host, |(name, _)| name);
    let address = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
    name == "localhost" || address.parse::<IpAddr>().is_ok()
}

/// Where on the page a form was. A lie's switch gets the focus again.
fn back(path: &str, lie: &str) -> String {
    match (path, lies::find(lie)) {
        ("/sandbox/lies", Some(lie)) => format!("/#lie-{}", lie.name),
        ("/sandbox/lies", None) => "/#lies".to_owned(),
        _ => "/#chains".to_owned(),
    }
}

fn act(world: &World, path: &str, text: &impl Fn(&str) -> String) -> Result<Value, String> {
    let number = |name: &str| text(name).parse::<u64>().map_err(|_| format!("{name} is not a number"));
    match path {
        "/sandbox/mine" => {
            let (chain, blocks) = (world.chain(&text("chain"))?, number("blocks")?);
            if blocks > 1_000_000 {
                return Err("at most 1000000 blocks at once".to_owned());
            }
            let mut engine = chain.engine();
            engine.mine(blocks);
            Ok(json!({ "height": engine.height() }))
        }
        "/sandbox/reorganize" => {
            world.chain(&text("chain"))?.engine().reorganize(number("depth")?)?;
            Ok(json!({}))
        }
        "/sandbox/clock" => {
            world.clock.advance(number("advance")?.saturating_mul(1_000));
            Ok(json!({ "time": world.clock.millis() }))
        }
        "/sandbox/fund" => {
            let (asset, amount) = (text("asset"), text("amount").parse().map_err(|_| "amount is not a number of base units")?);
            world.chain_of(&asset)?.engine().fund(&text("account"), &asset, amount)?;
            Ok(json!({}))
        }
        "/sandbox/lies" if text("name") == "none" => {
            world.lies.clear();
            world.note("lies: none");
            Ok(json!({ "lies": [] }))
        }
        "/sandbox/lies" => {
            let name = text("name");
            if world.lies.set(&name, text("on") != "false") {
                let active: Vec<_> = world.lies.active().into_iter().collect();
                world.note(format!("lies: {}", if active.is_empty() { "none".to_owned() } else { active.join(", ") }));
                return Ok(json!({ "lies": world.lies.active() }));
            }
            Err(format!("no lie is called {name}; known: {}", lies::all().map(|lie| lie.name).collect::<Vec<_>>().join(", ")))
        }
        _ => Err(format!("unknown: {path}")),
    }
}
