//! What is signed for an order of the swap contract: calls in the order in which they are sent, and the gasless message.
//!
//! EVM and Tron share this. They differ in the transaction that a call becomes ([`Transaction`]).

use std::fmt;

use alloy_primitives::{Address, B256, Signature};
use countersign_core::family::{Seal, Signable, Signed, not_a_payload, only_one};
use countersign_core::{
    Code, GaslessSubmission, Hex, NetworkFee, Refusal, RequestId, Role, Scheme, SignedTransaction, SigningRequest, Summary, Topic,
    Warnings, line_text,
};

use crate::ecdsa;
use crate::signature::{self, Asked, ExternalSignature, Key};
use crate::signers::Signers;
use crate::typed_data::{Hashes, Message, preimage};

/// A family's transaction that makes one call, ready to be signed.
pub trait Transaction: Clone + fmt::Debug {
    /// How the transaction is signed.
    const SCHEME: Scheme;
    /// The methods with which wallets of the family sign: a transaction, and the gasless message.
    const METHODS: [&'static str; 2];
    /// What precedes the hex digits of a signed transaction in requests to nodes.
    const HEX_PREFIX: &'static str = "";
    /// What a signer receives.
    type Payload: fmt::Debug;
    /// The signed transaction in its native type.
    type Native: fmt::Debug;

    /// Returns the bytes that the digest is computed from.
    fn signing_bytes(&self) -> &[u8];
    /// Returns the calldata: selector and arguments.
    fn calldata(&self) -> &[u8];
    /// Returns the digest that is signed.
    fn digest(&self) -> B256;
    /// Returns the chain id that signers add to v (EIP-155), if the family's do.
    fn chain_id(&self) -> Option<u64> {
        None
    }
    /// Returns the transaction in the form that a signer accepts.
    fn payload(&self) -> Self::Payload;
    /// Returns the gasless message in the form that a signer accepts.
    fn message_payload(message: &Message) -> Self::Payload;
    /// Combines the transaction with its signature, and with those of further named keys. Returns its id, its bytes and its native type.
    fn signed(&self, signature: &Signature, further: &[Signature]) -> (String, Vec<u8>, Self::Native);
    /// Decodes a signed transaction, of which `prepared` is to have the unsigned one. Returns the digest that was signed, and the
    /// signatures: several only if keys are named.
    ///
    /// # Errors
    ///
    /// [`Code::TransactionMismatch`] or the codes of a malformed signature.
    fn read_signed(bytes: &[u8], prepared: &Unsigned<Self>) -> Result<(B256, Vec<ExternalSignature>), Refusal>;
    /// Formats an address as the family's users write it.
    fn format_address(address: Address) -> String;
    /// Adds lines on who signs the transactions, and who pays which fees for them.
    fn describe_fees(prepared: &Unsigned<Self>, sender: &str, summary: &mut Summary);
    /// Returns the most that the sender pays for the transactions; `None` if there are none.
    fn network_fee(prepared: &Unsigned<Self>) -> Option<NetworkFee>;
    /// Describes the digest of one transaction.
    fn describe_digest(&self) -> String;
    /// Formats the signature of the gasless message as the service expects it: `0x` hex by default.
    fn submission(signature: &[u8]) -> String {
        Hex(signature.to_vec()).to_string()
    }
}

/// One call, signed or not.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct CallPayload<T> {
    /// What the call does.
    pub role: Role,
    /// The transaction.
    pub transaction: T,
    /// The sender's signature, or the first of the named keys; `None` until it is attached.
    pub signature: Option<Signature>,
    /// The signatures of further named keys, in the order in which they came.
    pub further: Vec<Signature>,
}

impl<T> CallPayload<T> {
    /// Returns the signatures so far.
    pub fn signatures(&self) -> impl Iterator<Item = &Signature> {
        self.signature.iter().chain(&self.further)
    }
}

impl<T: Transaction> CallPayload<T> {
    /// Returns who has signed.
    fn signed_by(&self) -> Vec<Address> {
        let digest = self.transaction.digest();
        self.signatures().filter_map(|signature| ecdsa::recover(signature, &digest)).collect()
    }

