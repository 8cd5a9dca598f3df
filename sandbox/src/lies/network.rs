//! What happens to calls between the wallet and everybody.

use super::{Act, Liar, Lie};

/// A fault of the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Answers come late by so many milliseconds.
    Slow(u64),
    /// HTTP 500 before anything is done.
    Error,
    /// HTTP 429 before anything is done.
    TooMany,
    /// The connection ends before anything is done.
    DropBefore,
    /// The connection ends after everything is done.
    DropAfter,
    /// Half of the answer.
    Truncate,
    /// A page of HTML, as a proxy sends it.
    Html,
    /// A body without end.
    Endless,
    /// A redirect to another host.
    Redirect,
}

impl Fault {
    /// How many calls of a hundred something happens to. What is slow is always slow.
    pub(super) const PERCENT: usize = 5;
}

const ROUTE: [&str; 2] = ["base:usdc", "litecoin:ltc"];
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
