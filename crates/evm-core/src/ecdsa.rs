//! ECDSA over secp256k1, by one of two libraries.
//!
//! `libsecp256k1` is written in C and needs about two thirds of the instructions (ADR 11). `rustcrypto` needs no C compiler, and is
//! used for WebAssembly. Both have the same interface and make the same signatures (RFC 6979, low s), which the tests prove.

#[cfg(all(feature = "libsecp256k1", not(target_family = "wasm")))]
mod libsecp256k1;
#[cfg(any(test, not(feature = "libsecp256k1"), target_family = "wasm"))]
mod rustcrypto;

#[cfg(all(feature = "libsecp256k1", not(target_family = "wasm")))]
pub(crate) use libsecp256k1::{Secret, account, recover};
#[cfg(any(not(feature = "libsecp256k1"), target_family = "wasm"))]
pub(crate) use rustcrypto::{Secret, account, recover};

#[cfg(test)]
mod tests {
    use alloy_primitives::{Address, B256, Signature, U256, b256, keccak256, uint};
    use k256::sha2::{Digest, Sha256};

    use super::*;

    const ORDER: U256 = uint!(0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141_U256);

    type Sign = fn(&B256, &B256) -> Option<(Address, Signature)>;
    type Recover = fn(&Signature, &B256) -> Option<Address>;

    /// Returns the two functions of a library: one parses a key and signs a digest, the other recovers the signer.
    macro_rules! library {
        ($name:ident) => {
            (
                |key, digest| {
                    let (secret, address) = $name::Secret::from_bytes(key)?;
                    Some((address, secret.sign(digest)?))
                },
                $name::recover,
            )
        };
    }

    fn libraries() -> Vec<(Sign, Recover)> {
        vec![
            library!(rustcrypto),
            #[cfg(all(feature = "libsecp256k1", not(target_family = "wasm")))]
            library!(libsecp256k1),
        ]
    }

    /// The vectors that bitcoinj, Trezor, elliptic and btcd share, and the example of EIP-155.
    #[test]
    fn signatures_are_those_that_others_have_published() {
        let sha256 = |text: &str| B256::from_slice(&Sha256::digest(text));
        let one = B256::with_last_byte(1);
        let cases = [
            (
                one,
                sha256("Satoshi Nakamoto"),
                uint!(0x934b1ea10a4b3c1757e2b0c017d0b6143ce3c9a7e6a4a49860d7a6ab210ee3d8_U256),
                uint!(0x2442ce9d2b916064108014783e923ec36b49743e2ffa1c4496f01a512aafd9e5_U256),
            ),
            (
                one,
                sha256("All those moments will be lost in time, like tears in rain. Time to die..."),
                uint!(0x8600dbd41e348fe5c9465ab92d23e3db8b98b873beecd930736488696438cb6b_U256),
                uint!(0x547fe64427496db33bf66019dacbf0039c04199abb0122918601db38a72cfc21_U256),
            ),
            (
                B256::from(ORDER.wrapping_sub(U256::ONE)),
                sha256("Satoshi Nakamoto"),
                uint!(0xfd567d121db66e382991534ada77a6bd3106f0a1098c231e47993447cd6af2d0_U256),
                uint!(0x6b39cd0eb1bc8603e159ef5c20a5c8ad685a45b06ce9bebed3f153d10d93bed5_U256),
            ),
            (
                b256!("f8b8af8ce3c7cca5e300d33939540c10d45ce001b8f252bfbc57ba0342904181"),
                sha256("Alan Turing"),
                uint!(0x7063ae83e7f62bbb171798131b4a0564b956930092b33b07b395615d9ec7e15c_U256),
                uint!(0x58dfcc1e00a35e1572f366ffe34ba0fc47db1e7189759b9fb233c5b05ab388ea_U256),
            ),
            (
                B256::repeat_byte(0x46),
                b256!("daf5a779ae972f972197303d7b574746c7ef83eadac0f2791ad23db92e4c8e53"),
                uint!(0x28ef61340bd939bc2195fe537567866003e1a15d3c71ff63e1590620aa636276_U256),
                uint!(0x67cbe9d8997f761aecb703304b3800ccf555c9f3dc64214b297fb1966a3b6d83_U256),
            ),
        ];
        for (sign, recover) in libraries() {
            for (key, digest, r, s) in cases {
                let (address, signature) = sign(&key, &digest).unwrap();
                assert_eq!((signature.r(), signature.s()), (r, s), "{digest}");
                assert_eq!(recover(&signature, &digest), Some(address), "{digest}");
            }
            // The v of EIP-155's example is 37, so its y is even.
            let (key, digest, ..) = cases[4];
            assert!(!sign(&key, &digest).unwrap().1.v());
        }
    }

