//! What a transaction should pay: pure functions of what endpoints show.

use alloy_primitives::U256;
use countersign_core::chains::ChainProfile;
use countersign_core::json::Cursor;
use countersign_core::reader::{high_median, median, outbid, rebid};
use countersign_core::{Code, Policy, Refusal, TypedValue, sort};

use super::price;
use crate::Fees;

/// The number of recent blocks whose fees are read.
pub(super) const BLOCKS: usize = 5;
/// The percentiles of the tips in a block, by gas used, for slow, normal and fast transactions.
pub(super) const PERCENTILES: [u8; 3] = [10, 50, 90];
/// Wei per gwei.
const GWEI: u128 = 1_000_000_000;
/// The highest price of a chain of which nothing is known, in gwei.
const OTHER_CEILING: u64 = 1_000;

/// The prices that one endpoint shows, in wei per unit of gas. What is paid follows from the prices of all endpoints: see [`levels`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(clippy::exhaustive_structs, reason = "what a node shows of its prices")]
pub struct Prices {
    /// The base fee of the next block; `None` on a chain without EIP-1559.
    pub base_fee: Option<u128>,
    /// The tips of recent blocks, for slow, normal and fast transactions: medians of the blocks' percentiles.
    pub tips: [u128; PERCENTILES.len()],
    /// The tip that the node asks for: `eth_maxPriorityFeePerGas`, otherwise `eth_gasPrice` minus the base fee.
    pub asked_tip: u128,
    /// The price that the node asks for: `eth_gasPrice`.
    pub gas_price: u128,
}

/// The fees of a transaction that should be mined slowly, normally or fast.
///
/// | speed | fee cap | tip: median over the last five blocks of the | gas price without EIP-1559 |
/// |---|---|---|---|
/// | slow | 1.2 × base fee + tip | 10th percentile | 1 × the node's |
/// | normal | 1.5 × base fee + tip | 50th percentile | 1.1 × the node's |
/// | fast | 2 × base fee + tip | 90th percentile | 1.3 × the node's |
///
/// The base fee is that of the next block. The tip is at least what nodes ask for, because they do not relay a transaction with less.
/// Blocks do not tell: on an idle chain, or one whose base fee is 0, their tips may be 0.
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

/// Returns the fees that follow from what endpoints show; `None` of nothing.
///
/// The base fee, each tip, the tip that nodes ask for and their gas price are [medians](median), each for itself. Whether there is a base
/// fee is decided by more than half of the endpoints.
#[must_use]
pub fn levels(shown: &[Prices]) -> Option<FeeLevels> {
    levels_by(median, shown)
}

/// Returns the fees of a transaction that makes a secret public, as [`levels`] does, but from the [higher medians](high_median): where a
/// single endpoint is silent, another one must not lower them.
#[must_use]
pub fn revealing_levels(shown: &[Prices]) -> Option<FeeLevels> {
    levels_by(high_median, shown)
}

fn levels_by(median: fn(Vec<u128>) -> Option<u128>, shown: &[Prices]) -> Option<FeeLevels> {
    let of = |price: fn(&Prices) -> u128| median(shown.iter().map(price).collect());
    let (gas_price, asked_tip) = (of(|one| one.gas_price)?, of(|one| one.asked_tip)?);
    let base_fees: Vec<_> = shown.iter().filter_map(|one| one.base_fee).collect();
    let has_base_fee = base_fees.len().saturating_mul(2) > shown.len();
    let Some(base) = median(base_fees).filter(|_| has_base_fee) else {
        let level = |factor| Fees::Legacy { gas_price: tenths(gas_price, factor) };
        return Some(FeeLevels { slow: level(10), normal: level(11), fast: level(13) });
    };
    // Where nothing is paid to the chain, nodes ask for their price as a tip.
    let least = if base == 0 { asked_tip.max(gas_price) } else { asked_tip }.max(1);
    let level = |factor, tip: Option<u128>| {
        let tip = tip.unwrap_or_default().max(least);
        Fees::Eip1559 { max_fee_per_gas: tenths(base, factor).saturating_add(tip), max_priority_fee_per_gas: tip }
    };
    Some(FeeLevels {
        slow: level(12, of(|one| one.tips[0])),
        normal: level(15, of(|one| one.tips[1])),
        fast: level(20, of(|one| one.tips[2])),
    })
}

