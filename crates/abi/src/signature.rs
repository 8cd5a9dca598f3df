//! secp256k1 signatures over Keccak-256 or SHA-256 digests: parsing, proving, and making them locally.

use std::fmt;
use std::str::FromStr;

use alloy_primitives::{Address, B256, Bytes, Signature};
use countersign_core::chains::digits;
use countersign_core::{Code, ParseError, Refusal};
use k256::ecdsa::SigningKey;
use zeroize::Zeroizing;

/// Most bytes that a contract wallet's signature may have: several nested signatures and their wrapping fit.
const MAX_CONTRACT_SIGNATURE: usize = 64 * 1024;

/// A secp256k1 secret key. Wiped on drop, never printed.
pub struct Key {
    key: SigningKey,
    address: Address,
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(..)")
    }
}

impl Key {
    /// Parses 64 hex digits, with or without `0x`.
    ///
    /// # Errors
    ///
    /// [`Code::KeyMalformed`] for any other text and for zero or a number at or above the curve order.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        let mut bytes = Zeroizing::new([0; 32]);
        digits::into(text.strip_prefix("0x").unwrap_or(text), bytes.as_mut_slice()).map_err(|_| Code::KeyMalformed)?;
        Self::from_bytes(&bytes)
    }

    /// Takes the 32 bytes of a secret scalar, big-endian. The caller wipes its own copy.
    ///
    /// # Errors
    ///
    /// [`Code::KeyMalformed`] for zero and for a number at or above the curve order.
    pub fn from_bytes(bytes: &[u8; 32]) -> Result<Self, ParseError> {
        let key = SigningKey::from_slice(bytes).map_err(|_| Code::KeyMalformed)?;
        let address = Address::from_private_key(&key);
        Ok(Self { key, address })
    }

    /// Returns the account that this key controls.
    #[must_use]
    pub const fn address(&self) -> Address {
        self.address
    }

    /// Requires that the key controls `sender`.
    ///
    /// # Errors
    ///
    /// [`Code::KeyMismatch`]; the key's own address is not secret and helps to find the right one.
    pub fn check_controls(&self, sender: Address, format: impl Fn(Address) -> String) -> Result<(), Refusal> {
        if self.address == sender {
            return Ok(());
        }
        Err(Refusal::new(Code::KeyMismatch, "")
            .with_expected(format!("the key of {}", format(sender)))
            .with_actual(format!("the key of {}", format(self.address))))
    }

    /// Signs a digest: RFC 6979, low s.
    ///
    /// # Errors
    ///
    /// [`Code::Internal`] if no nonce gives a signature, which happens for no digest that can be found.
    pub fn sign(&self, digest: &B256) -> Result<Signature, Refusal> {
        self.key.sign_prehash_recoverable(digest.as_slice()).map(Signature::from).map_err(|_| Refusal::new(Code::Internal, ""))
    }
}

impl FromStr for Key {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        Self::parse(text)
    }
}

/// A signature made by an external signer.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExternalSignature {
    /// r, s and the recovery bit, low s.
    Ecdsa(Signature),
    /// A contract wallet's signature (ERC-1271, ERC-6492): only the chain can check it.
    Contract(Bytes),
}

impl From<Signature> for ExternalSignature {
    fn from(signature: Signature) -> Self {
        Self::Ecdsa(signature)
    }
}

impl ExternalSignature {
    /// Takes a contract wallet's signature.
    ///
    /// # Errors
    ///
    /// [`Code::SignatureMalformed`] if it is empty, [`Code::HexLength`] if it is longer than 64 KiB.
    pub fn contract(bytes: impl Into<Bytes>) -> Result<Self, Refusal> {
        let bytes = bytes.into();
        if bytes.len() > MAX_CONTRACT_SIGNATURE {
            return Err(Refusal::new(Code::HexLength, "").with_expected(format!("at most {MAX_CONTRACT_SIGNATURE} bytes")));
        }
        if bytes.is_empty() {
            let reason = "a contract wallet's signature has at least one byte";
            return Err(Refusal::new(Code::SignatureMalformed, "").with_reason(reason));
        }
        Ok(Self::Contract(bytes))
    }
}

impl FromStr for ExternalSignature {
    type Err = Refusal;

    /// Parses hex, `0x` optional: 65 bytes r‖s‖v with v 0, 1, 27 or 28, or 64 bytes in the compact form of EIP-2098.
    ///
    /// # Errors
    ///
    /// [`Code::SignatureMalformed`], [`Code::SignatureHighS`], or a `hex_` code.
    fn from_str(text: &str) -> Result<Self, Refusal> {
        let refuse = |code| Refusal::new(code, "");
        let hex = text.strip_prefix("0x").unwrap_or(text);
        if !matches!(hex.len(), 128 | 130) {
            return Err(refuse(Code::SignatureMalformed)
                .with_expected("65 bytes r, s, v or 64 bytes compact")
                .with_actual(format!("{} hex digits", hex.len())));
        }
        let bytes = digits::bytes(hex).map_err(|_| refuse(Code::HexDigit).with_actual(text))?;
        let signature = match bytes.as_slice() {
            [.., v] if bytes.len() == 65 => {
                let odd = match v {
                    0 | 27 => false,
                    1 | 28 => true,
                    other => return Err(refuse(Code::SignatureMalformed).with_expected("v of 0, 1, 27 or 28").with_actual(*other)),
                };
                Signature::from_bytes_and_parity(bytes.get(..64).unwrap_or_default(), odd)
            }
            _ => Signature::from_erc2098(&bytes),
        };
        check_low_s(&signature)?;
        Ok(Self::Ecdsa(signature))
    }
}

/// EIP-2: nodes refuse s above n/2, so a signature in that half is sound mathematics in a transaction that is never mined. It
/// is also the same signature as one in the lower half, which would let a transaction's id be changed in flight.
fn check_low_s(signature: &Signature) -> Result<(), Refusal> {
    if signature.normalize_s().is_some() { Err(Refusal::new(Code::SignatureHighS, "")) } else { Ok(()) }
}

/// Proves that a signature is `signer`'s over exactly this digest.
///
/// # Errors
///
/// [`Code::SignatureHighS`] or [`Code::SignatureMismatch`].
pub fn prove(signature: &Signature, digest: &B256, signer: Address, format: impl Fn(Address) -> String) -> Result<(), Refusal> {
    check_low_s(signature)?;
    match signature.recover_address_from_prehash(digest) {
        Ok(found) if found == signer => Ok(()),
        Ok(_) | Err(_) => {
            let expected = format!("a signature of {} over {digest}", format(signer));
            Err(Refusal::new(Code::SignatureMismatch, "").with_expected(expected))
        }
    }
}

/// Returns the 65 bytes r‖s‖v with v 27 or 28.
#[must_use]
pub fn bytes(signature: &Signature) -> Vec<u8> {
    signature.as_bytes().to_vec()
}
