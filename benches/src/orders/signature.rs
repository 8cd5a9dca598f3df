//! A single signature, made with the library that the ratios refer to.

use std::hint::black_box;
use std::time::{Duration, Instant};

use countersign::Family;
use ed25519_dalek::Signer;
use starknet_crypto::Felt;

use super::{Artefacts, Contender};
use crate::families;

/// The number of signatures per pass. Reading the clock for each signature would distort the result.
const COUNT: usize = 100;

/// Signs one message.
pub(crate) type Sample = Box<dyn Fn()>;

pub(crate) fn secp256k1() -> Sample {
    let key = k256::ecdsa::SigningKey::from_slice(&[7; 32]).expect("a key");
    Box::new(move || _ = black_box(key.sign_prehash_recoverable(black_box(&[9; 32])).expect("a signature")))
}

pub(crate) fn ed25519() -> Sample {
    let key = ed25519_dalek::SigningKey::from_bytes(&[7; 32]);
    Box::new(move || _ = black_box(key.sign(black_box(&[9; 32]))))
}

pub(crate) fn stark() -> Sample {
    let (key, hash) = (Felt::from(7_u64), Felt::from(9_u64));
    Box::new(move || {
        let nonce = starknet_crypto::rfc6979_generate_k(black_box(&hash), &key, None);
        black_box(starknet_crypto::sign(&key, &hash, &nonce).expect("a signature"));
    })
}

pub(super) struct Signature(Sample);

impl Signature {
    pub(super) fn new(family: Family) -> Self {
        Self((families::of(family).signature)())
    }
}

impl Contender for Signature {
    fn artefacts(&self) -> Vec<Artefacts> {
        Vec::new()
    }

    fn pass(&self) -> Duration {
        let started = Instant::now();
        (0..COUNT).for_each(|_| self.0());
        started.elapsed() / COUNT as u32
    }
}
