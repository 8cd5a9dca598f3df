//! Signing: the requests, and the signed transaction for nodes.

use countersign_core::family::{Seal, Signable, Signed, not_a_payload, to_json};
use countersign_core::{
    Code, NetworkFee, Refusal, RequestId, Role, Scheme, SignedTransaction as BroadcastTransaction, SigningRequest, Summary, U256, Warnings,
};
use sui_sdk_types::{Address, SignedTransaction, Transaction, UserSignature};

use crate::address::{format_address, format_digest};
use crate::htlc::{byte_vector, push_length};
use crate::key::{Key, low_s};
use crate::received::{self, Execution};
use crate::signature::{ExternalSignature, is_sound};
use crate::summary::SUI_DECIMALS;
use crate::transaction::Unsigned;

impl Unsigned {
    /// Returns the id of this account's signing request; `None` if the transaction does not need its signature.
    pub(crate) fn request_of(&self, signer: Address) -> Option<RequestId> {
        match signer {
            _ if signer == self.sender => Some(self.request_id()),
            _ if self.sponsor() == Some(signer) => Some(RequestId::Sponsor),
            _ => None,
        }
    }

    /// Returns the account that must sign a request.
    fn signer_of(&self, id: RequestId) -> Result<Address, Refusal> {
        let nothing = || Refusal::new(Code::NothingToSign, "");
        match id {
            _ if id == self.request_id() => Ok(self.sender),
            RequestId::Sponsor => self.sponsor().ok_or_else(|| nothing().with_reason("no sponsor pays for this transaction")),
            RequestId::TypedData | RequestId::Gasless => {
                Err(nothing().with_reason("Sui has no gasless funding path: send the signed transaction, or let a sponsor pay for it"))
            }
            _ => Err(nothing()),
        }
    }

    fn set(&mut self, id: RequestId, signature: UserSignature) {
        if id == RequestId::Sponsor {
            self.sponsor_signature = Some(signature);
        } else {
            self.signature = Some(signature);
        }
    }

    /// Returns the refusal of a signer that is neither the sender nor the sponsor. It names the sender, who always has to sign.
    pub(crate) fn key_mismatch(&self, signer: Address) -> Refusal {
        let refusal = Refusal::new(Code::KeyMismatch, "").with_expected(format!("the key of {}", self.sender));
        refusal.with_actual(format!("the key of {signer}"))
    }
}

impl Signable for Unsigned {
    type Payload = Transaction;
    type Key = Key;
    type Signature = ExternalSignature;
    type Signed = SignedPayloads;

    fn describe(&self, summary: &mut Summary) {
        crate::summary::describe_unsigned(self, summary);
    }

    fn network_fee(&self) -> Option<NetworkFee> {
        let is_own = self.sponsor().is_none();
        is_own.then(|| NetworkFee::new(U256::from(self.gas_payment.budget), SUI_DECIMALS).in_coin("SUI"))
    }

    fn requests(&self) -> Vec<SigningRequest<Transaction>> {
        let request = |id, signer: Address| {
            let (message, digest) = (self.intent_message(), self.signing_digest.to_vec());
            SigningRequest::new(id, format_address(&signer), Scheme::Sui, self.transaction(), message, digest)
        };
        let sponsor = self.sponsor().map(|sponsor| request(RequestId::Sponsor, sponsor));
        [request(self.request_id(), self.sender)].into_iter().chain(sponsor).collect()
    }

    fn missing(&self) -> Vec<RequestId> {
        let sender = self.signature.is_none().then(|| self.request_id());
        let sponsor = (self.sponsor().is_some() && self.sponsor_signature.is_none()).then_some(RequestId::Sponsor);
        sender.into_iter().chain(sponsor).collect()
    }

    fn signatures(&self) -> Vec<(RequestId, ExternalSignature)> {
        let sender = self.signature.iter().map(|signature| (self.request_id(), signature));
        let sponsor = self.sponsor_signature.iter().map(|signature| (RequestId::Sponsor, signature));
        sender.chain(sponsor).map(|(id, signature)| (id, signature.clone().into())).collect()
    }

    /// Signs for the account that the key controls: the sender or the sponsor.
    fn sign(&mut self, key: &Key, _: &mut Warnings, _: Seal<Self>) -> Result<(), Refusal> {
        let id = self.request_of(key.address()).ok_or_else(|| self.key_mismatch(key.address()))?;
        let signature = key.sign(&self.signing_digest)?;
        self.set(id, UserSignature::Simple(signature));
        Ok(())
    }

