//! Faults on the network between the wallet and everybody else.

use super::{Act, Liar, Lie, Route};

/// A fault of the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Replies are delayed by this many milliseconds.
    Slow(u64),
    /// HTTP 500, before the call has had any effect.
    Error,
    /// HTTP 429, before the call has had any effect.
    TooMany,
    /// The connection ends before the call has had any effect.
    DropBefore,
    /// The connection ends after the call has had its effect, but before the reply.
    DropAfter,
    /// Half of the reply.
    Truncate,
    /// An HTML page, such as proxies send.
    Html,
    /// An endless body.
    Endless,
    /// A redirect to another host.
    Redirect,
}

impl Fault {
    /// How many of a hundred calls are disturbed. Delays always apply.
    pub(super) const PERCENT: usize = 5;
}

const ROUTE: Route = ["base:usdc", "litecoin:ltc"];
const AT_STAKE: &str = "nothing, if every call can be repeated or its effect can be found out";

const fn fault(name: &'static str, about: &'static str, fault: Fault) -> Lie {
    Lie { name, liar: Liar::Network, about, at_stake: AT_STAKE, route: ROUTE, act: Act::Network(fault), conduct: None }
}

pub(super) const LIES: &[Lie] = &[
    fault("net-slow", "every answer is late by 300 ms", Fault::Slow(300)),
    fault("net-500", "one call in twenty fails with HTTP 500", Fault::Error),
    fault("net-429", "one call in twenty fails with HTTP 429", Fault::TooMany),
    fault("net-drop-before", "one connection in twenty ends before the call is served", Fault::DropBefore),
    fault("net-drop-after", "one connection in twenty ends after the call was served", Fault::DropAfter),
    fault("net-truncate", "one answer in twenty is cut in half", Fault::Truncate),
    fault("net-html", "one answer in twenty is a page of HTML", Fault::Html),
    fault("net-endless", "one answer in twenty never ends", Fault::Endless),
    fault("net-redirect", "one call in twenty is redirected to another host", Fault::Redirect),
];
