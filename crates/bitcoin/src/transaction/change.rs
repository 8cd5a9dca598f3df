//! Fee and change, computed in the same way for payments and recoveries.

use bitcoin::amount::CheckedSum as _;
use bitcoin::{Amount, ScriptBuf, TxOut};
use serde::{Deserialize, Serialize};

use super::FeeRate;
use crate::address::Chain;

/// The weight of version, locktime, marker and flag, and of one byte each for the numbers of inputs and outputs.
const BASE_WEIGHT: u64 = 42;
/// The largest number that is encoded in one byte as a compact size.
const MAX_ONE_BYTE: usize = 252;
/// The weight of the two further bytes of a larger number. Transactions that nodes relay never need more.
const LONGER_COUNT: u64 = 8;

/// When a change output is created, and which weight the fee is computed from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ChangeRule {
    /// Change is created if it reaches the dust limit of the chain's own nodes. The weight is exact.
    #[default]
    Standard,
    /// The rule of `docs/spec/batch.md#bitcoin-fee-and-change`, which fixes every byte of the result. Both coins have Bitcoin's dust
    /// limits, and the numbers of inputs and outputs always count as one byte each.
    BatchContract,
}

impl ChangeRule {
    /// Returns the smallest value of a change output.
    pub(crate) fn dust_limit(self, chain: Chain, script: &ScriptBuf) -> Amount {
        match self {
            Self::Standard => chain.dust_limit(script),
            Self::BatchContract => script.minimal_non_dust(),
        }
    }

    /// Returns the weight of a transaction without its inputs and outputs.
    fn base_weight(self, inputs: usize, outputs: usize) -> u64 {
        let longer = |count: usize| if self == Self::Standard && count > MAX_ONE_BYTE { LONGER_COUNT } else { 0 };
        BASE_WEIGHT.saturating_add(longer(inputs)).saturating_add(longer(outputs))
    }
}

/// Returns the sum of amounts, or the largest representable amount if the sum is larger.
pub(crate) fn sum(amounts: impl IntoIterator<Item = Amount>) -> Amount {
    amounts.into_iter().checked_sum().unwrap_or(Amount::MAX)
}

/// Returns the weight of an output, which is its value, the length of the script and the script.
pub(crate) fn output_weight(script: &ScriptBuf) -> u64 {
    u64::try_from(script.len()).unwrap_or(u64::MAX).saturating_add(9).saturating_mul(4)
}

/// The totals of a transaction whose change is not known yet.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Draft {
    /// Value of the inputs.
    pub(crate) total: Amount,
    /// Value of the outputs.
    pub(crate) paid: Amount,
    weight: u64,
    inputs: usize,
    outputs: usize,
}

impl Draft {
    /// Sums up inputs, each with its value and weight, and outputs.
    ///
    /// Sums saturate. Callers have checked that the total is not above the chain's supply.
    pub(crate) fn new<'o>(inputs: impl IntoIterator<Item = (Amount, u64)>, outputs: impl IntoIterator<Item = &'o TxOut>) -> Self {
        let mut draft = Self::default();
        for (value, weight) in inputs {
            draft.total = sum([draft.total, value]);
            draft.weight = draft.weight.saturating_add(weight);
            draft.inputs = draft.inputs.saturating_add(1);
        }
        for output in outputs {
            draft.paid = sum([draft.paid, output.value]);
            draft.weight = draft.weight.saturating_add(output_weight(&output.script_pubkey));
            draft.outputs = draft.outputs.saturating_add(1);
        }
        draft
    }
}

/// The script for the change, the rule for it, and the fee rate.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ChangePlan<'p> {
    pub(crate) chain: Chain,
    pub(crate) rule: ChangeRule,
    pub(crate) fee_rate: FeeRate,
    pub(crate) script: &'p ScriptBuf,
}

/// The fee and the change of a transaction.
#[derive(Debug, Clone)]
pub(crate) struct ChangeOutcome {
    pub(crate) fee: Amount,
    pub(crate) weight: u64,
    pub(crate) change: Option<TxOut>,
}

/// The value of the inputs is too low.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shortfall {
    /// The lowest sufficient value of the inputs.
    pub(crate) needed: Amount,
}

