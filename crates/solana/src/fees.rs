//! The priority fee: the price and the limit of a transaction's compute units, which its compute-budget instructions set. A message of
//! version 1 contains the limit and the whole fee instead.

use std::ops::RangeInclusive;

use countersign_core::{Code, Policy, Refusal, TypedValue, U256};
use serde::{Deserialize, Serialize};
use solana_message::VersionedMessage;
use solana_message::compiled_instruction::CompiledInstruction;
use solana_message::v1::TransactionConfig;

use crate::address::COMPUTE_BUDGET_PROGRAM;
use crate::allowed::AllowedInstruction;

/// The highest price of a compute unit that the wallet may set if the policy has no limit, in micro-lamports. It is 10 lamports, which
/// together with [`MAX_COMPUTE_UNIT_LIMIT`] is 0.014 SOL for a transaction.
pub const MAX_COMPUTE_UNIT_PRICE: u64 = 10_000_000;
/// The most compute units that the wallet may set if the policy has no limit. It is also the network's maximum.
pub const MAX_COMPUTE_UNIT_LIMIT: u64 = 1_400_000;

/// Compute units that the network grants for each instruction if a transaction sets no limit.
const UNITS_PER_INSTRUCTION: u64 = 200_000;
/// Micro-lamports in one lamport.
const MICRO_LAMPORTS: u128 = 1_000_000;

/// The members of the limits in a message of version 1.
pub(crate) const FEE: &str = "priority_fee";
pub(crate) const UNITS: &str = "compute_unit_limit";
pub(crate) const LOADED: &str = "loaded_accounts_data_size_limit";
pub(crate) const HEAP_SIZE: &str = "heap_size";
/// The most bytes of accounts that a transaction may load.
pub(crate) const MAX_LOADED: u64 = 64 * 1024 * 1024;
/// The bytes of heap that a transaction may ask for, in steps.
const HEAP: RangeInclusive<u32> = 32_768..=262_144;
const HEAP_STEP: u32 = 1_024;

/// Why a limit of 0 is refused. A redemption that fails has shown its secret, too.
pub(crate) const NO_UNITS: &str = "without this limit, the transaction fails and costs its fee";

/// A priority fee that the wallet sets.
///
/// ```
/// use countersign::solana::PriorityFee;
///
/// let fee = PriorityFee::new(50_000).with_limit(200_000);
/// assert_eq!(fee.compute_unit_price, 50_000);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct PriorityFee {
    /// Price in micro-lamports per compute unit.
    pub compute_unit_price: u64,
    /// The most compute units that the transaction may use. `None` keeps the transaction's own limit, or else the network's.
    pub compute_unit_limit: Option<u32>,
}

impl PriorityFee {
    /// Creates a fee with a price in micro-lamports per compute unit.
    #[must_use]
    pub const fn new(compute_unit_price: u64) -> Self {
        Self { compute_unit_price, compute_unit_limit: None }
    }

    /// Sets the most compute units that the transaction may use.
    #[must_use]
    pub const fn with_limit(mut self, compute_unit_limit: u32) -> Self {
        self.compute_unit_limit = Some(compute_unit_limit);
        self
    }

    /// Returns the highest price that a policy lets the wallet set, in micro-lamports per compute unit.
    #[must_use]
    pub fn max_price(policy: &Policy) -> u64 {
        policy.solana.compute_unit_price.unwrap_or(MAX_COMPUTE_UNIT_PRICE)
    }

    /// Returns the fee that a message sets; `None` if it sets no price. For a message of version 1, which states the whole fee, it is the
    /// lowest price that gives it.
    #[must_use]
    pub fn from_message(message: &VersionedMessage) -> Option<Self> {
        let budget = ComputeBudget::from_message(message);
        let of_total = |total: u64| {
            let units = u128::from(budget.units());
            let floor = u128::from(total.saturating_sub(1)).saturating_mul(MICRO_LAMPORTS).checked_div(units)?;
            u64::try_from(floor.saturating_add(1)).ok()
        };
        let price = budget.price.or(budget.total.filter(|total| *total > 0).and_then(of_total));
        price.map(|compute_unit_price| Self { compute_unit_price, compute_unit_limit: budget.limit })
    }

