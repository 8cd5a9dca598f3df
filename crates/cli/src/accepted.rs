//! Prints an accepted order: JSON for programs, text for people.

use countersign::{Code, Family, Summary, Unsigned, Verified, Warnings, report::ByteCoverage};
use countersign_json::Artefacts;

use countersign_json::line::Request;
use countersign_view::hashes::HashCard;
use countersign_view::{Catalogue, Sentence};
use serde::Serialize;

use crate::failure::{Failure, usage};
use crate::psbt::Psbt;
use crate::session::Session;
use crate::{orders, show};

/// An accepted order, with the members that a command prints.
#[derive(Serialize)]
pub(crate) struct Accepted<'a> {
    /// The id of a case; `Some(None)` for a case without an id.
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<Option<&'a str>>,
    ok: bool,
    family: &'static str,
    order_id: Option<&'a str>,
    /// The heading of the artefacts in the text output.
    #[serde(skip)]
    heading: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    artefacts: Option<Artefacts<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sentence: Option<&'a Sentence>,
    /// The sentence in the language of the text output.
    #[serde(skip)]
    headline: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    requests: Option<Vec<Request>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    psbt: Option<Psbt<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hashes: Option<Vec<HashCard>>,
    summary: Summary,
    warnings: &'a Warnings,
    #[serde(skip_serializing_if = "Option::is_none")]
    coverage: Option<Vec<ByteCoverage>>,
    /// Why the order can no longer be paid, as the record has only a time.
    #[serde(skip_serializing_if = "Option::is_none")]
    past: Option<String>,
    /// How far a stored order is, or how it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    progress: Option<&'a orders::Order>,
}

#[derive(Serialize)]
struct Prepared<'p> {
    event: &'static str,
    #[serde(flatten)]
    accepted: &'p Accepted<'p>,
}

impl<'a> Accepted<'a> {
    fn new(family: Family, order_id: Option<&'a str>, summary: Summary, warnings: &'a Warnings) -> Self {
        Self {
            id: None,
            ok: true,
            family: family.name(),
            order_id,
            heading: "",
            artefacts: None,
            sentence: None,
            headline: String::new(),
            requests: None,
            psbt: None,
            hashes: None,
            summary,
            warnings,
            coverage: None,
            past: None,
            progress: None,
        }
    }

    /// Shows a verified order.
    pub(crate) fn verified(order: &'a Verified) -> Self {
        Self::new(order.family(), Some(order.order_id()), order.summary(), order.warnings())
    }

    /// Shows a prepared order and its artefacts, with the signatures so far.
    pub(crate) fn prepared(order: &'a Unsigned) -> Self {
        let is_signed = order.missing().len() < order.requests().len();
        Self {
            heading: if is_signed { "signed" } else { "payloads" },
            artefacts: Some(Artefacts(order)),
            ..Self::new(order.family(), order.order_id(), order.summary(), order.warnings())
        }
    }

    /// Adds the id of a case.
    pub(crate) const fn with_id(mut self, id: Option<&'a str>) -> Self {
        self.id = Some(id);
        self
    }

    /// Adds the sentence above the summary.
    pub(crate) fn with_sentence(mut self, sentence: &'a Sentence, catalogue: &Catalogue) -> Self {
        self.headline = sentence.in_language(catalogue);
        self.sentence = Some(sentence);
        self
    }

    /// Adds the requests to external signers. The text output shows them in place of the artefacts.
    pub(crate) fn with_requests(mut self, requests: Vec<Request>) -> Self {
        self.requests = Some(requests);
        self
    }

    /// Adds the PSBT that an external signer needs.
    pub(crate) fn with_psbt(mut self, psbt: Option<Psbt<'a>>) -> Self {
        self.psbt = psbt;
        self
    }

    /// Adds what devices show of each request.
    pub(crate) fn with_hashes(mut self, hashes: Vec<HashCard>) -> Self {
        self.hashes = Some(hashes);
        self
    }

    /// Adds which bytes of the response each line of the summary describes.
    pub(crate) fn with_coverage(mut self, coverage: Vec<ByteCoverage>) -> Self {
        self.coverage = Some(coverage);
        self
    }

    /// Adds why the order can no longer be paid.
    pub(crate) fn with_past(mut self, reason: Option<String>) -> Self {
        self.past = reason;
        self
    }

    /// Adds how a stored order ended.
    pub(crate) const fn with_ending(mut self, ending: &'a orders::Order) -> Self {
        self.progress = Some(ending);
        self
    }

    /// Reports the order as an event on stderr, for a command whose result follows later.
    pub(crate) fn report(&self, session: &Session) {
        session.event(&Prepared { event: "prepared", accepted: self }, "");
    }

    /// Prints the order.
    pub(crate) fn print(&self, json: bool) -> Result<(), Failure> {
        if json {
            return Ok(show::json(self)?);
        }
        if !self.headline.is_empty() {
            // Green is for what was checked on both chains.
            let is_checked = self.warnings.list().iter().all(|warning| warning.code() != Code::NoOrderRecord);
            if is_checked { show::heading(&self.headline)? } else { show::careful_heading(&self.headline)? }
        }
        show::summary(&self.summary, self.coverage.as_deref())?;
        show::warnings(self.warnings)?;
        self.past.iter().try_for_each(|reason| show::field("past", reason))?;
        self.progress.iter().try_for_each(|ending| ending.print())?;
        if let Some(requests) = &self.requests {
            show::requests(requests)?;
            if let Some(psbt) = &self.psbt {
                psbt.print()?;
            }
            return Ok(show::hashes(self.hashes.as_deref().unwrap_or_default())?);
        }
        if let Some(artefacts) = &self.artefacts {
            show::heading(self.heading)?;
            show::artefacts(&serde_json::to_value(artefacts).map_err(usage)?, "")?;
        }
        Ok(())
    }
}
