//! libsecp256k1, in C, through `bitcoin`.

use std::sync::LazyLock;

use bitcoin::NetworkKind;
use bitcoin::bip32::{ChildNumber, Xpriv};
use bitcoin::secp256k1::{Secp256k1, SignOnly};
use zeroize::Zeroizing;

use crate::rescue::DeriveError;

/// The context, which is created once.
static SECP: LazyLock<Secp256k1<SignOnly>> = LazyLock::new(Secp256k1::signing_only);

/// A private key of the tree, which is wiped on drop. Every child is hardened, so the chain code is useless without it.
pub(in crate::rescue) struct Node(Xpriv);

impl Node {
    /// Derives the root of the tree from a seed of 64 bytes; 16 and 32 are possible too.
    pub(in crate::rescue) fn master(seed: &[u8]) -> Result<Self, DeriveError> {
        Xpriv::new_master(NetworkKind::Main, seed).map(Self).map_err(|_| DeriveError)
    }

    /// Derives the hardened child with a number.
    pub(in crate::rescue) fn child(&self, number: u32) -> Result<Self, DeriveError> {
        let hardened = ChildNumber::from_hardened_idx(number).map_err(|_| DeriveError)?;
        self.0.derive_priv(&SECP, &[hardened]).map(Self).map_err(|_| DeriveError)
    }

    /// Returns the private key, 32 bytes big-endian.
    pub(in crate::rescue) fn secret_key(&self) -> Zeroizing<[u8; 32]> {
        Zeroizing::new(self.0.private_key.secret_bytes())
    }

    /// Returns the x coordinate of the public key (BIP-340), 32 bytes big-endian.
    pub(in crate::rescue) fn public_key(&self) -> [u8; 32] {
        let mut pair = self.0.to_keypair(&SECP);
        let public_key = pair.x_only_public_key().0.serialize();
        pair.non_secure_erase();
        public_key
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.0.private_key.non_secure_erase();
    }
}
