//! The mempool's rules for accepting transactions, with the error texts of Bitcoin Core.

use std::collections::BTreeSet;

use bitcoin::consensus::encode::{deserialize_hex, serialize_hex};
use bitcoin::locktime::relative;
use bitcoin::{OutPoint, Transaction, TxOut, Txid, WitnessVersion, absolute, transaction};
use countersign_proofs_bitcoin::verify;

use super::ledger::{Entry, Ledger, sum};

/// The maximum number of ancestors or descendants in the mempool, including the transaction itself.
const MAX_CHAIN: usize = 25;
/// The maximum number of transactions that one may replace.
const MAX_REPLACED: usize = 100;
/// The maximum fee rate of `sendrawtransaction`, in base units per virtual byte.
const MAX_FEE_RATE: u64 = 10_000;
/// The minimum relay fee rate, in base units per virtual byte. It is also the minimum increase for a replacement.
const MIN_FEE_RATE: u64 = 1;
/// The maximum number of pending transactions, and of their virtual bytes.
const MAX_WAITING: usize = 10_000;
const MAX_WAITING_SIZE: u64 = 20_000_000;

/// Why a node refuses a transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Rejection {
    /// The error code of the node's RPC.
    pub(super) code: i64,
    pub(super) message: String,
}

fn refused<T>(message: impl Into<String>) -> Result<T, Rejection> {
    Err(Rejection { code: -26, message: message.into() })
}

impl Ledger {
    /// Accepts a transaction in hex, as `sendrawtransaction` does.
    pub(super) fn accept_hex(&mut self, hex: &str) -> Result<Txid, Rejection> {
        const FAILED: &str = "TX decode failed. Make sure the tx has at least one input.";
        if self.node.is_some() {
            return self.send(hex.trim());
        }
        let transaction = deserialize_hex::<Transaction>(hex.trim());
        self.accept(transaction.map_err(|_| Rejection { code: -22, message: FAILED.to_owned() })?)
    }

    /// Accepts a transaction into the mempool. A transaction that is already there is not an error.
    pub(super) fn accept(&mut self, transaction: Transaction) -> Result<Txid, Rejection> {
        if self.node.is_some() {
            return self.send(&serialize_hex(&transaction));
        }
        let txid = transaction.compute_txid();
        match self.entries.get(&txid).map(Entry::height) {
            Some(None) => return Ok(txid),
            Some(Some(_)) if self.has_unspent(&txid) => {
                return Err(Rejection { code: -27, message: "Transaction outputs already in utxo set".to_owned() });
            }
            _ => {}
        }
        self.check_shape(&transaction)?;
        let conflicts = self.conflicts(&transaction)?;
        let prevouts = self.prevouts(&transaction, &conflicts)?;
        self.check_locks(&transaction)?;
        let fee = check_amounts(&transaction, &prevouts)?;
        check_inputs(&transaction, &prevouts)?;
        let vsize = transaction.weight().to_vbytes_ceil();
        if fee < vsize.saturating_mul(MIN_FEE_RATE) {
            return refused(format!("min relay fee not met, {fee} < {}", vsize.saturating_mul(MIN_FEE_RATE)));
        }
        self.check_chain(&transaction, txid, &conflicts)?;
        let replaced = self.check_replacement(&transaction, txid, &conflicts, fee, vsize)?;
        if verify(&transaction, &prevouts).is_err() {
            // The verifier does not report a reason. Core uses this text for reasons without a name.
            return refused("mandatory-script-verify-flag-failed (unknown error)");
        }
        if fee > vsize.saturating_mul(MAX_FEE_RATE) {
            let message = "Fee exceeds maximum configured by user (e.g. -maxtxfee, maxfeerate)".to_owned();
            return Err(Rejection { code: -25, message });
        }
        let size = self.waiting.iter().filter_map(|(_, txid)| self.entries.get(txid)).map(|entry| entry.vsize).fold(0, u64::saturating_add);
        if replaced.is_empty() && (self.waiting.len() >= MAX_WAITING || size >= MAX_WAITING_SIZE) {
            return refused("mempool full");
        }
        for txid in replaced {
            self.remove(&txid);
        }
        Ok(self.push(transaction))
    }

