//! The policy: the limits of what the wallet signs.
//!
//! [`Policy::default`](crate::Policy) is meant for a wallet with a person in front of it. A policy file contains the limits of any family and
//! the members of the table below. A missing member has its default. An unknown one is refused, because a misspelt limit would not apply.
//! Numbers are JSON integers.
//!
//! The limits of a family are the fields of its struct in [`trust`](crate::trust), with unit and default. In a file, a limit has the family's
//! name in front: `policy.evm.gas_limit` of [`EvmLimits`](crate::trust::EvmLimits) is the member `evm_gas_limit`.
//! `docs/spec/batch.md#policy-file` lists all of them.
//!
//! | member | unit | default | meaning |
//! |---|---|---|---|
//! | `max_timelock_seconds` | seconds, by chain name | none | longest source timelock at nominal block times, in addition to the family's limit; `*` is for all other chains. In code `policy.max_timelock`, with a [`Duration`](std::time::Duration) for each chain |
//! | `approvals` | `as_proposed`, `exact`, `refuse_inexact` | `as_proposed` | [`ApprovalPolicy`](crate::ApprovalPolicy): [`AsProposed`](crate::ApprovalPolicy::AsProposed) keeps the proposed token approval with a warning, [`Exact`](crate::ApprovalPolicy::Exact) rewrites it to exactly the amount, [`RefuseInexact`](crate::ApprovalPolicy::RefuseInexact) refuses any other |
//! | `finality` | a [`FinalityRule`](crate::chains::FinalityRule), by chain name | the chain's own: `docs/spec/chains.md#known-chains` | when a payment on a destination chain is final, and what must be left of its timelock |
//! | `refused_warnings` | array of codes | none | an order with such a warning is refused (`warning_refused`) |
//! | `accepted_warnings` | array of codes | none | what an unattended driver accepts without asking; verification does not read them |
//!
//! A back end that signs without a person should at least refuse the warnings that have the severity `danger`, and `no_order_record`,
//! without which the destination leg is unchecked:
//!
//! ```
//! use countersign::{ApprovalPolicy, Code, Policy, Severity};
//!
//! let mut policy = Policy::default();
//! policy.approvals = ApprovalPolicy::Exact;
//! policy
//!     .refused_warnings
//!     .extend(Code::ALL.iter().filter(|code| code.severity() == Severity::Danger));
//! policy.refused_warnings.insert(Code::NoOrderRecord);
//! assert!(policy.refused_warnings.contains(&Code::UnlimitedApproval));
//! ```
//!
//! Specification: `docs/spec/batch.md#policy-file`.
