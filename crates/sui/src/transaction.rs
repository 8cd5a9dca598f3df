//! Transactions (`TransactionData` version 1): the verified kind with the sender, the wallet's gas and the expiration.
//!
//! Specification: `docs/spec/sui.md#signing`.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use countersign_core::{Code, Refusal, RequestId, Role, Warnings};
use sui_sdk_types::hash::Hasher;
use sui_sdk_types::{Address, Digest, GasPayment, SignedTransaction, Transaction, TransactionExpiration, TransactionKind, UserSignature};

use crate::deposit::Deposit;
use crate::gas::{self, TxContext};
use crate::htlc::{byte_vector, push_length};
use crate::kind;
use crate::signature;

/// Intent of a transaction: scope 0, version 0, app 0.
const INTENT: [u8; 3] = [0; 3];
/// The prefix of the bytes that are hashed for a transaction's digest.
const DIGEST_SALT: &[u8] = b"TransactionData::";

/// A transaction to sign, with the signatures that are attached so far.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Unsigned {
    /// What the transaction does.
    pub role: Role,
    /// The inputs and commands.
    pub kind: Arc<TransactionKind>,
    /// The account that sends the transaction.
    pub sender: Address,
    /// Gas price, budget and coins, and the account that pays.
    pub gas_payment: GasPayment,
    /// When the transaction expires.
    pub expiration: TransactionExpiration,
    /// The BCS bytes of the transaction.
    pub bytes: Vec<u8>,
    /// BLAKE2b-256 of the intent and the bytes, the digest that is signed.
    pub signing_digest: [u8; 32],
    /// The sender's signature; `None` until it is attached.
    pub signature: Option<UserSignature>,
    /// The sponsor's signature; `None` until it is attached, or if there is no sponsor.
    pub sponsor_signature: Option<UserSignature>,
}

impl Unsigned {
    /// Creates a transaction. `kind_bytes` are the BCS bytes of the kind, which the transaction contains unchanged. `genesis` identifies
    /// the network, if it is known.
    pub(crate) fn new(
        role: Role,
        kind: Arc<TransactionKind>,
        kind_bytes: &[u8],
        sender: Address,
        gas: &TxContext,
        genesis: Option<&str>,
    ) -> Result<Self, Refusal> {
        let objects = gas.pay(&kind, sender, genesis)?;
        let gas_payment = GasPayment { objects, owner: gas.sponsor.unwrap_or(sender), price: gas.price, budget: gas.budget };
        let expiration = gas.expiration();
        let bytes = encode(kind_bytes, sender, &gas_payment, &expiration)?;
        let signing_digest = blake2b(&INTENT, &bytes).into_inner();
        Ok(Self { role, kind, sender, gas_payment, expiration, bytes, signing_digest, signature: None, sponsor_signature: None })
    }

    /// Returns the transaction as Mysten's own type.
    #[must_use]
    pub fn transaction(&self) -> Transaction {
        let Self { kind, sender, gas_payment, expiration, .. } = self;
        Transaction { kind: kind.as_ref().clone(), sender: *sender, gas_payment: gas_payment.clone(), expiration: expiration.clone() }
    }

    /// Returns the digest of the transaction, which is its id on the network.
    #[must_use]
    pub fn digest(&self) -> Digest {
        blake2b(DIGEST_SALT, &self.bytes)
    }

    /// Returns the account that pays for the sender; `None` if the sender pays.
    #[must_use]
    pub fn sponsor(&self) -> Option<Address> {
        Some(self.gas_payment.owner).filter(|owner| *owner != self.sender)
    }

    /// Returns the bytes that are hashed for the signing digest: the intent and the transaction.
    #[must_use]
    pub fn intent_message(&self) -> Vec<u8> {
        [&INTENT[..], &self.bytes].concat()
    }

    /// Returns the bytes in base64, which nodes accept.
    #[must_use]
    pub fn base64(&self) -> String {
        STANDARD.encode(&self.bytes)
    }

    /// Returns the id of the sender's signing request.
    pub(crate) const fn request_id(&self) -> RequestId {
        match self.role {
            Role::Redeem => RequestId::Redeem,
            Role::Refund => RequestId::Refund,
            _ => RequestId::Transaction,
        }
    }

    /// Returns whether a command splits the gas coin.
    pub(crate) fn splits_gas(&self) -> bool {
        let TransactionKind::ProgrammableTransaction(transaction) = self.kind.as_ref() else { return false };
        gas::split_from_gas(&transaction.inputs, &transaction.commands).is_some()
    }
}

/// Encodes a transaction of version 1: kind, sender, gas and expiration. BCS concatenates members, and prefixes the items of a sequence
/// with its length.
fn encode(kind_bytes: &[u8], sender: Address, gas: &GasPayment, expiration: &TransactionExpiration) -> Result<Vec<u8>, Refusal> {
    /// Bytes of an object id, a version, and a digest with its length.
    const REFERENCE: usize = 32 + 8 + 33;
    let coins = gas.objects.len().saturating_mul(REFERENCE);
    let mut bytes = Vec::with_capacity(kind_bytes.len().saturating_add(coins).saturating_add(96));
    bytes.push(0);
    bytes.extend_from_slice(kind_bytes);
    bytes.extend_from_slice(sender.as_bytes());
    push_length(&mut bytes, gas.objects.len());
    for coin in &gas.objects {
        bytes.extend_from_slice(coin.object_id().as_bytes());
        bytes.extend_from_slice(&coin.version().to_le_bytes());
        bytes.extend(byte_vector(coin.digest().as_bytes()));
    }
    bytes.extend_from_slice(gas.owner.as_bytes());
    bytes.extend_from_slice(&gas.price.to_le_bytes());
    bytes.extend_from_slice(&gas.budget.to_le_bytes());
    match expiration {
        TransactionExpiration::None => bytes.push(0),
        TransactionExpiration::Epoch(epoch) => {
            bytes.push(1);
            bytes.extend_from_slice(&epoch.to_le_bytes());
        }
        other => bcs::serialize_into(&mut bytes, other).map_err(|_| Refusal::new(Code::Internal, ""))?,
    }
    Ok(bytes)
}

