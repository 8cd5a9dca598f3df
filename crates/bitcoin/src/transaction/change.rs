//! Fee and change: one computation for payments and recoveries.

use bitcoin::{Amount, ScriptBuf, TxOut};

use super::FeeRate;
use crate::address::Chain;

/// Weight of version, locktime, marker and flag, and one byte each for the numbers of inputs and outputs.
const BASE_WEIGHT: u64 = 42;
/// The largest number that takes one byte as a compact size.
const MAX_ONE_BYTE: usize = 252;
/// Weight of the two further bytes of a larger one: transactions that nodes relay need no more.
const LONGER_COUNT: u64 = 8;

/// When change is made, and which weight the fee is computed from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum ChangeRule {
    /// Change is made if it reaches the dust limit of the chain's own nodes, and every byte counts.
    #[default]
    Standard,
    /// The rule of `docs/spec/batch.md#bitcoin-fee-and-change`, which fixes every byte of the result: Bitcoin's dust limits for
    /// both coins, and the numbers of inputs and outputs always count as one byte each.
    BatchContract,
}

impl ChangeRule {
    /// Returns the smallest change that is made.
    pub(crate) fn dust_limit(self, chain: Chain, script: &ScriptBuf) -> u64 {
        match self {
            Self::Standard => chain.dust_limit(script),
            Self::BatchContract => script.minimal_non_dust().to_sat(),
        }
    }

    /// Returns the weight of everything but inputs and outputs.
    fn base_weight(self, inputs: usize, outputs: usize) -> u64 {
        let longer = |count: usize| if self == Self::Standard && count > MAX_ONE_BYTE { LONGER_COUNT } else { 0 };
        BASE_WEIGHT.saturating_add(longer(inputs)).saturating_add(longer(outputs))
    }
}

/// Returns the weight of an output: value, length and script.
pub(crate) fn output_weight(script: &ScriptBuf) -> u64 {
    u64::try_from(script.len()).unwrap_or(u64::MAX).saturating_add(9).saturating_mul(4)
}

/// A transaction before its change is known.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Draft {
    /// Base units of the inputs.
    pub(crate) total: u64,
    /// Base units of the outputs.
    pub(crate) paid: u64,
    weight: u64,
    inputs: usize,
    outputs: usize,
}

impl Draft {
    /// Adds up inputs, each with value and weight, and outputs.
    ///
    /// Sums saturate: callers have checked that there are no more coins than the chain has.
    pub(crate) fn new<'o>(inputs: impl IntoIterator<Item = (Amount, u64)>, outputs: impl IntoIterator<Item = &'o TxOut>) -> Self {
        let mut draft = Self::default();
        for (value, weight) in inputs {
            draft.total = draft.total.saturating_add(value.to_sat());
            draft.weight = draft.weight.saturating_add(weight);
            draft.inputs = draft.inputs.saturating_add(1);
        }
        for output in outputs {
            draft.paid = draft.paid.saturating_add(output.value.to_sat());
            draft.weight = draft.weight.saturating_add(output_weight(&output.script_pubkey));
            draft.outputs = draft.outputs.saturating_add(1);
        }
        draft
    }
}

/// Where change goes, and at what price.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ChangePlan<'p> {
    pub(crate) chain: Chain,
    pub(crate) rule: ChangeRule,
    pub(crate) fee_rate: FeeRate,
    pub(crate) script: &'p ScriptBuf,
}

/// Fee and change of a transaction.
#[derive(Debug, Clone)]
pub(crate) struct ChangeOutcome {
    pub(crate) fee: u64,
    pub(crate) weight: u64,
    pub(crate) change: Option<TxOut>,
}

/// The inputs hold too little.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shortfall {
    /// Base units that the inputs would have to hold at least.
    pub(crate) needed: u64,
}

impl ChangePlan<'_> {
    /// Makes change unless it would be below the dust limit. Then the rest is added to the fee.
    pub(crate) fn settle(&self, draft: &Draft) -> Result<ChangeOutcome, Shortfall> {
        let (alone, with_change) = self.weights(draft);
        if let Some(left) = draft.total.checked_sub(draft.paid)
            && let Some(fee) = self.fee(with_change)
            && let Some(value) = left.checked_sub(fee)
            && value >= self.dust_limit()
        {
            let change = TxOut { value: Amount::from_sat(value), script_pubkey: self.script.clone() };
            return Ok(ChangeOutcome { fee, weight: with_change, change: Some(change) });
        }
        let needed = self.fee(alone).unwrap_or(u64::MAX).saturating_add(draft.paid);
        match draft.total.checked_sub(draft.paid) {
            Some(fee) if draft.total >= needed => Ok(ChangeOutcome { fee, weight: alone, change: None }),
            _ => Err(Shortfall { needed }),
        }
    }

    /// Returns what the inputs would have to hold at least to give change.
    pub(crate) fn needed_with_change(&self, draft: &Draft) -> u64 {
        let fee = self.fee(self.weights(draft).1).unwrap_or(u64::MAX);
        fee.saturating_add(self.dust_limit()).saturating_add(draft.paid)
    }

    /// Returns the smallest change that is made.
    pub(crate) fn dust_limit(&self) -> u64 {
        self.rule.dust_limit(self.chain, self.script)
    }

    /// Returns the weights without and with a change output.
    fn weights(&self, draft: &Draft) -> (u64, u64) {
        let weight = |outputs| self.rule.base_weight(draft.inputs, outputs).saturating_add(draft.weight);
        let with_change = weight(draft.outputs.saturating_add(1)).saturating_add(output_weight(self.script));
        (weight(draft.outputs), with_change)
    }

    fn fee(&self, weight: u64) -> Option<u64> {
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
        plan.settle(&draft).ok().map(|outcome| (outcome.fee, outcome.change.map(|change| change.value.to_sat())))
    }

    #[test]
    fn change_is_made_from_the_dust_limit_on() {
        // By hand: 42 + 272 + 124 are 438 weight units, 110 vB; with change 562, 141 vB. A p2wpkh output is dust below 294.
        let bitcoin = |total| settle(Coin::Bitcoin, ChangeRule::Standard, total, 1);
        assert_eq!(bitcoin(1_000 + 141 + 294), Some((141, Some(294))));
        assert_eq!(bitcoin(1_000 + 141 + 293), Some((434, None)));
        assert_eq!(bitcoin(1_000 + 110), Some((110, None)));
        assert_eq!(bitcoin(1_000 + 109), None);
        assert_eq!(bitcoin(999), None);
    }

    #[test]
    fn litecoins_dust_limit_is_its_own_unless_the_batch_contract_rules() {
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
