//! The calls that control the sandbox: `POST /sandbox/...`, with parameters in the query or in a form.

use std::fmt::{self, Write};
use std::net::IpAddr;

use serde_json::{Value, json};

use crate::http::{Reply, Request};
use crate::lies;
use crate::world::{MAX_BLOCKS, Settings, World};

pub(super) fn turn(world: &World, request: &Request) -> Reply {
    // Another site's page in the same browser must not control the sandbox.
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
        // A form returns to the page.
        Ok(_) if is_form => {
            let mut reply = Reply::text(303, "done");
            reply.headers.push(("location".to_owned(), back(&request.path, &text("name"))));
            reply
        }
        Ok(done) => Reply::json(200, &done),
        Err(reason) => Reply::json(400, &json!({ "error": reason })),
    }
}

/// Returns whether a `Host` is an IP address or `localhost`. Any other name could be another site's, with its DNS
/// pointing at this machine.
fn is_fixed(host: &str) -> bool {
    let name = host.rsplit_once(':').filter(|(_, port)| port.bytes().all(|digit| digit.is_ascii_digit())).map_or(host, |(name, _)| name);
    let address = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
    name == "localhost" || address.parse::<IpAddr>().is_ok()
}

/// Returns the fragment of the page that a form belongs to. The switch of a lie gets the focus again.
fn back(path: &str, lie: &str) -> String {
    match (path, lies::find(lie)) {
        ("/sandbox/lies", Some(lie)) => format!("/#lie-{}", lie.name),
        ("/sandbox/lies", None) => "/#lies".to_owned(),
        ("/sandbox/settings", _) => "/#service".to_owned(),
        _ => "/#chains".to_owned(),
    }
}

/// Returns the settings as JSON.
pub(super) fn settings(world: &World) -> Value {
    let Settings { pace, no_typed_data, no_approval, v1_messages } = world.settings();
    json!({ "pace": pace, "no_typed_data": no_typed_data, "no_approval": no_approval, "v1_messages": v1_messages })
}

pub(super) fn settings_form(html: &mut String, world: &World) -> fmt::Result {
    let Settings { pace, no_typed_data, no_approval, v1_messages } = world.settings();
    let told = |is_off: bool| if is_off { "without" } else { "with" };
    write!(
        html,
        "<form class=\"clock\" method=\"post\" action=\"/sandbox/settings\"><span>The solver acts {} s after what it sees. New orders come {} typed \
         data, and {} the approvals that EVM chains and Tron need. Those of Solana come {} messages of version 1.</span> <span class=\"buttons\">",
        f64::from(u32::try_from(pace).unwrap_or(u32::MAX)) / 1_000.0,
        told(no_typed_data),
        told(no_approval),
        told(!v1_messages),
    )?;
    for (name, value, text) in [
        ("pace", "0".to_owned(), "Act at once"),
        ("pace", "1000".to_owned(), "Act after 1 s"),
        ("pace", "30000".to_owned(), "Act after 30 s"),
        ("no_typed_data", (!no_typed_data).to_string(), "Typed data on or off"),
        ("no_approval", (!no_approval).to_string(), "Approvals on or off"),
        ("v1_messages", (!v1_messages).to_string(), "Version 1 on or off"),
    ] {
        write!(html, "<button name=\"{name}\" value=\"{value}\">{text}</button> ")?;
    }
    html.push_str("</span></form>");
    Ok(())
}

fn act(world: &World, path: &str, text: &impl Fn(&str) -> String) -> Result<Value, String> {
    let number = |name: &str| text(name).parse::<u64>().map_err(|_| format!("{name} is not a number"));
    match path {
        "/sandbox/mine" => {
            let (chain, blocks) = (world.chain(&text("chain"))?, number("blocks")?);
            if blocks > MAX_BLOCKS {
                return Err(format!("at most {MAX_BLOCKS} blocks at once"));
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
            world.advance(number("advance")?.saturating_mul(1_000));
            Ok(json!({ "time": world.clock.millis() }))
        }
        "/sandbox/settings" => {
            let before = world.settings();
            let pace = if text("pace").is_empty() { before.pace } else { number("pace")? };
            let flag = |name: &str, before: bool| match text(name).as_str() {
                "" => Ok(before),
                value => value.parse().map_err(|_| format!("{name} is not true or false")),
            };
            let no_typed_data = flag("no_typed_data", before.no_typed_data)?;
            let (no_approval, v1_messages) = (flag("no_approval", before.no_approval)?, flag("v1_messages", before.v1_messages)?);
            world.set(Settings { pace, no_typed_data, no_approval, v1_messages });
            Ok(settings(world))
        }
        "/sandbox/fund" => {
            let (asset, amount) = (text("asset"), text("amount").parse().map_err(|_| "amount is not a number of base units")?);
            let (account, chain) = (text("account"), world.chain_of(&asset)?);
            match text("into").as_str() {
                "" => chain.engine().fund(&account, &asset, amount)?,
                "address_balance" => chain.engine().fund_balance(&account, &asset, amount)?,
                other => return Err(format!("no such place: {other}")),
            }
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
