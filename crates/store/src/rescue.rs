//! The rescue phrase: twelve words from which every swap secret and every Bitcoin key of the user can be derived again.
//!
//! ```
//! use countersign_store::rescue::{Phrase, Rescue};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let phrase = Phrase::parse(
//!     "legal winner thank year wave sausage worth useful legal winner thank yellow",
//! )?;
//! let rescue = Rescue::new(&phrase)?;
//! let branch = rescue.branch(0)?;
//! assert_ne!(branch.secret_hash(0)?, branch.secret_hash(1)?);
//! assert_eq!(branch.refund_key(0)?.public_key().len(), 64);
//! assert_ne!(rescue.branch(1)?.secret_hash(0)?, branch.secret_hash(0)?);
//! # Ok(())
//! # }
//! ```
//!
//! # Derivation
//!
//! | step | value |
//! |---|---|
//! | phrase | BIP-39, English, 12 words: 128 bits of entropy |
//! | seed | BIP-39, with the passphrase `countersign rescue v1` |
//! | master key | BIP-32 |
//! | path in branch 0 | `m / 1668508007' / role' / index'`, every step hardened |
//! | path in branch 1 to 65535 | `m / 1668508007' / 3' / branch' / role' / index'`, every step hardened |
//! | role | 0: swap secret, 1: refund key on the source chain, 2: redeem key on the destination chain |
//! | secret | SHA-256(t ‖ t ‖ private key), where t = SHA-256(`countersign/secret/v1`): BIP-340's tagged hash |
//! | secret hash | SHA-256(secret) |
//! | Bitcoin key | the private key itself; its public key is the x coordinate (BIP-340) |
//!
//! The phrase belongs to this program and should not be that of a wallet. If a wallet's phrase is used anyway, the keys stay separate,
//! because the passphrase leads to an unrelated seed and therefore to an unrelated tree of keys. The purpose 1668508007 (`csig` in
//! ASCII) also keeps the paths apart from the purposes 44, 49, 84 and 86, whose accounts any wallet can find and spend from.
//!
//! # Branches
//!
//! A new phrase begins in branch 0. A store that was restored, copied or rolled back does not know which indices were used meanwhile, so
//! it goes on in a branch of its own: a random number from 1 to 65535, in which the indices begin at 0 again. Two copies of a store
//! therefore have different secrets, except once in 65535 times. A search for the orders of a phrase tries every branch, and a branch
//! costs three derivations before its first index.
//!
//! # What becomes public
//!
//! A secret becomes public when it redeems a swap. It is a hash of a private key on a hardened path, so it reveals nothing about
//! that key, its siblings or its parents. Extended public keys are not used, because hardened children cannot be derived from one.
//!
//! The vectors in `tests/vectors/rescue.json` were computed with an independent implementation.
//!
//! # Memory
//!
//! Phrases, secrets and keys are wiped on drop. Copies that the elliptic curve and hash libraries leave on the stack are not wiped.

mod search;
mod tree;

use std::fmt;

use bip39::{Language, Mnemonic};
use sha2::{Digest, Sha256};
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

pub use search::{Extent, FoundIndex, IndexError, MAX_INDICES, OrderKeys, Search};

use crate::error::Error;
use tree::Node;

/// The number of words of a phrase.
pub const WORDS: usize = 12;

const PASSPHRASE: &str = "countersign rescue v1";
/// `csig` in ASCII, as a number.
const PURPOSE: u32 = 0x6373_6967;
/// The child of the purpose that holds the branches from 1 on. The numbers below it are the roles of branch 0.
const BRANCHED: u32 = 3;
const SECRET_TAG: &str = "countersign/secret/v1";

/// An error of parsing a phrase. It contains no word of the phrase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PhraseError {
    /// The phrase does not have 12 words. A phrase of 24 words probably belongs to a wallet.
    #[error("a rescue phrase has {WORDS} words, got {actual}")]
    WordCount {
        /// The number of words.
        actual: usize,
    },
    /// A word is not in the English list of BIP-39.
    #[error("word {position} is not in the English word list")]
    UnknownWord {
        /// The position of the word, counted from 1.
        position: usize,
    },
    /// Every word is in the list, but the checksum does not match: a word was replaced, or words were swapped.
    #[error("the checksum does not match: a word or the order of the words is wrong")]
    Checksum,
}

/// A rescue phrase. Wiped on drop, never printed.
#[derive(Zeroize, ZeroizeOnDrop)]
pub struct Phrase(Mnemonic);

