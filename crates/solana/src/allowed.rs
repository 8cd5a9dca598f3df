//! Instructions other than the HTLC's own. By default they are all refused. The wallet's policy can allow these, each at most once:
//!
//! | program | data | accounts | policy |
//! |---|---|---|---|
//! | compute budget | `02`, units in 4 bytes little-endian | none | `solana_compute_unit_limit` |
//! | compute budget | `03`, micro-lamports per unit in 8 bytes little-endian | none | `solana_compute_unit_price` |
//! | associated token | `01`, create if it does not exist | payer, token account, owner, mint, system program, token program | `solana_create_associated_account` |
//! | memo | UTF-8 | none | `solana_memo` |
//!
//! The vault needs no such instruction, because the HTLC program creates it with the first swap of a mint.
//!
//! Specification: `docs/spec/batch.md#solana-rules`.

use std::fmt;
use std::mem::discriminant;

use countersign_core::json::At;
use countersign_core::{Code, Policy, Refusal, text};
use solana_message::compiled_instruction::CompiledInstruction;

use crate::address::{ASSOCIATED_TOKEN_PROGRAM, Address, COMPUTE_BUDGET_PROGRAM, MEMO_PROGRAM};
use crate::fees::{ComputeBudget, NO_UNITS};
use crate::htlc::{AccountRole, read_only};
use crate::message::{InstructionLayout, refuse};

/// An instruction other than the HTLC's own that the policy allows.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum AllowedInstruction {
    /// Sets the most compute units that the transaction may use.
    ComputeUnitLimit(u32),
    /// Sets the priority fee in micro-lamports per compute unit.
    ComputeUnitPrice(u64),
    /// Creates the owner's associated token account for the mint if it does not exist.
    CreateTokenAccount,
    /// Records a text on chain.
    Memo(String),
}

impl AllowedInstruction {
    /// Reads an instruction; `None` if the policy does not allow its kind.
    pub(crate) fn read(
        program: &Address,
        instruction: &CompiledInstruction,
        place: &InstructionLayout,
        policy: &Policy,
        at: &At<'_>,
    ) -> Result<Option<Self>, Refusal> {
        let data = instruction.data.as_slice();
        let malformed = || refuse(at, Code::InstructionData, &place.data);
        let allowed = match (*program, data) {
            (COMPUTE_BUDGET_PROGRAM, [2 | 3, ..]) => {
                let (max, unit) = match data {
                    [2, ..] => (policy.solana.compute_unit_limit, "compute units"),
                    _ => (policy.solana.compute_unit_price, "micro-lamports per compute unit"),
                };
                let Some(max) = max else { return Ok(None) };
                let (allowed, value) = match Self::read_compute_budget(data) {
                    Some(Self::ComputeUnitLimit(limit)) => (Self::ComputeUnitLimit(limit), u64::from(limit)),
                    Some(Self::ComputeUnitPrice(price)) => (Self::ComputeUnitPrice(price), price),
                    _ => return Err(malformed()),
                };
                if allowed == Self::ComputeUnitLimit(0) {
                    return Err(refuse(at, Code::GasLimitTooLow, &place.data).with_reason(NO_UNITS).with_actual(value));
                }
                if value > max {
                    let refusal = refuse(at, Code::GasLimitTooHigh, &place.data).with_expected(format!("at most {max} {unit}"));
                    return Err(refusal.with_actual(value));
                }
                allowed
            }
            // The caller compares its accounts with the order's, like those of the HTLC's instruction.
            (ASSOCIATED_TOKEN_PROGRAM, [1]) if policy.solana.create_associated_account => return Ok(Some(Self::CreateTokenAccount)),
            (MEMO_PROGRAM, data) => {
                let Some(max) = policy.solana.memo else { return Ok(None) };
                if usize::try_from(max).is_ok_and(|max| data.len() > max) {
                    return Err(malformed()
                        .with_reason("the memo is longer than the policy allows")
                        .with_expected(format!("at most {max} bytes"))
                        .with_actual(data.len()));
                }
                // A memo that cannot be shown completely and unchanged is refused.
                match std::str::from_utf8(data) {
                    Ok(memo) if text::escape_untrusted(memo) == memo => Self::Memo(memo.to_owned()),
                    _ => {
                        return Err(
                            refuse(at, Code::TextNotPlain, &place.data).with_reason("the memo contains characters that cannot be shown")
                        );
                    }
                }
            }
            _ => return Ok(None),
        };
        if !instruction.accounts.is_empty() {
            return Err(refuse(at, Code::AccountMismatch, &place.accounts)
                .with_expected("no accounts")
                .with_actual(instruction.accounts.len()));
        }
        Ok(Some(allowed))
    }

    /// Reads the data of a compute-budget instruction that sets the limit or the price; `None` for any other instruction.
    pub(crate) fn read_compute_budget(data: &[u8]) -> Option<Self> {
        match data {
            [2, limit @ ..] => limit.try_into().ok().map(u32::from_le_bytes).map(Self::ComputeUnitLimit),
            [3, price @ ..] => price.try_into().ok().map(u64::from_le_bytes).map(Self::ComputeUnitPrice),
            _ => None,
        }
    }

    /// Returns whether two instructions are of the same kind. A transaction has at most one of each.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        discriminant(self) == discriminant(other)
    }

    /// Returns the program that the instruction calls.
    pub(crate) const fn program(&self) -> AccountRole {
        match self {
            Self::ComputeUnitLimit(_) | Self::ComputeUnitPrice(_) => read_only("the compute budget program", COMPUTE_BUDGET_PROGRAM),
            Self::CreateTokenAccount => read_only("the associated token program", ASSOCIATED_TOKEN_PROGRAM),
            Self::Memo(_) => read_only("the memo program", MEMO_PROGRAM),
        }
    }

    /// Returns the highest priority fee, in lamports, of a transaction with these instructions and the HTLC's. The fee for signatures
    /// and the rent are not included.
    #[must_use]
    pub fn priority_fee(allowed: &[Self]) -> u128 {
        let mut budget = ComputeBudget { instructions: allowed.len().saturating_add(1), ..ComputeBudget::default() };
        for instruction in allowed {
            budget.read(instruction);
        }
        budget.priority_fee()
    }
}

impl fmt::Display for AllowedInstruction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ComputeUnitLimit(limit) => write!(f, "at most {limit} compute units"),
            Self::ComputeUnitPrice(price) => write!(f, "{price} micro-lamports per compute unit"),
            Self::CreateTokenAccount => f.write_str("creates the owner's token account if it does not exist"),
            Self::Memo(memo) => write!(f, "contains the memo {}", text::quoted(memo)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Limits and rounding: <https://solana.com/docs/core/fees/fee-structure>
    #[test]
    fn priority_fees_follow_price_and_limit() {
        let (price, limit) = (AllowedInstruction::ComputeUnitPrice(1_001), AllowedInstruction::ComputeUnitLimit(100_000));
        assert_eq!(AllowedInstruction::priority_fee(std::slice::from_ref(&limit)), 0);
        assert_eq!(AllowedInstruction::priority_fee(&[price.clone(), limit]), 101);
        assert_eq!(AllowedInstruction::priority_fee(std::slice::from_ref(&price)), 401);
        assert_eq!(AllowedInstruction::priority_fee(&[price, AllowedInstruction::ComputeUnitLimit(u32::MAX)]), 1_402);
    }
}
