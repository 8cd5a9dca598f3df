//! secp256k1 signatures over Keccak-256 or SHA-256 digests: parsing them, checking them, and making them with a local key.

use std::fmt;
use std::str::FromStr;

use alloy_primitives::{Address, B256, Bytes, Signature};
use countersign_core::chains::digits;
use countersign_core::{Code, ParseError, Refusal};
use zeroize::Zeroizing;

use crate::ecdsa::{self, Secret};

/// Maximum length of a contract wallet's signature, in bytes. Several nested signatures and their wrapping fit.
const MAX_CONTRACT_SIGNATURE: usize = 64 * 1024;

/// A secp256k1 secret key. Wiped on drop, never printed.
///
/// It signs in constant time, without blinding. Use an external signer where other side channels matter.
///
/// ```
/// use countersign_evm_core::signature::Key;
///
/// # fn main() -> Result<(), countersign_core::ParseError> {
/// let key: Key = "0x4646464646464646464646464646464646464646464646464646464646464646".parse()?;
/// assert_eq!(key.address().to_string(), "0x9d8A62f656a8d1615C1294fd71e9CFb3E4855A4F");
/// assert_eq!(format!("{key:?}"), "Key(..)");
/// # Ok(())
/// # }
/// ```
pub struct Key {
    secret: Secret,
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