impl Phrase {
    /// Generates a phrase with the operating system's random number generator.
    ///
    /// # Errors
    ///
    /// [`Error::Random`] if the operating system returns no random numbers.
    pub fn generate() -> Result<Self, Error> {
        let mut entropy = Zeroizing::new([0; 16]);
        getrandom::fill(entropy.as_mut_slice()).map_err(Error::Random)?;
        let phrase = Mnemonic::from_entropy_in(Language::English, entropy.as_slice());
        phrase.map(Self).map_err(|_| Error::Phrase(PhraseError::Checksum))
    }

    /// Parses a phrase: twelve English words, in any case, separated by any white space.
    ///
    /// # Errors
    ///
    /// A [`PhraseError`] for the wrong number of words, an unknown word or a wrong checksum.
    pub fn parse(text: &str) -> Result<Self, PhraseError> {
        let actual = text.split_whitespace().count();
        if actual != WORDS {
            return Err(PhraseError::WordCount { actual });
        }
        let mut words = Zeroizing::new(String::with_capacity(text.len()));
        for word in text.split_whitespace() {
            if !words.is_empty() {
                words.push(' ');
            }
            words.extend(word.chars().map(|letter| letter.to_ascii_lowercase()));
        }
        match Mnemonic::parse_in_normalized(Language::English, &words) {
            Ok(phrase) => Ok(Self(phrase)),
            Err(bip39::Error::UnknownWord(index)) => Err(PhraseError::UnknownWord { position: index.saturating_add(1) }),
            Err(_) => Err(PhraseError::Checksum),
        }
    }

    /// Returns the words in lower case, separated by single spaces. Show them to the user once.
    #[must_use]
    pub fn words(&self) -> Zeroizing<String> {
        // The longest word has eight letters. A string that does not grow leaves no copies behind.
        let mut words = Zeroizing::new(String::with_capacity(9_usize.saturating_mul(WORDS)));
        for word in self.0.words() {
            if !words.is_empty() {
                words.push(' ');
            }
            words.push_str(word);
        }
        words
    }
}

impl fmt::Debug for Phrase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Phrase(..)")
    }
}

/// The secrets and keys that belong to a phrase, by [branch](Self::branch). See the [module](self) for how they are derived.
pub struct Rescue {
    purpose: Node,
    /// The node of the branches from 1 on.
    branched: Node,
}

impl Rescue {
    /// Derives the node below which all branches are.
    ///
    /// # Errors
    ///
    /// [`DeriveError`], which happens for one phrase in 2^127.
    pub fn new(phrase: &Phrase) -> Result<Self, DeriveError> {
        let seed = Zeroizing::new(phrase.0.to_seed_normalized(PASSPHRASE));
        let purpose = Node::master(seed.as_slice())?.child(PURPOSE)?;
        Ok(Self { branched: purpose.child(BRANCHED)?, purpose })
    }

    /// Derives a branch. The first branch of a phrase is 0.
    ///
    /// # Errors
    ///
    /// [`DeriveError`], which happens for one branch in 2^127.
    pub fn branch(&self, number: u16) -> Result<Branch, DeriveError> {
        let role = |node: &Node| Ok([node.child(0)?, node.child(1)?, node.child(2)?]);
        let [secret, refund, redeem] = match number {
            0 => role(&self.purpose)?,
            branch => role(&self.branched.child(branch.into())?)?,
        };
        Ok(Branch { secret, refund, redeem })
    }
}

impl fmt::Debug for Rescue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Rescue(..)")
    }
}

/// The secrets and keys of one branch of a phrase, by index.
pub struct Branch {
    secret: Node,
    refund: Node,
    redeem: Node,
}

impl Branch {
    /// Returns the secret of the swap with an index, 32 bytes.
    ///
    /// # Errors
    ///
    /// [`DeriveError`] if `index` is not below [`INDICES`](crate::INDICES).
    pub fn secret(&self, index: u32) -> Result<Zeroizing<[u8; 32]>, DeriveError> {
        let key = self.secret.child(index)?.secret_key();
        let tag = Sha256::digest(SECRET_TAG);
        let mut secret = Zeroizing::new([0; 32]);
        Sha256::new().chain_update(tag).chain_update(tag).chain_update(*key).finalize_into((&mut *secret).into());
        Ok(secret)
    }

    /// Returns the SHA-256 hash of the secret, 32 bytes. An order contains it.
    ///
    /// # Errors
    ///
    /// The errors of [`secret`](Self::secret).
    pub fn secret_hash(&self, index: u32) -> Result<[u8; 32], DeriveError> {
        Ok(Sha256::digest(self.secret(index)?.as_slice()).into())
    }

