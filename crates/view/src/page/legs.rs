//! The two legs of an order, and their timelocks as a drawing.

use countersign::json::Value;
use countersign::report::{Timelock, amount};
use countersign::{Registry, U256, Verified};
use maud::{Markup, html};

use super::Documents;
use super::place::find;
use crate::sentence::short_amount;

/// What both legs are, as far as it is known.
#[derive(Debug)]
pub(super) struct Legs {
    pub(super) source: LegView,
    pub(super) destination: LegView,
    pub(super) secret_hash: Option<String>,
}

#[derive(Debug)]
pub(super) struct LegView {
    pub(super) chain: String,
    pub(super) amount: String,
    pub(super) timelock: Option<Timelock>,
}

/// Returns the legs of an order, or of the request if the order is not known.
pub(super) fn legs(order: Option<&Verified>, documents: Documents<'_>, registry: &Registry) -> Option<Legs> {
    let Some(order) = order else {
        let leg = |name: &str| {
            let text = |key: &str| match find(documents.request, &[name.to_owned(), key.to_owned()]) {
                Some(Value::String(text)) => Some(text.as_ref()),
                _ => None,
            };
            let asset = registry.asset(text("asset")?)?;
            let amount = asset.amount(text("amount")?.parse::<U256>().ok()?);
            Some(LegView { chain: asset.chain.title().to_owned(), amount: short_amount(&amount), timelock: None })
        };
        return Some(Legs { source: leg("source")?, destination: leg("destination")?, secret_hash: None });
    };
    let terms = order.terms();
    let solver = terms.record.and_then(|record| Some(registry.asset(terms.destination)?.chain.timelock(record.destination_swap.timelock)));
    Some(Legs {
        source: LegView { chain: terms.source_chain_title.to_owned(), amount: short_amount(&terms.pay), timelock: terms.timelock },
        destination: LegView {
            chain: terms.destination_chain_title.to_owned(),
            amount: short_amount(&terms.receive_at_least),
            timelock: solver,
        },
        secret_hash: terms.secret_hash.map(|hash| hex::encode(hash.0)),
    })
}

pub(super) fn duration(timelock: &Timelock) -> String {
    let (count, unit) = amount::round_duration(timelock.nominal_millis);
    format!("about {count} {}", unit.name())
}

/// Draws until when each side is locked: two bars from the same start. In the user's bar a line shows where the solver's ends.
pub(super) fn timeline(legs: &Legs) -> Option<Markup> {
    let yours = legs.source.timelock?;
    let solver = legs.destination.timelock;
    let longest = yours.nominal_millis.max(solver.map_or(0, |solver| solver.nominal_millis)).max(1);
    let percent = |timelock: &Timelock| {
        let percent = timelock.nominal_millis.saturating_mul(100).checked_div(longest).unwrap_or_default();
        format!("{}%", percent.max(1))
    };
    let bar = |class: &str, timelock: &Timelock, until: Option<&Timelock>, text: &str| {
        html! {
            div {
                svg aria-hidden="true" {
                    rect class=(class) width=(percent(timelock)) height="100%" rx="4" {}
                    @if let Some(until) = until { line.gap x1=(percent(until)) x2=(percent(until)) y1="0" y2="100%" {} }
                }
                p { (text) " after " (timelock.units) " " (timelock.unit()) ", " (duration(timelock)) }
            }
        }
    };
    let gap = solver.map(|solver| yours.nominal_millis.saturating_sub(solver.nominal_millis));
    Some(html! {
        figure.timeline {
            @if let Some(solver) = &solver {
                (bar("theirs", solver, None, "The solver can take its payment back"))
            }
            (bar("yours", &yours, solver.as_ref(), "You can take your payment back"))
            @if let Some(gap) = gap {
                @let (count, unit) = amount::round_duration(gap);
                figcaption { "Once the solver's payment is redeemed, the secret is public; the gap of about " (count) " " (unit.name()) " is the time in which it redeems yours. Times are estimates from nominal block times." }
            } @else {
                figcaption { "The solver's timelock is in the order record, which was not given. Times are estimates from nominal block times." }
            }
        }
    })
}
