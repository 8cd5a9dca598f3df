//! Signing requests, proofs of signatures from outside, and the local signer.

use std::fmt;

use bech32::Bech32;
use bech32::primitives::decode::CheckedHrpstring;
use countersign_core::chains::digits;
use countersign_core::json::{At, Node};
use countersign_core::{Code, Refusal, SigningRequest, U256, Warnings};
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use sui_crypto::ed25519::Ed25519PrivateKey;
use sui_crypto::secp256k1::Secp256k1PrivateKey;
use sui_crypto::secp256r1::Secp256r1PrivateKey;
use sui_crypto::simple::SimpleVerifier;
use sui_crypto::{Signer as _, Verifier as _};
use sui_sdk_types::{Address, Secp256r1Signature, SignedTransaction, SimpleSignature, UserSignature};
use zeroize::Zeroizing;

use crate::message;
use crate::transaction::Unsigned;

const TRANSACTION: &str = "transaction";
const SPONSOR: &str = "sponsor";

/// Longest signature text that is read: a multisig of zkLogin signatures fits many times.
const MAX_SIGNATURE: usize = 64 * 1024;

/// Order of secp256k1.
const K1_ORDER: U256 = U256::from_limbs([0xbfd2_5e8c_d036_4141, 0xbaae_dce6_af48_a03b, 0xffff_ffff_ffff_fffe, u64::MAX]);
/// Order of secp256r1.
const R1_ORDER: U256 = U256::from_limbs([0xf3b9_cac2_fc63_2551, 0xbce6_faad_a717_9e84, u64::MAX, 0xffff_ffff_0000_0000]);

/// A secret key of one of Sui's three simple schemes. Wiped on drop, never printed.
pub struct Key {
    key: Scheme,
    address: Address,
}

enum Scheme {
    Ed25519(Ed25519PrivateKey),
    Secp256k1(Secp256k1PrivateKey),
    Secp256r1(Secp256r1PrivateKey),
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(..)")
    }
}

impl Key {
    /// Reads `suiprivkey1..` of any simple scheme, or the 64 hex digits of an ed25519 seed, with or without `0x`.
    ///
    /// # Errors
    ///
    /// [`Code::KeyMalformed`] for any other text, and for bytes that are no key of the scheme.
    pub fn parse(text: &str) -> Result<Self, Code> {
        let mut bytes = Zeroizing::new([0; 32]);
        let mut flag = 0;
        if let Ok(parsed) = CheckedHrpstring::new::<Bech32>(text) {
            if !parsed.hrp().as_str().eq_ignore_ascii_case("suiprivkey") || parsed.byte_iter().len() != 33 {
                return Err(Code::KeyMalformed);
            }
            let mut decoded = parsed.byte_iter();
            flag = decoded.next().ok_or(Code::KeyMalformed)?;
            for (to, from) in bytes.iter_mut().zip(decoded) {
                *to = from;
            }
        } else {
            digits::into(text.strip_prefix("0x").unwrap_or(text), bytes.as_mut_slice()).map_err(|_| Code::KeyMalformed)?;
        }
        let (key, address) = match flag {
            0 => {
                let key = Ed25519PrivateKey::new(*bytes);
                let address = key.public_key().derive_address();
                (Scheme::Ed25519(key), address)
            }
            1 => {
                let key = Secp256k1PrivateKey::new(*bytes).map_err(|_| Code::KeyMalformed)?;
                let address = key.public_key().derive_address();
                (Scheme::Secp256k1(key), address)
            }
            2 => {
                let key = secp256r1(&bytes)?;
                let address = key.public_key().derive_address();
                (Scheme::Secp256r1(key), address)
            }
            _ => return Err(Code::KeyMalformed),
        };
        Ok(Self { key, address })
    }

    /// The account that this key controls.
    #[must_use]
    pub const fn address(&self) -> Address {
        self.address
    }

