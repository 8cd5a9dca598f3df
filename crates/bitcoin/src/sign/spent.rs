//! The signatures of another wallet's transaction, proven with the outputs that it spends.

use bitcoin::script::Instruction;
use bitcoin::{Amount, Script, ScriptBuf, Transaction, TxIn, TxOut, psbt};
use countersign_core::family::Deposit as _;
use countersign_core::{Code, Refusal, Role, Warnings};

use super::external;
use super::proof::prove;
use crate::deposit::Deposit;
use crate::transaction::{ExplicitAll, Input, Kind, digests, read_spend};

impl Deposit {
    /// Returns the role of a transaction as [`VerifiedOrder::matches`](crate::VerifiedOrder::matches) does, and proves the signature of every
    /// input with the output that it spends. A wallet knows these outputs, and a node has them.
    ///
    /// `spent` has one output for each input, in this order. Outputs that nobody has checked prove nothing: a signature of segwit version 0
    /// commits to its own amount alone, and a legacy one to no amount.
    ///
    /// ```
    /// # use countersign::Refusal;
    /// use countersign::bitcoin::VerifiedOrder;
    /// use countersign::bitcoin::bitcoin::{Transaction, TxOut};
    ///
    /// /// Whether nodes will find every signature valid, before anything is sent.
    /// fn is_payment(order: &VerifiedOrder, signed: &Transaction, coins: &[TxOut]) -> bool {
    ///     order.deposit().matches_with(signed, coins).is_ok()
    /// }
    /// ```
    ///
    /// # Errors
    ///
    /// As `matches`; [`Code::TransactionMismatch`] for another number of outputs than inputs, for an output that is spent twice, for a transaction
    /// that pays more than it spends, or for a script or witness with more than the signature needs; [`Code::UtxoUnsupported`] for an output
    /// that is not p2wpkh, p2sh-p2wpkh, p2pkh or p2tr; [`Code::MissingField`] and [`Code::UtxoMismatch`] for a p2sh output without its redeem
    /// script or with another one; [`Code::SignatureMalformed`] and [`Code::SignatureMismatch`] for a signature that is not one of this transaction, and so for a taproot input that is spent by a script.
    pub fn matches_with(&self, transaction: &Transaction, spent: &[TxOut]) -> Result<Role, Refusal> {
        let role = self.matches(transaction, &mut Warnings::default())?;
        if spent.len() != transaction.input.len() {
            let refusal = Refusal::new(Code::TransactionMismatch, "/spent").with_reason("there is one spent output for each input");
            return Err(refusal.with_expected(transaction.input.len()).with_actual(spent.len()));
        }
        fee_of(transaction, spent)?;
        let inputs = transaction.input.iter().zip(spent).enumerate();
        let inputs = inputs.map(|(index, (signed, output))| {
            let spend = read_spend(&output.script_pubkey, last_push(&signed.script_sig));
            let kind = Kind::Wallet(spend.map_err(|refusal| refusal.with_prefix(&format!("/spent/{index}")))?);
            Ok(Input::new(signed.previous_output, signed.sequence, output.clone(), kind))
        });
        let mut inputs = inputs.collect::<Result<Vec<_>, Refusal>>()?;
        // The library can compute a digest for every input of the transaction, so this error does not occur.
        let digests = digests(transaction, &inputs).ok_or_else(|| Refusal::new(Code::Internal, ""))?;
        for (input, digest) in inputs.iter_mut().zip(digests) {
            input.digest = digest;
        }
        let mut explicit = ExplicitAll::new(transaction, &inputs);
        for (index, (input, signed)) in inputs.iter().zip(&transaction.input).enumerate() {
            prove_input(index, input, signed, &mut explicit).map_err(|refusal| refusal.with_prefix(&format!("/input/{index}")))?;
        }
        Ok(role)
    }
}

/// Returns the fee of a transaction that spends these outputs. Nodes refuse one that pays more than it spends, whatever its signatures are.
pub(crate) fn fee_of(transaction: &Transaction, spent: &[TxOut]) -> Result<Amount, Refusal> {
    let sum = |outputs: &[TxOut]| outputs.iter().try_fold(Amount::ZERO, |sum, output| sum.checked_add(output.value));
    let (has, pays) = (sum(spent), sum(&transaction.output));
    has.zip(pays).and_then(|(has, pays)| has.checked_sub(pays)).ok_or_else(|| {
        let [has, pays] = [has, pays].map(|sum| sum.map_or_else(|| "more than 64 bits".to_owned(), |sum| sum.to_sat().to_string()));
        let refusal = Refusal::new(Code::TransactionMismatch, "/output").with_reason("the outputs are worth more than what is spent");
        refusal.with_expected(has).with_actual(pays)
    })
}

/// Proves the signature of an input, and requires that its script and witness are the only ones that nodes relay for it.
fn prove_input(index: usize, input: &Input, signed: &TxIn, explicit: &mut ExplicitAll<'_>) -> Result<(), Refusal> {
    let known = psbt::Input {
        final_script_sig: Some(signed.script_sig.clone()),
        final_script_witness: Some(signed.witness.clone()),
        ..psbt::Input::default()
    };
    let refuse = |reason: &'static str| Refusal::new(Code::TransactionMismatch, "").with_reason(reason);
    let signature = external::from_psbt_input(input, &known)?.ok_or_else(|| refuse("the input is not signed"))?;
    if prove(index, input, &signature, explicit)?.scripts() != (signed.script_sig.clone(), signed.witness.clone()) {
        return Err(refuse("the script or the witness has another form than nodes relay"));
    }
    Ok(())
}

/// Returns the last element that a script pushes: the redeem script of a p2sh output.
fn last_push(script: &Script) -> Option<ScriptBuf> {
    match script.instructions().last()? {
        Ok(Instruction::PushBytes(bytes)) => Some(ScriptBuf::from_bytes(bytes.as_bytes().to_vec())),
        _ => None,
    }
}
