//! Durable nonces: a transaction that does not expire, for signers that take longer than a blockhash lasts.
//!
//! The owner's nonce account stores a hash, which takes the place of the blockhash. The first instruction of the transaction replaces it by
//! another one, so that the transaction is included once at most. It stays valid until then, or until the owner advances the account.
//!
//! Layout: <https://docs.solanalabs.com/implemented-proposals/durable-tx-nonces>
//!
//! Specification: `docs/spec/solana.md#durable-nonces`.

use countersign_core::serde_text;
use serde::{Deserialize, Serialize};
use solana_hash::Hash;
use solana_message::VersionedMessage;
use solana_message::compiled_instruction::CompiledInstruction;

use crate::address::{Address, SYSTEM_PROGRAM};
use crate::message;
use crate::read::RECENT_BLOCKHASHES;

/// The system program's instruction `AdvanceNonceAccount`.
pub(crate) const ADVANCE_NONCE: [u8; 4] = [4, 0, 0, 0];

/// A nonce account of the account that signs, and the value that it stores.
///
/// The wallet names it. An instruction of the service's that advances a nonce is refused.
///
/// ```
/// use countersign::solana::solana_hash::Hash;
/// use countersign::solana::{Address, DurableNonce, TxContext};
///
/// let nonce = DurableNonce::new(Address::from([7; 32]), Hash::new_from_array([9; 32]));
/// assert!(TxContext::new().with_nonce(nonce).nonce.is_some());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct DurableNonce {
    /// The nonce account. The account that signs must be its authority, which the network checks.
    #[serde(with = "serde_text")]
    pub account: Address,
    /// The value that it stores.
    #[serde(with = "serde_text")]
    pub value: Hash,
}

impl DurableNonce {
    /// Creates a nonce from its account and the value that it stores.
    #[must_use]
    pub const fn new(account: Address, value: Hash) -> Self {
        Self { account, value }
    }

    /// Puts the nonce into a message: in place of the blockhash, and as its first instruction. Returns `None` if there is no room for
    /// further keys, or if the message has no key of the authority. It must not have the nonce account.
    pub(crate) fn set(self, authority: Address, message: &mut VersionedMessage) -> Option<()> {
        message.set_recent_blockhash(self.value);
        let (header, keys, instructions) = match message {
            VersionedMessage::Legacy(message) => (&mut message.header, &mut message.account_keys, &mut message.instructions),
            VersionedMessage::V0(message) => (&mut message.header, &mut message.account_keys, &mut message.instructions),
            VersionedMessage::V1(message) => (&mut message.header, &mut message.account_keys, &mut message.instructions),
        };
        // Keys that are written to and do not sign come before those that are only read. The index of each of the latter grows by one.
        let place = keys.len().checked_sub(usize::from(header.num_readonly_unsigned_accounts))?;
        let moved = u8::try_from(place).ok()?;
        let grow = |index: &mut u8| {
            *index = if *index >= moved { index.checked_add(1)? } else { *index };
            Some(())
        };
        for instruction in instructions.iter_mut() {
            std::iter::once(&mut instruction.program_id_index).chain(&mut instruction.accounts).try_for_each(grow)?;
        }
        keys.insert(place, self.account);
        for needed in [SYSTEM_PROGRAM, RECENT_BLOCKHASHES] {
            if !keys.contains(&needed) {
                header.num_readonly_unsigned_accounts = header.num_readonly_unsigned_accounts.checked_add(1)?;
                keys.push(needed);
            }
        }
        let index = |key: Address| u8::try_from(keys.iter().position(|other| *other == key)?).ok();
        let accounts = vec![moved, index(RECENT_BLOCKHASHES)?, index(authority)?];
        instructions.insert(0, CompiledInstruction { program_id_index: index(SYSTEM_PROGRAM)?, accounts, data: ADVANCE_NONCE.to_vec() });
        Some(())
    }
}

/// The length of a nonce account.
pub(crate) const ACCOUNT_LENGTH: usize = 80;
/// The first bytes of a nonce account that can be used: the current version, which is initialized.
const INITIALIZED: [u8; 8] = [1, 0, 0, 0, 1, 0, 0, 0];

/// A nonce that a message uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UsedNonce {
    pub(crate) nonce: DurableNonce,
    /// The signers of the instruction that advances it. The authority must be one of them.
    signers: Vec<Address>,
}

impl UsedNonce {
    /// Reads the nonce that a message uses in place of a blockhash, by the network's rule: the first instruction advances a nonce, and its
    /// first account is one of the message's own keys and is written to. Returns `None` for any other message, which needs a blockhash.
    ///
    /// Source: `get_durable_nonce` of `solana-svm-transaction`.
    pub(crate) fn of(message: &VersionedMessage) -> Option<Self> {
        let keys = message.static_account_keys();
        let key = |index: &u8| keys.get(usize::from(*index)).copied();
        let first = message.instructions().first()?;
        let advances = key(&first.program_id_index) == Some(SYSTEM_PROGRAM) && first.data.starts_with(&ADVANCE_NONCE);
        let index = first.accounts.first().filter(|index| advances && message::flags(message, usize::from(**index)).1)?;
        let signers = first.accounts.iter().filter(|index| message::flags(message, usize::from(**index)).0).filter_map(key).collect();
        Some(Self { nonce: DurableNonce::new(key(index)?, *message.recent_blockhash()), signers })
    }

    /// Returns whether an account with this owner and data stores the nonce: the version and the state, each in 4 bytes, the authority, and
    /// the nonce. With any other account, the network includes the transaction in no block.
    pub(crate) fn is_stored(&self, owner: &Address, data: &[u8]) -> bool {
        let Some((INITIALIZED, rest)) = data.split_first_chunk().map(|(head, rest)| (*head, rest)) else { return false };
        let Some((authority, rest)) = rest.split_first_chunk::<32>() else { return false };
        let is_authority = self.signers.iter().any(|signer| signer.as_ref() == authority);
        *owner == SYSTEM_PROGRAM && is_authority && rest.starts_with(self.nonce.value.as_ref())
    }
}
