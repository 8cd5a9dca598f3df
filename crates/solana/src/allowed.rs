//! Instructions beside the HTLC's own. By default each of them is refused; the wallet's policy can allow these, once each:
//!
//! | program | data | accounts | policy |
//! |---|---|---|---|
//! | compute budget | `02`, units in 4 bytes little-endian | none | `solana_compute_unit_limit` |
//! | compute budget | `03`, micro-lamports per unit in 8 bytes little-endian | none | `solana_compute_unit_price` |
//! | associated token | `01`, create if there is none | payer, token account, owner, mint, system program, token program | `solana_create_associated_account` |
//! | memo | UTF-8 | none | `solana_memo` |
//!
//! The vault needs no creation of its own: the HTLC program makes it with its first swap of a mint.

use std::fmt;
use std::mem::discriminant;
use std::ops::Range;

use countersign_core::json::At;
use countersign_core::{Code, Policy, Refusal, text};
use solana_message::compiled_instruction::CompiledInstruction;

use crate::address::{ASSOCIATED_TOKEN_PROGRAM, Address, COMPUTE_BUDGET_PROGRAM, MEMO_PROGRAM};
use crate::htlc::{Role, reads};
use crate::message::{InstructionLayout, refuse};

/// Compute units that the network grants an instruction, and a transaction, where no limit is set.
const UNITS_PER_INSTRUCTION: u64 = 200_000;
const UNITS_PER_TRANSACTION: u64 = 1_400_000;

/// An instruction beside the HTLC's own.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Extra {
    /// Compute units that the transaction may use.
    ComputeUnitLimit(u32),
    /// Micro-lamports per compute unit, on top of the fee for signatures.
    ComputeUnitPrice(u64),
    /// Creates the owner's associated token account for the mint if there is none.
    CreateTokenAccount,
    /// A text on chain.
    Memo(String),
}

impl Extra {
    /// Reads an instruction; `None` if the policy allows none of its kind.
    pub(crate) fn read(
        program: &Address,
        instruction: &CompiledInstruction,
        place: &InstructionLayout,
        policy: &Policy,
        at: &At<'_>,
    ) -> Result<Option<Self>, Refusal> {
        let data = instruction.data.as_slice();
        let extra = match (*program, data) {
            (COMPUTE_BUDGET_PROGRAM, [2, rest @ ..]) => match (policy.solana_compute_unit_limit, <[u8; 4]>::try_from(rest)) {
                (None, _) => return Ok(None),
                (Some(most), Ok(limit)) => {
                    let limit = u32::from_le_bytes(limit);
                    at_most(u64::from(limit), most, "compute units", at, &place.data)?;
                    Self::ComputeUnitLimit(limit)
                }
                (Some(_), Err(_)) => return Err(refuse(at, Code::InstructionData, &place.data)),
            },
            (COMPUTE_BUDGET_PROGRAM, [3, rest @ ..]) => match (policy.solana_compute_unit_price, <[u8; 8]>::try_from(rest)) {
                (None, _) => return Ok(None),
                (Some(most), Ok(price)) => {
                    let price = u64::from_le_bytes(price);
                    at_most(price, most, "micro-lamports per compute unit", at, &place.data)?;
                    Self::ComputeUnitPrice(price)
                }
                (Some(_), Err(_)) => return Err(refuse(at, Code::InstructionData, &place.data)),
            },
            // Its accounts are compared with the order's, like those of the HTLC's instruction.
            (ASSOCIATED_TOKEN_PROGRAM, [1]) if policy.solana_create_associated_account => return Ok(Some(Self::CreateTokenAccount)),
            (MEMO_PROGRAM, data) => {
                let Some(most) = policy.solana_memo else { return Ok(None) };
                if usize::try_from(most).is_ok_and(|most| data.len() > most) {
                    return Err(refuse(at, Code::InstructionData, &place.data)
                        .with_reason("the memo is longer than the policy allows")
                        .with_expected(format!("at most {most} bytes"))
                        .with_actual(data.len()));
                }
                // What a person could not read whole and as it stands is not shown, and so not signed.
                match std::str::from_utf8(data) {
                    Ok(memo) if text::escape_untrusted(memo) == memo => Self::Memo(memo.to_owned()),
                    _ => return Err(refuse(at, Code::TextNotPlain, &place.data).with_reason("the memo cannot be shown as it is")),
                }
            }
            _ => return Ok(None),
        };
        if !instruction.accounts.is_empty() {
            return Err(refuse(at, Code::AccountMismatch, &place.accounts).with_expected("no accounts").with_actual(instruction.accounts.len()));
        }
        Ok(Some(extra))
    }

    /// Whether two are of one kind: of each there is at most one.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        discriminant(self) == discriminant(other)
    }

    /// The program that it calls.
    pub(crate) const fn program(&self) -> Role {
        match self {
            Self::ComputeUnitLimit(_) | Self::ComputeUnitPrice(_) => reads("the compute budget program", COMPUTE_BUDGET_PROGRAM),
            Self::CreateTokenAccount => reads("the associated token program", ASSOCIATED_TOKEN_PROGRAM),
            Self::Memo(_) => reads("the memo program", MEMO_PROGRAM),
        }
    }

    /// The most lamports that a transaction with these extras pays beside the fee for its signatures and rent.
    #[must_use]
    pub fn priority_fee(extras: &[Self]) -> u128 {
        let price = extras.iter().find_map(|extra| if let Self::ComputeUnitPrice(price) = extra { Some(*price) } else { None });
        let limit = extras.iter().find_map(|extra| if let Self::ComputeUnitLimit(limit) = extra { Some(u64::from(*limit)) } else { None });
        let granted = || {
            let instructions = u64::try_from(extras.len()).unwrap_or(u64::MAX).saturating_add(1);
            UNITS_PER_INSTRUCTION.saturating_mul(instructions)
        };
        let units = limit.unwrap_or_else(granted).min(UNITS_PER_TRANSACTION);
        u128::from(price.unwrap_or(0)).saturating_mul(u128::from(units)).div_ceil(1_000_000)
    }
}

impl fmt::Display for Extra {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ComputeUnitLimit(limit) => write!(f, "at most {limit} compute units"),
            Self::ComputeUnitPrice(price) => write!(f, "{price} micro-lamports per compute unit"),
            Self::CreateTokenAccount => f.write_str("creates the owner's token account if there is none"),
            Self::Memo(memo) => write!(f, "carries the memo \"{memo}\""),
        }
    }
}

fn at_most(value: u64, most: u64, unit: &str, at: &At<'_>, place: &Range<usize>) -> Result<(), Refusal> {
    if value <= most { Ok(()) } else { Err(refuse(at, Code::GasLimitTooHigh, place).with_expected(format!("at most {most} {unit}")).with_actual(value)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Limits and rounding: <https://solana.com/docs/core/fees/fee-structure>
    #[test]
    fn priority_fees_follow_price_and_limit() {
        let (price, limit) = (Extra::ComputeUnitPrice(1_001), Extra::ComputeUnitLimit(100_000));
        assert_eq!(Extra::priority_fee(std::slice::from_ref(&limit)), 0);
        assert_eq!(Extra::priority_fee(&[price.clone(), limit]), 101);
        assert_eq!(Extra::priority_fee(std::slice::from_ref(&price)), 401);
        assert_eq!(Extra::priority_fee(&[price, Extra::ComputeUnitLimit(u32::MAX)]), 1_402);
    }
}
