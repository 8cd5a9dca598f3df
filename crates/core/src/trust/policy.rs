//! The wallet's own limits: `docs/spec/batch.md#policy-file`.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use countersign_chains::{Finality, FinalityRule, Span};
use ruint::aliases::U256;
use serde::ser::{Serialize, SerializeStruct, Serializer};

use super::limits::{self, with_limits};
use super::{Asset, Registry};
use crate::json::{self, Cursor, number};
use crate::report::{Code, Refusal};
use crate::wire::strict_json;

/// What to do with an approval that is not of exactly the amount.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum ApprovalPolicy {
    /// Accept it, with a warning if it is above the amount.
    #[default]
    AsProposed,
    /// Rewrite it to exactly the amount.
    Exact,
    /// Refuse it unless it is exactly the amount.
    RefuseInexact,
}

macro_rules! policy {
    (
        [$(#[$attribute:meta])* { $($others:tt)* }]
        $($(#[$about:meta])* $table:ident: $Limits:ident of $Family:ident { $($limits:tt)* })*
    ) => {
        $(#[$attribute])*
        pub struct Policy {
            $(
                $(#[$about])*
                #[doc = concat!("In a file their names begin with `", stringify!($table), "_`.")]
                pub $table: limits::$Limits,
            )*
            $($others)*
        }
    };
}

with_limits! { policy! [
    /// Limits of what a wallet signs. [`Policy::default`] has the values of `docs/spec/batch.md#policy-file`.
    ///
    /// ```
    /// use countersign::{ApprovalPolicy, Code, Policy};
    ///
    /// # fn main() -> Result<(), countersign::Refusal> {
    /// let policy: Policy = r#"{"evm_timelock": 7200, "approvals": "exact"}"#.parse()?;
    /// assert_eq!((policy.evm.timelock, policy.approvals), (7_200, ApprovalPolicy::Exact));
    /// assert_eq!(
    ///     "{\"evmTimelock\": 7200}".parse::<Policy>().unwrap_err().code(),
    ///     Code::MisspeltField
    /// );
    /// # Ok(())
    /// # }
    /// ```
    #[derive(Debug, Clone, PartialEq, Eq, Default)]
    #[non_exhaustive]
    {
        /// What to do with approvals that are not of exactly the amount.
        pub approvals: ApprovalPolicy,
        /// Longest source timelock by chain name, at nominal block times. It applies in addition to the family's limit. The entry `*`
        /// applies to every chain without its own entry. In a file the member is `max_timelock_seconds`.
        pub max_timelock: BTreeMap<String, Duration>,
        /// When a payment on a destination chain is final, by asset id or by chain name, where it differs from the chain's own
        /// [`finality`](crate::ChainProfile::finality). The rule of an asset comes before that of its chain.
        pub finality: BTreeMap<String, FinalityRule>,
        /// Warnings that make an order refused.
        pub refused_warnings: BTreeSet<Code>,
        /// Warnings that an unattended driver accepts without asking. Verification itself does not read this set.
        pub accepted_warnings: BTreeSet<Code>,
    }
] }

/// The members of a policy file besides the families' limits.
const OTHERS: [&str; 5] = ["approvals", "max_timelock_seconds", "finality", "refused_warnings", "accepted_warnings"];

impl Policy {
    /// Parses a policy file: an object with any of the fields. A missing field keeps its default.
    ///
    /// # Errors
    ///
    /// A [`Refusal`] with a pointer into the file. An unknown name is [`Code::UnexpectedField`] or [`Code::MisspeltField`], because
    /// a misspelt limit would silently have no effect.
    pub fn from_json(text: &[u8]) -> Result<Self, Refusal> {
        let value = json::parse(text)?;
        let cursor = Cursor::root(&value, "");
        let members = cursor.object()?;
        let mut policy = Self::default();
        let limits = policy.limits();
        let names: Vec<_> = limits.iter().map(|(name, _)| *name).chain(OTHERS).collect();
        members.check_spelling(&names)?;
        members.only(&names)?;
        for (name, limit) in limits {
            members.get(name).map_or(Ok(()), |cursor| limit.read(&cursor))?;
        }
        if let Some(cursor) = members.get("approvals") {
            policy.approvals = match cursor.text()? {
                "as_proposed" => ApprovalPolicy::AsProposed,
                "exact" => ApprovalPolicy::Exact,
                "refuse_inexact" => ApprovalPolicy::RefuseInexact,
                _ => return Err(cursor.refuse(Code::WrongType).with_expected("as_proposed, exact or refuse_inexact")),
            };
        }
        if let Some(cursor) = members.get("max_timelock_seconds") {
            let chains = cursor.object()?;
            for (chain, cursor) in chains.keys().zip(chains.iter()) {
                policy.max_timelock.insert(chain.to_owned(), Duration::from_secs(cursor.integer()?));
            }
        }
        if let Some(cursor) = members.get("finality") {
            let chains = cursor.object()?;
            for (chain, cursor) in chains.keys().zip(chains.iter()) {
                policy.finality.insert(chain.to_owned(), read_rule(cursor)?);
            }
        }
        let warnings = |key: &str, codes: &mut BTreeSet<Code>| {
            let Some(list) = members.get(key) else { return Ok(()) };
            for cursor in list.array()? {
                let name = cursor.text()?;
                let code = Code::ALL.iter().find(|code| code.name() == name);
                codes.insert(*code.ok_or_else(|| cursor.refuse(Code::WrongType).with_expected("the code of a warning"))?);
            }
            Ok::<_, Refusal>(())
        };
        warnings("refused_warnings", &mut policy.refused_warnings)?;
        warnings("accepted_warnings", &mut policy.accepted_warnings)?;
        Ok(policy)
    }

    /// Requires that each limit names an asset or a chain that the registry pins, or a chain that this library knows. A limit for a misspelt
    /// name would silently have no effect. Call it before an order is paid; a paid order must not wait for it.
    ///
    /// # Errors
    ///
    /// [`Code::UnknownAsset`] or [`Code::UnknownChain`] at the first name that is neither.
    pub fn check_names(&self, registry: &Registry) -> Result<(), Refusal> {
        let refuse = |code, member: &str, name: &str| {
            let refusal = Refusal::new(code, format!("/policy/{member}")).with_actual(name);
            Err(refusal.with_reason("this limit has no effect: compare the name with the registry"))
        };
        let is_chain = |name: &str| registry.family(name).is_ok();
        // A policy can serve several registries. What a chain that is not pinned here has is not known.
        let is_elsewhere = |chain: &str| is_chain(chain) && registry.chains().all(|pinned| pinned.name() != chain);
        for name in self.finality.keys() {
            match name.split_once(':') {
                None if !is_chain(name) => return refuse(Code::UnknownChain, "finality", name),
                Some((chain, _)) if registry.asset(name).is_none() && !is_elsewhere(chain) => {
                    return refuse(Code::UnknownAsset, "finality", name);
                }
                _ => {}
            }
        }
        let unknown = self.max_timelock.keys().find(|name| *name != "*" && !is_chain(name));
        unknown.map_or(Ok(()), |name| refuse(Code::UnknownChain, "max_timelock_seconds", name))
    }

    /// Returns the longest source timelock on a chain in nominal time; `None` if there is no such limit.
    #[must_use]
    pub fn max_timelock_of(&self, chain: &str) -> Option<Duration> {
        self.max_timelock.get(chain).or_else(|| self.max_timelock.get("*")).copied()
    }

    /// Sets the longest source timelock on a chain in nominal time; `*` is every chain without its own limit.
    #[must_use]
    pub fn with_max_timelock(mut self, chain: impl Into<String>, limit: Duration) -> Self {
        self.max_timelock.insert(chain.into(), limit);
        self
    }

    /// Returns when a payment of `amount` base units of an asset is final, and how much of its timelock must be left to redeem it: the
    /// policy's word, else that of the chain, which grows with payments of the chain's own coin.
    #[must_use]
    pub fn finality_of(&self, asset: &Asset, amount: U256) -> FinalityRule {
        let (chain, is_coin) = (&asset.chain, asset.token.is_none());
        let of_chain = || if is_coin { chain.profile.finality_for(amount) } else { chain.profile.finality };
        self.own_finality(asset).unwrap_or_else(of_chain)
    }

    fn own_finality(&self, asset: &Asset) -> Option<FinalityRule> {
        self.finality.get(asset.record.id.as_str()).or_else(|| self.finality.get(asset.chain.name())).copied()
    }

    /// Returns whether a payment of any amount of an asset counts in a block that is only safe: nothing says what it is worth, and the policy
    /// has no rule for it.
    #[must_use]
    pub fn ignores_value(&self, asset: &Asset) -> bool {
        let profile = asset.chain.profile;
        let grows = asset.token.is_none() && !profile.steps.is_empty();
        !grows && profile.finality.finality == Finality::Safe && self.own_finality(asset).is_none()
    }

    /// Sets when a payment of an asset, or on a chain, is final. `name` is an asset id or the name of a chain.
    #[must_use]
    pub fn with_finality(mut self, name: impl Into<String>, rule: FinalityRule) -> Self {
        self.finality.insert(name.into(), rule);
        self
    }

    /// Refuses orders with a warning of this code, whenever the warning arises.
    #[must_use]
    pub fn refusing(mut self, code: Code) -> Self {
        self.refused_warnings.insert(code);
        self
    }

    /// Accepts warnings of this code in an unattended driver.
    #[must_use]
    pub fn accepting(mut self, code: Code) -> Self {
        self.accepted_warnings.insert(code);
        self
    }

    /// Sets what to do with approvals that are not of exactly the amount.
    #[must_use]
    pub const fn with_approvals(mut self, approvals: ApprovalPolicy) -> Self {
        self.approvals = approvals;
        self
    }
}

/// Reads `{"finality": "safe" | "finalized" | <blocks>, "settle": .., "margin": ..}`.
fn read_rule(cursor: Cursor<'_, '_>) -> Result<FinalityRule, Refusal> {
    let members = cursor.object()?;
    let fields = ["finality", "settle", "margin"];
    members.check_spelling(&fields)?;
    members.only(&fields)?;
    let finality = members.need("finality")?;
    let finality = match finality.text() {
        Ok("safe") => Finality::Safe,
        Ok("finalized") => Finality::Finalized,
        Ok(_) => return Err(finality.refuse(Code::WrongType).with_expected("safe, finalized or a number of blocks")),
        Err(_) => Finality::Depth(finality.integer()?.max(1)),
    };
    let mut rule = FinalityRule::new(finality, 0, 0);
    (rule.settle, rule.margin) = (read_span(members.need("settle")?)?, read_span(members.need("margin")?)?);
    Ok(rule)
}

/// Reads a count of units as an integer, or a duration as the text `600 s`.
fn read_span(cursor: Cursor<'_, '_>) -> Result<Span, Refusal> {
    let Ok(text) = cursor.text() else { return Ok(Span::Units(cursor.integer()?)) };
    let seconds = text.strip_suffix(" s").and_then(|seconds| number::decimal(seconds).ok()).and_then(|seconds| u64::try_from(seconds).ok());
    let expected = "a number of units, or a duration such as \"600 s\"";
    let seconds = seconds.ok_or_else(|| cursor.refuse(Code::WrongType).with_expected(expected))?;
    Ok(Span::Time(Duration::from_secs(seconds)))
}

impl Serialize for Policy {
    /// Writes a policy file with every field.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let approvals = match self.approvals {
            ApprovalPolicy::AsProposed => "as_proposed",
            ApprovalPolicy::Exact => "exact",
            ApprovalPolicy::RefuseInexact => "refuse_inexact",
        };
        let timelocks = crate::sort::map(self.max_timelock.iter().map(|(chain, limit)| (chain, limit.as_secs())));
        let names = |codes: &BTreeSet<Code>| codes.iter().map(|code| code.name()).collect::<Vec<_>>();
        let mut policy = self.clone();
        let limits = policy.limits();
        let mut map = serializer.serialize_struct("Policy", limits.len().saturating_add(OTHERS.len()))?;
        for (name, limit) in limits {
            map.serialize_field(name, &limit)?;
        }
        map.serialize_field("approvals", approvals)?;
        map.serialize_field("max_timelock_seconds", &timelocks)?;
        map.serialize_field("finality", &self.finality)?;
        map.serialize_field("refused_warnings", &names(&self.refused_warnings))?;
        map.serialize_field("accepted_warnings", &names(&self.accepted_warnings))?;
        map.end()
    }
}

strict_json!(Policy);

#[cfg(test)]
mod tests {
    use super::limits::{EvmLimits, SolanaLimits};
    use super::*;

    #[test]
    fn a_file_changes_only_what_it_names() {
        let policy = Policy::from_json(br#"{"evm_timelock": 7200, "approvals": "exact"}"#).unwrap();
        let evm = EvmLimits { timelock: 7200, ..EvmLimits::default() };
        assert_eq!(policy, Policy { evm, approvals: ApprovalPolicy::Exact, ..Policy::default() });
        let refusal = Policy::from_json(br#"{"evm_timelocks": 1}"#).unwrap_err();
        assert_eq!((refusal.code(), refusal.location()), (Code::UnexpectedField, "/evm_timelocks"));
        for misspelt in ["evmTimelock", "EVM-timelock", "Refused_Warnings"] {
            let refusal = Policy::from_json(format!("{{\"{misspelt}\": 1}}").as_bytes()).unwrap_err();
            assert_eq!((refusal.code(), refusal.location()), (Code::MisspeltField, format!("/{misspelt}").as_str()));
        }
        let policy = Policy::from_json(br#"{"solana_memo": 32, "solana_create_associated_account": true}"#).unwrap();
        let solana = SolanaLimits { memo: Some(32), create_associated_account: true, ..SolanaLimits::default() };
        assert_eq!(policy, Policy { solana, ..Policy::default() });
        assert_eq!(Policy::from_json(br#"{"evm_gas_limit": "1"}"#).unwrap_err().code(), Code::WrongType);
    }

    #[test]
    fn a_policy_is_written_as_it_is_read() {
        let mut policy = Policy { approvals: ApprovalPolicy::RefuseInexact, ..Policy::default() };
        policy.solana.memo = Some(7);
        policy.max_timelock.insert("ethereum".to_owned(), Duration::from_secs(86_400));
        policy.refused_warnings.insert(Code::UnlimitedApproval);
        policy.accepted_warnings.insert(Code::NoOrderRecord);
        policy.finality.insert("bitcoin".to_owned(), FinalityRule::new(Finality::Depth(3), 3, 6));
        policy.finality.insert("base".to_owned(), FinalityRule::new(Finality::Finalized, 900, 300));
        let text = serde_json::to_string(&policy).unwrap();
        assert_eq!(text.parse::<Policy>().unwrap(), policy);
        assert_eq!(serde_json::from_str::<Policy>(&text).unwrap(), policy);
    }

    /// Counts of units are as they were, and a duration is a text.
    #[test]
    fn a_margin_is_a_count_or_a_duration() {
        let read = |settle: &str, margin: &str| {
            let text = format!(r#"{{"finality":{{"base":{{"finality":"safe","settle":{settle},"margin":{margin}}}}}}}"#);
            Policy::from_json(text.as_bytes()).map(|policy| policy.finality["base"])
        };
        let rule = read("300", r#""600 s""#).unwrap();
        assert_eq!((rule.settle, rule.margin), (Span::Units(300), Span::Time(Duration::from_secs(600))));
        assert_eq!(rule.min_timelock(100), 300 + 6_000);
        let policy = Policy::default().with_finality("base", rule);
        assert_eq!(serde_json::to_string(&policy).unwrap().parse::<Policy>().unwrap(), policy);
        for wrong in [r#""600""#, r#""600s""#, r#""-1 s""#, r#""1.5 s""#, r#""10 min""#, r#"" s""#, "1.5", "-1", "null"] {
            assert!(read("300", wrong).is_err() && read(wrong, "300").is_err(), "{wrong}");
        }
    }

    #[test]
    fn each_word_for_approvals_is_read() {
        for (word, approvals) in [
            ("as_proposed", ApprovalPolicy::AsProposed),
            ("exact", ApprovalPolicy::Exact),
            ("refuse_inexact", ApprovalPolicy::RefuseInexact),
        ] {
            let policy = Policy::from_json(format!(r#"{{"approvals": "{word}"}}"#).as_bytes()).unwrap();
            assert_eq!(policy, Policy { approvals, ..Policy::default() });
        }
    }

    /// A setter that began again with the default policy would lift the limits that were set before it.
    #[test]
    fn a_setter_keeps_what_was_set_before() {
        let (hour, rule) = (Duration::from_secs(3_600), FinalityRule::new(Finality::Depth(3), 3, 6));
        let policy = Policy::default()
            .refusing(Code::UnlimitedApproval)
            .with_approvals(ApprovalPolicy::RefuseInexact)
            .with_max_timelock("*", hour)
            .with_finality("bitcoin", rule)
            .accepting(Code::NoOrderRecord)
            .with_max_timelock("base", 2 * hour)
            .with_finality("litecoin", rule)
            .refusing(Code::UnpinnedSolver)
            .with_approvals(ApprovalPolicy::Exact);
        let expected = Policy {
            approvals: ApprovalPolicy::Exact,
            max_timelock: BTreeMap::from([("*".to_owned(), hour), ("base".to_owned(), 2 * hour)]),
            finality: BTreeMap::from(["bitcoin", "litecoin"].map(|chain| (chain.to_owned(), rule))),
            refused_warnings: BTreeSet::from([Code::UnlimitedApproval, Code::UnpinnedSolver]),
            accepted_warnings: BTreeSet::from([Code::NoOrderRecord]),
            ..Policy::default()
        };
        assert_eq!(policy, expected);
        assert_eq!((policy.max_timelock_of("base"), policy.max_timelock_of("ethereum")), (Some(2 * hour), Some(hour)));
    }
}