    fn sign(&self, digest: &[u8; 32]) -> Result<SimpleSignature, Refusal> {
        let signature: Result<SimpleSignature, _> = match &self.key {
            Scheme::Ed25519(key) => key.try_sign(digest),
            Scheme::Secp256k1(key) => key.try_sign(digest),
            Scheme::Secp256r1(key) => key.try_sign(digest),
        };
        signature.map(low_s).map_err(|_| Refusal::new(Code::Internal, "/wallet"))
    }
}

/// The scalar is checked first: the library takes the bytes as they are.
fn secp256r1(bytes: &[u8; 32]) -> Result<Secp256r1PrivateKey, Code> {
    let scalar = U256::from_be_bytes(*bytes);
    if scalar.is_zero() || scalar >= R1_ORDER { Err(Code::KeyMalformed) } else { Ok(Secp256r1PrivateKey::new(*bytes)) }
}

/// The curve order and s of an ECDSA signature.
fn order_and_s(signature: &SimpleSignature) -> Option<(U256, U256)> {
    let (order, bytes) = match signature {
        SimpleSignature::Secp256k1 { signature, .. } => (K1_ORDER, signature.inner()),
        SimpleSignature::Secp256r1 { signature, .. } => (R1_ORDER, signature.inner()),
        _ => return None,
    };
    let (_, s) = bytes.split_at(32);
    Some((order, U256::try_from_be_slice(s)?))
}

/// Whether s is in the upper half of the curve order, which validators refuse.
fn is_high_s(signature: &SimpleSignature) -> bool {
    order_and_s(signature).is_some_and(|(order, s)| s > order.wrapping_shr(1))
}

/// The same signature with s in the lower half. The library leaves s of secp256r1 as it falls.
fn low_s(signature: SimpleSignature) -> SimpleSignature {
    match (order_and_s(&signature), &signature) {
        (Some((order, s)), SimpleSignature::Secp256r1 { signature: found, public_key }) if s > order.wrapping_shr(1) => {
            let mut bytes = *found.inner();
            for (to, from) in bytes.iter_mut().skip(32).zip(order.saturating_sub(s).to_be_bytes::<32>()) {
                *to = from;
            }
            SimpleSignature::Secp256r1 { signature: Secp256r1Signature::new(bytes), public_key: *public_key }
        }
        _ => signature,
    }
}

/// A transaction, signed as far as signatures were given.
#[derive(Debug)]
#[non_exhaustive]
pub struct Artefacts {
    /// What was signed.
    pub unsigned: Unsigned,
    /// The sender's.
    pub signature: Option<UserSignature>,
    /// The sponsor's, where there is one.
    pub sponsor_signature: Option<UserSignature>,
}

/// Parameters of the JSON-RPC method `executeTransactionBlock`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Execution {
    /// The transaction's BCS bytes in base64.
    pub tx_bytes: String,
    /// Sender's signature, then the sponsor's, in base64.
    pub signatures: Vec<String>,
}

impl Artefacts {
    /// Every signature that the network wants, sender's first; `None` while one is missing.
    #[must_use]
    pub fn signatures(&self) -> Option<Vec<&UserSignature>> {
        let mut signatures = vec![self.signature.as_ref()?];
        if self.unsigned.sponsor().is_some() {
            signatures.push(self.sponsor_signature.as_ref()?);
        }
        Some(signatures)
    }

    /// What a node is sent; `None` while a signature is missing.
    #[must_use]
    pub fn execution(&self) -> Option<Execution> {
        let signatures = self.signatures()?.into_iter().map(UserSignature::to_base64).collect();
        Some(Execution { tx_bytes: self.unsigned.base64(), signatures })
    }

    /// The signed transaction as Mysten's own type; `None` while a signature is missing.
    #[must_use]
    pub fn signed_transaction(&self) -> Option<SignedTransaction> {
        let signatures = self.signatures()?.into_iter().cloned().collect();
        Some(SignedTransaction { transaction: self.unsigned.transaction(), signatures })
    }
}

pub(crate) fn requests(unsigned: &Unsigned) -> Vec<SigningRequest> {
    let request =
        |name, signer: Address| SigningRequest::new(name, signer.to_string(), unsigned.intent_message(), unsigned.signing_digest.to_vec());
    let mut requests = vec![request(TRANSACTION, unsigned.sender)];
    requests.extend(unsigned.sponsor().map(|sponsor| request(SPONSOR, sponsor)));
    requests
}