    /// Adds the signature of a key, unless it has signed already: each key counts once.
    fn add(&mut self, signer: Address, signature: Signature) {
        if self.signed_by().contains(&signer) {
            return;
        }
        match self.signature {
            None => self.signature = Some(signature),
            Some(_) => self.further.push(signature),
        }
    }

    fn is_complete(&self, signers: Option<&Signers>) -> bool {
        match signers {
            None => self.signature.is_some(),
            Some(signers) => signers.are_enough(&self.signed_by()),
        }
    }
}

/// The gasless message with its hashes, signed or not.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct MessagePayload {
    /// The message.
    pub message: Message,
    /// Its hashes.
    pub hashes: Hashes,
    /// The 65 bytes r‖s‖v with v 27 or 28, or the bytes of a contract wallet; `None` until it is attached.
    pub signature: Option<Vec<u8>>,
}

/// Everything that the sender has to sign.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Unsigned<T> {
    /// The account that signs: it sends and pays for the calls, and is the owner of a gasless message.
    pub sender: Address,
    /// The keys that sign the calls if it is not the sender's own. Only chains with such permissions have them.
    pub(crate) signers: Option<Signers>,
    /// The calls in the order in which they are sent.
    pub calls: Vec<CallPayload<T>>,
    /// The gasless message, if it is to be signed.
    pub message: Option<MessagePayload>,
    /// Whether the chain shows code at the sender's account; `None` if it was not asked.
    pub(crate) has_code: Option<bool>,
}

impl<T> Unsigned<T> {
    /// Names the keys that sign the calls in place of the sender's own. It signs the gasless message in any case.
    #[must_use]
    pub fn with_signers(mut self, signers: Option<Signers>) -> Self {
        self.signers = signers;
        self
    }

    /// States whether the chain shows code at the sender's account. It decides whether a signature in the wrapper of ERC-6492 is taken.
    #[must_use]
    pub const fn with_code(mut self, has_code: Option<bool>) -> Self {
        self.has_code = has_code;
        self
    }

    /// Returns the call with this role, if there is one.
    #[must_use]
    pub fn call(&self, role: Role) -> Option<&CallPayload<T>> {
        self.calls.iter().find(|call| call.role == role)
    }
}

impl<T: Transaction> Unsigned<T> {
    /// Creates the payloads from calls, each with its role, and the gasless message.
    #[must_use]
    pub fn new(sender: Address, calls: impl IntoIterator<Item = (Role, T)>, message: Option<Message>) -> Self {
        let calls = calls.into_iter().map(|(role, transaction)| CallPayload { role, transaction, signature: None, further: Vec::new() });
        let message = message.map(|message| MessagePayload { hashes: message.hashes(), message, signature: None });
        Self { sender, signers: None, calls: calls.collect(), message, has_code: None }
    }

    /// Returns the keys that are named for the calls.
    pub fn signers(&self) -> Option<&Signers> {
        // Nothing of this is compiled for EVM, where one key controls an account.
        if T::SCHEME == Scheme::Secp256k1Sha256 { self.signers.as_ref() } else { None }
    }

    /// Proves that a signature over the payload with this id is the sender's, or that of a named key, and returns it in its canonical form.
    fn prove(&self, id: RequestId, given: &ExternalSignature) -> Result<(Address, Signature), Refusal> {
        let prove_by = |signer| self.prove_by(signer, id, given).map(|signature| (signer, signature));
        let Some(signers) = self.signers().filter(|_| id != RequestId::TypedData) else { return prove_by(self.sender) };
        let mut refusal: Option<Refusal> = None;
        for (key, _) in &signers.keys {
            match prove_by(*key) {
                Ok(proven) => return Ok(proven),
                Err(next) if refusal.as_ref().is_none_or(|refusal| specificity(&next) > specificity(refusal)) => refusal = Some(next),
                Err(_) => {}
            }
        }
        let refusal = refusal.unwrap_or_else(|| Refusal::new(Code::SignatureMismatch, ""));
        let keys = || signers.describe(&[], T::format_address);
        Err(match refusal.code() {
            Code::SignatureMismatch => refusal.with_expected(format!("a signature of {}", keys())),
            Code::KeyMismatch => refusal.with_expected(format!("the public key of {}", keys())),
            _ => refusal,
        })
    }

