//! The routes that the service accepts (`GET /v2/policy`).
//!
//! Rules are `A -> B` or `A <-> B`. A and B have the form `chain:symbol`, in upper or lower case; a part that is `*` or empty
//! matches anything (`docs/spec/service.md#routes`). Two interpretations of the same rules are known, and they differ:
//!
//! | step | documentation | published client |
//! |---|---|---|
//! | same asset | no | no |
//! | isolation groups | if either asset is in a group, one group must contain both | the most specific rules that name either asset must match this route |
//! | whitelist | a match allows the route | a match only overrides the blacklist |
//! | blacklist | a match forbids the route | a match forbids the route, unless the whitelist matches too |
//! | otherwise | the default | the default |
//!
//! A route is allowed here only if both interpretations allow it. [`Verdict::differs`] says whether they disagree.
//!
//! ```
//! use countersign_client::route::Rule;
//!
//! assert!(Rule::parse("bitcoin:BTC -> starknet:*").is_some());
//! assert!(Rule::parse("bitcoin => starknet").is_none());
//! ```

use std::fmt;

use countersign::json::Cursor;
use countersign::wire::Read;
use countersign::{AssetId, Code, Refusal};
use serde::Serialize;

/// The service's rules for routes.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Routes {
    /// Whether a route that no rule matches is allowed.
    pub open: bool,
    /// Assets that can only be swapped with each other.
    pub isolation_groups: Vec<Rule>,
    /// Routes that are not allowed.
    pub blacklist_pairs: Vec<Rule>,
    /// Routes that are allowed although the blacklist matches them.
    pub whitelist_overrides: Vec<Rule>,
}

/// One rule of the form `A -> B` or `A <-> B`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rule {
    /// The rule as the service writes it.
    pub text: String,
    from: Pattern,
    to: Pattern,
    both_ways: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Pattern {
    /// Lower case; `None` matches any.
    chain: Option<String>,
    /// Lower case; `None` matches any.
    symbol: Option<String>,
}

/// The result of checking a route.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Verdict {
    /// Whether both interpretations allow it.
    pub allowed: bool,
    /// Whether the interpretations differ. The stricter one holds.
    pub differs: bool,
    /// The step that decided.
    pub because: Reason,
    /// The rule that decided, as the service writes it; `None` if no rule did.
    pub rule: Option<String>,
}

/// The step that decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Reason {
    /// Both assets are the same.
    SameAsset,
    /// An asset can only be swapped within its group.
    Isolation,
    /// A blacklist rule matches the route.
    Blacklist,
    /// A whitelist rule matches the route.
    Whitelist,
    /// No rule matches the route, so the default holds.
    Default,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::SameAsset => "both assets are the same",
            Self::Isolation => "an asset can only be swapped within its isolation group",
            Self::Blacklist => "the route is on the blacklist",
            Self::Whitelist => "the route is on the whitelist",
            Self::Default => "no rule matches the route, so the default holds",
        })
    }
}

type Reading<'r> = (bool, Reason, Option<&'r Rule>);

impl Routes {
    /// Checks whether the service accepts swaps from one asset to another, by both interpretations.
    #[must_use]
    pub fn check(&self, from: &AssetId, to: &AssetId) -> Verdict {
        let (documentation, client) = (self.documentation(from, to), self.client(from, to));
        // The reported reason is that of the stricter interpretation.
        let (allowed, because, rule) = if documentation.0 { client } else { documentation };
        let rule = rule.map(|rule| rule.text.clone());
        Verdict { allowed, differs: documentation.0 != client.0, because, rule }
    }

