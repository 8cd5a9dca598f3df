//! Coin selection: a search with floats proposes, exact arithmetic decides.

use bdk_coin_select::metrics::LowestFee;
use bdk_coin_select::{Candidate, ChangePolicy, CoinSelector, DrainWeights, FeeRate as Rough, Target, TargetFee, TargetOutputs};

use super::{FeeRate, Spend, Utxo};

/// Steps that branch and bound may take in all: keeps the search within some ten milliseconds.
const EFFORT: usize = 300_000;
/// Rounds below which it would find nothing.
const MIN_ROUNDS: usize = 10;
/// Rounds after which no better choice is looked for.
const MAX_ROUNDS: usize = 20_000;
/// No transaction that nodes relay has more inputs: 400,000 weight units by 230 of a taproot input.
const MAX_INPUTS: usize = 1_739;
/// Weight of the input that will spend a change output later: p2wpkh.
const SPEND_CHANGE: u64 = 272;

/// What the chosen coins have to pay, and at what price.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SelectionTarget {
    /// Base units that leave.
    pub(crate) amount: u64,
    /// Weight of the output that gets them.
    pub(crate) output_weight: u64,
    /// Weight of a change output.
    pub(crate) change_weight: u64,
    /// Smallest change that is made.
    pub(crate) dust_limit: u64,
    pub(crate) fee_rate: FeeRate,
}

/// Returns the coins that pay the target, in the order in which they were given; `None` if all together do not.
///
/// Branch and bound looks for the lowest fee, the change's later spending included. Where it finds nothing in its rounds, the
/// outputs that are worth most per weight are taken until they are enough. `is_enough` has the last word: it computes with
/// exact decimals what the search computes with floats.
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
    let rate = Rough::from_sat_per_vb(target.fee_rate.to_string().parse().ok()?);
    let outputs = TargetOutputs::fund_outputs([(target.output_weight, target.amount)]);
    let mut selector = CoinSelector::new(&candidates);
    selector.sort_candidates_by_descending_value_pwu();
    for (index, candidate) in candidates.iter().enumerate() {
        if candidate.effective_value(rate) <= 0.0 {
            selector.ban(index);
        }
    }
    let picked = |indices: &[usize]| indices.iter().filter_map(|index| utxos.get(*index)).collect::<Vec<_>>();
    let largest = largest_first(&selector, target.amount, |indices| is_enough(&picked(indices)))?;
    // A round looks at every coin, and adds up as many as are needed, as often as there are such.
    let needed = largest.len();
    let rounds = EFFORT.checked_div(needed.saturating_mul(needed).saturating_add(candidates.len()))?.min(MAX_ROUNDS);
    let drain = DrainWeights { output_weight: target.change_weight, spend_weight: SPEND_CHANGE, n_outputs: 1 };
    let metric = LowestFee {
        target: Target { fee: TargetFee::from_feerate(rate), outputs },
        long_term_feerate: rate,
        change_policy: ChangePolicy::min_value(drain, target.dust_limit),
    };
    if rounds >= MIN_ROUNDS && selector.run_bnb(metric, rounds).is_ok() {
        let chosen = picked(&selector.selected_indices().iter().copied().collect::<Vec<_>>());
        if is_enough(&chosen) {
            return Some(chosen);
        }
    }
    Some(picked(&largest))
}

/// Returns the outputs that are worth most per weight, until they are enough; `None` if no transaction can hold as many.
fn largest_first(selector: &CoinSelector<'_>, amount: u64, is_enough: impl Fn(&[usize]) -> bool) -> Option<Vec<usize>> {
    let (mut chosen, mut value) = (Vec::new(), 0_u64);
    for (index, candidate) in selector.candidates().filter(|(index, _)| !selector.banned().contains(index)).take(MAX_INPUTS) {
        chosen.push(index);
        value = value.saturating_add(candidate.value);
        if value > amount && is_enough(&chosen) {
            chosen.sort_unstable();
            return Some(chosen);
        }
    }
    None
}
