//! Accounts whose key anyone can derive: for these proofs only, never to be funded on a real chain.

use std::fmt;

use alloy_consensus::{SignableTransaction, Signed, TxEnvelope};
use alloy_eips::Encodable2718;
use alloy_primitives::{Address, B256, Signature, keccak256};
use k256::ecdsa::SigningKey;

/// An externally owned account with a key made from a stated text.
#[derive(Clone)]
pub struct Account {
    key: SigningKey,
    address: Address,
}

impl Account {
    /// Derives the account: the secret scalar is `keccak256(phrase)`, big-endian.
    ///
    /// # Panics
    ///
    /// If that hash is zero or not below the group order, which no known text brings about (odds of 2^-128).
    #[must_use]
    #[expect(clippy::expect_used, reason = "a documented panic; the input is a literal of a test")]
    pub fn from_phrase(phrase: &str) -> Self {
        let key = SigningKey::from_slice(keccak256(phrase).as_slice()).expect("the hash of the phrase is a secret scalar");
        let address = Address::from_private_key(&key);
        Self { key, address }
    }

    /// The account of a secret key; `None` if the bytes are not one.
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

    /// Returns the key, for code that signs by itself.
    #[must_use]
    pub const fn key(&self) -> &SigningKey {
        &self.key
    }

    /// Returns the 32 bytes of the key, for code that takes a key in that form.
    #[must_use]
    pub fn secret(&self) -> B256 {
        B256::from_slice(&self.key.to_bytes())
    }

    /// Signs a 32-byte digest: RFC 6979 nonce, low `s`. [`Signature::as_bytes`] gives `r | s | v` with `v` 27 or 28.
    ///
    /// # Panics
    ///
    /// If RFC 6979 yields an unusable nonce (odds of 2^-128).
    #[must_use]
    #[expect(clippy::expect_used, reason = "a documented panic, out of reach for every input")]
    pub fn sign_digest(&self, digest: B256) -> Signature {
        let signed = self.key.sign_prehash_recoverable(digest.as_slice()).expect("a 32-byte digest can be signed");
        Signature::from(signed)
    }

    /// Signs a transaction and encodes it as it would be broadcast.
    ///
    /// # Panics
    ///
    /// As [`Account::sign_digest`].
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
