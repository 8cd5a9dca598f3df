//! The payloads that the owner of an order signs: one transaction with all calls, and the gasless message.

use std::mem;

use countersign_core::family::{Seal, Signable, Signed, not_a_payload};
use countersign_core::{
    Code, GaslessSubmission, NetworkFee, Refusal, RequestId, Role, Scheme, SignedTransaction, SigningRequest, Summary, Topic, TypedValue,
    Warnings, line_text, number,
};
use serde_json::Value as Json;
use starknet_types_core::felt::Felt;

use crate::address;
use crate::felt::{self, to_hex};
use crate::key::Key;
use crate::message::{Domain, Hashes, Message};
use crate::received;
use crate::signature::{self, ExternalSignature};
use crate::transaction::{ExecutionEncoding, Invoke, InvokeTransaction};

/// Decimal places of one STRK, whose base unit is the FRI.
const STRK: u8 = 18;

/// What a signer receives.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Payload {
    /// The account's transaction. It includes the calls, for signers that build the transaction themselves.
    Invoke(Box<Invoke>),
    /// The gasless message as JSON of SNIP-12 revision 1, for `account.signMessage` and `wallet_signTypedData`.
    TypedData(Json),
}

/// The account's transaction, signed or not.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct InvokePayload {
    /// What the calls do.
    pub role: Role,
    /// The transaction.
    pub invoke: Invoke,
    /// All felts of the account's signature array; `None` until it is signed.
    pub signature: Option<Vec<Felt>>,
}

/// The gasless message with its hashes, signed or not.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct MessagePayload {
    /// The message.
    pub message: Message,
    /// The hashes of the message.
    pub hashes: Hashes,
    /// All felts of the account's signature array; `None` until it is signed.
    pub signature: Option<Vec<Felt>>,
}

/// The payloads that the sender has to sign: the transaction, and the gasless message.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Unsigned {
    /// The account that signs. It sends the transaction and pays for it; it is the owner if only the message is signed.
    pub sender: Felt,
    /// The account's public key; `None` if the wallet does not know it.
    pub public_key: Option<Felt>,
    /// The transaction with the approval, if there is one, and the `initiate` call, or with the call of a recovery. `None` on the
    /// gasless path.
    pub invoke: Option<InvokePayload>,
    /// The gasless message; `None` if it is not signed.
    pub message: Option<MessagePayload>,
}

/// Returns the id of the signing request of a transaction.
const fn request_id(role: Role) -> RequestId {
    match role {
        Role::Redeem => RequestId::Redeem,
        Role::Refund => RequestId::Refund,
        _ => RequestId::Invoke,
    }
}

impl Unsigned {
    pub(crate) fn new(sender: Felt, public_key: Option<Felt>, invoke: Option<(Role, Invoke)>, message: Option<Message>) -> Self {
        Self {
            sender,
            public_key,
            invoke: invoke.map(|(role, invoke)| InvokePayload { role, invoke, signature: None }),
            message: message.map(|message| MessagePayload { hashes: message.hashes(sender), message, signature: None }),
        }
    }

    /// Returns the hashes that a signer can sign by mistake, each with what went wrong.
    fn mistakes(&self) -> Vec<(Felt, String)> {
        let another = |id: RequestId| format!("this is the signature for {id}, another payload of the order");
        let chains = ["SN_MAIN", "SN_SEPOLIA"].map(|name| (name, felt::from_short_string(name).unwrap_or_default()));
        let mut found = Vec::new();
        if let Some(InvokePayload { role, invoke, .. }) = &self.invoke {
            found.push((invoke.hashes.tx_hash, another(request_id(*role))));
            for (name, chain_id) in chains.iter().filter(|(_, chain_id)| *chain_id != invoke.chain_id) {
                let hash = invoke.transaction.hashes(*chain_id).tx_hash;
                found.push((hash, format!("the signer is set to another chain, {name}")));
            }
        }
        if let Some(MessagePayload { message, hashes, .. }) = &self.message {
            found.push((hashes.message_hash, another(RequestId::TypedData)));
            let in_domain = |domain| message.hash_in(domain, self.sender);
            for (name, chain_id) in chains.iter().filter(|(_, chain_id)| *chain_id != message.domain.chain_id) {
                let domain = Domain { chain_id: *chain_id, ..message.domain };
                found.push((in_domain(domain), format!("the signer is set to another chain, {name}")));
            }
            // Wallets read the text "1" as a number, where the contract hashes the character.
            let number = (0..10_u8).find(|digit| message.domain.version == Felt::from(b'0'.saturating_add(*digit)));
            if let Some(number) = number.map(Felt::from) {
                let reason = "the signer read the domain's version as a number, where the contract hashes its character: pass the typed data as it is";
                found.push((in_domain(Domain { version: number, ..message.domain }), reason.to_owned()));
            }
        }
        found
    }

