#![doc = include_str!("../README.md")]

use bitcoin::{Transaction, TxOut, consensus::encode::serialize};
use bitcoinconsensus::{Utxo, VERIFY_ALL_PRE_TAPROOT, VERIFY_TAPROOT, verify_with_flags};

/// Verifies every input of a transaction with Bitcoin Core's script verifier and all consensus flags.
///
/// This does not include what only a chain knows: whether the outputs exist, and whether a relative timelock has
/// expired. The script is still checked against the input's sequence.
///
/// # Errors
///
/// Returns the index of the first input whose script fails.
pub fn verify(transaction: &Transaction, prevouts: &[TxOut]) -> Result<(), usize> {
    let bytes = serialize(transaction);
    let utxos: Option<Vec<_>> = prevouts
        .iter()
        .map(|prevout| {
            Some(Utxo {
                script_pubkey: prevout.script_pubkey.as_bytes().as_ptr(),
                script_pubkey_len: u32::try_from(prevout.script_pubkey.len()).ok()?,
                value: i64::try_from(prevout.value.to_sat()).ok()?,
            })
        })
        .collect();
    let utxos = utxos.ok_or(0_usize)?;
    if transaction.input.len() != prevouts.len() {
        return Err(0);
    }
    for (index, prevout) in prevouts.iter().enumerate() {
        let flags = VERIFY_ALL_PRE_TAPROOT | VERIFY_TAPROOT;
        let (script, value) = (prevout.script_pubkey.as_bytes(), prevout.value.to_sat());
        verify_with_flags(script, value, &bytes, Some(&utxos), index, flags).map_err(|_| index)?;
    }
    Ok(())
}
