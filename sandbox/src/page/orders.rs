//! The orders on the page, each with both sides.

use std::fmt::{self, Write};

use super::html::{Text, chain_name, grouped, shortened, shown, symbol};
use crate::order::{Order, Seen, Side, Status, iso};
use crate::service::short;
use crate::world::World;

/// The number of orders that are shown.
const ORDERS: u64 = 20;
/// The decimals of an amount.
const PLACES: usize = 8;
/// Transactions and addresses on a card are shortened to this width.
const WIDTH: usize = 20;

/// How an order is marked. Each of `idle`, `busy`, `good`, `back` and `bad` has a color and a sign.
pub(super) struct State {
    kind: &'static str,
    sign: &'static str,
    pub(super) text: &'static str,
}

const fn state(kind: &'static str, sign: &'static str, text: &'static str) -> State {
    State { kind, sign, text }
}

/// Returns what an order is waiting for, or how it ended.
pub(super) fn state_of(order: &Order, now: u64) -> State {
    let (source, destination) = (&order.source, &order.destination);
    let [paid, answered] = [source, destination].map(|side| side.initiated.is_some());
    match (order.status(now), source.redeemed.is_some(), destination.redeemed.is_some()) {
        (_, true, true) => state("good", "✓", "Complete"),
        (_, true, false) => state("bad", "✗", "The solver took the payment; the user has nothing"),
        (_, false, true) if source.refunded.is_some() => state("bad", "✗", "The user has both legs"),
        (_, false, true) => state("busy", "◐", "The user has redeemed; the solver is next"),
        (Status::Refunded, ..) if answered && destination.refunded.is_none() => {
            state("busy", "◐", "The user has the refund; the solver's is next")
        }
        (Status::Refunded, ..) => state("back", "↩", "Refunded"),
        (Status::Expired, ..) => state("back", "–", "Expired: nobody paid in time"),
        _ if destination.refunded.is_some() => state("busy", "◐", "The solver has its refund; the user's is next"),
        _ if answered && destination.filled < destination.amount => state("bad", "!", "The solver has paid too little"),
        _ if answered => state("busy", "◐", "Both legs are paid; the user redeems next"),
        _ if paid && source.filled < source.amount => state("bad", "!", "The user has paid too little"),
        _ if paid => state("busy", "◐", "The user has paid; the solver is next"),
        _ => state("idle", "○", "Waits for the user's payment"),
    }
}

pub(super) fn orders(html: &mut String, world: &World) -> fmt::Result {
    let count = world.ledger.count();
    if count == 0 {
        html.push_str("<div class=\"none\"><p>No order yet. Make one in a second terminal, as the sandbox's own output says:</p>");
        if world.chain("base").is_ok() && world.chain("litecoin").is_ok() {
            html.push_str("<pre tabindex=\"0\"><code>countersign swap --from base:usdc --amount '1.5 usdc' --to litecoin:ltc</code></pre>");
        }
        html.push_str("</div>");
        return Ok(());
    }
    for number in (count.saturating_sub(ORDERS).saturating_add(1)..=count).rev() {
        if let Some(order) = world.ledger.by_number(number) {
            card(html, world, &order)?;
        }
    }
    if count > ORDERS {
        write!(html, "<p class=\"none\">The newest {ORDERS} of {} orders.</p>", grouped(count))?;
    }
    Ok(())
}

fn card(html: &mut String, world: &World, order: &Order) -> fmt::Result {
    let State { kind, sign, text } = state_of(order, world.clock.millis());
    let made = iso(order.created_at);
    write!(
        html,
        "<article class=\"card order {kind}\" id=\"order-{id}\"><header><h3>#{} <code>{}</code></h3>\
         <p class=\"badge\"><span aria-hidden=\"true\">{sign}</span> {text}</p><time datetime=\"{made}\">{} UTC</time></header><div class=\"legs\">",
        order.number,
        Text(short(&order.id)),
        made.get(11..19).unwrap_or_default(),
        id = Text(&order.id),
    )?;
    leg(html, world, &order.source, true)?;
    html.push_str("<span class=\"arrow\" aria-hidden=\"true\">→</span>");
    leg(html, world, &order.destination, false)?;
    html.push_str("</div>");
    write!(
        html,
        "<p class=\"seen\"><a href=\"{}{}\">What is signed<span class=\"hidden\"> for order {}</span></a></p>",
        super::ORDER,
        Text(&order.id),
        Text(short(&order.id))
    )?;
    details(html, order)?;
    html.push_str("</article>\n");
    Ok(())
}

