//! The record of an order under way, and the readers of its HTLCs.

use std::sync::Arc;

use countersign_json::objects::{self, Convert, Documents};

use crate::shapes::{Htlc, HtlcTerms, Notice, Proof};
use crate::{Policy, Quorum, Reader, Registry, Result};

/// One side of a swap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, uniffi::Enum)]
pub enum Leg {
    /// Where the owner pays.
    Source,
    /// Where the owner is paid.
    Destination,
}

impl Leg {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Source => "source",
            Self::Destination => "destination",
        }
    }
}

/// A verified record of an order under way. Nothing that could be signed.
#[derive(Debug, uniffi::Object)]
pub struct Record(objects::Record);

#[uniffi::export]
impl Record {
    /// Verifies the record of an order that may be funded, redeemed or refunded by now.
    #[uniffi::constructor(default(policy = None))]
    pub fn verify(request: Vec<u8>, response: Vec<u8>, record: Vec<u8>, registry: &Registry, policy: Option<Arc<Policy>>) -> Result<Self> {
        let documents = Documents::new(&request, &response).with_record(Some(&record));
        Ok(Self(objects::verify_record(&documents, &registry.0, &policy.unwrap_or_default().0)?))
    }

    /// Returns the order's id.
    pub fn order_id(&self) -> String {
        self.0.verified.terms.order_id.clone()
    }

    /// Returns what the HTLC of a leg must hold, and where it is.
    pub fn terms(&self, leg: Leg) -> Result<HtlcTerms> {
        Ok(objects::htlc_terms(&self.0, leg.name())?.convert())
    }

    /// Returns what the owner should know.
    pub fn warnings(&self) -> Vec<Notice> {
        objects::warnings(&self.0.verified.warnings).convert()
    }

    /// Creates the reader of the HTLC of a leg for one endpoint, which has this name in the quorum. It says what to ask; the caller's own
    /// connection sends it.
    ///
    /// `known` is what [`Reader::known`] was after the last reading of this endpoint. `protocol` says whether an endpoint of a
    /// Bitcoin-like chain is an Esplora server, `esplora`, or a node's own RPC, `rpc`.
    #[uniffi::method(default(known = None, protocol = None))]
    pub fn reader(&self, leg: Leg, endpoint: String, known: Option<String>, protocol: Option<String>) -> Result<Reader> {
        let reader = self.0.reader(leg.name(), &endpoint, known.unwrap_or_default().as_bytes(), protocol.as_deref())?;
        Ok(Reader::new(endpoint, reader))
    }

    /// Compares what the endpoints show of the destination with the verified terms, at `now` in Unix seconds. Only with the proof may the
    /// secret leave.
    pub fn judge(&self, quorum: &Quorum, now: u64) -> Result<Proof> {
        Ok(self.0.judge(&quorum.lock(), now)?.convert())
    }

    /// Returns the state of the HTLC of a leg, on which enough endpoints agree. For display: only [`judge`](Self::judge) decides about the
    /// secret.
    pub fn state(&self, leg: Leg, quorum: &Quorum) -> Result<Htlc> {
        Ok(self.0.state(leg.name(), &quorum.lock())?.convert())
    }
}
