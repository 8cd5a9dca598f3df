//! The summary lines of a deposit and its payment, and the response fields that each line covers.

use bitcoin::Amount;
use countersign_core::{ByteCoverage, Summary, Topic, TypedValue, U256, line_text, number};

use crate::address::Chain;
use crate::deposit::Deposit;
use crate::htlc::Tree;
use crate::transaction::Payment;

/// The number of inputs that are shown one by one.
const MAX_LISTED: usize = 8;

/// Formats an amount: `0.0005 BTC (50000 sat)`.
pub(crate) fn format_coins(amount: Amount, chain: Chain) -> String {
    let base_units = amount.to_sat();
    format!("{} {} ({base_units} sat)", number::in_whole_units(U256::from(base_units), 8), chain.symbol())
}

pub(crate) fn describe(deposit: &Deposit, summary: &mut Summary) {
    let Deposit { chain, address, amount, tree, .. } = deposit;
    let how = match tree {
        Some(_) => "recomputed from its keys, secret hash and timelock",
        None => "taken on trust: its keys, secret hash and timelock are not known",
    };
    summary.add_values(Topic::Contract, line_text!("deposit address {address}, taproot, {how}"), [address.into()]);
    if let Some(Tree { htlc, .. }) = tree {
        let account = crate::address::account(htlc.initiator);
        summary.add_values(Topic::Owner, line_text!("refund key {}", hex::encode(htlc.initiator)), [account.into()]);
    }
    if let Some(today) = &deposit.canonical_owner {
        let text = line_text!("the owner's address has an old form that Bitcoin also uses; its current form is {today}");
        summary.add_values(Topic::Owner, text, [today.into()]);
    }
    let text = line_text!("exactly {}, in one payment, cannot be undone", format_coins(*amount, *chain));
    summary.add_values(Topic::Send, text, [chain.amount(*amount).into()]);
    let uri = deposit.uri();
    summary.add_values(Topic::Message, line_text!("payment URI {uri}"), [uri.into()]);
}

pub(crate) fn coverage() -> Vec<ByteCoverage> {
    vec![
        ByteCoverage::member(Topic::Contract, "/response/result/to", "deposit address"),
        ByteCoverage::member(Topic::Send, "/response/result/amount", "amount"),
    ]
}

impl Payment {
    /// Adds lines on what the payment spends, pays and costs, and then on what is signed.
    pub fn describe(&self, summary: &mut Summary) {
        self.describe_coins(summary);
        let chain = self.chain;
        let fee = format!("fee {}, at least {} sat/vB of {} vB", format_coins(self.fee, chain), self.fee_rate, self.vsize);
        summary.add_values(Topic::Gas, fee, [chain.amount(self.fee).into()]);
        let is_replaceable = self.transaction().is_explicitly_rbf();
        summary.add(Topic::Gas, if is_replaceable { "can be replaced by a transaction with a higher fee" } else { "cannot be replaced" });
        let changes = if self.id_is_final() { "" } else { ", which signing changes" };
        let txid = self.transaction().compute_txid().to_string();
        summary.add_values(Topic::Digest, line_text!("transaction {txid}{changes}"), [txid.into()]);
        for (index, input) in self.inputs_to_sign().take(MAX_LISTED) {
            let text = line_text!("input {index}, digest {}", hex::encode(input.digest));
            summary.add_values(Topic::Digest, text, [TypedValue::Hash(input.digest)]);
        }
        if let Some(more @ 1..) = self.inputs_to_sign().count().checked_sub(MAX_LISTED) {
            summary.add(Topic::Digest, line_text!("and {more} more digests"));
        }
    }

    fn describe_coins(&self, summary: &mut Summary) {
        let (transaction, chain) = (self.transaction(), self.chain);
        for input in self.inputs.iter().take(MAX_LISTED) {
            let value = input.prevout.value;
            let outpoint = input.outpoint.to_string();
            let text = line_text!("spends {} from {outpoint}", format_coins(value, chain));
            summary.add_values(Topic::Wallet, text, [chain.amount(value).into(), outpoint.into()]);
        }
        if let Some(more @ 1..) = self.inputs.len().checked_sub(MAX_LISTED) {
            summary.add(Topic::Wallet, line_text!("and {more} more outputs"));
        }
        for (index, paid) in transaction.output.iter().enumerate() {
            let what = if self.change == Some(index) { "change" } else { "pays" };
            let (value, to) = (paid.value, chain.format_script(&paid.script_pubkey));
            let text = line_text!("{what} {} to {to}", format_coins(value, chain));
            summary.add_values(Topic::Wallet, text, [chain.amount(value).into(), to.into()]);
            let dust_limit = chain.dust_limit(&paid.script_pubkey);
            if value < dust_limit {
                let base_units = dust_limit.to_sat();
                summary.add_values(Topic::Wallet, line_text!("nodes do not relay an output below {base_units} sat"), [base_units.into()]);
            }
        }
    }
}
