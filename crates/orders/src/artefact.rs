//! What a wallet makes of an order, in one shape for all families.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use countersign::{Family, Role};
use countersign_json::artefact_members;
use serde_json::Value as Json;

/// A transaction or message of an order, as an outside library computed it. Values are absent where a family has no such value, or where the
/// order has no key.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Artefact {
    /// Its name in the batch contract: `approval`, `initiate`, `typed_data`, `invoke`, `transaction`, `gasless` or `deposit`. All but `deposit`
    /// are names of a [`RequestId`](countersign::RequestId).
    pub name: String,
    /// The role of the transaction; `None` for what the service submits.
    pub role: Option<Role>,
    /// The unsigned bytes, such as what EVM chains hash, or the transaction without witnesses on Bitcoin-like chains.
    pub payload: Option<Vec<u8>>,
    /// What is signed. `None` where the payload itself is signed, and where each input has its own digest.
    pub digest: Option<[u8; 32]>,
    /// The signature, in the text form of [`Unsigned::attach_text`](countersign::Unsigned::attach_text), where it is not a part of `signed` alone.
    pub signature: Option<String>,
    /// The signed transaction, as nodes take it; on the gasless path of Solana, what the service takes.
    pub signed: Option<Vec<u8>>,
    /// The id of the transaction, as explorers write it.
    pub id: Option<String>,
    /// Everything that the library computed, as JSON in the form of the batch contract: also calldata, addresses, payment URIs and PSBTs.
    pub json: String,
}

impl Artefact {
    /// Reads an artefact of a family; `None` for one that the order does not have.
    pub(crate) fn read(family: Family, name: &str, value: &Json) -> Option<Self> {
        let (members, own) = (artefact_members(family)?, value.as_object()?);
        let get = |names: &[&str]| names.iter().find_map(|name| own.get(*name)).filter(|value| !value.is_null());
        let text = |names| get(names).and_then(Json::as_str);
        let bytes = |names| {
            let text = text(names)?;
            if members.is_base64 { STANDARD.decode(text).ok() } else { hex::decode(text).ok() }
        };
        let role = match name {
            "approval" => Some(Role::Approval),
            "initiate" | "invoke" | "transaction" | "deposit" => Some(Role::Initiate),
            _ => None,
        };
        Some(Self {
            name: name.to_owned(),
            role,
            payload: bytes(members.payload),
            digest: text(members.digest).and_then(digest),
            signature: get(members.signature).and_then(signature),
            signed: bytes(&["signed", "submission"]),
            id: text(members.id).map(str::to_owned),
            json: value.to_string(),
        })
    }
}

/// Reads a digest in hex. Felts are written without leading zeros.
fn digest(text: &str) -> Option<[u8; 32]> {
    hex::decode_to_array(format!("{:0>64}", text.trim_start_matches("0x"))).ok()
}

/// Returns a signature as one text. On Starknet it is a list of felts.
fn signature(value: &Json) -> Option<String> {
    match value {
        Json::String(text) => Some(text.clone()),
        Json::Array(felts) => felts.iter().map(Json::as_str).collect::<Option<Vec<_>>>().map(|felts| felts.join(",")),
        _ => None,
    }
}
