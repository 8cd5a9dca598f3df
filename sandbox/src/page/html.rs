//! The page as HTML. What comes from outside is escaped.

use std::fmt::{self, Display, Write};

use serde_json::Value;

use crate::accounts;
use crate::lies;
use crate::order::{Order, Side, Status, iso};
use crate::world::{Chain, World};

/// How many orders are shown.
const ORDERS: u64 = 20;

/// Text in HTML.
struct Text<T>(T);

impl<T: Display> Display for Text<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for letter in self.0.to_string().chars() {
            match letter {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                other => f.write_char(other)?,
            }
        }
        Ok(())
    }
}

pub(super) fn page(world: &World) -> String {
    let mut html = String::from(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">\
         <title>countersign sandbox</title><link rel=\"stylesheet\" href=\"/style.css\"><script src=\"/refresh.js\" defer></script></head>\n\
         <body><a class=\"skip\" href=\"#orders\">To the orders</a><h1>countersign sandbox</h1>\n\
         <p class=\"worthless\">Everything here is worthless: keys are public, coins come from nowhere. Never send real funds to these \
         addresses.</p>\n<main>\n",
    );
    // Writing to a string does not fail.
    let _ = write(&mut html, world);
    html.push_str("</main></body></html>\n");
    html
}

fn write(html: &mut String, world: &World) -> fmt::Result {
    let active = world.lies.active();
    let told = if active.is_empty() {
        "Nobody lies.".to_owned()
    } else {
        format!("Told now: {}.", active.iter().copied().collect::<Vec<_>>().join(", "))
    };
    html.push_str("<h2>Orders</h2><div class=\"wide\" id=\"orders\" data-live tabindex=\"-1\">");
    orders(html, world)?;
    html.push_str("</div>\n<h2>Chains</h2><div class=\"wide\" id=\"chains\" data-live>");
    chains(html, world)?;
    write!(
        html,
        "</div>\n<h2>Lies</h2><p id=\"told\" data-live aria-live=\"polite\">{}</p><div class=\"lies\" id=\"lies\" data-live>",
        Text(told)
    )?;
    for lie in lies::all() {
        let is_on = active.contains(lie.name);
        write!(
            html,
            "<form method=\"post\" action=\"/sandbox/lies\"{}><input type=\"hidden\" name=\"name\" value=\"{name}\">\
             <button name=\"on\" value=\"{}\" aria-pressed=\"{is_on}\" title=\"{about}\">{name}</button><span>{liar}</span></form>",
            if is_on { " class=\"on\"" } else { "" },
            !is_on,
            name = Text(lie.name),
            about = Text(lie.about),
            liar = Text(lie.liar),
        )?;
    }
    html.push_str("</div>\n<h2>What happened</h2><pre class=\"log\" id=\"log\" data-live tabindex=\"0\" aria-label=\"What happened, the newest first\">");
    for line in world.lines().iter().rev().take(100) {
        writeln!(html, "{}", Text(line))?;
    }
    html.push_str("</pre>\n");
    Ok(())
}

fn orders(html: &mut String, world: &World) -> fmt::Result {
    let count = world.ledger.count().unwrap_or(0);
    if count == 0 {
        return write!(
            html,
            "<p>No order yet. In a terminal: <code>countersign swap --from base:usdc --amount '1.5 usdc' --to litecoin:ltc</code></p>"
        );
    }
    html.push_str("<table><thead><tr><th scope=\"col\">Order<th scope=\"col\">Made<th scope=\"col\">Source<th scope=\"col\">Destination<th scope=\"col\">State</thead><tbody>");
    for number in (count.saturating_sub(ORDERS).saturating_add(1)..=count).rev() {
        if let Ok(Some(order)) = world.ledger.by_number(number) {
            row(html, world, &order)?;
        }
    }
    html.push_str("</tbody></table>");
    if count > ORDERS {
        write!(html, "<p>{count} orders in all; the newest are shown.</p>")?;
    }
    Ok(())
}