impl ChangePlan<'_> {
    /// Creates a change output, unless it would be below the dust limit. In that case its value is added to the fee.
    pub(crate) fn settle(&self, draft: &Draft) -> Result<ChangeOutcome, Shortfall> {
        let (alone, with_change) = self.weights(draft);
        if let Some(left) = draft.total.checked_sub(draft.paid)
            && let Some(fee) = self.fee(with_change)
            && let Some(value) = left.checked_sub(fee)
            && value >= self.dust_limit()
        {
            let change = TxOut { value, script_pubkey: self.script.clone() };
            return Ok(ChangeOutcome { fee, weight: with_change, change: Some(change) });
        }
        let needed = sum([self.fee(alone).unwrap_or(Amount::MAX), draft.paid]);
        match draft.total.checked_sub(draft.paid) {
            Some(fee) if draft.total >= needed => Ok(ChangeOutcome { fee, weight: alone, change: None }),
            _ => Err(Shortfall { needed }),
        }
    }

    /// Returns the lowest value of the inputs with which a change output is created.
    pub(crate) fn needed_with_change(&self, draft: &Draft) -> Amount {
        let fee = self.fee(self.weights(draft).1).unwrap_or(Amount::MAX);
        sum([fee, self.dust_limit(), draft.paid])
    }

    /// Returns the virtual size with a change output.
    pub(crate) fn vsize_with_change(&self, draft: &Draft) -> u64 {
        self.weights(draft).1.div_ceil(4)
    }

    /// Returns the smallest value of a change output.
    pub(crate) fn dust_limit(&self) -> Amount {
        self.rule.dust_limit(self.chain, self.script)
    }

    /// Returns the weights without and with a change output.
    fn weights(&self, draft: &Draft) -> (u64, u64) {
        let weight = |outputs| self.rule.base_weight(draft.inputs, outputs).saturating_add(draft.weight);
        let with_change = weight(draft.outputs.saturating_add(1)).saturating_add(output_weight(self.script));
        (weight(draft.outputs), with_change)
    }

    fn fee(&self, weight: u64) -> Option<Amount> {
        self.fee_rate.fee(weight.div_ceil(4))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use countersign_core::chains::{BitcoinNet, Coin};

    /// Pays 1,000 base units from p2wpkh inputs of `each`, at 1 sat/vB.
    fn settle(coin: Coin, rule: ChangeRule, each: u64, inputs: usize) -> Option<(u64, Option<u64>)> {
        let script = ScriptBuf::from_bytes([&[0x00, 0x14][..], &[9; 20]].concat());
        let chain = Chain { coin, net: BitcoinNet::Main };
        let plan = ChangePlan { chain, rule, fee_rate: FeeRate::from_whole(1), script: &script };
        let paid = TxOut { value: Amount::from_sat(1_000), script_pubkey: script.clone() };
        let draft = Draft::new((0..inputs).map(|_| (Amount::from_sat(each), 272)), [&paid]);
        plan.settle(&draft).ok().map(|outcome| (outcome.fee.to_sat(), outcome.change.map(|change| change.value.to_sat())))
    }

    #[test]
    fn change_is_created_from_the_dust_limit_on() {
        // By hand: 42 + 272 + 124 are 438 weight units, 110 vB; with change 562, 141 vB. A p2wpkh output is dust below 294.
        let bitcoin = |total| settle(Coin::Bitcoin, ChangeRule::Standard, total, 1);
        assert_eq!(bitcoin(1_000 + 141 + 294), Some((141, Some(294))));
        assert_eq!(bitcoin(1_000 + 141 + 293), Some((434, None)));
        assert_eq!(bitcoin(1_000 + 110), Some((110, None)));
        assert_eq!(bitcoin(1_000 + 109), None);
        assert_eq!(bitcoin(999), None);
    }

    #[test]
    fn litecoin_has_its_own_dust_limit_except_under_the_batch_contract() {
        let litecoin = |rule, total| settle(Coin::Litecoin, rule, total, 1);
        assert_eq!(litecoin(ChangeRule::Standard, 1_000 + 141 + 2_939), Some((3_080, None)));
        assert_eq!(litecoin(ChangeRule::Standard, 1_000 + 141 + 2_940), Some((141, Some(2_940))));
        assert_eq!(litecoin(ChangeRule::BatchContract, 1_000 + 141 + 294), Some((141, Some(294))));
    }

    #[test]
    fn more_than_252_inputs_are_counted_in_three_bytes() {
        // 253 inputs: 42 + 68,816 + 2 * 124 are 69,106 weight units, 17,277 vB; with two more bytes 17,279 vB.
        let of = |rule| settle(Coin::Bitcoin, rule, 1_000, 253).unwrap().0;
        assert_eq!((of(ChangeRule::BatchContract), of(ChangeRule::Standard)), (17_277, 17_279));
    }
}
