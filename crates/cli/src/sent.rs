//! What a wallet sent, in the forms of files: JSON of a wallet or a node, and bytes as they are, in hex, base64 or base58.
//!
//! Only the form is decided here. Whether it is a transaction of the order, the library decides.

use std::collections::BTreeMap;
use std::fmt;

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use countersign::bitcoin::received;
use countersign::{Code, Family, Refusal, Role, Verified, Warnings, json, solana, text};
use serde::de::{Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::failure::{Failure, usage};

/// How the bytes of a PSBT begin.
const PSBT: &[u8] = b"psbt\xff";
/// Base64 with or without its padding, because wallets differ.
const BASE64: GeneralPurpose =
    GeneralPurpose::new(&STANDARD, GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent));
/// The longest text that is decoded as base58. A Solana transaction has at most 4096 bytes.
const MAX_BASE58: usize = 6_000;
/// How many objects around a transaction are taken off. Nodes and wallets have at most three.
const MAX_WRAPPERS: u8 = 4;
/// The most members of a wrapper. Nodes write some twenty.
const MAX_MEMBERS: usize = 64;

/// What a wallet sent.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Sent {
    /// A transaction in its family's JSON.
    Json(Vec<u8>),
    /// The bytes of a transaction or a PSBT.
    Bytes(Vec<u8>),
    /// What says what a transaction did, such as the status of bundled calls, or a receipt.
    Calls(Vec<u8>),
    /// A transaction, and the object around it that says what it did.
    Shown { sent: Box<Self>, effect: Vec<u8> },
}

/// What was proven.
pub(crate) struct Found {
    pub(crate) role: Role,
    /// What the wallet changed although it may.
    pub(crate) changed: Warnings,
    /// `transaction`, `psbt`, `calls` or `receipt`.
    pub(crate) form: &'static str,
    /// The id of the transaction, where it is known.
    pub(crate) transaction: Option<String>,
    /// The fee of a PSBT in base units, where it has every output that it spends.
    pub(crate) fee: Option<u64>,
}

/// The members of an object, each as it is written. One that is null is missing.
struct Wrapped<'a>(BTreeMap<String, &'a RawValue>);

impl<'a> Wrapped<'a> {
    fn get(&self, name: &str) -> Option<&'a RawValue> {
        self.0.get(name).copied().filter(|value| value.get() != "null")
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Wrapped<'a> {
    /// Refuses a member that is repeated, and an object that has more members than any wrapper.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members;

        impl<'m> Visitor<'m> for Members {
            type Value = BTreeMap<String, &'m RawValue>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'m>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = BTreeMap::new();
                while let Some((name, value)) = map.next_entry::<String, &RawValue>()? {
                    if members.insert(name, value).is_some() || members.len() > MAX_MEMBERS {
                        return Err(A::Error::custom("this is no wrapper"));
                    }
                }
                Ok(members)
            }
        }
        deserializer.deserialize_map(Members).map(Self)
    }
}

impl Sent {
    /// Reads the content of a file. `name` is what messages call it.
    pub(crate) fn read(content: &[u8], name: &str, family: Family) -> Result<Self, Failure> {
        let wrong = |why: &str| usage(format_args!("{name}: {why}"));
        if content.len() > json::MAX_BYTES {
            return Err(wrong("larger than any transaction; pass one transaction"));
        }
        if content.trim_ascii().is_empty() {
            return Err(wrong("empty; pass what the wallet returned, or what a node returns for the transaction's id"));
        }
        if [&b"\xef\xbb\xbf"[..], b"\xff\xfe", b"\xfe\xff"].iter().any(|mark| content.starts_with(mark)) {
            return Err(wrong("begins with a byte order mark; save it as UTF-8 without one"));
        }
        let is_text = |bytes: &[u8]| bytes.iter().all(|byte| byte.is_ascii_graphic() || byte.is_ascii_whitespace());
        match std::str::from_utf8(content).map(str::trim_ascii) {
            // JSON may have other characters, and its reader names what is wrong.
            Ok(text) if text.starts_with('{') => Self::from_json(text, family, MAX_WRAPPERS).map_err(|why| wrong(&why)),
            Ok(text) if text.starts_with('[') => Err(wrong("a list; pass one transaction")),
            Ok(text) if is_text(content) => Self::from_text(text, family).map_err(|why| wrong(&why)),
            _ => Ok(Self::Bytes(content.to_vec())),
        }
    }

