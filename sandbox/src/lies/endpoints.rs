//! The lies of one endpoint of a chain. The other two endpoints are honest.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use super::components::{self, Component, Pace};
use super::{Act, Conduct, Liar, Lie, Route};
use crate::http::{Reply, Request};

/// How an endpoint lies.
#[derive(Debug, Clone, Copy)]
pub enum EndpointLie {
    /// Repeats its first answers for ever.
    Stale,
    /// Accepts transactions and does not relay them.
    Swallows,
    /// Fails every call.
    Fails,
    /// Delays every call by a second and a half.
    Slow,
    /// Never answers.
    Hangs,
    /// Cuts its answers in half.
    Half,
    /// Answers with an HTML page.
    Html,
    /// Claims to be on another chain.
    OtherChain,
    /// Claims a chain that is a hundred thousand blocks longer than the true one.
    Ahead,
    /// Denies that anything is locked.
    Denies,
    /// Claims a lock that does not exist.
    Invents,
    /// Changes components of a transaction.
    Component(&'static [Component]),
    /// Changes the times of blocks.
    Pace(Pace),
}

/// What the lies of an endpoint depend on: the interface of a family's nodes. An endpoint is honest about what its
/// family leaves out.
pub(crate) trait Interface: Sync {
    /// Returns whether a call submits a transaction.
    fn submits(&self, request: &Request) -> bool;

    /// Returns how a node answers when it has accepted a transaction, or `None` where computing the id takes a node.
    fn accepted(&self, _: &Request) -> Option<Reply> {
        None
    }

    /// Makes a reply that of a node of another chain.
    fn on_other_chain(&self, _: &Request, reply: Reply) -> Reply {
        reply
    }

    /// Makes the chain [`AHEAD`] blocks longer.
    fn ahead(&self, _: &Request, reply: Reply) -> Reply {
        reply
    }

    /// Hides what is locked.
    fn without_locks(&self, _: &Request, reply: Reply) -> Reply {
        reply
    }

    /// Returns a payment that does not exist, if a call asks for payments.
    fn invented(&self, _: &Request) -> Option<Reply> {
        None
    }

    /// Changes a component of a transaction in a reply. `answer` asks the node.
    fn with_component(&self, component: Component, request: &Request, reply: Reply, answer: &dyn Fn(&Request) -> Reply) -> Reply {
        component.tell(request, reply, answer)
    }

    /// Changes the times in a reply.
    fn with_times(&self, _: &Request, reply: Reply, told: &dyn Fn(u64) -> u64) -> Reply {
        components::with_times(reply, told)
    }
}

/// How many blocks a chain seems to be longer than it is.
pub(crate) const AHEAD: u64 = 100_000;

impl EndpointLie {
    /// Returns which of the three endpoints lies. A value that a wallet takes from the first endpoint alone is under
    /// that endpoint's control.
    pub(super) const fn place(self) -> usize {
        if matches!(self, Self::Component(_) | Self::Pace(_)) { 0 } else { 2 }
    }

    /// Returns how long a call waits.
    pub(super) const fn delay(self) -> Option<Duration> {
        match self {
            Self::Slow => Some(Duration::from_millis(1_500)),
            Self::Hangs => Some(Duration::from_secs(120)),
            _ => None,
        }
    }

