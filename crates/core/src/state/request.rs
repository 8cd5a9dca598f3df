//! Signing requests, and what is sent once they are signed.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::json::number::Hex;
use crate::report::{Code, ParseError, text::escape_untrusted};

/// Which payload of an order a signature is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum RequestId {
    /// The transaction that sets a token allowance to zero.
    ApprovalReset,
    /// The transaction that approves the token amount.
    Approval,
    /// The transaction that locks the funds.
    Initiate,
    /// The typed data of the gasless path.
    TypedData,
    /// Starknet: the account's transaction with all calls of the order.
    Invoke,
    /// Solana, Sui: the transaction that locks the funds.
    Transaction,
    /// Solana: the transaction of the gasless path.
    Gasless,
    /// Sui: the same transaction, signed by whoever pays for gas.
    Sponsor,
    /// An input of a Bitcoin or Litecoin transaction.
    Input(usize),
    /// The transaction that redeems with the secret.
    Redeem,
    /// The transaction that refunds after the timelock.
    Refund,
    /// The transaction that claims affiliate earnings.
    Claim,
}

/// The requests that are not numbered, with their names.
const NAMED: [(RequestId, &str); 11] = [
    (RequestId::ApprovalReset, "approval_reset"),
    (RequestId::Approval, "approval"),
    (RequestId::Initiate, "initiate"),
    (RequestId::TypedData, "typed_data"),
    (RequestId::Invoke, "invoke"),
    (RequestId::Transaction, "transaction"),
    (RequestId::Gasless, "gasless"),
    (RequestId::Sponsor, "sponsor"),
    (RequestId::Redeem, "redeem"),
    (RequestId::Refund, "refund"),
    (RequestId::Claim, "claim"),
];

impl RequestId {
    /// Returns the stable name: `initiate`, `input_0`.
    #[must_use]
    pub fn name(self) -> Cow<'static, str> {
        match (self, NAMED.iter().find(|(id, _)| *id == self)) {
            (_, Some((_, name))) => Cow::Borrowed(name),
            (Self::Input(index), None) => Cow::Owned(format!("input_{index}")),
            (_, None) => Cow::Borrowed(""),
        }
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name())
    }
}

impl FromStr for RequestId {
    type Err = ParseError;

    /// Parses a stable name.
    ///
    /// # Errors
    ///
    /// [`Code::NothingToSign`] for any other text.
    fn from_str(text: &str) -> Result<Self, ParseError> {
        if let Some((id, _)) = NAMED.iter().find(|(_, name)| *name == text) {
            return Ok(*id);
        }
        let index = text.strip_prefix("input_").and_then(|index| index.parse().ok());
        // `input_01` and `input_+1` are not names.
        index.map(Self::Input).filter(|id| id.name() == text).ok_or_else(|| Code::NothingToSign.into())
    }
}

impl Serialize for RequestId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// How a signature is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Scheme {
    /// ECDSA over secp256k1 of a Keccak-256 digest, low s, with recovery bit.
    Secp256k1Keccak,
    /// ECDSA over secp256k1 of a SHA-256 digest, low s, with recovery bit.
    Secp256k1Sha256,
    /// ECDSA over secp256k1 of a double SHA-256 digest, low s, DER.
    Secp256k1Sha256d,
    /// BIP-340 over secp256k1.
    Bip340,
    /// Ed25519 of the whole message.
    Ed25519,
    /// Any scheme of a Sui account, over a BLAKE2b-256 digest.
    Sui,
    /// ECDSA over the Stark curve.
    Stark,
}

impl Scheme {
    /// Returns the stable name: `secp256k1_keccak256`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Secp256k1Keccak => "secp256k1_keccak256",
            Self::Secp256k1Sha256 => "secp256k1_sha256",
            Self::Secp256k1Sha256d => "secp256k1_sha256d",
            Self::Bip340 => "bip340",
            Self::Ed25519 => "ed25519",
            Self::Sui => "sui",
            Self::Stark => "stark",
        }
    }
}

impl fmt::Display for Scheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Something to sign: who signs, how, the payload in its native type, and its digest.
///
/// Hardware signers and browser wallets take the payload; few take a bare digest.
#[derive(Clone)]
#[non_exhaustive]
pub struct SigningRequest<P> {
    /// Which payload of the order this is.
    pub id: RequestId,
    /// The account whose signature is needed, as its network's users write it.
    pub signer: String,
    /// How the signature is made.
    pub scheme: Scheme,
    /// The payload in its native type.
    pub payload: P,
    /// The bytes that the digest is computed from.
    pub message: Vec<u8>,
    /// What is signed. Ed25519 signs the message itself, so then this is the message too.
    pub digest: Vec<u8>,
}

