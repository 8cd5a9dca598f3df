//! Coin selection. A search with floats proposes a selection, and exact arithmetic decides whether it is enough.

use bdk_coin_select::metrics::LowestFee;
use bdk_coin_select::{Candidate, ChangePolicy, CoinSelector, DrainWeights, FeeRate as Rough, Target, TargetFee, TargetOutputs};
use bitcoin::Amount;
use countersign_core::sort;

use super::{FeeRate, Spend, Utxo};

/// The most steps of branch and bound in total, which keeps the search within some ten milliseconds.
const MAX_SELECTION_STEPS: usize = 300_000;
/// With fewer rounds than this, branch and bound would find nothing, so it is skipped.
const MIN_ROUNDS: usize = 10;
/// The most rounds of branch and bound.
const MAX_ROUNDS: usize = 20_000;
/// The most inputs of a transaction that nodes relay: 400,000 weight units, divided by the 230 of a taproot input.
const MAX_INPUTS: usize = 1_739;
/// The weight of the input that will spend the change later, which is assumed to be p2wpkh.
const SPEND_CHANGE: u64 = 272;

/// The payment that the selected coins must cover.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SelectionTarget {
    /// Amount to pay.
    pub(crate) amount: Amount,
    /// Weight of the output that pays the amount.
    pub(crate) output_weight: u64,
    /// Weight of a change output.
    pub(crate) change_weight: u64,
    /// Smallest value of a change output.
    pub(crate) dust_limit: Amount,
    pub(crate) fee_rate: FeeRate,
}

/// Returns the coins that pay the target, in the given order; `None` if all of them together do not.
///
/// Branch and bound searches for the lowest fee, including the cost of spending the change later. If it finds nothing within its
/// rounds, coins are added by value per weight, highest first, until they are enough. `is_enough` decides: it repeats the
/// computation of the search with exact decimals.
pub(crate) fn choose<'u>(utxos: &'u [Utxo], target: &SelectionTarget, is_enough: impl Fn(&[&'u Utxo]) -> bool) -> Option<Vec<&'u Utxo>> {
    let candidates: Vec<_> = utxos
        .iter()
        .map(|utxo| Candidate {
            value: utxo.output().value.to_sat(),
            weight: utxo.spend().weight(),
            input_count: 1,
            is_segwit: !matches!(utxo.spend(), Spend::P2pkh),
        })
        .collect();
    let rate = Rough::from_sat_per_vb(target.fee_rate.rough()?);
    let outputs = TargetOutputs::fund_outputs([(target.output_weight, target.amount.to_sat())]);
    let mut selector = CoinSelector::new(&candidates);
    selector.sort_candidates_by_descending_value_pwu();
    for (index, candidate) in candidates.iter().enumerate() {
        if candidate.effective_value(rate) <= 0.0 {
            selector.ban(index);
        }
    }
    let picked = |indices: &[usize]| indices.iter().filter_map(|index| utxos.get(*index)).collect::<Vec<_>>();
    let largest = largest_first(&selector, target.amount.to_sat(), |indices| is_enough(&picked(indices)))?;
    // Each round visits every candidate, and sums up to `needed` coins up to `needed` times.
    let needed = largest.len();
    let rounds = MAX_SELECTION_STEPS.checked_div(needed.saturating_mul(needed).saturating_add(candidates.len()))?.min(MAX_ROUNDS);
    let drain = DrainWeights { output_weight: target.change_weight, spend_weight: SPEND_CHANGE, n_outputs: 1 };
    let metric = LowestFee {
        target: Target { fee: TargetFee::from_feerate(rate), outputs },
        long_term_feerate: rate,
        change_policy: ChangePolicy::min_value(drain, target.dust_limit.to_sat()),
    };
    if rounds >= MIN_ROUNDS && selector.run_bnb(metric, rounds).is_ok() {
        let chosen = picked(&selector.selected_indices().iter().copied().collect::<Vec<_>>());
        if is_enough(&chosen) {
            return Some(chosen);
        }
    }
    Some(picked(&largest))
}

/// Returns the coins with the highest value per weight that are enough together; `None` if no transaction can contain as many.
fn largest_first(selector: &CoinSelector<'_>, amount: u64, is_enough: impl Fn(&[usize]) -> bool) -> Option<Vec<usize>> {
    let (mut chosen, mut value) = (Vec::new(), 0_u64);
    for (index, candidate) in selector.candidates().filter(|(index, _)| !selector.banned().contains(index)).take(MAX_INPUTS) {
        chosen.push(index);
        value = value.saturating_add(candidate.value);
        if value > amount && is_enough(&chosen) {
            sort::ascending(&mut chosen);
            return Some(chosen);
        }
    }
    None
}
