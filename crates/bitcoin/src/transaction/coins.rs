//! Which unspent outputs pay: the choice is the library's, the arithmetic that decides is exact.

use bdk_coin_select::metrics::LowestFee;
use bdk_coin_select::{Candidate, ChangePolicy, CoinSelector, DrainWeights, FeeRate as Rough, Target, TargetFee, TargetOutputs};

use super::{FeeRate, Utxo};

/// Rounds of branch and bound times candidates: keeps the search within milliseconds.
const EFFORT: usize = 2_000_000;
/// Weight of the input that will spend a change output later: p2wpkh.
const SPEND_CHANGE: u64 = 272;

/// What is to be paid and at what price.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Goal {
    /// Base units that leave.
    pub(crate) amount: u64,
    /// Weight of the output that gets them.
    pub(crate) output_weight: u64,
    /// Weight of a change output.
    pub(crate) change_weight: u64,
    /// Smallest change that is made.
    pub(crate) dust: u64,
    pub(crate) rate: FeeRate,
}

/// Indices of the outputs that pay the goal, in the order in which they were given; `None` if all together do not.
///
/// Branch and bound looks for the lowest fee, the change's later spending included. Where it finds nothing in its rounds, the
/// outputs that are worth most per weight are taken until the goal is met. `enough` has the last word: it computes with exact
/// decimals what the library computes with floats.
pub(crate) fn choose(utxos: &[Utxo], goal: &Goal, enough: impl Fn(&[usize]) -> bool) -> Option<Vec<usize>> {
    let candidates: Vec<_> = utxos
        .iter()
        .map(|utxo| Candidate {
            value: utxo.output.value.to_sat(),
            weight: utxo.kind.weight(),
            input_count: 1,
            is_segwit: !matches!(utxo.kind, super::Spend::P2pkh { .. }),
        })
        .collect();
    let rate = Rough::from_sat_per_vb(goal.rate.to_string().parse().ok()?);
    let target = Target { fee: TargetFee::from_feerate(rate), outputs: TargetOutputs::fund_outputs([(goal.output_weight, goal.amount)]) };
    let drain = DrainWeights { output_weight: goal.change_weight, spend_weight: SPEND_CHANGE, n_outputs: 1 };
    let change_policy = ChangePolicy::min_value(drain, goal.dust);
    let mut selector = CoinSelector::new(&candidates);
    selector.sort_candidates_by_descending_value_pwu();
    let worthless: Vec<_> =
        candidates.iter().enumerate().filter(|(_, candidate)| candidate.effective_value(rate) <= 0.0).map(|(index, _)| index).collect();
    for index in worthless {
        selector.ban(index);
    }
    let metric = LowestFee { target, long_term_feerate: rate, change_policy };
    let rounds = EFFORT.checked_div(candidates.len())?.clamp(20, 20_000);
    let mut greedy = selector.clone();
    let chosen = |selector: &CoinSelector<'_>| selector.selected_indices().iter().copied().collect::<Vec<_>>();
    if selector.run_bnb(metric, rounds).is_ok() && enough(&chosen(&selector)) {
        return Some(chosen(&selector));
    }
    greedy.select_until(|greedy| greedy.is_target_met(target) && enough(&chosen(greedy)))?;
    Some(chosen(&greedy))
}
