//! Signatures of external signers: parsing them, and proving those of a known key.
//!
//! Specification: `docs/spec/starknet.md#signing`.

use std::fmt;
use std::str::FromStr;

use countersign_core::{Code, Refusal};
use starknet_types_core::felt::Felt;

use crate::{curve, felt};

/// The fewest felts of an account's signature: r and s.
const MIN_FELTS: usize = 2;
/// The most felts of an account's signature. Dozens of guardians fit.
const MAX_FELTS: usize = 1024;

/// A signature of an external signer: all felts of the account's signature array. Two felts are r and s of the Stark curve. Accounts
/// with guardians or several owners have more.
///
/// ```
/// use countersign_starknet::{ExternalSignature, Felt};
///
/// let signature: ExternalSignature = "0x1f,42".parse()?;
/// assert_eq!(signature.felts(), [Felt::from(31), Felt::from(42)]);
/// # Ok::<(), countersign_core::Refusal>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExternalSignature {
    felts: Vec<Felt>,
    public_key: Option<Felt>,
}

impl ExternalSignature {
    /// The most felts that a signature may have.
    pub const MAX_FELTS: usize = MAX_FELTS;

    /// Creates a signature from the felts of a signature array.
    ///
    /// # Errors
    ///
    /// [`Code::SignatureMalformed`] for fewer than 2 or more than 1024 felts.
    pub fn from_felts(felts: Vec<Felt>) -> Result<Self, Refusal> {
        if (MIN_FELTS..=MAX_FELTS).contains(&felts.len()) {
            return Ok(Self { felts, public_key: None });
        }
        let refusal = Refusal::new(Code::SignatureMalformed, "").with_reason("a signature is an array of felts, or r and s");
        Err(refusal.with_expected(format!("{MIN_FELTS} to {MAX_FELTS} felts")))
    }

    /// Returns the felts of the signature array.
    #[must_use]
    pub fn felts(&self) -> &[Felt] {
        &self.felts
    }

    /// Gives the public key of the signer, so that a signature of two felts is proven although the wallet does not know the account's
    /// key. Whether the account accepts the key is then not checked.
    #[must_use]
    pub const fn with_public_key(mut self, public_key: Felt) -> Self {
        self.public_key = Some(public_key);
        self
    }

    pub(crate) const fn public_key(&self) -> Option<Felt> {
        self.public_key
    }

    /// Takes the felts of a signature that was checked when it was attached.
    pub(crate) const fn of_felts(felts: Vec<Felt>) -> Self {
        Self { felts, public_key: None }
    }

    pub(crate) fn into_felts(self) -> Vec<Felt> {
        self.felts
    }
}

impl From<[Felt; 2]> for ExternalSignature {
    /// Creates a signature from r and s.
    fn from(pair: [Felt; 2]) -> Self {
        Self { felts: pair.into(), public_key: None }
    }
}

impl fmt::Display for ExternalSignature {
    /// Writes decimal felts joined by commas.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&felt::join_decimal(&self.felts))
    }
}

impl FromStr for ExternalSignature {
    type Err = Refusal;

    /// Parses felts joined by commas, the form that the gasless path submits. Each felt is decimal or `0x` hex.
    ///
    /// # Errors
    ///
    /// [`Code::SignatureMalformed`], [`Code::NumberTooLarge`], [`Code::FeltOutOfRange`], or a `decimal_` or `hex_` code.
    fn from_str(text: &str) -> Result<Self, Refusal> {
        let felts = text.split(',').take(MAX_FELTS.saturating_add(1)).map(felt::parse_any).collect::<Result<_, _>>();
        felts.map_err(|error| Refusal::new(error, "")).and_then(Self::from_felts)
    }
}

/// Proves that r and s are `public_key`'s signature of exactly this hash.
///
/// # Errors
///
/// [`Code::SignatureMismatch`].
pub(crate) fn prove(public_key: &Felt, hash: &Felt, pair: [&Felt; 2]) -> Result<(), Refusal> {
    if curve::is_valid(public_key, hash, pair) {
        return Ok(());
    }
    let expected = format!("a signature of public key {public_key:#x} over {hash:#x}");
    Err(Refusal::new(Code::SignatureMismatch, "").with_expected(expected))
}
