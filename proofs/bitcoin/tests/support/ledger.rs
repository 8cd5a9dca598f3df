//! Unspent outputs, with consensus code that decides what may spend them. This is enough of a chain to show who loses
//! money.

use std::collections::HashMap;

use bitcoin::{Amount, OutPoint, Script, Transaction, TxOut};
use countersign_proofs_bitcoin::verify;

/// Why a transaction was rejected.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Invalid {
    /// An input does not exist or is spent.
    Missing,
    /// The script of this input fails.
    Script(usize),
    /// The outputs exceed the inputs.
    Value,
}

/// It has no blocks, so relative timelocks count as expired. `tests/regtest.rs` tests them.
#[derive(Debug, Default)]
pub(crate) struct Ledger(HashMap<OutPoint, TxOut>);

impl Ledger {
    /// Adds a coin as if it had been mined long ago.
    pub(crate) fn add(&mut self, outpoint: OutPoint, output: TxOut) {
        self.0.insert(outpoint, output);
    }

    /// Executes a transaction, or changes nothing.
    pub(crate) fn execute(&mut self, transaction: &Transaction) -> Result<(), Invalid> {
        let spent = transaction.input.iter().map(|input| self.0.get(&input.previous_output).cloned());
        let spent = spent.collect::<Option<Vec<_>>>().ok_or(Invalid::Missing)?;
        verify(transaction, &spent).map_err(Invalid::Script)?;
        let sum = |outputs: &[TxOut]| outputs.iter().map(|output| output.value).sum::<Amount>();
        if sum(&transaction.output) > sum(&spent) {
            return Err(Invalid::Value);
        }
        for input in &transaction.input {
            self.0.remove(&input.previous_output);
        }
        let txid = transaction.compute_txid();
        self.0.extend((0..).zip(&transaction.output).map(|(vout, output)| (OutPoint { txid, vout }, output.clone())));
        Ok(())
    }

    /// Returns the balance of a script, in satoshis.
    pub(crate) fn balance(&self, script: &Script) -> u64 {
        self.0.values().filter(|output| output.script_pubkey == *script).map(|output| output.value.to_sat()).sum()
    }
}