    fn documentation(&self, from: &AssetId, to: &AssetId) -> Reading<'_> {
        if from == to {
            return (false, Reason::SameAsset, None);
        }
        let group = |asset: &AssetId| self.isolation_groups.iter().find(|rule| rule.names(asset));
        if let Some(rule) = group(from).or_else(|| group(to))
            && !self.isolation_groups.iter().any(|rule| rule.names(from) && rule.names(to))
        {
            return (false, Reason::Isolation, Some(rule));
        }
        if let Some(rule) = find(&self.whitelist_overrides, from, to) {
            return (true, Reason::Whitelist, Some(rule));
        }
        match find(&self.blacklist_pairs, from, to) {
            Some(rule) => (false, Reason::Blacklist, Some(rule)),
            None => (self.open, Reason::Default, None),
        }
    }

    fn client(&self, from: &AssetId, to: &AssetId) -> Reading<'_> {
        if from == to {
            return (false, Reason::SameAsset, None);
        }
        // Every rule of the most specific kind must be this route: which of several takes precedence is not documented.
        let naming = || self.isolation_groups.iter().filter(|rule| rule.names(from) || rule.names(to));
        if let Some(specific) = naming().map(Rule::weight).max()
            && let Some(rule) = naming().filter(|rule| rule.weight() == specific).find(|rule| !rule.is_route(from, to))
        {
            return (false, Reason::Isolation, Some(rule));
        }
        match find(&self.blacklist_pairs, from, to) {
            Some(rule) => match find(&self.whitelist_overrides, from, to) {
                Some(rule) => (true, Reason::Whitelist, Some(rule)),
                None => (false, Reason::Blacklist, Some(rule)),
            },
            None => (self.open, Reason::Default, None),
        }
    }
}

fn find<'r>(rules: &'r [Rule], from: &AssetId, to: &AssetId) -> Option<&'r Rule> {
    rules.iter().find(|rule| rule.is_route(from, to))
}

impl Rule {
    /// Parses a rule; `None` for text of any other form, because it is then unknown which routes it forbids.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (from, to, both_ways) = match text.split_once("<->") {
            Some((from, to)) => (from, to, true),
            None => text.split_once("->").map(|(from, to)| (from, to, false))?,
        };
        Some(Self { text: text.to_owned(), from: Pattern::parse(from)?, to: Pattern::parse(to)?, both_ways })
    }

    fn names(&self, asset: &AssetId) -> bool {
        self.from.is(asset) || self.to.is(asset)
    }

    fn is_route(&self, from: &AssetId, to: &AssetId) -> bool {
        (self.from.is(from) && self.to.is(to)) || (self.both_ways && self.from.is(to) && self.to.is(from))
    }

    /// Returns how specific the rule is: how many of its four parts are not wildcards.
    fn weight(&self) -> usize {
        [&self.from, &self.to].into_iter().flat_map(|side| [&side.chain, &side.symbol]).flatten().count()
    }
}

impl Pattern {
    fn parse(text: &str) -> Option<Self> {
        let part = |part: &str| {
            let part = part.trim();
            let plain = part.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.'));
            match part {
                "" | "*" => Some(None),
                _ => plain.then(|| Some(part.to_ascii_lowercase())),
            }
        };
        let (chain, symbol) = match text.trim() {
            "*" => ("*", "*"),
            text => text.split_once(':')?,
        };
        Some(Self { chain: part(chain)?, symbol: part(symbol)? })
    }

    fn is(&self, asset: &AssetId) -> bool {
        self.chain.as_deref().is_none_or(|chain| chain == asset.chain())
            && self.symbol.as_deref().is_none_or(|symbol| symbol == asset.symbol())
    }
}

impl Read for Routes {
    fn read(node: Cursor<'_, '_>) -> Result<Self, Refusal> {
        let members = node.object()?;
        let default = members.need("default")?;
        let open = match default.text()? {
            "open" => true,
            "closed" => false,
            _ => return Err(default.refuse(Code::WrongType).with_expected("open or closed")),
        };
        let rules = |key| members.get(key).map(Read::read).transpose().map(Option::unwrap_or_default);
        Ok(Self {
            open,
            isolation_groups: rules("isolation_groups")?,
            blacklist_pairs: rules("blacklist_pairs")?,
            whitelist_overrides: rules("whitelist_overrides")?,
        })
    }
}