    /// Proves that a signature is the signer's over exactly this digest, with s in the lower half of the curve order. A signature that only
    /// the network can prove is accepted with a warning if its address is the signer's.
    fn attach(
        &mut self,
        id: RequestId,
        ExternalSignature(signature): ExternalSignature,
        warnings: &mut Warnings,
        _: Seal<Self>,
    ) -> Result<(), Refusal> {
        let signer = self.signer_of(id)?;
        let signature = match signature {
            UserSignature::Simple(simple) => UserSignature::Simple(low_s(simple)),
            other => other,
        };
        let is_signers = signature.derive_addresses().any(|address| address == signer);
        if !is_signers || !is_sound(&signature, &self.signing_digest, warnings) {
            let expected = format!("a signature of {signer} over {}", hex::encode(self.signing_digest));
            return Err(Refusal::new(Code::SignatureMismatch, "").with_expected(expected));
        }
        self.set(id, signature);
        Ok(())
    }

    fn read_signed(&self, transaction: &[u8]) -> Result<Vec<(RequestId, ExternalSignature)>, Refusal> {
        let received = received::from_bytes(transaction)?;
        if received.transaction != self.transaction() {
            return Err(not_a_payload());
        }
        let signatures = received.signatures.into_iter().map(|signature| {
            let id = signature.derive_addresses().find_map(|address| self.request_of(address));
            Ok((id.unwrap_or_else(|| self.request_id()), ExternalSignature(signature)))
        });
        signatures.collect()
    }

    fn finish(self, _: Seal<Self>) -> Result<SignedPayloads, Self> {
        let sponsored = self.sponsor().is_some();
        let signatures = match (&self.signature, &self.sponsor_signature) {
            (Some(sender), None) if !sponsored => vec![sender.clone()],
            (Some(sender), Some(sponsor)) if sponsored => vec![sender.clone(), sponsor.clone()],
            _ => return Err(self),
        };
        Ok(SignedPayloads { unsigned: self, signatures })
    }
}

/// The payload with all its signatures. Only [`Signable::finish`] creates it.
#[derive(Debug, Clone)]
pub struct SignedPayloads {
    unsigned: Unsigned,
    signatures: Vec<UserSignature>,
}

impl SignedPayloads {
    /// Returns the payload, which has all its signatures.
    #[must_use]
    pub const fn payloads(&self) -> &Unsigned {
        &self.unsigned
    }

    /// Returns all signatures, the sender's first.
    #[must_use]
    pub fn signatures(&self) -> &[UserSignature] {
        &self.signatures
    }

    /// Returns the parameters of the JSON-RPC method that executes the transaction.
    #[must_use]
    pub fn execution(&self) -> Execution {
        let signatures = self.signatures.iter().map(UserSignature::to_base64).collect();
        Execution { tx_bytes: self.unsigned.base64(), signatures }
    }

    /// Returns the signed transaction as Mysten's own type.
    #[must_use]
    pub fn signed_transaction(&self) -> SignedTransaction {
        SignedTransaction { transaction: self.unsigned.transaction(), signatures: self.signatures.clone() }
    }

    /// Returns what the transaction does.
    #[must_use]
    pub const fn role(&self) -> Role {
        self.unsigned.role
    }
}

impl Signed for SignedPayloads {
    type Transaction = SignedTransaction;

    /// Returns the signed transaction. Its bytes are BCS of the transaction and its signatures, as `sui-sdk-types` encodes it.
    fn transactions(&self) -> Vec<BroadcastTransaction<SignedTransaction>> {
        let (id, signed) = (format_digest(&self.unsigned.digest()), self.signed_transaction());
        let mut bytes = self.unsigned.bytes.clone();
        push_length(&mut bytes, signed.signatures.len());
        bytes.extend(signed.signatures.iter().flat_map(|signature| byte_vector(&signature.to_bytes())));
        vec![BroadcastTransaction::new(self.unsigned.role, id, bytes, signed)]
    }

    /// Returns the JSON of [`SignedPayloads::execution`], because nodes take the transaction and its signatures apart.
    fn payload(&self, _: &BroadcastTransaction<SignedTransaction>) -> String {
        to_json(&self.execution())
    }
}