    /// Returns the id of each request, the hash that is signed, and the slot for the signature.
    pub(crate) fn slots(&mut self) -> impl Iterator<Item = (RequestId, Felt, &mut Option<Vec<Felt>>)> {
        let invoke = self.invoke.as_mut().map(|payload| (request_id(payload.role), payload.invoke.hashes.tx_hash, &mut payload.signature));
        let message = self.message.as_mut().map(|payload| (RequestId::TypedData, payload.hashes.message_hash, &mut payload.signature));
        invoke.into_iter().chain(message)
    }
}

impl Signable for Unsigned {
    type Payload = Payload;
    type Key = Key;
    type Signature = ExternalSignature;
    type Signed = SignedPayloads;

    fn describe(&self, summary: &mut Summary) {
        let digest = |summary: &mut Summary, what: &str, hash: Felt| {
            summary.add_values(Topic::Digest, line_text!("{what}, {}", to_hex(&hash)), [TypedValue::Hash(hash.to_bytes_be())]);
        };
        if let Some(payload) = &self.invoke {
            describe_invoke(&payload.invoke, summary);
            digest(summary, "transaction", payload.invoke.hashes.tx_hash);
        }
        if let Some(payload) = &self.message {
            digest(summary, "typed data", payload.hashes.message_hash);
        }
    }

    fn network_fee(&self) -> Option<NetworkFee> {
        let transaction = &self.invoke.as_ref()?.invoke.transaction;
        Some(NetworkFee::new(transaction.resource_bounds.max_fee(transaction.tip), STRK).in_coin("STRK"))
    }

    fn requests(&self) -> Vec<SigningRequest<Payload>> {
        let request = |id, payload, preimage: &[Felt], hash: &Felt| {
            let (message, digest) = (felt::to_bytes(preimage), hash.to_bytes_be().to_vec());
            SigningRequest::new(id, address::to_account(self.sender).to_string(), Scheme::Stark, payload, message, digest)
        };
        let invoke = self.invoke.iter().map(|InvokePayload { role, invoke, .. }| {
            request(request_id(*role), Payload::Invoke(Box::new(invoke.clone())), &invoke.preimage(), &invoke.hashes.tx_hash)
        });
        let message = self.message.iter().map(|MessagePayload { message, hashes, .. }| {
            request(RequestId::TypedData, Payload::TypedData(message.to_json()), &hashes.preimage(), &hashes.message_hash)
        });
        invoke.chain(message).collect()
    }

    fn missing(&self) -> Vec<RequestId> {
        let invoke = self.invoke.iter().filter(|payload| payload.signature.is_none()).map(|payload| request_id(payload.role));
        invoke.chain(self.message.iter().filter(|payload| payload.signature.is_none()).map(|_| RequestId::TypedData)).collect()
    }

    fn signatures(&self) -> Vec<(RequestId, ExternalSignature)> {
        let invoke = self.invoke.iter().map(|payload| (request_id(payload.role), &payload.signature));
        let message = self.message.iter().map(|payload| (RequestId::TypedData, &payload.signature));
        invoke.chain(message).filter_map(|(id, felts)| Some((id, ExternalSignature::of_felts(felts.clone()?)))).collect()
    }

    fn sign(&mut self, key: &Key, warnings: &mut Warnings, _: Seal<Self>) -> Result<(), Refusal> {
        if !check_public_key(self.public_key, || key.public_key())? {
            warnings.warn(Code::KeyNotChecked);
        }
        let signatures: Vec<_> = self.slots().map(|(_, hash, _)| key.sign(&hash)).collect::<Result<_, _>>()?;
        for ((_, _, slot), signature) in self.slots().zip(signatures) {
            *slot = Some(signature.to_vec());
        }
        Ok(())
    }

    /// Proves a signature of two felts if the public key of the account or of the signer is known. Any other signature is attached with
    /// a warning, because only the account can verify it.
    fn attach(&mut self, id: RequestId, signature: ExternalSignature, warnings: &mut Warnings, _: Seal<Self>) -> Result<(), Refusal> {
        let account_key = self.public_key;
        if let Some(signer_key) = signature.public_key()
            && !check_public_key(account_key, || signer_key)?
        {
            warnings.warn(Code::KeyNotChecked);
        }
        let slot = self.slots().find(|(slot, ..)| *slot == id);
        let (_, hash, _) = slot.ok_or_else(|| Refusal::new(Code::NothingToSign, ""))?;
        match (signature.felts(), account_key.or(signature.public_key())) {
            ([r, s], Some(public_key)) => signature::prove(&public_key, &hash, [r, s], || self.mistakes())?,
            _ => warnings.warn(Code::ContractSignatureUnverified),
        }
        if let Some((_, _, slot)) = self.slots().find(|(slot, ..)| *slot == id) {
            *slot = Some(signature.into_felts());
        }
        Ok(())
    }