impl<P> SigningRequest<P> {
    /// Creates a request.
    #[must_use]
    pub const fn new(id: RequestId, signer: String, scheme: Scheme, payload: P, message: Vec<u8>, digest: Vec<u8>) -> Self {
        Self { id, signer, scheme, payload, message, digest }
    }

    /// Converts the payload.
    #[must_use]
    pub fn map<Q>(self, convert: impl FnOnce(P) -> Q) -> SigningRequest<Q> {
        let Self { id, signer, scheme, payload, message, digest } = self;
        SigningRequest { id, signer, scheme, payload: convert(payload), message, digest }
    }
}

impl<P> fmt::Display for SigningRequest<P> {
    /// Writes which payload it is, who signs, how, and the digest, or the length of a message that is signed without one.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { id, signer, scheme, digest, .. } = self;
        if *digest == self.message {
            return write!(f, "{id} by {signer}, {scheme}, message of {} bytes", digest.len());
        }
        write!(f, "{id} by {signer}, {scheme}, digest {}", Hex(digest.clone()))
    }
}

impl<P> fmt::Debug for SigningRequest<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SigningRequest({self})")
    }
}

/// What a signed transaction does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Role {
    /// Sets a token allowance to zero.
    ApprovalReset,
    /// Approves the token amount.
    Approval,
    /// Locks the funds; also sends the approval where the chain allows several calls in one transaction.
    Initiate,
    /// Redeems with the secret.
    Redeem,
    /// Refunds after the timelock.
    Refund,
    /// Claims affiliate earnings.
    Claim,
}

impl Role {
    /// Every role.
    pub const ALL: &[Self] = &[Self::ApprovalReset, Self::Approval, Self::Initiate, Self::Redeem, Self::Refund, Self::Claim];

    /// Returns the stable name, in snake case.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::ApprovalReset => "approval_reset",
            Self::Approval => "approval",
            Self::Initiate => "initiate",
            Self::Redeem => "redeem",
            Self::Refund => "refund",
            Self::Claim => "claim",
        }
    }

    /// Returns whether it sets a token allowance, which moves no funds by itself.
    #[must_use]
    pub const fn is_approval(self) -> bool {
        matches!(self, Self::ApprovalReset | Self::Approval)
    }
}

impl fmt::Display for Role {
    /// Writes the stable name.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Serialize for Role {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for Role {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = Cow::<str>::deserialize(deserializer)?;
        let unknown = || de::Error::custom(format_args!("unknown role of a transaction: {}", escape_untrusted(&name)));
        Self::ALL.iter().copied().find(|role| role.name() == name).ok_or_else(unknown)
    }
}

/// A transaction with all its signatures, ready to be broadcast.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SignedTransaction<T> {
    /// What it does.
    pub role: Role,
    /// Its id, as explorers write it.
    pub id: String,
    /// The bytes of the signed transaction, as [`VerifiedOrder::matches_bytes`](super::VerifiedOrder::matches_bytes) takes them: on Starknet
    /// JSON, on Sui BCS of the transaction and its signatures, elsewhere what nodes accept.
    pub bytes: Vec<u8>,
    /// The transaction in its native type.
    pub native: T,
}

impl<T> SignedTransaction<T> {
    /// Creates a signed transaction.
    #[must_use]
    pub const fn new(role: Role, id: String, bytes: Vec<u8>, native: T) -> Self {
        Self { role, id, bytes, native }
    }

    /// Converts the native transaction.
    #[must_use]
    pub fn map<U>(self, convert: impl FnOnce(T) -> U) -> SignedTransaction<U> {
        let Self { role, id, bytes, native } = self;
        SignedTransaction { role, id, bytes, native: convert(native) }
    }
}

/// The body of the gasless `PATCH /v2/orders/{id}?action=initiate`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct GaslessSubmission {
    /// The signature, or on Solana the whole transaction, in the form that the service expects.
    pub signature: String,
}

impl GaslessSubmission {
    /// Creates the body of the request.
    #[must_use]
    pub const fn new(signature: String) -> Self {
        Self { signature }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_requests_are_read_back() {
        for id in NAMED.map(|(id, _)| id).into_iter().chain([RequestId::Input(0), RequestId::Input(17)]) {
            assert_eq!(id.name().parse(), Ok(id));
        }
        for text in ["", "input_", "input_01", "input_+1", "Initiate", "input_99999999999999999999999"] {
            assert_eq!(text.parse::<RequestId>().unwrap_err().code(), Code::NothingToSign, "{text}");
        }
    }

    #[test]
    fn roles_are_read_back() {
        for role in Role::ALL {
            assert_eq!(serde_json::from_str::<Role>(&serde_json::to_string(role).unwrap()).unwrap(), *role);
        }
        let error = serde_json::from_str::<Role>("\"donate\"").unwrap_err();
        assert!(error.to_string().starts_with("unknown role of a transaction: donate"), "{error}");
    }
}
