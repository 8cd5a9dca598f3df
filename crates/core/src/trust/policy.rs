//! The wallet's own limits: `docs/spec/batch.md#policy-file`.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use countersign_chains::Family;
use serde::ser::{Serialize, SerializeStruct, Serializer};

use super::{Chain, FinalityRule};
use crate::json::{self, Cursor, Members};
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

/// Limits of what a wallet signs. [`Policy::default`] has the values of `docs/spec/batch.md#policy-file`.
///
/// ```
/// use countersign_core::{ApprovalPolicy, Code, Policy};
///
/// # fn main() -> Result<(), countersign_core::Refusal> {
/// let policy: Policy = r#"{"evm_timelock": 7200, "approvals": "exact"}"#.parse()?;
/// assert_eq!((policy.evm_timelock, policy.approvals), (7_200, ApprovalPolicy::Exact));
/// assert_eq!("{\"evmTimelock\": 7200}".parse::<Policy>().unwrap_err().code(), Code::MisspeltField);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Policy {
    /// Longest source timelock in EVM blocks.
    pub evm_timelock: u64,
    /// Longest source timelock in Tron blocks.
    pub tron_timelock: u64,
    /// Longest source timelock in Starknet blocks.
    pub starknet_timelock: u64,
    /// Longest source timelock in Solana slots.
    pub solana_timelock: u64,
    /// Longest source timelock on Sui, in milliseconds.
    pub sui_timelock: u64,
    /// Longest source timelock in Bitcoin or Litecoin blocks.
    pub bitcoin_timelock: u64,
    /// Highest EVM gas limit of one call, in gas.
    pub evm_gas_limit: u64,
    /// Highest total price of one unit of EVM gas that is taken from a node, in gwei. It does not limit a wallet context that the
    /// caller fills in.
    pub evm_gas_price: u64,
    /// Highest Tron fee limit of one call, in sun.
    pub tron_fee_limit: u64,
    /// Highest gas budget of one Sui transaction that is chosen with a node's data, in MIST. It does not limit a wallet context that
    /// the caller fills in.
    pub sui_gas_budget: u64,
    /// Highest total fee that resource bounds from a node may allow for one Starknet transaction, in units of 10^9 FRI. It does not
    /// limit a wallet context that the caller fills in.
    pub starknet_fee: u64,
    /// Highest Bitcoin or Litecoin fee rate, in sat/vB.
    pub bitcoin_fee_rate: u64,
    /// Highest price that a Solana transaction may set, in micro-lamports per compute unit; `None` refuses the instruction.
    pub solana_compute_unit_price: Option<u64>,
    /// Highest limit that a Solana transaction may set, in compute units; `None` refuses the instruction.
    pub solana_compute_unit_limit: Option<u64>,
    /// Whether a Solana transaction may create the owner's associated token account if there is none yet, at the fee payer's
    /// expense.
    pub solana_create_associated_account: bool,
    /// Longest memo that a Solana transaction may carry, in bytes; `None` refuses memos.
    pub solana_memo: Option<u64>,
    /// What to do with approvals that are not of exactly the amount.
    pub approvals: ApprovalPolicy,
    /// Longest source timelock by chain name, at nominal block times. It applies in addition to the family's limit. The entry `*`
    /// applies to every chain without its own entry. In a file the member is `max_timelock_seconds`.
    pub max_timelock: BTreeMap<String, Duration>,
    /// When a payment on a destination chain is final, by chain name, where it differs from [`FinalityRule::of`].
    pub finality: BTreeMap<String, FinalityRule>,
    /// Warnings that make an order refused.
    pub refused_warnings: BTreeSet<Code>,
    /// Warnings that an unattended driver accepts without asking. Verification itself does not read this set.
    pub accepted_warnings: BTreeSet<Code>,
}

/// The fields of a policy file.
const FIELDS: [&str; 21] = [
    "evm_timelock",
    "tron_timelock",
    "starknet_timelock",
    "solana_timelock",
    "sui_timelock",
    "bitcoin_timelock",
    "evm_gas_limit",
    "evm_gas_price",
    "tron_fee_limit",
    "sui_gas_budget",
    "starknet_fee",
    "bitcoin_fee_rate",
    "solana_compute_unit_price",
    "solana_compute_unit_limit",
    "solana_create_associated_account",
    "solana_memo",
    "approvals",
    "max_timelock_seconds",
    "finality",
    "refused_warnings",
    "accepted_warnings",
];

