//! Signing requests, proofs of signatures from outside, and the local signer: ECDSA over the Stark curve.

use std::fmt;

use countersign_core::json::{At, Node, Value};
use countersign_core::{Code, Refusal, SigningRequest, Warnings, number};
use rfc6979::HmacDrbg;
use serde::Serialize;
use serde::ser::{SerializeMap, SerializeStruct, Serializer};
use sha2::Sha256;
use starknet_crypto::{Felt, SignError};
use starknet_types_core::curve::{AffinePoint, ProjectivePoint};
use zeroize::Zeroizing;

use crate::felt::{self, AllShown, Shown};
use crate::message::UnsignedMessage;
use crate::transaction::{self, Bound, Invoke, ResourceBounds, Unsigned};

const INVOKE: &str = "invoke";
const TYPED_DATA: &str = "typed_data";

/// Bytes of the order of the curve's group, big-endian.
const ORDER: [u8; 32] = [
    0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x10, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xb7, 0x81, 0x12, 0x6d, 0xca, 0xe7,
    0xb2, 0x32, 0x1e, 0x66, 0xa2, 0x41, 0xad, 0xc6, 0x4d, 0x2f,
];

/// Half of the candidates for a nonce are beyond the order, so no hash needs nearly as many.
const MAX_CANDIDATES: usize = 256;

/// Most felts that an account's signature may have: dozens of guardians fit.
const MAX_SIGNATURE: usize = 1024;

/// A secret key of the Stark curve. Wiped on drop, never printed.
///
/// The curve library takes secrets by value and wipes none of its own copies, nor does it sign in constant time: keys that
/// others could watch at work belong into a signer outside.
pub struct Key(Zeroizing<[u8; 32]>);

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(..)")
    }
}

impl Key {
    /// Reads 1 to 64 hex digits, with or without `0x`.
    ///
    /// # Errors
    ///
    /// [`Code::KeyMalformed`] for any other text and for zero or a number at or above the curve order.
    pub fn parse(text: &str) -> Result<Self, Code> {
        let hex = text.strip_prefix("0x").unwrap_or(text);
        let mut bytes = Zeroizing::new([0; 32]);
        felt::padded(hex, &mut bytes).map_err(|_| Code::KeyMalformed)?;
        if *bytes == [0; 32] || *bytes >= ORDER { Err(Code::KeyMalformed) } else { Ok(Self(bytes)) }
    }

    fn secret(&self) -> Felt {
        // Below the curve order, and so below the prime.
        Felt::from_bytes_be(&self.0)
    }

    /// The public key: the x coordinate that account contracts store.
    #[must_use]
    pub fn public_key(&self) -> Felt {
        starknet_crypto::get_public_key(&self.secret())
    }

    /// Signs a hash: RFC 6979 as the reference SDK has it, so that a key gives one signature of a hash wherever it signs.
    ///
    /// # Errors
    ///
    /// [`Code::Internal`] for a hash at or above 2^251, which the curve library does not sign, or if no nonce gives a
    /// signature; neither happens for any hash that can be found.
    pub fn sign(&self, hash: &Felt) -> Result<[Felt; 2], Refusal> {
        let secret = self.secret();
        let mut candidates = HmacDrbg::<Sha256>::new(self.0.as_slice(), &hash.to_bytes_be(), &[]);
        let mut k = Zeroizing::new([0; 32]);
        for _ in 0..MAX_CANDIDATES {
            candidates.fill_bytes(k.as_mut_slice());
            into_252_bits(&mut k);
            if *k == [0; 32] || *k >= ORDER {
                continue;
            }
            match starknet_crypto::sign(&secret, hash, &Felt::from_bytes_be(&k)) {
                Ok(signature) => return Ok([signature.r, signature.s]),
                Err(SignError::InvalidK) => {}
                Err(SignError::InvalidMessageHash) => break,
            }
        }
        Err(Refusal::new(Code::Internal, "/wallet").with_reason("the curve library cannot sign this hash"))
    }
}

/// The first 252 bits of a candidate. One that begins with a zero byte stays as it is, because the reference SDK
/// (@scure/starknet 1.1) counts bits from the first byte that is not zero; the curve library counts from the first byte.
fn into_252_bits(candidate: &mut [u8; 32]) {
    if matches!(candidate, [0, ..]) {
        return;
    }
    let mut carried = 0;
    for byte in candidate {
        let low = *byte << 4;
        *byte = carried | (*byte >> 4);
        carried = low;
    }
}

/// A signature from outside: all felts of the account's signature array. Two are r and s of the Stark curve; accounts with
/// guardians or several owners have more.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Signature(pub Vec<Felt>);