    /// Takes a transaction out of what a wallet or a node wraps it in. `left` is how many wrappers may still be taken off: each is read from
    /// its start, so a file of nothing but wrappers would take time without end.
    fn from_json(text: &str, family: Family, left: u8) -> Result<Self, String> {
        let as_it_is = |text: &str| {
            let bytes = text.as_bytes().to_vec();
            Ok(if countersign_json::is_effect(family, &bytes) { Self::Calls(bytes) } else { Self::Json(bytes) })
        };
        let Some(inside) = left.checked_sub(1) else { return as_it_is(text) };
        // What is not JSON, or repeats a member, is refused by the family's own reader, with its place.
        let Ok(wrapped) = serde_json::from_str::<Wrapped<'_>>(text) else { return as_it_is(text) };
        let inner = |value: &RawValue| -> Result<Self, String> {
            let sent = match value.get() {
                text if text.starts_with('{') => Self::from_json(text, family, inside)?,
                text => Self::from_text(&string(text)?, family)?,
            };
            Ok(sent.beside(text, family))
        };
        if left == MAX_WRAPPERS && wrapped.get("jsonrpc").is_some() {
            return match (wrapped.get("result"), wrapped.get("error")) {
                (Some(result), _) => inner(result),
                (None, Some(error)) => Err(format!("the node answered with an error: {}", text::quote_untrusted(error.get()))),
                (None, None) => Err("the node does not know the transaction; wait until it is sent, or ask another node".to_owned()),
            };
        }
        let found = countersign_json::wrappers(family).iter().find_map(|name| wrapped.get(name));
        match (family, found) {
            // The answer to getTransaction: the bytes and their encoding, and what they did.
            (Family::Solana, Some(value)) => {
                let has_meta = wrapped.get("meta").is_some();
                match serde_json::from_str::<(String, String)>(value.get()) {
                    Ok((encoded, encoding)) => {
                        let sent = Self::Bytes(encoded_as(&encoded, &encoding)?);
                        Ok(if has_meta { sent.shown_by(text) } else { sent })
                    }
                    Err(_) if value.get().starts_with('"') => inner(value),
                    Err(_) if has_meta => Ok(Self::Calls(text.into())),
                    Err(_) => {
                        let why =
                            "the transaction is decoded, so its signatures cannot be proven; ask the node with \"encoding\": \"base64\"";
                        Err(why.to_owned())
                    }
                }
            }
            (_, Some(value)) => inner(value),
            (_, None) => match (family, wrapped.get("bytes"), wrapped.get("signature")) {
                // What the wallet standard's signTransaction and signAndExecuteTransaction return.
                (Family::Sui, Some(bytes), Some(signature)) => {
                    let sent = format!(r#"{{"tx_bytes":{},"signatures":[{}]}}"#, bytes.get(), signature.get());
                    Ok(Self::Json(sent.into_bytes()).beside(text, family))
                }
                _ => as_it_is(text),
            },
        }
    }

    /// Keeps the object around what was sent, where it says that the transaction failed. What cannot be read there says nothing.
    fn beside(self, outer: &str, family: Family) -> Self {
        match countersign_json::check_outcome(family, outer.as_bytes()) {
            Err(refusal) if refusal.code() == Code::TransactionMismatch => self.shown_by(outer),
            _ => self,
        }
    }

    fn shown_by(self, effect: &str) -> Self {
        Self::Shown { sent: Box::new(self), effect: effect.into() }
    }

    fn from_text(text: &str, family: Family) -> Result<Self, String> {
        let text = if text.starts_with('"') { string(text)? } else { text.to_owned() };
        let text: String = text.split_ascii_whitespace().collect();
        let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")).unwrap_or(&text);
        if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            // A felt may be written without its leading zeros.
            if digits.len() == 64 || family == Family::Starknet && digits.len() < 64 {
                return Err(not_an_id());
            }
            return hex::decode(digits)
                .map(Self::Bytes)
                .map_err(|_| "an odd number of hex digits; the text is cut, copy it again".to_owned());
        }
        let base58 = || Some(&text).filter(|text| text.len() <= MAX_BASE58).and_then(|text| bs58::decode(text).into_vec().ok());
        if base58().is_some_and(|bytes| matches!(bytes.len(), 32 | 64)) {
            return Err(not_an_id());
        }
        // Text in base58 is often also base64 of something else, which is then no transaction.
        let is_transaction = |bytes: &Vec<u8>| family != Family::Solana || solana::received::from_bytes(bytes).is_ok();
        let base64 = BASE64.decode(&text).ok();
        let read = base64.as_ref().filter(|bytes| is_transaction(bytes)).cloned().or_else(|| base58().filter(is_transaction));
        let unknown = || "neither JSON nor a transaction in hex, base64 or base58; pass what the wallet returned as it is".to_owned();
        read.or(base64).map(Self::Bytes).ok_or_else(unknown)
    }

