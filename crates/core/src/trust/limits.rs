//! The limits of each family. One list makes their types and defaults, the fields of [`Policy`], and the members of the policy file.

use countersign_chains::Family;
use serde::ser::{Serialize, Serializer};

use super::Policy;
use crate::json::Cursor;
use crate::report::Refusal;

/// The value of one limit.
pub(super) enum Limit<'p> {
    Number(&'p mut u64),
    /// `None` is `null` in a file. Each limit documents what it means.
    Optional(&'p mut Option<u64>),
    Flag(&'p mut bool),
}

impl Limit<'_> {
    pub(super) fn read(self, cursor: &Cursor<'_, '_>) -> Result<(), Refusal> {
        match self {
            Self::Number(limit) => *limit = cursor.integer()?,
            Self::Optional(limit) => *limit = Some(cursor.integer()?),
            Self::Flag(limit) => *limit = cursor.bool()?,
        }
        Ok(())
    }
}

impl Serialize for Limit<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Number(limit) => limit.serialize(serializer),
            Self::Optional(limit) => limit.serialize(serializer),
            Self::Flag(limit) => limit.serialize(serializer),
        }
    }
}

/// Calls a macro with the caller's own arguments and the limits of each family.
///
/// The file's member is `<table>_<limit>`. The order of the tables is that of their members in the file.
macro_rules! with_limits {
    ($callback:ident! $arguments:tt) => {
        $callback! { $arguments
            /// Limits of orders that are paid on an EVM chain.
            evm: EvmLimits of Evm {
                /// Longest source timelock, in blocks.
                timelock: Number = 86_400,
                /// Highest gas limit of one call, in gas.
                gas_limit: Number = 30_000_000,
                /// Highest total price of one unit of gas that is taken from nodes, in gwei; `None` takes that of each chain
                /// ([`price_ceiling`](crate::ChainProfile::price_ceiling)). It does not limit a wallet context that the caller fills in.
                gas_price: Optional = None,
            }
            /// Limits of orders that are paid on Tron.
            tron: TronLimits of Tron {
                /// Longest source timelock, in blocks.
                timelock: Number = 172_800,
                /// Highest fee limit of one call, in sun.
                fee_limit: Number = 15_000_000_000,
            }
            /// Limits of orders that are paid on Sui.
            sui: SuiLimits of Sui {
                /// Longest source timelock, in milliseconds.
                timelock: Number = 604_800_000,
                /// Highest gas budget of one transaction that is chosen with a node's data, in MIST. It does not limit a wallet context that
                /// the caller fills in.
                gas_budget: Number = 100_000_000,
            }
            /// Limits of orders that are paid on Starknet.
            starknet: StarknetLimits of Starknet {
                /// Longest source timelock, in blocks.
                timelock: Number = 14_400,
                /// Highest total fee that resource bounds from a node may allow for one transaction, in units of 10^9 FRI. It does not limit
                /// a wallet context that the caller fills in.
                fee: Number = 10_000_000_000,
            }
            /// Limits of orders that are paid on Bitcoin or Litecoin.
            bitcoin: BitcoinLimits of Bitcoin {
                /// Longest source timelock, in blocks.
                timelock: Number = 576,
                /// Highest fee rate, in sat/vB, also of a wallet context that the caller fills in.
                fee_rate: Number = 1_000,
            }
            /// Limits of orders that are paid on Solana.
            solana: SolanaLimits of Solana {
                /// Longest source timelock, in slots.
                timelock: Number = 432_000,
                /// Highest price that a transaction may set, in micro-lamports per compute unit; `None` refuses the instruction.
                compute_unit_price: Optional = None,
                /// Highest limit that a transaction may set, in compute units; `None` refuses the instruction.
                compute_unit_limit: Optional = None,
                /// Whether a transaction may create the owner's associated token account if there is none yet, at the fee payer's expense.
                create_associated_account: Flag = false,
                /// Longest memo that a transaction may carry, in bytes; `None` refuses memos.
                memo: Optional = None,
            }
        }
    };
}
pub(super) use with_limits;

