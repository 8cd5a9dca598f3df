//! What a transaction should pay: pure functions of what endpoints show.

use alloy_primitives::U256;
use countersign_core::json::Cursor;
use countersign_core::reader::outbid;
use countersign_core::{Code, Policy, Refusal, TypedValue};

use super::price;
use crate::Fees;

/// The number of recent blocks whose fees are read.
pub(super) const BLOCKS: usize = 5;
/// The percentiles of the tips in a block, by gas used, for slow, normal and fast transactions.
pub(super) const PERCENTILES: [u8; 3] = [10, 50, 90];
/// Wei per gwei.
const GWEI: u128 = 1_000_000_000;

/// The fees of a transaction that should be mined slowly, normally or fast.
///
/// | speed | fee cap | tip: median over the last five blocks of the | gas price without EIP-1559 |
/// |---|---|---|---|
/// | slow | 1.2 × base fee + tip | 10th percentile | 1 × the node's |
/// | normal | 1.5 × base fee + tip | 50th percentile | 1.1 × the node's |
/// | fast | 2 × base fee + tip | 90th percentile | 1.3 × the node's |
///
/// The base fee is that of the next block. The tip is at least 1 wei, because nodes do not relay a transaction without one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct FeeLevels {
    /// The cheapest.
    pub slow: Fees,
    /// Within a few blocks.
    pub normal: Fees,
    /// In the next block, if possible.
    pub fast: Fees,
}

impl FeeLevels {
    pub(super) fn from_gas_price(gas_price: u128) -> Self {
        let level = |factor| Fees::Legacy { gas_price: tenths(gas_price, factor) };
        Self { slow: level(10), normal: level(11), fast: level(13) }
    }

    /// Reads the result of `eth_feeHistory`.
    pub(super) fn from_history(history: &Cursor<'_, '_>) -> Result<Self, Refusal> {
        let members = history.object()?;
        let base = members.need("baseFeePerGas")?;
        let base = base.array()?.take(BLOCKS.saturating_add(1)).last();
        let base = base.map(|fee| price(&fee)).transpose()?.ok_or_else(|| history.at().key("baseFeePerGas").refuse(Code::MissingField))?;
        // On an idle chain there are no tips to read.
        let mut columns = [const { Vec::new() }; PERCENTILES.len()];
        if let Some(rewards) = members.get("reward") {
            for row in rewards.array()?.take(BLOCKS) {
                for (column, tip) in columns.iter_mut().zip(row.array()?) {
                    column.push(price(&tip)?);
                }
            }
        }
        let [slow, normal, fast] = columns.map(|mut tips| {
            tips.sort_unstable();
            tips.get(tips.len() / 2).copied().unwrap_or_default().max(1)
        });
        let level =
            |factor, tip| Fees::Eip1559 { max_fee_per_gas: tenths(base, factor).saturating_add(tip), max_priority_fee_per_gas: tip };
        Ok(Self { slow: level(12, slow), normal: level(15, normal), fast: level(20, fast) })
    }
}

/// Returns the median of what endpoints show, by the maximum price of one unit of gas. Of two it is the higher one.
#[must_use]
pub fn median(mut fees: Vec<Fees>) -> Option<Fees> {
    fees.sort_by_key(|fees| cap(*fees));
    fees.get(fees.len() / 2).copied()
}

/// Returns the highest of what endpoints show that the policy allows, and the lowest if it allows none. A redemption must not wait, and
/// a single endpoint must not be able to make it wait.
#[must_use]
pub fn highest_within(fees: Vec<Fees>, policy: &Policy) -> Option<Fees> {
    let lowest = fees.iter().copied().min_by_key(|fees| cap(*fees));
    fees.into_iter().filter(|fees| check(*fees, policy).is_ok()).max_by_key(|fees| cap(*fees)).or(lowest)
}