/// Returns the digest of the transaction with these BCS bytes.
pub(crate) fn digest_of(bytes: &[u8]) -> Digest {
    blake2b(DIGEST_SALT, bytes)
}

fn blake2b(prefix: &[u8], bytes: &[u8]) -> Digest {
    let mut hasher = Hasher::new();
    hasher.update(prefix);
    hasher.update(bytes);
    hasher.finalize()
}

/// Returns the role of a signed transaction in an order.
///
/// The wallet may choose the gas and the expiration. The sender and the kind must be the order's, and simple signatures of the sender, and
/// of the sponsor if another account pays for gas, must be valid. Of multisig, zkLogin and passkey signatures only the address is checked, with
/// a warning, because only the network can prove them.
pub(crate) fn matches(deposit: &Deposit, signed: &SignedTransaction, warnings: &mut Warnings) -> Result<Role, Refusal> {
    let differs = |location: String| Refusal::new(Code::TransactionMismatch, location);
    let transaction = &signed.transaction;
    if transaction.sender != deposit.sender {
        let refusal = differs("/sender".to_owned()).with_expected(deposit.sender.to_string());
        return Err(refusal.with_actual(transaction.sender.to_string()));
    }
    if transaction.kind != *deposit.kind {
        return Err(differs(difference(deposit, &transaction.kind)));
    }
    let bytes = kind::encode_transaction(transaction).ok_or_else(|| differs("/kind".to_owned()))?;
    let digest = blake2b(&INTENT, &bytes).into_inner();
    let payer = Some(transaction.gas_payment.owner).filter(|owner| *owner != deposit.sender);
    for signer in std::iter::once(deposit.sender).chain(payer) {
        let is_by = |signature: &&UserSignature| signature.derive_addresses().any(|address| address == signer);
        let Some((index, signature)) = signed.signatures.iter().enumerate().find(|(_, signature)| is_by(signature)) else {
            return Err(differs("/signatures".to_owned()).with_expected(format!("a signature of {signer}")));
        };
        if !signature::is_sound(signature, &digest, warnings) {
            return Err(differs(format!("/signatures/{index}")).with_reason("the signature is not over this transaction"));
        }
    }
    Ok(Role::Initiate)
}

/// Returns the location of the first input or command that differs from the deposit's.
fn difference(deposit: &Deposit, kind: &TransactionKind) -> String {
    let (Some(expected), TransactionKind::ProgrammableTransaction(actual)) = (deposit.programmable(), kind) else {
        return "/kind".to_owned();
    };
    let inputs = expected.inputs.iter().zip(&actual.inputs).position(|(expected, actual)| expected != actual);
    let commands = || expected.commands.iter().zip(&actual.commands).position(|(expected, actual)| expected != actual);
    match inputs {
        Some(index) => format!("/kind/inputs/{index}"),
        None if expected.inputs.len() != actual.inputs.len() => "/kind/inputs".to_owned(),
        None => commands().map_or_else(|| "/kind/commands".to_owned(), |index| format!("/kind/commands/{index}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::balance::ValidDuring;
    use sui_sdk_types::{ObjectReference, ProgrammableTransaction};

    #[test]
    fn the_bytes_are_those_of_the_general_encoder() {
        let kind = TransactionKind::ProgrammableTransaction(ProgrammableTransaction { inputs: Vec::new(), commands: Vec::new() });
        let kind_bytes = bcs::to_bytes(&kind).unwrap();
        let kind = Arc::new(kind);
        let coin = |id: u8| ObjectReference::new(Address::new([id; 32]), u64::from(id) << 40, Digest::new([id >> 1; 32]));
        let sender = Address::new([9; 32]);
        for coins in [1, 2, 127, 128, 255] {
            let gas = TxContext::new(1_000, u64::MAX, (0..coins).map(coin).collect());
            let during = ValidDuring::from_epoch(u64::MAX - 1, Digest::new([5; 32]), u32::MAX);
            let balance = TxContext::from_balance(1_000, u64::MAX, during);
            let [sponsored, expiring] = [gas.clone().with_sponsor(Address::new([8; 32])), gas.clone().with_expiration_epoch(812)];
            for gas in [gas.clone(), sponsored, expiring, gas.with_valid_during(during), balance] {
                let unsigned = Unsigned::new(Role::Initiate, Arc::clone(&kind), &kind_bytes, sender, &gas, None).unwrap();
                let transaction = unsigned.transaction();
                assert_eq!(unsigned.bytes, bcs::to_bytes(&transaction).unwrap());
                assert_eq!((unsigned.digest(), unsigned.signing_digest), (transaction.digest(), transaction.signing_digest()));
            }
        }
    }
}
