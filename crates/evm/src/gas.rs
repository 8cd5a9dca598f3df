//! Which gas limits can work, as far as the rules of the chain alone decide it.

use alloy_primitives::U256;
use countersign_core::{Code, Refusal, RefuseAt, Role, TypedValue, Warnings};

/// Gas of the cheapest possible transaction. A transaction with a lower limit is never mined.
const MIN_GAS: u64 = 21_000;

/// Gas that no redemption or refund needs less of: the transaction itself, the write to the slot of the swap, which is read first (EIP-2929), and
/// the cheapest payout, which is a call with a value. Calldata, event and proof of the secret cost more on top.
const MIN_RECOVERY_GAS: u64 = MIN_GAS + 5_000 + 9_000;

/// Returns why a gas limit is too low for a redemption or a refund; `None` if it may suffice.
pub(crate) fn low_limit(gas_limit: u64) -> Option<String> {
    (gas_limit < MIN_RECOVERY_GAS).then(|| format!("a gas limit of {gas_limit}, and no such call needs less than {MIN_RECOVERY_GAS}"))
}

/// Requires that a gas limit is within the policy, and that a transaction may have it at all.
pub(crate) fn check_limit(max: u64, limit: U256, refuse: RefuseAt<'_>) -> Result<u64, Refusal> {
    match u64::try_from(limit) {
        Ok(gas) if gas < MIN_GAS => Err(refuse(Code::GasLimitTooLow).with_expected(format!("at least {MIN_GAS:#x}"))),
        Ok(gas) if gas <= max => Ok(gas),
        _ => Err(refuse(Code::GasLimitTooHigh).with_expected(format!("at most {max:#x}"))),
    }
}

/// Requires that a gas limit pays for the bytes of the call.
pub(crate) fn check_bytes(limit: u64, data: &[u8], refuse: RefuseAt<'_>) -> Result<(), Refusal> {
    let needed = min_gas(data);
    if limit >= needed {
        return Ok(());
    }
    let reason = "the gas limit does not even pay for the transaction's own bytes";
    Err(refuse(Code::GasLimitTooLow).with_reason(reason).with_expected(TypedValue::AtLeast(U256::from(needed))).with_actual(limit))
}

/// Adds a warning if a gas limit that the service proposed does not pay for the bytes of the call. The wallet can raise that of the call
/// which locks the funds.
pub(crate) fn warn_below_bytes(role: Role, limit: u64, data: &[u8], warnings: &mut Warnings) {
    let needed = min_gas(data);
    if limit < needed {
        let why = format!("a gas limit of {limit} for the {role}, whose own bytes need {needed}, so no node takes it");
        warnings.warn_about(Code::FeeTooLow, why);
    }
}

/// Returns the lowest gas limit with which a transaction with this calldata is mined: what its bytes cost (EIP-2028), or the floor for its
/// bytes (EIP-7623) if that is more.
///
/// A chain without the floor gains nothing by it: each call of an order writes to the contract's or the token's storage, which costs more
/// than the difference.
pub(crate) fn min_gas(data: &[u8]) -> u64 {
    let count = |bytes: usize| u64::try_from(bytes).unwrap_or(u64::MAX);
    let zeros = data.iter().filter(|byte| **byte == 0).count();
    let (zeros, others) = (count(zeros), count(data.len().saturating_sub(zeros)));
    let with = |zero: u64, other: u64| zeros.saturating_mul(zero).saturating_add(others.saturating_mul(other)).saturating_add(MIN_GAS);
    with(4, 16).max(with(10, 40))
}

/// Adds a warning if a gas limit is above what the chain allows one transaction.
pub(crate) fn warn_above_cap(cap: Option<u64>, limit: u64, warnings: &mut Warnings) {
    if let Some(cap) = cap.filter(|cap| limit > *cap) {
        warnings.warn_about(Code::GasLimitAboveCap, format!("{limit} gas, and at most {cap} are allowed"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example values of the two EIPs: 16 and 4 gas for each byte, and a floor of 10 gas for each of its 4 tokens or 1.
    #[test]
    fn bytes_cost_what_the_eips_say() {
        for (data, gas) in [(vec![], 21_000), (vec![0; 100], 22_000), (vec![1; 100], 25_000), (vec![0, 1], 21_050)] {
            assert_eq!(min_gas(&data), gas, "{} bytes", data.len());
        }
    }

    #[test]
    fn a_limit_at_the_bound_is_accepted() {
        let refuse = |code| Refusal::new(code, "/gas_limit");
        assert!(check_bytes(25_000, &[1; 100], &refuse).is_ok());
        let refusal = check_bytes(24_999, &[1; 100], &refuse).unwrap_err();
        assert_eq!(refusal.code(), Code::GasLimitTooLow);
        assert_eq!(refusal.expected(), Some(&TypedValue::AtLeast(U256::from(25_000))));
        let warned = |cap, limit| {
            let mut warnings = Warnings::default();
            warn_above_cap(cap, limit, &mut warnings);
            warnings.list().len()
        };
        assert_eq!([warned(None, u64::MAX), warned(Some(1 << 24), 1 << 24), warned(Some(1 << 24), (1 << 24) + 1)], [0, 0, 1]);
    }
}
