//! What this crate makes, for the bindings of other languages: bytes of JSON in, and values out that serialize.

use std::fmt;

use countersign::json::{self, At};
use countersign::text::quote_untrusted;
use countersign::{Policy, Refusal, Registry, Unsigned, number};
use serde::Serialize;

use crate::receipt::{Difference, Documents, OwnLimit, Receipt, ReceiptKey, Verdict};
use crate::{Catalogue, CatalogueError, LANGUAGES, NotThisOrder, Page, Sentence};

/// A page as text, and the sentence above it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct OrderPage {
    /// Whether the order was verified.
    pub ok: bool,
    /// The page: a whole HTML document.
    pub html: String,
    /// The sentence, with its parts; `None` for a refused order.
    pub sentence: Option<Sentence>,
    /// The sentence in the chosen language; `None` for a refused order.
    pub text: Option<String>,
}

/// Why there is no page.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum PageError {
    /// A document is not JSON.
    Document(Refusal),
    /// There is no catalogue of this language, and none was passed.
    Language,
    /// The catalogue cannot be used.
    Messages(CatalogueError),
    /// The prepared order is another one.
    Prepared(NotThisOrder),
}

impl PageError {
    /// Returns the argument that is invalid, as a JSON pointer.
    #[must_use]
    pub fn at(&self) -> &str {
        match self {
            Self::Document(refusal) => refusal.location(),
            Self::Language => "/language",
            Self::Messages(_) => "/messages",
            Self::Prepared(_) => "/prepared",
        }
    }
}

impl fmt::Display for PageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Document(refusal) => refusal.fmt(f),
            Self::Language => write!(f, "{}, or the messages of another language", LANGUAGES.join(", ")),
            Self::Messages(error) => error.fmt(f),
            Self::Prepared(_) => f.write_str("the order of these documents, prepared with this registry and policy"),
        }
    }
}

impl std::error::Error for PageError {}

/// Verifies an order and writes its page: see [`Page`].
///
/// `messages` is the [`Catalogue`] of `language`, in Fluent's syntax; without it, `language` is one of [`LANGUAGES`].
///
/// # Errors
///
/// [`PageError`] if a document is not JSON, or another argument is invalid. What is wrong in a document is on the page.
pub fn order_page(
    documents: &Documents<'_>,
    registry: &Registry,
    policy: &Policy,
    language: &str,
    messages: Option<&str>,
    prepared: Option<&Unsigned>,
) -> Result<OrderPage, PageError> {
    let catalogue = match messages {
        Some(messages) => Catalogue::new(language, messages).map_err(PageError::Messages)?,
        None => Catalogue::of(language).ok_or(PageError::Language)?,
    };
    let parse = |text, at: At<'_>| json::parse(text).map_err(|refusal| PageError::Document(refusal.within(&at)));
    let (request, response) = (parse(documents.request, At::REQUEST)?, parse(documents.response, At::RESPONSE)?);
    let record = documents.record.map(|record| parse(record, At::RECORD)).transpose()?;
    let documents = crate::Documents { request: &request, response: &response, record: record.as_ref() };
    let mut page = Page::new(documents, registry, policy).in_language(&catalogue);
    if let Some(order) = prepared {
        page = page.with_prepared(order).map_err(PageError::Prepared)?;
    }
    let sentence = page.verdict().ok().map(|order| Sentence::new(&order.terms(), order.warnings()));
    let text = sentence.as_ref().map(|sentence| sentence.in_language(&catalogue));
    Ok(OrderPage { ok: page.verdict().is_ok(), html: page.to_html(), sentence, text })
}

/// What a check of a receipt found, with what the receipt says.
///
/// A receipt is free text of whoever wrote it: anybody can compute its digest. Here such text is one plain word or quoted, cut, and without
/// characters that forge the display ([`countersign::text::quote_untrusted`]). That does not make it safe as HTML.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct CheckedReceipt {
    /// Whether everything is as the receipt says.
    pub is_proven: bool,
    /// The program that wrote the receipt: its own words, quoted if it is not this version.
    pub program: String,
    /// SHA-256 of the receipt's body in hex, as the receipt states it. It is right unless `/digest` differs.
    pub digest: String,
    /// The public key of the valid signature, in hex; `None` without one.
    pub signer: Option<String>,
    /// The verdict; `None` unless it is proven.
    pub verdict: Option<Verdict>,
    /// The limits of the receipt's policy that are not the default ones.
    pub own_limits: Vec<OwnLimit>,
    /// What differs. Each part is quoted.
    pub differences: Vec<Difference>,
}

/// Verifies documents, and writes a receipt of the verdict: see [`Receipt::new`]. `key` signs it: a seed of 32 bytes in hex.
///
/// # Errors
///
/// A [`Refusal`] as of [`Receipt::new`], or at `/key`, never with any part of the key.
pub fn write_receipt(documents: &Documents<'_>, registry: &Registry, policy: &Policy, key: Option<&str>) -> Result<Vec<u8>, Refusal> {
    let mut receipt = Receipt::new(documents, registry, policy)?;
    if let Some(key) = key {
        receipt.sign(&ReceiptKey::parse(key).map_err(|refusal| refusal.with_prefix("/key"))?);
    }
    Ok(receipt.to_json())
}

/// Checks a receipt: see [`Receipt::check`]. With a policy, the receipt must have been made under it. `signer` is the public key that must
/// have signed, 32 bytes in hex.
///
/// # Errors
///
/// A [`Refusal`] at the first member of the receipt that is missing, unknown or malformed, or at `/signer`.
pub fn check_receipt(bytes: &[u8], registry: &Registry, policy: Option<&Policy>, signer: Option<&str>) -> Result<CheckedReceipt, Refusal> {
    let digits = |signer: &str| number::bare_hex_array::<32>(signer.strip_prefix("0x").unwrap_or(signer));
    let signer = signer.map(digits).transpose().map_err(|error| Refusal::new(error, "/signer"))?;
    let receipt = Receipt::from_json(bytes)?;
    let check = match policy {
        Some(policy) => receipt.check_with_policy(policy, registry, signer),
        None => receipt.check(registry, signer),
    };
    Ok(CheckedReceipt {
        is_proven: check.is_proven(),
        program: receipt.written_by(),
        digest: quote_untrusted(receipt.digest()),
        signer: check.signer().map(str::to_owned),
        verdict: check.is_proven().then(|| receipt.verdict().clone()),
        own_limits: receipt.own_limits(),
        differences: check.differences().iter().map(Difference::quoted).collect(),
    })
}
