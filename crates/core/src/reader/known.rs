//! What is known about an endpoint from earlier readings.

use std::collections::BTreeMap;

use countersign_chains::BlockHeight;

use super::Fault;
use crate::json::{self, Cursor};
use crate::report::Refusal;
use crate::sort;

/// The maximum number of facts, of hints and of searches that are kept for one endpoint. They are cleared when there are more.
const MAX_FACTS: usize = 4_096;
/// The maximum length in bytes of a fact or hint.
const MAX_FACT: usize = 1_024;

/// What an endpoint showed in earlier readings that the quorum agreed with, and how far its searches have come. The caller keeps it between
/// readings; losing it costs no safety except that an endpoint which falls behind is noticed later.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Known {
    height: BlockHeight,
    is_rpc: bool,
    facts: BTreeMap<String, Vec<u8>>,
    hints: BTreeMap<String, Vec<u8>>,
    progress: BTreeMap<String, Vec<u8>>,
}

impl Known {
    /// Sets whether a Bitcoin-like endpoint is a node's own RPC. By default it is an Esplora server.
    #[must_use]
    pub const fn with_rpc(mut self, is_rpc: bool) -> Self {
        self.is_rpc = is_rpc;
        self
    }

    /// Sets the greatest height that the endpoint has shown.
    #[must_use]
    pub const fn with_height(mut self, height: BlockHeight) -> Self {
        self.height = height;
        self
    }

    /// Adds a fact that later readings must find unchanged. A family chooses its name.
    #[must_use]
    pub fn with_fact(mut self, name: impl Into<String>, value: impl Into<Vec<u8>>) -> Self {
        self.facts.insert(name.into(), value.into());
        self
    }

    /// Adds a hint from which later readings start, and which they may replace. A family chooses its name.
    #[must_use]
    pub fn with_hint(mut self, name: impl Into<String>, value: impl Into<Vec<u8>>) -> Self {
        self.hints.insert(name.into(), value.into());
        self
    }

    /// Sets how far a search has come that takes several readings of this endpoint. A family chooses its name.
    #[must_use]
    pub fn with_progress(mut self, name: impl Into<String>, value: impl Into<Vec<u8>>) -> Self {
        self.progress.insert(name.into(), value.into());
        self
    }

    /// Returns the progress of searches alone. It may be kept even if the quorum does not agree: it says only where the endpoint is to be
    /// asked next.
    #[must_use]
    pub fn progress_only(&self) -> Self {
        Self { progress: self.progress.clone(), ..Self::default() }
    }

    /// Returns whether a Bitcoin-like endpoint is a node's own RPC.
    #[must_use]
    pub const fn is_rpc(&self) -> bool {
        self.is_rpc
    }

    /// Returns the greatest height that the endpoint has shown.
    #[must_use]
    pub const fn height(&self) -> BlockHeight {
        self.height
    }

    /// Returns a fact by its name.
    #[must_use]
    pub fn fact(&self, name: &str) -> Option<&[u8]> {
        self.facts.get(name).map(Vec::as_slice)
    }

    /// Returns a hint by its name.
    #[must_use]
    pub fn hint(&self, name: &str) -> Option<&[u8]> {
        self.hints.get(name).map(Vec::as_slice)
    }

    /// Returns the progress of a search by its name.
    #[must_use]
    pub fn progress(&self, name: &str) -> Option<&[u8]> {
        self.progress.get(name).map(Vec::as_slice)
    }

    /// Parses what [`Known::to_json`] wrote.
    ///
    /// # Errors
    ///
    /// A [`Refusal`] at the member that is malformed or unknown.
    pub fn from_json(text: &[u8]) -> Result<Self, Refusal> {
        let value = json::parse(text)?;
        let root = Cursor::root(&value, "");
        let members = root.object()?;
        members.only(&["height", "is_rpc", "facts", "hints", "progress"])?;
        let mut known = Self::default().with_height(members.need("height")?.integer()?.into()).with_rpc(members.need("is_rpc")?.bool()?);
        (known.facts, known.hints) = (read_named(&members.need("facts")?)?, read_named(&members.need("hints")?)?);
        known.progress = members.get("progress").map(|progress| read_named(&progress)).transpose()?.unwrap_or_default();
        Ok(known)
    }

