//! Where something is in a document: a member, and bytes of the payload in it. And the bytes behind the text of a payload.

use std::ops::Range;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use countersign::json::Value;

/// A JSON pointer, and the bytes of the payload at it that are meant; `None` means the whole member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) at: String,
    pub(super) bytes: Option<Range<usize>>,
}

impl Place {
    /// Parses the location of a refusal: `/response/result/versioned_tx#4-36`.
    pub(super) fn new(location: &str) -> Self {
        let range = location.rsplit_once('#').and_then(|(at, range)| {
            let (start, end) = range.split_once('-')?;
            let (start, end) = (start.parse().ok()?, end.parse().ok()?);
            (start <= end).then_some((at, start..end))
        });
        match range {
            Some((at, bytes)) => Self { at: at.to_owned(), bytes: Some(bytes) },
            None => Self { at: location.to_owned(), bytes: None },
        }
    }

    /// Returns the keys of the pointer, unescaped, below a document's name: `/response` or `/order`.
    pub(super) fn keys_below(&self, document: &str) -> Option<Vec<String>> {
        let rest = self.at.strip_prefix(document)?;
        (rest.is_empty() || rest.starts_with('/'))
            .then(|| rest.split('/').skip(1).map(|key| key.replace("~1", "/").replace("~0", "~")).collect())
    }
}

/// Finds the value below a document's root.
pub(super) fn find<'v>(root: &'v Value<'v>, keys: &[String]) -> Option<&'v Value<'v>> {
    let Some((key, rest)) = keys.split_first() else { return Some(root) };
    match root {
        Value::Object(members) => find(&members.iter().find(|(name, _)| name == key)?.1, rest),
        Value::Array(items) => find(items.get(key.parse::<usize>().ok()?)?, rest),
        _ => None,
    }
}

/// The text encoding of a payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TextForm {
    Hex,
    PrefixedHex,
    Base64,
    /// A JSON array with a number for each byte.
    Numbers,
}

/// The bytes of a payload, and the form in which the document has them.
#[derive(Debug, Clone)]
pub(super) struct Payload {
    pub(super) bytes: Vec<u8>,
    pub(super) form: TextForm,
}

impl Payload {
    /// Decodes a payload; `None` if the value is not one. Hex is tried first, as the families do.
    pub(super) fn new(value: &Value<'_>) -> Option<Self> {
        let (text, form) = match value {
            Value::Bytes(bytes) => return Some(Self { bytes: bytes.to_vec(), form: TextForm::Numbers }),
            Value::String(text) => match text.strip_prefix("0x") {
                Some(digits) => (digits, TextForm::PrefixedHex),
                None => (text.as_ref(), TextForm::Hex),
            },
            _ => return None,
        };
        if let Ok(bytes) = hex::decode(text) {
            return Some(Self { bytes, form });
        }
        STANDARD.decode(text).ok().map(|bytes| Self { bytes, form: TextForm::Base64 })
    }

    /// Writes other bytes in the same form, as JSON.
    pub(super) fn to_json(&self, bytes: &[u8]) -> String {
        match self.form {
            TextForm::Hex => format!("\"{}\"", hex::encode(bytes)),
            TextForm::PrefixedHex => format!("\"0x{}\"", hex::encode(bytes)),
            TextForm::Base64 => format!("\"{}\"", STANDARD.encode(bytes)),
            TextForm::Numbers => format!("{bytes:?}"),
        }
    }
}
