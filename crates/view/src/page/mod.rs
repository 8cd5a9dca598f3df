//! A page that shows an order down to its bytes: `docs/spec/page.md`.
//!
//! It is one HTML document without script, which loads nothing. Its content security policy permits its own style sheet and nothing else.

mod cards;
mod html;
mod legs;
mod marks;
mod place;
mod rebuild;

use std::fmt;

use countersign::json::{At, Cursor, Value};
use countersign::wire::Read as _;
use countersign::{CreateOrder, Policy, Proposal, Refusal, Registry, Summary, Unsigned, Verified, Warnings};

#[cfg(feature = "evm")]
use crate::hashes::Safe;
use crate::hashes::{HashCard, hash_cards};
use crate::{Catalogue, Sentence};
use legs::{Legs, legs};
use rebuild::{Rebuilt, rebuild};

/// The documents of an order as they were received, each parsed by [`countersign::json::parse`].
#[derive(Debug, Clone, Copy)]
#[allow(clippy::exhaustive_structs, reason = "an order has these documents")]
pub struct Documents<'d> {
    /// The create-order request that the wallet sent.
    pub request: &'d Value<'d>,
    /// The service's response, in its envelope.
    pub response: &'d Value<'d>,
    /// The order record, bare or in its envelope.
    pub record: Option<&'d Value<'d>>,
}

fn verify(documents: Documents<'_>, registry: &Registry, policy: &Policy) -> Result<Verified, Refusal> {
    let request = CreateOrder::read(Cursor::new(documents.request, At::REQUEST))?;
    countersign::verify(Proposal::from_parsed(request, documents.response, documents.record), registry, policy)
}

/// What a page says about payloads that are prepared or signed.
#[derive(Debug)]
struct Prepared {
    summary: Summary,
    warnings: Warnings,
    requests: Vec<ToSign>,
    cards: Vec<HashCard>,
}

/// One request to a signer, and its signature if there is one.
#[derive(Debug)]
struct ToSign {
    id: String,
    signer: String,
    scheme: String,
    digest: String,
    signature: Option<String>,
}

/// A prepared order was not made from the documents of the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "there is nothing more to say")]
pub struct NotThisOrder;

impl fmt::Display for NotThisOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the prepared order was made from other documents, or with another registry or policy; prepare the order of this page")
    }
}

impl std::error::Error for NotThisOrder {}

/// An order as a page: what it says, which bytes say it, and where it differs from its terms.
///
/// ```
/// use countersign::{Policy, Registry, json};
/// use countersign_view::{Documents, Page};
///
/// # fn main() -> Result<(), countersign::Refusal> {
/// let request = json::parse(br#"{"source": {"asset": "base:usdc"}}"#)?;
/// let response = json::parse(br#"{"status": "Ok", "result": {}}"#)?;
/// let documents = Documents { request: &request, response: &response, record: None };
/// let page = Page::new(documents, &Registry::default(), &Policy::default());
/// assert!(page.verdict().is_err());
/// assert!(page.to_html().contains("Do not sign"));
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Page<'d> {
    documents: Documents<'d>,
    verdict: Result<Verified, Refusal>,
    rebuilt: Option<Rebuilt>,
    legs: Option<Legs>,
    registry: [u8; 32],
    has_own_policy: bool,
    sentence: Option<(String, String)>,
    prepared: Option<Prepared>,
    ending: Vec<(String, String)>,
}

impl<'d> Page<'d> {
    /// Verifies an order, and keeps what a page says about it. A refused order makes a page too.
    #[must_use]
    pub fn new(documents: Documents<'d>, registry: &Registry, policy: &Policy) -> Self {
        let verdict = verify(documents, registry, policy);
        let rebuilt = verdict.as_ref().err().map(|refusal| rebuild(documents, refusal, registry, policy));
        let mut page = Self {
            documents,
            legs: None,
            verdict,
            rebuilt,
            registry: registry.digest(),
            has_own_policy: *policy != Policy::default(),
            sentence: None,
            prepared: None,
            ending: Vec::new(),
        };
        page.legs = legs(page.order(), documents, registry);
        page.in_language(&Catalogue::english())
    }

    /// Returns the verified order, or why it was refused.
    ///
    /// # Errors
    ///
    /// The [`Refusal`] of [`countersign::verify`].
    pub const fn verdict(&self) -> Result<&Verified, &Refusal> {
        self.verdict.as_ref()
    }

    /// Writes the sentence above the page in another language.
    #[must_use]
    pub fn in_language(mut self, catalogue: &Catalogue) -> Self {
        let sentence = self.verdict.as_ref().ok().map(|order| Sentence::new(&order.terms(), order.warnings()).in_language(catalogue));
        self.sentence = sentence.map(|sentence| (catalogue.language(), sentence));
        self
    }

    /// Adds what the wallet contributed, its warnings, the digests, and the signatures so far. `order` is this order, prepared.
    ///
    /// # Errors
    ///
    /// [`NotThisOrder`] if the page is that of a refused order, or `order` was prepared from other documents, or with another registry or
    /// policy. Its digests would then stand beside bytes that they do not sign.
    pub fn with_prepared(mut self, order: &Unsigned) -> Result<Self, NotThisOrder> {
        if !self.verdict.as_ref().is_ok_and(|verified| order.is_from(verified)) {
            return Err(NotThisOrder);
        }
        let signatures = order.signatures();
        let requests = order.requests().into_iter().map(|request| ToSign {
            signature: signatures.iter().find(|(id, _)| *id == request.id).map(|(_, signature)| signature.clone()),
            id: request.id.to_string(),
            signer: request.signer,
            scheme: request.scheme.to_string(),
            digest: if request.digest == request.message {
                format!("the message itself, {} bytes", request.message.len())
            } else {
                hex::encode_prefixed(&request.digest)
            },
        });
        self.prepared = Some(Prepared {
            requests: requests.collect(),
            summary: order.summary(),
            warnings: order.warnings().clone(),
            cards: hash_cards(order),
        });
        Ok(self)
    }

    /// Adds what became of the order: facts with their labels, such as its stage and the ids of its transactions. They come from the wallet's own
    /// journal, not from the documents of the page.
    #[must_use]
    pub fn with_ending(mut self, facts: &[(impl AsRef<str>, impl AsRef<str>)]) -> Self {
        self.ending = facts.iter().map(|(label, text)| (label.as_ref().to_owned(), text.as_ref().to_owned())).collect();
        self
    }

    /// Adds what Safe shows of a prepared order, to its hash cards. Call it after [`Page::with_prepared`] with the same order.
    #[cfg(feature = "evm")]
    #[must_use]
    pub fn in_safe(mut self, safe: &Safe, order: &Unsigned) -> Self {
        if let Some(prepared) = &mut self.prepared {
            safe.add_to(&mut prepared.cards, order);
        }
        self
    }

    /// Returns the order that the page explains: the verified one, or what a refused one should have been.
    fn order(&self) -> Option<&Verified> {
        self.verdict.as_ref().ok().or_else(|| self.rebuilt.as_ref()?.order.as_ref())
    }

    /// Writes the page.
    #[must_use]
    pub fn to_html(&self) -> String {
        html::page(self)
    }
}