    /// Returns the key that refunds a deposit on a Bitcoin-like source chain.
    ///
    /// # Errors
    ///
    /// The errors of [`secret`](Self::secret).
    pub fn refund_key(&self, index: u32) -> Result<RescueKey, DeriveError> {
        key(&self.refund, index)
    }

    /// Returns the key that redeems on a Bitcoin-like destination chain.
    ///
    /// # Errors
    ///
    /// The errors of [`secret`](Self::secret).
    pub fn redeem_key(&self, index: u32) -> Result<RescueKey, DeriveError> {
        key(&self.redeem, index)
    }
}

fn key(role: &Node, index: u32) -> Result<RescueKey, DeriveError> {
    let node = role.child(index)?;
    Ok(RescueKey { public_key: node.public_key(), secret_key: node.secret_key() })
}

impl fmt::Debug for Branch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Branch(..)")
    }
}

/// A Bitcoin key of the user. The secret key is wiped on drop and never printed.
pub struct RescueKey {
    public_key: [u8; 32],
    secret_key: Zeroizing<[u8; 32]>,
}

impl RescueKey {
    /// Returns the public key in the form that an order contains: the x coordinate (BIP-340) as 64 lower-case hex digits.
    #[must_use]
    pub fn public_key(&self) -> String {
        hex::encode(self.public_key)
    }

    /// Returns the secret key, 32 bytes big-endian.
    #[must_use]
    pub fn expose(&self) -> &[u8; 32] {
        &self.secret_key
    }
}

impl fmt::Debug for RescueKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RescueKey").field("public_key", &self.public_key()).finish_non_exhaustive()
    }
}

/// The error of deriving a key: the index is 2^31 or larger, or a hash was not a valid key, which happens once in 2^127.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("cannot derive a key: the index must be below 2147483648")]
pub struct DeriveError;

#[cfg(test)]
mod tests {
    use super::*;

    const ABANDON: &str = "abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon about";

    #[test]
    fn errors_show_no_word() {
        let shown = |text: &str| Phrase::parse(text).unwrap_err().to_string();
        assert_eq!(shown("abandon"), "a rescue phrase has 12 words, got 1");
        assert_eq!(shown(&format!("{ABANDON} {ABANDON}")), "a rescue phrase has 12 words, got 24");
        assert_eq!(shown(&ABANDON.replace("about", "abuot")), "word 12 is not in the English word list");
        assert_eq!(shown(&ABANDON.replace("about", "abandon")), PhraseError::Checksum.to_string());
        // Not English, not ASCII.
        assert_eq!(shown(&ABANDON.replace("about", "ábaco")), "word 12 is not in the English word list");
    }

    #[test]
    fn case_and_space_do_not_matter() {
        let typed = format!("  {}\n", ABANDON.to_uppercase().replace(' ', "\t "));
        assert_eq!(*Phrase::parse(&typed).unwrap().words(), ABANDON);
    }

    #[test]
    fn generated_phrases_parse_differ_and_are_not_printed() {
        let (one, two) = (Phrase::generate().unwrap(), Phrase::generate().unwrap());
        assert_ne!(one.words(), two.words());
        assert_eq!(Phrase::parse(&one.words()).unwrap().words(), one.words());
        let rescue = Rescue::new(&one).unwrap();
        let branch = rescue.branch(0).unwrap();
        let key = branch.refund_key(0).unwrap();
        let shown = format!("{one:?} {rescue:?} {branch:?} {key:?}");
        assert_eq!(shown, format!("Phrase(..) Rescue(..) Branch(..) RescueKey {{ public_key: \"{}\", .. }}", key.public_key()));
    }

    #[test]
    fn branches_roles_and_indices_have_values_of_their_own() {
        let rescue = Rescue::new(&Phrase::parse(ABANDON).unwrap()).unwrap();
        let mut seen = std::collections::BTreeSet::new();
        // The numbers of the roles and of the node above the branches are branches too.
        for branch in [0, 1, 2, 3, 4711, u16::MAX] {
            let branch = rescue.branch(branch).unwrap();
            for index in [0, 1, 2, 3, 1000, (1 << 31) - 1] {
                assert!(seen.insert(*branch.secret(index).unwrap()));
                assert!(seen.insert(*branch.refund_key(index).unwrap().expose()));
                assert!(seen.insert(*branch.redeem_key(index).unwrap().expose()));
            }
            assert_eq!(branch.secret(1 << 31).unwrap_err(), DeriveError);
            assert_eq!(branch.refund_key(u32::MAX).unwrap_err(), DeriveError);
        }
    }
}
