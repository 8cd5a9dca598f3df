//! What the sandbox knows about a family of chains. Everything that only concerns one family is in its folder.

use std::sync::Arc;

use super::Nodes;
use super::engine::Engine;
use crate::clock::Clock;
use crate::lies::endpoints::Interface;
use crate::lies::{Lie, Variant};

/// A family.
pub(crate) struct Family {
    /// The beginnings of its networks' ids, for example `evm` in `evm:8453`. The first is the family's name.
    pub(crate) prefixes: &'static [&'static str],
    /// The test networks that local clients of the service expect: names in asset ids, with the networks' ids.
    pub(crate) local: &'static [(&'static str, &'static str)],
    /// Starts a chain.
    pub(crate) start: fn(Start<'_>) -> Result<Box<dyn Engine>, String>,
    /// The routes of the tour: swaps in both directions.
    pub(crate) tour: &'static [[&'static str; 2]],
    /// The lies that only concern this family, each group with a number. In the list of lies of one kind, the groups of
    /// all families are sorted by it.
    pub(crate) lies: &'static [(u8, &'static [Lie])],
    /// The lies that all families share, where a route of this family shows them too.
    pub(crate) variants: &'static [Variant],
    /// The interface of its nodes.
    pub(crate) interface: &'static dyn Interface,
}

impl Family {
    pub(crate) fn name(&self) -> &'static str {
        self.prefixes.first().copied().unwrap_or_default()
    }
}

/// A chain to start.
pub(crate) struct Start<'a> {
    /// The name in asset ids, for example `base`.
    pub(crate) name: &'a str,
    /// The network's id, for example `evm:8453`.
    pub(crate) id: &'a str,
    pub(crate) clock: Arc<Clock>,
    pub(crate) nodes: &'a Nodes,
}

impl<'a> Start<'a> {
    /// Returns the id without its prefix.
    pub(crate) fn network(&self) -> &'a str {
        self.id.split_once(':').map_or("", |(_, network)| network)
    }

    /// Returns the network as a number.
    pub(crate) fn number(&self) -> Result<u32, String> {
        self.network().parse().map_err(|_| format!("not a chain id: {}", self.network()))
    }
}
