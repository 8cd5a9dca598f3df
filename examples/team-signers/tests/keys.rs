//! What key services do with a published key.

use k256::ecdsa::signature::hazmat::PrehashSigner;
use k256::ecdsa::{RecoveryId, Signature, SigningKey};

/// A key of secp256k1 in a key service.
#[derive(Clone)]
pub struct Service {
    key: SigningKey,
    /// Whether s is high, as a key service returns it half of the time.
    pub high_s: bool,
}

impl Service {
    /// Holds a key, in hex.
    pub fn new(key: &str, high_s: bool) -> Self {
        Self { key: SigningKey::from_slice(&bytes(key)).unwrap(), high_s }
    }

    /// Holds a key that no order has.
    pub fn of_another() -> Self {
        Self::new(&"46".repeat(32), false)
    }

    pub fn public_key(&self) -> &k256::ecdsa::VerifyingKey {
        self.key.verifying_key()
    }

    /// Signs 32 bytes. Returns the signature, and the recovery bit that belongs to it.
    pub fn sign(&self, digest: &[u8]) -> (Signature, RecoveryId) {
        let (signature, id): (Signature, RecoveryId) = self.key.sign_prehash(digest).unwrap();
        if !self.high_s {
            return (signature, id);
        }
        let (r, s) = signature.split_scalars();
        (Signature::from_scalars(r, -*s).unwrap(), RecoveryId::new(!id.is_y_odd(), id.is_x_reduced()))
    }

    /// Signs 32 bytes, in DER.
    pub fn sign_der(&self, digest: &[u8]) -> Vec<u8> {
        self.sign(digest).0.to_der().as_bytes().to_vec()
    }
}

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold("0x".to_owned(), |text, byte| format!("{text}{byte:02x}"))
}

/// Reads hex digits, with or without `0x`.
pub fn bytes(hex: &str) -> Vec<u8> {
    let digits = hex.strip_prefix("0x").unwrap_or(hex);
    (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap()).collect()
}
