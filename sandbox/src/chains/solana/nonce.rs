//! Durable nonces: what an account stores for a message to have in place of a blockhash.

use std::collections::HashSet;

use sha2::{Digest, Sha256};
use solana_account::{AccountSharedData, ReadableAccount, WritableAccount};
use solana_address::Address;
use solana_message::VersionedMessage;

use super::htlc::SYSTEM;

/// The system program's instruction that replaces the nonce of its first account.
const ADVANCE: [u8; 4] = [4, 0, 0, 0];
/// The beginning of a usable account: the current version, and that it is initialized. The authority follows.
const INITIALIZED: [u8; 8] = [1, 0, 0, 0, 1, 0, 0, 0];
/// The offset of the nonce.
const VALUE: usize = 40;

/// Returns the account whose nonce a message advances first, as it must to use it.
pub(super) fn account_of(message: &VersionedMessage) -> Option<Address> {
    let (keys, first) = (message.static_account_keys(), message.instructions().first()?);
    let key = |index: u8| keys.get(usize::from(index)).copied();
    let advances = key(first.program_id_index) == Some(SYSTEM) && first.data.starts_with(&ADVANCE);
    let index = *first.accounts.first().filter(|_| advances)?;
    key(index).filter(|_| message.is_maybe_writable_with_reserved_addresses(usize::from(index), None::<&HashSet<Address>>))
}

/// Returns whether that account stores what the message has in place of a blockhash, for an authority that signs.
pub(super) fn is_stored(account: &AccountSharedData, message: &VersionedMessage) -> bool {
    let keys = message.static_account_keys().iter().enumerate();
    let signers = keys.filter(|(index, _)| message.is_signer(*index)).map(|(_, key)| key.to_bytes());
    let value = message.recent_blockhash().to_bytes();
    let is_of = |authority: [u8; 32]| account.data().starts_with(&[INITIALIZED.as_slice(), &authority, &value].concat());
    *account.owner() == SYSTEM && signers.into_iter().any(is_of)
}

/// Replaces the nonce as the system program does.
pub(super) fn advance(account: &mut AccountSharedData) {
    let data = account.data_as_mut_slice();
    let Some(value) = data.get_mut(VALUE..).and_then(|rest| rest.first_chunk_mut::<32>()) else { return };
    *value = Sha256::new().chain_update("DURABLE_NONCE").chain_update(*value).finalize().into();
}