fn row(html: &mut String, world: &World, order: &Order) -> fmt::Result {
    let state = match order.status(world.clock.millis()) {
        Status::NotInitiated => "waits for the payment",
        Status::InProgress => "under way",
        Status::Completed => "complete",
        Status::Refunded => "refunded",
        Status::Expired => "expired",
    };
    let made = iso(order.created_at);
    let time = made.get(11..19).unwrap_or_default();
    write!(html, "<tr><td><code>{}</code><td>{time}<td>", Text(order.id.get(..8).unwrap_or_default()))?;
    leg(html, world, &order.source)?;
    html.push_str("<td>");
    leg(html, world, &order.destination)?;
    write!(html, "<td>{state}</tr>")
}

fn leg(html: &mut String, world: &World, side: &Side) -> fmt::Result {
    write!(html, "{} {}<ul class=\"steps\">", Text(shown(world, &side.asset, side.amount)), Text(&side.asset))?;
    for (name, seen) in [("paid", &side.initiated), ("redeemed", &side.redeemed), ("refunded", &side.refunded)] {
        match seen {
            Some(seen) => write!(html, "<li class=\"done\" title=\"{}\">{name} in {}</li>", Text(&seen.transaction), seen.height)?,
            None if name == "refunded" => {}
            None => write!(html, "<li>not {name}</li>")?,
        }
    }
    html.push_str("</ul>");
    Ok(())
}

fn chains(html: &mut String, world: &World) -> fmt::Result {
    html.push_str(
        "<table><thead><tr><th scope=\"col\">Chain<th scope=\"col\">Newest block<th scope=\"col\">Waiting<th scope=\"col\">The user has\
         <th scope=\"col\">The solver has<th scope=\"col\">Blocks</thead><tbody>",
    );
    for (name, chain) in &world.chains {
        let title = chain.listing.chain.get("name").and_then(Value::as_str).unwrap_or(name);
        let (height, pending) = {
            let engine = chain.engine();
            (engine.height(), engine.pending())
        };
        write!(html, "<tr><th scope=\"row\">{}<td>{height}<td>{pending}<td>", Text(title))?;
        balances(html, world, chain, accounts::USER)?;
        html.push_str("<td>");
        balances(html, world, chain, accounts::SOLVER)?;
        html.push_str("<td>");
        for blocks in [1, 100] {
            write!(
                html,
                "<form method=\"post\" action=\"/sandbox/mine\"><input type=\"hidden\" name=\"chain\" value=\"{name}\">\
                 <button name=\"blocks\" value=\"{blocks}\">mine {blocks}<span class=\"skip\"> on {name}</span></button></form>",
                name = Text(name)
            )?;
        }
        html.push_str("</tr>");
    }
    html.push_str("</tbody></table>");
    Ok(())
}

fn balances(html: &mut String, world: &World, chain: &Chain, role: &str) -> fmt::Result {
    let engine = chain.engine();
    let account = engine.address_of(&accounts::key(role));
    for asset in &chain.listing.assets {
        let Some(id) = asset.get("id").and_then(Value::as_str) else { continue };
        let balance = engine.balance(&account, id).unwrap_or(0);
        let symbol = id.split_once(':').map_or(id, |(_, symbol)| symbol);
        write!(html, "{} {}<br>", Text(shown(world, id, balance)), Text(symbol))?;
    }
    Ok(())
}

/// An amount in whole units, with at most eight decimals.
fn shown(world: &World, asset: &str, amount: u128) -> String {
    let decimals = world.chain_of(asset).ok().and_then(|chain| chain.asset(asset)?.get("decimals")?.as_u64()).unwrap_or(0);
    let width = usize::try_from(decimals).unwrap_or(0);
    let unit = 10_u128.saturating_pow(decimals.try_into().unwrap_or(0)).max(1);
    let fraction = format!("{:0>width$}", (amount % unit).to_string());
    let fraction = fraction.get(..width.min(8)).unwrap_or_default().trim_end_matches('0');
    let whole = amount / unit;
    if fraction.is_empty() { whole.to_string() } else { format!("{whole}.{fraction}") }
}