    /// Returns whether a transaction has an output that no block has spent.
    fn has_unspent(&self, txid: &Txid) -> bool {
        let count = self.entries.get(txid).map_or(0, |entry| entry.transaction.output.len());
        let outpoints = (0..u32::try_from(count).unwrap_or(u32::MAX)).map(|vout| OutPoint { txid: *txid, vout });
        let is_mined = |spender: &Txid| self.entries.get(spender).is_none_or(|entry| entry.height().is_some());
        let is_spent = |outpoint: &OutPoint| self.spends.get(outpoint).is_some_and(|(spender, _)| is_mined(spender));
        outpoints.into_iter().any(|outpoint| self.output(&outpoint).is_some() && !is_spent(&outpoint))
    }

    /// Checks the rules that do not depend on the chain: first consensus, then relay policy.
    fn check_shape(&self, transaction: &Transaction) -> Result<(), Rejection> {
        let (inputs, outputs) = (&transaction.input, &transaction.output);
        if inputs.is_empty() || outputs.is_empty() {
            return refused(if inputs.is_empty() { "bad-txns-vin-empty" } else { "bad-txns-vout-empty" });
        }
        if outputs.iter().any(|output| output.value.to_sat() > self.network.supply()) {
            return refused("bad-txns-vout-toolarge");
        }
        if sum(outputs) > self.network.supply() {
            return refused("bad-txns-txouttotal-toolarge");
        }
        let distinct: BTreeSet<_> = inputs.iter().map(|input| input.previous_output).collect();
        if distinct.len() != inputs.len() {
            return refused("bad-txns-inputs-duplicate");
        }
        if transaction.is_coinbase() {
            return refused("coinbase");
        }
        if distinct.iter().any(|outpoint| outpoint.is_null()) {
            return refused("bad-txns-prevout-null");
        }
        if !transaction.version.is_standard() {
            return refused("version");
        }
        if transaction.weight().to_wu() > 400_000 {
            return refused("tx-size");
        }
        for input in inputs {
            if input.script_sig.len() > 1_650 || !input.script_sig.is_push_only() {
                return refused(if input.script_sig.len() > 1_650 { "scriptsig-size" } else { "scriptsig-not-pushonly" });
            }
        }
        let is_standard = |output: &TxOut| {
            let script = &output.script_pubkey;
            let is_known = script.is_p2pkh() || script.is_p2sh() || script.is_witness_program() || script.is_p2pk() || script.is_multisig();
            is_known || script.is_op_return() && script.len() <= 83
        };
        if !outputs.iter().all(is_standard) {
            return refused("scriptpubkey");
        }
        let rate = self.network.dust_rate();
        if outputs.iter().any(|output| output.value < output.script_pubkey.minimal_non_dust_custom(rate)) {
            return refused("dust");
        }
        if outputs.iter().filter(|output| output.script_pubkey.is_op_return()).count() > 1 {
            return refused("multi-op-return");
        }
        if transaction.base_size() < 65 {
            return refused("tx-size-small");
        }
        self.check_final(transaction)
    }

    /// Checks the absolute locktime for the next block.
    fn check_final(&self, transaction: &Transaction) -> Result<(), Rejection> {
        let is_over = match transaction.lock_time {
            absolute::LockTime::Blocks(height) => height.to_consensus_u32() < self.next(),
            absolute::LockTime::Seconds(time) => time.to_consensus_u32() < self.median_time(self.height()),
        };
        if is_over || !transaction.is_lock_time_enabled() { Ok(()) } else { refused("non-final") }
    }

    /// Returns the transactions in the mempool that spend the same outputs.
    fn conflicts(&self, transaction: &Transaction) -> Result<BTreeSet<Txid>, Rejection> {
        let spenders = transaction.input.iter().filter_map(|input| self.spends.get(&input.previous_output)).map(|(txid, _)| *txid);
        let is_waiting = |txid: &Txid| self.entries.get(txid).is_some_and(|entry| entry.height().is_none());
        let conflicts: BTreeSet<Txid> = spenders.filter(is_waiting).collect();
        let may_be_replaced = |txid: &Txid| {
            let ancestors = self.entries.get(txid).map(|entry| self.ancestors(&entry.transaction)).unwrap_or_default();
            let mut all = ancestors.iter().chain([txid]).filter_map(|txid| self.entries.get(txid));
            self.network.is_full_rbf() || all.any(|entry| entry.transaction.is_explicitly_rbf())
        };
        if conflicts.iter().all(may_be_replaced) { Ok(conflicts) } else { refused("txn-mempool-conflict") }
    }

