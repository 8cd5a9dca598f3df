//! Signing: the requests, external signatures and their proofs, and the local signer. Each input has one signature.
//!
//! Specification: `docs/spec/bitcoin.md#signing`.

mod external;
mod get_key;
mod key;
mod proof;
mod spent;

use std::fmt;
use std::sync::Arc;

use bitcoin::Transaction;
use bitcoin::consensus::encode;
use bitcoin::psbt::Psbt;
use countersign_core::family::{Seal, Signable, Signed};
use countersign_core::{Code, NetworkFee, Refusal, RequestId, Role, Scheme, SignedTransaction, SigningRequest, Summary, Topic, Warnings};

pub use external::ExternalSignature;
pub use key::Key;
pub(crate) use proof::{Proof, opens};
pub(crate) use spent::fee_of;

use crate::transaction::{Input, Kind, Payment, Spend, Unsigned};

/// What a signer receives: the whole PSBT, and the index of the input to sign.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Payload {
    /// The PSBT, which all requests of one transaction share. The signed PSBT has the signatures for all of them.
    pub psbt: Arc<Psbt>,
    /// Index of the input to sign.
    pub input: usize,
}

impl Payload {
    pub(crate) const fn new(psbt: Arc<Psbt>, input: usize) -> Self {
        Self { psbt, input }
    }
}

/// The transaction with all its signatures, or nothing if another wallet pays. Only [`Signable::finish`] creates it.
#[derive(Clone)]
pub struct SignedPayment {
    role: Role,
    psbt: Option<Psbt>,
    transaction: Option<Transaction>,
}

impl fmt::Debug for SignedPayment {
    /// Leaves out the witnesses. The witness of a redemption contains the secret, which must stay private until the broadcast.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let txid = self.transaction.as_ref().map(Transaction::compute_txid);
        f.debug_struct("SignedPayment").field("role", &self.role).field("txid", &txid).finish_non_exhaustive()
    }
}

impl SignedPayment {
    /// Returns the PSBT with its signatures; `None` if another wallet pays.
    #[must_use]
    pub const fn psbt(&self) -> Option<&Psbt> {
        self.psbt.as_ref()
    }

    /// Returns the transaction to broadcast; `None` if another wallet pays.
    #[must_use]
    pub const fn transaction(&self) -> Option<&Transaction> {
        self.transaction.as_ref()
    }
}

impl Signed for SignedPayment {
    type Transaction = Transaction;

    fn transactions(&self) -> Vec<SignedTransaction<Transaction>> {
        let signed = self.transaction.iter().map(|transaction| {
            let (id, bytes) = (transaction.compute_txid().to_string(), encode::serialize(transaction));
            SignedTransaction::new(self.role, id, bytes, transaction.clone())
        });
        signed.collect()
    }

    fn spends(transaction: &Transaction) -> Vec<String> {
        transaction.input.iter().map(|input| input.previous_output.to_string()).collect()
    }
}

impl Input {
    /// Returns the signer that the input needs: an address, or the x-only key of a leaf.
    pub(crate) fn signer(&self, chain: crate::Chain) -> String {
        match &self.kind {
            Kind::Htlc(leaf) => leaf.signer.to_string(),
            Kind::Wallet(_) | Kind::Presigned(_) => chain.format_script(&self.prevout.script_pubkey),
        }
    }

    const fn scheme(&self) -> Scheme {
        match self.kind {
            Kind::Htlc(_) | Kind::Wallet(Spend::P2tr { .. }) => Scheme::Bip340,
            Kind::Wallet(_) | Kind::Presigned(_) => Scheme::Secp256k1Sha256d,
        }
    }
}

impl Payment {
    /// Returns the refusal of a key that cannot sign any input, which names the signer of the first unsigned input; `None` if every
    /// input is signed.
    #[must_use]
    pub fn key_mismatch(&self) -> Option<Refusal> {
        let open = self.inputs.iter().find(|input| !input.is_signed())?;
        Some(Refusal::new(Code::KeyMismatch, "").with_expected(format!("the key of {}", open.signer(self.chain))))
    }

