//! The lies on the page, grouped by liar. Each has a switch.

use std::fmt::{self, Write};

use super::html::Text;
use crate::lies::{self, Liar, Lie};
use crate::world::World;

/// Each liar with a heading and a description.
const LIARS: [(Liar, &str, &str); 9] = [
    (Liar::Answer, "The service, in its answer to a new order", "What the wallet is asked to sign differs from what was agreed."),
    (Liar::Record, "The service, in the record of an order", "What the wallet reads about an order is not what the chains show."),
    (Liar::Service, "The service, at its socket", "It hangs, is gone, or answers with what is no answer."),
    (Liar::Solver, "The solver", "It does not pay what the record states. One of these at a time: the first by name is told."),
    (Liar::Issuer, "The issuer of a token", "It stops what the solver has paid, before the user has it."),
    (Liar::Receiver, "The receiver", "It cannot be paid. Only `countersign-sandbox lies` names it in an order."),
    (Liar::Relayer, "The relayer", "It redeems and refunds for wallets that have no gas, or says so."),
    (Liar::Endpoint, "An endpoint", "One of the three nodes of each chain. One of these at a time: the first by name is told."),
    (Liar::Network, "The network", "Whatever lies between the wallet and all others. One of these at a time: the first by name is told."),
];

/// Writes which lies are switched on, for the top of the page.
pub(super) fn told(html: &mut String, world: &World) -> fmt::Result {
    let active = world.lies.active();
    write!(html, "<div class=\"told{}\" id=\"told\" tabindex=\"-1\"><p role=\"status\">", if active.is_empty() { "" } else { " on" })?;
    match active.len() {
        0 => html.push_str("<span aria-hidden=\"true\">✓</span> Nobody lies."),
        1 => html.push_str("<span aria-hidden=\"true\">!</span> One lie is told:"),
        count => write!(html, "<span aria-hidden=\"true\">!</span> {count} lies are told:")?,
    }
    for name in &active {
        write!(html, " <a href=\"#lie-{name}\">{name}</a>", name = Text(name))?;
    }
    html.push_str("</p></div>\n");
    Ok(())
}

pub(super) fn switches(html: &mut String, world: &World) -> fmt::Result {
    html.push_str(
        "<form class=\"clock\" method=\"post\" action=\"/sandbox/lies\"><input type=\"hidden\" name=\"name\" value=\"none\">\
         <span>Switch one on, and start a swap on its route: the program should refuse, wait, or get the money back.</span> \
         <span class=\"buttons\"><button>Switch all off</button></span></form>",
    );
    let active = world.lies.active();
    for (liar, title, about) in LIARS {
        let number = lies::all().filter(|lie| lie.liar == liar).count();
        write!(html, "<h3>{title} <small>{number}</small></h3><p class=\"about\">{about}</p><ul class=\"lies\">")?;
        for lie in lies::all().filter(|lie| lie.liar == liar) {
            switch(html, world, lie, active.contains(lie.name))?;
        }
        html.push_str("</ul>\n");
    }
    Ok(())
}

fn switch(html: &mut String, world: &World, lie: &Lie, is_on: bool) -> fmt::Result {
    let [from, to] = lie.route;
    let is_here = [from, to].iter().all(|asset| world.chain_of(asset).is_ok());
    write!(
        html,
        "<li class=\"card{}\"><form method=\"post\" action=\"/sandbox/lies\"><input type=\"hidden\" name=\"name\" value=\"{name}\">\
         <button id=\"lie-{name}\" name=\"on\" value=\"{}\" role=\"switch\" aria-checked=\"{is_on}\" aria-describedby=\"about-{name}\">{name}</button></form>\
         <div id=\"about-{name}\"><p>{}.</p><p class=\"stake\">At stake: {}.</p><p class=\"route\">{} → {}{}</p></div></li>",
        if is_on { " on" } else { "" },
        !is_on,
        Text(sentence(lie.about)),
        Text(lie.at_stake),
        Text(from),
        Text(to),
        if is_here { "" } else { ", which this sandbox does not have" },
        name = Text(lie.name),
    )
}

/// Returns the text with a capital first letter.
fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}