    fn prevouts(&self, transaction: &Transaction, conflicts: &BTreeSet<Txid>) -> Result<Vec<TxOut>, Rejection> {
        let prevout = |outpoint| {
            let is_free = self.spends.get(outpoint).is_none_or(|(spender, _)| conflicts.contains(spender));
            self.output(outpoint).filter(|_| is_free).cloned()
        };
        let prevouts = transaction.input.iter().map(|input| prevout(&input.previous_output));
        let missing = || Rejection { code: -25, message: "bad-txns-inputs-missingorspent".to_owned() };
        prevouts.collect::<Option<_>>().ok_or_else(missing)
    }

    /// Checks the relative locktimes for the next block (BIP-68).
    fn check_locks(&self, transaction: &Transaction) -> Result<(), Rejection> {
        if transaction.version < transaction::Version::TWO {
            return Ok(());
        }
        for input in &transaction.input {
            let entry = self.entries.get(&input.previous_output.txid);
            let height = entry.and_then(Entry::height).unwrap_or(self.next());
            let is_over = match input.sequence.to_relative_lock_time() {
                None => true,
                Some(relative::LockTime::Blocks(blocks)) => height.saturating_add(blocks.value().into()) <= self.next(),
                Some(relative::LockTime::Time(time)) => {
                    let since = self.median_time(height.saturating_sub(1));
                    since.saturating_add(u32::from(time.value()).saturating_mul(512)) <= self.median_time(self.height())
                }
            };
            if !is_over {
                return refused("non-BIP68-final");
            }
        }
        Ok(())
    }

    /// Returns the transactions in the mempool that a transaction depends on.
    fn ancestors(&self, transaction: &Transaction) -> BTreeSet<Txid> {
        let mut found = BTreeSet::new();
        let parents =
            |transaction: &Transaction| -> Vec<Txid> { transaction.input.iter().map(|input| input.previous_output.txid).collect() };
        let mut next = parents(transaction);
        while let Some(txid) = next.pop() {
            if let Some(entry) = self.entries.get(&txid).filter(|entry| entry.height().is_none())
                && found.insert(txid)
            {
                next.extend(parents(&entry.transaction));
            }
        }
        found
    }

    /// Returns a transaction in the mempool with all transactions that depend on it.
    fn descendants(&self, txid: Txid) -> BTreeSet<Txid> {
        let (mut found, mut next) = (BTreeSet::new(), vec![txid]);
        while let Some(txid) = next.pop() {
            if found.insert(txid) {
                let count = self.entries.get(&txid).map_or(0, |entry| entry.transaction.output.len());
                let outpoints = (0..u32::try_from(count).unwrap_or(u32::MAX)).map(|vout| OutPoint { txid, vout });
                next.extend(outpoints.filter_map(|outpoint| self.spends.get(&outpoint)).map(|(spender, _)| *spender));
            }
        }
        found
    }

    fn check_chain(&self, transaction: &Transaction, txid: Txid, conflicts: &BTreeSet<Txid>) -> Result<(), Rejection> {
        let ancestors = self.ancestors(transaction);
        if ancestors.len() >= MAX_CHAIN {
            return refused(format!("too-long-mempool-chain, too many unconfirmed ancestors [limit: {MAX_CHAIN}]"));
        }
        if let Some(long) = ancestors.iter().find(|ancestor| self.descendants(**ancestor).len() >= MAX_CHAIN) {
            return refused(format!("too-long-mempool-chain, too many descendants for tx {long} [limit: {MAX_CHAIN}]"));
        }
        match ancestors.intersection(conflicts).next() {
            Some(other) => refused(format!("bad-txns-spends-conflicting-tx, {txid} spends conflicting transaction {other}")),
            None => Ok(()),
        }
    }