    /// Proves the signatures of several keys over the payload with this id. No key may be among them twice.
    fn prove_all(&self, id: RequestId, given: &[ExternalSignature]) -> Result<Vec<(Address, Signature)>, Refusal> {
        let mut proven: Vec<(Address, Signature)> = Vec::new();
        for (index, given) in given.iter().enumerate() {
            let at = |refusal: Refusal| refusal.with_prefix(&format!("/{index}"));
            let (signer, signature) = self.prove(id, given).map_err(at)?;
            if proven.iter().any(|(other, _)| *other == signer) {
                return Err(at(signed_twice(T::format_address(signer))));
            }
            proven.push((signer, signature));
        }
        Ok(proven)
    }

    /// Adds proven signatures to the call with this id.
    fn add(&mut self, id: RequestId, proven: impl IntoIterator<Item = (Address, Signature)>) {
        if let Some(call) = self.calls.iter_mut().find(|call| request_id(call.role) == id) {
            proven.into_iter().for_each(|(signer, signature)| call.add(signer, signature));
        }
    }

    /// Proves that a signature is this account's over the payload with this id.
    fn prove_by(&self, signer: Address, id: RequestId, given: &ExternalSignature) -> Result<Signature, Refusal> {
        let [transaction, typed_data] = T::METHODS;
        let asked = |digest, message, chain_id, method| {
            let asked = Asked { signer, digest, message, chain_id, method, format: T::format_address };
            let others = self.digests().filter(|(other, _)| *other != id);
            let others = others.map(|(other, digest)| (digest, format!("this is the signature for {other}, another payload of the order")));
            signature::prove(given, &asked, others)
        };
        if let (RequestId::TypedData, Some(MessagePayload { message, hashes, .. })) = (id, &self.message) {
            let Hashes { domain_separator, struct_hash, digest } = *hashes;
            return asked(digest, &preimage(domain_separator, struct_hash), Some(message.chain_id), typed_data);
        }
        let call = self.calls.iter().find(|call| request_id(call.role) == id).ok_or_else(|| Refusal::new(Code::NothingToSign, ""))?;
        let call = &call.transaction;
        asked(call.digest(), call.signing_bytes(), call.chain_id(), transaction)
    }

    /// Returns the digest of each payload.
    fn digests(&self) -> impl Iterator<Item = (RequestId, B256)> {
        let calls = self.calls.iter().map(|call| (request_id(call.role), call.transaction.digest()));
        calls.chain(self.message.iter().map(|message| (RequestId::TypedData, message.hashes.digest)))
    }
}

/// Returns how specific the refusal of one key is. A public key of somebody else is the least specific. A reason, such as that this key signed
/// another message, is the most specific.
fn specificity(refusal: &Refusal) -> u8 {
    match refusal.code() {
        Code::KeyMismatch => 0,
        code if refusal.reason() == code.meaning() => 1,
        _ => 2,
    }
}

/// Returns the id of the request for a call's signature.
const fn request_id(role: Role) -> RequestId {
    match role {
        Role::ApprovalReset => RequestId::ApprovalReset,
        Role::Approval => RequestId::Approval,
        Role::Redeem => RequestId::Redeem,
        Role::Refund => RequestId::Refund,
        Role::Claim => RequestId::Claim,
        _ => RequestId::Initiate,
    }
}

impl<T: Transaction> Signable for Unsigned<T> {
    type Payload = T::Payload;
    type Key = Key;
    type Signature = ExternalSignature;
    type Signed = SignedPayloads<T>;