    /// The public key of the secret 1 is the generator (SEC 2, section 2.4.1).
    #[test]
    fn every_library_reads_public_keys() {
        let x = hex::decode("79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798").unwrap();
        let y = hex::decode("483ada7726a3c4655da4fbfc0e1108a8fd17b448a68554199c47d08ffb10d4b8").unwrap();
        let accounts = |key: &[u8]| {
            vec![
                rustcrypto::account(key),
                #[cfg(all(feature = "libsecp256k1", not(target_family = "wasm")))]
                libsecp256k1::account(key),
            ]
        };
        let (address, _) = (libraries()[0].0)(&B256::with_last_byte(1), &B256::ZERO).unwrap();
        for key in [[&[2][..], &x].concat(), [&[4][..], &x, &y].concat()] {
            assert!(accounts(&key).iter().all(|account| *account == Some(address)), "{key:?}");
        }
        for key in [vec![], vec![0], [&[4][..], &x, &x].concat(), [&[2][..], &[0xff; 32]].concat(), x.clone()] {
            assert!(accounts(&key).iter().all(Option::is_none), "{key:?}");
        }
    }

    #[test]
    fn every_library_makes_the_same_signature_and_recovers_the_same_account() {
        let edges =
            [U256::ZERO, U256::ONE, ORDER.wrapping_shr(1), ORDER.wrapping_sub(U256::ONE), ORDER, ORDER.wrapping_add(U256::ONE), U256::MAX];
        let edges = edges.map(B256::from);
        let any = |count: u64| (0..count).map(|seed| keccak256(seed.to_be_bytes()));
        let keys: Vec<B256> = edges.into_iter().chain(any(16)).collect();
        let digests: Vec<B256> = edges.into_iter().chain(any(16)).collect();
        for key in &keys {
            for digest in &digests {
                let signed: Vec<_> = libraries().iter().map(|(sign, _)| sign(key, digest)).collect();
                assert!(signed.windows(2).all(|pair| pair[0] == pair[1]), "{key} {digest}");
                // Zero, and the order and what is above it, are not keys.
                let scalar = U256::from_be_bytes(key.0);
                assert_eq!(signed[0].is_some(), !scalar.is_zero() && scalar < ORDER, "{key}");
                let Some((address, signature)) = signed[0] else { continue };
                assert_eq!(signature.normalize_s(), None, "{key} {digest}");
                let (r, s, odd) = (signature.r(), signature.s(), signature.v());
                let others = [
                    Signature::new(r, s, !odd),
                    Signature::new(r, ORDER.wrapping_sub(s), !odd),
                    Signature::new(r.wrapping_add(U256::ONE), s, odd),
                    Signature::new(r, U256::ZERO, odd),
                    Signature::new(U256::ZERO, s, odd),
                    Signature::new(ORDER, s, odd),
                    Signature::new(r, ORDER, odd),
                    Signature::new(U256::MAX, s, odd),
                ];
                for (_, recover) in libraries() {
                    assert_eq!(recover(&signature, digest), Some(address), "{key} {digest}");
                }
                for other in others {
                    let recovered: Vec<_> = libraries().iter().map(|(_, recover)| recover(&other, digest)).collect();
                    assert!(recovered.windows(2).all(|pair| pair[0] == pair[1]), "{other:?} {digest}");
                }
            }
        }
    }
}