impl Signature {
    /// Reads an array of felts, an object `{"r", "s"}`, or felts joined by commas as the gasless way takes them; each felt
    /// as JSON integer, decimal or `0x` hex.
    ///
    /// # Errors
    ///
    /// [`Code::SignatureMalformed`], or the codes of a felt.
    pub fn read(node: Node<'_, '_>) -> Result<Self, Refusal> {
        let felts = match node.value() {
            Value::Array(_) | Value::Bytes(_) => {
                let felts = node.array()?.take(MAX_SIGNATURE.saturating_add(1));
                felts.map(|felt| felt::read_any(felt)).collect::<Result<_, _>>()?
            }
            Value::Object(_) => {
                let members = node.object()?;
                members.only(&["r", "s"])?;
                vec![felt::read_any(members.need("r")?)?, felt::read_any(members.need("s")?)?]
            }
            Value::String(text) => {
                let felts = text.split(',').take(MAX_SIGNATURE.saturating_add(1)).map(read_felt);
                felts.collect::<Result<_, _>>().map_err(|code| node.at().refuse(code))?
            }
            _ => Vec::new(),
        };
        if !(2..=MAX_SIGNATURE).contains(&felts.len()) {
            let refusal = node.at().refuse(Code::SignatureMalformed).with_reason("a signature is an array of felts, or r and s");
            return Err(refusal.with_expected(format!("2 to {MAX_SIGNATURE} felts")));
        }
        Ok(Self(felts))
    }
}

fn read_felt(text: &str) -> Result<Felt, Code> {
    if text.starts_with("0x") { felt::parse(text) } else { felt::of_number(number::decimal(text)?).ok_or(Code::FeltOutOfRange) }
}

/// Whether this is `public_key`'s signature of the hash.
#[expect(clippy::arithmetic_side_effects, reason = "multiples of points")]
fn verifies(public_key: &Felt, hash: &Felt, [r, s]: [&Felt; 2]) -> bool {
    // The curve library takes the sum of hash/s * G and r/s * Q for a point in the plane. It is none where hash * G and
    // r * Q are the same but for the sign, which the key's owner can bring about: then the library would panic.
    let Some(point) = AffinePoint::new_from_x(public_key, false) else { return false };
    let x = |point: AffinePoint, by: &Felt| {
        let point = ProjectivePoint::try_from(point).ok()?;
        (&point * *by).to_affine().ok().map(|point| point.x())
    };
    match (x(AffinePoint::generator(), hash), x(point, r)) {
        (Some(hashed), Some(keyed)) if hashed != keyed => starknet_crypto::verify(public_key, hash, r, s).unwrap_or(false),
        _ => false,
    }
}

/// A transaction, signed where a signature was given.
#[derive(Debug)]
#[non_exhaustive]
pub struct SignedInvoke {
    /// What was signed.
    pub invoke: Invoke,
    /// All felts of the account's signature array.
    pub signature: Option<Vec<Felt>>,
}

/// A gasless message, signed where a signature was given.
#[derive(Debug)]
#[non_exhaustive]
pub struct SignedMessage {
    /// What was signed.
    pub message: UnsignedMessage,
    /// All felts of the account's signature array.
    pub signature: Option<Vec<Felt>>,
}

/// Everything that goes to the chain, or to the service.
#[derive(Debug)]
#[non_exhaustive]
pub struct Artefacts {
    /// Approval, where there is one, and initiate in one transaction.
    pub invoke: SignedInvoke,
    /// The gasless message.
    pub typed_data: Option<SignedMessage>,
}

/// Body of the gasless `PATCH /v2/orders/{id}?action=initiate`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Submission {
    /// Decimal felts joined by commas.
    pub signature: String,
}

impl Artefacts {
    /// The gasless body; `None` if the message is not signed.
    #[must_use]
    pub fn submission(&self) -> Option<Submission> {
        let signature = self.typed_data.as_ref()?.signature.as_ref()?;
        Some(Submission { signature: signature.iter().map(ToString::to_string).collect::<Vec<_>>().join(",") })
    }
}

impl SignedInvoke {
    /// What `starknet_addInvokeTransaction` takes; `None` if the transaction is not signed.
    #[must_use]
    pub fn broadcast(&self) -> Option<Broadcast<'_>> {
        Some(Broadcast { invoke: &self.invoke, signature: self.signature.as_deref()? })
    }
}

/// A signed transaction as nodes take it: serializes as `BROADCASTED_INVOKE_TXN_V3` of the JSON-RPC specification.
#[derive(Debug, Clone, Copy)]
pub struct Broadcast<'a> {
    invoke: &'a Invoke,
    signature: &'a [Felt],
}

pub(crate) fn requests(unsigned: &Unsigned) -> Vec<SigningRequest> {
    let request = |name, signer: &Felt, preimage: &[Felt], hash: &Felt| {
        SigningRequest::new(name, format!("{signer:#066x}"), transaction::bytes(preimage), hash.to_bytes_be().to_vec())
    };
    let invoke = &unsigned.invoke;
    let mut requests = vec![request(INVOKE, &invoke.sender, &invoke.preimage(), &invoke.tx_hash)];
    let message = unsigned.typed_data.as_ref();
    requests.extend(message.map(|message| request(TYPED_DATA, &message.signer, &message.preimage(), &message.message_hash)));
    requests
}