    fn describe(&self, summary: &mut Summary) {
        let sender = T::format_address(self.sender);
        T::describe_fees(self, &sender, summary);
        // On Tron an account with a key never has code.
        if T::SCHEME == Scheme::Secp256k1Keccak && self.message.is_some() {
            let text = line_text!("the typed data counts only while {sender} has no code, or if its code accepts the signature (ERC-1271)");
            summary.add(Topic::Message, text);
        }
        for call in &self.calls {
            let name = match call.role {
                Role::ApprovalReset => "approval reset to zero".to_owned(),
                role => role.to_string(),
            };
            let digest = call.transaction.describe_digest();
            summary.add_values(Topic::Digest, line_text!("{name}, {digest}"), [hash(call.transaction.digest())]);
        }
        if let Some(message) = &self.message {
            let digest = message.hashes.digest;
            summary.add_values(Topic::Digest, line_text!("typed data, {digest}"), [hash(digest)]);
        }
    }

    fn network_fee(&self) -> Option<NetworkFee> {
        T::network_fee(self)
    }

    fn requests(&self) -> Vec<SigningRequest<T::Payload>> {
        let signer = T::format_address(self.sender);
        let calls = self.calls.iter().map(|call| {
            let (transaction, id) = (&call.transaction, request_id(call.role));
            let (message, digest) = (transaction.signing_bytes().to_vec(), transaction.digest().to_vec());
            let signer = self.signers().map_or_else(|| signer.clone(), |signers| signers.open(&call.signed_by(), T::format_address));
            SigningRequest::new(id, signer, T::SCHEME, transaction.payload(), message, digest)
        });
        let message = self.message.iter().map(|message| {
            let Hashes { domain_separator, struct_hash, digest } = message.hashes;
            let bytes = preimage(domain_separator, struct_hash).to_vec();
            let payload = T::message_payload(&message.message);
            SigningRequest::new(RequestId::TypedData, signer.clone(), Scheme::Secp256k1Keccak, payload, bytes, digest.to_vec())
        });
        calls.chain(message).collect()
    }

    fn missing(&self) -> Vec<RequestId> {
        let calls = self.calls.iter().filter(|call| !call.is_complete(self.signers())).map(|call| request_id(call.role));
        calls.chain(self.message.iter().filter(|message| message.signature.is_none()).map(|_| RequestId::TypedData)).collect()
    }

    fn signatures(&self) -> Vec<(RequestId, ExternalSignature)> {
        let calls = self.calls.iter().flat_map(|call| call.signatures().map(|signature| (request_id(call.role), (*signature).into())));
        let message = self.message.iter().filter_map(|message| {
            let bytes = message.signature.as_deref()?;
            let is_own = |signature: &Signature| signature::is_of(self.sender, signature, &message.hashes.digest);
            let by_key = Signature::try_from(bytes).ok().filter(is_own);
            let signature = by_key.map_or_else(|| ExternalSignature::Contract(bytes.to_vec().into()), ExternalSignature::Ecdsa);
            Some((RequestId::TypedData, signature))
        });
        calls.chain(message).collect()
    }

    fn sign(&mut self, key: &Key, warnings: &mut Warnings, _: Seal<Self>) -> Result<(), Refusal> {
        let account = key.address();
        let (of_calls, of_message) = match self.signers() {
            None => {
                key.check_controls(self.sender, T::format_address)?;
                (true, true)
            }
            Some(signers) => (signers.contains(account), account == self.sender),
        };
        if let Some(signers) = self.signers()
            && !of_calls
            && !(of_message && self.message.is_some())
        {
            return Err(Refusal::new(Code::KeyMismatch, "")
                .with_reason("the wallet does not name this key for the account's permission")
                .with_expected(format!("the key of {}", signers.describe(&[], T::format_address)))
                .with_actual(format!("the key of {}", T::format_address(account))));
        }
        for call in self.calls.iter_mut().filter(|_| of_calls) {
            call.add(account, key.sign(&call.transaction.digest())?);
        }
        if let Some(message) = self.message.as_mut().filter(|_| of_message) {
            message.signature = Some(signature::bytes(&key.sign(&message.hashes.digest)?));
            warnings.remove(&[Code::ContractSignatureUnverified]);
        }
        Ok(())
    }