fn leg(html: &mut String, world: &World, side: &Side, is_source: bool) -> fmt::Result {
    let name = if is_source { "Source" } else { "Destination" };
    let [payer, redeemer] = if is_source { ["user", "solver"] } else { ["solver", "user"] };
    write!(
        html,
        "<div class=\"leg\"><h4>{name}</h4><p class=\"amount\"><strong>{} {}</strong> on {}</p><ol class=\"steps\">",
        Text(shown(world, &side.asset, side.amount, PLACES)),
        Text(symbol(world, &side.asset)),
        Text(chain_name(world, side.chain())),
    )?;
    match &side.initiated {
        Some(seen) => {
            step(html, "done", &format!("The {payer} paid"), Some(seen))?;
            if side.filled != side.amount {
                write!(
                    html,
                    "<li class=\"odd\"><span>{} {} arrived</span></li>",
                    Text(shown(world, &side.asset, side.filled, PLACES)),
                    Text(symbol(world, &side.asset))
                )?;
            }
        }
        None => step(html, "todo", &format!("The {payer} has not paid"), None)?,
    }
    match (&side.redeemed, &side.refunded) {
        (Some(seen), _) => step(html, "done", &format!("The {redeemer} redeemed"), Some(seen))?,
        (None, Some(seen)) => step(html, "gone", &format!("Refunded to the {payer}"), Some(seen))?,
        (None, None) if side.initiated.is_some() => step(html, "next", &format!("Locked: the {redeemer} has not redeemed"), None)?,
        (None, None) => step(html, "todo", &format!("The {redeemer} has not redeemed"), None)?,
    }
    html.push_str("</ol></div>");
    Ok(())
}

fn step(html: &mut String, kind: &str, text: &str, seen: Option<&Seen>) -> fmt::Result {
    write!(html, "<li class=\"{kind}\"><span>{}</span>", Text(text))?;
    if let Some(seen) = seen {
        // Records separate several payments by commas. On Bitcoin-like chains, a colon and the height follow each.
        let first = seen.transaction.split([',', ':']).next().unwrap_or_default();
        write!(html, "<small>block {} · <code>{}</code></small>", grouped(seen.height), Text(shortened(first, WIDTH)))?;
    }
    html.push_str("</li>");
    Ok(())
}

fn details(html: &mut String, order: &Order) -> fmt::Result {
    write!(html, "<details><summary>Details<span class=\"hidden\"> of order {}</span></summary><dl>", Text(short(&order.id)))?;
    let mut row = |name: &str, value: &str| {
        if value.is_empty() { Ok(()) } else { write!(html, "<div><dt>{name}</dt><dd><code>{}</code></dd></div>", Text(value)) }
    };
    row("Order", &order.id)?;
    row("Application", &order.integrator)?;
    row("Nonce", &order.nonce)?;
    row("Secret hash", &order.source.secret_hash)?;
    row("Secret", order.destination.secret.as_deref().unwrap_or("not on a chain yet"))?;
    for (name, side) in [("Source", &order.source), ("Destination", &order.destination)] {
        row(&format!("{name}: asset"), &side.asset)?;
        row(&format!("{name}: base units"), &side.amount.to_string())?;
        row(&format!("{name}: owner"), &side.owner)?;
        row(&format!("{name}: HTLC"), &side.swap_id)?;
        row(&format!("{name}: initiator"), &side.initiator)?;
        row(&format!("{name}: redeemer"), &side.redeemer)?;
        row(&format!("{name}: timelock"), &side.timelock.to_string())?;
        for (what, seen) in [("payment", &side.initiated), ("redemption", &side.redeemed), ("refund", &side.refunded)] {
            row(&format!("{name}: {what}"), seen.as_ref().map_or("", |seen| seen.transaction.as_str()))?;
        }
    }
    html.push_str("</dl></details>");
    Ok(())
}
