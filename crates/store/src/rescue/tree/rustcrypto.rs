//! RustCrypto's `k256`, through `bip32`. Each item does the same as its namesake in `libsecp256k1`.

use bip32::secp256k1::SecretKey;
use bip32::{ChildNumber, ExtendedPrivateKey, PrivateKey, PublicKey};
use zeroize::{ZeroizeOnDrop, Zeroizing};

use crate::rescue::DeriveError;

pub(in crate::rescue) struct Node(ExtendedPrivateKey<SecretKey>);

/// `SecretKey` wipes itself on drop. The chain code stays, as with the other library.
const _: fn() = || {
    const fn wiped<T: ZeroizeOnDrop>() {}
    wiped::<SecretKey>();
};

impl Node {
    pub(in crate::rescue) fn master(seed: &[u8]) -> Result<Self, DeriveError> {
        ExtendedPrivateKey::new(seed).map(Self).map_err(|_| DeriveError)
    }

    pub(in crate::rescue) fn child(&self, number: u32) -> Result<Self, DeriveError> {
        let hardened = ChildNumber::new(number, true).map_err(|_| DeriveError)?;
        self.0.derive_child(hardened).map(Self).map_err(|_| DeriveError)
    }

    pub(in crate::rescue) fn secret_key(&self) -> Zeroizing<[u8; 32]> {
        Zeroizing::new(self.0.to_bytes())
    }

    pub(in crate::rescue) fn public_key(&self) -> [u8; 32] {
        // The first byte is the sign of y.
        let [_, x_only @ ..] = PublicKey::to_bytes(&PrivateKey::public_key(self.0.private_key()));
        x_only
    }
}