    /// Sets the fee in a message. Returns `None` if the message has no room for another key.
    ///
    /// Instructions that already set a price or limit are changed in place. New ones are inserted in front. In a message of version 1, the
    /// whole fee and the limit are set.
    pub(crate) fn set(self, message: &mut VersionedMessage) -> Option<()> {
        let (header, keys, instructions) = match message {
            VersionedMessage::Legacy(message) => (&mut message.header, &mut message.account_keys, &mut message.instructions),
            VersionedMessage::V0(message) => (&mut message.header, &mut message.account_keys, &mut message.instructions),
            VersionedMessage::V1(message) => {
                let limit = self.compute_unit_limit.or(message.config.compute_unit_limit);
                let budget = ComputeBudget { price: Some(self.compute_unit_price), limit, ..ComputeBudget::default() };
                message.config.priority_fee = Some(u64::try_from(budget.priority_fee()).ok()?);
                message.config.compute_unit_limit = limit;
                return Some(());
            }
        };
        let known = keys.iter().position(|key| *key == COMPUTE_BUDGET_PROGRAM);
        let program = u8::try_from(known.unwrap_or(keys.len())).ok()?;
        if known.is_none() {
            // Read-only keys that do not sign come last, so every other key keeps its index.
            header.num_readonly_unsigned_accounts = header.num_readonly_unsigned_accounts.checked_add(1)?;
            keys.push(COMPUTE_BUDGET_PROGRAM);
        }
        let mut put = |tag: u8, value: &[u8]| {
            let data = [&[tag], value].concat();
            let same = |other: &&mut CompiledInstruction| other.program_id_index == program && other.data.first() == Some(&tag);
            match instructions.iter_mut().find(same) {
                Some(existing) => existing.data = data,
                None => instructions.insert(0, CompiledInstruction { program_id_index: program, accounts: Vec::new(), data }),
            }
        };
        put(3, &self.compute_unit_price.to_le_bytes());
        if let Some(limit) = self.compute_unit_limit {
            put(2, &limit.to_le_bytes());
        }
        Some(())
    }
}

/// The limits of the priority fee that a wallet sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FeeLimits {
    price: u64,
    limit: u64,
}

impl FeeLimits {
    pub(crate) fn from_policy(policy: &Policy) -> Self {
        Self { price: PriorityFee::max_price(policy), limit: policy.solana.compute_unit_limit.unwrap_or(MAX_COMPUTE_UNIT_LIMIT) }
    }

    /// Returns the limits of what the service sets. Without a limit in the policy, it sets no priority fee. A limit of compute units is not a
    /// cost, and a message of version 1 needs one.
    pub(crate) fn of_service(policy: &Policy) -> Self {
        Self { price: policy.solana.compute_unit_price.unwrap_or(0), ..Self::from_policy(policy) }
    }

    /// Requires that the limits in a message of version 1 let it run, and are within the policy. `refuse` gets the code and the member.
    ///
    /// A limit that is missing is 0: the transaction fails, and its fee is taken nevertheless.
    pub(crate) fn check_config(self, config: &TransactionConfig, refuse: impl Fn(Code, &'static str) -> Refusal) -> Result<(), Refusal> {
        let (units, loaded) = (config.compute_unit_limit.unwrap_or(0), config.loaded_accounts_data_size_limit.unwrap_or(0));
        let at_most = |member: &'static str, max: u64, value: u64, what: &str| {
            let whose = if member == LOADED { "the limit is above the network's" } else { "the limit is above the policy's" };
            let refusal = || refuse(Code::GasLimitTooHigh, member).with_reason(whose).with_expected(format!("at most {max} {what}"));
            if value > max { Err(refusal().with_actual(value)) } else { Ok(()) }
        };
        for (member, value) in [(UNITS, units), (LOADED, loaded)] {
            if value == 0 {
                return Err(refuse(Code::GasLimitTooLow, member).with_reason(NO_UNITS).with_actual(0_u64));
            }
        }
        at_most(UNITS, self.limit, units.into(), "compute units")?;
        at_most(LOADED, MAX_LOADED, loaded.into(), "bytes")?;
        if config.heap_size.is_some_and(|heap| !HEAP.contains(&heap) || heap % HEAP_STEP != 0) {
            return Err(refuse(Code::TransactionMalformed, HEAP_SIZE).with_expected("a multiple of 1024 between 32768 and 262144"));
        }
        // What the highest price costs for these units.
        let budget = ComputeBudget { price: Some(self.price), limit: Some(units), ..ComputeBudget::default() };
        let max = u64::try_from(budget.priority_fee()).unwrap_or(u64::MAX);
        at_most(FEE, max, config.priority_fee.unwrap_or(0), "lamports")
    }

