//! Unsigned transactions: the verified messages, with the wallet's own blockhash and priority fee where it gives them.

use std::sync::Arc;

use countersign_core::{Code, FundingPath, Refusal, RequestId, Role, TypedValue, U256};
use sha2::{Digest, Sha256};
use solana_hash::Hash;
use solana_signature::Signature;
use solana_transaction::versioned::VersionedTransaction;

use crate::address::Address;
use crate::encoding;
use crate::fees::{ComputeBudget, PriorityFee};
use crate::message::Decoded;
use crate::verify::{Deposit, ProposedTransaction};
use crate::wire::MAX_BYTES;

/// What the network takes for each signature.
const LAMPORTS_PER_SIGNATURE: u64 = 5_000;

/// What the transaction that the owner sends needs from the wallet: nothing, unless the wallet has something of its own.
///
/// A transaction that came with the owner's own signature stays as it is: neither blockhash nor fee are changed.
///
/// ```
/// use countersign_solana::{PriorityFee, SelfFunded};
/// use countersign_solana::solana_hash::Hash;
///
/// let path = SelfFunded::new().with_blockhash(Hash::new_from_array([7; 32])).with_priority_fee(PriorityFee::new(50_000));
/// assert!(path.recent_blockhash.is_some());
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct SelfFunded {
    /// A recent blockhash in place of the service's.
    pub recent_blockhash: Option<Hash>,
    /// A priority fee in place of the service's, within the policy.
    pub priority_fee: Option<PriorityFee>,
    /// The last block height at which the blockhash is valid.
    pub last_valid_block_height: Option<u64>,
    /// The block height now.
    pub block_height: Option<u64>,
}

impl SelfFunded {
    /// Creates the context of a transaction that stays as it was verified.
    #[must_use]
    pub const fn new() -> Self {
        Self { recent_blockhash: None, priority_fee: None, last_valid_block_height: None, block_height: None }
    }

    /// Sets a recent blockhash.
    #[must_use]
    pub const fn with_blockhash(mut self, recent_blockhash: Hash) -> Self {
        self.recent_blockhash = Some(recent_blockhash);
        self
    }

    /// Sets a priority fee.
    #[must_use]
    pub const fn with_priority_fee(mut self, fee: PriorityFee) -> Self {
        self.priority_fee = Some(fee);
        self
    }

    /// Sets the block height now and the last one at which the blockhash is valid. An expired blockhash is refused.
    #[must_use]
    pub const fn with_block_heights(mut self, now: u64, last_valid: u64) -> Self {
        self.block_height = Some(now);
        self.last_valid_block_height = Some(last_valid);
        self
    }

    /// Refuses a blockhash that has expired.
    pub(crate) fn check(&self) -> Result<(), Refusal> {
        if let (Some(now), Some(last)) = (self.block_height, self.last_valid_block_height)
            && now > last
        {
            return Err(Refusal::new(Code::BlockhashExpired, "/last_valid_block_height")
                .with_expected(TypedValue::AtLeast(U256::from(now)))
                .with_actual(last));
        }
        Ok(())
    }
}

impl From<SelfFunded> for FundingPath<SelfFunded> {
    fn from(path: SelfFunded) -> Self {
        Self::SelfFunded(path)
    }
}

/// A transaction with the bytes that are signed, and the signature once it is there.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct TransactionPayload {
    /// Shared with the verified order unless something had to change.
    decoded: Arc<Decoded>,
    /// Index of the signer's slot.
    slot: usize,
    pub(crate) signature: Option<Signature>,
}

impl TransactionPayload {
    pub(crate) fn new(decoded: Arc<Decoded>, slot: usize) -> Self {
        let mut decoded = decoded;
        let empty = Signature::default();
        if decoded.transaction.signatures.get(slot).is_some_and(|signature| *signature != empty)
            && let Some(signature) = Arc::make_mut(&mut decoded).transaction.signatures.get_mut(slot)
        {
            *signature = empty;
        }
        Self { decoded, slot, signature: None }
    }

    /// Returns the transaction: the signer's slot is zero, other slots are as they came.
    #[must_use]
    pub fn transaction(&self) -> &VersionedTransaction {
        &self.decoded.transaction
    }

    /// Returns the message's bytes, which are signed.
    #[must_use]
    pub fn message(&self) -> &[u8] {
        &self.decoded.message
    }

    /// Returns the required signers, in order.
    #[must_use]
    pub fn signers(&self) -> &[Address] {
        let message = &self.transaction().message;
        message.static_account_keys().get(..usize::from(message.header().num_required_signatures)).unwrap_or_default()
    }

    /// Returns the SHA-256 of the message: Ed25519 signs the message itself, but a person compares something short.
    #[must_use]
    pub fn message_hash(&self) -> Hash {
        Hash::new_from_array(Sha256::digest(self.message()).into())
    }

    /// Returns the most lamports that the fee payer pays to the network: 5,000 for each signature, and the priority fee. Rent is not
    /// among them.
    #[must_use]
    pub fn max_fee(&self) -> u64 {
        let signatures = u64::from(self.transaction().message.header().num_required_signatures).saturating_mul(LAMPORTS_PER_SIGNATURE);
        let priority_fee = ComputeBudget::from_message(&self.transaction().message).priority_fee();
        signatures.saturating_add(u64::try_from(priority_fee).unwrap_or(u64::MAX))
    }

    /// Returns the signatures with the signer's among them; `None` while it is missing.
    fn signatures(&self) -> Option<Vec<Signature>> {
        let own = self.signature?;
        let slots = self.transaction().signatures.iter().enumerate();
        Some(slots.map(|(index, signature)| if index == self.slot { own } else { *signature }).collect())
    }