/// Returns fees for a transaction that takes the place of one whose fees are not known.
///
/// Nodes replace a transaction only if both fees are at least 10 % higher. The fee cap is doubled, within the policy, and a quarter of it
/// is the tip: more than a transaction offers that was signed at the chain's own tips. On an ordinary chain the price that is paid stays
/// below the cap of `now`.
#[must_use]
pub fn displacing(now: Fees, policy: &Policy) -> Fees {
    let doubled = |price: u128| price.saturating_mul(2).min(limit(policy)).max(price);
    match now {
        Fees::Eip1559 { max_fee_per_gas, max_priority_fee_per_gas } => {
            let max_fee_per_gas = doubled(max_fee_per_gas);
            let tip = max_priority_fee_per_gas.saturating_mul(2).max(max_fee_per_gas / 4);
            Fees::Eip1559 { max_fee_per_gas, max_priority_fee_per_gas: tip.min(max_fee_per_gas) }
        }
        Fees::Legacy { gas_price } => Fees::Legacy { gas_price: doubled(gas_price) },
    }
}

/// Returns the same fees with at most this price of one unit of gas.
#[must_use]
pub fn at_most(fees: Fees, price: u128) -> Fees {
    match fees {
        Fees::Eip1559 { max_fee_per_gas, max_priority_fee_per_gas } => {
            Fees::Eip1559 { max_fee_per_gas: max_fee_per_gas.min(price), max_priority_fee_per_gas: max_priority_fee_per_gas.min(price) }
        }
        Fees::Legacy { gas_price } => Fees::Legacy { gas_price: gas_price.min(price) },
    }
}

/// Returns the maximum price of one unit of gas that the policy allows, in wei.
#[must_use]
pub fn limit(policy: &Policy) -> u128 {
    u128::from(policy.evm.gas_price).saturating_mul(GWEI)
}

/// Requires that fees are within the policy.
///
/// # Errors
///
/// [`Code::GasPriceTooHigh`].
pub fn check(fees: Fees, policy: &Policy) -> Result<(), Refusal> {
    let max = limit(policy);
    if cap(fees) <= max {
        return Ok(());
    }
    let at = if matches!(fees, Fees::Legacy { .. }) { "/gas_price" } else { "/max_fee_per_gas" };
    let refusal = Refusal::new(Code::GasPriceTooHigh, at).with_expected(TypedValue::AtMost(U256::from(max)));
    Err(refusal.with_actual(cap(fees)))
}

/// Returns fees for a transaction that replaces one with the fees `before`. They have the same type. Fee cap and tip are at least 10 %
/// higher, as nodes require, and at least those of `now`.
#[must_use]
pub fn raised(before: Fees, now: Fees) -> Fees {
    let tip = match now {
        Fees::Eip1559 { max_priority_fee_per_gas, .. } => max_priority_fee_per_gas,
        Fees::Legacy { .. } => 0,
    };
    match before {
        Fees::Eip1559 { max_fee_per_gas, max_priority_fee_per_gas } => {
            let max_priority_fee_per_gas = outbid(max_priority_fee_per_gas).max(tip);
            let max_fee_per_gas = outbid(max_fee_per_gas).max(cap(now)).max(max_priority_fee_per_gas);
            Fees::Eip1559 { max_fee_per_gas, max_priority_fee_per_gas }
        }
        Fees::Legacy { gas_price } => Fees::Legacy { gas_price: outbid(gas_price).max(cap(now)) },
    }
}

/// Returns the maximum price of one unit of gas, in wei.
#[must_use]
pub const fn cap(fees: Fees) -> u128 {
    match fees {
        Fees::Eip1559 { max_fee_per_gas, .. } => max_fee_per_gas,
        Fees::Legacy { gas_price } => gas_price,
    }
}

/// Multiplies a price by a number of tenths, rounded up.
const fn tenths(price: u128, tenths: u128) -> u128 {
    price.saturating_mul(tenths).div_ceil(10)
}