    pub(super) fn tell(
        self,
        interface: &dyn Interface,
        chain: &str,
        request: &Request,
        now_millis: u64,
        remembered: &mut BTreeMap<String, Reply>,
        answer: impl Fn(&Request) -> Reply,
    ) -> Reply {
        let submits = interface.submits(request);
        match self {
            Self::Stale if !submits => {
                let key = format!("{chain} {} {} {}", request.path, request.query, without_id(&request.body));
                let first = remembered.entry(key).or_insert_with(|| answer(request)).clone();
                with_id(first, &request.body)
            }
            Self::Swallows if submits => {
                let refused = || Reply::text(503, "accepted, said the endpoint, and did nothing");
                interface.accepted(request).unwrap_or_else(refused)
            }
            Self::Fails => Reply::text(500, "internal error"),
            Self::Html => Reply::new(200, "text/html", "<html><body>Upgrade your plan to use this endpoint.</body></html>"),
            Self::Half => {
                let mut reply = answer(request);
                reply.body.truncate(reply.body.len() / 2);
                reply
            }
            Self::OtherChain => interface.on_other_chain(request, answer(request)),
            Self::Ahead => interface.ahead(request, answer(request)),
            Self::Denies if !submits => interface.without_locks(request, answer(request)),
            Self::Component(components) if !submits => {
                components.iter().fold(answer(request), |reply, component| interface.with_component(*component, request, reply, &answer))
            }
            Self::Pace(pace) if !submits => interface.with_times(request, answer(request), &|time| pace.told(time, now_millis)),
            Self::Invents => interface.invented(request).unwrap_or_else(|| answer(request)),
            _ => answer(request),
        }
    }
}

/// Returns the answer to a JSON-RPC call that submits a transaction, given what `result` makes of the call.
pub(crate) fn submitted(request: &Request, method: &str, result: impl FnOnce(&Value) -> Option<Value>) -> Option<Reply> {
    let call: Value = serde_json::from_slice(&request.body).ok()?;
    let result = Some(&call).filter(|call| call.get("method").and_then(Value::as_str) == Some(method)).and_then(result)?;
    Some(Reply::json(200, &json!({ "jsonrpc": "2.0", "id": call.get("id"), "result": result })))
}

/// Returns the reply with some of its text replaced, if the request asks for something.
pub(crate) fn replaced(request: &Request, asked: &str, reply: Reply, from: &str, to: &str) -> Reply {
    if !asks(request, asked) {
        return reply;
    }
    let text = String::from_utf8_lossy(&reply.body).replace(from, to);
    Reply { body: text.into_bytes(), ..reply }
}

/// Returns whether a text is in the body of a request.
pub(crate) fn asks(request: &Request, text: &str) -> bool {
    String::from_utf8_lossy(&request.body).contains(text)
}

/// Returns a JSON-RPC body without the members that differ between calls.
fn without_id(body: &[u8]) -> String {
    let Ok(mut value) = serde_json::from_slice::<Value>(body) else { return hex::encode(body) };
    if let Some(members) = value.as_object_mut() {
        members.remove("id");
    }
    value.to_string()
}

/// Returns an old reply with the id of a new call.
fn with_id(reply: Reply, body: &[u8]) -> Reply {
    let id = serde_json::from_slice::<Value>(body).ok().and_then(|call| call.get("id").cloned());
    let answer = serde_json::from_slice::<Value>(&reply.body).ok().filter(|answer| answer.get("id").is_some());
    match (id, answer) {
        (Some(id), Some(mut answer)) => {
            if let Some(place) = answer.get_mut("id") {
                *place = id;
            }
            Reply::json(reply.status, &answer)
        }
        _ => reply,
    }
}

const ROUTE: Route = ["base:usdc", "litecoin:ltc"];
const ENOUGH: &str = "nothing, if the other two are enough";
const SECRET: &str = "the whole payment: the secret goes out and the redemption is never mined";

const fn lie(name: &'static str, about: &'static str, at_stake: &'static str, route: Route, lie: EndpointLie) -> Lie {
    Lie { name, liar: Liar::Endpoint, about, at_stake, route, act: Act::Endpoint(lie), conduct: None }
}

#[rustfmt::skip]
pub(super) const LIES: &[Lie] = &[
    lie("endpoint-fails", "one endpoint of three fails at everything", ENOUGH, ROUTE, EndpointLie::Fails),
    lie("endpoint-stale", "one endpoint of three repeats its first answers", ENOUGH, ROUTE, EndpointLie::Stale),
    lie("endpoint-slow", "one endpoint of three answers late by a second and a half", ENOUGH, ROUTE, EndpointLie::Slow),
    lie("endpoint-hangs", "one endpoint of three answers nothing", ENOUGH, ROUTE, EndpointLie::Hangs),
    lie("endpoint-half", "one endpoint of three cuts its answers in half", ENOUGH, ROUTE, EndpointLie::Half),
    lie("endpoint-html", "one endpoint of three has a page of HTML for everything", ENOUGH, ROUTE, EndpointLie::Html),
    lie("endpoint-other-chain", "one endpoint of three is that of another chain", "what the user has there", ROUTE, EndpointLie::OtherChain),
    lie("endpoint-ahead", "one endpoint of three invents a height", "the swap, if its timelocks seem to be over", ROUTE, EndpointLie::Ahead),
    lie("endpoint-denies", "one endpoint of three knows nothing of what is locked", "the swap, if it is given up", ROUTE, EndpointLie::Denies),
    lie("endpoint-invents", "one endpoint of three shows a payment that is not there", "the whole payment: a wallet that believes it shows the secret", ROUTE, EndpointLie::Invents).while_solver(Conduct::NeverPays),
    lie("endpoint-swallows", "one endpoint of three accepts transactions and keeps them", SECRET, ROUTE, EndpointLie::Swallows),
];
