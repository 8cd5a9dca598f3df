//! The tree of keys (BIP-32), derived by one of two libraries. Every child is hardened.
//!
//! Native builds use libsecp256k1, which `bitcoin` depends on, because a search derives thousands of keys. WebAssembly builds use
//! RustCrypto's `k256` through `bip32`, because libsecp256k1's table for public keys would add 33 kB that do not compress (ADR 11). The
//! tests prove that both derive the same keys.

#[cfg(not(target_family = "wasm"))]
mod libsecp256k1;
#[cfg(any(test, target_family = "wasm"))]
mod rustcrypto;

#[cfg(not(target_family = "wasm"))]
pub(super) use libsecp256k1::Node;
#[cfg(target_family = "wasm")]
pub(super) use rustcrypto::Node;

#[cfg(test)]
mod tests {
    use bitcoin::bip32::{Xpriv, Xpub};
    use serde_json::Value;
    use sha2::{Digest, Sha512};

    use super::{libsecp256k1, rustcrypto};
    use crate::rescue::{DeriveError, PASSPHRASE, PURPOSE, Phrase};

    /// A secret key and its public key.
    type Pair = ([u8; 32], [u8; 32]);
    type Derive = fn(&[u8], &[u32]) -> Result<Pair, DeriveError>;

    macro_rules! derive {
        ($name:ident) => {
            |seed, path| {
                let master = $name::Node::master(seed)?;
                let node = path.iter().try_fold(master, |node, number| node.child(*number))?;
                Ok((*node.secret_key(), node.public_key()))
            }
        };
    }

    const LIBRARIES: [Derive; 2] = [derive!(libsecp256k1), derive!(rustcrypto)];
    const MAX: u32 = (1 << 31) - 1;

    #[test]
    fn keys_are_those_that_others_have_published() {
        // BIP-32, test vectors 1 to 4, as far as every child is hardened. The last two are about keys with leading zeros.
        let seeds = [
            "000102030405060708090a0b0c0d0e0f",
            "fffcf9f6f3f0edeae7e4e1dedbd8d5d2cfccc9c6c3c0bdbab7b4b1aeaba8a5a29f9c999693908d8a8784817e7b7875726f6c696663605d5a5754514e4b484542",
            "4b381541583be4423346c643850da4b320e46a87ae3d2a4e6da11eba819cd4acba45d239319ac14f863b8d5ab5a0d0c64d2e8a1e7d1457df2e5a3c51c73235be",
            "3ddd5602285899a946114506157c7997e5444528f3003f6134712147db19b678",
        ];
        let vectors: [(usize, &[u32], &str, &str); 7] = [
            (
                0,
                &[],
                "xprv9s21ZrQH143K3QTDL4LXw2F7HEK3wJUD2nW2nRk4stbPy6cq3jPPqjiChkVvvNKmPGJxWUtg6LnF5kejMRNNU3TGtRBeJgk33yuGBxrMPHi",
                "xpub661MyMwAqRbcFtXgS5sYJABqqG9YLmC4Q1Rdap9gSE8NqtwybGhePY2gZ29ESFjqJoCu1Rupje8YtGqsefD265TMg7usUDFdp6W1EGMcet8",
            ),
            (
                0,
                &[0],
                "xprv9uHRZZhk6KAJC1avXpDAp4MDc3sQKNxDiPvvkX8Br5ngLNv1TxvUxt4cV1rGL5hj6KCesnDYUhd7oWgT11eZG7XnxHrnYeSvkzY7d2bhkJ7",
                "xpub68Gmy5EdvgibQVfPdqkBBCHxA5htiqg55crXYuXoQRKfDBFA1WEjWgP6LHhwBZeNK1VTsfTFUHCdrfp1bgwQ9xv5ski8PX9rL2dZXvgGDnw",
            ),
            (
                1,
                &[],
                "xprv9s21ZrQH143K31xYSDQpPDxsXRTUcvj2iNHm5NUtrGiGG5e2DtALGdso3pGz6ssrdK4PFmM8NSpSBHNqPqm55Qn3LqFtT2emdEXVYsCzC2U",
                "xpub661MyMwAqRbcFW31YEwpkMuc5THy2PSt5bDMsktWQcFF8syAmRUapSCGu8ED9W6oDMSgv6Zz8idoc4a6mr8BDzTJY47LJhkJ8UB7WEGuduB",
            ),
            (
                2,
                &[],
                "xprv9s21ZrQH143K25QhxbucbDDuQ4naNntJRi4KUfWT7xo4EKsHt2QJDu7KXp1A3u7Bi1j8ph3EGsZ9Xvz9dGuVrtHHs7pXeTzjuxBrCmmhgC6",
                "xpub661MyMwAqRbcEZVB4dScxMAdx6d4nFc9nvyvH3v4gJL378CSRZiYmhRoP7mBy6gSPSCYk6SzXPTf3ND1cZAceL7SfJ1Z3GC8vBgp2epUt13",
            ),
            (
                2,
                &[0],
                "xprv9uPDJpEQgRQfDcW7BkF7eTya6RPxXeJCqCJGHuCJ4GiRVLzkTXBAJMu2qaMWPrS7AANYqdq6vcBcBUdJCVVFceUvJFjaPdGZ2y9WACViL4L",
                "xpub68NZiKmJWnxxS6aaHmn81bvJeTESw724CRDs6HbuccFQN9Ku14VQrADWgqbhhTHBaohPX4CjNLf9fq9MYo6oDaPPLPxSb7gwQN3ih19Zm4Y",
            ),
            (
                3,
                &[0],
                "xprv9vB7xEWwNp9kh1wQRfCCQMnZUEG21LpbR9NPCNN1dwhiZkjjeGRnaALmPXCX7SgjFTiCTT6bXes17boXtjq3xLpcDjzEuGLQBM5ohqkao9G",
                "xpub69AUMk3qDBi3uW1sXgjCmVjJ2G6WQoYSnNHyzkmdCHEhSZ4tBok37xfFEqHd2AddP56Tqp4o56AePAgCjYdvpW2PU2jbUPFKsav5ut6Ch1m",
            ),
            (
                3,
                &[0, 1],
                "xprv9xJocDuwtYCMNAo3Zw76WENQeAS6WGXQ55RCy7tDJ8oALr4FWkuVoHJeHVAcAqiZLE7Je3vZJHxspZdFHfnBEjHqU5hG1Jaj32dVoS6XLT1",
                "xpub6BJA1jSqiukeaesWfxe6sNK9CCGaujFFSJLomWHprUL9DePQ4JDkM5d88n49sMGJxrhpjazuXYWdMf17C9T5XnxkopaeS7jGk1GyyVziaMt",
            ),
        ];
        for library in LIBRARIES {
            for (seed, path, secret, public) in vectors {
                let expected_secret = secret.parse::<Xpriv>().unwrap().private_key.secret_bytes();
                let expected_public = public.parse::<Xpub>().unwrap().public_key.x_only_public_key().0.serialize();
                assert_eq!(library(&hex::decode(seeds[seed]).unwrap(), path), Ok((expected_secret, expected_public)), "{public}");
            }
        }
    }

