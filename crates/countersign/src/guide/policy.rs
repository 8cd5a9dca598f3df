//! The policy: the limits of what the wallet signs.
//!
//! [`Policy::default`](crate::Policy) is meant for a wallet with a person in front of it. A file contains any of these members. What is
//! missing keeps its default. An unknown member is refused, because a misspelt limit would not apply. Numbers are JSON integers.
//!
//! In code, each family's limits are a struct: the member `evm_gas_limit` is the field `policy.evm.gas_limit` of
//! [`EvmLimits`](crate::trust::EvmLimits). `max_timelock_seconds` is `policy.max_timelock`, with a [`Duration`](std::time::Duration) for each
//! chain.
//!
//! | member | unit | default | meaning |
//! |---|---|---|---|
//! | `evm_timelock` | blocks | 86,400 | longest source timelock |
//! | `tron_timelock` | blocks | 172,800 | the same |
//! | `starknet_timelock` | blocks | 14,400 | the same |
//! | `solana_timelock` | slots | 432,000 | the same |
//! | `sui_timelock` | milliseconds | 604,800,000 | the same |
//! | `bitcoin_timelock` | blocks | 576 | the same, for Bitcoin and Litecoin |
//! | `max_timelock_seconds` | seconds, by chain name | none | longest source timelock at nominal block times, in addition; `*` is for all other chains |
//! | `evm_gas_limit` | gas | 30,000,000 | highest gas limit of one call |
//! | `evm_gas_price` | gwei | of each chain: 5 to 1,000 | highest gas price that `countersign-node` takes from nodes |
//! | `tron_fee_limit` | sun | 15,000,000,000 | highest fee limit of one call |
//! | `sui_gas_budget` | MIST | 100,000,000 | highest gas budget that `countersign-node` proposes |
//! | `starknet_fee` | 10⁹ FRI | 10,000,000,000 | highest fee that the resource bounds proposed by `countersign-node` allow in all |
//! | `bitcoin_fee_rate` | sat/vB | 1,000 | highest fee rate, also of a wallet context |
//! | `solana_compute_unit_price` | micro-lamports per compute unit | null | highest price that a transaction may set; null refuses the instruction |
//! | `solana_compute_unit_limit` | compute units | null | highest limit that a transaction may set; null refuses the instruction |
//! | `solana_create_associated_account` | true or false | false | whether a transaction may create the owner's associated token account |
//! | `solana_memo` | bytes | null | longest memo of a transaction; null refuses memos |
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
