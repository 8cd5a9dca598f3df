//! secp256k1 signatures over Keccak-256 or SHA-256 digests: reading, proving, and making them locally.

use std::fmt;

use alloy_primitives::{Address, B256, Bytes, Signature};
use countersign_core::chains::digits;
use countersign_core::json::{At, Node};
use countersign_core::{Code, Refusal};
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
    /// Reads 64 hex digits, with or without `0x`.
    ///
    /// # Errors
    ///
    /// [`Code::KeyMalformed`] for any other text and for zero or a number at or above the curve order.
    pub fn parse(text: &str) -> Result<Self, Code> {
        let mut bytes = Zeroizing::new([0; 32]);
        digits::into(text.strip_prefix("0x").unwrap_or(text), bytes.as_mut_slice()).map_err(|_| Code::KeyMalformed)?;
        let key = SigningKey::from_slice(bytes.as_slice()).map_err(|_| Code::KeyMalformed)?;
        let address = Address::from_private_key(&key);
        Ok(Self { key, address })
    }

    /// The account that this key controls.
    #[must_use]
    pub const fn address(&self) -> Address {
        self.address
    }

    /// Requires that the key controls `sender`.
    ///
    /// # Errors
    ///
    /// [`Code::KeyMismatch`] at `/wallet/secret_key`; the key's own address is not secret and helps to find the right one.
    pub fn controls(&self, sender: Address, shown: impl Fn(Address) -> String) -> Result<(), Refusal> {
        if self.address == sender {
            return Ok(());
        }
        Err(Refusal::new(Code::KeyMismatch, "/wallet/secret_key")
            .with_expected(format!("the key of {}", shown(sender)))
            .with_actual(format!("the key of {}", shown(self.address))))
    }

    /// Signs a digest: RFC 6979, low s.
    ///
    /// # Errors
    ///
    /// [`Code::Internal`] if no nonce gives a signature, which happens for no digest that can be found.
    pub fn sign(&self, digest: &B256, at: &'static str) -> Result<Signature, Refusal> {
        self.key.sign_prehash_recoverable(digest.as_slice()).map(Signature::from).map_err(|_| Refusal::new(Code::Internal, at))
    }
}

/// A signature from outside.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExternalSignature {
    /// r, s and the recovery bit, low s.
    Ecdsa(Signature),
    /// A contract wallet's signature (ERC-1271, ERC-6492): only the chain can check it.
    Contract(Bytes),
}

impl ExternalSignature {
    /// Reads hex, `0x` optional: 65 bytes r‖s‖v with v 0, 1, 27 or 28; 64 bytes in the compact form of EIP-2098; or an
    /// object `{"contract": "0x.."}` for what a contract wallet signs.
    ///
    /// # Errors
    ///
    /// [`Code::SignatureMalformed`], [`Code::SignatureHighS`], or a `hex_` code.
    pub fn read(node: Node<'_, '_>) -> Result<Self, Refusal> {
        if let Ok(members) = node.object() {
            members.only(&["contract"])?;
            let bytes = members.need("contract")?.hex_bytes(MAX_CONTRACT_SIGNATURE)?;
            if bytes.is_empty() {
                return Err(node.refuse(Code::SignatureMalformed).with_reason("a contract wallet's signature has at least one byte"));
            }
            return Ok(Self::Contract(bytes.into()));
        }
        let text = node.text()?;
        let hex = text.strip_prefix("0x").unwrap_or(text);
        if !matches!(hex.len(), 128 | 130) {
            return Err(node
                .at()
                .refuse(Code::SignatureMalformed)
                .with_expected("65 bytes r, s, v or 64 bytes compact")
                .with_actual(format!("{} hex digits", hex.len())));
        }
        let bytes = digits::bytes(hex).map_err(|_| node.refuse(Code::HexDigit))?;
        let signature = match bytes.as_slice() {
            [.., v] if bytes.len() == 65 => {
                let odd = match v {
                    0 | 27 => false,
                    1 | 28 => true,
                    other => return Err(node.at().refuse(Code::SignatureMalformed).with_expected("v of 0, 1, 27 or 28").with_actual(other)),
                };
                Signature::from_bytes_and_parity(bytes.get(..64).unwrap_or_default(), odd)
            }
            _ => Signature::from_erc2098(&bytes),
        };
        // EIP-2: nodes refuse s above n/2, so a signature in that half is sound mathematics in a transaction that is
        // never mined; and it is the same signature as one in the lower half, which lets ids be changed in flight.
        if signature.normalize_s().is_some() {
            return Err(node.at().refuse(Code::SignatureHighS));
        }
        Ok(Self::Ecdsa(signature))
    }
}

/// Proves that a signature is `signer`'s over exactly this digest.
///
/// # Errors
///
/// [`Code::SignatureMismatch`].
pub fn prove(signature: &Signature, digest: &B256, signer: Address, at: &At<'_>, shown: impl Fn(Address) -> String) -> Result<(), Refusal> {
    match signature.recover_address_from_prehash(digest) {
        Ok(found) if found == signer => Ok(()),
        Ok(_) | Err(_) => Err(at.refuse(Code::SignatureMismatch).with_expected(format!("a signature of {} over {digest}", shown(signer)))),
    }
}

/// 65 bytes r‖s‖v with v 27 or 28.
#[must_use]
pub fn bytes(signature: &Signature) -> Vec<u8> {
    signature.as_bytes().to_vec()
}