impl Read for Rule {
    fn read(node: Cursor<'_, '_>) -> Result<Self, Refusal> {
        Self::parse(node.text()?).ok_or_else(|| node.refuse(Code::WrongType).with_expected("A -> B or A <-> B"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(texts: &[&str]) -> Vec<Rule> {
        texts.iter().map(|text| Rule::parse(text).expect(text)).collect()
    }

    fn routes(open: bool, isolation: &[&str], blacklist: &[&str], whitelist: &[&str]) -> Routes {
        Routes { open, isolation_groups: rules(isolation), blacklist_pairs: rules(blacklist), whitelist_overrides: rules(whitelist) }
    }

    fn judge(routes: &Routes, from: &str, to: &str) -> (bool, bool, Reason) {
        let verdict = routes.check(&AssetId::parse(from).unwrap(), &AssetId::parse(to).unwrap());
        (verdict.allowed, verdict.differs, verdict.because)
    }

    // The routes are those of the documentation's examples.
    #[test]
    fn the_documented_example() {
        let routes = routes(true, &["ethereum:SEED <-> arbitrum:SEED"], &["bitcoin:BTC -> starknet:*"], &["ethereum:WBTC -> bitcoin:BTC"]);
        for (from, to, verdict) in [
            ("ethereum:seed", "arbitrum:seed", (true, false, Reason::Default)),
            ("arbitrum:seed", "ethereum:seed", (true, false, Reason::Default)),
            ("ethereum:seed", "bitcoin:btc", (false, false, Reason::Isolation)),
            ("bitcoin:btc", "ethereum:seed", (false, false, Reason::Isolation)),
            ("bitcoin:btc", "starknet:wbtc", (false, false, Reason::Blacklist)),
            ("starknet:wbtc", "bitcoin:btc", (true, false, Reason::Default)),
            ("ethereum:wbtc", "bitcoin:btc", (true, false, Reason::Default)),
            ("bitcoin:btc", "bitcoin:btc", (false, false, Reason::SameAsset)),
        ] {
            let got = judge(&routes, from, to);
            assert_eq!((got.0, got.2 == verdict.2 || got.0), (verdict.0, true), "{from} {to}");
        }
    }

    #[test]
    fn where_the_interpretations_differ_the_stricter_one_holds() {
        // Whitelisted, not blacklisted, default closed: the documentation says yes, the client no.
        let closed = routes(false, &[], &[], &["a:x -> b:y"]);
        assert_eq!(judge(&closed, "a:x", "b:y"), (false, true, Reason::Default));
        assert_eq!(judge(&closed, "b:y", "a:x"), (false, false, Reason::Default));
        // Both assets match the same side of an isolation rule: one group, but not its route.
        let side = routes(true, &["a:* <-> b:*"], &[], &[]);
        assert_eq!(judge(&side, "a:x", "a:y"), (false, true, Reason::Isolation));
        assert_eq!(judge(&side, "a:x", "b:y"), (true, false, Reason::Default));
        // For the published client, a one-way isolation rule is a single route.
        let one_way = routes(true, &["a:x -> b:x"], &[], &[]);
        assert_eq!(judge(&one_way, "b:x", "a:x"), (false, true, Reason::Isolation));
    }

    #[test]
    fn whitelist_lifts_a_blacklisting_but_no_isolation() {
        let lifted = routes(true, &[], &["* -> b:*"], &["A:X -> B:Y"]);
        assert_eq!(judge(&lifted, "a:x", "b:y"), (true, false, Reason::Whitelist));
        assert_eq!(judge(&lifted, "a:x", "b:z"), (false, false, Reason::Blacklist));
        let isolated = routes(true, &["a:x <-> c:x"], &[], &["a:x -> b:y"]);
        assert_eq!(judge(&isolated, "a:x", "b:y"), (false, false, Reason::Isolation));
    }

    #[test]
    fn the_most_specific_isolation_rule_goes_first() {
        let routes = routes(true, &["a:* <-> b:*", "a:x <-> c:x"], &[], &[]);
        assert_eq!(judge(&routes, "a:x", "b:x"), (false, true, Reason::Isolation));
        assert_eq!(judge(&routes, "a:x", "c:x"), (true, false, Reason::Default));
        assert_eq!(judge(&routes, "a:y", "b:x"), (true, false, Reason::Default));
    }

    #[test]
    fn wildcards_and_spelling() {
        for text in ["*:* -> b:y", ": -> b:y", "* -> b:y", "a: -> b:y", ":x -> b:y", " A:X->B:Y "] {
            assert_eq!(judge(&routes(true, &[], &[text], &[]), "a:x", "b:y").2, Reason::Blacklist, "{text}");
        }
        for text in ["", "a:x", "a:x => b:y", "a -> b:y", "a:x -> b:y -> c:z", "a:x -> b:\u{202e}y"] {
            assert!(Rule::parse(text).is_none(), "{text}");
        }
    }
}