pub(crate) fn sign(unsigned: Unsigned, key: &Key, warnings: &mut Warnings) -> Result<Artefacts, Refusal> {
    match unsigned.invoke.wallet.public_key {
        None => warnings.warn(Code::KeyNotChecked),
        Some(wanted) => {
            let found = key.public_key();
            if found != wanted {
                let shown = |key: Felt| format!("the key of public key {key:#x}");
                return Err(Refusal::new(Code::KeyMismatch, "/wallet/secret_key").with_expected(shown(wanted)).with_actual(shown(found)));
            }
        }
    }
    let signature = Some(key.sign(&unsigned.invoke.tx_hash)?.to_vec());
    let message = |message: UnsignedMessage| {
        let signature = Some(key.sign(&message.message_hash)?.to_vec());
        Ok(SignedMessage { message, signature })
    };
    Ok(Artefacts { invoke: SignedInvoke { invoke: unsigned.invoke, signature }, typed_data: unsigned.typed_data.map(message).transpose()? })
}

pub(crate) fn attach(unsigned: Unsigned, signatures: Vec<(String, Signature)>, warnings: &mut Warnings) -> Result<Artefacts, Refusal> {
    let mut given = Given { signatures, public_key: unsigned.invoke.wallet.public_key };
    let signature = given.take(INVOKE, &unsigned.invoke.tx_hash, warnings)?;
    let message = |message: UnsignedMessage| {
        let signature = given.take(TYPED_DATA, &message.message_hash, warnings)?;
        Ok(SignedMessage { message, signature })
    };
    let typed_data = unsigned.typed_data.map(message).transpose()?;
    match given.signatures.first() {
        Some((name, _)) => Err(At::root("/signatures").key(name).refuse(Code::NothingToSign)),
        None => Ok(Artefacts { invoke: SignedInvoke { invoke: unsigned.invoke, signature }, typed_data }),
    }
}

/// The signatures that have not been used yet.
struct Given {
    signatures: Vec<(String, Signature)>,
    public_key: Option<Felt>,
}

impl Given {
    /// Takes the signature of this name. Two felts are proven where the public key is known; what else an account accepts,
    /// only the account knows.
    fn take(&mut self, name: &str, hash: &Felt, warnings: &mut Warnings) -> Result<Option<Vec<Felt>>, Refusal> {
        let Some(index) = self.signatures.iter().position(|(given, _)| given == name) else { return Ok(None) };
        let (_, Signature(felts)) = self.signatures.swap_remove(index);
        match (felts.as_slice(), self.public_key) {
            ([r, s], Some(public_key)) if !verifies(&public_key, hash, [r, s]) => {
                let expected = format!("a signature of public key {public_key:#x} over {hash:#x}");
                return Err(At::root("/signatures").key(name).refuse(Code::SignatureMismatch).with_expected(expected));
            }
            ([_, _], Some(_)) => {}
            _ => warnings.warn(Code::ContractSignatureUnverified),
        }
        Ok(Some(felts))
    }
}

impl Serialize for SignedInvoke {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        self.invoke.write(&mut map)?;
        if let Some(signature) = &self.signature {
            map.serialize_entry("signature", &AllShown(signature))?;
        }
        map.end()
    }
}

impl Serialize for SignedMessage {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("message_hash", &Shown(&self.message.message_hash))?;
        if let Some(signature) = &self.signature {
            map.serialize_entry("signature", &AllShown(signature))?;
        }
        map.end()
    }
}

impl Serialize for Artefacts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(2))?;
        map.serialize_entry("invoke", &self.invoke)?;
        map.serialize_entry("typed_data", &self.typed_data)?;
        map.end()
    }
}

impl Serialize for Broadcast<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (invoke, wallet) = (self.invoke, &self.invoke.wallet);
        let mut object = serializer.serialize_struct("BroadcastedInvokeTxnV3", 12)?;
        object.serialize_field("type", "INVOKE")?;
        object.serialize_field("version", "0x3")?;
        object.serialize_field("sender_address", &Shown(&invoke.sender))?;
        object.serialize_field("calldata", &AllShown(&invoke.calldata))?;
        object.serialize_field("signature", &AllShown(self.signature))?;
        object.serialize_field("nonce", &Shown(&wallet.nonce))?;
        object.serialize_field("resource_bounds", &wallet.resource_bounds)?;
        object.serialize_field("tip", &Shown(&Felt::from(wallet.tip)))?;
        object.serialize_field("paymaster_data", &AllShown(&wallet.paymaster_data))?;
        object.serialize_field("account_deployment_data", &AllShown(&wallet.account_deployment_data))?;
        object.serialize_field("nonce_data_availability_mode", wallet.nonce_data_availability.name())?;
        object.serialize_field("fee_data_availability_mode", wallet.fee_data_availability.name())?;
        object.end()
    }
}

impl Serialize for ResourceBounds {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_struct("ResourceBounds", 3)?;
        object.serialize_field("l1_gas", &self.l1_gas)?;
        object.serialize_field("l2_gas", &self.l2_gas)?;
        object.serialize_field("l1_data_gas", &self.l1_data_gas)?;
        object.end()
    }
}

impl Serialize for Bound {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_struct("Bound", 2)?;
        object.serialize_field("max_amount", &Shown(&Felt::from(self.max_amount)))?;
        object.serialize_field("max_price_per_unit", &Shown(&Felt::from(self.max_price_per_unit)))?;
        object.end()
    }
}