    /// Creates a key from the 32 bytes of a secret scalar, big-endian. The caller must wipe its own copy.
    ///
    /// # Errors
    ///
    /// [`Code::KeyMalformed`] for zero and for a number at or above the curve order.
    pub fn from_bytes(bytes: &[u8; 32]) -> Result<Self, ParseError> {
        let (secret, address) = Secret::from_bytes(bytes).ok_or(Code::KeyMalformed)?;
        Ok(Self { secret, address })
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
    /// [`Code::KeyMismatch`]. It shows the key's own address, which is not secret and helps to find the right key.
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
    /// [`Code::Internal`] if the nonce gives no signature. No digest is known for which this happens.
    pub fn sign(&self, digest: &B256) -> Result<Signature, Refusal> {
        self.secret.sign(digest).ok_or_else(|| Refusal::new(Code::Internal, ""))
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
    /// r, s and the recovery bit, with low s.
    Ecdsa(Signature),
    /// A contract wallet's signature (ERC-1271, ERC-6492): only the chain can check it.
    Contract(Bytes),
}

/// The prefix of a contract wallet's signature in text form.
const CONTRACT: &str = "contract:";

impl From<Signature> for ExternalSignature {
    fn from(signature: Signature) -> Self {
        Self::Ecdsa(signature)
    }
}

impl ExternalSignature {
    /// Creates a contract wallet's signature from its bytes.
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

    /// Parses the signature of a key in hex, `0x` optional: 65 bytes r‖s‖v with v 0, 1, 27 or 28, or 64 bytes in the compact form of
    /// EIP-2098.
    ///
    /// # Errors
    ///
    /// [`Code::SignatureMalformed`], [`Code::SignatureHighS`] or [`Code::HexDigit`].
    pub fn from_hex(text: &str) -> Result<Self, Refusal> {
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

impl fmt::Display for ExternalSignature {
    /// Writes the 65 bytes in hex, or `contract:` and the bytes of a contract wallet's signature in hex.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ecdsa(signature) => write!(f, "0x{}", hex::encode(signature.as_bytes())),
            Self::Contract(bytes) => write!(f, "{CONTRACT}{bytes}"),
        }
    }
}

impl FromStr for ExternalSignature {
    type Err = Refusal;

    /// Parses hex as [`ExternalSignature::from_hex`] does, or `contract:` and the signature of a contract wallet in hex.
    ///
    /// # Errors
    ///
    /// As [`ExternalSignature::from_hex`] and [`ExternalSignature::contract`].
    fn from_str(text: &str) -> Result<Self, Refusal> {
        let Some(hex) = text.strip_prefix(CONTRACT) else { return Self::from_hex(text) };
        let bytes = digits::bytes(hex.strip_prefix("0x").unwrap_or(hex));
        Self::contract(bytes.map_err(|_| Refusal::new(Code::HexDigit, ""))?)
    }
}

/// Refuses s above n/2, as nodes do (EIP-2). Such a signature recovers the signer, but its transaction is never mined. Every
/// signature has a second form with the other s, so accepting both would let anyone change the id of a pending transaction.
fn check_low_s(signature: &Signature) -> Result<(), Refusal> {
    if signature.normalize_s().is_some() { Err(Refusal::new(Code::SignatureHighS, "")) } else { Ok(()) }
}

/// Checks that a signature is `signer`'s over exactly this digest.
///
/// # Errors
///
/// [`Code::SignatureHighS`] or [`Code::SignatureMismatch`].
pub fn prove(signature: &Signature, digest: &B256, signer: Address, format: impl Fn(Address) -> String) -> Result<(), Refusal> {
    check_low_s(signature)?;
    if ecdsa::recover(signature, digest) == Some(signer) {
        return Ok(());
    }
    let expected = format!("a signature of {} over {digest}", format(signer));
    Err(Refusal::new(Code::SignatureMismatch, "").with_expected(expected))
}

/// Returns the 65 bytes r‖s‖v with v 27 or 28.
#[must_use]
pub fn bytes(signature: &Signature) -> Vec<u8> {
    signature.as_bytes().to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(text: &str) -> Code {
        text.parse::<ExternalSignature>().unwrap_err().code()
    }

    #[test]
    fn a_key_is_one_number_below_the_order() {
        let digits = "4646464646464646464646464646464646464646464646464646464646464646";
        let key = Key::parse(digits).unwrap();
        assert_eq!(key.address().to_string(), "0x9d8A62f656a8d1615C1294fd71e9CFb3E4855A4F");
        assert_eq!(Key::from_bytes(&[0x46; 32]).unwrap().address(), format!("0x{digits}").parse::<Key>().unwrap().address());
        assert_eq!(format!("{key:?}"), "Key(..)");
        let order = "fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141";
        for text in ["", "0x", &"0".repeat(64), order, &digits[1..], &format!("{digits}46"), &digits.replace('4', "g")] {
            assert_eq!(Key::parse(text).unwrap_err().code(), Code::KeyMalformed, "{text}");
        }
    }

    #[test]
    fn a_signature_proves_one_signer_and_one_digest() {
        let (key, digest) = (Key::from_bytes(&[7; 32]).unwrap(), B256::repeat_byte(9));
        let signature = key.sign(&digest).unwrap();
        let prove = |digest: B256, signer: Address| {
            prove(&signature, &digest, signer, |address| address.to_string()).map_err(|refusal| refusal.code())
        };
        assert_eq!(prove(digest, key.address()), Ok(()));
        assert_eq!(prove(B256::repeat_byte(8), key.address()), Err(Code::SignatureMismatch));
        assert_eq!(prove(digest, Address::repeat_byte(1)), Err(Code::SignatureMismatch));
        // Both forms, and no other length.
        let (whole, compact) = (hex::encode(bytes(&signature)), hex::encode(signature.as_erc2098()));
        for text in [whole.clone(), format!("0x{whole}"), compact.clone(), format!("0x{compact}")] {
            assert_eq!(text.parse(), Ok(ExternalSignature::Ecdsa(signature)));
        }
        for text in ["", "0x", &whole[..126], &format!("{whole}00")] {
            assert_eq!(code(text), Code::SignatureMalformed, "{text}");
        }
        for text in [format!("{}zz", &whole[..128]), format!("0x0x{compact}")] {
            assert_eq!(code(&text), Code::HexDigit, "{text}");
        }
        assert_eq!(code(&format!("{}02", &whole[..128])), Code::SignatureMalformed);
        assert_eq!(ExternalSignature::Ecdsa(signature).to_string(), format!("0x{whole}"));
    }

    #[test]
    fn the_signature_of_a_contract_has_a_text_of_its_own() {
        let contract = ExternalSignature::contract(vec![0xab; 65]).unwrap();
        let text = format!("contract:0x{}", "ab".repeat(65));
        assert_eq!((contract.to_string(), text.parse()), (text, Ok(contract)));
        assert_eq!(
            [code("contract:"), code("contract:0x"), code("contract:xy")],
            [Code::SignatureMalformed, Code::SignatureMalformed, Code::HexDigit]
        );
        assert_eq!(ExternalSignature::from_hex(&format!("contract:0x{}", "ab".repeat(65))).unwrap_err().code(), Code::SignatureMalformed);
    }

    #[test]
    fn a_signature_with_high_s_is_refused_however_it_comes() {
        let (key, digest) = (Key::from_bytes(&[7; 32]).unwrap(), B256::repeat_byte(9));
        let low = key.sign(&digest).unwrap();
        let order = alloy_primitives::uint!(0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141_U256);
        let high = Signature::new(low.r(), order.wrapping_sub(low.s()), !low.v());
        // The signature itself is valid: it recovers the signer.
        assert_eq!(high.recover_address_from_prehash(&digest).unwrap(), key.address());
        assert_eq!(code(&hex::encode(high.as_bytes())), Code::SignatureHighS);
        let refusal = prove(&high, &digest, key.address(), |address| address.to_string()).unwrap_err();
        assert_eq!(refusal.code(), Code::SignatureHighS);
    }
}
