//! Keys and signatures on secp256k1, computed by one of two libraries.
//!
//! Native builds use libsecp256k1, which `bitcoin` depends on. WebAssembly builds use RustCrypto's `k256`, because even the smallest
//! tables of libsecp256k1 would add 33 kB that do not compress (ADR 11). The tests prove that both create the same signatures. With
//! either library, keys and signatures have the types of `bitcoin`.

#[cfg(not(target_family = "wasm"))]
mod libsecp256k1;
#[cfg(any(test, target_family = "wasm"))]
mod rustcrypto;

use std::sync::LazyLock;

use bitcoin::secp256k1::{All, Secp256k1};
#[cfg(not(target_family = "wasm"))]
pub(crate) use libsecp256k1::{KeyPair, output_key, verify_ecdsa, verify_schnorr};
#[cfg(target_family = "wasm")]
pub(crate) use rustcrypto::{KeyPair, output_key, verify_ecdsa, verify_schnorr};

/// The context of libsecp256k1, which is created once. Functions of `bitcoin` take it with either library.
pub(crate) static SECP: LazyLock<Secp256k1<All>> = LazyLock::new(Secp256k1::new);

#[cfg(test)]
mod tests {
    use bitcoin::XOnlyPublicKey;
    use bitcoin::hashes::{Hash, sha256};
    use bitcoin::secp256k1::{PublicKey, ecdsa, schnorr};

    use super::{libsecp256k1, rustcrypto};

    /// The functions of a library, in one order for both.
    struct Library {
        public_key: fn(&[u8; 32]) -> Option<PublicKey>,
        output_key: fn(&XOnlyPublicKey) -> Option<XOnlyPublicKey>,
        sign_schnorr: fn(&[u8; 32], &[u8; 32]) -> Option<schnorr::Signature>,
        sign_key_path: fn(&[u8; 32], &[u8; 32]) -> Option<schnorr::Signature>,
        sign_ecdsa: fn(&[u8; 32], &[u8; 32]) -> Option<ecdsa::Signature>,
        verify_schnorr: fn(&schnorr::Signature, &[u8; 32], &XOnlyPublicKey) -> bool,
        verify_ecdsa: fn(&ecdsa::Signature, &[u8; 32], &PublicKey) -> bool,
    }

    macro_rules! library {
        ($name:ident) => {
            Library {
                public_key: |secret| $name::KeyPair::new(secret).map(|pair| pair.public_key()),
                output_key: |key| $name::output_key(key).map(|key| key.to_x_only_public_key()),
                sign_schnorr: |secret, digest| $name::KeyPair::new(secret)?.sign_schnorr(digest),
                sign_key_path: |secret, digest| $name::KeyPair::new(secret)?.key_path()?.sign_schnorr(digest),
                sign_ecdsa: |secret, digest| $name::KeyPair::new(secret)?.sign_ecdsa(digest),
                verify_schnorr: $name::verify_schnorr,
                verify_ecdsa: $name::verify_ecdsa,
            }
        };
    }

    const LIBRARIES: [Library; 2] = [library!(libsecp256k1), library!(rustcrypto)];

    fn bytes(text: &str) -> [u8; 32] {
        hex::decode(text).unwrap().try_into().unwrap()
    }

    #[test]
    fn keys_and_signatures_are_those_that_others_have_published() {
        // BIP-340, test vector 0.
        let three = bytes("0000000000000000000000000000000000000000000000000000000000000003");
        let signature = "e907831f80848d1069a5371b402410364bdf1c5f8307b0084c55f1ce2dca821525f66a4a85ea8b71e482a74f382d2ce5ebeee8fdb2172f477df4900d310536c0";
        // BIP-341, the first vector of `keyPathSpending`: secret key, the same with the tweak of no script tree, and both public keys.
        let secret = bytes("6b973d88838f27366ed61c9ad6367663045cb456e28335c109e30717ae0c6baa");
        let tweaked = bytes("2405b971772ad26915c8dcdf10f238753a9b837e5f8e6a86fd7c0cce5b7296d9");
        let internal = "d6889cb081036e0faefa3a35157ad71086b123b2b144b649798b494c300a961d";
        let output = "53a1f6e454df1aa2776a2814a721372d6258050de330b3c6d10ee8f4e0dda343";
        // Shared by bitcoinj, Trezor, elliptic and btcd: the key 1 signs a text.
        let (one, text) = (bytes("0000000000000000000000000000000000000000000000000000000000000001"), "Satoshi Nakamoto");
        let compact = "934b1ea10a4b3c1757e2b0c017d0b6143ce3c9a7e6a4a49860d7a6ab210ee3d8\
                       2442ce9d2b916064108014783e923ec36b49743e2ffa1c4496f01a512aafd9e5";
        for library in LIBRARIES {
            assert_eq!((library.sign_schnorr)(&three, &[0; 32]).unwrap().to_string(), signature);
            let (found, _) = (library.public_key)(&secret).unwrap().x_only_public_key();
            assert_eq!(found.to_string(), internal);
            assert_eq!((library.output_key)(&found).unwrap().to_string(), output);
            assert_eq!((library.sign_key_path)(&secret, &[7; 32]).unwrap(), (library.sign_schnorr)(&tweaked, &[7; 32]).unwrap());
            let digest = sha256::Hash::hash(text.as_bytes()).to_byte_array();
            assert_eq!(hex::encode((library.sign_ecdsa)(&one, &digest).unwrap().serialize_compact()), compact);
        }
    }

