//! The priority fee: the price and the limit of a transaction's compute units, which its compute-budget instructions set.

use countersign_core::{Code, Policy, Refusal, TypedValue, U256};
use serde::{Deserialize, Serialize};
use solana_message::VersionedMessage;
use solana_message::compiled_instruction::CompiledInstruction;

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

/// A priority fee that the wallet sets.
///
/// ```
/// use countersign_solana::PriorityFee;
///
/// let fee = PriorityFee::new(50_000).with_limit(200_000);
/// assert_eq!(fee.compute_unit_price, 50_000);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
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

    /// Returns the fee that a message's instructions set; `None` if they set no price.
    #[must_use]
    pub fn from_message(message: &VersionedMessage) -> Option<Self> {
        let budget = ComputeBudget::from_message(message);
        budget.price.map(|compute_unit_price| Self { compute_unit_price, compute_unit_limit: budget.limit })
    }

    /// Sets the fee in a message. Returns `None` for a version without fee instructions, or if the message has no room for another key.
    ///
    /// Instructions that already set a price or limit are changed in place. New ones are inserted in front.
    pub(crate) fn set(self, message: &mut VersionedMessage) -> Option<()> {
        let (header, keys, instructions) = match message {
            VersionedMessage::Legacy(message) => (&mut message.header, &mut message.account_keys, &mut message.instructions),
            VersionedMessage::V0(message) => (&mut message.header, &mut message.account_keys, &mut message.instructions),
            VersionedMessage::V1(_) => return None,
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

    /// Requires that the fee that the wallet sets is within the policy.
    pub(crate) fn check_own(self, fee: PriorityFee) -> Result<(), Refusal> {
        let refuse = |member: &str| Refusal::new(Code::GasLimitTooHigh, format!("/priority_fee/{member}"));
        self.check(Some(fee.compute_unit_price), fee.compute_unit_limit, refuse)
    }
}

/// The price and the limit that a transaction's instructions set for its compute units.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ComputeBudget {
    pub(crate) price: Option<u64>,
    pub(crate) limit: Option<u32>,
    /// The number of instructions of the transaction.
    pub(crate) instructions: usize,
}

impl ComputeBudget {
    pub(crate) fn from_message(message: &VersionedMessage) -> Self {
        let mut budget = Self { instructions: message.instructions().len(), ..Self::default() };
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
        u128::from(self.price.unwrap_or(0)).saturating_mul(u128::from(self.units())).div_ceil(MICRO_LAMPORTS)
    }
}