    /// Checks the rules for replacements (BIP-125). Returns the transactions that leave the mempool, in an order in
    /// which they can be removed.
    fn check_replacement(
        &self,
        transaction: &Transaction,
        txid: Txid,
        conflicts: &BTreeSet<Txid>,
        fee: u64,
        vsize: u64,
    ) -> Result<Vec<Txid>, Rejection> {
        let direct: Vec<&Entry> = conflicts.iter().filter_map(|txid| self.entries.get(txid)).collect();
        for other in &direct {
            let (new, old) = (rate(fee, vsize), rate(other.fee(), other.vsize));
            if new <= old {
                let (new, old) = (coins(new), coins(old));
                let why = format!("rejecting replacement {txid}; new feerate {new} BTC/kvB <= old feerate {old} BTC/kvB");
                return refused(format!("insufficient fee, {why}"));
            }
        }
        let all: BTreeSet<Txid> = conflicts.iter().flat_map(|txid| self.descendants(*txid)).collect();
        if all.len() > MAX_REPLACED {
            let why = format!("rejecting replacement {txid}; too many potential replacements ({} > {MAX_REPLACED})", all.len());
            return refused(format!("too many potential replacements, {why}"));
        }
        let inputs = direct.iter().flat_map(|entry| &entry.transaction.input);
        let known: BTreeSet<Txid> = inputs.map(|input| input.previous_output.txid).collect();
        for (index, input) in transaction.input.iter().enumerate() {
            let parent = input.previous_output.txid;
            let is_waiting = self.entries.get(&parent).is_some_and(|entry| entry.height().is_none());
            if !direct.is_empty() && is_waiting && !known.contains(&parent) {
                let why = format!("replacement {txid} adds unconfirmed input, idx {index}");
                return refused(format!("replacement-adds-unconfirmed, {why}"));
            }
        }
        let entries: Vec<&Entry> = all.iter().filter_map(|txid| self.entries.get(txid)).collect();
        let fees = entries.iter().map(|entry| entry.fee()).fold(0, u64::saturating_add);
        if fee < fees {
            let why = format!("less fees than conflicting txs; {} < {}", money(fee), money(fees));
            return refused(format!("insufficient fee, rejecting replacement {txid}, {why}"));
        }
        let (more, needed) = (fee.saturating_sub(fees), vsize.saturating_mul(MIN_FEE_RATE));
        if !direct.is_empty() && more < needed {
            let why = format!("not enough additional fees to relay; {} < {}", money(more), money(needed));
            return refused(format!("insufficient fee, rejecting replacement {txid}, {why}"));
        }
        // Later transactions depend on earlier ones.
        Ok(self.waiting.iter().rev().map(|(_, txid)| *txid).filter(|txid| all.contains(txid)).collect())
    }
}

/// Returns the fee of a transaction. Fails if its outputs exceed its inputs.
fn check_amounts(transaction: &Transaction, prevouts: &[TxOut]) -> Result<u64, Rejection> {
    let (held, paid) = (sum(prevouts), sum(&transaction.output));
    match held.checked_sub(paid) {
        Some(fee) => Ok(fee),
        None => refused(format!("bad-txns-in-belowout, value in ({}) < value out ({})", money(held), money(paid))),
    }
}

/// Checks the relay policy for inputs and witnesses.
fn check_inputs(transaction: &Transaction, prevouts: &[TxOut]) -> Result<(), Rejection> {
    for (input, prevout) in transaction.input.iter().zip(prevouts) {
        if prevout.script_pubkey.witness_version().is_some_and(|version| version > WitnessVersion::V1) {
            return refused("bad-txns-nonstandard-inputs");
        }
        if prevout.script_pubkey.is_p2tr() {
            let has_annex = input.witness.len() >= 2 && input.witness.last().is_some_and(|item| item.first() == Some(&0x50));
            // The script and its control block are not items of the script's stack.
            let mut stack = input.witness.iter().take(input.witness.len().saturating_sub(2));
            if has_annex || stack.any(|item| item.len() > 80) {
                return refused("bad-witness-nonstandard");
            }
        }
    }
    Ok(())
}

/// Returns a fee rate in base units per thousand virtual bytes, which is how nodes compare rates.
fn rate(fee: u64, vsize: u64) -> u64 {
    fee.saturating_mul(1_000).checked_div(vsize).unwrap_or_default()
}

fn coins(units: u64) -> String {
    format!("{}.{:08}", units / 100_000_000, units % 100_000_000)
}

/// Returns an amount in coins, without trailing zeros but with at least two decimals.
fn money(units: u64) -> String {
    let text = coins(units);
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    format!("{whole}.{:0<2}", fraction.trim_end_matches('0'))
}