    #[test]
    fn both_libraries_make_the_same_signatures_and_accept_the_same() {
        let order = bytes("fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141");
        let mut below = order;
        below[31] -= 1;
        let edges = [[0; 32], bytes("0000000000000000000000000000000000000000000000000000000000000001"), below, order, [0xff; 32]];
        let any = |count: u64| (0..count).map(|seed| sha256::Hash::hash(&seed.to_be_bytes()).to_byte_array());
        let values: Vec<[u8; 32]> = edges.into_iter().chain(any(12)).collect();
        let [first, second] = LIBRARIES;
        for secret in &values {
            let key = (first.public_key)(secret);
            assert_eq!(key, (second.public_key)(secret));
            // Zero, and the order and what is above it, are not keys.
            assert_eq!(key.is_some(), *secret != [0; 32] && *secret < order);
            for digest in &values {
                let signed = (first.sign_schnorr)(secret, digest);
                assert_eq!(signed, (second.sign_schnorr)(secret, digest));
                let by_output_key = (first.sign_key_path)(secret, digest);
                assert_eq!(by_output_key, (second.sign_key_path)(secret, digest));
                let with_ecdsa = (first.sign_ecdsa)(secret, digest);
                assert_eq!(with_ecdsa, (second.sign_ecdsa)(secret, digest));
                let Some(key) = key else {
                    assert_eq!((signed, by_output_key, with_ecdsa), (None, None, None));
                    continue;
                };
                let (x_only, _) = key.x_only_public_key();
                let output = (first.output_key)(&x_only).unwrap();
                assert_eq!((second.output_key)(&x_only), Some(output));
                let (signed, by_output_key, with_ecdsa) = (signed.unwrap(), by_output_key.unwrap(), with_ecdsa.unwrap());
                let other = sha256::Hash::hash(digest).to_byte_array();
                for library in [&first, &second] {
                    for (signature, key) in [(signed, x_only), (by_output_key, output)] {
                        assert!((library.verify_schnorr)(&signature, digest, &key));
                        assert!(!(library.verify_schnorr)(&signature, &other, &key));
                    }
                    assert!(!(library.verify_schnorr)(&signed, digest, &output));
                    assert!((library.verify_ecdsa)(&with_ecdsa, digest, &key));
                    assert!(!(library.verify_ecdsa)(&with_ecdsa, &other, &key));
                }
            }
        }
    }

    #[test]
    fn both_libraries_refuse_numbers_that_are_no_signature() {
        let secret = [1; 32];
        let [first, second] = LIBRARIES;
        let key = (first.public_key)(&secret).unwrap();
        let (x_only, _) = key.x_only_public_key();
        let good = (first.sign_schnorr)(&secret, &[2; 32]).unwrap().serialize();
        let compact = (first.sign_ecdsa)(&secret, &[2; 32]).unwrap().serialize_compact();
        // The field's prime, and the order of the curve.
        let prime = bytes("fffffffffffffffffffffffffffffffffffffffffffffffffffffffefffffc2f");
        let order = bytes("fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141");
        for part in [[0; 32], prime, order, [0xff; 32]] {
            for start in [0, 32] {
                let (mut bad, mut bad_compact) = (good, compact);
                bad[start..start + 32].copy_from_slice(&part);
                bad_compact[start..start + 32].copy_from_slice(&part);
                let bad = schnorr::Signature::from_slice(&bad).unwrap();
                for library in [&first, &second] {
                    assert!(!(library.verify_schnorr)(&bad, &[2; 32], &x_only));
                    if let Ok(bad) = ecdsa::Signature::from_compact(&bad_compact) {
                        assert!(!(library.verify_ecdsa)(&bad, &[2; 32], &key));
                    }
                }
            }
        }
    }
}
