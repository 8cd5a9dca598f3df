//! Accounts with keys that anyone can derive. They are only for these proofs and must never be funded on a real
//! chain.

use std::fmt;

use alloy_consensus::{SignableTransaction, Signed, TxEnvelope};
use alloy_eips::Encodable2718;
use alloy_primitives::{Address, B256, Signature, keccak256};
use k256::ecdsa::SigningKey;

/// An externally owned account whose key is derived from a given text.
#[derive(Clone)]
pub struct Account {
    key: SigningKey,
    address: Address,
}

impl Account {
    /// Derives an account. Its secret scalar is `keccak256(phrase)`, big-endian.
    ///
    /// # Panics
    ///
    /// Panics if that hash is zero or not below the group order, which happens for no known text (odds of 2^-128).
    #[must_use]
    #[expect(clippy::expect_used, reason = "a documented panic; the input is a literal of a test")]
    pub fn from_phrase(phrase: &str) -> Self {
        let key = SigningKey::from_slice(keccak256(phrase).as_slice()).expect("the hash of the phrase is a secret scalar");
        let address = Address::from_private_key(&key);
        Self { key, address }
    }

    /// Returns the account of a secret key, or `None` if the bytes are not a valid key.
    #[must_use]
    pub fn from_secret(secret: &[u8; 32]) -> Option<Self> {
        let key = SigningKey::from_slice(secret).ok()?;
        let address = Address::from_private_key(&key);
        Some(Self { key, address })
    }

    /// Returns the account's address.
    #[must_use]
    pub const fn address(&self) -> Address {
        self.address
    }

    /// Returns the key, for code that signs itself.
    #[must_use]
    pub const fn key(&self) -> &SigningKey {
        &self.key
    }

    /// Returns the key's 32 bytes, for code that needs them.
    #[must_use]
    pub fn secret(&self) -> B256 {
        B256::from_slice(&self.key.to_bytes())
    }

    /// Signs a 32-byte digest with an RFC 6979 nonce and a low `s`. [`Signature::as_bytes`] returns `r | s | v`,
    /// where `v` is 27 or 28.
    ///
    /// # Panics
    ///
    /// Panics if RFC 6979 yields an unusable nonce (odds of 2^-128).
    #[must_use]
    #[expect(clippy::expect_used, reason = "a documented panic, out of reach for every input")]
    pub fn sign_digest(&self, digest: B256) -> Signature {
        let signed = self.key.sign_prehash_recoverable(digest.as_slice()).expect("a 32-byte digest can be signed");
        Signature::from(signed)
    }

    /// Signs a transaction, and encodes it for broadcasting.
    ///
    /// # Panics
    ///
    /// Panics as [`Account::sign_digest`] does.
    #[must_use]
    pub fn sign_transaction<T>(&self, transaction: T) -> Vec<u8>
    where
        T: SignableTransaction<Signature>,
        TxEnvelope: From<Signed<T>>,
    {
        let signature = self.sign_digest(transaction.signature_hash());
        TxEnvelope::from(transaction.into_signed(signature)).encoded_2718()
    }
}

impl fmt::Debug for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Account").field(&self.address).finish()
    }
}