    #[test]
    fn both_libraries_derive_the_keys_of_the_rescue_vectors() {
        let file: Value = serde_json::from_str(include_str!("../../tests/vectors/rescue.json")).unwrap();
        let number = |value: &Value| u32::try_from(value.as_u64().unwrap()).unwrap();
        for vector in file["vectors"].as_array().unwrap() {
            let phrase = Phrase::parse(vector["phrase"].as_str().unwrap()).unwrap();
            let seed = phrase.0.to_seed_normalized(PASSPHRASE);
            for (role, name) in [(1, "refund_key"), (2, "redeem_key")] {
                let path = match number(&vector["branch"]) {
                    0 => vec![PURPOSE, role, number(&vector["index"])],
                    branch => vec![PURPOSE, 3, branch, role, number(&vector["index"])],
                };
                for library in LIBRARIES {
                    let (secret, public) = library(&seed, &path).unwrap();
                    assert_eq!(hex::encode(secret), vector[name]["secret_key"]);
                    assert_eq!(hex::encode(public), vector[name]["public_key"]);
                }
            }
        }
    }

    #[test]
    fn both_libraries_derive_the_same_keys_and_refuse_the_same_numbers() {
        let [first, second] = LIBRARIES;
        let any = |count: u64| (0..count).map(|number| Sha512::digest(number.to_be_bytes()).into());
        let seeds: Vec<[u8; 64]> = [[0; 64], [0xff; 64]].into_iter().chain(any(40)).collect();
        for seed in &seeds {
            for path in [&[][..], &[0], &[1], &[MAX], &[PURPOSE, 0, 0], &[PURPOSE, 3, 65_535, 2, MAX], &[MAX; 6]] {
                let derived = first(seed, path);
                assert!(derived.is_ok());
                assert_eq!(derived, second(seed, path), "{path:?}");
            }
            for number in [MAX + 1, MAX + 2, u32::MAX] {
                assert_eq!((first(seed, &[number]), second(seed, &[number])), (Err(DeriveError), Err(DeriveError)));
            }
        }
    }
}
