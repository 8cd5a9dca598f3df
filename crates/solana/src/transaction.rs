//! Unsigned transactions: the verified messages, with the wallet's own blockhash and priority fee if it sets them.
//!
//! Specification: `docs/spec/solana.md#signing`.

use std::sync::Arc;

use countersign_core::{Code, ContextVersion, FundingPath, Refusal, RequestId, Role, SentBy, TypedValue, U256, serde_text};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use solana_hash::Hash;
use solana_message::VersionedMessage;
use solana_signature::Signature;
use solana_transaction::versioned::VersionedTransaction;

use crate::address::Address;
use crate::deposit::{Deposit, ProposedTransaction};
use crate::encoding;
use crate::fees::{ComputeBudget, NO_UNITS, PriorityFee};
use crate::message::Decoded;
use crate::nonce::DurableNonce;

/// The network's fee for each signature, in lamports.
pub(crate) const LAMPORTS_PER_SIGNATURE: u64 = 5_000;
/// The number of blocks for which a blockhash is valid.
pub(crate) const LIFE: u64 = 150;

/// The wallet's part of the transaction that the owner sends: blockhash or nonce, and priority fee, all of them optional.
///
/// If the service's transaction already has the owner's valid signature, it is not changed, and none of them takes effect.
///
/// ```
/// use countersign::solana::solana_hash::Hash;
/// use countersign::solana::{PriorityFee, TxContext};
///
/// let path = TxContext::new()
///     .with_blockhash(Hash::new_from_array([7; 32]))
///     .with_priority_fee(PriorityFee::new(50_000));
/// assert!(path.recent_blockhash.is_some());
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct TxContext {
    /// The version of the stored form.
    version: ContextVersion,
    /// A recent blockhash. `None` keeps the one that the service proposed. It is valid for 150 blocks, less than a minute: a signer that
    /// takes longer, such as a person with a device, needs a transaction that is prepared anew.
    #[serde(with = "serde_text::option")]
    pub recent_blockhash: Option<Hash>,
    /// A priority fee, within the policy. `None` keeps the one that the service proposed.
    pub priority_fee: Option<PriorityFee>,
    /// The last block height at which the blockhash is valid; `None` if the wallet does not know it.
    pub last_valid_block_height: Option<u64>,
    /// The current block height; `None` if the wallet does not know it.
    pub block_height: Option<u64>,
    /// A nonce account of the signer in place of a blockhash and its heights: the transaction does not expire.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nonce: Option<DurableNonce>,
}

impl TxContext {
    /// Creates a context that keeps the transaction as verified.
    #[must_use]
    pub const fn new() -> Self {
        let version = ContextVersion;
        Self { version, recent_blockhash: None, priority_fee: None, last_valid_block_height: None, block_height: None, nonce: None }
    }

    /// Sets a recent blockhash in place of the service's.
    #[must_use]
    pub const fn with_blockhash(mut self, recent_blockhash: Hash) -> Self {
        self.recent_blockhash = Some(recent_blockhash);
        self
    }

    /// Sets a nonce account of the signer in place of a blockhash.
    #[must_use]
    pub const fn with_nonce(mut self, nonce: DurableNonce) -> Self {
        self.nonce = Some(nonce);
        self
    }

    /// Sets a priority fee in place of the service's.
    #[must_use]
    pub const fn with_priority_fee(mut self, fee: PriorityFee) -> Self {
        self.priority_fee = Some(fee);
        self
    }

    /// Sets the current block height, and the last one at which the blockhash is valid. An expired blockhash is then refused.
    #[must_use]
    pub const fn with_block_heights(mut self, now: u64, last_valid: u64) -> Self {
        self.block_height = Some(now);
        self.last_valid_block_height = Some(last_valid);
        self
    }

    /// Puts the nonce into a message, if the wallet gives one. The first instruction must be the one that advances it.
    pub(crate) fn set_nonce(&self, authority: Address, message: &mut VersionedMessage) -> Result<(), Refusal> {
        let Some(nonce) = self.nonce else { return Ok(()) };
        if message.static_account_keys().contains(&nonce.account) {
            let refusal = Refusal::new(Code::AccountMismatch, NONCE_ACCOUNT).with_actual(nonce.account.to_string());
            return Err(refusal.with_reason("the nonce account is one of the order's accounts"));
        }
        nonce.set(authority, message).ok_or_else(|| too_large(NONCE_ACCOUNT))
    }

    /// Adds the account that sends and pays for a recovery.
    #[must_use]
    pub const fn sent_by(self, sender: Address) -> SentBy<Address, Self> {
        SentBy::new(sender, self)
    }