impl Prices {
    /// Reads the result of `eth_feeHistory`: the base fee of the next block, and tips.
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
        let tips = columns.map(|tips| {
            let middle = tips.len() / 2;
            sort::nth(tips, middle, Ord::cmp).unwrap_or_default()
        });
        Ok(Self { base_fee: Some(base), tips, ..Self::default() })
    }
}

/// Returns fees for a transaction that takes the place of one whose fees are not known.
///
/// Nodes replace a transaction only if both fees are at least 10 % higher. The fee cap is doubled, within the limit, and a quarter of it
/// is the tip: more than a transaction offers that was signed at the chain's own tips. On an ordinary chain the price that is paid stays
/// below the cap of `now`.
#[must_use]
pub fn displacing(now: Fees, limit: u128) -> Fees {
    let doubled = |price: u128| price.saturating_mul(2).min(limit).max(price);
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

/// Returns the maximum price of one unit of gas that is taken from nodes, in wei: that of the policy, or else that of the chain.
#[must_use]
pub fn limit(policy: &Policy, chain: &ChainProfile) -> u128 {
    u128::from(policy.evm.gas_price.or(chain.price_ceiling).unwrap_or(OTHER_CEILING)).saturating_mul(GWEI)
}

/// Requires that fees are within the [`limit`].
///
/// # Errors
///
/// [`Code::GasPriceTooHigh`].
pub fn check(fees: Fees, limit: u128) -> Result<(), Refusal> {
    if cap(fees) <= limit {
        return Ok(());
    }
    let at = if matches!(fees, Fees::Legacy { .. }) { "/gas_price" } else { "/max_fee_per_gas" };
    let refusal = Refusal::new(Code::GasPriceTooHigh, at).with_expected(TypedValue::AtMost(U256::from(limit)));
    Err(refusal.with_actual(cap(fees)))
}

/// Returns fees for a transaction that replaces one with the fees `before`. They have the same type. Fee cap and tip are at least 10 %
/// higher, as nodes require, and at least those of `now`.
#[must_use]
pub fn raised(before: Fees, now: Fees) -> Fees {
    let (cap, tip) = (outbid(cap(before)).max(cap(now)), outbid(tip(before)).max(tip(now)));
    with(before, cap, tip)
}

/// Returns fees for a transaction that takes the place of one with the fees `before`, which is overdue, given those of this moment. They
/// have the same type.
///
/// What is paid, the tip or a legacy price, is raised ([`raised`]), but to at most four times that of this moment ([`rebid`]). The cap is not
/// paid, but the sender must have the coins for it: it is raised as nodes require, as long as the tip is, too, and the limit allows it.
/// Otherwise the transaction that was sent offers more than is allowed now. Nodes that have it will use it, or wait until its cap covers
/// the base fee. The others take the lower offer.
#[must_use]
pub fn overdue(before: Fees, now: Fees, limit: u128) -> Fees {
    let (required, raised_tip) = (outbid(cap(before)), rebid(tip(before), tip(now)));
    let is_replacing = raised_tip >= outbid(tip(before)) && required <= limit;
    let is_legacy = matches!(before, Fees::Legacy { .. });
    let cap = if is_replacing && !is_legacy { required.max(cap(now)) } else { rebid(cap(before), cap(now)) };
    with(before, cap, raised_tip)
}

/// Returns fees of the same type.
fn with(fees: Fees, cap: u128, tip: u128) -> Fees {
    match fees {
        Fees::Eip1559 { .. } => Fees::Eip1559 { max_fee_per_gas: cap.max(tip), max_priority_fee_per_gas: tip },
        Fees::Legacy { .. } => Fees::Legacy { gas_price: cap },
    }
}

/// Returns the tip, in wei; the whole price of a legacy transaction is one.
const fn tip(fees: Fees) -> u128 {
    match fees {
        Fees::Eip1559 { max_priority_fee_per_gas, .. } => max_priority_fee_per_gas,
        Fees::Legacy { gas_price } => gas_price,
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
