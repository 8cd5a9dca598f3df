//! The lines that a person reads before paying, and the members that each of them stands for.

use bitcoin::{Amount, TxOut};
use countersign_core::{ByteCoverage, Summary, Topic, U256, number};

use crate::address::Chain;
use crate::htlc::Tree;
use crate::transaction::{Payment, Unsigned};
use crate::verify::Deposit;

/// Inputs that are shown one by one.
const SHOWN: usize = 8;

fn coins(amount: Amount, chain: Chain) -> String {
    format!("{} {} ({} sat)", number::in_whole_units(U256::from(amount.to_sat()), 8), chain.symbol(), amount.to_sat())
}

fn output(output: &TxOut, chain: Chain) -> String {
    format!("{} to {}", coins(output.value, chain), chain.shown(&output.script_pubkey))
}

pub(crate) fn describe(deposit: &Deposit, summary: &mut Summary) {
    let Deposit { chain, address, amount, tree, .. } = deposit;
    let how = match tree {
        Some(_) => "recomputed from its keys, secret hash and timelock",
        None => "taken on trust: nothing tells what it is made of",
    };
    summary.say(Topic::Contract, format!("deposit address {address}, taproot, {how}"));
    if let Some(Tree { htlc, .. }) = tree {
        summary.say(Topic::Owner, format!("refund key {}", hex::encode(htlc.initiator)));
    }
    if let Some(today) = &deposit.owner_today {
        summary.say(Topic::Owner, format!("the owner's address is in an old form that Bitcoin has too; today it is written {today}"));
    }
    summary.say(Topic::Send, format!("exactly {}, in one payment, cannot be undone", coins(Amount::from_sat(*amount), *chain)));
    summary.say(Topic::Message, format!("payment URI {}", deposit.uri()));
}

pub(crate) fn coverage(_: &Deposit) -> Vec<ByteCoverage> {
    vec![
        ByteCoverage::member(Topic::Contract, "/response/result/to", "deposit address"),
        ByteCoverage::member(Topic::Send, "/response/result/amount", "amount"),
    ]
}

pub(crate) fn describe_unsigned(unsigned: &Unsigned, summary: &mut Summary) {
    let Some(payment) = &unsigned.payment else {
        summary.say(Topic::Digest, "nothing: any wallet can pay the address");
        return;
    };
    describe_payment(payment, unsigned.deposit.chain, summary);
}

/// What a payment spends, pays and costs, and at the end what is signed.
pub fn describe_payment(payment: &Payment, chain: Chain, summary: &mut Summary) {
    let transaction = payment.transaction();
    for (input, spent) in transaction.input.iter().zip(&payment.inputs).take(SHOWN) {
        summary.say(Topic::Wallet, format!("spends {} from {}", coins(spent.prevout.value, chain), input.previous_output));
    }
    if let Some(more @ 1..) = transaction.input.len().checked_sub(SHOWN) {
        summary.say(Topic::Wallet, format!("and {more} outputs more"));
    }
    for (index, paid) in transaction.output.iter().enumerate() {
        let what = if payment.change == Some(index) { "change" } else { "pays" };
        summary.say(Topic::Wallet, format!("{what} {}", output(paid, chain)));
        if paid.value.to_sat() < chain.dust(&paid.script_pubkey) {
            summary.say(Topic::Wallet, format!("nodes do not relay an output below {} sat", chain.dust(&paid.script_pubkey)));
        }
    }
    let fee = coins(Amount::from_sat(payment.fee), chain);
    summary.say(Topic::Gas, format!("fee {fee}, at least {} sat/vB of {} vB", payment.fee_rate, payment.vsize));
    let replaceable = transaction.is_explicitly_rbf();
    summary.say(Topic::Gas, if replaceable { "can be replaced by one with a higher fee" } else { "cannot be replaced" });
    let changes = if payment.id_is_final() { "" } else { ", which signing changes" };
    summary.say(Topic::Digest, format!("transaction {}{changes}", transaction.compute_txid()));
    for (index, input) in payment.inputs.iter().enumerate().take(SHOWN) {
        summary.say(Topic::Digest, format!("input {index}, digest {}", hex::encode(input.digest)));
    }
    if let Some(more @ 1..) = payment.inputs.len().checked_sub(SHOWN) {
        summary.say(Topic::Digest, format!("and {more} digests more"));
    }
}
