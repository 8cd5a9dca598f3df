//! The page of an order: `--html`.

use std::path::PathBuf;

use countersign::{Policy, Registry, Unsigned};
use countersign_json::line::Case;
use countersign_view::hashes::Safe;
use countersign_view::{Catalogue, Documents, LANGUAGES, Page};

use crate::failure::{Failure, usage};
use crate::files::{self, Access};
use crate::orders;
use crate::session::Session;

/// A prepared order, as a page shows it.
pub(crate) struct Prepared<'p> {
    /// The order with what the wallet contributed, and its signatures.
    pub(crate) order: &'p Unsigned,
    /// The owner's account, if it is a Safe.
    pub(crate) safe: Option<Safe>,
}

impl<'p> From<&'p Unsigned> for Prepared<'p> {
    fn from(order: &'p Unsigned) -> Self {
        Self { order, safe: None }
    }
}

#[derive(clap::Args)]
pub(crate) struct PageArgs {
    /// Writes a page that shows the order down to its bytes, for any browser. A refused order makes a page too.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// The language of the sentence above the order.
    #[arg(long, value_name = "TAG", default_value = "en", value_parser = LANGUAGES)]
    language: String,
}

impl PageArgs {
    /// Returns the messages of the chosen language.
    pub(crate) fn catalogue(&self) -> Catalogue {
        Catalogue::of(&self.language).unwrap_or_else(Catalogue::english)
    }

    /// Writes the page if it is asked for. `ending` is what became of a stored order.
    pub(crate) fn write(
        &self,
        case: &Case<'_>,
        registry: &Registry,
        policy: &Policy,
        prepared: Option<Prepared<'_>>,
        ending: Option<&orders::Order>,
        session: &Session,
    ) -> Result<(), Failure> {
        let Some(path) = &self.html else { return Ok(()) };
        let documents = Documents { request: case.request, response: case.response, record: case.order };
        let mut page = Page::new(documents, registry, policy).in_language(&self.catalogue());
        if let Some(Prepared { order, safe }) = prepared {
            page = page.with_prepared(order).map_err(usage)?;
            if let Some(safe) = safe {
                page = page.in_safe(&safe, order);
            }
        }
        if let Some(ending) = ending {
            page = page.with_ending(&ending.facts());
        }
        files::replace(path, page.to_html().as_bytes(), Access::Private)?;
        session.progress(&format!("wrote {}", path.display()));
        Ok(())
    }
}
