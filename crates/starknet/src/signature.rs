//! Signatures of external signers: parsing them, and proving those of a known key.
//!
//! Specification: `docs/spec/starknet.md#signing`.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use countersign_core::json::{self, Cursor, Value};
use countersign_core::{Code, Refusal};
use starknet_types_core::felt::Felt;

use crate::{curve, felt};

/// The fewest felts of an account's signature: r and s.
const MIN_FELTS: usize = 2;
/// The most felts of an account's signature. Dozens of guardians fit.
const MAX_FELTS: usize = 1024;

/// How many felts the signature of an account may have.
pub(crate) const LENGTHS: RangeInclusive<usize> = MIN_FELTS..=MAX_FELTS;

pub(crate) fn lengths() -> String {
    format!("{MIN_FELTS} to {MAX_FELTS} felts")
}

/// A signature of an external signer: all felts of the account's signature array. Two felts are r and s of the Stark curve. Accounts
/// with guardians or several owners have more.
///
/// ```
/// use countersign::starknet::{ExternalSignature, Felt};
///
/// let signature: ExternalSignature = "0x1f,42".parse()?;
/// assert_eq!(signature.felts(), [Felt::from(31), Felt::from(42)]);
/// # Ok::<(), countersign::Refusal>(())
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
        if LENGTHS.contains(&felts.len()) {
            return Ok(Self { felts, public_key: None });
        }
        let refusal = Refusal::new(Code::SignatureMalformed, "").with_reason("a signature is an array of felts, or r and s");
        Err(refusal.with_expected(lengths()))
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

impl ExternalSignature {
    /// The members of an object with r and s. Libraries add `recovery`, which nothing needs.
    pub const PARTS: &'static [&'static str] = &["r", "s", "recovery"];

    /// Reads a signature from JSON: an array of felts, an object `{r, s}` or `{r, s, recovery}`, or text with felts joined by commas. Each
    /// felt is a JSON integer, a decimal string or `0x` hex.
    ///
    /// # Errors
    ///
    /// [`Code::SignatureMalformed`], or a [`Refusal`] at the member that is missing, unknown or malformed.
    pub fn read(signature: Cursor<'_, '_>) -> Result<Self, Refusal> {
        let at = |refusal: Refusal| refusal.with_prefix(&signature.at().to_string());
        let felts = match signature.value() {
            Value::String(text) => return text.parse().map_err(at),
            Value::Array(_) | Value::Bytes(_) => {
                let felts = signature.array()?.take(MAX_FELTS.saturating_add(1));
                felts.map(|felt| felt::read_any(felt)).collect::<Result<_, _>>()?
            }
            Value::Object(_) => {
                let members = signature.object()?;
                members.only(Self::PARTS).map_err(|refusal| refusal.with_reason("unknown member of a signature"))?;
                if let Some(recovery) = members.get("recovery") {
                    felt::read_any(recovery)?;
                }
                vec![felt::read_any(members.need("r")?)?, felt::read_any(members.need("s")?)?]
            }
            _ => Vec::new(),
        };
        Self::from_felts(felts).map_err(at)
    }
}

impl FromStr for ExternalSignature {
    type Err = Refusal;

    /// Parses felts joined by commas, the form that the gasless path submits, or the JSON text of what [`ExternalSignature::read`] reads.
    /// Each felt is decimal or `0x` hex. White space around a felt does not matter.
    ///
    /// # Errors
    ///
    /// [`Code::SignatureMalformed`], [`Code::NumberTooLarge`], [`Code::FeltOutOfRange`], or a `decimal_` or `hex_` code.
    fn from_str(text: &str) -> Result<Self, Refusal> {
        if text.trim_ascii_start().starts_with(['{', '[']) {
            let value = json::parse(text.as_bytes())?;
            return Self::read(Cursor::root(&value, ""));
        }
        let felts = text.split(',').take(MAX_FELTS.saturating_add(1)).map(|felt| felt::parse_any(felt.trim_ascii()));
        let felts = felts.collect::<Result<_, _>>();
        felts.map_err(|error| Refusal::new(error, "")).and_then(Self::from_felts)
    }
}

/// Proves that r and s are `public_key`'s signature of exactly this hash. `others` are hashes that it could be of by mistake, each with what
/// went wrong.
///
/// # Errors
///
/// [`Code::SignatureMismatch`].
pub(crate) fn prove(public_key: &Felt, hash: &Felt, pair: [&Felt; 2], others: impl FnOnce() -> Vec<(Felt, String)>) -> Result<(), Refusal> {
    if curve::is_valid(public_key, hash, pair) {
        return Ok(());
    }
    let expected = format!("a signature of public key {public_key:#x} over {hash:#x}");
    let refusal = Refusal::new(Code::SignatureMismatch, "").with_expected(expected);
    let found = others().into_iter().find(|(other, _)| other != hash && curve::is_valid(public_key, other, pair));
    Err(match found {
        Some((other, reason)) => refusal.with_reason(reason).with_actual(format!("a signature of the same key over {other:#x}")),
        None => refusal,
    })
}