    fn read_signed(&self, transaction: &[u8]) -> Result<Vec<(RequestId, ExternalSignature)>, Refusal> {
        let payload = self.invoke.as_ref().ok_or_else(not_a_payload)?;
        let mut received = received::from_json_on(payload.invoke.chain_id, transaction)?;
        let signature = ExternalSignature::from_felts(mem::take(&mut received.signature))?;
        if payload.invoke.transaction != received {
            return Err(not_a_payload());
        }
        Ok(vec![(request_id(payload.role), signature)])
    }

    fn finish(self, _: Seal<Self>) -> Result<SignedPayloads, Self> {
        if self.missing().is_empty() { Ok(SignedPayloads(self)) } else { Err(self) }
    }
}

/// Adds lines on what the wallet contributed to a transaction.
fn describe_invoke(invoke: &Invoke, summary: &mut Summary) {
    let transaction = &invoke.transaction;
    let (sender, bounds) = (transaction.sender_address, &transaction.resource_bounds);
    let max_fee = bounds.max_fee(transaction.tip);
    let in_strk = number::in_whole_units(max_fee, STRK);
    let (account, nonce) = (address::to_account(sender), to_hex(&transaction.nonce));
    let text = line_text!("sent and paid for by {account}, nonce {nonce}, at most {in_strk} STRK");
    summary.add_values(Topic::Wallet, text, [account.into(), max_fee.into()]);
    for (name, bound) in [("L1 gas", bounds.l1_gas), ("L2 gas", bounds.l2_gas), ("L1 data gas", bounds.l1_data_gas)] {
        let text = line_text!("at most {} {name} at {} FRI", bound.max_amount, bound.max_price_per_unit);
        summary.add_values(Topic::Gas, text, [bound.max_amount.into(), bound.max_price_per_unit.into()]);
    }
    if transaction.tip != 0 {
        summary.add_values(Topic::Gas, line_text!("tip {} FRI per L2 gas", transaction.tip), [transaction.tip.into()]);
    }
    for (what, felts) in
        [("paymaster data", &transaction.paymaster_data), ("account deployment data", &transaction.account_deployment_data)]
    {
        if !felts.is_empty() {
            let felts: Vec<_> = felts.iter().map(to_hex).collect();
            summary.add(Topic::Wallet, line_text!("{what} {}", felts.join(", ")));
        }
    }
    let modes = (transaction.nonce_data_availability_mode.name(), transaction.fee_data_availability_mode.name());
    if modes != ("L1", "L1") {
        summary.add(Topic::Wallet, line_text!("nonce data on {}, fee data on {}", modes.0, modes.1));
    }
    if invoke.encoding == ExecutionEncoding::Legacy {
        summary.add(Topic::Wallet, "calls encoded for an account of Cairo 0");
    }
}

/// Requires that a signer's public key is the account's, and returns whether it could be checked. If the wallet did not give the
/// account's key, the signer's is not computed.
pub(crate) fn check_public_key(known: Option<Felt>, of_signer: impl FnOnce() -> Felt) -> Result<bool, Refusal> {
    let Some(expected) = known else { return Ok(false) };
    let actual = of_signer();
    if actual == expected {
        return Ok(true);
    }
    let format = |key: Felt| format!("the key with the public key {key:#x}");
    Err(Refusal::new(Code::KeyMismatch, "").with_expected(format(expected)).with_actual(format(actual)))
}

/// The payloads with all their signatures. Only [`Signable::finish`] creates them.
#[derive(Debug, Clone)]
pub struct SignedPayloads(Unsigned);

impl SignedPayloads {
    /// Returns the payloads, all of which are signed.
    #[must_use]
    pub const fn payloads(&self) -> &Unsigned {
        &self.0
    }
}

impl Signed for SignedPayloads {
    type Transaction = InvokeTransaction;

    /// Returns the signed transaction. Its id is the transaction hash. Its bytes are the JSON that nodes accept, to which the native type
    /// serializes.
    fn transactions(&self) -> Vec<SignedTransaction<InvokeTransaction>> {
        let signed = self.0.invoke.iter().filter_map(|InvokePayload { role, invoke, signature }| {
            let native = invoke.transaction.clone().with_signature(signature.clone()?);
            // Felts and numbers always serialize.
            let json = serde_json::to_vec(&native).unwrap_or_default();
            Some(SignedTransaction::new(*role, felt::to_hex(&invoke.hashes.tx_hash), json, native))
        });
        signed.collect()
    }

    /// Returns the JSON.
    fn payload(&self, transaction: &SignedTransaction<InvokeTransaction>) -> String {
        String::from_utf8(transaction.bytes.clone()).unwrap_or_default()
    }

    /// Returns the signature as decimal felts joined by commas.
    fn gasless(&self) -> Option<GaslessSubmission> {
        let signature = self.0.message.as_ref()?.signature.as_ref()?;
        Some(GaslessSubmission::new(felt::join_decimal(signature)))
    }
}
