//! Unsigned transactions: the verified messages, with the wallet's blockhash where it gives one.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use countersign_core::json::Node;
use countersign_core::{Code, Refusal};
use serde::ser::{Serialize, SerializeMap, Serializer};
use sha2::{Digest, Sha256};
use solana_hash::Hash;
use solana_signature::Signature;
use solana_transaction::versioned::VersionedTransaction;

use crate::address::Address;
use crate::message::Decoded;
use crate::verify::{Deposit, Proposal};

/// What only the wallet knows.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Wallet {
    /// A recent blockhash of its own, for the ordinary transaction; the gasless one keeps the service's.
    pub recent_blockhash: Option<Hash>,
    /// The last block height at which the ordinary transaction's blockhash is valid.
    pub last_valid_block_height: Option<u64>,
    /// The block height now.
    pub block_height: Option<u64>,
}

impl Wallet {
    /// A wallet context with a blockhash of its own, or none.
    #[must_use]
    pub const fn new(recent_blockhash: Option<Hash>) -> Self {
        Self { recent_blockhash, last_valid_block_height: None, block_height: None }
    }

    /// A blockhash that has run out is not worth a signature.
    fn check(&self) -> Result<(), Refusal> {
        if let (Some(now), Some(last)) = (self.block_height, self.last_valid_block_height)
            && now > last
        {
            return Err(Refusal::new(Code::BlockhashExpired, "/wallet/last_valid_block_height")
                .with_expected(format!("at least {now}"))
                .with_actual(last));
        }
        Ok(())
    }

    pub(crate) fn read(node: Node<'_, '_>) -> Result<Self, Refusal> {
        let members = node.object()?;
        let blockhash = |node: Node<'_, '_>| {
            let bytes = countersign_core::chains::address::parse_solana(node.text()?).map_err(|_| node.refuse(Code::BlockhashMalformed))?;
            Ok(Hash::new_from_array(bytes))
        };
        let height = |key| members.get(key).map(|node| node.integer()).transpose();
        Ok(Self {
            recent_blockhash: members.get("recent_blockhash").map(blockhash).transpose()?,
            last_valid_block_height: height("last_valid_block_height")?,
            block_height: height("block_height")?,
        })
    }
}

/// A transaction with the bytes that are signed.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Payload {
    /// Shared with the proposal that was verified, unless something had to change.
    decoded: Arc<Decoded>,
    /// Index of the owner's slot.
    pub(crate) owner_slot: usize,
}

impl Payload {
    /// The transaction: the owner's slot is zero, other slots are as they came.
    #[must_use]
    pub fn transaction(&self) -> &VersionedTransaction {
        &self.decoded.transaction
    }

    /// The message's bytes: what is signed.
    #[must_use]
    pub fn message(&self) -> &[u8] {
        &self.decoded.message
    }

    /// The required signers, in order.
    #[must_use]
    pub fn signers(&self) -> &[Address] {
        let message = &self.transaction().message;
        message.static_account_keys().get(..usize::from(message.header().num_required_signatures)).unwrap_or_default()
    }

    /// SHA-256 of the message: Ed25519 signs the message itself, but a person compares something short.
    #[must_use]
    pub fn message_hash(&self) -> Hash {
        Hash::new_from_array(Sha256::digest(self.message()).into())
    }

    fn of(proposal: &Proposal, blockhash: Option<Hash>) -> Self {
        let (mut decoded, owner_slot) = (Arc::clone(&proposal.decoded), proposal.owner_slot);
        if let Some(blockhash) = blockhash {
            let changed = Arc::make_mut(&mut decoded);
            changed.transaction.message.set_recent_blockhash(blockhash);
            changed.message = changed.transaction.message.serialize();
        }
        let empty = Signature::default();
        if decoded.transaction.signatures.get(owner_slot) != Some(&empty)
            && let Some(slot) = Arc::make_mut(&mut decoded).transaction.signatures.get_mut(owner_slot)
        {
            *slot = empty;
        }
        Self { decoded, owner_slot }
    }
}

/// Everything to sign for one order.
#[derive(Debug)]
#[non_exhaustive]
pub struct Unsigned {
    /// Who signs both transactions.
    pub owner: Address,
    /// The transaction that the owner sends.
    pub transaction: Payload,
    /// The transaction that the service sends.
    pub gasless: Option<Payload>,
    /// What the wallet said about the ordinary transaction's blockhash.
    pub(crate) wallet: Wallet,
    /// Whether that blockhash is the wallet's own.
    pub(crate) own_blockhash: bool,
}

pub(crate) fn prepare(deposit: &Deposit, wallet: &Wallet) -> Result<Unsigned, Refusal> {
    wallet.check()?;
    // A message that somebody has signed stays as it is: another blockhash would void the signature. Bytes in the owner's
    // slot that are no signature do not count, or garbage could hold the wallet to a blockhash of the service's choice.
    let blockhash = wallet.recent_blockhash.filter(|_| !deposit.transaction.owner_signed);
    Ok(Unsigned {
        owner: deposit.owner,
        transaction: Payload::of(&deposit.transaction, blockhash),
        gasless: deposit.gasless.as_ref().map(|proposal| Payload::of(proposal, None)),
        wallet: wallet.clone(),
        own_blockhash: blockhash.is_some(),
    })
}

/// The message and its signers, as the artefacts carry them.
pub(crate) fn serialize_payload<M: SerializeMap>(map: &mut M, payload: &Payload) -> Result<(), M::Error> {
    map.serialize_entry("message", &STANDARD.encode(payload.message()))?;
    let signers: Vec<_> = payload.signers().iter().map(ToString::to_string).collect();
    map.serialize_entry("signers", &signers)
}

impl Serialize for Payload {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(2))?;
        serialize_payload(&mut map, self)?;
        map.end()
    }
}

impl Serialize for Unsigned {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(2))?;
        map.serialize_entry("transaction", &self.transaction)?;
        map.serialize_entry("gasless", &self.gasless)?;
        map.end()
    }
}