pub(crate) fn sign(unsigned: Unsigned, key: &Key) -> Result<Artefacts, Refusal> {
    let sender = unsigned.sender;
    if key.address() != sender {
        return Err(Refusal::new(Code::KeyMismatch, "/wallet/secret_key")
            .with_expected(format!("the key of {sender}"))
            .with_actual(format!("the key of {}", key.address())));
    }
    let signature = key.sign(&unsigned.signing_digest)?;
    Ok(Artefacts { unsigned, signature: Some(UserSignature::Simple(signature)), sponsor_signature: None })
}

/// Reads base64 of flag, signature and public key, or of a multisig, zkLogin or passkey signature.
pub(crate) fn read(node: Node<'_, '_>) -> Result<UserSignature, Refusal> {
    let text = node.text()?;
    let malformed = || node.at().refuse(Code::SignatureMalformed).with_expected("base64 of flag, signature and public key");
    if text.len() > MAX_SIGNATURE {
        return Err(malformed());
    }
    let signature = UserSignature::from_base64(text).map_err(|_| malformed())?;
    match &signature {
        UserSignature::Simple(simple) if is_high_s(simple) => Err(node.at().refuse(Code::SignatureHighS)),
        _ => Ok(signature),
    }
}

pub(crate) fn attach(unsigned: Unsigned, mut given: Vec<(String, UserSignature)>, warnings: &mut Warnings) -> Result<Artefacts, Refusal> {
    let mut take = |name: &str, signer: Address| {
        let Some(index) = given.iter().position(|(other, _)| other == name) else { return Ok(None) };
        let (_, signature) = given.swap_remove(index);
        prove(&signature, &unsigned.signing_digest, signer, &At::root("/signatures").key(name), warnings)?;
        Ok(Some(signature))
    };
    let signature = take(TRANSACTION, unsigned.sender)?;
    let sponsor_signature = match unsigned.sponsor() {
        Some(sponsor) => take(SPONSOR, sponsor)?,
        None => None,
    };
    match given.first() {
        Some((name, _)) if name == SPONSOR => {
            Err(At::root("/signatures").key(name).refuse(Code::NothingToSign).with_reason("no sponsor pays for this transaction"))
        }
        Some((name, _)) => Err(message::gasless(At::root("/signatures").key(name).to_string())),
        None => Ok(Artefacts { unsigned, signature, sponsor_signature }),
    }
}

/// Proves that a signature is `signer`'s over exactly this digest. What only the network can prove passes with a warning,
/// if its address is the signer's.
fn prove(signature: &UserSignature, digest: &[u8; 32], signer: Address, at: &At<'_>, warnings: &mut Warnings) -> Result<(), Refusal> {
    let mismatch = || at.refuse(Code::SignatureMismatch).with_expected(format!("a signature of {signer} over {}", hex::encode(digest)));
    if !signature.derive_addresses().any(|address| address == signer) {
        return Err(mismatch());
    }
    match signature {
        UserSignature::Simple(simple) => SimpleVerifier.verify(digest, simple).map_err(|_| mismatch()),
        other => {
            warnings.about(Code::SignatureUnverified, other.scheme().name());
            Ok(())
        }
    }
}

impl Serialize for Artefacts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        struct Members<'a>(&'a Artefacts);
        impl Serialize for Members<'_> {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let mut map = serializer.serialize_map(None)?;
                self.0.unsigned.serialize_members(&mut map)?;
                if let Some(signature) = &self.0.signature {
                    map.serialize_entry("signature", &signature.to_base64())?;
                }
                if let Some(signature) = &self.0.sponsor_signature {
                    map.serialize_entry("sponsor_signature", &signature.to_base64())?;
                }
                map.end()
            }
        }
        let mut map = serializer.serialize_map(Some(1))?;
        map.serialize_entry(TRANSACTION, &Members(self))?;
        map.end()
    }
}