    /// Adds the warning about signatures with a hash type, whose byte makes the transaction larger than the fee was computed for, if its rate is
    /// thereby lower than every node relays.
    fn warn_of_size(&self, warnings: &mut Warnings) {
        let Some(vsize) = self.signed_transaction().map(|transaction| u64::try_from(transaction.vsize()).unwrap_or(u64::MAX)) else {
            return;
        };
        let floor = self.chain.min_fee_rate();
        let is_low = |vsize| floor.fee(vsize).is_some_and(|least| self.fee < least);
        if vsize > self.vsize && is_low(vsize) && !is_low(self.vsize) {
            let fee = self.fee.to_sat();
            warnings.warn_about(
                Code::FeeTooLow,
                format!("{fee} sat for the {vsize} vB that the signatures have, and not every node relays less than {floor} sat/vB"),
            );
        }
    }

    /// Stores the proofs of the inputs that have one.
    fn keep(&mut self, proofs: Vec<Option<Proof>>) {
        for (input, proof) in self.inputs.iter_mut().zip(proofs) {
            if proof.is_some() {
                input.proof = proof;
            }
        }
    }
}

impl Unsigned {
    fn payment(&self) -> Result<&Payment, Refusal> {
        self.payment.as_ref().ok_or_else(no_transaction)
    }

    fn payment_mut(&mut self) -> Result<&mut Payment, Refusal> {
        self.payment.as_mut().ok_or_else(no_transaction)
    }

    /// Proves all signatures of a PSBT, finalized or not, and attaches them. A refused PSBT changes nothing. What a final script or witness has
    /// beside the signature is not read: the transaction gets its own.
    ///
    /// # Errors
    ///
    /// [`Code::NothingToSign`] if another wallet pays; [`Code::PsbtMismatch`] for a PSBT of another transaction;
    /// [`Code::SignatureMissing`] for a PSBT without signatures; [`Code::SignatureMalformed`] or [`Code::SignatureMismatch`] for a wrong
    /// signature.
    fn attach_psbt(&mut self, psbt: &Psbt, warnings: &mut Warnings) -> Result<(), Refusal> {
        let payment = self.payment_mut()?;
        if psbt.unsigned_tx != payment.psbt.unsigned_tx {
            return Err(Refusal::new(Code::PsbtMismatch, ""));
        }
        let mut explicit = payment.explicit_all();
        let proofs = payment.inputs.iter().zip(&psbt.inputs).enumerate().map(|(index, (input, known))| {
            let found = external::from_psbt_input(input, known)?;
            found.map(|signature| proof::prove(index, input, &signature, &mut explicit)).transpose()
        });
        let proofs: Vec<_> = proofs.collect::<Result<_, _>>()?;
        if proofs.iter().all(Option::is_none) {
            return Err(Refusal::new(Code::SignatureMissing, "").with_reason("there is no signature for any input"));
        }
        payment.keep(proofs);
        payment.warn_of_size(warnings);
        Ok(())
    }
}

fn no_transaction() -> Refusal {
    let reason = "without unspent outputs there is no transaction: pay the address with any wallet";
    Refusal::new(Code::NothingToSign, "").with_reason(reason)
}

impl Signable for Unsigned {
    type Payload = Payload;
    type Key = Key;
    type Signature = ExternalSignature;
    type Signed = SignedPayment;

    fn describe(&self, summary: &mut Summary) {
        match &self.payment {
            Some(payment) => payment.describe(summary),
            None => summary.add(Topic::Digest, "nothing: any wallet can pay the address"),
        }
    }

    fn network_fee(&self) -> Option<NetworkFee> {
        let payment = self.payment.as_ref()?;
        let fee = payment.chain.amount(payment.fee);
        Some(NetworkFee::new(fee.base_units, fee.decimals).in_coin(payment.chain.symbol()))
    }