impl Default for Policy {
    fn default() -> Self {
        Self {
            evm_timelock: 86_400,
            tron_timelock: 172_800,
            starknet_timelock: 14_400,
            solana_timelock: 432_000,
            sui_timelock: 604_800_000,
            bitcoin_timelock: 576,
            evm_gas_limit: 30_000_000,
            evm_gas_price: 1_000,
            tron_fee_limit: 15_000_000_000,
            sui_gas_budget: 100_000_000,
            starknet_fee: 10_000_000_000,
            bitcoin_fee_rate: 1_000,
            solana_compute_unit_price: None,
            solana_compute_unit_limit: None,
            solana_create_associated_account: false,
            solana_memo: None,
            approvals: ApprovalPolicy::AsProposed,
            max_timelock: BTreeMap::new(),
            finality: BTreeMap::new(),
            refused_warnings: BTreeSet::new(),
            accepted_warnings: BTreeSet::new(),
        }
    }
}

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
        members.check_spelling(&FIELDS)?;
        members.only(&FIELDS)?;
        let number = |members: &Members<'_, '_>, key: &str, limit: &mut u64| {
            members.get(key).map_or(Ok(()), |cursor| cursor.integer().map(|value| *limit = value))
        };
        number(&members, "evm_timelock", &mut policy.evm_timelock)?;
        number(&members, "tron_timelock", &mut policy.tron_timelock)?;
        number(&members, "starknet_timelock", &mut policy.starknet_timelock)?;
        number(&members, "solana_timelock", &mut policy.solana_timelock)?;
        number(&members, "sui_timelock", &mut policy.sui_timelock)?;
        number(&members, "bitcoin_timelock", &mut policy.bitcoin_timelock)?;
        number(&members, "evm_gas_limit", &mut policy.evm_gas_limit)?;
        number(&members, "evm_gas_price", &mut policy.evm_gas_price)?;
        number(&members, "tron_fee_limit", &mut policy.tron_fee_limit)?;
        number(&members, "sui_gas_budget", &mut policy.sui_gas_budget)?;
        number(&members, "starknet_fee", &mut policy.starknet_fee)?;
        number(&members, "bitcoin_fee_rate", &mut policy.bitcoin_fee_rate)?;
        let allowed = |key| members.get(key).map(|cursor| cursor.integer()).transpose();
        policy.solana_compute_unit_price = allowed("solana_compute_unit_price")?;
        policy.solana_compute_unit_limit = allowed("solana_compute_unit_limit")?;
        policy.solana_memo = allowed("solana_memo")?;
        if let Some(cursor) = members.get("solana_create_associated_account") {
            policy.solana_create_associated_account = cursor.bool()?;
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
                policy.finality.insert(chain.to_owned(), FinalityRule::read(cursor)?);
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

    /// Returns when a payment on a chain is final, and how much of its timelock must be left to redeem it.
    #[must_use]
    pub fn finality_of(&self, chain: &Chain) -> FinalityRule {
        self.finality.get(&chain.record.chain).copied().unwrap_or_else(|| FinalityRule::of(chain))
    }

    /// Sets when a payment on a chain is final.
    #[must_use]
    pub fn with_finality(mut self, chain: impl Into<String>, rule: FinalityRule) -> Self {
        self.finality.insert(chain.into(), rule);
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

    /// Returns the longest source timelock on a family's chains, in the family's unit.
    #[must_use]
    pub const fn timelock(&self, family: Family) -> u64 {
        match family {
            Family::Evm => self.evm_timelock,
            Family::Tron => self.tron_timelock,
            Family::Starknet => self.starknet_timelock,
            Family::Solana => self.solana_timelock,
            Family::Sui => self.sui_timelock,
            Family::Bitcoin => self.bitcoin_timelock,
            _ => 0,
        }
    }
}

impl Serialize for Policy {
    /// Writes a policy file with every field.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let approvals = match self.approvals {
            ApprovalPolicy::AsProposed => "as_proposed",
            ApprovalPolicy::Exact => "exact",
            ApprovalPolicy::RefuseInexact => "refuse_inexact",
        };
        let timelocks: BTreeMap<_, _> = self.max_timelock.iter().map(|(chain, limit)| (chain, limit.as_secs())).collect();
        let names = |codes: &BTreeSet<Code>| codes.iter().map(|code| code.name()).collect::<Vec<_>>();
        let mut map = serializer.serialize_struct("Policy", FIELDS.len())?;
        map.serialize_field("evm_timelock", &self.evm_timelock)?;
        map.serialize_field("tron_timelock", &self.tron_timelock)?;
        map.serialize_field("starknet_timelock", &self.starknet_timelock)?;
        map.serialize_field("solana_timelock", &self.solana_timelock)?;
        map.serialize_field("sui_timelock", &self.sui_timelock)?;
        map.serialize_field("bitcoin_timelock", &self.bitcoin_timelock)?;
        map.serialize_field("evm_gas_limit", &self.evm_gas_limit)?;
        map.serialize_field("evm_gas_price", &self.evm_gas_price)?;
        map.serialize_field("tron_fee_limit", &self.tron_fee_limit)?;
        map.serialize_field("sui_gas_budget", &self.sui_gas_budget)?;
        map.serialize_field("starknet_fee", &self.starknet_fee)?;
        map.serialize_field("bitcoin_fee_rate", &self.bitcoin_fee_rate)?;
        map.serialize_field("solana_compute_unit_price", &self.solana_compute_unit_price)?;
        map.serialize_field("solana_compute_unit_limit", &self.solana_compute_unit_limit)?;
        map.serialize_field("solana_create_associated_account", &self.solana_create_associated_account)?;
        map.serialize_field("solana_memo", &self.solana_memo)?;
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
    use super::*;
    use crate::trust::Finality;

    #[test]
    fn a_file_changes_only_what_it_names() {
        let policy = Policy::from_json(br#"{"evm_timelock": 7200, "approvals": "exact"}"#).unwrap();
        assert_eq!(policy, Policy { evm_timelock: 7200, approvals: ApprovalPolicy::Exact, ..Policy::default() });
        let refusal = Policy::from_json(br#"{"evm_timelocks": 1}"#).unwrap_err();
        assert_eq!((refusal.code(), refusal.location()), (Code::UnexpectedField, "/evm_timelocks"));
        for misspelt in ["evmTimelock", "EVM-timelock", "Refused_Warnings"] {
            let refusal = Policy::from_json(format!("{{\"{misspelt}\": 1}}").as_bytes()).unwrap_err();
            assert_eq!((refusal.code(), refusal.location()), (Code::MisspeltField, format!("/{misspelt}").as_str()));
        }
        let policy = Policy::from_json(br#"{"solana_memo": 32, "solana_create_associated_account": true}"#).unwrap();
        assert_eq!(policy, Policy { solana_memo: Some(32), solana_create_associated_account: true, ..Policy::default() });
        assert_eq!(Policy::from_json(br#"{"evm_gas_limit": "1"}"#).unwrap_err().code(), Code::WrongType);
    }

    #[test]
    fn a_policy_is_written_as_it_is_read() {
        let mut policy = Policy { solana_memo: Some(7), approvals: ApprovalPolicy::RefuseInexact, ..Policy::default() };
        policy.max_timelock.insert("ethereum".to_owned(), Duration::from_secs(86_400));
        policy.refused_warnings.insert(Code::UnlimitedApproval);
        policy.accepted_warnings.insert(Code::NoOrderRecord);
        policy.finality.insert("bitcoin".to_owned(), FinalityRule::new(Finality::Depth(3), 3, 6));
        policy.finality.insert("base".to_owned(), FinalityRule::new(Finality::Finalized, 900, 300));
        let text = serde_json::to_string(&policy).unwrap();
        assert_eq!(text.parse::<Policy>().unwrap(), policy);
        assert_eq!(serde_json::from_str::<Policy>(&text).unwrap(), policy);
    }
}