    /// Refuses a blockhash that has expired, and a limit with which the transaction would fail.
    pub(crate) fn check(&self) -> Result<(), Refusal> {
        let of_blockhash = [
            ("/recent_blockhash", self.recent_blockhash.is_some()),
            ("/last_valid_block_height", self.last_valid_block_height.is_some()),
            ("/block_height", self.block_height.is_some()),
        ];
        if let Some((at, _)) = of_blockhash.into_iter().find(|(_, is_given)| self.nonce.is_some() && *is_given) {
            let refusal = Refusal::new(Code::UnexpectedField, at);
            return Err(refusal.with_reason("the nonce takes the place of the blockhash, and does not expire"));
        }
        if self.priority_fee.is_some_and(|fee| fee.compute_unit_limit == Some(0)) {
            let refusal = Refusal::new(Code::GasLimitTooLow, "/priority_fee/compute_unit_limit");
            return Err(refusal.with_reason(NO_UNITS).with_actual(0_u64));
        }
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

impl From<TxContext> for FundingPath<TxContext> {
    fn from(path: TxContext) -> Self {
        Self::SelfFunded(path)
    }
}

/// A transaction to sign, with the signer's signature once it is attached.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct TransactionPayload {
    /// Shared with the verified order, unless the wallet changed something.
    decoded: Arc<Decoded>,
    /// Index of the signer's signature slot.
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

    /// Returns the transaction. The signer's slot is zero; other slots are as the service sent them.
    #[must_use]
    pub fn transaction(&self) -> &VersionedTransaction {
        &self.decoded.transaction
    }

    /// Returns the bytes of the message, which are signed.
    #[must_use]
    pub fn message(&self) -> &[u8] {
        &self.decoded.message
    }

    /// Returns the required signers, in the order of their slots.
    #[must_use]
    pub fn signers(&self) -> &[Address] {
        let message = &self.transaction().message;
        message.static_account_keys().get(..usize::from(message.header().num_required_signatures)).unwrap_or_default()
    }

    /// Returns the SHA-256 of the message. Ed25519 signs the message itself; the hash is short enough for a person to compare.
    #[must_use]
    pub fn message_hash(&self) -> Hash {
        Hash::new_from_array(Sha256::digest(self.message()).into())
    }

    /// Returns the highest fee that the fee payer pays to the network, in lamports: 5,000 for each signature, and the priority fee.
    /// Rent is not included.
    #[must_use]
    pub fn max_fee(&self) -> u64 {
        max_fee(&self.transaction().message)
    }

    /// Returns all signatures, including the signer's; `None` while that is missing.
    fn signatures(&self) -> Option<Vec<Signature>> {
        let own = self.signature?;
        let slots = self.transaction().signatures.iter().enumerate();
        Some(slots.map(|(index, signature)| if index == self.slot { own } else { *signature }).collect())
    }

    /// Returns the transaction with the signer's signature; `None` while that is missing.
    #[must_use]
    pub fn signed(&self) -> Option<VersionedTransaction> {
        Some(VersionedTransaction { signatures: self.signatures()?, message: self.transaction().message.clone() })
    }

    /// Returns the bytes of the signed transaction, which nodes accept; `None` while the signer's signature is missing.
    #[must_use]
    pub fn signed_bytes(&self) -> Option<Vec<u8>> {
        Some(encoding::write(&self.signatures()?, self.message()))
    }

    /// Returns the transaction's id, which is its first signature; `None` while a signature is missing.
    #[must_use]
    pub fn id(&self) -> Option<Signature> {
        self.signatures()?.first().copied().filter(|id| *id != Signature::default())
    }
}

/// Returns the highest fee of a transaction with this message, in lamports: for its signatures, and the priority fee.
pub(crate) fn max_fee(message: &VersionedMessage) -> u64 {
    let signatures = u64::from(message.header().num_required_signatures).saturating_mul(LAMPORTS_PER_SIGNATURE);
    signatures.saturating_add(u64::try_from(ComputeBudget::from_message(message).priority_fee()).unwrap_or(u64::MAX))
}

/// Returns the bytes of a transaction, which nodes accept. A missing signature is 64 zeros.
#[must_use]
pub fn to_bytes(signatures: &[Signature], message: &[u8]) -> Vec<u8> {
    encoding::write(signatures, message)
}

/// The payloads that one account has to sign: the owner of an order, or the fee payer of a recovery.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Unsigned {
    /// The account that signs.
    pub signer: Address,
    /// What `transaction` does.
    pub role: Role,
    /// The transaction that the signer sends; `None` on the gasless path.
    pub transaction: Option<TransactionPayload>,
    /// The transaction that the service sends; `None` if it is not signed.
    pub gasless: Option<TransactionPayload>,
    /// The wallet's choices for `transaction`.
    pub(crate) chosen: TxContext,
    /// Whether the service's transaction had the owner's signature, so that it was not changed.
    pub(crate) is_fixed: bool,
}

