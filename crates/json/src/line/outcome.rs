//! The output for one line of the batch (`docs/spec/batch.md#result`), and requests to external signers.

use countersign::{Policy, Refusal, Registry, RequestId, SigningRequest, Unsigned, report::Hex};
use countersign_core::json::{self, Cursor};
use serde::ser::{Serialize, SerializeMap, Serializer};

use super::Case;
use crate::dispatch::Artefacts;

/// The result of one line of the batch. It serializes as one line of output.
#[derive(Debug)]
#[non_exhaustive]
pub struct Outcome {
    /// The line's id; `None` unless exactly one can be read.
    pub id: Option<String>,
    /// The prepared order, signed if the wallet context has a key; or why it was refused.
    pub result: Result<Unsigned, Refusal>,
}

impl Outcome {
    /// Verifies, prepares and signs the order of one line. It never panics, whatever the bytes.
    #[must_use]
    pub fn from_line(line: &[u8], registry: &Registry, policy: &Policy) -> Self {
        let value = match json::parse_case(line) {
            Ok(value) => value,
            Err(refusal) => return Self { id: json::salvage_id(line), result: Err(refusal) },
        };
        let root = Cursor::root(&value, "");
        let id = root.object().and_then(|members| members.need("id")?.text().map(str::to_owned));
        match id {
            Ok(id) => {
                let result = Case::from_value(&value).and_then(|case| case.run(registry, policy)).map(|(order, _)| order);
                Self { id: Some(id), result }
            }
            Err(refusal) => Self { id: None, result: Err(refusal) },
        }
    }

    /// Creates the outcome of a line that was refused before it was parsed.
    #[must_use]
    pub const fn refused(id: Option<String>, refusal: Refusal) -> Self {
        Self { id, result: Err(refusal) }
    }

    /// Returns whether the order was accepted.
    #[must_use]
    pub const fn is_ok(&self) -> bool {
        self.result.is_ok()
    }
}

impl Serialize for Outcome {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("id", &self.id)?;
        map.serialize_entry("ok", &self.is_ok())?;
        match &self.result {
            Ok(order) => {
                map.serialize_entry("family", order.family().name())?;
                map.serialize_entry("order_id", &order.order_id())?;
                map.serialize_entry("artefacts", &Artefacts(order))?;
                map.serialize_entry("summary", &order.summary())?;
                map.serialize_entry("warnings", order.warnings())?;
            }
            Err(refusal) => map.serialize_entry("error", refusal)?,
        }
        map.end()
    }
}

/// A signing request as JSON (`docs/spec/batch.md#external-signatures`).
#[derive(Debug, Clone, serde::Serialize)]
#[non_exhaustive]
pub struct Request {
    /// Which payload of the order this is; the signature is attached under this name.
    #[serde(rename = "name")]
    pub id: RequestId,
    /// The account whose signature is needed.
    pub signer: String,
    /// The signature scheme.
    pub scheme: &'static str,
    /// The bytes that the digest is computed from; in JSON as `0x` hex.
    pub payload: Hex,
    /// What is signed; in JSON as `0x` hex. Ed25519 signs the payload itself, so then this is the payload too.
    pub digest: Hex,
}

impl<P> From<SigningRequest<P>> for Request {
    fn from(request: SigningRequest<P>) -> Self {
        let SigningRequest { id, signer, scheme, message, digest, .. } = request;
        Self { id, signer, scheme: scheme.name(), payload: Hex(message), digest: Hex(digest) }
    }
}
