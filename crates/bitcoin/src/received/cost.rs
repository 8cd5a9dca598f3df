//! What the PSBT of another wallet costs, as far as it has the outputs that it spends.

use bitcoin::opcodes::all::OP_PUSHNUM_16;
use bitcoin::psbt::{self, Psbt};
use bitcoin::script::Instruction;
use bitcoin::taproot::ControlBlock;
use bitcoin::{Amount, OutPoint, Script, ScriptBuf, TxIn, TxOut};
use countersign_core::Refusal;

use crate::address::Chain;
use crate::sign::fee_of;
use crate::summary::format_coins;
use crate::transaction::{FeeRate, INPUT_WEIGHT, Spend, check_previous, read_spend};

/// The most weight units of the scripts of an input that nodes relay: a witness script of 3,600 bytes with 100 elements of 80, and their lengths.
const MAX_SCRIPTS: u64 = 12_000;
/// What an uncompressed key adds to the script of an input, in weight units: 32 bytes.
const UNCOMPRESSED: u64 = 32 * 4;
/// The most bytes of an element that a leaf takes from the witness and nodes relay (`MAX_STANDARD_TAPSCRIPT_STACK_ITEM_SIZE`), with its length.
const LEAF_ELEMENT: usize = 81;

/// Returns the fee of a PSBT; `None` if it does not have every output that it spends, or has one whose amount no signature commits to: such an
/// input needs the whole previous transaction.
///
/// # Errors
///
/// [`Code::UtxoMismatch`](countersign_core::Code::UtxoMismatch) for a previous transaction of another id, or without this output;
/// [`Code::TransactionMismatch`](countersign_core::Code::TransactionMismatch) if the outputs are worth more than what is spent.
pub fn psbt_fee(psbt: &Psbt) -> Result<Option<Amount>, Refusal> {
    spent(psbt)?.map(|spent| fee_of(&psbt.unsigned_tx, &spent)).transpose()
}

/// Requires that the fee rate is neither zero nor above `max` sat/vB, if the fee is known: see [`psbt_fee`].
pub(crate) fn check_cost(psbt: &Psbt, chain: Chain, max: u64) -> Result<(), Refusal> {
    let Some(spent) = spent(psbt)? else { return Ok(()) };
    let fee = fee_of(&psbt.unsigned_tx, &spent)?;
    // A transaction has at least the bytes of its version.
    let Some(rate) = FeeRate::of(fee, most_vsize(psbt, &spent)) else { return Ok(()) };
    rate.check(max, "/fee").map_err(|refusal| {
        let reason = format!("{}: the payment would cost {}", refusal.code().meaning(), format_coins(fee, chain));
        refusal.with_reason(reason)
    })
}

/// Returns the outputs that the inputs spend; `None` if the amount of one is not known.
fn spent(psbt: &Psbt) -> Result<Option<Vec<TxOut>>, Refusal> {
    let inputs = psbt.unsigned_tx.input.iter().zip(&psbt.inputs).enumerate();
    let known = inputs.map(|(index, (input, known))| {
        output_of(known, input.previous_output).map_err(|refusal| refusal.with_prefix(&format!("/inputs/{index}")))
    });
    // Each is looked at, because a wrong one is refused although another is missing.
    let known = known.collect::<Result<Vec<_>, _>>()?;
    let is_whole = known.len() == psbt.unsigned_tx.input.len();
    Ok(known.into_iter().collect::<Option<_>>().filter(|_| is_whole))
}

fn output_of(known: &psbt::Input, outpoint: OutPoint) -> Result<Option<TxOut>, Refusal> {
    match &known.non_witness_utxo {
        Some(previous) => {
            check_previous(outpoint, known.witness_utxo.as_ref(), previous, "/non_witness_utxo").map(|made| Some(made.clone()))
        }
        None => Ok(known.witness_utxo.clone().filter(|output| is_segwit(known, output))),
    }
}

/// Returns whether the signature of the input commits to its amount.
fn is_segwit(known: &psbt::Input, output: &TxOut) -> bool {
    let script = &output.script_pubkey;
    let is_nested = |redeem: &ScriptBuf| redeem.is_witness_program() && *script == ScriptBuf::new_p2sh(&redeem.script_hash());
    // A finalizer takes the redeem script out of the map.
    script.is_witness_program()
        || known.redeem_script.as_ref().is_some_and(is_nested)
        || script.is_p2sh() && known.final_script_witness.is_some()
}

/// Returns the most virtual bytes that the signed transaction can have, so that a fee rate is never thought to be higher than it is.
fn most_vsize(psbt: &Psbt, spent: &[TxOut]) -> u64 {
    let scripts = psbt.inputs.iter().zip(spent).map(|(known, output)| scripts_weight(known, output));
    // The marker and the flag of segwit are two more.
    let weight = scripts.fold(psbt.unsigned_tx.weight().to_wu().saturating_add(2), u64::saturating_add);
    weight.div_ceil(4)
}

/// Returns the most weight units of the script and the witness of an input.
///
/// Only a finalized input shows how it is spent. For any other input the result may be too high, so that the fee may exceed the policy's rate
/// by the fee of what is never signed. That is at most the fee of [`MAX_SCRIPTS`] for each input.
fn scripts_weight(known: &psbt::Input, output: &TxOut) -> u64 {
    if known.final_script_sig.is_some() || known.final_script_witness.is_some() {
        let (script_sig, witness) = (known.final_script_sig.clone(), known.final_script_witness.clone());
        let signed = TxIn { script_sig: script_sig.unwrap_or_default(), witness: witness.unwrap_or_default(), ..TxIn::default() };
        return signed.segwit_weight().to_wu().saturating_sub(INPUT_WEIGHT);
    }
    let Ok(spend) = read_spend(&output.script_pubkey, known.redeem_script.clone()) else { return MAX_SCRIPTS };
    let by_key = spend.weight().saturating_sub(INPUT_WEIGHT);
    match spend {
        Spend::P2pkh => by_key.saturating_add(UNCOMPRESSED),
        Spend::P2tr { .. } => {
            let leaves = known.tap_scripts.iter().map(|(control, (script, _))| leaf_weight(control, script));
            leaves.max().unwrap_or(by_key).min(MAX_SCRIPTS)
        }
        Spend::P2wpkh | Spend::P2shP2wpkh { .. } => by_key,
    }
}

/// Returns the most weight units of a witness that spends by a leaf.
///
/// A leaf leaves exactly one element on the stack (BIP-342), and no opcode removes more than two elements that it does not put back. So the
/// leaf takes at most one element, and two for each opcode that is not a push.
fn leaf_weight(control: &ControlBlock, script: &Script) -> u64 {
    let opcodes =
        script.instructions().filter(|read| matches!(read, Ok(Instruction::Op(op)) if op.to_u8() > OP_PUSHNUM_16.to_u8())).count();
    let taken = opcodes.saturating_mul(2).saturating_add(1).saturating_mul(LEAF_ELEMENT);
    // The number of elements, and the lengths of the script and the control block.
    let lengths = 3 * 3;
    let bytes = [taken, script.len(), control.size(), lengths].into_iter().fold(0, usize::saturating_add);
    u64::try_from(bytes).unwrap_or(u64::MAX)
}
