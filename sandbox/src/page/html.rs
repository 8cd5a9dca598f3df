//! The frame of the page, and how it writes amounts and foreign text. All foreign text is escaped.

use std::fmt::{self, Display, Write};

use serde_json::Value;

use super::{chains, lies, orders, switches};
use crate::world::World;

/// The number of log lines that are shown.
const LINES: usize = 100;
/// Words of the log longer than this are shortened.
const LONGEST_WORD: usize = 24;

const HEAD: &str = "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
    <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"><meta name=\"color-scheme\" content=\"light dark\">\
    <title>countersign sandbox</title>\
    <link rel=\"icon\" href=\"data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E%3Cpath fill='%233457d5' \
    d='M1 5h9V2l5 4-5 4V7H1zm14 6H6V9l-5 3 5 3v-2h9z'/%3E%3C/svg%3E\">\
    <link rel=\"stylesheet\" href=\"/style.css\"><script src=\"/refresh.js\" defer></script></head>\n\
    <body><a class=\"skip\" href=\"#orders\">Skip to the orders</a>\n\
    <header class=\"top\"><div class=\"bar\"><h1>countersign <span>sandbox</span></h1>\
    <nav aria-label=\"On this page\"><a href=\"#orders\">Orders</a><a href=\"#log\">Log</a><a href=\"#chains\">Chains</a>\
    <a href=\"#lies\">Lies</a></nav></div>\
    <p class=\"trouble\" id=\"trouble\" role=\"status\"></p></header>\n";

/// Text that is escaped for HTML.
pub(super) struct Text<T>(pub(super) T);

impl<T: Display> Display for Text<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for letter in self.0.to_string().chars() {
            match letter {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                '\'' => f.write_str("&#39;")?,
                other => f.write_char(other)?,
            }
        }
        Ok(())
    }
}

pub(super) fn page(world: &World) -> String {
    let mut html = String::from(HEAD);
    // Writing to a string cannot fail.
    let _ = write(&mut html, world);
    html.push_str("<footer><p>The same as JSON: <a href=\"/sandbox/state\">/sandbox/state</a></p></footer></body></html>\n");
    html
}

fn write(html: &mut String, world: &World) -> fmt::Result {
    html.push_str(
        "<main>\n<p class=\"worthless\"><strong>Everything here is worthless.</strong> Keys are public, and coins come from nowhere. Never send \
         real funds to these addresses.</p>\n<noscript><p class=\"worthless\">Scripts are off: reload the page to see what has changed. \
         Every button works.</p></noscript>\n",
    );
    lies::told(html, world)?;
    html.push_str("<div class=\"columns\">\n<section aria-labelledby=\"orders\"><h2 id=\"orders\" tabindex=\"-1\">Orders</h2>\n");
    orders::orders(html, world)?;
    html.push_str(
        "</section>\n<section class=\"side\" aria-labelledby=\"log\"><h2 id=\"log\" tabindex=\"-1\">Log <small>newest first</small></h2>\n",
    );
    log(html, world)?;
    html.push_str("</section></div>\n<section aria-labelledby=\"chains\"><h2 id=\"chains\" tabindex=\"-1\">Chains</h2>\n");
    chains::chains(html, world)?;
    html.push_str("</section>\n<section aria-labelledby=\"service\"><h2 id=\"service\" tabindex=\"-1\">Service and solver</h2>\n");
    switches::settings_form(html, world)?;
    html.push_str("</section>\n<section aria-labelledby=\"lies\"><h2 id=\"lies\" tabindex=\"-1\">Lies</h2>\n");
    lies::switches(html, world)?;
    html.push_str("</section>\n</main>\n");
    Ok(())
}

fn log(html: &mut String, world: &World) -> fmt::Result {
    let lines = world.lines();
    if lines.is_empty() {
        html.push_str("<p class=\"none\">Nothing has happened yet.</p>");
        return Ok(());
    }
    // A scrolling box must be reachable by keyboard.
    html.push_str("<ol class=\"log\" tabindex=\"0\" aria-labelledby=\"log\">");
    for line in lines.iter().rev().take(LINES) {
        html.push_str("<li>");
        for word in line.split(' ') {
            if word.chars().count() > LONGEST_WORD {
                write!(html, "<code>{}</code> ", Text(shortened(word, LONGEST_WORD)))?;
            } else {
                write!(html, "{} ", Text(word))?;
            }
        }
        html.push_str("</li>");
    }
    html.push_str("</ol>");
    Ok(())
}

/// Shortens a long word to its beginning and its end. The details of an order show it whole.
pub(super) fn shortened(word: &str, longest: usize) -> String {
    let count = word.chars().count();
    if count <= longest {
        return word.to_owned();
    }
    let start: String = word.chars().take(10).collect();
    let end: String = word.chars().skip(count.saturating_sub(6)).collect();
    format!("{start}…{end}")
}

/// Returns a whole number with commas between thousands.
pub(super) fn grouped(number: impl Display) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && digits.len().saturating_sub(place) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Returns the service's symbol for an asset, for example `USDC`.
pub(super) fn symbol(world: &World, asset: &str) -> String {
    let listed = world.chain_of(asset).ok().and_then(|chain| chain.asset(asset)?.get("name")?.as_str());
    listed.unwrap_or(asset).to_owned()
}

/// Returns the service's name for a chain, for example `Base`.
pub(super) fn chain_name(world: &World, chain: &str) -> String {
    let listed = world.chain(chain).ok().and_then(|chain| chain.listing.chain.get("name").and_then(Value::as_str));
    listed.unwrap_or(chain).to_owned()
}

/// Returns an amount in whole units, truncated to `places` decimals.
pub(super) fn shown(world: &World, asset: &str, amount: u128, places: usize) -> String {
    let decimals = world.chain_of(asset).ok().and_then(|chain| chain.asset(asset)?.get("decimals")?.as_u64()).unwrap_or(0);
    let width = usize::try_from(decimals).unwrap_or(0);
    let unit = 10_u128.saturating_pow(decimals.try_into().unwrap_or(0)).max(1);
    let (whole, rest) = (amount.checked_div(unit).unwrap_or(0), amount.checked_rem(unit).unwrap_or(0));
    let fraction = if width == 0 { String::new() } else { format!("{rest:0>width$}") };
    let fraction = fraction.get(..width.min(places)).unwrap_or_default().trim_end_matches('0');
    match (whole, fraction) {
        (0, "") if rest > 0 => format!("<0.{:0>places$}", 1),
        (whole, "") => grouped(whole),
        (whole, fraction) => format!("{}.{fraction}", grouped(whole)),
    }
}