    /// Returns the transaction with the signature; `None` while it is missing.
    #[must_use]
    pub fn signed(&self) -> Option<VersionedTransaction> {
        Some(VersionedTransaction { signatures: self.signatures()?, message: self.transaction().message.clone() })
    }

    /// Returns the bytes of the signed transaction as nodes take them; `None` while the signature is missing.
    #[must_use]
    pub fn signed_bytes(&self) -> Option<Vec<u8>> {
        Some(encoding::write(&self.signatures()?, self.message()))
    }

    /// Returns the transaction's id, its first signature; `None` while that is missing.
    #[must_use]
    pub fn id(&self) -> Option<Signature> {
        self.signatures()?.first().copied().filter(|id| *id != Signature::default())
    }
}

/// Returns the bytes of a transaction as nodes take them. Signatures that are not there yet are 64 zeros.
#[must_use]
pub fn to_bytes(signatures: &[Signature], message: &[u8]) -> Vec<u8> {
    encoding::write(signatures, message)
}

/// Everything that one account is asked to sign: of an order its owner, of a recovery the fee payer.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Unsigned {
    /// Who signs.
    pub signer: Address,
    /// What `transaction` does.
    pub role: Role,
    /// The transaction that the signer sends.
    pub transaction: Option<TransactionPayload>,
    /// The transaction that the service sends.
    pub gasless: Option<TransactionPayload>,
    /// What the wallet chose for `transaction`.
    pub(crate) chosen: SelfFunded,
    /// Whether the message came with the owner's signature, so that nothing of it was changed.
    pub(crate) is_fixed: bool,
}

impl Unsigned {
    /// Takes a transaction that recovers funds, with what the wallet has chosen for it.
    pub(crate) fn recovery(role: Role, signer: Address, message: solana_message::VersionedMessage, chosen: SelfFunded) -> Self {
        let signatures = vec![Signature::default(); usize::from(message.header().num_required_signatures)];
        let decoded = Decoded { message: message.serialize(), transaction: VersionedTransaction { signatures, message } };
        // The fee payer is the first key, and nobody else signs.
        let transaction = Some(TransactionPayload::new(Arc::new(decoded), 0));
        Self { signer, role, transaction, gasless: None, chosen, is_fixed: false }
    }

    /// Returns the request that the signature of `transaction` is asked for under.
    const fn request_id(&self) -> RequestId {
        match self.role {
            Role::Redeem => RequestId::Redeem,
            Role::Refund => RequestId::Refund,
            _ => RequestId::Transaction,
        }
    }

    /// Returns every payload with its request.
    pub(crate) fn payloads(&self) -> impl Iterator<Item = (RequestId, &TransactionPayload)> {
        let transaction = self.transaction.iter().map(|payload| (self.request_id(), payload));
        transaction.chain(self.gasless.iter().map(|payload| (RequestId::Gasless, payload)))
    }

    /// Returns the payload of a request.
    pub(crate) fn payload_mut(&mut self, id: RequestId) -> Option<&mut TransactionPayload> {
        match id {
            RequestId::Gasless => self.gasless.as_mut(),
            id if id == self.request_id() => self.transaction.as_mut(),
            _ => None,
        }
    }
}

pub(crate) fn prepare(deposit: &Deposit, path: &FundingPath<SelfFunded>) -> Result<Unsigned, Refusal> {
    let chosen = path.self_funded();
    let gasless = path.gasless(deposit.gasless.as_ref().map(ProposedTransaction::payload).as_ref())?;
    let transaction = chosen.map(|chosen| own_transaction(deposit, chosen)).transpose()?;
    let chosen = chosen.cloned().unwrap_or_default();
    let is_fixed = deposit.transaction.owner_signed;
    Ok(Unsigned { signer: deposit.owner, role: Role::Initiate, transaction, gasless, chosen, is_fixed })
}

/// Returns the transaction that the owner sends, with what the wallet chose for it.
fn own_transaction(deposit: &Deposit, chosen: &SelfFunded) -> Result<TransactionPayload, Refusal> {
    chosen.check()?;
    let proposed = &deposit.transaction;
    if let Some(fee) = chosen.priority_fee {
        deposit.fee_limits.check_own(fee)?;
    }
    // A message that the owner has signed stays as it is: any change would void the signature. Bytes in the slot that are not
    // a signature do not count, or garbage could hold the wallet to a blockhash of the service's choice.
    if proposed.owner_signed || (chosen.recent_blockhash.is_none() && chosen.priority_fee.is_none()) {
        return Ok(proposed.payload());
    }
    let mut decoded = Decoded::clone(&proposed.decoded);
    if let Some(blockhash) = chosen.recent_blockhash {
        decoded.transaction.message.set_recent_blockhash(blockhash);
    }
    let too_large = || {
        let reason = "the transaction has no room for instructions that set the priority fee";
        Refusal::new(Code::TransactionTooLarge, "/priority_fee").with_reason(reason)
    };
    if let Some(fee) = chosen.priority_fee {
        fee.set(&mut decoded.transaction.message).ok_or_else(too_large)?;
    }
    decoded.message = decoded.transaction.message.serialize();
    let size = decoded.bytes().len();
    if size > MAX_BYTES {
        return Err(too_large().with_expected(format!("at most {MAX_BYTES} bytes")).with_actual(size));
    }
    Ok(TransactionPayload::new(Arc::new(decoded), proposed.owner_slot))
}