    fn attach(&mut self, id: RequestId, signature: ExternalSignature, warnings: &mut Warnings, _: Seal<Self>) -> Result<(), Refusal> {
        if id == RequestId::TypedData {
            if self.message.is_none() {
                return Err(Refusal::new(Code::NothingToSign, ""));
            }
            let bytes = match &signature {
                ExternalSignature::Contract(_) if T::SCHEME != Scheme::Secp256k1Keccak => return Err(signature::not_a_contract()),
                ExternalSignature::Contract(bytes) => {
                    let bytes = signature::for_account(bytes, self.has_code)?;
                    warnings.warn(Code::ContractSignatureUnverified);
                    bytes.to_vec()
                }
                by_key => {
                    let bytes = signature::bytes(&self.prove(id, by_key)?.1);
                    warnings.remove(&[Code::ContractSignatureUnverified]);
                    bytes
                }
            };
            if let Some(message) = &mut self.message {
                message.signature = Some(bytes);
            }
            return Ok(());
        }
        let proven = self.prove(id, &signature)?;
        self.add(id, [proven]);
        Ok(())
    }

    fn attach_all(
        &mut self,
        id: RequestId,
        signatures: Vec<ExternalSignature>,
        warnings: &mut Warnings,
        seal: Seal<Self>,
    ) -> Result<(), Refusal> {
        // The owner alone signs the message.
        if id == RequestId::TypedData || self.signers().is_none() || signatures.is_empty() {
            return self.attach(id, only_one(signatures)?, warnings, seal);
        }
        let proven = self.prove_all(id, &signatures)?;
        self.add(id, proven);
        Ok(())
    }

    fn read_signed(&self, transaction: &[u8]) -> Result<Vec<(RequestId, ExternalSignature)>, Refusal> {
        let (digest, signatures) = T::read_signed(transaction, self)?;
        let call = self.calls.iter().find(|call| call.transaction.digest() == digest).ok_or_else(not_a_payload)?;
        let id = request_id(call.role);
        if self.signers().is_none() {
            return Ok(signatures.into_iter().map(|signature| (id, signature)).collect());
        }
        // The next signer returns the signatures of those before it as well.
        let (before, proven) = (call.signed_by(), self.prove_all(id, &signatures).map_err(|refusal| refusal.with_prefix("/signature"))?);
        let added = proven.into_iter().filter(|(signer, _)| !before.contains(signer));
        Ok(added.map(|(_, signature)| (id, signature.into())).collect())
    }

    fn finish(self, _: Seal<Self>) -> Result<SignedPayloads<T>, Self> {
        if self.missing().is_empty() { Ok(SignedPayloads(self)) } else { Err(self) }
    }
}

/// Refuses a second signature of one key, as nodes do.
fn signed_twice(signer: String) -> Refusal {
    let refusal = Refusal::new(Code::SignatureMismatch, "").with_expected("a signature of another key").with_actual(signer);
    refusal.with_reason("this key has signed twice, and each key counts once")
}

fn hash(hash: B256) -> countersign_core::TypedValue {
    countersign_core::TypedValue::Hash(hash.0)
}

/// Everything that the sender had to sign, with its signatures. Only [`Signable::finish`] creates it.
#[derive(Debug, Clone)]
pub struct SignedPayloads<T>(Unsigned<T>);

impl<T> SignedPayloads<T> {
    /// Returns the payloads with all their signatures.
    #[must_use]
    pub const fn payloads(&self) -> &Unsigned<T> {
        &self.0
    }
}

impl<T: Transaction> Signed for SignedPayloads<T> {
    type Transaction = T::Native;

    fn transactions(&self) -> Vec<SignedTransaction<T::Native>> {
        let signed = self.0.calls.iter().filter_map(|call| {
            let (id, bytes, native) = call.transaction.signed(call.signature.as_ref()?, &call.further);
            Some(SignedTransaction::new(call.role, id, bytes, native))
        });
        signed.collect()
    }

    fn payload(&self, transaction: &SignedTransaction<T::Native>) -> String {
        format!("{}{}", T::HEX_PREFIX, hex::encode(&transaction.bytes))
    }

    fn gasless(&self) -> Option<GaslessSubmission> {
        let signature = self.0.message.as_ref()?.signature.as_ref()?;
        Some(GaslessSubmission::new(T::submission(signature)))
    }
}