impl Unsigned {
    /// Creates the payload of a transaction that recovers funds, with the wallet's choices for it.
    pub(crate) fn recovery(role: Role, signer: Address, message: VersionedMessage, chosen: TxContext) -> Self {
        let signatures = vec![Signature::default(); usize::from(message.header().num_required_signatures)];
        let decoded = Decoded { message: message.serialize(), transaction: VersionedTransaction { signatures, message } };
        // The fee payer is the first key, and nobody else signs.
        let transaction = Some(TransactionPayload::new(Arc::new(decoded), 0));
        Self { signer, role, transaction, gasless: None, chosen, is_fixed: false }
    }

    /// Returns the id of the signing request of `transaction`.
    const fn request_id(&self) -> RequestId {
        match self.role {
            Role::Redeem => RequestId::Redeem,
            Role::Refund => RequestId::Refund,
            _ => RequestId::Transaction,
        }
    }

    /// Returns every payload with the id of its request.
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

impl ProposedTransaction {
    /// Returns the payload that the owner signs if the wallet changes nothing.
    pub(crate) fn payload(&self) -> TransactionPayload {
        TransactionPayload::new(Arc::clone(&self.decoded), self.owner_slot)
    }
}

pub(crate) fn prepare(deposit: &Deposit, path: &FundingPath<TxContext>) -> Result<Unsigned, Refusal> {
    let chosen = path.self_funded();
    let gasless = path.gasless(deposit.gasless.as_ref().map(ProposedTransaction::payload).as_ref())?;
    let transaction = chosen.map(|chosen| own_transaction(deposit, chosen)).transpose()?;
    let chosen = chosen.cloned().unwrap_or_default();
    let is_fixed = deposit.transaction.owner_signed;
    Ok(Unsigned { signer: deposit.owner, role: Role::Initiate, transaction, gasless, chosen, is_fixed })
}

const PRIORITY_FEE: &str = "/priority_fee";
const NONCE_ACCOUNT: &str = "/nonce_account";

/// Returns the refusal of a choice of the wallet's for which a transaction has no room.
fn too_large(at: &'static str) -> Refusal {
    let reason = match at {
        NONCE_ACCOUNT => "the transaction has no room for the nonce",
        _ => "the transaction has no room for instructions that set the priority fee",
    };
    Refusal::new(Code::TransactionTooLarge, at).with_reason(reason)
}

/// Encodes a message to which a choice of the wallet's was added, and requires that the transaction is within the limits of its version.
fn encode(decoded: &mut Decoded, at: &'static str) -> Result<(), Refusal> {
    decoded.message = decoded.transaction.message.serialize();
    if let Some(limit) = encoding::exceeded(&decoded.transaction.message) {
        return Err(too_large(at).with_expected(limit));
    }
    let (size, max) = (decoded.bytes().len(), encoding::max_bytes(decoded.message.first()));
    if size > max {
        return Err(too_large(at).with_expected(format!("at most {max} bytes")).with_actual(size));
    }
    Ok(())
}

/// Returns the transaction that the owner sends, with the wallet's choices applied.
fn own_transaction(deposit: &Deposit, chosen: &TxContext) -> Result<TransactionPayload, Refusal> {
    chosen.check()?;
    let proposed = &deposit.transaction;
    if let Some(fee) = chosen.priority_fee {
        deposit.fee_limits.check_own(fee)?;
    }
    // A message that the owner has signed is not changed, because any change would invalidate the signature. Bytes in the slot that
    // are not a valid signature do not count. Otherwise garbage could force the wallet to use the service's blockhash.
    if proposed.owner_signed || (chosen.recent_blockhash.is_none() && chosen.priority_fee.is_none() && chosen.nonce.is_none()) {
        return Ok(proposed.payload());
    }
    let mut decoded = Decoded::clone(&proposed.decoded);
    if let Some(blockhash) = chosen.recent_blockhash {
        decoded.transaction.message.set_recent_blockhash(blockhash);
    }
    if let Some(fee) = chosen.priority_fee {
        fee.set(&mut decoded.transaction.message).ok_or_else(|| too_large(PRIORITY_FEE))?;
    }
    encode(&mut decoded, PRIORITY_FEE)?;
    // Last, because the network looks for it in the first instruction.
    if chosen.nonce.is_some() {
        chosen.set_nonce(deposit.owner, &mut decoded.transaction.message)?;
        encode(&mut decoded, NONCE_ACCOUNT)?;
    }
    Ok(TransactionPayload::new(Arc::new(decoded), proposed.owner_slot))
}
