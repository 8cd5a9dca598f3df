//! Lies in how the service serves its calls, whatever the answers say.

use serde_json::{Value, json};

use super::records::put;
use super::{Act, Conduct, Liar, Lie, Route};
use crate::http::{Reply, Request};

/// How the service serves a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServiceLie {
    /// After the payment, it accepts calls and never answers them.
    Hangs,
    /// After the payment, it closes connections without an answer.
    Gone,
    /// After the payment, every answer is an HTML page.
    Html,
    /// After the payment, it denies that the order exists.
    Forgets,
    /// The answer to a new order reports success, but also contains an error.
    OkBesideError,
    /// The answer to a new order consists of two documents.
    TwoDocuments,
    /// The answer to a new order has a duplicate key.
    TwiceNamed,
    /// The answer to a new order is nested too deeply.
    Deep,
    /// A quote offers half of the market price.
    PoorQuote,
    /// The order's id is a path.
    PathInId,
    /// The list of orders has a second order with the same secret hash.
    ListsTwin,
    /// Every page of the list of orders claims that another one follows.
    ListsForever,
    /// The list of orders is empty.
    ListsNothing,
}

impl ServiceLie {
    pub(super) fn applies(self, request: &Request, is_paid: bool) -> bool {
        match self {
            Self::Hangs | Self::Gone | Self::Html | Self::Forgets => is_paid && request.path.starts_with("/v2/orders/"),
            Self::PoorQuote => request.path == "/v2/quote",
            Self::ListsTwin | Self::ListsForever | Self::ListsNothing => request.method == "GET" && request.path == "/v2/orders",
            _ => request.method == "POST" && request.path == "/v2/orders",
        }
    }

    /// Returns the answer that the service gives in place of the right one, or `None` where it gives none.
    #[must_use]
    pub fn change(self, reply: Reply) -> Option<Reply> {
        let text = String::from_utf8_lossy(&reply.body).into_owned();
        let changed = match self {
            Self::Hangs | Self::Gone => return None,
            Self::Html => return Some(Reply::new(200, "text/html", "<html><body>We will be back soon.</body></html>")),
            Self::Forgets => return Some(Reply::new(404, "application/json", r#"{"status":"Error","error":"order not found"}"#)),
            Self::OkBesideError => text.replacen('{', r#"{"error":"no liquidity","#, 1),
            Self::TwoDocuments => format!("{text}{text}"),
            Self::TwiceNamed => text.replacen(r#""result":{"#, &format!(r#""result":{{"order_id":"{}","#, "0".repeat(64)), 1),
            Self::Deep => format!("{}{}", "[".repeat(100_000), "]".repeat(100_000)),
            Self::PoorQuote => return Some(changed(&reply, halve)),
            Self::ListsTwin => return Some(changed(&reply, twin)),
            Self::ListsForever => return Some(changed(&reply, lengthen)),
            Self::ListsNothing => return Some(changed(&reply, |list| put(list, "data", json!([])))),
            Self::PathInId => text.replacen(r#""order_id":""#, r#""order_id":"../../../"#, 1),
        };
        Some(Reply::new(reply.status, "application/json", changed))
    }
}

/// Returns the reply with another result.
fn changed(reply: &Reply, change: impl FnOnce(&mut Value)) -> Reply {
    let Ok(mut value) = serde_json::from_slice::<Value>(&reply.body) else { return reply.clone() };
    if let Some(result) = value.get_mut("result") {
        change(result);
    }
    Reply::json(reply.status, &value)
}

/// Halves the destination amounts of quotes.
fn halve(quotes: &mut Value) {
    for quote in quotes.as_array_mut().into_iter().flatten() {
        if let Some(amount) = quote.pointer_mut("/destination/amount") {
            let half = amount.as_str().and_then(|text| text.parse::<u128>().ok()).unwrap_or(0) / 2;
            *amount = json!(half.to_string());
        }
    }
}

/// Lists the newest order a second time, under another id.
fn twin(list: &mut Value) {
    if let Some(orders) = list.get_mut("data").and_then(Value::as_array_mut)
        && let Some(mut twin) = orders.first().cloned()
    {
        put(&mut twin, "order_id", json!("17".repeat(32)));
        orders.push(twin);
    }
}

fn lengthen(list: &mut Value) {
    let page = list.get("page").and_then(Value::as_u64).unwrap_or(1);
    put(list, "total_pages", json!(page.saturating_add(1)));
}

const ROUTE: Route = ["base:usdc", "litecoin:ltc"];
const PAYMENT: &str = "the whole payment, if the swap cannot end without the service";

const fn lie(name: &'static str, about: &'static str, at_stake: &'static str, lie: ServiceLie) -> Lie {
    Lie { name, liar: Liar::Service, about, at_stake, route: ROUTE, act: Act::Service(lie), conduct: None }
}

#[rustfmt::skip]
pub(super) const LIES: &[Lie] = &[
    lie("service-hangs", "the service answers nothing any more once the source is paid", PAYMENT, ServiceLie::Hangs),
    lie("service-gone", "the service is gone once the source is paid", PAYMENT, ServiceLie::Gone),
    lie("service-gone-with-solver", "service and solver are gone once the source is paid", PAYMENT, ServiceLie::Gone).while_solver(Conduct::NeverPays),
    lie("service-html", "the service answers with a page of HTML once the source is paid", PAYMENT, ServiceLie::Html),
    lie("service-forgets", "the service knows no such order once the source is paid", PAYMENT, ServiceLie::Forgets),
    lie("service-error-beside-ok", "a new order is both accepted and refused", "the payment of an order that nobody serves", ServiceLie::OkBesideError),
    lie("service-two-documents", "the answer to a new order is two documents", "whatever the wallet reads in the second", ServiceLie::TwoDocuments),
    lie("service-duplicate-key", "the answer to a new order names one member twice", "whatever the wallet reads in the second", ServiceLie::TwiceNamed),
    lie("service-deep", "the answer to a new order is nested without end", "the wallet's process", ServiceLie::Deep),
    lie("service-path-in-id", "the order's id is a path", "the application id, sent elsewhere", ServiceLie::PathInId),
    lie("service-lists-twin", "the list of the user's orders has another one with the same secret hash", "nothing; where it is true, two orders share one secret", ServiceLie::ListsTwin),
    lie("service-lists-forever", "after each page of the list of orders there is one more", "the wallet's time", ServiceLie::ListsForever),
    lie("service-lists-nothing", "the list of orders is empty", "nothing", ServiceLie::ListsNothing),
    lie("service-poor-quote", "the quote pays half of what the market pays", "half of the swap", ServiceLie::PoorQuote),
];