macro_rules! limits {
    ([] $($(#[$about:meta])* $table:ident: $Limits:ident of $Family:ident {
        $(#[$longest:meta])* timelock: Number = $timelock:expr,
        $($(#[$doc:meta])* $limit:ident: $Kind:ident = $default:expr,)*
    })*) => {
        $(
            $(#[$about])*
            #[derive(Debug, Clone, Copy, PartialEq, Eq)]
            #[non_exhaustive]
            pub struct $Limits {
                $(#[$longest])*
                #[doc = concat!("\n\nDefault: `", stringify!($timelock), "`.")]
                pub timelock: u64,
                $(
                    $(#[$doc])*
                    #[doc = concat!("\n\nDefault: `", stringify!($default), "`.")]
                    pub $limit: limits!($Kind),
                )*
            }

            impl Default for $Limits {
                fn default() -> Self {
                    Self { timelock: $timelock, $($limit: $default),* }
                }
            }
        )*

        impl Policy {
            /// Returns the longest source timelock on a family's chains, in the family's unit.
            #[must_use]
            pub const fn timelock(&self, family: Family) -> u64 {
                match family {
                    $(Family::$Family => self.$table.timelock,)*
                    _ => 0,
                }
            }

            /// Returns every limit with the name of its member, in the order of a policy file: the families' timelocks come first.
            pub(super) fn limits(&mut self) -> Vec<(&'static str, Limit<'_>)> {
                let mut timelocks =
                    vec![$((Family::$Family, concat!(stringify!($table), "_timelock"), Limit::Number(&mut self.$table.timelock))),*];
                crate::sort::by(&mut timelocks, |(one, ..), (other, ..)| one.cmp(other));
                let others = [$($((
                    concat!(stringify!($table), "_", stringify!($limit)),
                    Limit::$Kind(&mut self.$table.$limit),
                )),*),*];
                timelocks.into_iter().map(|(_, name, limit)| (name, limit)).chain(others).collect()
            }
        }
    };
    (Number) => { u64 };
    (Optional) => { Option<u64> };
    (Flag) => { bool };
}

with_limits! { limits! [] }

#[cfg(test)]
mod tests {
    use super::*;

    /// Every limit of [`Policy::default`], as a file has it.
    const DEFAULTS: &str = r#"{"evm_timelock":86400,"tron_timelock":172800,"starknet_timelock":14400,"solana_timelock":432000,"sui_timelock":604800000,"bitcoin_timelock":576,"evm_gas_limit":30000000,"evm_gas_price":null,"tron_fee_limit":15000000000,"sui_gas_budget":100000000,"starknet_fee":10000000000,"bitcoin_fee_rate":1000,"solana_compute_unit_price":null,"solana_compute_unit_limit":null,"solana_create_associated_account":false,"solana_memo":null,"approvals":"as_proposed","max_timelock_seconds":{},"finality":{},"refused_warnings":[],"accepted_warnings":[]}"#;

    #[test]
    fn a_file_has_its_members_in_one_order_and_each_of_them_is_read() {
        assert_eq!(serde_json::to_string(&Policy::default()).unwrap(), DEFAULTS);
        let other = r#"{"evm_timelock":1,"tron_timelock":2,"starknet_timelock":3,"solana_timelock":4,"sui_timelock":5,"bitcoin_timelock":6,"evm_gas_limit":7,"evm_gas_price":8,"tron_fee_limit":9,"sui_gas_budget":10,"starknet_fee":11,"bitcoin_fee_rate":12,"solana_compute_unit_price":13,"solana_compute_unit_limit":14,"solana_create_associated_account":true,"solana_memo":15,"approvals":"exact","max_timelock_seconds":{"*":16},"finality":{"base":{"finality":17,"settle":18,"margin":19}},"refused_warnings":["unlimited_approval"],"accepted_warnings":["no_order_record"]}"#;
        let policy: Policy = other.parse().unwrap();
        assert_eq!(serde_json::to_string(&policy).unwrap(), other);
        assert_eq!(Family::ALL.map(|family| policy.timelock(family)), [1, 2, 3, 4, 5, 6]);

        let members: serde_json::Map<_, _> = serde_json::from_str(other).unwrap();
        for (name, value) in &members {
            let file = |value: &serde_json::Value| serde_json::to_string(&serde_json::json!({ name: value })).unwrap();
            let alone = serde_json::to_value(file(value).parse::<Policy>().unwrap()).unwrap();
            let changed = alone.as_object().unwrap().iter().filter(|(other, is)| members[*other] == **is).map(|(other, _)| other);
            assert_eq!(changed.collect::<Vec<_>>(), [name], "a file with {name} changes that member");
            assert_eq!(file(&"x".into()).parse::<Policy>().unwrap_err().location(), format!("/{name}"));
        }
        let refusal = r#"{"max_timelock":1}"#.parse::<Policy>().unwrap_err();
        let expected = "evm_timelock, tron_timelock, starknet_timelock, solana_timelock, sui_timelock, bitcoin_timelock, evm_gas_limit, \
                        evm_gas_price, tron_fee_limit, sui_gas_budget, s…";
        assert_eq!(refusal.expected().unwrap().to_string(), expected);
    }
}