    /// Requires that a price and a limit are within the policy.
    pub(crate) fn check(self, price: Option<u64>, limit: Option<u32>, refuse: impl Fn(&str) -> Refusal) -> Result<(), Refusal> {
        let members = [("compute_unit_price", price, self.price), ("compute_unit_limit", limit.map(u64::from), self.limit)];
        for (member, value, max) in members {
            if let Some(value) = value
                && value > max
            {
                return Err(refuse(member).with_expected(TypedValue::AtMost(U256::from(max))).with_actual(value));
            }
        }
        Ok(())
    }

    /// Returns the member of the policy that limits the price, if the fee's price is above it, or else the one that limits the compute units.
    pub(crate) const fn exceeded_by(self, fee: PriorityFee) -> &'static str {
        if fee.compute_unit_price > self.price { "solana_compute_unit_price" } else { "solana_compute_unit_limit" }
    }

    /// Requires that the fee that the wallet sets is within the policy.
    pub(crate) fn check_own(self, fee: PriorityFee) -> Result<(), Refusal> {
        let refuse = |member: &str| Refusal::new(Code::GasLimitTooHigh, format!("/priority_fee/{member}"));
        self.check(Some(fee.compute_unit_price), fee.compute_unit_limit, refuse)
    }
}

/// The price and the limit that a transaction sets for its compute units.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ComputeBudget {
    pub(crate) price: Option<u64>,
    pub(crate) limit: Option<u32>,
    /// The whole priority fee in lamports, which a message of version 1 states in place of a price.
    pub(crate) total: Option<u64>,
    /// The number of instructions of the transaction.
    pub(crate) instructions: usize,
}

impl ComputeBudget {
    pub(crate) fn from_message(message: &VersionedMessage) -> Self {
        let mut budget = Self { instructions: message.instructions().len(), ..Self::default() };
        if let VersionedMessage::V1(message) = message {
            let TransactionConfig { priority_fee, compute_unit_limit, .. } = message.config;
            (budget.total, budget.limit) = (Some(priority_fee.unwrap_or(0)), Some(compute_unit_limit.unwrap_or(0)));
            return budget;
        }
        for instruction in message.instructions() {
            let program = message.static_account_keys().get(usize::from(instruction.program_id_index));
            if program == Some(&COMPUTE_BUDGET_PROGRAM)
                && let Some(set) = AllowedInstruction::read_compute_budget(&instruction.data)
            {
                budget.read(&set);
            }
        }
        budget
    }

    pub(crate) const fn read(&mut self, instruction: &AllowedInstruction) {
        match instruction {
            AllowedInstruction::ComputeUnitLimit(limit) => self.limit = Some(*limit),
            AllowedInstruction::ComputeUnitPrice(price) => self.price = Some(*price),
            _ => {}
        }
    }

    /// Returns the most compute units that the transaction may use.
    pub(crate) fn units(self) -> u64 {
        let granted = || UNITS_PER_INSTRUCTION.saturating_mul(u64::try_from(self.instructions).unwrap_or(u64::MAX));
        self.limit.map_or_else(granted, u64::from).min(MAX_COMPUTE_UNIT_LIMIT)
    }

    /// Returns the highest priority fee in lamports. The fee for signatures and the rent are not included.
    pub(crate) fn priority_fee(self) -> u128 {
        let of_units = || u128::from(self.price.unwrap_or(0)).saturating_mul(u128::from(self.units())).div_ceil(MICRO_LAMPORTS);
        self.total.map_or_else(of_units, u128::from)
    }
}
