//! The JSON of each family: wallet contexts, keys, signatures and artefacts.

#[cfg(feature = "bitcoin")]
mod bitcoin;
#[cfg(any(feature = "evm", feature = "tron"))]
mod calls;
#[cfg(feature = "evm")]
mod evm;
pub(crate) mod inputs;
#[cfg(feature = "solana")]
mod solana;
#[cfg(feature = "starknet")]
mod starknet;
#[cfg(feature = "sui")]
mod sui;
#[cfg(feature = "tron")]
pub(crate) mod tron;

use countersign::SigningRequest;
use countersign_core::family::{ChainFamily, only_one};
use countersign_core::json::{Cursor, Members, Value};
use countersign_core::{Code, ParseError, Policy, Refusal, RequestId, UnsignedOrder, VerifiedOrder};
use serde::{Serialize, Serializer};

use self::inputs::Input;
use crate::objects::NativePayload;

/// Location of the local key in a case.
const KEY: &str = "/wallet/secret_key";

/// The JSON forms of one family.
pub trait JsonFamily: ChainFamily {
    /// A redemption or a refund, as the family prepares it.
    type Recovery;

    /// The objects that a wallet passes in to prepare an order or a recovery.
    const CONTEXTS: &'static [&'static [Input]];
    /// Signatures in several parts.
    const SIGNATURES: &'static [&'static [Input]] = &[];
    /// The members of the artefacts.
    const ARTEFACT_MEMBERS: ArtefactMembers;
    /// What the text of a key looks like, for messages.
    const KEY_FORM: &'static str;
    /// The members in which wallets and nodes return a transaction beside other values.
    const WRAPPERS: &'static [&'static str] = &[];
    /// The name of the chains, and an example of a wallet context for a recovery on one of them, for the help.
    const RECOVERY_EXAMPLE: (&'static str, &'static str);

    /// Reads a wallet context. The locations of refusals begin with that of the context, `/wallet`.
    ///
    /// # Errors
    ///
    /// A [`Refusal`] at the member that is missing or malformed.
    fn read_wallet(wallet: Cursor<'_, '_>) -> Result<Self::Context, Refusal>;

    /// Reads the wallet context of a recovery (`docs/spec/batch.md#recovery-contexts`), and prepares the recovery with it.
    ///
    /// # Errors
    ///
    /// A [`Refusal`] at the member that is missing, unknown, malformed or invalid.
    fn prepare_recovery(recovery: &Self::Recovery, wallet: Cursor<'_, '_>, policy: &Policy) -> Result<UnsignedOrder<Self>, Refusal>;

    /// Reads a signature made by an external signer. In most families it is text.
    ///
    /// # Errors
    ///
    /// A [`Refusal`] of the signature, such as [`Code::SignatureMalformed`], with its location.
    fn read_signature(signature: Cursor<'_, '_>) -> Result<Self::Signature, Refusal> {
        signature.text()?.parse().map_err(|refusal: Refusal| refusal.with_prefix(&signature.at().to_string()))
    }

    /// Reads the signatures of one request: an array where several keys may sign it.
    ///
    /// # Errors
    ///
    /// As for [`JsonFamily::read_signature`].
    fn read_signatures(given: Cursor<'_, '_>) -> Result<Vec<Self::Signature>, Refusal> {
        Ok(vec![Self::read_signature(given)?])
    }

    /// Parses the name under which a signature is attached: the request's own name, and in some families others.
    ///
    /// # Errors
    ///
    /// [`Code::NothingToSign`] for any other text.
    fn read_request(name: &str) -> Result<RequestId, ParseError> {
        name.parse()
    }

    /// Checks that the key of a case has something to sign.
    ///
    /// # Errors
    ///
    /// [`Code::NothingToSign`] at the missing member of the wallet context; the caller puts `/wallet` in front.
    fn check_signable(unsigned: &Self::Unsigned) -> Result<(), Refusal> {
        let _ = unsigned;
        Ok(())
    }

    /// Checks that the key of a case has signed everything that it must sign.
    ///
    /// # Errors
    ///
    /// [`Code::KeyMismatch`]; the caller puts the location of the key in front.
    fn check_signed(unsigned: &Self::Unsigned) -> Result<(), Refusal> {
        let _ = unsigned;
        Ok(())
    }

    /// Reads a transaction that an external wallet has signed or broadcast (`docs/spec/batch.md#external-transactions`).
    ///
    /// # Errors
    ///
    /// A [`Refusal`] of the text or of the transaction.
    fn read_transaction(order: &VerifiedOrder<Self>, text: &[u8]) -> Result<Self::Transaction, Refusal>;

    /// Finds the payment of an order by its effect, in the JSON of a wallet or a node that says what a transaction did, which may be that of
    /// another account (`docs/spec/batch.md#bundled-calls`). Returns the id of the transaction as explorers show it.
    ///
    /// # Errors
    ///
    /// A [`Refusal`] of the text or of what it shows; [`Code::UnsupportedFamily`] for a family of which no such text proves a payment.
    fn find_payment(order: &VerifiedOrder<Self>, text: &[u8]) -> Result<String, Refusal> {
        let _ = (order, text);
        let reason = "only a payment on EVM chains, Tron, Starknet and Solana can be found by its effect";
        Err(crate::dispatch::unsupported(Self::FAMILY).with_reason(reason))
    }

    /// Returns whether an object says what a transaction did, as [`JsonFamily::find_payment`] takes it, and is not the transaction alone.
    /// `has_any` returns whether it has one of these members.
    fn is_effect(has_any: impl Fn(&[&'static str]) -> bool) -> bool {
        let _ = has_any;
        false
    }

    /// Refuses a transaction that failed, where the object that shows it says so.
    ///
    /// # Errors
    ///
    /// [`Code::TransactionMismatch`] at the outcome.
    fn check_outcome(members: &Members<'_, '_>) -> Result<(), Refusal> {
        let _ = members;
        Ok(())
    }

    /// Returns the calls for wallets that choose nonce and fees themselves, as JSON text: see
    /// [`wallet_calls`](crate::objects::wallet_calls).
    ///
    /// # Errors
    ///
    /// [`Code::UnsupportedFamily`] for a family without such an interface.
    fn wallet_calls(order: &VerifiedOrder<Self>) -> Result<Vec<String>, Refusal> {
        let _ = order;
        Err(crate::dispatch::unsupported(Self::FAMILY))
    }

    /// Returns the payload of one of the requests, in the form that the chain's own wallets accept.
    fn native_payload(request: &SigningRequest<Self::Payload>, unsigned: &Self::Unsigned) -> NativePayload;

    /// Serializes the artefacts with the signatures so far.
    ///
    /// # Errors
    ///
    /// Any error of the serializer.
    fn serialize_artefacts<S: Serializer>(unsigned: &Self::Unsigned, serializer: S) -> Result<S::Ok, S::Error>;
}

/// Reads the wallet context of a case (`docs/spec/batch.md#wallet-contexts`) and prepares the order with it.
///
/// # Errors
///
/// A [`Refusal`] at the member of `/wallet` that is missing, malformed or invalid.
pub fn prepare_json<F: JsonFamily>(order: &VerifiedOrder<F>, wallet: Cursor<'_, '_>) -> Result<UnsignedOrder<F>, Refusal> {
    let context = F::read_wallet(wallet)?;
    order.prepare(context).map_err(|refusal| refusal.with_prefix("/wallet"))
}

/// Reads a number of at most 64 bits, in any of the forms that [`Cursor::any_number`] reads.
#[cfg(any(feature = "evm", feature = "starknet", feature = "sui", feature = "tron"))]
pub(crate) fn read_u64(cursor: Cursor<'_, '_>) -> Result<u64, Refusal> {
    u64::try_from(cursor.any_number()?).map_err(|_| cursor.refuse(Code::NumberTooLarge))
}

/// Decodes the text of a transaction, without the white space around it.
#[cfg(any(feature = "bitcoin", feature = "evm", feature = "solana", feature = "tron"))]
pub(crate) fn plain(text: &[u8]) -> Result<&str, Refusal> {
    std::str::from_utf8(text).map(str::trim_ascii).map_err(|_| Refusal::new(Code::JsonNotUtf8, ""))
}

/// Decodes the text of a transaction in hex. `prefix` is `0x` if the text must not have it, and else empty.
#[cfg(any(feature = "bitcoin", feature = "evm", feature = "tron"))]
pub(crate) fn hex(text: &[u8], prefix: &str) -> Result<Vec<u8>, Refusal> {
    /// Maximum length of a transaction's bytes.
    const MAX_BYTES: usize = 4_000_000;

    countersign_core::number::hex_bytes(&format!("{prefix}{}", plain(text)?), MAX_BYTES).map_err(|error| Refusal::new(error, ""))
}

/// Signs with the local key of a case (`docs/spec/batch.md#keys`).
///
/// # Errors
///
/// [`Code::KeyMalformed`] or [`Code::KeyMismatch`] at `/wallet/secret_key`; [`Code::NothingToSign`] if the wallet context leaves the
/// key nothing to sign; [`Code::WarningRefused`] for a warning that the policy refuses. No refusal contains any part of the key.
pub fn sign_text<F: JsonFamily>(unsigned: &mut UnsignedOrder<F>, key: &str) -> Result<(), Refusal> {
    crate::wipe::with_wiped_stack(|| {
        let key: F::Key = key.parse().map_err(|error| Refusal::new(error, KEY))?;
        sign_parsed(unsigned, &key)
    })
}

/// Signs with a key that was parsed before.
///
/// # Errors
///
/// As for [`sign_text`].
pub(crate) fn sign_key<F: JsonFamily>(unsigned: &mut UnsignedOrder<F>, key: &F::Key) -> Result<(), Refusal> {
    crate::wipe::with_wiped_stack(|| sign_parsed(unsigned, key))
}

/// Refuses a key.
pub(crate) fn key_mismatch(reason: &'static str) -> Refusal {
    Refusal::new(Code::KeyMismatch, KEY).with_reason(reason)
}

fn sign_parsed<F: JsonFamily>(unsigned: &mut UnsignedOrder<F>, key: &F::Key) -> Result<(), Refusal> {
    F::check_signable(unsigned.payloads()).map_err(|refusal| refusal.with_prefix("/wallet"))?;
    unsigned.sign(key).and_then(|()| F::check_signed(unsigned.payloads())).map_err(|refusal| refusal.with_prefix(KEY))
}

/// Checks and attaches signatures of external signers: an object from request name to signature
/// (`docs/spec/batch.md#external-signatures`).
///
/// # Errors
///
/// A [`Refusal`] at the signature; [`Code::NothingToSign`] for an unknown name; [`Code::SignatureCount`] if the object is empty.
pub fn attach_json<F: JsonFamily>(unsigned: &mut UnsignedOrder<F>, signatures: Cursor<'_, '_>) -> Result<(), Refusal> {
    let members: Members<'_, '_> = signatures.object()?;
    if members.keys().next().is_none() {
        return Err(signatures.refuse(Code::SignatureCount));
    }
    let read: Vec<_> = members
        .keys()
        .zip(members.iter())
        .map(|(name, cursor)| Ok((name, cursor, F::read_signatures(cursor)?)))
        .collect::<Result<_, Refusal>>()?;
    for (name, cursor, signatures) in read {
        let id = F::read_request(name).map_err(|error| cursor.at().refuse(error))?;
        if signatures.is_empty() {
            return Err(cursor.refuse(Code::SignatureCount));
        }
        let attached = match (cursor.value(), signatures) {
            (Value::Array(_), signatures) => unsigned.attach_all(id, signatures),
            (_, signatures) => only_one(signatures).and_then(|signature| unsigned.attach(id, signature)),
        };
        attached.map_err(|refusal| refusal.with_prefix(&cursor.at().to_string()))?;
    }
    Ok(())
}

/// The members of a family's artefacts (`docs/spec/batch.md#artefacts`) that hold what every family has. The first one that is present counts.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct ArtefactMembers {
    /// The unsigned bytes.
    pub payload: &'static [&'static str],
    /// What is signed, in hex; none where the payload itself is signed, or where each input has its own digest.
    pub digest: &'static [&'static str],
    /// The id of the transaction, as explorers write it.
    pub id: &'static [&'static str],
    /// The signature, where it is not a part of the signed bytes alone.
    pub signature: &'static [&'static str],
    /// Whether bytes are in base64. Otherwise they are in hex.
    pub is_base64: bool,
}

impl ArtefactMembers {
    const fn new(payload: &'static [&'static str], digest: &'static [&'static str], id: &'static [&'static str]) -> Self {
        Self { payload, digest, id, signature: &["signature"], is_base64: false }
    }
}

/// The artefacts of one family's order with the signatures so far, serialized as in `docs/spec/batch.md#artefacts`.
pub struct JsonArtefacts<'a, F: JsonFamily>(pub &'a F::Unsigned);

impl<F: JsonFamily> std::fmt::Debug for JsonArtefacts<'_, F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "JsonArtefacts({:?})", self.0)
    }
}

impl<F: JsonFamily> Serialize for JsonArtefacts<'_, F> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        F::serialize_artefacts(self.0, serializer)
    }
}