    /// Proves what was sent.
    pub(crate) fn find(&self, order: &Verified) -> Result<Found, Refusal> {
        let found = |(role, changed)| Found { role, changed, form: "transaction", transaction: None, fee: None };
        match (self, order) {
            (Self::Calls(effect), _) => by_effect(order, effect),
            // What is not the owner's own transaction may pay the order nevertheless. If it does not, the difference is what helps.
            (Self::Shown { sent, effect }, _) => match sent.find(order) {
                Ok(found) => countersign_json::check_outcome(order.family(), effect).map(|()| found),
                Err(refusal) if may_be_of_another(&refusal) => by_effect(order, effect).map_err(|_| refusal),
                Err(refusal) => Err(refusal),
            },
            (Self::Json(text), _) => countersign_json::match_with_warnings(order, text).map(found),
            (Self::Bytes(bytes), Verified::Bitcoin(order)) if bytes.starts_with(PSBT) => {
                let compare = || {
                    let psbt = received::psbt_from_bytes(bytes)?;
                    let matched = order.deposit().match_psbt_with_warnings(&psbt)?;
                    order.check_refused(&matched.1)?;
                    let fee = received::psbt_fee(&psbt)?.map(|fee| fee.to_sat());
                    Ok(Found { form: "psbt", fee, ..found(matched) })
                };
                compare().map_err(|refusal: Refusal| refusal.with_prefix("/psbt"))
            }
            (Self::Bytes(bytes), _) => {
                order.match_bytes_with_warnings(bytes).map(found).map_err(|refusal| refusal.with_prefix("/transaction"))
            }
        }
    }
}

/// Returns whether a refused transaction may be that of another account, whose effect then decides. It may have a form that no order's has.
/// Not where the policy refuses what the wallet changed: such a transaction is the owner's.
pub(crate) fn may_be_of_another(refusal: &Refusal) -> bool {
    refusal.code() != Code::WarningRefused
}

/// Proves the payment by what a transaction did.
fn by_effect(order: &Verified, effect: &[u8]) -> Result<Found, Refusal> {
    let transaction = Some(countersign_json::find_payment(order, effect)?);
    Ok(Found { role: Role::Initiate, changed: Warnings::default(), form: "calls", transaction, fee: None })
}

fn not_an_id() -> String {
    "the id of a transaction, not a transaction; pass it with --id, and the endpoints of its chain with --nodes".to_owned()
}

fn string(text: &str) -> Result<String, String> {
    serde_json::from_str(text)
        .map_err(|_| "the transaction is neither an object nor text; pass what the wallet returned as it is".to_owned())
}

fn encoded_as(text: &str, encoding: &str) -> Result<Vec<u8>, String> {
    let bytes = match encoding {
        "base64" => BASE64.decode(text).ok(),
        "base58" if text.len() <= MAX_BASE58 => bs58::decode(text).into_vec().ok(),
        _ => None,
    };
    bytes.ok_or_else(|| "the transaction is not in base64 or base58; ask the node with \"encoding\": \"base64\"".to_owned())
}