    fn requests(&self) -> Vec<SigningRequest<Payload>> {
        let Some(payment) = &self.payment else { return Vec::new() };
        let requests = payment.signing_bytes().map(|(index, input, bytes)| {
            let payload = Payload::new(Arc::clone(&payment.psbt), index);
            let digest = input.digest.to_vec();
            SigningRequest::new(RequestId::Input(index), input.signer(payment.chain), input.scheme(), payload, bytes, digest)
        });
        requests.collect()
    }

    fn missing(&self) -> Vec<RequestId> {
        let inputs = self.payment.iter().flat_map(|payment| payment.inputs.iter().enumerate());
        inputs.filter(|(_, input)| !input.is_signed()).map(|(index, _)| RequestId::Input(index)).collect()
    }

    fn signatures(&self) -> Vec<(RequestId, ExternalSignature)> {
        let inputs = self.payment.iter().flat_map(|payment| payment.inputs.iter().enumerate());
        inputs.filter_map(|(index, input)| Some((RequestId::Input(index), input.proof.as_ref()?.signature()))).collect()
    }

    fn sign(&mut self, key: &Key, _: &mut Warnings, _: Seal<Self>) -> Result<(), Refusal> {
        let payment = self.payment_mut()?;
        let proofs: Vec<_> = payment.inputs.iter().map(|input| key.sign(input)).collect();
        if proofs.iter().all(Option::is_none) {
            return Err(payment.key_mismatch().unwrap_or_else(|| Refusal::new(Code::KeyMismatch, "")));
        }
        payment.keep(proofs);
        Ok(())
    }

    /// Attaches the signature of an input, or all signatures of a signed PSBT, which may be attached under the id of any input.
    fn attach(&mut self, id: RequestId, signature: ExternalSignature, warnings: &mut Warnings, _: Seal<Self>) -> Result<(), Refusal> {
        let RequestId::Input(index) = id else { return Err(Refusal::new(Code::NothingToSign, "")) };
        if let ExternalSignature::Psbt(psbt) = &signature {
            return self.attach_psbt(psbt, warnings);
        }
        let payment = self.payment_mut()?;
        let no_input = || Refusal::new(Code::NothingToSign, "").with_reason("the transaction has no such input");
        let input = payment.inputs.get(index).ok_or_else(no_input)?;
        let proof = proof::prove(index, input, &signature, &mut payment.explicit_all())?;
        payment.inputs.get_mut(index).ok_or_else(no_input)?.proof = Some(proof);
        payment.warn_of_size(warnings);
        Ok(())
    }

    /// Takes a PSBT or the signed transaction, as [`ExternalSignature::from_bytes`] reads it. The signatures are attached under the id of the
    /// first input.
    fn read_signed(&self, transaction: &[u8]) -> Result<Vec<(RequestId, ExternalSignature)>, Refusal> {
        let refuse = |why: String| Refusal::new(Code::TransactionMismatch, "").with_expected(external::OF_ALL_INPUTS).with_reason(why);
        match ExternalSignature::from_bytes(transaction) {
            Ok(psbt @ ExternalSignature::Psbt(_)) => Ok(vec![(RequestId::Input(0), psbt)]),
            Ok(_) => Err(refuse("the bytes are the signature of one input: attach it under the name of the input".to_owned())),
            Err(refusal) if refusal.code() == Code::SignatureMalformed => Err(refuse(refusal.reason().to_owned())),
            Err(refusal) => Err(refusal),
        }
    }

    fn finish(self, _: Seal<Self>) -> Result<SignedPayment, Self> {
        let Some(payment) = &self.payment else { return Ok(SignedPayment { role: self.role, psbt: None, transaction: None }) };
        match payment.signed_transaction() {
            Some(transaction) => Ok(SignedPayment { role: self.role, psbt: Some(payment.signed_psbt()), transaction: Some(transaction) }),
            None => Err(self),
        }
    }
}
