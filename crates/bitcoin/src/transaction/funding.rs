//! The payment of a deposit: the selection of coins, the change, and the order of inputs and outputs.

use std::collections::BTreeSet;

use bitcoin::consensus::encode;
use bitcoin::hashes::{Hash, sha256};
use bitcoin::{Amount, Sequence, TxOut};
use countersign_core::{Code, Refusal, Role, TypedValue, U256, sort};

use super::change::output_weight;
use super::coins::{self, SelectionTarget};
use super::{ChangePlan, Draft, Input, Origins, Payment, PaymentPlan, Selection, TxContext, TxOrdering, Unsigned, Utxo};
use crate::address::Chain;
use crate::deposit::Deposit;

/// Prepares the payment of a deposit with the wallet's context.
pub(crate) fn prepare(deposit: &Deposit, wallet: &TxContext) -> Result<Unsigned, Refusal> {
    if let Some(fee_rate) = wallet.fee_rate {
        fee_rate.check(deposit.max_fee_rate, "/fee_rate")?;
    }
    let change = wallet.change_address.as_ref().map(|address| address.script(deposit.chain, "/change_address")).transpose()?;
    let payment = match &wallet.utxos {
        None => None,
        Some(utxos) => {
            let missing = |location| Refusal::new(Code::MissingField, location);
            let fee_rate = wallet.fee_rate.ok_or_else(|| missing("/fee_rate"))?;
            let change = change.ok_or_else(|| missing("/change_address"))?;
            if change == deposit.script_pubkey {
                return Err(Refusal::new(Code::ChangeToDeposit, "/change_address"));
            }
            check_coins(utxos, deposit.chain)?;
            let plan = ChangePlan { chain: deposit.chain, rule: wallet.change_rule, fee_rate, script: &change };
            Some(pay(deposit, wallet, utxos, plan)?)
        }
    };
    Ok(Unsigned { role: Role::Initiate, deposit: Some(deposit.clone()), payment })
}

/// Requires that each coin is listed once, and that they are not worth more than the chain's supply. Returns their value.
pub(crate) fn check_coins(utxos: &[Utxo], chain: Chain) -> Result<Amount, Refusal> {
    let mut seen = BTreeSet::new();
    let mut total = Amount::ZERO;
    for (index, utxo) in utxos.iter().enumerate() {
        let at = |member| format!("/utxos/{index}/{member}");
        if !seen.insert(utxo.outpoint()) {
            return Err(Refusal::new(Code::UtxoTwice, at("txid")).with_actual(utxo.outpoint().to_string()));
        }
        let value = utxo.output().value;
        total = total.checked_add(value).filter(|total| *total <= chain.supply()).ok_or_else(|| {
            Refusal::new(Code::AmountAboveSupply, at("value"))
                .with_expected(format!("at most {} in all", chain.supply().to_sat()))
                .with_actual(value.to_sat())
        })?;
    }
    Ok(total)
}

fn pay(deposit: &Deposit, wallet: &TxContext, utxos: &[Utxo], plan: ChangePlan<'_>) -> Result<Payment, Refusal> {
    let paid = TxOut { value: deposit.amount, script_pubkey: deposit.script_pubkey.clone() };
    let draft = |coins: &[&Utxo]| Draft::new(coins.iter().map(|utxo| (utxo.output().value, utxo.spend().weight())), [&paid]);
    let all = || utxos.iter().collect::<Vec<_>>();
    let mut coins = match wallet.selection {
        Selection::All => all(),
        Selection::LowestFee => {
            let target = SelectionTarget {
                amount: deposit.amount,
                output_weight: output_weight(&paid.script_pubkey),
                change_weight: output_weight(plan.script),
                dust_limit: plan.dust_limit(),
                fee_rate: plan.fee_rate,
            };
            coins::choose(utxos, &target, |coins| plan.settle(&draft(coins)).is_ok()).unwrap_or_else(all)
        }
    };
    let drafted = draft(&coins);
    let cost = plan.settle(&drafted).map_err(|short| {
        Refusal::new(Code::InsufficientFunds, "/utxos")
            .with_expected(TypedValue::AtLeast(U256::from(short.needed.to_sat())))
            .with_actual(drafted.total.to_sat())
    })?;
    let mut outputs = vec![(paid, false)];
    outputs.extend(cost.change.map(|change| (change, true)));
    put_in_order(wallet.ordering, &mut coins, &mut outputs);

    let origins = Origins::new(&wallet.origins);
    let sequence = if wallet.replaceable { Sequence::ENABLE_RBF_NO_LOCKTIME } else { Sequence::ENABLE_LOCKTIME_NO_RBF };
    Payment::new(PaymentPlan {
        chain: plan.chain,
        inputs: coins.into_iter().map(|utxo| Input::from_utxo(utxo, sequence, &origins)).collect(),
        change: outputs.iter().position(|(_, is_change)| *is_change),
        change_origin: origins.of_script(plan.script),
        outputs: outputs.into_iter().map(|(output, _)| output).collect(),
        fee: cost.fee,
        fee_rate: plan.fee_rate,
        weight: cost.weight,
    })
}

/// Sorts inputs and outputs. The flag of each output tells whether it is the change.
fn put_in_order(ordering: TxOrdering, coins: &mut [&Utxo], outputs: &mut [(TxOut, bool)]) {
    match ordering {
        TxOrdering::Given => {}
        TxOrdering::Bip69 => {
            // Ids are compared as displayed, with the bytes of the hash in reverse order.
            sort::by_cached_key(coins, |utxo| {
                let mut txid = utxo.outpoint().txid.to_byte_array();
                txid.reverse();
                (txid, utxo.outpoint().vout)
            });
            sort::by(outputs, |(a, _), (b, _)| (a.value, &a.script_pubkey).cmp(&(b.value, &b.script_pubkey)));
        }
        TxOrdering::Shuffled(seed) => {
            let rank = |item: &[u8]| sha256::Hash::hash(&[&seed[..], item].concat());
            sort::by_cached_key(coins, |utxo| rank(&encode::serialize(&utxo.outpoint())));
            sort::by_cached_key(outputs, |(output, _)| rank(output.script_pubkey.as_bytes()));
        }
    }
}
