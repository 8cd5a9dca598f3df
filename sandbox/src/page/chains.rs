//! The chains on the page: blocks, pending transactions and balances.

use std::fmt::{self, Write};

use serde_json::Value;

use super::html::{Text, chain_name, grouped, shown, symbol};
use crate::accounts;
use crate::world::{Chain, World};

/// The decimals of a balance.
const PLACES: usize = 4;

pub(super) fn chains(html: &mut String, world: &World) -> fmt::Result {
    let time = crate::order::iso(world.clock.millis());
    write!(
        html,
        "<form class=\"clock\" method=\"post\" action=\"/sandbox/clock\"><span>The chains' clock: <time datetime=\"{time}\">{} {} UTC</time></span> \
         <span class=\"buttons\"><button name=\"advance\" value=\"3600\">1 hour on</button> <button name=\"advance\" value=\"86400\">1 day on</button></span></form>\
         <div class=\"chains\">",
        time.get(..10).unwrap_or_default(),
        time.get(11..19).unwrap_or_default(),
    )?;
    for (name, chain) in &world.chains {
        card(html, world, name, chain)?;
    }
    html.push_str("</div>");
    Ok(())
}

fn card(html: &mut String, world: &World, name: &str, chain: &Chain) -> fmt::Result {
    let assets: Vec<&str> = chain.listing.assets.iter().filter_map(|asset| asset.get("id").and_then(Value::as_str)).collect();
    let (height, pending, balances) = {
        let engine = chain.engine();
        let accounts = [accounts::USER, accounts::SOLVER].map(|role| engine.address_of(&accounts::key(role)));
        let balances: Vec<_> =
            assets.iter().map(|asset| accounts.each_ref().map(|account| engine.balance(account, asset).unwrap_or(0))).collect();
        (engine.height(), engine.pending(), balances)
    };
    let title = chain_name(world, name);
    let waiting = if pending == 0 { "nothing waits".to_owned() } else { format!("{pending} waiting") };
    write!(
        html,
        "<article class=\"card chain{}\" id=\"chain-{}\"><h3>{title}</h3><p class=\"height\">Block <strong>{}</strong> <span>{waiting}</span></p>\
         <table><caption class=\"hidden\">Balances on {title}</caption>\
         <thead><tr><td></td><th scope=\"col\">User</th><th scope=\"col\">Solver</th></tr></thead><tbody>",
        if pending == 0 { "" } else { " busy" },
        Text(name),
        grouped(height),
        title = Text(&title),
    )?;
    for (asset, [user, solver]) in assets.iter().zip(balances) {
        write!(
            html,
            "<tr><th scope=\"row\">{}</th><td>{}</td><td>{}</td></tr>",
            Text(symbol(world, asset)),
            Text(shown(world, asset, user, PLACES)),
            Text(shown(world, asset, solver, PLACES))
        )?;
    }
    write!(
        html,
        "</tbody></table><form class=\"buttons\" method=\"post\" action=\"/sandbox/mine\"><input type=\"hidden\" name=\"chain\" value=\"{}\">",
        Text(name)
    )?;
    for (blocks, text) in [(1, "Mine 1 block"), (100, "Mine 100")] {
        write!(html, "<button name=\"blocks\" value=\"{blocks}\">{text}<span class=\"hidden\"> on {}</span></button> ", Text(&title))?;
    }
    html.push_str("</form></article>\n");
    Ok(())
}