    /// Writes what is known as JSON, to keep it outside the process.
    #[must_use]
    pub fn to_json(&self) -> String {
        let named = |values: &BTreeMap<String, Vec<u8>>| -> BTreeMap<String, String> {
            sort::map(values.iter().map(|(name, value)| (name.clone(), hex::encode_prefixed(value))))
        };
        let (facts, hints, progress) = (named(&self.facts), named(&self.hints), named(&self.progress));
        serde_json::json!({"height": self.height, "is_rpc": self.is_rpc, "facts": facts, "hints": hints, "progress": progress}).to_string()
    }

    /// Adds what a later reading has shown. A fact that is already known is kept; hints and progress are replaced.
    pub fn learn(&mut self, later: &Self) {
        self.height = self.height.max(later.height);
        let parts = [(&mut self.facts, &later.facts), (&mut self.hints, &later.hints), (&mut self.progress, &later.progress)];
        for (own, added) in parts {
            if own.len().saturating_add(added.len()) > MAX_FACTS {
                own.clear();
            }
        }
        self.hints.extend(later.hints.clone());
        self.progress.extend(later.progress.clone());
        for (name, value) in &later.facts {
            self.facts.entry(name.clone()).or_insert_with(|| value.clone());
        }
    }

    /// Requires that the newest block has not gone back by more than `tolerance` blocks. If it has, the node is stale, or one of several
    /// behind the same address. A step back of a few blocks may be a reorganization.
    ///
    /// # Errors
    ///
    /// [`Fault::WentBack`].
    pub const fn check_height(&self, now: BlockHeight, tolerance: u64) -> Result<(), Fault> {
        if now.saturating_add(tolerance).get() < self.height.get() { Err(Fault::WentBack { before: self.height, now }) } else { Ok(()) }
    }
}

fn read_named(cursor: &Cursor<'_, '_>) -> Result<BTreeMap<String, Vec<u8>>, Refusal> {
    let members = cursor.object()?;
    let mut named = BTreeMap::new();
    for name in members.keys().take(MAX_FACTS) {
        named.insert(name.to_owned(), members.need(name)?.hex_bytes(MAX_FACT)?);
    }
    Ok(named)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::arithmetic_side_effects, reason = "a test ends by panicking")]

    use super::*;

    #[test]
    fn what_is_known_is_kept_and_bounded() {
        let mut known =
            Known::default().with_height(10.into()).with_fact("class 1", *b"a").with_hint("outpoint", *b"d").with_progress("blocks", *b"f");
        known.learn(
            &Known::default()
                .with_height(5.into())
                .with_fact("class 1", *b"b")
                .with_fact("class 2", *b"c")
                .with_hint("outpoint", *b"e")
                .with_progress("blocks", *b"g"),
        );
        assert_eq!(known.hint("outpoint"), Some(&b"e"[..]), "a hint is replaced");
        assert_eq!(known.progress("blocks"), Some(&b"g"[..]), "progress is replaced");
        assert_eq!(known.progress_only(), Known::default().with_progress("blocks", *b"g"));
        assert_eq!((known.height().get(), known.fact("class 1"), known.fact("class 2")), (10, Some(&b"a"[..]), Some(&b"c"[..])));
        assert_eq!(Known::from_json(known.to_json().as_bytes()).unwrap(), known);
        for text in [
            "{}",
            "[]",
            r#"{"height": -1, "is_rpc": false, "facts": {}, "hints": {}}"#,
            r#"{"height": 1, "is_rpc": false, "facts": {"a": "0"}, "hints": {}}"#,
        ] {
            assert!(Known::from_json(text.as_bytes()).is_err(), "{text}");
        }
        assert!(Known::default().with_rpc(true).is_rpc() && !known.is_rpc());
        for (added, is_kept) in [(MAX_FACTS - 1, true), (MAX_FACTS, false)] {
            let mut full = Known::default().with_hint("first", *b"a");
            full.learn(&(0..added).fold(Known::default(), |known, number| known.with_hint(number.to_string(), *b"b")));
            assert_eq!((full.hint("first").is_some(), full.hint("0")), (is_kept, Some(&b"b"[..])), "{added}");
        }
        assert_eq!(known.check_height(8.into(), 2), Ok(()));
        assert_eq!(known.check_height(7.into(), 2), Err(Fault::WentBack { before: 10.into(), now: 7.into() }));
    }
}
